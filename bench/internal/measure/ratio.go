package measure

import (
	"math"
	"slices"
)

// A Ratio compares two operations. Value is the ratio of the least round of each. Low and
// High are its interval: the sign test's confidence interval for the median of the rounds'
// ratios at 99.9 %, stretched to contain Value.
//
// The interval makes no assumption about how a busy machine disturbs a round. With twelve
// rounds it reaches from the least ratio of a round to the greatest: the median lies
// outside only if all twelve fall on the same side of it, once in 2,048 times. From sixteen
// rounds on, one outlier at each end is left out, and more with more rounds.
type Ratio struct {
	Value, Low, High float64
	// Enough tells whether there are rounds enough for the interval, at least eleven.
	Enough bool
}

// doubt is how often the median may lie outside the interval.
const doubt = 0.001

// A Pair is the rounds of two operations; those with the same index were neighbors.
type Pair struct{ Over, Under []float64 }

// RatioOf returns the ratio Over/Under of a pair, or the geometric mean of several.
func RatioOf(pairs ...Pair) Ratio {
	rounds := math.MaxInt
	for _, p := range pairs {
		rounds = min(rounds, len(p.Over), len(p.Under))
	}
	if len(pairs) == 0 || rounds == 0 {
		return Ratio{}
	}
	mean := func(figure func(v []float64) float64) float64 {
		sum := 0.0
		for _, p := range pairs {
			sum += math.Log(figure(p.Over) / figure(p.Under))
		}
		return math.Exp(sum / float64(len(pairs)))
	}
	ratios := make([]float64, rounds)
	for i := range ratios {
		ratios[i] = mean(func(v []float64) float64 { return v[i] })
	}
	slices.Sort(ratios)
	cut, enough := outliers(rounds)
	value := mean(func(v []float64) float64 { return slices.Min(v[:rounds]) })
	return Ratio{Value: value, Low: min(value, ratios[cut]), High: max(value, ratios[rounds-1-cut]), Enough: enough}
}

// outliers returns how many ratios the interval leaves out at each end. It is not ok if
// even the whole range of so few rounds misses the median more often than doubt allows.
func outliers(rounds int) (cut int, ok bool) {
	// The median lies outside the range without the k least and k greatest with twice the
	// chance that at most k of the tosses of a coin show heads.
	chance, tail := math.Pow(2, 1-float64(rounds)), 0.0
	for k := range rounds {
		if tail += chance; tail > doubt {
			return max(0, k-1), k > 0
		}
		chance *= float64(rounds-k) / float64(k+1)
	}
	return 0, false
}

// Widened returns the ratio with an interval that reaches at least by the factor floor to
// both sides of its value.
func (r Ratio) Widened(floor float64) Ratio {
	r.Low, r.High = min(r.Low, r.Value/floor), max(r.High, r.Value*floor)
	return r
}

// Off returns the factor by which the ratio differs from 1, at least 1.
func (r Ratio) Off() float64 { return max(r.Value, 1/r.Value) }

// Floor returns the Off that three quarters of the controls do not exceed. Controls are
// ratios of the same code on both sides: a smaller difference cannot be told from noise.
func Floor(controls []Ratio) float64 {
	if len(controls) == 0 {
		return 1
	}
	off := make([]float64, len(controls))
	for i, c := range controls {
		off[i] = c.Off()
	}
	slices.Sort(off)
	return off[(3*len(off)-1)/4]
}

// A Verdict tells on which side of a bar a ratio lies.
type Verdict string

// The verdicts. A row whose interval contains its bar crosses it. Unknown is for rounds that
// are too few, and for machines that cannot tell CPU time.
const (
	OK      Verdict = "ok"
	Short   Verdict = "SHORT"
	Crosses Verdict = "crosses its bar"
	Unknown Verdict = "no verdict"
)

// AtLeast judges a ratio that is good from bar up.
func (r Ratio) AtLeast(bar float64) Verdict {
	return r.judge(r.Low >= bar, r.High < bar)
}

// AtMost judges a ratio that is good up to bar.
func (r Ratio) AtMost(bar float64) Verdict {
	return r.judge(r.High <= bar, r.Low > bar)
}

func (r Ratio) judge(good, bad bool) Verdict {
	switch {
	case !r.Enough || !CPUKnown:
		return Unknown
	case good:
		return OK
	case bad:
		return Short
	}
	return Crosses
}

// A Change tells how a new figure differs from an old one.
type Change string

// The changes. Same is a ratio whose whole interval is within the margin; Undecidable is one
// that may be a change beyond the margin or none.
const (
	Same        Change = "same"
	Slower      Change = "slower"
	Faster      Change = "faster"
	Undecidable Change = "not decidable"
)

// Change judges the ratio new/old. A margin of 0.05 takes 5 % more or less for the same.
func (r Ratio) Change(margin float64) Change {
	switch {
	case !r.Enough || !CPUKnown:
		return Undecidable
	case r.Low > 1:
		return Slower
	case r.High < 1:
		return Faster
	case r.High <= 1+margin && r.Low >= 1/(1+margin):
		return Same
	}
	return Undecidable
}
