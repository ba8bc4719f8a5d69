package agentevents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentevents/agentevents/internal/turns"
	"github.com/stretchr/testify/require"
)

func TestCancellationLosesNothingAndSinksSeeValuesOnly(t *testing.T) {
	type key struct{}
	r, log := startRun(t, EmitterOptions{})
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "v"), time.Hour)
	cancel()
	require.NoError(t, r.Emit(ctx, &RunCancelled{Reason: "timeout"}))
	require.Len(t, log.events, 1)
	require.NoError(t, log.ctx.Err())
	require.Nil(t, log.ctx.Done())
	_, has := log.ctx.Deadline()
	require.False(t, has)
	require.Equal(t, "v", log.ctx.Value(key{}))
}

// stuckSink hangs in Flush and Close until it is let go.
type stuckSink struct {
	SinkFunc
	flush, close    chan struct{}
	flushes, closes atomic.Int32
	late            error // of Flush
}

func (s *stuckSink) Flush(context.Context) error {
	s.flushes.Add(1)
	if s.flush != nil {
		<-s.flush
	}
	return s.late
}

func (s *stuckSink) Close() error {
	s.closes.Add(1)
	if s.close != nil {
		<-s.close
	}
	return nil
}

func TestFlushReturnsAtTheDeadlineAndNamesTheSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuckSink{SinkFunc: discard, flush: make(chan struct{})}
		e, err := NewEmitter(EmitterOptions{Sinks: []Sink{s}})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		err = e.Flush(ctx)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var failed *SinkError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, "*agentevents.stuckSink", failed.Sink)
		require.Contains(t, err.Error(), "stuckSink")
		close(s.flush) // the bubble fails if a goroutine stays
		require.NoError(t, e.Flush(t.Context()))
	})
}

func TestCloseReturnsAtTheDeadlineAndMayBeCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuckSink{SinkFunc: discard, close: make(chan struct{})}
		after := &stuckSink{SinkFunc: discard}
		e, err := NewEmitter(EmitterOptions{Sinks: []Sink{s, after}})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		err = e.Close(ctx)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "stuckSink")

		// The hanging Close has not finished, and a second one reports that.
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, e.Close(ctx), context.DeadlineExceeded)

		close(s.close)
		require.NoError(t, e.Close(t.Context()))
		require.EqualValues(t, 1, s.closes.Load(), "a sink is closed once")
		require.EqualValues(t, 1, after.closes.Load(), "and every sink is")
	})
}

func TestCloseWithAnEndedContextLosesNothingThatDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		hanging := &stuckSink{SinkFunc: discard, flush: make(chan struct{})}
		behind := &sinkLog{}
		slow := Buffered(SinkFunc(func(ctx context.Context, ev Event) error {
			time.Sleep(100 * time.Millisecond)
			return behind.WriteLine(ctx, ev, nil)
		}), 8, OverflowBlock)
		w := NewWriter(&file, WriterOptions{BufferSize: 1 << 20})
		e, err := NewEmitter(EmitterOptions{Sinks: []Sink{slow, hanging, w}})
		require.NoError(t, err)
		r, err := e.Run("r")
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		err = e.Close(ctx)
		require.Equal(t, turns.LastChance+300*time.Millisecond, time.Since(began))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "*agentevents.stuckSink: Flush did not finish")
		require.Len(t, joined(err), 1, "only the sink that hangs is named")
		require.Equal(t, 3, bytes.Count(file.Bytes(), []byte("\n")))
		require.Len(t, behind.events, 3)
		require.ErrorIs(t, w.WriteEvent(t.Context(), numbered(0)), ErrClosed, "the others are closed")
		require.Zero(t, hanging.closes.Load(), "a sink is not closed while it is flushed")

		close(hanging.flush)
		require.NoError(t, e.Close(ctx), "Close may be called again")
		require.EqualValues(t, 1, hanging.closes.Load())
		require.NoError(t, e.Close(ctx))
		require.EqualValues(t, 1, hanging.closes.Load())
	})
}

func TestCloseFlushesTheOthersWhenAnEventHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		hold := make(chan struct{})
		e, err := NewEmitter(EmitterOptions{Sinks: []Sink{
			NewWriter(&file, WriterOptions{BufferSize: 1 << 20}),
			SinkFunc(func(context.Context, Event) error { <-hold; return nil }),
		}})
		require.NoError(t, err)
		r, err := e.Run("r")
		require.NoError(t, err)
		go func() { _ = r.Emit(context.Background(), &TextDelta{}) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorContains(t, e.Close(ctx), "1 events are still being emitted")
		require.Equal(t, 5*time.Second, time.Since(began))
		require.NotZero(t, file.Len())
		close(hold)
		require.NoError(t, e.Close(t.Context()))
	})
}

func TestASinkThatHangsHoldsOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuckSink{SinkFunc: discard, flush: make(chan struct{}), late: errors.New("late")}
		e, err := NewEmitter(EmitterOptions{Sinks: []Sink{s}})
		require.NoError(t, err)
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			require.ErrorIs(t, e.Flush(ctx), context.DeadlineExceeded)
			cancel()
		}
		stacks := make([]byte, 1<<20)
		require.Equal(t, 1, bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("(*stuckSink).Flush(")))
		require.EqualValues(t, 1, s.flushes.Load())
		close(s.flush)
		synctest.Wait()
		err = e.Flush(t.Context())
		require.ErrorIs(t, err, s.late)
		require.Equal(t, 2, strings.Count(err.Error(), "late"), "the error that nobody waited for, and the one of this call")
		require.EqualValues(t, 2, s.flushes.Load())
	})
}

