package kahn

import (
	"math"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
)

// MaxSummary is the maximum length of output_summary, in characters. The document gives
// input_summary none.
const MaxSummary = 2048

// The rules of the document, which a strict decoder checks.
const (
	RuleType     agentevents.Rule = "kahn-type"     // a word in a-z and _, none of the five: others are a vendor's
	RuleRequired agentevents.Rule = "kahn-required" // a required member is missing
	RuleID       agentevents.Rule = "kahn-id"       // an id does not match its pattern
	RuleEnum     agentevents.Rule = "kahn-enum"     // a status, outcome or result the document does not list
	RuleRange    agentevents.Rule = "kahn-range"    // a number outside its range
	RuleSummary  agentevents.Rule = "kahn-summary"  // a summary that is too long
	RuleTime     agentevents.Rule = "kahn-time"     // a time that is not in UTC with milliseconds
)

// The document's enums.
var (
	statuses = []string{"thinking", "tool_call", "tool_result", "response",
		"reflect", "blocked-on-clarification", "converged", "failed"}
	outcomes = []string{"converged", "partial", "escaped", "aborted"}
	results  = []string{"pass", "fail", "warn"}
)

// format is the document.
var format = func() *engine.Format {
	need, may := engine.Need, engine.May
	atLeast0 := func(f engine.Form) engine.Form { return engine.AtLeast(RuleRange, f, 0) }
	total := func(name, says string) engine.Member {
		return need(name, "totals/"+says, atLeast0(totalForm{})).Or(madeTotal)
	}
	var (
		text    = engine.EmptyKept{}
		agent   = need("agent_id", "/agentId", id{&agentPattern}).Or(madeAgent)
		step    = need("step", "/step", atLeast0(engine.Whole{})).Or(madeStep)
		status  = engine.OneOf(RuleEnum, engine.Full{}, statuses...)
		seconds = atLeast0(secondsForm{})
	)
	f := engine.Format{
		Name:     Name,
		Required: RuleRequired,
		Type:     RuleType,
		Own:      func(typ string) bool { return strings.Trim(typ, "abcdefghijklmnopqrstuvwxyz_") == "" },
		Head: []engine.Member{need("ts", "/timestamp", engine.AnyTime(timeForm{}, time.Second)),
			need("run_id", "/runId", text), need("event", "", engine.Type)},
		Rows: []engine.Row{
			{Type: "agent_run_start", Kind: agentevents.KindAgentStarted, Members: []engine.Member{
				agent, need("task", "task", text).Or(promptAsTask), may("model", "model", text), may("lifecycle", "lifecycle", engine.Value{}), engine.Resumed(),
			}},
			{Type: "agent_transition", Kind: agentevents.KindAgentTransition, Members: []engine.Member{
				agent, step, need("from", "from", status), need("to", "to", status), may("reason", "reason", text),
			}},
			{Type: "tool_invocation", Kind: agentevents.KindToolReturned, Members: []engine.Member{
				agent, step, need("tool_name", "toolId", text), need("duration_s", "durationMs", seconds).Or(sinceCall),
				need("ok", "status oneEvent", okForm{}),
				may("input_summary", "argumentsSummary arguments", summaryForm{value: inputOf, max: math.MaxInt}),
				may("output_summary", "resultSummary result", summaryForm{value: outputOf, max: MaxSummary}),
				may("error", "error/message", engine.Full{}),
			}},
			{Type: "audit_checkpoint", Kind: agentevents.KindAuditChecked, Members: []engine.Member{
				need("agent_id", "/agentId", auditedForm{id{&agentPattern}}), need("checkpoint_id", "checkpointId", id{&checkpointPattern}).Or(madeID),
				need("result", "result", engine.OneOf(RuleEnum, engine.Full{}, results...)), need("duration_s", "durationMs", seconds),
				may("evidence", "evidence", objectForm{}),
			}},
			{Type: "agent_run_end", Kind: agentevents.KindAgentEnded, Members: []engine.Member{
				agent, need("outcome", "outcome", engine.OneOf(RuleEnum, engine.Value{}, outcomes...)).Or(madeOutcome),
				total("total_steps", "steps"), total("total_tool_calls", "toolCalls"), total("total_audit_checkpoints", "auditCheckpoints"),
				total("audits_passed", "auditsPassed"), total("audits_failed", "auditsFailed"),
				need("total_duration_s", "durationMs", seconds).Or(sinceStart), may("convergence_score", "convergenceScore", engine.Unit(RuleRange, floatForm{})),
			}},
		},
		Any: []engine.Member{may("agent_id", "/agentId", idOfOther{id{&agentPattern}}),
			may("step", "/step", atLeast0(stepOfOther{}))},
	}
	engine.AddLate(f.Rows)
	return engine.New(f)
}()
