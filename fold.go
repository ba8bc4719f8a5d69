package agentevents

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/option"
	"github.com/agentevents/agentevents/internal/roster"
)

// FoldOptions configure a [Fold]. The zero FoldOptions are usable.
type FoldOptions struct {
	// Lifecycle is the table of legal transitions, which decides what is a violation. The default
	// is the table that the log names, and [LifecycleRelaxed] for a log that names none. The state
	// follows the log in any case. An unknown word allows no transition.
	Lifecycle Lifecycle
	// KeepCalls is how many closed tool calls the snapshot keeps: the latest
	// ones. Tools counts all. 0 means 64, negative means none.
	KeepCalls int
	// MaxViolations is how many violations the snapshot keeps: the first ones.
	// ViolationCount counts all. 0 means 256, negative means none.
	MaxViolations int
	// OnViolation is called with every violation, while its event is applied, and with the events
	// that the snapshot does not count: see Coverage.Unproven. Nil means that only the snapshot has
	// the violations.
	OnViolation func(*RuleError)
	// Tolerate reports that a violation does not count, because the document of its line does
	// not state the rule: the snapshot and OnViolation do not get it. It is called while the
	// event is applied, with Workers concurrently, and must not keep the error. Nil counts all.
	Tolerate func(*RuleError) bool
	// Host is state that the log does not have.
	Host HostState
	// Workers is the number of goroutines on which [FoldLog] folds the runs of a
	// log; 0 and 1 mean the caller's goroutine. They have ended when FoldLog
	// returns. With two or more, OnViolation is called concurrently.
	Workers int `least:"0"`
}

// HostState is state that the host of a run knows and the log does not: the initial state, state
// written without a patch, outputs that the host makes. A value given here replaces the fold's
// value.
type HostState struct {
	State   map[string]JSON // by top-level key
	Outputs map[string]JSON // by node id
}

const (
	defaultKeepCalls     = 64
	defaultMaxViolations = 256
	recentEvents         = 64
)

// A Fold turns the events of one run into a [RunSnapshot]. The same events give
// the same snapshot: a fold uses no clock, goroutine or disk. It has the rules of
// the emitter but refuses nothing: violations are data in the snapshot.
//
// A Fold comes from [NewFold] or [ResumeFold], and must not be used concurrently. [FoldLog]
// folds a log of many runs.
type Fold struct {
	opts  FoldOptions
	m     machine // works on the state in the snapshot
	v     view    // has the snapshot and keeps it up to date
	cover coverage
	begun bool
	line  []byte
	times jsonwire.TimeWriter
}

// check refuses values that make no sense.
func (o *FoldOptions) check() error {
	if o.Lifecycle != "" && !o.Lifecycle.known() {
		return option.NoConstant("FoldOptions.Lifecycle", string(o.Lifecycle))
	}
	return option.Check("FoldOptions", o)
}

// NewFold returns a fold without events. The first event decides the run.
func NewFold(o FoldOptions) *Fold { return newFold(o, &words{}) }

func newFold(o FoldOptions, w *words) *Fold {
	f := &Fold{opts: o}
	f.init(w)
	return f
}

// init makes a fold ready whose options are set.
func (f *Fold) init(w *words) {
	o := &f.opts
	f.v.words, f.v.keepCalls = w, defaultKeepCalls
	if o.KeepCalls != 0 {
		f.v.keepCalls = max(0, o.KeepCalls)
	}
}

// ResumeFold returns a fold that continues where a snapshot ends: with the rest of
// the log it gives the snapshot of the whole log. It keeps no part of the given
// snapshot. It returns an error if the snapshot is nil or has nil entries, and an
// [*OptionError] for options that make no sense.
func ResumeFold(snapshot *RunSnapshot, o FoldOptions) (*Fold, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := snapshot.complete(); err != nil {
		return nil, fmt.Errorf("agentevents: ResumeFold: %w", err)
	}
	f := NewFold(o)
	if snapshot.RunID == "" && snapshot.NextSequence == 0 {
		return f, nil // the snapshot of a fold without events
	}
	s := snapshot.clone()
	s.adopt()
	f.wake(s)
	return f, nil
}

