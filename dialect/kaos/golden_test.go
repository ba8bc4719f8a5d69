package kaos

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

var _ dialect.Encoder = (*Encoder)(nil)

// anchor is the time at which the monotonic clock of the examples reads 1000.
var anchor = time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)

var (
	testOptions    = Options{Anchor: anchor, AnchorSeconds: 1000}
	encoderOptions = EncoderOptions{Anchor: anchor, AnchorSeconds: 1000}
)

const (
	head = `{"timestamp":1001.25,"sequence":0,"session_id":"s-1","run_id":"run_0123456789ab","agent_id":null,`
	tail = `,"type":"span"}`
)

// spanLine returns the line of a span.
func spanLine(subject, phase, name, duration, errType, errText, attributes string) string {
	return head + `"subject":"` + subject + `","phase":"` + phase + `","span_id":"a1b2c3d4e5f6","parent_span_id":null,"name":"` + name +
		`","duration_ms":` + duration + `,"error_type":` + errType + `,"error_message":` + errText + `,"attributes":` + attributes + tail
}

type golden struct {
	name    string
	line    string
	payload agentevents.Payload
	edit    func(ev *agentevents.Event) // sets members of the envelope
}

func ref(id string) agentevents.AgentRef { return agentevents.AgentRef{AgentID: id} }

func ms(d time.Duration) agentevents.Opt[time.Duration] {
	return agentevents.Some(d * time.Microsecond)
}

func failure(code, message string) agentevents.Opt[agentevents.ErrorInfo] {
	return agentevents.Some(agentevents.ErrorInfo{Code: code, Message: message})
}

func agentID(id string) func(ev *agentevents.Event) {
	return func(ev *agentevents.Event) { ev.AgentID = id }
}

