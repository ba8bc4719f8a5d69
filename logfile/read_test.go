package logfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/effort"
)

// A shelf makes the files of a log as its writer makes them, step by step.
type shelf struct {
	t    testing.TB
	path string
}

func newShelf(t testing.TB) *shelf { return &shelf{t, filepath.Join(t.TempDir(), "run.jsonl")} }

func (d *shelf) add(text string) {
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(d.t, err)
	_, err = f.WriteString(text)
	require.NoError(d.t, err)
	require.NoError(d.t, f.Close())
}

// rotate closes the active segment. There is none then.
func (d *shelf) rotate(n int) { require.NoError(d.t, os.Rename(d.path, d.closed(n))) }

func (d *shelf) closed(n int) string { return fmt.Sprintf("%s.%06d", d.path, n) }

// compress makes the compressed file of a closed segment, beside the plain one.
func (d *shelf) compress(n int) {
	text, err := os.ReadFile(d.closed(n))
	require.NoError(d.t, err)
	require.NoError(d.t, os.WriteFile(d.closed(n)+".gz.tmp", zipped(string(text)), 0o600))
	require.NoError(d.t, os.Rename(d.closed(n)+".gz.tmp", d.closed(n)+".gz"))
}

func (d *shelf) remove(path string) { require.NoError(d.t, os.Remove(path)) }

func zipped(text string) []byte {
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	zw.Write([]byte(text))
	zw.Close()
	return b.Bytes()
}

// three makes a log of two closed segments, of which one is compressed, and an active one.
func three(t testing.TB) *shelf {
	d := newShelf(t)
	d.add("a\nb\n")
	d.rotate(1)
	d.compress(1)
	d.remove(d.closed(1))
	d.add("c\n")
	d.rotate(2)
	d.add("d\ntorn")
	return d
}

