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

// line notes a line of an execution. It says what is wrong with its place, or "".
func (o *order) line(typ, run string) string {
	at := o.nodes[run]
	switch {
	case typ == "flow:start":
		o.nodes = nil // another run
	case typ == "node:start":
		o.set(run, nodeStarted)
	case typ == "node:complete", typ == "node:error":
		o.set(run, nodeEnded)
	case !isAgent(typ):
	case at == nodeEnded:
		return "stands behind the end of its node; legal: node:start first"
	case at == nodeStarted && typ == "agent:start":
		o.set(run, agentStarted)
	case at == nodeStarted && typ != "agent:error":
		return "stands before the agent:start of its execution; legal: agent:start or agent:error"
	}
	return ""
}

// set notes how far an execution has come. Everything is forgotten when too many never
// end.
func (o *order) set(run string, at place) {
	if o.nodes == nil || len(o.nodes) >= maxRuns {
		o.nodes = map[string]place{}
	}
	o.nodes[run] = at
}
