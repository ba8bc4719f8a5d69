package jsonwire

import (
	"maps"
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
