package agentevents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/agentevents/agentevents/internal/firsterrs"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/reentry"
	"github.com/agentevents/agentevents/internal/turns"
	"github.com/agentevents/agentevents/internal/uuid7"
	"github.com/agentevents/agentevents/internal/wallclock"
)

// Mode says what an emitter does with events that break a rule.
type Mode uint8

// The modes.
const (
	// ModeEnforce refuses them: Emit returns a [*RuleError] and nothing was
	// recorded. The default.
	ModeEnforce Mode = iota
	// ModeObserve records them, marked [MarkIllegal], and reports the violation to
	// EmitterOptions.OnViolation; Emit returns nil. It is for logs that must not lack an
	// event, and for captures of runs that nobody controls. What no line can carry is
	// refused in this mode too.
	ModeObserve

	modes = iota
)

var modeNames = [modes]string{"enforce", "observe"}

// String returns "enforce" or "observe".
func (m Mode) String() string {
	if m >= modes {
		return "Mode(" + strconv.Itoa(int(m)) + ")"
	}
	return modeNames[m]
}

// EmitterOptions configure an [Emitter]. The zero EmitterOptions are usable:
// strict, enforcing, redacting by the default policy, without sinks.
//
// A panic of a function that is given here, or of a sink, does not reach the agent, but
// for those of Policy.CountTokens and Policy.RunReasoning. Guard's refuses the event. For
// the others it goes on: with the time of time.Now, an id that is a UUIDv7, a text that is
// masked. OnError is told of the panic; of its own, and those of Clock and NewID, Flush
// and Close return a [*PanicError].
type EmitterOptions struct {
	// Sinks get every accepted event, in this order: the log first, mirrors
	// after. They are required unless wrapped in [BestEffort]. One of them may be a
	// [Tracer].
	Sinks []Sink
	// Lifecycle is the table of legal status transitions; default [LifecycleStrict].
	Lifecycle Lifecycle
	// Mode is what happens to illegal events; default [ModeEnforce].
	Mode Mode
	// Redaction is what the redaction step does; nil means the default policy
	// (see [Policy]), &Policy{Off: true} none.
	Redaction *Policy
	// Clock tells the time; nil means time.Now. It may be called concurrently,
	// and with the lock of a run held: it must not emit.
	Clock func() time.Time
	// NewID mints ids of events, runs, calls and messages; nil means UUIDv7, and so
	// does an id that is empty or no UTF-8. It is called as Clock is.
	NewID func() string
	// OnError is told every error of a sink, of the Redactor and of Follow, also those
	// of required sinks, which come back from Emit as well. It is called after the event,
	// by the emitting goroutine, and may emit and close. Close does not wait for it.
	// Nil collects a few of those that do not come back, for Flush and Close.
	OnError func(error)
	// OnViolation is told, likewise, every event that breaks a rule: one that was
	// refused, be it of Follow, and one that was recorded in spite of it. Refused says
	// which. A refusal is also what Emit returns. Nil leaves those that were recorded
	// to the fold, which reports them too.
	OnViolation func(*RuleError)
	// Guard is a further rule. It is asked about every event that keeps the
	// library's rules, and about tool calls that do not, since the tool may run
	// nevertheless (see [Agent.Do]); before anything is redacted or recorded. Nil is
	// its consent. The event's Sequence is the next one; it is higher in the log when
	// what was held back of a block is recorded in front of it (see [Policy]). It is called with the lock of the run held and must not emit;
	// what it panics with comes back from Emit, and nothing was recorded. Nil
	// means that there is no further rule.
	Guard func(Event) *RuleError
	// Follow is told every event that was recorded, and returns what must
	// follow it at once: nothing of the run comes in between, and their
	// CausationID is its ID unless they say another. They are checked like
	// all events, may be of any agent, and are not followed themselves; what is
	// refused of them goes to OnError too. It is called with the lock of the run
	// held and must not emit. It is not asked about events marked [MarkReplayed], nor
	// about what was held back of a block, nor about the transitions of
	// [LifecycleDerived]. Nil means that nothing follows.
	Follow func(Event) []Event
	// MaxRuns bounds the runs that are open at the same time; 0 means no
	// bound. [Emitter.Run] refuses one more with [ErrTooManyRuns].
	MaxRuns int
	// MaxLine is the length in bytes of the longest line; 0 means [DefaultMaxLine].
	// Who reads the log needs no less as ReaderOptions.MaxLine. The longest content
	// of an event whose line would be longer is cut after redaction, and the event is
	// marked [MarkSanitized]. A text keeps its beginning and ends with
	//
	//	[TRUNCATED:17826152 bytes, sha256 6f1e…]
	//
	// and JSON, an extra member too, becomes an object with the beginning of its text:
	//
	//	{"truncated":{"bytes":17826152,"sha256":"6f1e…","head":"{\"a\":[1,2"}}
	//
	// Length and hash are those of the redacted text. An event that is too long
	// without its content is refused in every mode (rule line-length).
	MaxLine int
}

// check refuses values that no constant has: they must not pass for the default.
func (o *EmitterOptions) check() error {
	switch {
	case o.Lifecycle != "" && !o.Lifecycle.known():
		return noConstant("EmitterOptions.Lifecycle", string(o.Lifecycle))
	case o.Mode >= modes:
		return noConstant("EmitterOptions.Mode", int(o.Mode))
	}
	return o.Redaction.check("EmitterOptions.Redaction.")
}

func noConstant(field string, value any) error {
	return fmt.Errorf("agentevents: %s: no constant has the value %#v", field, value)
}

// An Emitter turns payloads into a log that keeps its own rules.
//
// For every payload, under one lock per run: check it and whether it is legal
// now; give it id, sequence and time; redact it; apply it to the state; ask the
// tracer; encode it once; deliver it to the sinks in order. A refused payload
// consumes no sequence number, so accepted logs have no gaps.
//
// All methods, and those of runs, agents and calls, may be called
// concurrently. Events of one run are ordered; different runs do not wait for
// each other.
type Emitter struct {
	opts         EmitterOptions
	redact       *redaction
	sinks        []*sinkEntry
	lines        bool       // some sink wants the encoded line
	lastingLines bool       // only of events that are not droppable
	logs         bool       // some sink is required and says at once what it could not take
	tracer       *sinkEntry // or nil
	commit       []*sinkEntry
	buffers      []*BufferedSink

	mu       sync.Mutex // nothing is waited for while it is held
	runs     map[string]*runState
	released map[string]release // ids that must not begin again
	order    []string           // of released: the nth release is at n % maxReleased
	releases int
	opened   uint // runs

	lanes  [lanes]lane
	idle   chan struct{} // has a token when nothing is in flight in a lane of a closed emitter
	closed atomic.Bool

	errsMu sync.Mutex
	errs   firsterrs.List // of sinks, for Flush and Close
}

