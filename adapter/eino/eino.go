// Package eino records runs of github.com/cloudwego/eino: agents of its ADK, graphs, chat models
// and tools. The example of [Recorder] shows its use.
//
// An agent that is a tool has its name, "/" and the id of the call as its id. Not recorded are
// agentic agents and models, and chat models that are called with neither an agent nor a graph.
// A call of a model that follows a failed one of the same agent counts as its retry.
//
// A copy of a stream, or of the events of an agent, is read by a goroutine that ends when eino has
// made the last of it. Later work in eino waits until that is recorded, so the events are in the
// order of the work. [Recorder.End] waits for all.
package eino

import (
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/agentevents/agentevents"
)

// A Recorder is a handler for adk.WithCallbacks and compose.WithCallbacks. Each call of a runner or
// of a graph gets its own, which its goroutines share. Errors of recording go to the hooks of the
// emitter, and not to eino. Nothing is recorded by a nil Recorder, nor by one with neither a Run
// nor an agent in the context of the call; eino still asks it at every step, so pass none there.
type Recorder struct {
	// Run is the run of agents that have no agent in their context.
	Run *agentevents.Run
	// Questions returns the questions that an interrupt with this information asks a person. A tool
	// that asks nothing wants approval; others just wait. Nil: tools ask nothing, and of others
	// information that is a string is the question.
	Questions func(info any) []agentevents.Question

	readers sync.Map // the scopes that a goroutine reads for, as keys
	mu      sync.Mutex
	err     error // of the last agent that failed outside of tools
}

// A scope is the work that a callback has begun, for the callback that ends it. Work that is not
// recorded, or recorded elsewhere, has functions that do nothing.
type scope struct {
	addr  string // of the component; parts of it have longer ones
	key   string // the key that others wait for: addr, or a path below the address of the agent
	by    *scope // of the agent that makes the call, or itself
	take  func(out any, whole bool)
	end   func(err error)
	ended atomic.Bool   // a callback that ends it has come
	done  chan struct{} // closed by the goroutine that reads for it

	// Of agents:
	topmost bool                                  // no agent of eino leads to it
	within  bool                                  // it is within a tool
	serial  bool                                  // it runs agents one after the other
	asked   atomic.Bool                           // it has called a model
	failed  atomic.Pointer[agentevents.ModelCall] // its last model call if that failed: the next is a retry
}

type scopeKey struct{ of *Recorder }

const within = ";" // between the parts of an address

// begins has the recorded components, and the functions that begin their scopes.
var begins = map[components.Component]func(*Recorder, context.Context, *callbacks.RunInfo, any, *scope) context.Context{
	adk.ComponentOfAgent:            (*Recorder).agent,
	compose.ComponentOfGraph:        (*Recorder).graph,
	compose.ComponentOfChain:        (*Recorder).graph,
	compose.ComponentOfWorkflow:     (*Recorder).graph,
	components.ComponentOfChatModel: (*Recorder).model,
	components.ComponentOfTool:      (*Recorder).tool,
}

// End waits until eino has stopped and all is recorded, and ends Run then (see
// [agentevents.Run.Finish]), unless the run is paused. It is called after the last event of the
// runner, or by a caller who leaves early: eino works on, unless its context is cancelled. The
// error is one of recording.
func (r *Recorder) End(ctx context.Context) error {
	if r == nil {
		return nil
	}
	r.await("")
	if r.Run == nil || r.Run.State().Status == agentevents.RunStatusPaused {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Run.Finish(ctx, r.err)
}

// Needed implements callbacks.TimingChecker.
func (r *Recorder) Needed(ctx context.Context, info *callbacks.RunInfo, _ callbacks.CallbackTiming) bool {
	return r != nil && info != nil && begins[info.Component] != nil && (r.Run != nil || agentevents.AgentFromContext(ctx) != nil)
}

// OnStart implements callbacks.Handler.
func (r *Recorder) OnStart(ctx context.Context, info *callbacks.RunInfo, in callbacks.CallbackInput) context.Context {
	if !r.Needed(ctx, info, callbacks.TimingOnStart) {
		return ctx
	}
	s := newScope(ctx)
	if outer, ok := ctx.Value(scopeKey{r}).(*scope); ok {
		if outer.addr == s.addr && !outer.ended.Load() {
			return ctx // eino has the recorder twice
		}
		s.by = outer.by
		if outer.serial {
			r.await(outer.addr + within)
		}
	}
	return begins[info.Component](r, context.WithValue(ctx, scopeKey{r}, s), info, in, s)
}

func newScope(ctx context.Context) *scope {
	s := &scope{addr: compose.GetCurrentAddress(ctx).String(), done: make(chan struct{}), take: func(any, bool) {}, end: func(error) {}}
	s.by = s
	return s
}

// ending returns the scope that a callback ends, or one that does nothing: eino also ends scopes
// that it has not begun, in the context of the surrounding scope.
func (r *Recorder) ending(ctx context.Context) *scope {
	none := newScope(ctx)
	if s, ok := ctx.Value(scopeKey{r}).(*scope); ok && s.addr == none.addr && !s.ended.Swap(true) {
		return s
	}
	return none
}

// OnStartWithStreamInput implements callbacks.Handler.
func (r *Recorder) OnStartWithStreamInput(ctx context.Context, info *callbacks.RunInfo, in *schema.StreamReader[callbacks.CallbackInput]) context.Context {
	in.Close()
	return r.OnStart(ctx, info, nil)
}

// OnEnd implements callbacks.Handler.
func (r *Recorder) OnEnd(ctx context.Context, _ *callbacks.RunInfo, out callbacks.CallbackOutput) context.Context {
	s := r.ending(ctx)
	if adk.ConvAgentCallbackOutput(out) != nil { // which is yet to come
		r.read(s, func() error { s.take(out, true); return nil })
	} else {
		s.take(out, true)
		s.end(nil)
	}
	return ctx
}

// OnError implements callbacks.Handler.
func (r *Recorder) OnError(ctx context.Context, _ *callbacks.RunInfo, err error) context.Context {
	r.ending(ctx).end(err)
	return ctx
}

// OnEndWithStreamOutput implements callbacks.Handler.
func (r *Recorder) OnEndWithStreamOutput(ctx context.Context, _ *callbacks.RunInfo, out *schema.StreamReader[callbacks.CallbackOutput]) context.Context {
	s := r.ending(ctx)
	r.read(s, func() error {
		defer out.Close()
		for {
			piece, err := out.Recv()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			s.take(piece, false)
		}
	})
	return ctx
}

// read reads in a goroutine of its own, and ends the scope then.
func (r *Recorder) read(s *scope, all func() error) {
	r.readers.Store(s, nil)
	go func() {
		defer close(s.done)
		defer r.readers.Delete(s)
		var err error
		defer func() {
			if v := recover(); v != nil { // a stream may run code of the program
				err = &agentevents.PanicError{Value: v}
			}
			s.end(err)
		}()
		err = all()
	}()
}

// await waits for the goroutines that read for the scopes whose keys begin so.
func (r *Recorder) await(key string) {
	r.readers.Range(func(k, _ any) bool {
		if s := k.(*scope); strings.HasPrefix(s.key, key) {
			<-s.done
		}
		return true
	})
}
