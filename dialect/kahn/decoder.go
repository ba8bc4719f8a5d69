package kahn

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Options configure a [Decoder]. The zero Options are usable.
type Options struct {
	// Strict refuses a line that breaks a rule of the document: a missing required
	// member, an id that does not match its pattern, a word that its enum does not
	// list, a number outside its range, a summary over [MaxSummary] characters, a
	// time in another form than the document's. The error is a
	// [*agentevents.RuleError] whose Rule is one of this package's. Without Strict
	// the decoder reads such lines as far as it can.
	Strict bool
}

// The rules of the document, which a strict decoder checks.
const (
	RuleRequired agentevents.Rule = "kahn-required" // a required member is missing
	RuleID       agentevents.Rule = "kahn-id"       // an id does not match its pattern
	RuleEnum     agentevents.Rule = "kahn-enum"     // a status, outcome or result the document does not list
	RuleRange    agentevents.Rule = "kahn-range"    // a number outside its range
	RuleSummary  agentevents.Rule = "kahn-summary"  // a summary that is too long
	RuleTime     agentevents.Rule = "kahn-time"     // a time that is not in UTC with milliseconds
)

// A Decoder turns KAHN lines into events. It implements [agentevents.Decoder]. It
// reads one log and is not for concurrent use.
//
// A tool_invocation becomes one ToolReturned with OneEvent set. A line with an
// event that the document does not list becomes [agentevents.Unknown], with the
// members of the line that are not in the envelope.
type Decoder struct {
	o       Options
	lines   int
	ids     dialect.IDs
	numbers dialect.Numbers
	times   jsonwire.TimeCache
	scanner jsonwire.Scanner
	unknown dialect.Unknowns
	after   [numMembers + 1]uint8 // for each member, the one that followed it latest
}

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder { return &Decoder{o: o} }

// fields holds the members of a line that become fields of an event.
type fields struct {
	seen                             set
	time                             time.Time
	runID, event, agentID            string
	task, model, from, to, reason    string
	tool, input, output, err         string
	checkpoint, result, outcome      string
	evidence                         string
	step                             int
	duration                         time.Duration
	ok                               bool
	ofRun                            bool // agent_id is null
	sloppy                           bool // ts is not in the document's form
	score                            float64
	steps, calls, audits, pass, fail int
}

// Decode appends the event of a line.
func (d *Decoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	text := string(line)
	d.lines++
	var f fields
	v, err := d.read(text, &f)
	if err != nil {
		return dst, err
	}
	if d.o.Strict {
		if broken := f.check(v); broken != nil {
			broken.Sequence = d.numbers.Peek(f.runID)
			return dst, broken
		}
	}
	dst = append(dst, agentevents.Event{})
	ev := &dst[len(dst)-1]
	ev.ID, ev.Sequence, ev.Time = d.ids.Derived(text, d.lines, 0), d.numbers.Next(f.runID), f.time
	ev.RunID, ev.AgentID, ev.SchemaVersion = f.runID, f.agentID, agentevents.SchemaVersion
	if f.seen.has(mStep) {
		ev.Step = agentevents.Some(f.step)
	}
	if v == vUnknown {
		p := &agentevents.Unknown{Type: dialect.UnknownKind(Name, f.event), Raw: "{}"}
		if raw := d.unknown.Object(); raw != "" {
			p.Raw = raw
		}
		ev.Payload = p
		return dst, nil
	}
	if v == vEnd && f.seen&totals != totals {
		d.someTotals(&f)
	}
	ev.Payload = f.payload(v, text, d.lines)
	if err := d.unknown.Keep(ev, Name); err != nil {
		return dst[:len(dst)-1], err
	}
	return dst, nil
}

// End appends nothing: every line is complete.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) { return dst, nil }

// unknownPrefix goes before a type whose name is taken: see
// [dialect.UnknownKind].
const unknownPrefix = string(Name) + ":"

// read reads a line and returns its variant. The members that the variant does
// not have are in d.unknown.
func (d *Decoder) read(text string, f *fields) (v int, err error) {
	v, done, err := d.scan(text, f, false, vUnknown)
	if err != nil || done {
		return v, err
	}
	// The event decides which members the line may have, but it follows some of
	// them. Look for it first.
	event, err := findEvent(text)
	if err != nil {
		return v, err
	}
	*f = fields{}
	v, _, err = d.scan(text, f, true, variantOf(event))
	return v, err
}

