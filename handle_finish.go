package agentevents

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/reentry"
)

// errLeftOpen is the failure of a call that its agent left open without an error.
var errLeftOpen = errors.New("the agent ended before the return")

// Finish ends the agent with the outcome of its work, err or nil: its open calls and model calls
// fail first, with err (see [Call.Fail]). p has further facts of the end and may be nil. Where it
// names neither an outcome nor an error the outcome is converged without err; with err the error is
// recorded, with the code of [ModelCall.Fail], and the outcome is aborted if err is a cancellation or a
// deadline for [Call.Fail].
// Finish does not change p, and the caller must not change it afterwards.
//
// Pass the context that was cancelled: it has the cause (see [Call.Fail]). Statuses follow under
// [LifecycleDerived]. Under another table Finish records no transition: the caller sends the agent
// [Agent.To] a status that agrees with its outcome first. An agent that is not open is left as it
// is: Finish records nothing and returns nil.
func (a *Agent) Finish(ctx context.Context, err error, p *AgentEnded) error {
	if !a.ok() {
		return ErrZeroValue
	}
	if !a.Open() {
		return nil
	}
	return join(a.failCalls(ctx, err, a.OpenCalls(), a.OpenModelCalls()), a.end(ctx, err, p))
}

// FinishDeferred is [Agent.Finish] for a defer statement, for each way out of a function:
//
//	func work(ctx context.Context, agent *agentevents.Agent) (err error) {
//		var end agentevents.AgentEnded // end.Result may be set later
//		defer agent.FinishDeferred(ctx, &err, &end)
//
// The agent ends with the value of *err at that time; a nil pointer means no error. When a panic
// passes, the agent ends with a [*PanicError] whatever outcome p names, and the panic goes on with
// the same value. So it does, without a panic, when runtime.Goexit ends the goroutine. Only a
// method that is itself deferred sees these two, not one in a deferred function.
//
// *err is not changed, because it belongs to the work: errors of recording go to
// EmitterOptions.OnViolation and OnError.
func (a *Agent) FinishDeferred(ctx context.Context, err *error, p *AgentEnded) {
	v := recover()
	how, cut := wayOut(v, err)
	if cut && p != nil {
		out := *p
		out.Outcome, out.Error = "", Opt[ErrorInfo]{}
		p = &out
	}
	_ = a.Finish(ctx, how, p)
	if v != nil {
		panic(v)
	}
}

// FinishDeferred is [Run.Finish] for a defer statement: defer run.FinishDeferred(ctx, &err). It
// records panics and leaves *err as [Agent.FinishDeferred] does.
func (r *Run) FinishDeferred(ctx context.Context, err *error) {
	v := recover()
	how, _ := wayOut(v, err)
	_ = r.Finish(ctx, how)
	if v != nil {
		panic(v)
	}
}

// errGoexit is the failure of work that runtime.Goexit cut off.
var errGoexit = errors.New("the work ended its goroutine")

// wayOut returns how a function ended whose deferred method calls it, and whether it did not
// return: a panic with v passes, or runtime.Goexit ends the goroutine.
func wayOut(v any, err *error) (how error, cut bool) {
	switch {
	case v != nil:
		return &PanicError{Value: v}, true
	case byGoexit():
		return errGoexit, true
	case err == nil:
		return nil, false
	}
	return *err, false
}

// byGoexit reports whether runtime.Goexit has called the method that calls wayOut. Functions that
// Goexit's deferred ones call return as ever, so only the caller of the method counts. The compiler
// puts a function between the two.
func byGoexit() bool {
	var pcs [4]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs[:])]) // without Callers, byGoexit, wayOut and the method
	for {
		f, more := frames.Next()
		if !more || !strings.Contains(f.Function, ".deferwrap") {
			return f.Function == "runtime.Goexit"
		}
	}
}

// failCalls closes open calls and model calls as work that ended with err leaves them.
func (a *Agent) failCalls(ctx context.Context, err error, calls, models []string) (errs error) {
	if err == nil {
		err = errLeftOpen
	}
	for _, id := range calls {
		errs = join(errs, a.OpenCall(id).Fail(ctx, err))
	}
	for _, id := range models {
		errs = join(errs, a.OpenModelCall(id).Fail(ctx, err))
	}
	return errs
}

// end records the end of the agent.
func (a *Agent) end(ctx context.Context, err error, p *AgentEnded) error {
	var out AgentEnded
	if p != nil {
		out = *p
	}
	if out.Outcome == "" && !out.Error.OK {
		if err == nil {
			out.Outcome = OutcomeConverged
		} else {
			how := failed(orBackground(ctx), err)
			out.Error = how.coded()
			if how.stopped() {
				out.Outcome = OutcomeAborted
			}
		}
	}
	return a.Emit(ctx, &out)
}

// coded returns the error. Its code is the status if that tells more than that there is an error.
func (p *ToolReturned) coded() Opt[ErrorInfo] {
	info := p.Error
	if p.Status != ToolStatusError {
		info.V.Code = cmp.Or(info.V.Code, string(p.Status))
	}
	return info
}

// stopped reports whether the end came from outside.
func (p *ToolReturned) stopped() bool {
	return p.Status == ToolStatusCancelled || p.Error.V.Code == "deadline_exceeded"
}

// Finish ends the run as its work ended: agents that are open are finished first, those that
// started last before the others, each with err (see [Agent.Finish]). Calls and model calls of
// agents that are not open fail as well. Then the run has completed without err, was cancelled if
// err is a cancellation (see [Call.Fail]), and has failed with any other, a [*BudgetError]
// included. Pass the context that was cancelled.
//
// Agents, calls and other things that goroutines would open meanwhile are refused as after the end
// (rule terminal-last). A run that has ended is left as it is: Finish records nothing and returns
// nil.
func (r *Run) Finish(ctx context.Context, err error) (errs error) {
	if !r.ok() {
		return ErrZeroValue
	}
	if r.over() {
		return nil
	}
	if err := r.s.beginEnd(ctx); err != nil {
		return err
	}
	defer r.s.finishing.Store(false)
	for _, v := range slices.Backward(r.State().Agents) {
		a := r.Agent(v.AgentID)
		errs = join(errs, a.failCalls(ctx, err, v.OpenCalls, v.OpenModelCalls))
		if v.Open {
			errs = join(errs, a.end(ctx, err, nil))
		}
	}
	nobody := newRun(r.s, Scope{}).Agent("")
	errs = join(errs, nobody.failCalls(ctx, err, nobody.OpenCalls(), nobody.OpenModelCalls()))
	var p Payload = &RunCompleted{}
	if err != nil {
		how := failed(orBackground(ctx), err)
		p = &RunFailed{Error: how.coded()}
		if how.Status == ToolStatusCancelled && how.Error.V.Code != codeBudget {
			p = &RunCancelled{Reason: how.Error.V.Message}
		}
	}
	return join(errs, r.Emit(ctx, p))
}

// beginEnd refuses, from now on, events that open something. When it returns, the state of the run
// has everything that was opened before.
func (s *runState) beginEnd(ctx context.Context) error {
	s.finishing.Store(true)
	err := s.lock(reentry.Of(orBackground(ctx)))
	if err != nil {
		s.finishing.Store(false)
		return err
	}
	s.end.mu.Unlock()
	if s.end.closed.Load() { // by Run.Close, which did not wait
		return s.close(orBackground(ctx))
	}
	return nil
}

// over reports whether the run has its terminal event.
func (r *Run) over() bool {
	r.s.state.Lock()
	defer r.s.state.Unlock()
	return r.s.m.TerminalKind != ""
}