func TestASinkMayEndTheGoroutineThatFlushesOrClosesIt(t *testing.T) {
	e, err := NewEmitter(EmitterOptions{Sinks: []Sink{exitingCloser{discard}}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	require.ErrorIs(t, e.Flush(ctx), turns.ErrGoexit)
	err = e.Close(ctx)
	require.ErrorIs(t, err, turns.ErrGoexit)
	require.Len(t, joined(err), 2)
	require.NoError(t, e.Close(ctx))
}

type exitingCloser struct{ SinkFunc }

func (exitingCloser) Flush(context.Context) error { runtime.Goexit(); return nil }
func (exitingCloser) Close() error                { runtime.Goexit(); return nil }

func TestCloseWaitsForEventsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		closed := false
		s := &orderSink{note: func(s string) {
			switch s {
			case "write x":
				<-hold
				require.False(t, closed, "closed under an event")
			case "close x":
				closed = true
			}
		}, name: "x"}
		e, err := NewEmitter(EmitterOptions{Sinks: []Sink{s}})
		require.NoError(t, err)
		r, err := e.Run("r")
		require.NoError(t, err)
		var emitted error
		var wg sync.WaitGroup
		wg.Go(func() { emitted = r.Emit(t.Context(), &TextDelta{}) })
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = e.Close(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "1 events")
		require.False(t, closed)
		require.ErrorIs(t, r.Emit(t.Context(), &TextDelta{}), ErrClosed)

		results := make(chan error, 2)
		for range 2 { // Close may be called concurrently
			go func() { results <- e.Close(context.Background()) }()
		}
		synctest.Wait()
		require.False(t, closed)
		close(hold)
		require.NoError(t, <-results)
		require.NoError(t, <-results)
		wg.Wait()
		require.NoError(t, emitted)
		require.True(t, closed)
	})
}

// within fails the test when f does not return.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s does not return", what)
	}
}

func TestARunThatHangsHoldsUpNoOther(t *testing.T) {
	hold, hanging := make(chan struct{}), make(chan struct{})
	e, log := startEmitter(t, EmitterOptions{Sinks: []Sink{SinkFunc(func(_ context.Context, ev Event) error {
		if ev.Kind() == KindUsageObserved {
			close(hanging)
			<-hold
		}
		return nil
	})}})
	old, err := e.Run("r")
	require.NoError(t, err)
	require.NoError(t, old.Emit(t.Context(), &RunCompleted{}))
	snapshot := log.snapshot(t)
	late := make(chan error)
	go func() { late <- old.Emit(context.Background(), &UsageObserved{}) }()
	<-hanging

	within(t, "Resume of the run that hangs", func() {
		_, err := e.Resume(snapshot)
		require.ErrorContains(t, err, "is still being recorded", "its number would be used twice")
	})
	within(t, "Run", func() {
		other, err := e.Run("another")
		require.NoError(t, err)
		require.NoError(t, other.Emit(t.Context(), &TextDelta{}))
	})
	within(t, "Close of the run that hangs", func() { require.NoError(t, old.Close()) })
	close(hold)
	require.NoError(t, <-late, "it was on its way")
	require.ErrorIs(t, old.Emit(t.Context(), &UsageObserved{}), ErrClosed)
}

func TestAResumeThatIsRefusedLeavesTheOldHandlesAlone(t *testing.T) {
	e, log := startEmitter(t, EmitterOptions{MaxRuns: 1})
	r, err := e.Run("r")
	require.NoError(t, err)
	require.NoError(t, r.Emit(t.Context(), &RunCompleted{}))
	_, err = e.Run("another")
	require.NoError(t, err)
	_, err = e.Resume(log.snapshot(t))
	require.ErrorIs(t, err, ErrTooManyRuns)
	require.NoError(t, r.Emit(t.Context(), &UsageObserved{}))
}

func TestCloseRefusesLaterCallsWithErrClosed(t *testing.T) {
	e, log := startEmitter(t, EmitterOptions{})
	r, err := e.Run("r")
	require.NoError(t, err)
	a := r.Agent("a")
	require.NoError(t, e.Close(t.Context()))
	require.NoError(t, e.Close(t.Context()))
	require.ErrorIs(t, r.Emit(t.Context(), &TextDelta{}), ErrClosed)
	require.ErrorIs(t, errOf(r.Record(t.Context(), Event{Payload: &TextDelta{}})), ErrClosed)
	require.ErrorIs(t, a.To(t.Context(), StatusToolCall), ErrClosed)
	c, err := a.Call(t.Context(), &ToolCalled{ToolID: "t"})
	require.ErrorIs(t, err, ErrClosed)
	require.False(t, c.Recorded())
	_, err = e.Run("s")
	require.ErrorIs(t, err, ErrClosed)
	_, err = e.Resume(&RunSnapshot{RunState: RunState{RunID: "t"}})
	require.ErrorIs(t, err, ErrClosed)
	require.Empty(t, log.events)
}

// The error of an event that comes too late names it.
func TestClosedErrorsNameTheEvent(t *testing.T) {
	e, _ := startEmitter(t, EmitterOptions{})
	r, err := e.Run("r")
	require.NoError(t, err)
	other, err := e.Run("s")
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.EqualError(t, r.Emit(t.Context(), &RunPaused{}), `agentevents: closed: run.paused of run "r" was not recorded, the run is closed`)
	require.NoError(t, e.Close(t.Context()))
	require.EqualError(t, other.Agent("a").Emit(t.Context(), &TextDelta{Delta: "x"}), `agentevents: closed: agent.text.delta of run "s" was not recorded, the emitter is closed`)
	require.ErrorIs(t, other.Emit(t.Context(), nil), ErrClosed)
}

