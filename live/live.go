// Package live shows runs while they go on: snapshots, and streams of events that a
// reader may join and leave at any event.
//
// A [Feed] is a sink. It folds every run, keeps the last lines of each, and serves both
// in Go and over HTTP:
//
//	page := live.New(live.Options{})
//	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{file, page}})
//	…
//	mux.Handle("GET /runs/{run}", page.SnapshotHandler())
//	mux.Handle("GET /runs/{run}/events", page.EventsHandler())
//
// The emitter waits for no reader. It appends its line to the run's lines, and readers follow at
// their own pace; a reader whose next event is not kept any more gets a GapError. The package has
// no goroutine of its own.
//
// A page loads the snapshot, then the events from its nextSequence on: together they are the whole
// run. A reader finds missed events in the next snapshot.
package live

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/reuse"
)

// Options configure a [Feed]. The zero Options are usable.
type Options struct {
	// Fold are the options of the folds. OnViolation may be called concurrently for
	// different runs, and must not call the Feed.
	Fold agentevents.FoldOptions
	// KeepBytes is how many bytes of lines a run keeps for readers that come later or
	// are slow; the newest line is kept in any case. 0 means 256 KiB, which is about
	// 1,500 deltas; negative means only the newest line.
	KeepBytes int
	// KeepRuns is how many released runs are kept: the latest ones. A reader whose
	// connection drops may need its run a while after the end. 0 means 256,
	// negative means none. Runs that are open are all kept: bound them with
	// EmitterOptions.MaxRuns.
	KeepRuns int
	// Linger is how long a stream waits for more after the last event of a released
	// run: session.completed, audits and late events may follow the end. 0 means two
	// seconds, negative means not at all.
	Linger time.Duration
	// Heartbeat is the time between two comments on an HTTP stream on which nothing
	// happens, so that nobody in between takes it for dead. 0 means 15 seconds,
	// negative means no comments.
	Heartbeat time.Duration
	// WriteTimeout is how long one write to an HTTP stream may take, before the
	// connection is dropped. 0 means 30 seconds, negative means for ever. It
	// replaces the one of the http.Server, which would end every stream.
	WriteTimeout time.Duration
	// AllowOrigin is the header Access-Control-Allow-Origin of both handlers. It is
	// not sent when AllowOrigin is empty, and then no other origin may read them.
	AllowOrigin string
}

func (o *Options) defaults() {
	set(&o.KeepBytes, 256<<10)
	set(&o.KeepRuns, 256)
	set(&o.Linger, 2*time.Second)
	set(&o.Heartbeat, 15*time.Second)
	set(&o.WriteTimeout, 30*time.Second)
}

// set replaces zero by the default, and a negative value by zero.
func set[T int | time.Duration](v *T, otherwise T) { *v = max(0, cmp.Or(*v, otherwise)) }

// A Feed is a sink that keeps runs for readers. Put it among the sinks of an emitter
// after the log on disk, and not in Buffered: it waits for nothing, and an event that was
// dropped would be missed by all readers. It may serve several emitters at once.
//
// All methods may be called concurrently.
type Feed struct {
	opts Options

	mu       sync.Mutex
	runs     map[string]*run
	released []*run // oldest first
	closed   bool
}

// New returns a feed without runs.
func New(o Options) *Feed {
	o.defaults()
	return &Feed{opts: o, runs: map[string]*run{}}
}

// A run is one run of a feed.
type run struct {
	feed *Feed
	id   string

	mu       sync.Mutex // never held together with another wait: the emitter takes it
	lines    []line     // in sequence order, without those before oldest
	text     reuse.Slab // of lines
	bytes    int        // length of all lines
	next     uint64     // sequence of the next event
	oldest   uint64     // readers from here on miss nothing
	epoch    string     // of the ids of streams; each resume has another
	start    uint64     // sequence at which the epoch began
	pending  []pending  // events that are not folded yet
	last     time.Time  // when the last event came; set once released
	released bool
	terminal bool          // an event has ended the run
	changed  chan struct{} // closed when something changes; nil while nobody waits

	folding sync.Mutex // guards fold; it is taken before mu
	fold    *agentevents.Fold
}

// A line is an event as a feed keeps it.
type line struct {
	sequence uint64
	kind     agentevents.Kind
	agent    string
	text     string
}

// A pending event waits for its fold.
type pending struct {
	ev   agentevents.Event
	line string
}

