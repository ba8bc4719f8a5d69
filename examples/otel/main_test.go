package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

var (
	update = flag.Bool("update", false, "write the golden file")
	times  = regexp.MustCompile(`(wait=)[0-9.]+|[0-9.]+ ?[nµm]?s\b`)
	ids    = regexp.MustCompile(`^trace [0-9a-f]{32} of run [0-9a-f-]{36}, log .*`)
)

// folder is a repository of one file.
func folder(t *testing.T) (dir, out string) {
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n"), 0o600))
	return dir, filepath.Join(dir, "run.jsonl")
}

func TestPrints(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	dir, out := folder(t)
	var b bytes.Buffer
	require.NoError(t, record(context.Background(), &b, dir, out))
	id := b.String()[len("trace "):][:32]
	got := ids.ReplaceAllString(b.String(), "trace ID of run ID, log LOG")
	got = times.ReplaceAllString(got, "${1}TIME")
	const golden = "testdata/golden.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)

	// The lines of the log have the ids of the trace.
	f, err := os.Open(out)
	require.NoError(t, err)
	defer f.Close()
	log := eventtest.ReadLog(t, f, ae.ReaderOptions{})
	for _, ev := range log.Events() {
		require.Equal(t, id, ev.TraceID)
		require.NotEmpty(t, ev.SpanID)
	}
	require.NotEmpty(t, log.Events())
	log.WantLaws(t, eventtest.LawOptions{})
}

// A run that fails has the error in its trace.
func TestPrintsAFailure(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	var b bytes.Buffer
	require.ErrorContains(t, record(context.Background(), &b, t.TempDir(), filepath.Join(t.TempDir(), "run.jsonl")), "go.mod")
	require.Regexp(t, `invoke_workflow survey \S+ ERROR`, b.String())
}

// The back end gets spans, and metrics and logs if it takes any.
func TestSends(t *testing.T) {
	for name, status := range map[string]int{"a Collector": http.StatusOK, "Jaeger": http.StatusNotFound} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			got := map[string]int{}
			backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				got[r.URL.Path]++
				if r.URL.Path != "/v1/traces" {
					w.WriteHeader(status)
				}
			}))
			defer backend.Close()
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", backend.URL)
			dir, out := folder(t)
			var b bytes.Buffer
			require.NoError(t, record(context.Background(), &b, dir, out))
			require.Regexp(t, ids.String()+"\n$", b.String())
			require.Equal(t, map[string]int{"/v1/traces": 1, "/v1/metrics": 1, "/v1/logs": 1}, got)
		})
	}
	t.Run("nobody", func(t *testing.T) {
		backend := httptest.NewServer(http.NotFoundHandler())
		defer backend.Close()
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", backend.URL)
		dir, out := folder(t)
		require.ErrorContains(t, record(context.Background(), io.Discard, dir, out), "404")
	})
}
