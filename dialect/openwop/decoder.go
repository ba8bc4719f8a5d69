package openwop

import (
	"fmt"
	"math"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Options configure a [Decoder]. The zero Options are usable.
type Options struct {
	// Strict refuses lines that break a rule of the profile: see the Rule constants.
	// The error is a [*agentevents.RuleError]. Without Strict the decoder reads such
	// lines as far as it can.
	Strict bool
	// Profile selects the rules of Strict. The decoder reads the names of all
	// profiles. If a payload has two spellings of a member, it reads the profile's.
	Profile Profile
	// ThresholdOf returns the confidence threshold of the agent in the run. A
	// decision below it must be escalated before its node completes. No line states
	// the threshold, and it may be the run's or the agent's own. Nil means
	// [DefaultThreshold] for all. See [Host.ThresholdOf].
	ThresholdOf func(runID, agentID string) float64
}

// A Decoder turns run event documents into events. It implements
// [agentevents.Decoder]. It reads one log and is not for concurrent use.
type Decoder struct {
	o       Options
	lines   int
	scanner jsonwire.Scanner
	times   jsonwire.TimeCache
	unknown unknowns
	f       fields
	foreign bool // the latest line is not in the profile's spelling

	envAfter [numEnvelope + 1]uint8
	after    [numVariants][numMembers + 1]uint8 // for each member, the one that followed it latest

	open []openInterrupt // clarifications without an answer
	runs map[string]*runState
}

// An openInterrupt is a clarification.requested without an answer. The answer may
// not name its id.
type openInterrupt struct{ runID, nodeID, interruptID string }

// maxOpen limits what is remembered of a log without answers.
const maxOpen = 1024

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder { return &Decoder{o: o} }

// fields holds the members of a line.
type fields struct {
	env  set // members of the envelope that the line has
	seen set // members of the payload that the line has

	eventID, runID, nodeID, typ, causationID string
	sequence                                 uint64
	time                                     time.Time

	val       [numMembers + 1]string // text and raw JSON, by member
	count     [3]int64               // sequence, attempt, iteration
	number    [3]float64             // confidence, limit, observed
	duration  time.Duration
	from, to  agentevents.AgentRef
	agent     agentevents.AgentRef
	err       agentevents.ErrorInfo
	errHas    uint8 // the members of the error that the line has
	questions []agentevents.Question
	details   []byte // of node.suspended: an object without its closing brace
	extra     string // the first extra member of a closed object
	spelled   []byte // pointers of members that could be left out
	absent    []byte
	raw       string // the payload of an unknown type
	fraction  bool   // the duration has a fraction
	dataKeys  uint8

	badQuestion int // the number, from 1, of the first question without id or text
}

// Members of an error.
const (
	hasCode = 1 << iota
	hasMessage
	hasDetails
	hasRetryable
	hasErrorWord // "error" instead of "code"
)

// reset empties f for the next line. It clears only what was used.
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
	f.sequence, f.duration, f.fraction, f.badQuestion = 0, 0, false, 0
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
	usual := d.unknown.versionOne()
	if usual {
		dst = append(dst, versionOne)
	} else {
		dst = append(dst, agentevents.Event{})
	}
	ev := &dst[len(dst)-1]
	ev.ID, ev.Sequence, ev.Time, ev.RunID, ev.NodeID, ev.CausationID = f.eventID, f.sequence, f.time, f.runID, f.nodeID, f.causationID
	ev.SchemaVersion = agentevents.SchemaVersion
	if err := d.payload(ev, f, v, text); err != nil {
		return dst[:len(dst)-1], err
	}
	if missing := envelopeRequired &^ f.env; missing != 0 {
		d.missing(ev, f, missing, text)
	}
	if d.o.Profile != RFC0002 && (f.extra != "" || d.odd(f, v)) {
		d.unknown.Add(keptProfile, jsonwire.Quote(d.o.Profile.String()))
	}
	if len(f.spelled) > 0 {
		d.unknown.Add(keptSpelled, "["+string(f.spelled)+"]")
	}
	if len(f.absent) > 0 {
		d.unknown.Add(keptAbsent, "["+string(f.absent)+"]")
	}
	if usual && len(d.unknown.pairs) == 1 {
		return dst, nil // the extra member is set already
	}
	if err := d.unknown.Keep(ev); err != nil {
		return dst[:len(dst)-1], err
	}
	return dst, nil
}

// odd reports whether the line breaks the profile so that the encoder would drop
// a member or refuse the event.
func (d *Decoder) odd(f *fields, v int) bool {
	if v == vUnknown {
		return !keeps(d.o.Profile, f.typ, f.raw)
	}
	return d.checkDeclared(f, v) != nil
}

// versionOne is an event with the extra member {"schemaVersion":1}, as most lines
// of SchemaV2 give. Copies of it share the text.
var versionOne = func() (ev agentevents.Event) {
	_ = ev.SetExtra(string(Name), `{"schemaVersion":1}`) // never fails
	return ev
}()

// versionOne reports whether schemaVersion 1 is the only extra member.
func (u *unknowns) versionOne() bool {
	return len(u.pairs) == 1 && u.pairs[0].key == "schemaVersion" && u.pairs[0].raw == "1"
}

// End appends nothing: every line is complete.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) { return dst, nil }

// missing makes up the members of the envelope that the line lacks.
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
		early, earlyLength int // of a payload that came before its type
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
			if raw, err = s.Raw(); err == nil { // also 1, so that the encoder need not make it up
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

// keep keeps the next value as an extra member.
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

// sequence reads a whole number from 0. 3.0 is one too.
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
	return 0, &jsonwire.SyntaxError{Offset: at, Msg: "found a number that is not a whole number in range"}
}
