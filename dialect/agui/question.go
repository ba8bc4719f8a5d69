package agui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A question is one that a run waits with for a person, and the JSON of its interrupt.
type question struct{ id, agent, call, interrupt string }

// ask notes what an event says of open questions.
func (k *kept) ask(ev *agentevents.Event) {
	q, reason, message, form := question{agent: ev.AgentID}, "", "", "" // the reasons are the protocol's
	closes := func(open question) bool { return open.id == q.id }
	switch p := ev.Payload.(type) {
	case *agentevents.ApprovalRequested:
		q.id, q.call, reason, message = p.ApprovalID, p.CallID, "confirmation", cmp.Or(p.Action, p.ToolID)+": "+p.Reason
		if form = `,"responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"}}}`; q.call != "" {
			reason = "tool_call"
		}
	case *agentevents.ClarificationRequested:
		q.id, q.call, reason = p.InterruptID, p.CallID, "input_required"
		for _, asked := range p.Questions {
			message += asked.Question + "\n"
		}
	case *agentevents.ApprovalGranted:
		q.id = p.ApprovalID
	case *agentevents.ApprovalRejected:
		q.id = p.ApprovalID
	case *agentevents.ClarificationResolved:
		q.id = p.InterruptID
	case *agentevents.ToolReturned:
		closes = func(open question) bool { return open.call == p.CallID && open.call != "" }
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		closes = func(open question) bool { return open.agent == q.agent && open.agent != "" }
	default:
		return
	}
	if k.questions = slices.DeleteFunc(k.questions, closes); reason == "" {
		return
	}
	if q.call != "" {
		form = `,"toolCallId":` + jsonwire.Quote(q.call) + form
	}
	q.interrupt = `{"id":` + jsonwire.Quote(q.id) + `,"reason":"` + reason + `","message":` + jsonwire.Quote(strings.Trim(message, ": \n")) + form + "}"
	k.questions = append(k.questions, q)
}

// outcome returns the outcome of a run that waits for the open questions.
func (k *kept) outcome() string {
	list := ""
	for _, q := range k.questions {
		list += "," + q.interrupt
	}
	return `{"type":"interrupt","interrupts":[` + strings.TrimPrefix(list, ",") + `]}`
}
