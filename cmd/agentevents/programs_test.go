package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/query"
	"github.com/agentevents/agentevents/querytest"
)

// programFiles are sessions of agent programs: a folder for each program, and the file of a session
// in it.
var programFiles = []struct{ dir, file string }{
	{"../../capture/testdata/codex/agents-v1", "rollout-2026-11-28T11-12-12-01a0b7db-08b3-7e60-aea3-eebdc3559bc3.jsonl"},
	{"../../capture/testdata/codex-exec/agents-v1", "stdout-1.jsonl"},
	{"../../capture/testdata/copilot/agents/f1e4608e-3f58-5514-b3c2-c5e0dd7a518d", "events.jsonl"},
	{"../../capture/testdata/copilot-json/sigint", "stdout.jsonl"},
	{"../../capture/testdata/opencode/ends", "events.jsonl"},
	{"../../capture/testdata/opencode-run/tools", "stdout.jsonl"},
	{"../../capture/testdata/cline-json/tools", "stdout.jsonl"},
	{"../../capture/testdata/pi/tree", "2026-11-28T12-00-00-000Z_3a1c7a0e-0000-5000-8000-000000000001.jsonl"},
	{"../../capture/testdata/pi-json/tools", "stdout.jsonl"},
	{"../../capture/testdata/gemini/subagent/chats", "session-2026-11-28T11-06-8575a0d5.jsonl"},
	{"../../capture/testdata/gemini-stream/tools", "stdout.jsonl"},
	{"../../capture/testdata/qwen/subagent", "chats/5cf99031-0189-5e01-a8f4-70da7efc13ff.jsonl"},
	{"../../capture/testdata/qwen-stream/tools", "stdout.jsonl"},
	{sessions + "failures.stream.jsonl", ""},
}

// Commands that read a log read a session of an agent program, too: its file under any name, its
// folder, and standard input.
func TestSessionsOfPrograms(t *testing.T) {
	for _, p := range programFiles {
		text := read(t, filepath.Join(p.dir, p.file))
		renamed := filepath.Join(t.TempDir(), "a name")
		require.NoError(t, os.WriteFile(renamed, []byte(text), 0o600))
		for _, command := range readers {
			if strings.Contains(command, "--from") || strings.Contains(command, "--dialect") || command == "tail" {
				continue
			}
			args := strings.Fields(command)
			for _, name := range []string{p.dir, filepath.Join(p.dir, p.file), renamed, "-"} {
				all := append(args, name)
				stdin := ""
				switch {
				case name == "-" && args[0] == "diff":
					continue
				case name == "-":
					stdin = text
				case args[0] == "diff":
					all = append(all, name)
				}
				got := exec(stdin, all...)
				if command == "check --chain" {
					require.Equal(t, exitProblems, got.code, got.out)
					require.Contains(t, got.out, "no line of the log is chained")
					continue
				}
				require.Equal(t, exitOK, got.code, "%s %s: %s%s", command, name, got.out, got.err)
				if args[0] != "diff" && args[0] != "check" && args[0] != "findings" {
					require.NotEmpty(t, got.out, "%s %s", command, name)
				}
			}
		}
		for _, name := range []string{p.dir, filepath.Join(p.dir, p.file)} {
			imported := exec("", "import", name)
			require.Equal(t, exitOK, imported.code, imported.err)
			require.Equal(t, exec("", "tree", name), exec(imported.out, "tree", "-"), "the log tells as much")
			require.Equal(t, exec(imported.out, "cat", "-").out, exec("", "cat", name).out, "the same events, redacted alike")
			require.Equal(t, "all lines and members were understood\n", exec("", "import", "--report", name).out)
		}
	}
}

// Secrets in a session are masked by each command that reads it, and by import unless it is told
// not to.
func TestSecretsOfSessions(t *testing.T) {
	const secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	p := programFiles[0]
	text := strings.ReplaceAll(read(t, filepath.Join(p.dir, p.file)), "MAIN: use", secret+" use")
	path := write(t, text)
	for _, command := range readers {
		if strings.Contains(command, "--from") || strings.Contains(command, "--dialect") || command == "tail" {
			continue
		}
		args := append(strings.Fields(command), path)
		if args[0] == "diff" {
			args = append(args, filepath.Join(p.dir, p.file))
		}
		got := exec("", args...)
		require.NotContains(t, got.out+got.err, secret, command)
	}
	require.Contains(t, exec("", "cat", path).out, "[REDACTED:token]")
	got := exec("", "import", path)
	require.NotContains(t, got.out, secret)
	require.Contains(t, got.err, "masked 2: token 2")
	require.Contains(t, exec("", "import", "--no-redact", path).out, secret)
}

