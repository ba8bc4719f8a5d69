package main

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
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
func bySequence(lines lineSeq) lineSeq {
	return func(yield func(position, agentevents.Line) bool) {
		var turns []string // the run of each event
		runs := map[string][]placed{}
		for at, line := range lines {
			ev := line.Event
			turns = append(turns, ev.RunID)
			runs[ev.RunID] = append(runs[ev.RunID], placed{at, *ev})
		}
		for _, run := range runs {
			if slices.ContainsFunc(run, func(p placed) bool { _, own := numberOf(&p.ev); return own }) {
				byNumber(run)
				continue
			}
			slices.SortStableFunc(run, func(a, b placed) int { return cmp.Compare(a.ev.Sequence, b.ev.Sequence) })
		}
		for _, id := range turns {
			next := &runs[id][0]
			runs[id] = runs[id][1:]
			if !yield(next.at, agentevents.Line{Event: &next.ev}) {
				return
			}
		}
	}
}

// numberOf returns the number that an event has in its document. It reports true if that is
// another one than the sequence: lines of KAOS are numbered anew as they are read, because a
// process that goes on with a run begins at 0 again.
func numberOf(ev *agentevents.Event) (n uint64, own bool) {
	text := dialect.Unknown(ev, dialect.KAOS, "sequence")
	if text == "" {
		return ev.Sequence, false // of most events: an error takes memory
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return ev.Sequence, false
	}
	return n, true
}

// byNumber sorts the events of a run by their numbers in the document, each process
// for itself, and gives them the run's sequences in that order.
func byNumber(run []placed) {
	type key struct {
		process int
		number  uint64
		placed
	}
	keys, sequences := make([]key, len(run)), make([]uint64, len(run))
	process, seen := 0, map[uint64]uint64{} // sequences by their numbers
	for i, p := range run {
		n, _ := numberOf(&p.ev)
		if of, again := seen[n]; again && of != p.ev.Sequence {
			process++
			clear(seen)
		}
		seen[n], sequences[i] = p.ev.Sequence, p.ev.Sequence
		keys[i] = key{process, n, p}
	}
	slices.SortStableFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.number, b.number))
	})
	slices.Sort(sequences)
	for i := range keys {
		run[i] = keys[i].placed
		run[i].ev.Sequence = sequences[i]
	}
}

// told yields the events as they come. After them it says if a run went back to a sequence that
// it had left out: a fold leaves such events out.
func (l *logReader) told(in *invocation, lines lineSeq) lineSeq {
	return func(yield func(position, agentevents.Line) bool) {
		runs, hint := map[string]*numbers{}, ""
		for at, line := range lines {
			if hint == "" {
				ev := line.Event
				number, own := numberOf(ev)
				switch n := runs[ev.RunID]; {
				case own && n.left(number):
					hint = fmt.Sprintf("%s: run %s goes back to number %d, which was missing: with --order sequence it is read in that order",
						l.place(at), visible(jsonwire.Brief(ev.RunID)), number)
				case !own && n.back(number):
					hint = fmt.Sprintf("%s: run %s goes back to sequence %d, which was missing: with --order sequence it is read in that order",
						l.place(at), visible(jsonwire.Brief(ev.RunID)), number)
				case n != nil:
					n.seen(number)
				case len(runs) < maxOrderRuns:
					n = &numbers{}
					n.seen(number)
					runs[strings.Clone(ev.RunID)] = n
				}
			}
			if !yield(at, line) {
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

// left reports whether a number was left out.
func (n *numbers) left(number uint64) bool {
	return n != nil && slices.ContainsFunc(n.gaps, func(g agentevents.SequenceGap) bool { return g.First <= number && number <= g.Last })
}

func (n *numbers) seen(sequence uint64) {
	if n.jumped = sequence > n.next; n.jumped {
		if len(n.gaps) == maxOrderGaps {
			n.gaps = slices.Delete(n.gaps, 1, 2)
		}
		n.gaps = append(n.gaps, agentevents.SequenceGap{First: n.next, Last: sequence - 1})
	}
	n.next = max(n.next, sequence, sequence+1)
}
