package jsonwire

import (
	"slices"
	"strconv"
	"strings"
)

// At returns the value of a member, as Open().Value does. In a list a name that is a
// number stands for an element: see [Gap] for one that the list does not have. Another name
// in a list returns a value that is a part of nothing. The
// result is valid until a member or an element is added to v.
func (v *Value) At(name string) *Value {
	list := v.openList()
	if list == nil {
		return v.Open().Value(name)
	}
	if n, ok := Gap(len(*list), name); ok {
		for range n {
			*list = append(*list, Value{text: "null"})
		}
		*list = append(*list, Value{})
	}
	if element := v.Element(name); element != nil {
		return element
	}
	return &Value{}
}

// MaxGap is the maximum number of elements that fill a gap in front of a new one.
const MaxGap = 100

// Gap reports whether a name stands for a new element of a list, and returns how many nulls
// come between the list's last element and the new one.
func Gap(length int, name string) (n int, ok bool) {
	i, is := number(name)
	return i - length, is && i >= length && i-length <= MaxGap
}

// number returns the number that a name is in its only spelling.
func number(name string) (i int, ok bool) {
	i, err := strconv.Atoi(name)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == name
}

// Element returns the element of a list whose number the name is, or nil.
func (v *Value) Element(name string) *Value {
	list := v.openList()
	if i, ok := number(name); ok && list != nil && i < len(*list) {
		return &(*list)[i]
	}
	return nil
}

// Path returns a path, which is names joined by dots, without the names that are empty.
func Path(path string) string {
	if !strings.HasPrefix(path, ".") && !strings.HasSuffix(path, ".") && !strings.Contains(path, "..") {
		return path // as mostly
	}
	return strings.Join(strings.FieldsFunc(path, func(c rune) bool { return c == '.' }), ".")
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
