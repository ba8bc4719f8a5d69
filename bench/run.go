package main

import (
	"bufio"
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents/bench/internal/measure"
)

// processes is how many processes the rounds of a section are spread over.
const processes = 4

// A planned section is one of which rows are wanted.
type planned struct {
	section
	comparisons []comparison
	cells       []*cell
	record      measure.Record
}

func table(ctx context.Context, rounds int, rows, out string) (err error) {
	only, err := regexp.Compile(rows)
	if err != nil {
		return err
	}
	if rounds < 1 {
		return fmt.Errorf("-rounds is %d, but must be at least 1", rounds)
	}
	if shared, err = os.MkdirTemp("", "bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(shared)
	scratch = shared
	start := time.Now()
	plan, err := planOf(sections(), only)
	if err != nil {
		return err
	}
	durable := ""
	for _, p := range plan {
		if p.durable {
			fmt.Fprintln(os.Stderr, "building bench/durable")
			if durable, err = buildDurable(ctx); err != nil {
				p.record = missing(p.cells, err)
			}
		}
	}
	if err := measurePlan(ctx, plan, rounds, durable); err != nil {
		return err
	}
	report := &bytes.Buffer{}
	floor, err := floorOf(plan)
	if err != nil {
		return err
	}
	all, err := rowsOf(plan, floor)
	if err != nil {
		return err
	}
	writeHeader(report, rounds, floor, durable)
	if err := writeTable(report, byGoal(all)); err != nil {
		return err
	}
	fmt.Fprintf(report, "\n%s, %s\n", tally(all), time.Since(start).Round(time.Second))
	if out != "" {
		if err := os.WriteFile(out, report.Bytes(), 0o644); err != nil {
			return err
		}
	}
	_, err = io.Copy(os.Stdout, report)
	return err
}

// planOf returns the sections with the rows that match, and the control if any of them
// measures something.
func planOf(all []section, only *regexp.Regexp) ([]*planned, error) {
	var out []*planned
	measured := 0
	for _, s := range all {
		p := &planned{section: s, comparisons: s.matching(only), record: measure.Record{}}
		if s.name == control {
			p.comparisons = s.comparisons()
		} else if len(p.comparisons) == 0 {
			continue
		}
		var err error
		if p.cells, err = cellsOf(p.comparisons); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		if s.name != control {
			measured += len(p.cells)
		}
		out = append(out, p)
	}
	if measured == 0 { // nothing that a control tells about
		out = slices.DeleteFunc(out, func(p *planned) bool { return p.name == control })
	}
	return out, nil
}

// measurePlan measures the cells of the plan, in a few processes for each section.
func measurePlan(ctx context.Context, plan []*planned, rounds int, durable string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	batches := min(processes, rounds)
	progress := progress{all: batches * len(plan)}
	for b := range batches {
		for _, p := range plan {
			progress.next(fmt.Sprintf("process %d of %d, %s", b+1, batches, p.name))
			n := rounds*(b+1)/batches - rounds*b/batches
			if p.once {
				n = rounds * max(0, 1-b) // all in the first
			}
			if n == 0 || len(p.cells) == 0 || allMissing(p) {
				continue
			}
			program := self
			if p.durable {
				program = durable
			}
			series, err := measure.Child(exec.CommandContext(ctx, program, "measure", p.name, shared),
				measure.Request{Cells: names(p.cells), Rounds: n, N: p.record.N()})
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			p.record.Add(series)
		}
	}
	return nil
}

func allMissing(p *planned) bool {
	for _, s := range p.record {
		if s.Missing == "" {
			return false
		}
	}
	return len(p.record) == len(p.cells)
}

// missing is the record of cells that cannot be measured.
func missing(cells []*cell, why error) measure.Record {
	out := measure.Record{}
	for _, c := range cells {
		first, _, _ := strings.Cut(why.Error(), "\n")
		out[c.Name] = &measure.Series{Name: c.Name, Missing: first}
	}
	return out
}

// progress names the section that is measured on standard error, every few seconds.
type progress struct {
	all, done    int
	began, spoke time.Time
}

func (p *progress) next(what string) {
	now := time.Now()
	if p.done == 0 {
		p.began = now
	}
	if p.done++; now.Sub(p.spoke) >= 5*time.Second {
		p.spoke = now
		fmt.Fprintf(os.Stderr, "%3d %%, %s: %s\n", 100*(p.done-1)/p.all, now.Sub(p.began).Round(time.Second), what)
	}
}

// floorOf returns the floor that the control shows.
func floorOf(plan []*planned) (float64, error) {
	var controls []measure.Ratio
	for _, p := range plan {
		if p.name != control {
			continue
		}
		for _, c := range p.comparisons {
			ours, theirs := p.record[c.pairs[0].ours.Name], p.record[c.pairs[0].theirs.Name]
			if ours == nil || theirs == nil {
				return 0, fmt.Errorf("the control %s was not measured", c.what)
			}
			controls = append(controls, measure.RatioOf(measure.Pair{Over: theirs.CPU, Under: ours.CPU}))
		}
	}
	return measure.Floor(controls), nil
}

func rowsOf(plan []*planned, floor float64) ([]row, error) {
	var out []row
	for _, p := range plan {
		for _, c := range p.comparisons {
			f := floor
			if p.name == control {
				f = 1
			}
			r, err := c.row(p.record, f)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", c.goal, c.what, err)
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// byGoal sorts rows by goal.
func byGoal(rows []row) []row {
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.goal, b.goal) })
	return rows
}

// command returns the path of the command agentevents. The first call builds it, from the
// module in whose folder this process runs.
func command() (string, error) {
	bin := filepath.Join(shared, "agentevents")
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	return bin, goBuild(exec.Command("go", "build", "-o", bin, "github.com/agentevents/agentevents/cmd/agentevents"))
}

func goBuild(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// buildDurable builds the program of bench/durable, a module outside go.work.
func buildDurable(ctx context.Context) (string, error) {
	dir, err := benchFolder(ctx)
	if err != nil {
		return "", err
	}
	bin := filepath.Join(shared, "durable")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", bin, ".")
	cmd.Dir, cmd.Env = filepath.Join(dir, "durable"), append(os.Environ(), "GOWORK=off")
	return bin, goBuild(cmd)
}

// benchFolder returns the folder of this program's source.
func benchFolder(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}",
		"github.com/agentevents/agentevents/bench").Output()
	if err != nil {
		return "", fmt.Errorf("the source of bench is not found: run it from the repository: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// peers are the modules that the table compares with.
var peers = []string{
	"github.com/go-json-experiment/json", "github.com/segmentio/encoding", "github.com/goccy/go-json", "github.com/bytedance/sonic",
	"github.com/rs/zerolog", "github.com/minio/simdjson-go", "github.com/valyala/fastjson", "github.com/hashicorp/eventlogger",
	"github.com/ag-ui-protocol/ag-ui/sdks/community/go", "go.opentelemetry.io/otel/sdk",
	"github.com/cockroachdb/pebble/v2", "go.etcd.io/bbolt", "modernc.org/sqlite", "github.com/nats-io/nats-server/v2",
}

// writeHeader writes the versions of the peers, and how to read the table. durable is the path of the
// program of bench/durable, or empty.
func writeHeader(w io.Writer, rounds int, floor float64, durable string) {
	fmt.Fprintf(w, "%s, %d cores, %s/%s, %s\n",
		cpuModel(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	fmt.Fprintf(w, "%s, %d rounds, encoding/json is %s\n",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), rounds, stdJSON)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	deps := info.Deps
	if info, err := buildinfo.ReadFile(durable); err == nil {
		deps = append(slices.Clone(deps), info.Deps...)
	}
	for _, path := range peers {
		if at := slices.IndexFunc(deps, func(m *debug.Module) bool { return m.Path == path }); at >= 0 {
			fmt.Fprintln(w, deps[at].Path, deps[at].Version)
		}
	}
	for _, version := range programVersions() {
		fmt.Fprintln(w, version)
	}
	clock := "CPU time"
	if !measure.CPUKnown {
		clock = "Wall time, as CPU time is not known on this system: no row of time has a verdict. In place of it: CPU time"
	}
	fmt.Fprintf(w, `
%s of an event: the least of the rounds, on one core, unless the row names two. L1 counts the emitting thread, Q1 processes.
A row compares ours / theirs. Measured: ours/theirs where the bar is ≤, theirs/ours where it is ≥ or there is none.
Interval: where the median of the ratios of the rounds lies, at 99.9 %%; with twelve rounds from the least to the greatest of them.
No interval is narrower than ±%.1f %%: three quarters of the A/A rows, which compare code with itself, differ by less.
A row whose interval contains the bar crosses it. Rows without a bar, and all of wall time, are for information.

`, clock, 100*(floor-1))
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
