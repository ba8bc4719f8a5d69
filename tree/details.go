package tree

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/view"
)

// Details are what people look for in a run and what its snapshot does not keep: what each
// call did, prompts, why agents failed or wait, errors, decisions, commands of people, items of
// the blackboard, events of unknown kinds, and how long agents were at work. The zero Details
// are empty. They keep a short text for each of these. They are not for concurrent use.
type Details struct {
	runs map[string]*runDetails
}

type runDetails struct {
	agents map[string]*agentDetails // by agent id; what no agent did is under ""
	spans  map[string]*agentDetails // by the span of a start without an id
	open   map[string]*noted        // by the span that it covers
}

// A noted is a line about an event.
type noted struct {
	line line
	at   time.Time
	open bool // it goes on

	// Of events of an unknown kind:
	times int
	last  uint64 // sequence of the last one
}

type agentDetails struct {
	calls    map[string]string // what calls did, by call id
	prompt   string            // of the first start
	notes    map[uint64]*noted // by sequence, as events may come again
	unknown  map[agentevents.Kind]*noted
	blocked  *noted        // while it waits
	why      string        // why it has failed or waits
	failure  string        // of the last model call that failed
	first    time.Time     // start of the first attempt
	began    time.Time     // of the attempt that is at work; zero between attempts
	worked   time.Duration // in all attempts that ended
	attempts int           // that ended
}

const (
	maxNote   = 160 // characters of what a call did
	maxPrompt = 400 // characters of a prompt
	maxWhy    = 60  // characters of why a model call failed
)

// Add adds an event of a log.
func (d *Details) Add(ev *agentevents.Event) {
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		d.call(ev, p.CallID, p.ArgumentsSummary, p.Arguments)
	case *agentevents.ToolReturned:
		if p.OneEvent {
			d.call(ev, p.CallID, p.ArgumentsSummary, p.Arguments)
		}
	case *agentevents.ModelReturned:
		if p.Error.OK {
			d.agent(ev).failure = short(errorText(p.Error.V), maxWhy)
		}
	case *agentevents.AgentTransition:
		a := d.agent(ev)
		a.unblock(ev.Time)
		a.why = ""
		if p.To == agentevents.StatusFailed || p.To == agentevents.StatusBlockedOnClarification {
			a.why = short(p.Reason, maxNote)
		}
		if p.To == agentevents.StatusBlockedOnClarification && a.why != "" {
			a.blocked = d.note(ev, line{head: "blocked", detail: a.why})
			a.blocked.open = true
		}
	case *agentevents.AgentDecided:
		l := line{head: "decided", detail: dashed(valueText(p.Decision), short(p.Reasoning, maxNote))}
		confidence(&l, p.Confidence)
		d.note(ev, l)
	case *agentevents.OrchestratorDecided:
		d.note(ev, line{head: "orchestrator decided", detail: valueText(p.Decision)})
	case *agentevents.LoopRoundCompleted:
		l := line{head: "round " + strconv.Itoa(p.Round), detail: short(p.Feedback, maxNote)}
		if p.Score.OK {
			l.fact("score " + number(p.Score.V))
		}
		if p.CostUSD.OK {
			l.fact(dollars(p.CostUSD.V))
		}
		d.note(ev, l)
	case *agentevents.AgentErrored:
		l := line{head: "error", mark: bad, word: short(p.ErrorType, maxWhy), detail: short(p.Message, maxNote)}
		if p.Severity == agentevents.SeverityWarning {
			l.head, l.mark = "warning", warn
		}
		d.note(ev, l)
	case *agentevents.ContextCompacted:
		l := line{head: "context compacted", word: short(p.Trigger, maxWhy), detail: short(p.Summary, maxNote)}
		if before, after := p.TokensBefore, p.TokensAfter; before.OK && after.OK {
			l.fact(strconv.FormatInt(before.V, 10) + " tokens to " + strconv.FormatInt(after.V, 10))
		}
		d.note(ev, l)
	case *agentevents.BlackboardItemCreated:
		l := line{head: words("blackboard", short(p.ItemID, maxWhy)), word: short(p.ItemType, maxWhy), detail: valueText(p.Content)}
		confidence(&l, p.Confidence)
		d.note(ev, l)
	case *agentevents.Unknown:
		d.unknown(ev, p)
	case *agentevents.CommandReceived:
		c := &p.Command
		l := line{head: "command " + short(string(c.Type), maxWhy), detail: short(cmp.Or(c.Message, c.Content, c.Reason), maxNote)}
		if p.Rejected != "" {
			l.mark, l.word, l.detail = bad, "rejected", dashed(l.detail, short(p.Rejected, maxNote))
		}
		to := *ev // a command for an execution of a node is for its agent
		to.NodeRunID = cmp.Or(ev.NodeRunID, c.RunID)
		d.note(&to, l)
	case *agentevents.SpanRecorded:
		d.span(ev, p)
	case *agentevents.AgentStarted:
		a := d.agent(ev)
		a.unblock(ev.Time)
		a.why = ""
		if a.attempts == 0 && a.prompt == "" {
			a.prompt = short(promptText(p.Prompt), maxPrompt)
		}
		a.stop(ev.Time, agentevents.Opt[time.Duration]{}) // a start may come without an end before it
		a.began = ev.Time
		if a.first.IsZero() {
			a.first = ev.Time
		}
	case *agentevents.AgentEnded:
		a := d.agent(ev)
		a.unblock(ev.Time)
		a.stop(ev.Time, p.Duration)
		a.attempts++
	}
}

