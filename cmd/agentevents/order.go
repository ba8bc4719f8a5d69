package main

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"slices"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A placed is an event with its position.
type placed struct {
	at position
	ev agentevents.Event
}

// order adds the flag for the order in which events are read.
func (l *logReader) order(fs *flag.FlagSet) {
	l.sorted = choice{"file", []string{"file", "sequence"}}
	fs.Var(&l.sorted, "order", "`ORDER` of a run's events: file (default), sequence; that takes memory")
}

// bySequence yields the events of every run in the order of their sequences. Events of different
// runs take turns as before. It reads all events before it yields one.
func bySequence(events iter.Seq2[position, agentevents.Event]) iter.Seq2[position, agentevents.Event] {
	return func(yield func(position, agentevents.Event) bool) {
		var turns []string // the run of each event
		runs := map[string][]placed{}
		for at, ev := range events {
			turns = append(turns, ev.RunID)
			runs[ev.RunID] = append(runs[ev.RunID], placed{at, ev})
		}
		for _, run := range runs {
			slices.SortStableFunc(run, func(a, b placed) int { return cmp.Compare(a.ev.Sequence, b.ev.Sequence) })
		}
		for _, id := range turns {
			next := runs[id][0]
			runs[id] = runs[id][1:]
			if !yield(next.at, next.ev) {
				return
			}
		}
	}
}

// told yields the events as they come. After them it says if a run went back to a sequence that
// it had left out: a fold leaves such events out.
func (l *logReader) told(in *invocation, events iter.Seq2[position, agentevents.Event]) iter.Seq2[position, agentevents.Event] {
	return func(yield func(position, agentevents.Event) bool) {
		runs, hint := map[string]*numbers{}, ""
		for at, ev := range events {
			if hint == "" && runs[ev.RunID].back(ev.Sequence) {
				hint = fmt.Sprintf("%s: run %s goes back to sequence %d, which was missing: with --order sequence it is read in that order",
					l.place(at), visible(jsonwire.Brief(ev.RunID)), ev.Sequence)
			} else if n := runs[ev.RunID]; hint == "" && (n != nil || len(runs) < maxOrderRuns) {
				runs[ev.RunID] = n.seen(ev.Sequence)
			}
			if !yield(at, ev) {
				return
			}
		}
		switch {
		case hint == "":
		case l.hint != nil:
			l.hint(hint)
		default:
			in.stdout.Flush()
			fmt.Fprintf(in.stderr, "agentevents %s: %s\n", in.name, hint)
		}
	}
}

// numbers are the sequences that a run has left out so far. Nil has none.
type numbers struct {
	next   uint64
	gaps   []agentevents.SequenceGap
	jumped bool // the latest event left the latest gap
}

// maxOrderRuns is how many runs of a log are watched: the first.
const maxOrderRuns = 1 << 12

// maxOrderGaps is how many gaps of a run are remembered: the first, as of a file whose end comes
// first, and the latest.
const maxOrderGaps = 16

// back reports whether a sequence is one that was left out. If it shows the one before it to be
// false, it is none: then the fold leaves no event out.
func (n *numbers) back(sequence uint64) bool {
	if n == nil || sequence >= n.next {
		return false
	}
	i := slices.IndexFunc(n.gaps, func(g agentevents.SequenceGap) bool { return g.First <= sequence && sequence <= g.Last })
	if n.jumped && i == len(n.gaps)-1 {
		n.next, n.gaps = n.gaps[i].First, n.gaps[:i]
		return false
	}
	return i >= 0
}

func (n *numbers) seen(sequence uint64) *numbers {
	if n == nil {
		n = &numbers{}
	}
	if n.jumped = sequence > n.next; n.jumped {
		if len(n.gaps) == maxOrderGaps {
			n.gaps = slices.Delete(n.gaps, 1, 2)
		}
		n.gaps = append(n.gaps, agentevents.SequenceGap{First: n.next, Last: sequence - 1})
	}
	n.next = max(n.next, sequence, sequence+1)
	return n
}
