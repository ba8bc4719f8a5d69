package snapshot

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/eventtest"
)

func TestSnapshot(t *testing.T) {
	log, err := os.ReadFile("../testdata/rfc0002.jsonl")
	require.NoError(t, err)
	events := decodeAll(t, openwop.Options{}, string(log))
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for _, ev := range events {
		if ev.RunID == "r1" {
			fold.Apply(ev)
		}
	}
	s, err := Of(fold.Snapshot())
	require.NoError(t, err)
	s.RunOrchestrator = agentevents.Some(agentevents.AgentRef{AgentID: "core.supervisor", ModelClass: agentevents.ModelCoding, AgentSharing: agentevents.SharingShared})
	out, losses, err := Append(nil, s, openwop.RFC0002)
	require.NoError(t, err)
	require.Empty(t, losses)
	require.Contains(t, string(out), `{"runId":"r1","workflowId":"wf","status":"completed","startedAt":"2026-05-19T10:00:00.000Z","completedAt":"2026-05-19T10:00:25.000Z","runOrchestrator":{"agentId":"core.supervisor","agentSharing":"shared","modelClass":"coding"},"nodeStates":{"n1":{"status":"done"}`)
	require.Contains(t, string(out), `"channels":{"messages":[{"messageId":"m1"`)
	back, err := Parse(out)
	require.NoError(t, err)
	require.Equal(t, s, back)

	out, losses, err = Append(nil, s, openwop.SchemaV1)
	require.NoError(t, err)
	require.Equal(t, []string{"dropped /runOrchestrator/agentSharing", "altered /runOrchestrator/modelClass"}, lossNames(losses))
	require.Contains(t, string(out), `"runOrchestrator":{"agentId":"core.supervisor","modelClass":"code"}`)
	out, losses, err = Append([]byte("x"), s, openwop.SchemaV2)
	require.Error(t, err)
	require.Empty(t, losses)
	require.Equal(t, "x", string(out))
	s.RunID, s.Owner = "acme/run-000000000001", snapshotOwner
	out, losses, err = Append([]byte("x"), s, openwop.SchemaV2)
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
	of, err := Of(r)
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
		s, err := Parse([]byte(`{"runId":"r","status":"failed","error":` + text + `}`))
		require.NoError(t, err)
		want.RunID, want.Status = "r", StatusFailed
		require.Equal(t, want, s, text)
	}
	for _, bad := range []string{`5`, `{"message":1}`} {
		_, err := Parse([]byte(`{"runId":"r","status":"failed","error":` + bad + `}`))
		require.ErrorContains(t, err, "error")
	}

	text := `{"runId":"r","status":"napping","error":{"code":"c","message":"m"},"metrics":{"openwopCost":{"usd":0.10}},"tags":["a"],"x":1}`
	s, err := Parse([]byte(text))
	require.NoError(t, err)
	out, losses, err := Append(nil, s, openwop.RFC0002)
	require.NoError(t, err)
	require.Empty(t, losses)
	require.Equal(t, text, string(out), "extra members and unknown statuses survive")
	for _, bad := range []string{``, `1`, `{}`, `{"runId":"r"}`, `{"runId":1,"status":"x"}`, `{"runId":"r","status":"x","runId":"r"}`, `{"runId":"r","status":"x","agent":1}`, text[:20]} {
		_, err := Parse([]byte(bad))
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
func goodSnapshot(p openwop.Profile) Snapshot {
	s := Snapshot{RunID: "acme/run-000000000001", WorkflowID: "wf", Status: StatusRunning}
	if p == openwop.SchemaV2 {
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
		for _, p := range []openwop.Profile{openwop.RFC0002, openwop.SchemaV1, openwop.SchemaV2} {
			s := goodSnapshot(p)
			_, losses, err := Append(nil, s, p)
			require.NoError(t, err)
			require.Empty(t, losses)
			c.change(&s)
			out, losses, err := Append(nil, s, p)
			require.NoError(t, err, "%s %s", p, name)
			want, wantLosses := c.want, c.losses
			if p == openwop.RFC0002 {
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
		for _, p := range []openwop.Profile{openwop.SchemaV1, openwop.SchemaV2} {
			s := goodSnapshot(p)
			c.change(&s)
			out, _, err := Append([]byte("x"), s, p)
			if c.onlyV2 && p == openwop.SchemaV1 {
				require.NoError(t, err, c.pointer)
				continue
			}
			var v *agentevents.RuleError
			require.ErrorAs(t, err, &v, "%s %s: %s", p, c.pointer, out)
			require.Equal(t, c.pointer, v.Pointer, "%s %v", p, err)
			require.Equal(t, "x", string(out))
		}
	}
	s := goodSnapshot(openwop.SchemaV2)
	s.Metrics = `{"openwopCost":{"usd":0.1,"tokens":{"input":1,"output":2},"model":"m","provider":"p","duration_ms":5}}`
	s.More = `{"eventLogSchemaVersion":3,"tags":["a"],"extensions":{"acme.my-state":{}}}`
	_, _, err := Append(nil, s, openwop.SchemaV2)
	require.NoError(t, err)
}

// A snapshot under the schemas has their form, or it is refused.
func TestSnapshotsKeepTheSchemas(t *testing.T) {
	good := func() Snapshot {
		return Snapshot{
			RunID: "acme/run-000000000001", WorkflowID: "wf", Status: StatusRunning, Owner: `{"tenant":"acme","subject":` + goodSubject + `}`, CurrentNodeID: "n1",
			NodeStates: `{}`, Variables: `{}`, Channels: `{}`, Metrics: `{}`, More: `{"engineVersion":1,"tags":["a"],"extensions":{}}`,
		}
	}
	out, _, err := Append(nil, good(), openwop.SchemaV2)
	require.NoError(t, err)
	back, err := Parse(out)
	require.NoError(t, err)
	want := good()
	want.More = back.More // eventLogSchemaVersion and the others
	require.Equal(t, want, back)
	for pointer, bad := range map[string]func(*Snapshot){
		"/status":                func(s *Snapshot) { s.Status = "weird" },
		"/owner":                 func(s *Snapshot) { s.Owner = `5` },
		"/currentNodeId":         func(s *Snapshot) { s.CurrentNodeID = "has space" },
		"/nodeStates":            func(s *Snapshot) { s.NodeStates = `[]` },
		"/variables":             func(s *Snapshot) { s.Variables = `1` },
		"/channels":              func(s *Snapshot) { s.Channels = `null` },
		"/metrics":               func(s *Snapshot) { s.Metrics = `""` },
		"/engineVersion":         func(s *Snapshot) { s.More = `{"engineVersion":"1"}` },
		"/eventLogSchemaVersion": func(s *Snapshot) { s.More = `{"eventLogSchemaVersion":1}` },
		"/parentRunId":           func(s *Snapshot) { s.More = `{"parentRunId":"x"}` },
		"/x":                     func(s *Snapshot) { s.More = `{"x":1}` },
	} {
		s := good()
		bad(&s)
		out, _, err := Append([]byte("x"), s, openwop.SchemaV2)
		var v *agentevents.RuleError
		require.ErrorAs(t, err, &v, pointer)
		require.Equal(t, pointer, v.Pointer)
		require.Equal(t, "x", string(out))
		_, _, err = Append(nil, s, openwop.RFC0002)
		require.NoError(t, err)
	}
	s := good()
	s.Owner, s.More = `{"tenant":"acme","principal":"p"}`, `{"x":1,"engineVersion":"1"}`
	_, _, err = Append(nil, s, openwop.SchemaV1)
	require.NoError(t, err)
	s.Status = "weird"
	_, _, err = Append(nil, s, openwop.SchemaV1)
	require.Error(t, err)

	text := `{"runId":"r","status":"failed","error":{"code":"c","message":"m","retryable":true,"host":"h","a/b":1}}`
	s, err = Parse([]byte(text))
	require.NoError(t, err)
	require.JSONEq(t, `{"host":"h","a/b":1}`, string(s.ErrorMore))
	out, _, err = Append(nil, s, openwop.RFC0002)
	require.NoError(t, err)
	require.Equal(t, text, string(out))
	s.WorkflowID = "w"
	out, _, err = Append(nil, s, openwop.SchemaV1)
	require.NoError(t, err)
	require.Contains(t, string(out), `"error":{"code":"c","message":"m"}`, "it is closed")
}

// A resumed node runs, wherever the line names it, and whatever ends its waiting.
func TestResumedNodesRun(t *testing.T) {
	line := func(n int, typ, envelope, payload string) string {
		return fmt.Sprintf(`{"eventId":"e%d","runId":"r1"%s,"type":"%s","payload":%s,"timestamp":"2026-05-19T10:00:00.000Z","sequence":%d}`+"\n", n, envelope, typ, payload, n)
	}
	n1, n2 := `,"nodeId":"n1"`, `,"nodeId":"n2"`
	before := line(0, "node.started", n1, `{"nodeId":"n1","typeId":"a.b"}`) + line(1, "node.started", n2, `{"nodeId":"n2","typeId":"a.b"}`) +
		line(2, "node.suspended", n1, `{"nodeId":"n1","interruptId":"i1","reason":"low-confidence"}`) +
		line(3, "node.suspended", n2, `{"nodeId":"n2","interruptId":"i2","reason":"low-confidence"}`)
	resolved := line(4, "interrupt.resolved", n1, `{"nodeId":"n1","interruptId":"i1","kind":"approval","decision":"granted"}`)
	for name, more := range map[string]string{
		"envelope":     line(5, "node.resumed", n1, `{"nodeId":"n1","interruptId":"i1"}`),
		"payload only": line(5, "node.resumed", "", `{"nodeId":"n1","interruptId":"i1"}`),
		"answered":     resolved + line(5, "node.resumed", n1, `{"nodeId":"n1","interruptId":"i1"}`),
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range []openwop.Profile{openwop.RFC0002, openwop.SchemaV1} {
				events := decodeAll(t, openwop.Options{Profile: p}, before+more)
				f := agentevents.NewFold(agentevents.FoldOptions{})
				for _, ev := range events {
					f.Apply(ev)
				}
				s, err := Of(f.Snapshot())
				require.NoError(t, err)
				require.Equal(t, StatusRunning, s.Status)
				require.Equal(t, "n1", s.CurrentNodeID)
				require.JSONEq(t, `{"n1":{"status":"running"},"n2":{"status":"suspended"}}`, string(s.NodeStates))

				out, losses := encodeAll(t, p, events[len(events)-1:])
				require.Equal(t, more[strings.LastIndex(more[:len(more)-1], "\n")+1:], out, "it is written as it was read")
				require.Empty(t, losses)
			}
		})
	}
	// A node that the payload does not name is written in the envelope.
	ev := decodeAll(t, openwop.Options{}, line(0, "node.resumed", "", `{"nodeId":"n1"}`))[0]
	ev.NodeID = "n3"
	out, _ := encodeAll(t, openwop.SchemaV1, []agentevents.Event{ev})
	require.Contains(t, out, `"nodeId":"n3","type"`)
}

// The primary agent is the only one that acts in the run or is named in it.
func TestOwnerOfARun(t *testing.T) {
	const (
		ref    = `{"agentId":"host:a","agentSharing":"shared:team","modelClass":"coding"}`
		nodeA  = `{"nodeId":"n1","agent":` + ref + `}`
		acts   = `{"agentId":"host:a","reasoning":"x"}`
		system = `{"agentId":"core.system","toolId":"x:y","callId":"c","arguments":1}`
	)
	full := agentevents.Some(agentevents.AgentRef{AgentID: "host:a", AgentSharing: "shared:team", ModelClass: agentevents.ModelCoding})
	for name, c := range map[string]struct {
		want  agentevents.Opt[agentevents.AgentRef]
		lines string
	}{
		"it acts":                      {agentevents.Some(agentevents.AgentRef{AgentID: "host:a"}), documents("agent.reasoned", acts)},
		"a node names it":              {full, documents("node.started", nodeA)},
		"a node names it, and it acts": {full, documents("node.started", nodeA, "agent.reasoned", acts, "agent.toolCalled", system)},
		"nobody":                       {agentevents.Opt[agentevents.AgentRef]{}, documents("run.paused", `{}`)},
		"another node has another":     {agentevents.Opt[agentevents.AgentRef]{}, documents("node.started", nodeA, "agent.reasoned", acts, "node.started", `{"nodeId":"n1","agent":{"agentId":"host:b"}}`, "agent.reasoned", acts)},
		"it hands over":                {agentevents.Opt[agentevents.AgentRef]{}, documents("agent.handoff", `{"from":`+ref+`,"to":{"agentId":"host:b"}}`)},
	} {
		f := agentevents.NewFold(agentevents.FoldOptions{})
		for _, ev := range decodeAll(t, openwop.Options{}, c.lines) {
			f.Apply(ev)
		}
		s, err := Of(f.Snapshot())
		require.NoError(t, err)
		require.Equal(t, c.want, s.Agent, name)
	}
}

func decodeAll(t *testing.T, o openwop.Options, lines string) []agentevents.Event {
	t.Helper()
	return eventtest.ReadLog(t, strings.NewReader(lines), agentevents.ReaderOptions{Decoder: openwop.NewDecoder(o)}).Events()
}

func encodeAll(t *testing.T, p openwop.Profile, events []agentevents.Event) (string, []dialect.Loss) {
	t.Helper()
	e := openwop.NewEncoder(openwop.EncoderOptions{Profile: p})
	var out []byte
	for _, ev := range events {
		var err error
		out, err = e.Append(out, ev)
		require.NoError(t, err)
	}
	return string(out), e.Losses()
}

func documents(typesAndPayloads ...string) string {
	var b strings.Builder
	for i := 0; i < len(typesAndPayloads); i += 2 {
		n := string(rune('1' + i/2))
		b.WriteString(`{"eventId":"evt-000000000000` + n + `","runId":"acme/run-000000000001","nodeId":"n1","type":"` + typesAndPayloads[i] +
			`","payload":` + typesAndPayloads[i+1] + `,"timestamp":"2026-05-19T10:00:0` + n + `.000Z","sequence":` + n + `,"schemaVersion":2}` + "\n")
	}
	return b.String()
}

const goodSubject = `{"issuer":"https://id.example","subjectId":"u1","tenant":"acme","lane":"oidc","kind":"user"}`

var t0 = time.Date(2026, 5, 19, 10, 0, 7, 0, time.UTC)
