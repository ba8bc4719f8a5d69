package engine

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Reader reads the lines of one log. It is the part of a decoder that the table
// knows.
type Reader struct {
	F      *Format
	Strict bool // the first broken rule is noted: see Check
	Plain  bool // every line has the row of its type without a case

	S       jsonwire.Scanner
	Ev      *agentevents.Event // the event that is read
	Type    string             // of the line
	Row     *Row               // of the type; nil if it has none
	Seen    Set                // members of the line
	In      Set                // members of the body
	Lines   int                // read so far, with the current one
	IDs     dialect.IDs
	Numbers dialect.Numbers
	Times   jsonwire.TimeReader
	Kept    dialect.Unknowns // members that no field has
	Body    string           // the body of a line whose type has no row
	Losses  dialect.Losses   // the values of events that their lines lack: see Made
	Spelled []Spelling       // members of the line that have another name there
	Doc     any              // the decoder, for forms

	m      *Member
	name   string // of m on the line
	t      *table // of the object that is read
	v      any    // the value that it is read into
	seen   Set    // its members so far
	at     []byte // pointer of the object that is read, on the line
	lacks  string // pointer of the first needed member that is missing
	lacked *Member
	broken *agentevents.RuleError
	twice  bool // the line has a member by two of its names
	line   *table
	body   *table           // nil if the row has none
	made   []dialect.Loss   // of the event: pointers and details
	rest   dialect.Unknowns // members of the row's body that no field has
}

// A Spelling is a member that a line has under one of its other names.
type Spelling struct {
	Member *Member
	Name   string
}

// Decode appends the event of a line, which read reads into an empty event.
func Decode(dst []agentevents.Event, line []byte,
	read func(line string, ev *agentevents.Event) error) ([]agentevents.Event, error) {
	dst = append(dst, agentevents.Event{}) // an event is large: read it in place
	if err := read(string(line), &dst[len(dst)-1]); err != nil {
		return dst[:len(dst)-1], err
	}
	return dst, nil
}

// Read reads a line into ev, which is empty. It sets a payload of the row's kind. If the type has
// no row, the payload is nil and Kept has all members but the head's.
func (r *Reader) Read(text string, ev *agentevents.Event) error {
	f := r.F
	if f == nil {
		return agentevents.ErrZeroValue
	}
	r.Lines++
	r.S.Reset(text)
	r.Kept.Reset()
	r.Ev, r.Row, r.Type, r.Seen, r.In, r.at, r.lacks, r.broken = ev, nil, "", 0, 0, r.at[:0], "", nil
	r.Spelled, r.twice, r.Body = r.Spelled[:0], false, ""
	r.made = r.made[:0]
	r.rest.Reset()
	var err error
	if r.Type, err = r.typeOf(); err != nil {
		return err
	}
	r.line, r.body = f.line, nil
	switch {
	case f.Pick != nil:
		r.Row = f.Pick(r)
	case r.Plain:
		r.Row = f.CaseRow(r.Type, "")
	default:
		r.Row = f.row(r.Type, text)
	}
	if r.Row != nil {
		r.line, r.body = r.Row.line, r.Row.body
		ev.Payload = agentevents.NewPayload(r.Row.Kind)
	}
	if r.Seen, err = r.object(r.line, ev.Payload); err != nil {
		return err
	}
	if err := r.S.End(); err != nil {
		return err
	}
	if r.Type == "" && !f.Loose {
		return &jsonwire.SyntaxError{Offset: max(0, strings.LastIndexByte(text, '}')),
			Msg: fmt.Sprintf("the member %q is missing or empty", f.typ.Name)}
	}
	return nil
}

// Release lets go of the line that was read last.
func (r *Reader) Release() {
	r.S.Reset("")
	r.Ev, r.v, r.broken, r.Type, r.Body, r.name, r.lacks = nil, nil, nil, "", "", "", ""
	clear(r.Spelled)
	r.IDs.Release()
	r.Kept.Reset()
	r.rest.Reset()
}

// Parse reads the next value of s as a member of the row into a payload.
func (row *Row) Parse(s *jsonwire.Scanner, name string, p agentevents.Payload) error {
	r := Reader{F: row.f, Row: row, Ev: &agentevents.Event{Payload: p}, S: *s}
	_, err := r.member(row.line.member(name), name, p)
	*s = r.S
	return err
}

