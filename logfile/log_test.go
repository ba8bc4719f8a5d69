package logfile

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/chain"
)

// event is one of a run of its own kind, which no rule binds.
func event(run string, seq int) ae.Event {
	return ae.Event{RunID: run, ID: fmt.Sprintf("%s-%d", run, seq), Sequence: uint64(seq), Time: time.Date(2026, 5, 5, 9, 0, 0, seq, time.UTC),
		SchemaVersion: ae.SchemaVersion, AgentID: "a", Payload: &ae.TextCompleted{Text: strings.Repeat("x", seq*7919%900)}}
}

// opened opens the log and closes it at the end of the test.
func opened(t testing.TB, path string, o Options) *Log {
	l, err := Open(path, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestPoliciesSyncAtTheirTimes(t *testing.T) {
	for sync, name := range []string{SyncInterval: "interval", SyncNone: "none", SyncEnds: "ends", SyncEvery: "every"} {
		t.Run(name, func(t *testing.T) {
			d := newFaults()
			path := filepath.Join(t.TempDir(), "log")
			l := opened(t, path, Options{Sync: Sync(sync), Interval: time.Hour, fs: d})
			for i := range 3 {
				require.NoError(t, l.WriteEvent(t.Context(), event("r", i)))
				require.NoError(t, l.Commit(t.Context()))
			}
			end := ae.Event{RunID: "r", ID: "end", Sequence: 3, Time: time.Unix(9, 0), SchemaVersion: ae.SchemaVersion, Payload: &ae.RunCompleted{}}
			before := d.calls["sync log"]
			require.NoError(t, l.WriteEvent(t.Context(), end))
			require.NoError(t, l.Commit(t.Context()))
			require.Equal(t, map[Sync][2]int{SyncInterval: {0, 0}, SyncNone: {0, 0}, SyncEnds: {0, 1}, SyncEvery: {3, 4}}[Sync(sync)], [2]int{before, d.calls["sync log"]})
			require.Equal(t, 4, len(readAll(t, path)))
			require.NoError(t, l.Flush(t.Context()))
			require.Zero(t, l.Stats().Dirty)
			require.NoError(t, l.Close())
		})
	}
}

// tornTail is for readAll: the last line may be torn.
const tornTail = "with a torn tail"

// readAll reads the events of a whole log, and requires that every line is one, and that
// the chain, if there is one, holds.
func readAll(t testing.TB, path string, what ...string) (events []ae.Event) {
	closed, err := filepath.Glob(path + ".[0-9]*")
	require.NoError(t, err)
	var last chain.Hash
	chained := false
	for _, w := range what {
		if h, ok := chain.ParseHash(w); ok {
			last = h
		}
	}
	for _, p := range append(closed, path) {
		f, err := os.Open(p)
		if os.IsNotExist(err) && p == path {
			continue
		}
		require.NoError(t, err)
		r := io.Reader(f)
		if strings.HasSuffix(p, ".gz") {
			if _, err := os.Stat(strings.TrimSuffix(p, ".gz")); err == nil { //silent: a file is read once
				continue // a crash has left both
			}
			r, err = gzip.NewReader(f)
			require.NoError(t, err)
		} else if strings.HasSuffix(p, ".tmp") {
			continue
		}
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		f.Close()
		for line := range bytes.Lines(text) {
			if p == path && slices.Contains(what, tornTail) && !bytes.HasSuffix(line, []byte("\n")) {
				continue
			}
			require.True(t, bytes.HasSuffix(line, []byte("\n")), "%s: torn: %.200s %s", p, line, what)
			line = bytes.TrimSuffix(line, []byte("\n"))
			var ev ae.Event
			require.NoError(t, ev.UnmarshalJSON(line), "%s: %.200s %s", p, line, what)
			events = append(events, ev)
			link, ok := chain.Find(line)
			if chained = chained || ok; chained {
				require.True(t, ok)
				require.True(t, link.Holds(line))
				require.Equal(t, last, link.Prev, "%s: %d %s", p, ev.Sequence, what)
				last = link.Hash
			}
		}
	}
	return events
}

// Written lines are synced after the interval, and buffered lines are written.
func TestTheIntervalSyncs(t *testing.T) {
	for _, buffer := range []int{0, 10_000} {
		path := filepath.Join(t.TempDir(), "log")
		l := opened(t, path, Options{Interval: time.Millisecond, Buffer: buffer, fs: newFaults()})
		require.NoError(t, l.WriteEvent(t.Context(), event("r", 0)))
		require.Eventually(t, func() bool { s := l.Stats(); return s.Held+s.Dirty == 0 }, time.Minute, time.Millisecond)
		require.Len(t, readAll(t, path), 1)
		require.NoError(t, l.Close())
	}
}

func TestOneProcessWritesALog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := opened(t, path, Options{})
	_, err := Open(path, Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.WriteEvent(t.Context(), event("r", 0)), ae.ErrClosed)
	again := opened(t, path, Options{})
	require.NoError(t, again.Close())
}

// linked makes a symbolic link in a folder of its own, or skips the test.
func linked(t *testing.T, to string) (link string) {
	link = filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(to, link); err != nil {
		t.Skip("no symbolic links: ", err)
	}
	return link
}

// A file has one Log, whatever names it has.
func TestAFileOfTwoNamesIsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	link := linked(t, linked(t, path)) // the file is not there yet
	l := opened(t, link, Options{})
	write(t, l, 0, 1)
	hard := path + ".hard"
	names := []string{path, link, linked(t, path)}
	if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
		require.NoError(t, os.Link(path, hard))
		names = append(names, hard)
	}
	for _, name := range names {
		_, err := Open(name, Options{})
		require.ErrorIs(t, err, ErrLocked, name)
	}
	write(t, l, 1, 2)
	require.NoError(t, l.Close())
	require.Len(t, readAll(t, path), 2)
	for _, name := range names {
		require.NoError(t, opened(t, name, Options{}).Close())
	}
}

