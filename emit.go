package agentevents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/reentry"
	"github.com/agentevents/agentevents/internal/turns"
	"github.com/agentevents/agentevents/internal/uuid7"
	"github.com/agentevents/agentevents/internal/wallclock"
)

// This file is the way of an event: from Emit, through the rules and the redaction, to the
// sinks.

// A runState is a run of an emitter; handles share it.
type runState struct {
	e         *Emitter
	holder    reentry.Holder               // of mu
	call      atomic.Pointer[reentry.Call] // the last one, made when the context of events changes
	lane      uint8                        // of the emitter
	derives   bool                         // the transitions: see lifecycle_derived.go
	told      bool                         // the sinks were told that the run is released; guarded by end.mu
	resumes   resumes                      // guarded by end.mu
	fenced    bool                         // a sink has said ErrFenced; guarded by end.mu
	warned    [2]atomic.Bool               // about a violation and about a sink, see warn
	finishing atomic.Bool                  // Run.Finish is at work: events that open something are refused
	end       *ending                      // the emitter has it too when the run is released

	// The rest is guarded by end.mu.
	m      *machine
	clock  wallclock.Clock
	ids    uuid7.Source
	line   []byte
	times  jsonwire.TimeWriter
	tokens map[callKey]int // of reasoning blocks in the making, with CountTokens
	// refused counts the events that were refused: of the run, and by agent id.
	refused *refusals // nil until there is one
	// streams are the blocks whose deltas are scanned. They belong to no snapshot.
	streams *streams // nil until there is one

	at    atomic.Uint64 // see place
	seen  uint64        // by the last look at it; guarded by Emitter.mu, as is looks
	looks int           // looks that have seen it

	asks map[questionKey][]*waiter // who waits for answers; guarded by state

	// state also guards the fields that queries read: session, and m while apply changes it. It is
	// held only that long, so that a query never waits for a sink.
	state   sync.Mutex
	session string // the first one that an event carries which is not droppable
}

// record is the write path. head is the handle's encoded and checked envelope, or "" if the event
// sets further envelope fields.
func (s *runState) record(ctx context.Context, ev *Event, head string) error {
	var done outcome
	return s.recordAs(ctx, ev, head, &done)
}

// recordAs is record with options that the caller has set in done.
func (s *runState) recordAs(ctx context.Context, ev *Event, head string, done *outcome) error {
	c := s.callFor(orBackground(ctx))
	err := s.emit(c, ev, head, done)
	if len(done.violations) > 0 || len(done.reports) > 0 || done.unheard != nil || len(s.e.buffers) > 0 {
		s.tell(c.Outer(), done)
	}
	return err
}

// tell is the part of the write path without a lock. Close does not wait for it, so that it
// may be called from there.
func (s *runState) tell(outer *reentry.Call, done *outcome) {
	for _, violation := range done.violations {
		s.e.redact.hide(violation)
		if s.e.opts.OnViolation == nil {
			s.warn(0, "OnViolation", violation)
		} else if err := notify(s.e.opts.OnViolation, violation); err != nil {
			done.reports = append(done.reports,
				fmt.Errorf("agentevents: EmitterOptions.OnViolation, run %s: %w", jsonwire.Brief(s.m.RunID), err))
		}
	}
	s.report(done)
	if done.unheard != nil {
		s.warn(1, "OnError", done.unheard)
	}
	for _, b := range s.e.buffers {
		for _, err := range b.takeNews() {
			if s.e.opts.OnError != nil {
				s.e.tellSink(s, err)
			} else { // Flush and Close return it
				s.warn(1, "OnError", err)
			}
		}
		b.room(outer, done.lasting)
	}
}

// warn logs the first violation and the first error of a sink of a run that no hook hears:
// a program that ignores the results of Emit would lose events without a word. It contains
// a panic of the handler, which the agent must not meet.
func (s *runState) warn(about int, hook string, err error) {
	if s.warned[about].Swap(true) {
		return
	}
	_ = notify(func(err error) {
		slog.Default().Warn(err.Error(), "hint",
			"logged once a run, as EmitterOptions."+hook+" is nil: set it to hear of all, or to a function that does nothing")
	}, err)
}

