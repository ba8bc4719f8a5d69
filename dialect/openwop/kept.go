package openwop

import (
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// unknowns collects the extra members of a line. Unlike dialect.Unknowns it also
// returns them, for the rules.
type unknowns struct {
	all   dialect.Unknowns
	pairs []struct{ key, raw string }
}

func (u *unknowns) Reset() {
	u.all.Reset()
	u.pairs = u.pairs[:0]
}

func (u *unknowns) Add(key, raw string) bool {
	if !u.all.Add(key, raw) {
		return false
	}
	u.pairs = append(u.pairs, struct{ key, raw string }{key, raw})
	return true
}

// Get returns the value of a member, or "".
func (u *unknowns) Get(key string) string {
	for _, p := range u.pairs {
		if p.key == key {
			return p.raw
		}
	}
	return ""
}

// Keep stores the members in the event.
func (u *unknowns) Keep(ev *agentevents.Event) error {
	if len(u.pairs) == 0 {
		return nil
	}
	return u.all.Keep(ev, Name)
}

// Members of the event's extra member that are not extra members of the line. See
// the package comment.
const (
	keptSpelled = "~spelled"
	keptAbsent  = "~absent"
	keptType    = "~type"
	keptProfile = "~profile"
)

// envelopeKey returns the name under which an extra member of the envelope is
// kept.
func envelopeKey(name string) string {
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") {
		return "/" + jsonwire.Token(name)
	}
	return name
}

// memberOf is the inverse of envelopeKey. It reports false for any other key.
func memberOf(key string) (string, bool) {
	switch {
	case strings.HasPrefix(key, "/~0"), strings.HasPrefix(key, "/~1"):
		return jsonwire.Untoken(key[1:]), true
	case strings.HasPrefix(key, "/"), strings.HasPrefix(key, "~"):
		return "", false
	}
	return key, true
}

// appendPointer appends the pointer of a member to a list. member has quotes and
// colon, as in the tables of names.
func appendPointer(list []byte, at, member string) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	list = append(list, '"')
	list = append(list, at...)
	list = append(list, '/')
	return append(list, member[1:len(member)-1]...) // with the closing quote
}

// kept is the content of the event's extra member with the dialect's name.
type kept struct {
	raw              string // the object; empty if there is none
	spelled, absent  set    // members of the payload
	envSpelled       set    // members of the envelope
	envAbsent        set
	errWord, errCode bool // the error has "error", or an empty code
	noMessage        bool // the error has no message
	noCode           bool // the error has no code
	typ              string
	profile          string // the profile that the line was read under, if it breaks that profile
	done             []bool // by position: members that were written or listed
	payload          bool   // there are extra members of the payload
}

// same reports whether the event's line was read under profile p and broke it.
// Such an event is written as it was read.
func (k *kept) same(p Profile) bool { return k.profile != "" && k.profile == p.String() }

func (k *kept) read(ev *agentevents.Event) {
	raw := string(ev.Extra(string(Name)))
	if raw == "" && k.raw == "" {
		return // and so is k
	}
	*k = kept{raw: raw, done: k.done[:0]}
	if k.raw == "" {
		return
	}
	if !strings.HasPrefix(k.raw, "{") {
		k.raw = ""
		return
	}
	for name, value := range jsonwire.Members(k.raw) {
		k.done = append(k.done, false)
		k.payload = k.payload || strings.HasPrefix(name, "/payload/")
		switch name {
		case keptType:
			k.typ = jsonwire.Text(value)
		case keptProfile:
			k.profile = jsonwire.Text(value)
		case keptSpelled:
			k.pointers(value, &k.spelled, &k.envSpelled)
		case keptAbsent:
			k.pointers(value, &k.absent, &k.envAbsent)
		}
	}
}

func (k *kept) pointers(list string, payload, envelope *set) {
	for raw := range jsonwire.Elements(list) {
		p := jsonwire.Text(raw)
		switch p {
		case "/payload/error/error":
			k.errWord = true
		case "/payload/error/code":
			if payload == &k.spelled {
				k.errCode = true
			} else {
				k.noCode = true
			}
		case "/payload/error/message":
			k.noMessage = true
		}
		if name, ok := strings.CutPrefix(p, "/payload/"); ok {
			*payload |= 1 << numberOf(memberNames[:], name)
		} else {
			*envelope |= 1 << numberOf(envelopeNames[:], strings.TrimPrefix(p, "/"))
		}
	}
}

// numberOf returns the number of a name in a table, or 0.
func numberOf(names []string, name string) int {
	for i, lit := range names {
		if lit[1:len(lit)-len(`":`)] == name {
			return i + 1
		}
	}
	return 0
}

// get returns the value of an extra member, or "".
func (k *kept) get(key string) string {
	for name, value := range jsonwire.Members(k.raw) {
		if name == key {
			return value
		}
	}
	return ""
}

// take returns the value of an extra member, or "", and marks it as written or
// listed.
func (k *kept) take(key string) string {
	i := 0
	for name, value := range jsonwire.Members(k.raw) {
		if name == key {
			k.done[i] = true
			return value
		}
		i++
	}
	return ""
}

// payloadHasNode reports whether the payload of the line names the node.
func (w *writer) payloadHasNode() bool {
	if u, ok := w.ev.Payload.(*agentevents.Unknown); ok {
		return memberText(string(u.Raw), "nodeId") == w.nodeID
	}
	return variants[w.v].members.has(mNodeID)
}

// isObject reports whether a JSON value is an object.
func isObject(raw string) bool { return strings.HasPrefix(strings.TrimLeft(raw, " \t\r\n"), "{") }
