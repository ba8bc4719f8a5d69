package agentevents

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// numbered returns an event whose sequence is n.
func numbered(n int) Event {
	return Event{ID: strconv.Itoa(n), Sequence: uint64(n), Time: noon(), RunID: "r", Payload: &TextDelta{Delta: strconv.Itoa(n)}}
}

func sequences(log *sinkLog) []int {
	log.mu.Lock()
	defer log.mu.Unlock()
	out := []int{}
	for i := range log.events {
		out = append(out, int(log.events[i].Sequence))
	}
	return out
}

func upTo(n int) []int {
	out := []int{}
	for i := range n {
		out = append(out, i)
	}
	return out
}

// A gate is a sink that waits to be let through, event by event.
type gate struct {
	sinkLog
	open chan struct{}
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) WriteLine(ctx context.Context, ev Event, line []byte) error {
	<-g.open
	return g.sinkLog.WriteLine(ctx, ev, line)
}

func TestBufferedDeliversEverythingInOrder(t *testing.T) {
	for _, size := range []int{-1, 0, 1, 3, 1000} {
		log := &sinkLog{}
		b := Buffered(log, size, OverflowBlock)
		for i := range 100 {
			require.NoError(t, b.WriteEvent(t.Context(), numbered(i)))
		}
		require.NoError(t, b.Flush(t.Context()))
		require.Equal(t, upTo(100), sequences(log), "Flush waits until all are delivered")
		require.NoError(t, b.WriteEvent(t.Context(), numbered(100)))
		require.NoError(t, b.Close())
		require.Equal(t, upTo(101), sequences(log), "and Close does")
		require.Zero(t, b.Dropped())
	}
}

func TestBufferedGivesALineSinkTheEventsLine(t *testing.T) {
	log := &sinkLog{}
	b := Buffered(log, 8, OverflowBlock)
	var want []string
	for i := range 20 {
		ev := numbered(i)
		line, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		want = append(want, string(line))
		require.NoError(t, b.WriteEvent(t.Context(), ev))
	}
	require.NoError(t, b.Close())
	require.Equal(t, want, log.lines)
}

func TestBufferedBlockWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := Buffered(g, 2, OverflowBlock)
		written := 0
		go func() {
			for i := range 5 {
				if b.WriteEvent(context.Background(), numbered(i)) != nil {
					return
				}
				written++
			}
		}()
		synctest.Wait()
		require.Equal(t, 3, written, "one under way, two in the buffer")
		g.open <- struct{}{}
		synctest.Wait()
		require.Equal(t, 4, written)
		close(g.open)
		synctest.Wait()
		require.NoError(t, b.Close())
		require.Equal(t, upTo(5), sequences(&g.sinkLog))
		require.Zero(t, b.Dropped())
	})
}

func TestBufferedDropsByPolicyAndCounts(t *testing.T) {
	for policy, want := range map[Overflow][]int{
		OverflowDropNewest: {0, 1, 2},
		OverflowDropOldest: {0, 8, 9},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			b := Buffered(g, 2, policy)
			for i := range 10 {
				require.NoError(t, b.WriteEvent(t.Context(), numbered(i)))
				synctest.Wait() // event 0 is under way
			}
			require.EqualValues(t, 7, b.Dropped())
			close(g.open)
			err := b.Flush(t.Context())
			require.ErrorIs(t, err, ErrDropped)
			require.ErrorContains(t, err, "7 by the buffer of *agentevents.gate")
			require.NoError(t, b.Flush(t.Context()), "reported once")
			require.Equal(t, want, sequences(&g.sinkLog))
			require.NoError(t, b.Close())
			require.EqualValues(t, 7, b.Dropped(), "the count stays")
		})
	}
}

func TestBufferedFlushReturnsAtTheDeadlineWithTheQueueLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := Buffered(g, 8, OverflowBlock)
		for i := range 3 {
			require.NoError(t, b.WriteEvent(t.Context(), numbered(i)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := b.Flush(ctx)
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "3 events are still waiting for *agentevents.gate")
		close(g.open)
		require.NoError(t, b.Flush(t.Context()))
		require.NoError(t, b.Close())
	})
}

func TestABufferedSinkThatHangsDoesNotHoldUpTheEmittersClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		e, log := startEmitter(t, EmitterOptions{Sinks: []Sink{Buffered(g, 8, OverflowBlock)}})
		r, err := e.Run("r")
		require.NoError(t, err)
		require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err = e.Close(ctx)
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "*agentevents.BufferedSink")
		require.Len(t, log.events, 1)
		close(g.open)
		require.NoError(t, e.Close(t.Context()))
		require.Equal(t, upTo(1), sequences(&g.sinkLog)) // the bubble fails if a goroutine stays
	})
}

