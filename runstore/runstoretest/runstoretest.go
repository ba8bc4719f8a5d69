// Package runstoretest tests whether a store keeps the promises of package runstore.
//
//	func TestStore(t *testing.T) {
//		runstoretest.Run(t, runstoretest.Features{
//			Open: func(t testing.TB) runstore.Store { return mystore.New(t.TempDir()) },
//		})
//	}
package runstoretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
)

// Features tell how to open the store, and in which permitted ways it differs from others.
type Features struct {
	// Open returns an empty store. It has the test close it if need be.
	Open func(t testing.TB) runstore.Store
	// Reopen returns a store with the content of s, as another process finds it after this one has
	// ended. nil means that the store ends with its process.
	Reopen func(t testing.TB, s runstore.Store) runstore.Store
	// Second returns another handle to the content of s, as another process has it at the same
	// time. nil means that one process has the store for itself.
	Second func(t testing.TB, s runstore.Store) runstore.Store
	// NoGaps means that the store refuses sequences that leave some out.
	NoGaps bool
	// MaxRunID is the length in bytes of the longest run id. 0 means no bound.
	MaxRunID int
	// MaxLine is the length in bytes of the longest line. 0 means no bound below a megabyte.
	MaxLine int
}

// A check is one promise.
type check struct {
	name        string
	explanation string
	skip        func(Features) bool // nil means never
	f           func(*kit)
}

var checks = []check{
	{"round trip", "lines come back byte for byte, also hostile ones", nil, roundTrip},
	{"expected sequence", "an append that expects another sequence is refused and writes nothing", nil, expected},
	{"known run", "a run that the store knows does not begin again", nil, knownRun},
	{"repeated append", "the same append again changes nothing, also when only a part of it was there", nil, repeated},
	{"changed append", "an append with another id or text in place of an event is a conflict", nil, changed},
	{"gaps", "events may be left out", func(f Features) bool { return f.NoGaps }, gaps},
	{"bad append", "entries that make no sense are refused", nil, badAppend},
	{"race", "of writers that race for a sequence one wins", nil, race},
	{"load", "events come from any sequence on, and the loop may end early", nil, load},
	{"cancelled", "a cancelled context ends a load with its error", nil, cancelled},
	{"runs", "runs are listed in the order of their ids, in pages, with what is known of them", nil, runs},
	{"hostile ids", "ids are opaque: spaces, dots, slashes, long and foreign ones", nil, hostileIDs},
	{"snapshots", "the newest snapshot is kept, and none that is ahead of the events", nil, snapshots},
	{"restore", "a snapshot of any position with the rest gives the state of the whole", nil, restore},
	{"watch", "watchers get every event once and in order, and wait for more", nil, watch},
	{"watch before", "a run may be watched before it begins, and the context ends it", nil, watchBefore},
	{"fencing", "a writer that is overtaken is stopped, and later sinks see nothing of it", nil, fencing},
	{"stale resume", "a run is resumed only from where the store is", nil, staleResume},
	{"reopen", "what was committed and saved is there again", func(f Features) bool { return f.Reopen == nil }, reopen},
	{"second handle", "two handles of one store see each other, and conflict", func(f Features) bool { return f.Second == nil }, second},
	{"closed", "a closed store refuses, ends watches and may be closed again", nil, closed},
}

// Run tests a store, each promise in a subtest.
func Run(t *testing.T, f Features) { runChecks(t, f, checks) }

func runChecks(t *testing.T, f Features, checks []check) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if c.skip != nil && c.skip(f) {
				t.Skip("the features say that it does not apply: " + c.explanation)
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Log("the promise: " + c.explanation)
				}
			})
			c.f(&kit{t, f, f.Open(t)})
		})
	}
}

// A kit is a test with its store.
type kit struct {
	*testing.T
	f Features
	s runstore.Store
}

// ok ends the test on an error.
func (k *kit) ok(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// entry returns an event of a run.
func (k *kit) entry(runID string, seq uint64, p agentevents.Payload) runstore.Entry {
	k.Helper()
	at := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC).Add(time.Duration(seq) * time.Second)
	e, err := runstore.NewEntry(agentevents.Event{
		ID: fmt.Sprintf("%.20s-%d", runID, seq), RunID: runID, Sequence: seq,
		Time: at, SchemaVersion: agentevents.SchemaVersion, Payload: p,
	})
	k.ok(err)
	return e
}

