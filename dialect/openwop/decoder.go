package openwop

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Options configure a [Decoder]. The zero Options are usable.
type Options struct {
	// Strict refuses lines that break a rule of the profile; see the Rule
	// constants. The error is an [*agentevents.InvariantError]. Without it such
	// lines are read as far as they can be.
	Strict bool
	// Profile is whose rules Strict means. Names are read in any spelling; of
	// two spellings in one payload the profile's wins.
	Profile Profile
	// Threshold is the confidence below which Strict wants a decision to be
	// escalated before its node completes; absent means [DefaultThreshold]. No
	// line says what the host goes by.
	Threshold agentevents.Opt[float64]
}

// A Decoder turns run event documents into events; it implements
// [agentevents.Decoder]. It is for one log only, without concurrent use.
type Decoder struct {
	o       Options
	lines   int
	scanner jsonwire.Scanner
	times   jsonwire.TimeCache
	unknown unknowns
	f       fields
	foreign bool // the last line was not spelled as the profile does

	envAfter [numEnvelope + 1]uint8
	after    [numVariants][numMembers + 1]uint8 // the member that came last time after another one

	open []openInterrupt // clarifications that wait for an answer
	runs map[string]*runState
}

// openInterrupt is a clarification.requested; its answer may not name it.
type openInterrupt struct{ runID, nodeID, interruptID string }

// maxOpen bounds what is remembered of a log that never answers.
const maxOpen = 1024

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder { return &Decoder{o: o} }

// fields are the members of a line.
type fields struct {
	env  set // members of the envelope that it has
	seen set // members of its payload

	eventID, runID, nodeID, typ, causationID string
	sequence                                 uint64
	time                                     time.Time

	val       [numMembers + 1]string // text and raw JSON, by member
	count     [3]int64               // sequence or attempt or iteration
	number    [3]float64             // confidence, limit, observed
	duration  time.Duration
	from, to  agentevents.AgentRef
	agent     agentevents.AgentRef
	err       agentevents.ErrorInfo
	errHas    uint8 // members of the error
	questions []agentevents.Question
	details   []byte // of node.suspended: an object without its end
	extra     string // a member that no schema has, for closed payloads
	spelled   []byte // pointers of members that could be left out
	absent    []byte
	raw       string // payload of an unknown type
	fraction  bool   // of the duration
	dataKeys  uint8
}

// Members of an error that a line had.
const (
	hasCode = 1 << iota
	hasMessage
	hasDetails
	hasRetryable
	hasErrorWord // "error" instead of "code"
)

// reset empties f for the next line. Only what was used is cleared.
func (f *fields) reset() {
	for rest := f.seen; rest != 0; rest &= rest - 1 {
		f.val[rest.lowest()] = ""
	}
	if f.seen&(refMembers|1<<mError|1<<mQuestions|1<<mData) != 0 {
		f.from, f.to, f.agent = agentevents.AgentRef{}, agentevents.AgentRef{}, agentevents.AgentRef{}
		f.err, f.questions = agentevents.ErrorInfo{}, nil
	}
	f.env, f.seen, f.errHas, f.dataKeys = 0, 0, 0, 0
	f.eventID, f.runID, f.nodeID, f.typ, f.causationID, f.raw, f.extra = "", "", "", "", "", "", ""
	f.sequence, f.duration, f.fraction = 0, 0, false
	f.time = time.Time{}
	f.details, f.spelled, f.absent = f.details[:0], f.spelled[:0], f.absent[:0]
}

// Decode appends the event of a line.
func (d *Decoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	text := string(line)
	d.lines++
	f := &d.f
	f.reset()
	d.unknown.Reset()
	d.foreign = false
	v, err := d.read(text, f)
	if err != nil {
		return dst, err
	}
	if d.o.Strict {
		if err := d.check(f, v); err != nil {
			return dst, err
		}
	}
	dst = append(dst, agentevents.Event{})
	ev := &dst[len(dst)-1]
	ev.ID, ev.Sequence, ev.Time, ev.RunID, ev.NodeID, ev.CausationID = f.eventID, f.sequence, f.time, f.runID, f.nodeID, f.causationID
	ev.SchemaVersion = agentevents.SchemaVersion
	if err := d.payload(ev, f, v, text); err != nil {
		return dst[:len(dst)-1], err
	}
	if missing := envelopeRequired &^ f.env; missing != 0 {
		d.missing(ev, f, missing, text)
	}
	if f.extra != "" && d.o.Profile != RFC0002 {
		d.unknown.Add(keptProfile, jsonwire.Quote(d.o.Profile.String()))
	}
	if len(f.spelled) > 0 {
		d.unknown.Add(keptSpelled, "["+string(f.spelled)+"]")
	}
	if len(f.absent) > 0 {
		d.unknown.Add(keptAbsent, "["+string(f.absent)+"]")
	}
	if err := d.unknown.Keep(ev); err != nil {
		return dst[:len(dst)-1], err
	}
	return dst, nil
}