var goldens = []golden{
	{"turn start", spanLine("turn", "start", "turn.1", "null", "null", "null", `{"turn_number":1,"trigger_kind":"user"}`),
		&agentevents.TurnStarted{Turn: agentevents.Some(1), Name: "turn.1", Attributes: `{"trigger_kind":"user"}`}, nil},
	{"turn complete", spanLine("turn", "complete", "turn.1", "1234.5", "null", "null", `{"turn_number":1}`),
		&agentevents.TurnEnded{Turn: agentevents.Some(1), Name: "turn.1", Duration: ms(1234500)}, nil},
	{"turn error", spanLine("turn", "error", "turn.1", "0.0", `"TimeoutError"`, `"too slow"`, `{"turn_number":1}`),
		&agentevents.TurnEnded{Turn: agentevents.Some(1), Name: "turn.1", Duration: ms(0), Error: failure("TimeoutError", "too slow")}, nil},
	{"turn cancelled", spanLine("turn", "cancelled", "turn.1", "1.0", "null", "null", `{}`),
		&agentevents.TurnEnded{Name: "turn.1", Duration: ms(1000), Error: failure("cancelled", "")}, kept(`"phase":"cancelled"`)},
	{"step start", spanLine("step", "start", "step.s001", "null", "null", "null", `{"step_id":"s001","description":"look it up"}`),
		&agentevents.StepStarted{StepID: "s001", Name: "step.s001", Description: "look it up"}, nil},
	{"step complete", spanLine("step", "complete", "step.s001", "3.25", "null", "null", `{"step_id":"s001","result_summary":"done","is_error":false,"tries":2}`),
		&agentevents.StepEnded{StepID: "s001", Name: "step.s001", Duration: ms(3250), ResultSummary: "done", Attributes: `{"tries":2}`}, nil},
	{"step complete with error", spanLine("step", "complete", "step.s001", "3.25", "null", "null", `{"step_id":"s001","result_summary":"no","is_error":true}`),
		&agentevents.StepEnded{StepID: "s001", Name: "step.s001", Duration: ms(3250), ResultSummary: "no", Error: failure("", "no")}, nil},
	{"step complete with error and no text", spanLine("step", "complete", "step.s001", "3.25", "null", "null", `{"step_id":"s001","result_summary":"","is_error":true}`),
		&agentevents.StepEnded{StepID: "s001", Name: "step.s001", Duration: ms(3250), Error: failure("", "")}, kept(`"phase":"complete"`)},
	{"step error", spanLine("step", "error", "step.s001", "3.25", `"KeyError"`, `"x"`, `{"step_id":"s001"}`),
		&agentevents.StepEnded{StepID: "s001", Name: "step.s001", Duration: ms(3250), Error: failure("KeyError", "x")}, nil},
	{"step cancelled", spanLine("step", "cancelled", "step.s001", "3.25", "null", "null", `{"step_id":"s001"}`),
		&agentevents.StepEnded{StepID: "s001", Name: "step.s001", Duration: ms(3250), Error: failure("cancelled", "")}, kept(`"phase":"cancelled"`)},
	{"tool start", spanLine("tool_call", "start", "tool.search", "null", "null", "null", `{"tool_name":"search","call_id":"c1","arguments":[["query","agent events"]]}`),
		&agentevents.ToolCalled{CallID: "c1", ToolID: "search", Arguments: `[["query","agent events"]]`}, nil},
	{"tool start with object", spanLine("tool_call", "start", "tool.search", "null", "null", "null", `{"tool_name":"search","call_id":"c1","arguments":{"query":"x","n":3},"retry":true}`),
		&agentevents.ToolCalled{CallID: "c1", ToolID: "search", Arguments: `{"query":"x","n":3}`, Attributes: `{"retry":true}`}, nil},
	{"tool complete", spanLine("tool_call", "complete", "tool.search", "412.125", "null", "null", `{"tool_name":"search","call_id":"c1","result_summary":"3 hits","is_error":false}`),
		&agentevents.ToolReturned{CallID: "c1", ToolID: "search", Status: agentevents.ToolStatusOK, ResultSummary: "3 hits", Duration: ms(412125), OneEvent: true}, nil},
	{"tool complete with error", spanLine("tool_call", "complete", "tool.search", "412.125", "null", "null", `{"tool_name":"search","call_id":"c1","result_summary":"no","is_error":true,"cached":false}`),
		&agentevents.ToolReturned{CallID: "c1", ToolID: "search", Status: agentevents.ToolStatusError, ResultSummary: "no", Duration: ms(412125), OneEvent: true}, kept(`"/attributes/cached":false`)},
	{"tool complete of a whole call", spanLine("tool_call", "complete", "tool.search", "412.125", "null", "null", `{"tool_name":"search","call_id":"c1","result_summary":"","is_error":false,"arguments":[["q","x"]]}`),
		&agentevents.ToolReturned{CallID: "c1", ToolID: "search", Status: agentevents.ToolStatusOK, Duration: ms(412125), OneEvent: true, Arguments: `[["q","x"]]`}, nil},
	{"tool error", spanLine("tool_call", "error", "tool.search", "5.0", `"ValueError"`, `"bad"`, `{"tool_name":"search","call_id":"c1"}`),
		&agentevents.ToolReturned{CallID: "c1", ToolID: "search", Status: agentevents.ToolStatusError, Duration: ms(5000), Error: failure("ValueError", "bad"), OneEvent: true}, nil},
	{"tool cancelled", spanLine("tool_call", "cancelled", "a call", "5.0", "null", "null", `{"tool_name":"search","call_id":"c1"}`),
		&agentevents.ToolReturned{CallID: "c1", ToolID: "search", Status: agentevents.ToolStatusCancelled, Duration: ms(5000), OneEvent: true}, kept(`"name":"a call"`)},
	{"subagent start", strings.Replace(spanLine("subagent", "start", "subagent.researcher", "null", "null", "null", `{"subagent_name":"researcher","task":"find sources"}`), `"agent_id":null`, `"agent_id":"lead"`, 1),
		&agentevents.AgentStarted{Task: "find sources"}, func(ev *agentevents.Event) { ev.AgentID, ev.ParentAgentID = "researcher", "lead" }},
	{"subagent complete", spanLine("subagent", "complete", "subagent.researcher", "90.5", "null", "null", `{"subagent_name":"researcher","result_summary":"found 3","tokens_used":812}`),
		&agentevents.AgentEnded{Result: "found 3", Duration: ms(90500), StatedTokens: agentevents.Some[int64](812)}, agentID("researcher")},
	{"subagent error", spanLine("subagent", "error", "subagent.researcher", "90.5", `"RuntimeError"`, `"broke"`, `{"subagent_name":"researcher","result_summary":""}`),
		&agentevents.AgentEnded{Error: failure("RuntimeError", "broke"), Duration: ms(90500)}, agentID("researcher")},
	{"subagent cancelled", spanLine("subagent", "cancelled", "subagent.researcher", "90.5", "null", "null", `{"subagent_name":"researcher","result_summary":""}`),
		&agentevents.AgentEnded{Outcome: agentevents.OutcomeAborted, Duration: ms(90500)}, agentID("researcher")},
	{"handoff start", spanLine("handoff", "start", "handoff.billing", "null", "null", "null", `{"from_agent":"triage","to_agent":"billing","reason":"invoice"}`),
		&agentevents.HandoffRequested{From: ref("triage"), To: ref("billing"), Reason: "invoice"}, nil},
	{"handoff complete", spanLine("handoff", "complete", "handoff.billing", "2.0", "null", "null", `{"from_agent":"triage","to_agent":"billing","reason":""}`),
		&agentevents.HandoffAccepted{From: ref("triage"), To: ref("billing")}, kept(`"duration_ms":2.0`)},
	{"handoff error", spanLine("handoff", "error", "", "2.0", `"E"`, `"m"`, `{}`),
		&agentevents.SpanRecorded{Subject: "handoff", Phase: "error", Duration: ms(2000), ErrorType: "E", ErrorMessage: "m"}, nil},
	{"run start", spanLine("run", "start", "run", "null", "null", "null", `{}`),
		&agentevents.SpanRecorded{Subject: "run", Phase: "start", Name: "run"}, nil},
	{"llm_call progress", spanLine("llm_call", "progress", "llm", "null", "null", "null", `{"retry_attempt":1,"retry_error":"429"}`),
		&agentevents.SpanRecorded{Subject: "llm_call", Phase: "progress", Name: "llm", Attributes: `{"retry_attempt":1,"retry_error":"429"}`}, nil},
	{"llm_call start", spanLine("llm_call", "start", "llm", "null", "null", "null", `{"call_type":"chat","inputs":"[{'role': 'user'}]","temperature":0.5}`),
		&agentevents.ModelCalled{ModelCallID: "a1b2c3d4e5f6", Operation: "chat", Request: `"[{'role': 'user'}]"`, Attributes: `{"temperature":0.5}`}, kept(`"name":"llm"`)},
	{"llm_call complete", spanLine("llm_call", "complete", "llm", "412.125", "null", "null", `{"call_type":"chat","inputs":"[]","input_tokens":10,"output_tokens":4,"total_tokens":14,"cost_usd":0.001,"cached":true}`),
		&agentevents.ModelReturned{ModelCallID: "a1b2c3d4e5f6", Operation: "chat", Duration: ms(412125), Request: `"[]"`, OneEvent: true},
		kept(`"name":"llm","/attributes/input_tokens":10,"/attributes/output_tokens":4,"/attributes/total_tokens":14,"/attributes/cost_usd":0.001,"/attributes/cached":true`)},
	{"llm_call error", spanLine("llm_call", "error", "llm_call.", "5.0", `"RateLimitError"`, `"429"`, `{"call_type":"chat"}`),
		&agentevents.ModelReturned{ModelCallID: "a1b2c3d4e5f6", Operation: "chat", Duration: ms(5000), Error: failure("RateLimitError", "429"), OneEvent: true}, nil},
	{"llm_call cancelled", spanLine("llm_call", "cancelled", "llm_call.", "5.0", "null", "null", `{"call_type":"chat"}`),
		&agentevents.ModelReturned{ModelCallID: "a1b2c3d4e5f6", Operation: "chat", Duration: ms(5000), Error: failure("cancelled", ""), OneEvent: true}, kept(`"phase":"cancelled"`)},
	{"llm_call start of a writer of ours", spanLine("llm_call", "start", "llm_call.m-1", "null", "null", "null", `{"call_type":"","call_id":"m1","provider":"openai","model":"m-1"}`),
		&agentevents.ModelCalled{ModelCallID: "m1", Provider: "openai", Model: "m-1"}, nil},
	{"judge complete", spanLine("judge", "complete", "judge.s001", "1.5", "null", "null", `{"step_id":"s001","matched":true,"confidence":0.9,"reasoning":"r","mode":"semantic"}`),
		&agentevents.SpanRecorded{Subject: "judge", Phase: "complete", Name: "judge.s001", Duration: ms(1500), Attributes: `{"step_id":"s001","matched":true,"confidence":0.9,"reasoning":"r","mode":"semantic"}`}, nil},
	{"route complete", spanLine("route", "complete", "route.s001", "0.25", "null", "null", `{"step_id":"s001","decision":"next"}`),
		&agentevents.SpanRecorded{Subject: "route", Phase: "complete", Name: "route.s001", Duration: ms(250), Attributes: `{"step_id":"s001","decision":"next"}`}, nil},
	{"step progress", spanLine("step", "progress", "step.s001", "null", "null", "null", `{"step_id":"s001"}`),
		&agentevents.SpanRecorded{Subject: "step", Phase: "progress", Name: "step.s001", Attributes: `{"step_id":"s001"}`}, nil},
	{"a later subject", spanLine("critique", "start", "critique", "null", "null", "null", `{}`),
		&agentevents.SpanRecorded{Subject: "critique", Phase: "start", Name: "critique"}, nil},

	{"intent_classified", head + `"intent":"research","confidence":0.95,"reasoning":"asks for sources","type":"intent_classified"}`,
		&agentevents.IntentClassified{Intent: "research", Confidence: agentevents.Some(0.95), Reasoning: "asks for sources"}, nil},
	{"plan_proposed", head + `"steps":[{"step_id":"s001","description":"search","tool_name":"search"},{"step_id":"s002","description":"write","tool_name":null}],"strategy":"decompose","type":"plan_proposed"}`,
		&agentevents.PlanProposed{Steps: []agentevents.PlanStep{{StepID: "s001", Description: "search", ToolName: "search"}, {StepID: "s002", Description: "write"}}, Strategy: "decompose"}, nil},
	{"citation_found", head + `"claim":"c","source_uri":"https://example.com/a","confidence":1.0,"verified":false,"type":"citation_found"}`,
		&agentevents.CitationFound{Claim: "c", SourceURI: "https://example.com/a", Confidence: agentevents.Some(1.0), Verified: agentevents.Some(false)}, nil},
	{"usage_observed", head + `"input_tokens":10,"output_tokens":4,"total_tokens":14,"cost_usd":5e-05,"source":"classify","type":"usage_observed"}`,
		&agentevents.UsageObserved{Usage: agentevents.Usage{InputTokens: 10, OutputTokens: 4, TotalTokens: agentevents.Some[int64](14)}, CostUSD: agentevents.Some(0.00005), Source: "classify"}, nil},
	{"evidence_insufficient", head + `"reason":"no source","what_would_resolve":"a source","type":"evidence_insufficient"}`,
		&agentevents.EvidenceInsufficient{Reason: "no source", WhatWouldResolve: "a source"}, nil},
	{"turn_summary", head + `"text":"answer","intent":"research","tool_calls":[{"tool_name":"search","call_id":"c1","is_error":false,"duration_ms":412.125,"cost_usd":0.0,"input_tokens":0,"output_tokens":0}],"tokens_used":14,"cost_usd":0.25,"input_tokens":10,"output_tokens":4,"type":"turn_summary"}`,
		&agentevents.TurnSummarized{
			Text: "answer", Intent: "research",
			ToolCalls: []agentevents.ToolCallSummary{{
				ToolName: "search", CallID: "c1", Duration: ms(412125), CostUSD: agentevents.Some(0.0), InputTokens: agentevents.Some[int64](0), OutputTokens: agentevents.Some[int64](0),
			}},
			Usage: agentevents.Usage{InputTokens: 10, OutputTokens: 4, TotalTokens: agentevents.Some[int64](14)}, CostUSD: agentevents.Some(0.25),
		}, nil},
	{"memory_event", head + `"kind":"added","section":"facts","item_count":2,"attributes":{"a":[1]},"type":"memory_event"}`,
		&agentevents.MemoryChanged{Change: agentevents.MemoryAdded, Section: "facts", ItemCount: agentevents.Some(2), Attributes: `{"a":[1]}`}, nil},
	{"memory_event summarized", head + `"kind":"summarized","section":"history","item_count":12,"attributes":{},"type":"memory_event"}`,
		&agentevents.MemoryChanged{Change: agentevents.MemorySummarized, Section: "history", ItemCount: agentevents.Some(12)}, nil},
	{"memory_event that counts tokens", head + `"kind":"summarized","section":"history","item_count":12,"attributes":{"tokens_before":9000,"tokens_after":700,"trigger":"auto","by":"x"},"type":"memory_event"}`,
		&agentevents.ContextCompacted{TokensBefore: agentevents.Some[int64](9000), TokensAfter: agentevents.Some[int64](700), Trigger: "auto"}, kept(`"/attributes/by":"x","section":"history","item_count":12`)},
	{"run_error", head + `"error_type":"approval_denied","message":"denied","recovery_hint":"ask","type":"run_error"}`,
		&agentevents.AgentErrored{ErrorType: "approval_denied", Message: "denied", RecoveryHint: "ask"}, nil},
	{"budget_exceeded", head + `"kind":"cost","limit":1.5,"actual":2.0,"reason":"too much","type":"budget_exceeded"}`,
		&agentevents.BudgetExceeded{Budget: "cost", Limit: 1.5, Actual: 2, Reason: "too much"}, nil},
	{"text_delta", head + `"content":"and then\n","type":"text_delta"}`, &agentevents.TextDelta{Delta: "and then\n"}, nil},
	{"thinking_delta", head + `"content":"hm","type":"thinking_delta"}`, &agentevents.AgentReasoningDelta{Delta: "hm"}, nil},
	{"tool_call_args_delta", head + `"call_id":"c1","content":"{\"q","type":"tool_call_args_delta"}`, &agentevents.ToolArgumentsDelta{CallID: "c1", Delta: `{"q`}, nil},
	{"tool_call_approval_required", head + `"call_id":"c1","tool_name":"rm","arguments":[["path","/"]],"reason":"dangerous","run_state_ref":"ref-1","type":"tool_call_approval_required"}`,
		&agentevents.ApprovalRequested{ApprovalID: "c1", CallID: "c1", ToolID: "rm", Arguments: `[["path","/"]]`, Reason: "dangerous"}, kept(`"run_state_ref":"ref-1"`)},
	{"clarification", head + `"kind":"clarification_needed","reason":"which year?","details":{"field":"year"},"resume_token":"t-1","escalation_id":"e-1","type":"escalation_required"}`,
		&agentevents.ClarificationRequested{InterruptID: "e-1", Questions: []agentevents.Question{{ID: "e-1", Question: "which year?"}}}, kept(`"resume_token":"t-1","details":{"field":"year"}`)},
	{"clarification without id", head + `"kind":"clarification_needed","reason":"which year?","details":{},"resume_token":"","escalation_id":"","type":"escalation_required"}`,
		&agentevents.ClarificationRequested{InterruptID: "run_0123456789ab", Questions: []agentevents.Question{{ID: "run_0123456789ab", Question: "which year?"}}}, kept(`"escalation_id":""`)},
	{"another escalation", head + `"kind":"loop_detected","reason":"again","details":{},"resume_token":"","escalation_id":"e-2","type":"escalation_required"}`,
		&agentevents.Unknown{Type: "escalation_required", Raw: `{"kind":"loop_detected","reason":"again","details":{},"resume_token":"","escalation_id":"e-2"}`}, nil},
	{"loop_terminated", head + `"reason":"satisfied","iterations_used":1,"elevations_used":0,"cost_usd":0.1,"wall_clock_ms":12.5,"type":"loop_terminated"}`,
		&agentevents.Unknown{Type: "loop_terminated", Raw: `{"reason":"satisfied","iterations_used":1,"elevations_used":0,"cost_usd":0.1,"wall_clock_ms":12.5}`}, nil},
	{"a type that is a kind", head + `"text":"x","type":"agent.text"}`, &agentevents.Unknown{Type: "kaos:agent.text", Raw: `{"text":"x"}`}, nil},
}

