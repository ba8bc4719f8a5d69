package appends

import (
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/bench/internal/measure"
	"github.com/agentevents/agentevents/logfile"
)

// Grouped commits each line once, and a writer returns after the commit that has its line.
func TestGrouped(t *testing.T) {
	var mu sync.Mutex
	lines, commits := 0, 0
	add := Grouped(func(l [][]byte) error {
		mu.Lock()
		defer mu.Unlock()
		lines += len(l)
		commits++
		return nil
	})
	c := Cell("grouped", Waiters, func(*measure.Cell) (Append, error) { return add, nil })
	loop, err := c.Setup(c)
	require.NoError(t, err)
	require.NoError(t, loop(1000))
	require.Equal(t, 1000, lines)
	require.LessOrEqual(t, commits, 1000)

	broken := Grouped(func([][]byte) error { return errors.New("full") })
	require.EqualError(t, broken(0, 0), "full")
	require.EqualError(t, broken(0, 1), "full", "a group that lost lines takes no more")
}

func TestOursAndBare(t *testing.T) {
	for name, setup := range map[string]func(*measure.Cell) (Append, error){
		"ours": Ours(t.TempDir(), logfile.Options{Sync: logfile.SyncEvery}), "bare": Bare(t.TempDir()),
	} {
		c := Cell(name, Waiters, setup)
		loop, err := c.Setup(c)
		require.NoError(t, err)
		require.NoError(t, loop(200), name)
	}
}

// The peers' line is about as long as ours.
func TestLine(t *testing.T) {
	dir := t.TempDir()
	append1, err := Ours(dir, logfile.Options{Sync: logfile.SyncEvery})(nil)
	require.NoError(t, err)
	size := func() (n int64) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			info, err := os.Stat(dir + "/" + e.Name() + "/log.jsonl")
			require.NoError(t, err)
			n += info.Size()
		}
		return n
	}
	before := size()
	require.NoError(t, append1(0, 0))
	require.InDelta(t, len(Line), size()-before, 150)
}
