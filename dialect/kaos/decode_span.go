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
	begins, ok := phase == "start", true
	what := opened{about{"", subject, "", ev.RunID}, spanID{span: ev.SpanID}, ""} // what the end may leave out
	d.change.ends = d.open.ended(ev.RunID, what.spanID, subject, begins)
	var start opened
	open := d.change.ends != nil && !begins
	if open {
		start = *d.change.ends
	}
	switch p := ev.Payload.(type) {
	case *agentevents.TurnStarted:
		begins = false // its end says all
	case *agentevents.TurnEnded:
		d.ended(&p.Error, phase)
	case *agentevents.StepStarted:
		ok = d.stepID(&p.StepID, p.Name)
		what.id = p.StepID
	case *agentevents.StepEnded:
		p.StepID = cmp.Or(p.StepID, start.id)
		ok = d.stepID(&p.StepID, p.Name)
		d.ended(&p.Error, phase)
		if d.said.failed { // the phase is complete
			p.Error = agentevents.Some(agentevents.ErrorInfo{Message: p.ResultSummary})
			if p.ResultSummary == "" {
				d.r.Kept.Add("phase", `"complete"`)
			}
		}
	case *agentevents.ToolCalled:
		// Some producers write the tool's name as the call id.
		taken := d.open.taken(about{p.CallID, subject, ev.AgentID, ev.RunID}, d.change.ends)
		ok = d.call(&p.CallID, &p.ToolID, start, taken)
		what.id, what.agent, what.tool = p.CallID, ev.AgentID, p.ToolID
	case *agentevents.ToolReturned:
		ok = d.call(&p.CallID, &p.ToolID, start, false)
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
		if d.said.agent != "" && ev.SpanID != "" && d.open.taken(about{d.said.agent, subject, "", ev.RunID}, d.change.ends) {
			p.Agent = agentevents.Some(agentevents.AgentRef{AgentID: d.said.agent})
			ev.AgentID = "" // another agent of the name is open: readers know this one by its span
		}
		what.id = ev.AgentID
	case *agentevents.AgentEnded:
		d.delegated(ev)
		if open {
			ev.AgentID = start.id
			d.keepAttribute("subagent_name", d.said.agent, start.id)
		}
		d.keepName("subagent.", cmp.Or(d.said.agent, ev.AgentID))
		switch phase {
		case "error":
			p.Error.OK = true
		case "cancelled":
			p.Outcome = agentevents.OutcomeAborted
		}
	case *agentevents.HandoffRequested:
		ok = d.handoff(&p.From, &p.To, start)
		what.id, what.tool = p.From.AgentID, p.To.AgentID
	case *agentevents.HandoffAccepted:
		ok = d.handoff(&p.From, &p.To, start)
	}
	if ok && begins && ev.SpanID != "" {
		d.change.begins = what
	}
	return ok
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
	d.keepAttribute("call_id", said, *call)
	d.keepName("tool.", *tool)
	return *tool != "" && *call != ""
}

// handoff makes the agents of a handoff. It reports false if there is none.
func (d *Decoder) handoff(from, to *agentevents.AgentRef, start opened) bool {
	from.AgentID, to.AgentID = cmp.Or(from.AgentID, start.id), cmp.Or(to.AgentID, start.tool)
	d.keepName("handoff.", to.AgentID)
	return from.AgentID != "" && to.AgentID != ""
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

// keepAttribute keeps what the line calls a call or an agent that has another name.
func (d *Decoder) keepAttribute(name, said, known string) {
	if said != "" && said != known {
		d.r.Kept.Add("/attributes/"+name, jsonwire.Quote(said))
	}
}

// keepName keeps the span's name as an extra member, for kinds without a name. It
// does not keep the name that the encoder makes of prefix and id.
func (d *Decoder) keepName(prefix, id string) {
	if rest, ok := strings.CutPrefix(d.said.name, prefix); d.r.Has("name") && !(ok && rest == id) {
		d.r.Kept.Add("name", jsonwire.Quote(d.said.name))
	}
}
