package logfile

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A path that cannot be a log is refused at once: a device, a pipe without a reader, a folder,
// and a file in a folder that is missing.
func TestOddPathsAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{"/dev/full", "/dev/null", pipe, dir, filepath.Join(dir, "missing", "log")} {
		l, err := Open(path, Options{Sync: SyncEvery})
		require.Error(t, err, path)
		require.Nil(t, l, path)
	}
}
