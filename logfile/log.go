package logfile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/chain"
	"github.com/agentevents/agentevents/internal/disk"
	"github.com/agentevents/agentevents/internal/option"
)

// A Sync decides when events are on disk, so that they survive a crash of the machine. Under every
// policy, written events survive the process.
type Sync uint8

// The policies.
const (
	SyncInterval Sync = iota // Options.Interval after the first event that is not; nobody waits
	SyncNone                 // when the operating system likes to, and at Flush and Close
	SyncEnds                 // before Emit returns from the end of a run
	SyncEvery                // before Emit returns: emitters that wait share one sync

	syncs = iota
)

// Options configure a [Log]. The zero Options are usable: they sync once a second and
// keep one file.
type Options struct {
	// Sync decides when events are on disk. The zero value is SyncInterval.
	Sync Sync
	// Interval is how long SyncInterval waits. 0 means a second.
	Interval time.Duration `least:"0"`
	// Buffer is how many bytes may wait before they are written; with SyncInterval they wait
	// no longer than Interval. 0 writes every event at once, so that a crash of the process
	// loses nothing. With SyncEvery it means nothing.
	Buffer int `least:"0"`

	// MaxBytes is the length of a segment: before it would be longer, it is closed and another
	// begun. Lines that emitters write together stay together, so a segment may be longer by these.
	// 0 means no bound.
	MaxBytes int64 `least:"0"`
	// MaxAge is how long a segment is written: with the first event after that another
	// is begun. 0 means no bound.
	MaxAge time.Duration `least:"0"`
	// Compress has closed segments compressed with gzip, in the background.
	Compress bool
	// Keep is how many closed segments are kept; the oldest go first. 0 means all.
	Keep int `least:"0"`
	// KeepFor is how long closed segments are kept after their last event, counted when
	// one is closed or the log opened. The newest is always kept. 0 means for ever.
	KeepFor time.Duration `least:"0"`

	// Chain gives every line the hash of the one before and its own, so that it shows if
	// lines are changed, removed or added later. See "A chain" in the package's
	// documentation.
	Chain bool
	// ChainFrom is the hash that a new chain begins with, in hex: the last one of a log
	// that this one continues or is a redacted copy of. A log that has a chain goes on
	// with that. "" means 64 zeros.
	ChainFrom string

	// OnError gets the errors that no call returns: errors of syncs in the background, of rotation,
	// compression and retention, and a [*TornError]. It is called while the log is in use and must
	// not call it. nil means that Flush and Close return them, but for the TornError.
	OnError func(error)
	// Clock tells the time for MaxAge and KeepFor. nil means [time.Now].
	Clock func() time.Time

	fs disk.FS // nil means the operating system's
}

// ErrLocked means that another process writes the log, or that this one has it open
// already, by this name or another. It may be tried again.
var ErrLocked = disk.ErrLocked

// ErrChanged means that another program has removed, replaced, cut or extended the file
// that is written.
var ErrChanged = errors.New("logfile: another program has changed the file")

// maxHeld bounds the lines that are held back for a disk that fails, and those that wait
// for a sync.
const maxHeld = 16 << 20

// A Log is a sink that appends the events of all runs to a log on disk. It has the file
// for itself until it is closed.
//
// Lines that the disk does not accept are kept and written first once it works again. Beyond 16 MiB
// of kept lines, events are refused, each with a [*LostError].
//
// The methods may be called concurrently.
type Log struct {
	o    Options
	path string
	fs   disk.FS
	lock *disk.Lock

	mu       sync.Mutex
	changed  *sync.Cond // busy or syncing ended
	closed   bool       // no more events
	released bool       // no more writes

	// Positions count the bytes that were accepted since the log was opened.
	buf      []byte // from durable to accepted
	room     []byte // the memory of buf, empty
	accepted int64
	written  int64
	durable  int64 // on disk; without syncs, written
	wanted   int64 // must be on disk before Commit returns: the end of the last run that ended

	busy    bool // somebody writes or rotates, with mu released, and has file
	syncing bool // somebody syncs, with mu released
	undo    bool // a sync failed while somebody wrote

	gathering *round     // will run next
	running   *round     // runs
	waited    int        // how many waited for the last one
	turn      *sync.Cond // running ended: one waits at most

	file   disk.File   // nil if it could not be opened again, and after Close
	info   os.FileInfo // of file
	offset int64       // of written in the file
	unsure bool        // a write or sync failed: the file may be longer than offset
	doubt  int64       // offset before which the disk may lack bytes that the file shows
	begun  time.Time
	wrote  span  // the span that this process has written to the file
	holds  span  // the span that was accepted since
	retry  int64 // offset at which rotation is tried again after it failed
	next   int   // number of the segment when it is closed

	hash, writtenHash chain.Hash // of the last line that was accepted, written
	head              disk.File

	lines, lost uint64
	torn        *TornError
	late        []error     // for the next Flush
	timer       *time.Timer // of the next sync of SyncInterval, or nil
	keeper      keeper
}

