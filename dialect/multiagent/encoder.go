package multiagent

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
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
	losses dialect.Losses
	times  jsonwire.TimeCache
	open   openThings
	lines  int // the number of lines so far

	// The state of the current event.
	run     *run
	c       common
	visitor fieldVisitor
	fields  []any
	own     bool // the event has an extra member of this package
	kept    keptMembers
	used    []bool // entries of kept that are written or outdated
	place   []byte // JSON pointer of the current object
	pending []loss
	common  dialect.Common
	damaged bool // the event has a value that no line can carry
	texts   int  // offset after the payload, behind which the line has no texts of the event

	hiddenRefs [2]*string // the made-up agentIds of AgentRefs, which are not written

	ids   madeIDs
	types [numShapes]string // the text of type and of the payload's name, by shape
	check *reader           // reads origins
	was   []byte
}

// NewEncoder returns an encoder.
func NewEncoder() *Encoder {
	return &Encoder{common: dialect.Common{Of: commonLosses[:]}}
}

// A loss is counted once the line is written: the event may still be refused.
type loss struct {
	what            dialect.Change
	pointer, detail string
}

// The losses that events of every kind may have.
const (
	lostSequence = iota
	madeTrace
	madeSpan
	madeParent
	madeSession
	madeActor
	madeVersion
	numCommonLosses = iota
)

var commonLosses = [numCommonLosses]dialect.CommonLoss{
	lostSequence: {What: dialect.Dropped, Pointer: "/sequence", Detail: "readers count lines"},
	madeTrace:    {What: dialect.Made, Pointer: "/traceId", Detail: "derived from the run"},
	madeSpan:     {What: dialect.Made, Pointer: "/spanId", Detail: "derived from run, agent and call"},
	madeParent:   {What: dialect.Made, Pointer: "/parentSpanId", Detail: "the made-up span of the agent or call"},
	madeSession:  {What: dialect.Made, Pointer: "/sessionId", Detail: "the run's id"},
	madeActor:    {What: dialect.Made, Pointer: "/actor", Detail: madeActorName},
	madeVersion:  {What: dialect.Made, Pointer: "/" + string(Name) + "/schemaVersion", Detail: defaultVersion},
}

// madeActorName is the actor of events without actor and agent.
const madeActorName = "system"

// defaultVersion is the document's schemaVersion for events that were not read from
// a line with one.
const defaultVersion = "1.0"

// Append appends the line of an event. See [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	kind := ev.Kind()
	if kind == "" {
		_, err := ev.AppendJSON(nil) // the error names what is wrong with the payload
		return dst, err
	}
	sh := shapeOfKind(kind)
	if _, unknown := ev.Payload.(*agentevents.Unknown); unknown {
		sh = sUnknown
	} else if sh == sUnknown {
		return dst, e.losses.Refuse(&ev)
	}
	origin := ev.Origin()
	broken := e.refuse(&ev)
	if broken != nil && origin == "" {
		return dst, broken
	}
	mark := len(dst)
	run := e.ids.run(ev.RunID)
	dst = e.line(dst, &ev, sh, run)
	if e.damaged || bytes.IndexByte(dst[mark:e.texts], 0xef) >= 0 {
		// Damaged text becomes U+FFFD, which begins with this byte. The search
		// stops before the last members: they have no texts of the event, and the
		// processor would wait for the stores that have just written them.
		if _, err := ev.AppendJSON(nil); err != nil {
			return dst[:mark], err
		}
		for _, at := range dialect.Damaged(&ev, dst[mark:]) {
			e.lose(loss{dialect.Altered, at, dialect.DamagedText})
		}
	}
	if origin != "" && origin == string(dst[mark:]) {
		broken = nil
	} else if origin != "" {
		pending, common := e.pending, e.common.Set
		e.pending = nil
		// The losses must agree, too: a fact of the event may equal what is made up
		// for a line without it.
		if e.saysOrigin(origin, dst[mark:]) && common == e.common.Set && sameMade(pending, e.pending) {
			broken = nil // the line broke the rule when it was read
			dst = append(dst[:mark], origin...)
			pending = slices.DeleteFunc(pending, func(l loss) bool { // the line itself has these
				return l.what == dialect.Made || strings.HasPrefix(l.pointer, "/"+string(Name)+"/")
			})
			common = 0 // all of them are of made-up facts
		}
		e.pending, e.common.Set = pending, common
	}
	if broken != nil {
		return dst[:mark], broken
	}
	if ev.Sequence != run.count {
		e.common.Set |= 1 << lostSequence
	}
	run.count++
	e.lines++
	e.common.Count(&e.losses, &ev, false)
	if len(e.pending) > 0 {
		losses := e.losses.Of(&ev)
		for i := range e.pending {
			l := &e.pending[i]
			losses.Add(&ev, l.what, l.pointer, l.detail)
		}
	}
	e.open.note(&ev, len(dst)-mark > longLine)
	return append(dst, '\n'), nil
}

