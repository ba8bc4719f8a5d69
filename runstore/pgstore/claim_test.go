//go:build unix

package pgstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/pgstore"
)

// A database that was made before there were claims gets them, and its runs are claimed.
func TestClaimsOfOlderTables(t *testing.T) {
	s := need(t)
	db, _ := s.fresh(t)
	st := pgstore.New(db, pgstore.Options{})
	require.NoError(t, st.Append(t.Context(), "r", 0, entry(t, "r", 0, &ae.RunStarted{})))
	require.NoError(t, st.Commit(t.Context()))
	_, err := db.Exec("DROP TABLE agentevents_claims; ALTER TABLE agentevents_runs DROP COLUMN claim")
	require.NoError(t, err)
	require.NoError(t, pgstore.Create(t.Context(), db))
	c, err := st.Claim(t.Context(), runstore.Claim{RunID: "r", Worker: "w", Lease: time.Minute})
	require.NoError(t, err)
	require.NoError(t, st.AppendClaimed(t.Context(), c, 1, entry(t, "r", 1, &ae.RunCompleted{})))
}

// A server that crashes has lost the events of a worker whose run another one has claimed since: the
// worker hears it, and its commits of other runs go on.
func TestClaimsAfterACrash(t *testing.T) {
	s := own(t)
	db, schema := s.fresh(t)
	a := pgstore.New(db, pgstore.Options{})
	b := pgstore.New(s.Open(t, schema), pgstore.Options{})
	c, err := a.Claim(t.Context(), runstore.Claim{RunID: "r", Worker: "a", Lease: time.Second})
	require.NoError(t, err)
	require.NoError(t, a.AppendClaimed(t.Context(), c, 0, entry(t, "r", 0, &ae.RunStarted{})))
	require.NoError(t, a.Append(t.Context(), "other", 0, entry(t, "other", 0, &ae.RunStarted{})))
	s.crash(t, db)
	if n := len(ids(t, b, "r")); n > 0 {
		t.Logf("the server kept %d events", n)
	}
	require.Eventually(t, func() bool {
		_, err := b.Claim(t.Context(), runstore.Claim{RunID: "r", Worker: "b", Lease: time.Minute})
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	if len(ids(t, b, "r")) == 0 {
		require.ErrorIs(t, a.Commit(t.Context()), runstore.ErrClaimed)
	}
	require.NoError(t, a.Commit(t.Context()))
	require.Len(t, ids(t, b, "other"), 1)
	require.ErrorIs(t, a.AppendClaimed(t.Context(), c, 1, entry(t, "r", 1, &ae.RunCompleted{})), runstore.ErrClaimed)
}

func entry(t testing.TB, runID string, seq uint64, p ae.Payload) runstore.Entry {
	e, err := runstore.NewEntry(ae.Event{ID: runID + "-" + string(rune('0'+seq)), RunID: runID, Sequence: seq, Time: time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC), SchemaVersion: ae.SchemaVersion, Payload: p})
	require.NoError(t, err)
	return e
}

func ids(t testing.TB, st runstore.Store, runID string) (all []string) {
	for e, err := range st.Load(t.Context(), runID, 0) {
		require.NoError(t, err)
		all = append(all, e.Event.ID)
	}
	return all
}
