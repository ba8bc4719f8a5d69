package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
)

// A percentile of a histogram is within 1/128 of the exact one, and the highest duration is exact.
func TestHistogramError(t *testing.T) {
	rng := rand.New(rand.NewPCG(effort.Seed(t), 40))
	for range effort.Of(100, 300, 3000) {
		var h histogram
		durations := make([]time.Duration, 1+rng.IntN(300))
		most := 1 + rng.IntN(63) // the durations of a round may be close to each other
		for i := range durations {
			durations[i] = time.Duration(rng.Uint64() >> (most + rng.IntN(64-most)))
			h.add(durations[i])
		}
		want, got := spread(slices.Clone(durations)), h.spread()
		require.Equal(t, want.Max, got.Max)
		for _, p := range [][2]float64{{want.P50, got.P50}, {want.P95, got.P95}} {
			require.LessOrEqual(t, math.Abs(p[0]-p[1]), p[0]/128+1e-9)
		}
	}
	require.Nil(t, (*histogram)(nil).spread())
}

// The buckets stand one after another, and each has its middle.
func TestHistogramBuckets(t *testing.T) {
	var next uint64
	for row := range len(histogram{}.rows) {
		for i := range uint64(rowSize) {
			width := uint64(1) << max(0, row-1)
			r, at := bucket(next)
			require.Equal(t, [2]uint64{uint64(row), i}, [2]uint64{uint64(r), at})
			r, at = bucket(next + width - 1)
			require.Equal(t, [2]uint64{uint64(row), i}, [2]uint64{uint64(r), at})
			m := uint64(middle(row, i))
			require.True(t, next <= m && m < next+width)
			next += width
		}
	}
	require.Equal(t, uint64(1)<<63, next, "all durations")
	var h histogram
	h.add(-time.Second)
	require.Equal(t, &Spread{}, h.spread())
}
