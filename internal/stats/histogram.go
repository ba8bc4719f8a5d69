package stats

import (
	"math"
	"math/bits"
	"time"
)

// A histogram counts durations in buckets, so that its memory does not grow with their number.
// The buckets of each power of two are equally wide: a percentile is off by at most 1/128 of
// itself, below 0.8 %, and not outside the durations; the highest one is exact. A histogram takes 512 bytes for each
// power of two in which there is a duration, at most 30 kB; durations from a millisecond to an
// hour take 11 kB. The zero histogram is ready to use.
type histogram struct {
	n        uint64
	min, max time.Duration
	rows     [1 + 63 - rowBits]*[rowSize]uint64 // by power of two; nil has none
}

const (
	rowBits = 6
	rowSize = 1 << rowBits
)

// add counts a duration. One below zero counts as zero.
func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	if h.n == 0 || d < h.min {
		h.min = d
	}
	h.max = max(h.max, d)
	h.n++
	row, i := bucket(uint64(d))
	if h.rows[row] == nil {
		h.rows[row] = new([rowSize]uint64)
	}
	h.rows[row][i]++
}

// bucket returns the row and the place of the bucket that has v. The first row has a bucket for
// each number below 64. A later row is twice as wide as all before it, and its buckets are as
// wide as 1/64 of its least number.
func bucket(v uint64) (row int, i uint64) {
	row = max(0, bits.Len64(v)-rowBits)
	if row == 0 {
		return 0, v
	}
	return row, v>>(row-1) - rowSize
}

// middle returns the duration in the middle of a bucket.
func middle(row int, i uint64) time.Duration {
	if row == 0 {
		return time.Duration(i)
	}
	width := uint64(1) << (row - 1)
	return time.Duration((rowSize+i)*width + (width-1)/2)
}

// spread returns nil without durations. A percentile is the middle of the bucket with the least
// duration that so many percent are not above.
func (h *histogram) spread() *Spread {
	if h == nil || h.n == 0 {
		return nil
	}
	return &Spread{milliseconds(h.rank(0.5)), milliseconds(h.rank(0.95)), milliseconds(h.max)}
}

func (h *histogram) rank(p float64) time.Duration {
	left := uint64(math.Ceil(p * float64(h.n)))
	for row, counts := range h.rows {
		if counts == nil {
			continue
		}
		for i, n := range counts {
			if n >= left {
				return max(h.min, min(h.max, middle(row, uint64(i))))
			}
			left -= n
		}
	}
	return h.max
}
