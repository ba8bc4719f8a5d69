package agentevents

import (
	"cmp"
	"slices"
	"strings"
)

// identify sets the agent of an event. The key of an agent that the event names is still
// the span of its start: see apply.
func (m *machine) identify(sub *subject, ev *Event) {
	sub.agent = nil
	if sub.key = ev.AgentID; sub.key == "" {
		sub.key = m.agentKey(ev)
	}
	if sub.key != "" {
		sub.agent = m.find(sub.key)
	}
	if ev.AgentID == "" || len(m.bySpan) == 0 {
		return
	}
	if a := m.twin(ev); a != nil {
		sub.agent, sub.key = a, a.AgentID
		return
	}
	_, end := ev.Payload.(*AgentEnded)
	// several agents may have one id, each in a span of its own
	unknown := sub.agent == nil || !sub.agent.firm() || sub.agent.Ended
	if a := m.nameless(ev); a != nil && a != sub.agent &&
		(unknown || end && a.SpanID == ev.SpanID || a.SpanID == ev.SpanID && apart(sub.agent, ev)) {
		sub.agent, sub.key = a, a.AgentID
	}
}

// apart reports whether an agent works in another span than an event, in whose span another agent
// of its id started.
func apart(a *AgentState, ev *Event) bool {
	return a.Open && a.SpanID != "" && a.SpanID != ev.SpanID && a.SpanID != ev.ParentSpanID
}

// agentKey returns the key of the agent of an event without an agentId: nodeRunId, else
// the agent that started in its span.
func (m *machine) agentKey(ev *Event) string {
	if ev.NodeRunID != "" {
		return ev.NodeRunID
	}
	switch ev.Payload.(type) {
	case *AgentStarted, *AgentEnded:
		if a := m.bySpan[ev.SpanID]; a != nil {
			return a.AgentID
		}
		return ev.SpanID
	}
	if a := m.bySpan[ev.ParentSpanID]; a != nil && a.Resume.unnamed {
		return a.AgentID
	}
	if _, ok := m.agents[ev.ParentSpanID]; ok {
		return ev.ParentSpanID
	}
	return ""
}

// nameless returns the agent that an event with an id may name: one that started without an
// id in the event's span, or in the span around it.
func (m *machine) nameless(ev *Event) *AgentState {
	switch ev.Payload.(type) {
	case *AgentStarted, *HandoffAccepted: // another agent comes
		return nil
	}
	if answerOf(ev).kind != "" { // of a person
		return nil
	}
	a := m.bySpan[ev.SpanID]
	if a == nil {
		a = m.bySpan[ev.ParentSpanID]
	}
	if a == nil && ev.SpanID != "" && ev.Kind() == KindAgentEnded && m.find(ev.AgentID) == nil {
		return m.onlyNameless()
	}
	if a == nil || !a.waitsForName() {
		return nil
	}
	return a
}

// waitsForName reports whether the agent is known by the span of its start alone.
func (a *AgentState) waitsForName() bool { return a.Resume.unnamed && a.AgentID == a.SpanID }

// onlyNameless returns the one open agent that waits for its name, or nil: the end of an agent that
// nobody knows, in a span that nobody knows, is its end. It does not look through many spans.
func (m *machine) onlyNameless() (only *AgentState) {
	if len(m.bySpan) > maxSpans {
		return nil
	}
	for _, a := range m.bySpan {
		switch {
		case !a.Open || !a.waitsForName():
		case only != nil:
			return nil
		default:
			only = a
		}
	}
	return only
}

// twin returns the agent of an event whose id several agents have at once: the one in the span
// of which it is.
func (m *machine) twin(ev *Event) *AgentState {
	if len(m.twins) == 0 {
		return nil
	}
	switch ev.Payload.(type) {
	case *AgentStarted, *HandoffAccepted: // another agent comes
		return nil
	}
	for _, span := range [...]string{ev.SpanID, ev.ParentSpanID} {
		if a := m.twins[span]; a != nil && a.Resume.twin == ev.AgentID {
			return a
		}
	}
	return nil
}

// maxSpans is how many spans of a twin are known.
const maxSpans = 64

