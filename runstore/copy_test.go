package runstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/runstore"
)

// written returns the lines of a log with several runs, whose events alternate.
func written(t testing.TB) []string {
	var log bytes.Buffer
	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{ae.NewWriter(&log, ae.WriterOptions{})}})
	require.NoError(t, err)
	var runs []*ae.Run
	for i := range 3 {
		run, err := em.Run(fmt.Sprint("r", i))
		require.NoError(t, err)
		runs = append(runs, run)
		require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}))
	}
	for i := range 400 {
		require.NoError(t, runs[i%7%3].Emit(t.Context(), &ae.StatePatched{Path: "n", Op: ae.PatchSet, Value: ae.JSON(fmt.Sprint(i))}))
	}
	return slices.Collect(strings.Lines(log.String()))
}

func readLines(lines []string) iter.Seq2[ae.Event, error] {
	return ae.NewReader(strings.NewReader(strings.Join(lines, "")), ae.ReaderOptions{}).All()
}

// stored returns the lines of all runs.
func stored(t testing.TB, s runstore.Store) (all []string) {
	for info, err := range s.Runs(t.Context(), "") {
		require.NoError(t, err)
		for _, line := range lines(t, s, info.RunID) {
			all = append(all, line+"\n")
		}
	}
	return all
}

// A copy adds what is missing, whatever was copied before and however often lines come.
func TestCopy(t *testing.T) {
	log := written(t)
	for name, parts := range map[string][][]string{
		"once":         {log},
		"twice":        {log, log},
		"grown":        {log[:50], log[:51], log},
		"rotated":      {log[:90], log[70:200], log[200:]},
		"tail again":   {slices.Concat(log[:90], log[40:])},
		"end again":    {slices.Concat(log, log[350:])},
		"from nowhere": {log[120:]},
		"with gaps":    {slices.Concat(log[:30], log[60:80], log[200:])},
	} {
		t.Run(name, func(t *testing.T) {
			var s runstore.Memory
			want := map[string]bool{}
			for _, part := range parts {
				require.NoError(t, runstore.Copy(t.Context(), &s, readLines(part)))
				for _, line := range part {
					want[line] = true
				}
			}
			got := stored(t, &s)
			require.Len(t, got, len(want))
			for _, line := range got {
				require.True(t, want[line], line)
			}
		})
	}
}

// Lines that cannot be read and runs that conflict are said, and hold up nothing else.
func TestCopyTellsAndGoesOn(t *testing.T) {
	log := written(t)
	var s runstore.Memory
	other, err := runstore.NewEntry(ae.Event{ID: "x", RunID: "r1", SchemaVersion: ae.SchemaVersion, Payload: &ae.RunStarted{Name: "other"}})
	require.NoError(t, err)
	require.NoError(t, s.Append(t.Context(), "r1", 0, other))

	bad := slices.Insert(slices.Clone(log), 100, slices.Repeat([]string{"no event\n"}, 120)...)
	err = runstore.Copy(t.Context(), &s, readLines(bad))
	var conflict *runstore.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, "r1", conflict.RunID)
	var line *ae.LineError
	require.ErrorAs(t, err, &line)
	require.EqualValues(t, 101, line.Line)
	require.ErrorContains(t, err, "20 more errors of events that cannot be read")
	require.Equal(t, 1, strings.Count(err.Error(), `run "r1" is copied no further: the store has other events of it`), err)
	want := slices.DeleteFunc(slices.Clone(log), func(line string) bool { return strings.Contains(line, `"runId":"r1"`) })
	require.ElementsMatch(t, append(want, other.Line+"\n"), stored(t, &s))
}