func TestSinksAreFlushedAndClosedOnceInOrder(t *testing.T) {
	var order []string
	note := func(s string) { order = append(order, s) }
	e, err := NewEmitter(EmitterOptions{Sinks: []Sink{
		&orderSink{note: note, name: "a"}, BestEffort(&orderSink{note: note, name: "b"}), &orderSink{note: note, name: "c"},
	}})
	require.NoError(t, err)
	require.NoError(t, e.Close(t.Context()))
	require.NoError(t, e.Close(t.Context()))
	var closes []string
	for _, s := range order {
		if strings.HasPrefix(s, "close") {
			closes = append(closes, s)
		}
	}
	require.Equal(t, []string{"flush a", "flush b", "flush c", "close a", "close b", "close c"}, order[:6])
	require.Equal(t, []string{"close a", "close b", "close c"}, closes)
}

func TestErrorsOfRequiredSinksComeBackJoinedAndOthersStillGetTheEvent(t *testing.T) {
	one, two, three := errors.New("one"), errors.New("two"), errors.New("three")
	after := &sinkLog{}
	fail := func(err error) SinkFunc { return func(context.Context, Event) error { return err } }
	var reported []error
	r, log := startRun(t, EmitterOptions{
		Sinks:   []Sink{fail(one), BestEffort(fail(two)), fail(three), after},
		OnError: func(err error) { reported = append(reported, err) },
	})
	err := r.Emit(t.Context(), &TextDelta{})
	require.ErrorIs(t, err, one)
	require.ErrorIs(t, err, three)
	require.NotErrorIs(t, err, two)
	var failed *SinkError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, &SinkError{Sink: "agentevents.SinkFunc", RunID: "r", Sequence: 0, Err: one}, failed)
	require.Contains(t, err.Error(), "do not retry")
	require.NotErrorAs(t, err, new(*RuleError))
	require.Len(t, log.events, 1)
	require.Len(t, after.events, 1)
	require.Len(t, reported, 3, "OnError hears of all")
	for i, want := range []error{one, two, three} {
		require.Equal(t, &SinkError{Sink: "agentevents.SinkFunc", RunID: "r", Sequence: 0, Err: want}, reported[i])
	}

	require.Error(t, r.Emit(t.Context(), &TextDelta{}))
	require.EqualValues(t, 1, log.last(t).Sequence, "the event was recorded all the same")
}

func TestWithoutOnErrorBestEffortErrorsComeWithFlushAndClose(t *testing.T) {
	broken := errors.New("broken")
	r, _ := startRun(t, EmitterOptions{Sinks: []Sink{BestEffort(SinkFunc(func(context.Context, Event) error { return broken }))}})
	e := r.s.e
	for range 100 {
		require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
	}
	err := e.Flush(t.Context())
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "84 more errors", "only a few are kept")
	require.NoError(t, e.Flush(t.Context()), "once")
	require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
	require.ErrorIs(t, e.Close(t.Context()), broken)
}

func TestPanicsOfSinksTracersCommittersAndRedactorsAreContained(t *testing.T) {
	cause := errors.New("cause")
	var reported []error
	after := &sinkLog{}
	r, log := startRun(t, EmitterOptions{
		Sinks: []Sink{
			SinkFunc(func(context.Context, Event) error { panic(cause) }),
			tracerSink{discard, func(context.Context, Event) TraceContext { panic("trace") }},
			committerSink{discard, func(context.Context) error { panic("commit") }},
			after,
		},
		Redaction: &Policy{Redactor: redactorFunc(func(Place, string) (string, error) { panic("redact") })},
		OnError:   func(err error) { reported = append(reported, err) },
	})
	err := r.Emit(t.Context(), &TextDelta{Delta: "x"})
	require.ErrorIs(t, err, cause, "a PanicError unwraps to the error")
	var values []any
	for _, one := range joined(err) {
		var failed *SinkError
		require.ErrorAs(t, one, &failed)
		var p *PanicError
		require.ErrorAs(t, failed.Err, &p)
		require.NotEmpty(t, p.Stack)
		values = append(values, p.Value)
	}
	require.ElementsMatch(t, []any{cause, "trace", "commit"}, values)
	require.Len(t, after.events, 1)
	require.Len(t, reported, 4, "OnError hears of all")
	var p *PanicError
	require.ErrorAs(t, reported[0], &p)
	require.Equal(t, "redact", p.Value)
	require.NoError(t, errOnly(r.Emit(t.Context(), &TextDelta{})), "no lock is left")
	require.EqualValues(t, 1, log.last(t).Sequence)

	e, err := NewEmitter(EmitterOptions{Sinks: []Sink{panickyCloser{discard}}})
	require.NoError(t, err)
	require.ErrorAs(t, e.Flush(t.Context()), &p)
	require.ErrorAs(t, e.Close(t.Context()), &p)
}

// errOnly drops errors of recorded events.
func errOnly(err error) error {
	if errors.As(err, new(*SinkError)) {
		return nil
	}
	return err
}

// joined takes errors.Join apart, at any depth.
func joined(err error) []error {
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range many.Unwrap() {
		out = append(out, joined(e)...)
	}
	return out
}

type panickyCloser struct{ SinkFunc }

func (panickyCloser) Flush(context.Context) error { panic("flush") }
func (panickyCloser) Close() error                { panic("close") }

