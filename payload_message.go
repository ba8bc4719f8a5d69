package agentevents

import (
	"time"
)

// Reasoning, text, decisions and messages of agents.
//
// Text and reasoning come as deltas, as whole blocks, or both. BlockID joins the
// deltas of a block and the block. The block has the whole text, so a log that
// has the block may drop its deltas. Index numbers the deltas of a block from 0
// (rule delta-index).

// AgentReasoned is a whole block of an agent's private reasoning. The redaction
// step cuts or drops the text: see [Policy].Reasoning.
//
// Mirrors: OpenWOP agent.reasoned; resume spec agent:thinking.
type AgentReasoned struct {
	BlockID    string     `json:"blockId,omitzero" class:"id"`                    // id of the block, as in its deltas
	Reasoning  string     `json:"reasoning" class:"content"`                      // the reasoning, or a summary of it
	Verbosity  Verbosity  `json:"verbosity,omitzero" class:"meta"`                // how much of it Reasoning holds; empty means full
	TokenCount Opt[int64] `json:"tokenCount,omitzero" class:"meta" check:"min=0"` // tokens of the block

	extra extras
}

// AgentReasoningDelta is a piece of a reasoning block that the agent is still
// writing. Readers may ignore it and wait for the [AgentReasoned].
//
// Mirrors: OpenWOP agent.reasoning.delta; resume spec agent:thinking:delta;
// KAOS thinking_delta.
type AgentReasoningDelta struct {
	BlockID    string     `json:"blockId,omitzero" class:"id"`                    // id of the block
	Delta      string     `json:"delta" class:"content"`                          // the next piece of text
	Index      Opt[int]   `json:"index,omitzero" class:"meta" check:"min=0"`      // number of the delta in its block, from 0
	Verbosity  Verbosity  `json:"verbosity,omitzero" class:"meta"`                // as in AgentReasoned
	TokenCount Opt[int64] `json:"tokenCount,omitzero" class:"meta" check:"min=0"` // tokens of this piece

	extra extras
}

// AgentDecided is a decision of an agent. The supervisor's decisions are
// [OrchestratorDecided].
//
// Mirrors: OpenWOP agent.decided.
type AgentDecided struct {
	Decision   JSON         `json:"decision" class:"content"`                      // required: any JSON value, by the host's conventions
	Confidence Opt[float64] `json:"confidence,omitzero" class:"meta" check:"unit"` // in [0, 1]
	Reasoning  string       `json:"reasoning,omitzero" class:"content" fold:"-"`   // why; cut according to Policy.Reasoning

	extra extras
}

// OrchestratorDecided is a decision of the run's supervisor: next-worker,
// ask-user or terminate.
//
// Mirrors: OpenWOP runOrchestrator.decided.
type OrchestratorDecided struct {
	Decision  JSON     `json:"decision" class:"content" broken:"object"`      // required: OpenWOP's OrchestratorDecision object
	Iteration Opt[int] `json:"iteration,omitzero" class:"meta" check:"min=1"` // round of the supervisor's loop, from 1

	extra extras
}

// IntentClassified records the user's intent, as the agent understands it.
//
// Mirrors: KAOS intent_classified.
type IntentClassified struct {
	Intent     string       `json:"intent" class:"meta" check:"required"`          // open word: the class of the intent
	Confidence Opt[float64] `json:"confidence,omitzero" class:"meta" check:"unit"` // in [0, 1]
	Reasoning  string       `json:"reasoning,omitzero" class:"content" fold:"-"`   // why; cut according to Policy.Reasoning

	extra extras
}

// PlanProposed is a list of steps that an agent means to take.
//
// Mirrors: KAOS plan_proposed.
type PlanProposed struct {
	Steps    []PlanStep `json:"steps" class:"content"`             // in order; may be empty
	Strategy string     `json:"strategy,omitzero" class:"content"` // the approach; free text

	extra extras
}

// PlanStep is one step of a [PlanProposed].
type PlanStep struct {
	StepID      string `json:"stepId" class:"id" check:"required"` // id of the step in the plan
	Description string `json:"description" class:"content"`        // the purpose of the step
	ToolName    string `json:"toolName,omitzero" class:"meta"`     // tool that the step is meant to use

	extra extras
}

// TextDelta is a piece of visible text that the agent is still writing.
//
// Mirrors: resume spec agent:text:delta; KAOS text_delta.
type TextDelta struct {
	BlockID string   `json:"blockId,omitzero" class:"id"`               // id of the block
	Delta   string   `json:"delta" class:"content"`                     // the next piece of text
	Index   Opt[int] `json:"index,omitzero" class:"meta" check:"min=0"` // number of the delta in its block, from 0

	extra extras
}

