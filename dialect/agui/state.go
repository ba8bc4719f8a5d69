package agui

import (
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A state is a front end's state. A JSON Patch must name places that are there, and a
// state.patched makes those that it needs. An encoder has the shape only: the members of objects
// and the lengths of lists. All other values are 0.
type state struct {
	jsonwire.Object
	full   bool            // it has the values
	whole  bool            // lines have told all of it: a front end has no more members
	run    string          // that changes it
	untold map[string]bool // members that no event of the run has whole
	copied int             // bytes of values that copies have added
}

// kept returns the part of a value that the state keeps.
func (s *state) kept(raw string) string {
	if s.full {
		return strings.Clone(raw)
	}
	return shapeOf(raw)
}

// text returns the whole state.
func (s *state) text() string {
	text := []byte{'{'}
	for name, raw := range s.All() {
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(jsonwire.AppendString(text, name), ':'), raw...)
	}
	return string(append(text, '}'))
}

// tell records that a run changes the state. Its events have set none of the present members yet.
func (s *state) tell(run string) {
	s.run, s.untold = strings.Clone(run), nil
	for name := range s.All() {
		if s.untold == nil {
			s.untold = map[string]bool{}
		}
		s.untold[name] = true
	}
}

// forget forgets members, because it is not known how a line has changed them.
func (s *state) forget(names []string) {
	for _, name := range names {
		s.Remove(name)
	}
}

// patch returns a state.patched as a JSON Patch, which has no operation if the event changes
// nothing.
func (s *state) patch(p *agentevents.StatePatched) string {
	value, _ := jsonwire.Compact(string(p.Value))
	if value == "" {
		value = "null"
	}
	path := jsonwire.Path(p.Path)
	if path == "" {
		if p.Op == agentevents.PatchMerge {
			return setAll("", value)
		}
		return `[{"op":"replace","path":"","value":{}}]` // a set of the whole has a line of its own
	}
	pointer, names := "", strings.Split(path, ".")
	object, at := &s.Object, (*jsonwire.Value)(nil) // at is nil for the whole state
	for i, name := range names {
		here := pointer + "/" + jsonwire.Token(name)
		length, list := 0, false
		if at != nil {
			length, list = at.List()
			object = nil
			if at.IsObject() {
				object = at.Open()
			}
		}
		var next *jsonwire.Value
		switch {
		case object != nil && object.Has(name):
			next = object.Value(name)
		case list:
			next = at.Element(name)
		}
		last := i == len(names)-1
		switch {
		case next != nil && !last:
			pointer, at = here, next
		case p.Op == agentevents.PatchRemove && (next == nil || list):
			return "[]"
		case p.Op == agentevents.PatchRemove:
			return `[{"op":"remove","path":` + jsonwire.Quote(here) + `}]`
		case next != nil && p.Op == agentevents.PatchMerge && next.IsObject() && jsonwire.IsObject(value):
			return setAll(here, value)
		case next != nil:
			return `[` + setting(here, value, true) + `]`
		case object != nil:
			return `[` + setting(here, within(names[i+1:], value), false) + `]`
		case list:
			return adding(pointer, length, name, within(names[i+1:], value))
		default: // the value gives place to an object
			return `[{"op":"replace","path":` + jsonwire.Quote(pointer) + `,"value":` + within(names[i:], value) + `}]`
		}
	}
	return "[]"
}

// adding returns the JSON Patch that adds an element to a list, with nulls up to it.
func adding(pointer string, length int, name, value string) string {
	gap, ok := jsonwire.Gap(length, name)
	if !ok {
		return "[]"
	}
	ops := []byte{'['}
	for i := range gap {
		ops = append(append(ops, setting(pointer+"/"+strconv.Itoa(length+i), "null", false)...), ',')
	}
	return string(append(append(ops, setting(pointer+"/"+name, value, false)...), ']'))
}

// setting returns the operation that sets a place. An add replaces a member, and in a list it
// would insert an element.
func setting(pointer, value string, replaces bool) string {
	word := "add"
	if _, err := strconv.Atoi(pointer[strings.LastIndexByte(pointer, '/')+1:]); err == nil && replaces {
		word = "replace"
	}
	return `{"op":"` + word + `","path":` + jsonwire.Quote(pointer) + `,"value":` + value + `}`
}

