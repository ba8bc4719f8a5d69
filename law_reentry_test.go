package agentevents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentevents/agentevents/internal/reentry"
	"github.com/stretchr/testify/require"
)

// callsBack returns the calls of a sink that wait for the sink itself.
func callsBack(r *Run) map[string]func(context.Context) error {
	e := r.s.e
	return map[string]func(context.Context) error{
		"Run.Emit":   func(ctx context.Context) error { return r.Emit(ctx, &TextDelta{}) },
		"Run.Record": func(ctx context.Context) error { return errOf(r.Record(ctx, Event{Payload: &TextDelta{}})) },
		"Agent.Call": func(ctx context.Context) error {
			_, err := r.Agent("a").Call(ctx, &ToolCalled{ToolID: "t"})
			return err
		},
		"Emitter.Flush": e.Flush,
		"Emitter.Close": e.Close,
	}
}

func TestACallBackThatWouldWaitForItsSinkIsAnError(t *testing.T) {
	type key struct{}
	var back func(context.Context) error
	var got error
	call := func(ctx context.Context) { got = back(context.WithValue(ctx, key{}, "derived")) }
	for where, s := range map[string]Sink{
		"WriteEvent": SinkFunc(func(ctx context.Context, _ Event) error { call(ctx); return nil }),
		"Trace":      tracerSink{discard, func(ctx context.Context, _ Event) TraceContext { call(ctx); return TraceContext{} }},
	} {
		r, log := startRun(t, EmitterOptions{Sinks: []Sink{s}})
		for name, f := range callsBack(r) {
			back = f
			within(t, where+": "+name, func() { require.NoError(t, r.Emit(t.Context(), &RunPaused{})) })
			require.ErrorIs(t, got, ErrReentrant, "%s: %s", where, name)
		}
		require.NotContains(t, log.kinds(), KindTextDelta)
		back = func(context.Context) error { return nil }
		require.NoError(t, r.Emit(t.Context(), &TextDelta{}), "nothing is closed")
	}
}

func TestASinkMayCallMethodsThatDoNotWait(t *testing.T) {
	var r *Run
	var errs []error
	r, _ = startRun(t, EmitterOptions{Sinks: []Sink{SinkFunc(func(ctx context.Context, ev Event) error {
		if ev.RunID != "r" {
			return nil
		}
		e := r.s.e
		other, err := e.Run("other")
		errs = append(errs, err, other.Emit(ctx, &TextDelta{}))
		errs = append(errs, r.Close())
		_, err = e.Resume(&RunSnapshot{RunState: RunState{RunID: "r", NextSequence: 1}})
		require.ErrorContains(t, err, "is still being recorded")
		return nil
	})}})
	within(t, "Emit", func() { require.NoError(t, r.Emit(t.Context(), &TextDelta{})) })
	require.Len(t, errs, 3)
	require.NoError(t, errors.Join(errs...))
	require.ErrorIs(t, r.Emit(t.Context(), &TextDelta{}), ErrClosed)
}

func TestCommitMayNotCloseTheEmitter(t *testing.T) {
	var r *Run
	var got error
	r, _ = startRun(t, EmitterOptions{Sinks: []Sink{committerSink{discard, func(ctx context.Context) error { got = r.s.e.Close(ctx); return nil }}}})
	within(t, "Emit", func() { require.NoError(t, r.Emit(t.Context(), &TextDelta{})) })
	require.ErrorIs(t, got, ErrReentrant)
}

func TestOnErrorAndOnViolationMayCloseTheEmitter(t *testing.T) {
	fails := SinkFunc(func(_ context.Context, ev Event) error {
		if ev.Kind() == KindTextDelta {
			return errors.New("fails")
		}
		return nil
	})
	for _, p := range []Payload{&TextDelta{}, &ApprovalGranted{ApprovalID: "not requested"}} {
		var r *Run
		got := errors.New("nothing was told")
		stop := func() { got = r.s.e.Close(context.Background()) }
		r, _ = startRun(t, EmitterOptions{
			Sinks: []Sink{BestEffort(fails)}, Mode: ModeObserve, OnError: func(error) { stop() }, OnViolation: func(*RuleError) { stop() },
		})
		within(t, "Emit", func() { require.NoError(t, r.Emit(t.Context(), p)) })
		require.NoError(t, got)
		require.ErrorIs(t, r.Emit(t.Context(), &TextDelta{}), ErrClosed)
	}
}

// meeting returns an emitter with runs a and b, whose sink lets the events of
// both meet and then emits into the other run.
func meeting(t *testing.T) (runs [2]*Run, errs chan error) {
	var met sync.WaitGroup
	met.Add(2)
	errs = make(chan error, 2)
	e, err := NewEmitter(EmitterOptions{Sinks: []Sink{SinkFunc(func(ctx context.Context, ev Event) error {
		if ev.Kind() == KindTextDelta {
			return nil
		}
		met.Done()
		met.Wait()
		other := runs[0]
		if ev.RunID == "a" {
			other = runs[1]
		}
		errs <- other.Emit(ctx, &TextDelta{})
		return nil
	})}})
	require.NoError(t, err)
	for i, id := range []string{"a", "b"} {
		runs[i], err = e.Run(id)
		require.NoError(t, err)
	}
	return runs, errs
}

