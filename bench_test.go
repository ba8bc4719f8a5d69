package agentevents

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/agentevents/agentevents/internal/uuid7"
)

// The four events that the benchmarks measure, by what they stress: a short
// line (T), a text with many bytes (U), raw JSON that is checked (W), a delta
// (D).
func benchPayloads() []struct {
	name    string
	payload Payload
} {
	line := strings.Repeat("ok  	example.com/pkg	0.012s\n", 18)
	args := JSON(`{"query":"select id, title from docs where title match ?","params":["agent events",42,true,null],` +
		`"options":{"limit":50,"offset":0,"order":[{"by":"score","dir":"desc"},{"by":"id","dir":"asc"}],"timeoutMs":1500.5},` +
		`"context":{"repo":"example/agentevents","ref":"refs/heads/main","paths":["internal/wire","cmd"],"depth":3}}`)
	return []struct {
		name    string
		payload Payload
	}{
		{"T", &AgentTransition{From: StatusThinking, To: StatusToolCall, Reason: "tool_call:Read"}},
		{"U", &ToolReturned{CallID: "call-1", ToolID: "Bash", Status: ToolStatusOK, ResultSummary: line[:500], Duration: Some(412 * time.Millisecond), OneEvent: true}},
		{"W", &ToolReturned{CallID: "call-2", ToolID: "db:query", Status: ToolStatusOK, Result: args, Duration: Some(20 * time.Millisecond), OneEvent: true}},
		{"D", &TextDelta{BlockID: "msg_1:0", Delta: "and then the next few words"}},
	}
}

func benchEvent(p Payload) Event {
	return Event{
		ID: "01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2", Sequence: 42, Time: time.Date(2026, 5, 5, 9, 0, 1, 200e6, time.UTC), RunID: "run-1",
		AgentID: "coder", Step: Some(3), SchemaVersion: SchemaVersion, Payload: p,
	}
}

// BenchmarkEncode is the encoder alone.
func BenchmarkEncode(b *testing.B) {
	for _, c := range benchPayloads() {
		b.Run(c.name, func(b *testing.B) {
			ev := benchEvent(c.payload)
			buf := ev.append(nil, ops(ev.Payload))
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				buf = ev.append(buf[:0], ops(ev.Payload))
			}
		})
	}
}

