package agentevents_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

// modelAgent returns an agent that has started, and the recorder of its events.
func modelAgent(t *testing.T, o ae.EmitterOptions) (*ae.Agent, *eventtest.Recorder) {
	t.Helper()
	em, rec := eventtest.RecordWith(t, o)
	run, err := em.Run("r")
	require.NoError(t, err)
	a := run.Agent("main")
	require.NoError(t, a.Emit(t.Context(), &ae.AgentStarted{}))
	return a, rec
}

func TestModelCallWritesBlocks(t *testing.T) {
	for _, l := range []ae.Lifecycle{ae.LifecycleStrict, ae.LifecycleRelaxed, ae.LifecycleDerived} {
		t.Run(string(l), func(t *testing.T) {
			ctx := t.Context()
			a, rec := modelAgent(t, ae.EmitterOptions{Lifecycle: l})
			asked := &ae.ModelCalled{Model: "m", Request: `{"n":1}`}
			c, err := a.Model(ctx, asked)
			require.NoError(t, err)
			require.True(t, c.Recorded())
			require.NotEmpty(t, c.ID)
			require.Empty(t, asked.ModelCallID, "the caller's payload is not changed")
			require.NoError(t, errors.Join(c.Text(ctx, ""), c.Piece(ctx)))
			require.False(t, c.Streamed())
			require.NoError(t, errors.Join(
				c.Reason(ctx, "Look"), c.Reason(ctx, ""), c.Reason(ctx, " first."),
				c.Text(ctx, "I "), c.Text(ctx, "read."),
				c.Arguments(ctx, "c1", `{"p":`), c.Arguments(ctx, "c2", `{}`), c.Arguments(ctx, "c1", `1}`),
				c.Text(ctx, "Done."),
			))
			require.True(t, c.Streamed())
			answer := &ae.ModelReturned{FinishReasons: []string{"stop"}}
			require.NoError(t, c.Return(ctx, answer))
			require.Empty(t, answer.ModelCallID, "the caller's payload is not changed")
			rec = rec.Filter(eventtest.NotSynthetic)
			rec.WantExactly(t,
				"main agent.started",
				"main model.called model=m request={\"n\":1} "+c.ID,
				"main agent.reasoning.delta Look index=0",
				`main agent.reasoning.delta " first." index=1`,
				`main agent.reasoned "Look first."`,
				`main agent.text.delta "I " index=0`,
				"main agent.text.delta read. index=1",
				`main agent.text "I read."`,
				"main tool.arguments.delta callId=c1 index=0",
				"main tool.arguments.delta callId=c2 index=0",
				"main tool.arguments.delta callId=c1 index=1",
				"main agent.text.delta Done. index=0",
				"main agent.text Done.",
				"main model.returned finishReasons=[\"stop\"] error= "+c.ID,
			)
			blocks := map[string]string{}
			for _, ev := range rec.Events() {
				switch p := ev.Payload.(type) {
				case *ae.TextDelta:
					blocks[p.BlockID] += p.Delta
				case *ae.AgentReasoningDelta:
					blocks[p.BlockID] += p.Delta
				case *ae.TextCompleted:
					require.Equal(t, blocks[p.BlockID], p.Text)
				case *ae.AgentReasoned:
					require.Equal(t, blocks[p.BlockID], p.Reasoning)
				}
			}
			require.Len(t, blocks, 3)
			require.Zero(t, rec.Snapshot("").ViolationCount)
		})
	}
}

// times returns a clock that goes on when it is told.
func times() (clock func() time.Time, wait func(time.Duration)) {
	at := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
	return func() time.Time { return at }, func(d time.Duration) { at = at.Add(d) }
}

