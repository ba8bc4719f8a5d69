package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Format is the table of a document.
type Format struct {
	Name dialect.Name // of the dialect
	Head []Member     // of every line; they stand before the members of the row
	Rows []Row        // the types of the document
	// Body is the member of the line that holds the members of the row; empty if
	// they stand on the line itself.
	Body string
	Tail []Member // of every line; they stand after the members of the row
	// Case tells the rows of one type apart by the other members of the line. It is nil if each
	// type has one row.
	Case func(typ, line string) string
	// Any are members of lines whose type has no row.
	Any []Member
	// Required is the rule that needed members are there.
	Required agentevents.Rule
	// Own reports whether a type without a row looks like one of the document, and not like
	// one of other producers: a strict reader refuses it with the rule Type. Nil takes all.
	Own  func(typ string) bool
	Type agentevents.Rule
	// Loose makes readers accept all lines. A value that does not fit its field's type is kept as
	// an extra member, in the body if there is one. A line without a type is read like a type
	// without a row. If Loose is false such lines are refused.
	Loose bool
	// Lax means that only readers check the rules of forms, not writers.
	Lax bool
	// OtherExtra means that events whose type has no row have an extra member too.
	OtherExtra bool
	// Remarks are names in the extra member that stand for no member of the line. A
	// member whose name begins as the first one does is kept under its pointer.
	Remarks []string
	// Nulls reads a member that may not be null as one that is missing, and keeps the
	// null. A strict reader refuses it.
	Nulls bool
	// Absent appends the value of a needed member that the event lacks. Nil writes an empty text.
	Absent func(w *Writer, dst []byte, m *Member) []byte
	// Lack is called first for a member that the event lacks. It reports true if it has decided; it
	// leaves the member out by appending nothing.
	Lack func(w *Writer, dst []byte, m *Member) ([]byte, bool)
	// Pick returns the row of a line, or nil. Nil looks the type up.
	Pick func(r *Reader) *Row
	// Keep is asked about each extra member of the object that is read. It reports
	// true if it has taken the member.
	Keep func(r *Reader, name, raw string) (taken bool, err error)
	// Place reports whether a kept member of the object at a pointer may stand in the object that
	// is written. m is the member of the table with that name, or nil. A nil Place accepts the
	// members of the same object whose names the table lacks.
	Place func(w *Writer, m *Member, from, name, raw string) bool
	// Elsewhere returns the pointer of another object whose kept members may stand in
	// the one that is written too, or "".
	Elsewhere func(w *Writer) string

	restarts bool // starts have a member for a resumed run, because the document has no line for it

	at    string  // the row that New compiles
	typ   *Member // that names the type
	line  *table  // of lines whose type has no row
	other *Row    // the same, for writing
	rows  map[rowKey]*Row
	types map[string]bool
	kinds [2 * maxRows]*Row // by the hash of their kind, or in the next free place
}

// maxRows is more than a document has kinds.
const maxRows = 64

// A Row is a type of line and the kind that it becomes.
type Row struct {
	Type    string
	Kind    agentevents.Kind
	Members []Member
	// Case is the result of [Format.Case] for the lines of the row. The row without a case has the
	// other lines of the type.
	Case string
	// Body are the members of the object whose form is [Body], if the format has no
	// Body for every row. Rest is the field, raw JSON, with the others of that object.
	Body []Member
	Rest string
	// Fields are fields that the line holds beside the fields of its members.
	Fields string
	// Reads means that the row is only read: Kind is written as another row.
	Reads bool
	// More is the dialect's own data on the row.
	More any

	f      *Format
	line   *table // head, members, tail; without the members if there is a body
	body   *table // the members of the body
	rest   *field
	bodyAt string // pointer of the body
}

// A Member is one member of an object.
type Member struct {
	Name string
	// Fields are the places of the native line that the member holds, separated by blanks. The
	// first one is the field of Form.
	Fields string
	Form   Form // nil: [Value]
	// Need means that every line has the member. Null in a member without Need is kept as an extra
	// member, unless the form reads it or the reader is strict.
	Need bool
	// Rule is the rule that a line without it breaks; empty: Required of the format.
	Rule agentevents.Rule
	// Loose means that a value that does not fit is kept as an extra member, and written again as
	// long as the event has no value. Members of Any are loose.
	Loose bool
	// Reads means that the member is only read, and that another member holds its fields.
	Reads bool
	// Plain means that the form writes a field as [Value] does.
	Plain bool
	// For is the member that this one is another spelling of. If a line has both, this
	// one is kept as an extra member.
	For  string
	Also []string // other names that readers accept

	// The data that every line needs stand together, because the rows of a log do not fit the
	// nearest cache.
	special bool            // unless or spread is set
	plain   bool            // the form writes a field as Value does
	full    bool            // and an empty text, too
	lit     string          // `,"name":`
	get     func(v any) any // returns a pointer to field
	field   *field          // nil if the member holds none
	write   Form            // the form, or the part of it that writes
	or      func(w *Writer, dst []byte, m *Member) []byte

	unless  func(w *Writer) bool
	instead int    // the number of the member that For names
	spread  Spread // the form, if it is one
	number  int    // in its table, from 1
	pointer string // native, of the first field in a payload or the envelope
}

