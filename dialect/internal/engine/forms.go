package engine

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Form is the notation of a member's first field.
type Form interface {
	// Append appends the value of the field at the pointer. It reports false if the event has no
	// value; the caller then discards the appended bytes.
	Append(w *Writer, dst []byte, m *Member, at any) ([]byte, bool)
	// Parse reads the value into the field at the pointer.
	Parse(r *Reader, at any) error
}

// A Misser is a Form that is told when an object that is read does not have its
// member.
type Misser interface{ Missed(r *Reader, at any) }

// A nestedForm has a table of its own, which is compiled with the member's.
type nestedForm interface {
	compile(f *Format, m *Member) Form
}

// A Spread is a form whose value stands among the members of its object, and not
// as one member.
type Spread interface {
	Form
	// AppendMembers appends members, each after a comma.
	AppendMembers(w *Writer, dst []byte) []byte
}

// Type is the form of the member that names the type of a line.
var Type Form = typeForm{}

type typeForm struct{}

func (typeForm) Append(w *Writer, dst []byte, _ *Member, _ any) ([]byte, bool) {
	return jsonwire.AppendString(dst, w.typ), true
}

func (typeForm) Parse(r *Reader, _ any) error { return r.S.Skip() }

// Body is the form of the member that holds the members of the row.
var Body Form = bodyForm{}

type bodyForm struct{}

func (bodyForm) Append(w *Writer, dst []byte, m *Member, _ any) ([]byte, bool) {
	if w.row.body == nil {
		return append(dst, w.body...), w.body != ""
	}
	w.at = append(append(w.at, '/'), m.Name...)
	dst = w.object(dst, w.row.body, w.Ev.Payload)
	w.at = w.at[:0]
	return dst, true
}

func (bodyForm) Parse(r *Reader, _ any) (err error) {
	if r.Row == nil {
		r.Body, err = r.S.Raw()
		return err
	}
	r.at = append(append(r.at, '/'), r.F.Body...)
	r.In, err = r.object(r.Row.body, r.Ev.Payload)
	if r.Row.rest != nil {
		rest, _ := r.Row.rest.at(r.Ev, r.Ev.Payload)
		*rest.(*agentevents.JSON) = r.rest.Object()
		r.rest.Reset()
	}
	r.at = r.at[:0]
	return err
}

// Inside is the form of a member of the body that contains the body's other members with fields of
// the payload. A line may have these members inside or beside it.
type Inside struct{}

// Append appends the members.
func (Inside) Append(w *Writer, dst []byte, m *Member, _ any) ([]byte, bool) {
	line, here := len(w.at), w.here
	w.at = append(append(w.at, '/'), m.Name...)
	w.here = w.kept.of(w.at)
	t := w.row.body
	mark := len(dst)
	for _, m := range t.members {
		if m.inside() {
			dst = w.special(dst, m, w.Ev.Payload)
		}
	}
	if w.here != nil {
		dst = w.rest(dst, mark, t, w.Ev.Payload, true)
	}
	w.at, w.here, w.inside = w.at[:line], here, true
	return braces(dst, mark), true
}

// Parse reads the members.
func (Inside) Parse(r *Reader, _ any) error {
	defer r.leave(r.enter(r.m.Name))
	return r.members(true)
}

// Const is a value that every line of the row has.
type Const string

// Append appends the value.
func (c Const) Append(_ *Writer, dst []byte, _ *Member, _ any) ([]byte, bool) {
	return append(dst, c...), true
}

// Parse reads any value.
func (Const) Parse(r *Reader, _ any) error { return r.S.Skip() }

// Value is the form that follows from the type of the field: texts, raw JSON, numbers, true and
// false, milliseconds, times, lists of texts. It does not write an empty text, empty raw JSON,
// false or an absent value. It writes other zeros.
type Value struct{}

