package backendtest_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/internal/spans"
	"github.com/agentevents/agentevents/otelhook/internal/backendtest"
	"github.com/agentevents/agentevents/otlpjson"
)

// replay exports the events once more, with the standard library alone.
func replay(t *testing.T, endpoint string, o otlpjson.Options, list []ae.Event) otlpjson.Counts {
	t.Helper()
	x := otlpjson.NewExporter(&otlpjson.Client{Endpoint: endpoint}, o)
	for _, ev := range list {
		require.NoError(t, x.Export(t.Context(), &ev))
	}
	require.NoError(t, x.Close(t.Context()), "the answer is a success without a rejected span")
	return x.Counts()
}

// TestReplay: the spans of a log are those that the run had, once, however often it is
// exported, and count nothing again.
func TestReplay(t *testing.T) {
	live, jaeger, collector := backendtest.StartJaeger(t), backendtest.StartJaeger(t), backendtest.StartCollector(t)
	r := newRig(t, setup{traces: []string{live.Endpoint, collector.Endpoint}, metrics: collector.Endpoint})
	release(t, r, t.Context(), "run-1")
	r.export(t)
	list := r.events(t)
	id, n := traceOf(t, list), int(r.hook.Stats().Spans)
	want := live.Trace(t, id, n)
	metrics := len(collector.Data(t).Metrics)
	require.NotZero(t, metrics)

	for i := range list { // the ids are made once more
		list[i].TraceID, list[i].SpanID, list[i].ParentSpanID = "", "", ""
	}
	for range 2 {
		for _, endpoint := range []string{jaeger.Endpoint, collector.Endpoint} {
			require.Equal(t, n, replay(t, endpoint, otlpjson.Options{Service: service}, list).Spans)
		}
		got := jaeger.Trace(t, id, n)
		got.Check(t, "")
		require.Equal(t, want.Tree(), got.Tree())
		for i := range want.Spans {
			require.Equal(t, want.Spans[i].SpanID, got.Spans[i].SpanID)
			require.Equal(t, want.Spans[i].Parent(), got.Spans[i].Parent())
		}
	}
	require.Len(t, collector.Data(t).Metrics, metrics)
}

// TestSessionLogs: a session is one tree in Jaeger, and without a warning.
func TestSessionLogs(t *testing.T) {
	files, err := filepath.Glob("../../../capture/claude/testdata/*.stream.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	whole, err := filepath.Glob("../../../capture/claude/testdata/sessions/*.stream.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, whole)
	jaeger := backendtest.StartJaeger(t)
	for _, file := range append(files, whole...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			f, err := os.Open(file)
			require.NoError(t, err)
			defer f.Close()
			at, _, err := claude.Times(f)
			require.NoError(t, err)
			if at.IsZero() {
				at = epoch
			}
			_, err = f.Seek(0, io.SeekStart)
			require.NoError(t, err)
			log := ae.NewReader(f, ae.ReaderOptions{Decoder: claude.NewDecoder(claude.Options{RunID: file, Saved: true, Time: func() time.Time { return at }})})
			var list []ae.Event
			for ev, err := range log.All() {
				require.NoError(t, err)
				list = append(list, ev)
			}
			counts := replay(t, jaeger.Endpoint, otlpjson.Options{Service: service, Content: true}, list)
			require.Equal(t, 1, counts.Runs)
			trace := jaeger.Trace(t, spans.DeriveTraceID(file, 0).String(), counts.Spans)
			require.Len(t, trace.Spans, counts.Spans)
			trace.Check(t, "")
		})
	}
}
