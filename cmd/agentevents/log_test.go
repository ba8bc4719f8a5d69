package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/runstore"
)

// gz returns a compressed text.
func gz(text string) string {
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	zw.Write([]byte(text))
	zw.Close()
	return b.String()
}

// linesOf returns lines of the run r.
func linesOf(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		b.WriteString(line("r", i))
	}
	return b.String()
}

// rotated makes a log of closed segments and an active one. Segment 3 is missing, and the
// others have one bad line each, the second.
func rotated(t *testing.T) (path string) {
	path = filepath.Join(t.TempDir(), "run.jsonl")
	for suffix, text := range map[string]string{
		".000001.gz":     gz(line("r", 0) + "bad\n" + line("r", 1)),
		".000002":        line("r", 2) + "bad\n",
		".000002.gz":     "the plain file counts",
		".000004":        line("r", 3) + "bad\n" + line("r", 4),
		"":               line("r", 5) + "bad\n" + line("r", 6),
		".torn.000001":   "torn",
		".lock":          "",
		".000004.gz.tmp": "unfinished",
	} {
		require.NoError(t, os.WriteFile(path+suffix, []byte(text), 0o600))
	}
	return path
}

// Every command that reads a log reads its segments.
func TestCommandsReadSegments(t *testing.T) {
	path := rotated(t)
	const bad = "found a bare word of 3 bytes, expected an object\n"
	report := func(prefix string) string {
		return strings.NewReplacer("PATH", path, "BAD", prefix+bad, "MISSING", prefix+"the segment is missing\n").Replace(
			"PATH.000001.gz:2: BADPATH.000002:2: BADPATH.000003: MISSINGPATH.000004:2: BADPATH:2: BAD")
	}
	require.Equal(t, result{exitProblems, linesOf(0, 7), report("")}, exec("", "cat", path))
	require.Equal(t, result{exitProblems, report("line-unreadable: "), ""}, exec("", "check", path))
	all, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path+".head", nil, 0o600))
	require.Equal(t, exec("", "check", path), exec("", append([]string{"check", path + ".head"}, all...)...), "as a shell expands run.jsonl*")
	require.NoError(t, os.Remove(path+".head"))
	for _, name := range []string{"fold", "tree", "stats", "redact", "convert --to native", "export otlp --quiet", "export chrome --quiet"} {
		r := exec("", append(strings.Fields(name), path)...)
		require.Equal(t, exitProblems, r.code, name)
		require.Equal(t, report(""), r.err, name)
	}
	require.Contains(t, exec("", "fold", path).out, `"nextSequence":7`)

	// A segment is a log of its own, and - may be compressed.
	one := line("r", 0) + line("r", 1)
	require.Equal(t, result{exitProblems, one, path + ".000001.gz:2: " + bad}, exec("", "cat", path+".000001.gz"))
	require.Equal(t, result{exitProblems, linesOf(2, 3), path + ".000002:2: " + bad}, exec("", "cat", path+".000002"))
	require.Equal(t, result{exitProblems, one, "stdin:2: " + bad}, exec(read(t, path+".000001.gz"), "cat", "-"))
	require.Equal(t, result{exitProblems, linesOf(0, 3), path + ".000001.gz:2: " + bad + path + ".000002:2: " + bad},
		exec("", "cat", path+".000001.gz", path+".000002"))
	require.NoError(t, os.Rename(path+".000001.gz", path+".gzip-data"))
	require.Equal(t, one, exec("", "cat", path+".gzip-data").out, "whatever its name")

	// After a damaged closed segment the next ones are read.
	require.NoError(t, os.WriteFile(path+".000001.gz", []byte("no gzip data"), 0o600))
	r := exec("", "cat", path)
	require.Equal(t, exitProblems, r.code)
	require.Equal(t, linesOf(2, 7), r.out)
	require.True(t, strings.HasPrefix(r.err, path+".000001.gz: the gzip data is damaged, cut off or followed by other data: gzip: invalid header\n"), r.err)
	require.NoError(t, os.Remove(path+".000001.gz"))
	require.Contains(t, exec("", "check", path).out, "warning: "+path+".000002: the log begins here, with segment 2: those before it were removed\n")
}

func TestImportReadsCompressedCaptures(t *testing.T) {
	want := exec(read(t, oneCapture), "import", "claude", "--time", "2026-01-02T00:00:00Z", "-")
	require.Equal(t, exitOK, want.code)
	packed := gz(read(t, oneCapture))
	require.Equal(t, want, exec(packed, "import", "claude", "--time", "2026-01-02T00:00:00Z", "-"))
	path := filepath.Join(t.TempDir(), "capture.gz")
	require.NoError(t, os.WriteFile(path, []byte(packed), 0o600))
	require.Equal(t, want, exec("", "import", "claude", "--time", "2026-01-02T00:00:00Z", path))
}