// End appends nothing: no event waits for another.
func (e *Encoder) End(dst []byte) ([]byte, error) { return dst, nil }

// Losses returns the losses so far. See [dialect.Encoder].
func (e *Encoder) Losses() []dialect.Loss { return e.losses.List() }

// lose notes a loss. It is not inlined: inlined, this rare code stands between the
// code for all events, and the processor decodes it every time. It sets the fields in
// place: a composite literal is built on the stack and then copied, and the
// processor waits for its own stores.
//
//go:noinline
func (e *Encoder) lose(l loss) {
	n := len(e.pending)
	e.pending = slices.Grow(e.pending, 1)[:n+1]
	to := &e.pending[n]
	to.what, to.pointer, to.detail = l.what, l.pointer, l.detail
}

// drop notes that a fact is dropped, if it is present.
func (e *Encoder) drop(pointer string, present bool) {
	if present {
		e.lose(loss{what: dialect.Dropped, pointer: pointer, detail: ""})
	}
}

// refuse returns the error of an event that breaks a rule of the document.
func (e *Encoder) refuse(ev *agentevents.Event) error {
	rule, pointer, detail := contextRule(ev)
	if ev.RunID == "" {
		rule, pointer, detail = RuleEnvelope, "/runId", "is required and must not be empty"
	}
	if rule == "" {
		return nil
	}
	return &agentevents.RuleError{
		Rule: rule, Kind: ev.Kind(), RunID: ev.RunID, AgentID: ev.AgentID, EventID: ev.ID, Sequence: ev.Sequence, Pointer: pointer, Detail: detail,
	}
}

// sameMade reports whether two events have the same losses, apart from dropped
// facts.
func sameMade(a, b []loss) bool {
	kept := func(list []loss) []loss {
		return slices.DeleteFunc(slices.Clone(list), func(l loss) bool { return l.what == dialect.Dropped })
	}
	return slices.Equal(kept(a), kept(b))
}

// saysOrigin reports whether origin, the line that an event was read from, still
// says what the event says. It reads origin as the next line of the log and compares
// the result with text, the line that the event makes. For a line without an id they
// differ where readers derive another id from it.
func (e *Encoder) saysOrigin(origin string, text []byte) bool {
	if e.check == nil {
		e.check = new(reader)
	}
	var was agentevents.Event
	if e.check.read(&was, origin, e.lines+1, &e.open) != nil {
		return false
	}
	sh := shapeOfKind(was.Kind())
	if _, unknown := was.Payload.(*agentevents.Unknown); unknown {
		sh = sUnknown
	}
	e.was = e.line(e.was[:0], &was, sh, e.ids.run(was.RunID))
	return string(e.was) == string(text)
}

// line appends the event's line without a newline, and notes its losses.
func (e *Encoder) line(dst []byte, ev *agentevents.Event, sh int, run *run) []byte {
	e.run = run
	e.pending, e.common.Set, e.damaged, e.hiddenRefs = e.pending[:0], 0, false, [2]*string{}
	e.extras(ev)
	agentInPayload := e.actor(ev, sh)

	dst = append(dst, `{"id":`...)
	if ev.ID == "" {
		e.lose(loss{what: dialect.Made, pointer: "/id", detail: "derived from run and sequence"})
		dst = jsonwire.AppendString(dst, dialect.DerivedID(ev.RunID, int(uint32(ev.Sequence)), 0))
	} else {
		dst = jsonwire.AppendString(dst, ev.ID)
	}
	if e.own || len(ev.TraceID)|len(ev.SpanID)|len(ev.ParentSpanID)|len(ev.TaskID)|len(ev.Actor) != 0 {
		dst = e.traceMembers(dst, ev)
		dst = e.contextMembers(dst, ev)
	} else {
		dst = e.ownerMembers(dst, ev)
	}
	if sh == sUnknown {
		dst = e.unknown(dst, ev)
	} else {
		if e.types[sh] == "" {
			e.types[sh] = `"` + shapes[sh].typ + `","payload":`
		}
		dst = append(dst, e.types[sh]...)
		dst = e.payload(dst, ev, sh, agentInPayload)
	}
	e.texts = len(dst)
	dst = append(dst, `,"timestamp":`...)
	if ev.Time.IsZero() {
		dst = e.noTime(dst)
	} else {
		if y := ev.Time.Unix(); y < -62167219200 || y > 253402300799 {
			e.damaged = true
		}
		dst = e.times.Append(dst, ev.Time)
	}
	if raw := e.keptRaw("schemaVersion"); raw != "" {
		dst = append(append(dst, `,"schemaVersion":`...), raw...)
	} else {
		e.common.Set |= 1 << madeVersion
		dst = append(dst, `,"schemaVersion":"`+defaultVersion+`"`...)
	}
	if ev.SchemaVersion != agentevents.SchemaVersion {
		what := dialect.Dropped
		if ev.SchemaVersion == "" {
			what = dialect.Made
		}
		e.lose(loss{what: what, pointer: "/schemaVersion", detail: "readers set the native version"})
	}
	if e.own {
		e.place = e.place[:0]
		dst = e.rest(dst)
		for i, m := range e.kept.members {
			e.drop("/"+string(Name)+"/"+jsonwire.Token(m.name), !e.used[i])
		}
	}
	return append(dst, '}')
}

