package runstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/disk"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/logfile"
)

// Options configure a [File]. The zero Options are usable.
type Options struct {
	// Log has the options of the log. nil means [logfile.SyncEvery], so that nothing that was
	// acknowledged gets lost, and segments of 64 MiB. With another Sync, Commit promises as much as
	// that policy. Keep and KeepFor must be 0: a store has its runs whole. Its OnError may be nil.
	Log *logfile.Options
	// OnError is told of faults of the log that concern no call: lines that cannot be read, segments
	// that are missing, lines that cannot be written when another run is read. nil discards them. It
	// is called by a goroutine that opens or reads the store, once at a time, and must not call it.
	OnError func(error)

	unsavedMost int64 // 0 means the constant
}

// A File is a store in a directory:
//
//	events.jsonl            the events of all runs, a log of package logfile, with its
//	                        segments, its lock and its other files
//	snapshots/HASH.json     a snapshot: a line that names the run, and its JSON. HASH is
//	                        made from the run id
//	index.json              where the events of each run are, up to a point of the log; it is
//	                        there when the log is long
//
// One process has it open. Others may read the log: "agentevents tail -f" shows it. The store keeps
// in memory where in the log the events of each run are: about 32 bytes for each time that the log
// goes from one run to another, and 200 for a run. Open reads the part of the log that is newer
// than the saved index. Open and Close save it.
type File struct {
	dir     string
	log     *logfile.Log
	lazy    bool // Commit of the log may leave lines that are not written
	onError func(error)
	signal  signal

	mu     sync.Mutex
	runs   map[string]position // after the appended events
	claims claims
	ids    []string // of runs, as Runs had them last
	broken error    // another program has changed the log
	closed bool

	index index

	saving sync.Mutex // of snapshots
}

// A position is the end of a run.
type position struct {
	next  uint64
	ended bool // by an event
}

// Open opens the store in a directory, which is created if need be. The error is
// [logfile.ErrLocked] while another process, or this one, has it open.
func Open(dir string, o Options) (*File, error) {
	lo := logfile.Options{Sync: logfile.SyncEvery, MaxBytes: 64 << 20}
	if o.Log != nil {
		lo = *o.Log
	}
	if lo.Keep != 0 || lo.KeepFor != 0 {
		return nil, errors.New("runstore: Options.Log: Keep and KeepFor must be 0, a store has its runs whole")
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	dirs := []string{dir, filepath.Join(dir, "snapshots")}
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("runstore: opening %s: %w", dir, err)
		}
	}
	path := filepath.Join(dir, "events.jsonl")
	log, err := logfile.Open(path, lo)
	if err != nil {
		return nil, fmt.Errorf("runstore: opening %s: %w", dir, err)
	}
	f := &File{
		dir: dir, log: log, lazy: lo.Sync != logfile.SyncEvery, onError: oneAtATime(o.OnError),
		runs: map[string]position{}, index: index{path: path, runs: map[string]*indexed{}},
	}
	for _, d := range dirs {
		if err := disk.RemoveTemporary(d); err != nil {
			o.OnError(fmt.Errorf("runstore: opening %s: %w", dir, err))
		}
	}
	f.index.unsavedMost = cmp.Or(o.unsavedMost, unsavedMost)
	f.index.restore(filepath.Join(dir, indexName))
	if err := f.index.read(f.onError); err != nil {
		return nil, errors.Join(fmt.Errorf("runstore: reading %s: %w", path, err), log.Close())
	}
	for id, r := range f.index.runs {
		f.runs[id] = position{r.info.Next, r.info.Terminal != ""}
	}
	f.saveIndex()
	return f, nil
}

// Torn returns the torn line that was set aside when the store was opened, or nil. Its event was
// not acknowledged.
func (f *File) Torn() *logfile.TornError {
	if f.log == nil {
		return nil
	}
	return f.log.Torn()
}

// Close writes the remaining events, and releases the store.
func (f *File) Close() error {
	if f.log == nil {
		return agentevents.ErrZeroValue
	}
	f.mu.Lock()
	was, broken := f.closed, f.broken
	f.closed = true
	f.mu.Unlock()
	if was {
		return nil
	}
	err := f.log.Flush(context.Background())
	if err == nil && broken == nil {
		f.saveIndex() // while nobody else has the log
	}
	err = errors.Join(err, f.log.Close())
	f.signal.send()
	return err
}

// saveIndex saves the index, as far as that is worth it.
func (f *File) saveIndex() {
	err := f.index.read(f.onError)
	if err == nil {
		err = f.index.save(filepath.Join(f.dir, indexName))
	}
	if err != nil {
		f.onError(fmt.Errorf("runstore: saving the index of %s: %w", f.dir, err))
	}
}

