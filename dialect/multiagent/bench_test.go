package multiagent

import (
	"bytes"
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// benchLines are what is measured, by what they stress: a short line, much
// text, raw JSON, an agent's end.
var benchLines = []struct{ name, line string }{
	{"phase", wire("workflow.phase.started", `{"workflowId":"w1","phase":"audit","inputCount":12}`)},
	{"returned", wire("tool.call.completed", `{"callId":"call-1","toolId":"Bash","status":"ok","resultSummary":"`+strings.Repeat(`ok  \texample.com/pkg\t0.012s\n`, 16)+`","durationMs":412}`)},
	{"called", wire("tool.call.started", `{"callId":"call-2","toolId":"db:query","arguments":{"query":"select id, title from docs where title match ?","params":["agent events",42,true,null],`+
		`"options":{"limit":50,"offset":0,"order":[{"by":"score","dir":"desc"},{"by":"id","dir":"asc"}],"timeoutMs":1500.5},`+
		`"context":{"repo":"example/agentevents","ref":"refs/heads/main","paths":["internal/wire","cmd"],"depth":3}}}`)},
	{"ended", wire("agent.completed", `{"agentId":"planner","tokens":512,"durationMs":3000,"workflowId":"w1","phase":"audit","outcome":"converged","numTurns":3}`)},
}

// BenchmarkDecode is one line to one event, and the same event from its native
// line through the same reader.
func BenchmarkDecode(b *testing.B) {
	for _, c := range benchLines {
		events := decode(b, Options{}, c.line)
		line, err := events[0].AppendJSON(nil)
		if err != nil {
			b.Fatal(err)
		}
		bare := event(events[0].Payload)
		bare.Scope, bare.TaskID = events[0].Scope, ""
		plain, err := bare.AppendJSON(nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, way := range []struct {
			name    string
			line    []byte
			decoder agentevents.Decoder
		}{
			{"multiagent", []byte(c.line), NewDecoder(Options{})},
			{"native", line, nil},
			{"native-plain", plain, nil}, // without the extra member
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

// BenchmarkEncode is one event to one line, and to its native line: one that was
// read here, and one of another origin, for which much is made up.
func BenchmarkEncode(b *testing.B) {
	for _, c := range benchLines {
		read := decode(b, Options{}, c.line)[0]
		other := agentevents.Event{
			ID: read.ID, Time: read.Time, RunID: read.RunID, AgentID: read.AgentID, SchemaVersion: read.SchemaVersion, Payload: read.Payload,
			Scope: agentevents.Scope{WorkflowID: read.WorkflowID, Phase: read.Phase},
		}
		for _, from := range []struct {
			name string
			ev   agentevents.Event
		}{{"read", read}, {"other", other}} {
			b.Run(c.name+"/"+from.name+"/multiagent", func(b *testing.B) {
				e := NewEncoder()
				var buf []byte
				var err error
				b.ReportAllocs()
				for b.Loop() {
					if buf, err = e.Append(buf[:0], from.ev); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(c.name+"/"+from.name+"/native", func(b *testing.B) {
				var buf []byte
				var err error
				b.ReportAllocs()
				for b.Loop() {
					if buf, err = nativeEncoder.Append(buf[:0], from.ev); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
