package agentevents

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentevents/agentevents/internal/chain"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/extra"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/stretchr/testify/require"
)

// The envelope's codec. The payloads' is tested in law_payload_test.go.

// aLine has only the members that every line has.
const aLine = `{"id":"e1","sequence":7,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r1","payload":{}}`

func decodeLine(t testing.TB, line string) Event {
	t.Helper()
	var e Event
	require.NoError(t, e.UnmarshalJSON([]byte(line)), line)
	return e
}

func encodeEvent(t testing.TB, e Event) string {
	t.Helper()
	b, err := e.AppendJSON(nil)
	require.NoError(t, err)
	return string(b)
}

// requireSameLine decodes a line and wants the same bytes back.
func requireSameLine(t testing.TB, line string) Event {
	t.Helper()
	e := decodeLine(t, line)
	require.Equal(t, line, encodeEvent(t, e))
	return e
}

// fullEvent has a value in every field of the envelope.
func fullEvent(t testing.TB) Event {
	e := Event{
		ID: "e\"1", Sequence: 1<<64 - 1, Time: time.Date(2026, 5, 5, 9, 0, 0, 123456789, time.UTC), RunID: "r1",
		Scope:   Scope{SessionID: "s", TaskID: "t", WorkflowID: "w", Phase: "p", NodeID: "n", NodeRunID: "n#1"},
		AgentID: "a", Actor: "user", ParentAgentID: "pa", ParentCallID: "pc", Step: Some(0),
		TraceID: "tr", SpanID: "sp", ParentSpanID: "ps", CausationID: "c", SchemaVersion: "1.0",
		Marks:   MarkLate | MarkSynthetic | MarkReplayed | MarkRedacted | MarkSanitized,
		Payload: &RunPaused{Reason: "why <not>"},
	}
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() {
			require.False(t, v.Field(i).IsZero(), "fullEvent lacks %s", f.Name)
		}
	}
	return e
}

func TestEnvelopeRoundTrip(t *testing.T) {
	e := fullEvent(t)
	line := encodeEvent(t, e)
	require.Equal(t, `{"id":"e\"1","sequence":18446744073709551615,"timestamp":"2026-05-05T09:00:00.123456789Z","type":"run.paused","runId":"r1",`+
		`"sessionId":"s","taskId":"t","workflowId":"w","phase":"p","nodeId":"n","nodeRunId":"n#1","agentId":"a","actor":"user",`+
		`"parentAgentId":"pa","parentCallId":"pc","step":0,"traceId":"tr","spanId":"sp","parentSpanId":"ps","causationId":"c",`+
		`"schemaVersion":"1.0","marks":["late","synthetic","replayed","redacted","sanitized"],"payload":{"reason":"why <not>"}}`, line)
	require.Equal(t, e, decodeLine(t, line))

	// The members are in the order of envelopeFields, all of which occur.
	members := membersOf(t, line)
	require.Len(t, members, len(envelopeFields))
	for i, m := range members {
		require.Equal(t, envelopeFields[i].Name, m.name)
		require.Equal(t, i+1, extra.Number(envelopeFields[:], m.name))
	}
	require.Zero(t, extra.Number(envelopeFields[:], "Id"), "names are case-sensitive")
}

// Each optional field is set, absent, and set back to absent, by itself.
func TestEnvelopeOptionalFields(t *testing.T) {
	full := fullEvent(t)
	members := membersOf(t, encodeEvent(t, full))
	for n, f := range envelopeFields {
		if f.Required() {
			continue
		}
		text := objectOf(withoutMember(members, f.Name)...)
		e := requireSameLine(t, text)
		alone := requireSameLine(t, objectOf(append(membersOf(t, aLine)[:5:5], members[n], membersOf(t, aLine)[5])...))
		require.NotEqual(t, e, alone)
		if s := e.text(n + 1); s != nil {
			require.Empty(t, *s)
			*s = *full.text(n + 1)
			require.Equal(t, objectOf(members...), encodeEvent(t, e))
		}
	}
}

// Absent, null, "" and zero differ on the wire. Where they are the same value in
// Go, the line is still written as it was read.
func TestEnvelopeAbsentIsNotZero(t *testing.T) {
	with := func(member string) string {
		return strings.Replace(aLine, `"runId":"r1"`, `"runId":"r1",`+member, 1)
	}
	none := requireSameLine(t, aLine)
	require.False(t, none.Step.OK)
	zero := requireSameLine(t, with(`"step":0`))
	require.Equal(t, Some(0), zero.Step)
	null := requireSameLine(t, with(`"step":null`))
	require.False(t, null.Step.OK)
	for _, f := range envelopeFields {
		if f.Required() {
			continue
		}
		e := requireSameLine(t, with(`"`+f.Name+`":null`))
		require.Nil(t, e.check(ops(e.Payload), false), f.Name)
		if e.text(extra.Number(envelopeFields[:], f.Name)) != nil {
			e = requireSameLine(t, with(`"`+f.Name+`":""`))
			*e.text(extra.Number(envelopeFields[:], f.Name)) = "now"
			require.Equal(t, with(`"`+f.Name+`":"now"`), encodeEvent(t, e))
		}
	}
	requireSameLine(t, with(`"marks":[]`))

	// A spelling goes once the field is set.
	null.Step = Some(4)
	require.Equal(t, with(`"step":4`), encodeEvent(t, null))
	for _, spelled := range []string{`"marks":null`, `"marks":[]`} {
		e := decodeLine(t, with(spelled))
		e.Marks = MarkReplayed
		require.Equal(t, with(`"marks":["replayed"]`), encodeEvent(t, e))
	}

	// The same in payloads.
	ended := func(member string) string {
		return strings.Replace(strings.Replace(aLine, "run.paused", "agent.ended", 1), `{}`, `{`+member+`}`, 1)
	}
	require.False(t, requireSameLine(t, ended(``)).Payload.(*AgentEnded).Duration.OK)
	require.Equal(t, Some(time.Duration(0)), requireSameLine(t, ended(`"durationMs":0`)).Payload.(*AgentEnded).Duration)
	require.False(t, requireSameLine(t, ended(`"durationMs":null`)).Payload.(*AgentEnded).Duration.OK)
	require.Equal(t, Some(1500*time.Nanosecond), requireSameLine(t, ended(`"durationMs":0.0015`)).Payload.(*AgentEnded).Duration)
	requireSameLine(t, ended(`"outcome":"","error":null,"result":"","modelUsage":{}`))
}

