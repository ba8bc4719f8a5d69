package multiagent

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// The line's spelling of a field is not written once the field is cleared.
func TestClearedFields(t *testing.T) {
	for _, c := range []struct {
		typ, payload string
		clear        func(p agentevents.Payload)
		want         string
	}{
		{"tool.call.completed", `{"callId":"c","toolId":"x","status":"ok","error":"secret"}`,
			func(p agentevents.Payload) {
				p.(*agentevents.ToolReturned).Error = agentevents.Opt[agentevents.ErrorInfo]{}
			}, `{"callId":"c","toolId":"x","status":"ok"}`},
		{"agent.spawned", `{"agentTask":"t","agent":"coder"}`,
			func(p agentevents.Payload) {
				p.(*agentevents.AgentStarted).Agent = agentevents.Opt[agentevents.AgentRef]{}
			}, `{"agentTask":"t"}`},
		{"agent.message.created", `{"messageId":"m","from":"a","message":"hi","ts":1}`,
			func(p agentevents.Payload) {
				p.(*agentevents.MessageCreated).Message.Content = `{"redacted":true}`
			}, `{"messageId":"m","from":"a","content":{"redacted":true},"ts":1}`},
	} {
		events, err := NewDecoder(Options{}).Decode(nil, []byte(docLine(c.typ, c.payload)))
		require.NoError(t, err)
		line, err := NewEncoder(EncoderOptions{}).Append(nil, events[0])
		require.NoError(t, err)
		require.Equal(t, docLine(c.typ, c.payload)+"\n", string(line))
		c.clear(events[0].Payload)
		e := NewEncoder(EncoderOptions{})
		line, err = e.Append(nil, events[0])
		require.NoError(t, err)
		require.Equal(t, docLine(c.typ, c.want)+"\n", string(line))
		back, err := NewDecoder(Options{}).Decode(nil, line)
		require.NoError(t, err)
		require.Equal(t, events[0].Payload, back[0].Payload)
		for _, l := range e.Losses() {
			require.Equal(t, dialect.Dropped, l.What)
		}
	}
	// The payload names an agent whose name readers do not take for an agent.
	events, err := NewDecoder(Options{}).Decode(nil, []byte(docLine("agent.completed", `{}`)))
	require.NoError(t, err)
	events[0].AgentID = "system"
	line, err := NewEncoder(EncoderOptions{}).Append(nil, events[0])
	require.NoError(t, err)
	back, err := NewDecoder(Options{}).Decode(nil, line)
	require.NoError(t, err)
	require.Equal(t, "system", back[0].AgentID, string(line))
}

// If the line had two spellings of a field, and the field is cleared, it does not get
// the second value.
func TestClearedFieldsWithTwoSpellings(t *testing.T) {
	for _, c := range []struct {
		typ, payload string
		clear        func(p agentevents.Payload)
		want, loss   string
	}{
		{"tool.call.started", `{"callId":"c","toolId":"x","arguments":{"a":1},"input":{"b":2}}`,
			func(p agentevents.Payload) { p.(*agentevents.ToolCalled).Arguments = "" }, `{"callId":"c","toolId":"x"}`, "input"},
		{"tool.call.started", `{"callId":"c","toolId":"x","input":{"b":2},"arguments":{"a":1}}`,
			func(p agentevents.Payload) { p.(*agentevents.ToolCalled).Arguments = "" }, `{"callId":"c","toolId":"x"}`, "arguments"},
		{"handoff.requested", `{"from":"a","to":"b","fromAgent":{"agentId":"c"},"toAgent":7}`,
			func(p agentevents.Payload) { p.(*agentevents.HandoffRequested).From = agentevents.AgentRef{} }, `{"to":"b","toAgent":7}`, "fromAgent"},
		{"agent.message.created", `{"messageId":"m","from":"a","content":"x","ts":1,"message":"y"}`,
			func(p agentevents.Payload) { p.(*agentevents.MessageCreated).Message.Content = "" }, `{"messageId":"m","from":"a","ts":1}`, "message"},
		{"agent.message.created", `{"message":{"messageId":"m","from":"a","content":"x","ts":1,"message":"y"},"text":"z"}`,
			func(p agentevents.Payload) { p.(*agentevents.MessageCreated).Message.Content = "" }, `{"message":{"messageId":"m","from":"a","ts":1,"message":"y"}}`, "text"},
	} {
		line := docLine(c.typ, c.payload)
		ev := decode(t, Options{}, line)[0]
		out, losses := encode(t, ev)
		require.Equal(t, line, out)
		require.Empty(t, losses)
		c.clear(ev.Payload)
		out, losses = encode(t, ev)
		require.Equal(t, docLine(c.typ, c.want), out)
		require.Contains(t, told(losses), "dropped /multiagent/~1payload~1"+c.loss)
	}
}

