package findings_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/findings"
)

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A run of any length and of any number of agents takes no more memory than the package states.
func TestMemoryOfARunIsBounded(t *testing.T) {
	const perAgent, agents = 42 << 10, 64
	r := findings.NewRun("r", findings.Options{})
	before := heap()
	s := newScript()
	long := strings.Repeat("x", 4<<10)
	for a := range 3 * agents {
		agent := fmt.Sprintf("agent %d", a)
		for i := range 100 { // of which 68 stay open
			s.open(agent, "Bash", fmt.Sprintf(`{"command":"%d","text":%q}`, i, long[:900]))
		}
		for i := range 32 {
			s.failing(agent, fmt.Sprintf("tool %d", i), `{"text":"`+long[:900]+`"}`, "broken")
		}
		for i := range s.events {
			s.events[i].Sequence += uint64(a) * 1000
			r.Add(&s.events[i])
		}
		s.events = nil
	}
	took := int64(heap()) - int64(before)
	t.Logf("%d bytes, %d findings and %d more", took, len(r.Findings()), r.More())
	require.Less(t, took, int64(agents*perAgent))
	require.Len(t, r.Findings(), 64)
	require.Equal(t, 3*agents-64, r.More())
	runtime.KeepAlive(r)
}
