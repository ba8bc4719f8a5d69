package agentevents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agentevents/agentevents/internal/firsterrs"
	"github.com/agentevents/agentevents/internal/option"
	"github.com/agentevents/agentevents/internal/queue"
	"github.com/agentevents/agentevents/internal/reentry"
	"github.com/agentevents/agentevents/internal/turns"
)

// Overflow selects how [Buffered] acts when its buffer is full.
type Overflow uint8

// The policies.
const (
	OverflowBlock      Overflow = iota // wait for room: nothing is lost, the run may be slowed
	OverflowDropNewest                 // lose the event that does not fit
	OverflowDropOldest                 // lose the event that waited longest
	// OverflowDropDeltas loses deltas only ([KindInfo], Droppable): one that does not fit, and all
	// that follow in its block until the block ends, so that no block has a hole. Any other event
	// replaces the waiting deltas, which are lost in the same way. If no delta waits, it waits for
	// room, as with OverflowBlock. A fold loses nothing if the whole block follows its deltas, as
	// with [ModelCall] and [ToolReturned]. In a run in which 1,024 blocks are cut off at the same
	// time all deltas are lost until it ends.
	OverflowDropDeltas

	overflows = iota
)

// A BufferedSink delivers to another sink from a goroutine of its own.
type BufferedSink struct {
	holder reentry.Holder // the goroutine's, while it delivers

	entry  *sinkEntry
	policy Overflow
	size   int
	bad    error         // why no event can be taken, from the start
	done   chan struct{} // closed by the goroutine when it ends
	line   []byte        // the goroutine's
	retry  *queue.Retry  // the goroutine's; Close hurries it

	mu       sync.Mutex
	changed  *sync.Cond // anything below changed
	queue    queue.Ring[buffered]
	next     uint64 // number of the next item
	busy     bool   // an item is being delivered
	current  uint64 // its number
	closing  bool
	ended    error // why the goroutine ended before Close
	stats    BufferedStats
	dropped  [kindCount + 1]uint64 // events by kind, the last one for unknown kinds
	reported uint64                // of those dropped
	deltas   int                   // in the queue, with OverflowDropDeltas
	cuts     cuts                  // with OverflowDropDeltas
	errs     firsterrs.List        // since the last report
	untold   firsterrs.List        // that no OnError was told of

	news atomic.Bool // untold has errors

	// Of a sink that commits.
	uncommitted int              // events that were delivered since the last commit
	first       uint64           // number of the first of them
	lastCommit  error            // of the last commit
	commits     []*commitWait    // those that wait, in the order of their ends
	group       []string         // ids of the events, if Commit waits
	failures    map[string]error // of deliveries and commits, by event id, until Commit asks
}

// A commitWait is a call of Commit that waits.
type commitWait struct {
	end  uint64 // number after the last item that it waits for
	done bool
	err  error
}

// A buffered item is an event, or a notice to the sink about a run.
type buffered struct {
	ctx    context.Context
	ev     Event
	tell   func(context.Context) error
	number uint64 // items are numbered in the order in which they come
}

// BufferedStats count events. Queued is the sum of Waiting, Written, Failed and all of
// Dropped, at any time.
//
// Events that the buffer refuses with an error are not counted, nor are those that [SkipReplayed]
// and [WithoutDeltas] omit.
type BufferedStats struct {
	Queued  uint64          // the buffer was given them
	Waiting uint64          // they are in the buffer, or being delivered
	Written uint64          // the sink took them
	Failed  uint64          // the sink returned an error or panicked, in the last try
	Dropped map[Kind]uint64 // lost, by kind; unknown kinds count as ""; nil when none is lost
	Retried uint64          // tries after the first one of an event; of no sum
}

const (
	maxBufferedErrors = 16
	// commitEvery is after how many events the sink commits though more are waiting.
	commitEvery = 64
	// maxFailures bounds those that are kept for Commit, because some emitters never ask.
	maxFailures = 1024
)

// [BufferedSink.Flush] and Close return ErrDropped, with the number, if events were dropped since
// the last report.
var ErrDropped = errors.New("agentevents: events were dropped")

