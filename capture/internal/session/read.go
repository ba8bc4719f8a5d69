package session

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/foreign"
	"github.com/agentevents/agentevents/internal/lines"
)

// A File is a file of a session.
type File struct {
	Path      string // for people
	Facts     Facts
	dir, name string                        // below a folder; or empty
	whole     func() (io.ReadCloser, error) // opens another file
}

// open opens the file, below its folder.
func (f *File) open() (io.ReadCloser, error) {
	if f.whole != nil {
		return f.whole()
	}
	folder, err := OpenFolder(f.dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return folder.Open(f.name)
}

// changed returns the time of the file's last change.
func (f *File) changed() time.Time {
	info, err := os.Stat(f.Path)
	if !f.Facts.Changed.IsZero() || err != nil {
		return f.Facts.Changed
	}
	return info.ModTime().UTC().Truncate(time.Millisecond)
}

// A Source is a session on disk: one run.
type Source struct {
	Program *Program
	Files   []*File  // the session's own file is the first one
	Notes   []string // facts that are not faults
	Residue Residue  // lines and members that were not understood, after Read
	others  []*File  // what other processes of the same thread have printed
	opened  int      // number of notes before Read
	read    bool
	stream  bool // the file can be read once
	// programs are those whose sessions may follow in a file.
	programs []*Program
}

// Detect returns the program whose sessions begin with these lines.
func Detect(programs []*Program, head []string) (*Program, bool) {
	if file, ok := foreign.Document(strings.Join(head, "\n")); ok {
		for _, p := range programs {
			if p.Split != nil && slices.Contains(p.Files, file.Name) {
				return p, true
			}
		}
	}
	for _, line := range head {
		file, ok := foreign.Line(line)
		if !ok {
			continue
		}
		for _, p := range programs {
			if slices.Contains(p.Files, file.Name) {
				return p, true
			}
		}
		return nil, false
	}
	return nil, false
}

// Open returns the sessions in a file or below a folder, by the time of their beginning. The
// error of a path where no program has a session wraps [fs.ErrNotExist]. The sessions of the files
// that can be read come beside an error about the others. Folders stay open while a source is
// read, not before.
func Open(programs []*Program, name string) ([]*Source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return openFile(programs, name, info)
	}
	folder, err := OpenFolder(name)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	found := map[*Program][]*File{}
	folder.Files(".", func(file string) bool {
		if !IsLog(file) && !isDocument(file) {
			return true
		}
		head, err := folder.Head(file)
		if err != nil {
			folder.miss(file, err)
			return true
		}
		p, ok := Detect(programs, head)
		switch {
		case !ok || p.Split == nil && isDocument(file):
		case p.Split != nil:
			parts, err := p.split(folder, file, name)
			if err != nil { // reading it tells the fault
				parts = []*File{newFile(name, file, Facts{Session: file, Thread: file, At: folder.changed(file)})}
				parts[0].whole = func() (io.ReadCloser, error) { return nil, err }
			}
			found[p] = append(found[p], parts...)
		default:
			if facts, ok := p.facts(folder, file, head); ok {
				if facts.At.IsZero() || p.Decoder != nil {
					facts.Changed = folder.changed(file)
					facts.At = cmp.Or(facts.At, facts.Changed)
				}
				found[p] = append(found[p], newFile(name, file, facts))
			}
		}
		return true
	})
	var all []owned
	for _, p := range programs {
		for _, f := range found[p] {
			all = append(all, owned{p, f})
		}
	}
	out, fault := assemble(programs, all), folder.fault()
	if len(out) == 0 && fault == nil {
		return nil, &fs.PathError{
			Op: "open", Path: name, Err: noSession("the directory has neither a log nor a session of an agent program"),
		}
	}
	return out, fault
}

