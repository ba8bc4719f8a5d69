package openwop

import (
	"math/bits"

	"github.com/agentevents/agentevents"
)

// Members of the envelope, in the order of writing. They count from 1, as
// Scanner.Field does.
const (
	eEventID = 1 + iota
	eRunID
	eNodeID
	eType
	ePayload
	eTimestamp
	eSequence
	eSchemaVersion
	eEngineVersion
	eCausationID
	numEnvelope = iota
)

var envelopeNames = [numEnvelope]string{
	`"eventId":`, `"runId":`, `"nodeId":`, `"type":`, `"payload":`, `"timestamp":`, `"sequence":`, `"schemaVersion":`, `"engineVersion":`, `"causationId":`,
}

// envelopeRequired are the members of every line.
const envelopeRequired set = 1<<eEventID | 1<<eRunID | 1<<eType | 1<<ePayload | 1<<eTimestamp | 1<<eSequence

// Members of all payloads. A name stands for the same type of value in every
// payload. The published spelling follows that of the RFC.
const (
	mAgentID = 1 + iota
	mNodeID
	mToolID
	mToolName
	mCallID
	mArguments
	mInputs
	mArgsHash
	mPrincipal
	mTransport
	mResult
	mOutcome
	mError
	mStatus
	mDurationMs
	mReasoning
	mVerbosity
	mDelta
	mSequence
	mFrom
	mFromAgentID
	mTo
	mToAgentID
	mReason
	mContext
	mDecision
	mConfidence
	mTypeID
	mAttempt
	mOutputs
	mAgent
	mKind
	mLimit
	mObserved
	mIteration
	mInterruptID
	mQuestions
	mAnswers
	mAnsweredBy
	mWorkflowID
	mMessage
	mGateID
	mTitle
	mScope
	mRisk
	mTimeoutMs
	mKey
	mData
	mResumeValue
	mChannel
	mValue
	mReducer
	mWrittenAt
	mBlockID
	numMembers = iota
)

var memberNames = [numMembers]string{
	`"agentId":`, `"nodeId":`, `"toolId":`, `"toolName":`, `"callId":`, `"arguments":`, `"inputs":`, `"argsHash":`, `"principal":`, `"transport":`,
	`"result":`, `"outcome":`, `"error":`, `"status":`, `"durationMs":`, `"reasoning":`, `"verbosity":`, `"delta":`, `"sequence":`,
	`"from":`, `"fromAgentId":`, `"to":`, `"toAgentId":`, `"reason":`, `"context":`, `"decision":`, `"confidence":`, `"typeId":`, `"attempt":`,
	`"outputs":`, `"agent":`, `"kind":`, `"limit":`, `"observed":`, `"iteration":`, `"interruptId":`, `"questions":`, `"answers":`, `"answeredBy":`,
	`"workflowId":`, `"message":`, `"gateId":`, `"title":`, `"scope":`, `"risk":`, `"timeoutMs":`, `"key":`, `"data":`, `"resumeValue":`,
	`"channel":`, `"value":`, `"reducer":`, `"writtenAt":`, `"blockId":`,
}

// memberHeads are the names after a comma.
var memberHeads = func() (heads [len(memberNames)]string) {
	for i, name := range memberNames {
		heads[i] = "," + name
	}
	return heads
}()

// memberName returns the name of member m.
func memberName(m int) string { return memberNames[m-1][1 : len(memberNames[m-1])-len(`":`)] }

// Sets of members by the type of their values. All other members are text.
const (
	rawMembers set = 1<<mArguments | 1<<mInputs | 1<<mResult | 1<<mOutcome | 1<<mContext | 1<<mDecision | 1<<mOutputs | 1<<mAnswers | 1<<mData |
		1<<mResumeValue | 1<<mValue
	countMembers    set = 1<<mSequence | 1<<mAttempt | 1<<mIteration
	floatMembers    set = 1<<mConfidence | 1<<mLimit | 1<<mObserved
	durationMembers set = 1<<mDurationMs | 1<<mTimeoutMs
	refMembers      set = 1<<mFrom | 1<<mTo | 1<<mAgent
	textMembers     set = 1<<(numMembers+1) - 2 - rawMembers - countMembers - floatMembers - durationMembers - refMembers - 1<<mError - 1<<mQuestions
)

