package openwop

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// EncoderOptions configure an [Encoder]. The zero EncoderOptions write the names
// of the RFC's text.
type EncoderOptions struct {
	// Profile is the form to write.
	Profile Profile
	// Fast leaves the losses out: Losses returns nil. The lines are the same.
	Fast bool
}

// An Encoder writes events as run event documents. It implements [dialect.Encoder]. It takes the
// events of one log in order and is not for concurrent use.
//
// An agent that is identified only by the execution of a node gets the name of the node
// ([dialect.Names]).
//
// It refuses kinds that the document does not have. It refuses, with an [*agentevents.RuleError],
// values that no line can hold: damaged ids or JSON, a confidence outside [0, 1], and under the
// schemas a cap that is not on their list and an orchestrator's decision of another form. Under
// RFC0002 it still copies the line that such an event was read from.
type Encoder struct {
	p       Profile
	doc     *document
	w       engine.Writer
	calls   engine.Recent[subject, opened] // open calls
	runs    engine.Recent[string, *lined]
	deltas  engine.Recent[subject, index] // by block
	open    interrupts
	measure *dialect.Measure              // nil: the losses are not asked for
	reads   *Decoder                      // reads the lines for it
	shift   engine.Recent[string, uint64] // by run: the number of lines added by events that became two
	names   dialect.Names                 // of agents without an id

	// The line that is written.
	k        remarks
	row      *row                             // nil for a type that the vocabulary does not have
	body     string                           // of that type
	eventID  string                           // before normalising
	nodeID   string                           // before normalising
	own      struct{ eventID, nodeID string } // of the event itself, not of one that it is compared with
	payload  agentevents.Payload              // as it is written
	msg      agentevents.ConversationMessage  // with normalised ids, if they differ
	returned bool                             // it is the second one of a call that is one event
}

var _ dialect.Encoder = (*Encoder)(nil)

// A subject is a call or a block of an agent.
type subject struct{ runID, agentID, id string }

// clone returns a copy that does not keep a line alive.
func (s subject) clone() subject {
	return subject{strings.Clone(s.runID), strings.Clone(s.agentID), strings.Clone(s.id)}
}

// An opened is the call of an agent: its event, whose id may be made up, and its tool.
type opened struct{ eventID, toolID string }

// An index is the number of the next delta of a block. On lines without starts of agents, readers
// continue to count when an agent starts again: shift is their count before that. mixed is true if
// lines do not tell blocks apart; block is then the block of the latest delta.
type index struct {
	next, shift int
	block       string
	mixed       bool
}

// indexOf returns the index of a delta in the block that readers see.
func (e *Encoder) indexOf(ev *agentevents.Event, p *agentevents.AgentReasoningDelta) index {
	of := e.blockOf(ev, p.BlockID)
	b, known := e.deltas.Get(of)
	b.mixed = b.mixed || known && b.block != blockKey(ev, p.BlockID)
	switch {
	case of.id == "" && p.Index.OK && p.Index.V == 0: // without an id, it begins a block for readers, too
		b.next, b.shift = 0, 0
	case b.mixed:
		b.shift = b.next - p.Index.Or(0)
	}
	return b
}

// blockKey tells blocks apart that readers take for one.
func blockKey(ev *agentevents.Event, id string) string {
	return cmp.Or(ev.AgentID, ev.NodeRunID, ev.ParentSpanID) + "\x00" + id
}

// restart notes that the deltas of an agent count from 0 again.
func (e *Encoder) restart(ev *agentevents.Event) {
	name := e.agentOf(ev)
	for of, b := range e.deltas.All() {
		if of.runID == ev.RunID && of.agentID == name {
			b.shift = b.next
			e.deltas.Set(of, b)
		}
	}
}

// NewEncoder returns an encoder.
func NewEncoder(o EncoderOptions) *Encoder {
	doc := documentOf(o.Profile)
	e := &Encoder{
		p: doc.p, doc: doc, w: engine.Writer{F: doc.Format},
	}
	if !o.Fast {
		e.reads = NewDecoder(Options{Profile: o.Profile})
		e.measure = dialect.NewMeasure(Name, e.reads, words)
	}
	return e
}

