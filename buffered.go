package agentevents

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/agentevents/agentevents/internal/firsterrs"
	"github.com/agentevents/agentevents/internal/reentry"
	"github.com/agentevents/agentevents/internal/turns"
)

// Overflow says what [Buffered] does when its buffer is full.
type Overflow uint8

// The policies.
const (
	OverflowBlock      Overflow = iota // wait for room: nothing is lost, the run may be slowed
	OverflowDropNewest                 // lose the event that does not fit
	OverflowDropOldest                 // lose the event that waited longest

	overflows = iota
)

// A BufferedSink delivers to another sink from a goroutine of its own.
type BufferedSink struct {
	holder reentry.Holder // the goroutine's, while it delivers

	entry  *sinkEntry
	policy Overflow
	size   int
	bad    error // why no event can be taken, from the start

	mu                sync.Mutex
	changed           *sync.Cond // anything below changed
	queue             []buffered // ring; grows up to size
	head, n           int
	left              uint64 // events that left the queue: the number of the one at head
	busy              bool   // an event is being delivered
	current           uint64 // its number
	closing           bool
	ended             error // why the goroutine ended before Close
	dropped, reported uint64
	errs              firsterrs.List // since the last report
	closed            bool
	done              chan struct{} // closed by the goroutine when it ends
}

// A buffered item is an event, or what the sink is told of a run.
type buffered struct {
	ctx  context.Context
	ev   Event
	tell func(context.Context) error
}

const maxBufferedErrors = 16

// ErrDropped is what [BufferedSink.Flush] and Close report, with the number,
// when events were dropped since the last report.
var ErrDropped = errors.New("agentevents: events were dropped")

// Buffered returns a sink that queues up to size events (at least 1) and
// delivers them to s, in order, from one goroutine that ends with Close.
//
// With [OverflowBlock] Emit queues its event, lets other events of the run go
// on, and waits for room before it returns. So the queue may hold one event
// more for every goroutine that is emitting, and s may emit into any run: with
// the context it is given, or it could wait for the room that it makes.
//
// Errors of s come back from Flush and Close. What was dropped is counted:
// see [BufferedSink.Dropped]; Flush and Close report it as [ErrDropped]. A sink
// that ends the goroutine gets no more events: what is queued counts as
// dropped, and WriteEvent returns an error.
//
// A [Resumer] or [Releaser] behind the buffer is told in order; that is never dropped.
// A [Tracer] behind the buffer is asked at once, while it may be receiving
// earlier events. A [Committer] behind it is refused by [NewEmitter]: Emit
// returns before the event gets there. So are a nil sink and an unknown policy,
// for which WriteEvent returns an error too.
func Buffered(s Sink, size int, policy Overflow) *BufferedSink {
	b := &BufferedSink{entry: newSinkEntry(s), policy: policy, size: max(size, 1), done: make(chan struct{})}
	b.changed = sync.NewCond(&b.mu)
	switch {
	case b.entry.sink == nil:
		b.bad = errors.New("Buffered: the sink is nil")
	case policy >= overflows:
		b.bad = fmt.Errorf("Buffered: no overflow policy %d", policy)
	default:
		go b.deliver()
		return b
	}
	close(b.done)
	return b
}

func (b *BufferedSink) ok() bool { return b != nil && b.entry != nil }

// WriteEvent queues the event. With [OverflowBlock] it then waits until the
// queue is no longer than the buffer. After Close it returns [ErrClosed].
func (b *BufferedSink) WriteEvent(ctx context.Context, ev Event) error {
	ctx = orBackground(ctx)
	if err := b.put(ctx, ev); err != nil {
		return err
	}
	b.room(reentry.Of(ctx))
	return nil
}

// put queues the event, in place of another one or not at all where the policy
// says so. It waits for nothing.
func (b *BufferedSink) put(ctx context.Context, ev Event) error {
	if !b.ok() {
		return ErrZeroValue
	}
	if b.bad != nil {
		return fmt.Errorf("agentevents: %w", b.bad)
	}
	if b.entry.skips(ev.Marks.Has(MarkReplayed), b.entry.lasting && ev.droppable()) {
		return nil
	}
	return b.add(buffered{ctx: ctx, ev: ev})
}

// ResumeRun queues the call for the sink behind the buffer, if it is a [Resumer].
func (b *BufferedSink) ResumeRun(ctx context.Context, snapshot *RunSnapshot) error {
	if !b.ok() {
		return ErrZeroValue
	}
	if b.entry.resumer == nil {
		return nil
	}
	return b.add(buffered{ctx: orBackground(ctx), tell: func(ctx context.Context) error { return b.entry.resumeRun(ctx, snapshot) }})
}

// ReleaseRun queues the call for the sink behind the buffer, if it is a [Releaser].
func (b *BufferedSink) ReleaseRun(ctx context.Context, runID string) error {
	if !b.ok() {
		return ErrZeroValue
	}
	if b.entry.releaser == nil {
		return nil
	}
	return b.add(buffered{ctx: orBackground(ctx), tell: func(ctx context.Context) error { return b.entry.releaseRun(ctx, runID) }})
}

// add queues an item. Only events are dropped.
func (b *BufferedSink) add(item buffered) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		return b.ended
	}
	if b.closing {
		return ErrClosed
	}
	if b.n >= b.size && b.policy != OverflowBlock && item.tell == nil {
		b.dropped++
		if b.policy == OverflowDropNewest || !b.dropOldest() {
			return nil
		}
	}
	if b.n == len(b.queue) {
		longer := make([]buffered, max(8, 2*b.n))
		copy(longer[copy(longer, b.queue[b.head:]):], b.queue[:b.head])
		b.queue, b.head = longer, 0
	}
	b.queue[(b.head+b.n)%len(b.queue)] = item
	b.n++
	b.changed.Broadcast()
	return nil
}

