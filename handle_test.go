package agentevents

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestToStopsAtTheFirstMoveThatIsRefusedAndListsTheLegalOnes(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict})
	a := beginAgent(t, r, "a")
	err := a.To(t.Context(), StatusToolCall, StatusToolResult, StatusThinking, StatusToolCall)
	var broken *RuleError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, RuleTransitionLegal, broken.Rule)
	require.Equal(t, "a", broken.AgentID)
	require.Equal(t, "tool_result", broken.State)
	require.Contains(t, broken.Detail, "legal: response")
	require.Contains(t, err.Error(), "legal: response")
	require.Len(t, log.events, 3)

	require.NoError(t, a.To(t.Context()))
	beginAgent(t, r, "b", StatusFailed)
	err = r.Agent("b").To(t.Context(), StatusThinking)
	require.ErrorAs(t, err, &broken)
	require.Equal(t, RuleAgentEndedFinal, broken.Rule)

	relaxed, _ := startRun(t, EmitterOptions{Lifecycle: LifecycleRelaxed})
	require.NoError(t, beginAgent(t, relaxed, "a").To(t.Context(), StatusResponse, StatusConverged, StatusThinking))
}

func TestCallReturnAndFailRecordOneEventEach(t *testing.T) {
	at := noon()
	r, log := startRun(t, EmitterOptions{Clock: func() time.Time { return at }})
	a := beginAgent(t, r, "a", StatusToolCall)
	c, err := a.Call(t.Context(), &ToolCalled{ToolID: "grep", Arguments: `{"q": 1}`})
	require.NoError(t, err)
	require.Equal(t, &ToolCalled{CallID: c.ID, ToolID: "grep", Arguments: `{"q":1}`}, log.last(t).Payload)
	other, err := a.Call(t.Context(), &ToolCalled{ToolID: "ls"})
	require.NoError(t, err)
	require.NotEqual(t, c.ID, other.ID, "calls overlap")

	at = at.Add(1500 * time.Millisecond)
	require.NoError(t, c.Return(t.Context(), `"ok"`))
	require.Equal(t, &ToolReturned{CallID: c.ID, ToolID: "grep", Status: ToolStatusOK, Result: `"ok"`, Duration: Some(1500 * time.Millisecond)}, log.last(t).Payload)
	require.Error(t, c.Return(t.Context(), `"again"`))

	at = at.Add(-time.Hour) // a clock that goes back gives no negative duration
	require.NoError(t, other.Fail(t.Context(), errors.New("no such directory")))
	require.Equal(t, &ToolReturned{CallID: other.ID, ToolID: "ls", Status: ToolStatusError, Error: Some(ErrorInfo{Message: "no such directory"}), Duration: Some(time.Duration(0))}, log.last(t).Payload)

	for _, tc := range []struct {
		err    error
		status ToolStatus
	}{{context.Canceled, ToolStatusCancelled}, {fmt.Errorf("asked: %w", context.Canceled), ToolStatusCancelled}, {context.DeadlineExceeded, ToolStatusError}, {nil, ToolStatusError}} {
		c, err := a.Call(t.Context(), &ToolCalled{ToolID: "t"})
		require.NoError(t, err)
		require.NoError(t, c.Fail(t.Context(), tc.err))
		got := log.last(t).Payload.(*ToolReturned)
		require.Equal(t, tc.status, got.Status)
		require.NotEmpty(t, got.Error.V.Message)
	}

	c, err = a.Call(t.Context(), &ToolCalled{ToolID: "t\xff"})
	require.Error(t, err)
	requireDead(t, log, c, "call")
}

// requireDead asserts that a handle is safe to use and records nothing.
func requireDead(t *testing.T, log *sinkLog, c *Call, name string) {
	t.Helper()
	n := len(log.events)
	require.NotNil(t, c)
	require.False(t, c.Recorded())
	require.NoError(t, c.Return(t.Context(), `1`), name)
	require.NoError(t, c.Fail(t.Context(), errors.New("x")), name)
	require.NoError(t, c.End(t.Context(), nil), name)
	again, err := c.Retry(t.Context())
	require.NoError(t, err, name)
	require.False(t, again.Recorded())
	require.Len(t, log.events, n)
}

// TestCallKeepsTheProvidersFields: call ids, attempts and transports of a model's call are
// on the log as they were given, and the payload stays the caller's.
func TestCallKeepsTheProvidersFields(t *testing.T) {
	r, log := startRun(t, EmitterOptions{})
	a := beginAgent(t, r, "a", StatusToolCall)
	given := &ToolCalled{CallID: "toolu_1", ToolID: "Read", Attempt: Some(2), RetryOf: "toolu_0", Transport: TransportMCP, Principal: "ann", Arguments: `{"p":1}`}
	want := *given
	c, err := a.Call(t.Context(), given)
	require.NoError(t, err)
	require.True(t, c.Recorded())
	require.Equal(t, &want, log.last(t).Payload)
	require.Equal(t, want, *given)
	require.Equal(t, "toolu_1", c.ID)

	again, err := c.Retry(t.Context())
	require.NoError(t, err)
	require.Equal(t, &ToolCalled{CallID: again.ID, ToolID: "Read", Attempt: Some(3), RetryOf: "toolu_1", Arguments: `{"p":1}`}, log.last(t).Payload)

	require.NoError(t, c.End(t.Context(), &ToolReturned{Status: ToolStatusForbidden, Result: `{"isError":true}`, Error: Some(ErrorInfo{Code: "denied", Message: "no", Retryable: Some(false)})}))
	got := log.last(t).Payload.(*ToolReturned)
	require.True(t, got.Duration.OK)
	require.Equal(t, &ToolReturned{
		CallID: "toolu_1", ToolID: "Read", Status: ToolStatusForbidden, Result: `{"isError":true}`, Duration: got.Duration,
		Error: Some(ErrorInfo{Code: "denied", Message: "no", Retryable: Some(false)}),
	}, got)

	unnamed := &ToolCalled{ToolID: "Read"}
	c, err = a.Call(t.Context(), unnamed)
	require.NoError(t, err)
	require.NotEmpty(t, c.ID)
	require.Empty(t, unnamed.CallID, "the caller's payload is not changed")
}

