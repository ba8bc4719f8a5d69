package openwop

import (
	"cmp"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/wire"
	"github.com/agentevents/agentevents/internal/jsonwire"
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
)

func (s profiles) has(p Profile) bool { return s>>p&1 == 1 }

// A row is a type of line under a profile.
type row struct {
	typ, v2 string // the type, and its name under SchemaV2, if that differs
	// of is the name of the row, if lines of its type may have other payloads: see
	// look.
	of   string
	kind agentevents.Kind

	says    string // what the line says besides the fields of its members
	members []column
	also    []part // members that the schemas declare and the vocabulary has no field for

	closed1 bool // the payload is closed under SchemaV1 too
	sealed  bool // it is closed under SchemaV2 even for extensions: see hatch
	open2   bool // it is open even under SchemaV2
	legacy  bool // SchemaV2 has another row for the kind
	reads   bool // the profile has another row for the kind

	p        Profile
	node     bool     // the payload names the node
	needNode bool     // and must
	usual    []string // members that are not required, but written unless the line lacked them
}

// A column is a member of a row, as the profile has it.
type column struct {
	wire.Member
	p     Profile
	other string // its name under the other profiles, if that differs
	usual bool
}

// absent appends what stands for a member that the event does not say.
type absent = func(w *wire.Writer, dst []byte, m *wire.Member) []byte

// on says which profiles declare the member. The other open payloads may have it too.
func (c column) on(in profiles) column {
	c.Loose = !in.has(c.p)
	return c
}

// must says which profiles require the member.
func (c column) must(need profiles) column {
	c.Need = need.has(c.p)
	return c
}

// schemas gives the member another name in the published schemas.
func (c column) schemas(name string) column {
	if c.other = name; c.p != RFC0002 {
		c.Name, c.other = name, c.Name
	}
	return c
}

// elsewhere says which member stands for this one under the profiles that do not
// declare it.
func (c column) elsewhere(twin string) column {
	if c.Loose {
		c.Reads, c.For = true, twin
	}
	return c
}

// written says that the member is written unless the line lacked it.
func (c column) written() column {
	c.usual = true
	return c
}

// or says what stands for the member under the profiles that require it.
func (c column) or(f absent) column {
	if c.Need {
		return c.orAlways(f)
	}
	return c
}

func (c column) orAlways(f absent) column {
	c.Member = c.Or(f)
	return c
}

func (c column) unless(f func(w *wire.Writer) bool) column {
	c.Member = c.Unless(f)
	return c
}

// closed reports whether the payload has only the members of the schema.
func (r *row) closed() bool { return r.p == SchemaV1 && r.closed1 || r.p == SchemaV2 && !r.open2 }

// refuses reports whether the payload must not have an extra member.
func (r *row) refuses(name string) bool {
	_, declared := formOf(r.also, r.p, name)
	return r.closed() && !declared && (r.p == SchemaV1 || r.sealed || !hatch(name))
}

// wrong returns the rule that an extra member of the payload breaks and what is wrong, or "".
func (r *row) wrong(name, value string) (agentevents.Rule, string) {
	if r.refuses(name) {
		return RuleClosed, extraMember
	}
	return r.form(name).check(r.p, value)
}

// form returns the form that the schema declares for an extra member of the payload.
func (r *row) form(name string) form {
	of, _ := formOf(r.also, r.p, name)
	return of
}

// add adds the members that a column is.
func (r *row) add(list []wire.Member, c column) []wire.Member {
	if c.Name == "nodeId" {
		r.node, r.needNode = true, c.Need
	}
	if c.usual && !c.Need {
		r.usual = append(r.usual, c.Name)
		c = c.unless(func(w *wire.Writer) bool { return encoderOf(w).leaves(c.Name) })
	}
	other := c.Member
	other.Name, other.For, other.Need, other.Loose, other.Reads = c.other, c.Name, false, true, true
	if r.closed() {
		other.Form = ruled{c.Form, undeclared}
		if c.Loose {
			c.Reads, c.Form = true, other.Form
		}
	} else if f, ok := c.Form.(ruled); ok && c.Loose {
		c.Form = f.Form // of a member that the profile does not declare
	} else if f, ok := c.Form.(actionForm); ok && c.Loose {
		f.rule = nil
		c.Form = f
	}
	if list = append(list, c.Member); c.other != "" {
		list = append(list, other)
	}
	return list
}

