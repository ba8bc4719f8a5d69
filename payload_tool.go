package agentevents

import "time"

// Tools: a call goes out, its arguments may stream, its return comes back.
// CallID ties the three together within (run, agent).

// ToolCalled opens a tool call. A CallID is not used again while its call is
// open (rule tool-call-open).
//
// Mirrors: OpenWOP agent.toolCalled; wiki tool.call.started; KAOS span
// tool_call/start; KAHN tool_invocation; resume spec agent:tool.
type ToolCalled struct {
	CallID    string `json:"callId" class:"id" check:"required"` // joins call, deltas and return
	ToolID    string `json:"toolId" class:"id" check:"required"` // tool name, or "scope:tool-id" in OpenWOP
	Arguments JSON   `json:"arguments,omitzero" class:"content"` // any JSON value
	// ArgumentsSummary is a short text form; KAHN's input_summary.
	ArgumentsSummary string   `json:"argumentsSummary,omitzero" class:"content" fold:"-"`
	Attempt          Opt[int] `json:"attempt,omitzero" class:"meta" check:"min=1"` // from 1
	RetryOf          string   `json:"retryOf,omitzero" class:"id"`                 // call id of the attempt before
	ArgsHash         string   `json:"argsHash,omitzero" class:"meta"`              // hash of the canonical arguments
	// Principal is on whose behalf the call is made.
	Principal  string    `json:"principal,omitzero" class:"meta"`
	Transport  Transport `json:"transport,omitzero" class:"meta"`     // mcp, http or native
	Attributes JSON      `json:"attributes,omitzero" class:"content"` // free object

	extra extras
}

// ToolArgumentsDelta is a piece of the argument text of a call while the model
// writes it; it may come before the [ToolCalled]. The pieces joined are the
// JSON text of the arguments.
//
// Mirrors: KAOS tool_call_args_delta.
type ToolArgumentsDelta struct {
	CallID string   `json:"callId" class:"id" check:"required"`        // the call
	Delta  string   `json:"delta" class:"content"`                     // the next piece of JSON text
	Index  Opt[int] `json:"index,omitzero" class:"meta" check:"min=0"` // from 0

	extra extras
}

// ToolReturned closes a tool call. It names an open call of its agent (rule
// tool-call-open), and its causationId is the id of the event that opened it
// (rule tool-causation; the emitter fills it in).
//
// With OneEvent set it is the record of a whole call that has no [ToolCalled]
// of its own, as KAHN and the resume spec write it: then Arguments and
// ArgumentsSummary may be set, the call started at the event's time less
// Duration, and the rule about open calls does not apply. It does not apply to
// [ToolStatusForbidden] and [ToolStatusRateLimited] either, which may be decided before
// any call: with OneEvent they say that it never began, and none is counted.
//
// Mirrors: OpenWOP agent.toolReturned; wiki tool.call.completed; KAOS span
// tool_call/complete, tool_call/error, tool_call/cancelled; KAHN
// tool_invocation; resume spec agent:tool.
type ToolReturned struct {
	CallID        string             `json:"callId" class:"id" check:"required"`              // the call
	ToolID        string             `json:"toolId" class:"id" check:"required"`              // as in the call
	Status        ToolStatus         `json:"status" class:"meta"`                             // how it went; required
	Result        JSON               `json:"result,omitzero" class:"content"`                 // any JSON value
	ResultSummary string             `json:"resultSummary,omitzero" class:"content" fold:"-"` // short text form; KAHN's output_summary
	Error         Opt[ErrorInfo]     `json:"error,omitzero" class:"content"`                  // what went wrong
	Duration      Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"`  // milliseconds on the wire
	OneEvent      bool               `json:"oneEvent,omitzero" class:"meta"`                  // no ToolCalled: see above

	Arguments        JSON   `json:"arguments,omitzero" class:"content"`                 // with OneEvent only
	ArgumentsSummary string `json:"argumentsSummary,omitzero" class:"content" fold:"-"` // with OneEvent only

	extra extras
}

// wholeCall reports whether the return is a call by itself, which began.
func (p *ToolReturned) wholeCall() bool {
	return p.OneEvent && p.Status != ToolStatusForbidden && p.Status != ToolStatusRateLimited
}

// Handing over: one agent passes control to another, as one fact or as a
// request and its acceptance.

// AgentHandoff passes control from one agent to another in one event.
//
// Mirrors: OpenWOP agent.handoff.
type AgentHandoff struct {
	From    AgentRef `json:"from" class:"meta"`                // who hands over
	To      AgentRef `json:"to" class:"meta"`                  // who takes over
	Reason  string   `json:"reason,omitzero" class:"content"`  // why; free text
	Context JSON     `json:"context,omitzero" class:"content"` // what is handed over

	extra extras
}

// HandoffRequested asks another agent to take over.
//
// Mirrors: wiki handoff.requested; KAOS span handoff/start.
type HandoffRequested struct {
	// HandoffID joins request and acceptance. Without it they are joined by
	// the pair of agents.
	HandoffID     string   `json:"handoffId,omitzero" class:"id"`
	From          AgentRef `json:"from" class:"meta"`                   // who asks
	To            AgentRef `json:"to" class:"meta"`                     // who is asked
	Reason        string   `json:"reason,omitzero" class:"content"`     // why; free text
	ContextDigest string   `json:"contextDigest,omitzero" class:"meta"` // hash or handle of what is handed over

	extra extras
}

// HandoffAccepted closes a [HandoffRequested] (rule handoff-open).
//
// Mirrors: wiki handoff.accepted; KAOS span handoff/complete.
type HandoffAccepted struct {
	HandoffID     string   `json:"handoffId,omitzero" class:"id"`       // as requested
	From          AgentRef `json:"from" class:"meta"`                   // who asked
	To            AgentRef `json:"to" class:"meta"`                     // who took over
	Reason        string   `json:"reason,omitzero" class:"content"`     // why; free text
	ContextDigest string   `json:"contextDigest,omitzero" class:"meta"` // as requested

	extra extras
}
