package agentevents

import (
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// FoldOptions configure a [Fold]. The zero FoldOptions are usable.
type FoldOptions struct {
	// Lifecycle is the table that transitions are judged by; default
	// [LifecycleStrict]. It decides about violations only: the state follows the log.
	Lifecycle Lifecycle
	// KeepCalls is how many closed tool calls the snapshot keeps, the latest
	// ones; all are counted in Tools. 0 means 64, negative means none.
	KeepCalls int
	// MaxViolations is how many violations the snapshot keeps, the first ones;
	// all are counted. 0 means 256, negative means none.
	MaxViolations int
	// OnViolation is told every violation, while the event that is the cause
	// is applied. Nil leaves them to the snapshot.
	OnViolation func(*RuleError)
	// Host is what the host owns and a log cannot say.
	Host HostState
	// Workers is how many goroutines FoldReader folds the runs of a log on; 0
	// and 1 mean the caller's alone. They have ended when it returns. With more,
	// OnViolation is called by several at a time.
	Workers int
}

// HostState is state that the host of a run knows better than its log: the
// initial state, state written without a patch, outputs put together by the
// host. Where a key is given it wins over the fold.
type HostState struct {
	State   map[string]JSON // by top-level key
	Outputs map[string]JSON // by node id
}

const (
	defaultKeepCalls     = 64
	defaultMaxViolations = 256
	recentEvents         = 64
	maxReadErrors        = 100
)

// A Fold turns the events of one run into a [RunSnapshot], always the same
// one: it is a function of its inputs, without clock, goroutine or disk. It
// shares the rules with the emitter, but refuses nothing: violations are data
// in the snapshot.
//
// A Fold is not for concurrent use.
type Fold struct {
	opts  FoldOptions
	m     *machine
	s     *RunSnapshot        // what m knows too is brought up to date by Snapshot
	calls []*ToolCallSnapshot // open, in call order
	sound bool                // the event was checked when it was read
	line  []byte
	times jsonwire.TimeCache
	tools map[string]tool // the snapshot's, with their names
	texts *foldTexts

	closed  []*ToolCallSnapshot // the latest ones; a ring once it is full
	oldest  int                 // where the ring begins
	dropped int                 // closed calls that are not in closed
	free    []*ToolCallSnapshot // to be used again
	chunk   []ToolCallSnapshot  // to be used first

	agents []AgentSnapshot // to be used for the next agents
	stats  []ToolStats     // to be used for the next tools

	recent, deltas window // fingerprints of events

	idle  *machine // of another run, to be used again
	slept bool     // see sleep
}

// NewFold returns a fold of no events. The run is that of the first event.
func NewFold(o FoldOptions) *Fold {
	return &Fold{opts: o, texts: &foldTexts{}}
}

// ResumeFold returns a fold that goes on where a snapshot ends: folding the
// rest of the log gives what folding the whole would. It keeps no part of the
// snapshot.
func ResumeFold(snapshot *RunSnapshot, o FoldOptions) (*Fold, error) {
	if snapshot == nil {
		return nil, errors.New("agentevents: ResumeFold needs a snapshot")
	}
	f := NewFold(o)
	if snapshot.RunID == "" && snapshot.NextSequence == 0 {
		return f, nil // a snapshot of nothing
	}
	f.s = snapshot.clone()
	if f.s.TerminalKind == "" {
		f.s.CompletedAt = time.Time{} // derived by Snapshot; the run may go on
	}
	f.wake()
	return f, nil
}

// wake makes the fold's working state from its snapshot.
func (f *Fold) wake() {
	f.m = f.s.machine(f.opts.Lifecycle)
	f.m.fold, f.m.texts = true, f.texts
	f.s.fill()
	f.tools = make(map[string]tool, len(f.s.Tools))
	for key, a := range f.m.agents {
		a.rec = f.s.Agents[key]
		a.text, a.reasoning = []byte(a.rec.Text), []byte(a.rec.Reasoning)
	}
	for id, t := range f.s.Tools {
		f.tools[id] = tool{id, t}
	}
	extra := max(0, len(f.s.ClosedCalls)-f.keepCalls()) // kept under another limit
	f.calls, f.closed, f.dropped = f.s.OpenCalls, f.s.ClosedCalls[extra:], f.s.DroppedCalls+extra
	f.recent, f.deltas = window(f.s.Recent), window(f.s.RecentDeltas)
}

// sleep lets go of everything but the snapshot, from which wake makes it again.
// It is for a run that has ended, one of many in a log. The fold it returns has
// the memory to be used for another run.
func (f *Fold) sleep() Fold {
	f.sync(true)
	s := f.s
	s.OpenCalls, s.ClosedCalls = ownCalls(s.OpenCalls, s.ClosedCalls)
	s.Recent, s.RecentDeltas = slices.Clone(s.Recent), slices.Clone(s.RecentDeltas)
	f.m.reuse()
	f.texts.agents = len(s.Agents)

	free := append(append(f.free, f.calls...), f.closed...)
	if len(free) > maxFreeCalls {
		free = nil
	}
	for _, c := range free {
		*c = ToolCallSnapshot{}
	}
	spare := Fold{
		opts: f.opts, texts: f.texts, idle: f.m, tools: emptied(f.tools), free: free, chunk: f.chunk, stats: f.stats, line: small(f.line),
		recent: f.recent[:0], deltas: f.deltas[:0], times: f.times,
	}
	if len(free) > 0 {
		clear(f.closed)
		spare.closed, spare.calls = f.closed[:0], f.calls[:0]
	}
	*f = Fold{opts: f.opts, s: s, texts: f.texts, slept: true}
	return spare
}

// maxFreeCalls bounds the records of calls that are kept for the next run.
const maxFreeCalls = 256

// ownCalls copies calls into memory of their own, so that what they were
// written in can be used again.
func ownCalls(open, closed []*ToolCallSnapshot) (_, _ []*ToolCallSnapshot) {
	n := len(open) + len(closed)
	if n == 0 {
		return nil, nil
	}
	size := 0
	records, list := make([]ToolCallSnapshot, n), make([]*ToolCallSnapshot, n)
	for i := range records {
		c := &records[i]
		if i < len(open) {
			*c = *open[i]
		} else {
			*c = *closed[i-len(open)]
		}
		list[i] = c
		size += len(c.CallID) + len(c.EventID) + len(c.RetryOf) + len(c.Error)
	}
	var b strings.Builder
	b.Grow(size)
	for i := range records {
		c := &records[i]
		for _, text := range [...]*string{&c.CallID, &c.EventID, &c.RetryOf, &c.Error} {
			start := b.Len()
			b.WriteString(*text)
			*text = b.String()[start:]
		}
	}
	return list[:len(open):len(open)], list[len(open):]
}

// begin starts the fold of a run, unless it has begun.
func (f *Fold) begin(runID string) {
	if f.m != nil {
		return
	}
	if f.s != nil {
		f.wake()
		return
	}
	if f.m, f.idle = f.idle, nil; f.m == nil {
		f.m = newMachine(f.opts.Lifecycle, "")
		f.m.fold, f.m.texts = true, f.texts
		f.tools = map[string]tool{}
	}
	f.m.runID = f.m.own(runID)
	f.s = &RunSnapshot{SchemaVersion: SchemaVersion, RunID: f.m.runID}
	f.s.fill()
}

// Apply adds one event. An event that the fold has seen (same sequence) changes
// nothing; another event with the same sequence is reported, and the first one
// wins. Illegal events are reported and then count as what they say.
func (f *Fold) Apply(ev Event) {
	p := ops(ev.Payload)
	if p == nil {
		f.begin(ev.RunID)
		err := sealError(ev.Payload)
		err.RunID, err.AgentID, err.EventID, err.Sequence = ev.RunID, ev.AgentID, ev.ID, ev.Sequence
		f.violation(err)
		return
	}
	f.line = ev.appendWith(f.line[:0], p, &f.times, "")
	f.add(&ev, jsonwire.Hash(f.line), false)
}

// add is Apply for an event whose payload is one of this package's and whose
// line has that hash. sound says that its texts were checked when it was read.
// It keeps no part of the event.
func (f *Fold) add(ev *Event, hash uint64, sound bool) {
	f.begin(ev.RunID)
	f.sound = sound
	if ev.RunID != f.m.runID {
		f.violation(f.m.refuse(ev, RuleRun, quote("run", f.m.runID), "", "the event says run "+quoteID(ev.RunID)))
		return
	}
	// 53 bits survive readers of JSON that know only floats.
	fp := Fingerprint{Sequence: ev.Sequence, Hash: hash >> 11}
	var ab about
	f.m.look(&ab, ev, ops(ev.Payload))
	if ev.Sequence < f.m.next {
		f.repeated(ev, &ab, fp)
		return
	}
	f.remember(&ab, fp)

	if err := f.m.check(ev, &ab, sound); err != nil {
		f.violation(err)
	}
	if err := f.m.checkMessage(ev); err != nil {
		f.violation(err)
	}
	known := f.m.knows(ev)
	f.finishTexts(ev, &ab)
	a := f.m.apply(ev, &ab)
	var rec *AgentSnapshot
	if a != nil {
		rec = f.record(a, &ab)
	}
	if !ab.kind.Droppable {
		if f.s.StartedAt.IsZero() {
			f.s.StartedAt = ev.Time
		}
		f.scope(ev)
	}
	if known {
		return // a message that is there already, or was retracted
	}
	f.apply(ev, &ab, a, rec)
}

// record returns the fold's record of an agent. Agents are counted as they
// appear, by events that may not be dropped.
func (f *Fold) record(a *agentState, ab *about) *AgentSnapshot {
	if a.rec == nil {
		if len(f.agents) == 0 {
			// The runs of a log are alike: one piece for as many as the last one had.
			n := 1
			if len(f.s.Agents) == 0 {
				n = min(max(n, f.texts.agents), 8)
			}
			f.agents = make([]AgentSnapshot, n)
		}
		a.rec, f.agents = &f.agents[0], f.agents[1:]
		a.rec.AgentID, a.rec.Order = a.key, -1
		a.rec.fill()
		f.s.Agents[a.key] = a.rec
	}
	if a.rec.Order < 0 && !ab.kind.Droppable {
		order := 0
		for _, other := range f.s.Agents {
			if other.Order >= 0 {
				order++
			}
		}
		a.rec.Order = order
	}
	return a.rec
}

// remember keeps the fingerprint of an event. Those of droppable events have a
// list of their own, which ends with the agents' work, so that leaving them out
// leaves the snapshot of a finished run as it is.
func (f *Fold) remember(ab *about, fp Fingerprint) {
	if !ab.kind.Droppable {
		f.recent.add(fp)
	} else if f.m.terminal == "" && ab.agent != nil && ab.agent.open {
		f.deltas.add(fp)
	}
}

// A window is a list of fingerprints of which the last recentEvents count.
type window []Fingerprint

func (w *window) add(fp Fingerprint) {
	if len(*w) == 2*recentEvents {
		*w = (*w)[:copy(*w, w.latest())]
	}
	*w = append(*w, fp)
}

func (w window) latest() []Fingerprint { return w[max(0, len(w)-recentEvents):] }

// repeated handles an event whose sequence is not above the last one.
func (f *Fold) repeated(ev *Event, ab *about, fp Fingerprint) {
	recent := f.recent.latest()
	for _, list := range [...][]Fingerprint{recent, f.deltas.latest()} {
		for _, r := range list {
			if r.Sequence == ev.Sequence {
				if r.Hash != fp.Hash {
					f.violation(f.m.refuse(ev, RuleSequence, "sequence "+utoa(ev.Sequence), "taken", "another event has this sequence; the first one wins"))
				}
				return
			}
		}
	}
	// Not remembered: out of order, unless it may have been forgotten.
	if forgotten := len(recent) == recentEvents && ev.Sequence < recent[0].Sequence; !forgotten && !ab.kind.Droppable {
		f.violation(f.m.refuse(ev, RuleSequence, "", "", "sequence goes back from "+utoa(f.m.next-1)+"; the event is left out"))
	}
}

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }

func (f *Fold) violation(err *RuleError) {
	f.s.ViolationCount++
	if f.opts.OnViolation != nil {
		f.opts.OnViolation(err)
	}
	limit := f.opts.MaxViolations
	if limit == 0 {
		limit = defaultMaxViolations
	}
	if len(f.s.Violations) < limit {
		f.s.Violations = append(f.s.Violations, err.clone())
	}
}

// scope notes where the run belongs.
func (f *Fold) scope(ev *Event) {
	if f.s.SessionID == "" {
		f.s.SessionID = f.m.own(ev.SessionID)
	}
	if f.s.WorkflowID == "" {
		f.s.WorkflowID = f.m.own(ev.WorkflowID)
	}
}

// Snapshot returns the state after the events applied so far. It may be called
// at any time and is the caller's.
func (f *Fold) Snapshot() *RunSnapshot {
	if f.s == nil {
		s := &RunSnapshot{SchemaVersion: SchemaVersion, Status: RunStatusPending}
		s.fill()
		return s.clone()
	}
	f.sync(false)
	return f.finished(f.s.clone())
}

// finished derives what the snapshot s says about the whole.
func (f *Fold) finished(s *RunSnapshot) *RunSnapshot {
	s.fill()
	s.Status = s.status()
	if s.CompletedAt.IsZero() && s.Status.Terminal() {
		for _, a := range s.Agents {
			if a.EndedAt.After(s.CompletedAt) {
				s.CompletedAt = a.EndedAt
			}
		}
	}
	s.countUsage()
	for k, v := range f.opts.Host.State {
		s.State[k] = own(v)
	}
	for k, v := range f.opts.Host.Outputs {
		s.Outputs[k] = own(v)
	}
	return s
}

