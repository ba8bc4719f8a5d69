package agentevents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFinishClosesOpenItemsOfTheAgent(t *testing.T) {
	down := errors.New("down")
	for _, tc := range []struct {
		name    string
		err     error
		p       *AgentEnded
		status  ToolStatus // of the call that is open
		outcome AgentOutcome
		message string // of the end
		agent   AgentStatus
	}{
		{"good", nil, nil, ToolStatusError, OutcomeConverged, "", StatusConverged},
		{"error", down, nil, ToolStatusError, "", "down", StatusFailed},
		{"cancelled", context.Canceled, nil, ToolStatusCancelled, OutcomeAborted, "context canceled", StatusFailed},
		{"joined", errors.Join(down, context.Canceled), nil, ToolStatusCancelled, OutcomeAborted, "down\ncontext canceled", StatusFailed},
		{"deadline", context.DeadlineExceeded, nil, ToolStatusError, OutcomeAborted, "context deadline exceeded", StatusFailed},
		{"tool error", &ToolError{Status: ToolStatusCancelled, Err: down}, nil, ToolStatusCancelled, OutcomeAborted, "down", StatusFailed},
		{"outcome", down, &AgentEnded{Outcome: OutcomePartial, Result: "half"}, ToolStatusError, OutcomePartial, "", StatusToolResult},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
			a := beginAgent(t, r, "a")
			other := beginAgent(t, r, "b")
			_, err := other.Call(t.Context(), &ToolCalled{CallID: "theirs", ToolID: "t"})
			require.NoError(t, err)
			_, err = a.Model(t.Context(), &ModelCalled{ModelCallID: "m"})
			require.NoError(t, err)
			_, err = a.Call(t.Context(), &ToolCalled{CallID: "c", ToolID: "t"})
			require.NoError(t, err)
			require.NoError(t, a.Finish(t.Context(), tc.err, tc.p))
			require.False(t, a.Open())

			end := log.last(t).Payload.(*AgentEnded)
			require.Equal(t, tc.outcome, end.Outcome)
			require.Equal(t, tc.message, end.Error.V.Message)
			require.Equal(t, tc.message != "", end.Error.OK)
			status, _ := a.Status()
			require.Equal(t, tc.agent, status)
			var returned *ToolReturned
			var answered *ModelReturned
			for _, ev := range log.events {
				switch p := ev.Payload.(type) {
				case *ToolReturned:
					returned = p
				case *ModelReturned:
					answered = p
				}
			}
			require.Equal(t, "c", returned.CallID)
			require.Equal(t, tc.status, returned.Status)
			require.Equal(t, "m", answered.ModelCallID)
			if end.Error.OK {
				require.Equal(t, answered.Error.V.Code, end.Error.V.Code, "one end, one code")
			}
			require.True(t, answered.Error.OK)
			require.Equal(t, []string{"theirs"}, other.OpenCalls())

			n := len(log.events)
			require.NoError(t, a.Finish(t.Context(), down, nil), "it has ended")
			require.NoError(t, r.Agent("nobody").Finish(t.Context(), nil, nil))
			require.Len(t, log.events, n)
		})
	}
	p := &AgentEnded{}
	r, _ := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
	require.NoError(t, beginAgent(t, r, "a").Finish(t.Context(), nil, p))
	require.Zero(t, *p, "it is not changed")
	require.ErrorIs(t, (*Agent)(nil).Finish(t.Context(), nil, nil), ErrZeroValue)
	require.ErrorIs(t, (*Run)(nil).Finish(t.Context(), nil), ErrZeroValue)
}

