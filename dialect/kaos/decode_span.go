package kaos

import (
	"cmp"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// span completes the event of a span with what its start says, and notes what becomes
// of the open spans. It reports false if the span does not say what it is about.
func (d *Decoder) span(ev *agentevents.Event) (ok bool) {
	subject, phase, _ := strings.Cut(d.r.Row.Case, " ")
	if p, ok := ev.Payload.(*agentevents.SpanRecorded); ok {
		if p.Phase == "error" || p.Phase == "cancelled" { // the end of a handoff
			d.change.ends = d.open.ended(ev.RunID, spanID{span: ev.SpanID}, p.Subject, false)
		}
		return true
	}
	begins, span := phase == "start", spanID{span: ev.SpanID}
	d.change.ends = d.open.ended(ev.RunID, span, subject, begins)
	start, agent := d.change.start(begins), ""
	id, other, failure := parts(ev)
	switch {
	case failure != nil && phase == "error":
		failure.OK = true
	case (subject == "turn" || subject == "step") && phase == "cancelled":
		*failure = agentevents.Some(agentevents.ErrorInfo{Code: "cancelled"})
		d.r.Kept.Add("phase", `"cancelled"`)
	}
	switch subject {
	case "turn":
		return true // its end says all
	case "step":
		if *id = cmp.Or(*id, start.id); *id == "" {
			*id = stepOf(*other, span)
			d.r.Made("/payload/stepId", "the span's name, or its id")
		}
		ok = *id != ""
	case "tool_call":
		agent = ev.AgentID
		ok = d.call(id, other, start, begins && d.open.taken(about{*id, subject, agent, ev.RunID}, d.change.ends))
	case "subagent":
		d.delegated(ev, start)
		ok = true
	case "handoff":
		*id, *other = cmp.Or(*id, start.id), cmp.Or(*other, start.other)
		d.keepName("handoff.", *other)
		ok = *id != "" && *other != ""
	}
	switch p := ev.Payload.(type) {
	case *agentevents.StepEnded:
		if d.said.failed { // the phase is complete
			p.Error = agentevents.Some(agentevents.ErrorInfo{Message: p.ResultSummary})
			if p.ResultSummary == "" {
				d.r.Kept.Add("phase", `"complete"`)
			}
		}
	case *agentevents.ToolReturned:
		d.returned(p, phase, start.subject != "")
	case *agentevents.AgentEnded:
		if phase == "cancelled" {
			p.Outcome = agentevents.OutcomeAborted
		}
	}
	if ok && begins && ev.SpanID != "" {
		d.change.begins = opened{about{*id, subject, agent, ev.RunID}, span, *other}
	}
	return ok
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
// zero. It reports false if there is none. Some producers write the tool's name as the
// call id: taken means that another call has the id.
func (d *Decoder) call(call, tool *string, start opened, taken bool) bool {
	said := *call
	*tool = cmp.Or(*tool, start.other)
	if rest, ok := strings.CutPrefix(d.said.name, "tool."); ok && *tool == "" {
		*tool = rest
		d.r.Made("/payload/toolId", "the span's name")
	}
	if *call = callOf(said, start.id, taken, spanID{span: d.r.Ev.SpanID}); start.id == "" && *call != said {
		d.r.Made("/payload/callId", "the span's id")
	}
	d.keepAttribute("call_id", said, *call)
	d.keepName("tool.", *tool)
	return *tool != "" && *call != ""
}

// returned completes the end of a call. open means that its start is known.
func (d *Decoder) returned(p *agentevents.ToolReturned, phase string, open bool) {
	if p.OneEvent = !open; open && p.Arguments != "" {
		d.r.Kept.Add("/attributes/arguments", string(p.Arguments))
		p.Arguments = ""
	}
	if p.Result != "" && p.ResultSummary == summaryOf(string(p.Result)) {
		p.ResultSummary = ""
	}
	switch {
	case phase == "error" || d.said.failed:
		p.Status = agentevents.ToolStatusError
	case phase == "cancelled":
		p.Status = agentevents.ToolStatusCancelled
	default:
		p.Status = agentevents.ToolStatusOK
		if !d.r.Has("is_error") {
			d.r.Made("/payload/status", "ok: the phase is complete")
		}
	}
}

// delegated makes the agents of a sub-agent's event: the line's agent delegates, the
// event's agent does the work.
func (d *Decoder) delegated(ev *agentevents.Event, start opened) {
	name := d.said.agent
	ev.AgentID, ev.ParentAgentID = name, ev.AgentID
	if name != "" && name == ev.ParentAgentID {
		ev.ParentAgentID = ""
		d.r.Kept.Add("agent_id", jsonwire.Quote(name))
	}
	if start.subject != "" {
		ev.AgentID = start.id
		d.keepAttribute("subagent_name", name, start.id)
	}
	d.keepName("subagent.", cmp.Or(name, ev.AgentID))
	p, begins := ev.Payload.(*agentevents.AgentStarted)
	if begins && name != "" && ev.SpanID != "" && d.open.taken(about{name, "subagent", "", ev.RunID}, d.change.ends) {
		p.Agent = agentevents.Some(agentevents.AgentRef{AgentID: name})
		ev.AgentID = "" // another agent of the name is open: readers know this one by its span
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
