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
// it does to the open spans. That takes effect when the line is written, so that a
// refused event changes nothing.
type boundary struct {
	about         // of the span
	span   spanID // on the line
	name   string // of the span, after the prefix
	code   string // error_type of an event that has none
	failed bool   // is_error

	found         bool  // the id is that of the span's start
	opens, closes bool  // the span
	start         about // of the start that it closes
	other, named  bool  // see opened
}

// plan sets e.boundary for the event that is written, and returns its row: that of
// its kind, for a start or complete, or another.
func (e *Encoder) plan(w *wire.Writer, row *wire.Row) *wire.Row {
	b, ev, phase := &e.boundary, w.Ev, ""
	switch p := ev.Payload.(type) {
	case *agentevents.TurnStarted:
		e.opened(w, "turn", turnID(p.Turn))
	case *agentevents.TurnEnded:
		phase = ended(ev, p.Error)
		e.closed(w, "turn", turnID(p.Turn))
	case *agentevents.StepStarted:
		e.opened(w, "step", p.StepID)
		lose(w, p.StepID == "", dialect.Made, "/payload/stepId", "readers take the name or the span's id")
	case *agentevents.StepEnded:
		b.failed = p.Error.OK && p.Error.V.Code == "" && p.Error.V.Message == p.ResultSummary &&
			(p.ResultSummary != "" || dialect.Unknown(ev, Name, "phase") == `"complete"`)
		if !b.failed {
			phase = ended(ev, p.Error)
		}
		e.closed(w, "step", p.StepID)
		lose(w, p.StepID == "", dialect.Made, "/payload/stepId", "readers take the name or the span's id")
	case *agentevents.ToolCalled:
		b.name = p.ToolID
		e.opened(w, "tool_call", p.CallID)
		nameless(w, p.CallID, p.ToolID)
	case *agentevents.ToolReturned:
		b.name = p.ToolID
		phase = e.returned(w, p)
		nameless(w, p.CallID, p.ToolID)
	case *agentevents.AgentStarted:
		if b.name = ev.AgentID; b.name == "" && p.Agent.V.AgentID != "" {
			b.name = p.Agent.V.AgentID
			if ev.SpanID != "" && e.open.find(&about{b.name, "subagent", b.name, ev.RunID}) != nil {
				phase = "start by span"
			}
			b.named = phase == ""
			lose(w, b.named, dialect.Made, "/agentId", "the agent's id")
		}
		e.opened(w, "subagent", cmp.Or(ev.AgentID, ev.SpanID))
	case *agentevents.AgentEnded:
		// The name on the line may be one that another open agent has, too.
		b.name = cmp.Or(jsonwire.Text(string(dialect.Unknown(ev, Name, "/attributes/subagent_name"))), ev.AgentID)
		switch {
		case p.Error.OK:
			phase = "error"
		case p.Outcome == agentevents.OutcomeAborted:
			phase = "cancelled"
		}
		e.closed(w, "subagent", cmp.Or(ev.AgentID, ev.SpanID))
	case *agentevents.HandoffRequested:
		b.name = p.To.AgentID
		e.opened(w, "handoff", p.From.AgentID+"\x00"+p.To.AgentID)
		lose(w, p.From.AgentID == "" || p.To.AgentID == "", dialect.Altered, "", "a handoff without both agents is read as span.recorded")
	case *agentevents.HandoffAccepted:
		b.name = p.To.AgentID
		e.closed(w, "handoff", p.From.AgentID+"\x00"+p.To.AgentID)
		lose(w, p.From.AgentID == "" || p.To.AgentID == "", dialect.Altered, "", "a handoff without both agents is read as span.recorded")
	case *agentevents.SpanRecorded:
		if id := p.Subject + "\x00" + p.Name; p.Phase == "start" {
			e.opened(w, "span", id)
		} else {
			e.closed(w, "span", id)
			b.closes = b.closes && slices.Contains(closing, p.Phase)
		}
	}
	if phase != "" {
		return format.CaseRow("span", b.subject+" "+phase)
	}
	return row
}

