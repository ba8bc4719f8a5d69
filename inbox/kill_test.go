package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/inbox"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/logfile"
)

// boxEnv has the folder of a child's log, and when it kills itself.
const boxEnv = "AGENTEVENTS_BOX_LIFE"

// The moments at which a process dies, for the command that is next.
const (
	atPeek = "peek" // the agent does not have it
	atRead = "read" // the agent has it, and the log does not know
	atAck  = "ack"  // the log knows
	never  = "never"
)

// readAll opens the log of a folder, and folds its events.
func readAll(dir string) (*logfile.Log, *ae.RunSnapshot, error) {
	path := filepath.Join(dir, "log.jsonl")
	log, err := logfile.Open(path, logfile.Options{})
	for ; errors.Is(err, logfile.ErrLocked); log, err = logfile.Open(path, logfile.Options{}) {
		time.Sleep(time.Millisecond) // the system lets go of a killed process's lock
	}
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	runs, err := ae.FoldLog(ae.NewReader(bytes.NewReader(text), ae.ReaderOptions{}), ae.FoldOptions{})
	if err != nil {
		return nil, nil, err
	}
	return log, runs.Snapshot("r"), nil
}

// lead goes on with the run of a folder. It takes commands until it has taken some and the
// moment comes.
func lead(dir, moment string, commands int) error {
	ctx := context.Background()
	log, s, err := readAll(dir)
	if err != nil {
		return err
	}
	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{log}})
	if err != nil {
		return err
	}
	var run *ae.Run
	if s == nil {
		run, err = em.Run("r")
		err = errors.Join(err, run.Emit(ctx, &ae.RunStarted{}))
	} else {
		run, err = em.Resume(s)
	}
	if err != nil {
		return err
	}
	in := inbox.New(run, inbox.Options{Snapshot: s})
	boxes := map[string]*inbox.Box{"x-1": in.Open("x-1"), "x-2": in.Open("x-2"), "": in.Open("")}
	if s == nil {
		for n := range 4 {
			err = errors.Join(err, in.Deliver(ctx, send("x-1", fmt.Sprint("one ", n))), in.Deliver(ctx, send("x-2", fmt.Sprint("two ", n))))
		}
		if err = errors.Join(err, in.Deliver(ctx, ae.Command{Type: "pause", Reason: "run 0"})); err != nil {
			return err
		}
	}
	die := func(at string) error {
		if at != moment || commands > 0 {
			return nil
		}
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		err = self.Kill()
		time.Sleep(time.Minute) // the kill comes before
		return err
	}
	for _, id := range []string{"x-1", "", "x-2"} {
		for box := boxes[id]; box.Waiting() > 0; commands-- {
			item, err := box.Peek(ctx)
			if err = errors.Join(err, die(atPeek)); err != nil {
				return err
			}
			agent, err := os.OpenFile(filepath.Join(dir, "agent"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(agent, item.Command.Message+item.Command.Reason)
			if err = errors.Join(err, agent.Close(), die(atRead), box.Ack(ctx, item.EventID), die(atAck)); err != nil {
				return err
			}
		}
	}
	return errors.Join(run.Emit(ctx, &ae.RunCompleted{}), em.Close(ctx), log.Close())
}

// A box loses no command when its process is killed, and repeats one at most: that which the
// agent had when the log did not know yet. AG-UI and Open-Harness can tell the whole run.
func TestABoxOverKilledProcesses(t *testing.T) {
	if life := os.Getenv(boxEnv); life != "" {
		var moment string
		var commands int
		_, err := fmt.Sscan(life, &moment, &commands)
		require.NoError(t, err)
		_, dir, _ := strings.Cut(life, "|")
		require.NoError(t, lead(dir, moment, commands))
		return
	}
	r := rand.New(rand.NewPCG(effort.Seed(t), 0))
	for range effort.Of(3, 10, 60) {
		dir, twice := t.TempDir(), 0
		for range 1 + r.IntN(4) {
			moment := []string{atPeek, atRead, atAck}[r.IntN(3)]
			if !child(t, dir, moment, r.IntN(4)) {
				break // it came to the end before the moment
			}
			if moment == atRead {
				twice++
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, "log.jsonl"))
		require.NoError(t, err)
		if !bytes.Contains(text, []byte(`"run.completed"`)) {
			require.False(t, child(t, dir, never, 0))
		}
		requireTaken(t, dir, twice)
	}
}

// child leads a life in a process of its own, and reports whether it was killed.
func child(t *testing.T, dir, moment string, commands int) (killed bool) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestABoxOverKilledProcesses$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d |%s", boxEnv, moment, commands, dir))
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.NotContains(t, string(out), "FAIL", string(out))
	}
	return err != nil
}

// requireTaken requires that the agents had each command in order, and those that they had twice
// one after the other.
func requireTaken(t *testing.T, dir string, twice int) {
	had, err := os.ReadFile(filepath.Join(dir, "agent"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(had)), "\n")
	require.Equal(t, 9+twice, len(lines), lines)
	require.Equal(t, []string{"one 0", "one 1", "one 2", "one 3", "run 0", "two 0", "two 1", "two 2", "two 3"}, slices.Compact(lines))
	log, s, err := readAll(dir)
	require.NoError(t, err)
	require.NoError(t, log.Close())
	require.Empty(t, s.Inbox)
	require.Empty(t, s.Violations)
	require.Equal(t, ae.RunStatusCompleted, s.Status)

	text, err := os.ReadFile(filepath.Join(dir, "log.jsonl"))
	require.NoError(t, err)
	ui, harness := agui.NewEncoder(agui.EncoderOptions{}), openharness.NewEncoder(openharness.EncoderOptions{})
	var lines1, lines2 []byte
	for ev, err := range ae.NewReader(bytes.NewReader(text), ae.ReaderOptions{}).All() {
		require.NoError(t, err)
		lines1, err = ui.Append(lines1, ev)
		require.NoError(t, err)
		if lines2, err = harness.Append(lines2, ev); err != nil { // a few kinds are not in its document
			require.NotEqual(t, ae.KindCommandReceived, ev.Kind(), err)
		}
	}
	lines1, err = ui.End(lines1)
	require.NoError(t, err)
	for name, d := range map[string]struct {
		lines   []byte
		decoder ae.Decoder
	}{"agui": {lines1, agui.NewDecoder(agui.Options{Strict: true})}, "openharness": {lines2, openharness.NewDecoder(openharness.Options{})}} {
		commands, fold := 0, ae.NewFold(ae.FoldOptions{})
		for ev, err := range ae.NewReader(bytes.NewReader(d.lines), ae.ReaderOptions{Decoder: d.decoder}).All() {
			require.NoError(t, err, name)
			fold.Apply(ev)
			if ev.Kind() == ae.KindCommandReceived {
				commands++
			}
		}
		require.Equal(t, 9, commands, name)
		if name == "agui" { // the other document does not tell that a command is consumed
			require.Empty(t, fold.Snapshot().Inbox)
		}
	}
}
