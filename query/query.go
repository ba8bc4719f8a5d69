// Package query is the seam between a runtime and the agents that it asks: a [Func] asks an agent
// of some provider, and [Do] records its answer.
//
//	func report(ctx context.Context, run *agentevents.Run, ask query.Func) error {
//		end, err := query.Do(ctx, run.Agent("writer"), ask, query.Request{
//			Prompt: agentevents.JSONString("Write the report."),
//		})
//		…
//	}
//
// In production ask calls the provider. In a test it is a mock that answers from recorded
// fixtures, and nothing else differs: see package querytest.
//
// Mirrors: the resume specification, "SDK Interceptor Pattern", "Session Lifecycle",
// "Claude Node Changes".
package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/agentevents/agentevents"
)

// A Func asks an agent, and yields its acts as events, while they happen. It must be safe for
// concurrent use.
//
// An event needs a payload. AgentID is empty for acts of the agent itself; another id names a
// sub-agent, whose AgentStarted has a ParentAgentID unless it is a child of the agent. Actor,
// ParentCallID and Marks count too. The recorder gives an event its identity, order, time and step.
//
// The agent's AgentStarted, if any, comes first: it names the session and the model. Its AgentEnded
// is the result. An error is yielded last: without an end, the agent has failed with it.
type Func func(ctx context.Context, r Request) iter.Seq2[agentevents.Event, error]

// A Request is a question to an agent.
type Request struct {
	// NodeID names who is asked, for mocks and recordings. Empty means AgentID.
	NodeID string
	// AgentID is the agent in the log. Do sets it.
	AgentID string
	// Prompt is a JSON string or a list of messages.
	Prompt agentevents.JSON
	// SessionID is the agent's session at the provider. Empty leaves it to the provider.
	// With an id of the caller (many providers want a UUID), a run can be resumed whose
	// process dies before the agent has said anything.
	SessionID string
	// Resume means that the session exists: the agent goes on with it.
	Resume bool
	// Options are the provider's options, a JSON object; empty means none.
	Options agentevents.JSON
	// Task and Model are recorded with the agent's start. Empty means unknown.
	Task  string
	Model string
}

// ErrNoEnd means that an answer broke off: there was neither an end of the agent nor an
// error.
var ErrNoEnd = errors.New("query: the answer has no end")

// Do asks an agent and records its answer in the agent's run. It returns the agent's end. On every
// way out, a panic of ask included, the agent has ended exactly once, and with it the sub-agents of
// the answer. If the answer has no ends for them, Do finishes them with its error, as
// [agentevents.Agent.Finish] does, with the calls that are open.
//
// If the request has a SessionID, the agent's start is recorded before the agent is asked:
// the session is in the log, and in a store, before there is anything to lose. An agent
// whose start cannot be recorded is not asked. Otherwise the start is recorded with the
// first event, which knows the session. A session that changes is recorded as such.
//
// The error is ask's, joined with the errors of recording. Errors of recording do not stop the
// agent: its acts happen in any case. The context of ask carries the agent: see
// [agentevents.AgentFromContext].
func Do(ctx context.Context, a *agentevents.Agent, ask Func, r Request) (*agentevents.AgentEnded, error) {
	if ask == nil {
		return nil, errors.New("query: the function is nil")
	}
	if ctx == nil {
		ctx = context.Background()
	}
	r.AgentID = a.ID()
	r.NodeID = cmp.Or(r.NodeID, r.AgentID)
	d := &answer{ctx: ctx, agent: a, request: r}
	if r.SessionID != "" {
		if err := d.start(&agentevents.AgentStarted{}); err != nil {
			return nil, err
		}
	}
	finished := false
	defer func() {
		if finished {
			return
		}
		if v := recover(); v != nil {
			_ = d.finish(&agentevents.PanicError{Value: v})
			panic(v)
		}
		_ = d.finish(errors.New("the query ended its goroutine"))
	}()
	err := d.ask(ask)
	finished = true
	err = d.finish(err)
	return d.end, errors.Join(append([]error{err}, d.errs...)...)
}

// An answer is being recorded.
type answer struct {
	ctx     context.Context
	agent   *agentevents.Agent
	request Request
	session string // that the log has
	started bool
	end     *agentevents.AgentEnded
	subs    []string // sub-agents that have started and not ended
	errs    []error  // of recording; some are nil
}

