package kaos

import (
	"bytes"
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/wire"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// EncoderOptions configure an [Encoder]. The zero EncoderOptions write JSON
// Lines.
type EncoderOptions struct {
	// SSE writes each event as a Server-Sent Event: the lines event, data and
	// id, and a blank line. Only the data of a frame that was read is written
	// back; its other lines are not.
	SSE bool
	// Anchor and AnchorSeconds turn times into timestamps, as in [Options].
	// With the zero Anchor timestamps are seconds since the Unix epoch. AnchorSeconds may be
	// negative, as there.
	Anchor        time.Time
	AnchorSeconds float64
	// Fast leaves the lines unread: Losses then returns nil. The lines are the same.
	Fast bool
}

// An Encoder writes events as KAOS lines. It implements [dialect.Encoder]. It
// must not be used concurrently.
//
// An event is one line, but the end of an agent has a usage_observed before it if it says
// what the agent used and no line does. A whole block of text or reasoning is one delta,
// unless its deltas are there. The encoder makes up what a line requires and lists
// it as a loss: a span without SpanID gets an id derived from what the span is
// about, the same for its start and its end, and as its parent the span in which it
// begins: that of the call that spawns the agent, or of the agent's latest open step or
// turn, or of the agent. The end of a span gets the time since its start; an event without
// SessionID its run's id; an agent without an id that of its node, with which it ends if that
// fails, or the span of its start ([dialect.Names]).
//
// The memory of an Encoder grows with the number of runs, of open spans and of
// different losses. It forgets the oldest open spans, but never one of the
// latest 8,192. It forgets in which spans others begin when 8,192 agents have open
// ones, and takes the 16th of an agent for the innermost.
type Encoder struct {
	sse     bool
	w       wire.Writer
	measure *dialect.Measure // nil: the losses are not asked for
	reader  *Decoder         // of measure
	numbers dialect.Numbers
	open    opens              // as events name them
	scopes  map[scope][]spanID // the open spans of agents, turns and steps that others begin in, the innermost last
	check   *Decoder           // reads lines, and knows which spans readers of the log know to be open

	accounts map[scope]*account
	latest   *account // of the latest event
	untold   bool     // the event has a usage_observed before its line

	ofNode        bool // the agent of the event is its node
	spanned       bool // the event gets the agent that is known by a span,
	named         bool // and has named it itself
	names         dialect.Names
	handoffs      map[scope][]pair // the open ones of a handoff id
	called        map[scope]string // the ids by which span lines call agents that are known by their spans
	line          []byte           // in a frame
	*boundary                      // of the line that is written: own, or compared
	own, compared boundary
	// Of the line of the event itself, not of one that it is compared with:
	typ    string
	number int64
}

// NewEncoder returns an encoder.
func NewEncoder(o EncoderOptions) *Encoder {
	reader := Options{Anchor: o.Anchor, AnchorSeconds: o.AnchorSeconds}
	e := &Encoder{sse: o.SSE, w: wire.Writer{F: format}, check: NewDecoder(reader)}
	if !o.Fast {
		e.reader = NewDecoder(reader)
		e.measure = dialect.NewMeasure(Name, e.reader, words)
	}
	return e
}

func encoderOf(w *wire.Writer) *Encoder { return (*Encoder)(w.Doc.(*document)) }

// End appends nothing: every event is written at once.
func (e *Encoder) End(dst []byte) ([]byte, error) { return dst, nil }

// Losses returns the losses so far: the encoder reads each line back, see [dialect.Measure].
func (e *Encoder) Losses() []dialect.Loss {
	if e.measure == nil {
		return nil
	}
	return e.measure.Losses()
}

// Append appends the line of an event. See [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	defer e.w.Release()
	mark := len(dst)
	dst, err := e.write(dst, ev)
	if e.measure != nil {
		e.measure.Wrote(&ev, dst[mark:], err)
		e.reader.release()
	}
	return dst, err
}

// write appends the lines of an event.
func (e *Encoder) write(dst []byte, ev agentevents.Event) ([]byte, error) {
	if ev.SchemaVersion == "" {
		ev.SchemaVersion = agentevents.SchemaVersion // readers give it
	}
	agent := e.names.Of(&ev) // keeps agents without an id apart
	id := e.idOf(&ev, agent)
	if e.told(&ev, agent) {
		e.w.Losses.Add(&ev, dialect.Dropped, "", "its deltas are there")
		return dst, nil
	}
	out, err := dst, error(nil)
	var after account
	var used *agentevents.UsageObserved
	if p, ok := ev.Payload.(*agentevents.AgentEnded); ok {
		after, used = e.account(ev.RunID, agent).ended(p)
	}
	if e.untold = used != nil; e.untold {
		losses := e.w.Losses // those of the event say what is lost of its usage
		e.w.Losses = dialect.Losses{}
		out, err = e.append(out, &agentevents.Event{Scope: agentevents.Scope{SessionID: ev.SessionID}, RunID: ev.RunID, AgentID: id,
			Sequence: ev.Sequence, Time: ev.Time, Marks: ev.Marks & agentevents.MarkLate, SchemaVersion: ev.SchemaVersion, Payload: used})
		if e.w.Losses = losses; err != nil {
			return dst, err
		}
		e.w.Losses.Add(&ev, dialect.Made, "", "a usage_observed in front of it says what the agent used")
	}
	if out, err = e.append(out, &ev); err != nil {
		return dst, err
	}
	e.note(&ev, agent, after)
	return out, nil
}

