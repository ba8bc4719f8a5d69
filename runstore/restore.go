package runstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Restored is the state of a run that a store has.
type Restored struct {
	// Snapshot is the state after the run's last event. Emitter.Resume goes on from it, and
	// [Store].SaveSnapshot saves it, so that the next Restore has less to fold.
	Snapshot *agentevents.RunSnapshot
	// Folded is the number of folded events: the events after the stored snapshot, or all.
	Folded int
	// Distrust is the reason why the stored snapshot was not used. It is nil if it was used, and
	// without a snapshot.
	Distrust error
	// Coverage tells which events the store lacks between the folded ones.
	Coverage agentevents.Coverage
}

// Restore returns the state of a run: the stored snapshot with the events after it, or all events
// if no snapshot belongs to them. The error is [ErrNoRun] if the store does not know the run.
//
// The options apply to the folded events: a stored snapshot was made with the options of the
// program that saved it. OnViolation is called for the folded events only.
func Restore(ctx context.Context, s Store, runID string, o agentevents.FoldOptions) (*Restored, error) {
	info, err := s.Run(ctx, runID)
	if err != nil {
		return nil, err
	}
	snapshot, err := s.LoadSnapshot(ctx, runID)
	r := &Restored{}
	switch {
	case errors.Is(err, ErrNoSnapshot):
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		r.Distrust = err
	default:
		r.Distrust = distrust(snapshot, info)
		if r.Distrust == nil {
			r.Distrust, err = r.onto(ctx, s, snapshot, o)
			if err != nil || r.Distrust == nil {
				return r.orNil(err)
			}
		}
	}
	return r.orNil(r.fold(agentevents.NewFold(o), s.Load(ctx, runID, 0)))
}

func (r *Restored) orNil(err error) (*Restored, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// distrust returns why a snapshot is not used.
func distrust(s *agentevents.RunSnapshot, info RunInfo) error {
	switch {
	case s.RunID != info.RunID:
		return fmt.Errorf("runstore: the snapshot of run %s is of another run: %s",
			jsonwire.Brief(info.RunID), jsonwire.Brief(s.RunID))
	case s.SchemaVersion != agentevents.SchemaVersion:
		return fmt.Errorf("runstore: the snapshot of run %s has the schema version %s, not %s",
			jsonwire.Brief(s.RunID), jsonwire.Brief(s.SchemaVersion), agentevents.SchemaVersion)
	}
	return CheckSnapshot(s, info.Next)
}

// onto folds the events after a snapshot, and the last one before it again: if that event is not
// the snapshot's, the snapshot belongs to another log.
func (r *Restored) onto(ctx context.Context, s Store,
	snapshot *agentevents.RunSnapshot, o agentevents.FoldOptions) (distrust, err error) {
	told, last := o.OnViolation, snapshot.NextSequence-1
	var odd *agentevents.RuleError
	o.OnViolation = func(e *agentevents.RuleError) {
		if e.Sequence == last {
			odd = e
		} else if told != nil {
			told(e)
		}
	}
	fold, err := agentevents.ResumeFold(snapshot, o)
	if err != nil {
		return err, nil
	}
	known := false
	err = r.fold(fold, func(yield func(Entry, error) bool) {
		for e, err := range s.Load(ctx, snapshot.RunID, last) {
			known = known || err == nil && e.Event.Sequence == last
			if err == nil && !known || !yield(e, err) || odd != nil {
				return
			}
		}
	})
	if err == nil && (odd != nil || !known) {
		return fmt.Errorf("runstore: the snapshot of run %s comes from another log: the store has another event %d, or none",
			jsonwire.Brief(snapshot.RunID), last), nil
	}
	if known {
		r.Folded--
	}
	return nil, err
}

// fold folds the events.
func (r *Restored) fold(f *agentevents.Fold, events func(yield func(Entry, error) bool)) error {
	r.Folded = 0
	for e, err := range events {
		if err != nil {
			return err
		}
		f.ApplyLine(e.Event, e.Line)
		r.Folded++
	}
	r.Snapshot, r.Coverage = f.Snapshot(), f.Coverage()
	return nil
}