// complete returns an error if the snapshot is nil or has nil entries, as one made
// by hand may.
func (r *RunSnapshot) complete() error {
	if r == nil {
		return errors.New("the snapshot is nil")
	}
	for id, a := range r.Agents {
		if a == nil {
			return fmt.Errorf("the snapshot of run %s: agent %s is nil", jsonwire.Brief(r.RunID), jsonwire.Brief(id))
		}
	}
	for id, t := range r.Tools {
		if t == nil {
			return fmt.Errorf("the snapshot of run %s: tool %s is nil", jsonwire.Brief(r.RunID), jsonwire.Brief(id))
		}
	}
	if slices.Contains(r.OpenCalls, nil) || slices.Contains(r.ClosedCalls, nil) || slices.Contains(r.Violations, nil) {
		return fmt.Errorf("the snapshot of run %s: a tool call or a violation is nil", jsonwire.Brief(r.RunID))
	}
	return nil
}

// begin makes f the fold of a run without events. f is empty.
func (f *Fold) begin(runID string) {
	if f.v.words == nil { // it is the zero Fold
		f.init(&words{})
	}
	f.begun = true
	f.v.s = &RunSnapshot{SchemaVersion: SchemaVersion}
	f.v.s.RunID = f.v.keep(runID)
	f.m.RunState, f.v.given, f.m.view = &f.v.s.RunState, f.opts.Lifecycle, &f.v
	f.m.Resume.recent, f.m.Resume.recentDeltas = f.v.words.recent.Get(), f.v.words.recent.Get()
}

// wake makes f the fold of a snapshot, which belongs to f from then on. f is empty.
func (f *Fold) wake(s *RunSnapshot) {
	f.begun = true
	if s.TerminalKind == "" {
		s.CompletedAt, s.Error = time.Time{}, Opt[ErrorInfo]{} // Snapshot derived them; the run may go on
	}
	f.v.s = s
	f.cover.next = s.NextSequence
	f.m.RunState, f.v.given, f.m.view = &s.RunState, f.opts.Lifecycle, &f.v
	for id, a := range s.Agents {
		a.shown, a.calls = a, 0
		a.text, a.reasoning = []byte(a.Text), []byte(a.Reasoning)
		if f.m.agents == nil {
			f.m.agents = make(map[string]*AgentState, len(s.Agents))
		}
		f.m.agents[id] = &a.AgentState
	}
	f.m.index(s)
	f.v.index()
}

// index fills the machine's indexes from a snapshot.
func (m *machine) index(s *RunSnapshot) {
	m.paused, m.cancelling, m.sessionOver, m.sessionStatus = s.Paused, s.Cancelling, !s.SessionEndedAt.IsZero(), s.sessionWord()
	m.sessionAnswered = s.SessionResult != ""
	for _, a := range m.agents {
		if a.SpanID != "" {
			put(&m.bySpan, a.SpanID, a)
		}
		for _, span := range a.Resume.spans {
			put(&m.twins, span, a)
		}
		if a.firm() {
			m.ordered++
		}
		if a.Ended {
			m.resting++
		}
	}
	for _, ref := range s.Resume.expected {
		m.expected.Add(ref.AgentID, Some(ref))
	}
	m.indexCalls(s)
	for _, list := range [...][]ConversationMessage{s.Messages, s.RetractedMessages} {
		for i := range list {
			if _, known := m.messages[list[i].MessageID]; !known {
				m.knowMessage(&list[i])
			}
		}
	}
	m.indexPhases(s)
	m.indexQuestions(s)
	if m.view == nil {
		for i := range s.Turns {
			if t := &s.Turns[i]; t.EndedAt.IsZero() {
				m.addSpan(KindTurnStarted, openSpan{agent: t.AgentID, span: t.SpanID, id: turnID(t.Turn)})
			}
		}
		for i := range s.Steps {
			if st := &s.Steps[i]; st.EndedAt.IsZero() {
				m.addSpan(KindStepStarted, openSpan{agent: st.AgentID, span: st.SpanID, id: st.StepID})
			}
		}
	}
	for i := range s.Handoffs {
		if h := &s.Handoffs[i]; h.Open {
			at := i
			if m.view == nil {
				at = roster.NoPlace
			}
			m.workflows().handoffs.Add(newHandoffKey(h.HandoffID, h.From, h.To), at)
		}
	}
}

