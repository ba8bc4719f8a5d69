package kaos

import (
	"cmp"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// Members come in any order and with any blanks.
func TestMembersInAnyOrder(t *testing.T) {
	for _, g := range goldens {
		want := decodeOne(t, testOptions, g.line)
		members := splitMembers(t, g.line)
		for _, odd := range []string{reversed(members), "{ " + strings.Join(members, " , ") + "\t}"} {
			ev := decodeOne(t, testOptions, odd)
			require.NotEqual(t, want.ID, ev.ID)
			ev.ID = want.ID
			if _, unknown := ev.Payload.(*agentevents.Unknown); !unknown {
				require.Equal(t, g.line, strings.TrimSuffix(encodeOne(t, encoderOptions, ev), "\n"), odd)
			}

			// Verbatim, the line comes back byte for byte.
			for ev, err := range agentevents.NewReader(strings.NewReader(odd), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions), Verbatim: true}).All() {
				require.NoError(t, err)
				require.Equal(t, odd+"\n", encodeOne(t, encoderOptions, ev))
				sse := encoderOptions
				sse.SSE = true
				require.Contains(t, encodeOne(t, sse, ev), "\ndata: "+odd+"\nid: 0\n\n")
				ev.SessionID = "other"
				require.NotContains(t, encodeOne(t, encoderOptions, ev), odd)
				require.Contains(t, encodeOne(t, encoderOptions, ev), `"session_id":"other"`)
			}
		}
	}
}

func splitMembers(t *testing.T, line string) (members []string) {
	depth, start, text := 0, 1, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth == 1:
			members = append(members, line[start:i])
			start = i + 1
		}
	}
	require.Zero(t, depth)
	return append(members, line[start:len(line)-1])
}

func reversed(members []string) string {
	var b strings.Builder
	for i := len(members) - 1; i >= 0; i-- {
		b.WriteString(members[i])
		if i > 0 {
			b.WriteByte(',')
		}
	}
	return "{" + b.String() + "}"
}

func TestUnknownMembers(t *testing.T) {
	for _, g := range goldens {
		if _, unknown := g.payload.(*agentevents.Unknown); unknown {
			continue
		}
		line := g.line[:len(g.line)-1] + `,"new":{"a":[1,1.50]},"/odd~":null,"a/b":1}`
		line = strings.Replace(line, `"tool_name":null}`, `"tool_name":null,"x/y":1}`, 1)
		line = strings.Replace(line, `"output_tokens":0}`, `"output_tokens":0,"z":[2]}`, 1)
		ev := decodeOne(t, testOptions, line)
		require.Equal(t, line+"\n", encodeOne(t, encoderOptions, ev))
		native, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		var back agentevents.Event
		require.NoError(t, back.UnmarshalJSON(native))
		require.Equal(t, line+"\n", encodeOne(t, encoderOptions, back), string(native))
	}
	ev := decodeOne(t, testOptions, strings.Replace(goldens[0].line, `"type"`, `"/odd~":1,"x":2,"type"`, 1))
	require.Equal(t, agentevents.JSON(`{"/~1odd~0":1,"x":2}`), ev.Extra("kaos"))
}

func TestSequence(t *testing.T) {
	d := NewDecoder(testOptions)
	var events []agentevents.Event
	for i, n := range []string{"3", "4", "4", "0", "18", "-1"} {
		var err error
		line := strings.Replace(goldens[len(goldens)-3].line, `"timestamp":1001.25`, `"timestamp":`+strconv.Itoa(i)+`.5`, 1)
		events, err = d.Decode(events, []byte(strings.Replace(line, `"sequence":0`, `"sequence":`+n, 1)))
		require.NoError(t, err)
	}
	e := NewEncoder(encoderOptions)
	for i, n := range []string{"3", "4", "4", "0", "18", "-1"} {
		require.Equal(t, uint64(i), events[i].Sequence)
		require.Equal(t, agentevents.JSON(n), dialect.Unknown(&events[i], Name, "sequence"))
		line, err := e.Append(nil, events[i])
		require.NoError(t, err)
		require.Contains(t, string(line), `"sequence":`+n+`,`)
	}
	for _, l := range e.Losses() {
		require.Equal(t, "/id", l.Pointer)
	}
	other := agentevents.Event{RunID: "other", AgentID: "a", Scope: agentevents.Scope{SessionID: "s"}, Sequence: 5, Payload: &agentevents.TextDelta{}}
	require.NoError(t, other.SetExtra(string(Name), `{"sequence":"no number"}`))
	line, err := e.Append(nil, other)
	require.NoError(t, err)
	require.Contains(t, string(line), `"sequence":5,`)
	require.Contains(t, losses(e), "dropped /kaos/sequence")
	var rule *agentevents.RuleError
	_, err = e.Append(nil, agentevents.Event{RunID: "r", Sequence: 1 << 63, Payload: &agentevents.TextDelta{}})
	require.ErrorAs(t, err, &rule)
	require.Equal(t, RuleRange, rule.Rule)
}