// kept returns an edit that sets the event's extra member "kaos".
func kept(members string, more ...func(ev *agentevents.Event)) func(ev *agentevents.Event) {
	return func(ev *agentevents.Event) {
		if err := ev.SetExtra(string(Name), agentevents.JSON("{"+members+"}")); err != nil {
			panic(err)
		}
		for _, f := range more {
			f(ev)
		}
	}
}

// event returns the event of the golden line, without an id.
func (g *golden) event() agentevents.Event {
	ev := agentevents.Event{
		Time: anchor.Add(1250 * time.Millisecond), RunID: "run_0123456789ab", Scope: agentevents.Scope{SessionID: "s-1"},
		SchemaVersion: agentevents.SchemaVersion, Payload: g.payload,
	}
	if strings.HasSuffix(g.line, tail) {
		ev.SpanID = "a1b2c3d4e5f6"
	}
	if g.edit != nil {
		g.edit(&ev)
	}
	if ev.AgentID == "" {
		ev.AgentID = Root
	}
	return ev
}

func decodeOne(t testing.TB, o Options, line string) agentevents.Event {
	t.Helper()
	events, err := NewDecoder(o).Decode(nil, []byte(line))
	require.NoError(t, err, line)
	require.Len(t, events, 1, line)
	return events[0]
}