// What was not understood is told by import --report.
func TestImportReport(t *testing.T) {
	p := programFiles[0]
	text := read(t, filepath.Join(p.dir, p.file))
	more := strings.Replace(text, `"status":"completed","execution":"client","tools"`, `"status":"completed","mood":"good","execution":"client","tools"`, 1) +
		`{"timestamp":"2026-11-28T11:12:20.000Z","ordinal":99,"type":"event_msg","payload":{"type":"new_kind"}}` + "\n"
	more = strings.Replace(more, `"cli_version":"0.169.0"`, `"cli_version":"0.170.1"`, 1)
	got := exec("", "import", "--report", write(t, more))
	require.Equal(t, exitOK, got.code)
	require.Equal(t, strings.TrimLeft(`
COUNT  PROGRAM  VERSION  LINE                              MEMBER
1      Codex    0.170.1  event_msg/new_kind                all
1      Codex    0.170.1  response_item/tool_search_output  /payload/mood
`, "\n"), got.out)
	require.Contains(t, got.err, "Codex: version 0.170.1 is newer than 0.169.0")
	require.Equal(t, 1, strings.Count(got.err, "newer"), got.err)
}

// One id names one session.
func TestIDOfSessions(t *testing.T) {
	got := exec("", "import", "--run", "r", "../../capture/testdata/codex/text")
	require.NotZero(t, got.code)
	require.Contains(t, got.err, "has 2 sessions, but one run id was given")
	got = exec("", "import", "--run", "r", "--agent", "main", "../../capture/testdata/codex/agents-v1")
	require.Zero(t, got.code, got.err)
	require.Contains(t, exec(got.out, "tree", "-").out, "run r ✓ completed")
	require.Contains(t, got.out, `"agentId":"main:beauvoir:`)
}

// Files that were joined have the runs of all, also from standard input and in gzip, and one run id is not
// enough for them. Lines that cannot be taken apart set the exit status.
func TestJoinedSessions(t *testing.T) {
	const dir = "../../capture/testdata/"
	joined := func(names ...string) (text string) {
		for _, name := range names {
			text += read(t, dir+name)
		}
		return text
	}
	text := joined("claude/fail/bf43e514-879f-5516-8fa4-ae00260e7ff8.jsonl",
		"codex/text/rollout-2026-11-28T11-04-34-01a0b7d4-0c99-7272-a5b8-09320f4f4776.jsonl",
		"claude/denied/e50077e6-aeba-5317-bde8-0257f29fe71a.jsonl")
	path := write(t, text)
	want := exec("", "ls", dir+"claude/fail", dir+"codex/text/rollout-2026-11-28T11-04-34-01a0b7d4-0c99-7272-a5b8-09320f4f4776.jsonl",
		dir+"claude/denied/e50077e6-aeba-5317-bde8-0257f29fe71a.jsonl")
	require.Zero(t, want.code, want.err)
	require.ElementsMatch(t, strings.Split(want.out, "\n"), strings.Split(exec("", "ls", path).out, "\n"))
	require.Equal(t, exec("", "ls", path), exec(text, "ls", "-"))
	require.Equal(t, exec("", "ls", path).out, exec("", "ls", write(t, gz(text))).out)

	got := exec("", "import", "--run", "r", path)
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "another session begins here, but one run id was given")
	require.Contains(t, got.out, `"run.completed"`)

	twice := joined("codex/text/rollout-2026-11-28T11-04-34-01a0b7d4-0c99-7272-a5b8-09320f4f4776.jsonl",
		"claude/fail/bf43e514-879f-5516-8fa4-ae00260e7ff8.jsonl",
		"codex/text/rollout-2026-11-28T11-04-34-01a0b7d4-0c99-7272-a5b8-09320f4f4776.jsonl")
	got = exec(twice, "ls", "-")
	require.Equal(t, exitProblems, got.code)
	require.Contains(t, got.err, "are of session 01a0b7d4-0c99-7272-a5b8-09320f4f4776")
}

// A tail that was cut in the middle of a line is told, with the file and the line, and the rest is
// read.
func TestCutSession(t *testing.T) {
	p := programFiles[0]
	text := read(t, filepath.Join(p.dir, p.file))
	path := write(t, text[:len(text)-30])
	got := exec("", "tree", path)
	require.Equal(t, exitProblems, got.code)
	require.Contains(t, got.err, path+":"+strconv.Itoa(strings.Count(text, "\n"))+": ")
	require.Contains(t, got.err, "Codex: the file ends in the middle of this line")
	require.Contains(t, got.err, "the file of the sub-agent Beauvoir is not here")
	require.Contains(t, got.out, "MAIN: use two workers")
	require.Contains(t, exec("", "check", path).out, "line-unreadable")
}

