package agentevents

import "time"

// Assurance: audits, verdicts, issues and citations, the events that say
// whether the work is any good.

// AuditChecked is one audit checkpoint. Without an agent in the envelope it
// asserts something about the whole run; KAHN then writes agent_id null.
//
// Mirrors: KAHN audit_checkpoint.
type AuditChecked struct {
	CheckpointID string        `json:"checkpointId" class:"id" check:"required"` // such as "audit:test-coverage.unit"
	Result       AuditResult   `json:"result" class:"meta"`                      // pass, fail or warn
	Duration     time.Duration `json:"durationMs" class:"meta" check:"min=0"`    // milliseconds on the wire
	Evidence     JSON          `json:"evidence,omitzero" class:"content"`        // an object

	extra extras
}

// ClaimVerified says that a verifier accepted or rejected a finding.
//
// Mirrors: wiki claim.verified.
type ClaimVerified struct {
	FindingID       string `json:"findingId" class:"id" check:"required"`       // the finding
	VerifierAgentID string `json:"verifierAgentId" class:"id" check:"required"` // who checked
	Verdict         string `json:"verdict" class:"meta" check:"required"`       // accepted, rejected; open
	Evidence        JSON   `json:"evidence,omitzero" class:"content"`           // any JSON

	extra extras
}

// IssueFound says that a verifier found something wrong.
//
// Mirrors: wiki verifier.issue.found.
type IssueFound struct {
	Issue        string `json:"issue" class:"content"`                 // what is wrong
	Severity     string `json:"severity,omitzero" class:"meta"`        // the verifier's own scale
	Evidence     JSON   `json:"evidence,omitzero" class:"content"`     // any JSON
	SuggestedFix string `json:"suggestedFix,omitzero" class:"content"` // what to do

	extra extras
}

// CitationFound ties a claim to a source.
//
// Mirrors: KAOS citation_found.
type CitationFound struct {
	Claim      string       `json:"claim" class:"content"`                         // what is claimed
	SourceURI  string       `json:"sourceUri" class:"content"`                     // where it says so
	Confidence Opt[float64] `json:"confidence,omitzero" class:"meta" check:"unit"` // in [0, 1]
	Verified   Opt[bool]    `json:"verified,omitzero" class:"meta"`                // whether it was checked

	extra extras
}

// EvidenceInsufficient says that the agent could not support an answer.
//
// Mirrors: KAOS evidence_insufficient.
type EvidenceInsufficient struct {
	Reason           string `json:"reason" class:"content"`                    // what is missing
	WhatWouldResolve string `json:"whatWouldResolve,omitzero" class:"content"` // what would help

	extra extras
}
