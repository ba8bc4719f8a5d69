package corpus

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// Values returns values of all kinds of characters, to be registered.
func Values() []string {
	return []string{
		"hunter2", "abcd", "correct horse battery", "p%a\"ss\\nw+/=&?", "line\none\ttwo", "Grüße-aus-Köln", "7f3c9a1e5b", "48151623421", "/etc/x/y.key", "C4N4RYs3cr3t",
		"überpaß", "tab\there", "日本語のパスワード", "<script>&'", strings.Repeat("0123456789abcdefghij", 20), strings.Repeat("x", 260) + "y",
	}
}

// A Spelling is a way in which a value is written.
type Spelling struct {
	Name    string
	Strings int // that the value is in
	Do      func(value string) string
}

// Spellings returns the ways in which a registered value is found.
func Spellings() []Spelling {
	return []Spelling{
		{"as it is", 0, func(v string) string { return v }},
		{"hex", 0, func(v string) string { return hex.EncodeToString([]byte(v)) }},
		{"HEX", 0, func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) }},
		{"base64", 0, func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) }},
		{"base64 url", 0, func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) }},
		{"base64 behind 1", 0, func(v string) string { return base64.StdEncoding.EncodeToString([]byte(":" + v)) }},
		{"base64 behind 2", 0, func(v string) string { return base64.StdEncoding.EncodeToString([]byte("u:" + v + "!!")) }},
		{"query", 0, url.QueryEscape},
		{"path", 0, url.PathEscape},
		{"percent", 0, func(v string) string {
			out := ""
			for _, c := range []byte(v) {
				out += fmt.Sprintf("%%%02x", c)
			}
			return out
		}},
		{"JSON", 1, inJSON}, {"JSON 2", 2, func(v string) string { return inJSON(inJSON(v)) }}, {"JSON 3", 3, func(v string) string { return inJSON(inJSON(inJSON(v))) }},
		{"JSON ASCII", 1, func(v string) string {
			out := ""
			for _, r := range v {
				out += fmt.Sprintf("\\u%04x", r)
			}
			return out
		}},
		{"JSON ASCII 2", 2, func(v string) string {
			out := ""
			for _, r := range v {
				out += fmt.Sprintf("\\\\u%04X", r)
			}
			return out
		}},
		{"query of JSON", 1, func(v string) string { return url.QueryEscape(inJSON(v)) }},
		{"base64 in a query", 0, func(v string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(v))) }},
	}
}

// Spelled returns the samples of registered values: each in each spelling. The base64 of a value
// under six bytes is too short to be found.
func Spelled(values []string) (list []Sample) {
	for _, value := range values {
		for _, spelling := range Spellings() {
			if strings.HasPrefix(spelling.Name, "base64") && len(value) < 6 {
				continue
			}
			text := spelling.Do(value)
			list = append(list, Sample{fmt.Sprintf("%s: %q", spelling.Name, value), text, []string{text}, spelling.Strings})
		}
	}
	return list
}
