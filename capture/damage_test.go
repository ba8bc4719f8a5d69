package capture

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// corpora are the files of sessions below testdata.
func corpora(t testing.TB) (files []string) {
	require.NoError(t, filepath.WalkDir("testdata", func(path string, d os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".jsonl") {
			files = append(files, path)
		}
		return err
	}))
	require.NotEmpty(t, files)
	return files
}

// decode reads lines as a stream and folds the events of the last run; those before it have ended and keep
// the rules. refused is the first event that broke a rule.
func decode(t testing.TB, lines []string) (s *agentevents.RunSnapshot, refused error) {
	d, ok := NewDecoder(lines[:min(len(lines), 8)], Options{})
	if !ok {
		return nil, nil // the beginning is gone
	}
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	var events []agentevents.Event
	see := func(err error) {
		if rule := (*agentevents.RuleError)(nil); refused == nil && errors.As(err, &rule) {
			refused = err
		}
	}
	for _, line := range lines {
		var err error
		events, err = d.Decode(events, []byte(line))
		see(err)
	}
	events, err := d.End(events)
	see(err)
	for i := range events {
		if i > 0 && events[i].RunID != events[i-1].RunID {
			before := fold.Snapshot()
			require.Empty(t, before.Violations)
			require.True(t, before.Status.Terminal() && len(before.OpenCalls) == 0)
			fold = agentevents.NewFold(agentevents.FoldOptions{})
		}
		fold.Apply(events[i])
	}
	return fold.Snapshot(), refused
}

// However a session is damaged, what is read of it keeps the rules, and the run has an end. Each
// line is cut off with those after it, in its middle too, left out, doubled, and moved behind the
// next.
func TestDamagedSessions(t *testing.T) {
	for _, name := range corpora(t) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		for i := range lines {
			half := lines[i][:len(lines[i])/2]
			for what, damaged := range map[string][]string{
				"cut off":  lines[:i+1],
				"cut in":   append(slices.Clone(lines[:i]), half),
				"left out": slices.Delete(slices.Clone(lines), i, i+1),
				"doubled":  slices.Insert(slices.Clone(lines), i, lines[i]),
				"moved":    slices.Insert(slices.Delete(slices.Clone(lines), i, i+1), min(i+1, len(lines)-1), lines[i]),
			} {
				if len(damaged) == 0 {
					continue
				}
				snapshot, refused := decode(t, damaged)
				if snapshot == nil || snapshot.RunID == "" {
					continue
				}
				where := fmt.Sprintf("%s: line %d %s", name, i+1, what)
				require.NoError(t, refused, where)
				require.Empty(t, snapshot.Violations, where)
				require.True(t, snapshot.Status.Terminal(), where)
				for _, call := range snapshot.OpenCalls {
					t.Fatalf("%s: call %s is open", where, call.CallID)
				}
			}
		}
	}
}

// A stream of any lines is read without a panic, and keeps the rules.
func FuzzDecode(f *testing.F) {
	for _, name := range corpora(f) {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(text[:min(len(text), 4096)]))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if snapshot, _ := decode(t, strings.Split(text, "\n")); snapshot != nil {
			require.Empty(t, snapshot.Violations)
		}
	})
}

// Whatever a member has in place of its value, at any depth, what is read keeps the rules.
func TestChangedMembers(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 0))
	for _, name := range corpora(t) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		for range effort.Of(2, 5, 200) {
			i := r.IntN(len(lines))
			changed := slices.Clone(lines)
			changed[i] = changeMember(r, lines[i])
			snapshot, refused := decode(t, changed)
			if snapshot == nil || snapshot.RunID == "" {
				continue
			}
			require.NoError(t, refused, "%s: %s", name, changed[i])
			require.Empty(t, snapshot.Violations, "%s: %s", name, changed[i])
			require.True(t, snapshot.Status.Terminal(), "%s: %s", name, changed[i])
			require.Empty(t, snapshot.OpenCalls, "%s: %s", name, changed[i])
		}
	}
}

// changeMember changes a value in a line: one after a colon.
func changeMember(r *rand.Rand, line string) string {
	var at []int
	for i := range line {
		if line[i] == ':' && i > 0 && line[i-1] == '"' {
			at = append(at, i+1)
		}
	}
	if len(at) == 0 {
		return line
	}
	begin := at[r.IntN(len(at))]
	var s jsonwire.Scanner
	s.Reset(line[begin:])
	raw, err := s.Raw()
	if err != nil {
		return line // within a text
	}
	values := []string{"null", `""`, `"x"`, "-1", "1e3", "true", "[]", "{}", `[{"type":"text"}]`, `{"a":1}`}
	return line[:begin] + values[r.IntN(len(values))] + strings.TrimPrefix(line[begin:], raw)
}