func (m *machine) indexCalls(s *RunSnapshot) {
	for _, c := range s.OpenCalls {
		call := openCall{callKey: callKey{c.AgentID, c.CallID}, event: c.EventID, step: c.Step.V}
		if m.view != nil {
			call.shown = c
		} else {
			call.tool = c.ToolID
		}
		a := m.agents[c.AgentID]
		m.takeCall(a, call.callKey)
		m.calls.Add(call.callKey, call)
		if a != nil && call.step >= a.Resume.first {
			a.calls++
		}
	}
	for i := range s.OpenModelCalls {
		c := s.OpenModelCalls[i]
		if m.view == nil {
			c.StartedAt = time.Time{} // a handle does not know how long it took: its process has died
		}
		m.addModelCall(c)
	}
}

// indexPhases fills the indexes of workflows: their open phases, and how often they were resumed.
func (m *machine) indexPhases(s *RunSnapshot) {
	for i := range s.Checkpoints {
		if c := &s.Checkpoints[i]; c.Resumed {
			m.workflows().resumes[c.WorkflowID]++
		}
	}
	for i := range s.Phases {
		if ph := &s.Phases[i]; ph.Open {
			m.workflows().openPhase(phaseKey{ph.WorkflowID, ph.Phase})
		}
	}
	for i := range s.Phases {
		ph := &s.Phases[i]
		if m.work == nil {
			break
		}
		if p := m.work.phases[phaseKey{ph.WorkflowID, ph.Phase}]; p != nil {
			p.resumes = max(p.resumes, ph.resumes)
		}
	}
}

// indexQuestions fills the indexes of approvals and clarifications.
func (m *machine) indexQuestions(s *RunSnapshot) {
	for i := range s.Approvals {
		a := &s.Approvals[i]
		if a.Open {
			m.questions.add(questionKey{KindApprovalRequested, a.ApprovalID}, callKey{a.AgentID, a.CallID}, i)
		}
		if a.Open || a.Granted && a.UsedBy == "" {
			m.approvals.add(a.ApprovalID, &approval{
				callKey: callKey{a.AgentID, a.CallID}, tool: a.ToolID, digest: a.ArgumentsHash, stands: a.Timeout,
				asked: a.RequestedAt, granted: a.Granted, answered: a.AnsweredAt, by: a.By, feedback: a.Feedback, at: i,
			})
			if agent := m.agents[a.AgentID]; agent != nil && agent.Resume.unnamed {
				m.approvals.unnamed(a.AgentID, a.ApprovalID)
			}
		}
	}
	for i := range s.Clarifications {
		if c := &s.Clarifications[i]; c.Open {
			m.questions.add(questionKey{KindClarificationRequested, c.InterruptID}, callKey{c.AgentID, c.CallID}, i)
		}
	}
}

// machine returns a machine for an emitter, with a copy of the state that the
// rules need. l is the lifecycle of a log that names none.
func (r *RunSnapshot) machine(l Lifecycle) *machine {
	run := RunSnapshot{RunState: r.RunState, Status: r.Status}
	run.adopt()
	was := &run.Resume
	m := newMachine(&RunState{
		RunID: run.RunID, NextSequence: run.NextSequence, TerminalKind: run.TerminalKind, Lifecycle: run.Lifecycle,
		Resume: runResume{opened: was.opened, begun: was.begun, cut: was.cut, resumes: was.resumes, workflows: slices.Clone(was.workflows), finalized: was.finalized, flowEnd: was.flowEnd, early: slices.Clone(was.early)},
	})
	if m.Lifecycle == "" {
		m.goBy(l)
	}
	m.agents = make(map[string]*AgentState, len(r.Agents))
	for id, rec := range r.Agents {
		a := rec.AgentState
		a.shown, a.calls, a.end = nil, 0, rec.end()
		if a.Status == "" {
			a.Status = StatusThinking
		}
		a.Resume.blocks, a.Resume.spans = slices.Clone(a.Resume.blocks), slices.Clone(a.Resume.spans)
		for i := range a.Resume.blocks {
			a.Resume.blocks[i].text = nil
		}
		m.agents[id] = &a
	}
	m.index(r)
	return m
}