// typeOf returns the type of the line, which decides the meaning of the other members.
func (r *Reader) typeOf() (string, error) {
	s := r.S
	if typ := r.F.lastType(s.Text()); typ != "" {
		return typ, nil
	}
	if err := s.Object(); err != nil {
		return "", err
	}
	for {
		name, ok, err := s.Member()
		if err != nil || !ok {
			return "", err
		}
		if name == r.F.typ.Name {
			return s.String()
		}
		if err := s.Skip(); err != nil {
			return "", err
		}
	}
}

// lastType returns the type of a line that ends with it, if it is plainly spelled. In
// valid JSON nothing else looks like it.
func (f *Format) lastType(line string) string {
	const end = `"}`
	m := f.line.members[len(f.line.members)-1]
	if m.Form != Type || !strings.HasSuffix(line, end) {
		return ""
	}
	line = line[:len(line)-len(end)]
	at := strings.LastIndexByte(line, '"')
	if at < len(m.lit) || line[at-len(m.lit):at] != m.lit || strings.IndexByte(line[at:], '\\') >= 0 {
		return ""
	}
	return line[at+1:]
}

// object reads the members of an object into v and the event, and returns those
// that it has.
func (r *Reader) object(t *table, v any) (seen Set, err error) {
	outerT, outerV, outerSeen := r.t, r.v, r.seen
	r.t, r.v, r.seen = t, v, 0
	err = r.members(false)
	seen = r.seen
	r.t, r.v, r.seen = outerT, outerV, outerSeen
	if err != nil {
		return 0, err
	}
	for missing := t.missers &^ seen; missing != 0; missing &= missing - 1 {
		r.m = t.of[bits.TrailingZeros64(uint64(missing))]
		r.name = r.m.Name
		r.m.Form.(Misser).Missed(r, r.m.in(r.Ev, v))
	}
	if missing := t.required &^ seen; missing != 0 && r.lacks == "" {
		r.lacked = t.of[bits.TrailingZeros64(uint64(missing))]
		r.lacks = string(r.at) + "/" + jsonwire.Token(r.lacked.Name)
	}
	return seen, nil
}

// members reads the members of an object whose table is r.t. With inside they stand
// in a member of it: see Inside.
func (r *Reader) members(inside bool) error {
	s := &r.S
	if err := s.Object(); err != nil {
		return err
	}
	var names Set // as they are spelled
	last := 0
	for {
		n, name, err := s.FieldOf(r.t.names, last)
		if err != nil {
			return err
		}
		if n < 0 {
			return nil
		}
		fits := false
		if n > 0 {
			if names.Has(n) {
				return s.Duplicate(name)
			}
			names |= 1 << (n & 63)
			last = n
			if m := r.t.of[n]; !inside || m.inside() {
				if fits, err = r.take(m, name); err != nil {
					return err
				}
			}
		}
		if !fits {
			if err := r.keep(r.t, name); err != nil {
				return err
			}
		}
	}
}

// take reads the value of a member with that name on the line. It reports false, and
// reads nothing, if the value is to be kept: it does not fit, or the object has the
// member under another name.
func (r *Reader) take(m *Member, name string) (fits bool, err error) {
	if r.seen.Has(m.number) || m.For != "" && (r.seen.Has(m.instead) || r.follows(r.t.of[m.instead])) {
		r.twice = true
		return false, nil
	}
	if fits, err = r.member(m, name, r.v); fits {
		r.seen |= 1 << (m.number & 63)
		if name != m.Name {
			r.Spelled = append(r.Spelled, Spelling{m, name})
		}
	}
	return fits, err
}

// Instead reads the value as the value of another member of the object. If the object already has
// that member, Instead returns an error.
func (r *Reader) Instead(name string) error {
	fits, err := r.take(r.t.member(name), r.name)
	if err == nil && !fits {
		err = &jsonwire.SyntaxError{Offset: r.S.Offset(), Msg: fmt.Sprintf("found a value for %q, which has one", name)}
	}
	return err
}

// follows reports whether the member m stands after the value that is read next, in the same object
// and with a value that fits.
func (r *Reader) follows(m *Member) bool {
	s := r.S
	for s.Skip() == nil {
		name, ok, err := s.Member()
		if err != nil || !ok {
			break
		}
		if name == m.Name {
			next := r.S
			r.S = s
			fits, err := r.member(m, name, r.v)
			r.S = next
			return fits && err == nil
		}
	}
	return false
}

