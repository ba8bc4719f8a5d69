package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

// played is a log of a run in which the agent a calls tools, a second apart.
func played(t *testing.T, calls int) string {
	now := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "run.jsonl")
	w, err := agentevents.OpenFile(path, agentevents.WriterOptions{})
	require.NoError(t, err)
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Lifecycle: agentevents.LifecycleDerived, Clock: func() time.Time { return now }, Sinks: []agentevents.Sink{w},
	})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	a := run.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &agentevents.AgentStarted{Task: "count"}))
	for i := range calls {
		now = now.Add(time.Second)
		c, err := a.Call(t.Context(), &agentevents.ToolCalled{CallID: fmt.Sprint("c", i), ToolID: [...]string{"Read", "Grep"}[i%2]})
		require.NoError(t, err)
		now = now.Add(time.Second)
		require.NoError(t, c.End(t.Context(), &agentevents.ToolReturned{Status: agentevents.ToolStatusOK}))
	}
	require.NoError(t, a.Emit(t.Context(), &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}))
	require.NoError(t, run.Emit(t.Context(), &agentevents.RunCompleted{}))
	require.NoError(t, em.Close(t.Context()))
	return path
}

func TestReplay(t *testing.T) {
	path := played(t, 1)
	r := exec("", "replay", "--speed", "0", path)
	require.Equal(t, result{exitOK, `   +0.000s      0  agent.started            a  count
   +1.000s      1  agent.transition         a  thinking → tool_call
   +1.000s      2  agent.toolCalled         a  Read
   +2.000s      3  agent.transition         a  tool_call → tool_result
   +2.000s      4  agent.toolReturned       a  Read ok
   +2.000s      5  agent.transition         a  tool_result → converged
   +2.000s      6  agent.ended              a  converged
   +2.000s      7  run.completed

run r ✓ completed · 2026-05-05 09:00:00Z · 2s
└─ a ✓ converged · 2s · 1 step · 1 tool call: count
   └─ tool.Read ✓ 1s
1 agent · 1 tool call
`, ""}, r)
	require.True(t, strings.HasPrefix(exec("", "replay", "--speed", "0", "--from", "6", path).out, "   +2.000s      6  agent.ended "))
	require.True(t, strings.HasPrefix(exec("", "replay", "--speed", "0", "--from", "100", path).out, "run r "), "nothing to play")
	require.Equal(t, exitUsage, exec("", "replay", "--speed", "-1", path).code)
	require.Equal(t, exitUsage, exec("", "replay", "--run", "other", path).code)
	require.Equal(t, result{}, exec("", "replay", "-"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	two := string(text) + strings.ReplaceAll(string(text), `"runId":"r"`, `"runId":"r2"`)
	require.Contains(t, exec(two, "replay", "-").err, "the log has 2 runs: choose one with --run")
	require.Equal(t, r.out, exec(two, "replay", "--speed", "0", "--run", "r", "-").out)
}

// A terminal is drawn again and again, and not higher than it is until the end.
func TestReplayOnATerminal(t *testing.T) {
	path := played(t, 30)
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		in := &invocation{stdout: &output{w: &out}, env: func(name string) string { return map[string]string{"LINES": "10"}[name] }}
		events := eventsOf(t, path)
		p := player{in: in, drawn: true, tree: tree.Options{Details: new(report.Details)}}
		p.timing.Speed = 1
		from := time.Now()
		require.NoError(t, p.play(context.Background(), events, 0))
		require.Equal(t, time.Minute, time.Since(from))
		frames := strings.Split(out.String(), home)[1:]
		require.Greater(t, len(frames), 60)
		for _, f := range frames[:len(frames)-1] {
			require.LessOrEqual(t, strings.Count(f, "\n"), 10)
			require.True(t, strings.HasSuffix(f, clearRest))
		}
		require.Contains(t, frames[20], "more lines")
		last := frames[len(frames)-1]
		require.Equal(t, 30, strings.Count(last, "tool."))
		require.Contains(t, last, "completed")
	})
}

func eventsOf(t *testing.T, path string) (events []agentevents.Event) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for ev, err := range agentevents.NewReader(f, agentevents.ReaderOptions{}).All() {
		require.NoError(t, err)
		events = append(events, ev)
	}
	return events
}
