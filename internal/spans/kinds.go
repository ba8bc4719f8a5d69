package spans

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/endword"
)

// This file has the spans of each kind of event, points.go the points.

func (m *Mapper) runStarted(ev *agentevents.Event, p *agentevents.RunStarted) *Span {
	m.stated = true
	switch {
	case m.root != nil:
		return m.point(ev)
	default:
		m.name = label(cmp.Or(p.Name, ev.WorkflowID))
		m.workflowRoot(ev)
		m.runsAgent(ev, p.Agent.V.AgentID)
	}
	m.say(m.root, AttrInput, "user", string(p.Inputs))
	return m.root
}

// runsAgent begins the span of the agent that the run names. Its start, if there is one, has
// that span; else it ends with the run.
func (m *Mapper) runsAgent(ev *agentevents.Event, id string) {
	if id == "" {
		return
	}
	as := *ev
	as.AgentID, as.SpanID, as.ParentSpanID = id, "", "" // the ids are the run's
	m.owner = m.newAgent(&as, id, "", m.root, m.invoke(&as, ""))
	m.owner.span.madeUp = true
}

// workflow is the span of the event's workflow, which begins with the first event that is about
// the workflow. It is below the agent that creates it, if that is at work.
func (m *Mapper) workflow(ev *agentevents.Event) *Span {
	k := workflowKey(ev)
	if s := m.open[k]; s != nil {
		return s
	}
	as := *ev
	as.AgentID = "" // it belongs to no agent
	m.ensureRoot(&as)
	parent := m.root
	if a := m.agent(ev); a != nil && !a.span.ended {
		parent = m.scope(ev)
	}
	name := label(ev.WorkflowID)
	if _, created := ev.Payload.(*agentevents.WorkflowCreated); !created && m.stated && name != "" && name == m.name {
		return m.root // the run is the workflow
	}
	h := shape{name: title(OpWorkflow, name),
		attrs: m.common(&as, OpWorkflow, str(AttrWorkflow, name),
			str("agentevents.workflow.id", cut(ev.WorkflowID, maxText)))}
	_, phase := ev.Payload.(*agentevents.PhaseStarted)
	if phase {
		h.attrs = append(h.attrs, val(AttrMadeUp, true))
	}
	s := m.begin(&as, parent, k, h)
	s.madeUp = phase
	return s
}

// finalized ends a workflow. Agents that it has begun may work on.
func (m *Mapper) finalized(ev *agentevents.Event, p *agentevents.WorkflowFinalized) *Span {
	k := workflowKey(ev)
	s := m.open[k]
	switch {
	case s != nil:
	case !m.unbegun(k):
		return m.late(ev)
	default:
		if s = m.workflow(before(ev, p.Duration)); s == m.root {
			return m.pointAt(s, ev)
		}
		m.orphan(s, p.Duration)
	}
	m.flows++
	m.pointAt(s, ev)
	return m.end(s, ev)
}

// before is the event at the time at which its work began.
func before(ev *agentevents.Event, took time.Duration) *agentevents.Event {
	as := *ev
	as.Time = ev.Time.Add(-max(0, took))
	return &as
}

// runResumed begins another trace if the run's root has ended, or if the event has the id of
// another trace.
func (m *Mapper) runResumed(ev *agentevents.Event) *Span {
	if m.root != nil && m.o.Recorded && !m.root.ended {
		if id, ok := ParseTraceID(ev.TraceID); ok && id != m.root.TraceID {
			m.leave()
			m.Close(ReasonPaused)
		}
	}
	m.again(ev)
	m.stated = true
	if m.root == nil {
		m.workflowRoot(ev)
	}
	return m.point(ev)
}

// again makes place for another root if the root has ended.
func (m *Mapper) again(ev *agentevents.Event) {
	if m.root == nil || !m.root.ended {
		return
	}
	m.Close(ReasonRestarted) // the spans that have begun below it since
	old := m.root
	m.root, m.owner, m.segment, m.over, m.summed, m.of, m.flows = nil, nil, ev.Sequence, false, false, key{}, 0
	m.resumed = &Link{TraceID: old.TraceID, SpanID: old.ID}
	clear(m.agents)
	clear(m.starts)
	clear(m.twins)
	clear(m.past)
	m.recent = nil
}

// sessionOutcomes has the outcome of a run that ends with its session, by how that ended. One
// whose word is neither a success nor a failure has its word.
var sessionOutcomes = map[endword.Meaning]string{
	endword.Succeeded: "completed", endword.Failed: "failed", endword.Refused: "failed", endword.Cancelled: "cancelled",
}

// sessionEnded ends a run whose log has no end of the run.
func (m *Mapper) sessionEnded(ev *agentevents.Event, p *agentevents.SessionCompleted) *Span {
	if m.root == nil && !m.stated {
		m.ensureRoot(m.ofRunAt(ev))
	}
	root := m.root
	if root == nil || root.ended || m.stated {
		return m.point(ev)
	}
	m.pointAt(root, ev)
	word := p.Status
	if word == "" && p.Error.OK {
		word = "failed"
	}
	outcome := m.turnsOut(word)
	incomplete := ReasonRunEnded
	if root.Status != StatusError {
		incomplete = ""
	}
	return m.runEnded(ev, outcome, incomplete)
}

// turnsOut gives the root the outcome and the status of a run that is over with a word. Without
// one the run went as its agents did, unless it had a workflow that is finalized.
func (m *Mapper) turnsOut(said string) string {
	meaning := endword.Succeeded
	switch {
	case said != "":
		meaning = endword.Of(said)
	case m.flows == 0:
		meaning = m.agentsWent()
	}
	outcome, known := sessionOutcomes[meaning]
	switch outcome {
	case "failed":
		m.fail(m.root, cmp.Or(m.errType, ErrorOther), "")
	case "cancelled":
		m.fail(m.root, "cancelled", "")
	}
	if !known {
		outcome = cmp.Or(word(said), "ended")
	}
	m.root.set(str(AttrOutcome, outcome))
	return outcome
}

