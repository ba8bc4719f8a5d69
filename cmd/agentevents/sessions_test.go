package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/homes"
)

// recorded are the folders of sessions that a made-up home folder has, and where they are in it.
var recorded = map[string]string{
	"claude/agents":   ".claude/projects/-repo",
	"claude/fail":     ".claude/projects/-repo",
	"claude/cost":     ".claude/projects/-other",
	"codex/text":      ".codex/sessions/2026/11/28",
	"codex/agents-v1": ".codex/archived_sessions",
	"copilot/agents":  ".copilot/session-state",
	"copilot/sigint":  ".copilot/session-state",
	"cline/ends":      ".cline/data/sessions",
	"gemini/subagent": ".gemini/tmp/repo",
	"gemini/resume":   ".gemini/tmp/repo",
	"pi/resume":       ".pi/agent/sessions/--repo--",
	"qwen/subagent":   ".qwen/projects/-repo",
}

// madeHome makes a home folder with sessions of all programs and with other files.
func madeHome(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for from, to := range recorded {
		require.NoError(t, os.CopyFS(filepath.Join(dir, filepath.FromSlash(to)), os.DirFS(filepath.Join("../../capture/testdata", filepath.FromSlash(from)))))
	}
	for name, text := range map[string]string{
		".claude/projects/-repo/notes.jsonl":                        "Not a session.\n",
		".claude/projects/-repo/empty.jsonl":                        "",
		".claude/projects/-repo/memory/MEMORY.md":                   "# Memory\n",
		".codex/sessions/2026/11/28/rollout-a.jsonl.zst":            "\x28\xb5\x2f\xfd packed",
		".gemini/tmp/repo/.project_root":                            "/home/me/repo",
		".local/share/opencode/opencode.db":                         "SQLite format 3\x00",
		".qwen/projects/-repo/subagents/x/agent-1.jsonl":            "",
		".pi/agent/sessions/--repo--/2026-11-28T12-00-00-000Z.json": "{}",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chtimes(path, rests, rests)
	}))
	return dir
}

// atHome runs a command on a machine with a home folder.
func atHome(home, index string, args ...string) result {
	var out, err bytes.Buffer
	env := func(name string) string {
		if name == "HOME" || name == "USERPROFILE" {
			return home
		}
		return ""
	}
	in := &invocation{stdin: strings.NewReader(""), stdout: newOutput(&out), stderr: &err, env: env, index: index}
	return result{in.run(args), out.String(), err.String()}
}

func listedAt(t *testing.T, home, index string, args ...string) listing {
	t.Helper()
	got := atHome(home, index, append([]string{"sessions", "--json"}, args...)...)
	require.Zero(t, got.code, got.err)
	require.Empty(t, got.err)
	var l listing
	require.NoError(t, json.Unmarshal([]byte(got.out), &l))
	return l
}

// sums returns a hash of each file below a folder.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out[path] = fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, path))))
		return nil
	}))
	return out
}