func TestTimes(t *testing.T) {
	at := func(o Options, seconds string) time.Time {
		return decodeOne(t, o, `{"timestamp":`+seconds+`,"sequence":0,"session_id":"s","run_id":"r","content":"","type":"text_delta"}`).Time
	}
	for _, c := range []struct {
		seconds string
		want    time.Duration // since the clock's zero
		written string        // if it differs
	}{
		{"0.0", 0, ""},
		{"0", 0, "0.0"},
		{"12", 12 * time.Second, "12.0"},
		{"12.5", 12500 * time.Millisecond, ""},
		{"84523.123456789", 84523123456789, ""},
		{"84523.1234567894", 84523123456789, "84523.123456789"},
		{"84523.1234567895", 84523123456790, "84523.12345679"},
		{"0.9999999999", time.Second, "1.0"},
		{"-1.5", -1500 * time.Millisecond, ""},
		{"-0.5", -500 * time.Millisecond, ""},
		{"1e3", 1000 * time.Second, "1000.0"},
		{"1.5E-3", 1500 * time.Microsecond, "0.0015"},
		{"-25e-1", -2500 * time.Millisecond, "-2.5"},
	} {
		zero := at(Options{}, c.seconds)
		require.Equal(t, time.Unix(0, 0).UTC().Add(c.want), zero, c.seconds)
		got := at(testOptions, c.seconds)
		require.Equal(t, anchor.Add(c.want-1000*time.Second), got, c.seconds)
		for _, o := range []struct {
			options EncoderOptions
			time    time.Time
		}{{EncoderOptions{}, zero}, {encoderOptions, got}, {EncoderOptions{Anchor: anchor.Add(time.Nanosecond), AnchorSeconds: 1000}, got.Add(time.Nanosecond)}} {
			line := encodeOne(t, o.options, agentevents.Event{RunID: "r", Time: o.time, Payload: &agentevents.TextDelta{}})
			want := c.written
			if want == "" {
				want = c.seconds
			}
			require.True(t, strings.HasPrefix(line, `{"timestamp":`+want+`,`), "%s: %s", c.seconds, line)
		}
	}
	require.Equal(t, clock{0, 0}, newClock(time.Time{}, math.NaN()))

	// Without an anchor the first event of a run has a remark.
	d := NewDecoder(Options{})
	events, err := d.Decode(nil, []byte(goldens[0].line))
	require.NoError(t, err)
	events, err = d.Decode(events, []byte(strings.Replace(goldens[0].line, `"sequence":0`, `"sequence":1`, 1)))
	require.NoError(t, err)
	require.Equal(t, agentevents.JSON(`{"/timestamp":"monotonic"}`), events[0].Extra("kaos"))
	require.Empty(t, events[1].Extra("kaos"))
	require.Equal(t, 1970, events[1].Time.Year())
	require.Equal(t, goldens[0].line+"\n", encodeOne(t, EncoderOptions{}, events[0]))
}

func TestNumbersAsPythonWritesThem(t *testing.T) {
	written := func(at any) string {
		text, said := number{}.Append(nil, nil, nil, at)
		require.True(t, said)
		return string(text)
	}
	for f, want := range map[float64]string{
		0: "0.0", 1: "1.0", 0.1: "0.1", 1e15: "1000000000000000.0", 1e16: "1e+16", 1.5e300: "1.5e+300", 0.0001: "0.0001", 0.00001: "1e-05", -2.5e-7: "-2.5e-07", 12345678.25: "12345678.25",
	} {
		require.Equal(t, want, written(&f))
	}
	require.Equal(t, "-9223372036854.775808", written(&agentevents.Opt[time.Duration]{V: math.MinInt64, OK: true}))
	_, said := number{}.Append(nil, nil, nil, &agentevents.Opt[float64]{V: 1e300})
	require.False(t, said)
	require.Equal(t, "0.000001", written(&agentevents.Opt[time.Duration]{V: 1, OK: true}))
}

