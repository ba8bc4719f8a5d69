package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/build"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// A tree is a checkout with a module in its root folder and others below it.
type tree struct {
	root    string
	modules []*mod // the root's one is the first
}

// A mod is a module of a tree.
type mod struct {
	path     string
	dir      string // below the root, with slashes; "." for the root
	text     []byte // of its go.mod
	file     *modfile.File
	files    []string         // that git tracks, below dir, with slashes
	others   []string         // Go files that git does not track
	packages []*build.Package // without tests
	kept     bool             // its go.mod has the comment notReleased
}

// notReleased begins the comment that keeps a module back.
const notReleased = "// Not released: "

// load reads the modules of the tree in a folder. A file that git does not track is absent,
// as it would be from a tag.
func load(root string) (*tree, error) {
	names, err := gitFiles(root, "--cached")
	if err != nil {
		return nil, err
	}
	others, err := gitFiles(root, "--others", "--", "*.go")
	if err != nil {
		return nil, err
	}
	t := &tree{root: root}
	for _, name := range names {
		if path.Base(name) != "go.mod" {
			continue
		}
		m, err := parse(root, name)
		if err != nil {
			return nil, err
		}
		t.modules = append(t.modules, m)
	}
	slices.SortFunc(t.modules, func(a, b *mod) int { return cmp.Compare(a.dir, b.dir) })
	if len(t.modules) == 0 || t.modules[0].dir != "." {
		return nil, errors.New("the root folder has no go.mod that git tracks; run this in the root of the repository")
	}
	folder := func(m *mod) string { return m.dir }
	for _, name := range names {
		m := deepest(t.modules, name, folder)
		m.files = append(m.files, rel(m.dir, name))
	}
	for _, name := range others {
		m := deepest(t.modules, name, folder)
		m.others = append(m.others, rel(m.dir, name))
	}
	for _, m := range t.modules {
		if err := m.list(root); err != nil {
			return nil, fmt.Errorf("module %s: %w", m.path, err)
		}
	}
	return t, nil
}

// gitFiles returns the names that git ls-files prints, without those that are not on disk.
func gitFiles(root string, args ...string) ([]string, error) {
	out, err := command(context.Background(), root, nil, "git", append([]string{"ls-files", "-z"}, args...)...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Split(out, "\x00"), func(name string) bool {
		_, err := os.Lstat(filepath.Join(root, name))
		return name == "" || errors.Is(err, fs.ErrNotExist) // removed, and not yet from git's index
	}), nil
}

func parse(root, name string) (*mod, error) {
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	if file.Module == nil || file.Go == nil {
		return nil, fmt.Errorf("%s: it needs a module line and a go line", name)
	}
	m := &mod{path: file.Module.Mod.Path, dir: path.Dir(name), text: text, file: file}
	m.kept = slices.ContainsFunc(file.Module.Syntax.Before, func(c modfile.Comment) bool {
		return strings.HasPrefix(c.Token, notReleased)
	})
	return m, nil
}

// list finds the packages of a module among its tracked files.
func (m *mod) list(root string) error {
	dirs := map[string][]fs.FileInfo{}
	for _, name := range m.files {
		if !source(name) {
			continue
		}
		info, err := os.Lstat(filepath.Join(root, m.dir, name))
		if err != nil {
			return err
		}
		dirs[path.Dir(name)] = append(dirs[path.Dir(name)], info)
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		c := build.Default
		c.ReadDir = func(string) ([]fs.FileInfo, error) { return dirs[dir], nil }
		p, err := c.ImportDir(filepath.Join(root, m.dir, dir), 0)
		if _, none := errors.AsType[*build.NoGoError](err); none {
			continue // files for other systems only
		}
		if err != nil {
			return err
		}
		p.ImportPath = path.Join(m.path, dir)
		m.packages = append(m.packages, p)
	}
	return nil
}

// source reports whether a file is a part of a package, other than a test.
func source(name string) bool {
	return path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") &&
		!slices.ContainsFunc(strings.Split(path.Dir(name), "/"), ignored)
}

// ignored reports whether Go ignores a folder.
func ignored(folder string) bool {
	return folder == "testdata" || folder != "." && strings.ContainsAny(folder[:1], "._")
}

// importable returns the import paths of the packages that a program can import.
func (m *mod) importable() (paths []string) {
	for _, p := range m.packages {
		if p.Name != "main" && !slices.Contains(strings.Split(p.ImportPath, "/"), "internal") {
			paths = append(paths, p.ImportPath)
		}
	}
	return paths
}

// commands returns the import paths of the programs that users install.
func (m *mod) commands() (paths []string) {
	for _, p := range m.packages {
		if p.Name == "main" && path.Dir(p.ImportPath) == m.path+"/cmd" {
			paths = append(paths, p.ImportPath)
		}
	}
	return paths
}

func (m *mod) released() bool { return !m.kept && len(m.importable()) > 0 }

func (t *tree) released() (list []*mod) {
	for _, m := range t.modules {
		if m.released() {
			list = append(list, m)
		}
	}
	return list
}

// ours returns the requirements of a module that name modules of the tree.
func (t *tree) ours(m *mod) []*modfile.Require {
	return slices.DeleteFunc(slices.Clone(m.file.Require),
		func(r *modfile.Require) bool { return t.module(r.Mod.Path) == nil })
}

