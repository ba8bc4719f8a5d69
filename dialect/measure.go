package dialect

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Words are the words of a document for its losses.
type Words struct {
	// Why has the reasons of losses. A key is a pointer into the event's native line. One that
	// ends in /* stands for all members below it. Before the pointer may stand the name of a
	// [Change], and after that a kind, each with a blank. Of several keys the most exact
	// applies. The change and the kind alone are a whole event: of a made-up one it is the
	// kind that readers find.
	Why map[string]string
	// Derived lists pointers of values that only readers make up, such as /id. The
	// new value is not listed. The event's own value is dropped when another one comes back.
	Derived []string
	// Notes lists pointers of remarks on a line's spelling. Their differences are not listed.
	Notes []string
	// Every lists keys, without a kind, of losses that are counted over all kinds.
	Every []string
	// Absent is the pointer of a list in which readers keep the pointers of usual members that a line
	// lacks. Those that the written line has are listed there as made up, by their names.
	Absent string
}

// A Measure finds losses: it reads the lines of each event back and compares the event that
// comes back with the one that was written, member by member. A loss inside raw JSON is one of
// the whole field. [Measured] is enough for an encoder that writes every event at once. Others call
// Joined for a return that has its call on its line, or Waits, Came and Ends where lines come
// later. It is not for concurrent use.
//
// It remembers all that its decoder remembers, the events that wait, and a count for each
// different loss. The zero Measure and a nil one read nothing and have no losses.
type Measure struct {
	dec     agentevents.Decoder
	name    Name
	words   Words
	losses  Losses
	shapes  map[reflect.Type]*shape
	whys    map[lossOf]map[string]*why                          // by pointer
	waiting map[string]map[agentevents.Kind][]agentevents.Event // by run: events whose lines have not come
	// Of the event that was written last:
	own     agentevents.Event // a copy, so that the caller's stays off the heap
	ev      *agentevents.Event
	joined  bool // the line of its return also records this call
	back    []agentevents.Event
	lines   [2][]byte // native: of the event, and of the one that came back
	members []member  // of the objects that are compared
	at      []byte    // the pointer of the value that is compared
}

type lossOf struct {
	kind agentevents.Kind
	what Change
}

// A why is the reason of a loss.
type why struct {
	pointer, detail string
	every           bool // it is counted over all kinds
}

// NewMeasure returns a Measure for a document. The decoder reads its lines, and must be a new
// one. The event's extra member with the name of the document has a loss for each member.
func NewMeasure(name Name, dec agentevents.Decoder, words Words) *Measure {
	return &Measure{dec: dec, name: name, words: words, shapes: map[reflect.Type]*shape{},
		whys: map[lossOf]map[string]*why{}}
}

// Measured returns an encoder that writes the lines of enc and measures the losses: see
// [Measure].
func Measured(enc Encoder, m *Measure) Encoder { return &measured{enc, m} }

type measured struct {
	Encoder
	m *Measure
}

func (e *measured) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	mark := len(dst)
	dst, err := e.Encoder.Append(dst, ev)
	e.m.Wrote(&ev, dst[mark:], err)
	return dst, err
}

func (e *measured) Losses() []Loss { return e.m.Losses() }

// Losses returns the losses so far.
func (m *Measure) Losses() []Loss {
	if m == nil {
		return nil
	}
	return m.losses.List()
}

// Wrote counts the losses of an event, for which an encoder has written these lines and returned
// this error. An event that is refused with another error than [ErrNoCounterpart] has none.
func (m *Measure) Wrote(ev *agentevents.Event, lines []byte, err error) {
	m.Joined(ev, nil, lines, err)
}

// Joined does the work of Wrote for a return whose lines also record its call. call is nil if they
// do not.
func (m *Measure) Joined(ev, call *agentevents.Event, lines []byte, err error) {
	if m == nil || m.dec == nil || ev == nil || ev.Kind() == "" {
		return
	}
	m.own = *ev
	m.ev = &m.own
	switch {
	case errors.Is(err, ErrNoCounterpart):
		m.whole(Dropped, noCounterpart)
	case err != nil:
	case len(lines) == 0:
		m.whole(Dropped, cmp.Or(m.words.Why[Dropped.String()+" "+string(ev.Kind())], m.words.Why[Dropped.String()]))
	default:
		m.read(lines, call)
	}
	m.own, m.ev = agentevents.Event{}, nil
}

