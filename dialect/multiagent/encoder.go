package multiagent

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// An Encoder writes each event as one line of the document. It implements
// [dialect.Encoder]. It must not be used concurrently.
//
// It refuses events of a workflow without workflowId or phase, and events without
// a run, with a [*agentevents.RuleError] of one of this package's rules. It still
// writes such an event if a reader with Verbatim read it from a line, and the event
// is unchanged.
//
// It remembers a bounded list of open calls and approvals, bounded sets of open agents and of
// agents with steps, a counter for each run, and the losses.
type Encoder struct {
	w       engine.Writer
	measure *dialect.Measure // nil: the losses are not asked for
	reads   Decoder          // reads the lines for it
	open    openThings
	check   Decoder       // reads origin lines
	past    repeats       // lines with ids, as readers know them
	runs    engine.Shared // the sessions of runs, as readers know them
	steps   engine.Recent[stepper, *attempt]
	traced  struct{ run, trace string } // the latest event with a trace

	// The state of the current line.
	ev             *agentevents.Event
	own            bool     // it has an extra member of this package
	as, made       string   // the members /as and /made of that
	hidden         []string // fields that are not written, as in /made
	agentInPayload bool
	madeActor      bool // the line gets an actor that the event lacks
	madeSpan       bool // the same for its span
	madeParent     bool // the same for its parent span
}

// A stepper is an agent: its id, or the execution of a node.
type stepper struct{ runID, agent string }

// An attempt counts the steps of an agent, of its events and of their lines.
type attempt struct{ own, read engine.Steps }

// attempt returns the attempt of the agent of an event. It is nil for an event without an agent.
func (e *Encoder) attempt(ev *agentevents.Event) *attempt {
	of := stepper{ev.RunID, cmp.Or(ev.AgentID, ev.NodeRunID)}
	a := e.steps.Of(of)
	if a == nil && of.agent != "" {
		a = new(attempt)
		e.steps.Set(stepper{strings.Clone(of.runID), strings.Clone(of.agent)}, a)
	}
	return a
}

// EncoderOptions configure an [Encoder]. The zero EncoderOptions are usable.
type EncoderOptions struct {
	// Fast leaves the losses out: Losses returns nil. The lines are the same.
	Fast bool
}

// NewEncoder returns an encoder.
func NewEncoder(o EncoderOptions) *Encoder {
	e := &Encoder{w: engine.Writer{F: format}}
	if !o.Fast {
		e.reads = *NewDecoder(Options{})
		e.measure = dialect.NewMeasure(Name, &e.reads, words)
	}
	return e
}

func encoderOf(w *engine.Writer) *Encoder { return (*Encoder)(w.Doc.(*document)) }

// Append appends the line of an event. See [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	mark := len(dst)
	dst, err := e.write(dst, ev)
	e.measure.Wrote(&ev, dst[mark:], err)
	e.w.Release()
	e.reads.r.Release()
	return dst, err
}

// write appends the line of an event.
func (e *Encoder) write(dst []byte, ev agentevents.Event) ([]byte, error) {
	if t := &e.traced; ev.TraceID != "" && (t.run != ev.RunID || t.trace != ev.TraceID) {
		t.run, t.trace = strings.Clone(ev.RunID), strings.Clone(ev.TraceID)
	}
	_, starts := ev.Payload.(*agentevents.SessionStarted)
	ev.RunID = e.runs.ID(ev.SessionID, e.runs.Line(ev.SessionID, ev.RunID, starts), starts)
	mark, agent := len(dst), (*attempt)(nil)
	switch ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		agent = e.attempt(&ev)
	default:
		if ev.Step.OK {
			agent = e.attempt(&ev)
		}
	}
	if agent != nil {
		agent.own.Event(&ev)
	}
	dst, verbatim, err := e.w.Append(dst, &ev, (*document)(e))
	if err != nil {
		return dst, err
	}
	if agent != nil {
		agent.read.Event(&ev)
	}
	if !(verbatim && e.check.noID) { // readers take a line that they know for the same event
		hash, again := e.past.has(bytes.TrimSuffix(dst[mark:], []byte("\n")))
		if again {
			return dst, nil
		}
		e.past.add(hash)
	}
	if starts {
		e.runs.Start(ev.SessionID, ev.RunID)
	}
	e.open.note(&ev, len(dst)-mark > longLine)
	return dst, nil
}

// End appends nothing: no event waits for another.
func (e *Encoder) End(dst []byte) ([]byte, error) { return dst, nil }

