package eventtest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentevents/agentevents"
)

// A Recorder is a sink that keeps the events it gets. The zero Recorder is usable, also
// as a sink of an emitter that the tested program makes: then give that emitter the
// Clock and NewID of [Recorder.Options]. All methods may be called concurrently. A
// Recorder must not be copied.
type Recorder struct {
	lifecycle agentevents.Lifecycle // of a log that names none

	mu     sync.Mutex
	events []agentevents.Event
	folds  map[string]*agentevents.Fold        // that go on while events are recorded, by run
	from   map[string]*agentevents.RunSnapshot // that runs go on from
	ids    int
}

// Record returns an emitter with the zero [agentevents.EmitterOptions], and
// a recorder of its events. A program with options of its own takes [RecordWith].
func Record(t testing.TB) (*agentevents.Emitter, *Recorder) {
	t.Helper()
	return RecordWith(t, agentevents.EmitterOptions{})
}

// RecordWith returns an emitter with the options, and a recorder of its events, which is its first
// sink. A nil Clock and NewID are taken from [Recorder.Options]. A nil OnViolation fails the test
// for each event that breaks a rule, refused or recorded.
//
// When the test ends the emitter is closed. The test fails if the options cannot be used
// or Close returns an error; it waits for Close for at most 30 seconds.
func RecordWith(t testing.TB, o agentevents.EmitterOptions) (*agentevents.Emitter, *Recorder) {
	t.Helper()
	r := &Recorder{lifecycle: o.Lifecycle}
	fixed := r.Options()
	o.Sinks = append(fixed.Sinks, o.Sinks...)
	if o.Clock == nil {
		o.Clock = fixed.Clock
	}
	if o.NewID == nil {
		o.NewID = fixed.NewID
	}
	if o.OnViolation == nil {
		o.OnViolation = func(err *agentevents.RuleError) {
			if err.Refused {
				t.Errorf("eventtest: an event was refused%s: %v", emittedAt(), err)
			} else {
				t.Errorf("eventtest: an event was recorded in spite of a rule%s: %v", emittedAt(), err)
			}
		}
	}
	em, err := agentevents.NewEmitter(o)
	if err != nil {
		t.Fatalf("eventtest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), maxWait)
		defer cancel()
		if err := em.Close(ctx); err != nil {
			t.Errorf("eventtest: closing the emitter: %v", err)
		}
	})
	return em, r
}

// emittedAt returns where the program has called the library, as " at agent.go:17". The
// test itself would name the line of this package.
func emittedAt() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		own := strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, module+".") ||
			strings.HasPrefix(f.Function, module+"/eventtest.")
		if !own {
			return fmt.Sprintf(" at %s:%d", filepath.Base(f.File), f.Line)
		}
	}
	return ""
}

const module = "github.com/agentevents/agentevents"

// ReadLog returns a recorder with the events that a [agentevents.Reader] reads. A line that
// cannot be read stops the test.
func ReadLog(t testing.TB, log io.Reader, o agentevents.ReaderOptions) *Recorder {
	t.Helper()
	r := new(Recorder)
	for ev, err := range agentevents.NewReader(log, o).All() {
		if err != nil {
			t.Fatalf("eventtest: %v", err)
		}
		_ = r.WriteEvent(context.Background(), ev)
	}
	return r
}

// epoch is the time of the first event.
var epoch = time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)

// Options returns options that make a log repeatable: r as the only sink, a clock that
// goes on by one second with each event that r gets, and ids that count: id1, id2, ….
func (r *Recorder) Options() agentevents.EmitterOptions {
	return agentevents.EmitterOptions{
		Sinks: []agentevents.Sink{r},
		Clock: func() time.Time {
			r.mu.Lock()
			defer r.mu.Unlock()
			return epoch.Add(time.Duration(len(r.events)) * time.Second)
		},
		NewID: func() string {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ids++
			return "id" + strconv.Itoa(r.ids)
		},
	}
}

// WriteEvent keeps the event. It returns no error.
func (r *Recorder) WriteEvent(_ context.Context, ev agentevents.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	fold := r.folds[ev.RunID]
	if fold == nil {
		fold = agentevents.NewFold(agentevents.FoldOptions{Lifecycle: r.lifecycle})
		put(&r.folds, ev.RunID, fold)
	}
	fold.Apply(ev)
	r.events = append(r.events, ev)
	return nil
}

// ResumeRun keeps the snapshot that a run goes on from, for [Recorder.Snapshot] and
// [Recorder.WantLaws], unless the recorder has events of the run.
func (r *Recorder) ResumeRun(_ context.Context, snapshot *agentevents.RunSnapshot) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.folds[snapshot.RunID] != nil {
		return nil
	}
	fold, err := agentevents.ResumeFold(snapshot, agentevents.FoldOptions{Lifecycle: r.lifecycle})
	if err != nil {
		return err
	}
	put(&r.folds, snapshot.RunID, fold)
	put(&r.from, snapshot.RunID, snapshot)
	return nil
}

// Events returns the events so far, in the order in which they were recorded.
func (r *Recorder) Events() []agentevents.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Filter returns a recorder with the events so far that keep accepts: the events of one run or one
// agent, or, with [NotSynthetic], the events that the program emitted itself.
func (r *Recorder) Filter(keep func(agentevents.Event) bool) *Recorder {
	events := slices.DeleteFunc(r.Events(), func(ev agentevents.Event) bool { return !keep(ev) })
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Recorder{lifecycle: r.lifecycle, events: events, from: maps.Clone(r.from)}
}

// NotSynthetic reports whether an event has no [agentevents.MarkSynthetic].
func NotSynthetic(ev agentevents.Event) bool { return !ev.Marks.Has(agentevents.MarkSynthetic) }

// Snapshot folds the events so far of a run, from the snapshot on that it was resumed
// from. The empty id means the run of the first event. Without an event of the run the
// snapshot is nil.
func (r *Recorder) Snapshot(runID string) *agentevents.RunSnapshot {
	all := r.Events()
	if runID == "" && len(all) > 0 {
		runID = all[0].RunID
	}
	all = slices.DeleteFunc(all, func(ev agentevents.Event) bool { return ev.RunID != runID })
	if len(all) == 0 {
		return nil
	}
	r.mu.Lock()
	from := r.from[runID]
	r.mu.Unlock()
	s, err := foldFrom(from, all, agentevents.FoldOptions{Lifecycle: r.lifecycle})
	if err != nil {
		return nil // ResumeRun has refused it
	}
	return s
}
