package openharness

// order finds lines of an execution that are out of order (section 1.1): see [RuleOrder].
type order struct{ nodes map[string]place }

// A place is how far an execution has come.
type place uint8

const (
	nodeStarted  place = iota + 1 // its agent has not
	agentStarted                  // also after the agent's end
	nodeEnded
)

const (
	behindNode  = "stands behind the end of its node; legal: node:start first"
	beforeAgent = "stands before the agent:start of its execution; legal: agent:start or agent:error"
)

// fault says what is wrong with the place of a line of an execution, or "". A line that says
// that it is late may stand behind the end of its node.
func (o *order) fault(typ, run string, late bool) string {
	switch at := o.nodes[run]; {
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
		o.nodes = nil // another run
	case typ == "node:start":
		o.set(run, nodeStarted)
	case typ == "node:complete", typ == "node:error":
		o.set(run, nodeEnded)
	case typ == "agent:start" && o.nodes[run] != 0 && o.nodes[run] != nodeEnded:
		o.set(run, agentStarted)
	}
}

// set notes how far an execution has come. Everything is forgotten when too many never
// end.
func (o *order) set(run string, at place) {
	if o.nodes == nil || len(o.nodes) >= maxRuns {
		o.nodes = map[string]place{}
	}
	o.nodes[run] = at
}
