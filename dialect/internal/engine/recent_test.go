package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/dialect/internal/recent"
)

// The latest entries are known, however many a log has, and the memory is bounded.
func TestRecentForgetsTheOldest(t *testing.T) {
	var r Recent[int, int]
	var list []int
	for i := range 5 * recent.Max {
		r.Set(i, i)
		r.Set(0, i) // in use
		if _, ok := r.Use(1); i > 1 {
			require.True(t, ok, "it is in use")
		}
		list = Limited(list, i)
		require.LessOrEqual(t, r.Len(), 2*recent.Max)
		require.LessOrEqual(t, len(list), maxListed)
		require.Equal(t, i, list[len(list)-1])
		for _, known := range []int{i, i - recent.Max/2, i - recent.Max + 2} {
			if v, ok := r.Get(known); known > 0 {
				require.True(t, ok, "%d of %d", known, i)
				require.Equal(t, known, v)
			}
		}
		require.Equal(t, i, r.Of(0))
	}
	_, ok := r.Get(2)
	require.False(t, ok)
	n := 0
	for k, v := range r.All() {
		require.Equal(t, v, r.Of(k))
		r.Delete(k)
		n++
	}
	require.Greater(t, n, recent.Max)
	require.Zero(t, r.Len())
}
