package agentevents

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEndsCountWhatWasRefused: refused events have no line, so the ends have their number.
func TestEndsCountWhatWasRefused(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Follow: func(ev Event) []Event {
		if ev.Kind() == KindTaskAssigned {
			return []Event{{AgentID: "b", Payload: &AgentTransition{To: StatusConverged}}}
		}
		return nil
	}})
	ctx := t.Context()
	a, b := r.Agent("a"), r.Agent("b")
	unopened := &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK}
	require.NoError(t, a.Emit(ctx, &AgentStarted{}))
	require.NoError(t, b.Emit(ctx, &AgentStarted{}))
	require.Error(t, a.Emit(ctx, unopened))
	require.Error(t, a.Emit(ctx, unopened))
	require.NoError(t, a.Emit(ctx, &TaskAssigned{Goal: "g"}), "what is refused of Follow is not returned")
	require.Error(t, r.Emit(ctx, &RunStarted{}), "the run is under way")
	require.NoError(t, a.Emit(ctx, &AgentEnded{}))
	require.NoError(t, a.Emit(ctx, &AgentStarted{}), "the count begins again")
	require.NoError(t, a.Emit(ctx, &AgentEnded{}))
	require.NoError(t, b.Emit(ctx, &AgentEnded{Refused: 7}), "a bridge knows better")
	require.NoError(t, r.Emit(ctx, &RunCompleted{}))

	s := log.snapshot(t)
	require.Equal(t, 2, s.Agents["a"].Refused)
	require.Equal(t, 7, s.Agents["b"].Refused)
	require.Equal(t, 4, s.Refused)
	require.Zero(t, s.ViolationCount)
}

// TestFollowInObserve: the events of Follow are recorded in both modes, and is marked when it
// breaks a rule.
func TestFollowInObserve(t *testing.T) {
	var told []*RuleError
	r, log := startRun(t, EmitterOptions{
		Mode:        ModeObserve,
		OnViolation: func(v *RuleError) { told = append(told, v) },
		Follow: func(ev Event) []Event {
			if ev.Kind() != KindTaskAssigned {
				return nil
			}
			return []Event{{Payload: &ApprovalGranted{ApprovalID: "x"}}, {Payload: &UsageObserved{}}}
		},
	})
	require.NoError(t, r.Emit(t.Context(), &TaskAssigned{Goal: "g"}))
	require.Equal(t, []Kind{KindTaskAssigned, KindApprovalGranted, KindUsageObserved}, log.kinds())
	require.Equal(t, MarkIllegal, log.events[1].Marks)
	require.Len(t, told, 1)
	require.Equal(t, RuleApprovalOpen, told[0].Rule)
	require.False(t, told[0].Refused)
}
