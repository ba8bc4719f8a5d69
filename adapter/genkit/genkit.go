// Package genkit records the work of github.com/firebase/genkit/go: generations, their model
// calls, and the tools that they call. The example of [Recorder] shows its use.
//
// A Generate, or an execution of a prompt, is an agent. The agent has the first of these names:
// Recorder.Agent, the step name of the options, the tool around it, the flow, "generate". The name
// is also the id. Within a tool "/" and the id of the call follow, and "@2" if the run has an
// agent with that id. A Generate that resumes an interrupted one goes on with its agent. When a
// tool fails, genkit does not wait for the others; the agent ends after the last of them.
//
// genkit does not hand middlewares on to the Generate in a tool: give it a Recorder, too. Make the
// Recorder the last middleware of ai.WithUse: then it sees every attempt of a retry. An earlier
// one sees the outcome alone. Not recorded are models that another middleware asks, such as
// Fallback; tools that the program runs itself; steps of flows; and a tool that begins after
// [Recorder.End], because another one has failed.
package genkit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/firebase/genkit/go/ai"

	"github.com/agentevents/agentevents"
)

// A Recorder is a middleware for ai.WithUse. Any number of Generates of the run may use it, one
// after the other and concurrently. The hooks of the emitter learn of a failure in recording, and
// genkit does not. A nil Recorder records nothing, and neither does one without a Run if the
// context of the Generate has no agent. A Recorder must not be copied.
type Recorder struct {
	// Run is the run of agents that have no agent in their context.
	Run *agentevents.Run `json:"-"` // genkit writes middlewares into its spans
	// Agent is the name of the agents. Empty: see the package comment.
	Agent string `json:"-"`
	// Questions returns the questions of an interrupt with this metadata, which is nil if the
	// tool gave none. An interrupt without questions asks for approval. Nil: no tool asks.
	Questions func(metadata map[string]any) []agentevents.Question `json:"-"`

	naming sync.Mutex     // held from the choice of an id until an agent has started with it
	ids    map[string]int // the highest numbers of the ids of Run's own agents

	mu   sync.Mutex
	open map[*generation]struct{} // that have not ended
	err  error                    // of the Generate outside of agents that was the last to end
}

// Name implements ai.Middleware.
func (r *Recorder) Name() string { return "agentevents" }

// New implements ai.Middleware.
func (r *Recorder) New(ctx context.Context) (*ai.Hooks, error) {
	if r == nil || r.Run == nil && agentevents.AgentFromContext(ctx) == nil {
		return &ai.Hooks{}, nil
	}
	h := &hooks{r}
	return &ai.Hooks{WrapGenerate: h.generate, WrapModel: h.model, WrapTool: h.tool}, nil
}

// End waits until all Generates of the Recorder and their tools have returned, or until ctx ends.
// Then it ends Run with the error of the Generate that was the last to end (see
// [agentevents.Run.Finish]), or pauses Run if a question is open. The error is one of recording.
func (r *Recorder) End(ctx context.Context) error {
	if r == nil {
		return nil
	}
	for {
		g := r.unended()
		if g == nil {
			break
		}
		g.settle(ctx)
	}
	if r.Run == nil {
		return nil
	}
	switch state := r.Run.State(); {
	case state.Status == agentevents.RunStatusPaused:
		return nil
	case len(state.Questions) > 0:
		return r.Run.Emit(ctx, &agentevents.RunPaused{})
	}
	r.mu.Lock()
	err := r.err
	r.mu.Unlock()
	return r.Run.Finish(ctx, err)
}

// unended returns a generation that has not ended, or nil.
func (r *Recorder) unended() *generation {
	r.mu.Lock()
	defer r.mu.Unlock()
	for g := range r.open {
		return g
	}
	return nil
}

func (r *Recorder) began(g *generation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[*generation]struct{}{}
	}
	r.open[g] = struct{}{}
}

func (r *Recorder) ended(g *generation, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, g)
	if !g.within {
		r.err = err
	}
}

// caused returns the cause of the end of ctx in place of an error by it, so that the error has its class where
// another context ends it.
func caused(ctx context.Context, err error) error {
	end, cause := ctx.Err(), context.Cause(ctx)
	if cause == end || !errors.Is(err, end) && !errors.Is(err, cause) {
		return err
	}
	if end == context.DeadlineExceeded {
		return &agentevents.ToolError{Code: "deadline_exceeded", Err: cause}
	}
	return &agentevents.ToolError{Status: agentevents.ToolStatusCancelled, Err: cause}
}

// settle gives a tool call that has not begun so many times this rest before it takes the call for
// one that never will: genkit has made its goroutine already.
const (
	rests = 20
	rest  = time.Millisecond
)

// settle waits for a generation, and ends it if ctx ends or if only tools that may never begin
// are left.
func (g *generation) settle(ctx context.Context) {
	for range rests {
		if !g.waitsForTools() {
			break
		}
		time.Sleep(rest)
	}
	if !g.waitsForTools() {
		select {
		case <-g.done:
			return
		case <-ctx.Done():
		}
	}
	g.mu.Lock()
	err, running := g.err, slices.Collect(maps.Keys(g.running))
	if !g.returned {
		err = caused(ctx, ctx.Err())
	}
	g.mu.Unlock()
	for _, id := range running {
		_ = g.agent.OpenCall(id).Fail(ctx, context.Cause(ctx))
	}
	g.finish(err)
	<-g.done // somebody else may have been first
}