// member reads the value of a member into v or the event. It reports false, and
// reads nothing, if the value does not fit and is to be kept.
func (r *Reader) member(m *Member, name string, v any) (fits bool, err error) {
	outerM, outerName := r.m, r.name
	r.m, r.name = m, name
	s := r.S
	err = m.Form.Parse(r, m.in(r.Ev, v))
	r.m, r.name = outerM, outerName
	if err != nil {
		null := s.Kind() == 'n' && !m.Need && !r.Strict // an absent value
		if err == ErrMisfit || null || r.F.misfits(r.at) || m.Loose {
			r.S = s
			return false, nil
		}
		if null := s; r.F.Nulls && null.Null() {
			r.S = s
			r.BreakAt(r.PointerTo(name), r.F.Required, "must not be null")
			return false, nil
		}
		return false, err
	}
	if m.field != nil {
		m.field.mark(v)
	}
	return true, nil
}

// ErrMisfit is the error of a form for a value that does not fit its field, but is
// kept as an extra member.
var ErrMisfit = errors.New("the value does not fit")

// in returns a pointer to the member's field, or nil.
func (m *Member) in(ev *agentevents.Event, v any) (at any) {
	if m.field != nil {
		at, _ = m.field.at(ev, v)
	}
	return at
}

// misfits reports whether values that do not fit are kept in the object at a pointer.
func (f *Format) misfits(at []byte) bool { return f.Loose && (f.Body == "" || len(at) > 0) }

// keep keeps the next value as an extra member of the object that is read. On a
// line whose type has no row, names stay as they are: they are the payload's.
func (r *Reader) keep(t *table, name string) error {
	at := r.S.Offset()
	raw, err := r.S.Raw()
	if err != nil {
		return err
	}
	if r.F.Keep != nil {
		if taken, err := r.F.Keep(r, name, raw); taken || err != nil {
			return err
		}
	}
	to, key := &r.rest, name
	if !t.rest {
		to, key = &r.Kept, r.key(name)
	}
	if !to.Add(key, raw) {
		return &jsonwire.SyntaxError{Offset: at, Msg: "found duplicate member name " + jsonwire.Brief(name)}
	}
	return nil
}

// key returns the name under which a member of the object that is read is kept.
func (r *Reader) key(name string) string {
	if r.Row == nil && len(r.at) == 0 && r.F.Body == "" {
		return name
	}
	return r.F.keyOf(string(r.at), name)
}

// keyOf returns the name under which a member of the object at a pointer is kept:
// its name on the line itself, and a pointer inside another object.
func (f *Format) keyOf(at, name string) string {
	if at == "" && !strings.HasPrefix(name, "/") && !(len(f.Remarks) > 0 && name[:min(1, len(name))] == f.Remarks[0][:1]) {
		return name
	}
	return at + "/" + jsonwire.Token(name)
}

// KeepAs keeps the member that is read with the given value, for a form whose field cannot hold it.
// The value replaces one kept before.
func (r *Reader) KeepAs(raw string) { r.Kept.Add(r.key(r.name), raw) }

// Pointer returns the pointer of the member that is read, on the line.
func (r *Reader) Pointer() string { return r.PointerTo(r.name) }

// Made records that the decoder makes up a field of the event, because the line lacks it. Finish
// counts it.
func (r *Reader) Made(pointer, detail string) {
	r.made = append(r.made, dialect.Loss{Pointer: pointer, Detail: detail})
}

// NoTime notes that the line has no time that can be read.
func (r *Reader) NoTime() {
	r.Ev.Time = NoTime
	r.Made("/timestamp", noTime)
}

// Continue makes r a reader of the format of w, and the next line the one after those
// that w has written.
func (r *Reader) Continue(w *Writer) { r.F, r.Lines = w.F, w.Lines }

// Finish stores the kept members in the event, and counts the made-up values.
func (r *Reader) Finish() error {
	r.KeepBody()
	for _, l := range r.made {
		if strings.HasPrefix(l.Pointer, "/payload") {
			r.Losses.Add(r.Ev, dialect.Made, l.Pointer, l.Detail)
		} else {
			r.Losses.Every(r.Ev, dialect.Made, l.Pointer, l.Detail)
		}
	}
	return r.Kept.Keep(r.Ev, r.F.Name)
}

