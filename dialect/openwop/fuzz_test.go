package openwop

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/dialecttest"
)

// FuzzDecode checks the properties of [dialecttest.CheckLog], and that a line without a fault has none
// in another profile.
func FuzzDecode(f *testing.F) {
	for p, lines := range golden {
		for line := range strings.Lines(lines) {
			f.Add(uint8(p), strings.TrimSuffix(line, "\n"))
		}
	}
	f.Fuzz(func(t *testing.T, profile uint8, line string) {
		p := Profile(profile % 3)
		dialecttest.CheckLog(t, suite(p), line)
		events, err := suite(p).Strict().Decode(nil, []byte(line))
		if err != nil {
			return
		}
		for _, to := range []Profile{(p + 1) % 3, (p + 2) % 3} {
			if out, err := NewEncoder(EncoderOptions{Profile: to}).Append(nil, events[0]); err == nil {
				back, err := suite(to).Strict().Decode(nil, bytes.TrimSuffix(out, []byte("\n")))
				require.NoError(t, err, "%s\n%s", line, out)
				if _, unknown := events[0].Payload.(*agentevents.Unknown); !unknown {
					require.Equal(t, events[0].Kind(), back[0].Kind(), "%s\n%s", line, out)
				}
			}
		}
	})
}
