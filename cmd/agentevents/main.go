package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// headroom is the size in bytes of memory that nothing touches, so it is only an address range.
	// The collector counts it as in use, and a command may allocate half of it between two
	// collections: without it a command that keeps little collects every 4 MiB.
	headroom = 32 << 20
	// gcPercent is the memory that a command may allocate between two collections, in percent of
	// the memory in use. The state of many runs has few pointers, so that a collection is cheap.
	gcPercent = 50
	// importPercent is the same for import, which allocates most and keeps least, and sessionsPercent
	// for sessions, which reads all that is there and should take 64 MB at most.
	importPercent, sessionsPercent = 100, 20
)

func main() {
	room := make([]byte, headroom)
	if os.Getenv("GOGC") == "" {
		percent := gcPercent
		switch {
		case len(os.Args) < 2:
		case os.Args[1] == "import":
			percent = importPercent
		case os.Args[1] == "sessions":
			percent = sessionsPercent
		}
		debug.SetGCPercent(percent)
	}
	in := &invocation{
		stdin: os.Stdin, stdout: newOutput(os.Stdout), stderr: os.Stderr, env: os.Getenv, index: indexIn(os.UserCacheDir()),
	}
	status := in.run(os.Args[1:])
	runtime.KeepAlive(room)
	os.Exit(status)
}
