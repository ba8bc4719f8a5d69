package agentevents

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/roster"
)

// RuleStepMonotonic: the step never decreases within (run, agent); agent starts,
// agent ends and audits have no step.
const RuleStepMonotonic Rule = "step-monotonic"

func (m *machine) checkStep(ev *Event, sub *subject) *RuleError {
	if !ev.Step.OK {
		return nil
	}
	if sub.kind.traits&stepless != 0 {
		return m.refuse(ev, RuleStepMonotonic, named("agent", sub.key), "",
			"agent starts, agent ends and audits have no step")
	}
	if sub.agent != nil {
		if at := sub.agent.current(); at.OK && ev.Step.V < at.V {
			return m.refuse(ev, RuleStepMonotonic, named("agent", sub.key), "at step "+itoa(at.V),
				"step "+itoa(ev.Step.V)+" goes back; legal: "+itoa(at.V)+" or higher")
		}
	}
	return nil
}

// current returns the lowest legal step of the next event.
func (a *AgentState) current() Opt[int] {
	switch {
	case a.Resume.ahead.OK:
		return a.Resume.ahead
	case a.Resume.back.OK:
		return a.Resume.back
	}
	return a.Step
}

// reach records the step of an event. A droppable event must not move the agent's
// step, or dropping it would change the snapshot: its step is kept in ahead until
// the next lasting event.
func (a *AgentState) reach(step int, droppable bool) {
	r := &a.Resume
	if droppable {
		if at := a.current(); !at.OK || step != at.V {
			r.ahead = Some(step)
		}
		return
	}
	r.ahead, r.back = Opt[int]{}, Opt[int]{}
	if !a.Step.OK || step >= a.Step.V {
		if !a.Step.OK || step > a.Step.V {
			a.Counted.Steps = plus(a.Counted.Steps, 1)
		}
		a.Step = Some(step)
	} else {
		r.back = Some(step)
	}
	r.renew = false
}

func (m *machine) sessionStarted(*Event, *subject) { m.goesOn() }

// goesOn cancels an end of the run that came without a terminal event.
func (m *machine) goesOn() { m.sessionOver, m.Resume.finalized = false, false }

func (m *machine) sessionCompleted(ev *Event, _ *subject) {
	m.sessionOver = true
	if p := ev.Payload.(*SessionCompleted); m.view == nil {
		if m.sessionStatus = p.Status; p.Status == "" && p.Error.OK {
			m.sessionStatus = string(RunStatusFailed)
		}
		m.sessionAnswered = m.sessionAnswered || p.Result != ""
	}
}

func (m *machine) turnStarted(ev *Event, sub *subject) {
	if _, late := m.beginsLate(spanOf(ev, sub)); late {
		m.view.turnStartedLate(ev, sub)
		return
	}
	m.goesOn()
	m.turnOfTexts(sub)
	m.spanStarted(ev, sub)
	m.view.turnStarted(ev, sub)
}

func (m *machine) stepStarted(ev *Event, sub *subject) {
	if _, late := m.beginsLate(spanOf(ev, sub)); late {
		m.view.stepStartedLate(ev, sub, m.inside(ev, sub))
		return
	}
	m.spanStarted(ev, sub)
	m.view.stepStarted(ev, sub, m.inside(ev, sub))
}

func (m *machine) turnEnded(ev *Event, sub *subject) {
	m.turnOfTexts(sub)
	m.stepEnded(ev, sub)
}

func (m *machine) stepEnded(ev *Event, sub *subject) {
	if !m.spanOpen(ev, sub) {
		m.endedFirst(spanOf(ev, sub))
	}
	m.spanEnded(ev, sub)
}

// spanOf returns the start or the end of a turn or a step.
func spanOf(ev *Event, sub *subject) earlyEnd {
	e := earlyEnd{kind: KindTurnStarted, agent: whose(ev, sub), span: ev.SpanID, at: ev.Time}
	switch p := ev.Payload.(type) {
	case *TurnStarted:
		e.id = turnID(p.Turn)
	case *TurnEnded:
		e.id = turnID(p.Turn)
	case *StepStarted:
		e.kind, e.id = KindStepStarted, p.StepID
	case *StepEnded:
		e.kind, e.id = KindStepStarted, p.StepID
	}
	return e
}

