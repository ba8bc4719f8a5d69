package agui

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// maxMade is the highest number of bytes that the operations of one JSON Patch may take from the
// state, and that copies may add to the state of a thread. No native line has a longer event, and
// a few copies of copies fill the memory.
const maxMade = agentevents.DefaultMaxLine

// A delta is a JSON Patch, as patches of the native form.
type delta struct {
	patches []agentevents.StatePatched
	// plain: the JSON Patch alone gives the patches, without a value from the state.
	plain bool
	// fault is the reason for which there are no patches, at an operation. refused: a front end
	// with any state that fits the lines so far refuses the JSON Patch.
	at, fault string
	refused   bool
	names     []string // members of the state that the operations name
}

// A patcher applies the operations of a JSON Patch to a state, and takes them back.
type patcher struct {
	*delta
	s      *state
	undo   []func()
	whole  []place         // whose values get a patch after the last operation
	within map[string]bool // their pointers
	made   int             // bytes
}

// A place is a value that an operation names: a member of an object, or an element of a list.
type place struct {
	names  []string
	object *jsonwire.Object // or else
	list   *jsonwire.Value
	index  int  // in the list
	lists  bool // a list is on the way
	there  bool
}

// value returns the value of a place that is there.
func (p *place) value() *jsonwire.Value {
	if p.list != nil {
		return p.list.Element(strconv.Itoa(p.index))
	}
	return p.object.Value(p.names[len(p.names)-1])
}

// delta returns the patches of a JSON Patch (RFC 6902) for the state. It leaves the state as it is.
func (s *state) delta(raw string) delta {
	d := delta{plain: true}
	p := patcher{delta: &d, s: s, within: map[string]bool{}}
	i := 0
	for op := range jsonwire.Elements(raw) {
		if d.at = "/" + strconv.Itoa(i); !p.operation(op) {
			break
		}
		i++
	}
	if d.fault == "" {
		p.settle()
	}
	for _, undo := range slices.Backward(p.undo) {
		undo()
	}
	if d.fault != "" {
		d.patches = nil
	}
	return d
}

// refuse notes the reason for which the JSON Patch has no patches. certain: a front end refuses it,
// too.
func (p *patcher) refuse(certain bool, fault string) bool {
	p.fault, p.refused = fault, certain
	return false
}

// operation applies one operation. It reports false for one without a patch.
func (p *patcher) operation(raw string) bool {
	member := func(name string) string { return jsonwire.Member(raw, name) }
	names, ok := namesOf(member("path"))
	if !ok {
		return p.refuse(true, "the path is not a JSON pointer")
	}
	if len(names) > 0 {
		p.names = append(p.names, names[0])
	}
	word, value := jsonwire.Text(member("op")), member("value")
	switch word {
	case "add", "replace", "test":
		if value == "" {
			return p.refuse(true, "the value is missing")
		}
	case "move", "copy":
		p.plain = false
		from, ok := namesOf(member("from"))
		if !ok {
			return p.refuse(true, "from is not a JSON pointer")
		}
		if len(from) > 0 {
			p.names = append(p.names, from[0])
		}
		inside := len(names) > len(from) && slices.Equal(names[:len(from)], from)
		if word == "move" && inside {
			return p.refuse(true, "a value cannot move into itself")
		}
		if value, ok = p.read(from); !ok {
			return false
		}
		if word == "copy" {
			if p.s.copied += len(value); p.s.copied > maxMade {
				return p.refuse(false, "the copies are too long")
			}
		} else if slices.Equal(from, names) {
			return true
		} else if !p.remove(from) {
			return false
		}
		word = "add"
	case "remove":
	default:
		return p.refuse(true, "the operation is not one of "+strings.Join(operations, ", "))
	}
	switch word {
	case "test":
		p.plain = false
		is, ok := p.read(names)
		if ok && p.s.full && !sameJSON(is, value) {
			return p.refuse(true, "the test fails")
		}
		return ok
	case "remove":
		return p.remove(names)
	}
	return p.set(names, value, word == "add")
}

// namesOf returns the names of a JSON pointer, which is a JSON text.
func namesOf(raw string) (names []string, ok bool) {
	pointer := jsonwire.Text(raw)
	if pointer == "" || pointer[0] != '/' {
		return nil, raw == `""`
	}
	names = strings.Split(pointer[1:], "/")
	for i, token := range names {
		names[i] = jsonwire.Untoken(token)
	}
	return names, true
}

