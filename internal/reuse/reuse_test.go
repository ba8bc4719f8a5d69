package reuse

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlab(t *testing.T) {
	for _, size := range []int{0, 64, 4 << 10} {
		s := Slab{Size: size}
		var got, want []string
		for i := range 2000 {
			text := strings.Repeat(string(rune('a'+i%26)), i*7%300)
			line := []byte(text)
			want, got = append(want, text, text), append(got, s.Clone(text), s.String(line))
			clear(line) // it is a copy
		}
		require.Equal(t, want, got)
		allocs := testing.AllocsPerRun(100, func() { s.Clone("a text of some thirty letters") })
		require.Less(t, allocs, 1.0+0.1*float64(64/max(size, 1)))
	}
}

func TestArena(t *testing.T) {
	var a Arena[[8]int]
	seen := map[*[8]int]bool{}
	for range 100 {
		r := a.Get()
		require.Zero(t, *r)
		require.False(t, seen[r])
		seen[r] = true
	}
	for r := range seen {
		a.Put(r)
	}
	require.True(t, seen[a.Get()])
}

func TestListsAndBuffers(t *testing.T) {
	var l Lists[int]
	require.Nil(t, l.Get())
	for range 2 * maxLists {
		l.Put(make([]int, 3, 8))
	}
	require.Len(t, l.lists, maxLists)
	require.Empty(t, l.Get())

	var b Buffers
	b.Put(make([]byte, maxSpare+1))
	require.Empty(t, b.spare, "a large one is not kept")
	for range 100 {
		b.Put(make([]byte, 10, maxSpare))
	}
	require.LessOrEqual(t, b.size, maxSpareSize)
	for range 10 {
		require.Empty(t, b.Get())
	}
	require.Zero(t, b.size)

	require.Nil(t, Small(make([]byte, 5<<10)))
	require.Nil(t, Map(map[int]int(nil)))
	large := map[int]int{}
	for i := range 1000 {
		large[i] = i
	}
	require.Nil(t, Map(large))
	require.Empty(t, Map(map[int]int{1: 2}))
}