// End appends nothing: every line is an event by itself.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) { return dst, nil }

// missing makes up what the line does not say and an event needs.
func (d *Decoder) missing(ev *agentevents.Event, f *fields, missing set, text string) {
	d.foreign = true
	if missing.has(eEventID) {
		ev.ID = dialect.DerivedID(text, d.lines, 0)
	}
	if missing.has(eSequence) {
		ev.Sequence = uint64(d.lines - 1)
	}
	for rest := missing; rest != 0; rest &= rest - 1 {
		f.absent = appendPointer(f.absent, "", envelopeNames[rest.lowest()-1])
	}
}

// read reads a line and returns its variant.
func (d *Decoder) read(text string, f *fields) (v int, err error) {
	s := &d.scanner
	s.Reset(text)
	if err := s.Object(); err != nil {
		return 0, err
	}
	var (
		last               int
		early, earlyLength int // a payload that came before its type
		typed              bool
	)
	for {
		m, name, err := s.Field(envelopeNames[:], int(d.envAfter[last]))
		if err != nil {
			return 0, err
		}
		if m < 0 {
			break
		}
		if m == 0 {
			if err := d.keep(s, envelopeKey(name), name); err != nil {
				return 0, err
			}
			if f.extra == "" && d.o.Profile == SchemaV2 {
				f.extra = "/" + jsonwire.Token(name)
			}
			continue
		}
		if f.env.has(m) {
			return 0, s.Duplicate(name)
		}
		d.envAfter[last], last = uint8(m-1), m
		f.env |= 1 << m
		switch m {
		case eEventID:
			f.eventID, err = s.String()
		case eRunID:
			f.runID, err = s.String()
		case eNodeID:
			if f.nodeID, err = s.String(); err == nil && f.nodeID == "" {
				f.spelled = appendPointer(f.spelled, "", `"nodeId":`)
			}
		case eType:
			at := s.Offset()
			if f.typ, err = s.String(); err == nil && f.typ == "" {
				err = &jsonwire.SyntaxError{Offset: at, Msg: "found an empty type"}
			}
			v, typed = variantOf(f.typ), true
		case ePayload:
			if !typed {
				early = s.Offset()
				err = s.Skip()
				earlyLength = s.Offset() - early
				break
			}
			v, err = d.readPayload(s, f, v)
		case eTimestamp:
			f.time, err = d.times.Time(s)
		case eSequence:
			f.sequence, err = sequence(s)
		case eSchemaVersion, eEngineVersion:
			if k := s.Kind(); k != '0' && (m == eSchemaVersion || k != '"') {
				_, err = s.Uint() // for its error
				if err == nil {
					err = &jsonwire.SyntaxError{Offset: s.Offset(), Msg: "found a negative number"}
				}
				break
			}
			var raw string
			if raw, err = s.Raw(); err == nil && (m != eSchemaVersion || raw != "1" || d.o.Profile != SchemaV2) {
				d.unknown.Add(name, raw)
			}
		case eCausationID:
			if f.causationID, err = s.String(); err == nil && f.causationID == "" {
				f.spelled = appendPointer(f.spelled, "", `"causationId":`)
			}
		}
		if err != nil {
			return 0, err
		}
	}
	end := s.Offset()
	if err := s.End(); err != nil {
		return 0, err
	}
	if !typed {
		return 0, &jsonwire.SyntaxError{Offset: end - 1, Msg: `the member "type" is missing`}
	}
	if d.o.Profile == SchemaV2 && !f.env.has(eSchemaVersion) {
		d.foreign = true
		f.absent = appendPointer(f.absent, "", `"schemaVersion":`)
	}
	switch {
	case earlyLength > 0:
		s.Reset(text[early : early+earlyLength])
		if v, err = d.readPayload(s, f, v); err != nil {
			if syntax, ok := err.(*jsonwire.SyntaxError); ok {
				syntax.Offset += early
			}
			return 0, err
		}
	case !f.env.has(ePayload) && v != vUnknown:
		s.Reset("{}")
		if v, err = d.readPayload(s, f, v); err != nil {
			return 0, err
		}
	}
	return v, nil
}

// keep keeps the next value as a member that is not known.
func (d *Decoder) keep(s *jsonwire.Scanner, key, name string) error {
	at := s.Offset()
	raw, err := s.Raw()
	if err != nil {
		return err
	}
	if !d.unknown.Add(key, raw) {
		return &jsonwire.SyntaxError{Offset: at, Msg: fmt.Sprintf("found duplicate member name %q", name)}
	}
	return nil
}

// sequence reads a whole number from 0 on. 3.0 is one too.
func sequence(s *jsonwire.Scanner) (uint64, error) {
	n, err := s.Uint()
	if err == nil || s.Kind() != '0' {
		return n, err
	}
	at := s.Offset()
	f, ferr := s.Float()
	if ferr == nil && f == math.Trunc(f) && f < 1<<53 {
		return uint64(f), nil
	}
	return 0, &jsonwire.SyntaxError{Offset: at, Msg: "found a number that is no whole number in range"}
}

