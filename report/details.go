package report

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/findings"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/view"
)

// Details are the short texts of a run that its snapshot leaves out: the main argument of each
// call, prompts, reasons for failing or waiting, errors, decisions, messages, commands, items of
// the blackboard, events of unknown kinds, and the time that agents were at work. The zero Details
// are empty. They are not for concurrent use.
type Details struct {
	runs map[string]*runDetails
}

type runDetails struct {
	agents map[string]*agentDetails // by agent id; under "": acts of no agent
	spans  map[string]*agentDetails // by the span of a start without an id
	open   map[string]*noted        // by the span that it covers

	edges    map[string]*noted // by the words of their lines
	messages map[string]uint64 // sequences of messages, by id
	found    *findings.Run
}

// A noted is a line about an event.
type noted struct {
	Item
	open bool // it goes on
	moot bool // another line tells it

	last     uint64 // of events of an unknown kind or of an edge: sequence of the last one
	from, to string // of the span of a handoff
}

type agentDetails struct {
	calls    map[uint64]string // main arguments, by the sequences of the calls: ids may repeat
	prompt   string            // of the first start
	prompts  map[uint64]string // of later starts, when they are others, by sequence
	notes    map[uint64]*noted // by sequence, as events may come again
	unknown  map[agentevents.Kind]*noted
	blocked  *noted            // while it waits
	why      string            // why it has failed or waits
	whys     map[uint64]string // why earlier attempts did, by the sequences of their starts
	start    uint64            // sequence of the latest start
	failure  string            // of the last model call that failed
	began    time.Time         // of the attempt that is at work; zero between attempts
	worked   time.Duration     // in all attempts that ended
	attempts int               // that ended
	turn     uint64            // sequence of the start of the turn that goes on; 0 without one
	asked    map[uint64]string // first messages of users in turns, by the sequences of their starts
	said     uint64            // sequence of the last text
	acted    uint64            // sequence of the last call
	silent   map[uint64]bool   // ends of turns, and starts of attempts, whose last text stands before a call
	over     bool              // the latest attempt has ended
	twin     string            // the id that its events may have: another agent has it too
}

const (
	maxNote   = 160 // characters of a note
	maxPrompt = 400 // characters of a prompt
	maxWhy    = 60  // characters of why a model call failed
)

// Add adds an event of a log.
func (d *Details) Add(ev *agentevents.Event) {
	d.add(ev.RunID).found.Add(ev)
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		d.call(ev, p.ArgumentsSummary, p.Arguments)
	case *agentevents.ToolReturned:
		if p.OneEvent {
			d.call(ev, p.ArgumentsSummary, p.Arguments)
		}
	case *agentevents.TextDelta:
		d.agent(ev).said = ev.Sequence
	case *agentevents.TextCompleted:
		d.agent(ev).said = ev.Sequence
	case *agentevents.TurnStarted:
		d.agent(ev).turn = ev.Sequence
	case *agentevents.TurnEnded:
		a := d.agent(ev)
		a.hush(ev.Sequence)
		a.turn = 0
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
			a.blocked = d.note(ev, Item{Topic: Blocked, Subject: "blocked", Text: a.why})
			a.blocked.open = true
		}
	case *agentevents.AgentDecided, *agentevents.OrchestratorDecided, *agentevents.LoopRoundCompleted,
		*agentevents.AgentErrored, *agentevents.BlackboardItemCreated, *agentevents.ContextCompacted:
		d.note(ev, itemOf(ev))
	case *agentevents.EdgeFired, *agentevents.EdgeSkipped, *agentevents.LoopIterated:
		d.edge(ev)
	case *agentevents.MessageCreated:
		d.message(ev, &p.Message)
		if p.Message.From == "user" {
			d.agent(ev).ask(messageItem(&p.Message).Text)
		}
	case *agentevents.Unknown:
		if !isTwin(ev) {
			d.unknown(ev, p)
		}
	case *agentevents.NodeStarted:
		if (ev.AgentID != "" || ev.Actor != "") && ev.NodeRunID == "" { // its document has no executions of nodes
			d.note(ev, Item{Topic: Visit, Subject: "enters node " + short(ev.NodeID, maxWhy)})
		}
	case *agentevents.CommandReceived:
		to := *ev // a command for an execution of a node is for its agent
		to.NodeRunID = cmp.Or(ev.NodeRunID, p.Command.RunID)
		d.note(&to, commandItem(p))
	case *agentevents.HandoffRequested:
		if ev.SpanID != "" { // the snapshot has its end
			d.add(ev.RunID).open[strings.Clone(ev.SpanID)] = &noted{}
		}
	case *agentevents.HandoffAccepted:
		if n := d.add(ev.RunID).open[ev.SpanID]; n != nil {
			n.moot = true // the snapshot has it
		}
		delete(d.add(ev.RunID).open, ev.SpanID)
	case *agentevents.SpanRecorded:
		d.span(ev, p)
	case *agentevents.AgentStarted:
		a := d.agent(ev)
		a.unblock(ev.Time)
		if a.why != "" && ev.Sequence > a.start {
			if a.whys == nil {
				a.whys = map[uint64]string{}
			}
			a.whys[a.start] = a.why
		}
		a.why, a.start = "", max(a.start, ev.Sequence)
		text := short(promptText(p.Prompt), maxPrompt)
		if a.attempts == 0 && a.prompt == "" {
			a.prompt = text
		}
		if text != "" && text != a.prompt {
			if a.prompts == nil {
				a.prompts = map[uint64]string{}
			}
			a.prompts[ev.Sequence] = text
		}
		a.stop(ev.Time, agentevents.Opt[time.Duration]{}) // a start may come without an end before it
		a.began, a.over = ev.Time, false
	case *agentevents.AgentEnded:
		a := d.agent(ev)
		a.hush(a.start)
		a.over = true
		a.unblock(ev.Time)
		if ev.SpanID != "" && a.attempts > 0 && a.start > 0 && a.began.IsZero() {
			return // it has ended already
		}
		a.stop(ev.Time, p.Duration)
		a.attempts++
	}
}

