package main

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/logfile"
)

// A position is a line of a file.
type position struct {
	file    int  // index in logReader.files
	line    int  // 0 is the whole file
	refused bool // the line breaks a rule of its document, and its event counts
}

// maxBadLines is the number of unreadable lines of one file that are reported one by one: a file
// that is not a log has many.
const maxBadLines = 1000

// A logReader reads the files of the command line one after another, as one
// log. Every command that reads a log has one; its flags are those that all of
// them share.
type logReader struct {
	open    func(name string) iter.Seq2[input, error] // nil is invocation.inputs
	maxLine int
	run     string                         // the run of lines that name none
	verb    bool                           // keep the spelling of lines
	kept    bool                           // events are kept
	reuse   bool                           // nothing of an event is kept
	sorted  choice                         // file or sequence; empty for a command without the flag
	judged  bool                           // the agents of a KAHN log state that they keep the strict table
	decoder agentevents.Decoder            // nil detects the format of every line
	report  func(at position, what string) // nil prints on standard error
	hint    func(what string)              // receives advice on the order; nil prints it on standard error
	// broken receives the violations of a document's rules; nil reports them like
	// lines that cannot be read.
	broken func(at position, v *agentevents.RuleError)
	// raw wraps every file, to see its bytes; nil does not.
	raw   func(file int, r io.Reader) io.Reader
	files []string // names of those that were opened, for messages
	notes []string // remarks that are not problems

	places  []position       // of the lines of a sorted text; nil for files in their own order
	capture capture.Options  // for sessions of agent programs
	unread  []capture.Unread // lines and members that their readers did not understand

	found map[string][]*capture.Session // of the names of the command line; nil before they are looked for

	reads agentevents.Decoder // of the line that was read last

	bad    int // lines that cannot be read
	lines  int // those that were reported or are an event
	failed bool
}

func (l *logReader) flags(fs *flag.FlagSet) {
	l.stream(fs)
	l.order(fs)
}

// stream adds the flags of a command that keeps the order of files.
func (l *logReader) stream(fs *flag.FlagSet) {
	l.limit(fs)
	fs.StringVar(&l.run, "run-id", "", "run `ID` of Open-Harness lines; default: derived from the first line")
}

// limit adds the flag for the size of lines, for a command that reads no log.
func (l *logReader) limit(fs *flag.FlagSet) {
	l.maxLine = agentevents.DefaultMaxLine
	fs.Func("max-line", fmt.Sprintf("skip lines longer than `BYTES`; default: %d (%d MiB)", l.maxLine, l.maxLine>>20), func(s string) error {
		var err error
		if l.maxLine, err = strconv.Atoi(s); err != nil || l.maxLine <= 0 {
			return errors.New("want a number of bytes above 0")
		}
		return nil
	})
}

// logPart matches the suffix of a file beside a log. A log is read with its segments, and a shell
// expands run.jsonl* to all of them.
var logPart = regexp.MustCompile(`\.(\d{6,}(\.gz)?(\.tmp)?|head|lock|torn\.\d{6,})$`)

// events yields the events of the files with their positions, to a loop that keeps them. Lines
// that cannot be read are reported and left out.
func (l *logReader) events(in *invocation) (iter.Seq2[position, agentevents.Event], error) {
	l.kept = true
	lines, err := l.each(in)
	if err != nil {
		return nil, err
	}
	return unlined(lines), nil
}

// unlined yields the events of lines. They may be kept if the reader of the lines keeps them.
func unlined(lines lineSeq) iter.Seq2[position, agentevents.Event] {
	return func(yield func(position, agentevents.Event) bool) {
		for at, line := range lines {
			if !yield(at, *line.Event) {
				return
			}
		}
	}
}

// A lineSeq yields events with their positions, each until the next one.
type lineSeq = iter.Seq2[position, agentevents.Line]

// checkFiles replaces the parts of logs in the arguments by their logs. No file may be read twice at a
// time or be the output.
func (in *invocation) checkFiles() error {
	if len(in.args) == 0 {
		return usageError("a FILE is needed; - is standard input")
	}
	in.args = slices.Clone(in.args)
	for i, name := range in.args {
		in.args[i] = logOf(name)
	}
	in.args = slices.DeleteFunc(in.args, func(name string) bool {
		log := logPart.ReplaceAllString(name, "")
		return log != name && slices.Contains(in.args, log)
	})
	stdins := 0
	for _, name := range in.args {
		if name == "-" {
			stdins++
		}
	}
	if stdins > 1 {
		return usageError("standard input can be read only once: name - once")
	}
	if f, ok := in.stdout.w.(*os.File); ok && in.reads(f.Stat()) {
		return usageError("standard output is a FILE that is read: write to another file")
	}
	return nil
}