// Buffered returns a sink that queues up to size events (below 1 it means 1) and
// delivers them to s, in order, from one goroutine that ends with Close.
//
// With [OverflowBlock] Emit queues its event, lets other events of the run go on, and waits for
// room before it returns; with [OverflowDropDeltas] it does so for events other than deltas. So the
// queue may hold one event more for every goroutine that is emitting, and s may emit into any run:
// with the context it is given, or it could wait for the room that it makes.
//
// Errors of s come back from Flush and Close; EmitterOptions.OnError is told of them with the next
// event that is emitted. Dropped events are counted: see [BufferedSink.Stats];
// Flush and Close report them as [ErrDropped]. A sink that ends the goroutine gets no more events:
// the queued ones count as dropped, and WriteEvent returns an error.
//
// An event that s refuses with a temporary error is tried again, after 10 milliseconds first, then
// after twice as long each time, up to a second, and later events wait. When s has been down for 30
// seconds, events fail after one try, until one gets through. An error is temporary if one in its
// chain has a method Temporary() bool that returns true, as the time-outs of net and context do. So
// s returns such an error only for an event that it may get twice. Close, also of the emitter, ends
// the pause; then an event is tried once more only.
//
// If s is a [Resumer] or [Releaser], it is told in order; these notices are never dropped. If s is
// a [Tracer], it is asked at once, while it may be receiving earlier events. If s is a [Committer],
// Emit returns when the event is durable, unless the policy drops such events: see
// [BufferedSink.Commit]. A sink that cannot be used and an unknown policy are refused by
// [NewEmitter], and WriteEvent returns an error.
func Buffered(s Sink, size int, policy Overflow) *BufferedSink {
	b := &BufferedSink{
		entry: newSinkEntry(s), policy: policy, size: max(size, 1), done: make(chan struct{}), retry: queue.NewRetry(),
	}
	b.changed = sync.NewCond(&b.mu)
	err := b.entry.check()
	switch {
	case err != nil:
		b.bad = fmt.Errorf("agentevents: Buffered: %w", err)
	case policy >= overflows:
		b.bad = option.NoConstant("Buffered.policy", int(policy))
	default:
		go b.deliver()
		return b
	}
	close(b.done)
	return b
}

func (b *BufferedSink) ok() bool { return b != nil && b.entry != nil }

// WriteEvent queues the event. With [OverflowBlock], and with [OverflowDropDeltas] unless the event
// is a delta, it then waits until the queue is no longer than the buffer. After Close it returns
// [ErrClosed].
func (b *BufferedSink) WriteEvent(ctx context.Context, ev Event) error {
	ctx = orBackground(ctx)
	if err := b.put(ctx, ev); err != nil {
		return err
	}
	b.room(reentry.Of(ctx), !ev.droppable())
	return nil
}

// put queues the event, replaces another one or drops it, according to the policy. It does not
// wait.
func (b *BufferedSink) put(ctx context.Context, ev Event) error {
	if !b.ok() {
		return ErrZeroValue
	}
	if b.bad != nil {
		return b.bad
	}
	if b.entry.skips(ev.Marks.Has(MarkReplayed), b.entry.lasting && ev.droppable()) {
		return nil
	}
	return b.add(buffered{ctx: ctx, ev: ev})
}

// ResumeRun queues the call for the wrapped sink, if that is a [Resumer].
func (b *BufferedSink) ResumeRun(ctx context.Context, snapshot *RunSnapshot) error {
	if !b.ok() {
		return ErrZeroValue
	}
	if b.entry.resumer == nil {
		return nil
	}
	return b.add(buffered{ctx: orBackground(ctx),
		tell: func(ctx context.Context) error { return b.entry.resumeRun(ctx, snapshot) }})
}

// ReleaseRun queues the call for the wrapped sink, if that is a [Releaser].
func (b *BufferedSink) ReleaseRun(ctx context.Context, runID string) error {
	if !b.ok() {
		return ErrZeroValue
	}
	if b.policy == OverflowDropDeltas {
		b.mu.Lock()
		b.cuts.release(runID)
		b.mu.Unlock()
	}
	if b.entry.releaser == nil {
		return nil
	}
	return b.add(buffered{ctx: orBackground(ctx),
		tell: func(ctx context.Context) error { return b.entry.releaseRun(ctx, runID) }})
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
	if item.tell == nil {
		b.stats.Queued++
		if !b.admit(&item.ev) {
			b.drop(&item.ev)
			return nil
		}
		b.stats.Waiting++
	}
	item.number = b.next
	b.next++
	b.queue.Push(item)
	b.changed.Broadcast()
	return nil
}

