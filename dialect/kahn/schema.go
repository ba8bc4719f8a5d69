package kahn

import "encoding/json"

// Schema returns the JSON Schema (draft 2020-12) of a line, KAHN's
// agent_transitions schema. It is made from the table that the encoder and the
// strict decoder use.
//
// Extra members are allowed. The schema of one line cannot state the order of the
// statuses, or that steps do not go back.
func Schema() []byte {
	type object = map[string]any
	defs := object{
		"agent_id":      object{"type": "string", "pattern": PatternAgentID},
		"checkpoint_id": object{"type": "string", "pattern": PatternCheckpointID},
		"agent_status":  object{"enum": statuses},
		"agent_outcome": object{"enum": outcomes},
		"audit_result":  object{"enum": results},
	}
	names := map[string]string{
		"agent_id": "agent_id", "checkpoint_id": "checkpoint_id",
		"from": "agent_status", "to": "agent_status", "outcome": "agent_outcome", "result": "audit_result",
	}
	ref := func(name string) object { return object{"$ref": "#/$defs/" + name} }
	var oneOf []any
	for i := range format.Rows {
		row := &format.Rows[i]
		properties, required := row.Schema()
		for name := range properties {
			if def := names[name]; def != "" {
				properties[name] = ref(def)
			}
		}
		if row.Type == "audit_checkpoint" {
			properties["agent_id"] = object{"anyOf": []any{ref("agent_id"), object{"type": "null"}}}
		}
		oneOf = append(oneOf, ref(row.Type))
		defs[row.Type] = object{"type": "object", "properties": properties, "required": required}
	}
	text, _ := json.MarshalIndent(object{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "KAHN agent transition events",
		"type":    "object",
		"oneOf":   oneOf,
		"$defs":   defs,
	}, "", "  ") // strings and maps give no error
	return append(text, '\n')
}
