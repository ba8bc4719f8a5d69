package agentevents

import (
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// define takes nodes, edges and initial state from a flow definition. It skips
// what it does not understand: each runtime has definitions of its own.
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
				v.state.Set(strings.Clone(name), string(v.copyJSON(sub, JSON(value))))
			}
		}
	}
}

// idOf returns the id of a node in a definition: the node itself if it is a
// string, else its member id or nodeId. The id may be a piece of the node's text.
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

// statePatched applies a patch to the state. It keeps the order of keys inside a
// value.
func (v *view) statePatched(ev *Event, _ *subject) {
	p := ev.Payload.(*StatePatched)
	if p.checkMore() != nil {
		return // without a value, or with too long a path: a violation says so
	}
	whole := jsonwire.Path(p.Path)
	if p.Op == PatchRemove {
		v.removeState(whole)
		return
	}
	value := soundJSON(p.Value)
	if whole == "" {
		if p.Op == PatchSet {
			v.state = jsonwire.Object{}
		}
		for name, text := range jsonwire.Members(string(value)) {
			v.state.Set(name, text)
		}
		return
	}
	name, path, nested := strings.Cut(strings.Clone(whole), ".")
	for at := v.state.Value(name); ; {
		if nested && at.SetNested(path, string(value)) {
			return
		}
		if nested {
			name, path, nested = strings.Cut(path, ".")
			at = at.At(name)
			continue
		}
		if p.Op == PatchMerge && at.IsObject() && jsonwire.IsObject(string(value)) {
			for name, text := range jsonwire.Members(string(value)) {
				at.Open().Set(name, text)
			}
		} else {
			at.Set(string(value))
		}
		return
	}
}

// removeState removes the member at a path, or the whole state. A value that is not
// there leaves no trace.
func (v *view) removeState(path string) {
	if path == "" {
		v.state = jsonwire.Object{}
		return
	}
	name, path, nested := strings.Cut(path, ".")
	object := &v.state
	for nested && object.Has(name) {
		at := object.Value(name)
		name, path, nested = strings.Cut(path, ".")
		for nested && at.Element(name) != nil {
			at = at.Element(name)
			name, path, nested = strings.Cut(path, ".")
		}
		if !at.IsObject() {
			return
		}
		object = at.Open()
	}
	if !nested {
		object.Remove(name)
	}
}

// stateText returns the members of the state as JSON texts.
func stateText(o *jsonwire.Object) map[string]JSON {
	var out map[string]JSON
	for name, text := range o.All() {
		put(&out, name, JSON(text))
	}
	return out
}
