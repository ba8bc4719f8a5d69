package eventtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/agentevents/agentevents"
)

// LawOptions relax the laws. The zero LawOptions are for a whole log of runs that have ended.
type LawOptions struct {
	// Lifecycle is the table of legal transitions of a log that names none, as in
	// [agentevents.FoldOptions].
	Lifecycle agentevents.Lifecycle
	// Open allows runs, agents and calls that have not ended.
	Open bool
	// Gaps allows sequences that are missing, as in a log [agentevents.WithoutDeltas].
	Gaps bool
	// From are snapshots that runs of the log go on from: their first event has the next
	// sequence. A run without one begins at 0.
	From []*agentevents.RunSnapshot
}

// CheckLaws returns the faults of a log, joined in one error, or nil:
//
//   - rules: an event broke a rule; the error is an [*agentevents.RuleError].
//   - sequences: the events of each run count from 0 without gaps.
//   - ids: no two events have the same id.
//   - ends: a run that has started has ended, and so have its agents, calls and model
//     calls.
//   - lines: each event is the same after it was written as a line and read.
//   - folds: a fold of the events, a fold of their lines, and folds that go on from a
//     snapshot in between as JSON, give the same snapshot.
//
// The log has the events of each run in their order, as any sink gets them.
func CheckLaws(events []agentevents.Event, o LawOptions) error {
	from := map[string]*agentevents.RunSnapshot{}
	for _, s := range o.From {
		from[s.RunID] = s
	}
	return checkLaws(events, o, from, nil)
}

// WantLaws fails the test for each of the laws of [CheckLaws] that the recorded events break. A run
// that was resumed goes on from the snapshot that the recorder was given. One more law: the fold of
// the events equals the fold that went on while they were recorded. A payload that is changed after
// Emit breaks it.
//
// Events that [Recorder.Filter] leaves out of a run are a gap.
func (r *Recorder) WantLaws(t testing.TB, o LawOptions) {
	t.Helper()
	r.mu.Lock()
	events, from, live := slices.Clone(r.events), maps.Clone(r.from), map[string][]byte{}
	for id, fold := range r.folds {
		live[id] = fold.Snapshot().AppendJSON(nil)
	}
	if o.Lifecycle == "" {
		o.Lifecycle = r.lifecycle
	}
	r.mu.Unlock()
	for _, s := range o.From {
		put(&from, s.RunID, s)
	}
	if err := checkLaws(events, o, from, live); err != nil {
		t.Errorf("eventtest: the log breaks laws:\n%v", err)
	}
}

func checkLaws(events []agentevents.Event, o LawOptions,
	from map[string]*agentevents.RunSnapshot, live map[string][]byte) error {
	runs := map[string][]agentevents.Event{}
	var order []string
	ids := map[string]agentevents.Event{}
	var errs []error
	for _, ev := range events {
		if runs[ev.RunID] == nil {
			order = append(order, ev.RunID)
		}
		runs[ev.RunID] = append(runs[ev.RunID], ev)
		if first, ok := ids[ev.ID]; ok {
			errs = append(errs, broken(ev, "ids", "its id %s is also the id of sequence %d of run %s",
				spell(cut(ev.ID)), first.Sequence, spell(cut(first.RunID))))
			continue
		}
		ids[ev.ID] = ev
	}
	for _, id := range order {
		l := laws{o: o, events: runs[id], from: from[id], live: live[id]}
		l.check()
		errs = append(errs, l.errs...)
	}
	return errors.Join(errs...)
}

// laws checks one run.
type laws struct {
	o      LawOptions
	events []agentevents.Event
	from   *agentevents.RunSnapshot // or nil
	live   []byte                   // the snapshot of the fold that went on, or nil
	errs   []error
}

// broken returns the error of a law that an event breaks.
func broken(ev agentevents.Event, law, format string, args ...any) error {
	return fmt.Errorf("%s: run %s, sequence %d (%s): %s",
		law, spell(cut(ev.RunID)), ev.Sequence, Describe(ev), fmt.Sprintf(format, args...))
}

func (l *laws) fail(ev agentevents.Event, law, format string, args ...any) {
	l.errs = append(l.errs, broken(ev, law, format, args...))
}

func (l *laws) check() {
	next := uint64(0)
	if l.from != nil {
		next = l.from.NextSequence
	}
	for _, ev := range l.events {
		if ev.Sequence < next || ev.Sequence > next && !l.o.Gaps {
			l.fail(ev, "sequences", "the next one is %d", next)
		}
		next = ev.Sequence + 1
	}
	last := l.events[len(l.events)-1]
	whole, err := l.fold(l.from, l.events)
	if err != nil {
		l.fail(last, "folds", "%v", err)
		return
	}
	l.rules(whole)
	text := whole.AppendJSON(nil)
	if read := l.throughLines(); len(read) == len(l.events) {
		s, err := l.fold(l.from, read)
		l.same(text, s, err, "of the lines")
	}
	for i := range maxCuts {
		at := len(l.events) * (i + 1) / (maxCuts + 1)
		s, err := l.inPieces(at)
		l.same(text, s, err, "in two pieces, cut after "+events(at)+",")
	}
	if l.live != nil && !bytes.Equal(text, l.live) {
		l.fail(last, "folds", "the fold that went on while the events were recorded is another one%s",
			firstDifference(text, l.live))
	}
	if !l.o.Open {
		l.ends(whole)
	}
}

