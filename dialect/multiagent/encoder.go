package multiagent

import (
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/wire"
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
// It remembers a bounded list of open calls and approvals, a counter for each run,
// and the losses.
type Encoder struct {
	w     wire.Writer
	open  openThings
	runs  runs
	check Decoder // reads origin lines

	// The state of the current line.
	ev             *agentevents.Event
	run            *run
	own            bool     // it has an extra member of this package
	as             []string // of that: fields, each before its name on the line
	made           []string // of that: fields that the line lacked
	hidden         []string // fields that are not written, as in /made
	agentInPayload bool
	madeActor      bool // the line gets an actor that the event does not say
	madeSpan       bool // the same for its span
	madeParent     bool // the same for its parent span
	fields         [maxMade]madeUp
	place          []byte

	// The methods hides and name: a method value takes memory each time.
	hideFunc func(*wire.Member, any) bool
	nameFunc func(*wire.Member) string
}

// NewEncoder returns an encoder.
func NewEncoder() *Encoder {
	e := &Encoder{w: wire.Writer{F: format}}
	e.hideFunc, e.nameFunc = e.hides, e.name
	return e
}

func encoderOf(w *wire.Writer) *Encoder { return (*Encoder)(w.Doc.(*document)) }

// Append appends the line of an event. See [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	mark := len(dst)
	dst, _, err := e.w.Append(dst, &ev, (*document)(e))
	if err != nil {
		return dst, err
	}
	run := e.runs.get(ev.RunID)
	if ev.Sequence != run.count {
		e.w.Losses.Every(&ev, dialect.Dropped, "/sequence", "readers count lines")
	}
	run.count++
	e.open.note(&ev, len(dst)-mark > longLine)
	return dst, nil
}

// End appends nothing: no event waits for another.
func (e *Encoder) End(dst []byte) ([]byte, error) { return dst, nil }

// Losses returns the losses so far. See [dialect.Encoder].
func (e *Encoder) Losses() []dialect.Loss { return e.w.Losses.List() }

// A document is the part of an Encoder that its Writer asks.
type document Encoder

func (d *document) Reread(w *wire.Writer, line string) error {
	d.check.r.F = format
	d.check.r.Continue(w)
	return d.check.read(line, &w.Read, &d.open)
}

func (d *document) Line(w *wire.Writer, dst []byte) ([]byte, error) {
	e, ev := (*Encoder)(d), w.Ev
	row := format.Row(ev.Kind())
	unknown, ok := ev.Payload.(*agentevents.Unknown)
	if row == nil && !ok {
		return dst, dialect.ErrNoCounterpart
	}
	if rule, pointer, detail := contextRule(ev); rule != "" {
		w.Break(rule, pointer, detail)
	}
	if ev.RunID == "" {
		w.Break(RuleEnvelope, "/runId", needed)
	}
	e.ev, e.run, e.madeActor, e.madeSpan, e.madeParent = ev, e.runs.get(ev.RunID), false, false, false
	e.spellings()
	e.actor(ok)
	if ok {
		return w.Bare(dst, e.unknownType(unknown)), nil
	}
	e.phase()
	return w.Line(dst, row), nil
}

// spellings reads /as and /made.
func (e *Encoder) spellings() {
	w := &e.w
	e.as, e.made, e.hidden, w.Name, w.Hide = e.as[:0], e.made[:0], e.hidden[:0], nil, nil
	e.own = strings.HasPrefix(string(e.ev.Extra(string(Name))), "{")
	if !e.own {
		return
	}
	if raw := w.Key("/as", true); raw != "" {
		for field, name := range jsonwire.Members(raw) {
			e.as = append(e.as, field, jsonwire.Text(name))
		}
		w.Name = e.nameFunc
	}
	if raw := w.Key("/made", true); raw != "" {
		for field := range jsonwire.Elements(raw) {
			e.made = append(e.made, jsonwire.Text(field))
		}
		w.Hide = e.hideFunc
	}
	if e.lacked(envelopeParent) {
		e.hidden = append(e.hidden, envelopeParent)
	}
}

// lacked reports whether the line that the event was read from lacked a field.
func (e *Encoder) lacked(field string) bool { return slices.Contains(e.made, field) }

// name returns the name of a member on the line, or "".
func (e *Encoder) name(m *wire.Member) string {
	name := e.spelled(m.Name)
	if p, ok := e.ev.Payload.(*agentevents.MessageCreated); ok && name == "message" && jsonwire.IsObject(strings.TrimLeft(string(p.Message.Content), " \t\r\n")) {
		return "" // readers take an object named message for the message
	}
	return name
}

