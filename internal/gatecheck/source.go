package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A tree is the source of the repository: Go files that people write, outside of
// testdata, and Markdown pages.
type tree struct {
	fset  *token.FileSet
	files []*file
	pages []page
	fresh func() map[place]bool // the lines of recent commits
}

type file struct {
	path    string
	test    bool // its name ends in _test.go
	lines   int
	ast     *ast.File
	excuses map[int]*excuse // by line
}

type page struct{ path, text string }

// An excuse is a comment that permits one place.
type excuse struct {
	check, reason string
	used          bool
}

// load reads the files that git lists in the current folder. A file that git does not
// know yet counts; a file that is ignored does not.
func load(fsys fs.FS) (*tree, error) {
	out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.go",
		"*.md").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	t, err := parse(fsys, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"))
	if err != nil {
		return nil, err
	}
	t.fresh = sync.OnceValue(newLines)
	return t, nil
}

func parse(fsys fs.FS, names []string) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	for _, name := range names {
		if slices.Contains(strings.Split(name, "/"), "testdata") {
			continue
		}
		text, err := fs.ReadFile(fsys, name)
		if errors.Is(err, fs.ErrNotExist) { // removed, and not yet from git's index
			continue
		}
		if err != nil {
			return nil, err
		}
		if path.Ext(name) == ".md" {
			t.pages = append(t.pages, page{name, string(text)})
			continue
		}
		parsed, err := parser.ParseFile(t.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if !ast.IsGenerated(parsed) {
			t.files = append(t.files, &file{name, strings.HasSuffix(name, "_test.go"), strings.Count(string(text), "\n"),
				parsed, t.excuses(parsed)})
		}
	}
	return t, nil
}

var excuseForm = regexp.MustCompile(`^//\s?(wallclock|silent):(.*)$`)

// excuses returns the excuses in a file by their line.
func (t *tree) excuses(f *ast.File) map[int]*excuse {
	found := map[int]*excuse{}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if m := excuseForm.FindStringSubmatch(c.Text); m != nil {
				found[t.fset.Position(c.Pos()).Line] = &excuse{check: m[1], reason: strings.TrimSpace(m[2])}
			}
		}
	}
	return found
}

// A finding is a place that breaks a rule.
type finding struct {
	file *file
	pos  token.Pos
	text string
}

// unexcused returns the findings that no comment permits, and the comments of that check
// that permit nothing or give no reason.
func (t *tree) unexcused(check string, findings []finding) []string {
	var problems []string
	for _, f := range findings {
		at := t.fset.Position(f.pos)
		e := f.file.excuses[at.Line]
		if e == nil || e.check != check {
			e = f.file.excuses[at.Line-1]
		}
		if e != nil && e.check == check {
			e.used = true
			continue
		}
		problems = append(problems, fmt.Sprintf("%s:%d: %s", at.Filename, at.Line, f.text))
	}
	for _, f := range t.files {
		for line, e := range f.excuses {
			if e.check == check && !e.used {
				problems = append(problems, fmt.Sprintf("%s:%d: //%s: permits nothing here: remove it", f.path, line, check))
			} else if e.check == check && e.reason == "" {
				problems = append(problems, fmt.Sprintf("%s:%d: //%s: has no reason", f.path, line, check))
			}
		}
	}
	return problems
}

// helps reports whether a file has tests, or helps them. A file of examples does not.
func (f *file) helps() bool {
	return slices.ContainsFunc(f.ast.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"testing"` })
}

// name returns the name of an identifier, selector or called function, as "x", "time.Now"
// or ".Sub" if there is more than a name before the dot.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.CallExpr:
		return name(e.Fun)
	case *ast.SelectorExpr:
		x, _ := e.X.(*ast.Ident)
		if x == nil {
			return "." + e.Sel.Name
		}
		return x.Name + "." + e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}
