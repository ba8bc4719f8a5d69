package openharness

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// Events of two nodes on one execution are written, and read as two: the second one is listed.
func TestNodesOfOneExecution(t *testing.T) {
	line := func(node string) agentevents.Event {
		return agentevents.Event{ID: node, RunID: "r", Scope: agentevents.Scope{NodeID: node, NodeRunID: "x"}, SchemaVersion: "1.0", Payload: &agentevents.NodeStarted{}}
	}
	e := NewEncoder()
	var out []byte
	var err error
	for _, node := range []string{"a", "b", "a"} {
		out, err = e.Append(out, line(node))
		require.NoError(t, err)
	}
	altered := 0
	for _, loss := range e.Losses() {
		if loss.Pointer == "/nodeRunId" {
			altered += loss.Count
		}
	}
	require.Equal(t, 1, altered, e.Losses())
	require.Contains(t, string(out), `"nodeId":"b","runId":"x"`)
}

// The runId of a line comes back from the execution, where readers see the same one.
func TestNodesRunID(t *testing.T) {
	var n nodes
	n.start("x", "x")
	n.start("a", "x")
	require.Equal(t, "x/b", n.id("b", "x", true))
	require.Equal(t, "x", n.id("b", "x", false), "b has not started")
	n.start("b", "x/b")
	require.Equal(t, []string{"x", "x/b", "x", "y", "x"}, []string{n.id("a", "x", true), n.id("b", "x", false), n.id("", "x", false), n.id("b", "y", true), n.id("x", "x", false)})
	require.Equal(t, "x", n.runID("b", "x/b", false))
	require.Equal(t, "y/b", n.runID("b", "y/b", true), "no other node has y")
	require.Equal(t, "x/b", n.runID("a", "x/b", false))
}
