package openharness

import (
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// open is what later lines need to know of runs and agents that have not ended. The
// zero open is empty.
type open struct {
	runs map[string]*openRun
	n    int // runs and agents
}

type openRun struct {
	flow    string // its name
	begun   bool   // the run has a start
	started map[string]time.Time
}

// line notes the line of an event. Everything is forgotten when too many runs and
// agents never end.
func (o *open) line(ev *agentevents.Event) {
	switch p := ev.Payload.(type) {
	case *agentevents.RunStarted:
		r := o.of(ev.RunID)
		r.flow, r.begun = strings.Clone(p.Name), true // clones do not keep the line alive
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		if r := o.runs[ev.RunID]; r != nil {
			o.n -= 1 + len(r.started)
			delete(o.runs, ev.RunID)
		}
	case *agentevents.AgentStarted:
		r, agent := o.of(ev.RunID), agentOf(ev)
		if _, ok := r.started[agent]; !ok {
			agent = strings.Clone(agent)
			o.n++
		}
		if r.started == nil {
			r.started = map[string]time.Time{}
		}
		r.started[agent] = ev.Time
	case *agentevents.AgentEnded, *agentevents.NodeCompleted, *agentevents.NodeFailed:
		if _, ok := o.started(ev); ok {
			o.n--
			delete(o.runs[ev.RunID].started, agentOf(ev))
		}
	}
}

// of returns what is known of a run, with room for one agent more.
func (o *open) of(run string) *openRun {
	if o.runs == nil || o.n >= dialect.MaxCalls {
		*o = open{runs: map[string]*openRun{}}
	}
	r := o.runs[run]
	if r == nil {
		r = new(openRun)
		o.runs[strings.Clone(run)] = r
		o.n++
	}
	return r
}

// started returns the time of the start of the event's agent.
func (o *open) started(ev *agentevents.Event) (time.Time, bool) {
	if r := o.runs[ev.RunID]; r != nil {
		at, ok := r.started[agentOf(ev)]
		return at, ok
	}
	return time.Time{}, false
}

// name returns the name of a run's flow.
func (o *open) name(run string) (string, bool) {
	if r := o.runs[run]; r != nil {
		return r.flow, r.begun
	}
	return "", false
}
