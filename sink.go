package agentevents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A Sink receives the events that an emitter accepted.
//
// WriteEvent is called with the events of one run in sequence order, one at a
// time; events of different runs may arrive concurrently. The event was
// checked and redacted. It may be kept; its payload must not be changed.
//
// The context carries values only: it is never cancelled, because the event
// that explains a cancellation must not be lost to it. A sink that fails
// returns an error, which does not un-happen the event: other sinks still get
// it. A slow sink slows its run; put it behind [Buffered].
//
// A sink must not emit into the run it is called for: that would deadlock.
// Sinks that emit go behind [Buffered] too.
//
// A sink may also implement [LineSink], [Flusher], [io.Closer], [Committer] or
// [Tracer]. They are found once, when the emitter is made.
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

// A Flusher hands on what it has buffered. Flush honours the context.
type Flusher interface {
	Flush(ctx context.Context) error
}

// A Committer makes events durable. Commit returns when everything written
// before the call is. It is called after the run's lock is released, so that
// emitters can share one commit; Emit returns after it.
type Committer interface {
	Commit(ctx context.Context) error
}

// A Tracer gives an event its place in a trace. It is called with the accepted,
// redacted event before the sinks are; fields of the result that the event
// does not have yet are filled in. An emitter has at most one.
type Tracer interface {
	Trace(ctx context.Context, ev Event) TraceContext
}

// TraceContext is the place of an event in a trace.
type TraceContext struct {
	TraceID, SpanID, ParentSpanID string // W3C trace and span ids in lower-case hex; empty means none
}

// SinkFunc is a function as a [Sink].
type SinkFunc func(ctx context.Context, ev Event) error

// WriteEvent calls f.
func (f SinkFunc) WriteEvent(ctx context.Context, ev Event) error { return f(ctx, ev) }

// BestEffort returns s as a sink whose errors do not come back from Emit. They
// go to EmitterOptions.OnError, or without one into the error of Flush and Close.
// Other sinks are required: their errors come back as a [*SinkError].
func BestEffort(s Sink) Sink { return bestEffort{s} }

type bestEffort struct{ Sink }

// Live returns s as a sink that gets no events marked [MarkReplayed]: what
// reaches out of the process, such as a webhook or a trace, should not do so
// again when a log is emitted once more.
func Live(s Sink) Sink { return live{s} }

type live struct{ Sink }

func (l live) WriteEvent(ctx context.Context, ev Event) error {
	if ev.Marks.Has(MarkReplayed) {
		return nil
	}
	return l.Sink.WriteEvent(ctx, ev)
}

// A sinkEntry is a sink with its optional interfaces.
type sinkEntry struct {
	sink      Sink
	name      string
	required  bool
	live      bool // gets no replayed events
	line      LineSink
	writer    *Writer // the same, where no event need be copied for it
	flusher   Flusher
	closer    io.Closer
	committer Committer
	tracer    Tracer

	closing  sync.Once     // the emitter has called Close
	closed   chan struct{} // Close returned; closeErr is set
	closeErr error
	told     atomic.Bool // closeErr was returned
}

