package main

import (
	"database/sql"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/bench/internal/appends"
	"github.com/agentevents/agentevents/bench/internal/measure"
)

// appendTo appends lines by 64 writers, and closes the store.
func appendTo(t *testing.T, s *stores, lines int, setup func(*measure.Cell) (appends.Append, error)) {
	t.Helper()
	c := appends.Cell("store", appends.Waiters, setup)
	loop, err := c.Setup(c)
	require.NoError(t, err)
	require.NoError(t, loop(lines))
	s.close()
	s.closers = nil
}

// Every cell appends, or tells why it cannot. The cells have the names that bench asks for.
func TestCells(t *testing.T) {
	s := &stores{folder: t.TempDir()}
	defer s.close()
	cells := s.cells()
	require.Len(t, cells, 8)
	once := map[string]int{}
	for _, c := range cells {
		once[c.Name] = appends.Waiters
	}
	series, err := measure.Cells(cells, 1, once)
	require.NoError(t, err)
	for _, got := range series {
		if got.Missing != "" {
			t.Logf("%s: %s", got.Name, got.Missing)
			continue
		}
		require.Len(t, got.CPU, 1, got.Name)
		require.Positive(t, got.CPU[0], got.Name)
	}
}

// No store loses a line, or stores one twice.
func TestPebbleHasEveryLine(t *testing.T) {
	s := &stores{folder: t.TempDir()}
	appendTo(t, s, 500, s.pebble)
	db, err := pebble.Open(s.path("pebble"), &pebble.Options{Logger: quiet{}})
	require.NoError(t, err)
	defer db.Close()
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	lines := 0
	for it.First(); it.Valid(); it.Next() {
		require.Equal(t, appends.Line, it.Value())
		lines++
	}
	require.NoError(t, it.Close())
	require.Equal(t, 500, lines)
}

func TestSQLiteHasEveryLine(t *testing.T) {
	for grouped, file := range map[bool]string{false: "sqlite-false.db", true: "sqlite-true.db"} {
		s := &stores{folder: t.TempDir()}
		appendTo(t, s, 200, s.sqlite(grouped))
		db, err := sql.Open("sqlite", "file:"+s.path(file))
		require.NoError(t, err)
		defer db.Close()
		var lines int
		require.NoError(t, db.QueryRow("SELECT count(*) FROM lines WHERE line = ?", appends.Line).Scan(&lines))
		require.Equal(t, 200, lines)
	}
}
