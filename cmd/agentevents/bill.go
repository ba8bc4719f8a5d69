package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/view"
	"github.com/agentevents/agentevents/report"
)

// writeBill shows the sources of a run's usage as a tree: agents, attempts, sources.
func writeBill(w io.Writer, s *agentevents.RunSnapshot) {
	sums := figures(s.Usage.Usage, s.Usage.CostUSD)
	if s.Usage.Partial && sums != "" {
		sums = "at least " + sums
	}
	fmt.Fprintf(w, "run %s: %s\n", visible(s.RunID), cmp.Or(sums, noData))
	names := report.Names(s.AgentsInOrder())
	for _, r := range bySource(s.UsageSources()) {
		if r.first {
			head := "without an agent"
			if r.AgentID != "" {
				head = cmp.Or(names[r.AgentID], r.AgentID)
			}
			if r.Attempt > 0 {
				head += ", attempt " + strconv.Itoa(r.Attempt)
			}
			if r.Parent != "" {
				head += ", below " + cmp.Or(names[r.Parent], r.Parent)
			}
			fmt.Fprintf(w, "\n%s\n", clip(visible(head)))
		}
		fmt.Fprintln(w, "  "+visible(billLine(&r.UsageSource)))
	}
}

// A billRow is a source, and whether it is the first of its attempt.
type billRow struct {
	agentevents.UsageSource
	first bool
}

func bySource(all []agentevents.UsageSource) (rows []billRow) {
	for i, l := range all {
		rows = append(rows, billRow{l, i == 0 || l.AgentID != all[i-1].AgentID || l.Attempt != all[i-1].Attempt})
	}
	return rows
}

// billLine returns a source as a line: the part that counts, or all of it and the reason.
func billLine(l *agentevents.UsageSource) string {
	name := l.Source
	if of := cmp.Or(l.ModelCallID, l.Model); of != "" {
		name += " of " + clip(of)
	}
	counted := figures(l.Counted, l.CountedCost)
	if l.Why == "" {
		return "+ " + name + ": " + cmp.Or(counted, "0")
	}
	if l.Counted == l.Usage && counted != "" { // a cost of another source takes the place of its own
		return "+ " + name + ": " + counted + "; " + l.Why + " in place of " + view.Dollars(l.Cost.V)
	}
	line := "- " + name + ": " + cmp.Or(figures(l.Usage, l.Cost), "0")
	if counted != "" {
		line = "+ " + name + ": " + counted + " of " + figures(l.Usage, l.Cost)
	}
	line += "; " + l.Why
	switch {
	case l.Differs > 0:
		line += "; " + view.Count(l.Differs, "token") + " fewer"
	case l.Differs < 0:
		line += "; " + view.Count(-l.Differs, "token") + " more"
	}
	return line
}

// figures returns tokens and cost as text; empty for none.
func figures(u agentevents.Usage, cost agentevents.Opt[float64]) string {
	var parts []string
	add := func(n int64, name string) {
		if n > 0 {
			parts = append(parts, strconv.FormatInt(n, 10)+" "+name)
		}
	}
	add(u.InputTokens, "in")
	add(u.OutputTokens, "out")
	add(u.CacheReadInputTokens.V, "read from the cache")
	add(u.CacheCreationInputTokens.V, "written to it")
	if u.InputTokens+u.OutputTokens == 0 {
		add(u.TotalTokens.V, "in all")
	}
	if cost.OK {
		parts = append(parts, view.Dollars(cost.V))
	}
	return strings.Join(parts, ", ")
}
