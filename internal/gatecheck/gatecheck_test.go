package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/txtar"
)

func archive(t *testing.T, name string) txtar.Archive {
	text, err := os.ReadFile(filepath.Join("testdata", name+".txtar"))
	require.NoError(t, err)
	return txtar.Parse(string(text))
}

// parsed returns the tree of an archive's files, and the problems that it has.
func parsed(t *testing.T, name string) (tr *tree, want []string) {
	a := archive(t, name)
	fsys, names := fstest.MapFS{}, []string{"removed.go"}
	for _, f := range a.Files {
		fsys[f.Name] = &fstest.MapFile{Data: []byte(f.Text)}
		if filepath.Ext(f.Name) != ".txt" {
			names = append(names, f.Name)
		}
	}
	tr, err := parse(fsys, names)
	require.NoError(t, err)
	return tr, strings.Split(strings.TrimSuffix(a.Get("want.txt"), "\n"), "\n")
}

func TestChecks(t *testing.T) {
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			tr, want := parsed(t, name)
			for _, f := range tr.files {
				if f.path == "big/big.go" {
					f.lines = smallPackage
				}
			}
			tr.fresh = func() map[place]bool { return map[place]bool{{"README.md", 9}: true, {"big/big.go", 5}: true} }
			problems, err := check(tr)
			require.NoError(t, err)
			slices.Sort(problems)
			got := strings.Split(strings.Join(problems, "\n"), "\n")
			for i, line := range got {
				if i < len(want) && strings.HasPrefix(line, want[i]) {
					got[i] = want[i] // the rest of the line is advice
				}
			}
			require.Equal(t, want, got)
		})
	}
}

// A group at its limit passes, and one more use fails.
func TestLimits(t *testing.T) {
	for name, c := range map[string]struct{ lines, whats, fails int }{
		"below the limit":      {200, 2, 0},
		"at the limit":         {200, 3, 0},
		"above the limit":      {200, 4, 1},
		"too small for a rate": {60, 1, 1},
		"without lines":        {0, 0, 0},
	} {
		prose := strings.Repeat("What is a line?\n", c.whats) + strings.Repeat("A line.\n", c.lines-c.whats)
		problems, err := english(&tree{pages: []page{{"README.md", prose}}, fresh: func() map[place]bool { return nil }})
		require.NoError(t, err)
		require.Len(t, problems, c.fails, name)
	}
}

// inRepository makes the current folder one in which git knows the files of an archive.
func inRepository(t *testing.T, a txtar.Archive) {
	t.Chdir(t.TempDir())
	for _, f := range a.Files {
		require.NoError(t, os.MkdirAll(filepath.Dir(f.Name), 0o777))
		require.NoError(t, os.WriteFile(f.Name, []byte(f.Text), 0o666))
	}
	for _, args := range []string{"init -q", "add .", "-c user.name=n -c user.email=e commit -q -m all"} {
		out, err := exec.Command("git", strings.Fields(args)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

// The lines of uncommitted changes are recent.
func TestNewLines(t *testing.T) {
	a := txtar.Archive{}
	a.Add("a/a.go", "// Package a has no habit.\n// What it has is this.\npackage a\n")
	a.Add("README.md", "What says it\nis this.\n")
	inRepository(t, a)
	require.EqualError(t, run([]string{"english"}, io.Discard), "3 problems")
	require.Empty(t, newLines())

	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o666)) }
	write("README.md", "It is this.\n")
	write("a/a.go", "// Package a has no habit.\n// What it has is this.\n// What else?\npackage a\n\n// What at last.\n")
	write("c.go", "// Package c is new, and git does not know it.\npackage c\n")
	require.EqualError(t, run([]string{"english"}, io.Discard), "1 problems")
	require.Equal(t, map[place]bool{{"README.md", 1}: true, {"a/a.go", 3}: true, {"a/a.go", 5}: true, {"a/a.go", 6}: true}, newLines())
}

func TestUsage(t *testing.T) {
	for _, args := range []string{"", "none", "-update", "english walltime -update", "tests", "tests -record r -- go vet", "tests -- go test", "report", "platforms"} {
		require.ErrorIs(t, run(strings.Fields(args), io.Discard), errUsage, args)
	}
}

func TestSkips(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	inRepository(t, archive(t, "skips"))
	t.Setenv("GOWORK", "off")
	gotest := func(args string) (string, error) {
		var out strings.Builder
		err := run(append([]string{"tests", "-record", "record", "--", "go", "test"}, strings.Fields(args)...), &out)
		return out.String(), err
	}

	out, err := gotest("-bench . ./pass")
	require.NoError(t, err)
	require.Regexp(t, `^ok  \texample/pass\t[0-9.]+s\n$`, out)
	_, err = gotest("-short ./pass")
	require.NoError(t, err)
	var lines strings.Builder
	require.NoError(t, run([]string{"report", "record"}, &lines))
	require.Equal(t, "not run: 2 tests need initdb: install PostgreSQL\nnot run: 1 test needs node: install it from nodejs.org\nnot run: 1 of the tests: no SIGKILL\n", lines.String())

	out, err = gotest("./silent")
	require.EqualError(t, err, "3 silent skips")
	require.Regexp(t, `^ok  \texample/silent\t.*
silent skip: example/silent.TestMute was skipped: "" matches .*
silent skip: example/silent.TestUnknown was skipped: "not today" matches .*
silent skip: example/silent.TestShort was skipped: "it compares times" matches .*
$`, out)
	out, err = gotest("-short ./silent")
	require.EqualError(t, err, "2 silent skips")
	require.NotContains(t, out, "TestShort")

	out, err = gotest("./fail ./broken")
	require.Error(t, err)
	for _, part := range []string{"the reason\n", "--- FAIL: TestFail", "logged before the end of the process", "FAIL\texample/fail\t", "broken_test.go:3", "FAIL\texample/broken [build failed]\n"} {
		require.Contains(t, out, part)
	}
	require.NotContains(t, out, "logged by a test that passes")
}

func TestPlatforms(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	inRepository(t, archive(t, "platforms"))
	require.NoError(t, run([]string{"platforms", "good"}, io.Discard))
	var out strings.Builder
	require.EqualError(t, run([]string{"platforms", "good", "bad"}, &out), "3 problems")
	require.Regexp(t, `^\S+/bad/bad_test\.go:5:25: undefined: helper \(windows/amd64\)
\S+/bad/lock_unix\.go:5:26: .*overflows.* \(linux/386\)
\S+/bad/lock_windows\.go:5:9: cannot use "" .*
$`, out.String())
	require.Error(t, run([]string{"platforms", "none"}, io.Discard))
}

func TestRowsOfSkips(t *testing.T) {
	rows, err := parseSkips(skipsText)
	require.NoError(t, err)
	require.NotEmpty(t, rows)
	for _, text := range []string{"never a", "case (", "case"} {
		_, err := parseSkips(text)
		require.Error(t, err, text)
	}
}
