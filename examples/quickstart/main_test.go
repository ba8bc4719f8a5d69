package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
)

// The program's log keeps the strict rules and has the story of the package comment.
func TestQuickstart(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run.jsonl")
	require.NoError(t, record(context.Background(), filepath.Join("..", ".."), out))
	f, err := os.Open(out)
	require.NoError(t, err)
	defer f.Close()
	folded, err := ae.FoldLog(ae.NewReader(f, ae.ReaderOptions{}), ae.FoldOptions{})
	require.NoError(t, err)
	runs := slices.Collect(folded.Drain())
	require.Len(t, runs, 1)
	s := runs[0]
	require.Empty(t, s.Violations)
	require.Equal(t, ae.RunStatusCompleted, s.Status)
	for _, id := range []string{"surveyor", "reviewer"} {
		require.Equal(t, ae.OutcomeConverged, s.Agents[id].Outcome)
		require.Equal(t, ae.StatusConverged, s.Agents[id].Status)
	}
	require.Equal(t, 1, s.Tools["count"].Failed)
	require.Equal(t, 1, s.Tools["count"].OK)
	var retried bool
	for _, c := range s.ClosedCalls {
		retried = retried || c.RetryOf != "" && c.Attempt == ae.Some(2) && c.Status == ae.ToolStatusOK
	}
	require.True(t, retried, "a failed call is tried again")
	require.Len(t, s.Clarifications, 1)
	require.False(t, s.Clarifications[0].Open)
	require.Len(t, s.Handoffs, 1)
	require.Len(t, s.Audits, 3)
	require.Len(t, s.Messages, 2)

	var b bytes.Buffer
	require.NoError(t, show(&b, out))
	require.Contains(t, b.String(), "retry 2 of")
	require.Contains(t, b.String(), "0 violations")
}

// In an empty folder the run fails, and the log records the failure.
func TestQuickstartFails(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run.jsonl")
	err := record(context.Background(), t.TempDir(), out)
	require.ErrorContains(t, err, "go.mod")
	var b bytes.Buffer
	require.NoError(t, show(&b, out))
	require.Contains(t, b.String(), "✗ failed")
	require.Contains(t, b.String(), "0 violations")
}
