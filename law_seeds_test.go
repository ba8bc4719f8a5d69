package agentevents

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The examples of the source documents, as native events. The examples of a document must be legal
// here.

// Seed 000: "A coder agent that converges". It shows four lines of a longer
// run: the end counts 12 steps and 7 calls, of which the log has one.
func TestSeed000Example(t *testing.T) {
	ctx := context.Background()
	run, log := ruleRun(t, LifecycleStrict, ModeEnforce)
	at := func(clock string) func(*Event) {
		return func(e *Event) {
			var err error
			e.Time, err = time.Parse(time.RFC3339, "2026-05-05T"+clock+"Z")
			require.NoError(t, err)
		}
	}
	for _, e := range []Event{
		ev("coder", &AgentStarted{Task: "Add /v2/health"}, at("09:00:00.000")),
		ev("coder", &AgentTransition{From: StatusThinking, To: StatusToolCall, Reason: "tool_call:Read"}, atStep(0), at("09:00:01.200")),
		ev("coder", &ToolReturned{CallID: "derived-1", ToolID: "Read", Status: ToolStatusOK, Duration: Some(40 * time.Millisecond), OneEvent: true}, atStep(0), at("09:00:01.250")),
		ev("coder", &AgentEnded{
			Outcome: OutcomeConverged, Duration: Some(65 * time.Second), ConvergenceScore: Some(1.0),
			Totals: Some(Totals{Steps: 12, ToolCalls: 7, AuditCheckpoints: 2, AuditsPassed: 2, AuditsFailed: 0}),
		}, at("09:01:05.000")),
	} {
		require.NoError(t, errOf(run.Record(ctx, e)))
	}
	s := foldEvents(FoldOptions{}, log.events)
	require.Empty(t, s.Violations)
	requireSplitFolds(t, log.events, s)

	coder := s.Agents["coder"]
	require.Equal(t, RunStatusCompleted, s.Status)
	require.Equal(t, OutcomeConverged, coder.Outcome)
	require.Equal(t, StatusToolCall, coder.Status, "the log leaves out how it went on")
	require.Equal(t, 12, coder.Totals.V.Steps)
	require.Equal(t, Totals{Steps: 1, ToolCalls: 1}, coder.Counted)
	require.Equal(t, Some(65*time.Second), coder.Duration)
	require.Equal(t, rulesEpoch.Add(1210*time.Millisecond), s.ClosedCalls[0].StartedAt)
	require.Equal(t, rulesEpoch, s.StartedAt)
	require.Equal(t, rulesEpoch.Add(65*time.Second), s.CompletedAt)
}

// Seed 003, section 3.2: a node's agent that streams. Its document has no
// agent ids: the agent is the execution of the node.
func TestSeed003Flow(t *testing.T) {
	ctx := context.Background()
	run, log := ruleRun(t, LifecycleStrict, ModeEnforce)
	taskAgent := run.With(Scope{NodeID: "task-agent", NodeRunID: "task-agent#1"})
	tool := func(id, name string) *ToolReturned {
		return &ToolReturned{CallID: id, ToolID: name, Status: ToolStatusOK, OneEvent: true, Arguments: `{"path":"a.go"}`, Result: `{"ok":true}`, Duration: Some(time.Millisecond)}
	}
	for _, p := range []Payload{
		&AgentStarted{ProviderSessionID: "sess-123", Prompt: `"..."`},
		&AgentReasoningDelta{Delta: "Let me "},
		&AgentReasoningDelta{Delta: "analyze..."},
		&TextDelta{Delta: "I'll "},
		&TextDelta{Delta: "start by..."},
		tool("derived-5", "read_file"),
		tool("derived-6", "write_file"),
		&TextDelta{Delta: "Done! "},
		&TextDelta{Delta: "I've updated..."},
		&AgentEnded{Result: "...", Usage: Some(Usage{InputTokens: 150, OutputTokens: 200}), Duration: Some(4523 * time.Millisecond)},
	} {
		require.NoError(t, taskAgent.Emit(ctx, p))
	}
	s := foldEvents(FoldOptions{}, log.events)
	require.Empty(t, s.Violations)
	requireSplitFolds(t, log.events, s)

	require.Equal(t, map[string]string{"task-agent": "sess-123"}, s.AgentSessions, "what the resume spec resumes from")
	require.Len(t, s.Agents, 1)
	a := s.Agents["task-agent#1"]
	require.Equal(t, "Let me analyze...", a.Reasoning, "deltas alone: the fold puts them together")
	require.Contains(t, a.Text, "Done! I've updated...")
	require.Equal(t, "...", a.Result)
	require.Equal(t, 2, a.ToolCalls)
	require.Equal(t, []string{"read_file", "write_file"}, []string{s.ClosedCalls[0].ToolID, s.ClosedCalls[1].ToolID})
	require.Equal(t, Usage{InputTokens: 150, OutputTokens: 200}, s.Usage.Usage)
	require.Equal(t, RunStatusCompleted, s.Status)
}