func TestFinishEndsTheRunAsItWent(t *testing.T) {
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("stop pressed"))
	late, done := context.WithTimeoutCause(t.Context(), 0, errors.New("no time left"))
	defer done()
	for _, tc := range []struct {
		ctx  context.Context
		err  error
		want Payload
	}{
		{t.Context(), nil, &RunCompleted{}},
		{t.Context(), errors.New("down"), &RunFailed{Error: Some(ErrorInfo{Message: "down"})}},
		{t.Context(), context.Canceled, &RunCancelled{Reason: "context canceled"}},
		{stopped, context.Cause(stopped), &RunCancelled{Reason: "stop pressed"}},
		{late, context.Cause(late), &RunFailed{Error: Some(ErrorInfo{Code: "deadline_exceeded", Message: "no time left"})}},
		{context.WithoutCancel(stopped), context.Cause(stopped), &RunFailed{Error: Some(ErrorInfo{Message: "stop pressed"})}},
	} {
		r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
		a := beginAgent(t, r, "a")
		c, err := a.Call(t.Context(), &ToolCalled{ToolID: "t"})
		require.NoError(t, err)
		sub := c.Agent("sub")
		require.NoError(t, sub.Emit(t.Context(), &AgentStarted{}))
		require.NoError(t, r.Finish(tc.ctx, tc.err))
		require.Equal(t, tc.want, log.last(t).Payload)
		var ended []string
		for _, ev := range log.events {
			if ev.Kind() == KindAgentEnded {
				ended = append(ended, ev.AgentID)
			}
		}
		require.Equal(t, []string{"sub", "a"}, ended)
		n := len(log.events)
		require.NoError(t, r.Finish(t.Context(), tc.err), "it has ended")
		require.Len(t, log.events, n)
	}
}

// Agents that a log knows by their node or span alone are finished under that name.
func TestFinishEndsAgentsWithoutAnID(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
	require.NoError(t, r.With(Scope{NodeID: "n", NodeRunID: "n#1"}).Emit(t.Context(), &AgentStarted{}))
	_, err := r.Record(t.Context(), Event{SpanID: "s1", Payload: &AgentStarted{}})
	require.NoError(t, err)
	require.NoError(t, r.Finish(t.Context(), nil))
	s := fold(t, log.events...)
	require.Len(t, s.Agents, 2)
	require.True(t, s.Agents["n#1"].Ended)
	require.True(t, s.Agents["s1"].Ended)
}

// Open calls of agents that are not open are closed, too.
func TestFinishClosesCallsOfAgentsThatAreNotOpen(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
	ended := beginAgent(t, r, "ended")
	node := r.With(Scope{NodeID: "n", NodeRunID: "n#1"})
	for _, emit := range []func(context.Context, Payload) error{ended.Emit, node.Agent("inNode").Emit, node.Emit, r.Emit} {
		require.NoError(t, emit(t.Context(), &ToolCalled{CallID: "c", ToolID: "t"}))
		require.NoError(t, emit(t.Context(), &ModelCalled{ModelCallID: "m"}))
	}
	require.NoError(t, ended.Emit(t.Context(), &AgentEnded{Outcome: OutcomePartial}))
	view := r.State().Agents[0]
	require.Equal(t, []string{"c"}, view.OpenCalls)
	require.Equal(t, []string{"m"}, view.OpenModelCalls)
	require.NoError(t, node.Finish(t.Context(), nil))
	s := fold(t, log.events...)
	require.Empty(t, s.OpenCalls)
	require.Empty(t, s.OpenModelCalls)
	require.Equal(t, RunStatusCompleted, s.Status)
}

// Finish, which is several events, lets nothing begin between them.
func TestNothingBeginsWhileARunFinishes(t *testing.T) {
	var refused []*RuleError
	guarded := true
	r, log := startRun(t, EmitterOptions{
		Lifecycle: LifecycleDerived,
		Follow: func(ev Event) []Event {
			if ev.Kind() == KindAgentEnded {
				return []Event{{AgentID: "next", Payload: &AgentStarted{}}, {Payload: &NodeStarted{}, Scope: Scope{NodeID: "n"}}, {Payload: &TextCompleted{Text: "bye"}}}
			}
			return nil
		},
		Guard: func(ev Event) *RuleError {
			if guarded && ev.Kind() == KindRunCompleted {
				return &RuleError{Rule: "not-yet"}
			}
			return nil
		},
		OnViolation: func(v *RuleError) { refused = append(refused, v) },
	})
	beginAgent(t, r, "a")
	require.ErrorContains(t, r.Finish(t.Context(), nil), "not-yet")
	require.Len(t, refused, 3)
	for _, v := range refused[:2] {
		require.Equal(t, RuleTerminalLast, v.Rule)
		require.Equal(t, "ending", v.State)
	}
	require.IsType(t, &TextCompleted{}, log.last(t).Payload)
	require.False(t, r.Agent("next").Open())

	beginAgent(t, r, "b") // the run has not ended
	guarded = false
	require.NoError(t, r.Finish(t.Context(), nil))
	require.IsType(t, &RunCompleted{}, log.last(t).Payload)
}

