package agentevents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/agentevents/agentevents/internal/chain"
	"github.com/agentevents/agentevents/internal/foreign"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/lines"
	"github.com/agentevents/agentevents/internal/option"
	"github.com/agentevents/agentevents/internal/reuse"
)

// This file defines a line: how one is written whole, and how a damaged one is skipped.

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
// When the destination fails, the unwritten bytes are kept, and are written first once it works
// again: a passing failure tears no line. Beyond 16 MiB of kept bytes, events are refused.
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

// OpenFile returns a writer that appends to a file, which is created if need be. A new file has the
// mode 0600, because a log is confidential; one that exists keeps its own. A symbolic link is
// refused if somebody else has made it: not the program's user, nor the system's. If the file ends
// in the middle of a line, that line is ended first, so that a torn tail does not spoil the next
// line. The torn line stays, as a loss is not hidden: readers report it as a bad line, unless it is
// cut off before (see [LineError] and the example of [Emitter.Resume]). "agentevents cat" copies a
// log without it. Close closes the file.
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

// Flush writes the buffer.
func (w *Writer) Flush(context.Context) error {
	if !w.ok() {
		return w.unusable()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Flush()
}

// Close flushes, and closes a file that [OpenFile] opened. Bytes that cannot be written are lost,
// and the error has their number. Later events are refused with [ErrClosed]; Flush and Close do
// nothing then.
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
//
// A [*ForeignError] beside events means that the line may be one of another program: the
// events count in an input that has proved to be a log, by an event without that error, and
// the error in any other.
//
// End appends the events that were waiting for more lines.
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
	// ReuseText makes Lines read each native line into the memory of an earlier one, which saves a
	// fifth of the CPU time of a fold. A loop that keeps a text of an event clones it then
	// ([strings.Clone]); [FoldSet.ApplyLine] does. All does not heed it.
	ReuseText bool
}

// A Reader reads events from lines. It accepts byte order marks, CRLF, blank lines and a missing
// final newline. A bad line is an error with its position; nothing before or after it is lost. The
// hashes that link the lines of a tamper-evident file belong to the file, not to the events.
//
// A Reader comes from [NewReader], and is not for concurrent use.
type Reader struct {
	in       *lines.Reader
	dec      Decoder
	verbatim bool
	reuse    bool // ReaderOptions.ReuseText
	done     bool // the decoder was told that the input has ended, or the rest is not read
	begun    bool // a line was read
	isLog    bool // a line has shown that the input is a log
	named    bool // the input was called by its name, which no line up to the first event is

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
	return &Reader{in: lines.NewReader(r, cmp.Or(o.MaxLine, DefaultMaxLine)), dec: o.Decoder, verbatim: o.Verbatim, reuse: o.ReuseText}
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
			for err := r.nextErr(); err != nil; err = r.nextErr() {
				if !yield(Event{}, err) {
					return
				}
			}
			if r.done {
				return
			}
			r.decode(r.next())
		}
	}
}

// decode decodes a line, or keeps the error of reading it. The line is nil at the end.
func (r *Reader) decode(line []byte, err error) {
	if len(r.events) > 1 {
		clear(r.events[1:]) // the decoder overwrites the first
	}
	r.events, r.given = r.events[:0], 0
	if err != nil {
		r.err = err
	} else if line != nil {
		var bad error
		r.events, bad = r.dec.Decode(r.events, line)
		if bad = r.judge(bad); bad != nil {
			r.fail(bad, line)
		} else if r.verbatim && len(r.events) == 1 {
			r.events[0].origin = chain.Text(line)
		}
		r.begun = true
	}
	r.end()
}