// A line of a newer version is written as it was read: unknown members keep
// their bytes and their places, at every depth.
func TestUnknownMembersSurvive(t *testing.T) {
	const strange = `"x-new":{"b":[1.0,1e2,9007199254740993],"a":"<\u00e9\/>","c":null}`
	line := `{"id":"e1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"agent.ended","runId":"r1","agentId":"a","marks":["late"],` +
		`"payload":{"outcome":"converged","error":{"code":"c","message":"m"},"usage":{"inputTokens":1,"outputTokens":2},"modelUsage":{"m":{"inputTokens":1,"outputTokens":2}}}}`
	inserted := 0
	for i := 0; i < len(line); i++ {
		var with string
		switch {
		case line[i] == '{' && !strings.HasSuffix(line[:i], `"modelUsage":`): // first
			with = line[:i+1] + strange + "," + line[i+1:]
		case line[i] == '}' && !strings.HasSuffix(line[:i+1], "}}}}") && !strings.HasSuffix(line[:i+1], "2}}"): // last
			with = line[:i] + "," + strange + line[i:]
		case strings.HasPrefix(line[i:], `,"`): // in the middle
			with = line[:i+1] + strange + line[i:]
		default:
			continue
		}
		if jsonwire.Valid(with) != nil {
			continue
		}
		inserted++
		e := requireSameLine(t, with)

		// A known field that changes is written as it is now, among them.
		e.AgentID = "b"
		require.Equal(t, strings.Replace(with, `"agentId":"a"`, `"agentId":"b"`, 1), encodeEvent(t, e))
	}
	require.Greater(t, inserted, 20)

	requireSameLine(t, strings.Replace(aLine, `"payload":{}`, `"payload":{},"hash":"00ff"`, 1))
	many := aLine[:len(aLine)-1]
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		many += `,"` + string(c) + `":1`
	}
	requireSameLine(t, many+"}")
	require.ErrorContains(t, new(Event).UnmarshalJSON([]byte(many+`,"c":2}`)), "duplicate")
}

func TestUnknownMarksSurvive(t *testing.T) {
	with := func(marks string) string {
		return strings.Replace(aLine, `"payload"`, `"marks":`+marks+`,"payload"`, 1)
	}
	e := requireSameLine(t, with(`["late","redacted","vetted","x \" y"]`))
	require.Equal(t, MarkLate|MarkRedacted, e.Marks)
	e.Marks |= MarkReplayed
	require.Equal(t, with(`["late","replayed","redacted","vetted","x \" y"]`), encodeEvent(t, e))
	e.Marks = 0
	require.Equal(t, with(`["vetted","x \" y"]`), encodeEvent(t, e))
	requireSameLine(t, with(`["vetted"]`))
	require.Equal(t, "late,redacted", (MarkLate | MarkRedacted).String())
	require.Empty(t, Marks(0).String())
	require.True(t, (MarkLate | MarkRedacted).Has(MarkRedacted))
	require.False(t, MarkLate.Has(MarkLate|MarkRedacted))
}

// Members come in any order; type may follow the payload.
func TestMembersInAnyOrder(t *testing.T) {
	full := fullEvent(t)
	members := membersOf(t, encodeEvent(t, full))
	for range members {
		members = append(members[1:], members[0])
		require.Equal(t, full, decodeLine(t, objectOf(members...)))
	}
	e := decodeLine(t, `{"payload":{"reason":"r","new":1},"type":"run.paused","runId":"r1","timestamp":"2026-05-05T09:00:00Z","sequence":0,"id":"e1"}`)
	require.Equal(t, "r", e.Payload.(*RunPaused).Reason)
	require.Equal(t, `{"id":"e1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r1","payload":{"reason":"r","new":1}}`, encodeEvent(t, e))

	// An error inside such a payload is where it is in the line.
	requireLineError(t, `{"payload":{"reason":1},"type":"run.paused"}`, "/payload/reason", 21)
}

