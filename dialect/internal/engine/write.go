package engine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Writer writes the lines of one log. It is the part of an encoder that the table
// knows.
type Writer struct {
	F     *Format
	Ev    *agentevents.Event // the event that is written
	Times jsonwire.TimeWriter
	// Whole is set while two lines are compared: forms cut and round nothing.
	Whole bool
	// Read is the event that readers make of the line, if the line is written as it was read.
	Read agentevents.Event

	Doc   Document // the encoder, for forms
	Lines int      // written so far
	// Origin is the line that the event was read from. Reread may cut it to the line
	// in a frame.
	Origin string
	// After is how many members of an unknown payload follow the tail of its line.
	After int

	// Spell has the differences between members of the line and the table. It is nil, or set by
	// Document.Line.
	Spell Speller

	own     agentevents.Event
	row     *Row
	typ     string // of the line
	body    string // of a line whose type has no row
	err     error  // the event cannot be written
	broken  error  // the document does not allow a value of the event
	kept    kept
	made    uint64       // a hash of the members whose values are made up
	said    Set          // members of the object that is written
	here    []keptMember // of it
	inside  bool         // some of them stand in a member: see Inside
	at      []byte       // pointer of the object that is written, on the line
	place   []byte       // the same on the native line
	scratch [2][]byte
	restarts
}

// A Document is the part of a writer that a dialect supplies.
type Document interface {
	// Line appends the line of w.Ev without a newline. It appends nothing for an event that waits
	// for another one. It changes no other state. Its error is dialect.ErrNoCounterpart, or
	// describes the value that cannot be written.
	Line(w *Writer, dst []byte) ([]byte, error)
	// Reread reads a line as the next one of the log into w.Read.
	Reread(w *Writer, line string) error
}

// A Speller knows the spelling of the line that an event was read from.
type Speller interface {
	// Hides reports whether a member is left out although the event has a value for it. The value
	// that was kept in its place is written.
	Hides(m *Member, at any) bool
	// NameOf returns the name that a member with other names gets.
	NameOf(m *Member) string
}

// Append appends the line of ev, if ev has a line of its own. verbatim reports that this is the
// line that ev was read from, and that it still equals ev. Then no value is made up or altered.
func (w *Writer) Append(dst []byte, ev *agentevents.Event, d Document) (out []byte, verbatim bool, err error) {
	if w.F == nil {
		return dst, false, agentevents.ErrZeroValue
	}
	w.own, w.Doc = *ev, d
	if w.own.Kind() == "" {
		_, err := w.own.AppendJSON(nil) // its error describes the fault of the payload
		return dst, false, err
	}
	if w.F.restarts {
		w.resume(&w.own)
	}
	mark := len(dst)
	dst, err = w.line(dst, &w.own, d)
	if err == dialect.ErrNoCounterpart {
		err = fmt.Errorf("%w: %s", err, jsonwire.BriefName(string(w.own.Kind())))
	}
	if err != nil && errors.Is(err, dialect.ErrNoCounterpart) {
		return dst[:mark], false, err
	}
	if err == nil && bytes.IndexByte(dst[mark:], 0xef) >= 0 { // the first byte of U+FFFD
		err = w.damaged()
	}
	broken := w.broken
	if err != nil {
		return dst[:mark], false, cmp.Or(broken, err) // the document's rule is more precise
	}
	if w.Origin = w.own.Origin(); w.Origin != "" && len(dst) > mark {
		if verbatim = w.says(d); verbatim {
			dst, broken = append(dst[:mark], w.Origin...), nil // it was like that when it was read
		}
	}
	if broken != nil {
		return dst[:mark], false, broken
	}
	w.Ev = &w.own
	if len(dst) > mark {
		dst = append(dst, '\n')
		w.Lines++
	}
	return dst, verbatim, nil
}

// Release lets go of the event that was written last, which may be long. An encoder of a live
// stream may wait for the next one for hours.
func (w *Writer) Release() {
	w.own, w.Ev, w.body, w.kept, w.here = agentevents.Event{}, &w.own, "", kept{members: clean(w.kept.members)}, nil
	if w.Origin != "" {
		w.Read, w.Origin = agentevents.Event{}, ""
	}
	for i := range w.scratch {
		w.scratch[i] = Buffer(w.scratch[i])
	}
}

// clean returns an empty list that uses the memory of another one.
func clean(list []keptMember) []keptMember {
	clear(list)
	return list[:0]
}

// maxBuffer is the size of the largest buffer that is kept for the next line.
const maxBuffer = 16 << 10

