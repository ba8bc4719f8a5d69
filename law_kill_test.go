package agentevents

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const crashEnv = "AGENTEVENTS_CRASH_LOG"

// crashChild emits to the log as fast as it can, and prints the sequence of
// every event after Emit returned for it. It is killed.
func crashChild(path string) error {
	var e *Emitter
	var r *Run
	w, err := OpenFile(path, WriterOptions{})
	if err != nil {
		return err
	}
	if e, err = NewEmitter(EmitterOptions{Sinks: []Sink{w}}); err != nil {
		return err
	}
	// A torn tail is an error here, and expected after a crash.
	snapshot, _ := readSnapshot(path)
	if snapshot == nil {
		r, err = e.Run("crash")
	} else {
		r, err = e.Resume(snapshot)
	}
	if err != nil {
		return err
	}
	next := uint64(0)
	if snapshot != nil {
		next = snapshot.NextSequence
	}
	for ; ; next++ {
		text := strings.Repeat("x", int(next*7919%9000))
		if err := r.Emit(context.Background(), &TextCompleted{Text: text}); err != nil {
			return err
		}
		fmt.Println(next)
	}
}

// readSnapshot folds the readable lines of a log; torn and bad lines are skipped.
func readSnapshot(path string) (*RunSnapshot, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	runs, err := foldSeq(NewReader(f, ReaderOptions{}).All(), FoldOptions{})
	if len(runs) != 1 {
		return nil, err
	}
	return runs[0], err
}

func TestKilledProcessLosesNothingThatEmitReturnedFor(t *testing.T) {
	if path := os.Getenv(crashEnv); path != "" {
		fmt.Println(crashChild(path))
		os.Exit(3)
	}
	if runtime.GOOS == "windows" {
		t.Skip("no SIGKILL")
	}
	path := filepath.Join(t.TempDir(), "log.jsonl")
	promised := -1 // highest sequence that Emit returned for
	for round := range 6 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledProcessLosesNothingThatEmitReturnedFor$")
		cmd.Env = append(os.Environ(), crashEnv+"="+path)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			seq, err := strconv.Atoi(lines.Text())
			if err != nil {
				break // cut by the kill
			}
			require.Equal(t, promised+1, seq)
			promised = seq
			if n == 40+round*37 {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait())
		require.Equal(t, -1, cmd.ProcessState.ExitCode(), "it was killed, and did not end by itself")

		if round%2 == 1 { // a machine that goes down tears the tail for sure
			info, err := os.Stat(path)
			require.NoError(t, err)
			seq := lastSequence(t, path)
			require.NoError(t, os.Truncate(path, info.Size()-3))
			if seq == promised {
				promised-- // this one we took away ourselves
			}
		}
		torn, events := checkLog(t, path, promised)
		require.LessOrEqual(t, torn, 1+round)
		promised = max(promised, events-1) // Emit may have written an event without time to return
	}

	// The log goes on in this process, and reads without errors.
	snapshot, _ := readSnapshot(path)
	require.NotNil(t, snapshot)
	w, err := OpenFile(path, WriterOptions{})
	require.NoError(t, err)
	e, err := NewEmitter(EmitterOptions{Sinks: []Sink{w}})
	require.NoError(t, err)
	r, err := e.Resume(snapshot)
	require.NoError(t, err)
	require.NoError(t, r.Emit(t.Context(), &RunCompleted{}))
	require.NoError(t, e.Close(t.Context()))
	snapshot, _ = readSnapshot(path)
	require.Empty(t, snapshot.Violations)
	require.Equal(t, RunStatusCompleted, snapshot.Status)
	require.EqualValues(t, promised+2, snapshot.NextSequence)
}

func lastSequence(t *testing.T, path string) int {
	t.Helper()
	snapshot, _ := readSnapshot(path)
	require.NotNil(t, snapshot)
	return int(snapshot.NextSequence) - 1
}

// checkLog requires that the log holds every promised event, in order, and
// returns the number of torn lines and of events.
func checkLog(t *testing.T, path string, promised int) (torn, events int) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	rd := NewReader(f, ReaderOptions{})
	tail := 0
	for ev, err := range rd.All() {
		if err != nil {
			torn++
			if errors.Is(err, io.ErrUnexpectedEOF) {
				tail++
			}
			continue
		}
		require.EqualValues(t, events, ev.Sequence)
		events++
	}
	require.LessOrEqual(t, tail, 1)
	require.GreaterOrEqual(t, events, promised+1, "events are missing")
	return torn, events
}