// A set is a set of members, bit n for member n.
type set uint64

func (s set) has(m int) bool { return s&(1<<m) != 0 }

// lowest returns the first member of s. s must not be empty.
func (s set) lowest() int { return bits.TrailingZeros64(uint64(s)) }

// Variants are the types that the vocabulary has.
const (
	vUnknown = iota
	vReasoned
	vDelta
	vToolCalled
	vToolReturned
	vHandoff
	vDecided
	vNodeStarted
	vNodeCompleted
	vNodeFailed
	vNodeSkipped
	vNodeSuspended
	vCapBreached
	vOrchestrator
	vClarRequested
	vClarResolved
	vRunStarted
	vRunPaused
	vRunResumed
	vRunCompleted
	vRunFailed
	vRunCancelled
	vApprovalRequested
	vApprovalGranted
	vApprovalRejected
	vAskRequested // interrupt.requested of kind clarification
	vAskResolved
	vPermitRequested // interrupt.requested of kind approval
	vPermitResolved
	vMessage
	numVariants = iota
)

// A variant describes the payload of one type.
type variant struct {
	name string // the type under RFC0002 and SchemaV1
	v2   string // the type under SchemaV2, if it differs

	members set // read into the vocabulary, under any profile
	usual   set // not required, but written unless there is no value
	// The required members, by profile.
	rfc, v1, v2s set

	closed1 bool   // closed under SchemaV1 too
	sealed  bool   // closed under SchemaV2 even for extensions: see hatch
	open2   bool   // open even under SchemaV2
	legal   string // members of the schemas that the vocabulary has no field for, between blanks
}

