// Package chain links the lines of a log: each line has the hash of the line before it and its own,
// so that a line that is changed, removed, inserted or moved shows.
//
// A chained line is a JSON object that ends, byte for byte, in
//
//	,"prev":"<64 hex digits>","hash":"<64 hex digits>"}
//
// in lower case. Prev is the hash of the line before in the order of the file, also of another run
// and in an earlier segment of the log. The first line has zeros. Hash is the SHA-256 of the line's
// bytes before `,"hash":`, so it covers prev, and with it everything before. The two members belong
// to the file, not to the event: readers remove them. Members of these names in any other form are
// the event's own.
//
// The head of a log is the hash of its last line that was synced, kept in a file of its own:
// without it, lines removed at the end do not show.
//
// A chain has no key. Anybody who can write the whole rest of the log and its head can make a chain
// that holds.
package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// A Hash is the SHA-256 of a line. The zero Hash stands before the first line.
type Hash [sha256.Size]byte

// String returns the hash as 64 hexadecimal digits in lower case.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash reads only the form that String returns.
func ParseHash(text string) (Hash, bool) { return parseHash(text) }

func parseHash[T string | []byte](text T) (h Hash, ok bool) {
	if len(text) != digits {
		return Hash{}, false
	}
	for i := range h {
		hi, lo := nibble[text[2*i]], nibble[text[2*i+1]]
		if hi|lo > 0xf {
			return Hash{}, false
		}
		h[i] = hi<<4 | lo
	}
	return h, true
}

// nibble has the value of each digit in lower case, and 0xff for other bytes.
var nibble = func() (t [256]byte) {
	for c := range t {
		t[c] = 0xff
	}
	for i, c := range "0123456789abcdef" {
		t[c] = byte(i)
	}
	return t
}()

const (
	digits  = 2 * sha256.Size
	prev    = `,"prev":"`
	hash    = `","hash":"` // begins with the end of prev's value
	hashLen = len(hash) - 1 + digits + len(`"}`)

	head = `{"hash":"`
	end  = "\"}\n"

	// Size is by how many bytes a line grows when it is chained.
	Size = len(prev) + digits + len(hash) + digits + len(`"`)
	// HeadSize is the length of a head in bytes.
	HeadSize = len(head) + digits + len(end)
)

// A Link is the place of a chained line.
type Link struct {
	Prev Hash // of the line before
	Hash Hash // of the line itself
}

// Append appends the line, chained to the one with the hash before, to dst, and returns
// its hash too. The line is a JSON object that is not empty, without a newline. Append
// does not allocate when dst has room for the line and [Size] bytes.
func Append(dst, line []byte, before Hash) ([]byte, Hash) {
	start := len(dst)
	dst = append(dst, line[:len(line)-1]...)
	dst = append(dst, prev...)
	dst = hex.AppendEncode(dst, before[:])
	sum := Hash(sha256.Sum256(append(dst, '"')[start:]))
	dst = append(dst, hash...)
	dst = hex.AppendEncode(dst, sum[:])
	return append(dst, `"}`...), sum
}

// find returns the link of a line that is given without its last brace, and the length of the text
// before the link, 0 without a link. Most lines are told by their last byte.
func find[T string | []byte](body T) (int, Link) {
	n := len(body) - Size
	if n < len(`{"":0`) || body[len(body)-1] != '"' {
		return 0, Link{}
	}
	tail := body[n:]
	if string(tail[:len(prev)]) != prev || string(tail[len(prev)+digits:][:len(hash)]) != hash {
		return 0, Link{}
	}
	p, ok := parseHash(tail[len(prev):][:digits])
	h, also := parseHash(tail[len(prev)+digits+len(hash):][:digits])
	if !ok || !also {
		return 0, Link{}
	}
	return n, Link{p, h}
}

// body returns the line without its last brace, and nothing when it has none.
func body[T string | []byte](line T) T {
	if n := len(line) - 1; n > 0 && line[n] == '}' {
		return line[:n]
	}
	return line[:0]
}

// Find returns the link of a line, and false when the line is not chained. It does not
// check the hash: see [Link.Holds].
func Find(line []byte) (Link, bool) {
	n, l := find(body(line))
	return l, n > 0
}

// Holds reports whether the link, which [Find] returned for the line, has the hash of
// the line.
func (l Link) Holds(line []byte) bool {
	return l.Hash == Hash(sha256.Sum256(line[:len(line)-hashLen]))
}

// Cut returns the line as it was before [Append], and its link; ok is false and rest is
// the line when it is not chained.
func Cut(line string) (rest string, l Link, ok bool) {
	n, l := find(body(line))
	if n == 0 {
		return line, l, false
	}
	return line[:n] + "}", l, true
}

// Len returns the length of the text of the line's event.
func Len(line []byte) int {
	if n := event(line); n > 0 {
		return n + 1
	}
	return len(line)
}

// event returns the length of the text of an event without its last brace, and 0 when
// the line is not chained. A line that was chained twice has two links, and none is the
// event's own: written again it would be taken for one of the file.
func event(line []byte) (length int) {
	b := body(line)
	for {
		n, _ := find(b)
		if n == 0 {
			return length
		}
		b, length = b[:n], n
	}
}

// Text returns the text of the line's event: the line without links.
func Text(line []byte) string {
	if n := event(line); n > 0 {
		return string(line[:n]) + "}"
	}
	return string(line)
}

// Strip is [Text] for a caller that owns the line: it writes to it.
func Strip(line []byte) []byte {
	n := event(line)
	if n == 0 {
		return line
	}
	line[n] = '}'
	return line[:n+1]
}

// Unstrip undoes Strip, which returned the first n bytes of the line.
func Unstrip(line []byte, n int) {
	if n < len(line) {
		line[n-1] = ','
	}
}

// Own keeps members of the line dst[start:] that look like a link apart from one: they are
// an event's own, and a reader must not take them off. It writes a space into them.
func Own(dst []byte, start int) []byte {
	if event(dst[start:]) == 0 {
		return dst
	}
	return slices.Insert(dst, len(dst)-hashLen+1, ' ')
}

// AppendHead appends the head of a log whose last line has the hash, with a newline, to
// dst: [HeadSize] bytes.
func AppendHead(dst []byte, last Hash) []byte {
	dst = append(dst, head...)
	dst = hex.AppendEncode(dst, last[:])
	return append(dst, end...)
}

// ParseHead reads only the form that [AppendHead] writes.
func ParseHead(text []byte) (Hash, bool) {
	if len(text) != HeadSize || string(text[:len(head)]) != head || string(text[len(head)+digits:]) != end {
		return Hash{}, false
	}
	return parseHash(text[len(head) : len(head)+digits])
}
