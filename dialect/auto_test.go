package dialect_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/kaos"
)

// pieces makes one event of every line, and one at the end.
type pieces struct{ lines int }

func (p *pieces) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	p.lines++
	return append(dst, agentevents.Event{Payload: &agentevents.RunPaused{Reason: string(line)}}), nil
}

func (p *pieces) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	return append(dst, agentevents.Event{Payload: &agentevents.RunResumed{}}), nil
}

func TestAuto(t *testing.T) {
	const (
		native   = `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","payload":{"reason":"n"}}`
		shuffled = `{"sequence":1,"id":"2","timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","payload":{"reason":"s"}}`
		escaped  = `{"id":"\"","sequence":2,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","payload":{"reason":"e"}}`
		kahn     = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"agent_run_start"}`
		wiki     = `{"id":"e","traceId":"t","actor":"a","type":"x","payload":null}`
	)
	var seen []dialect.Name
	fake := &pieces{}
	auto := &dialect.Auto{
		Decoders: map[dialect.Name]agentevents.Decoder{dialect.KAHN: fake},
		OnLine:   func(n dialect.Name) { seen = append(seen, n) },
	}
	log := strings.Join([]string{native, kahn, shuffled, `{"no":"log"}`, escaped, kahn, wiki, native}, "\n")
	var got []string
	var errs []error
	for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: auto}).All() {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		switch p := ev.Payload.(type) {
		case *agentevents.RunPaused:
			got = append(got, p.Reason)
		default:
			got = append(got, string(ev.Kind()))
		}
	}
	require.Equal(t, []string{"n", kahn, "s", "e", kahn, "n", "run.resumed"}, got)
	require.Equal(t, []dialect.Name{dialect.Native, dialect.KAHN, dialect.Native, dialect.Native, dialect.Native, dialect.KAHN, dialect.MultiAgent, dialect.Native}, seen)
	require.Len(t, errs, 2)
	require.ErrorContains(t, errs[0], "line 4")
	require.ErrorContains(t, errs[0], "no known format")
	require.ErrorContains(t, errs[1], "line 7")
	require.ErrorContains(t, errs[1], "a line of multiagent, but the reader has no decoder")
	require.Equal(t, 2, fake.lines)
}

// An object with no member of a native line is an error, whatever its type. An
// object that only lacks some of them goes to the native decoder, which doubts it unless
// its kind is known.
func TestAutoRefusesOtherObjects(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"type":"user","message":{},"session_id":"s"}`, "no known format"},
		{` {"type":"x","payload":{"id":"1","runId":"r"}}`, "no known format"},
		{`{}`, "no known format"},
		{`{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"agent_run_start"}`, "a line of kahn, but the reader has no decoder"},
		{`[]`, "expected an object"},
		{`{"type":"user"`, "found end of text"},
		{`{"id":"1"}`, `"type" is missing`},
		{`{"id":"1","sequence":0,"type":"run.paused"}`, ""},
		{`{"id":"1","runId":"r","type":"run.paused"}`, ""},
		{`{"sequence":0,"runId":"r","type":"run.paused"}`, ""},
		{`{"\u0069d":"1","sequence":0,"runId":"r","type":"x"}`, ""},
	} {
		for _, before := range []string{"", `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","payload":{}}`} {
			auto := &dialect.Auto{}
			if before != "" {
				events, err := auto.Decode(nil, []byte(before))
				require.NoError(t, err)
				require.Len(t, events, 1)
			}
			events, err := auto.Decode(nil, []byte(c.line))
			if c.want == "" {
				require.NoError(t, err, c.line)
				require.Len(t, events, 1, c.line)
				continue
			}
			var le *agentevents.LineError
			require.ErrorAs(t, err, &le, c.line)
			require.ErrorContains(t, err, c.want, c.line)
			require.Empty(t, events, c.line)
		}
	}
}

