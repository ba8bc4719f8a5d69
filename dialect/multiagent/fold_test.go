package multiagent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
)

// treeLog is the log of the document's trace tree of a workflow: discover with one
// agent, audit with two in parallel, a checkpoint, verify with a claim, and the end.
func treeLog() []string {
	var lines []string
	add := func(actor, span, parent, typ, payload string) {
		n := len(lines)
		if parent != "" {
			parent = `"parentSpanId":"` + parent + `",`
		}
		lines = append(lines, fmt.Sprintf(`{"id":"e%d","traceId":"%s","spanId":"%s",%s"sessionId":"s1","runId":"r1","actor":"%s","type":"%s","payload":%s,"timestamp":"2026-05-30T09:00:%02d.000Z","schemaVersion":"1.0"}`,
			n, trace, span, parent, actor, typ, payload, n))
	}
	const root = "00000000000000a0"
	agent := func(id, span, phase, task string, tokens int) {
		scope := `"workflowId":"w1","phase":"` + phase + `"`
		add(id, span, root, "agent.spawned", `{`+scope+`,"agentTask":"`+task+`","parentSpanId":"`+root+`"}`)
		add(id, span, "", "tool.call.started", `{"toolId":"read_file","arguments":{"path":"a.go"},`+scope+`}`)
		add(id, span, "", "tool.call.completed", `{"toolId":"read_file","result":"package a","durationMs":5,`+scope+`}`)
		add(id, span, "", "agent.completed", fmt.Sprintf(`{"agentId":"%s","tokens":%d,"durationMs":3000,"resultSchema":{"type":"object"},%s}`, id, tokens, scope))
	}
	add("user", root, "", "session.started", `{"goal":"audit"}`)
	add("orchestrator", root, "", "workflow.created", `{"workflowId":"w1","script":"…","phases":["discover","audit","verify"],"estimatedTokens":1000}`)
	add("user", root, "", "workflow.approved", `{"workflowId":"w1","approvedAt":"2026-05-30T09:00:02.000Z","approvedBy":"ann"}`)
	phase := func(name string, in int) {
		add("orchestrator", root, "", "workflow.phase.started", fmt.Sprintf(`{"workflowId":"w1","phase":"%s","inputCount":%d}`, name, in))
	}
	phase("discover", 1)
	agent("mapper", "00000000000000a1", "discover", "map-codebase", 100)
	add("orchestrator", root, "", "workflow.phase.completed", `{"workflowId":"w1","phase":"discover","outputCount":2,"tokens":100}`)
	phase("audit", 2)
	agent("auditor-1", "00000000000000a2", "audit", "audit-file", 200)
	agent("auditor-2", "00000000000000a3", "audit", "audit-file", 300)
	add("orchestrator", root, "", "workflow.phase.completed", `{"workflowId":"w1","phase":"audit","outputCount":1,"tokens":500}`)
	add("orchestrator", root, "", "workflow.checkpoint.saved", `{"workflowId":"w1","phase":"audit","stateBytes":2048}`)
	phase("verify", 1)
	add("reviewer", "00000000000000a4", root, "agent.spawned", `{"workflowId":"w1","phase":"verify","agentTask":"adversarial-review","parentSpanId":"`+root+`"}`)
	add("reviewer", "00000000000000a4", "", "claim.verified", `{"findingId":"f1","verifierAgentId":"reviewer","verdict":"rejected","evidence":{"line":3},"workflowId":"w1","phase":"verify"}`)
	add("reviewer", "00000000000000a4", "", "approval.requested", `{"action":"patch","workflowId":"w1","phase":"verify"}`)
	add("human", "00000000000000a4", "", "approval.granted", `{"feedback":"fine","workflowId":"w1","phase":"verify"}`)
	add("reviewer", "00000000000000a4", "", "agent.completed", `{"agentId":"reviewer","tokens":50,"durationMs":1000,"workflowId":"w1","phase":"verify"}`)
	add("orchestrator", root, "", "workflow.finalized", `{"workflowId":"w1","totalTokens":650,"totalAgents":4,"durationMs":30000}`)
	add("system", root, "", "session.completed", `{"status":"done"}`)
	return lines
}