func encoderOf(w *engine.Writer) *Encoder { return (*Encoder)(w.Doc.(*lines)) }

// The placeholders for required members that an event does not have.
const (
	unknownRun  = "unknown"
	unknownNode = "unknown"
)

// Append appends the line of an event, or two lines for a tool call that is one
// event.
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	defer e.release()
	if ev.Kind() == agentevents.KindAgentStarted {
		e.restart(&ev)
	}
	mark := len(dst)
	dst, err := e.append(dst, ev)
	e.measure.Wrote(&ev, dst[mark:], err)
	return dst, err
}

// append appends the line of an event, or two, and remembers it.
func (e *Encoder) append(dst []byte, ev agentevents.Event) ([]byte, error) {
	dst, _, err := e.w.Append(dst, &ev, (*lines)(e))
	if err != nil {
		return dst, err
	}
	e.eventID, e.nodeID = e.own.eventID, e.own.nodeID
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && isSplit(p) {
		e.shift.Set(strings.Clone(ev.RunID), e.shift.Of(ev.RunID)+1)
	}
	e.note(&ev)
	return dst, nil
}

// release lets go of the event that was written.
func (e *Encoder) release() {
	e.w.Release()
	if e.reads != nil {
		e.reads.r.Release()
		e.reads.reset()
	}
	e.payload = nil
	if e.body = ""; e.msg.Content != "" {
		e.msg = agentevents.ConversationMessage{}
	}
}

// End appends nothing: no event waits for others.
func (e *Encoder) End(dst []byte) ([]byte, error) { return dst, nil }

// Losses returns the losses so far: the encoder reads each line back, see [dialect.Measure].
func (e *Encoder) Losses() []dialect.Loss { return e.measure.Losses() }

// note records the facts of ev that later lines need.
func (e *Encoder) note(ev *agentevents.Event) {
	e.open.note(ev, e.w.Type())
	e.place(ev)
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		e.calls.Set(e.callOf(ev, p.CallID).clone(), opened{strings.Clone(e.eventID), strings.Clone(p.ToolID)})
	case *agentevents.ToolReturned:
		if !p.OneEvent {
			e.calls.Delete(e.callOf(ev, p.CallID))
		}
	case *agentevents.AgentReasoningDelta:
		of := e.blockOf(ev, p.BlockID)
		b := e.indexOf(ev, p)
		if p.Index.OK || e.p != RFC0002 { // which needs no index
			b.next = p.Index.Or(b.next-b.shift) + b.shift + 1
			if !p.Index.OK && ev.Marks.Has(agentevents.MarkSynthetic) { // who emits does not count it
				b.shift++
			}
		}
		b.block = blockKey(ev, p.BlockID)
		e.deltas.Set(of.clone(), b)
	case *agentevents.AgentReasoned:
		of := e.blockOf(ev, p.BlockID)
		if b, known := e.deltas.Get(of); known && (b.mixed || b.block != blockKey(ev, p.BlockID)) {
			e.deltas.Set(of.clone(), index{mixed: true, block: b.block})
		} else {
			e.deltas.Delete(of)
		}
	}
}

// agentOf returns the agent that the line of an event names.
func (e *Encoder) agentOf(ev *agentevents.Event) string {
	if ev.AgentID == "" && ev.NodeRunID != "" {
		return e.names.Of(ev)
	}
	return cmp.Or(ev.AgentID, CoreSystem)
}

// blockOf returns a block of the agent of an event, as readers see it: lines of SchemaV2 do
// not name it.
func (e *Encoder) blockOf(ev *agentevents.Event, id string) subject {
	if e.p == SchemaV2 {
		id = ""
	}
	return subject{ev.RunID, e.agentOf(ev), id}
}

