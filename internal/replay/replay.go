// Package replay maps a recorded log of any number of runs to spans. It keeps a mapper for every
// run, closes everything that the log leaves open, and counts events without a span.
package replay

import (
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/spans"
)

// maxEnded is how many runs that have ended keep their mapper: events may come late.
const maxEnded = 64

// maxHeld is how many events of a run wait for the first one that has a time.
const maxHeld = 64

// A Log maps the events of a log. It is not for concurrent use.
type Log struct {
	Counts Counts // so far

	o     spans.Options
	runs  map[string]*run
	order []*run // runs that are not forgotten, in the order in which they appear
	ended int    // of them
}

// Counts has the numbers of spans and of events without one.
type Counts struct {
	Runs     int            // those without any time only until they are left out
	Spans    int            // that have ended
	Closed   map[string]int // of them, without an event of their end: see spans.ReasonShutdown and its like
	Repeated int            // events left out: their sequence is not above the earlier ones of their run
	Late     int            // events left out: they come long after the end of their run
	Unplaced int            // events that no span shows: theirs has ended, or there is none
	Unopened int            // ends without a beginning
	Untimed  int            // events without a time: they get the time of the one before, else of the first that has one
	Timeless int            // events left out: they have no time, and no event of their run has (or none of the first 64)
	NoDate   int            // events of 1970: their clock has no date
}

// A run is one run of the log.
type run struct {
	m    *spans.Mapper // nil once it is forgotten
	next uint64        // lowest sequence of the next event
	low  uint64        // the value of next before the last event
	over bool
	time time.Time           // of the last event that has one
	held []agentevents.Event // came before any that has one
}

// repeats reports whether the run has had the sequence. One between the last event's and the one
// before is new: then the last one was false.
func (r *run) repeats(sequence uint64) bool {
	return sequence < r.next && (sequence < r.low || sequence+1 == r.next)
}

// New returns a log without events. Ended is called for every span in the order of the ends, and may
// keep it. One whose start is not in the log so far waits for that: see [spans.Options].
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
	o.Late = true
	l.o = o
	return l
}

// Feed maps one event.
func (l *Log) Feed(ev *agentevents.Event) {
	r := l.runs[ev.RunID]
	switch {
	case r == nil:
		id := strings.Clone(ev.RunID) // which outlives the memory that the lines of a log share
		r = &run{m: spans.New(id, l.o)}
		l.runs[id] = r
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
	l.feed(r, ev)
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

// feed maps an event. An event without a time has the time of the event before it. Before the first
// time of the run it waits for that. OTLP cannot express 1970 and earlier times, and readers make
// 1970 up where a format has no time, so both count as unknown.
func (l *Log) feed(r *run, ev *agentevents.Event) {
	switch {
	case ev.Time.After(time.Unix(0, 0)):
		if ev.Time.Year() == 1970 {
			l.Counts.NoDate++
		}
		r.time = ev.Time
		held := r.held
		r.held = nil
		for i := range held {
			l.feed(r, &held[i])
		}
	case !r.time.IsZero():
		l.Counts.Untimed++
		r.m.FeedAt(ev, r.time)
		return
	case len(r.held) < maxHeld:
		r.held = append(r.held, *ev)
		return
	default:
		l.Counts.Timeless++
		return
	}
	r.m.Feed(ev)
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

// Close ends everything that the log leaves open, at the times of the last events.
func (l *Log) Close() {
	for _, r := range l.order {
		l.release(r)
	}
	l.order, l.ended = nil, 0
}

func (l *Log) release(r *run) {
	l.Counts.Timeless += len(r.held)
	if r.time.IsZero() {
		l.Counts.Runs--
	}
	r.held = nil
	r.m.Release()
	l.Counts.Unopened += r.m.Unmatched
	r.m = nil
}
