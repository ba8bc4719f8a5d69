package dialect_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/internal/txtar"
)

func auto() *dialect.Auto {
	a := &dialect.Auto{Decoders: map[dialect.Name]agentevents.Decoder{}}
	for _, f := range formats() {
		if d, ok := documentOf(f.name); ok {
			a.Decoders[d] = f.suite.Decoder()
		}
	}
	return a
}

// documentOf returns the dialect of a format, unless the format is a profile of it.
func documentOf(format string) (dialect.Name, bool) {
	return dialect.Name(format), !strings.Contains(format, ":") && !strings.Contains(format, "-")
}

// Auto takes no line of another program for one of a dialect, whatever its decoders have read
// before.
func TestAutoRefusesFilesOfOtherPrograms(t *testing.T) {
	text, err := os.ReadFile("../internal/foreign/testdata/files.txtar")
	require.NoError(t, err)
	before := map[dialect.Name]string{
		dialect.Native:      `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","payload":{}}`,
		dialect.KAHN:        `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"agent_run_start","agent_id":"a"}`,
		dialect.MultiAgent:  `{"id":"e","traceId":"t","spanId":"s","sessionId":"s","runId":"r","actor":"a","type":"agent.spawned","payload":{"agentTask":"x"},"timestamp":"2026-05-05T09:00:00Z"}`,
		dialect.KAOS:        `{"timestamp":1.5,"sequence":0,"session_id":"s","run_id":"r","type":"text_delta","content":"x"}`,
		dialect.OpenHarness: `{"type":"flow:start","timestamp":1767517322000,"flowName":"f"}`,
		dialect.OpenWOP:     `{"eventId":"e","runId":"r","type":"run.paused","payload":{},"timestamp":"2026-05-05T09:00:00Z","sequence":0}`,
		dialect.AGUI:        `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`,
		"":                  "",
	}
	for _, f := range txtar.Parse(string(text)).Files {
		want, _, _ := strings.Cut(f.Name, " #")
		for name, line := range before {
			a := auto()
			if line != "" {
				require.Equal(t, name, dialect.Detect(line))
				require.True(t, name == dialect.Native || a.Decoders[name] != nil, name)
				events := 0
				for _, err := range agentevents.NewReader(strings.NewReader(line), agentevents.ReaderOptions{Decoder: &noEnd{a}}).All() {
					require.NoError(t, err, line)
					events++
				}
				require.NotZero(t, events, line)
			}
			a = &dialect.Auto{Decoders: a.Decoders}
			var foreign *agentevents.ForeignError
			for ev, err := range agentevents.NewReader(strings.NewReader(f.Text), agentevents.ReaderOptions{Decoder: &noEnd{a}}).All() {
				require.Error(t, err, "%s after a line of %q: %v", f.Name, name, ev)
				require.ErrorAs(t, err, &foreign, "%s after a line of %q", f.Name, name)
				plain, _, _ := strings.Cut(foreign.Name, " as JSON over") // a document of a program whose lines are read
				require.Equal(t, want, plain, "after a line of %q", name)
			}
			require.NotNil(t, foreign, f.Name)
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(f.Text, "data: "), "\n")
		require.Equal(t, want == "a JSON array", dialect.Detect(strings.Trim(first, "[]")) != "", "of a dialect: %s", first)
	}
}

// A noEnd is a decoder of several files.
type noEnd struct{ agentevents.Decoder }

func (noEnd) End(dst []agentevents.Event) ([]agentevents.Event, error) { return dst, nil }

// Lines of another program in front of a log, and in it, take nothing from it.
func TestAutoReadsALogAfterOtherLines(t *testing.T) {
	const (
		pi  = `{"type":"session","version":3,"id":"s","cwd":"/"}` + "\n"
		log = `{"type":"RUN_STARTED","threadId":"t","runId":"r"}` + "\n" + `{"type":"STATE_SNAPSHOT","snapshot":{"data":1}}` + "\n" +
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}` + "\n"
	)
	kinds := func(text string) (kinds []string) {
		d := &dialect.Auto{Decoders: map[dialect.Name]agentevents.Decoder{dialect.AGUI: agui.NewDecoder(agui.Options{})}}
		for ev, err := range agentevents.NewReader(strings.NewReader(text), agentevents.ReaderOptions{Decoder: d}).All() {
			if err == nil {
				kinds = append(kinds, string(ev.Kind()))
			}
		}
		return kinds
	}
	want := kinds(log)
	require.Len(t, want, 3)
	require.Equal(t, want, kinds(pi+log))
	require.Equal(t, want, kinds(strings.ReplaceAll(log, "\n", "\n"+pi)))
}