// within notes a span of a twin: an event that ends there may not name the span around it.
func (m *machine) within(a *AgentState, span string) {
	r := &a.Resume
	if span == "" || m.twins[span] == a {
		return
	}
	if len(r.spans) == maxSpans {
		delete(m.twins, r.spans[1]) // the first span is where it started
		r.spans = slices.Delete(r.spans, 1, 2)
	}
	span = strings.Clone(span)
	r.spans = append(r.spans, span)
	put(&m.twins, span, a)
}

// name gives an agent that is known by the span of its start its id.
func (m *machine) name(a *AgentState, id string) {
	was := a.AgentID
	if e := m.view.noting(); e != nil {
		e.Formerly = was
	}
	delete(m.agents, was)
	a.AgentID = m.view.intern(id)
	m.agents[a.AgentID] = a
	m.last = a
	rekey := func(key callKey) callKey {
		if key.agent == was {
			key.agent = a.AgentID
		}
		return key
	}
	if a.Counted.ToolCalls > 0 || a.Attempts > 1 {
		m.calls.Rekey(func(key callKey, c *openCall) callKey {
			c.callKey = rekey(key)
			return c.callKey
		})
	}
	m.modelCalls.Rekey(func(key callKey, c *ModelCallSnapshot) callKey {
		key = rekey(key)
		c.AgentID = key.agent
		return key
	})
	m.questions.rename(was, a.AgentID)
	m.approvals.rename(was, a.AgentID)
	m.renameEarly(was, a.AgentID)
	m.view.named(was, a, m.NextSequence)
	if ref, ok := m.expected.Take(a.AgentID); ok {
		m.nameAgent(&ref.V)
	}
}

// begins notes the span that an agent starts in. A span belongs to the agent that started in it
// last.
func (m *machine) begins(a *AgentState, ev *Event) {
	if ev.AgentID == "" && ev.NodeRunID == "" {
		a.Resume.unnamed = true
		if ref := &ev.Payload.(*AgentStarted).Agent; ref.V.AgentID != "" {
			a.Resume.twin = m.view.intern(ref.V.AgentID)
			m.within(a, ev.SpanID)
		}
	}
	if ev.SpanID == "" || ev.SpanID == a.SpanID {
		return
	}
	if other := m.bySpan[ev.SpanID]; other != nil {
		other.SpanID = ""
	}
	if a.SpanID != "" {
		delete(m.bySpan, a.SpanID)
	}
	a.SpanID = m.view.keep(ev.SpanID)
	put(&m.bySpan, a.SpanID, a)
}

// find returns the state of an agent, or nil. It tries the agent that it found
// last first: agents are never forgotten, and most events are of the same agent
// as the event before.
func (m *machine) find(key string) *AgentState {
	if m.last != nil && m.last.AgentID == key {
		return m.last
	}
	a := m.agents[key]
	if a != nil {
		m.last = a
	}
	return a
}

// newAgent adds the state of an agent.
func (m *machine) newAgent(key string) *AgentState {
	var a *AgentState
	if m.view != nil {
		a = m.view.newAgent()
		key = m.view.intern(key)
	} else {
		a = &AgentState{}
	}
	a.AgentID, a.Status, a.Resume.order = key, m.statusOf(nil), -1
	if ref, named := m.expected.Take(key); named {
		a.named(&ref.V)
		if m.view != nil {
			a.shown.Ref = ref
		}
	}
	if m.agents == nil {
		m.agents = map[string]*AgentState{}
	}
	m.agents[key] = a
	m.last = a
	return a
}

// firm reports whether the agent has an event that is not a delta. Deltas may be
// dropped from a log, so an agent that has only deltas must leave no trace.
func (a *AgentState) firm() bool { return a.Resume.order >= 0 }

// RuleAgentStartedOnce: a running agent does not start again, except after run.resumed or
// with resumed set; with the strict table an agent that has moved without a start is running.
const RuleAgentStartedOnce Rule = "agent-started-once"

func (m *machine) checkAgentStarted(ev *Event, sub *subject) *RuleError {
	a := sub.agent
	if a == nil || a.Resume.resumes < m.Resume.resumes || ev.Payload.(*AgentStarted).Resumed {
		return nil
	}
	moved := !a.Started && !a.Ended && a.Status != StatusThinking && !m.Resume.cut
	if !a.Open && !(moved && m.table() == LifecycleStrict) {
		return nil // the start of the strict table is the way to thinking: it would move the agent
	}
	return m.refuse(ev, RuleAgentStartedOnce, named("agent", sub.key), "running ("+a.Status.shown()+")",
		"a running agent does not start again; legal: after agent.ended, after run.resumed, or with resumed set")
}

