package agentevents

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/roster"
)

// A Rule is the name of a rule of the log. The names are stable. The comment of each
// constant is the statement that [Rules] yields, and the code that enforces the rule
// stands beside it.
type Rule string

// Rules yields every rule and its statement.
func Rules() iter.Seq2[Rule, string] {
	return func(yield func(Rule, string) bool) {
		for _, r := range ruleTable {
			if !yield(r.rule, r.statement) {
				return
			}
		}
	}
}

// ours reports whether this package defines the rule.
func (r Rule) ours() bool {
	for i := range ruleTable {
		if ruleTable[i].rule == r {
			return true
		}
	}
	return false
}

// A machine keeps the state of one run and enforces the rules. The emitter and
// the fold use the same machine, so what one accepts the other accepts.
//
// check returns the rule that an event breaks and changes nothing. apply brings
// the machine to the state that the event describes, legal or not, so that one
// illegal event causes one violation. The functions of a kind are in its row of
// the catalog.
type machine struct {
	*RunState

	// A snapshot has these; see RunStatus.
	paused, cancelling, sessionOver bool
	derives                         bool   // of an emitter: the next start names LifecycleDerived, if none has named a table
	sessionStatus                   string // SessionCompleted.Status, or failed for an error without one
	sessionAnswered                 bool   // SessionCompleted.Result was seen

	agents  map[string]*AgentState
	bySpan  map[string]*AgentState // by AgentState.SpanID
	twins   map[string]*AgentState // by agentResume.spans
	last    *AgentState            // the agent that find returned last
	ordered int32                  // number of agents that have an order
	resting int32                  // number of agents that have ended

	calls      roster.Roster[callKey, openCall]           // open calls, in call order
	modelCalls *roster.Roster[callKey, ModelCallSnapshot] // open model calls, in call order; nil until there is one
	messages   map[string]uint64                          // hashes by messageId
	expected   roster.Roster[string, Opt[AgentRef]]       // references of agents without an event, by agent id
	work       *workflows                                 // nil until the run has any
	questions  questions
	approvals  approvals
	spans      map[spanKey][]*openSpan
	buf        *[]byte // for hash

	view *view // the fold's view; nil in an emitter
}

// workflows holds the workflow state, which few runs have.
type workflows struct {
	phases   map[phaseKey]*passages // open ones
	inPhase  map[string]int         // number of open phases by workflow
	resumes  map[string]int         // number of checkpoints resumed from by workflow
	handoffs roster.Opens[handoffKey]
}

// workflows returns the workflow state of the run, and makes it if there is none.
func (m *machine) workflows() *workflows {
	if m.work == nil {
		m.work = &workflows{phases: map[phaseKey]*passages{}, inPhase: map[string]int{}, resumes: map[string]int{}}
	}
	return m.work
}

// inPhase reports whether a phase of the workflow is open.
func (m *machine) inPhase(workflow string) bool {
	return m.work != nil && m.work.inPhase[workflow] > 0
}

func newMachine(state *RunState) *machine { return &machine{RunState: state} }

// table returns the lifecycle in force. A log that names none is judged relaxed.
func (m *machine) table() Lifecycle {
	switch {
	case m.view != nil && m.view.given != "":
		return m.view.given
	case m.Lifecycle != "":
		return m.Lifecycle
	}
	return LifecycleRelaxed
}

// tableUnknown reports whether the table may be any: the start that names it is missing.
func (m *machine) tableUnknown() bool {
	return m.Resume.cut && m.Lifecycle == "" && (m.view == nil || m.view.given == "")
}

// begunBefore notes that the run has begun before the log.
func (m *machine) begunBefore() {
	m.Resume.cut = true
	for _, a := range m.agents { // they have only deltas
		a.Status = ""
	}
}

// whole notes that nothing is missing before the first event of the run.
func (m *machine) whole() {
	if !m.Resume.cut {
		return
	}
	m.Resume.cut = false
	for _, a := range m.agents {
		if a.Status == "" {
			a.Status = StatusThinking
		}
	}
}

// statusOf returns the status of an agent, which is nil before its first event. It is
// empty where the log that would tell it is missing.
func (m *machine) statusOf(a *AgentState) AgentStatus {
	switch {
	case a != nil:
		return a.Status
	case m.Resume.cut && m.view != nil:
		return ""
	}
	return StatusThinking
}

// goBy sets the lifecycle of an emitter. The derived one is in force once a start has named
// it, because who reads the events before goes by the relaxed one.
func (m *machine) goBy(l Lifecycle) {
	if m.derives = l == LifecycleDerived; !m.derives {
		m.Lifecycle = l
	}
}

// named returns the lifecycle that the starts of an emitter name: one that is stated by
// mistake would be taken for the log's.
func (m *machine) named() Lifecycle {
	switch {
	case m.Lifecycle == LifecycleStrict:
		return ""
	case m.Lifecycle == "" && m.derives:
		return LifecycleDerived
	}
	return m.Lifecycle
}