// A document is the table of a profile.
type document struct {
	*wire.Format
	p        Profile
	toolName string                  // how the profile calls toolId
	rows     map[string]*wire.Row    // by type, in the names of all profiles, or by name
	others   map[otherForm]*wire.Row // the other forms of a kind, which a line keeps: interrupts, receipts and turns
}

// An otherForm is a kind and the type of its lines, which is "" for the usual one.
type otherForm struct {
	kind agentevents.Kind
	typ  string
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
	id := func(f IDForm) textForm { return idForm(p, f) }
	schemaVersion := may("schemaVersion", "", versionForm{keptForm: keptForm{perSchema(wholeFrom(0), wholeFrom(1))}})
	if p == SchemaV2 {
		schemaVersion.Need = true
		schemaVersion = schemaVersion.Or(madeJSON("1"))
	}
	f := wire.Format{
		Name: Name, Required: RuleRequired, Body: "payload", Remarks: []string{keptSpelled, keptAbsent, keptType, keptProfile, keptTwin},
		Head: []wire.Member{
			need("eventId", "/id", id(EventID).says(ownID)), need("runId", "/runId", id(RunID)).Or(made(unknownRun)), may("nodeId", "/nodeId", id(NodeID).says(ownNode)),
			need("type", "", wire.Type), need("payload", "", wire.Body),
		},
		Any: []wire.Member{may("", "/agentId", agentOfOther{})},
		Tail: []wire.Member{
			need("timestamp", "/timestamp", wire.AnyTime(timeForm{}, time.Millisecond)), need("sequence", "/sequence", sequenceForm{}), schemaVersion,
			may("engineVersion", "", versionForm{keptForm{aVersion}, true}), may("causationId", "/causationId", id(EventID).says(cause)),
		},
		Lack: lack, Pick: pick, Keep: keep, Place: place, Elsewhere: elsewhere, Extra: extraLost(p),
	}
	table := rows(p)
	for i := range table {
		r := &table[i]
		r.p = p
		line := wire.Row{Type: r.typ, Kind: r.kind, Says: r.says, More: r, Reads: p == SchemaV2 && r.legacy || r.reads}
		if p == SchemaV2 && r.v2 != "" {
			line.Type = r.v2
		}
		for _, c := range r.members {
			line.Members = r.add(line.Members, c)
		}
		for i := range line.Members {
			m := &line.Members[i]
			of, ok := m.Form.(textForm)
			m.Plain = ok && of.say == nil && of.mend == nil
		}
		f.Rows = append(f.Rows, line)
	}
	d := document{Format: wire.New(f), p: p, toolName: "toolName", rows: map[string]*wire.Row{}, others: map[otherForm]*wire.Row{}}
	if p == RFC0002 {
		d.toolName = "toolId"
	}
	for i := range d.Rows {
		at := &d.Rows[i]
		r := at.More.(*row)
		d.rows[cmp.Or(r.of, r.typ)] = at
		if r.of != "" && !(p == SchemaV2 && r.legacy) {
			d.others[otherForm{r.kind, r.typ}] = at
			if _, usual := d.others[otherForm{r.kind, ""}]; !usual && !r.legacy {
				d.others[otherForm{r.kind, ""}] = at
			}
		}
		if r.v2 != "" {
			d.rows[r.v2] = at
		}
	}
	return d
}

