package agentevents

import "time"

// Agents: one participant of a run, from its start through its statuses to
// its end. Several may work in one run at the same time; each has its own
// steps and its own status.

// AgentStarted opens an agent. Its status becomes [StatusThinking]; no event
// announces that first status. An agent starts once until it has ended; it may
// start again after [AgentEnded], after [RunResumed], or with Resumed set
// (rule agent-started-once). The envelope's ParentAgentID and ParentCallID say
// who spawned it.
//
// Mirrors: KAHN agent_run_start; wiki agent.spawned; KAOS span subagent/start;
// resume spec agent:start.
type AgentStarted struct {
	Agent Opt[AgentRef] `json:"agent,omitzero" class:"meta"`   // identity, sharing and model class
	Task  string        `json:"task,omitzero" class:"content"` // what it is to do; the wiki's agentTask
	Model string        `json:"model,omitzero" class:"meta"`   // model name as the provider spells it
	// ProviderSessionID is the id that resumes the agent at its provider; the
	// resume spec's sessionId, kept in [RunSnapshot].AgentSessions.
	ProviderSessionID string `json:"providerSessionId,omitzero" class:"id"`
	// Prompt is a JSON string or a list of messages.
	Prompt JSON `json:"prompt,omitzero" class:"content"`
	// Attempt counts the starts of this agent from 1.
	Attempt Opt[int] `json:"attempt,omitzero" class:"meta" check:"min=1"`
	// Resumed marks a start that continues an earlier one which may not have
	// ended in this log.
	Resumed bool `json:"resumed,omitzero" class:"meta"`

	extra extras
}

// AgentTransition moves an agent from one status to the next. From is the
// agent's current status (rule transition-from-current), and the pair is an
// edge of the lifecycle in force (rule transition-legal). Entering [StatusThinking]
// again begins a new step.
//
// Mirrors: KAHN agent_transition.
type AgentTransition struct {
	From AgentStatus `json:"from" class:"meta"` // current status
	To   AgentStatus `json:"to" class:"meta"`   // next status
	// Reason is why, by KAHN's convention "kind" or "kind:detail", such as
	// "tool_call:Read".
	Reason string `json:"reason,omitzero" class:"content" fold:"-"`

	extra extras
}

// AgentEnded closes an agent. It is legal from any status, so that every way
// out of a program can have exactly one end; after it only a new
// [AgentStarted] may follow (rule agent-ended-final).
//
// Mirrors: KAHN agent_run_end; wiki agent.completed; KAOS span
// subagent/complete, subagent/error; resume spec agent:complete.
type AgentEnded struct {
	// Outcome is empty where the document read does not state one.
	Outcome AgentOutcome `json:"outcome,omitzero" class:"meta"`
	// Error is set when the agent ended because of an error.
	Error Opt[ErrorInfo] `json:"error,omitzero" class:"content"`
	// Result is the agent's final text.
	Result string `json:"result,omitzero" class:"content"`
	// StructuredOutput is the parsed result where a schema was given.
	StructuredOutput JSON `json:"structuredOutput,omitzero" class:"content"`
	// Usage is what the agent itself used, without its sub-agents.
	Usage Opt[Usage] `json:"usage,omitzero" class:"meta"`
	// ModelUsage is the use per model, sub-agents included. Where it is given
	// the fold accounts with it and not with Usage.
	ModelUsage map[string]Usage `json:"modelUsage,omitzero" class:"meta"`
	// TotalCostUSD is in US dollars.
	TotalCostUSD Opt[float64] `json:"totalCostUsd,omitzero" class:"meta" check:"min=0"`
	// Duration is wall time from start to end; milliseconds on the wire.
	Duration Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"`
	// NumTurns counts model round trips, not messages.
	NumTurns Opt[int] `json:"numTurns,omitzero" class:"meta" check:"min=0"`
	// Totals are the agent's counters. The emitter fills them in when they are
	// left out; given, they may not be below what was counted (rule
	// ended-totals).
	Totals Opt[Totals] `json:"totals,omitzero" class:"meta"`
	// ConvergenceScore is in [0, 1]: 1 is fully converged, anything below is
	// partial. How it is computed is the producer's business.
	ConvergenceScore Opt[float64] `json:"convergenceScore,omitzero" class:"meta" check:"unit"`
	// ResultSchema is the JSON Schema of the result.
	ResultSchema JSON `json:"resultSchema,omitzero" class:"content"`

	extra extras
}

