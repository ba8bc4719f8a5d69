package agentevents

import (
	"math"
	"slices"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/reentry"
)

// AgentStatus is the current activity of an agent (KAHN's agent_status). An agent begins with
// [StatusThinking]; [StatusConverged] and [StatusFailed] are terminal. A [Lifecycle] lists which
// status may follow which.
type AgentStatus string

// The statuses, in the order of KAHN's enum.
const (
	StatusThinking               AgentStatus = "thinking"                 // decides on the next act; begins a step
	StatusToolCall               AgentStatus = "tool_call"                // waits for a tool
	StatusToolResult             AgentStatus = "tool_result"              // reads the result of a tool
	StatusResponse               AgentStatus = "response"                 // answers
	StatusReflect                AgentStatus = "reflect"                  // judges its own work
	StatusBlockedOnClarification AgentStatus = "blocked-on-clarification" // waits for a person
	StatusConverged              AgentStatus = "converged"                // has a stable answer; terminal
	StatusFailed                 AgentStatus = "failed"                   // has given up; terminal
)

var statuses = [...]AgentStatus{StatusThinking, StatusToolCall, StatusToolResult,
	StatusResponse, StatusReflect, StatusBlockedOnClarification, StatusConverged, StatusFailed}

// Indexes of statuses.
const (
	atThinking = iota
	atToolCall
	atToolResult
	atResponse
	atReflect
	atBlocked
	atConverged
	atFailed
)

// index returns the index of s in statuses, or -1.
func (s AgentStatus) index() int {
	switch s {
	case StatusThinking:
		return atThinking
	case StatusToolCall:
		return atToolCall
	case StatusToolResult:
		return atToolResult
	case StatusResponse:
		return atResponse
	case StatusReflect:
		return atReflect
	case StatusBlockedOnClarification:
		return atBlocked
	case StatusConverged:
		return atConverged
	case StatusFailed:
		return atFailed
	}
	return -1
}

func (s AgentStatus) known() bool { return s.index() >= 0 }

// shown is the status in an error: a log may have any text for one.
func (s AgentStatus) shown() string {
	if s.known() {
		return string(s)
	}
	return jsonwire.Word(string(s))
}

func (AgentStatus) words() []AgentStatus { return statuses[:] }

// Terminal reports whether s is [StatusConverged] or [StatusFailed].
func (s AgentStatus) Terminal() bool { return s == StatusConverged || s == StatusFailed }

// AgentOutcome tells how an agent ended (KAHN's agent_outcome). The empty string means that the
// producer does not tell. There is no word for failed: the end of an agent that failed has an
// Error, and perhaps [OutcomeAborted].
type AgentOutcome string

// The outcomes.
const (
	OutcomeConverged AgentOutcome = "converged" // reached a stable answer
	OutcomePartial   AgentOutcome = "partial"   // stopped with a part of the answer
	OutcomeEscaped   AgentOutcome = "escaped"   // left its scope and exited gracefully
	OutcomeAborted   AgentOutcome = "aborted"   // was ended from outside: timeout, kill, operator
)

var agentOutcomes = []AgentOutcome{OutcomeConverged, OutcomePartial, OutcomeEscaped, OutcomeAborted}

func (o AgentOutcome) known() bool { return slices.Contains(agentOutcomes, o) }

func (AgentOutcome) words() []AgentOutcome { return agentOutcomes }

// AuditResult is the verdict of an audit (KAHN's audit_result).
type AuditResult string

// The verdicts.
const (
	AuditPass AuditResult = "pass" // passed
	AuditFail AuditResult = "fail" // failed
	AuditWarn AuditResult = "warn" // warned; counts as neither passed nor failed
)

var auditResults = []AuditResult{AuditPass, AuditFail, AuditWarn}

func (r AuditResult) known() bool { return slices.Contains(auditResults, r) }

func (AuditResult) words() []AuditResult { return auditResults }

func (r AuditResult) constant() AuditResult { return constantOf(auditResults, r) }

// A Lifecycle names a table of legal status transitions (rule transition-legal).
// The empty Lifecycle is the default of the option that has it.
type Lifecycle string

