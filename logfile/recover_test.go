package logfile

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/chain"
)

// write writes events of run r, from the first sequence to before the other.
func write(t *testing.T, l *Log, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		require.NoError(t, l.WriteEvent(t.Context(), event("r", i)))
		require.NoError(t, l.Commit(t.Context()))
	}
}

// closed returns a log of n events that is closed.
func closed(t *testing.T, n int, o Options) (path, text string) {
	path = filepath.Join(t.TempDir(), "log")
	l := opened(t, path, o)
	write(t, l, 0, n)
	require.NoError(t, l.Close())
	return path, read(t, path)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// Wherever a log is cut, it is clean once it is opened again: its whole lines are there, and the
// rest is set aside.
func TestATornTailIsSetAside(t *testing.T) {
	for _, o := range []Options{{Sync: SyncNone, fs: newFaults()}, {Sync: SyncNone, Chain: true, fs: newFaults()}} {
		path, text := closed(t, 3, o)
		for cut := 0; cut < len(text); cut += 7 { // lines have all lengths
			require.NoError(t, os.WriteFile(path, []byte(text[:cut]), 0o600))
			var told error
			o.OnError = func(err error) { told = err }
			l := opened(t, path, o)
			wholes := strings.Count(text[:cut], "\n")
			tail := text[:cut][strings.LastIndex(text[:cut], "\n")+1:]
			if strings.HasPrefix(text[cut:], "\n") { // only that is missing
				wholes++
				tail = ""
			}
			if tail == "" {
				require.Nil(t, l.Torn())
				require.NoError(t, told)
			} else {
				torn := l.Torn()
				require.Equal(t, &TornError{path, int64(cut - len(tail)), int64(len(tail)), torn.Path}, torn)
				require.ErrorIs(t, told, torn)
				require.Equal(t, tail, read(t, torn.Path))
				require.ErrorContains(t, torn, "torn at byte")
				if cut%50 > 0 {
					require.NoError(t, os.Remove(torn.Path))
				}
			}
			write(t, l, wholes, wholes+1)
			require.NoError(t, l.Close())
			events := readAll(t, path)
			require.Len(t, events, wholes+1)
			require.EqualValues(t, wholes, events[wholes].Sequence)
		}
	}
}

// A machine that goes down may leave zeros where lines should be.
func TestZerosAreATornTail(t *testing.T) {
	path, text := closed(t, 3, Options{})
	for _, zeros := range []string{"\x00", strings.Repeat("\x00", 100_000), "\x00\x00\n", "{\"a\x00\n\x00\n", "\x00" + strings.Repeat("x", 70_000)} {
		require.NoError(t, os.WriteFile(path, []byte(text+zeros), 0o600))
		l := opened(t, path, Options{})
		require.EqualValues(t, len(zeros), l.Torn().Size)
		require.NoError(t, l.Close())
		require.Equal(t, text, read(t, path))
		require.Equal(t, zeros, read(t, l.Torn().Path))
	}
	require.NoError(t, os.WriteFile(path, []byte("\x00\x00"), 0o600))
	l := opened(t, path, Options{})
	require.NoError(t, l.Close())
	require.Empty(t, read(t, path))
}

func TestOtherFilesAreNotTouched(t *testing.T) {
	dir := t.TempDir()
	for i, text := range []string{"hello", "hello\n{", "\x7fELF", "[\n"} {
		path := filepath.Join(dir, fmt.Sprint(i))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := Open(path, Options{})
		require.ErrorContains(t, err, "not a log of lines")
		require.Equal(t, text, read(t, path))
	}
	_, err := Open(dir, Options{})
	require.Error(t, err)
	_, err = Open(filepath.Join(dir, "none", "log"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A change of the file by another program is reported with the next event, and nothing that is
// written later is damaged. Events that the policy has not synced yet are written again.
func TestAnotherProgramChangesTheFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open cannot be removed")
	}
	other := event("other", 0)
	line, err := other.AppendJSON(nil)
	require.NoError(t, err)
	foreign := string(line) + "\n"
	moved := func(path string) error { return os.Rename(path, path+".moved") }
	for name, test := range map[string]struct {
		do     func(path string) error
		says   string
		left   map[Sync]int // events of the first five that are in the log afterwards
		others int          // lines that are not ours
	}{
		"removed":  {os.Remove, "was removed or replaced; this process has written 5 events to it, from 0 of run \"r\" to 4 of run \"r\"", map[Sync]int{SyncInterval: 5}, 0},
		"moved":    {moved, "was removed or replaced", map[Sync]int{SyncInterval: 5}, 0},
		"replaced": {func(path string) error { _ = moved(path); return os.WriteFile(path, []byte(foreign), 0o600) }, "was removed or replaced", map[Sync]int{SyncInterval: 5}, 1},
		"emptied":  {func(path string) error { return os.Truncate(path, 0) }, "has 0 bytes, not", map[Sync]int{SyncInterval: 5}, 0},
		"cut": {func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, info.Size()-20)
		}, "bytes, not", map[Sync]int{SyncInterval: 5, SyncNone: 4, SyncEvery: 4}, 0},
		"extended": {func(path string) error {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString(foreign + "{\"torn")
			return err
		}, "bytes, not", map[Sync]int{SyncInterval: 5, SyncNone: 5, SyncEvery: 5}, 1},
	} {
		for _, policy := range []Sync{SyncInterval, SyncNone, SyncEvery} {
			t.Run(fmt.Sprint(name, policy), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "log")
				l := opened(t, path, Options{Sync: policy, Interval: time.Hour})
				write(t, l, 0, 5)
				require.NoError(t, test.do(path))
				err := l.WriteEvent(t.Context(), event("r", 5))
				if err == nil {
					err = l.Commit(t.Context())
				}
				require.ErrorIs(t, err, ErrChanged)
				require.ErrorContains(t, err, test.says)
				write(t, l, 6, 8)
				require.NoError(t, l.Close())
				lines := strings.Split(strings.TrimSuffix(read(t, path), "\n"), "\n")
				var got []uint64
				others := 0
				for _, line := range lines {
					var ev ae.Event
					require.NoError(t, ev.UnmarshalJSON([]byte(line)), line)
					if ev.RunID == "other" {
						others++
						continue
					}
					got = append(got, ev.Sequence)
				}
				var want []uint64
				for i := range test.left[policy] {
					want = append(want, uint64(i))
				}
				require.Equal(t, append(want, 5, 6, 7), got)
				require.Equal(t, test.others, others)
			})
		}
	}
}