func TestFailTells(t *testing.T) {
	quota := errors.New("quota")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(quota)
	late, stop := context.WithTimeoutCause(t.Context(), 0, quota)
	defer stop()
	budget, stop := context.WithTimeoutCause(t.Context(), 0, &BudgetError{Exceeded: BudgetExceeded{Budget: "seconds", Limit: 1, Actual: 2}})
	defer stop()
	plain, stop := context.WithCancel(t.Context())
	stop()
	broken, breakOff := context.WithCancelCause(t.Context())
	breakOff((*ToolError)(nil))
	for name, tc := range map[string]struct {
		ctx  context.Context
		err  error
		want ToolReturned
	}{
		"the cancellation":             {cancelled, context.Canceled, ToolReturned{Status: ToolStatusCancelled, Error: Some(ErrorInfo{Message: "quota"})}},
		"what was cancelled":           {cancelled, fmt.Errorf("read: %w", context.Canceled), ToolReturned{Status: ToolStatusCancelled, Error: Some(ErrorInfo{Message: "read: context canceled: quota"})}},
		"the cause is told":            {cancelled, fmt.Errorf("%w: no quota", context.Canceled), ToolReturned{Status: ToolStatusCancelled, Error: Some(ErrorInfo{Message: "context canceled: no quota"})}},
		"a cancellation without cause": {plain, context.Canceled, ToolReturned{Status: ToolStatusCancelled, Error: Some(ErrorInfo{Message: "context canceled"})}},
		"another context's":            {t.Context(), context.Canceled, ToolReturned{Status: ToolStatusCancelled, Error: Some(ErrorInfo{Message: "context canceled"})}},
		"a deadline with a cause":      {late, context.DeadlineExceeded, ToolReturned{Status: ToolStatusError, Error: Some(ErrorInfo{Code: "deadline_exceeded", Message: "quota"})}},
		"the cause of a deadline":      {late, fmt.Errorf("read: %w", quota), ToolReturned{Status: ToolStatusError, Error: Some(ErrorInfo{Code: "deadline_exceeded", Message: "read: quota"})}},
		"a budget of time":             {budget, context.DeadlineExceeded, ToolReturned{Status: ToolStatusCancelled, Error: Some(ErrorInfo{Code: "budget_exceeded", Message: context.Cause(budget).Error()})}},
		"a cause that panics":          {broken, context.Canceled, ToolReturned{Status: ToolStatusError, Error: Some(ErrorInfo{Message: "*errors.errorString"})}},
		"a cause of the cancellation":  {cancelled, fmt.Errorf("read: %w", quota), ToolReturned{Status: ToolStatusCancelled, Error: Some(ErrorInfo{Message: "read: quota"})}},
		"another error meanwhile":      {cancelled, errors.New("eof"), ToolReturned{Status: ToolStatusError, Error: Some(ErrorInfo{Message: "eof"})}},
		"a deadline":                   {t.Context(), context.DeadlineExceeded, ToolReturned{Status: ToolStatusError, Error: Some(ErrorInfo{Code: "deadline_exceeded", Message: "context deadline exceeded"})}},
		"a panic":                      {t.Context(), &PanicError{Value: "boom"}, ToolReturned{Status: ToolStatusError, Error: Some(ErrorInfo{Code: "panic", Message: "panic: boom"})}},
		"a tool's own words": {
			t.Context(), fmt.Errorf("mcp: %w", &ToolError{Status: ToolStatusRateLimited, Code: "429", Retryable: Some(true), Result: `{"isError":true}`, Err: quota}),
			ToolReturned{Status: ToolStatusRateLimited, Result: `{"isError":true}`, Error: Some(ErrorInfo{Code: "429", Message: "mcp: quota", Retryable: Some(true)})},
		},
		"a tool without a cause": {t.Context(), &ToolError{Status: ToolStatusForbidden}, ToolReturned{Status: ToolStatusForbidden, Error: Some(ErrorInfo{Message: "forbidden"})}},
		"an empty error":         {t.Context(), errors.New(""), ToolReturned{Status: ToolStatusError, Error: Some(ErrorInfo{Message: "failed"})}},
		"no error":               {t.Context(), nil, ToolReturned{Status: ToolStatusError, Error: Some(ErrorInfo{Message: "failed"})}},
	} {
		t.Run(name, func(t *testing.T) {
			r, log := startRun(t, EmitterOptions{})
			c, err := beginAgent(t, r, "a", StatusToolCall).Call(t.Context(), &ToolCalled{ToolID: "t"})
			require.NoError(t, err)
			require.NoError(t, c.Fail(tc.ctx, tc.err))
			got := *log.last(t).Payload.(*ToolReturned)
			tc.want.CallID, tc.want.ToolID, tc.want.Duration = c.ID, "t", got.Duration
			require.Equal(t, tc.want, got)
		})
	}
}

// A cancellation is recorded with its cause, whoever records it.
func TestCauseOfACancellation(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
	ctx, cancel := context.WithCancelCause(t.Context())
	a := r.Agent("a")
	require.NoError(t, a.Emit(ctx, &AgentStarted{}))
	_, err := a.Do(ctx, &ToolCalled{ToolID: "t"}, func(ctx context.Context) (JSON, error) {
		cancel(errors.New("the person pressed stop"))
		return "", ctx.Err()
	})
	require.Equal(t, context.Canceled, err, "the caller gets the tool's own error")
	require.Equal(t, "the person pressed stop", log.last(t).Payload.(*ToolReturned).Error.V.Message)
	call, err := a.Model(ctx, &ModelCalled{})
	require.NoError(t, err)
	require.NoError(t, call.Fail(ctx, ctx.Err()))
	require.Equal(t, "the person pressed stop", log.last(t).Payload.(*ModelReturned).Error.V.Message)
	require.NoError(t, r.Finish(ctx, ctx.Err()))
	require.Equal(t, "the person pressed stop", log.last(t).Payload.(*RunCancelled).Reason)
	ended := log.events[len(log.events)-2].Payload.(*AgentEnded)
	require.Equal(t, OutcomeAborted, ended.Outcome)
	require.Equal(t, "the person pressed stop", ended.Error.V.Message)
}

// A handle that is found by its id knows when the call began.
func TestOpenCallKnowsItsStart(t *testing.T) {
	now := time.Now()
	r, log := startRun(t, EmitterOptions{Clock: func() time.Time { now = now.Add(time.Second); return now }})
	a := beginAgent(t, r, "a", StatusToolCall)
	recordOf(t, a, call("c1"))
	require.NoError(t, a.OpenCall("c1").Return(t.Context(), `1`))
	require.Positive(t, log.last(t).Payload.(*ToolReturned).Duration.V)
	require.NoError(t, a.Emit(t.Context(), &ModelCalled{ModelCallID: "m1"}))
	require.NoError(t, a.OpenModelCall("m1").Return(t.Context(), nil))
	require.Positive(t, log.last(t).Payload.(*ModelReturned).Duration.V)
}

