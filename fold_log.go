package agentevents

import (
	"bytes"
	"cmp"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/chain"
	"github.com/agentevents/agentevents/internal/deal"
	"github.com/agentevents/agentevents/internal/firsterrs"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/lines"
	"github.com/agentevents/agentevents/internal/pack"
	"github.com/agentevents/agentevents/internal/reuse"
	"github.com/agentevents/agentevents/internal/sessions"
)

// A FoldSet folds a log of any number of runs. Each event goes to the fold of its
// run. The zero FoldSet is one with the zero options. A FoldSet must not be used
// concurrently.
//
// A session.completed ends every run of its session that has begun and that nothing else has
// ended: SessionEndedAt and SessionStatus of its snapshot come from that event. No agent, turn
// or session has started in the run since.
//
// A run that has ended takes little memory: its snapshot is kept in a packed form.
type FoldSet struct {
	opts   FoldOptions
	runs   map[string]*logRun
	order  []*logRun // in the order in which the runs appear
	last   *logRun   // the run of the previous event
	pieces reuse.Arena[logRun]
	words  words
	ended  []*logRun // ended runs that still have a fold, in order of their ends
	idle   []*Fold   // folds that are free for new runs
	packer pack.Packer
	buf    []byte
	errs   firsterrs.List // of lines

	at       int // place of the event in the log, from 1: a number that rises
	sessions sessions.Ends
}

// A logRun is a run of a log. Exactly one of fold, rest and text holds its state.
type logRun struct {
	id    string
	fold  *Fold
	rest  *RunSnapshot // the snapshot of an ended run
	text  pack.Text    // the JSON of the snapshot of an ended run, when it is small
	cover *coverage    // of an ended run that misses events, while it has no fold
	due   bool         // the run is in FoldSet.ended
	wakes int          // how often it went on after it was put away
	wait  int          // number of events until it may be put away again
	line  int          // number of its first line, when workers fold
	went  int          // place of its first event, or of the last one with which it goes on
}

const (
	// maxEnded is how many ended runs keep their folds while no new run begins:
	// session.completed, audits and late events mostly come soon after the end.
	maxEnded = 8
	// maxPacked is the size of the largest snapshot that is packed as JSON, in
	// bytes. A larger snapshot takes not much more memory than its JSON.
	maxPacked = 8 << 10
	// firstWait is for how many events a run keeps its fold when it goes on the first time, and
	// maxWakes how often that doubles.
	firstWait, maxWakes = 16, 20
	// maxReadErrors is how many errors of lines FoldLog returns.
	maxReadErrors = 100
)

// NewFoldSet returns a fold without events.
func NewFoldSet(o FoldOptions) *FoldSet { return &FoldSet{opts: o} }

// FoldLog folds everything that r reads. It skips lines that cannot be read, and
// returns their errors joined, the first 100 and the number of the others, beside
// the fold. A line that a crash tore is one of them: the fold is good, and the
// error wraps [io.ErrUnexpectedEOF] (see [LineError]). Options that make no sense are an
// [*OptionError], and nothing is read.
//
// On a native log FoldLog takes a fraction of the time of [FoldSet.Apply]: it
// uses the memory of an event again for the next line.
func FoldLog(r *Reader, o FoldOptions) (*FoldSet, error) {
	l := NewFoldSet(o)
	if err := cmp.Or(o.check(), r.usable()); err != nil {
		return l, err
	}
	if _, native := r.dec.(*nativeDecoder); native && o.Workers > 1 {
		l.readParallel(r)
		return l, errors.Join(l.errs.Take("")...)
	}
	for line, err := range r.lines(true) {
		if err != nil {
			l.fail(err)
		} else {
			l.ApplyLine(line.Event, line.Text)
		}
	}
	return l, errors.Join(l.errs.Take("")...)
}