// spanOpen reports whether the turn or step is open that an end closes.
func (m *machine) spanOpen(ev *Event, sub *subject) (open bool) {
	e := spanOf(ev, sub)
	if m.view == nil {
		return m.openSpan(ev, e.kind, e.id) != nil
	}
	switch p := ev.Payload.(type) {
	case *TurnEnded:
		_, open = m.view.openTurn(ev, e.agent, p.Turn)
	case *StepEnded:
		_, open = m.view.openStep(ev, e.agent, p.StepID)
	}
	return open
}

// turnOfTexts ends an agent's blocks without an id when one of its turns begins or ends, because a
// block belongs to one turn.
func (m *machine) turnOfTexts(sub *subject) {
	if a := sub.agent; a != nil {
		m.view.finishUnnamed(a)
		a.endUnnamed()
	}
}

func (m *machine) runPaused(*Event, *subject) { m.paused, m.cancelling = true, false }

func (m *machine) runResumed(*Event, *subject) {
	m.paused, m.cancelling = false, false
	m.Resume.resumes = plus(m.Resume.resumes, 1)
}

// commandReceived notes that a command pauses or stops the run, or takes that back.
func (m *machine) commandReceived(ev *Event, _ *subject) {
	p := ev.Payload.(*CommandReceived)
	switch abort := p.Command.Type == CommandAbort; {
	case p.Rejected != "":
	case abort && p.Command.Resumable.V, p.Command.Type == CommandPause:
		m.paused = true
	case abort:
		m.cancelling = true
	case p.Command.Type == CommandResume:
		m.cancelling = false
	}
}

// RulePhaseOpen: only an open phase is completed; one that starts again after
// workflow.checkpoint.resumed is the same.
const RulePhaseOpen Rule = "phase-open"

type phaseKey struct{ workflow, phase string }

// workflowCreated notes a workflow that the run is: its first event, session events apart, creates
// it; or the workflow runs beside or after another.
func (m *machine) workflowCreated(ev *Event, _ *subject) {
	r := &m.Resume
	if r.begun && !r.finalized && len(r.workflows) == 0 || slices.Contains(r.workflows, ev.WorkflowID) {
		return
	}
	if len(r.workflows) == 0 {
		r.flowEnd = ""
	}
	r.workflows, r.finalized = append(r.workflows, m.view.intern(ev.WorkflowID)), false
}

func (m *machine) workflowFinalized(ev *Event, _ *subject) { m.closeWorkflow(ev.WorkflowID) }

// closeWorkflow notes the end of a workflow, and reports whether the run was that one, alone or beside others.
func (m *machine) closeWorkflow(id string) bool {
	r := &m.Resume
	i := slices.Index(r.workflows, id)
	if i < 0 {
		return false
	}
	r.workflows = orNil(slices.Delete(r.workflows, i, i+1))
	r.finalized = len(r.workflows) == 0
	return true
}

func (m *machine) checkPhaseCompleted(ev *Event, _ *subject) *RuleError {
	if m.Resume.cut || m.workflows().phases[phaseKey{ev.WorkflowID, ev.Phase}] != nil {
		return nil
	}
	return m.refuse(ev, RulePhaseOpen, named("phase", ev.Phase), "not open",
		"only an open phase is completed; legal: workflow.phase.started first")
}

// passages are the open passages through a phase.
type passages struct {
	open    int // how many there are
	resumes int // workflows.resumes when the latest one started
}

func (m *machine) phaseStarted(ev *Event, _ *subject) {
	w, key := m.workflows(), phaseKey{m.view.intern(ev.WorkflowID), m.view.intern(ev.Phase)}
	if end, late := m.beginsLate(phaseOf(ev)); late {
		m.view.phaseStartedLate(ev, key, &end)
		return
	}
	p, resumes := w.phases[key], w.resumes[ev.WorkflowID]
	again := p != nil && p.resumes < resumes
	if !again {
		p = w.openPhase(key)
	}
	p.resumes = resumes
	m.view.phaseStarted(ev, key, again, resumes)
}