// A full disk is reported with every event, and the cost of an event stays the same. Lines beyond
// the limit of held lines are lost, and named.
func TestAFullDisk(t *testing.T) {
	for _, policy := range []Sync{SyncNone, SyncEvery} {
		d := newFaults()
		full := false
		d.fail = func(_ int, call string) error {
			if full && call == "write log" {
				return syscall.ENOSPC
			}
			return nil
		}
		path := filepath.Join(t.TempDir(), "log")
		l := opened(t, path, Options{Sync: policy, fs: d})
		write(t, l, 0, 3)
		full = true
		big := event("r", 3)
		big.Payload = &ae.TextCompleted{Text: strings.Repeat("x", maxHeld/4)}
		var lost []uint64
		seq := 3
		for ; len(lost) < 2; seq++ {
			big.ID, big.Sequence = fmt.Sprint(seq), uint64(seq)
			err := l.WriteEvent(t.Context(), big)
			if err == nil {
				err = l.Commit(t.Context())
			}
			require.ErrorIs(t, err, syscall.ENOSPC)
			if l, ok := err.(*LostError); ok {
				require.Equal(t, []Range{{"r", uint64(seq), uint64(seq)}}, l.Events)
				lost = append(lost, uint64(seq))
			}
		}
		require.EqualValues(t, 2, l.Stats().Lost)
		require.Positive(t, l.Stats().Held)
		full = false
		write(t, l, seq, seq+3)
		require.Zero(t, l.Stats().Held)
		require.Equal(t, seq+3-len(lost), len(readAll(t, path)))

		full = true
		require.Error(t, firstError(l.WriteEvent(t.Context(), event("r", seq+3)), l.Commit(t.Context())))
		require.Error(t, firstError(l.WriteEvent(t.Context(), event("r2", 0)), l.Commit(t.Context())))
		err := l.Close()
		var gone *LostError
		require.ErrorAs(t, err, &gone)
		require.Equal(t, 2, gone.Lines)
		require.Equal(t, []Range{{"r", uint64(seq + 3), uint64(seq + 3)}, {"r2", 0, 0}}, gone.Events)
		require.ErrorContains(t, err, fmt.Sprintf(`2 events are lost: %d of run "r", 0 of run "r2"`, seq+3))
		require.Equal(t, 1, strings.Count(err.Error(), syscall.ENOSPC.Error()), err)
		require.EqualValues(t, len(lost)+2, l.Stats().Lost)
		require.Equal(t, seq+3-len(lost), len(readAll(t, path)), "no line is torn")
	}
}

