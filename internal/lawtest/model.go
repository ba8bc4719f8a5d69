package lawtest

import (
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
)

// The generator's model of a run has just enough to know the events that are legal next. It follows
// the accepted events, so it is also right in wild runs.

// An identity is the way in which events name their agent.
type identity int

const (
	byAgentID identity = iota
	byNodeRun
	bySpan
)

type agent struct {
	id       string
	identity identity
	started  bool // the log has an agent.started
	open     bool
	ended    bool
	restart  bool // run.resumed lets it start again
	status   agentevents.AgentStatus
	step     int // the highest step in the log
	calls    []*call
	blocks   []*block // blocks with deltas that are not closed

	modelCalls []string // ids of the open ones
}

// An approval is certainly open. Its agent and its call may be empty.
type approval struct {
	id, agent, call string
	asked           *agentevents.ApprovalRequested
}

type call struct {
	id, tool string
	next     int // index of the next arguments delta
}

type block struct {
	kind     agentevents.Kind // of the deltas
	id       string           // may be empty
	numbered bool
	next     int
	text     string
}

// end notes the agent's end.
func (a *agent) end() {
	a.open, a.ended, a.restart, a.blocks = false, true, false, nil
	for _, c := range a.calls {
		c.next = 0
	}
}

// acts reports whether the agent may act.
func (a *agent) acts() bool { return !a.ended && !a.status.Terminal() }

func (a *agent) block(kind agentevents.Kind, id string) *block {
	for _, b := range a.blocks {
		if b.kind == kind && b.id == id {
			return b
		}
	}
	return nil
}

func (a *agent) call(id string) *call {
	for _, c := range a.calls {
		if c.id == id {
			return c
		}
	}
	return nil
}

// envelope returns an event that names the agent.
func (a *agent) envelope(p agentevents.Payload) agentevents.Event {
	ev := agentevents.Event{Payload: p}
	switch a.identity {
	case byAgentID:
		ev.AgentID = a.id
	case byNodeRun:
		ev.NodeRunID = a.id
	case bySpan:
		switch p.(type) {
		case *agentevents.AgentStarted, *agentevents.AgentEnded:
			ev.SpanID = a.id
		default:
			ev.ParentSpanID = a.id
		}
	}
	return ev
}

// agentOf finds the agent of an event, or nil.
func (g *generator) agentOf(ev *agentevents.Event) *agent {
	id := ev.AgentID
	if id == "" {
		id = ev.NodeRunID
	}
	if id == "" {
		switch ev.Payload.(type) {
		case *agentevents.AgentStarted, *agentevents.AgentEnded:
			id = ev.SpanID
		default:
			id = ev.ParentSpanID
		}
	}
	for _, a := range g.agents {
		if a.id == id {
			return a
		}
	}
	return nil
}

// note updates the model by an accepted event.
func (g *generator) note(ev *agentevents.Event) {
	a := g.agentOf(ev)
	again, open := a != nil && a.started, a != nil && a.open
	if a != nil {
		a.note(ev)
	}
	switch p := ev.Payload.(type) {
	case *agentevents.RunStarted:
		g.opened = true
	case *agentevents.RunResumed:
		for _, a := range g.agents {
			a.restart = a.open
		}
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		g.ended = true
		g.approvals = nil
		for _, a := range g.agents {
			a.blocks = nil
		}
	case *agentevents.PhaseStarted:
		at := agentevents.Scope{WorkflowID: ev.WorkflowID, Phase: ev.Phase}
		if !g.resumed[at] || !slices.Contains(g.phases, at) {
			g.phases = append(g.phases, at)
		}
		delete(g.resumed, at)
	case *agentevents.CheckpointResumed:
		for _, at := range g.phases {
			if at.WorkflowID == ev.WorkflowID {
				g.resumed[at] = true
			}
		}
	case *agentevents.PhaseCompleted:
		g.phases = remove(g.phases, agentevents.Scope{WorkflowID: ev.WorkflowID, Phase: ev.Phase})
	case *agentevents.ApprovalRequested:
		g.closeApprovals(func(old approval) bool { return old.id == p.ApprovalID })
		g.granted = slices.DeleteFunc(g.granted, func(old approval) bool { return old.id == p.ApprovalID })
		asked := approval{id: p.ApprovalID, call: p.CallID, asked: p}
		if a != nil {
			asked.agent = a.id
		}
		if !g.ended && !(a != nil && a.ended) {
			g.approvals = append(g.approvals, asked)
		}
	case *agentevents.ToolCalled:
		g.granted = slices.DeleteFunc(g.granted, func(old approval) bool { return old.id == p.ApprovalID })
	case *agentevents.ToolReturned:
		g.closeApprovals(func(old approval) bool { return old.call == p.CallID })
	case *agentevents.AgentEnded:
		g.closeApprovals(func(old approval) bool { return a != nil && old.agent == a.id })
	case *agentevents.NodeCompleted, *agentevents.NodeFailed:
		g.closeApprovals(func(old approval) bool { return open && !a.open && old.agent == a.id })
	case *agentevents.AgentStarted:
		g.closeApprovals(func(old approval) bool { return again && old.agent == a.id })
	case *agentevents.ApprovalGranted:
		for _, old := range g.approvals {
			if old.id == p.ApprovalID && old.call == "" && old.asked.ToolID != "" &&
				!old.asked.Timeout.OK && strings.HasPrefix(old.asked.ArgumentsHash, "sha256:") {
				g.granted = append(g.granted, old)
			}
		}
		g.closeApprovals(func(old approval) bool { return old.id == p.ApprovalID })
	case *agentevents.ApprovalRejected:
		g.closeApprovals(func(old approval) bool { return old.id == p.ApprovalID })
	case *agentevents.HandoffRequested:
		g.handoffs = append(g.handoffs, p)
	case *agentevents.HandoffAccepted:
		for i, h := range g.handoffs {
			if handoffName(h.HandoffID, h.From, h.To) == handoffName(p.HandoffID, p.From, p.To) {
				g.handoffs = slices.Delete(g.handoffs, i, i+1)
				break
			}
		}
	case *agentevents.MessageCreated:
		g.messages = append(g.messages, p.Message)
		g.messageEvents = append(g.messageEvents, ev.ID)
	case *agentevents.CommandReceived:
		g.commands = append(g.commands, ev.ID)
	}
}

