package measure

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// repeat returns n rounds of one figure.
func repeat(v float64, n int) []float64 { return slices.Repeat([]float64{v}, n) }

func TestRatio(t *testing.T) {
	twelve := make([]float64, 12)
	for i := range twelve {
		twelve[i] = 100 + float64(i)
	}
	require.Equal(t, Ratio{Value: 2, Low: 2, High: 2.22, Enough: true}, RatioOf(Pair{Over: scaled(twelve, 2), Under: repeat(100, 12)}))
	require.Equal(t, Ratio{}, RatioOf())
	require.Equal(t, Ratio{}, RatioOf(Pair{}))
	// Two pairs whose least rounds differ: the mean of the least leaves the range of the rounds.
	r := RatioOf(Pair{Over: []float64{1, 4}, Under: []float64{1, 1}}, Pair{Over: []float64{4, 1}, Under: []float64{1, 1}})
	require.Equal(t, Ratio{Value: 1, Low: 1, High: 2}, r)
}

func scaled(v []float64, by float64) []float64 {
	out := slices.Clone(v)
	for i := range out {
		out[i] *= by
	}
	return out
}

// The numbers of tosses that the sign test at 99.9 % leaves out, from tables of the binomial
// distribution.
func TestOutliers(t *testing.T) {
	for rounds, want := range map[int]int{1: -1, 8: -1, 10: -1, 11: 0, 12: 0, 14: 0, 15: 1, 18: 1, 19: 2, 20: 2, 40: 9} {
		cut, enough := outliers(rounds)
		require.Equal(t, want >= 0, enough, rounds)
		require.Equal(t, max(0, want), cut, rounds)
	}
}

// An interval contains its value, and of one pair also lies within the range of the rounds'
// ratios. Turning the sides over turns the interval over.
func TestIntervals(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for range 2000 {
		n := 1 + rng.IntN(40)
		figures := func() []float64 {
			out := make([]float64, n)
			for i := range out {
				out[i] = 1 + rng.ExpFloat64()
			}
			return out
		}
		p := Pair{Over: figures(), Under: figures()}
		r, back := RatioOf(p), RatioOf(Pair{Over: p.Under, Under: p.Over})
		require.LessOrEqual(t, r.Low, r.Value)
		require.LessOrEqual(t, r.Value, r.High)
		var ratios []float64
		for i := range n {
			ratios = append(ratios, p.Over[i]/p.Under[i])
		}
		require.GreaterOrEqual(t, r.Low, slices.Min(ratios)*(1-1e-9))
		require.LessOrEqual(t, r.High, slices.Max(ratios)*(1+1e-9))
		require.InEpsilon(t, 1/r.High, back.Low, 1e-9)
		require.InEpsilon(t, 1/r.Value, back.Value, 1e-9)

		floor := 1 + rng.Float64()
		w := r.Widened(floor)
		require.LessOrEqual(t, w.Low, min(r.Low, r.Value/floor))
		require.GreaterOrEqual(t, w.High, max(r.High, r.Value*floor))
	}
}

// Of two runs with the same bar, at most one in some thousand has the other verdict, however
// near the bar is: the intervals of both would have to miss it, on different sides. And of the
// rows of a commit against itself as few change.
func TestRunsDoNotContradictEachOther(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	run := func() Ratio {
		// Noise of a busy machine only adds time, and sometimes much.
		figures := func(v float64) []float64 {
			out := make([]float64, 12)
			for i := range out {
				out[i] = v * (1 + 0.03*rng.ExpFloat64())
				if rng.IntN(10) == 0 {
					out[i] *= 1.5
				}
			}
			return out
		}
		return RatioOf(Pair{Over: figures(200), Under: figures(100)})
	}
	const runs = 4000
	contradictions, outside := 0, 0
	for range runs {
		bar := 1.9 + 0.2*rng.Float64()
		a, b := run().AtLeast(bar), run().AtLeast(bar)
		if a != b && a != Crosses && b != Crosses {
			contradictions++
		}
		if r := run(); r.Low > 2 || r.High < 2 {
			outside++
		}
	}
	require.LessOrEqual(t, contradictions, runs/1000)
	require.LessOrEqual(t, outside, runs/500)
}

func TestVerdicts(t *testing.T) {
	if !CPUKnown {
		t.Skip("CPU time is not known on this system, so there are no verdicts")
	}
	r := Ratio{Value: 2, Low: 1.8, High: 2.2, Enough: true}
	for bar, want := range map[float64][2]Verdict{
		1.5: {OK, Short}, 1.8: {OK, Crosses}, 1.9: {Crosses, Crosses}, 2: {Crosses, Crosses}, 2.2: {Crosses, OK}, 2.3: {Short, OK},
	} {
		require.Equal(t, want, [2]Verdict{r.AtLeast(bar), r.AtMost(bar)}, bar)
	}
	r.Enough = false
	require.Equal(t, [2]Verdict{Unknown, Unknown}, [2]Verdict{r.AtLeast(1), r.AtMost(1)})
}

