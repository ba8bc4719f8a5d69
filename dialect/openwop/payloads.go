package openwop

import (
	"cmp"
	"strings"

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
	need, may string
	open      bool // other members are allowed
	sealed    bool // even the extensions of hatch are not allowed
}

// declares reports whether the payload may have the member.
func (s *shape) declares(name string) bool {
	named := " " + name + " "
	return s.open || strings.Contains(s.need, named) || strings.Contains(s.may, named) || !s.sealed && hatch(name)
}

// shapeOf returns the shape of a type under a profile, or nil if it is not known.
func shapeOf(p Profile, typ string) *shape {
	switch p {
	case SchemaV1:
		return shapes1[typ]
	case SchemaV2:
		return shapes2[typ]
	}
	return nil
}

// lacks returns the first required member that a payload does not have, or "".
func (s *shape) lacks(raw string) string {
	for name := range strings.FieldsSeq(s.need) {
		if !jsonwire.HasMember(raw, name) {
			return name
		}
	}
	return ""
}

// keeps reports whether the payload of an unknown type is legal under the
// profile, as far as its shape is known.
func keeps(p Profile, typ, raw string) bool {
	s := shapeOf(p, typ)
	if s == nil {
		return true
	}
	for name, value := range jsonwire.Members(raw) {
		if !s.declares(name) || !changedForm(p, typ, name).fits(p, value) {
			return false
		}
		if _, isID := payloadIDs[name]; isID && p == SchemaV2 && jsonwire.Text(value) == "" {
			return false
		}
	}
	return isObject(raw) && s.lacks(raw) == ""
}

// Shapes under SchemaV1. The open ones differ only in their required members.
var shapes1 = map[string]*shape{
	"agent.invocation.started":   {need: " invocationId agentId source ", open: true},
	"agent.invocation.completed": {need: " invocationId agentId outcome ", open: true},
	"agent.memory.consolidated":  {need: " memoryRef inputCount outputCount ", open: true},
	"agent.promptResolved":       {need: " nodeId kind chain resolved ", may: " agentId causationHostId ", sealed: true},
	"approval.overridden":        {need: " gateId principal reason ", sealed: true},
	"approval.received":          {need: " nodeId action ", open: true},
	"channel.written":            {need: " channel value reducer writtenAt ", may: " nodeId schemaVersion sourceEngineId sourceRunId ", sealed: true},
	"conversation.closed":        {need: " conversationId ", open: true},
	"conversation.exchanged":     {need: " conversationId turnIndex ", open: true},
	"conversation.opened":        {need: " conversationId ", open: true},
	"core.workflowChain.confidence-escalated": {
		need: " confidence floor escalationKind parentRunId ", may: " workerId originalDecision causationHostId ", sealed: true,
	},
	"interrupt.requested":        {need: " kind key data ", may: " resumeSchema timeoutMs ", sealed: true},
	"interrupt.resolved":         {need: " nodeId interruptId ", open: true},
	"log.appended":               {need: " level message ", open: true},
	"memory.compacted":           {need: " memoryRef outputId sourceCount trigger byteSize ", open: true},
	"memory.written":             {need: " memoryRef memoryId ", open: true},
	"node.cancelled":             {need: " nodeId ", open: true},
	"node.dispatched":            {need: " childRunId childWorkflowId ", may: " childStatus ", sealed: true},
	"node.resumed":               {need: " nodeId ", open: true},
	"node.retried":               {need: " nodeId attempt ", open: true},
	"node.suspend-failed":        {need: " nodeId error ", open: true},
	"output.chunk":               {need: " nodeId chunk ", open: true},
	"provider.usage":             {need: usageNeeds, may: usageMay, sealed: true},
	"replay.diverged":            {need: " sourceRunId atSequence ", open: true},
	"run.dead_lettered":          {need: " runId reason attempts ", may: " nodeId ", sealed: true},
	"run.restored-from-snapshot": {open: true},
	"run.resuming":               {open: true},
	"tool.session.opened":        {need: " sessionId toolId ", open: true},
	"tool.session.closed":        {need: " sessionId toolId outcome ", open: true},
	"variable.changed":           {need: " name ", open: true},
}

// Shapes under SchemaV2. All are closed.
var shapes2 = map[string]*shape{
	"agent.invocation-started": {
		need: " invocationId agentId source ",
		may:  " modelClass resolvedModel resolvedProvider resolvedAgentVersion resolvedChannel toolSurfaceCount memoryBound ",
	},
	"agent.invocation-completed": {need: " invocationId agentId outcome ", may: " schemaValidated confidence enqueuedRunId "},
	"agent.memory-consolidated":  {need: " memoryRef inputCount outputCount ", may: " mergedIds trigger "},
	"agent.prompt-resolved":      {need: " nodeId kind chain resolved ", may: " agentId causationHostId ", sealed: true},
	"agent.verified":             {need: " agentId target verdict ", may: " criteria confidence causationHostId ", sealed: true},
	"approval.overridden":        resolution,
	"channel.written":            {need: " channel value reducer writtenAt ", may: " nodeId schemaVersion sourceEngineId sourceRunId ", sealed: true},
	"conversation.closed":        {need: " conversationId ", may: " reason turnCount "},
	"conversation.exchanged":     {need: " conversationId turnIndex ", may: " turn outcome "},
	"conversation.opened":        {need: " conversationId ", may: " openedBy agentId participants initialTurn schema capabilities "},
	"interrupt.requested":        {need: " kind key data ", may: " resumeSchema timeoutMs ", sealed: true},
	"interrupt.resolved":         resolution,
	"log.appended":               {need: " level message ", may: " nodeId fields "},
	"memory.written":             {need: " memoryRef memoryId ", may: " nodeId agentId tags "},
	"node.cancelled":             {need: " nodeId ", may: " reason "},
	"node.dispatched":            {need: " childRunId childWorkflowId ", may: " childStatus ", sealed: true},
	"node.resumed":               {need: " nodeId ", may: " interruptId resumeValue "},
	"node.retried":               {need: " nodeId attempt ", may: " delayMs lastError "},
	"node.suspend-failed":        {need: " nodeId error "},
	"output.chunk":               {need: " nodeId runId chunk isLast ", may: " channel meta "},
	"provider.usage":             {need: usageNeeds, may: usageMay + "cacheReadTokens cacheWriteTokens ", sealed: true},
	"replay.diverged":            {need: " sourceRunId atSequence ", may: " originalEventId divergenceKind divergencePoint "},
	"run.dead-lettered":          {need: " runId reason attempts ", may: " nodeId ", sealed: true},
	"run.restored-from-snapshot": {may: " snapshotSeq engineVersion "},
	"run.resume-started":         {may: " fromStatus "},
	"variable.changed":           {need: " name ", may: " previous next nodeId "},
	"workflow-chain.confidence-escalated": {
		need: " confidence floor escalationKind parentRunId ", may: " workerId originalDecision causationHostId ", sealed: true,
	},
}

