package kaos

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// Attributes of a wrong type come back unchanged.
func TestOddAttributes(t *testing.T) {
	for _, c := range []struct {
		line string
		want agentevents.Payload
	}{
		{spanLine("turn", "start", "turn.1", "null", "null", "null", `{"turn_number":"one"}`),
			&agentevents.TurnStarted{Name: "turn.1", Attributes: `{"turn_number":"one"}`}},
		{spanLine("turn", "start", "turn.1", "null", "null", "null", `{"turn_number":1.5,"a":1}`),
			&agentevents.TurnStarted{Name: "turn.1", Attributes: `{"turn_number":1.5,"a":1}`}},
		{spanLine("turn", "start", "turn.1", "null", "null", "null", `{"turn_number":-1}`),
			&agentevents.TurnStarted{Name: "turn.1", Attributes: `{"turn_number":-1}`}},
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

// A closing phase takes from its start, found by span_id, what it leaves out.
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
	events := readVerbatim(t, log)
	require.Equal(t, "search", events[0].Payload.(*agentevents.ToolCalled).CallID)
	require.Equal(t, "bb", events[1].Payload.(*agentevents.ToolCalled).CallID)
	require.Equal(t, &agentevents.ToolReturned{CallID: "bb", ToolID: "search", Status: agentevents.ToolStatusError, Duration: ms(1000), Error: failure("E", "m")}, events[2].Payload)
	require.Equal(t, &agentevents.ToolReturned{CallID: "search", ToolID: "search", Status: agentevents.ToolStatusOK, Duration: ms(1000)}, events[3].Payload)
	require.Equal(t, "s1", events[5].Payload.(*agentevents.StepEnded).StepID)
	require.Equal(t, "helper", events[6].AgentID)
	require.Empty(t, events[7].AgentID)
	require.Equal(t, "helper", events[7].Payload.(*agentevents.AgentStarted).Agent.V.AgentID)
	require.Empty(t, events[8].AgentID)
	require.Equal(t, "helper", events[9].AgentID)
	require.Equal(t, &agentevents.HandoffAccepted{From: ref("a"), To: ref("b")}, events[11].Payload)

	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for _, ev := range events {
		fold.Apply(ev)
	}
	s := fold.Snapshot()
	require.Empty(t, s.Violations)
	require.False(t, s.Handoffs[0].Open)

	// Every line comes back byte for byte.
	e := NewEncoder(encoderOptions)
	var out []byte
	var err error
	for _, ev := range events {
		out, err = e.Append(out, ev)
		require.NoError(t, err)
	}
	require.Equal(t, log+"\n", string(out))
	// Without the lines the events say the same.
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

// A model call is found by its span, also one with the id of a tool call.
func TestModelCalls(t *testing.T) {
	at := func(n uint64, p agentevents.Payload) agentevents.Event {
		return agentevents.Event{ID: "e", Sequence: n, RunID: "r", AgentID: "a", Time: anchor, SchemaVersion: agentevents.SchemaVersion, Payload: p}
	}
	events := []agentevents.Event{
		at(0, &agentevents.ModelCalled{ModelCallID: "c", Provider: "openai", Model: "m", Operation: "chat", Request: `{"n":1}`, Attributes: `{"temperature":0.5}`}),
		at(1, &agentevents.ToolCalled{CallID: "c", ToolID: "t"}),
		at(2, &agentevents.ModelCalled{ModelCallID: "d", Model: "m"}),
		at(3, &agentevents.ModelReturned{ModelCallID: "c", Model: "m-1", Operation: "chat", Duration: ms(5000), Response: `["hello"]`}),
		at(4, &agentevents.ModelReturned{ModelCallID: "d", Error: failure("cancelled", "by the user")}),
		at(5, &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusOK}),
		at(6, &agentevents.ModelReturned{ModelCallID: "e", Request: `[]`, OneEvent: true}),
	}
	e := NewEncoder(encoderOptions)
	var out []byte
	for _, ev := range events {
		var err error
		out, err = e.Append(out, ev)
		require.NoError(t, err)
	}
	back := decodeAll(t, string(out))
	for i := range events {
		require.Equal(t, events[i].Payload, back[i].Payload)
	}
	require.Equal(t, back[0].SpanID, back[3].SpanID)
	require.Equal(t, back[2].SpanID, back[4].SpanID)
	require.NotEqual(t, back[0].SpanID, back[1].SpanID)
	for _, l := range losses(e) {
		require.Contains(t, []string{"dropped /id", "made up /spanId", "made up /sessionId"}, l)
	}
}

// Events without SpanID get spans whose start and end have one id.
func TestSpanIDsAreMadeUp(t *testing.T) {
	at := func(n uint64, p agentevents.Payload) agentevents.Event {
		return agentevents.Event{ID: "e", Sequence: n, RunID: "r", AgentID: "a", Time: anchor, SchemaVersion: agentevents.SchemaVersion, Payload: p}
	}
	events := []agentevents.Event{
		at(0, &agentevents.AgentStarted{}),
		at(1, &agentevents.ToolCalled{CallID: "c", ToolID: "t"}),
		at(2, &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusOK, Result: `"text"`}),
		at(3, &agentevents.ToolCalled{CallID: "c", ToolID: "t"}),
		at(4, &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusForbidden}),
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
	require.Equal(t, back[0].SpanID, back[6].SpanID)
	require.Equal(t, agentevents.Usage{InputTokens: 3, OutputTokens: 4}, back[5].Payload.(*agentevents.UsageObserved).Usage)
	require.Equal(t, agentevents.JSON(`"text"`), back[2].Payload.(*agentevents.ToolReturned).Result)
	require.Empty(t, back[2].Payload.(*agentevents.ToolReturned).ResultSummary, "what stands for it is not taken for one")
	require.False(t, back[2].Payload.(*agentevents.ToolReturned).OneEvent)
	require.Equal(t, "forbidden", back[4].Payload.(*agentevents.ToolReturned).Error.V.Code)
	require.Equal(t, agentevents.Some[int64](7), back[6].Payload.(*agentevents.AgentEnded).StatedTokens)
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
	var rule *agentevents.RuleError
	_, err = e.Append(nil, at(6, &agentevents.BudgetExceeded{Budget: "cost", Limit: math.Inf(1)}))
	require.ErrorAs(t, err, &rule)
	require.Equal(t, "/payload/limit", rule.Pointer)
	_, err = e.Append(nil, at(6, &agentevents.ToolCalled{CallID: "x", ToolID: "y", Arguments: `{`}))
	require.ErrorAs(t, err, &rule)
	require.Equal(t, agentevents.RuleFieldJSON, rule.Rule)
	_, err = e.Append(nil, at(6, &agentevents.ApprovalRequested{CallID: "x", Arguments: `{`}))
	require.ErrorAs(t, err, &rule)
	require.Equal(t, "/payload/arguments", rule.Pointer)
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

// The decoder and the encoder forget old spans that never end.
func TestOpenSpansAreBounded(t *testing.T) {
	d, e := NewDecoder(testOptions), NewEncoder(encoderOptions)
	start := spanLine("tool_call", "start", "tool.x", "null", "null", "null", `{"tool_name":"x","call_id":"c0"}`)
	var out []byte
	const maxOpen = dialect.MaxCalls / 2 // each span has two keys
	for i := range 5 * maxOpen {
		events, err := d.Decode(nil, []byte(strings.NewReplacer("a1b2c3d4e5f6", "s"+strconv.Itoa(i), `"c0"`, `"c`+strconv.Itoa(i)+`"`).Replace(start)))
		require.NoError(t, err)
		out, err = e.Append(out[:0], events[0])
		require.NoError(t, err)
	}
	for _, o := range []*opens{&d.open, &e.open, &e.check.open} {
		require.LessOrEqual(t, o.others.Len(), 2*dialect.MaxCalls)
		require.LessOrEqual(t, len(o.recent), maxRecent)
	}
	// A call does not get the id of a call that is open, not even of an old one.
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

// A result comes back unchanged, with or without its summary.
func TestResults(t *testing.T) {
	long := strings.Repeat("0123456789", 19) + "123456789é0" // byte 200 is inside a character
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
		p := &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusOK, OneEvent: true, Result: c.result, ResultSummary: c.summary}
		ev := agentevents.Event{RunID: "r", AgentID: "a", SpanID: "s", Scope: agentevents.Scope{SessionID: "s"}, Time: time.Unix(1, 0), Payload: p}
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

// A call that begins again before it has ended keeps its span and its id. With
// another SpanID it cannot, which is a loss.
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

// A duplicate attribute is an error, in any order of its values and of the members.
func TestDuplicateAttributes(t *testing.T) {
	for _, c := range []struct{ subject, attributes string }{
		{"tool_call", `"tool_name":1,"tool_name":"x"`}, {"tool_call", `"tool_name":"x","tool_name":1`}, {"tool_call", `"tool_name":1,"tool_name":2`},
		{"turn", `"turn_number":1.5,"turn_number":2`}, {"turn", `"turn_number":2,"turn_number":1.5`}, {"turn", `"x":1,"x":2`}, {"turn", `"task":"a","task":"b"`},
	} {
		line := spanLine(c.subject, "start", "n", "null", "null", "null", "{"+c.attributes+"}")
		for _, text := range []string{line, reversed(splitMembers(t, line))} {
			_, err := NewDecoder(testOptions).Decode(nil, []byte(text))
			require.ErrorContains(t, err, "duplicate", text)
		}
	}
}