// noTime appends the timestamp of an event without a time.
func (e *Encoder) noTime(dst []byte) []byte {
	if raw := e.keptRaw("timestamp"); raw != "" {
		return append(dst, raw...)
	}
	e.lose(loss{what: dialect.Made, pointer: "/timestamp", detail: "the first moment of the year 1"})
	return e.times.Append(dst, time.Time{})
}

// extras parses the event's extra member of this package, and notes that other extra
// members are dropped.
func (e *Encoder) extras(ev *agentevents.Event) {
	e.own = false
	for name, value := range ev.Extras() {
		if name != string(Name) {
			e.drop("/"+jsonwire.Token(name), true)
			continue
		}
		if value[0] != '{' {
			e.lose(loss{what: dialect.Dropped, pointer: "/" + string(Name), detail: "it is not an object"})
			continue
		}
		e.own = true
		if string(value) != e.kept.text {
			e.kept.parse(string(value))
			e.used = slices.Grow(e.used[:0], len(e.kept.members))[:len(e.kept.members)]
		}
		clear(e.used)
	}
	if ev.PayloadExtra() {
		e.lose(loss{what: dialect.Dropped, pointer: "/payload", detail: "members that no field has"})
	}
}

// actor notes the losses of agent and actor, and reports whether the payload must
// name the agent.
func (e *Encoder) actor(ev *agentevents.Event, sh int) (agentInPayload bool) {
	switch {
	case ev.AgentID == "":
		if ev.Actor != "" && !nonAgent(ev.Actor) {
			e.lose(loss{what: dialect.Dropped, pointer: "/actor", detail: "read as the agent"})
			e.lose(loss{what: dialect.Made, pointer: "/agentId", detail: "readers take the actor for the agent"})
		}
	case sh == sUnknown:
		e.drop("/agentId", ev.Actor != "" && ev.Actor != ev.AgentID || nonAgent(ev.AgentID))
		if ev.Actor == "" && nonAgent(ev.AgentID) {
			e.lose(loss{what: dialect.Made, pointer: "/actor", detail: "the agent's id"})
		} else if ev.Actor != "" && !nonAgent(ev.Actor) {
			e.drop("/actor", true)
			if ev.Actor != ev.AgentID {
				e.lose(loss{what: dialect.Altered, pointer: "/agentId", detail: "readers take the actor for the agent"})
			}
		}
	case sh == sCompleted:
		agentInPayload = true
		e.drop("/actor", ev.Actor == ev.AgentID)
	case ev.Actor != "":
		agentInPayload = true
	case nonAgent(ev.AgentID):
		agentInPayload = true
		e.lose(loss{what: dialect.Made, pointer: "/actor", detail: "the agent's id"})
	}
	return agentInPayload
}

