package measure

import (
	"syscall"
	"time"
)

// CPUKnown tells whether the clocks below count CPU time.
const CPUKnown = true

// ProcessTime returns the CPU time of the process, user and system, including the
// garbage collector.
func ProcessTime() time.Duration { return usage(syscall.RUSAGE_SELF) }

// ThreadTime returns the CPU time of the calling thread.
func ThreadTime() time.Duration { return usage(rusageThread) }

// ChildTime returns the CPU time of the child processes that have ended.
func ChildTime() time.Duration { return usage(syscall.RUSAGE_CHILDREN) }

const rusageThread = 1 // package syscall has no name for it on every architecture

func usage(who int) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(who, &r); err != nil {
		panic(err) // the kernel knows the three
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
