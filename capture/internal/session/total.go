package session

import (
	"cmp"
	"errors"
	"io"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/lines"
)

// An Adder counts the tokens of sessions, and uses its memory and its open folder again. Close
// closes it.
type Adder struct {
	maxLine int
	lines   *lines.Reader
	folder  *Folder
	program *Program // of the counter
	counter Counter
}

// NewAdder returns an adder.
func NewAdder(o Options) *Adder {
	return &Adder{maxLine: cmp.Or(o.MaxLine, agentevents.DefaultMaxLine)}
}

// Close closes the folder.
func (a *Adder) Close() error {
	if a.folder == nil {
		return nil
	}
	return a.folder.Close()
}

// Total counts the tokens of a session, without its events. It reports false if only the events
// tell them.
func (a *Adder) Total(s *Source) (Total, bool) {
	if s.Program.Counter == nil {
		return Total{}, false
	}
	if a.program != s.Program {
		a.program, a.counter = s.Program, s.Program.Counter()
	}
	c := a.counter
	c.Begin()
	for _, f := range s.Files {
		if !a.file(f, s.Program.Skip, c) {
			return Total{}, false
		}
	}
	return c.Total()
}

// file counts the lines of a file. It reports false at a line that is not as it should be.
func (a *Adder) file(f *File, skip func([]byte) bool, c Counter) bool {
	in, err := a.open(f)
	if err != nil {
		return false
	}
	defer in.Close() // it was only read
	if a.lines == nil {
		a.lines = lines.NewReader(in, a.maxLine)
	}
	a.lines.Reset(in)
	c.File(&f.Facts)
	for {
		line, err := a.lines.Next()
		switch {
		case err != nil || isPacked(line):
			return false
		case line == nil:
			return true
		case a.lines.Ended() && jsonwire.Valid(string(line)) != nil:
			return false // the events tell the fault, and how the session ended
		case (skip == nil || !skip(line)) && !c.Line(line):
			return false
		}
	}
}

// open opens a file. Its folder stays open for the next one.
func (a *Adder) open(f *File) (io.ReadCloser, error) {
	if f.whole != nil {
		return f.whole()
	}
	if a.folder == nil || a.folder.path != f.dir {
		folder, err := OpenFolder(f.dir)
		if err == nil {
			err = a.Close()
		}
		if err != nil {
			return nil, errors.Join(err)
		}
		a.folder = folder
	}
	return a.folder.open(f.name)
}

// UsageOf returns tokens with the library's meaning: the input without cached tokens, the output with
// the reasoning. Of tokens that were written, and of reasoning, 0 means that they are not known.
func UsageOf(input, output int64, read, written, reasoning agentevents.Opt[int64]) agentevents.Usage {
	u := agentevents.Usage{InputTokens: max(0, input), OutputTokens: output, CacheReadInputTokens: read}
	if written.V > 0 {
		u.CacheCreationInputTokens = written
	}
	if reasoning.V > 0 {
		u.ReasoningOutputTokens = reasoning
	}
	return u
}
