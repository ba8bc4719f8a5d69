package runstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/firsterrs"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Copy appends the events of a log to a store: as a mirror that people search, or to move runs.
// It adds what the store lacks, so it may be called again with a log that has grown. It may also
// go on for as long as a log is followed, until the context of the follower ends:
//
//	follower, err := logfile.Follow(following, "events.jsonl", logfile.FollowOptions{})
//	…
//	err = runstore.Copy(ctx, store, agentevents.NewReader(follower, agentevents.ReaderOptions{}).All())
//
// Events that the log omits are omitted, also at the beginning of a run. A run of which the store
// has other events is copied no further; nor is one whose sequences go back in the log to events
// that it did not have, as they do after a false sequence. Its [*ConflictError] does not end the
// copy, and neither do events that cannot be read or stored ([ErrRefused]). These errors are
// returned joined, the first 100 of each sort and the number of the others.
//
// Any other error of the store ends the copy, as does ctx. Copy notices that with the next event:
// of a log that nobody writes to, the context of the follower ends it.
func Copy(ctx context.Context, s Store, events iter.Seq2[agentevents.Event, error]) error {
	c := copier{s: s, next: map[string]uint64{}, refused: map[string]bool{}}
	queue, stored := make(chan []Entry, 1), make(chan error, 1)
	go func() { stored <- c.run(ctx, queue) }()
	err, ended := c.feed(queue, stored, events)
	if !ended {
		err = <-stored
	}
	errs := append(c.unread.Take(" of events that cannot be read"), c.left.Take(" of events that are left out")...)
	return errors.Join(append(append(errs, c.conflicts.Take(" of runs that conflict")...), err)...)
}

// The bounds of one step of a copy, and of its memory.
const (
	copyAtOnce = 4096 // events
	copyBytes  = 4 << 20
	copyErrors = 100 // of each sort
)

// A copier appends the events that Copy reads.
type copier struct {
	s         Store
	next      map[string]uint64 // by run, the sequence after the copied events
	refused   map[string]bool   // the runs that conflict
	conflicts firsterrs.List
	left      firsterrs.List
	unread    firsterrs.List // of feed
}

// feed sends the events, and returns the receiver's error if it ends first. Events that wait for
// the receiver are one list in the queue, which the next event joins.
func (c *copier) feed(queue chan []Entry, stored <-chan error,
	events iter.Seq2[agentevents.Event, error]) (err error, ended bool) {
	defer close(queue)
	size := 0 // of the list
	for ev, err := range events {
		var e Entry
		if err == nil {
			e, err = NewEntry(ev)
		}
		if err == nil {
			err = CheckAppend(ev.RunID, 0, []Entry{e})
		}
		if err != nil {
			c.unread.Add(copyErrors, err)
			continue
		}
		var list []Entry
		select {
		case list = <-queue:
		default:
			size = 0
		}
		if size += len(e.Line); len(list) == copyAtOnce || len(list) > 0 && size > copyBytes {
			queue <- list // there is room, as nobody else sends
			list, size = nil, len(e.Line)
		}
		select {
		case queue <- append(list, e):
		case err := <-stored:
			return err, true
		}
	}
	return nil, false
}

// run appends the events of the queue, and commits them.
func (c *copier) run(ctx context.Context, queue <-chan []Entry) error {
	for list := range queue {
		for _, of := range byRun(list) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := c.copy(ctx, of); err != nil {
				return err
			}
		}
		if err := c.s.Commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// byRun returns the entries of each run.
func byRun(list []Entry) (runs [][]Entry) {
	at := map[string]int{}
	for _, e := range list {
		i, ok := at[e.Event.RunID]
		if !ok {
			i = len(runs)
			at[e.Event.RunID] = i
			runs = append(runs, nil)
		}
		runs[i] = append(runs[i], e)
	}
	return runs
}

// copy appends entries of one run, as they come in the log.
func (c *copier) copy(ctx context.Context, list []Entry) error {
	for len(list) > 0 {
		n := 1
		for n < batch(list) && list[n].Event.Sequence > list[n-1].Event.Sequence {
			n++
		}
		if err := c.append(ctx, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// append appends entries whose sequences rise.
func (c *copier) append(ctx context.Context, list []Entry) error {
	run, first := list[0].Event.RunID, list[0].Event.Sequence
	if c.refused[run] {
		return nil
	}
	next, known := c.next[run]
	expect := first
	if known {
		expect = min(next, first)
	}
	err := c.s.Append(ctx, run, expect, list...)
	conflict := (*ConflictError)(nil)
	if errors.As(err, &conflict) && !known && conflict.Next < first { // the log lacks the events in between
		err = c.s.Append(ctx, run, conflict.Next, list...)
	}
	switch {
	case errors.As(err, &conflict):
		c.refused[run] = true
		why := "the store has other events of it"
		if known && first < next {
			why = fmt.Sprintf("the log has sequence %d after %d, and the store other events there", first, next-1)
		}
		c.conflicts.Add(copyErrors,
			fmt.Errorf("runstore: run %s is copied no further: %s: %w", jsonwire.Brief(run), why, err))
		return nil
	case errors.Is(err, ErrRefused) && len(list) > 1:
		for i := range list { // one of them is at fault
			if err := c.append(ctx, list[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	case errors.Is(err, ErrRefused):
		c.left.Add(copyErrors, err)
		return nil
	}
	c.next[run] = max(next, list[len(list)-1].Event.Sequence+1)
	return err
}