// admit reports whether an event is queued, and drops other ones according to the policy. b.mu is
// held.
func (b *BufferedSink) admit(ev *Event) bool {
	full := b.queue.Len() >= b.size
	switch b.policy {
	case OverflowDropNewest:
		return !full
	case OverflowDropOldest:
		return !full || b.dropOldest()
	case OverflowDropDeltas:
		switch {
		case b.cuts.cut(ev, full):
			return false
		case ev.droppable():
			b.deltas++
		case full && b.deltas > 0:
			b.dropDeltas()
		}
	}
	return true
}

// drop counts an event that is lost. b.mu is held.
func (b *BufferedSink) drop(ev *Event) {
	i := kindCount
	if p := ops(ev.Payload); p != nil && p.index() >= 0 {
		i = p.index()
	}
	b.dropped[i]++
}

// lose drops an event of the queue. b.mu is held.
func (b *BufferedSink) lose(ev *Event) {
	b.stats.Waiting--
	b.drop(ev)
}

// lost returns the number of all events that were dropped. b.mu is held.
func (b *BufferedSink) lost() (n uint64) {
	for _, dropped := range b.dropped {
		n += dropped
	}
	return n
}

// room waits until the queue fits the buffer, if the queued event has to wait. lasting means that
// the event is not a delta. It does not wait when c is a call that the buffer's goroutine makes or
// waits for.
func (b *BufferedSink) room(c *reentry.Call, lasting bool) {
	if b.policy != OverflowBlock && (b.policy != OverflowDropDeltas || !lasting) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue.Len() <= b.size || !c.Await(&b.holder) {
		return
	}
	for b.queue.Len() > b.size && !b.closing && b.ended == nil {
		b.changed.Wait()
	}
	c.Waited()
}

// dropOldest removes the event that waited longest. Notices before it keep their place. b.mu is
// held.
func (b *BufferedSink) dropOldest() bool {
	for i := range b.queue.Len() {
		if item := b.queue.At(i); item.tell == nil {
			b.lose(&item.ev)
			b.queue.Delete(i)
			return true
		}
	}
	return false
}

// dropDeltas removes all deltas of the queue, and cuts off their blocks that do not end there. b.mu
// is held.
func (b *BufferedSink) dropDeltas() {
	var fresh cuts
	b.queue.DeleteFunc(func(item *buffered) bool {
		drop := item.tell == nil && fresh.cut(&item.ev, true)
		if drop {
			b.lose(&item.ev)
		}
		return drop
	})
	b.deltas = 0
	b.cuts.addAll(&fresh)
	b.changed.Broadcast()
}

// deliver is the sink's goroutine. No lock is held while the sink is called.
func (b *BufferedSink) deliver() {
	defer close(b.done)
	var item buffered
	var c *reentry.Call
	finished := false
	defer func() {
		if !finished {
			b.exited(&item)
		}
	}()
	for {
		switch b.await(&item) {
		case toDeliver:
			if !c.MadeOf(item.ctx) {
				c = reentry.New(item.ctx, reentry.Of(item.ctx).Owner(), &b.holder, nil)
			}
			b.delivered(&item, b.hand(c, &item))
		case toCommit:
			b.committed(b.entry.commit(c, ""))
		case toEnd:
			finished = true
			return
		}
	}
}

// The next act of the goroutine.
const (
	toDeliver = iota
	toCommit
	toEnd
)

// await waits until there is something to do: mostly an item to deliver.
func (b *BufferedSink) await(item *buffered) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.queue.Len() == 0 && b.uncommitted == 0 && !b.closing {
		b.changed.Wait()
	}
	if b.uncommitted >= commitEvery || b.uncommitted > 0 && b.queue.Len() == 0 {
		return toCommit
	}
	if b.queue.Len() == 0 {
		return toEnd
	}
	*item = b.queue.Pop()
	b.current, b.busy = item.number, true
	if b.policy == OverflowDropDeltas && item.tell == nil && item.ev.droppable() {
		b.deltas--
	}
	b.changed.Broadcast()
	return toDeliver
}

