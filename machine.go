package agentevents

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// machine is the state the rules are about: the one lifecycle machine, used by
// the emitter before it records an event and by the fold before it counts one.
// check never changes it; apply brings it to the state the event describes,
// legal or not, so that one error does not cascade.
type machine struct {
	lifecycle Lifecycle
	runID     string
	fold      bool   // of a fold: assemble texts from deltas, own what is kept of a line
	next      uint64 // sequence after the last event
	begun     bool   // an event other than session.* was seen
	opened    bool   // run.started was seen
	terminal  Kind   // the run's terminal event, or ""

	agents    map[string]*agentState
	last      *agentState // found last
	buf       []byte      // of hash
	calls     openCalls
	messages  map[string]uint64 // fingerprints by messageId
	phases    map[phaseKey]int
	inPhase   map[string]int // open phases by workflow
	approvals map[string]struct{}
	handoffs  map[string]int

	// Of a fold. A text keeps its slab's piece alive, so texts that live as long
	// as the run, as a block and as the latest calls have a slab each.
	texts      *foldTexts
	slab       textSlab
	blockSlab  textSlab
	callSlab   textSlab
	callID     string // of the call made last, for keeping
	callEvent  string
	idleAgents []*agentState // of a run before
}

func newMachine(l Lifecycle, runID string) *machine {
	return &machine{
		lifecycle: l,
		runID:     runID,
		agents:    map[string]*agentState{},
		messages:  map[string]uint64{},
		slab:      textSlab{size: 4 << 10},
		blockSlab: textSlab{size: 1 << 10},
		callSlab:  textSlab{size: 4 << 10},
	}
}

// reuse makes m the machine of another run, in the memory it has. It is a
// fold's.
func (m *machine) reuse() {
	idle := m.idleAgents
	for _, a := range m.agents {
		m.rest(a)
		if len(idle) < maxIdleAgents {
			*a = agentState{blocks: a.blocks, text: small(a.text), reasoning: small(a.reasoning)}
			idle = append(idle, a)
		}
	}
	*m = machine{
		fold: true, texts: m.texts, slab: m.slab, blockSlab: m.blockSlab, callSlab: m.callSlab, buf: small(m.buf), idleAgents: idle,
		lifecycle: m.lifecycle, agents: emptied(m.agents), calls: m.calls.emptied(), messages: emptied(m.messages),
	}
}

// maxIdleAgents bounds the agents that are kept for the next run.
const maxIdleAgents = 16

// small returns the memory of b for another use, unless it is much.
func small(b []byte) []byte {
	if cap(b) > 4<<10 {
		return nil
	}
	return b[:0]
}

// emptied returns m without its entries; a large one is not kept, as to empty
// it takes as long as it is large.
func emptied[K comparable, V any](m map[K]V) map[K]V {
	if m == nil || len(m) > 256 {
		return map[K]V{}
	}
	clear(m)
	return m
}

// An agentState is what the rules need to know of one agent of a run.
type agentState struct {
	key     string
	started bool // agent.started was seen
	open    bool // started and not ended
	ended   bool // the last of start and end was an end
	restart bool // run.resumed came after the start: it may start again
	status  AgentStatus
	step    Opt[int] // highest step so far
	back    Opt[int] // the step it went back to, while that is not the highest
	ahead   Opt[int] // the step of the deltas since, where that is another
	firm    bool     // known by more than deltas
	base    int      // first step of the current attempt
	renew   bool     // the next step the emitter stamps is a new one
	attempt int
	counted Totals // of the current attempt; Steps unused
	group   bool   // shares its context by group
	blocks  []blockState

	// Of a fold; nil in an emitter.
	rec             *AgentSnapshot
	text, reasoning []byte // the latest whole blocks
}

// A blockState follows the deltas of one block of text, reasoning or
// arguments.
type blockState struct {
	subject string // the catalog's subject: text, reasoning, tool_call
	id      string
	next    int  // index that the next numbered delta has
	size    int  // characters so far
	whole   bool // the whole block was seen: later deltas say nothing new
	text    []byte
}

// maxBlocks bounds the blocks an agent has in the making; the oldest is
// forgotten first.
const maxBlocks = 64