// end has the decoder give the events that it holds back, after the last line.
func (r *Reader) end() {
	if r.done || !r.in.Ended() {
		return
	}
	r.done = true
	var err error
	switch r.events, err = r.dec.End(r.events); {
	case r.named && !r.isLog:
		r.events = r.events[:0]
	case err != nil:
		for _, err := range splitJoined(err) {
			r.add(placed(err, r.in.Pos()))
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

// judge decides whether the events of a line count beside its error, and the error beside the
// events. The first event without a doubt shows that the input is a log.
func (r *Reader) judge(bad error) error {
	var other *ForeignError
	switch doubt := bad != nil && errors.As(bad, &other); {
	case doubt && r.isLog && len(r.events) > 0:
		return nil
	case doubt && !r.isLog:
		r.events = r.events[:0]
	case len(r.events) > 0:
		r.isLog = true
	}
	return bad
}

// fail keeps the errors of a line, to be yielded.
func (r *Reader) fail(err error, line []byte) {
	if r.named && !r.isLog {
		return
	}
	f := fault(line, r.in.Ended())
	if f.First = !r.begun; f.First {
		f.After = r.in.After()
	}
	parts := splitJoined(err)
	for i, err := range parts {
		le, rest := lineErrorAt(r.in.Pos(), err, f, i == len(parts)-1)
		r.add(le)
		var other *ForeignError
		if errors.As(le, &other) && !other.unknown() {
			r.named, r.done = true, rest && !r.isLog
			return // the others mean the same
		}
	}
}

func (r *Reader) add(err error) {
	if r.err == nil {
		r.err = err
	} else {
		r.more = append(r.more, err)
	}
}

// nextErr returns the next error to be yielded, or nil.
func (r *Reader) nextErr() error {
	err := r.err
	if r.err = nil; len(r.more) > 0 {
		r.err, r.more = r.more[0], r.more[1:]
	}
	return err
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

// A Line is an event as [Reader.Lines] yields it.
type Line struct {
	// Event is valid until the loop asks for the next line.
	Event *Event
	// Text is the event as [Event.AppendJSON] writes it, or empty where the reader has not got
	// that without writing it. [FoldSet.ApplyLine] takes both.
	Text string
}

// Lines yields the same events and errors as All, in less time, to a loop that keeps no part of an
// event: it uses the memory of an event again for the next one. The texts of an event stay valid,
// but with ReaderOptions.ReuseText; its payload, and everything that it points to, do not.
func (r *Reader) Lines() iter.Seq2[Line, error] { return r.lines(false) }

// lines is Lines. brief means that only a fold gets the events: texts that no fold reads are not
// unescaped.
func (r *Reader) lines(brief bool) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		if err := r.usable(); err != nil {
			yield(Line{}, err)
			return
		}
		q := quickReader{Reader: r, pool: payloadPool{reuse: true, brief: brief}, again: r.reuse || brief, text: reuse.Slab{Size: 32 << 10}}
		defer q.tell()
		q.picker, _ = r.dec.(nativePicker)
		_, q.all = r.dec.(*nativeDecoder)
		for {
			for r.given < len(r.events) {
				r.given++
				if !yield(Line{Event: &r.events[r.given-1]}, nil) {
					return
				}
			}
			for err := r.nextErr(); err != nil; err = r.nextErr() {
				if !yield(Line{}, err) {
					return
				}
			}
			if r.done {
				return
			}
			line, err := r.next()
			if err != nil || !q.read(line) {
				q.tell()
				r.decode(line, err)
				continue
			}
			r.isLog, r.begun = true, true
			r.events, r.given = r.events[:0], 0
			r.end()
			if !yield(Line{&q.ev, q.pool.canonical(q.line)}, nil) {
				return
			}
		}
	}
}

// A nativePicker is a decoder that gives some lines to the decoder of native lines. A reader may
// decode these itself, if it has the decoder decode the last of them again before another line.
type nativePicker interface {
	// NativeDecoder returns the decoder that Decode gives the line to, if it is the one for
	// native lines, and that is all that Decode does; else nil, also if that takes time to know.
	NativeDecoder(line []byte) Decoder
}

// A quickReader decodes native lines into the same memory.
type quickReader struct {
	*Reader
	all    bool         // its decoder is the one of native lines
	picker nativePicker // or knows them
	pool   payloadPool
	again  bool       // as ReaderOptions.ReuseText
	text   reuse.Slab // else
	ev     Event
	line   string // of the event
	untold bool   // the decoder has not seen that line

	buf, next []byte // with again, the memory of line and of the next one
}

// read reads a native line into ev. It returns false, and leaves the line as it was, if that is
// not a sound event without doubt: then the decoder has to read it.
func (q *quickReader) read(line []byte) bool {
	if line == nil || !q.all && !q.picks(line) {
		return false
	}
	own := chain.Strip(line)
	text := q.own(own)
	if q.ev = (Event{}); parseEvent(text, &q.ev, &q.pool) != nil || !q.pool.native(&q.ev) {
		chain.Unstrip(line, len(own))
		return false
	}
	if q.verbatim {
		q.ev.origin = text
	}
	q.line, q.untold = text, !q.all
	q.buf, q.next = q.next, q.buf
	return true
}

// own returns the line as a string.
func (q *quickReader) own(line []byte) string {
	if !q.again {
		return q.text.String(line)
	}
	q.next = append(q.next[:0], line...)
	return unsafe.String(unsafe.SliceData(q.next), len(q.next)) // it is in use until the line after the next one
}

func (q *quickReader) picks(line []byte) bool {
	if q.picker == nil {
		return false
	}
	_, native := q.picker.NativeDecoder(line).(*nativeDecoder)
	return native
}

// tell shows the decoder the line before the one that it decodes next.
func (q *quickReader) tell() {
	if q.untold {
		q.untold = false
		_, _ = q.dec.Decode(nil, []byte(q.line)) // the line is sound, and its event was yielded
	}
}

// fused returns the whole event that a torn one precedes on its line, read into ev, and the
// error of the line, which bad is without it. The error is nil if there is no such event.
func fused(line string, bad *LineError, ev *Event, pool *payloadPool) (text string, torn *LineError) {
	at := wholeAt(line, ev, pool)
	if at == 0 {
		return "", nil
	}
	le := *bad
	le.Err = fmt.Errorf("the line is cut off, and the whole event from column %d on counts: %w", at+1, bad.Err)
	return line[at:], &le
}

// wholeAt looks for a whole event after a torn one, which another program may leave on a line:
// one killed in the middle of its write, or one of two that write the same file. It reads the
// event into ev and returns its place, or 0. The event begins where the line stops being JSON,
// so the torn event does not contain it.
func wholeAt(line string, ev *Event, pool *payloadPool) (at int) {
	const start = `{"id":"`
	if line == "" || line[0] != '{' && line[0] != 0 { // a field of Server-Sent Events is not torn
		return 0
	}
	for {
		var syntax *jsonwire.SyntaxError
		if !errors.As(jsonwire.Valid(line[at:]), &syntax) || syntax.Offset >= len(line)-at {
			return 0
		}
		stop := at + syntax.Offset
		from := max(at+1, stop-len(`{"`)) // a torn string ends with the quote of the whole event
		if stop == 0 {
			from = len(line) - len(strings.TrimLeft(line, "\x00")) // a crash may leave zeros
			stop = from
		}
		i := strings.Index(line[from:min(len(line), stop+len(`\u0000\u0000`)+len(start))], start) // or a torn character
		if i < 0 || from+i == 0 {
			return 0
		}
		if at = from + i; jsonwire.Valid(line[:at]) == nil {
			return 0 // two whole events: the first one is not known to be torn
		}
		if *ev = (Event{}); parseEvent(line[at:], ev, pool) == nil {
			return at
		}
	}
}

// placed adds the position of the line to an error of the decoder.
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

// fault describes a line that cannot be read. last means that the line has no newline.
func fault(line []byte, last bool) foreign.Fault {
	return foreign.Fault{Line: line, Torn: last && isTorn(line)}
}

// lineErrorAt adds the position to an error of a line. last means that it is the last one of the
// line. rest means that no line after it is an event.
func lineErrorAt(pos lines.Pos, err error, f foreign.Fault, last bool) (le *LineError, rest bool) {
	if syntax, ok := err.(*jsonwire.SyntaxError); ok {
		f.BadStart = syntax.Offset == 0
		err = lineError(string(f.Line), syntax) // of a decoder that leaves the placing to the reader
	}
	le = placed(err, pos)
	if file, rest, ok := foreign.Form(f); ok {
		le.Column, le.Pointer, le.Err = 0, "", foreignError(file)
		return le, rest
	}
	if f.Torn && last {
		le.Err = fmt.Errorf("the last line is torn (cut the file at byte %d): %w: %w",
			pos.Offset, io.ErrUnexpectedEOF, le.Err)
	} else if isCut(f.Line) {
		le.Err = fmt.Errorf("the line is cut off: %w", le.Err)
	}
	return le, false
}

// isCut reports whether a line ends in the middle of its object.
func isCut(line []byte) bool {
	line = bytes.TrimRight(line, " \t\r")
	var syntax *jsonwire.SyntaxError
	return bytes.HasPrefix(line, []byte("{")) &&
		errors.As(jsonwire.Valid(string(line)), &syntax) && syntax.Offset >= len(line)
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
	ev := &dst[len(dst)-1]
	switch bad := d.pool.parse(text, ev); {
	case bad != nil:
		if _, torn := fused(text, bad, ev, &d.pool); torn != nil {
			return dst, torn
		}
		return dst[:len(dst)-1], bad
	case !d.pool.native(ev):
		return dst, &LineError{Err: foreignError(foreign.Unknown)}
	}
	return dst, nil
}

// parse reads one native line into an empty event. A line that names no run is an event only if
// the rest of it shows that.
func (pool *payloadPool) parse(text string, ev *Event) *LineError {
	err := parseEvent(text, ev, pool)
	if err == nil && (ev.RunID != "" || pool.native(ev)) {
		return nil
	}
	if f, ok := foreign.Line(text); ok {
		return &LineError{Err: foreignError(f)}
	}
	if err == nil || isStrange(text) {
		return &LineError{Err: foreignError(foreign.Unknown)}
	}
	if f, _, ok := foreign.Form(foreign.Fault{Line: []byte(text), BadStart: true}); ok {
		err = foreignError(f)
	}
	return lineError(text, err)
}

// native reports whether the line read last is without a doubt an event of this package: one with
// all that an emitter writes, or with a known kind and most of it.
func (pool *payloadPool) native(ev *Event) bool {
	const all = 1<<envID | 1<<envSequence | 1<<envRunID
	if pool.seen&all == all && ev.RunID != "" {
		return true
	}
	_, unknown := ev.Payload.(*Unknown)
	return !unknown && bits.OnesCount32(pool.seen&all) > 1
}

// isStrange reports whether a line is an object without a member that only events have.
func isStrange(text string) bool {
	return strings.HasPrefix(text, "{") && jsonwire.Valid(text) == nil &&
		!slices.ContainsFunc([]string{"id", "sequence", "type", "runId", "payload"},
			func(name string) bool { return jsonwire.HasMember(text, name) })
}

func (d *nativeDecoder) End(dst []Event) ([]Event, error) { return dst, nil }
