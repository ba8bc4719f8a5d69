package dialect_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/readback"
)

// An id that is derived from the line and its number is another one when the line gets another
// number, as after a line that cannot be read. A loss lists that, and an event whose line equals
// an earlier one: readers take it for that event.
func TestDerivedIDsOfLinesThatMove(t *testing.T) {
	for _, f := range formats() {
		if f.name == "agui" {
			continue // its encoder adds lines, and does not know the number of a line that waits
		}
		golden := readGolden(t, "variants-"+string(f.suite.Name))
		text := golden.Get(string(f.suite.Name))
		if text == "" || f.name != string(f.suite.Name) {
			continue
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		for name, log := range map[string][]string{
			"a bad line first": slices.Concat([]string{"garbage {"}, lines),
			"bad lines":        slices.Concat(lines[:1], []string{"garbage {"}, lines[1:2], []string{"[]"}, lines[2:]),
			"repeated lines":   slices.Concat(lines[:2], lines[:2], lines),
		} {
			t.Run(f.name+"/"+name, func(t *testing.T) {
				for _, verbatim := range []bool{true, false} {
					var events []agentevents.Event
					r := agentevents.NewReader(strings.NewReader(strings.Join(log, "\n")+"\n"), agentevents.ReaderOptions{Decoder: f.suite.Decoder(), Verbatim: verbatim})
					for ev, err := range r.All() {
						if err == nil {
							events = append(events, ev)
						}
					}
					require.NotEmpty(t, events)
					trip := readback.Trip{Ignore: f.suite.Ignore, Derived: f.suite.Derived}
					d := f.suite.Decoder()
					enc := f.suite.Encoder()
					for _, ev := range events {
						out, err := enc.Append(nil, ev)
						trip.Wrote(ev, out, err)
					}
					out, err := enc.End(nil)
					require.NoError(t, err)
					trip.Wrote(agentevents.Event{}, out, nil)
					trip.Losses = enc.Losses()
					require.Empty(t, trip.Read(agentevents.ReaderOptions{Decoder: d}))
					require.Empty(t, trip.Compare())
					trip.Unlisted(func(_ int, what string) {
						if strings.Contains(what, "/id") || strings.Contains(what, "callId") || strings.Contains(what, "disappeared") {
							t.Error(what)
						}
					})
				}
			})
		}
	}
}
