package kaos

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// spans returns the lines of spans: of each its subject, its phase, its span and its
// attributes, perhaps with other members.
func spans(log string) (lines []string) {
	for text := range strings.SplitSeq(log, "|") {
		word, n := strings.SplitN(text, " ", 5), len(lines)
		lines = append(lines, fmt.Sprintf(`{"timestamp":%d.5,"sequence":%d,"session_id":"s","run_id":"r","subject":%q,"phase":%q,"span_id":%q,"attributes":%s,%s"type":"span"}`,
			1000+n, n, word[0], word[1], word[2], word[3], strings.Join(word[4:], "")))
	}
	return lines
}

// TestLinesOfSpans compares the events of lines of spans.
func TestLinesOfSpans(t *testing.T) {
	for _, c := range []struct{ log, want string }{
		// The end of a handoff that is not accepted is its end.
		{`handoff start p {"from_agent":"a","to_agent":"b"}|handoff error p {}|handoff complete p {}`,
			`"span.recorded","agentId":"root","spanId":"p","payload":{"subject":"handoff","phase":"complete"}}`},
		{`handoff start p {"from_agent":"a","to_agent":"b"}|handoff cancelled p {}|handoff complete p {}`,
			`"span.recorded","agentId":"root","spanId":"p","payload":{"subject":"handoff","phase":"complete"}}`},
		{`handoff start p {"from_agent":"a","to_agent":"b"}|handoff progress p {}|handoff complete p {} "name":"x",`,
			`"handoff.accepted","agentId":"root","spanId":"p","payload":{"from":{"agentId":"a"},"to":{"agentId":"b"}},"kaos":{"name":"x"}}`},
		// An error may lack its type and message.
		{`tool_call error p {"tool_name":"x","call_id":"c"}`,
			`"agent.toolReturned","agentId":"root","spanId":"p","payload":{"callId":"c","toolId":"x","status":"error","error":{"message":""},"oneEvent":true}}`},
		// A model call is known by its id, or by its span if another one of the agent has the id.
		{`llm_call start p {"call_id":"c"}|llm_call start q {"call_id":"c"}`,
			`"model.called","agentId":"root","spanId":"q","payload":{"modelCallId":"q"},"kaos":{"/attributes/call_id":"c"}}/payload/modelCallId`},
		{`llm_call start p {"call_id":"c"}|llm_call start q {"call_id":"c"} "agent_id":"b",`,
			`"model.called","agentId":"b","spanId":"q","payload":{"modelCallId":"c"}}`},
		{`llm_call start p {"call_id":"c"}|llm_call complete p {"inputs":[1]} "name":"x",`,
			`"model.returned","agentId":"root","spanId":"p","payload":{"modelCallId":"c"},"kaos":{"name":"x","/attributes/inputs":[1]}}`},
		// Only a span that names its subject, and has an id, is open.
		{`tool_call start p {}|tool_call complete p {"tool_name":"x","call_id":"c"}`,
			`"agent.toolReturned","agentId":"root","spanId":"p","payload":{"callId":"c","toolId":"x","status":"ok","oneEvent":true}}/payload/status`},
		{`tool_call start  {"tool_name":"x","call_id":"c"}|tool_call complete  {"tool_name":"x","call_id":"c"}`,
			`"agent.toolReturned","agentId":"root","payload":{"callId":"c","toolId":"x","status":"ok","oneEvent":true}}/payload/status`},
		{`tool_call start p {"tool_name":"x","call_id":"c"}|tool_call complete p {}`,
			`"agent.toolReturned","agentId":"root","spanId":"p","payload":{"callId":"c","toolId":"x","status":"ok"}}/payload/status`},
		{`step start p {} "name":"step.",`,
			`"step.started","agentId":"root","spanId":"p","payload":{"stepId":"p","name":"step."}}/payload/stepId`},
		// Two agents of one name.
		{`subagent start p {"subagent_name":"a"}|subagent start q {"subagent_name":"a"} "name":"x",`,
			`"agent.started","spanId":"q","payload":{"agent":{"agentId":"a"}},"kaos":{"name":"x"}}`},
		{`subagent start p {"subagent_name":"a"}|subagent start  {"subagent_name":"a"}`,
			`"agent.started","agentId":"a","payload":{}}`},
		{`subagent start p {"subagent_name":"a"} "agent_id":"a",`,
			`"agent.started","agentId":"a","spanId":"p","payload":{},"kaos":{"agent_id":"a"}}`},
		{`subagent start p {}`,
			`"agent.started","spanId":"p","payload":{}}`},
	} {
		d := NewDecoder(testOptions)
		var events []agentevents.Event
		for _, line := range spans(c.log) {
			var err error
			events, err = d.Decode(events, []byte(line))
			require.NoError(t, err, line)
		}
		ev := events[len(events)-1]
		native, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		var made []string
		for _, l := range d.Losses() {
			if l.Kind != "" {
				made = append(made, l.Pointer)
			}
		}
		_, rest, _ := strings.Cut(string(native), `"type":`)
		require.Equal(t, c.want, strings.NewReplacer(`"runId":"r","sessionId":"s",`, "", `"schemaVersion":"1.0",`, "").Replace(rest)+strings.Join(made, " "), c.log)
	}
}

