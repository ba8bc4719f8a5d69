package agentevents

import (
	"time"
)

// Sessions and runs. A session is a conversation, a run is one piece of work
// inside it.

// SessionStarted opens a session. It may come before [RunStarted].
//
// Mirrors: wiki session.started.
type SessionStarted struct {
	// Goal is the purpose of the session, as free text.
	Goal string `json:"goal,omitzero" class:"content"`

	extra extras
}

// SessionCompleted closes a session. It may come after the run's terminal event.
//
// Mirrors: wiki session.completed.
type SessionCompleted struct {
	// Status is the outcome of the session. It is an open word: the wiki lists no values.
	Status string `json:"status,omitzero" class:"meta"`
	// Reason is why the session ended so; free text.
	Reason string `json:"reason,omitzero" class:"content"`
	// Result is the session's product; any JSON value.
	Result JSON `json:"result,omitzero" class:"content"`
	// Error is why the session failed.
	Error Opt[ErrorInfo] `json:"error,omitzero" class:"content"`

	extra extras
}

// RunStarted opens a run. It is optional, since KAHN has no such event. Only
// session events may precede it (rule run-open).
//
// Mirrors: resume spec flow:start; OpenWOP run.started.
type RunStarted struct {
	// Name is the name of the flow or task; the resume spec's flowName.
	Name string `json:"name,omitzero" class:"meta"`
	// Inputs are the inputs of the run; any JSON value.
	Inputs JSON `json:"inputs,omitzero" class:"content"`
	// Agent is the run's primary agent, when one agent owns the run (OpenWOP
	// RunSnapshot.agent).
	Agent Opt[AgentRef] `json:"agent,omitzero" class:"meta"`
	// Definition describes the flow. The fold reads three members of it: "nodes"
	// (a list of ids, or of objects with an "id"), "edges" (a list of objects
	// with "from", "to" and an optional "id") and "state" (the initial state).
	Definition JSON `json:"definition,omitzero" class:"content"`
	// Lifecycle is the table that the agents' transitions keep. The emitter sets it:
	// to nothing for [LifecycleStrict]. See [RunState].
	Lifecycle Lifecycle `json:"lifecycle,omitzero" class:"meta"`

	extra extras
}

// RunPaused pauses a run. [RunResumed] resumes it.
//
// Mirrors: resume spec flow:paused; OpenWOP run.paused.
type RunPaused struct {
	Reason string `json:"reason,omitzero" class:"content"` // why; free text

	extra extras
}

// RunResumed resumes a paused or interrupted run. After it every agent may start
// again (rule agent-started-once).
//
// Mirrors: resume spec flow:resumed; OpenWOP run.resumed.
type RunResumed struct {
	// Message is the prompt for the agents. Empty means the resume spec's default, "continue".
	Message string `json:"message,omitzero" class:"content"`

	extra extras
}

// RunCompleted closes a run that succeeded. No rule asks that its calls have returned: a tool may
// outlive the run, and its return is a late event then. [Run.Finish] first closes everything that
// is open.
//
// Mirrors: resume spec flow:complete; OpenWOP run.completed.
type RunCompleted struct {
	Outputs JSON `json:"outputs,omitzero" class:"content"` // the run's outputs; any JSON value
	// Refused is the number of the run's events that the emitter refused, since the
	// start or the last [Emitter.Resume]. The emitter fills it in when it is 0.
	Refused int `json:"refused,omitzero" class:"meta" check:"min=0"`

	extra extras
}

// RunFailed closes a run that failed. In the resume spec it is flow:complete with
// status failed.
//
// Mirrors: resume spec flow:complete; OpenWOP run.failed.
type RunFailed struct {
	Error Opt[ErrorInfo] `json:"error,omitzero" class:"content"` // the cause
	// FailedNodeID is the node whose failure the run failed with, if the log has no
	// [NodeFailed] of it. The fold shows the node as failed, with the error of the run.
	FailedNodeID string `json:"failedNodeId,omitzero" class:"id"`
	// Refused is the number of the run's events that the emitter refused, since the
	// start or the last [Emitter.Resume]. The emitter fills it in when it is 0.
	Refused int `json:"refused,omitzero" class:"meta" check:"min=0"`

	extra extras
}