// rested reports whether agents have ended, and none works.
func (m *Mapper) rested() bool {
	for _, a := range m.agents {
		if !a.ended {
			return false
		}
	}
	return len(m.agents) > 0
}

// agentsWent is how the latest attempts of all agents went together.
func (m *Mapper) agentsWent() endword.Meaning {
	went := map[endword.Meaning]bool{endword.Failed: m.past[endword.Failed], endword.Cancelled: m.past[endword.Cancelled]}
	for _, a := range m.agents {
		went[a.went] = true
	}
	for _, bad := range [...]endword.Meaning{endword.Failed, endword.Cancelled} {
		if went[bad] {
			return bad
		}
	}
	return endword.Succeeded
}

// went returns the result that the end of an agent describes. An agent whose outcome is aborted
// failed.
func went(p *agentevents.AgentEnded, gave bool) endword.Meaning {
	end := endword.End{Error: p.Error.OK, Code: p.Error.V.Code, Gave: gave, Word: p.Status,
		Outcome: string(p.Outcome)}.Meaning()
	if end == endword.Refused || end == endword.Cancelled && p.Outcome == agentevents.OutcomeAborted {
		return endword.Failed
	}
	return end
}

// ofRunAt is the event as one of no agent.
func (m *Mapper) ofRunAt(ev *agentevents.Event) *agentevents.Event {
	as := *ev
	as.AgentID = ""
	return &as
}

func (m *Mapper) runEnded(ev *agentevents.Event, outcome, incomplete string) *Span {
	root := m.root
	switch {
	case root != nil && root.ended && m.over: // with its workflow, turn or session
		m.over = false
		return root
	case root == nil || root.ended:
		return m.late(ev)
	}
	root.madeUp = false
	switch ev.Payload.(type) {
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
	default:
		m.over = true
		if m.turned != nil {
			outcome, incomplete = m.turned.outcome, m.turned.incomplete
		}
	}
	m.turned, m.summed = nil, false
	m.lapse(ev)
	for _, s := range slices.Backward(m.order) {
		_, failed := s.outlives()
		m.close(s, ReasonRunEnded, incomplete != "" || failed)
	}
	m.order, m.open, m.waits, m.handoffs, m.spare, m.store = nil, nil, nil, nil, nil, nil
	m.release(ev.Time.Equal(m.began))
	root.set(str(AttrOutcome, outcome))
	m.counts()
	if p, ok := ev.Payload.(*agentevents.RunCompleted); ok {
		m.say(root, AttrOutput, "assistant", string(p.Outputs))
	}
	return m.end(root, ev)
}

// counts gives the root the calls of the run.
func (m *Mapper) counts() {
	m.root.set(val("agentevents.run.tool_calls", m.total.tools))
	m.root.set(val("agentevents.run.model_calls", m.total.models))
}

// turnEnded ends a run that is a turn, now or with the turn's summary.
func (m *Mapper) turnEnded(ev *agentevents.Event, outcome, incomplete string) *Span {
	m.turned = &ended{outcome, incomplete}
	if m.summed || m.of.kind != "turn" {
		return m.runEnded(ev, outcome, incomplete)
	}
	m.attributes(m.root, ev)
	m.timed(m.root, ev)
	return m.root
}

func (m *Mapper) turnSummarized(ev *agentevents.Event, p *agentevents.TurnSummarized) *Span {
	m.summed = true
	m.say(m.root, AttrOutput, "assistant", p.Text)
	m.pointAt(m.root, ev)
	if m.turned != nil {
		return m.runEnded(ev, "", "")
	}
	return m.root
}

// settle ends a run that is a turn whose summary does not come.
func (m *Mapper) settle() {
	if m.turned != nil {
		m.runEnded(&agentevents.Event{RunID: m.runID, Time: m.root.last, Sequence: m.root.Last,
			Payload: &agentevents.TurnEnded{}}, "", "")
	}
}

func (m *Mapper) agentStarted(ev *agentevents.Event, p *agentevents.AgentStarted) *Span {
	id := m.who(ev)
	if s := m.flushed(ev, key{"agent", id, ""}); s != nil {
		return s
	}
	m.ensureRoot(ev)
	a := m.agent(ev)
	if a != nil && !a.started && a.ended && a.span.madeUp && !m.lent && ev.Time.Before(a.span.End) { // the line is written late
		a.started = true
		m.started(a.span, ev)
		return a.span
	}
	given := label(p.Name)
	if given == "" && a != nil { // another attempt keeps the name
		given = a.given
	}
	switch {
	case a != nil && !a.started && !a.span.ended: // the run or the node has named it, or it goes on
		m.adopt(a.span, ev.SpanID)
		if a.span.madeUp {
			a.span.madeUp = false
			if m.o.Recorded {
				m.record(a.span, ev.SpanID)
			}
			if !a.span.Attr(AttrMadeUp).none() {
				a.span.set(val(AttrMadeUp, false))
			}
		}
	default:
		if a != nil {
			a.ended = true
		}
		parent := m.place(ev)
		caller := ev.ParentAgentID
		if up := m.spawner(ev); up != nil {
			if caller = up.id; caller != id {
				parent = up.span
			}
		}
		if s := m.open[key{"tool", caller, ev.ParentCallID}]; s != nil {
			parent = s
		}
		if a != nil && a.errType != "" {
			m.abandon(a, ReasonRestarted)
		}
		attempt := 1
		if a != nil { // a sibling, not below the attempt before
			for parent == a.span || parent.under(a.span) && parent.key.agent == id {
				parent = a.span.Parent
			}
			attempt = a.attempt + 1
			m.handoffTo(id, Link{a.span.TraceID, a.span.ID, []Attr{str(AttrLinkType, "attempt")}})
		}
		a = m.newAgent(ev, id, "", parent, m.invoke(ev, given))
		a.attempt = attempt
		if attempt > 1 {
			a.span.set(val("agentevents.agent.attempt", int64(attempt)))
		}
		if node := m.open[nodeKey(ev)]; node != nil && ev.AgentID == "" && ev.NodeRunID != "" {
			m.give(node, a)
		}
		m.mark(ev, a.span)
	}
	delete(m.handoffs, id)
	a.started, a.under, a.given = true, ev.ParentAgentID, given
	if a.given != "" && a.given != a.name { // the run or the node has begun the span
		a.name = a.given
		a.span.set(str(AttrAgent, a.name))
	}
	m.starting(a, ev)
	a.span.set(val("agentevents.agent.attempt", opt(p.Attempt)))
	a.span.set(str(AttrRequestModel, p.Model))
	m.prompt(a.span, p)
	m.attributes(a.span, ev)
	return a.span
}

