package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// testdata/turns.stream.jsonl is a capture of two turns, of which the first fails. In it a
// sub-agent works; its last words come when it has ended.

// imported returns the native log of a capture: of the first turn, or of both.
func imported(t *testing.T, turns int) string {
	t.Helper()
	const capture = "testdata/turns.stream.jsonl"
	text, err := os.ReadFile(capture)
	require.NoError(t, err)
	lines := bytes.SplitAfter(text, []byte("\n"))
	if turns == 1 {
		end := slices.IndexFunc(lines, func(line []byte) bool { return bytes.Contains(line, []byte(`{"type":"result"`)) })
		lines = lines[:end+1]
	}
	file := filepath.Join(t.TempDir(), "capture.jsonl")
	require.NoError(t, os.WriteFile(file, bytes.Join(lines, nil), 0o666))
	got := exec("", "import", "claude", file)
	require.Equal(t, result{out: got.out}, got)
	return got.out
}

// converted returns a log in another format, and the losses that the command lists.
func converted(t *testing.T, to, log string) (out, losses string) {
	t.Helper()
	got := exec(log, "convert", "--to", to, "-")
	require.Equal(t, exitOK, got.code, got.err)
	return got.out, got.err
}

// folded returns the snapshot of a log with one run.
func folded(t *testing.T, log string) *agentevents.RunSnapshot {
	t.Helper()
	got := exec(log, "fold", "-")
	require.Equal(t, exitOK, got.code, got.err)
	s := new(agentevents.RunSnapshot)
	require.NoError(t, json.Unmarshal([]byte(got.out), s))
	return s
}

// A clean log stays clean in each format, and after the way back.
func TestCapturesStayClean(t *testing.T) {
	log := imported(t, 2)
	require.Equal(t, result{}, exec(log, "check", "-"))
	for _, to := range []string{"kahn", "multiagent", "kaos", "kaos:sse", "openharness", "openwop", "openwop:v1", "openwop:v2"} {
		out, losses := converted(t, to, log)
		require.NotContains(t, losses, "normalised", "all documents allow the ids")
		require.Equal(t, exitOK, exec(out, "check", "-").code, to)
		back, _ := converted(t, "native", out)
		require.Equal(t, exitOK, exec(back, "check", "-").code, to)
		again, _ := converted(t, to, back)
		require.Equal(t, out, again, to)
	}
}

// An agent that ended with an error has ended in an Open-Harness log too, with one error and its
// usage. A sub-agent's usage is not added to its parent's.
func TestCapturesOfFailedAgents(t *testing.T) {
	for turns := range 2 {
		log := imported(t, turns+1)
		out, losses := converted(t, "openharness", log)
		require.NotContains(t, losses, "altered: agent.ended", "the line tells how it ended")
		want, got := folded(t, log), folded(t, out)
		require.Equal(t, want.Status, got.Status)
		require.Equal(t, want.Usage.CostUSD, got.Usage.CostUSD)
		require.Equal(t, want.Usage.Usage, got.Usage.Usage)
		a, b := want.Agents["claude"], got.Agents["claude"]
		require.True(t, b.Ended)
		require.Equal(t, turns+1, b.Attempts)
		require.Equal(t, a.Outcome, b.Outcome)
		require.Equal(t, a.Error, b.Error)
		require.Equal(t, a.NumTurns, b.NumTurns)
		require.Equal(t, 1, b.Errors)
		require.True(t, b.Duration.OK)
		require.Len(t, got.Agents, 2)
		for id, agent := range got.Agents {
			require.Equal(t, want.Agents[id].ParentAgentID, agent.ParentAgentID)
		}
	}
}

// The texts, the reasoning and the usage of a capture's agents are in a KAOS log.
func TestCapturesInKAOS(t *testing.T) {
	for turns := range 2 {
		log := imported(t, turns+1)
		out, losses := converted(t, "kaos", log)
		require.Contains(t, out, `"content":"Someone must look.","type":"thinking_delta"}`)
		for _, text := range []string{"I send someone.", "It is in parse.go."} {
			require.Contains(t, out, `"content":"`+text+`","type":"text_delta"}`)
		}
		require.NotContains(t, losses, "agent.text the event: no counterpart")
		want, got := folded(t, log), folded(t, out)
		require.Equal(t, want.Usage.Usage.InputTokens, got.Usage.Usage.InputTokens)
		require.Equal(t, want.Usage.Usage.OutputTokens, got.Usage.Usage.OutputTokens)
		require.Equal(t, want.Usage.CostUSD, got.Usage.CostUSD)
	}
}

