package agentevents

import "time"

// People: approvals, clarifications and commands, where a run waits for
// somebody or somebody talks to a run.

// ApprovalRequested asks a person to allow something.
//
// Mirrors: wiki approval.requested; OpenWOP approval.requested; KAOS
// tool_call_approval_required.
type ApprovalRequested struct {
	ApprovalID string             `json:"approvalId" class:"id" check:"required"`        // joins request and answer
	Action     string             `json:"action,omitzero" class:"content"`               // what would be done
	Reason     string             `json:"reason,omitzero" class:"content"`               // why it needs approval
	Scope      string             `json:"scope,omitzero" class:"content"`                // what it would touch
	Risk       string             `json:"risk,omitzero" class:"content"`                 // how bad it could be
	CallID     string             `json:"callId,omitzero" class:"id"`                    // the tool call it is about
	ToolID     string             `json:"toolId,omitzero" class:"id"`                    // the tool it is about
	Arguments  JSON               `json:"arguments,omitzero" class:"content"`            // of that call
	Timeout    Opt[time.Duration] `json:"timeoutMs,omitzero" class:"meta" check:"min=0"` // milliseconds on the wire

	extra extras
}

// ApprovalGranted closes an [ApprovalRequested] with yes (rule
// approval-open).
//
// Mirrors: wiki approval.granted; OpenWOP approval.granted.
type ApprovalGranted struct {
	ApprovalID string `json:"approvalId" class:"id" check:"required"` // as requested
	ApprovedBy string `json:"approvedBy,omitzero" class:"id"`         // who
	Feedback   string `json:"feedback,omitzero" class:"content"`      // what they said

	extra extras
}

// ApprovalRejected closes an [ApprovalRequested] with no (rule
// approval-open).
//
// Mirrors: OpenWOP approval.rejected.
type ApprovalRejected struct {
	ApprovalID string `json:"approvalId" class:"id" check:"required"` // as requested
	RejectedBy string `json:"rejectedBy,omitzero" class:"id"`         // who
	Feedback   string `json:"feedback,omitzero" class:"content"`      // what they said

	extra extras
}

// ClarificationRequested asks a person a question. The run waits until it is
// resolved.
//
// Mirrors: OpenWOP clarification.requested; KAOS escalation_required.
type ClarificationRequested struct {
	InterruptID string     `json:"interruptId" class:"id" check:"required"` // joins question and answer
	Questions   []Question `json:"questions" class:"content"`               // at least one, usually

	extra extras
}

// Question is one question of a [ClarificationRequested].
type Question struct {
	ID       string `json:"id" class:"id" check:"required"`  // id within the request
	Question string `json:"question" class:"content"`        // the text
	Schema   JSON   `json:"schema,omitzero" class:"content"` // JSON Schema of the answer

	extra extras
}

// ClarificationResolved brings the answers.
//
// Mirrors: OpenWOP clarification.resolved.
type ClarificationResolved struct {
	InterruptID string `json:"interruptId" class:"id" check:"required"` // as requested
	Answers     JSON   `json:"answers,omitzero" class:"content"`        // by question id
	AnsweredBy  string `json:"answeredBy,omitzero" class:"id"`          // who

	extra extras
}

// CommandReceived records a command that somebody gave to the run. A rejected
// command is recorded too, with the reason; the fold then leaves it out of the
// inbox.
//
// Mirrors: resume spec command:received.
type CommandReceived struct {
	Command  Command `json:"command" class:"content"`           // the command
	Rejected string  `json:"rejected,omitzero" class:"content"` // why it was rejected; empty when accepted

	extra extras
}

// Command is the resume spec's RuntimeCommand.
type Command struct {
	Type CommandType `json:"type" class:"meta"` // send, reply, abort or resume
	// RunID is where a send or reply goes. In the resume spec it is one
	// execution of a node (our nodeRunId), not the run.
	RunID     string    `json:"runId,omitzero" class:"id"`
	Message   string    `json:"message,omitzero" class:"content"` // send, resume (default "continue")
	PromptID  string    `json:"promptId,omitzero" class:"id"`     // reply: the prompt it answers
	Content   string    `json:"content,omitzero" class:"content"` // reply: the answer
	Resumable Opt[bool] `json:"resumable,omitzero" class:"meta"`  // abort: pause rather than stop
	Reason    string    `json:"reason,omitzero" class:"content"`  // abort: why

	extra extras
}

// CommandConsumed says that a received command was taken from the inbox, so
// that the inbox can be rebuilt from the log.
//
// Mirrors: no document; the resume spec's inbox cannot be rebuilt without it.
type CommandConsumed struct {
	EventID string `json:"eventId" class:"id" check:"required"` // id of the CommandReceived event

	extra extras
}
