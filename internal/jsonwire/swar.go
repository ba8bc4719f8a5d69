package jsonwire

import "math/bits"

// The scanning loops look at eight bytes at a time, as one little-endian word.
//
// In a word w whose byte b is below 0x80, the top bit of b in w-lo*n is set
// exactly if b < n, provided no lower byte borrowed. A byte borrows only if it
// is itself below n, so the lowest flagged byte is always right, and that is
// the only one used. Equality with c is the same test on w^(lo*c) with n = 1.
const (
	lo = 0x0101010101010101
	hi = 0x8080808080808080
)

// load64 returns s[i:i+8] as a little-endian word. The compiler turns it into
// one load.
func load64(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// stringEnders returns a word whose lowest set bit marks the first byte of w
// that ends a plain run inside a JSON string: a quote, a backslash or a control
// character. It is 0 if there is none. Bytes of 0x80 and above are plain.
func stringEnders(w uint64) uint64 {
	return ((w - lo*0x20) | ((w ^ lo*'"') - lo) | ((w ^ lo*'\\') - lo)) &^ w & hi
}

// nonPlain is stringEnders that also marks bytes of 0x80 and above.
func nonPlain(w uint64) uint64 {
	return ((w - lo*0x20) | ((w ^ lo*'"') - lo) | ((w ^ lo*'\\') - lo) | w) & hi
}

// firstByte returns the index of the byte that holds the lowest set bit of m.
func firstByte(m uint64) int { return bits.TrailingZeros64(m) / 8 }

// endsRun is stringEnders for one byte.
func endsRun(c byte) bool { return c < 0x20 || c == '"' || c == '\\' }
