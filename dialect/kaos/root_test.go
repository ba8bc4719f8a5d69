package kaos

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// TestRootAgent reads lines of the root agent and of agents that are called like it,
// and writes them back.
func TestRootAgent(t *testing.T) {
	text := func(agent string) string {
		return strings.Replace(head, `"agent_id":null`, `"agent_id":`+agent, 1) + `"content":"x","type":"text_delta"}`
	}
	for line, want := range map[string]string{
		text(`null`): "root",
		strings.Replace(head, `"agent_id":null,`, "", 1) + `"content":"x","type":"text_delta"}`: "root",
		text(`"root"`):                        "root'",
		text(`"root'"`):                       "root''",
		text(`"rooted"`):                      "rooted",
		text(`"rooted'"`):                     "rooted'",
		head + `"x":1,"type":"goal_checked"}`: "root",
	} {
		d := NewDecoder(testOptions)
		events, err := d.Decode(nil, []byte(line))
		require.NoError(t, err)
		require.Equal(t, want, events[0].AgentID, line)
		require.Equal(t, !strings.HasPrefix(want, "rooted"), strings.Contains(fmt.Sprint(d.Losses()), "/agentId"), line)

		e := NewEncoder(encoderOptions)
		out, err := e.Append(nil, events[0])
		require.NoError(t, err)
		if strings.Contains(line, "agent_id") {
			require.Equal(t, line+"\n", string(out))
		}
		require.NotContains(t, losses(e), "made up /agentId")
		require.Equal(t, want, decodeAll(t, string(out))[0].AgentID)
	}
}

// TestSubAgentCalledRoot keeps a sub-agent with the name of the root agent apart from it.
func TestSubAgentCalledRoot(t *testing.T) {
	start := numbered(spanLine("subagent", "start", "subagent.root", "null", "null", "null", `{"subagent_name":"root","task":"dig"}`), 1)
	end := spanLine("subagent", "complete", "subagent.root", "9.0", "null", "null", `{"subagent_name":"root","result_summary":"dug"}`)
	own := numbered(strings.Replace(end, `"agent_id":null`, `"agent_id":"root"`, 1), 3)
	end = numbered(end, 2)
	turn := strings.Replace(goldens[0].line, `"span_id":"a1b2c3d4e5f6"`, `"span_id":"t"`, 1)
	events := decodeAll(t, turn+"\n"+start+"\n"+end+"\n"+own+"\n")[1:]
	require.Equal(t, "root'", events[0].AgentID)
	require.Equal(t, Root, events[0].ParentAgentID)
	require.Empty(t, events[0].Extra(string(Name)))
	require.Equal(t, "root'", events[1].AgentID)
	require.Empty(t, events[2].ParentAgentID)
	e := NewEncoder(encoderOptions)
	var out []byte
	for _, ev := range events {
		var err error
		out, err = e.Append(out, ev)
		require.NoError(t, err)
	}
	require.Equal(t, start+"\n"+end+"\n"+own+"\n", string(out))

	// Nobody knows of the root agent before it has a line.
	events = decodeAll(t, numbered(start, 0)+"\n"+turn+"\n"+end+"\n")
	require.Empty(t, events[0].ParentAgentID)
	require.Equal(t, Root, events[2].ParentAgentID)
	e = NewEncoder(encoderOptions)
	events[0].ParentAgentID = Root
	_, err := e.Append(nil, events[0])
	require.NoError(t, err)
	require.Contains(t, losses(e), "dropped /parentAgentId")

	e = NewEncoder(encoderOptions)
	ev := native(&agentevents.AgentStarted{})
	ev.AgentID, ev.ParentAgentID = Root, "boss"
	_, err = e.Append(nil, ev)
	require.NoError(t, err)
	require.Equal(t, []string{"altered /agentId"}, losses(e), "no line makes the root agent a sub-agent")
}
