package kaos

// Indices of variants.
const (
	vSpan = iota
	vIntent
	vPlan
	vCitation
	vUsage
	vEvidence
	vSummary
	vMemory
	vError
	vBudget
	vText
	vThinking
	vArgs
	vApproval
	vEscalation
	vUnknown
	numVariants
)

// A variant is one class of event: its type, and its members in the order of
// writers. All variants begin with the members of the base and end with the type.
type variant struct {
	typ   string
	names []string // with quotes and colon
}

// numBase is the number of members in the base.
const numBase = 5

// Numbers of the base members. Scanner.Field counts from 1.
const (
	mTimestamp = 1 + iota
	mSequence
	mSessionID
	mRunID
	mAgentID
)

// Numbers of a span's members.
const (
	mSubject = numBase + 1 + iota
	mPhase
	mSpanID
	mParentSpanID
	mName
	mDuration
	mErrorType
	mErrorMessage
	mAttributes
)

// spanNulls are the members of a span that mostly are all null, by the member that
// they follow.
var spanNulls = [mErrorType]struct {
	lit     string
	members uint32 // bit n for member n
	last    int
}{
	mSpanID:   {`,"parent_span_id":null`, 1 << mParentSpanID, mParentSpanID},
	mName:     {`,"duration_ms":null,"error_type":null,"error_message":null`, 1<<mDuration | 1<<mErrorType | 1<<mErrorMessage, mErrorMessage},
	mDuration: {`,"error_type":null,"error_message":null`, 1<<mErrorType | 1<<mErrorMessage, mErrorMessage},
}

var variants = [numVariants]variant{
	vSpan: {"span", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`,
		`"subject":`, `"phase":`, `"span_id":`, `"parent_span_id":`, `"name":`, `"duration_ms":`, `"error_type":`, `"error_message":`, `"attributes":`, `"type":`}},
	vIntent: {"intent_classified", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`, `"intent":`, `"confidence":`, `"reasoning":`, `"type":`}},
	vPlan: {"plan_proposed", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`, `"steps":`, `"strategy":`, `"type":`}},
	vCitation: {"citation_found", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`, `"claim":`, `"source_uri":`, `"confidence":`, `"verified":`, `"type":`}},
	vUsage: {"usage_observed", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`,
		`"input_tokens":`, `"output_tokens":`, `"total_tokens":`, `"cost_usd":`, `"source":`, `"type":`}},
	vEvidence: {"evidence_insufficient", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`, `"reason":`, `"what_would_resolve":`, `"type":`}},
	vSummary: {"turn_summary", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`,
		`"text":`, `"intent":`, `"tool_calls":`, `"tokens_used":`, `"cost_usd":`, `"input_tokens":`, `"output_tokens":`, `"type":`}},
	vMemory: {"memory_event", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`, `"kind":`, `"section":`, `"item_count":`, `"attributes":`, `"type":`}},
	vError: {"run_error", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`, `"error_type":`, `"message":`, `"recovery_hint":`, `"type":`}},
	vBudget: {"budget_exceeded", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`, `"kind":`, `"limit":`, `"actual":`, `"reason":`, `"type":`}},
	vText: {"text_delta", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`, `"content":`, `"type":`}},
	vThinking: {"thinking_delta", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`, `"content":`, `"type":`}},
	vArgs: {"tool_call_args_delta", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`, `"call_id":`, `"content":`, `"type":`}},
	vApproval: {"tool_call_approval_required", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`,
		`"call_id":`, `"tool_name":`, `"arguments":`, `"reason":`, `"run_state_ref":`, `"type":`}},
	vEscalation: {"escalation_required", []string{
		`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`,
		`"kind":`, `"reason":`, `"details":`, `"resume_token":`, `"escalation_id":`, `"type":`}},
	vUnknown: {"", []string{`"timestamp":`, `"sequence":`, `"session_id":`, `"run_id":`, `"agent_id":`, `"type":`}},
}

// clarification is the kind of escalation_required that asks a person.
const clarification = "clarification_needed"

// variantOf returns the index of the variant of that type, or vUnknown.
func variantOf(typ string) int {
	switch typ {
	case "span":
		return vSpan
	case "intent_classified":
		return vIntent
	case "plan_proposed":
		return vPlan
	case "citation_found":
		return vCitation
	case "usage_observed":
		return vUsage
	case "evidence_insufficient":
		return vEvidence
	case "turn_summary":
		return vSummary
	case "memory_event":
		return vMemory
	case "run_error":
		return vError
	case "budget_exceeded":
		return vBudget
	case "text_delta":
		return vText
	case "thinking_delta":
		return vThinking
	case "tool_call_args_delta":
		return vArgs
	case "tool_call_approval_required":
		return vApproval
	case "escalation_required":
		return vEscalation
	}
	return vUnknown
}

