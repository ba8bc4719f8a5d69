package openwop

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// EncoderOptions configure an [Encoder]. The zero EncoderOptions write the names
// of the RFC's text.
type EncoderOptions struct {
	// Profile is the form to write.
	Profile Profile
}

// An Encoder writes events as run event documents. It implements
// [dialect.Encoder]. It takes the events of one log in order and is not for
// concurrent use.
//
// It refuses kinds that the document does not have. It refuses with an
// [*agentevents.RuleError] what no line can say: damaged ids or JSON, a
// confidence outside [0, 1], and under the schemas a cap that is not on their
// list and an orchestrator's decision of another form.
type Encoder struct {
	o      EncoderOptions
	losses dialect.Losses
	ev     agentevents.Event // the current event
	w      writer
	calls  []openCall
	deltas []deltaCount
	shift  map[string]uint64 // by run: the number of lines added by events that became two

	kinds   [numVariants]*dialect.KindLosses               // the losses of variants that stand for one kind
	dropped [numVariants][len(envelopeDrops)]*dialect.Loss // the dropped envelope members of those variants
}

// An openCall is a tool call without a return. The id of its event may be made
// up.
type openCall struct{ runID, agentID, callID, eventID string }

// A deltaCount numbers deltas without an index.
type deltaCount struct {
	runID, agentID, blockID string
	next                    int
}

// NewEncoder returns an encoder.
func NewEncoder(o EncoderOptions) *Encoder { return &Encoder{o: o} }

// The placeholders for required members that an event does not have.
const (
	unknownRun      = "unknown"
	unknownNode     = "unknown"
	unknownWorkflow = "unknown"
	unknownTypeID   = "core.unknown"
	unknownError    = "error"
	unknownPerson   = "user"
	actionType      = "action"
	toolCallType    = "tool-call"
	unknownQuestion = "?"
	madeActions     = `["accept","reject"]`
)

var madeQuestions = []agentevents.Question{{ID: "q1", Question: unknownQuestion}}

// Append appends the line of an event, or two lines for a tool call that is one
// event.
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	if ev.Kind() == "" {
		return dst, &agentevents.RuleError{Rule: agentevents.RulePayload, RunID: ev.RunID, EventID: ev.ID, Sequence: ev.Sequence, Detail: "the payload is not one of the vocabulary"}
	}
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && p.OneEvent && !refused(string(p.Status)) { // a refused call has only a return
		one := ev // so that other events do not escape to the heap
		return e.split(dst, &one, p)
	}
	mark := len(dst)
	e.ev = ev
	w := &e.w
	w.start(e, &e.ev, false)
	out, err := w.line(dst)
	if err != nil {
		return dst[:mark], err
	}
	if origin := e.ev.Origin(); origin != "" && len(e.shift) == 0 {
		out = e.verbatim(out, mark, origin)
	}
	e.count(&e.ev)
	e.note(&e.ev)
	return append(out, '\n'), nil
}

// count adds the losses of the line written for ev.
func (e *Encoder) count(ev *agentevents.Event) {
	w := &e.w
	if len(w.lost) == 0 && w.dropped == 0 {
		return
	}
	oneKind := w.v != vUnknown && w.v != vPermitResolved // the others stand for several kinds
	losses := e.kinds[w.v]
	if losses == nil {
		if losses = e.losses.Of(ev); oneKind {
			e.kinds[w.v] = losses
		}
	}
	for i := range w.lost {
		l := &w.lost[i]
		losses.Add(ev, l.what, l.pointer, l.detail)
	}
	for m := w.dropped; m != 0; m &= m - 1 {
		i := bits.TrailingZeros16(m)
		if p := e.dropped[w.v][i]; p != nil {
			p.Count++
		} else if p = losses.Add(ev, dialect.Dropped, envelopeDrops[i], ""); oneKind {
			e.dropped[w.v][i] = p
		}
	}
}

// End appends nothing: no event waits for others.
func (e *Encoder) End(dst []byte) ([]byte, error) { return dst, nil }

// Losses returns what the lines so far do not say of the events, and what they
// say beyond them.
func (e *Encoder) Losses() []dialect.Loss { return e.losses.List() }

// note remembers what later lines need to know of ev.
func (e *Encoder) note(ev *agentevents.Event) {
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		if len(e.calls) == maxOpen {
			e.calls = append(e.calls[:0], e.calls[maxOpen/2:]...)
		}
		e.calls = append(e.calls, openCall{ev.RunID, ev.AgentID, p.CallID, e.w.eventID})
	case *agentevents.ToolReturned:
		if i := e.call(ev, p.CallID); i >= 0 {
			e.calls = slices.Delete(e.calls, i, i+1)
		}
	case *agentevents.AgentReasoningDelta:
		if !p.Index.OK && e.o.Profile != RFC0002 {
			e.countDelta(ev, p.BlockID)
		}
	case *agentevents.AgentReasoned:
		if len(e.deltas) > 0 {
			e.deltas = slices.DeleteFunc(e.deltas, func(d deltaCount) bool { return d.runID == ev.RunID && d.agentID == ev.AgentID })
		}
	}
}

// call returns the index of an open call, or -1.
func (e *Encoder) call(ev *agentevents.Event, callID string) int {
	for i := len(e.calls) - 1; i >= 0; i-- {
		if c := &e.calls[i]; c.callID == callID && c.agentID == ev.AgentID && c.runID == ev.RunID {
			return i
		}
	}
	return -1
}

// deltaIndex returns the made-up index of a delta.
func (e *Encoder) deltaIndex(ev *agentevents.Event, blockID string) int {
	if d := e.deltaCount(ev, blockID); d != nil {
		return d.next
	}
	return 0
}

