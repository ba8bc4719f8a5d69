package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/query"
	"github.com/agentevents/agentevents/querytest"
)

// printed is the output of an agent program.
const printed = `{"type":"system","subtype":"init","session_id":"s-1","model":"m","uuid":"u-0"}
{"type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"text","text":"the key is sk-ant-api03-AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHHIIIIJJJJ"}]},"session_id":"s-1","uuid":"u-1"}
{"type":"result","subtype":"success","is_error":false,"duration_ms":12,"num_turns":1,"result":"done","session_id":"s-1","total_cost_usd":0.1,"usage":{"input_tokens":3,"output_tokens":4},"uuid":"u-2"}
`

func TestRecordCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs that are recorded are shell scripts")
	}
	dir := filepath.Join(t.TempDir(), "fixtures")
	capture := filepath.Join(t.TempDir(), "capture")
	require.NoError(t, os.WriteFile(capture, []byte(printed), 0o600))
	script := func(text string) []string {
		return []string{"--", "sh", "-c", text, "agent", "-p", "Do it", "--resume=s-0"}
	}
	record := func(flags []string, text string) result {
		return exec("", append(append([]string{"record", "--output", dir, "--node", "n"}, flags...), script(text)...)...)
	}
	got := record(nil, "cat "+capture+"; echo working >&2")
	require.Zero(t, got.code, got.err)
	require.Equal(t, printed, got.out, "the output of the program is not changed")
	require.Contains(t, got.err, "working\n")
	require.Contains(t, got.err, "masked 2: token 2")
	require.Contains(t, got.err, "recorded 9 events: ")

	log := filepath.Join(dir, "n.jsonl")
	require.Contains(t, exec("", "tree", log).out, "n ✓ converged")
	require.Zero(t, exec("", "check", log).code)
	for _, file := range []string{log, filepath.Join(dir, "n.json")} {
		require.NotContains(t, read(t, file), "sk-ant-api03")
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), file)
	}
	fixtures, err := querytest.Load(dir)
	require.NoError(t, err)
	call := fixtures["n"].Calls[0]
	require.Equal(t, agentevents.JSON(`"Do it"`), call.Input.Prompt)
	require.Equal(t, "done", call.Output.Text)
	var options struct{ Resume string }
	require.NoError(t, json.Unmarshal([]byte(call.Input.Options), &options))
	require.Equal(t, "s-0", options.Resume)

	// A failing program is recorded as a failure, and record returns its status.
	got = record([]string{"--append"}, "head -n 2 "+capture+"; exit 7")
	require.Equal(t, 7, got.code, got.err)
	fixtures, err = querytest.Load(dir)
	require.NoError(t, err)
	require.Len(t, fixtures["n"].Calls, 2)
	m := querytest.NewMock(fixtures, querytest.MockOptions{})
	var last error
	for range 2 {
		for _, err := range m.Query(t.Context(), query.Request{NodeID: "n", Prompt: `"Do it"`}) {
			last = err
		}
	}
	require.EqualError(t, last, "the command ended with status 7")
	require.Equal(t, 137, record([]string{"--append"}, "cat "+capture+"; kill -9 $$").code)

	// Each is a run of its own, though all print the same id.
	require.Equal(t, result{}, exec("", "check", log))
	require.Equal(t, 4, strings.Count(exec("", "ls", log).out, "\n"), "the heading and three runs")

	// A run that cannot be recorded replaces nothing.
	before := read(t, log)
	got = record(nil, "exit 7")
	require.Equal(t, 7, got.code)
	require.Contains(t, got.err, "printed nothing that can be recorded")
	got = record(nil, "echo hello")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "printed nothing that can be recorded")
	got = exec("", "record", "--output", dir, "--node", "n", "--", "/nowhere/agent")
	require.Equal(t, exitUsage, got.code)
	require.Equal(t, before, read(t, log))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2)

	for args, want := range map[string]string{
		"record -- x":            "--output DIR is needed",
		"record --output " + dir: "a COMMAND is needed, after --",
		// With meaningless flags no program is run.
		"record --max-line 0 --output " + dir + " -- touch " + filepath.Join(dir, "ran"): "want a number of bytes above 0",
	} {
		got := exec("", strings.Fields(args)...)
		require.Equal(t, exitUsage, got.code)
		require.Contains(t, got.err, want)
	}
	require.NoFileExists(t, filepath.Join(dir, "ran"))
}
