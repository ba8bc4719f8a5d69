package playback

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
)

// However long a run is, a player keeps few snapshots of it, and one near every place.
func TestFewMarks(t *testing.T) {
	const n = 25 * markEvery
	p, err := New(func(yield func(ae.Event) bool) {
		for i := range uint64(n) {
			if !yield(ae.Event{RunID: "r", Sequence: i, AgentID: "a", Payload: &ae.TextCompleted{Text: "x"}}) {
				return
			}
		}
	}, Options{})
	require.NoError(t, err)
	folds := func(to int) string {
		fold := ae.NewFold(ae.FoldOptions{})
		for _, ev := range p.events[:to] {
			fold.Apply(ev)
		}
		text, err := json.Marshal(fold.Snapshot())
		require.NoError(t, err)
		return string(text)
	}
	require.NoError(t, p.Seek(n))
	for _, to := range []int{n - 1, 8 * markEvery, 5} {
		require.NoError(t, p.Seek(uint64(to)))
		require.LessOrEqual(t, len(p.marks), maxMarks)
		at := 0
		for _, m := range append(p.marks, mark{next: n}) {
			require.Less(t, at, m.next)
			require.LessOrEqual(t, m.next-at, n/4)
			at = m.next
		}
		got, err := json.Marshal(p.Snapshot())
		require.NoError(t, err)
		require.Equal(t, folds(to), string(got), to)
	}
}
