package spans

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
)

// This file has the agent of each event. The rules are the same as in a fold: see the root package's machine.

// find is the agent with the key, or nil. Most events are of the agent of the event before.
func (m *Mapper) find(key string) *agent {
	if a := m.recent; a != nil && a.id == key {
		return a
	}
	m.recent = m.agents[key]
	return m.recent
}

// who is the key of the event's agent, or "": see [Mapper].
func (m *Mapper) who(ev *agentevents.Event) string {
	if ev.AgentID != "" {
		if a := m.spanOf(ev); a != nil {
			return a.id
		}
		return cmp.Or(m.named[ev.AgentID], ev.AgentID)
	}
	if ev.NodeRunID != "" {
		return ev.NodeRunID
	}
	switch ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		return cmp.Or(m.starts[ev.SpanID], ev.SpanID)
	}
	if a := m.agents[m.starts[ev.ParentSpanID]]; a != nil && a.unnamed {
		return a.id
	}
	if ev.ParentSpanID != "" && m.agents[ev.ParentSpanID] != nil {
		return ev.ParentSpanID
	}
	return ""
}

// spanOf is the agent of an event with an id, if the span of the event decides it: several agents
// have the id, or the agent that started in the span has none yet.
func (m *Mapper) spanOf(ev *agentevents.Event) *agent {
	if !m.bare {
		return nil
	}
	switch ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.HandoffAccepted: // another agent comes
		return nil
	}
	for _, span := range [...]string{ev.SpanID, ev.ParentSpanID} {
		if a := m.agents[m.twins[span]]; a != nil && a.twin == ev.AgentID {
			return a
		}
	}
	switch ev.Payload.(type) {
	case *agentevents.ApprovalGranted, *agentevents.ApprovalRejected, *agentevents.ClarificationResolved: // of a person
		return nil
	}
	a := m.agents[m.starts[ev.SpanID]]
	if a == nil {
		a = m.agents[m.starts[ev.ParentSpanID]]
	}
	_, end := ev.Payload.(*agentevents.AgentEnded)
	if a == nil && end && ev.SpanID != "" && m.agents[cmp.Or(m.named[ev.AgentID], ev.AgentID)] == nil {
		return m.onlyNameless()
	}
	if a == nil || !a.spanned {
		return nil
	}
	other := m.agents[cmp.Or(m.named[ev.AgentID], ev.AgentID)]
	if other == nil || other.ended ||
		a.begun == ev.SpanID && (end ||
			other.atWork() && other.begun != "" && other.begun != ev.SpanID && other.begun != ev.ParentSpanID) {
		return a
	}
	return nil
}

// onlyNameless is the one agent at work that has no id, or nil: the end of an agent that nobody knows, in
// a span that nobody knows, is its end.
func (m *Mapper) onlyNameless() (only *agent) {
	if len(m.starts) > maxSpans {
		return nil
	}
	for _, id := range m.starts {
		switch a := m.agents[id]; {
		case a == nil || !a.spanned || !a.atWork():
		case only != nil:
			return nil
		default:
			only = a
		}
	}
	return only
}

func (a *agent) atWork() bool { return a.started && !a.ended && !a.span.ended }

// identify notes the id of the event's agent, if it has only a span.
func (m *Mapper) identify(ev *agentevents.Event) {
	if ev.AgentID == "" {
		return
	}
	a := m.spanOf(ev)
	if info, _ := ev.Kind().Info(); a == nil || info.Droppable {
		return
	}
	if a.spanned {
		switch other := m.agents[cmp.Or(m.named[ev.AgentID], ev.AgentID)]; {
		case other == nil:
			a.spanned = false
			m.titled(a, ev.AgentID)
			put(&m.named, ev.AgentID, a.id)
		case a.twin == "" && other.atWork():
			a.twin = ev.AgentID
			m.within(a, a.begun)
			m.titled(a, ev.AgentID)
		}
	}
	if a.twin == ev.AgentID {
		m.within(a, ev.SpanID)
	}
}

// titled gives the span of an agent the id that an event has.
func (m *Mapper) titled(a *agent, id string) {
	if a.given == "" {
		a.name = word(id)
		a.span.set(str(AttrAgent, a.name))
	}
	a.span.set(str(m.o.Semconv.agentID(), cut(id, maxText)))
}

// starting notes the span that an agent starts in. It stands for the agent that started last in it.
func (m *Mapper) starting(a *agent, ev *agentevents.Event) {
	a.spanned = ev.AgentID == "" && ev.NodeRunID == "" && a.id != ""
	if a.spanned {
		a.unnamed, m.bare = true, true
		if ref := ev.Payload.(*agentevents.AgentStarted).Agent.V.AgentID; ref != "" {
			a.twin = ref
			m.within(a, ev.SpanID)
		}
	}
	if ev.SpanID == "" || ev.SpanID == a.begun {
		return
	}
	if m.starts[a.begun] == a.id {
		delete(m.starts, a.begun)
	}
	if other := m.agents[m.starts[ev.SpanID]]; other != nil {
		other.begun = ""
	}
	a.begun = ev.SpanID
	put(&m.starts, strings.Clone(ev.SpanID), a.id)
}

// maxSpans is how many spans of a twin are known.
const maxSpans = 64

// within records a span of a twin, because ends inside it may not name the surrounding span.
func (m *Mapper) within(a *agent, span string) {
	if span == "" || m.twins[span] == a.id {
		return
	}
	if len(a.in) == maxSpans {
		delete(m.twins, a.in[1]) // the first span is where it started
		a.in = slices.Delete(a.in, 1, 2)
	}
	span = strings.Clone(span)
	a.in = append(a.in, span)
	put(&m.twins, span, a.id)
}

// spawner is the agent that the event's agent works for, or nil: for a start the one that started in
// the span around, else the one that the event names.
func (m *Mapper) spawner(ev *agentevents.Event) *agent {
	if _, start := ev.Payload.(*agentevents.AgentStarted); start {
		if a := m.agents[m.starts[ev.ParentSpanID]]; a != nil {
			return a
		}
	}
	if ev.ParentAgentID == "" {
		return nil
	}
	return m.agents[cmp.Or(m.named[ev.ParentAgentID], ev.ParentAgentID)]
}

// agent returns the event's agent, or nil. Where several nodes have it at a time, the event's node
// decides.
func (m *Mapper) agent(ev *agentevents.Event) *agent {
	id := m.who(ev)
	if len(m.own) > 0 && (ev.NodeID != "" || ev.NodeRunID != "") {
		if a := m.own[m.open[nodeKey(ev)]]; a != nil && a.id == id {
			return a
		}
	}
	return m.find(id)
}

// known is the id of the event's agent, if it has one or is known, else "". A twin has its span for
// an id, as the span tells twins apart.
func (m *Mapper) known(ev *agentevents.Event) string {
	if a := m.agent(ev); a != nil && (ev.AgentID == "" || a.twin != "") {
		return a.id
	}
	return ev.AgentID
}

// called is the name of the event's agent in few words, or "".
func (m *Mapper) called(ev *agentevents.Event) string {
	if a := m.agent(ev); a != nil {
		return a.name
	}
	return word(ev.AgentID)
}
