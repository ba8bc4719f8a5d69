package logfile

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// This file closes segments, and keeps house among the closed ones.

// temporarySuffix ends the name of a segment that is being compressed.
const temporarySuffix = ".tmp"

// A closedSegment is one of the log's.
type closedSegment struct {
	number        int
	plain, packed bool // which of the two files is there
}

// closedSegments returns the closed segments of the log, oldest first, and the files
// that a compression has left over.
func (l *Log) closedSegments() (list []closedSegment, leftOver []string, err error) {
	entries, err := l.fs.ReadDir(l.dir())
	if err != nil {
		return nil, nil, err
	}
	byNumber := map[int]*closedSegment{}
	for _, e := range entries {
		name, left := strings.CutSuffix(e.Name(), temporarySuffix)
		packed := strings.HasSuffix(name, compressedSuffix)
		base, n, ok := cutNumber(name)
		if !ok || base != filepath.Base(l.path) || left && !packed {
			continue
		}
		if left {
			leftOver = append(leftOver, filepath.Join(l.dir(), e.Name()))
			continue
		}
		s := byNumber[n]
		if s == nil {
			s = &closedSegment{number: n}
			byNumber[n] = s
		}
		s.packed, s.plain = s.packed || packed, s.plain || !packed
	}
	for _, s := range byNumber {
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b closedSegment) int { return a.number - b.number })
	return list, leftOver, nil
}

// mustRotate reports whether the segment is full or old. One that may have more than was
// written is not closed before that is written over. l.mu is held, busy set.
func (l *Log) mustRotate() bool {
	if l.offset == 0 || l.offset < l.retry || l.unsure {
		return false
	}
	return l.o.MaxBytes > 0 && l.offset+l.accepted-l.written > l.o.MaxBytes ||
		l.o.MaxAge > 0 && l.o.Clock().Sub(l.begun) >= l.o.MaxAge
}

// rotate closes the segment and begins another. If that fails, the one that is there
// goes on, and it is tried again when an eighth more is written. l.mu is held, and
// released meanwhile; busy is set.
func (l *Log) rotate() {
	for l.syncing {
		l.changed.Wait()
	}
	if l.undone() {
		return
	}
	if l.o.Sync != SyncNone && l.durable < l.written {
		if err := l.syncOnce(true); err != nil {
			l.tell(err)
			return
		}
	}
	file := l.file
	l.file = nil
	l.mu.Unlock()
	err := errors.Join(file.Close(), l.rename())
	l.mu.Lock()
	if err == nil {
		err = l.openFile()
	}
	if err == nil {
		l.keeper.wake()
		return
	}
	l.tell(fmt.Errorf("logfile: closing a segment of %s: %w", l.path, err))
	if l.file == nil {
		if err := l.openFile(); err != nil {
			return // ready reports the error
		}
	}
	l.retry = l.offset + max(l.o.MaxBytes/8, 1)
}

// rename gives the segment its number. Numbers are counted, not looked up: a directory
// that is read while a segment is compressed may show neither of its files.
func (l *Log) rename() error {
	if err := l.fs.Rename(l.path, closedPath(l.path, l.next)); err != nil {
		return err
	}
	l.next++
	if l.o.Sync == SyncNone {
		return nil
	}
	return l.fs.SyncDir(l.dir())
}

// A keeper compresses and removes closed segments in a goroutine that ends when there is
// nothing to do, or with the log.
type keeper struct {
	l      *Log
	ctx    context.Context
	cancel context.CancelFunc

	mu   sync.Mutex
	busy bool
	more bool // look again
	done sync.WaitGroup
}

// start begins with the files on disk.
func (k *keeper) start(l *Log) {
	k.l = l
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.wake()
}

// wake looks at the closed segments.
func (k *keeper) wake() {
	if !k.l.o.Compress && k.l.o.Keep == 0 && k.l.o.KeepFor == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx.Err() != nil {
		return
	}
	k.more = true
	if k.busy {
		return
	}
	k.busy = true
	k.done.Add(1)
	go k.run()
}

// stop ends the goroutine. The next Open of the log does its remaining work.
func (k *keeper) stop() {
	k.mu.Lock()
	k.cancel()
	k.mu.Unlock()
	k.done.Wait()
}

func (k *keeper) run() {
	defer k.done.Done()
	for {
		k.mu.Lock()
		if !k.more || k.ctx.Err() != nil {
			k.busy = false
			k.mu.Unlock()
			return
		}
		k.more = false
		k.mu.Unlock()
		if err := k.l.keep(k.ctx); err != nil && k.ctx.Err() == nil {
			k.l.mu.Lock()
			k.l.tell(fmt.Errorf("logfile: closed segments of %s: %w", k.l.path, err))
			k.l.mu.Unlock()
		}
	}
}

// keep removes the segments that are too many or too old, and compresses the others.
func (l *Log) keep(ctx context.Context) error {
	list, leftOver, err := l.closedSegments()
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range leftOver {
		errs = append(errs, l.fs.Remove(path))
	}
	for i, s := range list {
		path := closedPath(l.path, s.number)
		if i < len(list)-1 && (l.o.Keep > 0 && i < len(list)-l.o.Keep || l.o.KeepFor > 0 && l.expired(path, s)) {
			errs = append(errs, l.removeSegment(path, s))
			continue
		}
		if l.o.Compress && s.plain && ctx.Err() == nil {
			errs = append(errs, l.pack(ctx, path, s.packed))
		}
	}
	return errors.Join(errs...)
}

func (l *Log) removeSegment(path string, s closedSegment) error {
	var errs []error
	if s.plain {
		errs = append(errs, l.fs.Remove(path))
	}
	if s.packed {
		errs = append(errs, l.fs.Remove(path+compressedSuffix))
	}
	return errors.Join(errs...)
}

func (l *Log) expired(path string, s closedSegment) bool {
	if !s.plain {
		path += compressedSuffix
	}
	info, err := l.fs.Stat(path)
	return err == nil && l.o.Clock().Sub(info.ModTime()) >= l.o.KeepFor
}

// pack compresses a closed segment. The plain file goes when the other one is on disk.
func (l *Log) pack(ctx context.Context, path string, done bool) error {
	if !done {
		if err := l.compress(ctx, path); err != nil {
			return err
		}
	}
	return l.fs.Remove(path)
}

func (l *Log) compress(ctx context.Context, path string) (err error) {
	in, err := l.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	temp := path + compressedSuffix + temporarySuffix
	out, err := l.fs.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(io.NewOffsetWriter(out, 0))
	z.ModTime = info.ModTime()
	_, err = io.Copy(z, stoppable{ctx, io.NewSectionReader(in, 0, info.Size())})
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, l.fs.Remove(temp))
	}
	if err := l.fs.Rename(temp, path+compressedSuffix); err != nil {
		return err
	}
	return l.fs.SyncDir(l.dir())
}

// stoppable reads until the context ends.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}