// Waits notes an event whose lines come later: [Measure.Came] gets them. The events of a run
// come back in their order.
func (m *Measure) Waits(ev *agentevents.Event) {
	if m == nil || m.dec == nil {
		return
	}
	if m.waiting == nil {
		m.waiting = map[string]map[agentevents.Kind][]agentevents.Event{}
	}
	kinds := m.waiting[ev.RunID]
	if kinds == nil {
		kinds = map[agentevents.Kind][]agentevents.Event{}
		m.waiting[strings.Clone(ev.RunID)] = kinds
	}
	kinds[ev.Kind()] = append(kinds[ev.Kind()], *ev)
}

// Came counts the losses of the events that wait and have these lines.
func (m *Measure) Came(lines []byte) {
	if m == nil || m.dec == nil || len(lines) == 0 {
		return
	}
	for line := range bytes.SplitSeq(lines, newline) { // each event is compared with its own line
		m.decode(line)
		for i := range m.back {
			back := &m.back[i]
			if m.take(back) {
				m.compare(back, line)
			} else {
				m.ev = back
				m.whole(Made, m.as(Made, back.Kind(), back.Kind()))
			}
		}
		m.release()
	}
	m.own, m.ev = agentevents.Event{}, nil
}

// Ends counts the events that still wait as dropped.
func (m *Measure) Ends() {
	if m == nil {
		return
	}
	for _, run := range slices.Sorted(maps.Keys(m.waiting)) {
		kinds := m.waiting[run]
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			for i := range kinds[kind] {
				m.losses.Add(&kinds[kind][i], Dropped, "", noReader)
			}
		}
	}
	m.waiting = nil
}

// noReader is the reason for an event whose line no reader takes.
const noReader = "readers refuse its line"

// take takes the event for which another one came back: the first of its run and kind that
// waits. It is false if none does.
func (m *Measure) take(back *agentevents.Event) bool {
	run := back.RunID
	if m.waiting[run] == nil && len(m.waiting) == 1 { // no line names the run
		for run = range m.waiting {
		}
	}
	kinds := m.waiting[run]
	list := kinds[back.Kind()]
	if len(list) == 0 {
		return false
	}
	m.own, list[0] = list[0], agentevents.Event{}
	m.ev = &m.own
	if kinds[back.Kind()] = list[1:]; len(list) == 1 {
		delete(kinds, back.Kind())
	}
	if len(kinds) == 0 {
		delete(m.waiting, run)
		if len(m.waiting) < 2 { // walking through a map takes time for all that it once had
			m.waiting = maps.Collect(maps.All(m.waiting))
		}
	}
	return true
}

// noCounterpart is the reason for an event without a line.
const noCounterpart = "no counterpart"

// whole counts a loss of the whole event.
func (m *Measure) whole(what Change, detail string) { m.losses.Add(m.ev, what, "", detail) }

// read reads the lines of the event and of its call, and compares them with the event that
// comes back.
func (m *Measure) read(lines []byte, call *agentevents.Event) {
	refused := m.decode(lines)
	defer m.release()
	own := len(m.back) - 1
	switch {
	case own < 0 && refused != nil:
		m.whole(Dropped, noReader)
		return
	case own < 0:
		m.whole(Dropped, "an earlier event has the same line: readers take it for that one")
		return
	}
	for i := range m.back {
		if m.back[i].Kind() == m.ev.Kind() {
			own = i
		}
	}
	for i := range m.back {
		if kind := m.back[i].Kind(); i != own {
			m.whole(Made, m.as(Made, kind, kind))
		}
	}
	if back, ok := m.back[own].Payload.(*agentevents.ToolReturned); ok && call != nil {
		m.join(&m.back[own], back, call, lines)
	}
	m.compare(&m.back[own], lines)
}

// decode reads lines. It returns the last error.
func (m *Measure) decode(lines []byte) (refused error) {
	m.back = m.back[:0]
	for line := range bytes.SplitSeq(lines, newline) {
		if len(line) == 0 {
			continue
		}
		var err error
		if m.back, err = m.dec.Decode(m.back, line); err != nil {
			refused = err
		}
	}
	return refused
}