// Ending returns the result that the end of an agent describes.
func Ending(p *agentevents.AgentEnded) endword.Meaning {
	return endword.End{Error: p.Error.OK, Code: p.Error.V.Code, Word: p.Status, Outcome: string(p.Outcome)}.Meaning()
}

// KeepBody keeps the members of the body that no field has. Finish does it, too.
func (r *Reader) KeepBody() {
	for name, raw := range jsonwire.Members(string(r.rest.Object())) {
		r.Kept.Add(r.Row.bodyAt+"/"+jsonwire.Token(name), raw)
	}
	r.rest.Reset()
}

// Unknown returns the payload of a line whose type has no row: the members that the
// event did not take.
func (r *Reader) Unknown() *agentevents.Unknown {
	p := &agentevents.Unknown{Type: dialect.UnknownKind(r.F.Name, r.Type), Raw: "{}"}
	if raw := r.Kept.Object(); raw != "" {
		p.Raw = raw
	}
	r.Kept.Reset()
	return p
}

// Has reports whether the line, or its body, has a member of the table.
func (r *Reader) Has(name string) bool { return r.LineHas(name) || r.BodyHas(name) }

// LineHas reports whether the line itself has a member of the table.
func (r *Reader) LineHas(name string) bool { return r.Seen.Has(r.line.number(name)) }

// BodyHas reports whether the body of the line has a member of the table.
func (r *Reader) BodyHas(name string) bool { return r.In.Has(r.body.number(name)) }

// Foreign reports whether the body of the line has a member that stands for
// another one: see Member.For.
func (r *Reader) Foreign() bool {
	return r.twice || r.body != nil && r.In&r.body.foreign != 0
}

// Name returns the name of the member that is read.
func (r *Reader) Name() string { return r.name }

// PointerTo returns the pointer of a member of the object that is read.
func (r *Reader) PointerTo(name string) string { return string(r.at) + "/" + jsonwire.Token(name) }

// Break notes that the value that is read breaks a rule. The first one counts.
func (r *Reader) Break(rule agentevents.Rule, detail string) { r.BreakAt(r.Pointer(), rule, detail) }

// BreakAt is Break for the value at a pointer.
func (r *Reader) BreakAt(pointer string, rule agentevents.Rule, detail string) {
	if r.broken == nil {
		r.broken = &agentevents.RuleError{Rule: rule, Pointer: pointer, Detail: detail}
	}
}

// Check returns the rule that the line breaks, or nil: that needed members are
// there, then the rules of the forms, then that the document lists the type.
func (r *Reader) Check() error {
	broken := r.broken
	if broken == nil && r.F.Own != nil && !r.F.types[r.Type] && r.F.Own(r.Type) {
		broken = &agentevents.RuleError{Rule: r.F.Type, Pointer: "/" + r.F.typ.Name,
			Detail: jsonwire.Word(r.Type) + " is not a type of the document"}
	}
	if r.lacks != "" {
		broken = &agentevents.RuleError{Rule: cmp.Or(r.lacked.Rule, r.F.Required), Pointer: r.lacks, Detail: "is required"}
	}
	if broken == nil {
		return nil
	}
	return r.Refused(broken)
}

// Refused gives a broken rule the position of the line.
func (r *Reader) Refused(broken *agentevents.RuleError) error {
	broken.Kind, broken.RunID, broken.AgentID, broken.Sequence = agentevents.Kind(r.Type), r.Ev.RunID,
		r.Ev.AgentID, r.Numbers.Peek(r.Ev.RunID)
	broken.EventID = r.Ev.ID
	return broken
}

// Missing yields the pointers of the needed members that the line does not have.
func (r *Reader) Missing() iter.Seq2[string, *Member] {
	return func(yield func(string, *Member) bool) {
		if r.line.missing(r.Seen, "/", yield) && r.body != nil {
			r.body.missing(r.In, "/"+r.F.Body+"/", yield)
		}
	}
}

func (t *table) missing(has Set, at string, yield func(string, *Member) bool) bool {
	for rest := t.required &^ has; rest != 0; rest &= rest - 1 {
		if m := t.of[bits.TrailingZeros64(uint64(rest))]; !yield(at+jsonwire.Token(m.Name), m) {
			return false
		}
	}
	return true
}

// number returns the number of the member of that name, or 0.
func (t *table) number(name string) int {
	if m := t.member(name); m != nil {
		return m.number
	}
	return 0
}
