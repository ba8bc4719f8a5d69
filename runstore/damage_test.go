package runstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/live"
	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/resume"
	"github.com/agentevents/agentevents/runstore"
)

// entry returns an event of a run. With another text it is another event with the same id.
func entry(t testing.TB, run string, seq uint64, text string) runstore.Entry {
	var p ae.Payload = &ae.StatePatched{Path: "x", Op: "set", Value: ae.JSON(fmt.Sprintf("%q", text))}
	if seq == 0 {
		p = &ae.RunStarted{Name: text}
	}
	e, err := runstore.NewEntry(ae.Event{
		ID: fmt.Sprint(run, "-", seq), RunID: run, Sequence: seq, Time: time.UnixMilli(1_780_000_000_000 + int64(seq)).UTC(),
		SchemaVersion: ae.SchemaVersion, Payload: p,
	})
	require.NoError(t, err)
	return e
}

// fill appends the first n events of a run, and saves the snapshot of the first saved ones.
func fill(t testing.TB, s runstore.Store, run, text string, n, saved uint64) {
	for seq := range n {
		require.NoError(t, s.Append(t.Context(), run, seq, entry(t, run, seq, text)))
		require.NoError(t, s.Commit(t.Context()))
		if seq+1 == saved {
			r, err := runstore.Restore(t.Context(), s, run, ae.FoldOptions{})
			require.NoError(t, err)
			require.NoError(t, s.SaveSnapshot(t.Context(), r.Snapshot))
		}
	}
}

func open(t testing.TB, dir string, o runstore.Options) *runstore.File {
	s, err := runstore.Open(dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func lines(t testing.TB, s runstore.Store, run string) (all []string) {
	for e, err := range s.Load(t.Context(), run, 0) {
		require.NoError(t, err)
		all = append(all, e.Line)
	}
	return all
}

// snapshotFiles returns the snapshots of a store.
func snapshotFiles(t testing.TB, dir string) []string {
	files, err := filepath.Glob(filepath.Join(dir, "snapshots", "*.json"))
	require.NoError(t, err)
	return files
}

// made fills a store of its own, and returns its only snapshot.
func made(t testing.TB, run, text string, n, saved uint64) []byte {
	dir := t.TempDir()
	s := open(t, dir, runstore.Options{})
	fill(t, s, run, text, n, saved)
	files := snapshotFiles(t, dir)
	require.Len(t, files, 1)
	b, err := os.ReadFile(files[0])
	require.NoError(t, err)
	return b
}

// Whatever has become of a snapshot, the state is that of all events, and the next
// snapshot replaces it.
func TestDamagedSnapshot(t *testing.T) {
	whole := made(t, "r", "text", 6, 4)
	head, body, _ := bytes.Cut(whole, []byte("\n"))
	for _, c := range []struct {
		name     string
		text     []byte // nil removes it
		folded   int
		distrust string
	}{
		{"whole", whole, 2, ""},
		{"missing", nil, 6, ""},
		{"stale", made(t, "r", "text", 1, 1), 5, ""},
		{"of all", made(t, "r", "text", 6, 6), 0, ""},
		{"empty", []byte{}, 6, "damaged"},
		{"without its body", append(bytes.Clone(head), '\n'), 6, "its hash differs"},
		{"truncated", whole[:len(whole)-20], 6, "its hash differs"},
		{"without its head", body, 6, "its hash differs"},
		{"zeros", make([]byte, len(whole)), 6, "damaged"},
		{"one byte changed", bytes.Replace(whole, []byte(`"text"`), []byte(`"Text"`), 1), 6, "its hash differs"},
		{"of another run", made(t, "s", "text", 6, 4), 6, `of another run: "s"`},
		{"of another log", made(t, "r", "other", 6, 4), 6, "comes from another log"},
		{"newer than the log", made(t, "r", "text", 9, 9), 6, "newer than the log"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, runstore.Options{})
			fill(t, s, "r", "text", 6, 4)
			file := snapshotFiles(t, dir)[0]
			if c.text == nil {
				require.NoError(t, os.Remove(file))
			} else {
				require.NoError(t, os.WriteFile(file, c.text, 0o600))
			}
			all := ae.NewFold(ae.FoldOptions{})
			for e, err := range s.Load(t.Context(), "r", 0) {
				require.NoError(t, err)
				all.Apply(e.Event)
			}
			want := string(all.Snapshot().AppendJSON(nil))
			r, err := runstore.Restore(t.Context(), s, "r", ae.FoldOptions{})
			require.NoError(t, err)
			require.Equal(t, c.folded, r.Folded)
			require.Zero(t, r.Coverage)
			if c.distrust == "" {
				require.NoError(t, r.Distrust)
			} else {
				require.ErrorContains(t, r.Distrust, c.distrust)
			}
			require.Equal(t, want, string(r.Snapshot.AppendJSON(nil)))

			require.NoError(t, s.SaveSnapshot(t.Context(), r.Snapshot))
			r, err = runstore.Restore(t.Context(), s, "r", ae.FoldOptions{})
			require.NoError(t, err)
			require.NoError(t, r.Distrust)
			require.Zero(t, r.Folded)
			require.Equal(t, want, string(r.Snapshot.AppendJSON(nil)))
		})
	}
}

