package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestViewWritesAPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.html")
	got := exec("", "view", "--out", path, clean)
	require.Equal(t, exitOK, got.code, got.err)
	require.Contains(t, got.err, "wrote "+path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	page := read(t, path)
	require.True(t, strings.HasPrefix(page, "<!doctype html>"))
	require.Contains(t, page, "default-src 'none'")

	require.Equal(t, exitUsage, exec("", "view", "--diff", "--out", path, clean).code)
	require.Equal(t, exitUsage, exec("", "view", "--run", "no such run", "--out", path, clean).code)
	for _, flag := range []string{"--no-open", "--listen=localhost:0"} {
		got := exec("", "view", flag, "--out", path, clean)
		require.Equal(t, exitUsage, got.code)
		require.Contains(t, got.err, "--out writes a file and serves nothing: leave out --listen and --no-open")
	}
	require.Equal(t, page, read(t, path), "a page that cannot be made replaces none")
}

func TestViewServesThisMachineOnly(t *testing.T) {
	got := exec("not a log\n", "view", "--listen", "0.0.0.0:0", "-")
	require.Equal(t, exitUsage, got.code)
	require.True(t, strings.HasPrefix(got.err, "agentevents view: --listen wants an address of this machine"), got.err)
	h := pageHandler("127.0.0.1:4321", "/secret/", []byte("<!doctype html>"))
	for _, c := range []struct {
		method, host, origin, path string
		want                       int
	}{
		{"GET", "127.0.0.1:4321", "", "/secret/", http.StatusOK},
		{"HEAD", "localhost:4321", "http://localhost:4321", "/secret/", http.StatusOK},
		{"GET", "127.0.0.1:4321", "", "/", http.StatusNotFound},
		{"GET", "evil.example:4321", "", "/secret/", http.StatusForbidden},
		{"GET", "127.0.0.1:4321", "http://evil.example", "/secret/", http.StatusForbidden},
		{"POST", "127.0.0.1:4321", "", "/secret/", http.StatusMethodNotAllowed},
	} {
		r := httptest.NewRequest(c.method, "http://"+c.host+c.path, nil)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, c.want, w.Code, "%+v", c)
	}
}
