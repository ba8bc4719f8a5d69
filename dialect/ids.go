package dialect

import (
	"strings"

	"github.com/agentevents/agentevents/dialect/internal/recent"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// DerivedID returns an id for an event whose line has none: the text of a UUID of
// version 8. part numbers the events of the line. number is the line's number, or
// anything else that tells equal lines apart. Equal arguments give equal ids, and
// different ones different ids.
func DerivedID(line string, number, part int) string {
	return jsonwire.UUID(derived(line, number, part))
}

// IDs derives the ids of a log like [DerivedID]. Up to 16 ids share a piece of
// memory: keeping one id keeps the piece. The zero IDs is ready. It must not be
// copied.
type IDs struct {
	piece strings.Builder
	line  string // of the latest id: a line may be many events
	hash  uint64 // of it
}

// idPiece is the number of ids that share a piece of memory.
const idPiece = 16

// Release lets go of the line of the latest id.
func (m *IDs) Release() { m.line = "" }

// Derived returns DerivedID(line, number, part).
func (m *IDs) Derived(line string, number, part int) string {
	if m.piece.Cap()-m.piece.Len() < jsonwire.LenUUID {
		m.piece.Reset()
		m.piece.Grow(idPiece * jsonwire.LenUUID)
	}
	var text [jsonwire.LenUUID]byte
	if m.line != line || line == "" {
		m.line, m.hash = line, jsonwire.Hash(line)
	}
	a, b := mixed(m.hash, number, part)
	jsonwire.PutUUID(&text, a, b)
	start := m.piece.Len()
	m.piece.Write(text[:])
	return m.piece.String()[start:]
}

func derived(line string, number, part int) (uint64, uint64) {
	return mixed(jsonwire.Hash(line), number, part)
}

func mixed(h uint64, number, part int) (uint64, uint64) {
	a := mix(h + uint64(number)*0x9e3779b97f4a7c15)
	b := mix(a ^ h ^ uint64(part+1)*0xd6e8feb86659fd93)
	a = a&^(0xf<<12) | 8<<12 // version
	b = b&^(3<<62) | 2<<62   // variant
	return a, b
}

// mix spreads the bits of x over the word.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Numbers gives the events of each run sequence numbers from 0. It forgets a run after [MaxCalls]
// others or more. The zero Numbers is ready.
type Numbers struct {
	runs recent.Map[string, *numbered] // the latest; one that is used stays
	last *numbered
}

type numbered struct {
	run  string
	next uint64
}

// Peek returns the number that Next would return, without using it up. It is the
// number to report for a line that is refused.
func (n *Numbers) Peek(runID string) uint64 {
	if p := n.runs.Of(runID); p != nil {
		return p.next
	}
	return 0
}

// Next returns the next number of a run.
func (n *Numbers) Next(runID string) uint64 {
	if p := n.last; p == nil || p.run != runID {
		if n.last, _ = n.runs.Use(runID); n.last == nil {
			n.last = &numbered{run: strings.Clone(runID)} // do not keep the whole line alive
			n.runs.Set(n.last.run, n.last)
		}
	}
	n.last.next++
	return n.last.next - 1
}
