package openwop

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

func TestSnapshot(t *testing.T) {
	events := decodeAll(t, Options{}, golden[RFC0002])
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for _, ev := range events {
		if ev.RunID == "r1" {
			fold.Apply(ev)
		}
	}
	s, err := SnapshotOf(fold.Snapshot())
	require.NoError(t, err)
	s.RunOrchestrator = agentevents.Some(agentevents.AgentRef{AgentID: "core.supervisor", ModelClass: agentevents.ModelCoding, AgentSharing: agentevents.SharingShared})
	out, losses, err := AppendSnapshot(nil, s, RFC0002)
	require.NoError(t, err)
	require.Empty(t, losses)
	require.Contains(t, string(out), `{"runId":"r1","workflowId":"wf","status":"completed","startedAt":"2026-05-19T10:00:00.000Z","completedAt":"2026-05-19T10:00:25.000Z","runOrchestrator":{"agentId":"core.supervisor","agentSharing":"shared","modelClass":"coding"},"nodeStates":{"n1":{"status":"done"}`)
	require.Contains(t, string(out), `"channels":{"messages":[{"messageId":"m1"`)
	back, err := ParseSnapshot(out)
	require.NoError(t, err)
	require.Equal(t, s, back)

	out, losses, err = AppendSnapshot(nil, s, SchemaV1)
	require.NoError(t, err)
	require.Equal(t, []string{"dropped /runOrchestrator/agentSharing", "altered /runOrchestrator/modelClass"}, lossNames(losses))
	require.Contains(t, string(out), `"runOrchestrator":{"agentId":"core.supervisor","modelClass":"code"}`)
	out, losses, err = AppendSnapshot([]byte("x"), s, SchemaV2)
	require.Error(t, err)
	require.Empty(t, losses)
	require.Equal(t, "x", string(out))
	s.RunID, s.Owner = "acme/run-000000000001", snapshotOwner
	out, losses, err = AppendSnapshot([]byte("x"), s, SchemaV2)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(out), `x{"runId":"acme/`))
	require.Contains(t, string(out), `"eventLogSchemaVersion":3`)
	require.Equal(t, []string{"dropped /runOrchestrator/agentSharing", "altered /runOrchestrator/modelClass", "made up /eventLogSchemaVersion"}, lossNames(losses))
	for _, l := range losses {
		require.Equal(t, 1, l.Count)
		require.Equal(t, s.RunID, l.RunID)
	}
}

