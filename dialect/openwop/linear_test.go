package openwop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/scale"
)

// A line with many extra members and a long text costs in proportion to its bytes.
func TestKeptMembersAreLinear(t *testing.T) {
	scale.Linear(t, 500, func(n int) func() {
		var line strings.Builder
		fmt.Fprintf(&line, `{"eventId":"e","runId":"r","type":"agent.reasoned","sequence":0,"timestamp":"2026-05-05T09:00:00.040Z","agentId":"host:planner","payload":{"reasoning":"%s"`,
			strings.Repeat("word", 100*n))
		for i := range n {
			fmt.Fprintf(&line, `,"x%d":1`, i)
		}
		events, err := NewDecoder(Options{}).Decode(nil, []byte(line.String()+"}}"))
		require.NoError(t, err)
		return func() {
			out, err := NewEncoder(EncoderOptions{}).Append(nil, events[0])
			require.NoError(t, err)
			require.Greater(t, len(out), 400*n)
		}
	})
}
