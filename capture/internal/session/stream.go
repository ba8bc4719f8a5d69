package session

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/lines"
)

// Stream returns the source of a stream, such as standard input, of a program. It can be read once.
func Stream(programs []*Program, p *Program, name string, in io.Reader) *Source {
	return &Source{
		Program: p, programs: programs, stream: true,
		Files: []*File{{Path: name, whole: func() (io.ReadCloser, error) { return io.NopCloser(in), nil }}},
	}
}

// decode yields the events of a source whose program has a decoder.
func (s *Source) decode(o Options, yield func(Item) bool) {
	line := 0
	var rest *tail
	var events iter.Seq2[agentevents.Event, error] = func(yield func(agentevents.Event, error) bool) {
		rest = s.decoded(o, &line, yield)
	}
	given := o
	if o.Redaction == nil || !o.Redaction.Off {
		events = o.Redaction.Redact(events)
	}
	for ev, err := range events {
		item := Item{Line: line, Err: err}
		if err == nil {
			item.Event = &ev
		}
		if !yield(item) {
			return
		}
	}
	if rest != nil {
		s.follow(rest, given, yield)
	}
}

// A tail is the lines of a file that belong to the session of another program.
type tail struct {
	p      *Program
	file   int
	before int // number of lines before it
	buf    []byte
	lines  *lines.Reader
	in     io.Closer
}

// Read reads the text of the lines. One that is too long is reported as a line that is not JSON.
func (t *tail) Read(p []byte) (int, error) {
	if len(t.buf) == 0 {
		line, err := t.lines.Next()
		var long *lines.TooLongError
		switch {
		case errors.As(err, &long):
			line = []byte("(a line that is too long)")
		case err != nil:
			return 0, err
		case line == nil:
			return 0, io.EOF
		}
		t.buf = append(t.buf[:0], line...)
		if !t.lines.Ended() {
			t.buf = append(t.buf, '\n')
		}
	}
	n := copy(p, t.buf)
	t.buf = t.buf[n:]
	return n, nil
}

// follow yields the events of the session of another program.
func (s *Source) follow(t *tail, o Options, yield func(Item) bool) {
	defer t.in.Close() // it was only read
	f := s.Files[t.file]
	next := Stream(s.programs, t.p, f.Path, t)
	if changed := f.changed(); !s.stream && o.Time == nil {
		o.Time = func() time.Time { return changed }
	}
	for item := range next.Read(o) {
		if item.File = t.file; item.Line > 0 {
			item.Line += t.before
		}
		if !yield(item) {
			break
		}
	}
	s.Notes = append(s.Notes, next.Notes...)
	for _, c := range next.Residue.Counts() {
		for range c.N {
			s.Residue.Add(c.Unread)
		}
	}
}

