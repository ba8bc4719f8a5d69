package findings_test

import (
	"fmt"
	"testing"

	"github.com/agentevents/agentevents/findings"
)

// BenchmarkAdd adds a call and its return: with other arguments and results each time.
func BenchmarkAdd(b *testing.B) {
	s := newScript()
	s.start("a")
	for i := range 64 {
		s.call("a", "Read", fmt.Sprintf(`{"path":"f%d","text":%q}`, i, make([]byte, 100)), fmt.Sprintf("text %d", i))
	}
	r := findings.NewRun("r", findings.Options{})
	r.Add(&s.events[0])
	b.ReportAllocs()
	for i, n := 0, uint64(1); b.Loop(); i++ {
		for k := range 2 {
			ev := s.events[1+i%64*2+k]
			ev.Sequence = n
			n++
			r.Add(&ev)
		}
	}
}