func (w *workflows) openPhase(key phaseKey) *passages {
	p := w.phases[key]
	if p == nil {
		p = &passages{}
		w.phases[key] = p
	}
	p.open++
	w.inPhase[key.workflow]++
	return p
}

func (m *machine) phaseCompleted(ev *Event, _ *subject) {
	key := phaseKey{ev.WorkflowID, ev.Phase}
	if !m.closePhase(key) {
		m.endedFirst(phaseOf(ev))
	}
	m.view.phaseCompleted(ev, key)
}

// phaseOf returns the start or the end of a passage through a phase.
func phaseOf(ev *Event) earlyEnd {
	return earlyEnd{kind: KindPhaseStarted, agent: ev.WorkflowID, id: ev.Phase, at: ev.Time}
}

// closePhase closes a passage through a phase, and reports whether one was open.
func (m *machine) closePhase(key phaseKey) bool {
	w := m.workflows()
	p := w.phases[key]
	if p == nil {
		return false
	}
	if p.open--; p.open == 0 {
		delete(w.phases, key)
	}
	if n := w.inPhase[key.workflow] - 1; n > 0 {
		w.inPhase[m.view.intern(key.workflow)] = n
	} else {
		delete(w.inPhase, key.workflow)
	}
	return true
}

// unknownEnd closes the subject that an event of an unknown kind ends: see [endword.OfType].
// Decoders have kinds for the other domains. Calls by a table would move every event to the heap.
func (m *machine) unknownEnd(ev *Event, p *Unknown) {
	domain, word, how := endword.OfType(string(p.Type))
	if how == endword.Unknown {
		return
	}
	switch domain {
	case "workflow.phase.":
		m.phaseNotCompleted(ev, p, word)
	case "workflow.":
		m.workflowNotFinalized(ev, p, word, how)
	case "handoff.":
		m.handoffNotAccepted(ev, p, word)
	}
}

// handoffNotAccepted closes a handoff, for an event such as handoff.rejected. Only the fold, which shows
// the requests, knows which one.
func (m *machine) handoffNotAccepted(ev *Event, p *Unknown, word string) {
	if m.view == nil || m.view.handoffNotAccepted(ev, p, word) {
		return
	}
	key := newHandoffKey(p.member("handoffId"), cmp.Or(p.member("from"), p.member("fromAgent")),
		cmp.Or(p.member("to"), p.member("toAgent")))
	m.endedFirst(earlyEnd{
		kind: KindHandoffRequested, id: key.String(), span: ev.SpanID, at: ev.Time, word: word, why: beginning(reasonOf(p)),
	})
}

// member returns a text of an event of an unknown kind, or "".
func (p *Unknown) member(name string) string {
	return jsonwire.Text(jsonwire.Member(string(p.Raw), name))
}

// phaseNotCompleted closes a phase, for an event such as workflow.phase.failed.
func (m *machine) phaseNotCompleted(ev *Event, p *Unknown, word string) {
	key := phaseKey{cmp.Or(ev.WorkflowID, p.member("workflowId")), cmp.Or(ev.Phase, p.member("phase"))}
	if m.closePhase(key) {
		m.view.phaseNotCompleted(ev, key, word, reasonOf(p))
	}
}

// workflowNotFinalized closes a workflow, for an event such as workflow.failed.
func (m *machine) workflowNotFinalized(ev *Event, p *Unknown, word string, how endword.Meaning) {
	id, r := cmp.Or(ev.WorkflowID, p.member("workflowId")), &m.Resume
	if id == "" && len(r.workflows) == 1 {
		id = r.workflows[0]
	}
	closed := m.closeWorkflow(id)
	switch how {
	case endword.Failed, endword.Refused, endword.Cancelled:
		if closed {
			r.flowEnd = m.view.intern(word)
		}
	}
	m.view.workflowNotFinalized(ev, id, word, reasonOf(p))
}

// reasonOf returns the reason that an event of an unknown kind has, or "".
func reasonOf(p *Unknown) string {
	return cmp.Or(p.member("reason"), p.member("message"), p.member("error"),
		jsonwire.Text(jsonwire.Member(jsonwire.Member(string(p.Raw), "error"), "message")))
}

