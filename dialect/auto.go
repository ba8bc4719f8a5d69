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
// for one like the line before. The first lines, and those of a dialect that
// there is no decoder for, are given to the native decoder if they have any of
// the members id, sequence and runId, or are no JSON object at all: its error
// says what is wrong with them. Others are an error that says that they are of
// no known format: the native decoder keeps events of unknown types, so it
// would take most objects for events.
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

	last Name // of the line before
}

// Decode appends the events of a line.
func (a *Auto) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	name, told := Native, true
	if a.Detect != nil {
		name = a.Detect(string(line))
	} else if !isNative(line) {
		name = Detect(string(line))
	}
	if name == "" {
		name, told = a.last, false
	}
	a.last = name
	if a.OnLine != nil {
		a.OnLine(name)
	}
	if d := a.Decoders[name]; d != nil && name != Native {
		return d.Decode(dst, line)
	}
	if !(told && name == Native) && isForeign(string(line)) {
		if told {
			return dst, &agentevents.LineError{Err: fmt.Errorf("a line of %s, which there is no decoder for here", name)}
		}
		return dst, &agentevents.LineError{Err: errForeign}
	}
	return a.native().Decode(dst, line)
}

var errForeign = errors.New(`no known format: a native line has "id", "sequence", "runId" and "type"; what an agent program printed is read with 'agentevents import'`)

// isForeign reports whether a line is an object without any of the members that
// every native line has and other objects rarely do. One with some of them is a
// native line that is damaged, or was written by hand.
func isForeign(line string) bool {
	if !strings.HasPrefix(strings.TrimLeft(line, " \t"), "{") || jsonwire.Valid(line) != nil {
		return false
	}
	for name := range jsonwire.Members(line) {
		switch name {
		case "id", "sequence", "runId":
			return false
		}
	}
	return true
}

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
