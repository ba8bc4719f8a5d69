package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/bench/mix"
)

// These tests check that the compared programs do the same. They time nothing.

func TestEncodersWriteTheSameValue(t *testing.T) {
	for _, s := range samples {
		want, err := s.event.AppendJSON(nil)
		require.NoError(t, err)
		t.Logf("%s: %d bytes", s.name, len(want))
		for _, m := range marshalers {
			got, err := m.marshal(m.mirror(s))
			require.NoError(t, err, m.name)
			require.JSONEq(t, string(want), string(got), m.name)
		}
		var buf bytes.Buffer
		log := newZerolog(&buf)
		logSample(&log, s)
		require.JSONEq(t, string(want), buf.String(), "zerolog")
	}
}

// fixedStamp is the time of all stamps, so that emitter and floor write the same lines.
var fixedStamp = time.Date(2026, 5, 5, 9, 0, 1, 412e6, time.UTC)

const fixedID = "01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2"

func (st *stamp) fix() {
	st.time = fixedStamp
	copy(st.id[:], fixedID)
	copy(st.cause[:], fixedID)
}

func TestFloorAndZerologWriteTheLinesOfEmit(t *testing.T) {
	for _, l := range loads {
		var want bytes.Buffer
		file := func() (ae.Sink, error) { return ae.NewWriter(&want, ae.WriterOptions{}), nil }
		o := ae.EmitterOptions{Clock: func() time.Time { return fixedStamp }, NewID: func() string { return fixedID }}
		emit, err := l.emitter(o, file)()
		require.NoError(t, err)
		want.Reset() // drop the lines of the start

		var plain, logged bytes.Buffer
		log := newZerolog(&logged)
		st := newStamp()
		for i, p := range l.payloads {
			require.NoError(t, emit(i))
			st.next(p)
			st.fix()
			line, err := st.appendLine(nil, p)
			require.NoError(t, err)
			plain.Write(append(line, '\n'))
			logStamped(&log, st, string(kindOf(p)), l.mirrors[i].(zerolog.LogObjectMarshaler))
		}
		require.Equal(t, want.String(), plain.String(), l.name)
		wantLines, gotLines := strings.Split(want.String(), "\n"), strings.Split(logged.String(), "\n")
		require.Len(t, gotLines, len(wantLines))
		for i := range len(wantLines) - 1 {
			require.JSONEq(t, wantLines[i], gotLines[i], "zerolog, %s", l.name)
		}
	}
}

// Every load stays legal when it is repeated, in every emitter of the table.
func TestLoads(t *testing.T) {
	scratch = t.TempDir()
	for _, l := range loads {
		for name, setup := range map[string]func() (func(int) error, error){
			"emit": l.emitter(ae.EmitterOptions{}, fileSink, hookSink), "floor": l.floor, "zerolog": l.zerolog, "eventlogger": l.eventlogger,
		} {
			op, err := l.op(setup)
			require.NoError(t, err)
			for range 50 {
				require.NoError(t, op(), "%s, %s", name, l.name)
			}
		}
		loop, err := l.goroutines(3).setup()
		require.NoError(t, err)
		require.NoError(t, loop(50))
	}
}

func TestStampIDsAreUUIDs(t *testing.T) {
	st := newStamp()
	last := ""
	for range 10_000 {
		st.next(loads[0].payloads[0])
		id := string(st.id[:])
		require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
		require.Less(t, last, id)
		last = id
	}
}

// smallLog is a small mix with every kind.
var smallLog = sync.OnceValue(func() []byte {
	var buf bytes.Buffer
	if err := mix.Write(&buf, mix.Options{Lines: 20_000, Runs: 40}); err != nil {
		panic(err)
	}
	return buf.Bytes()
})