// find returns a place. It reports false, and records a fault, if the value around the place does
// not exist; open is true if the front end may have that value.
func (p *patcher) find(names []string) (at place, open, ok bool) {
	at = place{names: names, object: &p.s.Object}
	for i, name := range names {
		if i > 0 {
			if !at.there {
				open = !p.s.whole && at.list == nil
				return at, open, p.refuse(!open, "the value around the place is not there")
			}
			at.names = names[:i]
			v := at.value()
			at.names = names
			if at.object, at.list = nil, nil; v.IsObject() {
				at.object = v.Open()
			} else if _, list := v.List(); list {
				list := *v // it shares the elements, and stays where it is
				at.list, at.lists = &list, true
			} else {
				return at, false, p.refuse(true, "the value around the place is neither an object nor a list")
			}
		}
		if at.list == nil {
			at.there = at.object.Has(name)
			continue
		}
		length, _ := at.list.List()
		index, err := strconv.Atoi(name)
		if name == "-" {
			index, err, name = length, nil, strconv.Itoa(length)
		}
		if err != nil || strconv.Itoa(index) != name || index < 0 || index > length {
			return at, false, p.refuse(true, "the list has no such element")
		}
		at.index, at.there = index, index < length
	}
	return at, !p.s.whole && at.list == nil, true
}

// read returns the value of a place.
func (p *patcher) read(names []string) (text string, ok bool) {
	if len(names) == 0 {
		text, ok = p.s.text(), p.s.whole || p.refuse(false, "the state is not known")
	} else {
		at, open, found := p.find(names)
		if !found {
			return "", false
		}
		if !at.there {
			return "", p.refuse(!open, "the value is not there")
		}
		text, ok = at.value().Text(), true
	}
	return text, ok && p.takes(len(text))
}

// takes counts bytes of the state.
func (p *patcher) takes(n int) bool {
	if p.made += n; p.made > maxMade {
		return p.refuse(false, "the values are too long")
	}
	return true
}

// remove removes a value.
func (p *patcher) remove(names []string) bool {
	if len(names) == 0 {
		return p.all("", agentevents.PatchRemove)
	}
	at, open, ok := p.find(names)
	switch {
	case !ok || !at.there:
		return p.blind(names, open, at.lists, agentevents.PatchRemove, "")
	case at.list != nil:
		was := at.list.Delete(at.index)
		p.undo = append(p.undo, func() { at.list.Insert(at.index, was) })
		return p.say(at, true, agentevents.PatchRemove, "")
	}
	p.unset(at.object, names[len(names)-1])
	return p.say(at, false, agentevents.PatchRemove, "")
}

// put sets a member to a text.
func (p *patcher) put(object *jsonwire.Object, name, text string) {
	p.remember(object, name)
	object.Set(name, text)
}

// unset removes a member.
func (p *patcher) unset(object *jsonwire.Object, name string) {
	p.remember(object, name)
	object.Remove(name)
}

// remember lets a member be restored.
func (p *patcher) remember(object *jsonwire.Object, name string) {
	if !object.Has(name) {
		p.undo = append(p.undo, func() { object.Remove(name) })
		return
	}
	was := *object.Value(name)
	p.undo = append(p.undo, func() { *object.Value(name) = was })
}

// set sets or adds a value.
func (p *patcher) set(names []string, value string, adds bool) bool {
	if len(names) == 0 {
		return p.all(value, agentevents.PatchSet)
	}
	at, open, ok := p.find(names)
	if !ok || !adds && !at.there {
		return p.blind(names, open, at.lists, agentevents.PatchSet, value)
	}
	text := p.s.kept(value)
	length := 0
	if at.list != nil {
		length, _ = at.list.List()
	}
	switch {
	case at.list == nil:
		p.put(at.object, names[len(names)-1], text)
		return p.say(at, false, agentevents.PatchSet, value)
	case adds:
		var v jsonwire.Value
		v.Set(text)
		at.list.Insert(at.index, v)
		p.undo = append(p.undo, func() { at.list.Delete(at.index) })
	default:
		v := at.value()
		was := *v
		p.undo = append(p.undo, func() { *at.value() = was })
		v.Set(text)
	}
	return p.say(at, adds && at.index < length, agentevents.PatchSet, value)
}

// all sets or removes the whole state.
func (p *patcher) all(value string, op agentevents.PatchOp) bool {
	if value != "" && value != "null" && !jsonwire.IsObject(value) {
		return p.refuse(false, "the state is an object")
	}
	was := *p.s
	p.undo = append(p.undo, func() { *p.s = was })
	p.s.set(value)
	p.whole, p.patches = nil, append(p.patches, agentevents.StatePatched{Op: op, Value: agentevents.JSON(value)})
	clear(p.within)
	return true
}

