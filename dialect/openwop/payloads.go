package openwop

import (
	"cmp"
	"math"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/wire"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The payloads of registered types that the vocabulary does not have. They are
// kept as they are. When one is written under a schema, the encoder checks its
// names at the top level and its ids. It checks other values only where the two
// schemas describe them differently.

// A shape describes the members of a payload. Names stand between blanks.
type shape struct {
	typ       string // as SchemaV1 spells it
	need, may string
	need2     string  // what SchemaV2 requires besides
	may2      string  // what SchemaV2 allows besides
	sealed    bool    // SchemaV1 closes the payload, and SchemaV2 even for the extensions of hatch
	only      Profile // the schema that the shape is for, if it is only one
	forms     []part  // members that it may have, too, but in a form
}

// payloads are the shapes of both schemas.
var payloads = []shape{
	{typ: "agent.invocation.started", need: " invocationId agentId source ",
		may2: " modelClass resolvedModel resolvedProvider resolvedAgentVersion resolvedChannel toolSurfaceCount memoryBound "},
	{typ: "agent.invocation.completed", need: " invocationId agentId outcome ", may2: " schemaValidated confidence enqueuedRunId ",
		forms: []part{may("outcome", oneOf("completed", "handed-off", "escalated", "refused", "failed"))}},
	{typ: "agent.memory.consolidated", need: " memoryRef inputCount outputCount ", may2: " mergedIds trigger ",
		forms: []part{may("trigger", oneOf("host-managed", "scheduled", "on-demand"))}},
	{typ: "agent.promptResolved", need: " nodeId kind chain resolved ", may: " agentId causationHostId ", sealed: true,
		forms: []part{may("kind", oneOf("system", "user", "few-shot", "schema-hint"))}},
	{typ: "agent.verified", need: " agentId target verdict ", may: " criteria confidence causationHostId ", sealed: true, only: SchemaV2},
	{typ: "approval.overridden", need: " gateId principal reason ", sealed: true, only: SchemaV1},
	{typ: "approval.overridden", need: " nodeId interruptId ", only: SchemaV2, forms: resolved},
	{typ: "approval.received", need: " nodeId action ", only: SchemaV1},
	{typ: "channel.written", need: " channel value reducer writtenAt ", sealed: true, forms: written},
	{typ: "conversation.closed", need: " conversationId ", may2: " reason turnCount "},
	{typ: "conversation.exchanged", need: " conversationId turnIndex ", may2: " turn outcome "},
	{typ: "conversation.opened", need: " conversationId ", may2: " openedBy agentId participants initialTurn schema capabilities "},
	{typ: "core.workflowChain.confidence-escalated", need: " confidence floor escalationKind parentRunId ",
		may: " workerId originalDecision causationHostId ", sealed: true},
	{typ: "interrupt.requested", need: " kind key data ", may: " resumeSchema timeoutMs ", sealed: true},
	{typ: "interrupt.resolved", need: " nodeId interruptId ", forms: resolved},
	{typ: "log.appended", need: " level message ", may2: " nodeId fields "},
	{typ: "memory.compacted", need: " memoryRef outputId sourceCount trigger byteSize ", only: SchemaV1,
		forms: []part{may("trigger", oneOf("host-managed", "client-requested", "both"))}},
	{typ: "memory.written", need: " memoryRef memoryId ", may2: " nodeId agentId tags "},
	{typ: "node.cancelled", need: " nodeId ", may2: " reason "},
	{typ: "node.dispatched", need: " childRunId childWorkflowId ", may: " childStatus ", sealed: true},
	{typ: "node.resumed", need: " nodeId ", may2: " interruptId resumeValue "},
	{typ: "node.retried", need: " nodeId attempt ", may2: " delayMs lastError "},
	{typ: "node.suspend-failed", need: " nodeId error "},
	{typ: "output.chunk", need: " nodeId chunk ", need2: " runId isLast ", may2: " channel meta "},
	{typ: "provider.usage", need: " provider model inputTokens outputTokens ", may: " totalTokens costEstimateUsd currency cacheHit nodeId ",
		may2: " cacheReadTokens cacheWriteTokens ", sealed: true, forms: []part{may("traceId", aTrace)}},
	{typ: "replay.diverged", need: " sourceRunId atSequence ", may2: " originalEventId divergenceKind divergencePoint "},
	{typ: "run.dead_lettered", need: " runId reason attempts ", may: " nodeId ", sealed: true},
	{typ: "run.restored-from-snapshot", may2: " snapshotSeq ", forms: []part{may("engineVersion", aVersion)}},
	{typ: "run.resuming", may2: " fromStatus "},
	{typ: "tool.session.opened", need: " sessionId toolId ", only: SchemaV1},
	{typ: "tool.session.closed", need: " sessionId toolId outcome ", only: SchemaV1},
	{typ: "variable.changed", need: " name ", may2: " previous next nodeId "},
}

// values are the forms of members that have the same one in all shapes with them. Only a
// strict decoder asks for it.
var values = map[string]form{
	"invocationId": aName, "memoryRef": aName, "memoryId": aName, "outputId": aName, "provider": aName, "model": aName, "target": aName, "name": aName, "gateId": aName,
	"principal": aName, "causationHostId": aName, "conversationId": shortText(aName, 256), "message": aText, "chunk": aText, "openedBy": aText, "modelClass": aText, "reason": aText, "fromStatus": aText, "childStatus": aText,
	"toolSurfaceCount": wholeFrom(0), "inputCount": wholeFrom(0), "outputCount": wholeFrom(0), "inputTokens": wholeFrom(0), "outputTokens": wholeFrom(0),
	"totalTokens": wholeFrom(0), "cacheReadTokens": wholeFrom(0), "cacheWriteTokens": wholeFrom(0), "delayMs": wholeFrom(0), "atSequence": wholeFrom(0),
	"turnCount": wholeFrom(0), "turnIndex": wholeFrom(0), "byteSize": wholeFrom(0), "attempt": wholeFrom(1), "attempts": wholeFrom(1), "sourceCount": wholeFrom(1),
	"memoryBound": aBool, "schemaValidated": aBool, "cacheHit": aBool, "isLast": aBool,
	"confidence": numberIn(0, 1, "in [0, 1]"), "costEstimateUsd": numberIn(0, math.Inf(1), "a number from 0 on"),
	"source": oneOf("workflow-node", "run-api", "chat-mention"), "verdict": oneOf("pass", "fail", "revise"), "level": oneOf("debug", "info", "warn", "error"),
	"divergenceKind": oneOf("output", "missing", "extra", "type-mismatch"),
	"mergedIds":      listOf(aName, 0, false), "tags": listOf(aText, 0, false), "criteria": listOf(aName, 0, true), "fields": anObject, "turn": aTurn,
	"reducer": aReducer, "writtenAt": aTime,
}

var resolved = append(answered, may("kind", anInterruptKind))

// shapes are the shapes of a schema, by their types there.
var shapes = map[Profile]map[string]*shape{SchemaV1: shapesOf(SchemaV1), SchemaV2: shapesOf(SchemaV2)}

func shapesOf(p Profile) map[string]*shape {
	shapes := map[string]*shape{}
	for _, s := range payloads {
		if p == SchemaV2 {
			s.need += s.need2
			s.may += s.may2
		}
		if s.only == RFC0002 || s.only == p {
			shapes[renamed(p, s.typ)] = &s
		}
	}
	return shapes
}

func (s *shape) needs(name string) bool { return strings.Contains(s.need, " "+name+" ") }

// odd returns why the payload may not have the member with that value, or "".
func (s *shape) odd(p Profile, name, value string) string {
	of, has := formOf(s.forms, p, name)
	_, id := payloadIDs[name]
	switch {
	case !of.fits(p, value), !has && !s.needs(name) && !strings.Contains(s.may, " "+name+" ") && (s.sealed || p == SchemaV2 && !hatch(name)):
		return "the profile has no place for it"
	case id && p == SchemaV2 && jsonwire.Text(value) == "":
		return "is not an id"
	}
	return ""
}

// check returns the rule that a payload breaks, or nil.
func (s *shape) check(p Profile, raw string) *agentevents.RuleError {
	if !jsonwire.IsObject(raw) {
		return breaks(RuleForm, "/payload", "is not an object")
	}
	for name := range strings.FieldsSeq(s.need) {
		if !jsonwire.HasMember(raw, name) {
			return breaks(RuleRequired, "/payload/"+name, "is required")
		}
	}
	for name, value := range jsonwire.Members(raw) {
		at := "/payload/" + jsonwire.Token(name)
		of, has := formOf(s.forms, p, name)
		known := strings.Contains(s.need+s.may+s.may2, " "+name+" ")
		if of == nil && known {
			of = values[name]
		}
		if rule, detail := of.check(p, value); detail != "" {
			return breaks(rule, at, detail)
		}
		if !has && !s.needs(name) && !strings.Contains(s.may, " "+name+" ") && (s.sealed || p == SchemaV2 && !hatch(name)) {
			return breaks(RuleClosed, at, extraMember)
		}
		if form, isID := payloadIDs[name]; isID && known {
			if rule, detail := anID(form, aText).check(p, value); detail != "" {
				return breaks(rule, at, detail)
			}
		}
	}
	return nil
}

// complete reports whether a payload is an object with all required members.
func (s *shape) complete(raw string) bool {
	for name := range strings.FieldsSeq(s.need) {
		if !jsonwire.HasMember(raw, name) {
			return false
		}
	}
	return jsonwire.IsObject(raw)
}

// keeps reports whether the payload of an unknown type is legal under the
// profile, as far as its shape is known.
func keeps(p Profile, typ, raw string) bool {
	s := shapes[p][typ]
	if s == nil {
		return true
	}
	for name, value := range jsonwire.Members(raw) {
		if s.odd(p, name, value) != "" {
			return false
		}
	}
	return s.complete(raw)
}

// payloadIDs are the members of payloads that are ids under SchemaV2. A name has
// the same form everywhere.
var payloadIDs = map[string]IDForm{
	"nodeId": NodeID, "agentId": AgentID, "interruptId": InterruptID, "workflowId": WorkflowID, "childWorkflowId": WorkflowID,
	"runId": RunID, "parentRunId": RunID, "sourceRunId": RunID, "childRunId": RunID, "enqueuedRunId": RunID, "originalEventId": EventID,
}

// shaped returns a payload in the form of the schema. It reports false if that
// needs a member that the payload lacks. A payload that was read under the same
// profile stays as it is, even if it breaks the profile.
func (e *Encoder) shaped(w *wire.Writer, typ, raw string) (string, bool) {
	s, same := shapes[e.p][typ], e.same()
	if s == nil && (e.p == SchemaV1 || !registeredIn(registered2, typ)) || !jsonwire.IsObject(raw) {
		return raw, s == nil || same
	}
	var out dialect.Unknowns
	for name, value := range jsonwire.Members(raw) {
		if s != nil && !same {
			if why := s.odd(e.p, name, value); why != "" {
				w.Lose(dialect.Dropped, "/payload/"+jsonwire.Token(name), why)
				continue
			}
		}
		out.Add(name, e.shapedID(w, name, value))
	}
	for _, m := range [...]struct{ name, value, detail string }{
		{"runId", jsonwire.Quote(NormalizeID(e.p, RunID, cmp.Or(w.Ev.RunID, unknownRun))), "the run of the event"}, // an output.chunk of version 1 may lack it
		{"isLast", "false", "false"},
	} {
		if s != nil && !same && s.needs(m.name) && out.Add(m.name, m.value) {
			w.Lose(dialect.Made, "/payload/"+m.name, m.detail)
		}
	}
	raw = string(cmp.Or(out.Object(), "{}"))
	return raw, s == nil || same || s.complete(raw)
}

// shapedID returns the value of a member, in the form of SchemaV2 if it is an id.
func (e *Encoder) shapedID(w *wire.Writer, name, value string) string {
	form, isID := payloadIDs[name]
	id := jsonwire.Text(value)
	if e.p != SchemaV2 || !isID || id == "" {
		return value
	}
	if n := normalized(w, form, "/payload/"+name, id); n != id {
		return jsonwire.Quote(n)
	}
	return value
}