// join compares a call with the line of its return. The event becomes a whole call.
func (m *Measure) join(back *agentevents.Event, p *agentevents.ToolReturned, call *agentevents.Event, lines []byte) {
	ev, whole := *m.ev, *m.ev.Payload.(*agentevents.ToolReturned)
	whole.OneEvent, ev.Payload = true, &whole
	if m.at = append(m.at[:0], "/payload/arguments"...); whole.Arguments != "" &&
		!same(string(whole.Arguments), string(p.Arguments)) {
		m.count(Dropped)
	}
	if m.at = append(m.at, "Summary"...); whole.ArgumentsSummary != "" && whole.ArgumentsSummary != p.ArgumentsSummary {
		m.count(Dropped)
	}
	whole.Arguments, whole.ArgumentsSummary = p.Arguments, p.ArgumentsSummary // the line of the call may have them
	called := *back
	called.Payload = &agentevents.ToolCalled{CallID: p.CallID, ToolID: p.ToolID, Arguments: p.Arguments,
		ArgumentsSummary: p.ArgumentsSummary}
	if p.Duration.OK {
		called.Time = called.Time.Add(-p.Duration.V)
	}
	m.ev, m.joined = call, true
	m.whole(Altered, m.as(Altered, call.Kind(), back.Kind()))
	m.compare(&called, lines)
	m.ev, m.joined = &ev, false
}

var newline = []byte("\n")

// release lets go of the texts of the event, which may be long.
func (m *Measure) release() {
	clear(m.back)
	clear(m.members[:cap(m.members)])
}

// as returns the reason for an event of a kind that has a line of another one.
func (m *Measure) as(what Change, of, read agentevents.Kind) string {
	return cmp.Or(m.words.Why[what.String()+" "+string(of)], "read as "+jsonwire.BriefName(string(read)))
}

// compare counts the differences of the event and the one that came back for it.
func (m *Measure) compare(back *agentevents.Event, lines []byte) {
	was, err := m.ev.AppendJSON(m.lines[0][:0])
	is, backErr := back.AppendJSON(m.lines[1][:0])
	m.lines = [2][]byte{small(was), small(is)}
	for _, at := range Damaged(m.ev, lines) {
		m.losses.Add(m.ev, Altered, at, DamagedText)
	}
	if err != nil || backErr != nil {
		m.whole(Altered, "it has no native line")
		return
	}
	payload := &otherKind
	if back.Kind() != m.ev.Kind() {
		m.whole(Altered, m.as(Altered, m.ev.Kind(), back.Kind()))
	} else if payload = m.shape(reflect.TypeOf(m.ev.Payload)); payload == nil {
		payload = &anyMember
	}
	m.at = m.at[:0]
	m.object(string(was), string(is), func(name string) *shape {
		switch name {
		case "payload":
			return payload
		case string(m.name):
			return &anyMember
		}
		return nil
	})
}

// small returns a buffer for the next line, or none if it is large.
func small(buf []byte) []byte {
	if cap(buf) > maxBuffer {
		return nil
	}
	return buf
}

// A member is a member of an object.
type member struct{ name, raw string }

// object compares the members of two objects. inner returns the shape of a member.
func (m *Measure) object(was, is string, inner func(name string) *shape) {
	mark := len(m.members)
	for name, raw := range jsonwire.Members(is) {
		m.members = append(m.members, member{name, raw})
	}
	end := len(m.members)
	next := mark // both have the order of the native format
	for name, raw := range jsonwire.Members(was) {
		i := find(m.members[next:end], name) + next
		if i == end {
			if i = find(m.members[mark:next], name) + mark; i == next {
				m.member(name, raw, "", inner)
				continue
			}
		} else {
			next = i + 1
		}
		now := m.members[i].raw
		m.members[i].raw = ""
		if now != raw {
			m.member(name, raw, now, inner)
		}
	}
	for i := mark; i < end; i++ {
		if one := m.members[i]; one.raw != "" {
			m.member(one.name, "", one.raw, inner)
		}
	}
	m.members = m.members[:mark]
}

// find returns the index of a member, or how many there are.
func find(list []member, name string) int {
	for i := range list {
		if list[i].name == name {
			return i
		}
	}
	return len(list)
}

