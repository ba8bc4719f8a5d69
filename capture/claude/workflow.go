package claude

import (
	"cmp"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/transcript"
)

// A workflow's agents have no lines: the progress of its task has their label, model, tokens and
// state.

// workflow processes the progress of a workflow's agents.
func (d *Decoder) workflow(l *line) {
	if !strings.HasPrefix(l.raw("workflow_progress"), "[") {
		return
	}
	key := cmp.Or(l.str("tool_use_id"), d.tasks[l.str("task_id")], l.str("task_id"))
	if key == "" {
		return
	}
	for _, o := range l.objects("workflow_progress") {
		if id := cmp.Or(either(&o, "agentId", "agent_id"), o.str("label")); id != "" {
			d.workflowAgent(d.worker(key, id, l, &o), &o)
		}
	}
}

// either returns the first of two members, which different lines spell differently.
func either(o *object, name, other string) string {
	if o.raw(name) == "" {
		name = other
	}
	return plain(o.raw(name))
}

// worker returns the agent of a workflow with an id.
func (d *Decoder) worker(workflow, id string, l *line, o *object) *agent {
	key := workflow + " " + id
	if a := d.agents[key]; a != nil {
		return a
	}
	parent := d.main
	if c := d.calls[workflow]; c != nil {
		parent = c.agent
	}
	kind := cmp.Or(either(o, "agentType", "agent_type"), "workflow")
	name := d.subAgentID(kind, key)
	d.agentIDs[name] = true
	a := newAgent(name, parent, strings.Clone(workflow))
	a.first, a.order = l, len(d.agents)
	a.kind, a.task, a.background, a.inWorkflow = strings.Clone(kind), strings.Clone(o.str("label")), true, true
	d.agents[strings.Clone(key)] = a
	parent.kids = append(parent.kids, a)
	return a
}

// workflowAgent records the progress of an agent.
func (d *Decoder) workflowAgent(a *agent, o *object) {
	if a.ended {
		return
	}
	model := strings.Clone(o.str("model"))
	d.start(a, model)
	count := func(name, other string) agentevents.Opt[int64] {
		if n := o.count(name); n.OK {
			return n
		}
		return o.count(other)
	}
	if n := count("tokens", "total_tokens"); n.OK {
		a.used = map[string]messageUsage{"workflow": {model: model, usage: agentevents.Usage{TotalTokens: n}, final: true}}
	}
	state := o.str("state")
	if transcript.TaskStates[state] == transcript.TaskWorks {
		return
	}
	end := taskEnd(state, cmp.Or(either(o, "resultPreview", "result"), plain(o.raw("error"))))
	if end.Duration = o.millis("durationMs"); !end.Duration.OK {
		end.Duration = o.millis("duration_ms")
	}
	if n := count("toolCalls", "tool_calls"); n.OK {
		end.Totals = agentevents.Some(agentevents.Totals{ToolCalls: int(n.V)})
	}
	d.endSubAgent(a, end, 0)
}

// endWorkflow ends the agents of a workflow that has ended. Nothing states how those ended that
// were at work.
func (d *Decoder) endWorkflow(workflow, status string) {
	for _, a := range d.unended() {
		if !a.inWorkflow || a.call != workflow {
			continue
		}
		end := agentevents.AgentEnded{}
		if transcript.TaskStates[status] == transcript.TaskFailed {
			end = taskEnd(status, "")
		}
		d.endSubAgent(a, end, agentevents.MarkSynthetic)
	}
}
