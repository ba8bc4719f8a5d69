package agentevents

import "time"

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
