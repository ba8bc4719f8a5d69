package secret

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/secret/corpus"
)

func TestRegisteredValues(t *testing.T) {
	t.Parallel()
	n := 0
	for _, value := range corpus.Values() {
		s := scanner(value)
		for _, w := range corpus.Spellings() {
			in := w.Do(value)
			if strings.HasPrefix(w.Name, "base64") && len(value) < 6 {
				continue // too few characters of it are fixed
			}
			for i, around := range [][2]string{{"", ""}, {"key ", " ok"}, {`{"a":"`, `"}`}, {"x=", "&y=1"}, {"sk-" + strings.Repeat("a1", 3), strings.Repeat("b2", 20)}} {
				text := around[0] + in + around[1]
				n++
				masked := s.Mask(text)
				require.NotContains(t, masked, in, "%s: %q", w.Name, value)
				// At most a few characters of the ends of base64 stay.
				kept := strings.Count(masked, "") - strings.Count(Marker(Value), "")
				require.LessOrEqual(t, kept, len(around[0])+len(around[1])+10, "%s: %q in %q", w.Name, masked, text)
				size := 1
				if i > 0 && len(text) > 400 {
					size = 7 // byte by byte takes the square of the length: once is enough
				}
				for ; size <= 17; size += 1 + len(text)/25 {
					require.Equal(t, masked, streamed(s, text, size), "%s: %q by %d", w.Name, text, size)
				}
			}
		}
	}
	require.Greater(t, n, 400)
}

func TestValuesLeaveNothing(t *testing.T) {
	const token = "sk-"
	tail := strings.Repeat("9k", 15)
	for _, c := range []struct {
		values     []string
		text, want string
	}{
		{[]string{"abcdef", "defghi"}, "abcdefghi", "[REDACTED:secret]"},
		{[]string{"abab"}, "xababab", "x[REDACTED:secret]"},
		{[]string{"abcd", "abcdefgh"}, "abcdefgx abcdefgh", "[REDACTED:secret]efgx [REDACTED:secret]"},
		{[]string{"9k9kSECRET"}, token + tail + "SECRET" + tail + " x", token + "[REDACTED:token] x"}, // a value in a token
		{[]string{"my-sk"}, "a my-sk-" + tail + " x", "a [REDACTED:secret]-[REDACTED:token] x"},       // in its prefix
		{[]string{"9k and"}, token + tail + " and more", token + "[REDACTED:token] more"},             // at its end
		{[]string{"password"}, "password=hunter2 x", "[REDACTED:secret]=[REDACTED:key] x"},            // the name itself
		{[]string{"12345678"}, `{"pin":12345678}`, `{"pin":[REDACTED:key]}`},
		{[]string{"12345678"}, `{"n":12345678}`, `{"n":[REDACTED:secret]}`},
		{[]string{"abc"}, "abc", "abc"}, // too short
	} {
		s := scanner(c.values...)
		require.Equal(t, c.want, s.Mask(c.text), c.text)
		for size := 1; size <= 17; size++ {
			require.Equal(t, c.want, streamed(s, c.text, size), c.text)
		}
	}
}
