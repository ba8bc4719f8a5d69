package agentevents

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/chain"
	"github.com/agentevents/agentevents/internal/extra"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The envelope's codec, by hand; the payloads' is generated. Members are
// written in the order of envelopeFields.

// payloadOps are the functions that are generated for every payload.
type payloadOps interface {
	Payload
	appendJSON(dst []byte) []byte
	parseJSON(s *jsonwire.Scanner) error
	check() *fieldError
	reset()
	index() int // in the catalog, or -1
	hasExtra() bool
}

// kindOf returns the kind of p, and false if p is nil, a nil pointer or not a
// payload of this package.
func kindOf(p Payload) (Kind, bool) {
	o := ops(p)
	if o == nil {
		return "", false
	}
	return o.kind(), true
}

// A payloadPool has memory that parsing uses again for the next line: the scanner and, for a reader
// that keeps no payload, one payload of every kind.
type payloadPool struct {
	scanner jsonwire.Scanner
	times   jsonwire.TimeReader
	after   [envPayload + 1]uint8 // the envelope's member that came last time after another one
	reuse   bool                  // payloads too
	brief   bool                  // texts that no fold reads are not unescaped
	known   [kindCount]payloadOps
	unknown Unknown
	texts   strings.Builder // of unescaped strings, when payloads are used again
	odd     bool            // the line read last may be spelled in another way than append writes the event
	seen    uint32          // the envelope's members of the line read last
}

// get returns an empty payload of the kind.
func (pool *payloadPool) get(k Kind) payloadOps {
	if !pool.reuse {
		return ops(NewPayload(k))
	}
	i := kindIndex(k)
	if i < 0 {
		pool.unknown = Unknown{Type: k}
		return &pool.unknown
	}
	if pool.known[i] == nil {
		pool.known[i] = ops(emptyPayload(k))
	} else {
		pool.known[i].reset()
	}
	return pool.known[i]
}

// Numbers of the envelope's members, counted from 1 as in extras.
const (
	envID = 1 + iota
	envSequence
	envTimestamp
	envType
	envRunID
	envSessionID
	envTaskID
	envWorkflowID
	envPhase
	envNodeID
	envNodeRunID
	envAgentID
	envActor
	envParentAgentID
	envParentCallID
	envStep
	envTraceID
	envSpanID
	envParentSpanID
	envCausationID
	envSchemaVersion
	envMarks
	envPayload
)

var envelopeFields = [...]extra.Field{
	{Name: "id", Zero: `""`},
	{Name: "sequence", Zero: `0`},
	{Name: "timestamp", Zero: `"0001-01-01T00:00:00.000Z"`},
	{Name: "type", Zero: `""`},
	{Name: "runId", Zero: `""`},
	{Name: "sessionId"},
	{Name: "taskId"},
	{Name: "workflowId"},
	{Name: "phase"},
	{Name: "nodeId"},
	{Name: "nodeRunId"},
	{Name: "agentId"},
	{Name: "actor"},
	{Name: "parentAgentId"},
	{Name: "parentCallId"},
	{Name: "step"},
	{Name: "traceId"},
	{Name: "spanId"},
	{Name: "parentSpanId"},
	{Name: "causationId"},
	{Name: "schemaVersion"},
	{Name: "marks"},
	{Name: "payload", Zero: `{}`},
}

var envelopeNames = func() []jsonwire.Name {
	var names []string
	for _, f := range envelopeFields {
		names = append(names, f.Name)
	}
	return jsonwire.Names(names...)
}()

// envelopeRequired is the set of members that every line has. A line without
// a payload is taken as one with an empty payload.
const envelopeRequired = 1<<envID | 1<<envSequence | 1<<envTimestamp | 1<<envRunID | 1<<envPayload

