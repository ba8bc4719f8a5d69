package runstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// maxPending bounds the bytes of a run's events that the store did not take.
const maxPending = 16 << 20

// A Sink appends the events that an emitter records to a [Store]. It comes from [NewSink] or
// [NewSinkWithDeltas]. It is the first of EmitterOptions.Sinks, so that the others get no event
// that the store refuses, and neither in [agentevents.BestEffort] nor in [agentevents.Buffered],
// where it could not close a run. Emit returns when the store has committed its event.
//
// A [*ConflictError] closes the run ([agentevents.ErrFenced]), and so do a [*ClaimError] and [ErrRefused]. After any
// other error the sink keeps the event and appends it again before the run's next one, and at
// Flush: a store that fails for a while loses nothing, unless the process ends before it works
// again. If more than 16 MiB wait, the run is closed.
//
// Emitter.Resume is refused with a [*ConflictError] unless the snapshot ends where the store does,
// as the snapshot of [Restore] does.
//
// Close of the emitter leaves the store open. The methods may be called concurrently, those
// for the same run one at a time, as an emitter does.
type Sink struct {
	store Store
	mu    sync.Mutex
	runs  map[string]*sinkRun
}

// A sinkRun is a run that is written.
type sinkRun struct {
	mu     sync.Mutex
	expect uint64
	wait   []Entry // that the store did not take
	size   int     // of their lines
	fenced error   // why nothing more is appended
	joins  bool    // the run has ended, or began with events that are left out
}

// NewSink returns a [Sink] in [agentevents.WithoutDeltas]: the store gets every event but the
// deltas, and a token costs no commit. Texts, reasoning and arguments are in the events that
// end their blocks, so the snapshot of a finished run lacks nothing. Neither does the
// conversation of an agent (resume.Conversation), but the text of a model call that overlaps
// another one or a compaction may stand in a later answer. A crash loses the blocks that are
// open, such as the partial answer of a model call. A block that no event ends is never in the
// store: a program that emits deltas alone takes [NewSinkWithDeltas].
func NewSink(s Store) agentevents.Sink { return agentevents.WithoutDeltas(NewSinkWithDeltas(s)) }

// NewSinkWithDeltas returns a sink that appends every event to the store, also deltas. A crash
// loses no token, [Store].Watch shows each one, and each one costs a commit.
func NewSinkWithDeltas(s Store) *Sink { return &Sink{store: s, runs: map[string]*sinkRun{}} }

// CheckSink returns an error unless the sink comes from its constructor and has a store; see
// [agentevents.Checker].
func (s *Sink) CheckSink() error {
	if s == nil || s.store == nil {
		return errors.New("the sink has no store: it comes from runstore.NewSink or NewSinkWithDeltas")
	}
	return nil
}

// WriteEvent appends the event.
func (s *Sink) WriteEvent(ctx context.Context, ev agentevents.Event) error {
	e, err := NewEntry(ev)
	if err != nil {
		return err
	}
	return s.write(ctx, e)
}

// WriteLine appends the event, whose line is already encoded.
func (s *Sink) WriteLine(ctx context.Context, ev agentevents.Event, line []byte) error {
	return s.write(ctx, Entry{ev, string(line)})
}

func (s *Sink) write(ctx context.Context, e Entry) error {
	if s.CheckSink() != nil {
		return agentevents.ErrZeroValue
	}
	id := e.Event.RunID
	s.mu.Lock()
	r := s.runs[id]
	known := r != nil
	if !known {
		r = &sinkRun{expect: e.Event.Sequence, joins: e.Event.Sequence > 0}
		if !r.joins {
			s.runs[id], known = r, true
		}
	}
	s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fenced != nil {
		return r.fenced
	}
	next := r.expect
	if n := len(r.wait); n > 0 {
		next = r.wait[n-1].Event.Sequence + 1
	}
	if e.Event.Sequence < next { // of another emitter with the same sink
		return &ConflictError{id, e.Event.Sequence, next}
	}
	r.wait = append(r.wait, e)
	r.size += len(e.Line)
	err := r.append(ctx, s.store)
	if !known && (err != nil || !r.joins) {
		s.mu.Lock()
		s.runs[id] = r
		s.mu.Unlock()
	}
	return err
}