// Apply adds one event. A repeated event (same sequence, same content) changes
// nothing. Another event with a sequence that the fold has seen is a violation,
// and the first one counts. An event with a lower sequence is a violation; it is
// applied if only the last event's sequence is above it, and left out otherwise.
// Any other illegal event is a violation and is applied.
//
// A run whose first lasting event has a sequence above 0 and is not run.started has begun before
// the log. The fold does not know the openings, the statuses and the table of the missing events,
// so nothing that they may have made legal is a violation. Apply keeps no part of the event.
func (f *Fold) Apply(ev Event) {
	p := ops(ev.Payload)
	if p == nil {
		if !f.begun {
			f.begin(ev.RunID)
		}
		err := sealError(ev.Payload)
		err.RunID, err.AgentID, err.EventID, err.Sequence = ev.RunID, ev.AgentID, ev.ID, ev.Sequence
		f.violation(err)
		return
	}
	f.line = ev.appendWith(f.line[:0], p, &f.times, "")
	f.add(&ev, jsonwire.Hash(f.line), false)
}

// ApplyLine is Apply for an event that an emitter has accepted and its line, as a
// [LineSink] gets both. It takes less time, because it encodes nothing.
func (f *Fold) ApplyLine(ev Event, line string) {
	if ops(ev.Payload) == nil {
		f.Apply(ev)
		return
	}
	f.add(&ev, jsonwire.Hash(line), true)
}

// add applies an event whose payload is a struct of this package. hash is the hash of its line as
// AppendJSON writes it. sound means that the event's texts were checked when it was read. add keeps
// no part of the event.
func (f *Fold) add(ev *Event, hash uint64, sound bool) {
	if !f.begun {
		f.begin(ev.RunID)
	}
	m := &f.m
	if err := m.checkRun(ev); err != nil {
		f.violation(err)
		return
	}
	// 53 bits survive JSON readers that read every number as a float64.
	fp := fingerprint{sequence: ev.Sequence, hash: hash >> 11}
	sub := subject{sound: sound}
	m.resolve(&sub, ev, ops(ev.Payload))
	if (ev.Sequence < m.NextSequence || len(m.Resume.strays) > 0) && f.repeated(ev, &sub, fp) {
		f.cover.remove(ev.Sequence)
		return
	}
	f.cover.see(ev.Sequence, m.Resume.strays)
	if r := &m.Resume; ev.Sequence > 0 && !r.opened && len(r.recent) == 0 && len(r.strays) == 0 && (!sub.kind.Droppable || m.NextSequence == 0) {
		m.begunBefore() // also if a delta is there: a fold without it comes to the same state
	}
	f.remember(&sub, fp)

	if err := m.check(ev, &sub); err != nil {
		f.violation(err)
	}
	if err := m.checkMessageID(ev); err != nil {
		f.violation(err)
	}
	if err := m.checkApproval(ev, &sub); err != nil {
		f.violation(err)
	}
	m.apply(ev, &sub)
	if !sub.kind.Droppable {
		f.v.envelope(ev, &sub)
	}
	if !sub.again {
		f.v.showKind(ev, &sub)
	}
	m.after(ev, sub.agent)
}

// works reports whether a droppable event may change something: its agent has not ended. Some
// documents have no starts of agents.
func (m *machine) works(sub *subject) bool { return sub.key != "" && !m.atRest(sub.agent) }

// remember keeps the fingerprint of an event. Droppable events have a list of
// their own, which is emptied when no agent works any more: so the snapshot of a
// finished run is the same without them.
func (f *Fold) remember(sub *subject, fp fingerprint) {
	r := &f.m.Resume
	if !sub.kind.Droppable {
		r.recent = addRecent(r.recent, fp)
	} else if f.m.works(sub) {
		r.recentDeltas = addRecent(r.recentDeltas, fp)
	}
}