const (
	usageNeeds = " provider model inputTokens outputTokens "
	usageMay   = " totalTokens costEstimateUsd currency cacheHit nodeId traceId "
)

// resolution is the shape of an interrupt.resolved, and of the types that
// SchemaV2 made like it.
var resolution = &shape{need: " nodeId interruptId ", may: " kind reason resumeValue resolvedBy decision action refineFeedback editedArtifactData "}

// payloadIDs are the members of payloads that are ids under SchemaV2. A name has
// the same form everywhere.
var payloadIDs = map[string]IDForm{
	"nodeId": NodeID, "agentId": AgentID, "interruptId": InterruptID, "workflowId": WorkflowID, "childWorkflowId": WorkflowID,
	"runId": RunID, "parentRunId": RunID, "sourceRunId": RunID, "childRunId": RunID, "enqueuedRunId": RunID, "originalEventId": EventID,
}

// changed are the other members that the schemas describe differently. The table
// declared has those of a resolution and of a write to a channel.
var changed = [...]struct {
	typ, name string
	form      form
}{
	{"run.restored-from-snapshot", "engineVersion", aVersion},
	{"provider.usage", "traceId", aTrace},
	{"interrupt.resolved", "kind", anInterruptKind},
	{"approval.overridden", "kind", anInterruptKind},
}

// changedForm returns the form of a changed member, or nil.
func changedForm(p Profile, typ, name string) form {
	for i := range changed {
		if c := &changed[i]; c.typ == typ && c.name == name {
			return c.form
		}
	}
	switch typ {
	case "interrupt.resolved", "approval.overridden":
		return documentOf(p).rows["answer"].More.(*row).form(name)
	case "channel.written":
		return documentOf(p).rows[typ].More.(*row).form(name)
	}
	return nil
}

// shaped returns a payload in the form of the schema. It reports false if that
// needs a member that the payload lacks. A payload that was read under the same
// profile stays as it is, even if it breaks the profile.
func (e *Encoder) shaped(w *wire.Writer, typ, raw string) (string, bool) {
	s, same := shapeOf(e.p, typ), e.same()
	if s == nil && (e.p == SchemaV1 || !registeredIn(registered2, typ)) {
		return raw, true
	}
	if !isObject(raw) {
		return raw, s == nil || same
	}
	out := []byte{'{'}
	for name, value := range jsonwire.Members(raw) {
		if s != nil && !same && (!s.declares(name) || !changedForm(e.p, typ, name).fits(e.p, value)) {
			w.Lose(dialect.Dropped, "/payload/"+jsonwire.Token(name), "the profile has no place for it")
			continue
		}
		id, ok := e.shapedID(w, name, value)
		if s != nil && !same && !ok {
			w.Lose(dialect.Dropped, "/payload/"+name, "is not an id")
			continue
		}
		out = appendMember(out, name, id)
	}
	if s == nil || same {
		return string(append(out, '}')), true
	}
	if s.needs("runId") && !jsonwire.HasMember(raw, "runId") { // an output.chunk of version 1 may lack it
		out = appendMember(out, "runId", jsonwire.Quote(NormalizeID(e.p, RunID, cmp.Or(w.Ev.RunID, unknownRun))))
		w.Lose(dialect.Made, "/payload/runId", "the run of the event")
	}
	if s.needs("isLast") && !jsonwire.HasMember(raw, "isLast") {
		out = appendMember(out, "isLast", "false")
		w.Lose(dialect.Made, "/payload/isLast", "false")
	}
	text := string(append(out, '}'))
	return text, s.lacks(text) == ""
}

func (s *shape) needs(name string) bool { return strings.Contains(s.need, " "+name+" ") }

// shapedID returns the value of a member, in the form of SchemaV2 if it is an id.
// It reports false for an id that is empty or not a string.
func (e *Encoder) shapedID(w *wire.Writer, name, value string) (string, bool) {
	form, isID := payloadIDs[name]
	if e.p != SchemaV2 || !isID {
		return value, true
	}
	id := jsonwire.Text(value)
	if id == "" {
		return value, false
	}
	if name == "agentId" {
		form = e.agentForm(w, id)
	}
	if n := NormalizeID(e.p, form, id); n != id {
		w.Lose(dialect.Altered, "/payload/"+name, "the profile has another form for ids")
		return jsonwire.Quote(n), true
	}
	return value, true
}

func appendMember(object []byte, name, raw string) []byte {
	if len(object) > 1 {
		object = append(object, ',')
	}
	return append(append(jsonwire.AppendString(object, name), ':'), raw...)
}