// spelled returns the name that a field had on the line.
func (e *Encoder) spelled(field string) string {
	for i := 0; i < len(e.as); i += 2 {
		if e.as[i] == field && e.as[i+1] != "" {
			return e.as[i+1]
		}
	}
	return field
}

// hides reports whether a member is left out, because the line lacked it and readers
// make up the same.
func (e *Encoder) hides(m *wire.Member, at any) bool {
	is := func(field string) bool {
		if !strings.HasSuffix(field, m.Name) { // as mostly
			return false
		}
		place := append(append(append(e.place[:0], e.w.At()...), '/'), jsonwire.Token(m.Name)...)
		e.place = place
		for _, prefix := range [...]string{"/payload/", "message/"} {
			if len(place) > len(prefix) && string(place[:len(prefix)]) == prefix {
				place = place[len(prefix):]
			}
		}
		return field == string(place)
	}
	return slices.ContainsFunc(e.hidden, is) || len(e.made) > 0 && zero(at) && slices.ContainsFunc(e.made, is)
}

// unknownType returns the type of the line of an unknown event.
func (e *Encoder) unknownType(p *agentevents.Unknown) string {
	typ, prefixed := strings.CutPrefix(string(p.Type), string(Name)+":")
	if prefixed && dialect.UnknownKind(Name, typ) != p.Type {
		e.w.Lose(dialect.Altered, "/type", "readers add another prefix")
		return string(p.Type) // the prefix is part of the type
	}
	if format.TypeRow(typ) != nil {
		e.w.Lose(dialect.Altered, "", "read as the document's type of this name")
	}
	return typ
}

// actor notes the losses of agent and actor, and decides whether the payload names
// the agent.
func (e *Encoder) actor(unknown bool) {
	ev, lose := e.ev, e.w.Lose
	drop := func(pointer string, present bool) { e.w.Pend.Drop(pointer, present) }
	e.agentInPayload = false
	switch {
	case ev.AgentID == "":
		if ev.Actor != "" && !nonAgent(ev.Actor) {
			lose(dialect.Dropped, "/actor", "read as the agent")
			lose(dialect.Made, "/agentId", "readers take the actor for the agent")
		}
	case unknown:
		drop("/agentId", ev.Actor != "" && ev.Actor != ev.AgentID || nonAgent(ev.AgentID))
		if ev.Actor == "" && nonAgent(ev.AgentID) {
			lose(dialect.Made, "/actor", "the agent's id")
		} else if ev.Actor != "" && !nonAgent(ev.Actor) {
			drop("/actor", true)
			if ev.Actor != ev.AgentID {
				lose(dialect.Altered, "/agentId", "readers take the actor for the agent")
			}
		}
	case ev.Kind() == agentevents.KindAgentEnded:
		e.agentInPayload = true
		drop("/actor", ev.Actor == ev.AgentID)
	case ev.Actor != "":
		e.agentInPayload = true
	case nonAgent(ev.AgentID):
		e.agentInPayload = true
		lose(dialect.Made, "/actor", "the agent's id")
	}
}

// phase notes the losses of a phase without workflow: readers leave it to the
// payload, unless the document names it.
func (e *Encoder) phase() {
	ev, w := e.ev, &e.w
	if phased(ev.Kind()) {
		return
	}
	own := w.Key("/payload/phase", false)
	switch {
	case ev.Phase == "" && own == "":
		return
	case ev.WorkflowID == "":
		w.Pend.Drop("/phase", ev.Phase != "")
	case ev.Phase == "" && jsonwire.Text(own) != "":
		w.Lose(dialect.Dropped, "/"+string(Name)+"/~1payload~1phase", "")
		w.Lose(dialect.Made, "/phase", "the payload's own phase, because the event has a workflow now")
	default:
		return
	}
	e.hidden = append(e.hidden, "phase")
}

