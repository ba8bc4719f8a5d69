package openwop

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/wire"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The payloads of registered types that the vocabulary does not have. They are
// kept as they are. When one is written under a schema, the encoder checks its
// members at the top level.

// A shape describes the members of a payload.
type shape struct {
	typ       string  // as SchemaV1 spells it
	need, may string  // names; an id with a question mark may be empty under SchemaV1
	sealed    bool    // SchemaV1 closes the payload, and SchemaV2 even for the extensions of hatch
	only      Profile // the schema that the shape is for, if it is only one
	forms     []part  // members that have another form than in values
}

// payloads are the shapes of both schemas.
var payloads = []shape{
	{typ: "agent.invocation.started", need: "invocationId agentId source",
		may: "modelClass resolvedModel resolvedProvider resolvedAgentVersion resolvedChannel toolSurfaceCount memoryBound"},
	{typ: "agent.invocation.completed", need: "invocationId agentId outcome", may: "schemaValidated confidence enqueuedRunId",
		forms: []part{may("outcome", oneOf("completed", "handed-off", "escalated", "refused", "failed"))}},
	{typ: "agent.memory.consolidated", need: "memoryRef inputCount outputCount", may: "mergedIds trigger",
		forms: []part{may("trigger", oneOf("host-managed", "scheduled", "on-demand"))}},
	{typ: "agent.promptResolved", need: "nodeId? kind chain resolved", may: "agentId? causationHostId", sealed: true,
		forms: []part{may("kind", oneOf("system", "user", "few-shot", "schema-hint"))}},
	{typ: "agent.verified", need: "agentId target verdict", may: "criteria confidence causationHostId", sealed: true, only: SchemaV2},
	{typ: "approval.overridden", need: "gateId principal", sealed: true, only: SchemaV1, forms: []part{must("reason", aName)}},
	{typ: "approval.overridden", need: "nodeId interruptId", only: SchemaV2, forms: resolved},
	{typ: "approval.received", need: "nodeId? action", only: SchemaV1},
	{typ: "channel.written", need: "channel value reducer writtenAt", sealed: true, forms: written},
	{typ: "conversation.closed", need: "conversationId", may: "reason turnCount"},
	{typ: exchanged, need: "conversationId turnIndex", may: "turn outcome"},
	{typ: begins, need: "conversationId", may: "openedBy participants initialTurn schema capabilities",
		forms: []part{may("agentId", anID(AgentID, nil)).in(SchemaV2)}},
	{typ: "core.workflowChain.confidence-escalated", need: "confidence floor escalationKind parentRunId",
		may: "workerId originalDecision causationHostId", sealed: true},
	{typ: "interrupt.requested", sealed: true,
		forms: []part{must("kind", oneOf(suspensionKinds...)), must("key", shortText(aName, 256)), must("data", anObject), may("resumeSchema", anObject), may("timeoutMs", wholeFrom(0))}},
	{typ: "interrupt.resolved", need: "nodeId? interruptId?", forms: resolved},
	{typ: "log.appended", need: "level message", may: "nodeId? fields"},
	{typ: "memory.compacted", need: "memoryRef outputId sourceCount trigger byteSize", only: SchemaV1,
		forms: []part{may("trigger", oneOf("host-managed", "client-requested", "both"))}},
	{typ: "memory.written", need: "memoryRef memoryId", may: "nodeId agentId tags"},
	{typ: "node.cancelled", need: "nodeId", may: "reason"},
	{typ: "node.dispatched", need: "childRunId childWorkflowId", may: "childStatus", sealed: true},
	{typ: "node.resumed", need: "nodeId", may: "interruptId? resumeValue"},
	{typ: "node.retried", need: "nodeId attempt", may: "delayMs lastError"},
	{typ: "node.suspend-failed", need: "nodeId error"},
	{typ: "output.chunk", need: "nodeId chunk", may: "channel meta", forms: []part{must("runId", anIDOf(RunID)).in(SchemaV2), must("isLast", aBool).in(SchemaV2)}},
	{typ: providerUsage, need: "provider model inputTokens outputTokens", may: "totalTokens costEstimateUsd currency cacheHit nodeId?", sealed: true,
		forms: []part{may("traceId", aTrace), may("cacheReadTokens", wholeFrom(0)).in(SchemaV2), may("cacheWriteTokens", wholeFrom(0)).in(SchemaV2)}},
	{typ: "replay.diverged", need: "sourceRunId atSequence", may: "originalEventId? divergenceKind divergencePoint"},
	{typ: "run.dead_lettered", need: "runId attempts", may: "nodeId?", sealed: true, forms: []part{must("reason", aName)}},
	{typ: "run.restored-from-snapshot", may: "snapshotSeq engineVersion"},
	{typ: "run.resuming", may: "fromStatus"},
	{typ: "tool.session.opened", need: "sessionId toolId", only: SchemaV1},
	{typ: "tool.session.closed", need: "sessionId toolId outcome", only: SchemaV1},
	{typ: "variable.changed", need: "name", may: "previous next nodeId?"},
}