func TestModelCallCountsItsTimes(t *testing.T) {
	ctx := t.Context()
	clock, wait := times()
	for name, first := range map[string]func(*ae.ModelCall) error{
		"text":      func(c *ae.ModelCall) error { return c.Text(ctx, "x") },
		"reasoning": func(c *ae.ModelCall) error { return c.Reason(ctx, "x") },
		"arguments": func(c *ae.ModelCall) error { return c.Arguments(ctx, "c", "x") },
	} {
		a, rec := modelAgent(t, ae.EmitterOptions{Clock: clock})
		c, err := a.Model(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, c.Text(ctx, ""))
		wait(300 * time.Millisecond)
		require.NoError(t, first(c))
		wait(time.Second)
		require.NoError(t, c.Text(ctx, "y"))
		require.NoError(t, c.Return(ctx, nil))
		require.Len(t, rec.Find(t, "model.returned timeToFirstTokenMs=300 durationMs=1300"), 1, name)
	}
	a, rec := modelAgent(t, ae.EmitterOptions{Clock: clock})
	c, err := a.Model(ctx, nil)
	require.NoError(t, err)
	wait(-time.Hour) // gives no negative duration
	require.NoError(t, c.Return(ctx, nil))
	rec.Want(t, "model.returned timeToFirstTokenMs= durationMs=0")
	c, err = a.Model(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, c.Text(ctx, "x"))
	require.NoError(t, c.Return(ctx, &ae.ModelReturned{TimeToFirstToken: ae.Some(time.Second), Duration: ae.Some(time.Minute)}))
	rec.Want(t, "model.returned timeToFirstTokenMs=1000 durationMs=60000")
}

func TestModelCallFails(t *testing.T) {
	quota := errors.New("quota")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(quota)
	for name, tc := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"an error":                      {t.Context(), errors.New("eof"), "error.message=eof error.code="},
		"no error":                      {t.Context(), nil, "error.message=failed error.code="},
		"cancelled":                     {t.Context(), context.Canceled, "error.code=cancelled"},
		"a cause of the cancellation":   {cancelled, quota, "error.code=cancelled error.message=quota"},
		"a deadline":                    {t.Context(), context.DeadlineExceeded, "error.code=deadline_exceeded"},
		"a panic":                       {t.Context(), &ae.PanicError{Value: "boom"}, "error.code=panic"},
		"the provider's words":          {t.Context(), &ae.ToolError{Code: "overloaded", Retryable: ae.Some(true), Result: `{"a":1}`, Err: quota}, `error.code=overloaded error.retryable=true response={"a":1}`},
		"a status that is not an error": {t.Context(), &ae.ToolError{Status: ae.ToolStatusRateLimited, Err: quota}, "error.code=rate_limited"},
	} {
		t.Run(name, func(t *testing.T) {
			a, rec := modelAgent(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
			c, err := a.Model(t.Context(), nil)
			require.NoError(t, err)
			require.NoError(t, c.Text(t.Context(), "As far as"))
			require.NoError(t, c.Fail(tc.ctx, tc.err))
			rec.Want(t, `agent.text "As far as"`, "model.returned "+tc.want)
			require.Zero(t, rec.Snapshot("").ViolationCount)
		})
	}
}

func TestModelCallIsTriedAgain(t *testing.T) {
	ctx := t.Context()
	a, rec := modelAgent(t, ae.EmitterOptions{})
	c, err := a.Model(ctx, &ae.ModelCalled{ModelCallID: "m1", Provider: "openai", Model: "m", Operation: "chat", Request: `{"n":1}`, Attributes: `{"t":1}`, Attempt: ae.Some(2), RetryOf: "m0"})
	require.NoError(t, err)
	require.Equal(t, "m1", c.ID)
	require.NoError(t, c.Arguments(ctx, "call_0", `{"a`))
	require.NoError(t, c.Fail(ctx, errors.New("503")))
	again, err := c.Retry(ctx)
	require.NoError(t, err)
	rec.Want(t, `model.called retryOf=m1 attempt=3 provider=openai model=m operation=chat request={"n":1} attributes={"t":1} `+again.ID)
	// A provider may use the ids of its tool calls again.
	require.NoError(t, again.Arguments(ctx, "call_0", `{}`))
	rec.Want(t, "tool.arguments.delta callId=call_0 index=0", "tool.arguments.delta callId=call_0 index=1")
	require.NoError(t, again.Return(ctx, nil))
	require.Zero(t, rec.Snapshot("").ViolationCount)
}