func (m *machine) agentStarted(ev *Event, sub *subject) {
	a, p := sub.agent, ev.Payload.(*AgentStarted)
	m.says(p.Lifecycle)
	if a == nil {
		return
	}
	if a.Ended && !a.Started && m.startedLate(a, ev) { // it stays ended
		m.begins(a, ev)
		m.view.within(ev.ParentSpanID, m.bySpan[ev.ParentSpanID], a)
		a.Started, a.Attempts = true, p.Attempt.Or(max(1, a.Attempts))
		return
	}
	m.goesOn()
	m.rest(a)
	if a.Started || a.Ended {
		m.view.again(a, ev)
	}
	m.begins(a, ev)
	m.view.within(ev.ParentSpanID, m.bySpan[ev.ParentSpanID], a)
	r := &a.Resume
	r.first, r.act = 0, atThinking
	if a.Started {
		m.closeQuestionsOf(a.AgentID, KindAgentStarted)
	}
	if a.Started && a.Step.OK {
		r.first, r.renew = plus(a.Step.V, 1), true
		a.calls = 0 // calls of earlier attempts
	}
	if a.Ended {
		m.resting--
	}
	a.Started, a.Open, a.Ended = true, true, false
	r.resumes = m.Resume.resumes
	a.Status = StatusThinking
	a.Attempts = p.Attempt.Or(plus(a.Attempts, 1))
	steps := a.Counted.Steps
	a.Counted = Totals{}
	if r.first == 0 && !m.Resume.cut { // the steps before the first start are its own
		a.Counted.Steps = steps
	}
	if p.Agent.OK {
		_, a.SharesByGroup = p.Agent.V.AgentSharing.Group()
	}
}

// RuleAgentEndedFinal: an agent at a terminal status only ends or makes a legal
// transition, and an agent that has ended only starts again; exempt are audits and
// late events. The end of a node's execution ends the agent that has no other id.
const RuleAgentEndedFinal Rule = "agent-ended-final"

// checkAct checks an event in which the agent itself acts.
func (m *machine) checkAct(ev *Event, sub *subject) *RuleError {
	a := sub.agent
	if a == nil || !sub.kind.ByAgent || sub.kind.traits&ofLifecycle != 0 || ev.Marks.Has(MarkLate) {
		return nil
	}
	if !a.Ended && !a.Status.Terminal() {
		return nil
	}
	if p, ok := ev.Payload.(*MessageCreated); ok && p.Message.From != sub.key {
		return nil // another's message in the agent's conversation
	}
	if a.Ended {
		return m.ended(ev, sub)
	}
	return m.refuse(ev, RuleAgentEndedFinal, named("agent", sub.key), a.Status.shown(),
		"only audits, agent.ended and legal transitions may follow")
}

func (m *machine) ended(ev *Event, sub *subject) *RuleError {
	return m.refuse(ev, RuleAgentEndedFinal, named("agent", sub.key), "ended", "only a new agent.started may follow")
}

// RuleTransitionFromCurrent: from is the agent's current status; the first status
// is thinking. The first status in a log that begins inside its run is unknown.
const RuleTransitionFromCurrent Rule = "transition-from-current"

// RuleTransitionLegal: the lifecycle table allows the move from from to to.
const RuleTransitionLegal Rule = "transition-legal"

