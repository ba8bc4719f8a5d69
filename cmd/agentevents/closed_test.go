package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// execIndex is exec for a command with an index in a folder.
func execIndex(folder string, args ...string) result {
	var out, err bytes.Buffer
	in := &invocation{stdin: strings.NewReader(""), stdout: newOutput(&out), stderr: &err, env: func(string) string { return "" }, index: folder}
	return result{in.run(args), out.String(), err.String()}
}

// rests is a time at which a file has not changed for long.
var rests = time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)

// put writes a file that rests.
func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.Chtimes(path, rests, rests))
}

// runLines returns the lines of a run that a tool call makes long.
func runLines(id string, status string) string {
	at := 0
	line := func(kind, payload string) string {
		at++
		return fmt.Sprintf(`{"id":"%s-%d","timestamp":"2026-05-05T09:00:%02dZ","sequence":%d,"runId":"%s","agentId":"a","type":"%s","payload":%s}`+"\n", id, at, at, at-1, id, kind, payload)
	}
	long := strings.Repeat("x", 100<<10)
	return line("run.started", `{}`) + line("agent.started", `{}`) + line("agent.toolCalled", `{"callId":"1","toolId":"read","arguments":"`+long+`"}`) +
		line("agent.toolReturned", fmt.Sprintf(`{"callId":"1","toolId":"read","status":%q,"result":"%s"}`, status, long)) + line("agent.ended", `{}`) + line("run.completed", `{}`)
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// asks are the commands with an index.
func asks(log string) [][]string {
	return [][]string{{"ls", log}, {"stats", "--by", "agent+tool", log}, {"stats", "--json", "--by", "tool,agent", log}}
}

// TestRemembered asks about a log of three segments twice, and changes one in every way.
func TestRemembered(t *testing.T) {
	second := runLines("two", "ok")
	other := strings.Replace(runLines("two", "error"), `"error"`, `"bad"`, 1) // one byte longer than ok
	same := runLines("two", "no")
	require.Len(t, same, len(second))
	for _, c := range []struct {
		name   string
		unseen bool
		change func(t *testing.T, path string)
	}{
		{"truncated", false, func(t *testing.T, path string) {
			put(t, path, second[:strings.LastIndex(second[:len(second)-1], "\n")+1])
		}},
		{"extended", false, func(t *testing.T, path string) { put(t, path, second+runLines("four", "ok")) }},
		{"another size", false, func(t *testing.T, path string) { put(t, path, other) }},
		{"another time", false, func(t *testing.T, path string) {
			put(t, path, same)
			require.NoError(t, os.Chtimes(path, rests.Add(time.Hour), rests.Add(time.Hour)))
		}},
		{"removed", false, func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }},
		{"size and time restored", true, func(t *testing.T, path string) { put(t, path, same) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			log, index := filepath.Join(dir, "run.jsonl"), filepath.Join(dir, "index")
			put(t, log+".000001.gz", gzipped(t, runLines("one", "ok")))
			put(t, log+".000002", second)
			put(t, log, runLines("three", "ok"))
			var before []result
			for _, args := range asks(log) {
				r := exec("", args...)
				require.Equal(t, result{exitOK, r.out, ""}, r)
				require.Equal(t, r, execIndex(index, args...))
				require.Equal(t, r, execIndex(index, args...), "and once more")
				before = append(before, r)
			}
			c.change(t, log+".000002")
			for i, args := range asks(log) {
				now := exec("", args...)
				require.NotEqual(t, now, before[i])
				if !c.unseen {
					require.Equal(t, now, execIndex(index, args...))
					continue
				}
				require.Equal(t, before[i], execIndex(index, args...), "nothing was read")
				require.Equal(t, now, execIndex(index, append(args, "--rehash")...))
				require.Equal(t, now, execIndex(index, args...), "the new answer is kept")
			}
		})
	}
}