func TestConcurrentSafeSinksOfTwoRunsThatWaitForEachOther(t *testing.T) {
	for range 100 {
		runs, errs := meeting(t)
		within(t, "Emit", func() {
			var wg sync.WaitGroup
			for _, r := range runs {
				wg.Go(func() { require.NoError(t, r.Emit(context.Background(), &RunStarted{})) })
			}
			wg.Wait()
		})
		refused := 0
		for range runs {
			if err := <-errs; err != nil {
				require.ErrorIs(t, err, ErrReentrant)
				refused++
			}
		}
		require.NotZero(t, refused)
		for _, r := range runs {
			require.NoError(t, r.Emit(t.Context(), &TextDelta{}), "both go on")
		}
	}
}

func TestASinkOfARunThatAnotherRunsSinkEmitsIntoMayNotEmitBack(t *testing.T) {
	var a, b *Run
	var got []error
	e, log := startEmitter(t, EmitterOptions{Sinks: []Sink{SinkFunc(func(ctx context.Context, ev Event) error {
		if ev.RunID == "a" {
			got = append(got, b.Emit(ctx, &TextDelta{}))
		} else {
			got = append(got, a.Emit(ctx, &TextDelta{}))
		}
		return nil
	})}})
	a, err := e.Run("a")
	require.NoError(t, err)
	b, err = e.Run("b")
	require.NoError(t, err)
	within(t, "Emit", func() { require.NoError(t, a.Emit(t.Context(), &TextDelta{})) })
	require.Len(t, got, 2)
	require.ErrorIs(t, got[0], ErrReentrant)
	require.ErrorContains(t, got[0], `run "a"`)
	require.NoError(t, got[1])
	require.Len(t, log.events, 2)
}

func TestConcurrentSafeTheSinkOfAFullBufferMayEmit(t *testing.T) {
	const each = 500
	for _, size := range []int{1, 16, 1024} {
		for _, producers := range []int{1, 8} {
			var r *Run
			b := Buffered(SinkFunc(func(ctx context.Context, ev Event) error {
				if ev.Kind() == KindTextDelta {
					return r.Emit(ctx, &RunPaused{})
				}
				return nil
			}), size, OverflowBlock)
			r, log := startRun(t, EmitterOptions{Sinks: []Sink{b}})
			within(t, fmt.Sprintf("Emit of %d producers with a buffer of %d", producers, size), func() {
				var wg sync.WaitGroup
				for range producers {
					wg.Go(func() {
						for range each {
							require.NoError(t, r.Emit(context.Background(), &TextDelta{}))
						}
					})
				}
				wg.Wait()
				require.NoError(t, b.Flush(context.Background()))
				require.NoError(t, b.Flush(context.Background())) // of events that the first one caused
			})
			require.Len(t, log.events, 2*each*producers)
			for i, ev := range log.events {
				require.EqualValues(t, i, ev.Sequence)
			}
			require.NoError(t, b.Close())
		}
	}
}

func TestEmitWaitsForRoomWithoutTheRunsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := Buffered(g, 1, OverflowBlock)
		r, log := startRun(t, EmitterOptions{Sinks: []Sink{SkipReplayed(b)}})
		var returned atomic.Int32
		for range 5 {
			go func() {
				require.NoError(t, r.Emit(context.Background(), &TextDelta{}))
				returned.Add(1)
			}()
			synctest.Wait()
		}
		require.Len(t, log.events, 5)
		require.EqualValues(t, 2, returned.Load(), "one under way, one in the buffer")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := r.s.e.Close(ctx)
		require.ErrorContains(t, err, "sink *agentevents.BufferedSink")
		require.NotContains(t, err.Error(), "being emitted", "waiting for room is no event in flight")
		close(g.open)
		require.NoError(t, r.s.e.Close(t.Context()))
		synctest.Wait()
		require.EqualValues(t, 5, returned.Load())
		require.Equal(t, upTo(5), sequences(&g.sinkLog))
	})
}