// newAgent begins an agent's span. in tells spans of the same agent apart.
func (m *Mapper) newAgent(ev *agentevents.Event, id, in string, parent *Span, h shape) *agent {
	a := &agent{id: id, attempt: 1}
	if before := m.agents[id]; before != nil {
		a.identity = before.identity
	}
	for _, h := range h.attrs {
		if h.Key == AttrAgent {
			a.name = h.Text
		}
	}
	m.forgetAgents()
	m.agents[id], m.recent = a, a
	a.span = m.beginLinked(ev, parent, key{"agent", id, in}, h, m.handoffs[id])
	return a
}

// give makes the agent one that works for a node and for nothing else: its span ends with
// the node's at the latest.
func (m *Mapper) give(node *Span, a *agent) {
	if m.own == nil {
		m.own = map[*Span]*agent{}
	}
	m.own[node] = a
}

// invoke is the shape of an agent's span. It has the given name of the agent, else the id,
// else the id of the reference or of the node.
func (m *Mapper) invoke(ev *agentevents.Event, given string) shape {
	about, model := cmp.Or(given, word(ev.AgentID)), ""
	if p, ok := ev.Payload.(*agentevents.AgentStarted); ok {
		model = cut(p.Model, maxText)
		if ev.AgentID == "" {
			about = cmp.Or(given, word(p.Agent.V.AgentID), word(ev.NodeID))
		}
	}
	as := *ev
	as.AgentID = m.who(ev)
	return shape{name: title(OpAgent, about),
		attrs: m.common(&as, OpAgent, str(AttrAgent, about), str(AttrRequestModel, model),
			str(m.o.Semconv.agentID(), cut(as.AgentID, maxText)))}
}

// forgetAgents drops the agents that have ended, if there are very many. Their late
// events belong to the root then.
func (m *Mapper) forgetAgents() {
	if len(m.agents) < maxAgents {
		return
	}
	for id, a := range m.agents {
		if a.span.ended {
			put(&m.past, a.went, true)
			delete(m.agents, id)
		}
	}
	m.recent = nil
	for _, ids := range [...]map[string]string{m.named, m.starts, m.twins} {
		maps.DeleteFunc(ids, func(_, id string) bool { return m.agents[id] == nil })
	}
}

// beginLinked is begin with links.
func (m *Mapper) beginLinked(ev *agentevents.Event, parent *Span, k key, h shape, links []Link) *Span {
	m.next = links
	s := m.begin(ev, parent, k, h)
	m.next = nil
	return s
}

// badWords are how an agent ends that did not succeed.
var badWords = map[endword.Meaning]bool{endword.Failed: true, endword.Refused: true, endword.Cancelled: true}

func (m *Mapper) agentEnded(ev *agentevents.Event, p *agentevents.AgentEnded) *Span {
	a := m.agent(ev)
	if k := (key{"agent", m.who(ev), ""}); a == nil && k.agent != "" && m.unbegun(k) {
		took := p.Duration.V
		as := before(ev, took)
		m.ensureRoot(m.ofRunAt(as))
		parent := m.place(as)
		if up := m.spawner(ev); up != nil {
			parent = up.span
		}
		a = m.newAgent(as, k.agent, "", parent, m.invoke(as, ""))
		m.orphan(a.span, took)
	}
	if a == nil || a.ended || a.span.ended {
		return m.late(ev)
	}
	if a.span.madeUp && !m.lent && p.Duration.V > ev.Time.Sub(a.span.Start) { // its acts before are not in the log
		a.span.Start = ev.Time.Add(-p.Duration.V)
		m.covers(a.span)
	}
	a.span.waits = a.span.waits || a.span.madeUp && m.o.Late
	a.ended, a.model, a.went = true, nil, went(p, a.failed)
	s := a.span
	m.closeOf(a, false)
	s.set(str("agentevents.agent.outcome", cmp.Or(string(p.Outcome), word(p.Status))))
	otherwise := ErrorOther
	if p.Outcome == agentevents.OutcomeAborted {
		otherwise = string(p.Outcome)
	}
	switch {
	case p.Error.OK || p.Outcome == agentevents.OutcomeAborted:
		m.fail(s, errorType(p.Error, cmp.Or(a.errType, otherwise)), p.Error.V.Message)
	case badWords[endword.Of(p.Status)]:
		m.fail(s, cmp.Or(a.errType, word(p.Status)), "")
	case a.failed:
		m.fail(s, cmp.Or(a.errType, ErrorOther), "")
	}
	s.set(val("agentevents.agent.convergence_score", opt(p.ConvergenceScore)))
	s.set(val("agentevents.agent.turn_count", opt(p.NumTurns)))
	s.set(val("agentevents.agent.stated_tokens", opt(p.StatedTokens)))
	if p.Usage.OK {
		t := s.tally()
		t.stated, t.usage = true, p.Usage.V
	}
	if p.TotalCostUSD.OK {
		t := s.tally()
		t.stated, t.costUSD = true, p.TotalCostUSD
	}
	m.say(s, AttrOutput, "assistant", p.Result)
	if a.id == "" { // or else it would have the events of no agent
		delete(m.agents, "")
		m.recent = nil
	}
	m.totals(a)
	return m.end(s, ev)
}