// AppendJSON appends the event to dst as one JSON object without a newline,
// the line that [Writer] writes. It appends nothing and returns an error when
// the event cannot be written: a payload that is nil or not of this package,
// JSON or an id that is damaged, a time outside the years 0 to 9999.
//
// An event that a [Reader] with Verbatim set has read is written as it was spelled, as long as it
// still has the same meaning.
func (e *Event) AppendJSON(dst []byte) ([]byte, error) {
	p := ops(e.Payload)
	if p == nil {
		return dst, sealError(e.Payload)
	}
	if err := e.timeWritable(); err != nil {
		return dst, err.asError(e)
	}
	if i := p.index(); i < 0 || limited[i] {
		if err := e.writable(); err != nil {
			return dst, err.asError(e)
		}
	}
	// The cleaner without a policy checks raw JSON and takes out whitespace.
	var c cleaner
	clean, _ := cleanPayload(p, &c)
	if c.err != nil {
		return dst, c.err.in("payload").asError(e)
	}
	mark := len(dst)
	dst = e.append(dst, ops(clean))
	// Damaged ids come out as U+FFFD, which begins with this byte. Few lines
	// have it, so looking for it costs less than looking at every id before.
	if bytes.IndexByte(dst[mark:], 0xef) >= 0 {
		if err := e.writable(); err != nil {
			return dst[:mark], err.asError(e)
		}
	}
	if e.origin != "" && string(dst[mark:]) != e.origin && e.saysOrigin(dst[mark:]) {
		dst = append(dst[:mark], e.origin...)
	}
	return dst, nil
}

// saysOrigin reports whether the line that the event was read from still means the same as the
// event, whose own text is text. The line is never trusted: it is read again and compared.
func (e *Event) saysOrigin(text []byte) bool {
	var was Event
	if parseEvent(e.origin, &was, new(payloadPool)) != nil {
		return false
	}
	return string(was.append(nil, ops(was.Payload))) == string(text)
}

// append appends the event, whose payload is p.
func (e *Event) append(dst []byte, p payloadOps) []byte {
	return e.appendWith(dst, p, nil, "")
}

// appendWith is append for a caller that writes many events: times may be nil,
// and head the empty string.
func (e *Event) appendWith(dst []byte, p payloadOps, times *jsonwire.TimeWriter, head string) []byte {
	mark := len(dst)
	dst = append(dst, `{"id":`...)
	dst = jsonwire.AppendString(dst, e.ID)
	dst = append(dst, `,"sequence":`...)
	dst = jsonwire.AppendUint(dst, e.Sequence)
	dst = append(dst, `,"timestamp":`...)
	if times != nil {
		dst = times.Append(dst, e.Time)
	} else {
		dst = jsonwire.AppendTime(dst, e.Time)
	}
	dst = append(dst, `,"type":`...)
	if i := p.index(); i >= 0 { // the catalog's names are plain
		dst = append(dst, '"')
		dst = append(dst, catalog[i].Kind...)
		dst = append(dst, '"')
	} else {
		dst = jsonwire.AppendString(dst, string(p.kind()))
	}
	if head != "" {
		dst = append(dst, head...)
	} else {
		dst = e.appendHead(dst)
	}
	if e.Step.OK {
		dst = append(dst, `,"step":`...)
		dst = jsonwire.AppendInt(dst, int64(e.Step.V))
	}
	if len(e.TraceID)|len(e.SpanID)|len(e.ParentSpanID)|len(e.CausationID) != 0 {
		dst = appendOptional(dst, `,"traceId":`, e.TraceID)
		dst = appendOptional(dst, `,"spanId":`, e.SpanID)
		dst = appendOptional(dst, `,"parentSpanId":`, e.ParentSpanID)
		dst = appendOptional(dst, `,"causationId":`, e.CausationID)
	}
	if e.SchemaVersion == SchemaVersion {
		dst = append(dst, `,"schemaVersion":"`+SchemaVersion+`"`...)
	} else {
		dst = appendOptional(dst, `,"schemaVersion":`, e.SchemaVersion)
	}
	if e.Marks != 0 {
		dst = append(dst, `,"marks":`...)
		dst = e.appendMarks(dst)
	}
	if u, ok := p.(*Unknown); !ok || u.Raw != "" {
		dst = append(dst, `,"payload":`...)
		dst = p.appendJSON(dst)
	}
	dst = append(dst, '}')
	if e.extra != "" {
		dst = chain.Own(e.extra.Merge(dst, mark, envelopeFields[:]), mark)
	}
	return dst
}