func findEvent(text string) (string, error) {
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
			return "", missingEvent(text)
		}
		if name == "event" {
			return s.String()
		}
		if err := s.Skip(); err != nil {
			return "", err
		}
	}
}

func missingEvent(text string) error {
	return &jsonwire.SyntaxError{Offset: max(0, strings.LastIndexByte(text, '}')), Msg: `the member "event" is missing or empty`}
}

// scan reads a line of variant v. With decided false it finds the variant itself,
// but stops at a member that depends on it and reports false.
func (d *Decoder) scan(text string, f *fields, decided bool, v int) (_ int, done bool, err error) {
	s := &d.scanner
	s.Reset(text)
	d.unknown.Reset()
	if err := s.Object(); err != nil {
		return v, false, err
	}
	known, last := membersOf(v), 0
	var odd set // members that are kept because fits refused them
	for {
		m, name, err := s.Field(memberNames[:], int(d.after[last]))
		if err != nil {
			return v, false, err
		}
		if m < 0 {
			break
		}
		if m > 0 {
			if (f.seen | odd).has(m) {
				return v, false, s.Duplicate(name)
			}
			d.after[last], last = uint8(m-1), m
		}
		if !decided && (m == 0 || !base.has(m)) {
			return v, false, nil
		}
		if m == 0 || !known.has(m) {
			if err := d.keep(name); err != nil {
				return v, false, err
			}
			continue
		}
		if v == vUnknown && !d.fits(m) { // perhaps of a later version
			odd |= 1 << m
			if err := d.keep(name); err != nil {
				return v, false, err
			}
			continue
		}
		f.seen |= 1 << m
		if err := d.member(s, name, m, v, f); err != nil {
			return v, false, err
		}
		if m == mEvent && !decided {
			v, decided = variantOf(f.event), true
			known = membersOf(v)
		}
	}
	if err := s.End(); err != nil {
		return v, false, err
	}
	if f.event == "" {
		return v, false, missingEvent(text)
	}
	return v, true, nil
}

// keep keeps the next value as an extra member.
func (d *Decoder) keep(name string) error {
	at := d.scanner.Offset()
	raw, err := d.scanner.Raw()
	if err == nil && !d.unknown.Add(name, raw) {
		return &jsonwire.SyntaxError{Offset: at, Msg: fmt.Sprintf("found duplicate member name %q", name)}
	}
	return err
}

// fits reports whether the next value may be the agent or the step of an event
// whose type is unknown.
func (d *Decoder) fits(m int) bool {
	s := d.scanner
	switch m {
	case mAgentID:
		id, err := s.String()
		return err == nil && id != ""
	case mStep:
		n, err := s.SmallInt()
		return err == nil && n >= 0
	}
	return true
}

// membersOf returns the members that become fields of an event.
func membersOf(v int) set {
	if v == vUnknown {
		return base | 1<<mAgentID | 1<<mStep
	}
	return base | variants[v].members
}

