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
	"github.com/agentevents/agentevents/dialect/internal/engine"
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
	// Fast leaves the losses out: Losses returns nil. The lines are the same.
	Fast bool
}

// An Encoder writes events as KAOS lines. It implements [dialect.Encoder]. It must not be used
// concurrently.
//
// An event is one line. The end of an agent has a usage_observed before it if the end has the
// agent's usage and no line does. A whole block of text or reasoning is one delta, unless its
// deltas have been written. The encoder makes up the values that a line requires, and lists them as
// losses. A span without SpanID gets an id derived from its subject, the same for its start and its
// end. Its parent is the span in which it begins: the span of the call that spawns the agent, of
// the agent's latest open step or turn, or of the agent. The end of a span gets the time since its
// start. An event without SessionID gets its run's id. An agent without an id gets the id of its
// node, and ends if the node fails; without a node it gets the span of its start ([dialect.Names]).
//
// The memory of an Encoder grows with the number of runs, of open spans and of different losses. It
// forgets the oldest open spans, but never one of the latest 8,192. When 8,192 agents have open
// spans, it forgets in which spans others begin. It takes the 16th open span of an agent for the
// innermost.
type Encoder struct {
	sse     bool
	w       engine.Writer
	measure *dialect.Measure               // nil: the losses are not asked for
	open    opens                          // as events name them
	scopes  engine.Recent[scope, []spanID] // open spans of agents, turns and steps that others begin in, innermost last
	check   *Decoder                       // reads the lines, and knows which spans readers of the log know to be open

	accounts engine.Recent[scope, *account]
	latest   *account // of the latest event
	untold   bool     // the event has a usage_observed before its line

	ofNode        bool // the agent of the event is its node
	names         dialect.Names
	handoffs      engine.Recent[scope, []pair] // the open ones of a handoff id
	called        engine.Recent[scope, string] // the ids by which span lines call agents that are known by their spans
	line          []byte                       // in a frame
	read          []agentevents.Event
	*boundary     // of the line that is written: own, or compared
	own, compared boundary
	// Of the line of the event itself, not of one that it is compared with:
	kind   agentevents.Kind
	typ    string
	number int64
}

// NewEncoder returns an encoder.
func NewEncoder(o EncoderOptions) *Encoder {
	reader := Options{Anchor: o.Anchor, AnchorSeconds: o.AnchorSeconds}
	e := &Encoder{sse: o.SSE, w: engine.Writer{F: format}, check: NewDecoder(reader)}
	if !o.Fast {
		e.measure = dialect.NewMeasure(Name, e.check, words)
	}
	return e
}

func encoderOf(w *engine.Writer) *Encoder { return (*Encoder)(w.Doc.(*document)) }

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
		e.check.release()
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
		return dst, nil // its deltas are there
	}
	out, err := dst, error(nil)
	var after account
	var used *agentevents.UsageObserved
	if p, ok := ev.Payload.(*agentevents.AgentEnded); ok {
		after, used = e.account(ev.RunID, agent).ended(p)
	}
	if e.untold = used != nil; e.untold {
		out, err = e.append(out, &agentevents.Event{Scope: agentevents.Scope{SessionID: ev.SessionID},
			RunID: ev.RunID, AgentID: id,
			Sequence: ev.Sequence, Time: ev.Time, Marks: ev.Marks & agentevents.MarkLate,
			SchemaVersion: ev.SchemaVersion, Payload: used})
		if err != nil {
			return dst, err
		}
	}
	if out, err = e.append(out, &ev); err != nil {
		return dst, err
	}
	e.note(&ev, agent, after)
	return out, nil
}

// idOf returns the id of the event's agent on the lines, and sets it in the event. The id of an
// agent that starts without one is the span of its start, until the line of a span there has
// another id. Its own start and end have their span.
func (e *Encoder) idOf(ev *agentevents.Event, agent string) string {
	e.ofNode = ev.AgentID == "" && len(ev.NodeRunID)|len(ev.NodeID) != 0
	if agent == ev.AgentID || e.ofNode {
		ev.AgentID = agent
		return agent
	}
	key := scope{ev.RunID, agent}
	switch row := format.Row(ev.Kind()); ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		return cmp.Or(e.called.Of(key), agent)
	default:
		if ev.AgentID != "" && row != nil && row.Type == "span" && (ev.SpanID == agent || ev.ParentSpanID == agent) {
			e.called.Set(scope{strings.Clone(ev.RunID), strings.Clone(agent)}, strings.Clone(ev.AgentID))
		}
	}
	called, _ := e.called.Use(key)
	ev.AgentID = cmp.Or(called, agent)
	return ev.AgentID
}

