package dialect_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// suiteOf returns the settings of the suite for a document.
func suiteOf(d document) dialecttest.Dialect {
	s := d.suite
	s.Name, s.Decoder, s.Encoder = d.name, d.lenient, d.encoder
	return s
}

// The quickstart's log goes to every dialect and back. Every difference is
// listed, and the fold gives the same snapshot.
func TestQuickstartThereAndBack(t *testing.T) { thereAndBack(t, quickstart(t)) }

// The same holds for a real capture. It is not part of the project.
func TestCaptureThereAndBack(t *testing.T) { thereAndBack(t, capture(t)) }

// quickstart returns the events of the quickstart's log.
func quickstart(t testing.TB) []agentevents.Event {
	t.Helper()
	out := filepath.Join(t.TempDir(), "run.jsonl")
	cmd := exec.Command("go", "run", "./examples/quickstart", "-out", out)
	cmd.Dir = ".."
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	f, err := os.Open(out)
	require.NoError(t, err)
	defer f.Close()
	return readAll(t, f, nil)
}

// capture returns the events of a real session of Claude Code.
func capture(t testing.TB) []agentevents.Event {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "shared", "real", "claude-stream-json", "ai-systems", "raw-sdk-messages.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the real capture is not here; it is not part of the project")
	}
	require.NoError(t, err)
	defer f.Close()
	now := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
	return readAll(t, f, claude.NewDecoder(claude.Options{Time: func() time.Time { now = now.Add(time.Millisecond); return now }}))
}

func readAll(t testing.TB, f *os.File, d agentevents.Decoder) []agentevents.Event {
	t.Helper()
	var events []agentevents.Event
	for ev, err := range agentevents.NewReader(f, agentevents.ReaderOptions{Decoder: d}).All() {
		require.NoError(t, err)
		events = append(events, ev)
	}
	require.Greater(t, len(events), 40)
	return events
}

// It measures converting whole logs in every dialect beside the native format.
// Each dialect's package measures its cheapest and its dearest lines.
func BenchmarkQuickstart(b *testing.B) { benchmarkLog(b, quickstart(b)) }

func BenchmarkCapture(b *testing.B) { benchmarkLog(b, capture(b)) }

func benchmarkLog(b *testing.B, events []agentevents.Event) {
	for _, d := range documents {
		b.Run(string(d.name), func(b *testing.B) { dialecttest.BenchmarkLog(b, suiteOf(d), events) })
	}
}

func thereAndBack(t *testing.T, events []agentevents.Event) {
	for _, d := range documents {
		t.Run(string(d.name), func(t *testing.T) { dialecttest.RunLog(t, suiteOf(d), events) })
	}
	for name, profile := range map[string]openwop.Profile{"v1": openwop.SchemaV1, "v2": openwop.SchemaV2} {
		t.Run("openwop:"+name, func(t *testing.T) {
			dialecttest.RunLog(t, dialecttest.Dialect{
				Name:    dialect.OpenWOP,
				Decoder: func() agentevents.Decoder { return openwop.NewDecoder(openwop.Options{Profile: profile}) },
				Encoder: func() dialect.Encoder { return openwop.NewEncoder(openwop.EncoderOptions{Profile: profile}) },
				Ignore:  []string{"/openwop/schemaVersion"},
			}, events)
		})
	}
}