// sync copies the machine's state into the snapshot. last says that the fold
// does not go on with it.
func (f *Fold) sync(last bool) {
	m, s := f.m, f.s
	if m == nil {
		return // it sleeps
	}
	if f.oldest > 0 { // straighten the ring
		slices.Reverse(f.closed[:f.oldest])
		slices.Reverse(f.closed[f.oldest:])
		slices.Reverse(f.closed)
		f.oldest = 0
	}
	s.NextSequence, s.Opened, s.Begun, s.TerminalKind = m.next, m.opened, m.begun, m.terminal
	s.OpenCalls = f.calls
	s.ClosedCalls, s.DroppedCalls = f.closed, f.dropped
	s.Recent, s.RecentDeltas = f.recent.latest(), f.deltas.latest()
	for _, a := range m.agents {
		rec := a.rec
		if rec == nil {
			continue
		}
		rec.Status, rec.Step, rec.StepBack, rec.StepAhead, rec.FirstStep, rec.NewStep = a.status, a.step, a.back, a.ahead, a.base, a.renew
		rec.Started, rec.Open, rec.Ended, rec.Restart = a.started, a.open, a.ended, a.restart
		rec.Attempts, rec.SharesByGroup = a.attempt, a.group
		rec.Counted = a.totals()
		rec.Blocks = slices.Grow(rec.Blocks[:0], len(a.blocks))
		for i := range a.blocks {
			b := &a.blocks[i]
			rec.Blocks = append(rec.Blocks, BlockSnapshot{Subject: b.subject, ID: b.id, Next: b.next, Size: b.size, Whole: b.whole, Text: string(b.text)})
		}
		text, reasoning := a.text, a.reasoning
		if rec.TextOpen {
			text = a.latest("text")
		}
		if rec.ReasoningOpen {
			reasoning = a.latest("reasoning")
		}
		for _, t := range [...]struct {
			to   *string
			from []byte
		}{{&rec.Text, text}, {&rec.Reasoning, reasoning}} {
			switch {
			case *t.to == string(t.from):
			case last:
				*t.to = m.slab.line(t.from)
			default: // replaced again and again: not in memory with others
				*t.to = string(t.from)
			}
		}
	}
}