// callFor returns the context for functions that are called with the run's lock held.
func (s *runState) callFor(ctx context.Context) *reentry.Call {
	c := s.call.Load()
	if c.MadeOf(ctx) {
		return c
	}
	c = reentry.New(ctx, s.e, &s.holder, reentry.Of(ctx))
	if len(s.e.commit) > 0 {
		c.Unheld = reentry.New(ctx, s.e, nil, c.Outer())
	}
	s.call.Store(c)
	return c
}

// emit is the part of the write path that Close waits for.
func (s *runState) emit(c *reentry.Call, ev *Event, head string, done *outcome) error {
	defer s.left(c, ev, done)
	if !s.enter() {
		return s.closedError("the emitter", ev)
	}
	err := s.write(c, ev, head, done)
	if s.end.closed.Load() { // perhaps by Run.Close, which did not wait
		err = join(err, s.settle(c, done))
	}
	return s.finish(c, ev, err, done)
}

// left undoes enter.
func (s *runState) left(c *reentry.Call, ev *Event, done *outcome) {
	if done.exited {
		s.abandon(c, ev, done)
		return
	}
	s.leave()
}

// abandon finishes an event when a sink has ended the goroutine, so that Emit does not return.
func (s *runState) abandon(c *reentry.Call, ev *Event, done *outcome) {
	defer s.tell(c.Outer(), done)
	defer s.leave()
	err := done.lost
	if done.ended {
		err = join(err, s.settle(c, done))
	}
	if err = s.finish(c, ev, err, done); err != nil && s.e.opts.OnError == nil {
		s.e.keepErrors([]error{err})
	}
}

// finish is the rest of the write path, after the run's lock is released.
func (s *runState) finish(c *reentry.Call, ev *Event, err error, done *outcome) error {
	e := s.e
	if done.ended {
		e.release(s)
	}
	for _, k := range e.commit {
		if !done.delivered || k.commitsLasting && !done.lasting {
			continue
		}
		if cerr := k.commit(c.Unheld, ev.ID); cerr != nil {
			err = e.failed(err, k, ev, done, cerr)
		}
	}
	if len(done.reports) > 0 && e.opts.OnError == nil { // here, or Close would not wait for it
		s.report(done)
	}
	return err
}

// report passes to OnError the errors that the caller does not get.
func (s *runState) report(done *outcome) {
	if s.e.opts.OnError == nil && len(done.reports) > 0 {
		s.e.keepErrors(done.reports)
		done.unheard = cmp.Or(done.unheard, done.reports[0])
		done.reports = nil
	}
	for _, err := range done.reports {
		if perr := notify(s.e.opts.OnError, err); perr != nil {
			s.e.keepErrors([]error{fmt.Errorf("agentevents: EmitterOptions.OnError, run %s: %w",
				jsonwire.Brief(s.m.RunID), perr)})
		}
	}
}

// outcome collects the work that follows the release of a run's lock.
type outcome struct {
	number     bool         // said before: a delta gets the index that the rules expect
	answers    questionKey  // said before: refuse with ErrAnswered unless this question is open
	returns    bool         // set by the caller: the event is the return of a call, and late if its agent is at rest
	recorded   bool         // the event itself was
	delivered  bool         // the event was delivered, or held-back text
	lasting    bool         // something that is not droppable was
	ended      bool         // the run's terminal event was
	exited     bool         // a sink ended the goroutine
	lost       error        // errors of sinks that Emit would have returned
	violations []*RuleError // for OnViolation
	reports    []error      // for OnError
	unheard    error        // the first one of a sink, without OnError
}

// lock takes the run's lock, unless the caller has it.
func (s *runState) lock(outer *reentry.Call) error {
	if !outer.Await(&s.holder) {
		return fmt.Errorf("%w (run %s)", ErrReentrant, jsonwire.Brief(s.m.RunID))
	}
	s.end.mu.Lock()
	outer.Waited()
	return nil
}

