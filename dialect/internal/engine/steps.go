package engine

import "github.com/agentevents/agentevents"

// Steps count the steps of an agent in one attempt, as rule ended-totals does: a step counts if
// it is above all before. A writer counts the steps of the events and the steps of its lines,
// because the event that begins a step may have no line: then readers count the step in the
// attempt of a later line. The zero Steps have none.
type Steps struct {
	N       int // in the attempt
	reached agentevents.Opt[int]
	begun   bool
}

// Reach notes a step.
func (s *Steps) Reach(step int) {
	if !s.reached.OK || step > s.reached.V {
		s.reached = agentevents.Some(step)
		s.N++
	}
}

// Event notes an event: its step, or that it starts an attempt. The steps before the first
// start belong to the first attempt.
func (s *Steps) Event(ev *agentevents.Event) {
	if info, _ := ev.Kind().Info(); ev.Step.OK && !info.Droppable {
		s.Reach(ev.Step.V)
	}
	if ev.Kind() != agentevents.KindAgentStarted {
		return
	}
	if s.begun {
		s.N = 0
	}
	s.begun = true
}

// Raised returns the number of steps that an end states so that readers of the lines, who have
// counted read, do not have more. A number that is below the steps of the events remains.
func (s *Steps) Raised(stated int, read *Steps) int {
	if stated < s.N {
		return stated
	}
	return max(stated, read.N)
}

// UnseenSteps is the detail of a number of steps that was raised.
const UnseenSteps = "readers count steps that lines make up, and those of earlier attempts that had no line"