// maxCuts is at how many events a log is cut for a fold that goes on.
const maxCuts = 4

// rules tells the violations that were not there before.
func (l *laws) rules(s *agentevents.RunSnapshot) {
	known, count := 0, s.ViolationCount
	if l.from != nil {
		known, count = len(l.from.Violations), count-l.from.ViolationCount
	}
	for _, v := range s.Violations[known:] {
		l.errs = append(l.errs, fmt.Errorf("rules: %w", v))
	}
	if more := count - len(s.Violations[known:]); more > 0 {
		l.errs = append(l.errs, fmt.Errorf("rules: run %s: %d more", spell(cut(s.RunID)), more))
	}
}

// fold returns the snapshot of events that come after another one, or after none.
func (l *laws) fold(from *agentevents.RunSnapshot, events []agentevents.Event) (*agentevents.RunSnapshot, error) {
	return foldFrom(from, events, agentevents.FoldOptions{Lifecycle: l.o.Lifecycle})
}

// foldFrom folds events that come after a snapshot, or after none.
func foldFrom(from *agentevents.RunSnapshot, events []agentevents.Event,
	o agentevents.FoldOptions) (*agentevents.RunSnapshot, error) {
	fold := agentevents.NewFold(o)
	if from != nil {
		var err error
		if fold, err = agentevents.ResumeFold(from, o); err != nil {
			return nil, err
		}
	}
	for _, ev := range events {
		fold.Apply(ev)
	}
	return fold.Snapshot(), nil
}

// throughLines returns the events as they are read from their lines.
func (l *laws) throughLines() (read []agentevents.Event) {
	for _, ev := range l.events {
		line, err := ev.AppendJSON(nil)
		if err != nil {
			l.fail(ev, "lines", "%v", err)
			continue
		}
		var back agentevents.Event
		if err := json.Unmarshal(line, &back); err != nil {
			l.fail(ev, "lines", "%v", err)
			continue
		}
		if again, err := back.AppendJSON(nil); err != nil || !bytes.Equal(line, again) {
			l.fail(ev, "lines", "it is another event when it is read%s", firstDifference(line, again))
		}
		read = append(read, back)
	}
	return read
}

// same checks that another fold gives the snapshot.
func (l *laws) same(want []byte, s *agentevents.RunSnapshot, err error, which string) {
	last := l.events[len(l.events)-1]
	if err != nil {
		l.fail(last, "folds", "%v", err)
		return
	}
	if got := s.AppendJSON(nil); !bytes.Equal(got, want) {
		l.fail(last, "folds", "the fold %s is another one%s", which, firstDifference(want, got))
	}
}

// inPieces returns the snapshot of a fold that goes on from the snapshot at an event.
func (l *laws) inPieces(at int) (*agentevents.RunSnapshot, error) {
	s, err := l.fold(l.from, l.events[:at])
	if err != nil {
		return nil, err
	}
	var read agentevents.RunSnapshot
	if err := json.Unmarshal(s.AppendJSON(nil), &read); err != nil {
		return nil, err
	}
	return l.fold(&read, l.events[at:])
}

// ends checks that nothing is open.
func (l *laws) ends(s *agentevents.RunSnapshot) {
	open := func(what, id string) {
		l.errs = append(l.errs, fmt.Errorf("ends: run %s: %s has not ended", spell(cut(s.RunID)), what+" "+spell(cut(id))))
	}
	started := slices.ContainsFunc(l.events,
		func(ev agentevents.Event) bool { return ev.Kind() == agentevents.KindRunStarted })
	switch s.Status {
	case agentevents.RunStatusCompleted, agentevents.RunStatusFailed, agentevents.RunStatusCancelled:
	default:
		if started || l.from != nil {
			l.errs = append(l.errs, fmt.Errorf("ends: run %s has not ended: it is %s", spell(cut(s.RunID)), s.Status))
		}
	}
	for _, a := range s.AgentsInOrder() {
		if a.Open {
			open("agent", a.AgentID)
		}
	}
	for _, c := range s.OpenCalls {
		open("call", c.CallID)
	}
	for _, c := range s.OpenModelCalls {
		open("model call", c.ModelCallID)
	}
}

// firstDifference returns the first member in which two JSON texts differ, for a failure.
func firstDifference(want, got []byte) string {
	diffs := differences("", decode(got), decode(want))
	switch n := len(diffs); n {
	case 0:
		return ""
	case 1:
		return ": " + diffs[0]
	default:
		return ": " + diffs[0] + ", and " + strconv.Itoa(n-1) + " more"
	}
}

// put sets a member of a map, which may be nil.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}
