package logfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
)

// ended returns a context that has ended: a follower with it does not wait.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A trail follows a log in steps, without waiting.
type trail struct {
	*shelf
	f    *Follower
	told []error
}

func newTrail(d *shelf, o FollowOptions) *trail {
	tr := &trail{shelf: d}
	o.Report = func(err error) { tr.told = append(tr.told, err) }
	f, err := Follow(ended(), d.path, o)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { f.Close() })
	tr.f = f
	return tr
}

// want compares the lines that come until the end, and the reported errors.
func (tr *trail) want(text string, told ...error) {
	tr.t.Helper()
	tr.told = nil
	got, err := io.ReadAll(tr.f)
	require.NoError(tr.t, err)
	require.Equal(tr.t, text, string(got))
	require.Len(tr.t, tr.told, len(told), "%v", tr.told)
	for i := range told {
		require.ErrorIs(tr.t, tr.told[i], told[i])
	}
}

func TestFollow(t *testing.T) {
	tr := newTrail(newShelf(t), FollowOptions{})
	tr.want("") // nothing is there yet
	tr.add("a\nb")
	tr.want("a\n")
	tr.want("")
	tr.add("b\nc\n")
	tr.want("bb\nc\n")

	// The writer cuts a torn end off before it goes on.
	tr.add("torn")
	tr.want("")
	require.NoError(t, os.Truncate(tr.path, 7))
	tr.add("d\n")
	tr.want("d\n")
	tr.add("longer than the next part")
	tr.want("")
	require.NoError(t, os.Truncate(tr.path, 9))
	tr.add("e\n")
	tr.want("e\n")

	// Also between two reads.
	tr.add("e2\ntorn again")
	p := make([]byte, 100)
	n, err := tr.f.Read(p)
	require.NoError(t, err)
	require.Equal(t, "e2\n", string(p[:n]))
	require.NoError(t, os.Truncate(tr.path, 14))
	tr.add("e3 is longer than that\n")
	tr.want("e3 is longer than that\n")

	// Rotation: before and after there is a new file, and with lines that were not seen.
	tr.add("f\n")
	tr.rotate(1)
	tr.want("f\n")
	require.Equal(t, Segment{tr.path, 1, true, false}, tr.f.Segment())
	tr.add("g\n")
	tr.want("g\n")
	tr.add("h\n")
	tr.rotate(2)
	tr.add("i\n")
	tr.rotate(3)
	tr.compress(3)
	tr.add("j\n")
	tr.rotate(4)
	tr.compress(4)
	tr.remove(tr.closed(4))
	tr.add("k\n")
	tr.want("h\ni\nj\nk\n")
	require.Equal(t, 5, tr.f.Segment().Number)

	// An open file is read although it is removed.
	tr.add("l\n")
	tr.rotate(5)
	tr.compress(5)
	tr.remove(tr.closed(5))
	tr.remove(tr.closed(5) + ".gz")
	tr.add("m\n")
	tr.rotate(6)
	tr.add("n\n")
	tr.want("l\nm\nn\n")

	// A file that was removed before it was opened is reported.
	for n := 7; n <= 9; n++ {
		tr.rotate(n)
		tr.add(fmt.Sprintln(n))
	}
	tr.remove(tr.closed(8))
	tr.told = nil
	got, err := io.ReadAll(tr.f)
	require.NoError(t, err)
	require.Equal(t, "8\n9\n", string(got))
	require.Len(t, tr.told, 1)
	var missing *MissingError
	require.ErrorAs(t, tr.told[0], &missing)
	require.Equal(t, MissingError{tr.closed(8), 8, 8}, *missing)

	require.NoError(t, tr.f.Close())
	require.NoError(t, tr.f.Close())
	_, err = tr.f.Read(make([]byte, 1))
	require.ErrorIs(t, err, fs.ErrClosed)
}