// write is the part of the write path under the run's lock.
func (s *runState) write(c *reentry.Call, ev *Event, head string, done *outcome) error {
	if err := s.lock(c.Outer()); err != nil {
		return err
	}
	defer s.end.mu.Unlock()
	if s.end.closed.Load() {
		return s.closedError("the run", ev)
	}
	err := s.add(c, ev, head, done)
	if s.e.opts.Follow != nil && done.recorded && !s.fenced && !ev.Marks.Has(MarkReplayed) {
		err = s.follow(c, ev, done, err)
	}
	if done.ended {
		err = join(err, s.released(c, done))
	}
	if cap(s.line) > maxKeptLine {
		s.line = nil // one huge event should not be paid for ever after
	}
	return err
}

// closedError returns the error of an event that comes too late.
func (s *runState) closedError(what string, ev *Event) error {
	return fmt.Errorf("%w: %s of run %s was not recorded, %s is closed",
		ErrClosed, jsonwire.BriefName(string(ev.Kind())), jsonwire.Brief(s.m.RunID), what)
}

// refusals are the numbers of events that were refused.
type refusals struct {
	all    int
	agents map[string]int // by agent id
}

func (r *refusals) of(agent string) int {
	if r == nil {
		return 0
	}
	return r.agents[agent]
}

// countRefused counts an event that was refused. An agent's count begins again when it
// has ended.
func (s *runState) countRefused(agent string) {
	if s.refused == nil {
		s.refused = &refusals{}
	}
	s.refused.all++
	if agent == "" {
		return
	}
	put(&s.refused.agents, agent, s.refused.agents[agent]+1)
}

// follow records the events that EmitterOptions.Follow returns after ev. Refusals are reported,
// because ev itself was recorded.
func (s *runState) follow(ctx *reentry.Call, ev *Event, done *outcome, err error) error {
	events, perr := following(s.e.opts.Follow, *ev)
	if perr != nil {
		done.reports = append(done.reports, fmt.Errorf("agentevents: EmitterOptions.Follow, run %s, sequence %d: %w",
			jsonwire.Brief(ev.RunID), ev.Sequence, perr))
	}
	for i := range events {
		next, sub := events[i], outcome{}
		fillText(&next.CausationID, ev.ID)
		serr := s.add(ctx, &next, "", &sub)
		done.ended, done.lasting = sub.ended || done.ended, sub.lasting || done.lasting
		done.violations = append(done.violations, sub.violations...)
		done.reports = append(done.reports, sub.reports...)
		switch {
		case serr == nil:
		case sub.recorded: // a sink failed
			err = errors.Join(err, serr)
		default:
			done.reports = append(done.reports, fmt.Errorf("agentevents: EmitterOptions.Follow, run %s, after sequence %d: %w",
				jsonwire.Brief(ev.RunID), ev.Sequence, serr))
		}
	}
	return err
}

func following(f func(Event) []Event, ev Event) (events []Event, err error) {
	defer contain(&err)
	return f(ev), nil
}

// guarded asks EmitterOptions.Guard.
func guarded(f func(Event) *RuleError, ev *Event) (violation *RuleError, err error) {
	defer contain(&err)
	if violation = f(*ev); violation == nil {
		return nil, nil
	}
	out := *violation
	out.Kind = ev.Kind()
	fillText(&out.RunID, ev.RunID)
	fillText(&out.AgentID, ev.AgentID)
	fillText(&out.EventID, ev.ID)
	out.Sequence = ev.Sequence
	return &out, nil
}

// add records one event, and notes when it is refused. s.mu is held; ev is the caller's
// own and is filled in on the way.
func (s *runState) add(ctx *reentry.Call, ev *Event, head string, done *outcome) error {
	refused, err := s.try(ctx, ev, head, done)
	if refused == nil {
		return err
	}
	if rule, ok := refused.(*RuleError); ok {
		rule.Refused = true
		done.violations = append(done.violations, rule)
		s.countRefused(ev.AgentID)
	}
	return join(err, refused)
}