// entries returns n events of a run.
func (k *kit) entries(runID string, from, n uint64) (all []runstore.Entry) {
	k.Helper()
	for seq := from; seq < from+n; seq++ {
		var p agentevents.Payload = &agentevents.StatePatched{Path: "n", Op: "set", Value: agentevents.JSON(fmt.Sprint(seq))}
		if seq == 0 {
			p = &agentevents.RunStarted{Name: "test"}
		}
		all = append(all, k.entry(runID, seq, p))
	}
	return all
}

// add appends and commits.
func (k *kit) add(s runstore.Store, entries ...runstore.Entry) {
	k.Helper()
	k.ok(s.Append(k.Context(), entries[0].Event.RunID, entries[0].Event.Sequence, entries...))
	k.ok(s.Commit(k.Context()))
}

// conflict requires that an append is refused, and that the run is as it was.
func (k *kit) conflict(s runstore.Store, next, expect uint64, entries ...runstore.Entry) {
	k.Helper()
	run := entries[0].Event.RunID
	before := k.lines(s, run, 0)
	err := s.Append(k.Context(), run, expect, entries...)
	var c *runstore.ConflictError
	if !errors.As(err, &c) {
		k.Fatalf("Append at %d returned %v, not a ConflictError", expect, err)
	}
	if *c != (runstore.ConflictError{RunID: run, Expect: expect, Next: next}) {
		k.Fatalf("the conflict is %+v, not one of expecting %d where the next is %d", *c, expect, next)
	}
	if after := k.lines(s, run, 0); !slices.Equal(before, after) {
		k.Fatalf("the refused append left %d events, there were %d", len(after), len(before))
	}
}

// lines loads the lines of a run.
func (k *kit) lines(s runstore.Store, runID string, from uint64) (all []string) {
	k.Helper()
	for e, err := range s.Load(k.Context(), runID, from) {
		k.ok(err)
		if e.Event.RunID != runID {
			k.Fatalf("Load of %q yields an event of %q", runID, e.Event.RunID)
		}
		if text, err := e.Event.AppendJSON(nil); err != nil || string(text) != e.Line {
			k.Fatalf("the event of sequence %d does not say what its line says (%v)", e.Event.Sequence, err)
		}
		all = append(all, e.Line)
	}
	return all
}

// has requires that a run has exactly these events from the sequence of the first on.
func (k *kit) has(s runstore.Store, runID string, from uint64, want ...runstore.Entry) {
	k.Helper()
	got := k.lines(s, runID, from)
	if len(got) != len(want) {
		k.Fatalf("Load of %q from %d yields %d events, want %d", runID, from, len(got), len(want))
	}
	for i, line := range got {
		if line != want[i].Line {
			k.Fatalf("Load of %q yields at %d\n%.200s\nwant\n%.200s", runID, i, line, want[i].Line)
		}
	}
}

func roundTrip(k *kit) {
	size := 1 << 20
	if k.f.MaxLine > 0 {
		size = k.f.MaxLine - 1000
	}
	payloads := []agentevents.Payload{
		&agentevents.RunStarted{Name: "Ω \U0001F600 \u2028 <b>&amp;</b> \\ \" \r\n\t"},
		&agentevents.StatePatched{Path: "a", Op: "set", Value: `{"z":1,"a":[9007199254740993,1e400,-0.0],"dup":1,"":null}`},
		&agentevents.StatePatched{Path: "b", Op: "set", Value: `"\u0000\ud83d\ude00"`},
		&agentevents.Unknown{Type: "x.vendor/new", Raw: `{"later":{"b":2,"a":1}}`},
		&agentevents.StatePatched{Path: "c", Op: "set", Value: agentevents.JSON(`"` + strings.Repeat("x", size) + `"`)},
		&agentevents.RunCompleted{},
	}
	var all []runstore.Entry
	for i, p := range payloads {
		all = append(all, k.entry("r", uint64(i), p))
	}
	k.add(k.s, all[:2]...)
	k.add(k.s, all[2:]...)
	k.has(k.s, "r", 0, all...)
}

