package agentevents

import "time"

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
