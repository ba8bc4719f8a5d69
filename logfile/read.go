package logfile

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/disk"
)

// This file finds the files of a log, and reads them in their order.

const (
	compressedSuffix = ".gz"
	lockSuffix       = ".lock"
)

// written returns the path that a log is written by: a link to a file that a [Log] writes,
// which has a lock beside it, stands for that file. Other links are kept, because closed
// segments may lie beside them, as in stores that name files by their hash.
func written(path string) string {
	to := disk.Resolve(path)
	if _, err := os.Stat(to + lockSuffix); err != nil {
		return path
	}
	return to
}

// A Segment is one file of a log.
type Segment struct {
	// Path is where the file is, or was when it was listed: a closed segment gets another
	// name when it is compressed.
	Path string
	// Number counts segments from 1. The active segment has the number that it gets when it is
	// closed.
	Number int
	// Active means that lines may be appended: it is the log's own path.
	Active bool
	// Compressed means that the file holds gzip data.
	Compressed bool
}

func newSegment(path string, n int, active bool) Segment {
	return Segment{Path: path, Number: n, Active: active, Compressed: strings.HasSuffix(path, compressedSuffix)}
}

// Open opens the segment for reading, wherever it is by now: an active segment may be closed, and a
// plain one compressed. If it was removed and later ones are there, the error is a [*MissingError];
// if none is, it is [fs.ErrNotExist].
func (s Segment) Open() (*File, error) {
	base := s.Path
	if !s.Active {
		base, _, _ = cutNumber(s.Path)
	}
	return open(base, s.Number)
}

// A MissingError reports segments that are missing although later ones exist: somebody removed
// them, or retention did before they were read. Their lines are lost to the reader.
type MissingError struct {
	Path        string // of the first of them, when it was not compressed
	First, Last int    // their numbers
}

// Error names the first of the segments.
func (e *MissingError) Error() string {
	if e.First == e.Last {
		return e.Path + ": the segment is missing"
	}
	return fmt.Sprintf("%s: the segment is missing, and all up to %06d", e.Path, e.Last)
}

// Segments lists the files of a log: the closed segments, oldest first, and the active one last. If
// a segment exists both plain and compressed, the plain file is listed. A gap in the numbers is not
// an error here: retention and people remove segments. Without any file the error is
// [fs.ErrNotExist]. A log of one file, by whatever writer, is one active segment. Path may name a
// closed segment: it is the only one of its own log then. It may be a symbolic link to the file of
// a [Log].
func Segments(path string) ([]Segment, error) {
	path = written(path)
	for {
		numbers, err := closedNumbers(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		next := 1
		var all []Segment
		for _, n := range numbers {
			s := newSegment(closedPath(path, n), n, false)
			if _, err := os.Stat(s.Path); err != nil {
				s = newSegment(s.Path+compressedSuffix, n, false)
			}
			all = append(all, s)
			next = n + 1
		}
		_, err = os.Stat(path)
		if later, lerr := firstClosed(path, next); lerr == nil && later > 0 {
			continue // it was rotated meanwhile
		}
		switch {
		case err == nil:
			return append(all, newSegment(path, next, true)), nil
		case errors.Is(err, fs.ErrNotExist) && len(all) > 0:
			return all, nil // as in the middle of a rotation
		}
		return nil, err
	}
}

func closedPath(path string, n int) string { return fmt.Sprintf("%s.%06d", path, n) }

// cutNumber splits the path of a closed segment.
func cutNumber(closed string) (path string, n int, ok bool) {
	closed = strings.TrimSuffix(closed, compressedSuffix)
	dot := strings.LastIndexByte(closed, '.')
	digits := closed[dot+1:]
	if dot < 0 || len(digits) < 6 || len(digits) > 6 && digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
		return "", 0, false
	}
	n, err := strconv.Atoi(digits)
	return closed[:dot], n, err == nil && n > 0
}

