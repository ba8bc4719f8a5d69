package spans

import (
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
)

// A Semconv is a version of the GenAI conventions. Names that all versions share are
// used in any case.
type Semconv string

// The versions.
const (
	SemconvShared Semconv = ""       // the names that v1.41.0 and the latest share
	SemconvV1_41  Semconv = "1.41.0" // the last version in the main conventions
	SemconvLatest Semconv = "latest" // the repository of the GenAI conventions, which has no release
)

// SchemaURL returns the URL of the version's schema, or "": only v1.41.0 has a published one.
func (v Semconv) SchemaURL() string {
	if v == SemconvV1_41 {
		return "https://opentelemetry.io/schemas/1.41.0"
	}
	return ""
}

// cacheWrite is the key of the tokens written to the cache, or "": the versions differ.
func (v Semconv) cacheWrite() string {
	switch v {
	case SemconvV1_41:
		return "gen_ai.usage.cache_creation.input_tokens"
	case SemconvLatest:
		return "gen_ai.usage.cache_write.input_tokens"
	}
	return ""
}

// agentID is the key of an agent's id, or "": the latest version has it for agents of other
// processes only.
func (v Semconv) agentID() string {
	if v == SemconvV1_41 {
		return "gen_ai.agent.id"
	}
	return ""
}

// The names of the conventions that the mapping uses.
const (
	AttrOperation       = "gen_ai.operation.name"
	AttrConversation    = "gen_ai.conversation.id"
	AttrWorkflow        = "gen_ai.workflow.name"
	AttrAgent           = "gen_ai.agent.name"
	AttrProvider        = "gen_ai.provider.name"
	AttrRequestModel    = "gen_ai.request.model"
	AttrResponseModel   = "gen_ai.response.model"
	AttrResponseID      = "gen_ai.response.id"
	AttrFinishReasons   = "gen_ai.response.finish_reasons"
	AttrFirstChunk      = "gen_ai.response.time_to_first_chunk" // seconds
	AttrInputTokens     = "gen_ai.usage.input_tokens"           // cached ones included
	AttrOutputTokens    = "gen_ai.usage.output_tokens"          // reasoning included
	AttrCacheRead       = "gen_ai.usage.cache_read.input_tokens"
	AttrReasoningTokens = "gen_ai.usage.reasoning.output_tokens"
	AttrTool            = "gen_ai.tool.name"
	AttrToolCallID      = "gen_ai.tool.call.id"
	AttrToolArguments   = "gen_ai.tool.call.arguments"
	AttrToolResult      = "gen_ai.tool.call.result"
	AttrInput           = "gen_ai.input.messages"
	AttrOutput          = "gen_ai.output.messages"
	AttrEvaluation      = "gen_ai.evaluation.name"
	AttrScoreLabel      = "gen_ai.evaluation.score.label"
	AttrScoreValue      = "gen_ai.evaluation.score.value"
	AttrExplanation     = "gen_ai.evaluation.explanation"
	AttrErrorType       = "error.type"

	EventEvaluation = "gen_ai.evaluation.result"
	EventDetails    = "gen_ai.client.inference.operation.details" // a model call with its content

	OpWorkflow = "invoke_workflow"
	OpAgent    = "invoke_agent"
	OpTool     = "execute_tool"
	OpChat     = "chat"
	OpStep     = "run_step" // not in the conventions yet; a custom name is allowed
)

// Names of our own. Nothing of ours is below gen_ai.
const (
	AttrRun          = "agentevents.run.id"
	AttrSchema       = "agentevents.schema"
	AttrAgentID      = "agentevents.agent.id"
	AttrClosedReason = "agentevents.closed.reason"
	AttrOutcome      = "agentevents.run.outcome"
	AttrAdjusted     = "agentevents.time.adjusted"
	AttrFirst        = "agentevents.seq.first"
	AttrLast         = "agentevents.seq.last"
	AttrStepName     = "agentevents.step.name"
	AttrStepIndex    = "agentevents.step.index"
	AttrLinkType     = "agentevents.link.type"
	AttrWait         = "agentevents.wait"               // seconds
	AttrToolOutcome  = "agentevents.tool.outcome"       // in one word for all documents; none without a return
	AttrVerdict      = "agentevents.evaluation.outcome" // of an audit and of a claim: the same words
	AttrToolCalls    = "agentevents.agent.tool_calls"
	AttrModelCalls   = "agentevents.agent.model_calls"
	AttrCost         = "agentevents.usage.cost"    // of a model call
	AttrDeltas       = "agentevents.deltas"        // parts that a model call has streamed
	AttrContent      = "agentevents.content"       // of a point
	AttrFree         = "agentevents.attribute."    // and the name of a free attribute of the event
	AttrMadeUp       = "agentevents.made_up"       // a span of the run or an agent that no event begins
	AttrNoStart      = "agentevents.start.unknown" // a span of an end that states no duration, or whose start has no time
	AttrNoEnd        = "agentevents.end.unknown"   // a span whose end has no time
	AttrEndMadeUp    = "agentevents.end.made_up"   // a span whose end no line of the source tells
	AttrStated       = "agentevents.time.stated"   // a start or an end that follows from the duration that the log states
	AttrStarted      = "agentevents.started"       // name of the span that a marker is for
	AttrSequence     = "agentevents.seq"           // of the event of a log record

	EventSpanDetails = "agentevents.span.details" // a span with its content
	OpStarted        = "agentevents.started"      // a marker

	ErrorIncomplete = "agentevents.incomplete" // error.type of a span that ended without its event
	ErrorOther      = "_OTHER"                 // error.type of an error without a word
)

const maxText = 1024 // bytes of an attribute other than content

// word returns s if it can be one of few: a word for programs, not an id and not a text.
func word(s string) string {
	if s == "" || len(s) > 64 || looksLikeUUID(s) {
		return ""
	}
	for _, r := range s {
		if r <= ' ' || r == utf8.RuneError {
			return ""
		}
	}
	return s
}

// label is word for names that people give, which may have spaces.
func label(s string) string {
	if word(strings.ReplaceAll(s, " ", "_")) == "" {
		return ""
	}
	return s
}

func looksLikeUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
			return false
		}
	}
	return true
}

// cut returns at most n bytes of s, and no part of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// title is the name of a span: the operation, and the span's subject if that is a word.
func title(operation, about string) string {
	if about == "" {
		return operation
	}
	return operation + " " + about
}

// errorType is the code of the error if it is a word, else the other one.
func errorType(info agentevents.Opt[agentevents.ErrorInfo], otherwise string) string {
	if code := word(info.V.Code); code != "" {
		return code
	}
	return otherwise
}
