package openwop

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// EncoderOptions configure an [Encoder]. The zero EncoderOptions write the
// names of the RFC's text.
type EncoderOptions struct {
	// Profile is the form to write.
	Profile Profile
}

// An Encoder writes events as run event documents; it implements
// [dialect.Encoder]. It is for the events of one log, in order, without
// concurrent use.
//
// It refuses kinds that the document does not have, and with an
// [*agentevents.InvariantError] what no line can say: damaged ids or JSON, a
// confidence outside [0, 1], under the schemas a cap that is not on their list
// and an orchestrator's decision of another form.
type Encoder struct {
	o      EncoderOptions
	losses dialect.Losses
	ev     agentevents.Event // the one that is being written
	w      writer
	calls  []openCall
	deltas []deltaCount
	shift  map[string]uint64 // by run: lines written for events that are two

	kinds   [numVariants]*dialect.KindLosses               // the losses of those that are of one kind
	dropped [numVariants][len(envelopeDrops)]*dialect.Loss // what was counted of them
}

// openCall is a tool call without its return.
type openCall struct{ runID, agentID, callID, eventID string }

// deltaCount numbers deltas that have no index.
type deltaCount struct {
	runID, agentID, blockID string
	next                    int
}

// NewEncoder returns an encoder.
func NewEncoder(o EncoderOptions) *Encoder { return &Encoder{o: o} }

// placeholders stand for required members that an event does not have.
const (
	unknownNode     = "unknown"
	unknownWorkflow = "unknown"
	unknownTypeID   = "core.unknown"
	unknownError    = "error"
	unknownPerson   = "user"
	actionType      = "action"
	toolCallType    = "tool-call"
)

// Append appends the line of an event, and two of a tool call that is one
// event.
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	if ev.Kind() == "" {
		return dst, &agentevents.InvariantError{Rule: agentevents.RulePayload, RunID: ev.RunID, EventID: ev.ID, Sequence: ev.Sequence, Detail: "is no payload of the vocabulary"}
	}
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && p.OneEvent {
		one := ev // so that other events stay where they are
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
	verbatim := false
	if origin := e.ev.Origin(); origin != "" && len(e.shift) == 0 && string(out[mark:]) != origin && e.saysOrigin(&e.ev, origin) {
		out = append(out[:mark], origin...)
		verbatim = true
	}
	e.count(&e.ev, verbatim)
	e.note(&e.ev)
	return append(out, '\n'), nil
}

