package session

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strconv"

	"github.com/agentevents/agentevents"
)

// A section is the lines of one session, or of one process, in a file or stream that may have several.
// Each makes a run, with the ids that it has in a file of its own.
type section struct {
	first  int             // number of its first line in the file
	facts  Facts           // of that line
	known  bool            // the line tells them
	file   bool            // the lines are a file's, so that events have the thread in their ids
	runs   map[string]bool // ids of the runs so far
	kept   []kept          // lines for the processes after this one
	before int             // number of those that are of processes before
}

// A kept line is one of a thread.
type kept struct{ thread, line string }

// begin notes the run of a section and returns its id. A process that prints the same lines as one before
// has another run. A session that began before does not begin again: the lines are left out.
func (s *section) begin(r *Recorder, id string) string {
	if s.first == 0 {
		s.runs = map[string]bool{id: true}
		return id
	}
	base := id
	for n := 2; s.runs[id]; n++ {
		if r.again = !s.known || s.facts.Session == base && !s.facts.Copies; r.again {
			break
		}
		id = ID(base, strconv.Itoa(n))
	}
	s.runs[id] = true
	switch {
	case !s.file:
	case s.known && !s.facts.Copies && s.facts.Session == base:
		r.thread = s.facts.Thread
	default:
		r.thread = id
	}
	return id
}

// next ends the run, and begins the one of a section that begins with a line. number counts the lines of
// the file up to it. end and last are the lines for the ends of the file and of the run.
func (f *feed) next(p *Program, l *Line, number int, text string, end, last *Line) {
	f.endFile(end)
	f.end(last)
	before, s := f.rec, *f.rec.section
	events, faults := before.take()
	if before.again {
		faults = append(faults, f.left(number-1))
	}
	s.first, s.before = number, len(s.kept)
	s.runs = maps.Clone(s.runs)
	if s.runs == nil {
		s.runs = map[string]bool{}
	}
	s.facts, s.known = Facts{}, false
	if p.Facts != nil {
		s.facts, s.known = p.Facts([]string{text})
		s.facts.clone()
	}
	f.start(p, before.Options)
	f.rec.out, f.rec.faults, f.rec.notes, f.rec.section = events, faults, before.notes, &s
	if f.began(l.File, s.facts.At); s.facts.At.IsZero() {
		f.began(l.File, f.changed)
		f.waits = !p.Untimed
	}
}

// wait reports whether a line waits for the time of a section: its first lines may lack one. A line that
// has one, or is the last one that waits, makes the others be read.
func (f *feed) wait(l *Line) bool {
	if f.waits && !l.Stamped && len(f.early) < maxHeadLines {
		f.early = append(f.early, l)
		return true
	}
	f.waits = false
	early := f.early
	if f.early = nil; len(early) > 0 && l.Stamped {
		f.rec.last = l.At
	}
	for _, e := range early {
		if l.Stamped {
			e.At = l.At
		}
		f.rec.line = e
		f.reader.Line(e)
		f.rec.another = false
	}
	f.rec.line = l
	return false
}

// left is the fault of the lines of a session that stands in the file for the second time.
func (f *feed) left(until int) error {
	return leftOut(f.p, "session", f.rec.runID, f.rec.section.first, until)
}

func leftOut(p *Program, what, id string, first, last int) error {
	return &agentevents.LineError{Err: fmt.Errorf("%s: lines %d to %d are of %s %s, or of a sub-agent of it, which this file "+
		"has before: they are left out; give the files one by one", p.Name, first, last, what, id)}
}

// finish returns the faults of the last section.
func (f *feed) finish(number int) error {
	if f.rec.again {
		return f.left(number)
	}
	return nil
}

// begins returns the program whose session begins with the line, or nil: the reader has noted it, or has not
// understood the line, and another program writes such lines.
func (f *feed) begins(l *Line) *Program {
	another, strange := f.rec.another, f.rec.of == l
	f.rec.another, f.rec.of = false, nil
	if !another && !strange {
		return nil
	}
	p, ok := Detect(f.programs, []string{l.Text})
	switch same := !ok || p.Name == f.p.Name && p.Files[0] == f.p.Files[0]; {
	case another && same:
		return f.p
	case same:
		return nil
	case strange:
		f.rec.residue.remove(f.rec.strange)
	}
	return p
}

// stop returns the error of a line at which the reading ends, or nil. p is the program of the section that
// begins with it.
func (f *feed) stop(p *Program) error {
	if given := f.rec.Options.RunID != ""; given || p.Decoder != nil || p.Split != nil {
		return stops(p, given)
	}
	return nil
}

// stops is the error of a line that begins a session which cannot be read there. given means that the caller
// has named the run.
func stops(p *Program, given bool) error {
	if given {
		return errOneRun
	}
	return fmt.Errorf("%s begins here: the lines from here on are left out; give them as a file of their own", p.Files[0])
}

var errOneRun = errors.New("another session begins here, but one run id was given: " +
	"the lines from here on are left out; give no run id, or name the file of one session")

// failed is the error of a file of which the rest is left out.
func failed(path string, line int, err error) error {
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("line %d: %w", line, err)}
}
