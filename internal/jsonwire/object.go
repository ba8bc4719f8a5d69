package jsonwire

import (
	"iter"
	"strings"
)

// An Object is a JSON object whose members are set one by one. Setting a member
// costs the same however many there are. Members stay in the order in which they
// are first set. The zero Object is empty.
type Object struct {
	names  []string
	values []*Value
	at     map[string]int
}

// A Value is a JSON text or an [Object].
type Value struct {
	text   string // empty when the value is an Object, or is not set yet
	object *Object
}

// Value returns the value of a member. It adds the member if there is none.
func (o *Object) Value(name string) *Value {
	if i, ok := o.at[name]; ok {
		return o.values[i]
	}
	if o.at == nil {
		o.at = map[string]int{}
	}
	o.at[name] = len(o.names)
	o.names, o.values = append(o.names, name), append(o.values, &Value{})
	return o.values[len(o.values)-1]
}

// Set sets a member to a JSON text.
func (o *Object) Set(name, text string) { o.Value(name).Set(text) }

// All yields the names of the members and their values as JSON texts.
func (o *Object) All() iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for i, name := range o.names {
			text := o.values[i].text
			if o.values[i].object != nil {
				text = string(o.values[i].append(nil))
			}
			if !yield(name, text) {
				return
			}
		}
	}
}

// Set sets the value to a JSON text.
func (v *Value) Set(text string) { *v = Value{text: text} }

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
		v.text = ""
	}
	return v.object
}

func (v *Value) append(dst []byte) []byte {
	if v.object == nil {
		return append(dst, v.text...)
	}
	dst = append(dst, '{')
	for i, name := range v.object.names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = v.object.values[i].append(append(AppendString(dst, name), ':'))
	}
	return append(dst, '}')
}