// Append appends the value.
func (Value) Append(w *Writer, dst []byte, m *Member, at any) ([]byte, bool) {
	switch v := at.(type) {
	case *string:
		if *v == "" {
			return dst, false
		}
		return jsonwire.AppendString(dst, *v), true
	case *agentevents.JSON:
		return appendJSON(w, dst, m, *v)
	case *agentevents.Opt[int]:
		return jsonwire.AppendInt(dst, int64(v.V)), v.OK
	case *agentevents.Opt[int64]:
		return jsonwire.AppendInt(dst, v.V), v.OK
	case *agentevents.Opt[float64]:
		if !v.OK {
			return dst, false
		}
		return appendFloat(w, dst, m, v.V), true
	case *agentevents.Opt[time.Duration]:
		return jsonwire.AppendMillis(dst, v.V), v.OK
	case *agentevents.Opt[bool]:
		return strconv.AppendBool(dst, v.V), v.OK
	case *bool:
		return append(dst, "true"...), *v
	case *int:
		return jsonwire.AppendInt(dst, int64(*v)), true
	case *int64:
		return jsonwire.AppendInt(dst, *v), true
	case *uint64:
		return jsonwire.AppendUint(dst, *v), true
	case *float64:
		return appendFloat(w, dst, m, *v), true
	case *time.Duration:
		return jsonwire.AppendMillis(dst, *v), true
	case *time.Time:
		if !writable(*v) {
			w.Fail(agentevents.RuleFieldRange, w.Pointer(m), badYear)
		}
		return jsonwire.AppendTime(dst, *v), !v.IsZero()
	case *[]string:
		return appendTexts(dst, *v), *v != nil
	}
	panic(fmt.Sprintf("engine: %s: no form for %T", m.Name, at))
}

// Parse reads the value. A value that does not fit leaves the field as it is.
func (Value) Parse(r *Reader, at any) error {
	s := &r.S
	switch v := at.(type) {
	case *string:
		return set(v)(s.String())
	case *agentevents.JSON:
		return set((*string)(v))(s.Raw())
	case *agentevents.Opt[int]:
		return some(v)(s.SmallInt())
	case *agentevents.Opt[int64]:
		return some(v)(s.Int())
	case *agentevents.Opt[float64]:
		return some(v)(s.Float())
	case *agentevents.Opt[time.Duration]:
		return some(v)(s.Millis())
	case *agentevents.Opt[bool]:
		return some(v)(s.Bool())
	case *bool:
		return set(v)(s.Bool())
	case *int:
		return set(v)(s.SmallInt())
	case *int64:
		return set(v)(s.Int())
	case *uint64:
		return set(v)(s.Uint())
	case *float64:
		return set(v)(s.Float())
	case *time.Duration:
		return set(v)(s.Millis())
	case *time.Time:
		return set(v)(s.Time())
	case *[]string:
		return set(v)(texts(s))
	}
	panic(fmt.Sprintf("engine: %s: no form for %T", r.m.Name, at))
}

// set returns a function that sets *to to a value that was read without error. some does the same
// for an optional value.
func set[T any](to *T) func(T, error) error {
	return func(v T, err error) error {
		if err == nil {
			*to = v
		}
		return err
	}
}

func some[T any](to *agentevents.Opt[T]) func(T, error) error {
	return func(v T, err error) error {
		if err == nil {
			*to = agentevents.Some(v)
		}
		return err
	}
}

func appendJSON(w *Writer, dst []byte, m *Member, j agentevents.JSON) ([]byte, bool) {
	if j == "" {
		return dst, false
	}
	raw, err := jsonwire.Compact(string(j))
	if err != nil {
		w.Fail(agentevents.RuleFieldJSON, w.Pointer(m), err.Error())
	}
	return append(dst, raw...), true
}

func appendFloat(w *Writer, dst []byte, m *Member, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.Fail(agentevents.RuleFieldRange, w.Pointer(m), "is not a finite number")
		return append(dst, '0')
	}
	return jsonwire.AppendFloat(dst, f)
}

