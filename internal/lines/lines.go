// Package lines reads and writes lines. A [Reader] accepts byte order marks, CRLF,
// blank lines and a missing final newline, and steps over lines that are too long. A
// [Writer] writes lines whole.
package lines

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"

	"github.com/agentevents/agentevents/internal/chain"
)

// ByteOrderMark begins text files of some programs. It has no meaning in UTF-8.
const ByteOrderMark = "\xef\xbb\xbf"

// A Pos is the place of a line.
type Pos struct {
	Line   int   // its number, from 1
	Offset int64 // of its first byte
}

// A Reader reads lines. It is not for concurrent use.
type Reader struct {
	in    *bufio.Reader
	max   int
	pos   Pos
	next  int64 // offset of the next line
	long  []byte
	ended bool
}

// NewReader returns a reader of lines up to max bytes. The two members of a chain do not count.
func NewReader(r io.Reader, max int) *Reader {
	size := int64(64 << 10)
	if f, ok := r.(interface{ Stat() (fs.FileInfo, error) }); ok { // many sessions have small files
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() < size {
			size = min(info.Size()+1, 16<<10)
		}
	}
	return &Reader{in: bufio.NewReaderSize(r, int(size)), max: max}
}

// Reset makes the reader one of another input, with the same memory.
func (r *Reader) Reset(in io.Reader) {
	r.in.Reset(in)
	r.pos, r.next, r.ended = Pos{}, 0, false
}

// Pos returns the place of the line that was read last.
func (r *Reader) Pos() Pos { return r.pos }

// After returns the text after the line that was read last, as far as it is in memory. It is
// valid until the next call of Next.
func (r *Reader) After() []byte {
	text, err := r.in.Peek(r.in.Buffered())
	if err != nil {
		return nil
	}
	return text
}

// Ended reports whether there are no more lines. When Next has returned a line, it
// had no newline.
func (r *Reader) Ended() bool { return r.ended }

// A TooLongError means that a line was skipped.
type TooLongError struct {
	Size, Max int // in bytes, without the end of the line
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the line has %d bytes, the limit is %d", e.Size, e.Max)
}

// Next returns the next line that is not blank, without its end, and nil when there
// is none. It is valid until the next call. After a [*TooLongError] reading goes on;
// any other error is the input's and ends it.
func (r *Reader) Next() ([]byte, error) {
	for !r.ended {
		if line, err := r.read(); err != nil || !blank(line) {
			return line, err
		}
	}
	return nil, nil
}

func blank(line []byte) bool {
	return len(line) == 0 || line[0] != '{' && len(bytes.TrimSpace(line)) == 0
}

// read returns the next line, blank or not.
func (r *Reader) read() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if err == io.EOF && len(line) == 0 {
		r.ended = true // no line follows the newline of the last one
		return nil, nil
	}
	r.pos.Line++
	r.pos.Offset = r.next
	r.next += int64(len(line))
	skipped := 0
	if err == bufio.ErrBufferFull {
		r.long = append(r.long[:0], line...)
		for err == bufio.ErrBufferFull {
			line, err = r.in.ReadSlice('\n')
			r.next += int64(len(line))
			if len(r.long)-chain.Size-len("\r\n") <= r.max {
				r.long = append(r.long, line...)
			} else {
				skipped += len(bytes.TrimRight(line, "\r\n"))
			}
		}
		line = r.long
	}
	r.ended = err != nil
	if err != nil && err != io.EOF {
		return nil, err
	}
	if rest, ok := bytes.CutPrefix(line, []byte(ByteOrderMark)); ok { // on any line: files may be joined
		line = rest
		r.pos.Offset += int64(len(ByteOrderMark))
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) > r.max && (skipped > 0 || chain.Len(line) > r.max) {
		return nil, &TooLongError{len(line) + skipped, r.max}
	}
	return line, nil
}
