package main

import (
	"bufio"
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// order adds the flag for the order in which events are read.
func (l *logReader) order(fs *flag.FlagSet) {
	l.sorted = choice{"file", []string{"file", "sequence"}}
	fs.Var(&l.sorted, "order", "`ORDER` of a run's events: file (default), or sequence, held in memory")
}

// An unsorted log is the text of files in pieces: a line, or the lines of a Server-Sent Event.
// Decoders keep a state, so lines come into the order of their document before they are decoded.
type unsorted struct {
	pieces  []piece
	maxLine int
	frame   bool // the last piece is a Server-Sent Event that goes on
}

// A piece is a number of lines with the number of their event in its run.
type piece struct {
	text   []byte
	at     []position // of each line
	run    string
	number uint64
	placed bool // it has a number
	anew   bool // numbers of the run begin again with each process, as KAOS's do
}

// add adds the lines of a file. It returns the error of the file.
func (u *unsorted) add(file int, r io.Reader) error {
	in := bufio.NewReader(r)
	u.frame = false
	for number := 1; ; number++ {
		line, err := u.line(in)
		if len(line) > 0 {
			u.take(line, position{file: file, line: number})
		}
		if err != nil {
			u.frame = false
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

// line reads a line. Of one that is too long for a reader of events it keeps a beginning that is, too.
func (u *unsorted) line(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line) <= u.maxLine {
			line = append(line, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if n := len(line); n > 0 && line[n-1] != '\n' {
			line = append(line, '\n')
		}
		return line, err
	}
}

// take adds a line: to the event before it, or as a piece of its own.
func (u *unsorted) take(line []byte, at position) {
	text := strings.TrimSpace(strings.TrimPrefix(string(line), "\ufeff"))
	field := false
	for _, name := range [...]string{"data:", "event:", "id:", "retry:"} {
		field = field || strings.HasPrefix(text, name)
	}
	if u.frame && (field || text == "") {
		p := &u.pieces[len(u.pieces)-1]
		p.text, p.at = append(p.text, line...), append(p.at, at)
		u.frame = text != ""
	} else {
		u.pieces = append(u.pieces, piece{text: line, at: []position{at}})
		u.frame = field
	}
	if p := &u.pieces[len(u.pieces)-1]; !p.placed {
		p.find(strings.TrimPrefix(text, "data:"))
	}
}

// find finds the run and the number of a piece on a line of it.
func (p *piece) find(text string) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		return
	}
	number, err := strconv.ParseUint(jsonwire.Member(text, "sequence"), 10, 64)
	if err != nil {
		return
	}
	run := jsonwire.Text(jsonwire.Member(text, "run_id"))
	p.anew = run != ""
	p.run, p.number, p.placed = cmp.Or(run, jsonwire.Text(jsonwire.Member(text, "runId"))), number, true
}

// sort brings the pieces of every run into the order of their numbers. Pieces of different runs take
// turns as before, and those without a number stay.
func (u *unsorted) sort() {
	places := map[string][]int{}
	for i := range u.pieces {
		if p := &u.pieces[i]; p.placed {
			places[p.run] = append(places[p.run], i)
		}
	}
	for _, at := range places {
		type key struct {
			process int
			piece
		}
		keys := make([]key, len(at))
		process, seen := 0, map[uint64]uint64{} // hashes by their numbers
		for i, place := range at {
			p := u.pieces[place]
			hash := jsonwire.Hash(string(bytes.TrimSpace(p.text)))
			if of, again := seen[p.number]; again && of != hash && p.anew {
				process++
				clear(seen)
			}
			seen[p.number] = hash
			keys[i] = key{process, p}
		}
		slices.SortStableFunc(keys, func(a, b key) int {
			return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.number, b.number))
		})
		for i, place := range at {
			u.pieces[place] = keys[i].piece
		}
	}
}

// read returns the text of the pieces, and the places of its lines.
func (u *unsorted) read() (text io.Reader, lines []position) {
	readers := make([]io.Reader, len(u.pieces))
	for i := range u.pieces {
		readers[i] = bytes.NewReader(u.pieces[i].text)
		lines = append(lines, u.pieces[i].at...)
	}
	return io.MultiReader(readers...), lines
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

// told yields the events as they come. After them it reports runs that went back to a sequence that
// they had left out: a fold leaves such events out.
func (l *logReader) told(in *invocation, lines lineSeq) lineSeq {
	return func(yield func(position, agentevents.Line) bool) {
		runs, hint := map[string]*numbers{}, ""
		last := new(numbers) // of the run of the line before
		for at, line := range lines {
			if hint == "" {
				ev := line.Event
				number, own := numberOf(ev)
				n := last
				if n.run != ev.RunID || ev.RunID == "" {
					n = runs[ev.RunID]
				}
				if n != nil {
					own = own || n.own // a number may be the same as the sequence by chance
					n.own = own
					last = n
				}
				switch {
				case own && n.left(number):
					hint = fmt.Sprintf("%s: run %s goes back to number %d, which was missing: "+
						"with --order sequence it is read in that order",
						l.place(at), visible(jsonwire.Brief(ev.RunID)), number)
				case !own && n.back(ev.Sequence):
					hint = fmt.Sprintf("%s: run %s goes back to sequence %d, which was missing: "+
						"with --order sequence it is read in that order",
						l.place(at), visible(jsonwire.Brief(ev.RunID)), ev.Sequence)
				case n != nil:
					n.seen(number)
				case len(runs) < maxOrderRuns:
					n = &numbers{run: strings.Clone(ev.RunID), own: own}
					n.seen(number)
					runs[n.run] = n
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
	run    string
	next   uint64
	gaps   []agentevents.SequenceGap
	jumped bool // the latest event left the latest gap
	own    bool // the document has numbers that are no sequences: see numberOf
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
	i := slices.IndexFunc(n.gaps,
		func(g agentevents.SequenceGap) bool { return g.First <= sequence && sequence <= g.Last })
	if n.jumped && i == len(n.gaps)-1 {
		n.next, n.gaps = n.gaps[i].First, n.gaps[:i]
		return false
	}
	return i >= 0
}

// left reports whether a number was left out.
func (n *numbers) left(number uint64) bool {
	return n != nil && slices.ContainsFunc(n.gaps,
		func(g agentevents.SequenceGap) bool { return g.First <= number && number <= g.Last })
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
