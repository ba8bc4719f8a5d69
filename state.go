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
	eachMember(def, func(name string, value JSON) {
		switch name {
		case "nodes":
			eachElement(value, func(node JSON) {
				if id := idOf(node); id != "" {
					r.NodeStatus[f.m.word(id)] = NodePending
				}
			})
		case "edges":
			eachElement(value, func(edge JSON) {
				id, from, to := "", "", ""
				eachMember(edge, func(name string, value JSON) {
					switch name {
					case "id", "edgeId":
						id = stringOf(value)
					case "from":
						from = stringOf(value)
					case "to":
						to = stringOf(value)
					}
				})
				if id != "" || from != "" && to != "" {
					r.EdgeStatus[f.edgeKey(id, from, to)] = EdgePending
				}
			})
		case "state":
			eachMember(value, func(name string, value JSON) { r.State[f.m.word(name)] = f.json(value, true) })
		}
	})
}

// idOf returns the id of a node: a string, or an object's id or nodeId. It may
// be cut from the node's text.
func idOf(node JSON) string {
	if id := stringOf(node); id != "" {
		return id
	}
	id := ""
	eachMember(node, func(name string, value JSON) {
		if name == "id" || name == "nodeId" {
			id = stringOf(value)
		}
	})
	return id
}

// stringOf returns the text of a JSON string, and none of anything else.
func stringOf(j JSON) string {
	if !strings.HasPrefix(string(j), `"`) {
		return "" // without the cost of an error
	}
	var s jsonwire.Scanner
	s.Reset(string(j))
	v, err := s.String()
	if err != nil {
		return ""
	}
	return v
}

// eachMember calls f for the members of an object; anything else has none.
func eachMember(j JSON, f func(name string, value JSON)) {
	var s jsonwire.Scanner
	s.Reset(string(j))
	if s.Object() != nil {
		return
	}
	for {
		name, ok, err := s.Member()
		if err != nil || !ok {
			return
		}
		raw, err := s.Raw()
		if err != nil {
			return
		}
		f(name, JSON(raw))
	}
}

// eachElement calls f for the elements of an array; anything else has none.
func eachElement(j JSON, f func(value JSON)) {
	var s jsonwire.Scanner
	s.Reset(string(j))
	if s.Array() != nil {
		return
	}
	for {
		ok, err := s.Elem()
		if err != nil || !ok {
			return
		}
		raw, err := s.Raw()
		if err != nil {
			return
		}
		f(JSON(raw))
	}
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
		eachMember(value, func(name string, v JSON) { r.State[name] = v })
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
			eachMember(value, func(name string, v JSON) { old = setMember(old, name, v) })
			return old
		}
		return value
	}
	if !isObject(old) {
		old = "{}"
	}
	var inner JSON
	eachMember(old, func(name string, v JSON) {
		if name == path[0] {
			inner = v
		}
	})
	return setMember(old, path[0], patched(inner, path[1:], op, value))
}

func isObject(j JSON) bool { return strings.HasPrefix(string(j), "{") }

// setMember returns the object with a member replaced in place or appended.
func setMember(object JSON, name string, value JSON) JSON {
	out := []byte{'{'}
	add := func(n string, v JSON) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonwire.AppendString(out, n), ':'), v...)
	}
	found := false
	eachMember(object, func(n string, v JSON) {
		if n == name {
			v, found = value, true
		}
		add(n, v)
	})
	if !found {
		add(name, value)
	}
	return JSON(append(out, '}'))
}
