package kaos

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

var _ dialect.Encoder = (*Encoder)(nil)

// anchor is the wall clock when the monotonic clock of the examples read 1000.
var anchor = time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)

var (
	testOptions    = Options{Anchor: anchor, AnchorSeconds: 1000}
	encoderOptions = EncoderOptions{Anchor: anchor, AnchorSeconds: 1000}
)

const (
	head = `{"timestamp":1001.25,"sequence":0,"session_id":"s-1","run_id":"run_0123456789ab","agent_id":null,`
	tail = `,"type":"span"}`
)

// spanLine is a span of the examples.
func spanLine(subject, phase, name, duration, errType, errText, attributes string) string {
	return head + `"subject":"` + subject + `","phase":"` + phase + `","span_id":"a1b2c3d4e5f6","parent_span_id":null,"name":"` + name +
		`","duration_ms":` + duration + `,"error_type":` + errType + `,"error_message":` + errText + `,"attributes":` + attributes + tail
}

type golden struct {
	name    string
	line    string
	payload agentevents.Payload
	edit    func(ev *agentevents.Event) // of the envelope
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
		&agentevents.ToolReturned{CallID: "c1", ToolID: "search", Status: agentevents.ToolOK, ResultSummary: "3 hits", Duration: ms(412125), OneEvent: true}, nil},
	{"tool complete with error", spanLine("tool_call", "complete", "tool.search", "412.125", "null", "null", `{"tool_name":"search","call_id":"c1","result_summary":"no","is_error":true,"cached":false}`),
		&agentevents.ToolReturned{CallID: "c1", ToolID: "search", Status: agentevents.ToolError, ResultSummary: "no", Duration: ms(412125), OneEvent: true}, kept(`"/attributes/cached":false`)},
	{"tool complete of a whole call", spanLine("tool_call", "complete", "tool.search", "412.125", "null", "null", `{"tool_name":"search","call_id":"c1","result_summary":"","is_error":false,"arguments":[["q","x"]]}`),
		&agentevents.ToolReturned{CallID: "c1", ToolID: "search", Status: agentevents.ToolOK, Duration: ms(412125), OneEvent: true, Arguments: `[["q","x"]]`}, nil},
	{"tool error", spanLine("tool_call", "error", "tool.search", "5.0", `"ValueError"`, `"bad"`, `{"tool_name":"search","call_id":"c1"}`),
		&agentevents.ToolReturned{CallID: "c1", ToolID: "search", Status: agentevents.ToolError, Duration: ms(5000), Error: failure("ValueError", "bad"), OneEvent: true}, nil},
	{"tool cancelled", spanLine("tool_call", "cancelled", "a call", "5.0", "null", "null", `{"tool_name":"search","call_id":"c1"}`),
		&agentevents.ToolReturned{CallID: "c1", ToolID: "search", Status: agentevents.ToolCancelled, Duration: ms(5000), OneEvent: true}, kept(`"name":"a call"`)},
	{"subagent start", strings.Replace(spanLine("subagent", "start", "subagent.researcher", "null", "null", "null", `{"subagent_name":"researcher","task":"find sources"}`), `"agent_id":null`, `"agent_id":"lead"`, 1),
		&agentevents.AgentStarted{Task: "find sources"}, func(ev *agentevents.Event) { ev.AgentID, ev.ParentAgentID = "researcher", "lead" }},
	{"subagent complete", spanLine("subagent", "complete", "subagent.researcher", "90.5", "null", "null", `{"subagent_name":"researcher","result_summary":"found 3","tokens_used":812}`),
		&agentevents.AgentEnded{Result: "found 3", Duration: ms(90500)}, kept(`"/attributes/tokens_used":812`, agentID("researcher"))},
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

// kept sets the extra member.
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

// event is what the golden line says, without an id.
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
	seen := map[int]bool{}
	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) {
			ev := decodeOne(t, testOptions, g.line)
			require.NotEmpty(t, ev.ID)
			typ, err := typeOf(g.line)
			require.NoError(t, err)
			seen[variantOf(typ)] = true
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

			// And strictly, and by way of the native format.
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
	for v := range numVariants {
		require.True(t, seen[v], "%s has no golden line", variants[v].typ)
	}
}

// The order of members is no part of the format, nor are blanks.
func TestMembersInAnyOrder(t *testing.T) {
	for _, g := range goldens {
		want := decodeOne(t, testOptions, g.line)
		members := splitMembers(t, g.line)
		for _, odd := range []string{reversed(members), "{ " + strings.Join(members, " , ") + "\t}"} {
			ev := decodeOne(t, testOptions, odd)
			require.NotEqual(t, want.ID, ev.ID)
			ev.ID = want.ID
			if _, unknown := ev.Payload.(*agentevents.Unknown); !unknown {
				require.Equal(t, g.line, strings.TrimSuffix(encodeOne(t, encoderOptions, ev), "\n"), odd)
			}

			// Read with Verbatim it comes back as it was.
			for ev, err := range agentevents.NewReader(strings.NewReader(odd), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions), Verbatim: true}).All() {
				require.NoError(t, err)
				require.Equal(t, odd+"\n", encodeOne(t, encoderOptions, ev))
				sse := encoderOptions
				sse.SSE = true
				require.Contains(t, encodeOne(t, sse, ev), "\ndata: "+odd+"\nid: 0\n\n")
				ev.SessionID = "other"
				require.NotContains(t, encodeOne(t, encoderOptions, ev), odd)
				require.Contains(t, encodeOne(t, encoderOptions, ev), `"session_id":"other"`)
			}
		}
	}
}

func splitMembers(t *testing.T, line string) (members []string) {
	depth, start, text := 0, 1, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth == 1:
			members = append(members, line[start:i])
			start = i + 1
		}
	}
	require.Zero(t, depth)
	return append(members, line[start:len(line)-1])
}