// TestOpenCallAfterAResume: the resumed run gives the handles of everything that was open.
func TestOpenCallAfterAResume(t *testing.T) {
	r, log := startRun(t, EmitterOptions{})
	_, err := beginAgent(t, r, "a", StatusToolCall).Call(t.Context(), &ToolCalled{CallID: "c1", ToolID: "Read"})
	require.NoError(t, err)
	s := log.snapshot(t)
	e, log2 := startEmitter(t, EmitterOptions{})
	again, err := e.Resume(s)
	require.NoError(t, err)
	c := again.Agent("a").OpenCall("c1")
	require.True(t, c.Recorded())
	require.Equal(t, "Read", c.ToolID)
	require.NoError(t, c.End(t.Context(), &ToolReturned{Status: ToolStatusInterrupted}))
	require.Equal(t, &ToolReturned{CallID: "c1", ToolID: "Read", Status: ToolStatusInterrupted}, log2.last(t).Payload, "nobody knows how long it took")
	requireDead(t, log2, again.Agent("a").OpenCall("c1"), "closed")

	node := again.With(Scope{NodeRunID: "run of a node"}).Agent("")
	recordOf(t, node, call("c2"))
	require.Equal(t, []string{"c2"}, node.OpenCalls())
	require.True(t, node.OpenCall("c2").Recorded(), "the run of a node stands for its agent")

	asked := false
	r, _ = startRun(t, EmitterOptions{Guard: func(ev Event) *RuleError {
		asked = !AgentFromContext(t.Context()).OpenCall("c1").Recorded() && !r.Agent("a").OpenCall("c1").Recorded()
		return nil
	}})
	beginAgent(t, r, "a")
	require.True(t, asked, "hooks and sinks may ask: no lock is waited for")
	requireDead(t, log2, again.Agent("b").OpenCall("c1"), "another agent's")
}

// TestToGoesOnAfterASinkError: the transition was recorded, so the path goes on.
func TestToGoesOnAfterASinkError(t *testing.T) {
	hiccups := 2
	hiccup := errors.New("hiccup")
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Sinks: []Sink{SinkFunc(func(context.Context, Event) error {
		if hiccups--; hiccups == 0 {
			return hiccup
		}
		return nil
	})}})
	a := beginAgent(t, r, "a")
	require.ErrorIs(t, a.To(t.Context(), StatusToolCall, StatusToolResult, StatusResponse), hiccup)
	require.Len(t, log.events, 4)
	require.Error(t, a.To(t.Context(), StatusConverged, StatusReflect), "a refusal stops it")
	require.Len(t, log.events, 4)
}

// TestContextCarriesAgentAndCall: a tool finds who called it.
func TestContextCarriesAgentAndCall(t *testing.T) {
	r, log := startRun(t, EmitterOptions{})
	a := beginAgent(t, r, "a", StatusToolCall)
	ctx := t.Context()
	require.Nil(t, AgentFromContext(ctx))
	require.Nil(t, CallFromContext(ctx))
	require.NoError(t, CallFromContext(ctx).Return(ctx, ""), "no call is safe to use")
	require.ErrorIs(t, AgentFromContext(ctx).Emit(ctx, &TextDelta{}), ErrZeroValue)
	_, err := a.Do(ctx, &ToolCalled{CallID: "c1", ToolID: "spawn"}, func(ctx context.Context) (JSON, error) {
		require.Same(t, a, AgentFromContext(ctx))
		sub := CallFromContext(ctx).Agent("b")
		ctx = ContextWithAgent(ctx, sub)
		require.Same(t, sub, AgentFromContext(ctx))
		require.Nil(t, CallFromContext(ctx), "the sub-agent has no call yet")
		return `1`, sub.Emit(ctx, &AgentStarted{})
	})
	require.NoError(t, err)
	require.Equal(t, "c1", log.events[3].ParentCallID)
}

// TestRecordReturnsTheEvent: later events can name it.
func TestRecordReturnsTheEvent(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Sinks: []Sink{SinkFunc(func(context.Context, Event) error { return errors.New("full") })}})
	ev, err := r.Record(t.Context(), Event{Actor: "user", Payload: &TaskAssigned{Goal: "password=tiger-7421-lily"}})
	require.ErrorAs(t, err, new(*SinkError))
	require.Equal(t, log.events[0], ev)
	require.NotEmpty(t, ev.ID)
	require.True(t, ev.Marks.Has(MarkRedacted))
	ev, err = r.Agent("a").Record(t.Context(), Event{Payload: &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK}})
	require.ErrorAs(t, err, new(*RuleError))
	require.Zero(t, ev)
}

func TestCallIsUsableWhenItWasRecordedAndASinkFailed(t *testing.T) {
	var broken error
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Sinks: []Sink{SinkFunc(func(context.Context, Event) error { return broken })}})
	a := beginAgent(t, r, "a", StatusToolCall)
	log.forget()
	broken = errors.New("disk full")
	c, err := a.Call(t.Context(), &ToolCalled{ToolID: "t"})
	require.ErrorIs(t, err, broken)
	require.NotNil(t, c)
	require.ErrorIs(t, c.Return(t.Context(), ""), broken)
	ran := false
	_, err = a.Do(t.Context(), &ToolCalled{ToolID: "t"}, func(context.Context) (JSON, error) { ran = true; return "1", nil })
	require.ErrorIs(t, err, broken)
	require.True(t, ran)
	require.Equal(t, []Kind{KindToolCalled, KindToolReturned, KindToolCalled, KindToolReturned}, log.kinds())
}

func TestDoRecordsCallAndReturn(t *testing.T) {
	type key struct{}
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict})
	a := beginAgent(t, r, "a", StatusToolCall)
	log.forget()
	ctx := context.WithValue(t.Context(), key{}, "v")
	result, err := a.Do(ctx, &ToolCalled{ToolID: "t", Arguments: `[1]`}, func(ctx context.Context) (JSON, error) {
		require.Equal(t, "v", ctx.Value(key{}))
		return `{"n":2}`, nil
	})
	require.NoError(t, err)
	require.Equal(t, JSON(`{"n":2}`), result)
	require.Equal(t, []Kind{KindToolCalled, KindToolReturned}, log.kinds())
	require.Equal(t, ToolStatusOK, log.last(t).Payload.(*ToolReturned).Status)
}

