package session

import (
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// An Object is a JSON object of a line, split into its members. It notes which of them were asked
// for: the others are the residue of the line. Of two members of one name the first counts.
// A member that is null counts as absent. The zero Object has no members.
type Object struct {
	Text    string
	members []member
}

type member struct {
	name, raw string
	asked     bool
}

// Parse splits valid JSON. A value that is not an object has no members. Memory of the Object's
// last members is used again.
func (o *Object) Parse(text string) {
	o.Text, o.members = text, o.members[:0]
	for name, raw := range jsonwire.Members(text) {
		o.members = append(o.members, member{name: name, raw: raw})
	}
}

// ParseObject returns the members of valid JSON.
func ParseObject(text string) *Object {
	o := &Object{members: make([]member, 0, 8)}
	o.Parse(text)
	return o
}

// Raw returns the JSON text of a member, or "" if it is absent or null.
func (o *Object) Raw(name string) string {
	for i := range o.members {
		if m := &o.members[i]; m.name == name {
			m.asked = true
			if m.raw == "null" {
				return ""
			}
			return m.raw
		}
	}
	return ""
}

// Skip notes that members are understood and left out on purpose.
func (o *Object) Skip(names ...string) {
	for _, name := range names {
		for i := range o.members {
			if o.members[i].name == name {
				o.members[i].asked = true
			}
		}
	}
}

// SkipAll notes that all members are understood.
func (o *Object) SkipAll() {
	for i := range o.members {
		o.members[i].asked = true
	}
}

// Unasked calls f with the name of each member that was not asked for. Members that are null
// tell nothing.
func (o *Object) Unasked(f func(name string)) {
	for i := range o.members {
		if m := &o.members[i]; !m.asked && m.raw != "null" {
			f(m.name)
		}
	}
}

// Str returns the text of a member that is a string, else "".
func (o *Object) Str(name string) string { return jsonwire.Text(o.Raw(name)) }

// Object returns a member that is an object, else one without members.
func (o *Object) Object(name string) *Object { return ParseObject(o.Raw(name)) }

// Flag reports whether a member is true.
func (o *Object) Flag(name string) bool { return o.Raw(name) == "true" }

// Count returns a member that is a whole number, not negative.
func (o *Object) Count(name string) agentevents.Opt[int64] {
	var s jsonwire.Scanner
	if s.Reset(o.Raw(name)); s.Text() == "" {
		return agentevents.Opt[int64]{}
	}
	if n, err := s.Int(); err == nil && n >= 0 {
		return agentevents.Some(n)
	}
	return agentevents.Opt[int64]{}
}

// Int returns a member that is a whole number.
func (o *Object) Int(name string) agentevents.Opt[int64] {
	var s jsonwire.Scanner
	if s.Reset(o.Raw(name)); s.Text() == "" {
		return agentevents.Opt[int64]{}
	}
	if n, err := s.Int(); err == nil {
		return agentevents.Some(n)
	}
	return agentevents.Opt[int64]{}
}

// Millis returns a member that is a number of milliseconds, not negative.
func (o *Object) Millis(name string) agentevents.Opt[time.Duration] {
	var s jsonwire.Scanner
	if s.Reset(o.Raw(name)); s.Text() == "" {
		return agentevents.Opt[time.Duration]{}
	}
	if d, err := s.Millis(); err == nil && d >= 0 {
		return agentevents.Some(d)
	}
	return agentevents.Opt[time.Duration]{}
}

// Time returns a member that is a time (RFC 3339).
func (o *Object) Time(name string) (time.Time, bool) { return ParseTime(o.Str(name)) }

// ParseTime reads a time (RFC 3339) of the years 0 to 9999, in milliseconds.
func ParseTime(text string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, text)
	at = at.UTC()
	return at.Truncate(time.Millisecond), err == nil && at.Year() >= 0 && at.Year() <= 9999
}

// Pick returns an object with the named members that are present, or "".
func (o *Object) Pick(names ...string) agentevents.JSON {
	var b strings.Builder
	for _, name := range names {
		raw := o.Raw(name)
		if raw == "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.WriteString(jsonwire.Quote(name) + ":" + raw)
	}
	if b.Len() == 0 {
		return ""
	}
	b.WriteByte('}')
	return agentevents.JSON(b.String())
}
