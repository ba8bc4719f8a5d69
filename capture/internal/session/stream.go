package session

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/lines"
)

// Stream returns the source of a stream, such as standard input, of a program. It can be read once.
func Stream(p *Program, name string, in io.Reader) *Source {
	return &Source{
		Program: p, stream: true,
		Files: []*File{{Path: name, whole: func() (io.ReadCloser, error) { return io.NopCloser(in), nil }}},
	}
}

// decode yields the events of a source whose program has a decoder.
func (s *Source) decode(o Options, yield func(Item) bool) {
	line := 0
	var events iter.Seq2[agentevents.Event, error] = func(yield func(agentevents.Event, error) bool) {
		s.decoded(o, &line, yield)
	}
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
}

// decoded yields the events of the lines, and keeps the number of the line that it reads.
func (s *Source) decoded(o Options, at *int, yield func(agentevents.Event, error) bool) {
	f := s.Files[0]
	if v := f.Facts.Version; Newer(v, s.Program.Tested) {
		s.Notes = append(s.Notes, s.Program.Name+": "+newer(s.Program, v))
	}
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
		return
	}
	defer in.Close() // it was only read
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
	for ended := false; !ended; {
		line, err := from.Next()
		*at = from.Pos().Line
		events = events[:0]
		var long *lines.TooLongError
		switch bad := jsonwire.Valid(string(line)); {
		case errors.As(err, &long):
			err = &agentevents.LineError{Err: fmt.Errorf("%s: %w", s.Program.Name, err)}
		case err != nil:
		case line == nil:
			events, err = d.End(events)
			ended = true
		case bad != nil && from.Ended():
			err = unreadable(s.Program, string(line), bad, true)
		default:
			events, err = d.Decode(events, line)
		}
		for _, ev := range events {
			if unknown, ok := ev.Payload.(*agentevents.Unknown); ok {
				s.Residue.Add(Unread{s.Program.Name, f.Facts.Version, string(unknown.Type), ""})
			}
			if !yield(ev, nil) {
				return
			}
		}
		if err != nil && !yield(agentevents.Event{}, err) {
			return
		}
	}
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
