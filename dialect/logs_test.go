package dialect_test

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// A format is one way to write the lines of a document. The command line has the
// same names.
type format struct {
	name  string
	suite dialecttest.Dialect
}

// formats lists the formats of all documents. The lines of kaos:sse have the times
// that a program without an anchor writes.
func formats() []format {
	var list []format
	add := func(name string, s dialecttest.Dialect, d func() agentevents.Decoder, e func() dialect.Encoder) {
		s.Decoder, s.Encoder = d, e
		list = append(list, format{name, s})
	}
	for _, d := range documents {
		s := d.suite
		s.Name = d.name
		add(string(d.name), s, d.lenient, d.encoder)
		switch d.name {
		case dialect.KAOS:
			s.Ignore = append(slices.Clone(s.Ignore), "/kaos/~1timestamp")
			add("kaos:sse", s, func() agentevents.Decoder { return kaos.NewDecoder(kaos.Options{}) },
				func() dialect.Encoder { return kaos.NewEncoder(kaos.EncoderOptions{SSE: true}) })
		case dialect.OpenWOP:
			for name, profile := range map[string]openwop.Profile{"openwop:v1": openwop.SchemaV1, "openwop:v2": openwop.SchemaV2} {
				add(name, s, func() agentevents.Decoder { return openwop.NewDecoder(openwop.Options{Profile: profile}) },
					func() dialect.Encoder { return openwop.NewEncoder(openwop.EncoderOptions{Profile: profile}) })
			}
		}
	}
	add("agui", dialecttest.Dialect{Name: dialect.AGUI}, func() agentevents.Decoder { return agui.NewDecoder(agui.Options{}) },
		func() dialect.Encoder { return agui.NewEncoder(agui.EncoderOptions{}) })
	slices.SortFunc(list, func(a, b format) int { return cmp.Compare(a.name, b.name) })
	return list
}

// The quickstart's log goes to every dialect and back. Every difference is
// listed, and the fold gives the same snapshot.
func TestQuickstartThereAndBack(t *testing.T) { thereAndBack(t, quickstart(t)) }

// The same holds for a real capture. It is not part of the project.
func TestCaptureThereAndBack(t *testing.T) { thereAndBack(t, capture(t)) }

// quickstart returns the events of the quickstart's log.
func quickstart(t testing.TB) []agentevents.Event {
	t.Helper()
	golden := readGolden(t, "quickstart")
	return readAll(t, golden.Get("native"), nil)
}

// capture returns the events of a real session of Claude Code.
func capture(t testing.TB) []agentevents.Event {
	t.Helper()
	log, err := os.ReadFile(filepath.Join("..", "..", "shared", "real", "claude-stream-json", "ai-systems", "raw-sdk-messages.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the real capture is not here; it is not part of the project")
	}
	require.NoError(t, err)
	now := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
	return readAll(t, string(log), claude.NewDecoder(claude.Options{Time: func() time.Time { now = now.Add(time.Millisecond); return now }}))
}

func readAll(t testing.TB, log string, d agentevents.Decoder) []agentevents.Event {
	t.Helper()
	events := readLog(t, log, d)
	require.Greater(t, len(events), 40)
	return events
}

// It measures converting whole logs in every dialect beside the native format.
// Each dialect's package measures its cheapest and its dearest lines.
func BenchmarkQuickstart(b *testing.B) { benchmarkLog(b, quickstart(b)) }

func BenchmarkCapture(b *testing.B) { benchmarkLog(b, capture(b)) }

func benchmarkLog(b *testing.B, events []agentevents.Event) {
	for _, f := range formats() {
		b.Run(f.name, func(b *testing.B) { dialecttest.BenchmarkLog(b, f.suite, events) })
	}
}

func thereAndBack(t *testing.T, events []agentevents.Event) {
	for _, f := range formats() {
		t.Run(f.name, func(t *testing.T) { dialecttest.RunLog(t, f.suite, events) })
	}
}