// closedNumbers returns the numbers of the closed segments, in order.
func closedNumbers(path string) ([]int, error) {
	base := filepath.Base(path)
	found := map[int]bool{}
	for range 2 { // one listing may lack a file that gets its other name meanwhile
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if of, n, ok := cutNumber(e.Name()); ok && of == base {
				found[n] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// isClosed reports whether there is a closed segment of this number. When the plain file
// goes, the compressed one is there.
func isClosed(path string, n int) bool {
	for _, suffix := range [...]string{"", compressedSuffix} {
		if _, err := os.Stat(closedPath(path, n) + suffix); err == nil {
			return true
		}
	}
	return false
}

// firstClosed returns the least number of a closed segment, from n on; 0 without one.
func firstClosed(path string, n int) (int, error) {
	numbers, err := closedNumbers(path)
	if err != nil {
		return 0, err
	}
	for _, m := range numbers {
		if m >= n {
			return m, nil
		}
	}
	return 0, nil
}

// A File is an open segment. Read decompresses it.
type File struct {
	Segment
	file *os.File
	r    io.Reader
}

// Read reads the lines of the segment, as text. A torn last line comes as it is. Only one
// goroutine may read.
func (f *File) Read(p []byte) (int, error) {
	if f.r == nil {
		return 0, agentevents.ErrZeroValue
	}
	return f.r.Read(p)
}

// Skip goes on n bytes further in the text of the segment. Beyond its end Read returns
// [io.EOF].
func (f *File) Skip(n int64) error {
	if !f.Compressed {
		_, err := f.file.Seek(n, io.SeekCurrent)
		return err
	}
	_, err := io.CopyN(io.Discard, f.r, n)
	if err == io.EOF {
		return nil
	}
	return err
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// open opens the segment n, or the oldest if n is 0. The error is a [*MissingError] if only
// later ones are there, and [fs.ErrNotExist] if none is.
func open(path string, n int) (*File, error) {
	if n == 0 {
		first, err := firstClosed(path, 1)
		if err != nil {
			return nil, err
		}
		n = cmp.Or(first, 1)
	}
	for {
		// The compressed file is there before the plain one goes.
		for _, suffix := range [...]string{"", compressedSuffix} {
			f, err := openFile(newSegment(closedPath(path, n)+suffix, n, false))
			if !errors.Is(err, fs.ErrNotExist) {
				return f, err
			}
		}
		f, err := openFile(newSegment(path, n, true))
		// The file is segment n if that was not closed before the file was opened.
		later, lerr := firstClosed(path, n)
		if lerr == nil && later == 0 {
			return f, err
		}
		if f != nil {
			f.Close()
		}
		switch {
		case lerr != nil:
			return nil, lerr
		case later > n && !isClosed(path, n):
			return nil, &MissingError{Path: closedPath(path, n), First: n, Last: later - 1}
		}
	}
}

func openFile(s Segment) (*File, error) {
	file, err := openShared(s.Path)
	if err != nil {
		return nil, err
	}
	f := &File{Segment: s, file: file, r: file}
	if s.Compressed {
		f.r = &gunzip{file: file}
	}
	return f, nil
}

// openShared opens a file so that it can be renamed and removed meanwhile. On Windows
// os.Open does not allow that.
func openShared(path string) (*os.File, error) {
	if runtime.GOOS == "windows" {
		if f, err := os.OpenInRoot(filepath.Dir(path), filepath.Base(path)); err == nil {
			return f, nil
		}
	}
	return os.Open(path)
}

// A gunzip decompresses a file. Its errors name the file, and come again.
type gunzip struct {
	file *os.File
	zr   *gzip.Reader
	err  error
}

func (g *gunzip) Read(p []byte) (n int, err error) {
	if g.err != nil {
		return 0, g.err
	}
	if g.zr == nil {
		if g.zr, err = gzip.NewReader(g.file); err == io.EOF { // an empty file is damaged, too
			err = io.ErrUnexpectedEOF
		}
	}
	if err == nil {
		n, err = g.zr.Read(p)
	}
	if err != nil && err != io.EOF {
		err = &fs.PathError{Op: "decompress", Path: g.file.Name(), Err: err}
	}
	g.err = err
	return n, err
}

// Files opens the segments of a log one after another, oldest first. The last one is the segment
// that is active when the loop begins. Files closes each segment before it opens the next one, so
// the loop need not close them. A segment that is open stays readable when it is compressed, rotated
// or removed. An error is about one segment, or is a [*MissingError] about one or more; the next
// segments follow it. If the log has no file, the only error is [fs.ErrNotExist].
//
// A [Reader] reads the log as one text. Files is for programs that need the position of a line.
func Files(path string) iter.Seq2[*File, error] {
	return func(yield func(*File, error) bool) {
		w := walk{path: written(path)}
		if err := w.begin(); err != nil {
			yield(nil, err)
			return
		}
		for {
			f, err := w.next()
			if err == io.EOF {
				return
			}
			more := yield(f, err)
			if f != nil {
				f.Close()
			}
			if !more {
				return
			}
		}
	}
}

// A walk opens the segments of a log one after another.
type walk struct {
	path    string
	n, last int // numbers of the next segment and of the last one
}

// begin lists the segments.
func (w *walk) begin() error {
	segments, err := Segments(w.path)
	if err != nil {
		return err
	}
	w.n, w.last = segments[0].Number, segments[len(segments)-1].Number
	return nil
}

// next opens the next segment. After an error other than io.EOF there may be more.
func (w *walk) next() (*File, error) {
	if w.n > w.last {
		return nil, io.EOF
	}
	f, err := open(w.path, w.n)
	w.n++
	if missing, ok := err.(*MissingError); ok {
		missing.Last = min(missing.Last, w.last) // later ones are outside the files that are read
		w.n = missing.Last + 1
	}
	return f, err
}

// ReaderOptions configure a [Reader]. The zero ReaderOptions are usable.
type ReaderOptions struct {
	// Report is told of losses: a [*MissingError], or the error of a closed segment that is damaged
	// or cannot be opened, whose rest is left out. nil makes Read return such an error; the next
	// Read goes on after it. Read calls Report.
	Report func(error)
}

// A Reader reads the text of a log: its segments one after another, oldest first, up to the
// end of the one that was active when the Reader was made. That segments are compressed,
// rotated or removed meanwhile does no harm as long as they are not removed before they are
// opened. A torn line at the end comes as it is; a segment before it that does not end with
// a newline gets one, so that no lines are glued.
//
// A Reader is not for concurrent use.
type Reader struct {
	walk   walk
	o      ReaderOptions
	f      *File // nil before the next one is opened
	at     Segment
	torn   bool // the part of f that was read does not end with a newline
	closed bool
}

// NewReader returns a reader of the log at path. The error is [fs.ErrNotExist] when there is
// neither an active segment nor a closed one.
func NewReader(path string, o ReaderOptions) (*Reader, error) {
	r := &Reader{walk: walk{path: written(path)}, o: o}
	if err := r.walk.begin(); err != nil {
		return nil, err
	}
	return r, nil
}

// Segment returns the segment that the last Read came from.
func (r *Reader) Segment() Segment { return r.at }

// Read reads from one segment. See [ReaderOptions] for its treatment of losses.
func (r *Reader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, fs.ErrClosed
	}
	for len(p) > 0 {
		n, err := r.read(p)
		if n > 0 || err == io.EOF || err != nil && r.o.Report == nil {
			return n, err
		}
		if err != nil {
			r.o.Report(err)
		}
	}
	return 0, nil
}

// read reads from the open segment, or opens the next one.
func (r *Reader) read(p []byte) (int, error) {
	if r.f == nil {
		f, err := r.walk.next()
		r.f = f
		return 0, err
	}
	r.at = r.f.Segment
	n, err := r.f.Read(p)
	if n > 0 {
		r.torn = p[n-1] != '\n'
		return n, nil // an error comes again
	}
	if err == nil {
		return 0, nil
	}
	if r.torn && r.walk.n <= r.walk.last {
		r.torn = false
		p[0] = '\n'
		return 1, nil
	}
	r.torn = false
	r.f.Close()
	r.f = nil
	if err == io.EOF {
		err = nil // the next one is opened
	}
	return 0, err
}

// Close closes the file that is open. Reading goes on no more.
func (r *Reader) Close() error {
	r.closed = true
	if r.f == nil {
		return nil
	}
	err := r.f.Close()
	r.f = nil
	return err
}

// lastLines returns the offset at which the last n whole lines begin, and how many there
// are, n at most. A line without a newline is not whole.
func lastLines(r io.Reader, n int) (offset int64, lines int, err error) {
	ends := []int64{0} // of the last n+1 lines, and of nothing
	buf := make([]byte, 64<<10)
	read := int64(0)
	for {
		k, err := r.Read(buf)
		for rest := buf[:k]; ; {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			rest = rest[i+1:]
			if ends = append(ends, read+int64(k-len(rest))); len(ends) > 2*(n+1) {
				ends = append(ends[:0], ends[len(ends)-(n+1):]...)
			}
		}
		read += int64(k)
		if err != nil {
			ends = ends[max(0, len(ends)-(n+1)):]
			if err == io.EOF {
				err = nil
			}
			return ends[0], len(ends) - 1, err
		}
	}
}