func TestSnapshotStatus(t *testing.T) {
	r := &agentevents.RunSnapshot{RunState: agentevents.RunState{RunID: "r"}, Status: agentevents.RunStatusWaiting}
	require.Equal(t, StatusWaitingExternal, statusOf(r))
	r.Clarifications = []agentevents.ClarificationSnapshot{{Open: true}}
	require.Equal(t, StatusWaitingInput, statusOf(r))
	r.Approvals = []agentevents.ApprovalSnapshot{{Open: true}}
	require.Equal(t, StatusWaitingApproval, statusOf(r))
	r.Status = agentevents.RunStatusCancelling
	require.Equal(t, StatusCancelling, statusOf(r))
	r = &agentevents.RunSnapshot{
		RunState: agentevents.RunState{RunID: "r"}, Status: agentevents.RunStatusRunning, Suspended: map[string]string{"n1": "conversation-input", "n2": "webhook"},
		State: map[string]agentevents.JSON{"a": "1"},
	}
	r.Usage.CostUSD = agentevents.Some(0.5)
	of, err := SnapshotOf(r)
	require.NoError(t, err)
	require.Equal(t, Snapshot{RunID: "r", Status: StatusWaitingApproval, Variables: `{"a":1}`, Metrics: `{"openwopCost":{"usd":0.5}}`}, of)
	r.Usage.Usage.OutputTokens, r.Usage.Models, r.StartedAt = 3, map[string]agentevents.Usage{"m": {}}, t0
	require.EqualValues(t, `{"openwopCost":{"usd":0.5,"tokens":{"input":0,"output":3},"model":"m"}}`, metrics(r))
	r.Usage.CostUSD, r.Usage.Models["n"], r.CompletedAt = agentevents.Opt[float64]{}, agentevents.Usage{}, t0.Add(2*time.Second)
	require.EqualValues(t, `{"openwopCost":{"tokens":{"input":0,"output":3},"duration_ms":2000}}`, metrics(r))
	r.Usage.Usage.OutputTokens = 0
	require.Empty(t, metrics(r))

	for text, want := range map[string]Snapshot{
		`{"error":"e","message":"m","details":[1],"retryable":5}`: {Error: agentevents.Some(agentevents.ErrorInfo{Code: "e", Message: "m", Details: `[1]`}), ErrorMore: `{"retryable":5}`},
		`{"error":"e","code":"c","retryable":true}`:               {Error: agentevents.Some(agentevents.ErrorInfo{Code: "c", Retryable: agentevents.Some(true)}), ErrorMore: `{"error":"e"}`},
		`{"error":"e","code":5}`:                                  {Error: agentevents.Some(agentevents.ErrorInfo{Code: "e"}), ErrorMore: `{"code":5}`},
		`{"error":5}`:                                             {Error: agentevents.Some(agentevents.ErrorInfo{}), ErrorMore: `{"error":5}`},
	} {
		s, err := ParseSnapshot([]byte(`{"runId":"r","status":"failed","error":` + text + `}`))
		require.NoError(t, err)
		want.RunID, want.Status = "r", StatusFailed
		require.Equal(t, want, s, text)
	}
	for _, bad := range []string{`5`, `{"message":1}`} {
		_, err := ParseSnapshot([]byte(`{"runId":"r","status":"failed","error":` + bad + `}`))
		require.ErrorContains(t, err, "error")
	}

	text := `{"runId":"r","status":"napping","error":{"code":"c","message":"m"},"metrics":{"openwopCost":{"usd":0.10}},"tags":["a"],"x":1}`
	s, err := ParseSnapshot([]byte(text))
	require.NoError(t, err)
	out, losses, err := AppendSnapshot(nil, s, RFC0002)
	require.NoError(t, err)
	require.Empty(t, losses)
	require.Equal(t, text, string(out), "extra members and unknown statuses survive")
	for _, bad := range []string{``, `1`, `{}`, `{"runId":"r"}`, `{"runId":1,"status":"x"}`, `{"runId":"r","status":"x","runId":"r"}`, `{"runId":"r","status":"x","agent":1}`, text[:20]} {
		_, err := ParseSnapshot([]byte(bad))
		require.Error(t, err, bad)
	}
	require.True(t, strings.HasPrefix(text, "{"))
}

const snapshotOwner = `{"tenant":"acme","subject":{"issuer":"https://id.example","subjectId":"ann","tenant":"acme","lane":"oidc","kind":"user"}}`

func lossNames(losses []dialect.Loss) []string {
	var names []string
	for _, l := range losses {
		names = append(names, l.What.String()+" "+l.Pointer)
	}
	return names
}

// goodSnapshot returns a snapshot that the profile accepts unchanged.
func goodSnapshot(p Profile) Snapshot {
	s := Snapshot{RunID: "acme/run-000000000001", WorkflowID: "wf", Status: StatusRunning}
	if p == SchemaV2 {
		s.Owner, s.More = snapshotOwner, `{"eventLogSchemaVersion":3}`
	}
	return s
}

