package agentevents

import (
	"iter"
	"slices"
)

// A Coverage tells which events of a run a log has. It is not in the snapshot: a log may leave out
// droppable events without another snapshot.
type Coverage struct {
	// Missing is the number of missing sequence numbers, from 0 (after [ResumeFold] from the
	// snapshot's NextSequence) to the highest one. An accepted log has no gaps, so its missing
	// events are lost or were left out. Decoders that number the lines of a run, such as KAOS's,
	// hide missing events.
	Missing uint64
	// Gaps are the ranges of the missing numbers, in rising order, at most 16. The
	// last ranges of a log with more are not in the list, and are not taken off
	// Missing when an event of them comes after all.
	Gaps []SequenceGap
	// Unproven is the number of events that were left out because their sequence is so
	// low that the fold has forgotten who had it: they are repeated, or belong to
	// another run with the same id. FoldOptions.OnViolation is told each.
	Unproven int
}

// A SequenceGap is a range of missing sequence numbers.
type SequenceGap struct {
	First, Last uint64 // both are missing
}

func (g SequenceGap) size() uint64 { return g.Last - g.First + 1 }

const maxGaps = 16

// coverage makes a Coverage of the sequence numbers of a run, in the order of the log.
type coverage struct {
	Coverage
	next   uint64 // above the highest number so far
	jumped bool   // the highest number left a gap in front of it:
	gap    SequenceGap
}

// see notes the sequence of an event. strays have the false numbers of other events.
func (c *coverage) see(n uint64, strays []fingerprint) {
	if n < c.next {
		c.remove(n)
		return
	}
	if c.jumped = n > c.next; c.jumped {
		c.gap = SequenceGap{c.next, n - 1}
		c.add(c.gap)
		for _, stray := range strays {
			c.remove(stray.sequence) // its event is there
		}
	}
	c.next = max(n, n+1)
}

// back notes the sequence of an event that shows the highest number to be false.
func (c *coverage) back(n uint64, strays []fingerprint) {
	if !c.jumped || n < c.gap.First || n > c.gap.Last {
		c.remove(n)
		return
	}
	if i := len(c.Gaps) - 1; i >= 0 && c.Gaps[i].Last == c.gap.Last {
		c.Gaps = c.Gaps[:i]
	}
	c.Missing -= min(c.Missing, c.gap.size())
	c.next = c.gap.First
	c.see(n, strays)
}

func (c *coverage) add(g SequenceGap) {
	c.Missing += g.size()
	if len(c.Gaps) < maxGaps {
		c.Gaps = append(c.Gaps, g)
	}
}

// remove takes a number out of the gaps.
func (c *coverage) remove(n uint64) {
	i := slices.IndexFunc(c.Gaps, func(g SequenceGap) bool { return g.First <= n && n <= g.Last })
	if i < 0 {
		return
	}
	c.Missing--
	g := &c.Gaps[i]
	switch rest := (SequenceGap{n + 1, g.Last}); {
	case g.First == g.Last:
		c.Gaps = slices.Delete(c.Gaps, i, i+1)
	case n == g.First:
		g.First++
	case n == g.Last:
		g.Last--
	default:
		g.Last = n - 1
		c.Gaps = slices.Insert(c.Gaps, i+1, rest)
		c.Gaps = c.Gaps[:min(len(c.Gaps), maxGaps)]
	}
}

// clone returns a copy of the coverage so far.
func (c *coverage) clone() Coverage {
	out := c.Coverage
	out.Gaps = orNil(slices.Clone(out.Gaps))
	return out
}

// Coverage returns which events of the run the fold has received.
func (f *Fold) Coverage() Coverage { return f.cover.clone() }

// Coverage yields the ids of the runs, in the order in which they appear, and which of
// their events the log has. It yields no run that Drain has forgotten.
func (l *FoldSet) Coverage() iter.Seq2[string, Coverage] {
	return func(yield func(string, Coverage) bool) {
		for _, run := range l.order {
			c := run.cover
			if run.fold != nil {
				c = &run.fold.cover
			}
			if c == nil {
				c = &coverage{}
			}
			if !yield(run.id, c.clone()) {
				return
			}
		}
	}
}
