package agentevents

import "time"

// Agents. An agent starts, moves through its statuses and ends. Several agents
// may work in one run at the same time; each has its own step and status.

// AgentStarted opens an agent. The agent's status becomes [StatusThinking]; no transition announces
// that first status. A running agent does not start again, except after [RunResumed] or with
// Resumed set (rule agent-started-once). Each start begins an attempt, so an agent that takes
// another turn, or takes back work that it handed over, works on without one if it has not ended.
// The envelope's ParentAgentID and ParentCallID name the agent and the call that spawned it.
//
// Mirrors: KAHN agent_run_start; wiki agent.spawned; KAOS span subagent/start;
// resume spec agent:start.
type AgentStarted struct {
	Agent Opt[AgentRef] `json:"agent,omitzero" class:"meta"` // identity, sharing and model class
	// Name is the name of the agent that is the same in all calls and runs, such as
	// "researcher": views, span names, metrics, stats and diff use it, so it has few
	// values and no ids. Empty means that the id is also the name.
	Name  string `json:"name,omitzero" class:"meta"`
	Task  string `json:"task,omitzero" class:"content"` // the agent's task; the wiki's agentTask
	Model string `json:"model,omitzero" class:"meta"`   // model name as the provider spells it
	// ProviderSessionID is the id that resumes the agent at its provider: the
	// resume spec's sessionId. [RunSnapshot].AgentSessions keeps it.
	ProviderSessionID string `json:"providerSessionId,omitzero" class:"id"`
	// Prompt is a JSON string or a list of messages.
	Prompt JSON `json:"prompt,omitzero" class:"content"`
	// Attempt counts the starts of this agent from 1. When it is absent the fold
	// counts.
	Attempt Opt[int] `json:"attempt,omitzero" class:"meta" check:"min=1"`
	// Resumed means that the start continues an earlier one, whose end may be missing in this log.
	Resumed bool `json:"resumed,omitzero" class:"meta"`
	// Lifecycle is the table that the agent's transitions keep. The emitter sets it:
	// to nothing for [LifecycleStrict]. See [RunState].
	Lifecycle Lifecycle `json:"lifecycle,omitzero" class:"meta"`

	extra extras
}

// AgentTransition moves an agent from one status to the next. From must be the
// agent's current status (rule transition-from-current), and the lifecycle in
// force must allow the move (rule transition-legal). A return to
// [StatusThinking] begins a new step.
//
// Mirrors: KAHN agent_transition.
type AgentTransition struct {
	// From is the current status. The emitter fills it in when it is empty.
	From AgentStatus `json:"from" class:"meta"`
	// To is the next status. It is required.
	To AgentStatus `json:"to" class:"meta"`
	// Reason is the cause, by KAHN's convention "kind" or "kind:detail", such as "tool_call:Read".
	Reason string `json:"reason,omitzero" class:"content" fold:"-"`

	extra extras
}

// AgentEnded closes an agent. It is legal from any status, so that every way
// out of a program can end the agent once. After it the agent may only start
// again (rule agent-ended-final).
//
// Mirrors: KAHN agent_run_end; wiki agent.completed; KAOS span
// subagent/complete, subagent/error; resume spec agent:complete.
type AgentEnded struct {
	// Outcome is empty when the producer does not state it.
	Outcome AgentOutcome `json:"outcome,omitzero" class:"meta"`
	// Status is the producer's own word for the end, such as "success" or "timeout",
	// where its document has an open one. A fold reads the usual words, and takes one
	// that it does not know for neither a success nor a failure.
	Status string `json:"status,omitzero" class:"meta"`
	// Error is the error that ended the agent.
	Error Opt[ErrorInfo] `json:"error,omitzero" class:"content"`
	// Reason tells in words why the agent ended so, where there is no error; free text.
	Reason string `json:"reason,omitzero" class:"content"`
	// Result is the agent's final text.
	Result string `json:"result,omitzero" class:"content"`
	// StructuredOutput is the result as data, when the agent was given a schema.
	StructuredOutput JSON `json:"structuredOutput,omitzero" class:"content"`
	// Usage counts the tokens of the agent itself in the attempt, without its sub-agents.
	Usage Opt[Usage] `json:"usage,omitzero" class:"meta"`
	// StatedTokens is a number of tokens that the end states beside reports of usage, which may
	// have counted them. A fold counts them only in a run that has no other tokens.
	StatedTokens Opt[int64] `json:"statedTokens,omitzero" class:"meta" check:"min=0"`
	// ModelUsage is the usage of the attempt by model name, sub-agents included. When
	// it is set, the fold counts it and not Usage: see [RunUsage].
	ModelUsage map[string]Usage `json:"modelUsage,omitzero" class:"meta"`
	// TotalCostUSD is the cost of the attempt in US dollars.
	TotalCostUSD Opt[float64] `json:"totalCostUsd,omitzero" class:"meta" check:"min=0"`
	// Cumulative means that ModelUsage and TotalCostUSD are running totals, which include the
	// attempts that ended before this one.
	Cumulative bool `json:"cumulative,omitzero" class:"meta"`
	// Duration is the wall time from start to end; milliseconds on the wire.
	Duration Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"`
	// NumTurns counts round trips to the model, not messages.
	NumTurns Opt[int] `json:"numTurns,omitzero" class:"meta" check:"min=0"`
	// Totals are the agent's counters. The emitter fills them in when they are absent. They must
	// not be below the counts of the log (rule ended-totals).
	Totals Opt[Totals] `json:"totals,omitzero" class:"meta"`
	// ConvergenceScore is in [0, 1]: 1 means fully converged, less means
	// partly. The producer decides how to compute it.
	ConvergenceScore Opt[float64] `json:"convergenceScore,omitzero" class:"meta" check:"unit"`
	// Refused is the number of the agent's events that the emitter refused, since the
	// agent's last end or the last [Emitter.Resume]. The emitter fills it in when it is 0.
	Refused int `json:"refused,omitzero" class:"meta" check:"min=0"`
	// ResultSchema is the JSON Schema of the result.
	ResultSchema JSON `json:"resultSchema,omitzero" class:"content"`

	extra extras
}