// The files of one session are one run, also where a shell names each, and other sessions and logs
// stay beside it.
func TestNamesOfSessions(t *testing.T) {
	files, err := filepath.Glob("../../capture/testdata/codex/agents-v1/*")
	require.NoError(t, err)
	require.Len(t, files, 3)
	want := exec("", "tree", "../../capture/testdata/codex/agents-v1")
	require.Equal(t, want, exec("", append([]string{"tree"}, files...)...))
	slices.Reverse(files)
	require.Equal(t, want, exec("", append([]string{"tree"}, files...)...))
	require.Equal(t, want, exec("", append(append([]string{"tree"}, files...), files...)...))
	log := write(t, linesOf(0, 3))
	got := exec("", append([]string{"ls", log, "../../capture/testdata/codex/text"}, files...)...)
	require.Equal(t, exitOK, got.code, got.err)
	require.Equal(t, 5, strings.Count(got.out, "\n"), "the heading, the log, two sessions and this one")
	require.Equal(t, result{}, exec("", append([]string{"check"}, files...)...))
}

// A directory without a log or a session is called so.
func TestDirectoryWithoutSessions(t *testing.T) {
	dir := t.TempDir()
	for _, command := range []string{"tree", "ls", "import"} {
		want := "agentevents " + command + ": " + dir + ": the directory has neither a log nor a session of an agent program\n"
		require.Equal(t, result{code: exitUsage, err: want}, exec("", command, dir))
	}
}

// A file of no program is called so, once, and one of another program than the command names.
func TestImportOfAnotherFile(t *testing.T) {
	other := write(t, "# A page\n\nwith text\n")
	for _, args := range [][]string{{"import", other}, {"import", "claude", other}} {
		require.Equal(t, result{exitProblems, "", other + ": no program is recognised: no line is one of Claude Code, Codex, Copilot CLI, Gemini CLI, Qwen Code, cline, opencode, pi\n"}, exec("", args...))
	}
	require.Equal(t, result{exitProblems, "", "stdin: the file is empty\n"}, exec("", "import", "codex", "-"))
	got := exec("", "import", "codex", oneCapture)
	require.Equal(t, result{exitUsage, "", "agentevents import: " + oneCapture + ": this is a session or the output of Claude Code, not of Codex: name that program, or none\n"}, got)
}

// record takes what codex exec --json prints, and the fixture plays in package querytest.
func TestRecordCodex(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs that are recorded are shell scripts")
	}
	bin := t.TempDir()
	printed, err := filepath.Abs("../../capture/testdata/codex-exec/mcp/stdout-1.jsonl")
	require.NoError(t, err)
	program := filepath.Join(bin, "codex")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ncat "+printed+"\n"), 0o700))
	dir := t.TempDir()
	record := func(args ...string) result {
		return exec("", append([]string{"record", "--output", dir, "--node", "n", "--", program, "exec", "--json"}, args...)...)
	}
	got := record("Use MCP")
	require.Zero(t, got.code, got.err)
	require.Equal(t, read(t, printed), got.out)
	log := filepath.Join(dir, "n.jsonl")
	require.Equal(t, result{}, exec("", "check", log))
	tree := exec("", "tree", log).out
	require.Contains(t, tree, "n ✓ converged")
	require.Contains(t, tree, "prompt: Use MCP")
	require.Contains(t, tree, "4 tool calls (1 failed)")
	fixtures, err := querytest.Load(dir)
	require.NoError(t, err)
	call := fixtures["n"].Calls[0]
	require.Equal(t, agentevents.JSON(`"Use MCP"`), call.Input.Prompt)
	require.Equal(t, "Done.", call.Output.Text)
	mock := querytest.NewMock(fixtures, querytest.MockOptions{})
	calls := 0
	for ev, err := range mock.Query(t.Context(), query.Request{NodeID: "n", Prompt: `"Use MCP"`}) {
		require.NoError(t, err)
		if ev.Kind() == agentevents.KindToolCalled {
			calls++
		}
	}
	require.Equal(t, 4, calls)
}