// A line without a required member is read and reported. Writing it does not add
// the member.
func TestMissingMembersAreReported(t *testing.T) {
	members := membersOf(t, aLine)
	for _, f := range envelopeFields {
		if !f.Required() || f.Name == "type" {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			e := requireSameLine(t, objectOf(withoutMember(members, f.Name)...))
			require.NotNil(t, e.Payload)
			fold := NewFold(FoldOptions{})
			fold.Apply(e)
			s := fold.Snapshot()
			require.Len(t, s.Violations, 1)
			require.Equal(t, RuleFieldRequired, s.Violations[0].Rule)
			require.Equal(t, "/"+f.Name, s.Violations[0].Pointer)

			// Once it is set, it is written.
			if to := e.text(extra.Number(envelopeFields[:], f.Name)); to != nil {
				*to = "now"
				require.Contains(t, encodeEvent(t, e), `"`+f.Name+`":"now"`)
			}
		})
	}
	requireLineError(t, objectOf(withoutMember(members, "type")...), "", -1)
	requireLineError(t, strings.Replace(aLine, "run.paused", "", 1), "", -1)

	// A known kind with required members and no payload at all.
	e := requireSameLine(t, `{"id":"e1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"agent.toolCalled","runId":"r1"}`)
	require.Equal(t, RuleFieldRequired, e.check(ops(e.Payload), false).rule)
	// An unknown kind may have none.
	e = requireSameLine(t, `{"id":"e1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"vendor.thing","runId":"r1"}`)
	require.Nil(t, e.check(ops(e.Payload), false))
	requireSameLine(t, strings.Replace(strings.Replace(aLine, "run.paused", "vendor.thing", 1), "{}", "null", 1))
}

// requireLineError wants a line refused, at a place. A column below 0 is any.
func requireLineError(t *testing.T, line, pointer string, column int) {
	t.Helper()
	e := Event{ID: "untouched"}
	err := e.UnmarshalJSON([]byte(line))
	var le *LineError
	require.ErrorAs(t, err, &le, "%.200s", line)
	require.Equal(t, 1, le.Line)
	require.Equal(t, pointer, le.Pointer, "%.200s: %v", line, err)
	if column >= 0 {
		require.Equal(t, column, le.Column, "%.200s: %v", line, err)
	}
	require.Equal(t, "untouched", e.ID, "a line that cannot be read changes nothing")
}