func (g *generator) closeApprovals(about func(approval) bool) {
	g.approvals = slices.DeleteFunc(g.approvals, about)
}

func handoffName(id string, from, to agentevents.AgentRef) string {
	if id != "" {
		return id
	}
	return from.AgentID + "→" + to.AgentID
}

// remove removes the first v from the list.
func remove[T comparable](list []T, v T) []T {
	if i := slices.Index(list, v); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// note updates the agent by one of its events.
func (a *agent) note(ev *agentevents.Event) {
	if ev.Step.OK {
		a.step = max(a.step, ev.Step.V)
	}
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		a.started, a.open, a.ended, a.restart, a.status, a.blocks = true, true, false, false, agentevents.StatusThinking, nil
		for _, c := range a.calls {
			c.next = 0 // the deltas of a new attempt count from 0
		}
	case *agentevents.AgentTransition:
		a.status = p.To
	case *agentevents.AgentEnded:
		a.end()
	case *agentevents.NodeCompleted, *agentevents.NodeFailed:
		if a.open && ev.AgentID == "" && ev.NodeRunID != "" {
			a.end()
		}
	case *agentevents.ToolCalled:
		a.calls = append(a.calls, &call{id: p.CallID, tool: p.ToolID})
	case *agentevents.ToolReturned:
		if !p.OneEvent { // with OneEvent it is a call of its own
			a.calls = slices.DeleteFunc(a.calls, func(c *call) bool { return c.id == p.CallID })
		}
	case *agentevents.ModelCalled:
		a.modelCalls = append(a.modelCalls, p.ModelCallID)
	case *agentevents.ModelReturned:
		if !p.OneEvent {
			a.modelCalls = remove(a.modelCalls, p.ModelCallID)
		}
	case *agentevents.ToolArgumentsDelta:
		if c := a.call(p.CallID); c != nil && p.Index.OK {
			c.next = p.Index.V + 1
		}
	case *agentevents.TextDelta:
		a.piece(agentevents.KindTextDelta, p.BlockID, p.Delta, p.Index)
	case *agentevents.AgentReasoningDelta:
		a.piece(agentevents.KindAgentReasoningDelta, p.BlockID, p.Delta, p.Index)
	case *agentevents.TextCompleted:
		a.whole(agentevents.KindTextDelta, p.BlockID)
	case *agentevents.AgentReasoned:
		a.whole(agentevents.KindAgentReasoningDelta, p.BlockID)
	}
}

func (a *agent) piece(kind agentevents.Kind, id, text string, index agentevents.Opt[int]) {
	b := a.block(kind, id)
	if b == nil {
		b = &block{kind: kind, id: id, numbered: index.OK}
		a.blocks = append(a.blocks, b)
	}
	b.text += text
	if index.OK {
		b.next = index.V + 1
	}
}

func (a *agent) whole(kind agentevents.Kind, id string) {
	a.blocks = slices.DeleteFunc(a.blocks, func(b *block) bool { return b.kind == kind && b.id == id })
}
