package openwop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// A return that is the whole call is a call as well.
func TestAllowlistHoldsForCallsOfOneEvent(t *testing.T) {
	h := &Host{Agents: map[string]Manifest{"coder": {Tools: []string{"fs:read"}}}}
	run, log := emitting(t, h, agentevents.Enforce)
	returned := func(tool string, status agentevents.ToolStatus) error {
		return run.Agent("coder").Emit(t.Context(), &agentevents.ToolReturned{CallID: "c", ToolID: tool, Status: status, OneEvent: true, Arguments: `{}`})
	}
	for _, status := range []agentevents.ToolStatus{agentevents.ToolOK, agentevents.ToolError} {
		var v *agentevents.InvariantError
		require.ErrorAs(t, returned("rm:all", status), &v)
		require.Equal(t, RuleToolAllowed, v.Rule)
	}
	require.Empty(t, *log)
	require.NoError(t, returned("fs:read", agentevents.ToolOK))
	// What was refused never began.
	require.NoError(t, returned("rm:all", agentevents.ToolForbidden))
	require.NoError(t, returned("rm:all", agentevents.ToolRateLimited))
}

// A run whose node is suspended waits, for a person if the agent was not sure.
func TestSuspendedNodesWait(t *testing.T) {
	for _, p := range []Profile{SchemaV1, SchemaV2} {
		run, log := emitting(t, &Host{Profile: p}, agentevents.Enforce)
		node := run.With(agentevents.Scope{NodeID: "n1"})
		status := func(more ...agentevents.Event) Snapshot {
			f := agentevents.NewFold(agentevents.FoldOptions{})
			for _, ev := range append(*log, more...) {
				f.Apply(ev)
			}
			text, err := f.Snapshot().MarshalJSON()
			require.NoError(t, err)
			var r agentevents.RunSnapshot
			require.NoError(t, r.UnmarshalJSON(text))
			s, err := SnapshotOf(&r)
			require.NoError(t, err)
			return s
		}
		require.NoError(t, run.Emit(t.Context(), &agentevents.RunStarted{}))
		require.NoError(t, node.Emit(t.Context(), &agentevents.NodeStarted{}))
		require.Equal(t, StatusRunning, status().Status)
		require.NoError(t, node.Agent("abc").Emit(t.Context(), &agentevents.AgentDecided{Decision: `1`, Confidence: agentevents.Some(0.1)}))
		s := status()
		require.Equal(t, StatusWaitingApproval, s.Status)
		require.Equal(t, "n1", s.CurrentNodeID)

		next := func(p agentevents.Payload) agentevents.Event {
			return agentevents.Event{ID: "x", RunID: "r", Scope: agentevents.Scope{NodeID: "n1"}, Sequence: 4, Time: (*log)[0].Time, Payload: p}
		}
		require.Equal(t, StatusWaitingExternal, status(next(&agentevents.NodeSuspended{Reason: "webhook"})).Status)
		other := next(&agentevents.NodeStarted{})
		other.NodeID = "n2"
		require.Equal(t, StatusRunning, status(other).Status, "another node runs")
		for _, p := range []agentevents.Payload{
			&agentevents.NodeStarted{}, &agentevents.NodeCompleted{}, &agentevents.NodeFailed{}, &agentevents.NodeSkipped{}, &agentevents.RunResumed{},
			&agentevents.ApprovalGranted{ApprovalID: "a"}, &agentevents.ApprovalRejected{ApprovalID: "a"}, &agentevents.ClarificationResolved{InterruptID: "i"},
			&agentevents.Unknown{Type: "node.resumed", Raw: `{}`},
		} {
			require.Equal(t, StatusRunning, status(next(p)).Status, p)
		}
		require.Equal(t, StatusCompleted, status(next(&agentevents.RunCompleted{})).Status)
	}
}
