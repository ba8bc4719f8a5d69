package session

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
)

// A Program is the reader of the sessions of one program.
type Program struct {
	Name   string // as people call it
	Tested string // the newest version that the reader was tested with
	// Files are the names that package foreign gives to the first lines that the reader takes.
	Files []string
	// Facts returns the facts that the first lines of a file tell. A line may be cut.
	Facts func(first []string) (Facts, bool)
	// Time returns the time that a line states; it decides the order of the lines of several
	// files. It need not check the line.
	Time    func(line string) (time.Time, bool)
	Untimed bool // no line states a time
	// Own are beginnings of lines that only the program of a decoder writes: others may belong to another one.
	Own [][]byte
	// Root returns the folder that Beside is given, for one with a session in it, and where that is
	// below it. Nil means the same folder.
	Root func(dir string) (root, below string)
	// Skip reports whether a line tells nothing of the work, whatever its members are. Such lines
	// are left out without a check of their JSON. Nil skips no line.
	Skip func(line []byte) bool
	// Beside returns the files that may belong to the session of a file, which is the session's
	// own and not a sub-agent's. Nil means that there are no others.
	Beside func(f *Folder, name string, facts Facts) []string
	// Describe completes the facts of a file by its name and the files beside it. Nil means that
	// there is nothing to add.
	Describe func(f *Folder, name string, facts *Facts)
	// Split returns the threads that a text holds whose program keeps no file of lines for each: a
	// JSON document, or lines of several sessions. Facts is not called then. Nil means that a
	// file is a thread, and its lines are those of the thread.
	Split func(text string) ([]Part, error)
	// Counter returns a counter of the tokens of sessions. Nil means that they follow from the
	// events alone.
	Counter func() Counter
	// New returns the reader of one run.
	New func(r *Recorder) Reader
	// Decoder returns, in place of New and Time, the decoder of a file whose lines have the ids of their
	// events. saved is when the text was saved, and open opens it; the zero time means that it is
	// printed right now. Such a session has one file, and its texts are not redacted by the decoder.
	Decoder func(o Options, saved time.Time, open func() (io.ReadCloser, error)) agentevents.Decoder
}

// A Part is a thread in a file with several.
type Part struct {
	Facts Facts
	Lines []string // of JSON, or as they were if they are not JSON; without newlines
}

// Facts come from the first lines of a file.
type Facts struct {
	Session string    // id of the session and of its main thread
	Thread  string    // id of the thread that the file has; the session's id for the main one
	Version string    // of the program
	At      time.Time // the first time; the time of the file's last change where lines have none
	Changed time.Time // of the last change of the file; At is the same where lines have no times
	// Copies means that the id is made of the lines: another file with the same one is another run.
	Copies bool
	About  string // an object that describes the thread, from another file; or empty
	Group  string // name of the folder that threads of one origin share; or empty
	// Of is the id of the thread that the file is printed of. If the thread itself is in the same
	// folder, the thread counts, and not this file.
	Of string
	// Mark is a text that only a line of the thread's own file has, where a printed file does not tell Of.
	Mark string
}

// A Reader turns the lines of one run into events on its recorder.
type Reader interface {
	// Line reads a line. Faults go to the recorder, and reading goes on.
	Line(l *Line)
	// End ends the run. It is called once, after the end of all files.
	End(l *Line)
}

// A FileReader is a Reader of sessions with several files.
type FileReader interface {
	// EndFile is called after the last line of a file. l has the number after it.
	EndFile(l *Line)
}

// A Total is the spending of a session: the answered calls of the model, and their tokens.
type Total struct {
	Calls int
	Usage agentevents.Usage
	// Partial means that more was used.
	Partial bool
}

// A Counter counts the tokens of sessions from the lines of their files, one file after another,
// without their events. It reports false for a session of which it does not know that the
// events have the same sum.
type Counter interface {
	Begin() // another session
	File(facts *Facts)
	Line(line []byte) bool
	Total() (Total, bool)
}

// A Line is one line of a file. The recorder's events have its time and place.
type Line struct {
	File    int    // index in Source.Files; 0 for a stream
	Thread  string // id of the file's thread; empty for a stream
	Facts   *Facts // of the file; nil for a stream
	Number  int    // from 1; of a Part it counts the lines of the part
	Text    string // valid JSON, an object, or the empty text at an end
	At      time.Time
	Stamped bool // the line states its time; else it has the time of the line before
	// Repaired means that damaged characters were replaced.
	Repaired bool
	pos      int  // number of its events so far
	timed    bool // At and Stamped are set
}

// Newer reports whether a version is later than another. Of a version that does not begin with
// numbers and dots nothing is known.
func Newer(version, than string) bool {
	a, b := numbers(version), numbers(than)
	for i := range max(len(a), len(b)) {
		var x, y int
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return x > y
		}
	}
	return false
}

func numbers(version string) (out []int) {
	version = strings.TrimPrefix(version, "v")
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			digits := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
			if n, err = strconv.Atoi(part[:max(digits, 0)]); err == nil {
				out = append(out, n)
			}
			return out
		}
		out = append(out, n)
	}
	return out
}
