package secret

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/scale"
)

// hard are texts that make a careless search slow, by their number of parts.
var hard = []struct {
	name string
	text func(n int) string
}{
	{"equals", func(n int) string { return strings.Repeat("=", n) }},
	{"colons", func(n int) string { return strings.Repeat(":", n) }},
	{"dashes", func(n int) string { return strings.Repeat("-", n) }},
	{"slashes", func(n int) string { return strings.Repeat(`\`, n) }},
	{"quotes", func(n int) string { return strings.Repeat(`\"`, n) }},
	{"blanks", func(n int) string { return "password" + strings.Repeat(" ", n) + "=" }},
	{"digits", func(n int) string { return strings.Repeat("4", n) }},
	{"cards", func(n int) string { return strings.Repeat("4111 ", n/5) }},
	{"one word", func(n int) string { return strings.Repeat("aB3_", n/4) }},
	{"headers", func(n int) string { return strings.Repeat("Authorization: ", n/15) }},
	{"open strings", func(n int) string { return strings.Repeat(`password:"a`, n/11) }},
	{"open lists", func(n int) string { return strings.Repeat(`"passwords":["`, n/14) }},
	{"open objects", func(n int) string { return strings.Repeat(`"password":{"`, n/13) }},
	{"keys", func(n int) string { return strings.Repeat("-----BEGIN PRIVATE"+" KEY-----\n", n/27) }},
	{"web tokens", func(n int) string { return strings.Repeat("eyJabcdefghij", n/13) }},
	{"web tokens apart", func(n int) string { return strings.Repeat("eyJabcdefghij ", n/14) }},
	{"tokens", func(n int) string { return strings.Repeat("sk-", n/3) }},
	{"URLs", func(n int) string { return strings.Repeat("://a:", n/5) }},
	{"values", func(n int) string { return strings.Repeat(`{"value":"x",`, n/13) }},
	{"assignments", func(n int) string { return strings.Repeat("password=hunter2 ", n/17) }},
	{"flags", func(n int) string { return strings.Repeat("curl -u ", n/8) }},
	{"cells", func(n int) string { return strings.Repeat("| password ", n/11) }},
	{"entities", func(n int) string { return strings.Repeat("&quot;password&quot;:", n/21) }},
	{"percents", func(n int) string { return strings.Repeat("password%3A", n/11) }},
	{"comparisons", func(n int) string { return strings.Repeat("password==(", n/11) }},
	{"hosts", func(n int) string { return strings.Repeat("://a1b2c3d4e5f6g7h8", n/19) }},
	{"escapes", func(n int) string { return strings.Repeat(`\\\\u0041%41`, n/11) }},
	{"nested quotes", func(n int) string {
		text := ""
		for i := 0; len(text) < n; i++ {
			text += strings.Repeat(`\`, i%200) + `"password` + strings.Repeat(`\`, i%200) + `":`
		}
		return text
	}},
	{"forms in parts", func(n int) string { return strings.Repeat("form-data; name=\"password\"\n", n/28) }},
	{"pipes", func(n int) string { return strings.Repeat("password=a1|", n/12) }},
	{"defaults", func(n int) string { return strings.Repeat("password||\"a", n/12) }},
	{"parameters", func(n int) string { return strings.Repeat("?code=a1b2c3d4", n/14) }},
	{"leads", func(n int) string { return strings.Repeat("0123456789abcdef", n/16) }},
	{"words apart", func(n int) string { return strings.Repeat("pat7abcdefghijklm. ", n/19) }},
	{"known beginnings", func(n int) string { return strings.Repeat("value-1", n/7) }},
}

// A text of eight times the length takes about eight times the time, whole and in pieces.
func TestTimeIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("it compares times")
	}
	var values []string
	for i := range 3000 {
		values = append(values, fmt.Sprintf("value-%d-of-many", i))
	}
	for _, s := range []*Scanner{scanner(), scanner(values...)} {
		for _, h := range hard {
			scale.Linear(t, 4<<10, func(n int) func() {
				text := h.text(n)
				return func() { s.Mask(text) }
			})
			scale.Linear(t, 4<<10, func(n int) func() {
				text := h.text(n)
				return func() { streamed(s, text, 64) }
			})
			if t.Failed() {
				t.Fatal(h.name)
			}
		}
	}
}

// An object may have many names with a registered value in them.
func TestManyNamesWithValues(t *testing.T) {
	s := scanner("C4N4RYs3cr3t")
	scale.Linear(t, 1000, func(n int) func() {
		text := `{"x":0`
		var b strings.Builder
		b.WriteString(text)
		for i := range n {
			fmt.Fprintf(&b, `,"C4N4RYs3cr3t%s":1`, strings.Repeat("C4N4RYs3cr3t", i%2)+strings.Repeat("-", i%3)+fmt.Sprint(i/6))
		}
		b.WriteString("}")
		return func() {
			_, err := s.JSON(b.String(), nil, nil)
			require.NoError(t, err)
		}
	})
}
