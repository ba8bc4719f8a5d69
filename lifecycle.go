package agentevents

import "strings"

// AgentStatus is what an agent is doing (KAHN's agent_status). Agents begin
// with [StatusThinking]; [StatusConverged] and [StatusFailed] are terminal.
type AgentStatus string

// The statuses, in the order of KAHN's enum.
const (
	StatusThinking               AgentStatus = "thinking"                 // working out what to do; begins a step
	StatusToolCall               AgentStatus = "tool_call"                // waiting for a tool
	StatusToolResult             AgentStatus = "tool_result"              // a tool has returned
	StatusResponse               AgentStatus = "response"                 // answering
	StatusReflect                AgentStatus = "reflect"                  // judging its own work
	StatusBlockedOnClarification AgentStatus = "blocked-on-clarification" // waiting for a person
	StatusConverged              AgentStatus = "converged"                // reached a stable answer; terminal
	StatusFailed                 AgentStatus = "failed"                   // gave up; terminal
)

var statuses = [...]AgentStatus{StatusThinking, StatusToolCall, StatusToolResult, StatusResponse, StatusReflect, StatusBlockedOnClarification, StatusConverged, StatusFailed}

// index returns the status's place in statuses, or -1.
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

// Terminal reports whether s is [StatusConverged] or [StatusFailed].
func (s AgentStatus) Terminal() bool { return s == StatusConverged || s == StatusFailed }

// AgentOutcome is how an agent ended (KAHN's agent_outcome). The empty string
// means that the document does not say.
type AgentOutcome string

// The outcomes.
const (
	OutcomeConverged AgentOutcome = "converged" // reached a stable answer
	OutcomePartial   AgentOutcome = "partial"   // stopped with part of it
	OutcomeEscaped   AgentOutcome = "escaped"   // left its scope, but exited gracefully
	OutcomeAborted   AgentOutcome = "aborted"   // ended from outside: timeout, kill, operator
)

func (o AgentOutcome) known() bool {
	switch o {
	case OutcomeConverged, OutcomePartial, OutcomeEscaped, OutcomeAborted:
		return true
	}
	return false
}

// AuditResult is the verdict of an audit (KAHN's audit_result).
type AuditResult string

// The verdicts.
const (
	AuditPass AuditResult = "pass"
	AuditFail AuditResult = "fail"
	AuditWarn AuditResult = "warn" // counted as neither passed nor failed
)

func (r AuditResult) known() bool { return r == AuditPass || r == AuditFail || r == AuditWarn }

// constant returns the word itself when r is one.
func (r AuditResult) constant() AuditResult {
	for _, c := range [...]AuditResult{AuditPass, AuditFail, AuditWarn} {
		if r == c {
			return c
		}
	}
	return AuditResult(strings.Clone(string(r)))
}

// A Lifecycle is a table of the status transitions that are legal.
type Lifecycle uint8

const (
	// LifecycleStrict is KAHN's status diagram, exactly, and the default:
	//
	//	thinking → tool_call → tool_result → response → reflect
	//	reflect → thinking, converged
	//	thinking → blocked-on-clarification → thinking
	//	thinking → failed
	LifecycleStrict Lifecycle = iota
	// LifecycleRelaxed is for runs that nobody controls. Measured on 448 runs of real
	// agents, about half of the adjacent steps are illegal under Strict.
	// Relaxed adds
	//
	//	thinking → response            an answer without a tool
	//	response → thinking, tool_call, converged
	//	tool_result → thinking, tool_call, tool_result
	//	tool_call → tool_call          calls in parallel
	//	tool_call ↔ blocked-on-clarification
	//	converged → thinking           a further turn
	//	any but converged → failed
	LifecycleRelaxed
)

// transitions[l][i] is the set of statuses that may follow statuses[i].
var transitions = [...][len(statuses)]uint8{
	LifecycleStrict: {
		0: to(StatusToolCall, StatusBlockedOnClarification, StatusFailed),
		1: to(StatusToolResult),
		2: to(StatusResponse),
		3: to(StatusReflect),
		4: to(StatusThinking, StatusConverged),
		5: to(StatusThinking),
	},
	LifecycleRelaxed: {
		0: to(StatusToolCall, StatusResponse, StatusBlockedOnClarification, StatusFailed),
		1: to(StatusToolCall, StatusToolResult, StatusBlockedOnClarification, StatusFailed),
		2: to(StatusThinking, StatusToolCall, StatusToolResult, StatusResponse, StatusFailed),
		3: to(StatusThinking, StatusToolCall, StatusReflect, StatusConverged, StatusFailed),
		4: to(StatusThinking, StatusConverged, StatusFailed),
		5: to(StatusThinking, StatusToolCall, StatusFailed),
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

// Allows reports whether an agent may move from one status to the other.
func (l Lifecycle) Allows(from, to AgentStatus) bool {
	f, t := from.index(), to.index()
	return f >= 0 && t >= 0 && int(l) < len(transitions) && transitions[l][f]&(1<<t) != 0
}

// Next returns the statuses that may follow from, in the enum's order.
func (l Lifecycle) Next(from AgentStatus) []AgentStatus {
	var next []AgentStatus
	for _, s := range statuses {
		if l.Allows(from, s) {
			next = append(next, s)
		}
	}
	return next
}

// String returns "strict" or "relaxed".
func (l Lifecycle) String() string {
	if l == LifecycleRelaxed {
		return "relaxed"
	}
	return "strict"
}
