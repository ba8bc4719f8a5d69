package runstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/runstore"
)

// fullEnv has TestFullDisk be the process whose disk is full for a while.
const fullEnv = "AGENTEVENTS_FULL_STORE"

// While the disk is full every event has the error, and written events can be read. Afterwards all are
// there, once and in order.
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
			require.Len(t, lines(t, s, "new"), 3)
		})
	}
}

func fillDisk(ctx context.Context, dir string, every bool) error {
	signal.Ignore(syscall.SIGXFSZ)
	var told atomic.Int64
	o := runstore.Options{OnError: func(error) { told.Add(1) }}
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
	whole, err := e.Run("other")
	if err != nil {
		return err
	}
	begun, err := e.Run("new")
	if err != nil {
		return err
	}
	if err := whole.Emit(ctx, &ae.RunStarted{}); err != nil {
		return err
	}
	watched := make(chan uint64)
	go func() {
		defer close(watched)
		for e, err := range s.Watch(ctx, "r", 0) {
			if err != nil {
				fmt.Println("watch:", err)
				return
			}
			watched <- e.Event.Sequence
		}
	}()
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
		if limit.Cur != was.Cur {
			if err := begun.Emit(ctx, &ae.StatePatched{Path: "x", Op: "set", Value: "1"}); !errors.Is(err, syscall.EFBIG) {
				return fmt.Errorf("the new run: %w", err)
			}
			if got, want := reads(ctx, s), full; got != want {
				return fmt.Errorf("while the disk is full:\n%s\nwant:\n%s", got, want)
			}
			continue
		}
		if seq == 5 { // with the events that were not written
			for _, want := range []uint64{3, 4} {
				if got, ok := <-watched; got != want || !ok {
					return fmt.Errorf("the watch has event %d, want %d", got, want)
				}
			}
		}
		if got, ok := <-watched; got != uint64(seq) || !ok {
			return fmt.Errorf("the watch has event %d, want %d", got, seq)
		}
	}
	if told.Load() == 0 {
		return errors.New("OnError has not heard of the disk")
	}
	return errors.Join(begun.Emit(ctx, &ae.RunCompleted{}), e.Close(ctx), s.Close())
}

// full is the answer of reads while events of r and new are not written.
const full = `runs: other 1, r 3, file too large
r: next 3, events 0 1 2, file too large
other: next 1, events 0
new: file too large, file too large
none: runstore: the store has no such run`

// reads describes what a store has.
func reads(ctx context.Context, s runstore.Store) string {
	short := func(err error) string {
		if errors.Is(err, syscall.EFBIG) {
			return syscall.EFBIG.Error()
		}
		text, _, _ := strings.Cut(err.Error(), " (")
		return text
	}
	var all []string
	for info, err := range s.Runs(ctx, "") {
		if err != nil {
			all = append(all, short(err))
		} else {
			all = append(all, fmt.Sprint(info.RunID, " ", info.Next))
		}
	}
	out := "runs: " + strings.Join(all, ", ")
	for _, id := range []string{"r", "other", "new", "none"} {
		var parts []string
		if info, err := s.Run(ctx, id); err != nil {
			parts = append(parts, short(err))
		} else {
			parts = append(parts, fmt.Sprint("next ", info.Next))
		}
		var failed error
		events := "events"
		for e, err := range s.Load(ctx, id, 0) {
			if failed = err; err == nil {
				events += fmt.Sprint(" ", e.Event.Sequence)
			}
		}
		if events != "events" {
			parts = append(parts, events)
		}
		if failed != nil {
			parts = append(parts, short(failed))
		}
		out += "\n" + id + ": " + strings.Join(parts, ", ")
	}
	return out
}