func reversed(members []string) string {
	var b strings.Builder
	for i := len(members) - 1; i >= 0; i-- {
		b.WriteString(members[i])
		if i > 0 {
			b.WriteByte(',')
		}
	}
	return "{" + b.String() + "}"
}

func TestUnknownMembers(t *testing.T) {
	for _, g := range goldens {
		if _, unknown := g.payload.(*agentevents.Unknown); unknown {
			continue
		}
		line := g.line[:len(g.line)-1] + `,"new":{"a":[1,1.50]},"/odd~":null,"a/b":1}`
		line = strings.Replace(line, `"tool_name":null}`, `"tool_name":null,"x/y":1}`, 1)
		line = strings.Replace(line, `"output_tokens":0}`, `"output_tokens":0,"z":[2]}`, 1)
		ev := decodeOne(t, testOptions, line)
		require.Equal(t, line+"\n", encodeOne(t, encoderOptions, ev))
		native, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		var back agentevents.Event
		require.NoError(t, back.UnmarshalJSON(native))
		require.Equal(t, line+"\n", encodeOne(t, encoderOptions, back), string(native))
	}
	ev := decodeOne(t, testOptions, strings.Replace(goldens[0].line, `"type"`, `"/odd~":1,"x":2,"type"`, 1))
	require.Equal(t, agentevents.JSON(`{"/~1odd~0":1,"x":2}`), ev.Extra("kaos"))
}

func TestSequence(t *testing.T) {
	d := NewDecoder(testOptions)
	var events []agentevents.Event
	for _, n := range []string{"3", "4", "4", "0", "18", "-1"} {
		var err error
		events, err = d.Decode(events, []byte(strings.Replace(goldens[len(goldens)-3].line, `"sequence":0`, `"sequence":`+n, 1)))
		require.NoError(t, err)
	}
	e := NewEncoder(encoderOptions)
	for i, n := range []string{"3", "4", "4", "0", "18", "-1"} {
		require.Equal(t, uint64(i), events[i].Sequence)
		require.Equal(t, agentevents.JSON(n), dialect.Unknown(&events[i], Name, "sequence"))
		line, err := e.Append(nil, events[i])
		require.NoError(t, err)
		require.Contains(t, string(line), `"sequence":`+n+`,`)
	}
	for _, l := range e.Losses() {
		require.Equal(t, "/id", l.Pointer)
	}
	line, err := e.Append(nil, agentevents.Event{RunID: "other", Scope: agentevents.Scope{SessionID: "s"}, Sequence: 5, Payload: &agentevents.TextDelta{}})
	require.NoError(t, err)
	require.Contains(t, string(line), `"sequence":5,`)
	require.Equal(t, "/sequence", e.Losses()[1].Pointer)
}

func TestTimes(t *testing.T) {
	at := func(o Options, seconds string) time.Time {
		return decodeOne(t, o, `{"timestamp":`+seconds+`,"sequence":0,"session_id":"s","run_id":"r","content":"","type":"text_delta"}`).Time
	}
	for _, c := range []struct {
		seconds string
		want    time.Duration // after the zero of the clock
		written string        // if not the same
	}{
		{"0.0", 0, ""},
		{"0", 0, "0.0"},
		{"12", 12 * time.Second, "12.0"},
		{"12.5", 12500 * time.Millisecond, ""},
		{"84523.123456789", 84523123456789, ""},
		{"84523.1234567894", 84523123456789, "84523.123456789"},
		{"84523.1234567895", 84523123456790, "84523.12345679"},
		{"0.9999999999", time.Second, "1.0"},
		{"-1.5", -1500 * time.Millisecond, ""},
		{"-0.5", -500 * time.Millisecond, ""},
		{"1e3", 1000 * time.Second, "1000.0"},
		{"1.5E-3", 1500 * time.Microsecond, "0.0015"},
		{"-25e-1", -2500 * time.Millisecond, "-2.5"},
	} {
		zero := at(Options{}, c.seconds)
		require.Equal(t, time.Unix(0, 0).UTC().Add(c.want), zero, c.seconds)
		got := at(testOptions, c.seconds)
		require.Equal(t, anchor.Add(c.want-1000*time.Second), got, c.seconds)
		for _, o := range []struct {
			options EncoderOptions
			time    time.Time
		}{{EncoderOptions{}, zero}, {encoderOptions, got}, {EncoderOptions{Anchor: anchor.Add(time.Nanosecond), AnchorSeconds: 1000}, got.Add(time.Nanosecond)}} {
			line := encodeOne(t, o.options, agentevents.Event{RunID: "r", Time: o.time, Payload: &agentevents.TextDelta{}})
			want := c.written
			if want == "" {
				want = c.seconds
			}
			require.True(t, strings.HasPrefix(line, `{"timestamp":`+want+`,`), "%s: %s", c.seconds, line)
		}
	}
	require.Equal(t, clock{0, 0}, newClock(time.Time{}, math.NaN()))

	// Without an anchor the first event of a run says so.
	d := NewDecoder(Options{})
	events, err := d.Decode(nil, []byte(goldens[0].line))
	require.NoError(t, err)
	events, err = d.Decode(events, []byte(strings.Replace(goldens[0].line, `"sequence":0`, `"sequence":1`, 1)))
	require.NoError(t, err)
	require.Equal(t, agentevents.JSON(`{"/timestamp":"monotonic"}`), events[0].Extra("kaos"))
	require.Empty(t, events[1].Extra("kaos"))
	require.Equal(t, 1970, events[1].Time.Year())
	require.Equal(t, goldens[0].line+"\n", encodeOne(t, EncoderOptions{}, events[0]))
}

