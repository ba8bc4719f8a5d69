package main

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var billFigure = regexp.MustCompile(`(\d+) (in all|in|out|read from the cache|written to it)|\$([\d.,]+)`)

// billFigures reads the figures of a line of a bill, up to the first semicolon or "of".
func billFigures(text string) map[string]float64 {
	text, _, _ = strings.Cut(text, ";")
	text, _, _ = strings.Cut(text, " of ")
	all := map[string]float64{}
	for _, m := range billFigure.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(strings.ReplaceAll(m[1]+m[3], ",", ""), 64)
		if err != nil {
			continue
		}
		if m[2] == "" {
			m[2] = "$"
		}
		all[m[2]] += n
	}
	return all
}

// The lines of a bill that count sum up to the total above them, for every log of the module and for
// the sessions of programs with their sub-agents. No line is without a figure or a reason.
func TestBillsAddUp(t *testing.T) {
	logs := logsOfTheTree(t)
	paths := []string{}
	dir := t.TempDir()
	for i, name := range slices.Sorted(maps.Keys(logs)) {
		path := filepath.Join(dir, strconv.Itoa(i)+".jsonl")
		require.NoError(t, os.WriteFile(path, []byte(logs[name]), 0o600))
		paths = append(paths, path)
	}
	scenarios, err := filepath.Glob("../../capture/testdata/*/*")
	require.NoError(t, err)
	bills, lines := 0, 0
	for _, path := range append(paths, scenarios...) {
		got := exec("", "show", "--usage", "--all", path)
		for _, bill := range strings.Split("\n"+got.out, "\nrun ")[1:] {
			head, rest, _ := strings.Cut(bill, "\n")
			id, total, _ := strings.Cut(head, ": ")
			bills++
			want, sum, counted := billFigures(total), map[string]float64{}, 0
			for _, line := range regexp.MustCompile(`(?m)^  ([+-]) (.*)$`).FindAllStringSubmatch(rest, -1) {
				lines++
				source, figures, _ := strings.Cut(line[2], ": ")
				require.NotEmpty(t, figures, "%s: %s", path, line[0])
				require.False(t, strings.HasPrefix(source, "reports") && strings.HasPrefix(figures, "0;"), "%s: run %s: %s", path, id, line[0])
				if line[1] == "+" {
					counted++
					for name, n := range billFigures(figures) {
						sum[name] += n
					}
				}
			}
			if want["in"]+want["out"] > 0 {
				delete(sum, "in all") // a total beside its parts
			}
			for _, name := range []string{"in", "out", "in all", "read from the cache", "written to it", "$"} {
				margin := 0.0
				if name == "$" {
					margin = 0.00006 * float64(counted+1) // dollars are rounded
				}
				require.LessOrEqual(t, math.Abs(sum[name]-want[name]), margin, "%s: run %s: %s\n%s", path, id, name, bill)
			}
		}
	}
	t.Logf("%d bills with %d lines", bills, lines)
	require.Greater(t, bills, 500)
	require.Greater(t, lines, 500)
}
