// Command compare compares the questions that the command answers about a log with DuckDB and with
// the command of an earlier revision, by the CPU time of processes that run in turn.
//
//	go run ./internal/compare
//
// It runs in the folder of the module, and needs git, node, and the variable AGENTEVENTS_DUCKDB with
// the folder of a copy of bench/testdata/duckdb in which npm ci was run. It writes a log of 1.3 GB to
// a temporary folder, and takes some minutes and 3 GB of memory. It exits with 1 if a figure
// differs from DuckDB's, or a ratio is above its bar.
package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed duckdb.js
var questions string

// fromColumns answers the same questions from Parquet files.
//
//go:embed columns.js
var fromColumns string

// The bars of the files: bytes of them for a byte of the log, and bytes of the log a CPU second.
const (
	mostOfLog  = 0.1
	leastSpeed = 40e6
)

// p95Error is the error of a percentile that stats states, of itself.
const p95Error = 0.008

func main() {
	base := flag.String("base", "466d346", "earlier `REVISION`")
	log := flag.String("log", "", "`FILE` that is asked; default: one that bench/genlog writes")
	rounds := flag.Int("rounds", 5, "rounds, of which the least time counts")
	flag.Parse()
	good, err := compare(*base, *log, *rounds)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	if !good {
		os.Exit(1)
	}
}

func compare(base, log string, rounds int) (good bool, err error) {
	if _, err := os.Stat(modules("@duckdb", "node-api")); err != nil {
		return false, fmt.Errorf("AGENTEVENTS_DUCKDB names no folder with the packages of bench/testdata/duckdb: %w", err)
	}
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return false, err
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(dir)) }()
	now, before := filepath.Join(dir, "now"), filepath.Join(dir, "before")
	steps := []string{
		`go build -o "$0/now" ./cmd/agentevents`,
		`go build -o "$0/foldlog" ./bench/foldlog`,
		`cd parquetlog && GOWORK=off go build -o "$0/parquet" ./cmd/agentevents-parquet`,
		`mkdir "$0/src" && git archive "$1" | tar -x -C "$0/src" && cd "$0/src" && go build -o "$0/before" ./cmd/agentevents`,
	}
	if log == "" {
		log = filepath.Join(dir, "log.jsonl")
		steps = append(steps, `go run ./bench/genlog -n 2400000 -runs 4800 > "$0/log.jsonl"`)
	}
	for _, step := range steps {
		cmd := exec.Command("sh", "-ec", step, dir, base)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return false, fmt.Errorf("%s: %w", step, err)
		}
	}
	all := []ratio{
		{"stats --by agent,model,tool / DuckDB", 1.6, []string{now, "stats", "--rehash", "--json", "--by", "agent,model,tool", log}, []string{"node", "-e", questions, log}},
		{"stats --by agent,model,tool / stats --by model before", 0.7, []string{now, "stats", "--rehash", "--json", "--by", "agent,model,tool", log}, []string{before, "stats", "--json", "--by", "model", log}},
		{"check / before", 0.8, []string{now, "check", log}, []string{before, "check", log}},
		{"ls / before", 0.6, []string{now, "ls", "--rehash", log}, []string{before, "ls", log}},
		{"fold / before", 0.65, []string{now, "fold", log}, []string{before, "fold", log}},
	}
	columns := filepath.Join(dir, "columns")
	if good, err = write(log, filepath.Join(dir, "parquet"), columns); err != nil {
		return false, err
	}
	all = slices.Insert(all, 1, ratio{"DuckDB from columns / DuckDB from lines", 0.1,
		[]string{"node", "-e", fromColumns, columns}, []string{"node", "-e", questions, log}})
	halves, err := split(log, filepath.Join(dir, "half"))
	if err != nil {
		return false, err
	}
	foldlog := filepath.Join(dir, "foldlog")
	all = append(all, ratio{"two workers / two processes with half of the runs each", 1.08,
		[]string{foldlog, "-workers", "2", log},
		[]string{"sh", "-c", `"$0" "$1" & "$0" "$2"; wait`, foldlog, halves[0], halves[1]}})
	var report []byte // of stats
	for i, r := range all {
		a, b, err := r.measure(rounds)
		if err != nil {
			return false, err
		}
		word := "ok"
		if a.cpu > b.cpu*r.bar {
			word, good = "above the bar", false
		}
		fmt.Printf("%-55s %6.2f s / %6.2f s = %.2f, bar %.2f: %s\n", r.name, a.cpu, b.cpu, a.cpu/b.cpu, r.bar, word)
		switch i {
		case 0:
			report = a.out
		case 1:
			b.out = a.out
		default:
			continue
		}
		differences, err := differences(report, b.out)
		if err != nil {
			return false, err
		}
		for _, d := range differences {
			fmt.Println("  ", d)
		}
		good = good && len(differences) == 0
	}
	return good, nil
}

// write writes a log as Parquet files, and reports whether their size and its CPU time keep the bars.
func write(log, program, folder string) (good bool, err error) {
	one, err := execute([]string{program, "-o", folder, log})
	if err != nil {
		return false, err
	}
	info, err := os.Stat(log)
	if err != nil {
		return false, err
	}
	size := int64(0)
	files, err := filepath.Glob(filepath.Join(folder, "*", "*.parquet"))
	if err != nil {
		return false, err
	}
	for _, name := range files {
		file, err := os.Stat(name)
		if err != nil {
			return false, err
		}
		size += file.Size()
	}
	share, speed := float64(size)/float64(info.Size()), float64(info.Size())/one.cpu
	word := "ok"
	if good = share > 0 && share <= mostOfLog && speed >= leastSpeed; !good {
		word = "not within the bars"
	}
	fmt.Printf("%-55s %.3f of the log, bar %.2f; %.0f MB a CPU second, bar %.0f: %s\n",
		"Parquet files", share, mostOfLog, speed/1e6, leastSpeed/1e6, word)
	return good, nil
}

