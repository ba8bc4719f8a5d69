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
	runs   map[string]openRun
	agents int // of all runs
}

type openRun struct {
	flow    string // its name
	begun   bool   // the run has a start
	started map[string]start
}

// A start is that of an agent.
type start struct {
	at   time.Time
	run  string // the execution that its lines name
	text string // the latest whole one
}

// line notes the line of an event of an agent on an execution. Everything is forgotten when too many runs and
// agents never end.
func (o *open) line(ev *agentevents.Event, agent, run string) {
	if o.runs == nil || len(o.runs)+o.agents >= dialect.MaxCalls {
		*o = open{runs: map[string]openRun{}}
	}
	r := o.runs[ev.RunID]
	before := len(r.started)
	switch p := ev.Payload.(type) {
	case *agentevents.RunStarted:
		r.flow, r.begun = strings.Clone(p.Name), true // clones do not keep the line alive
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		r = openRun{}
	case *agentevents.TextCompleted:
		if s, ok := r.started[agent]; ok {
			s.text = strings.Clone(p.Text)
			r.started[strings.Clone(agent)] = s
		}
		return
	case *agentevents.AgentStarted:
		if r.started == nil {
			r.started = map[string]start{}
		}
		r.started[strings.Clone(agent)] = start{at: ev.Time, run: strings.Clone(run)}
	case *agentevents.AgentEnded, *agentevents.NodeCompleted, *agentevents.NodeFailed:
		delete(r.started, agent)
	default:
		return
	}
	o.agents += len(r.started) - before
	delete(o.runs, ev.RunID)
	if r.begun || len(r.started) > 0 {
		o.runs[strings.Clone(ev.RunID)] = r
	}
}
