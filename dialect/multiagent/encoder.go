package multiagent

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// An Encoder writes events as lines of the document, one each; it implements
// [dialect.Encoder]. It is not for concurrent use.
//
// It refuses, with an [*agentevents.InvariantError] of one of this package's
// rules, events of a workflow that lack the workflow's id or their phase, and
// events without a run; but a line that was read by a reader with Verbatim set
// is written as it was, as long as the event is not changed. Its state is a bounded list of open calls and
// approvals, a counter for each run, and the losses.
type Encoder struct {
	losses dialect.Losses
	times  jsonwire.TimeCache
	open   openThings
	lines  int // so far, as readers number them

	// Of the event that is written.
	run     *run
	c       common
	visitor fieldVisitor
	fields  []any
	own     bool // it was read by this package
	kept    keptMembers
	used    []bool // those of kept that are written or outdated
	place   []byte // JSON pointer of the object that is written
	pending []loss
	common  dialect.Common
	damaged bool // it holds what no line can carry
	texts   int  // where the payload ends, and with it what texts of the event say

	hiddenRefs [2]*string // the agentId of AgentRefs, where the line had none

	ids   madeIDs
	types [numShapes]string // and the payload's name, as they stand on a line
	check *reader           // reads origins
	was   []byte
}

// NewEncoder returns an encoder.
func NewEncoder() *Encoder {
	return &Encoder{common: dialect.Common{Of: commonLosses[:]}}
}

// A loss waits until it is clear that the line is written.
type loss struct {
	what            dialect.Change
	pointer, detail string
}

// Losses that events of every kind may have.
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
	madeParent:   {What: dialect.Made, Pointer: "/parentSpanId", Detail: "the span of the agent or call, which was made up"},
	madeSession:  {What: dialect.Made, Pointer: "/sessionId", Detail: "the run"},
	madeActor:    {What: dialect.Made, Pointer: "/actor", Detail: madeActorName},
	madeVersion:  {What: dialect.Made, Pointer: "/" + string(Name) + "/schemaVersion", Detail: defaultVersion},
}

// madeActorName is the actor on lines of events that nobody is said to have done.
const madeActorName = "system"

// defaultVersion is the document's schemaVersion on lines of events that have
// none of it.
const defaultVersion = "1.0"