// readPayload reads the payload of a line whose type stands for v. It returns
// what the payload really is.
func (d *Decoder) readPayload(s *jsonwire.Scanner, f *fields, v int) (int, error) {
	switch v {
	case vAskRequested, vAskResolved, vClarRequested, vClarResolved, vApprovalRequested, vApprovalGranted, vApprovalRejected, vMessage:
		v = look(*s, f.typ, v)
	}
	if v == vUnknown {
		return v, d.readUnknown(s, f)
	}
	if v == vNodeSuspended {
		check := *s // its members are put together as text, so names are looked at first
		if err := check.Skip(); err != nil {
			return v, err
		}
	}
	if err := s.Object(); err != nil {
		return v, err
	}
	var (
		known = variants[v].members
		after = &d.after[v]
		last  int
	)
	for {
		m, name, err := s.Field(memberNames[:], int(after[last]))
		if err != nil {
			return v, err
		}
		if m < 0 {
			break
		}
		if m == 0 || !known.has(m) {
			if v == vNodeSuspended {
				raw, err := s.Raw()
				if err != nil {
					return v, err
				}
				f.detail(name, raw)
			} else if err := d.keep(s, "/payload/"+jsonwire.Token(name), name); err != nil {
				return v, err
			}
			if vs := &variants[v]; f.extra == "" && vs.closed(d.o.Profile) && !vs.declares(name) && (d.o.Profile == SchemaV1 || vs.sealed || !hatch(name)) {
				f.extra = "/payload/" + jsonwire.Token(name)
			}
			continue
		}
		if f.seen.has(m) {
			return v, s.Duplicate(name)
		}
		after[last], last = uint8(m-1), m
		f.seen |= 1 << m
		if err := d.member(s, m, f, v); err != nil {
			return v, err
		}
	}
	return v, nil
}

// detail adds a member to the details of a node.suspended.
func (f *fields) detail(name, raw string) {
	if len(f.details) == 0 {
		f.details = append(f.details, '{')
	} else {
		f.details = append(f.details, ',')
	}
	f.details = jsonwire.AppendString(f.details, name)
	f.details = append(append(f.details, ':'), raw...)
}

// member reads the value of a member of the payload.
func (d *Decoder) member(s *jsonwire.Scanner, m int, f *fields, v int) (err error) {
	switch bit := set(1) << m; {
	case bit&textMembers != 0:
		f.val[m], err = s.String()
	case m == mData:
		err = d.data(s, f, v)
	case bit&rawMembers != 0:
		f.val[m], err = s.Raw()
	case bit&countMembers != 0:
		var n uint64
		at := s.Offset()
		if n, err = sequence(s); err == nil && n > math.MaxInt32 && (strconv.IntSize == 32 || n > 1<<53) {
			err = &jsonwire.SyntaxError{Offset: at, Msg: "number out of range"}
		}
		f.count[countIndex(m)] = int64(n)
	case bit&floatMembers != 0:
		f.number[numberIndex(m)], err = s.Float()
	case bit&durationMembers != 0:
		f.duration, err = s.Millis()
		f.fraction = f.duration%time.Millisecond != 0
	case m == mError:
		err = d.errorInfo(s, f)
	case m == mFrom:
		err = agentRef(s, &f.from)
	case m == mTo:
		err = agentRef(s, &f.to)
	case m == mAgent:
		err = agentRef(s, &f.agent)
	case m == mQuestions:
		err = d.readQuestions(s, f, "/payload/questions/")
	}
	return err
}

func countIndex(m int) int {
	switch m {
	case mSequence:
		return 0
	case mAttempt:
		return 1
	}
	return 2
}

func numberIndex(m int) int {
	switch m {
	case mConfidence:
		return 0
	case mLimit:
		return 1
	}
	return 2
}

// readUnknown keeps the payload of a type that the vocabulary does not have,
// and takes the agent from it.
func (d *Decoder) readUnknown(s *jsonwire.Scanner, f *fields) (err error) {
	if f.raw, err = s.Raw(); err == nil {
		f.val[mAgentID] = agentOf(f.raw)
		f.seen |= 1 << mAgentID // so that it is cleared
	}
	return err
}

// agentOf returns the agentId of a payload, or "".
func agentOf(raw string) string {
	if !strings.Contains(raw, `"agentId"`) {
		return ""
	}
	id := ""
	jsonwire.Members(raw, func(name, value string) {
		if name == "agentId" && strings.HasPrefix(value, `"`) {
			id = jsonwire.Text(value)
		}
	})
	return id
}