// A lane counts the events that runs of it are emitting. There are several, each
// with a cache line of its own, because counters that all processors write to
// are slow.
type lane struct {
	inflight atomic.Int64
	_        [56]byte
}

const lanes = 16

// maxReleased bounds the ids of released runs that an emitter remembers in
// order to refuse them. One takes about 150 bytes, a UUID's text included.
const maxReleased = 65_536

// A release is what is remembered of a released run.
type release struct {
	number int // of the release
	end    *ending
}

// An ending is what a run and its release share.
type ending struct {
	closed atomic.Bool   // refuses the events of handles that are left
	next   atomic.Uint64 // runState.kept of a released run
}

// NewEmitter returns an emitter. It fails when a sink cannot be used, and when
// more than one is a [Tracer].
func NewEmitter(o EmitterOptions) (*Emitter, error) {
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	e := &Emitter{
		opts:     o,
		redact:   newRedaction(o.Redaction),
		runs:     map[string]*runState{},
		released: map[string]release{},
		idle:     make(chan struct{}, 1),
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	e.opts.Lifecycle = cmp.Or(o.Lifecycle, LifecycleStrict)
	for i, s := range o.Sinks {
		k := newSinkEntry(s)
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("agentevents: EmitterOptions.Sinks[%d]: %w", i, err)
		}
		e.sinks = append(e.sinks, k)
	}
	e.lastingLines = true
	for _, k := range e.sinks {
		e.lines = e.lines || k.line != nil
		e.logs = e.logs || k.required && k.buffer == nil
		e.lastingLines = e.lastingLines && (k.line == nil || k.lasting)
		if k.committer != nil {
			e.commit = append(e.commit, k)
		}
		if k.buffer != nil {
			e.buffers = append(e.buffers, k.buffer)
		}
		if k.tracer != nil {
			if e.tracer != nil {
				return nil, fmt.Errorf("agentevents: EmitterOptions.Sinks: %s and %s are both tracers", e.tracer.name, k.name)
			}
			e.tracer = k
		}
	}
	return e, nil
}

func (e *Emitter) ok() bool { return e != nil && e.runs != nil }

func (e *Emitter) now() time.Time {
	if e.opts.Clock == nil {
		return time.Now()
	}
	t, err := ask(e.opts.Clock)
	if err != nil {
		e.keepErrors([]error{fmt.Errorf("agentevents: EmitterOptions.Clock: %w", err)})
		return time.Now()
	}
	return t
}

// ask and notify call a function of the options, and contain panics.
func ask[T any](f func() T) (v T, err error) {
	defer contain(&err)
	return f(), nil
}

func notify[T any](f func(T), v T) (err error) {
	defer contain(&err)
	f(v)
	return nil
}

// newID mints an id for a run, call or message.
func (e *Emitter) newID() string {
	if id := e.givenID(); id != "" {
		return id
	}
	return uuid.Must(uuid.NewV7()).String()
}

// givenID returns an id of EmitterOptions.NewID, or "" when there is none that a line can carry.
func (e *Emitter) givenID() string {
	if e.opts.NewID == nil {
		return ""
	}
	id, err := ask(e.opts.NewID)
	if err != nil {
		e.keepErrors([]error{fmt.Errorf("agentevents: EmitterOptions.NewID: %w", err)})
	}
	if !utf8.ValidString(id) {
		return ""
	}
	return id
}

