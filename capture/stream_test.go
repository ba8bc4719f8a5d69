package capture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
)

// outputs are captures of Claude Code.
func outputs(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("claude/testdata/sessions/*.stream.jsonl")
	require.NoError(t, err)
	require.Len(t, files, 4)
	out := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		out[file] = string(text)
	}
	return out
}

// linesOf reads a session.
func linesOf(t *testing.T, s *Session) (events []agentevents.Event, faults []string) {
	t.Helper()
	for line, err := range s.Lines() {
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		events = append(events, *line.Event)
	}
	return events, faults
}

// The output of Claude Code is a session: of a file, below a folder and of a stream, with the events of
// its decoder.
func TestClaudeStreams(t *testing.T) {
	off, at := &agentevents.Policy{Off: true}, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	o := Options{Redaction: off, Time: func() time.Time { return at }}
	for file, text := range outputs(t) {
		first, took, err := claude.Times(strings.NewReader(text))
		require.NoError(t, err)
		decoder := claude.NewDecoder(claude.Options{Time: o.Time, Started: at.Add(-took)})
		if !first.IsZero() {
			decoder = claude.NewDecoder(claude.Options{Time: func() time.Time { return first }, Saved: true})
		}
		var want []agentevents.Event
		for ev, err := range agentevents.NewReader(strings.NewReader(text), agentevents.ReaderOptions{Decoder: decoder}).All() {
			require.NoError(t, err)
			want = append(want, ev)
		}
		sessions, err := Open(file, o)
		require.NoError(t, err)
		require.Len(t, sessions, 1)
		require.Equal(t, "Claude Code", sessions[0].Program())
		require.Equal(t, want[0].RunID, sessions[0].ID())
		for range 2 {
			got, faults := linesOf(t, sessions[0])
			require.Empty(t, faults)
			require.Equal(t, want, got)
		}
		line, _, _ := strings.Cut(text, "\n")
		s, ok := Stream("stdin", []string{line}, strings.NewReader(text), o)
		require.True(t, ok)
		got, _ := linesOf(t, s)
		require.Equal(t, want, got)
		_, ok = NewDecoder([]string{line}, o)
		require.False(t, ok, "it would redact nothing")
	}
	sessions, err := Open("claude/testdata/sessions", Options{})
	require.NoError(t, err)
	require.Len(t, sessions, 4)
}

// The process that printed the output of a session that is here, too, is the same run. A copy of
// an output is, too, but where nothing names the process.
func TestClaudeStreamsBesideOthers(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	const named = `{"type":"system","subtype":"init","session_id":"s","uuid":"p","model":"m","claude_code_version":"99.0.0"}` + "\n"
	const said = `{"type":"assistant","session_id":"s","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"hi"}]}}` + "\n"
	write("a.jsonl", named+said)
	write("b.jsonl", named+said)
	sessions, err := Open(dir, Options{})
	require.NoError(t, err)
	require.Len(t, sessions, 1)
	require.Contains(t, sessions[0].Notes()[0], "has the same session as")
	linesOf(t, sessions[0])
	require.Contains(t, sessions[0].Notes()[1], "version 99.0.0 is newer")
	write("a.jsonl", said)
	write("b.jsonl", said)
	sessions, err = Open(dir, Options{})
	require.NoError(t, err)
	require.Len(t, sessions, 2)
	runs := map[string]bool{}
	for _, s := range sessions {
		events, _ := linesOf(t, s)
		runs[events[0].RunID] = true
	}
	require.Len(t, runs, 2)
	write("c.jsonl", `{"parentUuid":null,"sessionId":"s","type":"user","uuid":"u","timestamp":"2026-01-02T00:00:00Z","message":{"role":"user","content":"Hi"}}`+"\n")
	sessions, err = Open(dir, Options{})
	require.NoError(t, err)
	require.Len(t, sessions, 1)
	require.Len(t, sessions[0].Notes(), 2)
	require.Contains(t, sessions[0].Notes()[0], "was printed of this session and is left out")
}

