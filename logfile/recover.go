package logfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/chain"
	"github.com/agentevents/agentevents/internal/disk"
)

// This file opens the active segment, and finds the changes that a crash or another program made to
// it.

// openFile opens the active segment, sets a torn tail aside, and is ready to append.
func (l *Log) openFile() error {
	f, err := l.fs.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, end, torn, err := l.mend(f)
	if err == nil && l.o.Sync != SyncNone {
		err = l.fs.SyncDir(l.dir())
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if torn != nil {
		l.torn = torn
		if l.o.OnError != nil {
			l.o.OnError(torn)
		}
	}
	l.file, l.info, l.offset, l.unsure, l.doubt = f, info, end, false, 0
	l.begun, l.wrote, l.retry = l.birth(f, info), span{}, 0
	return nil
}

// mend locks the file, which may have another name and another lock of that, makes it one
// that ends with a whole line, and returns its length.
func (l *Log) mend(f disk.File) (info os.FileInfo, end int64, torn *TornError, err error) {
	if err := f.Lock(); err != nil {
		return nil, 0, nil, err
	}
	if info, err = f.Stat(); err != nil {
		return nil, 0, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, nil, errors.New("it is not a regular file")
	}
	size := info.Size()
	if size == 0 {
		return info, 0, nil, nil
	}
	if err := looksLikeLog(f, size); err != nil {
		return nil, 0, nil, err
	}
	end, err = wholeLines(f, size)
	if err != nil || end == size {
		return info, end, nil, err
	}
	if whole(f, end, size) { // only its newline is missing
		if _, err := f.WriteAt([]byte("\n"), size); err != nil {
			return nil, 0, nil, err
		}
		return info, size + 1, nil, f.Sync()
	}
	torn = &TornError{Log: l.path, Offset: end, Size: size - end}
	if torn.Path, err = l.setAside(f, end, size); err != nil {
		return nil, 0, nil, fmt.Errorf("setting a torn line aside: %w", err)
	}
	if err := f.Truncate(end); err != nil {
		return nil, 0, nil, err
	}
	return info, end, torn, f.Sync()
}

// looksLikeLog keeps files from being cut that are no logs.
func looksLikeLog(f io.ReaderAt, size int64) error {
	first := make([]byte, min(size, 64))
	if _, err := f.ReadAt(first, 0); err != nil {
		return err
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(first, []byte("\xef\xbb\xbf")), " \t\r\n\x00")
	if len(text) > 0 && text[0] != '{' {
		return errors.New("it is not a log of lines: it does not begin with {")
	}
	return nil
}

// wholeLines returns where the last whole line ends. A machine that went down may leave zeros in
// place of unwritten bytes: a line with a zero byte is not whole.
func wholeLines(f io.ReaderAt, size int64) (end int64, err error) {
	buf := make([]byte, 64<<10)
	line := size // where the line ends that is looked at; it is not known to be whole
	newline, zero := false, false
	for at := size; at > 0; {
		n := min(at, int64(len(buf)))
		at -= n
		if _, err := f.ReadAt(buf[:n], at); err != nil {
			return 0, err
		}
		for i := n - 1; i >= 0; i-- {
			switch buf[i] {
			case 0:
				zero = true
			case '\n':
				if newline && !zero {
					return line, nil
				}
				line, newline, zero = at+i+1, true, false
			}
		}
	}
	if newline && !zero {
		return line, nil
	}
	return 0, nil
}

// whole reports whether the bytes are an event.
func whole(f io.ReaderAt, from, to int64) bool {
	if to-from > agentevents.DefaultMaxLine {
		return false
	}
	text := make([]byte, to-from)
	_, err := f.ReadAt(text, from)
	return err == nil && json.Valid(text) && new(agentevents.Event).UnmarshalJSON(text) == nil
}

// setAside copies a part of the file to one of its own.
func (l *Log) setAside(f disk.File, from, to int64) (path string, err error) {
	entries, err := l.fs.ReadDir(l.dir())
	if err != nil {
		return "", err
	}
	first := 1
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(l.path)+".torn.") {
			first++
		}
	}
	var out disk.File
	for n := first; ; n++ {
		path = fmt.Sprintf("%s.torn.%06d", l.path, n)
		if out, err = l.fs.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, os.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	_, err = io.Copy(io.NewOffsetWriter(out, 0), io.NewSectionReader(f, from, to-from))
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return "", errors.Join(err, l.fs.Remove(path))
	}
	return path, l.fs.SyncDir(l.dir())
}