func newSinkEntry(s Sink) *sinkEntry {
	e := &sinkEntry{required: true, closed: make(chan struct{})}
unwrap:
	for {
		switch wrapped := s.(type) {
		case bestEffort:
			s, e.required = wrapped.Sink, false
		case live:
			s, e.live = wrapped.Sink, true
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
	return e
}

// write delivers one event and contains panics.
func (k *sinkEntry) write(ctx context.Context, ev *Event, line []byte) (err error) {
	defer contain(&err)
	if k.writer != nil {
		return k.writer.writeLine(line)
	}
	if k.line != nil {
		return k.line.WriteLine(ctx, *ev, line)
	}
	return k.sink.WriteEvent(ctx, *ev)
}

func (k *sinkEntry) commit(ctx context.Context) (err error) {
	defer contain(&err)
	return k.committer.Commit(ctx)
}

func (k *sinkEntry) trace(ctx context.Context, ev *Event) (tc TraceContext, err error) {
	defer contain(&err)
	return k.tracer.Trace(ctx, *ev), nil
}

func (k *sinkEntry) flush(ctx context.Context) (err error) {
	defer contain(&err)
	return k.flusher.Flush(ctx)
}

func (k *sinkEntry) close() (err error) {
	defer contain(&err)
	return k.closer.Close()
}

// closeOnce closes the sink, or waits for the call that does, until the context
// ends. The error of Close is returned once.
func (k *sinkEntry) closeOnce(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	k.closing.Do(func() {
		go func() {
			defer close(k.closed)
			k.closeErr = k.close()
		}()
	})
	select {
	case <-k.closed:
	case <-ctx.Done():
		return ctx.Err()
	}
	if k.told.CompareAndSwap(false, true) {
		return k.closeErr
	}
	return nil
}

// contain turns a panic into an error.
func contain(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
}

// within runs f and returns its error, or the context's when that ends first;
// then f goes on by itself until it returns.
func within(ctx context.Context, f func() error) error {
	if ctx.Done() == nil {
		return f()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Overflow says what [Buffered] does when its buffer is full.
type Overflow uint8

// The policies.
const (
	OverflowBlock      Overflow = iota // wait for room: nothing is lost, the run may be slowed
	OverflowDropNewest                 // lose the event that does not fit
	OverflowDropOldest                 // lose the event that waited longest
)

// A BufferedSink delivers to another sink from a goroutine of its own.
type BufferedSink struct {
	entry  *sinkEntry
	policy Overflow

	mu                sync.Mutex
	changed           *sync.Cond // queue, closing, busy or written changed
	queue             []buffered // ring
	head, n           int
	closing           bool
	busy              bool
	dropped, reported uint64
	errs              []error // at most maxBufferedErrors, since the last Flush
	failed            uint64
	closed            bool
	done              chan struct{}
}

type buffered struct {
	ctx context.Context
	ev  Event
}

const maxBufferedErrors = 16

// ErrDropped is what [BufferedSink.Flush] and Close report, with the number,
// when events were dropped since the last report.
var ErrDropped = errors.New("agentevents: events were dropped")

// Buffered returns a sink that queues up to size events (at least 1) and
// delivers them to s, in order, from one goroutine that ends with Close.
//
// Errors of s come back from Flush and Close. What was dropped is counted:
// see [BufferedSink.Dropped]; Flush and Close report it as [ErrDropped].
func Buffered(s Sink, size int, policy Overflow) *BufferedSink {
	if size < 1 {
		size = 1
	}
	b := &BufferedSink{entry: newSinkEntry(s), policy: policy, queue: make([]buffered, size), done: make(chan struct{})}
	b.changed = sync.NewCond(&b.mu)
	go b.deliver()
	return b
}

// WriteEvent queues the event. After Close it returns [ErrClosed].
func (b *BufferedSink) WriteEvent(ctx context.Context, ev Event) error {
	if b.entry.live && ev.Marks.Has(MarkReplayed) {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.n == len(b.queue) && !b.closing {
		switch b.policy {
		case OverflowDropNewest:
			b.dropped++
			return nil
		case OverflowDropOldest:
			b.queue[b.head] = buffered{}
			b.head = (b.head + 1) % len(b.queue)
			b.n--
			b.dropped++
		default:
			b.changed.Wait()
		}
	}
	if b.closing {
		return ErrClosed
	}
	b.queue[(b.head+b.n)%len(b.queue)] = buffered{ctx, ev}
	b.n++
	b.changed.Broadcast()
	return nil
}

// deliver is the sink's goroutine.
func (b *BufferedSink) deliver() {
	defer close(b.done)
	var line []byte
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		for b.n == 0 && !b.closing {
			b.changed.Wait()
		}
		if b.n == 0 {
			return
		}
		item := b.queue[b.head]
		b.queue[b.head] = buffered{}
		b.head = (b.head + 1) % len(b.queue)
		b.n--
		b.busy = true
		b.changed.Broadcast()
		b.mu.Unlock()

		var err error
		if b.entry.line != nil {
			line, err = item.ev.AppendJSON(line[:0])
		}
		if err == nil {
			err = b.entry.write(item.ctx, &item.ev, line)
		}

		b.mu.Lock()
		b.busy = false
		if err != nil {
			b.failed++
			if len(b.errs) < maxBufferedErrors {
				b.errs = append(b.errs, &SinkError{Sink: b.entry.name, RunID: item.ev.RunID, Sequence: item.ev.Sequence, Err: err})
			}
		}
		b.changed.Broadcast()
	}
}

// Dropped returns how many events were dropped so far.
func (b *BufferedSink) Dropped() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}

// Flush waits until the queue is empty or the context ends, flushes the sink
// behind it, and reports what failed since the last report.
func (b *BufferedSink) Flush(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})
	defer stop()
	b.mu.Lock()
	for (b.n > 0 || b.busy) && ctx.Err() == nil {
		b.changed.Wait()
	}
	waiting := b.n
	if b.busy {
		waiting++
	}
	err := b.report()
	b.mu.Unlock()
	if waiting > 0 {
		return errors.Join(err, fmt.Errorf("agentevents: %d events are still waiting for %s: %w", waiting, b.entry.name, ctx.Err()))
	}
	if b.entry.flusher != nil {
		err = errors.Join(err, b.entry.flush(ctx))
	}
	return err
}

// report returns the errors since the last report. b.mu is held.
func (b *BufferedSink) report() error {
	errs := b.errs
	if more := b.failed - uint64(len(errs)); more > 0 {
		errs = append(errs, fmt.Errorf("agentevents: %d more errors of %s", more, b.entry.name))
	}
	if b.dropped > b.reported {
		errs = append(errs, fmt.Errorf("%w: %d by the buffer of %s", ErrDropped, b.dropped-b.reported, b.entry.name))
		b.reported = b.dropped
	}
	b.errs, b.failed = nil, 0
	return errors.Join(errs...)
}

// Close delivers what is queued, ends the goroutine and closes the sink behind
// it. It waits for that sink; give Flush a deadline first to bound the wait.
func (b *BufferedSink) Close() error {
	b.mu.Lock()
	b.closing = true
	b.changed.Broadcast()
	b.mu.Unlock()
	<-b.done
	b.mu.Lock()
	err := b.report()
	closed := b.closed
	b.closed = true
	b.mu.Unlock()
	if b.entry.closer != nil && !closed {
		err = errors.Join(err, b.entry.close())
	}
	return err
}
