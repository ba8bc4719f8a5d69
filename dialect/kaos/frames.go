package kaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A frame is the state of a Server-Sent Event that is not complete yet: see the
// documentation of the package. The beginning of an object waits for more data lines
// until there is an event line, a line that is not a field, a data line that begins
// a KAOS event of its own, or the end of the log.
type frame struct {
	named    bool   // an event line came, and no data since
	event    string // the value of the event line
	data     []byte // the beginning of an object
	depth    int    // the open brackets in data
	sequence int64  // of the latest object
	owner    owner  // the data that the next id line belongs to
	id       string // the value of an id line before its data
}

// An owner is the data that an id line belongs to.
type owner int

const (
	following owner = iota // the data that follows
	latest                 // the latest object
	discarded              // data that was bad
)

// Decode appends the event that a line completes, if any. The line is JSON or a
// line of a Server-Sent Event. Decode may return events together with an error.
func (d *Decoder) Decode(dst []agentevents.Event, text []byte) ([]agentevents.Event, error) {
	if !isField(text) || bytes.IndexByte(text, '\r') < 0 {
		return d.field(dst, text)
	}
	// The log ends lines with CR alone, so text is several lines.
	var errs []error
	for one := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte("\r")), []byte("\r")) {
		var err error
		if len(one) == 0 {
			err = d.torn()
		} else {
			dst, err = d.field(dst, one)
		}
		errs = append(errs, err)
	}
	return dst, errors.Join(errs...)
}

// End reports a frame that is incomplete at the end of the log.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	err := d.torn()
	if err == nil && d.frame.named {
		err = &agentevents.LineError{Err: fmt.Errorf("the log ends in a frame: event %s has no data: %w",
			jsonwire.Word(d.frame.event), io.ErrUnexpectedEOF)}
	}
	return dst, err
}

// isField reports whether a line is a field of a Server-Sent Event. The standard ignores fields
// that it does not define, but in a log they are text of another program, such as "ERROR: the disk
// is full".
func isField(text []byte) bool {
	name, _, colon := bytes.Cut(text, []byte(":"))
	switch string(name) {
	case "", "data", "event", "id", "retry":
		return colon || len(name) > 0
	}
	return false
}

// field reads a line that does not begin with an object.
func (d *Decoder) field(dst []agentevents.Event, text []byte) ([]agentevents.Event, error) {
	f := &d.frame
	if !isField(text) {
		err := d.torn()
		f.named = false
		out, derr := d.document(dst, text)
		return out, errors.Join(err, derr)
	}
	name, value, _ := bytes.Cut(text, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if string(value) == engine.Done {
			return dst, d.torn()
		}
		return d.data(dst, value, len(text)-len(value))
	case "event":
		err := d.torn()
		f.named, f.event, f.owner = true, string(value), following
		return dst, err
	case "id":
		if !d.o.Strict || len(value) == 0 {
			break
		}
		owner := f.owner
		f.owner = following
		switch owner {
		case following:
			f.id = string(value)
		case latest:
			return dst, f.checkID(string(value))
		}
	case "retry":
		if len(bytes.Trim(value, "0123456789")) > 0 {
			return dst, &agentevents.LineError{Column: len(text) - len(value),
				Err: errors.New("the value of retry is not a whole number of milliseconds")}
		}
	}
	return dst, nil
}

// checkID compares the id of a frame with its data.
func (f *frame) checkID(id string) error {
	if id == strconv.FormatInt(f.sequence, 10) {
		return nil
	}
	detail := fmt.Sprintf("the frame's id is %s, but the sequence in its data is %d", jsonwire.Word(id), f.sequence)
	return &agentevents.RuleError{Rule: RuleFrame, Pointer: "/sequence", Detail: detail}
}

// torn discards the beginning of an object, if there is one, and returns its
// error.
func (d *Decoder) torn() error {
	f := &d.frame
	if len(f.data) == 0 {
		return nil
	}
	size := len(f.data)
	f.data, f.depth, f.id, f.owner = nil, 0, "", discarded
	return &agentevents.LineError{
		Err: fmt.Errorf("the frame before is torn: its data (%d bytes) is not a complete JSON object: %w",
			size, io.ErrUnexpectedEOF),
	}
}

// data reads the value of a data line. offset is where the value begins on the
// line.
func (d *Decoder) data(dst []agentevents.Event, value []byte, offset int) ([]agentevents.Event, error) {
	f := &d.frame
	switch {
	case len(f.data) > 0 && begins(value):
		err := d.torn()
		out, derr := d.data(dst, value, offset)
		return out, errors.Join(err, derr)
	case len(f.data) > 0:
		if len(f.data)+len(value) > agentevents.DefaultMaxLine {
			return dst, d.torn()
		}
		// The standard joins the data lines of a frame with a newline. A tab does the
		// same here: it is blank between tokens, and an error inside a string.
		f.data = append(append(f.data, '\t'), value...)
		if f.depth = brackets(value, f.depth); f.depth > 0 {
			return dst, nil
		}
		value, offset = f.data, -1
		f.data, f.depth = nil, 0
	case len(bytes.TrimSpace(value)) == 0:
		return dst, nil
	}
	out, err := d.document(dst, value)
	if err != nil && offset >= 0 {
		if f.depth = brackets(value, 0); f.depth > 0 { // more data lines may complete it
			f.data, f.owner = append(f.data[:0], value...), following
			return dst, nil
		}
	}
	return out, f.framed(value, offset, err)
}

// begins reports whether a data line begins an event of its own.
func begins(value []byte) bool {
	value = bytes.TrimLeft(value, " \t")
	return len(value) > 0 && value[0] == '{' && dialect.Detect(string(value)) == Name
}

// framed ends the frame of an object that was read with the given error, and gives
// the error its place. offset is where the object begins on the line, for the column
// of errors, or -1 if it is on several lines.
func (f *frame) framed(text []byte, offset int, err error) error {
	switch {
	case err != nil:
		f.owner = discarded
	case f.id != "":
		err, f.owner = f.checkID(f.id), following
	default:
		f.owner = latest
	}
	f.named, f.id = false, ""
	syntax, ok := err.(*jsonwire.SyntaxError)
	if !ok {
		return err
	}
	le := &agentevents.LineError{Pointer: jsonwire.Pointer(string(text), syntax.Offset), Err: errors.New(syntax.Msg)}
	if offset >= 0 {
		le.Column = offset + syntax.Offset
	}
	return le
}

// brackets returns how many brackets are open after text, if depth are open before
// it. It returns 0 if text ends inside a string, which no other line can end. The text
// may be malformed.
func brackets(text []byte, depth int) int {
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	if inString {
		return 0
	}
	return depth
}