func (m *machine) checkpointResumed(ev *Event, _ *subject) {
	m.workflows().resumes[m.view.intern(ev.WorkflowID)]++
}

// RuleWorkflowContext: workflow events carry workflowId; phase events, checkpoint
// events and, inside a phase, agent events other than tool calls also carry phase.
const RuleWorkflowContext Rule = "workflow-context"

// checkWorkflow checks an event of a workflow kind, and any event with a
// workflowId or a phase.
func (m *machine) checkWorkflow(ev *Event, kind traits) *RuleError {
	if kind&ofWorkflow == 0 {
		if ev.Phase != "" && ev.WorkflowID == "" {
			return m.refuse(ev, RuleWorkflowContext, named("phase", ev.Phase), "without workflowId",
				"events of a workflow carry workflowId")
		}
		if ev.WorkflowID != "" && ev.Phase == "" && m.inPhase(ev.WorkflowID) && ofAgents(ev.Kind()) {
			return m.refuse(ev, RuleWorkflowContext, named("workflow", ev.WorkflowID), "inside a phase",
				"agent events inside a phase carry phase")
		}
		return nil
	}
	if ev.WorkflowID == "" {
		return m.refuse(ev, RuleWorkflowContext, "", "", "workflow events carry workflowId")
	}
	if kind&ofPhase != 0 && ev.Phase == "" {
		return m.refuse(ev, RuleWorkflowContext, named("workflow", ev.WorkflowID), "",
			"phase and checkpoint events carry phase")
	}
	return nil
}

// ofAgents reports whether events of a kind are about agents, and not about their calls.
func ofAgents(k Kind) bool {
	return strings.HasPrefix(string(k), "agent.") && !strings.HasPrefix(string(k), "agent.tool")
}

// RuleHandoffOpen: only an open handoff is accepted.
const RuleHandoffOpen Rule = "handoff-open"

// A handoffKey joins a request and its acceptance. It is the handoff id, or
// without an id the pair of agents.
type handoffKey struct{ id, from, to string }

func newHandoffKey(id, from, to string) handoffKey {
	if id != "" {
		return handoffKey{id: id}
	}
	return handoffKey{from: from, to: to}
}

func (k handoffKey) String() string {
	if k.id != "" {
		return k.id
	}
	return k.from + "→" + k.to
}

func (m *machine) checkHandoffAccepted(ev *Event, _ *subject) *RuleError {
	p := ev.Payload.(*HandoffAccepted)
	key := newHandoffKey(p.HandoffID, p.From.AgentID, p.To.AgentID)
	if m.openHandoff(key) || m.Resume.cut {
		return nil
	}
	return m.refuse(ev, RuleHandoffOpen, named("handoff", key.String()), "not open",
		"only an open handoff is accepted; legal: handoff.requested first")
}

// openHandoff reports whether a handoff of the key is open. It forgets those before it that
// have ended otherwise.
func (m *machine) openHandoff(key handoffKey) bool {
	for {
		at, open := m.workflows().handoffs.First(key)
		if !open || m.view == nil || at == roster.NoPlace || m.view.s.Handoffs[at].Open {
			return open
		}
		m.workflows().handoffs.Take(key)
	}
}

func (m *machine) handoffRequested(ev *Event, _ *subject) {
	p := ev.Payload.(*HandoffRequested)
	key := newHandoffKey(p.HandoffID, p.From.AgentID, p.To.AgentID)
	end := earlyEnd{kind: KindHandoffRequested, id: key.String(), at: ev.Time}
	key, at := m.view.handoffRequested(ev, p, key, m.aroundHandoff(ev, p.From.AgentID))
	end.span = ev.SpanID
	if end, late := m.beginsLate(end); !late {
		m.workflows().handoffs.Add(key, at)
	} else if m.view != nil {
		h := &m.view.s.Handoffs[m.view.handoffRequestedLate(at, &end)]
		if h.Open = false; end.word != "" {
			h.Ended = m.view.intern(end.word)
			if end.why != "" {
				h.Error = Some(ErrorInfo{Message: m.view.keep(end.why)})
			}
		}
	}
	m.nameAgents(ev, nil)
}