func TestNumbersAsPythonWritesThem(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", 1: "1.0", 0.1: "0.1", 1e15: "1000000000000000.0", 1e16: "1e+16", 1.5e300: "1.5e+300", 0.0001: "0.0001", 0.00001: "1e-05", -2.5e-7: "-2.5e-07", 12345678.25: "12345678.25",
	} {
		require.Equal(t, want, string(appendFloat(nil, f)))
	}
	require.Equal(t, "-9223372036854.775808", string(appendMillis(nil, math.MinInt64)))
	require.Equal(t, "0.000001", string(appendMillis(nil, 1)))
}

func TestStrict(t *testing.T) {
	line := func(name string) string {
		for _, g := range goldens {
			if g.name == name {
				return g.line
			}
		}
		t.Fatal(name)
		return ""
	}
	for _, c := range []struct {
		line, old, new string
		rule           agentevents.Rule
		pointer        string
	}{
		{"text_delta", `"timestamp":1001.25,`, ``, RuleRequired, "/timestamp"},
		{"text_delta", `"sequence":0,`, ``, RuleRequired, "/sequence"},
		{"text_delta", `"session_id":"s-1",`, ``, RuleRequired, "/session_id"},
		{"text_delta", `"run_id":"run_0123456789ab",`, ``, RuleRequired, "/run_id"},
		{"text_delta", `"run_0123456789ab"`, `""`, RuleRequired, "/run_id"},
		{"text_delta", `"sequence":0`, `"sequence":-1`, RuleRange, "/sequence"},
		{"turn start", `"subject":"turn",`, ``, RuleRequired, "/subject"},
		{"turn start", `"phase":"start",`, ``, RuleRequired, "/phase"},
		{"turn start", `"span_id":"a1b2c3d4e5f6",`, ``, RuleRequired, "/span_id"},
		{"turn start", `"subject":"turn"`, `"subject":"TURN"`, RuleEnum, "/subject"},
		{"turn start", `"phase":"start"`, `"phase":"begin"`, RuleEnum, "/phase"},
		{"turn start", `"duration_ms":null`, `"duration_ms":1.0`, RulePhase, "/duration_ms"},
		{"turn complete", `"error_type":null`, `"error_type":"E"`, RulePhase, "/error_type"},
		{"turn complete", `"error_message":null`, `"error_message":"m"`, RulePhase, "/error_message"},
		{"turn complete", `"duration_ms":1234.5`, `"duration_ms":-1.0`, RuleRange, "/duration_ms"},
		{"intent_classified", `0.95`, `1.5`, RuleRange, "/confidence"},
		{"citation_found", `1.0`, `-0.5`, RuleRange, "/confidence"},
		{"plan_proposed", `"step_id":"s002",`, ``, RuleRequired, "/steps/1/step_id"},
		{"plan_proposed", `"description":"search",`, ``, RuleRequired, "/steps/0/description"},
		{"usage_observed", `"input_tokens":10`, `"input_tokens":-1`, RuleRange, "/input_tokens"},
		{"usage_observed", `5e-05`, `-1.0`, RuleRange, "/cost_usd"},
		{"turn_summary", `"tool_name":"search",`, ``, RuleRequired, "/tool_calls/0/tool_name"},
		{"turn_summary", `"call_id":"c1",`, ``, RuleRequired, "/tool_calls/0/call_id"},
		{"turn_summary", `412.125`, `-412.125`, RuleRange, "/tool_calls/0/duration_ms"},
		{"turn_summary", `"tokens_used":14`, `"tokens_used":-14`, RuleRange, "/tokens_used"},
		{"memory_event", `"kind":"added",`, ``, RuleRequired, "/kind"},
		{"memory_event", `"kind":"added"`, `"kind":"lost"`, RuleEnum, "/kind"},
		{"memory_event", `"item_count":2`, `"item_count":-2`, RuleRange, "/item_count"},
	} {
		text := line(c.line)
		require.Contains(t, text, c.old)
		bad := strings.Replace(text, c.old, c.new, 1)
		_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(bad))
		var rule *agentevents.InvariantError
		require.ErrorAs(t, err, &rule, bad)
		require.Equal(t, c.rule, rule.Rule, bad)
		require.Equal(t, c.pointer, rule.Pointer, bad)
		decodeOne(t, Options{}, bad) // otherwise it is read as far as it can be
		decodeOne(t, Options{Strict: true}, text)
	}
}