// maxPending is how many events of a run wait for their fold unless somebody is at the
// fold. They wait so that a reader who takes a snapshot does not hold up the emitter.
const maxPending = 16

// CheckSink returns an error unless the feed comes from [New]; see [agentevents.Checker].
func (f *Feed) CheckSink() error {
	if f == nil || f.runs == nil {
		return errors.New("a nil or zero feed cannot be used: it comes from live.New")
	}
	return nil
}

// WriteEvent is WriteLine for a caller that has no line.
func (f *Feed) WriteEvent(ctx context.Context, ev agentevents.Event) error {
	text, err := ev.AppendJSON(nil)
	if err != nil {
		return err
	}
	return f.WriteLine(ctx, ev, text)
}

// WriteLine takes an event. It waits for no reader. After Close it returns
// [agentevents.ErrClosed].
func (f *Feed) WriteLine(_ context.Context, ev agentevents.Event, text []byte) error {
	r, err := f.run(&ev)
	if err != nil {
		return err
	}
	if r.add(&ev, text, f.opts.KeepBytes) {
		r.catchUp()
	}
	return nil
}

// run returns the run of an event, a new one if there is none or if the event begins
// one again.
func (f *Feed) run(ev *agentevents.Event) (*run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.unusable(); err != nil {
		return nil, err
	}
	r := f.runs[ev.RunID]
	if r == nil || ev.Sequence == 0 && r.over() {
		r = f.begin(ev.RunID, agentevents.NewFold(f.opts.Fold), ev.Sequence)
		if ev.Sequence > 0 { // a late event of a run that is not kept any more
			f.retire(r)
		}
	}
	return r, nil
}

// unusable returns why the feed takes no event. f.mu is held.
func (f *Feed) unusable() error {
	switch {
	case f.runs == nil:
		return agentevents.ErrZeroValue
	case f.closed:
		return agentevents.ErrClosed
	}
	return nil
}

// begin adds a run. f.mu is held.
func (f *Feed) begin(id string, fold *agentevents.Fold, next uint64) *run {
	f.forget(f.runs[id])
	r := &run{feed: f, id: strings.Clone(id), fold: fold, next: next, oldest: next, epoch: newEpoch(), start: next}
	f.runs[r.id] = r
	return r
}

// newEpoch returns an epoch that no other process and no other resume has.
func newEpoch() string { return strconv.FormatUint(uint64(rand.Uint32()), 36) }

// forget drops a run, which may be nil. Its readers are released. f.mu is held.
func (f *Feed) forget(r *run) {
	if r == nil {
		return
	}
	delete(f.runs, r.id)
	f.released = slices.DeleteFunc(f.released, func(other *run) bool { return other == r })
	r.release(0)
}

// find returns the run of that id, or nil.
func (f *Feed) find(id string) *run {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[id]
}

// ResumeRun goes on from the snapshot. The lines of a run that is known here stay when
// the snapshot is where they end.
func (f *Feed) ResumeRun(_ context.Context, snapshot *agentevents.RunSnapshot) error {
	fold, err := agentevents.ResumeFold(snapshot, f.opts.Fold)
	if err != nil {
		return err
	}
	r := f.find(snapshot.RunID)
	known := r != nil && r.resume(fold, snapshot.NextSequence)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.unusable(); err != nil {
		return err
	}
	if known {
		f.released = slices.DeleteFunc(f.released, func(other *run) bool { return other == r })
		f.runs[r.id] = r
	} else {
		f.begin(snapshot.RunID, fold, snapshot.NextSequence)
	}
	return nil
}

// ReleaseRun keeps the run for readers that come later: see Options.KeepRuns.
func (f *Feed) ReleaseRun(_ context.Context, runID string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.runs[runID]; r != nil {
		f.retire(r)
	}
	return nil
}

// retire notes that a run is released, and forgets the one that was released first if
// there are too many. f.mu is held.
func (f *Feed) retire(r *run) {
	if !r.release(f.opts.Linger) {
		return
	}
	f.released = append(f.released, r)
	if len(f.released) > f.opts.KeepRuns {
		delete(f.runs, f.released[0].id) // those who read it go on
		f.released = slices.Delete(f.released, 0, 1)
	}
}

// Close ends all streams. Snapshots and lines stay. Call it before http.Server.Shutdown,
// which waits for streams (Emitter.Close does so).
func (f *Feed) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, r := range f.runs {
		r.release(0)
	}
	return nil
}