func TestAPanicOfTheCallersOwnFunctionsDoesNotReachTheAgent(t *testing.T) {
	var told []error
	report := func(err error) { told = append(told, err) }
	for name, o := range map[string]EmitterOptions{
		"Clock":                            {Clock: func() time.Time { panic("caller") }},
		"NewID":                            {NewID: func() string { panic("caller") }, OnError: report},
		"OnError":                          {OnError: func(error) { panic("caller") }},
		"OnViolation":                      {OnViolation: func(*RuleError) { panic("caller") }},
		"OnViolation, and OnError is told": {OnViolation: func(*RuleError) { panic("caller") }, OnError: report},
	} {
		told = nil
		o.Lifecycle, o.Sinks = LifecycleDerived, []Sink{BestEffort(SinkFunc(func(context.Context, Event) error { return errors.New("down") }))}
		r, log := startRun(t, o)
		a, ran := r.Agent("a"), false
		require.NoError(t, a.Emit(t.Context(), &AgentStarted{}), name)
		_, err := a.Do(t.Context(), &ToolCalled{ToolID: "t"}, func(context.Context) (JSON, error) { ran = true; return "1", nil })
		require.NoError(t, err, name)
		require.True(t, ran, name)
		var refused *RuleError
		require.ErrorAs(t, a.Emit(t.Context(), &ToolReturned{CallID: "none", ToolID: "t", Status: ToolStatusOK}), &refused, name)
		require.Len(t, log.events, 5, name)
		require.NotEmpty(t, log.last(t).ID, name)
		require.WithinDuration(t, time.Now(), log.last(t).Time, time.Minute, name)

		told = append(told, r.s.e.Close(t.Context()))
		var p *PanicError
		require.ErrorAs(t, errors.Join(told...), &p, name)
		field, _, _ := strings.Cut(name, ",")
		require.ErrorContains(t, errors.Join(told...), "agentevents: EmitterOptions."+field, name)
	}
}

func TestAPanicOfCountTokensLeavesTheRunUsable(t *testing.T) {
	broken := true
	r, log := startRun(t, EmitterOptions{Redaction: &Policy{Reasoning: VerbositySummary, CountTokens: func(string) int {
		if broken {
			panic("caller")
		}
		return 1
	}}})
	require.Panics(t, func() { _ = r.Emit(t.Context(), &AgentReasoned{Reasoning: "x"}) })
	broken = false
	require.NoError(t, r.Emit(t.Context(), &AgentReasoned{Reasoning: "x"}))
	require.Zero(t, log.last(t).Sequence)
	require.NoError(t, r.s.e.Close(t.Context()))
}

func TestACommitterMayEmitIntoTheSameRun(t *testing.T) {
	var r *Run
	depth := 0
	s := committerSink{discard, func(ctx context.Context) error {
		if depth++; depth > 1 {
			return nil
		}
		return r.Emit(ctx, &TextDelta{Delta: "from Commit"})
	}}
	r, log := startRun(t, EmitterOptions{Sinks: []Sink{s}})
	done := make(chan error, 1)
	go func() { done <- r.Emit(context.Background(), &TextDelta{}) }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("deadlock: Commit is called with the lock held")
	}
	require.Len(t, log.events, 2)
}

func TestEmittersOfOneRunCanShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 8
		waiting := make(chan chan struct{}, n)
		s := committerSink{discard, func(context.Context) error {
			done := make(chan struct{})
			waiting <- done
			<-done
			return nil
		}}
		r, log := startRun(t, EmitterOptions{Sinks: []Sink{s}})
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() { require.NoError(t, r.Emit(context.Background(), &TextDelta{})) })
		}
		synctest.Wait()
		require.Len(t, waiting, n, "all are in Commit at the same time")
		require.Len(t, log.events, n)
		for range n {
			close(<-waiting)
		}
		wg.Wait()
	})
}

func TestCommitErrorsComeBackAndARefusedPayloadCommitsNothing(t *testing.T) {
	broken := errors.New("fsync")
	commits := 0
	r, _ := startRun(t, EmitterOptions{Sinks: []Sink{committerSink{discard, func(context.Context) error { commits++; return broken }}}})
	err := r.Emit(t.Context(), &TextDelta{})
	var failed *SinkError
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, err, broken)
	require.Equal(t, "r", failed.RunID)
	require.Error(t, r.Emit(t.Context(), &ApprovalGranted{ApprovalID: "x"}))
	require.Equal(t, 1, commits)

	var reported []error
	r, _ = startRun(t, EmitterOptions{
		Sinks:   []Sink{BestEffort(committerSink{discard, func(context.Context) error { return broken }})},
		OnError: func(err error) { reported = append(reported, err) },
	})
	require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
	require.Len(t, reported, 1, "a best-effort committer's error goes to OnError")
}

func TestNewEmitterRefusesBadOptions(t *testing.T) {
	tracer := tracerSink{discard, func(context.Context, Event) TraceContext { return TraceContext{} }}
	for name, o := range map[string]EmitterOptions{
		"two tracers":    {Sinks: []Sink{tracer, BestEffort(tracer)}},
		"nil sink":       {Sinks: []Sink{&sinkLog{}, nil}},
		"nil in effort":  {Sinks: []Sink{BestEffort(nil)}},
		"nil function":   {Sinks: []Sink{SinkFunc(nil)}},
		"two in effort":  {Sinks: []Sink{BestEffort(tracer), BestEffort(BestEffort(tracer))}},
		"nil two levels": {Sinks: []Sink{BestEffort(BestEffort(nil))}},
	} {
		e, err := NewEmitter(o)
		require.Error(t, err, name)
		require.Nil(t, e, name)
	}
	for field, o := range map[string]EmitterOptions{
		`Lifecycle is "lax"`:             {Lifecycle: "lax"},
		"Mode is 77":                     {Mode: 77},
		"Redaction.Content is 99":        {Redaction: &Policy{Content: 99}},
		"Redaction.Meta is 4":            {Redaction: &Policy{Meta: ActionDrop + 1}},
		"Redaction.Reasoning is \"OFF\"": {Redaction: &Policy{Reasoning: "OFF"}},
	} {
		e, err := NewEmitter(o)
		require.ErrorContains(t, err, "EmitterOptions."+field)
		require.Nil(t, e)
	}
	for field, o := range map[string]EmitterOptions{
		"MaxRuns is -1":                   {MaxRuns: -1},
		"MaxLine is -5":                   {MaxLine: -5},
		"MaxLine is 10":                   {MaxLine: 10},
		"Redaction.ReasoningTokens is -1": {Redaction: &Policy{ReasoningTokens: -1}},
	} {
		_, err := NewEmitter(o)
		require.ErrorContains(t, err, "EmitterOptions."+field)
		require.ErrorAs(t, err, new(*OptionError))
	}
	e, err := NewEmitter(EmitterOptions{})
	require.NoError(t, err, "the zero Options are usable")
	r, err := e.Run("")
	require.NoError(t, err)
	require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
}

