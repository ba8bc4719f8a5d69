package agentevents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	"github.com/agentevents/agentevents/internal/chain"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/lines"
	"github.com/agentevents/agentevents/internal/option"
	"github.com/agentevents/agentevents/internal/reuse"
)

// This file says what a line is: how one is written whole, and how one that is
// damaged is stepped over.

// WriterOptions configure a [Writer]. The zero WriterOptions are usable.
type WriterOptions struct {
	// BufferSize is how many bytes may wait before they are written. 0 writes
	// every line at once, with one write, so that a crash of the process loses
	// nothing that was emitted; one of the machine may: see package logfile. With a buffer
	// lines wait for Flush, Close or more lines; writing costs a fraction.
	BufferSize int `least:"0"`
}

// A Writer is a sink that writes one line per event. It may serve several runs
// and emitters at once.
//
// When the destination fails, what could not be written is held back and
// written before anything else once it works again: no line is torn by a
// passing failure. Beyond 16 MiB of that, events are refused.
type Writer struct {
	mu      sync.Mutex
	out     *lines.Writer
	scratch []byte
	closer  io.Closer // of a file opened here
	closed  bool
	bad     error // of its options; out is nil then
}

func (w *Writer) ok() bool { return w != nil && w.out != nil }

// unusable returns why a writer cannot be used that is not ok.
func (w *Writer) unusable() error {
	if w != nil && w.bad != nil {
		return w.bad
	}
	return ErrZeroValue
}

// NewWriter returns a writer to w. Close flushes and leaves w open. When an option makes no
// sense, the calls of the writer and [NewEmitter] return an [*OptionError].
func NewWriter(w io.Writer, o WriterOptions) *Writer {
	if w == nil {
		return &Writer{}
	}
	if err := option.Check("WriterOptions", o); err != nil {
		return &Writer{bad: err}
	}
	return &Writer{out: lines.NewWriter(contained{w}, o.BufferSize)}
}

// contained is a writer whose panics are errors.
type contained struct{ w io.Writer }

func (c contained) Write(p []byte) (n int, err error) {
	defer contain(&err)
	return c.w.Write(p)
}

// OpenFile returns a writer that appends to a file, which is created if need
// be. A new file has the mode 0600, because a log is confidential; one that is
// there keeps its own. A symbolic link is refused if somebody else has made it: not the
// program's user, nor the system's. If the file ends in the middle of a line, that line is
// ended first, so that a torn tail does not spoil what follows. The torn line stays, as a
// loss is not hidden: readers report it as a bad line, unless it is cut off before (see
// [LineError] and the example of [Emitter.Resume]). "agentevents cat" copies a log without
// it. Close closes the file.
//
// One process writes a file: if one of several is killed in the middle of a line, the
// next line of another is glued to it. A file that is removed or renamed while it is open
// gets the lines all the same. Package logfile has logs that do better.
func OpenFile(path string, o WriterOptions) (*Writer, error) {
	if err := option.Check("WriterOptions", o); err != nil {
		return nil, err
	}
	f, torn, err := lines.OpenFile(path)
	if err != nil {
		return nil, err
	}
	w := NewWriter(f, o)
	w.closer = f
	if torn {
		w.out.EndLine()
	}
	return w, nil
}

