package openwop

import (
	"cmp"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/wire"
)

// profiles is a set of profiles.
type profiles uint8

const (
	rfc     profiles = 1 << RFC0002
	v1      profiles = 1 << SchemaV1
	v2      profiles = 1 << SchemaV2
	schemas          = v1 | v2
	all              = rfc | schemas
	none    profiles = 0
	hasNode profiles = 1 << 7
)

func (s profiles) has(p Profile) bool { return s>>p&1 == 1 }

// A row is a type of line: a table for all profiles.
type row struct {
	typ, v2 string // the type, and its name under SchemaV2, if that differs
	// of is the name of the row, if lines of its type may have other payloads: see
	// look.
	of   string
	kind agentevents.Kind

	says    string // what the line says besides the fields of its members
	members []column
	also    []extra // members that the schemas declare and the vocabulary has no field for

	closed1 bool // the payload is closed under SchemaV1 too
	sealed  bool // it is closed under SchemaV2 even for extensions: see hatch
	open2   bool // it is open even under SchemaV2
	legacy  bool // SchemaV2 has another row for the kind
	other   bool // RFC0002 and SchemaV1 have another row for the kind

	p     Profile  // the profile that the row is compiled for
	node  profiles // that require the node, and hasNode; 0 if the payload does not name it
	usual []string // members that are not required, but written unless the line lacked them
}

// A column is a member of a row, as the profiles have it.
type column struct {
	name, schema string // its name in the RFC, and in the published schemas, if that differs
	says         string
	form         wire.Form
	in           profiles // that declare the member; the other open payloads may have it too
	need         profiles // that require it
	usual        bool
	made         absent
	always       bool   // made is for profiles that do not require the member too
	reads        bool   // the member is only read
	twin         string // the member that stands for it under the other profiles
}

// absent appends what stands for a member that the event does not say.
type absent = func(w *wire.Writer, dst []byte, m *wire.Member) []byte

// An extra is a member without a field.
type extra = part

// m returns a column that all profiles declare.
func m(name, says string, form wire.Form) column {
	return column{name: name, says: says, form: form, in: all}
}

func (c column) on(in profiles) column      { c.in = in; return c }
func (c column) must(need profiles) column  { c.need = need; return c }
func (c column) schemas(name string) column { c.schema = name; return c }
func (c column) written() column            { c.usual = true; return c }
func (c column) or(f absent) column         { c.made = f; return c }
func (c column) orAlways(f absent) column   { c.made, c.always = f, true; return c }
func (c column) onlyRead() column           { c.reads = true; return c }

func (c column) elsewhere(twin string) column { c.twin = twin; return c }

// closed reports whether the payload has only the members of the schema.
func (r *row) closed() bool { return r.p == SchemaV1 && r.closed1 || r.p == SchemaV2 && !r.open2 }

// inside returns the column as a member of another object of the line.
func (c column) inside(p Profile) wire.Member { return c.compile(&row{p: p})[0] }

// compile returns the members that the column is for a row's profile.
func (c column) compile(r *row) []wire.Member {
	name, other := c.name, ""
	if c.schema != "" {
		if other = c.schema; r.p != RFC0002 {
			name, other = other, name
		}
	}
	member := wire.Member{Name: name, Says: c.says, Form: c.form, Need: c.need.has(r.p), Loose: !c.in.has(r.p), Reads: c.reads}
	foreign := member
	if member.Loose && r.closed() {
		member.Reads, member.Form = true, undeclared{c.form}
	}
	if c.twin != "" && member.Loose {
		member.Reads, member.For = true, c.twin
	}
	if c.made != nil && (c.always || member.Need) {
		member = member.Or(c.made)
	}
	if c.usual && !member.Need {
		r.usual = append(r.usual, name)
	}
	if other == "" {
		return []wire.Member{member}
	}
	foreign.Name, foreign.For, foreign.Need, foreign.Loose, foreign.Reads = other, name, false, true, true
	if r.closed() {
		foreign.Form = undeclared{c.form}
	}
	return []wire.Member{member, foreign}
}

// declares reports whether the schemas have a member that the vocabulary has no
// field for.
func (r *row) declares(name string) bool {
	return partOf(r.also, r.p, name) != nil
}

// form returns the form that the profile's schema declares for such a member, or
// nil.
func (r *row) form(name string) form {
	if m := partOf(r.also, r.p, name); m != nil {
		return m.form
	}
	return nil
}

