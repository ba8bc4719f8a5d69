package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/chain"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/lines"
	"github.com/agentevents/agentevents/logfile"
)

// ruleChain is the rule that a line breaks when it does not continue the chain.
const ruleChain agentevents.Rule = "chain-broken"

// A chainCheck follows the chain of a log through its files. Its findings wait until the events
// before them were checked: it reads ahead of them.
type chainCheck struct {
	l     *logReader
	heads map[chain.Hash]string // the logs whose heads no line has had yet
	found []finding             // that were not reported
	notes []string              // remarks that are not problems

	last      chain.Hash // of the line before
	begun     bool       // a line was chained
	unchained int        // lines before the first chained one
	first     position   // of them
}

func (p position) compare(to position) int {
	return cmp.Or(cmp.Compare(p.file, to.file), cmp.Compare(p.line, to.line))
}

// A finding is a place where the chain is broken.
type finding struct {
	at   position
	what string
}

func (c *chainCheck) add(at position, what string) {
	at.line = max(at.line, 1) // of an empty file
	c.found = append(c.found, finding{at, what})
	slices.SortStableFunc(c.found, func(a, b finding) int { return a.at.compare(b.at) })
}

// openHeads reads the heads of the files, before their lines: lines that are written meanwhile come
// after them.
func (c *chainCheck) openHeads(in *invocation) {
	c.heads = map[chain.Hash]string{}
	for _, name := range in.args {
		if name == "-" {
			continue
		}
		log := name
		if list, err := logfile.Segments(name); err == nil && list[len(list)-1].Active {
			log = list[len(list)-1].Path // name may be a link
		}
		text, err := os.ReadFile(log + ".head")
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 { // nothing was synced yet
			continue
		}
		head, ok := chain.ParseHead(text)
		file := len(c.l.files)
		switch {
		case err != nil:
			c.l.files = append(c.l.files, visible(log+".head"))
			c.l.fail(in, file, err)
		case !ok:
			c.l.files = append(c.l.files, visible(log+".head"))
			c.add(position{file: file, line: 1}, "the head is damaged: it does not name a line")
		case head != chain.Hash{}: // something was synced
			c.heads[head] = visible(log)
		}
	}
}

// end finds problems that show only when everything was read.
func (c *chainCheck) end() {
	for head, name := range c.heads { // of a log without an active segment
		c.add(position{file: len(c.l.files) - 1}, missingHead(name))
		delete(c.heads, head)
	}
	if !c.begun && c.unchained > 0 {
		c.add(c.first, "no line of the log is chained")
	}
}

// take returns the findings up to a place.
func (c *chainCheck) take(to position) []finding {
	n := 0
	for n < len(c.found) && c.found[n].at.compare(to) <= 0 {
		n++
	}
	found := c.found[:n]
	c.found = c.found[n:]
	return found
}

// reader returns a reader of a file that checks the lines that pass.
func (c *chainCheck) reader(file int, r io.Reader) io.Reader {
	return &chainReader{c: c, r: r, at: position{file: file}}
}

// A chainReader checks the lines that pass. It counts lines in the same way as [lines.Reader].
type chainReader struct {
	c      *chainCheck
	r      io.Reader
	at     position // of the line that was checked last
	part   []byte   // of the next one
	broken bool     // the first broken line was found
	later  bool     // a line was checked that was not blank
	ended  bool
}

func (r *chainReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	for line := range bytes.Lines(p[:n]) {
		// A line that is too long is not kept, and its kept part is not chained.
		room := max(0, r.c.l.maxLine+chain.Size+len("\r\n")+1-len(r.part))
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		if r.part = append(r.part, text[:min(len(text), room)]...); whole {
			r.line()
		}
	}
	if err == io.EOF && !r.ended {
		r.ended = true
		// A line that a crash has torn does not belong to the log. It is reported as one that
		// cannot be read.
		if _, ok := chain.Find(r.part); ok || jsonwire.Valid(string(r.part)) == nil {
			r.line()
		}
		for head, name := range r.c.heads {
			if name == r.c.l.files[r.at.file] {
				r.c.add(r.at, missingHead(name))
				delete(r.c.heads, head)
			}
		}
	}
	return n, err
}

func missingHead(name string) string {
	return fmt.Sprintf("the line that %s.head names as the last one on disk is missing: lines were removed at the end",
		name)
}

// line checks the line in part.
func (r *chainReader) line() {
	c := r.c
	text := bytes.TrimSuffix(r.part, []byte("\r"))
	r.at.line++
	text = bytes.TrimPrefix(text, []byte(lines.ByteOrderMark))
	r.part = r.part[:0]
	if len(bytes.TrimSpace(text)) == 0 {
		return
	}
	link, chained := chain.Find(text)
	what, begins := "", !c.begun && chained
	switch {
	case !chained && !c.begun:
		if c.unchained++; c.unchained == 1 {
			c.first = r.at
		}
	case !chained:
		what = "the line is not chained: it was changed or inserted"
	case !link.Holds(text):
		what = "the line was changed"
	case begins || link.Prev == c.last:
	case link.Prev == chain.Hash{} && !r.later:
		begins = true
	default:
		what = "the line before it is another than it was: lines were changed, removed, inserted or moved"
	}
	if what != "" && !r.broken {
		r.broken = true
		c.add(r.at, what)
	}
	if begins {
		c.begin(r.at, link)
	}
	if chained {
		c.last = link.Hash
		delete(c.heads, link.Hash)
	}
	r.later = true
}

// begin takes the first line of a chain. Its hash of the line before cannot be checked.
func (c *chainCheck) begin(at position, link chain.Link) {
	note := func(what string) {
		c.notes = append(c.notes, fmt.Sprintf("%s:%d: %s", c.l.files[at.file], at.line, what))
	}
	if (link.Prev != chain.Hash{}) {
		note("the chain goes on from a line that is not here; its hash is " + link.Prev.String())
	}
	switch {
	case c.begun:
		note("a new chain begins here; it does not cover lines between the files")
	case c.unchained == 1:
		note("the chain begins here; the line before it is in no chain")
	case c.unchained > 1:
		note(fmt.Sprintf("the chain begins here; the %d lines before it are in no chain", c.unchained))
	}
	c.begun = true
	delete(c.heads, link.Prev) // the last line of the segment before
}

// lastLink returns the hash of the last line of the files that is chained. ok is false
// when there is none, or a file that can be read only once.
func (in *invocation) lastLink(maxLine int) (last chain.Hash, ok bool) {
	for _, name := range in.args {
		if info, err := os.Stat(name); name == "-" || err == nil && !info.Mode().IsRegular() {
			return chain.Hash{}, false
		}
	}
	for _, name := range in.args {
		for from, err := range in.inputs(name) {
			if err != nil {
				continue // the reader of the log reports that
			}
			for r := lines.NewReader(from, maxLine); !r.Ended(); {
				if line, err := r.Next(); err == nil {
					if l, chained := chain.Find(line); chained {
						last, ok = l.Hash, true
					}
				}
			}
		}
	}
	return last, ok
}
