package jsonwire

import (
	"encoding/binary"
	"math/bits"
)

// AppendInt appends v to dst as a JSON number and returns the extended slice.
func AppendInt(dst []byte, v int64) []byte {
	if v < 0 {
		return AppendUint(append(dst, '-'), -uint64(v))
	}
	return AppendUint(dst, uint64(v))
}

// AppendUint is AppendInt for numbers that have no sign. Its digits are stored
// where they stay: strconv's are put together elsewhere and copied at once, for
// which the processor waits longer than for all the rest.
func AppendUint(dst []byte, v uint64) []byte {
	if v < 10 {
		return append(dst, byte('0'+v))
	}
	size := bits.Len64(v) * 1233 >> 12 // its digits, or one less
	if v >= powersOf10[size] {
		size++
	}
	n := len(dst)
	b := dst[:cap(dst)]
	if len(b)-n < maxDigits {
		b = growTo(dst, maxDigits)
	}
	i := n + size
	for v >= 100 {
		q := v / 100
		i -= 2
		binary.LittleEndian.PutUint16(b[i:], uint16(digits2(uint32(v-q*100))))
		v = q
	}
	if v >= 10 {
		binary.LittleEndian.PutUint16(b[n:], uint16(digits2(uint32(v))))
	} else {
		b[n] = byte('0' + v)
	}
	return b[:n+size]
}

// maxDigits is how many digits a number of 64 bits has at most.
const maxDigits = 20

var powersOf10 = [maxDigits]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}
