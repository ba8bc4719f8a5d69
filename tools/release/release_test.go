package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// files are the tree of a library and its command, of a module below it that embeds a file, and
// of modules that are not released.
var files = map[string]string{
	"LICENSE":                  "free",
	"CHANGELOG.md":             "# Changelog\n\n## v0.1.0 (unreleased)\n\n## v2.0.0\n",
	"go.mod":                   "module example.com/lib\n\ngo 1.26\n",
	"lib.go":                   "package lib\n\nfunc Name() string { return \"lib\" }\n",
	"internal/part/part.go":    "package part\n",
	"cmd/tool/main.go":         "package main\n\nfunc main() {}\n",
	"sub/hook/go.mod":          "module example.com/lib/sub/hook\n\ngo 1.26\n\nrequire example.com/lib v0.0.0\n\nreplace example.com/lib => ../..\n",
	"sub/hook/hook.go":         "package hook\n\nimport (\n\t_ \"embed\"\n\n\t\"example.com/lib\"\n\t\"example.com/lib/sub/hook/deep\"\n)\n\n//go:embed text.txt\nvar text string\n\nfunc Name() string { return lib.Name() + text + deep.Name }\n",
	"sub/hook/text.txt":        " and hook",
	"sub/hook/deep/deep.go":    "package deep\n\nconst Name = \", deep\"\n",
	"example/go.mod":           "module example.com/lib/example\n\ngo 1.26\n\nrequire (\n\texample.com/lib v0.0.0 // the library\n\texample.com/lib/sub/hook v0.0.0\n)\n\nreplace (\n\texample.com/lib => ../\n\texample.com/lib/sub/hook => ../sub/hook\n)\n",
	"example/main.go":          "package main\n\nimport _ \"example.com/lib/sub/hook\"\n\nfunc main() {}\n",
	"bench/go.mod":             "// Not released: it measures.\nmodule example.com/lib/bench\n\ngo 1.26\n",
	"bench/bench.go":           "package bench\n",
	"laws/go.mod":              "module example.com/lib/laws\n\ngo 1.26\n",
	"laws/laws_test.go":        "package laws\n",
	"sub/internal/test/go.mod": "module example.com/lib/sub/internal/test\n\ngo 1.26\n",
	"sub/internal/test/t.go":   "package test\n",
}

var programs = fstest.MapFS{
	"_programs/main.go":     {Data: []byte("package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.com/lib\"\n)\n\nvar name = lib.Name\n\nfunc main() { fmt.Print(name()) }\n")},
	"_programs/sub_hook.go": {Data: []byte("package main\n\nimport \"example.com/lib/sub/hook\"\n\nfunc init() { name = hook.Name }\n")},
}

// checkout writes a tree with changes into a repository of its own. Git tracks no file of untracked.
func checkout(t *testing.T, changes map[string]string, untracked ...string) string {
	t.Helper()
	root := t.TempDir()
	all := maps.Clone(files)
	maps.Copy(all, changes)
	for name, text := range all {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	git(t, root, "init", "-q")
	git(t, root, "add", ".")
	for _, name := range untracked {
		git(t, root, "rm", "-q", "--cached", name)
	}
	return root
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// set sets the version of a tree and returns the tree as it is then.
func set(t *testing.T, root, version string) (*tree, string) {
	t.Helper()
	before, err := load(root)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, before.set(version, &out))
	after, err := load(root)
	require.NoError(t, err)
	return after, out.String()
}

func TestSet(t *testing.T) {
	root := checkout(t, nil)
	tr, out := set(t, root, "v0.1.0")
	require.Equal(t, "example/go.mod requires v0.1.0\nsub/hook/go.mod requires v0.1.0\n", out)
	require.Equal(t, "v0.1.0", tr.version())
	require.NoError(t, tr.check("v0.1.0"))
	require.Equal(t, strings.ReplaceAll(files["example/go.mod"], "v0.0.0", "v0.1.0"), string(tr.module("example.com/lib/example").text))

	again, out := set(t, root, "v0.1.0")
	require.Empty(t, out, "nothing is left to set")
	require.Equal(t, tr, again)

	for _, version := range []string{"", "0.1.0", "v0.1", "v0.1.0+x", "main"} {
		require.ErrorContains(t, tr.set(version, &bytes.Buffer{}), "is not a whole version")
	}
	require.ErrorContains(t, tr.check("v2.0.0"), "module example.com/lib: ", "version 2 has another path")
}

func TestReleased(t *testing.T) {
	tr, _ := set(t, checkout(t, nil), "v0.1.0")
	var out bytes.Buffer
	require.NoError(t, tr.tags("v0.1.0", &out))
	require.Equal(t, "v0.1.0\nsub/hook/v0.1.0\n", out.String())
	require.Equal(t, []string{"example.com/lib/sub/hook", "example.com/lib/sub/hook/deep"}, tr.module("example.com/lib/sub/hook").importable())
	require.Equal(t, []string{"example.com/lib/cmd/tool"}, tr.modules[0].commands())
}

// A module that others cannot get is refused with its name.
func TestRefused(t *testing.T) {
	hook := strings.ReplaceAll(files["sub/hook/go.mod"], "v0.0.0", "v0.1.0")
	for name, c := range map[string]struct {
		changes   map[string]string
		untracked []string
		want      string
	}{
		"another version": {map[string]string{"sub/hook/go.mod": strings.ReplaceAll(hook, "v0.1.0", "v0.0.9")}, nil,
			"module example.com/lib/sub/hook: requires example.com/lib at v0.0.9, not at v0.1.0: go run ./tools/release set v0.1.0"},
		"a forgotten requirement": {map[string]string{"sub/hook/go.mod": strings.Replace(hook, "require example.com/lib v0.1.0\n", "", 1)}, nil,
			"module example.com/lib/sub/hook: package example.com/lib/sub/hook imports example.com/lib, and go.mod does not require example.com/lib"},
		"a requirement that is not released": {map[string]string{"sub/hook/go.mod": hook + "require example.com/lib/bench v0.1.0\n"}, nil,
			"module example.com/lib/sub/hook: requires example.com/lib/bench, which is not released"},
		"a replaced module of others": {map[string]string{"sub/hook/go.mod": hook + "replace example.com/other => ../other\n"}, nil,
			"module example.com/lib/sub/hook: replaces example.com/other, and a program that gets the module would not"},
		"a path that is not its folder's": {map[string]string{"sub/hook/go.mod": strings.Replace(hook, "lib/sub/hook", "lib/hook", 1)}, nil,
			"module example.com/lib/hook: its folder is sub/hook, so its path must be example.com/lib/sub/hook"},
		"no section of the changelog": {map[string]string{"CHANGELOG.md": "# Changelog\n\n## v0.1.0-rc\n"}, nil,
			"module example.com/lib: CHANGELOG.md has no section v0.1.0"},
		"a package that git does not track": {nil, []string{"sub/hook/deep/deep.go"}, "module example.com/lib/sub/hook: git does not track deep/deep.go"},
		"a module without a tracked package": {nil, []string{"sub/hook/hook.go", "sub/hook/deep/deep.go"},
			"module example.com/lib/sub/hook: git does not track hook.go"},
		"no license": {nil, []string{"LICENSE"}, "module example.com/lib: git tracks no file LICENSE"},
	} {
		t.Run(name, func(t *testing.T) {
			root := checkout(t, map[string]string{
				"sub/hook/go.mod": hook, "example/go.mod": strings.ReplaceAll(files["example/go.mod"], "v0.0.0", "v0.1.0"),
			})
			tr, err := load(root)
			require.NoError(t, err)
			require.NoError(t, tr.check("v0.1.0"), "without the fault")

			for name, text := range c.changes {
				require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
			}
			for _, name := range c.untracked {
				git(t, root, "rm", "-q", "--cached", name)
			}
			tr, err = load(root)
			require.NoError(t, err)
			require.ErrorContains(t, tr.prove(t.Context(), "v0.1.0", programs, &bytes.Buffer{}), c.want)
		})
	}
}

// folders sets the folder of temporary files and the user's module cache to new ones.
func folders(t *testing.T) (temp, cache string) {
	t.Helper()
	temp, cache = t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp) // for Windows
	t.Setenv("GOMODCACHE", cache)
	return temp, cache
}

