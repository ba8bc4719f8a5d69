package replay

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/spans"
)

var start = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

func event(run string, seq int, p agentevents.Payload) *agentevents.Event {
	return &agentevents.Event{
		ID: fmt.Sprintf("%s-%d", run, seq), RunID: run, Sequence: uint64(seq), Time: start.Add(time.Duration(seq) * time.Second), Payload: p,
	}
}

func TestLog(t *testing.T) {
	var ended []*spans.Span
	points := 0
	l := New(spans.Options{
		Ended: func(s *spans.Span) { ended = append(ended, s) },
		Noted: func(*spans.Span, *spans.Point) { points++ },
	})
	for _, ev := range []*agentevents.Event{
		event("a", 0, &agentevents.RunStarted{}),
		event("b", 0, &agentevents.RunStarted{}),
		event("c", 0, &agentevents.RunStarted{}),
		event("a", 1, &agentevents.ToolReturned{CallID: "1", ToolID: "t", Status: agentevents.ToolStatusOK}),
		event("a", 1, &agentevents.RunCompleted{}), // a sequence that is taken
		event("c", 1, &agentevents.RunPaused{}),
		event("a", 2, &agentevents.RunCompleted{}),
		event("a", 0, &agentevents.RunCompleted{}), // back
		event("a", 4, &agentevents.RunCancelled{}), // late
	} {
		l.Feed(ev)
	}
	l.Close()
	l.Close()
	require.Equal(t, 3, l.Counts.Runs)
	require.Equal(t, len(ended), l.Counts.Spans)
	require.Equal(t, 2, l.Counts.Repeated)
	require.Equal(t, map[string]int{"shutdown": 1, "paused": 1}, l.Counts.Closed)
	require.Equal(t, 1, l.Counts.Unplaced)
	require.Positive(t, points)
	for _, s := range ended {
		require.False(t, s.End.Before(s.Start))
		require.NotEqual(t, spans.TraceID{}, s.TraceID)
	}
}

// An event that comes again is left out. A false sequence costs no event.
func TestRepeated(t *testing.T) {
	for _, test := range []struct {
		sequences []int
		repeated  int
	}{
		{[]int{0, 1, 2, 3}, 0},
		{[]int{0, 1, 2, 0, 1, 2, 3}, 3},
		{[]int{5, 6, 9, 5, 6, 9, 10}, 3},   // there are gaps
		{[]int{5, 9, 10, 5, 9, 10, 11}, 3}, // and one before the last event
		{[]int{0, 1, 999, 2, 3, 4}, 0},
		{[]int{0, 1, 999, 999, 2, 1, 3, 2}, 3},
		{[]int{0, 1, 999, 1000, 2, 3}, 2}, // two are no mistake
		{[]int{7, 3, 4, 3}, 1},
	} {
		l := New(spans.Options{})
		for _, sequence := range test.sequences {
			l.Feed(event("r", sequence, &agentevents.TextCompleted{}))
		}
		require.Equal(t, test.repeated, l.Counts.Repeated, "%v", test.sequences)
	}
}

// An event without a time has the time of the event before it in its run, or else of the first
// event with a time. If no event has a time, the run has no spans.
func TestUntimed(t *testing.T) {
	var ended []*spans.Span
	l := New(spans.Options{Ended: func(s *spans.Span) { ended = append(ended, s) }})
	feed := func(run string, at time.Time, p agentevents.Payload) {
		ev := event(run, int(l.next(run)), p)
		ev.Time = at
		l.Feed(ev)
		require.Equal(t, at, ev.Time, "the event is the caller's")
	}
	none, epoch := time.Time{}, time.Unix(0, 0)
	feed("a", none, &agentevents.RunStarted{})
	feed("b", none, &agentevents.RunStarted{})
	feed("a", epoch, &agentevents.ToolCalled{CallID: "1", ToolID: "t"})
	feed("a", start, &agentevents.ToolReturned{CallID: "1", ToolID: "t", Status: agentevents.ToolStatusOK})
	feed("b", epoch.Add(-time.Hour), &agentevents.RunCompleted{})
	feed("a", start.Add(time.Minute), &agentevents.ToolCalled{CallID: "2", ToolID: "t"})
	feed("a", none, &agentevents.RunCompleted{})
	feed("c", epoch.Add(time.Second), &agentevents.RunStarted{})
	for range maxHeld + 5 {
		feed("d", none, &agentevents.TextCompleted{})
	}
	feed("d", start, &agentevents.RunStarted{})
	l.Close()
	for _, s := range ended[:3] {
		require.Equal(t, start, s.Start.Truncate(time.Hour))
	}
	require.Len(t, ended, 5, "three of a, none of b, and one each of c and d")
	require.Equal(t, start.Add(time.Minute), ended[2].End)
	c := &l.Counts
	require.Equal(t, [...]int{3 + maxHeld, 2 + 5, 1}, [...]int{c.Untimed, c.Timeless, c.NoDate})
	require.Equal(t, 3, c.Runs, "without the one that is left out")
}

// next returns the sequence after the run's last event.
func (l *Log) next(run string) uint64 {
	if r := l.runs[run]; r != nil {
		return r.next
	}
	return 0
}

// Runs that have ended are forgotten, those that have not are kept.
func TestForget(t *testing.T) {
	ended := map[string]int{}
	l := New(spans.Options{Ended: func(s *spans.Span) { ended[s.Name]++ }})
	l.Feed(event("long", 0, &agentevents.RunStarted{Name: "long"}))
	for i := range 3 * maxEnded {
		run := fmt.Sprint(i)
		l.Feed(event(run, 0, &agentevents.RunStarted{Name: "short"}))
		l.Feed(event(run, 1, &agentevents.RunCompleted{}))
		l.Feed(event(run, 2, &agentevents.RunCompleted{})) // twice
		require.LessOrEqual(t, len(l.order), maxEnded+1)
	}
	l.Feed(event("0", 3, &agentevents.TextCompleted{Text: "late"}))
	l.Feed(event("long", 1, &agentevents.RunCompleted{}))
	l.Close()
	require.Equal(t, 1, l.Counts.Late)
	require.Equal(t, 3*maxEnded+1, l.Counts.Runs)
	require.Equal(t, map[string]int{"invoke_workflow long": 1, "invoke_workflow short": 3 * maxEnded}, ended)
	require.Empty(t, l.Counts.Closed)
}
