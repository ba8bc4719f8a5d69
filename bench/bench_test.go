package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	"github.com/agentevents/agentevents/bench/internal/measure"
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
		c := l.goroutines(3)
		loop, err := c.Setup(c)
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

// The damaged lines are as F7 describes them: json/v2 refuses all of them, and accepts the line
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
		loop, err := cell.Setup(cell)
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

// made collects made-up figures of cells.
type made measure.Record

func (m made) cell(name string, cpu ...float64) *cell {
	m[name] = &measure.Series{Name: name, Events: 1, CPU: cpu, Wall: cpu}
	return &cell{Name: name}
}

// twelve returns twelve figures from least to greatest.
func twelve(least, greatest float64) []float64 {
	out := make([]float64, 12)
	for i := range out {
		out[i] = least + (greatest-least)*float64(i)/11
	}
	return out
}

func TestTable(t *testing.T) {
	m := made{}
	a, b := m.cell("a", twelve(100, 100)...), m.cell("b", twelve(500, 520)...)
	few := m.cell("few", 100, 100)
	logged := m.cell("logged", twelve(250, 250)...)
	m["logged"].Bytes, m["logged"].Events = 1000, 2
	gone := m.cell("gone")
	m["gone"].Missing = "no such CPU"
	var rows []row
	for _, c := range []comparison{
		versus("M1", "a / b", atMost(1.15), b, a),
		versus("E2", "a / b", atLeast(5), a, b),
		versus("E2", "the bar in the interval", atLeast(5.1), a, b),
		versus("E2", "too few rounds", atLeast(5), few, b),
		{goal: "E2", what: "mean", bar: atLeast(2), pairs: []pair{{a, b}, {m.cell("x", twelve(100, 100)...), m.cell("y", twelve(2000, 2000)...)}}},
		versus("F1", "information", bar{}, logged, logged),
		inWallTime("F1", "a / b", a, b),
		versus("F2", "not here", atLeast(2), a, gone),
		{goal: "F7", what: "counted", direct: func() (row, error) { return allocRow(1.5), nil }},
	} {
		r, err := c.row(measure.Record(m), 1)
		require.NoError(t, err)
		rows = append(rows, r)
	}
	rows = byGoal(rows)
	var out bytes.Buffer
	require.NoError(t, writeTable(&out, rows))
	require.Equal(t, `
goal  what                     bar      measured  interval    ours                theirs
E2    a / b                    ≥ 5x     5x        5 to 5.2    100 ns              500 ns              ok
E2    the bar in the interval  ≥ 5.1x   5x        5 to 5.2    100 ns              500 ns              crosses its bar
E2    too few rounds           ≥ 5x     5x        5 to 5.02   100 ns              500 ns              no verdict
E2    mean                     ≥ 2x     10x       10 to 10.2  –                   –                   ok

F1    information              –        1x        1 to 1      250 ns (2000 MB/s)  250 ns (2000 MB/s)
F1    wall time: a / b         –        5x        5 to 5.2    100 ns              500 ns

F2    not here                 ≥ 2x     –         –           –                   –                   not measured: no such CPU

F7    counted                  0        1.50      –           –                   –                   SHORT

M1    a / b                    ≤ 1.15x  5x        5 to 5.2    500 ns              100 ns              SHORT
`, "\n"+out.String())
	require.Equal(t, "9 rows: 2 ok, 2 SHORT, 1 cross their bars, 4 without a verdict", tally(rows))

	// The floor of the control widens an interval that is narrower.
	r, err := versus("E2", "a / b", atLeast(5), a, b).row(measure.Record(m), 1.1)
	require.NoError(t, err)
	require.Equal(t, "4.55 to 5.5", r.spread)
	require.Equal(t, measure.Crosses, r.verdict)

	_, err = versus("E2", "a / b", bar{}, a, &cell{Name: "never"}).row(measure.Record(m), 1)
	require.ErrorContains(t, err, "not measured")
}