func TestBadLinesHaveAPlace(t *testing.T) {
	at := func(old, replacement string) (string, int) {
		require.Contains(t, aLine, old)
		return strings.Replace(aLine, old, replacement, 1), strings.Index(aLine, old)
	}
	for _, c := range []struct{ old, new, pointer string }{
		{`7`, `-1`, "/sequence"},
		{`7`, `1.5`, "/sequence"},
		{`7`, `18446744073709551616`, "/sequence"},
		{`7`, `"7"`, "/sequence"},
		{`7`, `null`, "/sequence"},
		{`7`, `07`, "/sequence"},
		{`7`, `NaN`, "/sequence"},
		{`"e1"`, `1`, "/id"},
		{`"e1"`, `null`, "/id"},
		{`"r1"`, `["r1"]`, "/runId"},
		{`"run.paused"`, `{}`, "/type"},
		{`"run.paused"`, `null`, "/type"},
		{`"2026-05-05T09:00:00.000Z"`, `1777971600000`, "/timestamp"},
		{`"2026-05-05T09:00:00.000Z"`, `"yesterday"`, "/timestamp"},
		{`"2026-05-05T09:00:00.000Z"`, `"2026-05-05 09:00:00Z"`, "/timestamp"},
		{`"2026-05-05T09:00:00.000Z"`, `"2026-02-29T09:00:00Z"`, "/timestamp"},
		{`"2026-05-05T09:00:00.000Z"`, `"2026-05-05T09:00:00"`, "/timestamp"},
		{`{}}`, `[]}`, "/payload"},
		{`{}}`, `null}`, "/payload"},
		{`{}}`, `"text"}`, "/payload"},
	} {
		line, column := at(c.old, c.new)
		var le *LineError
		require.ErrorAs(t, new(Event).UnmarshalJSON([]byte(line)), &le, line)
		require.Equal(t, c.pointer, le.Pointer, line)
		require.GreaterOrEqual(t, le.Column, column, line)
		require.LessOrEqual(t, le.Column, column+len(c.new), line)
	}

	with := func(member string) string { return aLine[:len(aLine)-1] + "," + member + "}" }
	last := len(aLine) // of the inserted member's first byte
	for _, c := range []struct {
		line, pointer string
		column        int
	}{
		{with(`"step":9223372036854775808`), "/step", last + 7},
		{with(`"step":1.5`), "/step", -1},
		{with(`"step":"1"`), "/step", last + 7},
		{with(`"agentId":5`), "/agentId", last + 10},
		{with(`"marks":"late"`), "/marks", last + 8},
		{with(`"marks":["late",1]`), "/marks/1", last + 16},
		{strings.Replace(aLine, `{}`, `{"reason":true}`, 1), "/payload/reason", -1},
		{strings.Replace(strings.Replace(aLine, "run.paused", "turn.summarized", 1), `{}`, `{"toolCalls":[{"durationMs":{}}]}`, 1), "/payload/toolCalls/0/durationMs", -1},

		// Duplicates, at every level.
		{with(`"id":"e2"`), "/id", -1},
		{with(`"payload":{}`), "/payload", -1},
		{with(`"x":1,"x":2`), "/x", -1},
		{with(`"x":{"y":[{"z":1,"z":2}]}`), "/x/y/0/z", -1},
		{with(`"\u0069d":"e2"`), "/id", -1},
		{strings.Replace(aLine, `{}`, `{"reason":"a","reason":"b"}`, 1), "/payload/reason", -1},
		{strings.Replace(strings.Replace(aLine, "run.paused", "run.failed", 1), `{}`, `{"error":{"message":"a","message":"b"}}`, 1), "/payload/error/message", -1},
		{strings.Replace(strings.Replace(aLine, "run.paused", "run.completed", 1), `{}`, `{"outputs":{"a":1,"a":2}}`, 1), "/payload/outputs/a", -1},
		{strings.Replace(strings.Replace(aLine, "run.paused", "vendor.x", 1), `{}`, `{"a":{"b":1,"b":2}}`, 1), "/payload/a/b", -1},

		// Not JSON, not UTF-8, or more than one value.
		{with(`"x":1`) + "x", "", len(with(`"x":1`))},
		{aLine + aLine, "", len(aLine)},
		{"", "", 0},
		{"null", "", 0},
		{"[]", "", 0},
		{"{", "", 1},
		{aLine[:len(aLine)-1], "", -1},
		{with(`"x":tru`), "/x", -1},
		{with(`"x":01`), "/x", -1},
		{with(`"x":[1,]`), "/x", -1},
		{with(`'x':1`), "", -1},
		{strings.Replace(aLine, "e1", "e\xff", 1), "/id", 8},
		{strings.Replace(aLine, "e1", "e\xed\xa0\x80", 1), "/id", 8},
		{strings.Replace(aLine, "e1", `\ud800`, 1), "/id", -1},
		{strings.Replace(aLine, "e1", `\udc00\ud800`, 1), "/id", -1},
		{strings.Replace(aLine, "e1", "a\tb", 1), "/id", -1},
		{strings.Replace(aLine, "e1", "a\x00b", 1), "/id", -1},
		{strings.Replace(aLine, "e1", `\x41`, 1), "/id", -1},
		{with(`"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000)), "/x" + strings.Repeat("/0", 999), -1},
	} {
		requireLineError(t, c.line, c.pointer, c.column)
	}
	// One level less is fine.
	requireSameLine(t, with(`"x":`+strings.Repeat("[", 999)+strings.Repeat("]", 999)))
}

// Raw JSON belongs to whoever wrote it: only blanks go, so that a line stays a
// line.
func TestLinesKeepTheBytesOfRawJSON(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{`{"z":1,"a":2,"m":{"y":1,"b":2}}`, ""},
		{`[9007199254740993,-0,0.10,1E400,1e-400,123456789012345678901234567890]`, ""},
		{`"<script>&amp;</script> \u003c \u2028 \/ é \ud83d\ude00 😀"`, ""},
		{`"\u0000\n\t\\\""`, ""},
		{`null`, ""}, {`true`, ""}, {`""`, ""}, {`{}`, ""}, {`[]`, ""},
		{" { \"a\" :\t[ 1 , \"b  c\" ] } ", `{"a":[1,"b  c"]}`},
		{"[\r\n1\r\n]", `[1]`},
	} {
		if c.out == "" {
			c.out = c.in
		}
		p := &RunCompleted{Outputs: JSON(c.in)}
		line := encodeEvent(t, Event{ID: "e", RunID: "r", Time: rulesEpoch, Payload: p})
		require.Contains(t, line, `"outputs":`+c.out+`}`)
		require.NotContains(t, line, "\n")
		require.Equal(t, c.in, string(p.Outputs), "encoding does not change the payload")
		require.Equal(t, JSON(c.out), requireSameLine(t, line).Payload.(*RunCompleted).Outputs)
	}
	// Blanks of the line go as well.
	e := decodeLine(t, " {\"id\" : \"e1\",\t\"sequence\":0 , \"timestamp\":\"2026-05-05T09:00:00Z\",\"type\":\"vendor.x\",\"runId\":\"r\" ,\"payload\":{ \"a\" : [ 1 ] } , \"y\" : { \"b\" : 2 } } ")
	require.Equal(t, `{"id":"e1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"vendor.x","runId":"r","payload":{"a":[1]},"y":{"b":2}}`, encodeEvent(t, e))
}

func TestTimesKeepTheirPrecision(t *testing.T) {
	for in, out := range map[string]string{
		"2026-05-05T09:00:00Z":           "2026-05-05T09:00:00.000Z",
		"2026-05-05T09:00:00.1Z":         "2026-05-05T09:00:00.100Z",
		"2026-05-05T09:00:00.123Z":       "2026-05-05T09:00:00.123Z",
		"2026-05-05T09:00:00.123456Z":    "2026-05-05T09:00:00.123456Z",
		"2026-05-05T09:00:00.1234Z":      "2026-05-05T09:00:00.123400Z",
		"2026-05-05T09:00:00.123456789Z": "2026-05-05T09:00:00.123456789Z",
		"2026-05-05T11:30:00.5+02:30":    "2026-05-05T09:00:00.500Z",
		"2026-05-04T23:00:00-10:00":      "2026-05-05T09:00:00.000Z",
		"0000-01-01T00:00:00Z":           "0000-01-01T00:00:00.000Z",
		"9999-12-31T23:59:59.999999999Z": "9999-12-31T23:59:59.999999999Z",
		"2024-02-29T00:00:00+00:00":      "2024-02-29T00:00:00.000Z",
		"0001-01-01T00:00:00Z":           "0001-01-01T00:00:00.000Z",
	} {
		e := decodeLine(t, strings.Replace(aLine, "2026-05-05T09:00:00.000Z", in, 1))
		require.Equal(t, strings.Replace(aLine, "2026-05-05T09:00:00.000Z", out, 1), encodeEvent(t, e))
		want, err := time.Parse(time.RFC3339Nano, in)
		require.NoError(t, err)
		require.True(t, want.Equal(e.Time))
		require.Equal(t, time.UTC, e.Time.Location())
	}
	for _, bad := range []string{"0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "12026-05-05T09:00:00Z", "2026-05-05T09:00:00.1234567890Z", "2026-05-05T24:00:00Z", "2026-05-05T09:00:60Z"} {
		requireLineError(t, strings.Replace(aLine, "2026-05-05T09:00:00.000Z", bad, 1), "/timestamp", -1)
	}

	// Other years cannot be written.
	for _, year := range []int{-1, 10000} {
		e := Event{ID: "e", RunID: "r", Time: time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC), Payload: &RunPaused{}}
		requireNotWritten(t, e, RuleFieldRange)
	}
	// In UTC, not where the clock hangs.
	west := Event{ID: "e", RunID: "r", Time: time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -3600*2)), Payload: &RunPaused{}}
	requireNotWritten(t, west, RuleFieldRange)
}

