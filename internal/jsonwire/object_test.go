package jsonwire

import (
	"maps"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestObject(t *testing.T) {
	var o Object
	o.Set("a", `{"x":{"y":1},"z":[1]}`)
	o.Set("b", `"text"`)
	o.Value("a").Open().Value("x").Open().Set("new", `null`)
	o.Value("b").Open().Set("q", `2`) // an object takes the place of the text
	o.Value("c").Open()
	o.Value("a").Open().Set("z", `{"k":0}`)
	require.Equal(t, map[string]string{"a": `{"x":{"y":1,"new":null},"z":{"k":0}}`, "b": `{"q":2}`, "c": `{}`}, maps.Collect(o.All()))
	require.True(t, o.Value("a").IsObject())
	require.True(t, o.Value("a").Open().Value("z").IsObject())
	require.False(t, o.Value("d").IsObject())
	o.Value("a").Set(`1`)
	require.False(t, o.Value("a").IsObject())
	for range o.All() {
		break
	}
}

func TestObjectOfManyMembers(t *testing.T) {
	var o Object
	var want []string
	for round := range 2 { // the second round sets the members again
		for i := range 3 * fewMembers {
			name := string(rune('a' + i))
			o.Set(name, `"old"`)
			o.Set(name, strconv.Itoa(round*100+i))
			if round == 0 {
				want = append(want, name)
			}
		}
	}
	var names []string
	for name, text := range o.All() {
		require.Equal(t, strconv.Itoa(100+len(names)), text)
		names = append(names, name)
	}
	require.Equal(t, want, names)

	// A member that was removed and is set again stands at the end.
	for i := range 3 * fewMembers {
		if name := string(rune('a' + i)); i%3 != 0 {
			o.Remove(name)
			o.Remove(name)
			require.False(t, o.Has(name))
		}
	}
	o.Set("b", "7")
	var v Value
	v.object = &o
	require.Equal(t, `{"a":100,"d":103,"g":106,"j":109,"m":112,"p":115,"s":118,"v":121,"b":7}`, string(v.append(nil)))
	require.Len(t, maps.Collect(o.All()), 9)
	for name := range maps.Collect(o.All()) {
		o.Remove(name)
	}
	require.Equal(t, "{}", string(v.append(nil)))
	o.Set("c", "1")
	require.Equal(t, `{"c":1}`, string(v.append(nil)))
}

func TestObjectWithoutAMember(t *testing.T) {
	var o Object
	o.Remove("a")
	o.Set("a", "1")
	o.Set("b", "2")
	o.Remove("a")
	require.False(t, o.Has("a"))
	require.Equal(t, map[string]string{"b": "2"}, maps.Collect(o.All()))
}