func TestFoldsAgree(t *testing.T) {
	want, err := foldLog(smallLog())
	require.NoError(t, err)
	for _, s := range want {
		require.Zero(t, s.ViolationCount)
	}

	// The library's fold, of events that peers decoded.
	agree := func(name string, got []*ae.RunSnapshot, err error) {
		require.NoError(t, err, name)
		require.Len(t, got, len(want), name)
		for i := range want {
			require.Equal(t, string(want[i].AppendJSON(nil)), string(got[i].AppendJSON(nil)), name)
		}
	}
	for _, d := range decoders {
		got, err := foldEvents(d.events(smallLog()))
		agree(d.name, got, err)
	}
	if simdjsonSupported() == nil {
		got, err := foldEvents(simdjsonEvents(smallLog()))
		agree("simdjson-go", got, err)
	}

	// The hand folds agree with each other and with the library's fold.
	hand, err := handFoldLog(smallLog())
	require.NoError(t, err)
	text := 0
	for _, a := range hand {
		text += a.text
	}
	require.NotZero(t, text)
	for _, s := range want {
		calls := map[bool]float64{}
		for id, a := range s.Agents {
			h := hand[agentKey{s.RunID, id}]
			require.NotNil(t, h)
			require.Equal(t, string(a.Status), h.status)
			require.Equal(t, a.Step.V, h.step)
			require.Equal(t, a.Transitions, h.transitions)
			require.Equal(t, a.ToolCalls, h.calls)
			require.Equal(t, a.ToolFailures, h.failures)
			require.Zero(t, h.illegal)
			calls[true] += h.durationMs
		}
		for _, tool := range s.Tools {
			calls[false] += tool.Duration.Seconds() * 1e3
		}
		require.InDelta(t, calls[false], calls[true], 0.01)
	}
	same := func(name string, got handFold, err error) {
		require.NoError(t, err, name)
		require.Len(t, got, len(hand), name)
		for key, a := range hand {
			b := *got[key]
			require.InDelta(t, a.durationMs, b.durationMs, 0.01, name)
			b.durationMs = a.durationMs
			require.Equal(t, *a, b, name)
		}
	}
	for _, d := range decoders {
		got, err := d.handFold(smallLog())
		same(d.name, got, err)
	}
	got, err := foldFastjson(smallLog())
	same("fastjson", got, err)
	if simdjsonSupported() == nil {
		got, err := foldSimdjson(smallLog())
		same("simdjson-go", got, err)
	}
}

