package runstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/runstore"
)

const crashEnv = "AGENTEVENTS_CRASH_STORE"

const crashRuns = 4

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashEnv); dir != "" {
		fmt.Println("error", crashChild(context.Background(), dir))
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// crashChild begins runs or goes on with them, as fast as it can, and prints every event
// after Emit returned for it. It saves snapshots meanwhile. It is killed.
func crashChild(ctx context.Context, dir string) error {
	o := runstore.Options{Log: &logfile.Options{Sync: logfile.SyncEvery, MaxBytes: 20_000, Compress: true}}
	s, err := runstore.Open(dir, o.SaveIndexAlways())
	if err != nil {
		return err
	}
	e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(s)}})
	if err != nil {
		return err
	}
	errs := make(chan error)
	for n := range crashRuns {
		go func() { errs <- crashRun(ctx, s, e, fmt.Sprint("run-", n)) }()
	}
	return <-errs
}

func crashRun(ctx context.Context, s *runstore.File, e *ae.Emitter, id string) error {
	next := uint64(0)
	r, err := runstore.Restore(ctx, s, id, ae.FoldOptions{})
	var run *ae.Run
	switch {
	case errors.Is(err, runstore.ErrNoRun):
		run, err = e.Run(id)
	case err == nil:
		next = r.Snapshot.NextSequence
		run, err = e.Resume(r.Snapshot)
	}
	if err != nil {
		return err
	}
	for ; ; next++ {
		if err := run.Emit(ctx, &ae.StatePatched{Path: "n", Op: "set", Value: ae.JSON(fmt.Sprint(next))}); err != nil {
			return err
		}
		fmt.Println(id, next)
		if next%16 != 0 {
			continue
		}
		r, err := runstore.Restore(ctx, s, id, ae.FoldOptions{})
		if err == nil {
			err = errors.Join(r.Distrust, s.SaveSnapshot(ctx, r.Snapshot))
		}
		if err != nil {
			return err
		}
	}
}

// killed starts a process that writes the store, kills it after so many events, and
// notes what it has acknowledged. look is called while it runs.
func killed(t *testing.T, dir string, events int, acked map[string]uint64, look func()) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), crashEnv+"="+dir)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	in := bufio.NewScanner(out)
	for n := 0; in.Scan(); n++ {
		var run string
		var seq uint64
		if k, err := fmt.Sscan(in.Text(), &run, &seq); k != 2 || err != nil {
			require.NotEqual(t, "error", run, in.Text())
			break // cut by the kill
		}
		acked[run] = seq + 1
		if n == 0 {
			look()
		}
		if n == events {
			require.NoError(t, c.Process.Kill())
		}
	}
	_ = c.Wait() // it was killed
	require.Equal(t, -1, c.ProcessState.ExitCode(), "it was killed, and did not end by itself")
}

// Processes are killed while they write, and others go on: no event that was acknowledged
// is lost, none is there twice, an append that is repeated changes nothing, and the state
// is that of all events. While a process has the store no other opens it.
func TestKilledProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGKILL")
	}
	rounds := effort.Of(3, 8, 100)
	dir := t.TempDir()
	acked := map[string]uint64{}
	for round := range rounds {
		killed(t, dir, 50+round*37%100, acked, func() {
			_, err := runstore.Open(dir, runstore.Options{})
			require.ErrorIs(t, err, logfile.ErrLocked)
		})
		s := reopened(t, dir)
		for run, n := range acked {
			checkRun(t, s, run, n)
		}
		require.NoError(t, s.Close())
	}
	require.Len(t, acked, crashRuns)
}

// reopened opens the store of a process that was killed: the system may take a moment to
// let go of its lock.
func reopened(t *testing.T, dir string) *runstore.File {
	o := runstore.Options{OnError: func(err error) { t.Error(err) }}
	s, err := runstore.Open(dir, o)
	for ; errors.Is(err, logfile.ErrLocked); s, err = runstore.Open(dir, o) {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, err)
	return s
}

func checkRun(t *testing.T, s *runstore.File, run string, acked uint64) {
	var all []runstore.Entry
	fold := ae.NewFold(ae.FoldOptions{})
	for e, err := range s.Load(t.Context(), run, 0) {
		require.NoError(t, err)
		require.EqualValues(t, len(all), e.Event.Sequence)
		all = append(all, e)
		fold.Apply(e.Event)
	}
	n := uint64(len(all))
	require.GreaterOrEqual(t, n, acked, "run %s", run)
	for _, from := range []uint64{n - 1, max(n, 5) - 5, 0} { // as one who does not know what became of it
		require.NoError(t, s.Append(t.Context(), run, from, all[from:]...))
	}
	info, err := s.Run(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, n, info.Next)
	r, err := runstore.Restore(t.Context(), s, run, ae.FoldOptions{})
	require.NoError(t, err)
	require.NoError(t, r.Distrust)
	if acked > 1 { // the first snapshot is saved between the first two events
		require.Less(t, r.Folded, len(all), "the snapshot was used")
	}
	require.Equal(t, string(fold.Snapshot().AppendJSON(nil)), string(r.Snapshot.AppendJSON(nil)))
}