// A Detect of the caller chooses a dialect of another module.
func TestAutoReadsDialectsOfOthers(t *testing.T) {
	const (
		toy    = "toy 1"
		native = `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","payload":{"reason":"n"}}`
		kahn   = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"agent_run_start"}`
	)
	toys, kahns := &pieces{}, &pieces{}
	var seen []dialect.Name
	auto := &dialect.Auto{
		Decoders: map[dialect.Name]agentevents.Decoder{"toy": toys, dialect.KAHN: kahns},
		Detect: func(line string) dialect.Name {
			if strings.HasPrefix(line, "toy ") {
				return "toy"
			}
			return dialect.Detect(line)
		},
		OnLine: func(n dialect.Name) { seen = append(seen, n) },
	}
	for _, line := range []string{native, toy, "as before", kahn, toy, native} {
		_, err := auto.Decode(nil, []byte(line))
		require.NoError(t, err, line)
	}
	require.Equal(t, []dialect.Name{dialect.Native, "toy", "toy", dialect.KAHN, "toy", dialect.Native}, seen)
	require.Equal(t, 3, toys.lines)
	require.Equal(t, 1, kahns.lines)
}

// A line that does not tell its dialect, such as one of an unknown type, goes to
// the decoder of the line before.
func TestAutoStaysWithTheDialect(t *testing.T) {
	fake := &pieces{}
	auto := &dialect.Auto{Decoders: map[dialect.Name]agentevents.Decoder{dialect.OpenHarness: fake}}
	_, err := auto.Decode(nil, []byte(`{"type":"x.custom","timestamp":1}`))
	require.Error(t, err, "native, for want of a better guess")
	for _, line := range []string{`{"type":"flow:start","timestamp":1}`, `{"type":"x.custom","timestamp":1}`, `{"type":"flow:paused","timestamp":1}`} {
		_, err := auto.Decode(nil, []byte(line))
		require.NoError(t, err)
	}
	require.Equal(t, 3, fake.lines)
}

// It must have a member of that dialect.
func TestAutoStaysWithNothingForeign(t *testing.T) {
	const user = `{"type":"user","message":{},"session_id":"s"}`
	for name, before := range map[dialect.Name]string{
		dialect.KAHN:        `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"x"}`,
		dialect.MultiAgent:  `{"id":"e","traceId":"t","actor":"a","type":"x","payload":null}`,
		dialect.KAOS:        `{"timestamp":1.5,"sequence":0,"session_id":"s","run_id":"r","type":"x"}`,
		dialect.OpenHarness: `{"type":"flow:start","timestamp":1}`,
		dialect.OpenWOP:     `{"eventId":"e","runId":"r","type":"x","payload":{},"timestamp":"2026-05-05T09:00:00Z","sequence":0}`,
	} {
		fake := &pieces{}
		auto := &dialect.Auto{Decoders: map[dialect.Name]agentevents.Decoder{name: fake}}
		_, err := auto.Decode(nil, []byte(before))
		require.NoError(t, err)
		_, err = auto.Decode(nil, []byte(user))
		require.ErrorContains(t, err, "no known format", name)
		_, err = auto.Decode(nil, []byte(user+"x"))
		require.NoError(t, err, "text that is not JSON belongs to the decoder of the line before")
		require.Equal(t, 2, fake.lines, name)
	}
}

// A line that looks like a field of Server-Sent Events is one only in an event
// stream.
func TestAutoFrames(t *testing.T) {
	const (
		native = `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","payload":{}}`
		data   = `data: {"timestamp":1.5,"sequence":0,"session_id":"s","run_id":"r","type":"x"}`
	)
	for _, c := range []struct {
		lines []string
		bad   []int
	}{
		{lines: []string{": hello", "retry: 100", "id: 0", "event: span", data, "id: 7", native}},
		{lines: []string{native, "event: span", data, "id: 0", ": still here", native}},
		{lines: []string{native, data, "data:", native}},
		{
			lines: []string{native, "id: not a log line", ": core dumped", "retry: 55", "data:", "data: none", "event: the disk is full", native},
			bad:   []int{1, 2, 3, 4, 5, 6},
		},
		{lines: []string{data, native, ": core dumped", native}, bad: []int{2}},
		{lines: []string{native, ": core dumped", data}, bad: []int{1}},
	} {
		auto := &dialect.Auto{Decoders: map[dialect.Name]agentevents.Decoder{dialect.KAOS: &pieces{}}}
		var bad []int
		for i, line := range c.lines {
			if _, err := auto.Decode(nil, []byte(line)); err != nil {
				require.ErrorContains(t, err, "not an event stream", line)
				bad = append(bad, i)
			}
		}
		require.Equal(t, c.bad, bad, c.lines)
	}
}