// openCalls are the tool calls of a run that wait for their return. Few are
// open at a time, and looking through a short list takes less time than a map.
type openCalls struct {
	few  []openCall
	many map[callKey]string // those that few has no room for
}

type openCall struct {
	callKey
	eventID string // of the event that opened it
}

const fewCalls = 16

// get returns the id of the event that opened a call, and false when it is not
// open.
func (o *openCalls) get(agent, call string) (eventID string, open bool) {
	for i := range o.few {
		if c := &o.few[i]; c.call == call && c.agent == agent {
			return c.eventID, true
		}
	}
	eventID, open = o.many[callKey{agent, call}]
	return eventID, open
}

func (o *openCalls) add(key callKey, eventID string) {
	o.remove(key.agent, key.call)
	if len(o.few) < fewCalls {
		o.few = append(o.few, openCall{key, eventID})
		return
	}
	if o.many == nil {
		o.many = map[callKey]string{}
	}
	o.many[key] = eventID
}

// emptied returns o without its calls, with its memory.
func (o *openCalls) emptied() openCalls {
	clear(o.few)
	return openCalls{few: o.few[:0]}
}

func (o *openCalls) remove(agent, call string) {
	for i := range o.few {
		if c := &o.few[i]; c.call == call && c.agent == agent {
			last := len(o.few) - 1
			o.few[i] = o.few[last]
			o.few[last] = openCall{}
			o.few = o.few[:last]
			return
		}
	}
	if len(o.many) > 0 {
		delete(o.many, callKey{agent, call})
	}
}

type callKey struct{ agent, call string }
type phaseKey struct{ workflow, phase string }

// agentKey says who "the agent" of an event is: agentId, else nodeRunId, else
// the span of the event that started it.
func (m *machine) agentKey(e *Event) string {
	if e.AgentID != "" {
		return e.AgentID
	}
	if e.NodeRunID != "" {
		return e.NodeRunID
	}
	switch e.Payload.(type) {
	case *AgentStarted, *AgentEnded:
		return e.SpanID
	}
	if _, ok := m.agents[e.ParentSpanID]; ok {
		return e.ParentSpanID
	}
	return ""
}

// about is what is asked about an event more than once, looked up once.
type about struct {
	payload payloadOps
	kind    *KindInfo   // the catalog's row
	key     string      // says who the agent is
	agent   *agentState // nil: there is none yet
}

// noKind is the row of payloads that the catalog does not have.
var noKind KindInfo

// look looks an event up. p is its payload.
func (m *machine) look(ab *about, e *Event, p payloadOps) {
	ab.payload, ab.kind, ab.agent = p, &noKind, nil
	if i := p.index(); i >= 0 {
		ab.kind = &catalog[i]
	}
	if ab.key = e.AgentID; ab.key == "" {
		ab.key = m.agentKey(e)
	}
	if ab.key != "" {
		ab.agent = m.find(ab.key)
	}
}

// find returns the state of an agent, or nil. Agents are never forgotten, so
// the one asked for last is the first to be tried.
func (m *machine) find(key string) *agentState {
	if m.last != nil && m.last.key == key {
		return m.last
	}
	a := m.agents[key]
	if a != nil {
		m.last = a
	}
	return a
}

// agent returns the state of an agent, a new one if need be.
func (m *machine) agent(key string) *agentState {
	a := m.find(key)
	if a == nil {
		if n := len(m.idleAgents); n > 0 {
			a, m.idleAgents = m.idleAgents[n-1], m.idleAgents[:n-1]
		} else {
			a = &agentState{}
		}
		a.key, a.status = m.word(key), StatusThinking
		m.agents[a.key] = a
	}
	return a
}

// own returns s for keeping. A fold copies it, so that it does not keep the
// line alive that it was cut from.
func (m *machine) own(s string) string {
	if m.fold {
		return m.slab.clone(s)
	}
	return s
}

// word is own for a text that comes again and again.
func (m *machine) word(s string) string {
	if m.fold {
		return m.texts.word(s)
	}
	return s
}

// status returns the constant of a known status, so that a word cut from a
// line is not kept.
func (m *machine) status(s AgentStatus) AgentStatus {
	if i := s.index(); i >= 0 {
		return statuses[i]
	}
	return AgentStatus(m.word(string(s)))
}

