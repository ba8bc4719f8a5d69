package kaos

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
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
	// With the zero Anchor timestamps are seconds since the Unix epoch.
	Anchor        time.Time
	AnchorSeconds float64
}

// An Encoder writes events as KAOS lines. It implements [dialect.Encoder]. It
// must not be used concurrently.
//
// Every event is one line. The encoder makes up what a line requires and lists
// it as a loss: a span without SpanID gets an id derived from what the span is
// about, the same for its start and its end; an event without SessionID gets its
// run's id; an agent without an id gets that of its node.
//
// The memory of an Encoder grows with the number of runs, of open spans and of
// different losses. It forgets the oldest open spans, but never one of the
// latest 8,192.
type Encoder struct {
	o       EncoderOptions
	clock   clock
	losses  dialect.Losses
	numbers dialect.Numbers
	number  []byte // the sequence on the current line
	open    openMap[openKey, spanID]
	kept    []keptMember // the extra members of the event
	scanner jsonwire.Scanner
	err     error           // why the event cannot be written
	known   bool            // the event ends an open span
	pend    dialect.Pending // the losses of the event

	common dialect.Common
	second clockCache
	owner  owner  // of the line before
	change change // what the event opens or closes

	byName  map[string]int      // index into kept by name, if kept is long
	under   map[string][]int    // indices into kept by pointer, if kept is long
	bySpan  map[spanKey]openKey // the keys in the maps of open, by span id
	written spanID              // the span id on the line of an event without SpanID
	given   spanID              // what such an event gets as its span id; zero: an id that is made up
}

// The losses that many events of every kind have.
const (
	lostID = iota
	lostSequence
	lostStep
	lostCausation
	madeSession
	madeSpan
	spanOfStart
	numCommon
)

var commonLosses = [numCommon]dialect.CommonLoss{
	lostID:        {What: dialect.Dropped, Pointer: "/id", Detail: "the document has no ids of events"},
	lostSequence:  {What: dialect.Dropped, Pointer: "/sequence", Detail: "a reader numbers the events of a run from 0 without gaps; the number on the line is an extra member"},
	lostStep:      {What: dialect.Dropped, Pointer: "/step"},
	lostCausation: {What: dialect.Dropped, Pointer: "/causationId"},
	madeSession:   {What: dialect.Made, Pointer: "/sessionId", Detail: "required; the run's id"},
	madeSpan:      {What: dialect.Made, Pointer: "/spanId", Detail: "required; derived from what the span is about"},
	spanOfStart:   {What: dialect.Made, Pointer: "/spanId", Detail: "the id that its start got"},
}

// An owner caches what a line mostly shares with the line before.
type owner struct {
	run, session, agent   string
	text                  []byte // session_id and run_id, as they stand on a line
	validIDs, validAgents bool   // whether the ids are valid UTF-8
	runHash, hash         uint64 // of the run; of run and agent
}

// openKey names what an open span is about.
type openKey struct {
	subject        int
	id, agent, run string // compared in this order
}

// set makes k the key of an event. Keys and list entries of this package are set
// field by field: a composite literal is built on the stack and then copied, and
// the processor waits for its own stores.
func (k *openKey) set(subject int, id string, ev *agentevents.Event) {
	k.subject, k.id, k.agent, k.run = subject, id, ev.AgentID, ev.RunID
}

// A spanID is the span id of an event, or an id that is made up, or zero.
type spanID struct {
	id   string // of the event
	made uint64 // the made-up id, of which the first madeDigits hex digits are written

	other bool // readers know the open call or agent by this id instead of its own
}

// same reports whether both are the same id.
func (s spanID) same(t spanID) bool { return s.id == t.id && s.made == t.made }

const madeDigits = 12

// is reports whether the id reads as text on a line.
func (s spanID) is(text string) bool {
	if s.id != "" || len(text) != madeDigits {
		return s.id == text
	}
	var digits [16]byte
	return string(jsonwire.AppendHex(digits[:0], s.made)[:madeDigits]) == text
}