// count counts the losses of the line that was written of ev.
func (e *Encoder) count(ev *agentevents.Event, verbatim bool) {
	w := &e.w
	if len(w.lost) == 0 && w.dropped == 0 {
		return
	}
	oneKind := w.v != vUnknown && w.v != vPermitResolved // the others are written of one kind of event
	losses := e.kinds[w.v]
	if losses == nil {
		if losses = e.losses.Of(ev); oneKind {
			e.kinds[w.v] = losses
		}
	}
	for i := range w.lost {
		if l := &w.lost[i]; !verbatim || l.what == dialect.Dropped {
			losses.Add(ev, l.what, l.pointer, l.detail)
		}
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

// Losses returns what the lines so far do not say, and what they say beyond
// the events.
func (e *Encoder) Losses() []dialect.Loss { return e.losses.List() }

// note remembers what later lines need to know.
func (e *Encoder) note(ev *agentevents.Event) {
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		if len(e.calls) == maxOpen {
			e.calls = append(e.calls[:0], e.calls[maxOpen/2:]...)
		}
		e.calls = append(e.calls, openCall{ev.RunID, ev.AgentID, p.CallID, ev.ID})
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

// deltaIndex returns the number of a delta that has none.
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

// split writes a call that is one event as a call and its return.
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
	w.start(e, &returned, false)
	w.shift++
	if out, err = w.line(out); err != nil {
		return dst[:mark], err
	}
	if e.shift == nil {
		e.shift = map[string]uint64{}
	}
	e.shift[ev.RunID]++
	e.count(ev, false)
	e.losses.Add(ev, dialect.Made, "", "a call beside its return")
	e.losses.Add(ev, dialect.Dropped, "/payload/oneEvent", "written as a call and its return")
	if p.Arguments != "" {
		e.losses.Add(ev, dialect.Dropped, "/payload/arguments", "they are in the call")
	}
	e.losses.Drop(ev, "/payload/argumentsSummary", p.ArgumentsSummary != "")
	if ev.CausationID == "" {
		e.losses.Add(ev, dialect.Made, "/causationId", "the event of the call")
	} else if ev.CausationID != called.ID {
		e.losses.Add(ev, dialect.Altered, "/causationId", "it is that of the call; the return names the call")
	}
	return append(out, '\n'), nil
}

// saysOrigin reports whether the line that the event was read from still says
// what the event says, in the profile's spelling.
func (e *Encoder) saysOrigin(ev *agentevents.Event, origin string) bool {
	dec := NewDecoder(Options{Profile: e.o.Profile})
	was, err := dec.Decode(nil, []byte(origin))
	if err != nil || len(was) != 1 || dec.foreign {
		return false
	}
	var a, b writer
	a.start(e, ev, true)
	now, err := a.line(nil)
	if err != nil {
		return false
	}
	b.start(e, &was[0], true)
	then, err := b.line(nil)
	return err == nil && bytes.Equal(now, then)
}

// A writer writes one line.
type writer struct {
	e       *Encoder
	ev      *agentevents.Event
	p       Profile
	quiet   bool // the line alone, whatever came before
	careful bool // look for damaged characters
	shift   uint64
	k       kept
	v       int
	dst     []byte
	eventID string // as it is written
	nodeID  string // as it is written
	open    bool   // nothing was written into the object yet
	has     set    // members of the payload that were written
	extra   string
	lost    []loss
	dropped uint16 // of envelopeDrops
	err     error
	times   jsonwire.TimeCache
	said    agentevents.ConversationMessage // with a content where it has none
}

type loss struct {
	what            dialect.Change
	pointer, detail string
}

func (w *writer) start(e *Encoder, ev *agentevents.Event, quiet bool) {
	w.e, w.ev, w.p, w.quiet, w.careful = e, ev, e.o.Profile, quiet, false
	w.v, w.open, w.has, w.extra, w.err, w.lost, w.dropped, w.shift = vUnknown, false, 0, "", nil, w.lost[:0], 0, 0
	if len(e.shift) > 0 && !quiet {
		w.shift = e.shift[ev.RunID]
	}
	w.k.read(ev)
}

func (w *writer) lose(what dialect.Change, pointer, detail string) {
	if w.quiet {
		return
	}
	// A literal would be put together elsewhere and copied, for which the
	// processor waits.
	n := len(w.lost)
	w.lost = slices.Grow(w.lost, 1)[:n+1]
	l := &w.lost[n]
	l.what, l.pointer, l.detail = what, pointer, detail
}

func (w *writer) drop(pointer string, present bool) {
	if present {
		w.lose(dialect.Dropped, pointer, "")
	}
}

func (w *writer) fail(rule agentevents.Rule, pointer, detail string) {
	if w.err == nil {
		ev := w.ev
		w.err = &agentevents.InvariantError{
			Rule: rule, Kind: ev.Kind(), RunID: ev.RunID, AgentID: ev.AgentID, EventID: ev.ID, Sequence: ev.Sequence, Pointer: pointer, Detail: detail,
		}
	}
}

// line appends the line without its newline.
func (w *writer) line(dst []byte) ([]byte, error) {
	mark := len(dst)
	out, err := w.write(dst)
	// Damaged characters come out as U+FFFD, which begins with this byte. Few
	// lines have it, so texts are looked at only then.
	if err == nil && bytes.IndexByte(out[mark:], 0xef) >= 0 {
		w.lost, w.has, w.extra = w.lost[:0], 0, ""
		w.careful = true
		out, err = w.write(dst)
	}
	return out, err
}

func (w *writer) write(dst []byte) ([]byte, error) {
	ev := w.ev
	mark := len(dst)
	w.v = w.variant()
	typ := ""
	if w.v == vUnknown {
		u, ok := ev.Payload.(*agentevents.Unknown)
		if !ok {
			if w.quiet {
				return dst, dialect.ErrNoCounterpart
			}
			return dst, w.e.losses.Refuse(ev)
		}
		typ = strings.TrimPrefix(string(u.Type), unknownPrefix)
		if name := renamed(w.p, typ); name != typ {
			w.lose(dialect.Altered, "/type", name)
			typ = name
		}
		if !legalType(w.p, typ) {
			if w.quiet {
				return dst, dialect.ErrNoCounterpart
			}
			return dst, w.e.losses.Refuse(ev)
		}
	} else {
		typ = w.typeOf()
	}
	if sec := ev.Time.Unix(); sec < -62167219200 || sec > 253402300799 {
		w.fail(agentevents.RuleFieldRange, "/timestamp", "is outside the years 0 to 9999")
	}

	dst = append(dst, `{"eventId":`...)
	id := ev.ID
	if id == "" {
		id = dialect.DerivedID(ev.RunID+"\x00"+typ, int(ev.Sequence), 2)
		w.lose(dialect.Made, "/id", "")
	}
	w.eventID = id
	dst = w.id(dst, EventID, "/id", id)
	runID := ev.RunID
	if runID == "" {
		runID = "unknown"
		w.lose(dialect.Made, "/runId", runID)
	}
	dst = w.id(append(dst, `,"runId":`...), RunID, "/runId", runID)
	w.nodeID = ev.NodeID
	if w.nodeID == "" && variants[w.v].required(w.p).has(mNodeID) && !w.k.absent.has(mNodeID) {
		w.nodeID = unknownNode
		w.lose(dialect.Made, "/nodeId", unknownNode)
	}
	switch {
	case w.nodeID != "" && !(w.k.envAbsent.has(eNodeID) && variants[w.v].members.has(mNodeID)):
		dst = w.id(append(dst, `,"nodeId":`...), NodeID, "/nodeId", w.nodeID)
	case ev.NodeID == "" && w.k.envSpelled.has(eNodeID) && w.p == RFC0002:
		dst = append(dst, `,"nodeId":""`...)
	}
	dst = append(dst, `,"type":`...)
	if w.v == vUnknown {
		dst = jsonwire.AppendString(dst, typ)
	} else {
		dst = append(append(append(dst, '"'), typ...), '"') // of the tables, without escapes
	}
	if w.v != vUnknown || !w.k.envAbsent.has(ePayload) || ev.Payload.(*agentevents.Unknown).Raw != "" {
		dst = append(dst, `,"payload":`...)
		w.dst = dst
		w.payload()
		dst = w.dst
		w.dst = nil
	}
	if !ev.Time.IsZero() || !w.k.envAbsent.has(eTimestamp) {
		dst = w.times.Append(append(dst, `,"timestamp":`...), ev.Time)
	}
	dst = jsonwire.AppendUint(append(dst, `,"sequence":`...), ev.Sequence+w.shift)
	if w.shift > 0 {
		w.lose(dialect.Altered, "/sequence", "moved up: calls that were one event are two lines")
	}
	dst = w.versions(dst)
	dst = w.causation(dst)
	dst = w.rest(dst)
	dst = append(dst, '}')
	if len(ev.SessionID)|len(ev.TaskID)|len(ev.WorkflowID)|len(ev.Phase)|len(ev.NodeRunID)|len(ev.Actor)|len(ev.ParentAgentID)|len(ev.ParentCallID)|
		len(ev.TraceID)|len(ev.SpanID)|len(ev.ParentSpanID) != 0 || ev.Step.OK || ev.Marks != 0 || ev.SchemaVersion != agentevents.SchemaVersion {
		w.dropEnvelope()
	}
	if !w.quiet {
		for n := range ev.Extras() {
			if n != string(Name) {
				w.lose(dialect.Dropped, "/"+jsonwire.Token(n), "")
			}
		}
		if ev.PayloadExtra() && w.dropsExtra() {
			w.lose(dialect.Dropped, "/payload", "members that no field has")
		}
	}
	if w.err != nil {
		return dst[:mark], w.err
	}
	return dst, nil
}

// dropsExtra reports whether the payload has members that no field has outside
// of those values that are written whole.
func (w *writer) dropsExtra() bool {
	ev := agentevents.Event{Payload: w.ev.Payload}
	switch p := ev.Payload.(type) {
	case *agentevents.AgentHandoff:
		c := *p
		c.From, c.To = agentevents.AgentRef{}, agentevents.AgentRef{} // those of ids alone are listed by themselves
		ev.Payload = &c
	case *agentevents.NodeStarted:
		c := *p
		c.Agent = agentevents.Opt[agentevents.AgentRef]{}
		ev.Payload = &c
	case *agentevents.NodeCompleted:
		c := *p
		c.Agent = agentevents.Opt[agentevents.AgentRef]{}
		ev.Payload = &c
	case *agentevents.MessageCreated:
		c := *p
		c.Message = agentevents.ConversationMessage{}
		ev.Payload = &c
	}
	return ev.PayloadExtra()
}

// envelopeDrops are the members of the envelope that the document does not have.
var envelopeDrops = [...]string{
	"/sessionId", "/taskId", "/workflowId", "/phase", "/nodeRunId", "/actor", "/parentAgentId", "/parentCallId", "/step", "/traceId", "/spanId",
	"/parentSpanId", "/schemaVersion", "/marks",
}

// dropEnvelope notes which of them the event has.
func (w *writer) dropEnvelope() {
	ev := w.ev
	note := func(i int, present bool) uint16 {
		if present {
			return 1 << i
		}
		return 0
	}
	d := note(0, ev.SessionID != "") | note(8, ev.Step.OK) | note(13, ev.Marks != 0) |
		note(12, ev.SchemaVersion != "" && ev.SchemaVersion != agentevents.SchemaVersion)
	if len(ev.TaskID)|len(ev.WorkflowID)|len(ev.Phase)|len(ev.NodeRunID)|len(ev.Actor)|len(ev.ParentAgentID)|len(ev.ParentCallID) != 0 {
		d |= note(1, ev.TaskID != "") | note(2, ev.WorkflowID != "" && w.v != vRunStarted) | note(3, ev.Phase != "") | note(4, ev.NodeRunID != "") |
			note(5, ev.Actor != "") | note(6, ev.ParentAgentID != "") | note(7, ev.ParentCallID != "")
	}
	if len(ev.TraceID)|len(ev.SpanID)|len(ev.ParentSpanID) != 0 {
		d |= note(9, ev.TraceID != "") | note(10, ev.SpanID != "") | note(11, ev.ParentSpanID != "")
	}
	w.dropped = d
}

// id appends an id in the form that the profile asks for.
func (w *writer) id(dst []byte, form IDForm, pointer, id string) []byte {
	if w.p == RFC0002 && !w.careful {
		return jsonwire.AppendString(dst, id)
	}
	if w.p != RFC0002 {
		if n := NormalizeID(w.p, form, id); n != id {
			w.lose(dialect.Altered, pointer, "the profile has another form for ids")
			id = n
		}
	}
	return w.plainID(dst, pointer, id)
}

// plainID appends an id as it is.
func (w *writer) plainID(dst []byte, pointer, id string) []byte {
	if w.careful && !jsonwire.ValidUTF8(id) {
		w.fail(agentevents.RuleFieldUTF8, pointer, "is not valid UTF-8")
	}
	return jsonwire.AppendString(dst, id)
}

// versions appends schemaVersion and engineVersion.
func (w *writer) versions(dst []byte) []byte {
	if w.k.raw == "" && w.p != SchemaV2 {
		return dst
	}
	schema, engine := w.k.get("schemaVersion"), w.k.get("engineVersion")
	if w.p == SchemaV2 && (schema == "" || schema == "0") && (w.quiet || !w.k.envAbsent.has(eSchemaVersion)) {
		schema = "1"
		w.lose(dialect.Made, "/openwop/schemaVersion", "1")
	}
	if schema != "" {
		dst = append(append(dst, `,"schemaVersion":`...), schema...)
	}
	if engine != "" {
		if w.p == SchemaV1 && engine[0] != '"' || w.p == SchemaV2 && engine[0] == '"' {
			w.lose(dialect.Dropped, "/openwop/engineVersion", "the profile has another type for it")
			return dst
		}
		dst = append(append(dst, `,"engineVersion":`...), engine...)
	}
	return dst
}

// causation appends the causationId; a tool's return names its call.
func (w *writer) causation(dst []byte) []byte {
	id := w.ev.CausationID
	if id == "" {
		if w.k.envSpelled.has(eCausationID) && w.p == RFC0002 {
			return append(dst, `,"causationId":""`...)
		}
		p, ok := w.ev.Payload.(*agentevents.ToolReturned)
		if !ok || w.quiet || refused(string(p.Status)) {
			return dst
		}
		i := w.e.call(w.ev, p.CallID)
		if i < 0 || w.e.calls[i].eventID == "" {
			w.lose(dialect.Altered, "/causationId", "required, but the call is not in the log")
			return dst
		}
		id = w.e.calls[i].eventID
		w.lose(dialect.Made, "/causationId", "the event of the call")
	}
	return w.id(append(dst, `,"causationId":`...), EventID, "/causationId", id)
}

// rest appends the members of the envelope that were kept.
func (w *writer) rest(dst []byte) []byte {
	if w.k.raw == "" {
		return dst
	}
	jsonwire.Members(w.k.raw, func(key, raw string) {
		name, ok := memberOf(key)
		if !ok || name == "schemaVersion" || name == "engineVersion" {
			return
		}
		if numberOf(envelopeNames[:], name) != 0 || w.p == SchemaV2 && !w.k.same(w.p) {
			w.lose(dialect.Dropped, "/openwop/"+jsonwire.Token(key), "the profile has no place for it")
			return
		}
		dst = jsonwire.AppendString(append(dst, ','), name)
		dst = append(append(dst, ':'), raw...)
	})
	return dst
}

// variant returns what the event is written as.
func (w *writer) variant() int {
	interrupt := w.p == SchemaV2 || w.k.typ != ""
	pick := func(legacy, other int) int {
		if interrupt {
			return other
		}
		return legacy
	}
	switch w.ev.Payload.(type) {
	case *agentevents.AgentReasoned:
		return vReasoned
	case *agentevents.AgentReasoningDelta:
		return vDelta
	case *agentevents.ToolCalled:
		return vToolCalled
	case *agentevents.ToolReturned:
		return vToolReturned
	case *agentevents.AgentHandoff:
		return vHandoff
	case *agentevents.AgentDecided:
		return vDecided
	case *agentevents.OrchestratorDecided:
		return vOrchestrator
	case *agentevents.NodeStarted:
		return vNodeStarted
	case *agentevents.NodeCompleted:
		return vNodeCompleted
	case *agentevents.NodeFailed:
		return vNodeFailed
	case *agentevents.NodeSkipped:
		return vNodeSkipped
	case *agentevents.NodeSuspended:
		return vNodeSuspended
	case *agentevents.CapBreached:
		return vCapBreached
	case *agentevents.ClarificationRequested:
		return pick(vClarRequested, vAskRequested)
	case *agentevents.ClarificationResolved:
		return pick(vClarResolved, vAskResolved)
	case *agentevents.RunStarted:
		return vRunStarted
	case *agentevents.RunPaused:
		return vRunPaused
	case *agentevents.RunResumed:
		return vRunResumed
	case *agentevents.RunCompleted:
		return vRunCompleted
	case *agentevents.RunFailed:
		return vRunFailed
	case *agentevents.RunCancelled:
		return vRunCancelled
	case *agentevents.ApprovalRequested:
		return pick(vApprovalRequested, vPermitRequested)
	case *agentevents.ApprovalGranted:
		return pick(vApprovalGranted, vPermitResolved)
	case *agentevents.ApprovalRejected:
		return pick(vApprovalRejected, vPermitResolved)
	case *agentevents.MessageCreated:
		return vMessage
	}
	return vUnknown
}

// typeOf returns the type of the line.
func (w *writer) typeOf() string {
	if w.k.typ != "" {
		for _, legal := range aliases(w.v, w.ev) {
			if w.k.typ == legal {
				return legal
			}
		}
	}
	return typeName(w.v, w.p)
}

// aliases are the types that a payload of an interrupt may stand under.
func aliases(v int, ev *agentevents.Event) []string {
	switch v {
	case vAskRequested:
		return []string{"interrupt.requested", "clarification.requested"}
	case vAskResolved:
		return []string{"interrupt.resolved", "clarification.resolved"}
	case vPermitRequested:
		return []string{"interrupt.requested", "approval.requested"}
	case vPermitResolved:
		if _, granted := ev.Payload.(*agentevents.ApprovalGranted); granted {
			return []string{"interrupt.resolved", "approval.granted"}
		}
		return []string{"interrupt.resolved", "approval.rejected"}
	}
	return nil
}

// undeclared reports whether the payload may have members that the schema does not
// declare.
func (w *writer) undeclared() bool {
	vs := &variants[w.v]
	return w.p != SchemaV2 && !vs.closed1 || vs.open2
}

// The members of a payload.

func (w *writer) name(m int) {
	head := memberHeads[m-1]
	if w.open {
		w.open, head = false, head[1:]
	}
	w.dst = append(w.dst, head...)
	w.has |= 1 << m
}

// str appends a text.
func (w *writer) str(pointer, s string) {
	w.dst = jsonwire.AppendString(w.dst, s)
	if w.careful && !jsonwire.ValidUTF8(s) {
		w.lose(dialect.Altered, pointer, damagedText)
	}
}

const damagedText = "damaged characters were replaced"

// text writes an optional text.
func (w *writer) text(m int, pointer, s string) {
	if s == "" && !w.k.spelled.has(m) {
		return
	}
	w.name(m)
	w.str(pointer, s)
}

// content writes a required text that may be empty.
func (w *writer) content(m int, pointer, s string) {
	if s == "" && w.k.absent.has(m) {
		return
	}
	w.name(m)
	w.str(pointer, s)
}

// required writes a required id or name; made stands in its place.
func (w *writer) required(m int, form IDForm, pointer, s, made string) {
	if s == "" {
		if w.k.absent.has(slot(m)) {
			return
		}
		if !w.k.spelled.has(m) || w.p != RFC0002 {
			s = made
			w.lose(dialect.Made, pointer, made)
		}
	}
	w.name(m)
	w.dst = w.id(w.dst, form, pointer, s)
}

// word writes an optional word of a list, which binds under the schemas.
func (w *writer) word(m int, pointer, s string, words []string) {
	if s != "" && w.p != RFC0002 && !slices.Contains(words, s) {
		w.lose(dialect.Dropped, pointer, "not a word of the schema")
		return
	}
	w.text(m, pointer, s)
}

// json writes an optional value. Under the schemas it may have to be an object.
func (w *writer) json(m int, pointer string, v agentevents.JSON, object bool) {
	if v == "" {
		return
	}
	w.name(m)
	w.raw(pointer, v, object)
}

func (w *writer) raw(pointer string, v agentevents.JSON, object bool) {
	c, err := jsonwire.Compact(string(v))
	if err != nil {
		w.fail(agentevents.RuleFieldJSON, pointer, err.Error())
		return
	}
	if object && w.p != RFC0002 && c[0] != '{' {
		w.lose(dialect.Altered, pointer, `is no object, and stands as "value" in one`)
		w.dst = append(append(append(w.dst, `{"value":`...), c...), '}')
		return
	}
	w.dst = append(w.dst, c...)
}

// must is json for a required value.
func (w *writer) must(m int, pointer string, v, made agentevents.JSON, object bool) {
	if v == "" {
		if w.k.absent.has(slot(m)) {
			return
		}
		v = made
		w.lose(dialect.Made, pointer, string(made))
	}
	w.json(m, pointer, v, object)
}

func (w *writer) integer(m int, pointer string, v agentevents.Opt[int], low int) {
	if !v.OK {
		return
	}
	if v.V < low {
		w.fail(RuleRange, pointer, strconv.Itoa(v.V)+" is below "+strconv.Itoa(low))
	}
	w.name(m)
	w.dst = jsonwire.AppendInt(w.dst, int64(v.V))
}

func (w *writer) float(m int, pointer string, v agentevents.Opt[float64], high float64) {
	if !v.OK {
		return
	}
	if math.IsNaN(v.V) || math.IsInf(v.V, 0) || v.V > high || v.V < 0 && (w.p != RFC0002 || high == 1) {
		w.fail(RuleRange, pointer, "is outside its range")
	}
	w.name(m)
	w.dst = jsonwire.AppendFloat(w.dst, v.V)
}

// millis writes a duration, of which the document has whole milliseconds.
func (w *writer) millis(m int, pointer string, v agentevents.Opt[time.Duration]) {
	if !v.OK {
		return
	}
	if v.V < 0 {
		w.fail(RuleRange, pointer, "is below 0")
	}
	w.name(m)
	if v.V%time.Millisecond != 0 {
		w.lose(dialect.Altered, pointer, "whole milliseconds")
	}
	w.dst = jsonwire.AppendInt(w.dst, v.V.Milliseconds())
}

// agent writes the acting agent, which the type requires.
func (w *writer) agent() {
	w.required(mAgentID, AgentID, "/agentId", w.ev.AgentID, agentevents.CoreSystem)
}

// anyAgent writes the acting agent where the type has no member for it.
func (w *writer) anyAgent() {
	if w.ev.AgentID == "" && !w.k.spelled.has(mAgentID) {
		return
	}
	if !w.undeclared() {
		w.drop("/agentId", w.ev.AgentID != "")
		return
	}
	w.name(mAgentID)
	w.dst = w.id(w.dst, AgentID, "/agentId", w.ev.AgentID)
}

// node writes the node, which stands in the envelope too.
func (w *writer) node() {
	id := w.nodeID
	needed := variants[w.v].required(w.p).has(mNodeID)
	if other := w.k.get("/payload/nodeId"); other != "" && !(w.p == SchemaV2 && !ValidID(w.p, NodeID, jsonwire.Text(other))) {
		w.name(mNodeID)
		w.dst = append(w.dst, other...)
		return
	}
	switch {
	case id != "" && (needed || !w.k.absent.has(mNodeID)):
		w.name(mNodeID)
		w.dst = w.id(w.dst, NodeID, "/nodeId", id)
	case id == "" && w.k.spelled.has(mNodeID):
		w.text(mNodeID, "/nodeId", "")
	}
}

// errorInfo writes an error.
func (w *writer) errorInfo(v *agentevents.ErrorInfo) {
	w.name(mError)
	w.dst = append(w.dst, '{')
	sep := ""
	member := func(name string) {
		w.dst = append(append(append(append(w.dst, sep...), '"'), name...), `":`...)
		sep = ","
	}
	code, name := v.Code, "code"
	if w.k.errWord && w.p == RFC0002 {
		name = "error"
	}
	if code == "" && !(w.p == RFC0002 && (w.k.errCode || w.k.errWord)) && !w.k.noCode {
		code = unknownError
		w.lose(dialect.Made, "/payload/error/code", code)
	}
	if code != "" || !w.k.noCode {
		member(name)
		w.str("/payload/error/code", code)
	}
	message := v.Message
	if message == "" && w.p != RFC0002 && !w.k.noMessage {
		message = code
		w.lose(dialect.Made, "/payload/error/message", message)
	}
	if message != "" || !w.k.noMessage {
		member("message")
		w.str("/payload/error/message", message)
	}
	if v.Details != "" {
		member("details")
		w.raw("/payload/error/details", v.Details, true)
	}
	if v.Retryable.OK {
		member("retryable")
		w.dst = strconv.AppendBool(w.dst, v.Retryable.V)
	}
	w.object("/payload/error/", sep == "", func(n string) bool {
		return n == "code" || n == "message" || n == "details" || n == "retryable" || n == name || w.p == SchemaV2 && !hatch(n) && !w.k.same(w.p)
	})
}

// object writes the kept members below a pointer and ends the object. closed
// says which of them the object cannot have.
func (w *writer) object(below string, empty bool, closed func(name string) bool) {
	if w.k.raw != "" {
		jsonwire.Members(w.k.raw, func(key, raw string) {
			name, ok := strings.CutPrefix(key, below)
			if !ok || strings.Contains(name, "/") {
				return
			}
			name = jsonwire.Untoken(name)
			if closed(name) {
				w.lose(dialect.Dropped, "/openwop/"+jsonwire.Token(key), "the profile has no place for it")
				return
			}
			if !empty {
				w.dst = append(w.dst, ',')
			}
			empty = false
			w.dst = jsonwire.AppendString(w.dst, name)
			w.dst = append(append(w.dst, ':'), raw...)
		})
	}
	w.dst = append(w.dst, '}')
}

// ref writes an AgentRef.
func (w *writer) ref(m int, pointer string, v agentevents.AgentRef, made string) {
	if v.AgentID == "" && made != "" && !w.k.absent.has(m) {
		v.AgentID = made
		w.lose(dialect.Made, pointer+"/agentId", made)
	}
	w.name(m)
	if !w.ev.PayloadExtra() {
		w.dst = w.plainID(append(w.dst, `{"agentId":`...), pointer, v.AgentID)
		if v.AgentSharing != "" {
			w.dst = jsonwire.AppendString(append(w.dst, `,"agentSharing":`...), string(v.AgentSharing))
		}
		if v.MemoryRef != "" {
			w.dst = w.plainID(append(w.dst, `,"memoryRef":`...), pointer, v.MemoryRef)
		}
		if v.ModelClass != "" {
			w.dst = jsonwire.AppendString(append(w.dst, `,"modelClass":`...), string(v.ModelClass))
		}
		w.dst = append(w.dst, '}')
		return
	}
	raw, err := v.MarshalJSON()
	if err == nil && w.careful && !(jsonwire.ValidUTF8(v.AgentID) && jsonwire.ValidUTF8(v.MemoryRef)) {
		w.fail(agentevents.RuleFieldUTF8, pointer, "is not valid UTF-8")
	}
	w.dst = append(w.dst, raw...)
}

// refID writes an AgentRef of which there is only place for the id.
func (w *writer) refID(m int, pointer string, v agentevents.AgentRef, made string) {
	w.required(m, HandoffID, pointer+"/agentId", v.AgentID, made)
	raw, _ := v.MarshalJSON() // never fails
	jsonwire.Members(string(raw), func(name, _ string) { w.drop(pointer+"/"+jsonwire.Token(name), name != "agentId") })
}

// payload writes the payload.
func (w *writer) payload() {
	if u, ok := w.ev.Payload.(*agentevents.Unknown); ok {
		w.unknown(u)
		return
	}
	w.dst = append(w.dst, '{')
	w.open = true
	w.members()
	vs := &variants[w.v]
	closed := vs.closed(w.p)
	w.object("/payload/", w.open, func(n string) bool {
		if m := numberOf(memberNames[:], n); m != 0 && w.has.has(m) || strings.Contains(w.extra, " "+n+" ") {
			return true
		}
		return closed && !w.k.same(w.p) && !vs.declares(n) && (w.p == SchemaV1 || vs.sealed || !hatch(n))
	})
}

// unknown writes the payload of a type that the vocabulary does not have.
func (w *writer) unknown(u *agentevents.Unknown) {
	raw := u.Raw
	if raw == "" {
		raw = "{}"
		w.lose(dialect.Made, "/payload", "{}")
	}
	w.raw("/payload", raw, false)
	if id := w.ev.AgentID; id != "" && agentOf(string(raw)) != id {
		w.drop("/agentId", true)
	}
}

// members writes those of the payload that the vocabulary has.
func (w *writer) members() {
	ev, rfc := w.ev, w.p == RFC0002
	tool, arguments, result := mToolName, mInputs, mOutcome
	if rfc {
		tool, arguments, result = mToolID, mArguments, mResult
	}
	switch p := ev.Payload.(type) {
	case *agentevents.AgentReasoned:
		w.agent()
		w.content(mReasoning, "/payload/reasoning", p.Reasoning)
		w.word(mVerbosity, "/payload/verbosity", string(p.Verbosity), verbosities)
		w.drop("/payload/blockId", p.BlockID != "")
		w.drop("/payload/tokenCount", p.TokenCount.OK)
	case *agentevents.AgentReasoningDelta:
		w.agent()
		w.content(mDelta, "/payload/delta", p.Delta)
		index := p.Index
		if !index.OK && !rfc && !w.quiet && !w.k.absent.has(mSequence) {
			index = agentevents.Some(w.e.deltaIndex(ev, p.BlockID))
			w.lose(dialect.Made, "/payload/index", "counted")
		}
		w.integer(mSequence, "/payload/index", index, 0)
		w.word(mVerbosity, "/payload/verbosity", string(p.Verbosity), verbosities)
		w.drop("/payload/blockId", p.BlockID != "")
		w.drop("/payload/tokenCount", p.TokenCount.OK)
	case *agentevents.ToolCalled:
		w.agent()
		w.required(tool, PlainID, "/payload/toolId", p.ToolID, "unknown")
		w.required(mCallID, PlainID, "/payload/callId", p.CallID, w.eventID)
		if rfc && p.ArgsHash == "" && !w.k.spelled.has(mArgsHash) {
			w.must(arguments, "/payload/arguments", p.Arguments, "null", false)
		} else {
			w.json(arguments, "/payload/arguments", p.Arguments, false)
		}
		w.text(mArgsHash, "/payload/argsHash", p.ArgsHash)
		w.text(mPrincipal, "/payload/principal", p.Principal)
		w.word(mTransport, "/payload/transport", string(p.Transport), transports)
		w.drop("/payload/argumentsSummary", p.ArgumentsSummary != "")
		w.drop("/payload/attempt", p.Attempt.OK)
		w.drop("/payload/retryOf", p.RetryOf != "")
		w.drop("/payload/attributes", p.Attributes != "")
	case *agentevents.ToolReturned:
		w.agent()
		w.required(tool, PlainID, "/payload/toolId", p.ToolID, "unknown")
		w.required(mCallID, PlainID, "/payload/callId", p.CallID, w.eventID)
		w.returned(p, result)
	case *agentevents.AgentHandoff:
		made := ev.AgentID
		if made == "" {
			made = agentevents.CoreSystem
		}
		from := p.From.AgentID
		if from == "" {
			from = made
		}
		switch {
		case ev.AgentID == "" && !w.k.absent.has(mFrom):
			w.lose(dialect.Made, "/agentId", from)
		case ev.AgentID != from && ev.AgentID != "" && w.undeclared():
			w.anyAgent()
		case ev.AgentID != from && ev.AgentID != "":
			w.lose(dialect.Altered, "/agentId", "it is who hands over")
		case w.k.spelled.has(mAgentID) && ev.AgentID != "" && w.undeclared():
			w.anyAgent()
		}
		if rfc {
			if p.From.AgentID != "" || !w.k.absent.has(mFrom) {
				w.ref(mFrom, "/payload/from", p.From, made)
			}
			if p.To.AgentID != "" || !w.k.absent.has(mTo) {
				w.ref(mTo, "/payload/to", p.To, agentevents.CoreSystem)
			}
		} else {
			w.refID(mFromAgentID, "/payload/from", p.From, made)
			w.refID(mToAgentID, "/payload/to", p.To, agentevents.CoreSystem)
		}
		w.text(mReason, "/payload/reason", p.Reason)
		if w.undeclared() {
			w.json(mContext, "/payload/context", p.Context, false)
		} else {
			w.drop("/payload/context", p.Context != "")
		}
	case *agentevents.AgentDecided:
		w.agent()
		w.must(mDecision, "/payload/decision", p.Decision, "null", false)
		w.float(mConfidence, "/payload/confidence", p.Confidence, 1)
		if w.undeclared() {
			w.text(mReasoning, "/payload/reasoning", p.Reasoning)
		} else {
			w.drop("/payload/reasoning", p.Reasoning != "")
		}
	case *agentevents.OrchestratorDecided:
		w.agent()
		decision := p.Decision
		if !rfc && decision != "" {
			if why := decisionError(string(decision), w.p, true); why != "" {
				w.fail(RuleForm, "/payload/decision", why)
			} else if w.p == SchemaV1 {
				decision = w.decision1(decision)
			}
		}
		w.must(mDecision, "/payload/decision", decision, `{"kind":"terminate"}`, false)
		w.integer(mIteration, "/payload/iteration", p.Iteration, 1)
	case *agentevents.NodeStarted:
		w.node()
		if rfc {
			w.text(mTypeID, "/payload/typeId", p.TypeID)
		} else {
			w.required(mTypeID, TypeID, "/payload/typeId", p.TypeID, unknownTypeID)
		}
		w.integer(mAttempt, "/payload/attempt", p.Attempt, 0)
		w.nodeAgent(p.Agent)
	case *agentevents.NodeCompleted:
		w.node()
		w.json(mOutputs, "/payload/outputs", p.Outputs, true)
		w.millis(mDurationMs, "/payload/durationMs", p.Duration)
		w.nodeAgent(p.Agent)
	case *agentevents.NodeFailed:
		w.node()
		if p.Error.Message != "" || p.Error.Code != "" || p.Error.Details != "" || p.Error.Retryable.OK || !w.k.absent.has(mError) {
			w.errorInfo(&p.Error)
		}
		w.anyAgent()
	case *agentevents.NodeSkipped:
		w.node()
		w.text(mReason, "/payload/reason", p.Reason)
		w.anyAgent()
	case *agentevents.NodeSuspended:
		w.suspended(p)
	case *agentevents.CapBreached:
		w.content(mKind, "/payload/cap", p.Cap)
		limit, observed := p.Limit, p.Observed
		if !rfc {
			if !slices.Contains(capKinds, p.Cap) {
				w.fail(RuleEnum, "/payload/cap", strconv.Quote(p.Cap)+" is not a kind of the schema")
			}
			w.zero(&limit, "/payload/limit", mLimit)
			w.zero(&observed, "/payload/observed", mObserved)
		}
		w.float(mLimit, "/payload/limit", limit, math.MaxFloat64)
		w.float(mObserved, "/payload/observed", observed, math.MaxFloat64)
		w.anyAgent()
	case *agentevents.RunStarted:
		id := ev.WorkflowID
		if !rfc && id == "" {
			id = p.Name
			if id == "" {
				id = unknownWorkflow
			}
			if !w.k.absent.has(mWorkflowID) {
				w.lose(dialect.Made, "/workflowId", "")
			} else {
				id = ""
			}
		}
		if id != "" {
			w.name(mWorkflowID)
			w.dst = w.id(w.dst, WorkflowID, "/workflowId", id)
		} else if w.k.spelled.has(mWorkflowID) {
			w.text(mWorkflowID, "/workflowId", "")
		}
		w.json(mInputs, "/payload/inputs", p.Inputs, true)
		w.anyAgent()
		w.drop("/payload/name", p.Name != "")
		w.drop("/payload/agent", p.Agent.OK)
		w.drop("/payload/definition", p.Definition != "")
	case *agentevents.RunPaused:
		w.text(mReason, "/payload/reason", p.Reason)
		w.anyAgent()
	case *agentevents.RunResumed:
		w.text(mMessage, "/payload/message", p.Message)
		w.anyAgent()
	case *agentevents.RunCompleted:
		if w.p == SchemaV2 {
			w.must(mOutputs, "/payload/outputs", p.Outputs, "{}", true)
		} else {
			w.json(mOutputs, "/payload/outputs", p.Outputs, true)
		}
		w.anyAgent()
	case *agentevents.RunFailed:
		info := p.Error
		if !info.OK && !rfc && !w.k.absent.has(mError) {
			info = agentevents.Some(agentevents.ErrorInfo{Code: unknownError, Message: unknownError})
			w.lose(dialect.Made, "/payload/error", unknownError)
		}
		if info.OK {
			w.errorInfo(&info.V)
		}
		w.anyAgent()
	case *agentevents.RunCancelled:
		w.text(mReason, "/payload/reason", p.Reason)
		w.anyAgent()
	case *agentevents.ClarificationRequested:
		w.asked(p)
	case *agentevents.ClarificationResolved:
		w.answered(p)
	case *agentevents.ApprovalRequested:
		w.permit(p)
	case *agentevents.ApprovalGranted:
		w.permitted("granted", p.ApprovalID, p.ApprovedBy, "/payload/approvedBy", p.Feedback)
	case *agentevents.ApprovalRejected:
		w.permitted("rejected", p.ApprovalID, p.RejectedBy, "/payload/rejectedBy", p.Feedback)
	case *agentevents.MessageCreated:
		w.message(p)
	}
}

// decision1 returns a decision without the members that only SchemaV2 has.
func (w *writer) decision1(decision agentevents.JSON) agentevents.JSON {
	if !strings.Contains(string(decision), `"nextWorkerInputs"`) && !strings.Contains(string(decision), `"successCriteria"`) {
		return decision
	}
	out := []byte{'{'}
	jsonwire.Members(string(decision), func(name, raw string) {
		if name == "nextWorkerInputs" || name == "successCriteria" {
			w.drop("/payload/decision/"+name, true)
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonwire.AppendString(out, name), ':'), raw...)
	})
	return agentevents.JSON(append(out, '}'))
}

// zero makes up a required number.
func (w *writer) zero(v *agentevents.Opt[float64], pointer string, m int) {
	if !v.OK && !w.k.absent.has(m) {
		*v = agentevents.Some(0.0)
		w.lose(dialect.Made, pointer, "0")
	}
}

// returned writes what a tool returned.
func (w *writer) returned(p *agentevents.ToolReturned, result int) {
	if p.Error.OK {
		w.drop("/payload/result", p.Result != "")
		w.errorInfo(&p.Error.V)
	} else {
		w.json(result, "/payload/result", p.Result, false)
	}
	derived := agentevents.ToolOK
	if p.Error.OK {
		derived = agentevents.ToolError
	}
	status := p.Status
	switch {
	case status == "":
		status = derived
		w.lose(dialect.Made, "/payload/status", string(derived))
	case status == agentevents.ToolCancelled, status == agentevents.ToolInterrupted, w.p != RFC0002 && !slices.Contains(toolStatuses, string(status)):
		w.lose(dialect.Altered, "/payload/status", "error")
		status = agentevents.ToolError
	}
	if status != derived || w.k.spelled.has(mStatus) {
		w.name(mStatus)
		w.str("/payload/status", string(status))
	}
	if w.p != RFC0002 && refused(string(status)) {
		w.drop("/payload/durationMs", p.Duration.OK)
	} else {
		w.millis(mDurationMs, "/payload/durationMs", p.Duration)
	}
	w.drop("/payload/resultSummary", p.ResultSummary != "")
	w.drop("/payload/arguments", p.Arguments != "")
	w.drop("/payload/argumentsSummary", p.ArgumentsSummary != "")
}

// nodeAgent writes the agent of a node, and the one that acts.
func (w *writer) nodeAgent(ref agentevents.Opt[agentevents.AgentRef]) {
	if ref.OK && w.undeclared() {
		w.ref(mAgent, "/payload/agent", ref.V, "")
	} else {
		w.drop("/payload/agent", ref.OK)
	}
	w.anyAgent()
}

// suspended writes a node.suspended, whose details are members of the payload.
func (w *writer) suspended(p *agentevents.NodeSuspended) {
	w.node()
	details, err := jsonwire.Compact(string(p.Details))
	if p.Details == "" {
		details, err = "", nil
	}
	if err != nil {
		w.fail(agentevents.RuleFieldJSON, "/payload/details", err.Error())
		return
	}
	if details != "" && details[0] != '{' {
		w.lose(dialect.Altered, "/payload/details", `is no object, and stands as "details" in one`)
		details = `{"details":` + details + `}`
	}
	vs := &variants[vNodeSuspended]
	write := func(name, raw string) {
		if w.open {
			w.open = false
		} else {
			w.dst = append(w.dst, ',')
		}
		w.dst = jsonwire.AppendString(w.dst, name)
		w.dst = append(append(w.dst, ':'), raw...)
		w.extra += " " + name + " "
	}
	first := func(name string) bool { return name == "interruptId" || name == "kind" }
	id := false
	jsonwire.Members(details, func(name, raw string) {
		if !first(name) {
			return
		}
		if name == "interruptId" {
			id = true
			if w.p == SchemaV2 {
				if n := NormalizeID(w.p, InterruptID, jsonwire.Text(raw)); n != jsonwire.Text(raw) && n != "" {
					w.lose(dialect.Altered, "/payload/details", "the profile has another form for ids")
					raw = jsonwire.Quote(n)
				}
			}
		}
		kinds := interruptKinds1
		if w.p == SchemaV2 {
			kinds = interruptKinds2
		}
		if name == "kind" && w.p != RFC0002 && !slices.Contains(kinds, jsonwire.Text(raw)) {
			w.lose(dialect.Dropped, "/payload/details/kind", "not a word of the schema")
			return
		}
		write(name, raw)
	})
	if !id && w.p != RFC0002 {
		made := dialect.DerivedID(w.ev.RunID+"\x00"+w.ev.ID, int(w.ev.Sequence), 3)
		w.lose(dialect.Made, "/payload/details/interruptId", "")
		write("interruptId", jsonwire.Quote(NormalizeID(w.p, InterruptID, made)))
	}
	w.text(mReason, "/payload/reason", p.Reason)
	w.anyAgent()
	jsonwire.Members(details, func(name, raw string) {
		switch {
		case first(name):
		case name == "reason", name == "nodeId", name == "agentId":
			w.lose(dialect.Dropped, "/payload/details/"+name, "the payload has a member of that name")
		case w.p == SchemaV2 && !vs.declares(name) && !hatch(name) && !w.k.same(w.p):
			w.lose(dialect.Dropped, "/payload/details/"+jsonwire.Token(name), "the profile has no place for it")
		default:
			write(name, raw)
		}
	})
}

// questions writes a list of questions, with what was kept of them.
func (w *writer) questions(list []agentevents.Question, below string) {
	w.dst = append(w.dst, '[')
	for i, q := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		at := func(member string) string { return "/payload/questions/" + strconv.Itoa(i) + "/" + member }
		if w.careful && !jsonwire.ValidUTF8(q.ID) {
			w.fail(agentevents.RuleFieldUTF8, at("id"), "is not valid UTF-8")
		}
		w.dst = jsonwire.AppendString(append(w.dst, `{"id":`...), q.ID)
		w.dst = jsonwire.AppendString(append(w.dst, `,"question":`...), q.Question)
		if w.careful && !jsonwire.ValidUTF8(q.Question) {
			w.lose(dialect.Altered, at("question"), damagedText)
		}
		if q.Schema != "" {
			w.dst = append(w.dst, `,"schema":`...)
			w.raw(at("schema"), q.Schema, true)
		}
		if w.k.raw == "" {
			w.dst = append(w.dst, '}')
			continue
		}
		w.object(below+strconv.Itoa(i)+"/", false, func(n string) bool { return n == "id" || n == "question" || n == "schema" })
	}
	w.dst = append(w.dst, ']')
}