// look returns what the payload that s reads next makes of a type that has
// several forms.
func look(s jsonwire.Scanner, typ string, v int) int {
	if v == vMessage {
		if isMessage(s) {
			return v
		}
		return vUnknown
	}
	if s.Kind() != '{' {
		if v == vAskRequested || v == vAskResolved {
			return vUnknown
		}
		return v
	}
	raw, err := s.Raw()
	if err != nil {
		return v // read again, for the error
	}
	var (
		has            set
		kind, decision string
	)
	jsonwire.Members(raw, func(name, text string) {
		switch name {
		case "kind":
			has |= 1 << mKind
			kind = jsonwire.Text(text)
		case "data":
			has |= 1 << mData
		case "decision":
			decision = jsonwire.Text(text)
		case "resumeValue":
			has |= 1 << mResumeValue
		case "interruptId":
			has |= 1 << mInterruptID
		case "gateId":
			has |= 1 << mGateID
		}
	})
	switch v {
	case vClarRequested:
		if kind == kindClarification && has.has(mData) {
			return vAskRequested
		}
		return v
	case vClarResolved:
		if has.has(mResumeValue) {
			return vAskResolved
		}
		return v
	case vApprovalRequested:
		if kind == kindApproval && has.has(mData) {
			return vPermitRequested
		}
		return v
	case vApprovalGranted, vApprovalRejected:
		if decision == "" || has.has(mGateID) || !has.has(mInterruptID) {
			return v
		}
	}
	requested := typ == "interrupt.requested"
	switch {
	case kind == kindClarification && requested:
		return vAskRequested
	case kind == kindClarification:
		return vAskResolved
	case kind == kindApproval && requested:
		return vPermitRequested
	case (kind == kindApproval || v != vAskResolved) && (decision == "granted" || decision == "rejected"):
		return vPermitResolved
	}
	return vUnknown
}

// isMessage reports whether the payload that s is before writes a message to
// the channel of messages.
func isMessage(s jsonwire.Scanner) bool {
	if s.Kind() != '{' || s.Object() != nil {
		return false
	}
	channel, value := false, false
	for !channel || !value {
		name, ok, err := s.Member()
		if err != nil || !ok {
			return false
		}
		switch name {
		case "channel":
			text, err := s.String()
			if err != nil || text != MessageChannel {
				return false
			}
			channel = true
			continue
		case "value":
			if value = textAhead(s, "messageId"); !value {
				return false
			}
		}
		if s.Skip() != nil {
			return false
		}
	}
	return true
}

// hasText reports whether an object has a member of that name that is a
// string.
func hasText(object, member string) bool {
	var s jsonwire.Scanner
	s.Reset(object)
	return textAhead(s, member)
}

// textAhead is hasText for the value that s is before.
func textAhead(s jsonwire.Scanner, member string) bool {
	if s.Kind() != '{' || s.Object() != nil {
		return false
	}
	for {
		name, ok, err := s.Member()
		if err != nil || !ok {
			return false
		}
		if name == member {
			return s.Kind() == '"'
		}
		if s.Skip() != nil {
			return false
		}
	}
}

// data reads the data of an interrupt.requested.
func (d *Decoder) data(s *jsonwire.Scanner, f *fields, v int) error {
	if err := s.Object(); err != nil {
		return err
	}
	for {
		name, ok, err := s.Member()
		if err != nil || !ok {
			return err
		}
		switch {
		case v == vAskRequested && name == "questions":
			if f.dataKeys&1 != 0 {
				return s.Duplicate(name)
			}
			f.dataKeys |= 1
			err = d.readQuestions(s, f, "/payload/data/questions/")
		case v == vPermitRequested && name == "title":
			if f.dataKeys&2 != 0 {
				return s.Duplicate(name)
			}
			f.dataKeys |= 2
			f.val[mTitle], err = s.String()
			f.seen |= 1 << mTitle
		default:
			err = d.keep(s, "/payload/data/"+jsonwire.Token(name), name)
		}
		if err != nil {
			return err
		}
	}
}

// readQuestions reads a list of questions. What a question says beyond the
// vocabulary is kept under at.
func (d *Decoder) readQuestions(s *jsonwire.Scanner, f *fields, at string) error {
	if err := s.Array(); err != nil {
		return err
	}
	f.questions = []agentevents.Question{}
	for i := 0; ; i++ {
		ok, err := s.Elem()
		if err != nil || !ok {
			return err
		}
		if err := s.Object(); err != nil {
			return err
		}
		var (
			q    agentevents.Question
			seen set
		)
		for {
			n, name, err := s.Field(questionNames[:], 0)
			if err != nil {
				return err
			}
			if n < 0 {
				break
			}
			if n > 0 && seen.has(n) {
				return s.Duplicate(name)
			}
			seen |= 1 << n
			switch n {
			case 1:
				q.ID, err = s.String()
			case 2:
				q.Question, err = s.String()
			case 3:
				var raw string
				raw, err = s.Raw()
				q.Schema = agentevents.JSON(raw)
			default:
				err = d.keep(s, at+strconv.Itoa(i)+"/"+jsonwire.Token(name), name)
			}
			if err != nil {
				return err
			}
		}
		if !seen.has(1) || !seen.has(2) {
			f.dataKeys |= badQuestion
		}
		f.questions = append(f.questions, q)
	}
}

