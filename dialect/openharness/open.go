package openharness

import (
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
)

// open holds the facts that later lines need about runs and agents that have not ended. The zero
// open is empty.
type open struct {
	flows   engine.Recent[string, string] // the names of runs
	started engine.Recent[agent, *start]
}

// An agent is one by its name in a run.
type agent struct{ run, name string }

// A start is the start of an agent.
type start struct {
	at   time.Time
	run  string // the execution that its lines name
	text string // the latest whole one
}

// line notes the line of an event of an agent on an execution.
func (o *open) line(ev *agentevents.Event, name, run string) {
	key := agent{ev.RunID, name}
	switch p := ev.Payload.(type) {
	case *agentevents.RunStarted:
		o.flows.Set(strings.Clone(ev.RunID), strings.Clone(p.Name)) // clones do not keep the line alive
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		o.flows.Delete(ev.RunID)
	case *agentevents.AgentStarted:
		o.started.Set(agent{strings.Clone(ev.RunID), strings.Clone(name)}, &start{at: ev.Time, run: strings.Clone(run)})
	case *agentevents.TextCompleted:
		if s := o.started.Of(key); s != nil {
			s.text = strings.Clone(p.Text)
		}
	case *agentevents.AgentEnded, *agentevents.NodeCompleted, *agentevents.NodeFailed:
		o.started.Delete(key)
	}
}