func TestASinkCannotFinishItsRun(t *testing.T) {
	var r *Run
	var err error
	em, _ := NewEmitter(EmitterOptions{Lifecycle: LifecycleDerived, Sinks: []Sink{SinkFunc(func(ctx context.Context, _ Event) error {
		err = r.Finish(ctx, nil)
		return nil
	})}})
	r, _ = em.Run("r")
	beginAgent(t, r, "a")
	require.ErrorIs(t, err, ErrReentrant)
	beginAgent(t, r, "b")
}

// A deadError is an error whose methods panic with a nil pointer.
type deadError struct{ text string }

func (e *deadError) Error() string { return e.text }
func (e *deadError) Unwrap() error { return errors.New(e.text) }

// An error whose methods panic is recorded by its type: a log must not stop the tool.
func TestErrorsWhoseMethodsPanic(t *testing.T) {
	var bad *deadError
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
	a := beginAgent(t, r, "a")
	_, err := a.Do(t.Context(), &ToolCalled{ToolID: "t"}, func(context.Context) (JSON, error) { return "", bad })
	require.Same(t, bad, err)
	require.Equal(t, "*agentevents.deadError", log.last(t).Payload.(*ToolReturned).Error.V.Message)
	_, err = WrapTool("u", func(context.Context, string) (int, error) { return 1, bad })(ContextWithAgent(t.Context(), a), "x")
	require.Same(t, bad, err)
	m, err := a.Model(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, m.Fail(t.Context(), bad))
	require.NoError(t, r.Finish(t.Context(), bad))
	require.Equal(t, "*agentevents.deadError", log.last(t).Payload.(*RunFailed).Error.V.Message)
}

// A run that its budget stopped has failed, whichever error of the cancelled context it is
// finished with; another cause is a cancellation.
func TestFinishAfterABudget(t *testing.T) {
	over := &BudgetError{Exceeded: BudgetExceeded{Budget: "cost", Limit: 1, Actual: 1.5}, Err: errors.New("the program's own")}
	for name, c := range map[string]struct {
		cause error
		err   func(context.Context) error
		want  Kind
	}{
		"the context's error":        {over, context.Context.Err, KindRunFailed},
		"its cause":                  {over, context.Cause, KindRunFailed},
		"an error that wraps it":     {over, func(ctx context.Context) error { return fmt.Errorf("model: %w", ctx.Err()) }, KindRunFailed},
		"the budget's error alone":   {nil, func(context.Context) error { return over }, KindRunFailed},
		"a wrapped cause":            {fmt.Errorf("stop: %w", over), context.Context.Err, KindRunFailed},
		"another error, then budget": {over, func(context.Context) error { return errors.New("disk full") }, KindRunFailed},
		"a person's cancellation":    {errors.New("stop"), context.Context.Err, KindRunCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			r, log := startRun(t, EmitterOptions{})
			ctx, cancel := context.WithCancelCause(t.Context())
			a := r.Agent("a")
			require.NoError(t, a.Emit(ctx, &AgentStarted{}))
			_, err := a.Call(ctx, &ToolCalled{ToolID: "t"})
			require.NoError(t, err)
			cancel(c.cause)
			require.NoError(t, r.Finish(ctx, c.err(ctx)))
			last := log.events[len(log.events)-1]
			require.Equal(t, c.want, last.Kind())
			if name == "another error, then budget" {
				require.Equal(t, "disk full", last.Payload.(*RunFailed).Error.V.Message)
				return
			}
			for _, ev := range log.events {
				var got Opt[ErrorInfo]
				switch p := ev.Payload.(type) {
				case *ToolReturned:
					require.Equal(t, ToolStatusCancelled, p.Status)
					got = p.Error
				case *AgentEnded:
					require.Equal(t, OutcomeAborted, p.Outcome)
					got = p.Error
				case *RunFailed:
					got = p.Error
				default:
					continue
				}
				if c.want == KindRunFailed {
					require.Equal(t, ErrorInfo{Code: "budget_exceeded", Message: `budget "cost" exceeded: 1.5 used of 1`}, got.V)
				}
			}
		})
	}
	require.ErrorIs(t, over, over.Err)
}

