package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/tree"
)

func showCommand() command {
	return command{
		name:    "show",
		args:    "[flags] FILE...",
		purpose: "tell about one run: what was asked and answered, who worked, what went wrong",
		about: `
Shows what a person wants to know of a run that somebody else has recorded: when it began,
how it ended and why, what it was asked and answered, its agents and tools, and what is
open or has failed. 'agentevents tree' draws what happened in its order.

A log of several runs needs --run, or all of them with --all.`,
		examples: []string{
			"agentevents show run.jsonl",
			"agentevents show --run r-17 logs/*.jsonl",
		},
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			f := folder{options: agentevents.FoldOptions{KeepCalls: math.MaxInt, MaxViolations: 5}}
			l.flags(fs)
			f.flags(fs, &l)
			run := fs.String("run", "", "the run `ID`")
			all := fs.Bool("all", false, "every run of the log")
			return func(in *invocation) error {
				events, err := l.events(in)
				if err != nil {
					return err
				}
				var details tree.Details
				for _, ev := range events {
					if *run == "" || ev.RunID == *run {
						details.Add(&ev)
						f.apply(ev)
					}
				}
				runs := slices.Collect(f.runs().Drain())
				switch {
				case len(runs) > 1 && !*all:
					return usageError(fmt.Sprintf("the log has %d runs: choose one with --run, or --all; 'agentevents ls' lists them", len(runs)))
				case len(runs) == 0 && *run != "":
					return usageError("the log has no event of this run")
				}
				for i, s := range runs {
					if i > 0 {
						fmt.Fprintln(in.stdout)
					}
					writeRun(in.stdout, s, &details)
				}
				return l.result()
			}
		},
	}
}

// writeRun tells about a run.
func writeRun(w io.Writer, s *agentevents.RunSnapshot, d *tree.Details) {
	field := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-10s %s\n", name, text)
		}
	}
	field("run", visible(s.RunID))
	field("name", visible(s.Name))
	if s.SessionID != s.RunID {
		field("session", visible(s.SessionID))
	}
	status := string(s.Status)
	if s.Error.OK {
		status += ": " + cmp.Or(s.Error.V.Message, s.Error.V.Code)
	} else if s.CancelReason != "" {
		status += ": " + s.CancelReason
	}
	field("status", clip(visible(status)))
	field("began", began(s))
	if s.CompletedAt.After(s.StartedAt) && !s.StartedAt.IsZero() {
		field("took", milliseconds(float64(s.CompletedAt.Sub(s.StartedAt).Milliseconds())))
	}
	field("models", visible(strings.Join(models(s), ", ")))
	if u := s.Usage.Usage; someTokens(u) != "" {
		text := fmt.Sprintf("%d in, %d out", u.InputTokens, u.OutputTokens)
		if cached := u.CacheReadInputTokens.V + u.CacheCreationInputTokens.V; cached > 0 {
			text += fmt.Sprintf(", %d cached", cached)
		}
		field("tokens", text)
	}
	field("cost", someDollars(s.Usage.CostUSD))
	field("turns", some(turns(s)))
	field("goal", visible(s.SessionGoal))
	for _, a := range s.AgentsInOrder() {
		if a.ParentAgentID != "" || a.ParentCallID != "" {
			continue
		}
		if prompt := cmp.Or(d.Prompt(s.RunID, a.AgentID), a.Task); prompt != "" {
			field("asked", visible(prompt))
		}
		field("answered", visible(oneLine(cmp.Or(a.Result, a.Text))))
	}

	table := func(name string, write func()) {
		fmt.Fprintf(w, "\n%s\n", name)
		write()
	}
	if agents := s.AgentsInOrder(); len(agents) > 0 {
		table("agents", func() { writeTable(w, agents, agentColumns) })
	}
	var rows []toolRow
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		if t := s.Tools[name]; t.Calls+t.Refused > 0 {
			rows = append(rows, toolRow{name, t})
		}
	}
	if len(rows) > 0 {
		slices.SortStableFunc(rows, func(a, b toolRow) int { return b.Calls - a.Calls })
		table("tools", func() { writeTable(w, rows, toolColumns) })
	}
	if lines := attention(s); len(lines) > 0 {
		table("attention", func() {
			for _, line := range lines {
				fmt.Fprintln(w, clip(visible(line)))
			}
		})
	}
}

