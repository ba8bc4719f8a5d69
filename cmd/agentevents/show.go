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
	"github.com/agentevents/agentevents/internal/view"
	"github.com/agentevents/agentevents/report"
)

func showCommand() command {
	return command{
		name:    "show",
		args:    "[flags] FILE...",
		purpose: "print a summary of one run: prompts, answers, agents, tools, failures",
		about: `
The summary has the start of the run, its end and the reason, its prompts and answers, its
agents, nodes and tools, and its open and failed calls. 'agentevents tree' draws the same run
in the order of its events.

If the log has several runs, choose one with --run, or all with --all.

With --usage show prints the bill of the run: each event that states tokens or cost, by agent
and attempt. The events that count add up to the total of the run. Each other event has the
reason why it does not count, and by how many tokens it differs from the events of its
attempt that count.`,
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
			all := fs.Bool("all", false, "print every run of the log")
			bill := fs.Bool("usage", false, "print only the bill: the events that state tokens or cost")
			return func(in *invocation) error {
				details, err := f.read(in, &l)
				if err != nil {
					return err
				}
				runs := slices.Collect(f.runs().Drain())
				if len(runs) > 1 && !*all {
					return usageError(fmt.Sprintf("the log has %d runs: choose one with --run, or all with --all; 'agentevents ls' lists them", len(runs)))
				}
				for i, s := range runs {
					if i > 0 {
						fmt.Fprintln(in.stdout)
					}
					if *bill {
						writeBill(in.stdout, s)
						continue
					}
					writeRun(in.stdout, s, details)
				}
				return l.result()
			}
		},
	}
}

// writeRun tells about a run.
func writeRun(w io.Writer, s *agentevents.RunSnapshot, d *report.Details) {
	items := report.Of(s, d)
	agents := agentRows(s)
	f := fieldWriter{w}
	f.run(s)
	f.topics(items, agents, view.Turns(s))
	f.path(items)
	writeRunTables(w, s, agents, items)
}

// A fieldWriter writes a line for each field that has a value.
type fieldWriter struct{ w io.Writer }

func (f fieldWriter) field(name, text string) {
	if text != "" {
		fmt.Fprintf(f.w, "%-10s %s\n", name, text)
	}
}

// run writes the fields of the run itself.
func (f fieldWriter) run(s *agentevents.RunSnapshot) {
	f.field("run", visible(s.RunID))
	f.field("name", visible(s.Name))
	if s.SessionID != s.RunID {
		f.field("session", visible(s.SessionID))
	}
	status, _ := view.Run(s)
	if s.Error.OK {
		status += ": " + cmp.Or(s.Error.V.Message, s.Error.V.Code)
	} else if s.CancelReason != "" {
		status += ": " + s.CancelReason
	} else if s.Facts.V.SessionReason != "" {
		status += ": " + s.Facts.V.SessionReason
	}
	f.field("status", clip(visible(status)))
	f.field("began", began(s))
	f.field("took", took(view.Length(s)))
	f.field("models", visible(strings.Join(view.Models(s), ", ")))
	if u := s.Usage.Usage; u.InputTokens+u.OutputTokens > 0 || view.Cached(u) > 0 {
		text := fmt.Sprintf("%d in, %d out", u.InputTokens, u.OutputTokens)
		if s.Usage.Partial {
			text = "at least " + text
		}
		if cached := view.Cached(u); cached > 0 {
			text += fmt.Sprintf(", %d cached", cached)
		}
		f.field("tokens", text)
	} else {
		f.field("tokens", someTokens(u, s.Usage.Partial))
	}
	f.field("cost", someDollars(s.Usage.CostUSD))
	f.field("turns", some(view.Turns(s)))
	f.field("goal", visible(s.SessionGoal))
}

// topics writes the tasks and answers of the agents without a task from another agent.
func (f fieldWriter) topics(items []report.Item, agents []agentRow, turns int) {
	tops := slices.DeleteFunc(slices.Clone(agents), func(a agentRow) bool { return a.ParentAgentID != "" || a.ParentCallID != "" })
	top := map[string]bool{"": true}
	for _, a := range tops {
		top[a.AgentID] = true
	}
	topics := [][]report.Topic{{report.Asked}, {report.Answered, report.Said}}
	if len(tops) == 1 && turns > 1 { // one turn after the other
		topics = [][]report.Topic{{report.Asked, report.Answered, report.Said}}
	}
	type request struct{ agent, text string }
	asked := map[request]bool{} // in turns
	for _, i := range items {
		if i.Topic == report.Asked && i.Turn != "" {
			asked[request{i.AgentID, i.Text}] = true
		}
	}
	for _, topic := range topics {
		for _, i := range items {
			again := i.Topic == report.Asked && i.Turn == "" && asked[request{i.AgentID, i.Text}]
			if slices.Contains(topic, i.Topic) && top[i.AgentID] && !again {
				if len(tops) > 1 && i.Agent != "" {
					i.Text = i.Agent + ": " + i.Text
				}
				f.field(string(i.Topic), visible(withTaken(&i)))
			}
		}
	}
}