// However a function ends, its deferred methods record it, and a panic goes on.
func TestFinishDeferredOnEachWayOut(t *testing.T) {
	down := errors.New("down")
	for _, tc := range []struct {
		name    string
		work    func() error
		panics  any
		run     Kind
		message string // of the ends
		code    string
		outcome AgentOutcome
	}{
		{"good", func() error { return nil }, nil, KindRunCompleted, "", "", OutcomeConverged},
		{"error", func() error { return down }, nil, KindRunFailed, "down", "", OutcomePartial},
		{"cancelled", func() error { return context.Canceled }, nil, KindRunCancelled, "context canceled", "", OutcomePartial},
		{"panic", func() error { panic("fire") }, "fire", KindRunFailed, "panic: fire", "panic", ""},
		{"panic with an error", func() error { panic(down) }, down, KindRunFailed, "panic: down", "panic", ""},
		{"end of the goroutine", func() error { runtime.Goexit(); return nil }, nil, KindRunFailed, "the work ended its goroutine", "", ""},
		{"a panic that is put out", func() error {
			defer func() { _ = recover() }()
			panic("fire")
		}, nil, KindRunCompleted, "", "", OutcomeConverged},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
			work := func() (err error) {
				defer r.FinishDeferred(t.Context(), &err)
				a := beginAgent(t, r, "a")
				end := &AgentEnded{Outcome: cmp.Or(tc.outcome, OutcomePartial)}
				defer a.FinishDeferred(t.Context(), &err, end)
				end.Result = "half"
				return tc.work()
			}
			passed := make(chan any, 1)
			go func() {
				defer func() { passed <- recover() }()
				_ = work()
			}()
			require.Equal(t, tc.panics, <-passed)
			ev := log.last(t)
			require.Equal(t, tc.run, ev.Kind())
			switch p := ev.Payload.(type) {
			case *RunFailed:
				require.Equal(t, ErrorInfo{Message: tc.message, Code: tc.code}, p.Error.V)
			case *RunCancelled:
				require.Equal(t, tc.message, p.Reason)
			}
			end, ok := log.events[len(log.events)-2].Payload.(*AgentEnded)
			require.True(t, ok)
			require.Equal(t, []any{tc.outcome, "half"}, []any{end.Outcome, end.Result})
			if tc.outcome == "" {
				require.Equal(t, ErrorInfo{Message: tc.message, Code: tc.code}, end.Error.V)
			}
		})
	}
}

// A function that Goexit's deferred functions call returns as ever, and so does one that a
// panic's deferred functions call.
func TestFinishDeferredBelowADeferredFunction(t *testing.T) {
	for name, out := range map[string]func(){"Goexit": runtime.Goexit, "panic": func() { panic("fire") }} {
		t.Run(name, func(t *testing.T) {
			r, log := startRun(t, EmitterOptions{})
			work := func() { defer r.FinishDeferred(t.Context(), nil) }
			done := make(chan bool)
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				defer func() { work() }()
				out()
			}()
			<-done
			last := log.last(t)
			require.Equal(t, KindRunCompleted, last.Kind())
		})
	}
}

// The deferred methods of handles of nothing let a panic pass.
func TestFinishDeferredOfNothing(t *testing.T) {
	var r *Run
	var a *Agent
	require.PanicsWithValue(t, "fire", func() {
		defer r.FinishDeferred(t.Context(), nil)
		defer a.FinishDeferred(t.Context(), nil, nil)
		panic("fire")
	})
}
