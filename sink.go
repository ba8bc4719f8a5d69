package agentevents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/turns"
)

// A Sink receives the events that an emitter accepted.
//
// WriteEvent is called with the events of one run in sequence order, one at a
// time; events of different runs may arrive concurrently. The event was
// checked and redacted. It may be kept; its payload must not be changed.
//
// The context has the values of the emitter's context. It is never cancelled, because the event
// that explains a cancellation must not be lost to it. A sink that fails returns an error, which
// does not un-happen the event: other sinks still get it. A slow sink slows its run; wrap it in
// [Buffered]. An error that wraps [ErrFenced] closes the run.
//
// A sink that ends the goroutine (runtime.Goexit, as FailNow of a test does) fails as well:
// other sinks still get the event. As Emit does not return, its error goes to
// EmitterOptions.OnError, or without one into the error of Flush and Close.
//
// A sink may emit into other runs, and a sink in Buffered also into its own, if it passes its
// context on. With that context, a call that would wait for the sink itself returns [ErrReentrant]:
// Emit into the run it is called for or into one whose sink waits for this one, and Flush and Close
// of its emitter. With another context such a call hangs. Emitter.Run, Emitter.Resume and Run.Close
// wait for nothing. The context may be kept, but means the same after the call: what goes on then
// and emits into the run needs another one.
//
// A sink may also implement [LineSink], [Flusher], [io.Closer], [Committer],
// [Tracer], [Resumer], [Releaser] or [Checker]. They are found once, when the emitter is made.
//
// SinkTest of package eventtest tests the duties of a sink.
type Sink interface {
	WriteEvent(ctx context.Context, ev Event) error
}

// A LineSink takes the event's line as well: the encoding that all such sinks
// share. WriteLine is called in place of WriteEvent. line has no newline and
// is valid only during the call.
type LineSink interface {
	Sink
	WriteLine(ctx context.Context, ev Event, line []byte) error
}

// A Flusher writes out its buffer. Flush honours the context.
type Flusher interface {
	Flush(ctx context.Context) error
}

// A Committer makes events durable. Commit returns when everything written
// before the call is. It is called after the run's lock is released, so that
// emitters can share one commit; Emit returns after it.
type Committer interface {
	Commit(ctx context.Context) error
}

// A Tracer gives an event its place in a trace. It is one of EmitterOptions.Sinks; its
// WriteEvent may do nothing. Its trace method is called with the accepted, redacted event
// before the sinks are. Fields of the result that the event does not have yet are filled in.
// An emitter has at most one.
type Tracer interface {
	Trace(ctx context.Context, ev Event) TraceContext
}

// TraceContext is the place of an event in a trace.
type TraceContext struct {
	TraceID, SpanID, ParentSpanID string // W3C trace and span ids in lower-case hex; empty means none
}

// A Resumer is told that a run goes on from a snapshot: a sink that folds can begin with it.
// ResumeRun is called by [Emitter.Resume], before the run's next event. The snapshot belongs to the
// sink. An error is a [*SinkError] without a run and closes the run again, unless the sink is in
// [BestEffort] or [Buffered].
//
// The context is one of WriteEvent's kind, without values.
type Resumer interface {
	ResumeRun(ctx context.Context, snapshot *RunSnapshot) error
}

// A Releaser is told once that the emitter has released a run, so that the sink can free its state
// for the run. ReleaseRun is called in the order of the run's events and never together with one:
// after the terminal event and the events of EmitterOptions.Follow, or when the run or its emitter
// is closed.
//
// After a terminal event, remaining handles may still record the events that may follow an end
// (rule terminal-last), such as session.completed. These events come after ReleaseRun, and nothing
// tells when the last one has come: a sink that shows a run to people waits a little longer, as
// package live does. After [Run.Close] nothing comes.
//
// An error is a [*SinkError] without a run.
type Releaser interface {
	ReleaseRun(ctx context.Context, runID string) error
}

// A Checker reports whether it can take events. [NewEmitter] and [Buffered] refuse one whose
// CheckSink returns an error: a sink that is nil, or that a program forgot to open, is found before
// the first event.
type Checker interface {
	CheckSink() error
}