// TestVerbatimEndsOfChangedStarts writes ends that leave out members of their starts, which have
// other lines now.
func TestVerbatimEndsOfChangedStarts(t *testing.T) {
	for _, start := range []string{
		`step start p {"step_id":"s"}`, `tool_call start p {"tool_name":"x","call_id":"c"}`, `llm_call start p {"call_id":"c"}`,
		`subagent start p {"subagent_name":"a"}`, `handoff start p {"from_agent":"a","to_agent":"b"}`,
	} {
		subject, _, _ := strings.Cut(start, " ")
		lines := spans(start + "|" + subject + " complete p {}")
		events := readVerbatim(t, strings.Join(lines, "\n"))
		events[0].SessionID = "changed"
		e := NewEncoder(encoderOptions)
		_, err := e.Append(nil, events[0])
		require.NoError(t, err)
		out, err := e.Append(nil, events[1])
		require.NoError(t, err)
		require.Equal(t, lines[1]+"\n", string(out))
	}
}

// TestMadeUpSpans pairs starts and ends without spans by their subject.
func TestMadeUpSpans(t *testing.T) {
	to := func(to string) *agentevents.HandoffRequested {
		return &agentevents.HandoffRequested{From: ref("a"), To: ref(to)}
	}
	accepted := func(to string) *agentevents.HandoffAccepted {
		return &agentevents.HandoffAccepted{From: ref("a"), To: ref(to)}
	}
	record := func(name, phase string) *agentevents.SpanRecorded {
		return &agentevents.SpanRecorded{Subject: "judge", Phase: phase, Name: name}
	}
	turn := agentevents.Some[int]
	for _, pairs := range [][]agentevents.Payload{
		{to("b"), to("c"), accepted("b"), accepted("c")},
		{record("x", "start"), record("y", "start"), record("x", "complete"), record("y", "error")},
		{&agentevents.TurnStarted{Turn: turn(1)}, &agentevents.TurnStarted{}, &agentevents.TurnEnded{Turn: turn(1)}, &agentevents.TurnEnded{}},
		{&agentevents.StepStarted{StepID: "1"}, &agentevents.StepStarted{StepID: "2"}, &agentevents.StepEnded{StepID: "1"}, &agentevents.StepEnded{StepID: "2"}},
	} {
		e, out := NewEncoder(encoderOptions), []byte(nil)
		for i, p := range pairs {
			ev := native(p)
			ev.SpanID, ev.Sequence = "", uint64(i)
			var err error
			out, err = e.Append(out, ev)
			require.NoError(t, err)
		}
		back := decodeAll(t, string(out))
		require.NotEqual(t, back[0].SpanID, back[1].SpanID, string(out))
		require.Equal(t, []string{back[0].SpanID, back[1].SpanID}, []string{back[2].SpanID, back[3].SpanID}, string(out))
	}
}
