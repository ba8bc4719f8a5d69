package lawtest

import (
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

// A tally counts, by kind, the events that a sink took and those that it refused.
type tally struct {
	eventtest.Recorder
	mu            sync.Mutex
	calls         int
	taken, failed map[agentevents.Kind]uint64
}

func newTally() *tally {
	return &tally{taken: map[agentevents.Kind]uint64{}, failed: map[agentevents.Kind]uint64{}}
}

// note counts an event, and returns the error that it is given.
func (c *tally) note(ctx context.Context, ev agentevents.Event, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed[ev.Kind()]++
		return err
	}
	c.taken[ev.Kind()]++
	return c.Recorder.WriteEvent(ctx, ev)
}

func sum(counts map[agentevents.Kind]uint64) (n uint64) {
	for _, one := range counts {
		n += one
	}
	return n
}

// requireAdds compares the counters of a buffer with the count of its sink, and with the count of
// all events.
func (c *tally) requireAdds(t *testing.T, all *tally, b *agentevents.BufferedSink) {
	t.Helper()
	s := b.Stats()
	require.Equal(t, sum(all.taken), s.Queued)
	require.Zero(t, s.Waiting)
	require.Equal(t, sum(c.taken), s.Written)
	require.Equal(t, sum(c.failed), s.Failed)
	for kind, n := range all.taken {
		require.Equal(t, n, c.taken[kind]+c.failed[kind]+s.Dropped[kind], "%s", kind)
	}
	require.Equal(t, s.Queued, s.Written+s.Failed+sum(s.Dropped))
	require.Equal(t, sum(s.Dropped), b.Dropped())
}

// neverReturns is where the sink hangs.
func neverReturns(open chan struct{}) { <-open }

// Three bad sinks with buffers, and a good one beside them that notices nothing.
func TestLoadConcurrentSafe(t *testing.T) {
	const deadline, size = 300 * time.Millisecond, 64
	for name, policies := range map[string][3]agentevents.Overflow{
		"newest":          {agentevents.OverflowDropNewest, agentevents.OverflowDropNewest, agentevents.OverflowDropNewest},
		"oldest":          {agentevents.OverflowDropOldest, agentevents.OverflowDropOldest, agentevents.OverflowDropOldest},
		"deltas for some": {agentevents.OverflowDropOldest, agentevents.OverflowDropDeltas, agentevents.OverflowDropDeltas},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && policies[1] != agentevents.OverflowDropDeltas {
				t.Skip("one of three")
			}
			before := goleak.IgnoreCurrent()
			defer goleak.VerifyNone(t, before)
			var e *agentevents.Emitter
			healthy, hanging, failing, emitting := newTally(), newTally(), newTally(), newTally()
			open, broken := make(chan struct{}), errors.New("every third call")
			hang := agentevents.Buffered(agentevents.SinkFunc(func(ctx context.Context, ev agentevents.Event) error {
				neverReturns(open)
				return hanging.note(ctx, ev, nil)
			}), size, policies[0])
			fail := agentevents.Buffered(agentevents.SinkFunc(func(ctx context.Context, ev agentevents.Event) error {
				if failing.calls++; failing.calls%3 == 0 {
					return failing.note(ctx, ev, broken)
				}
				return failing.note(ctx, ev, nil)
			}), size, policies[1])
			emit := agentevents.Buffered(agentevents.SinkFunc(func(ctx context.Context, ev agentevents.Event) error {
				if ev.RunID != "echo" {
					echo, err := e.Run("echo")
					if err == nil {
						err = echo.Emit(ctx, &agentevents.UsageObserved{})
					}
					if err != nil && !errors.Is(err, agentevents.ErrClosed) {
						return emitting.note(ctx, ev, err)
					}
				}
				return emitting.note(ctx, ev, nil)
			}), size, policies[2])
			e = newRelaxed(t, agentevents.BestEffort(hang), agentevents.SinkFunc(func(ctx context.Context, ev agentevents.Event) error {
				return healthy.note(ctx, ev, nil)
			}), fail, agentevents.BestEffort(emit))

			for _, err := range each(func(i int) error {
				run, err := e.Run(fmt.Sprint("run-", i%runs))
				if err != nil {
					return err
				}
				return work(t.Context(), run, fmt.Sprint("agent-", i))
			}) {
				require.NoError(t, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), deadline) //wallclock: one sink hangs until after it ends
			defer cancel()
			err := e.Close(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, broken)
			require.ErrorContains(t, err, "more errors of agentevents.SinkFunc")
			require.NoError(t, goleak.Find(before, goleak.IgnoreAnyFunction("github.com/agentevents/agentevents/internal/lawtest.neverReturns")))

			require.GreaterOrEqual(t, len(healthy.Events()), goroutines*eventsOfWork)
			require.Greater(t, len(byRun(&healthy.Recorder)["echo"]), size)
			healthy.WantLaws(t, relaxed)
			failing.requireAdds(t, healthy, fail)
			require.EqualValues(t, failing.calls/3, sum(failing.failed))
			emitting.requireAdds(t, healthy, emit)
			require.Empty(t, emitting.failed)
			if policies[2] == agentevents.OverflowDropDeltas {
				require.Equal(t, emit.Stats().Dropped[agentevents.KindTextDelta], emit.Dropped())
				emitting.WantLaws(t, eventtest.LawOptions{Lifecycle: agentevents.LifecycleRelaxed, Open: true, Gaps: true})
			}

			s := hang.Stats()
			require.EqualValues(t, size+1, s.Waiting)
			require.Zero(t, s.Written+s.Failed)
			require.EqualValues(t, len(healthy.Events()), s.Queued)
			require.Equal(t, s.Queued, s.Waiting+sum(s.Dropped))
			close(open)
			require.ErrorIs(t, e.Close(context.Background()), agentevents.ErrDropped)
			require.NoError(t, errors.Join(e.Close(context.Background()), hang.Close()), "it is told once")
			hanging.requireAdds(t, healthy, hang)
			require.EqualValues(t, size+1, len(hanging.Events()))
		})
	}
}