// Buffer returns a buffer without its content for the next line, or none if it is large.
func Buffer(buf []byte) []byte {
	if cap(buf) > maxBuffer {
		return nil
	}
	return buf[:0]
}

// line appends the line of ev.
func (w *Writer) line(dst []byte, ev *agentevents.Event, d Document) ([]byte, error) {
	w.Ev, w.err, w.broken, w.made = ev, nil, nil, 0
	if !writable(ev.Time) {
		return dst, w.Refused(agentevents.RuleFieldRange, "/timestamp", badYear)
	}
	w.Say(ev)
	if w.ends && w.F.Row(ev.Kind()) == nil {
		switch p := ev.Payload.(type) {
		case *agentevents.NodeFailed:
			w.SayAs(&agentevents.AgentEnded{Error: agentevents.Some(p.Error)})
		case *agentevents.NodeCompleted:
			w.SayAs(&agentevents.AgentEnded{})
		}
	}
	dst, err := d.Line(w, dst)
	if err == nil {
		err = w.err
	}
	return dst, err
}

// Say makes ev the event that is written, for a Document that writes another event than its own.
func (w *Writer) Say(ev *agentevents.Event) {
	w.Ev = ev
	w.kept.load(w.F, string(ev.Extra(string(w.F.Name))))
}

// SayAs makes the event one with another payload, in whose place it is written.
func (w *Writer) SayAs(p agentevents.Payload) {
	ev := *w.Ev
	ev.Payload = p
	w.Say(&ev)
}

// writable reports whether a time is in the years 0 to 9999.
func writable(t time.Time) bool {
	sec := t.Unix()
	return sec >= -62167219200 && sec <= 253402300799
}

const badYear = "is outside the years 0 to 9999"

// damaged returns the error of an id that is not UTF-8.
func (w *Writer) damaged() error {
	var err error
	w.scratch[0], err = w.own.AppendJSON(w.scratch[0][:0])
	if broken := (*agentevents.RuleError)(nil); errors.As(err, &broken) && broken.Rule == agentevents.RuleFieldUTF8 {
		return err
	}
	return nil
}

// says reports whether w.Origin, as the next line, holds the facts of the event, as far as the
// document has places for them. It writes both and compares the lines. Equal lines are not enough:
// one event may have a fact that is made up for the other.
func (w *Writer) says(d Document) bool {
	w.Read = agentevents.Event{}
	if d.Reread(w, w.Origin) != nil || w.Read.Kind() != w.own.Kind() { // forms know only w.own's kind
		return false
	}
	w.Whole = true
	now, err := w.line(w.scratch[0][:0], &w.own, d)
	made := w.made
	was, wasErr := w.line(w.scratch[1][:0], &w.Read, d)
	w.scratch = [...][]byte{now, was}
	w.Whole, w.Ev = false, &w.own
	return err == nil && wasErr == nil && w.made == made && bytes.Equal(now, was)
}

// Line appends the line of the event as a row or, if that is nil, with the members of
// an unknown payload. It returns dialect.ErrNoCounterpart for another payload, and for
// one that readers would not read back.
func (w *Writer) Line(dst []byte, row *Row) ([]byte, error) {
	if row != nil {
		return w.LineAs(dst, row, row.Type, ""), nil
	}
	p, ok := w.Ev.Payload.(*agentevents.Unknown)
	if !ok {
		return dst, dialect.ErrNoCounterpart
	}
	typ, raw, err := w.unknown(p)
	if err != nil {
		return dst, err
	}
	return w.other(dst, typ, raw), nil
}

// LineAs appends the line of the event as a row with another name for the type. row is nil for a
// type without a row; then body is the body of the line.
func (w *Writer) LineAs(dst []byte, row *Row, typ, body string) []byte {
	if row == nil {
		row = w.F.other
	}
	w.row, w.typ, w.body = row, typ, body
	if row.rest != nil {
		w.loadRest(row)
	}
	w.at, w.place = w.at[:0], append(w.place[:0], "/payload"...)
	return w.object(dst, row.line, w.Ev.Payload)
}

// At returns the pointer of the object that is written, on the line.
func (w *Writer) At() string { return string(w.at) }

// Row returns the row of the line that is written, or nil, and Type its type.
func (w *Writer) Row() *Row    { return w.row }
func (w *Writer) Type() string { return w.typ }