func TestBadLines(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{``, "an object"},
		{`[]`, "an object"},
		{`{}`, `"type" is missing`},
		{`{"type":""}`, `"type" is missing`},
		{`{"type":null}`, "a string"},
		{`{"type":"span"`, "',' or '}'"},
		{`{"type":"span"}{`, "end of text"},
		{`{"type":"span","type":"span"}`, "duplicate"},
		{`{"a":1,"a":1,"type":"span"}`, "duplicate"},
		{`{"a":1,"a":1,"type":"x"}`, "duplicate"},
		{`{"run_id":"r","run_id":"r","type":"x"}`, "duplicate"},
		{`{"timestamp":"1","type":"x"}`, "a number"},
		{`{"timestamp":null,"type":"x"}`, "a number"},
		{`{"timestamp":1e400,"type":"x"}`, "out of range"},
		{`{"timestamp":9999999999999999,"type":"x"}`, "out of range"},
		{`{"timestamp":999999999999,"type":"x"}`, "0 to 9999"},
		{`{"timestamp":-,"type":"x"}`, "a digit"},
		{`{"sequence":1.5,"type":"x"}`, "an integer"},
		{`{"sequence":9223372036854775808,"type":"x"}`, "out of range"},
		{`{"session_id":null,"type":"x"}`, "a string"},
		{`{"run_id":null,"type":"x"}`, "a string"},
		{`{"agent_id":1,"type":"x"}`, "a string"},
		{`{"content":null,"type":"text_delta"}`, "a string"},
		{`{"content":"a` + "\xff" + `","type":"text_delta"}`, "UTF-8"},
		{`{"content":"\ud800","type":"text_delta"}`, "surrogate"},
		{`{"subject":null,"type":"span"}`, "a string"},
		{`{"name":null,"type":"span"}`, "a string"},
		{`{"duration_ms":"1","type":"span"}`, "a number"},
		{`{"duration_ms":1e300,"type":"span"}`, "out of range"},
		{`{"attributes":null,"type":"span"}`, "an object"},
		{`{"attributes":[],"type":"span"}`, "an object"},
		{`{"subject":"turn","phase":"start","attributes":{"a":1,"a":2},"type":"span"}`, "duplicate"},
		{`{"subject":"turn","phase":"start","attributes":{"turn_number":1,"turn_number":2},"type":"span"}`, "duplicate"},
		{`{"subject":"turn","phase":"start","attributes":{"task":1,"task":2},"type":"span"}`, "duplicate"},
		{`{"subject":"turn","phase":"start","attributes":{"turn_number":1x},"type":"span"}`, "',' or '}'"},
		{`{"attributes":{"turn_number":1,"turn_number":2},"subject":"turn","phase":"start","type":"span"}`, "duplicate"},
		{`{"confidence":null,"type":"intent_classified"}`, "a number"},
		{`{"confidence":NaN,"type":"intent_classified"}`, "a number"},
		{`{"steps":null,"type":"plan_proposed"}`, "an array"},
		{`{"steps":[1],"type":"plan_proposed"}`, "an object"},
		{`{"steps":[{"step_id":"a","step_id":"a"}],"type":"plan_proposed"}`, "duplicate"},
		{`{"steps":[{"x":"a","x":"a"}],"type":"plan_proposed"}`, "duplicate"},
		{`{"steps":[{"step_id":"a"},],"type":"plan_proposed"}`, "a value"},
		{`{"verified":0,"type":"citation_found"}`, "true or false"},
		{`{"input_tokens":1.0,"type":"usage_observed"}`, "an integer"},
		{`{"tool_calls":[{"is_error":null}],"type":"turn_summary"}`, "true or false"},
		{`{"tool_calls":{},"type":"turn_summary"}`, "an array"},
		{`{"item_count":"1","type":"memory_event"}`, "an integer"},
		{`{"attributes":1,"type":"memory_event"}`, "an object"},
		{`{"arguments":"x","type":"tool_call_approval_required"}`, "an array"},
		{`{"kind":1,"type":"escalation_required"}`, "a string"},
		{`{"details":[],"type":"escalation_required"}`, "an object"},
		{`not json`, "an object"},
	} {
		for _, strict := range []bool{false, true} {
			events, err := NewDecoder(Options{Strict: strict}).Decode(nil, []byte(c.line))
			require.ErrorContains(t, err, c.want, c.line)
			require.Empty(t, events, c.line)
		}
		var le *agentevents.LineError
		for _, err := range agentevents.NewReader(strings.NewReader("\n"+c.line+"\n\n"), agentevents.ReaderOptions{Decoder: NewDecoder(Options{})}).All() {
			require.ErrorAs(t, err, &le)
			require.Equal(t, 2, le.Line)
		}
	}
	// Every beginning of a line is torn.
	for _, g := range goldens {
		for n := 1; n < len(g.line); n++ {
			for _, err := range agentevents.NewReader(strings.NewReader(g.line[:n]), agentevents.ReaderOptions{Decoder: NewDecoder(Options{})}).All() {
				require.ErrorIs(t, err, io.ErrUnexpectedEOF, g.line[:n])
			}
		}
	}
}

// Attributes of other types than the document gives them stay what they are.
func TestOddAttributes(t *testing.T) {
	for _, c := range []struct {
		line string
		want agentevents.Payload
	}{
		{spanLine("turn", "start", "turn.1", "null", "null", "null", `{"turn_number":"one"}`),
			&agentevents.TurnStarted{Name: "turn.1", Attributes: `{"turn_number":"one"}`}},
		{spanLine("turn", "start", "turn.1", "null", "null", "null", `{"turn_number":1.5,"a":1}`),
			&agentevents.TurnStarted{Name: "turn.1", Attributes: `{"turn_number":1.5,"a":1}`}},
		{spanLine("tool_call", "start", "x", "null", "null", "null", `{"call_id":"c"}`),
			&agentevents.SpanRecorded{Subject: "tool_call", Phase: "start", Name: "x", Attributes: `{"call_id":"c"}`}},
		{spanLine("tool_call", "start", "tool.x", "null", "null", "null", `{}`),
			&agentevents.ToolCalled{CallID: "a1b2c3d4e5f6", ToolID: "x"}},
		{spanLine("handoff", "start", "x", "null", "null", "null", `{"from_agent":"a"}`),
			&agentevents.SpanRecorded{Subject: "handoff", Phase: "start", Name: "x", Attributes: `{"from_agent":"a"}`}},
		{spanLine("step", "start", "step.s1", "null", "null", "null", `{}`), &agentevents.StepStarted{StepID: "s1", Name: "step.s1"}},
		{spanLine("step", "start", "work", "null", "null", "null", `{}`), &agentevents.StepStarted{StepID: "a1b2c3d4e5f6", Name: "work"}},
	} {
		require.Equal(t, c.want, decodeOne(t, testOptions, c.line).Payload, c.line)
	}
}