// message notes a message, which may be delivered again under another sequence.
func (d *Details) message(ev *agentevents.Event, m *agentevents.ConversationMessage) {
	r := d.add(ev.RunID)
	if at, again := r.messages[m.MessageID]; again && m.MessageID != "" && at != ev.Sequence {
		return
	}
	r.messages[strings.Clone(m.MessageID)] = ev.Sequence
	sent := *ev
	sent.AgentID = cmp.Or(m.From, ev.AgentID)
	d.note(&sent, messageItem(m))
}

// ask notes a message of a user. The first one of a turn is its prompt.
func (a *agentDetails) ask(text string) {
	if _, asked := a.asked[a.turn]; a.turn == 0 || asked {
		return
	}
	if a.asked == nil {
		a.asked = map[uint64]string{}
	}
	a.asked[a.turn] = text
}

// note adds a line about an event to its agent's notes.
func (d *Details) note(ev *agentevents.Event, l Item) *noted {
	a := d.agent(ev)
	if a.notes == nil {
		a.notes = map[uint64]*noted{}
	}
	n := a.notes[ev.Sequence]
	if n == nil {
		l.Sequence, l.Time, l.AgentID = ev.Sequence, ev.Time, strings.Clone(ev.AgentID)
		n = &noted{Item: l}
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
		n = d.note(ev, itemOf(ev))
		if a.unknown == nil {
			a.unknown = map[agentevents.Kind]*noted{}
		}
		a.unknown[agentevents.Kind(strings.Clone(string(p.Type)))] = n
	case ev.Sequence <= n.last:
		return // it comes again
	default:
		n.Text = ""
	}
	n.times, n.last = n.times+1, ev.Sequence
}

// edge notes an edge of the flow, which belongs to the run. An edge that is taken again is one line, and so
// is a loop, which has the latest iteration.
func (d *Details) edge(ev *agentevents.Event) {
	l, r := itemOf(ev), d.add(ev.RunID)
	key := l.Subject
	_, loop := ev.Payload.(*agentevents.LoopIterated)
	if !loop {
		key += " " + l.Status
	}
	n := r.edges[key]
	switch {
	case n == nil:
		n = d.note(&agentevents.Event{RunID: ev.RunID, Sequence: ev.Sequence, Time: ev.Time}, l)
		if r.edges == nil {
			r.edges = map[string]*noted{}
		}
		r.edges[key] = n
	case ev.Sequence <= n.last:
		return // it comes again
	}
	n.last = ev.Sequence
	if loop {
		n.Status = l.Status
	} else {
		n.times++
	}
}

// isTwin reports whether an event repeats a question or an answer, as its decoder has noted.
func isTwin(ev *agentevents.Event) bool {
	for _, raw := range ev.Extras() {
		if jsonwire.Member(string(raw), "~twin") != "" {
			return true
		}
	}
	return false
}