// values are the forms of members that have the same one in all shapes with them. Those of
// ids are not among them.
var values = map[string]form{
	"invocationId": aName, "memoryRef": aName, "memoryId": aName, "outputId": aName, "provider": aName, "model": aName, "target": aName, "name": aName, "gateId": aName,
	"principal": aName, "causationHostId": aName, "conversationId": shortText(aName, 256), "message": aText, "chunk": aText, "openedBy": aText, "modelClass": aText, "reason": aText, "fromStatus": aText, "childStatus": aText,
	"toolSurfaceCount": wholeFrom(0), "inputCount": wholeFrom(0), "outputCount": wholeFrom(0), "inputTokens": wholeFrom(0), "outputTokens": wholeFrom(0),
	"totalTokens": wholeFrom(0), "delayMs": wholeFrom(0), "atSequence": wholeFrom(0),
	"turnCount": wholeFrom(0), "turnIndex": wholeFrom(0), "byteSize": wholeFrom(0), "attempt": wholeFrom(1), "attempts": wholeFrom(1), "sourceCount": wholeFrom(1),
	"memoryBound": aBool, "schemaValidated": aBool, "cacheHit": aBool, "engineVersion": aVersion,
	"currency": aCurrency, "confidence": numberIn(0, 1, "in [0, 1]"), "costEstimateUsd": numberIn(0, math.Inf(1), "a number from 0 on"),
	"source": oneOf("workflow-node", "run-api", "chat-mention"), "verdict": oneOf("pass", "fail", "revise"), "level": oneOf("debug", "info", "warn", "error"),
	"divergenceKind": oneOf("output", "missing", "extra", "type-mismatch"),
	"mergedIds":      listOf(aName, 0, false), "tags": listOf(aText, 0, false), "criteria": listOf(aName, 0, true), "fields": anObject, "turn": aTurn, "initialTurn": aTurn,
	"reducer": aReducer, "writtenAt": aTime,
}

var resolved = append(answered, may("kind", anInterruptKind))

// others are the rows of a schema for the types that the vocabulary does not have.
var others = map[Profile]map[string]*row{SchemaV1: othersOf(SchemaV1), SchemaV2: othersOf(SchemaV2)}

func othersOf(p Profile) map[string]*row {
	rows := map[string]*row{}
	for _, s := range payloads {
		if s.only != RFC0002 && s.only != p {
			continue
		}
		r := &row{p: p, closed1: s.sealed, sealed: s.sealed, also: slices.Clip(s.forms)}
		for i, names := range [...]string{s.need, s.may} {
			for name := range strings.FieldsSeq(names) {
				name, empty := strings.CutSuffix(name, "?")
				of := values[name]
				if id, is := payloadIDs[name]; is && empty {
					of = anID(id, aText)
				} else if is {
					of = anID(id, aName)
				}
				r.also = append(r.also, part{name: name, form: of, need: i == 0})
			}
		}
		rows[renamed(p, s.typ)] = r
	}
	return rows
}

// broken returns the rule of the row that a payload breaks, or nil. The row is one of a type
// that the vocabulary does not have.
func (r *row) broken(raw string) *agentevents.RuleError {
	if !jsonwire.IsObject(raw) {
		return breaks(RuleForm, "/payload", "is not an object")
	}
	for name, value := range jsonwire.Members(raw) {
		if rule, detail := r.wrong(name, value); detail != "" {
			return breaks(rule, "/payload/"+jsonwire.Token(name), detail)
		}
	}
	if name, rule, detail := brokenPart(r.also, true, r.p, raw); detail != "" {
		return breaks(rule, "/payload/"+name, detail)
	}
	return nil
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
	r := others[e.p][typ]
	free := r == nil || e.same()
	if r == nil && (e.p == SchemaV1 || !registeredIn(registered2, typ)) || !jsonwire.IsObject(raw) {
		return raw, free
	}
	var out dialect.Unknowns
	for name, value := range jsonwire.Members(raw) {
		value = e.shapedID(w, name, value)
		if !free {
			if _, why := r.wrong(name, value); why != "" {
				w.Lose(dialect.Dropped, "/payload/"+jsonwire.Token(name), why)
				continue
			}
		}
		out.Add(name, value)
	}
	if typ == "output.chunk" && e.p == SchemaV2 && !free { // one of version 1 may lack them
		for _, m := range [...]struct{ name, value, detail string }{
			{"runId", jsonwire.Quote(NormalizeID(e.p, RunID, cmp.Or(w.Ev.RunID, unknownRun))), "the run of the event"}, {"isLast", "false", "false"},
		} {
			if out.Add(m.name, m.value) {
				w.Lose(dialect.Made, "/payload/"+m.name, m.detail)
			}
		}
	}
	raw = string(cmp.Or(out.Object(), "{}"))
	return raw, free || r.broken(raw) == nil
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