func requireNotWritten(t *testing.T, e Event, rule Rule) {
	t.Helper()
	text, err := e.AppendJSON([]byte("before"))
	var broken *RuleError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, rule, broken.Rule)
	require.Equal(t, "before", string(text))
	_, err = json.Marshal(e)
	require.ErrorAs(t, err, &broken)
}

func TestAppendRefusesInvalidEvents(t *testing.T) {
	for _, c := range []struct {
		rule    Rule
		payload Payload
	}{
		{RulePayload, nil},
		{RulePayload, (*RunPaused)(nil)},
		{RulePayload, (*Unknown)(nil)},
		{RulePayload, foreignPayload{}},
		{RulePayload, foreignPayload{&ToolCalled{CallID: "c", ToolID: "t"}}},
		{RulePayload, &Unknown{Type: KindRunPaused, Raw: "{}"}},
		{RuleFieldRequired, &Unknown{Raw: "{}"}},
		{RuleFieldJSON, &Unknown{Type: "vendor.x", Raw: "{"}},
		{RuleFieldJSON, &RunCompleted{Outputs: "nope"}},
		{RuleFieldJSON, &RunFailed{Error: Some(ErrorInfo{Message: "m", Details: "1 2"})}},
		{RuleFieldUTF8, &ToolCalled{CallID: "c\xff", ToolID: "t"}},
	} {
		requireNotWritten(t, Event{ID: "e", RunID: "r", Time: rulesEpoch, Payload: c.payload}, c.rule)
	}
	for pointer, p := range map[string]Payload{
		"/payload":               &Unknown{Type: "vendor.x", Raw: "{"},
		"/payload/outputs":       &RunCompleted{Outputs: "nope"},
		"/payload/error/details": &RunFailed{Error: Some(ErrorInfo{Message: "m", Details: "1 2"})},
		"/payload/callId":        &ToolCalled{CallID: "c\xff", ToolID: "t"},
	} {
		_, err := (&Event{Payload: p}).AppendJSON(nil)
		var broken *RuleError
		require.ErrorAs(t, err, &broken)
		require.Equal(t, pointer, broken.Pointer)
	}
	for _, bad := range []Event{{ID: "\xff"}, {RunID: "\xff"}, {Scope: Scope{Phase: "\xff"}}, {AgentID: "\xff"}, {TraceID: "\xff"}, {SchemaVersion: "\xff"}} {
		bad.Payload = &RunPaused{}
		requireNotWritten(t, bad, RuleFieldUTF8)
	}
	// An event that breaks a rule can be written: logs are kept as they are.
	line := `{"id":"e1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"agent.toolReturned","runId":"r1","step":-4,"payload":{"callId":"","status":"odd","durationMs":-1}}`
	requireSameLine(t, line)
}

func TestEncodingJSON(t *testing.T) {
	e := fullEvent(t)
	text, err := json.Marshal(map[string]any{"event": e, "pointer": &e})
	require.NoError(t, err)
	var back struct{ Event, Pointer Event }
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, e, back.Event)
	require.Equal(t, e, back.Pointer)

	var le *LineError
	require.ErrorAs(t, json.Unmarshal([]byte(`{"type":"run.paused","step":"x"}`), &back.Event), &le)
	require.Equal(t, "/step", le.Pointer)
	require.Equal(t, e, back.Event, "an unreadable value changes nothing")
	require.NotEmpty(t, errors.Unwrap(le).Error())
}

// readVerbatim reads one line with Verbatim set.
func readVerbatim(t *testing.T, line string) Event {
	t.Helper()
	for e, err := range NewReader(strings.NewReader(line+"\n"), ReaderOptions{Verbatim: true}).All() {
		require.NoError(t, err)
		return e
	}
	t.Fatal("no event")
	return Event{}
}

