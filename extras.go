package agentevents

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// This file is about extra members: those of a line that no field has. First the
// methods of an Event, then how every struct keeps its own.

// Extra returns the value of a member of the event's line that no field of the
// envelope has, and "" when there is none. Decoders of other formats keep there
// what the vocabulary has no place for.
func (e *Event) Extra(name string) JSON {
	for n, value := range e.Extras() {
		if n == name {
			return value
		}
	}
	return ""
}

// Extras yields the members of the event's line that no field of the envelope
// has, in their order.
func (e *Event) Extras() iter.Seq2[string, JSON] {
	return func(yield func(string, JSON) bool) {
		for x := e.extra; x != ""; {
			_, what, text, rest := x.next()
			x = rest
			if what != unknownMember {
				continue
			}
			start := valueStart(text)
			var s jsonwire.Scanner
			s.Reset(text[:start-1])
			name, err := s.String()
			if err == nil && !yield(name, JSON(text[start:])) {
				return
			}
		}
	}
}

// SetExtra sets a member of the event's line that no field of the envelope has;
// the empty value removes it. It returns an error when the value is not JSON or
// the name is a field's. The member is written after all others, and passes the
// redaction step as content.
func (e *Event) SetExtra(name string, value JSON) error {
	if name == "" || !jsonwire.ValidUTF8(name) || fieldNumber(envelopeFields[:], name) != 0 {
		return fmt.Errorf("agentevents: %q cannot be the name of an extra member", name)
	}
	var raw string
	if value != "" {
		var err error
		if raw, err = jsonwire.Compact(string(value)); err != nil {
			return fmt.Errorf("agentevents: extra member %q: %w", name, err)
		}
	}
	if e.extra == "" {
		e.extra = oneExtra(name, raw)
		return nil
	}
	var b extrasBuilder
	for x := e.extra; x != ""; {
		anchor, what, text, rest := x.next()
		x = rest
		if what == unknownMember {
			var s jsonwire.Scanner
			s.Reset(text[:valueStart(text)-1])
			if n, err := s.String(); err == nil && n == name {
				continue
			}
		}
		putText(&b, anchor, what, text)
	}
	if raw != "" {
		b.put(len(envelopeFields), unknownMember, name, raw)
	}
	e.extra = b.done()
	return nil
}

// PayloadExtra reports whether the payload, or a value inside it, has members
// of its line that no field has. [Event.AppendJSON] writes them; no
// field shows them.
func (e *Event) PayloadExtra() bool {
	p := ops(e.Payload)
	return p != nil && p.hasExtra()
}

// Origin returns the line that the event was read from by a [Reader] with
// Verbatim set, however the event was changed since. It is empty for other
// events, and for one that shares its line with others.
func (e *Event) Origin() string { return e.origin }

// extras holds what one JSON object said and its struct cannot hold, so that
// writing the struct loses nothing:
//
//   - members that no field is named after;
//   - optional members spelled out at their zero value ("" or null or false),
//     which in Go look like absent ones;
//   - the names of required members that were missing.
//
// Each entry knows the field it followed, so that a line of a newer version is
// written as it was read. The text is immutable; a struct that was built in Go
// has none. Entries are, one after the other:
//
//	anchor byte   number of the last known field before it, 0 for none
//	what   byte   unknownMember, spelledMember or missingMember
//	length uvarint
//	text          "name":value, or "name" for a missing member
type extras string

const (
	unknownMember = iota // no field has this name
	spelledMember        // a field has it; used only while the field is absent
	missingMember        // a required field was not there; left out while the field is zero
)

// extraLimit is the number of unknown members above which duplicates are
// looked up in a map.
const extraLimit = 16

// An extrasBuilder collects the extras of one object while it is parsed.
type extrasBuilder struct {
	buf    []byte
	anchor int
	names  []string
	seen   map[string]struct{}
}

// add keeps the next value of s as the member name, which no field has. It
// refuses a name it has seen before.
func (b *extrasBuilder) add(s *jsonwire.Scanner, anchor int, name string) error {
	if b.has(name) {
		return s.Duplicate(name)
	}
	raw, err := s.Raw()
	if err != nil {
		return err
	}
	if len(b.names) < extraLimit {
		b.names = append(b.names, name)
	} else {
		if b.seen == nil {
			b.seen = make(map[string]struct{}, 4*extraLimit)
			for _, n := range b.names {
				b.seen[n] = struct{}{}
			}
		}
		b.seen[name] = struct{}{}
	}
	b.put(anchor, unknownMember, name, raw)
	return nil
}

func (b *extrasBuilder) has(name string) bool {
	if b.seen != nil {
		_, ok := b.seen[name]
		return ok
	}
	for _, n := range b.names {
		if n == name {
			return true
		}
	}
	return false
}

// spelled keeps raw as the spelling of an optional field that looks absent.
func (b *extrasBuilder) spelled(field int, name, raw string) {
	b.put(field, spelledMember, name, raw)
}