// asked writes a request for clarification.
func (w *writer) asked(p *agentevents.ClarificationRequested) {
	if w.v == vClarRequested {
		w.node()
		if !w.k.absent.has(mInterruptID) {
			w.text(mInterruptID, "/payload/interruptId", p.InterruptID)
		}
		if p.Questions != nil || !w.k.absent.has(mQuestions) {
			w.name(mQuestions)
			w.questions(p.Questions, "/payload/questions/")
		}
		w.anyAgent()
		return
	}
	w.interrupt(kindClarification, "/payload/interruptId", p.InterruptID)
	w.name(mData)
	w.dst = append(w.dst, `{"questions":`...)
	w.questions(p.Questions, "/payload/data/questions/")
	w.object("/payload/data/", false, func(n string) bool { return n == "questions" })
	w.drop("/agentId", w.ev.AgentID != "")
}

// interrupt writes kind and key of an interrupt.requested.
func (w *writer) interrupt(kind, pointer, id string) {
	w.name(mKind)
	w.str("/payload/kind", kind)
	w.required(mKey, InterruptID, pointer, id, w.eventID)
}

// answered writes the answer to a request for clarification.
func (w *writer) answered(p *agentevents.ClarificationResolved) {
	w.node()
	if w.v == vClarResolved {
		if !w.k.absent.has(mInterruptID) {
			w.text(mInterruptID, "/payload/interruptId", p.InterruptID)
		}
		w.must(mAnswers, "/payload/answers", p.Answers, "{}", true)
		w.text(mAnsweredBy, "/payload/answeredBy", p.AnsweredBy)
		w.anyAgent()
		return
	}
	w.required(mInterruptID, InterruptID, "/payload/interruptId", p.InterruptID, w.eventID)
	w.name(mKind)
	w.str("/payload/kind", kindClarification)
	w.json(mResumeValue, "/payload/answers", p.Answers, false)
	if w.undeclared() {
		w.text(mAnsweredBy, "/payload/answeredBy", p.AnsweredBy)
	} else {
		w.drop("/payload/answeredBy", p.AnsweredBy != "")
	}
	w.anyAgent()
}