// unknown returns the type and the members of the line of an unknown payload.
func (w *Writer) unknown(p *agentevents.Unknown) (typ, raw string, err error) {
	if raw, err = jsonwire.Compact(cmp.Or(string(p.Raw), "{}")); err != nil {
		return "", "", w.Refused(agentevents.RuleFieldJSON, "/payload", err.Error())
	}
	typ = strings.TrimPrefix(string(p.Type), string(w.F.Name)+":")
	if raw[0] != '{' || typ == "" {
		return "", "", dialect.ErrNoCounterpart
	}
	if row := w.F.row(typ, raw); row != nil {
		return "", "", typeTaken{typ, row.Kind}
	}
	return typ, raw, nil
}

// A typeTaken is the error for an unknown payload whose type is one of the document.
type typeTaken struct {
	typ  string
	kind agentevents.Kind
}

func (e typeTaken) Error() string {
	return "dialect: " + e.typ + " is a type of the document: its kind is " + string(e.kind)
}

// Unwrap returns the error for a payload without a counterpart.
func (typeTaken) Unwrap() error { return dialect.ErrNoCounterpart }

// other appends the line of an event whose type has no row: the members of raw, an
// object, stand on it, without those that readers take for others of the line.
func (w *Writer) other(dst []byte, typ, raw string) []byte {
	w.row, w.typ = nil, typ
	if !w.F.OtherExtra {
		w.kept.load(w.F, "")
	}
	w.at, w.place = w.at[:0], append(w.place[:0], "/payload"...)
	mark, own, t := len(dst), w.Ev, w.F.line
	tail := len(t.members) - len(w.F.Tail)
	var has Set
	write := func(members []*Member) {
		for _, m := range members {
			n := len(dst)
			if dst = w.special(dst, m, nil); len(dst) > n {
				has |= 1 << m.number
			}
		}
	}
	write(t.members[:tail])
	last := t.members[tail:]
	before := -w.After // members before the tail, if some follow it
	if w.After > 0 {
		for range jsonwire.Members(raw) {
			before++
		}
	}
	for name, value := range jsonwire.Members(raw) {
		if before == 0 && w.After > 0 {
			write(last)
			last = nil
		}
		before--
		switch m := t.member(name); {
		case m == nil || !has.Has(m.number) && m.number <= tail && !w.taken(m, value):
			dst = append(append(jsonwire.AppendString(append(dst, ','), name), ':'), value...)
		case has.Has(m.number) || m.number > tail: // the line has a member of that name
		default:
			dst = w.special(dst, m, nil)
		}
		w.Ev = own
	}
	write(last)
	if list := w.kept.of(w.at); len(list) > 0 {
		names := map[string]bool{}
		for name := range jsonwire.Members(raw) {
			names[name] = t.member(name) == nil
		}
		for i := range list {
			list[i].used = list[i].used || names[list[i].name]
		}
	}
	return braces(w.rest(dst, mark, t, nil, false), mark)
}

// taken reports whether readers take a member of an unknown payload for m. If so,
// w.Ev is an event with the value.
func (w *Writer) taken(m *Member, value string) bool {
	r := Reader{F: w.F, Ev: new(agentevents.Event)}
	r.S.Reset(value)
	fits, _ := r.member(m, m.Name, nil)
	if fits {
		w.Ev = r.Ev
	}
	return fits
}

// Append appends the value of a member of the row from a payload.
func (row *Row) Append(dst []byte, name string, p agentevents.Payload) []byte {
	w := Writer{F: row.f, Ev: &agentevents.Event{Payload: p}, row: row}
	m := row.line.member(name)
	at, _ := m.field.at(w.Ev, p)
	dst, _ = m.Form.Append(&w, dst, m, at)
	return dst
}

// object appends the members of an object from v and the event.
func (w *Writer) object(dst []byte, t *table, v any) []byte {
	said, inside, here, mark := w.said, w.inside, w.here, len(dst)
	w.said, w.inside, w.here = 0, false, w.kept.of(w.at)
	odd := w.here != nil || w.Spell != nil
	for _, m := range t.members {
		switch {
		case odd || m.special || w.inside:
			dst = w.special(dst, m, v)
		case !m.Reads:
			dst = w.member(dst, m, v)
		}
	}
	if w.here != nil || w.F.Elsewhere != nil && len(w.kept.members) > 0 {
		dst = w.rest(dst, mark, t, v, false)
	}
	w.said, w.inside, w.here = said, inside, here
	return braces(dst, mark)
}

// braces ends an object whose members begin at mark, each after a comma.
func braces(dst []byte, mark int) []byte {
	if len(dst) == mark {
		return append(dst, "{}"...)
	}
	dst[mark] = '{' // in the place of a comma
	return append(dst, '}')
}