// Extra members that are not written back are losses.
func TestKeptMembersThatAreLost(t *testing.T) {
	odd := event(&agentevents.SessionStarted{})
	for _, extra := range []agentevents.JSON{`["x"]`, `1`, `"x"`} {
		require.NoError(t, odd.SetExtra(string(Name), extra))
		_, losses := encode(t, odd)
		require.Contains(t, told(losses), "altered /multiagent")
	}

	ev := decode(t, Options{}, docLine("session.started", `{"phase":"planning"}`))[0]
	ev.WorkflowID = "w"
	out, losses := encode(t, ev)
	require.Equal(t, "planning", decode(t, Options{}, out)[0].Phase)
	require.Equal(t, []string{"dropped /multiagent/~1payload~1phase", "made up /phase"}, told(losses))

	ev.Phase = "audit"
	out, losses = encode(t, ev)
	require.Equal(t, "audit", decode(t, Options{}, out)[0].Phase)
	require.Equal(t, []string{"dropped /multiagent/~1payload~1phase"}, told(losses))

	ev = decode(t, Options{}, docLine("session.started", `{"phase":1}`))[0]
	ev.WorkflowID = "w"
	_, losses = encode(t, ev)
	require.Empty(t, losses)
}

// Readers make up values that events lack, and the encoder lists them.
func TestLossesOfOddEvents(t *testing.T) {
	out, losses := encode(t, event(&agentevents.AgentEnded{ModelUsage: map[string]agentevents.Usage{}}, forAgent("planner", "")))
	require.NotContains(t, told(losses), "dropped /payload/modelUsage")
	require.NotNil(t, decode(t, Options{}, out)[0].Payload.(*agentevents.AgentEnded).ModelUsage)

	out, losses = encode(t, event(&agentevents.ToolReturned{ToolID: "x", Status: agentevents.ToolStatusOK}))
	require.True(t, decode(t, Options{}, out)[0].Payload.(*agentevents.ToolReturned).OneEvent)
	require.Contains(t, told(losses), "made up /payload/oneEvent")
	require.Contains(t, told(losses), "made up /payload/callId")

	out, _ = encode(t, event(&agentevents.Unknown{Type: "odd"}))
	require.Contains(t, out, `"payload":{},`)

	ev := event(&agentevents.Unknown{Type: "odd", Raw: `{}`}, forAgent("a", "a"))
	require.NoError(t, ev.SetExtra(string(Name), `{"schemaVersion":"1.0"}`))
	out, losses = encode(t, ev)
	require.Equal(t, "a", decode(t, Options{}, out)[0].AgentID)
	require.Equal(t, []string{"dropped /actor"}, told(losses))

	ev = event(&agentevents.SessionStarted{Goal: "g"})
	require.NoError(t, ev.SetExtra(string(Name), `{"schemaVersion":2}`)) // readers refuse a number
	out, losses = encode(t, ev)
	require.Equal(t, "g", decode(t, Options{}, out)[0].Payload.(*agentevents.SessionStarted).Goal)
	require.Contains(t, told(losses), "altered /multiagent/schemaVersion")
}