// TestSessions lists the sessions of all programs, and leaves the home folder as it is.
func TestSessions(t *testing.T) {
	home := madeHome(t)
	before := sums(t, home)
	index := filepath.Join(t.TempDir(), "index")
	first := atHome(home, index, "sessions")
	require.Zero(t, first.code, first.err)
	text := strings.ReplaceAll(first.out+"----\n"+first.err, home, "HOME")
	golden(t, "sessions.txt", strings.ReplaceAll(text, `\`, "/"))
	require.Equal(t, before, sums(t, home))
	_, example, _ := strings.Cut(read(t, "../../docs/command.md"), "$ agentevents sessions --since 7d\n")
	example, _, _ = strings.Cut(example, "```")
	require.NotEmpty(t, example)
	for line := range strings.Lines(example) {
		require.Contains(t, text, strings.Replace(line, "~", "HOME", 1), "the example of the page")
	}

	require.Equal(t, first, atHome(home, index, "sessions"), "as the index has it")
	kept, err := os.ReadDir(index)
	require.NoError(t, err)
	l := listedAt(t, home, index)
	require.Len(t, kept, len(l.Sessions), "an answer for each session")
	require.Equal(t, l, listedAt(t, home, ""))
	require.Equal(t, l, listedAt(t, home, index, "--rehash"))
	require.Len(t, l.Unread, 4)
	listed := map[string]int{}
	for _, r := range l.Sessions {
		listed[r.Program]++
	}
	require.Equal(t, map[string]int{"claude": 5, "codex": 3, "copilot": 2, "cline": 3, "gemini": 2, "pi": 2, "qwen": 1}, listed)
}

// TestSessionsAreReadOnce changes the middle of a session and hides the change: the index has the
// answer of before. A change that it sees has one session read again.
func TestSessionsAreReadOnce(t *testing.T) {
	home, index := t.TempDir(), filepath.Join(t.TempDir(), "index")
	folder := filepath.Join(home, ".claude", "projects", "-repo")
	require.NoError(t, os.CopyFS(folder, os.DirFS("../../capture/testdata/claude/fail")))
	require.NoError(t, os.CopyFS(folder, os.DirFS("../../capture/testdata/claude/text")))
	names, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, names, 2)
	lines := strings.SplitAfter(read(t, names[1]), "\n")
	filler := strings.Repeat(`{"type":"api-request","x":"`+strings.Repeat("x", 1000)+`"}`+"\n", 100)
	edge := strings.Join(lines[:len(lines)/2], "") + filler
	tail := filler + strings.Join(lines[len(lines)/2:], "")
	middle := `{"type":"summary","summary":"s","leafUuid":"l"}` + "\n"
	put(t, names[0], read(t, names[0]))
	put(t, names[1], edge+middle+tail)
	first := listedAt(t, home, index)
	require.Len(t, first.Sessions, 2)
	require.Zero(t, first.Sessions[0].Bad+first.Sessions[1].Bad)

	put(t, names[1], edge+strings.Replace(middle, "{", "!", 1)+tail)
	require.Equal(t, first, listedAt(t, home, index), "the file is not read")
	again := listedAt(t, home, index, "--rehash")
	require.Equal(t, 1, again.Sessions[0].Bad+again.Sessions[1].Bad)
	require.Equal(t, again, listedAt(t, home, index))
	got := atHome(home, index, "sessions")
	require.Contains(t, got.err, "1 line of 1 session cannot be read")

	put(t, names[1], edge+middle+tail+"!\n!\n")
	again = listedAt(t, home, index)
	require.Equal(t, 2, again.Sessions[0].Bad+again.Sessions[1].Bad)
}

// TestSessionsOfOneFile: a session that follows another one in its file is listed as in a file of its own.
func TestSessionsOfOneFile(t *testing.T) {
	for folder, names := range map[string][2]string{
		".claude/projects/-repo":      {"claude/text/1c98537e-67e1-5820-8bf9-e263e9bb9304", "claude/tools/111991fd-c3dc-5366-a8f8-88ccb1144195"},
		".codex/sessions/2026/11/28":  {"codex/text/rollout-2026-11-28T11-04-34-01a0b7d4-09f3-7f10-8b9b-c7ca8030706a", "codex/text/rollout-2026-11-28T11-04-34-01a0b7d4-0c99-7272-a5b8-09320f4f4776"},
		".gemini/tmp/repo/chats":      {"gemini/text/chats/session-2026-11-28T11-05-cc4464b2", "gemini/tools/chats/session-2026-11-28T11-05-ef7dd569"},
		".pi/agent/sessions/--repo--": {"pi/text/2026-11-28T11-07-18-281Z_f99bb8b8-988e-5824-8198-38958aea92fa", "pi/tools/2026-11-28T11-07-43-211Z_9b451c88-b2ae-5104-a2c8-3e62e084f54b"},
	} {
		home, index, apart, texts := t.TempDir(), filepath.Join(t.TempDir(), "index"), t.TempDir(), [2]string{}
		require.NoError(t, os.MkdirAll(filepath.Join(home, folder), 0o755))
		require.NoError(t, os.MkdirAll(filepath.Join(apart, folder), 0o755))
		for i, name := range names {
			texts[i] = strings.TrimSuffix(read(t, "../../capture/testdata/"+name+".jsonl"), "\n") + "\n"
			put(t, filepath.Join(apart, folder, filepath.Base(name)+".jsonl"), texts[i])
		}
		put(t, filepath.Join(home, folder, filepath.Base(names[0])+".jsonl"), texts[0]+texts[1])
		want := listedAt(t, apart, "").Sessions
		require.Len(t, want, 2)
		for range 2 { // the second time from the index
			got := listedAt(t, home, index).Sessions
			require.Len(t, got, 2, folder)
			require.Equal(t, [2]string{"", want[0].ID}, [2]string{got[0].In, got[1].In})
			for i := range got {
				got[i].In, got[i].File = "", want[i].File
			}
			require.Equal(t, want, got, folder)
		}
		require.Contains(t, atHome(home, index, "sessions").out, want[1].ID+" in "+want[0].ID)
	}
}

// TestSessionTitles has a title in a file beside the session: a change of it alone is seen.
func TestSessionTitles(t *testing.T) {
	home, index := t.TempDir(), filepath.Join(t.TempDir(), "index")
	folder := filepath.Join(home, ".copilot", "session-state")
	require.NoError(t, os.CopyFS(folder, os.DirFS("../../capture/testdata/copilot/sigint")))
	files, err := filepath.Glob(filepath.Join(folder, "*", "events.jsonl"))
	require.NoError(t, err)
	put(t, files[0], read(t, files[0]))
	for i, title := range []string{"One", "Two"} {
		yaml := filepath.Join(filepath.Dir(files[0]), "workspace.yaml")
		put(t, yaml, "id: x\nname: "+title+"\n")
		require.NoError(t, os.Chtimes(yaml, rests, rests.Add(time.Duration(i)*time.Minute)))
		for range 2 {
			require.Equal(t, title, listedAt(t, home, index).Sessions[0].Title)
		}
	}
}

// TestSessionFlags chooses programs and times.
func TestSessionFlags(t *testing.T) {
	home := madeHome(t)
	all := listedAt(t, home, "")
	some := listedAt(t, home, "", "--program", "pi", "--program", "qwen")
	require.Len(t, some.Sessions, 3)
	require.Empty(t, some.Unread)
	require.Len(t, listedAt(t, home, "", "--program", "opencode").Unread, 1)

	// The files are older than their events here: the time of a change decides what is read.
	require.Empty(t, listedAt(t, home, "", "--since", "2026-11-28").Sessions)
	for path := range sums(t, home) {
		require.NoError(t, os.Chtimes(path, time.Time{}, all.Sessions[len(all.Sessions)-1].Ended.Add(time.Hour)))
	}
	for _, at := range []time.Time{all.Sessions[0].Ended, all.Sessions[9].Ended} {
		var want []string
		for _, r := range all.Sessions {
			if !r.Ended.Before(at) {
				want = append(want, r.ID)
			}
		}
		var got []string
		for _, r := range listedAt(t, home, "", "--since", at.Format(time.RFC3339Nano)).Sessions {
			got = append(got, r.ID)
		}
		require.Equal(t, want, got)
	}
	require.Len(t, listedAt(t, home, "", "--since", "2026-11-01").Sessions, len(all.Sessions))
	require.Len(t, listedAt(t, home, "", "--since", "100000d").Sessions, len(all.Sessions))

	for args, want := range map[string]string{
		"--program vi":    "want one of claude, codex, copilot, cline, gemini, pi, qwen, opencode; give the flag again for each",
		"--since someday": "want a date like 2026-01-02, a time like 2026-01-02T15:04:05Z, or how long ago: 90m, 36h, 7d",
		"--since -3h":     "want a date like",
		"x":               `unexpected argument "x"`,
	} {
		got := atHome(home, "", append([]string{"sessions"}, strings.Fields(args)...)...)
		require.Equal(t, exitUsage, got.code)
		require.Contains(t, got.err, want)
	}
	got := exec("", "sessions")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, homes.ErrNoHome.Error())
	require.Equal(t, result{exitOK, "", ""}, atHome(t.TempDir(), "", "sessions"), "a home folder without a program")
	require.JSONEq(t, `{"sessions":[],"unread":[]}`, atHome(t.TempDir(), "", "sessions", "--json").out)
}

