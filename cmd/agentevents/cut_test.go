package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The rules of a run that retention has cut, or a file that begins inside it, are not broken by the
// missing events: check warns and accuses nobody.
func TestCheckRunWithoutItsBeginning(t *testing.T) {
	head := `{"id":"eN","sequence":N,"timestamp":"2026-11-01T09:00:00.000Z","schemaVersion":"1.0","runId":"r1","agentId":"a",`
	var lines []string
	for i, rest := range []string{
		`"type":"agent.text","payload":{"text":"Two."}}`,
		`"type":"agent.transition","marks":["synthetic"],"payload":{"from":"response","to":"tool_result"}}`,
		`"type":"agent.toolReturned","payload":{"callId":"c1","toolId":"Read","status":"ok"}}`,
		`"type":"agent.transition","marks":["synthetic"],"payload":{"from":"tool_result","to":"converged"}}`,
		`"type":"agent.ended","payload":{"outcome":"converged"}}`,
	} {
		lines = append(lines, strings.ReplaceAll(head, "N", string(rune('4'+i)))+rest+"\n")
	}
	cut := filepath.Join(t.TempDir(), "cut.jsonl")
	require.NoError(t, os.WriteFile(cut, []byte(strings.Join(lines, "")), 0o600))
	missing := "warning: run \"r1\": 4 sequence numbers are missing: 0-3\n"
	require.Equal(t, result{out: missing}, exec("", "check", cut))

	log := filepath.Join(t.TempDir(), "run.jsonl")
	require.NoError(t, os.WriteFile(log+".000002", []byte(strings.Join(lines[:2], "")), 0o600))
	require.NoError(t, os.WriteFile(log, []byte(strings.Join(lines[2:], "")), 0o600))
	require.Equal(t, result{out: "warning: " + log + ".000002: the log begins here, with segment 2: those before it were removed\n" + missing}, exec("", "check", log))
	require.Equal(t, 1, exec("", "check", "--complete", log).code)
}
