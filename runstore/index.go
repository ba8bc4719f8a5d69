package runstore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/agentevents/agentevents/internal/chain"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/logfile"
)

// An index knows where in the log the events of each run are. It reads each line once,
// when somebody asks for one, so that it knows nothing that is not in the log.
type index struct {
	path string

	mu      sync.Mutex
	segment int   // the number of the one that is read
	offset  int64 // up to where
	runs    map[string]*indexed

	oldest      int    // the first segment
	last        []byte // the line that was read last
	unsaved     int64  // bytes that were read since the index was saved
	unsavedMost int64
}

// indexed is a run.
type indexed struct {
	info  RunInfo
	parts []part // only appended to, but for the end of the last one
}

// A part is a piece of a segment that has lines of one run only.
type part struct {
	segment    int
	begin, end int64
	first      uint64 // the sequence of its first event
}

// read reads the new part of the log. Torn ends, which are being written, are left.
func (x *index) read(onError func(error)) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	segments, err := logfile.Segments(x.path)
	if err != nil {
		return err
	}
	for _, s := range segments {
		if s.Number < x.segment {
			continue
		}
		if s.Number > x.segment {
			if missing := x.segment + 1; missing < s.Number {
				onError(fmt.Errorf("runstore: %w",
					&logfile.MissingError{Path: fmt.Sprintf("%s.%06d", x.path, missing), First: missing, Last: s.Number - 1}))
			}
			if x.segment == 0 {
				x.oldest = s.Number
			}
			x.segment, x.offset, x.last = s.Number, 0, nil
		}
		if err := x.readSegment(s, onError); err != nil {
			if errors.Is(err, fs.ErrNotExist) || s.Active {
				return err
			}
			onError(fmt.Errorf("runstore: the rest of %s is not read: %w", s.Path, err))
		}
	}
	return nil
}

func (x *index) readSegment(s logfile.Segment, onError func(error)) error {
	f, err := s.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Skip(x.offset); err != nil {
		return err
	}
	in := bufio.NewReaderSize(f, 256<<10)
	for {
		line, err := readLine(in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		begin := x.offset
		x.offset += int64(len(line))
		x.unsaved += int64(len(line))
		x.last = append(x.last[:0], line...)
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := x.add(line, begin); err != nil {
			onError(fmt.Errorf("runstore: %s: the line at byte %d: %w", s.Path, begin, err))
		}
	}
}

// readLine returns a line with its newline; without one it is io.EOF. It is valid until the
// next call.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	long := bytes.Clone(line)
	rest, err := in.ReadBytes('\n')
	return append(long, rest...), err
}

// parseLine returns the entry of a line of the log.
func parseLine(line []byte) (Entry, error) {
	text, _, _ := chain.Cut(string(bytes.TrimRight(line, "\r\n")))
	return ParseEntry(text)
}

// add adds the line that ends at x.offset. x.mu is held.
func (x *index) add(line []byte, begin int64) error {
	e, err := parseLine(line)
	if err != nil {
		return err
	}
	r := x.runs[e.Event.RunID]
	if r == nil {
		r = &indexed{}
		x.runs[e.Event.RunID] = r
	}
	if e.Event.Sequence < r.info.Next {
		return fmt.Errorf("sequence %d of run %s comes after %d: it is left out",
			e.Event.Sequence, jsonwire.Brief(e.Event.RunID), r.info.Next-1)
	}
	if n := len(r.parts); n > 0 && r.parts[n-1].segment == x.segment && r.parts[n-1].end == begin {
		r.parts[n-1].end = x.offset
	} else {
		r.parts = append(r.parts, part{x.segment, begin, x.offset, e.Event.Sequence})
	}
	r.info.Add(&e.Event)
	return nil
}

func (x *index) info(runID string) (RunInfo, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.runs[runID]
	if r == nil {
		return RunInfo{}, fmt.Errorf("%w (run %s)", ErrNoRun, jsonwire.Brief(runID))
	}
	return r.info, nil
}

// parts returns where the run's events are, from the sequence on.
func (x *index) parts(runID string, from uint64) []part {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.runs[runID]
	if r == nil || from >= r.info.Next {
		return nil
	}
	i := len(r.parts) - 1
	for i > 0 && r.parts[i].first > from {
		i--
	}
	return slices.Clone(r.parts[i:])
}

// load yields the run's events from the sequence on, and reports whether it has yielded all.
func (x *index) load(ctx context.Context, runID string, from uint64, yield func(Entry, error) bool) bool {
	var f *logfile.File
	var at int64
	defer func() {
		if f != nil {
			f.Close()
		}
	}()
	in := bufio.NewReaderSize(nil, 4<<10)
	for _, p := range x.parts(runID, from) {
		if err := ctx.Err(); err != nil {
			yield(Entry{}, err)
			return false
		}
		err := error(nil)
		if f == nil || f.Number != p.segment {
			if f != nil {
				f.Close()
			}
			at = 0
			f, err = x.open(p.segment)
		}
		if err == nil {
			err = f.Skip(p.begin - at)
		}
		at = p.end
		section := io.LimitedReader{R: f, N: p.end - p.begin}
		in.Reset(&section)
		for err == nil {
			var e Entry
			if e, err = readEntry(in, runID); err == nil && e.Event.Sequence >= from && !yield(e, nil) {
				return false
			}
		}
		if err != io.EOF || section.N > 0 {
			yield(Entry{}, fmt.Errorf("runstore: the log has changed since it was opened: "+
				"segment %d, bytes %d to %d, run %s: %w", p.segment, p.begin, p.end, jsonwire.Brief(runID), err))
			return false
		}
	}
	return true
}

// readEntry returns the next entry, which belongs to that run.
func readEntry(in *bufio.Reader, runID string) (Entry, error) {
	line, err := readLine(in)
	for err == nil && len(bytes.TrimSpace(line)) == 0 {
		line, err = readLine(in)
	}
	if err != nil {
		return Entry{}, err
	}
	e, err := parseLine(line)
	if err == nil && e.Event.RunID != runID {
		err = errors.New("it is of another run")
	}
	return e, err
}

// open opens a segment, wherever it is by now.
func (x *index) open(n int) (*logfile.File, error) {
	segments, err := logfile.Segments(x.path)
	if err != nil {
		return nil, err
	}
	for _, s := range segments {
		if s.Number == n {
			return s.Open()
		}
	}
	return nil, &logfile.MissingError{Path: fmt.Sprintf("%s.%06d", x.path, n), First: n, Last: n}
}