// each is events for a loop that keeps no part of an event. It takes less time.
func (l *logReader) each(in *invocation) (lineSeq, error) {
	if err := in.checkFiles(); err != nil {
		return nil, err
	}
	if l.report == nil {
		l.report = func(at position, what string) { l.print(in, at, what) }
	}
	if l.open == nil {
		l.open = in.inputs
	}
	if l.decoder == nil {
		auto := anyDecoder(l.run)
		if l.judged {
			auto.Decoders[dialect.KAHN] = strictStarts{auto.Decoders[dialect.KAHN]}
		}
		l.decoder = auto
	}
	read := func(file int, from input, decoder agentevents.Decoder, yield func(position, agentevents.Line) bool) bool {
		return l.read(in, file, from, decoder, yield)
	}
	var unread *unsorted
	if l.sorted.value == "sequence" {
		unread = &unsorted{maxLine: l.maxLine}
		read = func(file int, from input, _ agentevents.Decoder, _ func(position, agentevents.Line) bool) bool {
			l.gather(in, unread, file, from)
			return true
		}
	}
	all := func(yield func(position, agentevents.Line) bool) {
		sessions := l.found
		if sessions == nil {
			sessions = l.allSessions(in)
		}
		for _, name := range in.args {
			if of, ok := sessions[name]; ok {
				sessions[name] = nil // a name that comes again
				for _, s := range of {
					if !l.session(in, s, yield) {
						return
					}
				}
				continue
			}
			begun, lines, decoder := false, l.lines, l.decoder
			if auto, ok := decoder.(*dialect.Auto); ok { // the format of another file is not a sign of this one
				decoder = &dialect.Auto{Decoders: auto.Decoders}
			}
			for from, err := range l.open(name) {
				l.files = append(l.files, visible(from.name))
				file := len(l.files) - 1
				if !begun && from.number > 1 {
					l.notes = append(l.notes, fmt.Sprintf("%s: the log begins here, with segment %d: those before it were removed", l.files[file], from.number))
				}
				begun = true
				var missing *logfile.MissingError
				switch {
				case errors.As(err, &missing):
					l.bad++
					l.report(position{file: file}, visible(lost(err)))
				case err != nil:
					l.fail(in, file, err)
				case !read(file, from, decoder, yield):
					return
				}
			}
			if begun && !l.failed && l.lines == lines && (unread == nil || len(unread.pieces) == 0) && name != "-" { // a pipe may be empty
				l.print(in, position{file: len(l.files) - 1}, emptyFile)
			}
		}
	}
	switch l.sorted.value {
	case "sequence":
		return func(yield func(position, agentevents.Line) bool) {
			all(yield)
			unread.sort()
			var text io.Reader
			text, l.places = unread.read()
			l.read(in, 0, input{Reader: text}, l.decoder, yield)
		}, nil
	case "file":
		return l.told(in, all), nil
	}
	return all, nil
}

// gather adds the lines of a file to those that wait to be sorted.
func (l *logReader) gather(in *invocation, u *unsorted, file int, from input) {
	if l.raw != nil {
		from.Reader = l.raw(file, from.Reader)
	}
	switch err := u.add(file, from.Reader); {
	case err == nil:
	case isDamaged(err):
		l.bad++
		l.report(position{file: file}, damagedGzip+visible(lost(err)))
	default:
		l.fail(in, file, err)
	}
}

// damagedGzip begins the report of a compressed file that ends early or is damaged.
const damagedGzip = "the gzip data is damaged, cut off or followed by other data: "

// at returns the position of a line of a file, or of a line of the sorted text.
func (l *logReader) at(file, line int) position {
	if l.places == nil {
		return position{file: file, line: line}
	}
	if line = min(line, len(l.places)); line == 0 {
		return position{file: file}
	}
	return l.places[line-1]
}

// logOf returns the log of a directory in which package runstore keeps runs, and any other name
// as it is.
func logOf(name string) string {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return name
	}
	log := filepath.Join(name, "events.jsonl")
	if _, err := logfile.Segments(log); err != nil {
		return name
	}
	return log
}

// print prints a report on standard error.
func (l *logReader) print(in *invocation, at position, what string) {
	in.stdout.Flush() // keep both outputs in order
	fmt.Fprintf(in.stderr, "%s: %s\n", l.place(at), what)
}

// place names a position.
func (l *logReader) place(at position) string {
	if at.line == 0 {
		return l.files[at.file]
	}
	return fmt.Sprintf("%s:%d", l.files[at.file], at.line)
}

// format returns the detected dialect of the line that was read last.
func (l *logReader) format() dialect.Name {
	if auto, ok := l.reads.(*dialect.Auto); ok {
		return auto.Dialect()
	}
	return ""
}

