package agentevents

import (
	"encoding/binary"
	"fmt"
	"iter"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

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

// PayloadExtra reports whether the payload, or a value inside it, has members
// of its line that no field has. [Event.AppendJSON] writes them; who reads the
// fields does not see them.
func (e *Event) PayloadExtra() bool {
	p := ops(e.Payload)
	return p != nil && p.hasExtra()
}

// Origin returns the line that the event was read from by a [Reader] with
// Verbatim set, however the event was changed since; otherwise "". A line of
// which several events were made is nobody's.
func (e *Event) Origin() string { return e.origin }