// ErrReentrant means that a sink, with the context it was given, called
// something that waits for that sink: an event of the run it is called for,
// Flush or Close of the emitter or buffer it belongs to, or an event of a run
// whose sink is waiting for this one. Nothing was done.
var ErrReentrant = errors.New("agentevents: called from a sink that the call would wait for")

// orBackground returns ctx, or context.Background if ctx is nil.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// SinkFunc is a function as a [Sink].
type SinkFunc func(ctx context.Context, ev Event) error

// WriteEvent calls f.
func (f SinkFunc) WriteEvent(ctx context.Context, ev Event) error { return f(ctx, ev) }

// BestEffort returns s as a sink whose errors do not come back from Emit. They
// go to EmitterOptions.OnError, or without one into the error of Flush and Close. The errors of a
// [Buffered] sink come back from Flush and Close in any case. A sink that hangs stops nobody: see
// [Timeout]. Other sinks are required: their errors come back as a [*SinkError].
func BestEffort(s Sink) Sink { return bestEffort{s} }

type bestEffort struct{ Sink }

// SkipReplayed returns s as a sink that gets no events marked [MarkReplayed]: a sink with effects
// outside the process, such as a webhook or a trace, should not repeat them when a log is emitted
// once more.
func SkipReplayed(s Sink) Sink { return skipReplayed{s} }

type skipReplayed struct{ Sink }

func (l skipReplayed) WriteEvent(ctx context.Context, ev Event) error {
	if ev.Marks.Has(MarkReplayed) {
		return nil
	}
	return l.Sink.WriteEvent(ctx, ev)
}

// WithoutDeltas returns s as a sink that gets no droppable events ([KindInfo]): no
// deltas, only the whole blocks that end them. So a log can be small while a page that
// is a sink beside it shows every token.
//
// The omitted events leave gaps in the sequence. The snapshot of a finished run is the same without
// them. A crash loses the blocks that were under way. A run that is resumed from such a log also
// uses the sequences of the last deltas a second time, if no lasting event came after them: readers
// of the deltas must begin anew with a snapshot, as with the streams of package live.
func WithoutDeltas(s Sink) Sink { return withoutDeltas{s} }

type withoutDeltas struct{ Sink }

func (w withoutDeltas) WriteEvent(ctx context.Context, ev Event) error {
	if ev.droppable() {
		return nil
	}
	return w.Sink.WriteEvent(ctx, ev)
}

// droppable reports whether the event's kind is.
func (e *Event) droppable() bool {
	p := ops(e.Payload)
	return p != nil && p.index() >= 0 && catalog[p.index()].Droppable
}

// A sinkEntry is a sink with its optional interfaces.
type sinkEntry struct {
	sink      Sink
	name      string
	required  bool
	live      bool // gets no replayed events
	lasting   bool // gets no droppable events
	line      LineSink
	writer    *Writer // the same, where no event need be copied for it
	flusher   Flusher
	closer    io.Closer
	committer Committer
	// commitsLasting means that Emit waits for commits of lasting events only.
	commitsLasting bool
	tracer         Tracer
	resumer        Resumer
	releaser       Releaser
	buffer         *BufferedSink

	limit  time.Duration // of a call, with Timeout and BestEffort
	aside  aside
	report func(error) // of the emitter; nil in a buffer

	turns *turns.Turns // of Flush and Close
}

func newSinkEntry(s Sink) *sinkEntry {
	e := &sinkEntry{required: true, turns: turns.New()}
unwrap:
	for {
		switch wrapped := s.(type) {
		case bestEffort:
			s, e.required = wrapped.Sink, false
			e.limit = cmp.Or(e.limit, patience)
		case timeout:
			s, e.limit = wrapped.Sink, wrapped.limit
		case skipReplayed:
			s, e.live = wrapped.Sink, true
		case withoutDeltas:
			s, e.lasting = wrapped.Sink, true
		default:
			break unwrap
		}
	}
	e.sink = s
	e.name = fmt.Sprintf("%T", s)
	e.line, _ = s.(LineSink)
	e.writer, _ = s.(*Writer)
	e.flusher, _ = s.(Flusher)
	e.closer, _ = s.(io.Closer)
	e.committer, _ = s.(Committer)
	e.tracer, _ = s.(Tracer)
	e.resumer, _ = s.(Resumer)
	e.releaser, _ = s.(Releaser)
	if e.buffer, _ = s.(*BufferedSink); e.buffer.ok() {
		behind := e.buffer.entry
		e.tracer = behind.tracer
		e.live, e.lasting = e.live || behind.live, e.lasting || behind.lasting
		if behind.resumer == nil {
			e.resumer = nil // a snapshot need not be copied
		}
		if behind.committer == nil || !e.buffer.waits() {
			e.committer = nil // no event waits
		}
		e.commitsLasting = e.buffer.policy == OverflowDropDeltas
	}
	e.commitsLasting = e.commitsLasting || e.lasting
	return e
}

