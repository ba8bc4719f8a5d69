package agentevents

import (
	"slices"

	"github.com/agentevents/agentevents/internal/jsonwire"
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

var statuses = [...]AgentStatus{StatusThinking, StatusToolCall, StatusToolResult, StatusResponse, StatusReflect, StatusBlockedOnClarification, StatusConverged, StatusFailed}

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
