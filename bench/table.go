package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/agentevents/agentevents/bench/internal/measure"
)

// A bar is the ratio that a row must reach. A row with the zero bar is for information
// only.
type bar struct {
	atLeast float64 // theirs/ours
	atMost  float64 // ours/theirs
}

func atLeast(x float64) bar { return bar{atLeast: x} }
func atMost(x float64) bar  { return bar{atMost: x} }

func (b bar) String() string {
	switch {
	case b.atLeast > 0:
		return "≥ " + number(b.atLeast) + "x"
	case b.atMost > 0:
		return "≤ " + number(b.atMost) + "x"
	}
	return "–"
}

func (b bar) judge(r measure.Ratio) measure.Verdict {
	switch {
	case b.atLeast > 0:
		return r.AtLeast(b.atLeast)
	case b.atMost > 0:
		return r.AtMost(b.atMost)
	}
	return ""
}

// A pair is two cells that are compared.
type pair struct{ ours, theirs *cell }

// A comparison is one row of the table.
type comparison struct {
	goal string
	what string // the compared things
	bar  bar

	pairs []pair // one pair, or several, of which the row is the geometric mean
	wall  bool   // the row has wall time; then it has no bar

	// direct counts something instead of comparing times. It replaces pairs.
	direct func() (row, error)
}

// versus makes the row of one pair.
func versus(goal, what string, b bar, ours, theirs *cell) comparison {
	return comparison{goal: goal, what: what, bar: b, pairs: []pair{{ours, theirs}}}
}

// inWallTime makes a row of the same pair for its wall time.
func inWallTime(goal, what string, ours, theirs *cell) comparison {
	return comparison{goal: goal, what: "wall time: " + what, pairs: []pair{{ours, theirs}}, wall: true}
}

// A row is the text of a row.
type row struct {
	goal, what, bar, measured, spread, ours, theirs string
	verdict                                         measure.Verdict
}

// counted is a row that counts something. Its figure is the same in each run.
func counted(bar, measured string, good bool) row {
	r := row{bar: bar, measured: measured, spread: "–", ours: "–", theirs: "–", verdict: measure.OK}
	if !good {
		r.verdict = measure.Short
	}
	return r
}

// row returns the row of a comparison whose cells were measured. No interval is narrower
// than the floor.
func (c comparison) row(series measure.Record, floor float64) (row, error) {
	if c.direct != nil {
		r, err := c.direct()
		r.goal, r.what = c.goal, c.what
		return r, err
	}
	r := row{goal: c.goal, what: c.what, bar: c.bar.String(), measured: "–", spread: "–", ours: "–", theirs: "–"}
	var pairs []measure.Pair
	for _, p := range c.pairs {
		ours, theirs := series[p.ours.Name], series[p.theirs.Name]
		for _, s := range []*measure.Series{ours, theirs} {
			if s == nil {
				return r, fmt.Errorf("%s, %s: a cell was not measured", c.goal, c.what)
			}
			if s.Missing != "" {
				r.verdict = measure.Verdict("not measured: " + s.Missing)
				return r, nil
			}
		}
		over, under := c.figures(theirs), c.figures(ours)
		if c.bar.atMost > 0 {
			over, under = under, over
		}
		pairs = append(pairs, measure.Pair{Over: over, Under: under})
		if len(c.pairs) == 1 {
			r.ours, r.theirs = c.figure(ours), c.figure(theirs)
		}
	}
	ratio := measure.RatioOf(pairs...).Widened(floor)
	r.measured = number(ratio.Value) + "x"
	r.spread = fmt.Sprintf("%.3g to %.3g", ratio.Low, ratio.High)
	r.verdict = c.bar.judge(ratio)
	return r, nil
}

func (c comparison) figures(s *measure.Series) []float64 {
	if c.wall {
		return s.Wall
	}
	return s.CPU
}

// figure is the least figure of a cell.
func (c comparison) figure(s *measure.Series) string {
	ns := slices.Min(c.figures(s))
	text := fmt.Sprintf("%.0f ns", ns)
	switch {
	case ns < 100:
		text = fmt.Sprintf("%.1f ns", ns)
	case ns >= 1e7:
		text = fmt.Sprintf("%.0f ms", ns/1e6)
	}
	if s.Bytes > 0 && ns > 0 {
		text += fmt.Sprintf(" (%.0f MB/s)", float64(s.Bytes)/float64(s.Events)/ns*1e3)
	}
	return text
}

// number formats a ratio with about three digits.
func number(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
	}
	return strings.TrimSuffix(strings.TrimSuffix(fmt.Sprintf("%.2f", x), "0"), ".0")
}

// writeTable writes the rows in columns, with a blank line between goals.
func writeTable(w io.Writer, rows []row) error {
	lines := [][]string{{"goal", "what", "bar", "measured", "interval", "ours", "theirs", ""}}
	for i, r := range rows {
		if i > 0 && rows[i-1].goal != r.goal {
			lines = append(lines, make([]string, 8))
		}
		lines = append(lines, []string{r.goal, r.what, r.bar, r.measured, r.spread, r.ours, r.theirs, string(r.verdict)})
	}
	return writeColumns(w, lines)
}

// writeColumns writes lines of cells, aligned.
func writeColumns(w io.Writer, lines [][]string) error {
	var out bytes.Buffer
	tw := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintln(tw, strings.Join(l, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(out.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// tally counts the rows of each verdict.
func tally(rows []row) string {
	n := map[measure.Verdict]int{}
	other := 0
	for _, r := range rows {
		switch r.verdict {
		case measure.OK, measure.Short, measure.Crosses:
			n[r.verdict]++
		default:
			other++
		}
	}
	return fmt.Sprintf("%d rows: %d ok, %d SHORT, %d cross their bars, %d without a verdict",
		len(rows), n[measure.OK], n[measure.Short], n[measure.Crosses], other)
}
