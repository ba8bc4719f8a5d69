package disk

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := NewLock(path)
	require.NoError(t, err)
	if runtime.GOOS == "aix" || runtime.GOOS == "solaris" || runtime.GOOS == "illumos" || runtime.GOOS == "plan9" || runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		t.Skip("no lock on " + runtime.GOOS)
	}
	_, err = NewLock(path)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, first.Close())
	second, err := NewLock(path)
	require.NoError(t, err)
	require.NoError(t, second.Close())
	_, err = NewLock(filepath.Join(t.TempDir(), "none", "lock"))
	require.Error(t, err)
}