// birth is when the segment was begun: the time of its first event.
func (l *Log) birth(f io.ReaderAt, info os.FileInfo) time.Time {
	if info.Size() > 0 && l.o.MaxAge > 0 {
		first := make([]byte, min(info.Size(), 64<<10))
		if _, err := f.ReadAt(first, 0); err == nil {
			line, _, _ := bytes.Cut(first, []byte("\n"))
			var ev agentevents.Event
			if ev.UnmarshalJSON(line) == nil {
				return ev.Time
			}
		}
		return info.ModTime()
	}
	return l.o.Clock()
}

// reopen opens the segment again. The next write begins with the lines that the file does not have
// and that are not known to be on disk elsewhere. l.mu is held, busy set.
func (l *Log) reopen() error {
	durableAt, info := l.offset-(l.written-l.durable), l.info
	if err := l.openFile(); err != nil {
		return fmt.Errorf("logfile: opening %s again: %w", l.path, err)
	}
	if !os.SameFile(info, l.info) {
		l.written = l.durable
	} else if more := l.offset - durableAt; more < l.written-l.durable {
		l.written = l.durable + max(0, more)
	}
	return nil
}

// replaced begins another file, because the log's file was removed or replaced. l.mu is held, busy
// set.
func (l *Log) replaced() error {
	return l.again(fmt.Errorf("%w: %s was removed or replaced; %s", ErrChanged, l.path, &l.wrote))
}

// altered goes on at the end of the file, whose length is not the written one. l.mu is held, busy
// set.
func (l *Log) altered(size int64) error {
	return l.again(fmt.Errorf("%w: %s has %d bytes, not %d as it was written; %s", ErrChanged, l.path, size,
		l.offset, &l.wrote))
}

func (l *Log) again(err error) error {
	for l.syncing {
		l.changed.Wait()
	}
	l.undone()
	file := l.file
	l.file = nil
	return errors.Join(err, file.Close(), l.reopen())
}

// lastHash returns the hash that the chain goes on with.
func (l *Log) lastHash() (chain.Hash, error) {
	line, err := lastLine(l.file, l.offset)
	if err == nil && len(line) == 0 { // the segment is new
		line, err = l.lastClosedLine()
	}
	if err != nil {
		return chain.Hash{}, fmt.Errorf("looking for the last line of the chain: %w", err)
	}
	if link, ok := chain.Find(line); ok {
		return link.Hash, nil
	}
	first, _ := chain.ParseHash(l.o.ChainFrom) // was checked
	return first, nil
}

// lastClosedLine returns the last line of the newest closed segment, or nothing.
func (l *Log) lastClosedLine() ([]byte, error) {
	list, _, err := l.closedSegments()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	s := list[len(list)-1]
	path := closedPath(l.path, s.number)
	if !s.plain {
		path += compressedSuffix
	}
	f, err := l.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if s.plain {
		return lastLine(f, info.Size())
	}
	z, err := gzip.NewReader(io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		return nil, err
	}
	var last []byte
	r := bufio.NewReaderSize(z, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return bytes.TrimSuffix(last, []byte("\n")), nil
		}
		if err != nil {
			return nil, err
		}
		last = line
	}
}

// lastLine returns the last line of a file that ends with a newline, or nothing.
func lastLine(f io.ReaderAt, size int64) ([]byte, error) {
	for n := min(size, 4<<10); n > 0; n = min(size, 2*n) {
		tail := make([]byte, n)
		if _, err := f.ReadAt(tail, size-n); err != nil {
			return nil, err
		}
		tail = tail[:n-1]
		if i := bytes.LastIndexByte(tail, '\n'); i >= 0 || n == size {
			return tail[i+1:], nil
		}
	}
	return nil, nil
}
