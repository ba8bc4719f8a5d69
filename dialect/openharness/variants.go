package openharness

// Numbers of the members of all variants, in the order of the encoder: from 1, as
// Scanner.Field counts memberNames.
const (
	mType = 1 + iota
	mNodeID
	mRunID
	mTimestamp
	mSessionID
	mModel
	mPrompt
	mContent
	mTokenCount
	mToolName
	mToolInput
	mToolOutput
	mErrorType
	mMessage
	mDetails
	mResult
	mStructuredOutput
	mUsage
	mModelUsage
	mTotalCost
	mDuration
	mNumTurns
	mError
	mFlowName
	mStatus
	mOutput
	mReason
	mEdgeID
	mFrom
	mTo
	mIteration
	mPatch
	mCommand
	numMembers = iota
)

// memberNames are the names of the members, with quotes and colons.
var memberNames = [numMembers]string{
	`"type":`, `"nodeId":`, `"runId":`, `"timestamp":`, `"sessionId":`, `"model":`, `"prompt":`, `"content":`, `"tokenCount":`,
	`"toolName":`, `"toolInput":`, `"toolOutput":`, `"errorType":`, `"message":`, `"details":`, `"result":`, `"structuredOutput":`,
	`"usage":`, `"modelUsage":`, `"totalCostUsd":`, `"durationMs":`, `"numTurns":`, `"error":`, `"flowName":`, `"status":`, `"output":`,
	`"reason":`, `"edgeId":`, `"from":`, `"to":`, `"iteration":`, `"patch":`, `"command":`,
}

// memberName returns the name of member n.
func memberName(n int) string { return memberNames[n-1][1 : len(memberNames[n-1])-2] }

// memberNamed returns the number of the member of that name, or 0.
func memberNamed(name string) int {
	for n := 1; n <= numMembers; n++ {
		if memberName(n) == name {
			return n
		}
	}
	return 0
}

// A set is a set of members: bit n for member n.
type set uint64

func (s set) has(member int) bool { return s&(1<<member) != 0 }

// base are the members of every line, and node those of node and agent events.
const (
	base set = 1<<mType | 1<<mTimestamp
	node set = 1<<mNodeID | 1<<mRunID
)

// A variant is one type of line.
type variant struct {
	name     string
	members  set // without the base
	optional set // the members that may be absent
}

// variants are the variants of the document. A member of TypeScript's type unknown is
// optional, because the value undefined leaves no trace in JSON.
var variants = [numVariants]variant{
	vAgentStart:    {"agent:start", node | 1<<mSessionID | 1<<mModel | 1<<mPrompt, 1 << mModel},
	vThinkingDelta: {"agent:thinking:delta", node | 1<<mContent | 1<<mTokenCount, 1 << mTokenCount},
	vThinking:      {"agent:thinking", node | 1<<mContent | 1<<mTokenCount, 1 << mTokenCount},
	vTextDelta:     {"agent:text:delta", node | 1<<mContent, 0},
	vText:          {"agent:text", node | 1<<mContent, 0},
	vTool: {"agent:tool", node | 1<<mToolName | 1<<mToolInput | 1<<mToolOutput | 1<<mDuration | 1<<mError,
		1<<mToolInput | 1<<mToolOutput | 1<<mDuration | 1<<mError},
	vError: {"agent:error", node | 1<<mErrorType | 1<<mMessage | 1<<mDetails, 1 << mDetails},
	vComplete: {"agent:complete", node | 1<<mResult | 1<<mStructuredOutput | 1<<mUsage | 1<<mModelUsage | 1<<mTotalCost | 1<<mDuration | 1<<mNumTurns,
		1<<mStructuredOutput | 1<<mModelUsage | 1<<mTotalCost},
	vFlowStart:    {"flow:start", 1 << mFlowName, 0},
	vFlowComplete: {"flow:complete", 1<<mFlowName | 1<<mStatus, 0},
	vFlowPaused:   {"flow:paused", 0, 0},
	vFlowResumed:  {"flow:resumed", 0, 0},
	vFlowAborted:  {"flow:aborted", 0, 0},
	vNodeStart:    {"node:start", node, 0},
	vNodeComplete: {"node:complete", node | 1<<mOutput, 1 << mOutput},
	vNodeError:    {"node:error", node | 1<<mError, 0},
	vNodeSkipped:  {"node:skipped", node | 1<<mReason, 1 << mRunID}, // a skipped node has no execution
	vEdgeFire:     {"edge:fire", 1<<mEdgeID | 1<<mFrom | 1<<mTo, 1 << mEdgeID},
	vLoopIterate:  {"loop:iterate", 1<<mEdgeID | 1<<mIteration, 1 << mEdgeID},
	vStatePatch:   {"state:patch", 1 << mPatch, 0},
	vCommand:      {"command:received", 1 << mCommand, 0},
}

// Indices of variants.
const (
	vAgentStart = iota
	vThinkingDelta
	vThinking
	vTextDelta
	vText
	vTool
	vError
	vComplete
	vFlowStart
	vFlowComplete
	vFlowPaused
	vFlowResumed
	vFlowAborted
	vNodeStart
	vNodeComplete
	vNodeError
	vNodeSkipped
	vEdgeFire
	vLoopIterate
	vStatePatch
	vCommand
	numVariants

	vUnknown = -1
)

// variantOf returns the variant of a type, or vUnknown.
func variantOf(name string) int {
	switch name {
	case "agent:start":
		return vAgentStart
	case "agent:thinking:delta":
		return vThinkingDelta
	case "agent:thinking":
		return vThinking
	case "agent:text:delta":
		return vTextDelta
	case "agent:text":
		return vText
	case "agent:tool":
		return vTool
	case "agent:error":
		return vError
	case "agent:complete":
		return vComplete
	case "flow:start":
		return vFlowStart
	case "flow:complete":
		return vFlowComplete
	case "flow:paused":
		return vFlowPaused
	case "flow:resumed":
		return vFlowResumed
	case "flow:aborted":
		return vFlowAborted
	case "node:start":
		return vNodeStart
	case "node:complete":
		return vNodeComplete
	case "node:error":
		return vNodeError
	case "node:skipped":
		return vNodeSkipped
	case "edge:fire":
		return vEdgeFire
	case "loop:iterate":
		return vLoopIterate
	case "state:patch":
		return vStatePatch
	case "command:received":
		return vCommand
	}
	return vUnknown
}

// Names of the members of inner objects.
var (
	usageNames   = [...]string{`"inputTokens":`, `"outputTokens":`, `"cacheCreationInputTokens":`, `"cacheReadInputTokens":`}
	patchNames   = [...]string{`"op":`, `"path":`, `"value":`}
	commandNames = [...]string{`"type":`, `"message":`, `"promptId":`, `"content":`, `"runId":`, `"resumable":`, `"reason":`}
)