// WriteEvent writes the event's line.
func (w *Writer) WriteEvent(ctx context.Context, ev Event) error {
	if !w.ok() {
		return w.unusable()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	line, err := ev.AppendJSON(w.scratch[:0])
	if err != nil {
		return err
	}
	if cap(line) <= maxKeptLine {
		w.scratch = line
	}
	return w.write(line)
}

// WriteLine writes a line that is already encoded.
func (w *Writer) WriteLine(_ context.Context, _ Event, line []byte) error { return w.writeLine(line) }

func (w *Writer) writeLine(line []byte) error {
	if !w.ok() {
		return w.unusable()
	}
	w.mu.Lock()
	if !w.closed && w.out.Put(line) { // the usual case: nothing is called that may not return
		w.mu.Unlock()
		return nil
	}
	defer w.mu.Unlock()
	return w.write(line)
}

// write takes one line. w.mu is held.
func (w *Writer) write(line []byte) error {
	if w.closed {
		return ErrClosed
	}
	return w.out.Write(line)
}

// Flush writes what is buffered.
func (w *Writer) Flush(context.Context) error {
	if !w.ok() {
		return w.unusable()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Flush()
}

// Close flushes, and closes a file that [OpenFile] opened. What cannot be
// written is lost, and Close says how much. Later events are refused with
// [ErrClosed]; Flush and Close do nothing then.
func (w *Writer) Close() error {
	if !w.ok() {
		return w.unusable()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	err := w.out.Flush()
	if err != nil {
		err = fmt.Errorf("agentevents: %d bytes are lost: %w", w.out.Discard(), err)
	}
	if w.closer != nil {
		err = errors.Join(err, w.closer.Close())
	}
	return err
}

// A Decoder turns lines into events. It may keep state from line to line: one
// line may be several events and several lines one.
//
// Decode appends the events of a line to dst; line is valid only during the
// call and has no newline. Events may come with an error. A [*LineError]
// should have Column and Pointer set; the [Reader] fills in line and offset.
// Several errors are joined ([errors.Join]); the Reader yields one by one.
// End appends what was waiting for more lines.
type Decoder interface {
	Decode(dst []Event, line []byte) ([]Event, error)
	End(dst []Event) ([]Event, error)
}

// DefaultMaxLine is the length of the longest line that a [Reader] accepts and an
// [Emitter] writes unless they are told otherwise: 16 MiB.
const DefaultMaxLine = 16 << 20

// ReaderOptions configure a [Reader]. The zero ReaderOptions read native logs.
type ReaderOptions struct {
	// Decoder turns lines into events; nil decodes the native format.
	Decoder Decoder
	// MaxLine is the length in bytes of the longest line that is accepted; 0
	// means [DefaultMaxLine]. Longer lines are skipped and reported. An emitter
	// writes none with the same EmitterOptions.MaxLine.
	MaxLine int `least:"0"`
	// Verbatim makes the reader keep each line with its event, where the line is
	// one event, so that an event that is not changed is written back byte for
	// byte, however it was spelled. See [Event.Origin].
	Verbatim bool
}

// A Reader reads events from lines. It accepts byte order marks, CRLF, blank
// lines and a missing final newline. A bad line is an error that says where;
// nothing before or after it is lost. What links the lines of a tamper-evident
// file belongs to the file: it is no part of the events.
//
// A Reader comes from [NewReader], and is not for concurrent use.
type Reader struct {
	in       *lines.Reader
	dec      Decoder
	verbatim bool
	done     bool // the decoder was told that the input has ended

	events []Event // of the current line
	given  int     // how many of them were yielded
	err    error   // yielded after them
	more   []error // yielded after err
	bad    error   // of its options; in is nil then
}

// NewReader returns a reader of r. When r is nil, or an option makes no sense, the reader gives
// an error and nothing else: [ErrZeroValue], or an [*OptionError].
func NewReader(r io.Reader, o ReaderOptions) *Reader {
	if r == nil {
		return &Reader{}
	}
	if err := option.Check("ReaderOptions", o); err != nil {
		return &Reader{bad: err}
	}
	if o.Decoder == nil {
		o.Decoder = &nativeDecoder{}
	}
	return &Reader{in: lines.NewReader(r, cmp.Or(o.MaxLine, DefaultMaxLine)), dec: o.Decoder, verbatim: o.Verbatim}
}

// usable returns why the reader cannot be used.
func (r *Reader) usable() error {
	switch {
	case r == nil || r.in == nil && r.bad == nil:
		return ErrZeroValue
	default:
		return r.bad
	}
}

// Line returns the number, from 1, of the line that the last event or error
// came from; 0 before the first.
func (r *Reader) Line() int {
	if r.usable() != nil {
		return 0
	}
	return r.in.Pos().Line
}

// All yields the events in order. An error stands between the events where it
// belongs: a [*LineError] for a bad line, after which reading goes on, or the
// error of the input, which ends it. All continues where an earlier call
// stopped.
func (r *Reader) All() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := r.usable(); err != nil {
			yield(Event{}, err)
			return
		}
		for {
			for r.given < len(r.events) {
				r.given++
				if !yield(r.events[r.given-1], nil) {
					return
				}
			}
			for r.err != nil {
				err := r.err
				r.err = nil
				if len(r.more) > 0 {
					r.err, r.more = r.more[0], r.more[1:]
				}
				if !yield(Event{}, err) {
					return
				}
			}
			if r.done {
				return
			}
			r.decode()
		}
	}
}

// decode reads and decodes one line.
func (r *Reader) decode() {
	if len(r.events) > 1 {
		clear(r.events[1:]) // the decoder overwrites the first
	}
	r.events, r.given = r.events[:0], 0
	line, err := r.next()
	if err != nil {
		r.err = err
	} else if line != nil {
		var bad error
		if r.events, bad = r.dec.Decode(r.events, line); bad != nil {
			r.fail(bad, line)
		} else if r.verbatim && len(r.events) == 1 {
			r.events[0].origin = chain.Text(line)
		}
	}
	if r.in.Ended() {
		r.done = true
		if r.events, err = r.dec.End(r.events); err != nil {
			for _, err := range splitJoined(err) {
				r.add(placed(err, r.in.Pos()))
			}
		}
	}
}

// next returns the next line, and nil when there is none. It is a [*LineError] when
// the line cannot be read.
func (r *Reader) next() ([]byte, error) {
	line, err := r.in.Next()
	if err == nil {
		return line, nil
	}
	var long *lines.TooLongError
	if errors.As(err, &long) {
		err = fmt.Errorf("%w (ReaderOptions.MaxLine); it was skipped", long)
	} else {
		err = fmt.Errorf("reading: %w", err)
	}
	return nil, &LineError{Line: r.in.Pos().Line, Offset: r.in.Pos().Offset, Err: err}
}

// fail keeps the errors of a line, to be yielded.
func (r *Reader) fail(err error, line []byte) {
	parts := splitJoined(err)
	if lines.Foreign(line, false, false) != nil {
		parts = parts[:1] // all say the same
	}
	for i, err := range parts {
		r.add(lineErrorAt(r.in.Pos(), err, line, r.in.Ended() && i == len(parts)-1))
	}
}

func (r *Reader) add(err error) {
	if r.err == nil {
		r.err = err
	} else {
		r.more = append(r.more, err)
	}
}

// splitJoined returns the errors that errors.Join put together. An error that
// wraps several in a text of its own is one error.
func splitJoined(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	parts := joined.Unwrap()
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.Error()
	}
	if err.Error() != strings.Join(texts, "\n") {
		return []error{err}
	}
	var all []error
	for _, part := range parts {
		all = append(all, splitJoined(part)...)
	}
	return all
}