// refuse makes the error of a rule; the caller fills in subject and state.
func (m *machine) refuse(e *Event, rule Rule, subject, state, detail string) *RuleError {
	return &RuleError{
		Rule: rule, Kind: e.Kind(), RunID: e.RunID, AgentID: e.AgentID, EventID: e.ID, Sequence: e.Sequence,
		Subject: subject, State: state, Detail: detail,
	}
}

func quote(what, id string) string {
	if id == "" {
		return what
	}
	return what + ` "` + id + `"`
}

// check reports the first rule that e would break, or nil. sound says that the
// envelope's texts were checked already.
func (m *machine) check(e *Event, ab *about, sound bool) *RuleError {
	if err := e.check(ab.payload, sound); err != nil {
		return err.asError(e)
	}
	if m.terminal != "" && !e.Marks.Has(MarkLate) && ab.kind.traits&afterEnd == 0 {
		return m.refuse(e, RuleTerminalLast, quote("run", e.RunID), "ended by "+string(m.terminal),
			"only session events, audits, usage and late events may follow")
	}
	if ab.kind.traits&ofWorkflow != 0 || e.WorkflowID != "" || e.Phase != "" {
		if err := m.checkWorkflow(e, ab.kind.traits); err != nil {
			return err
		}
	}
	key, a := ab.key, ab.agent
	if key != "" {
		if err := m.checkAgent(e, ab); err != nil {
			return err
		}
	} else if ab.kind.traits&ofLifecycle != 0 {
		return (&fieldError{RuleFieldRequired, "/agentId", "is required (or nodeRunId, or spanId of the start)"}).asError(e)
	}
	switch p := e.Payload.(type) {
	case *RunStarted:
		if m.opened {
			return m.refuse(e, RuleRunOpen, quote("run", e.RunID), "open", "a run starts once")
		}
		if m.begun {
			return m.refuse(e, RuleRunOpen, quote("run", e.RunID), "under way", "only session events may precede run.started")
		}
	case *ToolCalled:
		if _, open := m.calls.get(key, p.CallID); open {
			return m.refuse(e, RuleToolCallOpen, quote("call", p.CallID), "open", "a call id is not used again while its call is open")
		}
	case *ToolReturned:
		return m.checkReturn(e, key, p)
	case *AgentReasoningDelta:
		return m.checkDelta(e, a, "reasoning", p.BlockID, p.Index)
	case *TextDelta:
		return m.checkDelta(e, a, "text", p.BlockID, p.Index)
	case *ToolArgumentsDelta:
		return m.checkDelta(e, a, "tool_call", p.CallID, p.Index)
	case *PhaseCompleted:
		if m.phases[phaseKey{e.WorkflowID, e.Phase}] == 0 {
			return m.refuse(e, RulePhaseOpen, quote("phase", e.Phase), "not open", "no workflow.phase.started is waiting for this")
		}
	case *ApprovalGranted:
		return m.checkApproval(e, p.ApprovalID)
	case *ApprovalRejected:
		return m.checkApproval(e, p.ApprovalID)
	case *HandoffAccepted:
		key := handoffKey(p.HandoffID, p.From, p.To)
		if m.handoffs[key] == 0 {
			return m.refuse(e, RuleHandoffOpen, quote("handoff", key), "not open", "no handoff.requested is waiting for this")
		}
	case *MessageCreated:
		if p.Message.GroupID == "" && m.sharesByGroup(e, a, &p.Message) {
			return m.refuse(e, RuleMessageGroup, quote("message", p.Message.MessageID), "without groupId", "the sender shares its context by group")
		}
	}
	return nil
}

// checkMessage is the part of check that needs the text as it is recorded,
// after redaction.
func (m *machine) checkMessage(e *Event) *RuleError {
	p, ok := e.Payload.(*MessageCreated)
	if !ok {
		return nil
	}
	if hash, known := m.messages[p.Message.MessageID]; known && hash != m.hash(&p.Message) {
		return m.refuse(e, RuleMessageID, quote("message", p.Message.MessageID), "known", "it has other content; the first one wins")
	}
	return nil
}

// knows reports whether the event brings a message whose id was seen before.
func (m *machine) knows(e *Event) bool {
	p, ok := e.Payload.(*MessageCreated)
	if ok {
		_, ok = m.messages[p.Message.MessageID]
	}
	return ok
}

