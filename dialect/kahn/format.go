package kahn

import (
	"math"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/wire"
)

// MaxSummary is the maximum length of output_summary, in characters. The document gives
// input_summary none.
const MaxSummary = 2048

// The rules of the document, which a strict decoder checks.
const (
	RuleType     agentevents.Rule = "kahn-type"     // an event in small letters and underscores that is none of the five: others are a vendor's
	RuleRequired agentevents.Rule = "kahn-required" // a required member is missing
	RuleID       agentevents.Rule = "kahn-id"       // an id does not match its pattern
	RuleEnum     agentevents.Rule = "kahn-enum"     // a status, outcome or result the document does not list
	RuleRange    agentevents.Rule = "kahn-range"    // a number outside its range
	RuleSummary  agentevents.Rule = "kahn-summary"  // a summary that is too long
	RuleTime     agentevents.Rule = "kahn-time"     // a time that is not in UTC with milliseconds
)

// The document's enums.
var (
	statuses = []string{"thinking", "tool_call", "tool_result", "response", "reflect", "blocked-on-clarification", "converged", "failed"}
	outcomes = []string{"converged", "partial", "escaped", "aborted"}
	results  = []string{"pass", "fail", "warn"}
)

// format is the document.
var format = func() *wire.Format {
	need, may := wire.Need, wire.May
	atLeast0 := func(f wire.Form) wire.Form { return wire.AtLeast(RuleRange, f, 0) }
	total := func(name, says string) wire.Member {
		return need(name, "totals/"+says, atLeast0(totalForm{})).Or(madeTotal)
	}
	var (
		text    = wire.EmptyKept{}
		agent   = need("agent_id", "/agentId", id{&agentPattern}).Or(madeAgent)
		step    = need("step", "/step", atLeast0(wire.Whole{})).Or(madeStep)
		status  = wire.OneOf(RuleEnum, wire.Full{}, statuses...)
		seconds = atLeast0(secondsForm{})
	)
	f := wire.Format{
		Name:     Name,
		Required: RuleRequired,
		Type:     RuleType,
		Own:      func(typ string) bool { return strings.Trim(typ, "abcdefghijklmnopqrstuvwxyz_") == "" },
		Head:     []wire.Member{need("ts", "/timestamp", wire.AnyTime(timeForm{}, time.Second)), need("run_id", "/runId", text), need("event", "", wire.Type)},
		Rows: []wire.Row{
			{Type: "agent_run_start", Kind: agentevents.KindAgentStarted, Members: []wire.Member{
				agent, need("task", "task", text).Or(promptAsTask), may("model", "model", text), may("lifecycle", "lifecycle", wire.Value{}), wire.Resumed(),
			}},
			{Type: "agent_transition", Kind: agentevents.KindAgentTransition, Members: []wire.Member{
				agent, step, need("from", "from", status), need("to", "to", status), may("reason", "reason", text),
			}},
			{Type: "tool_invocation", Kind: agentevents.KindToolReturned, Members: []wire.Member{
				agent, step, need("tool_name", "toolId", text), need("duration_s", "durationMs", seconds).Or(sinceCall),
				need("ok", "status oneEvent", okForm{}),
				may("input_summary", "argumentsSummary arguments", summaryForm{value: inputOf, max: math.MaxInt}),
				may("output_summary", "resultSummary result", summaryForm{value: outputOf, max: MaxSummary}),
				may("error", "error/message", wire.Full{}),
			}},
			{Type: "audit_checkpoint", Kind: agentevents.KindAuditChecked, Members: []wire.Member{
				need("agent_id", "/agentId", auditedForm{id{&agentPattern}}), need("checkpoint_id", "checkpointId", id{&checkpointPattern}).Or(madeID),
				need("result", "result", wire.OneOf(RuleEnum, wire.Full{}, results...)), need("duration_s", "durationMs", seconds),
				may("evidence", "evidence", objectForm{}),
			}},
			{Type: "agent_run_end", Kind: agentevents.KindAgentEnded, Members: []wire.Member{
				agent, need("outcome", "outcome", wire.OneOf(RuleEnum, wire.Value{}, outcomes...)).Or(madeOutcome),
				total("total_steps", "steps"), total("total_tool_calls", "toolCalls"), total("total_audit_checkpoints", "auditCheckpoints"),
				total("audits_passed", "auditsPassed"), total("audits_failed", "auditsFailed"),
				need("total_duration_s", "durationMs", seconds).Or(sinceStart), may("convergence_score", "convergenceScore", wire.Unit(RuleRange, floatForm{})),
			}},
		},
		Any: []wire.Member{may("agent_id", "/agentId", idOfOther{id{&agentPattern}}), may("step", "/step", atLeast0(stepOfOther{}))},
	}
	wire.AddLate(f.Rows)
	return wire.New(f)
}()