// Append appends the line of an event. See [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	kind := ev.Kind()
	if kind == "" {
		_, err := ev.AppendJSON(nil) // says what is wrong with the payload
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
		// Damaged text comes out as U+FFFD, which begins with this byte. The
		// members after the payload have none, and a processor would wait for
		// them: they were just written.
		if _, err := ev.AppendJSON(nil); err != nil {
			return dst[:mark], err
		}
	}
	if origin != "" && origin == string(dst[mark:]) {
		broken = nil
	} else if origin != "" {
		pending, common := e.pending, e.common.Set
		e.pending = nil
		// A fact that equals what is made up without it is still one.
		if e.saysOrigin(origin, dst[mark:]) && common == e.common.Set && sameMade(pending, e.pending) {
			broken = nil // it came like that
			dst = append(dst[:mark], origin...)
			pending = slices.DeleteFunc(pending, func(l loss) bool { // what the line has as it was
				return l.what == dialect.Made || strings.HasPrefix(l.pointer, "/"+string(Name)+"/")
			})
			common = 0 // all of them are made up
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

// Losses returns what the lines so far do not say. See [dialect.Encoder].
func (e *Encoder) Losses() []dialect.Loss { return e.losses.List() }

// It is not inlined: code that is for few events would stand between that for
// all, and the processor would have to decode that again and again.
//
//go:noinline
func (e *Encoder) lose(l loss) {
	n := len(e.pending)
	e.pending = slices.Grow(e.pending, 1)[:n+1]
	to := &e.pending[n]
	to.what, to.pointer, to.detail = l.what, l.pointer, l.detail
}

func (e *Encoder) drop(pointer string, present bool) {
	if present {
		e.lose(loss{what: dialect.Dropped, pointer: pointer, detail: ""})
	}
}

// refuse returns the error of an event that the document does not allow.
func (e *Encoder) refuse(ev *agentevents.Event) error {
	rule, pointer, detail := contextRule(ev)
	if ev.RunID == "" {
		rule, pointer, detail = RuleEnvelope, "/runId", "is required"
	}
	if rule == "" {
		return nil
	}
	return &agentevents.InvariantError{
		Rule: rule, Kind: ev.Kind(), RunID: ev.RunID, AgentID: ev.AgentID, EventID: ev.ID, Sequence: ev.Sequence, Pointer: pointer, Detail: detail,
	}
}

// sameMade reports whether two events lose the same, but for what is dropped.
func sameMade(a, b []loss) bool {
	kept := func(list []loss) []loss {
		return slices.DeleteFunc(slices.Clone(list), func(l loss) bool { return l.what == dialect.Dropped })
	}
	return slices.Equal(kept(a), kept(b))
}

// saysOrigin reports whether the line an event was read from, as the next one of
// the log, still says what the event says, whose own line is text. A line without
// an id stops doing so where readers would derive another id from it.
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

// line appends the event's line without a newline, and collects what it does
// not say.
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
		e.lose(loss{what: what, pointer: "/schemaVersion", detail: "readers give the native version"})
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

// extras finds what the event kept of a line, and lists what others kept.
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

// actor notes what the line will not say of agent and actor, and reports
// whether the payload has to name the agent.
func (e *Encoder) actor(ev *agentevents.Event, sh int) (agentInPayload bool) {
	switch {
	case ev.AgentID == "":
		if ev.Actor != "" && !nonAgent(ev.Actor) {
			e.lose(loss{what: dialect.Dropped, pointer: "/actor", detail: "read as the agent"})
			e.lose(loss{what: dialect.Made, pointer: "/agentId", detail: "the actor is read as the agent"})
		}
	case sh == sUnknown:
		e.drop("/agentId", ev.Actor != "" && ev.Actor != ev.AgentID || nonAgent(ev.AgentID))
		if ev.Actor == "" && nonAgent(ev.AgentID) {
			e.lose(loss{what: dialect.Made, pointer: "/actor", detail: "the agent"})
		} else if ev.Actor != "" && !nonAgent(ev.Actor) {
			e.drop("/actor", true)
			if ev.Actor != ev.AgentID {
				e.lose(loss{what: dialect.Altered, pointer: "/agentId", detail: "the actor is read as the agent"})
			}
		}
	case sh == sCompleted:
		agentInPayload = true
		e.drop("/actor", ev.Actor == ev.AgentID)
	case ev.Actor != "":
		agentInPayload = true
	case nonAgent(ev.AgentID):
		agentInPayload = true
		e.lose(loss{what: dialect.Made, pointer: "/actor", detail: "the agent"})
	}
	return agentInPayload
}

// ownerMembers appends the members from traceId to the name of type, of an event
// that says nothing of its trace, task and actor: they are mostly those of the
// event before by the same agent.
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
	} else if raw := e.keptRaw("parentSpanId"); raw != "" { // it is there and says nothing
		dst = append(append(dst, `,"parentSpanId":`...), raw...)
	}
	return dst
}

