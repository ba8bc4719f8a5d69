package dialect

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/recent"
)

// Names names agents for documents that have ids of agents and no executions of nodes. An
// agent that only an execution identifies gets the name of the node, and from the node's
// second execution in its run on a number: build, build-2. An agent that starts without an
// id has the span of its start for a name, also when later events name it. The zero Names is
// empty. It keeps the names of the latest executions, agents and nodes, as [MaxCalls] bounds it.
type Names struct {
	names recent.Map[nodeKey, string] // by execution
	taken recent.Map[nodeKey, int]    // how many executions wanted a name
	ids   recent.Map[nodeKey, string] // names by the ids of agents
	spans recent.Map[nodeKey, string] // of agents that started without an id: the id that the first event has, or ""
}

type nodeKey struct{ run, id string }

// Of returns the name of the event's agent: its id if it has one, and "" if nothing
// identifies it.
func (n *Names) Of(ev *agentevents.Event) string {
	switch {
	case ev.AgentID != "":
		return n.named(ev)
	case ev.NodeRunID == "":
		return cmp.Or(n.spanned(ev), ev.NodeID)
	}
	if name, _ := n.names.Use(nodeKey{ev.RunID, ev.NodeRunID}); name != "" {
		return name
	}
	if ev.NodeID == "" { // later events of the execution may name the node, and keep the name
		id := strings.Clone(ev.NodeRunID)
		n.names.Set(nodeKey{strings.Clone(ev.RunID), id}, id)
		return id
	}
	node := nodeKey{strings.Clone(ev.RunID), strings.Clone(ev.NodeID)} // clones do not keep the line alive
	name := node
	for n.taken.Of(name) > 0 {
		wanted := n.taken.Of(node) + 1
		n.taken.Set(node, wanted)
		name.id = node.id + "-" + strconv.Itoa(wanted)
	}
	n.taken.Set(name, n.taken.Of(name)+1)
	n.names.Set(nodeKey{name.run, strings.Clone(ev.NodeRunID)}, name.id)
	return name.id
}

// Named returns the name of the agent of that id.
func (n *Names) Named(run, id string) string { return cmp.Or(n.ids.Of(nodeKey{run, id}), id) }

// spanned returns the name of the agent of an event that only a span may identify.
func (n *Names) spanned(ev *agentevents.Event) string {
	switch ev.Payload.(type) {
	case *agentevents.AgentStarted:
		if ev.SpanID != "" {
			n.spans.Set(nodeKey{strings.Clone(ev.RunID), strings.Clone(ev.SpanID)}, "")
		}
		return ev.SpanID
	case *agentevents.AgentEnded:
		return ev.SpanID
	}
	if _, ok := n.spans.Use(nodeKey{ev.RunID, ev.ParentSpanID}); ok {
		return ev.ParentSpanID
	}
	return ""
}

// named returns the name of the agent of an event with an id. The first one in the span of
// a start without an id names that agent, as the rules of the library see it. An end in such
// a span ends that agent, also if another one has the id.
func (n *Names) named(ev *agentevents.Event) string {
	known, _ := n.ids.Use(nodeKey{ev.RunID, ev.AgentID})
	name := ""
	switch ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.HandoffAccepted,
		*agentevents.ApprovalGranted, *agentevents.ApprovalRejected, *agentevents.ClarificationResolved:
		// they are of another agent, or of a person
	case *agentevents.AgentEnded:
		name = n.nameless(ev, ev.SpanID)
	default:
		if known != "" { // as mostly
			return known
		}
		if info, _ := ev.Kind().Info(); info.Droppable {
			return ev.AgentID
		}
		name = n.nameless(ev, ev.SpanID, ev.ParentSpanID)
	}
	if known == "" {
		known = strings.Clone(cmp.Or(name, ev.AgentID))
		n.ids.Set(nodeKey{strings.Clone(ev.RunID), strings.Clone(ev.AgentID)}, known)
	}
	return cmp.Or(name, known)
}

// nameless returns the first of the spans in which an agent started without an id, if the
// event is the first one that names the agent, or "".
func (n *Names) nameless(ev *agentevents.Event, spans ...string) string {
	for _, span := range spans {
		id, ok := n.spans.Use(nodeKey{ev.RunID, span})
		switch {
		case !ok:
			continue
		case id == "":
			n.spans.Set(nodeKey{strings.Clone(ev.RunID), strings.Clone(span)}, strings.Clone(ev.AgentID))
		case id != ev.AgentID:
			return ""
		}
		return span
	}
	return ""
}
