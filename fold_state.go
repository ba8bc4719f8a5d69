package agentevents

import (
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
	for _, a := range r.Agents {
		if a != nil { // in a snapshot that was made by hand
			agents = append(agents, a)
		}
	}
	slices.SortFunc(agents, func(a, b *AgentSnapshot) int {
		if a.Resume.order != b.Resume.order {
			return a.Resume.order - b.Resume.order
		}
		return strings.Compare(a.AgentID, b.AgentID)
	})
	return agents
}

// define takes nodes, edges and initial state from a flow definition. What it
// does not understand it leaves out: a definition belongs to its runtime.
func (v *view) define(sub *subject, def JSON) {
	for name, value := range jsonwire.Members(string(def)) {
		switch name {
		case "nodes":
			for node := range jsonwire.Elements(value) {
				if id := idOf(node); id != "" {
					v.setNode(id, NodeStatusPending)
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
					put(&v.s.EdgeStatus, v.edgeKey(id, from, to), EdgeStatusPending)
				}
			}
		case "state":
			for name, value := range jsonwire.Members(value) {
				v.state.set(strings.Clone(name), v.copyJSON(sub, JSON(value)))
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

// statePatched applies a patch to the state. The order of keys inside a value is
// kept.
func (v *view) statePatched(ev *Event, _ *subject) {
	p := ev.Payload.(*StatePatched)
	if p.Value == "" || p.checkMore() != nil {
		return // nothing to write, or too deep to follow: the violation says so
	}
	value := soundJSON(p.Value)
	if p.Path == "" {
		if p.Op == PatchSet {
			v.state = stateObject{}
		}
		for name, text := range jsonwire.Members(string(value)) {
			v.state.set(name, JSON(text))
		}
		return
	}
	object, path := &v.state, strings.Clone(p.Path)
	for {
		name, rest, nested := strings.Cut(path, ".")
		at := object.value(name)
		if !nested {
			at.write(p.Op, value)
			return
		}
		object, path = at.open(), rest
	}
}

// A stateObject is an object of the state whose members were written one by one.
// It is spread out so that each costs the same, however many there are.
type stateObject struct {
	names  []string
	values []*stateValue
	at     map[string]int
}

// A stateValue is text, or an object that a patch went into.
type stateValue struct {
	text   JSON // empty when it is an object, or has not been written yet
	object *stateObject
}

// value returns the value of a member, which is added if need be.
func (o *stateObject) value(name string) *stateValue {
	if i, ok := o.at[name]; ok {
		return o.values[i]
	}
	put(&o.at, name, len(o.names))
	o.names, o.values = append(o.names, name), append(o.values, &stateValue{})
	return o.values[len(o.values)-1]
}

func (o *stateObject) set(name string, text JSON) { *o.value(name) = stateValue{text: text} }

func (o *stateObject) setAll(members map[string]JSON) {
	for name, text := range members {
		o.set(name, text)
	}
}

// open returns the object that the value is. Whatever else it is, an empty object
// takes its place.
func (v *stateValue) open() *stateObject {
	if v.object == nil {
		v.object = &stateObject{}
		for name, text := range jsonwire.Members(string(v.text)) { // none if it is no object
			v.object.set(name, JSON(text))
		}
		v.text = ""
	}
	return v.object
}

func (v *stateValue) isObject() bool {
	return v.object != nil || strings.HasPrefix(string(v.text), "{")
}

// write sets the value, or merges the members of an object into it.
func (v *stateValue) write(op PatchOp, value JSON) {
	if op != PatchMerge || !v.isObject() || !strings.HasPrefix(string(value), "{") {
		*v = stateValue{text: value}
		return
	}
	for name, text := range jsonwire.Members(string(value)) {
		v.open().set(name, JSON(text))
	}
}

// members returns the members as text.
func (o *stateObject) members() map[string]JSON {
	if len(o.names) == 0 {
		return nil
	}
	out := make(map[string]JSON, len(o.names))
	for i, name := range o.names {
		if v := o.values[i]; v.object == nil {
			out[name] = v.text
		} else {
			out[name] = JSON(v.append(nil))
		}
	}
	return out
}

func (v *stateValue) append(dst []byte) []byte {
	if v.object == nil {
		return append(dst, v.text...)
	}
	dst = append(dst, '{')
	for i, name := range v.object.names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = v.object.values[i].append(append(jsonwire.AppendString(dst, name), ':'))
	}
	return append(dst, '}')
}
