package dialect

import (
	"fmt"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// UnknownKind returns the kind for a line whose type the dialect does not have.
// It is the type itself. The dialect's name and a colon go before a type that is
// empty, that the vocabulary uses for something else, or that begins with this
// prefix itself.
func UnknownKind(name Name, typ string) agentevents.Kind {
	k := agentevents.Kind(typ)
	prefix := string(name) + ":"
	if _, taken := k.Info(); taken || typ == "" || strings.HasPrefix(typ, prefix) {
		return agentevents.Kind(prefix) + k
	}
	return k
}

// Unknowns collects the extra members of a line. The zero Unknowns is empty.
type Unknowns struct {
	buf   []byte
	names []string
	more  map[string]bool // the names, once there are many
}

const fewNames = 16

// maxBuffer is the size of the largest buffer that an Unknowns keeps for the next line.
const maxBuffer = 16 << 10

// Reset empties u.
func (u *Unknowns) Reset() {
	if cap(u.buf) > maxBuffer || cap(u.names) > maxBuffer/8 {
		*u = Unknowns{}
	}
	clear(u.names) // they are parts of the line
	u.buf, u.names, u.more = u.buf[:0], u.names[:0], nil
}

// Add adds a member; raw is valid JSON. It reports false, and adds nothing, when
// the name is there already.
func (u *Unknowns) Add(name, raw string) bool {
	if u.more != nil {
		if u.more[name] {
			return false
		}
		u.more[name] = true
	} else {
		for _, n := range u.names {
			if n == name {
				return false
			}
		}
		if u.names = append(u.names, name); len(u.names) > fewNames {
			u.more = make(map[string]bool, 4*fewNames)
			for _, n := range u.names {
				u.more[n] = true
			}
		}
	}
	if len(u.buf) > 0 {
		u.buf = append(u.buf, ',')
	}
	u.buf = jsonwire.AppendString(u.buf, name)
	u.buf = append(append(u.buf, ':'), raw...)
	return true
}

// Object returns the collected members as one JSON object, or "" without members.
func (u *Unknowns) Object() agentevents.JSON {
	if len(u.buf) == 0 {
		return ""
	}
	return agentevents.JSON("{" + string(u.buf) + "}")
}

// Keep stores the collected members in the event, as its extra member with the
// dialect's name.
func (u *Unknowns) Keep(ev *agentevents.Event, name Name) error {
	if len(u.buf) == 0 {
		return nil
	}
	return ev.SetExtra(string(name), agentevents.JSON("{"+string(u.buf)+"}"))
}

// Unknown returns one of the members that [Unknowns.Keep] stored, or "".
func Unknown(ev *agentevents.Event, name Name, member string) agentevents.JSON {
	for n, raw := range jsonwire.Members(string(ev.Extra(string(name)))) {
		if n == member {
			return agentevents.JSON(raw)
		}
	}
	return ""
}

// DropExtras counts the extra members that are lost: all of the event except the dialect's own, and
// all inside the payload.
func (l *Losses) DropExtras(ev *agentevents.Event, name Name) {
	for n := range ev.Extras() {
		if n != string(name) {
			l.Add(ev, Dropped, "/"+jsonwire.Token(n), "")
		}
	}
	if ev.PayloadExtra() {
		l.Add(ev, Dropped, "/payload", "members that no field has")
	}
}

// Refuse counts an event that the document has no counterpart for, and returns
// the error.
func (l *Losses) Refuse(ev *agentevents.Event) error {
	l.Add(ev, Dropped, "", "no counterpart")
	return fmt.Errorf("%w: %s", ErrNoCounterpart, jsonwire.BriefName(string(ev.Kind())))
}
