package secret

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// ordinary are texts without secrets, 700 bytes long.
var ordinary = []struct{ name, text string }{
	{"prose", fill("The emitter checks every event before it is recorded, and the fold does the same when it reads. So what one accepts the other accepts, too. A delta is a part of a text; I think it is short.\n")},
	{"code", fill("func (s *Scanner) Next(text string) (int, error) {\n\tfor i := 0; i < len(text); i++ {\n\t\tif text[i] == '=' || s.more[i] != nil {\n\t\t\treturn i, s.check(text, i)\n\t\t}\n\t}\n\treturn 0, errEnd\n}\n")},
	{"JSON", fill(`{"path":"internal/x.go","lines":[12,17],"note":"nothing here","deep":{"id":"a1","of":"b","size":3}},`)},
	{"base64", fill("iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg")},
}

func fill(text string) string { return strings.Repeat(text, 700/len(text)+1)[:700] }

// Looking for all marks in words of eight bytes costs 0.3 ns a byte more than a search with
// IndexByte for each in texts of 700 bytes, and less in texts of up to 64.
func BenchmarkMask(b *testing.B) {
	s := scanner()
	for _, o := range ordinary {
		for _, n := range []int{30, 200, 700} {
			text := o.text[:n]
			b.Run(fmt.Sprintf("%s/%d", o.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if len(s.Mask(text)) != n {
						b.Fatal(s.Mask(text))
					}
				}
				perByte(b, n)
			})
		}
	}
}

func BenchmarkStream(b *testing.B) {
	s := scanner()
	for _, o := range ordinary {
		for _, n := range []int{5, 30, 200, 700} {
			b.Run(fmt.Sprintf("%s/%d", o.name, n), func(b *testing.B) {
				b.ReportAllocs()
				st, at := s.Stream(), 0
				for b.Loop() {
					if at+n > len(o.text) {
						at = 0
					}
					if piece := o.text[at : at+n]; !st.Pass(piece) {
						st.Write(piece)
					}
					at += n
				}
				perByte(b, n)
			})
		}
	}
}

// With values that are registered, a text is looked through once more.
func BenchmarkValues(b *testing.B) {
	for _, count := range []int{1, 5000} {
		var values []string
		for i := range count {
			values = append(values, fmt.Sprintf("value-%d-of-many", i*i))
		}
		s := scanner(values...)
		for _, o := range ordinary {
			b.Run(fmt.Sprintf("%s/%d", o.name, count), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Mask(o.text)
				}
				perByte(b, len(o.text))
			})
		}
	}
}

// The cost of JSON beside the cost of Compact, and of Plain, which does not look for secrets. Read
// is the case in which a quiet text saves work.
func BenchmarkJSON(b *testing.B) {
	s := scanner()
	raw := "[" + strings.TrimSuffix(strings.Repeat(`{"path":"internal/x.go","lines":[12,17],"note":"nothing here","deep":{"id":"a1","of":"b","size":3}},`, 7), ",") + "]"
	for _, c := range []struct {
		name string
		do   func() bool
	}{
		{"Plain", func() bool { _, err := jsonwire.Compact(raw); return err == nil }},
		{"Compact", func() bool { _, quiet, err := s.Compact(raw); return quiet && err == nil }},
		{"Read", func() bool { out, err := s.JSON(raw, nil, nil); return out == raw && err == nil }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !c.do() {
					b.Fatal(raw)
				}
			}
			perByte(b, len(raw))
		})
	}
}

func perByte(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/B")
}

// A text without secrets passes a stream as it is, at once, and costs no allocation.
func TestOrdinaryTexts(t *testing.T) {
	s := scanner()
	for _, o := range ordinary {
		require.Equal(t, o.text, s.Mask(o.text))
		require.Zero(t, testing.AllocsPerRun(100, func() { s.Mask(o.text) }), o.name)
		for _, n := range []int{5, 30, 200, 700} {
			st, at, held := s.Stream(), 0, 0
			allocs := testing.AllocsPerRun(100, func() {
				if at+n > len(o.text) {
					at = 0
				}
				if piece := o.text[at : at+n]; !st.Pass(piece) {
					held += n - len(st.Write(piece))
				}
				at += n
			})
			if o.name == "prose" || o.name == "base64" {
				require.Zero(t, held, "%s %d", o.name, n)
			}
			require.Zero(t, allocs, "%s %d", o.name, n)
		}
	}
}
