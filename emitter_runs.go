package agentevents

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/reentry"
)

// Run returns the run of that id, a new one if none is open; the empty id
// mints one. The run is released by its terminal event or by [Run.Close].
//
// The ids of the last 65,536 released runs are refused with [ErrRunReleased]:
// their sequences must not begin again (continue such a run with Resume). An id
// beyond these begins a new run. Beyond EmitterOptions.MaxRuns a run is refused
// with [ErrTooManyRuns]. Run waits for no other run.
func (e *Emitter) Run(id string) (*Run, error) {
	if !e.ok() {
		return nil, ErrZeroValue
	}
	if id == "" {
		id = e.newID()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed.Load() {
		return nil, fmt.Errorf("%w: the emitter opens no run (run %s)", ErrClosed, jsonwire.Brief(id))
	}
	s := e.runs[id]
	if s == nil {
		if _, ok := e.released[id]; ok {
			return nil, fmt.Errorf("%w (run %s)", ErrRunReleased, jsonwire.Brief(id))
		}
		var err error
		m := newMachine(&RunState{RunID: id})
		m.goBy(e.opts.Lifecycle)
		if s, err = e.open(m); err != nil {
			return nil, err
		}
	}
	return newRun(s, Scope{}), nil
}

// Lookup returns a handle to the run of that id, and false when no run of that id is
// open. It opens none, so the id may come from anywhere. Lookup waits for no run.
func (e *Emitter) Lookup(id string) (*Run, bool) {
	if !e.ok() {
		return nil, false
	}
	e.mu.Lock()
	s := e.runs[id]
	e.mu.Unlock()
	if s == nil {
		return nil, false
	}
	return newRun(s, Scope{}), true
}

// Runs yields a handle to each run that is open when the loop begins, in the order of
// their ids. The loop may do anything; it waits for no run.
func (e *Emitter) Runs() iter.Seq[*Run] {
	return func(yield func(*Run) bool) {
		if !e.ok() {
			return
		}
		for _, s := range e.openRuns() {
			if !yield(newRun(s, Scope{})) {
				return
			}
		}
	}
}

// openRuns returns the open runs in the order of their ids.
func (e *Emitter) openRuns() []*runState {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.SortedFunc(maps.Values(e.runs), byRunID)
}

// lateRuns returns the released runs that have streams, in the order of their ids.
func (e *Emitter) lateRuns() (runs []*runState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.released {
		if s := r.end.late.Load(); s != nil {
			runs = append(runs, s)
		}
	}
	slices.SortFunc(runs, byRunID)
	return runs
}

func byRunID(a, b *runState) int { return strings.Compare(a.m.RunID, b.m.RunID) }

// Resume continues a run where a snapshot of it ends: sequences, steps, open calls, the session and
// everything else the rules are about go on. The run must not be open here; handles of it from
// before return [ErrClosed] from then on, and text that is held back of their late deltas is
// recorded by the new handle. Resume waits for no run: while such a handle is emitting an event it
// returns an error. A run that has ended accepts only the events that may follow its end (rule
// terminal-last), not even run.resumed.
//
// The snapshot of a run that has begun needs a NextSequence. Snapshots in the form of the resume
// specification have none. A snapshot that is older than this emitter's last event of the run is
// refused: its sequences would be used twice. Events that a required sink failed to take do not
// count, nor deltas at the end that no required log gets. A [Resumer] decides for itself.
//
// Each sink that is a [Resumer] gets a copy of the snapshot before any event. When
// a required one fails, the run is closed again and Resume returns a [*SinkError].
func (e *Emitter) Resume(snapshot *RunSnapshot) (*Run, error) {
	if !e.ok() {
		return nil, ErrZeroValue
	}
	if err := snapshot.complete(); err != nil {
		return nil, fmt.Errorf("agentevents: Resume: %w", err)
	}
	if snapshot.RunID == "" {
		return nil, errors.New("agentevents: Resume needs a snapshot with a run id")
	}
	if snapshot.NextSequence == 0 && snapshot.begun() {
		return nil, fmt.Errorf("agentevents: Resume: the snapshot of run %s has no NextSequence: new events would be lost as repeated ones; package resume takes the position from its caller", jsonwire.Brief(snapshot.RunID))
	}
	m := snapshot.machine(e.opts.Lifecycle) // takes its time when the snapshot is large
	s, err := e.reopen(m, snapshot.SessionID)
	if err != nil {
		return nil, err
	}
	if err := s.resumed(snapshot); err != nil {
		return nil, join(err, newRun(s, Scope{}).Close())
	}
	return newRun(s, Scope{}), nil
}

// reopen registers a run that goes on. Its lock is held until the sinks were told.
func (e *Emitter) reopen(m *machine, session string) (*runState, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed.Load() {
		return nil, fmt.Errorf("%w: the emitter opens no run (run %s)", ErrClosed, jsonwire.Brief(m.RunID))
	}
	if e.runs[m.RunID] != nil {
		return nil, fmt.Errorf("agentevents: Resume: run %s is open: close it first", jsonwire.Brief(m.RunID))
	}
	old, again := e.released[m.RunID]
	if again {
		if !old.end.mu.TryLock() {
			return nil, errRecording(m.RunID)
		}
		defer old.end.mu.Unlock()
		if old.end.closed.Load() && !old.end.settled {
			return nil, errRecording(m.RunID)
		}
		if m.NextSequence < old.end.kept {
			return nil, fmt.Errorf("agentevents: Resume: the snapshot of run %s is stale: it goes on with sequence %d, and the log has the events before %d: new events would be lost as repeated ones",
				jsonwire.Brief(m.RunID), m.NextSequence, old.end.kept)
		}
	}
	s, err := e.open(m)
	if err != nil {
		return nil, err
	}
	s.end.mu.Lock() // nobody else has it yet
	s.resumes = resumes{true, true}
	s.session = session
	if again {
		s.end.takeOver(old.end, s)
	}
	return s, nil
}

// takeOver makes next, which has the ending, the one run that records. The handles of the run
// before would give the sequences a second time; next records the text that it holds back. Both
// locks are held.
func (end *ending) takeOver(old *ending, next *runState) {
	end.kept = old.kept
	old.gone = true
	old.closed.Store(true)
	if late := old.late.Swap(nil); late != nil {
		next.streams, late.streams = late.streams, nil
	}
}

// errRecording is the error of a run that may still get an event.
func errRecording(run string) error {
	return fmt.Errorf("agentevents: Resume: an event of run %s is still being recorded, and the snapshot lacks it: Resume with a later snapshot", jsonwire.Brief(run))
}

// resumed tells the sinks that the run goes on, and lets go of its lock.
func (s *runState) resumed(snapshot *RunSnapshot) error {
	e := s.e
	var done outcome
	err := func() (err error) {
		defer s.end.mu.Unlock()
		defer s.leave()
		if !s.enter() {
			return ErrClosed
		}
		c := reentry.New(context.Background(), e, &s.holder, nil)
		for _, k := range e.sinks {
			if k.resumer == nil {
				continue
			}
			if cerr := k.resumeRun(c, snapshot.clone()); cerr != nil {
				err = e.failed(err, k, &Event{}, &done, cerr)
			}
		}
		return err
	}()
	if s.end.closed.Load() { // by Run.Close, which did not wait
		err = join(err, s.close(context.Background()))
	}
	s.report(&done)
	return err
}

// released tells the sinks, once, that the run is released. end.mu is held.
func (s *runState) released(c *reentry.Call, done *outcome) (err error) {
	s.end.settled = true
	if s.told || s.end.gone {
		return nil
	}
	s.told = true
	s.hangUp()
	for _, k := range s.e.sinks {
		if k.releaser == nil {
			continue
		}
		if cerr := k.releaseRun(c, s.m.RunID); cerr != nil {
			err = s.e.failed(err, k, &Event{}, done, cerr)
		}
	}
	return err
}

// open registers a run. e.mu is held.
func (e *Emitter) open(m *machine) (*runState, error) {
	if e.opts.MaxRuns > 0 && len(e.runs) >= e.opts.MaxRuns {
		return nil, fmt.Errorf("%w (limit %d)", ErrTooManyRuns, e.opts.MaxRuns)
	}
	s := &runState{e: e, m: m, end: new(ending), lane: uint8(e.opened % lanes), derives: m.named() == LifecycleDerived}
	e.opened++
	e.runs[m.RunID] = s
	return s, nil
}

// release forgets a run. Its handles still accept the events that may follow the end.
func (e *Emitter) release(s *runState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := s.m.RunID
	if e.runs[id] != s {
		return
	}
	delete(e.runs, id)
	if len(e.order) < maxReleased {
		e.order = append(e.order, id)
	} else {
		oldest := &e.order[e.releases%maxReleased]
		if e.released[*oldest].number == e.releases-maxReleased { // it was not resumed and released again
			delete(e.released, *oldest)
		}
		*oldest = id
	}
	e.released[id] = release{e.releases, s.end}
	e.releases++
}
