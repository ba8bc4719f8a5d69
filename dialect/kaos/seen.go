package kaos

// maxSeen is how many of the latest lines are surely remembered.
const maxSeen = 1 << 13

// seen remembers the sequences of the latest lines by their hashes. A sequence may
// repeat, so that only the identical line is the same event: a stream that begins again
// where it broke off has some lines twice. A line without a time or a sequence may be
// two events.
type seen struct{ young, old map[uint64]int64 }

// find returns the sequence of an identical line, if there was one.
func (s *seen) find(hash uint64) (sequence int64, ok bool) {
	if sequence, ok = s.young[hash]; !ok {
		sequence, ok = s.old[hash]
	}
	return sequence, ok
}

// add remembers a line, and forgets the oldest ones.
func (s *seen) add(hash uint64, sequence int64) {
	if len(s.young) == maxSeen {
		s.young, s.old = s.old, s.young
		clear(s.young)
	}
	if s.young == nil {
		s.young = map[uint64]int64{}
	}
	s.young[hash] = sequence
}