// Need returns a member that every line has. places is a list of its Fields, separated by blanks;
// form may be left out.
func Need(name, places string, form ...Form) Member {
	m := May(name, places, form...)
	m.Need = true
	return m
}

// May returns a member that may be absent.
func May(name, places string, form ...Form) Member {
	m := Member{Name: name, Fields: places}
	if len(form) > 0 {
		m.Form = form[0]
	}
	return m
}

// Or returns m with a function that appends the value if the event has none. If the function
// returns nil the member is left out.
func (m Member) Or(f func(w *Writer, dst []byte, m *Member) []byte) Member {
	m.or = f
	return m
}

// Made returns a function for [Member.Or] that appends the given value.
func Made(value string) func(w *Writer, dst []byte, m *Member) []byte {
	return func(_ *Writer, dst []byte, _ *Member) []byte { return append(dst, value...) }
}

// Unless returns m with a function that reports whether the member is left out although the event
// has a value for it.
func (m Member) Unless(f func(w *Writer) bool) Member {
	m.unless = f
	return m
}

// As returns m with more names that readers accept.
func (m Member) As(names ...string) Member {
	m.Also = names
	return m
}

// A Set is a set of members of a table, by their numbers.
type Set uint64

// Has reports whether the member of that number is in the set.
func (s Set) Has(n int) bool { return s>>(n&63)&1 != 0 }

// A table is the compiled list of the members of one object.
type table struct {
	in       string // the struct that the members are fields of
	members  []*Member
	names    []jsonwire.Name
	of       []*Member // by number; a name of Also has a number of its own
	named    map[string]*Member
	required Set
	rest     bool // of a row's Body
	missers  Set  // members whose form is a Misser
	foreign  Set  // members with For
}

// New compiles a table. It panics if the table names a field that does not exist:
// a table is a constant of its package.
func New(f Format) *Format {
	f.rows, f.types = map[rowKey]*Row{}, map[string]bool{}
	if f.Absent == nil {
		f.Absent = emptyText
	}
	for i := range f.Any {
		f.Any[i].Loose = true
	}
	f.line = f.table("", f.Head, f.Any, f.Tail)
	f.typ = f.line.of[1+slices.IndexFunc(f.line.of[1:], func(m *Member) bool { return m.Form == Type })]
	f.other = &Row{f: &f, line: f.line}
	for i := range f.Rows {
		r := &f.Rows[i]
		r.f, f.at = &f, strings.TrimSpace(r.Type+" "+r.Case)
		name := payloadName(r.Kind)
		if f.Body == "" {
			r.line = f.table(name, f.Head, r.Members, f.Tail)
			if r.Body != nil {
				r.body = f.table(name, r.Body)
				r.body.rest = true
				at := slices.IndexFunc(r.line.members, func(m *Member) bool { return m.Form == Body })
				r.bodyAt = "/" + r.line.members[at].Name
			}
		} else {
			r.line = f.table(name, f.Head, f.Tail)
			r.body = f.table(name, r.Members)
		}
		for place := range strings.FieldsSeq(r.Fields) {
			f.field("Fields", name, place)
		}
		if r.Rest != "" {
			r.rest = f.field("Rest", name, r.Rest)
		}
		f.rows[rowKey{r.Type, r.Case}], f.types[r.Type] = r, true
		if !r.Reads {
			*f.kind(r.Kind) = r
		}
	}
	if start := f.Row(agentevents.KindAgentStarted); start != nil && f.Row(agentevents.KindRunResumed) == nil {
		f.restarts = start.line.holds("resumed") || start.body.holds("resumed")
	}
	return &f
}

// payloadName returns the name of the struct of a kind.
func payloadName(k agentevents.Kind) string {
	p := agentevents.NewPayload(k)
	return strings.TrimPrefix(fmt.Sprintf("%T", p), "*agentevents.")
}

