package logfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// files returns the names of the files in the log's folder, but for its lock.
func files(t *testing.T, path string) (names []string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == filepath.Base(path)+".lock" })
}

func TestRotationBySize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := opened(t, path, Options{MaxBytes: 2000})
	write(t, l, 0, 20)
	require.NoError(t, l.Close())
	require.Len(t, readAll(t, path), 20)
	names := files(t, path)
	require.Greater(t, len(names), 5)
	require.Contains(t, names, "log.000001")
	for _, name := range names {
		info, err := os.Stat(filepath.Join(filepath.Dir(path), name))
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(2000))
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	l = opened(t, path, Options{MaxBytes: 2000})
	write(t, l, 20, 40)
	require.NoError(t, l.Close())
	require.Len(t, readAll(t, path), 40)
}

func TestRotationByAge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	now := event("r", 0).Time
	o := Options{MaxAge: time.Hour, Clock: func() time.Time { return now }}
	l := opened(t, path, o)
	write(t, l, 0, 2)
	now = now.Add(59 * time.Minute)
	write(t, l, 2, 3)
	require.NoError(t, l.Close())
	require.Equal(t, []string{"log"}, files(t, path))
	now = now.Add(time.Minute) // an hour after its first event
	l = opened(t, path, o)
	write(t, l, 3, 5)
	require.NoError(t, l.Close())
	require.Equal(t, []string{"log", "log.000001"}, files(t, path))
	require.Len(t, readAll(t, path), 5)
}

func TestClosedSegmentsAreCompressedAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := opened(t, path, Options{MaxBytes: 2000, Compress: true})
	write(t, l, 0, 20)
	require.Eventually(t, func() bool { return !slices.Contains(files(t, path), "log.000006") }, time.Minute, time.Millisecond)
	require.NoError(t, l.Close())
	require.Len(t, readAll(t, path), 20)

	// The leftovers of a crash are finished or removed.
	require.NoError(t, os.WriteFile(path+".000003.gz.tmp", []byte("half"), 0o600))
	require.NoError(t, os.WriteFile(path+".000002", nil, 0o600)) // whose other form is on disk
	l = opened(t, path, Options{Compress: true})
	require.Eventually(t, func() bool {
		return !slices.Contains(files(t, path), "log.000003.gz.tmp") && !slices.Contains(files(t, path), "log.000002")
	}, time.Minute, time.Millisecond)
	require.NoError(t, l.Close())
	require.Len(t, readAll(t, path), 20)
}

func TestRetention(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := opened(t, path, Options{MaxBytes: 2000, Keep: 2})
	write(t, l, 0, 40)
	want := []string{"log", filepath.Base(closedPath(path, l.next-2)), filepath.Base(closedPath(path, l.next-1))}
	require.Eventually(t, func() bool { return slices.Equal(files(t, path), want) }, time.Minute, time.Millisecond)
	require.NoError(t, l.Close())

	l = opened(t, path, Options{KeepFor: time.Hour, Clock: func() time.Time { return time.Now().Add(2 * time.Hour) }})
	require.Eventually(t, func() bool { return slices.Equal(files(t, path), []string{"log", want[2]}) }, time.Minute, time.Millisecond,
		"the newest stays, so that numbers go on")
	require.NoError(t, l.Close())
}

// A clock that goes back an hour at each call loses no event, whatever the age of segments
// decides.
func TestTheClockGoesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	now := event("r", 0).Time
	o := Options{MaxAge: time.Hour, KeepFor: 1000 * time.Hour, Keep: 1000, Clock: func() time.Time {
		now = now.Add(-time.Hour)
		return now
	}}
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for from := 0; from < 55; from += 5 {
		l := opened(t, path, o)
		write(t, l, from, from+5)
		require.NoError(t, l.Close())
	}
	all := readAll(t, path)
	require.Len(t, all, 55)
	for i, ev := range all {
		require.EqualValues(t, i, ev.Sequence)
		fold.Apply(ev)
	}
	require.Empty(t, fold.Snapshot().Violations)
}

// Errors that no call returns are told, or come from Flush and Close. A segment that
// cannot be closed goes on.
func TestErrorsInTheBackground(t *testing.T) {
	for _, told := range []bool{true, false} {
		d := newFaults()
		d.fail = func(_ int, call string) error {
			if call == "rename log" {
				return syscall.EACCES
			}
			return nil
		}
		var errs []error
		o := Options{MaxBytes: 2000, fs: d}
		if told {
			o.OnError = func(err error) { errs = append(errs, err) }
		}
		path := filepath.Join(t.TempDir(), "log")
		l := opened(t, path, o)
		write(t, l, 0, 20)
		err := errors.Join(errs...)
		if told {
			require.NoError(t, l.Flush(t.Context()))
			require.Greater(t, len(errs), 2)
			require.Less(t, len(errs), 20, "not with each event")
		} else {
			err = l.Flush(t.Context())
			require.NoError(t, l.Flush(t.Context()))
		}
		require.ErrorIs(t, err, syscall.EACCES)
		require.ErrorContains(t, err, "closing a segment of "+path)
		require.NoError(t, l.Close())
		require.Len(t, readAll(t, path), 20)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for _, o := range []Options{{Sync: 9}, {Interval: -1}, {Buffer: -1}, {Buffer: maxHeld + 1}, {MaxBytes: -1}, {MaxAge: -1}, {Keep: -1}, {KeepFor: -1}, {ChainFrom: "ab"}, {Chain: true, ChainFrom: "ab"}} {
		_, err := Open(path, o)
		require.ErrorContains(t, err, "logfile.Options.")
		require.ErrorAs(t, err, new(*agentevents.OptionError))
	}
	for _, o := range []FollowOptions{{First: -1}, {Poll: -1}} {
		_, err := Follow(t.Context(), path, o)
		require.ErrorAs(t, err, new(*agentevents.OptionError))
	}
	require.Empty(t, files(t, path))
}