// appendHead appends the members from runId to parentCallId.
func (e *Event) appendHead(dst []byte) []byte {
	dst = append(dst, `,"runId":`...)
	dst = jsonwire.AppendString(dst, e.RunID)
	// Most of these are empty in most events: one look at all of them is enough.
	if len(e.SessionID)|len(e.TaskID)|len(e.WorkflowID)|len(e.Phase)|len(e.NodeID)|len(e.NodeRunID) != 0 {
		dst = appendOptional(dst, `,"sessionId":`, e.SessionID)
		dst = appendOptional(dst, `,"taskId":`, e.TaskID)
		dst = appendOptional(dst, `,"workflowId":`, e.WorkflowID)
		dst = appendOptional(dst, `,"phase":`, e.Phase)
		dst = appendOptional(dst, `,"nodeId":`, e.NodeID)
		dst = appendOptional(dst, `,"nodeRunId":`, e.NodeRunID)
	}
	dst = appendOptional(dst, `,"agentId":`, e.AgentID)
	if len(e.Actor)|len(e.ParentAgentID)|len(e.ParentCallID) == 0 {
		return dst
	}
	dst = appendOptional(dst, `,"actor":`, e.Actor)
	dst = appendOptional(dst, `,"parentAgentId":`, e.ParentAgentID)
	return appendOptional(dst, `,"parentCallId":`, e.ParentCallID)
}

func appendOptional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return jsonwire.AppendString(append(dst, name...), value)
}

// appendMarks appends the names of the marks, and after them those that the
// line had and this version does not know.
func (e *Event) appendMarks(dst []byte) []byte {
	dst = append(dst, '[')
	mark := len(dst)
	for i, name := range markNames {
		if e.Marks&(1<<i) != 0 {
			if len(dst) > mark {
				dst = append(dst, ',')
			}
			dst = jsonwire.AppendString(dst, name)
		}
	}
	if unknown, ok := strings.CutPrefix(e.extra.Spelling("marks"), "["); ok && unknown != "]" {
		if len(dst) > mark {
			dst = append(dst, ',')
		}
		return append(dst, unknown...)
	}
	return append(dst, ']')
}

// MarshalJSON returns the event's line. Prefer [Event.AppendJSON]: it does not
// allocate, and encoding/json escapes HTML characters on the way.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// UnmarshalJSON reads a native line. The error is a [*LineError] of line 1.
func (e *Event) UnmarshalJSON(line []byte) error {
	text := chain.Text(line)
	var ev Event
	if err := parseEvent(text, &ev, new(payloadPool)); err != nil {
		return lineError(text, err)
	}
	*e = ev
	return nil
}

// An object is a payload or a value: T's pointer with the generated methods.
type object[T any] interface {
	*T
	appendJSON(dst []byte) []byte
	check() *fieldError
	clean(c *cleaner) *T
}

// appendObject appends the text of v without the whitespace in its raw JSON. It
// appends nothing and returns an error when no line can carry v.
func appendObject[T any, P object[T]](dst []byte, v P) ([]byte, *fieldError) {
	var c cleaner // without a policy it only checks raw JSON
	clean := P(v.clean(&c))
	if c.err != nil {
		return dst, c.err
	}
	// A broken rule alone does not refuse v.
	if err := v.check(); err != nil && !writable(reflect.ValueOf(v).Elem(), false) {
		return dst, err
	}
	return clean.appendJSON(dst), nil
}

// marshal is MarshalJSON of every payload and value.
func marshal[T any, P object[T]](v P) ([]byte, error) {
	text, err := appendObject(nil, v)
	if err != nil {
		p, _ := any(v).(Payload)
		return nil, err.asError(&Event{Payload: p})
	}
	return text, nil
}