// table compiles members whose fields are of the struct of that name.
func (f *Format) table(in string, lists ...[]Member) *table {
	t := &table{in: in, of: make([]*Member, 1), named: map[string]*Member{}}
	var names []string
	for _, member := range slices.Concat(lists...) {
		m := &member
		t.members = append(t.members, m)
		m.special = m.unless != nil
		if m.spread, _ = m.Form.(Spread); m.spread != nil {
			m.special = true
			m.compile(f, in)
			continue
		}
		m.number, m.lit = len(t.of), `,"`+m.Name+`":`
		for _, name := range append([]string{m.Name}, m.Also...) {
			names = append(names, name)
			t.of = append(t.of, m)
			t.named[name] = cmp.Or(t.named[name], m)
		}
		if m.Need {
			t.required |= 1 << m.number
			if m.or == nil {
				m.or = f.Absent
			}
		}
		m.compile(f, in)
		if _, ok := m.Form.(Misser); ok {
			t.missers |= 1 << m.number
		}
	}
	for _, m := range t.members {
		if m.For != "" {
			m.instead = t.number(m.For)
			t.foreign |= 1 << m.number
		}
	}
	if len(names) > 63 {
		panic("engine: too many members")
	}
	t.names = jsonwire.Names(names...)
	return t
}

// field finds the field of a member.
func (f *Format) field(member, in, says string) *field {
	found := fieldAt(in, says)
	if found == nil {
		panic(fmt.Sprintf("engine: %s, row %s, member %s: %s has no field %s; misspelt, or go run ./internal/gen",
			f.Name, cmp.Or(f.at, "of any type"), member, cmp.Or(in, "the envelope"), says))
	}
	return found
}

func (m *Member) compile(f *Format, in string) {
	for i, place := range strings.Fields(m.Fields) {
		field := f.field(m.Name, in, place)
		if i > 0 {
			continue
		}
		m.field, m.get, m.pointer = field, field.get, place
		if place[0] != '/' {
			m.pointer = "/payload/" + place
		}
	}
	if m.Form == nil {
		m.Form = Value{}
	}
	if n, ok := m.Form.(nestedForm); ok {
		if m.field == nil {
			m.field = &field{in: in} // the struct around
		}
		m.Form = n.compile(f, m)
	}
	m.write = f.writes(m.Form)
	_, m.full = m.write.(Full)
	m.plain = m.Plain || m.full || plain(m.write)
}

// writes returns the part of a form that writes values.
func (f *Format) writes(form Form) Form {
	switch in := form.(type) {
	case nullable:
		return f.writes(in.Form)
	case *checked:
		if f.Lax {
			return f.writes(in.Form)
		}
	}
	return form
}

// plain reports whether a form writes as Value does.
func plain(form Form) bool {
	switch form.(type) {
	case Value, EmptyKept, Whole:
		return true
	}
	return false
}

// holds reports whether lines have a member for the field of that name.
func (t *table) holds(name string) bool {
	return t != nil && slices.ContainsFunc(t.members,
		func(m *Member) bool { return !m.Reads && slices.Contains(strings.Fields(m.Fields), name) })
}

// Row returns the row of a kind, or nil.
func (f *Format) Row(kind agentevents.Kind) *Row { return *f.kind(kind) }

// kind returns the place of the row of a kind.
func (f *Format) kind(kind agentevents.Kind) **Row {
	i := jsonwire.Hash(string(kind))
	for ; ; i++ {
		if at := &f.kinds[i%uint64(len(f.kinds))]; *at == nil || (*at).Kind == kind {
			return at
		}
	}
}

// CaseRow returns the row of a type for a case, which may be empty, or nil.
func (f *Format) CaseRow(typ, name string) *Row { return f.rows[rowKey{typ, name}] }

// Member returns the member of the row with that name, or nil. One in the body goes first.
func (r *Row) Member(name string) *Member { return cmp.Or(r.body.member(name), r.line.member(name)) }

type rowKey struct{ typ, name string }

// row returns the row of a line, or nil.
func (f *Format) row(typ, line string) *Row {
	name := ""
	if f.Case != nil {
		name = f.Case(typ, line)
	}
	return cmp.Or(f.CaseRow(typ, name), f.CaseRow(typ, ""))
}

// member returns the member of that name, or nil.
func (t *table) member(name string) *Member {
	if t == nil {
		return nil
	}
	return t.named[name]
}

