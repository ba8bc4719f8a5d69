package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/view"
	"github.com/agentevents/agentevents/tree"
)

func showCommand() command {
	return command{
		name:    "show",
		args:    "[flags] FILE...",
		purpose: "tell about one run: what was asked and answered, who worked, what went wrong",
		about: `
Shows what a person wants to know of a run that somebody else has recorded: when it began,
how it ended and why, what it was asked and answered, its agents, nodes and tools, and
what is open or has failed. 'agentevents tree' draws what happened in its order.

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
			f.one(fs)
			all := fs.Bool("all", false, "every run of the log")
			return func(in *invocation) error {
				details, err := f.read(in, &l)
				if err != nil {
					return err
				}
				runs := slices.Collect(f.runs().Drain())
				if len(runs) > 1 && !*all {
					return usageError(fmt.Sprintf("the log has %d runs: choose one with --run, or --all; 'agentevents ls' lists them", len(runs)))
				}
				for i, s := range runs {
					if i > 0 {
						fmt.Fprintln(in.stdout)
					}
					writeRun(in.stdout, s, details)
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
	field("took", took(view.Length(s)))
	field("models", visible(strings.Join(view.Models(s), ", ")))
	if u := s.Usage.Usage; u.InputTokens+u.OutputTokens > 0 || view.Cached(u) > 0 {
		text := fmt.Sprintf("%d in, %d out", u.InputTokens, u.OutputTokens)
		if s.Usage.Partial {
			text = "at least " + text
		}
		if cached := view.Cached(u); cached > 0 {
			text += fmt.Sprintf(", %d cached", cached)
		}
		field("tokens", text)
	} else {
		field("tokens", someTokens(u, s.Usage.Partial))
	}
	field("cost", someDollars(s.Usage.CostUSD))
	field("turns", some(view.Turns(s)))
	field("goal", visible(s.SessionGoal))
	agents := agentRows(s)
	tops := slices.DeleteFunc(slices.Clone(agents), func(a agentRow) bool { return a.ParentAgentID != "" || a.ParentCallID != "" })
	for _, a := range tops {
		whose := ""
		if len(tops) > 1 {
			whose = a.name + ": "
		}
		said := func(name, text string) {
			if text != "" {
				field(name, visible(whose+text))
			}
		}
		prompt, asked := d.Prompt(s.RunID, a.AgentID), request(s)
		if !a.first { // they are about the first attempt
			prompt, asked = "", ""
		}
		said("asked", cmp.Or(prompt, a.Task, asked))
		said("answered", oneLine(cmp.Or(a.Result, a.Text)))
	}

	table := func(name string, write func()) {
		fmt.Fprintf(w, "\n%s\n", name)
		write()
	}
	if len(agents) > 0 {
		table("agents", func() { writeTable(w, agents, agentColumns) })
	}
	if nodes := slices.Sorted(maps.Keys(s.NodeStatus)); len(nodes) > 0 {
		table("nodes", func() { writeTable(w, nodes, nodeColumns(s)) })
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
	if rows := answerRows(s); len(rows) > 0 {
		table("answers", func() { writeTable(w, rows, answerColumns) })
	}
	if lines := attention(s, agents, d); len(lines) > 0 {
		table("attention", func() {
			for _, line := range lines {
				fmt.Fprintln(w, clip(visible(line)))
			}
		})
	}
}

// request returns the last message of a user that the run has, or began with: a log of AG-UI
// tells no agent what to do.
func request(s *agentevents.RunSnapshot) (text string) {
	for raw := range jsonwire.Elements(jsonwire.Member(string(s.Inputs), "messages")) {
		if jsonwire.Text(jsonwire.Member(raw, "role")) == "user" {
			text = cmp.Or(jsonwire.Text(jsonwire.Member(raw, "content")), text)
		}
	}
	for _, m := range s.Messages {
		if m.Role == "user" {
			text = cmp.Or(jsonwire.Text(string(m.Content)), text)
		}
	}
	return oneLine(text)
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

// An agentRow is an attempt of an agent, or all turns of a conversation, as people see it.
type agentRow struct {
	agent, name, status string // name is that of the attempt
	how                 view.Mark
	first, last         bool // of the agent
	view.Attempt
}

func agentRows(s *agentevents.RunSnapshot) (rows []agentRow) {
	all := view.Of(s)
	named := map[string]int{} // agents by name
	for _, a := range s.AgentsInOrder() {
		attempts := view.Attempts(a)
		for i, t := range attempts {
			row := agentRow{name: view.Name(a.AgentID, a), first: i == 0, last: i == len(attempts)-1, Attempt: t}
			row.status, row.how = all.Status(a.AgentID, t.AgentSnapshot)
			if t.Dropped > 0 {
				row.status, row.how = plural(t.Dropped, "attempt")+" not kept", view.None
			}
			rows = append(rows, row)
		}
		named[view.Name(a.AgentID, a)]++
	}
	for i := range rows {
		a := &rows[i]
		if a.name != a.AgentID && named[a.name] > 1 {
			a.name += " (" + a.AgentID + ")"
		}
		if a.agent = a.name; a.Several && a.Dropped == 0 {
			a.name += " (attempt " + strconv.Itoa(a.Attempts) + ")"
		}
	}
	return rows
}

var agentColumns = []column[agentRow]{
	{"AGENT", false, func(a agentRow) string { return clip(visible(a.name)) }},
	{"STATUS", false, func(a agentRow) string { return cmp.Or(visible(a.status), "-") }},
	{"MODEL", false, func(a agentRow) string { return clip(visible(view.Model(a.AgentSnapshot))) }},
	{"STEPS", true, func(a agentRow) string { return some(view.Steps(a.AgentSnapshot)) }},
	{"CALLS", true, func(a agentRow) string { return some(a.ToolCalls) }},
	{"FAILED", true, func(a agentRow) string { return some(a.ToolFailures) }},
	{"TOKENS", true, func(a agentRow) string {
		u, _ := a.Usage.Total()
		return someTokens(u, a.Usage.Partial())
	}},
	{"COST", true, func(a agentRow) string { _, c := a.Usage.Total(); return someDollars(c) }},
	{"TOOK", true, func(a agentRow) string { return took(view.Took(a.AgentSnapshot)) }},
	{"TASK", false, func(a agentRow) string { return clip(visible(oneLine(a.Task))) }},
}

func nodeColumns(s *agentevents.RunSnapshot) []column[string] {
	word := func(id string) string { word, _ := view.Node(s, id); return visible(word) }
	why := func(id string) string { _, why := view.Node(s, id); return clip(visible(oneLine(why))) }
	return []column[string]{
		{"NODE", false, func(id string) string { return clip(visible(id)) }},
		{"STATUS", false, word},
		{"AGENT", false, func(id string) string { return clip(visible(s.Facts.V.NodeAgents[id].AgentID)) }},
		{"WHY", false, why},
	}
}

// An answerRow is a closed question to people.
type answerRow struct{ question, answer, by, waited string }

func answerRows(s *agentevents.RunSnapshot) (rows []answerRow) {
	for i := range s.Approvals {
		a, word := &s.Approvals[i], "no answer"
		switch a.ClosedBy {
		case agentevents.KindApprovalGranted:
			word = "granted"
		case agentevents.KindApprovalRejected:
			word = "rejected"
		}
		if !a.Open {
			rows = append(rows, answerRow{cmp.Or(a.Action, a.ApprovalID), word, a.By, waited(a.RequestedAt, a.AnsweredAt)})
		}
	}
	for i := range s.Clarifications {
		c, word, text := &s.Clarifications[i], "no answer", ""
		if c.ClosedBy == agentevents.KindClarificationResolved {
			word = "answered"
		}
		if len(c.Questions) > 0 {
			text = c.Questions[0].Question
		}
		if !c.Open {
			rows = append(rows, answerRow{cmp.Or(text, c.InterruptID), word, c.AnsweredBy, waited(c.RequestedAt, c.AnsweredAt)})
		}
	}
	return rows
}

// waited returns the time from a request to its answer, if the log has both.
func waited(from, to time.Time) string {
	if from.IsZero() || to.Before(from) {
		return ""
	}
	return took(to.Sub(from))
}

var answerColumns = []column[answerRow]{
	{"QUESTION", false, func(a answerRow) string { return clip(visible(oneLine(a.question))) }},
	{"ANSWER", false, func(a answerRow) string { return a.answer }},
	{"BY", false, func(a answerRow) string { return clip(visible(a.by)) }},
	{"WAITED", true, func(a answerRow) string { return a.waited }},
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
	{"TOOK", true, func(t toolRow) string { return took(t.Duration) }},
}

// because returns what happened, and why if that is known.
func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// attention returns what somebody may have to look at.
func attention(s *agentevents.RunSnapshot, agents []agentRow, d *tree.Details) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	names := map[string]string{}
	for _, a := range agents {
		names[a.AgentID] = " of " + a.agent
	}
	for _, c := range s.OpenCalls {
		say("call %s%s (%s) has not returned", c.CallID, names[c.AgentID], c.ToolID)
	}
	for i := range s.Approvals {
		if a := &s.Approvals[i]; a.Open {
			say("approval %s%s is waiting: %s", a.ApprovalID, names[a.AgentID], a.Action)
		}
	}
	for i := range s.Clarifications {
		if c := &s.Clarifications[i]; c.Open {
			say("question %s%s is waiting", c.InterruptID, names[c.AgentID])
		}
	}
	for _, a := range agents {
		failure := cmp.Or(a.Error.V.Message, a.Error.V.Code, a.LastError.V.Message, a.LastError.V.Code)
		if a.last {
			failure = cmp.Or(failure, d.Why(s.RunID, a.AgentID))
		}
		switch {
		case a.how == view.Bad || a.how == view.Warn:
			say("agent %s %s", a.name, because(a.status, failure))
		case a.Status == agentevents.StatusBlockedOnClarification && d.Why(s.RunID, a.AgentID) != "":
			say("agent %s waits: %s", a.name, d.Why(s.RunID, a.AgentID))
		case a.LastError.OK:
			say("agent %s: %s, the last one: %s", a.name, plural(a.Errors, "error"), failure)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.NodeStatus)) {
		if word, why := view.Node(s, id); s.NodeStatus[id] == agentevents.NodeStatusFailed {
			say("node %s %s", id, because(word, why))
		}
	}
	for i := range s.Audits {
		if a := &s.Audits[i]; a.Result == agentevents.AuditFail {
			say("audit %s%s failed", strings.TrimPrefix(a.CheckpointID, "audit:"), names[a.AgentID])
		}
	}
	for i := range s.Claims {
		if c := &s.Claims[i]; c.Verdict == "rejected" {
			say("claim %s rejected by %s", c.FindingID, c.VerifierAgentID)
		}
	}
	const most = 5
	failed := 0
	for _, c := range s.ClosedCalls {
		if c.Status == agentevents.ToolStatusOK {
			continue
		}
		if failed++; failed <= most {
			say("call %s%s (%s) %s: %s", c.CallID, names[c.AgentID], c.ToolID, c.Status, cmp.Or(c.Error, "no reason given"))
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