// A document is the table of a profile.
type document struct {
	*wire.Format
	p    Profile
	rows map[string]*wire.Row // by type, in the names of all profiles, or by name
}

var tables = [...]document{RFC0002: newDocument(RFC0002), SchemaV1: newDocument(SchemaV1), SchemaV2: newDocument(SchemaV2)}

// documentOf returns the table of a profile.
func documentOf(p Profile) *document {
	if int(p) >= len(tables) {
		p = RFC0002
	}
	return &tables[p]
}

func newDocument(p Profile) document {
	need, may := wire.Need, wire.May
	f := wire.Format{
		Name: Name, Required: RuleRequired, Body: "payload", Remarks: []string{keptSpelled, keptAbsent, keptType, keptProfile}, Exact: p != RFC0002,
		Head: []wire.Member{
			need("eventId", "/id", eventID{idForm{p, EventID}}), need("runId", "/runId", idForm{p, RunID}).Or(madeRun), may("nodeId", "/nodeId", envelopeNode{idForm{p, NodeID}}),
			need("type", "", wire.Type), need("payload", "", wire.Body),
		},
		Any: []wire.Member{may("", "/agentId", agentOfOther{})},
		Tail: []wire.Member{
			need("timestamp", "/timestamp", timeForm{}), need("sequence", "/sequence", sequenceForm{}), {Name: "schemaVersion", Form: versionForm{p: p}, Need: p == SchemaV2},
			may("engineVersion", "", versionForm{p, true}), may("causationId", "/causationId", causation{idForm{p, EventID}}),
		},
		Lack: lack, Pick: pick, Keep: keep, Place: place, Elsewhere: elsewhere, Extra: extraLost,
	}
	table := rows(p)
	for i := range table {
		r := &table[i]
		r.p = p
		line := wire.Row{Type: r.typ, Kind: r.kind, Says: r.says, More: r, Reads: p == SchemaV2 && r.legacy || p != SchemaV2 && r.other || r.of == bareFailure}
		if p == SchemaV2 && r.v2 != "" {
			line.Type = r.v2
		}
		for _, c := range r.members {
			if c.name == "nodeId" {
				r.node = c.need | hasNode
			}
			line.Members = append(line.Members, c.compile(r)...)
		}
		f.Rows = append(f.Rows, line)
	}
	d := document{wire.New(f), p, map[string]*wire.Row{}}
	for i := range d.Rows {
		at := &d.Rows[i]
		r := at.More.(*row)
		d.rows[cmp.Or(r.of, r.typ)] = at
		if r.v2 != "" {
			d.rows[r.v2] = at
		}
	}
	return d
}