// unmarshal is UnmarshalJSON of every generated struct. It leaves v as it is
// after an error, and for null, as encoding/json asks for.
func unmarshal[T any, P interface {
	*T
	parseJSON(s *jsonwire.Scanner) error
}](line []byte, v P) error {
	text := string(line)
	if text == "null" {
		return nil
	}
	var out T
	var s jsonwire.Scanner
	s.Reset(text)
	err := P(&out).parseJSON(&s)
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return lineError(text, err)
	}
	*v = out
	return nil
}

// AppendJSON appends the message to dst as it stands on a line. Like
// [Event.AppendJSON] it appends nothing and returns a [*RuleError] when JSON or
// an id is damaged.
func (m *ConversationMessage) AppendJSON(dst []byte) ([]byte, error) {
	dst, err := appendObject(dst, m)
	if err != nil {
		return dst, err.in("message").in("payload").asError(&Event{Payload: &MessageCreated{}})
	}
	return dst, nil
}

// AppendJSON appends the snapshot as one JSON object to dst. Keys of maps are
// in order, so equal snapshots have equal text.
func (r *RunSnapshot) AppendJSON(dst []byte) []byte { return r.appendJSON(dst) }

// lineError turns a scanner's error into one with a JSON pointer.
func lineError(text string, err error) *LineError {
	if damaged := jsonwire.CheckUTF8(text); damaged != nil {
		err = damaged // whatever else is wrong may come of it
	}
	le := &LineError{Line: 1, Err: err}
	var syntax *jsonwire.SyntaxError
	if errors.As(err, &syntax) {
		le.Column = syntax.Offset
		le.Pointer = jsonwire.Pointer(text, syntax.Offset)
		le.Err = errors.New(syntax.Msg)
	}
	return le
}

// parseEvent reads one native line into an empty event. Fields are substrings of
// text; the payload is the pool's. It is one function because it runs for each line: its state stays
// in local variables.
func parseEvent(text string, e *Event, pool *payloadPool) error {
	var (
		s    = &pool.scanner
		x    extra.Builder
		seen uint32
		last int
		kind Kind
		done bool // the object ends here

		payloadStart, payloadEnd int // where a payload is that came before its type
	)
	s.Reset(text)
	s.Brief = pool.brief
	if pool.reuse {
		s.Texts = &pool.texts
	}
	if err := s.Object(); err != nil {
		return err
	}
	if last, seen, kind = e.parseUsual(s, pool); last == envPayload {
		if err := e.parsePayload(s, pool.get(kind)); err != nil {
			return err
		}
		done = s.Rest() == "}"
	}
	for !done {
		n, name, err := s.FieldOf(envelopeNames, int(pool.after[last]))
		if err != nil {
			return err
		}
		if n < 0 {
			break
		}
		if n == 0 {
			if err := x.Unknown(s, last, name); err != nil {
				return err
			}
			continue
		}
		if seen&(1<<n) != 0 {
			return s.Duplicate(name)
		}
		seen |= 1 << n
		if n < last {
			s.Odd = true
		}
		pool.after[last] = uint8(n - 1)
		last = n
		if n > envRunID && n < envPayload && s.Null() {
			x.Spelled(n, name, "null")
			continue
		}
		switch n {
		case envSequence:
			e.Sequence, err = s.Uint()
		case envTimestamp:
			e.Time, err = pool.times.Time(s)
		case envType:
			var k string
			k, err = s.String()
			kind = Kind(k)
		case envStep:
			var step int64
			at := s.Offset()
			step, err = s.Int()
			if err == nil && int64(int(step)) != step {
				err = &jsonwire.SyntaxError{Offset: at, Msg: "number out of range"}
			}
			e.Step = Some(int(step))
		case envMarks:
			err = e.parseMarks(s, &x)
		case envPayload:
			if kind == "" {
				payloadStart = s.Offset()
				err = s.Skip()
				payloadEnd = s.Offset()
			} else {
				err = e.parsePayload(s, pool.get(kind))
			}
		default:
			var v string
			if v, err = s.String(); err == nil {
				*e.text(n) = v
				if v == "" && n > envRunID {
					x.Spelled(n, name, `""`)
				}
			}
		}
		if err != nil {
			return err
		}
	}
	end := s.Offset()
	if !done {
		if err := s.End(); err != nil {
			return err
		}
	}
	pool.odd, pool.seen = s.Odd, seen
	if kind == "" {
		return &jsonwire.SyntaxError{Offset: end - 1, Msg: `the member "type" is missing or empty`}
	}
	if payloadEnd > 0 {
		s.Reset(text[payloadStart:payloadEnd])
		if err := e.parsePayload(s, pool.get(kind)); err != nil {
			var syntax *jsonwire.SyntaxError
			if errors.As(err, &syntax) {
				syntax.Offset += payloadStart
			}
			return err
		}
	}
	if e.Payload == nil {
		p := pool.get(kind)
		e.Payload = p
		if _, ok := p.(*Unknown); ok {
			seen |= 1 << envPayload // an unknown kind may have none
		} else {
			s.Reset("{}")
			if err := p.parseJSON(s); err != nil {
				return err
			}
		}
	}
	if missing := envelopeRequired &^ seen; missing != 0 {
		for n := envID; n <= envPayload; n++ {
			if missing&(1<<n) != 0 {
				x.Missing(n, envelopeFields[n-1].Name)
			}
		}
	}
	e.extra = x.Members()
	return nil
}