func TestStrict(t *testing.T) {
	line := func(name string) string {
		for _, g := range goldens {
			if g.name == name {
				return g.line
			}
		}
		t.Fatal(name)
		return ""
	}
	for _, c := range []struct {
		line, old, new string
		rule           agentevents.Rule
		pointer        string
	}{
		{"text_delta", `"timestamp":1001.25,`, ``, RuleRequired, "/timestamp"},
		{"text_delta", `"sequence":0,`, ``, RuleRequired, "/sequence"},
		{"text_delta", `"session_id":"s-1",`, ``, RuleRequired, "/session_id"},
		{"text_delta", `"run_id":"run_0123456789ab",`, ``, RuleRequired, "/run_id"},
		{"text_delta", `"run_0123456789ab"`, `""`, RuleRequired, "/run_id"},
		{"text_delta", `"sequence":0`, `"sequence":-1`, RuleRange, "/sequence"},
		{"turn start", `"subject":"turn",`, ``, RuleRequired, "/subject"},
		{"turn start", `"phase":"start",`, ``, RuleRequired, "/phase"},
		{"turn start", `"span_id":"a1b2c3d4e5f6",`, ``, RuleRequired, "/span_id"},
		{"turn start", `"subject":"turn"`, `"subject":"TURN"`, RuleEnum, "/subject"},
		{"turn start", `"phase":"start"`, `"phase":"begin"`, RuleEnum, "/phase"},
		{"turn start", `"duration_ms":null`, `"duration_ms":1.0`, RulePhase, "/duration_ms"},
		{"turn complete", `"error_type":null`, `"error_type":"E"`, RulePhase, "/error_type"},
		{"turn complete", `"error_message":null`, `"error_message":"m"`, RulePhase, "/error_message"},
		{"turn complete", `"duration_ms":1234.5`, `"duration_ms":-1.0`, RuleRange, "/duration_ms"},
		{"intent_classified", `0.95`, `1.5`, RuleRange, "/confidence"},
		{"citation_found", `1.0`, `-0.5`, RuleRange, "/confidence"},
		{"plan_proposed", `"step_id":"s002",`, ``, RuleRequired, "/steps/1/step_id"},
		{"plan_proposed", `"description":"search",`, ``, RuleRequired, "/steps/0/description"},
		{"usage_observed", `"input_tokens":10`, `"input_tokens":-1`, RuleRange, "/input_tokens"},
		{"usage_observed", `5e-05`, `-1.0`, RuleRange, "/cost_usd"},
		{"turn_summary", `"tool_name":"search",`, ``, RuleRequired, "/tool_calls/0/tool_name"},
		{"turn_summary", `"call_id":"c1",`, ``, RuleRequired, "/tool_calls/0/call_id"},
		{"turn_summary", `412.125`, `-412.125`, RuleRange, "/tool_calls/0/duration_ms"},
		{"turn_summary", `"tokens_used":14`, `"tokens_used":-14`, RuleRange, "/tokens_used"},
		{"memory_event", `"kind":"added",`, ``, RuleRequired, "/kind"},
		{"memory_event", `"kind":"added"`, `"kind":"lost"`, RuleEnum, "/kind"},
		{"memory_event", `"item_count":2`, `"item_count":-2`, RuleRange, "/item_count"},
	} {
		text := line(c.line)
		require.Contains(t, text, c.old)
		bad := strings.Replace(text, c.old, c.new, 1)
		_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(bad))
		var rule *agentevents.RuleError
		require.ErrorAs(t, err, &rule, bad)
		require.Equal(t, c.rule, rule.Rule, bad)
		require.Equal(t, c.pointer, rule.Pointer, bad)
		decodeOne(t, Options{}, bad) // a lenient decoder reads the valid members
		decodeOne(t, Options{Strict: true}, text)
	}
}