// split writes the lines of the runs with even numbers and of those with odd ones to two files.
func split(log, half string) (names [2]string, err error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return names, err
	}
	var parts [2][]byte
	for line := range bytes.Lines(text) {
		_, id, _ := bytes.Cut(line, []byte(`"runId":"`))
		id, _, _ = bytes.Cut(id, []byte(`"`))
		if len(id) == 0 {
			return names, fmt.Errorf("%s: a line without a run", log)
		}
		n := id[len(id)-1] % 2
		parts[n] = append(parts[n], line...)
	}
	for i, part := range parts {
		names[i] = fmt.Sprint(half, i)
		if err := os.WriteFile(names[i], part, 0o600); err != nil {
			return names, err
		}
	}
	return names, nil
}

// A ratio is one of the CPU times of two commands.
type ratio struct {
	name string
	bar  float64
	a, b []string
}

// A run is one run of a command, with its CPU time in seconds.
type run struct {
	cpu float64
	out []byte
}

// measure runs both commands in turn, and returns the cheapest run of each.
func (r *ratio) measure(rounds int) (a, b run, err error) {
	for range rounds {
		for _, side := range []struct {
			args []string
			best *run
		}{{r.a, &a}, {r.b, &b}} {
			one, err := execute(side.args)
			if err != nil {
				return a, b, err
			}
			if side.best.cpu == 0 || one.cpu < side.best.cpu {
				*side.best = one
			}
		}
	}
	return a, b, nil
}

// execute runs a command. A process that measures itself states its CPU time, which has no start of
// the language then.
func execute(args []string) (run, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules())
	out, err := cmd.Output()
	if err != nil {
		return run{}, fmt.Errorf("%s: %w", filepath.Base(args[0]), err)
	}
	var stated struct{ CPUSeconds float64 }
	_ = json.Unmarshal(out, &stated) // other commands print other text
	used := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()) / time.Microsecond * time.Microsecond
	return run{cmp.Or(stated.CPUSeconds, used.Seconds()), out}, nil
}

// modules returns a path below the folder of the packages for node.
func modules(path ...string) string {
	return filepath.Join(append([]string{os.Getenv("AGENTEVENTS_DUCKDB"), "node_modules"}, path...)...)
}

// Figures of a group, as DuckDB answers them.
type figures struct {
	Calls, Failed, Input, Output, Cached, Cost float64
	P95                                        *float64
}

// groupsOf returns the figures of the report of stats by grouping and name.
func groupsOf(report []byte) (map[string]map[string]figures, error) {
	type table struct {
		By     string
		Groups []struct {
			Name      string
			CostUSD   float64
			ToolCalls *struct {
				Calls, Failed float64
				SpreadMS      *struct{ P95 float64 }
			}
			Tokens *struct{ Input, Output, CacheRead float64 }
		}
	}
	var r struct {
		table
		Tables []table
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return nil, err
	}
	all := map[string]map[string]figures{}
	for _, t := range append(r.Tables, r.table) {
		all[t.By] = map[string]figures{}
		for _, g := range t.Groups {
			f := figures{Cost: g.CostUSD}
			if c := g.ToolCalls; c != nil {
				f.Calls, f.Failed = c.Calls, c.Failed
				if c.SpreadMS != nil {
					f.P95 = &c.SpreadMS.P95
				}
			}
			if t := g.Tokens; t != nil {
				f.Input, f.Output, f.Cached = t.Input, t.Output, t.CacheRead
			}
			all[t.By][g.Name] = f
		}
	}
	return all, nil
}

// differences compares the figures of stats with DuckDB's. Counts and tokens are equal; a sum of costs
// depends on its order.
func differences(report, answer []byte) (out []string, err error) {
	ours, err := groupsOf(report)
	if err != nil {
		return nil, err
	}
	var theirs map[string]json.RawMessage
	if err := json.Unmarshal(answer, &theirs); err != nil {
		return nil, err
	}
	for _, by := range []string{"agent", "model", "tool"} {
		var want map[string]figures
		if err := json.Unmarshal(theirs[by], &want); err != nil {
			return nil, err
		}
		names := slices.Sorted(maps.Keys(want))
		if got := slices.Sorted(maps.Keys(ours[by])); !slices.Equal(names, got) {
			out = append(out, fmt.Sprintf("by %s: %s, DuckDB has %s", by, strings.Join(got, ", "), strings.Join(names, ", ")))
		}
		for _, name := range names {
			a, b := ours[by][name], want[name]
			if (a.P95 == nil) != (b.P95 == nil) || a.P95 != nil && math.Abs(*a.P95-*b.P95) > p95Error**b.P95 {
				out = append(out, fmt.Sprintf("%s %s: p95 %v, DuckDB has %v", by, name, value(a.P95), value(b.P95)))
			}
			if math.Abs(a.Cost-b.Cost) < 1e-9*math.Abs(b.Cost) {
				a.Cost = b.Cost
			}
			if a.P95, b.P95 = nil, nil; a != b {
				out = append(out, fmt.Sprintf("%s %s: %+v, DuckDB has %+v", by, name, a, b))
			}
		}
	}
	return out, nil
}

func value(v *float64) any {
	if v == nil {
		return "none"
	}
	return *v
}