var variants = [numVariants]variant{
	vReasoned: {
		name: "agent.reasoned", members: 1<<mAgentID | 1<<mReasoning | 1<<mVerbosity | 1<<mBlockID, legal: hostID,
		rfc: 1<<mAgentID | 1<<mReasoning, v1: 1<<mAgentID | 1<<mReasoning, v2s: 1<<mAgentID | 1<<mReasoning,
	},
	vDelta: {
		name: "agent.reasoning.delta", v2: "agent.reasoning-delta", members: 1<<mAgentID | 1<<mDelta | 1<<mSequence | 1<<mVerbosity | 1<<mBlockID,
		rfc: 1<<mAgentID | 1<<mDelta, v1: 1<<mAgentID | 1<<mDelta | 1<<mSequence, v2s: 1<<mAgentID | 1<<mDelta | 1<<mSequence,
	},
	vToolCalled: {
		name: "agent.toolCalled", v2: "agent.tool-called", legal: hostID,
		members: 1<<mAgentID | 1<<mToolID | 1<<mToolName | 1<<mCallID | 1<<mArguments | 1<<mInputs | 1<<mArgsHash | 1<<mPrincipal | 1<<mTransport,
		rfc:     1<<mAgentID | 1<<mToolID | 1<<mCallID, v1: 1<<mAgentID | 1<<mToolName | 1<<mCallID, v2s: 1<<mAgentID | 1<<mToolName | 1<<mCallID,
	},
	vToolReturned: {
		name: "agent.toolReturned", v2: "agent.tool-returned", legal: hostID,
		members: 1<<mAgentID | 1<<mToolID | 1<<mToolName | 1<<mCallID | 1<<mResult | 1<<mOutcome | 1<<mError | 1<<mStatus | 1<<mDurationMs,
		rfc:     1<<mAgentID | 1<<mToolID | 1<<mCallID, v1: 1<<mAgentID | 1<<mToolName | 1<<mCallID, v2s: 1<<mAgentID | 1<<mToolName | 1<<mCallID,
	},
	vHandoff: {
		name: "agent.handoff", legal: hostID,
		members: 1<<mAgentID | 1<<mFrom | 1<<mTo | 1<<mFromAgentID | 1<<mToAgentID | 1<<mReason | 1<<mContext,
		rfc:     1<<mFrom | 1<<mTo, v1: 1<<mFromAgentID | 1<<mToAgentID, v2s: 1<<mFromAgentID | 1<<mToAgentID,
	},
	vDecided: {
		name: "agent.decided", legal: hostID, members: 1<<mAgentID | 1<<mDecision | 1<<mConfidence | 1<<mReasoning,
		rfc: 1<<mAgentID | 1<<mDecision, v1: 1<<mAgentID | 1<<mDecision, v2s: 1<<mAgentID | 1<<mDecision,
	},
	vNodeStarted: {
		name: "node.started", members: 1<<mAgentID | 1<<mNodeID | 1<<mTypeID | 1<<mAttempt | 1<<mAgent, usual: 1 << mNodeID,
		v1: 1<<mNodeID | 1<<mTypeID, v2s: 1<<mNodeID | 1<<mTypeID,
	},
	vNodeCompleted: {
		name: "node.completed", members: 1<<mAgentID | 1<<mNodeID | 1<<mOutputs | 1<<mDurationMs | 1<<mAgent, usual: 1 << mNodeID,
		v1: 1 << mNodeID, v2s: 1 << mNodeID,
	},
	vNodeFailed: {
		name: "node.failed", legal: " attempts ", members: 1<<mAgentID | 1<<mNodeID | 1<<mError, usual: 1 << mNodeID,
		rfc: 1 << mError, v1: 1<<mNodeID | 1<<mError, v2s: 1<<mNodeID | 1<<mError,
	},
	vNodeSkipped: {
		name: "node.skipped", members: 1<<mAgentID | 1<<mNodeID | 1<<mReason, usual: 1 << mNodeID, v1: 1 << mNodeID, v2s: 1 << mNodeID,
	},
	vNodeSuspended: {
		name: "node.suspended", members: 1<<mAgentID | 1<<mNodeID | 1<<mReason, usual: 1 << mNodeID,
		v1: 1 << mNodeID, v2s: 1 << mNodeID, legal: " interruptId kind key ",
	},
	vCapBreached: {
		name: "cap.breached", legal: " nodeId ", members: 1<<mAgentID | 1<<mKind | 1<<mLimit | 1<<mObserved,
		rfc: 1 << mKind, v1: 1<<mKind | 1<<mLimit | 1<<mObserved, v2s: 1<<mKind | 1<<mLimit | 1<<mObserved,
	},
	vOrchestrator: {
		name: "runOrchestrator.decided", v2: "orchestrator.decided", legal: hostID, closed1: true, sealed: true,
		members: 1<<mAgentID | 1<<mDecision | 1<<mIteration,
		rfc:     1<<mAgentID | 1<<mDecision, v1: 1<<mAgentID | 1<<mDecision, v2s: 1<<mAgentID | 1<<mDecision,
	},
	vClarRequested: {
		name: "clarification.requested", members: 1<<mAgentID | 1<<mNodeID | 1<<mInterruptID | 1<<mQuestions, usual: 1<<mNodeID | 1<<mInterruptID,
		rfc: 1 << mQuestions, v1: 1<<mNodeID | 1<<mQuestions, v2s: 1<<mKind | 1<<mKey | 1<<mData,
	},
	vClarResolved: {
		name: "clarification.resolved", members: 1<<mAgentID | 1<<mNodeID | 1<<mInterruptID | 1<<mAnswers | 1<<mAnsweredBy, usual: 1<<mNodeID | 1<<mInterruptID,
		rfc: 1 << mAnswers, v1: 1<<mNodeID | 1<<mAnswers, v2s: 1<<mNodeID | 1<<mInterruptID,
	},
	vRunStarted: {
		name: "run.started", legal: " transport engineVersion owner tags metadata ", members: 1<<mAgentID | 1<<mWorkflowID | 1<<mInputs,
		v1: 1 << mWorkflowID, v2s: 1 << mWorkflowID,
	},
	vRunPaused:  {name: "run.paused", legal: " drainPolicy interruptedNodeId interruptedAttempt ", members: 1<<mAgentID | 1<<mReason},
	vRunResumed: {name: "run.resumed", open2: true, members: 1<<mAgentID | 1<<mMessage},
	vRunCompleted: {
		name: "run.completed", legal: " durationMs ", members: 1<<mAgentID | 1<<mOutputs, v2s: 1 << mOutputs,
	},
	vRunFailed: {
		name: "run.failed", legal: " failedNodeId durationMs ", members: 1<<mAgentID | 1<<mError, v1: 1 << mError, v2s: 1 << mError,
	},
	vRunCancelled: {name: "run.cancelled", legal: " cancelledBy durationMs parentRunId ", members: 1<<mAgentID | 1<<mReason},
	vApprovalRequested: {
		name: "approval.requested", usual: 1<<mNodeID | 1<<mInterruptID,
		members: 1<<mAgentID | 1<<mNodeID | 1<<mInterruptID | 1<<mTitle | 1<<mReason | 1<<mScope | 1<<mRisk | 1<<mCallID | 1<<mToolID | 1<<mArguments | 1<<mTimeoutMs,
		v1:      1 << mNodeID,
	},
	vApprovalGranted: {
		name: "approval.granted", legal: " quorumProgress ", closed1: true, members: 1<<mGateID | 1<<mPrincipal,
		v1: 1<<mGateID | 1<<mPrincipal,
	},
	vApprovalRejected: {
		name: "approval.rejected", closed1: true, members: 1<<mGateID | 1<<mPrincipal | 1<<mReason,
		v1: 1<<mGateID | 1<<mPrincipal,
	},
	vAskRequested: {
		name: "interrupt.requested", legal: " resumeSchema timeoutMs ", closed1: true, sealed: true, members: 1<<mKind | 1<<mKey | 1<<mData,
		rfc: 1<<mKind | 1<<mKey | 1<<mData, v1: 1<<mKind | 1<<mKey | 1<<mData, v2s: 1<<mKind | 1<<mKey | 1<<mData,
	},
	vAskResolved: {
		name: "interrupt.resolved", usual: 1 << mNodeID, legal: " reason resolvedBy decision action refineFeedback editedArtifactData ",
		members: 1<<mAgentID | 1<<mNodeID | 1<<mInterruptID | 1<<mKind | 1<<mResumeValue | 1<<mAnsweredBy,
		rfc:     1 << mInterruptID, v1: 1<<mNodeID | 1<<mInterruptID, v2s: 1<<mNodeID | 1<<mInterruptID,
	},
	vPermitRequested: {
		name: "interrupt.requested", legal: " resumeSchema ", closed1: true, sealed: true, members: 1<<mKind | 1<<mKey | 1<<mData | 1<<mTimeoutMs,
		rfc: 1<<mKind | 1<<mKey | 1<<mData, v1: 1<<mKind | 1<<mKey | 1<<mData, v2s: 1<<mKind | 1<<mKey | 1<<mData,
	},
	vPermitResolved: {
		name: "interrupt.resolved", usual: 1 << mNodeID, legal: " resumeValue resolvedBy action refineFeedback editedArtifactData ",
		members: 1<<mAgentID | 1<<mNodeID | 1<<mInterruptID | 1<<mKind | 1<<mDecision | 1<<mReason | 1<<mPrincipal,
		rfc:     1 << mInterruptID, v1: 1<<mNodeID | 1<<mInterruptID, v2s: 1<<mNodeID | 1<<mInterruptID,
	},
	vMessage: {
		name: "channel.written", legal: " nodeId schemaVersion sourceEngineId sourceRunId ", closed1: true, sealed: true, usual: 1<<mReducer | 1<<mWrittenAt,
		members: 1<<mChannel | 1<<mValue | 1<<mReducer | 1<<mWrittenAt,
		rfc:     1<<mChannel | 1<<mValue, v1: 1<<mChannel | 1<<mValue | 1<<mReducer | 1<<mWrittenAt, v2s: 1<<mChannel | 1<<mValue | 1<<mReducer | 1<<mWrittenAt,
	},
}

