package agentevents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// ErrAnswered means that a question is not open: it was answered, closed or never asked, or a grant
// comes after the Timeout of its request. The answer was not recorded. No hook hears of it, as two people may answer at once.
var ErrAnswered = errors.New("agentevents: the question is not open")

// ErrUnanswered means that a question closed without an answer: its time was over, or the call,
// the agent or the run that asked has ended.
var ErrUnanswered = errors.New("agentevents: nobody answered")

// An Approval is the answer to an [ApprovalRequested].
type Approval struct {
	// ID is the id of the request. A [ToolCalled] names it to be the one call that the
	// approval allows.
	ID       string
	Granted  bool
	By       string // the person who answered
	Feedback string // the text of that person
}

// Ask asks a person to allow an action and waits for the answer, which [Run.Answer] or an
// event of another source records. An empty ApprovalID is made. Name the call in p: CallID if
// it is recorded and open, else ToolID and Arguments, and Approval.ID in the [ToolCalled] that
// follows. Rule approval-binds then refuses a call that is not the approved one.
//
// With a Timeout, a question that nobody answers is recorded as rejected, and the error is
// [ErrUnanswered]. When ctx ends, the error is its cause and the question stays open: after
// [Emitter.Resume] another Ask with its ApprovalID waits for the same answer, and returns at once if
// the approval is granted, not used and in its time. Ask does not change p, which belongs to the
// log from then on. Any number of goroutines may ask at the same time.
func (a *Agent) Ask(ctx context.Context, p *ApprovalRequested) (Approval, error) {
	if !a.ok() {
		return Approval{}, ErrZeroValue
	}
	out := ApprovalRequested{}
	if p != nil {
		out = *p
	}
	if out.ApprovalID == "" {
		out.ApprovalID = a.run.s.e.newID()
	}
	id := out.ApprovalID
	var over <-chan time.Time
	if out.Timeout.OK {
		t := time.NewTimer(a.run.s.timeToAnswer(id, out.Timeout.V))
		defer t.Stop()
		over = t.C
	}
	answer, err := a.wait(ctx, questionKey{KindApprovalRequested, id}, &out, over, func() Payload {
		return &ApprovalRejected{ApprovalID: id, Answer: "timeout", Feedback: "nobody answered within " + out.Timeout.V.String()}
	})
	switch p := answer.(type) {
	case *ApprovalGranted:
		return Approval{id, true, p.ApprovedBy, p.Feedback}, err
	case *ApprovalRejected:
		return Approval{id, false, p.RejectedBy, p.Feedback}, err
	}
	return Approval{ID: id}, err
}

// AskQuestions asks a person questions and waits for the answers, as Ask does. An empty
// InterruptID is made. It waits until ctx ends: give it a deadline.
func (a *Agent) AskQuestions(ctx context.Context, p *ClarificationRequested) (*ClarificationResolved, error) {
	if !a.ok() {
		return nil, ErrZeroValue
	}
	out := ClarificationRequested{}
	if p != nil {
		out = *p
	}
	if out.InterruptID == "" {
		out.InterruptID = a.run.s.e.newID()
	}
	answer, err := a.wait(ctx, questionKey{KindClarificationRequested, out.InterruptID}, &out, nil, nil)
	resolved, _ := answer.(*ClarificationResolved)
	return resolved, err
}

// Answer records the answer to an open question: an [ApprovalGranted], [ApprovalRejected] or
// [ClarificationResolved]. The error wraps [ErrAnswered] if the question is not open; of two
// answers at once the first one counts, and EmitterOptions.OnViolation hears of neither.
// Otherwise Answer is [Run.Emit].
func (r *Run) Answer(ctx context.Context, p Payload) error {
	if !r.ok() {
		return ErrZeroValue
	}
	ev := Event{Scope: r.scope, Payload: p}
	key := answerOf(&ev)
	if key.kind == "" {
		return fmt.Errorf("agentevents: Answer: %T is not an answer; legal: ApprovalGranted, ApprovalRejected, ClarificationResolved", p)
	}
	return r.s.recordAs(ctx, &ev, r.head, &outcome{answers: key})
}

// An answer is the end of a question: the payload that answered it, or nil.
type answer struct {
	payload Payload
	err     error
}

