package capture

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

const (
	agents = "testdata/codex/agents-v1"
	alpha  = "rollout-2026-11-28T11-12-13-01a0b7db-0b7d-77c1-8327-1cc96902ee22.jsonl"
	beta   = "rollout-2026-11-28T11-12-13-01a0b7db-0c3f-7192-8981-5fb421c6ec1e.jsonl"
	lead   = "rollout-2026-11-28T11-12-12-01a0b7db-08b3-7e60-aea3-eebdc3559bc3.jsonl"
)

// put copies files of testdata into a folder, with their names and below them.
func put(t *testing.T, dir string, files ...string) {
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o600))
	}
}

// With the file of a session come its sub-agents' beside it, and no other sessions.
func TestFileOfASession(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, filepath.Join(agents, lead), filepath.Join(agents, alpha), filepath.Join(agents, beta))
	text, err := filepath.Glob("testdata/codex/text/*")
	require.NoError(t, err)
	put(t, dir, text...)
	c, sessions := count(t, filepath.Join(dir, lead))
	require.Equal(t, 1, c.runs)
	require.Equal(t, 3, c.agents)
	require.Equal(t, 9, c.models)
	require.Empty(t, sessions[0].Notes())
	require.Equal(t, "Codex", sessions[0].Program())
	require.Equal(t, strings.TrimSuffix(lead, ".jsonl")[len("rollout-2026-11-28T11-12-12-"):], sessions[0].ID())

	c, _ = count(t, dir)
	require.Equal(t, 3, c.runs, "two sessions of text beside it")
	require.Equal(t, 11, c.models)
}

// The file of a sub-agent alone is read as it is, and a note tells that there is more.
func TestFileOfASubAgent(t *testing.T) {
	c, sessions := count(t, filepath.Join(agents, alpha))
	require.Equal(t, counts{runs: 1, agents: 1, models: 2, ok: 1, used: c.used, ends: []string{"completed"}}, c)
	require.EqualValues(t, 83, c.used.InputTokens)
	require.Len(t, sessions[0].Notes(), 1)
	require.Contains(t, sessions[0].Notes()[0], "Codex: this is the file of a sub-agent; its session 01a0b7db-08b3")

	dir := t.TempDir()
	put(t, dir, filepath.Join(agents, alpha))
	alone, sessions := count(t, dir)
	require.Equal(t, c, alone)
	require.Len(t, sessions[0].Notes(), 1)
}

// A sub-agent whose file is missing is what its parent tells of it, and a note names the file.
func TestMissingFileOfASubAgent(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, filepath.Join(agents, lead), filepath.Join(agents, beta))
	for _, name := range []string{dir, filepath.Join(dir, lead)} {
		c, sessions := count(t, name)
		require.Equal(t, 3, c.agents)
		require.Equal(t, 7, c.models)
		require.Equal(t, []string{"completed"}, c.ends)
		for range sessions[0].Lines() { // again
		}
		require.Len(t, sessions[0].Notes(), 1)
		require.Contains(t, sessions[0].Notes()[0], "Codex: the file of the sub-agent Beauvoir is not here (rollout-*-01a0b7db-0b7d-77c1-8327-1cc96902ee22.jsonl)")
	}
}

// The file of a sub-agent that began after midnight is in the folder of the next day.
func TestFoldersOfDays(t *testing.T) {
	sessions := t.TempDir()
	day, next := filepath.Join(sessions, "2026", "11", "28"), filepath.Join(sessions, "2026", "11", "29")
	require.NoError(t, os.MkdirAll(day, 0o700))
	require.NoError(t, os.MkdirAll(next, 0o700))
	put(t, day, filepath.Join(agents, lead), filepath.Join(agents, alpha))
	put(t, next, filepath.Join(agents, beta))
	last := time.Date(2026, 11, 29, 1, 0, 0, 0, time.UTC)
	require.NoError(t, os.Chtimes(filepath.Join(day, lead), last, last))
	c, opened := count(t, filepath.Join(day, lead))
	require.Equal(t, 9, c.models)
	require.Empty(t, opened[0].Notes())
	t.Chdir(day)
	c, _ = count(t, lead)
	require.Equal(t, 9, c.models)
}

