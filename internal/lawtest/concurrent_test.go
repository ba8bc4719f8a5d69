package lawtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

// Run these tests with -race. Every test that starts goroutines checks that all of them
// end.

const (
	goroutines = 64
	runs       = 32
	rounds     = 20 // per goroutine
)

// relaxed are the laws of logs of newRelaxed: runs go on, or were closed.
var relaxed = eventtest.LawOptions{Lifecycle: agentevents.LifecycleRelaxed, Open: true}

// byRun returns the events of each run.
func byRun(r *eventtest.Recorder) map[string][]agentevents.Event {
	runs := map[string][]agentevents.Event{}
	for _, ev := range r.Events() {
		runs[ev.RunID] = append(runs[ev.RunID], ev)
	}
	return runs
}

// work is the work of one goroutine: it emits calls, text and a child of its own agent,
// in a run that it shares with another goroutine.
func work(ctx context.Context, run *agentevents.Run, name string) error {
	a := run.Agent(name)
	if err := errors.Join(a.Emit(ctx, &agentevents.AgentStarted{Task: "work"}), a.To(ctx, agentevents.StatusToolCall)); err != nil {
		return err
	}
	for i := range rounds {
		c, err := a.Call(ctx, &agentevents.ToolCalled{ToolID: "tool", Arguments: "{}"})
		if err != nil {
			return err
		}
		block := fmt.Sprint("block-", i)
		if err := errors.Join(
			a.Emit(ctx, &agentevents.TextDelta{BlockID: block, Delta: "te", Index: agentevents.Some(0)}),
			a.Emit(ctx, &agentevents.TextDelta{BlockID: block, Delta: "xt", Index: agentevents.Some(1)}),
			a.Emit(ctx, &agentevents.TextCompleted{BlockID: block, Text: "text"}),
			c.Agent(name+"-child").Emit(ctx, &agentevents.AgentStarted{Resumed: true}),
			c.Return(ctx, `"done"`),
			run.Emit(ctx, &agentevents.UsageObserved{Usage: agentevents.Usage{InputTokens: 1}}),
		); err != nil {
			return err
		}
	}
	return a.Emit(ctx, &agentevents.AgentEnded{Outcome: agentevents.OutcomePartial})
}

// eventsOfWork is the number of events that work emits.
const eventsOfWork = 3 + rounds*7

func newRelaxed(t *testing.T, sinks ...agentevents.Sink) *agentevents.Emitter {
	t.Helper()
	e, err := agentevents.NewEmitter(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleRelaxed, Sinks: sinks})
	require.NoError(t, err)
	return e
}