// note adds a line about an event to what its agent did.
func (d *Details) note(ev *agentevents.Event, l line) *noted {
	a := d.agent(ev)
	if a.notes == nil {
		a.notes = map[uint64]*noted{}
	}
	n := a.notes[ev.Sequence]
	if n == nil {
		n = &noted{line: l, at: ev.Time}
		a.notes[ev.Sequence] = n
	}
	return n
}

// unknown notes an event of an unknown kind. Those of an agent and a kind are one line.
func (d *Details) unknown(ev *agentevents.Event, p *agentevents.Unknown) {
	a := d.agent(ev)
	n := a.unknown[p.Type]
	switch {
	case n == nil:
		n = d.note(ev, line{head: short(string(p.Type), maxWhy), detail: short(view.Argument(p.Raw), maxNote)})
		if a.unknown == nil {
			a.unknown = map[agentevents.Kind]*noted{}
		}
		a.unknown[agentevents.Kind(strings.Clone(string(p.Type)))] = n
	case ev.Sequence <= n.last:
		return // it comes again
	default:
		n.line.detail = ""
	}
	n.times, n.last = n.times+1, ev.Sequence
}

// spanMarks says how a span has ended, by its phase.
var spanMarks = map[string]view.Mark{"complete": good, "error": bad, "cancelled": warn}

// span notes a span that no other line is about. Its start and its end are one line.
func (d *Details) span(ev *agentevents.Event, p *agentevents.SpanRecorded) {
	mark := spanMarks[p.Phase]
	if p.Subject == "run" || p.Phase != "start" && mark == none {
		return
	}
	r := d.add(ev.RunID)
	n := r.open[ev.SpanID]
	if n == nil || mark == none {
		n = d.note(ev, line{head: short(p.Subject, maxWhy)})
	}
	if n.line.mark != none {
		return // it comes again
	}
	if delete(r.open, ev.SpanID); mark == none && ev.SpanID != "" {
		r.open[strings.Clone(ev.SpanID)] = n
	}
	n.line.mark = mark
	n.line.fact(duration(p.Duration.V))
	n.line.detail = cmp.Or(short(cmp.Or(p.ErrorMessage, p.ErrorType), maxNote), valueText(p.Attributes), n.line.detail)
}

// valueText returns a JSON value as a short text, and "" for nothing.
func valueText(value agentevents.JSON) string {
	var text string
	switch {
	case value == "{}" || value == "null":
		return ""
	case json.Unmarshal([]byte(value), &text) != nil:
		text = string(value)
	}
	return short(text, maxNote)
}

// dashed joins two texts.
func dashed(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " — " + b
}

// unblock notes that an agent waits no more.
func (a *agentDetails) unblock(at time.Time) {
	if a.blocked != nil {
		a.blocked.open = false
		a.blocked.line.facts = nil
		a.blocked.line.fact(between(a.blocked.at, at))
	}
	a.blocked = nil
}

// stop ends an attempt, which took so long if that is known.
func (a *agentDetails) stop(at time.Time, took agentevents.Opt[time.Duration]) {
	switch {
	case took.OK:
		a.worked += took.V
	case !a.began.IsZero() && !at.IsZero():
		a.worked += max(0, at.Sub(a.began))
	}
	a.began = time.Time{}
}

func (d *Details) run(id string) *runDetails {
	if d == nil {
		return nil
	}
	if r := d.runs[id]; r != nil {
		return r
	}
	return &runDetails{}
}