func TestBufferedReportsErrorsOnceWithTheirEvents(t *testing.T) {
	broken := errors.New("broken")
	b := Buffered(SinkFunc(func(_ context.Context, ev Event) error {
		if ev.Sequence%2 == 1 {
			return broken
		}
		return nil
	}), 8, OverflowBlock)
	require.NoError(t, b.WriteEvent(t.Context(), numbered(0)))
	require.NoError(t, b.WriteEvent(t.Context(), numbered(1)))
	err := b.Flush(t.Context())
	var failed *SinkError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, &SinkError{Sink: "agentevents.SinkFunc", RunID: "r", Sequence: 1, Err: broken}, failed)
	require.NoError(t, b.Flush(t.Context()))

	for i := range 100 {
		require.NoError(t, b.WriteEvent(t.Context(), numbered(i)))
	}
	err = b.Close()
	require.Len(t, joined(err), maxBufferedErrors+1)
	require.ErrorContains(t, err, fmt.Sprint(50-maxBufferedErrors, " more errors"))
	require.NoError(t, b.Close())
}

// OnError hears of the errors of a buffered sink with the next event, and once.
func TestOnErrorHearsOfABufferedSink(t *testing.T) {
	for name, wrap := range map[string]func(Sink) Sink{
		"required": func(s Sink) Sink { return s }, "best effort": BestEffort,
	} {
		t.Run(name, func(t *testing.T) {
			broken := errors.New("broken")
			var told []error
			b := Buffered(SinkFunc(func(context.Context, Event) error { return broken }), 8, OverflowDropNewest)
			r, _ := startRun(t, EmitterOptions{Sinks: []Sink{wrap(b)}, OnError: func(err error) { told = append(told, err) }})
			for i := range 3 {
				require.NoError(t, r.Emit(t.Context(), &StatePatched{Op: PatchSet, Path: "a", Value: JSON(fmt.Sprint(i))}))
				require.Eventually(t, func() bool { return b.Stats().Waiting == 0 }, time.Minute, time.Millisecond)
			}
			require.GreaterOrEqual(t, len(told), 2, "the last one perhaps with its own event")
			require.Equal(t, &SinkError{Sink: "agentevents.SinkFunc", RunID: "r", Sequence: 1, Err: broken}, told[1])
			require.ErrorContains(t, r.s.e.Close(t.Context()), "sequence 2")
		})
	}
}

func TestBufferedContainsPanicsAndGoesOn(t *testing.T) {
	log := &sinkLog{}
	b := Buffered(SinkFunc(func(ctx context.Context, ev Event) error {
		if ev.Sequence == 0 {
			panic("boom")
		}
		return log.WriteLine(ctx, ev, nil)
	}), 8, OverflowBlock)
	for i := range 3 {
		require.NoError(t, b.WriteEvent(t.Context(), numbered(i)))
	}
	var p *PanicError
	require.ErrorAs(t, b.Flush(t.Context()), &p)
	require.Equal(t, "boom", p.Value)
	require.Equal(t, []int{1, 2}, sequences(log))
	require.NoError(t, b.Close())

	b = Buffered(panickyCloser{discard}, 1, OverflowBlock)
	require.ErrorAs(t, b.Flush(t.Context()), &p)
	require.ErrorAs(t, b.Close(), &p)
}

func TestBufferedFlushesAndClosesItsSinkOnce(t *testing.T) {
	var order []string
	s := &orderSink{note: func(s string) { order = append(order, s) }, name: "x"}
	b := Buffered(s, 8, OverflowBlock)
	require.NoError(t, b.WriteEvent(t.Context(), numbered(0)))
	require.NoError(t, b.Flush(t.Context()))
	require.NoError(t, b.WriteEvent(t.Context(), numbered(1)))
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	require.Equal(t, []string{"write x", "flush x", "write x", "close x"}, order)
}

func TestBufferedFlushDoesNotWaitForLaterEvents(t *testing.T) {
	for _, policy := range []Overflow{OverflowBlock, OverflowDropNewest, OverflowDropOldest} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			b := Buffered(g, 3, policy)
			for i := range 3 {
				require.NoError(t, b.WriteEvent(t.Context(), numbered(i)))
			}
			flushed := make(chan error, 1)
			go func() { flushed <- b.Flush(context.Background()) }()
			synctest.Wait()
			for i := range 3 {
				require.Empty(t, flushed, "event %d is not delivered", i)
				g.open <- struct{}{}
				synctest.Wait()
				require.NoError(t, b.WriteEvent(t.Context(), numbered(3+i)))
			}
			require.NoError(t, <-flushed, "three later events are queued")
			require.Equal(t, upTo(3), sequences(&g.sinkLog))
			close(g.open)
			require.NoError(t, b.Close())
		})
	}
}