// append appends the id as a JSON string.
func (s spanID) append(dst []byte) []byte {
	if s.id != "" {
		return jsonwire.AppendString(dst, s.id)
	}
	n := len(dst) + 1
	dst = jsonwire.AppendHex(append(dst, '"'), s.made)
	return append(dst[:n+madeDigits], '"')
}

// A change is what an event does to the open spans. It takes effect when the line
// is written, so that a refused event changes nothing.
type change struct {
	opens, closes bool
	replaces      bool // the event opens a span id that another open subject has
	subject       int
	id            string // of the subject
	span          spanID // the span that opens
	at            int    // index in e.open.recent of the entry that closes, or -1

	key      openKey // of the entry that closes, if at is -1
	replaced openKey // of the subject that had the span id
}

func (c *change) none() { c.opens, c.closes, c.replaces = false, false, false }

// refused discards the change and the losses of an event that cannot be written,
// and returns the error.
func (e *Encoder) refused() error {
	e.change.none()
	e.pend.Reset()
	return e.err
}

// settle applies the change of an event once its line is written.
func (e *Encoder) settle(ev *agentevents.Event) {
	c := &e.change
	switch {
	case !c.closes:
	case c.at >= 0:
		e.open.removeAt(c.at)
	default:
		e.forget(&c.key)
	}
	if !c.opens {
		return
	}
	if c.replaces {
		e.forget(&c.replaced)
	}
	var key openKey
	key.set(c.subject, c.id, ev)
	to, left, forgotten := e.open.put(&key)
	to.id, to.made, to.other = c.span.id, c.span.made, c.span.other
	if left != nil {
		e.unlist(left, forgotten)
	}
}

// unlist indexes the span of an entry that moved from the list of e.open to its
// maps, and removes the forgotten spans from the index.
func (e *Encoder) unlist(left *openEntry[openKey, spanID], forgotten map[openKey]spanID) {
	if left.value.id != "" {
		if e.bySpan == nil {
			e.bySpan = map[spanKey]openKey{}
		}
		e.bySpan[spanKey{left.value.id, left.key.run}] = left.key
	}
	for k, span := range forgotten {
		e.forgetSpan(&k, span)
	}
}

// forget removes an open span.
func (e *Encoder) forget(key *openKey) {
	if span, ok := e.open.take(key); ok {
		e.forgetSpan(key, span)
	}
}

func (e *Encoder) forgetSpan(key *openKey, span spanID) {
	if by := (spanKey{span.id, key.run}); e.bySpan[by] == *key {
		delete(e.bySpan, by)
	}
}

// ownSpan copies the texts of an entry, which otherwise keep whole lines alive.
func ownSpan(k openKey, s spanID) (openKey, spanID) {
	k.run, k.agent, k.id, s.id = cloned(k.run, k.agent, k.id, s.id)
	return k, s
}

// A keptMember is one member of the object that is the event's extra member
// "kaos".
type keptMember struct {
	name, raw string
	used      bool // it is on the line, or need not be
}

// NewEncoder returns an encoder.
func NewEncoder(o EncoderOptions) *Encoder {
	return &Encoder{o: o, common: dialect.Common{Of: commonLosses[:]}, clock: newClock(o.Anchor, o.AnchorSeconds), open: openMap[openKey, spanID]{own: ownSpan}}
}

// End appends nothing: every event is written at once.
func (e *Encoder) End(dst []byte) ([]byte, error) { return dst, nil }

// Losses returns the losses so far. See [dialect.Encoder].
func (e *Encoder) Losses() []dialect.Loss { return e.losses.List() }