// append appends one line.
func (e *Encoder) append(dst []byte, ev *agentevents.Event) ([]byte, error) {
	out := dst
	if e.sse {
		out = e.line
	}
	mark := len(out)
	e.kind = ev.Kind()
	out, verbatim, err := e.w.Append(out, ev, (*document)(e))
	if err != nil {
		return dst, err
	}
	if e.own.subject != "" {
		e.settle(ev.SpanID != "", verbatim, ev.Time)
	}
	if e.measure == nil {
		e.follow(out[mark:], ev)
	}
	if !e.sse {
		return out, nil
	}
	e.line = engine.Buffer(out)
	if !strings.ContainsAny(e.typ, "\r\n") {
		dst = append(append(append(dst, "event: "...), e.typ...), '\n')
	}
	dst = append(append(dst, "data: "...), out...)
	return append(jsonwire.AppendInt(append(dst, "id: "...), e.number), "\n\n"...), nil
}

// follow reads the line of a span as readers of the log do, since the spans that they know to be
// open decide on later lines.
func (e *Encoder) follow(line []byte, ev *agentevents.Event) {
	if e.own.subject == "" {
		e.check.roots.note(ev)
		return
	}
	e.read, _ = e.check.document(e.read[:0], bytes.TrimSuffix(line, newline)) // no reader refuses it
	clear(e.read)
	e.check.release()
}

var newline = []byte("\n")

// A document is the part of an Encoder that its Writer asks.
type document Encoder

func (d *document) Line(w *engine.Writer, dst []byte) ([]byte, error) {
	e := (*Encoder)(d)
	if e.boundary = &e.compared; !w.Whole {
		e.boundary = &e.own
		e.own.subject = ""
	}
	if w.Ev.RunID == "" {
		w.Break(RuleRequired, "/runId", "is required")
	}
	switch p := w.Ev.Payload.(type) {
	case *agentevents.TextCompleted:
		if p.Text != "" {
			w.SayAs(&agentevents.TextDelta{BlockID: p.BlockID, Delta: p.Text})
		}
	case *agentevents.AgentReasoned:
		if p.Reasoning != "" {
			w.SayAs(&agentevents.AgentReasoningDelta{BlockID: p.BlockID, Delta: p.Reasoning, Verbosity: p.Verbosity,
				TokenCount: p.TokenCount})
		}
	case *agentevents.HandoffAccepted:
		if of := e.handoff(w.Ev.RunID, p); !w.Whole && of != (pair{p.From.AgentID, p.To.AgentID}) {
			ev, accepted := *w.Ev, *p
			accepted.From.AgentID, accepted.To.AgentID, ev.Payload = of.from, of.to, &accepted
			w.Say(&ev)
		}
	case *agentevents.NodeFailed:
		if e.ofNode && w.Ev.NodeRunID != "" && e.account(w.Ev.RunID, w.Ev.AgentID).open {
			w.SayAs(&agentevents.AgentEnded{Error: agentevents.Some(p.Error)})
		}
	}
	row := format.Row(w.Ev.Kind())
	if row == nil {
		w.After, _ = strconv.Atoi(string(dialect.Unknown(w.Ev, Name, afterType)))
	} else if row.Type == "span" {
		row = e.plan(w.Ev, row)
	}
	dst, err := w.Line(dst, row)
	if err == nil && !w.Whole {
		e.typ = w.Type()
	}
	return dst, err
}

// Reread reads a line again, as readers of the lines so far do.
func (d *document) Reread(w *engine.Writer, line string) error {
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
	if !mayBe(e.kind, line) {
		return errForeign
	}
	err := e.check.read(line, &w.Read)
	if r.Lines--; err != nil { // the line that is written counts
		return err
	}
	if !r.Has("sequence") {
		w.Read.Sequence = w.Ev.Sequence // it came from the line's place in the log
	}
	return nil
}

// mayBe reports whether an event of a kind may have been read from a line. It spares the reading
// of lines of other formats.
func mayBe(kind agentevents.Kind, line string) bool {
	if row := format.Row(kind); row != nil {
		return strings.Contains(line, `"`+row.Type+`"`) || strings.Contains(line, `\u`)
	}
	_, known := kind.Info()
	return !known
}

// errUntold is the error of an event whose line alone lacks facts of the event.
var errUntold = errors.New("its usage has a line of its own")

// errFields is the error of a line that may be several fields of a frame.
var errFields = errors.New("a CR may separate fields")