// decoded yields the events of the lines, and keeps the number of the line that it reads. It returns the
// lines that another program has written, or nil.
func (s *Source) decoded(o Options, at *int, yield func(agentevents.Event, error) bool) (rest *tail) {
	f := s.Files[0]
	if v := f.Facts.Version; Newer(v, s.Program.Tested) {
		s.Notes = append(s.Notes, s.Program.Name+": "+newer(s.Program, v))
	}
	given := o.RunID != ""
	o.RunID = cmp.Or(o.RunID, f.Facts.Session)
	open, saved := f.open, f.Facts.Changed
	switch {
	case o.Time != nil:
		saved = o.Time()
	case s.stream:
		saved = time.Time{}
	}
	in, err := open()
	if err != nil {
		yield(agentevents.Event{}, err)
		return nil
	}
	file := in
	defer func() {
		if rest == nil {
			_ = file.Close() // it was only read
		}
	}()
	if s.stream && saved.IsZero() {
		var first time.Time
		if in, first = firstTime(in); !first.IsZero() && time.Since(first) > time.Minute {
			saved = time.Now()
		}
	}
	if s.stream && !saved.IsZero() { // it is read twice
		text, err := io.ReadAll(in)
		open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
		in = io.NopCloser(io.MultiReader(bytes.NewReader(text), failing{err}))
	}
	d := s.Program.Decoder(o, saved, open)
	from := lines.NewReader(in, cmp.Or(o.MaxLine, agentevents.DefaultMaxLine))
	var events []agentevents.Event
	runs := runsOf{given: given, p: s.Program}
	for ended := false; !ended; {
		line, err := from.Next()
		*at = from.Pos().Line
		events = events[:0]
		var long *lines.TooLongError
		p := s.another(line)
		switch bad := jsonwire.Valid(string(line)); {
		case errors.As(err, &long):
			err = &agentevents.LineError{Err: fmt.Errorf("%s: %w (Options.MaxLine); it was skipped", s.Program.Name, err)}
		case err != nil:
		case p != nil:
			events, err = d.End(events)
		case line == nil:
			events, err = d.End(events)
			*at, ended = *at+1, true
		case bad != nil && from.Ended():
			err = unreadable(s.Program, string(line), bad, true)
		default:
			events, err = d.Decode(events, line)
		}
		for _, ev := range events {
			left, again := runs.see(ev.RunID, *at)
			if left != nil && !yield(agentevents.Event{}, left) || runs.stopped {
				return nil
			}
			if again {
				continue
			}
			if unknown, ok := ev.Payload.(*agentevents.Unknown); ok {
				s.Residue.Add(Unread{s.Program.Name, f.Facts.Version, string(unknown.Type), ""})
			}
			if !yield(ev, nil) {
				return nil
			}
		}
		if err != nil && !yield(agentevents.Event{}, err) {
			return nil
		}
		if p != nil {
			if given || p.Split != nil {
				yield(agentevents.Event{}, failed(f.Path, *at, stops(p, given)))
				return nil
			}
			text := append(append([]byte{}, line...), '\n')
			return &tail{p: p, before: *at - 1, buf: text, lines: from, in: file}
		}
	}
	if left := runs.end(*at); left != nil {
		yield(agentevents.Event{}, left)
	}
	return nil
}

// another returns the program that a line belongs to, if it is not the one of the decoder.
func (s *Source) another(line []byte) *Program {
	for _, begin := range s.Program.Own {
		if bytes.HasPrefix(line, begin) {
			return nil
		}
	}
	if !bytes.HasPrefix(line, []byte("{")) {
		return nil
	}
	if p, ok := Detect(s.programs, []string{string(line)}); ok && p.Files[0] != s.Program.Files[0] {
		return p
	}
	return nil
}

// runsOf are the runs of a stream with the lines of several processes.
type runsOf struct {
	p       *Program
	given   bool // a caller has named the run
	ids     map[string]bool
	id      string
	first   int  // line of its first event
	again   bool // it stands there for the second time
	stopped bool
}

// see notes the run of an event. It reports whether the event is left out, and the fault of an earlier run.
func (r *runsOf) see(id string, line int) (fault error, again bool) {
	if id == r.id {
		return nil, r.again
	}
	if r.given && r.id != "" {
		r.stopped = true
		return failed("", line, errOneRun), true
	}
	fault = r.end(line)
	if r.ids == nil {
		r.ids = map[string]bool{}
	}
	r.id, r.first, r.again = strings.Clone(id), line, r.ids[id]
	r.ids[r.id] = true
	return fault, r.again
}

// end returns the fault of a run that is left out.
func (r *runsOf) end(line int) error {
	if !r.again {
		return nil
	}
	return leftOut(r.p, "process", r.id, r.first, line-1)
}

// firstTime reads a stream up to its first line with a time, or a megabyte, and returns that time and
// a reader of the whole stream. An old time tells that the stream was saved: a program that runs right
// now prints the time of each such line.
func firstTime(in io.ReadCloser) (io.ReadCloser, time.Time) {
	var head bytes.Buffer
	from := lines.NewReader(io.TeeReader(in, &head), agentevents.DefaultMaxLine)
	var first time.Time
	for first.IsZero() && !from.Ended() && head.Len() < 1<<20 {
		line, err := from.Next()
		if err == nil {
			first, _ = time.Parse(time.RFC3339, jsonwire.Text(jsonwire.Member(string(line), "timestamp")))
		}
	}
	return io.NopCloser(io.MultiReader(&head, in)), first
}

// A failing reader has an error only; nil is the end.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, cmp.Or(f.err, io.EOF) }
