package agentevents

import (
	crand "crypto/rand"
	"math/rand/v2"
	"strings"
	"time"
)

// An idSource mints the event ids of one run: UUIDv7 text, increasing, cut
// from a slab so that an event does not cost an allocation. google/uuid's
// NewV7 takes three times as long and a process-wide lock: BenchmarkEventID.
type idSource struct {
	slab strings.Builder
	rng  *rand.ChaCha8
	last int64 // milliseconds of the last id
	seq  uint16

	text    [uuidLen]byte
	written int64 // milliseconds that text has
}

const (
	uuidLen  = 36
	slabSize = 64 * uuidLen
)

// next returns an id for an event at t.
func (s *idSource) next(t time.Time) string {
	if s.rng == nil {
		var seed [32]byte
		_, _ = crand.Read(seed[:]) // never fails: crypto/rand ends the program instead
		s.rng = rand.NewChaCha8(seed)
	}
	ms := t.UnixMilli()
	if ms > s.last {
		s.last = ms
		s.seq = uint16(s.rng.Uint64()) & 0x7ff // leaves room to count up
	} else {
		// The same millisecond, or a clock that went back: count on.
		if s.seq++; s.seq > 0xfff {
			s.last++
			s.seq = 0
		}
	}
	if s.slab.Cap()-s.slab.Len() < uuidLen {
		s.slab = strings.Builder{}
		s.slab.Grow(slabSize)
	}
	if s.last != s.written || s.text[8] == 0 {
		// The first 13 characters are the time, the same for a millisecond.
		s.written = s.last
		putHex(s.text[0:8], uint64(s.last)>>16, 8)
		s.text[8] = '-'
		putHex(s.text[9:13], uint64(s.last), 4)
		s.text[13], s.text[14], s.text[18], s.text[23] = '-', '7', '-', '-'
	}
	putHex(s.text[15:18], uint64(s.seq), 3)
	random := s.rng.Uint64()&^(3<<62) | 2<<62
	putHex(s.text[19:23], random>>48, 4)
	putHex(s.text[24:36], random, 12)
	start := s.slab.Len()
	s.slab.Write(s.text[:])
	return s.slab.String()[start:]
}

// putHex writes the low digits of v to dst.
func putHex(dst []byte, v uint64, digits int) {
	const hex = "0123456789abcdef"
	for i := digits - 1; i >= 0; i-- {
		dst[i] = hex[v&15]
		v >>= 4
	}
}