// hide finds the fields that the payload leaves out, and notes those that readers
// make up.
func (e *Encoder) hide() {
	ev, w := e.ev, &e.w
	switch ev.Payload.(type) {
	case *agentevents.AgentEnded:
		if e.lacked("tokens") {
			e.hidden = append(e.hidden, "tokens")
		}
		if e.lacked("agentId") && ev.Actor == "" && !nonAgent(ev.AgentID) {
			e.hidden = append(e.hidden, "agentId")
		}
	case *agentevents.AgentStarted:
		if e.lacked("parentSpanId") || w.Key("/payload/parentSpanId", false) != "" { // only the envelope has the parent
			e.hidden = append(e.hidden, "parentSpanId")
		}
	}
	for _, f := range madeIn(ev, e.fields[:0]) {
		switch {
		case f.empty():
			e.madeByReaders(&f)
			continue
		case !e.own:
			continue
		case e.guessed(f.from):
			if w.Key("/payload", false) == "" {
				continue
			}
			e.madeByReaders(&f) // a payload that is not an object has no place for the field
		}
		e.unmake(&f)
	}
	if len(e.hidden) > 0 {
		w.Hide = e.hideFunc
	}
}

// unmake hides a field that the line lacked, if readers make up the same.
func (e *Encoder) unmake(f *madeUp) {
	ev := *e.ev
	if f.ref != nil && e.lacked(f.name+"/agentId") {
		if value, _ := made(f.from, &ev, &e.open); *f.text == value {
			e.hidden = append(e.hidden, e.spelled(f.name)+"/agentId")
		}
		return
	}
	if !e.lacked(f.name) {
		return
	}
	p, returned := ev.Payload.(*agentevents.ToolReturned)
	if returned && f.from == ofCall && e.lacked("toolId") {
		v := *p
		v.ToolID = "" // the decoder found the call without it
		ev.Payload = &v
	}
	value, alone := made(f.from, &ev, &e.open)
	if !f.is(value) || returned && f.from == ofCall && alone != p.OneEvent {
		return
	}
	e.hidden = append(e.hidden, f.name)
	if alone && e.lacked("oneEvent") {
		e.hidden = append(e.hidden, "oneEvent")
	}
}

// guessed reports whether readers would make up a field from something that the
// encoder makes up on this line.
func (e *Encoder) guessed(from source) bool {
	switch from {
	case ofAgent:
		return e.madeActor
	case ofCall, ofApproval: // depends on the span
		return e.madeSpan
	}
	return false
}

// madeByReaders notes that readers make up a field.
func (e *Encoder) madeByReaders(f *madeUp) {
	if _, node := e.ev.Payload.(*agentevents.NodeStarted); node || f.from == ofTime {
		return // the line says it
	}
	if p, ok := e.ev.Payload.(*agentevents.ToolReturned); ok && f.from == ofCall && !p.OneEvent {
		e.w.Lose(dialect.Made, "/payload/oneEvent", "made up by readers, unless a call of the span is open")
	}
	e.w.Lose(dialect.Made, f.pointer(e.ev), "made up by readers")
}

// The members that the document requires and the event does not say.

func madeID(w *wire.Writer, dst []byte, _ *wire.Member) []byte {
	w.Lose(dialect.Made, "/id", "derived from run and sequence")
	return jsonwire.AppendString(dst, dialect.DerivedID(w.Ev.RunID, int(uint32(w.Ev.Sequence)), 0))
}

func madeTrace(w *wire.Writer, dst []byte, _ *wire.Member) []byte {
	w.Every(dialect.Made, "/traceId", "derived from the run")
	return append(encoderOf(w).run.trace(append(dst, '"')), '"')
}

func madeSpan(w *wire.Writer, dst []byte, _ *wire.Member) []byte {
	e := encoderOf(w)
	e.madeSpan = true
	w.Every(dialect.Made, "/spanId", "derived from run, agent and call")
	return append(e.run.span(append(dst, '"'), w.Ev.AgentID, callOf(w.Ev)), '"')
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

// parentSpan appends the made-up span of the parent of a spawned agent.
func (e *Encoder) parentSpan(dst []byte) []byte {
	return append(e.run.span(append(dst, '"'), e.ev.ParentAgentID, e.ev.ParentCallID), '"')
}

func madeSession(w *wire.Writer, dst []byte, _ *wire.Member) []byte {
	w.Every(dialect.Made, "/sessionId", "the run's id")
	return jsonwire.AppendString(dst, w.Ev.RunID)
}

func madeActor(w *wire.Writer, dst []byte, _ *wire.Member) []byte {
	const actor = "system"
	encoderOf(w).madeActor = true
	w.Every(dialect.Made, "/actor", actor)
	return append(dst, `"`+actor+`"`...)
}

func madeNode(w *wire.Writer, dst []byte, _ *wire.Member) []byte {
	w.Lose(dialect.Made, "/nodeId", "derived from the event's id")
	return jsonwire.AppendString(dst, dialect.DerivedID(w.Ev.ID, 0, 0))
}