// abandon closes the span of an agent whose end is not in the log. The span gets the agent's error.
func (m *Mapper) abandon(a *agent, reason string) {
	if a.span.ended {
		return
	}
	m.closeBelow(a.span, reason, true)
	m.totals(a)
	m.fail(a.span, cmp.Or(a.errType, ErrorIncomplete), "")
	m.close(a.span, reason, false)
}

func (m *Mapper) totals(a *agent) {
	a.span.set(val(AttrToolCalls, a.tools))
	a.span.set(val(AttrModelCalls, a.models))
}

// closeOf closes the turns and steps of an agent, which has ended, and its calls if that is wanted.
// Agents that it has started may work on.
func (m *Mapper) closeOf(a *agent, calls bool) {
	for _, s := range slices.Backward(m.order) {
		if s.key.agent == a.id && s.key.kind != "agent" && s.key.kind != "phase" && s.key.kind != "node" &&
			(calls || !s.call()) && (len(m.own) == 0 || s.under(a.span)) {
			m.close(s, ReasonParentEnded, true)
		}
	}
}

// call reports whether the span is a call's. A call in the background returns after its agent's end.
func (s *Span) call() bool { return s.key.kind == "tool" || s.key.kind == "model" }

// outlives reports whether the span is open although its agent's has ended, and whether that has an error.
func (s *Span) outlives() (outlives, failed bool) {
	for s != nil && s.key.kind != "agent" {
		s = s.Parent
	}
	return s != nil && s.ended, s != nil && s.ended && s.Status == StatusError
}

// counted returns the agent for its counts, or one that nobody looks at.
func (m *Mapper) counted(ev *agentevents.Event) *agent {
	if a := m.agent(ev); a != nil {
		return a
	}
	return &agent{}
}

// modelCalled begins the span of a model call.
func (m *Mapper) modelCalled(ev *agentevents.Event, start time.Time, p *agentevents.ModelCalled) *Span {
	if s := m.flushed(ev, key{"model", m.who(ev), p.ModelCallID}); s != nil {
		return s
	}
	m.ensureRoot(ev)
	op := cmp.Or(word(p.Operation), OpChat)
	h := shape{name: title(op, word(p.Model)), kind: KindClient, start: start}
	h.attrs = m.common(ev, op, str(AttrProvider, cut(p.Provider, maxText)),
		str(AttrRequestModel, cut(p.Model, maxText)), str(AttrAgent, m.called(ev)))
	a := m.counted(ev)
	a.models++
	m.total.models++
	a.model = m.begin(ev, m.scope(ev), key{"model", m.who(ev), p.ModelCallID}, h)
	if a.span != nil && m.o.Semconv == SemconvV1_41 && a.span.Attr(AttrProvider).none() {
		a.span.set(str(AttrProvider, p.Provider))
	}
	m.attributes(a.model, ev)
	m.exchange(a.model, AttrInput, "user", "request", string(p.Request), "")
	return a.model
}

// delta counts a part of the streamed output of the agent's model.
func (m *Mapper) delta(ev *agentevents.Event) {
	if !m.o.Deltas {
		return
	}
	if s := m.counted(ev).model; s != nil && !s.ended {
		if s.deltas == 0 && !m.lent {
			s.delta = ev.Time
		}
		s.deltas++
		s.touch(ev.Time, ev.Sequence)
	}
}

func (m *Mapper) modelReturned(ev *agentevents.Event, p *agentevents.ModelReturned) *Span {
	s := m.open[key{"model", m.who(ev), p.ModelCallID}]
	switch {
	case p.OneEvent:
		s = m.modelCalled(ev, ev.Time.Add(-p.Duration.V),
			&agentevents.ModelCalled{ModelCallID: p.ModelCallID, Provider: p.Provider, Model: p.Model,
				Operation: p.Operation, Request: p.Request})
		if !p.Duration.OK || m.lent {
			s.set(val(AttrNoStart, true))
		}
	case s == nil && m.unbegun(key{"model", m.who(ev), p.ModelCallID}):
		s = m.orphan(m.modelCalled(ev, ev.Time.Add(-p.Duration.V),
			&agentevents.ModelCalled{ModelCallID: p.ModelCallID, Provider: p.Provider, Model: p.Model,
				Operation: p.Operation, Request: p.Request}), p.Duration.V)
	case s == nil:
		return m.late(ev)
	}
	s.set(str(AttrProvider, p.Provider))
	s.set(str(AttrResponseModel, p.Model))
	s.set(str(AttrResponseID, p.ResponseID))
	if len(p.FinishReasons) > 0 {
		s.set(val(AttrFinishReasons, p.FinishReasons))
	}
	if p.TimeToFirstToken.OK {
		s.set(val(AttrFirstChunk, p.TimeToFirstToken.V.Seconds()))
	}
	m.modelSpent(ev, s, p.Usage, p.CostUSD)
	finish := ""
	if len(p.FinishReasons) > 0 {
		finish = p.FinishReasons[0]
	}
	m.exchange(s, AttrOutput, "assistant", "response", string(p.Response), finish)
	s.Took = p.Duration.V
	if p.Error.OK {
		m.fail(s, errorType(p.Error, ErrorOther), p.Error.V.Message)
	}
	return m.end(s, ev)
}