func expected(k *kit) {
	k.conflict(k.s, 0, 5, k.entries("new", 5, 1)...)
	if _, err := k.s.Run(k.Context(), "new"); !errors.Is(err, runstore.ErrNoRun) {
		k.Fatalf("the refused append made a run: %v", err)
	}
	k.add(k.s, k.entries("r", 0, 3)...)
	k.conflict(k.s, 3, 4, k.entries("r", 4, 1)...)
	k.add(k.s, k.entries("r", 3, 2)...)
	k.has(k.s, "r", 0, k.entries("r", 0, 5)...)
}

func knownRun(k *kit) {
	k.add(k.s, k.entries("r", 0, 3)...)
	again := k.entries("r", 0, 1)
	again[0].Event.ID = "another"
	again[0] = k.remade(again[0])
	k.conflict(k.s, 3, 0, again...)
}

// remade gives an entry that was changed its line.
func (k *kit) remade(e runstore.Entry) runstore.Entry {
	k.Helper()
	e, err := runstore.NewEntry(e.Event)
	k.ok(err)
	return e
}

func repeated(k *kit) {
	all := k.entries("r", 0, 6)
	k.add(k.s, all[:3]...)
	k.add(k.s, all[:3]...) // the acknowledgement was lost
	k.has(k.s, "r", 0, all[:3]...)
	k.add(k.s, all[1:5]...) // a part of it was there
	k.has(k.s, "r", 0, all[:5]...)
	k.add(k.s, all[2])
	k.add(k.s, all[:2]...)
	k.has(k.s, "r", 0, all[:5]...)
	k.add(k.s, all[5])
	k.has(k.s, "r", 0, all...)
}

func changed(k *kit) {
	all := k.entries("r", 0, 6)
	k.add(k.s, all[:4]...)
	id := all[3]
	id.Event.ID = "another"
	k.conflict(k.s, 4, 3, k.remade(id))
	text := all[3]
	text.Event.Payload = &agentevents.StatePatched{Path: "other", Op: "set", Value: "1"}
	k.conflict(k.s, 4, 3, k.remade(text))
	k.conflict(k.s, 4, 2, all[2], k.remade(text), all[4])
}

func gaps(k *kit) {
	all := k.entries("r", 0, 12)
	few := []runstore.Entry{all[0], all[3], all[4], all[9]}
	k.ok(k.s.Append(k.Context(), "r", 0, few[:2]...))
	k.conflict(k.s, 4, 2, few[2])
	k.ok(k.s.Append(k.Context(), "r", 4, few[2:]...))
	k.ok(k.s.Append(k.Context(), "r", 1, few[1:]...))
	k.ok(k.s.Append(k.Context(), "r", 10, all[11]))
	k.ok(k.s.Commit(k.Context()))
	k.has(k.s, "r", 0, all[0], all[3], all[4], all[9], all[11])
	k.has(k.s, "r", 5, all[9], all[11])
}

func badAppend(k *kit) {
	all := k.entries("r", 0, 3)
	noLine, broken := all[1], all[1]
	noLine.Line, broken.Line = "", broken.Line+"\n"
	k.add(k.s, all[0])
	for name, entries := range map[string][]runstore.Entry{
		"of another run":     k.entries("other", 1, 1),
		"below the expected": {all[0]},
		"not rising":         {all[2], all[1]},
		"twice":              {all[1], all[1]},
		"without a line":     {noLine},
		"with a newline":     {broken},
	} {
		if err := k.s.Append(k.Context(), "r", 1, entries...); err == nil {
			k.Errorf("entries %s are accepted", name)
		}
	}
	if err := k.s.Append(k.Context(), "", 0); err == nil {
		k.Error("a run without an id is accepted")
	}
	k.has(k.s, "r", 0, all[0])
}

