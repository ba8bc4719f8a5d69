package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The latest entries are known, however many a log has, and the memory is bounded.
func TestRecentForgetsTheOldest(t *testing.T) {
	var r Recent[int, int]
	var list []int
	for i := range 5 * MaxRecent {
		r.Set(i, i)
		r.Set(0, i) // in use
		list = Limited(list, i)
		require.LessOrEqual(t, r.Len(), 2*MaxRecent)
		require.LessOrEqual(t, len(list), maxListed)
		require.Equal(t, i, list[len(list)-1])
		for _, known := range []int{i, i - MaxRecent/2, i - MaxRecent + 2} {
			if v, ok := r.Get(known); known > 0 {
				require.True(t, ok, "%d of %d", known, i)
				require.Equal(t, known, v)
			}
		}
		require.Equal(t, i, r.Of(0))
	}
	_, ok := r.Get(1)
	require.False(t, ok)
	n := 0
	for k, v := range r.All() {
		require.Equal(t, v, r.Of(k))
		r.Delete(k)
		n++
	}
	require.Greater(t, n, MaxRecent)
	require.Zero(t, r.Len())
}