// Members that the schemas have no place for are listed, and so are those that
// they require in addition.
func TestSnapshotLosses(t *testing.T) {
	var ref agentevents.AgentRef
	require.NoError(t, ref.UnmarshalJSON([]byte(`{"agentId":"abc","modelClass":"writing","name":"n","team":1}`)))
	for name, c := range map[string]struct {
		change    func(s *Snapshot)
		want      string // under the schemas
		losses    []string
		rfc       string
		rfcLosses []string
	}{
		"another model class": {
			change: func(s *Snapshot) { s.Agent = agentevents.Some(ref) }, want: `"agent":{"agentId":"abc","name":"n"}`,
			losses: []string{"dropped /agent/modelClass", "dropped /agent/team"},
			rfc:    `"agent":{"agentId":"abc","modelClass":"writing","name":"n","team":1}`,
		},
		"an empty error": {
			change: func(s *Snapshot) {
				s.Error = agentevents.Some(agentevents.ErrorInfo{Details: `[1]`, Retryable: agentevents.Some(true)})
				s.ErrorMore = `{"host":"h","code":"x"}`
			},
			want:   `"error":{"code":"error","message":"error","details":{"value":[1]}}`,
			losses: []string{"made up /error/code", "made up /error/message", "altered /error/details", "dropped /error/retryable", "dropped /error/host", "dropped /error/code"},
			rfc:    `"error":{"message":"","details":[1],"retryable":true,"host":"h","code":"x"}`,
		},
		"damaged words": {
			change: func(s *Snapshot) {
				s.Error = agentevents.Some(agentevents.ErrorInfo{Code: "c\xff", Message: "a\xff", Details: `{}`})
			},
			want: `"error":{"code":"c�","message":"a�","details":{}}`, losses: []string{"altered /error/code", "altered /error/message"},
			rfc: `"error":{"code":"c�","message":"a�","details":{}}`, rfcLosses: []string{"altered /error/code", "altered /error/message"},
		},
		"a class of all profiles": {
			change: func(s *Snapshot) {
				s.Agent = agentevents.Some(agentevents.AgentRef{AgentID: "abc", ModelClass: agentevents.ModelReasoning})
			},
			want: `"agent":{"agentId":"abc","modelClass":"reasoning"}`, rfc: `"agent":{"agentId":"abc","modelClass":"reasoning"}`,
		},
		"a member twice": {
			change: func(s *Snapshot) { s.More = `{"status":"paused","eventLogSchemaVersion":3}` }, want: `"status":"running"`, losses: []string{"dropped /status"},
			rfc: `"status":"running"`, rfcLosses: []string{"dropped /status"},
		},
	} {
		for _, p := range []Profile{RFC0002, SchemaV1, SchemaV2} {
			s := goodSnapshot(p)
			_, losses, err := AppendSnapshot(nil, s, p)
			require.NoError(t, err)
			require.Empty(t, losses)
			c.change(&s)
			out, losses, err := AppendSnapshot(nil, s, p)
			require.NoError(t, err, "%s %s", p, name)
			want, wantLosses := c.want, c.losses
			if p == RFC0002 {
				want, wantLosses = c.rfc, c.rfcLosses
			}
			require.Contains(t, string(out), want, "%s %s", p, name)
			require.ElementsMatch(t, wantLosses, lossNames(losses), "%s %s", p, name)
		}
	}
}

