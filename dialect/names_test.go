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
