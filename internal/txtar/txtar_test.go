package txtar

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	const text = "A comment.\n\n-- a --\n{\"x\":1}\n\n-- b losses --\none\n--  --\n-- c\ntwo\n"
	a := Parse(text)
	require.Equal(t, Archive{
		Comment: "A comment.\n\n",
		Files:   []File{{"a", "{\"x\":1}\n\n"}, {"b losses", "one\n--  --\n-- c\ntwo\n"}},
	}, a)
	require.Equal(t, text, a.String())
	require.Equal(t, "{\"x\":1}\n\n", a.Get("a"))
	require.Empty(t, a.Get("c"))

	a.Add("none", "")
	a.Add("c", "three\n")
	require.Equal(t, text+"-- c --\nthree\n", a.String())
	require.Equal(t, Archive{}, Parse(""))
}