// path writes the nodes that the run visits and the edges that it takes.
func (f fieldWriter) path(items []report.Item) {
	var visits []string
	for _, i := range items {
		if i.Topic == report.Visit {
			visits = append(visits, strings.TrimPrefix(i.Subject, "enters node "))
		}
	}
	f.field("visited", clip(visible(strings.Join(visits, " → "))))
	for _, i := range items {
		if i.Topic == report.Edge {
			name, of, _ := strings.Cut(i.Subject, " ")
			text := strings.TrimSpace(of + " " + i.Status)
			if n := i.Times(); n > 1 {
				text += fmt.Sprintf(" ×%d", n)
			}
			f.field(name, clip(visible(text)))
		}
	}
}

func writeRunTables(w io.Writer, s *agentevents.RunSnapshot, agents []agentRow, items []report.Item) {
	table := func(name string, write func()) {
		fmt.Fprintf(w, "\n%s\n", name)
		write()
	}
	if len(agents) > 0 {
		table("agents", func() { writeTable(w, agents, agentColumns) })
	}
	if len(s.Phases) > 0 {
		table("phases", func() { writeTable(w, s.Phases, phaseColumns(s)) })
	}
	if nodes := slices.Sorted(maps.Keys(s.NodeStatus)); len(nodes) > 0 {
		table("nodes", func() { writeTable(w, nodes, nodeColumns(s)) })
	}
	var rows []toolRow
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		if t := s.Tools[name]; t.Calls+t.Refused+t.Undecided > 0 {
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
	if rows := messageRows(items); len(rows) > 0 {
		table("messages", func() { writeTable(w, rows, messageColumns) })
	}
	if lines := attention(items); len(lines) > 0 {
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

// An agentRow is an attempt of an agent, or all turns of a conversation, as people see it.
type agentRow struct {
	name, status string
	how          view.Mark
	view.Attempt
}

func agentRows(s *agentevents.RunSnapshot) (rows []agentRow) {
	all := view.Of(s)
	agents := s.AgentsInOrder()
	names := report.Names(agents)
	for _, a := range agents {
		for _, t := range view.Attempts(a) {
			row := agentRow{name: names[a.AgentID], Attempt: t}
			row.status, row.how = all.Status(a.AgentID, t.AgentSnapshot)
			switch {
			case t.Dropped > 0:
				row.status, row.how = plural(t.Dropped, "attempt")+" not kept", view.None
			case t.Several:
				row.name += " (attempt " + strconv.Itoa(t.Attempts) + ")"
			}
			rows = append(rows, row)
		}
	}
	return rows
}

var agentColumns = []column[agentRow]{
	{"AGENT", false, func(a agentRow) string { return clip(visible(a.name)) }},
	{"STATUS", false, func(a agentRow) string { return cmp.Or(visible(a.status), "-") }},
	{"MODEL", false, func(a agentRow) string { return clip(visible(view.Model(a.AgentSnapshot))) }},
	{"STEPS", true, func(a agentRow) string { return some(view.Steps(a.AgentSnapshot)) }},
	{"CALLS", true, func(a agentRow) string { return callsOf(a.ToolCalls, a.AgentSnapshot) }},
	{"FAILED", true, func(a agentRow) string { return some(a.ToolFailures) }},
	{"REFUSED", true, func(a agentRow) string { return some(a.ToolRefusals) }},
	{"UNDECIDED", true, func(a agentRow) string { return some(a.ToolsUndecided) }},
	{"AUDITS", true, func(a agentRow) string { return auditsOf(a.Counted.AuditCheckpoints, a.AgentSnapshot) }},
	{"TOKENS", true, func(a agentRow) string {
		if n := view.Stated(&a.Usage); n > 0 {
			return strconv.FormatInt(n, 10) + " stated"
		}
		u, _ := a.Usage.Total()
		return someTokens(u, a.Usage.Partial())
	}},
	{"COST", true, func(a agentRow) string { _, c := a.Usage.Total(); return someDollars(c) }},
	{"TOOK", true, func(a agentRow) string { return took(view.Took(a.AgentSnapshot)) }},
	{"TASK", false, func(a agentRow) string { return clip(visible(oneLine(a.Task))) }},
}

func phaseColumns(s *agentevents.RunSnapshot) []column[agentevents.PhaseSnapshot] {
	type phase = agentevents.PhaseSnapshot
	return []column[phase]{
		{"WORKFLOW", false, func(p phase) string { return clip(visible(p.WorkflowID)) }},
		{"PHASE", false, func(p phase) string { return clip(visible(p.Phase)) }},
		{"STATUS", false, func(p phase) string { return view.Phase(s, &p) }},
		{"IN", true, func(p phase) string { return some(p.InputCount.V) }},
		{"OUT", true, func(p phase) string { return some(p.OutputCount.V) }},
		{"TOKENS", true, func(p phase) string { return some(int(p.Tokens.V)) }},
		{"TOOK", true, func(p phase) string { return waited(p.StartedAt, p.EndedAt) }},
	}
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
type answerRow struct {
	at                           uint64
	question, answer, by, waited string
}

// answerRows returns the closed questions in the order in which they were asked.
func answerRows(s *agentevents.RunSnapshot) (rows []answerRow) {
	for i := range s.Approvals {
		a, word := &s.Approvals[i], "no answer"
		switch a.ClosedBy {
		case agentevents.KindApprovalGranted:
			word, _ = report.Answer(true, a.Answer)
		case agentevents.KindApprovalRejected:
			word, _ = report.Answer(false, a.Answer)
		}
		if !a.Open {
			rows = append(rows, answerRow{a.Sequence, cmp.Or(a.Action, a.ToolID, report.Unasked("approval", a.ApprovalID, a.RequestedAt, a.AnsweredAt), a.ApprovalID), because(word, a.Feedback), a.By, waited(a.RequestedAt, a.AnsweredAt)})
		}
	}
	for i := range s.Clarifications {
		c := &s.Clarifications[i]
		var questions, answers []string
		for _, q := range c.Questions {
			questions = append(questions, q.Question)
			if text := report.AnswerTo(q.ID, c.Answers); text != "" {
				answers = append(answers, text)
			}
		}
		word := "no answer"
		if c.ClosedBy == agentevents.KindClarificationResolved {
			word = cmp.Or(strings.Join(answers, "; "), "answered")
		}
		if !c.Open {
			rows = append(rows, answerRow{c.Sequence, cmp.Or(strings.Join(questions, "; "), report.Unasked("clarification", c.InterruptID, c.RequestedAt, c.AnsweredAt), c.InterruptID), word, c.AnsweredBy, waited(c.RequestedAt, c.AnsweredAt)})
		}
	}
	slices.SortStableFunc(rows, func(a, b answerRow) int { return cmp.Compare(a.at, b.at) })
	return rows
}

// because returns a word, and the reason for it if there is one.
func because(word, reason string) string {
	if reason == "" {
		return word
	}
	return word + ": " + reason
}

// waited returns the time from a request to its answer, if the log has both.
func waited(from, to time.Time) string {
	if !agentevents.TimeKnown(from) || !agentevents.TimeKnown(to) || to.Before(from) {
		return ""
	}
	return took(to.Sub(from))
}

var answerColumns = []column[answerRow]{
	{"QUESTION", false, func(a answerRow) string { return clip(visible(oneLine(a.question))) }},
	{"ANSWER", false, func(a answerRow) string { return clip(visible(oneLine(a.answer))) }},
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
	{"UNDECIDED", true, func(t toolRow) string { return some(t.Undecided) }},
	{"TOOK", true, func(t toolRow) string { return took(t.Duration) }},
}

// A messageRow is a message of the conversation.
type messageRow struct{ from, to, text string }

// withTaken returns the text of an item, and that it was taken back if it was.
func withTaken(i *report.Item) string {
	if i.Status == view.TakenBack {
		return i.Text + " (" + i.Status + ")"
	}
	return i.Text
}

// messageRows returns the last messages of a conversation.
func messageRows(items []report.Item) (rows []messageRow) {
	const most = 20
	for _, i := range items {
		if i.Topic == report.Message {
			rows = append(rows, messageRow{i.Agent, i.ToName, withTaken(&i)})
		}
	}
	if n := len(rows) - most; n > 0 {
		rows[n-1] = messageRow{text: "(" + plural(n, "earlier message") + ")"}
		rows = rows[n-1:]
	}
	return rows
}

var messageColumns = []column[messageRow]{
	{"FROM", false, func(m messageRow) string { return clip(visible(m.from)) }},
	{"TO", false, func(m messageRow) string { return clip(visible(m.to)) }},
	{"TEXT", false, func(m messageRow) string { return visible(m.text) }},
}

// attention returns the lines about the things that somebody may have to look at. Of many failed
// calls it has the first ones.
func attention(items []report.Item) (lines []string) {
	const most = 5
	calls, last := 0, 0
	for _, i := range report.Attention(items) {
		if i.Topic == report.Call && !i.Open {
			if calls++; calls > most {
				continue
			}
			last = len(lines) + 1
		}
		lines = append(lines, i.Sentence())
	}
	if calls > most {
		lines = slices.Insert(lines, last, "and "+plural(calls-most, "more call")+" that failed")
	}
	return lines
}