// each runs f in many goroutines, and returns the error of each.
func each(f func(i int) error) []error {
	var wg sync.WaitGroup
	errs := make([]error, goroutines)
	for i := range goroutines {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errs
}

// 64 goroutines emit into 32 runs of one emitter with two sinks.
func TestEmitterConcurrentSafe(t *testing.T) {
	defer goleak.VerifyNone(t)
	var log bytes.Buffer
	var seen eventtest.Recorder
	e := newRelaxed(t, agentevents.NewWriter(&log, agentevents.WriterOptions{BufferSize: 4096}), &seen)
	ctx := t.Context()
	for _, err := range each(func(i int) error {
		run, err := e.Run(fmt.Sprint("run-", i%runs))
		if err != nil {
			return err
		}
		return work(ctx, run, fmt.Sprint("agent-", i))
	}) {
		require.NoError(t, err)
	}
	require.NoError(t, e.Close(ctx))

	require.Len(t, byRun(&seen), runs)
	require.Len(t, seen.Events(), goroutines*eventsOfWork)
	seen.WantLaws(t, relaxed)
	written := byRun(eventtest.ReadLog(t, &log, agentevents.ReaderOptions{}))
	for id, events := range byRun(&seen) { // both sinks have the same
		require.Equal(t, string(encode(t, events)), string(encode(t, written[id])))
	}
}

// Close during emission: every sink has all accepted events, later events are refused
// with ErrClosed, and nothing hangs.
func TestCloseDuringEmitsConcurrentSafe(t *testing.T) {
	defer goleak.VerifyNone(t)
	for attempt := range 20 {
		var log bytes.Buffer
		var seen eventtest.Recorder
		e := newRelaxed(t, agentevents.NewWriter(&log, agentevents.WriterOptions{}), &seen)
		ctx := t.Context()
		var closers sync.WaitGroup
		for range 2 { // Close is safe to call concurrently
			closers.Go(func() {
				time.Sleep(time.Duration(attempt) * 50 * time.Microsecond)
				if err := e.Close(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		errs := each(func(i int) error {
			run, err := e.Run(fmt.Sprint("run-", i%runs))
			if err != nil {
				return err
			}
			return work(ctx, run, fmt.Sprint("agent-", i))
		})
		closers.Wait()
		for _, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, agentevents.ErrClosed)
			}
		}
		seen.WantLaws(t, relaxed)
		require.Equal(t, len(seen.Events()), bytes.Count(log.Bytes(), []byte("\n")), "both sinks have the accepted events")
	}
}

// Runs are released and resumed while others emit.
func TestRunsComeAndGoConcurrentSafe(t *testing.T) {
	defer goleak.VerifyNone(t)
	var seen eventtest.Recorder
	e := newRelaxed(t, &seen)
	ctx := t.Context()
	for _, err := range each(func(i int) error {
		for n := range 20 {
			run, err := e.Run(fmt.Sprintf("run-%d-%d", i, n))
			if err != nil {
				return err
			}
			if err := run.Agent("a").Emit(ctx, &agentevents.AgentStarted{}); err != nil {
				return err
			}
			if err := run.Close(); err != nil {
				return err
			}
			run, err = e.Resume(seen.Snapshot(run.ID()))
			if err != nil {
				return err
			}
			if err := run.Emit(ctx, &agentevents.RunCompleted{}); err != nil {
				return err
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
	require.Len(t, seen.Events(), goroutines*20*2)
	seen.WantLaws(t, relaxed)
	require.NoError(t, e.Close(ctx))
}

// Buffered keeps the order under every policy. It loses nothing if it blocks, and otherwise counts
// the lost events.
func TestBufferedConcurrentSafe(t *testing.T) {
	for name, policy := range map[string]agentevents.Overflow{
		"Block": agentevents.OverflowBlock, "DropNewest": agentevents.OverflowDropNewest, "DropOldest": agentevents.OverflowDropOldest,
		"DropDeltas": agentevents.OverflowDropDeltas,
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			var all, behind eventtest.Recorder
			slow := agentevents.SinkFunc(func(ctx context.Context, ev agentevents.Event) error {
				if ev.Sequence%97 == 0 {
					time.Sleep(100 * time.Microsecond)
				}
				return behind.WriteEvent(ctx, ev)
			})
			buffered := agentevents.Buffered(slow, 16, policy)
			e := newRelaxed(t, &all, buffered)
			ctx := t.Context()
			for _, err := range each(func(i int) error {
				run, err := e.Run(fmt.Sprint("run-", i%runs))
				if err != nil {
					return err
				}
				return work(ctx, run, fmt.Sprint("agent-", i))
			}) {
				require.NoError(t, err)
			}
			err := e.Close(ctx)
			dropped := int(buffered.Dropped())
			if dropped > 0 {
				require.ErrorIs(t, err, agentevents.ErrDropped)
			} else {
				require.NoError(t, err)
			}
			if policy == agentevents.OverflowBlock {
				require.Zero(t, dropped)
			}
			require.Len(t, all.Events(), goroutines*eventsOfWork)
			require.Equal(t, len(all.Events()), len(behind.Events())+dropped, "every event was delivered or counted")
			for id, events := range byRun(&behind) {
				for i := 1; i < len(events); i++ {
					require.Less(t, events[i-1].Sequence, events[i].Sequence, "run %s", id)
				}
			}
			require.ErrorIs(t, buffered.WriteEvent(ctx, agentevents.Event{}), agentevents.ErrClosed)
		})
	}
}

// Flush with a deadline returns although a sink hangs, and leaves no goroutine once the
// sink continues.
func TestFlushOfHangingSinkConcurrentSafe(t *testing.T) {
	defer goleak.VerifyNone(t)
	hang := make(chan struct{})
	buffered := agentevents.Buffered(agentevents.SinkFunc(func(context.Context, agentevents.Event) error { <-hang; return nil }), 4, agentevents.OverflowBlock)
	e := newRelaxed(t, buffered)
	run, err := e.Run("run")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &agentevents.RunStarted{}))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond) //wallclock: the sink hangs until after it ends
	defer cancel()
	require.ErrorIs(t, e.Flush(ctx), context.DeadlineExceeded)
	close(hang)
	require.NoError(t, e.Close(t.Context()))
}