// TestRememberedQuestions: an answer is one to its own question only.
func TestRememberedQuestions(t *testing.T) {
	dir := t.TempDir()
	log, index := filepath.Join(dir, "run.jsonl"), filepath.Join(dir, "index")
	put(t, log, runLines("one", "ok"))
	for _, args := range [][]string{
		{"ls"}, {"ls", "--status", "failed"}, {"ls", "--lifecycle", "strict"}, {"ls", "--max-line", "1000"}, {"ls", "--order", "sequence"},
		{"stats"}, {"stats", "--by", "tool"}, {"stats", "--by", "agent"}, {"stats", "--max-line", "1000", "--by", "agent"},
	} {
		args = append(args, log)
		want := exec("", args...)
		for range 2 {
			require.Equal(t, want, execIndex(index, args...), args)
		}
	}
}

// TestReportsAreNotRemembered: a log with damaged lines is reported each time.
func TestReportsAreNotRemembered(t *testing.T) {
	dir := t.TempDir()
	log, index := filepath.Join(dir, "run.jsonl"), filepath.Join(dir, "index")
	put(t, log, runLines("one", "ok")+"{\n")
	for _, args := range asks(log) {
		want := exec("", args...)
		require.Equal(t, exitProblems, want.code)
		require.NotEmpty(t, want.err)
		for range 2 {
			require.Equal(t, want, execIndex(index, args...))
		}
	}
	require.NoDirExists(t, index)
}

// TestCheckRemembersNothing: a check reads all.
func TestCheckRemembersNothing(t *testing.T) {
	dir := t.TempDir()
	log, index := filepath.Join(dir, "run.jsonl"), filepath.Join(dir, "index")
	put(t, log, runLines("one", "ok"))
	for range 2 {
		require.Equal(t, exec("", "check", log), execIndex(index, "check", log))
	}
	require.NoDirExists(t, index)
}

// TestNoIndex: without a folder to write to, and with damaged files in it, commands answer as
// without an index.
func TestNoIndex(t *testing.T) {
	dir := t.TempDir()
	log, index := filepath.Join(dir, "run.jsonl"), filepath.Join(dir, "index")
	put(t, log, runLines("one", "ok"))
	for _, args := range asks(log) {
		require.Equal(t, exec("", args...), execIndex(filepath.Join(log, "index"), args...))
		require.Equal(t, exec("", args...), execIndex(index, args...))
	}
	files, err := os.ReadDir(index)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		require.NoError(t, os.WriteFile(filepath.Join(index, f.Name()), []byte("damaged"), 0o600))
	}
	for _, args := range asks(log) {
		require.Equal(t, exec("", args...), execIndex(index, args...))
	}
}

// TestRememberedSession asks about the sessions of an agent program below a folder.
func TestRememberedSession(t *testing.T) {
	dir := t.TempDir()
	folder, index := filepath.Join(dir, "sessions"), filepath.Join(dir, "index")
	require.NoError(t, os.CopyFS(folder, os.DirFS("../../capture/testdata/codex/agents-v1")))
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		require.NoError(t, err)
		return os.Chtimes(path, rests, rests)
	}))
	want := exec("", "ls", folder)
	require.Equal(t, exitOK, want.code, want.err)
	require.Equal(t, want, execIndex(index, "ls", folder))
	require.Equal(t, want, execIndex(index, "ls", folder))
	require.DirExists(t, index)
}

// TestLeftOutFilesAreReportedEachTime: the answer about a file alone is not one about the file and its
// copy, or about the file and the output of the same session.
func TestLeftOutFilesAreReportedEachTime(t *testing.T) {
	dir := t.TempDir()
	index := filepath.Join(dir, "index")
	found, err := filepath.Glob("../../capture/testdata/codex/text/rollout-*.jsonl")
	require.NoError(t, err)
	session := read(t, found[0])
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		put(t, filepath.Join(dir, name), session)
	}
	a, b := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl")
	for _, command := range []string{"ls", "stats"} {
		want := exec("", command, a, b)
		require.Contains(t, want.err, "b.jsonl has the same session as")
		require.Equal(t, exec("", command, a), execIndex(index, command, a))
		for range 2 {
			require.Equal(t, want, execIndex(index, command, a, b))
		}
	}
	require.DirExists(t, index)
}