func fold(t testing.TB, events []agentevents.Event) *agentevents.RunSnapshot {
	t.Helper()
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for _, ev := range events {
		fold.Apply(ev)
	}
	return fold.Snapshot()
}

func TestFoldWorkflowTree(t *testing.T) {
	lines := treeLog()
	events := decode(t, Options{Strict: true}, lines...)
	s := fold(t, events)
	require.Empty(t, s.Violations)
	require.Equal(t, agentevents.RunStatusCompleted, s.Status)
	require.Len(t, s.Agents, 4)
	require.Equal(t, "audit-file", s.Agents["auditor-2"].Task)
	require.Equal(t, 1, s.Agents["auditor-2"].ToolCalls)
	require.Equal(t, agentevents.Some(3*time.Second), s.Agents["auditor-2"].Duration)
	require.Equal(t, agentevents.Some[int64](650), s.Usage.Usage.TotalTokens)
	require.Equal(t, 3, s.Tools["read_file"].Calls)
	require.Empty(t, s.OpenCalls)
	require.Len(t, s.Phases, 3)
	require.Len(t, s.Checkpoints, 1)
	require.Len(t, s.Claims, 1)
	require.Len(t, s.Approvals, 1)

	out, losses := encode(t, events...)
	require.Empty(t, losses)
	require.Equal(t, strings.Join(lines, "\n"), out)
}

// A log of the first 15 types is legal without any payload.
func TestFoldEmptyPayloads(t *testing.T) {
	var lines []string
	for i := range format.Rows[:15] {
		lines = append(lines, strings.Replace(docLine(format.Rows[i].Type, `{}`), `"e1"`, fmt.Sprintf(`"e%d"`, i), 1))
	}
	s := fold(t, decode(t, Options{Strict: true}, lines...))
	for _, v := range s.Violations {
		// The lines do not name the agents of the handoff.
		require.Equal(t, agentevents.RuleHandoffOpen, v.Rule, v)
	}
	require.Len(t, s.Violations, 1)
}

// The document's types in its order, the types of workflows with their key fields, and the members
// of its envelope. A question mark stands after an optional one.
const (
	documentTypes = `session.started
		workflow.node.enter
		agent.message.created
		agent.task.assigned
		tool.call.started
		tool.call.completed
		handoff.requested
		handoff.accepted
		blackboard.item.created
		approval.requested
		approval.granted
		verifier.issue.found
		loop.round.completed
		budget.exceeded
		session.completed
		workflow.created: workflowId script phases estimatedTokens
		workflow.approved: workflowId approvedAt approvedBy
		workflow.phase.started: workflowId phase inputCount
		workflow.phase.completed: workflowId phase outputCount tokens
		agent.spawned: workflowId phase agentTask parentSpanId
		agent.completed: agentId tokens durationMs resultSchema
		claim.verified: findingId verifierAgentId verdict evidence
		workflow.checkpoint.saved: workflowId phase stateBytes
		workflow.checkpoint.resumed: workflowId phase resumedAt
		workflow.finalized: workflowId totalTokens totalAgents durationMs`
	documentEnvelope = "id traceId spanId parentSpanId? sessionId runId taskId? actor type payload timestamp schemaVersion"
)

// documentRows are the rows of the types that the document lists.
func documentRows() []engine.Row {
	return slices.DeleteFunc(slices.Clone(format.Rows), func(r engine.Row) bool { return r.Reads })
}

// The rows are the types of the document, and one for types that it does not list.
func TestDocumentTypes(t *testing.T) {
	types := strings.Split(documentTypes, "\n")
	rows := documentRows()
	require.Len(t, rows, len(types))
	for i, line := range types {
		name, fields, _ := strings.Cut(strings.TrimSpace(line), ": ")
		require.Equal(t, name, rows[i].Type)
		var keys []string
		for _, m := range rows[i].Members {
			if _, key := m.Form.(keyForm); key {
				keys = append(keys, m.Name)
			}
		}
		require.ElementsMatch(t, strings.Fields(fields), keys, name)
	}
	var envelope []string
	for _, m := range format.Head {
		mark := "?"
		if m.Need {
			mark = ""
		}
		envelope = append(envelope, m.Name+mark)
	}
	require.Equal(t, strings.Fields(documentEnvelope), envelope)
}