// Totals are the counters that KAHN writes at the end of an agent.
// AuditsPassed + AuditsFailed <= AuditCheckpoints; the rest are warnings.
type Totals struct {
	Steps            int `json:"steps" class:"meta" check:"min=0"`            // highest step + 1
	ToolCalls        int `json:"toolCalls" class:"meta" check:"min=0"`        // calls made
	AuditCheckpoints int `json:"auditCheckpoints" class:"meta" check:"min=0"` // audits of any result
	AuditsPassed     int `json:"auditsPassed" class:"meta" check:"min=0"`     // audits with result pass
	AuditsFailed     int `json:"auditsFailed" class:"meta" check:"min=0"`     // audits with result fail

	extra extras
}

// AgentErrored records an error of an agent. It is never terminal by itself:
// what happens next is the runtime's decision and shows in later events.
//
// Mirrors: resume spec agent:error; KAOS run_error.
type AgentErrored struct {
	// ErrorType is an open word, such as "rate_limit". The constants of package
	// dialect/openharness are the ones that the resume spec lists.
	ErrorType string `json:"errorType" class:"meta" check:"required"`
	// Message is for people.
	Message      string   `json:"message" class:"content"`
	Severity     Severity `json:"severity,omitzero" class:"meta"`        // warning or error; empty means error
	RecoveryHint string   `json:"recoveryHint,omitzero" class:"content"` // what could be done about it
	Details      JSON     `json:"details,omitzero" class:"content"`      // the raw error of the SDK

	extra extras
}

// AgentSessionChanged says that the provider's session id of an agent is now
// another one, because of a fork, a clear or a resume. The fold updates
// [RunSnapshot].AgentSessions, which is what the resume spec resumes from.
//
// Mirrors: no document; the resume spec's agentSessions needs it.
type AgentSessionChanged struct {
	ProviderSessionID string `json:"providerSessionId" class:"id" check:"required"` // the new id
	Reason            string `json:"reason,omitzero" class:"meta"`                  // fork, clear, resume, …

	extra extras
}

// EventRetracted takes earlier events back: their producer says they should
// not count. The log keeps them; the fold drops the messages they made.
//
// Mirrors: no document; captured streams supersede messages.
type EventRetracted struct {
	EventIDs []string `json:"eventIds" class:"id" check:"required"` // ids of events of this run
	Reason   string   `json:"reason,omitzero" class:"content"`      // why; free text

	extra extras
}

// ContextCompacted says that an agent's context was summarized or cut.
//
// Mirrors: KAOS memory_event; wiki metric context compression ratio.
type ContextCompacted struct {
	TokensBefore Opt[int64] `json:"tokensBefore,omitzero" class:"meta" check:"min=0"` // tokens before
	TokensAfter  Opt[int64] `json:"tokensAfter,omitzero" class:"meta" check:"min=0"`  // tokens after
	Trigger      string     `json:"trigger,omitzero" class:"meta"`                    // auto, manual, …

	extra extras
}

// TaskAssigned gives an agent a piece of work.
//
// Mirrors: wiki agent.task.assigned.
type TaskAssigned struct {
	Goal           string `json:"goal" class:"content"`                    // what is to be reached
	AssignedAgent  string `json:"assignedAgent,omitzero" class:"id"`       // agent id; empty means the envelope's agent
	Context        string `json:"context,omitzero" class:"content"`        // what it should know
	Constraints    JSON   `json:"constraints,omitzero" class:"content"`    // limits, text or list
	ExpectedOutput string `json:"expectedOutput,omitzero" class:"content"` // what should come back

	extra extras
}