// Closing phases find what their start said by the span's id.
func TestSpansClose(t *testing.T) {
	at := func(line, span string) string { return strings.Replace(line, "a1b2c3d4e5f6", span, 1) }
	log := strings.Join([]string{
		at(spanLine("tool_call", "start", "tool.search", "null", "null", "null", `{"tool_name":"search","call_id":"search"}`), "aa"),
		at(spanLine("tool_call", "start", "tool.search", "null", "null", "null", `{"tool_name":"search","call_id":"search"}`), "bb"),
		at(spanLine("tool_call", "error", "x", "1.0", `"E"`, `"m"`, `{}`), "bb"),
		at(spanLine("tool_call", "complete", "tool.search", "1.0", "null", "null", `{"tool_name":"search","call_id":"search","result_summary":"","is_error":false,"arguments":[]}`), "aa"),
		at(spanLine("step", "start", "", "null", "null", "null", `{"step_id":"s1","description":""}`), "cc"),
		at(spanLine("step", "cancelled", "", "1.0", "null", "null", `{}`), "cc"),
		at(spanLine("subagent", "start", "", "null", "null", "null", `{"subagent_name":"helper","task":""}`), "dd"),
		at(spanLine("subagent", "start", "", "null", "null", "null", `{"subagent_name":"helper","task":""}`), "ee"),
		at(spanLine("subagent", "error", "", "1.0", `"E"`, `"m"`, `{"subagent_name":"helper"}`), "ee"),
		at(spanLine("subagent", "cancelled", "", "1.0", "null", "null", `{}`), "dd"),
		at(spanLine("handoff", "start", "", "null", "null", "null", `{"from_agent":"a","to_agent":"b","reason":""}`), "ff"),
		at(spanLine("handoff", "complete", "", "1.0", "null", "null", `{}`), "ff"),
	}, "\n")
	var events []agentevents.Event
	for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions), Verbatim: true}).All() {
		require.NoError(t, err)
		events = append(events, ev)
	}
	require.Equal(t, "search", events[0].Payload.(*agentevents.ToolCalled).CallID)
	require.Equal(t, "bb", events[1].Payload.(*agentevents.ToolCalled).CallID)
	require.Equal(t, &agentevents.ToolReturned{CallID: "bb", ToolID: "search", Status: agentevents.ToolError, Duration: ms(1000), Error: failure("E", "m")}, events[2].Payload)
	require.Equal(t, &agentevents.ToolReturned{CallID: "search", ToolID: "search", Status: agentevents.ToolOK, Duration: ms(1000)}, events[3].Payload)
	require.Equal(t, "s1", events[5].Payload.(*agentevents.StepEnded).StepID)
	require.Equal(t, "helper", events[6].AgentID)
	require.Empty(t, events[7].AgentID)
	require.Equal(t, "helper", events[7].Payload.(*agentevents.AgentStarted).Agent.V.AgentID)
	require.Empty(t, events[8].AgentID)
	require.Equal(t, "helper", events[9].AgentID)
	require.Equal(t, &agentevents.HandoffAccepted{From: ref("a"), To: ref("b")}, events[11].Payload)

	runs, err := agentevents.FoldAll(func(yield func(agentevents.Event, error) bool) {
		for _, ev := range events {
			if !yield(ev, nil) {
				return
			}
		}
	}, agentevents.FoldOptions{})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Empty(t, runs[0].Violations)
	require.False(t, runs[0].Handoffs[0].Open)

	// All of it comes back byte for byte.
	e := NewEncoder(encoderOptions)
	var out []byte
	for _, ev := range events {
		out, err = e.Append(out, ev)
		require.NoError(t, err)
	}
	require.Equal(t, log+"\n", string(out))
	// Without the lines the same is said.
	var plain []byte
	e = NewEncoder(encoderOptions)
	for _, ev := range decodeAll(t, log) {
		plain, err = e.Append(plain, ev)
		require.NoError(t, err)
	}
	again := decodeAll(t, string(plain))
	for i, ev := range decodeAll(t, log) {
		again[i].ID = ev.ID
		require.Equal(t, ev.Payload, again[i].Payload)
		require.Equal(t, ev.AgentID, again[i].AgentID)
	}
}

func decodeAll(t testing.TB, log string) (events []agentevents.Event) {
	t.Helper()
	for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions)}).All() {
		require.NoError(t, err)
		events = append(events, ev)
	}
	return events
}

// Events of the vocabulary get spans whose start and end belong together.
func TestSpanIDsAreMadeUp(t *testing.T) {
	at := func(n uint64, p agentevents.Payload) agentevents.Event {
		return agentevents.Event{ID: "e", Sequence: n, RunID: "r", AgentID: "a", Time: anchor, SchemaVersion: agentevents.SchemaVersion, Payload: p}
	}
	events := []agentevents.Event{
		at(0, &agentevents.AgentStarted{}),
		at(1, &agentevents.ToolCalled{CallID: "c", ToolID: "t"}),
		at(2, &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolOK, Result: `"text"`}),
		at(3, &agentevents.ToolCalled{CallID: "c", ToolID: "t"}),
		at(4, &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolForbidden}),
		at(5, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Usage: agentevents.Some(agentevents.Usage{InputTokens: 3, OutputTokens: 4})}),
	}
	e := NewEncoder(encoderOptions)
	var out []byte
	for _, ev := range events {
		var err error
		out, err = e.Append(out, ev)
		require.NoError(t, err)
	}
	back := decodeAll(t, string(out))
	require.Regexp(t, "^[0-9a-f]{12}$", back[1].SpanID)
	require.Equal(t, back[1].SpanID, back[2].SpanID)
	require.Equal(t, back[3].SpanID, back[4].SpanID)
	require.NotEqual(t, back[1].SpanID, back[3].SpanID)
	require.Equal(t, back[0].SpanID, back[5].SpanID)
	require.Equal(t, agentevents.JSON(`"text"`), back[2].Payload.(*agentevents.ToolReturned).Result)
	require.Empty(t, back[2].Payload.(*agentevents.ToolReturned).ResultSummary, "what stands for it is not taken for one")
	require.False(t, back[2].Payload.(*agentevents.ToolReturned).OneEvent)
	require.Equal(t, "forbidden", back[4].Payload.(*agentevents.ToolReturned).Error.V.Code)
	require.Equal(t, agentevents.JSON("7"), dialect.Unknown(&back[5], Name, "/attributes/tokens_used"))
	made := map[string]bool{}
	for _, l := range e.Losses() {
		if l.What == dialect.Made {
			made[l.Pointer] = true
		}
	}
	require.True(t, made["/spanId"] && made["/sessionId"])

	_, err := e.Append(nil, at(6, &agentevents.RunPaused{}))
	require.ErrorIs(t, err, dialect.ErrNoCounterpart)
	_, err = e.Append(nil, at(6, &agentevents.Unknown{Type: "span", Raw: `{}`}))
	require.ErrorIs(t, err, dialect.ErrNoCounterpart)
	_, err = e.Append(nil, at(6, &agentevents.Unknown{Type: "other", Raw: `[]`}))
	require.ErrorIs(t, err, dialect.ErrNoCounterpart)
	_, err = e.Append(nil, at(6, nil))
	require.Error(t, err)
	var rule *agentevents.InvariantError
	_, err = e.Append(nil, at(6, &agentevents.BudgetExceeded{Budget: "cost", Limit: math.Inf(1)}))
	require.ErrorAs(t, err, &rule)
	require.Equal(t, "/payload/limit", rule.Pointer)
	_, err = e.Append(nil, at(6, &agentevents.ToolCalled{CallID: "x", ToolID: "y", Arguments: `{`}))
	require.ErrorAs(t, err, &rule)
	require.Equal(t, agentevents.RuleFieldJSON, rule.Rule)
	ev := at(6, &agentevents.TextDelta{})
	ev.RunID = ""
	_, err = e.Append(nil, ev)
	require.ErrorAs(t, err, &rule)
	require.Equal(t, RuleRequired, rule.Rule)
	ev.RunID = "a\xff"
	_, err = e.Append(nil, ev)
	require.ErrorAs(t, err, &rule)
	require.Equal(t, agentevents.RuleFieldUTF8, rule.Rule)
}

