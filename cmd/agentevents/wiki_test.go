package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/stats"
)

// wikiLog makes a log of the wiki of lines "actor span parent type payload".
func wikiLog(lines ...string) string {
	var b strings.Builder
	for i, l := range lines {
		f := strings.SplitN(l, " ", 5)
		fmt.Fprintf(&b, `{"id":"e%d","traceId":"t","spanId":"%s","parentSpanId":"%s","sessionId":"s","runId":"r","actor":"%s","type":"%s","payload":%s,"timestamp":"2026-05-05T09:00:%02d.000Z","schemaVersion":"1.0"}`+"\n",
			i, f[1], f[2], f[0], f[3], f[4], i)
	}
	return b.String()
}

// TestWikiTree draws a session as the wiki suggests it: agents, their tools, their findings and the
// approvals. Agents at work are not called idle, and nothing is called interrupted in a session
// that is over.
func TestWikiTree(t *testing.T) {
	log := wikiLog(
		`user root - session.started {"goal":"fix"}`,
		`orchestrator n root workflow.node.enter {"node":"plan"}`,
		`Planner p root agent.message.created {"content":"a plan"}`,
		`orchestrator c root agent.spawned {"agentTask":"search"}`,
		`Search c1 c tool.call.started {"callId":"1","toolName":"web_search"}`,
		`tool-runner c1 c tool.call.completed {"callId":"1","output":3}`,
		`orchestrator i c agent.spawned {"agentTask":"read","agentId":"Inner"}`,
		`orchestrator i c agent.completed {"agentId":"Inner"}`,
		`orchestrator c root agent.completed {"agentId":"Search"}`,
		`Coder k root tool.call.started {"callId":"2","toolName":"edit_file"}`,
		`Coder k root tool.call.completed {"callId":"2","success":false}`,
		`Reviewer v root verifier.issue.found {"issue":"bug","severity":"high"}`,
		`Reviewer v root approval.requested {"action":"merge"}`,
		`user u root approval.granted {}`,
		`orchestrator root - session.completed {"status":"success"}`,
	)
	require.Equal(t, result{exitOK, "", ""}, exec(log, "check", "-"))
	got := exec(log, "tree", "-")
	require.Equal(t, `session s · run r ✓ completed · 2026-05-05 09:00:00Z · 14s: fix
├─ Planner
│  └─ message: a plan
├─ Search ✓ ended · 5s · 1 tool call: search
│  ├─ tool.web_search ✓ 1s
│  └─ Inner ✓ ended · 1s: read
├─ Coder · 1 tool call (1 failed)
│  └─ tool.edit_file ✗ error · 1s
├─ Reviewer
│  ├─ issue ! high: bug
│  └─ approval ✓ granted by user · 1s: merge
└─ enters node plan
5 agents · 2 tool calls (1 failed) · 1 message
`, got.out)
}

// TestWikiMetrics has the eight figures that the wiki names, of one log.
func TestWikiMetrics(t *testing.T) {
	got := exec(wikiLog(
		`orchestrator a root agent.spawned {"agentTask":"outer","agentId":"A"}`,
		`orchestrator b a agent.spawned {"agentTask":"inner"}`,
		`B b a tool.call.started {"callId":"1"}`,
		`B b a tool.call.completed {"callId":"1","success":false}`,
		`B b a tool.call.started {"callId":"2"}`,
		`runner b a tool.call.completed {"callId":"2"}`,
		`A a root handoff.requested {"to":"B"}`,
		`B b a handoff.accepted {}`,
		`B b a handoff.requested {"to":"A"}`,
		`A a root handoff.accepted {}`,
		`A a root handoff.requested {"to":"B"}`,
		`V v root claim.verified {"findingId":"f","verifierAgentId":"V","verdict":"rejected","evidence":1}`,
		`V v root claim.verified {"findingId":"g","verifierAgentId":"V","verdict":"accepted","evidence":1}`,
		`A a root approval.requested {}`,
		`user u root approval.granted {}`,
		`orchestrator b a agent.completed {"agentId":"B","totalCostUsd":0.25}`,
		`orchestrator a root agent.completed {"agentId":"A"}`,
		`orchestrator root - session.completed {"status":"success"}`,
	), "stats", "--json", "-")
	require.Equal(t, exitOK, got.code, got.err)
	var r stats.Report
	require.NoError(t, json.Unmarshal([]byte(got.out), &r))
	m := r.Metrics
	require.Equal(t, 1.0, m.TaskSuccessRate.Value.V)
	require.Equal(t, 1.0, m.HandoffLoopRate.Value.V, "A hands over to B again")
	require.Equal(t, 0.5, m.VerifierRejectionRate.Value.V)
	require.InDelta(t, 1.0/3, m.AverageAgentDepth.Value.V, 1e-12, "B is below A, by its span")
	require.Equal(t, 0.5, m.ToolFailureRate.Value.V)
	require.Equal(t, 0.25, m.CostPerSuccessfulTask.Value.V)
	require.Equal(t, 1000.0, m.HumanApprovalLatency.Value.V)
	require.False(t, m.ContextCompression.Value.OK, "the wiki has no event for it")
}