// parseUsual reads the members that a line of this package begins with, as far as they stand there
// in order and without escapes: to compare them with constants takes less time than to parse the
// names. It returns the number of the last member, 0 if it has read none, and the set of all. If
// the last one is the payload, its value is next.
func (e *Event) parseUsual(s *jsonwire.Scanner, pool *payloadPool) (last int, seen uint32, kind Kind) {
	read := func(n int) {
		last = n
		seen |= 1 << n
	}
	var ok bool
	if e.ID, ok = s.PlainText(`"id":"`); !ok {
		return 0, 0, "" // the others have a comma before them
	}
	read(envID)
	if e.Sequence, ok = s.PlainUint(`,"sequence":`); ok {
		read(envSequence)
	}
	if e.Time, ok = pool.times.Plain(s, `,"timestamp":"`); ok {
		read(envTimestamp)
	}
	text, ok := s.PlainText(`,"type":"`)
	if ok {
		read(envType)
	}
	kind = Kind(text)
	if e.RunID, ok = s.PlainText(`,"runId":"`); ok {
		read(envRunID)
	}
	if e.AgentID, ok = s.PlainText(`,"agentId":"`); ok {
		read(envAgentID)
	}
	if step, ok := s.PlainUint(`,"step":`); ok {
		e.Step = Some(int(step))
		read(envStep)
	}
	if e.CausationID, ok = s.PlainText(`,"causationId":"`); ok {
		read(envCausationID)
	}
	if s.Literal(`,"schemaVersion":"` + SchemaVersion + `"`) {
		e.SchemaVersion = SchemaVersion
		read(envSchemaVersion)
	}
	if kind != "" && s.Literal(`,"payload":`) {
		read(envPayload)
	}
	return last, seen, kind
}

// canonical returns the text of the event that was just read from line, as
// [Fold.Apply] compares it with others. That is line itself unless the event is written in
// another way.
func (pool *payloadPool) canonical(line string) string {
	if !pool.odd {
		return line
	}
	var ev Event
	if parseEvent(line, &ev, new(payloadPool)) != nil {
		return line
	}
	return string(ev.append(nil, ops(ev.Payload)))
}

func (e *Event) parsePayload(s *jsonwire.Scanner, p payloadOps) error {
	if err := p.parseJSON(s); err != nil {
		return err
	}
	e.Payload = p
	return nil
}