// ask records the agent's acts, and returns the error that its answer ends with.
func (d *answer) ask(ask Func) error {
	for ev, err := range ask(agentevents.ContextWithAgent(d.ctx, d.agent), d.request) {
		if err != nil {
			return err
		}
		if ev.Payload == nil {
			return errors.New("query: an event has no payload")
		}
		if err := d.event(ev); err != nil {
			d.errs = append(d.errs, err)
		}
	}
	return nil
}

// event records an event of the answer.
func (d *answer) event(ev agentevents.Event) error {
	own := ev.AgentID == "" || ev.AgentID == d.agent.ID()
	first, isStart := ev.Payload.(*agentevents.AgentStarted)
	if own && isStart && d.end == nil {
		if !d.started {
			return d.start(first)
		}
		if first.ProviderSessionID == "" || first.ProviderSessionID == d.session {
			return nil // it was recorded before the agent was asked
		}
		ev.Payload = &agentevents.AgentSessionChanged{ProviderSessionID: first.ProviderSessionID}
	}
	if !d.started {
		if err := d.start(&agentevents.AgentStarted{}); err != nil {
			d.errs = append(d.errs, err)
		}
	}
	id := cmp.Or(ev.AgentID, d.agent.ID())
	out := agentevents.Event{Actor: ev.Actor, AgentID: ev.AgentID, ParentCallID: ev.ParentCallID, Marks: ev.Marks,
		Payload: ev.Payload}
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		out.ParentAgentID = ev.ParentAgentID
		if own {
			d.end = nil // another turn
		} else {
			out.ParentAgentID = cmp.Or(ev.ParentAgentID, d.agent.ID())
			d.subs = append(d.subs, id)
		}
	case *agentevents.AgentSessionChanged:
		if own {
			d.session = p.ProviderSessionID
		}
	case *agentevents.AgentEnded:
		if own && d.end == nil {
			d.end = p
		}
		d.subs = slices.DeleteFunc(d.subs, func(sub string) bool { return sub == id })
	}
	_, err := d.agent.Record(d.ctx, out)
	return err
}

// start records the start of the agent, with the facts of the request and the answer.
func (d *answer) start(said *agentevents.AgentStarted) error {
	p, r := *said, d.request
	p.Prompt = cmp.Or(p.Prompt, r.Prompt)
	p.ProviderSessionID = cmp.Or(p.ProviderSessionID, r.SessionID)
	p.Task = cmp.Or(p.Task, r.Task)
	p.Model = cmp.Or(p.Model, r.Model)
	p.Resumed = p.Resumed || r.Resume
	d.session = p.ProviderSessionID
	err := d.agent.Emit(d.ctx, &p)
	d.started = d.started || err == nil
	return err
}

// finish ends agents that have not ended, and returns why the agent has not.
func (d *answer) finish(err error) error {
	for _, id := range slices.Backward(d.subs) {
		d.errs = append(d.errs, d.agent.Run().Agent(id).Finish(d.ctx, cmp.Or(err, ErrNoEnd), nil))
	}
	if d.subs = nil; d.end != nil {
		return err
	}
	err = cmp.Or(err, ErrNoEnd)
	if !d.started {
		d.errs = append(d.errs, d.start(&agentevents.AgentStarted{}))
	}
	// The error's method may panic.
	d.end = &agentevents.AgentEnded{Error: agentevents.Some(agentevents.ErrorInfo{Message: fmt.Sprint(err)})}
	budget := (*agentevents.BudgetError)(nil)
	switch {
	case errors.As(err, &budget), errors.As(context.Cause(d.ctx), &budget):
		d.end.Error.V.Code = "budget_exceeded"
	case errors.Is(err, context.DeadlineExceeded), d.ctx.Err() == context.DeadlineExceeded:
		d.end.Error.V.Code = "deadline_exceeded"
	case errors.Is(err, context.Canceled), d.ctx.Err() != nil:
		d.end.Error.V.Code = "cancelled"
	}
	if d.end.Error.V.Code != "" {
		d.end.Outcome = agentevents.OutcomeAborted
		if cause := context.Cause(d.ctx); cause != d.ctx.Err() && !errors.Is(err, cause) {
			d.end.Error.V.Message += ": " + cause.Error()
		}
	}
	d.errs = append(d.errs, d.agent.Finish(d.ctx, err, d.end))
	return fmt.Errorf("query: %s: %w", d.request.NodeID, err)
}
