package logfile

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/agentevents/agentevents"
)

// A LostError lists the events that the log lost.
type LostError struct {
	Lines  int     // how many
	Events []Range // which, by run; at most 16
	Err    error   // why
}

// A Range is a part of a run's events.
type Range struct {
	RunID       string // the run
	First, Last uint64 // sequences of the events that were lost; between them, some may not be
}

const maxRanges = 16

// Error names the events.
func (e *LostError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "logfile: %d %s lost", e.Lines, plural(e.Lines, "event is", "events are"))
	for i, r := range e.Events {
		b.WriteString([]string{": ", ", "}[min(i, 1)])
		if r.First == r.Last {
			fmt.Fprintf(&b, "%d of run %s", r.First, shown(r.RunID))
		} else {
			fmt.Fprintf(&b, "%d to %d of run %s", r.First, r.Last, shown(r.RunID))
		}
	}
	if len(e.Events) == maxRanges {
		b.WriteString(", …")
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns why.
func (e *LostError) Unwrap() error { return e.Err }

// A TornError reports a torn last line, and where its beginning is kept. The event was not
// acknowledged: it does not belong to the log.
type TornError struct {
	Log    string // the path of the log
	Offset int64  // of the line in it
	Size   int64  // bytes that were set aside
	Path   string // the file that has them
}

// Error describes the torn line and its place.
func (e *TornError) Error() string {
	return fmt.Sprintf("logfile: the last line of %s was torn at byte %d: its %d bytes are in %s", e.Log, e.Offset,
		e.Size, e.Path)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// shown is an id in an error.
func shown(id string) string {
	if len(id) > 64 {
		return fmt.Sprintf("with an id of %d bytes", len(id))
	}
	return fmt.Sprintf("%q", id)
}

// lostIn returns the error for the events of the lines.
func lostIn(lines []byte, err error) *LostError {
	lost := &LostError{Err: err}
	at := map[string]int{}
	for line := range bytes.Lines(lines) {
		lost.Lines++
		var ev agentevents.Event
		if ev.UnmarshalJSON(line) != nil {
			continue
		}
		i, known := at[ev.RunID]
		switch {
		case known:
			r := &lost.Events[i]
			r.First, r.Last = min(r.First, ev.Sequence), max(r.Last, ev.Sequence)
		case len(at) < maxRanges:
			at[ev.RunID] = len(at)
			lost.Events = append(lost.Events, Range{ev.RunID, ev.Sequence, ev.Sequence})
		}
	}
	return lost
}

// A span is the part of a log that was written to a file, from its first event to its last.
type span struct {
	lines       int
	first, last Range
}

func (s *span) add(ev *agentevents.Event) {
	r := Range{ev.RunID, ev.Sequence, ev.Sequence}
	if s.lines == 0 {
		s.first = r
	}
	s.last = r
	s.lines++
}

// join adds the span that follows.
func (s *span) join(next *span) {
	switch {
	case next.lines == 0:
	case s.lines == 0:
		*s = *next
	default:
		s.last = next.last
		s.lines += next.lines
	}
}

func (s *span) String() string {
	if s.lines == 0 {
		return "this process has written nothing to it"
	}
	return fmt.Sprintf("this process has written %d %s to it, from %d of run %s to %d of run %s",
		s.lines, plural(s.lines, "event", "events"), s.first.First, shown(s.first.RunID), s.last.Last, shown(s.last.RunID))
}
