package agentevents

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sequenced returns events of a run with the given sequences.
func sequenced(sequences ...uint64) []Event {
	out := make([]Event, len(sequences))
	for i, n := range sequences {
		out[i] = Event{ID: fmt.Sprint("e", i), RunID: "r", Sequence: n, Time: time.Unix(int64(i), 0).UTC(), AgentID: "a", SchemaVersion: SchemaVersion,
			Payload: &ToolReturned{CallID: fmt.Sprint("c", i), ToolID: "T", Status: ToolStatusOK, OneEvent: true}}
	}
	return out
}

func firstNumbers(n uint64) (out []uint64) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// Missing events are counted and named, whatever order the events come in.
func TestCoverage(t *testing.T) {
	for _, c := range []struct {
		name       string
		sequences  []uint64
		missing    uint64
		gaps       []SequenceGap
		violations int
		calls      int
	}{
		{"nothing", nil, 0, nil, 0, 0},
		{"all", firstNumbers(10), 0, nil, 0, 10},
		{"two gaps", []uint64{0, 2, 3, 7}, 4, []SequenceGap{{1, 1}, {4, 6}}, 0, 4},
		{"the beginning", []uint64{3, 4}, 3, []SequenceGap{{0, 2}}, 0, 2},
		{"a false number", []uint64{0, 1, 999999, 3, 4, 5}, 1, []SequenceGap{{2, 2}}, 1, 6},
		{"a false number in front", []uint64{999999, 1, 2}, 1, []SequenceGap{{0, 0}}, 1, 3},
		{"a false number that comes later", []uint64{0, 1, 4, 3, 4, 5, 6}, 1, []SequenceGap{{2, 2}}, 1, 7},
		{"a false number that is lost later", []uint64{0, 1, 4, 3, 5, 6}, 1, []SequenceGap{{2, 2}}, 1, 6},
		{"two false numbers", []uint64{0, 900, 800, 3, 4}, 2, []SequenceGap{{1, 2}}, 2, 5},
		{"two events in the wrong order", []uint64{0, 1, 3, 2, 4, 5}, 0, nil, 1, 6},
		{"one that comes much later", []uint64{0, 1, 3, 4, 5, 2, 6}, 0, nil, 1, 6},
		{"in the middle of a gap", []uint64{0, 9, 10, 5, 1, 8}, 5, []SequenceGap{{2, 4}, {6, 7}}, 3, 3},
		{"the highest number there is", []uint64{0, 1<<64 - 1, 2, 3}, 1, []SequenceGap{{1, 1}}, 1, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := sequenced(c.sequences...)
			f := NewFold(FoldOptions{})
			for _, e := range events {
				f.Apply(e)
			}
			require.Equal(t, Coverage{Missing: c.missing, Gaps: c.gaps}, f.Coverage())
			s := f.Snapshot()
			require.Equal(t, c.violations, s.ViolationCount, "%v", s.Violations)
			for _, v := range s.Violations {
				require.Equal(t, RuleSequence, v.Rule)
			}
			if c.calls > 0 {
				require.Equal(t, c.calls, s.Tools["T"].OK)
			}
			requireSplitFolds(t, events, s)
			for _, e := range events { // again
				f.Apply(e)
			}
			require.Equal(t, c.calls, len(f.Snapshot().ClosedCalls))
		})
	}
}

// A log without its deltas has a gap for each message: the list of them is short.
func TestCoverageIsBounded(t *testing.T) {
	var sequences []uint64
	for i := range uint64(1000) {
		sequences = append(sequences, 3*i+2)
	}
	sequences = append(sequences, 1e9, 3000, 3001)
	f := NewFold(FoldOptions{})
	for _, e := range sequenced(sequences...) {
		f.Apply(e)
	}
	c := f.Coverage()
	require.Equal(t, uint64(2000), c.Missing)
	require.Len(t, c.Gaps, maxGaps)
	require.Equal(t, SequenceGap{0, 1}, c.Gaps[0])
}

// A delta with a false sequence discards nothing either.
func TestDeltaWithAFalseSequence(t *testing.T) {
	delta := func(text string) Event { return ev("a", &TextDelta{Delta: text}) }
	events := foldLog(t, ev("a", started()), delta("a"), delta("b"), delta("c"), delta("d"), ev("a", &TextCompleted{BlockID: "x", Text: "x"}), ev("a", &AgentEnded{}))
	events[2].Sequence = 5000
	s := foldEvents(FoldOptions{}, events[:5])
	require.Equal(t, "abcd", s.Agents["a"].Text)
	require.Equal(t, 1, s.ViolationCount)
	s = foldEvents(FoldOptions{}, events)
	require.Equal(t, 1, s.ViolationCount)
	require.Equal(t, uint64(7), s.NextSequence)
	requireSplitFolds(t, events, s)
}

// Deltas that are delivered again change nothing, also for an agent without a start.
func TestRepeatedDeltas(t *testing.T) {
	for _, first := range []Payload{started(), &TextCompleted{Text: "x"}, &TextDelta{Delta: "x"}} {
		events := foldLog(t, ev("a", first), ev("a", &TextDelta{BlockID: "b", Delta: "a"}), ev("a", &TextDelta{BlockID: "b", Delta: "b"}))
		var told []*RuleError
		s := foldEvents(FoldOptions{OnViolation: func(err *RuleError) { told = append(told, err) }}, slices.Concat(events, events))
		require.Empty(t, told)
		require.Equal(t, "ab", s.Agents["a"].Text)
		requireSplitFolds(t, slices.Concat(events, events), s)
	}
}

// An event that is older than the fold's memory may be a repeated one, or belong to another run
// with the same id: the fold reports it, and the snapshot is the same.
func TestUnprovenRepetition(t *testing.T) {
	var told []*RuleError
	l := NewFoldSet(FoldOptions{OnViolation: func(err *RuleError) { told = append(told, err) }})
	for _, e := range sequenced(firstNumbers(200)...) {
		l.Apply(e)
	}
	before := l.Snapshot("r")
	for _, e := range sequenced(firstNumbers(79)...) {
		e.ID = "other"
		l.Apply(e)
	}
	require.Equal(t, before, l.Snapshot("r"))
	require.Len(t, told, 79)
	require.Equal(t, RuleSequence, told[0].Rule)
	require.Equal(t, uint64(0), told[0].Sequence)

	// The log of a run that is put away keeps its coverage.
	ended := sequenced(200, 203)
	ended[1].AgentID, ended[1].Payload = "", &RunCompleted{}
	l.Apply(ended[0])
	l.Apply(ended[1])
	other := sequenced(0)[0]
	for i := range maxEnded + 2 {
		other.RunID, other.AgentID, other.Payload = fmt.Sprint("other ", i), "", &RunCompleted{}
		l.Apply(other)
	}
	require.Nil(t, l.runs["r"].fold)
	covered := map[string]Coverage{}
	for id, c := range l.Coverage() {
		covered[id] = c
	}
	require.Equal(t, Coverage{Missing: 2, Gaps: []SequenceGap{{201, 202}}, Unproven: 79}, covered["r"])
	require.Equal(t, Coverage{}, covered["other 0"])
	late := sequenced(205)[0]
	late.Marks = MarkLate
	l.Apply(late)
	for id, c := range l.Coverage() {
		covered[id] = c
	}
	require.Equal(t, Coverage{Missing: 3, Gaps: []SequenceGap{{201, 202}, {204, 204}}, Unproven: 79}, covered["r"])
	for range l.Coverage() {
		break
	}
}
