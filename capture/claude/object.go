package claude

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// maxNesting bounds the nesting of a line, so that its values can be nested once more
// in an event.
const maxNesting = 900

// An object is one JSON object of a line, split into its members. Names are compared
// exactly. A member counts as absent if it is null, or if it has the wrong type, which
// is also noted in faults.
type object struct {
	text    string // compact and valid
	at      string // JSON pointer
	members []member
	faults  *faults
}

type member struct{ name, raw string }

// faults notes the first wrong member of a line.
type faults struct {
	first *agentevents.LineError
}

func (f *faults) add(pointer, format string, args ...any) {
	if f.first == nil {
		f.first = &agentevents.LineError{Pointer: pointer, Err: fmt.Errorf("claude: "+format, args...)}
	}
}

// parseObject splits valid JSON into its members. A value that is not an object has no
// members.
func parseObject(text, at string, f *faults) object {
	o := object{text: text, at: at, faults: f, members: make([]member, 0, 8)}
	for name, raw := range jsonwire.Members(text) {
		o.members = append(o.members, member{name, raw})
	}
	return o
}

// raw returns the text of a member, or "" when it is absent or null.
func (o *object) raw(name string) string {
	for _, m := range o.members {
		if m.name == name {
			if m.raw == "null" {
				return ""
			}
			return m.raw
		}
	}
	return ""
}

// has reports whether the object has a member, be it null.
func (o *object) has(name string) bool {
	return slices.ContainsFunc(o.members, func(m member) bool { return m.name == name })
}

func (o *object) pointer(name string) string {
	return o.at + "/" + jsonwire.Token(name)
}

// wrong notes a member of the wrong type.
func (o *object) wrong(name, raw, want string) {
	o.faults.add(o.pointer(name), "member %q: found %s, expected %s", name, jsonwire.Describe(raw), want)
}

func (o *object) str(name string) string {
	raw := o.raw(name)
	if raw == "" {
		return ""
	}
	if raw[0] != '"' {
		o.wrong(name, raw, "a string")
		return ""
	}
	return unquote(raw)
}

// unquote returns the text of a valid JSON string.
func unquote(raw string) string {
	var s jsonwire.Scanner
	s.Reset(raw)
	text, _ := s.String()
	return text
}

func (o *object) flag(name string) bool {
	raw := o.raw(name)
	if raw != "" && raw != "true" && raw != "false" {
		o.wrong(name, raw, "true or false")
	}
	return raw == "true"
}

// number reads a number that is not negative.
func (o *object) number(name string) agentevents.Opt[float64] {
	raw := o.raw(name)
	if raw == "" {
		return agentevents.Opt[float64]{}
	}
	var s jsonwire.Scanner
	s.Reset(raw)
	v, err := s.Float()
	if err != nil || v < 0 || math.Signbit(v) && v != 0 {
		o.wrong(name, raw, "a number that is not negative")
		return agentevents.Opt[float64]{}
	}
	return agentevents.Some(v + 0)
}

// count reads a whole number that is not negative.
func (o *object) count(name string) agentevents.Opt[int64] {
	raw := o.raw(name)
	if raw == "" {
		return agentevents.Opt[int64]{}
	}
	var s jsonwire.Scanner
	s.Reset(raw)
	n, err := s.Int()
	if err != nil || n < 0 {
		o.wrong(name, raw, "a whole number that is not negative")
		return agentevents.Opt[int64]{}
	}
	return agentevents.Some(n)
}

// millis reads a number of milliseconds that is not negative.
func (o *object) millis(name string) agentevents.Opt[time.Duration] {
	raw := o.raw(name)
	if raw == "" {
		return agentevents.Opt[time.Duration]{}
	}
	var s jsonwire.Scanner
	s.Reset(raw)
	d, err := s.Millis()
	if err != nil || d < 0 {
		o.wrong(name, raw, "a number of milliseconds")
		return agentevents.Opt[time.Duration]{}
	}
	return agentevents.Some(d)
}

func (o *object) object(name string) object {
	raw := o.raw(name)
	if raw != "" && raw[0] != '{' {
		o.wrong(name, raw, "an object")
	}
	return parseObject(raw, o.pointer(name), o.faults)
}

// list returns the elements of an array as text.
func (o *object) list(name string) []string {
	raw := o.raw(name)
	if raw != "" && raw[0] != '[' {
		o.wrong(name, raw, "an array")
	}
	return elements(raw)
}

func elements(raw string) []string {
	var s jsonwire.Scanner
	s.Reset(raw)
	if s.Array() != nil {
		return nil
	}
	var out []string
	for {
		ok, err := s.Elem()
		if err != nil || !ok {
			return out
		}
		elem, err := s.Raw()
		if err != nil {
			return out
		}
		out = append(out, elem)
	}
}

// objects returns the elements of an array that are objects.
func (o *object) objects(name string) []object {
	var out []object
	for i, raw := range o.list(name) {
		at := fmt.Sprintf("%s/%d", o.pointer(name), i)
		if raw[0] != '{' {
			o.faults.add(at, "found %s, expected an object", jsonwire.Describe(raw))
			continue
		}
		out = append(out, parseObject(raw, at, o.faults))
	}
	return out
}

// strings returns the elements of an array that are strings.
func (o *object) strings(name string) []string {
	var out []string
	for i, raw := range o.list(name) {
		if raw[0] != '"' {
			o.faults.add(fmt.Sprintf("%s/%d", o.pointer(name), i), "found %s, expected a string", jsonwire.Describe(raw))
			continue
		}
		out = append(out, unquote(raw))
	}
	return out
}

// pick returns an object with the named members that o has, in the order of o. It returns ""
// if o has none of them.
func (o *object) pick(names ...string) agentevents.JSON {
	var b strings.Builder
	for _, m := range o.members {
		for _, name := range names {
			if m.name != name || m.raw == "null" {
				continue
			}
			if b.Len() == 0 {
				b.WriteByte('{')
			} else {
				b.WriteByte(',')
			}
			b.WriteString(jsonwire.Quote(name))
			b.WriteByte(':')
			b.WriteString(m.raw)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	b.WriteByte('}')
	return agentevents.JSON(b.String())
}

// contentText returns the text of content in the API's form: a string, or an array of
// blocks, of which it joins the text blocks.
func contentText(raw string) string {
	if raw == "" {
		return ""
	}
	if raw[0] == '"' {
		return unquote(raw)
	}
	var texts []string
	for _, elem := range elements(raw) {
		var ignored faults
		block := parseObject(elem, "", &ignored)
		if block.str("type") == "text" {
			texts = append(texts, block.str("text"))
		}
	}
	return strings.Join(texts, "\n")
}

// checkNesting returns an error if valid JSON is nested too deeply.
func checkNesting(text string) error {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxNesting {
				return fmt.Errorf("nested more than %d levels deep", maxNesting)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