// The sink tee hands events to the buffer b, which the emitter cannot see.
func TestConcurrentSafeABufferedSinkWithinASinkDoesNotHang(t *testing.T) {
	var r *Run
	var echoed, refused atomic.Int32
	b := Buffered(SinkFunc(func(ctx context.Context, ev Event) error {
		if ev.Kind() != KindTextDelta {
			return nil
		}
		switch err := r.Emit(ctx, &RunPaused{}); {
		case err == nil:
			echoed.Add(1)
		case errors.Is(err, ErrReentrant):
			refused.Add(1)
		default:
			return err
		}
		return nil
	}), 1, OverflowBlock)
	type key struct{}
	tee := SinkFunc(func(ctx context.Context, ev Event) error { return b.WriteEvent(context.WithValue(ctx, key{}, 1), ev) })
	r, _ = startRun(t, EmitterOptions{Sinks: []Sink{tee}})
	within(t, "Emit", func() {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 200 {
					require.NoError(t, r.Emit(context.Background(), &TextDelta{}))
				}
			})
		}
		wg.Wait()
	})
	require.NoError(t, b.Flush(t.Context()))
	require.NoError(t, b.Flush(t.Context())) // of events that the first one caused
	require.NoError(t, b.Close())
	require.EqualValues(t, 1600, echoed.Load()+refused.Load())
}

func TestABufferedSinkMayNotWaitForTheBuffer(t *testing.T) {
	var b *BufferedSink
	var r *Run
	var got []error
	b = Buffered(SinkFunc(func(ctx context.Context, ev Event) error {
		got = append(got, b.Flush(ctx), r.s.e.Flush(ctx), r.s.e.Close(ctx))
		return nil
	}), 4, OverflowBlock)
	r, _ = startRun(t, EmitterOptions{Sinks: []Sink{b}})
	require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
	within(t, "Flush", func() { require.NoError(t, b.Flush(t.Context())) })
	require.Len(t, got, 3)
	for _, err := range got {
		require.ErrorIs(t, err, ErrReentrant)
	}
	require.NoError(t, r.s.e.Close(t.Context()))
}

func TestTheContextOfASinkMayBeKept(t *testing.T) {
	type key struct{}
	var kept []context.Context
	e, log := startEmitter(t, EmitterOptions{Sinks: []Sink{SinkFunc(func(ctx context.Context, _ Event) error {
		kept = append(kept, ctx)
		return nil
	})}})
	r, err := e.Run("r")
	require.NoError(t, err)
	other, err := e.Run("other")
	require.NoError(t, err)
	cancelled, cancel := context.WithCancelCause(t.Context())
	for i := range 3 {
		require.NoError(t, r.Emit(context.WithValue(cancelled, key{}, i), &TextDelta{}))
	}
	cancel(errors.New("cause"))
	for i, ctx := range kept[:3] {
		require.Equal(t, i, ctx.Value(key{}), "a later event changes nothing")
		require.NoError(t, context.Cause(ctx), "values only")
		require.ErrorIs(t, r.Emit(ctx, &TextDelta{}), ErrReentrant)
		require.NoError(t, other.Emit(ctx, &TextDelta{}))
	}
	require.Len(t, log.events, 6)
}

func TestContextsDoNotGrowWhenOneEventLeadsToTheNext(t *testing.T) {
	var r *Run
	left := 1000
	var last context.Context
	b := Buffered(SinkFunc(func(ctx context.Context, _ Event) error {
		last = ctx
		if left--; left < 0 {
			return nil
		}
		return r.Emit(ctx, &TextDelta{})
	}), 1, OverflowBlock)
	r, _ = startRun(t, EmitterOptions{Sinks: []Sink{b}})
	require.NoError(t, r.Emit(context.Background(), &TextDelta{}))
	for range 1001 {
		require.NoError(t, b.Flush(t.Context()))
	}
	require.Equal(t, -1, left)
	c := reentry.Of(last)
	require.Equal(t, context.Background(), c.Context)
	require.Nil(t, c.Outer())
	require.NoError(t, b.Close())
}

// uncomparable is a context of a type that panics when two of it are compared.
type uncomparable struct {
	context.Context
	_ []int
}

func TestAnyContextWillDo(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Sinks: []Sink{committerSink{discard, func(context.Context) error { return nil }}}})
	for _, ctx := range []context.Context{uncomparable{Context: t.Context()}, uncomparable{Context: t.Context()}, context.WithoutCancel(uncomparable{Context: t.Context()}), context.TODO()} {
		require.NoError(t, r.Emit(ctx, &TextDelta{}))
		require.NoError(t, r.Emit(ctx, &TextDelta{}))
	}
	require.Len(t, log.events, 8)
}

func TestASinksContextCostsNoAllocation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e, err := NewEmitter(EmitterOptions{Sinks: []Sink{
		SinkFunc(discard), committerSink{discard, func(context.Context) error { return nil }},
		tracerSink{discard, func(context.Context, Event) TraceContext { return TraceContext{} }},
	}})
	require.NoError(t, err)
	r, err := e.Run("r")
	require.NoError(t, err)
	p := &TextDelta{}
	for name, ctx := range map[string]context.Context{"background": context.Background(), "cancellable": ctx} {
		require.Zero(t, leastAllocs(1000, func() {
			if err := r.Emit(ctx, p); err != nil {
				panic(err)
			}
		}), name)
	}
}
