package playback_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/playback"
)

var start = time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)

// record returns the events of a run in which an agent calls a tool n times, a second
// apart.
func record(t testing.TB, n int) (events []ae.Event) {
	now := start
	em, err := ae.NewEmitter(ae.EmitterOptions{
		Lifecycle: ae.LifecycleDerived,
		Clock:     func() time.Time { return now },
		Sinks:     []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error { events = append(events, ev); return nil })},
	})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	emit := func(err error) {
		require.NoError(t, err)
		now = now.Add(time.Second)
	}
	emit(run.Emit(t.Context(), &ae.RunStarted{Name: "job"}))
	a := run.Agent("a")
	emit(a.Emit(t.Context(), &ae.AgentStarted{Task: "count"}))
	for i := range n {
		c, err := a.Call(t.Context(), &ae.ToolCalled{CallID: fmt.Sprint("c", i), ToolID: "Read"})
		emit(err)
		emit(c.End(t.Context(), &ae.ToolReturned{Status: ae.ToolStatusOK}))
	}
	emit(a.Emit(t.Context(), &ae.AgentEnded{Outcome: ae.OutcomeConverged}))
	emit(run.Emit(t.Context(), &ae.RunCompleted{}))
	return events
}

func snapshotOf(t testing.TB, s *ae.RunSnapshot) string {
	text, err := json.Marshal(s)
	require.NoError(t, err)
	return string(text)
}

// Wherever a player goes, in whatever order, its snapshot is the fold of the events before.
func TestSeek(t *testing.T) {
	events := record(t, 1500) // so that there are marks
	p, err := playback.New(slices.Values(events), playback.Options{})
	require.NoError(t, err)
	require.Equal(t, len(events), p.Len())
	require.Greater(t, len(events), 5000)
	require.Equal(t, "r", p.RunID())
	for _, to := range []int{0, 10, 5000, 4096, 4095, 4097, 3, len(events), 4500, 0, 9000} {
		require.NoError(t, p.Seek(uint64(to)))
		to = min(to, len(events))
		require.Equal(t, to, p.Position())
		fold := ae.NewFold(ae.FoldOptions{})
		for _, ev := range events[:to] {
			fold.Apply(ev)
		}
		require.Equal(t, snapshotOf(t, fold.Snapshot()), snapshotOf(t, p.Snapshot()), to)
		next, ok := p.Peek()
		require.Equal(t, to < len(events), ok)
		if ok {
			require.EqualValues(t, to, next.Sequence)
		}
	}
}

func TestStep(t *testing.T) {
	events := record(t, 2)
	mixed := slices.Concat(events[3:], events[:5]) // out of order, and some twice
	p, err := playback.New(slices.Values(mixed), playback.Options{})
	require.NoError(t, err)
	require.Equal(t, len(events), p.Len())
	for i := range events {
		ev, ok := p.Step()
		require.True(t, ok)
		require.EqualValues(t, i, ev.Sequence)
		require.True(t, ev.Marks.Has(ae.MarkReplayed))
		require.False(t, events[i].Marks.Has(ae.MarkReplayed), "the caller's are not changed")
	}
	_, ok := p.Step()
	require.False(t, ok)
	require.Equal(t, ae.RunStatusCompleted, p.Snapshot().Status)
}

func TestNewRefuses(t *testing.T) {
	_, err := playback.New(slices.Values([]ae.Event(nil)), playback.Options{})
	require.ErrorContains(t, err, "no events")
	_, err = playback.New(slices.Values([]ae.Event{{RunID: "a"}, {RunID: "b"}}), playback.Options{})
	require.ErrorContains(t, err, "several runs")
}

// Events come when they came, or faster.
func TestTiming(t *testing.T) {
	events := record(t, 2)
	whole := events[len(events)-1].Time.Sub(start)
	for _, test := range []struct {
		timing playback.Timing
		want   time.Duration
	}{
		{playback.Timing{Speed: 1}, whole},
		{playback.Timing{Speed: 4}, whole / 4},
		{playback.Timing{Speed: 0.5}, 2 * whole},
		{playback.Timing{}, 0},
		{playback.Timing{Speed: 1, MaxWait: 100 * time.Millisecond}, whole / 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, err := playback.New(slices.Values(events), playback.Options{})
			require.NoError(t, err)
			from, n := time.Now(), 0
			require.NoError(t, p.Play(t.Context(), test.timing, func(ev ae.Event) error {
				if test.timing == (playback.Timing{Speed: 1}) {
					require.Equal(t, ev.Time.Sub(start), time.Since(from))
					if ev.Kind() == ae.KindRunStarted {
						time.Sleep(100 * time.Millisecond) // who shows takes time, and delays nothing
					}
				}
				n++
				require.Equal(t, n, p.Position())
				return nil
			}))
			require.Equal(t, test.want, time.Since(from), "%+v", test.timing)
			require.Equal(t, len(events), n)
		})
	}
}

func TestPlayEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := record(t, 2)
		p, err := playback.New(slices.Values(events), playback.Options{})
		require.NoError(t, err)
		enough := errors.New("enough")
		require.ErrorIs(t, p.Play(t.Context(), playback.Timing{}, func(ae.Event) error {
			if p.Position() == 3 {
				return enough
			}
			return nil
		}), enough)
		require.Equal(t, 3, p.Position())
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, p.Play(ctx, playback.Timing{Speed: 1}, func(ae.Event) error { return nil }), context.DeadlineExceeded)
		require.Less(t, p.Position(), len(events))
		require.NoError(t, p.Play(t.Context(), playback.Timing{}, func(ae.Event) error { return nil }), "it goes on")
		require.Equal(t, len(events), p.Position())
		require.Error(t, p.Play(t.Context(), playback.Timing{Speed: -1}, nil))
	})
}