// rows returns the document under a profile.
func rows(p Profile) []row {
	var (
		m = func(name, says string, form wire.Form) column {
			return column{Member: wire.May(name, says, form), p: p}
		}
		old      = p != SchemaV2 // the types before version 2
		json     = wire.Value{}
		constant = func(text string) wire.Form { return wire.Const(jsonwire.Quote(text)) }
		content  = textForm{}
		object   = jsonObject(p)
		id       = func(f IDForm) textForm { return idForm(p, f) }
		handed   = id(HandoffID)
		resolves = answerForm{id(InterruptID)}
		gate     = answerForm{id(PlainID)}
		agent    = m("agentId", "/agentId", id(AgentID)).must(all).or(madeAgent)
		artifact = func(name string) column { return m(name, "", artifactForm{p, name}) } // the vocabulary has no field for it
		anyAgent = m("agentId", "/agentId", textForm{spell: true, mend: normalizing(AgentID)}).on(none)
		node     = m("nodeId", "", nodeForm).must(schemas).written()
		asker    = m("nodeId", "", apart{anID(NodeID, aText), nodeForm.read, nodeForm.own}).must(schemas).written() // SchemaV1 lets it be empty
		reason   = m("reason", "reason", text)
		block    = m("blockId", "blockId", text).on(none)
		verbose  = m("verbosity", "verbosity", wordForm(p, verbosities))
		failure  = m("error", "error", errorObject(p, false))
		toolErr  = m("error", "error", errorObject(p, p == RFC0002))
		tool     = m("toolId", "toolId", id(PlainID).says(calledTool)).schemas("toolName").must(all).or(made("unknown"))
		callID   = m("callId", "callId", id(PlainID)).must(all).or(madeOf(ofEvent))
		duration = m("durationMs", "durationMs", millis)
		host     = []part{may("causationHostId", aName)}
		lasted   = may("durationMs", wholeFrom(0))
		outputs  = m("outputs", "outputs", object)
		key      = newKeyForm(p)
		action   = m("action", "answer", actionForm{keptForm{perSchema(anAction, anAction)}})
		asked    = m("interruptId", "interruptId", textForm{}).written().orAlways(madeOf(ofEvent))
	)
	title, breach, amount, decision, ask := textForm{}, wire.Form(textForm{rule: aCap}), wire.Form(json), wire.Form(json), plainly("[]")
	if p != RFC0002 {
		ask = madeAs(unknownQuestion, `[{"id":"q1","question":"?"}]`)
		decision = ruled{decisionForm{}, aDecision}
		title.rule, breach, amount = aName, wire.OneOf(RuleEnum, wire.Full{}, capKinds...), wire.AtLeast(RuleRange, json, 0)
	}
	conversation := m("conversationId", "", keptForm{perSchema(shortText(aName, 256), shortText(aName, 256))}).must(all).or(made("unknown"))
	opener := anyAgent.on(v2)
	if p == SchemaV2 {
		opener.Form = textForm{spell: true, rule: anIDOf(AgentID), mend: normalizing(AgentID)}
	}
	failedNode := m("failedNodeId", "failedNodeId", textForm{spell: true, rule: anID(NodeID, aText)}).on(schemas)
	if p != RFC0002 {
		failedNode.Form = textForm{spell: true, rule: anID(NodeID, aText), mend: normalizing(NodeID)}
	}
	readAgent := anyAgent
	readAgent.Reads = true
	return []row{
		{typ: "agent.reasoned", kind: agentevents.KindAgentReasoned, also: host, members: []column{
			agent, m("reasoning", "reasoning", content).must(all).or(empty), verbose, block,
		}},
		{typ: "agent.reasoning.delta", v2: "agent.reasoning-delta", kind: agentevents.KindAgentReasoningDelta, members: []column{
			agent, m("delta", "delta", content).must(all).or(empty), m("sequence", "index", indexForm{countFrom(0)}).must(schemas).or(counted), verbose, block,
		}},
		{typ: "agent.toolCalled", v2: "agent.tool-called", kind: agentevents.KindToolCalled, also: host, members: []column{
			agent, tool, callID, m("arguments", "arguments", json).schemas("inputs").orAlways(madeArguments),
			m("argsHash", "argsHash", text), m("principal", "principal", text), m("transport", "transport", wordForm(p, transports)),
		}},
		{typ: "agent.toolReturned", v2: "agent.tool-returned", kind: agentevents.KindToolReturned, also: host, members: []column{
			agent, tool, callID, m("result", "result", json).schemas("outcome").unless(failed), toolErr,
			m("status", "status", statusForm{textForm{rule: oneOf(toolStatuses...)}}), duration.unless(neverBegan),
		}},
		{typ: "agent.handoff", kind: agentevents.KindAgentHandoff, also: host, says: "/agentId", members: []column{
			readAgent, m("", "", handsOver{}),
			m("from", "from", refForm{p}).on(rfc).must(rfc).elsewhere("fromAgentId"), m("fromAgentId", "from/agentId", handed).on(schemas).must(schemas).elsewhere("from").or(madeOf(handing)),
			m("to", "to", refForm{p}).on(rfc).must(rfc).elsewhere("toAgentId"), m("toAgentId", "to/agentId", handed).on(schemas).must(schemas).elsewhere("to").or(made(CoreSystem)),
			reason, m("context", "context", json).on(rfc | v1),
		}},
		{typ: "agent.decided", kind: agentevents.KindAgentDecided, also: host, members: []column{
			agent, m("decision", "decision", json).must(all).or(madeJSON("null")), m("confidence", "confidence", wire.Unit(RuleRange, json)),
			m("reasoning", "reasoning", text).on(rfc),
		}},
		{typ: "runOrchestrator.decided", v2: "orchestrator.decided", kind: agentevents.KindOrchestratorDecided, also: host, closed1: true, sealed: true, members: []column{
			agent, m("decision", "decision", decision).must(all).or(madeJSON(`{"kind":"terminate"}`)), m("iteration", "iteration", countFrom(1)),
		}},
		{typ: "node.started", kind: agentevents.KindNodeStarted, members: []column{
			node, m("typeId", "typeId", id(TypeID)).must(schemas).or(made("core.unknown")), m("attempt", "attempt", countFrom(0)),
			m("agent", "agent", refForm{p}).on(rfc), anyAgent,
		}},
		{typ: "node.completed", kind: agentevents.KindNodeCompleted, members: []column{
			node, outputs, duration, m("agent", "agent", refForm{p}).on(rfc), anyAgent,
		}},
		{typ: "node.failed", kind: agentevents.KindNodeFailed, also: []part{may("attempts", wholeFrom(1))}, members: []column{
			node, failure.must(all).unless(noError), anyAgent,
		}},
		{typ: "node.skipped", kind: agentevents.KindNodeSkipped, members: []column{node, reason, anyAgent}},
		{typ: "node.suspended", kind: agentevents.KindNodeSuspended, also: suspension, members: []column{
			node, m("", "details", detailsForm{p: p, first: true}), m("reason", "reason", shortForm(p)).on(v2), anyAgent, m("", "details", detailsForm{p: p}),
		}},
		{typ: "cap.breached", kind: agentevents.KindCapBreached, also: []part{may("nodeId", anID(NodeID, aText))}, members: []column{
			m("kind", "cap", breach).must(all).or(empty), m("limit", "limit", amount).must(schemas).or(madeJSON("0")),
			m("observed", "observed", amount).must(schemas).or(madeJSON("0")), anyAgent,
		}},
		{typ: "run.started", kind: agentevents.KindRunStarted, also: []part{
			may("transport", oneOf("rest", "mcp", "a2a", "ui")), may("engineVersion", aVersion), may("owner", anOwner),
			may("tags", listOf(aText, 0, false)), may("metadata", anObject),
		}, members: []column{
			m("workflowId", "/workflowId", id(WorkflowID)).must(schemas).or(madeWorkflow), m("inputs", "inputs", object), anyAgent,
		}},
		{typ: "run.paused", kind: agentevents.KindRunPaused, also: []part{
			may("drainPolicy", oneOf("immediate", "drain-current-node")).in(SchemaV2),
			may("interruptedNodeId", anIDOf(NodeID)).in(SchemaV2), may("interruptedAttempt", wholeFrom(1)).in(SchemaV2),
		}, members: []column{reason, anyAgent}},
		{typ: "run.resumed", kind: agentevents.KindRunResumed, open2: true, members: []column{m("message", "message", text).on(none), anyAgent}},
		{typ: "run.completed", kind: agentevents.KindRunCompleted, also: []part{lasted}, members: []column{outputs.must(v2).or(madeJSON("{}")), anyAgent}},
		{typ: "run.failed", kind: agentevents.KindRunFailed, also: []part{lasted}, members: []column{
			failure.must(schemas).or(madeAs(unknownError, `{"code":"error","message":"error"}`)), failedNode, anyAgent,
		}},
		{typ: "run.cancelled", kind: agentevents.KindRunCancelled, also: []part{lasted, may("cancelledBy", aText), may("parentRunId", anID(RunID, aName))}, members: []column{
			reason, anyAgent,
		}},
		{typ: "channel.written", kind: agentevents.KindMessageCreated, closed1: true, sealed: true, also: written, members: []column{
			m("channel", "", constant(MessageChannel)).must(all), m("value", "message", messageForm{}).must(all),
			m("reducer", "", reducerForm).must(schemas).written(), m("writtenAt", "", writtenAt).must(schemas).written(),
		}},
		{typ: exchanged, of: ofTurn, kind: agentevents.KindMessageCreated, reads: true, also: []part{may("outcome", nil)}, members: []column{
			conversation, m("turnIndex", "", keptForm{perSchema(wholeFrom(0), wholeFrom(0))}).must(all).or(madeJSON("0")),
			m("turn", "message", turnForm{}).must(all),
		}},
		{typ: begins, of: ofOpening, kind: agentevents.KindMessageCreated, reads: true, also: []part{
			may("openedBy", aText), may("participants", nil), may("schema", nil), may("capabilities", nil),
		}, members: []column{
			conversation, m("initialTurn", "message", turnForm{}).must(all), opener,
		}},
		usageRow(p, anyAgent),

		// A node that waits for a person. The RFC and SchemaV1 have a type for each
		// question and answer, SchemaV2 has interrupts.
		{typ: "clarification.requested", kind: agentevents.KindClarificationRequested, legacy: true, members: []column{
			asker.must(v1), asked, m("questions", "questions", questions(p, false)).must(rfc | v1).or(plainly("[]")), anyAgent,
		}},
		{typ: "interrupt.requested", of: "clarification", kind: agentevents.KindClarificationRequested, reads: old, closed1: true, sealed: true, also: []part{
			may("resumeSchema", anObject), may("timeoutMs", wholeFrom(0)), may("data/contextType", aText),
		}, members: []column{
			m("kind", "", constant(kindClarification)).must(all), m("key", "interruptId", key).must(all).or(madeOf(ofEvent)),
			m("data", "", wire.Object(wire.Need("questions", "questions", questions(p, true)).Or(ask))).must(all),
		}},
		{typ: "clarification.resolved", kind: agentevents.KindClarificationResolved, legacy: true, members: []column{
			asker, asked.on(v2), m("answers", "answers", object).must(rfc | v1).or(madeJSON("{}")), m("answeredBy", "answeredBy", text), anyAgent,
		}},
		{typ: "interrupt.resolved", of: "answer", kind: agentevents.KindClarificationResolved, reads: old, also: answered, members: []column{
			asker, m("interruptId", "interruptId", resolves).must(all).or(madeOf(ofEvent)), m("kind", "", constant(kindClarification)).written(),
			m("resumeValue", "answers", json), m("answeredBy", "answeredBy", text).on(none), anyAgent,
		}},
		{typ: "approval.requested", kind: agentevents.KindApprovalRequested, legacy: true, also: artifacts, members: []column{
			asker.must(v1), m("interruptId", "approvalId", textForm{}).written().orAlways(madeOf(ofEvent)), artifact("artifactId").must(v1), artifact("artifactType").must(v1),
			m("title", "action", text), artifact("actions").must(v1), reason.on(v2), m("scope", "scope", text).on(v2), m("risk", "risk", text).on(v2),
			m("callId", "callId", plain).on(v2), m("toolId", "toolId", plain).on(rfc | v2), m("arguments", "arguments", json).on(rfc | v2),
			m("timeoutMs", "timeoutMs", millis).on(v2), anyAgent,
		}},
		{typ: "interrupt.requested", of: "approval", kind: agentevents.KindApprovalRequested, reads: old, closed1: true, sealed: true, also: []part{
			may("resumeSchema", anObject), may("data/artifactId", aName), may("data/artifactType", aName),
			may("data/actions", listOf(oneOf(actions("edit-accept")...), 1, true)), may("data/description", aText),
			may("data/requiredApprovals", wholeFrom(1)), may("data/approversList", listOf(aText, 0, false)),
			may("data/rejectionPolicy", oneOf("single-veto", "majority")),
		}, members: []column{
			m("kind", "", constant(kindApproval)).must(all), m("key", "approvalId", key).must(all).or(madeOf(ofEvent)),
			m("data", "", wire.Object(artifact("artifactId").must(schemas).Member, artifact("artifactType").must(schemas).Member,
				m("title", "action", title).must(schemas).orAlways(made(kindApproval)).Member, artifact("actions").must(schemas).Member)).must(all),
			m("timeoutMs", "timeoutMs", millis),
		}},
		{typ: "approval.granted", kind: agentevents.KindApprovalGranted, legacy: true, closed1: true, also: []part{may("quorumProgress", aQuorum)}, members: []column{
			m("gateId", "approvalId", gate).must(v1).orAlways(madeOf(ofEvent)), m("principal", "approvedBy", plain).must(v1).or(made("user")), action.on(none),
		}},
		{typ: "approval.rejected", kind: agentevents.KindApprovalRejected, legacy: true, closed1: true, members: []column{
			m("gateId", "approvalId", gate).must(v1).orAlways(madeOf(ofEvent)), m("principal", "rejectedBy", plain).must(v1).or(made("user")),
			m("reason", "feedback", text).unless(toldApart), action.on(none),
		}},
		{typ: "approval.received", of: "approval.received granted", kind: agentevents.KindApprovalGranted, reads: true, legacy: true, members: []column{
			asker.must(v1), m("interruptId", "approvalId", answerForm{}).written().orAlways(madeOf(ofEvent)), action.must(all).or(made("accept")),
			m("decidedBy", "approvedBy", text), m("comment", "feedback", text).unless(toldApart), anyAgent,
		}},
		{typ: "approval.received", of: "approval.received rejected", kind: agentevents.KindApprovalRejected, reads: true, legacy: true, members: []column{
			asker.must(v1), m("interruptId", "approvalId", answerForm{}).written().orAlways(madeOf(ofEvent)), action.must(all).or(made("reject")),
			m("decidedBy", "rejectedBy", text), m("comment", "feedback", text).unless(toldApart), anyAgent,
		}},
		{typ: "interrupt.resolved", of: "granted", kind: agentevents.KindApprovalGranted, reads: old, also: decided, members: []column{
			asker, m("interruptId", "approvalId", resolves).must(all).or(madeOf(ofEvent)), m("kind", "", constant(kindApproval)).written(),
			m("reason", "feedback", shortForm(p)).on(v2).unless(toldApart), m("decision", "", constant("granted")).on(v2 | rfc).written(), action.on(v2), m("principal", "approvedBy", text).on(none), anyAgent,
		}},
		{typ: "interrupt.resolved", of: "rejected", kind: agentevents.KindApprovalRejected, reads: old, also: decided, members: []column{
			asker, m("interruptId", "approvalId", resolves).must(all).or(madeOf(ofEvent)), m("kind", "", constant(kindApproval)).written(),
			m("reason", "feedback", shortForm(p)).on(v2).unless(toldApart), m("decision", "", constant("rejected")).on(v2 | rfc).written(), action.on(v2), m("principal", "rejectedBy", text).on(none), anyAgent,
		}},
	}
}