func (e *Encoder) deltaCount(ev *agentevents.Event, blockID string) *deltaCount {
	for i := range e.deltas {
		if d := &e.deltas[i]; d.agentID == ev.AgentID && d.runID == ev.RunID && d.blockID == blockID {
			return d
		}
	}
	return nil
}

// countDelta notes that a delta was written.
func (e *Encoder) countDelta(ev *agentevents.Event, blockID string) {
	if d := e.deltaCount(ev, blockID); d != nil {
		d.next++
		return
	}
	if len(e.deltas) == maxOpen {
		e.deltas = append(e.deltas[:0], e.deltas[maxOpen/2:]...)
	}
	e.deltas = append(e.deltas, deltaCount{ev.RunID, ev.AgentID, blockID, 1})
}

// split writes a call that is one event as two lines, a call and its return.
func (e *Encoder) split(dst []byte, ev *agentevents.Event, p *agentevents.ToolReturned) ([]byte, error) {
	mark := len(dst)
	called, returned := *ev, *ev
	called.ID = dialect.DerivedID(ev.RunID+"\x00"+ev.ID, int(ev.Sequence), 1)
	called.Payload = &agentevents.ToolCalled{CallID: p.CallID, ToolID: p.ToolID, Arguments: p.Arguments}
	if p.Duration.OK && p.Duration.V > 0 {
		called.Time = ev.Time.Add(-p.Duration.V)
	}
	_ = called.SetExtra(string(Name), "") // never fails: nothing is set
	whole := *p
	whole.OneEvent, whole.Arguments, whole.ArgumentsSummary = false, "", ""
	returned.Payload = &whole
	returned.CausationID = called.ID

	w := &e.w
	w.start(e, &called, false)
	out, err := w.line(dst)
	if err != nil {
		return dst[:mark], err
	}
	out = append(out, '\n')
	lost, dropped := slices.Clone(w.lost), w.dropped // counted below, because the return may be refused
	w.start(e, &returned, false)
	w.shift++
	w.split = true
	if out, err = w.line(out); err != nil {
		return dst[:mark], err
	}
	if e.shift == nil {
		e.shift = map[string]uint64{}
	}
	e.shift[ev.RunID]++
	for _, l := range lost {
		if !slices.Contains(w.lost, l) {
			w.lost = append(w.lost, l)
		}
	}
	w.dropped |= dropped
	e.count(ev)
	e.losses.Add(ev, dialect.Made, "", "the line of a call before its return")
	e.losses.Add(ev, dialect.Dropped, "/payload/oneEvent", "written as a call and its return")
	if p.Arguments != "" {
		e.losses.Add(ev, dialect.Dropped, "/payload/arguments", "written with the call")
	}
	e.losses.Drop(ev, "/payload/argumentsSummary", p.ArgumentsSummary != "")
	if ev.CausationID == "" {
		e.losses.Add(ev, dialect.Made, "/causationId", "the event of the call")
	} else if ev.CausationID != called.ID {
		e.losses.Add(ev, dialect.Altered, "/causationId", "the call has it; the return names the call")
	}
	return append(out, '\n'), nil
}

// verbatim replaces the written line by the line that the event was read from, if
// that line says what the event says, in the profile's spelling and form. The
// losses that only the rewritten line has are removed.
func (e *Encoder) verbatim(out []byte, mark int, origin string) []byte {
	w := &e.w
	same := string(out[mark:]) == origin
	if same && (len(w.lost) == 0 || len(w.lost) == 1 && w.lost[0] == madeVersion) {
		w.lost = w.lost[:0]
		return out
	}
	dec := NewDecoder(Options{Profile: e.o.Profile})
	was, err := dec.Decode(nil, []byte(origin))
	if err != nil || len(was) != 1 || dec.foreign {
		return out
	}
	var a, b writer
	a.start(e, &e.ev, true)
	now, err := a.line(nil)
	if err != nil {
		return out
	}
	b.start(e, &was[0], true)
	then, err := b.line(nil)
	if err != nil || !bytes.Equal(now, then) {
		return out
	}
	if !same {
		if e.o.Profile != RFC0002 && (slices.ContainsFunc(w.lost, loss.reshapes) || slices.ContainsFunc(b.lost, loss.removes)) {
			return out
		}
		out = append(out[:mark], origin...)
	}
	if sameEvent(e.ev, was[0]) {
		w.lost, w.dropped = w.lost[:0], 0
		return out
	}
	w.lost = slices.DeleteFunc(w.lost, func(l loss) bool { return l.what != dialect.Dropped && slices.Contains(b.lost, l) })
	return out
}

// madeVersion is the loss of a SchemaV2 line whose event has no schemaVersion, as
// events of version 1 have none.
var madeVersion = loss{dialect.Made, "/openwop/schemaVersion", "1"}

// reshapes reports whether the written line has another form than the event.
func (l loss) reshapes() bool { return l.what != dialect.Dropped && l != madeVersion }

// removes reports whether the original line is illegal under the profile.
func (l loss) removes() bool {
	return l.reshapes() || l.what == dialect.Dropped && l.pointer != "/payload/result" // the schemas allow it beside an error
}

// sameEvent reports whether two events say the same, except for their extra
// member with the dialect's name.
func sameEvent(a, b agentevents.Event) bool {
	_ = a.SetExtra(string(Name), "") // never fails: nothing is set
	_ = b.SetExtra(string(Name), "")
	x, err := a.AppendJSON(nil)
	if err != nil {
		return false
	}
	y, err := b.AppendJSON(nil)
	return err == nil && bytes.Equal(x, y)
}