func TestFloorIsThatOfTheControl(t *testing.T) {
	m := made{}
	a, same := m.cell("a", twelve(100, 140)...), m.cell("a, again", twelve(104, 104)...)
	other := m.cell("b", twelve(300, 300)...)
	plan := []*planned{
		{section: section{name: control}, comparisons: []comparison{versus("A/A", "a", bar{}, same, a)}, record: measure.Record(m)},
		{section: section{name: "other"}, comparisons: []comparison{versus("E2", "b", bar{}, other, a)}, record: measure.Record(m)},
	}
	floor, err := floorOf(plan)
	require.NoError(t, err)
	require.InDelta(t, 1.04, floor, 1e-9)
	rows, err := rowsOf(plan, floor)
	require.NoError(t, err)
	require.Equal(t, []string{"0.962 to 1.35", "0.321 to 0.467"}, []string{rows[0].spread, rows[1].spread})
}

// The cells of a section have names of their own, and a wall time never has a bar.
func TestSections(t *testing.T) {
	scratch, shared = t.TempDir(), t.TempDir()
	seen := map[string]bool{}
	for _, s := range sections() {
		require.False(t, seen[s.name], s.name)
		seen[s.name] = true
		all := s.comparisons()
		require.NotEmpty(t, all, s.name)
		_, err := cellsOf(all)
		require.NoError(t, err, s.name)
		for _, c := range all {
			require.True(t, !c.wall || c.bar == bar{}, "%s, %s", c.goal, c.what)
		}
	}
}

// Every cell can be measured as a child process measures it, or tells why it cannot.
func TestCellsCanBeMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("every cell once takes some seconds")
	}
	for _, s := range sections() {
		if s.durable || strings.HasPrefix(s.name, "growing") && s.name != "growing, agents: Emit" || s.name == "questions about a log" {
			continue // bench/durable has a test of its own, as have the questions
		}
		scratch, shared = t.TempDir(), t.TempDir()
		cells, err := cellsOf(s.comparisons())
		require.NoError(t, err)
		once := map[string]int{}
		for _, c := range cells {
			once[c.Name] = 1
		}
		series, err := measure.Cells(cells, 1, once)
		require.NoError(t, err, s.name)
		for _, got := range series {
			require.True(t, got.Missing != "" || len(got.CPU) == 1, "%s, %s", s.name, got.Name)
		}
	}
}

func TestPlan(t *testing.T) {
	scratch, shared = t.TempDir(), t.TempDir()
	plan := func(rows string) (out []string) {
		got, err := planOf(sections(), regexp.MustCompile(rows))
		require.NoError(t, err)
		for _, p := range got {
			out = append(out, fmt.Sprint(p.name, " ", len(p.comparisons), " ", len(p.cells)))
		}
		return out
	}
	require.Equal(t, []string{"control 6 12", "folding on two cores 2 2"}, plan("^F5"))
	require.Equal(t, []string{"folding and reading 1 0"}, plan("^F7"), "a count needs no control")
	require.Empty(t, plan("^none"))
	require.Equal(t, []string{"control 6 12", "growing, agents: Emit 1 2"}, plan("S1 agents: Emit"))
}

// Compare's rows are the cells of the library, and its controls have none of its code.
func TestListedCells(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, list(&out))
	var cells []listed
	require.NoError(t, json.Unmarshal(out.Bytes(), &cells))
	for _, want := range []listed{
		{Section: "emitting", Name: "T: Emit", Goals: "M1 M2"},
		{Section: "emitting", Name: "T: zerolog", Goals: "M2", Control: true},
		{Section: "growing, agents: Emit", Name: "agents: Emit, 100000", Goals: "S1"},
	} {
		require.True(t, slices.Contains(cells, want), "%v", want)
	}
	for _, c := range cells {
		require.NotEqual(t, control, c.Section)
		require.NotContains(t, c.Name, "floor")
	}
}