func TestSegments(t *testing.T) {
	d := newShelf(t)
	_, err := Segments(d.path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Segments(filepath.Join(d.path, "no", "directory"))
	require.Error(t, err)

	d.add("a\n")
	active := func(n int) Segment { return Segment{Path: d.path, Number: n, Active: true} }
	list := func(want ...Segment) {
		t.Helper()
		got, err := Segments(d.path)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	list(active(1))
	d.rotate(1)
	list(Segment{Path: d.closed(1), Number: 1})
	d.add("b\n")
	list(Segment{Path: d.closed(1), Number: 1}, active(2))
	d.compress(1)
	list(Segment{Path: d.closed(1), Number: 1}, active(2)) // both forms are one segment
	d.remove(d.closed(1))
	first := Segment{Path: d.closed(1) + ".gz", Number: 1, Compressed: true}
	list(first, active(2))

	for _, other := range []string{
		".lock", ".head", ".torn.000001", ".000003.gz.tmp", ".3", ".00003", ".0000003", ".000000", ".000003.bak", ".-00003", ".000003.zst", ".99999999999999999999",
	} {
		require.NoError(t, os.WriteFile(d.path+other, nil, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(d.path), "x"+filepath.Base(d.path)+".000009"), nil, 0o600))
	list(first, active(2))
	require.NoError(t, os.WriteFile(d.path+".1000000", nil, 0o600))
	require.NoError(t, os.WriteFile(d.path+".999999", nil, 0o600))
	list(first, Segment{Path: d.path + ".999999", Number: 999999}, Segment{Path: d.path + ".1000000", Number: 1000000}, active(1000001))

	t.Chdir(filepath.Dir(d.path))
	got, err := Segments("run.jsonl")
	require.NoError(t, err)
	require.Equal(t, "run.jsonl.000001.gz", got[0].Path, "a relative path stays one")
}

func TestReaderReadsTheSegmentsInOrder(t *testing.T) {
	d := three(t)
	r, err := NewReader(d.path, ReaderOptions{})
	require.NoError(t, err)
	text, err := io.ReadAll(iotest.OneByteReader(r))
	require.NoError(t, err)
	require.Equal(t, "a\nb\nc\nd\ntorn", string(text))
	require.Equal(t, Segment{Path: d.path, Number: 3, Active: true}, r.Segment())
	require.NoError(t, r.Close())
	_, err = r.Read(make([]byte, 1))
	require.ErrorIs(t, err, fs.ErrClosed)

	// A closed segment is a log of its own.
	for n, want := range map[string]string{".000001.gz": "a\nb\n", ".000002": "c\n"} {
		r, err := NewReader(d.path+n, ReaderOptions{})
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		require.NoError(t, r.Close())
	}
	_, err = NewReader(d.path+"x", ReaderOptions{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A closed segment may unpack to one endless line: the reader of events reports the line as too
// long, keeps no more of it than a line may have, and reads on in the next segment.
func TestASegmentThatUnpacksToOneLongLine(t *testing.T) {
	size, limit := effort.Of(2, 157, 1570)<<20, effort.Of(1<<20, 0, 0)
	d := newShelf(t)
	text := func(seq int) string {
		ev := event("r", seq)
		line, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		return string(line) + "\n"
	}
	d.add(text(0))
	d.rotate(1)
	d.add(text(1))
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range size >> 20 {
		_, err := zw.Write(chunk)
		require.NoError(t, err)
	}
	require.NoError(t, zw.Close())
	d.remove(d.closed(1))
	require.NoError(t, os.WriteFile(d.closed(1)+".gz", packed.Bytes(), 0o600))

	r, err := NewReader(d.path, ReaderOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var errs []error
	read := 0
	for _, err := range ae.NewReader(r, ae.ReaderOptions{MaxLine: limit}).All() {
		if err != nil {
			errs = append(errs, err)
		} else {
			read++
		}
	}
	runtime.ReadMemStats(&after)
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], fmt.Sprintf("the line has %d bytes, the limit is ", size))
	require.Equal(t, 1, read)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
}

// A segment that somebody cut does not glue its last line to the next one.
func TestReaderEndsATornSegment(t *testing.T) {
	d := three(t)
	require.NoError(t, os.WriteFile(d.closed(2), []byte("c"), 0o600))
	r, err := NewReader(d.path, ReaderOptions{})
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "a\nb\nc\nd\ntorn", string(text))
	require.NoError(t, r.Close())
}

// readOn reads to the end, over errors, which it notes in their place.
func readOn(r io.Reader, dir string) string {
	var b strings.Builder
	p := make([]byte, 100)
	for {
		n, err := r.Read(p)
		b.Write(p[:n])
		if err == io.EOF {
			return b.String()
		}
		if err != nil {
			fmt.Fprintf(&b, "<%s>", strings.TrimPrefix(err.Error(), dir+string(filepath.Separator)))
		}
	}
}

func TestReaderReportsLostLines(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(d *shelf)
		want string
	}{
		"one missing":    {func(d *shelf) { d.rotate(3); d.remove(d.closed(2)); d.add("e\n") }, "a\nb\n<run.jsonl.000002: the segment is missing>d\ntorn\ne\n"},
		"the oldest":     {func(d *shelf) { d.remove(d.closed(1) + ".gz") }, "c\nd\ntorn"},
		"several":        {func(d *shelf) { require.NoError(d.t, os.Rename(d.closed(2), d.closed(12))) }, "a\nb\n<run.jsonl.000002: the segment is missing, and all up to 000011>c\nd\ntorn"},
		"damaged":        {func(d *shelf) { require.NoError(d.t, os.WriteFile(d.closed(1)+".gz", []byte("no gzip data"), 0o600)) }, "<decompress X: gzip: invalid header>c\nd\ntorn"},
		"empty":          {func(d *shelf) { require.NoError(d.t, os.WriteFile(d.closed(1)+".gz", nil, 0o600)) }, "<decompress X: unexpected EOF>c\nd\ntorn"},
		"cut":            {func(d *shelf) { require.NoError(d.t, os.WriteFile(d.closed(1)+".gz", zipped("a\nb")[:16], 0o600)) }, "a\nb\n<decompress X: unexpected EOF>c\nd\ntorn"},
		"only the first": {func(d *shelf) { d.remove(d.closed(2)); d.remove(d.path) }, "a\nb\n"},
		"the newest":     {func(d *shelf) { d.remove(d.closed(2)) }, "a\nb\nd\ntorn"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, follow := range []bool{false, true} {
				d := three(t)
				test.do(d)
				want := strings.ReplaceAll(test.want, "X", d.closed(1)+".gz")
				open := func(report func(error)) io.ReadCloser {
					if follow {
						want = strings.TrimSuffix(want, "torn")
						f, err := Follow(ended(), d.path, FollowOptions{Report: report})
						require.NoError(t, err)
						return f
					}
					r, err := NewReader(d.path, ReaderOptions{Report: report})
					require.NoError(t, err)
					return r
				}
				r := open(nil)
				got := readOn(r, filepath.Dir(d.path))
				if name == "cut" { // how much of it can be read is gzip's business
					require.Regexp(t, `^(a\n(b\n)?)?<decompress .*: unexpected EOF>c\nd\n(torn)?$`, got)
				} else {
					require.Equal(t, want, got)
				}
				require.NoError(t, r.Close())

				var told []error
				r = open(func(err error) { told = append(told, err) })
				text, err := io.ReadAll(r)
				require.NoError(t, err)
				require.Len(t, told, strings.Count(want, "<"))
				require.NotContains(t, string(text), "<")
				require.NoError(t, r.Close())
			}
		})
	}
}

// The rotation of a log while it is read does no harm.
func TestReaderSurvivesRotation(t *testing.T) {
	d := three(t)
	d.add("\n")
	r, err := NewReader(d.path, ReaderOptions{})
	require.NoError(t, err)
	p := make([]byte, 2)
	_, err = io.ReadFull(r, p)
	require.NoError(t, err)
	d.remove(d.closed(1) + ".gz") // it is open
	d.compress(2)
	d.remove(d.closed(2))
	d.rotate(3)
	d.compress(3)
	d.remove(d.closed(3))
	d.add("later\n")
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "b\nc\nd\ntorn\n", string(text), "up to the active segment")
	require.NoError(t, r.Close())

	r, err = NewReader(d.path, ReaderOptions{})
	require.NoError(t, err)
	d.remove(d.closed(2) + ".gz")
	require.Equal(t, "<run.jsonl.000002: the segment is missing>d\ntorn\nlater\n", readOn(r, filepath.Dir(d.path)))
	require.NoError(t, r.Close())
}