func TestTracerFillsOnlyEmptyFields(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Sinks: []Sink{tracerSink{discard, func(context.Context, Event) TraceContext {
		return TraceContext{"T", "S", "P"}
	}}}})
	require.NoError(t, errOf(r.Record(t.Context(), Event{SpanID: "mine", Payload: &TextDelta{}})))
	ev := log.last(t)
	require.Equal(t, []string{"T", "mine", "P"}, []string{ev.TraceID, ev.SpanID, ev.ParentSpanID})
}

func TestLineSinksShareOneEncodingAndItIsAppendJSONs(t *testing.T) {
	var first *byte
	check := func(ev Event, line []byte) {
		want, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		require.Equal(t, string(want), string(line))
		if first == nil {
			first = &line[0]
		} else {
			require.Same(t, first, &line[0], "encoded twice")
		}
	}
	r, _ := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Mode: ModeObserve, Sinks: []Sink{lineSink(check), SinkFunc(discard), lineSink(check)}})
	for info := range Kinds() {
		first = nil
		require.NoError(t, r.Agent("a").Emit(t.Context(), filledPayload(t, info.Kind)))
		require.NotNil(t, first)
	}
}

type lineSink func(ev Event, line []byte)

func (lineSink) WriteEvent(context.Context, Event) error { panic("not for line sinks") }
func (s lineSink) WriteLine(_ context.Context, ev Event, line []byte) error {
	s(ev, line)
	return nil
}

// Emit does not return: its error comes another way.
func TestASinkThatEndsTheGoroutineFailsAndOthersGetTheEvent(t *testing.T) {
	exits := func(context.Context, Event) error { runtime.Goexit(); return nil }
	broken := errors.New("broken")
	for name, s := range map[string]Sink{
		"sink":        SinkFunc(exits),
		"best effort": BestEffort(SinkFunc(exits)),
		"tracer":      tracerSink{discard, func(context.Context, Event) TraceContext { runtime.Goexit(); return TraceContext{} }},
	} {
		for _, hears := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				after, commits, released := &sinkLog{}, 0, []string{}
				o := EmitterOptions{Sinks: []Sink{
					s, SinkFunc(func(context.Context, Event) error { return broken }), SinkFunc(exits), after,
					committerSink{discard, func(context.Context) error { commits++; return nil }},
					releaserSink{SinkFunc(discard), func(id string) { released = append(released, id) }},
				}}
				var told []error
				if hears {
					o.OnError = func(err error) { told = append(told, err) }
				}
				r, log := startRun(t, o)
				returned := false
				within(t, "the goroutine", func() {
					done := make(chan struct{})
					go func() {
						defer close(done)
						_ = r.Emit(context.Background(), &RunCompleted{})
						returned = true
					}()
					<-done
				})
				require.False(t, returned)
				require.Len(t, log.events, 1)
				require.Equal(t, log.lines, after.lines)
				require.Equal(t, 1, commits)
				require.Equal(t, []string{"r"}, released)
				_, open := r.s.e.Lookup("r")
				require.False(t, open, "the run is released")
				if !hears {
					told = joined(r.s.e.Flush(t.Context()))
				}
				require.Len(t, told, 3)
				exited := 0
				for _, err := range told {
					var failed *SinkError
					require.ErrorAs(t, err, &failed)
					require.Equal(t, "r", failed.RunID)
					if errors.Is(err, turns.ErrGoexit) {
						exited++
					} else {
						require.ErrorIs(t, err, broken)
					}
				}
				require.Equal(t, 2, exited)
				within(t, "Close", func() { require.NoError(t, r.s.e.Close(context.Background())) })
			})
		}
	}
}

type releaserSink struct {
	SinkFunc
	release func(string)
}

func (s releaserSink) ReleaseRun(_ context.Context, id string) error { s.release(id); return nil }

// A value whose constructor has no error returns it with its first call.
func TestOptionsOfReadersAndFolds(t *testing.T) {
	log := nativeLine(0)
	for name, err := range map[string]error{
		"reader": func() (last error) {
			for _, err := range NewReader(strings.NewReader(log), ReaderOptions{MaxLine: -5}).All() {
				last = errors.Join(last, err)
			}
			return last
		}(),
		"fold of a reader": errOf(FoldLog(NewReader(strings.NewReader(log), ReaderOptions{MaxLine: -5}), FoldOptions{})),
		"workers":          errOf(FoldLog(NewReader(strings.NewReader(log), ReaderOptions{}), FoldOptions{Workers: -1})),
		"lifecycle":        errOf(FoldLog(NewReader(strings.NewReader(log), ReaderOptions{}), FoldOptions{Lifecycle: "lax"})),
		"resumed fold":     errOf(ResumeFold(&RunSnapshot{RunState: RunState{RunID: "r"}}, FoldOptions{Lifecycle: "lax"})),
		"writer":           NewWriter(io.Discard, WriterOptions{BufferSize: -1}).WriteEvent(t.Context(), numbered(0)),
		"sink":             errOf(NewEmitter(EmitterOptions{Sinks: []Sink{NewWriter(io.Discard, WriterOptions{BufferSize: -1})}})),
		"file":             errOf(OpenFile(filepath.Join(t.TempDir(), "log"), WriterOptions{BufferSize: -1})),
		"policy": func() (last error) {
			for _, err := range (&Policy{ReasoningTokens: -1}).Redact(NewReader(strings.NewReader(log), ReaderOptions{}).All()) {
				last = err
			}
			return last
		}(),
	} {
		require.ErrorAs(t, err, new(*OptionError), name)
	}
	f := NewFold(FoldOptions{Lifecycle: "lax"})
	f.Apply(Event{ID: "1", RunID: "r", AgentID: "a", Time: noon(), Payload: &AgentTransition{From: StatusThinking, To: StatusToolCall}})
	require.NotZero(t, f.Snapshot().ViolationCount, "a table that nobody knows allows nothing")
}

