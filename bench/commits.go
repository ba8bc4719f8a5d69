package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents/bench/internal/measure"
)

// A side is one of two commits, or the working tree.
type side struct {
	name   string // as the user wrote it
	root   string // the folder of its files
	bin    string // the bench that was built there
	shared string // a folder for its children
	record map[string]measure.Record
}

func compareMain(ctx context.Context, args []string) (err error) {
	fs := flag.NewFlagSet("bench compare", flag.ExitOnError)
	rounds := fs.Int("rounds", 12, "rounds of each row; fewer than 11 decide nothing")
	rows := fs.String("rows", "^[^S]", "regular `expression`: only the rows whose goals and name match")
	margin := fs.Float64("margin", 0.1, "a row is the same if its interval is within `this` of 1")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(),
			"usage: go run ./bench compare [-rounds N] [-rows REGEXP] "+
				"[-margin X] OLD [NEW]\nNEW is the working tree if it is left out.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		return err
	}
	only, err := regexp.Compile(*rows)
	if err != nil {
		return err
	}
	if fs.NArg() < 1 || fs.NArg() > 2 || *rounds < 1 {
		fs.Usage()
		return errors.New("one or two commits are wanted, and a round")
	}
	temp, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	dir, err := benchFolder(ctx)
	if err != nil {
		return err
	}
	repo := filepath.Dir(dir)
	sides := [2]*side{{name: fs.Arg(0)}, {name: fs.Arg(1)}}
	for i, s := range sides {
		s.record, s.shared = map[string]measure.Record{}, filepath.Join(temp, fmt.Sprint("files-", i))
		if err := os.Mkdir(s.shared, 0o755); err != nil {
			return err
		}
		if s.name == "" {
			s.name, s.root = "the working tree", repo
			continue
		}
		s.root = filepath.Join(temp, fmt.Sprint("tree-", i))
		if err := git(ctx, repo, "worktree", "add", "--quiet", "--detach", s.root, s.name); err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, git(context.WithoutCancel(ctx), repo, "worktree", "remove", "--force", s.root))
		}()
	}
	start := time.Now()
	note, err := buildSides(ctx, sides, dir)
	if err != nil {
		return err
	}
	cells, err := commonCells(ctx, sides, only)
	if err != nil {
		return err
	}
	if err := measureSides(ctx, sides, cells, *rounds); err != nil {
		return err
	}
	fmt.Printf("%s, %d rounds. Bench: %s.\n", cpuModel(), *rounds, note)
	err = writeChanges(os.Stdout, sides, cells, *margin)
	fmt.Println(time.Since(start).Round(time.Second))
	return err
}

// buildSides builds this bench against the library of both sides. If one does not build, each
// side gets its own, and only the rows are compared that both have.
func buildSides(ctx context.Context, sides [2]*side, dir string) (string, error) {
	var first error
	for i, s := range sides {
		fmt.Fprintf(os.Stderr, "building bench against %s\n", s.name)
		if first = s.build(ctx, dir, i); first != nil {
			break
		}
	}
	if first == nil {
		return "the working tree's bench on both sides", nil
	}
	for i, s := range sides {
		if err := s.build(ctx, filepath.Join(s.root, "bench"), i); err != nil {
			return "", errors.Join(first, err)
		}
		if _, err := s.list(ctx); err != nil {
			return "", fmt.Errorf("this bench does not build against both commits, "+
				"and the bench of %s cannot be compared: %w", s.name, first)
		}
	}
	return "each side's own bench, as the working tree's does not build against both", nil
}

