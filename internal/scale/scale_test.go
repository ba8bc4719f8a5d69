package scale_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/scale"
)

// A verdict notes that a test has failed.
type verdict struct {
	testing.TB
	failed bool
}

func (v *verdict) Errorf(string, ...any) { v.failed = true }

func TestLinearTellsQuadraticWork(t *testing.T) {
	spin := func(n int) (sum int) {
		for i := range n {
			sum = sum*31 + i
		}
		return sum
	}
	for _, c := range []struct {
		name      string
		steps     func(n int) int
		quadratic bool
	}{
		{"linear", func(n int) int { return 1000 * n }, false},
		{"quadratic", func(n int) int { return n * n }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, sum := verdict{TB: t}, 0
			for range 10 { // one that is disturbed may miss it
				if !v.failed {
					scale.Linear(&v, 1000, func(n int) func() { return func() { sum += spin(c.steps(n)) } })
				}
			}
			require.Equal(t, c.quadratic, v.failed, sum)
		})
	}
}