func TestWriteChanges(t *testing.T) {
	series := func(name string, cpu []float64) *measure.Series {
		return &measure.Series{Name: name, Events: 1, CPU: cpu}
	}
	before := measure.Record{
		"worse": series("worse", twelve(100, 110)), "better": series("better", twelve(100, 110)), "equal": series("equal", twelve(100, 100)),
		"noisy": series("noisy", twelve(100, 100)), "slight": series("slight", twelve(100, 100)), "zerolog": series("zerolog", twelve(200, 200)),
		"log": {Name: "log", Events: 1, Bytes: 10, CPU: twelve(1, 1)}, "gone": {Name: "gone", Events: 1, Missing: "no such CPU"},
	}
	after := measure.Record{
		"worse": series("worse", twelve(130, 143)), "better": series("better", twelve(50, 55)), "equal": series("equal", twelve(99, 101)),
		"noisy": series("noisy", twelve(95, 125)), "slight": series("slight", twelve(102, 102)), "zerolog": series("zerolog", twelve(206, 206)),
		"log": {Name: "log", Events: 1, Bytes: 11, CPU: twelve(1, 1)}, "gone": {Name: "gone", Events: 1, Missing: "no such CPU"},
	}
	var cells []listed
	for _, name := range []string{"worse", "better", "equal", "noisy", "slight", "log", "gone", "zerolog"} {
		cells = append(cells, listed{Section: "s", Name: name, Goals: "M1", Control: name == "zerolog"})
	}
	sides := [2]*side{{name: "old", record: map[string]measure.Record{"s": before}}, {name: "new", record: map[string]measure.Record{"s": after}}}
	var out bytes.Buffer
	require.NoError(t, writeChanges(&out, sides, cells, 0.05))
	require.Contains(t, out.String(), "not narrower than ±3.0 %")
	_, text, _ := strings.Cut(out.String(), "\n\n")
	require.Equal(t, `goals  row      old     new      new/old  interval
M1     worse    100 ns  130 ns   1.300    1.262 to 1.339  slower
M1     better   100 ns  50.0 ns  0.500    0.485 to 0.515  faster
M1     equal    100 ns  99.0 ns  0.990    0.961 to 1.020  same
M1     noisy    100 ns  95.0 ns  0.950    0.922 to 1.250  not decidable
M1     slight   100 ns  102 ns   1.020    0.990 to 1.051  not decidable
M1     log      –       –        –        –               not comparable: logs of 10 and 11 bytes
M1     gone     –       –        –        –               not measured: no such CPU
M1     zerolog  200 ns  206 ns   1.030    1.030 to 1.030  control

7 rows: 1 same, 1 faster, 1 slower, 2 not decidable; 1 controls
`, text)
}

// The programs that are asked answer as the command does.
func TestQuestionsHaveOneAnswer(t *testing.T) {
	shared = t.TempDir()
	log := filepath.Join(shared, "small.jsonl")
	require.NoError(t, os.WriteFile(log, smallLog(), 0o600))
	want := map[string]map[string]map[string]float64{}
	for _, group := range []string{"tool", "agent", "model"} {
		var got struct {
			Groups []struct {
				Name      string
				ToolCalls struct{ Returned, Failed, MeanMs float64 }
				Tokens    struct{ Input, Output float64 }
				CostUSD   float64
			}
		}
		out, err := answer(statsBy(group), log)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(out, &got))
		want[group] = map[string]map[string]float64{}
		for _, g := range got.Groups {
			want[group][g.Name] = map[string]float64{"calls": g.ToolCalls.Returned, "failed": g.ToolCalls.Failed, "meanMs": g.ToolCalls.MeanMs}
			if group == "model" {
				want[group][g.Name] = map[string]float64{"input": g.Tokens.Input, "output": g.Tokens.Output, "cost": g.CostUSD}
			}
		}
	}
	require.Len(t, want["tool"], 5)
	require.NotEmpty(t, want["model"])
	for name, a := range map[string]asker{"jq": askJQ, "DuckDB": askDuckDB} {
		t.Run(name, func(t *testing.T) {
			out, err := answer(a, log)
			var missing measure.Missing
			if errors.As(err, &missing) {
				t.Skip("needs "+name+": ", missing)
			}
			require.NoError(t, err)
			var got map[string]map[string]map[string]float64
			require.NoError(t, json.Unmarshal(out, &got))
			for group := range want {
				require.Len(t, got[group], len(want[group]), group)
				for of, figures := range want[group] {
					require.Len(t, got[group][of], len(figures))
					for figure, v := range figures {
						require.InEpsilon(t, v, got[group][of][figure], 1e-9, "%s, %s, %s", group, of, figure)
					}
				}
			}
		})
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{1.149: "1.15", 0.65: "0.65", 2.5: "2.5", 20: "20", 13.55: "13.6", 123.4: "123", 1: "1", 0.049: "0.05"} {
		require.Equal(t, want, number(x))
	}
}

func TestHeaderNamesTheBuild(t *testing.T) {
	var out bytes.Buffer
	writeHeader(&out, 8, 1.034, "")
	require.Contains(t, out.String(), "8 rounds, encoding/json is "+stdJSON)
	require.Contains(t, out.String(), "±3.4 %")
}
