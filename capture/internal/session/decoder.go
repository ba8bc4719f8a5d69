package session

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Decoder reads the lines of one stream, such as standard input. It implements
// [agentevents.Decoder].
type Decoder struct {
	f       feed
	number  int
	Residue Residue // what was not understood
}

// NewDecoder returns a decoder of a stream of a program.
func NewDecoder(p *Program, o Options) *Decoder {
	d := &Decoder{}
	d.f.init(p, o, &d.Residue)
	return d
}

// Decode appends the events of a line to dst. Several faults of a line are joined.
func (d *Decoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	d.number++
	d.f.line(&Line{Number: d.number}, string(line), false)
	return d.done(dst)
}

// End appends the events of the end.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	d.f.endFile(&Line{Number: d.number + 1})
	d.f.end(&Line{Number: d.number + 2})
	return d.done(dst)
}

func (d *Decoder) done(dst []agentevents.Event) ([]agentevents.Event, error) {
	events, faults := d.f.rec.take()
	return append(dst, events...), errors.Join(faults...)
}

// Program returns the program that the stream is of.
func (d *Decoder) Program() *Program { return d.f.p }

// Notes returns what a reader should know that is no fault of a line.
func (d *Decoder) Notes() []string { return d.f.rec.notes }

// A feed gives lines to a reader.
type feed struct {
	p      *Program
	rec    *Recorder
	reader Reader
	lasts  map[int]time.Time // by file
}

func (f *feed) init(p *Program, o Options, residue *Residue) {
	f.p, f.rec, f.lasts = p, newRecorder(p, o, residue), map[int]time.Time{}
	f.reader = p.New(f.rec)
}

// line reads a line. cut says that it is the last one of a file and has no newline.
func (f *feed) line(l *Line, text string, cut bool) {
	f.rec.line = l
	f.place(l, text)
	if err := jsonwire.Valid(text); err != nil {
		repaired, changed := jsonwire.Repair(text)
		if changed && jsonwire.Valid(repaired) == nil {
			text, l.Repaired = repaired, true
		} else {
			f.rec.faults = append(f.rec.faults, f.unreadable(text, err, cut))
			return
		}
	}
	if text = strings.TrimLeft(text, " \t"); !jsonwire.IsObject(text) {
		f.rec.Fault("", "not a line of a session: found %s, expected an object", jsonwire.Describe(text))
		return
	}
	l.Text = text
	f.reader.Line(l)
}

// place sets the time of a line.
func (f *feed) place(l *Line, text string) {
	at, ok := f.p.Time(text)
	switch last := f.lasts[l.File]; {
	case ok:
		l.At, l.Stamped = at, true
	case !last.IsZero():
		l.At = last
	default:
		l.At = f.rec.Options.Time().UTC().Truncate(time.Millisecond)
	}
	if ok {
		f.lasts[l.File] = l.At
	}
	if f.rec.last.Before(l.At) {
		f.rec.last = l.At
	}
}

func (f *feed) unreadable(text string, err error, cut bool) error {
	out := &agentevents.LineError{}
	var syntax *jsonwire.SyntaxError
	if errors.As(err, &syntax) {
		out.Column, out.Pointer = syntax.Offset, jsonwire.Pointer(text, syntax.Offset)
	}
	if cut {
		out.Err = fmt.Errorf("%s: the file ends in the middle of this line, which is left out; all before it counts: %w", f.p.Name, io.ErrUnexpectedEOF)
	} else {
		out.Err = fmt.Errorf("%s: not JSON: %w", f.p.Name, err)
	}
	return out
}

// endFile ends a file. Its events have the time of its last line.
func (f *feed) endFile(l *Line) {
	if l.At = f.lasts[l.File]; l.At.IsZero() {
		l.At = f.rec.last
	}
	l.Stamped = !l.At.IsZero()
	if !l.Stamped {
		l.At = f.rec.Options.Time().UTC().Truncate(time.Millisecond)
	}
	f.rec.line = l
	f.reader.EndFile(l)
}

// end ends the run.
func (f *feed) end(l *Line) {
	l.At, l.Stamped = f.rec.last, true
	if l.At.IsZero() {
		l.At, l.Stamped = f.rec.Options.Time().UTC().Truncate(time.Millisecond), false
	}
	f.rec.line = l
	f.reader.End(l)
}