// Apply adds one event to the fold of its run. See [Fold.Apply].
func (l *FoldSet) Apply(ev Event) {
	run := l.run(ev.RunID)
	l.see(run, &ev)
	run.fold.Apply(ev)
	l.note(run)
}

// ApplyLine is Apply for an event that a [Reader] has read and its line, as [Reader.Lines] yields
// both. It takes less time, because it encodes nothing. It keeps no part of the event. An empty
// line is not known: then it is Apply.
func (l *FoldSet) ApplyLine(ev *Event, line string) {
	if line == "" || ops(ev.Payload) == nil {
		l.Apply(*ev)
		return
	}
	l.add(ev, line)
}

// add applies an event that was read from a line. line is the line as AppendJSON
// writes it.
func (l *FoldSet) add(ev *Event, line string) {
	run := l.run(ev.RunID)
	l.see(run, ev)
	run.fold.add(ev, jsonwire.Hash(line), true)
	l.note(run)
}

// see notes where a run goes on and where its session ends, before its fold has the event. An
// event that may come again says neither.
func (l *FoldSet) see(run *logRun, ev *Event) {
	l.at++
	if run.went == 0 {
		run.went = l.at
	}
	if ev.Sequence < run.fold.m.NextSequence {
		return
	}
	switch p := ev.Payload.(type) {
	case *AgentStarted, *TurnStarted, *SessionStarted:
		run.went = l.at
	case *SessionCompleted:
		l.sessions.Add(ev.SessionID, sessions.End{At: l.at, Time: ev.Time, Status: p.Status})
	}
}

// finish finishes the snapshot of a run that went on at a place in the log. What ends its
// session afterwards ends the run, if nothing else does.
func (l *FoldSet) finish(s *RunSnapshot, went int) *RunSnapshot {
	s = l.opts.finish(s)
	if s.Resume.opened || s.Status.Terminal() {
		return s
	}
	end, ended := l.sessions.After(s.SessionID, went)
	if !ended {
		return s
	}
	s.SessionEndedAt, s.SessionStatus = end.Time, end.Status
	return l.opts.finish(s)
}

// Snapshot returns the snapshot of a run, or nil when the log has no event of the
// run. The snapshot belongs to the caller.
func (l *FoldSet) Snapshot(runID string) *RunSnapshot {
	run := l.runs[runID]
	switch {
	case run == nil:
		return nil
	case run.fold != nil:
		return l.finish(run.fold.Snapshot(), run.went)
	case run.rest != nil:
		return l.finish(run.rest.clone(), run.went)
	}
	return l.finish(l.unpack(run), run.went)
}

// Drain yields the snapshot of every run in the order in which the runs appear,
// and forgets each run that it yields. It makes a snapshot when the loop asks for
// it, so the snapshots of many runs need not be in memory at the same time. A
// loop that stops early leaves the other runs.
func (l *FoldSet) Drain() iter.Seq[*RunSnapshot] {
	return func(yield func(*RunSnapshot) bool) {
		for len(l.order) > 0 {
			run := l.order[0]
			l.order[0], l.order = nil, l.order[1:]
			delete(l.runs, run.id)
			l.last = nil
			l.ended = slices.DeleteFunc(l.ended, func(other *logRun) bool { return other == run })
			s := run.rest
			switch {
			case run.fold != nil:
				s = run.fold.detach()
			case s == nil:
				s = l.unpack(run)
			}
			went := run.went
			*run = logRun{}
			if !yield(l.finish(s, went)) {
				return
			}
		}
	}
}

// unpack returns the snapshot of a packed run.
func (l *FoldSet) unpack(r *logRun) *RunSnapshot {
	s := &RunSnapshot{}
	l.buf = r.text.Append(l.buf[:0])
	if err := s.UnmarshalJSON(l.buf); err != nil {
		panic("agentevents: a packed snapshot is damaged: " + err.Error()) // impossible: putAway wrote it
	}
	return s
}

