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
	e := NewEncoder(EncoderOptions{})
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
