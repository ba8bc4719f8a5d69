// Command durable measures stores that acknowledge an append when it is on disk. Command
// bench starts it. It is a module of its own, outside go.work: the stores depend on more
// modules than all of go.work, and would raise the versions of the peers in bench.
package main

import (
	"fmt"
	"os"

	"github.com/agentevents/agentevents/bench/internal/measure"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "durable:", err)
		os.Exit(1)
	}
}

// run serves a request of bench: measure SECTION FOLDER. There is one section.
func run(args []string) error {
	if len(args) != 3 || args[0] != "measure" {
		return fmt.Errorf("usage: durable measure SECTION FOLDER; go run ./bench -rows M8 prints the table")
	}
	folder, err := os.MkdirTemp(args[2], "durable-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	s := &stores{folder: folder}
	defer s.close()
	return measure.Serve(s.cells(), os.Stdin, os.Stdout)
}
