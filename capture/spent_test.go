package capture

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/capture/internal/session"
)

// spent counts the tokens of a file or folder with the events and without them. counted is the
// number of sessions whose lines alone tell the sum.
func spent(t *testing.T, name, where string) (counted int) {
	sessions, err := Open(name, Options{})
	if err != nil {
		return 0
	}
	adder := session.NewAdder(session.Options{})
	defer func() { require.NoError(t, adder.Close()) }()
	for s := range Spent(sessions) {
		want := Spending{Session: s.Session}
		want.fold()
		require.Equal(t, want.Calls, s.Calls, where)
		a, b := &want.Usage, &s.Usage
		require.Equal(t, []int64{a.InputTokens, a.OutputTokens, a.CacheReadInputTokens.V, a.CacheCreationInputTokens.V, a.ReasoningOutputTokens.V},
			[]int64{b.InputTokens, b.OutputTokens, b.CacheReadInputTokens.V, b.CacheCreationInputTokens.V, b.ReasoningOutputTokens.V}, where)
		if _, ok := adder.Total(s.Session.source); ok {
			counted++
		} else {
			require.Equal(t, want.Partial, s.Partial, where) // the lines alone do not tell missing files
		}
	}
	return counted
}

// The tokens of sessions are the same with their events and without them.
func TestSpent(t *testing.T) {
	folders, err := filepath.Glob("testdata/*/*")
	require.NoError(t, err)
	counted := 0
	for _, name := range folders {
		counted += spent(t, name, name)
	}
	require.Equal(t, 45, counted, "sessions of Claude Code, but not one with a summary, whose lines alone tell the sum")
	for range Spent(nil) {
		t.Fatal("no sessions")
	}
}

// Damaged sessions, too. Each line of the main file is left out, cut with those after
// it, doubled, and moved after the next.
func TestSpentDamaged(t *testing.T) {
	folders, err := filepath.Glob("testdata/claude*/*")
	require.NoError(t, err)
	counted := 0
	for _, name := range folders {
		files, err := filepath.Glob(filepath.Join(name, "*.jsonl"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
			path := filepath.Join(t.TempDir(), filepath.Base(file))
			for i := range lines {
				for what, damaged := range map[string][]string{
					"left out": slices.Delete(slices.Clone(lines), i, i+1),
					"cut":      append(slices.Clone(lines[:i]), lines[i][:len(lines[i])/2]),
					"doubled":  slices.Insert(slices.Clone(lines), i, lines[i]),
					"moved":    slices.Insert(slices.Delete(slices.Clone(lines), i, i+1), min(i+1, len(lines)-1), lines[i]),
				} {
					require.NoError(t, os.WriteFile(path, []byte(strings.Join(damaged, "")), 0o600))
					counted += spent(t, path, file+": "+what)
				}
			}
		}
	}
	require.Greater(t, counted, 1000)
}

// A session that is found keeps its names and facts alone, however long its lines are.
func TestMemoryOfFoundSessions(t *testing.T) {
	const sessions, most = 1000, 1500 // bytes for each; the half is usual
	dir := t.TempDir()
	long := strings.Repeat("words ", 2000)
	for i := range sessions {
		id := fmt.Sprintf("11111111-1111-4111-8111-%012d", i)
		text := `{"parentUuid":null,"sessionId":"` + id + `","type":"user","uuid":"u","version":"2.1.328","timestamp":"2026-01-02T00:00:00Z","message":{"role":"user","content":"` + long + `"}}` + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte(text), 0o600))
	}
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	found, err := Open(dir, Options{})
	require.NoError(t, err)
	require.Len(t, found, sessions)
	require.Less(t, (live()-before)/sessions, int64(most))
	runtime.KeepAlive(found)
}