func (t *tree) module(path string) *mod {
	i := slices.IndexFunc(t.modules, func(m *mod) bool { return m.path == path })
	if i < 0 {
		return nil
	}
	return t.modules[i]
}

// version returns the highest version of a requirement between modules of the tree.
func (t *tree) version() (version string) {
	for _, m := range t.modules {
		for _, r := range t.ours(m) {
			if version == "" || semver.Compare(r.Mod.Version, version) > 0 {
				version = r.Mod.Version
			}
		}
	}
	return version
}

// set has the requirements between modules name a version, in every module of the tree: one
// that is not released would otherwise require less than the others.
func (t *tree) set(version string, out io.Writer) error {
	if err := canonical(version); err != nil {
		return err
	}
	for _, m := range t.modules {
		for _, r := range t.ours(m) {
			if err := m.file.AddRequire(r.Mod.Path, version); err != nil {
				return fmt.Errorf("module %s: %w", m.path, err)
			}
		}
		text, err := m.file.Format()
		if err != nil {
			return fmt.Errorf("module %s: %w", m.path, err)
		}
		if bytes.Equal(text, m.text) {
			continue
		}
		name := path.Join(m.dir, "go.mod")
		if err := os.WriteFile(filepath.Join(t.root, name), text, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s requires %s\n", name, version)
	}
	return nil
}

// canonical refuses a version that cannot stand in a go.mod file: Go would ask the network for it.
func canonical(version string) error {
	if module.CanonicalVersion(version) != version || version == "" {
		return fmt.Errorf("%q is not a whole version, such as v1.2.3", version)
	}
	return nil
}

// tags prints the tag of each released module.
func (t *tree) tags(version string, out io.Writer) error {
	if err := t.check(version); err != nil {
		return err
	}
	for _, m := range t.released() {
		fmt.Fprintln(out, path.Join(m.dir, version))
	}
	return nil
}

// check returns the faults of the go.mod files, for which a program could not get the modules
// as this version. A build outside of the tree may not meet all of them.
func (t *tree) check(version string) error {
	if err := canonical(version); err != nil {
		return err
	}
	var errs []error
	if !slices.Contains(t.modules[0].files, "LICENSE") {
		errs = append(errs, fmt.Errorf("module %s: git tracks no file LICENSE", t.modules[0].path))
	}
	changes, err := os.ReadFile(filepath.Join(t.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(strings.Split(string(changes), "\n"), func(line string) bool {
		return line == "## "+version || strings.HasPrefix(line, "## "+version+" ")
	}) {
		errs = append(errs, fmt.Errorf("module %s: CHANGELOG.md has no section %s", t.modules[0].path, version))
	}
	for _, m := range t.modules {
		faults := t.everywhere(m, version)
		if m.released() {
			faults = append(faults, t.release(m, version)...)
		}
		for _, fault := range faults {
			errs = append(errs, fmt.Errorf("module %s: %w", m.path, fault))
		}
	}
	return errors.Join(errs...)
}

// everywhere returns the faults of any module, released or not: a package that git does not
// track may be the one for which a module is released.
func (t *tree) everywhere(m *mod, version string) (faults []error) {
	for _, name := range m.others {
		if source(name) {
			faults = append(faults, fmt.Errorf("git does not track %s", name))
		}
	}
	for _, r := range t.ours(m) {
		if r.Mod.Version != version {
			faults = append(faults,
				fmt.Errorf("requires %s at %s, not at %s: go run ./tools/release set %[3]s", r.Mod.Path, r.Mod.Version, version))
		}
	}
	return faults
}

// release returns the faults of a module that is released.
func (t *tree) release(m *mod, version string) (faults []error) {
	add := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if err := module.Check(m.path, version); err != nil {
		faults = append(faults, err)
	}
	if want := path.Join(t.modules[0].path, m.dir); m.path != want {
		add("its folder is %s, so its path must be %s", m.dir, want)
	}
	for _, r := range t.ours(m) {
		if !t.module(r.Mod.Path).released() {
			add("requires %s, which is not released", r.Mod.Path)
		}
	}
	for _, r := range m.file.Replace {
		if t.module(r.Old.Path) == nil {
			add("replaces %s, and a program that gets the module would not", r.Old.Path)
		}
	}
	for _, p := range m.packages {
		for _, imp := range p.Imports {
			owner := deepest(t.modules, imp, func(m *mod) string { return m.path })
			if owner != nil && owner != m &&
				!slices.ContainsFunc(m.file.Require, func(r *modfile.Require) bool { return r.Mod.Path == owner.path }) {
				add("package %s imports %s, and go.mod does not require %s", p.ImportPath, imp, owner.path)
			}
		}
	}
	return faults
}

// deepest returns the module with the longest folder or path that holds a name, or nil.
func deepest(modules []*mod, name string, of func(*mod) string) (found *mod) {
	for _, m := range modules {
		dir := of(m)
		if (dir == "." || name == dir || strings.HasPrefix(name, dir+"/")) &&
			(found == nil || len(dir) > len(of(found)) || of(found) == ".") {
			found = m
		}
	}
	return found
}

// rel returns a name below a folder of slashes.
func rel(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}