// locate returns the place, on the line that was read last, of a field of its event.
func (l *logReader) locate(kind agentevents.Kind, native string) string {
	d := l.reads
	if j, ok := d.(*judge); ok {
		d = j.lenient
	}
	if n, ok := d.(*named); ok {
		d = n.Decoder
	}
	if of, ok := d.(dialect.Locator); ok && native != "" {
		return of.Locate(kind, native)
	}
	return native
}

// strictStarts is a decoder of KAHN lines. The document has one table of status
// changes, the strict one, unless a line names another.
type strictStarts struct{ agentevents.Decoder }

func (d strictStarts) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	n := len(dst)
	dst, err := d.Decoder.Decode(dst, line)
	for i := range dst[n:] {
		if p, ok := dst[n+i].Payload.(*agentevents.AgentStarted); ok && p.Lifecycle == "" {
			p.Lifecycle = agentevents.LifecycleStrict
		}
	}
	return dst, err
}

// faults reports the lines of a file that cannot be read. Lines that have the same fault, with none but
// blank ones between them, are reported as one from a limit on.
type faults struct {
	l              *logReader
	file           int
	text           string // of the fault
	n, limit       int    // how many lines have it, and how many of them are reported one by one
	from, last     int    // the lines that are not
	reported, more int    // of the file
}

// add reports a line.
func (f *faults) add(at position, err error) {
	text := what(err)
	if text != f.text || at.file != f.file {
		f.tell()
		f.file, f.text, f.limit = at.file, text, sameLines
		if foreign := (*agentevents.ForeignError)(nil); errors.As(err, &foreign) {
			f.limit = sameForeign
		}
	}
	f.l.bad++
	switch f.n++; {
	case f.n > f.limit:
		f.last = at.line
		if f.from == 0 {
			f.from = at.line
		}
	case f.reported < maxBadLines:
		f.reported++
		f.l.report(at, text)
	default:
		f.more++
	}
}

// tell reports the lines with the same fault that were not reported one by one.
func (f *faults) tell() {
	if n := f.n - f.limit; n > 0 {
		f.l.report(position{file: f.file, line: f.last}, fmt.Sprintf("the same in %s, from %d on", plural(n, "more line"), f.from))
	}
	f.text, f.n, f.limit, f.from, f.last = "", 0, 0, 0, 0
}

// end reports the rest at the end of the file.
func (f *faults) end(at position) {
	f.tell()
	if f.more > 0 {
		f.l.report(at, fmt.Sprintf("%d more lines cannot be read; is this a log?", f.more))
	}
}

// emptyFile is the report of a file without lines. It is a log all the same.
const emptyFile = "the file is empty"

// sameLines is the usual limit. A file of a program that is not known has nothing else.
const sameLines, sameForeign = 3, 1

// read reads one file. It returns false when the caller stops.
func (l *logReader) read(in *invocation, file int, from input, decoder agentevents.Decoder, yield func(position, agentevents.Line) bool) bool {
	src := &source{r: from, out: in.stdout}
	if l.raw != nil && l.places == nil {
		src.r = l.raw(file, src.r)
	}
	r := agentevents.NewReader(src, agentevents.ReaderOptions{Decoder: decoder, MaxLine: l.maxLine, Verbatim: l.verb, ReuseText: l.reuse})
	l.reads = decoder
	bad := faults{l: l, file: file}
	lines := r.Lines()
	if l.kept {
		lines = keptLines(r)
	}
	for line, err := range lines {
		at := l.at(file, r.Line())
		if j, ok := decoder.(*judge); ok {
			at.refused = j.refused
		}
		l.lines++
		if err == nil {
			bad.tell()
			if !yield(at, line) {
				return false
			}
			continue
		}
		if src.err != nil && errors.Is(err, src.err) { // the last error, except errors of events that the decoder held back
			if isDamaged(src.err) {
				l.bad++
				l.report(position{file: file}, damagedGzip+visible(lost(src.err)))
			} else {
				l.fail(in, file, src.err)
			}
			continue
		}
		var rule *agentevents.RuleError
		if l.broken != nil && errors.As(err, &rule) {
			l.broken(at, rule)
			continue
		}
		bad.add(at, err)
	}
	bad.end(l.at(file, r.Line()))
	return true
}

// keptLines yields the events that r reads. They may be copied and kept.
func keptLines(r *agentevents.Reader) iter.Seq2[agentevents.Line, error] {
	return func(yield func(agentevents.Line, error) bool) {
		var line agentevents.Line
		for ev, err := range r.All() {
			if line.Event == nil {
				line.Event = new(agentevents.Event)
			}
			if *line.Event = ev; !yield(line, err) {
				return
			}
		}
	}
}

