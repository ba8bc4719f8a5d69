package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/view"
	"github.com/agentevents/agentevents/report"
)

func lsCommand() command {
	return command{
		name:    "ls",
		args:    "[flags] FILE...",
		purpose: "list the runs of a log, one on each line",
		about: `
A line has the id of the run, its status, its start and duration, the numbers of its agents,
turns, tool calls, failed calls, errors and broken rules, its tokens, its cost in US dollars,
its models, the reason why it failed or waits, and its session. Two runs with one id break
rules. The runs stand in the order of their starts. A column without any value is left out.
A run without an end in the log is running. A session of an agent program always has an end: if
a turn has none in its files, the run is failed, as interrupted, for every command. The files do
not tell whether the program was killed or still works. A question mark after a status means
that no line tells the end.`,
		examples: []string{
			"agentevents ls logs/*.jsonl",
			"agentevents ls --status failed run.jsonl",
		},
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			f := folder{options: agentevents.FoldOptions{KeepCalls: -1, MaxViolations: -1}}
			l.flags(fs)
			f.flags(fs, &l)
			var status choice
			var m memory
			m.flags(fs)
			for _, s := range runStatuses {
				status.values = append(status.values, string(s))
			}
			fs.Var(&status, "status", "list only runs with the `STATUS`: completed, failed, running …")
			return func(in *invocation) error {
				l.reuse = true
				lines, err := l.each(in)
				if err != nil {
					return err
				}
				runs := remembered(in, &m, &l, func() (runs []runRow) { // of many runs the snapshots would take much memory
					for _, line := range lines {
						f.apply(line)
					}
					for s := range f.runs().Drain() {
						runs = append(runs, rowOf(s))
					}
					return runs
				}, f.lifecycle.value)
				if status.value != "" {
					runs = slices.DeleteFunc(runs, func(r runRow) bool { return string(r.Status) != status.value })
				}
				slices.SortStableFunc(runs, func(a, b runRow) int { return a.Began.Compare(b.Began) })
				writeTable(in.stdout, runs, rowColumns())
				return l.result()
			}
		},
	}
}

// A runRow is the row of a run: the texts of all its cells, one after another.
type runRow struct {
	Began  time.Time
	Status agentevents.RunStatus
	Text   string
	Ends   [len(runColumns)]uint32 // of the cells, in Text
}

func rowOf(s *agentevents.RunSnapshot) runRow {
	r := runRow{Began: s.StartedAt, Status: s.Status}
	var text []byte
	for i := range runColumns {
		text = append(text, runColumns[i].cell(s)...)
		r.Ends[i] = uint32(len(text))
	}
	r.Text = string(text)
	return r
}

// cell returns the text of a cell.
func (r *runRow) cell(i int) string {
	from := uint32(0)
	if i > 0 {
		from = r.Ends[i-1]
	}
	return r.Text[from:r.Ends[i]]
}

// rowColumns are runColumns for rows.
func rowColumns() (columns []column[runRow]) {
	for i, c := range runColumns {
		columns = append(columns, column[runRow]{c.name, c.right, func(r runRow) string { return r.cell(i) }})
	}
	return columns
}

// A column is one of a table; cell returns "" for nothing.
type column[T any] struct {
	name  string
	right bool // numbers
	cell  func(T) string
}

// writeTable prints a row for each thing, under the columns that have something.
func writeTable[T any](w io.Writer, rows []T, columns []column[T]) {
	if len(rows) == 0 {
		return
	}
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column[T]) bool {
		return !slices.ContainsFunc(rows, func(row T) bool { return c.cell(row) != "" })
	})
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = columnsOf(c.name)
		for _, row := range rows {
			widths[i] = max(widths[i], columnsOf(c.cell(row)))
		}
	}
	line := func(cell func(i int) string) {
		var b strings.Builder
		for i, c := range columns {
			text := cell(i)
			room := strings.Repeat(" ", widths[i]-columnsOf(text))
			if c.right {
				text = room + text
			} else {
				text += room
			}
			b.WriteString(text + "  ")
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	line(func(i int) string { return columns[i].name })
	for _, row := range rows {
		line(func(i int) string { return cmp.Or(columns[i].cell(row), "-") })
	}
}

// columnsOf returns how many columns of a terminal a text takes: two for each wide character.
func columnsOf(text string) (n int) {
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Mn, r): // is drawn over the one before
		case r >= 0xff61 && r <= 0xffdc: // half wide
			n++
		case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana),
			r >= 0x3000 && r <= 0x303e, r >= 0xff01 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff:
			n += 2
		default:
			n++
		}
	}
	return n
}

