//go:build !linux

package measure

import "time"

// CPUKnown tells whether the clocks below count CPU time. They count wall time here, as
// only Linux has the CPU time of a thread; no row gets a verdict then.
const CPUKnown = false

// ProcessTime returns wall time.
func ProcessTime() time.Duration { return wallTime() }

// ThreadTime returns wall time.
func ThreadTime() time.Duration { return wallTime() }

// ChildTime returns wall time.
func ChildTime() time.Duration { return wallTime() }