// Snapshot returns the state of a run, whole, after all events so far, or nil when the
// feed does not have the run. The snapshot belongs to the caller. It takes its time when
// the run is long; the emitter does not wait for it.
func (f *Feed) Snapshot(runID string) *agentevents.RunSnapshot {
	r := f.find(runID)
	if r == nil {
		return nil
	}
	return r.snapshot()
}

func (r *run) snapshot() *agentevents.RunSnapshot {
	r.folding.Lock()
	defer r.folding.Unlock()
	r.foldPending()
	return r.fold.Snapshot()
}

// A Run is a line of the list of runs.
type Run struct {
	ID       string // the run
	Oldest   uint64 // sequence of the oldest event that can be streamed; Next when there is none
	Next     uint64 // sequence of the next event
	Released bool   // the emitter has released the run
}

// Runs returns the runs that the feed has, in the order of their ids.
func (f *Feed) Runs() []Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]Run, 0, len(f.runs))
	for _, r := range f.runs {
		r.mu.Lock()
		list = append(list, Run{ID: r.id, Oldest: r.oldest, Next: r.next, Released: r.released})
		r.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b Run) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// add keeps an event. It reports whether enough events wait for the fold.
func (r *run) add(ev *agentevents.Event, text []byte, keep int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.text.String(text)
	r.pending = append(r.pending, pending{*ev, s})
	if ev.Sequence >= r.next { // else the fold reports it
		r.lines = append(r.lines, line{ev.Sequence, ev.Kind(), ev.AgentID, s})
		r.bytes += len(s)
		r.next = ev.Sequence + 1
		r.trim(keep)
		if r.released {
			r.last = time.Now()
		}
		r.notify()
	}
	switch ev.Kind() {
	case agentevents.KindRunCompleted, agentevents.KindRunFailed, agentevents.KindRunCancelled:
		r.terminal = true
	}
	return len(r.pending) >= maxPending
}

// trim drops the oldest lines beyond the limit. r.mu is held.
func (r *run) trim(keep int) {
	n := 0
	for ; r.bytes > keep && n < len(r.lines)-1; n++ {
		r.bytes -= len(r.lines[n].text)
		r.oldest = r.lines[n].sequence + 1
	}
	if n > 0 {
		clear(r.lines[:n])
		r.lines = r.lines[n:] // append moves the rest to new memory now and then
	}
}

// notify wakes all who wait. r.mu is held.
func (r *run) notify() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// catchUp folds the events that wait. When somebody is at the fold, the events wait on;
// only when very many do so, which would fill the memory, does the emitter wait too.
func (r *run) catchUp() {
	if !r.folding.TryLock() {
		r.mu.Lock()
		many := len(r.pending) >= 64*maxPending
		r.mu.Unlock()
		if !many {
			return
		}
		r.folding.Lock()
	}
	defer r.folding.Unlock()
	r.foldPending()
}

// foldPending folds the events that wait. r.folding is held.
func (r *run) foldPending() {
	r.mu.Lock()
	list := r.pending
	r.pending = nil
	r.mu.Unlock()
	for i := range list {
		r.fold.ApplyLine(list[i].ev, list[i].line)
	}
	clear(list)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == nil && cap(list) <= 2*maxPending {
		r.pending = list[:0]
	}
}

// resume goes on with another fold, if the lines end where it does.
func (r *run) resume(fold *agentevents.Fold, next uint64) bool {
	r.folding.Lock()
	defer r.folding.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next != next {
		return false
	}
	r.fold, r.pending, r.released, r.last = fold, nil, false, time.Time{}
	r.epoch, r.start = newEpoch(), next
	r.notify()
	return true
}

// release notes that only events after the end still come, and that readers wait for them. It
// returns false if that was known.
func (r *run) release(linger time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.released
	r.released = true
	switch {
	case linger == 0:
		r.last = time.Time{} // long ago
	case !known:
		r.last = time.Now()
	}
	r.notify()
	return !known
}

// finished reports whether no other process can go on with the run.
func (r *run) finished() bool {
	r.mu.Lock()
	terminal := r.terminal
	r.mu.Unlock()
	if terminal {
		return true
	}
	r.folding.Lock()
	defer r.folding.Unlock()
	r.foldPending()
	return r.fold.Snapshot().Status.Terminal()
}

// over reports whether the run is released.
func (r *run) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.released
}