// A figure that a document requires and no event has is 0, and listed.
func TestCapturesListMadeUpZeros(t *testing.T) {
	out, losses := converted(t, "openharness", imported(t, 2))
	require.Contains(t, out, `"numTurns":0`)
	require.Contains(t, losses, "made up: agent.ended /payload/numTurns: the document requires it (once,")
	out, losses = converted(t, "kahn", `{"id":"1","sequence":0,"timestamp":"2026-02-01T10:00:00Z","type":"agent.toolReturned","runId":"r","agentId":"a","schemaVersion":"1.0","payload":{"callId":"c","toolId":"t","status":"ok"}}`+"\n")
	require.Contains(t, out, `"duration_s":0.0`)
	require.Contains(t, losses, "made up: agent.toolReturned /payload/durationMs: the time since the call, or 0")
}

// A tree never reports that an agent did not start if its document has no starts.
func TestCapturesInOpenWOP(t *testing.T) {
	out, _ := converted(t, "openwop", imported(t, 2))
	tree := exec(out, "tree", "-").out
	require.NotContains(t, tree, "not started")
	require.Contains(t, tree, "claude")
}

// Two executions of a node: the first one's agent fails, the second one's does not.
const openHarnessLog = `{"type":"flow:start","timestamp":1767517322000,"flowName":"f"}
{"type":"node:start","nodeId":"build","runId":"x1","timestamp":1767517322100}
{"type":"agent:start","nodeId":"build","runId":"x1","timestamp":1767517322200,"sessionId":"s1","prompt":"Build it"}
{"type":"agent:tool","nodeId":"build","runId":"x1","timestamp":1767517322300,"toolName":"Bash","toolInput":{"c":"make"},"toolOutput":"no","durationMs":50,"error":"exit 2"}
{"type":"agent:error","nodeId":"build","runId":"x1","timestamp":1767517322400,"errorType":"error_max_turns","message":"too many"}
{"type":"node:error","nodeId":"build","runId":"x1","timestamp":1767517322500,"error":"too many"}
{"type":"node:start","nodeId":"build","runId":"x2","timestamp":1767517323100}
{"type":"agent:start","nodeId":"build","runId":"x2","timestamp":1767517323200,"sessionId":"s2","prompt":"Build it"}
{"type":"agent:tool","nodeId":"build","runId":"x2","timestamp":1767517323300,"toolName":"Bash","toolInput":{"c":"make"},"toolOutput":"ok","durationMs":50}
{"type":"agent:complete","nodeId":"build","runId":"x2","timestamp":1767517323400,"result":"Built","usage":{"inputTokens":3,"outputTokens":4},"durationMs":200,"numTurns":1}
{"type":"node:complete","nodeId":"build","runId":"x2","timestamp":1767517323500,"output":"Built"}
{"type":"flow:complete","timestamp":1767517324000,"flowName":"f","status":"complete"}
`

// Agents that only an execution identifies have the name of their node in other formats.
func TestAgentsOfNodesInOtherFormats(t *testing.T) {
	for _, to := range []string{"kahn", "kaos", "openwop", "openwop:v1", "openwop:v2"} {
		out, _ := converted(t, to, openHarnessLog)
		require.Equal(t, exitOK, exec(out, "check", "-").code, to)
		s := folded(t, out)
		require.Len(t, s.Agents, 2, to)
		for id, agent := range map[string]*agentevents.AgentSnapshot{"build": s.Agents["build"], "build-2": s.Agents["build-2"]} {
			require.NotNil(t, agent, "%s: %s", to, id)
			require.Equal(t, 1, agent.ToolCalls, "%s: %s", to, id)
			if agent.Started {
				require.True(t, agent.Ended, "%s: %s", to, id)
			}
		}
	}
}

// In the wiki they have their executions, and end with them.
func TestAgentsOfNodesInTheWiki(t *testing.T) {
	out, _ := converted(t, "multiagent", openHarnessLog)
	require.Equal(t, exitOK, exec(out, "check", "-").code)
	s := folded(t, out)
	require.Len(t, s.Agents, 2)
	for _, id := range []string{"x1", "x2"} {
		require.True(t, s.Agents[id].Ended, id)
		require.Equal(t, "build", s.Agents[id].NodeID)
	}
}
