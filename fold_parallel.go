package agentevents

import (
	"bytes"
	"cmp"
	"errors"
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"sync"
)

// Folding many runs on several cores: the caller's goroutine reads lines and
// deals them out by run, workers parse and fold. Events of one run stay in
// order, as one worker has them all.

// A lineBatch is lines for one worker, in order.
type lineBatch struct {
	text  textSlab
	lines []batchLine
	size  int
}

type batchLine struct {
	text   string
	line   int
	offset int64
	last   bool // the last line, without a newline
}

const (
	batchSize  = 256 << 10 // bytes of text that are handed over at a time
	batchAhead = 4         // batches that may wait for a worker
)

// A foldWorker folds the runs that are dealt to it.
type foldWorker struct {
	in    chan *lineBatch
	back  chan *lineBatch // folded ones, to be filled again; all have room
	out   *lineBatch      // being filled by the reader
	folds runFolds
	first map[*Fold]int // line on which the run appeared
	errs  []lineFault
}

type lineFault struct {
	line int
	err  error
}

// foldParallel is FoldReader with workers.
func foldParallel(r *Reader, o FoldOptions) ([]*RunSnapshot, error) {
	workers := make([]*foldWorker, o.Workers)
	var wg sync.WaitGroup
	for i := range workers {
		w := &foldWorker{in: make(chan *lineBatch, batchAhead), back: make(chan *lineBatch, batchAhead+2), out: newBatch(), folds: runFolds{o: o}, first: map[*Fold]int{}}
		workers[i] = w
		wg.Go(w.run)
	}
	faults := r.deal(workers)
	for _, w := range workers {
		w.in <- w.out
		close(w.in)
	}
	wg.Wait()
	return joinFolds(workers, faults)
}

func newBatch() *lineBatch { return &lineBatch{text: textSlab{size: batchSize}} }

// empty makes b ready to be filled again. Its text is somebody's strings.
func (b *lineBatch) empty() {
	lines := b.lines[:0]
	if cap(lines) > batchSize/64 { // many short lines
		lines = nil
	}
	clear(b.lines)
	*b = lineBatch{text: textSlab{size: batchSize}, lines: lines}
}

// deal reads the log and gives every line to the worker of its run. It returns
// the errors of lines that no worker sees.
func (r *Reader) deal(workers []*foldWorker) []lineFault {
	var faults []lineFault
	seed := maphash.MakeSeed()
	var pool payloadPool
	pool.reuse = true
	give := func(line []byte, last bool) {
		run, ok := quickRunID(line)
		if !ok {
			run = slowRunID(line, &pool)
		}
		w := workers[maphash.Bytes(seed, run)%uint64(len(workers))]
		b := w.out
		b.lines = append(b.lines, batchLine{b.text.line(line), r.line, r.offset, last})
		if b.size += len(line); b.size >= batchSize {
			w.in <- b
			select {
			case w.out = <-w.back:
			default:
				w.out = newBatch()
			}
		}
	}
	for ; r.given < len(r.events); r.given++ { // left over by All
		ev := &r.events[r.given]
		give(ev.append(nil, ops(ev.Payload)), false)
	}
	if r.err != nil {
		faults = append(faults, lineFault{r.line, r.err})
		r.err = nil
	}
	for !r.ended {
		line, err := r.readLine()
		r.ended = r.ended || err == io.EOF
		switch {
		case err != nil && err != io.EOF:
			faults = append(faults, lineFault{r.line, err})
		case len(bytes.TrimSpace(line)) > 0:
			give(line, err == io.EOF)
		}
	}
	return faults
}

// quickRunID finds the run id of a line whose members are in the usual order.
// A quote inside a JSON string is always escaped, so the name it looks for is a
// member's; it is the envelope's when no other object was opened before it.
func quickRunID(line []byte) ([]byte, bool) {
	const name = `"runId":"`
	head := line[:min(len(line), 512)]
	i := bytes.Index(head, []byte(name))
	if i < 1 || bytes.IndexByte(head[1:i], '{') >= 0 {
		return nil, false
	}
	rest := head[i+len(name):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 || bytes.IndexByte(rest[:end], '\\') >= 0 {
		return nil, false
	}
	return rest[:end], true
}

// slowRunID reads the line. One that cannot be read belongs to no run; any
// worker may report it.
func slowRunID(line []byte, pool *payloadPool) []byte {
	var ev Event
	if parseEvent(string(line), &ev, pool) != nil {
		return nil
	}
	return []byte(ev.RunID)
}

// run folds what is dealt to the worker until there is no more.
func (w *foldWorker) run() {
	pool := payloadPool{reuse: true}
	var ev Event
	for b := range w.in {
		for _, l := range b.lines {
			ev = Event{}
			if err := parseEvent(l.text, &ev, &pool); err != nil {
				r := Reader{line: l.line, offset: l.offset}
				w.errs = append(w.errs, lineFault{l.line, r.lineError(lineError(l.text, err), []byte(l.text), l.last)})
				continue
			}
			runs := len(w.folds.order)
			w.folds.add(&ev, l.text)
			if len(w.folds.order) > runs {
				w.first[w.folds.order[runs]] = l.line
			}
		}
		b.empty()
		select {
		case w.back <- b:
		default:
		}
	}
}

// joinFolds puts together what the workers have, as one worker would have it.
func joinFolds(workers []*foldWorker, faults []lineFault) ([]*RunSnapshot, error) {
	type run struct {
		line     int
		snapshot *RunSnapshot
	}
	var runs []run
	for _, w := range workers {
		faults = append(faults, w.errs...)
		snapshots, _ := w.folds.result()
		for i, f := range w.folds.order {
			runs = append(runs, run{w.first[f], snapshots[i]})
		}
	}
	slices.SortStableFunc(runs, func(a, b run) int {
		return cmp.Or(cmp.Compare(a.line, b.line), strings.Compare(a.snapshot.RunID, b.snapshot.RunID))
	})
	slices.SortStableFunc(faults, func(a, b lineFault) int { return cmp.Compare(a.line, b.line) })
	all := runFolds{}
	for _, fault := range faults {
		all.fail(fault.err)
	}
	_, err := all.result()
	snapshots := make([]*RunSnapshot, len(runs))
	for i := range runs {
		snapshots[i] = runs[i].snapshot
	}
	return snapshots, errors.Join(err)
}