// span notes a span that no other line is about. Its start and its end are one line.
func (d *Details) span(ev *agentevents.Event, p *agentevents.SpanRecorded) {
	mark := view.MarkOf(endword.Of(p.Phase))
	if p.Subject == "run" || p.Phase != "start" && mark == None {
		return
	}
	r := d.add(ev.RunID)
	n := r.open[ev.SpanID]
	if n == nil || mark == None {
		n = d.note(ev, Item{Topic: Span, Subject: short(p.Subject, maxWhy)})
	}
	if n.Mark != None {
		return // it comes again
	}
	if delete(r.open, ev.SpanID); mark == None && ev.SpanID != "" {
		r.open[strings.Clone(ev.SpanID)] = n
	}
	n.Mark = mark
	if p.Subject == "handoff" {
		named := func(name string) string {
			return short(jsonwire.Text(jsonwire.Member(string(p.Attributes), name)), maxWhy)
		}
		n.from, n.to = cmp.Or(named("from_agent"), n.from, ev.AgentID), cmp.Or(named("to_agent"), n.to)
		if n.to != "" {
			n.Subject = "handoff " + n.from + " → " + n.to
		}
		if mark == Bad {
			n.Concern = Look
		}
	}
	n.fact(view.Duration(p.Duration.V))
	n.Text = cmp.Or(short(cmp.Or(p.ErrorMessage, p.ErrorType), maxNote), valueText(p.Attributes), n.Text)
}

// valueText returns a JSON value as a short text, and "" for nothing. Of a value that an emitter has
// cut, it is the beginning, after the size.
func valueText(value agentevents.JSON) string {
	var text string
	size, head := view.Cut(value)
	switch {
	case head != "":
		text = size + strings.TrimPrefix(head, `"`)
	case value == "{}" || value == "null":
		return ""
	case json.Unmarshal([]byte(value), &text) != nil:
		text = string(value)
	}
	return short(text, maxNote)
}

// Dashed joins two texts.
func Dashed(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " — " + b
}

// unblock notes that an agent waits no more.
func (a *agentDetails) unblock(at time.Time) {
	if a.blocked != nil {
		a.blocked.open = false
		a.blocked.Facts = nil
		a.blocked.fact(view.Between(a.blocked.Time, at))
	}
	a.blocked = nil
}

// stop ends an attempt, which took so long if that is known.
func (a *agentDetails) stop(at time.Time, took agentevents.Opt[time.Duration]) {
	switch {
	case took.OK:
		a.worked += took.V
	case agentevents.TimeKnown(a.began) && agentevents.TimeKnown(at):
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
		r = &runDetails{
			agents: map[string]*agentDetails{}, spans: map[string]*agentDetails{}, open: map[string]*noted{},
			messages: map[string]uint64{}, found: findings.NewRun(id, findings.Options{}),
		}
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
	end := false
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		delete(r.spans, ev.SpanID)
		if id == "" && ev.SpanID != "" {
			a := r.agent(ev.SpanID)
			a.twin = strings.Clone(p.Agent.V.AgentID)
			r.spans[strings.Clone(ev.SpanID)] = a
		}
		return r.agent(cmp.Or(id, ev.SpanID))
	case *agentevents.AgentEnded:
		end = true
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
		case a.twin == id:
			if r.agents[id] == nil && r.agents[span] == a { // the first one with the id has it
				delete(r.agents, span)
				r.agents[strings.Clone(id)] = a
			}
			if ev.SpanID != "" && r.spans[ev.SpanID] == nil {
				r.spans[strings.Clone(ev.SpanID)] = a // what ends there may not name the span around it
			}
			return a
		case r.agents[id] == nil && r.agents[span] == a:
			delete(r.agents, span)
			r.agents[strings.Clone(id)] = a
		case r.agents[span] == a && (r.agents[id].over || end && span == ev.SpanID):
			if !r.agents[id].over {
				a.twin = strings.Clone(id)
			}
			return a
		}
	}
	return r.agent(id)
}

func (r *runDetails) agent(id string) *agentDetails {
	a := r.agents[id]
	if a == nil {
		a = &agentDetails{calls: map[uint64]string{}}
		r.agents[strings.Clone(id)] = a
	}
	return a
}

func (d *Details) call(ev *agentevents.Event, summary string, arguments agentevents.JSON) {
	a := d.agent(ev)
	a.acted = ev.Sequence
	if text := argument(summary, arguments); text != "" {
		a.calls[ev.Sequence] = text
	}
}

// hush notes a turn or an attempt whose last text stands before a call: it is not the answer.
func (a *agentDetails) hush(of uint64) {
	if a.acted <= a.said {
		return
	}
	if a.silent == nil {
		a.silent = map[uint64]bool{}
	}
	a.silent[of] = true
}