// Changes of a file by other programs are reported, and following goes on.
func TestFollowFilesOfOthers(t *testing.T) {
	tr := newTrail(newShelf(t), FollowOptions{})
	tr.add("one\ntwo\n")
	tr.want("one\ntwo\n")
	require.NoError(t, os.Truncate(tr.path, 0))
	tr.want("", ErrTruncated)
	tr.want("")
	tr.add("a\n")
	tr.want("a\n")
	require.NoError(t, os.WriteFile(tr.path, []byte("written over\n"), 0o600))
	tr.want("written over\n", ErrTruncated)

	// Another file takes its place, as an editor or logrotate does it.
	old, err := os.OpenFile(tr.path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer old.Close()
	require.NoError(t, os.Rename(tr.path, tr.path+".old"))
	tr.want("", fs.ErrNotExist)
	old.WriteString("still written\n")
	tr.want("still written\n")
	old.WriteString("last\ntorn")
	tr.add("new\n")
	tr.want("last\ntorn\nnew\n")
	require.NoError(t, os.WriteFile(tr.path+".new", []byte("newer\n"), 0o600))
	require.NoError(t, os.Rename(tr.path+".new", tr.path))
	tr.want("newer\n", ErrReplaced)
	tr.remove(tr.path)
	tr.want("", fs.ErrNotExist)
	tr.want("")
	tr.add("again\n")
	tr.want("again\n")
	tr.rotate(1)
	tr.want("")
	tr.add("numbered\n")
	tr.want("numbered\n")

	// Another log takes its place, with numbers of its own.
	tr.rotate(2)
	tr.add("the last of it\n")
	tr.want("the last of it\n")
	for _, path := range []string{tr.closed(1), tr.closed(2), tr.path} {
		tr.remove(path)
	}
	tr.add("x\n")
	tr.rotate(1)
	tr.add("y\n")
	tr.want("x\ny\n", ErrReplaced)
	tr.rotate(2)
	tr.add("z\n")
	tr.want("z\n")
	require.Equal(t, 3, tr.f.Segment().Number)

	_, err = Follow(t.Context(), "x.jsonl.000001.gz", FollowOptions{})
	require.ErrorContains(t, err, "it is compressed")
}

// Without Report, Read returns each report as an error, once, and goes on.
func TestFollowReturnsReportsWithoutAReporter(t *testing.T) {
	d := newShelf(t)
	d.add("one\n")
	f, err := Follow(ended(), d.path, FollowOptions{})
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, "one\n", readOn(f, ""))
	require.NoError(t, os.Truncate(d.path, 0))
	d.add("2\n")
	_, err = f.Read(make([]byte, 10))
	require.ErrorIs(t, err, ErrTruncated)
	require.Equal(t, "2\n", readOn(f, ""))
}

func TestFollowBegins(t *testing.T) {
	for _, test := range []struct {
		o    FollowOptions
		want string
	}{
		{FollowOptions{}, "a\nb\nc\nd\n"}, {FollowOptions{Last: -1}, ""}, {FollowOptions{Last: 1}, "d\n"}, {FollowOptions{Last: 2}, "c\nd\n"},
		{FollowOptions{Last: 3}, "b\nc\nd\n"}, {FollowOptions{Last: 4}, "a\nb\nc\nd\n"}, {FollowOptions{Last: 99}, "a\nb\nc\nd\n"},
		{FollowOptions{First: 2}, "c\nd\n"}, {FollowOptions{First: 3}, "d\n"}, {FollowOptions{Last: 1, First: 1}, "d\n"},
	} {
		tr := newTrail(three(t), test.o)
		tr.add("!\ne\n") // the torn line becomes whole after Follow
		tr.rotate(3)
		tr.add("f\n")
		tr.want(test.want + "torn!\ne\nf\n")
	}
	tr := newTrail(newShelf(t), FollowOptions{Last: -1})
	tr.add("all\n")
	tr.want("all\n")

	_, err := Follow(ended(), three(t).path, FollowOptions{First: 4})
	require.ErrorContains(t, err, "has no segment 4, the last one is 3")
	tr = newTrail(newShelf(t), FollowOptions{First: 4})
	tr.add("all\n")
	tr.rotate(1)
	tr.add("of it\n")
	tr.want("all\nof it\n")

	// Between rename and create.
	d := three(t)
	d.rotate(3)
	tr = newTrail(d, FollowOptions{Last: -1})
	tr.add("next\n")
	tr.want("torn\nnext\n")
}

// Lines of any length come whole, through a buffer of any size.
func TestFollowLongLines(t *testing.T) {
	d := newShelf(t)
	var all strings.Builder
	for _, n := range []int{0, 1, 32 << 10, 64<<10 - 1, 64 << 10, 1 << 20, 3, 200 << 10} {
		all.WriteString(strings.Repeat("x", n) + "\n")
	}
	d.add(all.String()[:2<<20/3])
	tr := newTrail(d, FollowOptions{})
	first, err := io.ReadAll(tr.f)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(first), "\n"))
	d.add(all.String()[2<<20/3:])
	tr.want(all.String()[len(first):])

	d.add("ab\n")
	p := make([]byte, 1)
	for _, c := range "ab\n" {
		n, err := tr.f.Read(p)
		require.NoError(t, err)
		require.Equal(t, string(c), string(p[:n]))
	}
	n, err := tr.f.Read(nil)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestFollowPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newShelf(t)
		ctx, cancel := context.WithCancel(t.Context())
		idle := 0
		f, err := Follow(ctx, d.path, FollowOptions{Idle: func() { idle++ }})
		require.NoError(t, err)
		defer f.Close()
		type read struct {
			text string
			at   time.Duration
			err  error
		}
		start, got := time.Now(), make(chan read)
		go func() {
			p := make([]byte, 100)
			for err := error(nil); err == nil; {
				var n int
				n, err = f.Read(p)
				got <- read{string(p[:n]), time.Since(start), err}
			}
		}()
		time.Sleep(5250 * time.Millisecond) // looks at 0, 100, 300, 700, 1500, 2500, ... 5500
		synctest.Wait()
		require.Equal(t, 1, idle, "once while nothing comes")
		d.add("a\n")
		require.Equal(t, read{"a\n", 5500 * time.Millisecond, nil}, <-got)
		time.Sleep(50 * time.Millisecond)
		d.add("b\n")
		require.Equal(t, read{"b\n", 5600 * time.Millisecond, nil}, <-got)
		synctest.Wait()
		require.Equal(t, 3, idle)

		d.add("c\n")
		cancel() // it does not wait for the next look
		require.Equal(t, read{"c\n", 5600 * time.Millisecond, nil}, <-got)
		require.Equal(t, read{"", 5600 * time.Millisecond, io.EOF}, <-got)
	})
}