// missing notes that a required field was not in the object.
func (b *extrasBuilder) missing(field int, name string) { b.put(field, missingMember, name, "") }

func (b *extrasBuilder) put(anchor int, what byte, name, raw string) {
	var stack [128]byte // most are short
	text := jsonwire.AppendString(stack[:0], name)
	if what != missingMember {
		text = append(append(text, ':'), raw...)
	}
	putText(b, anchor, what, text)
}

// putText adds an entry. Anchors never go down: members are written in the order
// of the fields. A spelled member that comes late goes to its place, and an
// unknown one stays behind those that came before it.
func putText[T ~string | ~[]byte](b *extrasBuilder, anchor int, what byte, text T) {
	var later []byte // entries that come after this one
	switch {
	case what == missingMember:
	case what == spelledMember && anchor < b.anchor:
		at := 0
		for x := extras(b.buf); x != ""; {
			before, _, _, rest := x.next()
			if before >= anchor {
				break
			}
			at, x = len(b.buf)-len(rest), rest
		}
		later = slices.Clone(b.buf[at:])
		b.buf = b.buf[:at]
	default:
		b.anchor = max(anchor, b.anchor)
		anchor = b.anchor
	}
	if b.buf == nil {
		b.buf = make([]byte, 0, len(text)+2+binary.MaxVarintLen32)
	}
	b.buf = append(b.buf, byte(anchor), what)
	b.buf = binary.AppendUvarint(b.buf, uint64(len(text)))
	b.buf = append(b.buf, text...)
	b.buf = append(b.buf, later...)
}

// oneExtra returns the extras of an object with one unknown member at its end,
// or none if raw is empty.
func oneExtra(name, raw string) extras {
	if raw == "" {
		return ""
	}
	var stack [64]byte
	head := append(stack[:0], byte(len(envelopeFields)), unknownMember)
	var quoted [64]byte
	member := append(jsonwire.AppendString(quoted[:0], name), ':')
	head = binary.AppendUvarint(head, uint64(len(member)+len(raw)))
	var b strings.Builder
	b.Grow(len(head) + len(member) + len(raw))
	b.Write(head)
	b.Write(member)
	b.WriteString(raw)
	return extras(b.String())
}

func (b *extrasBuilder) done() extras { return extras(b.buf) }

// next takes the first entry off x.
func (x extras) next() (anchor int, what byte, text string, rest extras) {
	anchor, what = int(x[0]), x[1]
	n, size := uvarint(string(x[2:]))
	start := 2 + size
	return anchor, what, string(x[start : start+n]), x[start+n:]
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

// unknown reports whether there is a member that no field has.
func (x extras) unknown() bool {
	for x != "" {
		_, what, _, rest := x.next()
		if what == unknownMember {
			return true
		}
		x = rest
	}
	return false
}

// lacks returns the name of a required field that was not in the object, or
// "".
func (x extras) lacks() string {
	for x != "" {
		_, what, text, rest := x.next()
		if what == missingMember {
			return text[1 : len(text)-1] // field names need no escapes
		}
		x = rest
	}
	return ""
}

// merge rewrites the object at dst[mark:], which holds the struct's own
// members in the order of fields, with the entries of x in their places.
func (x extras) merge(dst []byte, mark int, fields []field) []byte {
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
	// Entries up to anchor go before the member that comes after it.
	rest := x
	entries := func(anchor int) {
		for rest != "" {
			at, what, text, tail := rest.next()
			if at > anchor {
				return
			}
			rest = tail
			if what == unknownMember || what == spelledMember && !jsonwire.HasMember(object, memberName(text)) {
				member(text)
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
		number := fieldNumber(fields, name)
		entries(number - 1)
		text := strings.TrimPrefix(object[start:s.Offset()], ",")
		if number == 0 || !x.leavesOut(name, text, fields[number-1].zero) {
			member(text)
		}
	}
	entries(len(fields))
	return append(dst, '}')
}

// leavesOut reports whether a required member was missing when the object was
// read and is still at its zero value, whose text is zero.
func (x extras) leavesOut(name, text, zero string) bool {
	for x != "" {
		_, what, entry, rest := x.next()
		if what == missingMember && entry[1:len(entry)-1] == name {
			return text[len(entry)+1:] == zero
		}
		x = rest
	}
	return false
}

// memberName returns the name of a spelled entry; fields need no escapes.
func memberName(text string) string {
	end := strings.IndexByte(text[1:], '"')
	return text[1 : 1+end]
}

// A field describes one JSON member of a struct, for extras and redaction.
type field struct {
	name     string
	class    Class
	required bool
	zero     string // the text a required field has at its zero value
}

// fieldNumber returns the number of a field counted from 1, or 0.
func fieldNumber(fields []field, name string) int {
	for i := range fields {
		if fields[i].name == name {
			return i + 1
		}
	}
	return 0
}
