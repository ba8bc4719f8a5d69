package homes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

// paths are the folders of a machine by program.
func paths(t *testing.T, m Machine) map[string][]string {
	t.Helper()
	places, err := m.Places()
	require.NoError(t, err)
	out := map[string][]string{}
	for _, p := range places {
		out[p.Program] = append(out[p.Program], p.Path)
	}
	return out
}

// TestPlaces has the folders of three operating systems, and those that each variable moves.
func TestPlaces(t *testing.T) {
	below := func(base string, names ...string) (out []string) {
		for _, name := range names {
			out = append(out, filepath.Join(base, filepath.FromSlash(name)))
		}
		return out
	}
	usual := func(home string) map[string][]string {
		return map[string][]string{
			"claude":  below(home, ".claude/projects"),
			"codex":   below(home, ".codex/sessions", ".codex/archived_sessions"),
			"copilot": below(home, ".copilot/session-state"),
			"cline":   below(home, ".cline/data/sessions"),
			"gemini":  below(home, ".gemini/tmp"),
			"pi":      below(home, ".pi/agent/sessions"),
			"qwen":    below(home, ".qwen/projects"),
		}
	}
	for _, c := range []struct {
		os   string
		env  map[string]string
		home string
	}{
		{"linux", map[string]string{"HOME": "/home/me", "USERPROFILE": "/other"}, "/home/me"},
		{"darwin", map[string]string{"HOME": "/Users/me"}, "/Users/me"},
		{"windows", map[string]string{"USERPROFILE": `C:\Users\me`, "HOME": "/c/Users/other", "APPDATA": `C:\Users\me\AppData\Roaming`}, `C:\Users\me`},
		{"windows", map[string]string{"HOMEDRIVE": "C:", "HOMEPATH": `\Users\me`}, `C:\Users\me`},
	} {
		require.Equal(t, usual(c.home), paths(t, Machine{c.os, env(c.env)}), c.os)
	}

	for _, c := range []struct {
		program string
		set     map[string]string
		want    []string
	}{
		{"claude", map[string]string{"CLAUDE_CONFIG_DIR": "/x"}, below("/x", "projects")},
		{"claude", map[string]string{"CLAUDE_CONFIG_DIR": "~/x"}, below("/home/me", "x/projects")},
		{"claude", map[string]string{"CLAUDE_CONFIG_DIR": "  "}, below("/home/me", ".claude/projects")},
		{"codex", map[string]string{"CODEX_HOME": "/x"}, below("/x", "sessions", "archived_sessions")},
		{"copilot", map[string]string{"COPILOT_HOME": "/x"}, below("/x", "session-state")},
		{"cline", map[string]string{"CLINE_DIR": "/x"}, below("/x", "data/sessions")},
		{"cline", map[string]string{"CLINE_DIR": "/x", "CLINE_DATA_DIR": "/y"}, below("/y", "sessions")},
		{"cline", map[string]string{"CLINE_DATA_DIR": "/y", "CLINE_SESSION_DATA_DIR": "/z"}, below("/z", "")},
		{"gemini", map[string]string{"GEMINI_CLI_HOME": "/x"}, below("/x", ".gemini/tmp")},
		{"pi", map[string]string{"PI_CODING_AGENT_DIR": "/x"}, below("/x", "sessions")},
		{"pi", map[string]string{"PI_CODING_AGENT_DIR": "/x", "PI_CODING_AGENT_SESSION_DIR": "/y"}, below("/y", "")},
		{"qwen", map[string]string{"QWEN_HOME": "/x"}, below("/x", "projects")},
		{"qwen", map[string]string{"QWEN_HOME": "/x", "QWEN_RUNTIME_DIR": "/y"}, below("/y", "projects")},
	} {
		want := usual("/home/me")
		want[c.program] = c.want
		c.set["HOME"] = "/home/me"
		require.Equal(t, want, paths(t, Machine{"linux", env(c.set)}), "%v", c.set)
	}

	some, err := Machine{"linux", env(map[string]string{"HOME": "/home/me"})}.Places("pi", "qwen")
	require.NoError(t, err)
	require.Len(t, some, 2)
	_, err = Machine{"linux", env(nil)}.Places()
	require.ErrorIs(t, err, ErrNoHome)
	_, err = Machine{"linux", env(nil)}.Stores()
	require.ErrorIs(t, err, ErrNoHome)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// TestFiles has the files that programs keep beside their sessions.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for program, files := range map[string]map[string]bool{
		"claude":  {"-repo/a.jsonl": true, "-repo/a/subagents/agent-1.jsonl": false, "-repo/memory/MEMORY.md": false, "journal.jsonl": false},
		"codex":   {"2026/11/28/rollout-1.jsonl": true, "2026/11/28/rollout-2.jsonl.zst": true, "rollout-3.json": true, "2026/11/28/x.jsonl": false},
		"copilot": {"id/events.jsonl": true, "id/workspace.yaml": false, "id/checkpoints/index.jsonl": false},
		"cline":   {"id/id.messages.json": true, "id/id.json": false},
		"gemini":  {"repo/chats/session-1.jsonl": true, "old/chats/session-2.json": true, "repo/logs.json": false, "repo/chats/id/agent.jsonl": false},
		"pi":      {"--repo--/a.jsonl": true, "b.jsonl": true, "--repo--/a.txt": false},
		"qwen":    {"-repo/chats/a.jsonl": true, "-repo/subagents/a/agent-1.jsonl": false, "-repo/meta.json": false},
	} {
		var want []string
		for name, is := range files {
			path := filepath.Join(dir, program, filepath.FromSlash(name))
			if put(t, path, ""); is {
				want = append(want, path)
			}
		}
		places, err := Machine{"linux", env(map[string]string{"HOME": dir})}.Places(program)
		require.NoError(t, err)
		places[0].Path = filepath.Join(dir, program)
		require.ElementsMatch(t, want, places[0].Files(func(path string, err error) { t.Error(path, err) }), program)
	}

	absent := Place{Path: filepath.Join(dir, "absent"), program: &programs[0]}
	require.Empty(t, absent.Files(func(path string, err error) { t.Error(path, err) }))
	file := Place{Path: filepath.Join(dir, "pi", "b.jsonl"), program: &programs[0]}
	faults := 0
	require.Empty(t, file.Files(func(string, error) { faults++ }))
	require.Equal(t, 1, faults, "a file in the place of a folder")
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, ".gemini", "tmp", "repo", ".project_root"), "/home/me/repo\n")
	places, err := Machine{"linux", env(map[string]string{"HOME": dir})}.Places("gemini", "claude")
	require.NoError(t, err)
	for _, p := range places {
		want := map[string]string{"gemini": "/home/me/repo"}[p.Program]
		require.Equal(t, want, p.Folder(filepath.Join(dir, ".gemini", "tmp", "repo", "chats", "session-1.jsonl")))
		require.Empty(t, p.Folder(filepath.Join(dir, "a", "b")))
		require.Equal(t, want != "", len(p.Beside(filepath.Join(dir, ".gemini", "tmp", "repo", "chats", "session-1.jsonl"))) == 1)
		require.Empty(t, p.Beside(filepath.Join(dir, "a", "b")))
	}
}