// says puts the lifecycle that a start names in force.
func (m *machine) says(l Lifecycle) {
	if l.known() {
		m.Lifecycle = l.constant()
	}
}

// A subject is the payload, kind and agent of an event, looked up once.
type subject struct {
	payload payloadOps
	index   int         // of the kind in the catalog; -1 when it is unknown
	kind    *KindInfo   // the catalog's row; noKind when the kind is unknown
	key     string      // key of the event's agent in machine.agents; empty without an agent
	agent   *AgentState // nil when the machine has no state of the agent
	again   bool        // the event ends a run that has ended: it changes nothing
	sound   bool        // the event's JSON and texts were checked when it was read

	// Of an emitter.
	bound     bool       // the rules of bound.go hold for the event
	violation *RuleError // the event is recorded in spite of it
	moved     bool       // a transition is recorded in front of the event
}

// noKind is the row of unknown kinds.
var noKind KindInfo

// resolve sets sub to the subject of an event with payload p.
func (m *machine) resolve(sub *subject, ev *Event, p payloadOps) {
	sub.payload, sub.index, sub.kind = p, p.index(), &noKind
	if sub.index >= 0 {
		sub.kind = &catalog[sub.index]
	}
	m.identify(sub, ev)
}

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
	unknown := sub.agent == nil || !sub.agent.firm() || sub.agent.Ended // several agents may have one id, each in a span of its own
	if a := m.nameless(ev); a != nil && a != sub.agent && (unknown || end && a.SpanID == ev.SpanID || a.SpanID == ev.SpanID && apart(sub.agent, ev)) {
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

// refuse returns the error of a rule. state is the state of the subject; detail describes the fault
// and the legal alternatives.
func (m *machine) refuse(ev *Event, rule Rule, subject, state, detail string) *RuleError {
	return &RuleError{
		Rule: rule, Kind: ev.Kind(), RunID: ev.RunID, AgentID: ev.AgentID, EventID: ev.ID, Sequence: ev.Sequence,
		Subject: subject, State: state, Detail: detail,
	}
}

// check returns the first rule that ev breaks, or nil. It checks the rules about one field, then
// the rules for the run, the agent and the kind.
func (m *machine) check(ev *Event, sub *subject) *RuleError {
	if err := ev.check(sub.payload, sub.sound); err != nil {
		return err.asError(ev)
	}
	if m.TerminalKind != "" {
		if err := m.checkTerminal(ev, sub); err != nil {
			return err
		}
	}
	if sub.kind.traits&ofWorkflow != 0 || ev.WorkflowID != "" || ev.Phase != "" {
		if err := m.checkWorkflow(ev, sub.kind.traits); err != nil {
			return err
		}
	}
	if sub.key == "" {
		if sub.kind.traits&ofLifecycle != 0 && !(m.Resume.cut && ev.ParentSpanID != "") {
			return (&fieldError{RuleFieldRequired, "/agentId", "is required, unless nodeRunId or the spanId of agent.started names the agent"}).asError(ev)
		}
	} else {
		if err := m.checkStep(ev, sub); err != nil {
			return err
		}
		if err := m.checkAct(ev, sub); err != nil {
			return err
		}
	}
	return m.checkKind(ev, sub)
}

// apply brings the machine to the state that ev describes. It sets sub.agent to
// the event's agent, which it adds when the event is the agent's first.
func (m *machine) apply(ev *Event, sub *subject) {
	m.NextSequence = max(ev.Sequence, ev.Sequence+1) // a log may claim the highest number there is
	kind, a := sub.kind, sub.agent
	if a != nil && ev.AgentID != "" && sub.key != ev.AgentID && !kind.Droppable {
		if other := m.agents[ev.AgentID]; other == nil || !other.firm() {
			m.name(a, ev.AgentID)
			sub.key = a.AgentID
		} else if a.Resume.unnamed && a.Resume.twin == "" && other.Open {
			a.Resume.twin = m.view.intern(ev.AgentID)
			m.within(a, a.SpanID)
			m.view.twin(a)
		}
	}
	switch {
	case sub.key == "":
	case ev.Step.OK || ev.AgentID != "" || kind.ByAgent || kind.traits&ofLifecycle != 0:
		if a == nil {
			a = m.newAgent(sub.key)
		}
	case a != nil && !a.firm():
		a = nil
	}
	if a != nil {
		if !kind.Droppable && !a.firm() {
			a.Resume.order = int(m.ordered)
			m.ordered++
			if m.view != nil {
				a.shown.NodeID = m.view.intern(ev.NodeID)
			}
		}
		if ev.Step.OK && !(kind.Droppable && m.atRest(a)) {
			a.reach(ev.Step.V, kind.Droppable)
		}
	}
	if a != nil && !kind.Droppable && a.Resume.twin != "" && ev.AgentID == a.Resume.twin {
		m.within(a, ev.SpanID)
	}
	sub.agent = a
	m.before(ev, a)
	m.applyKind(ev, sub)
	if p, ok := ev.Payload.(*Unknown); ok {
		m.unknownEnd(ev, p)
	}
	if kind.traits&ofSession == 0 {
		m.Resume.begun = true
	}
}

// RuleRun: an event carries the id of its run.
const RuleRun Rule = "run"

func (m *machine) checkRun(ev *Event) *RuleError {
	if ev.RunID == m.RunID {
		return nil
	}
	return m.refuse(ev, RuleRun, named("run", m.RunID), "", "runId is "+jsonwire.Brief(ev.RunID)+"; legal: "+jsonwire.Brief(m.RunID))
}

// RuleRunOpen: only session events precede run.started, and a run starts once.
const RuleRunOpen Rule = "run-open"

func (m *machine) checkRunStarted(ev *Event, _ *subject) *RuleError {
	switch {
	case m.Resume.opened:
		return m.refuse(ev, RuleRunOpen, named("run", ev.RunID), "open", "a run starts once")
	case m.Resume.begun:
		return m.refuse(ev, RuleRunOpen, named("run", ev.RunID), "under way", "only session events may precede run.started")
	}
	return nil
}

func (m *machine) runStarted(ev *Event, _ *subject) {
	m.Resume.opened = true
	m.whole()
	m.says(ev.Payload.(*RunStarted).Lifecycle)
}

// RuleTerminalLast: only session events, audits, usage and late events follow run.completed,
// run.failed or run.cancelled; the first of these decides how the run ended.
const RuleTerminalLast Rule = "terminal-last"

func (m *machine) checkTerminal(ev *Event, sub *subject) *RuleError {
	if ev.Marks.Has(MarkLate) || sub.kind.traits&afterEnd != 0 {
		return nil
	}
	state := "ended by " + jsonwire.BriefName(string(m.TerminalKind))
	if m.TerminalKind == "" {
		state = "ending" // see Run.Finish
	}
	return m.refuse(ev, RuleTerminalLast, named("run", ev.RunID), state,
		"only session events, audits, usage and late events may follow")
}

func (m *machine) runEnded(_ *Event, sub *subject) {
	if sub.again = m.TerminalKind != ""; sub.again {
		return // the first end stands
	}
	m.TerminalKind = sub.kind.Kind
	for _, a := range m.agents {
		m.rest(a)
	}
	for key := range m.questions.open {
		m.closeQuestion(key, sub.kind.Kind)
	}
	m.Resume.recentDeltas = m.Resume.recentDeltas[:0]
}

// atRest reports whether the run or the agent has ended. Then deltas change
// nothing.
func (m *machine) atRest(a *AgentState) bool {
	return m.TerminalKind != "" || a != nil && a.Ended
}

// RuleStepMonotonic: the step never decreases within (run, agent); agent starts,
// agent ends and audits have no step.
const RuleStepMonotonic Rule = "step-monotonic"

func (m *machine) checkStep(ev *Event, sub *subject) *RuleError {
	if !ev.Step.OK {
		return nil
	}
	if sub.kind.traits&stepless != 0 {
		return m.refuse(ev, RuleStepMonotonic, named("agent", sub.key), "", "agent starts, agent ends and audits have no step")
	}
	if sub.agent != nil {
		if at := sub.agent.current(); at.OK && ev.Step.V < at.V {
			return m.refuse(ev, RuleStepMonotonic, named("agent", sub.key), "at step "+itoa(at.V), "step "+itoa(ev.Step.V)+" goes back; legal: "+itoa(at.V)+" or higher")
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

// RuleAgentStartedOnce: a running agent does not start again, except after run.resumed or
// with resumed set; with the strict table an agent that has moved without a start is running.
const RuleAgentStartedOnce Rule = "agent-started-once"

func (m *machine) checkAgentStarted(ev *Event, sub *subject) *RuleError {
	a := sub.agent
	if a == nil || a.Resume.resumes < m.Resume.resumes || ev.Payload.(*AgentStarted).Resumed {
		return nil
	}
	if moved := !a.Started && !a.Ended && a.Status != StatusThinking && !m.Resume.cut; !a.Open && !(moved && m.table() == LifecycleStrict) {
		return nil // the start of the strict table is the way to thinking: it would move the agent
	}
	return m.refuse(ev, RuleAgentStartedOnce, named("agent", sub.key), "running ("+a.Status.shown()+")",
		"a running agent does not start again; legal: after agent.ended, after run.resumed, or with resumed set")
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
	return m.refuse(ev, RuleAgentEndedFinal, named("agent", sub.key), a.Status.shown(), "only audits, agent.ended and legal transitions may follow")
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
		return m.refuse(ev, RuleAgentEndedFinal, named("agent", sub.key), status.shown(), "only audits and agent.ended may follow")
	}
	if p.From != status && status != "" {
		return m.refuse(ev, RuleTransitionFromCurrent, named("agent", sub.key), status.shown(), "from is "+p.From.shown()+"; legal: "+status.shown())
	}
	if !table.Allows(p.From, p.To) {
		if m.tableUnknown() && slices.ContainsFunc(lifecycles, func(l Lifecycle) bool { return l.Allows(p.From, p.To) }) {
			return nil
		}
		detail := p.From.shown() + " → " + p.To.shown() + " is not in the " + string(table) + " table; legal: " + cmp.Or(wordList(table.Next(p.From)), "none")
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
			err := m.refuse(ev, RuleEndedTotals, named("agent", sub.key), "", itoa(c.given)+" is below what was recorded; legal: "+itoa(c.counted)+" or more")
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
	if p := ev.Payload.(*AgentEnded); m.view == nil && (!a.endsAgain(ev) || p.tells()) {
		a.end = endOf(p.Error, p.Status, p.Outcome)
	}
	if a.Ended && !a.endsAgain(ev) && !ev.Marks.Has(MarkLate) { // an end without a start is an attempt, too
		m.view.again(a, ev)
		a.Attempts = plus(max(1, a.Attempts), 1)
	}
	if !a.Started {
		m.endedFirst(earlyEnd{kind: KindAgentStarted, agent: a.AgentID, at: ev.Time})
	}
	m.endAgent(a, KindAgentEnded)
}

// endsAgain reports whether an end of the agent tells the end of its latest attempt again: the
// attempt has a start, and has ended. In a document without spans the start of another attempt may
// be missing.
func (a *AgentState) endsAgain(ev *Event) bool { return a.Started && a.Ended && ev.SpanID != "" }

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

// RuleToolCallOpen: a return names an open call of its agent, and a call id is not
// used again while its call is open; exempt are returns with oneEvent, and returns
// with status forbidden or rate_limited that have no call.
const RuleToolCallOpen Rule = "tool-call-open"

// RuleToolCausation: the causationId of a return is the id of the event that opened
// its call.
const RuleToolCausation Rule = "tool-causation"

func (m *machine) checkToolCalled(ev *Event, sub *subject) *RuleError {
	id := ev.Payload.(*ToolCalled).CallID
	if m.calls.Find(callKey{sub.key, id}) == nil {
		return nil
	}
	return m.refuse(ev, RuleToolCallOpen, named("call", id), "open", "a call id is not used again while its call is open; legal: another id, or agent.toolReturned first")
}

func (m *machine) toolCalled(ev *Event, sub *subject) {
	p := ev.Payload.(*ToolCalled)
	call := openCall{callKey: callKey{sub.key, p.CallID}, tool: p.ToolID, event: ev.ID, step: ev.Step.V, start: ev.Time}
	if end, late := m.beginsLate(earlyEnd{kind: KindToolCalled, agent: sub.key, id: p.CallID, span: ev.SpanID, at: ev.Time}); late {
		m.calledLate(ev, sub, p, &end)
		return
	}
	// A second call with the id of an open one replaces it: a return names the
	// later call.
	earlier, again := m.takeCall(sub.agent, call.callKey)
	if a := sub.agent; a != nil {
		call.agent = a.AgentID
		a.Counted.ToolCalls = plus(a.Counted.ToolCalls, 1)
		if call.step >= a.Resume.first {
			a.calls++
		}
		a.endUnnamed()
	}
	if m.view != nil {
		if again {
			m.view.dropCall(earlier.shown)
		}
		within := m.inside(ev, sub)
		m.view.toolCalled(ev, sub, p, &call, within, m.maker(sub, within))
	}
	m.calls.Add(call.callKey, call)
	if p.ApprovalID != "" {
		m.useApproval(p.ApprovalID, call.call)
	}
}

// calledLate joins a call that has returned and its beginning.
func (m *machine) calledLate(ev *Event, sub *subject, p *ToolCalled, end *earlyEnd) {
	other := m.agents[end.agent]
	if other != nil && end.whole {
		other.Counted.ToolCalls = max(0, other.Counted.ToolCalls-1)
	}
	if a := sub.agent; a != nil {
		a.Counted.ToolCalls = plus(a.Counted.ToolCalls, 1)
		a.endUnnamed()
	}
	if m.view != nil {
		within := m.inside(ev, sub)
		if by := m.maker(sub, within); other != nil && by != nil && other != by { // who returned the call has not made it
			other.shown.countCall(end.how, -1)
			by.shown.countCall(end.how, 1)
		}
		m.view.calledLate(ev, sub, p, end, within)
	}
	if p.ApprovalID != "" {
		m.useApproval(p.ApprovalID, m.view.keep(p.CallID))
	}
}

func (m *machine) checkToolReturned(ev *Event, sub *subject) *RuleError {
	p := ev.Payload.(*ToolReturned)
	if p.OneEvent {
		return nil
	}
	call := m.calls.Find(callKey{sub.key, p.CallID})
	if call == nil {
		if p.Status == ToolStatusForbidden || p.Status == ToolStatusRateLimited || m.Resume.cut {
			return nil
		}
		return m.refuse(ev, RuleToolCallOpen, named("call", p.CallID), "not open", named("agent", sub.key)+" has no open call with this id; legal: agent.toolCalled first, or oneEvent")
	}
	return m.checkCause(ev, RuleToolCausation, "call", p.CallID, call.event)
}

// checkCause checks that a return names the event that opened its call, if both carry ids.
func (m *machine) checkCause(ev *Event, rule Rule, what, id, opened string) *RuleError {
	if ev.CausationID == "" || opened == "" || ev.CausationID == opened {
		return nil
	}
	return m.refuse(ev, rule, named(what, id), "opened by event "+jsonwire.Brief(opened), "causationId is "+jsonwire.Brief(ev.CausationID)+"; legal: "+jsonwire.Brief(opened))
}

func (m *machine) toolReturned(ev *Event, sub *subject) {
	a, p := sub.agent, ev.Payload.(*ToolReturned)
	var call openCall
	open := false
	if p.OneEvent { // closes no open call
		if a != nil && p.wholeCall() {
			a.Counted.ToolCalls = plus(a.Counted.ToolCalls, 1)
			a.endUnnamed() // as a call of two events does
		}
	} else {
		call, open = m.takeCall(a, callKey{sub.key, p.CallID})
		if a != nil {
			m.forget(a, "tool_call", p.CallID)
		}
	}
	if a != nil {
		a.Resume.act = atToolResult
	}
	m.closeQuestionsAbout(callKey{sub.key, p.CallID}, KindToolReturned)
	m.closeQuestionsAbout(callKey{"", p.CallID}, KindToolReturned) // questions without an agent
	if len(m.approvals.byCall) > 0 && p.Status != ToolStatusInterrupted {
		for _, key := range [...]callKey{{sub.key, p.CallID}, {"", p.CallID}} {
			if id, ok := m.approvals.byCall[key]; ok {
				m.useApproval(id, m.view.keep(p.CallID))
			}
		}
	}
	counts := true
	if m.view != nil {
		within := ""
		if call.shown != nil {
			within = call.shown.Within
		}
		counts = m.view.toolReturned(ev, sub, p, call.shown, m.maker(sub, within))
	}
	refused := p.Status == ToolStatusForbidden || p.Status == ToolStatusRateLimited
	if !open && counts && !refused && (!p.OneEvent || ev.SpanID != "") { // the end of a span has begun somewhere
		m.endedFirst(earlyEnd{kind: KindToolCalled, agent: sub.key, id: p.CallID, span: ev.SpanID, at: ev.Time, word: p.ToolID, how: p.Status.constant(), took: p.Duration, whole: p.wholeCall()})
	}
}

// inside returns the agent in whose span, or in a step of which, the call or the step of an event
// begins, if that is another one than its own.
func (m *machine) inside(ev *Event, sub *subject) string {
	if m.view == nil || ev.ParentSpanID == "" {
		return ""
	}
	if a := m.bySpan[ev.ParentSpanID]; a != nil {
		if a == sub.agent {
			return ""
		}
		return a.AgentID
	}
	v := m.view
	if i, ok := v.steps.LastOpen(stepKey{span: ev.ParentSpanID}, func(i int) bool { return v.s.Steps[i].EndedAt.IsZero() }); ok {
		return v.s.Steps[i].Within
	}
	return ""
}

// maker returns the agent that people count a call for: the one in whose span it is, else its own.
func (m *machine) maker(sub *subject, within string) *AgentState {
	if a := m.agents[within]; a != nil {
		return a
	}
	return sub.agent
}

// takeCall closes a call of an agent.
func (m *machine) takeCall(a *AgentState, key callKey) (call openCall, open bool) {
	if call, open = m.calls.Take(key); open && a != nil && call.step >= a.Resume.first {
		a.calls = max(0, a.calls-1)
	}
	return call, open
}

// An openCall is a tool call that waits for its return.
type openCall struct {
	callKey
	tool  string            // empty in a fold
	event string            // id of the event that opened it
	step  int               // its agent's
	start time.Time         // of the event that opened it; zero in a fold and after a resume
	shown *ToolCallSnapshot // nil in an emitter
}

type callKey struct{ agent, call string }

// RuleModelCallOpen: a model.returned names an open model call of its agent, and a
// model call id is not used again while its call is open; exempt are returns with
// oneEvent.
const RuleModelCallOpen Rule = "model-call-open"

// RuleModelCausation: the causationId of a model.returned is the id of the event that
// opened its call.
const RuleModelCausation Rule = "model-causation"

func (m *machine) checkModelCalled(ev *Event, sub *subject) *RuleError {
	id := ev.Payload.(*ModelCalled).ModelCallID
	if m.modelCalls.Find(callKey{sub.key, id}) == nil {
		return nil
	}
	return m.refuse(ev, RuleModelCallOpen, named("model call", id), "open", "a model call id is not used again while its call is open; legal: another id, or model.returned first")
}

// modelCalled notes an open model call. A second call with the id of an open one
// replaces it: a return names the later call.
func (m *machine) modelCalled(ev *Event, sub *subject) {
	p, v := ev.Payload.(*ModelCalled), m.view
	if end, late := m.beginsLate(earlyEnd{kind: KindModelCalled, agent: sub.key, id: p.ModelCallID, at: ev.Time}); late {
		if a := sub.agent; a != nil {
			a.endUnnamed()
			v.modelCalledLate(a, ev, &end)
		}
		return
	}
	c := ModelCallSnapshot{
		Sequence: ev.Sequence, ModelCallID: v.keepBriefly(p.ModelCallID), EventID: v.keepBriefly(ev.ID), Step: ev.Step, Provider: v.intern(p.Provider), Model: v.intern(p.Model),
		Operation: v.intern(p.Operation), Attempt: p.Attempt, RetryOf: v.keepBriefly(p.RetryOf), StartedAt: ev.Time,
	}
	if a := sub.agent; a != nil {
		c.AgentID = a.AgentID
		a.Resume.act = atThinking
		a.endUnnamed()
		if v != nil {
			a.shown.ModelCalls = plus(a.shown.ModelCalls, 1)
		}
	} else {
		c.AgentID = v.intern(sub.key)
	}
	v.begins()
	m.addModelCall(c)
}

// addModelCall adds an open model call. It replaces one of the same key.
func (m *machine) addModelCall(c ModelCallSnapshot) {
	key := callKey{c.AgentID, c.ModelCallID}
	if m.modelCalls == nil {
		m.modelCalls = &roster.Roster[callKey, ModelCallSnapshot]{}
	}
	m.modelCalls.Take(key)
	m.modelCalls.Add(key, c)
}

func (m *machine) checkModelReturned(ev *Event, sub *subject) *RuleError {
	p := ev.Payload.(*ModelReturned)
	if p.OneEvent {
		return nil
	}
	call := m.modelCalls.Find(callKey{sub.key, p.ModelCallID})
	if call == nil && m.Resume.cut {
		return nil
	}
	if call == nil {
		return m.refuse(ev, RuleModelCallOpen, named("model call", p.ModelCallID), "not open", named("agent", sub.key)+" has no open model call with this id; legal: model.called first, or oneEvent")
	}
	return m.checkCause(ev, RuleModelCausation, "model call", p.ModelCallID, call.EventID)
}

func (m *machine) modelReturned(ev *Event, sub *subject) {
	p := ev.Payload.(*ModelReturned)
	var call ModelCallSnapshot
	open := false
	if !p.OneEvent { // else it closes no open call
		call, open = m.modelCalls.Take(callKey{sub.key, p.ModelCallID})
	}
	if !open && (!p.OneEvent || ev.SpanID != "") {
		m.endedFirst(earlyEnd{kind: KindModelCalled, agent: sub.key, id: p.ModelCallID, span: ev.SpanID, at: ev.Time, took: p.Duration, whole: p.OneEvent})
	}
	if open {
		m.view.ends(call.StartedAt, "", call.Model, call.Provider)
	} else {
		m.view.begins()
	}
	if m.view != nil {
		m.view.modelReturned(ev, sub, p, &call)
	}
}

// RuleDeltaIndex: the numbered deltas of a block have the indexes 0, 1, 2, …
const RuleDeltaIndex Rule = "delta-index"

// A piece has the fields that the three kinds of deltas share.
type piece struct {
	subject, id, text string
	index             Opt[int]
}

// begins reports whether the delta begins a block, whatever came before it.
func (p *piece) begins() bool { return p.id == "" && p.index.OK && p.index.V == 0 }

// pieceOf returns the piece of a delta, with the subject from the catalog.
func pieceOf(ev *Event, sub *subject) piece {
	switch p := ev.Payload.(type) {
	case *TextDelta:
		return piece{sub.kind.Subject, p.BlockID, p.Delta, p.Index}
	case *AgentReasoningDelta:
		return piece{sub.kind.Subject, p.BlockID, p.Delta, p.Index}
	case *ToolArgumentsDelta:
		return piece{sub.kind.Subject, p.CallID, p.Delta, p.Index}
	}
	return piece{}
}

func (m *machine) checkDelta(ev *Event, sub *subject) *RuleError {
	p := pieceOf(ev, sub)
	if !p.index.OK || m.atRest(sub.agent) {
		return nil
	}
	want := 0
	if sub.agent != nil {
		if b := sub.agent.block(p.subject, p.id); b != nil {
			if b.whole && p.id != "" {
				return nil // changes nothing
			}
			want = b.next
		} else if m.Resume.cut && !sub.agent.Started {
			return nil // the block may have begun before the log
		}
	} else if m.Resume.cut {
		return nil
	}
	if p.index.V == want || p.begins() {
		return nil
	}
	return m.refuse(ev, RuleDeltaIndex, named(p.subject+" block", p.id), "waiting for index "+itoa(want), "index "+itoa(p.index.V)+" is out of order; legal: "+itoa(want))
}

func (m *machine) delta(ev *Event, sub *subject) {
	a, p := sub.agent, pieceOf(ev, sub)
	if a == nil || m.atRest(a) {
		return
	}
	b := a.block(p.subject, p.id)
	switch {
	case b == nil:
		b = m.addBlock(a, p.subject, p.id)
		if m.view != nil && p.subject != "tool_call" {
			b.text = m.view.buffer()
		}
	case p.id == "" && b.whole || p.begins():
		*b = block{subject: p.subject, text: b.text[:0]} // a new block without an id
	}
	if b.whole {
		return
	}
	if p.index.OK {
		b.next = plus(p.index.V, 1)
	}
	b.size += utf8.RuneCountInString(p.text)
	if m.view != nil {
		m.view.delta(a, b, p.text)
	}
}

// wholeBlock replaces the deltas of a block by the whole block.
func (m *machine) wholeBlock(ev *Event, sub *subject) {
	a := sub.agent
	if a == nil || m.atRest(a) {
		return
	}
	id := ""
	switch p := ev.Payload.(type) {
	case *TextCompleted:
		id = p.BlockID
		a.Resume.act = a.afterText()
	case *AgentReasoned:
		id = p.BlockID
		a.Resume.act = atThinking
	}
	m.forget(a, sub.kind.Subject, id)
	if id != "" {
		m.addBlock(a, sub.kind.Subject, id).whole = true
	}
}

// maxBlocks is how many blocks an agent may have at a time; the oldest is
// forgotten first.
const maxBlocks = 64

// block returns a block of the agent, or nil.
func (a *AgentState) block(subject, id string) *block {
	blocks := a.Resume.blocks
	for i := len(blocks) - 1; i >= 0; i-- {
		if b := &blocks[i]; b.id == id && b.subject == subject {
			return b
		}
	}
	return nil
}

func (m *machine) addBlock(a *AgentState, subject, id string) *block {
	r := &a.Resume
	if len(r.blocks) == maxBlocks {
		m.forget(a, r.blocks[0].subject, r.blocks[0].id)
	}
	r.blocks = append(r.blocks, block{subject: subject, id: m.view.keepBriefly(id)})
	return &r.blocks[len(r.blocks)-1]
}

// endUnnamed ends the text and reasoning blocks without an id: after another act
// of the agent the next delta begins a new block.
func (a *AgentState) endUnnamed() {
	for i := range a.Resume.blocks {
		if b := &a.Resume.blocks[i]; b.id == "" && b.subject != "tool_call" {
			b.whole = true
		}
	}
}

// endsBlock reports whether an event, which the machine has not applied yet, ends the given block
// of its agent: either the event is the block's end, or the machine forgets the block.
func (m *machine) endsBlock(ev *Event, sub *subject, subject, id string) bool {
	return saysEnd(ev, sub, subject, id) || m.makesRoom(ev, sub, subject, id)
}

// saysEnd reports whether an event ends the given block of its agent: no delta of the event
// or after it belongs to the block.
func saysEnd(ev *Event, sub *subject, subject, id string) bool {
	own := ""
	switch p := ev.Payload.(type) {
	case *AgentStarted, *AgentEnded:
		return true
	case *NodeCompleted, *NodeFailed:
		return ev.AgentID == "" && ev.NodeRunID != "" // see nodeEnded
	case *AgentTransition:
		return p.To.Terminal() || id == "" && subject != "tool_call" // an agent at rest emits no more text
	case *ToolCalled, *ModelCalled, *TurnStarted, *TurnEnded:
		return id == "" && subject != "tool_call" // see endUnnamed
	case *ToolReturned:
		if p.OneEvent {
			return p.wholeCall() && id == "" && subject != "tool_call" // a call, too
		}
		return subject == "tool_call" && id == p.CallID
	case *TextCompleted:
		own = p.BlockID
	case *AgentReasoned:
		own = p.BlockID
	default:
		piece := pieceOf(ev, sub)
		return subject == piece.subject && id == piece.id && piece.begins()
	}
	return subject == sub.kind.Subject && id == own
}

// makesRoom reports whether the machine forgets the given block, the oldest one, for the new
// block of an event.
func (m *machine) makesRoom(ev *Event, sub *subject, subject, id string) bool {
	own := ""
	switch p := ev.Payload.(type) {
	case *TextCompleted:
		own = p.BlockID
	case *AgentReasoned:
		own = p.BlockID
	default:
		if sub.kind.Role != RoleDelta {
			return false
		}
		own = pieceOf(ev, sub).id
	}
	a := sub.agent
	return a != nil && len(a.Resume.blocks) == maxBlocks && a.Resume.blocks[0].id == id && a.Resume.blocks[0].subject == subject &&
		!m.atRest(a) && a.block(sub.kind.Subject, own) == nil
}

func (m *machine) forget(a *AgentState, subject, id string) {
	blocks := a.Resume.blocks
	for i := range blocks {
		if blocks[i].id == id && blocks[i].subject == subject {
			m.view.release(blocks[i].text)
			a.Resume.blocks = slices.Delete(blocks, i, i+1)
			return
		}
	}
}

// blockSize returns the number of characters in the deltas of a reasoning block so
// far.
func (a *AgentState) blockSize(id string) int {
	if a == nil {
		return 0
	}
	if b := a.block("reasoning", id); b != nil {
		return b.size
	}
	return 0
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
	return m.refuse(ev, RulePhaseOpen, named("phase", ev.Phase), "not open", "only an open phase is completed; legal: workflow.phase.started first")
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
	key := newHandoffKey(p.member("handoffId"), cmp.Or(p.member("from"), p.member("fromAgent")), cmp.Or(p.member("to"), p.member("toAgent")))
	m.endedFirst(earlyEnd{kind: KindHandoffRequested, id: key.String(), span: ev.SpanID, at: ev.Time, word: word, why: beginning(reasonOf(p))})
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
	return cmp.Or(p.member("reason"), p.member("message"), p.member("error"), jsonwire.Text(jsonwire.Member(jsonwire.Member(string(p.Raw), "error"), "message")))
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
			return m.refuse(ev, RuleWorkflowContext, named("phase", ev.Phase), "without workflowId", "events of a workflow carry workflowId")
		}
		if ev.WorkflowID != "" && ev.Phase == "" && m.inPhase(ev.WorkflowID) && ofAgents(ev.Kind()) {
			return m.refuse(ev, RuleWorkflowContext, named("workflow", ev.WorkflowID), "inside a phase", "agent events inside a phase carry phase")
		}
		return nil
	}
	if ev.WorkflowID == "" {
		return m.refuse(ev, RuleWorkflowContext, "", "", "workflow events carry workflowId")
	}
	if kind&ofPhase != 0 && ev.Phase == "" {
		return m.refuse(ev, RuleWorkflowContext, named("workflow", ev.WorkflowID), "", "phase and checkpoint events carry phase")
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
	return m.refuse(ev, RuleHandoffOpen, named("handoff", key.String()), "not open", "only an open handoff is accepted; legal: handoff.requested first")
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
	key, at := m.view.handoffRequested(ev, p, key)
	end.span = ev.SpanID
	if end, late := m.beginsLate(end); !late {
		m.workflows().handoffs.Add(key, at)
	} else if m.view != nil {
		h := &m.view.s.Handoffs[at]
		if h.Open = false; end.word != "" {
			h.Ended = m.view.intern(end.word)
			if end.why != "" {
				h.Error = Some(ErrorInfo{Message: m.view.keep(end.why)})
			}
		}
	}
	m.nameAgents(ev, nil)
}

func (m *machine) handoffAccepted(ev *Event, _ *subject) {
	p := ev.Payload.(*HandoffAccepted)
	key := newHandoffKey(p.HandoffID, p.From.AgentID, p.To.AgentID)
	m.openHandoff(key)
	at, open := m.workflows().handoffs.Take(key)
	switch {
	case !open:
		m.endedFirst(earlyEnd{kind: KindHandoffRequested, id: key.String(), span: ev.SpanID, at: ev.Time})
	case m.view != nil:
		m.view.s.Handoffs[at].Open = false
	}
	m.nameAgents(ev, nil)
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
		return m.refuse(ev, RuleMessageGroup, named("message", msg.MessageID), "without groupId", "a sender that shares its context by group sets groupId")
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
		return m.refuse(ev, RuleMessageID, named("message", p.Message.MessageID), "recorded", "the content differs from the first message with this id, which stays")
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

// plus returns a + b, or the highest T when the sum overflows.
func plus[T ~int | ~int64](a, b T) T {
	sum := a + b
	if b > 0 && sum < a {
		most := int64(math.MaxInt64)
		if int64(T(most)) != most { // an int of 32 bits
			most = math.MaxInt32
		}
		return T(most)
	}
	return sum
}

// named returns the text of an error's subject, such as: call "c7".
func named(what, id string) string {
	if id == "" {
		return what
	}
	return what + " " + jsonwire.Brief(id)
}

// wordList returns the words with commas between them.
func wordList[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

func itoa(n int) string { return strconv.Itoa(n) }