// free writes a required member that the vocabulary has no field for: as it
// was kept, or made up.
func (w *writer) free(below, name, made string) {
	raw := w.k.get(below + name)
	if raw == "" {
		raw = made
		w.lose(dialect.Made, "/openwop/"+jsonwire.Token(below+name), "")
	}
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.open = false
	w.dst = jsonwire.AppendString(w.dst, name)
	w.dst = append(append(w.dst, ':'), raw...)
	w.extra += " " + name + " "
}

// permit writes a request for approval.
func (w *writer) permit(p *agentevents.ApprovalRequested) {
	artifact, what := p.CallID, toolCallType
	if artifact == "" {
		artifact, what = p.ApprovalID, actionType
	}
	if w.v == vApprovalRequested {
		w.node()
		if !w.k.absent.has(mInterruptID) {
			w.text(mInterruptID, "/payload/approvalId", p.ApprovalID)
		}
		if w.p == SchemaV1 || w.k.get("/payload/artifactId") != "" {
			w.free("/payload/", "artifactId", jsonwire.Quote(artifact))
		}
		if w.p == SchemaV1 || w.k.get("/payload/artifactType") != "" {
			w.free("/payload/", "artifactType", jsonwire.Quote(what))
		}
		w.text(mTitle, "/payload/action", p.Action)
		if w.p == SchemaV1 || w.k.get("/payload/actions") != "" {
			w.free("/payload/", "actions", `["accept","reject"]`)
		}
		w.text(mReason, "/payload/reason", p.Reason)
		w.text(mScope, "/payload/scope", p.Scope)
		w.text(mRisk, "/payload/risk", p.Risk)
		w.text(mCallID, "/payload/callId", p.CallID)
		w.text(mToolID, "/payload/toolId", p.ToolID)
		w.json(mArguments, "/payload/arguments", p.Arguments, false)
		w.millis(mTimeoutMs, "/payload/timeoutMs", p.Timeout)
		w.anyAgent()
		return
	}
	w.interrupt(kindApproval, "/payload/approvalId", p.ApprovalID)
	w.name(mData)
	w.dst = append(w.dst, '{')
	w.free("/payload/data/", "artifactId", jsonwire.Quote(artifact))
	w.free("/payload/data/", "artifactType", jsonwire.Quote(what))
	title := p.Action
	if title == "" {
		title = kindApproval
		w.lose(dialect.Made, "/payload/action", title)
	}
	w.dst = append(w.dst, `,"title":`...)
	w.str("/payload/action", title)
	w.free("/payload/data/", "actions", `["accept","reject"]`)
	w.object("/payload/data/", false, func(n string) bool {
		return n == "artifactId" || n == "artifactType" || n == "title" || n == "actions"
	})
	w.millis(mTimeoutMs, "/payload/timeoutMs", p.Timeout)
	w.drop("/payload/reason", p.Reason != "")
	w.drop("/payload/scope", p.Scope != "")
	w.drop("/payload/risk", p.Risk != "")
	w.drop("/payload/callId", p.CallID != "")
	w.drop("/payload/toolId", p.ToolID != "")
	w.drop("/payload/arguments", p.Arguments != "")
	w.drop("/agentId", w.ev.AgentID != "")
}