func (d *Details) add(id string) *runDetails {
	r := d.runs[id]
	if r == nil {
		if d.runs == nil {
			d.runs = map[string]*runDetails{}
		}
		r = &runDetails{agents: map[string]*agentDetails{}, spans: map[string]*agentDetails{}, open: map[string]*noted{}}
		d.runs[strings.Clone(id)] = r
	}
	return r
}

// agent returns the details of the agent of an event. It is the one that a fold finds: an
// execution of a node stands for an agent without an id, else the span of its start does,
// until an event there has an id.
func (d *Details) agent(ev *agentevents.Event) *agentDetails {
	r := d.add(ev.RunID)
	id := cmp.Or(ev.AgentID, ev.NodeRunID)
	spans := []string{ev.SpanID, ev.ParentSpanID}
	switch ev.Payload.(type) {
	case *agentevents.AgentStarted:
		delete(r.spans, ev.SpanID)
		if id == "" && ev.SpanID != "" {
			r.spans[strings.Clone(ev.SpanID)] = r.agent(ev.SpanID)
		}
		return r.agent(cmp.Or(id, ev.SpanID))
	case *agentevents.AgentEnded:
	default:
		if id == "" {
			spans = spans[1:]
		}
	}
	for _, span := range spans {
		switch a := r.spans[span]; {
		case a == nil:
		case id == "":
			return a
		case r.agents[id] == nil && r.agents[span] == a:
			delete(r.agents, span)
			r.agents[strings.Clone(id)] = a
		}
	}
	return r.agent(id)
}

func (r *runDetails) agent(id string) *agentDetails {
	a := r.agents[id]
	if a == nil {
		a = &agentDetails{calls: map[string]string{}}
		r.agents[strings.Clone(id)] = a
	}
	return a
}

func (d *Details) call(ev *agentevents.Event, id, summary string, arguments agentevents.JSON) {
	if summary == "" {
		summary = view.Argument(arguments)
	} else if strings.HasPrefix(summary, "{") { // some recorders take the arguments as their summary
		summary = cmp.Or(view.Argument(agentevents.JSON(summary)), summary)
	}
	if summary = short(summary, maxNote); summary != "" {
		d.agent(ev).calls[strings.Clone(id)] = summary
	}
}

// promptText returns a prompt as text: the string, or the last text of the messages.
func promptText(prompt agentevents.JSON) string {
	var text string
	if json.Unmarshal([]byte(prompt), &text) == nil {
		return text
	}
	var messages []struct {
		Content json.RawMessage
		Message struct{ Content json.RawMessage } // of the messages of Claude's SDK
	}
	if json.Unmarshal([]byte(prompt), &messages) != nil {
		return ""
	}
	for _, m := range slices.Backward(messages) {
		var parts []struct{ Text string }
		if m.Content == nil {
			m.Content = m.Message.Content
		}
		switch {
		case json.Unmarshal(m.Content, &text) == nil && text != "":
			return text
		case json.Unmarshal(m.Content, &parts) == nil:
			for _, p := range slices.Backward(parts) {
				if p.Text != "" {
					return p.Text
				}
			}
		}
	}
	return ""
}

// short returns a text on one line, cut to some characters.
func short(text string, limit int) string {
	if len(text) > 4*limit {
		text = strings.ToValidUTF8(text[:4*limit], "")
	}
	text = strings.Join(strings.Fields(text), " ")
	n := 0
	for i := range text {
		if n++; n > limit {
			return strings.Clone(text[:i]) + "…"
		}
	}
	return strings.Clone(text)
}

// of returns the details of an agent; they are empty if there are none.
func (r *runDetails) of(agent string) agentDetails {
	if r == nil || r.agents[agent] == nil {
		return agentDetails{}
	}
	return *r.agents[agent]
}

// took returns how long an agent took from its first start on, and how long it was at work
// if that is much less, else 0.
func (a agentDetails) took(s *agentevents.AgentSnapshot) (took, work time.Duration) {
	took = s.Duration.V
	if s.Attempts > 1 && !a.first.IsZero() && s.EndedAt.After(a.first) {
		took = max(took, s.EndedAt.Sub(a.first))
	}
	return took, rested(took, a.worked)
}

// said adds what an agent was told and what it answered, if nobody of the run told it.
func (b *builder) said(n *agentNode) {
	if b.details == nil || n.a.ParentAgentID != "" || n.a.ParentCallID != "" {
		return
	}
	if prompt := b.details.of(n.id).prompt; prompt != "" && prompt != n.a.Task {
		n.children = slices.Insert(n.children, 0, &node{line: line{head: "prompt", detail: prompt}})
	}
	if answer := short(cmp.Or(n.a.Result, n.a.Text), maxPrompt); answer != "" {
		n.add(&node{line: line{head: "answer", detail: answer}})
	}
}