// addRecent adds a fingerprint to a list. Only the last recentEvents of the list
// count.
func addRecent(list []fingerprint, fp fingerprint) []fingerprint {
	switch len(list) {
	case 2 * recentEvents:
		list = list[:copy(list, latest(list))]
	case cap(list):
		list = slices.Grow(list, recentEvents/4+len(list)) // 16, 48, 112, …
	}
	return append(list, fp)
}

func latest(list []fingerprint) []fingerprint { return list[max(0, len(list)-recentEvents):] }

// RuleSequence: the sequence increases within the run; of two events with the same sequence the
// first one counts, and a sequence that is above the next event's, while all others are below, is
// false.
const RuleSequence Rule = "sequence"

// repeated reports whether an event is left out: it came before, or its sequence goes back without
// proof that the one before it is false. It is for events whose sequence is not above the last one,
// and for all events after a false sequence.
func (f *Fold) repeated(ev *Event, sub *subject, fp fingerprint) bool {
	m := &f.m
	recent, deltas := latest(m.Resume.recent), latest(m.Resume.recentDeltas)
	if slices.Contains(m.Resume.strays, fp) {
		return true
	}
	taken := false
	for _, list := range [...][]fingerprint{recent, deltas} {
		for _, r := range list {
			if r == fp {
				return true
			}
			taken = taken || r.sequence == fp.sequence
		}
	}
	switch {
	case ev.Sequence >= m.NextSequence:
		return false // a false sequence may belong to a later event
	case taken:
		f.violation(m.refuse(ev, RuleSequence, "sequence "+utoa(ev.Sequence), "taken", "another event has this sequence; the first one counts"))
	case f.astray(ev, sub, recent, deltas):
		f.violation(m.refuse(ev, RuleSequence, "", "", "the sequence goes back from "+utoa(m.Resume.strays[len(m.Resume.strays)-1].sequence)+", which is false: all others before it are lower; the event counts"))
		return false
	case sub.kind.Droppable && !m.works(sub):
		// It would change nothing.
	case sub.kind.Droppable || len(recent)+len(m.Resume.strays) >= recentEvents && ev.Sequence < recent[0].sequence:
		f.cover.Unproven = plus(f.cover.Unproven, 1)
		f.tell(m.refuse(ev, RuleSequence, "", "", "the sequence goes back further than a fold remembers; the event is left out, whether it is a repeated one or another"))
	default:
		f.violation(m.refuse(ev, RuleSequence, "", "", "the sequence goes back; legal: "+utoa(m.NextSequence)+" or higher; the event is left out"))
	}
	return true
}

// astray reports whether the sequence of the last event is false, because ev is below it
// and above all others. Then it remembers the last event apart, so that it may come again.
func (f *Fold) astray(ev *Event, sub *subject, recent, deltas []fingerprint) bool {
	r := &f.m.Resume
	if len(r.strays) == recentEvents || sub.kind.Droppable && !f.m.works(sub) {
		return false // see remember: such a delta may have come before
	}
	var last *[]fingerprint
	end := f.m.NextSequence - 1
	if n := len(recent) - 1; n >= 0 && recent[n].sequence >= end {
		last, recent = &r.recent, recent[:n]
	} else if n := len(deltas) - 1; n >= 0 && deltas[n].sequence >= end {
		last, deltas = &r.recentDeltas, deltas[:n]
	} else {
		return false
	}
	for _, list := range [...][]fingerprint{recent, deltas} {
		if n := len(list) - 1; n >= 0 && list[n].sequence > ev.Sequence {
			return false
		}
	}
	list := latest(*last)
	n := len(list) - 1
	r.strays, *last = append(r.strays, list[n]), list[:n]
	f.cover.back(ev.Sequence, r.strays)
	if ev.Sequence == 0 {
		f.m.whole()
	}
	return true
}

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }

func (f *Fold) violation(err *RuleError) {
	if f.opts.Tolerate != nil && f.opts.Tolerate(err) {
		return
	}
	s := f.v.s
	s.ViolationCount = plus(s.ViolationCount, 1)
	f.tell(err)
	limit := f.opts.MaxViolations
	if limit == 0 {
		limit = defaultMaxViolations
	}
	if len(s.Violations) < limit {
		s.Violations = append(s.Violations, err.clone())
	}
}

func (f *Fold) tell(err *RuleError) {
	if f.opts.OnViolation != nil {
		f.opts.OnViolation(err.clone()) // the next line replaces the texts of this one
	}
}

// Snapshot returns the state after the events applied so far. It may be called at
// any time. The snapshot belongs to the caller.
func (f *Fold) Snapshot() *RunSnapshot {
	if !f.begun {
		return &RunSnapshot{SchemaVersion: SchemaVersion, Status: RunStatusPending}
	}
	return f.opts.finish(f.v.sync(&f.m).clone())
}

// detach brings the snapshot up to date and returns it without a copy. The fold
// must not be used after that.
func (f *Fold) detach() *RunSnapshot {
	s := f.v.sync(&f.m)
	for _, a := range s.Agents {
		f.giveBack(a)
		for i := range a.Resume.blocks {
			b := &a.Resume.blocks[i]
			b.text = orNil(b.text)
		}
	}
	return s
}

