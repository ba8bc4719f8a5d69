package openharness

import (
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
)

// starts are the start times of agents that have not ended, by run and agent, the latest
// last. The zero starts is empty.
type starts struct{ list []start }

type start struct {
	run, agent string
	at         time.Time
}

// maxStarts bounds the list. The oldest entries are forgotten first.
const maxStarts = 1 << 12

// longLine is the size up to which an entry may keep its line alive.
const longLine = 4096

// begin records the start of the event's agent. size is the length of the line.
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

// of returns the start time of the event's agent.
func (s *starts) of(ev *agentevents.Event) (time.Time, bool) {
	if i := s.index(ev.RunID, agentOf(ev)); i >= 0 {
		return s.list[i].at, true
	}
	return time.Time{}, false
}

// end removes the event's agent.
func (s *starts) end(ev *agentevents.Event) {
	if i := s.index(ev.RunID, agentOf(ev)); i >= 0 {
		s.list = slices.Delete(s.list, i, i+1)
	}
}

// endRun removes the agents of a run.
func (s *starts) endRun(run string) {
	s.list = slices.DeleteFunc(s.list, func(a start) bool { return a.run == run })
}