// A snapshot of another version of the format is not gone on with.
func TestSnapshotOfOtherSchema(t *testing.T) {
	var s runstore.Memory
	fill(t, &s, "r", "text", 3, 0)
	r, err := runstore.Restore(t.Context(), &s, "r", ae.FoldOptions{})
	require.NoError(t, err)
	r.Snapshot.SchemaVersion = "0.9"
	require.NoError(t, s.SaveSnapshot(t.Context(), r.Snapshot))
	r, err = runstore.Restore(t.Context(), &s, "r", ae.FoldOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, r.Distrust, `schema version "0.9"`)
	require.Equal(t, 3, r.Folded)
}

// A torn last line is cut off, and is not an event. Its append is made again.
func TestTornLog(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, runstore.Options{})
	fill(t, s, "r", "text", 4, 0)
	require.NoError(t, s.Close())
	path := filepath.Join(dir, "events.jsonl")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, info.Size()-10))

	s = open(t, dir, runstore.Options{OnError: func(err error) { t.Error(err) }})
	require.NotNil(t, s.Torn())
	require.Len(t, lines(t, s, "r"), 3)
	fill(t, s, "r", "text", 5, 0) // begins with events that are there
	require.Len(t, lines(t, s, "r"), 5)
}

// What is lost inside the log is told, and the rest of every run is there.
func TestDamagedLog(t *testing.T) {
	for _, c := range []struct {
		name    string
		damage  func(t *testing.T, path string)
		told    string
		r       int // events of run r that are left, of 8
		missing uint64
	}{
		{"a damaged line", func(t *testing.T, path string) {
			segment := path + ".000002"
			text, err := os.ReadFile(segment)
			require.NoError(t, err)
			copy(text[10:], "\x00\x00\x00")
			require.NoError(t, os.WriteFile(segment, text, 0o600))
		}, "the line at byte 0", 7, 1},
		{"a line twice", func(t *testing.T, path string) {
			text, err := os.ReadFile(path + ".000003")
			require.NoError(t, err)
			require.NoError(t, appendFile(path, string(text)))
		}, `sequence 2 of run "r" comes after 7: it is left out`, 8, 0},
		{"a missing segment", func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path+".000002"))
		}, "the segment is missing", 7, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			o := runstore.Options{Log: &logfile.Options{Sync: logfile.SyncEvery, MaxBytes: 1}}
			s := open(t, dir, o)
			fill(t, s, "r", "text", 8, 0)
			fill(t, s, "s", "text", 3, 0)
			require.NoError(t, s.Close())
			c.damage(t, filepath.Join(dir, "events.jsonl"))
			var told []error
			o.OnError = func(err error) { told = append(told, err) }
			s = open(t, dir, o)
			require.Len(t, told, 1)
			require.ErrorContains(t, told[0], c.told)
			require.Len(t, lines(t, s, "s"), 3)
			require.Len(t, lines(t, s, "r"), c.r)
			r, err := runstore.Restore(t.Context(), s, "r", ae.FoldOptions{})
			require.NoError(t, err)
			require.Equal(t, c.missing, r.Coverage.Missing)
			require.NoError(t, s.Append(t.Context(), "r", 8, entry(t, "r", 8, "text")))
		})
	}
}

// Once another program has changed the log, the store takes and gives nothing before it is
// opened again: what it knows of the log is false.
func TestChangedLog(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"removed":  os.Remove,
		"cut":      func(path string) error { return os.Truncate(path, 3) },
		"extended": func(path string) error { return appendFile(path, "{}\n") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, runstore.Options{})
			fill(t, s, "r", "text", 3, 0)
			require.NoError(t, change(filepath.Join(dir, "events.jsonl")))
			err := s.Append(t.Context(), "r", 3, entry(t, "r", 3, "text"))
			require.ErrorIs(t, errors.Join(err, s.Commit(t.Context())), logfile.ErrChanged)
			require.ErrorIs(t, s.Append(t.Context(), "r", 4, entry(t, "r", 4, "text")), logfile.ErrChanged)
			require.ErrorIs(t, s.Commit(t.Context()), logfile.ErrChanged)
			_, err = s.Run(t.Context(), "r")
			require.ErrorIs(t, err, logfile.ErrChanged)
			require.NoError(t, s.Close())
			open(t, dir, runstore.Options{})
		})
	}
}

func appendFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// A store is open once, and its options are checked.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, runstore.Options{})
	_, err := runstore.Open(dir, runstore.Options{})
	require.ErrorIs(t, err, logfile.ErrLocked)
	require.NoError(t, s.Close())
	open(t, dir, runstore.Options{})

	_, err = runstore.Open(t.TempDir(), runstore.Options{Log: &logfile.Options{Keep: 1}})
	require.ErrorContains(t, err, "must be 0")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = runstore.Open(file, runstore.Options{})
	require.Error(t, err)
	require.NotErrorIs(t, err, fs.ErrNotExist)
}

// A flaky store fails as often as it is told: before the append, or after it, so that
// only its acknowledgement is lost.
type flaky struct {
	runstore.Memory
	before, after int
	appends       int
	most          int // entries of one append
}

var errFlaky = errors.New("the network is down")

func (f *flaky) Append(ctx context.Context, runID string, expect uint64, entries ...runstore.Entry) error {
	f.appends++
	f.most = max(f.most, len(entries))
	if f.before > 0 {
		f.before--
		return errFlaky
	}
	err := f.Memory.Append(ctx, runID, expect, entries...)
	if f.after > 0 {
		f.after--
		return errors.Join(err, errFlaky)
	}
	return err
}

// What a store does not take, or takes without saying so, is appended again before the
// run's next event, and at Flush, also when the run has ended.
func TestFlakyStore(t *testing.T) {
	for name, s := range map[string]*flaky{"before": {before: 2}, "after": {after: 2}, "both": {before: 1, after: 1}} {
		t.Run(name, func(t *testing.T) {
			e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(s)}})
			require.NoError(t, err)
			run, err := e.Run("r")
			require.NoError(t, err)
			for seq := range 4 {
				err := run.Emit(t.Context(), &ae.StatePatched{Path: "x", Op: "set", Value: ae.JSON(fmt.Sprint(seq))})
				if seq < 2 {
					require.ErrorIs(t, err, errFlaky)
				} else {
					require.NoError(t, err)
				}
			}
			require.Len(t, lines(t, s, "r"), 4)
			s.before = 2
			require.ErrorIs(t, run.Emit(t.Context(), &ae.RunCompleted{}), errFlaky)
			require.Len(t, lines(t, s, "r"), 4)
			require.NoError(t, e.Flush(t.Context()))
			require.Len(t, lines(t, s, "r"), 5)
			require.NoError(t, e.Close(t.Context()))
		})
	}
}

// Of a run that a store does not take for long no more than 16 MiB wait: then it is closed.
func TestStoreDown(t *testing.T) {
	s := &flaky{before: 1000}
	e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(s)}})
	require.NoError(t, err)
	run, err := e.Run("r")
	require.NoError(t, err)
	big := ae.JSON(`"` + string(bytes.Repeat([]byte("x"), 1<<20)) + `"`)
	for n := 0; ; n++ {
		err = run.Emit(t.Context(), &ae.StatePatched{Path: "x", Op: "set", Value: big})
		require.ErrorIs(t, err, errFlaky)
		if errors.Is(err, ae.ErrFenced) {
			require.Equal(t, 15, n)
			break
		}
	}
	require.ErrorIs(t, run.Emit(t.Context(), &ae.RunCompleted{}), ae.ErrClosed)
}

// However much waits for a store, an attempt is a bounded one: each event makes one.
func TestStoreDownForLong(t *testing.T) {
	s := &flaky{before: 1000}
	e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(s)}})
	require.NoError(t, err)
	run, err := e.Run("r")
	require.NoError(t, err)
	for seq := range 1001 {
		err := run.Emit(t.Context(), &ae.StatePatched{Path: "x", Op: "set", Value: ae.JSON(fmt.Sprint(seq))})
		require.Equal(t, seq < 1000, errors.Is(err, errFlaky), err)
	}
	require.Len(t, lines(t, s, "r"), 1001)
	require.LessOrEqual(t, s.most, 256)
}

// A run that the store cannot have is closed at once.
func TestSinkOfRefusedRun(t *testing.T) {
	e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(&picky{})}})
	require.NoError(t, err)
	run, err := e.Run("refused")
	require.NoError(t, err)
	err = run.Emit(t.Context(), &ae.RunStarted{})
	require.ErrorIs(t, err, runstore.ErrRefused)
	require.ErrorIs(t, err, ae.ErrFenced)
	require.ErrorIs(t, run.Emit(t.Context(), &ae.RunCompleted{}), ae.ErrClosed)
}