// A writer appends, tears, rotates, compresses and removes at random while a follower reads.
// Every line comes once, in order, but those that are told to be missing.
func TestFollowAWriter(t *testing.T) {
	for seed := range effort.Of(1, 6, 40) {
		for _, retention := range []int{1000, 1} {
			t.Run(fmt.Sprint(seed, " keeps ", retention), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { followAWriter(t, uint64(seed), retention) })
			})
		}
	}
}

func followAWriter(t *testing.T, seed uint64, retention int) {
	const lines = 1000
	d := newShelf(t)
	firsts := map[int]int{1: 0} // the first line of every segment
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		rnd := rand.New(rand.NewPCG(seed, 1))
		segment, oldest := 1, 1
		for i := range lines {
			text := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", rnd.IntN(200)))
			switch rnd.IntN(40) {
			case 0: // in two writes
				half := rnd.IntN(len(text))
				d.add(text[:half])
				time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
				d.add(text[half:])
			case 1: // torn, cut off and written again
				info, err := os.Stat(d.path)
				if err != nil {
					d.add(text)
					break
				}
				d.add(text[:len(text)-1])
				time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
				require.NoError(t, os.Truncate(d.path, info.Size()))
				d.add(text)
			default:
				d.add(text)
			}
			for range max(0, rnd.IntN(12)-9) {
				d.rotate(segment)
				segment++
				if rnd.IntN(2) == 0 {
					time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
				}
				firsts[segment] = i + 1
				d.add("")
				if n := segment - 1; rnd.IntN(2) == 0 {
					d.compress(n)
					if rnd.IntN(2) == 0 {
						time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
					}
					d.remove(d.closed(n))
				}
				for ; oldest < segment-retention; oldest++ {
					os.Remove(d.closed(oldest))
					os.Remove(d.closed(oldest) + ".gz")
				}
			}
			if rnd.IntN(10) == 0 {
				time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
			}
		}
	}()

	var lost []*MissingError
	f, err := Follow(ctx, d.path, FollowOptions{Report: func(err error) {
		var missing *MissingError
		if !errors.As(err, &missing) {
			t.Errorf("told: %v", err)
			return
		}
		lost = append(lost, missing)
	}})
	require.NoError(t, err)
	defer f.Close()
	var got []int
	in := bufio.NewScanner(f)
	for in.Scan() {
		var i int
		_, err := fmt.Sscanf(in.Text(), "%d ", &i)
		require.NoError(t, err, in.Text())
		got = append(got, i)
	}
	require.NoError(t, in.Err())
	if retention > 1 {
		require.Empty(t, lost)
	}
	left := map[int]bool{}
	for _, m := range lost {
		for i := firsts[m.First]; i < firsts[m.Last+1]; i++ {
			left[i] = true
		}
	}
	var want []int
	begin := 0 // files that retention removed before the first look are not missing
	if len(got) > 0 && retention == 1 {
		begin = got[0]
	}
	for i := begin; i < lines; i++ {
		if !left[i] {
			want = append(want, i)
		}
	}
	require.Equal(t, want, got)
}

// Two goroutines race for real.
func TestFollowConcurrently(t *testing.T) {
	const lines = 3000
	d := newShelf(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for i := range lines {
			d.add(fmt.Sprintf("%d\n", i))
			if i%50 == 49 {
				n := i/50 + 1
				d.rotate(n)
				d.add("")
				d.compress(n)
				d.remove(d.closed(n))
			}
		}
	}()
	f, err := Follow(ctx, d.path, FollowOptions{Poll: time.Microsecond})
	require.NoError(t, err)
	defer f.Close()
	in := bufio.NewScanner(f)
	for i := range lines {
		require.True(t, in.Scan(), "line %d: %v", i, in.Err())
		require.Equal(t, fmt.Sprint(i), in.Text())
	}
	require.False(t, in.Scan())
	require.NoError(t, in.Err())
	_, err = os.Stat(filepath.Dir(d.path))
	require.NoError(t, err)

	// And one that reads while it is rotated loses nothing either, up to where it began.
	r, err := NewReader(d.path, ReaderOptions{})
	require.NoError(t, err)
	defer r.Close()
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, lines, strings.Count(string(text), "\n"))
}