func (e *Event) parseMarks(s *jsonwire.Scanner, x *extra.Builder) error {
	if err := s.Array(); err != nil {
		return err
	}
	var unknown []byte
	count := 0
next:
	for {
		ok, err := s.Elem()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		count++
		name, err := s.String()
		if err != nil {
			return err
		}
		for i, known := range markNames {
			if known == name {
				if unknown != nil || e.Marks >= 1<<i {
					s.Odd = true
				}
				e.Marks |= 1 << i
				continue next
			}
		}
		if unknown != nil {
			unknown = append(unknown, ',')
		}
		unknown = jsonwire.AppendString(unknown, name)
	}
	if unknown != nil || count == 0 {
		x.Spelled(envMarks, "marks", "["+string(unknown)+"]")
	}
	return nil
}

// text returns the envelope's text field of number n.
func (e *Event) text(n int) *string {
	switch n {
	case envID:
		return &e.ID
	case envRunID:
		return &e.RunID
	case envSessionID:
		return &e.SessionID
	case envTaskID:
		return &e.TaskID
	case envWorkflowID:
		return &e.WorkflowID
	case envPhase:
		return &e.Phase
	case envNodeID:
		return &e.NodeID
	case envNodeRunID:
		return &e.NodeRunID
	case envAgentID:
		return &e.AgentID
	case envActor:
		return &e.Actor
	case envParentAgentID:
		return &e.ParentAgentID
	case envParentCallID:
		return &e.ParentCallID
	case envTraceID:
		return &e.TraceID
	case envSpanID:
		return &e.SpanID
	case envParentSpanID:
		return &e.ParentSpanID
	case envCausationID:
		return &e.CausationID
	case envSchemaVersion:
		return &e.SchemaVersion
	}
	return nil
}

// envelopeWritable is the part of writable for the envelope.
func (e *Event) envelopeWritable() *fieldError {
	if !sound(e.ID) || !sound(e.RunID) || !sound(e.AgentID) || !sound(e.SessionID) || !sound(e.TaskID) || !sound(e.WorkflowID) ||
		!sound(e.Phase) || !sound(e.NodeID) || !sound(e.NodeRunID) || !sound(e.Actor) || !sound(e.ParentAgentID) || !sound(e.ParentCallID) ||
		!sound(e.TraceID) || !sound(e.SpanID) || !sound(e.ParentSpanID) || !sound(e.CausationID) || !sound(e.SchemaVersion) {
		for n := envID; n < envPayload; n++ {
			if s := e.text(n); s != nil && !jsonwire.ValidUTF8(*s) {
				return &fieldError{RuleFieldUTF8, "/" + envelopeFields[n-1].Name, "is not valid UTF-8"}
			}
		}
	}
	return e.timeWritable()
}

func (e *Event) timeWritable() *fieldError {
	// The years 0 to 9999 in seconds since the epoch.
	if sec := e.Time.Unix(); sec < -62167219200 || sec > 253402300799 {
		return &fieldError{RuleFieldRange, "/timestamp", "is outside the years 0 to 9999"}
	}
	return nil
}

// sound reports whether s is valid UTF-8; most envelope fields are empty.
func sound(s string) bool { return s == "" || jsonwire.ValidUTF8(s) }

// writable reports values that no line can carry, in envelope and payload: damaged ids, numbers
// that are not finite, times without a year. It is refused in every mode.
func (e *Event) writable() *fieldError {
	if err := e.envelopeWritable(); err != nil {
		return err
	}
	p := ops(e.Payload)
	err := p.check()
	if err == nil {
		return nil
	}
	// A broken rule need not keep the payload from being written; see whether
	// it holds something that does.
	if _, unknown := p.(*Unknown); unknown || !writable(reflect.ValueOf(p).Elem(), false) {
		return err.in("payload")
	}
	return nil
}

