package dialecttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
)

// A value is a JSON value with its place in the text that it was parsed from.
type value struct {
	kind       byte // the first byte of its text
	start, end int
	names      []string // names of an object's members
	nameStarts []int    // the offsets of names
	inner      []value  // the members or elements
}

// parse parses JSON.
func parse(text string) (value, error) {
	if !json.Valid([]byte(text)) {
		return value{}, fmt.Errorf("not JSON: %s", text)
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

func (p *parser) value() value {
	p.blank()
	v := value{kind: p.text[p.at], start: p.at}
	switch v.kind {
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
			if v.kind == '{' {
				v.nameStarts = append(v.nameStarts, p.at)
				v.names = append(v.names, p.string())
				p.blank()
				p.at++ // the colon
			}
			v.inner = append(v.inner, p.value())
		}
	case '"':
		p.string()
	default:
		for p.at < len(p.text) && strings.IndexByte(" \t\r\n,]}", p.text[p.at]) < 0 {
			p.at++
		}
	}
	v.end = p.at
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

// walk visits v and the values in it, with JSON pointers.
func (v *value) walk(pointer string, visit func(pointer string, v *value)) {
	visit(pointer, v)
	for i := range v.inner {
		token := strconv.Itoa(i)
		if v.kind == '{' {
			token = escapeToken(v.names[i])
		}
		v.inner[i].walk(pointer+"/"+token, visit)
	}
}

// member returns the member of that name, or nil.
func (v *value) member(name string) *value {
	if i := slices.Index(v.names, name); i >= 0 {
		return &v.inner[i]
	}
	return nil
}

func escapeToken(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// facts is the content of a line: the text of every value that holds no other,
// and the member names of every object in order, by JSON pointer. An array counts
// as an object with empty names.
type facts struct {
	leaves map[string]string
	orders map[string][]string
}

// flatten returns the facts of a native line.
func flatten(line string) (facts, error) {
	f := facts{map[string]string{}, map[string][]string{}}
	v, err := parse(line)
	if err != nil {
		return f, err
	}
	v.walk("", func(pointer string, v *value) {
		if len(v.inner) == 0 {
			text := line[v.start:v.end]
			if v.kind == '{' || v.kind == '[' {
				text = string(v.kind) + string(v.kind+2) // without blanks
			}
			f.leaves[pointer] = text
		} else if f.orders[pointer] = v.names; v.kind == '[' {
			f.orders[pointer] = make([]string, len(v.inner))
		}
	})
	if marks := v.member("marks"); marks != nil && marks.kind == '[' { // a set
		for i := range marks.inner {
			pointer := "/marks/" + strconv.Itoa(i)
			text := f.leaves[pointer]
			delete(f.leaves, pointer)
			defer func() { f.leaves["/marks/"+escapeToken(strings.Trim(text, `"`))] = "true" }()
		}
	}
	return f, nil
}

// factsOf flattens an event.
func factsOf(ev *agentevents.Event) (facts, error) {
	if ev.Payload == nil {
		return facts{}, fmt.Errorf("the event has no payload")
	}
	line, err := ev.AppendJSON(nil)
	if err != nil {
		return facts{}, err
	}
	return flatten(string(line))
}

// under reports whether there is a value at the place or below it.
func (f facts) under(pattern string) bool {
	for pointer := range f.leaves {
		if covers(pattern, pointer) {
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

// Diff compares two events as native lines, value by value. Raw JSON differs if
// its spelling does, except for blanks.
func Diff(before, after agentevents.Event) ([]Difference, error) {
	a, err := factsOf(&before)
	if err != nil {
		return nil, err
	}
	b, err := factsOf(&after)
	if err != nil {
		return nil, err
	}
	return a.diff(b), nil
}

func (f facts) diff(after facts) []Difference {
	var list []Difference
	for pointer, text := range f.leaves {
		if len(text) == 2 && nothing(text) && len(after.orders[pointer]) > 0 {
			continue // it is no longer empty: its new members are differences
		}
		if now := after.leaves[pointer]; now != text {
			list = append(list, Difference{pointer, text, now})
		}
	}
	for pointer, text := range after.leaves {
		if len(text) == 2 && nothing(text) && len(f.orders[pointer]) > 0 {
			continue // all members are gone
		}
		if f.leaves[pointer] == "" {
			list = append(list, Difference{pointer, "", text})
		}
	}
	for pointer, names := range f.orders {
		now := after.orders[pointer]
		if pointer != "" && !slices.Equal(names, now) && slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(now))) {
			list = append(list, Difference{pointer, "members " + strings.Join(names, ","), "members " + strings.Join(now, ",")})
		}
	}
	slices.SortFunc(list, func(a, b Difference) int { return strings.Compare(a.Pointer, b.Pointer) })
	return list
}

// covers reports whether pointer is the place or below it. A token * of the
// pattern matches any token.
func covers(pattern, pointer string) bool {
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

// nothing reports whether a text is a zero value.
func nothing(text string) bool {
	switch text {
	case "", `""`, "0", "false", "null", "{}", "[]", `"0001-01-01T00:00:00.000Z"`, `"0001-01-01T00:00:00Z"`:
		return true
	}
	return false
}
