package kaos

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// parts returns the fields of an event that name the subject of its span: an id, and the name of a
// step, the tool or the model of a call, or the other agent. failure is the error of an end. A
// field that the kind does not have is nil.
func parts(ev *agentevents.Event) (id, other *string, failure *agentevents.Opt[agentevents.ErrorInfo]) {
	switch p := ev.Payload.(type) {
	case *agentevents.TurnEnded:
		return nil, nil, &p.Error
	case *agentevents.StepStarted:
		return &p.StepID, &p.Name, nil
	case *agentevents.StepEnded:
		return &p.StepID, &p.Name, &p.Error
	case *agentevents.ToolCalled:
		return &p.CallID, &p.ToolID, nil
	case *agentevents.ToolReturned:
		return &p.CallID, &p.ToolID, &p.Error
	case *agentevents.ModelCalled:
		return &p.ModelCallID, &p.Model, nil
	case *agentevents.ModelReturned:
		return &p.ModelCallID, &p.Model, &p.Error
	case *agentevents.AgentStarted:
		return &ev.AgentID, &p.Agent.V.AgentID, nil
	case *agentevents.AgentEnded:
		return &ev.AgentID, nil, &p.Error
	case *agentevents.SpanRecorded:
		return &p.Subject, &p.Name, nil
	case *agentevents.HandoffRequested:
		return &p.From.AgentID, &p.To.AgentID, nil
	case *agentevents.HandoffAccepted:
		return &p.From.AgentID, &p.To.AgentID, nil
	}
	return nil, nil, nil
}

