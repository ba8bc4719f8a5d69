package dialect

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/foreign"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Auto is a decoder for logs of any dialect, also for a log with lines of several.
// It detects the dialect of every line ([Detect]). A line that does not tell its
// dialect goes to the decoder of the line before, unless it is an object with no
// member of that dialect besides a type. Such an object goes to the native decoder
// if it has id, sequence or runId, and is an error otherwise. At the start of a log
// the native decoder takes the place of the one before. A line of a dialect without
// a decoder is an error.
//
// A line of another program is an [*agentevents.ForeignError]. After it a line counts as
// an event only if it names its run.
//
// Server-Sent Events begin with data that is an object, or with the name of an
// event. At the start of a log they may begin with any field. Between the lines
// of a log, a comment, an id or a retry is text of some program: it is an error.
//
//	r := agentevents.NewReader(file, agentevents.ReaderOptions{Decoder: &dialect.Auto{
//		Decoders: map[dialect.Name]agentevents.Decoder{dialect.KAHN: kahn.NewDecoder(kahn.Options{})},
//	}})
//
// The events of a run should come from one dialect, because every decoder of a
// document without sequence numbers counts for itself. Each of several files needs an
// Auto of its own, with the same Decoders if the files are one log. An Auto is not for
// concurrent use.
type Auto struct {
	// Decoders are the decoders, by dialect. Without one for Native, Auto uses
	// [agentevents.NewDecoder].
	Decoders map[Name]agentevents.Decoder
	// Detect returns the dialect of a line, and "" when the line does not tell. Nil
	// means [Detect]. To read a dialect of another module, recognise its lines here
	// and ask [Detect] about the others.
	Detect func(line string) Name
	// OnLine, if not nil, receives the dialect of every line before the line is
	// decoded.
	OnLine func(Name)

	last    Name // the dialect of the latest line
	line    Name // and of one that the reader takes for native
	framed  bool // the latest line is part of a Server-Sent Event
	foreign bool // a line of another program came, and no line of a log after it
	doubt   bool // the current line may be one of another program
}

// Decode appends the events of a line.
func (a *Auto) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	last, events := a.last, len(dst)
	name, err := a.detect(line)
	a.line = name
	if a.OnLine != nil {
		a.OnLine(name)
	}
	d := a.Decoders[name]
	if d == nil && (name == Native || name == "") {
		d = a.native()
	}
	switch {
	case err != nil:
	case d == nil:
		err := fmt.Errorf("this is a line of %s, but the reader has no decoder for that dialect", name)
		return dst, &agentevents.LineError{Err: err}
	default:
		switch dst, err = d.Decode(dst, line); {
		case a.doubt && err == nil:
			err = foreignLine(foreign.Unknown)
		case a.doubt:
			dst = dst[:events] // the error counts
		}
	}
	var other *agentevents.ForeignError
	if err != nil && errors.As(err, &other) {
		a.foreign = true
		if len(dst) == events {
			a.last = last
		}
	} else if err == nil {
		a.foreign = false
	}
	return dst, err
}

// NativeDecoder returns the decoder of native lines if Decode certainly gives it the line, and
// nil otherwise. It is for an [agentevents.Reader], which reads such lines in less time.
func (a *Auto) NativeDecoder(line []byte) agentevents.Decoder {
	if a.Detect != nil || a.OnLine != nil || !isNative(line) {
		return nil
	}
	a.line = Native
	return a.native()
}

// Dialect returns the dialect of the latest line, "" before the first one.
func (a *Auto) Dialect() Name { return a.line }

// foreignLine returns the error for a line of another program.
func foreignLine(f foreign.File) error {
	e := agentevents.ForeignError(f)
	return &agentevents.LineError{Err: &e}
}

// detect returns the dialect to read a line as: the latest one if the line does
// not tell. The error is for a line of no dialect.
func (a *Auto) detect(line []byte) (Name, error) {
	a.doubt = false
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
	if name == KAOS && a.framed && a.last == AGUI { // a field beside the data
		name = AGUI
	}
	if name == KAOS && frame {
		// Auto reads Server-Sent Events of KAOS and AG-UI only. The decoder of any other line
		// reports the error.
		if field, data, _ := strings.Cut(text, ":"); field == "data" {
			if inner := Detect(strings.TrimSpace(data)); inner != "" {
				name = inner
			} else if strings.TrimSpace(data) == "[DONE]" && (a.last == KAOS || a.last == AGUI) {
				name = a.last // the end of the stream, as servers of models send it
			} else if f, ok := foreign.Line(text); ok {
				return a.last, foreignLine(f)
			}
		}
	}
	if name == KAOS && frame && !a.framed && a.last != "" && !beginsFrame(text) {
		frame = false
		return a.last, &agentevents.LineError{Err: errStray}
	}
	if name == "" {
		l, ok := look(text)
		var syntax *jsonwire.SyntaxError
		// no decoder has a better error for broken JSON
		if !ok && strings.HasPrefix(text, "{") && errors.As(jsonwire.Valid(text), &syntax) {
			return a.last, &agentevents.LineError{Column: syntax.Offset, Pointer: jsonwire.Pointer(text, syntax.Offset),
				Err: errors.New(syntax.Msg)}
		}
		f, named := foreign.Line(text)
		switch {
		case !ok || !named && (l.mayBe(a.last) || jsonwire.Valid(text) != nil):
		case named:
			return a.last, foreignLine(f)
		case l.mayBe(Native):
			name = Native
		default:
			return a.last, foreignLine(foreign.Unknown)
		}
	} else if a.foreign && a.Detect == nil {
		if a.doubt = foreign.Doubtful(text); a.doubt && name != a.last {
			return a.last, foreignLine(foreign.Unknown) // the decoder would make up a run
		}
	}
	if name == "" {
		return a.last, nil
	}
	a.last = name
	return name, nil
}

var errStray = errors.New("looks like a Server-Sent Events field, but the log is not an event stream")

// End appends the events that were waiting for more lines.
func (a *Auto) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	var errs []error
	for _, name := range a.names() {
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

func (a *Auto) names() []Name { return slices.Sorted(maps.Keys(a.Decoders)) }

// Losses returns the values that the decoders made up, in the order of the decoders' names. It
// leaves out the decoder named except: an encoder of the same dialect does not write these values.
func (a *Auto) Losses(except Name) (list []Loss) {
	for _, name := range a.names() {
		if d, ok := a.Decoders[name].(Decoder); ok && name != except {
			list = append(list, d.Losses()...)
		}
	}
	return list
}

// Locate returns the pointer of a field on the line that was decoded last. See [Locator].
func (a *Auto) Locate(kind agentevents.Kind, native string) string {
	if d, ok := a.Decoders[a.line].(Locator); ok {
		return d.Locate(kind, native)
	}
	return native
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

// isNative reports whether the line begins like the lines of this module's
// Writer. No other dialect's lines do, so this quick look is enough for most
// native lines.
func isNative(line []byte) bool {
	const id, sequence = `{"id":"`, `","sequence":`
	if len(line) < len(id) || string(line[:len(id)]) != id {
		return false
	}
	head := line[len(id):min(len(line), 120)]
	end := bytes.IndexByte(head, '"')
	return end >= 0 && bytes.HasPrefix(head[end:], []byte(sequence)) && bytes.IndexByte(head[:end], '\\') < 0
}
