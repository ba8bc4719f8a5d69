package deal

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeal(t *testing.T) {
	const keys, rounds = 7, 400
	padding := strings.Repeat("x", 1000) // so that there are several batches
	for _, workers := range []int{1, 3} {
		got := make([]map[string][]int, workers)
		work := make([]func(string, int), workers)
		for i := range work {
			got[i] = map[string][]int{}
			work[i] = func(text string, note int) {
				key, rest, _ := strings.Cut(text, " ")
				if rest == padding {
					key = strings.Clone(key) // a later text uses its memory again
					got[i][key] = append(got[i][key], note)
				}
			}
		}
		d := New(work...)
		var text []byte
		for n := range rounds {
			for k := range keys {
				key := fmt.Sprint("key", k)
				text = fmt.Appendf(text[:0], "%s %s", key, padding) // the memory is used again
				d.Deal([]byte(key), text, n)
			}
		}
		d.Wait()
		all := map[string][]int{}
		for _, some := range got {
			for key, notes := range some {
				require.NotContains(t, all, key, "a key has one worker")
				all[key] = notes
			}
		}
		require.Len(t, all, keys)
		for key, notes := range all {
			require.Len(t, notes, rounds, key)
			require.IsIncreasing(t, notes, key)
		}
	}
	New[int](func(string, int) { t.Error("nothing was dealt") }).Wait()
}

func TestAPanicComesBackFromWait(t *testing.T) {
	calls := 0
	d := New(func(text string, _ struct{}) {
		calls++
		panic("of " + text)
	})
	text := make([]byte, batchSize)
	copy(text, "the first")
	for range 3 * batchAhead { // the dealer is not held up
		d.Deal(nil, text, struct{}{})
	}
	require.PanicsWithValue(t, "of "+string(text), d.Wait)
	require.Equal(t, 1, calls)
}
