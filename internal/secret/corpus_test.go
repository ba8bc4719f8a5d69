package secret

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A sample is a text of the corpus. secrets are the parts that must not come out.
type sample struct {
	line    string
	text    string
	secrets []string
}

// alphabets are those of the signs of the corpus.
var alphabets = map[byte]string{
	'a': "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
	'A': "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
	'h': "0123456789abcdef",
	's': "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_",
	'b': "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/",
	'd': "0123456789",
	'n': "abcdefghijklmnopqrstuvwxyz",
}

// expand puts invented characters in the place of signs.
func expand(line string, rng *rand.Rand) string {
	line = strings.NewReplacer("⏎", "\n", "⇥", "\t", "~PEM", "PRIVATE", "~u", "~h8-~h4-~h4-~h4-~h12").Replace(line)
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(line, "~")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		n := 1
		for n < len(after) && after[n]-'0' <= 9 {
			n++
		}
		count, err := strconv.Atoi(after[1:n])
		if err != nil {
			panic(line)
		}
		set := alphabets[after[0]]
		for i := range count {
			c := set[rng.IntN(len(set))]
			switch { // a digit and letters are in each, and a secret does not end in a sign
			case i == 2 && after[0] != 'n':
				c = '7'
			case i == 1 && after[0] == 'a':
				c = 'k'
			case (i == 0 || i == count-1) && strings.IndexByte("+/-_", c) >= 0:
				c = 'x'
			}
			b.WriteByte(c)
		}
		line = after[n:]
	}
}

// corpus returns the samples of a file.
func corpus(t testing.TB, file string) (list []sample) {
	data, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		_, text, ok := strings.Cut(line, ": ")
		require.True(t, ok, line)
		s := sample{line: line}
		text = expand(text, rng)
		for part := range strings.SplitSeq(text, "«") {
			inside, rest, ok := strings.Cut(part, "»")
			switch {
			case ok:
				s.secrets = append(s.secrets, inside)
				s.text += inside + rest
			case s.text != "" || strings.HasPrefix(text, "«"):
				if strings.Contains(text, "«"+part) {
					s.secrets = append(s.secrets, part)
				}
				s.text += part
			default:
				s.text = part
			}
		}
		list = append(list, s)
	}
	return list
}

// inString returns a sample in JSON in strings in each other.
func (s sample) inString(depth int) sample {
	quote := func(text string) string { q := jsonwire.Quote(text); return q[1 : len(q)-1] }
	for range depth {
		s.text = `{"type":"text","text":"` + quote(s.text) + `","n":1}`
		secrets := []string{}
		for _, secret := range s.secrets {
			secrets = append(secrets, quote(secret))
		}
		s.secrets = secrets
	}
	return s
}

// gotOut returns a part of a secret that is in a text: it, or eight bytes of it.
func gotOut(text string, s sample) string {
	for _, secret := range s.secrets {
		n := min(8, len(secret))
		for i := 0; n > 0 && i+n <= len(secret); i++ {
			part := secret[i : i+n]
			if plain(part) && strings.Contains(text, part) {
				return part
			}
		}
	}
	return ""
}

// plain reports whether a part of a secret tells something: not the escapes in it, and
// not the first and last line of a key.
func plain(part string) bool {
	letters := 0
	for i := range len(part) {
		if alnum[part[i]] {
			letters++
		}
	}
	return letters >= min(len(part), 6) && !strings.Contains(part, "KEY") && !strings.Contains(part, "PRIVATE") && !strings.Contains(part, "BEGIN")
}

func TestPlanted(t *testing.T) {
	s := scanner()
	n, bad := 0, 0
	for _, base := range corpus(t, "planted.txt") {
		for depth := range 4 {
			c := base.inString(depth)
			n++
			masked := s.Mask(c.text)
			part := gotOut(masked, c)
			if depth > 0 && part == "" {
				js, err := s.JSON(c.text, nil, nil)
				require.NoError(t, err, c.line)
				if part = gotOut(js, c); part != "" {
					masked = js
				}
			}
			for size := 1; size <= 17 && part == ""; size++ {
				masked = streamed(s, c.text, size)
				part = gotOut(masked, c)
			}
			if part != "" {
				bad++
				t.Errorf("%d: %s\n%q got out:\n%s", depth, c.line, part, masked)
				break
			}
		}
	}
	t.Logf("%d texts, %d bad", n, bad)
	require.GreaterOrEqual(t, n, 4*420)
}

func TestHarmless(t *testing.T) {
	s := scanner()
	n := 0
	for _, base := range corpus(t, "harmless.txt") {
		for depth := range 2 {
			c := base.inString(depth)
			n++
			if masked := s.Mask(c.text); masked != c.text {
				t.Errorf("%s\n%s", c.line, masked)
				break
			}
			for size := 1; size <= 17; size++ {
				require.Equal(t, c.text, streamed(s, c.text, size), c.line)
			}
			if jsonwire.Valid(c.text) == nil {
				js, err := s.JSON(c.text, nil, nil)
				require.NoError(t, err)
				if js != c.text {
					t.Errorf("as JSON: %s\n%s", c.line, js)
				}
			}
		}
	}
	require.GreaterOrEqual(t, n, 2*420)
}
