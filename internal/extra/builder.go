package extra

import (
	"encoding/binary"
	"slices"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// limit is the number of unknown members above which duplicates are looked up in a
// map.
const limit = 16

// A Builder collects the extras of one object while it is parsed. The zero Builder
// has none.
type Builder struct {
	buf   []byte
	last  int // the highest field that an entry comes after
	names []string
	seen  map[string]struct{}
}

// Unknown keeps the next value of s as the member name, which no field has. It
// refuses a name it has seen before.
func (b *Builder) Unknown(s *jsonwire.Scanner, after int, name string) error {
	if b.has(name) {
		return s.Duplicate(name)
	}
	raw, err := s.Raw()
	if err != nil {
		return err
	}
	if len(b.names) < limit {
		b.names = append(b.names, name)
	} else {
		if b.seen == nil {
			b.seen = make(map[string]struct{}, 4*limit)
			for _, n := range b.names {
				b.seen[n] = struct{}{}
			}
		}
		b.seen[name] = struct{}{}
	}
	b.add(after, Unknown, name, raw)
	return nil
}

func (b *Builder) has(name string) bool {
	if b.seen != nil {
		_, ok := b.seen[name]
		return ok
	}
	return slices.Contains(b.names, name)
}

// Spelled keeps raw as the spelling of an optional field that looks absent.
func (b *Builder) Spelled(field int, name, raw string) { b.add(field, Spelled, name, raw) }

// Missing notes that a required field was not in the object.
func (b *Builder) Missing(field int, name string) { b.add(field, Missing, name, "") }

// Members returns the collected entries.
func (b *Builder) Members() Members {
	if len(b.buf) == 0 {
		return "" // the usual case, without a call
	}
	return Members(b.buf)
}

func (b *Builder) add(after int, what What, name, raw string) {
	var stack [128]byte // most are short
	text := jsonwire.AppendString(stack[:0], name)
	if what != Missing {
		text = append(append(text, ':'), raw...)
	}
	put(b, after, what, text)
}

// put adds an entry. The fields they follow never go down: members are written in the order of the
// fields. A spelled member that comes late goes to its place, and an unknown one stays after its
// predecessors.
func put[T ~string | ~[]byte](b *Builder, after int, what What, text T) {
	var later []byte // entries that come after this one
	switch {
	case what == Missing:
	case what == Spelled && after < b.last:
		at := 0
		for m := Members(b.buf); m != ""; {
			var e Entry
			if e, m = m.next(); e.After >= after {
				break
			}
			at = len(b.buf) - len(m)
		}
		later = slices.Clone(b.buf[at:])
		b.buf = b.buf[:at]
	default:
		b.last = max(after, b.last)
		after = b.last
	}
	if b.buf == nil {
		b.buf = make([]byte, 0, len(text)+2+binary.MaxVarintLen32)
	}
	b.buf = append(b.buf, byte(after), byte(what))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(text)))
	b.buf = append(b.buf, text...)
	b.buf = append(b.buf, later...)
}