// span completes the event of a span from its start, and records the change of the open spans. It
// reports false if the span does not name its subject.
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
	if begins {
		d.change.late = d.open.late(ev, subject)
	}
	start, agent := d.change.start(begins), ""
	id, other, failure := parts(ev)
	switch {
	case phase == "error":
		failure.OK = true
	case (subject == "turn" || subject == "step" || subject == "llm_call") && phase == "cancelled":
		*failure = agentevents.Some(agentevents.ErrorInfo{Code: "cancelled"})
		d.r.Kept.Add("phase", `"cancelled"`)
	}
	switch subject {
	case "turn":
		return true // its end has all facts
	case "step":
		if *id = cmp.Or(*id, start.id); *id == "" {
			*id = stepOf(*other, span)
			d.r.Made("/payload/stepId", "the span's name, or its id")
		}
		ok = *id != ""
	case "tool_call":
		agent = ev.AgentID
		ok = d.call(id, other, begins)
	case "llm_call":
		agent = ev.AgentID
		d.callID(id, "llm_call", "modelCallId", begins)
		d.keepName("llm_call.", cmp.Or(*other, start.other))
		ok = *id != ""
	case "subagent":
		ok = true
		d.delegated(ev, begins)
	case "handoff":
		*id, *other = cmp.Or(*id, start.id), cmp.Or(*other, start.other)
		if rest, is := strings.CutPrefix(d.said.name, "handoff."); is && *other == "" {
			*other = rest
			d.r.Made("/payload/to/agentId", "the span's name")
		}
		if *id == "" && *other != "" {
			*id = ev.AgentID
			d.r.Made("/payload/from/agentId", "the agent of the line")
		}
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
	case *agentevents.ModelReturned:
		if p.OneEvent = start.subject == ""; !p.OneEvent && p.Request != "" {
			d.r.Kept.Add("/attributes/inputs", string(p.Request))
			p.Request = ""
		}
	case *agentevents.AgentEnded:
		if phase == "cancelled" {
			p.Outcome = agentevents.OutcomeAborted
		}
	}
	switch {
	case !ok || ev.SpanID == "" || d.change.late != nil:
	case !begins && d.change.ends == nil:
		d.change.first = early{about{*id, subject, "", ev.RunID}, ev.SpanID, ev.Time}
	case begins:
		d.change.begins = opened{about: about{*id, subject, agent, ev.RunID}, spanID: span, other: *other,
			below: d.said.below}
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

// call makes the id and the tool of a call. It reports false if there is none. Some
// producers write the tool's name as the call id.
func (d *Decoder) call(call, tool *string, begins bool) bool {
	*tool = cmp.Or(*tool, d.change.start(begins).other)
	if rest, ok := strings.CutPrefix(d.said.name, "tool."); ok && *tool == "" {
		*tool = rest
		d.r.Made("/payload/toolId", "the span's name")
	}
	d.callID(call, "tool_call", "callId", begins)
	d.keepName("tool.", *tool)
	return *tool != "" && *call != ""
}

// callID makes the id of a call of a tool or of a model.
func (d *Decoder) callID(call *string, subject, field string, begins bool) {
	said, ev := *call, d.r.Ev
	*call = d.open.known(&d.change, about{said, subject, ev.AgentID, ev.RunID}, begins, spanID{span: ev.SpanID})
	if *call != said && d.change.start(begins).id == "" {
		d.r.Made("/payload/"+field, "the span's id")
	}
	d.keepAttribute("call_id", said, *call)
}

// returned completes the end of a call. open means that its start is known.
func (d *Decoder) returned(p *agentevents.ToolReturned, phase string, open bool) {
	if p.OneEvent = !open; open && p.Arguments != "" {
		d.r.Kept.Add("/attributes/arguments", string(p.Arguments))
		p.Arguments = ""
	}
	if p.ResultSummary == summaryOf(string(p.Result)) {
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
// event's agent does the work. One whose name another open agent has is known by its span.
func (d *Decoder) delegated(ev *agentevents.Event, begins bool) {
	name := d.said.agent
	d.said.delegates = true
	ev.AgentID, ev.ParentAgentID = name, ev.AgentID
	below := d.said.agentMade != "" && ev.ParentAgentID == Root && d.open.below(&d.change, ev, begins)
	if below { // the fold finds it by its span
		ev.ParentAgentID = ""
	}
	d.said.below = below
	if name == ev.ParentAgentID {
		ev.ParentAgentID = ""
		d.r.Kept.Add("agent_id", jsonwire.Quote(unnamed(name)))
	}
	if ev.SpanID != "" {
		ev.AgentID = d.open.known(&d.change, about{name, "subagent", "", ev.RunID}, begins, spanID{})
	}
	d.keepName("subagent.", unnamed(cmp.Or(name, ev.AgentID)))
	if p, ok := ev.Payload.(*agentevents.AgentStarted); !ok {
		if name != ev.AgentID {
			d.keepAttribute("subagent_name", unnamed(name), "")
		}
	} else if ev.AgentID != name {
		p.Agent = agentevents.Some(agentevents.AgentRef{AgentID: name})
	}
}

// keepAttribute keeps the line's name of a call or an agent that readers know by another name.
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

// A boundary is the beginning or end of a span in the line of an event, with its effect on the open
// spans.
type boundary struct {
	about          // of the span
	span   spanID  // on the line
	name   string  // of the span, after the prefix
	parent string  // of the agent that begins
	within *spanID // the span that this one begins in, if it is known
	failed bool    // is_error

	// Of the spans that an event without a span id may mean, the one that ends, and
	// whether this one begins.
	ends   *opened
	begins bool
	known  *opened // the open span with the id, as readers know it
}

// plan sets e.boundary for the event that is written, and returns its row: the row of its kind for
// a start or complete, or another one.
func (e *Encoder) plan(ev *agentevents.Event, row *engine.Row) *engine.Row {
	*e.boundary = boundary{}
	b, phase, whole := e.boundary, "", false
	id, other, _ := parts(ev)
	subject, usual, _ := strings.Cut(row.Case, " ")
	b.begins = usual == "start"
	b.about = about{"", subject, cmp.Or(ev.AgentID, Root), ev.RunID} // as readers know it
	switch subject {
	case "step", "tool_call", "llm_call":
		b.id = *id
	case "subagent":
		b.id, b.parent = cmp.Or(*id, ev.SpanID), ev.ParentAgentID
	case "handoff", "":
		b.id = *id + "\x00" + *other
	}
	switch p := ev.Payload.(type) {
	case *agentevents.TurnStarted:
		b.id = turnID(p.Turn)
	case *agentevents.TurnEnded:
		b.id, phase = turnID(p.Turn), ended(ev, p.Error)
	case *agentevents.StepEnded:
		b.failed = p.Error.OK && p.Error.V.Code == "" && p.Error.V.Message == p.ResultSummary &&
			(p.ResultSummary != "" || dialect.Unknown(ev, Name, "phase") == `"complete"`)
		if !b.failed {
			phase = ended(ev, p.Error)
		}
	case *agentevents.ToolReturned:
		phase, whole = e.returned(p), p.OneEvent && ev.SpanID == ""
	case *agentevents.ModelReturned:
		phase, whole = ended(ev, p.Error), p.OneEvent && ev.SpanID == ""
	case *agentevents.AgentEnded:
		switch {
		case p.Error.OK:
			phase = "error"
		case engine.Ending(p) == endword.Cancelled:
			phase = "cancelled"
		case engine.Ending(p) == endword.Failed || engine.Ending(p) == endword.Refused:
			phase = "error"
		}
	case *agentevents.SpanRecorded:
		b.subject, b.begins = "span", p.Phase == "start"
	}
	e.bound(ev, whole)
	var start opened
	if b.known != nil && !b.begins {
		start = *b.known
	}
	switch b.subject {
	case "tool_call", "llm_call", "handoff":
		b.name = cmp.Or(*other, start.other)
	case "subagent":
		b.name = agentNamed(ev, *id, start.id)
	case "span":
		if !slices.Contains(closing, ev.Payload.(*agentevents.SpanRecorded).Phase) {
			b.ends = nil
		}
	}
	if phase != "" {
		return format.CaseRow("span", subject+" "+phase)
	}
	return row
}

// bound sets the id of a span that begins or ends. A subject that begins again before
// it has ended keeps its span. whole means that the event is all of a call.
func (e *Encoder) bound(ev *agentevents.Event, whole bool) {
	b := e.boundary
	if !whole {
		b.ends = e.open.find(&key{about: b.about})
	}
	switch start := b.ends; {
	case ev.SpanID != "":
		b.span.span = ev.SpanID
		if !b.begins && (start == nil || start.spanID != b.span) {
			b.ends = e.open.ended(b.run, b.span, b.subject, false)
		}
	case start != nil:
		b.span = start.spanID
	default: // the id is made of the subject and the event's number
		agent := max(1, jsonwire.Mix(jsonwire.Hash(b.run), jsonwire.Hash(b.agent)))
		h := jsonwire.Mix(uint64(max(0, slices.Index(subjects, b.subject))), ev.Sequence)
		b.span.made = jsonwire.Mix(h, jsonwire.Mix(agent, jsonwire.Hash(b.id)))
	}
	if b.begins || whole {
		b.within = e.enclosing(ev)
	}
	b.known = e.check.open.ended(b.run, spanID{span: b.span.text()}, b.subject, b.begins)
}

// enclosing returns the span in which the span of the event begins: the span of the call that
// spawns the agent, or the innermost open span of the agent, or of its parent if the agent starts.
func (e *Encoder) enclosing(ev *agentevents.Event) *spanID {
	agent := cmp.Or(ev.AgentID, Root)
	if e.subject == "subagent" {
		agent = cmp.Or(ev.ParentAgentID, Root)
		if call := e.open.find(&key{about: about{ev.ParentCallID, "tool_call", agent, ev.RunID}}); call != nil {
			return &call.spanID
		}
	}
	if open := e.scopes.Of(scope{ev.RunID, agent}); len(open) > 0 {
		return &open[len(open)-1]
	}
	return nil
}

// enclosing appends the id of the span in which one begins. An event that has an id of its
// own has all of its ids.
func enclosing(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	within := encoderOf(w).within
	if within == nil || w.Ev.SpanID != "" || w.Whole {
		return append(dst, "null"...)
	}
	return within.append(dst, false)
}

// sinceStart appends the time since the start of the span that ends.
func sinceStart(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	start := encoderOf(w).ends
	if start == nil || !agentevents.TimeKnown(start.at) || !agentevents.TimeKnown(w.Ev.Time) ||
		!w.Ev.Time.After(start.at) || w.Whole {
		return append(dst, "null"...)
	}
	took := agentevents.Some(w.Ev.Time.Sub(start.at))
	dst, _ = number{}.Append(w, dst, nil, &took)
	return dst
}

// agentNamed returns the name of the agent of a sub-agent's span, whose start readers know by an
// id.
func agentNamed(ev *agentevents.Event, id, start string) (name string) {
	if p, ok := ev.Payload.(*agentevents.AgentStarted); ok {
		name = cmp.Or(id, p.Agent.Or(agentevents.AgentRef{}).AgentID)
	} else { // the name on the line may be one that another open agent has, too
		kept := named(jsonwire.Text(string(dialect.Unknown(ev, Name, "/attributes/subagent_name"))))
		name = cmp.Or(kept, id, start)
	}
	return named(unnamed(name)) // no sub-agent is read as the root agent
}

// turnID returns the id of a turn: its number.
func turnID(turn agentevents.Opt[int]) string {
	if !turn.OK {
		return ""
	}
	return strconv.Itoa(turn.V)
}

// ended returns the phase of the end of a turn or step that has failed.
func ended(ev *agentevents.Event, err agentevents.Opt[agentevents.ErrorInfo]) string {
	switch {
	case !err.OK:
		return ""
	case err.V.Code == "cancelled" && err.V.Message == "" && dialect.Unknown(ev, Name, "phase") == `"cancelled"`:
		return "cancelled"
	}
	return "error"
}

// returned sets the members that the status of a call that ends needs on the line, and returns the
// phase, if it is not complete.
func (e *Encoder) returned(p *agentevents.ToolReturned) (phase string) {
	switch p.Status {
	case agentevents.ToolStatusCancelled, agentevents.ToolStatusInterrupted:
		return "cancelled"
	case agentevents.ToolStatusError, agentevents.ToolStatusForbidden, agentevents.ToolStatusRateLimited:
		if e.failed = !p.Error.OK && p.Status == agentevents.ToolStatusError; !e.failed {
			return "error"
		}
	}
	return ""
}

// settle changes the open spans once the line is written.
func (e *Encoder) settle(hasID, verbatim bool, at time.Time) {
	b := &e.own
	if verbatim && !hasID {
		return // readers find no pair
	}
	if b.ends != nil {
		e.leave(b.ends)
		e.open.remove(b.ends)
	}
	if b.begins {
		if again := e.open.ended(b.run, b.span, b.subject, true); again != nil {
			e.leave(again)
			e.open.remove(again)
		}
		p := opened{about: b.about, spanID: b.span, other: b.parent, at: at}
		e.open.add(&p)
		e.enter(&p)
	}
}

// A scope is an agent, in which spans begin.
type scope struct{ run, agent string }

// in returns the scope that an open span is for others to begin in, if it is one.
func (p *opened) in() (scope, bool) {
	switch p.subject {
	case "turn", "step":
		return scope{p.run, p.agent}, true
	case "subagent":
		return scope{p.run, p.id}, true
	}
	return scope{}, false
}

// enter notes that other spans may begin in one.
func (e *Encoder) enter(p *opened) {
	in, ok := p.in()
	if !ok {
		return
	}
	if open := e.scopes.Of(in); len(open) < maxRecent {
		e.scopes.Set(in, append(open, p.spanID))
	}
}

// leave notes that no other spans begin in one any more.
func (e *Encoder) leave(p *opened) {
	in, ok := p.in()
	if !ok {
		return
	}
	open := e.scopes.Of(in)
	open = slices.DeleteFunc(open, func(id spanID) bool { return id == p.spanID })
	if len(open) == 0 {
		e.scopes.Delete(in)
	} else {
		e.scopes.Set(in, open)
	}
}