// Open opens a log, or makes one, and takes the lock PATH.lock. The error is [ErrLocked]
// if somebody else has it. A symbolic link stands for the file that it leads to, and the
// log's other files lie beside that; one that somebody else has made, not the program's user
// nor the system's, is refused. No other file of the log is written through a link.
//
// If a crash has torn the last line, its beginning is set aside in PATH.torn.NNNNNN, and
// the log ends with the line before; see [Log.Torn].
func Open(path string, o Options) (*Log, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Interval = cmp.Or(o.Interval, time.Second)
	if o.fs == nil {
		o.fs = disk.OS{}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	// A log has one name, and rotation renames its file and not a link.
	path, err := disk.Follow(path)
	if err != nil {
		return nil, fmt.Errorf("logfile: opening %s: %w", path, err)
	}
	lock, err := disk.NewLock(path + lockSuffix)
	if err != nil {
		return nil, fmt.Errorf("logfile: opening %s: %w", path, err)
	}
	l := &Log{o: o, path: path, fs: o.fs, lock: lock}
	l.changed, l.turn = sync.NewCond(&l.mu), sync.NewCond(&l.mu)
	if err := l.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("logfile: opening %s: %w", path, err), l.release())
	}
	l.keeper.start(l)
	return l, nil
}

func (o *Options) check() error {
	const name = "logfile.Options"
	wrong := func(field string, value any, detail string) error {
		return &agentevents.OptionError{Option: name + "." + field, Value: value, Detail: detail}
	}
	switch {
	case o.Sync >= syncs:
		return option.NoConstant(name+".Sync", int(o.Sync))
	case o.Buffer > maxHeld:
		return wrong("Buffer", o.Buffer, fmt.Sprintf("at most %d bytes can wait", maxHeld))
	case o.ChainFrom != "" && !o.Chain:
		return wrong("ChainFrom", o.ChainFrom, "needs Chain")
	case o.ChainFrom != "":
		if _, ok := chain.ParseHash(o.ChainFrom); !ok {
			return wrong("ChainFrom", o.ChainFrom, "is not a hash of 64 hexadecimal digits in lower case")
		}
	}
	return option.Check(name, o)
}