func (m *machine) checkAgentTransition(ev *Event, sub *subject) *RuleError {
	a, p := sub.agent, ev.Payload.(*AgentTransition)
	late := ev.Marks.Has(MarkLate)
	if a != nil && a.Ended && !late {
		return m.ended(ev, sub)
	}
	status := m.statusOf(a)
	table := m.table()
	if m.derives && table.Allows(p.From, p.To) {
		table = LifecycleDerived // also before a start names it: readers may go by either
	}
	if status.Terminal() && len(table.Next(status)) == 0 && !late {
		return m.refuse(ev, RuleAgentEndedFinal, named("agent", sub.key), status.shown(),
			"only audits and agent.ended may follow")
	}
	if p.From != status && status != "" {
		return m.refuse(ev, RuleTransitionFromCurrent, named("agent", sub.key), status.shown(),
			"from is "+p.From.shown()+"; legal: "+status.shown())
	}
	if !table.Allows(p.From, p.To) {
		if m.tableUnknown() && slices.ContainsFunc(lifecycles, func(l Lifecycle) bool { return l.Allows(p.From, p.To) }) {
			return nil
		}
		detail := p.From.shown() + " → " + p.To.shown() + " is not in the " +
			string(table) + " table; legal: " + cmp.Or(wordList(table.Next(p.From)), "none")
		var others []Lifecycle
		for _, l := range lifecycles {
			if l.Allows(p.From, p.To) {
				others = append(others, l)
			}
		}
		if others != nil {
			detail += "; lifecycles that allow it: " + wordList(others)
		}
		return m.refuse(ev, RuleTransitionLegal, named("agent", sub.key), status.shown(), detail)
	}
	return nil
}

func (m *machine) agentTransition(ev *Event, sub *subject) {
	a := sub.agent
	if a == nil {
		return
	}
	to := ev.Payload.(*AgentTransition).To
	if i := to.index(); i >= 0 {
		a.Status = statuses[i] // the constant: a piece of a line would keep the line alive
		if waits := 1<<i&untold != 0; !waits {
			a.Resume.act = i
		}
	} else {
		a.Status = AgentStatus(m.view.intern(string(to)))
	}
	a.endUnnamed()
}

// RuleEndedTotals: the totals of an end are at least the totals of the log.
const RuleEndedTotals Rule = "ended-totals"

func (m *machine) checkAgentEnded(ev *Event, sub *subject) *RuleError {
	a, p := sub.agent, ev.Payload.(*AgentEnded)
	if a == nil {
		return nil
	}
	if a.Ended && !ev.Marks.Has(MarkLate) {
		return m.ended(ev, sub)
	}
	if !p.Totals.OK {
		return nil
	}
	given, counted := &p.Totals.V, &a.Counted
	for _, c := range [...]struct {
		name           string
		given, counted int
	}{
		{"steps", given.Steps, counted.Steps},
		{"toolCalls", given.ToolCalls, counted.ToolCalls},
		{"auditCheckpoints", given.AuditCheckpoints, counted.AuditCheckpoints},
		{"auditsPassed", given.AuditsPassed, counted.AuditsPassed},
		{"auditsFailed", given.AuditsFailed, counted.AuditsFailed},
	} {
		if c.name == "steps" && m.Resume.cut {
			continue // an earlier attempt may have counted the step that seems new
		}
		if c.given < c.counted {
			err := m.refuse(ev, RuleEndedTotals, named("agent", sub.key), "",
				itoa(c.given)+" is below the recorded number; legal: "+itoa(c.counted)+" or more")
			err.Pointer = "/payload/totals/" + c.name
			return err
		}
	}
	return nil
}

func (m *machine) agentEnded(ev *Event, sub *subject) {
	a := sub.agent
	if a == nil {
		return
	}
	sub.told = m.endsAgain(a, ev)
	if p := ev.Payload.(*AgentEnded); m.view == nil && (!sub.told || p.tells()) {
		a.end = endOf(p.Error, p.Status, p.Outcome)
	}
	if a.Ended && !sub.told && !ev.Marks.Has(MarkLate) { // an end without a start is an attempt, too
		m.view.again(a, ev)
		a.Attempts = plus(max(1, a.Attempts), 1)
	}
	if !a.Started && !sub.told {
		m.endedFirst(earlyEnd{kind: KindAgentStarted, agent: a.AgentID, span: ev.SpanID, at: ev.Time})
	}
	m.endAgent(a, KindAgentEnded)
}

// endsAgain reports whether an end of the agent tells the end of its latest attempt again: the
// attempt has ended, and has a start, or the end is in the same span. In a document without spans the
// start of another attempt may be missing.
func (m *machine) endsAgain(a *AgentState, ev *Event) bool {
	if !a.Ended || ev.SpanID == "" || a.Started {
		return a.Ended && ev.SpanID != ""
	}
	for _, e := range slices.Backward(m.Resume.early) {
		if e.kind == KindAgentStarted && e.agent == a.AgentID {
			return e.span == ev.SpanID
		}
	}
	return false
}