// Losses returns the losses so far: the encoder reads each line back, see [dialect.Measure].
func (e *Encoder) Losses() []dialect.Loss { return e.measure.Losses() }

// A document is the part of an Encoder that its Writer asks.
type document Encoder

func (d *document) Reread(w *engine.Writer, line string) error {
	d.check.sessions = d.runs
	d.check.r.Continue(w)
	return d.check.read(line, &w.Read, &d.open)
}

func (d *document) Line(w *engine.Writer, dst []byte) ([]byte, error) {
	e := (*Encoder)(d)
	ev := w.Ev
	if p, ok := ev.Payload.(*agentevents.AgentEnded); ok && p.Totals.OK && !w.Whole {
		if a := e.attempt(ev); a != nil && a.own.Raised(p.Totals.V.Steps, &a.read) != p.Totals.V.Steps {
			again, raised := *ev, *p
			raised.Totals.V.Steps, again.Payload = a.own.Raised(p.Totals.V.Steps, &a.read), &raised
			w.Say(&again)
			ev = &again
		}
	}
	unknown, ok := ev.Payload.(*agentevents.Unknown)
	e.ev, e.madeActor, e.madeSpan, e.madeParent = ev, false, false, false
	e.remarks()
	row, typ := format.Row(ev.Kind()), e.spelled("type")
	other := rowOf(format, typ)
	if answers(other) {
		other, _ = answerRow(format, typ, jsonwire.Members(string(ev.Extra(string(Name)))), "/payload/")
	}
	if other != nil && other.Kind == ev.Kind() && !ok {
		row = other
	} else if typ = ""; row != nil {
		typ = row.Type
	}
	if row == nil && ev.Kind() == agentevents.KindApprovalRejected {
		return dst, dialect.ErrNoCounterpart
	}
	if broken := contextRule(row, ev); broken != nil {
		w.Break(broken.Rule, broken.Pointer, broken.Detail)
	}
	if !ok && row != nil {
		e.actor()
		return w.LineAs(dst, row, typ, ""), nil
	}
	if !ok {
		e.actor()
		return w.Line(dst, row)
	}
	raw, err := jsonwire.Compact(string(unknown.Raw))
	if err != nil && unknown.Raw != "" {
		return dst, w.Refused(agentevents.RuleFieldJSON, "/payload", err.Error())
	}
	typ = strings.TrimPrefix(string(unknown.Type), string(Name)+":")
	if rowOf(format, typ) != nil { // readers would read it as that
		return dst, dialect.ErrNoCounterpart
	}
	return w.LineAs(dst, nil, typ, raw), nil
}

// remarks reads /as and /made.
func (e *Encoder) remarks() {
	w := &e.w
	e.own = strings.HasPrefix(string(e.ev.Extra(string(Name))), "{")
	e.as, e.made, e.hidden, w.Spell = w.Key("/as", true), w.Key("/made", true), e.hidden[:0], nil
	if e.as != "" || e.made != "" {
		w.Spell = (*document)(e)
	}
	if e.lacked(envelopeParent) {
		e.hidden = append(e.hidden, envelopeParent)
	}
}

// lacked reports whether the line that the event was read from lacked a field.
func (e *Encoder) lacked(field string) bool {
	if e.made == "" {
		return false // as mostly; the error of Elements would cost more
	}
	for raw := range jsonwire.Elements(e.made) {
		if jsonwire.Text(raw) == field {
			return true
		}
	}
	return false
}

func (d *document) NameOf(m *engine.Member) string {
	name := (*Encoder)(d).spelled(m.Name)
	if p, ok := d.ev.Payload.(*agentevents.MessageCreated); ok && name == "message" &&
		jsonwire.IsObject(strings.TrimLeft(string(p.Message.Content), " \t\r\n")) {
		return m.Name // readers take an object named message for the message
	}
	return name
}

// spelled returns the name that a field had on the line.
func (e *Encoder) spelled(field string) string {
	return cmp.Or(jsonwire.Text(jsonwire.Member(e.as, field)), field)
}

// Hides reports whether a member is left out, because the line lacked it and readers
// make up the same.
func (d *document) Hides(m *engine.Member, at any) bool {
	e := (*Encoder)(d)
	if e.made == "" {
		return false
	}
	in := strings.TrimPrefix(strings.TrimPrefix(e.w.At()+"/", "/payload/"), "message/")
	field := in + jsonwire.Token(m.Name)
	return slices.Contains(e.hidden, field) || zero(at) && e.lacked(field)
}

