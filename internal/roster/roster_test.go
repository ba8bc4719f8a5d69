package roster

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Roster behaves like a plain list, whatever the order of the calls.
func TestRosterIsAList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 3, Few, Few + 1, 200} {
		var r Roster[int, int]
		var keys, values []int
		for step := range 5000 {
			key := rng.IntN(size)
			at := slices.Index(keys, key)
			switch n := rng.IntN(10); {
			case n < 5 && len(keys) < 2*size:
				r.Add(key, step)
				keys, values = append(keys, key), append(values, step)
			case n < 9:
				v, ok := r.Take(key)
				require.Equal(t, at >= 0, ok)
				if ok {
					require.Equal(t, values[at], v)
					keys, values = slices.Delete(keys, at, at+1), slices.Delete(values, at, at+1)
				}
			default:
				if v := r.Find(key); at < 0 {
					require.Nil(t, v)
				} else {
					require.Equal(t, values[at], *v)
				}
			}
			require.Equal(t, len(values), r.Len())
			i := 0
			for key, v := range r.Each() {
				require.True(t, keys[i] == key && values[i] == *v)
				i++
			}
			require.Equal(t, len(values), i)
			if step%50 == 0 {
				gotKeys, got := r.All()
				require.Equal(t, len(keys), len(gotKeys))
				require.True(t, slices.Equal(keys, gotKeys) && slices.Equal(values, got))
			}
		}
		r.Reset()
		require.Zero(t, r.Len())
		require.Nil(t, r.Find(0))
	}
}

// Take and LastOpen return items in the order in which they were opened, from
// either end.
func TestOpens(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var o Opens[string]
	want := map[string][]int{}
	open := map[int]bool{}
	for at := range 5000 {
		key := string(rune('a' + rng.IntN(3)))
		switch rng.IntN(4) {
		case 0, 1:
			o.Add(key, at)
			want[key], open[at] = append(want[key], at), true
		case 2:
			got, ok := o.Take(key)
			require.Equal(t, len(want[key]) > 0, ok)
			if ok {
				require.Equal(t, want[key][0], got)
				want[key] = want[key][1:]
			}
		case 3:
			for len(want[key]) > 0 && !open[want[key][len(want[key])-1]] {
				want[key] = want[key][:len(want[key])-1]
			}
			got, ok := o.LastOpen(key, func(at int) bool { return open[at] })
			require.Equal(t, len(want[key]) > 0, ok)
			if ok {
				require.Equal(t, want[key][len(want[key])-1], got)
				open[got] = false // it closes
			}
		}
	}

	o = Opens[string]{}
	for range 3 {
		o.Add("k", NoPlace)
	}
	for range 3 {
		_, ok := o.Take("k")
		require.True(t, ok)
	}
	_, ok := o.Take("k")
	require.False(t, ok)
	require.Zero(t, o.Len())
}