// A tail that was cut in the middle of a line costs that line, which is told.
func TestCutTail(t *testing.T) {
	files, err := filepath.Glob("testdata/codex/text/*")
	require.NoError(t, err)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "cut")
	require.NoError(t, os.WriteFile(path, text[:len(text)-20], 0o600))
	sessions, err := Open(path, Options{})
	require.NoError(t, err)
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	var faults []error
	for line, err := range sessions[0].Lines() {
		if err != nil {
			require.Equal(t, strings.Count(string(text), "\n"), line.Number)
			faults = append(faults, err)
			continue
		}
		fold.Apply(*line.Event)
	}
	require.Len(t, faults, 1)
	require.ErrorIs(t, faults[0], io.ErrUnexpectedEOF)
	require.ErrorContains(t, faults[0], "Codex: the file ends in the middle of this line")
	snapshot := fold.Snapshot()
	require.Empty(t, snapshot.Violations)
	require.Equal(t, agentevents.RunStatusFailed, snapshot.Status, "the end of the turn was on the line")
}

// What was printed of a session that is in the folder, too, does not count again.
func TestPrintedBesideTheSession(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, filepath.Join(agents, lead), filepath.Join(agents, alpha), filepath.Join(agents, beta), "testdata/codex-exec/agents-v1/stdout-1.jsonl")
	c, sessions := count(t, dir)
	require.Equal(t, 1, c.runs)
	require.EqualValues(t, 695, c.used.InputTokens)
	require.Len(t, sessions[0].Notes(), 1)
	require.Contains(t, sessions[0].Notes()[0], "stdout-1.jsonl was printed of this session and is left out")
}

// A copy of a session does not count.
func TestTheSameSessionTwice(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, filepath.Join(agents, lead), filepath.Join(agents, alpha), filepath.Join(agents, beta))
	text, err := os.ReadFile(filepath.Join(agents, lead))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "copy.jsonl"), text, 0o600))
	c, sessions := count(t, dir)
	require.Equal(t, 9, c.models)
	require.Len(t, sessions[0].Notes(), 1)
	require.Contains(t, sessions[0].Notes()[0], "has the same session as")
}

// Names of files that are one session make one session, whatever their order.
func TestMerge(t *testing.T) {
	var all []*Session
	for _, name := range []string{alpha, lead, beta, lead} {
		sessions, err := Open(filepath.Join(agents, name), Options{})
		require.NoError(t, err)
		all = append(all, sessions...)
	}
	merged := Merge(all)
	require.Len(t, merged, 1)
	require.Len(t, merged[0].Files(), 3)
	require.Equal(t, filepath.Join(agents, lead), merged[0].Files()[0])
	require.Empty(t, merged[0].Notes())
	require.Empty(t, Merge(nil))
}