// The lifecycles.
const (
	// LifecycleStrict is exactly KAHN's status diagram. The program emits every transition itself:
	//
	//	thinking → tool_call → tool_result → response → reflect
	//	reflect → thinking, converged
	//	thinking → blocked-on-clarification → thinking
	//	thinking → failed
	LifecycleStrict Lifecycle = "strict"
	// LifecycleRelaxed fits agents that do not follow KAHN's diagram: in 448
	// recorded runs of real agents, LifecycleStrict forbids about half of the
	// transitions. It adds
	//
	//	thinking → response            an answer without a tool
	//	response → thinking, tool_call, converged
	//	tool_result → thinking, tool_call, tool_result
	//	tool_call → tool_call          parallel calls
	//	tool_call ↔ blocked-on-clarification
	//	converged → thinking           another turn
	//	any but converged → failed
	LifecycleRelaxed Lifecycle = "relaxed"
	// LifecycleDerived is for runtimes that do not want to think of statuses: the emitter writes
	// the transitions that follow from an agent's acts. Its table allows every move between
	// different statuses that are not terminal, any of these to a terminal one, and
	//
	//	converged → thinking           another turn
	//
	// An agent is blocked-on-clarification while it waits for the answer to a question or an
	// approval; else in tool_call while a call of its current attempt is open; else its last act
	// tells: thinking after a model call or reasoning, response after text, tool_result after a
	// return. A transition, marked [MarkSynthetic], stands in front of an event exactly when the
	// status changes with it: both are recorded, or neither. Text does not leave reflect. The move
	// to thinking begins a step, unless an answer to the agent or a retried model call causes it.
	// An end adds converged or failed, according to its outcome or error. [Agent.To] adds statuses
	// that no event implies, such as reflect.
	//
	// The table is in force once a start of the run or of an agent has named it. In front
	// of that, which is mostly a run resumed from a log that names none, no transition is
	// legal or derived that is not in the relaxed table: readers go by it there.
	LifecycleDerived Lifecycle = "derived"
)

var lifecycles = []Lifecycle{LifecycleStrict, LifecycleRelaxed, LifecycleDerived}

// index returns the index of l in lifecycles, or -1.
func (l Lifecycle) index() int {
	switch l {
	case LifecycleStrict:
		return 0
	case LifecycleRelaxed:
		return 1
	case LifecycleDerived:
		return 2
	}
	return -1
}

func (l Lifecycle) known() bool { return l.index() >= 0 }

func (Lifecycle) words() []Lifecycle { return lifecycles }

func (l Lifecycle) constant() Lifecycle { return constantOf(lifecycles, l) }

// anyStatus is the set of all statuses.
const anyStatus = 1<<len(statuses) - 1

// transitions[l][i] is the set of statuses that may follow statuses[i] under
// lifecycles[l].
var transitions = [...][len(statuses)]uint8{
	{ // strict
		atThinking:   to(StatusToolCall, StatusBlockedOnClarification, StatusFailed),
		atToolCall:   to(StatusToolResult),
		atToolResult: to(StatusResponse),
		atResponse:   to(StatusReflect),
		atReflect:    to(StatusThinking, StatusConverged),
		atBlocked:    to(StatusThinking),
	},
	{ // relaxed
		atThinking:   to(StatusToolCall, StatusResponse, StatusBlockedOnClarification, StatusFailed),
		atToolCall:   to(StatusToolCall, StatusToolResult, StatusBlockedOnClarification, StatusFailed),
		atToolResult: to(StatusThinking, StatusToolCall, StatusToolResult, StatusResponse, StatusFailed),
		atResponse:   to(StatusThinking, StatusToolCall, StatusReflect, StatusConverged, StatusFailed),
		atReflect:    to(StatusThinking, StatusConverged, StatusFailed),
		atBlocked:    to(StatusThinking, StatusToolCall, StatusFailed),
		atConverged:  to(StatusThinking),
	},
	{ // derived
		atThinking:   anyStatus &^ (1 << atThinking),
		atToolCall:   anyStatus &^ (1 << atToolCall),
		atToolResult: anyStatus &^ (1 << atToolResult),
		atResponse:   anyStatus &^ (1 << atResponse),
		atReflect:    anyStatus &^ (1 << atReflect),
		atBlocked:    anyStatus &^ (1 << atBlocked),
		atConverged:  to(StatusThinking),
	},
}