func TestApprovalArguments(t *testing.T) {
	for _, c := range []struct {
		raw    agentevents.JSON
		want   string
		losses int
	}{
		{"", `[]`, 0},
		{`[]`, `[]`, 1},
		{`{}`, `[]`, 1},
		{`[["a","b"],["c","d"]]`, `[["a","b"],["c","d"]]`, 0},
		{`{"a":"b","n":[1, 2],"q\"":null}`, `[["a","b"],["n","[1,2]"],["q\"","null"]]`, 1},
		{`[["a"]]`, `[["arguments","[[\"a\"]]"]]`, 1},
		{`[["a","b","c"]]`, `[["arguments","[[\"a\",\"b\",\"c\"]]"]]`, 1},
		{`"x"`, `[["arguments","\"x\""]]`, 1},
	} {
		e := NewEncoder(EncoderOptions{})
		line, err := e.Append(nil, agentevents.Event{RunID: "r", Scope: agentevents.Scope{SessionID: "s"}, Payload: &agentevents.ApprovalRequested{ApprovalID: "c", CallID: "c", Arguments: c.raw}})
		require.NoError(t, err)
		require.Contains(t, string(line), `"arguments":`+c.want+`,"reason"`)
		require.Len(t, e.Losses(), c.losses, c.raw)
		decodeAll(t, string(line))
	}
}

func TestEventsOfALine(t *testing.T) {
	// The decoder does not keep the line.
	line := []byte(goldens[0].line)
	d := NewDecoder(testOptions)
	events, err := d.Decode(nil, line)
	require.NoError(t, err)
	clear(line)
	require.Equal(t, "turn.1", events[0].Payload.(*agentevents.TurnStarted).Name)
	events, err = d.End(events)
	require.NoError(t, err)
	require.Len(t, events, 1)
	out, err := NewEncoder(encoderOptions).End([]byte("x"))
	require.NoError(t, err)
	require.Equal(t, "x", string(out))
}

// sse frames lines as the document's server does.
func sse(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		typ, _ := typeOf(line)
		n := line[strings.Index(line, `"sequence":`)+len(`"sequence":`):]
		b.WriteString("event: " + typ + "\ndata: " + line + "\nid: " + n[:strings.IndexByte(n, ',')] + "\n\n")
	}
	return b.String()
}

func idFirst(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		b.WriteString("id: " + strconv.Itoa(i) + "\ndata: " + line + "\n\n")
	}
	return b.String()
}