// written are the members of a channel.written besides its message.
var written = []part{
	may("nodeId", anIDOf(NodeID)), may("schemaVersion", wholeFrom(1)), may("sourceEngineId", shortText(aName, 256)), may("sourceRunId", anIDOf(RunID)),
}

// anAction is the answer of a person to an approval.
var anAction = oneOf("accept", "reject", "refine", "edit-accept", "timeout")

// answered are those of an answer to an interrupt, decided those of a decision.
var (
	answered = append(decided, may("reason", shortText(aName, 64)).in(SchemaV2), may("decision", oneOf("granted", "rejected", "overridden")).in(SchemaV2))
	decided  = []part{
		may("action", anAction).in(SchemaV2), may("resolvedBy", aSubject).in(SchemaV2),
		may("refineFeedback", aFeedback).in(SchemaV2), may("editedArtifactData", nil), may("resumeValue", nil),
	}
)

// artifacts are those of a request for approval, under SchemaV1.
var artifacts = []part{
	may("artifactId", aText).in(SchemaV1), may("artifactType", aText).in(SchemaV1), may("actions", listOf(oneOf(actions("edit")...), 1, false)).in(SchemaV1),
	may("approversList", listOf(aText, 0, false)).in(SchemaV1), may("requiredApprovals", wholeFrom(1)).in(SchemaV1),
}