// member compares the values of a member, which differ.
func (m *Measure) member(name, was, is string, inner func(name string) *shape) {
	n := len(m.at)
	m.at = append(m.at, '/')
	m.at = append(m.at, jsonwire.Token(name)...)
	m.value(was, is, inner(name), n)
	m.at = m.at[:n]
}

// value compares two values that differ. One that is not there is "". around is the length of the
// pointer of the object around them.
func (m *Measure) value(was, is string, s *shape, around int) {
	switch at := string(m.at); {
	case at == "/type": // the kind is compared apart
	case at == "/marks":
		m.marks(was, is)
	case at == m.words.Absent:
		m.absent(was, is)
	case s == &otherKind:
		m.moved(was, is)
	case s == &otherMember:
		m.losses.Add(m.ev, change(was, is), at[:around], "members that no field has")
	case s == &anyMember && was+is != "{}" && (was == "" || jsonwire.IsObject(was)) && (is == "" || jsonwire.IsObject(is)):
		m.object(was, is, func(string) *shape { return nil })
	case s == nil || was == "" || is == "" || was[0] != is[0]:
		m.differ(was, is)
	case s.members != nil:
		m.object(was, is, s.member)
	case s.element != nil:
		m.list(was, is, s.element)
	default:
		m.differ(was, is)
	}
}

// moved compares the payloads of two kinds: a member is lost if the other one has neither
// its value under its name nor its text anywhere.
func (m *Measure) moved(was, is string) {
	n := len(m.at)
	for name, raw := range jsonwire.Members(was) {
		now := jsonwire.Member(is, name)
		elsewhere := len(raw) > 2 && typeOf(raw) != '0' && typeOf(raw) != 't' && strings.Contains(is, raw)
		if !zero(raw) && now != raw && !elsewhere {
			m.at = append(append(m.at[:n], '/'), jsonwire.Token(name)...)
			m.differ(raw, now)
		}
	}
	m.at = m.at[:n]
}

// list compares the elements of two lists, or the values of two maps.
func (m *Measure) list(was, is string, s *shape) {
	before, after := inside(was), inside(is)
	raw := func(list []member, i int, name string) string {
		if was[0] == '{' {
			i = find(list, name)
		}
		if i < len(list) {
			return list[i].raw
		}
		return ""
	}
	n := len(m.at)
	m.at = append(m.at, "/*"...)
	for i, a := range before {
		if b := raw(after, i, a.name); a.raw != b {
			m.value(a.raw, b, s, n)
		}
	}
	for i, b := range after {
		if raw(before, i, b.name) == "" {
			m.value("", b.raw, s, n)
		}
	}
	m.at = m.at[:n]
}

// marks compares sets of marks.
func (m *Measure) marks(was, is string) {
	before, after := slices.Collect(jsonwire.Elements(was)), slices.Collect(jsonwire.Elements(is))
	if slices.ContainsFunc(before, func(mark string) bool { return !slices.Contains(after, mark) }) {
		m.count(Dropped)
	}
	if slices.ContainsFunc(after, func(mark string) bool { return !slices.Contains(before, mark) }) {
		m.count(Made)
	}
}

// absent lists the members that the line that was read lacks, and the written one has.
func (m *Measure) absent(was, is string) {
	after := slices.Collect(jsonwire.Elements(is))
	var names []string
	for at := range jsonwire.Elements(was) {
		if !slices.Contains(after, at) {
			names = append(names, strings.TrimPrefix(strings.TrimPrefix(jsonwire.Text(at), "/payload"), "/"))
		}
	}
	if len(names) > 0 {
		m.losses.Add(m.ev, Made, string(m.at), strings.Join(names, ", "))
	}
}

// differ counts a difference.
func (m *Measure) differ(was, is string) {
	if same(was, is) {
		return
	}
	what := change(was, is)
	if slices.Contains(m.words.Notes, string(m.at)) {
		return
	}
	if slices.Contains(m.words.Derived, string(m.at)) {
		if was == "" || was == `""` {
			return
		}
		what = Dropped
	}
	m.count(what)
}

// change returns the change from one value to another. A missing value is "", and a zero counts
// as missing beside another value of its type.
func change(was, is string) Change {
	switch {
	case was == "":
		return Made
	case is == "":
		return Dropped
	case typeOf(was) != typeOf(is):
		return Altered
	case zero(was):
		return Made
	case zero(is):
		return Dropped
	}
	return Altered
}

