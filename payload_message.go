package agentevents

// Reasoning, text, decisions and messages: what agents think, write, decide
// and say to each other.
//
// Text and reasoning come as deltas, as whole blocks, or both. BlockID ties
// them together; where both exist the whole block is the truth and its deltas
// may be dropped. Index counts the deltas of one block from 0 (rule
// delta-index).

// AgentReasoned is a whole block of private reasoning. The redaction step
// bounds or drops the text by the verbosity in force.
//
// Mirrors: OpenWOP agent.reasoned; resume spec agent:thinking.
type AgentReasoned struct {
	BlockID    string     `json:"blockId,omitzero" class:"id"`                    // the block its deltas named
	Reasoning  string     `json:"reasoning" class:"content"`                      // the trace, full or summary
	Verbosity  Verbosity  `json:"verbosity,omitzero" class:"meta"`                // what Reasoning holds; empty means full
	TokenCount Opt[int64] `json:"tokenCount,omitzero" class:"meta" check:"min=0"` // tokens of the block

	extra extras
}

// AgentReasoningDelta is a piece of a reasoning block while it is written.
// Readers may ignore it and take the closing [AgentReasoned].
//
// Mirrors: OpenWOP agent.reasoning.delta; resume spec agent:thinking:delta;
// KAOS thinking_delta.
type AgentReasoningDelta struct {
	BlockID    string     `json:"blockId,omitzero" class:"id"`                    // the block it belongs to
	Delta      string     `json:"delta" class:"content"`                          // the next piece of text
	Index      Opt[int]   `json:"index,omitzero" class:"meta" check:"min=0"`      // position within the block, from 0
	Verbosity  Verbosity  `json:"verbosity,omitzero" class:"meta"`                // empty means full
	TokenCount Opt[int64] `json:"tokenCount,omitzero" class:"meta" check:"min=0"` // tokens of this piece

	extra extras
}

// AgentDecided is a decision an agent can act on. It is not the supervisor's:
// that one is [OrchestratorDecided].
//
// Mirrors: OpenWOP agent.decided.
type AgentDecided struct {
	Decision   JSON         `json:"decision" class:"content"`                      // any JSON, by the host's conventions
	Confidence Opt[float64] `json:"confidence,omitzero" class:"meta" check:"unit"` // in [0, 1]
	Reasoning  string       `json:"reasoning,omitzero" class:"content" fold:"-"`   // why; follows the reasoning verbosity

	extra extras
}

// OrchestratorDecided is a decision of the run's supervisor: an object that
// says next-worker, ask-user or terminate.
//
// Mirrors: OpenWOP runOrchestrator.decided.
type OrchestratorDecided struct {
	Decision  JSON     `json:"decision" class:"content"`                      // the OrchestratorDecision object
	Iteration Opt[int] `json:"iteration,omitzero" class:"meta" check:"min=1"` // supervisor loop, from 1

	extra extras
}

// IntentClassified says what the user was understood to want.
//
// Mirrors: KAOS intent_classified.
type IntentClassified struct {
	Intent     string       `json:"intent" class:"meta" check:"required"`          // the class
	Confidence Opt[float64] `json:"confidence,omitzero" class:"meta" check:"unit"` // in [0, 1]
	Reasoning  string       `json:"reasoning,omitzero" class:"content" fold:"-"`   // why

	extra extras
}

// PlanProposed is a list of steps an agent means to take.
//
// Mirrors: KAOS plan_proposed.
type PlanProposed struct {
	Steps    []PlanStep `json:"steps" class:"content"`             // in order; may be empty
	Strategy string     `json:"strategy,omitzero" class:"content"` // how; free text

	extra extras
}

// PlanStep is one step of a [PlanProposed].
type PlanStep struct {
	StepID      string `json:"stepId" class:"id" check:"required"` // id within the plan
	Description string `json:"description" class:"content"`        // what will be done
	ToolName    string `json:"toolName,omitzero" class:"meta"`     // the tool it will use

	extra extras
}

// TextDelta is a piece of the agent's visible text while it is written.
//
// Mirrors: resume spec agent:text:delta; KAOS text_delta.
type TextDelta struct {
	BlockID string   `json:"blockId,omitzero" class:"id"`               // the block it belongs to
	Delta   string   `json:"delta" class:"content"`                     // the next piece of text
	Index   Opt[int] `json:"index,omitzero" class:"meta" check:"min=0"` // position within the block, from 0

	extra extras
}

// TextCompleted is a whole block of the agent's visible text.
//
// Mirrors: resume spec agent:text.
type TextCompleted struct {
	BlockID string `json:"blockId,omitzero" class:"id"` // the block its deltas named
	Text    string `json:"text" class:"content"`        // the whole text

	extra extras
}

// MessageCreated appends a message to the run's conversation.
//
// Mirrors: wiki agent.message.created; OpenWOP ConversationMessage.
type MessageCreated struct {
	Message ConversationMessage `json:"message" class:"content"` // the message

	extra extras
}

// ConversationMessage is the append-only message record of OpenWOP RFC 0002,
// section G. Role, TurnIndex and Agent make it the RFC's ConversationTurn.
//
// MessageID is the deduplication key: folding the same id and content again
// changes nothing; the same id with other content is reported and the first
// one wins (rule message-id).
type ConversationMessage struct {
	// MessageID is unique in the conversation and the same in every replay.
	// The emitter mints one (a UUIDv7) when it is empty.
	MessageID string `json:"messageId" class:"id" check:"required"`
	// From is an agent id or "user". The emitter fills in the acting agent.
	From string `json:"from" class:"id" check:"required"`
	To   string `json:"to,omitzero" class:"id"` // addressee
	// GroupID is required when the sender shares its context by group (rule
	// message-group).
	GroupID string `json:"groupId,omitzero" class:"id"`
	Content JSON   `json:"content" class:"content"` // any JSON value
	// TS is in milliseconds since the Unix epoch. The emitter fills in the
	// event's time when it is 0.
	TS        int64         `json:"ts" class:"meta"`
	Role      string        `json:"role,omitzero" class:"meta"`                    // user, agent, system
	TurnIndex Opt[int]      `json:"turnIndex,omitzero" class:"meta" check:"min=0"` // from 0
	Agent     Opt[AgentRef] `json:"agent,omitzero" class:"meta"`                   // the speaking agent

	extra extras
}