// run returns the run with that id, with a fold.
func (l *FoldSet) run(id string) *logRun {
	if l.last != nil && l.last.id == id && l.last.fold != nil {
		return l.last
	}
	run := l.runs[id]
	switch {
	case run == nil:
		if len(l.ended) > 0 {
			l.putAwayFirst() // its fold serves the new run
		}
		run = l.pieces.Get()
		run.fold = l.newFold()
		run.fold.begin(id)
		run.id = run.fold.m.RunID
		put(&l.runs, run.id, run)
		l.order = append(l.order, run)
	case run.fold == nil:
		s := run.rest
		if s == nil {
			s = l.unpack(run)
		}
		run.fold, run.rest, run.text = l.newFold(), nil, pack.Text{}
		run.wakes++
		run.wait = firstWait << min(run.wakes-1, maxWakes)
		run.fold.wake(s)
		if run.cover != nil {
			run.fold.cover, run.cover = *run.cover, nil
		}
	}
	l.last = run
	return run
}

func (l *FoldSet) newFold() *Fold {
	if n := len(l.idle); n > 0 {
		f := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return f
	}
	return newFold(l.opts, &l.words)
}

// note queues a run that has ended for putAway. A run that goes on after it was put away keeps
// its fold for some events, and each time for twice as many: to unpack and pack it costs more
// than an event. A log that is read twice has all events of each run again.
func (l *FoldSet) note(run *logRun) {
	if run.wait > 0 {
		run.wait--
	}
	if run.fold.m.TerminalKind == "" || run.due || run.wait > 0 {
		return
	}
	run.due = true
	l.ended = append(l.ended, run)
	if len(l.ended) > maxEnded {
		l.putAwayFirst()
	}
}

func (l *FoldSet) putAwayFirst() {
	l.putAway(l.ended[0])
	l.ended = slices.Delete(l.ended, 0, 1)
}

// putAway reduces an ended run to its snapshot and frees its fold for another run.
func (l *FoldSet) putAway(run *logRun) {
	f := run.fold
	run.fold, run.due = nil, false
	if f.cover.Missing > 0 || f.cover.Unproven > 0 {
		c := f.cover
		run.cover = &c
	}
	recent, deltas := f.m.Resume.recent, f.m.Resume.recentDeltas
	if run.text = l.pack(f); run.text.IsZero() {
		s := f.detach()
		s.OpenCalls, s.ClosedCalls = ownCalls(s.OpenCalls, s.ClosedCalls)
		s.Resume.recent, s.Resume.recentDeltas = slices.Clone(s.Resume.recent), slices.Clone(s.Resume.recentDeltas)
		run.rest = s
	}
	l.words.recent.Put(recent)
	l.words.recent.Put(deltas)
	f.reset(run.rest == nil)
	if len(l.idle) < maxEnded {
		l.idle = append(l.idle, f)
	}
}

// pack returns the JSON of a run that shows little.
func (l *FoldSet) pack(f *Fold) (none pack.Text) {
	if !f.v.showsLittle() {
		return none
	}
	l.buf = f.v.sync(&f.m).appendJSON(l.buf[:0])
	if len(l.buf) > maxPacked {
		return none
	}
	return l.packer.Pack(l.buf)
}

// fail keeps the error of a line.
func (l *FoldSet) fail(err error) { l.errs.Add(maxReadErrors, err) }

// Folding on several cores. The caller's goroutine reads the lines and deals them
// to workers, which parse and fold them. One worker gets all lines of a run, so
// they stay in order.

// A foldWorker folds the runs that are dealt to it.
type foldWorker struct {
	fold *FoldSet
	pool payloadPool
	ev   Event
	errs []lineFault
}

type lineFault struct {
	line int
	err  error
}

// A dealtLine says where a line was that is dealt to a worker.
type dealtLine struct {
	lines.Pos
	last bool // without a newline
}

