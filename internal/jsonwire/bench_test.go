package jsonwire

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// benchText returns n bytes of s over and over.
func benchText(s string, n int) string { return strings.Repeat(s, n/len(s)+1)[:n] }

// benchTexts are strings as events have them: ids, names, messages, and output of tools.
func benchTexts() []struct{ name, s string } {
	const fox = "The quick brown fox jumps over a dog. "
	type bm = struct{ name, s string }
	var out []bm
	for _, n := range []int{5, 8, 14, 27, 36, 100, 500, 20000} {
		out = append(out, bm{"plain" + strconv.Itoa(n), benchText(fox, n)})
	}
	return append(out,
		bm{"tabs500", benchText("ok  \texample.com/pkg\t0.012s\n", 500)},
		bm{"json500", benchText("{\"key\": \"a\\b\"},\n\t", 500)},
		bm{"mixed500", strings.ToValidUTF8(benchText("Grüße an die 世界! ", 500), "")},
		bm{"german500", strings.ToValidUTF8(benchText("Die Straße führt über die alte Brücke nach Süden und endet am Fluss. ", 500), "")},
		bm{"japanese500", strings.ToValidUTF8(benchText("吾輩は猫である。名前はまだ無い。", 500), "")},
	)
}

func BenchmarkAppendString(b *testing.B) {
	for _, bm := range benchTexts() {
		b.Run(bm.name, func(b *testing.B) {
			buf := make([]byte, 0, 64<<10)
			b.SetBytes(int64(len(bm.s)))
			b.ReportAllocs()
			for b.Loop() {
				buf = AppendString(buf[:0], bm.s)
			}
		})
	}
}

// Many short strings, no two of the same length in a row: the cost of one that
// the processor could not foresee.
func BenchmarkAppendStrings(b *testing.B) {
	for _, bm := range []struct {
		name   string
		append func([]byte, string) []byte
	}{{"now", AppendString}, {"twoPass", appendStringTwoPass}} {
		names := benchNames()
		b.Run(bm.name, func(b *testing.B) {
			buf := make([]byte, 0, 64<<10)
			b.ReportAllocs()
			for b.Loop() {
				buf = buf[:0]
				for _, s := range names {
					buf = bm.append(buf, s)
				}
			}
		})
	}
}

// benchNames returns a thousand plain strings of 1 to 40 bytes.
func benchNames() []string {
	rng := rand.New(rand.NewPCG(1, 2))
	names := make([]string, 1000)
	for i := range names {
		names[i] = benchText("call_01HZX3-agent.toolCalled ", 1+rng.IntN(40))
	}
	return names
}

// The design that lost: to look whether the whole string is plain, which most
// are, and copy it then; to copy the plain parts otherwise.
func BenchmarkAppendStringTwoPass(b *testing.B) {
	for _, bm := range benchTexts() {
		b.Run(bm.name, func(b *testing.B) {
			buf := make([]byte, 0, 64<<10)
			b.SetBytes(int64(len(bm.s)))
			b.ReportAllocs()
			for b.Loop() {
				buf = appendStringTwoPass(buf[:0], bm.s)
			}
		})
	}
}

func appendStringTwoPass(dst []byte, s string) []byte {
	if plainText(s) {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"')
	}
	dst = append(dst, '"')
	start := 0 // s[start:i] is plain and not yet copied
	for i := 0; ; {
		i = plainRun(s, i)
		if i == len(s) {
			break
		}
		for i < len(s) {
			c := s[i]
			if c >= utf8.RuneSelf {
				r, size := utf8.DecodeRuneInString(s[i:])
				if r != utf8.RuneError || size > 1 {
					i += size
					continue
				}
				dst = append(dst, s[start:i]...)
				dst = append(dst, "\uFFFD"...)
			} else if endsRun(c) {
				dst = append(dst, s[start:i]...)
				if short := twoByteEscapes[c]; short != 0 {
					dst = append(dst, '\\', short)
				} else {
					dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
				}
			} else {
				break
			}
			i++
			start = i
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func plainRun(s string, i int) int {
	for ; i+8 <= len(s); i += 8 {
		if m := nonPlain(Load64(s, i)); m != 0 {
			return i + firstByte(m)
		}
	}
	for i < len(s) && s[i] < utf8.RuneSelf && !endsRun(s[i]) {
		i++
	}
	return i
}

var twoByteEscapes = [256]byte{
	'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't',
}

// Reading the same strings, as the value of a member in a line.
func BenchmarkScanString(b *testing.B) {
	for _, bm := range benchTexts() {
		text := Quote(bm.s) + `,"sequence":12}`
		b.Run(bm.name, func(b *testing.B) {
			b.SetBytes(int64(len(bm.s)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := scanString(text, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMember(b *testing.B) {
	const text = `{"id":"01J0000000000000000000","sequence":12,"timestamp":"2024-02-29T12:34:56.789Z","type":"agent.toolCalled","runId":"r1"}`
	var s Scanner
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(text)
		if err := s.Object(); err != nil {
			b.Fatal(err)
		}
		for {
			_, ok, err := s.Member()
			if err != nil {
				b.Fatal(err)
			}
			if !ok {
				break
			}
			if s.Kind() == '"' {
				_, err = s.String()
			} else {
				_, err = s.Int()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkAppendTime(b *testing.B) {
	t := time.Date(2024, 2, 29, 12, 34, 56, 789e6, time.UTC)
	buf := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendTime(buf[:0], t)
	}
}

func BenchmarkTime(b *testing.B) {
	var s Scanner
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(`"2024-02-29T12:34:56.789Z"`)
		if _, err := s.Time(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMillis(b *testing.B) {
	var s Scanner
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(`1234.567`)
		if _, err := s.Millis(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRaw(b *testing.B) {
	var s Scanner
	b.SetBytes(int64(len(nested)))
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(nested)
		if _, err := s.Raw(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompact(b *testing.B) {
	var indented strings.Builder
	enc := json.NewEncoder(&indented)
	enc.SetIndent("", "  ")
	if err := enc.Encode(json.RawMessage(nested)); err != nil {
		b.Fatal(err)
	}
	for _, bm := range []struct{ name, s string }{{"compact", nested}, {"indented", indented.String()}} {
		b.Run(bm.name, func(b *testing.B) {
			b.SetBytes(int64(len(bm.s)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Compact(bm.s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// plainText reports whether s is ASCII without anything to escape, so that it stands
// between quotes as it is.
func plainText(s string) bool {
	if len(s) < 8 {
		for i := range len(s) {
			if s[i] >= utf8.RuneSelf || endsRun(s[i]) {
				return false
			}
		}
		return true
	}
	for i := 0; i+8 <= len(s); i += 8 {
		if nonPlain(Load64(s, i)) != 0 {
			return false
		}
	}
	return nonPlain(Load64(s, len(s)-8)) == 0 // the rest, and some bytes again
}
