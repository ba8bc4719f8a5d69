package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// ownPrograms holds main.go, which is a part of every program, and NAME.go for a module in the
// folder NAME, whose slashes are underscores there.
//
//go:embed _programs/*.go
var ownPrograms embed.FS

// runtimeLimit is how long a program may run that prove has built.
const runtimeLimit = time.Minute

// A proof gets the modules of a tree in a folder of its own.
type proof struct {
	*tree
	version  string
	temp     string
	env      []string // of go commands that see the packed modules
	programs fs.FS
	out      io.Writer
}

// prove packs the released modules as a version, and builds and runs programs that get them.
// Its error names every module that fails.
func (t *tree) prove(ctx context.Context, version string, programs fs.FS, out io.Writer) (err error) {
	if err := t.check(version); err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	p := &proof{tree: t, version: version, temp: temp, programs: programs, out: out}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *mod) error{p.packed, p.program, p.installed} {
		var errs []error
		for _, m := range t.released() {
			if err := step(ctx, m); err != nil {
				errs = append(errs, fmt.Errorf("module %s: %w", m.path, err))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the environment of the go commands. Nothing comes from the network: a lookup of
// a path such as github.com/agentevents would go there.
func (p *proof) prepare(ctx context.Context) error {
	out, err := command(ctx, p.root, nil, "go", "env", "GOMODCACHE", "GOCACHE", "GOTOOLCHAIN")
	if err != nil {
		return err
	}
	user := strings.Split(strings.TrimSpace(out), "\n")
	if len(user) != 3 {
		return fmt.Errorf("go env prints %q", out)
	}
	p.env = []string{
		"GOENV=off", "GOWORK=off", "GO111MODULE=on", "GOSUMDB=off", "GOPRIVATE=", "GONOPROXY=", "GOVCS=*:off",
		"GOPROXY=" + fileURL(p.join("proxy")) + "," + fileURL(filepath.Join(user[0], "cache", "download")) + ",off",
		"GOMODCACHE=" + p.join("modcache"), "GOBIN=" + p.join("bin"),
		"GOCACHE=" + user[1], "GOTOOLCHAIN=" + user[2],
		// Without -trimpath the paths in the new module cache would compile all dependencies again.
		"GOFLAGS=-mod=mod -modcacherw -trimpath",
	}
	return nil
}

// packed fills the user's module cache with the dependencies of a module, and packs the module.
func (p *proof) packed(ctx context.Context, m *mod) error {
	dir, env := filepath.Join(p.root, m.dir), []string{"GOWORK=off"}
	if _, err := command(ctx, dir, env, "go", "mod", "download"); err != nil {
		return err
	}
	if _, err := command(ctx, dir, env, "go", "mod", "graph"); err != nil { // reads go.mod files that a build skips
		return err
	}
	return p.pack(m, p.version, p.join("proxy"))
}

// program writes a program that imports a module's packages, gets the module, builds and runs
// the program, and looks at the versions in it.
func (p *proof) program(ctx context.Context, m *mod) error {
	name := strings.ReplaceAll(m.dir, "/", "_")
	if m.dir == "." {
		name = "root"
	}
	dir, binary := p.join("programs", name), p.join("programs", name, "program.exe")
	if err := p.write(m, dir, name); err != nil {
		return err
	}
	if _, err := command(ctx, dir, p.env, "go", "get", m.path+"@"+p.version); err != nil {
		return err
	}
	if _, err := command(ctx, dir, p.env, "go", "build", "-o", binary, "."); err != nil {
		return err
	}
	if err := p.versions(binary, m.path); err != nil {
		return err
	}
	out, err := p.start(ctx, dir, binary)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s %s: %d packages; the program prints %q\n",
		m.path, p.version, len(m.importable()), strings.TrimSpace(out))
	return nil
}

// write writes the source of a program.
func (p *proof) write(m *mod, dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	imports := "package main\n\nimport (\n"
	for _, imp := range m.importable() {
		imports += fmt.Sprintf("\t_ %q\n", imp)
	}
	files := map[string][]byte{
		"go.mod":     []byte("module example.com/program\n\ngo " + m.file.Go.Version + "\n"),
		"imports.go": []byte(imports + ")\n"),
	}
	for _, source := range []string{"main.go", name + ".go"} {
		text, err := fs.ReadFile(p.programs, "_programs/"+source)
		if errors.Is(err, fs.ErrNotExist) && source != "main.go" {
			continue
		}
		if err != nil {
			return err
		}
		files[source] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// versions checks that a program has the packed modules and no others of the tree.
func (p *proof) versions(binary, want string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	found := info.Main.Path == want
	for _, dep := range info.Deps {
		if p.module(dep.Path) == nil {
			continue
		}
		found = found || dep.Path == want
		if dep.Version != p.version || dep.Replace != nil {
			return fmt.Errorf("the program has %s at %s, not at %s", dep.Path, dep.Version, p.version)
		}
	}
	if !found {
		return errors.New("the program has no package of it")
	}
	return nil
}

// installed installs the commands of a module and asks each for its help.
func (p *proof) installed(ctx context.Context, m *mod) error {
	for _, name := range m.commands() {
		bin := p.join("bin", path.Base(name))
		if runtime.GOOS == "windows" {
			bin += ".exe"
		}
		if err := p.install(ctx, m, name, bin); err != nil {
			return err
		}
		if err := p.versions(bin, m.path); err != nil {
			return err
		}
		if _, err := p.start(ctx, p.temp, bin, "--help"); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "%s %s: installed; --help ends well\n", name, p.version)
	}
	return nil
}

// install builds a command. Go installs none of a module that replaces others: such a command is a tool
// of the module of its user.
func (p *proof) install(ctx context.Context, m *mod, name, bin string) error {
	if len(m.file.Replace) == 0 {
		_, err := command(ctx, p.temp, p.env, "go", "install", name+"@"+p.version)
		return err
	}
	dir := p.join("programs", strings.ReplaceAll(m.dir, "/", "_"))
	if _, err := command(ctx, dir, p.env, "go", "get", "-tool", name+"@"+p.version); err != nil {
		return err
	}
	_, err := command(ctx, dir, p.env, "go", "build", "-o", bin, name)
	return err
}

func (p *proof) join(elem ...string) string {
	return filepath.Join(append([]string{p.temp}, elem...)...)
}

// start runs a program that prove has built.
func (p *proof) start(ctx context.Context, dir, binary string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, runtimeLimit)
	defer cancel()
	return command(ctx, dir, nil, binary, args...)
}

// command runs a program and returns its standard output. Its error has all output.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(cmd.Environ(), env)
	var out, all bytes.Buffer
	cmd.Stdout = io.MultiWriter(&out, &all)
	cmd.Stderr = &all
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s",
			filepath.Base(name), strings.Join(args, " "), err, bytes.TrimSpace(all.Bytes()))
	}
	return out.String(), nil
}

// fileURL returns the URL of a folder, as GOPROXY takes it.
func fileURL(dir string) string {
	dir = filepath.ToSlash(dir)
	if !strings.HasPrefix(dir, "/") {
		dir = "/" + dir // a drive of Windows
	}
	return (&url.URL{Scheme: "file", Path: dir}).String()
}