// Append appends the line of an event. See [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	if ev.Kind() == "" {
		_, err := ev.AppendJSON(nil) // the error names what is wrong with the payload
		return dst, err
	}
	typ, v, err := e.form(&ev)
	if err != nil {
		return dst, err
	}
	mark := len(dst)
	if e.o.SSE {
		if strings.IndexByte(typ, '\n') < 0 && strings.IndexByte(typ, '\r') < 0 {
			dst = append(append(append(dst, "event: "...), typ...), '\n')
		}
		dst = append(dst, "data: "...)
	}
	e.err, e.known, e.common.Set = nil, false, 0
	if ev.AgentID == "" && len(ev.NodeRunID)|len(ev.NodeID) != 0 {
		ev.AgentID = orElse(ev.NodeRunID, ev.NodeID) // keeps agents without an id apart
		e.lose(dialect.Made, "/agentId", "the id of the node's execution, or of the node")
	}
	e.load(&ev)
	start := len(dst)
	dst = e.document(dst, &ev, typ, v)
	if e.err != nil {
		return dst[:mark], e.refused()
	}
	verbatim := false
	if ev.Origin() != "" {
		var text string
		if text, verbatim = e.verbatim(&ev, string(dst[start:])); verbatim {
			dst = append(dst[:start], text...)
		}
	}
	if ev.RunID == "" && !verbatim {
		e.fail(&ev, RuleRequired, "/runId", "is required")
		return dst[:mark], e.refused()
	}
	if e.change.opens || e.change.closes {
		if ev.SpanID != "" || !verbatim { // on a verbatim line without span_id, readers find no pair
			e.settle(&ev)
		}
		e.change.none()
	}
	e.count(&ev, verbatim)
	if e.o.SSE {
		dst = append(append(append(dst, "\nid: "...), e.number...), '\n')
	}
	return append(dst, '\n'), nil
}

// count counts the losses of a written event.
func (e *Encoder) count(ev *agentevents.Event, verbatim bool) {
	if e.pend.Len() > 0 {
		e.pend.Count(&e.losses, ev, false)
		e.pend.Reset()
	}
	next := e.numbers.Next(ev.RunID)
	if !verbatim { // readers of a verbatim line derive the same id, number and session
		e.everywhere(ev, next)
	}
	e.common.Count(&e.losses, ev, verbatim)
}

// everywhere notes the losses that do not depend on the kind. next is the number
// that readers give the event.
func (e *Encoder) everywhere(ev *agentevents.Event, next uint64) {
	if next != ev.Sequence {
		e.common.Set |= 1 << lostSequence
	}
	if ev.SessionID == "" {
		e.common.Set |= 1 << madeSession
	}
	if ev.ID != "" {
		e.common.Set |= 1 << lostID
	}
}

// lose notes a loss of the current event, which may still be refused. It is not
// inlined so that drop, which mostly has nothing to note, is.
//
//go:noinline
func (e *Encoder) lose(what dialect.Change, pointer, detail string) {
	e.pend.Add(what, pointer, detail)
}

// drop notes that a fact is dropped, if it is present.
func (e *Encoder) drop(pointer string, present bool) {
	if present {
		e.lose(dialect.Dropped, pointer, "")
	}
}

// form returns the type and the variant of an event's line.
func (e *Encoder) form(ev *agentevents.Event) (string, int, error) {
	v := vUnknown
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentEnded, *agentevents.ToolCalled, *agentevents.ToolReturned,
		*agentevents.HandoffRequested, *agentevents.HandoffAccepted, *agentevents.TurnStarted, *agentevents.TurnEnded,
		*agentevents.StepStarted, *agentevents.StepEnded, *agentevents.SpanRecorded:
		v = vSpan
	case *agentevents.TextDelta:
		v = vText
	case *agentevents.AgentReasoningDelta:
		v = vThinking
	case *agentevents.ToolArgumentsDelta:
		v = vArgs
	case *agentevents.IntentClassified:
		v = vIntent
	case *agentevents.PlanProposed:
		v = vPlan
	case *agentevents.CitationFound:
		v = vCitation
	case *agentevents.UsageObserved:
		v = vUsage
	case *agentevents.EvidenceInsufficient:
		v = vEvidence
	case *agentevents.TurnSummarized:
		v = vSummary
	case *agentevents.MemoryChanged, *agentevents.ContextCompacted:
		v = vMemory
	case *agentevents.AgentErrored:
		v = vError
	case *agentevents.BudgetExceeded:
		v = vBudget
	case *agentevents.ApprovalRequested:
		v = vApproval
	case *agentevents.ClarificationRequested:
		v = vEscalation
	case *agentevents.Unknown:
		typ := string(p.Type)
		if rest, ok := strings.CutPrefix(typ, unknownPrefix); ok && dialect.UnknownKind(Name, rest) == p.Type {
			typ = rest
		}
		switch variantOf(typ) {
		case vUnknown:
		case vEscalation:
			if kind, _ := memberText(p.Raw, "kind"); kind == clarification {
				return "", 0, e.losses.Refuse(ev)
			}
		default:
			return "", 0, e.losses.Refuse(ev)
		}
		if raw := strings.TrimLeft(string(p.Raw), " \t\r\n"); typ == "" || raw != "" && raw[0] != '{' {
			return "", 0, e.losses.Refuse(ev)
		}
		return typ, vUnknown, nil
	default:
		return "", 0, e.losses.Refuse(ev)
	}
	return variants[v].typ, v, nil
}

