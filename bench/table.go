package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
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

// ratio returns the ratio to which the bar applies.
func (b bar) ratio(ours, theirs float64) float64 {
	if b.atMost > 0 {
		ours, theirs = theirs, ours
	}
	if ours == 0 {
		return 0
	}
	return theirs / ours
}

func (b bar) mark(ratio float64) string {
	switch {
	case b.atLeast > 0 && ratio < b.atLeast, b.atMost > 0 && ratio > b.atMost:
		return "SHORT"
	case b == bar{}:
		return ""
	}
	return "ok"
}

// A pair is two cells that are compared.
type pair struct{ ours, theirs *cell }

// A comparison is one row of the table.
type comparison struct {
	goal string
	what string // what it compares
	bar  bar

	pairs []pair // one pair, or several, of which the row is the geometric mean

	// direct measures something that is not a ratio of times. It replaces pairs.
	direct func() (row, error)
}

func compare(goal, what string, b bar, ours, theirs *cell) comparison {
	return comparison{goal: goal, what: what, bar: b, pairs: []pair{{ours, theirs}}}
}

// A row is the text of a row.
type row struct {
	goal, what, bar, measured, ours, theirs, mark string
}

// row returns the row of a comparison, once its cells are measured.
func (c comparison) row() (row, error) {
	if c.direct != nil {
		r, err := c.direct()
		r.goal, r.what = c.goal, c.what
		return r, err
	}
	r := row{goal: c.goal, what: c.what, bar: c.bar.String(), ours: "–", theirs: "–"}
	for _, p := range c.pairs {
		for _, cell := range []*cell{p.ours, p.theirs} {
			if cell.missing != nil {
				r.measured, r.mark = "–", "not measured: "+cell.missing.Error()
				return r, nil
			}
		}
	}
	if len(c.pairs) == 1 {
		r.ours, r.theirs = c.pairs[0].ours.figure(), c.pairs[0].theirs.figure()
	}
	// The ratio is of the medians. The spread is between the rounds.
	ratio := c.geomean(func(cell *cell) float64 { return cell.median() })
	var rounds []float64
	for i := range c.pairs[0].ours.ns {
		rounds = append(rounds, c.geomean(func(cell *cell) float64 { return cell.ns[i] }))
	}
	r.measured = number(ratio) + "x"
	if ratio > 0 {
		r.measured += fmt.Sprintf(" ±%.0f%%", 50*(quantile(rounds, 0.75)-quantile(rounds, 0.25))/ratio)
	}
	r.mark = c.bar.mark(ratio)
	return r, nil
}

func (c comparison) geomean(figure func(*cell) float64) float64 {
	sum := 0.0
	for _, p := range c.pairs {
		sum += math.Log(c.bar.ratio(figure(p.ours), figure(p.theirs)))
	}
	return math.Exp(sum / float64(len(c.pairs)))
}

// figure is the absolute figure of a cell.
func (c *cell) figure() string {
	ns := c.median()
	s := fmt.Sprintf("%.0f ns", ns)
	if ns < 100 {
		s = fmt.Sprintf("%.1f ns", ns)
	}
	if c.bytes > 0 && ns > 0 {
		s += fmt.Sprintf(" (%.0f MB/s)", float64(c.bytes)/float64(max(1, c.events))/ns*1e3)
	}
	return s
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
	var out bytes.Buffer
	tw := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "goal\twhat\tbar\tmeasured\tours\ttheirs\t")
	for i, r := range rows {
		if i > 0 && rows[i-1].goal != r.goal {
			fmt.Fprintln(tw, "\t\t\t\t\t\t")
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.goal, r.what, r.bar, r.measured, r.ours, r.theirs, r.mark)
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

// short counts the rows that fall short.
func short(rows []row) int {
	n := 0
	for _, r := range rows {
		if r.mark == "SHORT" {
			n++
		}
	}
	return n
}