// try checks, stamps, redacts, applies and delivers one event. It returns why the event is
// refused, and the errors of sinks.
func (s *runState) try(ctx *reentry.Call, ev *Event, head string, done *outcome) (refused, err error) {
	bound := head != ""
	ev.Sequence = s.m.NextSequence
	ev.SchemaVersion = SchemaVersion
	ev.origin = ""
	if ev.RunID == "" {
		ev.RunID = s.m.RunID
	}
	if ev.SessionID == "" && s.session != "" {
		ev.SessionID, head = s.session, "" // the handle is older than the session
	}
	if ev.Sequence == math.MaxUint64 {
		return fmt.Errorf("agentevents: run %s has used up its sequence numbers", jsonwire.Brief(s.m.RunID)), nil
	}
	p := ops(ev.Payload)
	if p == nil {
		err := sealError(ev.Payload)
		err.RunID, err.AgentID, err.Sequence = ev.RunID, ev.AgentID, ev.Sequence
		return err, nil
	}
	if err := s.m.checkRun(ev); err != nil {
		err.RunID = s.m.RunID
		return err, nil
	}

	if ev.Time.IsZero() {
		ev.Time = s.now()
	} else {
		ev.Time = ev.Time.UTC().Round(0)
	}
	sub := subject{sound: head != "", bound: bound}
	s.m.resolve(&sub, ev, p)
	if done.number {
		sub.number(ev)
	}
	if q := done.answers; q.kind != "" && (s.m.questions.open[q] == nil || s.m.grantedTooLate(ev)) {
		return fmt.Errorf("%w: %s of run %s", ErrAnswered, jsonwire.Brief(q.id), jsonwire.Brief(s.m.RunID)), nil
	}
	if done.returns {
		sub.bound = false // the agent acted when it called
		if a := sub.agent; s.m.atRest(a) || a != nil && a.Status.Terminal() {
			ev.Marks |= MarkLate
		}
	}
	if s.derives {
		if moved, refused, err := s.derive(ctx, ev, &sub, head, done); moved {
			return refused, err
		}
	}
	s.fill(ev, &sub)
	if refused := s.admit(ev, &sub); refused != nil {
		return refused, nil
	}
	var c cleaner
	if refused, err = s.clean(ctx, ev, &sub, head, &c, done); refused != nil {
		return refused, err
	}
	err = join(err, s.deliver(ctx, ev, &sub, head, &c, done))
	done.recorded = true
	return nil, err
}

// admit checks an event and asks Guard. It returns the reason for a refusal; a violation that
// ModeObserve records is in sub.
func (s *runState) admit(ev *Event, sub *subject) error {
	e := s.e
	violation := s.m.check(ev, sub)
	if violation == nil && sub.kind.Role == RoleOpens && s.finishing.Load() {
		violation = s.m.checkTerminal(ev, sub)
	}
	if violation == nil && sub.mayBind() {
		violation = s.bind(ev, sub)
	}
	if e.opts.Guard != nil && (violation == nil || sub.kind.Kind == KindToolCalled) { // for Agent.Do
		forbidden, perr := guarded(e.opts.Guard, ev)
		if perr != nil {
			return fmt.Errorf("agentevents: EmitterOptions.Guard, run %s: %w", jsonwire.Brief(s.m.RunID), perr)
		}
		if forbidden != nil {
			violation = forbidden
		}
	}
	if violation == nil {
		return nil
	}
	if e.opts.Mode == ModeEnforce || violation.Rule == RulePayload || ev.writable() != nil {
		return violation
	}
	sub.violation = violation
	return nil
}