// append appends the waiting events in batches: an append that fails costs the same for any number
// of them. r.mu is held.
func (r *sinkRun) append(ctx context.Context, s Store) error {
	for len(r.wait) > 0 && r.fenced == nil {
		some := r.wait[:batch(r.wait)]
		id := some[0].Event.RunID
		err := s.Append(ctx, id, r.expect, some...)
		var conflict *ConflictError
		switch {
		case err == nil:
			r.expect = some[len(some)-1].Event.Sequence + 1
			for _, e := range some {
				r.size -= len(e.Line)
			}
			clear(some)
			if r.wait = r.wait[len(some):]; len(r.wait) == 0 {
				r.wait = some[:0]
			}
			continue
		case errors.As(err, &conflict) && r.joins && conflict.Next < r.expect: // deltas before it are left out
			r.expect, r.joins = conflict.Next, conflict.Next > 0
			continue
		case errors.As(err, &conflict), errors.Is(err, ErrClaimed):
			r.fenced = err
		case errors.Is(err, ErrRefused):
			r.fenced = fmt.Errorf("%w: %w", agentevents.ErrFenced, err)
		case r.size > maxPending:
			r.fenced = fmt.Errorf("%w: the store of run %s does not take its events from sequence %d on: %w",
				agentevents.ErrFenced, jsonwire.Brief(id), some[0].Event.Sequence, err)
		default:
			return err
		}
		r.wait = nil
	}
	return r.fenced
}

// The bounds of a batch, which is appended at once: so many events or bytes of lines, but one event
// at least.
const (
	batchEvents = 256
	batchBytes  = 1 << 20
)

// batch returns how many of the entries are appended at once.
func batch(entries []Entry) int {
	n, size := 1, len(entries[0].Line)
	for n < len(entries) && n < batchEvents && size+len(entries[n].Line) <= batchBytes {
		size += len(entries[n].Line)
		n++
	}
	return n
}

// Commit returns when everything that the store took is durable.
func (s *Sink) Commit(ctx context.Context) error {
	if s.CheckSink() != nil {
		return agentevents.ErrZeroValue
	}
	return s.store.Commit(ctx)
}

// Flush appends the events that the store refused before, and commits.
func (s *Sink) Flush(ctx context.Context) error {
	if s.CheckSink() != nil {
		return agentevents.ErrZeroValue
	}
	s.mu.Lock()
	runs := make([]*sinkRun, 0, len(s.runs))
	for _, r := range s.runs {
		runs = append(runs, r)
	}
	s.mu.Unlock()
	var errs []error
	for _, r := range runs {
		r.mu.Lock()
		if len(r.wait) > 0 {
			errs = append(errs, r.append(ctx, s.store))
		}
		r.mu.Unlock()
	}
	return errors.Join(append(errs, s.store.Commit(ctx))...)
}

// ResumeRun implements [agentevents.Resumer]. The snapshot has to end where the store does.
func (s *Sink) ResumeRun(ctx context.Context, snapshot *agentevents.RunSnapshot) error {
	if s.CheckSink() != nil {
		return agentevents.ErrZeroValue
	}
	info, err := s.store.Run(ctx, snapshot.RunID)
	if err != nil && !errors.Is(err, ErrNoRun) {
		return err
	}
	if info.Next != snapshot.NextSequence {
		return &ConflictError{snapshot.RunID, snapshot.NextSequence, info.Next}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[snapshot.RunID] = &sinkRun{expect: info.Next}
	return nil
}

// ReleaseRun implements [agentevents.Releaser]: it appends the waiting events, and forgets a run
// without any.
func (s *Sink) ReleaseRun(ctx context.Context, runID string) error {
	s.mu.Lock()
	r := s.runs[runID]
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fenced != nil {
		return nil // it was told; a run that is fenced is remembered, so that no late event slips in
	}
	if err := r.append(ctx, s.store); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, runID)
	return nil
}
