package agentevents

import (
	"time"
)

// Dynamic workflows. A workflow is a script with phases that spawns agents. The
// envelope of a workflow event has the WorkflowID. The envelope of a phase event,
// a checkpoint event or an agent event inside a phase also has the Phase (rule
// workflow-context).

// WorkflowCreated records that the script of a workflow is written.
//
// Mirrors: wiki workflow.created.
type WorkflowCreated struct {
	Script          string     `json:"script,omitzero" class:"content"`                     // source text of the script
	Phases          []string   `json:"phases" class:"meta"`                                 // phase names, in order; may be empty
	EstimatedTokens Opt[int64] `json:"estimatedTokens,omitzero" class:"meta" check:"min=0"` // estimate for all agents

	extra extras
}

// WorkflowApproved records that a person allows the workflow to run.
//
// Mirrors: wiki workflow.approved.
type WorkflowApproved struct {
	ApprovedAt time.Time `json:"approvedAt" class:"meta"`                // required; RFC 3339 on the wire
	ApprovedBy string    `json:"approvedBy" class:"id" check:"required"` // the person

	extra extras
}

// PhaseStarted opens a phase. The envelope's Phase is the name of the phase.
//
// Mirrors: wiki workflow.phase.started.
type PhaseStarted struct {
	InputCount Opt[int] `json:"inputCount,omitzero" class:"meta" check:"min=0"` // number of items that go in

	extra extras
}

// PhaseCompleted closes a phase (rule phase-open).
//
// Mirrors: wiki workflow.phase.completed.
type PhaseCompleted struct {
	OutputCount Opt[int]   `json:"outputCount,omitzero" class:"meta" check:"min=0"` // number of items that came out
	Tokens      Opt[int64] `json:"tokens,omitzero" class:"meta" check:"min=0"`      // tokens of the phase; not added to the run's usage

	extra extras
}

// CheckpointSaved records that the runtime saved its state as a checkpoint.
//
// Mirrors: wiki workflow.checkpoint.saved.
type CheckpointSaved struct {
	StateBytes int64 `json:"stateBytes" class:"meta" check:"min=0"` // size of the state in bytes

	extra extras
}

// CheckpointResumed records that the script continues from a checkpoint.
//
// Mirrors: wiki workflow.checkpoint.resumed.
type CheckpointResumed struct {
	ResumedAt time.Time `json:"resumedAt" class:"meta"` // required; RFC 3339 on the wire

	extra extras
}

// WorkflowFinalized records that the user has the workflow's result. Its figures are for
// comparison: the fold does not add them to the run's usage.
//
// Mirrors: wiki workflow.finalized.
type WorkflowFinalized struct {
	TotalTokens int64         `json:"totalTokens" class:"meta" check:"min=0"` // tokens of all agents
	TotalAgents int           `json:"totalAgents" class:"meta" check:"min=0"` // number of agents spawned
	Duration    time.Duration `json:"durationMs" class:"meta" check:"min=0"`  // milliseconds on the wire

	extra extras
}

// Turns, steps, spans, nodes, edges and state: the structure that a runtime
// gives to its work.

// TurnStarted opens a turn: one exchange with the user.
//
// Mirrors: KAOS span turn/start.
type TurnStarted struct {
	Turn       Opt[int] `json:"turn,omitzero" class:"meta" check:"min=0"`            // number of the turn
	Name       string   `json:"name,omitzero" class:"meta"`                          // name of the span
	Attributes JSON     `json:"attributes,omitzero" class:"content" broken:"object"` // free object

	extra extras
}

// TurnEnded closes the turn that started in the span of its envelope, else the turn
// with its number, or without a number the agent's last open turn.
//
// Mirrors: KAOS span turn/complete, turn/error.
type TurnEnded struct {
	Turn       Opt[int]           `json:"turn,omitzero" class:"meta" check:"min=0"`            // number of the turn
	Name       string             `json:"name,omitzero" class:"meta"`                          // name of the span
	Duration   Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"`      // milliseconds on the wire
	Error      Opt[ErrorInfo]     `json:"error,omitzero" class:"content"`                      // set when the turn failed
	Attributes JSON               `json:"attributes,omitzero" class:"content" broken:"object"` // free object

	extra extras
}

