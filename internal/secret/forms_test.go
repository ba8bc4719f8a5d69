package secret

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// body returns n characters of an alphabet, of each kind that it has.
func body(rng *rand.Rand, f *form, n int) string {
	var set []byte
	for c := range 256 {
		if f.chars[c] {
			set = append(set, byte(c))
		}
	}
	for {
		b := make([]byte, n)
		for i := range b {
			b[i] = set[rng.IntN(len(set))]
		}
		if s := string(b); kindsOf(s) == f.kinds && kindOf[b[0]]&kindOf[b[n-1]] != 0 || n <= f.lead || n < 3 {
			return s
		}
	}
}

// tokenOf returns a token with n characters after the prefix, and the part that must be masked.
func tokenOf(rng *rand.Rand, f *form, n int) (token, hidden string) {
	if f.lead == 0 {
		b := body(rng, f, n)
		return f.prefix + b, b[f.stay:]
	}
	lead := body(rng, f, f.lead)
	if f.stay == 0 { // the digit in front of the mark is fixed
		lead = "aB7"[:f.lead-1] + "8"
		b := body(rng, f, n)
		return lead + f.prefix + b, b
	}
	lead = f.begins + "a7F" + lead[len(f.begins)+3:] // all kinds are among those that stay
	if f.kinds&upper == 0 {
		lead = strings.ToLower(lead)
	}
	token = lead + f.prefix + body(rng, f, n)
	return token, token[f.stay:]
}

// lengths are those that a form may have, or some of them.
func (f *form) lengths() []int {
	if f.max > 0 || f.lead > 0 {
		return []int{f.min, (f.min + f.max) / 2, f.max}
	}
	return []int{f.min, f.min + 1, f.min + 40}
}

// around are places in which a token is read.
var around = []string{"The key %s is old.", `{"note":"use %s"}`, "'%s'", "`%s`", "https://example.com/x?y=%s&z=1", "x=%s\n", "(%s)", "%s", "first\n%s\nlast", `{"a":"{\"b\":\"%s\"}"}`}

func allForms() []*form { return append(append([]*form{}, forms...), wordForms...) }

// A token of each form is masked at each of its lengths, wherever it stands and however it is cut.
func TestEachFormIsMasked(t *testing.T) {
	t.Parallel()
	s, rng := scanner(), rand.New(rand.NewPCG(7, 8))
	for _, f := range allForms() {
		if f.prefix == webPrefix {
			continue
		}
		for _, n := range f.lengths() {
			token, hidden := tokenOf(rng, f, n)
			for _, place := range around {
				text := fmt.Sprintf(place, token)
				masked := s.Mask(text)
				for i := 0; i+8 <= len(hidden); i++ {
					require.NotContains(t, masked, hidden[i:i+8], "%s: %s", f.provider, text)
				}
				require.Contains(t, masked, Marker(Token), "%s: %s", f.provider, text)
				for _, size := range []int{1, 1 + rng.IntN(17), 1 + rng.IntN(40)} {
					require.Equal(t, masked, streamed(s, text, size), "%s by %d: %s", f.provider, size, text)
				}
			}
		}
	}
}

// A near miss stays: a token with a character too few or too many, one of another alphabet,
// or in a longer word.
func TestNearMissesStay(t *testing.T) {
	t.Parallel()
	s, rng := scanner(), rand.New(rand.NewPCG(9, 10))
	others := func(f *form) (same int) { // forms that may tell where this does not
		for _, o := range allForms() {
			if strings.HasPrefix(f.prefix, o.prefix) || strings.HasPrefix(o.prefix, f.prefix) {
				same++
			}
		}
		return same
	}
	n := 0
	for _, f := range allForms() {
		if f.prefix == webPrefix || others(f) > 1 {
			continue
		}
		stays := func(why, text string) {
			n++
			text = "see " + text + " ok"
			require.Equal(t, text, s.Mask(text), "%s: %s", f.provider, why)
			require.Equal(t, text, streamed(s, text, 1+rng.IntN(17)), "%s: %s", f.provider, why)
		}
		whole, _ := tokenOf(rng, f, f.min)
		stays("in a word", "a"+whole)
		if f.min > 0 {
			short, _ := tokenOf(rng, f, f.min-1)
			stays("too short", short)
			at := f.lead + len(f.prefix) + f.min/2
			stays("another character", whole[:at]+"!"+whole[at+1:])
		}
		if f.strict && f.min > 1 && f.kinds != 0 {
			stays("words", f.prefix+strings.Repeat("loading-spinner-", f.min/16+1))
		}
		if f.max > 0 {
			long, _ := tokenOf(rng, f, f.max+1)
			stays("too long", long)
			whole, _ = tokenOf(rng, f, f.max)
			stays("a word goes on", whole+"_x")
		}
	}
	require.Greater(t, n, 400)
}

// Digests, ids and data in base64 stay.
func TestDigestsAndDataStay(t *testing.T) {
	t.Parallel()
	s, rng := scanner(), rand.New(rand.NewPCG(11, 12))
	for range 3000 {
		b := make([]byte, 16+rng.IntN(100))
		sparse := rng.IntN(3) == 0
		for i := range b {
			if !sparse || rng.IntN(4) == 0 {
				b[i] = byte(rng.Uint32())
			}
		}
		h := hex.EncodeToString(b)
		for _, text := range []string{
			h[:32], strings.ToUpper(h[:32]), h, base64.StdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b),
			fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:32]), "sha256:" + h, "index " + h[:7] + ".." + h[7:14], "img/" + h[:20] + ".png", "v1.2.3-" + h[:12], h[:8] + "_" + h[8:30],
		} {
			text = "see " + text + " ok"
			require.Equal(t, text, s.Mask(text))
		}
	}
}

// Words with signs between them are no secrets, and characters by chance are no words.
func TestWorded(t *testing.T) {
	for text, want := range map[string]bool{
		"loading-spinner-double-bounce-1": true, "Common.Utilities.Extensions.Collections": true, "grok-4-fast-reasoning-latest": true, "utf8_text_v2": true, "v2-final": true,
		"claude-sonnet-4-20250514": true, "HTML-page-of-the-day": true, "": true, "a": true, "-": true,
		"Qx7zkWm7Yt": false, "secret123x": false, "7f3c9a1e5b": false, "aBcDeFgHiJ": false, "AB12CD34": false, "supercalifragilistic": false, "123456789": false, "xkcdqwrtz-spring-x": false,
	} {
		for _, camel := range []bool{false, true} {
			require.Equal(t, want, worded(text, camel), text)
			for i := range text {
				require.True(t, !want || worded(text[:i], camel), text[:i]) // a stream must not see it as a token
			}
		}
	}
	for _, text := range []string{"PacificRegionalOffice", "SetConfigurationParameter2Value", "iPhone"} {
		require.True(t, worded(text, true) && !worded(text, false), text)
	}
	rng := rand.New(rand.NewPCG(13, 14))
	words := 0
	for _, f := range allForms() {
		for range 200 {
			if f.signs && worded(body(rng, f, max(f.min, 20)), f.strict) {
				words++
			}
		}
	}
	require.Less(t, words, 10)
}