// With Verbatim a line is written back byte for byte, however it is spelled, until its event
// changes. Then the line has the event's values.
func TestVerbatim(t *testing.T) {
	odd := []string{
		aLine,
		" " + strings.ReplaceAll(aLine, `":`, `" : `) + "\t",
		strings.Replace(aLine, `"e1"`, `"\u0065\u0031"`, 1),
		strings.Replace(aLine, `"id"`, `"\u0069d"`, 1),
		strings.Replace(aLine, "09:00:00.000Z", "11:00:00+02:00", 1),
		strings.Replace(aLine, "09:00:00.000Z", "09:00:00.0000Z", 1),
		`{"payload":{},"runId":"r1","type":"run.paused","timestamp":"2026-05-05T09:00:00.000Z","sequence":7,"id":"e1"}`,
		strings.Replace(strings.Replace(aLine, "run.paused", "agent.ended", 1), "{}", `{"durationMs":1.0,"convergenceScore":1e0,"usage":{"outputTokens":2,"inputTokens":1}}`, 1),
		strings.Replace(strings.Replace(aLine, "run.paused", "run.completed", 1), "{}", `{ "outputs" : { "a" : [ 1 , 2 ] } }`, 1),
		strings.Replace(aLine, `"payload"`, `"marks":["sanitized","late","late"],"payload"`, 1),
	}
	for _, line := range odd {
		e := readVerbatim(t, line)
		require.Equal(t, strings.TrimSpace(line), strings.TrimSpace(encodeEvent(t, e)))
		require.Equal(t, line, encodeEvent(t, e), "not even a blank differs")
		canonical := encodeEvent(t, decodeLine(t, line))

		changes := map[string]func(e *Event){
			"id":       func(e *Event) { e.ID += "!" },
			"sequence": func(e *Event) { e.Sequence++ },
			"time":     func(e *Event) { e.Time = e.Time.Add(time.Nanosecond) },
			"run":      func(e *Event) { e.RunID = "r2" },
			"step":     func(e *Event) { e.Step = Some(0) },
			"phase":    func(e *Event) { e.Phase = "p" },
			"marks":    func(e *Event) { e.Marks |= MarkReplayed },
			"kind":     func(e *Event) { e.Payload = &RunResumed{} },
			"payload": func(e *Event) {
				switch p := e.Payload.(type) {
				case *RunPaused:
					e.Payload = &RunPaused{Reason: "x"}
				case *AgentEnded:
					out := *p
					out.Usage.V.InputTokens++
					e.Payload = &out
				case *RunCompleted:
					e.Payload = &RunCompleted{Outputs: `{"a":[1,3]}`}
				}
			},
		}
		for name, change := range changes {
			t.Run(name, func(t *testing.T) {
				e := readVerbatim(t, line)
				change(&e)
				got := encodeEvent(t, e)
				require.NotEqual(t, line, got)
				require.NotEqual(t, canonical, got)

				// It equals the text of the same event without a line of its own.
				bare := e
				bare.origin = ""
				require.Equal(t, encodeEvent(t, bare), got)
				again := decodeLine(t, got)
				require.Equal(t, got, encodeEvent(t, again))
			})
		}

		// Changed and changed back: either spelling will do, with these values.
		e.AgentID = "x"
		_ = encodeEvent(t, e)
		e.AgentID = ""
		require.Contains(t, []string{line, canonical}, encodeEvent(t, e))
		require.Equal(t, canonical, encodeEvent(t, decodeLine(t, encodeEvent(t, e))))
	}
}

// The write path does not allocate: a big buffer and no cleaning to do.
func TestEventAppendAllocs(t *testing.T) {
	buf := make([]byte, 0, 64<<10)
	for _, e := range sampleEvents() {
		p := ops(e.Payload)
		require.Zero(t, leastAllocs(20, func() { buf = e.append(buf[:0], p) }), e.Kind())
		require.True(t, bytes.HasPrefix(buf, []byte(`{"id":`)))
		require.Zero(t, leastAllocs(20, func() {
			if e.check(ops(e.Payload), false) != nil {
				panic("broken rule")
			}
		}), e.Kind())
	}
	full := fullEvent(t)
	p := ops(full.Payload)
	require.Zero(t, leastAllocs(20, func() { buf = full.append(buf[:0], p) }))
}

func TestEventKind(t *testing.T) {
	require.Equal(t, KindRunPaused, (&Event{Payload: &RunPaused{}}).Kind())
	require.Equal(t, Kind("vendor.x"), (&Event{Payload: &Unknown{Type: "vendor.x"}}).Kind())
	require.Empty(t, (&Event{}).Kind())
	require.Empty(t, (&Event{Payload: foreignPayload{&ToolCalled{}}}).Kind(), "no method of a foreign value is called")
}

// FuzzEvent: every event that can be read can be written, and reads the same again.
func FuzzEvent(f *testing.F) {
	f.Add([]byte(aLine))
	linked, _ := chain.Append(nil, []byte(aLine), chain.Hash{})
	f.Add(linked)
	f.Add(bytes.Replace(linked, []byte(`,"prev"`), []byte(`, "prev"`), 1)) // its own members
	for _, e := range sampleEvents() {
		line, err := e.AppendJSON(nil)
		require.NoError(f, err)
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var e Event
		if e.UnmarshalJSON(line) != nil {
			return
		}
		text, err := e.AppendJSON(nil)
		require.NoError(t, err)
		var again Event
		require.NoError(t, again.UnmarshalJSON(text))
		second, err := again.AppendJSON(nil)
		require.NoError(t, err)
		require.Equal(t, string(text), string(second))
		require.True(t, json.Valid(text))
	})
}

// requireCanonical reads line and checks the promises of odd for the pools.
func requireCanonical(t *testing.T, line string) {
	t.Helper()
	var ev, slow Event
	pool := new(payloadPool)
	err := parseEvent(line, &ev, pool)
	if rest, ok := strings.CutPrefix(line, "{"); ok {
		// With a space at its start the line is not read in the usual way.
		spaced := "{ " + rest
		slowErr := parseEvent(spaced, &slow, new(payloadPool))
		require.Equal(t, slowErr == nil, err == nil, line)
		if err != nil {
			is, want := lineError(line, err), lineError(spaced, slowErr)
			require.Equal(t, []any{want.Pointer, want.Err}, []any{is.Pointer, is.Err}, line)
			require.Equal(t, want.Column, is.Column+min(is.Column, 1), line)
		} else {
			require.Equal(t, slow, ev)
		}
	}
	if err != nil {
		return
	}
	text, err := ev.AppendJSON(nil)
	require.NoError(t, err)
	if !pool.odd {
		require.Equal(t, line, string(text), "not odd, and written in another way")
	}
	require.Equal(t, string(text), pool.canonical(line))

	// A pool for folds finds the same, the second time too.
	fold := &payloadPool{reuse: true}
	for range 2 {
		var again Event
		require.NoError(t, parseEvent(line, &again, fold))
		require.Equal(t, pool.odd, fold.odd, line)
		require.Equal(t, string(text), fold.canonical(line))
	}

	// The written line is not odd.
	var back Event
	require.NoError(t, parseEvent(string(text), &back, pool))
	require.False(t, pool.odd, "%s", text)
}

