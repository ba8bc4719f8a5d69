//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// linkTo makes a link of that name to a file of somebody, and returns the file.
func linkTo(t *testing.T, link string) string {
	t.Helper()
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("mine"), 0o644))
	require.NoError(t, os.Symlink(victim, link))
	return victim
}

func requirePrivate(t *testing.T, path string) {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular(), "%s: %s", path, info.Mode())
	require.Zero(t, info.Mode().Perm()&0o077, "%s: %s", path, info.Mode())
}

// What an export writes is for its owner only, also in the place of a file that others may
// read, and a link is replaced.
func TestExportWritesForItsOwner(t *testing.T) {
	t.Cleanup(func(mask int) func() { return func() { syscall.Umask(mask) } }(syscall.Umask(0)))
	dir := t.TempDir()
	log := filepath.Join(dir, "log.jsonl")
	require.NoError(t, os.WriteFile(log, []byte(read(t, "../../testdata/agent.jsonl")), 0o600))
	export := func(out string) {
		t.Helper()
		got := exec("", "export", "otlp", "--content", "--out", out, log)
		require.Zero(t, got.code, got.err)
	}
	out := filepath.Join(dir, "out")
	export(out)
	requirePrivate(t, out)
	require.Contains(t, read(t, out), "resourceSpans")
	require.NoError(t, os.Chmod(out, 0o644))
	export(out)
	requirePrivate(t, out)

	link := filepath.Join(dir, "link")
	victim := linkTo(t, link)
	export(link)
	require.Equal(t, "mine", read(t, victim))
	requirePrivate(t, link)

	export(os.DevNull)
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeCharDevice)
}

// A recording is written through no link: neither of its log, nor of the name that it has
// before it is whole.
func TestRecordWritesThroughNoLink(t *testing.T) {
	capture := filepath.Join(t.TempDir(), "capture")
	require.NoError(t, os.WriteFile(capture, []byte(printed), 0o600))
	for name, test := range map[string]struct {
		file  string
		flags []string
		code  int
	}{
		"append":         {"n.jsonl", []string{"--append"}, 2},
		"append fixture": {"n.json", nil, 0},
		"partial":        {"n.jsonl.partial", nil, 0},
		"log":            {"n.jsonl", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			victim := linkTo(t, filepath.Join(dir, test.file))
			got := exec("", append(append([]string{"record", "--output", dir, "--node", "n"}, test.flags...), "--", "sh", "-c", "cat "+capture, "agent", "-p", "Do it")...)
			require.Equal(t, test.code, got.code, got.err)
			require.Equal(t, "mine", read(t, victim))
			if test.code == 0 {
				requirePrivate(t, filepath.Join(dir, "n.jsonl"))
				requirePrivate(t, filepath.Join(dir, "n.json"))
			} else {
				require.Contains(t, got.err, "it is a symbolic link")
			}
		})
	}
}