// This command is a program with a module of others.
func TestVersions(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "release.exe")
	_, err := command(t.Context(), ".", nil, "go", "build", "-buildvcs=false", "-o", binary, ".")
	require.NoError(t, err)
	const xmod = "golang.org/x/mod"
	p := &proof{tree: &tree{modules: []*mod{{path: xmod}}}, version: "v0.1.0"}
	err = p.versions(binary, xmod)
	require.ErrorContains(t, err, "the program has golang.org/x/mod at v0.")
	_, p.version, _ = strings.Cut(strings.TrimSuffix(err.Error(), ", not at v0.1.0"), " at ")
	require.NoError(t, p.versions(binary, xmod))
	require.EqualError(t, p.versions(binary, xmod+"/none"), "the program has no package of it")
}

func TestProve(t *testing.T) {
	tr, _ := set(t, checkout(t, nil), "v0.1.0")
	temp, cache := folders(t)
	t.Setenv("GOPRIVATE", "example.com") // a user's own settings must not send the go command to the network
	var out bytes.Buffer
	require.NoError(t, tr.prove(t.Context(), "v0.1.0", programs, &out))
	require.Equal(t, `example.com/lib v0.1.0: 1 packages; the program prints "lib"
example.com/lib/sub/hook v0.1.0: 2 packages; the program prints "lib and hook, deep"
example.com/lib/cmd/tool v0.1.0: installed; --help ends well
`, out.String())
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left, "the temporary folder is removed")
	left, err = os.ReadDir(filepath.Join(cache, "cache", "download"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	require.Empty(t, left, "the user's module cache has no invented version")
}

// A fault that only a build outside of the tree meets names the module, and leaves nothing.
func TestProveMeets(t *testing.T) {
	for name, c := range map[string]struct {
		changes   map[string]string
		untracked string
		want      []string
	}{
		"an embedded file that git does not track": {nil, "sub/hook/text.txt", []string{"module example.com/lib/sub/hook: ", "pattern text.txt: no matching files found"}},
		"a command that fails":                     {map[string]string{"cmd/tool/main.go": "package main\n\nfunc main() { panic(\"torn\") }\n"}, "", []string{"module example.com/lib: tool --help: ", "torn"}},
		"a file that cannot be packed":             {map[string]string{"sub/hook/a:b.txt": "x"}, "", []string{"module example.com/lib/sub/hook: it cannot be packed: ", "a:b.txt"}},
	} {
		t.Run(name, func(t *testing.T) {
			var untracked []string
			if c.untracked != "" {
				untracked = []string{c.untracked}
			}
			tr, _ := set(t, checkout(t, c.changes, untracked...), "v0.1.0")
			temp, _ := folders(t)
			err := tr.prove(t.Context(), "v0.1.0", programs, &bytes.Buffer{})
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			left, err := os.ReadDir(temp)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
