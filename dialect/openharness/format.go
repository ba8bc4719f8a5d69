package openharness

import (
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
)

// The rules of the document that a strict decoder checks.
const (
	// RuleType: the document lists the types that begin with agent:, flow: and so on. Later
	// versions have agent:paused and agent:aborted, too.
	RuleType agentevents.Rule = "openharness-type"
	// RuleNode: node and agent events name their node and its execution (sections
	// 1.1 and 3). node:skipped has no execution.
	RuleNode agentevents.Rule = "openharness-node"
	// RuleRequired: the members that the document requires are there.
	RuleRequired agentevents.Rule = "openharness-required"
	// RuleEnum: the document lists the word.
	RuleEnum agentevents.Rule = "openharness-enum"
	// RuleRange: a number is in its range.
	RuleRange agentevents.Rule = "openharness-range"
	// RuleForm: a prompt is a string or a list of messages, and the members of a
	// command have their types.
	RuleForm agentevents.Rule = "openharness-form"
	// RuleOrder: the events of an execution are in order (section 1.1). The lines of its agent
	// stand between agent:start and the end of the node. An error may come before agent:start,
	// which waits for the session, and a log without the node's start may begin anywhere.
	RuleOrder agentevents.Rule = "openharness-order"
)

// The error types that the document lists for agent:error, as values of
// [agentevents.AgentErrored].ErrorType. Others are legal.
const (
	ErrorTypeToolUse   = "error_tool_use"  // a tool call failed
	ErrorTypeMaxTurns  = "error_max_turns" // the turn limit was reached
	ErrorTypeUser      = "error_user"      // the user rejected or cancelled something
	ErrorTypeNetwork   = "network_error"   // no connection
	ErrorTypeRateLimit = "rate_limit"      // the API refused the rate of requests
	ErrorTypeException = "exception"       // the stream broke
)

// The words with which the types of the document begin.
var domains = []string{"agent", "flow", "node", "edge", "loop", "state", "command"}

// The statuses of flow:complete.
const (
	statusComplete = "complete"
	statusFailed   = "failed"
	caseCancelled  = "cancelled" // no word of the document
)