// A waiter waits for an answer.
type waiter struct {
	ch    chan answer // has room for one
	asked bool        // the question is recorded
}

// requestOf returns the key of the question that an event asks; its kind is empty when it asks
// none.
func requestOf(ev *Event) questionKey {
	switch p := ev.Payload.(type) {
	case *ApprovalRequested:
		return questionKey{KindApprovalRequested, p.ApprovalID}
	case *ClarificationRequested:
		return questionKey{KindClarificationRequested, p.InterruptID}
	}
	return questionKey{}
}

// wait asks a question, if it is not open, and waits for its answer.
func (a *Agent) wait(ctx context.Context, key questionKey, question Payload, over <-chan time.Time, giveUp func() Payload) (Payload, error) {
	s := a.run.s
	ctx = orBackground(ctx)
	w, now := &waiter{ch: make(chan answer, 1)}, s.e.now()
	s.state.Lock()
	open, granted := s.m.questions.open[key] != nil, s.m.approvals.byID[key.id]
	if !open && key.kind == KindApprovalRequested && granted != nil && granted.granted && !granted.tooOld(now) {
		s.state.Unlock()
		return &ApprovalGranted{ApprovalID: key.id, ApprovedBy: granted.by, Feedback: granted.feedback}, nil
	}
	w.asked = open
	put(&s.asks, key, append(s.asks[key], w))
	s.state.Unlock()
	defer s.unask(key, w)
	if !open {
		if err := a.Emit(ctx, question); err != nil && !onlySinks(err) {
			return nil, err
		}
	}
	if s.end.closed.Load() { // perhaps before it could tell this one
		s.hangUp()
	}
	select {
	case got := <-w.ch:
		return got.payload, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-over:
	}
	err := a.run.Answer(ctx, giveUp())
	if err != nil && !errors.Is(err, ErrAnswered) && !onlySinks(err) {
		return nil, err
	}
	got := <-w.ch // from that answer, or from another one that came before
	if err == nil || onlySinks(err) {
		got.err = fmt.Errorf("%w: %s of run %s", ErrUnanswered, jsonwire.Brief(key.id), jsonwire.Brief(s.m.RunID))
	}
	return got.payload, got.err
}

// timeToAnswer returns the time that is left to answer an approval: all of it unless the
// question is open.
func (s *runState) timeToAnswer(id string, timeout time.Duration) time.Duration {
	now := s.e.now()
	s.state.Lock()
	defer s.state.Unlock()
	if x := s.m.approvals.byID[id]; x != nil && !x.granted && TimeKnown(x.asked) {
		return timeout - now.Sub(x.asked)
	}
	return timeout
}

// unask forgets one that waits.
func (s *runState) unask(key questionKey, w *waiter) {
	s.state.Lock()
	defer s.state.Unlock()
	s.asks[key] = slices.DeleteFunc(s.asks[key], func(x *waiter) bool { return x == w })
	if len(s.asks[key]) == 0 {
		delete(s.asks, key)
	}
}

// answered tells those who wait for questions that an event has closed. It also notes who
// has asked: others have not recorded their questions yet. s.state is held.
func (s *runState) answered(ev *Event) {
	by, asks := answerOf(ev), requestOf(ev)
	for key, list := range s.asks {
		open := s.m.questions.open[key] != nil
		for _, w := range list {
			w.asked = w.asked || open || key == asks
		}
		if open {
			continue
		}
		got := answer{err: fmt.Errorf("%w: %s of run %s closed with %s", ErrUnanswered, jsonwire.Brief(key.id), jsonwire.Brief(s.m.RunID), jsonwire.BriefName(string(ev.Kind())))}
		if by == key {
			got = answer{payload: ev.Payload}
		}
		hear(list, got)
	}
}

// hangUp tells those who wait that the run is closed.
func (s *runState) hangUp() {
	s.state.Lock()
	defer s.state.Unlock()
	for _, list := range s.asks {
		for _, w := range list {
			w.asked = true // and cannot ask any more
		}
		hear(list, answer{err: ErrClosed})
	}
}

// hear gives an answer to those who have asked and have none.
func hear(list []*waiter, got answer) {
	for _, w := range list {
		if !w.asked {
			continue
		}
		select {
		case w.ch <- got:
		default:
		}
	}
}
