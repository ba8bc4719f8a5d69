package multiagent

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Options configure a [Decoder]. The zero Options are usable.
type Options struct {
	// Strict refuses lines that break a rule of the document, with a
	// [*agentevents.RuleError]; see the Rule constants. Without Strict the decoder
	// reads as much of such a line as it can.
	Strict bool
}

// A Decoder turns each line of the document into one event. It implements
// [agentevents.Decoder]. A Decoder is for one log, and must not be used
// concurrently.
//
// It remembers a bounded list of open calls and approvals, and a counter for each
// run.
type Decoder struct {
	lines   int
	numbers dialect.Numbers
	open    openThings
	r       reader
}

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder { return &Decoder{r: reader{strict: o.Strict}} }

// Decode appends the event of a line.
func (d *Decoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	d.lines++
	text := string(line)
	dst = append(dst, agentevents.Event{})
	ev := &dst[len(dst)-1]
	if err := d.r.read(ev, text, d.lines, &d.open); err != nil {
		if broken, ok := err.(*agentevents.RuleError); ok {
			broken.Sequence = d.numbers.Peek(ev.RunID)
		}
		return dst[:len(dst)-1], err
	}
	ev.Sequence = d.numbers.Next(ev.RunID)
	d.open.note(ev, len(text) > longLine)
	return dst, nil
}

// longLine is the size above which a line is not kept alive for one of its ids.
const longLine = 4 << 10

// End appends nothing: every line is an event by itself.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) { return dst, nil }

// A reader reads single lines. What it remembers from line to line only makes it
// faster.
type reader struct {
	strict bool
	s      jsonwire.Scanner
	times  jsonwire.TimeCache
	after  [numMembers + 1]uint8          // guesses the next member of the envelope: the one that followed the last time
	order  [numShapes][maxNames + 1]uint8 // the same for payloads

	// The state of the current line.
	sh       int // shape
	fields   []any
	visitor  fieldVisitor
	filled   uint32 // set of fields with a value
	c        common
	kept     keeper
	as       []spelling
	path     []string // names from the payload to the current object
	badField string   // the first key field of a wrong type

	extras *[numShapes + 1]keptBefore
}

const maxNames = 24

// A spelling is the name of a field on the line, if it is not the native one. The
// name is empty for a field that the decoder made up.
type spelling struct{ field, name string }

// keptBefore caches an event that has only an extra member of that text: the next
// line mostly has the same one.
type keptBefore struct {
	text string
	base agentevents.Event
}

// read reads a line into an empty event. number is the line's number, and open
// what is open before it.
func (r *reader) read(ev *agentevents.Event, text string, number int, open *openThings) error {
	s := &r.s
	s.Reset(text)
	r.c, r.filled, r.sh = common{}, 0, -1
	r.kept.reset()
	r.as, r.path, r.badField = r.as[:0], r.path[:0], ""
	var (
		seen, empty uint32 // sets of members; empty ones are ""
		last        int
		actor       string
		start, end  int  // offsets of a payload before its type
		badTime     bool // the time is a string, but not a time
	)
	if err := s.Object(); err != nil {
		return err
	}
	for {
		n, name, err := s.Field(envelopeNames[:], int(r.after[last]))
		if err != nil {
			return err
		}
		if n < 0 {
			break
		}
		if n == 0 {
			if err := r.keep(name); err != nil {
				return err
			}
			continue
		}
		if seen&(1<<n) != 0 {
			return s.Duplicate(name)
		}
		seen |= 1 << n
		r.after[last] = uint8(n - 1)
		last = n
		at := s.Offset()
		var v string
		switch n {
		case mPayload:
			if r.sh >= 0 {
				err = r.payload(ev)
			} else if err = s.Skip(); err == nil {
				start, end = at, s.Offset()
			}
		case mTimestamp:
			if ev.Time, err = r.times.Time(s); err != nil {
				if _, again := s.String(); again == nil {
					err, badTime = nil, true
				}
			}
			if err == nil && ev.Time.IsZero() { // otherwise an event without a time looks the same
				r.kept.add("timestamp", text[at:s.Offset()])
			}
			v = "-"
		default:
			v, err = s.String()
		}
		if err != nil {
			return err
		}
		switch n {
		case mID:
			ev.ID = v
		case mTraceID:
			ev.TraceID = v
		case mSpanID:
			ev.SpanID = v
		case mParentSpanID:
			ev.ParentSpanID = v
		case mSessionID:
			ev.SessionID = v
		case mRunID:
			ev.RunID = v
		case mTaskID:
			ev.TaskID = v
		case mActor:
			actor = v
		case mType:
			r.sh = shapeOf(v)
			if r.sh == sUnknown {
				ev.Payload = &agentevents.Unknown{Type: dialect.UnknownKind(Name, v)}
			}
		case mSchemaVersion:
			r.kept.add(name, text[at:s.Offset()])
		}
		if v == "" && n != mPayload {
			empty |= 1 << n
			if n != mSchemaVersion && n != mType && n != mRunID {
				r.kept.add(name, `""`)
			}
		}
	}
	if err := s.End(); err != nil {
		return err
	}
	if r.sh < 0 {
		r.sh = sUnknown
		ev.Payload = &agentevents.Unknown{Type: dialect.UnknownKind(Name, "")}
	}
	if end > 0 {
		s.Reset(text[start:end])
		if err := r.payload(ev); err != nil {
			if syntax, ok := err.(*jsonwire.SyntaxError); ok {
				syntax.Offset += start
			}
			return err
		}
	}
	if ev.Payload == nil {
		s.Reset("{}")
		if err := r.payload(ev); err != nil {
			return err
		}
	}
	ev.SchemaVersion = agentevents.SchemaVersion
	if ev.ID == "" {
		ev.ID = dialect.DerivedID(text, number, 0)
	}
	r.scope(ev, actor)
	r.complete(ev, open)
	if r.strict {
		if err := checkLine(ev, required&^(seen&^empty), badTime, r.badField); err != nil {
			return err
		}
	}
	return r.attach(ev)
}