// machine makes the rules' state from a snapshot.
func (r *RunSnapshot) machine(l Lifecycle) *machine {
	m := newMachine(l, r.RunID)
	m.next, m.opened, m.begun, m.terminal = r.NextSequence, r.Opened, r.Begun, r.TerminalKind
	for key, rec := range r.Agents {
		a := &agentState{
			key: key, firm: rec.Order >= 0, started: rec.Started, open: rec.Open, ended: rec.Ended, restart: rec.Restart, status: rec.Status,
			step: rec.Step, back: rec.StepBack, ahead: rec.StepAhead, base: rec.FirstStep, renew: rec.NewStep, attempt: rec.Attempts, counted: rec.Counted, group: rec.SharesByGroup,
		}
		a.counted.Steps = 0
		for _, b := range rec.Blocks {
			a.blocks = append(a.blocks, blockState{subject: b.Subject, id: b.ID, next: b.Next, size: b.Size, whole: b.Whole, text: []byte(b.Text)})
		}
		m.agents[key] = a
	}
	for _, c := range r.OpenCalls {
		m.calls.add(callKey{c.AgentID, c.CallID}, c.EventID)
	}
	for _, list := range [...][]ConversationMessage{r.Messages, r.RetractedMessages} {
		for i := range list {
			m.remember(&list[i])
		}
	}
	for i := range r.Phases {
		if r.Phases[i].Open {
			m.openPhase(r.Phases[i].WorkflowID, r.Phases[i].Phase, 1)
		}
	}
	for i := range r.Approvals {
		if r.Approvals[i].Open {
			if m.approvals == nil {
				m.approvals = map[string]struct{}{}
			}
			m.approvals[r.Approvals[i].ApprovalID] = struct{}{}
		}
	}
	for i := range r.Handoffs {
		if h := &r.Handoffs[i]; h.Open {
			if m.handoffs == nil {
				m.handoffs = map[string]int{}
			}
			m.handoffs[handoffKey(h.HandoffID, AgentRef{AgentID: h.From}, AgentRef{AgentID: h.To})]++
		}
	}
	return m
}

