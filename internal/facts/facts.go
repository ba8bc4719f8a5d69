// Package facts holds the demands of JSON Schemas in the text form of a table, and judges raw
// JSON by them.
//
// The text form is described in internal/lawtest/internal/schematable, which writes it from published
// schemas and has a validator of JSON Schema judge by it: the second opinion on this package.
// A pattern that looks ahead is not judged, nor are alternatives with one: package regexp does
// not have it.
package facts

import (
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
)

// A Table has schemas by name.
type Table map[string]*Schema

// A Schema is a set of conditions on a value. The zero Schema has none. A nil Schema allows
// every value and declares no member.
type Schema struct {
	Name  string   // that another schema refers to it by
	Words []string // a text is one of these; nil allows any
	Low   int      // the least length of a text, in characters
	High  int      // the greatest one; 0 sets no limit
	// Legal judges a text in place of the pattern. Nil leaves it to the pattern.
	Legal func(text string) bool

	of             types
	closed, unique bool
	unjudged       bool // it has a pattern that package regexp does not have
	time           bool
	items          span // the length of a list
	value          span // the range of a number
	pattern        *regexp.Regexp
	same           *Schema // whose conditions hold too
	members        []member
	index          map[string]int
	needs          int // members that are required
	like           []likeness
	element        *Schema
	not            *Schema
	when           *Schema // then it is as so, else as otherwise
	so, otherwise  *Schema
	all, any, one  []*Schema
}

type member struct {
	name string
	need bool
	*Schema
}

// A likeness is about members with names like a pattern.
type likeness struct {
	names *regexp.Regexp
	*Schema
}

// A span is a range with a lower end, an upper end or both.
type span struct {
	low, high       float64
	hasLow, hasHigh bool
}

func (s span) has(v float64) bool { return (!s.hasLow || v >= s.low) && (!s.hasHigh || v <= s.high) }

// types is a set of types. The empty set has all.
type types uint8

const (
	object types = 1 << iota
	list
	text
	number
	integer
	boolean
	null
)

var typeNames = map[string]types{"object": object, "list": list, "text": text,
	"number": number, "integer": integer, "boolean": boolean, "null": null}

// Parse returns the table of a text. Of two schemas with one name, the later one counts. One
// with a plus sign before its name adds its members to the earlier one, or replaces them.
func Parse(text string) (Table, error) {
	p := parser{table: Table{}}
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); line != "" && line[0] != '#' {
			p.lines = append(p.lines, line)
		}
	}
	for len(p.lines) > 0 && p.err == nil {
		name, s := p.schema(0)
		name = strings.TrimSuffix(name, ":")
		if name, more := strings.CutPrefix(name, "+"); more && p.table[name] != nil {
			p.table[name].add(s.members...)
			continue
		}
		s.Name, p.table[name] = name, s
	}
	for s, name := range p.refs {
		if s.same = p.table[name]; s.same == nil && p.err == nil {
			p.err = fmt.Errorf("facts: no schema has the name %s", name)
		}
	}
	return p.table, p.err
}

type parser struct {
	lines []string
	table Table
	refs  map[*Schema]string
	err   error
}

func (p *parser) deeper(depth int) bool {
	return p.err == nil && len(p.lines) > 0 && strings.HasPrefix(p.lines[0], strings.Repeat("\t", depth))
}

// schema reads a line and the lines below it.
func (p *parser) schema(depth int) (label string, s *Schema) {
	label, rest, _ := strings.Cut(p.lines[0][depth:], " ")
	p.lines, s = p.lines[1:], &Schema{}
	for word := range strings.FieldsSeq(rest) {
		if err := p.word(s, word); err != nil && p.err == nil {
			p.err = fmt.Errorf("facts: %s: %q: %w", label, word, err)
		}
	}
	for p.deeper(depth + 1) {
		head, _, _ := strings.Cut(p.lines[0][depth+1:], " ")
		if list := s.alternatives(head); list != nil {
			for p.lines = p.lines[1:]; p.deeper(depth + 2); {
				_, one := p.schema(depth + 2)
				*list = append(*list, one)
			}
			continue
		}
		name, part := p.schema(depth + 1)
		if at := s.part(name); at != nil {
			*at = part
		} else if re, ok := strings.CutPrefix(name, "/"); ok {
			names, err := regexp.Compile(strings.TrimSuffix(re, "/"))
			if err != nil && p.err == nil {
				p.err = err
			}
			s.like = append(s.like, likeness{names, part})
		} else {
			name, need := strings.CutSuffix(name, "!")
			s.add(member{name, need, part})
		}
	}
	return label, s
}

func (s *Schema) add(list ...member) {
	if s.index == nil {
		s.index = map[string]int{}
	}
	for _, m := range list {
		if i, known := s.index[m.name]; known {
			s.members[i] = m
		} else {
			s.index[m.name] = len(s.members)
			s.members = append(s.members, m)
		}
	}
	s.needs = 0
	for _, m := range s.members {
		if m.need {
			s.needs++
		}
	}
}