// clean redacts an event. Text that should be JSON becomes JSON on the way. The event may still be
// refused: a message, or an event that is too long. err concerns held-back text, which is recorded
// first.
func (s *runState) clean(ctx *reentry.Call, ev *Event, sub *subject,
	head string, c *cleaner, done *outcome) (refused, err error) {
	e := s.e
	c.policy, c.kind = e.redact, sub.payload.kind()
	c.words = sub.violation != nil
	var st *stream
	var held []*stream
	if sub.kind.Role == RoleDelta && e.redact.actions[ClassContent] == ActionScan {
		if long := s.fitDelta(ev, sub, head); long != nil {
			return long, nil
		}
		if st, held = s.blocks().get(ev, sub, e.redact.scanner); held != nil {
			err = s.flush(ctx, held, ev.Time, done)
		}
		c.stream = st
	}
	clean, changed := c.payload(ev.Payload)
	if ev.extra != "" {
		ev.extra, _ = c.extras(ev.extra)
	}
	if changed {
		ev.Payload, sub.payload = clean, ops(clean)
	}
	if st != nil {
		st.note(ev, sub)
	}
	if p, ok := ev.Payload.(*ApprovalRequested); ok {
		bound := p.bindApproval()
		ev.Payload, sub.payload = bound, ops(bound)
	}
	s.mark(ev, sub, c) // reasoning and too long texts are cut last, or half a secret could remain
	if long := s.fit(ev, sub, head, c.size); long != nil {
		return long, err
	}
	violation := s.m.checkMessageID(ev)
	if violation == nil {
		violation = s.m.checkApproval(ev, sub)
	}
	if violation != nil {
		if e.opts.Mode == ModeEnforce {
			return violation, err
		}
		sub.violation = violation
	}
	if sub.kind.traits&endsBlocks != 0 && st == nil {
		if held := s.streams.take(ev, sub); held != nil {
			err = join(err, s.flush(ctx, held, ev.Time, done))
		}
	}
	return nil, err
}

// mark cuts the event's reasoning to the policy's limit, and sets the marks of the redaction step.
func (s *runState) mark(ev *Event, sub *subject, c *cleaner) {
	if sub.kind.traits&reasons != 0 {
		c.redacted = s.limitReasoning(ev, sub) || c.redacted
	}
	if c.redacted {
		ev.Marks |= MarkRedacted
	}
	if c.sanitized {
		ev.Marks |= MarkSanitized
	}
}

// flush records the held-back text of streams, each in a delta of its own with the given time; the
// zero time is now. Their blocks end.
func (s *runState) flush(ctx *reentry.Call, held []*stream, at time.Time, done *outcome) (err error) {
	for _, st := range held {
		c := s.e.redact.cleaner(st.last.Kind())
		ev := st.rest(&c, at)
		var sub subject
		s.m.resolve(&sub, &ev, ops(ev.Payload))
		if sub.agent != nil && ev.Step.OK {
			ev.Step = sub.agent.current() // it may have gone on
		}
		if err := s.m.check(&ev, &sub); err != nil {
			switch err.Rule {
			case RuleWorkflowContext:
				ev.WorkflowID, ev.Phase = "", "" // a phase of the workflow began after the last delta
			case RuleDeltaIndex: // the machine has forgotten the block
				ev.Payload = withDelta(nextDelta(ev.Payload, false), pieceOf(&ev, &sub).text)
				sub.payload = ops(ev.Payload)
			}
		}
		s.mark(&ev, &sub, &c)
		if pieceOf(&ev, &sub).text == "" || s.m.NextSequence >= math.MaxUint64-1 {
			continue
		}
		if at.IsZero() {
			ev.Time = s.now()
		}
		if long := s.cut(&ev, &sub); long != nil {
			done.reports = append(done.reports, long)
			continue
		}
		err = join(err, s.deliver(ctx, &ev, &sub, "", &c, done))
	}
	return err
}

// settle records the held-back text of a closed run, and tells the sinks of the release. It does
// not wait for the run's lock: whoever has it settles the run before letting go.
func (s *runState) settle(c *reentry.Call, done *outcome) error {
	if !s.end.mu.TryLock() {
		return nil
	}
	defer s.end.mu.Unlock()
	if s.end.gone {
		return nil // its sequences are another's
	}
	err := s.flush(c, s.streams.takeAll(), time.Time{}, done)
	return join(err, s.released(c, done))
}

// close records the held-back text of a run that emits no more.
func (s *runState) close(ctx context.Context) error {
	c := s.callFor(ctx)
	var done outcome
	err := s.settle(c, &done)
	err = s.finish(c, &Event{RunID: s.m.RunID}, err, &done)
	s.report(&done)
	return err
}