const badQuestion = 1 << 7

var questionNames = [...]string{`"id":`, `"question":`, `"schema":`}

var errorNames = [...]string{`"code":`, `"message":`, `"details":`, `"retryable":`, `"error":`}

// errorInfo reads an error. Its class is called code, and error where the
// ErrorEnvelope of HTTP answers is used.
func (d *Decoder) errorInfo(s *jsonwire.Scanner, f *fields) error {
	if err := s.Object(); err != nil {
		return err
	}
	var word string
	last := 0
	for {
		n, name, err := s.Field(errorNames[:], last)
		if err != nil {
			return err
		}
		if n < 0 {
			break
		}
		last = n
		if n > 0 {
			if f.errHas&(1<<(n-1)) != 0 {
				return s.Duplicate(name)
			}
			f.errHas |= 1 << (n - 1)
		}
		switch n {
		case 1:
			f.err.Code, err = s.String()
		case 2:
			f.err.Message, err = s.String()
		case 3:
			var raw string
			raw, err = s.Raw()
			f.err.Details = agentevents.JSON(raw)
		case 4:
			var b bool
			b, err = s.Bool()
			f.err.Retryable = agentevents.Some(b)
		case 5:
			word, err = s.String()
		default:
			err = d.keep(s, "/payload/error/"+jsonwire.Token(name), name)
			if f.extra == "" && d.o.Profile == SchemaV2 && !hatch(name) {
				f.extra = "/payload/error/" + jsonwire.Token(name)
			}
		}
		if err != nil {
			return err
		}
	}
	switch {
	case f.errHas&hasErrorWord == 0:
	case f.errHas&hasCode == 0:
		f.err.Code = word
		f.spelled = appendPointer(f.spelled, "/payload/error", `"error":`)
	default:
		d.unknown.Add("/payload/error/error", jsonwire.Quote(word))
	}
	if f.errHas&(hasCode|hasErrorWord) == hasCode && f.err.Code == "" {
		f.spelled = appendPointer(f.spelled, "/payload/error", `"code":`)
	}
	if f.errHas&(hasCode|hasErrorWord) == 0 {
		f.absent = appendPointer(f.absent, "/payload/error", `"code":`)
	}
	if f.errHas&hasMessage == 0 {
		f.absent = appendPointer(f.absent, "/payload/error", `"message":`)
	}
	return nil
}

var refNames = [...]string{`"agentId":`, `"agentSharing":`, `"memoryRef":`, `"modelClass":`}

// agentRef reads an AgentRef. One with members that the vocabulary does not
// have keeps them itself.
func agentRef(s *jsonwire.Scanner, ref *agentevents.AgentRef) error {
	start := s.Offset()
	if err := s.Object(); err != nil {
		return err
	}
	var (
		seen set
		odd  bool
	)
	for last := 0; ; {
		n, name, err := s.Field(refNames[:], last)
		if err != nil {
			return err
		}
		if n < 0 {
			break
		}
		last = n
		if n > 0 && seen.has(n) {
			return s.Duplicate(name)
		}
		seen |= 1 << n
		var text string
		if n == 0 {
			odd = true
			err = s.Skip()
		} else if text, err = s.String(); text == "" {
			odd = true
		}
		if err != nil {
			return err
		}
		switch n {
		case 1:
			ref.AgentID = text
		case 2:
			ref.AgentSharing = agentevents.AgentSharing(text)
		case 3:
			ref.MemoryRef = text
		case 4:
			ref.ModelClass = agentevents.ModelClass(text)
		}
	}
	if odd || !seen.has(1) {
		if err := ref.UnmarshalJSON([]byte(s.Text()[start:s.Offset()])); err != nil {
			return &jsonwire.SyntaxError{Offset: start, Msg: err.Error()}
		}
	}
	return nil
}