// TestSessionsAreMasked has a secret in a prompt, and one in the path of a folder.
func TestSessionsAreMasked(t *testing.T) {
	home, index := madeHome(t), filepath.Join(t.TempDir(), "index")
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	put(t, filepath.Join(home, ".gemini", "tmp", "repo", ".project_root"), "/home/me/"+secret)
	paths, err := filepath.Glob(filepath.Join(home, ".pi", "agent", "sessions", "*", "*.jsonl"))
	require.NoError(t, err)
	put(t, paths[0], strings.ReplaceAll(read(t, paths[0]), "MAINPROMPT", "Use "+secret))
	put(t, paths[1], read(t, paths[1])+`{"type":"session_info","id":"0a0a0a0a","parentId":null,"timestamp":"2026-11-28T12:00:00.000Z","name":"My `+secret+`"}`+"\n")
	for range 2 {
		for _, args := range [][]string{{"sessions"}, {"sessions", "--json"}} {
			got := atHome(home, index, args...)
			require.NotContains(t, got.out+got.err, secret)
			require.Contains(t, got.out, "[REDACTED:")
			require.Contains(t, got.out, "My ghp_[REDACTED:")
		}
	}
}

// TestSessionIDs has every command that takes a FILE read a session by its id.
func TestSessionIDs(t *testing.T) {
	home := madeHome(t)
	l := listedAt(t, home, "")
	ids, files := map[string]string{}, map[string]string{}
	for _, r := range l.Sessions {
		ids[r.Program], files[r.Program] = r.ID, r.File
	}
	more := map[string][]string{"export": {"otlp"}, "convert": {"--to", "kahn"}, "view": {"--out", "-"}, "import": {"pi"}, "replay": {"--speed", "1e9"}}
	for _, c := range commands() {
		if !c.takesFiles() {
			continue
		}
		args := append([]string{c.name}, more[c.name]...)
		byID, byFile := append(args[:len(args):len(args)], ids["pi"]), append(args[:len(args):len(args)], files["pi"])
		if c.name == "diff" {
			byID, byFile = append(byID, ids["qwen"][:8]), append(byFile, files["qwen"])
		}
		require.Equal(t, atHome(home, "", byFile...), atHome(home, "", byID...), c.name)
	}
	for _, r := range l.Sessions {
		var run struct {
			RunID string
			Usage struct {
				Usage struct{ InputTokens, OutputTokens int64 }
			}
		}
		got := atHome(home, "", "fold", r.ID)
		require.NoError(t, json.Unmarshal([]byte(got.out), &run), got.err)
		require.Equal(t, []any{r.ID, r.Tokens.Input, r.Tokens.Output}, []any{run.RunID, run.Usage.Usage.InputTokens, run.Usage.Usage.OutputTokens}, "%s: the whole session, with its sub-agents", r.Program)
	}

	got := atHome(home, "", "ls", "01a0b7")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "agentevents ls: 01a0b7: this begins the ids of 3 sessions")
	require.Equal(t, 4, strings.Count(got.err, "\n"), got.err)
	for _, r := range l.Sessions {
		require.Equal(t, strings.HasPrefix(r.ID, "01a0b7"), strings.Contains(got.err, r.ID+"  Codex  "+r.File))
	}

	got = atHome(home, "", "ls", "ses_0123")
	require.Equal(t, exitUsage, got.code)
	require.Regexp(t, `^agentevents ls: ses_0123: no such file, and none of 18 sessions .*\nopencode: .*opencode-rows.*\n$`, got.err)
	require.NotContains(t, atHome(home, "", "ls", "missing1.jsonl").err, "session", "the name of a file")

	t.Chdir(t.TempDir())
	clean := filepath.Join(sourceFolder(t), clean)
	require.NoError(t, os.WriteFile(ids["pi"], []byte(read(t, clean)), 0o600))
	require.Equal(t, atHome(home, "", "ls", clean), atHome(home, "", "ls", ids["pi"]), "a file wins")
	require.NoError(t, os.Rename(ids["pi"], ids["pi"]+".000001"))
	require.Equal(t, atHome(home, "", "ls", clean).out, atHome(home, "", "ls", ids["pi"]).out, "a closed segment wins")
}

