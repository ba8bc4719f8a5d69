package multiagent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/readback"
)

// FuzzDecode checks that no line makes the decoder panic, that every event that is
// read can be written or is refused, and that its line is read as the same event and has no
// fault that the line before has not.
func FuzzDecode(f *testing.F) {
	for _, g := range goldens() {
		f.Add(g.line)
	}
	for _, payload := range []string{`{}`, `"x"`, `{"from":"a","to":{},"agent":"b","x":{"y":1}}`, `{"message":{"text":"a"},"role":""}`, `{"tool":"a","error":"b","status":"failed"}`,
		`{"agentId":null,"step":-1,"phase":"p","marks":["late","x"]}`, `{"round":"1","usage":{"inputTokens":null},"modelUsage":{"a":{}}}`} {
		for i := range format.Rows {
			f.Add(docLine(format.Rows[i].Type, payload))
		}
	}
	f.Add(`{"id":"0","runId":"0","payload":{}}`)
	f.Add(`{"type":"x","payload":1,"/x":2,"timestamp":"","schemaVersion":"2","id":""}`)
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n") {
			return
		}
		_, _ = NewDecoder(Options{Strict: true}).Decode(nil, []byte(line))
		events, err := NewDecoder(Options{}).Decode(nil, []byte(line))
		if err != nil {
			return
		}
		require.Len(t, events, 1)
		ev := events[0]
		text, err := ev.AppendJSON(nil)
		require.NoError(t, err)

		for ev, err := range agentevents.NewReader(strings.NewReader(line), agentevents.ReaderOptions{Decoder: NewDecoder(Options{}), Verbatim: true}).All() {
			if err != nil {
				break
			}
			e := NewEncoder(EncoderOptions{})
			same, err := e.Append(nil, ev)
			require.NoError(t, err)
			require.Equal(t, ev.Origin()+"\n", string(same))
			require.Empty(t, e.Losses())
		}

		e := NewEncoder(EncoderOptions{})
		out, err := e.Append(nil, ev)
		if err != nil {
			var rule *agentevents.RuleError
			require.ErrorAs(t, err, &rule)
			return
		}
		require.Equal(t, 1, strings.Count(string(out), "\n"))
		again, err := NewDecoder(Options{}).Decode(nil, out[:len(out)-1])
		require.NoError(t, err, "%s", out)
		_, err = NewDecoder(Options{Strict: true}).Decode(nil, out[:len(out)-1])
		require.True(t, err == nil || readback.OwnFault(line, string(out), err), "a fault that the line has not: %v\n%s", err, out)
		if len(e.Losses()) == 0 {
			text2, err := again[0].AppendJSON(nil)
			require.NoError(t, err)
			require.Equal(t, sortedJSON(string(text)), sortedJSON(string(text2)), "%s", out)
		}
		e2 := NewEncoder(EncoderOptions{})
		out2, err := e2.Append(nil, again[0])
		require.NoError(t, err)
		require.Equal(t, string(out), string(out2))

		// The event survives the native format.
		var through agentevents.Event
		require.NoError(t, through.UnmarshalJSON(text))
		out3, err := NewEncoder(EncoderOptions{}).Append(nil, through)
		require.NoError(t, err)
		require.Equal(t, string(out), string(out3))
	})
}
