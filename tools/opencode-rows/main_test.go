package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

const schema = `
CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, slug TEXT, project_id TEXT, directory TEXT, title TEXT, version TEXT, revert TEXT, model TEXT, cost REAL, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE event (id TEXT PRIMARY KEY, aggregate_id TEXT, seq INTEGER, type TEXT, data TEXT);
CREATE UNIQUE INDEX event_idx ON event (aggregate_id, seq);
CREATE TABLE account (id TEXT, access_token TEXT);
INSERT INTO account VALUES ('a', 'token-of-the-account');
`

type row = map[string]any

// rowsOf returns rows of a recorded session, by table.
func rowsOf(t *testing.T, name string) (out map[string][]row) {
	text, err := os.ReadFile("../../capture/testdata/opencode/" + name + "/rows.json")
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&out))
	return out
}

// open opens a database to write to.
func open(t *testing.T, path string) *sql.DB {
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// build makes a database of rows, and returns it open.
func build(t *testing.T, path, schema string, all map[string][]row, columns map[string][]string) *sql.DB {
	db := open(t, path)
	_, err := db.Exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;" + schema)
	require.NoError(t, err)
	for table, names := range columns {
		for _, r := range all[table] {
			values, marks := make([]any, len(names)), make([]string, len(names))
			for i, name := range names {
				marks[i] = "?"
				switch v := r[name].(type) {
				case row:
					text, err := json.Marshal(v)
					require.NoError(t, err)
					values[i] = string(text)
				case json.Number:
					values[i] = v.String()
				default:
					values[i] = v
				}
			}
			_, err := db.Exec("INSERT INTO "+table+" ("+strings.Join(names, ", ")+") VALUES ("+strings.Join(marks, ", ")+")", values...)
			require.NoError(t, err)
		}
	}
	return db
}

var allColumns = map[string][]string{
	"session": {"id", "parent_id", "slug", "project_id", "directory", "title", "version", "revert", "model", "time_created", "time_updated"},
	"message": {"id", "session_id", "time_created", "time_updated", "data"},
	"part":    {"id", "message_id", "session_id", "time_created", "time_updated", "data"},
	"event":   {"id", "aggregate_id", "seq", "type", "data"},
}

// printed runs the command, and returns the rows that it prints. Its temporary folder is empty then.
func printed(t *testing.T, args ...string) (rows []row, err error) {
	dir := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, dir)
	}
	var out, messages bytes.Buffer
	err = run(t.Context(), args, &out, &messages)
	left, readErr := os.ReadDir(dir)
	require.NoError(t, readErr)
	require.Empty(t, left, "the copy is deleted")
	require.NotContains(t, out.String(), "token-of-the-account")
	for line := range strings.Lines(out.String()) {
		var r row
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		require.NoError(t, d.Decode(&r))
		rows = append(rows, r)
	}
	return rows, err
}

// folder describes the files of a folder.
func folder(t *testing.T, dir string) (out []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		out = append(out, fmt.Sprintf("%s %s %x %s", e.Name(), info.Mode(), sha256.Sum256(text), info.ModTime()))
	}
	return out
}

// ids returns the ids of rows, with the members of their data.
func ids(rows []row) (out []string) {
	for _, r := range rows {
		data := r["data"]
		if text, ok := data.(string); ok {
			var v any
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			if d.Decode(&v) == nil {
				data = v
			}
		}
		text, _ := json.Marshal(data)
		out = append(out, fmt.Sprint(r["id"], " ", string(text)))
	}
	slices.Sort(out)
	return out
}

// All rows are in the write-ahead log of a program that is at work, as opencode leaves them. They
// are printed, and the folder stays as it was, byte for byte.
func TestRowsInTheLog(t *testing.T) {
	for _, name := range []string{"reverted", "subagent", "run-sigint"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "opencode.db")
		all := rowsOf(t, name)
		build(t, path, schema, all, allColumns)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.EqualValues(t, 4096, info.Size(), "the database itself is empty")
		before := folder(t, dir)
		rows, err := printed(t, "--db", path)
		require.NoError(t, err)
		require.Equal(t, ids(slices.Concat(all["session"], all["event"])), ids(rows), name)
		require.Equal(t, before, folder(t, dir))
	}
}

// A store without a journal, as an older version left it, gives its messages and parts, with the
// columns that there are.
func TestOlderSchema(t *testing.T) {
	const old = `
CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, title TEXT, time_created INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);`
	path := filepath.Join(t.TempDir(), "opencode.db")
	all := rowsOf(t, "reverted")
	db := build(t, path, old, all, map[string][]string{
		"session": {"id", "parent_id", "title", "time_created"}, "message": {"id", "session_id", "data"}, "part": {"id", "message_id", "session_id", "data"},
	})
	rows, err := printed(t, "--db", path)
	require.NoError(t, err)
	require.Equal(t, ids(slices.Concat(all["session"], all["message"], all["part"])), ids(rows))

	_, err = db.Exec(`ALTER TABLE message RENAME COLUMN data TO body`)
	require.NoError(t, err)
	_, err = printed(t, "--db", path)
	require.ErrorContains(t, err, "table message has no column data")
	require.ErrorContains(t, err, "use opencode export")
}

// A journal that begins after its session, as after a migration, is not the session.
func TestJournalWithoutItsBeginning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "opencode.db")
	all := rowsOf(t, "run-sigint")
	db := build(t, path, schema, all, allColumns)
	_, err := db.Exec(`DELETE FROM event WHERE seq < 4`)
	require.NoError(t, err)
	rows, err := printed(t, "--db", path)
	require.NoError(t, err)
	require.Equal(t, ids(slices.Concat(all["session"], all["message"], all["part"])), ids(rows))
}

