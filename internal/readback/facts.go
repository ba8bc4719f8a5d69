// Package readback compares events with the events that a reader gets from their lines, and the
// differences with the listed losses.
package readback

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Value is a JSON value with its place in the text that it was parsed from.
type Value struct {
	Kind       byte // the first byte of its text
	Start, End int
	Names      []string // names of an object's members
	NameStarts []int    // the offsets of names
	Inner      []Value  // the members or elements
}

// Parse parses JSON.
func Parse(text string) (Value, error) {
	if !json.Valid([]byte(text)) {
		return Value{}, errors.New("not JSON")
	}
	p := parser{text: text}
	return p.value(), nil
}

// A parser reads valid JSON.
type parser struct {
	text string
	at   int
}

func (p *parser) blank() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *parser) value() Value {
	p.blank()
	v := Value{Kind: p.text[p.at], Start: p.at}
	switch v.Kind {
	case '{', '[':
		p.at++
		for {
			p.blank()
			if c := p.text[p.at]; c == '}' || c == ']' {
				p.at++
				break
			} else if c == ',' {
				p.at++
				p.blank()
			}
			if v.Kind == '{' {
				v.NameStarts = append(v.NameStarts, p.at)
				v.Names = append(v.Names, p.string())
				p.blank()
				p.at++ // the colon
			}
			v.Inner = append(v.Inner, p.value())
		}
	case '"':
		p.string()
	default:
		for p.at < len(p.text) && strings.IndexByte(" \t\r\n,]}", p.text[p.at]) < 0 {
			p.at++
		}
	}
	v.End = p.at
	return v
}

func (p *parser) string() string {
	start := p.at
	for p.at++; p.text[p.at] != '"'; p.at++ {
		if p.text[p.at] == '\\' {
			p.at++
		}
	}
	p.at++
	if raw := p.text[start+1 : p.at-1]; strings.IndexByte(raw, '\\') < 0 {
		return raw
	}
	var s string
	if json.Unmarshal([]byte(p.text[start:p.at]), &s) != nil {
		s = p.text[start:p.at]
	}
	return s
}

// Walk visits v and the values in it, with JSON pointers.
func (v *Value) Walk(pointer string, visit func(pointer string, v *Value)) {
	visit(pointer, v)
	for i := range v.Inner {
		token := strconv.Itoa(i)
		if v.Kind == '{' {
			token = Token(v.Names[i])
		}
		v.Inner[i].Walk(pointer+"/"+token, visit)
	}
}

// Member returns the member of that name, or nil.
func (v *Value) Member(name string) *Value {
	if i := slices.Index(v.Names, name); i >= 0 {
		return &v.Inner[i]
	}
	return nil
}

// Token returns a name as a token of a JSON pointer.
func Token(s string) string { return jsonwire.Token(s) }

// Facts are the content of a line: the text of every value that holds no other,
// and the member names of every object in order, by JSON pointer. An array counts
// as an object with empty names.
type Facts struct {
	Leaves map[string]string
	Orders map[string][]string
}

// Flatten returns the facts of a native line.
func Flatten(line string) (Facts, error) {
	f := Facts{map[string]string{}, map[string][]string{}}
	v, err := Parse(line)
	if err != nil {
		return f, err
	}
	v.Walk("", func(pointer string, v *Value) {
		around, _ := path.Split(pointer)
		switch {
		case isSet(strings.TrimSuffix(around, "/")):
			f.Leaves[around+Token(strings.Trim(line[v.Start:v.End], `"`))] = "true"
		case len(v.Inner) == 0:
			text := line[v.Start:v.End]
			if v.Kind == '{' || v.Kind == '[' {
				text = string(v.Kind) + string(v.Kind+2) // without blanks
			}
			f.Leaves[pointer] = text
		case v.Kind == '[':
			f.Orders[pointer] = make([]string, len(v.Inner))
		default:
			f.Orders[pointer] = v.Names
		}
	})
	return f, nil
}

// isSet reports whether the list at a place is a set: the marks, and a decoder's note of the members
// that a line lacked.
func isSet(pointer string) bool {
	return pointer == "/marks" || strings.HasSuffix(pointer, "/~0absent")
}

// FactsOf flattens an event.
func FactsOf(ev *agentevents.Event) (Facts, error) {
	if ev.Payload == nil {
		return Facts{}, fmt.Errorf("the event has no payload")
	}
	line, err := ev.AppendJSON(nil)
	if err != nil {
		return Facts{}, err
	}
	return Flatten(string(line))
}

// Under reports whether there is a value at the place or below it.
func (f Facts) Under(pattern string) bool {
	for pointer := range f.Leaves {
		if Covers(pattern, pointer) {
			return true
		}
	}
	return false
}