func race(k *kit) {
	const writers, sequences = 8, 30
	var wins [sequences]int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for seq := range uint64(sequences) {
				e := k.entries("r", seq, 1)[0]
				e.Event.ID = fmt.Sprintf("%d-%d", w, seq)
				e = k.remade(e)
				err := k.s.Append(k.Context(), "r", seq, e)
				var c *runstore.ConflictError
				switch {
				case err == nil:
					mu.Lock()
					wins[seq]++
					mu.Unlock()
				case !errors.As(err, &c):
					k.Error(err)
				}
				if err := k.s.Commit(k.Context()); err != nil {
					k.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for seq, n := range wins {
		if n != 1 {
			k.Errorf("sequence %d has %d winners", seq, n)
		}
	}
	if n := len(k.lines(k.s, "r", 0)); n != sequences {
		k.Errorf("the run has %d events, want %d", n, sequences)
	}
}

func load(k *kit) {
	all := k.entries("r", 0, 10)
	for i, e := range all { // two runs in turn
		k.add(k.s, e)
		k.add(k.s, k.entries("s", uint64(i), 1)...)
	}
	for from := range uint64(10) {
		k.has(k.s, "r", from, all[from:]...)
	}
	k.has(k.s, "r", 10)
	k.has(k.s, "r", 1000)
	k.has(k.s, "no such run", 0)
	n := 0
	for range k.s.Load(k.Context(), "r", 0) {
		if n++; n == 3 {
			break
		}
	}
	k.ok(k.s.Append(k.Context(), "r", 10, k.entries("r", 10, 1)...)) // not committed
	k.has(k.s, "r", 9, k.entries("r", 9, 2)...)
}

func cancelled(k *kit) {
	k.add(k.s, k.entries("r", 0, 3)...)
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	for _, err := range k.s.Load(ctx, "r", 0) {
		if !errors.Is(err, context.Canceled) {
			k.Fatalf("Load with a cancelled context yields %v", err)
		}
		return
	}
	k.Fatal("Load with a cancelled context yields nothing")
}

func runs(k *kit) {
	const n = 25
	for i := range n {
		id := fmt.Sprintf("run %02d", (i*7)%n)
		k.add(k.s, k.entries(id, 0, uint64(i%3+1))...)
	}
	k.add(k.s, k.entry("run 08", k.info("run 08").Next, &agentevents.RunFailed{}))
	var ids []string
	for after := ""; ; {
		page := 0
		for info, err := range k.s.Runs(k.Context(), after) {
			k.ok(err)
			if info != k.info(info.RunID) {
				k.Fatalf("Runs says %+v, Run says %+v", info, k.info(info.RunID))
			}
			ids, after = append(ids, info.RunID), info.RunID
			if page++; page == 10 {
				break
			}
		}
		if page == 0 {
			break
		}
	}
	if len(ids) != n || !slices.IsSorted(ids) {
		k.Fatalf("the pages have %d runs, sorted: %v; want %d", len(ids), slices.IsSorted(ids), n)
	}
	info := k.info("run 08")
	first, last := k.entries("run 08", 0, 1)[0].Event.Time, k.entries("run 08", info.Next-1, 1)[0].Event.Time
	want := runstore.RunInfo{
		RunID: "run 08", Next: uint64(len(k.lines(k.s, "run 08", 0))),
		Terminal: agentevents.KindRunFailed, Begun: first, Updated: last,
	}
	if !info.Begun.Equal(want.Begun) || !info.Updated.Equal(want.Updated) ||
		info.Next != want.Next || info.Terminal != want.Terminal {
		k.Fatalf("Run says %+v, want %+v", info, want)
	}
	if _, err := k.s.Run(k.Context(), "run 99"); !errors.Is(err, runstore.ErrNoRun) {
		k.Fatalf("Run of an unknown run returns %v, not ErrNoRun", err)
	}
}

func (k *kit) info(runID string) runstore.RunInfo {
	k.Helper()
	info, err := k.s.Run(k.Context(), runID)
	k.ok(err)
	info.Begun, info.Updated = info.Begun.UTC(), info.Updated.UTC()
	return info
}

func hostileIDs(k *kit) {
	ids := []string{".", "..", "a/b", `a\b`, "*", ">", "a b", " ", "CON", "é", "e\u0301", "\U0001F600", "A",
		"a", "'; DROP TABLE runs", "%00", "\x00", "a\nb", strings.Repeat("x", 300), strings.Repeat("x", 301)}
	ids = slices.DeleteFunc(ids, func(id string) bool { return k.f.MaxRunID > 0 && len(id) > k.f.MaxRunID })
	for i, id := range ids {
		k.add(k.s, k.entries(id, 0, uint64(i+1))...)
		k.ok(k.s.SaveSnapshot(k.Context(), k.fold(id, 1)))
	}
	for i, id := range ids {
		k.has(k.s, id, 0, k.entries(id, 0, uint64(i+1))...)
		if s, err := k.s.LoadSnapshot(k.Context(), id); err != nil || s.RunID != id {
			k.Errorf("the snapshot of run %q: %v", id, err)
		}
	}
	n := 0
	for info, err := range k.s.Runs(k.Context(), "") {
		k.ok(err)
		if !slices.Contains(ids, info.RunID) {
			k.Errorf("there is a run %q", info.RunID)
		}
		n++
	}
	if n != len(ids) {
		k.Errorf("there are %d runs, want %d", n, len(ids))
	}
}

// fold returns the snapshot after the first n events of a run.
func (k *kit) fold(runID string, n int) *agentevents.RunSnapshot {
	k.Helper()
	f := agentevents.NewFold(agentevents.FoldOptions{})
	for e, err := range k.s.Load(k.Context(), runID, 0) {
		k.ok(err)
		if n--; n < 0 {
			break
		}
		f.Apply(e.Event)
	}
	return f.Snapshot()
}

func snapshots(k *kit) {
	ctx := k.Context()
	k.add(k.s, k.entries("r", 0, 5)...)
	k.add(k.s, k.entries("s", 0, 9)...)
	if _, err := k.s.LoadSnapshot(ctx, "r"); !errors.Is(err, runstore.ErrNoSnapshot) {
		k.Fatalf("LoadSnapshot without one returns %v, not ErrNoSnapshot", err)
	}
	saved := func(want *agentevents.RunSnapshot) {
		k.Helper()
		got, err := k.s.LoadSnapshot(ctx, want.RunID)
		k.ok(err)
		if string(got.AppendJSON(nil)) != string(want.AppendJSON(nil)) {
			k.Fatalf("the snapshot is that of sequence %d, or changed; want that of %d", got.NextSequence, want.NextSequence)
		}
		got.RunID, got.NextSequence = "changed", 0 // it belongs to the caller
	}
	for _, n := range []int{3, 5, 5} {
		k.ok(k.s.SaveSnapshot(ctx, k.fold("r", n)))
		saved(k.fold("r", n))
		saved(k.fold("r", n))
	}
	k.ok(k.s.SaveSnapshot(ctx, k.fold("r", 2)))
	saved(k.fold("r", 5))
	k.ok(k.s.SaveSnapshot(ctx, k.fold("s", 1)))
	saved(k.fold("s", 1))
	saved(k.fold("r", 5))
	ahead := k.fold("s", 9)
	ahead.RunID = "r"
	if err := k.s.SaveSnapshot(ctx, ahead); err == nil {
		k.Error("a snapshot is saved that is ahead of the events")
	}
	ahead.RunID = "unknown"
	if err := k.s.SaveSnapshot(ctx, ahead); !errors.Is(err, runstore.ErrNoRun) {
		k.Errorf("saving the snapshot of an unknown run returns %v, not ErrNoRun", err)
	}
	if err := k.s.SaveSnapshot(ctx, nil); err == nil {
		k.Error("nil is saved")
	}
	saved(k.fold("r", 5))
}

func restore(k *kit) {
	if _, err := runstore.Restore(k.Context(), k.s, "r", agentevents.FoldOptions{}); !errors.Is(err, runstore.ErrNoRun) {
		k.Fatalf("Restore of an unknown run returns %v, not ErrNoRun", err)
	}
	k.add(k.s, k.entries("r", 0, 8)...)
	whole := string(k.fold("r", 8).AppendJSON(nil))
	for n := range 9 {
		if n > 0 {
			k.ok(k.s.SaveSnapshot(k.Context(), k.fold("r", n)))
		}
		r, err := runstore.Restore(k.Context(), k.s, "r", agentevents.FoldOptions{})
		k.ok(err)
		if r.Distrust != nil || r.Folded != 8-n || string(r.Snapshot.AppendJSON(nil)) != whole {
			k.Errorf("with a snapshot of %d events: distrust %v, %d folded, state equal: %v",
				n, r.Distrust, r.Folded, string(r.Snapshot.AppendJSON(nil)) == whole)
		}
	}
}

func watch(k *kit) {
	const n = 40
	all := k.entries("r", 0, n)
	k.add(k.s, all[:5]...)
	ctx, cancel := context.WithTimeout(k.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	waiting := make(chan bool, 8)
	for _, from := range []uint64{0, 0, 3, 5} {
		wg.Go(func() {
			next := from
			if from == 5 {
				waiting <- true
			}
			for e, err := range k.s.Watch(ctx, "r", from) {
				if err != nil {
					k.Error(err)
					return
				}
				if e.Event.Sequence != next || e.Line != all[next].Line {
					k.Errorf("a watcher from %d gets %d in place of %d", from, e.Event.Sequence, next)
					return
				}
				if next == 4 {
					waiting <- true // it goes on with events that do not exist yet
				}
				if next++; next == n {
					return
				}
			}
			k.Errorf("a watcher from %d ends at %d: %v", from, next, ctx.Err())
		})
	}
	for range 4 {
		select {
		case <-waiting:
		case <-ctx.Done():
		}
	}
	for i, e := range all[5:] {
		k.add(k.s, e)
		k.add(k.s, k.entries("other", uint64(i), 1)...)
	}
	wg.Wait()
}

func watchBefore(k *kit) {
	ctx, cancel := context.WithCancel(k.Context())
	got := make(chan runstore.Entry)
	done := make(chan error)
	go func() {
		var first error
		for e, err := range k.s.Watch(ctx, "r", 0) {
			if err != nil {
				first = err
				break
			}
			got <- e
		}
		done <- first
	}()
	k.add(k.s, k.entries("r", 0, 1)...)
	select {
	case e := <-got:
		if e.Event.RunID != "r" {
			k.Errorf("the watcher gets an event of %q", e.Event.RunID)
		}
	case err := <-done:
		k.Fatalf("the watch ends before the run begins: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		k.Errorf("the watch ends with %v, want no error", err)
	}
}

// emitter returns an emitter that appends to the store, and then to a second sink.
func (k *kit) emitter(s runstore.Store) (*agentevents.Emitter, *[]agentevents.Event) {
	k.Helper()
	var later []agentevents.Event
	e, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{
		runstore.NewSink(s),
		agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error {
			later = append(later, ev)
			return nil
		}),
	}})
	k.ok(err)
	return e, &later
}

func fencing(k *kit) {
	second := k.s
	if k.f.Second != nil {
		second = k.f.Second(k.T, k.s)
	}
	k.overtake(k.s, second)
}

// overtake has a writer with the store b go on with a run that one with a writes.
func (k *kit) overtake(a, b runstore.Store) {
	k.Helper()
	ctx := k.Context()
	first, seen := k.emitter(a)
	run, err := first.Run("r")
	k.ok(err)
	k.ok(run.Emit(ctx, &agentevents.RunStarted{}))
	k.ok(run.Emit(ctx, &agentevents.StatePatched{Path: "x", Op: "set", Value: "1"}))

	other, _ := k.emitter(b)
	r, err := runstore.Restore(ctx, b, "r", agentevents.FoldOptions{})
	k.ok(err)
	resumed, err := other.Resume(r.Snapshot)
	k.ok(err)
	k.ok(resumed.Emit(ctx, &agentevents.RunResumed{}))

	err = run.Emit(ctx, &agentevents.StatePatched{Path: "x", Op: "set", Value: "2"})
	var c *runstore.ConflictError
	if !errors.As(err, &c) || !errors.Is(err, agentevents.ErrFenced) {
		k.Fatalf("the writer that was overtaken gets %v, not a ConflictError", err)
	}
	if err := run.Emit(ctx, &agentevents.RunCompleted{}); !errors.Is(err, agentevents.ErrClosed) {
		k.Fatalf("its run takes events: %v", err)
	}
	if len(*seen) != 2 {
		k.Fatalf("the sink behind the store has %d events, want 2", len(*seen))
	}
	k.ok(resumed.Emit(ctx, &agentevents.RunCompleted{}))
	if n := len(k.lines(a, "r", 0)); n != 4 {
		k.Fatalf("the run has %d events, want 4", n)
	}
	again, _ := k.emitter(a)
	run, err = again.Run("r")
	k.ok(err)
	if err := run.Emit(ctx, &agentevents.RunStarted{}); !errors.As(err, &c) {
		k.Fatalf("a run that exists begins again: %v", err)
	}
}

func staleResume(k *kit) {
	k.add(k.s, k.entries("r", 0, 5)...)
	e, _ := k.emitter(k.s)
	stale := k.fold("r", 3)
	var c *runstore.ConflictError
	if _, err := e.Resume(stale); !errors.As(err, &c) {
		k.Fatalf("Resume from a stale snapshot returns %v, not a ConflictError", err)
	}
	stale.RunID = "unknown"
	if _, err := e.Resume(stale); !errors.As(err, &c) {
		k.Fatalf("Resume of a run that the store does not know returns %v, not a ConflictError", err)
	}
	run, err := e.Resume(k.fold("r", 5))
	k.ok(err)
	k.ok(run.Emit(k.Context(), &agentevents.RunResumed{}))
	if n := len(k.lines(k.s, "r", 0)); n != 6 {
		k.Fatalf("the run has %d events, want 6", n)
	}
}

func reopen(k *kit) {
	k.add(k.s, k.entries("r", 0, 5)...)
	k.add(k.s, k.entries("s", 0, 2)...)
	k.ok(k.s.SaveSnapshot(k.Context(), k.fold("r", 3)))
	want := k.info("r")
	k.s = k.f.Reopen(k.T, k.s)
	k.has(k.s, "r", 0, k.entries("r", 0, 5)...)
	k.has(k.s, "s", 0, k.entries("s", 0, 2)...)
	if got := k.info("r"); got != want {
		k.Errorf("Run says %+v, it said %+v", got, want)
	}
	r, err := runstore.Restore(k.Context(), k.s, "r", agentevents.FoldOptions{})
	k.ok(err)
	if r.Distrust != nil || r.Folded != 2 {
		k.Errorf("the snapshot did not come back: %v, %d folded", r.Distrust, r.Folded)
	}
	k.add(k.s, k.entries("r", 3, 2)...) // its acknowledgement was lost with the process
	k.conflict(k.s, 5, 7, k.entries("r", 7, 1)...)
	k.add(k.s, k.entries("r", 5, 1)...)
	k.has(k.s, "r", 0, k.entries("r", 0, 6)...)
}

func second(k *kit) {
	b := k.f.Second(k.T, k.s)
	k.add(k.s, k.entries("r", 0, 2)...)
	k.has(b, "r", 0, k.entries("r", 0, 2)...)
	k.add(b, k.entries("r", 2, 2)...)
	stale := k.entries("r", 2, 1)[0]
	stale.Event.ID = "another"
	k.conflict(k.s, 4, 2, k.remade(stale))
	k.has(k.s, "r", 0, k.entries("r", 0, 4)...)
}

func closed(k *kit) {
	c, ok := k.s.(io.Closer)
	if !ok {
		k.Skip("the store has no Close")
	}
	k.add(k.s, k.entries("r", 0, 2)...)
	snapshot := k.fold("r", 2)
	watching, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for range k.s.Watch(k.Context(), "r", 1) {
			close(watching)
		}
	}()
	select {
	case <-watching:
	case <-done:
		k.Fatal("the watch ends before the store is closed, without an event")
	}
	k.ok(c.Close())
	<-done
	if err := c.Close(); err != nil {
		k.Errorf("Close again returns %v", err)
	}
	ctx := k.Context()
	_, run := k.s.Run(ctx, "r")
	_, loaded := k.s.LoadSnapshot(ctx, "r")
	var listed, read error
	for _, listed = range k.s.Runs(ctx, "") {
	}
	for _, read = range k.s.Load(ctx, "r", 0) {
	}
	for name, err := range map[string]error{
		"Append": k.s.Append(ctx, "r", 2, k.entries("r", 2, 1)...), "Load": read, "Run": run, "Runs": listed,
		"SaveSnapshot": k.s.SaveSnapshot(ctx, snapshot), "LoadSnapshot": loaded,
	} {
		if !errors.Is(err, agentevents.ErrClosed) {
			k.Errorf("%s of a closed store returns %v, not ErrClosed", name, err)
		}
	}
}
