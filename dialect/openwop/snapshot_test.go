package openwop

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

func TestSnapshot(t *testing.T) {
	events := decodeAll(t, Options{}, golden[RFC0002])
	f, err := agentevents.FoldAll(func(yield func(agentevents.Event, error) bool) {
		for _, ev := range events {
			if ev.RunID == "r1" && !yield(ev, nil) {
				return
			}
		}
	}, agentevents.FoldOptions{})
	require.NoError(t, err)
	s, err := SnapshotOf(f[0])
	require.NoError(t, err)
	s.RunOrchestrator = agentevents.Some(agentevents.AgentRef{AgentID: "core.supervisor", ModelClass: agentevents.ModelCoding, AgentSharing: agentevents.Shared})
	out, err := AppendSnapshot(nil, s, RFC0002)
	require.NoError(t, err)
	require.Contains(t, string(out), `{"runId":"r1","workflowId":"wf","status":"completed","startedAt":"2026-05-19T10:00:00.000Z","completedAt":"2026-05-19T10:00:25.000Z","runOrchestrator":{"agentId":"core.supervisor","agentSharing":"shared","modelClass":"coding"},"nodeStates":{"n1":{"status":"done"}`)
	require.Contains(t, string(out), `"channels":{"messages":[{"messageId":"m1"`)
	back, err := ParseSnapshot(out)
	require.NoError(t, err)
	require.Equal(t, s, back)

	out, err = AppendSnapshot(nil, s, SchemaV1)
	require.NoError(t, err)
	require.Contains(t, string(out), `"runOrchestrator":{"agentId":"core.supervisor","modelClass":"code"}`)
	out, err = AppendSnapshot([]byte("x"), s, SchemaV2)
	require.Error(t, err)
	require.Equal(t, "x", string(out))
	s.RunID, s.Owner = "acme/run-000000000001", `{"tenant":"acme","subject":{}}`
	out, err = AppendSnapshot(nil, s, SchemaV2)
	require.NoError(t, err)
	require.Contains(t, string(out), `"eventLogSchemaVersion":3`)
}

func TestSnapshotStatus(t *testing.T) {
	r := &agentevents.RunSnapshot{RunID: "r", Status: agentevents.RunStatusWaiting}
	require.Equal(t, StatusWaitingExternal, statusOf(r))
	r.Clarifications = []agentevents.ClarificationSnapshot{{Open: true}}
	require.Equal(t, StatusWaitingInput, statusOf(r))
	r.Approvals = []agentevents.ApprovalSnapshot{{Open: true}}
	require.Equal(t, StatusWaitingApproval, statusOf(r))
	r.Status = agentevents.RunStatusCancelling
	require.Equal(t, StatusCancelling, statusOf(r))

	text := `{"runId":"r","status":"napping","error":{"code":"c","message":"m"},"metrics":{"openwopCost":{"usd":0.10}},"tags":["a"],"x":1}`
	s, err := ParseSnapshot([]byte(text))
	require.NoError(t, err)
	out, err := AppendSnapshot(nil, s, RFC0002)
	require.NoError(t, err)
	require.Equal(t, text, string(out), "unknown members and statuses survive")
	for _, bad := range []string{``, `1`, `{}`, `{"runId":"r"}`, `{"runId":1,"status":"x"}`, `{"runId":"r","status":"x","runId":"r"}`, `{"runId":"r","status":"x","agent":1}`, text[:20]} {
		_, err := ParseSnapshot([]byte(bad))
		require.Error(t, err, bad)
	}
	require.True(t, strings.HasPrefix(text, "{"))
}
