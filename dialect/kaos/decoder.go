package kaos

import (
	"cmp"
	"errors"
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
	// Anchor is a moment of the wall clock, and AnchorSeconds is what the
	// monotonic clock of the producing process read at that moment. They turn
	// timestamps into times. With the zero Anchor, the decoder assumes that the
	// monotonic clock started at the Unix epoch: times are in 1970, their
	// differences are right, and the first event of every run has
	// "/timestamp":"monotonic" in its extra member.
	Anchor        time.Time
	AnchorSeconds float64
}

// The rules of the document that a strict decoder checks.
const (
	RuleRequired agentevents.Rule = "kaos-required" // required members are present, and ids are not empty
	RuleEnum     agentevents.Rule = "kaos-enum"     // the document lists the subject, the phase, or the kind of a memory_event
	RuleRange    agentevents.Rule = "kaos-range"    // no number is below zero, and confidences are in [0, 1]
	RulePhase    agentevents.Rule = "kaos-phase"    // start and progress have no duration, and only error has an error
	RuleFrame    agentevents.Rule = "kaos-frame"    // event and id of a frame agree with its data
)

// A Decoder turns KAOS lines into events. It implements [agentevents.Decoder]. It
// reads JSON Lines and Server-Sent Events, also mixed in one log. A Decoder is for
// one log, and must not be used concurrently.
//
// The memory of a Decoder grows with the number of runs and of open spans. It
// forgets the oldest open spans, but never one of the latest 8,192.
type Decoder struct {
	o       Options
	clock   clock
	docs    int
	ids     dialect.IDs
	numbers dialect.Numbers
	scanner jsonwire.Scanner
	unknown dialect.Unknowns
	rest    dialect.Unknowns // attributes without a field; members of an unknown type
	run     string           // the latest run id that is written without escapes
	lacks   string           // pointer of a required member that an object in a list lacks
	// after guesses the next attribute: the one that followed the last time, by
	// subject, phase and attribute.
	after [numSubjects][numPhases][numAttrs]uint8

	second secondCache
	open   openMap[spanKey, openSpan]
	taken  map[idKey]int // counts the spans in the maps of open by their id

	record bool // makes every span a SpanRecorded

	frame frame
}

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder {
	return &Decoder{o: o, clock: newClock(o.Anchor, o.AnchorSeconds), open: openMap[spanKey, openSpan]{own: ownOpen}}
}

// spanKey names a span.
type spanKey struct{ span, run string } // compared in this order

// idKey names the subject of a span.
type idKey struct {
	subject        int
	run, agent, id string
}

// openSpan is what a start says and the closing phases may leave out.
type openSpan struct {
	subject    int
	run, agent string // in which id is unique
	id         string // of the call, the step or the agent; for a handoff the agent that hands over
	tool       string // for a handoff the agent that takes over
}

// line is one JSON object, from a line or a frame, and what was read of it.
type line struct {
	text             string
	typ              string
	v                int    // variant
	end              int    // offset from which only the type is left, or 0 if unknown
	seen             uint32 // set of members: bit n for member n
	sec, ns          int64  // timestamp
	timeAt           int    // offset of the timestamp
	sequence         int64
	session          string
	run, agent       string
	plainRun         bool // the run id is new, and written without escapes
	payload          agentevents.Payload
	subject, phase   string
	sub, ph          int // the numbers of subject and phase
	span, parent     string
	name             string
	duration         agentevents.Opt[time.Duration]
	errType, errText agentevents.Opt[string]
	attrsAt          int  // offset of the attributes
	own, more        int  // members of an unknown type, before and after the member type
	mixed            bool // a member of the base follows one of them
	attrs            attrs
	esc              escalation
}

// attrs are the attributes of a span that become fields.
type attrs struct {
	has                         attrSet // bit 0: the attributes have been read
	tool, call, result, step    string
	description, subagent, task string
	from, to, reason, arguments string
	summary                     string // result_summary of a tool_call, in its JSON spelling
	value                       string // the complete result of a tool_call
	turn                        int
	isError                     bool
}

type escalation struct{ kind, reason, details, token, id string }

// errForeign is the error of an object of another format: other streams hold
// objects with a type, too.
var errForeign = errors.New("not a KAOS event: it has none of the members timestamp, sequence, session_id and run_id")

func (l *line) has(m int) bool { return l.seen&(1<<m) != 0 }

