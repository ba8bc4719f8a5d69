package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What ls and show say of logs is read by people: read the diff.
func TestShow(t *testing.T) {
	capture := exec("", "import", "claude", "--time", "2026-01-02T15:04:05Z", "../../capture/claude/testdata/subagent.stream.jsonl")
	require.Zero(t, capture.code, capture.err)
	quickstart := exec(capture.out, "ls", "-", clean, broken)
	require.Equal(t, exitProblems, quickstart.code)
	golden(t, "ls.txt", quickstart.out)
	golden(t, "show.txt", exec(capture.out, "show", "-").out+"\n"+exec("", "show", "--all", broken).out+"\n"+exec("", "show", "--run", "r1", clean, broken).out)

	require.Contains(t, exec("", "show", broken).err, "the log has 2 runs: choose one with --run, or --all; 'agentevents ls' lists them")
	require.Equal(t, exitUsage, exec("", "show", "--run", "nobody", clean).code)
	require.Empty(t, exec("", "ls", "--status", "failed", clean).out)
	require.Equal(t, result{}, exec("", "ls", "-"))
	require.Equal(t, result{}, exec("", "show", "-"))
}
