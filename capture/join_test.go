package capture

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A reading is the events of files by run, a line for each, and the faults.
type reading struct {
	runs   map[string]string
	faults string
}

// ids matches the ids of events and messages.
var ids = regexp.MustCompile(`"(id|messageId|modelCallId|blockId|causationId)":"[^"]*",?`)

// readTexts reads a folder with a file for each text.
func readTexts(t *testing.T, texts ...[]byte) (out reading) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		path := filepath.Join(dir, string(rune('a'+i))+".jsonl")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		saved := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
		require.NoError(t, os.Chtimes(path, saved, saved))
	}
	sessions, err := Open(dir, Options{})
	require.NoError(t, err)
	out.runs = map[string]string{}
	for _, s := range sessions {
		for line, err := range s.Lines() {
			if err != nil {
				out.faults += err.Error() + "\n"
				continue
			}
			ev, err := line.Event.AppendJSON(nil)
			require.NoError(t, err)
			out.runs[line.Event.RunID] += string(ev) + "\n"
		}
		out.faults += strings.Join(s.Notes(), "\n")
	}
	return out
}

// A session has the same events if another program has written its lines anew: with the members in the
// order of their names, and blanks between them.
func TestLinesWrittenAnew(t *testing.T) {
	// A member is left out if it may be made of a line's text, or tells of two members with one name.
	made := regexp.MustCompile(`"(id|runId|callId|blockId|messageId|modelCallId|causationId|providerSessionId|message|marks)": ("[^"\\]*(\\.[^"\\]*)*"|\[[^]]*\]),? ?`)
	for _, name := range corpora(t) {
		var anew bytes.Buffer
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for line := range bytes.Lines(text) {
			anew.Write(writtenAnew(line))
		}
		read := func(text []byte) (out []string) {
			r := readTexts(t, text)
			for _, run := range r.runs {
				for ev := range strings.Lines(run) {
					out = append(out, string(made.ReplaceAll(writtenAnew([]byte(ev)), nil)))
				}
			}
			slices.Sort(out)
			return append(out, r.faults)
		}
		require.Equal(t, read(text), read(anew.Bytes()), name)
	}
}

// writtenAnew returns a line as json.dumps of Python with sort_keys writes it.
func writtenAnew(line []byte) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return line
	}
	text, err := json.MarshalIndent(v, "", "")
	if err != nil {
		return line
	}
	return append(bytes.ReplaceAll(text, []byte("\n"), []byte(" ")), '\n')
}

// A file with two sessions, or with the output of two processes, one after the other, has the runs that two
// files have, with the same events. Function unlike has the reasons for other runs.
func TestJoinedFiles(t *testing.T) {
	streams, err := filepath.Glob("claude/testdata/*.stream.jsonl")
	require.NoError(t, err)
	byProgram := map[string][]string{}
	var programs []string
	texts := map[string][]byte{}
	for _, name := range append(corpora(t), streams...) {
		program := strings.Split(strings.TrimPrefix(filepath.ToSlash(name), "testdata/"), "/")[0]
		if slices.Contains(streams, name) {
			program = "claude-stream"
		}
		if byProgram[program] == nil {
			programs = append(programs, program)
		}
		byProgram[program] = append(byProgram[program], name)
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		texts[name] = append(bytes.TrimSuffix(text, []byte("\n")), '\n')
	}
	n := 0
	joined := func(a, b string) {
		got, want := readTexts(t, slices.Concat(texts[a], texts[b])), readTexts(t, texts[a], texts[b])
		if why, told := unlike(a, b); why != "" {
			require.Contains(t, got.faults, told, "%s: %s and %s", why, a, b)
			return
		}
		n++
		if strings.Contains(b, "claude") { // lines without a time may stand before the first one of a session
			for _, r := range []reading{got, want} {
				for id := range r.runs {
					r.runs[id] = ids.ReplaceAllString(r.runs[id], "")
				}
			}
		}
		require.Equal(t, want.runs, got.runs, "%s and %s", a, b)
	}
	for _, program := range programs {
		names := byProgram[program]
		for i, name := range names[1:] {
			joined(names[i], name)
			joined(name, names[i])
		}
		for _, other := range programs {
			if other != program {
				joined(names[len(names)/2], byProgram[other][len(byProgram[other])/2])
			}
		}
	}
	require.Greater(t, n, 300)
}

// unlike returns why a file with the lines of two others may have other runs than they have, or "", and the
// text of the fault or note about it.
func unlike(a, b string) (why, told string) {
	is := func(name, part string) bool { return strings.Contains(filepath.ToSlash(name), part) }
	both := func(part string) bool { return is(a, part) && is(b, part) }
	printed := func(name string) bool { return is(name, "-json/") || is(name, "-stream/") }
	switch {
	case both("codex/agents-v1"), both("codex/agents-v2"), both("qwen/subagent"):
		return "a session and its sub-agents have files of their own, which are one run", "sub-agent"
	case both("claude/agents"), both("claude-old/agents"):
		return "the lines of a sub-agent after those of its session are read with them, as in older versions", ""
	case is(a, "opencode/") != is(b, "opencode/"):
		return "the rows of a database are in any order, so that they are read as a whole", "opencode"
	case is(b, "pi-json/rpc"):
		return "pi --mode rpc prints no header, and no time on its first lines", ""
	case is(a, "partial.stream"), is(b, "partial.stream") && is(a, "subagent.stream"):
		return "a capture without a time has the time of the file, or of the first line with a time in it", ""
	case is(b, "qwen/subagent/subagents"):
		return "the name of its file tells the id of the sub-agent", ""
	case is(b, "resumed-1.0"):
		return "a summary without a session tells the history that is copied, and stands before it", ""
	case is(b, "codex-exec/schema"):
		return "the id of the process is made of lines, of which one is damaged", ""
	case is(a, "codex-exec/tools/stdout-2") && is(b, "codex-exec/tools"):
		return "a process prints the tokens of those before it, which stand after it here", ""
	case both("gemini/resume"):
		return "the files have one session", ""
	case both("/resume/") && printed(a) != printed(b):
		return "the output of a session is left out of a folder that has the session", ""
	case is(a, "opencode-run") && is(b, "gemini/resume"):
		return "the first line has no type", "no event"
	}
	return "", ""
}