// remember notes a message; the first one of an id counts. One without an id
// is like no other.
func (m *machine) remember(c *ConversationMessage) {
	if _, known := m.messages[c.MessageID]; !known && c.MessageID != "" {
		m.messages[m.own(c.MessageID)] = m.hash(c)
	}
}

// hash tells the message from another one with the same id.
func (m *machine) hash(c *ConversationMessage) uint64 {
	m.buf = c.appendJSON(m.buf[:0])
	return jsonwire.Hash(m.buf)
}

func (m *machine) checkAgent(e *Event, ab *about) *RuleError {
	key, a := ab.key, ab.agent
	if e.Step.OK {
		if ab.kind.traits&stepless != 0 {
			return m.refuse(e, RuleStepMonotonic, quote("agent", key), "", "starts, ends and audits have no step")
		}
		if a != nil {
			if at := a.current(); at.OK && e.Step.V < at.V {
				return m.refuse(e, RuleStepMonotonic, quote("agent", key), "at step "+itoa(at.V), "step "+itoa(e.Step.V)+" would go back")
			}
		}
	}
	late := e.Marks.Has(MarkLate)
	switch p := e.Payload.(type) {
	case *AgentStarted:
		if a != nil && a.open && !a.restart && !p.Resumed {
			return m.refuse(e, RuleAgentStartedOnce, quote("agent", key), "running ("+string(a.status)+")",
				"it may start again after it has ended, after run.resumed, or with resumed set")
		}
		return nil
	case *AgentEnded:
		if a == nil {
			return nil
		}
		if a.ended && !late {
			return m.refuse(e, RuleAgentEndedFinal, quote("agent", key), "ended", "only a new agent.started may follow")
		}
		return m.checkTotals(e, key, a, p)
	case *AgentTransition:
		if a != nil && a.ended && !late {
			return m.refuse(e, RuleAgentEndedFinal, quote("agent", key), "ended", "only a new agent.started may follow")
		}
		status := StatusThinking
		if a != nil {
			status = a.status
		}
		if status.Terminal() && len(m.lifecycle.Next(status)) == 0 && !late {
			return m.refuse(e, RuleAgentEndedFinal, quote("agent", key), string(status), "only audits and agent.ended may follow")
		}
		if p.From != status {
			return m.refuse(e, RuleTransitionFromCurrent, quote("agent", key), string(status), "from is "+string(p.From))
		}
		if !m.lifecycle.Allows(p.From, p.To) {
			return m.refuse(e, RuleTransitionLegal, quote("agent", key), string(status),
				string(p.From)+" → "+string(p.To)+" is not in the "+m.lifecycle.String()+" table; legal: "+joinStatuses(m.lifecycle.Next(p.From)))
		}
		return nil
	}
	if a == nil || late || !ab.kind.ByAgent {
		return nil
	}
	if p, ok := e.Payload.(*MessageCreated); ok && p.Message.From != key {
		return nil // somebody else's words in the agent's conversation
	}
	if a.ended {
		return m.refuse(e, RuleAgentEndedFinal, quote("agent", key), "ended", "only a new agent.started may follow")
	}
	if a.status.Terminal() {
		return m.refuse(e, RuleAgentEndedFinal, quote("agent", key), string(a.status), "only audits and agent.ended may follow")
	}
	return nil
}

func joinStatuses(s []AgentStatus) string {
	if len(s) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, status := range s {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(status))
	}
	return b.String()
}

func (m *machine) checkTotals(e *Event, key string, a *agentState, p *AgentEnded) *RuleError {
	if !p.Totals.OK {
		return nil
	}
	given, counted := p.Totals.V, a.totals()
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
		if c.given < c.counted {
			err := m.refuse(e, RuleEndedTotals, quote("agent", key), "", "total "+itoa(c.given)+" is below the "+itoa(c.counted)+" that were recorded")
			err.Pointer = "/payload/totals/" + c.name
			return err
		}
	}
	return nil
}

// totals returns the counters of the current attempt.
func (a *agentState) totals() Totals {
	t := a.counted
	if a.step.OK && a.step.V >= a.base {
		t.Steps = a.step.V - a.base + 1
	}
	return t
}

