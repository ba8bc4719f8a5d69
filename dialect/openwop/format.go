package openwop

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/facts"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A row is a type of line under a profile.
type row struct {
	typ, v2 string // the type, and its name under SchemaV2, if that differs
	// of is the name of the row, if lines of its type may have other payloads: see
	// look.
	of   string
	kind agentevents.Kind

	fields  string // fields that the line holds beside the fields of its members
	members []column
	data    string // the schema of the member data

	legacy bool // SchemaV2 has another row for the kind
	reads  bool // the profile has another row for the kind

	p        Profile
	payload  *facts.Schema
	node     bool     // the payload names the node
	needNode bool     // and must
	usual    []string // members that are not required, but written unless the line lacked them
}

// A column is a member of a row, as the profile has it. The schema of the payload decides
// whether the profile declares it, which the other open payloads may have too, and requires it.
type column struct {
	engine.Member
	p      Profile
	other  string // its name under the other profiles, if that differs
	usual  bool
	always bool   // all lines of the row have it
	needed absent // appends a value if the member is required
	twin   string // the member that stands for it under the profiles that do not declare it
}

// absent appends the value of a member that the event lacks.
type absent = func(w *engine.Writer, dst []byte, m *engine.Member) []byte

// in returns the column as a member of a schema.
func (c column) in(s *facts.Schema) column {
	_, declared, need := s.Member(c.Name)
	c.Need, c.Loose = need || c.always, !declared && !c.always
	if c.Need && c.needed != nil {
		c.Member = c.Or(c.needed)
	}
	if c.Loose && c.twin != "" {
		c.Reads, c.For = true, c.twin
	}
	return c
}

// inAll makes the member one that all lines of the row have.
func (c column) inAll() column {
	c.always = true
	return c
}

// schemas gives the member another name in the published schemas.
func (c column) schemas(name string) column {
	if c.other = name; c.p != RFC0002 {
		c.Name, c.other = name, c.Name
	}
	return c
}

// elsewhere names the member that stands for this one under the profiles that do not declare it.
func (c column) elsewhere(twin string) column {
	c.twin = twin
	return c
}

// written makes the member one that is written unless the line lacked it.
func (c column) written() column {
	c.usual = true
	return c
}

// or sets the value of an absent member under the profiles that require it.
func (c column) or(f absent) column {
	c.needed = f
	return c
}

func (c column) orAlways(f absent) column {
	c.Member = c.Or(f)
	return c
}

func (c column) unless(f func(w *engine.Writer) bool) column {
	c.Member = c.Unless(f)
	return c
}

// object returns the schema of the object at a pointer of a line, or nil. The line has no row
// if its type is one that the vocabulary does not have.
func (r *row) object(p Profile, at string) *facts.Schema {
	if at == "" {
		return envelopeOf(p)
	}
	if r == nil {
		return nil
	}
	s := r.payload
	path := strings.Split(at[1:], "/")[1:] // after the payload
	if len(path) > 0 && path[0] == "data" && r.data != "" {
		s, path = tableOf(p)[r.data], path[1:]
	}
	for _, step := range path {
		if inner, declared, _ := s.Member(step); declared {
			s = inner
		} else {
			s = s.Element()
		}
	}
	return s
}

// refuses reports whether the payload must not have the member.
func (r *row) refuses(name string) bool { return r.payload.Refuses(name) }

// add adds the members that a column is.
func (r *row) add(list []engine.Member, c column) []engine.Member {
	if c.Name != "" {
		c = c.in(r.payload)
		if r.p == SchemaV2 && r.legacy {
			_, _, need := payloadOf(SchemaV2, r.typ).Member(c.Name)
			c.Need = c.Need && need
		}
	}
	if c.Name == "nodeId" {
		r.node, r.needNode = true, c.Need
	}
	if c.usual && !c.Need {
		r.usual = append(r.usual, c.Name)
		c = c.unless(func(w *engine.Writer) bool { return encoderOf(w).leaves(c.Name) })
	}
	other := c.Member
	other.Name, other.For, other.Need, other.Loose, other.Reads = c.other, c.Name, false, true, true
	c.Reads = c.Reads || c.Loose && r.payload.Closed()
	if list = append(list, c.Member); c.other != "" {
		list = append(list, other)
	}
	return list
}

