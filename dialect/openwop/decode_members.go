package openwop

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// readPayload reads the payload of a line whose type suggests variant v. It
// returns the variant that the payload really is.
func (d *Decoder) readPayload(s *jsonwire.Scanner, f *fields, v int) (int, error) {
	switch v {
	case vAskRequested, vAskResolved, vClarRequested, vClarResolved, vApprovalRequested, vApprovalGranted, vApprovalRejected, vMessage:
		v = look(*s, f.typ, v)
	}
	if v == vUnknown {
		return v, d.readUnknown(s, f)
	}
	if v == vNodeSuspended {
		check := *s // the details are built as text, so check for duplicate names first
		if err := check.Skip(); err != nil {
			return v, err
		}
	}
	if err := s.Object(); err != nil {
		return v, err
	}
	var (
		known = variants[v].members
		loose = loose(d.o.Profile, v)
		after = &d.after[v]
		last  int
		odd   set // members of loose that became extra members
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
			if err := d.more(s, f, v, name); err != nil {
				return v, err
			}
			continue
		}
		if (f.seen | odd).has(m) {
			return v, s.Duplicate(name)
		}
		after[last], last = uint8(m-1), m
		f.seen |= 1 << m
		if loose.has(m) {
			ok, err := d.looseMember(s, m, f, v)
			if err != nil {
				return v, err
			}
			if !ok {
				odd |= 1 << m
			}
		} else if err := d.member(s, m, f, v); err != nil {
			return v, err
		}
	}
	return v, nil
}

// looseMember reads a member that the profile does not declare. A value that is
// not of the vocabulary's type becomes an extra member, and looseMember reports
// false.
func (d *Decoder) looseMember(s *jsonwire.Scanner, m int, f *fields, v int) (ok bool, err error) {
	start := *s
	if d.member(s, m, f, v) == nil {
		return true, nil
	}
	*s = start
	f.unsee(m)
	return false, d.more(s, f, v, memberName(m))
}

// more reads an extra member of the payload.
func (d *Decoder) more(s *jsonwire.Scanner, f *fields, v int, name string) error {
	if v == vNodeSuspended {
		raw, err := s.Raw()
		if err != nil {
			return err
		}
		f.detail(name, raw)
	} else if err := d.keep(s, "/payload/"+jsonwire.Token(name), name); err != nil {
		return err
	}
	if vs := &variants[v]; f.extra == "" && vs.closed(d.o.Profile) && !vs.declares(name) && (d.o.Profile == SchemaV1 || vs.sealed || !hatch(name)) {
		f.extra = "/payload/" + jsonwire.Token(name)
	}
	return nil
}

// unsee forgets a member whose value has the wrong type.
func (f *fields) unsee(m int) {
	f.seen &^= 1 << m
	f.val[m] = ""
	switch m {
	case mFrom:
		f.from = agentevents.AgentRef{}
	case mTo:
		f.to = agentevents.AgentRef{}
	case mAgent:
		f.agent = agentevents.AgentRef{}
	case mTimeoutMs:
		f.duration, f.fraction = 0, false
	}
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
		if n, err = sequence(s); err == nil && n > math.MaxInt {
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

// readUnknown keeps the payload of an unknown type, and takes the agent from it.
func (d *Decoder) readUnknown(s *jsonwire.Scanner, f *fields) (err error) {
	if f.raw, err = s.Raw(); err == nil {
		f.val[mAgentID] = agentOf(f.raw)
		f.seen |= 1 << mAgentID // so that reset clears it
	}
	return err
}

// agentOf returns the agentId of a payload, or "".
func agentOf(raw string) string {
	if !strings.Contains(raw, `"agentId"`) {
		return ""
	}
	return memberText(raw, "agentId")
}

// look returns the variant of the payload that s reads next, for a type with
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
		return v // it is read again, for the error
	}
	var (
		has            set
		kind, decision string
	)
	for name, text := range jsonwire.Members(raw) {
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
	}
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

// isMessage reports whether the next payload writes a message to the channel of
// messages.
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

// hasText reports whether an object has a string member with that name.
func hasText(object, member string) bool {
	var s jsonwire.Scanner
	s.Reset(object)
	return textAhead(s, member)
}

// textAhead does what hasText does, for the value that s reads next.
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
			if f.dataKeys&hasQuestions != 0 {
				return s.Duplicate(name)
			}
			f.dataKeys |= hasQuestions
			err = d.readQuestions(s, f, "/payload/data/questions/")
		case v == vPermitRequested && name == "title":
			if f.dataKeys&hasTitle != 0 {
				return s.Duplicate(name)
			}
			f.dataKeys |= hasTitle
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

// readQuestions reads a list of questions. It keeps the extra members of a
// question under at.
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
		if (!seen.has(1) || !seen.has(2)) && f.badQuestion == 0 {
			f.badQuestion = i + 1
		}
		f.questions = append(f.questions, q)
	}
}

// Members of the data of an interrupt.
const (
	hasQuestions = 1 << iota
	hasTitle
)

var questionNames = [...]string{`"id":`, `"question":`, `"schema":`}

var errorNames = [...]string{`"code":`, `"message":`, `"details":`, `"retryable":`, `"error":`}

// looseErrors returns, for each member of an error, the first byte of a legal
// value if the profile does not declare the member, and 0 otherwise. A value that
// begins differently is an extra member.
func looseErrors(p Profile) *[len(errorNames) + 1]byte {
	if p == RFC0002 {
		return &rfcErrors
	}
	return &schemaErrors
}

var (
	rfcErrors    = [len(errorNames) + 1]byte{1: '"', 4: 't'}
	schemaErrors = [len(errorNames) + 1]byte{5: '"'}
)

func errorName(n int) string { return errorNames[n-1][1 : len(errorNames[n-1])-len(`":`)] }

// errorInfo reads an error. The ErrorEnvelope of HTTP answers has "error" in
// place of "code".
func (d *Decoder) errorInfo(s *jsonwire.Scanner, f *fields) error {
	if err := s.Object(); err != nil {
		return err
	}
	var word string
	last, odd := 0, uint8(0)
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
			if (f.errHas|odd)&(1<<(n-1)) != 0 {
				return s.Duplicate(name)
			}
			if want := looseErrors(d.o.Profile)[n]; want != 0 && s.Kind() != want && (want != 't' || s.Kind() != 'f') {
				odd |= 1 << (n - 1)
				name, n = errorName(n), 0
			} else {
				f.errHas |= 1 << (n - 1)
			}
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

// agentRef reads an AgentRef. If it has extra members, UnmarshalJSON reads and
// keeps them.
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
