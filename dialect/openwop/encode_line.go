package openwop

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A writer writes one line.
type writer struct {
	e       *Encoder
	ev      *agentevents.Event
	p       Profile
	quiet   bool // write only the line, whatever came before
	careful bool // look for damaged characters
	split   bool // the line before has the call of this return
	shift   uint64
	k       kept
	v       int
	dst     []byte
	eventID string   // of the line, before normalising
	nodeID  string   // of the line, before normalising
	open    bool     // the object has no member yet
	has     set      // members of the payload that were written
	extra   []string // the names of other written members
	at      int      // where the payload begins in dst
	lost    []loss
	dropped uint16 // bits of envelopeDrops
	err     error
	times   jsonwire.TimeCache
	msg     agentevents.ConversationMessage // with normalised ids, if they differ

	otherRaw string // the payload of an unknown type
}

type loss struct {
	what            dialect.Change
	pointer, detail string
}

func (w *writer) start(e *Encoder, ev *agentevents.Event, quiet bool) {
	w.e, w.ev, w.p, w.quiet, w.careful, w.split = e, ev, e.o.Profile, quiet, false, false
	w.v, w.open, w.has, w.extra, w.err, w.lost, w.dropped, w.shift = vUnknown, false, 0, w.extra[:0], nil, w.lost[:0], 0, 0
	if len(e.shift) > 0 && !quiet {
		w.shift = e.shift[ev.RunID]
	}
	w.k.read(ev)
}

func (w *writer) lose(what dialect.Change, pointer, detail string) {
	// The fields are set in place: a composite literal is built on the stack and
	// copied, and the copy waits for the stores.
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
		w.err = &agentevents.RuleError{
			Rule: rule, Kind: ev.Kind(), RunID: ev.RunID, AgentID: ev.AgentID, EventID: ev.ID, Sequence: ev.Sequence, Pointer: pointer, Detail: detail,
		}
	}
}