// unknown appends the type and the payload of an event whose type the document
// does not have.
func (e *Encoder) unknown(dst []byte, ev *agentevents.Event) []byte {
	u := ev.Payload.(*agentevents.Unknown)
	typ, prefixed := strings.CutPrefix(string(u.Type), unknownPrefix)
	if prefixed && dialect.UnknownKind(Name, typ) != u.Type {
		typ = string(u.Type) // the prefix is its own
		e.lose(loss{what: dialect.Altered, pointer: "/type", detail: "gets another prefix"})
	} else if shapeOf(typ) != sUnknown {
		e.lose(loss{what: dialect.Altered, pointer: "", detail: "read as what the document calls so"})
	}
	dst = jsonwire.AppendString(dst, typ)
	if u.Raw != "" {
		raw, err := jsonwire.Compact(string(u.Raw))
		if err != nil {
			e.damaged = true
		}
		dst = append(append(dst, `,"payload":`...), raw...)
	} else if !e.own {
		e.lose(loss{what: dialect.Made, pointer: "/payload", detail: "an empty object"})
		dst = append(dst, `,"payload":{}`...)
	}
	e.drop("/workflowId", ev.WorkflowID != "")
	e.drop("/phase", ev.Phase != "")
	e.drop("/nodeId", ev.NodeID != "")
	e.drop("/nodeRunId", ev.NodeRunID != "")
	e.drop("/parentAgentId", ev.ParentAgentID != "")
	e.drop("/parentCallId", ev.ParentCallID != "")
	e.drop("/causationId", ev.CausationID != "")
	e.drop("/step", ev.Step.OK)
	e.drop("/marks", ev.Marks != 0)
	return dst
}

// payload appends the payload of an event of a type of the document.
func (e *Encoder) payload(dst []byte, ev *agentevents.Event, shape int, agentInPayload bool) []byte {
	sh := &shapes[shape]
	c := &e.c
	c.agentID = ""
	if agentInPayload {
		c.agentID = ev.AgentID
	}
	if some := len(ev.WorkflowID)|len(ev.Phase)|len(ev.NodeID)|len(ev.NodeRunID)|len(ev.ParentAgentID)|len(ev.ParentCallID) != 0; some || c.some {
		c.workflowID, c.phase, c.nodeID, c.nodeRunID = ev.WorkflowID, ev.Phase, ev.NodeID, ev.NodeRunID
		c.parentAgentID, c.parentCallID, c.some = ev.ParentAgentID, ev.ParentCallID, some
	}
	c.causationID, c.step, c.marks, c.tokens = ev.CausationID, ev.Step, ev.Marks, agentevents.Opt[int64]{}
	if c.phase != "" && c.workflowID == "" && sh.lists&(1<<cPhase) == 0 {
		e.drop("/phase", true)
		c.phase = ""
	}
	if e.own && c.phase == "" && c.workflowID != "" && sh.lists&(1<<cPhase) == 0 && jsonwire.Text(e.peek("/payload/phase")) != "" {
		e.drop("/"+string(Name)+"/~1payload~1phase", true)
		e.lose(loss{what: dialect.Made, pointer: "/phase", detail: "the payload's own, which has a workflow now"})
	}
	if c.step.OK && (c.step.V < 0 || stepless(shape)) {
		e.drop("/step", true)
		c.step.OK = false
	}
	p := ev.Payload
	if shape == sNodeEnter && c.nodeID == "" {
		c.nodeID, _ = made(ofEvent, ev, &e.open)
		c.some = true
		e.lose(loss{what: dialect.Made, pointer: "/nodeId", detail: "derived from the event's id"})
	}
	if e.own {
		e.fields = e.visitor.collect(sh, p, c)
	}
	var hidden uint32 // fields that are not written
	switch p := p.(type) {
	case *agentevents.AgentEnded:
		c.tokens = tokensOf(p)
		if u := p.Usage; u.OK && u.V.TotalTokens.OK && u.V == (agentevents.Usage{TotalTokens: u.V.TotalTokens}) && !e.keptUnder("/payload/usage") {
			hidden |= 1 << slices.Index(sh.names, `"usage":`)
		}
		if e.madeUp("tokens") {
			hidden |= 1 << fieldCompletedTokens
		}
		if e.madeUp("agentId") && ev.Actor == "" && !nonAgent(ev.AgentID) {
			hidden |= 1 << 0
		}
	case *agentevents.AgentStarted:
		if e.madeUp("parentSpanId") || e.peek("/payload/parentSpanId") != "" { // the envelope has it
			hidden |= 1 << 3
		}
	case *agentevents.MessageCreated:
		hidden |= 1 << fieldMessage
	case *agentevents.ToolReturned:
		if status, other := statusOf(string(p.Status)); other {
			e.lose(loss{what: dialect.Altered, pointer: "/payload/status", detail: "read as " + string(status)})
		}
	}
	if e.own {
		hidden |= e.hide(ev, sh)
	}

	mark := len(dst)
	dst = append(dst, '{')
	inner := shape == sMessageCreated && !e.madeUp("message")
	if inner {
		dst = append(dst, `"message":{`...)
	}
	if !e.own {
		v := &e.visitor
		dst = v.write(dst, e, sh, p, c, hidden)
		if inner {
			dst = append(dst, '}')
		}
		if v.lacking != 0 {
			for _, m := range sh.made {
				if v.lacking&(1<<m.field) != 0 {
					e.madeByReaders(ev, sh, m, v.refs&(1<<m.field) != 0)
				}
			}
		}
		if c.any(sh.lists) {
			dst = e.commonMembers(dst, sh.lists)
		}
		return append(dst, '}')
	}
	return e.ownPayload(dst, sh, mark, hidden, inner)
}