func (m *machine) checkReturn(e *Event, key string, p *ToolReturned) *RuleError {
	if p.OneEvent {
		return nil
	}
	opener, open := m.calls.get(key, p.CallID)
	if !open {
		if p.Status == ToolStatusForbidden || p.Status == ToolStatusRateLimited {
			return nil
		}
		return m.refuse(e, RuleToolCallOpen, quote("call", p.CallID), "not open", "no agent.toolCalled of "+quote("agent", key)+" is waiting for this")
	}
	if e.CausationID != "" && opener != "" && e.CausationID != opener {
		return m.refuse(e, RuleToolCausation, quote("call", p.CallID), "opened by event "+opener, "causationId is "+e.CausationID)
	}
	return nil
}

func (m *machine) checkDelta(e *Event, a *agentState, subject, id string, index Opt[int]) *RuleError {
	if !index.OK || m.atRest(a) {
		return nil
	}
	want := 0
	if a != nil {
		if b := a.block(subject, id); b != nil {
			if b.whole && id != "" {
				return nil // it says nothing new
			}
			want = b.next
		}
	}
	if index.V == want || id == "" && index.V == 0 {
		return nil
	}
	return m.refuse(e, RuleDeltaIndex, quote(subject+" block", id), "at index "+itoa(want), "index "+itoa(index.V)+" is out of order")
}

func (m *machine) checkApproval(e *Event, id string) *RuleError {
	if _, ok := m.approvals[id]; ok {
		return nil
	}
	return m.refuse(e, RuleApprovalOpen, quote("approval", id), "not open", "no approval.requested is waiting for this")
}

func handoffKey(id string, from, to AgentRef) string {
	if id != "" {
		return id
	}
	return from.AgentID + "→" + to.AgentID
}

func (m *machine) sharesByGroup(e *Event, a *agentState, msg *ConversationMessage) bool {
	if msg.Agent.OK {
		_, group := msg.Agent.V.AgentSharing.Group()
		return group
	}
	if sender := m.agents[msg.From]; sender != nil {
		return sender.group
	}
	return a != nil && a.group && msg.From == e.AgentID
}

// checkWorkflow is for events of a workflow, or of a kind that is.
func (m *machine) checkWorkflow(e *Event, kind traits) *RuleError {
	if kind&ofWorkflow == 0 {
		if e.Phase != "" && e.WorkflowID == "" {
			return m.refuse(e, RuleWorkflowContext, quote("phase", e.Phase), "without workflowId", "events of a workflow carry workflowId")
		}
		if e.WorkflowID != "" && e.Phase == "" && m.inPhase[e.WorkflowID] > 0 && strings.HasPrefix(string(e.Kind()), "agent.") {
			return m.refuse(e, RuleWorkflowContext, quote("workflow", e.WorkflowID), "inside a phase", "agent events inside a phase carry its name")
		}
		return nil
	}
	if e.WorkflowID == "" {
		return m.refuse(e, RuleWorkflowContext, "", "", "workflow events carry workflowId")
	}
	if kind&ofPhase != 0 && e.Phase == "" {
		return m.refuse(e, RuleWorkflowContext, quote("workflow", e.WorkflowID), "", "phase and checkpoint events carry phase")
	}
	return nil
}