// hand gives an item to the sink.
func (b *BufferedSink) hand(c *reentry.Call, item *buffered) (err error) {
	if item.tell != nil {
		return item.tell(c)
	}
	if b.entry.line != nil {
		if b.line, err = item.ev.AppendJSON(b.line[:0]); err != nil {
			return err
		}
	}
	return b.retry.Do(func(before int) error {
		if before > 0 {
			b.mu.Lock()
			b.stats.Retried++
			b.mu.Unlock()
		}
		return b.entry.deliver(c, &item.ev, b.line)
	})
}

// delivered notes how the delivery of the current item went.
func (b *BufferedSink) delivered(item *buffered, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle(item, err)
	b.changed.Broadcast()
}

// settle is delivered with b.mu held.
func (b *BufferedSink) settle(item *buffered, err error) {
	b.busy = false
	if item.tell == nil {
		b.stats.Waiting--
		if err == nil {
			b.stats.Written++
		} else {
			b.stats.Failed++
		}
	}
	if err != nil {
		err = &SinkError{Sink: b.entry.name, RunID: item.ev.RunID, Sequence: item.ev.Sequence, Err: err}
		b.note(err, b.waits() && item.tell == nil)
	}
	if item.tell == nil && b.entry.committer != nil {
		if b.uncommitted == 0 {
			b.first = b.current
		}
		b.uncommitted++
		if b.waits() {
			b.group = append(b.group, item.ev.ID)
			b.fail(item.ev.ID, err)
		}
	}
}

// note keeps an error for the next report, and for OnError unless Emit returns it. b.mu is held.
func (b *BufferedSink) note(err error, returned bool) {
	b.errs.Add(maxBufferedErrors, err)
	if !returned {
		b.untold.Add(maxBufferedErrors, err)
		b.news.Store(true)
	}
}

// takeNews returns the errors that OnError was not told of.
func (b *BufferedSink) takeNews() []error {
	if !b.news.Load() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.news.Store(false)
	return b.untold.Take(" of " + b.entry.name)
}

// fail keeps the error of an event for Commit. b.mu is held.
func (b *BufferedSink) fail(id string, err error) {
	if err == nil {
		return
	}
	if len(b.failures) == maxFailures {
		clear(b.failures)
	}
	put(&b.failures, id, join(b.failures[id], err))
}

// committed notes how a commit of all events so far went, and tells those who wait for it.
func (b *BufferedSink) committed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.uncommitted, b.lastCommit = 0, err
	if err != nil {
		b.note(&SinkError{Sink: b.entry.name, Err: err}, b.waits())
	}
	for _, id := range b.group {
		b.fail(id, err)
	}
	b.group = b.group[:0]
	b.tellCommits(b.current+1, err)
	b.changed.Broadcast()
}

// tellCommits tells those who wait for items with numbers below end. b.mu is held.
func (b *BufferedSink) tellCommits(end uint64, err error) {
	n := 0
	for n < len(b.commits) && b.commits[n].end <= end {
		b.commits[n].done, b.commits[n].err = true, err
		n++
	}
	b.commits = slices.Delete(b.commits, 0, n)
}

// waits reports whether Commit waits: the policy then cannot drop the events in question.
func (b *BufferedSink) waits() bool {
	return b.policy == OverflowBlock || b.policy == OverflowDropDeltas
}

// Commit waits until the events that were queued before the call are delivered, and durable by one
// Commit of the wrapped sink, which all waiting callers share. Its error comes back to each of
// them, and from Flush or Close. Emit gets the error of the delivery of its event as well.
//
// That sink commits when the queue is empty, and after 64 events. With [OverflowDropNewest]
// and [OverflowDropOldest] nobody waits, and with [OverflowDropDeltas] Emit does not for a
// delta: then Flush waits for the commit and has its error. Nor does the sink itself wait,
// with the context that it is given.
//
// Commit returns nil at once if the sink does not implement [Committer]. If the context ends first,
// the error has the number of waiting events.
func (b *BufferedSink) Commit(ctx context.Context) error {
	if !b.ok() {
		return ErrZeroValue
	}
	return b.commit(orBackground(ctx), "")
}