// idOf returns the id of the event's agent on the lines, and gives it to the event. That of
// an agent that starts without an id is the span of its start, until the line of a span there
// has another one; its own start and end say their span.
func (e *Encoder) idOf(ev *agentevents.Event, agent string) string {
	e.ofNode, e.spanned = ev.AgentID == "" && len(ev.NodeRunID)|len(ev.NodeID) != 0, false
	if agent == ev.AgentID || e.ofNode {
		ev.AgentID = agent
		return agent
	}
	key := scope{ev.RunID, agent}
	switch row := format.Row(ev.Kind()); ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		return cmp.Or(e.called[key], agent)
	default:
		if ev.AgentID != "" && row != nil && row.Type == "span" && (ev.SpanID == agent || ev.ParentSpanID == agent) {
			if e.called == nil {
				e.called = map[scope]string{}
			}
			e.called[scope{strings.Clone(ev.RunID), strings.Clone(agent)}] = strings.Clone(ev.AgentID)
		}
	}
	id := cmp.Or(e.called[key], agent)
	if e.spanned = id != ev.AgentID; e.spanned {
		e.named, ev.AgentID = ev.AgentID != "", id
	}
	return id
}

// append appends one line.
func (e *Encoder) append(dst []byte, ev *agentevents.Event) ([]byte, error) {
	out := dst
	if e.sse {
		out = e.line
	}
	mark := len(out)
	out, verbatim, err := e.w.Append(out, ev, (*document)(e))
	if err != nil {
		return dst, err
	}
	if e.own.subject != "" {
		e.settle(ev.SpanID != "", verbatim, ev.Time)
	}
	e.everywhere(ev, verbatim)
	e.check.roots.note(ev)
	if hash := jsonwire.Hash(bytes.TrimSuffix(out[mark:], newline)); !verbatim || e.check.identifies() {
		if _, again := e.check.seen.find(hash); again {
			e.w.Losses.Add(ev, dialect.Dropped, "", repeatedLine)
		}
		e.check.seen.add(hash, e.number)
	}
	if !e.sse {
		return out, nil
	}
	e.line = wire.Buffer(out)
	if !strings.ContainsAny(e.typ, "\r\n") {
		dst = append(append(append(dst, "event: "...), e.typ...), '\n')
	}
	dst = append(append(dst, "data: "...), out...)
	return append(jsonwire.AppendInt(append(dst, "id: "...), e.number), "\n\n"...), nil
}

// everywhere counts the losses that do not depend on the kind. Readers of a verbatim
// line derive the same id, number and session.
func (e *Encoder) everywhere(ev *agentevents.Event, verbatim bool) {
	l, next := &e.w.Losses, e.numbers.Next(ev.RunID)
	if verbatim {
		return
	}
	if ev.ID != "" {
		l.Every(ev, dialect.Dropped, "/id", "the document has no ids of events")
	}
	if next != ev.Sequence {
		l.Every(ev, dialect.Dropped, "/sequence", "a reader numbers the events of a run from 0 without gaps; the number on the line is an extra member")
	}
	if ev.SessionID == "" {
		l.Every(ev, dialect.Made, "/sessionId", "required; the run's id")
	}
	switch {
	case ev.SpanID != "" || e.own.subject == "":
	case e.own.found:
		l.Every(ev, dialect.Made, "/spanId", "the id that its start got")
	default:
		l.Every(ev, dialect.Made, "/spanId", "required; derived from what the span is about")
	}
}

const repeatedLine = "an earlier event has the same line: readers take it for that one"

var newline = []byte("\n")

// A document is the part of an Encoder that its Writer asks.
type document Encoder

