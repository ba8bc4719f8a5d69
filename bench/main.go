// Command bench measures the library beside its peers, and prints a table of goals:
// the bar, the measured figure, and whether it falls short.
//
//	go run ./bench                               from the root of the repository
//	go run ./bench -run 'E2|F1' -rounds 4
//	go run ./bench -big -o table.txt             with the log of 400 MB, into a file too
//	GOEXPERIMENT=jsonv2 go run ./bench -run E2   against the encoding/json of Go 1.27
//
// The figures of a section come from one run of interleaved rounds. Each figure is the
// median of its cell. It is CPU time, user and system, including the garbage
// collector, on one core (GOMAXPROCS 1); M5 and F5 are wall time on two cores, and L1 is
// the CPU time of the emitting thread, with two. Elsewhere than on Linux all is wall time.
// Compare figures only within a section, because other programs share the machine and its
// cache.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A section is a set of comparisons whose cells are measured together.
type section struct {
	name  string
	goals string // the goals that it may have rows for
	make  func() ([]comparison, error)
}

var big = flag.Bool("big", false, "fold a log of 400 MB too (F3)")

var sections = []section{
	{"encoding", "E1 E2 E4", encodeSection},
	{"emitting", "E1 M1 M2 M4 M6", emitSection},
	{"emitting concurrently", "M5", concurrentSection},
	{"emitting to a disk", "M7", diskSection},
	{"emitting to readers", "L1", liveSection},
	{"folding and reading", "F1 F2 F3 F4 F6 F7", foldSection},
	{"folding on two cores", "F5", coresSection},
	{"growing", "S1 S2", scaleSection},
	{"tracing", "O2 O3", otelSection},
}

func main() {
	rounds := flag.Int("rounds", 8, "rounds of each section")
	run := flag.String("run", "", "regular `expression`: measure only these goals")
	out := flag.String("o", "", "write the table to this `file` too")
	flag.Parse()
	if err := bench(*rounds, *run, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(rounds int, run, out string) error {
	only, err := regexp.Compile(run)
	if err != nil {
		return err
	}
	if rounds < 1 {
		return fmt.Errorf("-rounds is %d, but must be at least 1", rounds)
	}
	if scratch, err = os.MkdirTemp("", "bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	var report bytes.Buffer
	start := time.Now()
	writeHeader(&report, rounds)
	var all []row
	for _, s := range sections {
		rows, err := s.measure(only, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		all = append(all, rows...)
	}
	all = byGoal(all)
	if err := writeTable(&report, all); err != nil {
		return err
	}
	fmt.Fprintf(&report, "\n%d rows, %d SHORT, %s\n", len(all), short(all), time.Since(start).Round(time.Second))
	if out != "" {
		if err := os.WriteFile(out, report.Bytes(), 0o644); err != nil {
			return err
		}
	}
	_, err = io.Copy(os.Stdout, &report)
	return err
}

// measure measures the section and returns the rows of the goals that match only.
func (s section) measure(only *regexp.Regexp, rounds int) ([]row, error) {
	wanted := false
	for _, goal := range strings.Fields(s.goals) {
		wanted = wanted || only.MatchString(goal)
	}
	if !wanted {
		return nil, nil
	}
	comparisons, err := s.make()
	if err != nil {
		return nil, err
	}
	var cells []*cell
	seen := map[*cell]bool{}
	for _, c := range comparisons {
		for _, p := range c.pairs {
			for _, cell := range []*cell{p.ours, p.theirs} {
				if only.MatchString(c.goal) && !seen[cell] {
					seen[cell] = true
					cells = append(cells, cell)
				}
			}
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %d cells, %d rounds\n", s.name, len(cells), rounds)
	if err := measureAll(cells, rounds); err != nil {
		return nil, err
	}
	var rows []row
	for _, c := range comparisons {
		if !only.MatchString(c.goal) {
			continue
		}
		r, err := c.row()
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", c.goal, c.what, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// byGoal sorts rows by goal.
func byGoal(rows []row) []row {
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.goal, b.goal) })
	return rows
}

// peers are the modules that the table compares with.
var peers = []string{
	"github.com/go-json-experiment/json", "github.com/segmentio/encoding", "github.com/goccy/go-json", "github.com/bytedance/sonic",
	"github.com/rs/zerolog", "github.com/minio/simdjson-go", "github.com/valyala/fastjson", "github.com/hashicorp/eventlogger",
	"github.com/ag-ui-protocol/ag-ui/sdks/community/go", "go.opentelemetry.io/otel/sdk",
}

func writeHeader(w io.Writer, rounds int) {
	fmt.Fprintf(w, "%s, %d cores, %s/%s, %s\n", cpuModel(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	fmt.Fprintf(w, "%s, %d rounds, encoding/json is %s\n", time.Now().UTC().Format("2006-01-02 15:04 UTC"), rounds, stdJSON)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	for _, path := range peers {
		for _, m := range info.Deps {
			if m.Path == path {
				fmt.Fprintln(w, m.Path, m.Version)
			}
		}
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "CPU time on one core per event, M5 and F5 wall time on two, L1 the emitting thread's. ± is half the distance of the quartiles between rounds.")
	fmt.Fprintln(w, "≥: theirs/ours. ≤: ours/theirs. A row without a bar is for information.")
	fmt.Fprintln(w)
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}
