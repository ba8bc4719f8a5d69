package parquetlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/columns"
	"github.com/agentevents/agentevents/internal/disk"
	"github.com/agentevents/agentevents/internal/firsterrs"
	"github.com/agentevents/agentevents/runstore"
)

const (
	lockName   = "agentevents.lock"
	noDay      = "__HIVE_DEFAULT_PARTITION__" // the value that engines read as NULL
	maxOpen    = 4                            // parts that are written at a time
	maxErrors  = 100                          // errors of lines that Log and Store return one by one
	heldRows   = 100_000                      // rows that wait for the id of their agent
	heldBytes  = 32 << 20                     // of their texts
	dayPattern = "2006-01-02"
)

// ErrNoRow means that an event can have no row: see [columns.Tracker.Add]. The writer goes on.
var ErrNoRow = errors.New("parquetlog: the event has no row")

// A Writer adds the rows of events to a folder. It must not be used concurrently.
type Writer struct {
	dir     string
	lock    *disk.Lock
	schema  *parquet.Schema
	table   []columns.Column
	known   known
	tracker *columns.Tracker
	open    map[string]*part // by day
	done    []*part          // complete, in temporary files
	number  map[string]int   // of the last part of each day
	held    holding
	clock   uint64
	report  Report
	err     error // the first one of the disk: nothing is published after it
}

// A Report tells the work of a [Writer].
type Report struct {
	Rows    int64    `json:"rows"`    // that were written
	Known   int64    `json:"known"`   // that were there, in the folder or in the input
	LeftOut int64    `json:"leftOut"` // events that come again soon, or whose sequence goes back
	NoRow   int64    `json:"noRow"`   // events that can have no row: see [ErrNoRow]
	Files   []string `json:"files"`   // that were written, relative to the folder
}

// Open opens the folder for more rows, and makes it if need be. It reads which rows the files have,
// completes the work of a writer that was killed while it published, and removes the temporary files
// of one that was killed before. The error is [disk.ErrLocked] while another writer has the folder
// open. A file that cannot be read is an error: nobody knows which rows it has.
func Open(dir string) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := disk.NewLock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("parquetlog: %s: %w", dir, err)
	}
	w := &Writer{
		dir: dir, lock: lock, schema: Schema(), table: columns.Table(), tracker: columns.NewTracker(),
		open: map[string]*part{}, number: map[string]int{},
	}
	if err := recoverFolder(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("parquetlog: %w", err), lock.Close())
	}
	if w.known, err = load(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("parquetlog: %w", err), lock.Close())
	}
	return w, nil
}

// Add adds the row of an event, unless the folder or this writer has it. Events of a run come in their
// order, and from the first one, also if the folder has rows of the run: rows tell of earlier events.
// An error that wraps [ErrNoRow] is about this event alone. After any other error nothing is
// published.
func (w *Writer) Add(line agentevents.Line) error {
	if w.err != nil {
		return w.err
	}
	row, err := w.tracker.Add(line.Event, line.Text)
	switch {
	case err == nil:
		w.err = w.add(&row)
		return w.err
	case errors.Is(err, columns.ErrLeftOut):
		w.report.LeftOut++
		return nil
	}
	w.report.NoRow++
	return fmt.Errorf("%w: %w", ErrNoRow, err)
}

// add writes the row, or holds it back until the id of its agent is known.
func (w *Writer) add(row *columns.Row) error {
	if row.AgentWas != "" {
		if err := w.release(w.held.named(row)); err != nil {
			return err
		}
	}
	if w.known.has(row.RunID, row.Sequence) {
		w.report.Known++
		return nil
	}
	w.known.add(row.RunID, row.Sequence)
	if row.Unnamed {
		if w.held.add(row); w.held.rows <= heldRows && w.held.bytes <= heldBytes {
			return nil
		}
		return w.release(w.held.all())
	}
	if err := w.write(row); err != nil {
		return err
	}
	if row.Ends {
		return w.release(w.held.take(row.RunID))
	}
	return nil
}