// ownPayload appends the members of a payload that was read by this package and
// begins at mark, and the end of it. With inner they are those of the message.
func (e *Encoder) ownPayload(dst []byte, sh *shape, mark int, hidden uint32, inner bool) []byte {
	c := &e.c
	e.place = append(e.place[:0], "/payload"...)
	if inner {
		e.place = append(e.place, "/message"...)
	}
	var empty uint32 // fields of which nothing is written
	for i, field := range e.fields {
		if i == fieldMessage && sh.kind == agentevents.KindMessageCreated {
			continue // it is what all this is in
		}
		name, start := sh.names[i], len(dst)
		if len(e.kept.as) > 0 {
			if as := e.kept.spelledAs(bare(name)); as != "" && !(as == "message" && isObject(field)) { // that is read as the message
				name = jsonwire.Quote(as) + ":"
			}
		}
		// Inside the message the place is not that of the payload, the names are.
		hide := hidden&(1<<i) != 0 || inner && zero(field) && e.madeUp(bare(sh.names[i]))
		dst = e.member(dst, name, field, hide)
		if len(dst) == start && !hide {
			empty |= 1 << i
		}
	}
	e.dropOthers(sh, empty, inner)
	if inner {
		dst = append(e.rest(dst), '}')
		e.place = e.place[:len("/payload")]
		e.dropOthers(sh, empty, false)
	}
	if e.kept.deep || c.any(sh.lists) {
		for i, name := range commonNames {
			if sh.lists&(1<<i) == 0 {
				dst = e.member(dst, name, c.field(i), false)
			}
		}
	}
	dst = e.rest(dst)
	if raw := e.keptRaw("/payload"); raw != "" {
		if whole := string(dst[mark:]); whole == "{" || whole == `{"message":{}` {
			return append(dst[:mark], raw...)
		}
		e.drop("/"+string(Name)+"/~1payload", true) // the event says something else now
	}
	return append(dst, '}')
}

// dropOthers drops what was kept at e.place under a name of an empty field, because
// the field had its value from elsewhere on the line: readers would now take the
// other one. With inner they do so only inside the message.
func (e *Encoder) dropOthers(sh *shape, empty uint32, inner bool) {
	if !e.kept.deep {
		return
	}
	for i, name := range sh.names {
		field := i
		if i >= sh.own() {
			field = int(sh.other[i-sh.own()])
		} else if i == fieldMessage && sh.kind == agentevents.KindMessageCreated {
			if inner {
				continue
			}
			field = fieldMessageContent // as which it is read when it is no object
		}
		if empty&(1<<field) == 0 {
			continue
		}
		token := jsonwire.Token(bare(name))
		if m := e.memberHere(token); m >= 0 && !e.used[m] && takes(e.fields[field], e.kept.members[m].raw) {
			e.used[m] = true
			e.drop("/"+string(Name)+"/"+jsonwire.Token(string(e.place)+"/"+token), true)
		}
	}
}

