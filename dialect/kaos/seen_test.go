package kaos

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/dialecttest"
)

// TestRepeatedLines reads lines again: as a stream gives them that begins again where it
// broke off.
func TestRepeatedLines(t *testing.T) {
	line := func(i int, content string) string {
		return numbered(head, i) + `"content":"` + content + `","type":"text_delta"}`
	}
	// Strict readers, too, take a line once. The fifth one has the number of the second.
	lines := []string{line(0, "a"), line(1, "b"), line(0, "a"), line(1, "b"), line(1, "c"), line(1, "c")}
	want := []string{"a", "b", "c"}
	for _, strict := range []bool{false, true} {
		for _, log := range []string{strings.Join(lines, "\n"), sse(lines...)} {
			d := NewDecoder(Options{Strict: strict})
			var got []string
			for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: d}).All() {
				require.NoError(t, err)
				require.Equal(t, uint64(len(got)), ev.Sequence)
				got = append(got, ev.Payload.(*agentevents.TextDelta).Delta)
			}
			require.Equal(t, want, got)
		}
	}

	// Lines without a number or a time may be several events.
	for _, line := range []string{
		`{"sequence":0,"session_id":"s","run_id":"r","content":"a","type":"text_delta"}`,
		`{"timestamp":1.0,"session_id":"s","run_id":"r","content":"a","type":"text_delta"}`,
	} {
		require.Len(t, decodeAll(t, line+"\n"+line+"\n"), 2)
	}

	// A refused line is refused once.
	d := NewDecoder(Options{Strict: true})
	refused := numbered(head, 0) + `"kind":"lost","type":"memory_event"}`
	_, err := d.Decode(nil, []byte(refused))
	require.Error(t, err)
	events, err := d.Decode(nil, []byte(refused))
	require.NoError(t, err)
	require.Empty(t, events)
}

// TestSameLineTwice writes two events that have one line.
func TestSameLineTwice(t *testing.T) {
	ev := dialecttest.Minimal(agentevents.KindTextDelta)
	ev.RunID, ev.AgentID, ev.SessionID, ev.ID = "r", "a", "s", "first"
	e := NewEncoder(encoderOptions)
	out, err := e.Append(nil, ev)
	require.NoError(t, err)
	require.NotContains(t, losses(e), "dropped ")
	ev.ID = "second"
	out, err = e.Append(out, ev)
	require.NoError(t, err)
	require.Contains(t, losses(e), "dropped ")
	require.Len(t, decodeAll(t, string(out)), 1)
}
