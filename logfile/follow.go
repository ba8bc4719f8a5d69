package logfile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/agentevents/agentevents/internal/option"
)

// DefaultPoll is the shortest time between two looks of a [Follower] at a log that does not
// grow: 100 ms.
const DefaultPoll = 100 * time.Millisecond

// slowdown is how many times Poll the longest time between two looks is.
const slowdown = 10

// minRoom is the size in bytes of the smallest buffer.
const minRoom = 64 << 10

// maxWhole is the length in bytes above which a line is handed on in parts: no log that the
// library writes has one.
const maxWhole = 64 << 20

// The reports of a [Follower] about changes of the active segment by another program than its
// writer. They are the Err of an [fs.PathError].
var (
	// ErrTruncated means that the file is shorter than it was, or has another text: it is read from
	// its beginning. Lines that were appended since the last look are lost.
	ErrTruncated = errors.New("the file was truncated or written over; it is read again from its beginning")
	// ErrReplaced means that another file is in place of the active segment, without a number. The
	// old one was read to its end, the new one is read from its beginning.
	ErrReplaced = errors.New("the file was replaced by another, which is read from its beginning")
)

// FollowOptions configure a [Follower]. The zero FollowOptions follow a log from its first
// line.
type FollowOptions struct {
	// Last is the number of last whole lines to begin with, over all segments. 0 begins with the
	// oldest segment. A negative number reads only lines that are written from now on. If the log
	// does not exist yet, all lines come.
	Last int
	// First is the number of the segment to begin with; 0 is the oldest one. A number above the
	// active segment's is an error. It has no effect unless Last is 0 and the log exists.
	First int `least:"0"`
	// Poll is the shortest time between two looks at a log that does not grow; 0 means
	// [DefaultPoll]. While nothing comes the time doubles, up to ten times Poll.
	Poll time.Duration `least:"0"`
	// Idle is called when all whole lines that there are were handed on, before Read waits;
	// once, until there are more. nil does nothing. Read calls it.
	Idle func()
	// Report is told of losses and unusual states: a [*MissingError], the error of a closed segment
	// that is damaged, [ErrTruncated], [ErrReplaced], and [fs.ErrNotExist] when the active segment
	// is removed; it is waited for then. Following goes on. nil makes Read return such an error;
	// the next Read goes on. Read calls Report.
	Report func(error)
}

// A Follower reads a log that is still being written: its segments one after another, and at the
// end of the active one it waits for more. It hands on whole lines only, each once and in order,
// also when the log is rotated several times between two looks, when closed segments are
// compressed, and when one is removed after the Follower has opened it. A segment that was removed
// before is a [*MissingError].
//
// Read blocks until there are lines. Once the context ends it hands on those that are there and
// then returns [io.EOF], so a program that closes its log and ends the context afterwards misses
// none. No goroutine is started: the Follower looks at the files only during Read.
//
// Logs of other writers are followed too: [agentevents.OpenFile], a shell's >>. A line that
// is longer than 64 MiB comes in parts.
//
// A Follower is not for concurrent use; only its context may end at any time.
type Follower struct {
	ctx  context.Context
	path string
	o    FollowOptions

	n        int   // the number of the segment that is read or comes next; 0 is the oldest
	begin    int64 // where to begin in it
	f        *File // nil when the next one is to be opened
	off      int64 // in f, after the whole lines in buf
	end      byte  // the one before off
	final    bool  // nothing is appended to f any more
	replaced bool  // the file after f has the same number
	gone     bool  // the missing active segment was reported

	buf    []byte // bytes that were read and not handed on
	whole  int    // so many bytes of it are whole lines
	at     Segment
	mem    []byte // where buf is
	room   int    // how much of it fill needs; 0 means minRoom
	wait   time.Duration
	idle   bool // Idle was called
	closed bool
}