// Merge returns the sessions that the files of several sources make. A file counts once, and the
// file of a sub-agent belongs to its session.
func Merge(programs []*Program, sources []*Source) []*Source {
	if len(sources) < 2 {
		return sources
	}
	seen := map[string]bool{}
	var all []owned
	for _, s := range sources {
		for _, f := range s.Files {
			path, err := filepath.Abs(f.Path)
			if err != nil {
				path = f.Path
			}
			if path += "\x00" + f.Facts.Thread; !seen[path] {
				seen[path] = true
				all = append(all, owned{s.Program, f})
			}
		}
	}
	return assemble(programs, all)
}

// An owned file is one of a program.
type owned struct {
	p *Program
	*File
}

// assemble makes sources of files, by the time of their beginning.
func assemble(all []*Program, files []owned) (out []*Source) {
	findMarks(files)
	onDisk := map[string]bool{} // threads
	for _, f := range files {
		onDisk[f.Facts.Thread] = onDisk[f.Facts.Thread] || f.Facts.Of == ""
	}
	printed := map[string][]string{} // files that were printed of threads that are here, too
	byProgram := map[string][]*File{}
	var programs []*Program
	for _, f := range files {
		if f.Facts.Of != "" && onDisk[f.Facts.Of] {
			printed[f.Facts.Of] = append(printed[f.Facts.Of], f.Path)
			continue
		}
		id := f.p.Name + f.p.Files[0]
		if byProgram[id] == nil {
			programs = append(programs, f.p)
		}
		byProgram[id] = append(byProgram[id], f.File)
	}
	for _, p := range programs {
		out = append(out, group(all, p, byProgram[p.Name+p.Files[0]])...)
	}
	for _, s := range out {
		for _, f := range s.Files {
			for _, path := range printed[f.Facts.Thread] {
				s.Notes = append(s.Notes, fmt.Sprintf("%s: %s was printed of this session and is left out", s.Program.Name, path))
			}
		}
	}
	relate(out)
	slices.SortStableFunc(out, func(a, b *Source) int { return a.Files[0].Facts.At.Compare(b.Files[0].Facts.At) })
	return out
}

// findMarks finds the threads that files were printed of which tell no more than a mark.
func findMarks(files []owned) {
	for i := range files {
		printed := &files[i].Facts
		for j := range files {
			f := &files[j]
			if printed.Mark == "" || printed.Of != "" {
				break
			}
			if f.p.Name == files[i].p.Name && f.Facts.Mark == "" && !f.Facts.At.After(printed.At) && f.has(printed.Mark) {
				copied := *files[i].File
				copied.Facts.Of = f.Facts.Thread
				files[i].File, printed = &copied, &copied.Facts
			}
		}
	}
}

// has reports whether a line of the file has a text.
func (f *File) has(text string) bool {
	in, err := f.open()
	if err != nil {
		return false // reading it tells the fault
	}
	defer in.Close() // it was only read
	from := lines.NewReader(in, agentevents.DefaultMaxLine)
	for !from.Ended() {
		if line, _ := from.Next(); bytes.Contains(line, []byte(text)) {
			return true
		}
	}
	return false
}

// relate gives sessions that were printed of one thread the files of each other.
func relate(sources []*Source) {
	printed := map[string][]*Source{}
	for _, s := range sources {
		if of := s.Files[0].Facts.Of; of != "" {
			printed[of] = append(printed[of], s)
		}
	}
	for _, all := range printed {
		for _, s := range all {
			for _, other := range all {
				if other != s {
					s.others = append(s.others, other.Files[0])
				}
			}
		}
	}
}

// facts returns the facts of a file.
func (p *Program) facts(f *Folder, name string, head []string) (Facts, bool) {
	facts, ok := p.Facts(head)
	if ok && p.Describe != nil {
		p.Describe(f, name, &facts)
	}
	facts.clone()
	return facts, ok
}

// clone copies the texts, which keep the lines alive.
func (f *Facts) clone() {
	same := f.Thread == f.Session
	for _, text := range []*string{&f.Session, &f.Thread, &f.Version, &f.Of, &f.About, &f.Mark} {
		*text = strings.Clone(*text)
	}
	if same { // memory for one of them
		f.Thread = f.Session
	}
}