// A log that is opened by a link rotates the file, and readers find all of it by either name.
func TestALinkStandsForTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "links"), 0o700))
	link := filepath.Join(dir, "links", "log")
	if err := os.Symlink(filepath.Join("..", "log"), link); err != nil {
		t.Skip("no symbolic links: ", err)
	}
	l := opened(t, link, Options{MaxBytes: 1500, Compress: true, Keep: 1000, Chain: true})
	f, err := Follow(t.Context(), link, FollowOptions{Poll: time.Millisecond})
	require.NoError(t, err)
	write(t, l, 0, 20)
	require.NoError(t, l.Close())
	entries, err := os.ReadDir(filepath.Dir(link))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, os.ModeSymlink, entries[0].Type())
	require.Len(t, readAll(t, path), 20)

	r, err := NewReader(link, ReaderOptions{})
	require.NoError(t, err)
	defer r.Close()
	whole, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, 20, bytes.Count(whole, []byte("\n")))
	followed := make([]byte, len(whole))
	_, err = io.ReadFull(f, followed)
	require.NoError(t, err)
	require.Equal(t, string(whole), string(followed))
	require.NoError(t, f.Close())
	files := 0
	for _, err := range Files(link) {
		require.NoError(t, err)
		files++
	}
	require.Greater(t, files, 5)

	// Without a lock nobody knows that the link is not a name of its own.
	require.NoError(t, os.Remove(path+".lock"))
	list, err := Segments(link)
	require.NoError(t, err)
	require.Equal(t, []Segment{{Path: link, Number: 1, Active: true}}, list)
}

func TestEmittersShareASync(t *testing.T) {
	d := newFaults()
	d.sync = true
	path := filepath.Join(t.TempDir(), "log")
	l := opened(t, path, Options{Sync: SyncEvery, Chain: true, MaxBytes: 20_000, fs: d})
	const emitters, each = 32, 20
	var all sync.WaitGroup
	for n := range emitters {
		all.Go(func() {
			for i := range each {
				ev := event(fmt.Sprint("run", n), i)
				if err := l.WriteEvent(context.Background(), ev); err != nil {
					t.Error(err)
				}
				if err := l.Commit(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, l.Close())
	next := map[string]uint64{}
	for _, ev := range readAll(t, path) {
		require.Equal(t, next[ev.RunID], ev.Sequence)
		next[ev.RunID]++
	}
	require.Len(t, next, emitters)
	require.Less(t, d.calls["sync log"], emitters*each/2)
}