// finish sets the fields that are derived from others, and the host's state.
func (o *FoldOptions) finish(s *RunSnapshot) *RunSnapshot {
	s.Status = s.status()
	if s.TerminalKind == "" {
		s.EndMadeUp = s.Status.Terminal() && s.endMadeUp()
	}
	if s.CompletedAt.IsZero() && s.Status.Terminal() {
		if s.sessionEnded() {
			s.CompletedAt = s.SessionEndedAt
		} else if s.Resume.finalized {
			for i := range s.Workflows {
				s.CompletedAt = later(s.CompletedAt, s.Workflows[i].FinalizedAt)
			}
		} else if len(s.Turns) == 1 {
			s.CompletedAt = s.Turns[0].EndedAt
		} else {
			for t := range s.turns {
				s.CompletedAt = later(s.CompletedAt, t.EndedAt)
			}
		}
		stated, unknown := s.CompletedAt, false
		for _, a := range s.Agents {
			s.CompletedAt = later(s.CompletedAt, a.EndedAt)
			unknown = unknown || !a.EndedAt.IsZero() && !TimeKnown(a.EndedAt)
		}
		if unknown && stated.IsZero() || !stated.IsZero() && !TimeKnown(stated) {
			s.CompletedAt = time.Unix(0, 0).UTC() // nobody knows which of the ends is the last one
		}
	}
	if t, _ := s.badTurn(); t != nil && s.TerminalKind == "" && s.Status == RunStatusFailed {
		s.Error = t.Error
		s.Error.V.deepen()
	} else if t != nil && s.TerminalKind == "" && s.Status == RunStatusCancelled && s.CancelReason == "" {
		s.CancelReason = strings.Clone(t.Error.V.Message)
	}
	if s.TerminalKind == "" && s.sessionEnded() && s.Status == RunStatusFailed && s.Resume.sessionError.OK {
		s.Error = s.Resume.sessionError
		s.Error.V.deepen()
	}
	if s.TerminalKind == "" && s.Resume.finalized && !s.sessionEnded() && s.Status == RunStatusFailed {
		for i := range s.Workflows {
			if w := &s.Workflows[i]; w.Ended == s.Resume.flowEnd {
				s.Error = w.Error
				s.Error.V.deepen()
			}
		}
	}
	s.countUsage()
	for k, j := range o.Host.State {
		put(&s.State, k, soundJSON(j))
	}
	for k, j := range o.Host.Outputs {
		put(&s.Outputs, k, soundJSON(j))
	}
	return s
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// put sets an entry of a map, which it makes if it is nil.
func put[K comparable, V any](m *map[K]V, key K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = v
}

// status derives the status of the run.
func (r *RunSnapshot) status() RunStatus {
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
	st := r.RunState.standing(!r.SessionEndedAt.IsZero(), r.sessionWord())
	st.answered = !r.SessionEndedAt.IsZero() && r.SessionResult != ""
	st.paused, st.cancelling, st.waiting = r.Paused, r.Cancelling, len(waiting)
	for _, a := range r.Agents {
		st.add(&a.AgentState, waiting[a.AgentID], a.end())
	}
	open := false
	for t := range r.turns {
		st.isTurn, open = true, open || t.EndedAt.IsZero()
	}
	_, st.turn = r.badTurn()
	if st.turnOver = st.isTurn && !open; !st.isTurn && len(r.Turns) == 1 {
		st.turn = endOf(r.Turns[0].Error, "", "")
	}
	return st.status()
}

// turns yields the turns that the run follows: their agents have not started. The agents that have
// started work for them.
func (r *RunSnapshot) turns(yield func(*TurnSnapshot) bool) {
	for i := range r.Turns {
		t := &r.Turns[i]
		if a := r.Agents[t.AgentID]; (a == nil || !a.Started) && !yield(t) {
			return
		}
	}
}

// badTurn returns how the run's turns went, and the turn that tells it: of the latest turn of each
// agent the last one that failed, else the last one that was cancelled, else nil.
func (r *RunSnapshot) badTurn() (bad *TurnSnapshot, how agentEnd) {
	if len(r.Turns) == 0 {
		return nil, agentEnd{}
	}
	last := map[string]*TurnSnapshot{}
	for t := range r.turns {
		last[t.AgentID] = t
	}
	for _, t := range last {
		end := endOf(t.Error, "", "")
		if end == (agentEnd{}) || how.failed && !end.failed {
			continue
		}
		if bad == nil || end.failed && !how.failed || t.Sequence > bad.Sequence {
			bad, how = t, end
		}
	}
	return bad, how
}

// endMadeUp reports whether the status of a run that is over, without an end of its own, follows
// from an end that is made up.
func (r *RunSnapshot) endMadeUp() bool {
	if r.sessionEnded() || r.Resume.finalized {
		return r.Resume.endMadeUp
	}
	turns := false
	for t := range r.turns {
		if turns = true; t.EndMadeUp {
			return true
		}
	}
	if !turns {
		for _, a := range r.Agents {
			if a.EndMadeUp {
				return true
			}
		}
	}
	return false
}

// sessionWord returns the word for how the session ended. An error without a word is a failure.
func (r *RunSnapshot) sessionWord() string {
	if r.SessionStatus == "" && r.Resume.sessionError.OK {
		return string(RunStatusFailed)
	}
	return r.SessionStatus
}

// sessionEnded reports whether the end of the session ended the run.
func (r *RunSnapshot) sessionEnded() bool { return !r.Resume.opened && !r.SessionEndedAt.IsZero() }

// An agentEnd is the outcome that the end of an agent or a turn states.
type agentEnd struct{ failed, cancelled bool }

// end returns the outcome that the agent's end states.
func (a *AgentSnapshot) end() agentEnd { return endOf(a.Error, a.EndStatus, a.Outcome) }

// endOf returns how an end with these members went. An agent whose outcome is aborted failed.
func endOf(err Opt[ErrorInfo], word string, out AgentOutcome) agentEnd {
	switch (endword.End{Error: err.OK, Code: err.V.Code, Word: word, Outcome: string(out)}).Meaning() {
	case endword.Failed, endword.Refused:
		return agentEnd{failed: true}
	case endword.Cancelled:
		return agentEnd{failed: out == OutcomeAborted, cancelled: out != OutcomeAborted}
	}
	return agentEnd{}
}

// adopt completes a snapshot that another system made: it has a status, but not
// the state for resuming that the status follows from.
func (r *RunSnapshot) adopt() {
	if r.Resume.begun || len(r.Resume.recent) > 0 || r.Status == "" || r.Status == RunStatusPending {
		return
	}
	r.Resume.begun, r.Resume.opened = true, true
	if r.TerminalKind != "" {
		return
	}
	switch r.Status {
	case RunStatusCompleted:
		r.TerminalKind = KindRunCompleted
	case RunStatusFailed:
		r.TerminalKind = KindRunFailed
	case RunStatusCancelled:
		r.TerminalKind = KindRunCancelled
	}
}
