package kaos

import (
	"strings"
	"testing"

	"github.com/agentevents/agentevents/dialect/dialecttest"
)

// FuzzDecode checks the properties of [dialecttest.CheckLog], for lines and frames.
func FuzzDecode(f *testing.F) {
	for _, g := range goldens {
		f.Add([]byte(g.line), false)
		f.Add([]byte(reversed(strings.Split(strings.Trim(g.line, "{}"), `,`))), false)
		f.Add([]byte("event: span\ndata: "+strings.Replace(g.line, `,"`, ",\ndata: \"", 2)+"\rid: 0\n\n"+g.line), true)
	}
	f.Fuzz(func(t *testing.T, log []byte, sse bool) {
		eo := encoderOptions
		eo.SSE = sse
		dialecttest.CheckLog(t, suite(testOptions, eo), string(log))
	})
}