// blind adds the patch of an operation on a place that lines have not set, but that a front end may
// have, if its path names members only.
func (p *patcher) blind(names []string, open, lists bool, op agentevents.PatchOp, value string) bool {
	fault := p.fault
	if p.fault == "" {
		fault = "the value is not there"
	}
	if !open {
		return p.refuse(true, fault)
	}
	member := func(name string) bool { _, err := strconv.Atoi(name); return err != nil && name != "-" }
	if lists || sayable(names) < len(names) ||
		slices.ContainsFunc(names, func(name string) bool { return !member(name) }) {
		return p.refuse(false, "the state there is not known")
	}
	p.fault, p.refused = "", false
	object := &p.s.Object
	for i, name := range names {
		if object.Has(name) && object.Value(name).IsObject() && i < len(names)-1 {
			object = object.Value(name).Open()
			continue
		}
		if op == agentevents.PatchSet {
			p.put(object, name, within(names[i+1:], p.s.kept(value)))
		}
		break
	}
	return p.say(place{names: names}, false, op, value)
}

// maxNames is the highest number of names in a path.
const maxNames = 100

// sayable returns the number of names at the beginning that a native path can have.
func sayable(names []string) int {
	i := slices.IndexFunc(names, func(name string) bool { return name == "" || strings.Contains(name, ".") })
	if i < 0 {
		i = len(names)
	}
	return min(i, maxNames)
}

// say adds the patch of an operation that has changed a place. It sets the whole list if elements
// have new numbers now (shifts). It sets the whole member of the state if events of the run have
// not set it, and the whole value of a name that a native path cannot have.
func (p *patcher) say(at place, shifts bool, op agentevents.PatchOp, value string) bool {
	names := at.names
	if at.list != nil {
		names = append(slices.Clone(names[:len(names)-1]), strconv.Itoa(at.index))
	}
	if len(p.within) > 0 {
		pointer := ""
		for i, name := range names {
			pointer += "/" + jsonwire.Token(name)
			gone := i == len(names)-1 && !shifts && op == agentevents.PatchRemove
			if p.within[pointer] && !gone {
				return true
			}
		}
	}
	last, cut, fit := len(names)-1, len(names), sayable(names)
	if shifts {
		cut = last
	}
	if p.s.untold[names[0]] && (at.lists || shifts) {
		cut = 1
	}
	switch {
	case fit < cut && fit == last && cut > last && op == agentevents.PatchSet: // a merge has the name
		p.patches = append(p.patches,
			agentevents.StatePatched{Op: agentevents.PatchMerge, Path: strings.Join(names[:last], "."),
				Value: agentevents.JSON(within(names[last:], value))})
		return true
	case fit < cut && fit == last && op == agentevents.PatchRemove:
		cut = fit
	case fit < cut:
		cut = fit + 1
	}
	if cut > last && fit > last {
		p.patches = append(p.patches,
			agentevents.StatePatched{Op: op, Path: strings.Join(names, "."), Value: agentevents.JSON(value)})
		return true
	}
	p.plain = false
	if cut == 0 && !p.s.whole {
		return p.refuse(false, "the state is not known")
	}
	pointer := ""
	for _, name := range names[:cut] {
		pointer += "/" + jsonwire.Token(name)
	}
	p.within[pointer] = true
	p.whole = append(p.whole, place{names: names[:cut]})
	return true
}

// settle adds the patches of values that stand for several operations, as the values are now.
func (p *patcher) settle() {
	for _, at := range p.whole {
		patch := agentevents.StatePatched{Op: agentevents.PatchSet, Path: strings.Join(at.names, ".")}
		text := ""
		if len(at.names) == 0 {
			text = p.s.text()
		} else {
			found, _, ok := p.find(at.names)
			if !ok || !found.there { // a later operation has removed it
				p.fault, p.refused = "", false
				continue
			}
			text = found.value().Text()
		}
		if !p.takes(len(text)) {
			return
		}
		if fit := sayable(at.names); fit < len(at.names) {
			patch.Op, patch.Path, text = agentevents.PatchMerge, strings.Join(at.names[:fit], "."), within(at.names[fit:], text)
		}
		patch.Value = agentevents.JSON(text)
		p.patches = append(p.patches, patch)
	}
}

// sameJSON reports whether two JSON texts have the same value, as RFC 6902 compares it.
func sameJSON(a, b string) bool {
	var x, y any
	return a == b || json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil &&
		reflect.DeepEqual(x, y)
}
