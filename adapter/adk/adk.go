// Package adk records the runs of agents of Google's Agent Development Kit
// (google.golang.org/adk/v2).
//
//	rec := &adk.Recorder{Emitter: em}
//	r, err := runner.New(runner.Config{…, PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{rec.Plugin()}}})
//	…
//	for event, err := range rec.Run(ctx, r, userID, sessionID, message, agent.RunConfig{}) {
//
// An invocation is a run, with the invocation's id: its agents, model calls with usage, texts,
// tool calls, transfers, state, confirmations and questions. A run that waits for a person is paused.
// The invocation that answers goes on with it; in another process [agentevents.Emitter.Resume]
// comes first. Not recorded are live runs, artifacts and nodes of workflows. An agent's id is
// its name, or the end of its branch, name@1, where the framework may run it several times at once.
package adk

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/agentevents/agentevents"
)

// A Recorder records the runs of runners. It does not change their acts and results; errors of
// recording go only to the emitter's OnViolation and OnError, and its Guard stops nothing. Its
// methods may be called concurrently.
type Recorder struct {
	Emitter *agentevents.Emitter // under LifecycleDerived; nil records nothing
}

// Plugin returns the plugin of a runner. It is the first one: a plugin in front of it that
// answers in the place of a model or a tool hides that. A plugin without Run, as in a server of
// the framework, does not learn why an agent fails, nor who its parent is.
func (r *Recorder) Plugin() *plugin.Plugin {
	c := plugin.Config{Name: "agentevents"}
	if r != nil && r.Emitter != nil {
		c = recording{em: r.Emitter}.callbacks()
	}
	p, _ := plugin.New(c) // it returns no error
	return p
}

// Config returns cfg with callbacks, for an agent that is a tool, which plugins do not reach:
//
//	inner, err := llmagent.New(rec.Config(llmagent.Config{…}))
//	…
//	tools := []tool.Tool{agenttool.New(inner, nil)}
//
// In a run of [Recorder.Run] the agent is a child of the call, and its id is its name, "/" and
// the call's id. Where the plugin reaches the agent the callbacks do nothing.
func (r *Recorder) Config(cfg llmagent.Config) llmagent.Config {
	if r == nil || r.Emitter == nil {
		return cfg
	}
	c := recording{r.Emitter, true}.callbacks()
	cfg.BeforeAgentCallbacks = first(c.BeforeAgentCallback, cfg.BeforeAgentCallbacks)
	cfg.AfterAgentCallbacks = first(c.AfterAgentCallback, cfg.AfterAgentCallbacks)
	cfg.BeforeModelCallbacks = first(c.BeforeModelCallback, cfg.BeforeModelCallbacks)
	cfg.AfterModelCallbacks = first(c.AfterModelCallback, cfg.AfterModelCallbacks)
	cfg.OnModelErrorCallbacks = first(c.OnModelErrorCallback, cfg.OnModelErrorCallbacks)
	cfg.BeforeToolCallbacks = first(c.BeforeToolCallback, cfg.BeforeToolCallbacks)
	cfg.AfterToolCallbacks = first(c.AfterToolCallback, cfg.AfterToolCallbacks)
	cfg.OnToolErrorCallbacks = first(c.OnToolErrorCallback, cfg.OnToolErrorCallbacks)
	return cfg
}

func first[T any](f T, rest []T) []T { return append([]T{f}, rest...) }

// Run is run.Run, and gives the plugin the facts that callbacks lack: how the run ends, and the
// parents of sub-agents. A caller who leaves at the final response of the agent that answers has
// the whole run; one who leaves before has cancelled it. Tools have their call in the context
// ([agentevents.CallFromContext]). Models have no agent there, also not one that ctx carries: their
// calls are recorded already.
func (r *Recorder) Run(ctx context.Context, run *runner.Runner, userID, sessionID string, msg *genai.Content, cfg agent.RunConfig, opts ...runner.RunOption) iter.Seq2[*session.Event, error] {
	if r == nil || r.Emitter == nil {
		return run.Run(ctx, userID, sessionID, msg, cfg, opts...)
	}
	return func(yield func(*session.Event, error) bool) {
		inv := &invocation{}
		ctx := context.WithValue(agentevents.ContextWithAgent(ctx, nil), invocationKey{}, inv)
		for ev, err := range run.Run(withTasks(ctx), userID, sessionID, msg, cfg, opts...) {
			if err != nil {
				inv.err = err
			}
			inv.away = true
			answered := inv.answered(ev)
			if !yield(ev, err) {
				inv.away = !answered
				return
			}
			inv.away = false
		}
	}
}

var (
	errStopped  = &agentevents.ToolError{Status: agentevents.ToolStatusCancelled, Err: errors.New("the caller stopped reading events")}
	errNotEnded = errors.New("an agent did not end; adk.Recorder.Run tells why")
	errRefused  = errors.New("the agent failed; its end tells why")
)

// An invocation is the state that Run and the plugin share. Without Run the root is nil.
type invocation struct {
	root    agent.Agent // that the runner runs
	id      string      // of its run
	speaker string      // the agent whose answer ends the run
	err     error       // of the run
	refusal error       // in place of the latest answer
	away    bool        // the caller has an event, and may not come back for the answer
}

// answered reports whether an event is the answer with which the run ends: callers leave there.
// The answer of another agent, such as a step in a workflow, is not, nor a call that a person answers.
func (inv *invocation) answered(ev *session.Event) bool {
	if ev == nil {
		return false
	}
	inv.speaker = cmp.Or(ev.Actions.TransferToAgent, inv.speaker)
	return ev.Author == inv.speaker && ev.IsFinalResponse() && len(ev.LongRunningToolIDs) == 0
}

type invocationKey struct{}

func invocationOf(ctx context.Context) *invocation {
	if inv, ok := ctx.Value(invocationKey{}).(*invocation); ok {
		return inv
	}
	return &invocation{}
}