// memberText returns the member of an object, if it is a text.
func memberText(raw agentevents.JSON, name string) (string, bool) {
	for n, value := range jsonwire.Members(string(raw)) {
		if n == name && value[0] == '"' {
			return jsonwire.Text(value), true
		}
	}
	return "", false
}

// load reads the event's extra member "kaos" into e.kept.
func (e *Encoder) load(ev *agentevents.Event) {
	e.kept = e.kept[:0]
	raw := string(ev.Extra(string(Name)))
	if raw == "" {
		return
	}
	e.byName, e.under = nil, nil
	if raw[0] != '{' {
		e.lose(dialect.Dropped, "/"+string(Name), "it is not an object")
		return
	}
	for name, value := range jsonwire.Members(raw) {
		e.kept = append(e.kept, keptMember{name: name, raw: value})
	}
}

// fewKept is up to how many entries of e.kept are searched one by one. A line may
// have any number of list elements and of extra members in them; above fewKept,
// maps keep the search linear.
const fewKept = 32

// index returns the index into e.kept of a name, or -1. Use it instead of peek to
// look up many names.
func (e *Encoder) index(name string) int {
	if len(e.kept) <= fewKept {
		return slices.IndexFunc(e.kept, func(k keptMember) bool { return k.name == name })
	}
	if e.byName == nil {
		e.byName = make(map[string]int, len(e.kept))
		for i := range e.kept {
			e.byName[e.kept[i].name] = i
		}
	}
	if i, ok := e.byName[name]; ok {
		return i
	}
	return -1
}

// peek returns the value of an entry of e.kept, or "".
func (e *Encoder) peek(name string) string {
	for i := range e.kept {
		if e.kept[i].name == name {
			return e.kept[i].raw
		}
	}
	return ""
}

// odd reports whether attribute n of the line that was read has a type that its
// field cannot have. Such an attribute is in the free attributes of kinds that
// have them, and in e.kept otherwise.
func (e *Encoder) odd(n int, free agentevents.JSON) bool {
	if free == "" && len(e.kept) == 0 {
		return false
	}
	name := attrNames[n-1][1 : len(attrNames[n-1])-2]
	raw := e.peek("/attributes/" + name)
	if raw == "" && free != "" {
		for member, value := range jsonwire.Members(string(free)) {
			if member == name {
				raw = value
			}
		}
	}
	return raw != "" && !becomesField(n, raw)
}

// take is like peek, and marks the entry as used.
func (e *Encoder) take(name string) string {
	for i := range e.kept {
		if e.kept[i].name == name {
			e.kept[i].used = true
			return e.kept[i].raw
		}
	}
	return ""
}

// sequence appends the line's number: the one that was read, or the event's own.
func (e *Encoder) sequence(dst []byte, ev *agentevents.Event) []byte {
	if raw := e.take("sequence"); raw != "" {
		if _, err := strconv.ParseInt(raw, 10, 64); err == nil {
			return append(dst, raw...)
		}
	}
	if ev.Sequence > math.MaxInt64 {
		e.err = &agentevents.RuleError{Rule: RuleRange, Kind: ev.Kind(), RunID: ev.RunID, Sequence: ev.Sequence, Pointer: "/sequence", Detail: "is too large: readers take numbers up to 2^63-1"}
	}
	return jsonwire.AppendUint(dst, ev.Sequence)
}