// RunCancelled closes a run that was stopped from outside.
//
// Mirrors: resume spec flow:aborted; OpenWOP run.cancelled.
type RunCancelled struct {
	Reason string `json:"reason,omitzero" class:"content"` // why; free text
	// Refused is the number of the run's events that the emitter refused, since the
	// start or the last [Emitter.Resume]. The emitter fills it in when it is 0.
	Refused int `json:"refused,omitzero" class:"meta" check:"min=0"`

	extra extras
}

// Resources and memory: tokens, budgets, caps, shared notes and memory.

// UsageObserved reports tokens and cost while an agent works. The fold adds the
// reports of an attempt up; a Cumulative report replaces the sum so far. The sum
// counts only when the attempt's end carries no usage: see [RunUsage].
//
// Mirrors: KAOS usage_observed.
type UsageObserved struct {
	// ModelCallID is the model call that the report is about. Tokens and cost that
	// the call's [ModelReturned] states, too, do not count again. Empty when the
	// report is about no single call, or about one that has no events.
	ModelCallID string       `json:"modelCallId,omitzero" class:"id"`
	Model       string       `json:"model,omitzero" class:"meta"`                 // model name as the provider spells it
	Usage       Usage        `json:"usage" class:"meta"`                          // tokens
	CostUSD     Opt[float64] `json:"costUsd,omitzero" class:"meta" check:"min=0"` // US dollars
	Source      string       `json:"source,omitzero" class:"meta"`                // open word: the instrument
	// Cumulative means that the figures are running totals, not increments: totals of the model
	// call, or of the attempt if there is none.
	Cumulative bool `json:"cumulative,omitzero" class:"meta"`
	// Partial means that the figures are too low, because they were taken before the work was done.
	Partial bool `json:"partial,omitzero" class:"meta"`

	extra extras
}

// BudgetExceeded records that a budget ran out.
//
// Mirrors: wiki budget.exceeded; KAOS budget_exceeded.
type BudgetExceeded struct {
	Budget string  `json:"budget" class:"meta" check:"required"` // open word: cost, tokens, steps, replans, wall_clock, …
	Limit  float64 `json:"limit" class:"meta"`                   // the budget, in its own unit
	Actual float64 `json:"actual" class:"meta"`                  // the used amount, in the same unit
	Reason string  `json:"reason,omitzero" class:"content"`      // why; free text

	extra extras
}

// CapBreached records that a cap of the host is reached. In OpenWOP it also records that an
// escalation is suppressed.
//
// Mirrors: OpenWOP cap.breached.
type CapBreached struct {
	Cap      string       `json:"cap" class:"meta" check:"required"` // open word: name of the cap; OpenWOP's kind
	Limit    Opt[float64] `json:"limit,omitzero" class:"meta"`       // the cap, in its own unit
	Observed Opt[float64] `json:"observed,omitzero" class:"meta"`    // the measured amount, in the same unit

	extra extras
}

// BlackboardItemCreated writes an item to the state that the agents share. An
// item with the same id is replaced.
//
// Mirrors: wiki blackboard.item.created.
type BlackboardItemCreated struct {
	ItemID      string             `json:"itemId" class:"id" check:"required"`            // id of the item
	ItemType    string             `json:"itemType" class:"meta" check:"required"`        // open word: fact, hypothesis, artifact, decision, task
	Content     JSON               `json:"content" class:"content"`                       // required: any JSON value
	SourceAgent string             `json:"sourceAgent,omitzero" class:"id"`               // id of the agent that wrote the item
	Confidence  Opt[float64]       `json:"confidence,omitzero" class:"meta" check:"unit"` // in [0, 1]
	TTL         Opt[time.Duration] `json:"ttlMs,omitzero" class:"meta" check:"min=0"`     // how long the item is valid; milliseconds on the wire

	extra extras
}

// MemoryChanged records a change of an agent's memory.
//
// Mirrors: KAOS memory_event.
type MemoryChanged struct {
	Change     MemoryChange `json:"change" class:"meta"`                                 // required: the kind of change
	Section    string       `json:"section,omitzero" class:"meta"`                       // part of the memory, by name
	ItemCount  Opt[int]     `json:"itemCount,omitzero" class:"meta" check:"min=0"`       // number of items that changed
	Attributes JSON         `json:"attributes,omitzero" class:"content" broken:"object"` // free object

	extra extras
}