// unknownPrefix is what [dialect.UnknownKind] puts before a type that is the name
// of a kind.
const unknownPrefix = string(Name) + ":"

// payload reads the payload of a known shape.
func (r *reader) payload(ev *agentevents.Event) error {
	s := &r.s
	if u, ok := ev.Payload.(*agentevents.Unknown); ok {
		raw, err := s.Raw()
		u.Raw = agentevents.JSON(raw)
		return err
	}
	sh := &shapes[r.sh]
	ev.Payload = sh.empty()
	r.fields = r.visitor.collect(sh, ev.Payload, &r.c)
	if s.Kind() != '{' {
		raw, err := s.Raw()
		if err == nil {
			r.kept.add("/payload", raw)
		}
		return err
	}
	r.path = append(r.path, "payload")
	err := r.members(sh, false)
	r.path = r.path[:0]
	return err
}

// members reads the members of a payload. With inner it reads those of the member
// message, which holds the same fields.
func (r *reader) members(sh *shape, inner bool) error {
	s := &r.s
	if err := s.Object(); err != nil {
		return err
	}
	var (
		seen   uint32
		common uint32
		last   int
		own    = sh.own()
		order  = &r.order[r.sh]
	)
	for {
		n, name, err := s.Field(sh.names, int(order[last]))
		if err != nil {
			return err
		}
		if n < 0 {
			return nil
		}
		if n == 0 {
			c := commonNumber(name)
			if inner || c < 0 || c == cStep && (stepless(r.sh) || s.Kind() == '-') {
				err = r.keep(name)
			} else if common&(1<<c) != 0 {
				err = s.Duplicate(name)
			} else {
				common |= 1 << c
				_, err = r.member(name, r.c.field(c))
			}
			if err != nil {
				return err
			}
			continue
		}
		if seen&(1<<n) != 0 {
			return s.Duplicate(name)
		}
		seen |= 1 << n
		order[last] = uint8(n - 1)
		last = n
		field := n - 1
		if field >= own {
			field = int(sh.other[field-own])
		}
		if r.sh == sMessageCreated && field == fieldMessage {
			if !inner && s.Kind() == '{' {
				r.path = append(r.path, name)
				r.filled |= 1 << fieldMessage
				if err := r.members(sh, true); err != nil {
					return err
				}
				r.path = r.path[:len(r.path)-1]
				continue
			}
			if inner {
				if err := r.keep(name); err != nil {
					return err
				}
				continue
			}
			field = fieldMessageContent
		}
		if r.filled&(1<<field) != 0 {
			if err := r.keep(name); err != nil {
				return err
			}
			continue
		}
		fit, err := r.member(name, r.fields[field])
		if err != nil {
			return err
		}
		if fit {
			r.filled |= 1 << field
			if field != n-1 {
				r.as = append(r.as, spelling{bare(sh.names[field]), name})
			}
		} else if field < sh.key && r.badField == "" {
			r.badField = name
		}
	}
}

// stepless reports whether a step in a payload of this shape is the payload's own,
// because the kind's events are outside of steps.
func stepless(sh int) bool { return sh == sSpawned || sh == sCompleted }