// document appends the JSON object of an event and notes its losses.
func (e *Encoder) document(dst []byte, ev *agentevents.Event, typ string, v int) []byte {
	dst = e.second.append(append(dst, `{"timestamp":`...), e.clock, ev.Time)
	dst = append(dst, `,"sequence":`...)
	number := len(dst)
	dst = e.sequence(dst, ev)
	if e.o.SSE {
		e.number = append(e.number[:0], dst[number:]...)
	}
	dst = e.ownerMembers(dst, ev)
	agent := ev.AgentID
	delegation := false
	switch ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		delegation = true
		agent = ev.ParentAgentID
		if len(e.kept) > 0 && agent == "" && ev.AgentID != "" && e.peek("agent_id") == jsonwire.Quote(ev.AgentID) {
			e.take("agent_id")
			agent = ev.AgentID
		}
	}
	dst = appendText(append(dst, `,"agent_id":`...), agent)
	switch v {
	case vSpan:
		dst = append(e.span(dst, ev), `,"type":"span"`...)
	case vUnknown:
		dst = e.unknown(dst, ev, typ)
	default:
		dst = append(append(append(e.value(dst, ev), `,"type":"`...), typ...), '"') // no type of the document needs escapes
	}
	if len(e.kept) > 0 {
		dst = e.unknownMembers(dst, ev, v)
	}
	e.envelope(ev, v == vSpan, delegation)
	if !e.plain(ev) {
		e.fail(ev, agentevents.RuleFieldUTF8, "", "an id of the event is not valid UTF-8")
	}
	return append(dst, '}')
}

// ownerMembers appends the session and the run, and updates e.owner.
func (e *Encoder) ownerMembers(dst []byte, ev *agentevents.Event) []byte {
	o := &e.owner
	if len(o.text) == 0 || o.run != ev.RunID || o.session != ev.SessionID {
		*o = owner{run: ev.RunID, session: ev.SessionID, text: o.text[:0], runHash: jsonwire.Hash(ev.RunID)}
		o.validIDs = jsonwire.ValidUTF8(o.run) && jsonwire.ValidUTF8(o.session)
		o.text = jsonwire.AppendString(append(o.text, `,"session_id":`...), orElse(o.session, o.run))
		o.text = jsonwire.AppendString(append(o.text, `,"run_id":`...), o.run)
	}
	if o.hash == 0 || o.agent != ev.AgentID {
		o.agent, o.validAgents = ev.AgentID, jsonwire.ValidUTF8(ev.AgentID)
		o.hash = max(1, jsonwire.Mix(o.runHash, jsonwire.Hash(ev.AgentID)))
	}
	return append(dst, o.text...)
}

// plain reports whether all ids on the line are valid UTF-8.
func (e *Encoder) plain(ev *agentevents.Event) bool {
	return e.owner.validIDs && e.owner.validAgents && (ev.SpanID == "" || jsonwire.ValidUTF8(ev.SpanID)) &&
		(ev.ParentSpanID == "" || jsonwire.ValidUTF8(ev.ParentSpanID)) && (ev.ParentAgentID == "" || jsonwire.ValidUTF8(ev.ParentAgentID))
}

// appendText appends a text, or null if it is empty.
func appendText(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return jsonwire.AppendString(dst, s)
}