// Totals are the counters at the end of an agent (KAHN). AuditsPassed +
// AuditsFailed <= AuditCheckpoints (rule field-range); the other audits are
// warnings.
type Totals struct {
	Steps            int `json:"steps" class:"meta" check:"min=0"`            // number of different steps
	ToolCalls        int `json:"toolCalls" class:"meta" check:"min=0"`        // tool calls that began
	AuditCheckpoints int `json:"auditCheckpoints" class:"meta" check:"min=0"` // audits of any result
	AuditsPassed     int `json:"auditsPassed" class:"meta" check:"min=0"`     // audits with result pass
	AuditsFailed     int `json:"auditsFailed" class:"meta" check:"min=0"`     // audits with result fail

	extra extras
}

// AgentErrored records an error of an agent. It ends nothing: later events show the reaction of the
// runtime.
//
// Mirrors: resume spec agent:error; KAOS run_error.
type AgentErrored struct {
	// ErrorType is an open word, such as "rate_limit". Package
	// dialect/openharness has constants for the words of the resume spec.
	ErrorType string `json:"errorType" class:"meta" check:"required"`
	// Message is the error's text for people.
	Message      string   `json:"message" class:"content"`
	Severity     Severity `json:"severity,omitzero" class:"meta"`        // warning or error; empty means error
	RecoveryHint string   `json:"recoveryHint,omitzero" class:"content"` // a remedy; free text
	Details      JSON     `json:"details,omitzero" class:"content"`      // the SDK's error as it is

	extra extras
}

// AgentSessionChanged gives an agent a new session id at its provider, because
// of a fork, a clear or a resume. The fold updates [RunSnapshot].AgentSessions,
// from which the resume spec resumes agents.
//
// Mirrors: no document; the resume spec's agentSessions needs it.
type AgentSessionChanged struct {
	ProviderSessionID string `json:"providerSessionId" class:"id" check:"required"` // the new id
	Reason            string `json:"reason,omitzero" class:"meta"`                  // fork, clear, resume, …

	extra extras
}

// EventRetracted withdraws earlier events: they must not count. The log keeps them. The fold adds
// their ids to [RunSnapshot].Retracted and moves their messages to RetractedMessages; the rest of
// the snapshot stays as it is.
//
// Mirrors: no document; captured streams supersede messages.
type EventRetracted struct {
	EventIDs []string `json:"eventIds" class:"id" check:"required"` // ids of events of this run
	Reason   string   `json:"reason,omitzero" class:"content"`      // why; free text

	extra extras
}

// ContextCompacted records that an agent's context was summarized or cut. The summary takes the
// place of all messages before the event, except those with an open call.
//
// Mirrors: KAOS memory_event; wiki metric context compression ratio.
type ContextCompacted struct {
	TokensBefore Opt[int64] `json:"tokensBefore,omitzero" class:"meta" check:"min=0"` // tokens of the context before
	TokensAfter  Opt[int64] `json:"tokensAfter,omitzero" class:"meta" check:"min=0"`  // tokens of the context after
	Trigger      string     `json:"trigger,omitzero" class:"meta"`                    // open word: auto, manual, …
	Summary      string     `json:"summary,omitzero" class:"content"`                 // the text that the model gets in place of the messages before; empty when it is not recorded

	extra extras
}

// TaskAssigned gives an agent a task. The envelope's TaskID names the task.
//
// Mirrors: wiki agent.task.assigned.
type TaskAssigned struct {
	Goal           string `json:"goal" class:"content"`                    // the goal that the agent should reach
	AssignedAgent  string `json:"assignedAgent,omitzero" class:"id"`       // agent id; empty means the envelope's agent
	Context        string `json:"context,omitzero" class:"content"`        // background for the agent
	Constraints    JSON   `json:"constraints,omitzero" class:"content"`    // limits, as a text or a list
	ExpectedOutput string `json:"expectedOutput,omitzero" class:"content"` // the form of the result

	extra extras
}