func (s *Schema) alternatives(head string) *[]*Schema {
	return map[string]*[]*Schema{"<all>": &s.all, "<any>": &s.any, "<one>": &s.one}[head]
}

func (s *Schema) part(head string) **Schema {
	return map[string]**Schema{"[]": &s.element, "<not>": &s.not,
		"<if>": &s.when, "<then>": &s.so, "<else>": &s.otherwise}[head]
}

// word reads a condition.
func (p *parser) word(s *Schema, word string) (err error) {
	if name, ok := strings.CutPrefix(word, "@"); ok {
		if p.refs == nil {
			p.refs = map[*Schema]string{}
		}
		p.refs[s] = name
		return nil
	}
	key, value, has := strings.Cut(word, "=")
	switch {
	case key == "in":
		s.Words = strings.Split(value, ",")
	case key == "match" && !strings.Contains(value, "(?!"):
		s.pattern, err = regexp.Compile(value)
	case key == "match":
		s.unjudged = true
	case key == "items":
		s.items, err = spanOf(value)
	case key == "value":
		s.value, err = spanOf(value)
	case key == "len":
		of, bad := spanOf(value)
		s.Low, s.High, err = int(of.low), int(of.high), bad
	case word == "closed":
		s.closed = true
	case word == "unique":
		s.unique = true
	case word == "date-time":
		s.time = true
	case has:
		return fmt.Errorf("no condition has the name %s", key)
	default:
		for name := range strings.SplitSeq(word, "|") {
			if typeNames[name] == 0 {
				return fmt.Errorf("no condition has the name %s", name)
			}
			s.of |= typeNames[name]
		}
	}
	return err
}

func spanOf(text string) (s span, err error) {
	low, high, ok := strings.Cut(text, "..")
	if !ok {
		return s, fmt.Errorf("a range has two points")
	}
	if s.hasLow = low != ""; s.hasLow {
		s.low, err = strconv.ParseFloat(low, 64)
	}
	if s.hasHigh = high != ""; s.hasHigh && err == nil {
		s.high, err = strconv.ParseFloat(high, 64)
	}
	return s, err
}

// Whole returns the schema with the conditions itself: not one that only refers to another.
func (s *Schema) Whole() *Schema {
	for s != nil && s.same != nil && s.of == 0 && s.members == nil && s.Words == nil && s.all == nil {
		s = s.same
	}
	return s
}

// Member returns the schema of the member of an object, and whether the object declares the
// member and requires it.
func (s *Schema) Member(name string) (of *Schema, declared, required bool) {
	if s = s.Whole(); s == nil {
		return nil, false, false
	}
	if i, ok := s.index[name]; ok {
		return s.members[i].Schema, true, s.members[i].need
	}
	for i := range s.like {
		if s.like[i].names.MatchString(name) {
			return s.like[i].Schema, false, false
		}
	}
	return nil, false, false
}

// Refuses reports whether an object must not have the member.
func (s *Schema) Refuses(name string) bool {
	if s = s.Whole(); s == nil || !s.closed {
		return false
	}
	_, declared := s.index[name]
	return !declared && !s.isLike(name)
}

func (s *Schema) isLike(name string) bool {
	for i := range s.like {
		if s.like[i].names.MatchString(name) {
			return true
		}
	}
	return false
}

// Closed reports whether an object must not have members that its schema does not declare. It
// may still have those with names like a pattern.
func (s *Schema) Closed() bool {
	s = s.Whole()
	return s != nil && s.closed
}

// Element returns the schema of the elements of a list.
func (s *Schema) Element() *Schema {
	if s = s.Whole(); s == nil {
		return nil
	}
	return s.element
}

// Choice returns the alternative that a value is meant as: one whose members with a closed list
// have words of it, else one that requires most of its members. It is s if there are no
// alternatives.
func (s *Schema) Choice(raw string) *Schema {
	if s = s.Whole(); s == nil || len(s.one) == 0 {
		return s
	}
	best, most := s, -1
	for _, alternative := range s.one {
		if n := alternative.Whole().likelihood(raw); n > most {
			best, most = alternative.Whole(), n
		}
	}
	return best
}

// Pattern returns the pattern of a text, or "".
func (s *Schema) Pattern() string {
	if s.pattern == nil {
		return ""
	}
	return s.pattern.String()
}

// Members yields the members that an object declares.
func (s *Schema) Members() iter.Seq2[string, *Schema] {
	return func(yield func(string, *Schema) bool) {
		for _, m := range s.members {
			if !yield(m.name, m.Schema) {
				return
			}
		}
	}
}

// Vocabulary returns the words of a text whose alternatives may have a closed list.
func (s *Schema) Vocabulary() (words []string) {
	s = s.Whole()
	words = append(words, s.Words...)
	for _, list := range [...][]*Schema{s.any, s.one} {
		for _, one := range list {
			words = append(words, one.Vocabulary()...)
		}
	}
	return words
}
