package main

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time of the process, user and system, including the garbage
// collector.
func cpuTime() time.Duration { return usage(syscall.RUSAGE_SELF) }

// threadTime returns the CPU time of the calling thread.
func threadTime() time.Duration { return usage(syscall.RUSAGE_THREAD) }

func usage(who int) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(who, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
