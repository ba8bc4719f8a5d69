package dialecttest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// A BenchLine is the text that a benchmark reads and writes: one line of the
// document, or several that belong together, without the last newline.
type BenchLine struct {
	Name  string // name of the sub-benchmark
	Lines string // lines of the document, each but the last with its newline
	// Number makes line i of a log of a line of Lines, where lines are numbered. Nil
	// repeats the line unchanged.
	Number func(line string, i int) string
}

// benchLines is the number of lines of the log that BenchmarkDecode reads.
const benchLines = 1000

// BenchmarkDecode measures reading lines through a Reader, beside reading the
// same events from native lines.
func BenchmarkDecode(b *testing.B, d Dialect, lines []BenchLine) {
	for _, l := range lines {
		var log, native strings.Builder
		for i, of := 0, strings.Split(l.Lines, "\n"); i < benchLines; i++ {
			line := of[i%len(of)]
			if l.Number != nil {
				line = l.Number(line, i)
			}
			log.WriteString(line + "\n")
		}
		events, err := d.decode(log.String(), false)
		if err != nil {
			b.Fatal(err)
		}
		for i := range events {
			line, err := events[i].AppendJSON(nil)
			if err != nil {
				b.Fatal(err)
			}
			native.Write(append(line, '\n'))
		}
		b.Run(l.Name+"/"+string(d.Name), func(b *testing.B) { benchReader(b, log.String(), d.Decoder, len(events)) })
		b.Run(l.Name+"/native", func(b *testing.B) { benchReader(b, native.String(), agentevents.NewDecoder, len(events)) })
	}
}

func benchReader(b *testing.B, log string, decoder func() agentevents.Decoder, events int) {
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range agentevents.NewReader(strings.NewReader(log),
			agentevents.ReaderOptions{Decoder: decoder()}).All() {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != events {
			b.Fatalf("%d events, not %d", n, events)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}

// BenchmarkEncode measures writing events, beside writing native lines through the same interface.
// The case "read" writes events as they were read. The case "other" writes the same events without
// the facts that only a line of the document has, as if they had another origin.
func BenchmarkEncode(b *testing.B, d Dialect, lines []BenchLine) {
	for _, l := range lines {
		read, err := d.decode(l.Lines+"\n", false)
		if err != nil {
			b.Fatal(err)
		}
		other := make([]agentevents.Event, len(read))
		for i, ev := range read {
			ev.SessionID, ev.TaskID = "", ""
			other[i] = agentevents.Event{
				ID: ev.ID, Sequence: ev.Sequence, Time: ev.Time, RunID: ev.RunID, Scope: ev.Scope, AgentID: ev.AgentID,
				Step:          ev.Step,
				SchemaVersion: agentevents.SchemaVersion, Payload: ev.Payload,
			}
		}
		for _, from := range []struct {
			name   string
			events []agentevents.Event
		}{{"read", read}, {"other", other}} {
			for _, to := range []struct {
				name string
				enc  dialect.Encoder
			}{{string(d.Name), d.Encoder()}, {"native", dialect.NativeEncoder{}}} {
				b.Run(l.Name+"/"+from.name+"/"+to.name, func(b *testing.B) {
					var buf []byte
					b.ReportAllocs()
					for b.Loop() {
						buf = buf[:0]
						for i := range from.events {
							if buf, err = to.enc.Append(buf, from.events[i]); err != nil {
								b.Fatal(err)
							}
						}
					}
				})
			}
		}
	}
}

// benchLog is the smallest number of events in a log of BenchmarkLog.
const benchLog = 2000

// BenchmarkLog measures writing and reading a whole log, beside writing and reading the same events
// in the native format. It measures only the events that the document can represent. A short log is
// repeated, each time as another run. The events are numbered without gaps.
func BenchmarkLog(b *testing.B, d Dialect, events []agentevents.Event) {
	var said []agentevents.Event
	for enc, n := d.Encoder(), 0; len(said) < benchLog; n++ {
		before := len(said)
		numbers := map[string]uint64{} // of the events that were said, by run
		for _, ev := range events {
			ev.RunID += "-" + strconv.Itoa(n)
			ev.Sequence = numbers[ev.RunID]
			if _, err := enc.Append(nil, ev); err == nil {
				said = append(said, ev)
				numbers[ev.RunID]++
			}
		}
		if len(said) == before {
			b.Fatal("no event can be said")
		}
	}
	write := func(b *testing.B, encoder func() dialect.Encoder) []byte {
		var buf []byte
		var err error
		b.ReportAllocs()
		for b.Loop() {
			enc := encoder()
			buf = buf[:0]
			for i := range said {
				if buf, err = enc.Append(buf, said[i]); err != nil {
					b.Fatal(err)
				}
			}
			if buf, err = enc.End(buf); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(said)), "ns/event")
		return buf
	}
	var log []byte
	b.Run("write/"+string(d.Name), func(b *testing.B) { log = write(b, d.Encoder) })
	b.Run("write/native", func(b *testing.B) { write(b, func() dialect.Encoder { return dialect.NativeEncoder{} }) })
	if log == nil {
		return
	}
	back, err := d.decode(string(log), false)
	if err != nil {
		b.Fatal(err)
	}
	var native []byte
	for i := range back {
		if native, err = (dialect.NativeEncoder{}).Append(native, back[i]); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("read/"+string(d.Name), func(b *testing.B) { benchReader(b, string(log), d.Decoder, len(back)) })
	b.Run("read/native", func(b *testing.B) { benchReader(b, string(native), agentevents.NewDecoder, len(back)) })
}
