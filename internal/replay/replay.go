// Package replay maps a recorded log of any number of runs to spans. It keeps a mapper for
// every run, closes what the log leaves open, and counts what becomes of no span.
package replay

import (
	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/spans"
)

// maxEnded is how many runs that have ended keep their mapper: events may come late.
const maxEnded = 64

// A Log maps the events of a log. It is not for concurrent use.
type Log struct {
	Counts Counts // so far

	o     spans.Options
	runs  map[string]*run
	order []*run // runs that are not forgotten, in the order in which they appear
	ended int    // of them
}

// Counts say what a log became.
type Counts struct {
	Runs     int
	Spans    int            // that have ended
	Closed   map[string]int // of them, without an event of their end: see spans.ReasonShutdown and its like
	Repeated int            // events left out: their sequence does not come after those of their run
	Late     int            // events left out: they come long after the end of their run
	Unplaced int            // events that no span shows: theirs has ended, or there is none
	Unopened int            // ends of what has not begun
}

// A run is one run of the log.
type run struct {
	m    *spans.Mapper // nil once it is forgotten
	next uint64        // lowest sequence of the next event
	low  uint64        // what next was before the last event
	over bool
}

// repeats reports whether the run has had the sequence. One between those of the last event
// and of the event before it is new: then the last one was false.
func (r *run) repeats(sequence uint64) bool {
	return sequence < r.next && (sequence < r.low || sequence+1 == r.next)
}

// New returns a log without events. Ended is called for every span in the order of the ends,
// and may keep it.
func New(o spans.Options) *Log {
	l := &Log{runs: map[string]*run{}}
	ended, noted := o.Ended, o.Noted
	o.Ended = func(s *spans.Span) {
		l.Counts.Spans++
		if s.ClosedReason != "" {
			if l.Counts.Closed == nil {
				l.Counts.Closed = map[string]int{}
			}
			l.Counts.Closed[s.ClosedReason]++
		}
		if ended != nil {
			ended(s)
		}
	}
	o.Noted = func(s *spans.Span, p *spans.Point) {
		if s == nil || !s.End.IsZero() {
			l.Counts.Unplaced++
		}
		if noted != nil {
			noted(s, p)
		}
	}
	l.o = o
	return l
}

// Feed maps one event.
func (l *Log) Feed(ev *agentevents.Event) {
	r := l.runs[ev.RunID]
	switch {
	case r == nil:
		r = &run{m: spans.New(ev.RunID, l.o)}
		l.runs[ev.RunID] = r
		l.order = append(l.order, r)
		l.Counts.Runs++
	case r.repeats(ev.Sequence):
		l.Counts.Repeated++
		return
	case r.m == nil:
		l.Counts.Late++
		return
	}
	if ev.Sequence >= r.next {
		r.low = r.next
	}
	r.next = ev.Sequence + 1
	r.m.Feed(ev)
	switch ev.Payload.(type) {
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		if !r.over {
			r.over = true
			l.ended++
		}
	}
	if l.ended > maxEnded {
		l.forget()
	}
}

// forget closes the first run that has ended, and frees its mapper.
func (l *Log) forget() {
	for i, r := range l.order {
		if r.over {
			l.release(r)
			l.order = append(l.order[:i], l.order[i+1:]...)
			l.ended--
			return
		}
	}
}

// Close ends what the log leaves open, at the times of the last events.
func (l *Log) Close() {
	for _, r := range l.order {
		l.release(r)
	}
	l.order, l.ended = nil, 0
}

func (l *Log) release(r *run) {
	r.m.Release()
	l.Counts.Unopened += r.m.Unmatched
	r.m = nil
}
