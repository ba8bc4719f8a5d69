package kaos

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The fast paths and caches of the decoder read the same as a fresh decoder does
// without them.

func TestRunsOfLines(t *testing.T) {
	// In its JSON spelling, the second run id equals the first one.
	for _, runs := range [][]string{
		{`a\\n`, `a\n`}, {`a\n`, `a\\n`}, {`r`, `r2`}, {`r2`, `r`}, {``, `r`}, {`r`, ``}, {`\u0061`, `a`}, {`a`, `\u0061`}, {`a\"`, `a`},
	} {
		d := NewDecoder(testOptions)
		for i, run := range []string{runs[0], runs[0], runs[1], runs[1], runs[0]} {
			line := numbered(strings.Replace(goldens[0].line, `"run_id":"run_0123456789ab"`, `"run_id":"`+run+`"`, 1), i)
			require.Contains(t, line, `"run_id":"`+run+`",`)
			events, err := d.Decode(nil, []byte(line))
			require.NoError(t, err)
			require.Equal(t, jsonwire.Text(`"`+run+`"`), events[0].RunID, "%d of %q", i, runs)
		}
	}
}

func TestTimesOfLines(t *testing.T) {
	line := func(seconds string) []byte {
		return []byte(`{"timestamp":` + seconds + `,"sequence":0,"session_id":"s","run_id":"r","content":"","type":"text_delta"}`)
	}
	for _, seconds := range []string{
		"84523.5", "84523.123456789", "84523.1234567894", "84523.1234567895", "84523.9999999999", "84523.12345678901234567890123456789", "84523.0", "84523",
		"84523.5e1", "84523.5E-1", "-84523.5", "845230.5", "8452.5", "84523.5 ", " 84523.5",
	} {
		alone, err := NewDecoder(testOptions).Decode(nil, line(seconds))
		require.NoError(t, err)
		d := NewDecoder(testOptions)
		_, err = d.Decode(nil, line("84523.25"))
		require.NoError(t, err)
		after, err := d.Decode(nil, line(seconds))
		require.NoError(t, err)
		require.Equal(t, alone[0].Time, after[0].Time, seconds)
	}
	for _, seconds := range []string{"84523.", "84523.x", "84523.5x", "84523.5.5", "84523.5e", "084523.5"} {
		_, alone := NewDecoder(testOptions).Decode(nil, line(seconds))
		require.Error(t, alone, seconds)
		d := NewDecoder(testOptions)
		_, err := d.Decode(nil, line("84523.25"))
		require.NoError(t, err)
		_, after := d.Decode(nil, line(seconds))
		require.Equal(t, alone, after, seconds)
	}
	// The timestamp may be the last member.
	d := NewDecoder(testOptions)
	_, err := d.Decode(nil, line("84523.25"))
	require.NoError(t, err)
	events, err := d.Decode(nil, []byte(`{"type":"text_delta","sequence":0,"session_id":"s","run_id":"r","content":"","timestamp":84523.75}`))
	require.NoError(t, err)
	require.Equal(t, 750_000_000, events[0].Time.Nanosecond()-anchor.Nanosecond())
}

