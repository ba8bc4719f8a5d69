package jsonwire

import (
	"iter"
	"strings"
)

// An Object is a JSON object whose members are written one by one. It is spread out,
// so that each costs the same, however many there are. Members stay in the order in
// which they were first written. The zero Object is empty.
type Object struct {
	names  []string
	values []*Value
	at     map[string]int
}

// A Value is text, or an object that was opened.
type Value struct {
	text   string // empty when it is an object, or has not been written yet
	object *Object
}

// Value returns the value of a member, which is added if need be.
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

// All yields the members as text.
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

// IsObject reports whether a JSON text without space around it is an object.
func IsObject(text string) bool { return strings.HasPrefix(text, "{") }

// Open returns the object that the value is. Whatever else it is, an empty object
// takes its place.
func (v *Value) Open() *Object {
	if v.object == nil {
		v.object = &Object{}
		for name, text := range Members(v.text) { // none if it is no object
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
