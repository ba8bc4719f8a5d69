// Command genlog writes the log of the benchmarks to standard output.
//
//	go run ./bench/genlog -n 1000000 > big.jsonl
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/agentevents/agentevents/bench/mix"
)

func main() {
	lines := flag.Int("n", mix.Standard.Lines, "lines, about")
	runs := flag.Int("runs", mix.Standard.Runs, "runs")
	flag.Parse()
	if err := mix.Write(os.Stdout, mix.Options{Lines: *lines, Runs: *runs}); err != nil {
		fmt.Fprintln(os.Stderr, "genlog:", err)
		os.Exit(1)
	}
}
