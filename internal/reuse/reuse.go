// Package reuse makes many strings and records in few pieces of memory, and makes
// them again in the memory of those that nobody has any more.
package reuse

import "strings"

// A Slab makes strings, many in one piece of memory. A string keeps its piece
// alive. The zero Slab begins with small pieces; Size sets the size of all.
type Slab struct {
	Size int // of the pieces, in bytes; 0 begins with 256 and doubles up to 4 KiB

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

// room makes room for a text of n bytes, in a new piece if need be. It returns
// false when the new piece would waste much of the old one.
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
	size  int // of the next piece
}

// maxFree bounds the records that an Arena keeps.
const maxFree = 256

// Get returns a record. One that was given back is as it was.
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

// Put takes a record back that nobody has any more.
func (a *Arena[T]) Put(r *T) {
	if len(a.free) < maxFree {
		a.free = append(a.free, r)
	}
}

// Lists keeps the memory of lists.
type Lists[T any] struct{ lists [][]T }

// maxLists bounds the lists that Lists keeps.
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

// Put takes the memory of a list that nobody has any more.
func (l *Lists[T]) Put(list []T) {
	if cap(list) > 0 && len(l.lists) < maxLists {
		l.lists = append(l.lists, list[:0])
	}
}

// Buffers keeps the memory of texts that grow.
type Buffers struct {
	spare [][]byte
	size  int
}

const (
	maxSpare     = 64 << 10  // bytes of one buffer
	maxSpareSize = 256 << 10 // bytes of all
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

// Put takes a buffer back, unless it is large or there are many.
func (b *Buffers) Put(buf []byte) {
	if n := cap(buf); n > 0 && n <= maxSpare && b.size+n <= maxSpareSize {
		b.spare = append(b.spare, buf[:0])
		b.size += n
	}
}

// Map returns m without its entries. A large one is let go: to empty it takes as
// long as it is large.
func Map[K comparable, V any](m map[K]V) map[K]V {
	if len(m) > 256 {
		return nil
	}
	clear(m)
	return m
}

// Small returns the memory of b for another use, unless it is much.
func Small(b []byte) []byte {
	if cap(b) > 4<<10 {
		return nil
	}
	return b[:0]
}