func (l *logReader) fail(in *invocation, file int, err error) {
	l.failed = true
	in.stdout.Flush()
	fmt.Fprintf(in.stderr, "agentevents %s: %s: %s\n", in.name, l.files[file], visible(lost(err)))
}

// result returns the error that sets the exit status.
func (l *logReader) result() error {
	switch {
	case l.failed:
		return errFiles
	case l.bad > 0:
		return errProblems
	}
	return nil
}

// what describes the fault of a line, without its number. The text may hold ids and names of the
// line.
func what(err error) string {
	var le *agentevents.LineError
	if !errors.As(err, &le) {
		return clip(visible(err.Error()))
	}
	text := le.Err.Error()
	if le.Pointer != "" {
		text = jsonwire.BriefPointer(le.Pointer) + ": " + text
	}
	if le.Column > 0 {
		text = fmt.Sprintf("column %d: %s", le.Column+1, text)
	}
	for _, option := range [...]string{"ReaderOptions.MaxLine", "Options.MaxLine"} {
		text = strings.Replace(text, option, "--max-line", 1)
	}
	return clip(visible(text))
}

// An input is an open file, or standard input.
type input struct {
	io.Reader
	name   string
	number int // of a segment
}

// inputs opens the files that a FILE of the command line names: the segments of a log, one after
// another, or standard input. Compressed files are decompressed. With an error, which is a
// [*logfile.MissingError] for missing segments, an input has a name only.
func (in *invocation) inputs(name string) iter.Seq2[input, error] {
	return func(yield func(input, error) bool) {
		if name == "-" {
			yield(input{Reader: &decompressed{in: bufio.NewReader(in.stdin)}, name: "stdin"}, nil)
			return
		}
		for f, err := range logfile.Files(name) {
			from := input{name: placeOf(err, name)}
			if err == nil {
				from = input{&decompressed{in: bufio.NewReader(f)}, f.Path, f.Number}
			}
			if !yield(from, err) {
				return
			}
		}
	}
}

// reads reports whether a file is also an input: lines that are written to it would be read again,
// for ever.
func (in *invocation) reads(written os.FileInfo, err error) bool {
	if err != nil || !written.Mode().IsRegular() {
		return false
	}
	for _, name := range in.args {
		var info os.FileInfo
		if f, ok := in.stdin.(*os.File); name != "-" {
			info, err = os.Stat(name)
		} else if ok {
			info, err = f.Stat()
		}
		if err == nil && info != nil && os.SameFile(written, info) {
			return true
		}
	}
	return false
}

// placeOf names the file that an error of a log is about.
func placeOf(err error, log string) string {
	var missing *logfile.MissingError
	var pe *os.PathError
	switch {
	case errors.As(err, &missing):
		return missing.Path
	case errors.As(err, &pe):
		return pe.Path
	}
	return log
}

// lost returns the text of an error of a log, without the file.
func lost(err error) string {
	var missing *logfile.MissingError
	var pe *os.PathError
	switch {
	case errors.As(err, &missing):
		return strings.TrimPrefix(missing.Error(), missing.Path+": ")
	case errors.As(err, &pe):
		err = pe.Err
	}
	return err.Error()
}

// isDamaged reports whether an error concerns compressed data and not their file.
func isDamaged(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &corrupt)
}

// A decompressed reader decompresses gzip data. It recognises them by the first bytes, not by the
// name.
type decompressed struct {
	in *bufio.Reader
	r  io.Reader // nil before the first Read
}

func (d *decompressed) Read(p []byte) (int, error) {
	if d.r == nil {
		magic, err := d.in.Peek(2)
		if err != nil { // there is one byte at most
			n := copy(p, magic)
			d.in.Discard(n)
			return n, err
		}
		d.r = d.in
		if string(magic) == "\x1f\x8b" {
			zr, err := gzip.NewReader(d.in)
			if err != nil {
				return 0, err
			}
			d.r = zr
		}
	}
	return d.r.Read(p)
}

// clip leaves out the middle of a long text.
func clip(s string) string {
	const start, end = 160, 80
	r := []rune(s)
	if len(r) <= start+end {
		return s
	}
	return string(r[:start]) + "…" + string(r[len(r)-end:])
}

// A source flushes the output before every read, so that a log that is still being
// written is printed as it grows.
type source struct {
	r   io.Reader
	out *output
	err error
}

func (s *source) Read(p []byte) (int, error) {
	s.out.Flush()
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// visible returns s with everything escaped that is not printable. Messages hold
// parts of logs, and those must not control a terminal.
func visible(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			quoted := fmt.Sprintf("%+q", r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}
