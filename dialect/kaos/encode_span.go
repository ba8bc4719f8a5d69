package kaos

import (
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
	other         bool  // see opened
}

// A spanID is the span id of an event, or an id that is made up.
type spanID struct {
	id   string // of the event
	made uint64 // the made-up id, of which the first madeDigits hex digits are written
}

const madeDigits = 12

// is reports whether the id reads as text on a line.
func (s spanID) is(text string) bool {
	if s.id != "" || len(text) != madeDigits {
		return s.id == text
	}
	var digits [16]byte
	return string(jsonwire.AppendHex(digits[:0], s.made)[:madeDigits]) == text
}

// append appends the id as a JSON string. Made-up ids depend on the place in the log:
// whole lines, which are compared, have none.
func (s spanID) append(dst []byte, whole bool) []byte {
	if s.id != "" || whole {
		return jsonwire.AppendString(dst, s.id)
	}
	n := len(dst) + 1
	dst = jsonwire.AppendHex(append(dst, '"'), s.made)
	return append(dst[:n+madeDigits], '"')
}

// plan sets e.boundary for the event that is written, and returns its row.
func (e *Encoder) plan(w *wire.Writer) *wire.Row {
	b, ev := &e.boundary, w.Ev
	set := func(subject, id string) { b.about = about{id, subject, ev.AgentID, ev.RunID} }
	phase := "start"
	switch p := ev.Payload.(type) {
	case *agentevents.TurnStarted:
		set("turn", turnID(p.Turn))
		e.opened(w)
	case *agentevents.TurnEnded:
		set("turn", turnID(p.Turn))
		phase = ended(ev, p.Error)
		e.closed(w)
	case *agentevents.StepStarted:
		set("step", p.StepID)
		noStepID(w, p.StepID)
		e.opened(w)
	case *agentevents.StepEnded:
		set("step", p.StepID)
		noStepID(w, p.StepID)
		b.failed = p.Error.OK && p.Error.V.Code == "" && p.Error.V.Message == p.ResultSummary &&
			(p.ResultSummary != "" || dialect.Unknown(ev, Name, "phase") == `"complete"`)
		if phase = "complete"; !b.failed {
			phase = ended(ev, p.Error)
		}
		e.closed(w)
	case *agentevents.ToolCalled:
		set("tool_call", p.CallID)
		b.name = p.ToolID
		e.opened(w)
		noCall(w, p.CallID, p.ToolID)
	case *agentevents.ToolReturned:
		set("tool_call", p.CallID)
		b.name = p.ToolID
		phase = e.returned(w, p)
		noCall(w, p.CallID, p.ToolID)
	case *agentevents.AgentStarted:
		if b.name = ev.AgentID; b.name == "" && p.Agent.V.AgentID != "" {
			if b.name = p.Agent.V.AgentID; ev.SpanID != "" && e.open.find(&about{b.name, "subagent", b.name, ev.RunID}) != nil {
				phase = "start by span"
			} else {
				w.Lose(dialect.Made, "/agentId", "the agent's id")
			}
		}
		set("subagent", orElse(ev.AgentID, ev.SpanID))
		e.opened(w)
	case *agentevents.AgentEnded:
		b.name = ev.AgentID
		if kept := dialect.Unknown(ev, Name, "/attributes/subagent_name"); kept != "" {
			b.name = jsonwire.Text(string(kept)) // a name that another open agent has, too
		}
		switch {
		case p.Error.OK:
			phase = "error"
		case p.Outcome == agentevents.OutcomeAborted:
			phase = "cancelled"
		default:
			phase = "complete"
		}
		set("subagent", orElse(ev.AgentID, ev.SpanID))
		e.closed(w)
	case *agentevents.HandoffRequested:
		b.name = p.To.AgentID
		set("handoff", p.From.AgentID+"\x00"+p.To.AgentID)
		e.opened(w)
		noHandoff(w, &p.From, &p.To)
	case *agentevents.HandoffAccepted:
		b.name, phase = p.To.AgentID, "complete"
		set("handoff", p.From.AgentID+"\x00"+p.To.AgentID)
		e.closed(w)
		noHandoff(w, &p.From, &p.To)
	case *agentevents.SpanRecorded:
		set("span", p.Subject+"\x00"+p.Name)
		switch p.Phase {
		case "start":
			e.opened(w)
		case "complete", "error", "cancelled":
			e.closed(w)
		default: // neither the start nor the end of the span
			e.closed(w)
			b.closes = false
		}
		return format.TypeRow("span")
	}
	return format.CaseRow("span", b.subject+" "+phase)
}

// ended returns the phase of the end of a turn or step.
func ended(ev *agentevents.Event, err agentevents.Opt[agentevents.ErrorInfo]) string {
	switch {
	case !err.OK:
		return "complete"
	case err.V.Code == "cancelled" && err.V.Message == "" && dialect.Unknown(ev, Name, "phase") == `"cancelled"`:
		return "cancelled"
	}
	return "error"
}