// noSession is the error of a path without a session.
type noSession string

func (e noSession) Error() string { return string(e) }

// Is makes the error one of those that are fs.ErrNotExist.
func (e noSession) Is(target error) bool { return target == fs.ErrNotExist }

// newFile returns a file below a folder. It is opened below the folder again.
func newFile(dir, name string, facts Facts) *File {
	f := &File{Path: filepath.Join(dir, filepath.FromSlash(name)), Facts: facts, dir: dir, name: name}
	if below, ok := strings.CutSuffix(f.Path, name); ok {
		f.name = f.Path[len(below):] // memory for one of them
	}
	return f
}

// openFile returns the session of a file, with the other files that belong to it.
func openFile(programs []*Program, name string, info fs.FileInfo) ([]*Source, error) {
	dir, base := filepath.Split(name)
	dir = cmp.Or(dir, ".")
	open := func() (io.ReadCloser, error) {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		return plain(file, name)
	}
	file, err := open()
	if err != nil {
		return nil, err
	}
	head, err := Head(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	none := &fs.PathError{Op: "open", Path: name, Err: noSession("it is not a session of an agent program")}
	p, ok := Detect(programs, head)
	if !ok {
		return nil, none
	}
	if p.Root != nil {
		var below string
		dir, below = p.Root(dir)
		base = path.Join(below, base)
	}
	folder, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	if p.Split != nil {
		parts, err := p.split(folder, base, dir)
		if err != nil {
			return nil, err
		}
		return group(programs, p, parts), nil
	}
	facts, ok := p.facts(folder, base, head)
	if !ok {
		return nil, none
	}
	facts.Changed = info.ModTime().UTC().Truncate(time.Millisecond)
	facts.At = cmp.Or(facts.At, facts.Changed)
	own := &File{Path: name, Facts: facts, whole: open}
	if facts.Thread != facts.Session || p.Beside == nil {
		return group(programs, p, []*File{own}), nil
	}
	files := []*File{own}
	for _, beside := range p.Beside(folder, base, facts) {
		if beside == base {
			continue
		}
		head, err := folder.Head(beside)
		if err != nil {
			folder.miss(beside, err)
			continue
		}
		if q, ok := Detect(programs, head); !ok || q != p {
			continue
		}
		if other, ok := p.facts(folder, beside, head); ok && other.Session == facts.Session && other.Thread != facts.Thread {
			files = append(files, newFile(dir, beside, other))
		}
	}
	return group(programs, p, files), folder.fault()
}

// group makes sources of the files of a program: one for each session.
func group(programs []*Program, p *Program, files []*File) []*Source {
	slices.SortStableFunc(files, func(a, b *File) int { return a.Facts.At.Compare(b.Facts.At) })
	bySession := map[string]*Source{}
	var out []*Source
	for _, f := range files {
		for n, id := 2, f.Facts.Session; f.Facts.Copies && bySession[f.Facts.Session] != nil; n++ {
			copied := *f
			f = &copied
			f.Facts.Session = ID(id, strconv.Itoa(n))
			f.Facts.Thread = f.Facts.Session
		}
		s := bySession[f.Facts.Session]
		if s == nil {
			s = &Source{Program: p, programs: programs}
			bySession[f.Facts.Session] = s
			out = append(out, s)
		}
		i := slices.IndexFunc(s.Files, func(g *File) bool { return g.Facts.Thread == f.Facts.Thread })
		switch {
		case i >= 0:
			s.Notes = append(s.Notes,
				fmt.Sprintf("%s: %s has the same session as %s and is left out", p.Name, f.Path, s.Files[i].Path))
		case f.Facts.Thread == f.Facts.Session:
			s.Files = slices.Insert(s.Files, 0, f)
		default:
			s.Files = append(s.Files, f)
		}
	}
	for _, s := range out {
		if f := s.Files[0].Facts; f.Thread != f.Session {
			s.Notes = append(s.Notes,
				fmt.Sprintf("%s: this is the file of a sub-agent; its session %s is in another file: "+
					"read that one, or their folder, for the whole", p.Name, f.Session))
		}
	}
	return out
}

// An Item is an event of a session, or a fault, with the place that it comes from.
type Item struct {
	File  int // index in Source.Files
	Line  int // 0 is the file
	Event *agentevents.Event
	Err   error
}

// Read reads the session and yields its events in order, and its faults. The events may be kept.
func (s *Source) Read(o Options) iter.Seq[Item] {
	return func(yield func(Item) bool) {
		if !s.read {
			s.read, s.opened = true, len(s.Notes)
		}
		s.Notes, s.Residue = s.Notes[:s.opened:s.opened], Residue{}
		if s.Program.Decoder != nil {
			s.decode(o, yield)
			return
		}
		var f feed
		f.init(s.programs, s.Program, o, &s.Residue)
		f.rec.section.file = !s.stream
		if f.rec.section.file {
			f.changed = s.Files[0].changed()
		}
		f.rec.threads = map[string]bool{}
		for _, file := range s.Files {
			f.rec.threads[file.Facts.Thread] = true
		}
		f.rec.others = s.others
		m := merge{s: s, o: o, f: &f}
		defer m.close()
		m.run(yield)
		s.Notes = append(s.Notes, f.rec.notes...)
	}
}

// A merge reads the files of a session at once, line by line in the order of their times. The
// lines of one file keep their order. A file is opened when its time has come.
type merge struct {
	s    *Source
	o    Options
	f    *feed
	open []*stream
	next int // index of the first file that was not opened
	// held are files that go on with another session, which begins after the end of this one.
	held []*stream
}

// A stream is an open file.
type stream struct {
	file    int
	in      io.Closer
	lines   *lines.Reader
	text    string
	at      time.Time // of the next line; never before the times of the lines before it
	stated  time.Time // by the next line
	stamped bool      // the next line states a time
	err     error     // of the next line
	cut     bool
	ended   bool
	before  int      // number of lines before the session that is read
	program *Program // of the session that begins with the next line
}

func (m *merge) close() {
	for _, st := range slices.Concat(m.open, m.held) {
		_ = st.in.Close() // it was only read
	}
}

func (m *merge) run(yield func(Item) bool) {
	files := m.s.Files
	last := Item{}
	var rest *tail
	flush := func(file, line int) bool {
		events, faults := m.f.rec.take()
		last.File, last.Line = file, line
		for i := range events {
			if !yield(Item{File: file, Line: line, Event: &events[i]}) {
				return false
			}
		}
		for _, err := range faults {
			if !yield(Item{File: file, Line: line, Err: err}) {
				return false
			}
		}
		return true
	}
	for {
		for m.next < len(files) && (len(m.open) == 0 || !files[m.next].Facts.At.After(m.first().at)) {
			if err := m.start(m.next); err != nil && !yield(Item{File: m.next, Err: err}) {
				return
			}
			m.next++
		}
		if len(m.open) == 0 && len(m.held) > 0 {
			if st := m.held[0]; st.program.Decoder != nil && m.o.RunID == "" {
				m.held = m.held[1:]
				rest = &tail{p: st.program, file: st.file, before: st.lines.Pos().Line - 1, lines: st.lines, in: st.in}
				if rest.buf = []byte(st.text); !st.cut {
					rest.buf = append(rest.buf, '\n')
				}
				m.f.endFile(m.s.line(st, st.lines.Pos().Line))
				break
			}
			if err := m.section(); err != nil {
				st := m.held[0]
				yield(Item{File: st.file, Err: err})
				m.f.endFile(m.s.line(st, st.lines.Pos().Line))
				break
			}
			if !flush(last.File, last.Line) {
				return
			}
		}
		if len(m.open) == 0 {
			break
		}
		st := m.first()
		number := st.lines.Pos().Line
		switch {
		case st.err != nil:
			if !yield(Item{File: st.file, Line: number, Err: st.err}) {
				return
			}
			m.advance(st)
			continue
		case st.ended:
			m.f.endFile(m.s.line(st, number+1))
			m.leave(st)
			_ = st.in.Close() // it was only read
		default:
			l := m.s.line(st, number)
			l.At, l.Stamped, l.timed = st.stated, st.stamped, true
			if st.program = m.f.line(l, st.text, st.cut); st.program != nil {
				m.leave(st)
				m.held = append(m.held, st)
				continue
			}
		}
		ended := st.ended
		if !flush(st.file, number) {
			return
		}
		if !ended { // a stream may have no further line yet
			m.advance(st)
		}
	}
	m.f.end(m.end())
	if err := m.f.finish(last.Line); !flush(last.File, last.Line) || err != nil && !yield(Item{last.File, last.Line, nil, err}) {
		return
	}
	if rest != nil {
		m.s.follow(rest, m.o, yield)
	}
}

// leave takes a file from those that are open.
func (m *merge) leave(st *stream) {
	m.open = slices.DeleteFunc(m.open, func(other *stream) bool { return other == st })
}

// end returns the line of the end of the run.
func (m *merge) end() *Line {
	l := &Line{Number: math.MaxInt32}
	if m.f.rec.section.first == 0 {
		l.Thread = m.s.Files[0].Facts.Thread
	}
	return l
}

// section ends the run, and goes on with the next session of a file. The error means that it cannot.
func (m *merge) section() error {
	st := m.held[0]
	number := st.lines.Pos().Line
	if err := m.f.stop(st.program); err != nil {
		return failed(m.s.Files[st.file].Path, number, err)
	}
	m.held = m.held[1:]
	m.open = append(m.open, st)
	l := m.s.line(st, number)
	m.f.next(st.program, l, number, st.text, l, m.end())
	st.before, st.program = number-1, nil
	st.stated, st.stamped = m.f.p.Time(st.text)
	return nil
}

// line returns a line of an open file.
func (s *Source) line(st *stream, number int) *Line {
	l := &Line{File: st.file, Number: number - st.before}
	if !s.stream && st.before == 0 {
		l.Facts = &s.Files[st.file].Facts
		l.Thread = l.Facts.Thread
	}
	return l
}

// first returns the open file whose next line is the earliest.
func (m *merge) first() *stream {
	return slices.MinFunc(m.open, func(a, b *stream) int { return a.at.Compare(b.at) })
}

// start opens a file.
func (m *merge) start(i int) error {
	in, err := m.s.Files[i].open()
	if err != nil {
		return err
	}
	st := &stream{
		file: i, in: in, lines: lines.NewReader(in, cmp.Or(m.o.MaxLine, agentevents.DefaultMaxLine)),
		at: m.s.Files[i].Facts.At,
	}
	if m.o.Time != nil && st.at.Equal(m.s.Files[i].Facts.Changed) { // its lines have no times
		st.at = m.o.Time().UTC().Truncate(time.Millisecond)
	}
	m.open = append(m.open, st)
	m.f.began(i, st.at)
	m.advance(st)
	return nil
}

// advance reads the next line of a file.
func (m *merge) advance(st *stream) {
	line, err := st.lines.Next()
	for skip := m.f.p.Skip; skip != nil && len(line) > 0 && !st.lines.Ended() && skip(line); {
		line, err = st.lines.Next()
	}
	var long *lines.TooLongError
	st.text, st.err, st.cut = "", nil, st.lines.Ended()
	switch {
	case errors.As(err, &long):
		st.err = &agentevents.LineError{Err: fmt.Errorf("%s: %w (Options.MaxLine); it was skipped", m.f.p.Name, err)}
	case err != nil:
		st.err = err
	case line == nil:
		st.ended = true
	default:
		st.text = string(line)
		if st.stated, st.stamped = m.f.p.Time(st.text); st.stamped && st.stated.After(st.at) {
			st.at = st.stated
		}
	}
}