func to(next ...AgentStatus) uint8 {
	var set uint8
	for _, s := range next {
		set |= 1 << s.index()
	}
	return set
}

// Allows reports whether an agent may move from the status from to the status to.
// An unknown status or table allows nothing.
func (l Lifecycle) Allows(from, to AgentStatus) bool {
	table, f, t := l.index(), from.index(), to.index()
	return table >= 0 && f >= 0 && t >= 0 && transitions[table][f]&(1<<t) != 0
}

// Next returns the statuses that may follow from, in the order of KAHN's enum.
func (l Lifecycle) Next(from AgentStatus) []AgentStatus {
	var next []AgentStatus
	for _, s := range statuses {
		if l.Allows(from, s) {
			next = append(next, s)
		}
	}
	return next
}

// The transitions of LifecycleDerived: which status follows from an agent's acts, and how the
// emitter records the transition with the event that causes it.

// untold is the set of statuses that no act tells: open calls and questions do.
const untold = 1<<atToolCall | 1<<atBlocked

// afterText returns the status that a text tells.
func (a *AgentState) afterText() int {
	if a != nil && a.Resume.act == atReflect {
		return atReflect
	}
	return atResponse
}

// derived returns the agent that an event moves, and the statuses that it moves from
// and to. The key is empty when the event moves no agent. The machine has not applied
// the event yet.
func (m *machine) derived(ev *Event, sub *subject) (key string, from, to AgentStatus) {
	key = sub.key
	a := sub.agent
	if answer := answerOf(ev); answer.kind != "" {
		q := m.questions.open[answer]
		if q == nil || q.call.agent == "" {
			return "", "", "" // anybody may answer; it moves who asked
		}
		key = q.call.agent
		a = m.find(key)
	}
	if sub.kind.Role == RoleDelta && ev.Marks.Has(MarkSynthetic) {
		return "", "", "" // held-back text of a block is not an act
	}
	if ev.Marks.Has(MarkLate) || a != nil && a.Ended || a == nil && ev.AgentID == "" && ev.NodeRunID == "" {
		return "", "", ""
	}
	from = StatusThinking
	act, calls, questions := atThinking, 0, m.questions.of(key)
	if a != nil {
		from, act, calls = a.Status, a.Resume.act, a.calls
	}
	switch p := ev.Payload.(type) {
	case *AgentReasoned, *AgentReasoningDelta, *ModelCalled:
		act = atThinking
	case *ModelReturned:
		if !p.OneEvent {
			return "", "", ""
		}
		act = atThinking
	case *TextDelta, *TextCompleted:
		act = a.afterText()
	case *ToolCalled:
		calls++
	case *ToolReturned:
		act = atToolResult
		closes := callKey{sub.key, p.CallID}
		if call := m.calls.Find(closes); call != nil && !p.OneEvent && a != nil && call.step >= a.Resume.first {
			calls--
		}
		questions -= m.questions.about(closes)
	case *ApprovalRequested, *ClarificationRequested:
		if key == "" {
			return "", "", ""
		}
		questions++
	case *ApprovalGranted, *ApprovalRejected, *ClarificationResolved:
		questions--
	case *AgentEnded:
		switch {
		case p.Outcome == OutcomeAborted || p.Error.OK:
			to = StatusFailed
		case p.Outcome == OutcomeConverged:
			to = StatusConverged
		}
	default:
		return "", "", ""
	}
	switch {
	case sub.kind.Kind == KindAgentEnded:
	case questions > 0:
		to = StatusBlockedOnClarification
	case calls > 0:
		to = StatusToolCall
	default:
		to = statuses[act]
	}
	if from == to || !m.table().Allows(from, to) {
		return "", "", "" // an agent that may not move there may not do this either
	}
	return key, from, to
}

// answerOf returns the key of the question that an event answers; its kind is empty when
// the event answers none.
func answerOf(ev *Event) questionKey {
	if p, ok := ev.Payload.(*ClarificationResolved); ok {
		return questionKey{KindClarificationRequested, p.InterruptID}
	}
	return approvalOf(ev)
}

