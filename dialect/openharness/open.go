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
	flows   map[string]string // the names of runs
	started map[agent]*start
}

// An agent is one by its name in a run.
type agent struct{ run, name string }

// A start is that of an agent.
type start struct {
	at   time.Time
	run  string // the execution that its lines name
	text string // the latest whole one
}

// line notes the line of an event of an agent on an execution. Everything is forgotten
// when too many runs and agents never end.
func (o *open) line(ev *agentevents.Event, name, run string) {
	if o.flows == nil || len(o.flows)+len(o.started) >= dialect.MaxCalls {
		*o = open{map[string]string{}, map[agent]*start{}}
	}
	key := agent{ev.RunID, name}
	switch p := ev.Payload.(type) {
	case *agentevents.RunStarted:
		o.flows[strings.Clone(ev.RunID)] = strings.Clone(p.Name) // clones do not keep the line alive
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		delete(o.flows, ev.RunID)
	case *agentevents.AgentStarted:
		o.started[agent{strings.Clone(ev.RunID), strings.Clone(name)}] = &start{at: ev.Time, run: strings.Clone(run)}
	case *agentevents.TextCompleted:
		if s := o.started[key]; s != nil {
			s.text = strings.Clone(p.Text)
		}
	case *agentevents.AgentEnded, *agentevents.NodeCompleted, *agentevents.NodeFailed:
		delete(o.started, key)
	}
}