// callOf returns a call of the agent of an event, as readers see it.
func (e *Encoder) callOf(ev *agentevents.Event, id string) subject {
	return subject{ev.RunID, e.agentOf(ev), id}
}

// A lines is the Encoder that its Writer asks.
type lines Encoder

func (l *lines) Line(w *engine.Writer, dst []byte) ([]byte, error) {
	e := (*Encoder)(l)
	e.returned = false
	if p, ok := w.Ev.Payload.(*agentevents.ToolReturned); ok && p.OneEvent {
		if _, open := e.calls.Get(e.callOf(w.Ev, p.CallID)); open && !w.Whole {
			ev, whole := *w.Ev, *p
			p = &whole
			p.CallID, ev.Payload = dialect.DerivedID(ev.RunID+"\x00"+ev.ID, int(ev.Sequence), 1), p
			w.Say(&ev)
		}
		if isSplit(p) {
			return e.split(w, dst, p)
		}
	}
	return e.line(w, dst)
}

// Hides and NameOf make the Writer keep the name that a line of the RFC has for the code of
// an error.
func (l *lines) Hides(*engine.Member, any) bool { return false }

func (l *lines) NameOf(m *engine.Member) string {
	if slices.Contains(l.k.spelled, inError+m.Also[0]) {
		return m.Also[0]
	}
	return m.Name
}

const inError = "/payload/error/"

func (l *lines) Reread(w *engine.Writer, line string) error {
	if l.shift.Len() > 0 {
		return dialect.ErrNoCounterpart
	}
	// A line may keep the rules of another profile only, unless it was read under this one.
	d := NewDecoder(Options{Profile: l.p, Strict: l.p != RFC0002 && !(*Encoder)(l).same()})
	d.alone, d.open = true, l.open.clone()
	err := d.read(line, &w.Read)
	if d.foreign {
		return dialect.ErrNoCounterpart
	}
	return err
}

// line appends one line.
func (e *Encoder) line(w *engine.Writer, dst []byte) ([]byte, error) {
	ev := w.Ev
	e.k.read(ev)
	w.Spell = nil
	if e.p == RFC0002 && len(e.k.spelled) > 0 {
		w.Spell = (*lines)(e)
	}
	at := e.doc.Row(ev.Kind())
	if e.k.typ != "" {
		at = cmp.Or(e.doc.others[otherForm{ev.Kind(), e.k.typ}], e.doc.others[otherForm{ev.Kind(), ""}], at)
	}
	typ := ""
	if e.row, e.body = nil, ""; at == nil {
		var err error
		if typ, e.body, err = e.other(w); err != nil {
			return dst, err
		}
	} else {
		e.row = at.More.(*row)
		typ = e.typeOf(at)
	}
	if e.eventID = ev.ID; e.eventID == "" {
		e.eventID = dialect.DerivedID(ev.RunID+"\x00"+typ, int(ev.Sequence), 2)
	}
	if e.nodeID = ev.NodeID; e.nodeID == "" && e.row != nil && e.row.needNode {
		e.nodeID = unknownNode
	}
	if p, ok := ev.Payload.(*agentevents.ClarificationRequested); ok && len(p.Questions) == 0 {
		none := *p
		none.Questions = nil
		ev.Payload = &none
	}
	if err := e.order(w, typ); err != nil {
		return dst, err
	}
	if !w.Whole {
		e.payload, e.own.eventID, e.own.nodeID = w.Ev.Payload, e.eventID, e.nodeID
	}
	return w.LineAs(dst, at, typ, e.body), nil
}

// typeOf returns the type of a line: the one that was read, where the profile
// allows it.
func (e *Encoder) typeOf(at *engine.Row) string {
	typ := e.k.typ
	// SchemaV1 has another payload for this type.
	if e.row.of == "" || typ != documentOf(RFC0002).Row(e.row.kind).Type || e.p == SchemaV1 {
		return at.Type
	}
	return typ
}