// TurnSummarized sums up the agent's last turn. It may come before or after
// [TurnEnded]. Its figures are for comparison: the fold does not add them to the
// run's usage.
//
// Mirrors: KAOS turn_summary.
type TurnSummarized struct {
	Text      string            `json:"text" class:"content"`                        // the answer to the user
	Intent    string            `json:"intent,omitzero" class:"meta"`                // the user's intent
	ToolCalls []ToolCallSummary `json:"toolCalls" class:"meta"`                      // in call order; may be empty
	Usage     Usage             `json:"usage" class:"meta"`                          // tokens of the turn
	CostUSD   Opt[float64]      `json:"costUsd,omitzero" class:"meta" check:"min=0"` // cost of the turn in US dollars

	extra extras
}

// ToolCallSummary is one call in a [TurnSummarized].
type ToolCallSummary struct {
	ToolName     string             `json:"toolName" class:"meta" check:"required"`           // name of the tool
	CallID       string             `json:"callId" class:"id" check:"required"`               // id of the call
	IsError      bool               `json:"isError,omitzero" class:"meta"`                    // whether the call failed
	Duration     Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"`   // milliseconds on the wire
	CostUSD      Opt[float64]       `json:"costUsd,omitzero" class:"meta" check:"min=0"`      // US dollars
	InputTokens  Opt[int64]         `json:"inputTokens,omitzero" class:"meta" check:"min=0"`  // tokens sent
	OutputTokens Opt[int64]         `json:"outputTokens,omitzero" class:"meta" check:"min=0"` // tokens received

	extra extras
}

// StepStarted opens a step of a plan. This is KAOS's step, which has an id. It is
// not the step counter of the envelope, [Event].Step.
//
// Mirrors: KAOS span step/start.
type StepStarted struct {
	StepID      string `json:"stepId" class:"id" check:"required"`                  // id of the step
	Name        string `json:"name,omitzero" class:"meta"`                          // name of the span
	Description string `json:"description,omitzero" class:"content"`                // the purpose of the step
	Attributes  JSON   `json:"attributes,omitzero" class:"content" broken:"object"` // free object

	extra extras
}

// StepEnded closes a step of a plan: the step that started in the span of its envelope, or else the
// last open step of the agent with this id.
//
// Mirrors: KAOS span step/complete, step/error.
type StepEnded struct {
	StepID        string             `json:"stepId" class:"id" check:"required"`                  // id of the step
	Name          string             `json:"name,omitzero" class:"meta"`                          // name of the span
	Duration      Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"`      // milliseconds on the wire
	ResultSummary string             `json:"resultSummary,omitzero" class:"content"`              // the result as a short text
	Error         Opt[ErrorInfo]     `json:"error,omitzero" class:"content"`                      // set when the step failed
	Attributes    JSON               `json:"attributes,omitzero" class:"content" broken:"object"` // free object

	extra extras
}

// SpanRecorded records a span boundary that has no kind of its own, as a pair of
// subject and phase: run/start, judge/complete, step/progress, … Both words are open.
//
// Mirrors: KAOS span run, judge, route, progress, cancelled.
type SpanRecorded struct {
	Subject      string             `json:"subject" class:"meta" check:"required"`               // the work that the span covers: run, judge, route, …
	Phase        string             `json:"phase" class:"meta" check:"required"`                 // start, complete, error, progress, cancelled, …
	Name         string             `json:"name,omitzero" class:"meta"`                          // name of the span
	Duration     Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"`      // milliseconds on the wire
	ErrorType    string             `json:"errorType,omitzero" class:"meta"`                     // class of the error
	ErrorMessage string             `json:"errorMessage,omitzero" class:"content"`               // text of the error
	Attributes   JSON               `json:"attributes,omitzero" class:"content" broken:"object"` // free object

	extra extras
}

// NodeStarted opens one execution of a node. The envelope's NodeID and NodeRunID
// name the node and the execution; so they do in all events of nodes.
//
// Mirrors: OpenWOP node.started; resume spec node:start; wiki
// workflow.node.enter.
type NodeStarted struct {
	Agent   Opt[AgentRef] `json:"agent,omitzero" class:"meta"`                 // the agent the node delegates to
	TypeID  string        `json:"typeId,omitzero" class:"meta"`                // type of the node
	Attempt Opt[int]      `json:"attempt,omitzero" class:"meta" check:"min=0"` // number of the attempt; OpenWOP counts from 0

	extra extras
}