// status derives the run's status; see [RunStatus].
func (r *RunSnapshot) status() RunStatus {
	switch r.TerminalKind {
	case KindRunCompleted:
		return RunStatusCompleted
	case KindRunFailed:
		return RunStatusFailed
	case KindRunCancelled:
		return RunStatusCancelled
	}
	switch {
	case r.Paused:
		return RunStatusPaused
	case r.Cancelling:
		return RunStatusCancelling
	case !r.Begun:
		return RunStatusPending
	}
	waiting := map[string]bool{}
	for i := range r.Approvals {
		if r.Approvals[i].Open {
			waiting[r.Approvals[i].AgentID] = true
		}
	}
	for i := range r.Clarifications {
		if r.Clarifications[i].Open {
			waiting[r.Clarifications[i].AgentID] = true
		}
	}
	started, open, working, failed := 0, 0, 0, 0
	for _, a := range r.Agents {
		if !a.Started {
			continue
		}
		started++
		switch {
		case a.Open:
			open++
			if a.Status != StatusBlockedOnClarification && !waiting[a.AgentID] {
				working++
			}
		case a.Ended && (a.Outcome == OutcomeAborted || a.Status == StatusFailed || a.Error.OK):
			failed++
		}
	}
	switch {
	case len(waiting) > 0 && working == 0:
		return RunStatusWaiting
	case r.Opened || started == 0 || open > 0:
		return RunStatusRunning
	case failed > 0:
		return RunStatusFailed
	}
	return RunStatusCompleted
}

// FoldAll folds a log of any number of runs and returns their snapshots in the
// order in which the runs appear. Events go to the fold of their run. Errors
// of the sequence (lines that could not be read) do not stop it: they come
// back joined, at most 100 of them.
//
// For a log that is read from a file, [FoldReader] does the same in less time.
func FoldAll(events iter.Seq2[Event, error], o FoldOptions) ([]*RunSnapshot, error) {
	folds := runFolds{o: o}
	for ev, err := range events {
		if err != nil {
			folds.fail(err)
		} else {
			f := folds.of(ev.RunID)
			f.Apply(ev)
			folds.note(f)
		}
	}
	return folds.result()
}

// FoldReader is FoldAll of what r reads. It makes no event of a line of a
// native log and keeps no line alive: it takes a fraction of the time, and the
// memory of what the snapshots show.
//
// A repeated event is told by the text of its line, and [Fold.Apply] tells it
// by the text [Event.AppendJSON] gives it. They agree on lines that AppendJSON
// wrote; an event delivered again in another spelling is a broken sequence
// here and a duplicate there. The hashes in [RunSnapshot.Recent] differ alike.
func FoldReader(r *Reader, o FoldOptions) ([]*RunSnapshot, error) {
	if _, native := r.dec.(*nativeDecoder); !native {
		return FoldAll(r.All(), o)
	}
	if o.Workers > 1 {
		return foldParallel(r, o)
	}
	folds := runFolds{o: o}
	r.each(func(ev *Event, line string) { folds.add(ev, line) }, folds.fail)
	return folds.result()
}

// runFolds are the folds of a log of many runs.
type runFolds struct {
	o     FoldOptions
	runs  map[string]*Fold
	order []*Fold
	last  *Fold // of the event before
	chunk []Fold
	texts foldTexts
	ended []*Fold // that do not sleep yet
	idle  []Fold  // memory of those that do
	errs  []error
	more  int
}