// sourceFolder is the folder of this package.
func sourceFolder(t *testing.T) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	require.True(t, ok)
	return filepath.Dir(file)
}

func TestLooksLikeID(t *testing.T) {
	for _, id := range []string{"01a0", "cafe", "ses_dde25216fffe5fe8fbfbfbef12", "1795866000001_stop1", "bf43e514-879f-5516-8fa4-ae00260e7ff8"} {
		require.True(t, looksLikeID(id), id)
	}
	for _, name := range []string{"", "-", "01a", "otlp", "chrome", "run1.jsonl", "logs/1234", `logs\1234`, "run-*", "été1"} {
		require.False(t, looksLikeID(name), name)
	}
	for word := range maps.Keys(sources) {
		require.False(t, looksLikeID(word), word)
	}
}

// TestHomeFoldersAreOfPrograms has the words of both tables agree, and the help name each variable.
func TestHomeFoldersAreOfPrograms(t *testing.T) {
	require.ElementsMatch(t, slices.Collect(maps.Keys(sources)), homes.Programs())
	help := exec("", "help", "sessions").out
	asked := map[string]bool{}
	machine := homes.Machine{OS: "linux", Env: func(name string) string {
		asked[name] = true
		return map[string]string{"HOME": "/home/me"}[name]
	}}
	_, err := machine.Places()
	require.NoError(t, err)
	_, err = machine.Stores()
	require.NoError(t, err)
	delete(asked, "HOME")
	for name := range asked {
		require.Regexp(t, `\b`+regexp.QuoteMeta(name)+`\b`, help)
	}
	require.Len(t, asked, 12)
}