func TestStores(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		env  map[string]string
		base string
	}{
		{map[string]string{"HOME": filepath.Join(dir, "one")}, filepath.Join(dir, "one", ".local", "share", "opencode")},
		{map[string]string{"HOME": dir, "XDG_DATA_HOME": filepath.Join(dir, "data")}, filepath.Join(dir, "data", "opencode")},
	} {
		m := Machine{"linux", env(c.env)}
		stores := func(words ...string) []Store {
			t.Helper()
			out, err := m.Stores(words...)
			require.NoError(t, err)
			return out
		}
		require.Empty(t, stores())
		older := filepath.Join(c.base, "storage", "session", "project")
		put(t, filepath.Join(older, "ses_1.json"), "{}")
		put(t, filepath.Join(older, "ses_2.json"), "{}")
		require.Len(t, stores(), 1)
		require.Equal(t, 2, stores()[0].Files)
		put(t, filepath.Join(c.base, "opencode.db"), "SQLite format 3\x00")
		require.Len(t, stores("opencode", "pi"), 1)
		require.Equal(t, filepath.Join(c.base, "opencode.db"), stores()[0].Path)
		require.Contains(t, stores()[0].Advice, "opencode-rows")
		require.Empty(t, stores("pi"))
	}
}

// TestTitle has titles of each program, and lines that only look like one.
func TestTitle(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ program, text, beside, want string }{
		{"claude", `{"type":"user","message":"x"}` + "\n", "", ""},
		{"claude", `{"type":"ai-title","aiTitle":"One","sessionId":"s"}` + "\n" + `{"type":"ai-title","aiTitle":"Two"}` + "\n", "", "Two"},
		{"claude", `{"type":"custom-title","customTitle":"Mine"}` + "\n" + `{"type":"ai-title","aiTitle":"Two"}`, "", "Mine"},
		{"claude", `{"type":"user","message":{"content":"` + strings.Repeat("x", 3*maxLine) + `{\"type\":\"ai-title\",\"aiTitle\":\"No\"}"}}` + "\n" + `{"type":"ai-title","aiTitle":"Yes"}`, "", "Yes"},
		{"claude", `{"type":"user","message":{"content":"a text that is longer than the head","x":{"type":"ai-title","aiTitle":"No"}}}` + "\n", "", ""},
		{"claude", `{"type":"ai-title","aiTitle":"One"}` + "\n" + `{"type":"ai-title","aiTitle":`, "", "One"},
		{"pi", `{"type":"session_info","id":"a","name":"Refactor"}` + "\n", "", "Refactor"},
		{"copilot", `{"type":"session.start"}` + "\n", "id: a\nname: \"Fix it\"\nuser_named: false\n", "Fix it"},
		{"copilot", `{"type":"session.start"}` + "\n", "", ""},
		{"codex", `{"type":"ai-title","aiTitle":"One"}` + "\n", "", ""},
	} {
		folder := filepath.Join(dir, c.program)
		require.NoError(t, os.RemoveAll(folder))
		file := filepath.Join(folder, "events.jsonl")
		put(t, file, c.text)
		if c.beside != "" {
			put(t, filepath.Join(folder, "workspace.yaml"), c.beside)
		}
		places, err := Machine{"linux", env(map[string]string{"HOME": dir})}.Places(c.program)
		require.NoError(t, err)
		require.Equal(t, c.want, places[0].Title(file), c.text[:min(len(c.text), 80)])
		require.Empty(t, places[0].Title(filepath.Join(folder, "absent")+c.program+"/x"))
	}
}
