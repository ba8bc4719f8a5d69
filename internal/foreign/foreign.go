// Package foreign names input that is not a log: the files and streams of other programs, by
// their fingerprints, and other forms of data than lines of JSON.
package foreign

import (
	"slices"
	"strings"
	"sync"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A File names input that is not a log. It has the fields of agentevents.ForeignError.
type File struct{ Program, Name, Hint string }

// Unknown is a line of a program without a row in the table.
var Unknown = File{
	Name: "a line of another program",
	Hint: `it has no known format; a native line has "id", "sequence", "runId" and "type"; ` +
		`name the format if it is a dialect's line without its usual members`,
}

// Line names the program that wrote a line: a JSON object, or the data of a Server-Sent
// Event. ok is false for the lines of logs and for those that fit no row of the table.
func Line(text string) (f File, ok bool) {
	if text = data(text); !jsonwire.IsObject(strings.TrimLeft(text, " \t")) || jsonwire.Valid(text) != nil {
		return File{}, false
	}
	return name(membersOf(text))
}

// IsRead reports whether package capture reads the files of a name.
func IsRead(name string) bool {
	return slices.ContainsFunc(table(), func(r row) bool { return r.Name == name && strings.HasPrefix(r.Hint, direct) })
}

// Doubtful reports whether a line is an object that has no more of an event than a type.
func Doubtful(text string) bool {
	text = data(text)
	return jsonwire.IsObject(text) && !slices.ContainsFunc(events(), membersOf(text).shows)
}

// data returns the data of a Server-Sent Event, and any other line as it is.
func data(line string) string {
	if data, frame := strings.CutPrefix(line, "data:"); frame {
		return strings.TrimSpace(data)
	}
	return line
}

// Document names the program that wrote a JSON document, of which the end may be missing. A line
// that is whole is a document.
func Document(text string) (File, bool) { return document(text) }

// document names the program that wrote a JSON document, by the beginning of it: an object,
// or an array, which its first object stands for.
func document(text string) (f File, ok bool) {
	text = strings.TrimLeft(text, " \t\r\n")
	if list, isList := strings.CutPrefix(text, "["); isList {
		text = list
	}
	return name(membersOf(text))
}

// name returns the first row that fits.
func name(o object) (File, bool) {
	if o.has("runId") && (o.has("type") || o.has("id") || o.has("sequence")) {
		return File{}, false
	}
	for _, r := range table() {
		if slices.ContainsFunc(r.signs, o.shows) {
			return r.File, true
		}
	}
	return wrapped(o)
}

// wrapped names objects with an event, or a list of events, in one of their members. An inner
// object with the type of the outer one counts as its event.
func wrapped(o object) (File, bool) {
	kind, typed := o.at("type")
	isEvent := func(inner object) bool {
		same, ok := inner.at("type")
		return slices.ContainsFunc(events(), inner.shows) || typed && ok && same == kind
	}
	for _, m := range o {
		inner, path := m.raw, "."+m.name
		if list, isList := strings.CutPrefix(m.raw, "["); isList {
			inner, path = list, "'."+m.name+"[]'"
		}
		if isIdentifier(m.name) && isEvent(membersOf(inner)) {
			return File{Name: "an event wrapped in the member " + jsonwire.Brief(m.name),
				Hint: "unwrap it first, as jq -c " + path + " does"}, true
		}
	}
	return File{}, false
}

// isIdentifier reports whether jq takes a name without quotes.
func isIdentifier(name string) bool {
	for i, c := range []byte(name) {
		if letter := c == '_' || c|0x20-'a' < 26; !letter && (i == 0 || c-'0' > 9) {
			return false
		}
	}
	return name != ""
}

// An object is the members of a JSON object in their order.
type object []member

type member struct{ name, raw string }

// membersOf returns the members at the beginning of a text, up to the first fault in it. A
// member whose value is at fault counts, with the rest of the text as its value.
func membersOf(text string) (o object) {
	var s jsonwire.Scanner
	s.Reset(text)
	if s.Object() != nil {
		return nil
	}
	for {
		name, ok, err := s.Member()
		if err != nil || !ok {
			return o
		}
		raw, err := s.Raw()
		if err != nil {
			return append(o, member{name, strings.TrimLeft(s.Rest(), " \t\r\n")})
		}
		o = append(o, member{name, raw})
	}
}

// at returns the value at a path of names with slashes between them.
func (o object) at(path string) (raw string, ok bool) {
	name, rest, deep := strings.Cut(path, "/")
	i := slices.IndexFunc(o, func(m member) bool { return m.name == name })
	switch {
	case i < 0:
		return "", false
	case deep:
		return membersOf(strings.TrimPrefix(o[i].raw, "[")).at(rest) // of a list its first object
	}
	return o[i].raw, true
}

func (o object) has(name string) bool {
	_, ok := o.at(name)
	return ok
}

// A sign is a list of terms, which must all hold for an object.
type sign []term

// A term is about one member.
type term struct {
	path   string
	absent bool
	number bool     // it is a number
	texts  []string // one of which it is; with * at its end, how it begins
}

func (o object) shows(s sign) bool {
	for _, t := range s {
		raw, ok := o.at(t.path)
		if ok == t.absent || t.number && !isNumber(raw) || t.texts != nil && !t.is(jsonwire.Text(raw)) {
			return false
		}
	}
	return len(s) > 0
}

func isNumber(raw string) bool { return raw != "" && strings.IndexByte("-0123456789", raw[0]) >= 0 }

func (t term) is(text string) bool {
	return slices.ContainsFunc(t.texts, func(want string) bool {
		begin, open := strings.CutSuffix(want, "*")
		return text == want || open && strings.HasPrefix(text, begin)
	})
}

// parse reads a sign as the table spells it: terms with blanks between them. A term is the path
// of a member, and after it "=" and the texts that it may be, or ":number". A "!" before it
// means that the member is absent.
func parse(text string) (s sign) {
	for _, word := range strings.Fields(text) {
		var t term
		word, t.absent = strings.CutPrefix(word, "!")
		word, t.number = strings.CutSuffix(word, ":number")
		path, texts, found := strings.Cut(word, "=")
		if t.path = path; found {
			t.texts = strings.Split(texts, "|")
		}
		s = append(s, t)
	}
	return s
}

// A row is a kind of file and the signs of it: one is enough.
type row struct {
	File
	signs []sign
}

// table returns the rows, ready to be asked.
var table = sync.OnceValue(func() (rows []row) {
	for _, p := range programs {
		r := row{File: File{p.program, p.name, p.hint}}
		if r.Hint == "" {
			r.Hint = "agentevents cannot read it yet"
		}
		for _, text := range p.signs {
			r.signs = append(r.signs, parse(text))
		}
		rows = append(rows, r)
	}
	return rows
})

// events returns the signs of an event in the formats that are read.
var events = sync.OnceValue(func() (signs []sign) {
	for _, text := range eventSigns {
		signs = append(signs, parse(text))
	}
	return signs
})
