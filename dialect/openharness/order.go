package openharness

import "github.com/agentevents/agentevents/dialect/internal/engine"

// order finds lines of an execution that are out of order (section 1.1): see [RuleOrder].
type order struct{ nodes engine.Recent[string, place] }

// A place is how far an execution has come.
type place uint8

const (
	nodeStarted  place = iota + 1 // its agent has not
	agentStarted                  // also after the agent's end
	nodeEnded
)

const (
	behindNode  = "stands after the end of its node; legal: node:start first"
	beforeAgent = "stands before the agent:start of its execution; legal: agent:start or agent:error"
)

// fault returns the error of a line of an execution that stands in the wrong place, or "". A line
// that is marked late may stand after the end of its node.
func (o *order) fault(typ, run string, late bool) string {
	switch at := o.nodes.Of(run); {
	case !isAgent(typ):
	case at == nodeEnded && !late:
		return behindNode
	case at == nodeStarted && typ != "agent:start" && typ != "agent:error":
		return beforeAgent
	}
	return ""
}

// line notes a line of an execution.
func (o *order) line(typ, run string) {
	switch {
	case typ == "flow:start":
		o.nodes = engine.Recent[string, place]{} // another run
	case typ == "node:start":
		o.nodes.Set(run, nodeStarted)
	case typ == "node:complete", typ == "node:error":
		o.nodes.Set(run, nodeEnded)
	case typ == "agent:start" && o.nodes.Of(run) != 0 && o.nodes.Of(run) != nodeEnded:
		o.nodes.Set(run, agentStarted)
	}
}
