package agentevents

import "time"

// Turns, steps, spans, nodes, edges and state: the structure a runtime gives
// to its work.

// TurnStarted opens a turn: one exchange with the user.
//
// Mirrors: KAOS span turn/start.
type TurnStarted struct {
	Turn       Opt[int] `json:"turn,omitzero" class:"meta" check:"min=0"` // turn number
	Name       string   `json:"name,omitzero" class:"meta"`               // name of the span
	Attributes JSON     `json:"attributes,omitzero" class:"content"`      // free object

	extra extras
}

// TurnEnded closes a turn.
//
// Mirrors: KAOS span turn/complete, turn/error.
type TurnEnded struct {
	Turn       Opt[int]           `json:"turn,omitzero" class:"meta" check:"min=0"`       // turn number
	Name       string             `json:"name,omitzero" class:"meta"`                     // name of the span
	Duration   Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"` // milliseconds on the wire
	Error      Opt[ErrorInfo]     `json:"error,omitzero" class:"content"`                 // set when the turn failed
	Attributes JSON               `json:"attributes,omitzero" class:"content"`            // free object

	extra extras
}

// TurnSummarized sums a turn up. It may come before or after [TurnEnded]. Its
// figures are a cross-check, never added to the run's usage.
//
// Mirrors: KAOS turn_summary.
type TurnSummarized struct {
	Text      string            `json:"text" class:"content"`                        // the answer given
	Intent    string            `json:"intent,omitzero" class:"meta"`                // what the user wanted
	ToolCalls []ToolCallSummary `json:"toolCalls" class:"meta"`                      // in call order; may be empty
	Usage     Usage             `json:"usage" class:"meta"`                          // tokens of the turn
	CostUSD   Opt[float64]      `json:"costUsd,omitzero" class:"meta" check:"min=0"` // US dollars

	extra extras
}

// ToolCallSummary is one call in a [TurnSummarized].
type ToolCallSummary struct {
	ToolName     string             `json:"toolName" class:"meta" check:"required"`           // name of the tool
	CallID       string             `json:"callId" class:"id" check:"required"`               // the call
	IsError      bool               `json:"isError,omitzero" class:"meta"`                    // whether it failed
	Duration     Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"`   // milliseconds on the wire
	CostUSD      Opt[float64]       `json:"costUsd,omitzero" class:"meta" check:"min=0"`      // US dollars
	InputTokens  Opt[int64]         `json:"inputTokens,omitzero" class:"meta" check:"min=0"`  // tokens in
	OutputTokens Opt[int64]         `json:"outputTokens,omitzero" class:"meta" check:"min=0"` // tokens out

	extra extras
}

// StepStarted opens a step of a plan. This is KAOS's step, with an id of its
// own; it is not the step counter of the envelope ([Event].Step).
//
// Mirrors: KAOS span step/start.
type StepStarted struct {
	StepID      string `json:"stepId" class:"id" check:"required"`   // id of the step
	Name        string `json:"name,omitzero" class:"meta"`           // name of the span
	Description string `json:"description,omitzero" class:"content"` // what is to be done
	Attributes  JSON   `json:"attributes,omitzero" class:"content"`  // free object

	extra extras
}

// StepEnded closes a step of a plan.
//
// Mirrors: KAOS span step/complete, step/error.
type StepEnded struct {
	StepID        string             `json:"stepId" class:"id" check:"required"`             // id of the step
	Name          string             `json:"name,omitzero" class:"meta"`                     // name of the span
	Duration      Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"` // milliseconds on the wire
	ResultSummary string             `json:"resultSummary,omitzero" class:"content"`         // short text
	Error         Opt[ErrorInfo]     `json:"error,omitzero" class:"content"`                 // set when the step failed
	Attributes    JSON               `json:"attributes,omitzero" class:"content"`            // free object

	extra extras
}

// SpanRecorded is any other span boundary: a pair of subject and phase that
// has no kind of its own, such as llm_call/start, judge/complete or
// step/progress. Both words are open.
//
// Mirrors: KAOS span run, llm_call, judge, route, progress, cancelled.
type SpanRecorded struct {
	Subject      string             `json:"subject" class:"meta" check:"required"`          // what: run, llm_call, judge, route, …
	Phase        string             `json:"phase" class:"meta" check:"required"`            // start, complete, error, progress, cancelled, …
	Name         string             `json:"name,omitzero" class:"meta"`                     // name of the span
	Duration     Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"` // milliseconds on the wire
	ErrorType    string             `json:"errorType,omitzero" class:"meta"`                // class of the error
	ErrorMessage string             `json:"errorMessage,omitzero" class:"content"`          // its text
	Attributes   JSON               `json:"attributes,omitzero" class:"content"`            // free object

	extra extras
}