// schemaOf returns the schema of the payload of a row. Legacy rows of SchemaV2 have the schemas of
// SchemaV1.
func schemaOf(p Profile, r *row) *facts.Schema {
	if s := tableOf(p)["row:"+strings.ReplaceAll(r.of, " ", "-")]; s != nil {
		return s
	}
	switch {
	case p != SchemaV2:
		return payloadOf(p, r.typ)
	case r.legacy:
		return payloadOf(SchemaV1, r.typ)
	}
	return payloadOf(p, cmp.Or(r.v2, r.typ))
}

// A document is the table of a profile.
type document struct {
	*engine.Format
	p        Profile
	toolName string                    // how the profile calls toolId
	rows     map[string]*engine.Row    // by type, in the names of all profiles, or by name
	others   map[otherForm]*engine.Row // the other forms of a kind, which a line keeps: interrupts, receipts and turns
}

// An otherForm is a kind and the type of its lines, which is "" for the usual one.
type otherForm struct {
	kind agentevents.Kind
	typ  string
}

var tables = [...]func() *document{
	RFC0002: documentOnce(RFC0002), SchemaV1: documentOnce(SchemaV1), SchemaV2: documentOnce(SchemaV2),
}

func documentOnce(p Profile) func() *document {
	return sync.OnceValue(func() *document { return newDocument(p) })
}

// documentOf returns the table of a profile.
func documentOf(p Profile) *document {
	if int(p) >= len(tables) {
		p = RFC0002
	}
	return tables[p]()
}