// payload builds the payload of the event.
func (d *Decoder) payload(ev *agentevents.Event, f *fields, v int, text string) error {
	some := f.seen.has
	vs := &variants[v]
	ev.AgentID = f.val[mAgentID]
	if v == vUnknown {
		if !f.env.has(ePayload) {
			f.raw = ""
		}
		ev.Payload = &agentevents.Unknown{Type: unknownType(f.typ), Raw: agentevents.JSON(f.raw)}
		return nil
	}
	if vs.members.has(mNodeID) {
		d.node(ev, f)
	}
	if lacks := (vs.required(d.o.Profile)|vs.usual&^(1<<mNodeID))&^f.seen != 0; lacks {
		d.lacks(f, v)
	}
	d.form(f, v)

	toolID := f.val[mToolID]
	if some(mToolName) {
		toolID = d.either(f, mToolID, mToolName)
	}
	switch v {
	case vReasoned:
		ev.Payload = &agentevents.AgentReasoned{Reasoning: f.val[mReasoning], Verbosity: agentevents.Verbosity(d.opt(f, mVerbosity))}
	case vDelta:
		p := &agentevents.AgentReasoningDelta{Delta: f.val[mDelta], Verbosity: agentevents.Verbosity(d.opt(f, mVerbosity))}
		if some(mSequence) {
			p.Index = agentevents.Some(int(f.count[0]))
		}
		ev.Payload = p
	case vToolCalled:
		ev.Payload = &agentevents.ToolCalled{
			CallID: f.val[mCallID], ToolID: toolID, Arguments: agentevents.JSON(d.either(f, mArguments, mInputs)),
			ArgsHash: d.opt(f, mArgsHash), Principal: d.opt(f, mPrincipal), Transport: agentevents.Transport(d.opt(f, mTransport)),
		}
	case vToolReturned:
		p := &agentevents.ToolReturned{CallID: f.val[mCallID], ToolID: toolID, Result: agentevents.JSON(d.either(f, mResult, mOutcome)), Status: agentevents.ToolOK}
		if some(mError) {
			p.Error = agentevents.Some(f.err)
			p.Status = agentevents.ToolError
		}
		if some(mStatus) {
			if word := agentevents.ToolStatus(f.val[mStatus]); word != p.Status {
				p.Status = word
			} else {
				f.spell(mStatus)
			}
		}
		if some(mDurationMs) {
			p.Duration = agentevents.Some(f.duration)
		}
		ev.Payload = p
	case vHandoff:
		p := &agentevents.AgentHandoff{From: f.from, To: f.to, Reason: d.opt(f, mReason), Context: agentevents.JSON(f.val[mContext])}
		d.refOrID(f, &p.From, mFrom, mFromAgentID)
		d.refOrID(f, &p.To, mTo, mToAgentID)
		if ev.AgentID == "" {
			ev.AgentID = p.From.AgentID
		} else if ev.AgentID == p.From.AgentID {
			f.spell(mAgentID)
		}
		ev.Payload = p
	case vDecided:
		p := &agentevents.AgentDecided{Decision: agentevents.JSON(f.val[mDecision]), Reasoning: d.opt(f, mReasoning)}
		if some(mConfidence) {
			p.Confidence = agentevents.Some(f.number[0])
		}
		ev.Payload = p
	case vNodeStarted:
		p := &agentevents.NodeStarted{TypeID: d.opt(f, mTypeID), Agent: d.ref(f)}
		if some(mAttempt) {
			p.Attempt = agentevents.Some(int(f.count[1]))
		}
		ev.Payload = p
	case vNodeCompleted:
		p := &agentevents.NodeCompleted{Outputs: agentevents.JSON(f.val[mOutputs]), Agent: d.ref(f)}
		if some(mDurationMs) {
			p.Duration = agentevents.Some(f.duration)
		}
		ev.Payload = p
	case vNodeFailed:
		ev.Payload = &agentevents.NodeFailed{Error: f.err}
	case vNodeSkipped:
		ev.Payload = &agentevents.NodeSkipped{Reason: d.opt(f, mReason)}
	case vNodeSuspended:
		p := &agentevents.NodeSuspended{Reason: d.opt(f, mReason)}
		if len(f.details) > 0 {
			p.Details = agentevents.JSON(f.details) + "}"
		}
		ev.Payload = p
	case vCapBreached:
		p := &agentevents.CapBreached{Cap: f.val[mKind]}
		if some(mLimit) {
			p.Limit = agentevents.Some(f.number[1])
		}
		if some(mObserved) {
			p.Observed = agentevents.Some(f.number[2])
		}
		ev.Payload = p
	case vOrchestrator:
		p := &agentevents.OrchestratorDecided{Decision: agentevents.JSON(f.val[mDecision])}
		if some(mIteration) {
			p.Iteration = agentevents.Some(int(f.count[2]))
		}
		ev.Payload = p
	case vClarRequested, vAskRequested:
		p := &agentevents.ClarificationRequested{InterruptID: f.val[mInterruptID], Questions: f.questions}
		if v == vAskRequested {
			p.InterruptID = f.val[mKey]
		}
		if p.InterruptID == "" {
			p.InterruptID = dialect.DerivedID(text, d.lines, 1)
		}
		d.opened(ev, p.InterruptID)
		ev.Payload = p
	case vClarResolved, vAskResolved:
		p := &agentevents.ClarificationResolved{InterruptID: f.val[mInterruptID], Answers: agentevents.JSON(f.val[mAnswers]), AnsweredBy: d.opt(f, mAnsweredBy)}
		if v == vAskResolved {
			p.Answers = agentevents.JSON(f.val[mResumeValue])
		}
		if p.InterruptID = d.closed(ev, p.InterruptID); p.InterruptID == "" {
			p.InterruptID = dialect.DerivedID(text, d.lines, 1)
		}
		ev.Payload = p
	case vRunStarted:
		ev.WorkflowID = d.opt(f, mWorkflowID)
		ev.Payload = &agentevents.RunStarted{Inputs: agentevents.JSON(f.val[mInputs])}
	case vRunPaused:
		ev.Payload = &agentevents.RunPaused{Reason: d.opt(f, mReason)}
	case vRunResumed:
		ev.Payload = &agentevents.RunResumed{Message: d.opt(f, mMessage)}
	case vRunCompleted:
		ev.Payload = &agentevents.RunCompleted{Outputs: agentevents.JSON(f.val[mOutputs])}
	case vRunFailed:
		p := &agentevents.RunFailed{}
		if some(mError) {
			p.Error = agentevents.Some(f.err)
		}
		ev.Payload = p
	case vRunCancelled:
		ev.Payload = &agentevents.RunCancelled{Reason: d.opt(f, mReason)}
	case vApprovalRequested:
		p := &agentevents.ApprovalRequested{
			ApprovalID: f.val[mInterruptID], Action: d.opt(f, mTitle), Reason: d.opt(f, mReason), Scope: d.opt(f, mScope), Risk: d.opt(f, mRisk),
			CallID: d.opt(f, mCallID), ToolID: d.opt(f, mToolID), Arguments: agentevents.JSON(f.val[mArguments]),
		}
		if some(mTimeoutMs) {
			p.Timeout = agentevents.Some(f.duration)
		}
		if p.ApprovalID == "" {
			p.ApprovalID = dialect.DerivedID(text, d.lines, 1)
		}
		ev.Payload = p
	case vPermitRequested:
		p := &agentevents.ApprovalRequested{ApprovalID: f.val[mKey], Action: f.val[mTitle]}
		if some(mTimeoutMs) {
			p.Timeout = agentevents.Some(f.duration)
		}
		if p.ApprovalID == "" {
			p.ApprovalID = dialect.DerivedID(text, d.lines, 1)
		}
		ev.Payload = p
	case vApprovalGranted, vApprovalRejected, vPermitResolved:
		id, feedback := f.val[mGateID], ""
		if v == vPermitResolved {
			id = f.val[mInterruptID]
		}
		if id == "" {
			id = dialect.DerivedID(text, d.lines, 1)
		}
		if some(mReason) {
			feedback = d.opt(f, mReason)
		}
		if v == vApprovalGranted || v == vPermitResolved && jsonwire.Text(f.val[mDecision]) == "granted" {
			ev.Payload = &agentevents.ApprovalGranted{ApprovalID: id, ApprovedBy: d.opt(f, mPrincipal), Feedback: feedback}
		} else {
			ev.Payload = &agentevents.ApprovalRejected{ApprovalID: id, RejectedBy: d.opt(f, mPrincipal), Feedback: feedback}
		}
	case vMessage:
		m, err := ParseMessage([]byte(f.val[mValue]))
		if err != nil {
			if syntax, ok := err.(*jsonwire.SyntaxError); ok {
				syntax.Offset += max(0, strings.Index(text, f.val[mValue]))
			}
			return err
		}
		if r := f.val[mReducer]; r != reducer(d.o.Profile) && some(mReducer) {
			d.unknown.Add("/payload/reducer", jsonwire.Quote(r))
		}
		if w := f.val[mWrittenAt]; some(mWrittenAt) && w != jsonwire.Text(string(jsonwire.AppendTime(nil, f.time))) {
			d.unknown.Add("/payload/writtenAt", jsonwire.Quote(w))
		}
		ev.Payload = &agentevents.MessageCreated{Message: m}
	}
	if vs.members.has(mAgentID) && some(mAgentID) && f.val[mAgentID] == "" {
		f.spell(mAgentID)
	}
	return nil
}