func TestDoRecordsAnErrorAndReturnsIt(t *testing.T) {
	r, log := startRun(t, EmitterOptions{})
	cause := errors.New("404")
	result, err := beginAgent(t, r, "a", StatusToolCall).Do(t.Context(), &ToolCalled{ToolID: "t"}, func(context.Context) (JSON, error) { return `"partial"`, cause })
	require.ErrorIs(t, err, cause)
	require.Equal(t, JSON(`"partial"`), result)
	got := log.last(t).Payload.(*ToolReturned)
	require.Equal(t, ToolStatusError, got.Status)
	require.Equal(t, "404", got.Error.V.Message)
}

func TestDoRecordsACancelledContextAsCancelled(t *testing.T) {
	r, log := startRun(t, EmitterOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := beginAgent(t, r, "a", StatusToolCall).Do(ctx, &ToolCalled{ToolID: "t"}, func(ctx context.Context) (JSON, error) {
		cancel()
		return "", ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, ToolStatusCancelled, log.last(t).Payload.(*ToolReturned).Status)
}

func TestDoRecordsAPanicAndLetsItGoOn(t *testing.T) {
	r, log := startRun(t, EmitterOptions{})
	require.PanicsWithValue(t, "boom", func() {
		_, _ = beginAgent(t, r, "a", StatusToolCall).Do(t.Context(), &ToolCalled{ToolID: "t"}, func(context.Context) (JSON, error) { panic("boom") })
	})
	require.Equal(t, Some(ErrorInfo{Code: "panic", Message: "panic: boom"}), log.last(t).Payload.(*ToolReturned).Error)
	require.NoError(t, r.Emit(t.Context(), &TextDelta{}), "no lock is left")
}

// A rule of the host may refuse the result. The call does not stay open for that, and the tool's
// caller has the result.
func TestDoClosesACallWhoseResultIsRefused(t *testing.T) {
	r, log := startRun(t, EmitterOptions{OnViolation: func(*RuleError) {}, Guard: func(ev Event) *RuleError {
		if p, ok := ev.Payload.(*ToolReturned); ok && p.Status == ToolStatusOK {
			return &RuleError{Rule: "no-results"}
		}
		return nil
	}})
	a := beginAgent(t, r, "a")
	result, err := a.Do(t.Context(), &ToolCalled{ToolID: "t"}, func(context.Context) (JSON, error) { return `1`, nil })
	require.Equal(t, JSON(`1`), result)
	requireRule(t, err, "no-results")
	require.Equal(t, ToolStatusError, log.last(t).Payload.(*ToolReturned).Status)
	require.Empty(t, a.OpenCalls())
}

// A return after the end of the run is refused once: no failure takes its place.
func TestDoIsRefusedOnce(t *testing.T) {
	var told []*RuleError
	r, _ := startRun(t, EmitterOptions{OnViolation: func(err *RuleError) { told = append(told, err) }})
	a := beginAgent(t, r, "a")
	_, err := a.Do(t.Context(), &ToolCalled{ToolID: "t"}, func(context.Context) (JSON, error) { return `1`, r.Finish(t.Context(), nil) })
	require.Error(t, err)
	require.Len(t, told, 1)
}

// A log must not stop the tool; a rule of the host may.
func TestDoRunsTheToolUnlessTheHostForbidsIt(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Guard: func(ev Event) *RuleError {
		if p, ok := ev.Payload.(*ToolCalled); ok && p.ToolID == "rm" {
			return &RuleError{Rule: "tool-allowed", Detail: "it is not on the list"}
		}
		return nil
	}})
	_, err := r.Agent("a").Do(t.Context(), &ToolCalled{ToolID: "rm"}, func(context.Context) (JSON, error) { panic("ran") })
	var rule *RuleError
	require.ErrorAs(t, err, &rule)
	require.EqualValues(t, "tool-allowed", rule.Rule, "nor when the log would refuse the call, too")
	a := beginAgent(t, r, "a")
	require.NoError(t, a.Emit(t.Context(), &AgentEnded{}))
	result, err := a.Do(t.Context(), &ToolCalled{ToolID: "t"}, func(ctx context.Context) (JSON, error) {
		require.False(t, CallFromContext(ctx).Recorded())
		return `1`, nil
	})
	require.Equal(t, JSON(`1`), result)
	require.ErrorAs(t, err, &rule)
	require.Equal(t, RuleAgentEndedFinal, rule.Rule)
	require.Len(t, log.events, 2)
	panics := func(context.Context) (JSON, error) { panic("ran") }
	_, err = a.Do(t.Context(), &ToolCalled{ToolID: "rm"}, panics)
	require.ErrorAs(t, err, &rule)
	require.EqualValues(t, "tool-allowed", rule.Rule, "of an agent that has ended, too")
	require.NoError(t, r.Close())
	_, err = a.Do(t.Context(), &ToolCalled{ToolID: "rm"}, panics)
	require.ErrorIs(t, err, ErrClosed, "the host could not be asked")
}

func TestSubAgentsNameTheirParentsOnTheirStartOnly(t *testing.T) {
	r, log := startRun(t, EmitterOptions{})
	a := beginAgent(t, r, "a", StatusToolCall)
	c, err := a.Call(t.Context(), &ToolCalled{ToolID: "spawn"})
	require.NoError(t, err)
	b, d := c.Agent("b"), a.Agent("d")
	for _, tc := range []struct {
		agent        *Agent
		parent, call string
	}{{b, "a", c.ID}, {d, "a", ""}, {b.Agent("e"), "b", ""}, {r.Agent("i"), "", ""}, {b.With(Scope{TaskID: "t"}).Agent("f"), "b", ""}} {
		require.NoError(t, tc.agent.Emit(t.Context(), &AgentStarted{}))
		ev := log.last(t)
		require.Equal(t, tc.agent.ID(), ev.AgentID)
		require.Equal(t, tc.parent, ev.ParentAgentID)
		require.Equal(t, tc.call, ev.ParentCallID)
		require.NoError(t, tc.agent.Emit(t.Context(), &TextDelta{}))
		require.Empty(t, log.last(t).ParentAgentID)
		require.Empty(t, log.last(t).ParentCallID)
	}
	require.NoError(t, errOf(c.Agent("g").Record(t.Context(), Event{Time: noon(), Payload: &AgentStarted{}})))
	require.Equal(t, "a", log.last(t).ParentAgentID, "Record of a start has it too")
	require.Equal(t, c.ID, log.last(t).ParentCallID)
	require.NoError(t, errOf(c.Agent("h").Record(t.Context(), Event{ParentAgentID: "x", Payload: &AgentStarted{}})))
	require.Equal(t, "x", log.last(t).ParentAgentID, "but keeps fields that are set")
}

