package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sessions are the captures of whole sessions, and oneCapture is one of them.
const (
	sessions   = "../../capture/claude/testdata/sessions/"
	oneCapture = sessions + "skill.stream.jsonl"
)

// TestSessionTrees draws sessions as they are, and one of them in each of the formats.
func TestSessionTrees(t *testing.T) {
	var b strings.Builder
	draw := func(title, log string) {
		drawn := exec(log, "tree", "-")
		require.Zero(t, drawn.code, drawn.err)
		b.WriteString("== " + title + "\n" + drawn.out)
	}
	captures, err := filepath.Glob(sessions + "*.stream.jsonl")
	require.NoError(t, err)
	require.Len(t, captures, 4)
	for _, path := range captures {
		log := exec("", "import", "claude", "--time", "2026-01-02T00:00:00Z", path)
		require.Zero(t, log.code, log.err)
		name := filepath.Base(path)
		draw(name, log.out)
		if path != oneCapture {
			continue
		}
		for _, format := range []string{"kahn", "multiagent", "kaos", "openharness", "openwop", "openwop:v2"} {
			converted := exec(log.out, "convert", "--quiet", "--to", format, "-")
			require.Zero(t, converted.code, converted.err)
			draw(name+" as "+format, converted.out)
		}
	}
	golden(t, "session_trees.txt", b.String())
}

// TestUnreadableFilesOfAFolder: a command reads the other files, and names those that it cannot read.
func TestUnreadableFilesOfAFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../capture/testdata/claude/agents")))
	commands := [][]string{{"ls"}, {"stats"}, {"stats", "--tokens"}, {"check"}, {"cat"}, {"tree"}, {"import", "claude"}, {"import"}}
	whole := map[int]result{}
	for i, c := range commands {
		whole[i] = exec("", append(c, dir)...)
	}
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		put(t, filepath.Join(dir, name), "\x28\xb5\x2f\xfd packed")
	}
	for i, c := range commands {
		got := exec("", append(c, dir)...)
		require.Equal(t, exitUsage, got.code, c)
		require.Equal(t, whole[i].out, got.out, c)
		require.Contains(t, got.err, filepath.Join(dir, "a.jsonl")+" and 1 more file: zstd data; decompress it first", c)
	}
	only := t.TempDir()
	put(t, filepath.Join(only, "a.jsonl"), "\x28\xb5\x2f\xfd packed")
	got := exec("", "ls", only)
	require.Equal(t, exitUsage, got.code)
	require.Equal(t, "agentevents ls: "+filepath.Join(only, "a.jsonl")+": zstd data; decompress it first (zstd -d)\n", got.err)
}