func TestFits(t *testing.T) {
	for _, c := range []struct {
		line        string
		name, looks dialect.Name
		fits        bool
	}{
		{`{"id":"1","sequence":1,"runId":"r","type":"x","actor":"a","traceId":"t","spanId":"s"}`, dialect.MultiAgent, dialect.Native, true},
		{`{"id":"1","sequence":1,"runId":"r","type":"x","actor":"a"}`, dialect.MultiAgent, dialect.Native, false},
		{`{"id":"1","type":"x","payload":{}}`, dialect.MultiAgent, "", true},
		{`{"type":"x"}`, dialect.MultiAgent, "", false},
		{`{"type":"node:start","timestamp":1,"session_id":"s","run_id":"r"}`, dialect.OpenHarness, dialect.KAOS, true},
		{`data: {"type":`, dialect.KAHN, "", true},
		{`{"type":`, dialect.KAHN, "", true},
	} {
		looks, fits := dialect.Fits(c.line, c.name)
		require.Equal(t, c.looks, looks, c.line)
		require.Equal(t, c.fits, fits, c.line)
	}
}

// Frames of AG-UI are told by their data. The fields beside it belong to them.
func TestAutoFramesOfAGUI(t *testing.T) {
	const log = ":\n\nid: 0\ndata: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\nevent: message\nid: 1\ndata:{\"type\":\"CUSTOM\",\"name\":\"x\",\"value\":1}\n"
	var seen []dialect.Name
	auto := &dialect.Auto{
		Decoders: map[dialect.Name]agentevents.Decoder{
			dialect.AGUI: agui.NewDecoder(agui.Options{}), dialect.KAOS: kaos.NewDecoder(kaos.Options{}),
		},
		OnLine: func(n dialect.Name) { seen = append(seen, n) },
	}
	var kinds []string
	for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: auto}).All() {
		require.NoError(t, err)
		kinds = append(kinds, string(ev.Kind()))
	}
	require.Equal(t, []string{"run.started", "CUSTOM"}, kinds)
	require.Equal(t, []dialect.Name{dialect.AGUI, dialect.AGUI, dialect.AGUI}, seen[3:])
}

// The end of a stream as servers of models send it is neither an event nor a fault of the log.
func TestAutoReadsTheEndOfAStream(t *testing.T) {
	for name, lines := range map[dialect.Name][]string{
		dialect.AGUI: {`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`},
		dialect.KAOS: {`{"timestamp":1.5,"sequence":0,"session_id":"s","run_id":"r","agent_id":null,"type":"text_delta","text":"a"}`},
	} {
		stream := "data: " + strings.Join(append(lines, "[DONE]"), "\n\ndata: ") + "\n\n"
		for _, dec := range []agentevents.Decoder{
			&dialect.Auto{Decoders: map[dialect.Name]agentevents.Decoder{dialect.AGUI: agui.NewDecoder(agui.Options{}), dialect.KAOS: kaos.NewDecoder(kaos.Options{})}},
			map[dialect.Name]agentevents.Decoder{dialect.AGUI: agui.NewDecoder(agui.Options{Strict: true}), dialect.KAOS: kaos.NewDecoder(kaos.Options{Strict: true})}[name],
		} {
			n := 0
			for _, err := range agentevents.NewReader(strings.NewReader(stream), agentevents.ReaderOptions{Decoder: dec}).All() {
				require.NoError(t, err, name)
				n++
			}
			require.Equal(t, len(lines), n, name)
		}
	}
}