// A log is sliced by the facts of spans that events lack: the agent of a start, and the phase in
// which an agent works.
func TestSlicesBySpan(t *testing.T) {
	log := wikiLog(
		`s p1 w workflow.phase.started {"workflowId":"w","phase":"a"}`,
		`s b1 p1 agent.spawned {"workflowId":"w","phase":"a","agentTask":"t","parentSpanId":"p1"}`,
		`s b2 p1 agent.spawned {"workflowId":"w","phase":"a","agentTask":"t","parentSpanId":"p1"}`,
		`A2 c2 b2 claim.verified {"findingId":"f","verifierAgentId":"A2","verdict":"accepted","evidence":1}`,
		`s b2 p1 agent.completed {"agentId":"A2","tokens":1,"durationMs":1,"resultSchema":"s"}`,
		`s b1 p1 agent.completed {"agentId":"A1","tokens":1,"durationMs":1,"resultSchema":"s"}`,
		`A2 b2 p1 agent.message.created {"text":"after its end"}`,
		`s p2 w workflow.phase.started {"workflowId":"w","phase":"b"}`,
		`s b1 p2 agent.spawned {"workflowId":"w","phase":"b","agentTask":"t","parentSpanId":"p2"}`,
		`s b1 p2 agent.completed {"agentId":"B1","tokens":1,"durationMs":1,"resultSchema":"s"}`,
	)
	for flags, want := range map[string]string{
		"--phase a": "0 1 2 3 4 5", "--workflow w": "0 1 2 3 4 5 7 8 9", "--phase b": "7 8 9", "--agent A1": "1 5", "--agent A2": "2 3 4 6", "--agent A2 --phase a": "2 3 4",
		"--agent B1": "8 9", "--agent B1 --phase a": "", "--agent A1 --kind agent.ended": "5", "--agent A1 --from 2": "5", "--agent b1": "1 8",
	} {
		for _, command := range []string{"cat", "tail"} {
			got := exec(log, append(append([]string{command}, strings.Fields(flags)...), "-")...)
			require.Equal(t, exitOK, got.code)
			var seen []string
			for line := range strings.Lines(got.out) {
				_, rest, _ := strings.Cut(line, `"sequence":`)
				n, _, _ := strings.Cut(rest, ",")
				seen = append(seen, n)
			}
			require.Equal(t, want, strings.Join(seen, " "), "%s %s", command, flags)
		}
	}
}

// A log is sliced by run, agent, workflow and phase.
func TestSlices(t *testing.T) {
	log := wikiLog(
		`s ph root workflow.phase.started {"workflowId":"w","phase":"a"}`,
		`s x ph agent.spawned {"workflowId":"w","phase":"a","agentTask":"t","agentId":"A"}`,
		`s x ph agent.completed {"workflowId":"w","phase":"a","agentId":"A"}`,
		`s ph root workflow.phase.completed {"workflowId":"w","phase":"a"}`,
		`s ph root workflow.phase.started {"workflowId":"w","phase":"b"}`,
		`s ph root workflow.phase.started {"workflowId":"v","phase":"a"}`,
		`A x root agent.message.created {"text":"hi"}`,
	)
	for flags, want := range map[string]int{
		"": 7, "--phase a": 5, "--phase b": 1, "--workflow w": 5, "--workflow w --phase a": 4, "--agent A": 3, "--agent A --phase a": 2, "--run r --workflow v": 1,
	} {
		got := exec(log, append(append([]string{"cat"}, strings.Fields(flags)...), "-")...)
		require.Equal(t, exitOK, got.code)
		require.Equal(t, want, strings.Count(got.out, "\n"), flags)
	}
}
