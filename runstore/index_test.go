package runstore_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/runstore"
)

// state is all that a store says.
func state(t testing.TB, s runstore.Store) string {
	var b strings.Builder
	for info, err := range s.Runs(t.Context(), "") {
		require.NoError(t, err)
		fmt.Fprintf(&b, "%+v\n%s\n", info, strings.Join(lines(t, s, info.RunID), "\n"))
	}
	return b.String()
}

// A store that is opened with a saved index says what one does that has read its whole
// log. An index that is not one of the log is not used.
func TestSavedIndex(t *testing.T) {
	log := &logfile.Options{MaxBytes: 1500, Chain: true}
	o := runstore.Options{Log: log}
	save := o.SaveIndexAlways()
	grow := func(t testing.TB, dir, text string) {
		s := open(t, dir, save)
		for seq := range uint64(10) {
			for _, run := range []string{"a", "b", "a b"} {
				require.NoError(t, s.Append(t.Context(), run, seq, entry(t, run, seq, text)))
			}
		}
		require.NoError(t, s.Close())
	}
	for _, c := range []struct {
		name   string
		damage func(t testing.TB, dir, index, log string)
		used   bool
	}{
		{"whole", func(testing.TB, string, string, string) {}, true},
		{"older than the log", func(t testing.TB, dir, index, _ string) {
			old, err := os.ReadFile(index)
			require.NoError(t, err)
			s := open(t, dir, save)
			fill(t, s, "later", "text", 9, 0)
			require.NoError(t, s.Close())
			require.NoError(t, os.WriteFile(index, old, 0o600))
		}, true},
		{"removed", func(t testing.TB, _, index, _ string) { require.NoError(t, os.Remove(index)) }, false},
		{"truncated", func(t testing.TB, _, index, _ string) { require.NoError(t, os.Truncate(index, 300)) }, false},
		{"changed", func(t testing.TB, _, index, _ string) {
			text, err := os.ReadFile(index)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(index, bytes.Replace(text, []byte(`"next":`), []byte(`"next":1`), 1), 0o600))
		}, false},
		{"newer than the log", func(t testing.TB, _, _, log string) {
			segments, err := logfile.Segments(log)
			require.NoError(t, err)
			require.NoError(t, os.Remove(segments[len(segments)-1].Path))
		}, false},
		{"of another log", func(t testing.TB, dir, index, _ string) {
			text, err := os.ReadFile(index)
			require.NoError(t, err)
			require.NoError(t, os.RemoveAll(dir))
			grow(t, dir, "Text")
			require.NoError(t, os.WriteFile(index, text, 0o600))
		}, false},
		{"of a log that lacks a segment", func(t testing.TB, _, _, log string) { require.NoError(t, os.Remove(log+".000002")) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			index := filepath.Join(dir, "index.json")
			grow(t, dir, "text")
			c.damage(t, dir, index, filepath.Join(dir, "events.jsonl"))
			s := open(t, dir, o)
			read, got := s.ReadAtOpen(), state(t, s)
			require.NoError(t, s.Close())

			require.NoError(t, os.RemoveAll(index))
			s = open(t, dir, o)
			require.Equal(t, state(t, s), got)
			require.Equal(t, c.used, read < s.ReadAtOpen())
			require.NoError(t, s.Append(t.Context(), "a", 10, entry(t, "a", 10, "text")))
		})
	}
}
