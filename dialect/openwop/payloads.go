package openwop

import (
	"cmp"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/facts"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The payloads of registered types that the vocabulary does not have. They are kept as they
// are. When one is written under a schema, the encoder checks its members at the top level.

// brokenPayload returns the rule that a payload breaks, or nil.
func brokenPayload(p Profile, of *facts.Schema, raw string) *agentevents.RuleError {
	switch {
	case of == nil:
		return nil
	case raw == "":
		return breaks(RuleForm, "/payload", "is not an object")
	}
	if fault := of.Check(raw); fault != nil {
		return breach(p, "/payload", fault)
	}
	return nil
}

// shaped returns a payload in the form of the schema. It reports false if that
// needs a member that the payload lacks. A payload that was read under the same
// profile stays as it is, even if it breaks the profile.
func (e *Encoder) shaped(w *engine.Writer, typ, raw string) (string, bool) {
	of := payloadOf(e.p, typ)
	free := of == nil || e.same()
	if of == nil && (e.p == SchemaV1 || !registered2().has(typ)) || !jsonwire.IsObject(raw) {
		return raw, free
	}
	var out dialect.Unknowns
	for name, value := range jsonwire.Members(raw) {
		value = e.shapedID(w, name, value)
		if !free {
			if _, why := wrong(e.p, of, name, value); why != "" {
				continue
			}
		}
		out.Add(name, value)
	}
	if typ == "output.chunk" && e.p == SchemaV2 && !free { // one of version 1 may lack them
		out.Add("runId", jsonwire.Quote(NormalizeID(e.p, RunID, cmp.Or(w.Ev.RunID, unknownRun))))
		out.Add("isLast", "false")
	}
	raw = string(cmp.Or(out.Object(), "{}"))
	return raw, free || of.Fits(raw)
}

// shapedID returns the value of a member, in the form of SchemaV2 if it is an id.
func (e *Encoder) shapedID(w *engine.Writer, name, value string) string {
	form, isID := payloadIDs()[name]
	id := jsonwire.Text(value)
	if e.p != SchemaV2 || !isID || id == "" {
		return value
	}
	if n := normalized(w, form, id); n != id {
		return jsonwire.Quote(n)
	}
	return value
}
