// Package extra keeps the parts of a JSON object that its struct cannot hold, so that writing the
// struct loses nothing:
//
//   - members that no field is named after;
//   - optional members spelled out at their zero value ("" or null or false),
//     which in Go look like absent ones;
//   - the names of required members that were missing.
//
// Each knows the field it followed, so that a line of a newer version is written as
// it was read.
package extra

import (
	"encoding/binary"
	"iter"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Members are the extras of one object. They do not change; a struct that was built in Go has none.
// The text is entries, one after the other:
//
//	after  byte   number of the last known field before it, 0 for none
//	sort byte Unknown, Spelled or Missing
//	length uvarint
//	text          "name":value, or "name" for a missing member
type Members string

// A What is the sort of an entry.
type What byte

// The sorts.
const (
	Unknown What = iota // no field has this name
	Spelled             // a field has it; used only while the field is absent
	Missing             // a required field was not there; left out while the field is zero
)

// An Entry is one of the extras.
type Entry struct {
	After int // number of the last known field before it, counted from 1; 0 for none
	What  What
	Text  string // "name":value, or "name" for a missing member
}

// Name returns the name, unescaped.
func (e Entry) Name() string {
	name, _ := e.split()
	return name
}

// Value returns the text of the value; a missing member has none.
func (e Entry) Value() string {
	_, start := e.split()
	return e.Text[start:]
}

// split returns the name, and where the value starts.
func (e Entry) split() (name string, start int) {
	var s jsonwire.Scanner
	s.Reset(e.Text)
	name, err := s.String()
	if err != nil || e.What == Missing {
		return name, len(e.Text)
	}
	return name, s.Offset() + len(":")
}

// fieldName returns the name of a field, which has no escapes.
func (e Entry) fieldName() string {
	return e.Text[1 : 1+strings.IndexByte(e.Text[1:], '"')]
}

// next takes the first entry off m.
func (m Members) next() (Entry, Members) {
	n, size := uvarint(string(m[2:]))
	start := 2 + size
	return Entry{int(m[0]), What(m[1]), string(m[start : start+n])}, m[start+n:]
}

func uvarint(s string) (value, size int) {
	var shift uint
	for i := 0; i < len(s); i++ {
		value |= int(s[i]&0x7f) << shift
		if s[i] < 0x80 {
			return value, i + 1
		}
		shift += 7
	}
	return 0, len(s)
}

// HasUnknown reports whether there is a member that no field has.
func (m Members) HasUnknown() bool {
	for m != "" {
		var e Entry
		if e, m = m.next(); e.What == Unknown {
			return true
		}
	}
	return false
}

// Unknown yields the names, unescaped, and the values of the members that no field
// has, in their order.
func (m Members) Unknown() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for m := m; m != ""; {
			var e Entry
			if e, m = m.next(); e.What != Unknown {
				continue
			}
			if name, start := e.split(); !yield(name, e.Text[start:]) {
				return
			}
		}
	}
}

// Names yields the names of all, unescaped.
func (m Members) Names() iter.Seq[string] {
	return func(yield func(name string) bool) {
		for m := m; m != ""; {
			var e Entry
			if e, m = m.next(); !yield(e.Name()) {
				return
			}
		}
	}
}

// Lacks yields the names of the required fields that were not in the object.
func (m Members) Lacks() iter.Seq[string] {
	return func(yield func(name string) bool) {
		for m := m; m != ""; {
			var e Entry
			if e, m = m.next(); e.What == Missing && !yield(e.fieldName()) {
				return
			}
		}
	}
}

// Spelling returns the text of a field's value that is spelled out, or "".
func (m Members) Spelling(field string) string {
	for m != "" {
		var e Entry
		if e, m = m.next(); e.What == Spelled && e.fieldName() == field {
			return e.Value()
		}
	}
	return ""
}

// Set returns m with an unknown member, which comes after a field and after the
// other unknown ones. One of the same name is taken out; with an empty value that is
// all.
func (m Members) Set(after int, name, value string) Members {
	if m == "" {
		return one(after, name, value)
	}
	var b Builder
	for m != "" {
		var e Entry
		if e, m = m.next(); e.What != Unknown || e.Name() != name {
			put(&b, e.After, e.What, e.Text)
		}
	}
	if value != "" {
		b.add(after, Unknown, name, value)
	}
	return b.Members()
}

// one is Set for no members. It takes one piece of memory.
func one(after int, name, value string) Members {
	if value == "" {
		return ""
	}
	var head, quoted [64]byte // on the stack: most are short
	member := append(jsonwire.AppendString(quoted[:0], name), ':')
	entry := append(head[:0], byte(after), byte(Unknown))
	entry = binary.AppendUvarint(entry, uint64(len(member)+len(value)))
	var b strings.Builder
	b.Grow(len(entry) + len(member) + len(value))
	b.Write(entry)
	b.Write(member)
	b.WriteString(value)
	return Members(b.String())
}

// Map returns m with the text of every member that has a value replaced by f's result. It returns m
// itself if nothing changes.
func (m Members) Map(f func(e Entry) string) Members {
	var b Builder
	changed := false
	for rest := m; rest != ""; {
		var e Entry
		e, rest = rest.next()
		if e.What != Missing {
			was := e.Text
			e.Text = f(e)
			changed = changed || e.Text != was
		}
		put(&b, e.After, e.What, e.Text)
	}
	if !changed {
		return m
	}
	return b.Members()
}