// toolCalled begins the span of a tool call.
func (m *Mapper) toolCalled(ev *agentevents.Event, start time.Time, p *agentevents.ToolCalled) *Span {
	if s := m.flushed(ev, key{"tool", m.who(ev), p.CallID}); s != nil {
		return s
	}
	m.ensureRoot(ev)
	h := shape{name: title(OpTool, label(p.ToolID)), start: start}
	h.attrs = m.common(ev, OpTool, str(AttrTool, cut(p.ToolID, maxText)), str(AttrAgent, m.called(ev)),
		str(AttrToolCallID, cut(p.CallID, maxText)))
	if p.Transport == agentevents.TransportMCP {
		h.attrs = append(h.attrs, str("mcp.method.name", "tools/call"))
	}
	if ev.Step.OK {
		h.attrs = append(h.attrs, val(AttrStepIndex, int64(ev.Step.V)))
	}
	m.counted(ev).tools++
	m.total.tools++
	s := m.begin(ev, m.scope(ev), key{"tool", m.who(ev), p.CallID}, h)
	m.attributes(s, ev)
	m.either(s, AttrToolArguments, p.Arguments, p.ArgumentsSummary)
	return s
}

func (m *Mapper) toolReturned(ev *agentevents.Event, p *agentevents.ToolReturned) *Span {
	s := m.open[key{"tool", m.who(ev), p.CallID}]
	refused, took := refused(p.Status), durationOf(p)
	switch {
	case p.OneEvent || s == nil && refused:
		s = m.toolCalled(ev, ev.Time.Add(-took),
			&agentevents.ToolCalled{CallID: p.CallID, ToolID: p.ToolID, Arguments: p.Arguments,
				ArgumentsSummary: p.ArgumentsSummary})
		switch {
		case refused: // it did not run
			m.counted(ev).tools--
			m.total.tools--
		case !p.Duration.OK || m.lent:
			s.set(val(AttrNoStart, true))
		}
	case s == nil && m.unbegun(key{"tool", m.who(ev), p.CallID}):
		s = m.orphan(m.toolCalled(ev, ev.Time.Add(-took),
			&agentevents.ToolCalled{CallID: p.CallID, ToolID: p.ToolID, Arguments: p.Arguments,
				ArgumentsSummary: p.ArgumentsSummary}), took)
		if k := returned(ev, s.key); ev.SpanID != "" && m.orphans[s.key] == s {
			m.orphans[k] = s
		}
	case s == nil:
		return m.late(ev)
	}
	s.Took = took
	m.either(s, AttrToolResult, p.Result, p.ResultSummary)
	outcome := endword.Of(string(p.Status))
	s.set(str(AttrToolOutcome, outcome.String()))
	if outcome != endword.Succeeded {
		otherwise := ErrorOther
		if p.Status != agentevents.ToolStatusError {
			otherwise = cmp.Or(word(string(p.Status)), otherwise)
		}
		m.fail(s, errorType(p.Error, otherwise), p.Error.V.Message)
	}
	return m.end(s, ev)
}

// multiagent is the extra member that an event of the wiki has. Its document has an event for
// a node that is entered, and none for one that is left.
const multiagent = "multiagent"

// ofRun reports whether a turn, or a span of the run, is the run: it begins or ends the root.
func (m *Mapper) ofRun(ev *agentevents.Event) bool {
	begins := m.who(ev) == "" && (m.root == nil || m.over || m.turned != nil)
	switch p := ev.Payload.(type) {
	case *agentevents.TurnStarted:
		return begins
	case *agentevents.TurnEnded:
		return m.is(m.ended(ev, p))
	case *agentevents.SpanRecorded:
		return p.Subject == "run" && begins && p.Phase == "start" || m.is(m.spanKey(ev, p))
	}
	return false
}

// ended is the key of the turn that ends. The root is meant if the event has no number.
func (m *Mapper) ended(ev *agentevents.Event, p *agentevents.TurnEnded) key {
	k := m.turnKey(ev, p.Turn)
	if m.of.kind == "turn" && !p.Turn.OK && k.agent == "" {
		return m.of
	}
	return k
}

func (m *Mapper) spanKey(ev *agentevents.Event, p *agentevents.SpanRecorded) key {
	return key{"span", m.who(ev), p.Subject + "\x00" + p.Name}
}