// No link is followed out of the folder, and nothing is written into it.
func TestLinksAndWrites(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no symbolic links: they need a privilege")
	}
	outside, dir := t.TempDir(), t.TempDir()
	put(t, outside, filepath.Join(agents, alpha), filepath.Join(agents, beta))
	put(t, dir, filepath.Join(agents, lead))
	require.NoError(t, os.Symlink(filepath.Join(outside, alpha), filepath.Join(dir, alpha)))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "more")))
	require.NoError(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	for _, name := range []string{dir, filepath.Join(dir, lead)} {
		c, sessions := count(t, name)
		require.Equal(t, 5, c.models, "the calls of the sub-agents are outside")
		require.Len(t, sessions[0].Notes(), 2)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3)
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(dir, Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	log := filepath.Join(dir, "log.jsonl")
	require.NoError(t, os.WriteFile(log, []byte(`{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.started","runId":"r","payload":{}}`+"\n"), 0o600))
	for _, name := range []string{log, dir, filepath.Join(dir, "nothing")} {
		_, err = Open(name, Options{})
		require.ErrorIs(t, err, fs.ErrNotExist, name)
	}
	_, err = Open(agents, Options{MaxLine: -1})
	var option *agentevents.OptionError
	require.True(t, errors.As(err, &option))
	_, ok := NewDecoder([]string{`{"type":"run.started"}`}, Options{})
	require.False(t, ok)
}

// A line that is longer than the limit is told and left out.
func TestLongLine(t *testing.T) {
	sessions, err := Open(filepath.Join(agents, lead), Options{MaxLine: 800})
	require.NoError(t, err)
	long := 0
	for _, err := range sessions[0].Lines() {
		if err != nil {
			require.ErrorContains(t, err, "the limit is 800")
			long++
		}
	}
	require.Positive(t, long)
}

// The totals that processes print of one thread hold the tokens of earlier processes, whatever the
// names of their files. Each token counts once; of one file alone the whole total counts.
func TestResumedPrints(t *testing.T) {
	dir := t.TempDir()
	for name, total := range map[string]string{"c": "100", "a": "250", "b": "450"} {
		text := `{"type":"thread.started","thread_id":"t1"}` + "\n" + `{"type":"turn.started"}` + "\n" +
			`{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"` + name + `"}}` + "\n" +
			`{"type":"turn.completed","usage":{"input_tokens":` + total + `,"cached_input_tokens":50,"output_tokens":` + total + `}}` + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".jsonl"), []byte(text), 0o600))
	}
	c, _ := count(t, dir)
	require.Equal(t, 3, c.runs)
	require.EqualValues(t, 400, c.used.InputTokens)
	require.EqualValues(t, 50, c.used.CacheReadInputTokens.V)
	require.EqualValues(t, 450, c.used.OutputTokens)

	c, _ = count(t, filepath.Join(dir, "b.jsonl"))
	require.EqualValues(t, 450, c.used.OutputTokens)
}

// The output of a process is known beside its session also if it does not name the session: by
// what only that one has.
func TestOutputWithoutTheNameOfItsSession(t *testing.T) {
	for _, c := range []struct{ session, printed string }{
		{"testdata/copilot/sigint", "testdata/copilot-json/sigint/stdout.jsonl"},
		{"testdata/cline/tools", "testdata/cline-json/tools/stdout.jsonl"},
	} {
		alone, err := Open(c.printed, Options{})
		require.NoError(t, err)
		require.Len(t, alone, 1)
		sessions, err := Open(c.session, Options{})
		require.NoError(t, err)
		require.Len(t, sessions, 1)
		merged := Merge(slices.Concat(alone, sessions))
		require.Len(t, merged, 1, c.session)
		require.Equal(t, sessions[0].ID(), merged[0].ID())
		require.Contains(t, merged[0].Notes()[0], c.printed+" was printed of this session and is left out")
	}
	other, err := Open("testdata/cline/ends", Options{})
	require.NoError(t, err)
	printed, err := Open("testdata/cline-json/tools/stdout.jsonl", Options{})
	require.NoError(t, err)
	require.Len(t, Merge(slices.Concat(other, printed)), len(other)+1)
}

// A conversation whose file ends within a line has no end, whatever its agent has said.
func TestTornConversations(t *testing.T) {
	for _, folder := range []string{"gemini", "qwen", "pi"} {
		torn := 0
		files, err := filepath.Glob("testdata/" + folder + "/*/*.jsonl")
		require.NoError(t, err)
		more, err := filepath.Glob("testdata/" + folder + "/*/chats/*.jsonl")
		require.NoError(t, err)
		for _, file := range append(files, more...) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
			for i := range lines {
				cut := strings.Join(lines[:i], "") + lines[i][:len(lines[i])/2]
				path := filepath.Join(t.TempDir(), "session.jsonl")
				require.NoError(t, os.WriteFile(path, []byte(cut), 0o600))
				sessions, err := Open(path, Options{})
				if err != nil {
					continue
				}
				fold := agentevents.NewFold(agentevents.FoldOptions{})
				open := false
				for line, err := range sessions[0].Lines() {
					if err != nil {
						continue
					}
					fold.Apply(*line.Event)
					if p, ok := line.Event.Payload.(*agentevents.TurnEnded); ok && line.Number > i {
						open = line.Event.Marks&agentevents.MarkSynthetic != 0 && !p.Error.OK
					}
				}
				require.False(t, open, "%s cut in line %d: a turn without an end is complete", file, i+1)
				if fold.Snapshot().Status == agentevents.RunStatusFailed {
					torn++
				}
			}
		}
		require.NotZero(t, torn, folder)
	}
}
