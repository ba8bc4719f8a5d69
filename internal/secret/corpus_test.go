package secret

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/secret/corpus"
)

// samples returns the samples of a file.
func samples(t testing.TB, file string) []corpus.Sample {
	list, err := corpus.Read("testdata/" + file)
	require.NoError(t, err)
	return list
}

func TestPlanted(t *testing.T) {
	s := scanner()
	n, bad := 0, 0
	for _, base := range samples(t, "planted.txt") {
		for depth := range 4 {
			c := base.InString(depth)
			n++
			masked := s.Mask(c.Text)
			part := c.GotOut(masked)
			if depth > 0 && part == "" {
				js, err := s.JSON(c.Text, nil, nil)
				require.NoError(t, err, c.Line)
				if part = c.GotOut(js); part != "" {
					masked = js
				}
			}
			for size := 1; size <= 17 && part == ""; size++ {
				masked = streamed(s, c.Text, size)
				part = c.GotOut(masked)
			}
			if part != "" {
				bad++
				t.Errorf("%d: %s\n%q got out:\n%s", depth, c.Line, part, masked)
				break
			}
		}
	}
	t.Logf("%d texts, %d bad", n, bad)
	require.GreaterOrEqual(t, n, 4*500)
}

func TestHarmless(t *testing.T) {
	s := scanner()
	n := 0
	for _, base := range samples(t, "harmless.txt") {
		for depth := range 2 {
			c := base.InString(depth)
			n++
			if masked := s.Mask(c.Text); masked != c.Text {
				t.Errorf("%s\n%s", c.Line, masked)
				break
			}
			for size := 1; size <= 17; size++ {
				require.Equal(t, c.Text, streamed(s, c.Text, size), c.Line)
			}
			if jsonwire.Valid(c.Text) == nil {
				js, err := s.JSON(c.Text, nil, nil)
				require.NoError(t, err)
				if js != c.Text {
					t.Errorf("as JSON: %s\n%s", c.Line, js)
				}
			}
		}
	}
	require.GreaterOrEqual(t, n, 2*500)
}
