package lines

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/agentevents/agentevents/internal/disk"
)

const (
	// MaxPending bounds the bytes that a Writer keeps for a destination that fails.
	MaxPending = 16 << 20
	maxSpare   = 1 << 20 // bytes of memory that a Writer keeps, unless its buffer is larger
)

// A Writer writes lines. When the destination fails, the unwritten bytes are kept, and written
// first once it works again: a passing failure tears no line. It is not for concurrent use.
type Writer struct {
	w       io.Writer
	limit   int    // of the buffer
	pending []byte // accepted and not written yet
}

// NewWriter returns a writer to w. buffer is how many bytes may wait before they are
// written.
func NewWriter(w io.Writer, buffer int) *Writer { return &Writer{w: w, limit: buffer} }

// Put takes a line if it need not be written yet, and reports whether it did.
func (w *Writer) Put(line []byte) bool {
	if len(w.pending)+len(line)+1 >= w.limit {
		return false
	}
	w.pending = append(append(w.pending, line...), '\n')
	return true
}

// Write takes a line. It refuses it while MaxPending bytes and more are held back.
func (w *Writer) Write(line []byte) error {
	if len(w.pending) > 0 && len(w.pending)+len(line) >= max(w.limit, MaxPending) {
		if err := w.Flush(); err != nil {
			return fmt.Errorf("the line is lost: %w", err)
		}
	}
	w.pending = append(append(w.pending, line...), '\n')
	if len(w.pending) < w.limit {
		return nil
	}
	return w.Flush()
}

// Flush writes the pending bytes and keeps those that could not be written.
func (w *Writer) Flush() error {
	if len(w.pending) == 0 {
		return nil
	}
	n, err := w.w.Write(w.pending)
	if n < 0 || n > len(w.pending) {
		n = 0
		if err == nil {
			err = errors.New("agentevents: invalid count from Write")
		}
	}
	if err == nil && n < len(w.pending) {
		err = io.ErrShortWrite
	}
	if n > 0 { // a full disk takes nothing, and pending may be long
		w.pending = append(w.pending[:0], w.pending[n:]...)
	}
	if len(w.pending) == 0 && cap(w.pending) > max(maxSpare, 2*w.limit) {
		w.pending = nil
	}
	return err
}

// Pending returns how many bytes are not written yet.
func (w *Writer) Pending() int { return len(w.pending) }

// Discard forgets the pending bytes and returns their number.
func (w *Writer) Discard() int {
	n := len(w.pending)
	w.pending = nil
	return n
}

// EndLine ends a line that the destination ends in the middle of, before the next
// one is written.
func (w *Writer) EndLine() { w.pending = append(w.pending, '\n') }

// OpenFile opens a file to append to, which is created if need be, for its owner only. It
// follows no link that somebody else has made. torn means that it ends in the middle of a line.
func OpenFile(path string) (f *os.File, torn bool, err error) {
	f, err = disk.OpenOurs(path, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, false, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		var last [1]byte
		_, err = f.ReadAt(last[:], info.Size()-1)
		torn = last[0] != '\n'
	}
	if err != nil {
		f.Close()
		return nil, false, err
	}
	return f, torn, nil
}
