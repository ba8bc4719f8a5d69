package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A shape is the form of lines of JSON: their kinds, and of each kind the members and their types.
type shape map[string]*kind

// A kind of line has a pointer for each member, with the types of its values and the lines with it.
type kind struct {
	lines   int
	members map[string]*member
}

type member struct {
	types map[string]bool
	lines int
}

// add adds the lines of a text from a source, or the document that it is.
func (s shape) add(source, text string) {
	var whole any
	if strings.Contains(strings.TrimSpace(text), "\n") && json.Unmarshal([]byte(text), &whole) == nil {
		s.value(source+" document", whole)
		return
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		var v any
		if json.Unmarshal([]byte(line), &v) != nil {
			s.value(source+" (text)", "")
			continue
		}
		s.value(source+" "+kindOf(v), v)
	}
}

func (s shape) value(name string, v any) {
	k := s[name]
	if k == nil {
		k = &kind{members: map[string]*member{}}
		s[name] = k
	}
	k.lines++
	seen := map[string]bool{}
	k.walk("", v, seen)
	for at := range seen {
		k.members[at].lines++
	}
}

// tags are members whose texts tell the kind of a line. Some lines have them in an inner object.
var tags = []string{"type", "subtype", "role"}

// kindOf names a line by its tags, and one without any by its members.
func kindOf(v any) string {
	o, ok := v.(map[string]any)
	if !ok {
		return typeOf(v)
	}
	var words []string
	for _, tag := range tags {
		if word, ok := o[tag].(string); ok {
			words = append(words, word)
		}
	}
	for _, below := range []string{"payload", "message", "item", "event", "msg"} {
		if inner, ok := o[below].(map[string]any); ok {
			if word := kindOf(inner); word != "" && !strings.Contains(word, "+") {
				words = append(words, word)
			}
		}
	}
	if len(words) == 0 {
		return strings.Join(slices.Sorted(maps.Keys(o)), "+")
	}
	return strings.Join(words, "/")
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "list"
	}
	return "object"
}

// named matches the names of members. Other names are data, such as paths and ids.
var named = regexp.MustCompile(`^[$A-Za-z_][A-Za-z_]*[0-9]{0,2}[A-Za-z_]*$`)

// walk notes a value and those in it. The elements of a list are told apart by their types.
func (k *kind) walk(at string, v any, seen map[string]bool) {
	if at != "" {
		m := k.members[at]
		if m == nil {
			m = &member{types: map[string]bool{}}
			k.members[at] = m
		}
		m.types[typeOf(v)] = true
		seen[at] = true
	}
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if !named.MatchString(name) {
				name = "*"
			}
			k.walk(at+"/"+name, inner, seen)
		}
	case []any:
		for _, inner := range v {
			name := "*"
			if o, ok := inner.(map[string]any); ok {
				if word, ok := o["type"].(string); ok {
					name = "*" + word
				}
			}
			k.walk(at+"/"+name, inner, seen)
		}
	}
}

// compare prints the difference between two shapes, and returns the number of differences.
func compare(w io.Writer, a, b shape) int {
	names := map[string]bool{}
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	n := 0
	tell := func(format string, args ...any) {
		n++
		fmt.Fprintf(w, format+"\n", args...)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := a[name], b[name]
		switch {
		case was == nil:
			tell("+ %s: a new kind, %d lines: %s", name, is.lines, strings.Join(slices.Sorted(maps.Keys(is.members)), " "))
			continue
		case is == nil:
			tell("- %s: %d lines", name, was.lines)
			continue
		case was.lines != is.lines:
			tell("~ %s: %d lines, were %d", name, is.lines, was.lines)
		}
		pointers := map[string]bool{}
		for at := range was.members {
			pointers[at] = true
		}
		for at := range is.members {
			pointers[at] = true
		}
		gone := ""
		for _, at := range slices.Sorted(maps.Keys(pointers)) {
			x, y := was.members[at], is.members[at]
			if gone != "" && strings.HasPrefix(at, gone+"/") {
				continue // its object is told
			}
			switch {
			case x == nil:
				gone = at
				tell("+ %s %s: %s, in %d of %d lines", name, at, y, y.lines, is.lines)
			case y == nil:
				gone = at
				tell("- %s %s: was %s, in %d of %d lines", name, at, x, x.lines, was.lines)
			case x.String() != y.String():
				if x.types["object"] != y.types["object"] {
					gone = at
				}
				tell("~ %s %s: %s, was %s", name, at, y, x)
			}
		}
	}
	return n
}

// String lists the types of a member.
func (m *member) String() string {
	return cmp.Or(strings.Join(slices.Sorted(maps.Keys(m.types)), " or "), "nothing")
}