// commit is Commit for the event with the given id, or for no event if id is "".
func (b *BufferedSink) commit(ctx context.Context, id string) error {
	if b.entry.committer == nil || !b.waits() {
		return nil
	}
	c := reentry.Of(ctx)
	if !c.Await(&b.holder) {
		return nil
	}
	defer c.Waited()
	if ctx.Done() != nil {
		defer b.wakeAfter(ctx)()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		return b.ended
	}
	w := &commitWait{end: b.next}
	switch {
	case b.open(w.end):
		b.commits = append(b.commits, w)
	case id == "":
		w.err = b.lastCommit
	}
	for !w.done && b.open(w.end) {
		if ctx.Err() != nil {
			b.commits = slices.DeleteFunc(b.commits, func(one *commitWait) bool { return one == w })
			return b.unfinished(w.end, ctx.Err())
		}
		b.changed.Wait()
	}
	if failure, ok := b.failures[id]; ok && id != "" {
		delete(b.failures, id)
		return failure
	}
	return w.err
}

// wakeAfter wakes those who wait when the context ends. The result undoes it.
func (b *BufferedSink) wakeAfter(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})
}

// exited notes that the sink ended the goroutine, in the delivery of an item.
func (b *BufferedSink) exited(item *buffered) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = fmt.Errorf("agentevents: %s takes no more events: %w", b.entry.name, turns.ErrGoexit)
	if b.busy {
		b.settle(item, turns.ErrGoexit)
	} else {
		b.note(&SinkError{Sink: b.entry.name, Err: turns.ErrGoexit}, false) // in Commit
	}
	b.uncommitted = 0
	b.tellCommits(b.next, b.ended)
	for b.queue.Len() > 0 {
		if left := b.queue.Pop(); left.tell == nil {
			b.lose(&left.ev)
		}
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
	return b.lost()
}

