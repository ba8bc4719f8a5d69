package kaos

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// sse writes lines as the frames of the KAOS server.
func sse(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		typ := jsonwire.Text(jsonwire.Member(line, "type"))
		n := line[strings.Index(line, `"sequence":`)+len(`"sequence":`):]
		b.WriteString("event: " + typ + "\ndata: " + line + "\nid: " + n[:strings.IndexByte(n, ',')] + "\n\n")
	}
	return b.String()
}

func idFirst(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		b.WriteString("id: " + strconv.Itoa(i) + "\ndata: " + line + "\n\n")
	}
	return b.String()
}

func TestServerSentEvents(t *testing.T) {
	var lines []string
	for _, g := range goldens {
		if g.name != "a later subject" { // strict decoders refuse it
			lines = append(lines, strings.Replace(g.line, `"sequence":0`, `"sequence":`+strconv.Itoa(len(lines)), 1))
		}
	}
	want := decodeAll(t, strings.Join(lines, "\n"))
	log := sse(lines...)
	type way struct{ name, log string }
	ways := []way{
		{"as the server writes it", log},
		{"CRLF", strings.ReplaceAll(log, "\n", "\r\n")},
		{"CR", strings.ReplaceAll(log, "\n", "\r")},
		{"byte order mark", "\ufeff" + log},
		{"comments and retry", ": hello\nretry: 10\n" + strings.ReplaceAll(log, "data:", ":x\nretry\nid\ndata:")},
		{"no blank after the colon", strings.NewReplacer("data: ", "data:", "event: ", "event:", "id: ", "id:").Replace(log)},
		{"data alone", "data: " + strings.Join(lines, "\n\ndata: ") + "\n\n"},
		{"no blank lines", strings.ReplaceAll(log, "\n\n", "\n")},
		{"id before data", strings.ReplaceAll(log, "event: ", "id\nevent: ")},
		{"id first", idFirst(lines)},
		{"split", strings.ReplaceAll(log, `,"run_id"`, "\ndata: ,\ndata:\ndata:\t\"run_id\"")},
		{"split and CR", strings.ReplaceAll(strings.ReplaceAll(log, `,"run_id"`, "\ndata: ,\ndata: \"run_id\""), "\n", "\r")},
		{"split after the first brace", strings.ReplaceAll(log, `{"timestamp"`, "{\ndata: \"timestamp\"")},
		{"an object alone on a line", strings.ReplaceAll(log, `:{"`, ":\ndata: {\"")},
	}
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			for _, strict := range []bool{false, true} {
				o := testOptions
				o.Strict = strict
				i := 0
				for ev, err := range agentevents.NewReader(strings.NewReader(w.log), agentevents.ReaderOptions{Decoder: NewDecoder(o)}).All() {
					require.NoError(t, err)
					ev.ID = want[i].ID // derived from the line
					require.Equal(t, want[i], ev)
					i++
				}
				require.Equal(t, len(want), i)
			}
		})
	}

	o := encoderOptions
	o.SSE = true
	e := NewEncoder(o)
	var out []byte
	for _, ev := range want {
		var err error
		out, err = e.Append(out, ev)
		require.NoError(t, err)
	}
	require.Equal(t, log, string(out))
	odd := encodeOne(t, o, agentevents.Event{RunID: "r", Payload: &agentevents.Unknown{Type: "a\nb", Raw: `{}`}})
	require.True(t, strings.HasPrefix(odd, `data: {"timestamp"`), odd)

	// A verbatim line of a frame is written back as a line, too.
	i := 0
	blank := strings.ReplaceAll(lines[0], `,"`, `, "`)
	for ev, err := range agentevents.NewReader(strings.NewReader("data: "+blank+"\n\n"), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions), Verbatim: true}).All() {
		require.NoError(t, err)
		require.Equal(t, blank+"\n", encodeOne(t, encoderOptions, ev))
		i++
	}
	require.Equal(t, 1, i)
	for ev, err := range agentevents.NewReader(strings.NewReader("data: "+strings.Replace(lines[0], `,"`, ",\r\"", 1)+"\rid: 0\n\n"), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions), Verbatim: true}).All() {
		if err == nil {
			require.Equal(t, lines[0]+"\n", encodeOne(t, encoderOptions, ev))
		}
	}
}

