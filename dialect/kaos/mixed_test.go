package kaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/readback"
)

// TestMixedSpans writes events of few spans, calls and agents in any order, with any of their facts
// missing and with extra members that no reader puts there. The losses are the differences between
// them and the events that come back.
func TestMixedSpans(t *testing.T) {
	seeds := effort.Of[uint64](100, 1000, 20_000)
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 0))
		events := make([]agentevents.Event, 12)
		for i := range events {
			events[i] = mixed(r)
			events[i].ID, events[i].Sequence, events[i].Time = fmt.Sprint("e", i), uint64(i), time.Unix(int64(i), 0).UTC()
		}
		trip := &readback.Trip{Ignore: []string{"/kaos/~1timestamp", "/kaos/sequence"}}
		for _, problem := range trip.Problems(events, NewEncoder(EncoderOptions{}), NewDecoder(Options{})) {
			t.Errorf("%d: %s\n%s", seed, problem, trip.Text)
		}
	}
}

// The figures of a model call stand in its attributes, and a name that the agent of a start
// without an id gets stands on its later lines.
func TestNamesAndFigures(t *testing.T) {
	usage := agentevents.Some(agentevents.Usage{InputTokens: 2, OutputTokens: 1})
	events := []agentevents.Event{
		{SpanID: "p", Payload: &agentevents.AgentStarted{}},
		{ParentSpanID: "p", Payload: &agentevents.TextDelta{Delta: "a"}},
		{ParentSpanID: "p", SpanID: "q", AgentID: "coder", Payload: &agentevents.ModelCalled{ModelCallID: "m"}},
		{ParentSpanID: "p", Payload: &agentevents.TextDelta{Delta: "b"}},
		{SpanID: "q", AgentID: "coder", Payload: &agentevents.ModelReturned{ModelCallID: "m", Usage: usage, CostUSD: agentevents.Some(0.5)}},
		{AgentID: "coder", Payload: &agentevents.ClarificationRequested{InterruptID: "i", Questions: []agentevents.Question{{ID: "i", Question: "x"}, {ID: "j", Question: "y"}}}},
	}
	for i := range events {
		events[i].RunID, events[i].SessionID, events[i].Sequence = "r", "s", uint64(i)
		events[i].SchemaVersion, events[i].Time = agentevents.SchemaVersion, time.Unix(int64(i), 0).UTC()
	}
	trip := &readback.Trip{Ignore: []string{"/kaos/~1timestamp"}}
	require.Empty(t, trip.Problems(events, NewEncoder(EncoderOptions{}), NewDecoder(Options{})))
	lines := strings.Split(string(trip.Text), "\n")
	for i, has := range []string{`"name":"subagent."`, `"agent_id":"p"`, `"agent_id":"coder"`, `"agent_id":"coder"`,
		`"input_tokens":2,"output_tokens":1,"total_tokens":3,"cost_usd":0.5`, `"reason":"x\ny"`} {
		require.Contains(t, lines[i], has)
	}
}