func TestWithScopesEventsAndLeavesTheHandleAlone(t *testing.T) {
	r, log := startRun(t, EmitterOptions{})
	w := r.With(Scope{SessionID: "s", WorkflowID: "w"})
	p := w.With(Scope{Phase: "p", SessionID: "s2"})
	a := p.Agent("a")
	beginAgent(t, r, "a", StatusToolCall)
	n := a.With(Scope{NodeID: "n", NodeRunID: "nr", TaskID: "t"})
	for _, tc := range []struct {
		emit func(context.Context, Payload) error
		want Scope
	}{
		{r.Emit, Scope{}},
		{w.Emit, Scope{SessionID: "s", WorkflowID: "w"}},
		{p.Emit, Scope{SessionID: "s2", WorkflowID: "w", Phase: "p"}},
		{a.Emit, Scope{SessionID: "s2", WorkflowID: "w", Phase: "p"}},
		{n.Emit, Scope{SessionID: "s2", WorkflowID: "w", Phase: "p", NodeID: "n", NodeRunID: "nr", TaskID: "t"}},
	} {
		require.NoError(t, tc.emit(t.Context(), &TextDelta{}))
		require.Equal(t, tc.want, log.last(t).Scope)
	}
	c, err := n.Call(t.Context(), &ToolCalled{ToolID: "t"})
	require.NoError(t, err)
	require.NoError(t, c.Return(t.Context(), ""))
	require.Equal(t, "n", log.last(t).NodeID)
	require.NoError(t, c.Agent("sub").Emit(t.Context(), &AgentStarted{}))
	require.Equal(t, "n", log.last(t).NodeID)
}

func TestSameRunIDIsTheSameRun(t *testing.T) {
	e, log := startEmitter(t, EmitterOptions{})
	a, err := e.Run("r")
	require.NoError(t, err)
	b, err := e.Run("r")
	require.NoError(t, err)
	require.NoError(t, a.Emit(t.Context(), &TextDelta{}))
	require.NoError(t, b.Emit(t.Context(), &TextDelta{}))
	require.EqualValues(t, 1, log.last(t).Sequence)

	c, err := e.Run("")
	require.NoError(t, err)
	d, err := e.Run("")
	require.NoError(t, err)
	require.NotEqual(t, c.ID(), d.ID())
}

func TestMaxRunsBoundsOpenRunsAndAReleaseMakesRoom(t *testing.T) {
	e, log := startEmitter(t, EmitterOptions{MaxRuns: 2})
	a, err := e.Run("a")
	require.NoError(t, err)
	b, err := e.Run("b")
	require.NoError(t, err)
	_, err = e.Run("c")
	require.ErrorIs(t, err, ErrTooManyRuns)
	_, err = e.Run("a")
	require.NoError(t, err, "an open run is no new one")
	require.NoError(t, a.Emit(t.Context(), &RunCompleted{}))
	c, err := e.Run("c")
	require.NoError(t, err)
	require.NoError(t, b.Close())
	_, err = e.Run("d")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_ = log
	snapshot, err := foldSeq(log.all, FoldOptions{})
	require.NoError(t, err)
	_, err = e.Resume(snapshot[0])
	require.NoError(t, err)
	_, err = e.Resume(&RunSnapshot{RunState: RunState{RunID: "z"}})
	require.ErrorIs(t, err, ErrTooManyRuns, "Resume counts too")
}

func TestATerminalEventReleasesTheRun(t *testing.T) {
	for _, end := range []Payload{&RunCompleted{}, &RunFailed{}, &RunCancelled{}} {
		e, log := startEmitter(t, EmitterOptions{})
		r, err := e.Run("r")
		require.NoError(t, err)
		require.NoError(t, r.Emit(t.Context(), &RunStarted{}))
		require.NoError(t, r.Emit(t.Context(), end))
		_, err = e.Run("r")
		require.ErrorIs(t, err, ErrRunReleased)

		// The old handle still accepts the events that may follow the end.
		require.NoError(t, r.Emit(t.Context(), &UsageObserved{}))
		require.NoError(t, r.Emit(t.Context(), &AuditChecked{CheckpointID: "c", Result: AuditPass}))
		require.NoError(t, errOf(r.Record(t.Context(), Event{Marks: MarkLate, Payload: &TextDelta{Delta: "late"}})))
		require.NoError(t, r.Emit(t.Context(), &SessionCompleted{}))
		require.EqualValues(t, 5, log.last(t).Sequence)
		var broken *RuleError
		require.ErrorAs(t, r.Emit(t.Context(), &TextDelta{}), &broken)
		require.Equal(t, RuleTerminalLast, broken.Rule)

		require.NoError(t, r.Close())
		require.ErrorIs(t, r.Emit(t.Context(), &UsageObserved{}), ErrClosed)
	}
}

func TestCloseReleasesTheRunAndItsHandles(t *testing.T) {
	e, log := startEmitter(t, EmitterOptions{})
	r, err := e.Run("r")
	require.NoError(t, err)
	a := r.Agent("a")
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	require.ErrorIs(t, r.Emit(t.Context(), &TextDelta{}), ErrClosed)
	require.ErrorIs(t, a.Emit(t.Context(), &TextDelta{}), ErrClosed)
	_, err = e.Run("r")
	require.ErrorIs(t, err, ErrRunReleased)
	require.Empty(t, log.events)
}