// special appends a member that may have another place or another spelling, or stand for
// several.
func (w *Writer) special(dst []byte, m *Member, v any) []byte {
	switch {
	case m.Reads, w.inside && m.inside(), m.unless != nil && m.unless(w):
		return dst
	case m.spread != nil:
		return m.spread.AppendMembers(w, dst)
	case w.here != nil || w.Spell != nil:
		return w.oddMember(dst, m, v)
	}
	return w.member(dst, m, v)
}

// member appends a member, if there is a value.
func (w *Writer) member(dst []byte, m *Member, v any) []byte {
	mark := len(dst)
	dst = append(dst, m.lit...)
	at, said := any(nil), true
	switch {
	case m.get != nil:
		at = m.get(v)
	case m.field != nil:
		at, said = m.field.at(w.Ev, v)
	}
	switch text, ok := at.(*string); {
	case !said:
	case !m.plain:
		dst, said = m.write.Append(w, dst, m, at)
	case !ok:
		dst, said = Value{}.Append(w, dst, m, at)
	default: // as mostly
		if said = *text != "" || m.full; said {
			dst = jsonwire.AppendString(dst, *text)
		}
	}
	if said {
		return dst
	}
	return w.absent(dst[:mark+len(m.lit)], mark, m)
}

// oddMember is member for a line that may not have it as usual.
func (w *Writer) oddMember(dst []byte, m *Member, v any) []byte {
	mark, name := len(dst), w.name(m)
	kept := find(w.here, name)
	raw := kept.value(false)
	dst = append(jsonwire.AppendString(append(dst, ','), name), ':')
	from := len(dst)
	at, said := any(nil), true
	if m.field != nil {
		at, said = m.field.at(w.Ev, v)
	}
	hidden := said && w.Spell != nil && w.Spell.Hides(m, at)
	if said && !hidden {
		if dst, said = m.Form.Append(w, dst, m, at); said {
			w.said |= 1 << m.number
			if raw != "" && (string(dst[from:]) == raw || w.spells(m, v, at, raw)) {
				dst = append(dst[:from], kept.value(true)...)
			}
			return dst
		}
		dst = dst[:from]
	}
	switch {
	case raw != "" && (hidden || w.F.Lack == nil && w.odd(m, v, raw)):
		if w.F.misfits(w.at) {
			if _, fits, _ := w.reads(m, v, raw); fits {
				w.said |= 1 << m.number
			}
		}
		return append(dst, kept.value(true)...)
	case hidden:
		return dst[:mark]
	}
	return w.absent(dst, mark, m)
}

// absent appends the value of a member that the event lacks, or takes back the name of the member,
// which begins at mark.
func (w *Writer) absent(dst []byte, mark int, m *Member) []byte {
	out, decided := dst, false
	if w.F.Lack != nil {
		out, decided = w.F.Lack(w, dst, m)
	}
	if !decided && m.or != nil {
		out = m.or(w, dst, m)
	}
	if len(out) > len(dst) {
		w.made = jsonwire.Mix(w.made, uint64(m.number))
		return out
	}
	return dst[:mark]
}

// emptyText is the [Format.Absent] of a format without one.
func emptyText(_ *Writer, dst []byte, _ *Member) []byte {
	return append(dst, `""`...)
}

// name returns the name of a member on the line.
func (w *Writer) name(m *Member) string {
	if w.Spell == nil || len(m.Also) == 0 {
		return m.Name
	}
	return w.Spell.NameOf(m)
}

// spells reports whether a kept value is a spelling of the field at the pointer.
func (w *Writer) spells(m *Member, v, at any, raw string) bool {
	if !w.F.misfits(w.at) || m.field == nil {
		return false
	}
	read, fits, _ := w.reads(m, v, raw)
	return fits && reflect.DeepEqual(read, at)
}

// odd reports whether a kept value comes back in the place of a member that the event lacks,
// because readers do not take it for a value of the field.
func (w *Writer) odd(m *Member, v any, raw string) bool {
	if !w.F.misfits(w.at) && (!m.Loose || w.row == nil) {
		return raw == `""` || raw == "null" && (!m.Need || w.F.Nulls)
	}
	_, _, something := w.reads(m, v, raw)
	return !something
}