// Run returns the run of that id, a new one if none is open; the empty id
// mints one. The run is released by its terminal event or by [Run.Close].
//
// The ids of the last 65,536 released runs are refused with [ErrRunReleased]:
// their sequences must not begin again (continue such a run with Resume). An id
// beyond these begins a new run. Beyond EmitterOptions.MaxRuns a run is refused
// with [ErrTooManyRuns]. Run waits for no other run.
func (e *Emitter) Run(id string) (*Run, error) {
	if !e.ok() {
		return nil, ErrZeroValue
	}
	if id == "" {
		id = e.newID()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed.Load() {
		return nil, fmt.Errorf("%w: the emitter opens no run (run %s)", ErrClosed, jsonwire.Brief(id))
	}
	s := e.runs[id]
	if s == nil {
		if _, ok := e.released[id]; ok {
			return nil, fmt.Errorf("%w (run %s)", ErrRunReleased, jsonwire.Brief(id))
		}
		var err error
		m := newMachine(&RunState{RunID: id})
		m.goBy(e.opts.Lifecycle)
		if s, err = e.open(m); err != nil {
			return nil, err
		}
	}
	return newRun(s, Scope{}), nil
}

// Lookup returns a handle to the run of that id, and false when no run of that id is
// open. It opens none, so the id may come from anywhere. Lookup waits for no run.
func (e *Emitter) Lookup(id string) (*Run, bool) {
	if !e.ok() {
		return nil, false
	}
	e.mu.Lock()
	s := e.runs[id]
	e.mu.Unlock()
	if s == nil {
		return nil, false
	}
	return newRun(s, Scope{}), true
}

// Runs yields a handle to each run that is open when the loop begins, in the order of
// their ids. The loop may do anything; it waits for no run.
func (e *Emitter) Runs() iter.Seq[*Run] {
	return func(yield func(*Run) bool) {
		if !e.ok() {
			return
		}
		for _, s := range e.openRuns() {
			if !yield(newRun(s, Scope{})) {
				return
			}
		}
	}
}

// openRuns returns the open runs in the order of their ids.
func (e *Emitter) openRuns() []*runState {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.SortedFunc(maps.Values(e.runs), func(a, b *runState) int { return strings.Compare(a.m.RunID, b.m.RunID) })
}

// Resume continues a run where a snapshot of it ends: sequences, steps, open
// calls, the session and everything else the rules are about go on. The run must
// not be open here; handles of it from before return [ErrClosed] from then on.
// Resume waits for no run: an event that such a handle is emitting is still
// delivered. A run that has ended takes no more than what may follow its end (rule
// terminal-last), not even run.resumed.
//
// The snapshot of a run that has begun needs a NextSequence. Snapshots in the form of the
// resume specification have none. A snapshot from before what this emitter has recorded of
// the run since is refused: its sequences would be used twice.
//
// Each sink that is a [Resumer] gets a copy of the snapshot before any event. When
// a required one fails, the run is closed again and Resume returns a [*SinkError].
func (e *Emitter) Resume(snapshot *RunSnapshot) (*Run, error) {
	if !e.ok() {
		return nil, ErrZeroValue
	}
	if err := snapshot.complete(); err != nil {
		return nil, fmt.Errorf("agentevents: Resume: %w", err)
	}
	if snapshot.RunID == "" {
		return nil, errors.New("agentevents: Resume needs a snapshot with a run id")
	}
	if snapshot.NextSequence == 0 && snapshot.begun() {
		return nil, fmt.Errorf("agentevents: Resume: the snapshot of run %s does not say where its log goes on (NextSequence): new events would be lost as repeated ones; package resume takes the position from its caller", jsonwire.Brief(snapshot.RunID))
	}
	m := snapshot.machine(e.opts.Lifecycle) // takes its time when the snapshot is large
	s, err := e.reopen(m, snapshot.SessionID)
	if err != nil {
		return nil, err
	}
	if err := s.resumed(snapshot); err != nil {
		return nil, join(err, newRun(s, Scope{}).Close())
	}
	return newRun(s, Scope{}), nil
}

// reopen registers a run that goes on. Its lock is held until the sinks were told.
func (e *Emitter) reopen(m *machine, session string) (*runState, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed.Load() {
		return nil, fmt.Errorf("%w: the emitter opens no run (run %s)", ErrClosed, jsonwire.Brief(m.RunID))
	}
	if e.runs[m.RunID] != nil {
		return nil, fmt.Errorf("agentevents: run %s is open", jsonwire.Brief(m.RunID))
	}
	old, again := e.released[m.RunID]
	if again && m.NextSequence < old.end.next.Load() {
		return nil, fmt.Errorf("agentevents: Resume: the snapshot of run %s is stale: it goes on with sequence %d, and the log has the events before %d: new events would be lost as repeated ones",
			jsonwire.Brief(m.RunID), m.NextSequence, old.end.next.Load())
	}
	s, err := e.open(m)
	if err != nil {
		return nil, err
	}
	s.mu.Lock() // nobody else has it yet
	s.resumes = resumes{true, true}
	s.session = session
	if again {
		s.kept = old.end.next.Load()
		old.end.closed.Store(true) // or its handles would count the sequences a second time
	}
	return s, nil
}

// resumed tells the sinks that the run goes on, and lets go of its lock.
func (s *runState) resumed(snapshot *RunSnapshot) error {
	e := s.e
	var done outcome
	err := func() (err error) {
		defer s.mu.Unlock()
		defer s.leave()
		if !s.enter() {
			return ErrClosed
		}
		c := reentry.New(context.Background(), e, &s.holder, nil)
		for _, k := range e.sinks {
			if k.resumer == nil {
				continue
			}
			if cerr := k.resumeRun(c, snapshot.clone()); cerr != nil {
				err = e.failed(err, k, &Event{}, &done, cerr)
			}
		}
		return err
	}()
	s.report(&done)
	return err
}

// released tells the sinks, once, that the run is released. s.mu is held.
func (s *runState) released(c *reentry.Call, done *outcome) (err error) {
	s.end.next.Store(s.kept)
	if s.told || s.e.resumedAgain(s) {
		return nil
	}
	s.told = true
	for _, k := range s.e.sinks {
		if k.releaser == nil {
			continue
		}
		if cerr := k.releaseRun(c, s.m.RunID); cerr != nil {
			err = s.e.failed(err, k, &Event{}, done, cerr)
		}
	}
	return err
}

// resumedAgain reports whether the id of s is that of another run now.
func (e *Emitter) resumedAgain(s *runState) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.runs[s.m.RunID]
	return now != nil && now != s
}

// open registers a run. e.mu is held.
func (e *Emitter) open(m *machine) (*runState, error) {
	if e.opts.MaxRuns > 0 && len(e.runs) >= e.opts.MaxRuns {
		return nil, fmt.Errorf("%w (limit %d)", ErrTooManyRuns, e.opts.MaxRuns)
	}
	s := &runState{e: e, m: m, end: new(ending), lane: uint8(e.opened % lanes), derives: m.named() == LifecycleDerived}
	e.opened++
	e.runs[m.RunID] = s
	return s, nil
}

// release forgets a run. Its handles still take what may follow the end.
func (e *Emitter) release(s *runState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := s.m.RunID
	if e.runs[id] != s {
		return
	}
	delete(e.runs, id)
	if len(e.order) < maxReleased {
		e.order = append(e.order, id)
	} else {
		oldest := &e.order[e.releases%maxReleased]
		if e.released[*oldest].number == e.releases-maxReleased { // it was not resumed and released again
			delete(e.released, *oldest)
		}
		*oldest = id
	}
	e.released[id] = release{e.releases, s.end}
	e.releases++
}

// Flush makes every sink hand on what it has buffered, in order, and returns
// their errors, each as a [*SinkError].
//
// A sink has time until the context ends. One whose turn comes after that has a
// second, so that a cancelled context does not lose what is buffered. The error
// names the sinks that did not finish; they go on by themselves.
func (e *Emitter) Flush(ctx context.Context) error {
	if !e.ok() {
		return ErrZeroValue
	}
	ctx = orBackground(ctx)
	if reentry.Of(ctx).Inside(e) {
		return ErrReentrant
	}
	_, errs := e.flush(ctx)
	return errors.Join(append(errs, e.takeErrors()...)...)
}

// flush returns the sinks whose flush finished, and the errors.
func (e *Emitter) flush(ctx context.Context) (finished []*sinkEntry, errs []error) {
	for _, k := range e.sinks {
		ok, err := k.flushWithin(ctx)
		if ok {
			finished = append(finished, k)
		}
		if err != nil {
			errs = append(errs, &SinkError{Sink: k.name, Err: err})
		}
	}
	return finished, errs
}

