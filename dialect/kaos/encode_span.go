package kaos

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/wire"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A boundary is how the line of an event says where a span begins or ends, and what
// it does to the open spans.
type boundary struct {
	about         // of the span
	span   spanID // on the line
	name   string // of the span, after the prefix
	code   string // error_type of an event that has none
	failed bool   // is_error
	found  bool   // the id is that of the span's start

	// Of the spans that an event without a span id may mean, the one that ends, and
	// whether this one begins.
	ends   *opened
	begins bool
	read   change // to the spans that readers know to be open
}

// plan sets e.boundary for the event that is written, and returns its row: that of
// its kind, for a start or complete, or another.
func (e *Encoder) plan(w *wire.Writer, row *wire.Row) *wire.Row {
	*e.boundary = boundary{}
	b, ev, phase := e.boundary, w.Ev, ""
	switch p := ev.Payload.(type) {
	case *agentevents.TurnStarted:
		e.bound(w, "turn", turnID(p.Turn), true)
	case *agentevents.TurnEnded:
		phase = ended(ev, p.Error)
		e.bound(w, "turn", turnID(p.Turn), false)
	case *agentevents.StepStarted:
		e.bound(w, "step", p.StepID, true)
		e.begin(cmp.Or(p.StepID, stepOf(p.Name, b.span)), "", "")
		lose(w, p.StepID == "", dialect.Made, "/payload/stepId", madeStep)
	case *agentevents.StepEnded:
		b.failed = p.Error.OK && p.Error.V.Code == "" && p.Error.V.Message == p.ResultSummary &&
			(p.ResultSummary != "" || dialect.Unknown(ev, Name, "phase") == `"complete"`)
		if !b.failed {
			phase = ended(ev, p.Error)
		}
		e.bound(w, "step", p.StepID, false)
		lose(w, p.StepID == "", dialect.Made, "/payload/stepId", madeStep)
	case *agentevents.ToolCalled:
		b.name = p.ToolID
		e.bound(w, "tool_call", p.CallID, true)
		e.call(w, p.CallID, nil)
	case *agentevents.ToolReturned:
		b.name = p.ToolID
		phase = e.returned(w, p)
	case *agentevents.AgentStarted:
		e.bound(w, "subagent", cmp.Or(ev.AgentID, ev.SpanID), true)
		b.name = cmp.Or(ev.AgentID, p.Agent.V.AgentID)
		known := b.name
		if b.name != "" && e.check.open.taken(about{b.name, "subagent", "", ev.RunID}, b.read.ends) {
			if known = ""; b.name == p.Agent.V.AgentID {
				phase = "start by span"
			} else {
				w.Lose(dialect.Made, "/payload/agent", "the agent's id")
			}
		}
		e.agent(w, known, "another one with this id is open: readers take the span's id")
		e.begin(known, "", "")
	case *agentevents.AgentEnded:
		// The name on the line may be one that another open agent has, too.
		kept := jsonwire.Text(string(dialect.Unknown(ev, Name, "/attributes/subagent_name")))
		switch {
		case p.Error.OK:
			phase = "error"
		case p.Outcome == agentevents.OutcomeAborted:
			phase = "cancelled"
		}
		e.bound(w, "subagent", cmp.Or(ev.AgentID, ev.SpanID), false)
		b.name = cmp.Or(kept, ev.AgentID)
		known := b.name
		if start := b.read.ends; start != nil {
			known = start.id
			b.name = cmp.Or(b.name, known)
		}
		besides(w, "subagent_name", kept, b.name, known)
		e.agent(w, known, "readers take the id of the span's start")
	case *agentevents.HandoffRequested:
		b.name = p.To.AgentID
		e.bound(w, "handoff", p.From.AgentID+"\x00"+p.To.AgentID, true)
		whole := p.From.AgentID != "" && p.To.AgentID != ""
		if whole {
			e.begin(p.From.AgentID, "", p.To.AgentID)
		}
		lose(w, !whole, dialect.Altered, "", "a handoff without both agents is read as span.recorded")
	case *agentevents.HandoffAccepted:
		b.name = p.To.AgentID
		e.bound(w, "handoff", p.From.AgentID+"\x00"+p.To.AgentID, false)
		lose(w, p.From.AgentID == "" || p.To.AgentID == "", dialect.Altered, "", "a handoff without both agents is read as span.recorded")
	case *agentevents.SpanRecorded:
		e.bound(w, "span", p.Subject+"\x00"+p.Name, p.Phase == "start")
		b.read.ends = nil
		if !slices.Contains(closing, p.Phase) {
			b.ends = nil
		}
	}
	if phase != "" {
		return format.CaseRow("span", b.subject+" "+phase)
	}
	return row
}

const madeStep = "readers take the name or the span's id"

// call lists what readers make of a call. start is the one that they know, if any.
func (e *Encoder) call(w *wire.Writer, call string, start *opened) {
	b, said, kept := e.boundary, call, ""
	if call == b.span.span { // the line has what was read instead
		kept = jsonwire.Text(string(dialect.Unknown(w.Ev, Name, "/attributes/call_id")))
		said = kept
	}
	id, tool := "", b.name
	if start != nil {
		id, tool = start.id, cmp.Or(tool, start.tool)
	}
	known := callOf(said, id, b.begins && e.check.open.taken(about{said, "tool_call", b.agent, b.run}, b.read.ends), b.span)
	switch {
	case tool == "":
		w.Lose(dialect.Altered, "", "a call without a tool is read as span.recorded")
		return
	case call == "":
		w.Lose(dialect.Made, "/payload/callId", "readers take the span's id")
	case known != call:
		detail := "readers take the id of the span's start"
		if b.begins {
			detail = "another one with this id is open: readers take the span's id"
		}
		w.Lose(dialect.Altered, "/payload/callId", detail)
	}
	besides(w, "call_id", kept, said, known)
	if b.begins {
		e.begin(known, b.agent, b.name)
	}
}