// An event that the store can never have is said, and holds up nothing else.
func TestCopyLeavesOut(t *testing.T) {
	line := func(run string, seq uint64, text string) string {
		e, err := runstore.NewEntry(ae.Event{ID: fmt.Sprint(run, seq), RunID: run, Sequence: seq, SchemaVersion: ae.SchemaVersion, Payload: &ae.TextCompleted{Text: text}})
		require.NoError(t, err)
		return e.Line + "\n"
	}
	a := []string{line("a", 0, ""), line("a", 1, ""), line("a", 2, ""), line("a", 3, ""), line("a", 4, "")}
	b := line("b", 0, "")
	for name, of := range map[string]struct {
		log  []string
		want []string
		says string
	}{
		"no run":          {[]string{line("", 0, ""), a[0], b}, []string{a[0], b}, "the run id is empty"},
		"refused":         {[]string{a[0], line("a", 1, "refused"), a[2], b}, []string{a[0], a[2], b}, "picky"},
		"the last of all": {[]string{a[0], line("a", 1<<64-1, ""), a[1], b}, []string{a[0], a[1], b}, "no one follows it"},
		"the same again":  {[]string{a[0], a[1], a[2], a[2], a[1], a[2], a[3], b}, a[:4:4], ""},
		"false":           {[]string{a[0], a[1], line("a", 9, "false"), a[2], a[3], b}, []string{a[0], a[1], line("a", 9, "false"), b}, `run "a" is copied no further: the log has sequence 2 after 9, and the store other events there`},
	} {
		t.Run(name, func(t *testing.T) {
			var s picky
			err := runstore.Copy(t.Context(), &s, readLines(of.log))
			if of.says == "" {
				of.want = append(of.want, b)
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, of.says)
			}
			require.Equal(t, of.want, stored(t, &s))
		})
	}
}

// What a slow store has not taken is appended together, run by run, and bounded.
func TestCopyTogether(t *testing.T) {
	log := written(t)
	s := &slow{begin: make(chan bool)}
	events := func(yield func(ae.Event, error) bool) {
		readLines(log)(yield)
		close(s.begin)
	}
	require.NoError(t, runstore.Copy(t.Context(), s, events))
	require.ElementsMatch(t, log, stored(t, s))
	require.Less(t, s.appends, 20)
}

// slow is a store whose first append waits.
type slow struct {
	runstore.Memory
	begin   chan bool
	appends int
}

func (s *slow) Append(ctx context.Context, run string, expect uint64, entries ...runstore.Entry) error {
	<-s.begin
	s.appends++
	return s.Memory.Append(ctx, run, expect, entries...)
}

// failing is a store that fails after some appends.
type failing struct {
	runstore.Memory
	left int
}

var errFull = errors.New("full")

func (f *failing) Append(ctx context.Context, run string, expect uint64, entries ...runstore.Entry) error {
	if f.left--; f.left < 0 {
		return errFull
	}
	return f.Memory.Append(ctx, run, expect, entries...)
}

// An error of the store ends the copy, which is then called again.
func TestCopyEndsWithTheStore(t *testing.T) {
	log := written(t)
	s := &failing{left: 2}
	require.ErrorIs(t, runstore.Copy(t.Context(), s, readLines(log)), errFull)
	s.left = 1 << 30
	require.NoError(t, runstore.Copy(t.Context(), s, readLines(log)))
	require.ElementsMatch(t, log, stored(t, s))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := open(t, t.TempDir(), runstore.Options{})
	require.ErrorIs(t, runstore.Copy(ctx, file, readLines(log)), context.Canceled)
}

// A log that is followed is in the store as it grows, and whole when the context of the
// follower ends.
func TestCopyFollows(t *testing.T) {
	log := written(t)
	path := filepath.Join(t.TempDir(), "events.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(log[0]), 0o600))
	following, stop := context.WithCancel(t.Context())
	follower, err := logfile.Follow(following, path, logfile.FollowOptions{})
	require.NoError(t, err)
	defer follower.Close()
	var s runstore.Memory
	done := make(chan error)
	go func() {
		done <- runstore.Copy(t.Context(), &s, ae.NewReader(follower, ae.ReaderOptions{}).All())
	}()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	for i := 1; i < len(log); i += 40 {
		n := min(i+40, len(log))
		_, err := f.WriteString(strings.Join(log[i:n], ""))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(stored(t, &s)) == n }, time.Minute, time.Millisecond)
	}
	require.NoError(t, f.Close())
	stop()
	require.NoError(t, <-done)
	require.ElementsMatch(t, log, stored(t, &s))
}
