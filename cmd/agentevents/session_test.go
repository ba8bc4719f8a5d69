package main

import (
	"os"
	"path/filepath"
	"regexp"
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

// TestLinkedFolders: the folder of a project may be a link. One that makes a loop, or leads to a folder that
// was read, counts once.
func TestLinkedFolders(t *testing.T) {
	outside, home := t.TempDir(), t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(outside, "agents"), os.DirFS("../../capture/testdata/claude/agents")))
	projects := filepath.Join(home, ".claude", "projects")
	require.NoError(t, os.MkdirAll(filepath.Join(projects, "deep"), 0o700))
	link := func(to string, names ...string) {
		if err := os.Symlink(to, filepath.Join(append([]string{projects}, names...)...)); err != nil {
			t.Skip("no symbolic links: ", err)
		}
	}
	agents := filepath.Join(outside, "agents")
	link(home, "loop")
	link(".", "self")
	link("nowhere", "dangling")
	link(agents, "deep", "project")
	require.Contains(t, exec("", "ls", projects).err, "neither a log nor a session", "only links directly in the folder are followed")
	link(agents, "project")
	link(agents, "same")
	for _, command := range []string{"ls", "tree", "check"} {
		require.Equal(t, exec("", command, agents), exec("", command, projects))
	}
	listed := atHome(home, "", "sessions")
	require.Equal(t, exitOK, listed.code)
	require.Equal(t, strings.Count(exec("", "ls", agents).out, "\n"), strings.Count(listed.out, "\n"))
	require.Empty(t, listed.err)
	found, err := filepath.Glob(filepath.Join(agents, "*.jsonl"))
	require.NoError(t, err)
	require.NoError(t, os.Rename(agents, filepath.Join(outside, "moved")))
	link(filepath.Join(outside, "moved", filepath.Base(found[0])), "deep", filepath.Base(found[0]))
	require.Contains(t, atHome(home, "", "sessions").err, "it is a symbolic link, which is followed only to a folder")
}

// TestSpansOfAStreamWithoutTimes: the spans last as long as the result states.
func TestSpansOfAStreamWithoutTimes(t *testing.T) {
	got := exec("", "export", "chrome", "../../capture/testdata/qwen-stream/retry")
	require.Zero(t, got.code, got.err)
	require.Len(t, regexp.MustCompile(`"name":"(invoke_workflow|invoke_agent qwen|run_step turn)",[^\n]*"ts":0,"dur":25459000,`).FindAllString(got.out, -1), 3, got.out)
}

// TestMadeUpEnds: every view tells an end that no line tells.
func TestMadeUpEnds(t *testing.T) {
	for path, madeUp := range map[string]bool{
		"gemini/sigint-tool": true, "qwen/tools": true, "codex/mcp": false, "pi/text": false, "gemini-stream/tools": false,
	} {
		for command, sign := range map[string]string{
			"ls": "completed?", "tree": "✓ completed? ·", "show": "status     completed?", "stats": "1 end made up",
			"fold": `"endMadeUp":true`, "export otlp": `"agentevents.end.made_up"`, "export chrome": `"agentevents.end.made_up":true`,
		} {
			got := exec("", append(strings.Fields(command), "../../capture/testdata/"+path)...)
			require.Zero(t, got.code, got.err)
			require.Equal(t, madeUp, strings.Contains(got.out, sign), "%s %s\n%s", command, path, got.out)
		}
	}
}

// Tokens of a program that names no model are not left out of a table by model in silence, and a line that is too long
// names the remedy.
func TestWhatATableLacks(t *testing.T) {
	stream := `{"type":"thread.started","thread_id":"t1"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"i0","type":"agent_message","text":"` + strings.Repeat("A", 500) + `"}}
{"type":"turn.completed","usage":{"input_tokens":300,"cached_input_tokens":0,"output_tokens":15}}
`
	got := exec(stream, "stats", "--by", "model", "--max-line", "400", "-")
	require.Contains(t, got.out, "\n315 tokens of answers that name no model\n")
	require.Contains(t, got.err, "the limit is 400 (--max-line); it was skipped")
	require.NotContains(t, exec(stream, "stats", "--by", "tool", "-").out, "name no model")
}
