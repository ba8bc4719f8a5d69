package secret

import (
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func scanner(values ...string) *Scanner {
	if values == nil {
		return New(NewNames(nil, nil), nil)
	}
	v := NewValues(values)
	return New(NewNames(nil, nil), func() *Values { return v })
}

// streamed returns a text masked as pieces of these lengths, over and over.
func streamed(s *Scanner, text string, sizes ...int) string {
	st := s.Stream()
	var out strings.Builder
	for i := 0; text != ""; i++ {
		n := min(sizes[i%len(sizes)], len(text))
		if piece := text[:n]; st.Pass(piece) {
			out.WriteString(piece)
		} else {
			out.WriteString(st.Write(piece))
		}
		text = text[n:]
	}
	out.WriteString(st.Close())
	return out.String()
}

func TestMask(t *testing.T) {
	s := scanner("C4N4RYs3cr3t", "abcdef", "defghi", "ababab")
	for _, c := range []struct{ text, want string }{
		{"nothing here", "nothing here"},
		{"key C4N4RYs3cr3t.", "key [REDACTED:secret]."},
		{"abcdefghi", "[REDACTED:secret]"},
		{"ababababab", "[REDACTED:secret]"},
		{base64.StdEncoding.EncodeToString([]byte("user:C4N4RYs3cr3t")), ""},
		{hex.EncodeToString([]byte("C4N4RYs3cr3t")), "[REDACTED:secret]"},
		{`{"password":"hunter2"}`, `{"password":"[REDACTED:key]"}`},
		{`{\"password\":\"hun\\\"ter2\",\"a\":1}`, `{\"password\":\"[REDACTED:key]\",\"a\":1}`},
		{`{"password":"hunter`, `{"password":"[REDACTED:key]`},
		{`{"pin": 123456, "tokens": 1234}`, `{"pin": [REDACTED:key], "tokens": 1234}`},
		{"Authorization: Bearer x\nAccept: y", "Authorization: [REDACTED:key]\nAccept: y"},
		{`curl -H "Authorization: Bearer abc" https://x.y`, `curl -H "Authorization: [REDACTED:key]" https://x.y`},
		{"FOO_TOKEN=abcd1234 make", "FOO_TOKEN=[REDACTED:key] make"},
		{"https://user:hunter2@example.com/x", "https://user:[REDACTED:key]@example.com/x"},
		{"see http://localhost:8080/x and https://example.com:443", "see http://localhost:8080/x and https://example.com:443"},
		{"?api_key=abcd1234&x=1", "?api_key=[REDACTED:key]&x=1"},
		{"gh" + "p_0123456789klmnopqrstABCDEFGHIJ0123456789 ok", "ghp_[REDACTED:token] ok"},
		{"use sk-learn-compatible-estimators-here", "use sk-learn-compatible-estimators-here"},
		{"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nok", "-----BEGIN RSA PRIVATE KEY-----[REDACTED:token]-----END RSA PRIVATE KEY-----\nok"},
		{"card 4111 1111 1111 1111 ok", "card 4111 11[REDACTED:card] ok"},
		{"card 4111111111111112 ok", "card 4111111111111112 ok"},
		{"mysql --password hunter2 -h x", "mysql --password [REDACTED:key] -h x"},
		{"The token: it is a word. Passwords: at least 8 characters.", "The token: it is a word. Passwords: at least 8 characters."},
	} {
		if c.want == "" {
			require.NotEqual(t, c.text, s.Mask(c.text), c.text)
		} else {
			require.Equal(t, c.want, s.Mask(c.text), c.text)
		}
	}
}

// A stream equals the whole masked text, in all cuts.
func TestStreamsEqualTheWhole(t *testing.T) {
	t.Parallel()
	s := scanner("C4N4RYs3cr3t", "abcdef", "defghi", "ababab", "p%a\"ss\nw")
	pieces := []string{
		"C4N4RYs3cr3t", "C4N4", "abcdefghi", "ababababa", url.QueryEscape("p%a\"ss\nw"), strconv.Quote("p%a\"ss\nw"), `"password":"hunter2"`, `\"password\":\"hun\\\"ter`, "password=hunter2", "PASSWORD: x1y2z3",
		"Authorization: Bearer abc.def.ghi", "\n", " ", "\"", `\"`, `\\`, "'", ",", "}", "{", "https://u:p4ssw0rd@h/x", "http://localhost:8080", "http://a.b:", "gh" + "p_0123456789abcdefghijABCDEFGHIJ0123456789", "s" + "k-proj-abcdEFGH1234ijkl5678",
		"-----BEGIN PRIVATE KEY-----\nMII", "-----END PRIVATE KEY-----", "4111 1111 1111 1111", "4111111111111111", "1234567", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijk123", "bearer a1b2c3d4e5", "--token abcd1234", "tokens: 1500", "the token: it", "words and more words ", "=", ":", "x", "-", "_", "é", "\xff", base64.StdEncoding.EncodeToString([]byte("xC4N4RYs3cr3ty")),
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 60_000 {
		text := ""
		for range 1 + rng.IntN(5) {
			p := pieces[rng.IntN(len(pieces))]
			if rng.IntN(4) == 0 {
				p = p[:rng.IntN(len(p)+1)]
			}
			text += p
		}
		sizes := []int{1 + rng.IntN(17), 1 + rng.IntN(17), 1 + rng.IntN(5)}
		require.Equal(t, s.Mask(text), streamed(s, text, sizes...), "%d: %q %v", n, text, sizes)
	}
}

// The steps over a text are such that no token is between two of them.
func TestTokensAreLongEnough(t *testing.T) {
	for _, f := range tokens {
		require.GreaterOrEqual(t, len(f.prefix)+f.min, leastToken, f.prefix)
		require.LessOrEqual(t, len(f.prefix), mostPrefix, f.prefix)
		require.Equal(t, -1, strings.IndexFunc(f.prefix, func(r rune) bool { return !tokenChars[byte(r)] }), f.prefix)
		for c := range 256 {
			require.True(t, !f.chars[c] || tokenChars[c], f.prefix)
		}
	}
	require.GreaterOrEqual(t, leastToken, step+7)
}

// Tokens and cards are found wherever they are between two steps.
func TestEachPlace(t *testing.T) {
	s, pad := scanner(), strings.Repeat("ok  \texample.com/pkg\t0.012s\n", 4)
	for from := range 28 {
		for n := range 60 {
			for _, c := range [][2]string{{"AKIA" + "0123456789ABCDEF", "AKIA[REDACTED:token]"}, {"4222222222222", "422222[REDACTED:card]"}, {"4111 1111 1111 1111", "4111 11[REDACTED:card]"}} {
				before, behind := pad[from:from+n]+"\t", "\t"+pad[n:]
				require.Equal(t, before+c[1]+behind, s.Mask(before+c[0]+behind), "%d %d", from, n)
			}
		}
	}
}

// A scan by words of eight bytes finds the same as a scan by bytes.
func TestWords(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	names := NewNames(nil, nil)
	const some = "abcxyz,. \n-:=zAZ069_/`{|%~@"
	for range 20_000 {
		b := make([]byte, rng.IntN(short+1))
		for i := range b {
			b[i] = some[rng.IntN(1+rng.IntN(len(some)))]
		}
		text := string(b)
		m, odd := marked(text, 0)
		var at [short]bool
		for ; m != 0; m &= m - 1 {
			at[place(m)] = true
		}
		for i := range len(text) {
			require.Equal(t, strings.IndexByte(marks, text[i]) >= 0, at[i], "%q %d", text, i)
		}
		require.Equal(t, strings.ContainsFunc(text, func(r rune) bool { return '0' <= r && r <= 'Z' }), odd, "%q", text)
		if len(text) >= 8 && calm(text) {
			require.False(t, odd || strings.ContainsAny(text, marks), "%q", text)
		}
		name := text[:len(text)/4] + []string{"password", "max_tokens", "api-key2", "sid", "path", "pw. "}[rng.IntN(6)]
		require.Equal(t, names.strength(name) != none, names.tells(name), "%q", name)
	}
}

// An amount with a unit after the name of a number is not masked.
func TestAmountsWithUnits(t *testing.T) {
	for _, text := range []string{"**Tokens:** 3.2k / 1m (0%)", "Input tokens: 128.5K", "Tokens: 100.5%"} {
		require.Equal(t, text, scanner().Mask(text))
	}
	require.NotContains(t, scanner().Mask("**Token:** 8f3k9Qz1Lm0Rk"), "8f3k9Qz1Lm0Rk")
}