// Close refuses new events, waits for those being emitted, records what the redaction
// step holds back of blocks that have not ended (see [Policy]), flushes all sinks and
// closes all sinks. All of this has time until the context ends. What begins
// after that has a second, each sink by itself, so that a cancelled context does
// not lose what is buffered.
//
// The error names what did not finish; then Close may be called again. Sinks
// are not closed while an event is still being written to them, nor while they
// are flushed.
func (e *Emitter) Close(ctx context.Context) error {
	if !e.ok() {
		return ErrZeroValue
	}
	ctx = orBackground(ctx)
	if reentry.Of(ctx).Inside(e) {
		return ErrReentrant
	}
	e.closed.Store(true)
	for _, b := range e.buffers {
		b.hurry()
	}
	n := e.drain(ctx)
	errs := e.settle(ctx)
	finished, flushErrs := e.flush(ctx)
	errs = append(append(errs, flushErrs...), e.takeErrors()...)
	if n > 0 {
		return errors.Join(append([]error{fmt.Errorf("agentevents: close: %d events are still being emitted: %w", n, ctx.Err())}, errs...)...)
	}
	for _, k := range finished {
		if err := k.closeWithin(ctx); err != nil {
			errs = append(errs, &SinkError{Sink: k.name, Err: err})
		}
	}
	for _, b := range e.buffers {
		b.end() // or the goroutine of one that did not finish would wait for events
	}
	return errors.Join(errs...)
}