func TestServerSentEvents(t *testing.T) {
	var lines []string
	for _, g := range goldens {
		if g.name != "a later subject" { // not for strict decoders
			lines = append(lines, strings.Replace(g.line, `"sequence":0`, `"sequence":`+strconv.Itoa(len(lines)), 1))
		}
	}
	want := decodeAll(t, strings.Join(lines, "\n"))
	log := sse(lines...)
	type way struct{ name, log string }
	ways := []way{
		{"as the server writes it", log},
		{"CRLF", strings.ReplaceAll(log, "\n", "\r\n")},
		{"CR", strings.ReplaceAll(log, "\n", "\r")},
		{"byte order mark", "\ufeff" + log},
		{"comments and retry", ": hello\nretry: 10\n" + strings.ReplaceAll(log, "data:", ":x\nretry\nfoo: bar\ndata:")},
		{"no blank after the colon", strings.NewReplacer("data: ", "data:", "event: ", "event:", "id: ", "id:").Replace(log)},
		{"data alone", "data: " + strings.Join(lines, "\n\ndata: ") + "\n\n"},
		{"no blank lines", strings.ReplaceAll(log, "\n\n", "\n")},
		{"id before data", strings.ReplaceAll(log, "event: ", "id\nevent: ")},
		{"id first", idFirst(lines)},
		{"split", strings.ReplaceAll(log, `,"run_id"`, "\ndata: ,\ndata:\ndata:\t\"run_id\"")},
		{"split and CR", strings.ReplaceAll(strings.ReplaceAll(log, `,"run_id"`, "\ndata: ,\ndata: \"run_id\""), "\n", "\r")},
		{"split after the first brace", strings.ReplaceAll(log, `{"timestamp"`, "{\ndata: \"timestamp\"")},
		{"an object alone on a line", strings.ReplaceAll(log, `:{"`, ":\ndata: {\"")},
	}
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			for _, strict := range []bool{false, true} {
				o := testOptions
				o.Strict = strict
				i := 0
				for ev, err := range agentevents.NewReader(strings.NewReader(w.log), agentevents.ReaderOptions{Decoder: NewDecoder(o)}).All() {
					require.NoError(t, err)
					ev.ID = want[i].ID // derived from the line
					require.Equal(t, want[i], ev)
					i++
				}
				require.Equal(t, len(want), i)
			}
		})
	}

	o := encoderOptions
	o.SSE = true
	e := NewEncoder(o)
	var out []byte
	for _, ev := range want {
		var err error
		out, err = e.Append(out, ev)
		require.NoError(t, err)
	}
	require.Equal(t, log, string(out))
	odd := encodeOne(t, o, agentevents.Event{RunID: "r", Payload: &agentevents.Unknown{Type: "a\nb", Raw: `{}`}})
	require.True(t, strings.HasPrefix(odd, `data: {"timestamp"`), odd)

	// Kept lines of frames are written back too.
	i := 0
	blank := strings.ReplaceAll(lines[0], `,"`, `, "`)
	for ev, err := range agentevents.NewReader(strings.NewReader("data: "+blank+"\n\n"), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions), Verbatim: true}).All() {
		require.NoError(t, err)
		require.Equal(t, blank+"\n", encodeOne(t, encoderOptions, ev))
		i++
	}
	require.Equal(t, 1, i)
	for ev, err := range agentevents.NewReader(strings.NewReader("data: "+strings.Replace(lines[0], `,"`, ",\r\"", 1)+"\rid: 0\n\n"), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions), Verbatim: true}).All() {
		if err == nil {
			require.Equal(t, lines[0]+"\n", encodeOne(t, encoderOptions, ev))
		}
	}
}

func TestTornFrames(t *testing.T) {
	a, b := strings.Replace(goldens[0].line, `,"run_id"`, "\ndata: ,\"run_id\"", 1), goldens[1].line
	read := func(log string) (events []agentevents.Event, errs []error) {
		for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions)}).All() {
			if err != nil {
				errs = append(errs, err)
			} else {
				events = append(events, ev)
			}
		}
		return events, errs
	}
	first, _, _ := strings.Cut(a, "\n")
	for _, log := range []string{
		"data: " + first + "\n\nevent: span\ndata: " + b + "\n\n",
		"data: " + first + "\n\ndata: " + b + "\n\n",
		"data: " + first + "\n\n" + b + "\n",
		"data: " + first + "\n\ndata: " + strings.Replace(b, `,"run_id"`, "\ndata: ,\"run_id\"", 1) + "\n\n",
		"data: " + first + "\r\revent: span\rdata: " + b + "\r\r",
	} {
		events, errs := read(log)
		if strings.Count(log, "data: ,") > 0 {
			// Nothing tells the rest of the first from the second: no event is
			// made of both.
			require.NotEmpty(t, errs, log)
			continue
		}
		require.Len(t, events, 1, log)
		require.Len(t, errs, 1, log)
		require.ErrorIs(t, errs[0], io.ErrUnexpectedEOF)
	}
	for _, log := range []string{
		"event: span", "event: span\n", "event: span\ndata:", "data: " + first + "\n", "data: " + first, "data: " + a[:len(a)-3], "data: {\ndata: \"x",
		"event: span\ndata: " + first + "\nid: 3\n\n",
	} {
		events, errs := read("data: " + b + "\n\n" + log)
		require.Len(t, events, 1, log)
		require.Len(t, errs, 1, log)
		require.ErrorIs(t, errs[0], io.ErrUnexpectedEOF, log)
		var le *agentevents.LineError
		require.ErrorAs(t, errs[0], &le)
		require.Greater(t, le.Line, 2)
	}
	// A newline in a text is not one between tokens.
	_, errs := read("data: {\"timestamp\":1,\ndata: \"x\": \"a\ndata: b\"}\n\n")
	require.NotEmpty(t, errs)

	// Errors say where in the line they are.
	_, errs = read("event: text_delta\ndata: {\"type\":\"text_delta\",\"content\":7}\nid: 1\n\n")
	require.Len(t, errs, 1)
	var le *agentevents.LineError
	require.ErrorAs(t, errs[0], &le)
	require.Equal(t, 2, le.Line)
	require.Equal(t, "/content", le.Pointer)
	require.Equal(t, len(`data: {"type":"text_delta","content":`), le.Column)

	strict := testOptions
	strict.Strict = true
	for _, c := range []struct{ log, pointer string }{
		{"event: text_delta\ndata: " + b + "\nid: 0\n\n", "/type"},
		{"event: span\ndata: " + b + "\nid: 1\n\n", "/sequence"},
	} {
		var rule *agentevents.InvariantError
		for _, err := range agentevents.NewReader(strings.NewReader(c.log), agentevents.ReaderOptions{Decoder: NewDecoder(strict)}).All() {
			if err != nil {
				require.ErrorAs(t, err, &rule)
			}
		}
		require.NotNil(t, rule)
		require.Equal(t, RuleFrame, rule.Rule)
		require.Equal(t, c.pointer, rule.Pointer)
	}
}

// A long frame is not held without end.
func TestFrameLimit(t *testing.T) {
	d := NewDecoder(Options{})
	_, err := d.Decode(nil, []byte("data: {"))
	require.NoError(t, err)
	piece := append([]byte("data: "), bytes.Repeat([]byte("[1],"), 1<<20)...)
	for range 8 {
		if _, err = d.Decode(nil, piece); err != nil {
			break
		}
	}
	require.Error(t, err)
	_, err = d.End(nil)
	require.NoError(t, err)
}