const hostID = " causationHostId "

// closed reports whether the payload must have only the members of the schema.
func (v *variant) closed(p Profile) bool {
	return p == SchemaV1 && v.closed1 || p == SchemaV2 && !v.open2
}

// required returns the members that the profile requires.
func (v *variant) required(p Profile) set {
	switch p {
	case SchemaV1:
		return v.v1
	case SchemaV2:
		return v.v2s
	}
	return v.rfc
}

// typeName returns the type in the profile's spelling.
func typeName(v int, p Profile) string {
	if p == SchemaV2 && variants[v].v2 != "" {
		return variants[v].v2
	}
	return variants[v].name
}

// variantOf returns the variant of a type, and vUnknown for a type that the
// vocabulary does not have. For an interrupt also the kind decides, and for a
// write to a channel the value: see look.
func variantOf(typ string) int {
	switch typ {
	case "agent.reasoned":
		return vReasoned
	case "agent.reasoning.delta", "agent.reasoning-delta":
		return vDelta
	case "agent.toolCalled", "agent.tool-called":
		return vToolCalled
	case "agent.toolReturned", "agent.tool-returned":
		return vToolReturned
	case "agent.handoff":
		return vHandoff
	case "agent.decided":
		return vDecided
	case "node.started":
		return vNodeStarted
	case "node.completed":
		return vNodeCompleted
	case "node.failed":
		return vNodeFailed
	case "node.skipped":
		return vNodeSkipped
	case "node.suspended":
		return vNodeSuspended
	case "cap.breached":
		return vCapBreached
	case "runOrchestrator.decided", "orchestrator.decided":
		return vOrchestrator
	case "clarification.requested":
		return vClarRequested
	case "clarification.resolved":
		return vClarResolved
	case "run.started":
		return vRunStarted
	case "run.paused":
		return vRunPaused
	case "run.resumed":
		return vRunResumed
	case "run.completed":
		return vRunCompleted
	case "run.failed":
		return vRunFailed
	case "run.cancelled":
		return vRunCancelled
	case "approval.requested":
		return vApprovalRequested
	case "approval.granted":
		return vApprovalGranted
	case "approval.rejected":
		return vApprovalRejected
	case "interrupt.requested":
		return vAskRequested
	case "interrupt.resolved":
		return vAskResolved
	case "channel.written":
		return vMessage
	}
	return vUnknown
}