func (w *Writer) release(rows []columns.Row) error {
	for i := range rows {
		if err := w.write(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// write gives a row to the part of its day.
func (w *Writer) write(row *columns.Row) error {
	day := noDay
	if !row.Time.IsZero() {
		day = row.Time.UTC().Format(dayPattern)
	}
	p := w.open[day]
	if p == nil {
		var err error
		if p, err = w.newPart(day); err != nil {
			return err
		}
	}
	w.clock++
	p.used = w.clock
	if err := p.add(row); err != nil {
		return fmt.Errorf("parquetlog: %s: %w", p.path, err)
	}
	w.report.Rows++
	return nil
}

// newPart begins a part of a day. Of too many that are open, the one that waits for the longest is
// complete.
func (w *Writer) newPart(day string) (*part, error) {
	if len(w.open) >= maxOpen {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(w.open)),
			func(a, b string) int { return cmp.Compare(w.open[a].used, w.open[b].used) })
		if err := w.finish(oldest); err != nil {
			return nil, err
		}
	}
	folder := filepath.Join(w.dir, "day="+day)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	path := ""
	for {
		w.number[day]++
		path = filepath.Join(folder, fmt.Sprintf("part-%06d.parquet", w.number[day]))
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	p, err := newPart(path, w.schema, w.table)
	if err == nil {
		w.open[day] = p
	}
	return p, err
}

// finish completes the part of a day.
func (w *Writer) finish(day string) error {
	p := w.open[day]
	delete(w.open, day)
	w.done = append(w.done, p)
	if err := p.finish(); err != nil {
		return fmt.Errorf("parquetlog: %s: %w", p.path, err)
	}
	return nil
}

// Log adds the events that a reader yields. Lines that cannot be read, and events that can have no
// row, are left out: their errors are returned joined, the first 100 and the number of the others,
// and the rows of the other lines are there. Any other error wraps none of these, and nothing is
// published.
func (w *Writer) Log(r *agentevents.Reader) error {
	var errs firsterrs.List
	for line, err := range r.Lines() {
		if err == nil {
			err = w.Add(line)
		}
		if w.err != nil {
			return w.err
		}
		if err != nil {
			errs.Add(maxErrors, err)
		}
	}
	return errors.Join(errs.Take("")...)
}

// Store adds the events of all runs of a store. It does not load a run that the folder has up to its
// end. A run that cannot be loaded is left out from there on; its error is returned as by Log.
// An error of the list of runs ends the work.
func (w *Writer) Store(ctx context.Context, s runstore.Store) error {
	var errs firsterrs.List
	for info, err := range s.Runs(ctx, "") {
		if err != nil {
			errs.Add(maxErrors, err)
			break
		}
		if w.known.covers(info.RunID, info.Next) {
			continue
		}
		for entry, err := range s.Load(ctx, info.RunID, 0) {
			if err == nil {
				err = w.Add(agentevents.Line{Event: &entry.Event, Text: entry.Line})
			}
			if w.err != nil {
				return w.err
			}
			if err != nil {
				errs.Add(maxErrors, err)
			}
		}
		w.tracker.Forget(info.RunID)
	}
	return errors.Join(errs.Take("")...)
}

// Close completes the files, gives them their names, and closes the folder. A reader of the folder sees
// no file that is not complete. A process that is killed meanwhile leaves the rest of the work to the
// next Open. After an error of the disk Close publishes nothing and returns that error.
func (w *Writer) Close() (Report, error) {
	if w.lock == nil {
		return w.report, agentevents.ErrClosed
	}
	if w.err == nil {
		w.err = w.release(w.held.all())
	}
	for _, day := range slices.Sorted(maps.Keys(w.open)) {
		if w.err == nil {
			w.err = w.finish(day)
		}
	}
	if w.err == nil {
		w.err = w.publish()
	}
	return w.report, w.close(w.err)
}

// Discard closes the folder without the rows that were added.
func (w *Writer) Discard() error {
	if w.lock == nil {
		return agentevents.ErrClosed
	}
	return w.close(nil)
}

// close removes the temporary files that are left, and lets go of the folder.
func (w *Writer) close(err error) error {
	for _, p := range w.open {
		err = errors.Join(err, p.drop())
	}
	if w.report.Files == nil {
		for _, p := range w.done {
			err = errors.Join(err, p.drop())
		}
	}
	err = errors.Join(err, w.lock.Close())
	w.lock, w.open, w.done = nil, nil, nil
	if w.err == nil {
		w.err = agentevents.ErrClosed
	}
	return err
}

// publish gives the files their names, all or, after a crash, all with the next Open: a list of them
// is on the disk before.
func (w *Writer) publish() error {
	if len(w.done) == 0 {
		return nil
	}
	slices.SortFunc(w.done, func(a, b *part) int { return strings.Compare(a.path, b.path) })
	files := make([]string, len(w.done))
	for i, p := range w.done {
		name, err := filepath.Rel(w.dir, p.path)
		if err != nil {
			return err
		}
		files[i] = filepath.ToSlash(name)
	}
	if err := disk.Replace(filepath.Join(w.dir, listName), []byte(strings.Join(files, "\n")+"\n")); err != nil {
		return err
	}
	w.report.Files = files
	return publishListed(w.dir)
}
