package agentevents

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A fold of events with their lines is the fold of the events, and tells a repeated
// event as well.
func TestApplyLine(t *testing.T) {
	ctx := t.Context()
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleRelaxed})
	a := r.With(Scope{SessionID: "s"}).Agent("a")
	require.NoError(t, a.Emit(ctx, &AgentStarted{Task: "task"}))
	require.NoError(t, a.To(ctx, StatusToolCall))
	c, err := a.Call(ctx, &ToolCalled{ToolID: "tool", Arguments: `{"a": [1.50, "x"]}`})
	require.NoError(t, err)
	require.NoError(t, c.Return(ctx, `{"b":  2}`))
	require.NoError(t, a.Emit(ctx, &MessageCreated{Message: ConversationMessage{Content: `"hi"`}}))
	require.NoError(t, r.Emit(ctx, &RunPaused{}))

	whole, lines := NewFold(FoldOptions{Lifecycle: LifecycleRelaxed}), NewFold(FoldOptions{Lifecycle: LifecycleRelaxed})
	for range 2 {
		for i, ev := range log.events {
			whole.Apply(ev)
			lines.ApplyLine(ev, log.lines[i])
		}
	}
	require.Equal(t, string(whole.Snapshot().AppendJSON(nil)), string(lines.Snapshot().AppendJSON(nil)))
	require.Zero(t, lines.Snapshot().ViolationCount)
	lines.ApplyLine(Event{RunID: "r"}, "{}")
	require.Equal(t, RulePayload, lines.Snapshot().Violations[0].Rule)
}
