package agentevents

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A torn event in front of a whole one, wherever it is torn, takes the whole one with it in no
// way of reading: it is delivered, and the error of the line stands beside it.
func TestWholeEventBehindATornOne(t *testing.T) {
	const torn = `{"id":"e4","sequence":3,"timestamp":"2026-11-01T09:00:01.200Z","type":"agent.text","runId":"other","agentId":"é","step":0,"payload":{"text":"a \"b\" {\"id\":\"x\"} \u00e9 c","blockId":"b"}}`
	const whole = `{"id":"e5","sequence":0,"timestamp":"2026-11-01T09:00:01.300Z","type":"agent.text","runId":"r1","agentId":"a","schemaVersion":"1.0","payload":{"text":"kept"}}`
	lines := []string{strings.Repeat("\x00", 20) + whole, torn[:50] + torn[:90] + whole}
	for cut := 1; cut < len(torn); cut++ {
		if strings.HasSuffix(torn[:cut], ":") {
			continue // the whole event could be its value
		}
		lines = append(lines, torn[:cut]+whole)
	}
	for _, line := range lines {
		for _, text := range []string{line + "\n", line} {
			var got []Event
			var errs []error
			for ev, err := range NewReader(strings.NewReader(text), ReaderOptions{}).All() {
				if err != nil {
					errs = append(errs, err)
				} else {
					got = append(got, ev)
				}
			}
			require.Len(t, got, 1, text)
			require.Equal(t, "e5", got[0].ID)
			require.Len(t, errs, 1)
			for _, workers := range []int{1, 3} {
				log, err := FoldLog(NewReader(strings.NewReader(text), ReaderOptions{}), FoldOptions{Workers: workers})
				require.NotNil(t, log.Snapshot("r1"), text)
				require.Nil(t, log.Snapshot("other"))
				require.Equal(t, errs[0].Error(), err.Error())
				var le *LineError
				require.True(t, errors.As(err, &le))
			}
		}
	}
}

// An event that a torn line holds as a value is not delivered.
func TestEventInsideATornOneIsNone(t *testing.T) {
	const inner = `{"id":"e5","sequence":0,"timestamp":"2026-11-01T09:00:01.300Z","type":"agent.text","runId":"r1","payload":{"text":"kept"}}`
	for _, line := range []string{
		`{"id":"e4","sequence":3,"payload":{"result":` + inner, `{"id":"e4","payload":[1,` + inner, `{"id":"e4","payload":` + inner + `}}`,
		`{"id":"e4" "payload":` + inner + `}`, `[` + inner + `]`,
	} {
		for ev, err := range NewReader(strings.NewReader(line+"\n"), ReaderOptions{}).All() {
			require.Error(t, err, ev.ID)
		}
	}
}