func TestTornFrames(t *testing.T) {
	a, b := strings.Replace(goldens[0].line, `,"run_id"`, "\ndata: ,\"run_id\"", 1), goldens[1].line
	read := func(log string) (events []agentevents.Event, errs []error) {
		for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions)}).All() {
			if err != nil {
				errs = append(errs, err)
			} else {
				events = append(events, ev)
			}
		}
		return events, errs
	}
	first, _, _ := strings.Cut(a, "\n")
	for _, log := range []string{
		"data: " + first + "\n\nevent: span\ndata: " + b + "\n\n",
		"data: " + first + "\n\ndata: " + b + "\n\n",
		"data: " + first + "\n\n" + b + "\n",
		"data: " + first + "\n\ndata: " + strings.Replace(b, `,"run_id"`, "\ndata: ,\"run_id\"", 1) + "\n\n",
		"data: " + first + "\r\revent: span\rdata: " + b + "\r\r",
	} {
		events, errs := read(log)
		if strings.Count(log, "data: ,") > 0 {
			// The rest of the first object and the second one look alike. No event
			// is made of both.
			require.NotEmpty(t, errs, log)
			continue
		}
		require.Len(t, events, 1, log)
		require.Len(t, errs, 1, log)
		require.ErrorIs(t, errs[0], io.ErrUnexpectedEOF)
	}
	for _, log := range []string{
		"event: span", "event: span\n", "event: span\ndata:", "data: " + first + "\n", "data: " + first, "data: " + a[:len(a)-3], "data: {\ndata: \"x",
		"event: span\ndata: " + first + "\nid: 3\n\n",
	} {
		events, errs := read("data: " + b + "\n\n" + log)
		require.Len(t, events, 1, log)
		require.Len(t, errs, 1, log)
		require.ErrorIs(t, errs[0], io.ErrUnexpectedEOF, log)
		var le *agentevents.LineError
		require.ErrorAs(t, errs[0], &le)
		require.Greater(t, le.Line, 2)
	}
	// A newline inside a string is an error.
	_, errs := read("data: {\"timestamp\":1,\ndata: \"x\": \"a\ndata: b\"}\n\n")
	require.NotEmpty(t, errs)

	// Errors name their place in the line.
	_, errs = read("event: text_delta\ndata: {\"type\":\"text_delta\",\"content\":7}\nid: 1\n\n")
	require.Len(t, errs, 1)
	var le *agentevents.LineError
	require.ErrorAs(t, errs[0], &le)
	require.Equal(t, 2, le.Line)
	require.Equal(t, "/content", le.Pointer)
	require.Equal(t, len(`data: {"type":"text_delta","content":`), le.Column)

	strict := testOptions
	strict.Strict = true
	for _, c := range []struct{ log, pointer string }{
		{"event: text_delta\ndata: " + b + "\nid: 0\n\n", "/type"},
		{"event: span\ndata: " + b + "\nid: 1\n\n", "/sequence"},
		{"id: 7\ndata: " + b + "\n\n", "/sequence"},
		{"id: 7\ndata: {\ndata: " + b[1:] + "\n\n", "/sequence"},
		{"event: text_delta\ndata: {\ndata: " + b[1:] + "\n\n", "/type"},
		{"data: {\nid: 7\ndata: " + b[1:] + "\n\n", "/sequence"},
		{"data: {\ndata: " + b[1:] + "\nid: 7\n\n", "/sequence"},
	} {
		var rule *agentevents.RuleError
		for _, err := range agentevents.NewReader(strings.NewReader(c.log), agentevents.ReaderOptions{Decoder: NewDecoder(strict)}).All() {
			if err != nil {
				require.ErrorAs(t, err, &rule)
			}
		}
		require.NotNil(t, rule)
		require.Equal(t, RuleFrame, rule.Rule)
		require.Equal(t, c.pointer, rule.Pointer)
	}
}

