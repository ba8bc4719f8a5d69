package agentevents

import (
	"context"
	"errors"
)

// errLeftOpen is the failure of a call that its agent left open without an error.
var errLeftOpen = errors.New("the agent ended before the return")

// Finish ends the agent as its work ended, with err or without, whatever it left open on its
// way out: its open calls and model calls fail first, with err (see [Call.Fail]). p says what
// else is known of the end and may be nil. Where it names neither an outcome nor an error the
// outcome is converged without err; with err the error is recorded, and the outcome is aborted
// if [Call.Fail] says that somebody stopped the agent or that its time was up. Finish does not
// change p, which belongs to the log from then on.
//
// Statuses follow under [LifecycleDerived]. Under another table Finish records no transition: the
// caller sends the agent [Agent.To] a status that agrees with its outcome first. An agent that is
// not open is left as it is: Finish records nothing and returns nil.
func (a *Agent) Finish(ctx context.Context, err error, p *AgentEnded) (errs error) {
	if !a.ok() {
		return ErrZeroValue
	}
	if !a.Open() {
		return nil
	}
	cause := err
	if cause == nil {
		cause = errLeftOpen
	}
	for _, id := range a.OpenCalls() {
		errs = join(errs, a.OpenCall(id).Fail(ctx, cause))
	}
	for _, id := range a.OpenModelCalls() {
		errs = join(errs, a.OpenModelCall(id).Fail(ctx, cause))
	}
	var out AgentEnded
	if p != nil {
		out = *p
	}
	if out.Outcome == "" && !out.Error.OK {
		if err == nil {
			out.Outcome = OutcomeConverged
		} else {
			how := failed(orBackground(ctx), err)
			out.Error = how.Error
			if how.stopped() {
				out.Outcome = OutcomeAborted
			}
		}
	}
	return join(errs, a.Emit(ctx, &out))
}

// stopped reports whether the end came from outside.
func (p *ToolReturned) stopped() bool {
	return p.Status == ToolStatusCancelled || p.Error.V.Code == "deadline_exceeded"
}

// Finish ends the run as its work ended: agents that are open are finished first, those that
// started last before the others, each with err (see [Agent.Finish]). Then the run has
// completed without err, was cancelled if err says that somebody stopped it (see [Call.Fail]),
// and has failed with any other.
//
// A run that has ended is left as it is: Finish records nothing and returns nil.
func (r *Run) Finish(ctx context.Context, err error) (errs error) {
	if !r.ok() {
		return ErrZeroValue
	}
	if r.over() {
		return nil
	}
	state := r.State()
	for i := len(state.Agents) - 1; i >= 0; i-- {
		if id := state.Agents[i].AgentID; state.Agents[i].Open {
			errs = join(errs, r.Agent(id).Finish(ctx, err, nil))
		}
	}
	var p Payload = &RunCompleted{}
	if err != nil {
		how := failed(orBackground(ctx), err)
		p = &RunFailed{Error: how.Error}
		if how.Status == ToolStatusCancelled {
			p = &RunCancelled{Reason: how.Error.V.Message}
		}
	}
	return join(errs, r.Emit(ctx, p))
}

// over reports whether the run has its terminal event.
func (r *Run) over() bool {
	r.s.state.Lock()
	defer r.s.state.Unlock()
	return r.s.m.TerminalKind != ""
}
