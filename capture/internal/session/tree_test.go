package session

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
)

// A line that follows an earlier one leaves out the messages of the lines that are before the last
// one and not before it, each once, in their order.
func TestTree(t *testing.T) {
	seed := effort.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var tree Tree
		parents, gone := []int{}, map[int]bool{}
		path := func(n int) (ids []int) {
			for ; n >= 0; n = parents[n] {
				ids = append(ids, n)
			}
			return ids
		}
		for i := range 30 {
			last := i - 1
			from := last
			if i > 0 && r.IntN(3) == 0 {
				from = r.IntN(i+1) - 1
			}
			var want []string
			for _, n := range path(last) {
				if !gone[n] && !slices.Contains(path(from), n) {
					want = append(want, "e"+strconv.Itoa(n))
					gone[n] = true
				}
			}
			slices.Reverse(want)
			parent := ""
			if from >= 0 {
				parent = strconv.Itoa(from)
			}
			left, branches, isNew := tree.Add(strconv.Itoa(i), parent)
			require.True(t, isNew)
			require.Equal(t, from != last, branches)
			require.Equal(t, want, left)
			tree.Said([]string{"e" + strconv.Itoa(i)})
			parents = append(parents, from)
		}
	}
}

// A line that was written twice is not new, and one that follows a line that is not there follows
// the last one.
func TestTreeOfDamagedLines(t *testing.T) {
	var tree Tree
	tree.Add("a", "")
	tree.Said([]string{"e"})
	_, _, isNew := tree.Add("a", "")
	require.False(t, isNew)
	left, branches, isNew := tree.Add("c", "b")
	require.True(t, isNew)
	require.False(t, branches)
	require.Empty(t, left)
	left, branches, _ = tree.Add("d", "")
	require.True(t, branches)
	require.Equal(t, []string{"e"}, left)
}