// oneLine returns the beginning of a text on one line.
func oneLine(text string) string {
	const most = 400
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

var agentColumns = []column[*agentevents.AgentSnapshot]{
	{"AGENT", false, func(a *agentevents.AgentSnapshot) string { return clip(visible(a.AgentID)) }},
	{"STATUS", false, func(a *agentevents.AgentSnapshot) string {
		switch {
		case a.Error.OK:
			return "failed"
		case a.Ended:
			return cmp.Or(visible(string(a.Outcome)), "ended")
		}
		return visible(string(a.Status))
	}},
	{"MODEL", false, func(a *agentevents.AgentSnapshot) string { return clip(visible(a.Model)) }},
	{"STEPS", true, func(a *agentevents.AgentSnapshot) string { return some(a.Totals.Or(a.Counted).Steps) }},
	{"CALLS", true, func(a *agentevents.AgentSnapshot) string { return some(a.ToolCalls) }},
	{"FAILED", true, func(a *agentevents.AgentSnapshot) string { return some(a.ToolFailures) }},
	{"TOKENS", true, func(a *agentevents.AgentSnapshot) string { u, _ := a.Usage.Total(); return someTokens(u) }},
	{"COST", true, func(a *agentevents.AgentSnapshot) string { _, c := a.Usage.Total(); return someDollars(c) }},
	{"TOOK", true, func(a *agentevents.AgentSnapshot) string {
		if !a.Duration.OK {
			return ""
		}
		return milliseconds(float64(a.Duration.V) / float64(time.Millisecond))
	}},
	{"TASK", false, func(a *agentevents.AgentSnapshot) string { return clip(visible(oneLine(a.Task))) }},
}

type toolRow struct {
	name string
	*agentevents.ToolStats
}

var toolColumns = []column[toolRow]{
	{"TOOL", false, func(t toolRow) string { return clip(visible(t.name)) }},
	{"CALLS", true, func(t toolRow) string { return some(t.Calls) }},
	{"FAILED", true, func(t toolRow) string { return some(t.Failed) }},
	{"REFUSED", true, func(t toolRow) string { return some(t.Refused) }},
	{"TOOK", true, func(t toolRow) string {
		if t.Duration == 0 {
			return ""
		}
		return milliseconds(float64(t.Duration) / float64(time.Millisecond))
	}},
}

// attention returns what somebody may have to look at.
func attention(s *agentevents.RunSnapshot) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, c := range s.OpenCalls {
		say("call %s of %s (%s) has not returned", c.CallID, c.AgentID, c.ToolID)
	}
	for i := range s.Approvals {
		if a := &s.Approvals[i]; a.Open {
			say("approval %s of %s is waiting: %s", a.ApprovalID, a.AgentID, a.Action)
		}
	}
	for i := range s.Clarifications {
		if c := &s.Clarifications[i]; c.Open {
			say("question %s of %s is waiting", c.InterruptID, c.AgentID)
		}
	}
	for _, a := range s.AgentsInOrder() {
		switch {
		case a.Error.OK:
			say("agent %s failed: %s", a.AgentID, cmp.Or(a.Error.V.Message, a.Error.V.Code))
		case a.LastError.OK:
			say("agent %s: %s, the last one: %s", a.AgentID, plural(a.Errors, "error"), cmp.Or(a.LastError.V.Message, a.LastError.V.Code))
		}
	}
	const most = 5
	failed := 0
	for _, c := range s.ClosedCalls {
		if c.Status == agentevents.ToolStatusOK {
			continue
		}
		if failed++; failed <= most {
			say("call %s of %s (%s) %s: %s", c.CallID, c.AgentID, c.ToolID, c.Status, cmp.Or(c.Error, "no reason given"))
		}
	}
	if failed > most {
		say("and %s more that failed", plural(failed-most, "call"))
	}
	for i := range s.Budgets {
		say("budget %s exceeded", s.Budgets[i].Budget)
	}
	for _, v := range s.Violations {
		say("%s", strings.TrimPrefix(v.Error(), "agentevents: "))
	}
	if n := s.ViolationCount - len(s.Violations); n > 0 {
		say("and %s more; 'agentevents check' lists them", plural(n, "violation"))
	}
	if s.Refused > 0 {
		say("%s refused while the run was recorded", plural(s.Refused, "event"))
	}
	return lines
}