// sameStep reports whether an event that makes the agent think begins no step.
func sameStep(ev *Event) bool {
	if p, ok := ev.Payload.(*ModelCalled); ok {
		return p.RetryOf != "" || p.Attempt.V > 1
	}
	return answerOf(ev).kind != ""
}

// derive adds an event with the transition that stands in front of it: both or neither.
// It returns false when the event moves no agent, and does nothing then.
func (s *runState) derive(ctx *reentry.Call, ev *Event, sub *subject,
	head string, done *outcome) (moved bool, refused, err error) {
	key, from, to := s.m.derived(ev, sub)
	if key == "" || ev.Sequence >= math.MaxUint64-1 {
		return false, nil, nil
	}
	var t Event
	var tsub subject
	s.transition(&t, &tsub, ev, sub, key, &AgentTransition{From: from, To: to})

	// The event is checked as if the agent had moved.
	ev.Sequence++
	sub.moved = true
	if key == sub.key {
		var moved AgentState // of an agent that has no event yet
		if sub.agent != nil {
			moved = *sub.agent // others may read it meanwhile
		}
		moved.Status = to
		if t.Step.OK {
			moved.reach(t.Step.V, false)
		}
		sub.agent = &moved
	}
	s.fill(ev, sub)
	refused = s.admit(ev, sub)
	sub.agent = s.m.find(sub.key)
	if refused == nil {
		refused = s.admit(&t, &tsub)
	}
	if refused != nil {
		return true, refused, nil
	}
	long := s.fit(&t, &tsub, "", mostEnvelope)
	if long == nil && s.streams.any() {
		long = s.fitWithout(*ev) // before blocks end
	}
	if long != nil {
		return true, long, nil
	}
	if held := s.streams.take(&t, &tsub); held != nil {
		err = s.flush(ctx, held, t.Time, done)
	}
	var c cleaner
	refused, cerr := s.clean(ctx, ev, sub, head, &c, done)
	if err = join(err, cerr); refused != nil {
		return true, refused, err
	}
	err = join(err, s.deliver(ctx, &t, &tsub, "", &cleaner{}, done))
	s.m.identify(sub, ev) // the transition may be the agent's first event, or name it
	err = join(err, s.deliver(ctx, ev, sub, head, &c, done))
	done.recorded = true
	return true, nil, err
}

// transition makes t, the transition p of the agent key that stands in front of ev, and its
// subject.
func (s *runState) transition(t *Event, tsub *subject, ev *Event, sub *subject, key string, p *AgentTransition) {
	*t = Event{
		RunID: ev.RunID, Sequence: ev.Sequence, SchemaVersion: ev.SchemaVersion,
		Time: ev.Time, Scope: ev.Scope, AgentID: ev.AgentID, Step: ev.Step,
		TraceID: ev.TraceID, SpanID: ev.SpanID, ParentSpanID: ev.ParentSpanID,
		Marks: ev.Marks&MarkReplayed | MarkSynthetic, Payload: p,
	}
	switch {
	case key != sub.key: // the answer moves who asked
		t.AgentID, t.NodeID, t.NodeRunID, t.SpanID, t.ParentSpanID, t.Step = key, "", "", "", "", Opt[int]{}
	case ev.AgentID == "" && ev.NodeRunID == "": // the span of its start names the agent
		t.SpanID, t.ParentSpanID = "", key
		if a := sub.agent; a != nil && a.SpanID != "" {
			t.ParentSpanID = a.SpanID // it may have a name by now
		}
	}
	if t.Phase == "" && s.m.inPhase(t.WorkflowID) {
		t.WorkflowID = "" // agent events inside a phase carry it; answers and model calls need not
	}
	s.m.resolve(tsub, t, p)
	if a := tsub.agent; a != nil {
		at := a.current()
		switch {
		case t.Step.OK && t.Step.V < at.V: // the event breaks the rule, not its transition
			t.Step = at
		case !t.Step.OK && !a.Resume.renew && sameStep(ev):
			t.Step = at
		}
	}
	s.fill(t, tsub)
}
