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
}