func (d *document) Line(w *wire.Writer, dst []byte) ([]byte, error) {
	e, mark := (*Encoder)(d), len(dst)
	if e.boundary = &e.compared; !w.Whole {
		e.boundary = &e.own
		e.own.subject = ""
	}
	if w.Ev.RunID == "" {
		w.Break(RuleRequired, "/runId", "is required")
	}
	lose(w, e.fromNode(w), dialect.Made, "/agentId", "the id of the node's execution, or of the node")
	if e.spanned && w.Ev != &w.Read {
		const detail = "the span that its start has in the place of an id"
		lose(w, e.named, dialect.Altered, "/agentId", detail)
		lose(w, !e.named, dialect.Made, "/agentId", detail)
	}
	switch p := w.Ev.Payload.(type) {
	case *agentevents.TextCompleted:
		if p.Text != "" {
			w.SayAs(&agentevents.TextDelta{BlockID: p.BlockID, Delta: p.Text}, "written as one delta")
		}
	case *agentevents.AgentReasoned:
		if p.Reasoning != "" {
			w.SayAs(&agentevents.AgentReasoningDelta{BlockID: p.BlockID, Delta: p.Reasoning, Verbosity: p.Verbosity, TokenCount: p.TokenCount}, "written as one delta")
		}
	case *agentevents.HandoffAccepted:
		if of := e.handoff(w.Ev.RunID, p); !w.Whole && of != (pair{p.From.AgentID, p.To.AgentID}) {
			lose(w, of.from != p.From.AgentID, dialect.Altered, "/payload/from", ofRequest)
			lose(w, of.to != p.To.AgentID, dialect.Altered, "/payload/to", ofRequest)
			ev, accepted := *w.Ev, *p
			accepted.From.AgentID, accepted.To.AgentID, ev.Payload = of.from, of.to, &accepted
			w.Say(&ev)
		}
	case *agentevents.NodeFailed:
		if e.ofNode && w.Ev.NodeRunID != "" && e.account(w.Ev.RunID, w.Ev.AgentID).open {
			w.SayAs(&agentevents.AgentEnded{Error: agentevents.Some(p.Error)}, "written as the end of the node's agent")
		}
	}
	row := format.Row(w.Ev.Kind())
	if row == nil {
		w.After, _ = strconv.Atoi(string(dialect.Unknown(w.Ev, Name, afterType)))
	} else if row.Type == "span" {
		row = e.plan(w, row)
	}
	dst, err := w.Line(dst, row)
	if err != nil {
		return dst, err
	}
	e.otherwise(w, row, dst[mark:])
	if !w.Whole {
		e.typ = w.Type()
	}
	return dst, nil
}

// fromNode reports whether the event that is written has its node's id as its agent's.
func (e *Encoder) fromNode(w *wire.Writer) bool { return e.ofNode && w.Ev != &w.Read }

// otherwise lists an event whose line is read as another kind.
func (e *Encoder) otherwise(w *wire.Writer, row *wire.Row, line []byte) {
	switch p := w.Ev.Payload.(type) {
	case *agentevents.MemoryChanged:
		tokens := strings.Contains(string(p.Attributes), `"tokens_`) && caseOf(row.Type, string(line)) != ""
		lose(w, tokens, dialect.Altered, "", "a memory summary that counts tokens is read as context.compacted")
	case *agentevents.ContextCompacted:
		lose(w, !p.TokensBefore.OK && !p.TokensAfter.OK, dialect.Altered, "", "without token counts it is read as memory.changed")
	case *agentevents.ApprovalRequested:
		lose(w, p.ApprovalID != cmp.Or(p.CallID, w.Ev.RunID), dialect.Altered, "/payload/approvalId", "readers take the call's id, or without one the run's id")
	case *agentevents.SpanRecorded:
		if format.CaseRow("span", caseOf("span", string(line))) == row {
			break
		}
		var read agentevents.Event
		if e.check.read(string(line), &read) == nil && read.Kind() != w.Ev.Kind() {
			w.Lose(dialect.Altered, "", "the pair of subject and phase is read as "+string(read.Kind()))
		}
		e.boundary.read = e.check.change
	}
}

// Reread reads a line again, as readers of the lines so far do.
func (d *document) Reread(w *wire.Writer, line string) error {
	e, r := (*Encoder)(d), &d.check.r
	if e.untold {
		return errUntold
	}
	if strings.IndexByte(line, '\r') >= 0 {
		return errFields
	}
	if value, ok := strings.CutPrefix(line, "data:"); ok {
		line = strings.TrimPrefix(value, " ")
		w.Origin = line
	}
	r.Continue(w)
	if err := e.check.read(line, &w.Read); err != nil {
		return err
	}
	if !r.Has("sequence") {
		w.Read.Sequence = w.Ev.Sequence // it came from the line's place in the log
	}
	return nil
}

// errUntold is the error of an event whose line alone does not say what the event says.
var errUntold = errors.New("its usage has a line of its own")

// errFields is the error of a line that may be several fields of a frame.
var errFields = errors.New("a CR may separate fields")