// nameless lists what readers make of a call without a tool or an id.
func nameless(w *wire.Writer, call, tool string) {
	lose(w, tool == "", dialect.Altered, "", "a call without a tool is read as span.recorded")
	lose(w, tool != "" && call == "", dialect.Made, "/payload/callId", "readers take the span's id")
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
	b, written := &e.boundary, p.Status
	switch p.Status {
	case agentevents.ToolStatusOK:
	case agentevents.ToolStatusCancelled, agentevents.ToolStatusInterrupted:
		phase, written = "cancelled", agentevents.ToolStatusCancelled
	case agentevents.ToolStatusError, agentevents.ToolStatusForbidden, agentevents.ToolStatusRateLimited:
		b.failed, written = true, agentevents.ToolStatusError
		if p.Status != written && p.Error.V.Code == "" {
			b.code = string(p.Status)
			lose(w, p.Error.OK, dialect.Made, "/payload/error/code", "the status")
			lose(w, !p.Error.OK, dialect.Made, "/payload/error", "the status")
		}
	default:
		written = agentevents.ToolStatusOK
	}
	lose(w, p.Status != written, dialect.Altered, "/payload/status", string(written))
	if b.failed && (p.Error.OK || b.code != "") {
		phase, b.failed = "error", false
	}
	if p.OneEvent && w.Ev.SpanID == "" {
		b.about = about{p.CallID, "tool_call", w.Ev.AgentID, w.Ev.RunID}
		b.span = e.newID(w)
	} else {
		e.closed(w, "tool_call", p.CallID)
	}
	twice := b.closes && p.OneEvent
	lose(w, twice, dialect.Dropped, "/payload/oneEvent", "")
	lose(w, twice && p.Arguments != "", dialect.Dropped, "/payload/arguments", "")
	lose(w, twice && p.Arguments != "", dialect.Made, "/"+string(Name), "arguments")
	lose(w, !b.closes && !p.OneEvent, dialect.Made, "/payload/oneEvent", "the log has no start of its span")
	return phase
}

// newID returns the event's span id, or makes one up of what the span is about and
// the event's number.
func (e *Encoder) newID(w *wire.Writer) spanID {
	b := &e.boundary
	if w.Ev.SpanID != "" {
		return spanID{span: w.Ev.SpanID}
	}
	agent := max(1, jsonwire.Mix(jsonwire.Hash(b.run), jsonwire.Hash(b.agent)))
	h := jsonwire.Mix(uint64(1+slices.Index(withKinds, b.subject)), w.Ev.Sequence)
	return spanID{made: jsonwire.Mix(h, jsonwire.Mix(agent, jsonwire.Hash(b.id)))}
}

// opened sets the id of a span that begins. A subject that begins again before it has
// ended keeps its span.
func (e *Encoder) opened(w *wire.Writer, subject, id string) {
	b := &e.boundary
	b.about = about{id, subject, w.Ev.AgentID, w.Ev.RunID}
	b.opens, b.span = true, e.newID(w)
	if before := e.open.find(&b.about); before != nil && w.Ev.SpanID == "" {
		b.span, b.other, b.found = before.spanID, before.other, true
	} else if before != nil && b.span != before.spanID {
		b.other = true
		e.otherID(w, b.span.is(id), "another one with this id is open: readers take the span's id")
	}
}

// closed sets the id of a span that ends.
func (e *Encoder) closed(w *wire.Writer, subject, id string) {
	b := &e.boundary
	b.about = about{id, subject, w.Ev.AgentID, w.Ev.RunID}
	b.span = e.newID(w)
	start := e.open.find(&b.about)
	if w.Ev.SpanID != "" && paired(subject) && (start == nil || start.spanID != b.span) {
		if start = e.open.bySpan(b.run, w.Ev.SpanID); start == nil || start.subject != subject {
			return
		}
		e.otherID(w, start.id == id, "readers take the id of the span's start")
	}
	if start == nil {
		return
	}
	b.closes, b.start = true, start.about
	lose(w, start.named && w.Ev.AgentID == "", dialect.Made, "/agentId", "that of the agent's start")
	if w.Ev.SpanID == "" {
		b.span, b.found = start.spanID, true
	}
	if start.other {
		e.otherID(w, b.span.is(id), "another one with this id is open: readers take the span's id")
	}
}

// otherID lists that readers know a call or an agent by another id, unless it is the
// same.
func (e *Encoder) otherID(w *wire.Writer, same bool, detail string) {
	switch {
	case same:
	case e.subject == "tool_call":
		w.Lose(dialect.Altered, "/payload/callId", detail)
		w.Lose(dialect.Made, "/"+string(Name), "call_id")
	case e.subject == "subagent":
		w.Lose(dialect.Altered, "/agentId", detail)
		lose(w, e.opens, dialect.Made, "/payload/agent", "the agent's id")
		lose(w, !e.opens, dialect.Made, "/"+string(Name), "subagent_name")
	}
}

// settle changes the open spans once the line is written.
func (e *Encoder) settle() {
	b := &e.change
	if b.closes {
		e.open.remove(e.open.find(&b.start))
	}
	if b.opens {
		e.open.remove(e.open.find(&b.about))
		if paired(b.subject) {
			e.open.remove(e.open.bySpan(b.run, b.span.span))
		}
		e.open.add(opened{about: b.about, spanID: b.span, other: b.other, named: b.named})
	}
}