var runColumns = [...]column[*agentevents.RunSnapshot]{
	{"RUN", false, func(s *agentevents.RunSnapshot) string { return clip(visible(s.RunID)) }},
	{"NAME", false, func(s *agentevents.RunSnapshot) string { return clip(visible(s.Name)) }},
	{"STATUS", false, func(s *agentevents.RunSnapshot) string { word, _ := view.Run(s); return visible(word) }},
	{"BEGAN", false, began},
	{"TOOK", true, func(s *agentevents.RunSnapshot) string { return took(view.Length(s)) }},
	{"AGENTS", true, func(s *agentevents.RunSnapshot) string { return some(len(s.Agents)) }},
	{"TURNS", true, func(s *agentevents.RunSnapshot) string { return some(view.Turns(s)) }},
	{"CALLS", true, func(s *agentevents.RunSnapshot) string {
		calls, _ := toolCalls(s)
		return callsOf(calls, slices.Collect(maps.Values(s.Agents))...)
	}},
	{"FAILED", true, func(s *agentevents.RunSnapshot) string { _, failed := toolCalls(s); return some(failed) }},
	{"AUDITS", true, func(s *agentevents.RunSnapshot) string {
		return auditsOf(len(s.Audits), slices.Collect(maps.Values(s.Agents))...)
	}},
	{"ERRORS", true, func(s *agentevents.RunSnapshot) string {
		n := 0
		for _, a := range s.Agents {
			n += a.Errors
		}
		return some(n)
	}},
	{"VIOLATIONS", true, func(s *agentevents.RunSnapshot) string { return some(s.ViolationCount) }},
	{"TOKENS", true, func(s *agentevents.RunSnapshot) string { return someTokens(s.Usage.Usage, s.Usage.Partial) }},
	{"COST", true, func(s *agentevents.RunSnapshot) string { return someDollars(s.Usage.CostUSD) }},
	{"MODEL", false, func(s *agentevents.RunSnapshot) string { return clip(visible(strings.Join(view.Models(s), ", "))) }},
	{"WHY", false, func(s *agentevents.RunSnapshot) string { return clip(visible(report.Reason(s, report.Of(s, nil)))) }},
	{"SESSION", false, func(s *agentevents.RunSnapshot) string {
		if s.SessionID == s.RunID {
			return ""
		}
		return clip(visible(s.SessionID))
	}},
}

// began returns when a run began. A log without times may begin at the epoch.
func began(s *agentevents.RunSnapshot) string {
	if s.StartedAt.Year() <= 1970 {
		return ""
	}
	return s.StartedAt.UTC().Format("2006-01-02 15:04:05Z")
}

// took returns a duration, or nothing for 0: a log without times has none.
func took(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return milliseconds(float64(d) / float64(time.Millisecond))
}

// some returns a number, or nothing for 0.
func some(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// someTokens returns all tokens, cached ones included.
func someTokens(u agentevents.Usage, partial bool) string {
	n := view.Tokens(u)
	if n == 0 {
		return ""
	}
	return atLeast(partial) + strconv.FormatInt(n, 10)
}

// atLeast returns the sign before a number of which only a part is known.
func atLeast(partial bool) string {
	if partial {
		return "≥"
	}
	return ""
}

func someDollars(cost agentevents.Opt[float64]) string {
	if !cost.OK {
		return ""
	}
	return dollars(cost.V)
}

// callsOf returns a number of calls, and the number that agents state beyond those in the log.
func callsOf(n int, agents ...*agentevents.AgentSnapshot) string {
	return withStated(n, agents, func(a *agentevents.AgentSnapshot) int { calls, _ := view.Unlogged(a); return calls })
}

// auditsOf is callsOf for audits.
func auditsOf(n int, agents ...*agentevents.AgentSnapshot) string {
	return withStated(n, agents, func(a *agentevents.AgentSnapshot) int { _, audits := view.Unlogged(a); return audits })
}

func withStated(n int, agents []*agentevents.AgentSnapshot, stated func(*agentevents.AgentSnapshot) int) string {
	sum := int64(0)
	for _, a := range agents {
		sum = view.Plus(sum, int64(stated(a)))
	}
	if sum == 0 {
		return some(n)
	}
	return fmt.Sprintf("%d (+%d stated)", n, sum)
}

func toolCalls(s *agentevents.RunSnapshot) (calls, failed int) {
	for _, t := range s.Tools {
		calls, failed = calls+t.Calls, failed+t.Failed
	}
	return calls, failed
}