// A snapshot that the schemas refuse is not written.
func TestSnapshotRefuses(t *testing.T) {
	long := strings.Repeat("x", 300)
	ref := func(text string) func(s *Snapshot) {
		return func(s *Snapshot) {
			s.Agent.OK = true
			if err := s.Agent.V.UnmarshalJSON([]byte(text)); err != nil {
				panic(err)
			}
		}
	}
	more := func(members string) func(s *Snapshot) {
		return func(s *Snapshot) { s.More = agentevents.JSON(`{"eventLogSchemaVersion":3,` + members + `}`) }
	}
	metrics := func(text agentevents.JSON) func(s *Snapshot) { return func(s *Snapshot) { s.Metrics = text } }
	for _, c := range []struct {
		pointer string
		change  func(s *Snapshot)
		onlyV2  bool
	}{
		{"/agent/memoryRef", ref(`{"agentId":"abc","memoryRef":"` + long + `"}`), false},
		{"/agent/name", ref(`{"agentId":"abc","name":5}`), false},
		{"/agent/sourceManifestId", ref(`{"agentId":"abc","sourceManifestId":"` + long + `"}`), false},
		{"/agent/channel", ref(`{"agentId":"abc","channel":""}`), false},
		{"/agent", ref(`{"agentId":"abc","version":"1","channel":"stable"}`), false},
		{"/agent", func(s *Snapshot) {
			s.Agent = agentevents.Some(agentevents.AgentRef{AgentID: "abc", AgentSharing: "\xff"})
		}, false},
		{"/agent/agentId", ref(`{"agentId":""}`), false},
		{"/runId", func(s *Snapshot) { s.RunID += "\xff" }, false},
		{"/startedAt", func(s *Snapshot) { s.StartedAt = time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC) }, false},
		{"/metrics", metrics(`[]`), false},
		{"/metrics/openwopCost", metrics(`{"openwopCost":1}`), false},
		{"/metrics/openwopCost/usd", metrics(`{"openwopCost":{"usd":"x"}}`), false},
		{"/metrics/openwopCost/usd", metrics(`{"openwopCost":{"usd":-1}}`), false},
		{"/metrics/openwopCost/tokens/input", metrics(`{"openwopCost":{"tokens":{"input":1.5}}}`), false},
		{"/metrics/openwopCost/tokens/total", metrics(`{"openwopCost":{"tokens":{"total":1}}}`), false},
		{"/metrics/openwopCost/tokens", metrics(`{"openwopCost":{"tokens":1}}`), false},
		{"/metrics/openwopCost/model", metrics(`{"openwopCost":{"model":1}}`), false},
		{"/metrics/openwopCost/duration_ms", metrics(`{"openwopCost":{"duration_ms":-1}}`), false},
		{"/metrics/openwopCost/currency", metrics(`{"openwopCost":{"currency":"EUR"}}`), false},
		{"/metrics/other", metrics(`{"other":1}`), true},
		{"/tags/0", more(`"tags":["` + long + `"]`), false},
		{"/tags", more(`"tags":[` + strings.Repeat(`"a",`, 100) + `"a"]`), false},
		{"/tags", more(`"tags":"a"`), false},
		{"/extensions/bad", more(`"extensions":{"bad":{}}`), true},
		{"/extensions/acme.x.y", more(`"extensions":{"acme.x.y":{}}`), true},
		{"/extensions/acme.x", more(`"extensions":{"acme.x":1}`), true},
		{"/extensions", more(`"extensions":1`), true},
		{"/other", more(`"other":1`), true},
		{"/startedAt", func(s *Snapshot) { s.StartedAt = time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC) }, false},
		{"/error/details", func(s *Snapshot) { s.Error = agentevents.Some(agentevents.ErrorInfo{Details: `{bad`}) }, false},
		{"/error", func(s *Snapshot) { s.Error, s.ErrorMore = agentevents.Some(agentevents.ErrorInfo{}), `{"a":` }, false},
		{"", func(s *Snapshot) { s.More = `[]` }, false},
	} {
		for _, p := range []Profile{SchemaV1, SchemaV2} {
			s := goodSnapshot(p)
			c.change(&s)
			out, _, err := AppendSnapshot([]byte("x"), s, p)
			if c.onlyV2 && p == SchemaV1 {
				require.NoError(t, err, c.pointer)
				continue
			}
			var v *agentevents.RuleError
			require.ErrorAs(t, err, &v, "%s %s: %s", p, c.pointer, out)
			require.Equal(t, c.pointer, v.Pointer, "%s %v", p, err)
			require.Equal(t, "x", string(out))
		}
	}
	s := goodSnapshot(SchemaV2)
	s.Metrics = `{"openwopCost":{"usd":0.1,"tokens":{"input":1,"output":2},"model":"m","provider":"p","duration_ms":5}}`
	s.More = `{"eventLogSchemaVersion":3,"tags":["a"],"extensions":{"acme.my-state":{}}}`
	_, _, err := AppendSnapshot(nil, s, SchemaV2)
	require.NoError(t, err)
}
