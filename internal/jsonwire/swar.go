package jsonwire

import (
	"math/bits"
	"unicode/utf8"
)

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

// Load64 returns s[i:i+8] as a little-endian word. The compiler turns it into
// one load.
func Load64(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// nonPlain returns a word whose lowest set bit marks the first byte of w that
// cannot stand in a JSON string as it is, or needs a look: a quote, a backslash,
// a control character, or a byte of 0x80 and above. It is 0 if there is none.
//
// With bit 1 flipped the quote is 0x20 and the space is 0x22, and the control
// characters only change places, so one comparison finds them and the quote.
func nonPlain(w uint64) uint64 { return nonPlainBits(w) & hi }

// nonPlainBits is nonPlain before the bits that mean nothing are taken away, for
// a caller that puts several words together first.
func nonPlainBits(w uint64) uint64 {
	return ((w ^ lo*2) - lo*0x21) | ((w ^ lo*'\\') - lo) | w
}

// endings is nonPlain for quotes and control characters, and perhaps bytes that Busy knows.
func endings(w uint64) uint64 { return ((w ^ lo*2) - lo*0x21) & hi }

// Busy returns a word with a top bit if w has a byte that is '%', '-', from '0' to '\\', from 'z'
// on or not ASCII. '%' and '-' differ in one bit. The additions have no carry, unless a byte is not
// ASCII.
func Busy(w uint64) uint64 {
	return (w+lo*(0x80-'0'))&^(w+lo*(0x80-'\\'-1)) | (hi - (w&(lo*0xF7) ^ lo*'%')) | (w + lo*(0x80-'z')) | w
}

// plainLen returns the number of bytes at the start of s that stand for
// themselves in a JSON string and are ASCII.
func plainLen(s string) int {
	i := 0
	for i+8 <= len(s) {
		if m := nonPlain(Load64(s, i)); m != 0 {
			return i + firstByte(m)
		}
		if i += 8; i == 16 { // a long string: four words at a time
			for i+32 <= len(s) {
				w := s[i : i+32]
				if (nonPlainBits(Load64(w, 0))|nonPlainBits(Load64(w, 8))|
					nonPlainBits(Load64(w, 16))|nonPlainBits(Load64(w, 24)))&hi != 0 {
					break
				}
				i += 32
			}
		}
	}
	for i < len(s) && s[i] < utf8.RuneSelf && !endsRun(s[i]) {
		i++
	}
	return i
}

// allNonPlain is nonPlain with the top bit of every such byte set and no other: it adds the
// complement to 0x80 to seven bits of each byte, so nothing is carried into the next byte.
func allNonPlain(w uint64) uint64 {
	v := w &^ hi
	return (^(((v ^ lo*2) + lo*(0x80-0x21)) & ((v ^ lo*'\\') + lo*0x7F)) | w) & hi
}

// firstByte returns the index of the byte that holds the lowest set bit of m.
func firstByte(m uint64) int { return bits.TrailingZeros64(m) / 8 }

// endsRun reports whether c ends a plain run inside a JSON string: a quote, a
// backslash or a control character.
func endsRun(c byte) bool { return c < 0x20 || c == '"' || c == '\\' }

// ValidUTF8 is utf8.ValidString for text that is mostly short and ASCII.
func ValidUTF8(s string) bool {
	var seen uint64
	if n := len(s); n >= 8 {
		i := 0
		for ; i+32 <= n; i += 32 {
			w := s[i : i+32]
			seen |= Load64(w, 0) | Load64(w, 8) | Load64(w, 16) | Load64(w, 24)
		}
		for ; i < n-8; i += 8 {
			seen |= Load64(s, i)
		}
		seen |= Load64(s, n-8)
	} else {
		for i := range n {
			seen |= uint64(s[i])
		}
	}
	return seen&hi == 0 || utf8.ValidString(s)
}

// FirstCharacters returns the length of the first n characters of s, or of all of s if it is
// shorter. A byte that is not UTF-8 counts as one character.
func FirstCharacters(s string, n int) int {
	i := 0
	for i+8 <= min(len(s), n) && Load64(s, i)&hi == 0 {
		i += 8
	}
	n -= i
	for j := range s[i:] {
		if n == 0 {
			return i + j
		}
		n--
	}
	return len(s)
}

// FirstBytes returns the length of the longest beginning of s, of whole characters, that
// [AppendString] writes in n bytes, without the quotes.
func FirstBytes(s string, n int) int {
	for i, r := range s {
		size := utf8.RuneLen(r)
		if esc := escapeOf[s[i]]; esc != 0 {
			size = int(esc >> 56)
		}
		if n -= size; n < 0 {
			return i
		}
	}
	return len(s)
}

// lastWord returns the last n bytes of s, of which there are 1 to 7, as a word,
// filled up with spaces.
func lastWord(s string, n int) uint64 {
	fill := uint64(lo*' ') << (n * 8 & 63)
	if len(s) >= 8 {
		return Load64(s, len(s)-8)>>(-n*8&63) | fill
	}
	s = s[len(s)-n:]
	if n >= 4 {
		return load32(s, 0) | load32(s, n-4)<<(n*8-32&63) | fill
	}
	return uint64(s[0]) | uint64(s[n/2])<<(n/2*8&63) | uint64(s[n-1])<<(n*8-8&63) | fill
}

// load32 is Load64 for four bytes.
func load32(s string, i int) uint64 {
	b := s[i : i+4]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24
}

// runeSize returns the number of bytes of the character that w starts with, if
// that is valid UTF-8 and not ASCII, and otherwise 0.
func runeSize(w uint64) int {
	switch {
	case w&0xC0E0 == 0x80C0: // two bytes
		if w&0x1E != 0 { // not a long form of ASCII
			return 2
		}
	case w&0xC0C0F0 == 0x8080E0: // three bytes
		// The first ten of sixteen bits decide whether the character needs three bytes and is not a
		// surrogate.
		if r := w&0xF<<6 | w>>8&0x3F; r >= 0x800>>6 && r>>5 != 0xD800>>11 {
			return 3
		}
	case w&0xC0C0C0F8 == 0x808080F0: // four bytes
		if r := w&7<<6 | w>>8&0x3F; r-0x10000>>12 < 0x100000>>12 {
			return 4
		}
	}
	return 0
}
