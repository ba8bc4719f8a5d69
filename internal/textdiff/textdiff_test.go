package textdiff_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/textdiff"
)

func TestExcerpts(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		name, a, b string
		at         int
		inA, inB   string
	}{
		{"a word", "the cat sat", "the dog sat", 5, `"the cat sat"`, `"the dog sat"`},
		{"longer", "ab", "abc", 3, `"ab"`, `"abc"`},
		{"inside a character", "é", "è", 1, `"é"`, `"è"`},
		{"much around it", long + "a" + long, long + "b" + long, 101,
			`"…xxxxxxxxxxxxaxxxxxxxxxxxx…"`, `"…xxxxxxxxxxxxbxxxxxxxxxxxx…"`},
		{"much of it", long, "y" + strings.Repeat("z", 99), 1,
			`"` + long[:40] + `…"`, `"y` + strings.Repeat("z", 39) + `…"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, inA, inB := textdiff.Excerpts(c.a, c.b)
			require.Equal(t, c.at, at)
			require.Equal(t, c.inA, inA)
			require.Equal(t, c.inB, inB)
		})
	}
}

func TestAlike(t *testing.T) {
	require.Equal(t, 1.0, textdiff.Alike("", ""))
	require.Equal(t, 0.0, textdiff.Alike("ab", "cd"))
	require.Equal(t, 0.75, textdiff.Alike("abcd", "abxd"))
	require.Equal(t, 0.5, textdiff.Alike("aa", "a"), "no character counts twice")
}
