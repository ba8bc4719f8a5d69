package openharness

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// in is an event of that run and agent.
func in(runID, agent string, after time.Duration, p agentevents.Payload) agentevents.Event {
	return agentevents.Event{RunID: runID, AgentID: agent, Time: epoch.Add(after), SchemaVersion: agentevents.SchemaVersion, Payload: p}
}

// find returns the losses at a pointer of a kind.
func find(losses []dialect.Loss, kind agentevents.Kind, pointer string) []dialect.Loss {
	var list []dialect.Loss
	for _, l := range losses {
		if l.Kind == kind && l.Pointer == pointer {
			l.RunID, l.Sequence = "", 0
			list = append(list, l)
		}
	}
	return list
}

// Agents of the same name in two runs have a start each.
func TestStartsAreOfARun(t *testing.T) {
	line, _ := encode(t,
		in("r1", "planner", 0, &agentevents.AgentStarted{}),
		in("r2", "planner", 10*time.Second, &agentevents.AgentStarted{}),
		in("r1", "planner", 11*time.Second, &agentevents.AgentEnded{}),
		in("r2", "planner", 12*time.Second, &agentevents.AgentEnded{}),
	)
	require.Contains(t, line, `"durationMs":11000,`)
	require.Contains(t, line, `"durationMs":2000,`)
}

// Agents that never end are forgotten with their node or run, or at last when
// there are too many.
func TestStartsAreBounded(t *testing.T) {
	started := func(e *Encoder, i int) string {
		id := strconv.Itoa(i)
		for _, p := range []agentevents.Payload{&agentevents.AgentStarted{}, &agentevents.TextDelta{BlockID: "b", Delta: "x"}} {
			_, err := e.Append(nil, in("r"+id, "a"+id, 0, p))
			require.NoError(t, err)
		}
		return id
	}
	for _, end := range []agentevents.Payload{&agentevents.NodeFailed{}, &agentevents.NodeCompleted{}, &agentevents.RunCancelled{}, &agentevents.RunFailed{}, &agentevents.RunCompleted{}} {
		e := NewEncoder()
		for i := range 100 {
			id := started(e, i)
			_, err := e.Append(nil, in("r"+id, "a"+id, 0, end))
			require.NoError(t, err)
		}
		require.Empty(t, e.starts.runs, "%T", end)
		require.Zero(t, e.starts.n)
	}
	e := NewEncoder()
	for i := range dialect.MaxCalls + 10 {
		started(e, i)
	}
	require.LessOrEqual(t, len(e.starts.runs), dialect.MaxCalls)
}

// Nodes that never end are forgotten with the flow.
func TestBlocksEndWithTheFlow(t *testing.T) {
	for _, end := range []string{at("flow:aborted", ``), at("flow:complete", `,"flowName":"f","status":"failed"`), at("flow:start", `,"flowName":"f"`)} {
		d := NewDecoder(Options{})
		for i := range 100 {
			for _, line := range []string{
				`{"type":"agent:text:delta","nodeId":"n","runId":"` + strconv.Itoa(i) + `","timestamp":1,"content":"x"}`, end,
			} {
				_, err := d.Decode(nil, []byte(line))
				require.NoError(t, err)
			}
		}
		require.Empty(t, d.blocks.runs)
		events, err := d.Decode(nil, []byte(of("agent:text:delta", `,"content":"x"`)))
		require.NoError(t, err)
		require.Equal(t, "block-101", events[0].Payload.(*agentevents.TextDelta).BlockID, "ids are not given twice")
	}
}
