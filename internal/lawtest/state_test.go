package lawtest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
)

// The state of a run that goes on equals a fold of its events, after every event, and also after it
// was resumed.
func TestStateIsThatOfTheFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := withSecrets(t, anyConfig(t))
		f := agentevents.NewFold(agentevents.FoldOptions{Lifecycle: c.Lifecycle})
		c.Watch = func(run *agentevents.Run, ev agentevents.Event) {
			f.Apply(ev)
			requireState(t, f.Snapshot(), run)
		}
		r := show(t, Generate(t, c))
		s := f.Snapshot()
		clock, ids := &Clock{}, &IDs{}
		again, err := NewEmitter(t, c.Lifecycle, agentevents.ModeEnforce, clock, ids, nil, func(agentevents.Event) {}).Resume(throughJSON(t, s))
		if len(r.Events) > 0 {
			require.NoError(t, err)
			requireState(t, s, again)
		}
	})
}

func requireState(t *rapid.T, s *agentevents.RunSnapshot, run *agentevents.Run) {
	v := run.State()
	require.Equal(t, s.RunID, v.RunID)
	require.Equal(t, s.SessionID, v.SessionID)
	require.Equal(t, s.NextSequence, v.NextSequence)
	questions := map[agentevents.OpenQuestion]bool{}
	for _, a := range s.Approvals {
		if a.Open {
			questions[agentevents.OpenQuestion{Kind: agentevents.KindApprovalRequested, ID: a.ApprovalID, AgentID: a.AgentID}] = true
		}
	}
	for _, c := range s.Clarifications {
		if c.Open {
			questions[agentevents.OpenQuestion{Kind: agentevents.KindClarificationRequested, ID: c.InterruptID, AgentID: c.AgentID}] = true
		}
	}
	require.Len(t, v.Questions, len(questions))
	for _, q := range v.Questions {
		require.True(t, questions[q], q)
	}
	if len(s.Turns) == 0 { // a live run does not follow its turns
		require.Equal(t, s.Status, v.Status)
	}
	calls := map[string][]string{}
	for _, c := range s.OpenCalls {
		calls[c.AgentID] = append(calls[c.AgentID], c.CallID)
	}
	models := map[string][]string{}
	for _, c := range s.OpenModelCalls {
		models[c.AgentID] = append(models[c.AgentID], c.ModelCallID)
	}
	require.Len(t, v.Agents, len(s.Agents))
	for _, a := range v.Agents {
		want := s.Agents[a.AgentID]
		require.NotNil(t, want, a.AgentID)
		require.Equal(t, agentevents.AgentView{
			AgentID: a.AgentID, Status: want.Status, Step: want.Step, Attempt: want.Attempts, Open: want.Open, Ended: want.Ended, OpenCalls: calls[a.AgentID], OpenModelCalls: models[a.AgentID],
		}, a)
		handle := run.Agent(a.AgentID)
		status, known := handle.Status()
		require.True(t, known)
		require.Equal(t, want.Status, status)
		require.Equal(t, calls[a.AgentID], handle.OpenCalls())
		require.Equal(t, models[a.AgentID], handle.OpenModelCalls())
	}
}