// envelope notes what the line does not say of the event's envelope.
func (e *Encoder) envelope(ev *agentevents.Event, span, delegation bool) {
	e.drop("/schemaVersion", ev.SchemaVersion != "" && ev.SchemaVersion != agentevents.SchemaVersion)
	if len(ev.TaskID)|len(ev.WorkflowID)|len(ev.Phase)|len(ev.NodeID)|len(ev.NodeRunID) != 0 {
		e.drop("/taskId", ev.TaskID != "")
		e.drop("/workflowId", ev.WorkflowID != "")
		e.drop("/phase", ev.Phase != "")
		e.drop("/nodeId", ev.NodeID != "")
		e.drop("/nodeRunId", ev.NodeRunID != "")
	}
	if len(ev.Actor)|len(ev.ParentCallID)|len(ev.TraceID)|len(ev.CausationID) != 0 {
		e.drop("/actor", ev.Actor != "")
		e.drop("/parentCallId", ev.ParentCallID != "")
		e.drop("/traceId", ev.TraceID != "")
		if ev.CausationID != "" {
			e.common.Set |= 1 << lostCausation
		}
	}
	e.drop("/parentAgentId", !delegation && ev.ParentAgentID != "")
	if ev.Step.OK {
		e.common.Set |= 1 << lostStep
	}
	e.drop("/marks", ev.Marks != 0)
	if !span {
		e.drop("/spanId", ev.SpanID != "")
		e.drop("/parentSpanId", ev.ParentSpanID != "")
	}
	for name := range ev.Extras() {
		e.drop("/"+jsonwire.Token(name), name != string(Name))
	}
	if ev.PayloadExtra() {
		e.lose(dialect.Dropped, "/payload", "members that no field has")
	}
	if sec := ev.Time.Unix(); sec < -62167219200 || sec > 253402300799 {
		e.fail(ev, agentevents.RuleFieldRange, "/timestamp", "is outside the years 0 to 9999")
	}
}

// fail notes the first reason why the event cannot be written.
func (e *Encoder) fail(ev *agentevents.Event, rule agentevents.Rule, pointer, detail string) {
	if e.err == nil {
		e.err = &agentevents.RuleError{
			Rule: rule, Kind: ev.Kind(), RunID: ev.RunID, AgentID: ev.AgentID, EventID: ev.ID, Sequence: ev.Sequence, Pointer: pointer, Detail: detail,
		}
	}
}

// json returns raw without blanks between its tokens.
func (e *Encoder) json(ev *agentevents.Event, pointer string, raw agentevents.JSON) string {
	out, err := jsonwire.Compact(string(raw))
	if err != nil {
		e.fail(ev, agentevents.RuleFieldJSON, pointer, err.Error())
	}
	return out
}

// float appends a member whose value is a number. name includes the colon.
func (e *Encoder) float(dst []byte, ev *agentevents.Event, name, pointer string, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.fail(ev, agentevents.RuleFieldRange, pointer, "is not a finite number")
		return dst
	}
	return appendFloat(append(dst, name...), f)
}

// unknownMembers appends the extra members of the line itself, and notes every
// entry of e.kept that is not on the line.
func (e *Encoder) unknownMembers(dst []byte, ev *agentevents.Event, v int) []byte {
	for i := range e.kept {
		k := &e.kept[i]
		name := k.name
		switch {
		case k.used || name == "/timestamp" || name == afterType:
			continue
		case strings.HasPrefix(name, "/~1") && strings.IndexByte(name[1:], '/') < 0:
			name = jsonwire.Untoken(name[1:])
		case name == "" || name[0] != '/':
			if !variants[v].named(name) {
				break
			}
			fallthrough // a field of the event has the member now
		default:
			e.lose(dialect.Dropped, "/"+string(Name)+"/"+jsonwire.Token(name), "")
			continue
		}
		dst = jsonwire.AppendString(append(dst, ','), name)
		dst = append(append(dst, ':'), k.raw...)
	}
	return dst
}

// keptUnder appends the extra members of the object at a pointer. It leaves out
// an attribute that a field has written: the decoder keeps an attribute of a
// wrong type as an extra member, and the field may have been set since.
func (e *Encoder) keptUnder(dst []byte, ev *agentevents.Event, pointer string) []byte {
	if len(e.kept) <= fewKept {
		for i := range e.kept {
			dst = e.keptMember(dst, ev, &e.kept[i], pointer)
		}
		return dst
	}
	if e.under == nil {
		e.under = map[string][]int{}
		for i := range e.kept {
			in := e.kept[i].name
			in = in[:strings.LastIndexByte(in, '/')+1]
			e.under[in] = append(e.under[in], i)
		}
	}
	for _, i := range e.under[pointer] {
		dst = e.keptMember(dst, ev, &e.kept[i], pointer)
	}
	return dst
}