// A Difference is a place where two events differ.
type Difference struct {
	Pointer string // of the native line
	Before  string // JSON text; empty if there is none
	After   string // JSON text; empty if there is none
}

// String returns the place and both values.
func (d Difference) String() string {
	show := func(s string) string {
		if s == "" {
			return "nothing"
		}
		return s
	}
	return fmt.Sprintf("%s: %s became %s", d.Pointer, show(d.Before), show(d.After))
}

// Brief is String for a report that must not show the values.
func (d Difference) Brief() string {
	if strings.HasPrefix(d.Before, order) {
		return jsonwire.BriefPointer(d.Pointer) + ": the members have another order"
	}
	show := func(s string) string {
		if s == "" {
			return "nothing"
		}
		return jsonwire.Describe(s)
	}
	return fmt.Sprintf("%s: %s became %s", jsonwire.BriefPointer(d.Pointer), show(d.Before), show(d.After))
}

// order begins the value of a difference in the order of members.
const order = "members "

// Diff compares two events as native lines, value by value. Raw JSON differs if
// its spelling does, except for blanks.
func Diff(before, after agentevents.Event) ([]Difference, error) {
	a, err := FactsOf(&before)
	if err != nil {
		return nil, err
	}
	b, err := FactsOf(&after)
	if err != nil {
		return nil, err
	}
	return a.Diff(b), nil
}

func (f Facts) Diff(after Facts) []Difference {
	var list []Difference
	for pointer, text := range f.Leaves {
		if len(text) == 2 && Nothing(text) && len(after.Orders[pointer]) > 0 {
			continue // it has members now: these are differences
		}
		if now := after.Leaves[pointer]; now != text {
			list = append(list, Difference{pointer, text, now})
		}
	}
	for pointer, text := range after.Leaves {
		if len(text) == 2 && Nothing(text) && len(f.Orders[pointer]) > 0 {
			continue // all members are gone
		}
		if f.Leaves[pointer] == "" {
			list = append(list, Difference{pointer, "", text})
		}
	}
	for pointer, names := range f.Orders {
		now := after.Orders[pointer]
		if pointer != "" && !slices.Equal(names, now) &&
			slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(now))) {
			list = append(list, Difference{pointer, order + strings.Join(names, ","), order + strings.Join(now, ",")})
		}
	}
	slices.SortFunc(list, func(a, b Difference) int { return strings.Compare(a.Pointer, b.Pointer) })
	return list
}

// Covers reports whether pointer is the place or below it. A token * of the
// pattern matches any token.
func Covers(pattern, pointer string) bool {
	if !strings.Contains(pattern, "*") {
		return strings.HasPrefix(pointer, pattern) && (len(pointer) == len(pattern) || pointer[len(pattern)] == '/')
	}
	p, q := strings.Split(pattern, "/"), strings.Split(pointer, "/")
	if len(p) > len(q) {
		return false
	}
	for i := range p {
		if p[i] != "*" && p[i] != q[i] {
			return false
		}
	}
	return true
}

// Nothing reports whether a text is a zero value.
func Nothing(text string) bool {
	switch text {
	case "", `""`, "0", "false", "null", "{}", "[]", `"0001-01-01T00:00:00.000Z"`, `"0001-01-01T00:00:00Z"`:
		return true
	}
	return false
}

// Has reports whether the event has a value other than zero at the place, or below it.
func (f Facts) Has(pattern string) bool {
	for pointer, text := range f.Leaves {
		if Covers(pattern, pointer) && !Nothing(text) {
			return true
		}
	}
	return false
}

// Required reports whether every native line of the kind has the member at the
// place, given the object around it.
func Required(kind agentevents.Kind, pointer string) bool {
	rest, ok := strings.CutPrefix(pointer, "/payload/")
	if !ok {
		return slices.Contains([]string{"/id", "/sequence", "/timestamp", "/runId"}, pointer)
	}
	t, must := reflect.TypeOf(agentevents.NewPayload(kind)).Elem(), false
	for token := range strings.SplitSeq(rest, "/") {
		switch t.Kind() {
		case reflect.Slice, reflect.Map:
			must, t = t.Kind() == reflect.Slice, t.Elem()
		case reflect.Struct:
			i := 0
			for i < t.NumField() && memberName(t.Field(i)) != token {
				i++
			}
			if i == t.NumField() {
				return false
			}
			must, t = !strings.Contains(t.Field(i).Tag.Get("json"), ","), t.Field(i).Type
		default:
			return false // inside raw JSON
		}
		if t.Kind() == reflect.Struct && strings.HasPrefix(t.Name(), "Opt[") {
			t = t.Field(0).Type
		}
	}
	return must
}

// memberName returns the name of a field's member.
func memberName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