func canonicalSeeds(t testing.TB) []string {
	t.Helper()
	var lines []string
	for info := range Kinds() {
		line, err := (&Event{ID: "1", RunID: "r", Time: noon(), Step: Some(1), Marks: 31, Payload: filledPayload(t, info.Kind)}).AppendJSON(nil)
		require.NoError(t, err)
		lines = append(lines, string(line))
	}
	for _, line := range kindLines(t) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	for _, test := range oddLines {
		lines = append(lines, test.line())
	}
	return lines
}

// An oddLine is a line with one thing in its envelope or payload, and whether it
// is spelled in another way than AppendJSON writes it.
type oddLine struct {
	envelope, payload string
	odd               bool
}

func (l oddLine) line() string {
	line := `{"id":"e","sequence":1,"timestamp":"2026-01-02T03:04:05.006Z","type":"budget.exceeded","runId":"r"` + l.envelope + `,"payload":{` + l.payload + `}}`
	if strings.HasPrefix(strings.TrimSpace(l.envelope), "{") {
		line = l.envelope
	}
	return line
}

var oddLines = []oddLine{
	{``, `"budget":"b","limit":1.5,"actual":2`, false},
	{``, ``, false},
	// Whitespace, anywhere.
	{` `, ``, true}, {`, "step":1`, ``, true}, {`,"step" :1`, ``, true}, {`,"step": 1`, ``, true}, {`,"marks":[ "late"]`, ``, true},
	{`,"marks":["late" ,"replayed"]`, ``, true}, {``, ` `, true}, {`,"x":[1, 2]`, ``, true}, {``, `"x":{"a" :1}`, true},
	{`{"type":"run.paused"} `, ``, true}, {` {"type":"run.paused"}`, ``, true},
	// Escapes.
	{``, `"budget":"\"\\\b\f\n\r\t\u0000\u001f"`, false}, {``, `"budget":"\u001F"`, true}, {``, `"budget":"\/"`, true}, {``, `"budget":"\u0041"`, true},
	{``, `"budget":"\u000a"`, true}, {``, `"budget":"\ud83d\ude00"`, true}, {``, "\"budget\":\"\U0001F600\u2028\x7f\"", false},
	{`,"\u0073tep":1`, ``, true}, {`,"a\nb":1`, ``, false}, {`,"a\u0062":1`, ``, true}, {`,"x":"\u0041\/"`, ``, false},
	// Order.
	{`,"step":1,"agentId":"a"`, ``, true}, {``, `"limit":1,"budget":"b"`, true}, {``, `"x":1,"budget":"b","y":2,"limit":1,"z":3`, false},
	{`{"type":"run.paused","id":"e"}`, ``, true}, {`{"payload":{},"type":"run.paused"}`, ``, true},
	{`{"type":"vendor.x","payload":{"b":1,"a":[1.0]},"x":2}`, ``, false}, {`{"type":"vendor.x","payload":{"b": 1}}`, ``, true},
	{`{"type":"agent.ended","payload":{"modelUsage":{"a":{},"b":{}}}}`, ``, false}, {`{"type":"agent.ended","payload":{"modelUsage":{"b":{},"a":{}}}}`, ``, true},
	// Marks.
	{`,"marks":[]`, ``, false}, {`,"marks":["late","replayed","new","newer","new"]`, ``, false}, {`,"marks":["new"]`, ``, false},
	{`,"marks":["replayed","late"]`, ``, true}, {`,"marks":["late","late"]`, ``, true}, {`,"marks":["new","late"]`, ``, true},
	// Absent values that are spelled out.
	{`,"agentId":null,"step":null,"marks":null`, `"reason":null`, false}, {`,"x":1,"step":null,"y":2,"agentId":"","z":3`, ``, true}, {`,"agentId":"","schemaVersion":""`, `"reason":""`, false},
	// Numbers.
	{`,"step":-0`, ``, true}, {`,"step":0`, ``, false}, {``, `"limit":1.0`, true}, {``, `"limit":1e2`, true}, {``, `"limit":100`, false}, {``, `"limit":-0`, false},
	{``, `"limit":0.0`, true}, {``, `"limit":1e+300`, false}, {``, `"limit":1e300`, true}, {``, `"limit":1E+300`, true}, {``, `"limit":0.1000000000000000055`, true},
	{``, `"limit":0.30000000000000004`, false}, {``, `"limit":1e-7`, false}, {``, `"limit":0.0000001`, true}, {``, `"limit":0.000001`, false},
	{``, `"limit":100000000000000000000`, false}, {``, `"limit":1000000000000000000000`, true}, {``, `"limit":1e+21`, false}, {``, `"limit":12345678901234567890`, true},
	{`{"sequence":-0,"type":"run.paused"}`, ``, true},
	{`{"type":"step.ended","payload":{"durationMs":1.5}}`, ``, false}, {`{"type":"step.ended","payload":{"durationMs":1.50}}`, ``, true},
	{`{"type":"step.ended","payload":{"durationMs":0.000001}}`, ``, false}, {`{"type":"step.ended","payload":{"durationMs":0.0000001}}`, ``, true},
	{`{"type":"step.ended","payload":{"durationMs":1e1}}`, ``, true}, {`{"type":"step.ended","payload":{"durationMs":-0}}`, ``, true},
	{`{"type":"step.ended","payload":{"durationMs":10}}`, ``, false}, {`{"type":"step.ended","payload":{"durationMs":-0.0}}`, ``, true},
	// Times.
	{`{"timestamp":"2026-01-02T03:04:05Z","type":"run.paused"}`, ``, true}, {`{"timestamp":"2026-01-02T03:04:05.1Z","type":"run.paused"}`, ``, true},
	{`{"timestamp":"2026-01-02T03:04:05.100Z","type":"run.paused"}`, ``, false}, {`{"timestamp":"2026-01-02T03:04:05.100000Z","type":"run.paused"}`, ``, true},
	{`{"timestamp":"2026-01-02T03:04:05.100200Z","type":"run.paused"}`, ``, false}, {`{"timestamp":"2026-01-02T03:04:05.100200000Z","type":"run.paused"}`, ``, true},
	{`{"timestamp":"2026-01-02T03:04:05.000000001Z","type":"run.paused"}`, ``, false}, {`{"timestamp":"2026-01-02T03:04:05.000+00:00","type":"run.paused"}`, ``, true},
	{`{"timestamp":"2026-01-02T03:04:05.\u0030000Z","type":"run.paused"}`, ``, true},
	{`{"type":"workflow.approved","payload":{"approvedAt":"0001-01-01T00:00:00.000Z"}}`, ``, false},
}

