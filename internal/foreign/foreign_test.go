package foreign

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/txtar"
)

// Every row of the table has a text that is called by its name, and the lines of a text are
// called by the name of a row of the same program, or by none. Most lines of Qwen's stream are
// lines of Claude Code, too.
func TestPrograms(t *testing.T) {
	text, err := os.ReadFile("testdata/files.txtar")
	require.NoError(t, err)
	archive := txtar.Parse(string(text))
	seen := map[string]bool{}
	for _, f := range archive.Files {
		want, _, _ := strings.Cut(f.Name, " #")
		first, after, _ := strings.Cut(f.Text, "\n")
		got, ok := Line(first)
		if !ok {
			got, _, ok = Form(Fault{Line: []byte(first), First: true, After: []byte(after)})
		}
		if !ok {
			got = Unknown
		}
		got.Name, _, _ = strings.Cut(got.Name, " as JSON over") // a document of a program whose lines are read
		require.Equal(t, want, got.Name)
		require.NotEmpty(t, got.Hint)
		seen[got.Name] = true
		for line := range strings.Lines(f.Text) {
			if other, ok := Line(strings.TrimSpace(line)); ok && strings.HasPrefix(f.Text, "{\"") {
				require.True(t, other.Program == got.Program || other.Name == ClaudeStream && got.Program == "Qwen Code", line)
			}
		}
	}
	for _, p := range programs {
		require.True(t, seen[p.name], "no text for %q", p.name)
	}
}

// The lines of the formats that are read have no other name, whatever else they hold.
func TestLinesOfLogs(t *testing.T) {
	for _, line := range []string{
		`{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"message","runId":"r","payload":{"type":"RUN_STARTED","runId":"r"}}`,
		`{"type":"session","version":3,"cwd":"/","runId":"r"}`,
		`{"type":"RUN_STARTED","threadId":"t","runId":"r","run_id":"x"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\"message_id\":1","message_id":"x"}`,
		`{"type":"STATE_SNAPSHOT","snapshot":{"data":{"type":"x"}}}`,
		`{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"agent_event"}`,
		`{"timestamp":1.5,"sequence":0,"session_id":"s","run_id":"r","type":"text_delta","content":"x"}`,
		`{"type":"flow:start","timestamp":1767517322000,"flowName":"f"}`,
		`{"id":"e","traceId":"t","spanId":"s","sessionId":"s","actor":"a","type":"agent.spawned","payload":{},"timestamp":"2026-05-05T09:00:00Z"}`,
		`{"eventId":"e","runId":"r","type":"run.paused","payload":{},"timestamp":"2026-05-19T10:00:07.000Z","sequence":0}`,
		`[]`, `{`, `text`, ``, `data:`, `{"a":1`,
	} {
		f, ok := Line(line)
		require.False(t, ok, "%s is called %s", line, f.Name)
	}
}

// A document is named by its beginning, wherever that ends.
func TestDocumentIsCut(t *testing.T) {
	const text = `{"version":1,"agent":"lead","sessionId":"s","origin":{"source":"cli"},"messages":[{"id":"m"}]}`
	begun := strings.Index(text, `"source":`) + len(`"source"`)
	for end := range text {
		f, ok := document(text[:end])
		require.Equal(t, end > begun, ok, text[:end])
		require.True(t, !ok || f.Program == "cline")
	}
}