// member reads the value of one member.
func (d *Decoder) member(s *jsonwire.Scanner, name string, m, v int, f *fields) (err error) {
	switch m {
	case mTS:
		at := s.Offset()
		f.time, err = d.times.Time(s)
		if text := s.Text(); err == nil {
			f.sloppy = s.Offset()-at != len(`"2026-05-05T09:00:00.000Z"`) || text[s.Offset()-2] != 'Z' || text[at+len(`"2026-05-05T09:00:00`)] != '.'
		}
	case mRunID:
		f.runID, err = s.String()
	case mEvent:
		f.event, err = s.String()
	case mAgentID:
		if v == vAudit && s.Null() {
			f.ofRun = true // the run is audited; no other member may be null
			return nil
		}
		if v == vAudit {
			f.agentID, err = d.text(name) // empty is not null
		} else {
			f.agentID, err = s.String()
		}
	case mTask:
		f.task, err = d.text(name)
	case mModel:
		f.model, err = d.text(name)
	case mStep:
		f.step, err = s.Whole()
	case mFrom:
		f.from, err = s.String()
	case mTo:
		f.to, err = s.String()
	case mReason:
		f.reason, err = d.text(name)
	case mToolName:
		f.tool, err = d.text(name)
	case mDuration, mTotalDuration:
		f.duration, err = s.Seconds()
	case mOK:
		f.ok, err = s.Bool()
	case mInputSummary:
		f.input, err = d.text(name)
	case mOutputSummary:
		f.output, err = d.text(name)
	case mError:
		f.err, err = s.String()
	case mCheckpointID:
		f.checkpoint, err = s.String()
	case mResult:
		f.result, err = s.String()
	case mEvidence:
		if k := s.Kind(); k != '{' && k != 0 {
			return &jsonwire.SyntaxError{Offset: s.Offset(), Msg: "found a value that is not an object, expected an object"}
		}
		f.evidence, err = s.Raw()
	case mOutcome:
		f.outcome, err = s.String()
	case mTotalSteps:
		f.steps, err = s.Whole()
	case mTotalToolCalls:
		f.calls, err = s.Whole()
	case mTotalAudits:
		f.audits, err = s.Whole()
	case mAuditsPassed:
		f.pass, err = s.Whole()
	case mAuditsFailed:
		f.fail, err = s.Whole()
	case mScore:
		f.score, err = s.Float()
	}
	return err
}

// text reads a string. The field cannot tell an empty one from none, so text
// keeps it as an extra member.
func (d *Decoder) text(name string) (string, error) {
	text, err := d.scanner.String()
	if err == nil && text == "" {
		d.unknown.Add(name, `""`)
	}
	return text, err
}

// totals are the members that become the totals of an end.
const totals set = 1<<mTotalSteps | 1<<mTotalToolCalls | 1<<mTotalAudits | 1<<mAuditsPassed | 1<<mAuditsFailed

// someTotals keeps the totals of an end that lacks some of them: the missing ones
// are not 0.
func (d *Decoder) someTotals(f *fields) {
	for i, n := range [...]int{f.steps, f.calls, f.audits, f.pass, f.fail} {
		if m := mTotalSteps + i; f.seen.has(m) {
			d.unknown.Add(memberName(m), strconv.Itoa(n))
		}
	}
}

// payload makes the payload of a line of variant v.
func (f *fields) payload(v int, text string, line int) agentevents.Payload {
	switch v {
	case vStart:
		return &agentevents.AgentStarted{Task: f.task, Model: f.model}
	case vTransition:
		return &agentevents.AgentTransition{From: agentevents.AgentStatus(f.from), To: agentevents.AgentStatus(f.to), Reason: f.reason}
	case vTool:
		p := &agentevents.ToolReturned{
			CallID: dialect.DerivedID(text, line, 1), ToolID: f.tool, ResultSummary: f.output,
			Duration: f.some(mDuration), OneEvent: true, ArgumentsSummary: f.input,
		}
		if f.ok {
			p.Status = agentevents.ToolStatusOK
		} else if f.seen.has(mOK) {
			p.Status = agentevents.ToolStatusError
		}
		if f.seen.has(mError) {
			p.Error = agentevents.Some(agentevents.ErrorInfo{Message: f.err})
		}
		return p
	case vAudit:
		return &agentevents.AuditChecked{
			CheckpointID: f.checkpoint, Result: agentevents.AuditResult(f.result), Duration: f.duration, Evidence: agentevents.JSON(f.evidence),
		}
	}
	p := &agentevents.AgentEnded{Outcome: agentevents.AgentOutcome(f.outcome), Duration: f.some(mTotalDuration)}
	if f.seen&totals == totals {
		p.Totals = agentevents.Some(agentevents.Totals{
			Steps: f.steps, ToolCalls: f.calls, AuditCheckpoints: f.audits, AuditsPassed: f.pass, AuditsFailed: f.fail,
		})
	}
	if f.seen.has(mScore) {
		p.ConvergenceScore = agentevents.Some(f.score)
	}
	return p
}

func (f *fields) some(m int) agentevents.Opt[time.Duration] {
	if !f.seen.has(m) {
		return agentevents.Opt[time.Duration]{}
	}
	return agentevents.Some(f.duration)
}