// The encoder makes up the time of an event without one, unless the line had one.
func TestNoTime(t *testing.T) {
	line := docLine("session.started", `{}`)
	ev := decode(t, Options{}, line)[0]
	ev.Time = time.Time{}
	out, losses := encode(t, ev)
	require.Contains(t, out, `"timestamp":"1970-01-01T00:00:00.000Z"`)
	require.Equal(t, []string{"made up /timestamp"}, told(losses))

	for _, odd := range []string{`"0001-01-01T00:00:00Z"`, `"yesterday"`, `""`} {
		odd = strings.Replace(line, `"2026-05-18T09:00:01.200Z"`, odd, 1)
		ev = decode(t, Options{}, odd)[0]
		out, losses = encode(t, ev)
		require.Equal(t, odd, out)
		require.Empty(t, losses)
		ev.Time = at
		out, losses = encode(t, ev)
		require.Equal(t, line, out)
		require.Equal(t, []string{"dropped /multiagent/timestamp"}, told(losses))
	}
}

// The time of a line without one is not known, and the line comes back without one.
func TestNoTimeAfterALine(t *testing.T) {
	first := docLine("session.started", `{}`)
	odd := strings.NewReplacer(`"e1"`, `"e2"`, `"2026-05-18T09:00:01.200Z"`, `"later"`).Replace(first)
	events := decode(t, Options{}, first, odd)
	require.False(t, agentevents.TimeKnown(events[1].Time))
	out, losses := encode(t, events...)
	require.Equal(t, first+"\n"+odd, out)
	require.Empty(t, losses)
	out, losses = encode(t, events[1])
	require.Equal(t, odd, strings.TrimSuffix(out, "\n"))
	require.Equal(t, []string{"dropped /sequence"}, told(losses))
}

// The decoder lists the values that it makes up.
func TestLossesOfReading(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{docLine("session.started", `{}`), nil},
		{`{"runId":"r1","type":"odd"}`, []string{"made up /id", "made up /timestamp"}},
		{docLine("workflow.node.enter", `{}`), []string{"made up /nodeId"}},
		{docLine("tool.call.started", `{"tool":""}`), []string{"made up /payload/callId", "made up /payload/toolId"}},
		{docLine("tool.call.completed", `{"toolId":"x"}`), []string{"made up /payload/callId", "made up /payload/oneEvent", "made up /payload/status"}},
		{docLine("tool.call.completed", `{"toolId":"x","success":true}`), []string{"made up /payload/callId", "made up /payload/oneEvent"}},
		{docLine("tool.call.completed", `{"toolId":"x","status":"ok","oneEvent":true}`), []string{"made up /payload/callId"}},
		{docLine("handoff.accepted", `{"from":"a","to":"b"}`), nil},
		{docLine("handoff.requested", `{"to":{"memoryRef":"m"}}`), []string{"made up /payload/from/agentId", "made up /payload/to/agentId"}},
		{docLine("agent.message.created", `{"message":{"from":"a"}}`), []string{"made up /payload/message/messageId", "made up /payload/message/content", "made up /payload/message/ts"}},
		{docLine("budget.exceeded", `{"kind":"usd"}`), []string{"made up /payload/limit", "made up /payload/actual"}},
		{docLine("workflow.finalized", `{"workflowId":"w","totalAgents":0}`), []string{"made up /payload/totalTokens", "made up /payload/durationMs"}},
		{docLine("blackboard.item.created", `{"id":"i","type":"t"}`), []string{"made up /payload/content"}},
	} {
		d := NewDecoder(Options{})
		_, err := d.Decode(nil, []byte(c.line))
		require.NoError(t, err)
		require.ElementsMatch(t, append(c.want, "made up /sequence"), told(d.Losses()), c.line)
	}
}

// told returns the pointers of the losses, each after its change.
func told(losses []dialect.Loss) (list []string) {
	for _, l := range losses {
		list = append(list, l.What.String()+" "+l.Pointer)
	}
	return list
}