// each gives every event of a native log to event, together with its canonical
// text, and every error to fail. It is quicker than All: event and text are valid
// only during the call.
func (r *Reader) each(event func(ev *Event, line string), fail func(error)) {
	for ; r.given < len(r.events); r.given++ { // left over by All
		ev := &r.events[r.given]
		event(ev, string(ev.append(nil, ops(ev.Payload))))
	}
	if r.err != nil {
		fail(r.err)
		r.err = nil
	}
	pool := payloadPool{reuse: true}
	text := reuse.Slab{Size: 32 << 10}
	var ev Event
	for !r.in.Ended() {
		line, err := r.next()
		if err != nil {
			fail(err)
			continue
		}
		if line == nil {
			break // the rest is blank
		}
		line = chain.Strip(line)
		s := text.String(line)
		ev = Event{}
		if perr := parseEvent(s, &ev, &pool); perr != nil {
			fail(lineErrorAt(r.in.Pos(), lineError(s, perr), line, r.in.Ended()))
			continue
		}
		event(&ev, pool.canonical(s))
	}
	r.done = true
}

// placed says which line an error of the decoder is about.
func placed(err error, pos lines.Pos) *LineError {
	le, ok := err.(*LineError)
	if !ok {
		le = &LineError{Err: err}
		var inner *LineError // a wrapped one
		var rule *RuleError
		if errors.As(err, &inner) {
			le.Column, le.Pointer = inner.Column, inner.Pointer
		} else if errors.As(err, &rule) {
			le.Pointer = rule.Pointer
		}
	}
	le.Line, le.Offset = pos.Line, pos.Offset
	return le
}

// lineErrorAt says where the error of a line is. last means that the line has no
// newline.
func lineErrorAt(pos lines.Pos, err error, line []byte, last bool) error {
	badStart := false
	if syntax, ok := err.(*jsonwire.SyntaxError); ok {
		badStart = syntax.Offset == 0
		err = lineError(string(line), syntax) // of a decoder that leaves the placing to the reader
	}
	le := placed(err, pos)
	torn := last && isTorn(line)
	if foreign := lines.Foreign(line, pos.Line == 1 && !torn, badStart); foreign != nil {
		le.Column, le.Pointer, le.Err = 0, "", foreign
	} else if torn {
		le.Err = fmt.Errorf("the last line is torn (cut the file at byte %d): %w: %w", pos.Offset, io.ErrUnexpectedEOF, le.Err)
	} else if isCut(line) {
		le.Err = fmt.Errorf("the line is cut off: %w", le.Err)
	}
	return le
}

// isCut reports whether a line ends in the middle of its object.
func isCut(line []byte) bool {
	line = bytes.TrimRight(line, " \t\r")
	var syntax *jsonwire.SyntaxError
	return bytes.HasPrefix(line, []byte("{")) && errors.As(jsonwire.Valid(string(line)), &syntax) && syntax.Offset >= len(line)
}

// isTorn reports whether a line may be the beginning of a longer one. A complete
// object with a fault inside is malformed, not torn.
func isTorn(line []byte) bool {
	line = bytes.TrimRight(line, " \t\r")
	err := jsonwire.Valid(string(line))
	var syntax *jsonwire.SyntaxError
	return err != nil && !(bytes.HasSuffix(line, []byte("}")) && errors.As(err, &syntax) && syntax.Offset < len(line))
}

// NewDecoder returns a decoder of native lines: the one that a [Reader] uses
// when it is given none. It is for decoders that read several formats.
func NewDecoder() Decoder { return new(nativeDecoder) }

// nativeDecoder decodes native lines, one event each.
type nativeDecoder struct {
	pool payloadPool
}

func (d *nativeDecoder) Decode(dst []Event, line []byte) ([]Event, error) {
	text := chain.Text(line)
	dst = append(dst, Event{}) // an event is large: read it in place
	if err := parseEvent(text, &dst[len(dst)-1], &d.pool); err != nil {
		if foreign := lines.Foreign(line, false, true); foreign != nil {
			err = foreign
		}
		return dst[:len(dst)-1], lineError(text, err)
	}
	return dst, nil
}

func (d *nativeDecoder) End(dst []Event) ([]Event, error) { return dst, nil }
