package dialect

import (
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
)

// Names names agents for documents that have ids of agents and no executions of nodes. An
// agent that only an execution identifies gets the name of the node, and from the node's
// second execution in its run on a number: build, build-2. The zero Names is empty. It
// keeps a name for every such execution.
type Names struct {
	names map[nodeKey]string // by execution
	taken map[nodeKey]int    // how many executions wanted a name
}

type nodeKey struct{ run, id string }

// Of returns the name of the event's agent: its id if it has one, and "" if nothing
// identifies it.
func (n *Names) Of(ev *agentevents.Event) string {
	switch {
	case ev.AgentID != "":
		return ev.AgentID
	case ev.NodeRunID == "":
		return ev.NodeID
	}
	if name := n.names[nodeKey{ev.RunID, ev.NodeRunID}]; name != "" {
		return name
	}
	if ev.NodeID == "" {
		return ev.NodeRunID
	}
	if n.names == nil {
		n.names, n.taken = map[nodeKey]string{}, map[nodeKey]int{}
	}
	node := nodeKey{strings.Clone(ev.RunID), strings.Clone(ev.NodeID)} // clones do not keep the line alive
	name := node
	for n.taken[name] > 0 {
		n.taken[node]++
		name.id = node.id + "-" + strconv.Itoa(n.taken[node])
	}
	n.taken[name]++
	n.names[nodeKey{name.run, strings.Clone(ev.NodeRunID)}] = name.id
	return name.id
}