func TestCanonical(t *testing.T) {
	for _, test := range oddLines {
		line := test.line()
		var ev Event
		pool := new(payloadPool)
		require.NoError(t, parseEvent(line, &ev, pool), line)
		require.Equal(t, test.odd, pool.odd, line)
		text, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		require.Equal(t, test.odd, line != string(text), "%s\n%s", line, text)
		requireCanonical(t, line)
	}
}

// A byte is added to or changed in every line. If the line is still accepted, odd is right.
func TestCanonicalOfChangedLines(t *testing.T) {
	for i, line := range canonicalSeeds(t) {
		requireCanonical(t, line)
		if i < len(catalog) {
			continue // the golden files have the same members
		}
		inString := false
		for i := 0; i < len(line); i++ {
			switch c := line[i]; {
			case c == '\\':
				i++
			case c == '"':
				inString = !inString
			case i%effort.Of(5, 1, 1) != 0:
			case inString && c < 0x80:
				requireCanonical(t, line[:i]+`\u00`+string("0123456789abcdef"[c>>4])+string("0123456789ABCDEF"[c&15])+line[i+1:])
			case !inString:
				requireCanonical(t, line[:i]+" "+line[i:])
				if '0' <= c && c <= '9' {
					for _, more := range []string{"0", ".0", "e0", "1"} {
						requireCanonical(t, line[:i+1]+more+line[i+1:])
					}
				}
			}
		}
		// Members of the envelope and the payload in another order.
		for _, object := range []string{line, string(payloadOf(line))} {
			var members []string
			for name, value := range jsonwire.Members(object) {
				members = append(members, jsonwire.Quote(name)+":"+value)
			}
			for i := 1; i < len(members); i++ {
				members[i-1], members[i] = members[i], members[i-1]
				requireCanonical(t, strings.Replace(line, object, "{"+strings.Join(members, ",")+"}", 1))
				members[i-1], members[i] = members[i], members[i-1]
			}
		}
	}
}

func payloadOf(line string) JSON {
	for name, value := range jsonwire.Members(line) {
		if name == "payload" {
			return JSON(value)
		}
	}
	return ""
}

// A repeated event is the same event however it is spelled.
func TestFoldLogKnowsARepetitionInAnotherSpelling(t *testing.T) {
	first := `{"id":"e1","sequence":0,"timestamp":"2026-01-02T03:04:05.000Z","type":"run.paused","runId":"r","payload":{"reason":"é"}}`
	for again, violations := range map[string]int{
		first: 0,
		` {"sequence":0 ,"id":"\u00651","timestamp":"2026-01-02T04:04:05+01:00","type":"run.paused","runId":"r","payload":{"reason":"\u00e9"}} `: 0,
		strings.Replace(first, "é", "e", 1): 1,
	} {
		log := first + "\n" + again + "\n"
		byLine, err := snapshotsOf(NewReader(strings.NewReader(log), ReaderOptions{}), FoldOptions{})
		require.NoError(t, err)
		byEvent, err := foldSeq(NewReader(strings.NewReader(log), ReaderOptions{}).All(), FoldOptions{})
		require.NoError(t, err)
		require.Equal(t, byEvent, byLine)
		require.Len(t, byLine[0].Violations, violations, again)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, line := range canonicalSeeds(f) {
		f.Add(line)
	}
	for _, line := range []string{
		`{,"sequence":1,"type":"run.paused"}`, `{"id":"e",,"sequence":1,"type":"run.paused"}`, `{"id":"e","sequence":01,"type":"run.paused"}`,
		`{"id":"e","sequence":1`, `{"id":"e","sequence":1.5}`, `{"id":"e","id":"f","type":"run.paused"}`, `{"id":"e","timestamp":"2026-13-02T03:04:05.006Z","type":"x"}`,
		`{"id":"e","type":"x","runId":"r`, `{"id":"e","type":"x","payload":{}`, `{"id":"e","type":"x","payload":{},"type":"x"}`, `{"id":"e","payload":{}}`,
		`{"id":"","sequence":12345678901,"type":"","runId":"","step":12345678901}`, `{"id":"e","type":"run.paused","payload":{}}}`,
	} {
		f.Add(line)
	}
	f.Fuzz(requireCanonical)
}