// While a program writes, and moves its log into the database again and again, each copy is one
// that the database had: no event is missing before the last one.
func TestWhileWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "opencode.db")
	db := build(t, path, schema, nil, nil)
	_, err := db.Exec(`INSERT INTO session (id, title, time_created) VALUES ('ses_1', 't', 1); INSERT INTO event VALUES ('evt_0', 'ses_1', 0, 'session.created.1', '{}')`)
	require.NoError(t, err)
	var written atomic.Int64
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := int64(1); ; n++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			_, err := db.Exec(`INSERT INTO event VALUES (?, 'ses_1', ?, 'message.updated.1', ?)`, fmt.Sprint("evt_", n), n, `{"filler":"`+strings.Repeat("x", 2000)+`"}`)
			if err == nil && n%40 == 0 {
				_, err = db.Exec([]string{`PRAGMA wal_checkpoint(RESTART)`, `PRAGMA wal_checkpoint(TRUNCATE)`, `PRAGMA wal_checkpoint(PASSIVE)`}[n/40%3])
			}
			if err != nil {
				stopped <- err
				return
			}
			written.Store(n)
		}
	}()
	whole := 0
	for range 12 {
		before := written.Load()
		rows, err := printed(t, "--db", path)
		if err != nil {
			require.ErrorContains(t, err, "changes all the time: end opencode, or try again")
			continue
		}
		whole++
		require.GreaterOrEqual(t, int64(len(rows)), before+2, "earlier commits are there")
		for i, r := range rows[1:] {
			require.Equal(t, fmt.Sprint(i), fmt.Sprint(r["seq"]))
		}
	}
	close(stop)
	require.NoError(t, <-stopped)
	rows, err := printed(t, "--db", path)
	require.NoError(t, err)
	require.Len(t, rows, int(written.Load())+2)
	t.Logf("%d of 12 copies while %d rows were written", whole, written.Load())
}

// The errors name the remedy.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "opencode.db")
	refused := func(want string, args ...string) {
		t.Helper()
		_, err := printed(t, args...)
		require.ErrorContains(t, err, want)
	}
	refused("is not there: name the database with --db", "--db", path)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "storage", "session"), 0o700))
	refused("start a newer opencode once", "--db", path)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	refused("is empty: opencode has not written a session yet", "--db", path)
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("text\n", 100)), 0o600))
	refused("is not a SQLite database", "--db", path)
	refused("is not a file", "--db", dir)

	all := rowsOf(t, "reverted")
	lost := filepath.Join(dir, "lost.db")
	build(t, lost, schema, all, allColumns)
	text, err := os.ReadFile(lost)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o600)) // without its log
	refused("opencode keeps its rows in the file "+path+"-wal", "--db", path)

	db := open(t, lost)
	_, err = db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	require.NoError(t, err)
	text, err = os.ReadFile(lost)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text[:len(text)/2], 0o600))
	refused("if opencode reads it, end opencode and try again", "--db", path)

	refused("has no session ses_none; --list prints them", "--db", lost, "ses_none")
	refused("begins the ids of 2 sessions: ses_", "--db", lost, "ses_")
	none := filepath.Join(dir, "none.db")
	build(t, none, schema, nil, nil)
	refused("has no session", "--db", none)
}

// A sub-agent is printed with its session, and a session of its own by its id or its beginning.
func TestChosenSessions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "opencode.db")
	all := rowsOf(t, "subagent")
	build(t, path, schema, all, allColumns)
	root, child := all["session"][0]["id"].(string), all["session"][1]["id"].(string)
	rows, err := printed(t, "--db", path, root[:12])
	require.NoError(t, err)
	require.Len(t, rows, 2+len(all["event"]))
	rows, err = printed(t, "--db", path, child)
	require.NoError(t, err)
	require.Equal(t, child, rows[0]["id"])
	for _, r := range rows[1:] {
		require.Equal(t, child, r["aggregate_id"])
	}

	var out, messages bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"--db", path, "--list"}, &out, &messages))
	require.Equal(t, root+"  2026-11-28 11:23:49Z  sub\n", out.String())
	out.Reset()
	dir := filepath.Join(t.TempDir(), "sessions")
	require.NoError(t, run(t.Context(), []string{"--db", path, "--out", dir}, &out, &messages))
	require.Empty(t, out.String())
	info, err := os.Stat(filepath.Join(dir, root+".jsonl"))
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, "-rw-------", info.Mode().String())
	}
}

// Only the owner may read the copy, and an interrupt leaves none.
func TestCopyIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits")
	}
	path, dir := filepath.Join(t.TempDir(), "opencode.db"), t.TempDir()
	t.Setenv("TMPDIR", dir)
	build(t, path, schema, rowsOf(t, "subagent"), allColumns)
	require.NoError(t, os.Chmod(path, 0o644))
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	err := withCopy(ctx, path, func(db *sql.DB) error {
		require.NoError(t, db.Ping())
		require.NoError(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := d.Info()
			require.NoError(t, err)
			if name != dir {
				require.Zero(t, info.Mode().Perm()&0o077, name)
				seen++
			}
			return nil
		}))
		cancel()
		_, err := openStore(ctx, db, path)
		return err
	})
	require.ErrorIs(t, err, context.Canceled)
	require.GreaterOrEqual(t, seen, 3, "a folder, the database and its log")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.ErrorIs(t, withCopy(ctx, path, func(*sql.DB) error { return nil }), context.Canceled)
}