// keptMember appends k if it belongs to the object at pointer, after a comma if
// another member is before it.
func (e *Encoder) keptMember(dst []byte, ev *agentevents.Event, k *keptMember, pointer string) []byte {
	token, ok := strings.CutPrefix(k.name, pointer)
	if !ok || k.used || strings.IndexByte(token, '/') >= 0 {
		return dst
	}
	k.used = true
	name := jsonwire.Untoken(token)
	if pointer == "/attributes/" && isAttribute(name) && hasAttribute(dst, name) {
		e.lose(dialect.Dropped, "/"+string(Name)+"/"+jsonwire.Token(k.name), "a field of the event has this attribute")
		return dst
	}
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = jsonwire.AppendString(dst, name)
	return append(append(dst, ':'), k.raw...)
}

// unknown appends the members of an event of an unknown type, and the type.
func (e *Encoder) unknown(dst []byte, ev *agentevents.Event, typ string) []byte {
	p := ev.Payload.(*agentevents.Unknown)
	if dialect.UnknownKind(Name, typ) != p.Type {
		e.lose(dialect.Altered, "/type", "")
	}
	if p.Raw == "" {
		e.lose(dialect.Made, "/payload", "an empty object")
		return appendType(dst, typ)
	}
	raw := e.json(ev, "/payload", p.Raw)
	left, follow := 0, 0 // members still to be written; how many of all follow the type
	if n, err := strconv.Atoi(e.take(afterType)); err == nil && n > 0 {
		follow = n
		for range jsonwire.Members(raw) {
			left++
		}
	}
	typed := false
	for name, value := range jsonwire.Members(raw) {
		if follow > 0 && left == follow {
			dst, typed = appendType(dst, typ), true
		}
		left--
		if variants[vUnknown].named(name) {
			e.lose(dialect.Dropped, "/payload/"+jsonwire.Token(name), "the envelope has a member of this name")
			continue
		}
		e.replaced(name)
		if strings.HasPrefix(name, "/") {
			e.replaced("/" + jsonwire.Token(name))
		}
		dst = jsonwire.AppendString(append(dst, ','), name)
		dst = append(append(dst, ':'), value...)
	}
	if typed {
		return dst
	}
	return appendType(dst, typ)
}

func appendType(dst []byte, typ string) []byte {
	return jsonwire.AppendString(append(dst, `,"type":`...), typ)
}

// replaced marks the entry of e.kept of that name as used: the payload has a
// member that takes its place.
func (e *Encoder) replaced(name string) {
	if len(e.kept) == 0 {
		return
	}
	if i := e.index(name); i >= 0 {
		e.kept[i].used = true
	}
}

// verbatim returns the text that the event was read from, if the event still says
// the same. now is the line that the event makes. The function reads the text
// again and compares the lines.
func (e *Encoder) verbatim(ev *agentevents.Event, now string) (string, bool) {
	origin := ev.Origin()
	if strings.IndexByte(origin, '\r') >= 0 {
		return "", false // a CR may separate several fields of a frame
	}
	text := origin
	if value, ok := strings.CutPrefix(origin, "data:"); ok {
		text = strings.TrimPrefix(value, " ")
	}
	d := Decoder{clock: e.clock, o: Options{Anchor: e.o.Anchor}}
	if e.known {
		d.expect(ev)
	}
	_, d.record = ev.Payload.(*agentevents.SpanRecorded) // what the log's decoder could only record
	was, err := d.document(nil, []byte(text))
	if err != nil || len(was) != 1 {
		return "", false
	}
	typ, v, err := e.form(&was[0])
	if err != nil {
		return "", false
	}
	if !jsonwire.HasMember(text, "sequence") {
		was[0].Sequence = ev.Sequence // the number came from the line's place in the log
	}
	twin := Encoder{clock: e.clock}
	if ev.SpanID == "" {
		twin.given = e.written // a made-up id depends on the place in the log
	}
	twin.load(&was[0])
	then := twin.document(nil, &was[0], typ, v)
	if twin.err != nil || string(then) != now {
		return "", false
	}
	e.pend.Without(&twin.pend) // a reader of the verbatim line misses nothing that this event has
	return text, true
}