func TestBufferedFlushDoesNotWaitForDroppedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := Buffered(g, 1, OverflowDropOldest)
		require.NoError(t, b.WriteEvent(t.Context(), numbered(0)))
		synctest.Wait() // event 0 is under way
		require.NoError(t, b.WriteEvent(t.Context(), numbered(1)))
		flushed := make(chan error, 1)
		go func() { flushed <- b.Flush(context.Background()) }()
		synctest.Wait()
		require.NoError(t, b.WriteEvent(t.Context(), numbered(2)), "drops event 1")
		g.open <- struct{}{}
		require.ErrorIs(t, <-flushed, ErrDropped)
		close(g.open)
		require.NoError(t, b.Close())
		require.Equal(t, []int{0, 2}, sequences(&g.sinkLog))
	})
}

func TestASinkThatEndsTheGoroutineOfItsBufferFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		s := &orderSink{note: func(string) {}}
		b := Buffered(exiting{s, hold}, 8, OverflowBlock)
		e, log := startEmitter(t, EmitterOptions{Sinks: []Sink{b}})
		r, err := e.Run("r")
		require.NoError(t, err)
		for range 4 {
			require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
		}
		flushed := make(chan error, 1)
		go func() { flushed <- b.Flush(context.Background()) }()
		synctest.Wait()
		close(hold)
		err = <-flushed
		require.ErrorContains(t, err, `run "r", sequence 0 (recorded, do not retry): the sink ended the goroutine`)
		require.ErrorIs(t, err, ErrDropped)
		require.ErrorContains(t, err, "3 by the buffer of agentevents.exiting")
		require.EqualValues(t, 3, b.Dropped())

		err = r.Emit(t.Context(), &TextDelta{})
		require.ErrorAs(t, err, new(*SinkError))
		require.ErrorContains(t, err, "agentevents.exiting takes no more events")
		require.Len(t, log.events, 5, "other sinks get all events")
		require.NoError(t, e.Close(t.Context()))
	})
}

// exiting ends the goroutine that it is called on.
type exiting struct {
	*orderSink
	hold chan struct{}
}

func (s exiting) WriteEvent(context.Context, Event) error {
	<-s.hold
	runtime.Goexit()
	return nil
}

// An unopened sink reports that it cannot be used.
type unopened struct{ Sink }

func (unopened) CheckSink() error { return errors.New("not open") }

func TestBufferedThatCannotDeliverReturnsErrors(t *testing.T) {
	for want, b := range map[string]*BufferedSink{
		"the sink is nil":      Buffered(nil, 1, OverflowBlock),
		"not open":             Buffered(unopened{SinkFunc(discard)}, 1, OverflowBlock),
		"Buffered.policy is 4": Buffered(&sinkLog{}, 1, overflows),
	} {
		_, err := NewEmitter(EmitterOptions{Sinks: []Sink{&sinkLog{}, BestEffort(b)}})
		require.ErrorContains(t, err, "EmitterOptions.Sinks[1]")
		require.ErrorContains(t, err, want)
		if b.bad != nil {
			require.ErrorContains(t, b.WriteEvent(t.Context(), numbered(0)), want)
		}
		require.NoError(t, b.Flush(t.Context()))
		require.NoError(t, b.Close())
	}
}

func TestNewEmitterAsksTheSinks(t *testing.T) {
	_, err := NewEmitter(EmitterOptions{Sinks: []Sink{SinkFunc(discard), BestEffort(SkipReplayed(unopened{SinkFunc(discard)}))}})
	require.EqualError(t, err, "agentevents: EmitterOptions.Sinks[1]: not open")
}

func TestABufferedTracerIsAskedAtOnce(t *testing.T) {
	asked := 0
	tracer := tracerSink{discard, func(context.Context, Event) TraceContext { asked++; return TraceContext{TraceID: "T"} }}
	b := Buffered(SkipReplayed(tracer), 8, OverflowBlock)
	r, log := startRun(t, EmitterOptions{Sinks: []Sink{b}})
	require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
	require.Equal(t, "T", log.last(t).TraceID)
	require.NoError(t, errOf(r.Record(t.Context(), Event{Marks: MarkReplayed, Payload: &TextDelta{}})))
	require.Equal(t, 1, asked, "Live holds for Trace too")
	_, err := NewEmitter(EmitterOptions{Sinks: []Sink{tracer, b}})
	require.ErrorContains(t, err, "are both tracers")
	require.NoError(t, b.Close())
}

