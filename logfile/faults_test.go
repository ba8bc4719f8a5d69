package logfile

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/disk"
	"github.com/agentevents/agentevents/internal/effort"
)

// faults is a file system whose calls fail when they are told to.
type faults struct {
	disk.OS
	mu    sync.Mutex
	n     int            // of all calls
	calls map[string]int // by name and kind of file
	fail  func(n int, call string) error
	sync  bool // files are synced: else nothing is lost that a test could see
}

func newFaults() *faults { return &faults{calls: map[string]int{}} }

// call counts a call, and returns the error that it ends with.
func (d *faults) call(what, path string) error {
	_, err := d.numbered(what, path)
	return err
}

func (d *faults) numbered(what, path string) (n int, err error) {
	kind := "log"
	switch ext := filepath.Base(path); {
	case strings.Contains(ext, ".torn."):
		kind = "torn"
	case strings.HasSuffix(ext, ".tmp"):
		kind = "temp"
	case strings.HasSuffix(ext, ".head"):
		kind = "head"
	case strings.Contains(ext, ".0"):
		kind = "closed"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	d.calls[what+" "+kind]++
	if d.fail == nil {
		return d.n, nil
	}
	if err := d.fail(d.n, what+" "+kind); err != nil {
		return d.n, &os.PathError{Op: what, Path: path, Err: err}
	}
	return d.n, nil
}

func (d *faults) OpenFile(path string, flag int, perm os.FileMode) (disk.File, error) {
	if err := d.call("open", path); err != nil {
		return nil, err
	}
	f, err := d.OS.OpenFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faulty{File: f, d: d, path: path}, nil
}

func (d *faults) Stat(path string) (os.FileInfo, error) {
	if err := d.call("stat", path); err != nil {
		return nil, err
	}
	return d.OS.Stat(path)
}

func (d *faults) ReadDir(path string) ([]os.DirEntry, error) {
	if err := d.call("readdir", path); err != nil {
		return nil, err
	}
	return d.OS.ReadDir(path)
}

func (d *faults) Rename(from, to string) error {
	if err := d.call("rename", from); err != nil {
		return err
	}
	return d.OS.Rename(from, to)
}

func (d *faults) Remove(path string) error {
	if err := d.call("remove", path); err != nil {
		return err
	}
	return d.OS.Remove(path)
}

func (d *faults) SyncDir(path string) error {
	return d.call("syncdir", path) // unsynced bytes are lost only with the machine
}

// faulty is a file of faults. A failing write may have written a part, and may report it or not.
type faulty struct {
	disk.File
	d    *faults
	path string
}

func (f *faulty) WriteAt(p []byte, at int64) (int, error) {
	call, err := f.d.numbered("write", f.path)
	if err == nil {
		return f.File.WriteAt(p, at)
	}
	n := 0
	switch call % 3 {
	case 0:
		n, _ = f.File.WriteAt(p[:len(p)/2], at)
	case 1:
		_, _ = f.File.WriteAt(p[:len(p)/3], at) // and does not report it
	}
	if call%2 == 0 && n > 0 && !strings.HasSuffix(f.path, ".tmp") {
		return n, nil // a short write without an error
	}
	return n, err
}

func (f *faulty) ReadAt(p []byte, at int64) (int, error) {
	if err := f.d.call("read", f.path); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, at)
}

func (f *faulty) Sync() error {
	if err := f.d.call("sync", f.path); err != nil || !f.d.sync {
		return err
	}
	return f.File.Sync()
}

func (f *faulty) Truncate(n int64) error {
	if err := f.d.call("truncate", f.path); err != nil {
		return err
	}
	return f.File.Truncate(n)
}

func (f *faulty) Stat() (os.FileInfo, error) {
	if err := f.d.call("fstat", f.path); err != nil {
		return nil, err
	}
	return f.File.Stat()
}

func (f *faulty) Close() error {
	err := f.d.call("close", f.path)
	if cerr := f.File.Close(); cerr != nil {
		return cerr
	}
	return err
}

// A smallDisk has room for so many bytes of a file. It takes a part of a write that does not fit,
// and returns 0 as [os.File.WriteAt] does.
type smallDisk struct {
	disk.OS
	room int64
	says bool // how much it takes
	sync error
}

func (d *smallDisk) OpenFile(path string, flag int, perm os.FileMode) (disk.File, error) {
	f, err := d.OS.OpenFile(path, flag, perm)
	return &smallFile{f, d}, err
}

func (d *smallDisk) SyncDir(string) error { return nil }

type smallFile struct {
	disk.File
	d *smallDisk
}

func (f *smallFile) WriteAt(p []byte, at int64) (int, error) {
	if fit := max(f.d.room-at, 0); fit < int64(len(p)) {
		n, _ := f.File.WriteAt(p[:fit], at)
		if !f.d.says {
			n = 0
		}
		return n, syscall.ENOSPC
	}
	return f.File.WriteAt(p, at)
}

