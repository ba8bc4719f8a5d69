package runstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/runstore"
)

// fullEnv has TestFullDisk be the process whose disk is full for a while.
const fullEnv = "AGENTEVENTS_FULL_STORE"

// While the disk is full every event says so, and afterwards all are there, once and in
// order.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(fullEnv); dir != "" {
		require.NoError(t, fillDisk(t.Context(), dir, os.Getenv(fullEnv+"_SYNC") == "every"))
		return
	}
	for _, sync := range []string{"every", "interval"} {
		t.Run(sync, func(t *testing.T) {
			dir := t.TempDir()
			c := exec.Command(os.Args[0], "-test.run=^TestFullDisk$")
			c.Env = append(os.Environ(), fullEnv+"="+dir, fullEnv+"_SYNC="+sync)
			out, err := c.CombinedOutput()
			require.NoError(t, err, "%s", out)
			s := open(t, dir, runstore.Options{OnError: func(err error) { t.Error(err) }})
			require.Nil(t, s.Torn())
			require.Len(t, lines(t, s, "r"), 6)
			info, err := s.Run(t.Context(), "r")
			require.NoError(t, err)
			require.EqualValues(t, 6, info.Next)
		})
	}
}

func fillDisk(ctx context.Context, dir string, every bool) error {
	signal.Ignore(syscall.SIGXFSZ)
	var o runstore.Options
	if !every {
		o.Log = &logfile.Options{}
	}
	s, err := runstore.Open(dir, o)
	if err != nil {
		return err
	}
	e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(s)}})
	if err != nil {
		return err
	}
	run, err := e.Run("r")
	if err != nil {
		return err
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	for seq := range 6 {
		limit := was
		if full := seq == 3 || seq == 4; full {
			info, err := os.Stat(filepath.Join(dir, "events.jsonl"))
			if err != nil {
				return err
			}
			limit.Cur = uint64(info.Size()) + 20 // a part of the line has room
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		err := run.Emit(ctx, &ae.StatePatched{Path: "x", Op: "set", Value: ae.JSON(fmt.Sprint(seq))})
		if full := limit.Cur != was.Cur; full != errors.Is(err, syscall.EFBIG) || !full && err != nil {
			return fmt.Errorf("event %d: %w", seq, err)
		}
	}
	return errors.Join(e.Close(ctx), s.Close())
}