// madeByReaders lists a field that is empty, and that readers fill.
func (e *Encoder) madeByReaders(ev *agentevents.Event, sh *shape, m madeUp, ref bool) {
	if m.from == ofTime {
		return
	}
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && m.from == ofCall && !p.OneEvent {
		e.lose(loss{what: dialect.Made, pointer: "/payload/oneEvent", detail: "by readers, unless a call of its span is open"})
	}
	pointer := "/payload/" + bare(sh.names[m.field])
	if sh.kind == agentevents.KindMessageCreated {
		pointer = "/payload/message/" + bare(sh.names[m.field])
	}
	if ref {
		pointer += "/agentId"
	}
	e.lose(loss{what: dialect.Made, pointer: pointer, detail: "by readers"})
}

// commonMembers appends the common fields that are not in lists.
func (e *Encoder) commonMembers(dst []byte, lists uint16) []byte {
	c := &e.c
	dst = commonText(dst, cAgentID, c.agentID, lists)
	if c.some {
		dst = commonText(dst, cWorkflowID, c.workflowID, lists)
		dst = commonText(dst, cPhase, c.phase, lists)
		dst = commonText(dst, cNodeID, c.nodeID, lists)
		dst = commonText(dst, cNodeRunID, c.nodeRunID, lists)
	}
	if c.step.OK {
		dst = jsonwire.AppendInt(head(dst, commonNames[cStep]), int64(c.step.V))
	}
	if c.some {
		dst = commonText(dst, cParentAgentID, c.parentAgentID, lists)
		dst = commonText(dst, cParentCallID, c.parentCallID, lists)
	}
	dst = commonText(dst, cCausationID, c.causationID, lists)
	if c.marks != 0 {
		dst = e.value(dst, commonNames[cMarks], &c.marks)
	}
	return dst
}

func commonText(dst []byte, i int, text string, lists uint16) []byte {
	if lists&(1<<i) != 0 {
		return dst
	}
	return appendText(dst, commonNames[i], text)
}

// hide returns the fields that the line lacked, as long as they are what
// readers make up, and lists those that they will make up.
func (e *Encoder) hide(ev *agentevents.Event, sh *shape) (hidden uint32) {
	for i, m := range sh.made {
		field := e.fields[m.field]
		name := bare(sh.names[m.field])
		ref, isRef := field.(*agentevents.AgentRef)
		if lacks(field) {
			e.madeByReaders(ev, sh, m, isRef)
			continue
		}
		if e.guessed(m.from) {
			if e.peek("/payload") == "" {
				continue
			}
			e.madeByReaders(ev, sh, m, isRef) // the line has no place for it
		}
		if isRef && e.madeUp(name+"/agentId") {
			if value, _ := made(m.from, ev, &e.open); ref.AgentID == value {
				e.hiddenRefs[i&1] = &ref.AgentID
			}
			continue
		}
		if !e.madeUp(name) {
			continue
		}
		switch p := ev.Payload.(type) {
		case *agentevents.ToolReturned:
			tool := p.ToolID
			if m.from == ofCall && e.madeUp("toolId") {
				tool = "" // the line did not say it when the call was looked for
			}
			v := *p
			v.ToolID = tool
			as := agentevents.Event{ID: ev.ID, RunID: ev.RunID, SpanID: ev.SpanID, Payload: &v}
			value, alone := made(m.from, &as, &e.open)
			if m.from == ofCall && alone != p.OneEvent {
				continue
			}
			if same(field, value) {
				hidden |= 1 << m.field
				if m.from == ofCall && alone && e.madeUp("oneEvent") {
					hidden |= 1 << slices.Index(sh.names, `"oneEvent":`)
				}
			}
		default:
			if value, _ := made(m.from, ev, &e.open); same(field, value) {
				hidden |= 1 << m.field
			}
		}
	}
	return hidden
}