// The kinds of interrupts that the vocabulary has.
const (
	kindClarification = "clarification"
	kindApproval      = "approval"
)

// MessageChannel is the channel of messages ([agentevents.MessageCreated]): RFC
// 0002, section G.
const MessageChannel = "messages"

// Reducers of a channel.written that appends a message. The schemas do not have
// the RFC's.
const (
	reducerRFC    = "applyMessage"
	reducerSchema = "append"
)

// The words of closed lists. Package agentevents has those of an AgentRef.
var (
	transports   = []string{string(agentevents.TransportMCP), string(agentevents.TransportHTTP), string(agentevents.TransportNative)}
	verbosities  = []string{string(agentevents.VerbositySummary), string(agentevents.VerbosityFull), string(agentevents.VerbosityOff)}
	toolStatuses = []string{string(agentevents.ToolStatusOK), string(agentevents.ToolStatusError), string(agentevents.ToolStatusForbidden), string(agentevents.ToolStatusRateLimited)}

	capKinds = []string{
		"clarification", "schema", "envelopes", "node-executions", "wasm-memory", "wasm-fuel", "wasm-execution-time", "run-duration", "loop-iterations",
		"budget-tokens", "budget-cost", "budget-tool-calls", "budget-retries",
	}
	actions         = []string{"accept", "reject", "refine", "ask"} // and one for an edit, whose name differs between the forms of an approval
	reducers        = []string{"replace", "append", "merge", "counter", "votes", "feedback"}
	interruptKinds1 = []string{"approval", "clarification", "external-event", "custom"}
	interruptKinds2 = append(interruptKinds1[:4:4], "conversation.start", "conversation.exchange", "conversation.close", "low-confidence", "credential")
)

func interruptKinds(p Profile) []string {
	if p == SchemaV2 {
		return interruptKinds2
	}
	return interruptKinds1
}
