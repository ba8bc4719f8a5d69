// Package schematable holds the facts of JSON Schemas in a text that people can read, and
// judges values by them.
//
// A schema is a line with a name and conditions, which all hold. The lines below it, one tab
// deeper, have the conditions on parts of the value:
//
//	agentRef: object closed
//		agentId! text len=3..256
//		tools list
//			[] text in=read,write
//
// The mark ! stands after a member that an object must have. The names of conditions:
//
//	object, list, text, number, integer, boolean, null   the type; several are joined by |
//	len=1..5, items=1..5, value=0..1                     a range; either end may be open
//	in=a,b                                               one of these texts
//	match=RE                                             a regular expression of ECMAScript
//	closed                                               no other members
//	unique                                               no item twice
//	date-time                                            a time of RFC 3339
//	@name                                                the conditions of another schema
//
// A deeper line that begins with [] is about the items of a list, with /RE/ about members of
// such names, with <not>, <if>, <then> and <else> about the whole value; the lines below
// <all>, <any> and <one> are alternatives, and begin with a hyphen. The character # begins
// a comment.
package schematable

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A Table has schemas by name. They are JSON Schemas of the keywords that a text can have;
// they refer to each other as "#/$defs/" and the name.
type Table map[string]any

type object = map[string]any

const ref = "#/$defs/"

var (
	types = [][2]string{
		{"object", "object"}, {"list", "array"}, {"text", "string"}, {"number", "number"}, {"integer", "integer"}, {"boolean", "boolean"}, {"null", "null"},
	}
	ranges = [][3]string{{"len", "minLength", "maxLength"},
		{"items", "minItems", "maxItems"}, {"value", "minimum", "maximum"}}
	flags = []struct {
		word, key string
		value     any
	}{{"closed", "additionalProperties", false}, {"unique", "uniqueItems", true}, {"date-time", "format", "date-time"}}
	parts        = [][2]string{{"[]", "items"}, {"<not>", "not"}, {"<if>", "if"}, {"<then>", "then"}, {"<else>", "else"}}
	alternatives = [][2]string{{"<all>", "allOf"}, {"<any>", "anyOf"}, {"<one>", "oneOf"}}
)

// pair returns the pair whose member i is s.
func pair(list [][2]string, i int, s string) (found [2]string, ok bool) {
	at := slices.IndexFunc(list, func(p [2]string) bool { return p[i] == s })
	if at < 0 {
		return found, false
	}
	return list[at], true
}

// String returns the text of the table. It fails if a schema has a keyword, or a value of
// one, that the text cannot have.
func (t Table) String() (string, error) {
	w := writer{}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		w.schema(0, name+":", t[name])
	}
	return w.b.String(), w.err
}

type writer struct {
	b   strings.Builder
	err error
}

func (w *writer) fail(label string, about any) {
	if w.err == nil {
		w.err = fmt.Errorf("%s: a table cannot have %v", label, about)
	}
}