func reducer(p Profile) string {
	if p == RFC0002 {
		return reducerRFC
	}
	return reducerSchema
}

// node takes the node from the envelope or the payload.
func (d *Decoder) node(ev *agentevents.Event, f *fields) {
	id := f.val[mNodeID]
	switch {
	case !f.seen.has(mNodeID):
		if ev.NodeID != "" {
			f.absent = appendPointer(f.absent, "/payload", memberNames[mNodeID-1])
		}
	case ev.NodeID == "":
		ev.NodeID = id
		if id == "" {
			f.spell(mNodeID)
		} else if !f.env.has(eNodeID) {
			f.absent = appendPointer(f.absent, "", `"nodeId":`)
		}
	case ev.NodeID != id:
		d.unknown.Add("/payload/nodeId", jsonwire.Quote(id))
	}
}

// lacks notes the members that the line should have and has not.
func (d *Decoder) lacks(f *fields, v int) {
	vs := &variants[v]
	has := f.seen
	for _, pair := range spellings {
		if vs.members.has(pair.rfc) && vs.members.has(pair.published) && f.seen&(1<<pair.rfc|1<<pair.published) != 0 {
			has |= 1<<pair.rfc | 1<<pair.published
		}
	}
	for rest := (vs.required(d.o.Profile) | vs.usual&^(1<<mNodeID)) & vs.members &^ has; rest != 0; rest &= rest - 1 {
		if m := rest.lowest(); m != mNodeID || f.nodeID == "" {
			f.absent = appendPointer(f.absent, "/payload", memberNames[slot(m)-1])
		}
	}
}

