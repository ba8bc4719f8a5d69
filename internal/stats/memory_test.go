package stats

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
)

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestEndedRunsTakeLittleMemory collects runs of 32 events and four agents, for all tables. It
// measures the memory that the runs after the first thousand add.
func TestEndedRunsTakeLittleMemory(t *testing.T) {
	const first, more, perRun = 1000, 4000, 3000
	c := New(Groupings()...)
	add := func(from, to int) {
		for i := from; i < to; i++ {
			run := fmt.Sprintf("run-%06d", i)
			at := time.Date(2026, 5, 5, 9, 0, i, 0, time.UTC)
			sequence := 0
			emit := func(agent string, p ae.Payload) {
				ev := ae.Event{
					ID: fmt.Sprintf("%s-%d", run, sequence), Sequence: uint64(sequence), RunID: run, AgentID: agent,
					Time: at.Add(time.Duration(sequence*(1+i%7)) * time.Millisecond), Payload: p,
				}
				ev.SessionID = "session-" + run
				c.Event(ev)
				sequence++
			}
			emit("", &ae.RunStarted{})
			for a, agent := range []string{"planner", "coder", "tester", "reviewer"} {
				emit(agent, &ae.AgentStarted{Model: fmt.Sprint("model-", a%2)})
				for n := range 2 {
					call := fmt.Sprintf("call-%d-%d-%d", i, a, n)
					emit(agent, &ae.ToolCalled{CallID: call, ToolID: fmt.Sprint("tool-", (i+n)%5)})
					emit(agent, &ae.ToolReturned{CallID: call, ToolID: fmt.Sprint("tool-", (i+n)%5), Status: ae.ToolStatusOK})
				}
				emit(agent, &ae.AgentEnded{Result: fmt.Sprint(`"done `, i, `"`), Usage: ae.Some(ae.Usage{InputTokens: int64(i), OutputTokens: 7}), TotalCostUSD: some(0.1)})
				emit(agent, &ae.TextCompleted{Text: "done"})
			}
			for range 2 {
				emit("reviewer", &ae.TextCompleted{Text: "well done"})
			}
			emit("", &ae.RunCompleted{})
			require.Equal(t, 32, sequence)
		}
	}
	add(0, first)
	before := heap()
	add(first, first+more)
	took := (heap() - before) / more
	t.Logf("%d bytes a run", took)
	require.Less(t, took, int64(perRun))
	require.Equal(t, first+more, c.Report().Runs)
}
