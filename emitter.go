package agentevents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/firsterrs"
	"github.com/agentevents/agentevents/internal/option"
	"github.com/agentevents/agentevents/internal/reentry"
	"github.com/agentevents/agentevents/internal/turns"
	"github.com/google/uuid"
)

// Mode selects how an emitter treats events that break a rule.
type Mode uint8

// The modes.
const (
	// ModeEnforce refuses them: Emit returns a [*RuleError] and nothing was
	// recorded. The default.
	ModeEnforce Mode = iota
	// ModeObserve records them, marked [MarkIllegal], and reports the violation to
	// EmitterOptions.OnViolation; Emit returns nil. It is for logs that must not lack an event, and
	// for captures of runs that nobody controls. An event that no line can carry is refused in this
	// mode too.
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
// [LifecycleDerived], enforcing, redacting by the default policy, without sinks.
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
	// Lifecycle is the table of legal status transitions; default [LifecycleDerived].
	Lifecycle Lifecycle
	// Mode selects the treatment of illegal events; default [ModeEnforce].
	Mode Mode
	// Redaction is the policy of the redaction step; nil means the default policy (see [Policy]),
	// &Policy{Off: true} turns the step off.
	Redaction *Policy
	// Clock tells the time; nil means time.Now. It may be called concurrently,
	// and with the lock of a run held: it must not emit.
	Clock func() time.Time
	// NewID mints ids of events, runs, calls and messages; nil means UUIDv7, and so
	// does an id that is empty or no UTF-8. It is called as Clock is.
	NewID func() string
	// OnError is told every error of a sink, of the Redactor and of Follow, also those of required
	// sinks, which come back from Emit as well. It is called after the event, by the emitting
	// goroutine, and may emit and close. Close does not wait for it. Nil keeps a few of the errors
	// that Emit does not return, for Flush and Close, and logs the first one of each run to
	// slog.Default. A function that does nothing silences them.
	OnError func(error)
	// OnViolation is told, likewise, every event that breaks a rule: one that was refused, be it of
	// Follow, and one that was recorded in spite of it. The field Refused tells the two apart. Emit
	// returns a refusal as well. Nil logs the first one of each run to slog.Default; the fold
	// reports those that were recorded. A function that does nothing silences them.
	OnViolation func(*RuleError)
	// Guard is a further rule. It is asked about every event that keeps the library's rules, and
	// about tool calls that do not, since the tool may run nevertheless (see [Agent.Do]); before
	// anything is redacted or recorded. Nil is its consent. The event's Sequence is the next one;
	// it is higher in the log if held-back text of a block is recorded first (see [Policy]). It is
	// called with the lock of the run held and must not emit; Emit returns a panic of it as an
	// error, and nothing was recorded. Nil means that there is no further rule.
	Guard func(Event) *RuleError
	// Follow is told every event that was recorded, and returns what must follow it at once:
	// nothing of the run comes in between, and their CausationID is its ID unless they name
	// another. They are checked like all events, may be of any agent, and are not followed
	// themselves; a refused one goes to OnError too. It is called with the lock of the run held and
	// must not emit. It is not asked about events marked [MarkReplayed], nor about held-back text
	// of a block, nor about the transitions of [LifecycleDerived]. Nil means that nothing follows.
	Follow func(Event) []Event
	// MaxRuns bounds the runs that are open at the same time; 0 means no
	// bound. [Emitter.Run] refuses one more with [ErrTooManyRuns].
	MaxRuns int `least:"0"`
	// MaxLine is the length in bytes of the longest line, at least 1,024; 0 means [DefaultMaxLine].
	// Readers of the log need at least this value as ReaderOptions.MaxLine. The longest content of
	// an event whose line would be longer is cut after redaction, and the event is marked
	// [MarkSanitized]. A text keeps its beginning and ends with
	//
	//	[TRUNCATED:17826152 bytes, sha256 6f1e…]
	//
	// and JSON, an extra member too, becomes an object with the beginning of its text:
	//
	//	{"truncated":{"bytes":17826152,"sha256":"6f1e…","head":"{\"a\":[1,2"}}
	//
	// Length and hash describe the redacted text. An event that is too long without its content is
	// refused in every mode (rule line-length). Room is kept for later additions to a line: a place
	// in a trace, all marks, the highest sequence.
	MaxLine int `least:"1024"`
}