// actor decides whether the payload names the agent.
func (e *Encoder) actor() {
	if ev := e.ev; ev.AgentID != "" {
		agents := ofAgents(ev.Kind())
		e.agentInPayload = e.assumed() != ev.AgentID || (agents || ev.Actor != "") && !e.lacked("agentId") ||
			agents && ev.SpanID == ""
	}
}

// assumed returns the agent that readers give the event if the payload names none.
func (e *Encoder) assumed() string {
	agent := cmp.Or(e.ev.Actor, e.ev.AgentID)
	if nonAgent(agent) || e.open.hasSpan(e.ev) || byOthers(e.ev.Kind()) {
		agent = ""
	}
	if p, ok := e.ev.Payload.(*agentevents.ToolReturned); ok {
		if caller, ok := e.open.caller(e.ev, p, agent); ok {
			return caller
		}
	}
	return agent
}

// hide finds the fields that the payload leaves out.
func (e *Encoder) hide() {
	ev, w := e.ev, &e.w
	if p, ok := ev.Payload.(*agentevents.MessageCreated); ok && p.Message.TS == ev.Time.UnixMilli() && e.lacked("ts") {
		e.hidden = append(e.hidden, "ts")
	}
	list := factsOf(w.Row()).made
	for i := range list {
		f := &list[i]
		text := *f.text(ev)
		guessed := f.from == ofAgent && e.madeActor || (f.from == ofCall || f.from == ofApproval) && e.madeSpan
		// A payload that is not an object has no place for the field.
		if text != "" && (!guessed || w.Key("/payload", false) != "") {
			e.unmake(f, text)
		}
	}
}

// unmake hides a field that the line lacked, if readers make up the same text.
func (e *Encoder) unmake(f *madeUp, text string) {
	ev := e.ev
	inside := f.agent && e.lacked(f.inside)
	if !inside && !e.lacked(f.name) {
		return
	}
	value, alone := made(f.from, ev, &e.open, string(ev.Extra(string(Name))), wordOf(e.w.Type()))
	switch {
	case value != text:
	case inside:
		e.hidden = append(e.hidden, e.spelled(f.name)+"/agentId")
	case f.agent && *f.member.Field(ev).(*agentevents.AgentRef) != (agentevents.AgentRef{AgentID: text}):
	case f.from == ofCall && alone != ev.Payload.(*agentevents.ToolReturned).OneEvent:
	default:
		e.hidden = append(e.hidden, f.name)
		if alone && e.lacked("oneEvent") {
			e.hidden = append(e.hidden, "oneEvent")
		}
	}
}

// The members that the document requires and the event lacks.

// noHandoff stands for the id of the handoff that is accepted, if readers would take the
// id of another handoff.
func noHandoff(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	e := encoderOf(w)
	if t := e.open.handoff(w.Ev); t == nil || t.id == "" || e.lacked("handoffId") {
		return dst
	}
	return append(dst, `""`...)
}

func madeID(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	return jsonwire.AppendString(dst, dialect.DerivedID(w.Ev.RunID, int(uint32(w.Ev.Sequence)), 0))
}

func madeTrace(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	if t := &encoderOf(w).traced; t.trace != "" && t.run == w.Ev.RunID {
		return jsonwire.AppendString(dst, t.trace)
	}
	return appendTrace(dst, w.Ev.RunID)
}

func madeSpan(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	encoderOf(w).madeSpan = true
	return appendSpan(dst, w.Ev.RunID, w.Ev.AgentID, callOf(w.Ev))
}

// callOf returns the call of an event, which has a span of its own, or "".
func callOf(ev *agentevents.Event) string {
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		return p.CallID
	case *agentevents.ToolReturned:
		return p.CallID
	}
	return ""
}

// madeAbove stands for the parent of a made-up span of a call or a spawned agent.
func madeAbove(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	e, ev := encoderOf(w), w.Ev
	_, started := ev.Payload.(*agentevents.AgentStarted)
	if e.madeParent = e.madeSpan && (started || callOf(ev) != ""); !e.madeParent {
		return nil
	}
	if started {
		return appendSpan(dst, ev.RunID, ev.ParentAgentID, ev.ParentCallID)
	}
	return appendSpan(dst, ev.RunID, ev.AgentID, "")
}

func madeSession(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	return jsonwire.AppendString(dst, w.Ev.RunID)
}

func madeActor(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	encoderOf(w).madeActor = true
	return append(dst, `"system"`...)
}

// madeNode writes the value that readers would make up.
func madeNode(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	return jsonwire.AppendString(dst, dialect.DerivedID(w.Ev.ID, 0, 0))
}
