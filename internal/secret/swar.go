package secret

import (
	"math/bits"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A text is looked at eight bytes at a time, as one little-endian word.
const (
	lo = 0x0101010101010101
	hi = 0x8080808080808080
)

// load32 is jsonwire.Load64 for four bytes.
func load32(s string, i int) uint32 {
	b := s[i : i+4]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// short is the length of the texts in which all marks are looked for at once. In longer
// ones a search for each costs less.
const short = 64

// marked returns a word with a bit for each mark in a text from i on, where at most short
// bytes are: see place. A '5' has one, and a byte that is not ASCII may. It reports whether
// there is a digit or a capital letter: all tokens and cards have one.
func marked(text string, i int) (m uint64, odd bool) {
	o, j := uint64(0), uint(0)
	left := text[i:]
	for ; len(left) >= 8; left = left[8:] {
		w := jsonwire.Load64(left, 0)
		m |= marksOf(w) >> (j & 7)
		o |= oddOf(w)
		j++
	}
	if left != "" {
		w := rest(text, len(text)-len(left))
		m |= marksOf(w) >> (j & 7)
		o |= oddOf(w)
	}
	return m, o&hi != 0
}

// oddOf returns a word with a top bit for bytes from '0' to 'Z' and perhaps ones that are
// not ASCII.
func oddOf(w uint64) uint64 {
	w &= lo * 0x7F
	return (w + lo*(0x80-'0')) &^ (w + lo*(0x80-'Z'-1))
}

// calm reports that all bytes of a text of at least eight bytes are ASCII, and none is a mark,
// a digit or a capital letter.
func calm(text string) bool {
	busy := jsonwire.Busy(jsonwire.Load64(text, len(text)-8))
	for ; len(text) > 8; text = text[8:] {
		busy |= jsonwire.Busy(jsonwire.Load64(text, 0))
	}
	return busy&hi == 0
}

// rest returns the bytes from i on, which are less than eight.
func rest(text string, i int) (w uint64) {
	n := len(text)
	switch {
	case n >= 8:
		return jsonwire.Load64(text, n-8) >> (-8 * (n - i) & 63)
	case n-i >= 4:
		return uint64(load32(text, i)) | uint64(load32(text, n-4))<<(8*(n-i-4)&63)
	case n > i:
		return uint64(text[i]) | uint64(text[(i+n)/2])<<(8*((n-i)/2)&63) | uint64(text[n-1])<<(8*(n-i-1)&63)
	}
	return 0
}

// marksOf returns a word with the top bit of each byte of w that is a mark or '5'. That, '%', '-'
// and '=' differ in two bits, ':' and 'z' in one. No byte of the subtrahend is above 0x80: nothing
// is borrowed.
func marksOf(w uint64) uint64 {
	return ((hi - (w&(lo*0x67) ^ lo*'%')) | (hi - (w&(lo*0x3F) ^ lo*':')) | (hi - (w&(lo*0x7F) ^ lo*'|'))) & hi
}

// place returns where the byte of the lowest bit of m is: byte k of word j has bit
// 8*k+7-j.
func place(m uint64) int {
	b := bits.TrailingZeros64(m)
	return b/8 + 8*(7-b%8)
}

// broken returns a word whose lowest top bit marks the first byte of w that cannot belong to a
// token: one that is not ASCII from '+' on.
func broken(w uint64) uint64 { return ((w - lo*'+') | w) & hi }

// stride returns the next place, in steps from i on, where eight characters may be of a
// token, or two of a card, as far as the eight on each side show it. It looks at none of which
// the text has not so many.
func stride(text string, i int) int {
	left := text[min(i, len(text)):]
	for len(left) > step+8 {
		w := jsonwire.Load64(left, 0)
		if broken(w) != 0 && w&0xE0E0 != 0x2020 {
			left = left[step:]
			continue
		}
		i := len(text) - len(left)
		if i < 8 {
			break
		}
		before := jsonwire.Load64(text, i-8)
		if w&0xE0E0 == 0x2020 { // with six more on one side
			if broken(w) == 0 || noCard(w) == 0 || noCard(before)>>16 == 0 {
				break
			}
		} else if broken(before) == 0 || broken(jsonwire.Load64(left, 8)) == 0 ||
			broken(jsonwire.Load64(text, i-4))|broken(jsonwire.Load64(left, 4)) == 0 {
			break // with eight more on one side, or four on both
		}
		left = left[step:]
	}
	return len(text) - len(left)
}

// noCard returns a word with bits in each byte of w that cannot be of a card.
func noCard(w uint64) uint64 { return (w ^ lo*0x20) & (lo * 0xE0) }

// cardLike reports whether the last six bytes of w may be of a card.
func cardLike(w uint64) bool { return noCard(w)>>16 == 0 }