func encodeOne(t testing.TB, o EncoderOptions, ev agentevents.Event) string {
	t.Helper()
	line, err := NewEncoder(o).Append(nil, ev)
	require.NoError(t, err)
	return string(line)
}

func TestGolden(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) {
			ev := decodeOne(t, testOptions, g.line)
			require.NotEmpty(t, ev.ID)
			typ := jsonwire.Text(jsonwire.Member(g.line, "type"))
			seen[typ+" "+caseOf(typ, g.line)] = true
			want := g.event()
			want.ID = ev.ID
			require.Equal(t, want, ev)

			require.Equal(t, g.line+"\n", encodeOne(t, encoderOptions, ev))
			want.ID = ""
			e := NewEncoder(encoderOptions)
			line, err := e.Append(nil, want)
			require.NoError(t, err)
			require.Equal(t, g.line+"\n", string(line))
			if p, ok := g.payload.(*agentevents.ToolReturned); !ok || p.OneEvent {
				require.Empty(t, e.Losses())
			}

			// A strict decoder and the native format give the same.
			o := testOptions
			o.Strict = true
			if g.name != "a later subject" {
				require.Equal(t, ev, decodeOne(t, o, g.line))
			}
			native, err := ev.AppendJSON(nil)
			require.NoError(t, err)
			var back agentevents.Event
			require.NoError(t, back.UnmarshalJSON(native))
			require.Equal(t, g.line+"\n", encodeOne(t, encoderOptions, back))
		})
	}
	for _, row := range format.Rows {
		key := row.Type + " " + row.Case
		if key == "span " {
			key += "run start"
		}
		require.True(t, seen[key] || row.Case == "subagent start by span", "%s has no golden line", key)
	}
}

func decodeAll(t testing.TB, log string) []agentevents.Event {
	t.Helper()
	return eventtest.ReadLog(t, strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions)}).Events()
}
