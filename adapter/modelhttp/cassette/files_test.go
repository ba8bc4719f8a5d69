//go:build unix

package cassette_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/adapter/modelhttp/cassette"
)

// A cassette has prompts and answers: it is for its owner only, and takes the place of a link.
func TestACassetteIsForItsOwner(t *testing.T) {
	t.Cleanup(func(mask int) func() { return func() { syscall.Umask(mask) } }(syscall.Umask(0)))
	dir := t.TempDir()
	victim, link, open := filepath.Join(dir, "victim"), filepath.Join(dir, "link"), filepath.Join(dir, "open")
	require.NoError(t, os.WriteFile(victim, []byte("mine"), 0o644))
	require.NoError(t, os.Symlink(victim, link))
	require.NoError(t, os.WriteFile(open, nil, 0o666))
	for _, file := range []string{filepath.Join(dir, "fresh"), link, open} {
		require.NoError(t, cassette.New(cassette.Options{}).Save(file))
		info, err := os.Lstat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), file)
	}
	text, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
}
