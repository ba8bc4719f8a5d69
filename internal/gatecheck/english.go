package main

import (
	"fmt"
	"go/ast"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A habit is a word or phrase that stands where a noun should. Its limit is how often 1,000
// lines of a group may have it.
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
	// smallPackage is the number of source lines below which packages are counted
	// together: they have too few comments for a rate.
	smallPackage = 500
	smallGroup   = "packages under 500 lines"
	testGroup    = "tests"
	pageGroup    = "pages"
	shown        = 10

	// recent is the number of commits whose lines are listed before older ones.
	recent = 50
)

type place struct {
	path string
	line int
}

// A text is the prose of a group: of one package, of the small packages, of all tests, or of all
// pages.
type text struct {
	lines  int // with a letter or digit
	places [len(habits)][]place
}

// english compares the counts of habits with their limits.
func english(t *tree) (problems []string, _ error) {
	for group, x := range t.texts() {
		for i, h := range habits {
			count, limit := len(x.places[i]), int(h.limit*float64(x.lines)/1000)
			if count > limit {
				problems = append(problems, fmt.Sprintf("%s: %q occurs %d times in %d lines, at most %d are allowed: %s%s",
					group, h.name, count, x.lines, limit, h.instead, list(x.places[i], t.fresh())))
			}
		}
	}
	return problems, nil
}

// list names places: the ones in recent lines, if there are any.
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

// newLines returns the lines that the recent commits have changed, and the ones that are not
// committed, as far as git knows them.
func newLines() map[place]bool {
	fresh := map[place]bool{}
	commits, err := exec.Command("git", "rev-list", "--max-count", strconv.Itoa(recent), "HEAD").Output()
	list := strings.Fields(string(commits))
	if err != nil || len(list) == 0 {
		return fresh
	}
	diff, err := exec.Command("git", "diff", "-U0", "--no-color", "--no-ext-diff", list[len(list)-1], "--", "*.go",
		"*.md").Output()
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

// texts returns the prose of the tree by group.
func (t *tree) texts() map[string]*text {
	size := map[string]int{}
	for _, f := range t.files {
		if !f.test {
			size[path.Dir(f.path)] += f.lines
		}
	}
	texts := map[string]*text{}
	add := func(group, path string, lines []line) {
		if texts[group] == nil {
			texts[group] = &text{}
		}
		texts[group].add(path, lines)
	}
	for _, f := range t.files {
		group := path.Dir(f.path)
		switch {
		case f.test:
			group = testGroup
		case size[group] < smallPackage:
			group = smallGroup
		}
		for _, c := range f.ast.Comments {
			add(group, f.path, t.commentLines(c))
		}
	}
	for _, p := range t.pages {
		if path.Base(p.path) != "CHANGELOG.md" {
			add(pageGroup, p.path, pageLines(p.text))
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
