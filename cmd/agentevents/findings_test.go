package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/findings"
)

// loopLog is the log of an agent that reads one file again and again.
func loopLog(times int) string {
	var b strings.Builder
	n := 0
	line := func(agent, kind, payload string) {
		fmt.Fprintf(&b, `{"id":"e%d","sequence":%d,"timestamp":"2026-05-05T09:00:%02d.000Z","type":%q,"runId":"r1",%s"schemaVersion":"1.0","payload":%s}`+"\n", n, n, n, kind, agent, payload)
		n++
	}
	const coder = `"agentId":"coder",`
	line("", "run.started", `{}`)
	line(coder, "agent.started", `{"task":"look"}`)
	for i := range times {
		line(coder, "agent.toolCalled", fmt.Sprintf(`{"callId":"c%d","toolId":"Read","arguments":{"path":"go.mod"}}`, i))
		line(coder, "agent.toolReturned", fmt.Sprintf(`{"callId":"c%d","toolId":"Read","status":"ok","result":"module m"}`, i))
	}
	line(coder, "agent.ended", `{"outcome":"converged"}`)
	line("", "run.completed", `{}`)
	return b.String()
}

func TestFindings(t *testing.T) {
	const text = "r1: warning: repeat: coder made the same call of Read (go.mod) 4 times in a row and got the same result (4 times at events 3, 5, 7, 9; since 2026-05-05T09:00:02Z)\n"
	got := exec(loopLog(4), "findings", "-")
	require.Equal(t, text, got.out)
	require.Equal(t, exitOK, got.code)
	require.Empty(t, got.err)

	for args, code := range map[string]int{
		"--fail-on repeat": exitProblems, "--fail-on any": exitProblems, "--fail-on stall": exitOK, "--fail-on stall --fail-on repeat": exitProblems,
		"--fail-on loop": exitUsage, "--context-tokens -1": exitUsage, "--run r2": exitUsage, "--run r1": exitOK,
	} {
		require.Equal(t, code, exec(loopLog(4), append([]string{"findings", "-"}, strings.Fields(args)...)...).code, args)
	}
	require.Equal(t, exitOK, exec(loopLog(2), "findings", "--fail-on", "any", "-").code)
	require.Empty(t, exec(loopLog(2), "findings", "-").out)
	require.Empty(t, exec(loopLog(4), "findings", "--poll", "Read", "-").out)

	var one findings.Finding
	require.NoError(t, json.Unmarshal([]byte(exec(loopLog(4), "findings", "--json", "-").out), &one))
	require.Equal(t, findings.Repeat, one.Kind)
	require.Equal(t, "coder", one.AgentID)
	require.Equal(t, []uint64{3, 5, 7, 9}, one.Sequences)
}

func TestFindingsInOtherViews(t *testing.T) {
	const sentence = "repeat: coder made the same call of Read (go.mod) 4 times in a row and got the same result"
	require.Contains(t, exec(loopLog(4), "show", "-").out, "\nattention\n"+sentence+"\n")
	require.NotContains(t, exec(loopLog(2), "show", "-").out, "attention")
	require.Contains(t, exec(loopLog(4), "stats", "-").out, "finding rate               100.0 %    (1 of 1 run; 1 repeat)\n")
	require.Contains(t, exec(loopLog(4), "tree", "--width", "-1", "-").out, "repeat ×4 ! warning")
}
