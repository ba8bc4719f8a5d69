package openharness

import (
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// The lines of the root's benchmarks, as far as the document has them: a short
// one (T), much text (U), raw JSON (W), a delta (D).
func benchLines() []struct{ name, line string } {
	return []struct{ name, line string }{
		{"T", of("node:start", "")},
		{"U", of("agent:text", `,"content":"`+strings.Repeat(`ok  \texample.com/pkg\t0.012s\n`, 18)+`"`)},
		{"W", of("agent:tool", `,"toolName":"db:query","toolInput":{"query":"select id, title from docs where title match ?","params":["agent events",42,true,null],`+
			`"options":{"limit":50,"offset":0,"order":[{"by":"score","dir":"desc"},{"by":"id","dir":"asc"}],"timeoutMs":1500.5},`+
			`"context":{"repo":"example/agentevents","ref":"refs/heads/main","paths":["internal/wire","cmd"],"depth":3}},"toolOutput":"ok","durationMs":20`)},
		{"D", of("agent:text:delta", `,"content":"and then the next few words"`)},
	}
}

func benchEvent(b *testing.B, line string) agentevents.Event {
	return decodeLines(b, Options{}, line)[0]
}

// BenchmarkDecode is one line to one event; native reads the same event from
// the native format.
func BenchmarkDecode(b *testing.B) {
	for _, c := range benchLines() {
		b.Run(c.name+"/openharness", func(b *testing.B) {
			benchDecoder(b, NewDecoder(Options{RunID: run}), []byte(c.line))
		})
		b.Run(c.name+"/native", func(b *testing.B) {
			ev := benchEvent(b, c.line)
			line, err := ev.AppendJSON(nil)
			if err != nil {
				b.Fatal(err)
			}
			benchReader(b, nil, string(line)+"\n")
		})
		b.Run(c.name+"/reader", func(b *testing.B) {
			benchReader(b, NewDecoder(Options{RunID: run}), c.line+"\n")
		})
	}
}

func benchDecoder(b *testing.B, d agentevents.Decoder, line []byte) {
	var events []agentevents.Event
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if events, err = d.Decode(events[:0], line); err != nil {
			b.Fatal(err)
		}
	}
}

// benchReader reads a line again and again through a Reader, so that both
// formats pay the same for lines.
func benchReader(b *testing.B, d agentevents.Decoder, line string) {
	r := agentevents.NewReader(&endless{line: strings.Repeat(line, 100)}, agentevents.ReaderOptions{Decoder: d})
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	next := 0
	for ev, err := range r.All() {
		if err != nil || ev.Payload == nil {
			b.Fatal(err)
		}
		if next++; next > 0 && !b.Loop() {
			break
		}
	}
}

type endless struct {
	line string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.line[e.at:])
	e.at = (e.at + n) % len(e.line)
	return n, nil
}

// nativeEncoder is what an encoder is compared with, called like one.
var nativeEncoder dialect.Encoder = dialect.NativeEncoder{}

// BenchmarkEncode is one event to one line.
func BenchmarkEncode(b *testing.B) {
	for _, c := range benchLines() {
		ev := benchEvent(b, c.line)
		b.Run(c.name+"/openharness", func(b *testing.B) {
			e := NewEncoder()
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buf, err = e.Append(buf[:0], ev); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/native", func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buf, err = nativeEncoder.Append(buf[:0], ev); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
