package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
)

// TestSums reads a made home folder: its sessions are whole, and have the sums that are printed.
func TestSums(t *testing.T) {
	dir := t.TempDir()
	sums, err := write(dir, 2*len(formats), 400<<10)
	require.NoError(t, err)
	require.Greater(t, sums.ModelCalls, 2*callsInTurn*sums.Sessions, "several turns")
	sessions, err := capture.Open(dir, capture.Options{})
	require.NoError(t, err)
	require.Len(t, sessions, sums.Sessions)
	programs := map[string]int{}
	got := Sums{Sessions: len(sessions), Bytes: sums.Bytes}
	for _, s := range sessions {
		programs[s.Program()]++
		fold := agentevents.NewFold(agentevents.FoldOptions{})
		for line, err := range s.Lines() {
			require.NoError(t, err, s.Files())
			fold.Apply(*line.Event)
			if _, ok := line.Event.Payload.(*agentevents.ModelReturned); ok {
				got.ModelCalls++
			}
		}
		run := fold.Snapshot()
		require.Empty(t, run.Violations)
		require.Equal(t, agentevents.RunStatusCompleted, run.Status, s.Files())
		require.Empty(t, s.Unread(), s.Files())
		got.Input += int(run.Usage.Usage.InputTokens)
		got.CacheRead += int(run.Usage.Usage.CacheReadInputTokens.V)
		got.Output += int(run.Usage.Usage.OutputTokens)
	}
	require.Equal(t, *sums, got)
	require.Len(t, programs, len(formats))

	_, err = write("", 1, 1)
	require.Error(t, err)
}