func (l *Log) open() error {
	list, _, err := l.closedSegments()
	if err != nil {
		return err
	}
	l.next = 1
	if len(list) > 0 {
		l.next = list[len(list)-1].number + 1
	}
	if err := l.openFile(); err != nil {
		return err
	}
	if !l.o.Chain {
		return nil
	}
	if l.head, err = l.fs.OpenFile(l.path+".head", os.O_WRONLY|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if l.hash, err = l.lastHash(); err != nil {
		return err
	}
	l.writtenHash = l.hash
	return nil
}

// release closes everything that is open, but for the lines.
func (l *Log) release() error {
	var errs []error
	for _, f := range []disk.File{l.file, l.head} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	l.file, l.head = nil, nil
	return errors.Join(append(errs, l.lock.Close())...)
}

// WriteEvent appends the event. With SyncEvery and SyncEnds, it is [Log.Commit] that
// waits until it is on disk; an emitter calls it.
func (l *Log) WriteEvent(ctx context.Context, ev agentevents.Event) error {
	line, err := ev.AppendJSON(nil)
	if err != nil {
		return err
	}
	return l.WriteLine(ctx, ev, line)
}

// CheckSink returns an error unless the log comes from [Open]; see [agentevents.Checker].
func (l *Log) CheckSink() error {
	if l == nil || l.fs == nil {
		return errors.New("the log was not opened: it comes from logfile.Open")
	}
	return nil
}

// WriteLine appends the event, whose line is already encoded.
func (l *Log) WriteLine(_ context.Context, ev agentevents.Event, line []byte) error {
	if err := l.CheckSink(); err != nil {
		return err // or the timer would end the process
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return agentevents.ErrClosed
	}
	if l.accepted-l.written+int64(len(line)) >= maxHeld {
		if err := l.writeTo(l.accepted); err != nil {
			l.lost++
			return &LostError{Lines: 1, Events: []Range{{ev.RunID, ev.Sequence, ev.Sequence}}, Err: err}
		}
	}
	l.grow(len(line) + chain.Size + len("\n"))
	if l.o.Chain {
		l.buf, l.hash = chain.Append(l.buf, line, l.hash)
		l.accepted += int64(chain.Size)
	} else {
		l.buf = append(l.buf, line...)
	}
	l.buf = append(l.buf, '\n')
	l.accepted += int64(len(line)) + 1
	l.lines++
	l.holds.add(&ev)
	if l.o.Sync == SyncEnds && ends(ev.Payload) {
		l.wanted = l.accepted
	}
	if l.o.Sync == SyncInterval {
		l.arm()
	}
	if held := l.accepted - l.written; l.o.Sync == SyncEvery && held < maxHeld/2 || held < int64(l.o.Buffer) {
		return nil // Commit, the timer or a later event writes it
	}
	if err := l.writeTo(l.accepted); err != nil {
		return err
	}
	if l.accepted-l.durable >= maxHeld { // nothing may wait for a sync without a bound
		return l.syncTo(l.accepted)
	}
	return nil
}

func ends(p agentevents.Payload) bool {
	switch p.(type) {
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		return true
	}
	return false
}

// Commit returns when everything that was written before the call is on disk, as far as
// Options.Sync promises it. Concurrent calls share a sync.
func (l *Log) Commit(context.Context) error {
	if l.CheckSink() != nil {
		return agentevents.ErrZeroValue
	}
	l.mu.Lock()
	pos := int64(0)
	switch l.o.Sync {
	case SyncEvery:
		pos = l.accepted
	case SyncEnds:
		pos = l.wanted
	}
	if l.durable >= pos {
		l.mu.Unlock()
		return nil
	}
	r, leads := l.join(pos)
	if leads {
		defer l.mu.Unlock()
		return l.run(r)
	}
	l.mu.Unlock()
	<-r.done
	return r.err
}

// Flush writes the kept and buffered lines, syncs, and returns the errors that were not reported
// yet.
func (l *Log) Flush(context.Context) error {
	if l.CheckSink() != nil {
		return agentevents.ErrZeroValue
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	return l.flush()
}

func (l *Log) flush() error {
	err := l.writeTo(l.accepted)
	errs := append(l.late, err, l.sync(l.written))
	l.late = nil
	return distinct(errs)
}

// distinct joins errors, and leaves out those with the text of an earlier one: a disk that fails
// fails each attempt.
func distinct(errs []error) error {
	var out []error
	for _, err := range errs {
		if err != nil && !slices.ContainsFunc(out, func(other error) bool { return other.Error() == err.Error() }) {
			out = append(out, err)
		}
	}
	return errors.Join(out...)
}

// Close flushes, and releases the file and its lock. Lines that cannot be written are lost: the
// error is a [*LostError], which names them. Events that come later are refused with
// [agentevents.ErrClosed].
func (l *Log) Close() error {
	if l.CheckSink() != nil {
		return agentevents.ErrZeroValue
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	err := l.flush()
	for l.busy || l.syncing {
		l.changed.Wait()
	}
	if l.written < l.accepted {
		lost := lostIn(l.buf[l.whole()-l.durable:], err)
		l.lost += uint64(lost.Lines)
		err = lost
		// Or the log would end with a torn line. Doubtful lines are whole, and may yet be on disk.
		if part := l.written - l.whole(); part > 0 && l.file != nil && l.offset >= l.doubt {
			err = errors.Join(err, l.file.Truncate(l.offset-part))
		}
	}
	l.mu.Unlock()
	l.keeper.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	err = errors.Join(append([]error{err}, l.late...)...)
	l.late = nil
	return errors.Join(err, l.release())
}

// Stats are the counts of a log since it was opened.
type Stats struct {
	Lines uint64 // that were accepted
	Held  int64  // bytes of them that are not written
	Dirty int64  // bytes of them that are written, and may not be on disk; 0 for SyncNone, which does not know
	Lost  uint64 // lines that were refused, or could not be written until Close
}

// Stats returns the counts so far.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{Lines: l.lines, Held: l.accepted - l.written, Dirty: l.written - l.durable, Lost: l.lost}
}

// Torn returns the torn line that was set aside when the log was opened, or nil.
func (l *Log) Torn() *TornError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.torn
}

// tell tells of an error that no call returns. l.mu is held.
func (l *Log) tell(err error) {
	const most = 16
	switch {
	case l.o.OnError != nil:
		l.o.OnError(err)
	case len(l.late) < most:
		l.late = append(l.late, err)
	}
}

// writeTo writes until that position is written. l.mu is held.
func (l *Log) writeTo(pos int64) error {
	for l.written < pos {
		if l.busy {
			l.changed.Wait()
			continue
		}
		if err := l.alone(l.write); err != nil {
			return err
		}
	}
	return nil
}

// alone calls f with busy set. l.mu is held; busy is not set.
func (l *Log) alone(f func() error) error {
	l.busy = true
	err := f()
	l.undone()
	l.busy = false
	l.changed.Broadcast()
	return err
}

// write writes the accepted lines. l.mu is held, and released meanwhile; busy is set.
func (l *Log) write() error {
	if err := l.ready(); err != nil {
		return err
	}
	chunk, hash, written := l.buf[l.written-l.durable:], l.hash, l.holds
	l.holds = span{}
	l.mu.Unlock()
	n, err := l.file.WriteAt(chunk, l.offset)
	if n < 0 || n > len(chunk) {
		n = 0
	}
	if err != nil && l.offset >= l.doubt {
		n = max(n, l.taken(chunk))
	}
	l.mu.Lock()
	if err == nil && n < len(chunk) {
		err = fmt.Errorf("write %s: %d bytes of %d were taken", l.path, n, len(chunk))
	}
	l.written += int64(n)
	l.offset += int64(n)
	l.unsure = err != nil
	if n == len(chunk) {
		l.writtenHash = hash
		l.wrote.join(&written)
	} else {
		written.join(&l.holds)
		l.holds = written
	}
	if l.o.Sync == SyncNone {
		l.drop(l.whole())
	}
	return err
}

// taken returns how much of the chunk the file has after a write that failed: on a full disk
// [os.File.WriteAt] writes a part and returns 0. busy is set.
func (l *Log) taken(chunk []byte) (n int) {
	info, err := l.file.Stat()
	if err != nil || info.Size() <= l.offset {
		return 0
	}
	text := make([]byte, min(info.Size()-l.offset, int64(len(chunk))))
	if _, err := l.file.ReadAt(text, l.offset); err != nil {
		return 0
	}
	for n < len(text) && text[n] == chunk[n] {
		n++
	}
	return n
}

// whole is where the last line ends that is written whole. l.mu is held.
func (l *Log) whole() int64 {
	return l.durable + int64(bytes.LastIndexByte(l.buf[:l.written-l.durable], '\n')+1)
}

// ready makes sure that the file is there, is the one that was written, and has room for the next
// lines. l.mu is held, busy set.
func (l *Log) ready() error {
	if l.released {
		return agentevents.ErrClosed
	}
	if l.file == nil {
		if err := l.reopen(); err != nil {
			return err
		}
	}
	info, err := l.fs.Stat(l.path)
	switch {
	case errors.Is(err, os.ErrNotExist), err == nil && !os.SameFile(info, l.info):
		return l.replaced()
	case err != nil:
		return err
	case info.Size() != l.offset && !l.unsure, info.Size() < l.offset:
		return l.altered(info.Size())
	}
	if l.mustRotate() {
		l.rotate()
		if l.file == nil {
			return l.reopen()
		}
	}
	return nil
}

// syncTo makes the log durable to that position, as far as the policy knows. l.mu is held.
func (l *Log) syncTo(pos int64) error {
	if l.durable >= pos {
		return nil
	}
	if l.o.Sync == SyncNone {
		return l.writeTo(pos)
	}
	return l.sync(pos)
}

// sync is syncTo whatever the policy is. l.mu is held.
func (l *Log) sync(pos int64) error {
	r, leads := l.join(pos)
	if leads {
		return l.run(r)
	}
	l.mu.Unlock()
	<-r.done
	l.mu.Lock()
	return r.err
}

// A round is a sync that several may wait for. The first who joins leads it.
type round struct {
	end     int64 // length of the accepted lines when it begins
	waiting int
	err     error // may be read when done is closed
	done    chan struct{}
}

// join returns a round that makes the position durable, and whether the caller has to
// run it. l.mu is held.
func (l *Log) join(pos int64) (r *round, leads bool) {
	switch {
	case l.running != nil && pos <= l.running.end:
		r = l.running
	case l.gathering != nil:
		r = l.gathering
	default:
		l.gathering = &round{done: make(chan struct{})}
		return l.gathering, true
	}
	r.waiting++
	return r, false
}

// run runs a round once the one before is over. l.mu is held.
func (l *Log) run(r *round) error {
	for l.running != nil {
		l.turn.Wait()
	}
	// Those who waited for the one before may have more to write by now.
	for before := int64(-1); r.waiting < l.waited && before < l.accepted; {
		before = l.accepted
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
	l.gathering, l.running = nil, r
	r.end = l.accepted
	r.err = l.lead(r.end)
	l.running, l.waited = nil, r.waiting
	l.turn.Signal()
	close(r.done)
	return r.err
}

// lead writes and syncs up to that position. l.mu is held.
func (l *Log) lead(pos int64) error {
	for {
		if err := l.writeTo(pos); err != nil {
			return err
		}
		switch {
		case l.durable >= pos && l.o.Sync != SyncNone: // a rotation has synced
			return nil
		case l.busy || l.syncing:
			l.changed.Wait()
		case l.released:
			return agentevents.ErrClosed
		case l.file == nil:
			if err := l.alone(l.reopen); err != nil {
				return err
			}
		default:
			return l.syncOnce(false)
		}
	}
}

// syncOnce syncs the written lines. l.mu is held, and released meanwhile; syncing is not set. mine
// means that the caller has set busy.
func (l *Log) syncOnce(mine bool) error {
	l.syncing = true
	file, target, hash := l.file, l.whole(), l.writtenHash
	l.mu.Unlock()
	err := file.Sync()
	var headErr error
	if err == nil && l.head != nil {
		_, headErr = l.head.WriteAt(chain.AppendHead(nil, hash), 0)
	}
	l.mu.Lock()
	if err != nil {
		if l.undo = true; mine || !l.busy {
			l.undone()
		}
		err = fmt.Errorf("logfile: %s may not be on disk: %w", l.path, err)
	} else {
		l.drop(target)
	}
	if headErr != nil {
		l.tell(fmt.Errorf("logfile: saving the head of the chain: %w", headErr))
	}
	l.syncing = false
	l.changed.Broadcast()
	return err
}

// undone takes back lines that were written and could not be synced: the system may have lost them,
// and not report it the next time, so they are written again. l.mu is held, and nobody writes.
func (l *Log) undone() bool {
	if !l.undo {
		return false
	}
	l.doubt = max(l.doubt, l.offset)
	l.offset -= l.written - l.durable
	l.written, l.unsure, l.undo = l.durable, true, false
	return true
}

// drop forgets the lines up to that position, which are on disk. Whoever writes has a
// slice of buf, so it is never moved in place. l.mu is held.
func (l *Log) drop(pos int64) {
	if pos <= l.durable {
		return
	}
	l.buf = l.buf[pos-l.durable:]
	l.durable = pos
	if len(l.buf) == 0 { // so nobody writes a part of it
		l.buf = l.room
	}
}

// grow makes room for n more bytes. l.mu is held.
func (l *Log) grow(n int) {
	const least, most = 4 << 10, 1 << 20
	if cap(l.buf)-len(l.buf) >= n {
		return
	}
	l.buf = append(make([]byte, 0, max(least, 2*(len(l.buf)+n))), l.buf...)
	if l.room = nil; cap(l.buf) <= most {
		l.room = l.buf[:0]
	}
}

// arm schedules a sync of the written lines after the interval. l.mu is held.
func (l *Log) arm() {
	if l.timer == nil && !l.closed {
		l.timer = time.AfterFunc(l.o.Interval, l.tick)
	}
}

func (l *Log) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	if l.closed {
		return
	}
	if err := l.syncTo(l.accepted); err != nil {
		l.tell(err)
		l.arm()
	}
}

func (l *Log) dir() string { return filepath.Dir(l.path) }