// format is the document. A member of TypeScript's type unknown may be absent,
// because the value undefined leaves no trace in JSON.
var format = func() *engine.Format {
	need, may := engine.Need, engine.May
	atLeast := func(n int, f engine.Form) engine.Form { return engine.AtLeast(RuleRange, f, n) }
	oneOf := func(words ...string) engine.Form { return openForm{engine.OneOf(RuleEnum, engine.Full{}, words...)} }
	var (
		text   = func(place string) engine.Form { return alwaysForm{engine.Full{}, "/payload/" + place} }
		number = atLeast(0, engine.Whole{})
		full   = func(rule agentevents.Rule, detail string) engine.Form {
			return engine.Check(rule, engine.Value{}, func(at any) string {
				if *at.(*string) == "" {
					return detail
				}
				return ""
			})
		}
		named   = full(RuleNode, "is empty: the line must name its node and the node's execution")
		session = full(RuleRequired, "is empty: nothing can be resumed without the id of the session")
		nodeID  = need("nodeId", "/nodeId", named).Or(madeNode)
		runID   = need("runId", "/nodeRunId /agentId", executionForm{named})
		at      = need("timestamp", "/timestamp", engine.AnyTime(timeForm{}, time.Millisecond))
		name    = need("flowName", "", nameForm{}).Or(madeName)
		parent  = may("parentRunId", "/parentAgentId", parentForm{})
		tokens  = func(name, in string) engine.Member { return need(name, name, alwaysForm{number, "/payload/" + in}) }

		// Of an end.
		structured = may("structuredOutput", "structuredOutput")
		usage      = may("usage", "usage", engine.Object(
			tokens("inputTokens", "usage/inputTokens"), tokens("outputTokens", "usage/outputTokens"),
			may("cacheCreationInputTokens", "cacheCreationInputTokens", number),
			may("cacheReadInputTokens", "cacheReadInputTokens", number)))
		models = may("modelUsage", "modelUsage",
			engine.Dict[agentevents.Usage](tokens("inputTokens", "modelUsage"), tokens("outputTokens", "modelUsage")))
		cost       = may("totalCostUsd", "totalCostUsd", atLeast(0, engine.Value{}))
		duration   = may("durationMs", "durationMs", atLeast(0, engine.Value{}))
		turns      = may("numTurns", "numTurns", number)
		cumulative = may("cumulative", "cumulative")
	)
	nodeID.Rule, runID.Rule = RuleNode, RuleNode
	required := func(m engine.Member) engine.Member {
		m.Need = true
		return m
	}
	// part is a member of a command.
	part := func(name string) engine.Member {
		m := may(name, name, partForm{}).Or(madeIfNeeded)
		m.Loose = true
		return m
	}
	row := func(typ string, kind agentevents.Kind, members ...engine.Member) engine.Row {
		return engine.Row{Type: typ, Kind: kind, Members: members}
	}
	flow := func(typ string, kind agentevents.Kind, members ...engine.Member) engine.Row {
		return row(typ, kind, append([]engine.Member{at}, members...)...)
	}
	// node is a row of an execution of a node.
	node := func(typ string, kind agentevents.Kind, members ...engine.Member) engine.Row {
		return row(typ, kind, append([]engine.Member{nodeID, runID, at}, members...)...)
	}
	when := func(word string, row engine.Row) engine.Row {
		row.Case = word
		return row
	}
	stopped := when(caseCancelled,
		flow("flow:complete", agentevents.KindRunCancelled, name, need("status", "", statusForm(caseCancelled))))
	stopped.Reads = true // flow:aborted is written, unless the line had this
	f := engine.Format{
		Name:     Name,
		Required: RuleRequired,
		Type:     RuleType,
		Own: func(typ string) bool {
			domain, _, ok := strings.Cut(typ, ":")
			return ok && slices.Contains(domains, domain) && typ != "agent:paused" && typ != "agent:aborted"
		},
		Case: caseOf,
		Head: []engine.Member{need("type", "", engine.Type)},
		Rows: []engine.Row{
			node("agent:start", agentevents.KindAgentStarted,
				need("sessionId", "providerSessionId", session).Or(executionAsSession), may("model", "model"),
				need("prompt", "prompt", promptForm{}).Or(taskAsPrompt), may("lifecycle", "lifecycle"), engine.Resumed(), parent),
			node("agent:thinking:delta", agentevents.KindAgentReasoningDelta, need("content", "delta", text("delta")), may("tokenCount", "tokenCount", number)),
			node("agent:thinking", agentevents.KindAgentReasoned, need("content", "reasoning", text("reasoning")), may("tokenCount", "tokenCount", number)),
			node("agent:text:delta", agentevents.KindTextDelta, need("content", "delta", text("delta"))),
			node("agent:text", agentevents.KindTextCompleted, need("content", "text", text("text"))),
			node("agent:tool", agentevents.KindToolReturned,
				need("toolName", "toolId", text("toolId")),
				may("toolInput", "arguments").Or(summary), may("toolOutput", "result").Or(summary),
				may("durationMs", "durationMs", atLeast(0, engine.Value{})),
				may("error", "error/message", engine.Full{}).Or(statusAsError)),
			node("agent:error", agentevents.KindAgentErrored, need("errorType", "errorType", text("errorType")), need("message", "message", text("message")), may("details", "details")),
			// agent:complete means success: a failure is written as this row. It has the members of
			// agent:complete, and its outcome distinguishes it from an error.
			when(caseEnded, node("agent:error", agentevents.KindAgentEnded, need("errorType", "error/code").Or(outcomeAsType),
				need("message", "error/message").Or(resultAsMessage), may("details", "error/details"),
				need("outcome", "outcome").Or(engine.Made(`"aborted"`)), may("result", "result"),
				structured, usage, models, cost, duration, turns, cumulative)),
			node("agent:complete", agentevents.KindAgentEnded,
				need("result", "result").Or(lastText), may("outcome", "outcome", unsuccessful{}), structured,
				required(usage).Or(engine.Made(`{"inputTokens":0,"outputTokens":0}`)), models, cost,
				required(duration).Or(sinceStart), required(turns).Or(engine.Made("0")), cumulative),
			flow("flow:start", agentevents.KindRunStarted, need("flowName", "name"), may("lifecycle", "lifecycle")),
			when(statusComplete, flow("flow:complete", agentevents.KindRunCompleted, name, need("status", "", statusForm(statusComplete)))),
			when(statusFailed, flow("flow:complete", agentevents.KindRunFailed, name, need("status", "", statusForm(statusFailed)))),
			stopped,
			flow("flow:paused", agentevents.KindRunPaused),
			flow("flow:resumed", agentevents.KindRunResumed),
			flow("flow:aborted", agentevents.KindRunCancelled),
			node("node:start", agentevents.KindNodeStarted),
			node("node:complete", agentevents.KindNodeCompleted, may("output", "outputs")),
			node("node:error", agentevents.KindNodeFailed, need("error", "error/message", text("error/message"))),
			row("node:skipped", agentevents.KindNodeSkipped, nodeID, may("runId", "/nodeRunId"), at, need("reason", "reason", alwaysForm{engine.Value{}, "/payload/reason"})),
			flow("edge:fire", agentevents.KindEdgeFired, may("edgeId", "edgeId"), need("from", "from", text("from")), need("to", "to", text("to"))),
			flow("loop:iterate", agentevents.KindLoopIterated, may("edgeId", "edgeId"), need("iteration", "iteration", alwaysForm{atLeast(1, engine.Whole{}), "/payload/iteration"})),
			flow("state:patch", agentevents.KindStatePatched, need("patch", "", engine.Object(
				need("op", "op", alwaysForm{oneOf(string(agentevents.PatchSet), string(agentevents.PatchMerge)), "/payload/op"}),
				need("path", "path", text("path")), may("value", "value", alwaysForm{engine.Value{}, "/payload/value"})))),
			row("command:received", agentevents.KindCommandReceived, at, need("command", "command", engine.Object(
				need("type", "type", alwaysForm{oneOf(string(agentevents.CommandSend), string(agentevents.CommandReply),
					string(agentevents.CommandAbort), string(agentevents.CommandResume),
					string(agentevents.CommandPause)), "/payload/command/type"}),
				part("message"), part("promptId"), part("content"), part("runId"), part("resumable"), part("reason")))),
		},
		Any: []engine.Member{may("nodeId", "/nodeId", nodeOfOther{}),
			may("runId", "/nodeRunId", runOfOther{}), may("timestamp", "/timestamp", timeOfOther{})},
	}
	engine.AddLate(f.Rows)
	return engine.New(f)
}()

// ended is the row of an end without success.
var ended = format.CaseRow("agent:error", caseEnded)

// stoppedAtEnd is the row of a run that was cancelled by its end.
var stoppedAtEnd = format.CaseRow("flow:complete", caseCancelled)

const caseEnded = "ended"
