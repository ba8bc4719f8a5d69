// Package reuse saves allocations. It makes many strings and records in one piece
// of memory, and keeps memory that is not in use any more for the next use.
package reuse

import "strings"

// A Slab makes strings, many in one piece of memory. A string keeps its piece
// alive. The zero Slab is ready to use.
type Slab struct {
	Size int // size of every piece in bytes; 0 means 256, doubling up to 4 KiB

	b strings.Builder
}

const (
	minPiece = 256
	maxPiece = 4 << 10
)

// Clone returns a copy of the text.
func (s *Slab) Clone(text string) string {
	if !s.room(len(text)) {
		return strings.Clone(text)
	}
	start := s.b.Len()
	s.b.WriteString(text)
	return s.b.String()[start:]
}

// String returns the text as a string.
func (s *Slab) String(text []byte) string {
	if !s.room(len(text)) {
		return string(text)
	}
	start := s.b.Len()
	s.b.Write(text)
	return s.b.String()[start:]
}

// room makes room for n bytes, in a new piece if necessary. It returns false if n
// is large compared to a piece: then a string of its own wastes less memory.
func (s *Slab) room(n int) bool {
	if s.b.Cap()-s.b.Len() >= n {
		return true
	}
	size := s.Size
	if size == 0 {
		size = min(max(2*s.b.Cap(), minPiece), maxPiece)
	}
	if n > size/4 {
		return false
	}
	s.b = strings.Builder{}
	s.b.Grow(size)
	return true
}

// An Arena makes records of a type, several in one piece of memory.
type Arena[T any] struct {
	piece []T
	free  []*T
	size  int // number of records in the last piece
}

// maxFree is how many free records an Arena keeps.
const maxFree = 256

// Get returns a record: a new one, or one given to Put, as it was then.
func (a *Arena[T]) Get() *T {
	if n := len(a.free); n > 0 {
		r := a.free[n-1]
		a.free = a.free[:n-1]
		return r
	}
	if len(a.piece) == 0 {
		a.size = min(max(2*a.size, 1), 16)
		a.piece = make([]T, a.size)
	}
	r := &a.piece[0]
	a.piece = a.piece[1:]
	return r
}

// Put takes back a record that is not in use any more.
func (a *Arena[T]) Put(r *T) {
	if len(a.free) < maxFree {
		a.free = append(a.free, r)
	}
}

// Lists keeps the memory of lists for other lists.
type Lists[T any] struct{ lists [][]T }

// maxLists is how many lists Lists keeps.
const maxLists = 16

// Get returns an empty list.
func (l *Lists[T]) Get() []T {
	n := len(l.lists)
	if n == 0 {
		return nil
	}
	list := l.lists[n-1]
	l.lists = l.lists[:n-1]
	return list
}

// Put takes back a list that is not in use any more.
func (l *Lists[T]) Put(list []T) {
	if cap(list) > 0 && len(l.lists) < maxLists {
		l.lists = append(l.lists, list[:0])
	}
}

// Buffers keeps the memory of growing texts for other texts.
type Buffers struct {
	spare [][]byte
	size  int
}

const (
	maxSpare     = 64 << 10  // size of the largest buffer that is kept, in bytes
	maxSpareSize = 256 << 10 // size of all buffers that are kept, in bytes
)

// Get returns an empty buffer.
func (b *Buffers) Get() []byte {
	n := len(b.spare)
	if n == 0 {
		return make([]byte, 0, 512)
	}
	buf := b.spare[n-1]
	b.spare = b.spare[:n-1]
	b.size -= cap(buf)
	return buf
}

// Put takes back a buffer. It drops one that is too large, or too much with the
// others.
func (b *Buffers) Put(buf []byte) {
	if n := cap(buf); n > 0 && n <= maxSpare && b.size+n <= maxSpareSize {
		b.spare = append(b.spare, buf[:0])
		b.size += n
	}
}

// Map returns m without its entries, or nil if m is large: clearing a large map
// takes long.
func Map[K comparable, V any](m map[K]V) map[K]V {
	if len(m) > 256 {
		return nil
	}
	clear(m)
	return m
}

// Small returns b with length 0, or nil if b takes more than 4 KiB.
func Small(b []byte) []byte {
	if cap(b) > 4<<10 {
		return nil
	}
	return b[:0]
}