// Wherever a full disk cuts a write, the log ends with a whole line, and the lines reported as lost
// are exactly the missing ones.
func TestAFullDiskTakesAPart(t *testing.T) {
	const events = 6
	_, text := closed(t, events, Options{Chain: true})
	for room := 0; room < len(text); room += 37 { // lines have all lengths
		for _, o := range []Options{{Chain: true}, {Chain: true, Sync: SyncNone}, {Chain: true, Buffer: 1500}, {Chain: true, Sync: SyncEvery}} {
			d := &smallDisk{room: int64(room)}
			o.fs = d
			path := filepath.Join(t.TempDir(), "log")
			l := opened(t, path, o)
			for i := range events {
				_ = firstError(l.WriteEvent(t.Context(), event("r", i)), l.Commit(t.Context()))
			}
			var lost *LostError
			require.ErrorAs(t, l.Close(), &lost)
			whole := strings.Count(text[:room], "\n")
			require.Equal(t, []Range{{"r", uint64(whole), events - 1}}, lost.Events)
			require.Equal(t, text[:strings.LastIndexByte(text[:room], '\n')+1], read(t, path))
		}
	}
}

// Lines that a failed sync may have lost are written again, although the file still shows them.
func TestLinesInDoubtAreWrittenAgain(t *testing.T) {
	d := &smallDisk{room: 1 << 20}
	path := filepath.Join(t.TempDir(), "log")
	l := opened(t, path, Options{Interval: time.Hour, fs: d})
	write(t, l, 0, 3)
	text := read(t, path)
	d.sync = syscall.EIO
	require.ErrorIs(t, l.Flush(t.Context()), syscall.EIO)
	d.room, d.sync = 0, nil
	require.ErrorIs(t, l.Flush(t.Context()), syscall.ENOSPC)
	require.NoError(t, os.WriteFile(path, make([]byte, len(text)), 0)) // the system forgets it
	d.room = 1 << 20
	require.NoError(t, l.Flush(t.Context()))
	require.Equal(t, text, read(t, path))
	require.NoError(t, l.Close())
}

// Close does not cut off lines that a failed sync may have lost: they may be on disk.
func TestLinesInDoubtAreNotCutOff(t *testing.T) {
	d := &smallDisk{room: 1 << 20, says: true}
	path := filepath.Join(t.TempDir(), "log")
	l := opened(t, path, Options{Interval: time.Hour, fs: d})
	write(t, l, 0, 3)
	text := read(t, path)
	d.sync = syscall.EIO
	require.ErrorIs(t, l.Flush(t.Context()), syscall.EIO)
	d.room, d.sync = int64(len(text)-10), nil
	var lost *LostError
	require.ErrorAs(t, l.Close(), &lost)
	require.Equal(t, text, read(t, path))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A chain goes on when the log is opened again, in whatever segment it ended.
func TestAChainGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	from := strings.Repeat("ab", 32)
	next := 0
	for _, n := range []int{1, 3, 0, 5, 1, 7, 2} {
		l := opened(t, path, Options{Chain: true, ChainFrom: from, MaxBytes: 1500, Compress: next%2 == 1})
		write(t, l, next, next+n)
		require.NoError(t, l.Flush(t.Context()))
		next += n
		require.NoError(t, l.Close())
		head, ok := chain.ParseHead([]byte(read(t, path+".head")))
		require.True(t, ok)
		last := lastHashOf(t, path)
		require.Equal(t, last, head)
	}
	require.Len(t, readAll(t, path, from), next)
	// A log that had none before gets one.
	path, _ = closed(t, 2, Options{})
	l := opened(t, path, Options{Chain: true})
	write(t, l, 2, 4)
	require.NoError(t, l.Close())
	link, ok := chain.Find([]byte(strings.Split(read(t, path), "\n")[2]))
	require.True(t, ok)
	require.Zero(t, link.Prev)
}

func lastHashOf(t *testing.T, path string) chain.Hash {
	l := opened(t, path, Options{})
	defer l.Close()
	h, err := l.lastHash()
	require.NoError(t, err)
	return h
}
