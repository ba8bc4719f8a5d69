package kahn

// MaxSummary is the maximum length of input_summary and output_summary, in
// characters.
const MaxSummary = 2048

// Numbers of the members of all variants, in the order of writing.
// memberNames[n-1] belongs to number n.
const (
	mTS = 1 + iota
	mRunID
	mEvent
	mAgentID
	mTask
	mModel
	mStep
	mFrom
	mTo
	mReason
	mToolName
	mDuration
	mOK
	mInputSummary
	mOutputSummary
	mError
	mCheckpointID
	mResult
	mEvidence
	mOutcome
	mTotalSteps
	mTotalToolCalls
	mTotalAudits
	mAuditsPassed
	mAuditsFailed
	mTotalDuration
	mScore
	numMembers = iota
)

// memberNames are the members as they stand on a line, with quotes and colon.
var memberNames = [numMembers]string{
	`"ts":`, `"run_id":`, `"event":`, `"agent_id":`, `"task":`, `"model":`, `"step":`, `"from":`, `"to":`, `"reason":`, `"tool_name":`,
	`"duration_s":`, `"ok":`, `"input_summary":`, `"output_summary":`, `"error":`, `"checkpoint_id":`, `"result":`, `"evidence":`, `"outcome":`,
	`"total_steps":`, `"total_tool_calls":`, `"total_audit_checkpoints":`, `"audits_passed":`, `"audits_failed":`, `"total_duration_s":`, `"convergence_score":`,
}

// memberName returns the name of member n.
func memberName(n int) string { return memberNames[n-1][1 : len(memberNames[n-1])-2] }

// A set is a set of members, bit n for member n.
type set uint32

func (s set) has(member int) bool { return s&(1<<member) != 0 }

// A variant is a type of line.
type variant struct {
	event    string
	members  set // besides base
	optional set // the members that may be absent
}

// base has the members of every line.
const base set = 1<<mTS | 1<<mRunID | 1<<mEvent

// variants are those of the document, in its order.
var variants = [...]variant{
	vStart:      {"agent_run_start", 1<<mAgentID | 1<<mTask | 1<<mModel, 1 << mModel},
	vTransition: {"agent_transition", 1<<mAgentID | 1<<mStep | 1<<mFrom | 1<<mTo | 1<<mReason, 1 << mReason},
	vTool: {"tool_invocation", 1<<mAgentID | 1<<mStep | 1<<mToolName | 1<<mDuration | 1<<mOK | 1<<mInputSummary | 1<<mOutputSummary | 1<<mError,
		1<<mInputSummary | 1<<mOutputSummary | 1<<mError},
	vAudit: {"audit_checkpoint", 1<<mAgentID | 1<<mCheckpointID | 1<<mResult | 1<<mDuration | 1<<mEvidence, 1 << mEvidence},
	vEnd: {"agent_run_end", 1<<mAgentID | 1<<mOutcome | 1<<mTotalSteps | 1<<mTotalToolCalls | 1<<mTotalAudits | 1<<mAuditsPassed | 1<<mAuditsFailed |
		1<<mTotalDuration | 1<<mScore, 1 << mScore},
}

// Indices of variants.
const (
	vStart = iota
	vTransition
	vTool
	vAudit
	vEnd
	vUnknown = -1
)

// variantOf returns the index of the variant, or vUnknown.
func variantOf(event string) int {
	switch event {
	case "agent_run_start":
		return vStart
	case "agent_transition":
		return vTransition
	case "tool_invocation":
		return vTool
	case "audit_checkpoint":
		return vAudit
	case "agent_run_end":
		return vEnd
	}
	return vUnknown
}