// Texts are redacted, also over the deltas of a block, and a cut line is told.
func TestClaudeStreamsAreRedacted(t *testing.T) {
	const secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	const begin = `{"type":"system","subtype":"init","session_id":"s","uuid":"p","model":"m"}` + "\n" +
		`{"type":"stream_event","session_id":"s","event":{"type":"message_start","message":{"id":"m1","model":"m"}}}` + "\n" +
		`{"type":"stream_event","session_id":"s","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}` + "\n"
	text := begin
	for _, part := range []string{"key " + secret[:9], secret[9:20], secret[20:] + " end"} {
		text += `{"type":"stream_event","session_id":"s","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + part + `"}}}` + "\n"
	}
	text += `{"type":"assistant","session_id":"s","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"key ` + secret + ` end"}]}}` + "\n" + `{"type":"result","sub`
	s, ok := Stream("stdin", []string{strings.SplitN(begin, "\n", 2)[0]}, strings.NewReader(text), Options{})
	require.True(t, ok)
	events, faults := linesOf(t, s)
	require.Len(t, faults, 1)
	require.Contains(t, faults[0], "the file ends in the middle of this line")
	var streamed, whole string
	for _, ev := range events {
		switch p := ev.Payload.(type) {
		case *agentevents.TextDelta:
			streamed += p.Delta
		case *agentevents.TextCompleted:
			whole = p.Text
		}
	}
	require.Equal(t, "key ghp_[REDACTED:token] end", whole)
	require.Equal(t, whole, streamed)
	require.Equal(t, agentevents.KindRunFailed, events[len(events)-1].Kind())
}

// A saved stream that is piped has the times of its file: the present time is in none of its events.
func TestPipedStreamHasItsOwnTimes(t *testing.T) {
	for file, text := range outputs(t) {
		if !strings.Contains(text, `"timestamp"`) {
			continue
		}
		sessions, err := Open(file, Options{})
		require.NoError(t, err)
		require.Len(t, sessions, 1)
		want, _ := linesOf(t, sessions[0])
		first, _, _ := strings.Cut(text, "\n")
		piped, ok := Stream("stdin", []string{first}, strings.NewReader(text), Options{})
		require.True(t, ok)
		got, _ := linesOf(t, piped)
		require.Equal(t, want, got, file)
	}
}

// Options.Time is the time of files whose lines have none, and of no others.
func TestTimeOfFilesWithoutTimes(t *testing.T) {
	at := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for name, want := range map[string]bool{"codex-exec/tools": true, "qwen-stream/tools": true, "gemini-stream/tools": false, "codex/tools": false} {
		sessions, err := Open("testdata/"+name, Options{Time: func() time.Time { return at }})
		require.NoError(t, err)
		events, faults := linesOf(t, sessions[0])
		require.Empty(t, faults)
		for _, ev := range events {
			require.Equal(t, want, ev.Time.Equal(at), name)
		}
	}
}

// A process of Qwen Code prints no times, but how long it took.
func TestDurationOfQwenStreams(t *testing.T) {
	all, _ := snapshots(t, "testdata/qwen-stream/subagent")
	require.Equal(t, 30324*time.Millisecond, all[0].Agents["qwen"].Duration.V)
}

// A sub-agent whose call failed in the output of Qwen Code has failed too.
func TestFailedSubAgentsOfQwenStreams(t *testing.T) {
	const begin = `{"type":"system","subtype":"init","session_id":"s","model":"m","permission_mode":"default","uuid":"u1"}
{"type":"assistant","session_id":"s","uuid":"u2","parent_tool_use_id":null,"message":{"id":"u2","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c1","name":"agent","input":{"prompt":"p"}}],"usage":{"input_tokens":1,"output_tokens":1}}}
{"type":"assistant","session_id":"s","uuid":"u3","parent_tool_use_id":"c1","message":{"id":"u3","role":"assistant","model":"m","content":[{"type":"text","text":"no"}]}}
{"type":"user","session_id":"s","uuid":"u4","parent_tool_use_id":null,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1",`
	const end = `}]}}
{"type":"result","subtype":"success","session_id":"s","uuid":"u5","is_error":false,"result":"done"}
`
	for result, want := range map[string]string{
		`"content":"fine"`:                                   "",
		`"is_error":true,"content":"broken"`:                 "error",
		`"is_error":true,"content":"[Operation Cancelled] "`: "cancelled",
	} {
		path := filepath.Join(t.TempDir(), "print.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(begin+result+end), 0o600))
		all, _ := snapshots(t, path)
		require.Len(t, all[0].Agents, 2)
		require.Len(t, all[0].Messages, 1, "words without tokens")
		for id, a := range all[0].Agents {
			if id != "qwen" {
				require.Equal(t, want, a.Error.V.Code)
				require.Equal(t, want != "", a.Outcome == agentevents.OutcomeAborted)
			}
		}
	}
}
