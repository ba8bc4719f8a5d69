package lawtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents/internal/secret/corpus"
)

// formPlaces are places in which a text with a token is found, and the strings of JSON around it.
var formPlaces = []struct {
	text    string
	strings int
}{
	{"%s", 0}, {"I found this: %s. It does not work.", 0}, {"first line\n%s\nlast line", 0}, {"`%s`", 0}, {"'%s'", 0}, {"x: \"%s\"", 0}, {"<b>%s</b>", 0},
	{"GET https://example.com/v1/x?y=%s&z=1 HTTP/1.1", 0}, {"{\"note\":\"%s\"}", 1}, {"[\"%s\",1]", 1},
}

// Tokens of every form are masked in prose, in quotes, in URLs and in JSON, with whatever
// characters, in one piece and in deltas of 1 to 17 bytes.
func TestEveryFormIsMasked(t *testing.T) {
	list := slices.DeleteFunc(samples(t, plantedFile), func(s corpus.Sample) bool { return !strings.HasPrefix(s.Line, "form: ") })
	require.GreaterOrEqual(t, len(list), 70)
	s := scanner()
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.SampledFrom(list).Draw(t, "form").Again(rapid.Uint64().Draw(t, "seed"))
		place := rapid.SampledFrom(formPlaces).Draw(t, "place")
		sizes := rapid.SliceOfN(rapid.IntRange(1, 17), 1, 4).Draw(t, "sizes")
		inner := one.InString(place.strings)
		inner.Text = fmt.Sprintf(place.text, strings.TrimSuffix(strings.TrimPrefix(inner.Text, `{"type":"text","text":"`), `","n":1}`))
		masked := s.Mask(inner.Text)
		require.Empty(t, inner.GotOut(masked), "%s", masked)
		require.Equal(t, masked, strings.Join(streamed(s, pieces(inner.Text, sizes...)), ""))
	})
}
