package agentevents

import (
	"math"

	"github.com/agentevents/agentevents/internal/reentry"
)

// The transitions of LifecycleDerived: which status follows from an agent's acts, and how the
// emitter records the transition with the event that causes it.

// untold is the set of statuses that no act tells: open calls and questions do.
const untold = 1<<atToolCall | 1<<atBlocked

// afterText returns the status that a text tells.
func (a *AgentState) afterText() int {
	if a != nil && a.Resume.act == atReflect {
		return atReflect
	}
	return atResponse
}

// derived returns the agent that an event moves, and the statuses that it moves from
// and to. The key is empty when the event moves no agent. The machine has not applied
// the event yet.
func (m *machine) derived(ev *Event, sub *subject) (key string, from, to AgentStatus) {
	key = sub.key
	a := sub.agent
	if answer := answerOf(ev); answer.kind != "" {
		q := m.questions.open[answer]
		if q == nil || q.call.agent == "" {
			return "", "", "" // anybody may answer; it moves who asked
		}
		key = q.call.agent
		a = m.find(key)
	}
	if sub.kind.Role == RoleDelta && ev.Marks.Has(MarkSynthetic) {
		return "", "", "" // held-back text of a block is not an act
	}
	if ev.Marks.Has(MarkLate) || a != nil && a.Ended || a == nil && ev.AgentID == "" && ev.NodeRunID == "" {
		return "", "", ""
	}
	from = StatusThinking
	act, calls, questions := atThinking, 0, m.questions.of(key)
	if a != nil {
		from, act, calls = a.Status, a.Resume.act, a.calls
	}
	switch p := ev.Payload.(type) {
	case *AgentReasoned, *AgentReasoningDelta, *ModelCalled:
		act = atThinking
	case *ModelReturned:
		if !p.OneEvent {
			return "", "", ""
		}
		act = atThinking
	case *TextDelta, *TextCompleted:
		act = a.afterText()
	case *ToolCalled:
		calls++
	case *ToolReturned:
		act = atToolResult
		closes := callKey{sub.key, p.CallID}
		if call := m.calls.Find(closes); call != nil && !p.OneEvent && a != nil && call.step >= a.Resume.first {
			calls--
		}
		questions -= m.questions.about(closes)
	case *ApprovalRequested, *ClarificationRequested:
		if key == "" {
			return "", "", ""
		}
		questions++
	case *ApprovalGranted, *ApprovalRejected, *ClarificationResolved:
		questions--
	case *AgentEnded:
		switch {
		case p.Outcome == OutcomeAborted || p.Error.OK:
			to = StatusFailed
		case p.Outcome == OutcomeConverged:
			to = StatusConverged
		}
	default:
		return "", "", ""
	}
	switch {
	case sub.kind.Kind == KindAgentEnded:
	case questions > 0:
		to = StatusBlockedOnClarification
	case calls > 0:
		to = StatusToolCall
	default:
		to = statuses[act]
	}
	if from == to || !m.table().Allows(from, to) {
		return "", "", "" // an agent that may not move there may not do this either
	}
	return key, from, to
}

// answerOf returns the key of the question that an event answers; its kind is empty when
// the event answers none.
func answerOf(ev *Event) questionKey {
	if p, ok := ev.Payload.(*ClarificationResolved); ok {
		return questionKey{KindClarificationRequested, p.InterruptID}
	}
	return approvalOf(ev)
}

// sameStep reports whether an event that makes the agent think begins no step.
func sameStep(ev *Event) bool {
	if p, ok := ev.Payload.(*ModelCalled); ok {
		return p.RetryOf != "" || p.Attempt.V > 1
	}
	return answerOf(ev).kind != ""
}

// derive adds an event with the transition that stands in front of it: both or neither.
// It returns false when the event moves no agent, and does nothing then.
func (s *runState) derive(ctx *reentry.Call, ev *Event, sub *subject, head string, done *outcome) (moved bool, refused, err error) {
	key, from, to := s.m.derived(ev, sub)
	if key == "" || ev.Sequence >= math.MaxUint64-1 {
		return false, nil, nil
	}
	var t Event
	var tsub subject
	s.transition(&t, &tsub, ev, sub, key, &AgentTransition{From: from, To: to})

	// The event is checked as if the agent had moved.
	ev.Sequence++
	sub.moved = true
	if key == sub.key {
		var moved AgentState // of an agent that has no event yet
		if sub.agent != nil {
			moved = *sub.agent // others may read it meanwhile
		}
		moved.Status = to
		if t.Step.OK {
			moved.reach(t.Step.V, false)
		}
		sub.agent = &moved
	}
	s.fill(ev, sub)
	refused = s.admit(ev, sub)
	sub.agent = s.m.find(sub.key)
	if refused == nil {
		refused = s.admit(&t, &tsub)
	}
	if refused != nil {
		return true, refused, nil
	}
	long := s.fit(&t, &tsub, "", mostEnvelope)
	if long == nil && s.streams.any() {
		long = s.fitWithout(*ev) // before blocks end
	}
	if long != nil {
		return true, long, nil
	}
	if held := s.streams.take(&t, &tsub); held != nil {
		err = s.flush(ctx, held, t.Time, done)
	}
	var c cleaner
	refused, cerr := s.clean(ctx, ev, sub, head, &c, done)
	if err = join(err, cerr); refused != nil {
		return true, refused, err
	}
	err = join(err, s.deliver(ctx, &t, &tsub, "", &cleaner{}, done))
	s.m.identify(sub, ev) // the transition may be the agent's first event, or name it
	err = join(err, s.deliver(ctx, ev, sub, head, &c, done))
	done.recorded = true
	return true, nil, err
}

// transition makes t, the transition p of the agent key that stands in front of ev, and its
// subject.
func (s *runState) transition(t *Event, tsub *subject, ev *Event, sub *subject, key string, p *AgentTransition) {
	*t = Event{
		RunID: ev.RunID, Sequence: ev.Sequence, SchemaVersion: ev.SchemaVersion, Time: ev.Time, Scope: ev.Scope, AgentID: ev.AgentID, Step: ev.Step,
		TraceID: ev.TraceID, SpanID: ev.SpanID, ParentSpanID: ev.ParentSpanID, Marks: ev.Marks&MarkReplayed | MarkSynthetic, Payload: p,
	}
	switch {
	case key != sub.key: // the answer moves who asked
		t.AgentID, t.NodeID, t.NodeRunID, t.SpanID, t.ParentSpanID, t.Step = key, "", "", "", "", Opt[int]{}
	case ev.AgentID == "" && ev.NodeRunID == "": // the span of its start names the agent
		t.SpanID, t.ParentSpanID = "", key
		if a := sub.agent; a != nil && a.SpanID != "" {
			t.ParentSpanID = a.SpanID // it may have a name by now
		}
	}
	if t.Phase == "" && s.m.inPhase(t.WorkflowID) {
		t.WorkflowID = "" // agent events inside a phase carry it; answers and model calls need not
	}
	s.m.resolve(tsub, t, p)
	if a := tsub.agent; a != nil {
		at := a.current()
		switch {
		case t.Step.OK && t.Step.V < at.V: // the event breaks the rule, not its transition
			t.Step = at
		case !t.Step.OK && !a.Resume.renew && sameStep(ev):
			t.Step = at
		}
	}
	s.fill(t, tsub)
}
