package extra

import (
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Field describes one JSON member of a struct.
type Field struct {
	Name string
	Zero string // the text of a required field at its zero value; empty for an optional field
}

// Required reports whether the member is written whatever its value is.
func (f *Field) Required() bool { return f.Zero != "" }

// Number returns the number of a field counted from 1, or 0.
func Number(fields []Field, name string) int {
	for i := range fields {
		if fields[i].Name == name {
			return i + 1
		}
	}
	return 0
}

// Merge rewrites the object at dst[mark:], which holds the struct's own members in
// the order of fields, with the entries of m in their places.
func (m Members) Merge(dst []byte, mark int, fields []Field) []byte {
	object := string(dst[mark:])
	dst = append(dst[:mark], '{')
	first := true
	member := func(text string) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, text...)
	}
	rest := m
	entries := func(field int) { // those that come before the member after the field
		for rest != "" {
			e, tail := rest.next()
			if e.After > field {
				return
			}
			rest = tail
			if e.What == Unknown || e.What == Spelled && !jsonwire.HasMember(object, e.fieldName()) {
				member(e.Text)
			}
		}
	}
	var s jsonwire.Scanner
	s.Reset(object)
	if s.Object() != nil {
		return append(dst[:mark], object...)
	}
	for {
		start := s.Offset()
		name, ok, err := s.Member()
		if err != nil || !ok {
			break
		}
		if s.Skip() != nil {
			break
		}
		number := Number(fields, name)
		entries(number - 1)
		text := strings.TrimPrefix(object[start:s.Offset()], ",")
		if number == 0 || !m.leavesOut(name, text, fields[number-1].Zero) {
			member(text)
		}
	}
	entries(len(fields))
	return append(dst, '}')
}

// leavesOut reports whether a required member was missing when the object was read
// and is still at its zero value, whose text is zero.
func (m Members) leavesOut(name, text, zero string) bool {
	for m != "" {
		var e Entry
		if e, m = m.next(); e.What == Missing && e.fieldName() == name {
			return text[len(e.Text)+1:] == zero
		}
	}
	return false
}
