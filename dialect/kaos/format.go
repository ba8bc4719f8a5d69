package kaos

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The rules of the document that a strict decoder checks.
const (
	RuleType     agentevents.Rule = "kaos-type"     // a type in a-z and _ that KAOS does not have: others are a vendor's
	RuleRequired agentevents.Rule = "kaos-required" // required members are present, and ids are not empty
	RuleEnum     agentevents.Rule = "kaos-enum"     // the document lists subjects, phases, and kinds of memory_event
	RuleRange    agentevents.Rule = "kaos-range"    // no number is below zero, and confidences are in [0, 1]
	RulePhase    agentevents.Rule = "kaos-phase"    // start and progress have no duration, and only error has an error
	RuleFrame    agentevents.Rule = "kaos-frame"    // event and id of a frame agree with its data
)

// The document's enums.
var (
	subjects = []string{"run", "turn", "step", "tool_call", "subagent", "handoff", "llm_call", "judge", "route"}
	phases   = []string{"start", "progress", "complete", "error", "cancelled"}
	closing  = phases[2:]
	memories = []string{"added", "evicted", "summarized", "hydrated", "persisted", "searched"}

	// others are types that the vocabulary does not have.
	others = []string{"citation_verified", "grounding_refusal_triggered", "pattern_mismatch",
		"tool_policy_elevated", "capability_requested", "goal_checked", "loop_terminated"}
)

// clarification is the kind of escalation_required that asks a person.
const clarification = "clarification_needed"

// afterType is the entry of the extra member "kaos" that counts the members after the type, for an
// unknown type. Writers put the type last: members after it were added to a finished line.
// monotonic is the entry of the first event of a run whose times have no relation to the wall
// clock.
const (
	afterType = "/type"
	monotonic = "/timestamp"
)