// reads returns a pointer to the value that readers make of raw for a member. fits reports whether
// the value fits, and something whether it sets the field. v is a value of the type that has the
// field.
func (w *Writer) reads(m *Member, v any, raw string) (at any, fits, something bool) {
	v = reflect.New(reflect.TypeOf(v).Elem()).Interface()
	r := Reader{F: w.F, Row: w.row, Ev: new(agentevents.Event), t: w.row.body, v: v, seen: w.said, at: w.at}
	r.S.Reset(raw)
	if fits, _ = r.member(m, m.Name, v); !fits || m.field == nil {
		return nil, fits, fits
	}
	at = m.in(r.Ev, v)
	return at, true, m.field.optional() || !reflect.ValueOf(at).Elem().IsZero()
}

// Time returns the time of the event, and NoTime if it is not known: readers take another one for
// known.
func (w *Writer) Time() time.Time {
	if !agentevents.TimeKnown(w.Ev.Time) {
		return NoTime
	}
	return w.Ev.Time
}

// Pointer returns the native pointer of a member of the object that is written. A member without a
// field has the place at which it is kept.
func (w *Writer) Pointer(m *Member) string {
	if m.Fields == "" {
		return "/" + string(w.F.Name) + "/" + jsonwire.Token(w.F.keyOf(w.At(), m.Name))
	}
	if string(w.place) == "/payload" || strings.HasPrefix(m.Fields, "/") { // as mostly
		return m.pointer
	}
	return string(w.place) + strings.TrimPrefix(m.pointer, "/payload")
}

// Fail notes that the event cannot be written.
func (w *Writer) Fail(rule agentevents.Rule, pointer, detail string) {
	if w.err == nil {
		w.err = w.Refused(rule, pointer, detail)
	}
}

// Break notes that the document does not allow a value: the event may only be
// written as it was read.
func (w *Writer) Break(rule agentevents.Rule, pointer, detail string) {
	if w.broken == nil {
		w.broken = w.Refused(rule, pointer, detail)
	}
}

// Broken reports whether the document does not allow a value of the event.
func (w *Writer) Broken() bool { return w.broken != nil }

// Refused returns the error of the event.
func (w *Writer) Refused(rule agentevents.Rule, pointer, detail string) error {
	ev := w.Ev
	return &agentevents.RuleError{
		Rule: rule, Kind: ev.Kind(), RunID: ev.RunID, AgentID: ev.AgentID, EventID: ev.ID, Sequence: ev.Sequence,
		Pointer: pointer, Detail: detail,
	}
}

// A kept is the extra member with the dialect's name: the members of a line that no
// field has, ordered by their objects.
type kept struct {
	text    string
	members []keptMember
}

type keptMember struct {
	key, raw string
	at, name string // the pointer of its object, or noObject, and its name there
	used     bool   // it is on the line, or need not be
}

// noObject is in the place of a pointer for a key that no reader makes.
const noObject = "-"

// load reads the extra member. An event mostly has none.
func (k *kept) load(f *Format, text string) {
	if text == "" && k.text == "" && len(k.members) == 0 {
		return
	}
	*k = kept{text, k.members[:0]}
	for key, raw := range jsonwire.Members(text) {
		m := keptMember{key: key, raw: raw, name: key, used: slices.Contains(f.Remarks, key)}
		if i := strings.LastIndexByte(key, '/'); i >= 0 && key[0] == '/' {
			m.at, m.name = key[:i], jsonwire.Untoken(key[i+1:])
			if f.keyOf(m.at, m.name) != key {
				m.at, m.name = noObject, key
			}
		}
		k.members = append(k.members, m)
	}
	k.sort()
}

// loadRest adds the members of the row's Rest. Those that are kept have no place beside
// them, as readers take them for members of the field: only [Writer.Key] finds them.
func (w *Writer) loadRest(row *Row) {
	for i := range w.kept.members {
		if m := &w.kept.members[i]; m.at == row.bodyAt {
			m.at, m.name = noObject, m.key
		}
	}
	at, _ := row.rest.at(w.Ev, w.Ev.Payload)
	raw := string(*at.(*agentevents.JSON))
	text, err := jsonwire.Compact(cmp.Or(raw, "{}"))
	if err != nil {
		w.Fail(agentevents.RuleFieldJSON, "/payload/"+row.Rest, err.Error())
	}
	for name, raw := range jsonwire.Members(text) {
		w.kept.members = append(w.kept.members, keptMember{key: name, raw: raw, at: row.bodyAt, name: name})
	}
	w.kept.sort()
}

func (k *kept) sort() {
	slices.SortStableFunc(k.members, func(a, b keptMember) int { return strings.Compare(a.at, b.at) })
}