// step maps the events of phases, nodes, turns and steps, and boundaries that have no
// kind. It returns false for all other events.
func (m *Mapper) step(ev *agentevents.Event) (*Span, bool) {
	switch p := ev.Payload.(type) {
	case *agentevents.PhaseStarted:
		return m.stepBegins(ev, m.workflow(ev), phaseKey(ev), ev.Phase,
			val("agentevents.step.input_count", opt(p.InputCount))), true
	case *agentevents.PhaseCompleted:
		s := m.open[phaseKey(ev)]
		if s == nil && m.unbegun(phaseKey(ev)) {
			s = m.stepWhole(ev, m.workflow(ev), phaseKey(ev), ev.Phase, 0)
		}
		return m.stepEnds(ev, phaseKey(ev), s, agentevents.Opt[agentevents.ErrorInfo]{},
			val("agentevents.step.output_count", opt(p.OutputCount))), true

	case *agentevents.NodeStarted:
		if ev.Extra(multiagent) != "" {
			return nil, false
		}
		s := m.stepBegins(ev, m.phase(ev), nodeKey(ev), cmp.Or(ev.NodeID, p.TypeID), str("agentevents.node.id", ev.NodeID))
		if p.Agent.OK {
			m.delegate(ev, s, p.Agent.V.AgentID)
		}
		return s, true
	case *agentevents.NodeCompleted:
		return m.nodeEnds(ev, p.Duration.V, agentevents.Opt[agentevents.ErrorInfo]{}), true
	case *agentevents.NodeFailed:
		return m.nodeEnds(ev, 0, agentevents.Some(p.Error)), true

	case *agentevents.TurnStarted:
		return m.stepBegins(ev, nil, m.turnKey(ev, p.Turn), "turn", val("agentevents.turn.index", opt(p.Turn))), true
	case *agentevents.TurnEnded:
		s := m.open[m.turnKey(ev, p.Turn)]
		if s == nil {
			s = innermost(*m.scopesOf(ev), "turn")
		}
		if s == nil {
			s = m.stepWhole(ev, nil, m.ended(ev, p), "turn", p.Duration.V)
		}
		return m.stepEnds(ev, m.ended(ev, p), s, p.Error), true
	case *agentevents.StepStarted:
		return m.stepBegins(ev, nil, key{"step", m.who(ev), p.StepID}, cmp.Or(p.Name, p.StepID)), true
	case *agentevents.StepEnded:
		k := key{"step", m.who(ev), p.StepID}
		s := m.open[k]
		if s == nil {
			s = m.stepWhole(ev, nil, k, cmp.Or(p.Name, p.StepID), p.Duration.V)
		}
		return m.stepEnds(ev, k, s, p.Error), true

	case *agentevents.SpanRecorded:
		if over := p.Phase == "error" || p.Phase == "cancelled"; over && p.Subject == "handoff" && ev.SpanID != "" {
			info := agentevents.ErrorInfo{Code: p.ErrorType, Message: p.ErrorMessage}
			if s := m.handedOver(ev, func(_ key, w wait) bool { return w.span == ev.SpanID }, p.Phase, info); s != nil {
				return s, true
			}
		}
		k := m.spanKey(ev, p)
		s := m.open[k]
		switch {
		case p.Phase == "start":
			return m.stepBegins(ev, nil, k, p.Subject), true
		case p.Phase != "complete" && p.Phase != "error" && p.Phase != "cancelled":
			return nil, false
		case s == nil:
			s = m.stepWhole(ev, nil, k, p.Subject, p.Duration.V)
		}
		var info agentevents.Opt[agentevents.ErrorInfo]
		if p.Phase != "complete" {
			info = agentevents.Some(agentevents.ErrorInfo{Code: cmp.Or(p.ErrorType, p.Phase), Message: p.ErrorMessage})
		}
		return m.stepEnds(ev, k, s, info), true
	}
	return nil, false
}

// delegate begins the span of the agent that a node names, unless the agent is at work: then
// the node has no agent of its own.
func (m *Mapper) delegate(ev *agentevents.Event, node *Span, id string) {
	if a := m.agents[id]; a != nil && a.started && !a.ended && !a.span.ended || id == "" {
		return
	}
	as := *ev
	as.AgentID, as.SpanID, as.ParentSpanID = id, "", "" // the ids are the node's
	a := m.newAgent(&as, id, node.key.id, node, m.invoke(&as, ""))
	m.give(node, a)
	m.mark(&as, a.span)
	delete(m.handoffs, id)
}

// nodeEnds ends a node, and the agent that works for it if that has not said so: an agent
// with a start of its own is incomplete then, and has failed if it had an error.
func (m *Mapper) nodeEnds(ev *agentevents.Event, took time.Duration,
	info agentevents.Opt[agentevents.ErrorInfo]) *Span {
	node := m.open[nodeKey(ev)]
	if node == nil {
		node = m.stepWhole(ev, m.phase(ev), nodeKey(ev), ev.NodeID, took)
	}
	a := m.own[node]
	if a == nil || a.span.ended {
		return m.stepEnds(ev, nodeKey(ev), node, info)
	}
	a.ended = true
	m.closeOf(a, true)
	switch {
	case a.started:
		m.abandon(a, ReasonParentEnded)
	case info.OK:
		m.fail(a.span, cmp.Or(a.errType, errorType(info, ErrorOther)), info.V.Message)
		fallthrough
	default:
		m.totals(a)
		m.end(a.span, ev)
	}
	return m.stepEnds(ev, nodeKey(ev), node, info)
}

func (m *Mapper) turnKey(ev *agentevents.Event, turn agentevents.Opt[int]) key {
	if !turn.OK {
		return key{"turn", m.who(ev), ""}
	}
	return key{"turn", m.who(ev), strconv.Itoa(turn.V)}
}

// scopesOf are the turns and steps of the event's agent, or of none.
func (m *Mapper) scopesOf(ev *agentevents.Event) *[]*Span {
	if a := m.agent(ev); a != nil {
		return &a.scopes
	}
	return &m.scopes
}

func (m *Mapper) stepBegins(ev *agentevents.Event, parent *Span, k key, name string, more ...Attr) *Span {
	name = label(name)
	if k.agent == "" && (k.kind == "turn" || k.kind == "span" && name == "run") {
		m.settle()
		if m.over { // one turn has ended, the next one begins
			m.again(ev)
			m.total.tools, m.total.models, m.errType = 0, 0, ""
		}
		if m.root == nil { // it is the run
			m.of, m.name = k, name
			m.workflowRoot(ev, more...)
			m.attributes(m.root, ev)
			return m.root
		}
	}
	if k.kind == "phase" || k.kind == "node" { // no agent's
		m.ensureRoot(m.ofRunAt(ev))
	} else {
		m.ensureRoot(ev)
	}
	if parent == nil {
		parent = m.scope(ev)
	}
	attrs := m.common(ev, OpStep, append(more, str(AttrStepName, name), str("agentevents.step.kind", k.kind))...)
	if ev.AgentID != "" {
		attrs = append(attrs, str(AttrAgent, m.called(ev)))
	}
	if k.kind == "node" {
		m.next = m.edges[ev.NodeID]
		delete(m.edges, ev.NodeID)
	}
	s := m.begin(ev, parent, k, shape{name: title(OpStep, name), attrs: attrs})
	m.next = nil
	if k.kind == "node" && ev.NodeID != "" && (len(m.nodes) < maxAgents || m.nodes[ev.NodeID] != nil) {
		put(&m.nodes, ev.NodeID, s)
	}
	m.attributes(s, ev)
	if k.kind != "phase" && k.kind != "node" {
		scopes := m.scopesOf(ev)
		*scopes = append(slices.DeleteFunc(*scopes, func(s *Span) bool { return s.ended }), s)
	}
	return s
}