func (f *smallFile) Sync() error { return f.d.sync }

var someErrors = []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS}

// work emits events into the log, and returns the sequences of those that were
// acknowledged: that have to be there when the process ends.
func work(t *testing.T, path string, o Options, events int) (acked map[uint64]bool) {
	acked = map[uint64]bool{}
	var l *Log
	for try := 0; l == nil; try++ {
		var err error
		if l, err = Open(path, o); err != nil && try > 50 {
			t.Fatal(err)
		}
	}
	for i := range events {
		err := l.WriteEvent(t.Context(), event("r", i))
		if err == nil {
			err = l.Commit(t.Context())
		}
		if err == nil && o.Buffer == 0 {
			acked[uint64(i)] = true
		}
	}
	if l.Close() == nil {
		for i := range events {
			acked[uint64(i)] = true
		}
	}
	return acked
}

// Whatever call to the disk fails, and however often: no line is damaged, acknowledged events are
// there once and in order, and the log goes on.
func TestFaults(t *testing.T) {
	const events = 24
	for name, o := range map[string]Options{
		"every event":  {Sync: SyncEvery, Chain: true, MaxBytes: 3000, Compress: true},
		"no sync":      {Sync: SyncNone, MaxBytes: 3000},
		"the interval": {Interval: time.Hour, MaxBytes: 3000, Buffer: 1000},
	} {
		clean := newFaults()
		o.fs = clean
		work(t, filepath.Join(t.TempDir(), "log"), o, events)
		for first := 1; first <= clean.n; first++ {
			for _, times := range []int{1, 2, 7} {
				if stride := effort.Of(20, 5, 1); first%stride != times%stride {
					continue
				}
				d := newFaults()
				failed := ""
				d.fail = func(n int, call string) error {
					if n < first || n >= first+times {
						return nil
					}
					failed += call + ", "
					return someErrors[n%len(someErrors)]
				}
				o.fs = d
				path := filepath.Join(t.TempDir(), "log")
				acked := work(t, path, o, events)
				checkFaulty(t, path, o, acked, events, fmt.Sprintf("%s: calls from %d on: %s", name, first, failed))
			}
		}
	}
}

func checkFaulty(t *testing.T, path string, o Options, acked map[uint64]bool, events int, what string) {
	t.Helper()
	o.fs = nil
	l, err := Open(path, o)
	require.NoError(t, err, what)
	require.NoError(t, l.WriteEvent(t.Context(), event("r", events)), what)
	require.NoError(t, l.Close(), what)
	last := -1
	for _, ev := range readAll(t, path, what) {
		require.Greater(t, int(ev.Sequence), last, what)
		last = int(ev.Sequence)
		delete(acked, ev.Sequence)
	}
	require.Empty(t, acked, what)
	require.Equal(t, events, last, what)
}

// Many write at once while calls fail at random.
func TestFaultsUnderLoad(t *testing.T) {
	for seed := range effort.Of(4, 12, 300) {
		for name, o := range map[string]Options{
			"every event": {Sync: SyncEvery, Chain: true, MaxBytes: 5000, Compress: true, Keep: 100_000},
			"interval":    {Sync: SyncInterval, Interval: 100 * time.Microsecond, MaxBytes: 5000},
		} {
			d := newFaults()
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			d.fail = func(n int, _ string) error { // d.mu is held
				if random.IntN(15) == 0 {
					return someErrors[n%len(someErrors)]
				}
				return nil
			}
			o.fs = d
			path := filepath.Join(t.TempDir(), "log")
			l, err := Open(path, o)
			if err != nil {
				continue
			}
			var mu sync.Mutex
			acked := map[string]map[uint64]bool{}
			var all sync.WaitGroup
			for g := range 8 {
				all.Go(func() {
					mine := map[uint64]bool{}
					run := fmt.Sprint("run", g)
					for i := range 30 {
						err := l.WriteEvent(t.Context(), event(run, i))
						if err == nil {
							err = l.Commit(t.Context())
						}
						mine[uint64(i)] = err == nil
					}
					mu.Lock()
					defer mu.Unlock()
					acked[run] = mine
				})
			}
			all.Wait()
			closed := l.Close() == nil
			o.fs = nil
			l = opened(t, path, o)
			require.NoError(t, l.Close())
			next := map[string]int{}
			for _, ev := range readAll(t, path) {
				require.GreaterOrEqual(t, int(ev.Sequence), next[ev.RunID], "%s %d: twice, or out of order", name, seed)
				next[ev.RunID] = int(ev.Sequence) + 1
				delete(acked[ev.RunID], ev.Sequence)
			}
			for run, left := range acked {
				for seq, ok := range left {
					require.False(t, ok || closed, "%s %d: %d of %s is missing", name, seed, seq, run)
				}
			}
		}
	}
}