// document appends the event of one JSON object: a line, or the data of a frame.
func (d *Decoder) document(dst []agentevents.Event, from []byte) ([]agentevents.Event, error) {
	end := typeAtEnd(from) // not in text: the processor would wait for the copy
	text := string(from)
	v := variantOf(string(end))
	typ := variants[v].typ
	if v == vUnknown {
		if typ = string(end); typ == "" || strings.IndexByte(typ, '\\') >= 0 {
			var err error
			if typ, err = typeOf(text); err != nil {
				return dst, err
			}
			v = variantOf(typ)
		}
	}
	var own line // not a field of the decoder, where each store passes the write barrier
	l := &own
	l.text, l.typ, l.v = text, typ, v
	if v != vUnknown && len(end) == len(typ) {
		l.end = len(text) - len(typeName) - len(end) - len(typeEnd)
	}
	if err := d.read(l); err != nil {
		return dst, err
	}
	if l.v == vEscalation && l.esc.kind != clarification {
		*l = line{text: text, typ: typ, v: vUnknown}
		if err := d.read(l); err != nil {
			return dst, err
		}
	}
	at, ok := time.Time{}, true
	if l.has(mTimestamp) {
		if at, ok = d.clock.time(l.sec, l.ns); !ok {
			return dst, &jsonwire.SyntaxError{Offset: l.timeAt, Msg: "found a timestamp outside the years 0 to 9999"}
		}
	}
	if d.o.Strict {
		if err := d.check(l); err != nil {
			return dst, err
		}
	}
	if l.seen&(1<<mTimestamp|1<<mSequence|1<<mSessionID|1<<mRunID) == 0 {
		return dst, &agentevents.LineError{Err: errForeign}
	}
	d.docs++
	d.frame.sequence = l.sequence
	dst = append(dst, agentevents.Event{})
	ev := &dst[len(dst)-1]
	ev.ID = d.ids.Derived(text, d.docs, 0)
	ev.Sequence = d.numbers.Next(l.run)
	if l.plainRun {
		d.run = d.numbers.Run()
	}
	ev.Time = at
	ev.RunID = l.run
	ev.SessionID = l.session
	ev.AgentID = l.agent
	ev.SchemaVersion = agentevents.SchemaVersion
	if l.has(mSequence) && (l.sequence < 0 || uint64(l.sequence) != ev.Sequence) {
		d.unknown.Add("sequence", strconv.FormatInt(l.sequence, 10))
	}
	switch l.v {
	case vUnknown:
		ev.Payload = &agentevents.Unknown{Type: dialect.UnknownKind(Name, l.typ), Raw: cmp.Or(d.rest.Object(), "{}")}
		if l.own > 0 && l.more > 0 && !l.mixed {
			d.unknown.Add(afterType, strconv.Itoa(l.more))
		}
	case vSpan:
		ev.SpanID, ev.ParentSpanID = l.span, l.parent
		ev.Payload = d.spanPayload(l, ev)
	case vEscalation:
		ev.Payload = d.clarification(l)
	case vMemory:
		ev.Payload = d.memory(l)
	case vApproval:
		p := l.payload.(*agentevents.ApprovalRequested)
		if p.ApprovalID = p.CallID; p.ApprovalID == "" {
			p.ApprovalID = l.run // without a call, the approval is for the run
		}
		ev.Payload = p
	default:
		ev.Payload = l.payload
	}
	if ev.Sequence == 0 && d.o.Anchor.IsZero() {
		d.unknown.Add("/timestamp", `"monotonic"`)
	}
	if err := d.unknown.Keep(ev, Name); err != nil {
		return dst[:len(dst)-1], err
	}
	return dst, nil
}

// afterType is the entry of the extra member "kaos" that counts the members after
// the type, for an unknown type. Writers put the type last, so those members were
// added to a finished line.
const afterType = "/type"

// keep keeps an extra member of the line. It reports false if the line already has
// one of that name.
func (d *Decoder) keep(name, raw string) bool {
	if strings.HasPrefix(name, "/") {
		name = "/" + jsonwire.Token(name)
	}
	return d.unknown.Add(name, raw)
}

// unknownPrefix is what [dialect.UnknownKind] puts before a type that is the name
// of a kind.
const unknownPrefix = string(Name) + ":"

// typeAtEnd returns the type, in its JSON spelling, of an object whose last member is
// the type, as it mostly is. It returns nil for other objects. In valid JSON the text
// that it looks for can be nothing else.
func typeAtEnd(text []byte) []byte {
	tail := text[max(0, len(text)-64):]
	if len(tail) < len(typeName+typeEnd) || string(tail[len(tail)-len(typeEnd):]) != typeEnd {
		return nil
	}
	tail = tail[:len(tail)-len(typeEnd)]
	i := len(tail)
	for i > len(typeName) && tail[i-1] != '"' {
		i--
	}
	if string(tail[i-len(typeName):i]) != typeName {
		return nil
	}
	return tail[i:]
}

// The text around the type at the end of an object.
const (
	typeName = `,"type":"`
	typeEnd  = `"}`
)