// Follow returns a follower of the log at path, which need not exist yet.
func Follow(ctx context.Context, path string, o FollowOptions) (*Follower, error) {
	if err := option.Check("logfile.FollowOptions", o); err != nil {
		return nil, err
	}
	if newSegment(path, 0, true).Compressed {
		return nil, &fs.PathError{Op: "follow", Path: path, Err: errors.New("it is compressed, so nothing is appended to it")}
	}
	o.Poll = cmp.Or(o.Poll, DefaultPoll)
	path = written(path)
	f := &Follower{ctx: ctx, path: path, o: o}
	segments, err := Segments(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if o.Last == 0 {
		if n := len(segments); n > 0 && o.First > segments[n-1].Number {
			return nil, fmt.Errorf("logfile: %s has no segment %d, the last one is %d", path, o.First, segments[n-1].Number)
		} else if n > 0 {
			f.n = o.First
		}
		return f, nil
	}
	need := max(o.Last, 0)
	for i := len(segments) - 1; i >= 0; i-- {
		s, err := segments[i].Open()
		if err != nil {
			break // it was removed, or Read returns why it cannot be opened
		}
		var lines int
		f.begin, lines, err = lastLines(s, need)
		s.Close()
		f.n = segments[i].Number
		if need -= lines; need == 0 || err != nil {
			break
		}
	}
	return f, nil
}

// Segment returns the segment that the last Read came from. One Read is never from two.
func (f *Follower) Segment() Segment { return f.at }

// Read waits for whole lines and reads as much of them as p takes. See [FollowOptions] for its
// treatment of losses. Other errors, as of a file that may not be opened, come each time.
func (f *Follower) Read(p []byte) (int, error) {
	for f.whole == 0 && len(p) > 0 {
		if f.closed {
			return 0, fs.ErrClosed
		}
		ended := f.ctx.Err() != nil // before the look, which then is the last one
		more, err := f.look()
		var told *notice
		switch {
		case errors.As(err, &told) && f.o.Report != nil:
			f.o.Report(told.error)
		case told != nil:
			return 0, told.error
		case err != nil:
			return 0, err
		case more:
		case ended:
			return 0, io.EOF
		default:
			f.pause()
		}
	}
	n := copy(p, f.buf[:f.whole])
	f.buf, f.whole = f.buf[n:], f.whole-n
	f.wait, f.idle = 0, false
	return n, nil
}

// A notice is an error that following goes on after.
type notice struct{ error }

// pause waits before the next look.
func (f *Follower) pause() {
	if !f.idle && f.o.Idle != nil {
		f.o.Idle()
	}
	f.idle = true
	f.wait = min(max(2*f.wait, f.o.Poll), slowdown*f.o.Poll)
	t := time.NewTimer(f.wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.ctx.Done():
	}
}

// Close closes the file that is open.
func (f *Follower) Close() error {
	f.closed, f.whole = true, 0
	if f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}

// look takes one step: it opens a file, or reads some of it, or checks its state. It reports
// whether there may be more. There is nothing whole in buf.
func (f *Follower) look() (bool, error) {
	if f.f == nil {
		return f.open()
	}
	if !f.final && !f.unchanged() {
		f.off = 0
		return true, &notice{&fs.PathError{Op: "follow", Path: f.path, Err: ErrTruncated}}
	}
	n, err := f.fill()
	if n > 0 || err == nil {
		return true, nil
	}
	if !f.final {
		if err != io.EOF {
			return false, err
		}
		return f.ask()
	}
	// The file ends here, or is damaged here.
	if len(f.buf) > 0 {
		f.buf = append(f.buf, '\n') // nobody completes the line
		f.whole = len(f.buf)
		return true, nil // the error comes again
	}
	f.f.Close()
	f.f = nil
	if f.replaced && !f.gone {
		err = &fs.PathError{Op: "follow", Path: f.path, Err: ErrReplaced}
	}
	switch {
	case !f.replaced:
		f.n++
	case !isClosed(f.path, f.n-1):
		f.n = 0 // it is another log: its numbers begin anew
	}
	f.replaced = false
	if err != io.EOF {
		return true, &notice{err}
	}
	return true, nil
}

// open opens the next segment.
func (f *Follower) open() (bool, error) {
	file, err := open(f.path, f.n)
	var missing *MissingError
	switch {
	case errors.As(err, &missing):
		f.n, f.begin = missing.Last+1, 0
		return true, &notice{missing}
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	if _, err := io.CopyN(io.Discard, file, f.begin); err != nil && err != io.EOF {
		file.Close()
		return false, err
	}
	f.f, f.n, f.off, f.end, f.begin = file, file.Number, f.begin, '\n', 0
	f.at = file.Segment
	f.final, f.gone = !file.Active, false
	return true, nil
}

// fill reads some of the file. Of one that is appended to it keeps whole lines only: the
// writer may cut off a torn end at any time, and write another line there.
func (f *Follower) fill() (int, error) {
	if !f.final {
		if err := f.rewind(); err != nil {
			return 0, err
		}
	}
	had := len(f.buf)
	f.room = max(f.room, minRoom)
	if cap(f.buf)-had < f.room {
		if len(f.mem) < had+f.room {
			f.mem = make([]byte, had+f.room)
		}
		f.buf = f.mem[:copy(f.mem, f.buf)]
	}
	n, err := f.f.Read(f.buf[had:cap(f.buf)])
	f.buf = f.buf[:had+n]
	switch i := bytes.LastIndexByte(f.buf[had:], '\n'); {
	case i >= 0:
		f.whole, f.room = had+i+1, 0
	case len(f.buf) > maxWhole:
		f.whole = len(f.buf)
	case !f.final && n < cap(f.buf) && err == nil:
		n, err = 0, io.EOF // it ends in the middle of a line
	default:
		f.room = 2 * len(f.buf)
	}
	if f.whole > 0 {
		f.off += int64(f.whole)
		f.end = f.buf[f.whole-1]
	}
	if !f.final {
		f.buf = f.buf[:f.whole]
	}
	return n, err
}

// ask checks the state of the active segment, which was read to its end.
func (f *Follower) ask() (bool, error) {
	if err := f.rewind(); err != nil {
		return false, err
	}
	was, err := f.f.file.Stat()
	if err != nil {
		return false, err
	}
	is, err := os.Stat(f.path)
	if err == nil && os.SameFile(was, is) {
		f.gone = false
		return false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	// A closed segment has its number before there is a new active one.
	later, lerr := firstClosed(f.path, f.n)
	switch {
	case lerr == nil && later > 0:
		f.final = true
	case err == nil:
		f.final, f.replaced = true, true
	case f.gone:
		return false, nil
	default:
		f.gone = true
		return true, &notice{&fs.PathError{Op: "follow", Path: f.path,
			Err: fmt.Errorf("the file was removed; it is waited for: %w", fs.ErrNotExist)}}
	}
	return true, nil // lines that were appended before come first
}

// unchanged reports whether the byte before the read position is still the same. A truncated file
// lacks it.
func (f *Follower) unchanged() bool {
	var b [1]byte
	if f.off == 0 {
		return true
	}
	_, err := f.f.file.ReadAt(b[:], f.off-1)
	return err == nil && b[0] == f.end
}

// rewind goes back to the end of the last whole line of the active segment.
func (f *Follower) rewind() error {
	f.buf = f.buf[:0]
	_, err := f.f.file.Seek(f.off, io.SeekStart)
	return err
}
