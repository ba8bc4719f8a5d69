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
	before  int     // number of lines before the session that is read
	err     error   // the rest is left out
	Residue Residue // lines and members that were not understood
}

// NewDecoder returns a decoder of a stream of a program.
func NewDecoder(programs []*Program, p *Program, o Options) *Decoder {
	d := &Decoder{}
	d.f.init(programs, p, o, &d.Residue)
	return d
}

// Decode appends the events of a line to dst. Several faults of a line are joined.
func (d *Decoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	d.number++
	if d.err != nil {
		return dst, nil
	}
	l, text := &Line{Number: d.number - d.before}, string(line)
	if p := d.f.line(l, text, false); p != nil {
		if d.err = d.f.stop(p); d.err != nil {
			dst, err := d.done(dst)
			return dst, errors.Join(err, &agentevents.LineError{Err: fmt.Errorf("%s: %w", d.f.p.Name, d.err)})
		}
		d.f.next(p, l, d.number, text, &Line{Number: l.Number}, &Line{Number: l.Number + 1})
		d.before = d.number - 1
		d.f.line(&Line{Number: 1}, text, false)
	}
	return d.done(dst)
}

// End appends the events of the end.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	d.f.endFile(&Line{Number: d.number - d.before + 1})
	d.f.end(&Line{Number: d.number - d.before + 2})
	dst, err := d.done(dst)
	return dst, errors.Join(err, d.f.finish(d.number))
}

func (d *Decoder) done(dst []agentevents.Event) ([]agentevents.Event, error) {
	events, faults := d.f.rec.take()
	return append(dst, events...), errors.Join(faults...)
}

// Program returns the program that wrote the stream.
func (d *Decoder) Program() *Program { return d.f.p }

// Notes returns facts that are not faults of a line.
func (d *Decoder) Notes() []string { return d.f.rec.notes }

// A feed gives lines to a reader.
type feed struct {
	p        *Program
	rec      *Recorder
	reader   Reader
	lasts    map[int]time.Time // by file
	programs []*Program        // that a section may be of
	residue  *Residue
	changed  time.Time // the last change of the file
	waits    bool      // the section has no time yet
	early    []*Line   // its lines so far
}

func (f *feed) init(programs []*Program, p *Program, o Options, residue *Residue) {
	f.programs, f.residue = programs, residue
	f.start(p, o)
}

// start starts a run.
func (f *feed) start(p *Program, o Options) {
	f.p, f.rec, f.lasts = p, newRecorder(p, o, f.residue), map[int]time.Time{}
	f.reader = p.New(f.rec)
}

// line reads a line. cut means that it is the last one of a file, without a newline. It returns the
// program of a session that begins with the line, which then was not read, or nil.
func (f *feed) line(l *Line, text string, cut bool) *Program {
	f.rec.line = l
	last, before := f.rec.last, f.lasts[l.File]
	f.place(l, text)
	if err := jsonwire.Valid(text); err != nil {
		if repaired, ok := repair(text); ok {
			text, l.Repaired = repaired, true
		} else {
			f.rec.faults = append(f.rec.faults, unreadable(f.p, text, err, cut))
			f.rec.torn[l.File] = cut
			return nil
		}
	}
	if text = strings.TrimLeft(text, " \t"); !jsonwire.IsObject(text) {
		f.rec.Fault("", "not a line of a session: found %s, expected an object", jsonwire.Describe(text))
		return nil
	}
	if l.Text = text; f.wait(l) {
		return nil
	}
	f.reader.Line(l)
	p := f.begins(l)
	if p != nil {
		f.rec.last, f.lasts[l.File] = last, before
	}
	return p
}

// repair returns a line without its damaged characters, and with the first one only of members
// that have one name, if it is JSON then.
func repair(text string) (string, bool) {
	text, _ = jsonwire.Repair(text)
	if jsonwire.Valid(text) == nil {
		return text, true
	}
	var s jsonwire.Scanner
	s.Reset(text)
	out, err := firstMembers(nil, &s)
	if err != nil || s.End() != nil || jsonwire.Valid(string(out)) != nil {
		return "", false
	}
	return string(out), true
}

// firstMembers appends the next value, in which each object has the first member of each name.
func firstMembers(dst []byte, s *jsonwire.Scanner) ([]byte, error) {
	switch s.Kind() {
	case '{':
		if err := s.Object(); err != nil {
			return nil, err
		}
		dst = append(dst, '{')
		seen := map[string]bool{}
		for {
			name, ok, err := s.Member()
			if err != nil {
				return nil, err
			}
			if !ok {
				return append(dst, '}'), nil
			}
			if seen[name] {
				if _, err := firstMembers(nil, s); err != nil {
					return nil, err
				}
				continue
			}
			if len(seen) > 0 {
				dst = append(dst, ',')
			}
			seen[strings.Clone(name)] = true
			if dst, err = firstMembers(append(jsonwire.AppendString(dst, name), ':'), s); err != nil {
				return nil, err
			}
		}
	case '[':
		if err := s.Array(); err != nil {
			return nil, err
		}
		dst = append(dst, '[')
		for n := 0; ; n++ {
			ok, err := s.Elem()
			if err != nil {
				return nil, err
			}
			if !ok {
				return append(dst, ']'), nil
			}
			if n > 0 {
				dst = append(dst, ',')
			}
			if dst, err = firstMembers(dst, s); err != nil {
				return nil, err
			}
		}
	}
	raw, err := s.Raw()
	return append(dst, raw...), err
}

// began notes the time at which a file began.
func (f *feed) began(file int, at time.Time) {
	if !at.IsZero() {
		f.lasts[file] = at
	}
}

// place sets the time of a line.
func (f *feed) place(l *Line, text string) {
	at, ok := l.At, l.Stamped
	if !l.timed {
		at, ok = f.p.Time(text)
	}
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

// unreadable is the fault of a line that is not JSON.
func unreadable(p *Program, text string, err error, cut bool) error {
	out := &agentevents.LineError{}
	var syntax *jsonwire.SyntaxError
	if errors.As(err, &syntax) {
		out.Column, out.Pointer = syntax.Offset, jsonwire.Pointer(text, syntax.Offset)
	}
	if cut {
		out.Err = fmt.Errorf("%s: the file ends in the middle of this line, which is left out; all before it counts: %w",
			p.Name, io.ErrUnexpectedEOF)
	} else {
		out.Err = fmt.Errorf("%s: not JSON: %w", p.Name, err)
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
	f.waits = false
	f.wait(l)
	if r, ok := f.reader.(FileReader); ok {
		r.EndFile(l)
	}
}

// end ends the run.
func (f *feed) end(l *Line) {
	l.At, l.Stamped = f.rec.last, true
	if l.At.IsZero() {
		l.At, l.Stamped = f.rec.Options.Time().UTC().Truncate(time.Millisecond), false
	}
	f.rec.line = l
	f.reader.End(l)
	f.rec.close()
}