// requireDeadModelCall asserts that a handle is safe to use and records nothing.
func requireDeadModelCall(t *testing.T, c *ae.ModelCall) {
	t.Helper()
	ctx := t.Context()
	require.False(t, c.Recorded())
	require.NoError(t, errors.Join(c.Text(ctx, "x"), c.Reason(ctx, "x"), c.Arguments(ctx, "c", "x"), c.Return(ctx, nil), c.Fail(ctx, errors.New("x"))))
	again, err := c.Retry(ctx)
	require.NoError(t, err)
	require.NotNil(t, again)
	require.False(t, again.Recorded())
}

func TestModelCallWithoutARecordIsSafe(t *testing.T) {
	var none *ae.Agent
	c, err := none.Model(t.Context(), nil)
	require.ErrorIs(t, err, ae.ErrZeroValue)
	requireDeadModelCall(t, c)
	requireDeadModelCall(t, none.OpenModelCall("m1"))
	requireDeadModelCall(t, nil)
	requireDeadModelCall(t, new(ae.ModelCall))

	var told []*ae.RuleError
	a, rec := modelAgent(t, ae.EmitterOptions{OnViolation: func(err *ae.RuleError) { told = append(told, err) }})
	c, err = a.Model(t.Context(), &ae.ModelCalled{Attempt: ae.Some(-1)})
	require.Error(t, err)
	require.Len(t, told, 1)
	requireDeadModelCall(t, c)
	requireDeadModelCall(t, a.OpenModelCall(c.ID))
	rec.WantExactly(t, "agent.started")
}

func TestModelCallThatHasReturnedIsClosed(t *testing.T) {
	ctx := t.Context()
	var told []*ae.RuleError
	a, rec := modelAgent(t, ae.EmitterOptions{OnViolation: func(err *ae.RuleError) { told = append(told, err) }})
	c, err := a.Model(ctx, &ae.ModelCalled{ModelCallID: "m1"})
	require.NoError(t, err)
	require.NoError(t, c.Text(ctx, "x"))
	require.Error(t, c.Return(ctx, &ae.ModelReturned{CostUSD: ae.Some(-1.0)}))
	require.Len(t, told, 1)
	require.NoError(t, c.Fail(ctx, errors.New("the return was refused")), "a call that could not return is open")
	n := len(rec.Events())
	for name, err := range map[string]error{
		"Text": c.Text(ctx, "x"), "Reason": c.Reason(ctx, "x"), "Arguments": c.Arguments(ctx, "c", "x"), "Return": c.Return(ctx, nil), "Fail": c.Fail(ctx, nil),
	} {
		require.ErrorIs(t, err, ae.ErrClosed, name)
		require.ErrorContains(t, err, `"m1"`, name)
	}
	require.Len(t, rec.Events(), n)
	rec.Want(t, "agent.text x", "model.returned")
	require.Len(t, rec.Find(t, "agent.text"), 1)
}

