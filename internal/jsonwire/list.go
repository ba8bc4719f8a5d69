package jsonwire

import (
	"slices"
	"strconv"
)

// At returns the value of a member, as Open().Value does. In a list a name that is a
// number below its length is that of an element, and the length itself adds one. The
// result is valid until a member or an element is added to v.
func (v *Value) At(name string) *Value {
	if list := v.openList(); list != nil && name == strconv.Itoa(len(*list)) {
		*list = append(*list, Value{})
	}
	if element := v.Element(name); element != nil {
		return element
	}
	return v.Open().Value(name)
}

// Element returns the element of a list whose number the name is, or nil.
func (v *Value) Element(name string) *Value {
	i, err := strconv.Atoi(name)
	if list := v.openList(); err == nil && list != nil && i >= 0 && i < len(*list) && strconv.Itoa(i) == name {
		return &(*list)[i]
	}
	return nil
}

// openList returns the elements of a list, or nil for another value.
func (v *Value) openList() *[]Value {
	if v.list == nil && len(v.text) > 0 && v.text[0] == '[' {
		v.list = &[]Value{}
		for text := range Elements(v.text) {
			*v.list = append(*v.list, Value{text: text})
		}
		v.text = ""
	}
	return v.list
}

func (v *Value) appendList(dst []byte) []byte {
	dst = append(dst, '[')
	for i := range *v.list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = (*v.list)[i].append(dst)
	}
	return append(dst, ']')
}

// Insert inserts an element into a list, before the one of that number or at the end.
func (v *Value) Insert(i int, element Value) {
	list := v.openList()
	*list = slices.Insert(*list, i, element)
}

// Delete removes and returns an element of a list.
func (v *Value) Delete(i int) Value {
	list := v.openList()
	was := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return was
}

// List returns the length of the value if it is a list.
func (v *Value) List() (length int, ok bool) {
	list := v.openList()
	if list == nil {
		return 0, false
	}
	return len(*list), true
}