// settle records what the streams of all open runs hold back.
func (e *Emitter) settle(ctx context.Context) (errs []error) {
	for _, s := range e.openRuns() {
		if err := s.close(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// drain waits until no event is being emitted. It returns how many are when the
// context ends first.
func (e *Emitter) drain(ctx context.Context) int64 {
	ctx, cancel := turns.Grace(ctx)
	defer cancel()
	for e.inflight() > 0 {
		select {
		case <-e.idle:
		case <-ctx.Done():
			return e.inflight()
		}
	}
	e.wake() // another call of Close may be waiting
	return 0
}

// inflight returns how many events are being emitted.
func (e *Emitter) inflight() (n int64) {
	for i := range e.lanes {
		n += e.lanes[i].inflight.Load()
	}
	return n
}

// enter counts an event in flight. It returns false when the emitter is closed.
// Every enter is followed by a leave.
func (s *runState) enter() bool {
	s.e.lanes[s.lane].inflight.Add(1) // before closed is read, or Close would not wait
	return !s.e.closed.Load()
}

// leave ends an event in flight, and tells Close when it was the last of its
// lane.
func (s *runState) leave() {
	if s.e.lanes[s.lane].inflight.Add(-1) == 0 && s.e.closed.Load() {
		s.e.wake()
	}
}

// wake makes one call of Close look again.
func (e *Emitter) wake() {
	select {
	case e.idle <- struct{}{}:
	default:
	}
}

// keepErrors keeps errors that nobody is told before Flush or Close.
func (e *Emitter) keepErrors(errs []error) {
	if len(errs) == 0 {
		return
	}
	e.errsMu.Lock()
	defer e.errsMu.Unlock()
	e.errs.Add(maxBufferedErrors, errs...)
}

func (e *Emitter) takeErrors() []error {
	e.errsMu.Lock()
	defer e.errsMu.Unlock()
	return e.errs.Take("")
}

// A runState is a run of an emitter; handles share it.
type runState struct {
	e         *Emitter
	holder    reentry.Holder               // of mu
	call      atomic.Pointer[reentry.Call] // the last one, made when the context of events changes
	lane      uint8                        // of the emitter
	derives   bool                         // the transitions: see derive.go
	told      bool                         // the sinks were told that the run is released; guarded by mu
	resumes   resumes                      // guarded by mu
	fenced    bool                         // a sink has said ErrFenced; guarded by mu
	finishing atomic.Bool                  // Run.Finish is at work: refuses what opens something
	kept      uint64                       // sequence after the last event that a log surely has; guarded by mu
	end       *ending                      // the emitter has it too when the run is released

	mu     sync.Mutex // guards the rest
	m      *machine
	clock  wallclock.Clock
	ids    uuid7.Source
	line   []byte
	times  jsonwire.TimeWriter
	tokens map[callKey]int // of reasoning blocks in the making, with CountTokens
	// refused counts the events that were refused: of the run, and by agent id.
	refused *refusals // nil until there is one
	// streams are the blocks whose deltas are scanned. They belong to no snapshot.
	streams *streams // nil until there is one

	// state guards, in addition, what questions are about: m where apply changes it, and
	// session. It is held for no longer, so that a question never waits for a sink.
	state   sync.Mutex
	session string // the first one that an event carries which is not droppable
}

// record is the write path. head is of the handle when the event's envelope is
// what the handle says and no more; then its texts were checked with it.
func (s *runState) record(ctx context.Context, ev *Event, head string) error {
	var done outcome
	return s.recordAs(ctx, ev, head, &done)
}

// recordAs is record with what is said before.
func (s *runState) recordAs(ctx context.Context, ev *Event, head string, done *outcome) error {
	c := s.callFor(orBackground(ctx))
	err := s.emit(c, ev, head, done)
	if len(done.violations) > 0 || len(done.reports) > 0 || len(s.e.buffers) > 0 {
		s.tell(c.Outer(), done)
	}
	return err
}

// tell is the part of the write path without a lock. Close does not wait for it, so that it
// may be called from there.
func (s *runState) tell(outer *reentry.Call, done *outcome) {
	for _, violation := range done.violations {
		s.e.redact.hide(violation)
		if s.e.opts.OnViolation != nil {
			if err := notify(s.e.opts.OnViolation, violation); err != nil {
				done.reports = append(done.reports, fmt.Errorf("agentevents: EmitterOptions.OnViolation, run %s: %w", jsonwire.Brief(s.m.RunID), err))
			}
		}
	}
	s.report(done)
	for _, b := range s.e.buffers {
		b.room(outer, done.lasting)
	}
}

// callFor returns the context for what is called with the run's lock held.
func (s *runState) callFor(ctx context.Context) *reentry.Call {
	c := s.call.Load()
	if c.MadeOf(ctx) {
		return c
	}
	c = reentry.New(ctx, s.e, &s.holder, reentry.Of(ctx))
	if len(s.e.commit) > 0 {
		c.Unheld = reentry.New(ctx, s.e, nil, c.Outer())
	}
	s.call.Store(c)
	return c
}

// emit is the part of the write path that Close waits for.
func (s *runState) emit(c *reentry.Call, ev *Event, head string, done *outcome) error {
	defer s.left(c, ev, done)
	if !s.enter() {
		return s.closedError("the emitter", ev)
	}
	err := s.write(c, ev, head, done)
	if s.end.closed.Load() { // perhaps by Run.Close, which did not wait
		err = join(err, s.settle(c, done))
	}
	return s.finish(c, ev, err, done)
}

// left ends what enter began.
func (s *runState) left(c *reentry.Call, ev *Event, done *outcome) {
	if done.exited {
		s.abandon(c, ev, done)
		return
	}
	s.leave()
}

// abandon does what is left to do for an event when a sink ended the goroutine, so that
// Emit does not return.
func (s *runState) abandon(c *reentry.Call, ev *Event, done *outcome) {
	defer s.tell(c.Outer(), done)
	defer s.leave()
	err := done.lost
	if done.ended {
		err = join(err, s.settle(c, done))
	}
	if err = s.finish(c, ev, err, done); err != nil && s.e.opts.OnError == nil {
		s.e.keepErrors([]error{err})
	}
}

// finish is what is left of the write path once the run's lock is released.
func (s *runState) finish(c *reentry.Call, ev *Event, err error, done *outcome) error {
	e := s.e
	if done.ended {
		e.release(s)
	}
	for _, k := range e.commit {
		if !done.delivered || k.commitsLasting && !done.lasting {
			continue
		}
		if cerr := k.commit(c.Unheld, ev.ID); cerr != nil {
			err = e.failed(err, k, ev, done, cerr)
		}
	}
	if len(done.reports) > 0 && e.opts.OnError == nil { // here, or Close would not wait for it
		s.report(done)
	}
	return err
}

// report tells OnError what does not come back to the caller.
func (s *runState) report(done *outcome) {
	if s.e.opts.OnError == nil {
		s.e.keepErrors(done.reports)
		done.reports = nil
	}
	for _, err := range done.reports {
		if perr := notify(s.e.opts.OnError, err); perr != nil {
			s.e.keepErrors([]error{fmt.Errorf("agentevents: EmitterOptions.OnError, run %s: %w", jsonwire.Brief(s.m.RunID), perr)})
		}
	}
}

// outcome is what is left to do after a run's lock is released.
type outcome struct {
	number     bool         // said before: a delta gets the index that the rules expect
	returns    bool         // said before: the event is of the return of a call, and late if its agent is at rest
	recorded   bool         // the event itself was
	delivered  bool         // something was: the event, or what streams held back
	lasting    bool         // something that is not droppable was
	ended      bool         // the run's terminal event was
	exited     bool         // a sink ended the goroutine
	lost       error        // of sinks: what Emit would have returned, then
	violations []*RuleError // for OnViolation
	reports    []error      // for OnError
}

// lock takes the run's lock, unless the caller has it.
func (s *runState) lock(outer *reentry.Call) error {
	if !outer.Await(&s.holder) {
		return fmt.Errorf("%w (run %s)", ErrReentrant, jsonwire.Brief(s.m.RunID))
	}
	s.mu.Lock()
	outer.Waited()
	return nil
}

// write is the part of the write path under the run's lock.
func (s *runState) write(c *reentry.Call, ev *Event, head string, done *outcome) error {
	if err := s.lock(c.Outer()); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.end.closed.Load() {
		return s.closedError("the run", ev)
	}
	err := s.add(c, ev, head, done)
	if s.e.opts.Follow != nil && done.recorded && !s.fenced && !ev.Marks.Has(MarkReplayed) {
		err = s.follow(c, ev, done, err)
	}
	if done.ended {
		err = join(err, s.released(c, done))
	}
	if cap(s.line) > maxKeptLine {
		s.line = nil // one huge event should not be paid for ever after
	}
	return err
}

// closedError returns the error of an event that comes too late.
func (s *runState) closedError(what string, ev *Event) error {
	return fmt.Errorf("%w: %s of run %s was not recorded, %s is closed", ErrClosed, jsonwire.BriefName(string(ev.Kind())), jsonwire.Brief(s.m.RunID), what)
}

// refusals are the numbers of events that were refused.
type refusals struct {
	all    int
	agents map[string]int // by agent id
}

func (r *refusals) of(agent string) int {
	if r == nil {
		return 0
	}
	return r.agents[agent]
}

// countRefused counts an event that was refused. An agent's count begins again when it
// has ended.
func (s *runState) countRefused(agent string) {
	if s.refused == nil {
		s.refused = &refusals{}
	}
	s.refused.all++
	if agent == "" {
		return
	}
	put(&s.refused.agents, agent, s.refused.agents[agent]+1)
}

// follow records what EmitterOptions.Follow wants to be recorded after ev. What is
// refused of it is reported, as ev itself was recorded.
func (s *runState) follow(ctx *reentry.Call, ev *Event, done *outcome, err error) error {
	events, perr := following(s.e.opts.Follow, *ev)
	if perr != nil {
		done.reports = append(done.reports, fmt.Errorf("agentevents: EmitterOptions.Follow, run %s, sequence %d: %w", jsonwire.Brief(ev.RunID), ev.Sequence, perr))
	}
	for i := range events {
		next, sub := events[i], outcome{}
		fillText(&next.CausationID, ev.ID)
		serr := s.add(ctx, &next, "", &sub)
		done.ended, done.lasting = sub.ended || done.ended, sub.lasting || done.lasting
		done.violations = append(done.violations, sub.violations...)
		done.reports = append(done.reports, sub.reports...)
		switch {
		case serr == nil:
		case sub.recorded: // a sink failed
			err = errors.Join(err, serr)
		default:
			done.reports = append(done.reports, fmt.Errorf("agentevents: EmitterOptions.Follow, run %s, after sequence %d: %w", jsonwire.Brief(ev.RunID), ev.Sequence, serr))
		}
	}
	return err
}

func following(f func(Event) []Event, ev Event) (events []Event, err error) {
	defer contain(&err)
	return f(ev), nil
}

// guarded asks EmitterOptions.Guard.
func guarded(f func(Event) *RuleError, ev *Event) (violation *RuleError, err error) {
	defer contain(&err)
	if violation = f(*ev); violation == nil {
		return nil, nil
	}
	out := *violation
	out.Kind = ev.Kind()
	fillText(&out.RunID, ev.RunID)
	fillText(&out.AgentID, ev.AgentID)
	fillText(&out.EventID, ev.ID)
	out.Sequence = ev.Sequence
	return &out, nil
}

// add records one event, and notes when it is refused. s.mu is held; ev is the caller's
// own and is filled in on the way.
func (s *runState) add(ctx *reentry.Call, ev *Event, head string, done *outcome) error {
	refused, err := s.try(ctx, ev, head, done)
	if refused == nil {
		return err
	}
	if rule, ok := refused.(*RuleError); ok {
		rule.Refused = true
		done.violations = append(done.violations, rule)
		s.countRefused(ev.AgentID)
	}
	return join(err, refused)
}

// try checks, stamps, redacts, applies and delivers one event. It returns why the event is
// refused, and the errors of sinks.
func (s *runState) try(ctx *reentry.Call, ev *Event, head string, done *outcome) (refused, err error) {
	bound := head != ""
	ev.Sequence = s.m.NextSequence
	ev.SchemaVersion = SchemaVersion
	ev.origin = ""
	if ev.RunID == "" {
		ev.RunID = s.m.RunID
	}
	if ev.SessionID == "" && s.session != "" {
		ev.SessionID, head = s.session, "" // the handle is older than the session
	}
	if ev.Sequence == math.MaxUint64 {
		return fmt.Errorf("agentevents: run %s has used up its sequence numbers", jsonwire.Brief(s.m.RunID)), nil
	}
	p := ops(ev.Payload)
	if p == nil {
		err := sealError(ev.Payload)
		err.RunID, err.AgentID, err.Sequence = ev.RunID, ev.AgentID, ev.Sequence
		return err, nil
	}
	if err := s.m.checkRun(ev); err != nil {
		err.RunID = s.m.RunID
		return err, nil
	}

	if ev.Time.IsZero() {
		ev.Time = s.now()
	} else {
		ev.Time = ev.Time.UTC().Round(0)
	}
	sub := subject{sound: head != "", bound: bound}
	s.m.resolve(&sub, ev, p)
	if done.number {
		sub.number(ev)
	}
	if done.returns {
		sub.bound = false // the agent acted when it called
		if a := sub.agent; s.m.atRest(a) || a != nil && a.Status.Terminal() {
			ev.Marks |= MarkLate
		}
	}
	if s.derives {
		if moved, refused, err := s.derive(ctx, ev, &sub, head, done); moved {
			return refused, err
		}
	}
	s.fill(ev, &sub)
	if refused := s.admit(ev, &sub); refused != nil {
		return refused, nil
	}
	var c cleaner
	if refused, err = s.clean(ctx, ev, &sub, head, &c, done); refused != nil {
		return refused, err
	}
	err = join(err, s.deliver(ctx, ev, &sub, head, &c, done))
	done.recorded = true
	return nil, err
}

// admit checks an event and asks Guard. It returns why the event is refused; what it is
// recorded in spite of is in sub.
func (s *runState) admit(ev *Event, sub *subject) error {
	e := s.e
	violation := s.m.check(ev, sub)
	if violation == nil && sub.kind.Role == RoleOpens && s.finishing.Load() {
		violation = s.m.checkTerminal(ev, sub)
	}
	if violation == nil && sub.mayBind() {
		violation = s.bind(ev, sub)
	}
	if e.opts.Guard != nil && (violation == nil || sub.kind.Kind == KindToolCalled) { // for Agent.Do
		forbidden, perr := guarded(e.opts.Guard, ev)
		if perr != nil {
			return fmt.Errorf("agentevents: EmitterOptions.Guard, run %s: %w", jsonwire.Brief(s.m.RunID), perr)
		}
		if forbidden != nil {
			violation = forbidden
		}
	}
	if violation == nil {
		return nil
	}
	if e.opts.Mode == ModeEnforce || violation.Rule == RulePayload || ev.writable() != nil {
		return violation
	}
	sub.violation = violation
	return nil
}

// clean redacts an event. Text that should be JSON becomes JSON on the way. The event
// may still be refused: a message, and one that is too long. err is of what streams held
// back, which is recorded first.
func (s *runState) clean(ctx *reentry.Call, ev *Event, sub *subject, head string, c *cleaner, done *outcome) (refused, err error) {
	e := s.e
	c.policy, c.kind = e.redact, sub.payload.kind()
	c.words = sub.violation != nil
	var st *stream
	var held []*stream
	if sub.kind.Role == RoleDelta && e.redact.actions[ClassContent] == ActionScan {
		if long := s.fitDelta(ev, sub, head); long != nil {
			return long, nil
		}
		if st, held = s.blocks().get(s.m, ev, sub, e.redact.scanner); held != nil {
			err = s.flush(ctx, held, ev.Time, done)
		}
		c.stream = st
	}
	clean, changed := c.payload(ev.Payload)
	if ev.extra != "" {
		ev.extra, _ = c.extras(ev.extra)
	}
	if changed {
		ev.Payload, sub.payload = clean, ops(clean)
	}
	if st != nil {
		st.note(ev, sub)
	}
	s.mark(ev, sub, c) // reasoning is cut last, and what is too long for a line, or half a secret could remain
	if long := s.fit(ev, sub, head, c.size); long != nil {
		return long, err
	}
	if violation := s.m.checkMessageID(ev); violation != nil {
		if e.opts.Mode == ModeEnforce {
			return violation, err
		}
		sub.violation = violation
	}
	if sub.kind.traits&endsBlocks != 0 && st == nil {
		if held := s.streams.take(s.m, ev, sub); held != nil {
			err = join(err, s.flush(ctx, held, ev.Time, done))
		}
	}
	return nil, err
}

// mark cuts the event's reasoning to what the policy allows, and marks what the
// redaction step has changed.
func (s *runState) mark(ev *Event, sub *subject, c *cleaner) {
	if sub.kind.traits&reasons != 0 {
		c.redacted = s.limitReasoning(ev, sub) || c.redacted
	}
	if c.redacted {
		ev.Marks |= MarkRedacted
	}
	if c.sanitized {
		ev.Marks |= MarkSanitized
	}
}

// flush records what streams hold back, each in a delta of its own with the given time;
// the zero time is now. Their blocks end.
func (s *runState) flush(ctx *reentry.Call, held []*stream, at time.Time, done *outcome) (err error) {
	for _, st := range held {
		c := s.e.redact.cleaner(st.last.Kind())
		ev := st.rest(&c, at)
		var sub subject
		s.m.resolve(&sub, &ev, ops(ev.Payload))
		if sub.agent != nil && ev.Step.OK {
			ev.Step = sub.agent.current() // it may have gone on
		}
		if err := s.m.check(&ev, &sub); err != nil && err.Rule == RuleWorkflowContext {
			ev.WorkflowID, ev.Phase = "", "" // a phase of the workflow began after the last delta
		}
		s.mark(&ev, &sub, &c)
		if pieceOf(&ev, &sub).text == "" || s.m.NextSequence >= math.MaxUint64-1 {
			continue
		}
		if at.IsZero() {
			ev.Time = s.now()
		}
		if long := s.cut(&ev, &sub); long != nil {
			done.reports = append(done.reports, long)
			continue
		}
		err = join(err, s.deliver(ctx, &ev, &sub, "", &c, done))
	}
	return err
}

// settle records what the streams of a closed run hold back, and tells the sinks that
// it is released. It does not wait for the run's lock: who has it settles the run when
// it lets go.
func (s *runState) settle(c *reentry.Call, done *outcome) error {
	if !s.mu.TryLock() {
		return nil
	}
	defer s.mu.Unlock()
	err := s.flush(c, s.streams.takeAll(), time.Time{}, done)
	return join(err, s.released(c, done))
}

// close records what the streams of a run hold back that emits no more.
func (s *runState) close(ctx context.Context) error {
	c := s.callFor(ctx)
	var done outcome
	err := s.settle(c, &done)
	err = s.finish(c, &Event{RunID: s.m.RunID}, err, &done)
	s.report(&done)
	return err
}

// deliver stamps, applies and delivers an event that the redaction step has seen.
func (s *runState) deliver(ctx *reentry.Call, ev *Event, sub *subject, head string, c *cleaner, done *outcome) (err error) {
	e := s.e
	// Stamp what only an accepted event gets, and apply.
	ev.Sequence = s.m.NextSequence // streams may have been flushed
	if ev.ID == "" && e.opts.NewID != nil {
		ev.ID = e.givenID()
	}
	if ev.ID == "" {
		ev.ID = s.ids.Next(ev.Time)
	}
	if c.failed != nil {
		done.reports = append(done.reports, fmt.Errorf("agentevents: redactor, run %s, sequence %d: %w", jsonwire.Brief(ev.RunID), ev.Sequence, c.failed))
	}
	if sub.violation != nil {
		sub.violation.EventID, sub.violation.Sequence = ev.ID, ev.Sequence
		done.violations = append(done.violations, sub.violation)
		ev.Marks |= MarkIllegal
	}
	if e.redact.CountTokens != nil {
		s.countReasoning(ev, sub)
	}
	s.apply(ev, sub)
	if s.resumes.run {
		s.resumes = resumes{run: sub.kind.Kind != KindRunResumed}
	}
	if s.refused != nil && sub.kind.Kind == KindAgentEnded {
		delete(s.refused.agents, ev.AgentID)
	}
	done.delivered, done.ended, done.lasting = true, s.m.TerminalKind != "" || s.fenced, done.lasting || !sub.kind.Droppable
	if err = s.hand(ctx, ev, sub, head, done, theTracer); err == nil && e.logs && !sub.kind.Droppable {
		s.kept = s.m.NextSequence
	}
	return err
}

// theTracer is the number of the tracer, which is asked before the first sink.
const theTracer = -1

// hand asks the tracer, encodes an event once and gives it to the sinks, from the n-th on.
// When one of them ends the goroutine, the others get the event on its way out. What a
// fenced run still holds back goes nowhere.
func (s *runState) hand(ctx *reentry.Call, ev *Event, sub *subject, head string, done *outcome, n int) (err error) {
	e := s.e
	if s.fenced {
		return nil
	}
	var called *sinkEntry // panics are contained: who is called and does not return ended the goroutine
	defer func() {
		if called == nil {
			return
		}
		err = e.failed(err, called, ev, done, turns.ErrGoexit)
		done.exited, done.lost = true, join(done.lost, err)
		err = s.hand(ctx, ev, sub, head, done, n+1)
		done.lost = join(done.lost, err)
	}()
	replayed, droppable := ev.Marks.Has(MarkReplayed), sub.kind.Droppable
	if n == theTracer {
		if e.tracer != nil && !e.tracer.skips(replayed, droppable) {
			called = e.tracer
			tc, terr := e.tracer.trace(ctx, ev)
			called = nil
			if terr != nil {
				err = e.failed(err, e.tracer, ev, done, terr)
			}
			fillText(&ev.TraceID, tc.TraceID)
			fillText(&ev.SpanID, tc.SpanID)
			fillText(&ev.ParentSpanID, tc.ParentSpanID)
		}
		n = 0
	}
	if n == 0 && e.lines && !(droppable && e.lastingLines) {
		s.line = ev.appendWith(s.line[:0], sub.payload, &s.times, head)
	}
	for ; n < len(e.sinks); n++ {
		k := e.sinks[n]
		if k.skips(replayed, droppable) {
			continue
		}
		called = k
		werr := k.write(ctx, ev, s.line)
		called = nil
		if werr != nil {
			err = e.failed(err, k, ev, done, werr)
		}
		if werr != nil && k.required && errors.Is(werr, ErrFenced) {
			s.fenced, done.ended = true, true
			s.end.closed.Store(true)
			return err
		}
	}
	return err
}

const maxKeptLine = 1 << 20

// apply brings the run to the state that the event describes.
func (s *runState) apply(ev *Event, sub *subject) {
	s.state.Lock()
	if s.session == "" && !sub.kind.Droppable {
		s.session = ev.SessionID // as in a snapshot
	}
	key := sub.key
	s.m.apply(ev, sub)
	s.state.Unlock()
	s.streams.rename(key, sub.key)
}

// now returns the time of an event that has none.
func (s *runState) now() time.Time {
	if s.e.opts.Clock != nil {
		return s.e.now().UTC().Truncate(time.Millisecond)
	}
	return s.clock.Now()
}

// limitReasoning cuts the event's reasoning to what the policy allows, and
// reports whether it did.
func (s *runState) limitReasoning(ev *Event, sub *subject) (cut bool) {
	ev.Payload, cut = s.e.redact.reasoning(ev.Payload, s.e.redact.verbosity(s.m.RunID), s.reasoningUsed(ev, sub))
	sub.payload = ops(ev.Payload)
	return cut
}

// reasoningUsed returns how much reasoning the event's block had before: in
// tokens with Policy.CountTokens, else in characters.
func (s *runState) reasoningUsed(ev *Event, sub *subject) int {
	p, ok := ev.Payload.(*AgentReasoningDelta)
	if !ok {
		return 0
	}
	if p.BlockID == "" && sub.moved {
		return 0
	}
	used := sub.agent.blockSize(p.BlockID)
	if used == 0 || s.e.redact.CountTokens == nil {
		return used
	}
	if tokens, ok := s.tokens[callKey{sub.key, p.BlockID}]; ok {
		return tokens
	}
	return used / 4 // of a resumed run
}

// countReasoning adds a delta to the tokens of its block, with CountTokens.
func (s *runState) countReasoning(ev *Event, sub *subject) {
	p, ok := ev.Payload.(*AgentReasoningDelta)
	if !ok || p.Verbosity != VerbositySummary {
		return
	}
	used := s.reasoningUsed(ev, sub)
	if s.tokens == nil || len(s.tokens) >= maxBlocks {
		s.tokens = map[callKey]int{}
	}
	s.tokens[callKey{sub.key, p.BlockID}] = used + s.e.redact.CountTokens(p.Delta)
}

func fillText(to *string, from string) {
	if *to == "" {
		*to = from
	}
}

// failed files an error of a sink: those of required ones are joined to err, and all wait
// for OnError.
func (e *Emitter) failed(err error, k *sinkEntry, ev *Event, done *outcome, cause error) error {
	se := &SinkError{Sink: k.name, RunID: ev.RunID, Sequence: ev.Sequence, Err: cause}
	if !k.required || e.opts.OnError != nil {
		done.reports = append(done.reports, se)
	}
	if k.required {
		return join(err, se)
	}
	return err
}

// join returns both errors as one, and one of them as it is.
func join(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Join(a, b)
}

// fill completes what the emitter knows better than its caller: the step, the
// causation of a return, the status a transition starts from, the totals of an
// end, why a command cannot be routed, the ids of a message. A payload is copied before it is changed.
func (s *runState) fill(ev *Event, sub *subject) {
	a := sub.agent
	switch p := ev.Payload.(type) {
	case *RunStarted:
		if l := s.m.named(); p.Lifecycle != l {
			out := *p
			out.Lifecycle = l
			ev.Payload, sub.payload = &out, &out
		}
	case *AgentStarted:
		if l := s.m.named(); p.Lifecycle != l {
			out := *p
			out.Lifecycle = l
			ev.Payload, sub.payload = &out, &out
		}
	case *AgentTransition:
		if p.From == "" {
			out := *p
			out.From = StatusThinking
			if a != nil {
				out.From = a.Status
			}
			ev.Payload, sub.payload = &out, &out
		}
	case *AgentEnded:
		refused := s.refused.of(ev.AgentID)
		if !p.Totals.OK || p.Refused == 0 && refused > 0 {
			out := *p
			if !p.Totals.OK {
				out.Totals = Some(Totals{})
				if a != nil {
					out.Totals.V = a.Counted
				}
			}
			if p.Refused == 0 {
				out.Refused = refused
			}
			ev.Payload, sub.payload = &out, &out
		}
	case *RunCompleted:
		if p.Refused == 0 && s.refused != nil {
			out := *p
			out.Refused = s.refused.all
			ev.Payload, sub.payload = &out, &out
		}
	case *RunFailed:
		if p.Refused == 0 && s.refused != nil {
			out := *p
			out.Refused = s.refused.all
			ev.Payload, sub.payload = &out, &out
		}
	case *RunCancelled:
		if p.Refused == 0 && s.refused != nil {
			out := *p
			out.Refused = s.refused.all
			ev.Payload, sub.payload = &out, &out
		}
	case *ToolReturned:
		if ev.CausationID == "" && !p.OneEvent {
			if call := s.m.calls.Find(callKey{sub.key, p.CallID}); call != nil {
				ev.CausationID = call.event
			}
		}
	case *ModelReturned:
		if ev.CausationID == "" && !p.OneEvent {
			if call := s.m.modelCalls.Find(callKey{sub.key, p.ModelCallID}); call != nil {
				ev.CausationID = call.EventID
			}
		}
	case *CommandReceived:
		if reason := p.Command.misrouted(); reason != "" && p.Rejected == "" {
			out := *p
			out.Rejected = reason
			ev.Payload, sub.payload = &out, &out
		}
	case *MessageCreated:
		if m := &p.Message; m.MessageID == "" || m.From == "" || m.TS == 0 {
			out := *p
			if m.MessageID == "" {
				out.Message.MessageID = s.e.newID()
			}
			fillText(&out.Message.From, ev.AgentID)
			if m.TS == 0 {
				out.Message.TS = ev.Time.UnixMilli()
			}
			ev.Payload, sub.payload = &out, &out
		}
	}
	if ev.AgentID != "" && !ev.Step.OK && !ev.Marks.Has(MarkLate) {
		s.fillStep(ev, sub)
	}
}

// fillStep gives an event of an agent its current step: starts, ends and
// audits have none, and what comes before the start is in no step.
func (s *runState) fillStep(ev *Event, sub *subject) {
	a := sub.agent
	if sub.kind.traits&stepless != 0 {
		return
	}
	step := 0
	if p, ok := ev.Payload.(*AgentTransition); ok {
		if p.To == StatusThinking && a != nil && a.Step.OK {
			step = 1 // a new step begins when the agent re-enters thinking
		}
	} else if !sub.kind.ByAgent && (a == nil || !a.Started) {
		return
	}
	if a != nil {
		if a.Resume.renew {
			step = 1
		}
		step = max(plus(a.Step.V, step), a.Resume.ahead.V)
	}
	ev.Step = Some(step)
}