// Whoever finds a model call by its id has the handle that opened it, with all that it knows.
func TestOpenModelCallIsTheHandle(t *testing.T) {
	ctx := t.Context()
	a, rec := modelAgent(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
	c, err := a.Model(ctx, &ae.ModelCalled{ModelCallID: "m1", Request: `{"n":1}`})
	require.NoError(t, err)
	require.NoError(t, c.Text(ctx, "Hel"))
	require.Same(t, c, a.OpenModelCall("m1"))
	require.NoError(t, a.OpenModelCall("m1").Text(ctx, "lo"))
	require.NoError(t, a.OpenModelCall("m1").Return(ctx, nil))
	requireDeadModelCall(t, a.OpenModelCall("m1"))
	require.NoError(t, a.Emit(ctx, &ae.ModelCalled{ModelCallID: "m1"}))
	require.NotSame(t, c, a.OpenModelCall("m1"), "which nobody opened by a handle")
	require.True(t, a.OpenModelCall("m1").Recorded())
	rec.Filter(eventtest.NotSynthetic).WantExactly(t,
		"agent.started",
		"model.called m1",
		"agent.text.delta Hel index=0",
		"agent.text.delta lo index=1",
		"agent.text Hello",
		"model.returned m1",
		"model.called m1",
	)
}

func TestOpenModelCallAfterAResume(t *testing.T) {
	ctx := t.Context()
	a, rec := modelAgent(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
	c, err := a.Model(ctx, &ae.ModelCalled{ModelCallID: "m1", Model: "m", Provider: "p", Attempt: ae.Some(2)})
	require.NoError(t, err)
	require.NoError(t, errors.Join(c.Arguments(ctx, "c1", "{"), c.Text(ctx, "half")))

	em, rest := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
	run, err := em.Resume(rec.Snapshot("r"))
	require.NoError(t, err)
	requireDeadModelCall(t, run.Agent("main").OpenModelCall("m2"))
	requireDeadModelCall(t, run.Agent("other").OpenModelCall("m1"))
	c = run.Agent("main").OpenModelCall("m1")
	require.True(t, c.Recorded())
	require.NoError(t, errors.Join(c.Arguments(ctx, "c1", "}"), c.Text(ctx, "other"), c.Fail(ctx, errors.New("the process died"))))
	_, err = c.Retry(ctx)
	require.NoError(t, err)
	rest.Filter(eventtest.NotSynthetic).WantExactly(t,
		"tool.arguments.delta callId=c1 index=1",
		"agent.text.delta other index=0",
		"agent.text other",
		"model.returned m1 durationMs= timeToFirstTokenMs=",
		"model.called retryOf=m1 attempt=3 model=m provider=p",
	)
	fold, err := ae.ResumeFold(rec.Snapshot("r"), ae.FoldOptions{})
	require.NoError(t, err)
	for _, ev := range rest.Events() {
		fold.Apply(ev)
	}
	require.Zero(t, fold.Snapshot().ViolationCount)
}

// The deltas, with their held-back text, are together the whole block.
func TestModelCallLeaksNothing(t *testing.T) {
	ctx := t.Context()
	secrets := new(ae.Secrets)
	require.NoError(t, secrets.Add("C4N4RYs3cr3t"))
	for name, pieces := range map[string][]string{
		"in pieces":        {"it is C4N4", "RYs3", "cr3t, keep it"},
		"at the end":       {"it is C4N4RYs3cr3t"},
		"the beginning":    {"it is C4N4RY"},
		"a character":      {"Gr\xc3", "\xbc\xc3", "\x9fe"},
		"half a character": {"Gr\xc3"},
	} {
		t.Run(name, func(t *testing.T) {
			a, rec := modelAgent(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Redaction: &ae.Policy{Secrets: secrets}})
			c, err := a.Model(ctx, nil)
			require.NoError(t, err)
			for _, p := range pieces {
				require.NoError(t, c.Text(ctx, p))
			}
			require.NoError(t, c.Reason(ctx, "next"))
			require.NoError(t, c.Return(ctx, nil))
			joined, whole := "", ""
			for _, ev := range rec.Events() {
				require.NotContains(t, eventtest.Describe(ev), "C4N4RYs3")
				switch p := ev.Payload.(type) {
				case *ae.TextDelta:
					require.Empty(t, whole, "the rest comes in front of the whole")
					joined += p.Delta
				case *ae.TextCompleted:
					whole = p.Text
				}
			}
			require.NotEmpty(t, whole)
			require.Equal(t, whole, joined)
			require.Zero(t, rec.Snapshot("").ViolationCount)
		})
	}
}

func TestModelCallReasoningFollowsPolicy(t *testing.T) {
	ctx := t.Context()
	for v, want := range map[ae.Verbosity]string{ae.VerbosityOff: "", ae.VerbositySummary: strings.Repeat("abcd", 2), ae.VerbosityFull: strings.Repeat("abcd", 3)} {
		a, rec := modelAgent(t, ae.EmitterOptions{Redaction: &ae.Policy{Reasoning: v, ReasoningTokens: 2}})
		c, err := a.Model(ctx, nil)
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, c.Reason(ctx, "abcd"))
		}
		require.NoError(t, c.Return(ctx, nil))
		joined, whole := "", "none"
		for _, ev := range rec.Events() {
			switch p := ev.Payload.(type) {
			case *ae.AgentReasoningDelta:
				joined += p.Delta
			case *ae.AgentReasoned:
				whole = p.Reasoning
			}
		}
		require.Equal(t, want, joined, v)
		require.Equal(t, want, whole, v)
	}
}

