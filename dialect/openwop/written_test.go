package openwop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// What the library accepts and the document does not: the lines keep the rules of the document.
func TestWrittenForTheCheck(t *testing.T) {
	node := func(run string, p agentevents.Payload) agentevents.Event {
		return agentevents.Event{Scope: agentevents.Scope{NodeID: "n", NodeRunID: run}, Payload: p}
	}
	of := func(agent string, p agentevents.Payload) agentevents.Event {
		return agentevents.Event{AgentID: agent, Payload: p}
	}
	for name, events := range map[string][]agentevents.Event{
		"the return names another tool": {
			of("a", &agentevents.ToolCalled{CallID: "c", ToolID: "s:t"}), of("a", &agentevents.ToolReturned{CallID: "c", ToolID: "s:other", Status: "ok"}),
		},
		"two executions of a node": {
			node("x", &agentevents.NodeStarted{}), node("y", &agentevents.NodeStarted{}), node("x", &agentevents.NodeCompleted{}), node("y", &agentevents.NodeCompleted{}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range []Profile{RFC0002, SchemaV1, SchemaV2} {
				for i := range events {
					ev := &events[i]
					ev.ID, ev.RunID, ev.Sequence = "e"+string(rune('0'+i)), "r", uint64(i)
					ev.Time, ev.SchemaVersion = time.Unix(int64(i), 0).UTC(), agentevents.SchemaVersion
				}
				text, losses := encodeAll(t, p, events)
				t.Log(text, losses)
				require.Len(t, decodeAll(t, Options{Profile: p, Strict: true}, text), len(events))
			}
		})
	}
}