func TestFiles(t *testing.T) {
	d := three(t)
	d.rotate(4)
	var got []string
	for f, err := range Files(d.path) {
		var missing *MissingError
		if errors.As(err, &missing) {
			require.Nil(t, f)
			require.Equal(t, MissingError{d.closed(3), 3, 3}, *missing)
			got = append(got, "missing")
			continue
		}
		require.NoError(t, err)
		text, err := io.ReadAll(f)
		require.NoError(t, err)
		got = append(got, fmt.Sprintf("%s %d %v %q", filepath.Base(f.Path), f.Number, f.Compressed, text))
	}
	require.Equal(t, []string{`run.jsonl.000001.gz 1 true "a\nb\n"`, `run.jsonl.000002 2 false "c\n"`, "missing", `run.jsonl.000004 4 false "d\ntorn"`}, got)

	for f, err := range Files(d.path + "x") {
		require.Nil(t, f)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	for f, err := range Files(d.path) {
		require.NoError(t, err)
		require.Equal(t, 1, f.Number)
		break // and it is closed
	}
}

// A segment is found where it is by now.
func TestSegmentOpen(t *testing.T) {
	d := three(t)
	all, err := Segments(d.path)
	require.NoError(t, err)
	d.rotate(3)
	d.add("new\n")
	d.compress(2)
	d.remove(d.closed(2))
	for i, want := range []string{"a\nb\n", "c\n", "d\ntorn"} {
		f, err := all[i].Open()
		require.NoError(t, err)
		text, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		require.NoError(t, f.Close())
	}
	d.remove(d.closed(3))
	_, err = all[2].Open()
	require.NoError(t, err, "the rotation is not reported")
	d.rotate(4)
	_, err = all[2].Open()
	var missing *MissingError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, MissingError{d.closed(3), 3, 3}, *missing)
}

func TestLastLines(t *testing.T) {
	long := strings.Repeat(strings.Repeat("x", 99)+"\n", 10000)
	for _, test := range []struct {
		text   string
		n      int
		offset int64
		lines  int
	}{
		{"", 0, 0, 0}, {"", 3, 0, 0}, {"torn", 0, 0, 0}, {"torn", 1, 0, 0},
		{"a\nb\nc\n", 0, 6, 0}, {"a\nb\nc\n", 1, 4, 1}, {"a\nb\nc\n", 3, 0, 3}, {"a\nb\nc\n", 4, 0, 3},
		{"a\nb\ntorn", 0, 4, 0}, {"a\nb\ntorn", 1, 2, 1}, {"\n\n\n", 2, 1, 2},
		{long, 0, 1e6, 0}, {long, 1, 1e6 - 100, 1}, {long, 7777, 1e6 - 777700, 7777}, {long, 1e6, 0, 10000},
	} {
		offset, lines, err := lastLines(strings.NewReader(test.text), test.n)
		require.NoError(t, err)
		require.Equal(t, []any{test.offset, test.lines}, []any{offset, lines}, "%.20q %d", test.text, test.n)
	}
	_, _, err := lastLines(iotest.ErrReader(io.ErrUnexpectedEOF), 1)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// Skip goes on further in a plain and in a compressed segment, also beyond its end.
func TestSkip(t *testing.T) {
	d := newShelf(t)
	const text = "abcdefgh\n"
	d.add(text)
	d.rotate(1)
	d.compress(1)
	d.remove(d.closed(1))
	d.add(text)
	segments, err := Segments(d.path)
	require.NoError(t, err)
	require.Len(t, segments, 2)
	for _, s := range segments {
		for skip, want := range map[int64]string{0: "bcdefgh\n", 5: "gh\n", 8: "", 1000: ""} {
			f, err := s.Open()
			require.NoError(t, err)
			_, err = io.ReadFull(f, make([]byte, 1))
			require.NoError(t, err)
			require.NoError(t, f.Skip(skip))
			rest, err := io.ReadAll(f)
			require.NoError(t, err)
			require.Equal(t, want, string(rest), "%s, skip %d", s.Path, skip)
			require.NoError(t, f.Close())
		}
	}
}