// ownerMembers appends the members from traceId to the name of type, for an event
// without ids of its trace, its task and its actor. They mostly are those of the
// agent's event before, so they are cached.
func (e *Encoder) ownerMembers(dst []byte, ev *agentevents.Event) []byte {
	call, parent := "", ""
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		call = p.CallID
	case *agentevents.ToolReturned:
		call = p.CallID
	case *agentevents.AgentStarted:
		parent = e.ids.span(e.run, ev.ParentAgentID, ev.ParentCallID)
		e.c.parentSpanID = parent
	}
	o := e.ids.owner(e.run, ev.AgentID)
	e.common.Set |= 1<<madeTrace | 1<<madeSpan
	switch {
	case call != "":
		e.common.Set |= 1 << madeParent
		dst = o.call(append(dst, o.members[:spanAt]...), call)
		dst = append(dst, o.members[spanEnd:]...)
	case parent != "":
		e.common.Set |= 1 << madeParent
		dst = append(dst, o.members[:spanEnd-1]...)
		dst = append(append(append(dst, parentHead...), parent...), '"')
	default:
		dst = append(dst, o.members[:spanEnd]...)
	}
	if len(o.context) == 0 || string(o.session) != ev.SessionID {
		mark := len(dst)
		dst = e.contextMembers(dst, ev)
		o.context, o.session = append(o.context[:0], dst[mark:]...), append(o.session[:0], ev.SessionID...)
		return dst
	}
	if ev.SessionID == "" {
		e.common.Set |= 1 << madeSession
	}
	if ev.AgentID == "" {
		e.common.Set |= 1 << madeActor
	}
	return append(dst, o.context...)
}

// contextMembers appends the members from sessionId to the name of type.
func (e *Encoder) contextMembers(dst []byte, ev *agentevents.Event) []byte {
	if dst = append(dst, `,"sessionId":`...); ev.SessionID != "" {
		dst = jsonwire.AppendString(dst, ev.SessionID)
	} else if raw := e.keptRaw("sessionId"); raw != "" {
		dst = append(dst, raw...)
	} else {
		e.common.Set |= 1 << madeSession
		dst = jsonwire.AppendString(dst, ev.RunID)
	}
	dst = jsonwire.AppendString(append(dst, `,"runId":`...), ev.RunID)
	if ev.TaskID != "" {
		dst = jsonwire.AppendString(append(dst, `,"taskId":`...), ev.TaskID)
	} else if raw := e.keptRaw("taskId"); raw != "" {
		dst = append(append(dst, `,"taskId":`...), raw...)
	}
	dst = append(dst, `,"actor":`...)
	switch {
	case ev.Actor != "":
		dst = jsonwire.AppendString(dst, ev.Actor)
	case ev.AgentID != "":
		dst = jsonwire.AppendString(dst, ev.AgentID)
	default:
		if raw := e.keptRaw("actor"); raw != "" {
			dst = append(dst, raw...)
			break
		}
		e.common.Set |= 1 << madeActor
		dst = append(dst, `"`+madeActorName+`"`...)
	}
	return append(dst, `,"type":`...)
}

// traceMembers appends traceId, spanId and parentSpanId.
func (e *Encoder) traceMembers(dst []byte, ev *agentevents.Event) []byte {
	dst = append(dst, `,"traceId":`...)
	if ev.TraceID != "" {
		dst = jsonwire.AppendString(dst, ev.TraceID)
	} else if raw := e.keptRaw("traceId"); raw != "" {
		dst = append(dst, raw...)
	} else {
		e.common.Set |= 1 << madeTrace
		dst = append(append(append(dst, '"'), e.ids.owner(e.run, ev.AgentID).trace()...), '"')
	}
	e.c.parentSpanID = ev.ParentSpanID
	dst = append(dst, `,"spanId":`...)
	if ev.SpanID != "" {
		dst = jsonwire.AppendString(dst, ev.SpanID)
	} else if raw := e.keptRaw("spanId"); raw != "" {
		dst = append(dst, raw...)
	} else {
		e.common.Set |= 1 << madeSpan
		call, parent := "", ""
		hasParent := ev.ParentSpanID == ""
		switch p := ev.Payload.(type) {
		case *agentevents.ToolCalled:
			call = p.CallID
		case *agentevents.ToolReturned:
			call = p.CallID
		}
		if dst = append(dst, '"'); call != "" {
			dst = e.ids.owner(e.run, ev.AgentID).call(dst, call)
		} else {
			dst = append(dst, e.ids.owner(e.run, ev.AgentID).span()...)
		}
		dst = append(dst, '"')
		if _, started := ev.Payload.(*agentevents.AgentStarted); started && hasParent {
			parent = e.ids.span(e.run, ev.ParentAgentID, ev.ParentCallID)
		} else if call != "" && hasParent {
			parent = e.ids.span(e.run, ev.AgentID, "")
		}
		if parent != "" {
			e.common.Set |= 1 << madeParent
			e.c.parentSpanID = parent
		}
	}
	if e.c.parentSpanID != "" && !e.madeUp(envelopeParent) {
		dst = jsonwire.AppendString(append(dst, `,"parentSpanId":`...), e.c.parentSpanID)
	} else if raw := e.keptRaw("parentSpanId"); raw != "" { // the line had an empty one
		dst = append(append(dst, `,"parentSpanId":`...), raw...)
	}
	return dst
}