// Input that is not lines of JSON gets one report, which names the remedy.
func TestOtherFormsThanLines(t *testing.T) {
	const event = `{"type":"flow:start","timestamp":1767517322000,"flowName":"f","more":{"a":[{"b":{}}]}}`
	const openwop = `{"eventId":"e1","runId":"r","type":"run.paused","payload":{},"timestamp":"2026-05-19T10:00:07.000Z","sequence":0}`
	pretty := strings.NewReplacer("{", "{\n", ",", ",\n", "}", "\n}").Replace(event)
	for _, c := range []struct{ name, input, want string }{
		{"an array", "[" + event + "," + event + "]\n", "jq -c '.[]'"},
		{"an array over several lines", "[\n" + pretty + ",\n" + pretty + "\n]\n", "jq -c '.[]'"},
		{"an array of lines", "[\n" + event + ",\n" + event + "\n]\n", "jq -c '.[]'"},
		{"an object over several lines", pretty + "\n" + pretty + "\n", "jq -c ."},
		{"a cut line", event[:40] + "\n", "is cut off"},
		{"a torn line", event[:40], "is torn"},
		{"compressed lines", "\x28\xb5\x2f\xfd\x04\xb5\n\xd6\n", "this is zstd data, not lines of JSON: decompress it first"},
		{"Server-Sent Events", "event: x\ndata: " + openwop + "\n\nevent: x\ndata: " + openwop + "\n\n", "Server-Sent Events"},
		{"native Server-Sent Events", "data: " + line("r", 0) + "\n", "Server-Sent Events"},
	} {
		for _, format := range []string{"", "openharness", "openwop", "native", "kahn", "multiagent"} {
			args := []string{"check", "--dialect", format, "-"}
			if format == "" {
				args = []string{"check", "-"}
			}
			if format != "" && c.name == "a cut line" {
				continue // the decoder reports the fault of the members before
			}
			got := exec(c.input, args...)
			require.Equal(t, exitProblems, got.code, c.name)
			require.Equal(t, 1, strings.Count(got.out, "\n"), "%s as %s: %s", c.name, format, got.out)
			require.Contains(t, got.out, c.want, "%s as %s", c.name, format)
		}
	}
	got := exec("{\n"+event+"\n", "check", "-")
	require.Equal(t, 1, strings.Count(got.out, "\n"), "the log after it is read: %s", got.out)
}

// Who knows the run of a log that names none gives it to the command.
func TestRunID(t *testing.T) {
	const first = `{"type":"flow:start","timestamp":1767517322000,"flowName":"f"}` + "\n"
	const second = `{"type":"flow:paused","timestamp":1767517322001}` + "\n"
	for _, half := range []string{first, second} {
		for _, args := range [][]string{{"fold"}, {"cat"}, {"tree"}, {"convert", "--to", "native"}, {"convert", "--from", "openharness", "--to", "native"}} {
			got := exec(half, append(args, "--run-id", "order-7", "-")...)
			require.Equal(t, exitOK, got.code, "%v: %s", args, got.err)
			require.Contains(t, got.out, "order-7", "%v", args)
		}
		require.Equal(t, exitOK, exec(half, "check", "--dialect", "openharness", "--run-id", "order-7", "-").code)
	}
}

func TestCatFromASequence(t *testing.T) {
	log := line("r", 0) + line("r", 1) + line("r", 5)
	require.Equal(t, line("r", 1)+line("r", 5), exec(log, "cat", "--from", "1", "-").out)
	require.Equal(t, log, exec(log, "cat", "-").out)
}

// Each command that reads a log reads the log of a store of runs, if it is given the directory.
func TestCommandsReadTheDirectoryOfAStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	store, err := runstore.Open(dir, runstore.Options{Log: &logfile.Options{MaxBytes: 400}})
	require.NoError(t, err)
	emitter, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(store)}})
	require.NoError(t, err)
	run, err := emitter.Run("r1")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{Name: "release"}))
	require.NoError(t, run.Agent("coder").Emit(t.Context(), &ae.AgentStarted{Task: "Add /v2/health"}))
	require.NoError(t, run.Finish(t.Context(), nil))
	require.NoError(t, store.Close())

	log := filepath.Join(dir, "events.jsonl")
	for _, command := range readers {
		args, files := strings.Fields(command), 1
		if args[0] == "diff" {
			args, files = append(args, "--width", "-1"), 2 // it prints the names
		}
		of := func(name string) result {
			return exec("", append(slices.Clone(args), slices.Repeat([]string{name}, files)...)...)
		}
		want, got := of(log), of(dir)
		require.NotContains(t, got.err, "directory", command)
		require.Equal(t, want.code, got.code, command)
		require.Equal(t, strings.ReplaceAll(want.out, log, dir), strings.ReplaceAll(got.out, log, dir), command)
		require.Equal(t, want.err, got.err, command)
	}
	require.Contains(t, exec("", "tree", dir).out, "coder")
	require.Contains(t, exec("", "tree", filepath.Join(dir, "snapshots")).err, "directory")
}

// A run that is not in the log is named, and the error tells how to find those that are.
func TestNoRun(t *testing.T) {
	for _, command := range []string{"tree", "show", "fold", "findings", "replay", "view --out -"} {
		got := exec("", append(strings.Fields(command), "--run", "nope\x1b", clean)...)
		require.Equal(t, exitUsage, got.code, command)
		require.Empty(t, got.out, command)
		require.Contains(t, got.err, `: the log has no event of run nope\x1b; 'agentevents ls' lists its runs`+"\n", command)
	}
}