// schema writes a schema and the lines below it. Each part takes its keywords from s.
func (w *writer) schema(depth int, label string, schema any) {
	from, ok := schema.(object)
	if !ok {
		w.fail(label, schema)
		return
	}
	s := maps.Clone(from)
	take := func(key string) (value any, ok bool) {
		value, ok = s[key]
		delete(s, key)
		return value, ok
	}
	words := []string{label}
	if v, ok := take("type"); ok {
		words = append(words, w.types(label, v))
	}
	for _, f := range flags {
		if v, ok := take(f.key); ok && v == f.value {
			words = append(words, f.word)
		} else if ok {
			w.fail(label, f.key)
		}
	}
	for _, r := range ranges {
		low, has := take(r[1])
		high, also := take(r[2])
		if has || also {
			words = append(words, r[0]+"="+number(low)+".."+number(high))
		}
	}
	if v, ok := take("enum"); ok {
		words = append(words, "in="+strings.Join(w.texts(label, v), ","))
	}
	if v, ok := take("pattern"); ok {
		words = append(words, "match="+w.text(label, v, " "))
	}
	if v, ok := take("$ref"); ok {
		name, local := strings.CutPrefix(w.text(label, v, " "), ref)
		if !local {
			w.fail(label, v)
		}
		words = append(words, "@"+name)
	}
	w.b.WriteString(strings.Repeat("\t", depth) + strings.Join(words, " ") + "\n")

	required, _ := take("required")
	properties, _ := take("properties")
	members, _ := properties.(object)
	must := map[string]bool{}
	for _, name := range w.texts(label, required) {
		if must[name] = true; members[name] == nil {
			w.fail(label, "the member "+name+", which no line describes")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		mark := ""
		if must[name] {
			mark = "!"
		}
		if strings.ContainsAny(name[:1], "/[<-") || strings.ContainsAny(name, "! ") {
			w.fail(label, name)
		}
		w.schema(depth+1, name+mark, members[name])
	}
	patterns, _ := take("patternProperties")
	like, _ := patterns.(object)
	for _, re := range slices.Sorted(maps.Keys(like)) {
		w.schema(depth+1, "/"+w.text(label, re, " ")+"/", like[re])
	}
	for _, p := range parts {
		if v, ok := take(p[1]); ok {
			w.schema(depth+1, p[0], v)
		}
	}
	for _, a := range alternatives {
		if v, ok := take(a[1]); ok {
			w.b.WriteString(strings.Repeat("\t", depth+1) + a[0] + "\n")
			for _, one := range v.([]any) {
				w.schema(depth+2, "-", one)
			}
		}
	}
	for key := range s {
		w.fail(label, key)
	}
}

func (w *writer) types(label string, v any) string {
	list, several := v.([]any)
	if !several {
		list = []any{v}
	}
	var words []string
	for _, name := range list {
		p, ok := pair(types, 1, fmt.Sprint(name))
		if !ok {
			w.fail(label, name)
		}
		words = append(words, p[0])
	}
	return strings.Join(words, "|")
}

// text returns a text without any of the characters not.
func (w *writer) text(label string, v any, not string) string {
	s, ok := v.(string)
	if !ok || strings.ContainsAny(s, not+"\n\t") {
		w.fail(label, v)
	}
	return s
}

func (w *writer) texts(label string, v any) (list []string) {
	values, _ := v.([]any)
	for _, one := range values {
		list = append(list, w.text(label, one, " ,"))
	}
	return list
}

func number(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// Parse reads the text of a table.
func Parse(text string) (Table, error) {
	r := reader{}
	for line := range strings.Lines(text) {
		if s := strings.TrimRight(line, "\n"); s != "" && s[0] != '#' {
			r.lines = append(r.lines, s)
		}
	}
	t := Table{}
	for len(r.lines) > 0 && r.err == nil {
		name, s := r.schema(0)
		t[strings.TrimSuffix(name, ":")] = s
	}
	return t, r.err
}

type reader struct {
	lines []string
	err   error
}

func (r *reader) fail(about string) {
	if r.err == nil {
		r.err = fmt.Errorf("a table has no %q", about)
	}
}

// deeper reports whether the next line is at least that deep.
func (r *reader) deeper(depth int) bool {
	return r.err == nil && len(r.lines) > 0 && strings.HasPrefix(r.lines[0], strings.Repeat("\t", depth))
}

// schema reads a line and those below it.
func (r *reader) schema(depth int) (label string, s object) {
	words := strings.Split(r.lines[0][depth:], " ")
	r.lines, s = r.lines[1:], object{}
	for _, word := range words[1:] {
		r.word(s, word)
	}
	members, like, must := object{}, object{}, []any{}
	for r.deeper(depth + 1) {
		head, _, _ := strings.Cut(r.lines[0][depth+1:], " ")
		if a, ok := pair(alternatives, 0, head); ok {
			list := []any{}
			for r.lines = r.lines[1:]; r.deeper(depth + 2); {
				_, one := r.schema(depth + 2)
				list = append(list, one)
			}
			s[a[1]] = list
			continue
		}
		name, part := r.schema(depth + 1)
		if p, ok := pair(parts, 0, name); ok {
			s[p[1]] = part
		} else if re, ok := strings.CutPrefix(name, "/"); ok {
			like[strings.TrimSuffix(re, "/")] = part
		} else {
			plain, required := strings.CutSuffix(name, "!")
			if members[plain] = part; required {
				must = append(must, plain)
			}
		}
	}
	for key, v := range map[string]object{"properties": members, "patternProperties": like} {
		if len(v) > 0 {
			s[key] = v
		}
	}
	if len(must) > 0 {
		s["required"] = must
	}
	return words[0], s
}

// word reads one condition.
func (r *reader) word(s object, word string) {
	for _, f := range flags {
		if f.word == word {
			s[f.key] = f.value
			return
		}
	}
	if name, ok := strings.CutPrefix(word, "@"); ok {
		s["$ref"] = ref + name
		return
	}
	key, value, has := strings.Cut(word, "=")
	for _, p := range ranges {
		if low, high, ok := strings.Cut(value, ".."); ok && p[0] == key {
			for i, end := range []string{low, high} {
				if end != "" {
					s[p[i+1]] = json.Number(end)
				}
			}
			return
		}
	}
	switch {
	case key == "in":
		s["enum"] = list(strings.Split(value, ","))
	case key == "match":
		s["pattern"] = value
	case !has:
		var names []string
		for one := range strings.SplitSeq(word, "|") {
			p, ok := pair(types, 0, one)
			if !ok {
				r.fail(word)
			}
			names = append(names, p[1])
		}
		if s["type"] = any(list(names)); len(names) == 1 {
			s["type"] = names[0]
		}
	default:
		r.fail(word)
	}
}

func list(texts []string) (values []any) {
	for _, s := range texts {
		values = append(values, s)
	}
	return values
}

// Compile returns the judges of values by the schemas of these names.
func (t Table) Compile(names ...string) (map[string]*jsonschema.Schema, error) {
	const at = "table.json"
	c := NewCompiler()
	if err := c.AddResource(at, object{"$defs": object(t)}); err != nil {
		return nil, err
	}
	judges := map[string]*jsonschema.Schema{}
	for _, name := range names {
		s, err := c.Compile(at + ref + name)
		if err != nil {
			return nil, err
		}
		judges[name] = s
	}
	return judges, nil
}

// NewCompiler returns a compiler that asserts formats, knows the regular expressions of
// ECMAScript and loads nothing.
func NewCompiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseLoader(nothing{})
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) {
		re, err := regexp2.Compile(s, regexp2.ECMAScript)
		return lookingAhead{re}, err
	})
	return c
}

// lookingAhead is a pattern of regexp2: schemas look ahead, which package regexp cannot.
type lookingAhead struct{ *regexp2.Regexp }

func (re lookingAhead) MatchString(s string) bool {
	ok, err := re.Regexp.MatchString(s)
	return err == nil && ok
}

// nothing refuses to load a schema: the names of schemas are addresses.
type nothing struct{}

func (nothing) Load(url string) (any, error) { return nil, fmt.Errorf("%s is not here", url) }