func TestBufferedTakesOnlyTheMemoryItNeeds(t *testing.T) {
	log := &sinkLog{}
	b := Buffered(log, math.MaxInt, OverflowBlock)
	for i := range 1000 {
		require.NoError(t, b.WriteEvent(t.Context(), numbered(i)))
	}
	require.NoError(t, b.Close())
	require.Equal(t, upTo(1000), sequences(log))
}

func TestBufferedRefusesEventsAfterClose(t *testing.T) {
	for _, policy := range []Overflow{OverflowBlock, OverflowDropNewest, OverflowDropOldest} {
		log := &sinkLog{}
		b := Buffered(log, 1, policy)
		require.NoError(t, b.Close())
		require.ErrorIs(t, b.WriteEvent(t.Context(), numbered(0)), ErrClosed)
		require.NoError(t, b.Flush(t.Context()))
		require.Empty(t, log.events)
	}
}

func TestBufferedCloseWakesAWaitingWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := Buffered(g, 1, OverflowBlock)
		var errs []error
		go func() {
			for i := range 3 {
				errs = append(errs, b.WriteEvent(context.Background(), numbered(i)))
			}
		}()
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- b.Close() }()
		synctest.Wait()
		require.Equal(t, []error{nil, nil, nil}, errs)
		close(g.open)
		require.NoError(t, <-closed)
		require.Equal(t, upTo(3), sequences(&g.sinkLog), "queued events are delivered")
	})
}

func TestABufferedSinkMayEmitIntoTheSameRun(t *testing.T) {
	var r *Run
	b := Buffered(SinkFunc(func(ctx context.Context, ev Event) error {
		if ev.Kind() == KindRunStarted {
			return r.Emit(ctx, &RunPaused{})
		}
		return nil
	}), 8, OverflowBlock)
	r, log := startRun(t, EmitterOptions{Sinks: []Sink{b}})
	require.NoError(t, r.Emit(t.Context(), &RunStarted{}))
	require.NoError(t, b.Flush(t.Context()))
	require.Equal(t, []Kind{KindRunStarted, KindRunPaused}, log.kinds())
}

func TestConcurrentSafeBuffered(t *testing.T) {
	for _, policy := range []Overflow{OverflowBlock, OverflowDropNewest, OverflowDropOldest} {
		log := &sinkLog{}
		b := Buffered(log, 4, policy)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range 100 {
					_ = b.WriteEvent(context.Background(), numbered(i))
					if i%10 == 0 {
						_ = b.Flush(context.Background())
						b.Dropped()
					}
				}
			})
		}
		wg.Wait()
		for range 4 {
			wg.Go(func() { _ = b.Close() })
		}
		wg.Wait()
		require.EqualValues(t, 800, uint64(len(log.events))+b.Dropped(), "every event is delivered or counted")
	}
}

func TestSinkFuncIsASink(t *testing.T) {
	var got Event
	s := SinkFunc(func(_ context.Context, ev Event) error { got = ev; return errors.New("e") })
	require.EqualError(t, s.WriteEvent(t.Context(), numbered(3)), "e")
	require.Equal(t, numbered(3), got)
}

func TestBestEffortKeepsTheSinksMethods(t *testing.T) {
	var order []string
	s := &orderSink{note: func(s string) { order = append(order, s) }, name: "x"}
	for _, wrapped := range []Sink{BestEffort(s), BestEffort(BestEffort(s))} {
		order = nil
		log := &sinkLog{}
		e, err := NewEmitter(EmitterOptions{Sinks: []Sink{wrapped, BestEffort(log)}})
		require.NoError(t, err)
		r, err := e.Run("r")
		require.NoError(t, err)
		require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
		require.NoError(t, e.Close(t.Context()))
		require.Equal(t, []string{"write x", "flush x", "close x"}, order)
		require.Len(t, log.lines, 1, "a LineSink stays one")
	}
}

func TestSinkErrorsNameSinkEventAndCause(t *testing.T) {
	cause := errors.New("cause")
	require.EqualError(t, &SinkError{Sink: "*x.S", Err: cause}, "agentevents: sink *x.S: cause")
	require.EqualError(t, &SinkError{Sink: "*x.S", RunID: "r", Sequence: 3, Err: cause}, `agentevents: sink *x.S: run "r", sequence 3 (recorded, do not retry): cause`)
	require.ErrorIs(t, &SinkError{Err: &PanicError{Value: cause}}, cause)
	require.NoError(t, (&PanicError{Value: "text"}).Unwrap())
	require.EqualError(t, &PanicError{Value: 5}, "panic: 5")
}
