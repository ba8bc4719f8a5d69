package querytest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/query"
	"github.com/agentevents/agentevents/querytest"
)

// runWorkflow is a program under test: two nodes that ask agents. It knows nothing of
// fixtures.
func runWorkflow(ctx context.Context, em *agentevents.Emitter, ask query.Func) (verdict string, err error) {
	run, err := em.Run("run-1")
	if err != nil {
		return "", err
	}
	if err := run.Emit(ctx, &agentevents.RunStarted{Name: "my-workflow"}); err != nil {
		return "", err
	}
	said := "Analyze the task list"
	for _, node := range []string{"task-agent", "verifier-agent"} {
		at := run.With(agentevents.Scope{NodeID: node, NodeRunID: node + "-1"})
		if err := at.Emit(ctx, &agentevents.NodeStarted{}); err != nil {
			return "", err
		}
		end, err := query.Do(ctx, at.Agent(node), ask, query.Request{
			Prompt: agentevents.JSONString(said), Options: `{"maxTurns":10}`,
		})
		if err != nil {
			return "", err
		}
		if err := at.Emit(ctx, &agentevents.NodeCompleted{Outputs: agentevents.JSONString(end.Result)}); err != nil {
			return "", err
		}
		said = "Verify: " + end.Result
		verdict = end.Result
	}
	return verdict, run.Emit(ctx, &agentevents.RunCompleted{})
}

// The workflow is tested without a network. In production, ask is the provider's query:
// no other line differs.
func TestWorkflow(t *testing.T) {
	em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived})
	ask := querytest.MockQuery(t, "testdata/my-workflow")

	verdict, err := runWorkflow(t.Context(), em, ask)
	require.NoError(t, err)
	require.Equal(t, "ok", verdict)
	rec.WantLaws(t, eventtest.LawOptions{})
	rec.Filter(eventtest.NotSynthetic).WantExactly(t,
		"run.started my-workflow",
		"node.started",
		"task-agent agent.started",
		"task-agent agent.text",
		"task-agent agent.ended converged",
		"node.completed",
		"node.started",
		"verifier-agent agent.started model=small-1",
		"verifier-agent model.returned",
		"verifier-agent agent.toolCalled Read toolu_1",
		"verifier-agent agent.toolReturned toolu_1 ok",
		"verifier-agent model.returned",
		"verifier-agent agent.text.delta",
		"verifier-agent agent.ended converged",
		"node.completed",
		"run.completed",
	)
	s := rec.Snapshot("run-1")
	require.Equal(t, map[string]string{
		"task-agent": "sess-fixture-1", "verifier-agent": "6c0f3a1e-0000-4000-8000-000000000001",
	}, s.AgentSessions)
	task, verifier := s.Agents["task-agent"], s.Agents["verifier-agent"]
	require.Equal(t, "There are two tasks: tests and docs.", task.Text)
	tokens, _ := task.Usage.Total()
	require.EqualValues(t, 150, tokens.InputTokens)
	tokens, cost := verifier.Usage.Total()
	require.EqualValues(t, 903, tokens.InputTokens+tokens.CacheReadInputTokens.V)
	require.EqualValues(t, 0.002, cost.V)
}