// stepWhole begins the step of an end whose start is not in the log. It returns nil if that is
// the root, or if the step has ended before.
func (m *Mapper) stepWhole(ev *agentevents.Event, parent *Span, k key, name string, took time.Duration) *Span {
	if m.is(k) || !m.unbegun(k) {
		return nil
	}
	s := m.orphan(m.stepBegins(before(ev, took), parent, k, name), took)
	if s == m.root {
		return nil
	}
	return s
}

func (m *Mapper) stepEnds(ev *agentevents.Event, k key, s *Span,
	info agentevents.Opt[agentevents.ErrorInfo], more ...Attr) *Span {
	switch {
	case s != nil:
	case !m.is(k):
		return m.late(ev)
	case info.OK:
		outcome := "failed"
		if endword.Of(info.V.Code) == endword.Cancelled {
			outcome = "cancelled"
		}
		m.fail(m.root, errorType(info, cmp.Or(m.errType, ErrorOther)), info.V.Message)
		return m.turnEnded(ev, outcome, ReasonRunEnded)
	default:
		return m.turnEnded(ev, "completed", "")
	}
	for _, a := range more {
		s.set(a)
	}
	if info.OK {
		m.fail(s, errorType(info, ErrorOther), info.V.Message)
	}
	return m.end(s, ev)
}

// asked records a question to a person. No span is open while people think.
func (m *Mapper) asked(ev *agentevents.Event, kind, id, callID string, stands agentevents.Opt[time.Duration]) *Span {
	w := wait{parent: m.scope(ev)}
	if s := m.open[key{"tool", m.who(ev), callID}]; s != nil {
		w.parent = s
	}
	if stands.OK && !m.lent {
		w.ends = ev.Time.Add(stands.V)
	}
	k := key{kind, "", id}
	m.wait(ev, k, w)
	s := m.pointAt(w.parent, ev)
	if a, ok := m.unasked[k]; ok && !m.lent && ev.Time.Before(a.ev.Time) { // its line was written late
		delete(m.unasked, k)
		m.Unmatched--
		m.ensureRoot(m.ofRunAt(ev))
		m.waited(&a.ev, k, m.waits[k], a.decision, a.said)
	}
	return s
}

func (m *Mapper) wait(ev *agentevents.Event, k key, w wait) {
	w.at, w.lent, w.first = ev.Time, m.lent, ev.Sequence
	m.await(k, w)
}

// Await tells of a question that is open where the run is resumed: of the kind "approval" or
// "clarification", with its id, and the time and sequence of its event. It is called after
// Resume.
func (m *Mapper) Await(kind, id string, at time.Time, sequence uint64) {
	if !at.IsZero() {
		m.await(key{kind, "", id}, wait{at: at, first: sequence})
	}
}

func (m *Mapper) await(k key, w wait) {
	if m.waits == nil {
		m.waits = map[key]wait{}
	}
	if len(m.waits) < maxWaits {
		m.waits[k] = w
	}
}

// answered makes the span of a wait that is over.
func (m *Mapper) answered(ev *agentevents.Event, kind, id, decision, said string) *Span {
	k := key{kind, "", id}
	w, ok := m.waits[k]
	if !ok {
		if !m.lent && m.unbegun(k) && len(m.unasked) < maxWaits {
			put(&m.unasked, k, answer{*ev, decision, said})
		}
		return m.late(ev)
	}
	m.ensureRoot(m.ofRunAt(ev)) // the answer may be the first event of the trace
	return m.waited(ev, k, w, decision, said)
}

// decision is the decision on an approval, unless the answer has the word for one that nobody gave.
func decision(word, made string) string {
	if endword.Lapsed(word) {
		return "expired"
	}
	return made
}

// lapse makes the spans of questions that nobody has answered in their time.
func (m *Mapper) lapse(ev *agentevents.Event) {
	for _, k := range slices.SortedFunc(maps.Keys(m.waits), func(a, b key) int { return cmp.Compare(m.waits[a].first, m.waits[b].first) }) {
		if w := m.waits[k]; !w.ends.IsZero() && !w.ends.After(ev.Time) {
			over := *ev
			over.Time = w.ends
			lent := m.lent
			m.lent = false
			m.waited(&over, k, w, "expired", "")
			m.lent = lent
		}
	}
}

// waited makes the span of a question that is over.
func (m *Mapper) waited(ev *agentevents.Event, k key, w wait, decision, said string) *Span {
	s := m.waitSpan(ev, k, w, decision, str("agentevents."+k.kind+".id", cut(k.id, maxText)))
	m.tells(s, s.Name+".answer", said)
	return m.end(s, ev)
}

// attributed is a copy of an event that has attributes, else nil.
func attributed(ev *agentevents.Event) *agentevents.Event {
	if free(ev.Payload) == "" && ev.Extra(kaos) == "" {
		return nil
	}
	as := *ev
	return &as
}

// notCompleted ends the phase or the workflow that an event of an unknown kind tells to be over, such as
// workflow.phase.failed, as a fold does.
func (m *Mapper) notCompleted(ev *agentevents.Event, p *agentevents.Unknown) {
	domain, by, how := endword.OfType(string(p.Type))
	if how == endword.Unknown || !strings.HasPrefix(domain, "workflow.") {
		return
	}
	said := map[string]string{}
	for name, raw := range members(p.Raw) {
		said[name] = unquoted(agentevents.JSON(raw))
	}
	as := *ev
	as.WorkflowID, as.Phase = cmp.Or(ev.WorkflowID, said["workflowId"]), cmp.Or(ev.Phase, said["phase"])
	k := workflowKey(&as)
	if domain == "workflow.phase." {
		k = phaseKey(&as)
	}
	s := m.open[k]
	if s == nil {
		return
	}
	if badWords[how] {
		m.fail(s, word(by), cmp.Or(said["reason"], said["message"]))
	}
	if k.kind == "workflow" {
		m.flows++
	}
	m.end(s, ev)
}

