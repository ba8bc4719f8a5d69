package openharness

import (
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// starts are the times at which agents began that have not ended, by run and
// agent. The zero starts is empty.
type starts struct {
	runs map[string]map[string]time.Time
	n    int
}

// begin notes the start of the event's agent. Starts of runs that end nowhere do
// not grow it without bound.
func (s *starts) begin(ev *agentevents.Event) {
	if s.n >= dialect.MaxCalls {
		*s = starts{}
	}
	agents := s.runs[ev.RunID]
	if agents == nil {
		agents = map[string]time.Time{}
		if s.runs == nil {
			s.runs = map[string]map[string]time.Time{}
		}
		s.runs[strings.Clone(ev.RunID)] = agents // and not its line
	}
	before := len(agents)
	agents[strings.Clone(agentOf(ev))] = ev.Time
	s.n += len(agents) - before
}

// of returns when the event's agent began.
func (s *starts) of(ev *agentevents.Event) (time.Time, bool) {
	t, ok := s.runs[ev.RunID][agentOf(ev)]
	return t, ok
}

// end forgets the event's agent.
func (s *starts) end(ev *agentevents.Event) {
	agents := s.runs[ev.RunID]
	before := len(agents)
	delete(agents, agentOf(ev))
	s.n -= before - len(agents)
	if before > 0 && len(agents) == 0 {
		delete(s.runs, ev.RunID)
	}
}

// endRun forgets the agents of a run.
func (s *starts) endRun(run string) {
	s.n -= len(s.runs[run])
	delete(s.runs, run)
}