// BenchmarkDecode is one line to one event.
func BenchmarkDecode(b *testing.B) {
	for _, c := range benchPayloads() {
		b.Run(c.name, func(b *testing.B) {
			ev := benchEvent(c.payload)
			line := ev.append(nil, ops(ev.Payload))
			var pool payloadPool
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				var out Event
				if err := parseEvent(string(line), &out, &pool); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// emitBench returns an emit function for the payload that stays legal: the
// agent of T goes round in a circle.
func emitBench(b *testing.B, o EmitterOptions, p Payload) func() {
	em, err := NewEmitter(o)
	if err != nil {
		b.Fatal(err)
	}
	run, err := em.Run("bench")
	if err != nil {
		b.Fatal(err)
	}
	a := run.Agent("coder")
	if err := a.Emit(context.Background(), &AgentStarted{}); err != nil {
		b.Fatal(err)
	}
	circle := []Payload{p}
	if _, ok := p.(*AgentTransition); ok {
		path := []AgentStatus{StatusThinking, StatusToolCall, StatusToolResult, StatusResponse, StatusReflect, StatusThinking}
		circle = nil
		for i := range path[1:] {
			circle = append(circle, &AgentTransition{From: path[i], To: path[i+1], Reason: "tool_call:Read"})
		}
	}
	i := 0
	return func() {
		if err := a.Emit(context.Background(), circle[i]); err != nil {
			b.Fatal(err)
		}
		if i++; i == len(circle) {
			i = 0
		}
	}
}

// overwriter writes the same region of a file again and again, so that a
// benchmark measures the library and not the first touch of fresh pages.
type overwriter struct {
	f   *os.File
	off int64
}

func newOverwriter(b *testing.B) *overwriter {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	if _, err := f.Write(make([]byte, 8<<20)); err != nil {
		b.Fatal(err)
	}
	return &overwriter{f: f}
}

func (o *overwriter) Write(p []byte) (int, error) {
	if o.off+int64(len(p)) > 8<<20 {
		o.off = 0
	}
	n, err := o.f.WriteAt(p, o.off)
	o.off += int64(n)
	return n, err
}

// BenchmarkEventID makes an event's id, and one from google/uuid for comparison.
func BenchmarkEventID(b *testing.B) {
	b.Run("uuid7.Source", func(b *testing.B) {
		var ids uuid7.Source
		b.ReportAllocs()
		for b.Loop() {
			ids.Next(time.Now())
		}
	})
	b.Run("uuid.NewV7", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			id, err := uuid.NewV7()
			if err != nil {
				b.Fatal(err)
			}
			_ = id.String()
		}
	})
}

// BenchmarkEmit is the whole write path: to nothing, to a buffered file, to a
// file and a hook, to two files.
func BenchmarkEmit(b *testing.B) {
	file := func(b *testing.B) Sink { return NewWriter(newOverwriter(b), WriterOptions{BufferSize: 64 << 10}) }
	hook := SinkFunc(func(context.Context, Event) error { return nil })
	for _, sinks := range []struct {
		name string
		make func(b *testing.B) []Sink
	}{
		{"nothing", func(*testing.B) []Sink { return nil }},
		{"file", func(b *testing.B) []Sink { return []Sink{file(b)} }},
		{"file+hook", func(b *testing.B) []Sink { return []Sink{file(b), hook} }},
		{"2files", func(b *testing.B) []Sink { return []Sink{file(b), file(b)} }},
	} {
		for _, c := range benchPayloads() {
			b.Run(sinks.name+"/"+c.name, func(b *testing.B) {
				emit := emitBench(b, EmitterOptions{Lifecycle: LifecycleStrict, Sinks: sinks.make(b)}, c.payload)
				b.ReportAllocs()
				for b.Loop() {
					emit()
				}
			})
		}
	}
}

// BenchmarkEmitGoroutines is the wall time of an event when many goroutines
// emit into runs of their own.
func BenchmarkEmitGoroutines(b *testing.B) {
	for _, n := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			em, err := NewEmitter(EmitterOptions{Lifecycle: LifecycleStrict, Sinks: []Sink{NewWriter(io.Discard, WriterOptions{BufferSize: 64 << 10})}})
			if err != nil {
				b.Fatal(err)
			}
			var wg sync.WaitGroup
			b.ResetTimer()
			for g := range n {
				wg.Go(func() {
					run, err := em.Run(fmt.Sprint("run-", g))
					if err != nil {
						b.Error(err)
						return
					}
					a := run.Agent("coder")
					if err := a.Emit(context.Background(), &AgentStarted{}); err != nil {
						b.Error(err)
						return
					}
					p := &TextDelta{BlockID: "b", Delta: "and then the next few words"}
					for range b.N / n {
						if err := a.Emit(context.Background(), p); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// benchLog returns the log of some runs with the usual mix of kinds.
func benchLog(b *testing.B, runs int) []byte {
	var buf bytes.Buffer
	em, err := NewEmitter(EmitterOptions{Lifecycle: LifecycleStrict, Sinks: []Sink{NewWriter(&buf, WriterOptions{BufferSize: 1 << 20})}})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	payloads := benchPayloads()
	args := payloads[2].payload.(*ToolReturned).Result
	for r := range runs {
		run, err := em.Run(fmt.Sprint("run-", r))
		must(err)
		must(run.Emit(ctx, &RunStarted{Name: "bench"}))
		for n := range 4 {
			a := run.Agent(fmt.Sprint("agent-", n))
			must(a.Emit(ctx, &AgentStarted{Task: "measure"}))
			for step := range 20 {
				block := fmt.Sprint("b", step)
				for range 6 {
					must(a.Emit(ctx, &TextDelta{BlockID: block, Delta: "and then the next few words"}))
				}
				must(a.Emit(ctx, &TextCompleted{BlockID: block, Text: strings.Repeat("and then the next few words", 6)}))
				must(a.To(ctx, StatusToolCall))
				c, err := a.Call(ctx, &ToolCalled{ToolID: "db:query", Arguments: args})
				must(err)
				must(c.Return(ctx, `{"rows":12}`))
				must(a.Emit(ctx, payloads[1].payload))
				must(a.To(ctx, StatusToolResult, StatusResponse, StatusReflect))
				must(a.Emit(ctx, &AuditChecked{CheckpointID: "audit:x", Result: AuditPass}))
				must(a.To(ctx, StatusThinking))
			}
			must(a.Emit(ctx, &AgentEnded{Outcome: OutcomePartial}))
		}
		must(run.Emit(ctx, &RunCompleted{}))
	}
	must(em.Close(ctx))
	return buf.Bytes()
}

// BenchmarkFold is a log to snapshots, over events and straight from the
// reader; BenchmarkRead is the reader alone.
func BenchmarkFold(b *testing.B) {
	log := benchLog(b, 20)
	events := bytes.Count(log, []byte("\n"))
	for _, c := range []struct {
		name string
		fold func(*Reader) ([]*RunSnapshot, error)
	}{
		{"events", func(r *Reader) ([]*RunSnapshot, error) { return foldSeq(r.All(), FoldOptions{}) }},
		{"reader", func(r *Reader) ([]*RunSnapshot, error) { return snapshotsOf(r, FoldOptions{}) }},
		{"2workers", func(r *Reader) ([]*RunSnapshot, error) { return snapshotsOf(r, FoldOptions{Workers: 2}) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(log)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.fold(NewReader(bytes.NewReader(log), ReaderOptions{})); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	log := benchLog(b, 20)
	events := bytes.Count(log, []byte("\n"))
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range NewReader(bytes.NewReader(log), ReaderOptions{}).All() {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}
