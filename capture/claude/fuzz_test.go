package claude

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

// FuzzDecoder checks that no input makes the decoder panic, and that its events pass
// checkLog and fold.
func FuzzDecoder(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*.stream.jsonl")
	require.NoError(f, err)
	for _, input := range inputs {
		stream, err := os.ReadFile(input)
		require.NoError(f, err)
		f.Add(string(stream))
	}
	for _, lines := range [][]string{
		{initLine("s1"), hello, success, initLine("s2"), hello, success},
		{hello, block("m1", callBlock("c1", "Task", `{"run_in_background":true}`)), block("m1", callBlock("c2", "Agent", `{}`), parent("c1")), success, resultLine("c2", `"x"`)},
		{initLine("s1"), `{"type":"system","subtype":"task_started","task_id":"t","subagent_type":"x"}`, success, `{"type":"system","subtype":"task_notification","task_id":"t","status":"failed"}`},
		{initLine("s1"), block("m1", `{"type":"text","text":"a"}`, `,"uuid":"u"`), block("m2", `{"type":"text","text":"b"}`, `,"supersedes":["u"]`), `{"type":"conversation_reset"}`},
		{`{"type":"user","message":{"content":"x"}}`, `{"type":"stream_event","event":{"type":"message_start","message":{"id":"m"}}}`, `{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text"}}}`, `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}}`},
		{"plain text", `{"type":"result","subtype":"success","permission_denials":[{"tool_use_id":"c"}],"modelUsage":{"m":{"costUSD":0.1}},"total_cost_usd":0.1}`},
	} {
		f.Add(strings.Join(lines, "\n"))
	}
	f.Fuzz(func(t *testing.T, stream string) {
		events, _ := decode(t, Options{}, stream)
		fold(t, events)
		again, _ := decode(t, Options{}, stream)
		require.Equal(t, len(events), len(again))
		for i := range events {
			a, err := events[i].AppendJSON(nil)
			require.NoError(t, err)
			b, err := again[i].AppendJSON(nil)
			require.NoError(t, err)
			require.Equal(t, string(a), string(b))
		}
		without, _ := decode(t, Options{NoTransitions: true}, stream)
		require.Equal(t, len(events)-len(eventtest.Payloads[*agentevents.AgentTransition](events)), len(without))
	})
}

// anyLines are the lines that FuzzOrder puts into any order. They share few ids, so
// that they refer to each other.
func anyLines() []string {
	lines := []string{
		"plain text", initLine("s1"), initLine("s2"), success, hello,
		`{"type":"result","subtype":"error_during_execution","is_error":true,"permission_denials":[{"tool_use_id":"c1"}],"total_cost_usd":0.25,"modelUsage":{"m":{"costUSD":0.25}}}`,
		`{"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.5,"modelUsage":{"m":{"costUSD":0.5}}}`,
		`{"type":"user","message":{"content":"prompt"}}`,
		`{"type":"user","uuid":"u1","message":{"content":"replayed"}}`,
		`{"type":"user","uuid":"u2","message":{"content":[{"type":"text","text":"to a sub-agent"}]},"parent_tool_use_id":"c1"}`,
		`{"type":"system","subtype":"task_notification","task_id":"t1","tool_use_id":"c1","status":"completed"}`,
		`{"type":"system","subtype":"task_notification","task_id":"t1","status":"stopped"}`,
		`{"type":"system","subtype":"task_updated","task_id":"t1","patch":{"is_backgrounded":true}}`,
		`{"type":"system","subtype":"compact_boundary"}`, `{"type":"system","subtype":"api_retry"}`, `{"type":"conversation_reset"}`,
		`{"type":"system","subtype":"model_refusal_fallback","retracted_message_uuids":["u1","u2","u-hello"]}`,
		`{"type":"tool_progress","tool_use_id":"c1","elapsed_time_seconds":1}`, `{"type":"odd","parent_tool_use_id":"c1"}`,
	}
	for _, from := range []string{"", parent("c1"), parent("c2"), `,"agent_id":"t1"`} {
		for _, b := range []string{
			`{"type":"text","text":"x"}`, `{"type":"thinking","thinking":"x"}`, `{"type":"odd"}`,
			callBlock("c1", "Task", `{"subagent_type":"a","prompt":"p"}`), callBlock("c2", "Agent", `{"run_in_background":true}`),
			callBlock("c3", "Bash", `{"run_in_background":true}`), callBlock("c4", "Bash", `{}`),
		} {
			lines = append(lines, block("m1", b, from), block("m2", b, from))
		}
		lines = append(lines, `{"type":"assistant","message":{"id":"m1","model":"a","content":[],"usage":{"input_tokens":1,"output_tokens":2}}`+from+`}`)
		for _, id := range []string{"c1", "c2", "c3", "c4", "c5"} {
			lines = append(lines, resultLine(id, `"x"`, from), resultLine(id, `[]`, from, `,"tool_use_result":{"status":"async_launched"}`))
		}
		lines = append(lines, `{"type":"system","subtype":"task_started","task_id":"t1","tool_use_id":"c1","task_type":"local_agent"`+from+`}`,
			`{"type":"system","subtype":"task_started","task_id":"t1","subagent_type":"b","is_backgrounded":true`+from+`}`)
		for _, event := range []string{
			`{"type":"message_start","message":{"id":"m1"}}`, `{"type":"message_start","message":{"id":"m2"}}`, `{"type":"message_stop"}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text"}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"thinking"}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c1"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"x"}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"x"}}`,
			`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","usage":{"output_tokens":3}}`,
		} {
			lines = append(lines, `{"type":"stream_event","event":`+event+from+`}`)
		}
	}
	return lines
}

// checkOrder checks the log of the lines that order picks.
func checkOrder(t *testing.T, lines []string, order []byte) {
	var b strings.Builder
	for _, n := range order {
		b.WriteString(lines[int(n)%len(lines)])
		b.WriteByte('\n')
	}
	events, _ := decode(t, Options{}, b.String())
	fold(t, events)
	emitAgain(t, events)
}

// FuzzOrder checks that the lines of a stream make a legal log in any order.
func FuzzOrder(f *testing.F) {
	lines := anyLines()
	require.Less(f, len(lines), 256)
	f.Add([]byte{1, 4, 3})
	f.Fuzz(func(t *testing.T, order []byte) {
		checkOrder(t, lines, order[:min(len(order), 500)])
	})
}

func TestAnyOrder(t *testing.T) {
	lines := anyLines()
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		order := make([]byte, 1+r.IntN(120))
		for i := range order {
			order[i] = byte(r.IntN(len(lines)))
		}
		checkOrder(t, lines, order)
	}
}