// permitted writes the answer to a request for approval.
func (w *writer) permitted(decision, id, by, byPointer, feedback string) {
	if w.v != vPermitResolved {
		w.required(mGateID, PlainID, "/payload/approvalId", id, w.eventID)
		if w.p == RFC0002 {
			w.text(mPrincipal, byPointer, by)
		} else {
			w.required(mPrincipal, PlainID, byPointer, by, unknownPerson)
		}
		if w.v == vApprovalRejected {
			w.text(mReason, "/payload/feedback", feedback)
		} else {
			w.drop("/payload/feedback", feedback != "")
		}
		w.drop("/agentId", w.ev.AgentID != "")
		return
	}
	w.node()
	w.required(mInterruptID, InterruptID, "/payload/approvalId", id, w.eventID)
	w.name(mKind)
	w.str("/payload/kind", kindApproval)
	if n := len([]rune(feedback)); w.p == SchemaV2 && n > 64 {
		w.lose(dialect.Altered, "/payload/feedback", "cut after 64 characters")
		feedback = string([]rune(feedback)[:64])
	}
	w.text(mReason, "/payload/feedback", feedback)
	w.name(mDecision)
	w.str("/payload/decision", decision)
	if w.undeclared() {
		w.text(mPrincipal, byPointer, by)
	} else {
		w.drop(byPointer, by != "")
	}
	w.anyAgent()
}