// room waits until the queue is no longer than the buffer. It does not when c is
// a call that the buffer's goroutine makes or waits for.
func (b *BufferedSink) room(c *reentry.Call) {
	if b.policy != OverflowBlock {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n <= b.size || !c.Await(&b.holder) {
		return
	}
	for b.n > b.size && !b.closing && b.ended == nil {
		b.changed.Wait()
	}
	c.Waited()
}

// dropOldest removes the event that waited longest. What is told before it stays in
// front. b.mu is held.
func (b *BufferedSink) dropOldest() bool {
	at := func(i int) *buffered { return &b.queue[(b.head+i)%len(b.queue)] }
	for i := range b.n {
		if at(i).tell != nil {
			continue
		}
		for ; i > 0; i-- {
			*at(i) = *at(i - 1)
		}
		b.take()
		return true
	}
	return false
}

// take removes the first event of the queue. b.mu is held.
func (b *BufferedSink) take() buffered {
	item := b.queue[b.head]
	b.queue[b.head] = buffered{}
	b.head = (b.head + 1) % len(b.queue)
	b.n--
	b.left++
	return item
}

// deliver is the sink's goroutine. No lock is held while the sink is called.
func (b *BufferedSink) deliver() {
	defer close(b.done)
	var item buffered
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.busy {
			return
		}
		b.ended = fmt.Errorf("agentevents: %s takes no more events: %w", b.entry.name, turns.ErrGoexit)
		b.dropped += uint64(b.n)
		for b.n > 0 {
			b.take()
		}
		b.delivered(&item.ev, turns.ErrGoexit)
	}()
	var line []byte
	var c *reentry.Call
	for b.next(&item) {
		if !c.MadeOf(item.ctx) {
			c = reentry.New(item.ctx, reentry.Of(item.ctx).Owner(), &b.holder, nil)
		}
		var err error
		if item.tell != nil {
			err = item.tell(c)
		} else {
			if b.entry.line != nil {
				line, err = item.ev.AppendJSON(line[:0])
			}
			if err == nil {
				err = b.entry.write(c, &item.ev, line)
			}
		}
		b.mu.Lock()
		b.delivered(&item.ev, err)
		b.mu.Unlock()
	}
}

// next waits for an event to deliver. It returns false when there will be none.
func (b *BufferedSink) next(item *buffered) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.n == 0 && !b.closing {
		b.changed.Wait()
	}
	if b.n == 0 {
		return false
	}
	b.current, b.busy = b.left, true
	*item = b.take()
	b.changed.Broadcast()
	return true
}

// delivered notes how the delivery of the current event went. b.mu is held.
func (b *BufferedSink) delivered(ev *Event, err error) {
	b.busy = false
	if err != nil {
		b.errs.Add(maxBufferedErrors, &SinkError{Sink: b.entry.name, RunID: ev.RunID, Sequence: ev.Sequence, Err: err})
	}
	b.changed.Broadcast()
}

// Dropped returns how many events were dropped so far.
func (b *BufferedSink) Dropped() uint64 {
	if !b.ok() {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}

// Flush waits until the events that were queued before the call are delivered.
// Then it flushes the sink behind the buffer and reports what failed since the
// last report. When the context ends first, Flush says how many events are still
// waiting. A context that ended before the call gives them a second. The sink
// behind the buffer must not call it: that is [ErrReentrant].
func (b *BufferedSink) Flush(ctx context.Context) error {
	if !b.ok() {
		return ErrZeroValue
	}
	ctx = orBackground(ctx)
	c := reentry.Of(ctx)
	if !c.Await(&b.holder) {
		return ErrReentrant
	}
	defer c.Waited()
	ctx, cancel := turns.Grace(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})
	defer stop()
	b.mu.Lock()
	end := b.left + uint64(b.n)
	for b.waiting(end) > 0 && ctx.Err() == nil {
		b.changed.Wait()
	}
	if n := b.waiting(end); n > 0 {
		b.mu.Unlock()
		return fmt.Errorf("agentevents: %d events are still waiting for %s: %w", n, b.entry.name, ctx.Err())
	}
	err := b.report()
	b.mu.Unlock()
	if b.entry.flusher != nil {
		err = errors.Join(err, b.entry.flush(ctx))
	}
	return err
}

// waiting returns how many events with a number below end are neither delivered
// nor dropped. b.mu is held.
func (b *BufferedSink) waiting(end uint64) uint64 {
	n := max(end, b.left) - b.left
	if b.busy && b.current < end {
		n++
	}
	return n
}

// report returns the errors since the last report. b.mu is held.
func (b *BufferedSink) report() error {
	errs := b.errs.Take(" of " + b.entry.name)
	if b.dropped > b.reported {
		errs = append(errs, fmt.Errorf("%w: %d by the buffer of %s", ErrDropped, b.dropped-b.reported, b.entry.name))
		b.reported = b.dropped
	}
	return errors.Join(errs...)
}

// Close delivers what is queued, ends the goroutine and closes the sink behind
// it. It waits for that sink, which must not call it; give Flush a deadline first
// to bound the wait.
func (b *BufferedSink) Close() error {
	if !b.ok() {
		return ErrZeroValue
	}
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
