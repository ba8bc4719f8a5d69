package multiagent

import (
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// What an event kept of its line.

// keptMembers are the members of the extra member of that text.
type keptMembers struct {
	text    string
	members []keptMember
	as      []spelling
	deep    bool // there are members of the payload
}

type keptMember struct{ name, raw string }

func (k *keptMembers) parse(text string) {
	k.text, k.members, k.as, k.deep = text, k.members[:0], k.as[:0], false
	for name, raw := range jsonwire.Members(text) {
		switch {
		case name == "/as" && raw[0] == '{':
			for field, as := range jsonwire.Members(raw) {
				if as = jsonwire.Text(as); as != "" {
					k.as = append(k.as, spelling{field, as})
				}
			}
		case name == "/made" && raw[0] == '[':
			for field := range jsonwire.Elements(raw) {
				if field[0] == '"' {
					k.as = append(k.as, spelling{jsonwire.Text(field), ""})
				}
			}
		default:
			k.members = append(k.members, keptMember{name, raw})
			k.deep = k.deep || strings.HasPrefix(name, "/payload/")
		}
	}
}

// spelledAs returns the name that a field had on the line, or "".
func (k *keptMembers) spelledAs(field string) string {
	for _, as := range k.as {
		if as.field == field && as.name != "" {
			return as.name
		}
	}
	return ""
}

// madeUp reports whether the line lacked a field.
func (e *Encoder) madeUp(field string) bool {
	if e.own {
		for _, as := range e.kept.as {
			if as.field == field && as.name == "" {
				return true
			}
		}
	}
	return false
}

// keptRaw returns what was kept under a name, and notes that it is used.
func (e *Encoder) keptRaw(name string) string {
	if e.own {
		for i, m := range e.kept.members {
			if m.name == name {
				e.used[i] = true
				return m.raw
			}
		}
	}
	return ""
}

// keeps reports whether something was kept under a name.
func (e *Encoder) keeps(name string) bool {
	return e.own && slices.ContainsFunc(e.kept.members, func(m keptMember) bool { return m.name == name })
}

// keptMember is keptRaw for a member of the object at e.place.
func (e *Encoder) keptMember(name string) string {
	for i, m := range e.kept.members {
		if rest, ok := cutPlace(m.name, e.place); ok && rest == jsonwire.Token(name) {
			e.used[i] = true
			return m.raw
		}
	}
	return ""
}

// keptUnder reports whether something was kept at a place or below it.
func (e *Encoder) keptUnder(place string) bool {
	if e.own && e.kept.deep {
		for _, m := range e.kept.members {
			if strings.HasPrefix(m.name, place) {
				return true
			}
		}
	}
	return false
}

// rest appends the members of the object at e.place that no field has.
func (e *Encoder) rest(dst []byte) []byte {
	for i, m := range e.kept.members {
		if e.used[i] {
			continue
		}
		name := m.name
		if len(e.place) == 0 && slices.Contains(envelopeNames[:], `"`+name+`":`) {
			continue // the event says something else now
		}
		if len(e.place) > 0 || strings.HasPrefix(name, "/") {
			token, ok := cutPlace(name, e.place)
			if !ok || strings.Contains(token, "/") {
				continue
			}
			name = jsonwire.Untoken(token)
		}
		e.used[i] = true
		dst = jsonwire.AppendString(head(dst, ""), name)
		dst = append(append(dst, ':'), m.raw...)
	}
	return dst
}

// cutPlace returns what follows a place and a slash.
func cutPlace(name string, place []byte) (string, bool) {
	if len(name) > len(place) && name[len(place)] == '/' && name[:len(place)] == string(place) {
		return name[len(place)+1:], true
	}
	return "", false
}