// rows returns the document under a profile.
func rows(p Profile) []row {
	var (
		json     = wire.Value{}
		content  = textForm{}
		object   = objectForm{p}
		id       = func(f IDForm) idForm { return idForm{p, f} }
		person   = textForm{spell: true, rule: RuleID, fill: p != RFC0002}
		title    = textForm{}
		agent    = m("agentId", "/agentId", id(AgentID)).must(all).or(made(CoreSystem))
		anyAgent = m("agentId", "/agentId", id(AgentID)).on(none)
		node     = m("nodeId", "", nodeForm{p}).must(schemas).written()
		reason   = m("reason", "reason", text)
		block    = m("blockId", "blockId", text).on(none)
		words    = func(list []string) wire.Form { return wordForm{p, list} }
		verbose  = m("verbosity", "verbosity", words(verbosities))
		millis   = millisForm{}
		failure  = m("error", "error", errorObject(p))
		tool     = m("toolId", "toolId", id(PlainID)).schemas("toolName").must(all).or(made("unknown"))
		callID   = m("callId", "callId", id(PlainID)).must(all).or(madeOf(ofEvent))
		duration = m("durationMs", "durationMs", millis)
		host     = []extra{{name: "causationHostId", form: aName}}
		lasted   = extra{name: "durationMs", form: wholeFrom(0)}
		resolved = []extra{
			{name: "action", form: oneOf("accept", "reject", "refine", "edit-accept", "timeout"), only: SchemaV2},
			{name: "resolvedBy", form: aSubject, only: SchemaV2}, {name: "refineFeedback", form: aFeedback, only: SchemaV2}, {name: "editedArtifactData"},
		}
		outputs = m("outputs", "outputs", object)
		asked   = m("interruptId", "interruptId", textID{p}).written()
	)
	if p != RFC0002 {
		title.rule = RuleRange
	}
	return []row{
		{typ: "agent.reasoned", kind: agentevents.KindAgentReasoned, also: host, members: []column{
			agent, m("reasoning", "reasoning", content).must(all).or(empty), verbose, block,
		}},
		{typ: "agent.reasoning.delta", v2: "agent.reasoning-delta", kind: agentevents.KindAgentReasoningDelta, members: []column{
			agent, m("delta", "delta", content).must(all).or(empty), m("sequence", "index", countFrom(0)).must(schemas).or(counted), verbose, block,
		}},
		{typ: "agent.toolCalled", v2: "agent.tool-called", kind: agentevents.KindToolCalled, also: host, members: []column{
			agent, tool, callID, m("arguments", "arguments", json).schemas("inputs").orAlways(madeArguments),
			m("argsHash", "argsHash", text), m("principal", "principal", text), m("transport", "transport", words(transports)),
		}},
		{typ: "agent.toolReturned", v2: "agent.tool-returned", kind: agentevents.KindToolReturned, also: host, members: []column{
			agent, tool, callID, m("result", "result", resultForm{}).schemas("outcome"), failure,
			m("status", "status", statusForm{p}), m("durationMs", "durationMs", callTime{millis, p}),
		}},
		{typ: "agent.handoff", kind: agentevents.KindAgentHandoff, also: host, says: "/agentId", members: []column{
			anyAgent.onlyRead(), m("", "", handsOver{idForm{p, AgentID}}),
			m("from", "from", refForm{p}).on(rfc).must(rfc).elsewhere("fromAgentId"), m("fromAgentId", "from/agentId", refID{id(HandoffID)}).on(schemas).must(schemas).elsewhere("from").or(madeOf(handing)),
			m("to", "to", refForm{p}).on(rfc).must(rfc).elsewhere("toAgentId"), m("toAgentId", "to/agentId", refID{id(HandoffID)}).on(schemas).must(schemas).elsewhere("to").or(made(CoreSystem)),
			reason, m("context", "context", json).on(rfc | v1),
		}},
		{typ: "agent.decided", kind: agentevents.KindAgentDecided, also: host, members: []column{
			agent, m("decision", "decision", json).must(all).or(madeJSON("null")), m("confidence", "confidence", wire.Unit(RuleRange, json)),
			m("reasoning", "reasoning", text).on(rfc),
		}},
		{typ: "runOrchestrator.decided", v2: "orchestrator.decided", kind: agentevents.KindOrchestratorDecided, also: host, closed1: true, sealed: true, members: []column{
			agent, m("decision", "decision", decisionForm{p}).must(all).or(madeJSON(`{"kind":"terminate"}`)), m("iteration", "iteration", countFrom(1)),
		}},
		{typ: "node.started", kind: agentevents.KindNodeStarted, members: []column{
			node, m("typeId", "typeId", id(TypeID)).must(schemas).or(made("core.unknown")), m("attempt", "attempt", countFrom(0)),
			m("agent", "agent", refForm{p}).on(rfc), anyAgent,
		}},
		{typ: "node.completed", kind: agentevents.KindNodeCompleted, members: []column{
			node, outputs, duration, m("agent", "agent", refForm{p}).on(rfc), anyAgent,
		}},
		{typ: "node.failed", kind: agentevents.KindNodeFailed, also: []extra{{name: "attempts", form: wholeFrom(1)}}, members: []column{
			node, failure.must(all), anyAgent,
		}},
		{typ: "node.failed", of: bareFailure, kind: agentevents.KindNodeFailed, other: true, members: []column{node, anyAgent}},
		{typ: "node.skipped", kind: agentevents.KindNodeSkipped, members: []column{node, reason, anyAgent}},
		{typ: "node.suspended", kind: agentevents.KindNodeSuspended, also: []extra{{name: "interruptId"}, {name: "kind"}, {name: "key"}}, members: []column{
			node, m("", "details", detailsForm{p: p, first: true}), m("reason", "reason", shortForm{p}).on(v2), anyAgent, m("", "details", detailsForm{p: p}),
		}},
		{typ: "cap.breached", kind: agentevents.KindCapBreached, also: []extra{{name: "nodeId", form: anID(NodeID, aText)}}, members: []column{
			m("kind", "cap", capForm(p)).must(all).or(empty), m("limit", "limit", amount(p)).must(schemas).or(madeJSON("0")),
			m("observed", "observed", amount(p)).must(schemas).or(madeJSON("0")), anyAgent,
		}},
		{typ: "run.started", kind: agentevents.KindRunStarted, also: []extra{
			{name: "transport", form: oneOf("rest", "mcp", "a2a", "ui")}, {name: "engineVersion", form: aVersion}, {name: "owner", form: anOwner},
			{name: "tags", form: listOf(aText, 0, false)}, {name: "metadata", form: anObject},
		}, members: []column{
			m("workflowId", "/workflowId", id(WorkflowID)).must(schemas).or(madeWorkflow), m("inputs", "inputs", object), anyAgent,
		}},
		{typ: "run.paused", kind: agentevents.KindRunPaused, also: []extra{
			{name: "drainPolicy", form: oneOf("immediate", "drain-current-node"), only: SchemaV2},
			{name: "interruptedNodeId", form: anID(NodeID, aText), only: SchemaV2}, {name: "interruptedAttempt", form: wholeFrom(1), only: SchemaV2},
		}, members: []column{reason, anyAgent}},
		{typ: "run.resumed", kind: agentevents.KindRunResumed, open2: true, members: []column{m("message", "message", text).on(none), anyAgent}},
		{typ: "run.completed", kind: agentevents.KindRunCompleted, also: []extra{lasted}, members: []column{outputs.must(v2).or(madeJSON("{}")), anyAgent}},
		{typ: "run.failed", kind: agentevents.KindRunFailed, also: []extra{lasted, {name: "failedNodeId", form: anID(NodeID, aText)}}, members: []column{
			failure.must(schemas).or(madeError), anyAgent,
		}},
		{typ: "run.cancelled", kind: agentevents.KindRunCancelled, also: []extra{lasted, {name: "cancelledBy", form: aText}, {name: "parentRunId", form: anID(RunID, aName)}}, members: []column{
			reason, anyAgent,
		}},
		{typ: "channel.written", kind: agentevents.KindMessageCreated, closed1: true, sealed: true, also: []extra{
			{name: "nodeId", form: anID(NodeID, anIDOf(NodeID))}, {name: "schemaVersion", form: wholeFrom(1)}, {name: "sourceEngineId", form: shortText(aName, 256)},
			{name: "sourceRunId", form: anID(RunID, anIDOf(RunID))},
		}, members: []column{
			m("channel", "", wordOf(MessageChannel)).must(all), m("value", "message", messageForm{}).must(all),
			m("reducer", "", reducerForm{p}).must(schemas).written(), m("writtenAt", "", writtenAt{p}).must(schemas).written(),
		}},

		// A node that waits for a person. The RFC and SchemaV1 have a type for each
		// question and answer, SchemaV2 has interrupts.
		{typ: "clarification.requested", kind: agentevents.KindClarificationRequested, legacy: true, members: []column{
			node.must(v1), asked, m("questions", "questions", questions(p, false)).must(rfc | v1).or(madeQuestions), anyAgent,
		}},
		{typ: "interrupt.requested", of: "clarification", kind: agentevents.KindClarificationRequested, other: true, closed1: true, sealed: true, also: []extra{
			{name: "resumeSchema", form: anObject}, {name: "timeoutMs", form: wholeFrom(0)}, {name: "data/contextType", form: aText},
		}, members: []column{
			m("kind", "", wordOf(kindClarification)).must(all), m("key", "interruptId", keyForm{interruptID{id(InterruptID)}}).must(all).or(madeOf(ofEvent)),
			m("data", "", wire.Object(wire.Need("questions", "questions", questions(p, true)).Or(madeQuestions))).must(all),
		}},
		{typ: "clarification.resolved", kind: agentevents.KindClarificationResolved, legacy: true, members: []column{
			node, asked.on(v2), m("answers", "answers", object).must(rfc | v1).or(madeJSON("{}")), m("answeredBy", "answeredBy", text), anyAgent,
		}},
		{typ: "interrupt.resolved", of: "answer", kind: agentevents.KindClarificationResolved, other: true, also: append(resolved[:len(resolved):len(resolved)],
			extra{name: "reason", form: shortText(aName, 64), only: SchemaV2}, extra{name: "decision", form: oneOf("granted", "rejected", "overridden"), only: SchemaV2},
		), members: []column{
			node, m("interruptId", "interruptId", interruptID{id(InterruptID)}).must(all).or(madeOf(ofEvent)), m("kind", "", wordOf(kindClarification)),
			m("resumeValue", "answers", json), m("answeredBy", "answeredBy", text).on(none), anyAgent,
		}},
		{typ: "approval.requested", kind: agentevents.KindApprovalRequested, legacy: true, also: []extra{
			{name: "artifactId", form: aText, only: SchemaV1}, {name: "artifactType", form: aText, only: SchemaV1}, {name: "actions", form: listOf(oneOf("accept", "reject", "refine", "edit", "ask"), 1, false), only: SchemaV1},
			{name: "approversList", form: listOf(aText, 0, false), only: SchemaV1}, {name: "requiredApprovals", form: wholeFrom(1), only: SchemaV1},
		}, members: []column{
			node.must(v1), m("interruptId", "approvalId", textID{p}).written(), artifact(p, "artifactId").must(v1), artifact(p, "artifactType").must(v1),
			m("title", "action", text), artifact(p, "actions").must(v1), reason.on(v2), m("scope", "scope", text).on(v2), m("risk", "risk", text).on(v2),
			m("callId", "callId", plain).on(v2), m("toolId", "toolId", plain).on(rfc | v2), m("arguments", "arguments", json).on(rfc | v2),
			m("timeoutMs", "timeoutMs", millis).on(v2), anyAgent,
		}},
		{typ: "interrupt.requested", of: "approval", kind: agentevents.KindApprovalRequested, other: true, closed1: true, sealed: true, also: []extra{
			{name: "resumeSchema", form: anObject}, {name: "data/artifactId", form: aName}, {name: "data/artifactType", form: aName},
			{name: "data/actions", form: listOf(oneOf("accept", "reject", "refine", "edit-accept", "ask"), 1, true)}, {name: "data/description", form: aText},
			{name: "data/requiredApprovals", form: wholeFrom(1)}, {name: "data/approversList", form: listOf(aText, 0, false)},
			{name: "data/rejectionPolicy", form: oneOf("single-veto", "majority")},
		}, members: []column{
			m("kind", "", wordOf(kindApproval)).must(all), m("key", "approvalId", keyForm{interruptID{id(InterruptID)}}).must(all).or(madeOf(ofEvent)),
			m("data", "", wire.Object(artifact(p, "artifactId").must(schemas).inside(p), artifact(p, "artifactType").must(schemas).inside(p),
				m("title", "action", title).must(schemas).orAlways(made(kindApproval)).inside(p), artifact(p, "actions").must(schemas).inside(p))).must(all),
			m("timeoutMs", "timeoutMs", millis),
		}},
		{typ: "approval.granted", kind: agentevents.KindApprovalGranted, legacy: true, closed1: true, also: []extra{{name: "quorumProgress", form: aQuorum}}, members: []column{
			m("gateId", "approvalId", id(PlainID)).must(v1).orAlways(madeOf(ofEvent)), m("principal", "approvedBy", person).must(v1).or(made("user")),
		}},
		{typ: "approval.rejected", kind: agentevents.KindApprovalRejected, legacy: true, closed1: true, members: []column{
			m("gateId", "approvalId", id(PlainID)).must(v1).orAlways(madeOf(ofEvent)), m("principal", "rejectedBy", person).must(v1).or(made("user")),
			m("reason", "feedback", text),
		}},
		{typ: "interrupt.resolved", of: "granted", kind: agentevents.KindApprovalGranted, other: true, also: append(resolved[:len(resolved):len(resolved)], extra{name: "resumeValue"}), members: []column{
			node, m("interruptId", "approvalId", interruptID{id(InterruptID)}).must(all).or(madeOf(ofEvent)), m("kind", "", wordOf(kindApproval)),
			m("reason", "feedback", shortForm{p}).on(v2), m("decision", "", wordOf("granted")).on(v2 | rfc), m("principal", "approvedBy", plain).on(none), anyAgent,
		}},
		{typ: "interrupt.resolved", of: "rejected", kind: agentevents.KindApprovalRejected, other: true, also: append(resolved[:len(resolved):len(resolved)], extra{name: "resumeValue"}), members: []column{
			node, m("interruptId", "approvalId", interruptID{id(InterruptID)}).must(all).or(madeOf(ofEvent)), m("kind", "", wordOf(kindApproval)),
			m("reason", "feedback", shortForm{p}).on(v2), m("decision", "", wordOf("rejected")).on(v2 | rfc), m("principal", "rejectedBy", plain).on(none), anyAgent,
		}},
	}
}
