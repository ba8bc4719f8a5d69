package agentevents

import "time"

// People: approvals, clarifications and commands. A run asks a person, or a person commands a run.

// ApprovalRequested asks a person to allow an action. While it is open and no
// agent works, the run's status is [RunStatusWaiting]. It closes with its answer,
// with another request of its id, with the [ToolReturned] of its call, with the
// [AgentEnded] or the next [AgentStarted] of its agent, or with the end of the run.
// An answer after that is refused (rule approval-open).
//
// Mirrors: wiki approval.requested; OpenWOP approval.requested; KAOS
// tool_call_approval_required.
type ApprovalRequested struct {
	ApprovalID string `json:"approvalId" class:"id" check:"required"` // joins the request and its answer
	Action     string `json:"action,omitzero" class:"content"`        // the action to allow
	Reason     string `json:"reason,omitzero" class:"content"`        // why the action needs approval
	Scope      string `json:"scope,omitzero" class:"content"`         // the things that the action touches
	Risk       string `json:"risk,omitzero" class:"content"`          // the risk of the action
	CallID     string `json:"callId,omitzero" class:"id"`             // id of the tool call to allow
	ToolID     string `json:"toolId,omitzero" class:"id"`             // tool of that call
	Arguments  JSON   `json:"arguments,omitzero" class:"content"`     // arguments of that call; any JSON value
	// ArgumentsHash binds the approval to the arguments of its call. It is "sha256:" and the
	// hexadecimal SHA-256 digest of the arguments in canonical JSON (RFC 8785, with exact
	// numbers). The emitter sets it, if it is empty, from Arguments after redaction, so arguments
	// that differ only in masked values have the same hash. It stays empty if Arguments are absent
	// and CallID is set or ToolID is empty.
	ArgumentsHash string `json:"argumentsHash,omitzero" class:"meta"`
	// Timeout is how long the request stands and, from the grant on, how long the grant
	// stands for the call; milliseconds on the wire.
	Timeout Opt[time.Duration] `json:"timeoutMs,omitzero" class:"meta" check:"min=0"`

	extra extras
}

// ApprovalGranted closes an [ApprovalRequested] with yes (rule
// approval-open).
//
// Mirrors: wiki approval.granted; OpenWOP approval.granted.
type ApprovalGranted struct {
	ApprovalID string `json:"approvalId" class:"id" check:"required"` // as in the request
	ApprovedBy string `json:"approvedBy,omitzero" class:"id"`         // the person who answers
	Feedback   string `json:"feedback,omitzero" class:"content"`      // the person's comment
	Answer     string `json:"answer,omitzero" class:"meta"`           // the word for the answer, if it tells more than yes or no, such as edit-accept, refine or timeout

	extra extras
}

// ApprovalRejected closes an [ApprovalRequested] with no (rule
// approval-open).
//
// Mirrors: OpenWOP approval.rejected.
type ApprovalRejected struct {
	ApprovalID string `json:"approvalId" class:"id" check:"required"` // as in the request
	RejectedBy string `json:"rejectedBy,omitzero" class:"id"`         // the person who answers
	Feedback   string `json:"feedback,omitzero" class:"content"`      // the person's comment
	Answer     string `json:"answer,omitzero" class:"meta"`           // the word for the answer, if it tells more than yes or no, such as edit-accept, refine or timeout

	extra extras
}

// ClarificationRequested asks a person questions. While it is open and no agent
// works, the run's status is [RunStatusWaiting]. It closes as an [ApprovalRequested]
// does.
//
// Mirrors: OpenWOP clarification.requested; KAOS escalation_required.
type ClarificationRequested struct {
	InterruptID string     `json:"interruptId" class:"id" check:"required"` // joins the questions and their answers
	Questions   []Question `json:"questions" class:"content"`               // in order; may be empty
	CallID      string     `json:"callId,omitzero" class:"id"`              // id of the tool call that asks

	extra extras
}

// Question is one question of a [ClarificationRequested].
type Question struct {
	ID       string `json:"id" class:"id" check:"required"`  // id of the question in its request
	Question string `json:"question" class:"content"`        // text of the question
	Schema   JSON   `json:"schema,omitzero" class:"content"` // JSON Schema of the answer

	extra extras
}

// ClarificationResolved closes a [ClarificationRequested] with its answers.
//
// Mirrors: OpenWOP clarification.resolved.
type ClarificationResolved struct {
	InterruptID string `json:"interruptId" class:"id" check:"required"`          // as in the request
	Answers     JSON   `json:"answers,omitzero" class:"content" broken:"object"` // an object of answers by question id
	AnsweredBy  string `json:"answeredBy,omitzero" class:"id"`                   // the person who answers

	extra extras
}

// CommandReceived records a command that a person or program gives to the run. A
// rejected command has its reason in Rejected; the fold does nothing with it. The emitter
// rejects a send or reply without RunID, if the caller does not: nobody can get it.
//
// Mirrors: resume spec command:received.
type CommandReceived struct {
	Command  Command `json:"command" class:"content"`           // the command; required
	Rejected string  `json:"rejected,omitzero" class:"content"` // why the command is rejected; empty when it is accepted

	extra extras
}

// Command is the resume spec's RuntimeCommand. Type decides which of the other fields are in use.
type Command struct {
	Type CommandType `json:"type" class:"meta" check:"required"` // the command: send, reply, abort, resume, or a word of the runtime
	// RunID is the target of a send or reply: one execution of a node ([Scope].NodeRunID), not to a
	// run. The fold puts a send or reply into the inbox only if it is set, and a command of another
	// type always.
	RunID     string    `json:"runId,omitzero" class:"id"`
	Message   string    `json:"message,omitzero" class:"content"` // send: the message; resume: what the agents are told, "continue" when empty
	PromptID  string    `json:"promptId,omitzero" class:"id"`     // reply: id of the prompt
	Content   string    `json:"content,omitzero" class:"content"` // reply: the answer
	Resumable Opt[bool] `json:"resumable,omitzero" class:"meta"`  // abort: pause instead of stop; absent means stop
	Reason    string    `json:"reason,omitzero" class:"content"`  // abort: why

	extra extras
}

// misrouted returns the reason why nobody can get the command, or "".
func (c *Command) misrouted() string {
	if c.RunID == "" && (c.Type == CommandSend || c.Type == CommandReply) {
		return "runId is missing"
	}
	return ""
}

// CommandConsumed takes a command out of the inbox, so that the inbox can be
// rebuilt from the log.
//
// Mirrors: no document; the resume spec's inbox cannot be rebuilt without it.
type CommandConsumed struct {
	EventID string `json:"eventId" class:"id" check:"required"` // ID of the event with the CommandReceived

	extra extras
}