// writable looks for values that JSON cannot express; damaged text is one unless
// it is content. It is slow, and called only for payloads that break a rule.
func writable(v reflect.Value, content bool) bool {
	switch v.Kind() {
	case reflect.String:
		return content || v.Type() == reflect.TypeFor[JSON]() || jsonwire.ValidUTF8(v.String())
	case reflect.Float64:
		return !math.IsNaN(v.Float()) && !math.IsInf(v.Float(), 0)
	case reflect.Slice:
		for i := range v.Len() {
			if !writable(v.Index(i), content) {
				return false
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if !writable(it.Key(), content) || !writable(it.Value(), content) {
				return false
			}
		}
	case reflect.Struct:
		if t, ok := reflect.TypeAssert[time.Time](v); ok {
			return t.UTC().Year() >= 0 && t.UTC().Year() <= 9999
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			inside := content // a message is content, but its ids are not
			if class := f.Tag.Get("class"); class != "" {
				inside = class == "content"
			}
			if f.IsExported() && !writable(v.Field(i), inside) {
				return false
			}
		}
	}
	return true
}

// check applies the field rules to envelope and payload; sound means that the envelope's texts were
// checked already.
func (e *Event) check(p payloadOps, sound bool) *fieldError {
	if e.extra != "" {
		if err := checkLacks(e.extra, func(dst []byte) []byte { return e.append(dst, p) }); err != nil {
			return err
		}
	}
	if e.Step.OK && e.Step.V < 0 {
		return &fieldError{RuleFieldRange, "/step", strconv.Itoa(e.Step.V) + " is below 0"}
	}
	if sound {
		if err := e.timeWritable(); err != nil {
			return err
		}
	} else if err := e.envelopeWritable(); err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return err.in("payload")
	}
	return nil
}

// asError gives a field error the position of its event.
func (f *fieldError) asError(e *Event) *RuleError {
	return &RuleError{
		Rule: f.rule, Kind: e.Kind(), RunID: e.RunID, AgentID: e.AgentID, EventID: e.ID, Sequence: e.Sequence,
		Pointer: f.pointer, Detail: f.detail,
	}
}

// sealError returns the reason why a payload is not this package's.
func sealError(p Payload) *RuleError {
	detail := fmt.Sprintf("%T is not a payload of this package", p)
	if p == nil {
		detail = "the payload is nil"
	} else if payloadTypeKnown(p) {
		detail = fmt.Sprintf("the payload is a nil %T", p)
	}
	return &RuleError{Rule: RulePayload, Detail: detail}
}

// payloadTypeKnown reports whether p has one of this package's types; p may
// be a nil pointer.
func payloadTypeKnown(p Payload) bool {
	t := reflect.TypeOf(p)
	for k := range Kinds() {
		if reflect.TypeOf(emptyPayload(k.Kind)) == t {
			return true
		}
	}
	_, unknown := p.(*Unknown)
	return unknown
}

// The mechanics of Unknown, which has no struct to generate them from.

func (u *Unknown) appendJSON(dst []byte) []byte { return append(dst, u.Raw...) }

func (u *Unknown) parseJSON(s *jsonwire.Scanner) error {
	raw, err := s.Raw()
	u.Raw = JSON(raw)
	return err
}

// MarshalJSON returns the payload's text, and null when the line had none.
func (u Unknown) MarshalJSON() ([]byte, error) {
	if u.Raw == "" {
		return []byte("null"), nil
	}
	return marshal(&u)
}

// UnmarshalJSON keeps the text of any JSON value as the payload's.
func (u *Unknown) UnmarshalJSON(text []byte) error { return u.Raw.UnmarshalJSON(text) }

func (u *Unknown) reset() { *u = Unknown{} }

func (u *Unknown) index() int { return -1 }

func (u *Unknown) hasExtra() bool { return false }

func (u *Unknown) check() *fieldError {
	if u.Type == "" {
		return &fieldError{RuleFieldRequired, "", "an unknown payload needs a type"}
	}
	if kindIndex(u.Type) >= 0 {
		return &fieldError{RulePayload, "", jsonwire.Brief(string(u.Type)) + " is a known kind: use its struct"}
	}
	return checkText("type", string(u.Type))
}

func (u *Unknown) clean(c *cleaner) *Unknown {
	c.size += mostEscaped * len(u.Type)
	if u.Raw == "" {
		return u
	}
	raw, changed := c.object("payload", ClassContent, u.Raw)
	if c.err != nil {
		c.err.pointer = "" // it is the payload itself
		return u
	}
	if !changed {
		return u
	}
	return &Unknown{Type: u.Type, Raw: raw}
}
