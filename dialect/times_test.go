package dialect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/kaos"
)

// timedLines are lines of the documents, with % in the place of the time.
var timedLines = map[dialect.Name]string{
	dialect.MultiAgent:  `{"id":"e0","traceId":"T","spanId":"s","sessionId":"S","runId":"R","actor":"A","type":"tool.call.started","payload":{"callId":"c1","toolName":"x"},"timestamp":%,"schemaVersion":"1.0"}`,
	dialect.KAHN:        `{"ts":%,"run_id":"r","event":"agent_run_start","agent_id":"a","task":"t"}`,
	dialect.OpenHarness: `{"type":"flow:start","timestamp":%,"flowName":"f"}`,
	dialect.AGUI:        `{"type":"RUN_STARTED","timestamp":%,"threadId":"t","runId":"r"}`,
	dialect.OpenWOP:     `{"eventId":"e0","runId":"r","type":"run.started","payload":{},"timestamp":%,"sequence":0}`,
	dialect.KAOS: `{"timestamp":%,"sequence":0,"session_id":"s-1","run_id":"run_0123456789ab","agent_id":null,"subject":"turn","phase":"start","span_id":"t1","parent_span_id":null,"name":"turn.1",` +
		`"duration_ms":null,"error_type":null,"error_message":null,"attributes":{},"type":"span"}`,
}

// A time in any form is read, or is not known: it never costs the line, and the line comes back as
// it was.
func TestFormsOfTimes(t *testing.T) {
	at := time.Date(2026, 6, 7, 10, 20, 30, 0, time.UTC) // 1780827630
	forms := map[string]time.Time{
		`1780827630`: at, `1780827630000`: at, `1780827630000000`: at, `1780827630000000000`: at,
		`1780827630.25`: at.Add(250 * time.Millisecond), `"1780827630"`: at, `"1780827630000"`: at, `"1780827630.5"`: at.Add(time.Second / 2),
		`"2026-06-07T10:20:30Z"`: at, `"2026-06-07 12:20:30+02:00"`: at, `"2026-06-07T10:20:30.000Z"`: at,
		`""`: {}, `"yesterday"`: {}, `"2026-06-07"`: {}, `null`: {}, `{}`: {}, `[1]`: {}, `true`: {}, `1e400`: {}, `"NaN"`: {}, `"-1"`: {}, `"0"`: {},
	}
	tried := 0
	for _, f := range formats() {
		line, known := timedLines[f.suite.Name]
		if !known || strings.Contains(f.name, ":") {
			continue
		}
		tried++
		decoder, encoder := f.suite.Decoder, f.suite.Encoder
		if f.suite.Name == dialect.KAOS { // the suite has a clock of its own
			decoder = func() agentevents.Decoder { return kaos.NewDecoder(kaos.Options{}) }
			encoder = func() dialect.Encoder { return kaos.NewEncoder(kaos.EncoderOptions{}) }
		}
		for form, want := range forms {
			text := strings.Replace(line, "%", form, 1)
			events, err := decoder().Decode(nil, []byte(text))
			require.NoError(t, err, "%s %s", f.name, form)
			require.NotEmpty(t, events)
			require.Equal(t, !want.IsZero(), agentevents.TimeKnown(events[0].Time), "%s %s: %v", f.name, form, events[0].Time)
			if !want.IsZero() {
				require.True(t, want.Equal(events[0].Time), "%s %s: %v", f.name, form, events[0].Time)
			}
			if f.suite.Name == dialect.KAOS && !strings.ContainsAny(form, `".`) {
				continue // KAOS has a point in its seconds
			}
			e := encoder()
			back, err := e.Append(nil, events[0])
			require.NoError(t, err)
			if own := form == `"2026-06-07T10:20:30Z"`; !own { // the documents with times in texts write milliseconds
				require.Equal(t, text+"\n", string(back), "%s %s", f.name, form)
			}
		}
	}
	require.Equal(t, len(timedLines), tried)
}
