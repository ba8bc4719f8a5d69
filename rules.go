package agentevents

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

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
	derives                         bool   // of an emitter: the next start names LifecycleDerived, if none named a table
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
	told    bool        // the event ends an attempt of an agent that has ended: it adds its members
	sound   bool        // the event's JSON and texts were checked when it was read

	// Of an emitter.
	bound     bool       // the rules of rules_emit.go hold for the event
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
			return (&fieldError{RuleFieldRequired, "/agentId",
				"is required, unless nodeRunId or the spanId of agent.started names the agent"}).asError(ev)
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
				a.shown.NodeID, a.shown.NodeRunID = m.view.intern(ev.NodeID), m.view.intern(ev.NodeRunID)
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
	return m.refuse(ev, RuleRun, named("run", m.RunID), "",
		"runId is "+jsonwire.Brief(ev.RunID)+"; legal: "+jsonwire.Brief(m.RunID))
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

// An earlyEnd is the end of a thing whose start is not in the log so far. A start of an earlier
// time than the end, whose line was written late, is that start: the thing is one, and over. One
// table holds them for everything that begins and ends, and the emitter keeps it as the fold does.
type earlyEnd struct {
	kind  Kind               `wire:"kind"`            // of the start
	agent string             `wire:"agent,omitzero"`  // the key of the agent; empty where the id is enough
	id    string             `wire:"id,omitzero"`     // of the call, the question, the step …
	span  string             `wire:"span,omitzero"`   // of the end
	at    time.Time          `wire:"at"`              // of the end
	word  string             `wire:"word,omitzero"`   // of a call the tool; of an approval granted or not; of a handoff that is not accepted the word
	why   string             `wire:"why,omitzero"`    // of such a handoff
	how   ToolStatus         `wire:"how,omitzero"`    // of a call
	took  Opt[time.Duration] `wire:"tookMs,omitzero"` // as the end states it
	whole bool               `wire:"whole,omitzero"`  // the end counts as a call of its own
}

// maxEarly is how many of them are remembered: the latest.
const maxEarly = 256

// endedFirst remembers the end of a thing that has not begun. Without a time nobody can tell
// whether a start comes late.
func (m *machine) endedFirst(e earlyEnd) {
	if !TimeKnown(e.at) {
		return
	}
	if len(m.Resume.early) == maxEarly {
		m.Resume.early = slices.Delete(m.Resume.early, 0, 1)
	}
	for _, text := range [...]*string{&e.agent, &e.id, &e.span, &e.word, &e.why} {
		*text = strings.Clone(*text) // keeps no line alive
	}
	m.Resume.early = append(m.Resume.early, e)
}

// beginsLate reports whether a start is that of a thing which has ended, the latest one, and
// forgets the end.
func (m *machine) beginsLate(start earlyEnd) (end earlyEnd, late bool) {
	if len(m.Resume.early) == 0 || !TimeKnown(start.at) {
		return earlyEnd{}, false
	}
	for i, e := range slices.Backward(m.Resume.early) {
		if e.kind == start.kind && start.at.Before(e.at) && e.same(&start) {
			m.Resume.early = orNil(slices.Delete(m.Resume.early, i, i+1))
			return e, true
		}
	}
	return earlyEnd{}, false
}

// same reports whether a start and an end are of one thing. A turn or a step is known by its span,
// as an end may lack the number, and the id of its step may be made up.
func (e *earlyEnd) same(start *earlyEnd) bool {
	if (e.kind == KindTurnStarted || e.kind == KindStepStarted) && e.span != "" && start.span != "" {
		return e.span == start.span && sameOrUnsaid(e.agent, start.agent)
	}
	sameSpan := e.span != "" && e.span == start.span
	switch {
	case e.kind == KindHandoffRequested && e.id == (handoffKey{}).String():
		return sameSpan // the end names nobody
	case e.id != start.id:
		return false
	case e.kind == KindToolCalled && sameSpan:
		return true // another one may have returned it
	}
	return e.agent == start.agent
}

// renameEarly gives the ends of an agent that was known by a span to its id.
func (m *machine) renameEarly(was, is string) {
	for i := range m.Resume.early {
		if e := &m.Resume.early[i]; e.agent == was {
			e.agent = is
		}
	}
}
