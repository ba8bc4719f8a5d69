package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A log that is read in the wrong format is an error in every line, which names the detected
// format, and has no events.
func TestWrongFormat(t *testing.T) {
	logs := map[string]string{"native": line("r", 0)}
	for _, name := range []string{"kahn", "multiagent", "kaos", "openharness", "openwop"} {
		text, err := os.ReadFile("../../dialect/testdata/golden/variants-" + name + ".txtar")
		require.NoError(t, err)
		_, log, found := strings.Cut(string(text), " --\n")
		require.True(t, found)
		logs[name], _, _ = strings.Cut(log, "-- ")
	}
	for is, log := range logs {
		for _, w := range wires() {
			got := exec(log, "convert", "--quiet", "--from", w.name, "--to", "native", "-")
			if string(w.dialect()) == is {
				require.Equal(t, exitOK, got.code, "%s as %s: %s", is, w.name, got.err)
				continue
			}
			require.Equal(t, exitProblems, got.code, "%s as %s", is, w.name)
			require.Empty(t, got.out, "%s as %s", is, w.name)
			n := strings.Count(log, "\n")
			require.Equal(t, min(n, sameLines), strings.Count(got.err, "it looks like one of "+is+"\n"), "%s as %s: %s", is, w.name, got.err)
			if n > sameLines {
				require.Contains(t, got.err, fmt.Sprintf("stdin:%d: the same in %s, from 4 on\n", n, plural(n-sameLines, "more line")))
			}
		}
	}
	require.Equal(t, result{exitProblems, "", "stdin:1: this is not a line of multiagent; it looks like none of the known formats\n"},
		exec(`{"a":1}`+"\n", "convert", "--from", "multiagent", "--to", "native", "-"))
}

// A line that breaks a rule of its document is reported once, and the lines that follow
// from it are not reported.
func TestOneFaultIsReportedOnce(t *testing.T) {
	const kahn = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"agent_run_start","agent_id":"a","task":"t"}
{"ts":"2026-05-05T09:00:01Z","run_id":"r","event":"agent_transition","agent_id":"a","step":0,"from":"thinking","to":"tool_call"}
{"ts":"2026-05-05T09:00:02.000Z","run_id":"r","event":"agent_transition","agent_id":"a","step":0,"from":"tool_call","to":"tool_result"}
{"ts":"2026-05-05T09:00:03.000Z","run_id":"r","event":"agent_transition","agent_id":"a","step":-1,"from":"tool_result","to":"response"}
`
	wiki := func(id, typ, payload, time string) string {
		return `{"id":"` + id + `","traceId":"t","spanId":"s","sessionId":"s","runId":"r","actor":"a","type":"` + typ + `","payload":` + payload + `,"timestamp":"` + time + `","schemaVersion":"1"}` + "\n"
	}
	for _, c := range []struct {
		dialect, log string
		want         []string
	}{
		{"kahn", kahn, []string{"stdin:2: kahn-time:", "stdin:4: kahn-range:"}},
		{"multiagent", wiki("1", "tool.call.started", `{"callId":"c"}`, "yesterday") + wiki("2", "tool.call.completed", `{"callId":"c"}`, "2026-05-05T09:00:00.000Z"),
			[]string{"stdin:1: multiagent-timestamp:"}},
		{"multiagent", wiki("1", "workflow.phase.started", `{"workflowId":"w","phase":"p","inputCount":"1"}`, "2026-05-05T09:00:00.000Z") +
			wiki("2", "workflow.phase.completed", `{"workflowId":"w","phase":"p"}`, "2026-05-05T09:00:00.000Z"), []string{"stdin:1: multiagent-field:"}},
	} {
		got := exec(c.log, "check", "--dialect", c.dialect, "-")
		require.Equal(t, exitProblems, got.code)
		lines := strings.Split(strings.TrimSpace(got.out), "\n")
		require.Len(t, lines, len(c.want), got.out)
		for i, want := range c.want {
			require.True(t, strings.HasPrefix(lines[i], want), got.out)
		}
	}
}

// The threshold of a host is not in its log, unless its runs have their own.
func TestCheckWithAThreshold(t *testing.T) {
	const log = `{"eventId":"1","runId":"r","type":"agent.decided","payload":{"agentId":"a","decision":1,"confidence":0.5},"timestamp":"2026-05-05T09:00:00.000Z","sequence":1}
{"eventId":"2","runId":"r","type":"run.completed","payload":{},"timestamp":"2026-05-05T09:00:00.000Z","sequence":2}
`
	got := exec(log, "check", "--dialect", "openwop", "-")
	require.Equal(t, exitProblems, got.code)
	require.Contains(t, got.out, "stdin:2: openwop-escalation:")
	require.Equal(t, exitOK, exec(log, "check", "--dialect", "openwop", "--threshold", "0.3", "-").code)
}
