package backendtest_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/otelhook/internal/backendtest"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares text with a file in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

// TestLive: a run that is exported while it goes on is one tree in Jaeger.
func TestLive(t *testing.T) {
	jaeger := backendtest.StartJaeger(t)
	r := newRig(t, setup{traces: []string{jaeger.Endpoint}})
	release(t, r, t.Context(), "run-1")
	r.export(t)
	trace := jaeger.Trace(t, traceOf(t, r.events(t)), int(r.hook.Stats().Spans))
	trace.Check(t, "")
	golden(t, "release.txt", trace.Tree())
}
