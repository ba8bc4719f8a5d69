package queue_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentevents/agentevents/internal/queue"
	"github.com/stretchr/testify/require"
)

// A ring holds the items of a slice with the same operations.
func TestRingIsASlice(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var ring queue.Ring[*int]
		var model []*int
		for range 300 {
			switch n := len(model); {
			case n == 0 || rng.IntN(3) > 0:
				v := rng.IntN(100)
				ring.Push(&v)
				model = append(model, &v)
			case rng.IntN(20) == 0:
				odd := func(v *int) bool { return *v%2 == 1 }
				ring.DeleteFunc(func(v **int) bool { return odd(*v) })
				model = slices.DeleteFunc(model, odd)
			case rng.IntN(2) == 0:
				require.Same(t, model[0], ring.Pop())
				model = model[1:]
			default:
				i := rng.IntN(n)
				ring.Delete(i)
				model = slices.Delete(model, i, i+1)
			}
			require.Equal(t, len(model), ring.Len())
			for i, v := range model {
				require.Same(t, v, *ring.At(i))
			}
		}
	}
}

type busy struct{ error }

func (busy) Temporary() bool { return true }

func TestRetry(t *testing.T) {
	down, broken := busy{errors.New("down")}, errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		r, began := queue.NewRetry(), time.Now()
		always := func(int) error { return down }
		require.Equal(t, down, r.Do(always))
		require.Equal(t, 30*time.Second, time.Since(began))

		began = time.Now()
		tries := 0
		require.Equal(t, down, r.Do(func(before int) error { tries++; return down }))
		require.Equal(t, 1, tries, "the time is over for all")
		require.Zero(t, time.Since(began))

		require.Equal(t, broken, r.Do(func(int) error { return broken }))
		require.NoError(t, r.Do(func(before int) error {
			if before < 2 {
				return down
			}
			return nil
		}))
		require.Equal(t, 30*time.Millisecond, time.Since(began), "pauses of 10 and 20 ms")

		r.Hurry()
		r.Hurry()
		began = time.Now()
		require.Equal(t, down, r.Do(always))
		require.Zero(t, time.Since(began))
	})
}
