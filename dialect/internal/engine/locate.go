package engine

import (
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Locate returns the pointer, on the line that was read last, of the member that tells the
// field at a native pointer. It returns the native pointer of an event of another kind, and of
// a field that no member tells.
func (r *Reader) Locate(kind agentevents.Kind, pointer string) string {
	if r.line == nil || r.Row != nil && r.Row.Kind != kind {
		return pointer
	}
	place, in := strings.CutPrefix(pointer, "/payload/")
	if !in {
		place = pointer
	}
	if at, ok := r.line.locate(place, r.Seen); ok {
		return at
	}
	if r.body != nil {
		if at, ok := r.body.locate(place, r.In); ok {
			body := r.F.Body
			if r.Row.bodyAt != "" {
				body = r.Row.bodyAt[1:]
			}
			return "/" + body + at
		}
	}
	return pointer
}

// locate returns the pointer of the member that tells a place, in the object of the table. Of
// several, one that the object has goes first, then one that is written.
func (t *table) locate(place string, has Set) (at string, ok bool) {
	best := 0
	for _, m := range t.members {
		found, is := m.locate(place)
		rank := 1
		switch {
		case !is:
			continue
		case has.Has(m.number):
			rank = 3
		case !m.Reads && !m.Loose:
			rank = 2
		}
		if rank > best {
			at, ok, best = found, true, rank
		}
	}
	return at, ok
}

// locate is the locate of one member.
func (m *Member) locate(place string) (at string, ok bool) {
	if m.Name == "" { // its form stands among the others
		return "", false
	}
	at = "/" + jsonwire.Token(m.Name)
	inner, object := m.Form.(interface{ table() *table })
	if m.Fields == "" && object { // the object's members belong to the surrounding struct
		below, ok := inner.table().locate(place, 0)
		return at + below, ok
	}
	for says := range strings.FieldsSeq(m.Fields) {
		rest, within := strings.CutPrefix(place, says+"/")
		switch {
		case place == says:
			return at, true
		case !within:
			continue
		case object:
			below, ok := inner.table().locate(rest, 0)
			return at + below, ok
		}
		if l, list := m.Form.(interface{ elements() *table }); list {
			index, of, _ := strings.Cut(rest, "/")
			below, _ := l.elements().locate(of, 0)
			return at + "/" + index + below, true
		}
		return at + "/" + rest, true
	}
	return "", false
}