// Sinks and hooks are told of a handle's events while it is in use: none of them hangs.
func TestModelCallIsUsedByWhoIsToldOfIt(t *testing.T) {
	ctx := t.Context()
	var c *ae.ModelCall
	var fromSink, fromHook error
	sink := ae.SinkFunc(func(ctx context.Context, ev ae.Event) error {
		if ev.Kind() == ae.KindTextDelta {
			fromSink = c.Text(context.WithValue(ctx, sinkKey{}, 1), "again")
		}
		return nil
	})
	a, rec := modelAgent(t, ae.EmitterOptions{
		Lifecycle:   ae.LifecycleStrict,
		Sinks:       []ae.Sink{sink},
		Guard:       func(ev ae.Event) *ae.RuleError { return forbid(ev, ae.KindAgentReasoningDelta) },
		OnViolation: func(*ae.RuleError) { fromHook = c.Fail(ctx, errors.New("forbidden")) },
	})
	c, err := a.Model(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, c.Text(ctx, "x"))
	require.ErrorIs(t, fromSink, ae.ErrReentrant)
	require.Error(t, c.Reason(ctx, "y"))
	require.NoError(t, fromHook)
	rec.WantExactly(t, "agent.started", "model.called", "agent.text.delta x", "agent.text x", "model.returned error.message=forbidden")
}

// One goroutine has the handle and waits for the run. The sink of another has the run and
// waits for the handle. One of them is refused, and none waits for ever.
func TestConcurrentModelCallIsUsedByASink(t *testing.T) {
	ctx := t.Context()
	var c *ae.ModelCall
	inSink, inHandle, ids := make(chan struct{}), make(chan struct{}, 9), new(atomic.Int64)
	errs := make(chan error, 2)
	a, rec := modelAgent(t, ae.EmitterOptions{
		NewID: func() string {
			select {
			case <-inSink: // for the block, by who has the handle
				inHandle <- struct{}{}
			default:
			}
			return fmt.Sprint("id", ids.Add(1))
		},
		Sinks: []ae.Sink{ae.SinkFunc(func(ctx context.Context, ev ae.Event) error {
			if ev.Kind() == ae.KindUsageObserved {
				close(inSink)
				<-inHandle
				errs <- c.Text(ctx, "from the sink")
			}
			return nil
		})},
	})
	c, err := a.Model(ctx, nil)
	require.NoError(t, err)
	go func() {
		<-inSink
		errs <- c.Text(ctx, "x")
	}()
	done := make(chan error)
	go func() { done <- a.Emit(ctx, &ae.UsageObserved{}) }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("they wait for each other")
	}
	require.ErrorIs(t, errors.Join(<-errs, <-errs), ae.ErrReentrant)
	require.NoError(t, c.Return(ctx, nil))
	requireWhole(t, rec.Events())
}

type sinkKey struct{}

func forbid(ev ae.Event, k ae.Kind) *ae.RuleError {
	if ev.Kind() == k {
		return &ae.RuleError{Rule: "forbidden", Detail: "is forbidden"}
	}
	return nil
}

// A refused piece does not belong to a block.
func TestModelCallOmitsRefusedPieces(t *testing.T) {
	ctx := t.Context()
	a, rec := modelAgent(t, ae.EmitterOptions{
		Lifecycle: ae.LifecycleStrict,
		Guard: func(ev ae.Event) *ae.RuleError {
			if p, ok := ev.Payload.(*ae.TextDelta); ok && p.Delta == "no" {
				return forbid(ev, ae.KindTextDelta)
			}
			return nil
		},
		OnViolation: func(*ae.RuleError) {},
	})
	c, err := a.Model(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, c.Text(ctx, "a"))
	require.Error(t, c.Text(ctx, "no"))
	require.NoError(t, c.Text(ctx, "b"))
	require.NoError(t, c.Reason(ctx, "r"))
	require.Error(t, c.Text(ctx, "no"))
	require.NoError(t, c.Return(ctx, nil))
	rec.WantExactly(t, "agent.started", "model.called", "agent.text.delta a index=0", "agent.text.delta b index=1", "agent.text ab",
		"agent.reasoning.delta", "agent.reasoned r", "model.returned")
}

