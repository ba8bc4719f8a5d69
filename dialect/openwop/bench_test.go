package openwop

import (
	"bytes"
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// The lines that are measured, by what they stress: a short one, one with much
// text, one with raw JSON, a delta.
var benchLines = []struct{ name, line string }{
	{"handoff", `{"eventId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2","runId":"run-1","nodeId":"n1","type":"agent.handoff","payload":{"from":{"agentId":"host:planner"},"to":{"agentId":"host:coder"},"reason":"billing"},"timestamp":"2026-05-05T09:00:01.200Z","sequence":42}`},
	{"reasoned", `{"eventId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2","runId":"run-1","nodeId":"n1","type":"agent.reasoned","payload":{"agentId":"host:coder","reasoning":"` +
		strings.Repeat(`and then the next few words\n`, 18) + `"},"timestamp":"2026-05-05T09:00:01.200Z","sequence":42}`},
	{"called", `{"eventId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2","runId":"run-1","nodeId":"n1","type":"agent.toolCalled","payload":{"agentId":"host:coder","toolId":"db:query","callId":"call-2","arguments":{"query":"select id, title from docs where title match ?","params":["agent events",42,true,null],` +
		`"options":{"limit":50,"offset":0,"order":[{"by":"score","dir":"desc"},{"by":"id","dir":"asc"}],"timeoutMs":1500.5},` +
		`"context":{"repo":"example/agentevents","ref":"refs/heads/main","paths":["internal/wire","cmd"],"depth":3}}},"timestamp":"2026-05-05T09:00:01.200Z","sequence":42}`},
	{"returned", `{"eventId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2","runId":"run-1","nodeId":"n1","type":"agent.toolReturned","payload":{"agentId":"host:coder","toolId":"db:query","callId":"call-2","result":{"rows":12},"durationMs":20},"timestamp":"2026-05-05T09:00:01.200Z","sequence":43,"causationId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2"}`},
	{"delta", `{"eventId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2","runId":"run-1","nodeId":"n1","type":"agent.reasoning.delta","payload":{"agentId":"host:coder","delta":"and then the next few words","sequence":3},"timestamp":"2026-05-05T09:00:01.200Z","sequence":42}`},
	{"kept", `{"eventId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2","runId":"run-1","nodeId":"n1","type":"agent.reasoning.delta","payload":{"agentId":"host:coder","delta":"and then the next few words","sequence":3},"timestamp":"2026-05-05T09:00:01.200Z","sequence":42,"schemaVersion":2}`},
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
			{"openwop", []byte(c.line), NewDecoder(Options{})},
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
		b.Run(c.name+"/openwop", func(b *testing.B) {
			e := NewEncoder(EncoderOptions{})
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
