package agentevents

import "time"

// Dynamic workflows: a script with phases that spawns agents. Every workflow
// event carries the envelope's WorkflowID, phase and checkpoint events also
// its Phase, and so do the agent events inside a phase (rule
// workflow-context).

// WorkflowCreated says that a workflow's script was written.
//
// Mirrors: wiki workflow.created.
type WorkflowCreated struct {
	Script          string     `json:"script,omitzero" class:"content"`                     // source text
	Phases          []string   `json:"phases" class:"meta"`                                 // phase names, in order
	EstimatedTokens Opt[int64] `json:"estimatedTokens,omitzero" class:"meta" check:"min=0"` // before it runs

	extra extras
}

// WorkflowApproved says that the user agreed to run it.
//
// Mirrors: wiki workflow.approved.
type WorkflowApproved struct {
	ApprovedAt time.Time `json:"approvedAt" class:"meta"`                // RFC 3339 on the wire
	ApprovedBy string    `json:"approvedBy" class:"id" check:"required"` // who

	extra extras
}

// PhaseStarted opens a phase; its name is the envelope's Phase.
//
// Mirrors: wiki workflow.phase.started.
type PhaseStarted struct {
	InputCount Opt[int] `json:"inputCount,omitzero" class:"meta" check:"min=0"` // items that go in

	extra extras
}

// PhaseCompleted closes a phase (rule phase-open).
//
// Mirrors: wiki workflow.phase.completed.
type PhaseCompleted struct {
	OutputCount Opt[int]   `json:"outputCount,omitzero" class:"meta" check:"min=0"` // items that came out
	Tokens      Opt[int64] `json:"tokens,omitzero" class:"meta" check:"min=0"`      // a cross-check, not added to usage

	extra extras
}

// CheckpointSaved says that the runtime stored its state.
//
// Mirrors: wiki workflow.checkpoint.saved.
type CheckpointSaved struct {
	StateBytes int64 `json:"stateBytes" class:"meta" check:"min=0"` // size in bytes

	extra extras
}

// CheckpointResumed says that the script went on from a checkpoint.
//
// Mirrors: wiki workflow.checkpoint.resumed.
type CheckpointResumed struct {
	ResumedAt time.Time `json:"resumedAt" class:"meta"` // RFC 3339 on the wire

	extra extras
}

// WorkflowFinalized says that the workflow's result went back to the user.
// Its figures are a cross-check, never added to the run's usage.
//
// Mirrors: wiki workflow.finalized.
type WorkflowFinalized struct {
	TotalTokens int64         `json:"totalTokens" class:"meta" check:"min=0"` // tokens of all agents
	TotalAgents int           `json:"totalAgents" class:"meta" check:"min=0"` // agents spawned
	Duration    time.Duration `json:"durationMs" class:"meta" check:"min=0"`  // milliseconds on the wire

	extra extras
}
