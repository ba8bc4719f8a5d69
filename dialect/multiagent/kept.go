package multiagent

import (
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// keptMembers are the parsed members of an event's extra member "multiagent".
type keptMembers struct {
	text    string // of the extra member
	members []keptMember
	as      []spelling
	deep    bool // some members are of the payload
	*index       // nil if there are few members and spellings
}

type keptMember struct{ name, raw string }

// An index finds members and spellings without a search, because an event may have
// many objects, and the encoder looks for the members of each.
type index struct {
	named   map[string]int    // index of a member, by name
	inside  map[string][]int  // indices of members, by the pointer of their object
	spelled map[string]string // names on the line, by field
	made    map[string]bool   // fields that the line lacked
}

func (k *keptMembers) parse(text string) {
	k.text, k.members, k.as, k.deep, k.index = text, k.members[:0], k.as[:0], false, nil
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
	if len(k.members) > fewNames || len(k.as) > fewNames {
		k.index = k.indexed()
	}
}

func (k *keptMembers) indexed() *index {
	x := &index{
		named: make(map[string]int, len(k.members)), inside: map[string][]int{},
		spelled: map[string]string{}, made: make(map[string]bool, len(k.as)),
	}
	for i, m := range k.members {
		x.named[m.name] = i
		place := placeOf(m.name)
		x.inside[place] = append(x.inside[place], i)
	}
	for _, as := range k.as {
		if as.name == "" {
			x.made[as.field] = true
		} else if x.spelled[as.field] == "" {
			x.spelled[as.field] = as.name
		}
	}
	return x
}

// placeOf returns the pointer of the object that an extra member belongs to.
func placeOf(name string) string {
	if !strings.HasPrefix(name, "/") {
		return "" // the envelope
	}
	return name[:strings.LastIndexByte(name, '/')]
}

// find returns the index of the member of that name, or -1.
func (k *keptMembers) find(name string) int {
	if k.index != nil {
		if i, ok := k.named[name]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(k.members, func(m keptMember) bool { return m.name == name })
}

// spelledAs returns the name that a field had on the line, or "".
func (k *keptMembers) spelledAs(field string) string {
	if k.index != nil {
		return k.spelled[field]
	}
	for _, as := range k.as {
		if as.field == field && as.name != "" {
			return as.name
		}
	}
	return ""
}

// madeUp reports whether the line lacked a field.
func (e *Encoder) madeUp(field string) bool {
	if !e.own {
		return false
	}
	if e.kept.index != nil {
		return e.kept.made[field]
	}
	return slices.Contains(e.kept.as, spelling{field, ""})
}

// keptRaw returns the value of an extra member, or "", and marks the member as used.
func (e *Encoder) keptRaw(name string) string {
	if e.own {
		if i := e.kept.find(name); i >= 0 {
			e.used[i] = true
			return e.kept.members[i].raw
		}
	}
	return ""
}

// peek is keptRaw without marking the member as used.
func (e *Encoder) peek(name string) string {
	if e.own {
		if i := e.kept.find(name); i >= 0 {
			return e.kept.members[i].raw
		}
	}
	return ""
}

// keptMember is like keptRaw, for an extra member of the object at e.place.
func (e *Encoder) keptMember(name string) string {
	i := e.memberHere(jsonwire.Token(name))
	if i < 0 {
		return ""
	}
	e.used[i] = true
	return e.kept.members[i].raw
}

// memberHere returns the index of an extra member of the object at e.place, or -1.
func (e *Encoder) memberHere(token string) int {
	if e.kept.index != nil {
		mark := len(e.place)
		e.place = append(append(e.place, '/'), token...)
		i, ok := e.kept.named[string(e.place)]
		e.place = e.place[:mark]
		if !ok {
			return -1
		}
		return i
	}
	for i, m := range e.kept.members {
		if rest, ok := cutPlace(m.name, e.place); ok && rest == token {
			return i
		}
	}
	return -1
}

// keptUnder reports whether an extra member's name begins with place.
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

// rest appends the unused extra members of the object at e.place.
func (e *Encoder) rest(dst []byte) []byte {
	if e.kept.index != nil {
		for _, i := range e.kept.inside[string(e.place)] {
			dst = e.restMember(dst, i)
		}
		return dst
	}
	for i := range e.kept.members {
		dst = e.restMember(dst, i)
	}
	return dst
}

// restMember appends an extra member, if it is an unused one of the object at
// e.place.
func (e *Encoder) restMember(dst []byte, i int) []byte {
	if e.used[i] {
		return dst
	}
	m := &e.kept.members[i]
	name := m.name
	if len(e.place) == 0 && slices.Contains(envelopeNames[:], `"`+name+`":`) {
		return dst // a field of the event has the member now
	}
	if len(e.place) > 0 || strings.HasPrefix(name, "/") {
		token, ok := cutPlace(name, e.place)
		if !ok || strings.Contains(token, "/") {
			return dst
		}
		name = jsonwire.Untoken(token)
	}
	e.used[i] = true
	dst = jsonwire.AppendString(head(dst, ""), name)
	return append(append(dst, ':'), m.raw...)
}

// cutPlace removes a place and a slash from the beginning of name.
func cutPlace(name string, place []byte) (string, bool) {
	if len(name) > len(place) && name[len(place)] == '/' && name[:len(place)] == string(place) {
		return name[len(place)+1:], true
	}
	return "", false
}