// deliver stamps, applies and delivers an event that the redaction step has seen.
func (s *runState) deliver(ctx *reentry.Call, ev *Event,
	sub *subject, head string, c *cleaner, done *outcome) (err error) {
	e := s.e
	// Stamp the fields that only an accepted event gets, and apply.
	ev.Sequence = s.m.NextSequence // streams may have been flushed
	if ev.ID == "" && e.opts.NewID != nil {
		ev.ID = e.givenID()
	}
	if ev.ID == "" {
		ev.ID = s.ids.Next(ev.Time)
	}
	if c.failed != nil {
		done.reports = append(done.reports,
			fmt.Errorf("agentevents: redactor, run %s, sequence %d: %w", jsonwire.Brief(ev.RunID), ev.Sequence, c.failed))
	}
	if sub.violation != nil {
		sub.violation.EventID, sub.violation.Sequence = ev.ID, ev.Sequence
		done.violations = append(done.violations, sub.violation)
		ev.Marks |= MarkIllegal
	}
	if e.redact.CountTokens != nil {
		s.countReasoning(ev, sub)
	}
	s.apply(ev, sub)
	if s.resumes.run {
		s.resumes = resumes{run: sub.kind.Kind != KindRunResumed}
	}
	if s.refused != nil && sub.kind.Kind == KindAgentEnded {
		delete(s.refused.agents, ev.AgentID)
	}
	if s.m.TerminalKind != "" {
		s.end.late.Store(s.late())
	}
	done.delivered, done.ended = true, s.m.TerminalKind != "" || s.fenced
	done.lasting = done.lasting || !sub.kind.Droppable
	if err = s.hand(ctx, ev, sub, head, done, theTracer); err == nil && (e.deltas || !sub.kind.Droppable) {
		s.end.kept = s.m.NextSequence
	}
	return err
}

// late returns the run if it has streams.
func (s *runState) late() *runState {
	if s.streams.any() {
		return s
	}
	return nil
}

// theTracer is the number of the tracer, which is asked before the first sink.
const theTracer = -1

// hand asks the tracer, encodes an event once and gives it to the sinks, from the n-th on. When one
// of them ends the goroutine, the others get the event on its way out. Held-back text of a fenced
// run is discarded.
func (s *runState) hand(ctx *reentry.Call, ev *Event, sub *subject, head string, done *outcome, n int) (err error) {
	e := s.e
	if s.fenced {
		return nil
	}
	var called *sinkEntry // panics are contained: who is called and does not return ended the goroutine
	defer func() {
		if called == nil {
			return
		}
		err = e.failed(err, called, ev, done, turns.ErrGoexit)
		done.exited, done.lost = true, join(done.lost, err)
		err = s.hand(ctx, ev, sub, head, done, n+1)
		done.lost = join(done.lost, err)
	}()
	replayed, droppable := ev.Marks.Has(MarkReplayed), sub.kind.Droppable
	if n == theTracer {
		if e.tracer != nil && !e.tracer.skips(replayed, droppable) {
			called = e.tracer
			tc, terr := e.tracer.trace(ctx, ev)
			called = nil
			if terr != nil {
				err = e.failed(err, e.tracer, ev, done, terr)
			}
			fillText(&ev.TraceID, tc.TraceID)
			fillText(&ev.SpanID, tc.SpanID)
			fillText(&ev.ParentSpanID, tc.ParentSpanID)
		}
		n = 0
	}
	if n == 0 && e.lines && !(droppable && e.lastingLines) {
		s.line = ev.appendWith(s.line[:0], sub.payload, &s.times, head)
	}
	for ; n < len(e.sinks); n++ {
		k := e.sinks[n]
		if k.skips(replayed, droppable) {
			continue
		}
		called = k
		s.enters(ev, n)
		werr := k.write(ctx, ev, s.line)
		called = nil
		if k.limit > 0 && werr != ErrSinkHangs && errors.Is(werr, ErrSinkHangs) {
			s.line = slices.Clone(s.line) // the call that hangs has it
		}
		if werr != nil {
			err = e.failed(err, k, ev, done, werr)
		}
		if werr != nil && k.required && errors.Is(werr, ErrFenced) {
			s.fenced, done.ended = true, true
			s.end.closed.Store(true)
			return err
		}
	}
	return err
}