// returned is plan for the end of a call. It returns the phase.
func (e *Encoder) returned(w *wire.Writer, p *agentevents.ToolReturned) (phase string) {
	b := &e.boundary
	phase = "complete"
	switch p.Status {
	case agentevents.ToolStatusOK:
	case agentevents.ToolStatusError:
		b.failed = true
	case agentevents.ToolStatusCancelled:
		phase = "cancelled"
	case agentevents.ToolStatusInterrupted:
		phase = "cancelled"
		w.Lose(dialect.Altered, "/payload/status", "cancelled")
	case agentevents.ToolStatusForbidden, agentevents.ToolStatusRateLimited:
		b.failed = true
		w.Lose(dialect.Altered, "/payload/status", "error")
		if p.Error.V.Code == "" {
			b.code = string(p.Status)
			at := "/payload/error"
			if p.Error.OK {
				at = "/payload/error/code"
			}
			w.Lose(dialect.Made, at, "the status")
		}
	default:
		w.Lose(dialect.Altered, "/payload/status", "ok")
	}
	if b.failed && (p.Error.OK || b.code != "") {
		phase, b.failed = "error", false
	}
	if p.OneEvent && w.Ev.SpanID == "" {
		b.span = e.newID(w)
	} else {
		e.closed(w)
	}
	switch {
	case b.closes && p.OneEvent:
		w.Lose(dialect.Dropped, "/payload/oneEvent", "")
		if p.Arguments != "" {
			w.Lose(dialect.Dropped, "/payload/arguments", "")
			w.Lose(dialect.Made, "/"+string(Name), "arguments")
		}
	case !b.closes && !p.OneEvent:
		w.Lose(dialect.Made, "/payload/oneEvent", "the log has no start of its span")
	}
	return phase
}

// noStepID, noCall and noHandoff list what readers make of a span that does not say
// what it is about.
func noStepID(w *wire.Writer, id string) {
	if id == "" {
		w.Lose(dialect.Made, "/payload/stepId", "readers take the name or the span's id")
	}
}

func noCall(w *wire.Writer, call, tool string) {
	if tool == "" {
		w.Lose(dialect.Altered, "", "a call without a tool is read as span.recorded")
	} else if call == "" {
		w.Lose(dialect.Made, "/payload/callId", "readers take the span's id")
	}
}

func noHandoff(w *wire.Writer, from, to *agentevents.AgentRef) {
	if from.AgentID == "" || to.AgentID == "" {
		w.Lose(dialect.Altered, "", "a handoff without both agents is read as span.recorded")
	}
}

// turnID returns the id of a turn: its number.
func turnID(turn agentevents.Opt[int]) string {
	if !turn.OK {
		return ""
	}
	return strconv.Itoa(turn.V)
}

// withKinds are the subjects that have kinds of their own.
var withKinds = []string{"turn", "step", "tool_call", "subagent", "handoff"}

// newID returns the event's span id, or makes one up of what the span is about and
// the event's number.
func (e *Encoder) newID(w *wire.Writer) spanID {
	b := &e.boundary
	if w.Ev.SpanID != "" {
		return spanID{id: w.Ev.SpanID}
	}
	h := jsonwire.Mix(uint64(1+slices.Index(withKinds, b.subject)), w.Ev.Sequence)
	return spanID{made: jsonwire.Mix(h, jsonwire.Mix(max(1, jsonwire.Mix(jsonwire.Hash(b.run), jsonwire.Hash(b.agent))), jsonwire.Hash(b.id)))}
}

// opened sets the id of a span that begins. A subject that begins again before it has
// ended keeps its span.
func (e *Encoder) opened(w *wire.Writer) {
	b := &e.boundary
	b.opens = true
	b.span = e.newID(w)
	before := e.open.find(&b.about)
	switch {
	case before == nil:
	case w.Ev.SpanID == "":
		b.span, b.found, b.other = spanID{before.span, before.made}, true, before.other
	case b.span.id != before.span:
		b.other = true
		e.renamed(w)
	}
}

// closed sets the id of a span that ends.
func (e *Encoder) closed(w *wire.Writer) {
	b := &e.boundary
	start := e.open.find(&b.about)
	if w.Ev.SpanID != "" && paired(b.subject) && (start == nil || start.span != w.Ev.SpanID) {
		if start = e.open.bySpan(b.run, w.Ev.SpanID); start != nil && start.subject != b.subject {
			start = nil
		}
		if start != nil && start.id != b.id {
			e.otherID(w)
		}
	}
	b.span = e.newID(w)
	if start == nil {
		return
	}
	b.closes, b.start = true, start.about
	if w.Ev.SpanID == "" {
		b.span, b.found = spanID{start.span, start.made}, true
	}
	if start.other {
		e.renamed(w)
	}
}

// renamed notes that readers know a call or an agent by its span, because another
// one of the same id is open.
func (e *Encoder) renamed(w *wire.Writer) {
	b := &e.boundary
	switch {
	case b.span.is(b.id):
	case b.subject == "tool_call":
		w.Lose(dialect.Altered, "/payload/callId", "another call with this id is open: readers take the span's id")
		w.Lose(dialect.Made, "/"+string(Name), "call_id")
	case b.subject == "subagent" && w.Ev.AgentID != "":
		if b.opens {
			w.Lose(dialect.Made, "/payload/agent", "the agent's id")
		} else {
			w.Lose(dialect.Made, "/"+string(Name), "subagent_name")
		}
		w.Lose(dialect.Altered, "/agentId", "another agent with this id is open: readers know this one by its span")
	}
}

// otherID notes that readers take the id of the start for what ends.
func (e *Encoder) otherID(w *wire.Writer) {
	switch e.subject {
	case "tool_call":
		w.Lose(dialect.Altered, "/payload/callId", "readers take the id of the span's start")
		w.Lose(dialect.Made, "/"+string(Name), "call_id")
	case "subagent":
		w.Lose(dialect.Altered, "/agentId", "readers take the id of the span's start")
		w.Lose(dialect.Made, "/"+string(Name), "subagent_name")
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
			e.open.remove(e.open.bySpan(b.run, b.span.id))
		}
		e.open.add(opened{about: b.about, span: b.span.id, made: b.span.made, other: b.other})
	}
}