// check refuses values that make no sense: they must not pass for the default.
func (o *EmitterOptions) check() error {
	const name = "EmitterOptions"
	switch {
	case o.Lifecycle != "" && !o.Lifecycle.known():
		return option.NoConstant(name+".Lifecycle", string(o.Lifecycle))
	case o.Mode >= modes:
		return option.NoConstant(name+".Mode", int(o.Mode))
	}
	if err := option.Check(name, o); err != nil {
		return err
	}
	return o.Redaction.check(name + ".Redaction")
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
	deltas       bool       // a required log that does not implement Resumer gets droppable events
	tracer       *sinkEntry // or nil
	commit       []*sinkEntry
	buffers      []*BufferedSink
	watching     atomic.Bool // see look

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

// A release is the memory of a released run.
type release struct {
	number int // of the release
	end    *ending
}

// An ending is shared by a run and its release.
type ending struct {
	closed  atomic.Bool // refuses the events of handles that are left
	mu      sync.Mutex  // held while an event is recorded; guards the rest
	settled bool        // the held-back text is recorded, and the sinks know of the release
	gone    bool        // the run goes on with another ending, which gives the sequences
	kept    uint64      // sequence after the last event that a log has

	// late is the run if it has streams though it has ended: it takes late events.
	late atomic.Pointer[runState]
}

// NewEmitter returns an emitter. It fails when a sink cannot be used, when more than one is a
// [Tracer], and with an [*OptionError] when an option makes no sense.
func NewEmitter(o EmitterOptions) (*Emitter, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.MaxLine = cmp.Or(o.MaxLine, DefaultMaxLine)
	e := &Emitter{
		opts:     o,
		redact:   newRedaction(o.Redaction),
		runs:     map[string]*runState{},
		released: map[string]release{},
		idle:     make(chan struct{}, 1),
	}
	e.opts.Lifecycle = cmp.Or(o.Lifecycle, LifecycleDerived)
	for i, s := range o.Sinks {
		k := newSinkEntry(s)
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("agentevents: EmitterOptions.Sinks[%d]: %w", i, err)
		}
		k.report = func(err error) { e.tellSink(nil, err) }
		e.sinks = append(e.sinks, k)
	}
	e.lastingLines = true
	for _, k := range e.sinks {
		e.lines = e.lines || k.line != nil
		e.deltas = e.deltas || k.required && !k.lasting && k.resumer == nil && (k.line != nil || k.buffer != nil)
		e.lastingLines = e.lastingLines && (k.line == nil || k.lasting)
		if k.committer != nil {
			e.commit = append(e.commit, k)
		}
		if k.buffer != nil {
			e.buffers = append(e.buffers, k.buffer)
		}
		if k.tracer != nil {
			if e.tracer != nil {
				return nil, fmt.Errorf("agentevents: EmitterOptions.Sinks: %s and %s are both tracers: an emitter has one at most", e.tracer.name, k.name)
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

// Flush makes every sink write its buffer, in order, and returns their errors, each as a
// [*SinkError].
//
// A sink has time until the context ends. One whose turn comes after that has a second, so that a
// cancelled context loses no buffered event. The error names the sinks that did not finish; they go
// on by themselves.
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

// Close refuses new events, waits for those being emitted, records the text that the redaction step
// holds back of open blocks (see [Policy]), flushes all sinks and closes all sinks. All of this has
// time until the context ends. A step that begins later has one second for each sink, so that a
// cancelled context loses no buffered event.
//
// The error names the steps that did not finish; then Close may be called again. Sinks are not
// closed while an event is still being written to them, nor while they are flushed.
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
		b.retry.Hurry()
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

// settle records the text that the streams of all runs hold back.
func (e *Emitter) settle(ctx context.Context) (errs []error) {
	for _, s := range append(e.openRuns(), e.lateRuns()...) {
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
