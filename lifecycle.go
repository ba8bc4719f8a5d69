package agentevents

import (
	"slices"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// AgentStatus says what an agent is doing (KAHN's agent_status). An agent begins
// with [StatusThinking]; [StatusConverged] and [StatusFailed] are terminal. A
// [Lifecycle] says which status may follow which.
type AgentStatus string

// The statuses, in the order of KAHN's enum.
const (
	StatusThinking               AgentStatus = "thinking"                 // works out what to do; begins a step
	StatusToolCall               AgentStatus = "tool_call"                // waits for a tool
	StatusToolResult             AgentStatus = "tool_result"              // reads what a tool returned
	StatusResponse               AgentStatus = "response"                 // answers
	StatusReflect                AgentStatus = "reflect"                  // judges its own work
	StatusBlockedOnClarification AgentStatus = "blocked-on-clarification" // waits for a person
	StatusConverged              AgentStatus = "converged"                // has a stable answer; terminal
	StatusFailed                 AgentStatus = "failed"                   // has given up; terminal
)

var statuses = [...]AgentStatus{StatusThinking, StatusToolCall, StatusToolResult, StatusResponse, StatusReflect, StatusBlockedOnClarification, StatusConverged, StatusFailed}

// index returns the index of s in statuses, or -1.
func (s AgentStatus) index() int {
	switch s {
	case StatusThinking:
		return 0
	case StatusToolCall:
		return 1
	case StatusToolResult:
		return 2
	case StatusResponse:
		return 3
	case StatusReflect:
		return 4
	case StatusBlockedOnClarification:
		return 5
	case StatusConverged:
		return 6
	case StatusFailed:
		return 7
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

// AgentOutcome says how an agent ended (KAHN's agent_outcome). The empty string
// means that the producer does not say. There is no word for failed: the end of an agent
// that failed has an Error, and perhaps [OutcomeAborted].
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
	// LifecycleStrict is exactly KAHN's status diagram. The program says every
	// transition itself:
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
	// LifecycleDerived is for runtimes that do not want to think of statuses: the
	// emitter writes the transitions that follow from what an agent does. Its table
	// allows every move between different statuses that are not terminal, any of
	// these to a terminal one, and
	//
	//	converged → thinking           another turn
	//
	// An agent is blocked-on-clarification while it waits for the answer to a
	// question or an approval; else in tool_call while a call of its current attempt is open; else its
	// last act tells: thinking after a model call or reasoning, response after text,
	// tool_result after a return. A transition, marked [MarkSynthetic], stands in front of an
	// event exactly when the status changes with it: both are recorded, or neither.
	// Text does not leave reflect. The move to thinking begins a step, unless an
	// answer to the agent or a retried model call causes it. An end adds converged or failed, as its outcome
	// or error says. [Agent.To] adds what no event tells, such as reflect.
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

const (
	lasting  = 1<<6 - 1    // the statuses that are not terminal
	terminal = 1<<6 | 1<<7 // converged and failed
)

// transitions[l][i] is the set of statuses that may follow statuses[i] under
// lifecycles[l].
var transitions = [...][len(statuses)]uint8{
	0: {
		0: to(StatusToolCall, StatusBlockedOnClarification, StatusFailed),
		1: to(StatusToolResult),
		2: to(StatusResponse),
		3: to(StatusReflect),
		4: to(StatusThinking, StatusConverged),
		5: to(StatusThinking),
	},
	1: {
		0: to(StatusToolCall, StatusResponse, StatusBlockedOnClarification, StatusFailed),
		1: to(StatusToolCall, StatusToolResult, StatusBlockedOnClarification, StatusFailed),
		2: to(StatusThinking, StatusToolCall, StatusToolResult, StatusResponse, StatusFailed),
		3: to(StatusThinking, StatusToolCall, StatusReflect, StatusConverged, StatusFailed),
		4: to(StatusThinking, StatusConverged, StatusFailed),
		5: to(StatusThinking, StatusToolCall, StatusFailed),
		6: to(StatusThinking),
	},
	2: {
		0: lasting&^(1<<0) | terminal,
		1: lasting&^(1<<1) | terminal,
		2: lasting&^(1<<2) | terminal,
		3: lasting&^(1<<3) | terminal,
		4: lasting&^(1<<4) | terminal,
		5: lasting&^(1<<5) | terminal,
		6: to(StatusThinking),
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
