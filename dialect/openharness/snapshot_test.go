package openharness

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// A flow is paused while one of its nodes waits for an answer. The snapshot has every
// member of section 2.1.
var pausedFlow = []string{
	at("flow:start", `,"flowName":"tasks"`),
	`{"type":"node:start","nodeId":"plan","runId":"p1","timestamp":1767517322500}`,
	`{"type":"state:patch","timestamp":1767517322500,"patch":{"op":"set","path":"tasks.open","value":["a","b"]}}`,
	`{"type":"state:patch","timestamp":1767517322500,"patch":{"op":"merge","path":"tasks","value":{"done":[]}}}`,
	`{"type":"node:complete","nodeId":"plan","runId":"p1","timestamp":1767517322500,"output":{"tasks":2}}`,
	at("edge:fire", `,"from":"plan","to":"task-agent"`),
	at("edge:fire", `,"edgeId":"again","from":"review","to":"task-agent"`),
	at("loop:iterate", `,"edgeId":"again","iteration":1`),
	at("loop:iterate", `,"iteration":2`),
	`{"type":"node:skipped","nodeId":"deploy","timestamp":1767517322500,"reason":"edge"}`,
	`{"type":"node:start","nodeId":"lint","runId":"l1","timestamp":1767517322500}`,
	`{"type":"node:error","nodeId":"lint","runId":"l1","timestamp":1767517322500,"error":"boom"}`,
	of("node:start", ``),
	of("agent:start", `,"sessionId":"sess-123","prompt":"Do it"`),
	of("agent:text:delta", `,"content":"Which "`),
	of("agent:text:delta", `,"content":"one?"`),
	at("command:received", `,"command":{"type":"send","message":"for nobody"}`), // rejected, so not in the inbox (section 5.4)
	at("command:received", `,"command":{"type":"reply","promptId":"p","content":"b","runId":"exec-1"}`),
	at("command:received", `,"command":{"type":"abort","resumable":true,"reason":"lunch"}`),
	at("flow:paused", ``),
	at("command:received", `,"command":{"type":"send","message":"and be quick","runId":"exec-1"}`),
}

const pausedSnapshot = `{"runId":"flow-run","status":"paused",` +
	`"outputs":{"deploy":{"skipped":true,"reason":"edge"},"lint":{"error":"boom"},"plan":{"tasks":2}},` +
	`"state":{"tasks":{"open":["a","b"],"done":[]}},` +
	`"nodeStatus":{"deploy":"done","lint":"failed","plan":"done","task-agent":"running"},` +
	`"edgeStatus":{"again":"fired","plan-\u003etask-agent":"fired"},` +
	`"loopCounters":{"again":2},` +
	`"inbox":[{"type":"reply","promptId":"p","content":"b","runId":"exec-1"},{"type":"send","message":"and be quick","runId":"exec-1"}],` +
	`"agentSessions":{"task-agent":"sess-123"}}`

func TestSnapshotOfAPausedFlow(t *testing.T) {
	events := decodeLines(t, Options{Strict: true}, pausedFlow...)
	s := fold(t, events)
	require.Equal(t, agentevents.RunStatusPaused, s.Status)
	require.Equal(t, "tasks", s.Name)
	require.Equal(t, "Which one?", s.Agents["exec-1"].Text)
	text, err := AppendSnapshot(nil, s)
	require.NoError(t, err)
	want := strings.ReplaceAll(pausedSnapshot, `\u003e`, ">")
	require.Equal(t, want, string(text))

	// Section 5: load the snapshot, resume, go on. The parsed snapshot and the rest of
	// the log fold to the same as the complete log.
	rest := []string{
		at("command:received", `,"command":{"type":"resume","message":"go on"}`),
		at("flow:resumed", ``),
		at("flow:resumed", ``), // the original program writes it twice
		`{"type":"node:start","nodeId":"task-agent","runId":"exec-2","timestamp":1767517322500}`,
		`{"type":"agent:start","nodeId":"task-agent","runId":"exec-2","timestamp":1767517322500,"sessionId":"sess-124","prompt":"go on"}`,
		`{"type":"agent:complete","nodeId":"task-agent","runId":"exec-2","timestamp":1767517322500,"result":"b","usage":{"inputTokens":1,"outputTokens":1},"durationMs":1,"numTurns":1}`,
		`{"type":"node:complete","nodeId":"task-agent","runId":"exec-2","timestamp":1767517322500,"output":"b"}`,
	}
	parsed, err := ParseSnapshot(text)
	require.NoError(t, err)
	again, err := parsed.AppendJSON(nil)
	require.NoError(t, err)
	require.Equal(t, want, string(again))
	require.Equal(t, s.Status, parsed.Run.Status)
	require.Equal(t, s.NodeRuns, parsed.Run.NodeRuns)
	require.Equal(t, s.NodeStatus, parsed.Run.NodeStatus)

	f, err := agentevents.ResumeFold(parsed.Run, agentevents.FoldOptions{})
	require.NoError(t, err)
	for _, ev := range decodeLines(t, Options{}, rest...) {
		f.Apply(ev)
	}
	resumed, err := AppendSnapshot(nil, f.Snapshot())
	require.NoError(t, err)
	require.Empty(t, f.Snapshot().Violations)
	whole, err := AppendSnapshot(nil, fold(t, decodeLines(t, Options{}, append(append([]string{}, pausedFlow...), rest...)...)))
	require.NoError(t, err)
	require.Equal(t, string(whole), string(resumed))
	require.Contains(t, string(resumed), `"status":"running"`)
	require.Contains(t, string(resumed), `"task-agent":"done"`)
	require.Contains(t, string(resumed), `"agentSessions":{"task-agent":"sess-124"}`)
}

