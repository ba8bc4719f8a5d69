//go:build !linux

package main

import "time"

// Elsewhere than on Linux, which tells the CPU time of a thread, the table has wall time.

func cpuTime() time.Duration { return wallTime() }

func threadTime() time.Duration { return wallTime() }