// NodeCompleted closes a successful execution of a node, and ends the agent that only the
// execution identifies.
//
// Mirrors: OpenWOP node.completed; resume spec node:complete.
type NodeCompleted struct {
	Outputs  JSON               `json:"outputs,omitzero" class:"content"`               // the node's outputs
	Agent    Opt[AgentRef]      `json:"agent,omitzero" class:"meta"`                    // the agent the node delegated to
	Duration Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"` // milliseconds on the wire

	extra extras
}

// NodeFailed closes a failed execution of a node, and ends the agent that only the
// execution identifies.
//
// Mirrors: resume spec node:error; OpenWOP node.failed.
type NodeFailed struct {
	Error ErrorInfo `json:"error" class:"content"` // the cause

	extra extras
}

// NodeSkipped records that a node does not run.
//
// Mirrors: resume spec node:skipped; OpenWOP node.skipped.
type NodeSkipped struct {
	Reason string `json:"reason,omitzero" class:"meta"` // open word; "edge" or "when" in the resume spec

	extra extras
}

// NodeSuspended records that an execution of a node stops and waits for something outside the run.
//
// Mirrors: OpenWOP node.suspended.
type NodeSuspended struct {
	Reason  string `json:"reason,omitzero" class:"meta"`     // open word, such as low-confidence
	Details JSON   `json:"details,omitzero" class:"content"` // the thing that the node waits for

	extra extras
}

// EdgeFired records that the flow takes an edge.
//
// Mirrors: resume spec edge:fire.
type EdgeFired struct {
	// EdgeID identifies the edge. When it is empty, "from->to" does.
	EdgeID string `json:"edgeId,omitzero" class:"id"`
	From   string `json:"from" class:"id" check:"required"` // id of the node at the start of the edge
	To     string `json:"to" class:"id" check:"required"`   // id of the node at its end

	extra extras
}

// EdgeSkipped records that the flow does not take an edge.
//
// Mirrors: no document; the resume spec's edgeStatus knows skipped edges.
type EdgeSkipped struct {
	EdgeID string `json:"edgeId,omitzero" class:"id"`       // as in EdgeFired
	From   string `json:"from" class:"id" check:"required"` // as in EdgeFired
	To     string `json:"to" class:"id" check:"required"`   // as in EdgeFired

	extra extras
}

// LoopIterated counts one passage over a loop edge.
//
// Mirrors: resume spec loop:iterate.
type LoopIterated struct {
	// EdgeID identifies the loop edge; empty means the edge fired last.
	EdgeID    string `json:"edgeId,omitzero" class:"id"`
	Iteration int    `json:"iteration" class:"meta" check:"min=1"` // number of the passage, from 1

	extra extras
}

// LoopRoundCompleted sums up one round of a refinement loop.
//
// Mirrors: wiki loop.round.completed.
type LoopRoundCompleted struct {
	Round    int          `json:"round" class:"meta" check:"min=0"`            // number of the round
	Score    Opt[float64] `json:"score,omitzero" class:"meta"`                 // on the producer's own scale
	Feedback string       `json:"feedback,omitzero" class:"content"`           // the critic's comment
	Diff     string       `json:"diff,omitzero" class:"content"`               // the change
	CostUSD  Opt[float64] `json:"costUsd,omitzero" class:"meta" check:"min=0"` // cost of the round in US dollars

	extra extras
}

// StatePatched changes the run's user-defined state. Removing a missing value, or an element of a
// list, changes nothing.
//
// Mirrors: resume spec state:patch.
type StatePatched struct {
	Op PatchOp `json:"op" class:"meta"` // required: set, merge or remove
	// Path is names joined by dots, at most 100, such as "tasks.open". A name with a dot
	// in it cannot be said: patch the object around it. Empty names are left out. A path
	// without names means the whole state, which
	// is an object: others are refused for it, but null empties it. In a list a name is
	// the number of an element, from 0: "a.4" set to 5 makes [1,2,null,null,5] of the list
	// [1,2]. A number more than 100 after the list's end, and any other name in a list, change
	// nothing. Any other value on the way gives place to an object.
	Path string `json:"path" class:"meta"`
	// Value is the new value, or the object to merge. It is required, but not for
	// remove, which ignores it.
	Value JSON `json:"value,omitzero" class:"content" broken:"object"`

	extra extras
}