// check returns why the sink cannot be one of an emitter's.
func (k *sinkEntry) check() error {
	if f, ok := k.sink.(SinkFunc); k.sink == nil || ok && f == nil {
		return errors.New("the sink is nil")
	}
	if w, ok := k.sink.(*Writer); ok && !w.ok() {
		return w.unusable()
	}
	if b, ok := k.sink.(*BufferedSink); ok {
		if !b.ok() {
			return ErrZeroValue
		}
		return b.bad
	}
	if c, ok := k.sink.(Checker); ok {
		return c.CheckSink()
	}
	return nil
}

// skips reports whether the sink does not get an event.
func (k *sinkEntry) skips(replayed, droppable bool) bool {
	return replayed && k.live || droppable && k.lasting
}

// write delivers one event and contains panics.
func (k *sinkEntry) write(ctx context.Context, ev *Event, line []byte) error {
	switch {
	case k.limit > 0 && k.buffer == nil:
		return k.within(ctx, ev, line)
	case k.writer != nil:
		return k.writer.writeLine(line) // contains them itself
	case k.buffer != nil:
		return k.buffer.put(ctx, *ev) // Emit waits for room when it holds no lock
	}
	return k.deliver(ctx, ev, line)
}

func (k *sinkEntry) deliver(ctx context.Context, ev *Event, line []byte) (err error) {
	defer contain(&err)
	if k.line != nil {
		return k.line.WriteLine(ctx, *ev, line)
	}
	return k.sink.WriteEvent(ctx, *ev)
}

// commit commits the written events, for the emitter of the event with the id.
func (k *sinkEntry) commit(ctx context.Context, id string) (err error) {
	if k.buffer != nil {
		return k.buffer.commit(ctx, id)
	}
	defer contain(&err)
	return k.committer.Commit(ctx)
}

func (k *sinkEntry) trace(ctx context.Context, ev *Event) (tc TraceContext, err error) {
	defer contain(&err)
	return k.tracer.Trace(ctx, *ev), nil
}

func (k *sinkEntry) resumeRun(ctx context.Context, snapshot *RunSnapshot) error {
	return tell("ResumeRun", snapshot.RunID, func() error { return k.resumer.ResumeRun(ctx, snapshot) })
}

func (k *sinkEntry) releaseRun(ctx context.Context, runID string) error {
	return tell("ReleaseRun", runID, func() error { return k.releaser.ReleaseRun(ctx, runID) })
}

// tell calls f, which tells a sink of a run, and contains panics.
func tell(what, runID string, f func() error) error {
	err := func() (err error) {
		defer contain(&err)
		return f()
	}()
	if err != nil {
		return fmt.Errorf("%s of run %s: %w", what, jsonwire.Brief(runID), err)
	}
	return nil
}

func (k *sinkEntry) flush(ctx context.Context) (err error) {
	defer contain(&err)
	return k.flusher.Flush(ctx)
}

func (k *sinkEntry) close() (err error) {
	defer contain(&err)
	return k.closer.Close()
}

// flushWithin flushes the sink, unless it is closed or hangs. See [turns.Turns].
func (k *sinkEntry) flushWithin(ctx context.Context) (finished bool, err error) {
	if err := k.waitAside(ctx); err != nil {
		return false, err
	}
	if k.flusher == nil {
		return true, nil
	}
	return k.turns.Next(ctx, "Flush", k.flush)
}

// closeWithin closes the sink, unless it is closed.
func (k *sinkEntry) closeWithin(ctx context.Context) error {
	switch {
	case k.buffer.ok():
		return k.buffer.close(ctx)
	case k.closer == nil:
		return nil
	}
	_, err := k.turns.Last(ctx, "Close", func(context.Context) error { return k.close() })
	return err
}

// contain turns a panic into an error.
func contain(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
}
