package lines

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A faultyDisk takes so many bytes.
type faultyDisk struct {
	bytes.Buffer
	room   int
	writes int
}

var errFull = errors.New("full")

func (d *faultyDisk) Write(p []byte) (int, error) {
	d.writes++
	n, _ := d.Buffer.Write(p[:min(len(p), d.room)])
	d.room -= n
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestWriterHoldsBackTheRest(t *testing.T) {
	d := &faultyDisk{room: 5}
	w := NewWriter(d, 0)
	require.NoError(t, w.Write([]byte("one")))
	require.ErrorIs(t, w.Write([]byte("two")), errFull)
	require.ErrorIs(t, w.Write([]byte("three")), errFull)
	require.Equal(t, len("wo\nthree\n"), w.Pending())
	d.room = 1 << 30
	require.NoError(t, w.Write([]byte("four")))
	require.Equal(t, "one\ntwo\nthree\nfour\n", d.String())
	require.Zero(t, w.Pending())
	require.NoError(t, w.Flush())

	d.room = 0
	huge := make([]byte, MaxPending/2)
	require.ErrorIs(t, w.Write(huge), errFull)
	require.ErrorIs(t, w.Write(huge[1:]), errFull)
	require.ErrorContains(t, w.Write(huge), "the line is lost")
	require.LessOrEqual(t, w.Pending(), MaxPending+1)
	require.Greater(t, w.Discard(), MaxPending/2)
	require.Zero(t, w.Pending())
}

func TestWriterWithABuffer(t *testing.T) {
	d := &faultyDisk{room: 1 << 30}
	w := NewWriter(d, 10)
	require.True(t, w.Put([]byte("one")))
	require.True(t, w.Put([]byte("two")))
	require.False(t, w.Put([]byte("x")), "the buffer would be full")
	require.Zero(t, d.writes)
	require.NoError(t, w.Write([]byte("three")))
	require.Equal(t, "one\ntwo\nthree\n", d.String())
	require.Equal(t, 1, d.writes)
	require.False(t, NewWriter(d, 0).Put(nil), "there is no buffer")
}

// liar returns a count that cannot be.
type liar int

func (l liar) Write(p []byte) (int, error) { return int(l), nil }

func TestWriterDoesNotTrustCounts(t *testing.T) {
	for _, count := range []liar{-1, 100} {
		w := NewWriter(count, 0)
		require.ErrorContains(t, w.Write([]byte("a")), "invalid count")
		require.Equal(t, 2, w.Pending())
	}
	require.ErrorIs(t, NewWriter(liar(1), 0).Write([]byte("a")), io.ErrShortWrite)
}

func TestOpenFileEndsATornLine(t *testing.T) {
	for before, want := range map[string]string{"": "b\n", "a\n": "a\nb\n", "a": "a\nb\n"} {
		path := filepath.Join(t.TempDir(), "log")
		require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
		f, torn, err := OpenFile(path)
		require.NoError(t, err)
		w := NewWriter(f, 0)
		if torn {
			w.EndLine()
		}
		require.NoError(t, w.Write([]byte("b")))
		require.NoError(t, f.Close())
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	_, _, err := OpenFile(t.TempDir())
	require.Error(t, err)
}