const maxKeptLine = 1 << 20

// apply brings the run to the state that the event describes.
func (s *runState) apply(ev *Event, sub *subject) {
	s.state.Lock()
	if s.session == "" && !sub.kind.Droppable {
		s.session = ev.SessionID // as in a snapshot
	}
	key := sub.key
	s.m.apply(ev, sub)
	if len(s.asks) > 0 {
		s.answered(ev)
	}
	s.state.Unlock()
	s.streams.rename(key, sub.key)
}

// now returns the time of an event that has none.
func (s *runState) now() time.Time {
	if s.e.opts.Clock != nil {
		return s.e.now().UTC().Truncate(time.Millisecond)
	}
	return s.clock.Now()
}

// limitReasoning cuts the event's reasoning to the policy's limit, and reports whether it did.
func (s *runState) limitReasoning(ev *Event, sub *subject) (cut bool) {
	ev.Payload, cut = s.e.redact.reasoning(ev.Payload, s.e.redact.verbosity(s.m.RunID), s.reasoningUsed(ev, sub))
	sub.payload = ops(ev.Payload)
	return cut
}

// reasoningUsed returns how much reasoning the event's block had before: in
// tokens with Policy.CountTokens, else in characters.
func (s *runState) reasoningUsed(ev *Event, sub *subject) int {
	p, ok := ev.Payload.(*AgentReasoningDelta)
	if !ok {
		return 0
	}
	if p.BlockID == "" && sub.moved {
		return 0
	}
	used := sub.agent.blockSize(p.BlockID)
	if used == 0 || s.e.redact.CountTokens == nil {
		return used
	}
	if tokens, ok := s.tokens[callKey{sub.key, p.BlockID}]; ok {
		return tokens
	}
	return used / 4 // of a resumed run
}

// countReasoning adds a delta to the tokens of its block, with CountTokens.
func (s *runState) countReasoning(ev *Event, sub *subject) {
	p, ok := ev.Payload.(*AgentReasoningDelta)
	if !ok || p.Verbosity != VerbositySummary {
		return
	}
	used := s.reasoningUsed(ev, sub)
	if s.tokens == nil || len(s.tokens) >= maxBlocks {
		s.tokens = map[callKey]int{}
	}
	s.tokens[callKey{sub.key, p.BlockID}] = used + s.e.redact.CountTokens(p.Delta)
}

func fillText(to *string, from string) {
	if *to == "" {
		*to = from
	}
}

// failed files an error of a sink: an error of a required sink is joined to err, and all errors
// wait for OnError.
func (e *Emitter) failed(err error, k *sinkEntry, ev *Event, done *outcome, cause error) error {
	se := &SinkError{Sink: k.name, RunID: ev.RunID, Sequence: ev.Sequence, Err: cause}
	if !k.required || e.opts.OnError != nil {
		done.reports = append(done.reports, se)
	} else if done.unheard == nil {
		done.unheard = se
	}
	if k.required {
		return join(err, se)
	}
	return err
}

// join returns both errors as one, and one of them as it is.
func join(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Join(a, b)
}