func TestBadLines(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{``, "an object"},
		{`[]`, "an object"},
		{`{}`, `"type" is missing`},
		{`{"type":""}`, `"type" is missing`},
		{`{"type":null}`, "a string"},
		{`{"type":"span"`, "',' or '}'"},
		{`{"type":"span"}{`, "end of text"},
		{`{"type":"span","type":"span"}`, "duplicate"},
		{`{"a":1,"a":1,"type":"span"}`, "duplicate"},
		{`{"a":1,"a":1,"type":"x"}`, "duplicate"},
		{`{"run_id":"r","run_id":"r","type":"x"}`, "duplicate"},
		{`{"timestamp":-,"type":"x"}`, "a digit"},
		{`{"sequence":1.5,"type":"x"}`, "an integer"},
		{`{"sequence":9223372036854775808,"type":"x"}`, "out of range"},
		{`{"agent_id":1,"type":"x"}`, "a string"},
		{`{"content":"a` + "\xff" + `","type":"text_delta"}`, "UTF-8"},
		{`{"content":"\ud800","type":"text_delta"}`, "surrogate"},
		{`{"duration_ms":"1","type":"span"}`, "a number"},
		{`{"duration_ms":1e300,"type":"span"}`, "out of range"},
		{`{"attributes":[],"type":"span"}`, "an object"},
		{`{"subject":"turn","phase":"start","attributes":{"a":1,"a":2},"type":"span"}`, "duplicate"},
		{`{"subject":"turn","phase":"start","attributes":{"turn_number":1,"turn_number":2},"type":"span"}`, "duplicate"},
		{`{"subject":"turn","phase":"start","attributes":{"task":1,"task":2},"type":"span"}`, "duplicate"},
		{`{"subject":"turn","phase":"start","attributes":{"turn_number":1x},"type":"span"}`, "',' or '}'"},
		{`{"attributes":{"turn_number":1,"turn_number":2},"subject":"turn","phase":"start","type":"span"}`, "duplicate"},
		{`{"confidence":NaN,"type":"intent_classified"}`, "a number"},
		{`{"steps":[1],"type":"plan_proposed"}`, "an object"},
		{`{"steps":[{"step_id":"a","step_id":"a"}],"type":"plan_proposed"}`, "duplicate"},
		{`{"steps":[{"x":"a","x":"a"}],"type":"plan_proposed"}`, "duplicate"},
		{`{"steps":[{"step_id":"a"},],"type":"plan_proposed"}`, "a value"},
		{`{"verified":0,"type":"citation_found"}`, "true or false"},
		{`{"input_tokens":1.5,"type":"usage_observed"}`, "an integer"},
		{`{"tool_calls":{},"type":"turn_summary"}`, "an array"},
		{`{"item_count":"1","type":"memory_event"}`, "an integer"},
		{`{"attributes":1,"type":"memory_event"}`, "an object"},
		{`{"arguments":"x","type":"tool_call_approval_required"}`, "an array"},
		{`{"kind":"clarification_needed","details":[],"type":"escalation_required"}`, "an object"},
		{`not json`, "an object"},
	} {
		for _, strict := range []bool{false, true} {
			events, err := NewDecoder(Options{Strict: strict}).Decode(nil, []byte(c.line))
			require.ErrorContains(t, err, c.want, c.line)
			require.Empty(t, events, c.line)
		}
		var le *agentevents.LineError
		for _, err := range agentevents.NewReader(strings.NewReader("\n"+c.line+"\n\n"), agentevents.ReaderOptions{Decoder: NewDecoder(Options{})}).All() {
			require.ErrorAs(t, err, &le)
			require.Equal(t, 2, le.Line)
		}
	}
	// A line is torn wherever it is cut.
	for _, g := range goldens {
		for n := 1; n < len(g.line); n++ {
			for _, err := range agentevents.NewReader(strings.NewReader(g.line[:n]), agentevents.ReaderOptions{Decoder: NewDecoder(Options{})}).All() {
				require.ErrorIs(t, err, io.ErrUnexpectedEOF, g.line[:n])
			}
		}
	}
}

