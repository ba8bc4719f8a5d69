package spans

import (
	"github.com/agentevents/agentevents"
)

// A Mapper maps the events of one run to spans. It is not for concurrent use.
type Mapper struct {
	o     Options
	runID string
}

// New returns a mapper for the run. Events of other runs must not be fed.
func New(runID string, o Options) *Mapper {
	return &Mapper{o: o, runID: runID}
}

// Feed maps one event. It returns the span that the event belongs to, which may have
// ended, or nil: its ids are the event's place in the trace.
func (m *Mapper) Feed(ev *agentevents.Event) *Span { return nil }

// Close ends all open spans at the time of their last event, for the reason. With
// [ReasonShutdown] at the end of a log whose run has ended there are none.
func (m *Mapper) Close(reason string) {}

// Open returns the number of open spans.
func (m *Mapper) Open() int { return 0 }