// A toldSink notes its calls in order.
type toldSink struct {
	mu    sync.Mutex
	calls []string
	fail  string // the call that fails, or panics with a !
	hold  chan struct{}
	on    func(ctx context.Context, call string)
}

func (s *toldSink) note(ctx context.Context, format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	s.calls = append(s.calls, call)
	s.mu.Unlock()
	if s.on != nil {
		s.on(ctx, call)
	}
	switch {
	case s.fail == call:
		return errors.New("fails")
	case s.fail == call+"!":
		panic("boom")
	}
	return nil
}

func (s *toldSink) WriteEvent(ctx context.Context, ev Event) error {
	return s.note(ctx, "%s %d", ev.Kind(), ev.Sequence)
}

func (s *toldSink) ResumeRun(ctx context.Context, snapshot *RunSnapshot) error {
	defer func() { snapshot.RunID = "the snapshot belongs to the sink" }()
	return s.note(ctx, "resume %s %d", snapshot.RunID, snapshot.NextSequence)
}

func (s *toldSink) ReleaseRun(ctx context.Context, runID string) error {
	return s.note(ctx, "release %s", runID)
}

func (s *toldSink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.calls, ", ")
}

func TestSinksAreToldOnceThatARunIsReleased(t *testing.T) {
	ctx := t.Context()
	for name, test := range map[string]struct {
		o    EmitterOptions
		do   func(e *Emitter, r *Run)
		want string
	}{
		"by its terminal event": {do: func(_ *Emitter, r *Run) {
			require.NoError(t, r.Emit(ctx, &RunCompleted{}))
			require.NoError(t, r.Emit(ctx, &SessionCompleted{}))
			require.NoError(t, r.Close())
		}, want: "run.completed 0, release r, session.completed 1"},
		"behind what follows the end at once": {
			o: EmitterOptions{Follow: func(ev Event) []Event { return []Event{{Payload: &SessionCompleted{}}} }},
			do: func(_ *Emitter, r *Run) {
				require.NoError(t, r.Emit(ctx, &RunFailed{}))
			}, want: "run.failed 0, session.completed 1, release r"},
		"by Run.Close, behind what was held back": {
			o: EmitterOptions{Redaction: &Policy{Secrets: secretsOf(t, "correct horse")}},
			do: func(_ *Emitter, r *Run) {
				require.NoError(t, r.Emit(ctx, &TextDelta{Delta: "correct ho"}))
				require.NoError(t, r.Close())
				require.NoError(t, r.Close())
			}, want: "agent.text.delta 0, agent.text.delta 1, release r"},
		"by Emitter.Close": {do: func(e *Emitter, r *Run) {
			require.NoError(t, r.Emit(ctx, &RunPaused{}))
			require.NoError(t, e.Close(ctx))
			require.NoError(t, e.Close(ctx))
			require.NoError(t, r.Close())
		}, want: "run.paused 0, release r"},
		"by a second end that is only reported": {o: EmitterOptions{Mode: ModeObserve}, do: func(_ *Emitter, r *Run) {
			require.NoError(t, r.Emit(ctx, &RunCompleted{}))
			require.NoError(t, r.Emit(ctx, &RunCompleted{}))
		}, want: "run.completed 0, release r, run.completed 1"},
		"and again after it was resumed": {do: func(e *Emitter, r *Run) {
			require.NoError(t, r.Emit(ctx, &RunPaused{}))
			require.NoError(t, r.Close())
			snapshot := &RunSnapshot{RunState: RunState{RunID: "r", NextSequence: 1}}
			again, err := e.Resume(snapshot)
			require.NoError(t, err)
			require.Equal(t, "r", snapshot.RunID)
			require.NoError(t, again.Emit(ctx, &RunCompleted{}))
		}, want: "run.paused 0, release r, resume r 1, run.completed 1, release r"},
	} {
		for wrapper, wrap := range map[string]func(Sink) Sink{
			"direct":       func(s Sink) Sink { return s },
			"BestEffort":   BestEffort,
			"SkipReplayed": SkipReplayed,
			"Buffered":     func(s Sink) Sink { return Buffered(s, 1, OverflowBlock) },
			"all of them": func(s Sink) Sink {
				return BestEffort(SkipReplayed(Buffered(BestEffort(SkipReplayed(s)), 8, OverflowBlock)))
			},
			"buffers twice": func(s Sink) Sink { return Buffered(Buffered(s, 8, OverflowBlock), 8, OverflowBlock) },
		} {
			told := &toldSink{}
			test.o.Sinks = []Sink{wrap(told)}
			r, _ := startRun(t, test.o)
			test.do(r.s.e, r)
			require.NoError(t, r.s.e.Close(ctx))
			require.Equal(t, test.want, told.String(), "%s: %s", name, wrapper)
		}
	}
}

