package multiagent

import "github.com/agentevents/agentevents/internal/jsonwire"

// Window is the number of lines within which a [Decoder] notices a line that was
// delivered again.
const Window = 1024

// repeats are the latest lines with ids, by the hashes of their bytes.
type repeats struct {
	seen map[uint64]struct{}
	last []uint64 // a ring once it is full
	next int
}

// has reports whether the line is among the latest ones. hash is for add.
func (r *repeats) has(line []byte) (hash uint64, again bool) {
	hash = jsonwire.Hash(line)
	_, again = r.seen[hash]
	return hash, again
}

func (r *repeats) add(hash uint64) {
	if r.seen == nil {
		r.seen = map[uint64]struct{}{}
	}
	r.seen[hash] = struct{}{}
	if len(r.last) < Window {
		r.last = append(r.last, hash)
		return
	}
	delete(r.seen, r.last[r.next])
	r.last[r.next] = hash
	r.next = (r.next + 1) % Window
}