// guessed reports whether readers would make a field of what the encoder made up.
func (e *Encoder) guessed(from source) bool {
	switch from {
	case ofAgent:
		return e.common.Set&(1<<madeActor) != 0
	case ofCall, ofApproval: // what is open in the span
		return e.common.Set&(1<<madeSpan) != 0
	}
	return false
}

// same reports whether a field that can be made up has that value.
func same(field any, value string) bool {
	switch v := field.(type) {
	case *agentevents.AgentRef:
		return *v == agentevents.AgentRef{AgentID: value}
	case *int64:
		var n int64
		set(&n, value)
		return *v == n
	case *string:
		return *v == value
	case *agentevents.ToolStatus:
		return string(*v) == value
	}
	return false
}

// member appends a member of the object at e.place, unless it is hidden or
// absent. Where the line spelled it in a way that still says the same, that is
// written.
func (e *Encoder) member(dst []byte, name string, field any, hidden bool) []byte {
	if e.own && !hidden && len(e.kept.as) > 0 {
		if ref, ok := field.(*string); ok && (ref == e.hiddenRefs[0] || ref == e.hiddenRefs[1]) {
			hidden = true
		} else if zero(field) && name != `"message":` { // so the content may be spelled; among what was made up it is the object
			hidden = e.madeUp(string(append(append(e.place, '/'), jsonwire.Token(bare(name))...)[len("/payload/"):]))
		}
	}
	if !e.own || !e.kept.deep {
		if hidden {
			return dst
		}
		return e.value(dst, name, field)
	}
	raw := e.keptMember(bare(name))
	if !hidden && (raw == "" || !says(field, raw)) {
		mark := len(dst)
		if dst = e.value(dst, name, field); len(dst) > mark {
			if raw != "" { // the event says something else now
				e.drop("/"+string(Name)+"/"+jsonwire.Token(string(e.place)+"/"+jsonwire.Token(bare(name))), true)
			}
			return dst
		}
		if raw != "" && sets(field, raw) { // the event says nothing now
			e.drop("/"+string(Name)+"/"+jsonwire.Token(string(e.place)+"/"+jsonwire.Token(bare(name))), true)
			return dst
		}
	}
	if raw != "" {
		dst = append(head(dst, name), raw...)
	}
	return dst
}

// zero reports whether a field that is written even then is zero.
func zero(field any) bool {
	switch v := field.(type) {
	case *int:
		return *v == 0
	case *int64:
		return *v == 0
	case *float64:
		return *v == 0
	case *time.Duration:
		return *v == 0
	case *[]string:
		return len(*v) == 0
	case *agentevents.JSON:
		return *v == "" || *v == "null" // the native format writes null for none
	}
	return false
}

// object appends a member that is an object.
func (e *Encoder) object(dst []byte, name string, names []string, fields []any) []byte {
	dst = append(head(dst, name), '{')
	mark := len(e.place)
	if e.own {
		e.place = append(append(e.place, '/'), jsonwire.Token(bare(name))...)
	}
	for i, field := range fields {
		dst = e.member(dst, names[i], field, false)
	}
	if e.own {
		dst = e.rest(dst)
		e.place = e.place[:mark]
	}
	return append(dst, '}')
}

func (e *Encoder) usageMap(dst []byte, name string, m map[string]agentevents.Usage) []byte {
	dst = append(head(dst, name), '{')
	if !e.own {
		e.place = e.place[:0] // nothing looks at it
	}
	mark := len(e.place)
	e.place = append(append(e.place, '/'), jsonwire.Token(bare(name))...)
	for _, model := range slices.Sorted(maps.Keys(m)) {
		u := m[model]
		f := usageFields(&u)
		at := len(e.place)
		e.place = append(append(e.place, '/'), jsonwire.Token(model)...)
		dst = append(head(dst, jsonwire.Quote(model)+":"), '{')
		for i, field := range f {
			dst = e.member(dst, usageNames[i], field, false)
		}
		if e.own {
			dst = e.rest(dst)
		}
		dst = append(dst, '}')
		e.place = e.place[:at]
	}
	e.place = e.place[:mark]
	return append(dst, '}')
}
