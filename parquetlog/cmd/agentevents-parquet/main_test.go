package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/parquetlog"
)

// execute runs the command into a new folder.
func execute(t *testing.T, stdin string, args ...string) (r parquetlog.Report, stderr string, code int) {
	var out, errs bytes.Buffer
	code = run(append([]string{"-o", filepath.Join(t.TempDir(), "out")}, args...), strings.NewReader(stdin), &out, &errs)
	if out.Len() > 0 {
		require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	}
	return r, errs.String(), code
}

const native = `{"id":"1","sequence":0,"timestamp":"2026-03-01T00:00:00.000Z","type":"run.started","runId":"r","payload":{}}
{"id":"2","sequence":1,"timestamp":"2026-03-01T00:00:01.000Z","type":"run.completed","runId":"r","payload":{}}
`

// TestInputs has logs in native and other formats, compressed, in folders, as sessions and on standard
// input.
func TestInputs(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain.jsonl")
	require.NoError(t, os.WriteFile(plain, []byte(native), 0o600))
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write([]byte(native))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	packed := filepath.Join(dir, "packed.jsonl.gz")
	require.NoError(t, os.WriteFile(packed, zipped.Bytes(), 0o600))
	store := filepath.Join(dir, "store")
	require.NoError(t, os.Mkdir(store, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(store, "events.jsonl"), []byte(native), 0o600))
	kahn := `{"ts":"2026-03-01T12:00:00.000Z","run_id":"k","event":"agent_run_start","agent_id":"a","task":"t","model":"m"}` + "\n"
	sessions := "../../../capture/testdata/codex"
	for name, c := range map[string]struct {
		stdin string
		args  []string
		least int64
	}{
		"file":       {args: []string{plain}, least: 2},
		"compressed": {args: []string{packed}, least: 2},
		"store":      {args: []string{store}, least: 2},
		"stdin":      {stdin: native, args: []string{"-"}, least: 2},
		"twice":      {args: []string{plain, packed}, least: 2},
		"sessions":   {args: []string{sessions}, least: 10},
	} {
		r, stderr, code := execute(t, c.stdin, c.args...)
		require.Equal(t, exitOK, code, "%s: %s", name, stderr)
		require.Empty(t, stderr, name)
		require.GreaterOrEqual(t, r.Rows, c.least, name)
		if c.least == 2 {
			require.EqualValues(t, 2, r.Rows, name)
		}
	}
	r, _, _ := execute(t, kahn, "-")
	require.EqualValues(t, 1, r.Rows, "a log of KAHN")
}

// TestFaults has inputs of which a part or all cannot be read.
func TestFaults(t *testing.T) {
	r, stderr, code := execute(t, native+"{\n", "-")
	require.Equal(t, exitFaults, code)
	require.Contains(t, stderr, "line 3")
	require.EqualValues(t, 2, r.Rows, "the other lines are there")

	_, stderr, code = execute(t, "", "missing.jsonl")
	require.Equal(t, exitFaults, code)
	require.Contains(t, stderr, "missing.jsonl")

	_, stderr, code = execute(t, "")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "usage")

	var out, errs bytes.Buffer
	require.Equal(t, exitFailed, run([]string{"-o", os.Args[0], "-"}, strings.NewReader(native), &out, &errs), "a file in the place of the folder")
	require.Equal(t, exitOK, run([]string{"-h"}, nil, &out, &errs))
}
