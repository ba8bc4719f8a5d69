//go:build unix

package pgstore_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/pgstore"
)

// put appends the events with these sequences, each by itself.
func put(t testing.TB, s runstore.Store, run string, from, to int) {
	t.Helper()
	for _, e := range events(t, run, to)[from:] {
		require.NoError(t, s.Append(t.Context(), run, e.Event.Sequence, e))
	}
}

// lose has the server forget the events of a run from a sequence on, as in a crash.
func lose(t testing.TB, db *sql.DB, run string, from int) {
	t.Helper()
	for _, statement := range []string{
		`DELETE FROM agentevents_events WHERE run_id = $1 AND sequence >= $2`,
		`UPDATE agentevents_runs SET next = $2 WHERE run_id = $1`,
		`DELETE FROM agentevents_runs WHERE run_id = $1 AND next = 0 AND $2 = 0`,
	} {
		_, err := db.Exec(statement, run, from)
		require.NoError(t, err)
	}
}

// What a server loses between an append and its commit is appended again: whoever waits for the
// commit gets no acknowledgement of what is not there.
func TestLostBeforeCommit(t *testing.T) {
	db, _ := need(t).fresh(t)
	for name, f := range map[string]func(t testing.TB, run string, st *pgstore.Store){
		"a commit": func(t testing.TB, run string, st *pgstore.Store) {
			put(t, st, run, 0, 2)
			require.NoError(t, st.Commit(t.Context()))
			put(t, st, run, 2, 5)
			lose(t, db, run, 3)
		},
		"a commit of a new run": func(t testing.TB, run string, st *pgstore.Store) {
			put(t, st, run, 0, 5)
			lose(t, db, run, 0)
		},
		"an append": func(t testing.TB, run string, st *pgstore.Store) {
			put(t, st, run, 0, 3)
			lose(t, db, run, 1)
			put(t, st, run, 3, 5)
		},
		"the same append": func(t testing.TB, run string, st *pgstore.Store) {
			put(t, pgstore.New(db, pgstore.Options{}), run, 0, 5) // the connection broke before the answer
			put(t, st, run, 0, 5)
			lose(t, db, run, 4)
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := pgstore.New(db, pgstore.Options{})
			f(t, name, st)
			require.NoError(t, st.Commit(t.Context()))
			require.Len(t, load(t, st, name), 5)
		})
	}
	t.Run("another writer", func(t *testing.T) {
		st, other := pgstore.New(db, pgstore.Options{}), pgstore.New(db, pgstore.Options{})
		put(t, st, "r", 0, 3)
		put(t, st, "s", 0, 3)
		lose(t, db, "r", 0)
		lose(t, db, "s", 1)
		e, err := runstore.NewEntry(ae.Event{ID: "of another", RunID: "r", Time: time.Now(), SchemaVersion: ae.SchemaVersion, Payload: &ae.RunStarted{}})
		require.NoError(t, err)
		require.NoError(t, other.Append(t.Context(), "r", 0, e))
		var conflict *runstore.ConflictError
		require.ErrorAs(t, st.Commit(t.Context()), &conflict)
		require.Equal(t, runstore.ConflictError{RunID: "r", Expect: 0, Next: 1}, *conflict)
		require.Len(t, load(t, st, "s"), 3)
		require.NoError(t, st.Commit(t.Context()))
		require.ErrorAs(t, st.Append(t.Context(), "r", 3, events(t, "r", 4)[3]), &conflict)
		require.Equal(t, []string{e.Line}, load(t, st, "r"))
	})
}

// A commit is durable also where the database is set not to wait for the disk.
func TestCommitWaits(t *testing.T) {
	s := own(t)
	_, schema := s.fresh(t)
	db := s.Open(t, schema, "options='-c synchronous_commit=off'")
	st := pgstore.New(db, pgstore.Options{})
	put(t, st, "r", 0, 2)
	s.crash(t, db) // in a server that has begun, the log's writer sleeps
	put(t, st, "s", 0, 5)
	require.NoError(t, st.Commit(t.Context()))
	s.crash(t, db)
	require.Len(t, load(t, st, "s"), 5)
}

// The context of one who commits ends, and nobody else's commit with it.
func TestCommitContexts(t *testing.T) {
	db, _ := need(t).fresh(t)
	st := pgstore.New(db, pgstore.Options{})
	put(t, st, "r", 0, 1)
	held, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = held.Exec("LOCK TABLE agentevents_events IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	first, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- st.Commit(first) }()
	waits := func() bool {
		var n int
		require.NoError(t, held.QueryRow("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'agentevents_events'::regclass").Scan(&n))
		return n > 0
	}
	require.Eventually(t, waits, time.Minute, time.Millisecond)
	others := make(chan error)
	for range 8 {
		go func() { others <- st.Commit(t.Context()) }()
	}
	late, end := context.WithTimeout(t.Context(), time.Millisecond) //wallclock: the lock is held until after it ends
	defer end()
	require.ErrorIs(t, st.Commit(late), context.DeadlineExceeded)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.NoError(t, held.Rollback())
	for range 8 {
		require.NoError(t, <-others)
	}
}

// An append commits what nobody does, before it takes the memory of the process.
func TestManyAppendsWithoutCommit(t *testing.T) {
	db, _ := need(t).fresh(t)
	st := pgstore.New(db, pgstore.Options{})
	for i := range 4 {
		e, err := runstore.NewEntry(ae.Event{RunID: "r", Sequence: uint64(i), SchemaVersion: ae.SchemaVersion, Payload: &ae.TextCompleted{Text: strings.Repeat("x", 5<<20)}})
		require.NoError(t, err)
		require.NoError(t, st.Append(t.Context(), "r", uint64(i), e))
	}
	lose(t, db, "r", 0)
	require.NoError(t, st.Commit(t.Context()))
	require.Empty(t, load(t, st, "r"), "committed events are not appended again")
}