// Stats returns the numbers of events so far. They are of one moment.
func (b *BufferedSink) Stats() BufferedStats {
	if !b.ok() {
		return BufferedStats{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.stats
	for i, n := range b.dropped {
		var kind Kind
		if i < kindCount {
			kind = catalog[i].Kind
		}
		if n > 0 {
			put(&out.Dropped, kind, n)
		}
	}
	return out
}

// Flush waits until the events that were queued before the call are delivered, and committed if the
// wrapped sink is a [Committer]. Then it flushes the wrapped sink and reports the failures since
// the last report. If the context ends first, the error has the number of waiting events. A context
// that ended before the call gives them a second. The wrapped sink must not call Flush: it gets
// [ErrReentrant].
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
	defer b.wakeAfter(ctx)()
	b.mu.Lock()
	end := b.next
	for b.open(end) && ctx.Err() == nil {
		b.changed.Wait()
	}
	if b.open(end) {
		defer b.mu.Unlock()
		return b.unfinished(end, ctx.Err())
	}
	err := b.report()
	b.mu.Unlock()
	_, ferr := b.entry.flushWithin(ctx)
	return errors.Join(err, ferr)
}

// unfinished returns the error of a call that gives up. b.mu is held.
func (b *BufferedSink) unfinished(end uint64, cause error) error {
	return fmt.Errorf("agentevents: %d events are still waiting for %s: %w", b.waiting(end), b.entry.name, cause)
}

// open reports whether an item with a number below end is neither dropped nor delivered
// and, if the sink commits, committed. b.mu is held.
func (b *BufferedSink) open(end uint64) bool {
	return b.busy && b.current < end || b.queue.Len() > 0 && b.queue.At(0).number < end ||
		b.uncommitted > 0 && b.first < end
}

// waiting returns how many they are. b.mu is held.
func (b *BufferedSink) waiting(end uint64) (n int) {
	for i := 0; i < b.queue.Len() && b.queue.At(i).number < end; i++ {
		n++
	}
	if b.busy && b.current < end {
		n++
	}
	if b.uncommitted > 0 && b.first < end {
		n += int(min(uint64(b.uncommitted), end-b.first))
	}
	return n
}

// report returns the errors since the last report. b.mu is held.
func (b *BufferedSink) report() error {
	errs := b.errs.Take(" of " + b.entry.name)
	if lost := b.lost(); lost > b.reported {
		errs = append(errs, fmt.Errorf("%w: %d by the buffer of %s", ErrDropped, lost-b.reported, b.entry.name))
		b.reported = lost
	}
	return errors.Join(errs...)
}

// Close delivers the queue, ends the goroutine and closes the wrapped sink. It waits for that sink,
// which must not call it; give Flush a deadline first to bound the wait. It does not wait until a
// temporary error is over.
func (b *BufferedSink) Close() error {
	if !b.ok() {
		return ErrZeroValue
	}
	return b.close(context.Background())
}

// close is Close, for as long as the context allows. Then the goroutine goes on by itself, and ends
// when it has delivered the queue.
func (b *BufferedSink) close(ctx context.Context) error {
	ctx, cancel := turns.Grace(ctx)
	defer cancel()
	b.end()
	select {
	case <-b.done:
	case <-ctx.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.unfinished(b.next, ctx.Err())
	}
	b.mu.Lock()
	err := b.report()
	b.mu.Unlock()
	return errors.Join(err, b.entry.closeWithin(ctx))
}

// end makes the goroutine end when the queue is empty. Nothing more is queued.
func (b *BufferedSink) end() {
	b.retry.Hurry()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closing = true
	b.changed.Broadcast()
}

// Cuts are the blocks of which a delta was dropped, by run. They take no more deltas,
// until they end.
type cuts struct {
	runs  map[string]*runCuts
	rules machine // without a run: it knows which events end a block
}

// runCuts has the cut blocks of a run.
type runCuts struct {
	blocks []blockName
	all    bool // there were too many: the run gets no deltas
}

// A blockName is a block in its run.
type blockName struct{ agent, subject, id string }

// maxCuts bounds the blocks of a run that are cut at the same time.
const maxCuts = 1024

// cut reports whether an event is a delta that is to be dropped: its block is cut, or full means
// that there is no room for the delta, which cuts the block. cut is called for each event of a run,
// in order, because it may end blocks.
func (c *cuts) cut(ev *Event, full bool) bool {
	droppable := ev.droppable()
	run := c.runs[ev.RunID]
	if run == nil && !(full && droppable) {
		return false
	}
	var sub subject
	p := ops(ev.Payload)
	if p == nil {
		return false
	}
	c.rules.resolve(&sub, ev, p)
	agent := sub.key
	if agent == "" {
		agent = ev.ParentSpanID // perhaps an agent's: no agents are known here
	}
	c.end(run, ev, &sub, agent)
	if !droppable {
		return false
	}
	piece := pieceOf(ev, &sub)
	name := blockName{agent, piece.subject, piece.id}
	if run.has(name) {
		return true
	}
	if full {
		c.add(ev.RunID, name)
	}
	return full
}

// end removes the blocks that an event ends.
func (c *cuts) end(run *runCuts, ev *Event, sub *subject, agent string) {
	if run == nil || sub.kind.traits&endsBlocks == 0 {
		return
	}
	if sub.kind.Subject == "run" {
		c.release(ev.RunID)
		return
	}
	run.blocks = slices.DeleteFunc(run.blocks, func(b blockName) bool {
		return b.agent == agent && c.rules.endsBlock(ev, sub, b.subject, b.id)
	})
	if len(run.blocks) == 0 && !run.all {
		c.release(ev.RunID)
	}
}

// add cuts a block that is not cut.
func (c *cuts) add(id string, name blockName) {
	run := c.runs[id]
	if run == nil {
		run = &runCuts{}
		put(&c.runs, id, run)
	}
	if len(run.blocks) == maxCuts {
		*run = runCuts{all: true}
	}
	if !run.all {
		run.blocks = append(run.blocks, name)
	}
}

// addAll cuts the blocks of another one as well.
func (c *cuts) addAll(other *cuts) {
	for id, run := range other.runs {
		if run.all {
			put(&c.runs, id, run)
			continue
		}
		for _, name := range run.blocks {
			if !c.runs[id].has(name) {
				c.add(id, name)
			}
		}
	}
}

// has reports whether a block is cut.
func (r *runCuts) has(name blockName) bool {
	return r != nil && (r.all || slices.Contains(r.blocks, name))
}

// release forgets a run.
func (c *cuts) release(run string) { delete(c.runs, run) }
