package secret

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	{"keys", func(n int) string { return strings.Repeat("-----BEGIN PRIVATE"+" KEY-----\n", n/27) }},
	{"web tokens", func(n int) string { return strings.Repeat("eyJabcdefghij", n/13) }},
	{"web tokens apart", func(n int) string { return strings.Repeat("eyJabcdefghij ", n/14) }},
	{"tokens", func(n int) string { return strings.Repeat("sk-", n/3) }},
	{"URLs", func(n int) string { return strings.Repeat("://a:", n/5) }},
	{"values", func(n int) string { return strings.Repeat(`{"value":"x",`, n/13) }},
	{"assignments", func(n int) string { return strings.Repeat("password=hunter2 ", n/17) }},
	{"flags", func(n int) string { return strings.Repeat("curl -u ", n/8) }},
	{"escapes", func(n int) string { return strings.Repeat(`\\\\u0041%41`, n/11) }},
	{"nested quotes", func(n int) string {
		text := ""
		for i := 0; len(text) < n; i++ {
			text += strings.Repeat(`\`, i%200) + `"password` + strings.Repeat(`\`, i%200) + `":`
		}
		return text
	}},
	{"known beginnings", func(n int) string { return strings.Repeat("value-1", n/7) }},
}

// The time for a text of four times the length is about four times the time.
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
			for _, size := range []int{0, 64} {
				took := func(n int) time.Duration {
					text := h.text(n)
					best := time.Hour
					for range 3 {
						start := time.Now()
						if size == 0 {
							s.Mask(text)
						} else {
							streamed(s, text, size)
						}
						best = min(best, time.Since(start))
					}
					return best
				}
				const n = 16 << 10
				one, four := took(n), took(4*n)
				require.Less(t, four, 10*one+5*time.Millisecond, "%s by %d: %v, %v", h.name, size, one, four)
				require.Less(t, four, time.Second, "%s by %d", h.name, size)
			}
		}
	}
}

// An object may have many names with a registered value: adversary's M3.
func TestManyNamesWithValues(t *testing.T) {
	s := scanner("C4N4RYs3cr3t")
	took := func(n int) time.Duration {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"C4N4RYs3cr3t-%d":1`, i%2)
		}
		_ = b.String()
		b.Reset()
		for i := range n {
			fmt.Fprintf(&b, `,"C4N4RYs3cr3t%s":1`, strings.Repeat("x", i%3)+fmt.Sprint(i))
		}
		start := time.Now()
		_, err := s.JSON("{"+b.String()[1:]+"}", nil, nil)
		require.NoError(t, err)
		return time.Since(start)
	}
	took(1000)
	one, four := took(10_000), took(40_000)
	require.Less(t, four, 10*one+20*time.Millisecond)
}
