package engine

import (
	"maps"
	"time"

	"github.com/agentevents/agentevents"
)

// A Schemer is a Form that returns the JSON Schema of its values. The schema of any other form
// follows from the type of its field.
type Schemer interface{ Schema() map[string]any }

// Schema returns the JSON Schemas of the members of the row's lines by name, and the
// names of those that every line has.
func (r *Row) Schema() (properties map[string]any, required []string) {
	properties = map[string]any{}
	t := r.line
	if r.body != nil {
		t = r.body
	}
	for _, m := range t.members {
		properties[m.Name] = m.schema(r)
		if m.Need {
			required = append(required, m.Name)
		}
	}
	return properties, required
}

func (m *Member) schema(r *Row) map[string]any {
	switch f := m.Form.(type) {
	case Schemer:
		return f.Schema()
	case typeForm:
		return map[string]any{"const": r.Type}
	case *checked:
		schema := m.typeSchema(r)
		if f.schema["enum"] != nil {
			schema = map[string]any{}
		}
		maps.Copy(schema, f.schema)
		return schema
	}
	return m.typeSchema(r)
}

// typeSchema returns the schema that the type of the member's field gives.
func (m *Member) typeSchema(r *Row) map[string]any {
	ev := agentevents.Event{Payload: agentevents.NewPayload(r.Kind)}
	at, _ := m.field.at(&ev, ev.Payload)
	typ := "string"
	switch at.(type) {
	case *agentevents.JSON:
		return map[string]any{}
	case *int, *int64, *uint64, *agentevents.Opt[int], *agentevents.Opt[int64]:
		typ = "integer"
	case *float64, *time.Duration, *agentevents.Opt[float64], *agentevents.Opt[time.Duration]:
		typ = "number"
	case *bool, *agentevents.Opt[bool]:
		typ = "boolean"
	}
	return map[string]any{"type": typ}
}
