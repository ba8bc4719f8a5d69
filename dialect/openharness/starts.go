package openharness

import (
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
)

// starts are the times at which agents began that have not ended, by run and
// agent, the latest last. The zero starts is empty.
type starts struct{ list []start }

type start struct {
	run, agent string
	at         time.Time
}

// maxStarts bounds the agents that wait to end; the oldest are forgotten first.
const maxStarts = 1 << 12

// longLine is how long a line may be that what is remembered keeps alive, of which
// there is little.
const longLine = 4096

// begin notes the start of the event's agent, whose line is that long.
func (s *starts) begin(ev *agentevents.Event, size int) {
	agent := agentOf(ev)
	if i := s.index(ev.RunID, agent); i >= 0 {
		s.list[i].at = ev.Time
		return
	}
	if len(s.list) == maxStarts {
		s.list = slices.Delete(s.list, 0, maxStarts/2)
	}
	run := ev.RunID
	if size > longLine {
		run, agent = strings.Clone(run), strings.Clone(agent)
	}
	s.list = append(s.list, start{run, agent, ev.Time})
}

func (s *starts) index(run, agent string) int {
	i := len(s.list) - 1
	for i >= 0 && (s.list[i].agent != agent || s.list[i].run != run) {
		i--
	}
	return i
}

// of returns when the event's agent began.
func (s *starts) of(ev *agentevents.Event) (time.Time, bool) {
	if i := s.index(ev.RunID, agentOf(ev)); i >= 0 {
		return s.list[i].at, true
	}
	return time.Time{}, false
}

// end forgets the event's agent.
func (s *starts) end(ev *agentevents.Event) {
	if i := s.index(ev.RunID, agentOf(ev)); i >= 0 {
		s.list = slices.Delete(s.list, i, i+1)
	}
}

// endRun forgets the agents of a run.
func (s *starts) endRun(run string) {
	s.list = slices.DeleteFunc(s.list, func(a start) bool { return a.run == run })
}