// typeOf returns a byte for the type of a JSON value.
func typeOf(raw string) byte {
	switch c := raw[0]; c {
	case '"', '{', '[', 'n':
		return c
	case 't', 'f':
		return 't'
	}
	return '0'
}

// same reports whether two values differ only in blanks and in the spelling of names.
func same(was, is string) bool {
	if was == is {
		return true
	}
	if was == "" || is == "" || was[0] != is[0] || was[0] != '{' && was[0] != '[' {
		return false
	}
	before, after := inside(was), inside(is)
	if len(before) != len(after) {
		return false
	}
	for i := range before {
		if before[i].name != after[i].name || !same(before[i].raw, after[i].raw) {
			return false
		}
	}
	return true
}

// inside returns the members of an object, or the elements of a list.
func inside(raw string) (list []member) {
	for name, value := range jsonwire.Members(raw) {
		list = append(list, member{name, value})
	}
	for value := range jsonwire.Elements(raw) {
		list = append(list, member{"", value})
	}
	return list
}

// zero reports whether a value is a zero.
func zero(raw string) bool {
	switch raw {
	case `""`, "0", "false", "null", "{}", "[]", `"0001-01-01T00:00:00.000Z"`, `"1970-01-01T00:00:00.000Z"`:
		return true
	}
	return false
}

// count counts a loss at the pointer.
func (m *Measure) count(what Change) {
	if m.joined {
		if what == Made {
			return // the line has it as a fact of the return
		}
		what = Dropped
	}
	of := lossOf{m.ev.Kind(), what}
	w := m.whys[of][string(m.at)]
	if w == nil {
		w = m.why(of, string(m.at))
		if m.whys[of] == nil {
			m.whys[of] = map[string]*why{}
		}
		m.whys[of][w.pointer] = w
	}
	if w.every {
		m.losses.Every(m.ev, what, w.pointer, w.detail)
	} else {
		m.losses.Add(m.ev, what, w.pointer, w.detail)
	}
}

// why returns the reason for losses of a kind at a pointer.
func (m *Measure) why(of lossOf, pointer string) *why {
	w := &why{pointer: pointer}
	change := of.what.String() + " "
	w.every = slices.Contains(m.words.Every, pointer) || slices.Contains(m.words.Every, change+pointer)
	for at, around := pointer, pointer; around != ""; at = around + "/*" {
		around = around[:strings.LastIndexByte(around, '/')]
		for _, key := range []string{change + string(of.kind) + " " + at, change + at, at} {
			if detail, ok := m.words.Why[key]; ok {
				w.detail = detail
				return w
			}
		}
	}
	return w
}

// A shape is the form of a value of the native format. A value without one is compared as a
// whole: a text, a number or raw JSON.
type shape struct {
	members map[string]*shape // of an object with fields
	element *shape            // of a list or map
}

// Shapes that no type has.
var (
	anyMember   shape // of an object whose members have no shape
	otherMember shape // of a member without a field in its object
	otherKind   shape // of the payload of an event that came back as another kind
)

// member returns the shape of a member of an object.
func (s *shape) member(name string) *shape {
	inner, ok := s.members[name]
	if !ok {
		return &otherMember
	}
	return inner
}

// shape returns the shape of the values of a type, or nil.
func (m *Measure) shape(t reflect.Type) *shape {
	if s, ok := m.shapes[t]; ok {
		return s
	}
	switch {
	case t.Kind() == reflect.Pointer, strings.HasPrefix(t.Name(), "Opt["):
		inner := t
		if t.Kind() == reflect.Pointer {
			inner = t.Elem()
		} else {
			inner = t.Field(0).Type
		}
		m.shapes[t] = m.shape(inner)
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
		s := &shape{}
		m.shapes[t] = s
		s.element = m.shape(t.Elem())
		if s.element == nil {
			m.shapes[t] = nil
		}
	case t.Kind() == reflect.Struct:
		s := &shape{members: map[string]*shape{}}
		m.shapes[t] = s
		for i := range t.NumField() {
			f := t.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "" && name != "-" {
				s.members[name] = m.shape(f.Type)
			}
		}
		if len(s.members) == 0 {
			m.shapes[t] = nil // such as a time
		}
	default:
		m.shapes[t] = nil
	}
	return m.shapes[t]
}
