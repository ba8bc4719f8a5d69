package index

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// old is a time at which a file rests.
var old = time.Now().Add(-time.Hour).Truncate(time.Second)

// write writes a file that rests since a time.
func write(t *testing.T, path string, text []byte, at time.Time) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, text, 0o600))
	require.NoError(t, os.Chtimes(path, at, at))
}

// large returns a text that is longer than the hashed part of a file.
func large() []byte { return bytes.Repeat([]byte("0123456789abcde\n"), 3*edge/16) }

func TestAnswers(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	folder := filepath.Join(dir, "cache", "index")
	write(t, file, large(), old)
	write(t, other, []byte("b\n"), old)
	x := New(folder, "1")

	require.Nil(t, x.Ask([]string{file}, "ls").Answer())
	require.NoDirExists(t, folder, "a question makes none")
	require.NoError(t, x.Ask([]string{file}, "ls").Keep([]byte("a secret")))
	require.Equal(t, "a secret", string(x.Ask([]string{file}, "ls").Answer()))

	for name, q := range map[string]*Question{
		"another question": x.Ask([]string{file}, "ls", "x"),
		"another list":     x.Ask([]string{file}, "l", "s"),
		"more files":       x.Ask([]string{file, other}, "ls"),
		"another version":  New(folder, "2").Ask([]string{file}, "ls"),
		"no index":         New("", "1").Ask([]string{file}, "ls"),
		"no file":          x.Ask([]string{filepath.Join(dir, "c")}, "ls"),
		"a folder":         x.Ask([]string{dir}, "ls"),
	} {
		require.Nil(t, q.Answer(), name)
	}

	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	info, err := entries[0].Info()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(folder, info.Name()))
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")
	if runtime.GOOS != "windows" {
		require.Equal(t, os.FileMode(0o600), info.Mode())
		info, err = os.Stat(folder)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}
}

// TestChangedFiles has every way in which a file may change. Only one that restores size, time and
// file, and leaves both ends as they were, is not noticed.
func TestChangedFiles(t *testing.T) {
	middle := large()
	middle[len(middle)/2] = 'x'
	first, last := large(), large()
	first[0], last[len(last)-1] = 'x', 'x'
	for _, c := range []struct {
		name   string
		known  bool
		change func(t *testing.T, path string)
	}{
		{"nothing", true, func(*testing.T, string) {}},
		{"truncated", false, func(t *testing.T, path string) { write(t, path, large()[:2*edge], old) }},
		{"extended", false, func(t *testing.T, path string) { write(t, path, append(large(), 'x'), old) }},
		{"another time", false, func(t *testing.T, path string) { write(t, path, large(), old.Add(time.Second)) }},
		{"first byte", false, func(t *testing.T, path string) { write(t, path, first, old) }},
		{"last byte", false, func(t *testing.T, path string) { write(t, path, last, old) }},
		{"removed", false, func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }},
		{"replaced", runtime.GOOS == "windows", func(t *testing.T, path string) {
			write(t, path+".new", middle, old)
			require.NoError(t, os.Rename(path+".new", path))
		}},
		{"a byte in the middle, size and time restored", true, func(t *testing.T, path string) { write(t, path, middle, old) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "a")
			write(t, file, large(), old)
			x := New(filepath.Join(dir, "index"), "1")
			require.NoError(t, x.Ask([]string{file}).Keep([]byte("yes")))
			c.change(t, file)
			require.Equal(t, c.known, x.Ask([]string{file}).Answer() != nil)
		})
	}
}

// TestMovingFiles are those that change while they are read, or did so a moment before.
func TestMovingFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	x := New(filepath.Join(dir, "index"), "1")
	write(t, file, []byte("a"), time.Now())
	require.Nil(t, x.Ask([]string{file}))
	write(t, file, []byte("a"), old)
	q := x.Ask([]string{file})
	write(t, file, []byte("b"), old)
	require.NoError(t, q.Keep([]byte("of a")))
	write(t, file, []byte("a"), old)
	require.Nil(t, x.Ask([]string{file}).Answer(), "it is not known which of both was read")
}

// TestDamagedIndex has files in the folder that are no answers, and a folder that is none.
func TestDamagedIndex(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	write(t, file, []byte("a"), old)
	x := New(filepath.Join(dir, "index"), "1")
	q := x.Ask([]string{file})
	for _, text := range []string{"", "x", string(large())} {
		require.NoError(t, q.Keep([]byte("yes")))
		require.NoError(t, os.WriteFile(q.path, []byte(text), 0o600))
		require.Nil(t, q.Answer())
	}
	require.NoError(t, q.Keep([]byte("yes")))
	require.Equal(t, "yes", string(q.Answer()))

	q = New(filepath.Join(file, "index"), "1").Ask([]string{file})
	require.Nil(t, q.Answer())
	require.Error(t, q.Keep([]byte("yes")))
}

// TestSeveralProcesses keeps and asks at once: an answer is whole or not there.
func TestSeveralProcesses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	write(t, file, []byte("a"), old)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			q := New(filepath.Join(dir, "index"), "1").Ask([]string{file})
			for range 20 {
				if err := q.Keep(large()); err != nil && runtime.GOOS != "windows" { // which replaces no open file
					t.Error(err)
				}
				if answer := q.Answer(); answer != nil && !bytes.Equal(large(), answer) {
					t.Error("a part of an answer")
				}
			}
		})
	}
	wg.Wait()
	entries, err := os.ReadDir(filepath.Join(dir, "index"))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// TestLimit keeps the latest answers of many.
func TestLimit(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	write(t, file, []byte("a"), old)
	x := New(filepath.Join(dir, "index"), "1")
	answer := bytes.Repeat([]byte("x"), MaxSize/4)
	ask := func(i int) *Question { return x.Ask([]string{file}, fmt.Sprint(i)) }
	for i := range 5 {
		require.NoError(t, ask(i).Keep(answer))
		at := old.Add(time.Duration(i) * time.Second)
		require.NoError(t, os.Chtimes(ask(i).path, at, at))
	}
	require.NoError(t, ask(5).Keep(append(answer, 'x')), "it is too large")
	require.Nil(t, ask(0).Answer())
	require.Nil(t, ask(5).Answer())
	require.NotNil(t, ask(4).Answer())
}

// TestManyAnswers keeps many answers, and looks through the folder once: the cost of an answer does not
// grow with their number. Another index looks again, and so does this one after many bytes.
func TestManyAnswers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	write(t, file, []byte("a"), old)
	x := New(filepath.Join(dir, "index"), "1")
	keep := func(x *Index, i int, answer []byte) {
		t.Helper()
		require.NoError(t, x.Ask([]string{file}, fmt.Sprint(i)).Keep(answer))
	}
	for i := range 100 {
		keep(x, i, []byte("yes"))
	}
	require.EqualValues(t, 1, x.looked.Load())
	for i := range 5 {
		keep(x, i, make([]byte, slack/4))
	}
	require.EqualValues(t, 2, x.looked.Load())
}
