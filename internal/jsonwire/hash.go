package jsonwire

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Hash returns a 64-bit hash of text that is the same in every process and on
// every machine. It tells texts apart that differ by accident; it does not
// resist forgery.
func Hash[T ~string | ~[]byte](text T) uint64 {
	const (
		k0 = 0x9e3779b97f4a7c15
		k1 = 0xd6e8feb86659fd93
		k2 = 0xa0761d6478bd642f
		k3 = 0xe7037ed1a0b428db
	)
	n := len(text)
	h := uint64(n) * k0
	// Independent lanes: multiplications overlap.
	a, b := h^k2, h^k3
	rest := text
	if n >= 128 {
		c, d := h^k0, h^k1
		for len(rest) >= 64 {
			a = mix(a^word(rest, 0), word(rest, 8)^k1)
			b = mix(b^word(rest, 16), word(rest, 24)^k2)
			c = mix(c^word(rest, 32), word(rest, 40)^k3)
			d = mix(d^word(rest, 48), word(rest, 56)^k0)
			rest = rest[64:]
		}
		a, b = mix(a, c^k1), mix(b, d^k2)
	}
	for len(rest) >= 32 {
		a = mix(a^word(rest, 0), word(rest, 8)^k1)
		b = mix(b^word(rest, 16), word(rest, 24)^k2)
		rest = rest[32:]
	}
	h = a ^ bits.RotateLeft64(b, 23)
	for len(rest) >= 8 {
		h = mix(h^word(rest, 0), k1)
		rest = rest[8:]
	}
	var tail uint64
	if n >= 8 { // the last eight bytes without those that were taken
		tail = word(text, n-8) >> (8 * (8 - len(rest)))
	} else {
		for i := range len(rest) {
			tail |= uint64(rest[i]) << (8 * i)
		}
	}
	return mix(h^tail, k3)
}

// Mix returns a hash of two hashes.
func Mix(a, b uint64) uint64 { return mix(a^0x8ebc6af09c88c6e3, b^0x589965cc75374cc3) }

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// word is Load64 for either kind of text.
func word[T ~string | ~[]byte](text T, i int) uint64 {
	b := text[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// AppendHex appends the 16 hexadecimal digits of v, in lower case.
func AppendHex(dst []byte, v uint64) []byte {
	n := len(dst)
	b := dst[:cap(dst)]
	if len(b)-n < 16 {
		b = growTo(dst, 16)
	}
	to := b[n : n+16]
	binary.LittleEndian.PutUint64(to, hexDigits8(v>>32))
	binary.LittleEndian.PutUint64(to[8:], hexDigits8(v&math.MaxUint32))
	return b[:n+16]
}

// LenUUID is the length of the text of a UUID.
const LenUUID = 36

// UUID returns the text of the UUID of these bits.
func UUID(a, b uint64) string {
	var text [LenUUID]byte
	PutUUID(&text, a, b)
	return string(text[:])
}

// PutUUID writes the text of the UUID of these bits to text.
func PutUUID(text *[LenUUID]byte, a, b uint64) {
	a0, a1 := hexDigits8(a>>32), hexDigits8(a&math.MaxUint32)
	b0, b1 := hexDigits8(b>>32), hexDigits8(b&math.MaxUint32)
	const dash = '-'
	// 01234567-0123-4567-0123-456701234567
	binary.LittleEndian.PutUint64(text[0:], a0)
	binary.LittleEndian.PutUint64(text[8:], dash|a1<<32>>24|dash<<40|a1>>32<<48)
	binary.LittleEndian.PutUint64(text[16:], a1>>48|dash<<16|b0<<32>>8|dash<<56)
	binary.LittleEndian.PutUint64(text[24:], b0>>32|b1<<32)
	binary.LittleEndian.PutUint32(text[32:], uint32(b1>>32))
}

// hexDigits8 returns the eight digits of a 32-bit number as a little-endian word.
func hexDigits8(v uint64) uint64 {
	// Each half byte gets a byte of its own, the first digit the lowest one.
	v = (v | v<<16) & 0x0000FFFF0000FFFF
	v = (v | v<<8) & 0x00FF00FF00FF00FF
	v = (v | v<<4) & (lo * 0x0F)
	letters := (v + lo*6) >> 4 & lo
	return bits.ReverseBytes64(v + lo*'0' + letters*('a'-'0'-10))
}