// inside reports whether the member holds a field of the payload.
func (m *Member) inside() bool { return m.field != nil && m.field.envelope == nil }

// Pointer returns the native pointer of the first field of a member of a line.
func (m *Member) Pointer() string { return m.pointer }

// Field returns a pointer to the first field of a member of a row, or nil.
func (m *Member) Field(ev *agentevents.Event) any { return m.in(ev, ev.Payload) }

// A field is how to get at a field of an event, or of a struct inside.
type field struct {
	envelope func(ev *agentevents.Event) any
	get      func(v any) any // of a field that is not inside another one that may be absent
	path     []fieldInfo     // in the payload or struct
	in       string          // the struct that the field is; empty for other types
}

// A fieldInfo describes a field of a struct.
type fieldInfo struct {
	name string
	in   string            // the struct that the field is, perhaps in an Opt; empty for other types
	get  func(v any) any   // returns a pointer to the field; of a struct in an Opt, to the struct
	ok   func(v any) *bool // of a struct in an Opt: whether it is there
}

// fieldAt finds the field at a place, in the envelope or in a struct. It returns nil if
// there is none.
func fieldAt(in, says string) *field {
	if strings.HasPrefix(says, "/") {
		if get := envelopeFields[says]; get != nil {
			return &field{envelope: get}
		}
		return nil
	}
	f := &field{in: in}
	for name := range strings.SplitSeq(says, "/") {
		i := slices.IndexFunc(structFields[f.in], func(i fieldInfo) bool { return i.name == name })
		if i < 0 {
			return nil
		}
		f.path = append(f.path, structFields[f.in][i])
		f.in = structFields[f.in][i].in
	}
	if len(f.path) == 1 && f.path[0].ok == nil {
		f.get = f.path[0].get
	}
	return f
}

// at returns a pointer to the field of an event whose payload, or the struct inside
// that is read or written, is v. said is false if the field is in a struct that is
// absent.
func (f *field) at(ev *agentevents.Event, v any) (at any, said bool) {
	if f.get != nil {
		return f.get(v), true
	}
	if f.envelope != nil {
		return f.envelope(ev), true
	}
	said = true
	for i := range f.path {
		p := &f.path[i]
		if p.ok != nil && !*p.ok(v) {
			said = false
		}
		v = p.get(v)
	}
	return v, said
}

// optional reports whether the field is a struct that may be absent.
func (f *field) optional() bool { return len(f.path) > 0 && f.path[len(f.path)-1].ok != nil }

// mark makes the structs around the field present.
func (f *field) mark(v any) {
	for i := range f.path {
		p := &f.path[i]
		if p.ok != nil {
			*p.ok(v) = true
		}
		v = p.get(v)
	}
}

var envelopeFields = map[string]func(ev *agentevents.Event) any{
	"/id":            func(ev *agentevents.Event) any { return &ev.ID },
	"/sequence":      func(ev *agentevents.Event) any { return &ev.Sequence },
	"/timestamp":     func(ev *agentevents.Event) any { return &ev.Time },
	"/runId":         func(ev *agentevents.Event) any { return &ev.RunID },
	"/sessionId":     func(ev *agentevents.Event) any { return &ev.SessionID },
	"/taskId":        func(ev *agentevents.Event) any { return &ev.TaskID },
	"/workflowId":    func(ev *agentevents.Event) any { return &ev.WorkflowID },
	"/phase":         func(ev *agentevents.Event) any { return &ev.Phase },
	"/nodeId":        func(ev *agentevents.Event) any { return &ev.NodeID },
	"/nodeRunId":     func(ev *agentevents.Event) any { return &ev.NodeRunID },
	"/agentId":       func(ev *agentevents.Event) any { return &ev.AgentID },
	"/actor":         func(ev *agentevents.Event) any { return &ev.Actor },
	"/parentAgentId": func(ev *agentevents.Event) any { return &ev.ParentAgentID },
	"/parentCallId":  func(ev *agentevents.Event) any { return &ev.ParentCallID },
	"/step":          func(ev *agentevents.Event) any { return &ev.Step },
	"/traceId":       func(ev *agentevents.Event) any { return &ev.TraceID },
	"/spanId":        func(ev *agentevents.Event) any { return &ev.SpanID },
	"/parentSpanId":  func(ev *agentevents.Event) any { return &ev.ParentSpanID },
	"/causationId":   func(ev *agentevents.Event) any { return &ev.CausationID },
	"/marks":         func(ev *agentevents.Event) any { return &ev.Marks },
}
