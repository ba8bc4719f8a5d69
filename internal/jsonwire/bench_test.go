package jsonwire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func BenchmarkAppendString(b *testing.B) {
	for _, bm := range []struct{ name, s string }{
		{"plain", strings.Repeat("The quick brown fox jumps over a dog. ", 14)[:500]},
		{"escaped", strings.Repeat("{\"key\": \"a\\b\"},\n\t", 30)[:500]},
		{"unicode", strings.Repeat("Grüße an die 世界! ", 30)[:500]},
	} {
		b.Run(bm.name, func(b *testing.B) {
			buf := make([]byte, 0, 2048)
			b.SetBytes(int64(len(bm.s)))
			b.ReportAllocs()
			for b.Loop() {
				buf = AppendString(buf[:0], bm.s)
			}
		})
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