// apply brings the machine to the state that e describes. It returns the
// agent the event belongs to, or nil.
func (m *machine) apply(e *Event, ab *about) *agentState {
	m.next = max(e.Sequence, e.Sequence+1) // a log may claim the highest number there is
	if ab.kind.traits&ofSession == 0 {
		m.begun = true
	}
	a, key := ab.agent, ab.key
	switch {
	case key == "":
		a = nil
	case e.Step.OK || e.AgentID != "" || ab.kind.ByAgent || ab.kind.Subject == "agent":
		if a == nil {
			a = m.agent(key)
		}
	case a != nil && !a.firm:
		a = nil // as if its deltas were not there
	}
	delta := ab.kind.Droppable
	if a != nil && !delta {
		a.firm = true
	}
	if a != nil && e.Step.OK && !(delta && m.atRest(a)) {
		a.reach(e.Step.V, delta)
	}
	switch p := e.Payload.(type) {
	case *RunStarted:
		m.opened = true
	case *RunResumed:
		for _, a := range m.agents {
			a.restart = a.open
		}
	case *RunCompleted, *RunFailed, *RunCancelled:
		m.terminal = e.Kind()
		for _, a := range m.agents {
			m.rest(a)
		}
	case *AgentStarted:
		if a != nil {
			m.rest(a)
			a.start(p)
		}
	case *AgentTransition:
		if a != nil {
			a.status = m.status(p.To)
			a.endUnnamed()
		}
	case *AgentEnded:
		if a != nil {
			a.open, a.ended, a.restart = false, true, false
			m.rest(a)
		}
	case *AuditChecked:
		if a != nil {
			a.counted.AuditCheckpoints++
			switch p.Result {
			case AuditPass:
				a.counted.AuditsPassed++
			case AuditFail:
				a.counted.AuditsFailed++
			}
		}
	case *ToolCalled:
		if a != nil {
			a.counted.ToolCalls++
		}
		if a != nil {
			key = a.key
			a.endUnnamed()
		}
		m.callID, m.callEvent = p.CallID, e.ID
		if m.fold {
			m.callID, m.callEvent = m.callSlab.clone(p.CallID), m.callSlab.clone(e.ID)
		}
		m.calls.add(callKey{key, m.callID}, m.callEvent)
	case *ToolReturned:
		if p.OneEvent { // it closes no other
			if a != nil && p.wholeCall() {
				a.counted.ToolCalls++
			}
			break
		}
		m.calls.remove(key, p.CallID)
		if a != nil {
			m.forget(a, "tool_call", p.CallID)
		}
	case *AgentReasoningDelta:
		m.delta(a, "reasoning", p.BlockID, p.Index, p.Delta)
	case *TextDelta:
		m.delta(a, "text", p.BlockID, p.Index, p.Delta)
	case *ToolArgumentsDelta:
		m.delta(a, "tool_call", p.CallID, p.Index, p.Delta)
	case *AgentReasoned:
		m.wholeBlock(a, "reasoning", p.BlockID)
	case *TextCompleted:
		m.wholeBlock(a, "text", p.BlockID)
	case *MessageCreated:
		m.remember(&p.Message)
	case *PhaseStarted:
		m.openPhase(e.WorkflowID, e.Phase, 1)
	case *PhaseCompleted:
		if m.phases[phaseKey{e.WorkflowID, e.Phase}] > 0 {
			m.openPhase(e.WorkflowID, e.Phase, -1)
		}
	case *ApprovalRequested:
		if m.approvals == nil {
			m.approvals = map[string]struct{}{}
		}
		m.approvals[m.own(p.ApprovalID)] = struct{}{}
	case *ApprovalGranted:
		delete(m.approvals, p.ApprovalID)
	case *ApprovalRejected:
		delete(m.approvals, p.ApprovalID)
	case *HandoffRequested:
		if m.handoffs == nil {
			m.handoffs = map[string]int{}
		}
		m.handoffs[m.own(handoffKey(p.HandoffID, p.From, p.To))]++
	case *HandoffAccepted:
		key := handoffKey(p.HandoffID, p.From, p.To)
		if n := m.handoffs[key]; n > 1 {
			m.handoffs[m.own(key)] = n - 1
		} else {
			delete(m.handoffs, key)
		}
	}
	return a
}

func (m *machine) openPhase(workflow, phase string, by int) {
	if m.phases == nil {
		m.phases, m.inPhase = map[phaseKey]int{}, map[string]int{}
	}
	// A map takes over the key it is written with.
	workflow, phase = m.word(workflow), m.word(phase)
	key := phaseKey{workflow, phase}
	if m.phases[key] += by; m.phases[key] == 0 {
		delete(m.phases, key)
	}
	if m.inPhase[workflow] += by; m.inPhase[workflow] == 0 {
		delete(m.inPhase, workflow)
	}
}

// current returns the step below which no event may go.
func (a *agentState) current() Opt[int] {
	switch {
	case a.ahead.OK:
		return a.ahead
	case a.back.OK:
		return a.back
	}
	return a.step
}

