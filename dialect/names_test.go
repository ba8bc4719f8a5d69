package dialect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

func TestNames(t *testing.T) {
	var n Names
	for _, c := range []struct{ run, node, execution, agent, want string }{
		{"r", "build", "x1", "", "build"},
		{"r", "build", "x2", "", "build-2"},
		{"r", "build", "x1", "", "build"},
		{"r", "", "x2", "", "build-2"},
		{"r2", "build", "x3", "", "build"},
		{"r", "build", "x2", "coder", "coder"},
		{"r", "build-2", "x4", "", "build-2-2"},
		{"r", "plan", "", "", "plan"},
		{"r", "", "x9", "", "x9"},
		{"r", "", "", "", ""},
	} {
		require.Equal(t, c.want, n.Of(&agentevents.Event{RunID: c.run, AgentID: c.agent, Scope: agentevents.Scope{NodeID: c.node, NodeRunID: c.execution}}), "%v", c)
	}
}

// An agent that starts without an id has the span of its start for a name. The first event
// with an id in that span, or below it, tells the id.
func TestNamesOfSpans(t *testing.T) {
	var n Names
	for i, c := range []struct {
		agent, span, parent string
		p                   agentevents.Payload
		want                string
	}{
		{"boss", "s0", "", &agentevents.AgentStarted{}, "boss"},
		{"", "s1", "s0", &agentevents.AgentStarted{}, "s1"},
		{"", "s2", "s0", &agentevents.AgentStarted{}, "s2"},
		{"boss", "t0", "s1", &agentevents.ToolCalled{}, "boss"},
		{"a", "t1", "s1", &agentevents.TextDelta{}, "a"}, // a delta may be dropped: it names nobody
		{"", "t1", "s1", &agentevents.ToolCalled{}, "s1"},
		{"", "t1", "t9", &agentevents.ToolCalled{}, ""},
		{"alice", "t2", "s1", &agentevents.ApprovalGranted{}, "alice"},
		{"a", "t3", "s1", &agentevents.ToolCalled{}, "s1"},
		{"a", "t4", "t3", &agentevents.ToolCalled{}, "s1"},
		{"a", "t4", "t3", &agentevents.TextDelta{}, "s1"},
		{"b", "t5", "s1", &agentevents.ToolCalled{}, "b"},
		{"a", "s2", "s0", &agentevents.AgentEnded{}, "s2"}, // two agents have the id
		{"a", "s1", "s0", &agentevents.AgentEnded{}, "s1"},
		{"boss", "s0", "", &agentevents.AgentEnded{}, "boss"},
	} {
		ev := &agentevents.Event{RunID: "r", AgentID: c.agent, SpanID: c.span, ParentSpanID: c.parent, Payload: c.p}
		require.Equal(t, c.want, n.Of(ev), "event %d", i)
		require.Equal(t, c.want, n.Of(ev), "event %d again", i)
	}
	require.Equal(t, "s1", n.Named("r", "a"))
	require.Equal(t, "a", n.Named("r2", "a"))
}
