package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A habit is a word or phrase that stands where a noun should. Its limit is how often 1,000
// lines may have it in a package or page that the baseline does not list.
type habit struct {
	name    string
	pattern *regexp.Regexp
	limit   float64
	instead string
}

var habits = [...]habit{
	{"what", regexp.MustCompile(`(?i)\bwhat\b`), 15, `name the thing: "the fields that a document lacks"`},
	{"say", regexp.MustCompile(`(?i)\bsays?\b`), 5, `use the verb of the thing: "has", "requires", "reports", "names"`},
	{"behind", regexp.MustCompile(`(?i)\bbehind\b`), 1, `in an order, write "after" or "following"`},
	{"of", regexp.MustCompile(`(?i)\b(is|that|those)\s+of\b`), 8, `repeat the noun: "the id of the run"`},
	{"no", regexp.MustCompile(`(?i)\b(is\s+no|are\s+none)\b`), 6, `negate the verb: "is not a stream", "has no streams"`},
}

const (
	baselinePath = "internal/gatecheck/english.txt"
	// smallPackage is the number of source lines below which packages are counted
	// together: they have too few comments for a rate.
	smallPackage = 500
	smallGroup   = "packages under 500 lines"
	testGroup    = "tests"
	shown        = 10
)

const baselineHead = `# How often each package, the tests together and each Markdown page have the habits of
# English that gatecheck counts, and in how many lines of comment or prose. A check fails
# when both the count and the rate of a habit rise.
#
#	go run ./internal/gatecheck english -update    # lower the rows that have become better
#	go run ./internal/gatecheck english -rewrite   # write all rows anew, for example after a merge
#
`

type place struct {
	path string
	line int
}

// A text is the prose of one package, of all tests, or of one page.
type text struct {
	group  string
	lines  int // with a letter or digit
	places [len(habits)][]place
}

// A row is a line of the baseline.
type row struct {
	lines  int
	counts [len(habits)]int
}

// A mode is how much of the baseline the check writes.
type mode int

const (
	keep    mode = iota
	lower        // the rows of groups in which no rate has risen
	rewrite      // all rows
)

var modes = map[string]mode{"-update": lower, "-rewrite": rewrite}

// english compares the counts of habits with the baseline. A count is too high if both it
// and its rate for each line are above the baseline.
func english(t *tree, m mode) ([]string, error) {
	base, err := readBaseline(t.fsys)
	if err != nil {
		return nil, err
	}
	texts := t.texts()
	groups := map[string][]string{}
	for name, x := range texts {
		groups[x.group] = append(groups[x.group], name)
	}
	var problems []string
	for group, members := range groups {
		slices.Sort(members)
		problem, rose := compare(group, members, texts, base, t.fresh)
		problems = append(problems, problem...)
		if m == rewrite || m == lower && !rose {
			for _, name := range members {
				base[name] = texts[name].row()
			}
		}
	}
	if m == keep || m == lower && len(problems) > 0 {
		return problems, nil
	}
	maps.DeleteFunc(base, func(name string, _ row) bool { return texts[name] == nil })
	return nil, os.WriteFile(baselinePath, formatBaseline(base), 0o666)
}

// compare returns the problems of a group, and whether a rate of it is above the baseline.
func compare(group string, members []string, texts map[string]*text, base map[string]row, fresh func() map[place]bool) (problems []string, rose bool) {
	for i, h := range habits {
		var places []place
		var lines, allowed, baseLines float64
		for _, name := range members {
			x := texts[name]
			places, lines = append(places, x.places[i]...), lines+float64(x.lines)
			if r, ok := base[name]; ok {
				allowed, baseLines = allowed+float64(r.counts[i]), baseLines+float64(r.lines)
			} else {
				allowed, baseLines = allowed+h.limit*float64(x.lines)/1000, baseLines+float64(x.lines)
			}
		}
		count := float64(len(places))
		rose = rose || count*baseLines > allowed*lines
		if most := max(allowed, allowed*lines/max(baseLines, 1)); count > most {
			problems = append(problems, fmt.Sprintf("%s: %q occurs %d times in %.0f lines, at most %.0f are allowed: %s%s",
				group, h.name, len(places), lines, math.Floor(most), h.instead, list(places, fresh())))
		}
	}
	return problems, rose
}

// list names places: those in lines that are newer than the baseline, if there are any.
func list(places []place, fresh map[place]bool) string {
	var newer, older []string
	for _, p := range places {
		if at := fmt.Sprintf("\n\t%s:%d", p.path, p.line); fresh[p] {
			newer = append(newer, at)
		} else {
			older = append(older, at)
		}
	}
	if len(newer) == 0 {
		newer = older
	}
	return strings.Join(newer[:min(len(newer), shown)], "")
}

var (
	diffFile = regexp.MustCompile(`^\+\+\+ b/(.*)$`)
	diffHunk = regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)
)