// message writes a message as what is written to a channel.
func (w *writer) message(p *agentevents.MessageCreated) {
	w.name(mChannel)
	w.str("", MessageChannel)
	w.name(mValue)
	m := &p.Message
	if m.Content == "" {
		w.said = *m
		m = &w.said
		m.Content = "null"
		w.lose(dialect.Made, "/payload/message/content", "null")
	}
	out, err := m.AppendJSON(w.dst)
	if err != nil {
		w.fail(agentevents.RuleFieldJSON, "/payload/message", err.Error())
		return
	}
	w.dst = out
	if r := w.k.get("/payload/reducer"); r != "" && w.p == RFC0002 {
		w.name(mReducer)
		w.dst = append(w.dst, r...)
	} else if w.p != RFC0002 || !w.k.absent.has(mReducer) {
		w.name(mReducer)
		w.str("", reducer(w.p))
	}
	if t := w.k.get("/payload/writtenAt"); t != "" {
		w.name(mWrittenAt)
		w.dst = append(w.dst, t...)
	} else if w.p != RFC0002 || !w.k.absent.has(mWrittenAt) {
		w.name(mWrittenAt)
		w.dst = w.times.Append(w.dst, w.ev.Time)
	}
	w.drop("/agentId", w.ev.AgentID != "")
}