func appendTexts(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, text := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonwire.AppendString(dst, text)
	}
	return append(dst, ']')
}

func texts(s *jsonwire.Scanner) ([]string, error) {
	if err := s.Array(); err != nil {
		return nil, err
	}
	list := []string{}
	for {
		more, err := s.Elem()
		if err != nil || !more {
			return list, err
		}
		text, err := s.String()
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
}

// Full is [Value] that writes an empty text too.
type Full struct{ Value }

// Append appends the value.
func (Full) Append(w *Writer, dst []byte, m *Member, at any) ([]byte, bool) {
	if v, ok := at.(*string); ok {
		return jsonwire.AppendString(dst, *v), true
	}
	return Value{}.Append(w, dst, m, at)
}

// EmptyKept is [Value] for a text, a flag or a time whose empty spelling on a line is
// kept: the field cannot tell it from an absent one.
type EmptyKept struct{ Value }

// Parse reads the value.
func (EmptyKept) Parse(r *Reader, at any) error {
	from := r.S.Offset()
	err := Value{}.Parse(r, at)
	empty := false
	switch v := at.(type) {
	case *string:
		empty = *v == ""
	case *bool:
		empty = !*v
	case *time.Time:
		empty = v.IsZero()
	}
	if err == nil && empty {
		r.KeepAs(r.S.Text()[from:r.S.Offset()])
	}
	return err
}

// Whole is [Value] for a whole number in any spelling, such as 1.0 or 1e3.
type Whole struct{ Value }

// Parse reads the number.
func (Whole) Parse(r *Reader, at any) (err error) {
	switch v := at.(type) {
	case *int:
		*v, err = jsonwire.Whole[int](&r.S)
	case *int64:
		*v, err = jsonwire.Whole[int64](&r.S)
	case *agentevents.Opt[int]:
		return some(v)(jsonwire.Whole[int](&r.S))
	case *agentevents.Opt[int64]:
		return some(v)(jsonwire.Whole[int64](&r.S))
	}
	return err
}

// Millis reads a time in milliseconds since the epoch, which may have fractions.
func (r *Reader) Millis() (t time.Time, err error) {
	from := r.S.Offset()
	if ms, err := jsonwire.Whole[int64](&r.S); err == nil {
		if t := time.UnixMilli(ms).UTC(); writable(t) {
			return t, nil
		}
		return t, &jsonwire.SyntaxError{Offset: from, Msg: "found a time outside the years 0 to 9999"}
	}
	since, err := r.S.Millis()
	if err == nil {
		t = time.Unix(0, int64(since)).UTC()
	}
	return t, err
}

// Check returns a form whose values keep a rule of the document. check returns the fault of the
// value at the pointer, or "". A strict reader reports it, and a writer refuses it, unless it
// writes the line as it was read.
func Check(rule agentevents.Rule, form Form, check func(at any) (detail string)) Form {
	return &checked{form, rule, nil, check}
}

type checked struct {
	Form
	rule   agentevents.Rule
	schema map[string]any // additions to the schema of the type
	check  func(at any) string
}

func (c *checked) Append(w *Writer, dst []byte, m *Member, at any) ([]byte, bool) {
	dst, said := c.Form.Append(w, dst, m, at)
	if said && !w.F.Lax {
		if detail := c.check(at); detail != "" {
			w.Break(c.rule, w.Pointer(m), detail)
		}
	}
	return dst, said
}

func (c *checked) Parse(r *Reader, at any) error {
	err := c.Form.Parse(r, at)
	if err == nil && r.Strict {
		if detail := c.check(at); detail != "" {
			r.Break(c.rule, detail)
		}
	}
	return err
}

// OneOf is a text that must be one of the words.
func OneOf(rule agentevents.Rule, form Form, words ...string) Form {
	list := strings.Join(words, ", ")
	return &checked{form, rule, map[string]any{"enum": words}, func(at any) string {
		if v := *at.(*string); !slices.Contains(words, v) {
			return jsonwire.Word(v) + " is not one of " + list
		}
		return ""
	}}
}

// AtLeast is a number or a duration that must not be below least.
func AtLeast(rule agentevents.Rule, form Form, least int) Form {
	return &checked{form, rule, map[string]any{"minimum": least}, func(at any) string {
		below := false
		switch v := at.(type) {
		case *int:
			below = *v < least
		case *int64:
			below = *v < int64(least)
		case *float64:
			below = *v < float64(least)
		case *time.Duration:
			below = *v < time.Duration(least)
		case *agentevents.Opt[int]:
			below = v.OK && v.V < least
		case *agentevents.Opt[int64]:
			below = v.OK && v.V < int64(least)
		case *agentevents.Opt[float64]:
			below = v.OK && v.V < float64(least)
		case *agentevents.Opt[time.Duration]:
			below = v.OK && v.V < time.Duration(least)
		}
		if below {
			return "is below " + strconv.Itoa(least)
		}
		return ""
	}}
}

// Unit is a number that must be in [0, 1].
func Unit(rule agentevents.Rule, form Form) Form {
	return &checked{form, rule, map[string]any{"minimum": 0, "maximum": 1}, func(at any) string {
		v, ok := at.(*agentevents.Opt[float64])
		if ok && v.OK && !(v.V >= 0 && v.V <= 1) {
			return strconv.FormatFloat(v.V, 'g', -1, 64) + " is not in [0, 1]"
		}
		return ""
	}}
}

// Nullable is a form that reads null as no value.
func Nullable(form Form) Form { return nullable{form} }

type nullable struct{ Form }

func (n nullable) Parse(r *Reader, at any) error {
	if r.S.Null() {
		return nil
	}
	return n.Form.Parse(r, at)
}

// Object is an object whose members hold the fields of a struct. If the member with the object has
// no field, the members hold fields of the surrounding struct.
func Object(members ...Member) Form { return &object{members: members} }

// Short is [Object] that may also be a text, which is the value of the named member.
// The text is kept. The object of an empty struct that is always there is left out.
func Short(name string, members ...Member) Form { return &object{members: members, short: name} }

type object struct {
	members []Member
	t       *table
	short   string
	always  bool // the struct is always there
}

func (o *object) compile(f *Format, m *Member) Form {
	return &object{t: f.table(m.field.in, o.members), short: o.short, always: !m.field.optional()}
}

func (o *object) table() *table { return o.t }

func (o *object) Append(w *Writer, dst []byte, m *Member, at any) ([]byte, bool) {
	if (o.short != "" || !m.Need) && o.always && reflect.ValueOf(at).Elem().IsZero() {
		return dst, false
	}
	line, native := w.enter(w.name(m), m.Fields)
	if m.Fields == "" {
		w.place = w.place[:native]
	}
	dst = w.object(dst, o.t, at)
	w.leave(line, native)
	return dst, true
}

func (o *object) Parse(r *Reader, at any) error {
	if o.short != "" && r.S.Kind() == '"' {
		from := r.S.Offset()
		text, err := r.S.String()
		if err == nil {
			*o.t.member(o.short).in(r.Ev, at).(*string) = text
			r.KeepAs(r.S.Text()[from:r.S.Offset()])
		}
		return err
	}
	defer r.leave(r.enter(r.name))
	_, err := r.object(o.t, at)
	return err
}

// enter goes into a member of the object that is written. It returns the lengths that leave needs
// to go out again.
func (w *Writer) enter(name, says string) (line, native int) {
	line, native = len(w.at), len(w.place)
	says, _, _ = strings.Cut(says, " ")
	w.at = append(append(w.at, '/'), jsonwire.Token(name)...)
	w.place = append(append(w.place, '/'), says...)
	return line, native
}

func (w *Writer) leave(line, native int) { w.at, w.place = w.at[:line], w.place[:native] }

// enter goes into a member of the object that is read.
func (r *Reader) enter(name string) (line int) {
	line = len(r.at)
	r.at = append(append(r.at, '/'), jsonwire.Token(name)...)
	return line
}

func (r *Reader) leave(line int) { r.at = r.at[:line] }

// List is a list of objects whose members hold the fields of structs.
func List[T any](members ...Member) Form { return &list[T]{members: members} }

type list[T any] struct {
	members []Member
	t       *table
}

func (l *list[T]) compile(f *Format, _ *Member) Form {
	return &list[T]{t: f.table(reflect.TypeFor[T]().Name(), l.members)}
}

func (l *list[T]) elements() *table { return l.t }

func (l *list[T]) Append(w *Writer, dst []byte, m *Member, at any) ([]byte, bool) {
	v := *at.(*[]T)
	line, native := w.enter(w.name(m), m.Fields)
	dst = append(dst, '[')
	for i := range v {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = w.element(dst, l.t, strconv.Itoa(i), &v[i])
	}
	w.leave(line, native)
	return append(dst, ']'), len(v) > 0
}

// element appends an element of a list or map of structs.
func (w *Writer) element(dst []byte, t *table, name string, v any) []byte {
	line, native := w.enter(name, jsonwire.Token(name))
	dst = w.object(dst, t, v)
	w.leave(line, native)
	return dst
}

func (l *list[T]) Parse(r *Reader, at any) error {
	v := at.(*[]T)
	if err := r.S.Array(); err != nil {
		return err
	}
	defer r.leave(r.enter(r.name))
	*v = []T{}
	for {
		more, err := r.S.Elem()
		if err != nil || !more {
			return err
		}
		*v = append(*v, *new(T))
		if err := r.element(l.t, strconv.Itoa(len(*v)-1), &(*v)[len(*v)-1]); err != nil {
			return err
		}
	}
}

func (r *Reader) element(t *table, name string, v any) error {
	line := r.enter(name)
	_, err := r.object(t, v)
	r.leave(line)
	return err
}

// Dict is an object of objects, by any names, whose members hold the fields of structs.
func Dict[T any](members ...Member) Form { return &dict[T]{members: members} }

type dict[T any] struct {
	members []Member
	t       *table
}

func (d *dict[T]) compile(f *Format, _ *Member) Form {
	return &dict[T]{t: f.table(reflect.TypeFor[T]().Name(), d.members)}
}

func (d *dict[T]) Append(w *Writer, dst []byte, m *Member, at any) ([]byte, bool) {
	v := *at.(*map[string]T)
	if v == nil {
		return dst, false
	}
	line, native := w.enter(w.name(m), m.Fields)
	var buf [8]string
	names := buf[:0]
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		elem := v[name]
		dst = w.element(append(jsonwire.AppendString(dst, name), ':'), d.t, name, &elem)
	}
	w.leave(line, native)
	return append(dst, '}'), true
}

func (d *dict[T]) Parse(r *Reader, at any) error {
	if r.F.misfits(r.at) && !objects(r.S) {
		return &jsonwire.SyntaxError{Offset: r.S.Offset(), Msg: "found an object with other values than objects"}
	}
	if err := r.S.Object(); err != nil {
		return err
	}
	defer r.leave(r.enter(r.name))
	v := map[string]T{}
	*at.(*map[string]T) = v
	for {
		name, more, err := r.S.Member()
		if err != nil || !more {
			return err
		}
		if _, twice := v[name]; twice {
			return r.S.Duplicate(name)
		}
		var elem T
		if err := r.element(d.t, name, &elem); err != nil {
			return err
		}
		v[name] = elem
	}
}

// objects reports whether the next value is an object of objects.
func objects(s jsonwire.Scanner) bool {
	if s.Object() != nil {
		return false
	}
	for {
		_, more, err := s.Member()
		if err != nil || !more {
			return err == nil
		}
		if s.Kind() != '{' || s.Skip() != nil {
			return false
		}
	}
}