// besides lists that readers keep an attribute because they know the call or agent by
// another name, or that they no longer do.
func besides(w *wire.Writer, attribute, kept, said, known string) {
	lose(w, kept == "" && said != "" && said != known, dialect.Made, "/"+string(Name), attribute)
	if kept != "" && said == known {
		w.Lose(dialect.Dropped, "/"+string(Name)+"/~1attributes~1"+attribute, "readers know it by this name")
	}
}

// agent lists that readers know the agent by another id. The id of a node is no id of
// the event.
func (e *Encoder) agent(w *wire.Writer, known, detail string) {
	id := w.Ev.AgentID
	lose(w, id == "" && known != "", dialect.Made, "/agentId", "the agent's id")
	lose(w, id != "" && known != id && !e.fromNode(w), dialect.Altered, "/agentId", detail)
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

// returned is plan for the end of a call. It returns the phase.
func (e *Encoder) returned(w *wire.Writer, p *agentevents.ToolReturned) (phase string) {
	b, written := e.boundary, agentevents.ToolStatusOK
	switch p.Status {
	case agentevents.ToolStatusCancelled, agentevents.ToolStatusInterrupted:
		phase, written = "cancelled", agentevents.ToolStatusCancelled
	case agentevents.ToolStatusError, agentevents.ToolStatusForbidden, agentevents.ToolStatusRateLimited:
		b.failed, written = true, agentevents.ToolStatusError
		if p.Status != written && p.Error.V.Code == "" {
			b.code = string(p.Status)
			lose(w, p.Error.OK, dialect.Made, "/payload/error/code", "the status")
			lose(w, !p.Error.OK, dialect.Made, "/payload/error", "the status")
		}
	}
	lose(w, p.Status != written, dialect.Altered, "/payload/status", string(written))
	if b.failed && (p.Error.OK || b.code != "") {
		phase, b.failed = "error", false
	}
	if p.OneEvent && w.Ev.SpanID == "" {
		b.about = about{p.CallID, "tool_call", w.Ev.AgentID, w.Ev.RunID}
		b.span = e.newID(w)
	} else {
		e.bound(w, "tool_call", p.CallID, false)
	}
	e.call(w, p.CallID, b.read.ends)
	open := b.read.ends != nil
	twice := open && p.OneEvent
	lose(w, twice, dialect.Dropped, "/payload/oneEvent", "")
	lose(w, twice && p.Arguments != "", dialect.Dropped, "/payload/arguments", "")
	lose(w, twice && p.Arguments != "", dialect.Made, "/"+string(Name), "arguments")
	lose(w, !open && !p.OneEvent, dialect.Made, "/payload/oneEvent", "the log has no start of its span")
	return phase
}

// newID returns the event's span id, or makes one up of what the span is about and
// the event's number.
func (e *Encoder) newID(w *wire.Writer) spanID {
	b := e.boundary
	if w.Ev.SpanID != "" {
		return spanID{span: w.Ev.SpanID}
	}
	agent := max(1, jsonwire.Mix(jsonwire.Hash(b.run), jsonwire.Hash(b.agent)))
	h := jsonwire.Mix(uint64(max(0, slices.Index(subjects, b.subject))), w.Ev.Sequence)
	return spanID{made: jsonwire.Mix(h, jsonwire.Mix(agent, jsonwire.Hash(b.id)))}
}

// bound sets the id of a span that begins or ends. A subject that begins again before
// it has ended keeps its span.
func (e *Encoder) bound(w *wire.Writer, subject, id string, begins bool) {
	b := e.boundary
	b.about = about{id, subject, w.Ev.AgentID, w.Ev.RunID}
	b.span = e.newID(w)
	b.begins, b.ends = begins, e.open.find(&key{about: b.about})
	switch start := b.ends; {
	case w.Ev.SpanID != "":
		if !begins && (start == nil || start.spanID != b.span) {
			b.ends = e.open.ended(b.run, b.span, subject, false)
		}
	case start != nil:
		b.span, b.found = start.spanID, true
	}
	b.read.ends = e.check.open.ended(b.run, b.span, subject, begins)
}

// begin notes that readers know a span to be open.
func (e *Encoder) begin(id, agent, tool string) {
	e.read.begins = opened{about{id, e.subject, agent, e.run}, e.span, tool}
}

// settle changes the open spans once the line is written.
func (e *Encoder) settle(hasID, verbatim bool) {
	b := &e.own
	if verbatim {
		b.read = e.check.change
	}
	e.check.open.settle(&b.read)
	if verbatim && !hasID {
		return // readers find no pair
	}
	e.open.remove(b.ends)
	if b.begins {
		e.open.remove(e.open.ended(b.run, b.span, b.subject, true))
		e.open.add(&opened{about: b.about, spanID: b.span})
	}
}