func newDocument(p Profile) *document {
	need, may := engine.Need, engine.May
	id := func(f IDForm) textForm { return idForm(p, f) }
	schemaVersion := column{Member: may("schemaVersion", "", versionForm{})}.or(madeJSON("1")).in(envelopeOf(p)).Member
	schemaVersion.Loose = false
	f := engine.Format{
		Name: Name, Required: RuleRequired, Body: "payload",
		Remarks: []string{keptSpelled, keptAbsent, keptType, keptProfile, keptTwin},
		Head: []engine.Member{
			need("eventId", "/id", id(EventID).says(ownID)), need("runId", "/runId", id(RunID)).Or(made(unknownRun)), may("nodeId", "/nodeId", id(NodeID).says(ownNode)),
			need("type", "", engine.Type), need("payload", "", engine.Body),
		},
		Tail: []engine.Member{
			need("timestamp", "/timestamp", engine.AnyTime(timeForm{}, time.Millisecond)), need("sequence", "/sequence", sequenceForm{}), schemaVersion,
			may("engineVersion", "", versionForm{engine: true}), may("causationId", "/causationId", id(EventID).says(cause)),
		},
		Lack: lack, Pick: pick, Keep: keep, Place: place, Elsewhere: elsewhere,
	}
	table := rows(p)
	for i := range table {
		r := &table[i]
		r.p, r.payload = p, schemaOf(p, r)
		line := engine.Row{Type: r.typ, Kind: r.kind, Fields: r.fields, More: r, Reads: p == SchemaV2 && r.legacy || r.reads}
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
	d := &document{
		Format: engine.New(f), p: p, toolName: "toolName",
		rows: map[string]*engine.Row{}, others: map[otherForm]*engine.Row{},
	}
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

// The schemas of the data of an interrupt.
const (
	clarificationData = "suspend-request.ClarificationData"
	approvalData      = "suspend-request.ApprovalData"
)

// rows returns the document under a profile.
func rows(p Profile) []row {
	var (
		m = func(name, says string, form engine.Form) column {
			return column{Member: engine.May(name, says, form), p: p}
		}
		old      = p != SchemaV2 // the types before version 2
		json     = engine.Value{}
		constant = func(text string) engine.Form { return engine.Const(jsonwire.Quote(text)) }
		content  = textForm{}
		object   = jsonObject(p)
		id       = func(f IDForm) textForm { return idForm(p, f) }
		handed   = id(HandoffID)
		resolves = answerForm{id(InterruptID)}
		gate     = answerForm{id(PlainID)}
		agent    = m("agentId", "/agentId", id(AgentID)).or(madeAgent)
		artifact = func(name string) column { return m(name, "", artifactForm{p, name}) } // it has no field
		anyAgent = m("agentId", "/agentId", textForm{spell: true, mend: normalizing(AgentID)})
		node     = m("nodeId", "", nodeForm).written()
		reason   = m("reason", "reason", text)
		block    = m("blockId", "blockId", text)
		verbose  = m("verbosity", "verbosity", wordForm(p))
		failure  = m("error", "error", errorObject(p, false))
		toolErr  = m("error", "error", errorObject(p, p == RFC0002))
		tool     = m("toolId", "toolId", id(PlainID).says(calledTool)).schemas("toolName").or(made("unknown"))
		callID   = m("callId", "callId", id(PlainID)).or(madeOf(ofEvent))
		duration = m("durationMs", "durationMs", millis)
		outputs  = m("outputs", "outputs", object)
		key      = newKeyForm()
		action   = m("action", "answer", actionForm{})
		asked    = m("interruptId", "interruptId", textForm{}).written().orAlways(madeOf(ofEvent))
	)
	breach, amount, decision, ask := engine.Form(textForm{}), engine.Form(json), engine.Form(json), madeJSON("[]")
	if p != RFC0002 {
		ask = madeJSON(`[{"id":"q1","question":"?"}]`)
		decision = decisionForm{}
		breach = engine.OneOf(RuleEnum, engine.Full{}, wordsOf(p, "cap.breached", "kind")...)
		amount = engine.AtLeast(RuleRange, json, 0)
	}
	conversation := m("conversationId", "", keptForm{}).or(made("unknown"))
	failedNode := m("failedNodeId", "failedNodeId", id(NodeID))
	approval := tableOf(p)[approvalData]
	asking := func(name string) engine.Member { return artifact(name).in(approval).Member }
	readAgent := anyAgent
	readAgent.Reads = true
	return []row{
		{typ: "agent.reasoned", kind: agentevents.KindAgentReasoned, members: []column{
			agent, m("reasoning", "reasoning", content).or(empty), verbose, block,
		}},
		{typ: "agent.reasoning.delta", v2: "agent.reasoning-delta", kind: agentevents.KindAgentReasoningDelta, members: []column{
			agent, m("delta", "delta", content).or(empty), m("sequence", "index", indexForm{countFrom(0)}).or(counted), verbose, block,
		}},
		{typ: "agent.toolCalled", v2: "agent.tool-called", kind: agentevents.KindToolCalled, members: []column{
			agent, tool, callID, m("arguments", "arguments", json).schemas("inputs").orAlways(madeArguments),
			m("argsHash", "argsHash", text), m("principal", "principal", text), m("transport", "transport", wordForm(p)),
		}},
		{typ: "agent.toolReturned", v2: "agent.tool-returned", kind: agentevents.KindToolReturned, members: []column{
			agent, tool, callID, m("result", "result", json).schemas("outcome").unless(failed), toolErr,
			m("status", "status", statusForm{}), duration.unless(neverBegan),
		}},
		{typ: "agent.handoff", kind: agentevents.KindAgentHandoff, fields: "/agentId", members: []column{
			readAgent, m("", "", handsOver{}),
			m("from", "from", refForm{p}).elsewhere("fromAgentId"), m("fromAgentId", "from/agentId", handed).elsewhere("from").or(madeOf(handing)),
			m("to", "to", refForm{p}).elsewhere("toAgentId"), m("toAgentId", "to/agentId", handed).elsewhere("to").or(made(CoreSystem)),
			reason, m("context", "context", json),
		}},
		{typ: "agent.decided", kind: agentevents.KindAgentDecided, members: []column{
			agent, m("decision", "decision", json).or(madeJSON("null")), m("confidence", "confidence", engine.Unit(RuleRange, json)),
			m("reasoning", "reasoning", text),
		}},
		{typ: "runOrchestrator.decided", v2: "orchestrator.decided", kind: agentevents.KindOrchestratorDecided, members: []column{
			agent, m("decision", "decision", decision).or(madeJSON(`{"kind":"terminate"}`)), m("iteration", "iteration", countFrom(1)),
		}},
		{typ: "node.started", kind: agentevents.KindNodeStarted, members: []column{
			node, m("typeId", "typeId", id(TypeID)).or(made("core.unknown")), m("attempt", "attempt", countFrom(0)),
			m("agent", "agent", refForm{p}), anyAgent,
		}},
		{typ: "node.completed", kind: agentevents.KindNodeCompleted, members: []column{
			node, outputs, duration, m("agent", "agent", refForm{p}), anyAgent,
		}},
		{typ: "node.failed", kind: agentevents.KindNodeFailed, members: []column{
			node, failure.unless(noError), anyAgent,
		}},
		{typ: "node.skipped", kind: agentevents.KindNodeSkipped, members: []column{node, reason, anyAgent}},
		{typ: "node.suspended", kind: agentevents.KindNodeSuspended, members: []column{
			node, m("", "details", detailsForm{p: p, first: true}), m("reason", "reason", shortForm(p)), anyAgent, m("", "details", detailsForm{p: p}),
		}},
		{typ: "cap.breached", kind: agentevents.KindCapBreached, members: []column{
			m("kind", "cap", breach).or(empty), m("limit", "limit", amount).or(madeJSON("0")),
			m("observed", "observed", amount).or(madeJSON("0")), anyAgent,
		}},
		{typ: "run.started", kind: agentevents.KindRunStarted, members: []column{
			m("workflowId", "/workflowId", id(WorkflowID)).or(madeWorkflow), m("inputs", "inputs", object), anyAgent,
		}},
		{typ: "run.paused", kind: agentevents.KindRunPaused, members: []column{reason, anyAgent}},
		{typ: "run.resumed", kind: agentevents.KindRunResumed, members: []column{m("message", "message", text), anyAgent}},
		{typ: "run.completed", kind: agentevents.KindRunCompleted, members: []column{outputs.or(madeJSON("{}")), anyAgent}},
		{typ: "run.failed", kind: agentevents.KindRunFailed, members: []column{
			failure.or(madeJSON(`{"code":"error","message":"error"}`)), failedNode, anyAgent,
		}},
		{typ: "run.cancelled", kind: agentevents.KindRunCancelled, members: []column{
			reason, anyAgent,
		}},
		{typ: "channel.written", kind: agentevents.KindMessageCreated, members: []column{
			m("channel", "", constant(MessageChannel)), m("value", "message", messageForm{}),
			m("reducer", "", reducerForm).written(), m("writtenAt", "", writtenAt).written(),
		}},
		{typ: exchanged, of: ofTurn, kind: agentevents.KindMessageCreated, reads: true, members: []column{
			conversation, m("turnIndex", "", keptForm{}).or(madeJSON("0")),
			m("turn", "message", turnForm{}).inAll(),
		}},
		{typ: begins, of: ofOpening, kind: agentevents.KindMessageCreated, reads: true, members: []column{
			conversation, m("initialTurn", "message", turnForm{}).inAll(), anyAgent,
		}},
		usageRow(p, anyAgent),

		// A node that waits for a person. The RFC and SchemaV1 have a type for each
		// question and answer, SchemaV2 has interrupts.
		{typ: "clarification.requested", kind: agentevents.KindClarificationRequested, legacy: true, members: []column{
			node, asked, m("questions", "questions", questions(p, false)).or(madeJSON("[]")), anyAgent,
		}},
		{typ: "interrupt.requested", of: "clarification", data: clarificationData, kind: agentevents.KindClarificationRequested, reads: old, members: []column{
			m("kind", "", constant(kindClarification)), m("key", "interruptId", key).or(madeOf(ofEvent)),
			m("data", "", engine.Object(engine.Need("questions", "questions", questions(p, true)).Or(ask))),
		}},
		{typ: "clarification.resolved", kind: agentevents.KindClarificationResolved, legacy: true, members: []column{
			node, asked, m("answers", "answers", object).or(madeJSON("{}")), m("answeredBy", "answeredBy", text), anyAgent,
		}},
		{typ: "interrupt.resolved", of: "answer", kind: agentevents.KindClarificationResolved, reads: old, members: []column{
			node, m("interruptId", "interruptId", resolves).or(madeOf(ofEvent)), m("kind", "", constant(kindClarification)).written(),
			m("resumeValue", "answers", json), m("answeredBy", "answeredBy", text), anyAgent,
		}},
		{typ: "approval.requested", kind: agentevents.KindApprovalRequested, legacy: true, members: []column{
			node, m("interruptId", "approvalId", textForm{}).written().orAlways(madeOf(ofEvent)), artifact("artifactId"), artifact("artifactType"),
			m("title", "action", text), artifact("actions"), reason, m("scope", "scope", text), m("risk", "risk", text),
			m("callId", "callId", text), m("toolId", "toolId", text), m("arguments", "arguments", json),
			m("timeoutMs", "timeoutMs", millis), anyAgent,
		}},
		{typ: "interrupt.requested", of: "approval", data: approvalData, kind: agentevents.KindApprovalRequested, reads: old, members: []column{
			m("kind", "", constant(kindApproval)), m("key", "approvalId", key).or(madeOf(ofEvent)),
			m("data", "", engine.Object(asking("artifactId"), asking("artifactType"),
				m("title", "action", textForm{}).orAlways(made(kindApproval)).in(approval).Member, asking("actions"))),
			m("timeoutMs", "timeoutMs", millis),
		}},
		{typ: "approval.granted", kind: agentevents.KindApprovalGranted, legacy: true, members: []column{
			m("gateId", "approvalId", gate).orAlways(madeOf(ofEvent)), m("principal", "approvedBy", text).or(made("user")), action,
		}},
		{typ: "approval.rejected", kind: agentevents.KindApprovalRejected, legacy: true, members: []column{
			m("gateId", "approvalId", gate).orAlways(madeOf(ofEvent)), m("principal", "rejectedBy", text).or(made("user")),
			m("reason", "feedback", text).unless(toldApart), action,
		}},
		{typ: "approval.received", of: "approval.received granted", kind: agentevents.KindApprovalGranted, reads: true, legacy: true, members: []column{
			node, m("interruptId", "approvalId", answerForm{}).written().orAlways(madeOf(ofEvent)), action.or(made("accept")),
			m("decidedBy", "approvedBy", text), m("comment", "feedback", text).unless(toldApart), anyAgent,
		}},
		{typ: "approval.received", of: "approval.received rejected", kind: agentevents.KindApprovalRejected, reads: true, legacy: true, members: []column{
			node, m("interruptId", "approvalId", answerForm{}).written().orAlways(madeOf(ofEvent)), action.or(made("reject")),
			m("decidedBy", "rejectedBy", text), m("comment", "feedback", text).unless(toldApart), anyAgent,
		}},
		{typ: "interrupt.resolved", of: "granted", kind: agentevents.KindApprovalGranted, reads: old, members: []column{
			node, m("interruptId", "approvalId", resolves).or(madeOf(ofEvent)), m("kind", "", constant(kindApproval)).written(),
			m("reason", "feedback", shortForm(p)).unless(toldApart), m("decision", "", constant("granted")).written(), action, m("principal", "approvedBy", text), anyAgent,
		}},
		{typ: "interrupt.resolved", of: "rejected", kind: agentevents.KindApprovalRejected, reads: old, members: []column{
			node, m("interruptId", "approvalId", resolves).or(madeOf(ofEvent)), m("kind", "", constant(kindApproval)).written(),
			m("reason", "feedback", shortForm(p)).unless(toldApart), m("decision", "", constant("rejected")).written(), action, m("principal", "rejectedBy", text), anyAgent,
		}},
	}
}
