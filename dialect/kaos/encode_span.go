package kaos

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

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
	b, ev, phase, whole := e.boundary, w.Ev, "", false
	id, other, _ := parts(ev)
	subject, usual, _ := strings.Cut(row.Case, " ")
	b.begins = usual == "start"
	b.about = about{"", subject, ev.AgentID, ev.RunID}
	switch subject {
	case "step", "tool_call":
		b.id = *id
	case "subagent":
		b.id = cmp.Or(*id, ev.SpanID)
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
		phase, whole = e.returned(w, p), p.OneEvent && ev.SpanID == ""
	case *agentevents.AgentEnded:
		switch {
		case p.Error.OK:
			phase = "error"
		case p.Outcome == agentevents.OutcomeAborted:
			phase = "cancelled"
		}
	case *agentevents.SpanRecorded:
		b.subject, b.begins = "span", p.Phase == "start"
	}
	e.bound(ev, whole)
	switch b.subject {
	case "step":
		lose(w, *id == "", dialect.Made, "/payload/stepId", "readers take the name or the span's id")
		e.begin(cmp.Or(*id, stepOf(*other, b.span)), "", "")
	case "tool_call":
		b.name = *other
		e.call(w, *id)
	case "subagent":
		phase = cmp.Or(phase, e.agent(w, *id, other))
	case "handoff":
		b.name = *other
		if *id == "" || *other == "" {
			w.Lose(dialect.Altered, "", "a handoff without both agents is read as span.recorded")
			break
		}
		e.begin(*id, "", *other)
	case "span":
		b.read.ends = nil
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
		b.span, b.found = start.spanID, true
	default: // what the span is about and the event's number make the id
		agent := max(1, jsonwire.Mix(jsonwire.Hash(b.run), jsonwire.Hash(b.agent)))
		h := jsonwire.Mix(uint64(max(0, slices.Index(subjects, b.subject))), ev.Sequence)
		b.span.made = jsonwire.Mix(h, jsonwire.Mix(agent, jsonwire.Hash(b.id)))
	}
	b.read.ends = e.check.open.ended(b.run, b.span, b.subject, b.begins)
}

// begin notes that readers know a span to be open, if the line begins one.
func (e *Encoder) begin(id, agent, other string) {
	if e.begins {
		e.read.begins = opened{about{id, e.subject, agent, e.run}, e.span, other}
	}
}

// call lists what readers make of a call.
func (e *Encoder) call(w *wire.Writer, call string) {
	b, said, kept := e.boundary, call, ""
	if call == b.span.span { // the line has what was read instead
		kept = jsonwire.Text(string(dialect.Unknown(w.Ev, Name, "/attributes/call_id")))
		said = kept
	}
	start, detail := b.read.start(b.begins), "readers take the id of the span's start"
	taken := b.begins && e.check.open.taken(about{said, b.subject, b.agent, b.run}, b.read.ends)
	if b.begins {
		detail = "another one with this id is open: readers take the span's id"
	}
	known := callOf(said, start.id, taken, b.span)
	switch {
	case b.name == "" && start.other == "":
		w.Lose(dialect.Altered, "", "a call without a tool is read as span.recorded")
		return
	case call == "":
		w.Lose(dialect.Made, "/payload/callId", "readers take the span's id")
	case known != call:
		w.Lose(dialect.Altered, "/payload/callId", detail)
	}
	besides(w, "call_id", kept, said, known)
	e.begin(known, b.agent, b.name)
}

// agent lists what readers make of the agent of a sub-agent's span. It returns the
// phase, if it is not that of the kind. The id of a node is no id of the event.
func (e *Encoder) agent(w *wire.Writer, id string, other *string) (phase string) {
	b, start := e.boundary, e.read.start(e.begins)
	kept, detail := "", "another one with this id is open: readers take the span's id"
	if b.begins {
		b.name = cmp.Or(id, *other)
	} else { // the name on the line may be one that another open agent has, too
		kept, detail = jsonwire.Text(string(dialect.Unknown(w.Ev, Name, "/attributes/subagent_name"))), "readers take the id of the span's start"
		b.name = cmp.Or(kept, id, start.id)
	}
	known := b.name
	switch taken := b.begins && known != "" && e.check.open.taken(about{known, b.subject, "", b.run}, b.read.ends); {
	case start.subject != "":
		known = start.id
	case taken && known == *other:
		known, phase = "", "start by span"
	case taken:
		known = ""
		w.Lose(dialect.Made, "/payload/agent", "the agent's id")
	}
	if !b.begins {
		besides(w, "subagent_name", kept, b.name, known)
	}
	e.begin(known, "", "")
	lose(w, id == "" && known != "", dialect.Made, "/agentId", "the agent's id")
	lose(w, id != "" && known != id && !e.fromNode(w), dialect.Altered, "/agentId", detail)
	return phase
}

// besides lists that readers keep an attribute because they know the call or agent by
// another name, or that they no longer do.
func besides(w *wire.Writer, attribute, kept, said, known string) {
	lose(w, kept == "" && said != "" && said != known, dialect.Made, "/"+string(Name), attribute)
	if kept != "" && said == known {
		w.Lose(dialect.Dropped, "/"+string(Name)+"/~1attributes~1"+attribute, "readers know it by this name")
	}
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

// returned sets what the status of a call that ends needs on the line, and returns the
// phase, if it is not complete.
func (e *Encoder) returned(w *wire.Writer, p *agentevents.ToolReturned) (phase string) {
	written := agentevents.ToolStatusOK
	switch p.Status {
	case agentevents.ToolStatusCancelled, agentevents.ToolStatusInterrupted:
		phase, written = "cancelled", agentevents.ToolStatusCancelled
	case agentevents.ToolStatusError, agentevents.ToolStatusForbidden, agentevents.ToolStatusRateLimited:
		written = agentevents.ToolStatusError
		if e.failed = !p.Error.OK && p.Status == written; !e.failed {
			phase = "error"
		}
	}
	lose(w, p.Status != written, dialect.Altered, "/payload/status", string(written))
	return phase
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
