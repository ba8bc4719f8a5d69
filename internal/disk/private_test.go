//go:build unix

package disk

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// victim returns a file of somebody, and a link to it with the given name.
func victim(t *testing.T, link string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o644))
	require.NoError(t, os.Symlink(file, link))
	return file
}

func requireText(t *testing.T, want, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(text))
}

// requirePrivate fails if others may read a file.
func requirePrivate(t *testing.T, path string) {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular(), "%s", info.Mode())
	require.Zero(t, info.Mode().Perm()&0o077, "%s", info.Mode())
}

func TestNothingIsWrittenThroughALink(t *testing.T) {
	t.Cleanup(func(mask int) func() { return func() { syscall.Umask(mask) } }(syscall.Umask(0)))
	for name, write := range map[string]func(path string) error{
		"open": func(path string) error {
			f, err := Open(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
			if err != nil {
				require.ErrorIs(t, err, ErrLink)
				return nil
			}
			_, err = f.WriteString("text")
			require.NoError(t, err)
			return f.Close()
		},
		"create": func(path string) error {
			f, err := Create(path)
			if err != nil {
				return err
			}
			_, err = f.WriteString("text")
			require.NoError(t, err)
			return f.Close()
		},
		"replace": func(path string) error { return Replace(path, []byte("text")) },
		"fs": func(path string) error {
			f, err := OS{}.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
			if err != nil {
				require.ErrorIs(t, err, ErrLink)
				return nil
			}
			_, err = f.WriteAt([]byte("text"), 0)
			require.NoError(t, err)
			return f.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fresh, link := filepath.Join(dir, "fresh"), filepath.Join(dir, "link")
			require.NoError(t, write(fresh))
			requireText(t, "text", fresh)
			requirePrivate(t, fresh)
			require.NoError(t, write(fresh), "it is there")

			file := victim(t, link)
			require.NoError(t, write(link))
			requireText(t, "mine", file)
			if name == "create" || name == "replace" {
				requireText(t, "text", link)
				requirePrivate(t, link)
				open := filepath.Join(dir, "open")
				require.NoError(t, os.WriteFile(open, nil, 0o666))
				hard := filepath.Join(dir, "hard")
				require.NoError(t, os.Link(open, hard))
				require.NoError(t, write(open))
				requirePrivate(t, open)
				requireText(t, "", hard)
			}

			dangling, target := filepath.Join(dir, "dangling"), filepath.Join(dir, "target")
			require.NoError(t, os.Symlink(target, dangling))
			require.NoError(t, write(dangling))
			require.NoFileExists(t, target)
		})
	}
}

// Devices and pipes are opened as they are.
func TestDevicesAndPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	read := make(chan string, 1)
	in, err := os.OpenFile(pipe, os.O_RDWR, 0)
	require.NoError(t, err)
	defer in.Close()
	go func() {
		text := make([]byte, 4)
		_, _ = io.ReadFull(in, text)
		read <- string(text)
	}()
	for _, path := range []string{os.DevNull, pipe, "/dev/stdout"} {
		if path == "/dev/stdout" {
			if _, err := os.Stat(path); err != nil { //silent: a system without it
				continue
			}
		}
		f, err := Create(path)
		require.NoError(t, err, path)
		if path == pipe {
			_, err = f.WriteString("text")
			require.NoError(t, err)
			select {
			case text := <-read:
				require.Equal(t, "text", text)
			case <-time.After(time.Minute):
				t.Error("nothing came through the pipe")
			}
		}
		require.NoError(t, f.Close())
	}
	require.NoError(t, Replace(os.DevNull, []byte("x")))
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeCharDevice)
	_, err = Create(t.TempDir())
	require.Error(t, err, "a folder")
}

// A link that somebody else has made is not followed, one's own is.
func TestLinksOfOthers(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	file := victim(t, link)
	to, err := Follow(link)
	require.NoError(t, err)
	require.Equal(t, file, to)
	f, err := OpenOurs(link, os.O_WRONLY|os.O_APPEND)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	if os.Geteuid() != 0 {
		t.Skip("only root can make a link of somebody else")
	}
	require.NoError(t, os.Lchown(link, 12345, 12345))
	_, err = Follow(link)
	require.ErrorIs(t, err, ErrLink)
	_, err = OpenOurs(link, os.O_WRONLY|os.O_APPEND)
	require.ErrorIs(t, err, ErrLink)
	require.Equal(t, file, Resolve(link), "it may be read")
}

// An error names the file that was asked for, and not the temporary one beside it.
func TestReplaceNamesFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nowhere", "page.html")
	err := Replace(path, []byte("text"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, path)
	require.NotContains(t, err.Error(), temporary)
}
