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
// What the log leaves out is left out, also at the beginning of a run. A run of which the store
// has other events is copied no further. Its [*ConflictError] and the errors of events that
// cannot be read do not end the copy: they are returned joined, the first 100 and the number of
// the others. Any other error of the store does.
func Copy(ctx context.Context, s Store, events iter.Seq2[agentevents.Event, error]) error {
	c := copier{s: s, next: map[string]uint64{}, refused: map[string]bool{}}
	queue, stored := make(chan Entry, copyAtOnce), make(chan error, 1)
	go func() { stored <- c.run(ctx, queue) }()
	err := feed(queue, stored, events, func(err error) { c.unread.Add(copyErrors, err) })
	errs := append(c.unread.Take(" of events that cannot be read"), c.conflicts.Take(" of runs that conflict")...)
	return errors.Join(append(errs, err)...)
}

const (
	copyAtOnce = 256 // events
	copyErrors = 100 // of each sort
)

// feed sends the entries of events, and returns what the receiver says when it is done.
func feed(queue chan<- Entry, done <-chan error, events iter.Seq2[agentevents.Event, error], bad func(error)) error {
	for ev, err := range events {
		var e Entry
		if err == nil {
			e, err = NewEntry(ev)
		}
		if err != nil {
			bad(err)
			continue
		}
		select {
		case queue <- e:
		case err := <-done:
			return err
		}
	}
	close(queue)
	return <-done
}

// A copier appends what Copy reads.
type copier struct {
	s         Store
	next      map[string]uint64 // of the runs, what follows on what was copied
	refused   map[string]bool   // the runs that conflict
	conflicts firsterrs.List
	unread    firsterrs.List
}

// run appends what has come, as much at a time as there is, and commits it.
func (c *copier) run(ctx context.Context, queue <-chan Entry) error {
	for e := range queue {
		list := []Entry{e}
		for len(list) < copyAtOnce && len(queue) > 0 {
			list = append(list, <-queue)
		}
		for len(list) > 0 {
			n := together(list)
			if err := c.append(ctx, list[:n]); err != nil {
				return err
			}
			list = list[n:]
		}
		if err := c.s.Commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// together returns how many of the entries are of one run and rise.
func together(list []Entry) int {
	n := 1
	for n < len(list) && list[n].Event.RunID == list[0].Event.RunID && list[n].Event.Sequence > list[n-1].Event.Sequence {
		n++
	}
	return n
}

func (c *copier) append(ctx context.Context, list []Entry) error {
	run, first := list[0].Event.RunID, list[0].Event.Sequence
	if c.refused[run] {
		return nil
	}
	next, known := c.next[run]
	if !known {
		info, err := c.s.Run(ctx, run)
		if err != nil && !errors.Is(err, ErrNoRun) {
			return err
		}
		next = info.Next
	}
	err := c.s.Append(ctx, run, min(next, first), list...)
	if conflict := (*ConflictError)(nil); errors.As(err, &conflict) {
		c.refused[run] = true
		c.conflicts.Add(copyErrors, fmt.Errorf("runstore: the store has other events of run %s, which is copied no further: %w", jsonwire.Brief(run), err))
		return nil
	}
	c.next[run] = max(next, list[len(list)-1].Event.Sequence+1)
	return err
}
