package agentevents

import (
	"cmp"
	"slices"
)

// People.

// approvalRequestedLate gives the record of an answer what its request tells, and returns it and its
// index. A snapshot that was made by hand may lack the record.
func (v *view) approvalRequestedLate(ev *Event, p *ApprovalRequested,
	about callKey, end *earlyEnd) (a *ApprovalSnapshot, at int) {
	s := v.s
	for i := range slices.Backward(s.Approvals) {
		was := s.Approvals[i]
		if was.ApprovalID != p.ApprovalID || !was.RequestedAt.IsZero() || !was.AnsweredAt.Equal(end.at) {
			continue
		}
		a = &s.Approvals[i]
		*a = v.approval(ev, p, about)
		a.Open, a.ClosedBy, a.AnsweredAt = false, was.ClosedBy, was.AnsweredAt
		a.Granted, a.By, a.Feedback, a.Answer = was.Granted, was.By, was.Feedback, was.Answer
		return a, i
	}
	s.Approvals = append(s.Approvals, v.approval(ev, p, about))
	at = len(s.Approvals) - 1
	a = &s.Approvals[at]
	a.Open, a.AnsweredAt = false, end.at
	return a, at
}

// approval returns the record of a request.
func (v *view) approval(ev *Event, p *ApprovalRequested, about callKey) ApprovalSnapshot {
	return ApprovalSnapshot{
		Sequence: ev.Sequence, ApprovalID: v.keep(p.ApprovalID), Action: v.intern(p.Action),
		Reason: v.keep(beginning(p.Reason)), CallID: v.keep(p.CallID),
		ToolID: v.intern(p.ToolID), ArgumentsHash: v.keep(p.ArgumentsHash), Timeout: p.Timeout,
		AgentID: about.agent, RequestedAt: ev.Time, Open: true,
	}
}

// approvalRequested adds the record of an approval. It returns copies of the id and the
// call that the fold keeps, and the index of the record.
func (v *view) approvalRequested(ev *Event, p *ApprovalRequested, about callKey) (id, call string, at int) {
	s := v.s
	a := v.approval(ev, p, about)
	s.Approvals = append(s.Approvals, a)
	return a.ApprovalID, a.CallID, len(s.Approvals) - 1
}

// approvalAnswered answers the record at the index at, or a new record when no
// approval was open.
func (v *view) approvalAnswered(ev *Event, sub *subject, at int, open bool) {
	if v == nil {
		return
	}
	s := v.s
	if !open {
		at = len(s.Approvals)
		s.Approvals = append(s.Approvals,
			ApprovalSnapshot{Sequence: ev.Sequence, ApprovalID: v.keep(approvalOf(ev).id), ClosedBy: sub.kind.Kind})
	}
	a := &s.Approvals[at]
	v.began(a.RequestedAt)
	v.countsFor(a.AgentID)
	a.AnsweredAt = ev.Time
	switch p := ev.Payload.(type) {
	case *ApprovalGranted:
		a.Granted, a.By = true, v.intern(cmp.Or(p.ApprovedBy, ev.Actor))
		a.Feedback, a.Answer = v.keep(p.Feedback), v.intern(p.Answer)
	case *ApprovalRejected:
		a.Granted, a.By = false, v.intern(cmp.Or(p.RejectedBy, ev.Actor))
		a.Feedback, a.Answer = v.keep(p.Feedback), v.intern(p.Answer)
	}
	delete(s.Suspended, ev.NodeID)
}

// clarificationRequested adds the record of a clarification, as approvalRequested does.
func (v *view) clarificationRequested(ev *Event, sub *subject,
	p *ClarificationRequested, about callKey) (id, call string, at int) {
	s := v.s
	id, call = v.keep(p.InterruptID), v.keep(p.CallID)
	c := ClarificationSnapshot{
		Sequence: ev.Sequence, InterruptID: id, CallID: call, AgentID: about.agent, RequestedAt: ev.Time, Open: true,
	}
	for i := range p.Questions {
		q := *p.Questions[i].clone()
		if !sub.sound {
			q.Schema = soundJSON(q.Schema)
		}
		c.Questions = append(c.Questions, q)
	}
	s.Clarifications = append(s.Clarifications, c)
	return id, call, len(s.Clarifications) - 1
}

// clarificationRequestedLate gives the record of an answer what its request tells.
func (v *view) clarificationRequestedLate(ev *Event, sub *subject,
	p *ClarificationRequested, about callKey, end *earlyEnd) {
	if v == nil {
		return
	}
	s := v.s
	for i := range slices.Backward(s.Clarifications) {
		was := &s.Clarifications[i]
		if was.InterruptID != p.InterruptID || !was.RequestedAt.IsZero() || !was.AnsweredAt.Equal(end.at) {
			continue
		}
		_, _, at := v.clarificationRequested(ev, sub, p, about)
		c := s.Clarifications[at]
		s.Clarifications = s.Clarifications[:at]
		was = &s.Clarifications[i]
		c.Open, c.ClosedBy, c.AnsweredAt = false, was.ClosedBy, was.AnsweredAt
		c.Answers, c.AnsweredBy = was.Answers, was.AnsweredBy
		*was = c
		return
	}
}

// clarificationResolved answers the record at the index at, or a new record when no
// clarification was open.
func (v *view) clarificationResolved(ev *Event, sub *subject, at int, open bool) {
	if v == nil {
		return
	}
	p, s := ev.Payload.(*ClarificationResolved), v.s
	if !open {
		at = len(s.Clarifications)
		s.Clarifications = append(s.Clarifications, ClarificationSnapshot{
			Sequence: ev.Sequence, InterruptID: v.keep(p.InterruptID), ClosedBy: KindClarificationResolved,
		})
	}
	c := &s.Clarifications[at]
	c.AnsweredAt, c.Answers, c.AnsweredBy = ev.Time, v.json(sub, p.Answers), v.intern(p.AnsweredBy)
	delete(s.Suspended, ev.NodeID)
}

func (v *view) commandReceived(ev *Event, _ *subject) {
	p := ev.Payload.(*CommandReceived)
	if p.Rejected != "" {
		return
	}
	switch p.Command.Type {
	case CommandAbort, CommandResume: // they have their effect at once
		return
	}
	if p.Command.misrouted() == "" {
		v.queue(InboxItem{EventID: v.keep(ev.ID), Command: *p.Command.clone()})
	}
}

// queue puts a command into the inbox.
func (v *view) queue(item InboxItem) {
	v.inbox.Add(item.EventID, item)
	ids := v.commands[item.Command.RunID]
	if len(ids) >= 16 && len(ids) == cap(ids) { // before it grows
		ids = slices.DeleteFunc(ids, func(id string) bool { return v.inbox.Find(id) == nil })
	}
	put(&v.commands, item.Command.RunID, append(ids, item.EventID))
}

// unqueue takes the commands for an execution that has ended out of the inbox: nobody is
// left to consume them.
func (v *view) unqueue(nodeRunID string) {
	if nodeRunID == "" {
		return
	}
	for _, id := range v.commands[nodeRunID] {
		v.inbox.Take(id)
	}
	delete(v.commands, nodeRunID)
}

func (v *view) commandConsumed(ev *Event, _ *subject) {
	v.inbox.Take(ev.Payload.(*CommandConsumed).EventID)
}