// reach notes the step of an event. What may be dropped from a log must leave
// no mark on the agent's step: where deltas are is noted apart, until the next
// event that may not.
func (a *agentState) reach(step int, delta bool) {
	if delta {
		if at := a.current(); !at.OK || step != at.V {
			a.ahead = Some(step)
		}
		return
	}
	a.ahead, a.back = Opt[int]{}, Opt[int]{}
	if !a.step.OK || step >= a.step.V {
		a.step = Some(step)
	} else {
		a.back = Some(step)
	}
	a.renew = false
}

// rest forgets what only matters while the agent is at work.
func (m *machine) rest(a *agentState) {
	a.ahead = Opt[int]{}
	if !m.fold {
		a.blocks = nil
		return
	}
	for i := range a.blocks {
		m.texts.release(a.blocks[i].text)
	}
	clear(a.blocks)
	a.blocks = a.blocks[:0]
}

// start begins an attempt, of an agent at rest.
func (a *agentState) start(p *AgentStarted) {
	a.base = 0
	if a.started && a.step.OK {
		a.base, a.renew = a.step.V+1, true
	}
	a.started, a.open, a.ended, a.restart = true, true, false, false
	a.status = StatusThinking
	a.attempt++
	if p.Attempt.OK {
		a.attempt = p.Attempt.V
	}
	a.counted = Totals{}
	if p.Agent.OK {
		_, a.group = p.Agent.V.AgentSharing.Group()
	}
}

// block finds a block in the making.
func (a *agentState) block(subject, id string) *blockState {
	for i := len(a.blocks) - 1; i >= 0; i-- {
		if b := &a.blocks[i]; b.id == id && b.subject == subject {
			return b
		}
	}
	return nil
}

// addBlock adds a block in the making.
func (m *machine) addBlock(a *agentState, subject, id string) *blockState {
	if len(a.blocks) == maxBlocks {
		m.forget(a, a.blocks[0].subject, a.blocks[0].id)
	}
	if m.fold {
		id = m.blockSlab.clone(id)
	}
	a.blocks = append(a.blocks, blockState{subject: subject, id: id})
	return &a.blocks[len(a.blocks)-1]
}

// delta notes a piece of a block.
func (m *machine) delta(a *agentState, subject, id string, index Opt[int], text string) {
	if a == nil || m.atRest(a) {
		return
	}
	b := a.block(subject, id)
	switch {
	case b == nil:
		b = m.addBlock(a, subject, id)
		if m.fold && subject != "tool_call" {
			b.text = m.texts.buffer()
		}
	case id == "" && (b.whole || index.OK && index.V == 0):
		*b = blockState{subject: subject, text: b.text[:0]} // a block without a name begins again
	}
	if b.whole {
		return
	}
	if index.OK {
		b.next = index.V + 1
	}
	b.size += utf8.RuneCountInString(text)
	if m.fold && subject != "tool_call" {
		b.text = append(b.text, text...)
	}
}

// wholeBlock notes that the whole of a block was seen.
func (m *machine) wholeBlock(a *agentState, subject, id string) {
	if a == nil || m.atRest(a) {
		return
	}
	m.forget(a, subject, id)
	if id != "" {
		m.addBlock(a, subject, id).whole = true
	}
}

// atRest reports whether deltas have nothing to tell any more: the agent has
// ended, or its run has.
func (m *machine) atRest(a *agentState) bool {
	return m.terminal != "" || a != nil && a.ended
}

// endUnnamed ends the blocks without a name: another act of the agent has come
// between, so the next delta begins a new block.
func (a *agentState) endUnnamed() {
	for i := range a.blocks {
		if b := &a.blocks[i]; b.id == "" && b.subject != "tool_call" {
			b.whole = true
		}
	}
}

func (m *machine) forget(a *agentState, subject, id string) {
	for i := range a.blocks {
		if a.blocks[i].id == id && a.blocks[i].subject == subject {
			if m.fold {
				m.texts.release(a.blocks[i].text)
			}
			a.blocks = slices.Delete(a.blocks, i, i+1)
			return
		}
	}
}

// blockSize returns how many characters of reasoning the block had so far.
func (a *agentState) blockSize(id string) int {
	if a == nil {
		return 0
	}
	if b := a.block("reasoning", id); b != nil {
		return b.size
	}
	return 0
}

func itoa(n int) string { return strconv.Itoa(n) }