// Spans that never end are forgotten in the end, and what they remember with
// them.
func TestOpenSpansAreBounded(t *testing.T) {
	d, e := NewDecoder(testOptions), NewEncoder(encoderOptions)
	start := spanLine("tool_call", "start", "tool.x", "null", "null", "null", `{"tool_name":"x","call_id":"c0"}`)
	var out []byte
	for i := range 5 * maxOpen {
		events, err := d.Decode(nil, []byte(strings.NewReplacer("a1b2c3d4e5f6", "s"+strconv.Itoa(i), `"c0"`, `"c`+strconv.Itoa(i)+`"`).Replace(start)))
		require.NoError(t, err)
		out, err = e.Append(out[:0], events[0])
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(d.taken), 2*maxOpen)
	require.Equal(t, len(d.taken), len(d.open.young)+len(d.open.old))
	require.LessOrEqual(t, len(d.open.recent), maxRecent)
	require.LessOrEqual(t, len(e.open.young)+len(e.open.old), 2*maxOpen)
	// A call id that an open call has is not given to another one, however long ago.
	again := strings.Replace(strings.Replace(start, "a1b2c3d4e5f6", "again", 1), `"c0"`, `"c`+strconv.Itoa(4*maxOpen+3)+`"`, 1)
	events, err := d.Decode(nil, []byte(again))
	require.NoError(t, err)
	require.Equal(t, "again", events[0].Payload.(*agentevents.ToolCalled).CallID)
	end := spanLine("tool_call", "error", "", "1.0", "null", "null", `{}`)
	for _, i := range []int{5*maxOpen - 1, 4*maxOpen + 1} {
		events, err := d.Decode(nil, []byte(strings.Replace(end, "a1b2c3d4e5f6", "s"+strconv.Itoa(i), 1)))
		require.NoError(t, err)
		require.Equal(t, "c"+strconv.Itoa(i), events[0].Payload.(*agentevents.ToolReturned).CallID)
	}
}

// Every variant that seed 002 names has a line in testdata.
func TestVariants(t *testing.T) {
	text, err := os.ReadFile("../testdata/variants/kaos.jsonl")
	require.NoError(t, err)
	o := testOptions
	o.Strict = true
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		ev := decodeOne(t, o, strings.TrimSuffix(line, "\n"))
		require.NotContains(t, fmt.Sprintf("%T", ev.Payload), "Unknown")
		require.Equal(t, line, encodeOne(t, encoderOptions, ev))
		typ, err := typeOf(strings.TrimSuffix(line, "\n"))
		require.NoError(t, err)
		seen[typ] = true
	}
	require.Len(t, seen, 13)
}

// A result comes back as it was, with its summary or without.
func TestResults(t *testing.T) {
	long := strings.Repeat("0123456789", 19) + "123456789é0" // the 200th byte is in the middle of a character
	for _, c := range []struct {
		result           agentevents.JSON
		summary, written string
	}{
		{`{"hits":[1,"a\"b"]}`, "", `"result_summary":"{\"hits\":[1,\"a\\\"b\"]}","is_error":false,"result":{"hits":[1,"a\"b"]}}`},
		{`{"hits":3}`, "3 hits", `"result_summary":"3 hits","is_error":false,"result":{"hits":3}}`},
		{`"text"`, "", `"result_summary":"text","is_error":false,"result":"text"}`},
		{`""`, "", `"result_summary":"","is_error":false,"result":""}`},
		{`null`, "", `"result_summary":"null","is_error":false,"result":null}`},
		{agentevents.JSON(`"` + long + `"`), "", `"result_summary":"` + long[:199] + `","is_error":false,"result":"` + long + `"}`},
		{"", "3 hits", `"result_summary":"3 hits","is_error":false}`},
		{"", "", `"result_summary":"","is_error":false}`},
	} {
		p := &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolOK, OneEvent: true, Result: c.result, ResultSummary: c.summary}
		ev := agentevents.Event{RunID: "r", SpanID: "s", Scope: agentevents.Scope{SessionID: "s"}, Time: time.Unix(1, 0), Payload: p}
		e := NewEncoder(EncoderOptions{})
		line, err := e.Append(nil, ev)
		require.NoError(t, err)
		require.Contains(t, string(line), c.written)
		require.Empty(t, e.Losses())
		require.Equal(t, p, decodeAll(t, string(line))[0].Payload)
	}

	e := NewEncoder(EncoderOptions{})
	_, err := e.Append(nil, agentevents.Event{RunID: "r", Payload: &agentevents.ToolReturned{CallID: "c", ToolID: "t", OneEvent: true, Result: `"text"`, ResultSummary: "text"}})
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(e.Losses()), "/payload/resultSummary", "a summary that cannot be told from the one that is made up")
}

// What begins again before it has ended is the same span, so the call keeps its
// id; with a span of its own it cannot, and that is listed.
func TestBeginsAgain(t *testing.T) {
	e := NewEncoder(EncoderOptions{})
	call := agentevents.Event{RunID: "r", Payload: &agentevents.ToolCalled{CallID: "c1", ToolID: "t"}}
	var out []byte
	for i, span := range []string{"", "", "s2"} {
		call.Sequence, call.SpanID = uint64(i), span
		var err error
		out, err = e.Append(out, call)
		require.NoError(t, err)
	}
	back := decodeAll(t, string(out))
	require.Equal(t, back[0].SpanID, back[1].SpanID)
	require.Equal(t, "c1", back[1].Payload.(*agentevents.ToolCalled).CallID)
	require.Equal(t, "s2", back[2].Payload.(*agentevents.ToolCalled).CallID)
	require.Contains(t, fmt.Sprint(e.Losses()), "/payload/callId")
}
