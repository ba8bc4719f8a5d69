package runstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Store keeps the events of runs. Its methods may be called concurrently. Package
// runstoretest tests the promises that are made here.
//
// The store's errors wrap the cause, and [agentevents.ErrClosed] once it is closed.
type Store interface {
	// Append adds events to the run whose next sequence is expect: 0 for a new run, else one more
	// than the sequence of the run's last event. The sequences of the entries rise, and the first
	// is expect or higher: a writer may leave out events, as [agentevents.WithoutDeltas] does.
	//
	// When the run has another next sequence, the error is a [*ConflictError] and nothing
	// was written, unless these very events follow there already: then those that are
	// missing are added, so that the same append again changes nothing. Events are the same
	// when their sequences, ids and lines are.
	//
	// After an error that wraps [ErrRefused] nothing was written, and the same append fails again.
	// After any other error the events may or may not be in the store. The same append
	// again settles it. The slice of entries is the caller's.
	Append(ctx context.Context, runID string, expect uint64, entries ...Entry) error
	// Commit returns when everything that was appended before the call is durable. Events
	// are acknowledged by it. A store in which Append is durable returns nil.
	Commit(ctx context.Context) error
	// Load yields the run's events from the sequence on, in order, up to the last one that
	// was appended before the call. It yields nothing of a run that the store does not know.
	// After an error there are no more.
	Load(ctx context.Context, runID string, from uint64) iter.Seq2[Entry, error]
	// Watch is Load, and then waits for committed events. It ends with the context, without an
	// error, or when the store is closed. The run may begin later. Nothing of it is left out or
	// repeated, however slow the loop is.
	Watch(ctx context.Context, runID string, from uint64) iter.Seq2[Entry, error]
	// Run tells about a run. The error is [ErrNoRun] if the store does not know it.
	Run(ctx context.Context, runID string) (RunInfo, error)
	// Runs yields the runs in the order of their ids, from the first one after the given id; "" is
	// before all. A loop that ends early goes on with the last id that it had.
	Runs(ctx context.Context, after string) iter.Seq2[RunInfo, error]
	// SaveSnapshot keeps the snapshot of a run in place of the one before, unless that is newer.
	// One of a run that the store does not know or has fewer events of is refused. It is a cache,
	// so nothing depends on it being durable.
	SaveSnapshot(ctx context.Context, snapshot *agentevents.RunSnapshot) error
	// LoadSnapshot returns the snapshot that was saved last. The error is [ErrNoSnapshot] without
	// one; any other error may mean that it is damaged. [Restore] handles both. The snapshot
	// belongs to the caller.
	LoadSnapshot(ctx context.Context, runID string) (*agentevents.RunSnapshot, error)
}

// An Entry is an event as a store keeps it.
type Entry struct {
	Event agentevents.Event // the event; its payload must not be changed
	Line  string            // the text that Event.AppendJSON writes; a store has to keep it
}

// NewEntry returns the entry of an event. It fails as Event.AppendJSON does.
func NewEntry(ev agentevents.Event) (Entry, error) {
	line, err := ev.AppendJSON(nil)
	return Entry{ev, string(line)}, err
}

// ParseEntry returns the entry of a line.
func ParseEntry(line string) (Entry, error) {
	e := Entry{Line: line}
	return e, e.Event.UnmarshalJSON([]byte(line))
}

// Events turns entries, as [Store].Load yields them, into events, as resume.Conversation takes
// them. Errors are passed on.
func Events(entries iter.Seq2[Entry, error]) iter.Seq2[agentevents.Event, error] {
	return func(yield func(agentevents.Event, error) bool) {
		for e, err := range entries {
			if !yield(e.Event, err) {
				return
			}
		}
	}
}

func (e *Entry) same(f *Entry) bool {
	return e.Event.Sequence == f.Event.Sequence && e.Event.ID == f.Event.ID && e.Line == f.Line
}

// RunInfo has the position of a run.
type RunInfo struct {
	RunID string // the run
	Next  uint64 // one more than the sequence of its last event
	// Terminal is the kind of the event that ended the run: run.completed, run.failed or
	// run.cancelled. It is "" before that, and for runs that no such event ends.
	Terminal agentevents.Kind
	// Begun and Updated are the times of the run's first and last event, by the clocks of
	// those who wrote them.
	Begun, Updated time.Time
}

// Add brings the information up to date with the run's next event. It is for stores.
func (i *RunInfo) Add(ev *agentevents.Event) {
	if i.Next == 0 {
		i.RunID, i.Begun = ev.RunID, ev.Time
	}
	i.Next, i.Updated = ev.Sequence+1, ev.Time
	switch k := ev.Kind(); k {
	case agentevents.KindRunCompleted, agentevents.KindRunFailed, agentevents.KindRunCancelled:
		i.Terminal = cmp.Or(i.Terminal, k) // the first one stands
	}
}

// ErrNoRun means that the store does not know the run.
var ErrNoRun = errors.New("runstore: the store has no such run")