func secretsOf(t *testing.T, secret string) *Secrets {
	var s Secrets
	require.NoError(t, s.Add(secret))
	return &s
}

// Run.Close waits for nothing: whoever is emitting tells the sinks.
func TestReleaseIsToldByTheGoroutineThatEmits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &toldSink{hold: make(chan struct{})}
		r, _ := startRun(t, EmitterOptions{Sinks: []Sink{told}})
		go func() { _ = r.Emit(context.Background(), &RunPaused{}) }()
		synctest.Wait()
		require.NoError(t, r.Close())
		close(told.hold)
		synctest.Wait()
		require.Equal(t, "run.paused 0, release r", told.String())
	})
}

// A run goes on when its old handle is done, so that no sink has two events of it at a time.
func TestARunGoesOnWhenItsOldHandleIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		told := &toldSink{}
		r, _ := startRun(t, EmitterOptions{Sinks: []Sink{told, SinkFunc(func(context.Context, Event) error { <-hold; return nil })}})
		go func() { _ = r.Emit(context.Background(), &RunPaused{}) }()
		synctest.Wait()
		require.NoError(t, r.Close())
		s := &RunSnapshot{RunState: RunState{RunID: "r", NextSequence: 1}}
		_, err := r.s.e.Resume(s)
		require.ErrorContains(t, err, "is still being recorded")
		close(hold)
		synctest.Wait()
		_, err = r.s.e.Resume(s)
		require.NoError(t, err)
		require.Equal(t, "run.paused 0, release r, resume r 1", told.String())
	})
}

func TestConcurrentSafeAResumedRunEmitsNothingBeforeTheSinksWereTold(t *testing.T) {
	var e *Emitter
	var wg sync.WaitGroup
	told := &toldSink{}
	told.on = func(_ context.Context, call string) {
		if call != "resume r 7" {
			return
		}
		r, ok := e.Lookup("r")
		require.True(t, ok)
		wg.Go(func() { require.NoError(t, r.Emit(context.Background(), &RunPaused{})) })
		for range 1000 {
			runtime.Gosched()
		}
		told.mu.Lock()
		defer told.mu.Unlock()
		told.calls = append(told.calls, "told")
	}
	e, _ = startEmitter(t, EmitterOptions{Sinks: []Sink{told}})
	_, err := e.Resume(&RunSnapshot{RunState: RunState{RunID: "r", NextSequence: 7}})
	require.NoError(t, err)
	wg.Wait()
	require.Equal(t, "resume r 7, told, run.paused 7", told.String())
}

func TestASinkThatFailsWhenItIsTold(t *testing.T) {
	ctx := t.Context()
	snapshot := &RunSnapshot{RunState: RunState{RunID: "r", NextSequence: 1}}
	var failed *SinkError
	for _, fail := range []string{"resume r 1", "resume r 1!"} {
		first, told := &toldSink{}, &toldSink{fail: fail}
		e, _ := startEmitter(t, EmitterOptions{Sinks: []Sink{first, told}})
		r, err := e.Resume(snapshot)
		require.Nil(t, r)
		require.ErrorAs(t, err, &failed)
		require.ErrorContains(t, err, `sink *agentevents.toldSink: ResumeRun of run "r": `)
		_, open := e.Lookup("r")
		require.False(t, open)
		require.Equal(t, "resume r 1, release r", first.String())
		told.fail = ""
		_, err = e.Resume(snapshot)
		require.NoError(t, err, "it may be tried again")

		var reports []error
		for _, wrapped := range []Sink{BestEffort(&toldSink{fail: fail}), BestEffort(&toldSink{fail: "release r"})} {
			e, _ = startEmitter(t, EmitterOptions{Sinks: []Sink{wrapped}, OnError: func(err error) { reports = append(reports, err) }})
			r, err = e.Resume(snapshot)
			require.NoError(t, err)
			require.NoError(t, r.Close())
		}
		require.Len(t, reports, 2)
		require.ErrorContains(t, reports[1], `ReleaseRun of run "r": fails`)

		b := Buffered(&toldSink{fail: fail}, 1, OverflowBlock)
		e, _ = startEmitter(t, EmitterOptions{Sinks: []Sink{b}})
		_, err = e.Resume(snapshot)
		require.NoError(t, err)
		require.ErrorAs(t, e.Flush(ctx), &failed)
		require.NoError(t, e.Close(ctx))
	}
	for _, fail := range []string{"release r", "release r!"} {
		r, _ := startRun(t, EmitterOptions{Sinks: []Sink{&toldSink{fail: fail}}})
		require.ErrorAs(t, r.Close(), &failed)
		r, _ = startRun(t, EmitterOptions{Sinks: []Sink{&toldSink{fail: fail}}})
		require.ErrorAs(t, r.Emit(ctx, &RunCompleted{}), &failed)
		require.Empty(t, failed.RunID, "no event failed")
	}
}

// A sink that is told may not wait for itself, and may make calls that do not wait.
func TestASinkThatIsToldMayCallBack(t *testing.T) {
	var e *Emitter
	var errs []error
	told := &toldSink{on: func(ctx context.Context, call string) {
		if r, ok := e.Lookup("r"); ok && call != "run.paused 1" {
			errs = append(errs, r.Emit(ctx, &TextDelta{}))
			r.State()
		}
	}}
	e, _ = startEmitter(t, EmitterOptions{Sinks: []Sink{told}})
	within(t, "Resume and Close", func() {
		r, err := e.Resume(&RunSnapshot{RunState: RunState{RunID: "r", NextSequence: 1}})
		require.NoError(t, err)
		require.NoError(t, r.Emit(t.Context(), &RunPaused{}))
		require.NoError(t, r.Close())
	})
	require.Len(t, errs, 2)
	for _, err := range errs {
		require.ErrorIs(t, err, ErrReentrant)
	}
}

