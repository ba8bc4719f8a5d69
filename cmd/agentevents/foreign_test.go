package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/foreign"
	"github.com/agentevents/agentevents/internal/txtar"
)

// readers are the commands that read a log, with the arguments that they need.
var readers = []string{
	"cat", "check", "check --chain", "diff", "export chrome", "export otlp", "findings", "fold", "ls", "redact", "replay --speed 0", "show", "stats", "stats --json", "tail", "tree", "view --out -",
	"convert --to native", "convert --to kahn --redact",
	"check --dialect native", "check --dialect kahn", "check --dialect multiagent", "check --dialect kaos", "check --dialect openharness", "check --dialect openwop", "check --dialect agui",
	"convert --from native --to agui", "redact --from openharness",
}

func TestReadersAreAllThatReadALog(t *testing.T) {
	for _, c := range commands() {
		if strings.Contains(c.args, "FILE") && c.name != "import" {
			require.True(t, slices.ContainsFunc(readers, func(args string) bool { return strings.Fields(args)[0] == c.name }), c.name)
		}
	}
}

// foreignFiles returns texts that are not logs, by their names.
func foreignFiles(t *testing.T) []txtar.File {
	files := txtar.Parse(read(t, "../../internal/foreign/testdata/files.txtar")).Files
	files = append(files,
		txtar.File{Name: "a SQLite database", Text: "SQLite format 3\x00\x10\x00\x01\x01\x00\n\x00"},
		txtar.File{Name: "binary data", Text: "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"},
		txtar.File{Name: "OTLP JSON", Text: read(t, "testdata/clean.otlp.jsonl")},
		txtar.File{Name: "a trace in Chrome's trace event format", Text: read(t, "testdata/clean.trace.json")},
		txtar.File{Name: "a snapshot of 'agentevents fold'", Text: exec("", "fold", clean).out},
		txtar.File{Name: foreign.ClaudeStream, Text: read(t, "testdata/turns.stream.jsonl")},
	)
	for i := range files {
		files[i].Name, _, _ = strings.Cut(files[i].Name, " #")
	}
	return files
}

// A file of another program is called by its name by each command, and no run is shown.
func TestFilesOfOtherPrograms(t *testing.T) {
	for _, f := range foreignFiles(t) {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, []byte(f.Text), 0o600))
		for _, command := range readers {
			if f.Name == foreign.Unknown.Name && (strings.Contains(command, "--dialect") || strings.Contains(command, "--from")) {
				continue // the named format is believed
			}
			if foreign.IsRead(f.Name) && !strings.Contains(command, "--dialect") && !strings.Contains(command, "--from") {
				continue // TestSessionsOfPrograms
			}
			args := strings.Fields(command)
			want := exitProblems
			if args[0] == "diff" {
				args, want = append(args, path), exitUsage
			}
			got := exec("", append(args, path)...)
			require.Equal(t, want, got.code, "%s: %s", command, f.Name)
			said := got.err
			switch args[0] {
			case "check":
				said = got.out
			case "export": // an empty document
				require.NotContains(t, got.out, `"name"`)
			default:
				require.Empty(t, got.out, "%s: %s", command, f.Name)
			}
			require.True(t, strings.HasPrefix(said, path+":1: "), "%s: %s", command, said)
			require.Contains(t, plainName(said), "this is "+f.Name+": ", command)
			lines := strings.Count(said, "\n")
			if args[0] == "diff" {
				lines /= 2
			}
			if f.Name == foreign.Unknown.Name {
				lines-- // the same in the rest
			}
			if command == "check --chain" {
				lines-- // a report on the chain
			}
			require.LessOrEqual(t, lines, 1, "%s: %s", command, said)
			require.NotContains(t, got.out+got.err, "running", command)
		}
		for _, input := range []string{f.Text, gz(f.Text)} {
			if foreign.IsRead(f.Name) {
				break
			}
			got := exec(input, "ls", "-")
			require.Equal(t, exitProblems, got.code)
			require.Empty(t, got.out)
			require.Contains(t, got.err, "stdin:1: this is "+f.Name+": ")
		}
	}
}

// plainName leaves out the form of a document of a program whose lines are read.
func plainName(text string) string {
	return strings.Replace(text, " as JSON over several lines: ", ": ", 1)
}

// So does the import of another program's files.
func TestImportOfOtherPrograms(t *testing.T) {
	for _, f := range foreignFiles(t) {
		got := exec(f.Text, "import", "claude", "--time", "2026-01-02T00:00:00Z", "-")
		switch {
		case f.Name == foreign.ClaudeStream, f.Name == foreign.ClaudeTranscript:
			require.Equal(t, exitOK, got.code, got.err)
			continue
		case got.code == exitUsage:
			require.True(t, foreign.IsRead(f.Name), f.Name)
			require.Regexp(t, `^agentevents import: -: this is a session or the output of .+, not of Claude Code: name that program, or none\n$`, got.err)
			continue
		}
		require.Equal(t, exitProblems, got.code, f.Name)
		require.Empty(t, got.out, f.Name)
		if f.Name != foreign.Unknown.Name {
			require.Contains(t, plainName(got.err), "this is "+f.Name+": ")
			require.Equal(t, 1, strings.Count(got.err, "\n"), got.err)
		}
	}
	for name, log := range map[string]string{
		"this is a log: it needs no import": linesOf(0, 2),
		"no program is recognised":          `{"type":"user","text":"hi"}` + "\n" + `{"type":"assistant","message":"hi"}` + "\n" + `{"type":"result","usage":{}}` + "\n",
	} {
		got := exec(log, "import", "claude", "-")
		require.Equal(t, exitProblems, got.code)
		require.Empty(t, got.out)
		require.Contains(t, got.err, name)
	}
}

// A log beside the file of another program is read, in either order.
func TestALogBesideFilesOfOtherPrograms(t *testing.T) {
	log := write(t, linesOf(0, 3))
	want := exec("", "ls", log).out
	require.Contains(t, want, "running")
	for _, f := range foreignFiles(t) {
		if foreign.IsRead(f.Name) {
			continue
		}
		path := write(t, f.Text)
		for _, args := range [][]string{{log, path}, {path, log}, {path, log, path}} {
			got := exec("", append([]string{"ls"}, args...)...)
			require.Equal(t, exitProblems, got.code)
			require.Equal(t, want, got.out, f.Name)
			require.Contains(t, got.err, "this is "+f.Name)
		}
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "\n\n \r\n", "\ufeff"} {
		path := write(t, text)
		for _, command := range readers {
			args := append(strings.Fields(command), path)
			if args[0] == "diff" {
				args = append(args, path)
			}
			got := exec("", args...)
			require.Equal(t, exitOK, got.code, command)
			require.Contains(t, got.err, path+": the file is empty\n", command)
		}
		require.Equal(t, result{exitProblems, "", path + ": the file is empty\n"}, exec("", "import", "claude", path))
	}
	require.Equal(t, result{}, exec("", "ls", "-"), "the end of a pipe")
}