// notes adds what is noted of events.
func (b *builder) notes(add func(agent string, n *node)) {
	if b.details == nil {
		return
	}
	for agent, a := range b.details.agents {
		for seq, n := range a.notes {
			l := n.line
			l.facts = slices.Clone(l.facts)
			if n.times > 1 {
				l.head += times(n.times)
			}
			if n.open {
				b.closed(&l, true, none, "")
			}
			same := ""
			if l.mark == bad {
				same = l.head + " " + l.word
			}
			add(agent, &node{line: l, seq: seq, tool: same})
		}
	}
}

// working returns how long the agents that nobody spawned were at work, if that is known
// and much less than the run took.
func (b *builder) working() time.Duration {
	var work time.Duration
	for _, n := range b.order {
		if n.a.ParentAgentID == "" && n.a.ParentCallID == "" {
			if !n.a.Started {
				return 0
			}
			work += b.details.of(n.id).worked
		}
	}
	return rested(view.Length(b.s), work)
}

// rested returns the time at work, if what is left of the time that it took matters, else 0.
func rested(took, work time.Duration) time.Duration {
	if took-work < max(time.Second, took/4) {
		return 0
	}
	return work
}

// why returns in a word or two why a run ended as it did, or "".
func why(s *agentevents.RunSnapshot) string {
	if s.Status != agentevents.RunStatusFailed && s.Status != agentevents.RunStatusCancelled {
		return ""
	}
	codes := []string{s.Error.V.Code, s.CancelReason}
	agents := view.Of(s)
	for _, a := range s.AgentsInOrder() {
		codes = append(codes, a.Error.V.Code)
		if _, how := agents.Status(a.AgentID, a); how != good { // else the agent got over it
			codes = append(codes, a.LastError.V.Code)
		}
	}
	for _, code := range codes {
		for _, r := range reasons {
			if slices.Contains(r.codes, code) {
				return r.word
			}
		}
	}
	if len(s.Budgets) > 0 {
		return "budget"
	}
	return ""
}

// reasons are the words for codes of errors.
var reasons = []struct {
	word  string
	codes []string
}{
	{"turn limit", []string{"error_max_turns", "max_turns"}},
	{"budget", []string{"error_max_budget_usd", "budget_exceeded"}},
	{"rate limit", []string{"rate_limit", "rate_limit_error", "rate_limited"}},
	{"timeout", []string{"deadline_exceeded", "timeout"}},
	{"killed", []string{"interrupted", "killed"}},
	{"user", []string{"error_user", "user", "user_cancelled", "aborted_by_user"}},
	{"network", []string{"network_error"}},
}

// join makes one line of calls of one tool in a row, which went well and have nothing below
// them: two or more that say the same, or four or more that do not.
func join(nodes []*node) []*node {
	var out []*node
	for i := 0; i < len(nodes); {
		first := nodes[i]
		n, alike := 1, true
		for i+n < len(nodes) && first.tool != "" && nodes[i+n].tool == first.tool && len(nodes[i+n].children) == 0 {
			alike = alike && nodes[i+n].line.detail == first.line.detail
			n++
		}
		if len(first.children) > 0 || n < 2 || !alike && n < 4 {
			out = append(out, nodes[i])
			i++
			continue
		}
		out = append(out, joined(nodes[i:i+n]))
		i += n
	}
	return out
}

func times(n int) string { return " ×" + strconv.Itoa(n) }

// joined returns the line of several calls of one tool.
func joined(calls []*node) *node {
	l := calls[0].line
	l.head += times(len(calls))
	l.facts = nil
	var took time.Duration
	var notes []string
	for _, c := range calls {
		took += c.took
		if d := c.line.detail; d != "" && !slices.Contains(notes, d) {
			notes = append(notes, d)
		}
	}
	l.fact(duration(took))
	l.detail = strings.Join(notes, ", ")
	return &node{line: l, seq: calls[0].seq}
}

// Why returns why an agent has failed or waits, on one line, or "". It is the reason of the
// transition to that status.
func (d *Details) Why(runID, agentID string) string { return d.run(runID).of(agentID).why }

// Prompt returns the beginning of what an agent was told when it started first, on one
// line, or "".
func (d *Details) Prompt(runID, agentID string) string { return d.run(runID).of(agentID).prompt }
