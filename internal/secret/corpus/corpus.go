// Package corpus has texts with secrets and texts that only look so, for tests.
package corpus

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Sample is a text of a corpus. Secrets are the parts that must not come out.
type Sample struct {
	Line    string // in the file; or the name of the sample
	Text    string
	Secrets []string
	Strings int // of JSON that the secrets are in
}

// alphabets are the alphabets of the signs in the files.
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
		if after[0] == '~' {
			b.WriteByte('~')
			line = after[1:]
			continue
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

// Read returns the samples of a file. The first lines of planted.txt explain its format.
func Read(file string) (list []Sample, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		_, text, ok := strings.Cut(line, ": ")
		if !ok {
			return nil, fmt.Errorf("%s: no class: %s", file, line)
		}
		list = append(list, parse(line, expand(text, rng)))
	}
	return list, nil
}

// Again returns the sample of a file with other invented characters.
func (s Sample) Again(seed uint64) Sample {
	_, text, _ := strings.Cut(s.Line, ": ")
	return parse(s.Line, expand(text, rand.New(rand.NewPCG(seed, 0))))
}

// parse takes the signs around secrets out of a text.
func parse(line, text string) Sample {
	s := Sample{Line: line}
	for {
		before, after, ok := strings.Cut(text, "«")
		s.Text += before
		if !ok {
			return s
		}
		inside, rest, _ := strings.Cut(after, "»") // without a » all of it is a secret
		s.Text += inside
		s.Secrets = append(s.Secrets, inside)
		text = rest
	}
}

// InString returns a sample in JSON in strings in each other.
func (s Sample) InString(depth int) Sample {
	s.Strings += depth
	for range depth {
		s.Text = `{"type":"text","text":"` + inJSON(s.Text) + `","n":1}`
		secrets := []string{}
		for _, secret := range s.Secrets {
			secrets = append(secrets, inJSON(secret))
		}
		s.Secrets = secrets
	}
	return s
}

func inJSON(text string) string {
	q := jsonwire.Quote(text)
	return q[1 : len(q)-1]
}

// GotOut returns a part of a secret that is in a text: it, or eight bytes of it.
func (s Sample) GotOut(text string) string {
	for _, secret := range s.Secrets {
		n := min(8, len(secret))
		for i := 0; n > 0 && i+n <= len(secret); i++ {
			if part := secret[i : i+n]; Tells(part) && strings.Contains(text, part) {
				return part
			}
		}
	}
	return ""
}

// Tells reports whether a part of a secret tells something: not the escapes in it, and
// not the first and last line of a key.
func Tells(part string) bool {
	letters := 0
	for i := range len(part) {
		if c := part[i]; '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' {
			letters++
		}
	}
	return letters >= min(len(part), 6) && !strings.Contains(part, "KEY") &&
		!strings.Contains(part, "PRIVATE") && !strings.Contains(part, "BEGIN")
}
