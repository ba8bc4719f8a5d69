// Package cputime reads the CPU time of the process. Tests and benchmarks compare it
// instead of wall time, because other programs on the machine hardly change it.
package cputime

import "time"

// Process returns the CPU time that all threads of the process have used, user and
// system, including the garbage collector's. It is 0 where the system cannot tell it.
func Process() time.Duration { return process() }