// FoldAll and FoldReader make the same snapshots, with any number of workers.
func TestFoldsOfTheLibraryAgree(t *testing.T) {
	want, err := foldEvents(readLog(smallLog()))
	require.NoError(t, err)
	for _, workers := range []int{1, 2, 3} {
		got, err := snapshots(ae.FoldLog(ae.NewReader(bytes.NewReader(smallLog()), ae.ReaderOptions{}), ae.FoldOptions{Workers: workers}))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// The damaged lines are what F7 says: json/v2 refuses all of them, and accepts the line
// from which they were made.
func TestDamagedLines(t *testing.T) {
	require.Len(t, damaged, 11)
	var v any
	for _, d := range damaged {
		require.Error(t, jsonv2.Unmarshal([]byte(d.line), &v), d.name)
	}
	good := strings.NewReplacer(`\ud83d`, "", `,"late":tru`, "").Replace(damaged[9].line)
	require.NoError(t, jsonv2.Unmarshal([]byte(good), &v))
	_, err := foldLog([]byte(good + "\n"))
	require.NoError(t, err)
	r, err := refused()
	require.NoError(t, err)
	require.Equal(t, "11 of 11", r.measured)
}

func TestAGUI(t *testing.T) {
	c := aguiComparison()
	for _, cell := range []*cell{c.pairs[0].ours, c.pairs[0].theirs} {
		loop, err := cell.setup()
		require.NoError(t, err)
		require.NoError(t, loop(3))
	}
	require.True(t, json.Valid([]byte(aguiDelta)))
}

// Hook and hand make the same spans.
func TestTracersMakeTheSameSpans(t *testing.T) {
	made := func(make func(trace.TracerProvider) runRecorder) (spans []string) {
		out := tracetest.NewInMemoryExporter()
		make(sdktrace.NewTracerProvider(sdktrace.WithSyncer(out)))("run-1")
		for _, s := range out.GetSpans() {
			slices.SortFunc(s.Attributes, func(a, b attribute.KeyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
			spans = append(spans, fmt.Sprint(s.Name, s.SpanKind, s.Parent.IsValid(), s.StartTime, s.EndTime, s.Attributes, s.Events, s.Links, s.Status))
		}
		return spans
	}
	want := made(handRecorder)
	require.Len(t, want, 2+2*turns)
	require.Equal(t, want, made(hookRecorder))
	require.Len(t, runLog, runEvents)
}

// The same pair as in the table, for profiles and -benchmem: an operation is a run.
func BenchmarkTracing(b *testing.B) {
	for name, make := range map[string]func(trace.TracerProvider) runRecorder{"hook": hookRecorder, "by hand": handRecorder} {
		b.Run(name, func(b *testing.B) {
			record := make(recording())
			b.ReportAllocs()
			for i := range b.N {
				record(fmt.Sprintf("run-%09d", i))
			}
		})
	}
}

// measured is a cell with figures.
func measured(name string, ns ...float64) *cell { return &cell{name: name, ns: ns} }

func TestTable(t *testing.T) {
	a, b := measured("a", 100, 110, 90), measured("b", 500, 520, 480)
	logged := measured("c", 250)
	logged.bytes, logged.events = 1000, 2
	gone := &cell{name: "d", missing: errors.New("no such CPU")}
	var rows []row
	for _, c := range []comparison{
		compare("M1", "a / b", atMost(1.15), b, a),
		compare("E2", "a / b", atLeast(5), a, b),
		compare("E2", "a / b", atLeast(5.01), a, b),
		{goal: "E2", what: "mean", bar: atLeast(2), pairs: []pair{{a, b}, {measured("x", 100, 100, 100), measured("y", 2000, 2000, 2000)}}},
		compare("F1", "information", bar{}, logged, logged),
		compare("F2", "not here", atLeast(2), a, gone),
		{goal: "F7", what: "counted", direct: func() (row, error) { return allocRow(1.5), nil }},
	} {
		r, err := c.row()
		require.NoError(t, err)
		rows = append(rows, r)
	}
	rows = byGoal(rows)
	var out bytes.Buffer
	require.NoError(t, writeTable(&out, rows))
	require.Equal(t, `
goal  what         bar      measured  ours                theirs
E2    a / b        ≥ 5x     5x ±3%    100 ns              500 ns              ok
E2    a / b        ≥ 5.01x  5x ±3%    100 ns              500 ns              SHORT
E2    mean         ≥ 2x     10x ±2%   –                   –                   ok

F1    information  –        1x ±0%    250 ns (2000 MB/s)  250 ns (2000 MB/s)

F2    not here     ≥ 2x     –         –                   –                   not measured: no such CPU

F7    counted      0        1.50      –                   –                   SHORT

M1    a / b        ≤ 1.15x  5x ±3%    500 ns              100 ns              SHORT
`, "\n"+out.String())
	require.Equal(t, 3, short(rows))
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{1.149: "1.15", 0.65: "0.65", 2.5: "2.5", 20: "20", 13.55: "13.6", 123.4: "123", 1: "1", 0.049: "0.05"} {
		require.Equal(t, want, number(x))
	}
}

func TestQuantile(t *testing.T) {
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
	require.Equal(t, 1.75, quantile([]float64{4, 1, 2, 3}, 0.25))
	require.Zero(t, median(nil))
}

func TestHeaderNamesTheBuild(t *testing.T) {
	var out bytes.Buffer
	writeHeader(&out, 8)
	require.Contains(t, out.String(), "8 rounds, encoding/json is "+stdJSON)
}
