package kaos

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/readback"
)

// FuzzDecode checks that nothing panics, that every event that is read can be
// written or is refused, and that its line is read as the same event and has no fault that the
// line before has not.
func FuzzDecode(f *testing.F) {
	for _, g := range goldens {
		f.Add([]byte(g.line), false)
		f.Add([]byte(reversed(strings.Split(strings.Trim(g.line, "{}"), `,`))), false)
		f.Add([]byte("event: span\ndata: "+strings.Replace(g.line, `,"`, ",\ndata: \"", 2)+"\rid: 0\n\n"+g.line), true)
	}
	f.Fuzz(func(t *testing.T, log []byte, strict bool) {
		o := testOptions
		o.Strict = strict
		for _, verbatim := range []bool{false, true} {
			e := NewEncoder(encoderOptions)
			sse := NewEncoder(EncoderOptions{SSE: true, Anchor: anchor, AnchorSeconds: 1000})
			var events []agentevents.Event
			var out, framed []byte
			for ev, err := range agentevents.NewReader(bytes.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(o), Verbatim: verbatim}).All() {
				if err != nil {
					continue
				}
				before := len(out)
				if out, err = e.Append(out, ev); err != nil {
					require.Len(t, out, before)
					continue
				}
				require.Equal(t, 1, bytes.Count(out[before:], []byte("\n")))
				if origin := ev.Origin(); origin != "" && origin[0] == '{' {
					requireNoNewFault(t, origin, ev)
				}
				framed, err = sse.Append(framed, ev)
				require.NoError(t, err)
				events = append(events, ev)
			}
			for _, text := range [][]byte{out, framed} {
				i := 0
				for ev, err := range agentevents.NewReader(bytes.NewReader(text), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions)}).All() {
					require.NoError(t, err, "%s", text)
					require.Less(t, i, len(events))
					if len(text) > 0 && !lossy(e.Losses()) {
						require.Equal(t, says(t, events[i]), says(t, ev), "%s", text)
					}
					i++
				}
				require.Equal(t, len(events)-repeated(e.Losses()), i, "%s", text)
			}
		}
	})
}

// requireNoNewFault checks that a strict decoder reads the line that is written of an event
// anew, unless the line that it was read from has the same fault.
func requireNoNewFault(t *testing.T, line string, ev agentevents.Event) {
	native, err := ev.AppendJSON(nil)
	require.NoError(t, err)
	var plain agentevents.Event
	require.NoError(t, plain.UnmarshalJSON(native))
	out, err := NewEncoder(encoderOptions).Append(nil, plain)
	if err != nil {
		return
	}
	o := testOptions
	o.Strict = true
	for _, err := range agentevents.NewReader(bytes.NewReader(out), agentevents.ReaderOptions{Decoder: NewDecoder(o)}).All() {
		require.True(t, err == nil || readback.OwnFault(line, string(out), err), "a fault that the line has not: %v\n%s\n%s", err, line, out)
	}
}

// repeated returns how many lines are identical to earlier ones.
func repeated(losses []dialect.Loss) (n int) {
	for _, l := range losses {
		if strings.HasSuffix(l.Detail, "readers take it for that one") {
			n += l.Count
		}
	}
	return n
}

// lossy reports whether losses has more than ids, numbers and made-up ids.
func lossy(losses []dialect.Loss) bool {
	for _, l := range losses {
		if l.Pointer != "/id" && l.Pointer != "/sequence" && !(l.What == dialect.Made && l.Pointer == "/spanId") && !(l.What == dialect.Made && l.Pointer == "/sessionId") {
			return true
		}
	}
	return false
}

// says returns the event's native line without the values that a reader makes up.
func says(t *testing.T, ev agentevents.Event) string {
	plain := agentevents.Event{Time: ev.Time, RunID: ev.RunID, AgentID: ev.AgentID, ParentAgentID: ev.ParentAgentID, Payload: ev.Payload}
	line, err := plain.AppendJSON(nil)
	require.NoError(t, err)
	return string(line)
}
