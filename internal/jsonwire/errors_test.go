package jsonwire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBrief(t *testing.T) {
	long := strings.Repeat("x", 64)
	for s, want := range map[string]string{
		"":                `""`,
		"c7":              `"c7"`,
		"a\x1b\"\xff世":    `"a\x1b\"\xff世"`,
		long:              `"` + long + `"`,
		long + "y":        "(65 bytes)",
		long[1:] + "世":    "(66 bytes)",
		long[1:] + "\x01": "(64 bytes)", // four as they are shown
	} {
		require.Equal(t, want, Brief(s))
	}
	require.Equal(t, "a.b:c-d_1", BriefName("a.b:c-d_1"))
	require.Equal(t, `"a b"`, BriefName("a b"))
	require.Equal(t, `"thinkin"`, Word("thinkin"))
	require.Equal(t, "a text of 1 byte", Word(" "))
	require.Equal(t, "a text of 0 bytes", Word(""))
	require.Equal(t, "a text of 65 bytes", Word(long+"x"))
}

func TestBriefPointer(t *testing.T) {
	long := strings.Repeat("x", 63) // and the slash
	for p, want := range map[string]string{
		"":                                "",
		"/":                               "/",
		"/a//b~1":                         "/a//b~1",
		"/a\n/b":                          `/a\n/b`,
		"/" + long + "yz/b":               "/(65 bytes)/b",
		strings.Repeat("/"+long, 5):       strings.Repeat("/"+long, 5),
		strings.Repeat("/"+long, 6) + "/": strings.Repeat("/"+long, 5) + "/…",
		strings.Repeat("/"+long, 1<<14):   strings.Repeat("/"+long, 5) + "/…",
	} {
		require.Equal(t, want, BriefPointer(p))
	}
}

func TestDescribe(t *testing.T) {
	for raw, want := range map[string]string{
		`"abc"`:   "a string of 3 bytes",
		`"\n"`:    "a string of 2 bytes",
		`"abc`:    "a string without an end",
		`{"a":1}`: "an object of 7 bytes",
		`[]`:      "an array of 2 bytes",
		`12`:      "a number",
		`true`:    "a boolean",
		`null`:    "null",
		`None`:    "a bare word of 4 bytes",
		``:        "end of text",
	} {
		require.Equal(t, want, Describe(raw))
	}
}
