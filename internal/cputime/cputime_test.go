package cputime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/cputime"
)

func TestProcessCountsWorkAndNoSleep(t *testing.T) {
	start := cputime.Process()
	require.NotZero(t, start)
	time.Sleep(200 * time.Millisecond)
	slept := cputime.Process() - start

	// Work in steps until the clock has moved by far more than the sleep used.
	sum, steps := 0, 0
	for cputime.Process()-start-slept < slept+50*time.Millisecond {
		for i := range 1_000_000 {
			sum = sum*31 + i
		}
		steps++
		require.Less(t, steps, 100_000, "the CPU time stands still during work: %d", sum)
	}
	//wallclock: nothing in this process works during the sleep
	require.Less(t, slept, 100*time.Millisecond, "a sleep of 200 ms counts as work")
}