// Append implements [Store]. A process that is killed may leave the first of several entries.
func (f *File) Append(ctx context.Context, runID string, expect uint64, entries ...Entry) error {
	return f.AppendClaimed(ctx, Claim{RunID: runID}, expect, entries...)
}

// AppendClaimed implements [Claimer].
func (f *File) AppendClaimed(ctx context.Context, c Claim, expect uint64, entries ...Entry) error {
	return AppendTo(ctx, f, c.RunID, expect, entries, func(expect uint64, entries []Entry) (uint64, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if err := cmp.Or(f.unusable(), f.claims.refuse(c.RunID, c.Token)); err != nil {
			return 0, err
		}
		next := f.runs[c.RunID].next
		if next != expect {
			return next, nil
		}
		return next, f.write(ctx, entries)
	})
}

// Claim implements [Claimer]. The claims keep the workers of this process apart: while it has the
// store open no other process has, and the claims end with it.
func (f *File) Claim(_ context.Context, c Claim) (Claim, error) {
	if err := CheckClaim(c); err != nil {
		return c, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.unusable(); err != nil {
		return c, err
	}
	return f.claims.change(c, f.runs[c.RunID].ended)
}

// unusable returns why the store cannot be used. f.mu is held.
func (f *File) unusable() error {
	if f.log == nil {
		return agentevents.ErrZeroValue
	}
	if f.closed {
		return fmt.Errorf("runstore: %s: %w", f.dir, agentevents.ErrClosed)
	}
	return f.broken
}

// write appends the entries, which are next in order. f.mu is held.
func (f *File) write(ctx context.Context, entries []Entry) (first error) {
	for i := range entries {
		e := &entries[i]
		err := f.log.WriteLine(ctx, e.Event, []byte(e.Line))
		var lost *logfile.LostError
		if errors.As(err, &lost) || errors.Is(err, agentevents.ErrClosed) {
			return err
		}
		var info RunInfo
		info.Add(&e.Event)
		// the log has it, and writes it when it can
		f.runs[e.Event.RunID] = position{info.Next, info.Terminal != "" || f.runs[e.Event.RunID].ended}
		f.check(err)
		if first == nil {
			first = err
		}
	}
	return first
}

// check notes an error after which the log may have changed. f.mu is held.
func (f *File) check(err error) {
	if errors.Is(err, logfile.ErrChanged) && f.broken == nil {
		f.broken = fmt.Errorf("runstore: %s has to be opened again: %w", f.dir, err)
	}
}

// Commit implements [Store]. Those who wait share a sync of the disk.
func (f *File) Commit(ctx context.Context) error {
	if f.log == nil {
		return agentevents.ErrZeroValue
	}
	err := f.log.Commit(ctx)
	f.mu.Lock()
	f.check(err)
	if err == nil {
		err = f.unusable()
	}
	f.mu.Unlock()
	if err == nil {
		f.signal.send()
	}
	return err
}

// oneAtATime returns f for many goroutines.
func oneAtATime(f func(error)) func(error) {
	var mu sync.Mutex
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		f(err)
	}
}

// readable makes the events that the log's file has a part of the index: all that were appended,
// unless the log cannot write some, as on a full disk. Then unwritten is the reason.
func (f *File) readable(ctx context.Context) (unwritten, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	err = f.unusable()
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	unwritten = f.log.Commit(ctx)
	if unwritten == nil && f.lazy && f.log.Stats().Held > 0 {
		unwritten = f.log.Flush(ctx)
	}
	f.mu.Lock()
	f.check(unwritten)
	err = f.unusable()
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return unwritten, f.index.read(f.onError)
}

// appended returns the next sequence of a run, also if its last events are not written.
func (f *File) appended(runID string) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[runID].next
}

// Load implements [Store]. On a full disk it yields the written events, and then the error if there
// are others.
func (f *File) Load(ctx context.Context, runID string, from uint64) iter.Seq2[Entry, error] {
	return f.load(ctx, runID, from, false)
}

// load is Load. A partial one has no error for events that are not written.
func (f *File) load(ctx context.Context, runID string, from uint64, partial bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		next := f.appended(runID)
		unwritten, err := f.readable(ctx)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		if !f.index.load(ctx, runID, from, yield) || unwritten == nil {
			return
		}
		if info, _ := f.index.info(runID); info.Next < next && !partial {
			yield(Entry{}, unwritten)
			return
		}
		f.onError(unwritten)
	}
}