func TestBoundaries(t *testing.T) {
	blank := func(line string) string { // a spelling that the fast paths do not take
		return strings.NewReplacer(`,"subject":`, `, "subject": `, `,"phase":`, `, "phase": `, `,"duration_ms":`, `, "duration_ms": `, `,"error_type":`, `, "error_type": `,
			`,"parent_span_id":`, `, "parent_span_id": `, `,"error_message":`, `, "error_message": `).Replace(line)
	}
	for _, subject := range []string{"turn", "step", "tool_call", "subagent", "handoff", "tool", "tu", "t", "", "turns", "steps", "tool_calls", "subject", "stage", "handoffs", "run", `tool\u005fcall`, `x\"`} {
		for _, phase := range []string{"start", "progress", "complete", "error", "cancelled", "started", "completed", "errors", "c", "", "canceled", `\u0073tart`, `x\"`} {
			for _, nulls := range [][3]string{{"null", "null", "null"}, {"1.5", "null", "null"}, {"1.5", `"E"`, "null"}, {"null", "null", `"m"`}, {"null", `"E"`, `"m"`}} {
				line := spanLine(subject, phase, "n", nulls[0], nulls[1], nulls[2], `{"tool_name":"x","call_id":"c","step_id":"s","subagent_name":"a","from_agent":"f","to_agent":"t"}`)
				want, got := decodeOne(t, testOptions, blank(line)), decodeOne(t, testOptions, line)
				got.ID = want.ID
				require.Equal(t, want, got, line)
			}
		}
	}
	// Errors in members have the same place.
	line := spanLine("tool_call", "start", "n", "null", "null", "null", `{"tool_name":"x","call_id":"c"}`)
	for _, c := range [][2]string{
		{`"error_message":null`, `"error_message":nullx`},
		{`"error_message":null`, `"error_message":null "x"`},
		{`"error_message":null`, `"error_message":null,"error_message":null`},
		{`"name":"n"`, `"error_type":null,"name":"n"`},
		{`"subject":"tool_call"`, `"phase":"start","subject":"tool_call"`},
		{`"span_id"`, `"subject":"turn","span_id"`},
		{`"parent_span_id":null`, `"parent_span_id":null,"parent_span_id":null`},
		{`"phase":"start"`, `"phase":"start`},
		{`"phase":"start"`, `"phase":"start""`},
	} {
		require.Equal(t, 1, strings.Count(line, c[0]))
		bad := strings.Replace(line, c[0], c[1], 1)
		_, want := NewDecoder(testOptions).Decode(nil, []byte(blank(bad)))
		_, got := NewDecoder(testOptions).Decode(nil, []byte(bad))
		var a, b *jsonwire.SyntaxError
		require.ErrorAs(t, want, &a, bad)
		require.ErrorAs(t, got, &b, bad)
		require.Equal(t, a.Msg, b.Msg)
		require.Equal(t, jsonwire.Pointer(blank(bad), a.Offset), jsonwire.Pointer(bad, b.Offset), bad)
	}
}

// A summary that is the beginning of the result is not read.
func TestSummaries(t *testing.T) {
	long := strings.Repeat("0123456789", 30)
	for _, c := range []struct{ result, summary, want string }{
		{`"a"`, "a", ""},
		{`"a"`, "b", "b"},
		{`"a\n\"b\""`, "a\n\"b\"", ""},
		{`"\u0061"`, "a", ""},
		{`""`, "", ""},
		{`"` + long + `"`, long[:maxSummary], ""},
		{`"` + long + `"`, long, long},
		{`"` + long + `"`, long[:maxSummary-1], long[:maxSummary-1]},
		{`"` + long[:maxSummary-1] + `é` + long + `"`, long[:maxSummary-1], ""},
		{`{"a":["b\\"]}`, `{"a":["b\\"]}`, ""},
		{`{"a":["b\\"]}`, `{"a":["b\"]}`, `{"a":["b\"]}`},
		{`{"a":["b"]}`, `{"a":["c"]}`, `{"a":["c"]}`},
		{`{"a":["b"]}`, `{"a":["b"]`, `{"a":["b"]`},
		{`["` + long + `"]`, `["` + long[:maxSummary-2], ""},
		{`12`, "12", ""},
		{`12`, "1", "1"},
	} {
		for _, spelled := range []string{jsonwire.Quote(c.summary), spelledOut(c.summary)} {
			ev := decodeOne(t, testOptions, spanLine("tool_call", "complete", "tool.x", "null", "null", "null",
				`{"tool_name":"x","call_id":"c","result_summary":`+spelled+`,"result":`+c.result+`}`))
			p := ev.Payload.(*agentevents.ToolReturned)
			require.Equal(t, c.result, string(p.Result))
			require.Equal(t, c.want, p.ResultSummary, c.result)
		}
	}
}

// spelledOut quotes text with an escape for every character.
func spelledOut(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(`\u` + strconv.FormatInt(int64(r)+1<<16, 16)[1:])
	}
	return `"` + b.String() + `"`
}
