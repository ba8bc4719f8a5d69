package kahn

import (
	"bytes"
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// The lines that are measured, by what they stress: a short one and one with
// much text.
var benchLines = []struct{ name, line string }{
	{"transition", `{"ts":"2026-05-05T09:00:01.200Z","run_id":"agent-coder-1","event":"agent_transition","agent_id":"coder","step":3,"from":"thinking","to":"tool_call","reason":"tool_call:Read"}`},
	{"invocation", `{"ts":"2026-05-05T09:00:01.250Z","run_id":"agent-coder-1","event":"tool_invocation","agent_id":"coder","step":3,"tool_name":"Bash","duration_s":0.412,"ok":true,"output_summary":"` +
		strings.Repeat(`ok  \texample.com/pkg\t0.012s\n`, 16) + `"}`},
}

// BenchmarkDecode is one line to one event, and the same event from its native
// line through the same reader.
func BenchmarkDecode(b *testing.B) {
	for _, c := range benchLines {
		events, err := NewDecoder(Options{}).Decode(nil, []byte(c.line))
		if err != nil {
			b.Fatal(err)
		}
		native, err := events[0].AppendJSON(nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, way := range []struct {
			name    string
			line    []byte
			decoder agentevents.Decoder
		}{
			{"kahn", []byte(c.line), NewDecoder(Options{})},
			{"native", native, nil},
		} {
			const lines = 1000
			log := bytes.Repeat(append(way.line, '\n'), lines)
			b.Run(c.name+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					n := 0
					for _, err := range agentevents.NewReader(bytes.NewReader(log), agentevents.ReaderOptions{Decoder: way.decoder}).All() {
						if err != nil {
							b.Fatal(err)
						}
						n++
					}
					if n != lines {
						b.Fatal(n)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lines, "ns/event")
			})
		}
	}
}

// nativeEncoder is what an encoder is compared with, called like one.
var nativeEncoder dialect.Encoder = dialect.NativeEncoder{}

// BenchmarkEncode is one event to one line, and to its native line.
func BenchmarkEncode(b *testing.B) {
	for _, c := range benchLines {
		events, err := NewDecoder(Options{}).Decode(nil, []byte(c.line))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name+"/kahn", func(b *testing.B) {
			e := NewEncoder()
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				if buf, err = e.Append(buf[:0], events[0]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/native", func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				if buf, err = nativeEncoder.Append(buf[:0], events[0]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