// newLines returns the lines that were changed since the commit of the baseline, as far as
// git knows them.
func newLines() map[place]bool {
	fresh := map[place]bool{}
	commit, err := exec.Command("git", "log", "-1", "--format=%H", "--", baselinePath).Output()
	if err != nil || len(commit) == 0 {
		return fresh
	}
	diff, err := exec.Command("git", "diff", "-U0", "--no-color", "--no-ext-diff", strings.TrimSpace(string(commit)), "--", "*.go", "*.md").Output()
	if err != nil {
		return fresh
	}
	name := ""
	for line := range strings.Lines(string(diff)) {
		if m := diffFile.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			name = m[1]
		} else if m := diffHunk.FindStringSubmatch(line); m != nil {
			first, _ := strconv.Atoi(m[1])
			n, err := strconv.Atoi(m[2])
			if err != nil {
				n = 1
			}
			for i := range n {
				fresh[place{name, first + i}] = true
			}
		}
	}
	return fresh
}

// texts returns the prose of the tree by the names of its rows.
func (t *tree) texts() map[string]*text {
	texts, size := map[string]*text{}, map[string]int{}
	get := func(name string) *text {
		if texts[name] == nil {
			texts[name] = &text{group: name}
		}
		return texts[name]
	}
	for _, f := range t.files {
		name := path.Dir(f.path)
		if f.test {
			name = testGroup
		}
		size[name] += f.lines
		for _, group := range f.ast.Comments {
			get(name).add(f.path, t.commentLines(group))
		}
	}
	for name, x := range texts {
		if size[name] < smallPackage && name != testGroup {
			x.group = smallGroup
		}
	}
	for _, p := range t.pages {
		if path.Base(p.path) != "CHANGELOG.md" {
			get(p.path).add(p.path, pageLines(p.text))
		}
	}
	return texts
}

// A line is a line of prose. Its number is that in its file.
type line struct {
	number int
	text   string
}

var directive = regexp.MustCompile(`^//(go:|line |export |nolint|[a-z0-9]+:[a-z0-9])`)

// commentLines returns the lines of a comment without its marks and directives.
func (t *tree) commentLines(group *ast.CommentGroup) (lines []line) {
	for _, c := range group.List {
		if directive.MatchString(c.Text) {
			continue
		}
		first := t.fset.Position(c.Pos()).Line
		for i, s := range strings.Split(c.Text, "\n") {
			lines = append(lines, line{first + i, strings.Trim(s, "/* \t\r")})
		}
	}
	return lines
}

// pageLines returns the lines of a Markdown page outside of its blocks of code.
func pageLines(page string) (lines []line) {
	code := false
	for i, s := range strings.Split(page, "\n") {
		if strings.HasPrefix(strings.TrimSpace(s), "```") {
			code = !code
		} else if !code {
			lines = append(lines, line{i + 1, s})
		}
	}
	return lines
}

var wordy = regexp.MustCompile(`[\pL\pN]`)

// add counts the habits in lines, also where a phrase goes over the end of one.
func (x *text) add(path string, lines []line) {
	var all strings.Builder
	var ends []int
	for _, l := range lines {
		if wordy.MatchString(l.text) {
			x.lines++
		}
		all.WriteString(l.text + "\n")
		ends = append(ends, all.Len())
	}
	for i, h := range habits {
		for _, at := range h.pattern.FindAllStringIndex(all.String(), -1) {
			n, _ := slices.BinarySearch(ends, at[0]+1)
			x.places[i] = append(x.places[i], place{path, lines[n].number})
		}
	}
}

func (x *text) row() row {
	r := row{lines: x.lines}
	for i, places := range x.places {
		r.counts[i] = len(places)
	}
	return r
}

// readBaseline reads the rows of the baseline. Without a file the limits of the habits hold.
func readBaseline(fsys fs.FS) (map[string]row, error) {
	base := map[string]row{}
	content, err := fs.ReadFile(fsys, baselinePath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		var numbers [1 + len(habits)]int
		if len(fields) != 1+len(numbers) {
			return nil, fmt.Errorf("%s: a row has %d numbers: %q", baselinePath, len(numbers), line)
		}
		for i, field := range fields[1:] {
			if numbers[i], err = strconv.Atoi(field); err != nil {
				return nil, fmt.Errorf("%s: %w", baselinePath, err)
			}
		}
		base[fields[0]] = row{numbers[0], [len(habits)]int(numbers[1:])}
	}
	return base, nil
}

func formatBaseline(base map[string]row) []byte {
	var b bytes.Buffer
	b.WriteString(baselineHead)
	format := func(name string, cells ...any) {
		fmt.Fprintf(&b, "%-40s", name)
		for _, cell := range cells {
			fmt.Fprintf(&b, " %7v", cell)
		}
		b.WriteByte('\n')
	}
	head := []any{"lines"}
	for _, h := range habits {
		head = append(head, h.name)
	}
	format("# package or page", head...)
	for _, name := range slices.Sorted(maps.Keys(base)) {
		cells := []any{base[name].lines}
		for _, n := range base[name].counts {
			cells = append(cells, n)
		}
		format(name, cells...)
	}
	return b.Bytes()
}
