package multiagent

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// A field that is cleared is not written as it once was spelled.
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
		events, err := NewDecoder(Options{}).Decode(nil, []byte(wire(c.typ, c.payload)))
		require.NoError(t, err)
		line, err := NewEncoder().Append(nil, events[0])
		require.NoError(t, err)
		require.Equal(t, wire(c.typ, c.payload)+"\n", string(line))
		c.clear(events[0].Payload)
		e := NewEncoder()
		line, err = e.Append(nil, events[0])
		require.NoError(t, err)
		require.Equal(t, wire(c.typ, c.want)+"\n", string(line))
		back, err := NewDecoder(Options{}).Decode(nil, line)
		require.NoError(t, err)
		require.Equal(t, events[0].Payload, back[0].Payload)
		for _, l := range e.Losses() {
			require.Equal(t, dialect.Dropped, l.What)
		}
	}
	// An agent that gets the name of no agent is named in the payload.
	events, err := NewDecoder(Options{}).Decode(nil, []byte(wire("agent.completed", `{}`)))
	require.NoError(t, err)
	events[0].AgentID = "system"
	line, err := NewEncoder().Append(nil, events[0])
	require.NoError(t, err)
	back, err := NewDecoder(Options{}).Decode(nil, line)
	require.NoError(t, err)
	require.Equal(t, "system", back[0].AgentID, string(line))
}

// The time that an event does not have is made up; one that the line has is not.
func TestNoTime(t *testing.T) {
	line := wire("session.started", `{}`)
	ev := decode(t, Options{}, line)[0]
	ev.Time = time.Time{}
	out, losses := encode(t, ev)
	require.Contains(t, out, `"timestamp":"0001-01-01T00:00:00.000Z"`)
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

// told returns where the losses are, with what happened before each.
func told(losses []dialect.Loss) (list []string) {
	for _, l := range losses {
		list = append(list, l.What.String()+" "+l.Pointer)
	}
	return list
}
