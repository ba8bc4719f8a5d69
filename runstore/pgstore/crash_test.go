//go:build unix

package pgstore_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/pgstore"
)

// These have the test program be a writer that is killed, or a process that fills columns. The value
// names the connection.
const (
	writerEnv = "AGENTEVENTS_PG_WRITER"
	fillerEnv = "AGENTEVENTS_PG_FILLER"
)

// writer goes on with the run, as fast as it can, and prints each sequence after Emit returned
// for it.
func writer(ctx context.Context, connection string) error {
	db, err := sql.Open("pgx", connection)
	if err != nil {
		return err
	}
	st := pgstore.New(db, pgstore.Options{})
	e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(st)}})
	if err != nil {
		return err
	}
	next, run := uint64(0), (*ae.Run)(nil)
	switch r, err := runstore.Restore(ctx, st, "r", ae.FoldOptions{}); {
	case errors.Is(err, runstore.ErrNoRun):
		run, err = e.Run("r")
		if err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		next = r.Snapshot.NextSequence
		if run, err = e.Resume(r.Snapshot); err != nil {
			return err
		}
	}
	for ; ; next++ {
		if err := run.Emit(ctx, &ae.StatePatched{Path: "n", Op: "set", Value: ae.JSON(fmt.Sprint(next))}); err != nil {
			return err
		}
		fmt.Println(next)
	}
}

// Writers are killed, and others go on with the run: what Emit returned for is there, once and in
// order.
func TestKilledWriters(t *testing.T) {
	s := need(t)
	db, schema := s.fresh(t)
	acked := uint64(0)
	for round := range effort.Of(1, 4, 40) {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), writerEnv+"="+s.Connection(schema))
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		in := bufio.NewScanner(out)
		for n := 0; in.Scan(); n++ {
			var next uint64
			if _, err := fmt.Sscan(in.Text(), &next); err != nil {
				require.NotContains(t, in.Text(), "error")
				break // cut by the kill
			}
			acked = max(acked, next+1)
			if n == 1+round*7%11 {
				require.NoError(t, c.Process.Kill())
			}
		}
		_ = c.Wait() // it was killed
		require.Equal(t, -1, c.ProcessState.ExitCode(), "it was killed, and did not end by itself")
	}
	st := pgstore.New(db, pgstore.Options{})
	fold, n := ae.NewFold(ae.FoldOptions{}), uint64(0)
	for e, err := range st.Load(t.Context(), "r", 0) {
		require.NoError(t, err)
		require.Equal(t, n, e.Event.Sequence)
		fold.Apply(e.Event)
		n++
	}
	require.GreaterOrEqual(t, n, acked)
	require.Empty(t, fold.Snapshot().Violations)
	same(t, made(t, stored(t, st)), asked(t, db))
	t.Logf("%d events acknowledged, %d in the store", acked, n)
}
