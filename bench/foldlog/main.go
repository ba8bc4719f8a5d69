// Command foldlog folds a log from a file, and prints the number of events, runs and allocations,
// and the peak memory of the process. It imports only the library, so the memory belongs to the
// fold.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
)

func main() {
	workers := flag.Int("workers", 0, "goroutines that fold; see agentevents.FoldOptions")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: foldlog [-workers N] FILE")
		os.Exit(2)
	}
	if err := fold(flag.Arg(0), *workers); err != nil {
		fmt.Fprintln(os.Stderr, "foldlog:", err)
		os.Exit(1)
	}
}

func fold(path string, workers int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	start := time.Now()
	folded, err := agentevents.FoldLog(agentevents.NewReader(f, agentevents.ReaderOptions{}),
		agentevents.FoldOptions{Workers: workers})
	if err != nil {
		return err
	}
	var events uint64
	runs := 0
	for s := range folded.Drain() {
		runs++
		events += s.NextSequence
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	fmt.Printf("events=%d runs=%d mallocs=%d peakKB=%s wall=%s\n",
		events, runs, m.Mallocs, peak, time.Since(start).Round(time.Millisecond))
	return nil
}

// peakMemory returns the peak resident memory (VmHWM) in kB.
func peakMemory() (string, error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			return strings.TrimSuffix(strings.TrimSpace(v), " kB"), nil
		}
	}
	return "", fmt.Errorf("no VmHWM in /proc/self/status")
}