// A picky store cannot have a run, and no event with a certain text.
type picky struct{ runstore.Memory }

func (p *picky) Append(ctx context.Context, runID string, expect uint64, entries ...runstore.Entry) error {
	for _, e := range entries {
		if runID == "refused" || strings.Contains(e.Line, "refused") {
			return fmt.Errorf("picky: %w", runstore.ErrRefused)
		}
	}
	return p.Memory.Append(ctx, runID, expect, entries...)
}

// Two emitters with the same sink and run do not mix their events, and neither does one
// that goes on although it was refused.
func TestOneSinkTwoWriters(t *testing.T) {
	var s runstore.Memory
	sink := runstore.NewSink(&s)
	emitter := func(sink ae.Sink) *ae.Run {
		e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{sink}, OnError: func(error) {}})
		require.NoError(t, err)
		run, err := e.Run("r")
		require.NoError(t, err)
		return run
	}
	set := func(run *ae.Run) error {
		return run.Emit(t.Context(), &ae.StatePatched{Path: "x", Op: "set", Value: "1"})
	}
	first := emitter(sink)
	require.NoError(t, set(first))
	require.NoError(t, set(first))
	require.ErrorIs(t, set(emitter(sink)), ae.ErrFenced)
	require.NoError(t, set(first))
	stubborn := emitter(ae.BestEffort(runstore.NewSink(&s)))
	for range 6 { // it comes past the next sequence of the store
		require.NoError(t, set(stubborn))
	}
	require.NoError(t, stubborn.Emit(t.Context(), &ae.RunCompleted{}))
	for range 4 { // now the late event would be the next one
		require.NoError(t, set(first))
	}
	require.NoError(t, stubborn.Emit(t.Context(), &ae.SessionCompleted{}))
	require.Len(t, lines(t, &s, "r"), 7)
	require.NoError(t, set(first))
}

// Deltas may be left out of a store, and a run that has ended takes what may follow its
// end. A snapshot whose last event the store does not have is not used.
func TestWithoutDeltas(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, runstore.Options{})
	live := ae.NewFold(ae.FoldOptions{})
	e, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{
		runstore.NewSink(s),
		ae.SinkFunc(func(_ context.Context, ev ae.Event) error { live.Apply(ev); return nil }),
	}})
	require.NoError(t, err)
	run, err := e.Run("r")
	require.NoError(t, err)
	restored := func() *runstore.Restored {
		r, err := runstore.Restore(t.Context(), s, "r", ae.FoldOptions{})
		require.NoError(t, err)
		return r
	}
	agent := run.Agent("a")
	var afterDelta *ae.RunSnapshot
	for range 3 {
		require.NoError(t, agent.Emit(t.Context(), &ae.AgentStarted{}))
		for range 5 {
			require.NoError(t, agent.Emit(t.Context(), &ae.TextDelta{Delta: "text "}))
		}
		afterDelta = live.Snapshot()
		require.NoError(t, agent.Emit(t.Context(), &ae.TextCompleted{Text: "text text text text text "}))
		require.NoError(t, agent.Emit(t.Context(), &ae.AgentEnded{Outcome: ae.OutcomePartial}))
		r := restored()
		require.NoError(t, r.Distrust)
		require.NoError(t, s.SaveSnapshot(t.Context(), r.Snapshot))
	}
	require.NoError(t, run.Emit(t.Context(), &ae.RunCompleted{}))
	require.NoError(t, run.Emit(t.Context(), &ae.SessionCompleted{}))
	info, err := s.Run(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, ae.KindRunCompleted, info.Terminal)
	last := lines(t, s, "r")
	require.Contains(t, last[len(last)-1], "session.completed")

	require.NoError(t, os.Remove(snapshotFiles(t, dir)[0]))
	want := string(restored().Snapshot.AppendJSON(nil))
	require.NoError(t, s.SaveSnapshot(t.Context(), afterDelta))
	r := restored()
	require.ErrorContains(t, r.Distrust, "comes from another log")
	require.Equal(t, want, string(r.Snapshot.AppendJSON(nil)))
}

// A counting store counts its calls.
type counting struct {
	runstore.Memory
	appends, commits int
}

func (c *counting) Append(ctx context.Context, runID string, expect uint64, entries ...runstore.Entry) error {
	c.appends++
	return c.Memory.Append(ctx, runID, expect, entries...)
}

