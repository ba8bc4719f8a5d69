package kaos

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// The turn of seed 002's diagram folds to the same snapshot whether its summary
// comes before or after its end.
func TestFold(t *testing.T) {
	span := func(subject, phase, id, name, duration, attributes string) string {
		return `"subject":"` + subject + `","phase":"` + phase + `","span_id":"` + id + `","parent_span_id":null,"name":"` + name +
			`","duration_ms":` + duration + `,"error_type":null,"error_message":null,"attributes":` + attributes + tail
	}
	lines := []string{
		span("turn", "start", "0a", "turn.1", "null", `{"turn_number":1}`),
		`"intent":"research","confidence":0.9,"reasoning":"","type":"intent_classified"}`,
		`"input_tokens":3,"output_tokens":2,"total_tokens":5,"cost_usd":0.5,"source":"classify","type":"usage_observed"}`,
		`"steps":[{"step_id":"s001","description":"search","tool_name":"search"}],"strategy":"direct","type":"plan_proposed"}`,
		span("step", "start", "0b", "step.s001", "null", `{"step_id":"s001","description":"search"}`),
		`"call_id":"c1","content":"{\"q\":\"x\"}","type":"tool_call_args_delta"}`,
		span("tool_call", "start", "0c", "tool.search", "null", `{"tool_name":"search","call_id":"c1","arguments":[["q","x"]]}`),
		span("tool_call", "complete", "0c", "tool.search", "250.5", `{"tool_name":"search","call_id":"c1","result_summary":"3 hits","is_error":false}`),
		span("tool_call", "start", "0d", "tool.search", "null", `{"tool_name":"search","call_id":"c2","arguments":[]}`),
		span("tool_call", "cancelled", "0d", "tool.search", "10.0", `{}`),
		`"claim":"c","source_uri":"https://example.com","confidence":0.8,"verified":true,"type":"citation_found"}`,
		span("subagent", "start", "0e", "", "null", `{"subagent_name":"reader","task":"read"}`),
		span("subagent", "complete", "0e", "", "90.0", `{"subagent_name":"reader","result_summary":"read","tokens_used":100}`),
		span("step", "complete", "0b", "step.s001", "400.0", `{"step_id":"s001","result_summary":"done","is_error":false}`),
		`"input_tokens":30,"output_tokens":20,"total_tokens":50,"cost_usd":1.5,"source":"respond","type":"usage_observed"}`,
		`"text":"answer","intent":"research","tool_calls":[{"tool_name":"search","call_id":"c1","is_error":false,"duration_ms":250.5,"cost_usd":0.0,"input_tokens":0,"output_tokens":0}],"tokens_used":55,"cost_usd":2.0,"input_tokens":33,"output_tokens":22,"type":"turn_summary"}`,
		span("turn", "complete", "0a", "turn.1", "1500.0", `{"turn_number":1}`),
		`"kind":"persisted","section":"facts","item_count":1,"attributes":{},"type":"memory_event"}`,
		span("llm_call", "start", "0f", "llm", "null", `{"call_type":"chat","inputs":"[]"}`),
		span("llm_call", "progress", "0f", "llm", "null", `{"retry_attempt":1,"retry_error":"429"}`),
		span("llm_call", "complete", "0f", "llm", "80.0", `{"call_type":"chat","inputs":"[]","input_tokens":30,"output_tokens":20,"total_tokens":50,"cost_usd":1.5,"model":"m-1"}`),
		span("llm_call", "complete", "10", "llm", "40.0", `{"call_type":"chat","inputs":"[]"}`),
	}
	fold := func(order []int) *agentevents.RunSnapshot {
		var log strings.Builder
		for _, i := range order {
			log.WriteString(head + lines[i] + "\n")
		}
		folded, err := agentevents.FoldLog(agentevents.NewReader(strings.NewReader(log.String()), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions)}), agentevents.FoldOptions{})
		require.NoError(t, err)
		runs := slices.Collect(folded.Drain())
		require.Len(t, runs, 1)
		return runs[0]
	}
	before := make([]int, len(lines))
	for i := range before {
		before[i] = i
	}
	after := append([]int{}, before...)
	after[15], after[16] = 16, 15
	for _, order := range [][]int{before, after} {
		s := fold(order)
		require.Empty(t, s.Violations)
		require.Empty(t, s.Unknown)
		require.Len(t, s.Agents, 2)
		require.Equal(t, Root, s.Agents["reader"].ParentAgentID)
		require.Equal(t, "read", s.Agents["reader"].Result)
		require.Len(t, s.Turns, 1)
		require.Equal(t, "answer", s.Turns[0].Text)
		require.Equal(t, 1500*time.Millisecond, s.Turns[0].Duration.V)
		require.False(t, s.Turns[0].EndedAt.IsZero())
		require.Len(t, s.Steps, 1)
		require.Empty(t, s.OpenModelCalls)
		require.Equal(t, map[string]agentevents.Usage{"m-1": {}}, s.Usage.Models)
		require.Equal(t, int64(33), s.Usage.Usage.InputTokens, "usage_observed has the tokens of every model call")
		require.Equal(t, int64(55), s.Usage.Usage.TotalTokens.V)
		require.Equal(t, 2.0, s.Usage.CostUSD.V)
	}
}
