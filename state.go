package agentevents

import (
	"maps"
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// AgentsInOrder returns the agents in the order in which they appeared.
func (r *RunSnapshot) AgentsInOrder() []*AgentSnapshot {
	return r.agentsInOrder(make([]*AgentSnapshot, 0, len(r.Agents)))
}

// agentsInOrder is AgentsInOrder in memory of the caller's.
func (r *RunSnapshot) agentsInOrder(agents []*AgentSnapshot) []*AgentSnapshot {
	agents = slices.AppendSeq(agents, maps.Values(r.Agents))
	slices.SortFunc(agents, func(a, b *AgentSnapshot) int {
		if a.Order != b.Order {
			return a.Order - b.Order
		}
		return strings.Compare(a.AgentID, b.AgentID)
	})
	return agents
}

// define takes nodes, edges and initial state from a flow definition. What it
// does not understand it leaves out: a definition belongs to its runtime.
func (f *Fold) define(def JSON) {
	r := f.s
	for name, value := range jsonwire.Members(string(def)) {
		switch name {
		case "nodes":
			for node := range jsonwire.Elements(value) {
				if id := idOf(node); id != "" {
					r.NodeStatus[f.m.word(id)] = NodeStatusPending
				}
			}
		case "edges":
			for edge := range jsonwire.Elements(value) {
				id, from, to := "", "", ""
				for name, value := range jsonwire.Members(edge) {
					switch name {
					case "id", "edgeId":
						id = jsonwire.Text(value)
					case "from":
						from = jsonwire.Text(value)
					case "to":
						to = jsonwire.Text(value)
					}
				}
				if id != "" || from != "" && to != "" {
					r.EdgeStatus[f.edgeKey(id, from, to)] = EdgeStatusPending
				}
			}
		case "state":
			for name, value := range jsonwire.Members(value) {
				r.State[f.m.word(name)] = f.json(JSON(value), true)
			}
		}
	}
}

// idOf returns the id of a node: a string, or an object's id or nodeId. It may
// be cut from the node's text.
func idOf(node string) string {
	id := jsonwire.Text(node)
	if id != "" {
		return id
	}
	for name, value := range jsonwire.Members(node) {
		if name == "id" || name == "nodeId" {
			id = jsonwire.Text(value)
		}
	}
	return id
}

// patch applies a patch to the state. The order of keys inside a value is
// kept.
func (r *RunSnapshot) patch(p *StatePatched) {
	if p.Value == "" || p.checkMore() != nil {
		return // nothing to write, or too deep to follow: the violation says so
	}
	value := own(p.Value)
	if p.Path == "" {
		if p.Op == PatchSet {
			clear(r.State)
		}
		for name, v := range jsonwire.Members(string(value)) {
			r.State[name] = JSON(v)
		}
		return
	}
	first, rest, nested := strings.Cut(p.Path, ".")
	var path []string
	if nested {
		path = strings.Split(rest, ".")
	}
	r.State[strings.Clone(first)] = patched(r.State[first], path, p.Op, value)
}

// patched returns old with value set at, or merged into, path. Whatever stands
// in the way of the path and is no object is replaced by one.
func patched(old JSON, path []string, op PatchOp, value JSON) JSON {
	if len(path) == 0 {
		if op == PatchMerge && isObject(old) && isObject(value) {
			for name, v := range jsonwire.Members(string(value)) {
				old = setMember(old, name, JSON(v))
			}
			return old
		}
		return value
	}
	if !isObject(old) {
		old = "{}"
	}
	var inner JSON
	for name, v := range jsonwire.Members(string(old)) {
		if name == path[0] {
			inner = JSON(v)
		}
	}
	return setMember(old, path[0], patched(inner, path[1:], op, value))
}

func isObject(j JSON) bool { return strings.HasPrefix(string(j), "{") }

// setMember returns the object with a member replaced in place or appended.
func setMember(object JSON, name string, value JSON) JSON {
	out := []byte{'{'}
	add := func(n, v string) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonwire.AppendString(out, n), ':'), v...)
	}
	found := false
	for n, v := range jsonwire.Members(string(object)) {
		if n == name {
			v, found = string(value), true
		}
		add(n, v)
	}
	if !found {
		add(name, string(value))
	}
	return JSON(append(out, '}'))
}
