package kahn

import (
	"encoding/json"
)

// Schema returns the JSON Schema (draft 2020-12) of a line, KAHN's
// agent_transitions schema. It is made from the tables that the encoder and the
// strict decoder use.
//
// Extra members are allowed. The schema of one line cannot state the order of the
// statuses, or that steps do not go back.
func Schema() []byte {
	oneOf := make([]any, len(variants))
	defs := map[string]any{
		"run_id":        map[string]any{"type": "string", "pattern": PatternRunID},
		"agent_id":      map[string]any{"type": "string", "pattern": PatternAgentID},
		"checkpoint_id": map[string]any{"type": "string", "pattern": PatternCheckpointID},
		"agent_status":  map[string]any{"enum": statuses},
		"agent_outcome": map[string]any{"enum": outcomes},
		"audit_result":  map[string]any{"enum": results},
	}
	for i, v := range variants {
		properties := map[string]any{}
		required := []string{}
		for m := 1; m <= numMembers; m++ {
			if !(base | v.members).has(m) {
				continue
			}
			properties[memberName(m)] = memberSchema(i, m)
			if !v.optional.has(m) {
				required = append(required, memberName(m))
			}
		}
		oneOf[i] = map[string]any{"$ref": "#/$defs/" + v.event}
		defs[v.event] = map[string]any{"type": "object", "properties": properties, "required": required}
	}
	text, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "KAHN agent transition events",
		"type":    "object",
		"oneOf":   oneOf,
		"$defs":   defs,
	}, "", "  ")
	if err != nil {
		panic(err) // cannot happen: there are only strings and maps
	}
	return append(text, '\n')
}

// memberSchema returns the schema of one member of variant v.
func memberSchema(v, m int) any {
	ref := func(name string) any { return map[string]any{"$ref": "#/$defs/" + name} }
	switch m {
	case mTS:
		return map[string]any{"type": "string", "format": "date-time", "pattern": PatternTime}
	case mRunID:
		return ref("run_id")
	case mEvent:
		return map[string]any{"const": variants[v].event}
	case mAgentID:
		if v == vAudit {
			return map[string]any{"anyOf": []any{ref("agent_id"), map[string]any{"type": "null"}}}
		}
		return ref("agent_id")
	case mCheckpointID:
		return ref("checkpoint_id")
	case mFrom, mTo:
		return ref("agent_status")
	case mResult:
		return ref("audit_result")
	case mOutcome:
		return ref("agent_outcome")
	case mStep, mTotalSteps, mTotalToolCalls, mTotalAudits, mAuditsPassed, mAuditsFailed:
		return map[string]any{"type": "integer", "minimum": 0}
	case mDuration, mTotalDuration:
		return map[string]any{"type": "number", "minimum": 0}
	case mScore:
		return map[string]any{"type": "number", "minimum": 0, "maximum": 1}
	case mOK:
		return map[string]any{"type": "boolean"}
	case mEvidence:
		return map[string]any{"type": "object"}
	case mInputSummary, mOutputSummary:
		return map[string]any{"type": "string", "maxLength": MaxSummary}
	}
	return map[string]any{"type": "string"}
}