// spellings are the members that the RFC and the schemas call differently.
var spellings = [...]struct{ rfc, published int }{
	{mToolID, mToolName}, {mArguments, mInputs}, {mResult, mOutcome}, {mFrom, mFromAgentID}, {mTo, mToAgentID},
}

// slot returns the RFC's member of a spelling.
func slot(m int) int {
	switch m {
	case mToolName:
		return mToolID
	case mOutcome:
		return mResult
	case mFromAgentID:
		return mFrom
	case mToAgentID:
		return mTo
	}
	return m
}

// form notes a type or spelling that is not the profile's.
func (d *Decoder) form(f *fields, v int) {
	p := d.o.Profile
	want := typeName(v, p)
	switch v {
	case vClarRequested, vClarResolved, vApprovalRequested, vApprovalGranted, vApprovalRejected:
		d.foreign = d.foreign || p == SchemaV2
	case vAskRequested, vPermitRequested, vAskResolved, vPermitResolved:
		if p != SchemaV2 || f.typ != want {
			d.unknown.Add(keptType, jsonwire.Quote(f.typ))
		}
	default:
		d.foreign = d.foreign || f.typ != want
	}
	other := set(1<<mToolID | 1<<mArguments | 1<<mResult | 1<<mFrom | 1<<mTo)
	if p == RFC0002 {
		other = 1<<mToolName | 1<<mInputs | 1<<mOutcome | 1<<mFromAgentID | 1<<mToAgentID
	}
	switch v {
	case vToolCalled, vToolReturned, vHandoff:
		d.foreign = d.foreign || f.seen&other != 0
	}
}

// opt returns an optional text. One that is there and empty is noted.
func (d *Decoder) opt(f *fields, m int) string {
	if f.seen.has(m) && f.val[m] == "" {
		f.spell(m)
	}
	return f.val[m]
}

func (f *fields) spell(m int) { f.spelled = appendPointer(f.spelled, "/payload", memberNames[m-1]) }

// either returns the value that stands in one of two spellings. Of both the
// profile's is returned, and the other one kept.
func (d *Decoder) either(f *fields, rfc, published int) string {
	if !f.seen.has(published) {
		return f.val[rfc]
	}
	if !f.seen.has(rfc) {
		return f.val[published]
	}
	win, lose := published, rfc
	if d.o.Profile == RFC0002 {
		win, lose = rfc, published
	}
	raw := f.val[lose]
	if textMembers.has(lose) {
		raw = jsonwire.Quote(raw)
	}
	d.unknown.Add("/payload/"+memberName(lose), raw)
	return f.val[win]
}

// refOrID is either for an AgentRef and an id.
func (d *Decoder) refOrID(f *fields, ref *agentevents.AgentRef, rfc, published int) {
	switch {
	case !f.seen.has(published):
	case !f.seen.has(rfc):
		*ref = agentevents.AgentRef{AgentID: f.val[published]}
	case d.o.Profile == RFC0002:
		d.unknown.Add("/payload/"+memberName(published), jsonwire.Quote(f.val[published]))
	default:
		raw, _ := ref.MarshalJSON() // never fails
		d.unknown.Add("/payload/"+memberName(rfc), string(raw))
		*ref = agentevents.AgentRef{AgentID: f.val[published]}
	}
}

func (d *Decoder) ref(f *fields) agentevents.Opt[agentevents.AgentRef] {
	if !f.seen.has(mAgent) {
		return agentevents.Opt[agentevents.AgentRef]{}
	}
	return agentevents.Some(f.agent)
}

// opened remembers a clarification, because its answer may name the node only.
func (d *Decoder) opened(ev *agentevents.Event, id string) {
	if len(d.open) == maxOpen {
		d.open = append(d.open[:0], d.open[maxOpen/2:]...)
	}
	d.open = append(d.open, openInterrupt{ev.RunID, ev.NodeID, id})
}

// closed returns the id of the clarification that is answered: id itself, or
// that of the latest one of the node.
func (d *Decoder) closed(ev *agentevents.Event, id string) string {
	for i := len(d.open) - 1; i >= 0; i-- {
		if o := d.open[i]; o.runID == ev.RunID && (id == o.interruptID || id == "" && o.nodeID == ev.NodeID) {
			d.open = append(d.open[:i], d.open[i+1:]...)
			return o.interruptID
		}
	}
	return id
}

// unknownType is the kind of a type that the vocabulary does not have. A name
// that the vocabulary has given to something else gets a prefix.
func unknownType(typ string) agentevents.Kind {
	k := agentevents.Kind(typ)
	if _, taken := k.Info(); taken || strings.HasPrefix(typ, unknownPrefix) {
		return agentevents.Kind(unknownPrefix) + k
	}
	return k
}

const unknownPrefix = string(Name) + ":"
