package kaos

import (
	"cmp"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// span completes the event of a span with what its start says, and notes what becomes
// of the open spans. It reports false if the span does not say what it is about.
func (d *Decoder) span(ev *agentevents.Event) bool {
	subject, phase, _ := strings.Cut(d.r.Row.Case, " ")
	if p, ok := ev.Payload.(*agentevents.SpanRecorded); ok {
		if subject, phase = p.Subject, p.Phase; phase != "error" && phase != "cancelled" { // the end of a handoff
			return true
		}
	}
	begins := phase == "start"
	d.change.ends = d.open.ended(ev.RunID, spanID{span: ev.SpanID}, subject, begins)
	var start opened
	open := d.change.ends != nil && !begins
	if open {
		start = *d.change.ends
	}
	switch p := ev.Payload.(type) {
	case *agentevents.TurnEnded:
		d.ended(&p.Error, phase)
	case *agentevents.StepStarted:
		if !d.stepID(&p.StepID, p.Name) {
			return false
		}
		d.begin(about{p.StepID, subject, "", ev.RunID}, "")
	case *agentevents.StepEnded:
		p.StepID = cmp.Or(p.StepID, start.id)
		if !d.stepID(&p.StepID, p.Name) {
			return false
		}
		d.ended(&p.Error, phase)
		if d.said.failed { // the phase is complete
			p.Error = agentevents.Some(agentevents.ErrorInfo{Message: p.ResultSummary})
			if p.ResultSummary == "" {
				d.r.Kept.Add("phase", `"complete"`)
			}
		}
	case *agentevents.ToolCalled:
		// Some producers write the tool's name as the call id.
		if !d.call(&p.CallID, &p.ToolID, opened{}, d.open.taken(&about{p.CallID, subject, ev.AgentID, ev.RunID}, d.change.ends)) {
			return false
		}
		d.begin(about{p.CallID, subject, ev.AgentID, ev.RunID}, p.ToolID)
	case *agentevents.ToolReturned:
		if !d.call(&p.CallID, &p.ToolID, start, false) {
			return false
		}
		if p.OneEvent = !open; open && p.Arguments != "" {
			d.r.Kept.Add("/attributes/arguments", string(p.Arguments))
			p.Arguments = ""
		}
		if p.Result != "" && p.ResultSummary == summaryOf(string(p.Result)) {
			p.ResultSummary = ""
		}
		d.status(p, phase)
	case *agentevents.AgentStarted:
		d.delegated(ev)
		d.keepName("subagent.", d.said.agent)
		if d.said.agent != "" && ev.SpanID != "" && d.open.taken(&about{d.said.agent, subject, "", ev.RunID}, d.change.ends) {
			p.Agent = agentevents.Some(agentevents.AgentRef{AgentID: d.said.agent})
			ev.AgentID = "" // another agent of the name is open: readers know this one by its span
		}
		d.begin(about{ev.AgentID, subject, "", ev.RunID}, "")
	case *agentevents.AgentEnded:
		d.delegated(ev)
		if open {
			if ev.AgentID = start.id; start.id != d.said.agent && d.said.agent != "" {
				d.r.Kept.Add("/attributes/subagent_name", jsonwire.Quote(d.said.agent))
			}
		}
		d.keepName("subagent.", cmp.Or(d.said.agent, ev.AgentID))
		switch phase {
		case "error":
			p.Error.OK = true
		case "cancelled":
			p.Outcome = agentevents.OutcomeAborted
		}
	case *agentevents.HandoffRequested:
		if p.From.AgentID == "" || p.To.AgentID == "" {
			return false
		}
		d.keepName("handoff.", p.To.AgentID)
		d.begin(about{p.From.AgentID, subject, "", ev.RunID}, p.To.AgentID)
	case *agentevents.HandoffAccepted:
		if p.From.AgentID, p.To.AgentID = cmp.Or(p.From.AgentID, start.id), cmp.Or(p.To.AgentID, start.tool); p.From.AgentID == "" || p.To.AgentID == "" {
			return false
		}
		d.keepName("handoff.", p.To.AgentID)
	}
	return true
}

// begin notes that the span of the line is open.
func (d *Decoder) begin(a about, tool string) {
	if span := d.r.Ev.SpanID; span != "" {
		d.change.begins = opened{a, spanID{span: span}, tool}
	}
}

// stepID makes up the id of a step. It reports false if there is none.
func (d *Decoder) stepID(id *string, name string) bool {
	if *id == "" {
		*id = stepOf(name, spanID{span: d.r.Ev.SpanID})
		d.r.Made("/payload/stepId", "the span's name, or its id")
	}
	return *id != ""
}

// stepOf returns the id that readers make up for a step.
func stepOf(name string, span spanID) string {
	if rest, ok := strings.CutPrefix(name, "step."); ok && rest != "" {
		return rest
	}
	return span.text()
}

// callOf returns the id by which readers know a call: that of its start, or what the
// line says, or the span's id.
func callOf(said, start string, taken bool, span spanID) string {
	switch {
	case start != "":
		return start
	case said == "" || taken:
		return span.text()
	}
	return said
}

// call makes the id and the tool of a call whose start is known, if start is not
// zero. It reports false if there is none. taken means that another call has the id.
func (d *Decoder) call(call, tool *string, start opened, taken bool) bool {
	said := *call
	if *tool == "" {
		if rest, ok := strings.CutPrefix(d.said.name, "tool."); ok && start.id == "" {
			*tool = rest
			d.r.Made("/payload/toolId", "the span's name")
		} else {
			*tool = start.tool
		}
	}
	if *call = callOf(said, start.id, taken, spanID{span: d.r.Ev.SpanID}); start.id == "" && *call != said {
		d.r.Made("/payload/callId", "the span's id")
	}
	if *tool == "" || *call == "" {
		return false
	}
	if said != "" && said != *call {
		d.r.Kept.Add("/attributes/call_id", jsonwire.Quote(said))
	}
	d.keepName("tool.", *tool)
	return true
}

// status makes the status of a call that ends.
func (d *Decoder) status(p *agentevents.ToolReturned, phase string) {
	switch {
	case phase == "error":
		p.Status, p.Error.OK = agentevents.ToolStatusError, true
	case phase == "cancelled":
		p.Status = agentevents.ToolStatusCancelled
	case d.said.failed:
		p.Status = agentevents.ToolStatusError
	default:
		p.Status = agentevents.ToolStatusOK
		if !d.r.Has("is_error") {
			d.r.Made("/payload/status", "ok: the phase is complete")
		}
	}
}

// ended makes the error of a turn or step that ends.
func (d *Decoder) ended(err *agentevents.Opt[agentevents.ErrorInfo], phase string) {
	switch phase {
	case "error":
		err.OK = true
	case "cancelled":
		*err = agentevents.Some(agentevents.ErrorInfo{Code: "cancelled"})
		d.r.Kept.Add("phase", `"cancelled"`)
	}
}

// delegated makes the agents of a sub-agent's event: the line's agent delegates, the
// event's agent does the work.
func (d *Decoder) delegated(ev *agentevents.Event) {
	ev.AgentID, ev.ParentAgentID = d.said.agent, ev.AgentID
	if d.said.agent != "" && d.said.agent == ev.ParentAgentID {
		ev.ParentAgentID = ""
		d.r.Kept.Add("agent_id", jsonwire.Quote(d.said.agent))
	}
}

// keepName keeps the span's name as an extra member, for kinds without a name. It
// does not keep the name that the encoder makes of prefix and id.
func (d *Decoder) keepName(prefix, id string) {
	if rest, ok := strings.CutPrefix(d.said.name, prefix); d.r.Has("name") && !(ok && rest == id) {
		d.r.Kept.Add("name", jsonwire.Quote(d.said.name))
	}
}