// promptText returns a prompt as text: the string, or the last text of the messages and then the
// ones before it.
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
	var texts []string // the last first
	for _, m := range slices.Backward(messages) {
		var parts []struct{ Text string }
		if m.Content == nil {
			m.Content = m.Message.Content
		}
		switch {
		case json.Unmarshal(m.Content, &text) == nil && text != "":
			texts = append(texts, text)
		case json.Unmarshal(m.Content, &parts) == nil:
			for _, p := range slices.Backward(parts) {
				if p.Text != "" {
					texts = append(texts, p.Text)
					break
				}
			}
		}
	}
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	slices.Reverse(texts[1:])
	return texts[0] + " (after: " + strings.Join(texts[1:], "; ") + ")"
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

// rested returns the time at work, if the rest of the time matters, else 0.
func rested(took, work time.Duration) time.Duration {
	if took-work < max(time.Second, took/4) {
		return 0
	}
	return work
}

// Cause returns in a word or two why a run ended as it did, or "".
func Cause(s *agentevents.RunSnapshot) string {
	if s.Status != agentevents.RunStatusFailed && s.Status != agentevents.RunStatusCancelled {
		return ""
	}
	codes := []string{s.Error.V.Code, s.CancelReason}
	agents := view.Of(s)
	for _, a := range s.AgentsInOrder() {
		codes = append(codes, a.Error.V.Code)
		if _, how := agents.Status(a.AgentID, a); how != view.Good { // else the agent got over it
			codes = append(codes, a.LastError.V.Code)
		}
	}
	for _, code := range codes {
		for _, r := range reasons {
			if slices.Contains(r.codes, code) {
				if r.word == interrupted && s.Status == agentevents.RunStatusCancelled {
					return "" // the status tells it
				}
				return r.word
			}
		}
	}
	if len(s.Budgets) > 0 {
		return "budget"
	}
	return ""
}

// interrupted is the code of work without an end: its program was killed, or is still at work.
const interrupted = "interrupted"

// reasons are the words for codes of errors.
var reasons = []struct {
	word  string
	codes []string
}{
	{"turn limit", []string{"error_max_turns", "max_turns"}},
	{"budget", []string{"error_max_budget_usd", "budget_exceeded"}},
	{"rate limit", []string{"rate_limit", "rate_limit_error", "rate_limited"}},
	{"timeout", []string{"deadline_exceeded", "timeout"}},
	{interrupted, []string{interrupted}},
	{"killed", []string{"killed"}},
	{"user", []string{"error_user", "user", "user_cancelled", "aborted_by_user"}},
	{"network", []string{"network_error"}},
}

// Call returns the main argument of a call, such as its command or path, or "". sequence is the
// sequence of its first event, as ids of calls may repeat.
func (d *Details) Call(runID, agentID string, sequence uint64) string {
	return d.run(runID).of(agentID).calls[sequence]
}

// ModelFailure returns why the last failed model call of an agent failed, or "".
func (d *Details) ModelFailure(runID, agentID string) string { return d.run(runID).of(agentID).failure }

// Worked returns how long an agent was at work, in all its attempts that ended. It returns 0 if the
// rest of took is shorter than a second or than a quarter of took.
func (d *Details) Worked(runID, agentID string, took time.Duration) time.Duration {
	return rested(took, d.run(runID).of(agentID).worked)
}

// WhyEarlier is Why for an earlier attempt. start is the sequence of its start.
func (d *Details) WhyEarlier(runID, agentID string, start uint64) string {
	return d.run(runID).of(agentID).whys[start]
}

// AtWork returns how long the agents that nobody spawned were at work, if that is known and much
// less than the run took.
func (d *Details) AtWork(s *agentevents.RunSnapshot) time.Duration {
	var work time.Duration
	for _, a := range s.Agents {
		if a != nil && a.ParentAgentID == "" && a.ParentCallID == "" {
			if !a.Started {
				return 0
			}
			work += d.run(s.RunID).of(a.AgentID).worked
		}
	}
	return rested(view.Length(s), work)
}

// Why returns why an agent has failed or waits, on one line, or "". It is the reason of the
// transition to that status.
func (d *Details) Why(runID, agentID string) string { return d.run(runID).of(agentID).why }

// Prompt returns the beginning of an agent's first prompt, on one line, or "".
func (d *Details) Prompt(runID, agentID string) string { return d.run(runID).of(agentID).prompt }
