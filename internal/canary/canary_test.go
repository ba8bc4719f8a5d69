package canary

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	const line = `{"a":{"b":[1.5e3,"x\"y",{}]},"c":null,"d":[]}`
	seen := map[string]string{}
	for l := range Lines(line, func(pointer string) bool { return pointer == "/c" }) {
		if strings.Contains(l.Text, `"`+Text+`"`) && json.Valid([]byte(l.Text)) && seen[l.Pointer] == "" {
			seen[l.Pointer] = strings.ReplaceAll(l.Text, Text, "@")
			require.Equal(t, l.Pointer == "/c", l.Quotable)
		}
	}
	require.Equal(t, map[string]string{
		"":       `"@"`,
		"/a":     `{"a":"@","c":null,"d":[]}`,
		"/a/b":   `{"a":{"b":"@"},"c":null,"d":[]}`,
		"/a/b/0": `{"a":{"b":["@","x\"y",{}]},"c":null,"d":[]}`,
		"/a/b/1": `{"a":{"b":[1.5e3,"@",{}]},"c":null,"d":[]}`,
		"/a/b/2": `{"a":{"b":[1.5e3,"x\"y","@"]},"c":null,"d":[]}`,
		"/c":     `{"a":{"b":[1.5e3,"x\"y",{}]},"c":"@","d":[]}`,
		"/d":     `{"a":{"b":[1.5e3,"x\"y",{}]},"c":null,"d":"@"}`,
	}, seen)
}

func TestLeak(t *testing.T) {
	require.Empty(t, Leak("a text of 80 bytes", false))
	require.NotEmpty(t, Leak(`found "`+Text[:64], false))
	require.Empty(t, Leak(`found "`+Text[:64], true))
	require.NotEmpty(t, Leak(Text, true))
	require.NotEmpty(t, Leak(strings.Repeat("x", 1001), true))
}
