package agentevents

import "time"

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