// fill sets the fields that the emitter knows better than its caller: the step, the causation of a
// return, the status a transition starts from, the totals of an end, the reason why a command
// cannot be routed, the ids of a message. A payload is copied before it is changed.
func (s *runState) fill(ev *Event, sub *subject) {
	a := sub.agent
	switch p := ev.Payload.(type) {
	case *RunStarted:
		if l := s.m.named(); p.Lifecycle != l {
			own(ev, sub, p).Lifecycle = l
		}
	case *AgentStarted:
		if l := s.m.named(); p.Lifecycle != l {
			own(ev, sub, p).Lifecycle = l
		}
	case *AgentTransition:
		if p.From == "" {
			from := StatusThinking
			if a != nil {
				from = a.Status
			}
			own(ev, sub, p).From = from
		}
	case *AgentEnded:
		if !p.Totals.OK {
			p = own(ev, sub, p)
			p.Totals = Some(Totals{})
			if a != nil {
				p.Totals.V = a.Counted
			}
		}
		if refused := s.refused.of(ev.AgentID); p.Refused == 0 && refused > 0 {
			own(ev, sub, p).Refused = refused
		}
	case *RunCompleted:
		if p.Refused == 0 && s.refused != nil {
			own(ev, sub, p).Refused = s.refused.all
		}
	case *RunFailed:
		if p.Refused == 0 && s.refused != nil {
			own(ev, sub, p).Refused = s.refused.all
		}
	case *RunCancelled:
		if p.Refused == 0 && s.refused != nil {
			own(ev, sub, p).Refused = s.refused.all
		}
	case *ToolReturned:
		if p.OneEvent && p.CallID == "" {
			own(ev, sub, p).CallID = s.e.newID()
		}
		if ev.CausationID == "" && !p.OneEvent {
			if call := s.m.calls.Find(callKey{sub.key, p.CallID}); call != nil {
				ev.CausationID = call.event
			}
		}
	case *ModelReturned:
		if p.OneEvent && p.ModelCallID == "" {
			own(ev, sub, p).ModelCallID = s.e.newID()
		}
		if ev.CausationID == "" && !p.OneEvent {
			if call := s.m.modelCalls.Find(callKey{sub.key, p.ModelCallID}); call != nil {
				ev.CausationID = call.EventID
			}
		}
	case *CommandReceived:
		if reason := p.Command.misrouted(); reason != "" && p.Rejected == "" {
			own(ev, sub, p).Rejected = reason
		}
	case *MessageCreated:
		if m := &p.Message; m.MessageID == "" || m.From == "" || m.TS == 0 {
			m = &own(ev, sub, p).Message
			if m.MessageID == "" {
				m.MessageID = s.e.newID()
			}
			fillText(&m.From, ev.AgentID)
			if m.TS == 0 {
				m.TS = ev.Time.UnixMilli()
			}
		}
	}
	if ev.AgentID != "" && !ev.Step.OK && !ev.Marks.Has(MarkLate) {
		s.fillStep(ev, sub)
	}
}

// own gives an event a copy of its payload, which is not the caller's and may be changed.
func own[T any, P interface {
	*T
	payloadOps
}](ev *Event, sub *subject, p P) P {
	out := P(new(T))
	*out = *p
	ev.Payload, sub.payload = out, out
	return out
}

// beginsStep reports whether an event of an agent begins the first step of its attempt. An
// agent that ends before it acts, or that only others have written to, has taken none.
func beginsStep(ev *Event, sub *subject) bool {
	switch p := ev.Payload.(type) {
	case *AgentTransition:
		return !p.To.Terminal()
	case *MessageCreated:
		return p.Message.From == sub.key || p.Message.From == ""
	case *ContextCompacted, *AgentErrored, *AgentSessionChanged, *Unknown:
		return false
	}
	return sub.kind.ByAgent
}

// fillStep gives an event of an agent its current step: starts, ends, audits and events before the
// start have none.
func (s *runState) fillStep(ev *Event, sub *subject) {
	a := sub.agent
	if sub.kind.traits&stepless != 0 {
		return
	}
	if a != nil && a.Started && (!a.current().OK || a.Resume.renew) && !beginsStep(ev, sub) {
		return
	}
	step := 0
	if p, ok := ev.Payload.(*AgentTransition); ok {
		if p.To == StatusThinking && a != nil && a.Step.OK {
			step = 1 // a new step begins when the agent re-enters thinking
		}
	} else if !sub.kind.ByAgent && (a == nil || !a.Started) {
		return
	}
	if a != nil {
		if a.Resume.renew {
			step = 1
		}
		step = max(plus(a.Step.V, step), a.Resume.ahead.V)
	}
	ev.Step = Some(step)
}