func TestApprovalArguments(t *testing.T) {
	for _, c := range []struct {
		raw    agentevents.JSON
		want   string
		losses int
	}{
		{"", `[]`, 0},
		{`[]`, `[]`, 1},
		{`{}`, `[]`, 1},
		{`[["a","b"],["c","d"]]`, `[["a","b"],["c","d"]]`, 0},
		{`{"a":"b","n":[1, 2],"q\"":null}`, `[["a","b"],["n","[1,2]"],["q\"","null"]]`, 1},
		{`[["a"]]`, `[["arguments","[[\"a\"]]"]]`, 1},
		{`[["a",1]]`, `[["arguments","[[\"a\",1]]"]]`, 1},
		{`[["a","b","c"]]`, `[["arguments","[[\"a\",\"b\",\"c\"]]"]]`, 1},
		{`"x"`, `[["arguments","\"x\""]]`, 1},
	} {
		e := NewEncoder(EncoderOptions{})
		line, err := e.Append(nil, agentevents.Event{RunID: "r", AgentID: Root, Time: anchor, Scope: agentevents.Scope{SessionID: "s"}, Payload: &agentevents.ApprovalRequested{ApprovalID: "c", CallID: "c", Arguments: c.raw}})
		require.NoError(t, err)
		require.Contains(t, string(line), `"arguments":`+c.want+`,"reason"`)
		require.Len(t, e.Losses(), c.losses, c.raw)
		decodeAll(t, string(line))
	}
}

func TestEventsOfALine(t *testing.T) {
	// The decoder keeps no reference to the caller's buffer.
	line := []byte(goldens[0].line)
	d := NewDecoder(testOptions)
	events, err := d.Decode(nil, line)
	require.NoError(t, err)
	clear(line)
	require.Equal(t, "turn.1", events[0].Payload.(*agentevents.TurnStarted).Name)
	events, err = d.End(events)
	require.NoError(t, err)
	require.Len(t, events, 1)
	out, err := NewEncoder(encoderOptions).End([]byte("x"))
	require.NoError(t, err)
	require.Equal(t, "x", string(out))
}

// The order of the members does not change the event of a line of an unknown type.
func TestUnknownTypesInAnyOrder(t *testing.T) {
	own := []string{`"cost_usd":0.1`, `"reason":"satisfied"`, `"wall_clock_ms":12.5`}
	base := strings.TrimSuffix(strings.TrimPrefix(head, "{"), ",")
	typ := `"type":"loop_terminated"`
	all := agentevents.JSON("{" + strings.Join(own, ",") + "}")
	for _, c := range []struct {
		line, written string // written: the line without Verbatim, if it differs
		remark        agentevents.JSON
	}{
		{line: "{" + strings.Join([]string{base, own[0], own[1], own[2], typ}, ",") + "}"},
		{line: "{" + strings.Join([]string{base, own[0], own[1], typ, own[2]}, ",") + "}", remark: `{"/type":1}`},
		{line: "{" + strings.Join([]string{base, own[0], typ, own[1], own[2]}, ",") + "}", remark: `{"/type":2}`},
		{ // members sorted by name
			line:    "{" + strings.Join([]string{own[0], base, own[1], typ, own[2]}, ",") + "}",
			written: "{" + strings.Join([]string{base, own[0], own[1], own[2], typ}, ",") + "}",
		},
		{
			line:    "{" + strings.Join([]string{typ, base, own[0], own[1], own[2]}, ",") + "}",
			written: "{" + strings.Join([]string{base, own[0], own[1], own[2], typ}, ",") + "}",
		},
	} {
		ev := decodeOne(t, testOptions, c.line)
		require.Equal(t, &agentevents.Unknown{Type: "loop_terminated", Raw: all}, ev.Payload, c.line)
		require.Equal(t, c.remark, ev.Extra(string(Name)), c.line)
		require.Equal(t, cmp.Or(c.written, c.line)+"\n", encodeOne(t, encoderOptions, ev))
		rewritten(t, c.line+"\n")
	}
	// A wrong remark does no harm.
	ev := decodeOne(t, testOptions, "{"+strings.Join([]string{base, own[0], typ, own[1], own[2]}, ",")+"}")
	for raw, want := range map[agentevents.JSON]string{`{}`: typ, `{"a":1}`: `"a":1,` + typ, `{"a":1,"b":2}`: typ + `,"a":1,"b":2`} {
		ev.Payload = &agentevents.Unknown{Type: "loop_terminated", Raw: raw}
		require.Equal(t, "{"+base+","+want+"}\n", encodeOne(t, encoderOptions, ev))
	}
	ev.Payload = &agentevents.TextDelta{Delta: "x"}
	require.Equal(t, head+`"content":"x","type":"text_delta"}`+"\n", encodeOne(t, encoderOptions, ev))
}
