package dialect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Auto is a decoder for logs of any dialect, and of several in turns: it finds
// out the dialect of every line ([Detect]). A line that does not tell is taken
// for one like the line before, if it has anything of that dialect besides a
// type. An object that has nothing of it, and a line of a dialect that there is
// no decoder for, is an error that says so. Of the first lines those that have any
// of the members id, sequence and runId, or are no JSON object at all, are given to
// the native decoder: its error says what is wrong with them.
//
// Server-Sent Events begin with data that is an object or with the name of an
// event, unless they begin the log: a comment, an id or a retry between the lines
// of a log is something that a program wrote there, and an error.
//
//	r := agentevents.NewReader(file, agentevents.ReaderOptions{Decoder: &dialect.Auto{
//		Decoders: map[dialect.Name]agentevents.Decoder{dialect.KAHN: kahn.NewDecoder(kahn.Options{})},
//	}})
//
// The events of a run should come from one dialect: every decoder numbers the
// events of documents without numbers by itself. An Auto is not for concurrent
// use.
type Auto struct {
	// Decoders are the decoders, by dialect; without one for Native, native
	// lines are read by [agentevents.NewDecoder].
	Decoders map[Name]agentevents.Decoder
	// Detect returns the dialect of a line, and "" when the line does not tell;
	// nil means [Detect]. A log with lines of a dialect of somebody else's is
	// read with a Detect that knows that one and asks [Detect] for the others.
	Detect func(line string) Name
	// OnLine, if not nil, is told the dialect that every line is taken for
	// before it is decoded.
	OnLine func(Name)

	last   Name // of the line before
	framed bool // that was a line of Server-Sent Events
}

// Decode appends the events of a line.
func (a *Auto) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	name, err := a.detect(line)
	if a.OnLine != nil {
		a.OnLine(name)
	}
	switch d := a.Decoders[name]; {
	case err != nil:
		return dst, err
	case d != nil:
		return d.Decode(dst, line)
	case name == Native || name == "":
		return a.native().Decode(dst, line)
	}
	return dst, &agentevents.LineError{Err: fmt.Errorf("a line of %s, which there is no decoder for here", name)}
}

// detect returns the dialect that a line is read as, which is that of the line
// before for one that does not tell, and the error of one that is of none.
func (a *Auto) detect(line []byte) (Name, error) {
	if a.Detect == nil && isNative(line) {
		a.last, a.framed = Native, false
		return Native, nil
	}
	text := string(line)
	frame := isFrame(text)
	defer func() { a.framed = frame }()
	detect := a.Detect
	if detect == nil {
		detect = Detect
	}
	name := detect(text)
	if name == KAOS && frame && !a.framed && a.last != "" && !beginsFrame(text) {
		frame = false
		return a.last, &agentevents.LineError{Err: errStray}
	}
	if name == "" {
		if l, ok := look(text); ok && !l.mayBe(a.last) && jsonwire.Valid(text) == nil {
			if !l.mayBe(Native) {
				return a.last, &agentevents.LineError{Err: errForeign}
			}
			name = Native
		}
	}
	if name == "" {
		return a.last, nil
	}
	a.last = name
	return name, nil
}

var (
	errForeign = errors.New(`no known format: a native line has "id", "sequence", "runId" and "type"; name the format of lines that lack what it is known by; 'agentevents import' reads what agent programs print`)
	errStray   = errors.New("no line of a log: looks like one of Server-Sent Events, but none came before")
)

// End appends what was waiting for more lines.
func (a *Auto) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	names := make([]Name, 0, len(a.Decoders))
	for name := range a.Decoders {
		names = append(names, name)
	}
	slices.Sort(names)
	var errs []error
	for _, name := range names {
		var err error
		if dst, err = a.Decoders[name].End(dst); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return dst, errs[0]
	}
	return dst, errors.Join(errs...)
}

func (a *Auto) native() agentevents.Decoder {
	d := a.Decoders[Native]
	if d == nil {
		d = agentevents.NewDecoder()
		if a.Decoders == nil {
			a.Decoders = map[Name]agentevents.Decoder{}
		}
		a.Decoders[Native] = d
	}
	return d
}

// isNative reports whether the line begins as this module's writer begins
// lines. No other dialect does, so most lines of native logs need no more than
// this.
func isNative(line []byte) bool {
	const id, sequence = `{"id":"`, `","sequence":`
	if len(line) < len(id) || string(line[:len(id)]) != id {
		return false
	}
	head := line[len(id):min(len(line), 120)]
	for i, c := range head {
		if c == '"' {
			return strings.HasPrefix(string(head[i:]), sequence)
		}
		if c == '\\' {
			break
		}
	}
	return false
}
