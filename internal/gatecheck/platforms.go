package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// systems are the systems that modules support and the gate does not run on. One of them has
// an int of 32 bits.
var systems = []struct{ os, arch string }{{"darwin", "amd64"}, {"windows", "amd64"}, {"linux", "386"}}

// platforms type-checks modules and their tests for other systems. It does so from source,
// which takes a small part of the CPU time of go vet: that first compiles all dependencies.
func platforms(modules []string, out io.Writer) error {
	if len(modules) == 0 {
		return errUsage
	}
	return printed(out, func() (problems []string, err error) {
		for _, system := range systems {
			p := &platform{os: system.os, arch: system.arch, fset: token.NewFileSet(),
				standard: map[string]*types.Package{"unsafe": types.Unsafe}, seen: map[string]bool{}}
			for _, module := range modules {
				if err := p.check(module); err != nil {
					return nil, fmt.Errorf("module %s on %s/%s: %w", module, system.os, system.arch, err)
				}
			}
			problems = append(problems, p.problems...)
		}
		return problems, nil
	})
}

type platform struct {
	os, arch string
	fset     *token.FileSet
	standard map[string]*types.Package // packages of the standard library, by the path that go list gives them
	packages map[string]*types.Package // the others of a module
	problems []string
	seen     map[string]bool // a package is listed again with its tests
}

// A listed is a package of go list. The tests of a package are packages of their own.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
}

// check adds the problems of a module's packages.
func (p *platform) check(module string) error {
	cmd := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	cmd.Dir, cmd.Stderr = module, os.Stderr
	cmd.Env = append(cmd.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	p.packages = map[string]*types.Package{}
	for list := json.NewDecoder(bytes.NewReader(out)); list.More(); { // packages follow their dependencies
		var l listed
		if err := list.Decode(&l); err != nil {
			return err
		}
		if p.standard[l.ImportPath] == nil && !strings.HasSuffix(l.ImportPath, ".test") {
			p.add(l)
		}
	}
	return nil
}

// add checks a package. It looks only at the declarations of a dependency, and notes no
// problem of it.
func (p *platform) add(l listed) {
	own := l.Module != nil && l.Module.Main
	note := func(err error) {
		if text := fmt.Sprintf("%v (%s/%s)", err, p.os, p.arch); own && !p.seen[text] {
			p.problems, p.seen[text] = append(p.problems, text), true
		}
	}
	var files []*ast.File
	for _, name := range l.GoFiles {
		f, err := parser.ParseFile(p.fset, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			note(err)
			continue
		}
		files = append(files, f)
	}
	path, _, _ := strings.Cut(l.ImportPath, " ")
	conf := types.Config{Importer: importer{p, l.ImportMap}, IgnoreFuncBodies: !own,
		Sizes: types.SizesFor("gc", p.arch), Error: note}
	checked, _ := conf.Check(path, p.fset, files, nil) // note has the errors
	if l.Module == nil {
		p.standard[l.ImportPath] = checked
	} else {
		p.packages[l.ImportPath] = checked
	}
}

// An importer finds the packages that one imports.
type importer struct {
	*platform
	renamed map[string]string
}

func (i importer) Import(path string) (*types.Package, error) {
	if name, ok := i.renamed[path]; ok {
		path = name
	}
	if found := cmp.Or(i.standard[path], i.packages[path]); found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("%s is not listed", path)
}