// member reads the next value into a field. It keeps the value as an extra member
// if it does not fit the field, or if the field does not preserve its spelling.
func (r *reader) member(name string, field any) (fit bool, err error) {
	at := r.s.Offset()
	fit, exact, err := r.value(name, field)
	if err != nil {
		return false, err
	}
	if !fit {
		return false, r.keep(name)
	}
	if !exact {
		r.kept.add(r.place(name), r.s.Text()[at:r.s.Offset()])
	}
	return true, nil
}

// keep keeps the next value as an extra member.
func (r *reader) keep(name string) error {
	at := r.s.Offset()
	raw, err := r.s.Raw()
	if err == nil && !r.kept.add(r.place(name), raw) {
		err = r.s.Duplicate(name)
		if syntax, ok := err.(*jsonwire.SyntaxError); ok {
			syntax.Offset = at
		}
	}
	return err
}

// place returns the name of an extra member of the current object in the event's
// extra member.
func (r *reader) place(name string) string {
	if len(r.path) == 0 && !strings.HasPrefix(name, "/") {
		return name
	}
	var b strings.Builder
	for _, p := range r.path {
		b.WriteByte('/')
		b.WriteString(jsonwire.Token(p))
	}
	b.WriteByte('/')
	b.WriteString(jsonwire.Token(name))
	return b.String()
}

// scope moves the envelope fields of the payload to the event.
func (r *reader) scope(ev *agentevents.Event, actor string) {
	c := &r.c
	switch {
	case c.agentID != "":
		ev.AgentID = c.agentID
		if r.sh != sCompleted || actor != c.agentID {
			ev.Actor = actor
		}
	case nonAgent(actor):
		ev.Actor = actor
	default:
		ev.AgentID = actor
	}
	if r.sh == sUnknown {
		return
	}
	if c.phase != "" && c.workflowID == "" && shapes[r.sh].lists&(1<<cPhase) == 0 {
		r.kept.add("/payload/phase", jsonwire.Quote(c.phase))
		c.phase = ""
	}
	ev.WorkflowID, ev.Phase, ev.NodeID, ev.NodeRunID = c.workflowID, c.phase, c.nodeID, c.nodeRunID
	ev.ParentAgentID, ev.ParentCallID, ev.CausationID = c.parentAgentID, c.parentCallID, c.causationID
	ev.Step, ev.Marks = c.step, c.marks
}

// complete makes up what the vocabulary requires and the line lacks.
func (r *reader) complete(ev *agentevents.Event, open *openThings) {
	if r.sh == sUnknown {
		return
	}
	sh := &shapes[r.sh]
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		switch said := r.c.parentSpanID; {
		case said == ev.ParentSpanID:
		case said == "":
			r.as = append(r.as, spelling{"parentSpanId", ""})
		case ev.ParentSpanID == "":
			ev.ParentSpanID = said
			r.as = append(r.as, spelling{envelopeParent, ""})
		default:
			r.kept.add("/payload/parentSpanId", jsonwire.Quote(said))
		}
	case *agentevents.AgentEnded:
		switch tokens := r.c.tokens; {
		case p.Usage.OK && !tokens.OK:
			r.as = append(r.as, spelling{"tokens", ""})
		case p.Usage.OK && tokens != tokensOf(p):
			r.kept.add("/payload/tokens", strconv.FormatInt(tokens.V, 10))
			r.as = append(r.as, spelling{"tokens", ""})
		case tokens.OK && !p.Usage.OK:
			p.Usage = agentevents.Some(agentevents.Usage{TotalTokens: tokens})
		}
		if r.c.agentID == "" && ev.AgentID != "" {
			r.as = append(r.as, spelling{"agentId", ""})
		}
	case *agentevents.MessageCreated:
		if r.filled&(1<<fieldMessage) == 0 {
			r.as = append(r.as, spelling{"message", ""})
		}
	}
	for i, field := range r.fields {
		if r.filled&(1<<i) == 0 && (plain(field) || sh.names[i] == `"content":`) && !(r.sh == sMessageCreated && i == fieldMessageTS) {
			r.as = append(r.as, spelling{bare(sh.names[i]), ""})
			if content, ok := field.(*agentevents.JSON); ok {
				*content = "null"
			}
		}
	}
	for _, m := range sh.made {
		field := r.fields[m.field]
		if !lacks(field) || m.from == ofTime && r.filled&(1<<m.field) != 0 {
			continue
		}
		value, alone := made(m.from, ev, open)
		set(field, value)
		name := bare(sh.names[m.field])
		if _, ref := field.(*agentevents.AgentRef); ref && r.filled&(1<<m.field) != 0 && !r.kept.has("/payload/"+r.spelledAs(name)) {
			name += "/agentId" // the line has the agent as an object without this member
		}
		r.as = append(r.as, spelling{name, ""})
		if m.from == ofEvent && r.sh == sNodeEnter {
			ev.NodeID = value
		}
		if alone {
			if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && !p.OneEvent {
				p.OneEvent = true
				r.as = append(r.as, spelling{"oneEvent", ""})
			}
		}
	}
}