func TestEmptySnapshot(t *testing.T) {
	const empty = `{"status":"idle","outputs":{},"state":{},"nodeStatus":{},"edgeStatus":{},"loopCounters":{},"inbox":[],"agentSessions":{}}`
	for _, r := range []*agentevents.RunSnapshot{{}, agentevents.NewFold(agentevents.FoldOptions{}).Snapshot()} {
		text, err := AppendSnapshot([]byte("x"), r)
		require.NoError(t, err)
		require.Equal(t, "x"+empty, string(text))
	}
	s, err := ParseSnapshot([]byte(`{"status":"idle"}`))
	require.NoError(t, err)
	require.Equal(t, agentevents.NewFold(agentevents.FoldOptions{}).Snapshot(), s.Run)
	text, err := s.AppendJSON(nil)
	require.NoError(t, err)
	require.Equal(t, empty, string(text))
}

func TestSnapshotStatuses(t *testing.T) {
	for _, c := range []struct {
		native agentevents.RunStatus
		word   string
		back   agentevents.RunStatus
	}{
		{agentevents.RunStatusPending, "idle", agentevents.RunStatusPending},
		{agentevents.RunStatusRunning, "running", agentevents.RunStatusRunning},
		{agentevents.RunStatusWaiting, "running", agentevents.RunStatusRunning},
		{agentevents.RunStatusPaused, "paused", agentevents.RunStatusPaused},
		{agentevents.RunStatusCompleted, "complete", agentevents.RunStatusCompleted},
		{agentevents.RunStatusFailed, "complete", agentevents.RunStatusCompleted},
		{agentevents.RunStatusCancelling, "aborted", agentevents.RunStatusCancelled},
		{agentevents.RunStatusCancelled, "aborted", agentevents.RunStatusCancelled},
		{"stopped", "stopped", "stopped"},
	} {
		text, err := AppendSnapshot(nil, &agentevents.RunSnapshot{Status: c.native})
		require.NoError(t, err)
		require.Contains(t, string(text), `{"status":"`+c.word+`",`)
		s, err := ParseSnapshot(text)
		require.NoError(t, err)
		require.Equal(t, c.back, s.Run.Status)
		if c.native != "stopped" {
			s.Run.RunID = run
			f, err := agentevents.ResumeFold(s.Run, agentevents.FoldOptions{})
			require.NoError(t, err)
			require.Equal(t, c.back, f.Snapshot().Status, "the status that the fold derives")
		}
	}
	s, err := ParseSnapshot([]byte(`{"status":"complete","nodeStatus":{"a":"failed","b":"pending"},"edgeStatus":{"e":"skipped","f":"pending","g":"later"}}`))
	require.NoError(t, err)
	require.Equal(t, agentevents.RunStatusFailed, s.Run.Status)
	require.Equal(t, map[string]agentevents.NodeStatus{"a": agentevents.NodeStatusFailed, "b": agentevents.NodeStatusPending}, s.Run.NodeStatus)
	require.Equal(t, map[string]agentevents.EdgeStatus{"e": agentevents.EdgeStatusSkipped, "f": agentevents.EdgeStatusPending, "g": "later"}, s.Run.EdgeStatus)
	text, err := AppendSnapshot(nil, &agentevents.RunSnapshot{NodeStatus: map[string]agentevents.NodeStatus{"a": agentevents.NodeStatusSuspended}})
	require.NoError(t, err)
	require.Contains(t, string(text), `"nodeStatus":{"a":"running"}`)
}