// Text of other programs between or inside frames is reported, even if it looks
// like a field.
func TestTextBetweenFrames(t *testing.T) {
	lines := []string{goldens[0].line, goldens[1].line}
	frames := strings.SplitAfter(sse(lines...), "\n\n")
	for _, text := range []string{"ERROR: the agent host lost its disk", "curl: (18) transfer closed", "foo: bar", "a-b_c:", "retry: 3 of 5 failed", "dat", "Data: {}"} {
		for _, log := range []string{
			text + "\n" + frames[0] + frames[1],
			frames[0] + text + "\n" + frames[1],
			frames[0] + frames[1] + text,
			frames[0] + ": a comment\r" + text + "\r" + frames[1],
			frames[0] + strings.Replace(frames[1], "data: ", text+"\ndata: ", 1),
		} {
			n, errs := 0, 0
			for _, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions)}).All() {
				if err == nil {
					n++
					continue
				}
				errs++
				var le *agentevents.LineError
				require.ErrorAs(t, err, &le)
			}
			require.Equal(t, 2, n, log)
			require.Equal(t, 1, errs, log)
		}
	}
}

// The size of a pending frame is bounded.
func TestFrameLimit(t *testing.T) {
	d := NewDecoder(Options{})
	_, err := d.Decode(nil, []byte("data: {"))
	require.NoError(t, err)
	piece := append([]byte("data: "), bytes.Repeat([]byte("[1],"), 1<<20)...)
	for range 8 {
		if _, err = d.Decode(nil, piece); err != nil {
			break
		}
	}
	require.Error(t, err)
	_, err = d.End(nil)
	require.NoError(t, err)
}

// The id of a frame with bad data does not count for the next frame.
func TestIDsOfBadFrames(t *testing.T) {
	good := strings.Replace(goldens[0].line, `"sequence":0`, `"sequence":1`, 1)
	for _, bad := range []string{
		strings.Replace(goldens[0].line, `"session_id":"s-1"`, `"session_id":""`, 1), // breaks a rule
		strings.Replace(goldens[0].line, `"sequence":0`, `"sequence":x`, 1),
		`{"timestamp":1001.25,"sequence":0,`,
	} {
		log := "event: span\ndata: " + bad + "\nid: 0\n\nevent: span\ndata: " + good + "\nid: 1\n\n"
		errs, events := 0, 0
		for _, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(Options{Strict: true})}).All() {
			if err != nil {
				errs++
			} else {
				events++
			}
		}
		require.Equal(t, []int{1, 1}, []int{errs, events}, bad)
	}
}

// Frames of other formats are errors although they look the same.
func TestFramesOfOthers(t *testing.T) {
	log := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n" +
		"data: {\"type\":\"text_delta\",\"content\":\"x\"}\n\n" +
		"data: {\"type\":\"ping\",\ndata: \"of\":1}\n\n" +
		"{\"type\":\"ping\"}\n" +
		"event: x\ndata: {\"type\":\"x\",\"run_id\":\"r\"}\n\n" + // one member of the base is enough
		"data: {\"type\":\"x\",\"timestamp\":1}\n\n"
	var lines []int
	events := 0
	for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions)}).All() {
		if err == nil {
			require.Equal(t, agentevents.Kind("x"), ev.Kind())
			events++
			continue
		}
		var le *agentevents.LineError
		require.ErrorAs(t, err, &le)
		require.ErrorContains(t, err, "not a KAOS event")
		lines = append(lines, le.Line)
	}
	require.Equal(t, []int{2, 4, 7, 9}, lines)
	require.Equal(t, 2, events)
	// A strict decoder reports a rule instead.
	var rule *agentevents.RuleError
	_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(`data: {"type":"x"}`))
	require.ErrorAs(t, err, &rule)
	require.Equal(t, RuleRequired, rule.Rule)
}

// The id of a frame is the number on its line, also when the event was read from another one.
func TestIDsOfChangedEvents(t *testing.T) {
	ev := readVerbatim(t, goldens[0].line)[0]
	ev.Sequence, ev.Payload = 5, &agentevents.TurnStarted{}
	out, err := NewEncoder(EncoderOptions{SSE: true}).Append(nil, ev)
	require.NoError(t, err)
	require.Contains(t, string(out), `"sequence":5,`)
	require.Contains(t, string(out), "\nid: 5\n")
}