// typeOf returns the type of an object.
func typeOf(text string) (string, error) {
	var s jsonwire.Scanner
	s.Reset(text)
	if err := s.Object(); err != nil {
		return "", err
	}
	for {
		name, ok, err := s.Member()
		if err != nil {
			return "", err
		}
		if !ok {
			break
		}
		if name == "type" {
			typ, err := s.String()
			if typ == "" && err == nil {
				break
			}
			return typ, err
		}
		if err := s.Skip(); err != nil {
			return "", err
		}
	}
	return "", &jsonwire.SyntaxError{Offset: max(0, strings.LastIndexByte(text, '}')), Msg: `the member "type" is missing or empty`}
}

// base is a fast path for the members with which every object begins. It stops at
// the first one that is not written as expected, and returns the last member that
// it read.
func (d *Decoder) base(s *jsonwire.Scanner, l *line) (last int, err error) {
	const (
		timestamp = `"timestamp":`
		sequence  = `,"sequence":`
		session   = `,"session_id":`
		run       = `,"run_id":`
	)
	if !strings.HasPrefix(s.Rest(), timestamp) {
		return 0, nil
	}
	s.Pass(len(timestamp))
	l.timeAt = s.Offset()
	l.seen |= 1 << mTimestamp
	if l.sec, l.ns, err = d.second.read(s); err != nil || !strings.HasPrefix(s.Rest(), sequence) {
		return mTimestamp, err
	}
	s.Pass(len(sequence))
	l.seen |= 1 << mSequence
	if l.sequence, err = s.Int(); err != nil || !strings.HasPrefix(s.Rest(), session) {
		return mSequence, err
	}
	s.Pass(len(session))
	l.seen |= 1 << mSessionID
	if l.session, err = s.String(); err != nil || !strings.HasPrefix(s.Rest(), run) {
		return mSessionID, err
	}
	s.Pass(len(run))
	l.seen |= 1 << mRunID
	return mRunID, d.readRun(s, l)
}

// readRun reads the run id. It is fast if the id is the latest one.
func (d *Decoder) readRun(s *jsonwire.Scanner, l *line) (err error) {
	if rest, end := s.Rest(), len(d.run)+1; end > 1 && len(rest) > end && rest[0] == '"' && rest[end] == '"' && rest[1:end] == d.run {
		l.run = d.run
		s.Pass(end + 1)
		return nil
	}
	s.Kind() // skips blanks
	at := s.Offset()
	l.run, err = s.String()
	l.plainRun = s.Offset()-at == len(l.run)+len(`""`)
	return err
}

// read reads an object once its type is known. Extra members go to d.unknown, the
// members of an unknown type to d.rest.
func (d *Decoder) read(l *line) error {
	s := &d.scanner
	s.Reset(l.text)
	d.unknown.Reset()
	d.rest.Reset()
	d.lacks = ""
	l.payload = newPayload(l.v)
	names := variants[l.v].names
	if err := s.Object(); err != nil {
		return err
	}
	last, err := d.base(s, l)
	if err != nil {
		return err
	}
	for {
		n, name, err := s.Field(names, last)
		if err != nil {
			return err
		}
		if n < 0 {
			return s.End()
		}
		if n == 0 {
			at := s.Offset()
			raw, err := s.Raw()
			if err != nil {
				return err
			}
			added := false
			if l.v == vUnknown {
				added = d.rest.Add(name, raw)
				if l.has(len(names)) {
					l.more++
				} else {
					l.own++
				}
			} else {
				added = d.keep(name, raw)
			}
			if !added {
				return duplicate(at, name)
			}
			continue
		}
		if l.has(n) {
			return s.Duplicate(name)
		}
		l.seen |= 1 << n
		last = n
		if n <= numBase && l.own > 0 {
			l.mixed = true
		}
		switch {
		case n == len(names):
			_, err = s.String() // the type
		case n > numBase && l.v == vSpan:
			if err = d.spanMember(s, l, n); err == nil && n < mErrorType {
				last = l.nulls(s, n)
			}
		case n > numBase:
			err = d.member(s, l, n)
		case n == mTimestamp:
			l.timeAt = s.Offset()
			l.sec, l.ns, err = d.second.read(s)
		case n == mSequence:
			l.sequence, err = s.Int()
		case n == mSessionID:
			l.session, err = s.String()
		case n == mRunID:
			err = d.readRun(s, l)
		default:
			if !s.Null() {
				l.agent, err = s.String()
			}
			if err == nil && l.v == vSpan && l.seen&(1<<mSubject|1<<mPhase) == 0 {
				if size := l.boundary(s.Rest()); size > 0 {
					s.Pass(size)
					l.seen |= 1<<mSubject | 1<<mPhase
					last, err = l.spanHead(s)
				}
			}
		}
		if err != nil {
			return err
		}
		if s.Offset() == l.end && !l.has(len(names)) {
			l.seen |= 1 << len(names)
			return nil
		}
	}
}

func duplicate(at int, name string) error {
	return &jsonwire.SyntaxError{Offset: at, Msg: "found duplicate member name " + strconv.Quote(name)}
}