// other returns the type and the payload of an event that the vocabulary does not
// have, in the form of the profile. Its error is dialect.ErrNoCounterpart if the
// profile has none.
func (e *Encoder) other(w *engine.Writer) (typ, body string, err error) {
	u, ok := w.Ev.Payload.(*agentevents.Unknown)
	if !ok {
		return "", "", dialect.ErrNoCounterpart
	}
	typ = renamed(e.p, strings.TrimPrefix(string(u.Type), unknownPrefix))
	if !jsonwire.ValidUTF8(typ) {
		typ = strings.ToValidUTF8(typ, "\ufffd")
		w.Ev.Payload = &agentevents.Unknown{Type: agentevents.Kind(typ), Raw: u.Raw}
	}
	if e.p == SchemaV2 {
		if s, is := saidBy(typ, w.Ev.RunID, w.Ev.NodeID, string(u.Raw)); is && e.open.told(&s) {
			return "", "", alreadyTold
		}
	}
	if !legalType(e.p, typ) {
		return "", "", dialect.ErrNoCounterpart
	}
	if u.Raw == "" && e.p == RFC0002 && slices.Contains(e.k.absent, "/payload") {
		return typ, "", nil
	}
	if body, err = jsonwire.Compact(cmp.Or(string(u.Raw), "{}")); err != nil {
		return "", "", w.Refused(agentevents.RuleFieldJSON, "/payload", err.Error())
	}
	if e.p != RFC0002 {
		if body, ok = e.shaped(w, typ, body); !ok {
			return "", "", dialect.ErrNoCounterpart
		}
	}
	return typ, body, nil
}

// isSplit reports whether a return becomes two lines. A refused call has only a
// return.
func isSplit(p *agentevents.ToolReturned) bool { return p.OneEvent && !refused(p.Status) }

// calledOf returns the event of the call of a return that is the whole call.
func calledOf(ev *agentevents.Event, p *agentevents.ToolReturned) agentevents.Event {
	called := *ev
	called.ID = dialect.DerivedID(ev.RunID+"\x00"+ev.ID, int(ev.Sequence), 1)
	called.Payload = &agentevents.ToolCalled{CallID: p.CallID, ToolID: p.ToolID, Arguments: p.Arguments}
	if !ev.Time.IsZero() {
		called.Time = ev.Time.Add(-p.Duration.V)
	}
	_ = called.SetExtra(string(Name), "") // never fails: nothing is set
	return called
}

// split appends a call that is one event as two lines, a call and its return.
func (e *Encoder) split(w *engine.Writer, dst []byte, p *agentevents.ToolReturned) ([]byte, error) {
	ev := w.Ev
	called, returned := calledOf(ev, p), *ev
	whole := *p
	whole.OneEvent, whole.Arguments, whole.ArgumentsSummary = false, "", ""
	returned.Payload, returned.CausationID = &whole, called.ID
	w.Say(&called)
	dst, _ = e.line(w, dst) // never fails: all profiles have the type
	w.Say(&returned)
	e.returned = true
	return e.line(w, append(dst, '\n'))
}

// payloadNode reports whether the payload of the line names the node.
func (e *Encoder) payloadNode() bool {
	if u, ok := e.w.Ev.Payload.(*agentevents.Unknown); ok {
		return jsonwire.Text(jsonwire.Member(string(u.Raw), "nodeId")) == e.nodeID
	}
	return e.row.node
}

// ofV2 reports whether the event seems to come from a line of SchemaV2.
func ofV2(w *engine.Writer) bool {
	return likeV2(string(dialect.Unknown(w.Ev, Name, "schemaVersion")), w.Ev.RunID)
}

// agentID normalises an agent's id in a place where the schemas require no form,
// so that it is the same as elsewhere. It leaves lines alone that break no rule.
// Nothing distinguishes the lines of SchemaV1, so there it changes only the
// acting agent's id.
func (e *Encoder) agentID(w *engine.Writer, id string) string {
	if e.p == SchemaV1 && id != w.Ev.AgentID || e.p == SchemaV2 && ofV2(w) {
		return id
	}
	return NormalizeID(e.p, HandoffID, id)
}