// TextCompleted is a whole block of the agent's visible text.
//
// Mirrors: resume spec agent:text.
type TextCompleted struct {
	BlockID string `json:"blockId,omitzero" class:"id"` // id of the block, as in its deltas
	Text    string `json:"text" class:"content"`        // the whole text

	extra extras
}

// MessageCreated adds a message to the run's conversation.
//
// Mirrors: wiki agent.message.created; OpenWOP ConversationMessage.
type MessageCreated struct {
	Message ConversationMessage `json:"message" class:"content"` // the message; required

	extra extras
}

// ConversationMessage is the message record of OpenWOP RFC 0002, section G. With
// Role, TurnIndex and Agent it is the RFC's ConversationTurn.
//
// A message is identified by MessageID. A fold keeps each message once: a second
// one with the same id and content changes nothing, also if it has another TS. One
// with the same id and other content breaks rule message-id, and the first one stays.
type ConversationMessage struct {
	// MessageID is unique in the conversation and the same in every replay.
	// The emitter mints a UUIDv7 when it is empty.
	MessageID string `json:"messageId" class:"id" check:"required"`
	// From is an agent id or "user". The emitter fills in the event's agent when
	// it is empty.
	From string `json:"from" class:"id" check:"required"`
	To   string `json:"to,omitzero" class:"id"` // agent id or "user"
	// GroupID is required when the sender shares its context by group (rule
	// message-group).
	GroupID string `json:"groupId,omitzero" class:"id"`
	Content JSON   `json:"content" class:"content"` // required: any JSON value
	// TS is the time in milliseconds since the Unix epoch. The emitter fills in
	// the event's time when it is 0.
	TS        int64         `json:"ts" class:"meta"`
	Role      string        `json:"role,omitzero" class:"meta"`                    // open word: user, agent, system
	TurnIndex Opt[int]      `json:"turnIndex,omitzero" class:"meta" check:"min=0"` // number of the turn, from 0
	Agent     Opt[AgentRef] `json:"agent,omitzero" class:"meta"`                   // the agent that speaks

	extra extras
}

// Assurance: audits, verdicts, issues and citations. These events judge the
// work.

// AuditChecked records the result of one audit. Without an agent in the
// envelope the audit is about the whole run; KAHN then writes agent_id null. An
// audit may follow the end of its agent and of the run.
//
// Mirrors: KAHN audit_checkpoint.
type AuditChecked struct {
	CheckpointID string        `json:"checkpointId" class:"id" check:"required"`          // such as "audit:test-coverage.unit"
	Result       AuditResult   `json:"result" class:"meta"`                               // required: pass, fail or warn
	Duration     time.Duration `json:"durationMs" class:"meta" check:"min=0"`             // time the audit took; milliseconds on the wire
	Evidence     JSON          `json:"evidence,omitzero" class:"content" broken:"object"` // a JSON object (rule field-range)

	extra extras
}

// ClaimVerified records that a verifier accepted or rejected a finding.
//
// Mirrors: wiki claim.verified.
type ClaimVerified struct {
	FindingID       string `json:"findingId" class:"id" check:"required"`       // id of the finding
	VerifierAgentID string `json:"verifierAgentId" class:"id" check:"required"` // agent that checked it
	Verdict         string `json:"verdict" class:"meta" check:"required"`       // open word: accepted, rejected, …
	Evidence        JSON   `json:"evidence,omitzero" class:"content"`           // any JSON value

	extra extras
}

// IssueFound records a fault that a verifier found.
//
// Mirrors: wiki verifier.issue.found.
type IssueFound struct {
	Issue        string `json:"issue" class:"content"`                 // the fault
	Severity     string `json:"severity,omitzero" class:"meta"`        // a word of the verifier's own scale
	Evidence     JSON   `json:"evidence,omitzero" class:"content"`     // any JSON value
	SuggestedFix string `json:"suggestedFix,omitzero" class:"content"` // how to mend it

	extra extras
}

// CitationFound ties a claim to a source.
//
// Mirrors: KAOS citation_found.
type CitationFound struct {
	Claim      string       `json:"claim" class:"content"`                         // the agent's claim
	SourceURI  string       `json:"sourceUri" class:"content"`                     // the source of the claim
	Confidence Opt[float64] `json:"confidence,omitzero" class:"meta" check:"unit"` // in [0, 1]
	Verified   Opt[bool]    `json:"verified,omitzero" class:"meta"`                // whether the citation is verified

	extra extras
}

// EvidenceInsufficient records that the agent cannot support an answer.
//
// Mirrors: KAOS evidence_insufficient.
type EvidenceInsufficient struct {
	Reason           string `json:"reason" class:"content"`                    // the missing evidence
	WhatWouldResolve string `json:"whatWouldResolve,omitzero" class:"content"` // evidence that would support it

	extra extras
}