// Blocks go on where the agent starts again, and where too many others were begun.
func TestModelCallGoesOnWhenItsBlockIsForgotten(t *testing.T) {
	ctx := t.Context()
	a, rec := modelAgent(t, ae.EmitterOptions{})
	c, err := a.Model(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, c.Text(ctx, "a"))
	for i := range 100 {
		require.NoError(t, a.Emit(ctx, &ae.TextDelta{BlockID: fmt.Sprint("other", i), Delta: "x", Index: ae.Some(0)}))
	}
	require.NoError(t, c.Text(ctx, "b"))
	require.NoError(t, c.Text(ctx, "c"))
	require.NoError(t, a.Emit(ctx, &ae.AgentStarted{Resumed: true}))
	require.NoError(t, c.Text(ctx, "d"))
	require.NoError(t, c.Return(ctx, nil))
	rec.Want(t, "agent.text abcd")
	require.Zero(t, rec.Snapshot("").ViolationCount)
}

// The events of a handle of a node, and of no agent at all, are legal too.
func TestModelCallOfANode(t *testing.T) {
	ctx := t.Context()
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleStrict})
	run, err := em.Run("r")
	require.NoError(t, err)
	for _, a := range []*ae.Agent{run.Agent(""), run.With(ae.Scope{NodeRunID: "n"}).Agent("")} {
		c, err := a.Model(ctx, nil)
		require.NoError(t, err)
		require.True(t, a.OpenModelCall(c.ID).Recorded())
		require.NoError(t, errors.Join(c.Text(ctx, "a"), c.Text(ctx, "b"), c.Return(ctx, nil)))
	}
	rec.WantExactly(t,
		"model.called", "agent.text.delta a index=", "agent.text.delta b index=", "agent.text ab", "model.returned",
		"model.called", "agent.text.delta a index=0", "agent.text.delta b index=1", "agent.text ab", "model.returned")
	require.Zero(t, rec.Snapshot("").ViolationCount)
}

func TestConcurrentModelCalls(t *testing.T) {
	ctx := t.Context()
	a, rec := modelAgent(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
	var wg sync.WaitGroup
	for range 3 {
		c, err := a.Model(ctx, nil)
		require.NoError(t, err)
		for i := range 3 {
			wg.Go(func() {
				for n := range 100 {
					var err error
					switch (n / 5) % 3 {
					case 0:
						err = c.Text(ctx, "t")
					case 1:
						err = c.Reason(ctx, "r")
					case 2:
						err = c.Arguments(ctx, c.ID+"-call", "a")
					}
					if err != nil && !errors.Is(err, ae.ErrClosed) {
						t.Error(err)
					}
				}
				if i == 0 {
					if err := c.Return(ctx, nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	require.Len(t, rec.Find(t, "model.returned"), 3)
	requireWhole(t, rec.Events())
	require.Zero(t, rec.Snapshot("").ViolationCount)
}

// requireWhole asserts that each whole block is the text of its deltas.
func requireWhole(t *testing.T, events []ae.Event) {
	t.Helper()
	said := map[string]string{}
	for _, ev := range events {
		switch p := ev.Payload.(type) {
		case *ae.TextDelta:
			said[p.BlockID] += p.Delta
		case *ae.AgentReasoningDelta:
			said[p.BlockID] += p.Delta
		case *ae.TextCompleted:
			require.Equal(t, said[p.BlockID], p.Text)
			delete(said, p.BlockID)
		case *ae.AgentReasoned:
			require.Equal(t, said[p.BlockID], p.Reasoning)
			delete(said, p.BlockID)
		}
	}
	require.Empty(t, said, "blocks without their whole")
}