// mixed returns an event.
func mixed(r *rand.Rand) agentevents.Event {
	one := func(words ...string) string { return words[r.IntN(len(words))] }
	some := func() bool { return r.IntN(3) == 0 }
	agent := func() string { return one("a", "a", "b", "", Root, "root'") }
	ev := agentevents.Event{
		SchemaVersion: agentevents.SchemaVersion, Scope: agentevents.Scope{SessionID: "s"}, RunID: one("r", "r", "r", "q"),
		AgentID: agent(), SpanID: one("p", "q", "c", "", ""), ParentSpanID: one("", "", "", "p"),
	}
	if ev.AgentID == "" && some() {
		ev.NodeID, ev.NodeRunID = one("n", ""), one("n-1", "n-2", "")
	}
	id, tool := one("c", "c", "d", "q", ""), one("x", "x", "")
	var failure agentevents.Opt[agentevents.ErrorInfo]
	if some() {
		failure = agentevents.Some(agentevents.ErrorInfo{Code: one("E", "cancelled", ""), Message: one("m", "")})
	}
	var tokens agentevents.Opt[int64]
	if some() {
		tokens = agentevents.Some[int64](1)
	}
	var turn agentevents.Opt[int]
	if some() {
		turn = agentevents.Some(1)
	}
	text := agentevents.JSON(one("", `"x"`, "{}", `{"a":1}`))
	from, to := agentevents.AgentRef{AgentID: agent()}, agentevents.AgentRef{AgentID: agent()}
	usage := agentevents.Usage{InputTokens: int64(r.IntN(3)), OutputTokens: 1}
	var used agentevents.Opt[agentevents.Usage]
	if some() {
		used = agentevents.Some(usage)
	}
	list := []agentevents.Payload{
		&agentevents.TurnStarted{Turn: turn, Name: tool, Attributes: text},
		&agentevents.TurnEnded{Turn: turn, Name: tool, Error: failure},
		&agentevents.StepStarted{StepID: id, Name: one("", "step.c", "n")},
		&agentevents.StepEnded{StepID: id, Name: one("", "step.c", "n"), ResultSummary: one("", "m"), Error: failure},
		&agentevents.ToolCalled{CallID: id, ToolID: tool, Arguments: text, Attributes: text},
		&agentevents.ToolReturned{CallID: id, ToolID: tool, Arguments: text, Result: text, ResultSummary: one("", "x", "m"), Error: failure, OneEvent: some(),
			Status: agentevents.ToolStatus(one("ok", "error", "cancelled", "interrupted", "forbidden"))},
		&agentevents.ModelCalled{ModelCallID: id, Model: tool, Request: text},
		&agentevents.ModelReturned{ModelCallID: id, Model: tool, Request: text, Error: failure, OneEvent: some(), Usage: used},
		&agentevents.AgentStarted{Task: tool, Agent: agentevents.Opt[agentevents.AgentRef]{OK: some(), V: from}},
		&agentevents.AgentEnded{Result: tool, Error: failure, Outcome: agentevents.AgentOutcome(one("", "aborted")), Usage: used},
		&agentevents.HandoffRequested{From: from, To: to, Reason: tool},
		&agentevents.HandoffAccepted{From: from, To: to},
		&agentevents.SpanRecorded{Subject: one(subjects...), Phase: one(phases...), Name: tool, Attributes: text},
		&agentevents.TextDelta{BlockID: id, Delta: "t"},
		&agentevents.TextCompleted{BlockID: id, Text: "t"},
		&agentevents.UsageObserved{Usage: usage},
		&agentevents.NodeFailed{Error: failure.V},
		&agentevents.ApprovalRequested{ApprovalID: one("c", "r", "x"), CallID: id, ToolID: tool, Arguments: text},
		&agentevents.ClarificationRequested{InterruptID: one("r", "x", ""), Questions: make([]agentevents.Question, r.IntN(3))},
		&agentevents.ClarificationRequested{InterruptID: id, Questions: []agentevents.Question{{ID: id, Question: "q", Schema: text}}},
		&agentevents.MemoryChanged{Change: agentevents.MemoryChange(one("added", "summarized")), Attributes: agentevents.JSON(one("", `{"tokens_before":1}`, `{"tokens_after":"1"}`))},
		&agentevents.ContextCompacted{TokensBefore: tokens, Trigger: tool},
		&agentevents.PlanProposed{Steps: make([]agentevents.PlanStep, r.IntN(2))},
		&agentevents.TurnSummarized{ToolCalls: make([]agentevents.ToolCallSummary, r.IntN(2)), Usage: usage},
		&agentevents.AgentReasoned{BlockID: id, Reasoning: tool},
		&agentevents.Unknown{Type: agentevents.Kind(one("kaos:x", "x", "span", "kaos:")), Raw: text},
	}
	ev.Payload = list[r.IntN(len(list))]
	switch ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		ev.ParentAgentID = agent()
	}
	if r.IntN(4) == 0 {
		name := one("call_id", "/attributes/call_id", "name", "phase", "agent_id", "/attributes/subagent_name", "subject", "duration_ms", "error_type", "resume_token",
			"escalation_id", "run_state_ref", "details", "section", "item_count", "kind", "/attributes/inputs", "/attributes/arguments", "/attributes/is_error",
			"/attributes/total_tokens", "/attributes/cost_usd", "/attributes/tokens_used", "parent_span_id", "/attributes/tokens_before", "/attributes/turn_number",
			"/attributes/step_id", "/attributes/tool_name", "late", "reason", "arguments", "span_id", "/attributes/result_summary", "/attributes/result")
		_ = ev.SetExtra(string(Name), agentevents.JSON(`{"`+name+`":`+one(`"k"`, "7", "[true]", `{"k":1}`)+`}`))
	}
	return ev
}
