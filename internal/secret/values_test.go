package secret

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// registered are values of all kinds of characters.
var registered = []string{
	"hunter2", "abcd", "correct horse battery", "p%a\"ss\\nw+/=&?", "line\none\ttwo", "Grüße-aus-Köln", "7f3c9a1e5b", "48151623421", "/etc/x/y.key", "C4N4RYs3cr3t",
	"überpaß", "tab\there", "日本語のパスワード", "<script>&'", strings.Repeat("0123456789abcdefghij", 20), strings.Repeat("x", 260) + "y",
}

// written are the ways in which a value is written. The result is the text and the part
// of it that says the value, as far as bytes around it have no part in it.
var written = []struct {
	name string
	do   func(value string) string
}{
	{"as it is", func(v string) string { return v }},
	{"hex", func(v string) string { return hex.EncodeToString([]byte(v)) }},
	{"HEX", func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) }},
	{"base64", func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) }},
	{"base64 url", func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) }},
	{"base64 behind 1", func(v string) string { return base64.StdEncoding.EncodeToString([]byte(":" + v)) }},
	{"base64 behind 2", func(v string) string { return base64.StdEncoding.EncodeToString([]byte("u:" + v + "!!")) }},
	{"query", url.QueryEscape},
	{"path", url.PathEscape},
	{"percent", func(v string) string {
		out := ""
		for _, c := range []byte(v) {
			out += fmt.Sprintf("%%%02x", c)
		}
		return out
	}},
	{"JSON", inJSON}, {"JSON 2", func(v string) string { return inJSON(inJSON(v)) }}, {"JSON 3", func(v string) string { return inJSON(inJSON(inJSON(v))) }},
	{"JSON ASCII", func(v string) string {
		out := ""
		for _, r := range v {
			out += fmt.Sprintf("\\u%04x", r)
		}
		return out
	}},
	{"JSON ASCII 2", func(v string) string {
		out := ""
		for _, r := range v {
			out += fmt.Sprintf("\\\\u%04X", r)
		}
		return out
	}},
	{"query of JSON", func(v string) string { return url.QueryEscape(inJSON(v)) }},
	{"base64 in a query", func(v string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(v))) }},
}

func inJSON(v string) string {
	q := jsonwire.Quote(v)
	return q[1 : len(q)-1]
}

func TestRegisteredValues(t *testing.T) {
	t.Parallel()
	n := 0
	for _, value := range registered {
		s := scanner(value)
		for _, w := range written {
			in := w.do(value)
			if strings.HasPrefix(w.name, "base64") && len(value) < 6 {
				continue // too few characters of it are fixed
			}
			for _, around := range [][2]string{{"", ""}, {"key ", " ok"}, {`{"a":"`, `"}`}, {"x=", "&y=1"}, {"sk-" + strings.Repeat("a1", 3), strings.Repeat("b2", 20)}} {
				text := around[0] + in + around[1]
				n++
				masked := s.Mask(text)
				require.NotContains(t, masked, in, "%s: %q", w.name, value)
				// At most a few characters of the ends of base64 stay.
				kept := strings.Count(masked, "") - strings.Count(Marker(Value), "")
				require.LessOrEqual(t, kept, len(around[0])+len(around[1])+10, "%s: %q in %q", w.name, masked, text)
				for size := 1; size <= 17; size += 1 + len(text)/25 {
					require.Equal(t, masked, streamed(s, text, size), "%s: %q by %d", w.name, text, size)
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