// named reports whether the variant has a member of that name.
func (v *variant) named(name string) bool {
	for _, lit := range v.names {
		if lit[1:len(lit)-2] == name {
			return true
		}
	}
	return false
}

// Names of members of the objects in steps and tool_calls.
var (
	planStepNames = []string{`"step_id":`, `"description":`, `"tool_name":`}
	callNames     = []string{`"tool_name":`, `"call_id":`, `"is_error":`, `"duration_ms":`, `"cost_usd":`, `"input_tokens":`, `"output_tokens":`}
)

// The subjects of spans that have kinds of their own.
const (
	sOther = iota
	sTurn
	sStep
	sTool
	sSubagent
	sHandoff
	numSubjects
)

// The phases of spans that have kinds of their own.
const (
	pOther = iota
	pStart
	pComplete
	pError
	pCancelled
	numPhases
)

func subjectOf(s string) int {
	switch s {
	case "turn":
		return sTurn
	case "step":
		return sStep
	case "tool_call":
		return sTool
	case "subagent":
		return sSubagent
	case "handoff":
		return sHandoff
	}
	return sOther
}

func phaseOf(s string) int {
	switch s {
	case "start":
		return pStart
	case "complete":
		return pComplete
	case "error":
		return pError
	case "cancelled":
		return pCancelled
	}
	return pOther
}

// Numbers of the attributes that become fields, from 1.
const (
	aToolName = 1 + iota
	aCallID
	aArguments
	aResultSummary
	aIsError
	aStepID
	aDescription
	aTurnNumber
	aSubagentName
	aTask
	aFromAgent
	aToAgent
	aReason
	aResult // not in the document: the encoder writes the complete result there
	numAttrs
)

var attrNames = []string{
	`"tool_name":`, `"call_id":`, `"arguments":`, `"result_summary":`, `"is_error":`, `"step_id":`, `"description":`, `"turn_number":`,
	`"subagent_name":`, `"task":`, `"from_agent":`, `"to_agent":`, `"reason":`, `"result":`,
}

// isAttribute reports whether name is in attrNames.
func isAttribute(name string) bool {
	for _, lit := range attrNames {
		if lit[1:len(lit)-2] == name {
			return true
		}
	}
	return false
}

// attrSet is a set of attributes: bit n for attribute n.
type attrSet uint32

func (s attrSet) has(a int) bool { return s&(1<<a) != 0 }

// wanted are the attributes that become fields, by subject and phase. A pair
// without any is span.recorded.
var wanted = [numSubjects][numPhases]attrSet{
	sTurn: {pStart: 1 << aTurnNumber, pComplete: 1 << aTurnNumber, pError: 1 << aTurnNumber, pCancelled: 1 << aTurnNumber},
	sStep: {
		pStart:     1<<aStepID | 1<<aDescription,
		pComplete:  1<<aStepID | 1<<aResultSummary | 1<<aIsError,
		pError:     1<<aStepID | 1<<aResultSummary,
		pCancelled: 1<<aStepID | 1<<aResultSummary,
	},
	sTool: {
		pStart:     1<<aToolName | 1<<aCallID | 1<<aArguments,
		pComplete:  1<<aToolName | 1<<aCallID | 1<<aArguments | 1<<aResult | 1<<aResultSummary | 1<<aIsError,
		pError:     1<<aToolName | 1<<aCallID | 1<<aArguments | 1<<aResult | 1<<aResultSummary,
		pCancelled: 1<<aToolName | 1<<aCallID | 1<<aArguments | 1<<aResult | 1<<aResultSummary,
	},
	sSubagent: {
		pStart:     1<<aSubagentName | 1<<aTask,
		pComplete:  1<<aSubagentName | 1<<aResultSummary,
		pError:     1<<aSubagentName | 1<<aResultSummary,
		pCancelled: 1<<aSubagentName | 1<<aResultSummary,
	},
	sHandoff: {
		pStart:    1<<aFromAgent | 1<<aToAgent | 1<<aReason,
		pComplete: 1<<aFromAgent | 1<<aToAgent | 1<<aReason,
	},
}
