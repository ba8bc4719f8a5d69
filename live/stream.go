package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// ErrUnknownRun means that the feed does not have the run: no event of it has come yet, or
// it was released a while ago.
var ErrUnknownRun = errors.New("agentevents/live: the run is not known")

// A GapError reports that a reader cannot go on: the events it wants are not kept any more, or do
// not exist yet. A snapshot has the missed events.
type GapError struct {
	RunID  string // the run
	From   uint64 // sequence of the event that the reader wants next
	Oldest uint64 // sequence of the oldest event that is kept; Next when there is none
	Next   uint64 // sequence of the next event of the run
}

// Error names the missing events.
func (e *GapError) Error() string {
	if e.From > e.Next {
		return fmt.Sprintf("agentevents/live: run %s has no event %d yet: the next one is %d",
			jsonwire.Brief(e.RunID), e.From, e.Next)
	}
	return fmt.Sprintf("agentevents/live: run %s: event %d is not kept any more: the oldest one is %d",
		jsonwire.Brief(e.RunID), e.From, e.Oldest)
}

// Events yields the events of a run from a sequence on, as they come: 0 is the first one.
// Every event comes once and in order. The loop ends when the run is over: it was
// released, and Options.Linger has passed since its last event, or the feed was closed.
//
// Its last turn may be an error instead: [ErrUnknownRun], the cause of the context's end,
// or a [*GapError] when the event that comes next is not kept: it is too old, or the
// loop is too slow, so that more than Options.KeepBytes came meanwhile. Nobody waits
// for the loop.
func (f *Feed) Events(ctx context.Context, runID string, from uint64) iter.Seq2[agentevents.Event, error] {
	return func(yield func(agentevents.Event, error) bool) {
		r := f.find(runID)
		if r == nil {
			yield(agentevents.Event{}, fmt.Errorf("%w (run %s)", ErrUnknownRun, jsonwire.Brief(runID)))
			return
		}
		c := cursor{run: r, from: from}
		for {
			batch, err := c.read(ctx, 0)
			if err != nil {
				yield(agentevents.Event{}, err)
				return
			}
			if len(batch) == 0 {
				return
			}
			for i := range batch {
				var ev agentevents.Event
				err := ev.UnmarshalJSON([]byte(batch[i].text))
				if !yield(ev, err) || err != nil {
					return
				}
			}
		}
	}
}

// A cursor is the place of a reader in a run.
type cursor struct {
	run   *run
	from  uint64 // sequence of the next event
	stale bool   // from belongs to another log: the next read is a gap
	epoch string // of the run, at the last read
	batch []line // the lines taken last
	took  time.Time
}

// pace is the shortest time between two waits of a reader for events.
const pace = time.Millisecond

// maxBatch and maxBatchBytes are how many lines a reader takes at a time, and how many bytes
// they have unless there is only one. A slow reader keeps them alive.
const (
	maxBatch      = 64
	maxBatchBytes = 64 << 10
)

// errIdle means that nothing has come for a while.
var errIdle = errors.New("idle")

// read returns the next lines and waits for them; none when the run is over. With idle it
// returns errIdle when none have come for that long.
func (c *cursor) read(ctx context.Context, idle time.Duration) ([]line, error) {
	var quiet <-chan time.Time
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		changed, left, err := c.take()
		if err != nil {
			return nil, err
		}
		if changed == nil {
			return c.batch, nil // empty when the run is over
		}
		if idle > 0 && quiet == nil {
			timer := time.NewTimer(idle)
			defer timer.Stop()
			quiet = timer.C
		}
		if err := wait(ctx, changed, left, quiet); err != nil {
			return nil, err
		}
		// Waking a reader costs the emitter more than the event: in a burst it does so
		// once for many.
		if since := time.Since(c.took); since < pace {
			time.Sleep(pace - since)
		}
	}
}

func wait(ctx context.Context, changed <-chan struct{}, left time.Duration, quiet <-chan time.Time) error {
	var end <-chan time.Time
	if left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		end = timer.C
	}
	select {
	case <-changed:
	case <-end:
	case <-quiet:
		return errIdle
	case <-ctx.Done():
	}
	return nil
}

// take takes lines. Without lines, it returns a channel to wait on, and the time left if the run is
// released.
func (c *cursor) take() (changed <-chan struct{}, left time.Duration, err error) {
	r := c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	c.epoch = r.epoch
	if c.stale || c.from < r.oldest || c.from > r.next {
		c.stale = false
		return nil, 0, &GapError{RunID: r.id, From: c.from, Oldest: r.oldest, Next: r.next}
	}
	clear(c.batch) // the run may not keep them any more
	c.batch = c.batch[:0]
	if c.from < r.next {
		i, _ := slices.BinarySearchFunc(r.lines, c.from,
			func(l line, from uint64) int { return cmp.Compare(l.sequence, from) })
		size := 0
		for _, l := range r.lines[i:min(i+maxBatch, len(r.lines))] {
			if size += len(l.text); size > maxBatchBytes && len(c.batch) > 0 {
				break
			}
			c.batch = append(c.batch, l)
		}
		c.from, c.took = c.batch[len(c.batch)-1].sequence+1, time.Now()
		return nil, 0, nil
	}
	if r.released {
		if left = r.left(); left <= 0 {
			return nil, 0, nil
		}
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed, left, nil
}

// left returns how long a released run may still have events. r.mu is held.
func (r *run) left() time.Duration { return r.feed.opts.Linger - time.Since(r.last) }

// end returns the sequence of the next event.
func (r *run) end() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

// stale reports whether a cursor with an epoch belongs to another log: events that were recorded
// elsewhere, since the run went on here, have the same numbers as others here.
func (r *run) stale(from uint64, epoch string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return epoch != "" && epoch != r.epoch && from > r.start
}

// ended reports whether the reader has seen the last event of a run that is over.
func (c *cursor) ended() bool {
	r := c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.released && !c.stale && c.from == r.next && r.left() <= 0
}