// line appends the line without its newline.
func (w *writer) line(dst []byte) ([]byte, error) {
	mark := len(dst)
	out, err := w.write(dst)
	// Damaged characters become U+FFFD, which begins with this byte. Few lines have
	// it, so only those are written again with a check of every text.
	if err == nil && bytes.IndexByte(out[mark:], 0xef) >= 0 {
		w.lost, w.has, w.extra = w.lost[:0], 0, w.extra[:0]
		clear(w.k.done)
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
		if typ = w.otherType(); typ == "" {
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
		runID = unknownRun
		w.lose(dialect.Made, "/runId", runID)
	}
	dst = w.id(append(dst, `,"runId":`...), RunID, "/runId", runID)
	w.nodeID = ev.NodeID
	if w.nodeID == "" && variants[w.v].required(w.p).has(mNodeID) && !w.absent(mNodeID) {
		w.nodeID = unknownNode
		w.lose(dialect.Made, "/nodeId", unknownNode)
	}
	switch {
	case w.nodeID != "" && !(w.k.envAbsent.has(eNodeID) && w.payloadHasNode()):
		dst = w.id(append(dst, `,"nodeId":`...), NodeID, "/nodeId", w.nodeID)
	case ev.NodeID == "" && w.k.envSpelled.has(eNodeID) && w.p == RFC0002:
		dst = append(dst, `,"nodeId":""`...)
	}
	dst = append(dst, `,"type":`...)
	if w.v == vUnknown {
		dst = jsonwire.AppendString(dst, typ)
		if w.careful && !jsonwire.ValidUTF8(typ) {
			w.lose(dialect.Altered, "/type", dialect.DamagedText)
		}
	} else {
		dst = append(append(append(dst, '"'), typ...), '"') // from the tables, nothing to escape
	}
	if w.v != vUnknown || !w.k.envAbsent.has(ePayload) || !w.lenient() || ev.Payload.(*agentevents.Unknown).Raw != "" {
		dst = append(dst, `,"payload":`...)
		w.dst = dst
		w.payload()
		dst = w.dst
		w.dst = nil
	}
	timed := !ev.Time.IsZero() || !w.k.envAbsent.has(eTimestamp)
	if !timed && !w.lenient() {
		w.lose(dialect.Made, "/timestamp", "")
		timed = true
	}
	if timed {
		dst = w.times.Append(append(dst, `,"timestamp":`...), ev.Time)
	}
	dst = jsonwire.AppendUint(append(dst, `,"sequence":`...), ev.Sequence+w.shift)
	if w.shift > 0 {
		w.lose(dialect.Altered, "/sequence", "raised: a call that is one event is two lines")
	}
	dst = w.versions(dst)
	dst = w.causation(dst)
	dst = w.envelopeExtra(dst)
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

// otherType returns the type of a line that the vocabulary does not have, and ""
// if the profile has no line for the event.
func (w *writer) otherType() string {
	u, ok := w.ev.Payload.(*agentevents.Unknown)
	if !ok {
		return ""
	}
	typ := strings.TrimPrefix(string(u.Type), unknownPrefix)
	if name := renamed(w.p, typ); name != typ {
		w.lose(dialect.Altered, "/type", name)
		typ = name
	}
	if !legalType(w.p, typ) || !w.other(u, typ) {
		return ""
	}
	return typ
}

// dropsExtra reports whether the payload has extra members outside the values
// that are written whole.
func (w *writer) dropsExtra() bool {
	ev := agentevents.Event{Payload: w.ev.Payload}
	switch p := ev.Payload.(type) {
	case *agentevents.AgentHandoff:
		c := *p
		c.From, c.To = agentevents.AgentRef{}, agentevents.AgentRef{} // refID lists the extra members of those that become ids
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

// dropEnvelope sets the bits of those that the event has.
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

// id appends an id in the form that the profile requires.
func (w *writer) id(dst []byte, form IDForm, pointer, id string) []byte {
	if w.p == RFC0002 && !w.careful {
		return jsonwire.AppendString(dst, id)
	}
	if w.p != RFC0002 {
		if form == AgentID {
			form = w.agentForm(id)
		}
		if n := NormalizeID(w.p, form, id); n != id {
			w.lose(dialect.Altered, pointer, "the profile has another form for ids")
			id = n
		}
	}
	return w.plainID(dst, pointer, id)
}

// agentForm returns the form of an agent's id. The schemas' forms differ by
// place, but an agent has one id everywhere: that of a handoff, which is legal in
// every place. Lines of SchemaV2 keep a shorter id where it is legal.
func (w *writer) agentForm(id string) IDForm {
	if len(id) < 3 && w.p == SchemaV2 && w.ofV2() {
		return AgentID
	}
	return HandoffID
}

// ofV2 reports whether the event seems to come from a line of SchemaV2: see
// Decoder.isV2.
func (w *writer) ofV2() bool {
	version := w.k.get("schemaVersion")
	return version != "" && version != "0" && ValidID(SchemaV2, RunID, w.ev.RunID)
}

// agentID normalises an agent's id in a place where the schemas require no form,
// so that it is the same as elsewhere. It leaves lines alone that break no rule.
// Nothing distinguishes the lines of SchemaV1, so there it changes only the
// acting agent's id.
func (w *writer) agentID(pointer, id string) string {
	if w.p == RFC0002 || id == "" || w.p == SchemaV1 && id != w.ev.AgentID || w.p == SchemaV2 && w.ofV2() {
		return id
	}
	n := NormalizeID(w.p, HandoffID, id)
	if n != id {
		w.lose(dialect.Altered, pointer, "normalised like the agent's id elsewhere")
	}
	return n
}

// plainID appends an id unchanged.
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
	if w.p != RFC0002 && schema != "" && (!whole(schema) || w.p == SchemaV2 && !positive(schema)) {
		w.lose(dialect.Dropped, "/openwop/schemaVersion", "is not a version of the profile")
		schema = ""
	}
	if w.p == SchemaV2 && schema == "" && (w.quiet || !w.k.envAbsent.has(eSchemaVersion)) {
		schema = madeVersion.detail
		w.lose(madeVersion.what, madeVersion.pointer, madeVersion.detail)
	}
	if schema != "" {
		dst = append(append(dst, `,"schemaVersion":`...), schema...)
	}
	if engine != "" {
		if w.p == SchemaV1 && engine[0] != '"' || w.p == SchemaV2 && !whole(engine) {
			w.lose(dialect.Dropped, "/openwop/engineVersion", "the profile has another type for it")
			return dst
		}
		dst = append(append(dst, `,"engineVersion":`...), engine...)
	}
	return dst
}

// positive reports whether a JSON number is above 0.
func positive(raw string) bool {
	n, err := strconv.ParseFloat(raw, 64)
	return err == nil && n > 0
}

// causation appends the causationId. A tool's return names its call.
func (w *writer) causation(dst []byte) []byte {
	id := w.ev.CausationID
	if p, ok := w.ev.Payload.(*agentevents.ToolReturned); ok && !w.quiet && !w.split {
		id = w.cause(p, id)
	}
	if id == "" {
		if w.k.envSpelled.has(eCausationID) && w.p == RFC0002 {
			dst = append(dst, `,"causationId":""`...)
		}
		return dst
	}
	return w.id(append(dst, `,"causationId":`...), EventID, "/causationId", id)
}

// cause returns the event of the call that p returns for, if the log has it, else
// id.
func (w *writer) cause(p *agentevents.ToolReturned, id string) string {
	i := w.e.call(w.ev, p.CallID)
	if i < 0 || w.e.calls[i].eventID == id || id == "" && refused(string(p.Status)) {
		return id
	}
	what := dialect.Altered
	if id == "" {
		what = dialect.Made
	}
	w.lose(what, "/causationId", "the event of the call")
	return w.e.calls[i].eventID
}

// envelopeExtra appends the extra members of the envelope.
func (w *writer) envelopeExtra(dst []byte) []byte {
	for key, raw := range jsonwire.Members(w.k.raw) {
		name, ok := memberOf(key)
		if !ok || name == "schemaVersion" || name == "engineVersion" {
			continue
		}
		if numberOf(envelopeNames[:], name) != 0 || w.p == SchemaV2 && !w.k.same(w.p) {
			w.lose(dialect.Dropped, "/openwop/"+jsonwire.Token(key), "the profile has no place for it")
			continue
		}
		dst = jsonwire.AppendString(append(dst, ','), name)
		dst = append(append(dst, ':'), raw...)
	}
	return dst
}

// variant returns the variant to write the event as.
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
		legal := aliases(w.v, w.ev)
		if i := slices.Index(legal, w.k.typ); i == 0 || i > 0 && w.p != SchemaV1 { // SchemaV1 has another payload for the other types
			return legal[i]
		} else if i > 0 {
			w.lose(dialect.Altered, "/openwop/"+jsonwire.Token(keptType), legal[0])
		}
	}
	return typeName(w.v, w.p)
}

// aliases are the types that may have the payload of an interrupt.
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

// undeclared reports whether the payload may have members that the schema does
// not declare.
func (w *writer) undeclared() bool {
	vs := &variants[w.v]
	return w.p != SchemaV2 && !vs.closed1 || vs.open2
}