func TestBufferedDropsNothingThatTheSinkIsTold(t *testing.T) {
	for policy, want := range map[Overflow]string{
		OverflowDropNewest: "run.paused 0, run.paused 1, run.completed 2, release r, release s",
		OverflowDropOldest: "run.paused 0, run.completed 2, release r, session.completed 3, release s",
	} {
		synctest.Test(t, func(t *testing.T) {
			told := &toldSink{hold: make(chan struct{})}
			b := Buffered(told, 2, policy)
			e, _ := startEmitter(t, EmitterOptions{Sinks: []Sink{BestEffort(b)}})
			r, err := e.Run("r")
			require.NoError(t, err)
			s, err := e.Run("s")
			require.NoError(t, err)
			require.NoError(t, r.Emit(t.Context(), &RunPaused{}))
			synctest.Wait() // it is under way
			for _, p := range []Payload{&RunPaused{}, &RunCompleted{}, &SessionCompleted{}} {
				require.NoError(t, r.Emit(t.Context(), p))
			}
			require.NoError(t, s.Close())
			close(told.hold)
			synctest.Wait()
			require.Equal(t, want, told.String())
			_ = e.Close(t.Context())
		})
	}
}

// everything is a sink that has all optional interfaces which events reach.
type everything struct {
	kinds, traced []Kind
	commits       int
	flushes       int
}

func (s *everything) WriteEvent(_ context.Context, ev Event) error {
	s.kinds = append(s.kinds, ev.Kind())
	return nil
}

func (s *everything) Trace(_ context.Context, ev Event) TraceContext {
	s.traced = append(s.traced, ev.Kind())
	return TraceContext{}
}
func (s *everything) Commit(context.Context) error { s.commits++; return nil }
func (s *everything) Flush(context.Context) error  { s.flushes++; return nil }

func TestWithoutDeltas(t *testing.T) {
	ctx := t.Context()
	var file, page bytes.Buffer
	all, behind := &everything{}, &everything{}
	b := Buffered(WithoutDeltas(SinkFunc(behind.WriteEvent)), 8, OverflowBlock)
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Sinks: []Sink{
		WithoutDeltas(NewWriter(&file, WriterOptions{BufferSize: 1 << 10})),
		BestEffort(WithoutDeltas(SkipReplayed(all))), b,
		NewWriter(&page, WriterOptions{}),
	}})
	a := r.Agent("a")
	require.NoError(t, a.Emit(ctx, &AgentStarted{}))
	for i, delta := range []string{"o", "ne"} {
		require.NoError(t, a.Emit(ctx, &TextDelta{BlockID: "b", Delta: delta, Index: Some(i)}))
	}
	require.NoError(t, a.Emit(ctx, &TextCompleted{BlockID: "b", Text: "one"}))
	require.NoError(t, a.Emit(ctx, &AgentEnded{}))
	require.NoError(t, r.s.e.Close(ctx))

	lasting := []Kind{KindAgentStarted, KindTextCompleted, KindAgentEnded}
	require.Equal(t, lasting, all.kinds)
	require.Equal(t, lasting, all.traced)
	require.Equal(t, lasting, behind.kinds)
	require.Equal(t, 3, all.commits)
	require.Equal(t, 1, all.flushes)
	require.Equal(t, strings.Join(log.lines, "\n")+"\n", page.String())
	require.Equal(t, log.lines[0]+"\n"+log.lines[3]+"\n"+log.lines[4]+"\n", file.String())
	var snapshots []string
	for _, text := range []string{file.String(), page.String()} {
		l, err := FoldLog(NewReader(strings.NewReader(text), ReaderOptions{}), FoldOptions{})
		require.NoError(t, err)
		snapshots = append(snapshots, string(l.Snapshot("r").AppendJSON(nil)))
	}
	require.Equal(t, snapshots[0], snapshots[1])

	direct := &everything{}
	for _, ev := range log.events {
		require.NoError(t, WithoutDeltas(direct).WriteEvent(ctx, ev))
	}
	require.Equal(t, lasting, direct.kinds)
}

// A commit covers the events that the sink got, also if a delta causes a lasting one.
func TestWithoutDeltasCommitsEventsThatFollowADelta(t *testing.T) {
	all := &everything{}
	r, _ := startRun(t, EmitterOptions{
		Sinks: []Sink{WithoutDeltas(all)},
		Follow: func(ev Event) []Event {
			if p, ok := ev.Payload.(*TextDelta); ok && p.Delta == "!" {
				return []Event{{Payload: &RunPaused{}}}
			}
			return nil
		},
	})
	require.NoError(t, r.Emit(t.Context(), &TextDelta{Delta: "?"}))
	require.Zero(t, all.commits)
	require.NoError(t, r.Emit(t.Context(), &TextDelta{Delta: "!"}))
	require.Equal(t, 1, all.commits)
	require.Equal(t, []Kind{KindRunPaused}, all.kinds)
}

// A log of which nobody wants the deltas' lines does not encode them.
func TestWithoutDeltasEncodesNoDelta(t *testing.T) {
	r, err := NewEmitter(EmitterOptions{Sinks: []Sink{WithoutDeltas(NewWriter(&bytes.Buffer{}, WriterOptions{}))}})
	require.NoError(t, err)
	run, err := r.Run("r")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &TextDelta{Delta: "x"}))
	require.Empty(t, run.s.line)
	require.NoError(t, run.Emit(t.Context(), &RunPaused{}))
	require.NotEmpty(t, run.s.line)
}
