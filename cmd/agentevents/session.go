package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/homes"
)

// sessions returns the sessions of agent programs in a file, below a folder or in standard input.
// A log has none, and neither has a file that can be read only once.
func (l *logReader) sessions(in *invocation, name string) ([]*capture.Session, error) {
	if _, detects := l.decoder.(*dialect.Auto); l.decoder != nil && !detects {
		return nil, nil // the command line names a format
	}
	if name == "-" {
		first, rest := peek(&decompressed{in: bufio.NewReader(in.stdin)})
		in.stdin = rest
		if s, ok := capture.Stream("stdin", []string{first}, rest, l.captured()); ok {
			return []*capture.Session{s}, nil
		}
		return nil, nil
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return nil, nil // opening it as a log tells the fault
	}
	sessions, err := openLinked(name, l.captured())
	if errors.Is(err, fs.ErrNotExist) && !info.IsDir() {
		return nil, nil // it may be a log
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var missed missedFiles
		for _, err := range several.Unwrap() {
			missed.add("", placeOf(err, name), err)
		}
		for _, m := range missed.rows {
			l.files = append(l.files, visible(m.place()))
			l.fail(in, len(l.files)-1, errors.New(m.Reason))
		}
		if err = nil; len(sessions) == 0 {
			return nil, errFiles
		}
	}
	if l.run != "" && len(sessions) > 1 {
		return nil, fmt.Errorf("%s has %d sessions, but one run id was given: name the file of one session",
			name, len(sessions))
	}
	return sessions, err
}

// openLinked returns the sessions in a file, or below a folder and the folders that links directly in it
// lead to: users keep the folder of a project on another disk.
func openLinked(name string, o capture.Options) ([]*capture.Session, error) {
	all, err := capture.Open(name, o)
	links := homes.Linked(name)
	if len(links) == 0 {
		return all, err
	}
	var faults []error
	add := func(err error) {
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			faults = append(faults, several.Unwrap()...)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			faults = append(faults, err)
		}
	}
	add(err)
	for _, link := range links {
		sessions, err := capture.Open(filepath.Join(name, link), o)
		all = append(all, sessions...)
		add(err)
	}
	if len(all) == 0 && len(faults) == 0 {
		return nil, err
	}
	return capture.Merge(all), errors.Join(faults...)
}

// allSessions returns the sessions of agent programs in the files and folders of the command line:
// all under the first name that has one, and none under the other names that have. The file of a
// sub-agent belongs to its session, also if a shell has made a name of it.
func (l *logReader) allSessions(in *invocation) map[string][]*capture.Session {
	byName := map[string][]*capture.Session{}
	var first string
	var all []*capture.Session
	names := 0 // that have sessions
	for _, name := range in.args {
		sessions, err := l.sessions(in, name)
		if err != nil && !errors.Is(err, errFiles) {
			l.files = append(l.files, visible(name))
			l.fail(in, len(l.files)-1, err)
		}
		switch {
		case len(sessions) == 0 && err == nil:
			continue
		case name == "-":
			byName[name] = sessions
			continue
		case len(sessions) > 0 && len(all) == 0:
			first = name
		}
		if byName[name] = nil; len(sessions) > 0 {
			all = append(all, sessions...)
			names++
		}
	}
	if names > 1 {
		all = capture.Merge(all)
	}
	if names > 0 {
		byName[first] = all
	}
	return byName
}

// captured are the options for sessions.
func (l *logReader) captured() capture.Options {
	o := l.capture
	o.RunID, o.MaxLine = l.run, l.maxLine
	return o
}

// session reads a session of an agent program. It returns false when the caller stops.
func (l *logReader) session(in *invocation, s *capture.Session, yield func(position, agentevents.Line) bool) bool {
	base := len(l.files)
	for _, name := range s.Files() {
		l.files = append(l.files, visible(name))
	}
	if l.raw != nil { // no line of a session is chained
		_, _ = io.Copy(io.Discard, l.raw(base, strings.NewReader("{}\n")))
	}
	bad := faults{l: l, file: base}
	at := position{file: base}
	for line, err := range s.Lines() {
		at = position{file: base + line.File, line: line.Number}
		l.lines++
		var path *fs.PathError
		switch {
		case err == nil:
			bad.tell()
			if !yield(at, agentevents.Line{Event: line.Event}) {
				return false
			}
		case errors.As(err, &path):
			l.fail(in, at.file, err)
		default:
			bad.add(at, err)
		}
	}
	bad.end(at)
	l.tell(in, base, s.Notes())
	l.unread = append(l.unread, s.Unread()...)
	return true
}

// tell prints remarks that are not faults of a line of a session.
func (l *logReader) tell(in *invocation, file int, notes []string) {
	for _, note := range notes {
		if l.hint != nil {
			l.hint(l.files[file] + ": " + note)
			continue
		}
		l.print(in, position{file: file}, visible(note))
	}
}

// peek returns the first line of an input that has a part of an object, of which the end may be
// missing, and the whole input. Text may come before the first line of JSON.
func peek(in io.Reader) (first string, all io.Reader) {
	const most = 256 << 10
	var head []byte
	var failed error
	open := -1
	for chunk := make([]byte, 16<<10); failed == nil && len(head) < most &&
		(open < 0 || bytes.IndexByte(head[open:], '\n') < 0); {
		var n int
		n, failed = in.Read(chunk)
		head = append(head, chunk[:n]...)
		open = bytes.IndexByte(head, '{')
	}
	if failed != nil {
		in = over{failed}
	}
	first, _, _ = strings.Cut(string(head[bytes.LastIndexByte(head[:max(open, 0)], '\n')+1:]), "\n")
	return strings.Trim(first, blanks), io.MultiReader(bytes.NewReader(head), in)
}

// blanks may stand before the first line.
const blanks = "\ufeff \t\r\n"

// An over is a reader at its end.
type over struct{ err error }

func (o over) Read([]byte) (int, error) { return 0, o.err }