// notAccepted ends the handoff that an event of an unknown kind tells to be over, such as
// handoff.rejected, as a fold does: the handoff with its handoffId, else the latest one in its span,
// else the latest one to or from its agent.
func (m *Mapper) notAccepted(ev *agentevents.Event, p *agentevents.Unknown) {
	word, of := strings.CutPrefix(string(p.Type), "handoff.")
	if !of || !badWords[endword.Of(word)] {
		return
	}
	for name, raw := range members(p.Raw) {
		if id := unquoted(agentevents.JSON(raw)); name == "handoffId" && id != "" && raw[0] == '"' {
			m.handedOver(ev, func(k key, _ wait) bool { return k.id == id }, word, agentevents.ErrorInfo{})
			return
		}
	}
	for _, is := range [...]func(key, wait) bool{
		func(_ key, w wait) bool { return w.span != "" && w.span == ev.SpanID },
		func(_ key, w wait) bool { return w.to == ev.AgentID },
		func(_ key, w wait) bool { return w.from == ev.AgentID },
	} {
		if m.handedOver(ev, is, word, agentevents.ErrorInfo{}) != nil {
			return
		}
	}
}

// handedOver makes the span of the latest open handoff for which is is true. It returns nil if
// there is none.
func (m *Mapper) handedOver(ev *agentevents.Event, is func(key, wait) bool, decision string,
	info agentevents.ErrorInfo) *Span {
	var k key
	var w wait
	for of, at := range m.waits {
		if of.kind == "handoff" && is(of, at) && (k.kind == "" || at.first > w.first) {
			k, w = of, at
		}
	}
	if k.kind == "" {
		return nil
	}
	ev = m.ofRunAt(ev)
	if w.span != ev.SpanID { // of the agent that accepts
		ev.SpanID = ""
	}
	m.ensureRoot(ev)
	s := m.waitSpan(ev, k, w, decision, str("agentevents.handoff.from", word(w.from)),
		str("agentevents.handoff.to", word(w.to)))
	if w.free != nil {
		m.attributes(s, w.free)
	}
	if decision != "accepted" {
		m.fail(s, errorType(agentevents.Some(info), word(decision)), info.Message)
	}
	return m.end(s, ev)
}

// waitSpan begins the span of a wait, which ends with the event.
func (m *Mapper) waitSpan(ev *agentevents.Event, k key, w wait, decision string, more ...Attr) *Span {
	delete(m.waits, k)
	parent := w.parent.working() // else it would end after its parent, which Jaeger takes for clock skew
	var asked []Link
	if parent == nil || parent.TraceID != m.root.TraceID { // the run has gone on in another trace
		if parent != nil {
			asked = []Link{{parent.TraceID, parent.ID, []Attr{str(AttrLinkType, "requested")}}}
		}
		parent = m.root
	}
	operation := "agentevents." + k.kind
	attrs := m.common(ev, operation, append(more, str(operation+".decision", decision))...)
	switch {
	case w.lent:
		attrs = append(attrs, val(AttrNoStart, true))
	case !m.lent:
		attrs = append(attrs, val(AttrWait, ev.Time.Sub(w.at).Seconds()))
	}
	return m.beginLinked(ev, parent, k, shape{name: operation, start: w.at, attrs: attrs}, asked)
}

func handoffKey(id string, from, to agentevents.AgentRef) key {
	return key{"handoff", "", cmp.Or(id, from.AgentID+"\x00"+to.AgentID)}
}

// handoff remembers that the agent's next start is linked to this event's span.
func (m *Mapper) handoff(ev *agentevents.Event, to agentevents.AgentRef) {
	if s := m.scope(ev); s != nil {
		m.handoffTo(to.AgentID, Link{s.TraceID, s.ID, []Attr{str(AttrLinkType, "handoff")}})
	}
}

// handoffTo adds a link of the agent's next span.
func (m *Mapper) handoffTo(id string, l Link) {
	if len(m.handoffs) < maxWaits && len(m.handoffs[id]) < maxEarly {
		if m.handoffs == nil {
			m.handoffs = map[string][]Link{}
		}
		m.handoffs[id] = append(m.handoffs[id], l)
	}
}

// edge remembers that the next span of the node is linked to the latest one of the node before.
func (m *Mapper) edge(p *agentevents.EdgeFired) {
	s, links := m.nodes[p.From], m.edges[p.To]
	if s != nil && s.TraceID == m.root.TraceID && len(m.edges) < maxWaits && len(links) < maxEarly {
		put(&m.edges, p.To, append(links, Link{s.TraceID, s.ID, []Attr{str(AttrLinkType, "edge")}}))
	}
}

// put sets an entry of a map, which it makes if it is nil.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// took is how long a handoff took, or nil.
func (m *Mapper) took(ev *agentevents.Event, k key) any {
	w, ok := m.waits[k]
	if !ok {
		return nil
	}
	if w.lent || m.lent {
		return nil
	}
	return max(0, ev.Time.Sub(w.at)).Seconds()
}

// late is a point for an end that has no open span: it makes no new one.
func (m *Mapper) late(ev *agentevents.Event) *Span {
	m.Unmatched++
	s := m.scope(ev)
	m.note(s.working(), ev, "agentevents.late_end", SeverityWarn, str("agentevents.event.type", string(ev.Kind())))
	return s
}
