package jsonwire

import (
	"iter"
	"slices"
	"strings"
)

// An Object is a JSON object whose members are set one by one. Setting or removing a
// member costs the same however many there are. Members stay in the order in which they
// are first set. The zero Object is empty.
type Object struct {
	members []member
	at      map[string]int // indexes of the members by name, if there are many
	gone    int            // number of removed members that are still in the list, while there is a map
}

// fewMembers is how many members an Object has before it takes a map to find them.
const fewMembers = 8

type member struct {
	name  string
	value Value
	gone  bool
}

// A Value is a JSON text, an [Object] or a list.
type Value struct {
	text   string // empty when the value is an Object or a list, or is not set yet
	object *Object
	list   *[]Value
}

// Value returns the value of a member, which is valid until a member is added. It
// adds the member if there is none.
func (o *Object) Value(name string) *Value {
	if i := o.index(name); i >= 0 {
		return &o.members[i].value
	}
	if o.at != nil {
		o.at[name] = len(o.members)
	} else if len(o.members) == fewMembers {
		o.at = map[string]int{name: fewMembers}
		for i := range o.members {
			o.at[o.members[i].name] = i
		}
	}
	o.members = append(o.members, member{name: name})
	return &o.members[len(o.members)-1].value
}

// index returns the index of a member, or -1.
func (o *Object) index(name string) int {
	if o.at == nil {
		return slices.IndexFunc(o.members, func(m member) bool { return m.name == name })
	}
	if i, ok := o.at[name]; ok {
		return i
	}
	return -1
}

// Has reports whether there is a member of that name.
func (o *Object) Has(name string) bool { return o.index(name) >= 0 }

// Remove removes a member, if there is one of that name.
func (o *Object) Remove(name string) {
	i := o.index(name)
	switch {
	case i < 0:
		return
	case o.at == nil:
		o.members = slices.Delete(o.members, i, i+1)
		return
	}
	delete(o.at, name)
	o.members[i] = member{gone: true}
	// Closing the gaps takes time for every member: wait until half of them are gone.
	if o.gone++; o.gone > len(o.members)/2 {
		o.members = slices.DeleteFunc(o.members, func(m member) bool { return m.gone })
		o.gone = 0
		for i := range o.members {
			o.at[o.members[i].name] = i
		}
	}
}

// Set sets a member to a JSON text.
func (o *Object) Set(name, text string) { o.Value(name).Set(text) }

// All yields the names of the members and their values as JSON texts.
func (o *Object) All() iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for i := range o.members {
			m := &o.members[i]
			if m.gone {
				continue
			}
			if !yield(m.name, m.value.Text()) {
				return
			}
		}
	}
}

// Set sets the value to a JSON text.
func (v *Value) Set(text string) { *v = Value{text: text} }

// SetNested sets a value that is not set yet to objects in one another, with the names of a
// path, which dots separate, and the text in the innermost one. It reports false, and sets
// nothing, if there is a value. As a text the objects take a fraction of the memory.
func (v *Value) SetNested(path, text string) bool {
	if v.text != "" || v.object != nil || v.list != nil {
		return false
	}
	var b []byte
	depth := 0
	for name := range strings.SplitSeq(path, ".") {
		b = append(AppendString(append(b, '{'), name), ':')
		depth++
	}
	b = append(append(b, text...), strings.Repeat("}", depth)...)
	v.text = string(b)
	return true
}

// IsObject reports whether the value is an object.
func (v *Value) IsObject() bool { return v.object != nil || IsObject(v.text) }

// IsObject reports whether a JSON text is an object. The text has no space in front.
func IsObject(text string) bool { return strings.HasPrefix(text, "{") }

// Open returns the value as an Object, through which its members can be set. A
// value that is not an object is replaced by an empty one.
func (v *Value) Open() *Object {
	if v.object == nil {
		v.object = &Object{}
		for name, text := range Members(v.text) { // yields nothing if v is not an object
			v.object.Set(name, text)
		}
		v.text, v.list = "", nil
	}
	return v.object
}

// Text returns the value as a JSON text.
func (v *Value) Text() string {
	if v.text != "" {
		return v.text
	}
	return string(v.append(nil))
}

func (v *Value) append(dst []byte) []byte {
	switch {
	case v.list != nil:
		return v.appendList(dst)
	case v.object == nil:
		return append(dst, v.text...)
	}
	dst = append(dst, '{')
	first := len(dst)
	for i := range v.object.members {
		m := &v.object.members[i]
		if m.gone {
			continue
		}
		if len(dst) > first {
			dst = append(dst, ',')
		}
		dst = m.value.append(append(AppendString(dst, m.name), ':'))
	}
	return append(dst, '}')
}