// record takes what other programs print, with the prompt on their command lines.
func TestRecordPrograms(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs that are recorded are shell scripts")
	}
	for _, p := range []struct{ name, file, args, calls string }{
		{"copilot", "copilot-json/resume/stdout-1.jsonl", "--output-format json -p Ask", "5 tool calls (3 failed)"},
		{"opencode", "opencode-run/tools/stdout.jsonl", "run --format json Ask", "2 tool calls"},
		{"cline", "cline-json/tools/stdout.jsonl", "--json --yolo Ask", "5 tool calls (2 failed)"},
	} {
		printed, err := filepath.Abs("../../capture/testdata/" + p.file)
		require.NoError(t, err)
		program := filepath.Join(t.TempDir(), p.name)
		require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ncat "+printed+"\n"), 0o700))
		dir := t.TempDir()
		got := exec("", append([]string{"record", "--output", dir, "--", program}, strings.Fields(p.args)...)...)
		require.Zero(t, got.code, got.err)
		log := filepath.Join(dir, p.name+".jsonl")
		require.Equal(t, result{}, exec("", "check", log))
		require.Contains(t, exec("", "tree", log).out, p.calls)
		fixtures, err := querytest.Load(dir)
		require.NoError(t, err)
		require.Equal(t, agentevents.JSON(`"Ask"`), fixtures[p.name].Calls[0].Input.Prompt)
		require.NotEmpty(t, fixtures[p.name].Calls[0].Output.Text)
	}
}

// The documents of programs are read by each command, under any name. A stream of them is not, and
// a cut one tells so.
func TestDocumentsOfPrograms(t *testing.T) {
	for _, file := range []string{
		"../../capture/testdata/opencode/subagent/rows.json",
		"../../capture/testdata/opencode/text/export.json",
		"../../capture/testdata/cline/tools/1795865561604_k7m3q/1795865561604_k7m3q.messages.json",
	} {
		text := read(t, file)
		renamed := write(t, text)
		for _, command := range readers {
			if strings.Contains(command, "--from") || strings.Contains(command, "--dialect") || command == "tail" || command == "check --chain" {
				continue
			}
			args := append(strings.Fields(command), renamed)
			if args[0] == "diff" {
				args = append(args, renamed)
			}
			got := exec("", args...)
			require.Equal(t, exitOK, got.code, "%s %s: %s%s", command, file, got.out, got.err)
		}
		require.Equal(t, "all lines and members were understood\n", exec("", "import", "--report", file).out)
		require.Contains(t, exec(text, "ls", "-").err, "agentevents reads it as it is, as a file of its own")
		got := exec("", "tree", write(t, text[:len(text)/2]))
		require.NotZero(t, got.code)
		require.Contains(t, got.err, "the document is cut")
	}
}

// The lines of a program without one that names the session are no session, and the advice tells the reason.
func TestLinesWithoutASession(t *testing.T) {
	for _, line := range []string{
		`{"type":"file-history-snapshot","messageId":"m","snapshot":{"trackedFileBackups":{}},"isSnapshotUpdate":false}`,
		`{"id":"m","timestamp":"2025-10-27T19:56:04.625Z","type":"gemini","content":"hello"}`,
	} {
		got := exec("", "tree", write(t, line+"\n"))
		require.NotEqual(t, exitOK, got.code)
		require.Contains(t, got.err, "with the line that names its session")
	}
}

// record takes what pi, Gemini CLI and Qwen Code print, also after lines that are not JSON.
func TestRecordChats(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs that are recorded are shell scripts")
	}
	for _, c := range []struct{ printed, prompt, tree string }{
		{"pi-json/tools", "--mode json Ask", "2 tool calls · 2 model calls · 2700 tokens in, 33 out"},
		{"gemini-stream/tools", "--output-format stream-json -p Ask", "2 tool calls · 2700 tokens in, 33 out"},
		{"qwen-stream/tools", "--output-format stream-json --prompt=Ask", "2 tool calls · 2 model calls · 2700 tokens in, 33 out"},
	} {
		printed, err := filepath.Abs("../../capture/testdata/" + c.printed + "/stdout.jsonl")
		require.NoError(t, err)
		program := filepath.Join(t.TempDir(), "program")
		require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho loaded; cat "+printed+"\n"), 0o700))
		dir := t.TempDir()
		got := exec("", append([]string{"record", "--output", dir, "--node", "n", "--", program}, strings.Fields(c.prompt)...)...)
		require.Equal(t, exitProblems, got.code, "a line is not JSON")
		require.Equal(t, "loaded\n"+read(t, printed), got.out)
		require.Equal(t, 1, strings.Count(got.err, ":1: "), got.err)
		log := filepath.Join(dir, "n.jsonl")
		require.Equal(t, result{}, exec("", "check", log))
		require.Contains(t, exec("", "tree", log).out, c.tree)
		fixtures, err := querytest.Load(dir)
		require.NoError(t, err)
		call := fixtures["n"].Calls[0]
		require.Equal(t, agentevents.JSON(`"Ask"`), call.Input.Prompt)
		require.Equal(t, "Both files were read: the answer is 42.", call.Output.Text)
	}
}