// of returns the members of the object at a pointer, or nil.
func (k *kept) of(at []byte) []keptMember {
	if len(k.members) == 0 {
		return nil
	}
	list := k.members[sort.Search(len(k.members), func(i int) bool { return k.members[i].at >= string(at) }):]
	if len(list) == 0 || list[0].at != string(at) {
		return nil
	}
	return list[:sort.Search(len(list), func(i int) bool { return list[i].at != string(at) })]
}

// find returns the member of that name, or nil.
func find(list []keptMember, name string) *keptMember {
	for i := range slices.Backward(list) { // a member of the row's Rest goes first
		if list[i].name == name {
			return &list[i]
		}
	}
	return nil
}

// Kept returns the kept value of a member of the object that is written, or "".
func (w *Writer) Kept(name string) (raw string) {
	if len(w.kept.members) == 0 { // as mostly
		return ""
	}
	return find(w.kept.of(w.at), name).value(false)
}

// Use is Kept, and marks the value as used.
func (w *Writer) Use(name string) (raw string) { return find(w.kept.of(w.at), name).value(true) }

// KeptAt returns the kept value of a member of the object at a pointer, or "". With use it marks
// the value as used.
func (w *Writer) KeptAt(at, name string, use bool) (raw string) {
	return find(w.kept.of([]byte(at)), name).value(use)
}

// Key is KeptAt for a key that no member has.
func (w *Writer) Key(key string, use bool) (raw string) { return w.KeptAt(noObject, key, use) }

// value returns the value of a kept member, or "". With use it marks it as used.
func (m *keptMember) value(use bool) string {
	if m == nil {
		return ""
	}
	m.used = m.used || use
	return m.raw
}

// rest appends the kept members of the object that is written, whose members begin at mark. With
// inside it appends the kept members of a member of that object.
func (w *Writer) rest(dst []byte, mark int, t *table, v any, inside bool) []byte {
	dst = w.restOf(dst, mark, t, v, w.at, inside)
	if w.F.Elsewhere != nil {
		if at := w.F.Elsewhere(w); at != "" {
			dst = w.restOf(dst, mark, t, v, []byte(at), inside)
		}
	}
	return dst
}

// restOf appends the kept members of the object at a pointer that have a place beside
// the members from mark on.
func (w *Writer) restOf(dst []byte, mark int, t *table, v any, at []byte, inside bool) []byte {
	list, own := w.kept.of(at), len(dst)
	var all map[string]string // the members before, if many are kept
	for i := range list {
		kept := &list[i]
		if kept.used {
			continue
		}
		end := len(dst)
		dst = append(jsonwire.AppendString(append(dst, ','), kept.name), ':')
		if m := t.member(kept.name); m != nil || w.F.Place != nil {
			raw, stands := "", w.mayStand(m, at, kept, v, inside)
			switch {
			case m == nil && !stands:
			case len(list) <= fewKept:
				raw = written(dst[mark:own], dst[end:], kept.name)
			case all == nil:
				all = maps.Collect(jsonwire.Members(objectOf(dst[mark:own])))
				fallthrough
			default:
				raw = all[kept.name]
			}
			if kept.used = raw == kept.raw; raw != "" || !stands {
				dst = dst[:end]
				continue
			}
		}
		kept.used = true
		dst = append(dst, kept.raw...)
	}
	return dst
}

// mayStand reports whether a kept member of the object at a pointer may stand in the
// one that is written, which does not have one of that name. Readers must not take it
// for m, the one of the table.
func (w *Writer) mayStand(m *Member, at []byte, kept *keptMember, v any, inside bool) bool {
	switch {
	case w.F.Place != nil:
		return w.F.Place(w, m, string(at), kept.name, kept.raw)
	case m == nil || inside && !m.inside():
		return true
	}
	return w.F.misfits(w.at) && (w.said.Has(m.number) || w.odd(m, v, kept.raw))
}

// written returns the value of a member among members, each after a comma, or "". lit
// is its name as it is written.
func written(members, lit []byte, name string) string {
	if !bytes.Contains(members, lit) { // as mostly
		return ""
	}
	for member, raw := range jsonwire.Members(objectOf(members)) {
		if member == name {
			return raw
		}
	}
	return ""
}

// fewKept is the largest number of kept members that are looked up one by one among the members of
// the line.
const fewKept = 8

// objectOf returns the object with members, each after a comma.
func objectOf(members []byte) string {
	if len(members) == 0 {
		return "{}"
	}
	return "{" + string(members[1:]) + "}"
}
