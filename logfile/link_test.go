//go:build unix

package logfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/disk"
)

// The files beside a log are written through no link, and the log through none that somebody
// else has made.
func TestALogIsWrittenThroughNoLink(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("mine"), 0o644))
	for name, test := range map[string]struct {
		suffix string
		o      Options
	}{
		"head": {".head", Options{Chain: true}},
		"lock": {".lock", Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			require.NoError(t, os.Symlink(victim, path+test.suffix))
			_, err := Open(path, test.o)
			require.ErrorIs(t, err, disk.ErrLink)
			text, err := os.ReadFile(victim)
			require.NoError(t, err)
			require.Equal(t, "mine", string(text))
		})
	}
	t.Run("compressed", func(t *testing.T) { // a link in the place of the file before it is renamed
		path := filepath.Join(t.TempDir(), "log")
		require.NoError(t, os.Symlink(victim, path+".000001.gz.tmp"))
		var told error
		l, err := Open(path, Options{MaxBytes: 1, Compress: true, OnError: func(err error) { told = err }})
		require.NoError(t, err)
		for i := range 3 {
			require.NoError(t, l.WriteEvent(t.Context(), event("r", i)))
		}
		require.NoError(t, l.Close())
		text, err := os.ReadFile(victim)
		require.NoError(t, err)
		require.Equal(t, "mine", string(text), told)
	})
	t.Run("own link", func(t *testing.T) { // as before: see Open
		dir := t.TempDir()
		require.NoError(t, os.Symlink(filepath.Join(dir, "log"), filepath.Join(dir, "link")))
		l, err := Open(filepath.Join(dir, "link"), Options{})
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.FileExists(t, filepath.Join(dir, "log"))
		if os.Geteuid() == 0 { // only root can make a link of somebody else
			require.NoError(t, os.Lchown(filepath.Join(dir, "link"), 12345, 12345))
			_, err = Open(filepath.Join(dir, "link"), Options{})
			require.ErrorIs(t, err, disk.ErrLink)
		}
	})
}