func TestResumeGoesOnWhereTheSnapshotEnds(t *testing.T) {
	e, log := startEmitter(t, EmitterOptions{Lifecycle: LifecycleStrict})
	r, err := e.Run("r")
	require.NoError(t, err)
	a := r.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
	require.NoError(t, a.To(t.Context(), StatusToolCall))
	c, err := a.Call(t.Context(), &ToolCalled{ToolID: "t"})
	require.NoError(t, err)
	called := log.last(t)
	snapshot := log.snapshot(t)

	_, err = e.Resume(snapshot)
	require.Error(t, err, "the run is open")
	require.NoError(t, r.Close())

	r, err = e.Resume(snapshot)
	require.NoError(t, err)
	again, err := e.Run("r")
	require.NoError(t, err, "a resumed run is open")
	require.Error(t, again.Agent("a").Emit(t.Context(), &AgentStarted{}), "the agent is known")
	require.Error(t, again.Agent("a").Emit(t.Context(), &ToolCalled{CallID: c.ID, ToolID: "t"}), "the call is open")
	require.NoError(t, r.Agent("a").Emit(t.Context(), &ToolReturned{CallID: c.ID, ToolID: "t", Status: ToolStatusOK}))
	ev := log.last(t)
	require.EqualValues(t, 3, ev.Sequence)
	require.Equal(t, called.ID, ev.CausationID)
	require.Equal(t, Some(0), ev.Step)
	require.NoError(t, r.Agent("a").To(t.Context(), StatusToolResult))
	require.Empty(t, log.snapshot(t).Violations)

	// Over JSON, in another emitter. An open model call stays open, too.
	require.NoError(t, r.Agent("a").Emit(t.Context(), &ModelCalled{ModelCallID: "m"}))
	asked := log.last(t)
	text, err := log.snapshot(t).MarshalJSON()
	require.NoError(t, err)
	var stored RunSnapshot
	require.NoError(t, stored.UnmarshalJSON(text))
	e2, log2 := startEmitter(t, EmitterOptions{Lifecycle: LifecycleStrict})
	r, err = e2.Resume(&stored)
	require.NoError(t, err)
	require.NoError(t, r.Agent("a").To(t.Context(), StatusResponse))
	require.EqualValues(t, 6, log2.last(t).Sequence)
	require.Error(t, r.Agent("a").Emit(t.Context(), &ModelCalled{ModelCallID: "m"}), "the model call is open")
	require.NoError(t, r.Agent("a").Emit(t.Context(), &ModelReturned{ModelCallID: "m"}))
	require.Equal(t, asked.ID, log2.last(t).CausationID)

	_, err = e2.Resume(nil)
	require.Error(t, err)
	_, err = e2.Resume(&RunSnapshot{})
	require.Error(t, err)
}

func TestNilAndZeroValuesReturnErrors(t *testing.T) {
	ctx, p := t.Context(), &TextDelta{}
	check := func(e *Emitter, r *Run, a *Agent, c *Call, w *Writer, b *BufferedSink) {
		t.Helper()
		second := func(_ any, err error) error { return err }
		for i, err := range []error{
			second(e.Run("r")), second(e.Resume(&RunSnapshot{RunState: RunState{RunID: "r"}})), e.Flush(ctx), e.Close(ctx),
			r.Emit(ctx, p), errOf(r.Record(ctx, Event{Payload: p})), r.Close(), r.Agent("a").Emit(ctx, p), r.With(Scope{}).Emit(ctx, p),
			a.Emit(ctx, p), errOf(a.Record(ctx, Event{Payload: p})), a.To(ctx, StatusToolCall), second(a.Call(ctx, &ToolCalled{ToolID: "t"})), a.Agent("b").Emit(ctx, p), a.With(Scope{}).Emit(ctx, p),
			c.Agent("b").Emit(ctx, p),
			w.WriteEvent(ctx, numbered(0)), w.WriteLine(ctx, numbered(0), []byte("{}")), w.Flush(ctx), w.Close(),
			b.WriteEvent(ctx, numbered(0)), b.Flush(ctx), b.Close(),
			second(NewEmitter(EmitterOptions{Sinks: []Sink{w}})), second(NewEmitter(EmitterOptions{Sinks: []Sink{SkipReplayed(b)}})),
		} {
			require.ErrorIs(t, err, ErrZeroValue, i)
		}
		require.NoError(t, errors.Join(second(c.Retry(ctx)), c.Return(ctx, ""), c.Fail(ctx, nil)), "a call that is none records nothing")
		require.Empty(t, r.ID())
		require.Empty(t, a.ID())
		require.Zero(t, b.Dropped())
	}
	check(nil, nil, nil, nil, nil, nil)
	check(&Emitter{}, &Run{}, &Agent{}, &Call{}, &Writer{}, &BufferedSink{})
	require.ErrorIs(t, NewWriter(nil, WriterOptions{}).WriteEvent(ctx, numbered(0)), ErrZeroValue)
}

func TestANilContextIsTheBackground(t *testing.T) {
	var none context.Context
	behind := &sinkLog{}
	b := Buffered(behind, 4, OverflowBlock)
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Sinks: []Sink{b}})
	require.NoError(t, r.Emit(none, &TextDelta{}))
	_, err := beginAgent(t, r, "a", StatusToolCall).Do(none, &ToolCalled{ToolID: "t"}, func(ctx context.Context) (JSON, error) { return "", ctx.Err() })
	require.NoError(t, err)
	require.NoError(t, b.WriteEvent(none, numbered(5)))
	require.NoError(t, b.Flush(none))
	require.NoError(t, r.s.e.Flush(none))
	require.NoError(t, r.s.e.Close(none))
	require.Len(t, log.events, 5)
	require.Len(t, behind.events, 6)
	require.NoError(t, behind.ctx.Err())
}

func TestDoWithoutAFunctionRecordsNothing(t *testing.T) {
	r, log := startRun(t, EmitterOptions{})
	_, err := r.Agent("a").Do(t.Context(), &ToolCalled{ToolID: "t"}, nil)
	require.ErrorContains(t, err, "the function is nil")
	require.Empty(t, log.events)
}

// A call is closed by its handle whatever has become of its agent and its run.
func TestReturnsOfAnAgentAtRestAreLate(t *testing.T) {
	node := Scope{NodeID: "n", NodeRunID: "n#1"}
	for name, tc := range map[string]struct {
		start func(t *testing.T, r *Run) *Agent
		rest  func(ctx context.Context, r *Run, a *Agent) error
		late  bool
	}{
		"working": {func(t *testing.T, r *Run) *Agent { return beginAgent(t, r, "a") }, func(context.Context, *Run, *Agent) error { return nil }, false},
		"ended": {func(t *testing.T, r *Run) *Agent { return beginAgent(t, r, "a") }, func(ctx context.Context, _ *Run, a *Agent) error {
			return a.Emit(ctx, &AgentEnded{Outcome: OutcomePartial})
		}, true},
		"failed": {func(t *testing.T, r *Run) *Agent { return beginAgent(t, r, "a") }, func(ctx context.Context, _ *Run, a *Agent) error {
			return a.To(ctx, StatusFailed)
		}, true},
		"run over": {func(t *testing.T, r *Run) *Agent { return beginAgent(t, r, "a") }, func(ctx context.Context, r *Run, _ *Agent) error {
			return r.Emit(ctx, &RunCompleted{})
		}, true},
		"no start": {func(_ *testing.T, r *Run) *Agent { return r.With(node).Agent("a") }, func(context.Context, *Run, *Agent) error { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
			a := tc.start(t, r)
			m, err := a.Model(t.Context(), &ModelCalled{ModelCallID: "m"})
			require.NoError(t, err)
			require.NoError(t, m.Text(t.Context(), "half a"))
			c, err := a.Call(t.Context(), &ToolCalled{CallID: "c", ToolID: "t"})
			require.NoError(t, err)
			require.NoError(t, tc.rest(t.Context(), r, a))
			n := len(log.events)
			require.NoError(t, r.Agent("a").OpenCall("c").Return(t.Context(), `1`))
			require.NoError(t, r.Agent("a").OpenModelCall("m").Fail(t.Context(), errors.New("down")))
			kinds := map[Kind]bool{}
			for _, ev := range log.events[n:] {
				kinds[ev.Kind()] = true
				require.Equal(t, tc.late, ev.Marks.Has(MarkLate), ev.Kind())
			}
			require.True(t, kinds[KindToolReturned] && kinds[KindTextCompleted] && kinds[KindModelReturned], kinds)

			var broken *RuleError
			require.ErrorAs(t, c.Return(t.Context(), `2`), &broken, "a second return closes nothing")
			require.Equal(t, RuleToolCallOpen, broken.Rule)
			s := fold(t, log.events...)
			require.Empty(t, s.OpenCalls)
			require.Empty(t, s.OpenModelCalls)
		})
	}
}

