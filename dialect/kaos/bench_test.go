package kaos

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// The lines that are measured, by what they stress: a delta, usage, a tool call
// with arguments that opens and closes, a span that closes with much text, one
// with little.
var benchLines = []struct{ name, line string }{
	{"text", head + `"content":"and then the next few words","type":"text_delta"}`},
	{"usage", head + `"input_tokens":1024,"output_tokens":412,"total_tokens":1436,"cost_usd":0.0125,"source":"respond","type":"usage_observed"}`},
	{"call", spanLine("tool_call", "start", "tool.search", "null", "null", "null",
		`{"tool_name":"search","call_id":"call-1","arguments":{"query":"select id, title from docs where title match ?","params":["agent events",42,true,null],"options":{"limit":50,"offset":0,"order":[{"by":"score","dir":"desc"},{"by":"id","dir":"asc"}],"timeoutMs":1500.5},"context":{"repo":"example/agentevents","ref":"refs/heads/main","paths":["internal/wire","cmd"],"depth":3}}}`) + "\n" +
		spanLine("tool_call", "complete", "tool.search", "412.125", "null", "null", `{"tool_name":"search","call_id":"call-1","result_summary":"50 rows","is_error":false}`)},
	{"complete", spanLine("tool_call", "complete", "tool.Bash", "412.125", "null", "null",
		`{"tool_name":"Bash","call_id":"call-1","result_summary":"`+strings.Repeat(`ok  \texample.com/pkg\t0.012s\n`, 16)+`","is_error":false}`)},
	{"step", spanLine("step", "complete", "step.s001", "412.125", "null", "null", `{"step_id":"s001","result_summary":"done","is_error":false}`)},
}

// BenchmarkDecode is one line to one event, and the same event from its native
// line through the same reader.
func BenchmarkDecode(b *testing.B) {
	for _, c := range benchLines {
		const lines = 1000
		var log, nativeLog []byte
		for i, of := 0, strings.Split(c.line, "\n"); i < lines; i++ { // numbered as a run is
			log = append(log, strings.Replace(of[i%len(of)], `"sequence":0`, `"sequence":`+strconv.Itoa(i), 1)+"\n"...)
		}
		for _, ev := range decodeAll(b, string(log)) {
			var err error
			if nativeLog, err = ev.AppendJSON(nativeLog); err != nil {
				b.Fatal(err)
			}
			nativeLog = append(nativeLog, '\n')
		}
		for _, way := range []struct {
			name    string
			log     []byte
			decoder func() agentevents.Decoder
		}{
			{"kaos", log, func() agentevents.Decoder { return NewDecoder(testOptions) }},
			{"native", nativeLog, func() agentevents.Decoder { return nil }},
		} {
			b.Run(c.name+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					n := 0
					for _, err := range agentevents.NewReader(bytes.NewReader(way.log), agentevents.ReaderOptions{Decoder: way.decoder()}).All() {
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
		events := decodeAll(b, c.line)
		b.Run(c.name+"/kaos", func(b *testing.B) {
			e := NewEncoder(encoderOptions)
			var buf []byte
			var err error
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				ev := events[n%uint64(len(events))]
				ev.Sequence = n
				if buf, err = e.Append(buf[:0], ev); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/native", func(b *testing.B) {
			var buf []byte
			var err error
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if buf, err = nativeEncoder.Append(buf[:0], events[n%len(events)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