// build builds the bench of the folder from against the library of the side.
func (s *side) build(ctx context.Context, from string, i int) error {
	bench, env := filepath.Join(s.root, "bench"), append(os.Environ(), "GOWORK=off")
	if from != bench {
		// The path of the module decides, not its folder.
		bench = filepath.Join(s.root, "bench-of-compare")
		if err := os.CopyFS(bench, os.DirFS(from)); err != nil {
			return err
		}
		defer os.RemoveAll(bench)
		// go.sum may lack modules that this commit of the library needs.
		env = append(env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -mod=mod"))
	}
	s.bin = filepath.Join(s.shared, "bench")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", s.bin, ".")
	cmd.Dir, cmd.Env = bench, env
	if err := goBuild(cmd); err != nil {
		return err
	}
	cmd = exec.CommandContext(ctx, "go", "build", "-trimpath", "-o",
		filepath.Join(s.shared, "agentevents"), "./cmd/agentevents")
	cmd.Dir, cmd.Env = s.root, append(os.Environ(), "GOWORK=off")
	return goBuild(cmd)
}

func (s *side) list(ctx context.Context) ([]listed, error) {
	out, err := exec.CommandContext(ctx, s.bin, "-list").Output()
	if err != nil {
		return nil, err
	}
	var cells []listed
	return cells, json.Unmarshal(out, &cells)
}

func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// commonCells returns the cells that match, of those that both sides have.
func commonCells(ctx context.Context, sides [2]*side, only *regexp.Regexp) ([]listed, error) {
	var lists [2][]listed
	for i, s := range sides {
		var err error
		if lists[i], err = s.list(ctx); err != nil {
			return nil, err
		}
	}
	cells := slices.DeleteFunc(lists[1], func(c listed) bool {
		return !only.MatchString(c.Goals+" "+c.Name) || !slices.Contains(lists[0], c)
	})
	if !slices.ContainsFunc(cells, func(c listed) bool { return !c.Control }) {
		return nil, errors.New("no row matches -rows")
	}
	return cells, nil
}

// measureSides measures the cells of both sides in turn: each round of a section has a
// process of each side, and the rounds take turns in which side comes first. The side that
// comes first sets the operations of a round for both.
func measureSides(ctx context.Context, sides [2]*side, cells []listed, rounds int) error {
	var order []string
	bySection := map[string][]string{}
	for _, c := range cells {
		if bySection[c.Section] == nil {
			order = append(order, c.Section)
		}
		bySection[c.Section] = append(bySection[c.Section], c.Name)
	}
	n := map[string]map[string]int{}
	progress := progress{all: rounds * len(order)}
	for round := range rounds {
		for _, name := range order {
			progress.next(fmt.Sprintf("round %d of %d, %s", round+1, rounds, name))
			for i := range sides {
				s := sides[(round+i)%2]
				cmd := exec.CommandContext(ctx, s.bin, "measure", name, s.shared)
				series, err := measure.Child(cmd, measure.Request{Cells: bySection[name], Rounds: 1, N: n[name]})
				if err != nil {
					return fmt.Errorf("%s, %s: %w", s.name, name, err)
				}
				if s.record[name] == nil {
					s.record[name] = measure.Record{}
				}
				s.record[name].Add(series)
				if n[name] == nil {
					n[name] = s.record[name].N()
				}
			}
		}
	}
	return nil
}

// writeChanges writes a row for each cell. Its ratio is new/before.
func writeChanges(w io.Writer, sides [2]*side, cells []listed, margin float64) error {
	ratios := make([]measure.Ratio, len(cells))
	var controls []measure.Ratio
	for i, c := range cells {
		before, after := sides[0].record[c.Section][c.Name], sides[1].record[c.Section][c.Name]
		ratios[i] = measure.RatioOf(measure.Pair{Over: after.CPU, Under: before.CPU})
		if c.Control && ratios[i].Value > 0 {
			controls = append(controls, ratios[i])
		}
	}
	floor := measure.Floor(controls)
	lines := [][]string{{"goals", "row", "old", "new", "new/old", "interval", ""}}
	counts := map[string]int{}
	var of comparison // of CPU time
	for i, c := range cells {
		before, after := sides[0].record[c.Section][c.Name], sides[1].record[c.Section][c.Name]
		line := []string{c.Goals, c.Name, "–", "–", "–", "–", ""}
		switch r := ratios[i].Widened(floor); {
		case before.Missing != "" || after.Missing != "":
			line[6] = "not measured: " + max(before.Missing, after.Missing)
		case before.Bytes != after.Bytes || before.Events != after.Events:
			line[6] = fmt.Sprintf("not comparable: logs of %d and %d bytes", before.Bytes, after.Bytes)
		default:
			word := string(r.Change(margin))
			if c.Control {
				word, r = "control", ratios[i]
			}
			line[2], line[3], line[4] = of.figure(before), of.figure(after), fmt.Sprintf("%.3f", r.Value)
			line[5], line[6] = fmt.Sprintf("%.3f to %.3f", r.Low, r.High), word
			counts[word]++
		}
		lines = append(lines, line)
	}
	fmt.Fprintf(w, `Old: %s. New: %s. CPU time, least of the rounds; each round of a side has a process of its own.
Interval: where the median of the ratios of the rounds lies, at 99.9 %%, but not narrower than ±%.1f %%: three quarters of the controls differ by less.
Slower, faster: the interval leaves out 1. Same: it is within %.0f %% of 1. Controls: peers, the same code on both sides.

`, sides[0].name, sides[1].name, 100*(floor-1), 100*margin)
	if err := writeColumns(w, lines); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d rows: %d same, %d faster, %d slower, %d not decidable; %d controls\n",
		len(cells)-counts["control"],
		counts[string(measure.Same)], counts[string(measure.Faster)],
		counts[string(measure.Slower)], counts[string(measure.Undecidable)], counts["control"])
	return err
}