func TestSnapshotKeepsUnknownMembers(t *testing.T) {
	const text = `{"status":"running","outputs":{"a":1.50},"state":{},"nodeStatus":{},"edgeStatus":{},"loopCounters":{"e":2},` +
		`"inbox":[{"priority":1,"type":"send","message":"hi","runId":"e"},{"type":"send","message":"hi","runId":"e","x":[1.0]}],"agentSessions":{},"version":3,"x":{"a":[null]}}`
	s, err := ParseSnapshot([]byte(text))
	require.NoError(t, err)
	out, err := s.AppendJSON(nil)
	require.NoError(t, err)
	require.Equal(t, text, string(out))
	require.Equal(t, agentevents.Command{Type: agentevents.CommandSend, Message: "hi", RunID: "e"}, s.Run.Inbox[1].Command)

	// A changed command is not written verbatim, and a consumed one is gone.
	s.Run.Inbox = s.Run.Inbox[1:]
	s.Run.Inbox[0].Command.Message = "ho"
	out, err = s.AppendJSON(nil)
	require.NoError(t, err)
	require.Contains(t, string(out), `"inbox":[{"type":"send","message":"ho","runId":"e"}],`)
}

func TestBadSnapshots(t *testing.T) {
	for _, c := range []struct{ text, pointer, want string }{
		{`[]`, "", "an object"},
		{`{}`, "", `"status" is missing`},
		{`{"status":1}`, "/status", "a string"},
		{`{"status":"idle","status":"idle"}`, "/status", "duplicate"},
		{`{"status":"idle","outputs":null}`, "/outputs", "an object"},
		{`{"status":"idle","outputs":{"a":1,"a":2}}`, "/outputs/a", "duplicate"},
		{`{"status":"idle","nodeStatus":{"a":null}}`, "/nodeStatus/a", "a string"},
		{`{"status":"idle","loopCounters":{"a":1.5}}`, "/loopCounters/a", "an integer"},
		{`{"status":"idle","inbox":{}}`, "/inbox", "an array"},
		{`{"status":"idle","inbox":[{"type":"send","type":"send"}]}`, "/inbox/0/type", "duplicate"},
		{`{"status":"idle","inbox":[{"type":"send","x":1,"x":2}]}`, "/inbox/0/x", "duplicate"},
		{`{"status":"idle","x":1,"x":2}`, "/x", "duplicate"},
		{`{"status":"idle"`, "", "',' or '}'"},
		{`{"status":"idle"} x`, "", "end of text"},
	} {
		_, err := ParseSnapshot([]byte(c.text))
		var le *agentevents.LineError
		require.ErrorAs(t, err, &le, c.text)
		require.Equal(t, c.pointer, le.Pointer, c.text)
		require.ErrorContains(t, err, c.want, c.text)
	}
	out, err := AppendSnapshot([]byte("x"), nil)
	require.Error(t, err)
	require.Equal(t, "x", string(out))
	out, err = AppendSnapshot([]byte("x"), &agentevents.RunSnapshot{State: map[string]agentevents.JSON{"a": `{`}})
	require.ErrorContains(t, err, "state")
	require.Equal(t, "x", string(out))
}

// Text that is not valid UTF-8 is refused: it changes when it is written, and two keys
// become the same.
func TestSnapshotsOfDamagedText(t *testing.T) {
	for in, run := range map[string]*agentevents.RunSnapshot{
		"runId":         {RunState: agentevents.RunState{RunID: "\xff"}},
		"status":        {Status: "\xff"},
		"outputs":       {Outputs: map[string]agentevents.JSON{"a": "\"\xff\""}},
		"state":         {State: map[string]agentevents.JSON{"\xff": "1"}},
		"nodeStatus":    {NodeStatus: map[string]agentevents.NodeStatus{"\xfe": "done", "\xff": "done"}},
		"edgeStatus":    {EdgeStatus: map[string]agentevents.EdgeStatus{"a": "\xff"}},
		"loopCounters":  {LoopCounters: map[string]int{"\xff": 1}},
		"inbox":         {Inbox: []agentevents.InboxItem{{Command: agentevents.Command{Type: "send", Message: "\xff"}}}},
		"agentSessions": {AgentSessions: map[string]string{"a": "\xff"}},
	} {
		out, err := AppendSnapshot([]byte("x"), run)
		require.ErrorContains(t, err, in+" of the snapshot")
		require.Equal(t, "x", string(out))
	}
	// The replacement character itself is legal.
	text, err := AppendSnapshot(nil, &agentevents.RunSnapshot{NodeStatus: map[string]agentevents.NodeStatus{"\ufffd": "done"}})
	require.NoError(t, err)
	s, err := ParseSnapshot(text)
	require.NoError(t, err)
	require.Contains(t, s.Run.NodeStatus, "\ufffd")
}

func FuzzSnapshot(f *testing.F) {
	f.Add([]byte(strings.ReplaceAll(pausedSnapshot, `\u003e`, ">")))
	f.Add([]byte(`{"status":"x","inbox":[{"x":1}],"y":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseSnapshot(text)
		if err != nil {
			return
		}
		out, err := s.AppendJSON(nil)
		require.NoError(t, err)
		again, err := ParseSnapshot(out)
		require.NoError(t, err)
		out2, err := again.AppendJSON(nil)
		require.NoError(t, err)
		require.Equal(t, string(out), string(out2))
	})
}