// readParallel folds on workers. l is empty.
func (l *FoldSet) readParallel(r *Reader) {
	workers := make([]*foldWorker, l.opts.Workers)
	work := make([]func(string, dealtLine), len(workers))
	for i := range workers {
		workers[i] = &foldWorker{fold: NewFoldSet(l.opts), pool: payloadPool{reuse: true, brief: true}}
		work[i] = workers[i].line
	}
	d := deal.New(work...)
	faults := r.deal(d)
	d.Wait()
	for _, w := range workers {
		faults = append(faults, w.errs...)
		l.sessions.Merge(&w.fold.sessions)
		l.order = append(l.order, w.fold.order...)
		for id, run := range w.fold.runs {
			put(&l.runs, id, run)
		}
	}
	slices.SortStableFunc(l.order, func(a, b *logRun) int {
		return cmp.Or(cmp.Compare(a.line, b.line), strings.Compare(a.id, b.id))
	})
	slices.SortStableFunc(faults, func(a, b lineFault) int { return cmp.Compare(a.line, b.line) })
	for _, fault := range faults {
		l.fail(fault.err)
	}
}

// deal reads the log and gives every line to the worker of its run. It returns
// the errors of lines that no worker sees.
func (r *Reader) deal(d *deal.Dealer[dealtLine]) []lineFault {
	var faults []lineFault
	pool := payloadPool{reuse: true, brief: true}
	give := func(line []byte, last bool) {
		run, ok := quickRunID(line)
		if !ok || bytes.Contains(line[1:], []byte(`{"id":"`)) { // perhaps that of another event: see fused
			run = slowRunID(line, &pool)
		}
		d.Deal(run, line, dealtLine{r.in.Pos(), last})
	}
	fail := func(err error) { faults = append(faults, lineFault{r.Line(), err}) }
	for { // up to the line that shows that the input is a log
		for ; r.given < len(r.events); r.given++ {
			ev := &r.events[r.given]
			give(ev.append(nil, ops(ev.Payload)), false)
		}
		for err := r.nextErr(); err != nil; err = r.nextErr() {
			fail(err)
		}
		if r.isLog || r.done {
			break
		}
		r.decode(r.next())
	}
	for !r.done && !r.in.Ended() {
		line, err := r.next()
		if err != nil {
			fail(err)
		} else if line != nil {
			give(chain.Strip(line), r.in.Ended())
		}
	}
	r.done = true
	return faults
}

// quickRunID finds the run id of a line whose members are in the usual order. It
// looks for the member's name. A quote inside a JSON string is always escaped, so
// what it finds is the name of a member; and that is a member of the envelope if
// no other object begins before it.
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

// slowRunID finds the run id by reading the line. A line that cannot be read
// belongs to no run; any worker may report it.
func slowRunID(line []byte, pool *payloadPool) []byte {
	var ev Event
	if text := string(line); parseEvent(text, &ev, pool) != nil {
		if wholeAt(text, &ev, pool) == 0 {
			return nil
		}
	}
	return []byte(ev.RunID)
}

// line folds one line.
func (w *foldWorker) line(text string, at dealtLine) {
	w.ev = Event{}
	if bad := w.pool.parse(text, &w.ev); bad != nil {
		text = strings.Clone(text) // the error keeps parts of it
		bad = w.pool.parse(text, &w.ev)
		whole, torn := fused(text, bad, &w.ev, &w.pool)
		if torn == nil {
			le, _ := lineErrorAt(at.Pos, bad, fault([]byte(text), at.last), true)
			w.errs = append(w.errs, lineFault{at.Line, le})
			return
		}
		w.errs = append(w.errs, lineFault{at.Line, placed(torn, at.Pos)})
		text = whole
	}
	runs := len(w.fold.order)
	w.fold.at = at.Line - 1
	w.fold.add(&w.ev, w.pool.canonical(text))
	if len(w.fold.order) > runs {
		w.fold.order[runs].line = at.Line
	}
}
