package agentevents

import (
	"cmp"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Tools. A call has an event that opens it, perhaps deltas of its arguments, and
// a return. CallID joins them within (run, agent).

// ToolCalled opens a tool call. A CallID must not be used again while its call
// is open (rule tool-call-open).
//
// Mirrors: OpenWOP agent.toolCalled; wiki tool.call.started; KAOS span
// tool_call/start; KAHN tool_invocation; resume spec agent:tool.
type ToolCalled struct {
	CallID    string `json:"callId" class:"id" check:"required"`                        // joins call, deltas and return
	ToolID    string `json:"toolId" class:"id" check:"required"`                        // tool name, or "scope:tool-id" in OpenWOP
	Arguments JSON   `json:"arguments,omitzero" class:"content" broken:"ArgumentsText"` // any JSON value
	// ArgumentsText: Arguments is a JSON string that holds a text which is not JSON. The
	// emitter sets it when it is given that text as Arguments.
	ArgumentsText bool `json:"argumentsText,omitzero" class:"meta"`
	// ArgumentsSummary is the arguments as a short text; KAHN's input_summary.
	ArgumentsSummary string   `json:"argumentsSummary,omitzero" class:"content" fold:"-"`
	Attempt          Opt[int] `json:"attempt,omitzero" class:"meta" check:"min=1"` // number of the attempt, from 1
	RetryOf          string   `json:"retryOf,omitzero" class:"id"`                 // call id of the previous attempt
	ArgsHash         string   `json:"argsHash,omitzero" class:"meta"`              // hash of the canonical arguments (OpenWOP)
	// ApprovalID is the id of the granted approval under which the call is made. An approval
	// allows one call (rule approval-binds).
	ApprovalID string `json:"approvalId,omitzero" class:"id"`
	// Principal is the person or service that the agent acts for (OpenWOP).
	Principal  string    `json:"principal,omitzero" class:"meta"`
	Transport  Transport `json:"transport,omitzero" class:"meta"`                     // mcp, http or native
	Attributes JSON      `json:"attributes,omitzero" class:"content" broken:"object"` // free object

	extra extras
}

// ToolArgumentsDelta is a piece of the arguments of a tool call, recorded while the model writes
// them. It may precede the [ToolCalled] of its call. The pieces of a call, joined in order, are the
// JSON text of its arguments.
//
// Mirrors: KAOS tool_call_args_delta.
type ToolArgumentsDelta struct {
	CallID string   `json:"callId" class:"id" check:"required"`        // id of the call
	Delta  string   `json:"delta" class:"content"`                     // the next piece of JSON text
	Index  Opt[int] `json:"index,omitzero" class:"meta" check:"min=0"` // number of the delta in its call, from 0

	extra extras
}

// ToolReturned closes a tool call. It must name an open call of its agent (rule
// tool-call-open). Its CausationID is the id of the event that opened the call
// (rule tool-causation); the emitter fills it in.
//
// With OneEvent set it records a whole call without a [ToolCalled], as KAHN and
// the resume spec do. Then Arguments and ArgumentsSummary may be set, the call
// began at the event's time minus Duration, and rule tool-call-open does not
// apply.
//
// A call may be refused before it begins: rule tool-call-open does not apply to
// [ToolStatusForbidden] and [ToolStatusRateLimited]. With OneEvent these two statuses mean that the
// call never began, and it is not counted.
//
// Mirrors: OpenWOP agent.toolReturned; wiki tool.call.completed; KAOS span
// tool_call/complete, tool_call/error, tool_call/cancelled; KAHN
// tool_invocation; resume spec agent:tool.
type ToolReturned struct {
	CallID        string             `json:"callId" class:"id" check:"required"`                  // id of the call; with OneEvent the emitter mints an empty one
	ToolID        string             `json:"toolId" class:"id" check:"required"`                  // as in the call
	Status        ToolStatus         `json:"status" class:"meta"`                                 // required: how the call went
	StatusWord    string             `json:"statusWord,omitzero" class:"meta"`                    // the document's own word for Status, if it is another one, such as timeout
	Result        JSON               `json:"result,omitzero" class:"content" broken:"ResultText"` // any JSON value
	ResultText    bool               `json:"resultText,omitzero" class:"meta"`                    // Result is a JSON string that holds a text which is not JSON; the emitter sets it, as in ToolCalled
	ResultSummary string             `json:"resultSummary,omitzero" class:"content"`              // the result as a short text; KAHN's output_summary
	Error         Opt[ErrorInfo]     `json:"error,omitzero" class:"content"`                      // the cause
	Duration      Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"`      // milliseconds on the wire
	OneEvent      bool               `json:"oneEvent,omitzero" class:"meta"`                      // the event is the whole call, which has no ToolCalled

	Arguments        JSON   `json:"arguments,omitzero" class:"content" broken:"ArgumentsText"` // with OneEvent only
	ArgumentsText    bool   `json:"argumentsText,omitzero" class:"meta"`                       // with OneEvent only
	ArgumentsSummary string `json:"argumentsSummary,omitzero" class:"content" fold:"-"`        // with OneEvent only

	extra extras
}

// reason returns why a call that did not go well failed: the message of its error, else the
// beginning of the result, which is where KAOS and KAHN have it.
func (p *ToolReturned) reason() string {
	text := cmp.Or(p.Error.V.Message, p.Error.V.Code, p.ResultSummary, jsonwire.Text(string(p.Result)))
	if text == "" && p.Result != "null" {
		text = string(p.Result)
	}
	return beginning(text)
}

// beginning returns a text, cut where it is long, for a snapshot that people read.
func beginning(text string) string {
	const most = 256 // bytes
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// wholeCall reports whether the event records a whole call that began.
func (p *ToolReturned) wholeCall() bool {
	return p.OneEvent && p.Status != ToolStatusForbidden && p.Status != ToolStatusRateLimited
}

// Handoffs. One agent passes control to another, in one event or in a request
// and its acceptance.

// AgentHandoff passes control from one agent to another in one event. It ends and
// starts no agent and moves no status: an agent that will not work on ends, with
// [OutcomePartial] or [OutcomeEscaped] if its own work is not done.
//
// Mirrors: OpenWOP agent.handoff.
type AgentHandoff struct {
	From    AgentRef `json:"from" class:"meta"`                // agent that hands over; required
	To      AgentRef `json:"to" class:"meta"`                  // agent that takes over; required
	Reason  string   `json:"reason,omitzero" class:"content"`  // why; free text
	Context JSON     `json:"context,omitzero" class:"content"` // the context that is handed over; any JSON value

	extra extras
}

// HandoffRequested asks another agent to take over.
//
// Mirrors: wiki handoff.requested; KAOS span handoff/start.
type HandoffRequested struct {
	// HandoffID joins the request and its acceptance. When it is empty, the
	// pair of agents does.
	HandoffID     string   `json:"handoffId,omitzero" class:"id"`
	From          AgentRef `json:"from" class:"meta"`                   // agent that hands over; required
	To            AgentRef `json:"to" class:"meta"`                     // agent that is asked to take over; required
	Reason        string   `json:"reason,omitzero" class:"content"`     // why; free text
	ContextDigest string   `json:"contextDigest,omitzero" class:"meta"` // hash or handle of the context that is handed over

	extra extras
}

// HandoffAccepted closes a [HandoffRequested] (rule handoff-open).
//
// Mirrors: wiki handoff.accepted; KAOS span handoff/complete.
type HandoffAccepted struct {
	HandoffID     string   `json:"handoffId,omitzero" class:"id"`       // as in the request
	From          AgentRef `json:"from" class:"meta"`                   // agent that hands over; required
	To            AgentRef `json:"to" class:"meta"`                     // agent that takes over; required
	Reason        string   `json:"reason,omitzero" class:"content"`     // why; free text
	ContextDigest string   `json:"contextDigest,omitzero" class:"meta"` // as in the request

	extra extras
}

// Models. A model call has an event that opens it and one that closes it. ModelCallID
// joins them within (run, agent). The text, the reasoning and the tool calls that a
// model answers with are events of their own.

// ModelCalled opens a model call: one request to a model. A ModelCallID must not be
// used again while its call is open (rule model-call-open).
//
// Mirrors: KAOS span llm_call/start.
type ModelCalled struct {
	ModelCallID string `json:"modelCallId" class:"id" check:"required"` // joins call and return
	// Provider is who serves the model. It is an open word; OpenTelemetry's words for
	// gen_ai.provider.name are known: openai, anthropic, aws.bedrock, gcp.vertex_ai, …
	Provider string `json:"provider,omitzero" class:"meta"`
	Model    string `json:"model,omitzero" class:"meta"` // model name as requested
	// Operation is an open word, as gen_ai.operation.name of OpenTelemetry: chat,
	// text_completion, embeddings, … Empty means chat.
	Operation  string   `json:"operation,omitzero" class:"meta"`
	Attempt    Opt[int] `json:"attempt,omitzero" class:"meta" check:"min=1"`         // number of the attempt, from 1
	RetryOf    string   `json:"retryOf,omitzero" class:"id"`                         // model call id of the previous attempt
	Request    JSON     `json:"request,omitzero" class:"content"`                    // the body of the request; any JSON value
	Attributes JSON     `json:"attributes,omitzero" class:"content" broken:"object"` // free object, such as the parameters of the request

	extra extras
}

// ModelReturned closes a model call. It must name an open model call of its agent
// (rule model-call-open). Its CausationID is the id of the event that opened the call
// (rule model-causation); the emitter fills it in.
//
// With OneEvent set it records a whole call without a [ModelCalled]. Then Request may
// be set, the call began at the event's time minus Duration, and rule model-call-open
// does not apply.
//
// Mirrors: KAOS span llm_call/complete, llm_call/error, llm_call/cancelled.
type ModelReturned struct {
	ModelCallID   string   `json:"modelCallId" class:"id" check:"required"` // id of the call; with OneEvent the emitter mints an empty one
	Provider      string   `json:"provider,omitzero" class:"meta"`          // who has answered; empty means as in the call
	Model         string   `json:"model,omitzero" class:"meta"`             // name of the model that has answered; empty means as in the call
	Operation     string   `json:"operation,omitzero" class:"meta"`         // as in the call
	FinishReasons []string `json:"finishReasons,omitzero" class:"meta"`     // why the model stopped, one word for each choice: stop, length, tool_calls, …
	// TimeToFirstToken is the time from the request to the first piece of the answer;
	// milliseconds on the wire.
	TimeToFirstToken Opt[time.Duration] `json:"timeToFirstTokenMs,omitzero" class:"meta" check:"min=0"`
	Duration         Opt[time.Duration] `json:"durationMs,omitzero" class:"meta" check:"min=0"` // milliseconds on the wire
	Usage            Opt[Usage]         `json:"usage,omitzero" class:"meta"`                    // tokens of this call; RunUsage explains which figures count
	CostUSD          Opt[float64]       `json:"costUsd,omitzero" class:"meta" check:"min=0"`    // cost of this call in US dollars
	Error            Opt[ErrorInfo]     `json:"error,omitzero" class:"content"`                 // set when the call failed; code cancelled when somebody stopped it
	RequestID        string             `json:"requestId,omitzero" class:"id"`                  // the provider's id of the request, which its support asks for
	ResponseID       string             `json:"responseId,omitzero" class:"id"`                 // the provider's id of the answer
	Response         JSON               `json:"response,omitzero" class:"content"`              // the body of the response; any JSON value
	OneEvent         bool               `json:"oneEvent,omitzero" class:"meta"`                 // the event is the whole call, which has no ModelCalled
	Request          JSON               `json:"request,omitzero" class:"content"`               // with OneEvent only

	extra extras
}
