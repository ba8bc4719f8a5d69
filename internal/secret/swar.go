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
// bytes are, and for each byte that is one more: see place. A byte that is not ASCII may
// have one, too.
func marked(text string, i int, more byte) (m uint64) {
	also := lo * uint64(more)
	j := uint(0)
	for ; i+8 <= len(text); i += 8 {
		m |= marksOf(load64(text, i), also) >> (j & 7)
		j++
	}
	if i < len(text) {
		return m | marksOf(rest(text, i), also)>>(j&7)
	}
	return m
}

// rest returns the bytes from i on, which are less than eight.
func rest(text string, i int) (w uint64) {
	if len(text) >= 8 {
		return load64(text, len(text)-8) >> (64 - 8*(len(text)-i))
	}
	for k := len(text) - 1; k >= i; k-- {
		w = w<<8 | uint64(text[k])
	}
	return w
}

// marksOf returns a word with the top bit of each byte of w that is a mark or one of also.
// '-' and '=' differ in one bit. What is subtracted has no byte of more than 0x80: nothing
// is borrowed.
func marksOf(w, also uint64) uint64 {
	w &= lo * 0x7F
	return ((hi - (w&^(lo*0x10) ^ lo*'-')) | (hi - (w ^ lo*':')) | (hi - (w ^ lo*'z')) | (hi - (w ^ also))) & hi
}

// place returns where the byte of the lowest bit of m is: byte k of word j has bit
// 8*k+7-j.
func place(m uint64) int {
	b := bits.TrailingZeros64(m)
	return b/8 + 8*(7-b%8)
}

// unbroken reports whether each byte of w may be of a token: is ASCII from '+' on. Of those
// that are not, the lowest is told exactly.
func unbroken(w uint64) bool { return ((w-lo*'+')|w)&hi == 0 }

// alone reports whether the eight characters at i, which are unbroken, are of a run of less
// than n such characters, as far as the eight on each side show it.
func alone(text string, i, n int) bool {
	if i < 8 || i+16 > len(text) {
		return false
	}
	before, behind := load64(text, i-8), load64(text, i+8)
	first := bits.LeadingZeros64((^((before|hi)-lo*'+')|before)&hi) / 8 // the highest is needed: nothing is borrowed
	last := bits.TrailingZeros64(((behind-lo*'+')|behind)&hi) / 8
	return first < 8 && last < 8 && first+8+last < n
}
