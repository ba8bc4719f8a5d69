package secret

import "math/bits"

// A text is looked at eight bytes at a time, as one little-endian word.
const (
	lo = 0x0101010101010101
	hi = 0x8080808080808080
)

// load64 returns s[i:i+8] as a word. The compiler turns it into one load.
func load64(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// load32 is load64 for four bytes.
func load32(s string, i int) uint32 {
	b := s[i : i+4]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// short is the length of the texts in which all marks are looked for at once. In longer
// ones a search for each costs less.
const short = 64

// marked returns a word with a bit for each mark in a text from i on, where at most short
// bytes are: see place. A byte that is not ASCII may have one, too. It reports whether
// there is a digit or a capital letter: all tokens and cards have one.
func marked(text string, i int) (m uint64, odd bool) {
	o, j := uint64(0), uint(0)
	for ; i+8 <= len(text); i += 8 {
		w := load64(text, i)
		m |= marksOf(w) >> (j & 7)
		o |= oddOf(w)
		j++
	}
	if i < len(text) {
		w := rest(text, i)
		m |= marksOf(w) >> (j & 7)
		o |= oddOf(w)
	}
	return m, o&hi != 0
}

// oddOf returns a word with a top bit for bytes from '0' to '_' and perhaps ones that are
// not ASCII.
func oddOf(w uint64) uint64 {
	w &= lo * 0x7F
	return (w + lo*(0x80-'0')) &^ (w + lo*(0x80-'_'-1))
}

// rest returns the bytes from i on, which are less than eight.
func rest(text string, i int) (w uint64) {
	n := len(text)
	switch {
	case n >= 8:
		return load64(text, n-8) >> (-8 * (n - i) & 63)
	case n-i >= 4:
		return uint64(load32(text, i)) | uint64(load32(text, n-4))<<(8*(n-i-4)&63)
	case n > i:
		return uint64(text[i]) | uint64(text[(i+n)/2])<<(8*((n-i)/2)&63) | uint64(text[n-1])<<(8*(n-i-1)&63)
	}
	return 0
}

// marksOf returns a word with the top bit of each byte of w that is a mark. '-' and '='
// differ in one bit, and so do ':' and 'z'. What is subtracted has no byte of more than
// 0x80: nothing is borrowed.
func marksOf(w uint64) uint64 {
	return ((hi - (w&(lo*0x6F) ^ lo*'-')) | (hi - (w&(lo*0x3F) ^ lo*':'))) & hi
}

// place returns where the byte of the lowest bit of m is: byte k of word j has bit
// 8*k+7-j.
func place(m uint64) int {
	b := bits.TrailingZeros64(m)
	return b/8 + 8*(7-b%8)
}

// unbroken reports whether each byte of w may be of a token: is ASCII from '+' on. Of those
// that are not, the lowest is told exactly.
func unbroken(w uint64) bool { return broken(w) == 0 }

func broken(w uint64) uint64 { return ((w - lo*'+') | w) & hi }

// alone reports whether the eight characters at i, which are unbroken, are of a run of less
// than n such characters, as far as the eight on each side show it.
func alone(text string, i, n int) bool {
	if i > 0 && i < 8 || i+16 > len(text) {
		return false
	}
	before, behind := 0, bits.TrailingZeros64(broken(load64(text, i+8)))/8
	if i > 0 { // the highest is needed: nothing is borrowed
		w := load64(text, i-8)
		before = bits.LeadingZeros64((^((w|hi)-lo*'+')|w)&hi) / 8
	}
	return before < 8 && behind < 8 && before+8+behind < n
}
