package secret

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
)

// same fails if the stream of a text differs from the masked whole.
func same(t testing.TB, s *Scanner, text string, sizes ...int) {
	t.Helper()
	want, got := s.Mask(text), streamed(s, text, sizes...)
	if want != got {
		require.Equal(t, want, got, "%q %v", text, sizes)
	}
}

// Parts of the corpus, one after the other, are cut anywhere.
func TestStreamsOfPartsOfTheCorpus(t *testing.T) {
	s := scanner("C4N4RYs3cr3t", "abcdef", "defghi", "ababab", "p%a\"ss\nw", "1234567890", "password")
	plain := scanner() // a stream that passes calm text
	var texts []string
	for _, file := range []string{"planted.txt", "harmless.txt"} {
		for _, c := range samples(t, file) {
			texts = append(texts, c.Text, c.InString(1).Text)
		}
	}
	part := func(rng *rand.Rand) string {
		text := texts[rng.IntN(len(texts))]
		switch rng.IntN(4) {
		case 0:
			return text
		case 1:
			return text[rng.IntN(len(text)):]
		}
		from := rng.IntN(len(text))
		return text[from : from+rng.IntN(len(text)-from+1)]
	}
	rng := rand.New(rand.NewPCG(3, 4))
	n := effort.Of(4_000, 40_000, 400_000)
	for range n {
		text := ""
		for range 1 + rng.IntN(4) {
			text += part(rng)
		}
		same(t, s, text, 1+rng.IntN(17), 1+rng.IntN(40), 1+rng.IntN(5), 1+rng.IntN(400))
		same(t, plain, text, 8+rng.IntN(17), 1+rng.IntN(40), 8+rng.IntN(5))
	}
}

// A backslash after a quote may belong to the value, or to the quote that follows.
func TestBackslashesBeginValues(t *testing.T) {
	for _, text := range []string{`token\":\"\8Jsp4XgJhSxBexample.co""n":1}`, `token\":\"\" x`, `{"password":"\u0041bc"}`, `password: """\abc"""`} {
		same(t, scanner(), text, 1)
		same(t, scanner(), text, 11, 21, 5)
	}
}

// Texts end at, before and after each limit that a form has.
func TestTextsThatEndAtALimit(t *testing.T) {
	s := scanner()
	beginnings := []string{
		"password=", "password: ", `password="`, `{"password":"`, `{"password":`, `"value":"`, "password ", "Authorization: Basic ", "https://", "https://u:", "https://u:p@", "--password ", "-----BEGIN ",
		"-----BEGIN PRIVATE KEY-----", `{"key":"`, `{"name":"password","value":"`, "Bearer ", "password == ", "password=(", "| password | ", "password -> ", "password=&quot;", "password%3A", "**password:** ", "x -Password ", "?key=", "$", "<", `\`, `"`, "4", "",
	}
	for _, token := range tokens {
		beginnings = append(beginnings, token.prefix)
	}
	for _, begin := range beginnings {
		for _, filler := range []string{"a", "7", "aB7", "-", ".", " ", `\`, `"`, "=", ":", "/", "@", "é", "a."} {
			for _, limit := range []int{4, 8, 16, 32, 64, 128, 256, maxHeader} {
				for n := limit - 2; n <= limit+2; n++ {
					whole := begin + strings.Repeat(filler, n)[:n]
					_ = s.Mask(whole)
					if limit == maxHeader && filler == "a" || limit == enough {
						same(t, s, whole, 4)
					}
				}
			}
		}
	}
}

// FuzzStream looks for a cut with which a stream differs from the masked whole.
func FuzzStream(f *testing.F) {
	for _, file := range []string{"planted.txt", "harmless.txt"} {
		for _, c := range samples(f, file) {
			f.Add(c.Text, uint8(1), uint8(3))
			f.Add(c.InString(2).Text, uint8(7), uint8(200))
		}
	}
	s, plain := scanner("C4N4RYs3cr3t", "abcdef", "defghi", "ababab", "p%a\"ss\nw"), scanner()
	f.Fuzz(func(t *testing.T, text string, a, b uint8) {
		same(t, s, text, 1+int(a), 1+int(b))
		same(t, s, text, 1)
		same(t, plain, text, 8+int(a)%57, 1+int(b))
	})
}

// A bracket may begin a value that a program makes, or be a part of a value.
func TestBracketsBeginValues(t *testing.T) {
	for _, open := range []string{"(", "[", "{", "<"} {
		for _, value := range []string{"iduuid1234567890", "id uuid PRIMARY KEY, token text NOT NULL, expires timestamptz);", `"8Jsp4XgJhSxBexample"`, `env("A")`, "see below)"} {
			for _, name := range []string{"Authorization: ", "Cookie: ", "password=", "API_KEY = ", `"token": `} {
				for size := range 7 {
					same(t, scanner(), name+open+value, 1+size)
				}
			}
		}
	}
}