// format is the document.
var format = func() *engine.Format {
	need, may := engine.Need, engine.May
	filled := func(f engine.Form) engine.Form {
		return engine.Check(RuleRequired, f, func(at any) string {
			if *at.(*string) == "" {
				return "must not be empty"
			}
			return ""
		})
	}
	atLeast0 := func(f engine.Form) engine.Form { return engine.AtLeast(RuleRange, f, 0) }
	var (
		null   = instead("null")
		text   = engine.Full{}
		orNull = engine.Nullable(engine.Value{})
		id     = filled(text)
		count  = atLeast0(engine.Whole{})
		least0 = atLeast0(number{}) // of a cost, or a duration
		unit   = engine.Unit(RuleRange, number{})

		title   = may("name", "name", text)
		content = may("content", "delta", text)
		reason  = may("reason", "reason", text)
		input   = may("input_tokens", "usage/inputTokens", count)
		output  = may("output_tokens", "usage/outputTokens", count)

		spanID     = need("span_id", "/spanId", spanForm{id})
		parentSpan = may("parent_span_id", "/parentSpanId", orNull).Or(null)
		enclosed   = may("parent_span_id", "/parentSpanId", orNull).Or(enclosing)

		// Attributes of spans. A value that the field cannot hold is kept, and written again as
		// long as the field is empty.
		attr = func(name, says, empty string, form ...engine.Form) engine.Member {
			m := may(name, says, form...).Or(instead(empty))
			m.Loose = true
			return m
		}
		known = func(name, says string) engine.Member { return attr(name, says, `""`) }
		turn  = attr("turn_number", "turn", "", whole{})
		step  = known("step_id", "stepId")
		tool  = known("tool_name", "toolId")
		call  = attr("call_id", "callId", "", callID{})
		agent = attr("subagent_name", "", "", agentName{})
		ask   = attr("call_id", "modelCallId", "", callID{})
		by    = attr("provider", "provider", "")
		model = attr("model", "model", "")
		does  = known("call_type", "operation")
		from  = known("from_agent", "from/agentId")
		to    = known("to_agent", "to/agentId")
	)
	named := func(prefix string) engine.Member { return may("name", "", spanName(prefix)) }
	f := engine.Format{
		Name:     Name,
		Required: RuleRequired,
		Type:     RuleType,
		Own: func(typ string) bool {
			return strings.Trim(typ, "abcdefghijklmnopqrstuvwxyz_") == "" && !slices.Contains(others, typ)
		},
		Lax: true, OtherExtra: true, Nulls: true,
		// Of a line of another type, members are the payload's.
		Place:   func(w *engine.Writer, m *engine.Member, _, _, _ string) bool { return m == nil && w.Row() != nil },
		Remarks: []string{monotonic, afterType},
		Case:    caseOf,
		Head: []engine.Member{
			need("timestamp", "/timestamp", engine.AnyTime(timeForm{}, time.Second)), need("sequence", "/sequence", sequenceForm{}), need("session_id", "/sessionId", filled(engine.Value{})).Or(ownRun),
			need("run_id", "/runId", id), may("agent_id", "/agentId", lineAgent{orNull}).Or(null),
		},
		Tail: []engine.Member{need("type", "", engine.Type)},
		Rows: []engine.Row{
			{Type: "intent_classified", Kind: agentevents.KindIntentClassified, Members: []engine.Member{
				may("intent", "intent", text), may("confidence", "confidence", unit), may("reasoning", "reasoning", text),
			}},
			{Type: "plan_proposed", Kind: agentevents.KindPlanProposed, Members: []engine.Member{
				may("steps", "steps", engine.List[agentevents.PlanStep](
					need("step_id", "stepId", id), need("description", "description", text),
					may("tool_name", "toolName", orNull).Or(null),
				)).Or(instead("[]")),
				may("strategy", "strategy", text),
			}},
			{Type: "citation_found", Kind: agentevents.KindCitationFound, Members: []engine.Member{
				may("claim", "claim", text), may("source_uri", "sourceUri", text), may("confidence", "confidence", unit), may("verified", "verified"),
			}},
			{Type: "usage_observed", Kind: agentevents.KindUsageObserved, Members: []engine.Member{
				input, output, may("total_tokens", "usage/totalTokens", count), may("cost_usd", "costUsd", least0), may("source", "source", text),
			}},
			{Type: "evidence_insufficient", Kind: agentevents.KindEvidenceInsufficient, Members: []engine.Member{
				reason, may("what_would_resolve", "whatWouldResolve", text),
			}},
			{Type: "turn_summary", Kind: agentevents.KindTurnSummarized, Members: []engine.Member{
				may("text", "text", text), may("intent", "intent", text),
				may("tool_calls", "toolCalls", engine.List[agentevents.ToolCallSummary](
					need("tool_name", "toolName", id), need("call_id", "callId", id),
					may("is_error", "isError").Or(instead("false")), may("duration_ms", "durationMs", least0),
					may("cost_usd", "costUsd", least0), may("input_tokens", "inputTokens", count),
					may("output_tokens", "outputTokens", count),
				)).Or(instead("[]")),
				may("tokens_used", "usage/totalTokens", count), may("cost_usd", "costUsd", least0), input, output,
			}},
			{Type: "memory_event", Kind: agentevents.KindMemoryChanged, Members: []engine.Member{
				need("kind", "change", engine.OneOf(RuleEnum, id, memories...)), may("section", "section", text),
				may("item_count", "itemCount", count), may("attributes", "attributes", object).Or(instead("{}")),
			}},
			{Type: "memory_event", Case: "tokens", Kind: agentevents.KindContextCompacted, Members: []engine.Member{
				need("kind", "", engine.Const(`"summarized"`)), beside[string]("section", engine.Value{}, `""`),
				beside[int]("item_count", engine.Value{}, "0"), may("attributes", "", engine.Body),
			}, Body: []engine.Member{
				attr("tokens_before", "tokensBefore", "", whole{}),
				attr("tokens_after", "tokensAfter", "", whole{}), attr("trigger", "trigger", ""), attr("summary", "summary", ""),
			}},
			{Type: "run_error", Kind: agentevents.KindAgentErrored, Members: []engine.Member{
				may("error_type", "errorType", text), may("message", "message", text), may("recovery_hint", "recoveryHint", text),
			}},
			{Type: "budget_exceeded", Kind: agentevents.KindBudgetExceeded, Members: []engine.Member{
				may("kind", "budget", text), may("limit", "limit", number{}), may("actual", "actual", number{}), reason,
			}},
			{Type: "text_delta", Kind: agentevents.KindTextDelta, Members: []engine.Member{content}},
			{Type: "thinking_delta", Kind: agentevents.KindAgentReasoningDelta, Members: []engine.Member{content}},
			{Type: "tool_call_args_delta", Kind: agentevents.KindToolArgumentsDelta, Members: []engine.Member{may("call_id", "callId", text), content}},
			{Type: "tool_call_approval_required", Kind: agentevents.KindApprovalRequested, Members: []engine.Member{
				may("call_id", "callId", text), may("tool_name", "toolId", text), may("arguments", "arguments", pairs{free{empty: "[]"}}).Or(instead("[]")), reason,
				beside[string]("run_state_ref", engine.Value{}, `""`),
			}},
			{Type: "escalation_required", Case: clarification, Kind: agentevents.KindClarificationRequested, Members: []engine.Member{
				may("kind", "", engine.Const(`"`+clarification+`"`)), may("reason", "questions", questionForm{}), beside[agentevents.JSON]("details", object, "{}"),
				beside[string]("resume_token", engine.Value{}, `""`), may("escalation_id", "interruptId", interruptForm{}),
			}},
			{Type: "span", Kind: agentevents.KindSpanRecorded, Members: []engine.Member{
				need("subject", "subject", engine.OneOf(RuleEnum, id, subjects...)), need("phase", "phase", engine.OneOf(RuleEnum, id, phases...)),
				spanID, parentSpan, title,
				may("duration_ms", "durationMs", phaseForm{engine.Nullable(least0)}).Or(null), may("error_type", "errorType", phaseForm{orNull}).Or(null),
				may("error_message", "errorMessage", phaseForm{orNull}).Or(null), may("attributes", "attributes", object).Or(instead("{}")),
			}},
		},
	}
	// span adds the row of a kind that spans of a subject and phase become.
	span := func(subject, phase string, kind agentevents.Kind,
		rest string, name engine.Member, attributes ...engine.Member) {
		duration, parent := beside[time.Duration]("duration_ms", engine.Value{}, "null"), parentSpan
		if phase == "start" || subject == "tool_call" || subject == "llm_call" { // a record of a whole call begins, too
			parent = enclosed
		}
		errorType := beside[string]("error_type", engine.Value{}, "null")
		errorMessage := beside[string]("error_message", engine.Value{}, "null")
		if phase != "start" && subject != "handoff" {
			duration = may("duration_ms", "durationMs", engine.Nullable(least0)).Or(sinceStart)
		}
		if phase == "error" {
			errorType = may("error_type", "error/code", orNull).Or(errorCode)
			errorMessage = may("error_message", "error/message", orNull).Or(null)
		}
		members := []engine.Member{
			need("subject", "", engine.Const(`"`+subject+`"`)), need("phase", "", engine.Const(`"`+phase+`"`)),
			spanID, parent, name, duration, errorType, errorMessage, may("attributes", "", engine.Body),
		}
		f.Rows = append(f.Rows, engine.Row{
			Type: "span", Case: subject + " " + phase, Kind: kind, Rest: rest, Body: attributes, Members: members,
		})
	}
	span("turn", "start", agentevents.KindTurnStarted, "attributes", title, turn)
	span("step", "start", agentevents.KindStepStarted, "attributes", title, step, known("description", "description"))
	span("tool_call", "start", agentevents.KindToolCalled, "attributes",
		named("tool."), tool, call, may("arguments", "arguments"))
	span("llm_call", "start", agentevents.KindModelCalled, "attributes",
		named("llm_call."), does, may("inputs", "request"), ask, by, model)
	span("subagent", "start", agentevents.KindAgentStarted, "", named("subagent."),
		agent, known("task", "task"), may("lifecycle", "lifecycle"), engine.Resumed())
	span("handoff", "start", agentevents.KindHandoffRequested, "", named("handoff."), from, to, known("reason", "reason"))
	span("handoff", "complete", agentevents.KindHandoffAccepted,
		"", named("handoff."), from, to, known("reason", "reason"))
	for _, phase := range []string{"error", "cancelled", "complete"} { // writers take the last one
		summary, isError := "", []engine.Member(nil)
		if phase == "complete" {
			summary, isError = `""`, []engine.Member{attr("is_error", "", "false", failed{})}
		}
		span("turn", phase, agentevents.KindTurnEnded, "attributes", title, turn)
		span("step", phase, agentevents.KindStepEnded, "attributes", title,
			append([]engine.Member{step, attr("result_summary", "resultSummary", summary)}, isError...)...)
		span("tool_call", phase, agentevents.KindToolReturned, "", named("tool."), slices.Concat(
			[]engine.Member{tool, call, attr("result_summary", "resultSummary", summary, summaryForm{})}, isError,
			[]engine.Member{may("arguments", "arguments", wholeCall{}), may("result", "result")})...)
		span("llm_call", phase, agentevents.KindModelReturned, "", named("llm_call."),
			does, may("inputs", "request", wholeCall{}), may("input_tokens", "", spent{}),
			may("output_tokens", "", spent{}), may("total_tokens", "", spent{}),
			may("cost_usd", "", spent{}), ask, by, model, may("response", "response"))
		span("subagent", phase, agentevents.KindAgentEnded, "", named("subagent."),
			agent, known("result_summary", "result"), attr("tokens_used", "statedTokens", "", statedForm{count}))
	}
	engine.AddLate(f.Rows)
	return engine.New(f)
}()

// caseOf tells apart the lines of one type.
func caseOf(typ, line string) string {
	switch typ {
	case "span":
		if phase := jsonwire.Text(jsonwire.Member(line, "phase")); slices.Contains(phases, phase) {
			return jsonwire.Text(jsonwire.Member(line, "subject")) + " " + phase
		}
	case "escalation_required":
		return jsonwire.Text(jsonwire.Member(line, "kind"))
	case "memory_event":
		if jsonwire.Text(jsonwire.Member(line, "kind")) != "summarized" {
			break
		}
		for name, raw := range jsonwire.Members(jsonwire.Member(line, "attributes")) {
			if _, err := strconv.ParseUint(raw, 10, 63); err == nil && (name == "tokens_before" || name == "tokens_after") {
				return "tokens"
			}
		}
	}
	return ""
}