// tells reports whether the end has a word or an error for how the agent ended.
func (p *AgentEnded) tells() bool { return p.Error.OK || p.Status != "" || p.Outcome != "" }

// startedLate reports whether the start of an agent comes after its end in the log and before it in
// time.
func (m *machine) startedLate(a *AgentState, ev *Event) bool {
	_, late := m.beginsLate(earlyEnd{kind: KindAgentStarted, agent: a.AgentID, at: ev.Time})
	return late
}

// endAgent puts an agent to rest, by an event of that kind.
func (m *machine) endAgent(a *AgentState, by Kind) {
	if !a.Ended {
		m.resting++
	}
	a.Open, a.Ended = false, true
	m.rest(a)
	m.closeQuestionsOf(a.AgentID, by)
	if int(m.resting) == len(m.agents) {
		m.Resume.recentDeltas = m.Resume.recentDeltas[:0]
	}
}

// nodeEnded ends the open agent that only the execution of this node identifies.
func (m *machine) nodeEnded(ev *Event, sub *subject) {
	m.nameAgents(ev, sub)
	a := sub.agent
	if a == nil || !a.Open || ev.AgentID != "" || ev.NodeRunID == "" {
		return
	}
	if p, failed := ev.Payload.(*NodeFailed); m.view == nil {
		a.end = agentEnd{failed: failed}
	} else {
		m.view.agentOfNodeEnded(ev, sub, p)
	}
	m.endAgent(a, sub.kind.Kind)
}

// rest drops the state that only a working agent needs.
func (m *machine) rest(a *AgentState) {
	a.Resume.ahead = Opt[int]{}
	if m.view == nil {
		a.Resume.blocks = nil
		return
	}
	m.view.finishTexts(a)
	for i := range a.Resume.blocks {
		m.view.release(a.Resume.blocks[i].text)
	}
	clear(a.Resume.blocks)
	a.Resume.blocks = a.Resume.blocks[:0]
}

func (m *machine) auditChecked(ev *Event, sub *subject) {
	a := sub.agent
	if a == nil {
		return
	}
	c := &a.Counted
	c.AuditCheckpoints = plus(c.AuditCheckpoints, 1)
	switch ev.Payload.(*AuditChecked).Result {
	case AuditPass:
		c.AuditsPassed = plus(c.AuditsPassed, 1)
	case AuditFail:
		c.AuditsFailed = plus(c.AuditsFailed, 1)
	}
}

// nameAgents gives the agents that an event of a node or a handoff names their
// references.
func (m *machine) nameAgents(ev *Event, _ *subject) {
	switch p := ev.Payload.(type) {
	case *NodeStarted:
		m.nameAgent(&p.Agent.V)
		m.view.nodeNames(ev.NodeID, &p.Agent.V)
	case *NodeCompleted:
		m.nameAgent(&p.Agent.V)
		m.view.nodeNames(ev.NodeID, &p.Agent.V)
	case *AgentHandoff:
		m.nameAgent(&p.From)
		m.nameAgent(&p.To)
	case *HandoffRequested:
		m.nameAgent(&p.From)
		m.nameAgent(&p.To)
	case *HandoffAccepted:
		m.nameAgent(&p.From)
		m.nameAgent(&p.To)
	}
}

func (m *machine) nameAgent(ref *AgentRef) {
	if ref.AgentID == "" {
		return
	}
	a := m.agents[ref.AgentID]
	if a == nil {
		m.expect(ref)
		return
	}
	a.named(ref)
	if m.view != nil {
		m.view.refer(&a.shown.Ref, ref)
	}
}

// named copies the fields of a reference that rules use. An agent whose reference shares its
// context by group does so until its start changes that.
func (a *AgentState) named(ref *AgentRef) {
	_, group := ref.AgentSharing.Group()
	a.SharesByGroup = a.SharesByGroup || group
}

// expect keeps the reference of an agent that has no event yet.
func (m *machine) expect(ref *AgentRef) {
	if known := m.expected.Find(ref.AgentID); known != nil {
		m.view.refer(known, ref)
		return
	}
	kept := m.view.keepRef(*ref)
	m.expected.Add(kept.AgentID, Some(kept))
}
