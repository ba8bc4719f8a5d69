package agentevents

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// requireCanonical reads line and holds the pools to what odd promises.
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