// ErrRefused means that a store cannot have an event, or the run, however often it is appended: an
// id is too long for it, for example.
var ErrRefused = errors.New("runstore: the store cannot have it")

// ErrNoSnapshot means that the store has no snapshot of the run.
var ErrNoSnapshot = errors.New("runstore: the store has no snapshot of the run")

// A ConflictError reports that the run's next sequence is not the one that the writer expects:
// another writer has written to it, or events of the writer are missing. It wraps
// [agentevents.ErrFenced].
type ConflictError struct {
	RunID  string // the run
	Expect uint64 // the next sequence as the writer thinks
	Next   uint64 // as the store knows it
}

// Error has both sequences.
func (e *ConflictError) Error() string {
	run := jsonwire.Brief(e.RunID)
	switch {
	case e.Expect == 0:
		return fmt.Sprintf("runstore: run %s exists, its next sequence is %d: "+
			"it does not begin again, it is resumed", run, e.Next)
	case e.Expect < e.Next:
		return fmt.Sprintf("runstore: the next sequence of run %s is %d, not %d: another writer has gone on with it",
			run, e.Next, e.Expect)
	}
	return fmt.Sprintf("runstore: the next sequence of run %s is %d, not %d: the store lacks the events before that",
		run, e.Next, e.Expect)
}

// Unwrap returns [agentevents.ErrFenced].
func (e *ConflictError) Unwrap() error { return agentevents.ErrFenced }

// CheckAppend returns why the arguments of an append make no sense: no run id, entries of
// another run, without a line or with a broken one, sequences that do not rise. It wraps
// [ErrRefused] and is for stores.
func CheckAppend(runID string, expect uint64, entries []Entry) error {
	if runID == "" {
		return fmt.Errorf("%w: the run id is empty", ErrRefused)
	}
	least := expect
	for i := range entries {
		e := &entries[i]
		bad := ""
		switch {
		case e.Event.RunID != runID:
			bad = "it is of run " + jsonwire.Brief(e.Event.RunID)
		case e.Event.Sequence < least:
			bad = fmt.Sprintf("its sequence is %d, legal: %d or higher", e.Event.Sequence, least)
		case e.Event.Sequence == math.MaxUint64:
			bad = fmt.Sprintf("its sequence is %d, and no one follows it", e.Event.Sequence)
		case e.Line == "" || strings.Contains(e.Line, "\n"):
			bad = "its line is empty or has a newline"
		}
		if bad != "" {
			return fmt.Errorf("%w: append to run %s: entry %d: %s", ErrRefused, jsonwire.Brief(runID), i, bad)
		}
		least = e.Event.Sequence + 1
	}
	return nil
}

// CheckSnapshot returns why a snapshot is none of a run with that next sequence, which is 0 for
// a run that the store does not know: then the error is [ErrNoRun]. It is for stores.
func CheckSnapshot(s *agentevents.RunSnapshot, next uint64) error {
	switch {
	case s == nil || s.RunID == "":
		return errors.New("runstore: the snapshot has no run")
	case next == 0:
		return fmt.Errorf("%w (run %s)", ErrNoRun, jsonwire.Brief(s.RunID))
	case s.NextSequence == 0:
		return fmt.Errorf("runstore: the snapshot of run %s has no NextSequence: it names no place in the log", jsonwire.Brief(s.RunID))
	case s.NextSequence > next:
		return fmt.Errorf("runstore: the snapshot of run %s is newer than the log: "+
			"its next sequence is %d, but the log has %d", jsonwire.Brief(s.RunID), s.NextSequence, next)
	}
	return nil
}

// AppendTo is Append for a store that can compare and add: try adds the entries if expect is
// the run's next sequence, and adds nothing otherwise. It returns the next sequence as it was
// before. AppendTo does the rest: it checks the arguments, and tells the same append again from
// a conflict. It is for stores.
func AppendTo(ctx context.Context, s Store, runID string, expect uint64, entries []Entry,
	try func(expect uint64, entries []Entry) (next uint64, err error)) error {
	if err := CheckAppend(runID, expect, entries); err != nil {
		return err
	}
	first := expect
	for {
		next, err := try(expect, entries)
		if err != nil || next == expect {
			return err
		}
		conflict := &ConflictError{runID, first, next}
		if next < expect || len(entries) == 0 {
			return conflict
		}
		n, err := stored(s.Load(ctx, runID, expect), entries)
		switch {
		case err != nil:
			return err
		case n < 0:
			return conflict
		case n == len(entries):
			return nil
		}
		expect, entries = entries[n-1].Event.Sequence+1, entries[n:]
	}
}

// stored returns how many of the entries the store has, and -1 if it has others there.
func stored(has iter.Seq2[Entry, error], entries []Entry) (int, error) {
	n := 0
	for e, err := range has {
		switch {
		case err != nil:
			return 0, err
		case n == len(entries):
			return n, nil
		case !e.same(&entries[n]):
			return -1, nil
		}
		n++
	}
	if n == 0 {
		return -1, nil
	}
	return n, nil
}