// Ended runs are put to sleep when a new one begins: what comes after the end,
// such as session.completed, has mostly come by then. No more than these wait
// for that, and no more memory than theirs is kept for it.
const maxEnded = 8

// add gives an event and its line to the fold of its run.
func (r *runFolds) add(ev *Event, line string) {
	f := r.of(ev.RunID)
	f.add(ev, jsonwire.Hash(line), true)
	r.note(f)
}

// note notes the end of a run. A fold that has slept does not sleep again, so
// that many late events do not make it again and again.
func (r *runFolds) note(f *Fold) {
	if f.m.terminal == "" || f.slept {
		return
	}
	f.slept = true
	r.ended = append(r.ended, f)
	if len(r.ended) > maxEnded {
		r.sleep()
	}
}

// sleep puts the run to sleep that has ended first.
func (r *runFolds) sleep() {
	f := r.ended[0]
	r.ended = slices.Delete(r.ended, 0, 1)
	if idle := f.sleep(); len(r.idle) < maxEnded {
		r.idle = append(r.idle, idle)
	}
}

// of returns the fold of a run.
func (r *runFolds) of(runID string) *Fold {
	if r.last != nil && r.last.s.RunID == runID {
		return r.last
	}
	f := r.runs[runID]
	if f == nil {
		if len(r.ended) > 0 {
			r.sleep()
		}
		if len(r.chunk) == 0 {
			r.chunk = make([]Fold, min(max(1, len(r.order)), 16))
		}
		f, r.chunk = &r.chunk[0], r.chunk[1:]
		if n := len(r.idle); n > 0 {
			*f, r.idle[n-1] = r.idle[n-1], Fold{}
			r.idle = r.idle[:n-1]
		} else {
			*f = Fold{opts: r.o, texts: &r.texts}
		}
		f.begin(runID)
		if r.runs == nil {
			r.runs = map[string]*Fold{}
		}
		r.runs[f.s.RunID] = f
		r.order = append(r.order, f)
	}
	r.last = f
	return f
}

func (r *runFolds) fail(err error) {
	if len(r.errs) < maxReadErrors {
		r.errs = append(r.errs, err)
	} else {
		r.more++
	}
}

func (r *runFolds) result() ([]*RunSnapshot, error) {
	errs := r.errs
	if r.more > 0 {
		errs = append(errs, errors.New("agentevents: "+itoa(r.more)+" more errors"))
	}
	snapshots := make([]*RunSnapshot, len(r.order))
	for i, f := range r.order {
		// The folds are done with, so their state need not be copied.
		f.sync(true)
		snapshots[i] = f.finished(f.s)
	}
	return snapshots, errors.Join(errs...)
}

// foldTexts are texts and memory for texts that the folds of a log share.
type foldTexts struct {
	words  map[string]string // short texts that come again and again
	slab   textSlab          // of the words
	refs   []AgentRef        // those that come again and again
	agents int               // how many the last run that ended had
	spare  [][]byte          // memory of blocks, to be used again
	size   int               // of spare, in bytes
}

const (
	maxWords     = 512
	maxWord      = 64 // bytes
	maxRefs      = 16
	maxSpare     = 64 << 10  // bytes of one text
	maxSpareSize = 256 << 10 // bytes of all
)

// word returns s for keeping, the same text for all who ask for the same. When
// there are too many words it copies the others.
func (t *foldTexts) word(s string) string {
	if s == "" {
		return ""
	}
	if len(s) > maxWord {
		return strings.Clone(s)
	}
	w, ok := t.words[s]
	if ok {
		return w
	}
	if len(t.words) == maxWords {
		return strings.Clone(s)
	}
	if t.words == nil {
		t.words, t.slab.size = map[string]string{}, 2<<10
	}
	w = t.slab.clone(s)
	t.words[w] = w
	return w
}

// buffer returns memory for the text of a block.
func (t *foldTexts) buffer() []byte {
	n := len(t.spare)
	if n == 0 {
		return make([]byte, 0, 512)
	}
	b := t.spare[n-1]
	t.spare = t.spare[:n-1]
	t.size -= cap(b)
	return b
}

// release takes memory back.
func (t *foldTexts) release(b []byte) {
	if n := cap(b); n > 0 && n <= maxSpare && t.size+n <= maxSpareSize {
		t.spare = append(t.spare, b[:0])
		t.size += n
	}
}