// spelledAs returns the name that a field has on the line.
func (r *reader) spelledAs(field string) string {
	for _, as := range r.as {
		if as.field == field && as.name != "" {
			return as.name
		}
	}
	return field
}

// envelopeParent names the envelope's parentSpanId among the spellings, where
// parentSpanId is the payload's.
const envelopeParent = "/parentSpanId"

// tokensOf returns the document's tokens of an agent.completed: the total of its
// usage.
func tokensOf(p *agentevents.AgentEnded) (tokens agentevents.Opt[int64]) {
	if u := &p.Usage.V; p.Usage.OK {
		tokens = agentevents.Some(u.TotalTokens.Or(u.InputTokens + u.OutputTokens))
	}
	return tokens
}

// plain reports whether the encoder writes a field even if it is zero, because its
// type cannot tell zero from absent.
func plain(field any) bool {
	switch field.(type) {
	case *int, *int64, *float64, *time.Duration, *[]string:
		return true
	}
	return false
}

// lacks reports whether a field is empty. The field is of a type that can be made
// up.
func lacks(field any) bool {
	switch v := field.(type) {
	case *string:
		return *v == ""
	case *agentevents.ToolStatus:
		return *v == ""
	case *agentevents.AgentRef:
		return v.AgentID == ""
	case *int64:
		return *v == 0
	}
	return false
}

// set sets a field of a type that can be made up.
func set(field any, value string) {
	switch v := field.(type) {
	case *string:
		*v = value
	case *agentevents.ToolStatus:
		*v = agentevents.ToolStatus(value)
	case *agentevents.AgentRef:
		v.AgentID = value
	case *int64:
		*v, _ = strconv.ParseInt(value, 10, 64)
	}
}

// made returns the made-up value of a field that the line of ev lacks. alone
// reports that no open call matches.
func made(from source, ev *agentevents.Event, open *openThings) (value string, alone bool) {
	switch from {
	case ofEvent:
		return dialect.DerivedID(ev.ID, 0, 0), false
	case ofCall:
		tool := ev.Payload.(*agentevents.ToolReturned).ToolID
		if t := open.latest(ev, false, tool); t != nil {
			return t.id, false
		}
		return dialect.DerivedID(ev.ID, 0, 0), true
	case ofTool:
		if tool := open.tool(ev.RunID, ev.Payload.(*agentevents.ToolReturned).CallID); tool != "" {
			return tool, false
		}
	case ofApproval:
		if t := open.latest(ev, true, ""); t != nil {
			return t.id, false
		}
		return dialect.DerivedID(ev.ID, 0, 0), false
	case ofAgent:
		if ev.AgentID != "" {
			return ev.AgentID, false
		}
		if ev.Actor != "" {
			return ev.Actor, false
		}
	case ofError:
		if ev.Payload.(*agentevents.ToolReturned).Error.OK {
			return string(agentevents.ToolStatusError), false
		}
		return string(agentevents.ToolStatusOK), false
	case ofTime:
		return strconv.FormatInt(ev.Time.UnixMilli(), 10), false
	}
	return unknownWord, false
}

// attach sets the event's extra member.
func (r *reader) attach(ev *agentevents.Event) error {
	if len(r.as) > 0 {
		r.kept.addSpellings(r.as)
	}
	if len(r.kept.buf) == 0 {
		return nil
	}
	if r.extras == nil {
		r.extras = new([numShapes + 1]keptBefore)
	}
	known := &r.extras[r.sh]
	if known.text != string(r.kept.buf) {
		known.text = string(r.kept.buf)
		known.base = agentevents.Event{}
		if err := known.base.SetExtra(string(Name), agentevents.JSON("{"+known.text+"}")); err != nil {
			known.text = ""
			return err
		}
	}
	base := known.base
	if len(known.text) > longLine {
		*known = keptBefore{}
	}
	base.ID, base.Time, base.RunID, base.Scope = ev.ID, ev.Time, ev.RunID, ev.Scope
	base.AgentID, base.Actor, base.ParentAgentID, base.ParentCallID = ev.AgentID, ev.Actor, ev.ParentAgentID, ev.ParentCallID
	base.Step, base.TraceID, base.SpanID, base.ParentSpanID = ev.Step, ev.TraceID, ev.SpanID, ev.ParentSpanID
	base.CausationID, base.SchemaVersion, base.Marks, base.Payload = ev.CausationID, ev.SchemaVersion, ev.Marks, ev.Payload
	*ev = base
	return nil
}