// setAll returns the JSON Patch that sets the members of an object.
func setAll(pointer, value string) string {
	ops := []byte{'['}
	for name, raw := range jsonwire.Members(value) {
		if len(ops) > 1 {
			ops = append(ops, ',')
		}
		ops = append(jsonwire.AppendString(append(ops, `{"op":"add","path":`...), pointer+"/"+jsonwire.Token(name)),
			`,"value":`...)
		ops = append(append(ops, raw...), '}')
	}
	return string(append(ops, ']'))
}

// within returns an object that has a value at a path.
func within(names []string, value string) string {
	var object []byte
	for _, name := range names {
		object = append(jsonwire.AppendString(append(object, '{'), name), ':')
	}
	return string(object) + value + strings.Repeat("}", len(names))
}

// note applies an event of a run to the state.
func (s *state) note(run string, p agentevents.Payload) {
	if run != s.run {
		s.tell(run)
	}
	switch p := p.(type) {
	case *agentevents.RunStarted:
		if raw := jsonwire.Member(string(p.Inputs), "state"); jsonwire.IsObject(raw) && !otherInput(string(p.Inputs)) {
			s.set(raw)
			s.tell(run)
		}
		s.merge(stateOf(p))
	case *agentevents.StatePatched:
		s.apply(p)
	}
}

// apply applies a patch as the fold does.
func (s *state) apply(p *agentevents.StatePatched) {
	value, path := strings.TrimLeft(string(p.Value), " \t\r\n"), jsonwire.Path(p.Path)
	switch {
	case path == "" && p.Op == agentevents.PatchMerge:
		s.merge(value)
		return
	case path == "" && p.Op == agentevents.PatchRemove:
		s.set("")
		return
	case path == "":
		s.set(value)
		return
	}
	if p.Op != agentevents.PatchMerge {
		delete(s.untold, path)
	}
	names := strings.Split(strings.Clone(path), ".")
	object, last := &s.Object, names[len(names)-1]
	if p.Op == agentevents.PatchRemove {
		for i := 0; i < len(names)-1; i++ {
			if !object.Has(names[i]) {
				return
			}
			at := object.Value(names[i])
			for next := at.Element(names[i+1]); next != nil && i < len(names)-2; next = at.Element(names[i+1]) {
				at = next
				i++
			}
			if !at.IsObject() {
				return
			}
			object = at.Open()
		}
		object.Remove(last)
		return
	}
	at := object.Value(names[0])
	for _, name := range names[1:] {
		at = at.At(name)
	}
	if p.Op == agentevents.PatchMerge && at.IsObject() && jsonwire.IsObject(value) {
		s.mergeInto(at.Open(), value)
		return
	}
	at.Set(s.kept(value))
}

// set sets the whole state.
func (s *state) set(value string) {
	s.Object, s.whole, s.untold = jsonwire.Object{}, true, nil
	s.merge(value)
}

func (s *state) merge(value string) {
	for name := range jsonwire.Members(value) {
		delete(s.untold, name)
	}
	s.mergeInto(&s.Object, value)
}

func (s *state) mergeInto(object *jsonwire.Object, value string) {
	for name, raw := range jsonwire.Members(value) {
		object.Set(strings.Clone(name), s.kept(raw))
	}
}

// stateOf returns the first state of a run, from its definition: an object, or "".
func stateOf(p *agentevents.RunStarted) string {
	raw := jsonwire.Member(string(p.Definition), "state")
	if compact, err := jsonwire.Compact(raw); err == nil && jsonwire.IsObject(compact) && compact != "{}" {
		return compact
	}
	return ""
}

// shapeOf returns a JSON text with 0 for each value that is not an object or a list.
func shapeOf(raw string) string {
	var shape, open []byte
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			shape, open = append(shape, c), append(open, c)
		case '}', ']':
			shape, open = append(shape, c), open[:max(0, len(open)-1)]
		case ',', ':':
			shape = append(shape, c)
		case '"':
			from := i
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			if n := len(shape); len(open) > 0 && open[len(open)-1] == '{' && shape[n-1] != ':' {
				shape = append(shape, raw[from:min(i+1, len(raw))]...)
			} else {
				shape = append(shape, '0')
			}
		default:
			for i+1 < len(raw) && !strings.ContainsRune(" \t\r\n,]}", rune(raw[i+1])) {
				i++
			}
			shape = append(shape, '0')
		}
	}
	return string(shape)
}