// NodeStarted opens one execution of a node; the envelope's NodeID and
// NodeRunID say which.
//
// Mirrors: OpenWOP node.started; resume spec node:start; wiki
// workflow.node.enter.
type NodeStarted struct {
	Agent   Opt[AgentRef] `json:"agent,omitzero" class:"meta"`                 // the agent the node delegates to
	TypeID  string        `json:"typeId,omitzero" class:"meta"`                // type of the node
	Attempt Opt[int]      `json:"attempt,omitzero" class:"meta" check:"min=0"` // OpenWOP counts from 0

	extra extras
}

// NodeCompleted closes one execution of a node that succeeded.
//
// Mirrors: OpenWOP node.completed; resume spec node:complete.
type NodeCompleted struct {
	Outputs  JSON               `json:"outputs,omitzero" class:"content"`               // what the node produced
	Agent    Opt[AgentRef]      `json:"agent,omitzero" class:"meta"`                    // the agent it delegated to
	Duration Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"` // milliseconds on the wire

	extra extras
}

// NodeFailed closes one execution of a node that failed.
//
// Mirrors: resume spec node:error; OpenWOP node.failed.
type NodeFailed struct {
	Error ErrorInfo `json:"error" class:"content"` // what went wrong

	extra extras
}

// NodeSkipped says that a node will not run.
//
// Mirrors: resume spec node:skipped; OpenWOP node.skipped.
type NodeSkipped struct {
	Reason string `json:"reason,omitzero" class:"meta"` // "edge" or "when" in the resume spec; open

	extra extras
}

// NodeSuspended says that a node waits for something outside.
//
// Mirrors: OpenWOP node.suspended.
type NodeSuspended struct {
	Reason  string `json:"reason,omitzero" class:"meta"`     // such as low-confidence
	Details JSON   `json:"details,omitzero" class:"content"` // what it waits for

	extra extras
}

// EdgeFired says that an edge of the flow was taken.
//
// Mirrors: resume spec edge:fire.
type EdgeFired struct {
	// EdgeID names the edge. Without it the edge is known as "from->to".
	EdgeID string `json:"edgeId,omitzero" class:"id"`
	From   string `json:"from" class:"id" check:"required"` // node id
	To     string `json:"to" class:"id" check:"required"`   // node id

	extra extras
}

// EdgeSkipped says that an edge of the flow was not taken.
//
// Mirrors: no document; the resume spec's edgeStatus knows skipped edges.
type EdgeSkipped struct {
	EdgeID string `json:"edgeId,omitzero" class:"id"`       // as in EdgeFired
	From   string `json:"from" class:"id" check:"required"` // node id
	To     string `json:"to" class:"id" check:"required"`   // node id

	extra extras
}

// LoopIterated counts one passage over a loop edge.
//
// Mirrors: resume spec loop:iterate.
type LoopIterated struct {
	// EdgeID names the loop edge. Without it the edge fired last is meant.
	EdgeID    string `json:"edgeId,omitzero" class:"id"`
	Iteration int    `json:"iteration" class:"meta" check:"min=1"` // from 1

	extra extras
}

// LoopRoundCompleted sums up one round of a refinement loop.
//
// Mirrors: wiki loop.round.completed.
type LoopRoundCompleted struct {
	Round    int          `json:"round" class:"meta" check:"min=0"`            // round number
	Score    Opt[float64] `json:"score,omitzero" class:"meta" check:"finite"`  // by the producer's scale
	Feedback string       `json:"feedback,omitzero" class:"content"`           // what the critic said
	Diff     string       `json:"diff,omitzero" class:"content"`               // what changed
	CostUSD  Opt[float64] `json:"costUsd,omitzero" class:"meta" check:"min=0"` // US dollars

	extra extras
}

// StatePatched changes the run's user-defined state.
//
// Mirrors: resume spec state:patch.
type StatePatched struct {
	Op PatchOp `json:"op" class:"meta"` // set or merge
	// Path is dotted, such as "tasks.open"; empty means the whole state.
	Path  string `json:"path" class:"meta"`
	Value JSON   `json:"value" class:"content"` // the new value, or the object to merge

	extra extras
}