// A keeper builds the event's extra member: the members of an object, without its
// braces.
type keeper struct {
	buf   []byte
	names []string
	many  map[string]bool // the set of names, if there are more than fewNames
}

const fewNames = 16

func (k *keeper) reset() { k.buf, k.names, k.many = k.buf[:0], k.names[:0], nil }

// add adds a member. It reports false if there is one of that name.
func (k *keeper) add(name, raw string) bool {
	if k.many[name] {
		return false
	}
	if k.many == nil {
		for _, n := range k.names {
			if n == name {
				return false
			}
		}
	}
	if k.names = append(k.names, name); k.many != nil {
		k.many[name] = true
	} else if len(k.names) > fewNames {
		k.many = make(map[string]bool, 4*fewNames)
		for _, n := range k.names {
			k.many[n] = true
		}
	}
	k.next(name)
	k.buf = append(k.buf, raw...)
	return true
}

func (k *keeper) next(name string) {
	if len(k.buf) > 0 {
		k.buf = append(k.buf, ',')
	}
	k.buf = append(jsonwire.AppendString(k.buf, name), ':')
}

func (k *keeper) has(name string) bool { return k.many[name] || slices.Contains(k.names, name) }

// addSpellings adds the members /as and /made.
func (k *keeper) addSpellings(as []spelling) {
	for _, made := range [...]bool{false, true} {
		none := true
		for _, a := range as {
			if made != (a.name == "") {
				continue
			}
			switch {
			case !none:
				k.buf = append(k.buf, ',')
			case made:
				k.next("/made")
				k.buf = append(k.buf, '[')
			default:
				k.next("/as")
				k.buf = append(k.buf, '{')
			}
			none = false
			k.buf = jsonwire.AppendString(k.buf, a.field)
			if !made {
				k.buf = jsonwire.AppendString(append(k.buf, ':'), a.name)
			}
		}
		switch {
		case none:
		case made:
			k.buf = append(k.buf, ']')
		default:
			k.buf = append(k.buf, '}')
		}
	}
}

// checkLine checks a line against the rules of the document.
func checkLine(ev *agentevents.Event, missing uint32, badTime bool, badField string) error {
	fail := func(rule agentevents.Rule, pointer, detail string) error {
		return &agentevents.RuleError{
			Rule: rule, Kind: ev.Kind(), RunID: ev.RunID, AgentID: ev.AgentID, EventID: ev.ID, Sequence: ev.Sequence, Pointer: pointer, Detail: detail,
		}
	}
	for n, name := range envelopeNames {
		if missing&(2<<n) != 0 {
			return fail(RuleEnvelope, "/"+bare(name), "is required and must not be empty")
		}
	}
	if badTime {
		return fail(RuleTimestamp, "/timestamp", "is not an RFC 3339 time")
	}
	if badField != "" {
		return fail(RuleField, "/payload/"+badField, "does not have the type that the document gives this field")
	}
	if rule, pointer, detail := contextRule(ev); rule != "" {
		return fail(rule, pointer, detail)
	}
	return nil
}

// contextRule returns the rule about workflowId and phase that an event breaks, or
// "".
func contextRule(ev *agentevents.Event) (rule agentevents.Rule, pointer, detail string) {
	phase := false
	switch ev.Payload.(type) {
	case *agentevents.WorkflowCreated, *agentevents.WorkflowApproved, *agentevents.WorkflowFinalized:
	case *agentevents.PhaseStarted, *agentevents.PhaseCompleted, *agentevents.CheckpointSaved, *agentevents.CheckpointResumed:
		phase = true
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		if ev.WorkflowID == "" {
			return "", "", ""
		}
		phase = true
	default:
		return "", "", ""
	}
	if ev.WorkflowID == "" {
		return RuleWorkflow, "/payload/workflowId", "is required in an event of a workflow"
	}
	if phase && ev.Phase == "" {
		return RulePhase, "/payload/phase", "is required in a phase, a checkpoint, and an agent of a workflow"
	}
	return "", "", ""
}