func (c *counting) Commit(ctx context.Context) error {
	c.commits++
	return c.Memory.Commit(ctx)
}

// A token costs a store nothing, unless the program asks for tokens.
func TestTokensOfASink(t *testing.T) {
	const tokens = 100
	for name, test := range map[string]struct {
		sink func(runstore.Store) ae.Sink
		want int // appends and commits
	}{
		"NewSink":           {runstore.NewSink, 4},
		"NewSinkWithDeltas": {func(s runstore.Store) ae.Sink { return runstore.NewSinkWithDeltas(s) }, 4 + tokens},
	} {
		t.Run(name, func(t *testing.T) {
			var s counting
			e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{test.sink(&s)}})
			require.NoError(t, err)
			run, err := e.Run("r")
			require.NoError(t, err)
			agent := run.Agent("a")
			require.NoError(t, agent.Emit(t.Context(), &ae.AgentStarted{}))
			call, err := agent.Model(t.Context(), nil)
			require.NoError(t, err)
			began := len(lines(t, &s, "r"))
			s.appends, s.commits = 0, 0
			for range tokens {
				require.NoError(t, call.Text(t.Context(), "text "))
			}
			require.Empty(t, conversation(t, &s), "the answer of a model that has not returned is none")
			require.NoError(t, call.Return(t.Context(), nil))
			require.NoError(t, agent.Emit(t.Context(), &ae.AgentEnded{}))
			require.Equal(t, []resume.Message{{Role: resume.RoleAssistant, Text: strings.Repeat("text ", tokens)}}, conversation(t, &s))
			require.Equal(t, test.want, len(lines(t, &s, "r"))-began)
			require.Equal(t, test.want, s.appends)
			require.Equal(t, strings.Repeat("text ", tokens), restored(t, &s).Agents["a"].Text)
		})
	}
}

// conversation returns what a runtime with a loop of its own goes on with.
func conversation(t *testing.T, s runstore.Store) []resume.Message {
	messages, err := resume.Conversation(runstore.Events(s.Load(t.Context(), "r", 0)), "r", "a")
	require.NoError(t, err)
	return messages
}

func restored(t *testing.T, s runstore.Store) *ae.RunSnapshot {
	r, err := runstore.Restore(t.Context(), s, "r", ae.FoldOptions{})
	require.NoError(t, err)
	return r.Snapshot
}

// A run whose last event is a delta goes on in the same process, also if a page has the delta.
func TestResumeAfterADeltaThatOthersHave(t *testing.T) {
	var s runstore.Memory
	page := live.New(live.Options{})
	e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(&s), page}})
	require.NoError(t, err)
	run, err := e.Run("r")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}))
	require.NoError(t, run.Emit(t.Context(), &ae.TextDelta{Delta: "x"}))
	require.NoError(t, run.Close())
	run, err = e.Resume(restored(t, &s))
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &ae.RunPaused{}))
	require.Equal(t, string(restored(t, &s).AppendJSON(nil)), string(page.Snapshot("r").AppendJSON(nil)), "the page begins anew")
}

// A run may begin with a delta, and deltas that break a rule may come between its end and
// the event that follows the end: the store has the other events.
func TestDeltasAtTheEdgesOfARun(t *testing.T) {
	var s runstore.Memory
	e, err := ae.NewEmitter(ae.EmitterOptions{Mode: ae.ModeObserve, OnViolation: func(*ae.RuleError) {}, Sinks: []ae.Sink{runstore.NewSink(&s)}})
	require.NoError(t, err)
	run, err := e.Run("r")
	require.NoError(t, err)
	for _, p := range []ae.Payload{
		&ae.TextDelta{Delta: "x"}, &ae.RunStarted{}, &ae.TextDelta{Delta: "y"}, &ae.RunCompleted{},
		&ae.TextDelta{Delta: "z"}, &ae.SessionCompleted{}, &ae.TextDelta{Delta: "z"}, &ae.SessionCompleted{},
	} {
		require.NoError(t, run.Emit(t.Context(), p))
	}
	require.NoError(t, e.Close(t.Context()))
	var sequences []uint64
	for entry, err := range s.Load(t.Context(), "r", 0) {
		require.NoError(t, err)
		sequences = append(sequences, entry.Event.Sequence)
	}
	require.Equal(t, []uint64{1, 3, 5, 7}, sequences)

	other, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(&s)}})
	require.NoError(t, err)
	run, err = other.Run("r")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &ae.TextDelta{Delta: "x"}))
	require.ErrorIs(t, run.Emit(t.Context(), &ae.RunPaused{}), ae.ErrFenced, "the run does not begin again")
}