// Calls that run at once start in the order of Call, and Call.Do records each end as Agent.Do does.
func TestCallsThatRunAtOnceStartInOrder(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
	a := beginAgent(t, r, "a")
	down := errors.New("down")
	tools := []func(context.Context) (JSON, error){
		func(ctx context.Context) (JSON, error) { return JSONString(CallFromContext(ctx).ID), nil },
		func(context.Context) (JSON, error) { return "", down },
		func(context.Context) (JSON, error) { panic("fire") },
		func(context.Context) (JSON, error) { runtime.Goexit(); return "", nil },
	}
	var all sync.WaitGroup
	for i, tool := range tools {
		call, err := a.Call(t.Context(), &ToolCalled{CallID: strconv.Itoa(i), ToolID: "t"})
		require.NoError(t, err)
		all.Go(func() {
			defer func() { _ = recover() }()
			result, err := call.Do(t.Context(), tool)
			if i == 0 && (result != `"0"` || err != nil) || i == 1 && err != down {
				t.Errorf("call %d: %s, %v", i, result, err)
			}
		})
	}
	all.Wait()
	var calls []string
	ends := map[string]string{}
	for _, ev := range log.events {
		switch p := ev.Payload.(type) {
		case *ToolCalled:
			calls = append(calls, p.CallID)
		case *ToolReturned:
			ends[p.CallID] = string(p.Result) + p.Error.V.Message
		}
	}
	require.Equal(t, []string{"0", "1", "2", "3"}, calls)
	require.Equal(t, map[string]string{"0": `"0"`, "1": "down", "2": "panic: fire", "3": "the tool ended its goroutine"}, ends)
}

// A tool runs without a record, unless somebody forbids it.
func TestCallDoOfACallThatIsNotRecorded(t *testing.T) {
	r, _ := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
	a := beginAgent(t, r, "a")
	ran := 0
	tool := func(context.Context) (JSON, error) { ran++; return "1", nil }
	_, err := a.Call(t.Context(), &ToolCalled{CallID: "c", ToolID: "t"})
	require.NoError(t, err)
	again, err := a.Call(t.Context(), &ToolCalled{CallID: "c", ToolID: "t"})
	require.Error(t, err)
	for _, c := range []*Call{again, nil, a.OpenCall("none")} {
		result, err := c.Do(t.Context(), tool)
		require.NoError(t, err)
		require.Equal(t, JSON("1"), result)
	}
	require.Equal(t, 3, ran)

	unknown, refused := a.Call(t.Context(), &ToolCalled{ToolID: "t", ApprovalID: "none"})
	require.Error(t, refused)
	_, err = unknown.Do(t.Context(), tool)
	require.Equal(t, refused, err)
	guarded, _ := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived, Guard: func(ev Event) *RuleError {
		if _, ok := ev.Payload.(*ToolCalled); ok {
			return &RuleError{Rule: "too-much"}
		}
		return nil
	}})
	call, refused := beginAgent(t, guarded, "a").Call(t.Context(), &ToolCalled{ToolID: "t"})
	require.Error(t, refused)
	_, err = call.Do(t.Context(), tool)
	require.Equal(t, refused, err)
	require.Equal(t, 3, ran)

	open := a.OpenCall("c")
	_, err = open.Do(t.Context(), nil)
	require.ErrorIs(t, err, errNoFunction)
	require.Empty(t, a.OpenCalls())
}

// A tool that is an agent has another agent for each call, also when ids of calls come again.
func TestNewAgentOfACallIsAnotherEachTime(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
	a := beginAgent(t, r, "a")
	ids := map[string]bool{}
	for range 2 {
		_, err := a.Do(t.Context(), &ToolCalled{CallID: "call_0", ToolID: "scout"}, func(ctx context.Context) (JSON, error) {
			scout := CallFromContext(ctx).NewAgent()
			ids[scout.ID()] = true
			return "", errors.Join(scout.Emit(ctx, &AgentStarted{Name: "scout"}), scout.Finish(ctx, nil, nil))
		})
		require.NoError(t, err)
	}
	require.Len(t, ids, 2)
	for _, ev := range log.events {
		if p, ok := ev.Payload.(*AgentStarted); ok && p.Name == "scout" {
			require.Equal(t, []string{"a", "call_0"}, []string{ev.ParentAgentID, ev.ParentCallID})
		}
	}
	require.Nil(t, (*Call)(nil).NewAgent())
}

// heldPiece is a text of which the end is held back, as a token may begin there. Pieces
// never make a token together.
const heldPiece = " see sk-proj-"

// An ended run takes late events. The text that its old handle holds back belongs to the run
// that goes on: one writer gives the sequences.
func TestResumeTakesOverHeldText(t *testing.T) {
	for _, mode := range []Mode{ModeObserve, ModeEnforce} {
		t.Run(mode.String(), func(t *testing.T) {
			old, log := startRun(t, EmitterOptions{Mode: mode})
			late := func(r *Run, block string) error {
				ev := Event{Payload: &TextDelta{BlockID: block, Delta: heldPiece}}
				if mode == ModeEnforce {
					ev.Marks = MarkLate
				}
				return errOf(r.Record(t.Context(), ev))
			}
			require.NoError(t, late(old, "early"))
			require.NoError(t, old.Emit(t.Context(), &RunCompleted{}))
			require.NoError(t, late(old, "b"))
			next, err := old.s.e.Resume(log.snapshot(t))
			require.NoError(t, err)
			require.NoError(t, late(next, "c"))
			require.ErrorIs(t, late(old, "b"), ErrClosed)
			require.NoError(t, old.Close())
			require.NoError(t, next.Close())
			require.NoError(t, next.s.e.Close(t.Context()))
			requireOneWriter(t, log)
			require.Equal(t, map[string]string{"early": heldPiece, "b": heldPiece, "c": heldPiece}, log.texts())
		})
	}
}