// Watch implements [Store].
func (f *File) Watch(ctx context.Context, runID string, from uint64) iter.Seq2[Entry, error] {
	return watch(ctx, func(from uint64) iter.Seq2[Entry, error] { return f.load(ctx, runID, from, true) }, &f.signal, from)
}

// Run implements [Store]. On a full disk it tells of the written events.
func (f *File) Run(ctx context.Context, runID string) (RunInfo, error) {
	next := f.appended(runID)
	unwritten, err := f.readable(ctx)
	if err != nil {
		return RunInfo{}, err
	}
	info, err := f.index.info(runID)
	switch {
	case unwritten == nil:
	case err != nil && next > 0:
		err = unwritten
	default:
		f.onError(unwritten)
	}
	return info, err
}

// Runs implements [Store]. On a full disk it tells of the written events, and last yields the error
// if no event of a run is written.
func (f *File) Runs(ctx context.Context, after string) iter.Seq2[RunInfo, error] {
	return func(yield func(RunInfo, error) bool) {
		f.mu.Lock()
		f.ids = sorted(f.ids, f.runs)
		ids := f.ids
		f.mu.Unlock()
		unwritten, err := f.readable(ctx)
		if err != nil {
			yield(RunInfo{}, err)
			return
		}
		all := len(ids)
		if unwritten != nil {
			ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
				_, err := f.index.info(id)
				return err != nil
			})
		}
		switch {
		case !listRuns(ctx, ids, after, f.index.info, yield) || unwritten == nil:
		case len(ids) < all:
			yield(RunInfo{}, unwritten)
		default:
			f.onError(unwritten)
		}
	}
}

// A snapshotHead is the first line of a snapshot's file.
type snapshotHead struct {
	RunID  string `json:"runId"`
	Next   uint64 `json:"nextSequence"`
	SHA256 string `json:"sha256"` // of the rest of the file
}

// SaveSnapshot implements [Store]. The file is replaced at once, so a crash leaves the one
// or the other.
func (f *File) SaveSnapshot(_ context.Context, snapshot *agentevents.RunSnapshot) error {
	f.mu.Lock()
	err := f.unusable()
	var next uint64
	if err == nil && snapshot != nil {
		next = f.runs[snapshot.RunID].next
	}
	f.mu.Unlock()
	if err == nil {
		err = CheckSnapshot(snapshot, next)
	}
	if err != nil {
		return err
	}
	text := append(snapshot.AppendJSON(nil), '\n')
	line, err := json.Marshal(snapshotHead{snapshot.RunID, snapshot.NextSequence, hashOf(text)})
	if err != nil {
		return err
	}
	f.saving.Lock()
	defer f.saving.Unlock()
	path := f.snapshotPath(snapshot.RunID)
	if head, _, err := readSnapshot(path); err == nil && head.RunID == snapshot.RunID &&
		head.Next > snapshot.NextSequence && head.Next <= next {
		return nil
	}
	if err := disk.Replace(path, append(append(line, '\n'), text...)); err != nil {
		return fmt.Errorf("runstore: saving the snapshot of run %s: %w", jsonwire.Brief(snapshot.RunID), err)
	}
	return nil
}

// LoadSnapshot implements [Store].
func (f *File) LoadSnapshot(_ context.Context, runID string) (*agentevents.RunSnapshot, error) {
	f.mu.Lock()
	err := f.unusable()
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	head, text, err := readSnapshot(f.snapshotPath(runID))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w (run %s)", ErrNoSnapshot, jsonwire.Brief(runID))
	case err != nil:
		return nil, fmt.Errorf("runstore: the snapshot of run %s: %w", jsonwire.Brief(runID), err)
	case head.RunID != runID:
		return nil, fmt.Errorf("runstore: the snapshot of run %s is of another run: %s",
			jsonwire.Brief(runID), jsonwire.Brief(head.RunID))
	}
	return parseSnapshot(text)
}

// snapshotPath returns where a run's snapshot is. Ids may be long, and have any characters.
func (f *File) snapshotPath(runID string) string {
	return filepath.Join(f.dir, "snapshots", hashOf([]byte(runID))[:32]+".json")
}

// readSnapshot reads a file that is whole.
func readSnapshot(path string) (head snapshotHead, text []byte, err error) {
	all, err := os.ReadFile(path)
	if err != nil {
		return head, nil, err
	}
	line, text, _ := bytes.Cut(all, []byte("\n"))
	if err := json.Unmarshal(line, &head); err != nil {
		return head, nil, fmt.Errorf("the file is damaged: its first line is: %w", err)
	}
	if hashOf(text) != head.SHA256 {
		return head, nil, errors.New("the file is damaged: its hash differs from the hash in its first line")
	}
	return head, text, nil
}