// aroundHandoff returns HandoffSnapshot.Within of a handoff from an agent.
func (m *machine) aroundHandoff(ev *Event, from string) string {
	if m.view == nil {
		return ""
	}
	agent := m.view.around(ev.ParentSpanID)
	if agent == "" && m.agents[from] == nil {
		agent = ev.AgentID
	}
	if agent == from {
		return ""
	}
	return agent
}

func (m *machine) handoffAccepted(ev *Event, _ *subject) {
	p := ev.Payload.(*HandoffAccepted)
	key := newHandoffKey(p.HandoffID, p.From.AgentID, p.To.AgentID)
	m.openHandoff(key)
	at, open := m.workflows().handoffs.Take(key)
	switch {
	case !open:
		m.endedFirst(earlyEnd{kind: KindHandoffRequested, id: key.String(), span: ev.SpanID, at: ev.Time})
		m.view.handoffAccepted(ev, p, m.aroundHandoff(ev, p.From.AgentID))
	case m.view != nil:
		m.view.s.Handoffs[at].Open = false
	}
	m.nameAgents(ev, nil)
}

// RuleMessageID: messages with the same id have the same content, whatever their
// times and the escapes in strings; the first one stays. Members in another order and
// numbers in another form are other content.
const RuleMessageID Rule = "message-id"

// RuleMessageGroup: a message of an agent that shares its context by group carries
// a group id.
const RuleMessageGroup Rule = "message-group"

func (m *machine) checkMessageCreated(ev *Event, sub *subject) *RuleError {
	msg := &ev.Payload.(*MessageCreated).Message
	if msg.GroupID == "" && m.sharesByGroup(ev, sub.agent, msg) {
		return m.refuse(ev, RuleMessageGroup, named("message", msg.MessageID), "without groupId",
			"a sender that shares its context by group sets groupId")
	}
	return nil
}

func (m *machine) sharesByGroup(ev *Event, a *AgentState, msg *ConversationMessage) bool {
	if msg.Agent.OK {
		_, group := msg.Agent.V.AgentSharing.Group()
		return group
	}
	if sender := m.agents[msg.From]; sender != nil {
		return sender.SharesByGroup
	}
	if sender := m.expected.Find(msg.From); sender != nil {
		_, group := sender.V.AgentSharing.Group()
		return group
	}
	return a != nil && a.SharesByGroup && msg.From == ev.AgentID
}

// checkMessageID checks rule message-id. It is apart from check because it needs
// the message as it is recorded, after redaction.
func (m *machine) checkMessageID(ev *Event) *RuleError {
	p, ok := ev.Payload.(*MessageCreated)
	if !ok {
		return nil
	}
	if hash, known := m.messages[p.Message.MessageID]; known && hash != m.hash(&p.Message) {
		return m.refuse(ev, RuleMessageID, named("message", p.Message.MessageID), "recorded",
			"the content differs from the first message with this id, which stays")
	}
	return nil
}

func (m *machine) messageCreated(ev *Event, sub *subject) {
	msg := &ev.Payload.(*MessageCreated).Message
	if _, known := m.messages[msg.MessageID]; known {
		return // recorded before, perhaps retracted since
	}
	m.knowMessage(msg)
	m.view.messageCreated(ev, sub, msg)
}

// knowMessage remembers a message. A message without an id equals no other.
func (m *machine) knowMessage(msg *ConversationMessage) {
	if msg.MessageID == "" {
		return
	}
	if m.messages == nil {
		m.messages = map[string]uint64{}
	}
	m.messages[m.view.keep(msg.MessageID)] = m.hash(msg)
}

// hash returns a hash of the message as JSON, without its time: the emitter and readers
// make one up when there is none, another one each time. Every writer escapes its own way.
func (m *machine) hash(msg *ConversationMessage) uint64 {
	timeless := *msg
	timeless.TS = 0
	if m.buf == nil {
		m.buf = new([]byte)
	}
	text := timeless.appendJSON((*m.buf)[:0])
	*m.buf = jsonwire.AppendRespelled(text, text)
	return jsonwire.Hash((*m.buf)[len(text):])
}
