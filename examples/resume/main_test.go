package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestKilledAndResumed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGKILL")
	}
	var out strings.Builder
	require.NoError(t, demonstrate(t.Context(), &out))
	require.Contains(t, out.String(), `Agent write goes on in session s-write, and is told "Keep it short."`)
	require.Contains(t, out.String(), "It ended as a run that nobody has killed: true")
}

// Wherever the log of the run ends, it goes on and ends as a run that was not cut off.
func TestEveryBoundary(t *testing.T) {
	ctx := context.Background()
	whole := filepath.Join(t.TempDir(), "whole")
	require.NoError(t, work(ctx, whole, func() {}))
	want, err := restore(ctx, whole)
	require.NoError(t, err)
	store, err := runstore.Open(whole, runstore.Options{})
	require.NoError(t, err)
	var entries []runstore.Entry
	for e, err := range store.Load(ctx, runID, 0) {
		require.NoError(t, err)
		entries = append(entries, e)
	}
	require.NoError(t, store.Close())
	require.Equal(t, int(want.NextSequence), len(entries))
	for n := 1; n < len(entries); n++ { // after the last one the run has ended
		dir := filepath.Join(t.TempDir(), "cut")
		store, err := runstore.Open(dir, runstore.Options{})
		require.NoError(t, err)
		require.NoError(t, store.Append(ctx, runID, 0, entries[:n]...))
		require.NoError(t, store.Close())
		var out strings.Builder
		require.NoError(t, goOn(ctx, dir, "", &out), "cut after %d events", n)
		got, err := restore(ctx, dir)
		require.NoError(t, err)
		require.Empty(t, got.Violations, "cut after %d events", n)
		require.Equal(t, result(want), result(got), "cut after %d events", n)
		require.Equal(t, 1, strings.Count(logOf(t, dir), string(ae.KindRunResumed)))
	}
}

func logOf(t *testing.T, dir string) string {
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, paths, 1)
	text, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	return string(text)
}