func TestChanges(t *testing.T) {
	if !CPUKnown {
		t.Skip("CPU time is not known on this system, so nothing is decided")
	}
	for _, c := range []struct {
		low, high float64
		want      Change
	}{
		{1.01, 1.02, Slower}, {0.9, 0.99, Faster}, {0.97, 1.03, Same}, {1, 1.04, Same}, {0.97, 1.06, Undecidable}, {0.94, 1.01, Undecidable},
	} {
		r := Ratio{Value: (c.low + c.high) / 2, Low: c.low, High: c.high, Enough: true}
		require.Equal(t, c.want, r.Change(0.05), "%v", c)
		r.Enough = false
		require.Equal(t, Undecidable, r.Change(0.05))
	}
}

func TestFloor(t *testing.T) {
	require.Equal(t, 1.0, Floor(nil))
	require.InDelta(t, 1.25, Floor([]Ratio{{Value: 1.1}, {Value: 0.8}}), 1e-12)
	require.InDelta(t, 1.25, Floor([]Ratio{{Value: 3}, {Value: 0.8}, {Value: 1.1}, {Value: 1}}), 1e-12, "one that is far off does not count")
}

// counter is a cell whose clock goes on by one millisecond with each operation.
func counter(name string, loops *[]string) *Cell {
	clock := time.Duration(0)
	return &Cell{Name: name, Clock: func() time.Duration { return clock }, Setup: func(c *Cell) (func(int) error, error) {
		c.Events, c.Bytes = 4, 100
		return func(n int) error {
			*loops = append(*loops, name)
			clock += time.Duration(n) * time.Millisecond
			return nil
		}, nil
	}}
}

func TestCells(t *testing.T) {
	var loops []string
	a, b := counter("a", &loops), counter("b", &loops)
	b.Cold = true
	gone := &Cell{Name: "gone", Setup: func(*Cell) (func(int) error, error) { return nil, Missing("no such CPU") }}
	got, err := Cells([]*Cell{a, b, gone}, 3, map[string]int{"a": 5, "b": 8})
	require.NoError(t, err)
	require.Equal(t, strings.Fields("a b a a b a a b a a b"), loops, "the rounds are interleaved, and a is warm")
	for _, s := range got {
		if s.Missing == "" {
			require.Equal(t, repeat(250_000, 3), s.CPU, s.Name)
			require.Len(t, s.Wall, 3)
		}
	}
	require.Equal(t, Series{Name: "gone", Events: 1, Missing: "no such CPU"}, got[2])
	require.Equal(t, []int{5, 8, 4, 100}, []int{got[0].N, got[1].N, got[0].Events, got[0].Bytes})

	calibrated, err := Cells([]*Cell{a}, 1, nil)
	require.NoError(t, err)
	require.InDelta(t, perRound.Milliseconds(), calibrated[0].N, float64(perRound.Milliseconds())/3)

	broken := &Cell{Name: "broken", Setup: Each(func() error { return errors.New("out of order") })}
	_, err = Cells([]*Cell{broken}, 1, nil)
	require.EqualError(t, err, "broken: out of order")
}

func TestServe(t *testing.T) {
	var loops []string
	cells := []*Cell{counter("a", &loops), counter("b", &loops)}
	var out bytes.Buffer
	require.NoError(t, Serve(cells, strings.NewReader(`{"Cells":["b"],"Rounds":2,"N":{"b":3}}`), &out))
	var got []Series
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Len(t, got, 1)
	require.Equal(t, repeat(250_000, 2), got[0].CPU)
	require.EqualError(t, Serve(cells, strings.NewReader(`{"Cells":["c"]}`), &out), `no cell is named "c"`)
	require.Error(t, Serve(cells, strings.NewReader(`{`), &out))
}

func TestRecord(t *testing.T) {
	r := Record{}
	r.Add([]Series{{Name: "a", N: 3, CPU: []float64{1, 2}, Wall: []float64{5, 6}}})
	r.Add([]Series{{Name: "a", N: 3, CPU: []float64{4}, Wall: []float64{7}}, {Name: "b", N: 1}})
	require.Equal(t, []float64{1, 2, 4}, r["a"].CPU)
	require.Equal(t, []float64{5, 6, 7}, r["a"].Wall)
	require.Equal(t, map[string]int{"a": 3, "b": 1}, r.N())
}
