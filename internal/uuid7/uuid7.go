// Package uuid7 mints UUIDs of version 7 as text, without an allocation for each.
package uuid7

import (
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"
)

// A Source mints increasing ids, cut from a slab so that an id does not cost an
// allocation. google/uuid's NewV7 takes three times as long and a process-wide lock:
// BenchmarkEventID. The zero Source is ready to use; it is not for concurrent use.
type Source struct {
	slab strings.Builder
	rng  *rand.ChaCha8
	last int64 // milliseconds of the last id
	seq  uint16
}

const (
	uuidLen  = 36
	slabSize = 64 * uuidLen
	maxSeq   = 0xfff // of the 12 bits after the time
)

// Next returns an id for the time t.
func (s *Source) Next(t time.Time) string {
	if s.rng == nil {
		var seed [32]byte
		_, _ = crand.Read(seed[:]) // never fails: crypto/rand ends the program instead
		s.rng = rand.NewChaCha8(seed)
		s.seq = maxSeq
	}
	// In one millisecond, or when the clock goes back, the sequence counts on.
	if ms := t.UnixMilli(); ms > s.last || s.seq == maxSeq {
		s.last = max(ms, s.last+1)
		s.seq = uint16(s.rng.Uint64()) & (maxSeq >> 1) // leaves room to count up
	} else {
		s.seq++
	}
	if s.slab.Cap()-s.slab.Len() < uuidLen {
		s.slab = strings.Builder{}
		s.slab.Grow(slabSize)
	}
	var text [uuidLen]byte
	putUUID(&text, uint64(s.last)<<16|7<<12|uint64(s.seq), s.rng.Uint64()&^(3<<62)|2<<62)
	start := s.slab.Len()
	s.slab.Write(text[:])
	return s.slab.String()[start:]
}

// putUUID writes the text of a UUID, of which high and low are the halves.
func putUUID(text *[uuidLen]byte, high, low uint64) {
	copy(text[:], "        -    -    -    -")
	le := binary.LittleEndian
	le.PutUint64(text[0:], hexDigits(high>>32))
	digits := hexDigits(high)
	le.PutUint32(text[9:], uint32(digits))
	le.PutUint32(text[14:], uint32(digits>>32))
	digits = hexDigits(low >> 32)
	le.PutUint32(text[19:], uint32(digits))
	le.PutUint32(text[24:], uint32(digits>>32))
	le.PutUint64(text[28:], hexDigits(low))
}

// hexDigits returns the eight hexadecimal digits of the low half of v, the first
// in the lowest byte.
func hexDigits(v uint64) uint64 {
	const ones = 0x0101010101010101
	v = v&0xffff<<32 | v>>16&0xffff
	v = v&0x000000ff000000ff<<16 | v>>8&0x000000ff000000ff
	v = v&0x000f000f000f000f<<8 | v>>4&0x000f000f000f000f
	letters := (v + 6*ones) >> 4 & ones // 1 in every byte above 9
	return v + '0'*ones + letters*('a'-'9'-1)
}