// Text that an ended run holds back is recorded when the emitter closes, though its handle was
// never closed.
func TestCloseRecordsHeldBackTextOfAnEndedRun(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Mode: ModeObserve})
	require.NoError(t, r.Emit(t.Context(), &RunCompleted{}))
	require.NoError(t, r.Emit(t.Context(), &TextDelta{BlockID: "b", Delta: heldPiece}))
	require.NoError(t, r.s.e.Close(t.Context()))
	require.Equal(t, map[string]string{"b": heldPiece}, log.texts())
	requireOneWriter(t, log)
}

// requireOneWriter fails if a sequence is missing or there twice.
func requireOneWriter(t testing.TB, log *sinkLog) {
	t.Helper()
	for i := range log.events {
		require.EqualValues(t, i, log.events[i].Sequence, "%v", said(log.events))
	}
}

// texts returns the texts of the blocks.
func (s *sinkLog) texts() map[string]string {
	texts := map[string]string{}
	for i := range s.events {
		if p, ok := s.events[i].Payload.(*TextDelta); ok {
			texts[p.BlockID] += p.Delta
		}
	}
	return texts
}

// A writerGame plays with the handles of one run.
type writerGame struct {
	e    *Emitter
	log  *sinkLog
	mode Mode

	mu      sync.Mutex // guards the rest
	handles []*Run
	ids     []string // of acknowledged events
	texts   map[string]string
}

func newWriterGame(t testing.TB, mode Mode) *writerGame {
	e, log := startEmitter(t, EmitterOptions{Mode: mode, OnError: func(error) {}})
	r, err := e.Run("r")
	require.NoError(t, err)
	require.NoError(t, r.Emit(t.Context(), &RunStarted{}))
	return &writerGame{e: e, log: log, mode: mode, handles: []*Run{r}, texts: map[string]string{}}
}

// step uses a handle once, mostly a newer one. The block belongs to the caller alone.
func (g *writerGame) step(r *rand.Rand, block string) error {
	g.mu.Lock()
	h := g.handles[max(r.IntN(len(g.handles)), r.IntN(len(g.handles)))]
	g.mu.Unlock()
	var marks Marks
	if r.IntN(2) == 0 {
		marks = MarkLate
	}
	switch n := r.IntN(20); {
	case n < 9:
		return g.record(h, Event{Marks: marks, Payload: &TextDelta{BlockID: block, Delta: heldPiece}})
	case n < 12:
		return g.record(h, Event{Marks: marks, Payload: &UsageObserved{}})
	case n < 13:
		return g.record(h, Event{Payload: &RunCompleted{}})
	case n < 16:
		return h.Close()
	default:
		return g.resume()
	}
}

func (g *writerGame) record(h *Run, ev Event) error {
	out, err := h.Record(context.Background(), ev)
	var rule *RuleError
	switch {
	case err == nil:
		g.mu.Lock()
		g.ids = append(g.ids, out.ID)
		if p, ok := ev.Payload.(*TextDelta); ok {
			g.texts[p.BlockID] += p.Delta
		}
		g.mu.Unlock()
		return nil
	case errors.Is(err, ErrClosed), errors.As(err, &rule) && g.mode == ModeEnforce:
		return nil
	}
	return err
}

// resume goes on from all that was recorded so far. It is refused for one of four reasons.
func (g *writerGame) resume() error {
	g.log.mu.Lock()
	events := sinkLog{events: slices.Clone(g.log.events)}
	g.log.mu.Unlock()
	runs, err := foldSeq(events.all, FoldOptions{})
	if err != nil {
		return err
	}
	h, err := g.e.Resume(runs[0])
	if err != nil {
		for _, reason := range []string{"is open", "still being recorded", "is stale", ErrClosed.Error()} {
			if strings.Contains(err.Error(), reason) {
				return nil
			}
		}
		return err
	}
	g.mu.Lock()
	g.handles = append(g.handles, h)
	g.mu.Unlock()
	return nil
}

// check closes the handles and the emitter, and looks at the log.
func (g *writerGame) check(t testing.TB, r *rand.Rand) {
	for _, i := range r.Perm(len(g.handles))[:r.IntN(len(g.handles)+1)] {
		require.NoError(t, g.handles[i].Close())
	}
	require.NoError(t, g.e.Close(t.Context()))
	requireOneWriter(t, g.log)
	recorded := map[string]int{}
	for i := range g.log.events {
		recorded[g.log.events[i].ID]++
	}
	for _, id := range g.ids {
		require.Equal(t, 1, recorded[id])
	}
	require.Equal(t, g.texts, g.log.texts())
}

// Whatever is done with old and new handles of a run, no sequence is there twice, and all
// that was acknowledged is there, the texts whole.
func TestHandlesOfOneRun(t *testing.T) {
	for _, mode := range []Mode{ModeObserve, ModeEnforce} {
		t.Run(mode.String(), func(t *testing.T) {
			resumed := 0
			for seed := range uint64(400) {
				r := rand.New(rand.NewPCG(seed, 3))
				g := newWriterGame(t, mode)
				for range 40 {
					require.NoError(t, g.step(r, fmt.Sprint("b", r.IntN(2))), "seed %d", seed)
				}
				g.check(t, r)
				resumed += len(g.handles) - 1
			}
			require.Greater(t, resumed, 400)
		})
	}
}

func TestHandlesOfOneRunInGoroutines(t *testing.T) {
	for _, mode := range []Mode{ModeObserve, ModeEnforce} {
		t.Run(mode.String(), func(t *testing.T) {
			for seed := range uint64(10) {
				g := newWriterGame(t, mode)
				errs := make([]error, 16)
				var wg sync.WaitGroup
				for i := range errs {
					wg.Go(func() {
						r := rand.New(rand.NewPCG(seed, uint64(i)))
						for range 40 {
							errs[i] = errors.Join(errs[i], g.step(r, fmt.Sprint("b", i)))
						}
					})
				}
				wg.Wait()
				require.NoError(t, errors.Join(errs...))
				g.check(t, rand.New(rand.NewPCG(seed, 0)))
			}
		})
	}
}
