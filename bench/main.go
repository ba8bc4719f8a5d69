// Command bench measures the library beside its peers, and prints a table of goals: the bar, the
// measured figure with its interval, and the verdict.
//
//	go run ./bench                               from the root of the repository
//	go run ./bench -rows '^E2|^F1'               only the rows that match
//	go run ./bench -big -o table.txt             with the log of 400 MB, into a file too
//	GOEXPERIMENT=jsonv2 go run ./bench -rows E2  against the encoding/json of Go 1.27
//	go run ./bench compare v0.9.0 HEAD           two commits
//	go run ./bench compare HEAD                  a commit and the working tree
//
// # Figures
//
// A figure is CPU time, user and system, including the garbage collector, of the least of twelve
// rounds, on one core (GOMAXPROCS 1) unless the row names two. L1 counts the emitting thread only,
// Q1 the processes that it starts. Every row that is judged is a ratio of such figures, or a count.
// Rows of wall time are for information: a busy machine cannot tell it. Rows of time have verdicts
// on Linux only, because the CPU time of other systems is not known.
//
// The rounds of a section are interleaved, and spread over four processes (S1 has one for each
// row), which come in turn with those of the other sections: where a process has its memory, and a
// minute in which the machine is busy, then change some rounds only. The interval of a row is
// explained at measure.Ratio, and at least as wide as the floor: the ratio that three quarters of
// the A/A rows do not exceed, which have the same code on both sides. A row whose interval contains
// its bar "crosses its bar", and has neither of the other verdicts. Fewer than eleven rounds
// (-rounds) make no verdict.
//
// Compare figures only within a section, because other programs share the machine and its cache.
//
// The table uses about 20 minutes of one core, of which S1 takes three quarters: -rows '^[^S]'
// leaves it out. On two cores that other programs keep busy it takes up to four times as long. The
// first run builds bench/durable too, in some minutes.
//
// # Two commits
//
// Compare lays two git worktrees into a temporary folder, builds this bench against the library of
// both, and runs their rows in child processes in turn. It prints the ratio of the CPU times of
// each row, with its interval. The peers, whose code is the same on both sides, are the controls.
// It leaves S1 out, unless -rows names it, and uses about 8 minutes of one core.
//
// # Programs
//
// Some peers are programs. The table gives the reason if one is missing:
//
//	jq           in PATH
//	DuckDB       node in PATH, and AGENTEVENTS_DUCKDB names a copy of
//	             bench/testdata/duckdb in which you ran npm ci
//	PostgreSQL   initdb in PATH or in /usr/lib/postgresql/*/bin
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// big is a flag of the table.
var big bool

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch command {
	case "compare":
		return compareMain(ctx, args[1:])
	case "-list": // a flag, as a bench without this command would take a word for nothing
		return list(os.Stdout)
	case "measure":
		if len(args) != 3 {
			return fmt.Errorf("usage: bench measure SECTION FOLDER")
		}
		return serve(args[1], args[2])
	}
	fs := flag.NewFlagSet("bench", flag.ExitOnError)
	rounds := fs.Int("rounds", 12, "rounds of each cell; fewer than 11 make no verdict")
	rows := fs.String("rows", "", "regular `expression`: only the rows whose goal and text match")
	out := fs.String("o", "", "write the table to this `file` too")
	fs.BoolVar(&big, "big", false, "fold a log of 400 MB too (F3)")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unknown command %q", fs.Arg(0))
	}
	return table(ctx, *rounds, *rows, *out)
}
