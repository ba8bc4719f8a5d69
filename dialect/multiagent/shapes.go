package multiagent

import (
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Numbers of the members of the envelope, in the order of the document: from 1, as
// Scanner.Field counts envelopeNames.
const (
	mID = 1 + iota
	mTraceID
	mSpanID
	mParentSpanID
	mSessionID
	mRunID
	mTaskID
	mActor
	mType
	mPayload
	mTimestamp
	mSchemaVersion
	numMembers = iota
)

var envelopeNames = [numMembers]string{
	`"id":`, `"traceId":`, `"spanId":`, `"parentSpanId":`, `"sessionId":`, `"runId":`, `"taskId":`, `"actor":`, `"type":`, `"payload":`, `"timestamp":`,
	`"schemaVersion":`,
}

// required is the set of members that every line must have.
const required = 1<<mID | 1<<mTraceID | 1<<mSpanID | 1<<mSessionID | 1<<mRunID | 1<<mActor | 1<<mType | 1<<mPayload | 1<<mTimestamp | 1<<mSchemaVersion

// bare returns a name without its quotes and colon.
func bare(name string) string { return name[1 : len(name)-2] }

// common are the fields of a payload on a line that the payload's struct does not
// have: fields of the event's envelope, and facts that the document says in another
// form.
type common struct {
	agentID, workflowID, phase, nodeID, nodeRunID string
	parentAgentID, parentCallID, causationID      string
	step                                          agentevents.Opt[int]
	marks                                         agentevents.Marks
	// some tells the encoder that one of the texts is not empty, not counting agentID
	// and causationID.
	some bool

	parentSpanID string                 // of agent.spawned; the envelope has one, too
	tokens       agentevents.Opt[int64] // of agent.completed: the total of its usage
	message      nested                 // of agent.message.created
}

// nested stands for an object whose members are the payload's own fields.
type nested struct{}

// Numbers of the common fields that any payload may have, in the order of
// commonNames.
const (
	cAgentID = iota
	cWorkflowID
	cPhase
	cNodeID
	cNodeRunID
	cStep
	cParentAgentID
	cParentCallID
	cCausationID
	cMarks
	numCommon
)

var commonNames = [numCommon]string{
	`"agentId":`, `"workflowId":`, `"phase":`, `"nodeId":`, `"nodeRunId":`, `"step":`, `"parentAgentId":`, `"parentCallId":`, `"causationId":`, `"marks":`,
}

// field returns a pointer to the common field of that number.
func (c *common) field(n int) any {
	switch n {
	case cAgentID:
		return &c.agentID
	case cWorkflowID:
		return &c.workflowID
	case cPhase:
		return &c.phase
	case cNodeID:
		return &c.nodeID
	case cNodeRunID:
		return &c.nodeRunID
	case cStep:
		return &c.step
	case cParentAgentID:
		return &c.parentAgentID
	case cParentCallID:
		return &c.parentCallID
	case cCausationID:
		return &c.causationID
	}
	return &c.marks
}

// any reports whether a common field has a value, not counting those in lists.
func (c *common) any(lists uint16) bool {
	// Most fields are empty in most events, so one test covers many of them.
	return len(c.nodeRunID)|len(c.parentAgentID)|len(c.parentCallID)|len(c.causationID) != 0 || c.step.OK || c.marks != 0 ||
		c.agentID != "" && lists&(1<<cAgentID) == 0 || c.workflowID != "" && lists&(1<<cWorkflowID) == 0 ||
		c.phase != "" && lists&(1<<cPhase) == 0 || c.nodeID != "" && lists&(1<<cNodeID) == 0
}

// commonNumber returns the number of a common field, or -1.
func commonNumber(name string) int {
	switch name {
	case "agentId":
		return cAgentID
	case "workflowId":
		return cWorkflowID
	case "phase":
		return cPhase
	case "nodeId":
		return cNodeID
	case "nodeRunId":
		return cNodeRunID
	case "step":
		return cStep
	case "parentAgentId":
		return cParentAgentID
	case "parentCallId":
		return cParentCallID
	case "causationId":
		return cCausationID
	case "marks":
		return cMarks
	}
	return -1
}

// A shape is one type of the document: the members of its payload, and their
// fields.
type shape struct {
	typ  string
	kind agentevents.Kind
	// key is the number of leading names that are the document's key fields.
	key int
	// names are the names of the fields in the order of the encoder, then other
	// spellings.
	names []string
	// other is the number of the field for each of the other spellings.
	other []uint8
	// lists is the set of common fields in names: bit n for number n.
	lists uint16
	// made are the fields that the decoder makes up if a line lacks them.
	made  []madeUp
	empty func() agentevents.Payload
	// fields visits each field, in the order of names.
	fields func(p agentevents.Payload, c *common, f *fieldVisitor)
}

// A fieldVisitor visits the fields of a payload in one of two modes. It collects
// pointers to them, for a caller that reads a line or compares the fields with one.
// Or it writes their members at once, which is enough for events that were not read
// by this package.
type fieldVisitor struct {
	list []any

	e       *Encoder // the encoder that writes; nil to collect
	dst     []byte
	names   []string
	n       int    // number of the next field
	hidden  uint32 // set of fields that are not written
	lacking uint32 // set of empty texts, words and agents
	refs    uint32 // the agents in lacking
}

func (f *fieldVisitor) text(fields ...*string) *fieldVisitor {
	if f.e == nil {
		for _, field := range fields {
			f.list = append(f.list, field)
		}
		return f
	}
	n, dst := f.n, f.dst
	for i, field := range fields {
		if *field == "" {
			f.lacking |= 1 << (n + i)
		} else {
			dst = jsonwire.AppendString(head(dst, f.names[n+i]), *field)
		}
	}
	f.n, f.dst = n+len(fields), dst
	return f
}

func (f *fieldVisitor) json(field *agentevents.JSON) *fieldVisitor {
	if f.e == nil {
		f.list = append(f.list, field)
		return f
	}
	if *field != "" {
		f.dst = f.e.json(f.dst, f.names[f.n], *field)
	}
	f.n++
	return f
}

func (f *fieldVisitor) status(field *agentevents.ToolStatus) *fieldVisitor {
	if f.e == nil {
		f.list = append(f.list, field)
		return f
	}
	return f.text((*string)(field))
}

func (f *fieldVisitor) ref(fields ...*agentevents.AgentRef) *fieldVisitor {
	for _, field := range fields {
		if field.AgentID == "" {
			f.lacking |= 1 << f.n
			f.refs |= 1 << f.n
		}
		f.other(field)
	}
	return f
}

func (f *fieldVisitor) optRef(field *agentevents.Opt[agentevents.AgentRef]) *fieldVisitor {
	if f.e == nil {
		f.list = append(f.list, field)
		return f
	}
	if field.OK {
		f.dst = appendRef(head(f.dst, f.names[f.n]), &field.V)
	}
	f.n++
	return f
}

func (f *fieldVisitor) count(field *agentevents.Opt[int]) *fieldVisitor {
	if f.e == nil {
		f.list = append(f.list, field)
		return f
	}
	if field.OK {
		f.dst = jsonwire.AppendInt(head(f.dst, f.names[f.n]), int64(field.V))
	}
	f.n++
	return f
}

func (f *fieldVisitor) millis(field *agentevents.Opt[time.Duration]) *fieldVisitor {
	if f.e == nil {
		f.list = append(f.list, field)
		return f
	}
	if field.OK {
		f.dst = jsonwire.AppendMillis(head(f.dst, f.names[f.n]), field.V)
	}
	f.n++
	return f
}

func (f *fieldVisitor) flag(field *bool) *fieldVisitor {
	if f.e == nil {
		f.list = append(f.list, field)
		return f
	}
	if *field {
		f.dst = append(head(f.dst, f.names[f.n]), "true"...)
	}
	f.n++
	return f
}

func (f *fieldVisitor) integer(field *int64) *fieldVisitor {
	if f.e == nil {
		f.list = append(f.list, field)
		return f
	}
	f.dst = jsonwire.AppendInt(head(f.dst, f.names[f.n]), *field)
	f.n++
	return f
}

// optional is like other. It is faster for an absent value.
func optional[T any](f *fieldVisitor, field *agentevents.Opt[T]) *fieldVisitor {
	if f.e != nil && !field.OK {
		f.n++
		return f
	}
	return f.other(field)
}

func (f *fieldVisitor) other(fields ...any) *fieldVisitor {
	if f.e == nil {
		f.list = append(f.list, fields...)
		return f
	}
	for _, field := range fields {
		if f.hidden&(1<<f.n) == 0 {
			f.dst = f.e.value(f.dst, f.names[f.n], field)
		}
		f.n++
	}
	return f
}

// collect returns pointers to the fields of p and c.
func (f *fieldVisitor) collect(sh *shape, p agentevents.Payload, c *common) []any {
	f.list, f.e = f.list[:0], nil
	sh.fields(p, c, f)
	return f.list
}

// write appends the members of p and c. Of the hidden fields, it leaves out those that
// other visits.
func (f *fieldVisitor) write(dst []byte, e *Encoder, sh *shape, p agentevents.Payload, c *common, hidden uint32) []byte {
	f.dst, f.e, f.names, f.n, f.hidden, f.lacking, f.refs = dst, e, sh.names, 0, hidden, 0, 0
	sh.fields(p, c, f)
	dst, f.dst = f.dst, nil
	return dst
}

// own returns the number of fields.
func (sh *shape) own() int { return len(sh.names) - len(sh.other) }

// A madeUp is a field that the decoder never leaves empty, and the source of its
// value.
type madeUp struct {
	field uint8
	from  source
}

type source uint8

const (
	ofEvent    source = iota // derived from the event's id
	ofCall                   // the open call of the span; else derived from the event's id
	ofTool                   // the tool of the open call; else the word unknown
	ofApproval               // the open approval of the span; else derived from the event's id
	ofAgent                  // the agent, or the actor; else the word unknown
	ofError                  // error if the payload has an error; else ok
	ofTime                   // the event's time in milliseconds
	nobody                   // the word unknown
)

// unknownWord stands for a required word that the line lacks.
const unknownWord = "unknown"

// Indices of shapes.
const (
	sSessionStarted = iota
	sNodeEnter
	sMessageCreated
	sTaskAssigned
	sToolStarted
	sToolCompleted
	sHandoffRequested
	sHandoffAccepted
	sItemCreated
	sApprovalRequested
	sApprovalGranted
	sIssueFound
	sRoundCompleted
	sBudgetExceeded
	sSessionCompleted
	sWorkflowCreated
	sWorkflowApproved
	sPhaseStarted
	sPhaseCompleted
	sSpawned
	sCompleted
	sClaimVerified
	sCheckpointSaved
	sCheckpointResumed
	sFinalized
	numShapes
	sUnknown = numShapes
)

// shapes are the types of the document, in its order.
var shapes = [numShapes]shape{
	sSessionStarted: {
		typ: "session.started", kind: agentevents.KindSessionStarted,
		names: []string{`"goal":`},
		empty: func() agentevents.Payload { return new(agentevents.SessionStarted) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			f.text(&p.(*agentevents.SessionStarted).Goal)
		},
	},
	sNodeEnter: {
		typ: "workflow.node.enter", kind: agentevents.KindNodeStarted,
		names: []string{`"nodeId":`, `"agent":`, `"typeId":`, `"attempt":`, `"node":`, `"workflowNode":`}, other: []uint8{0, 0},
		lists: 1 << cNodeID,
		made:  []madeUp{{0, ofEvent}},
		empty: func() agentevents.Payload { return new(agentevents.NodeStarted) },
		fields: func(p agentevents.Payload, c *common, f *fieldVisitor) {
			v := p.(*agentevents.NodeStarted)
			f.text(&c.nodeID).other(&v.Agent).text(&v.TypeID).other(&v.Attempt)
		},
	},
	sMessageCreated: {
		typ: "agent.message.created", kind: agentevents.KindMessageCreated,
		names: []string{`"messageId":`, `"from":`, `"to":`, `"groupId":`, `"content":`, `"ts":`, `"role":`, `"turnIndex":`, `"agent":`, `"message":`,
			`"id":`, `"text":`}, other: []uint8{0, 4},
		made:  []madeUp{{0, ofEvent}, {1, ofAgent}, {5, ofTime}},
		empty: func() agentevents.Payload { return new(agentevents.MessageCreated) },
		fields: func(p agentevents.Payload, c *common, f *fieldVisitor) {
			v := &p.(*agentevents.MessageCreated).Message
			f.text(&v.MessageID, &v.From, &v.To, &v.GroupID).json(&v.Content).integer(&v.TS).text(&v.Role)
			optional(f, &v.TurnIndex).optRef(&v.Agent).other(&c.message)
		},
	},
	sTaskAssigned: {
		typ: "agent.task.assigned", kind: agentevents.KindTaskAssigned,
		names: []string{`"goal":`, `"assignedAgent":`, `"context":`, `"constraints":`, `"expectedOutput":`, `"task":`, `"expected_output":`}, other: []uint8{0, 4},
		empty: func() agentevents.Payload { return new(agentevents.TaskAssigned) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			v := p.(*agentevents.TaskAssigned)
			f.text(&v.Goal, &v.AssignedAgent, &v.Context).json(&v.Constraints).text(&v.ExpectedOutput)
		},
	},
	sToolStarted: {
		typ: "tool.call.started", kind: agentevents.KindToolCalled,
		names: []string{`"callId":`, `"toolId":`, `"arguments":`, `"argumentsSummary":`, `"attempt":`, `"retryOf":`, `"argsHash":`, `"principal":`, `"transport":`,
			`"attributes":`, `"toolCallId":`, `"id":`, `"toolName":`, `"tool":`, `"name":`, `"input":`, `"args":`}, other: []uint8{0, 0, 1, 1, 1, 2, 2},
		made:  []madeUp{{0, ofEvent}, {1, nobody}},
		empty: func() agentevents.Payload { return new(agentevents.ToolCalled) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			v := p.(*agentevents.ToolCalled)
			f.text(&v.CallID, &v.ToolID).json(&v.Arguments).text(&v.ArgumentsSummary).count(&v.Attempt).
				text(&v.RetryOf, &v.ArgsHash, &v.Principal, (*string)(&v.Transport)).json(&v.Attributes)
		},
	},
	sToolCompleted: {
		typ: "tool.call.completed", kind: agentevents.KindToolReturned,
		names: []string{`"callId":`, `"toolId":`, `"status":`, `"result":`, `"resultSummary":`, `"error":`, `"durationMs":`, `"oneEvent":`, `"arguments":`,
			`"argumentsSummary":`, `"toolCallId":`, `"id":`, `"toolName":`, `"tool":`, `"name":`, `"output":`, `"input":`, `"args":`},
		other: []uint8{0, 0, 1, 1, 1, 3, 8, 8},
		made:  []madeUp{{0, ofCall}, {1, ofTool}, {2, ofError}},
		empty: func() agentevents.Payload { return new(agentevents.ToolReturned) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			v := p.(*agentevents.ToolReturned)
			f.text(&v.CallID, &v.ToolID).status(&v.Status).json(&v.Result).text(&v.ResultSummary)
			optional(f, &v.Error).millis(&v.Duration).flag(&v.OneEvent).json(&v.Arguments).text(&v.ArgumentsSummary)
		},
	},
	sHandoffRequested: {
		typ: "handoff.requested", kind: agentevents.KindHandoffRequested,
		names: []string{`"handoffId":`, `"from":`, `"to":`, `"reason":`, `"contextDigest":`, `"fromAgent":`, `"toAgent":`, `"context_digest":`}, other: []uint8{1, 2, 4},
		made:  []madeUp{{1, ofAgent}, {2, nobody}},
		empty: func() agentevents.Payload { return new(agentevents.HandoffRequested) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			v := p.(*agentevents.HandoffRequested)
			f.text(&v.HandoffID).ref(&v.From, &v.To).text(&v.Reason, &v.ContextDigest)
		},
	},
	sHandoffAccepted: {
		typ: "handoff.accepted", kind: agentevents.KindHandoffAccepted,
		names: []string{`"handoffId":`, `"from":`, `"to":`, `"reason":`, `"contextDigest":`, `"fromAgent":`, `"toAgent":`, `"context_digest":`}, other: []uint8{1, 2, 4},
		made:  []madeUp{{1, nobody}, {2, ofAgent}},
		empty: func() agentevents.Payload { return new(agentevents.HandoffAccepted) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			v := p.(*agentevents.HandoffAccepted)
			f.text(&v.HandoffID).ref(&v.From, &v.To).text(&v.Reason, &v.ContextDigest)
		},
	},
	sItemCreated: {
		typ: "blackboard.item.created", kind: agentevents.KindBlackboardItemCreated,
		names: []string{`"itemId":`, `"itemType":`, `"content":`, `"sourceAgent":`, `"confidence":`, `"ttlMs":`, `"id":`, `"type":`}, other: []uint8{0, 1},
		made:  []madeUp{{0, ofEvent}, {1, nobody}},
		empty: func() agentevents.Payload { return new(agentevents.BlackboardItemCreated) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			v := p.(*agentevents.BlackboardItemCreated)
			f.text(&v.ItemID, &v.ItemType).json(&v.Content).text(&v.SourceAgent).other(&v.Confidence, &v.TTL)
		},
	},
	sApprovalRequested: {
		typ: "approval.requested", kind: agentevents.KindApprovalRequested,
		names: []string{`"approvalId":`, `"action":`, `"reason":`, `"scope":`, `"risk":`, `"callId":`, `"toolId":`, `"arguments":`, `"timeoutMs":`, `"id":`}, other: []uint8{0},
		made:  []madeUp{{0, ofEvent}},
		empty: func() agentevents.Payload { return new(agentevents.ApprovalRequested) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			v := p.(*agentevents.ApprovalRequested)
			f.text(&v.ApprovalID, &v.Action, &v.Reason, &v.Scope, &v.Risk, &v.CallID, &v.ToolID).json(&v.Arguments).other(&v.Timeout)
		},
	},
	sApprovalGranted: {
		typ: "approval.granted", kind: agentevents.KindApprovalGranted,
		names: []string{`"approvalId":`, `"approvedBy":`, `"feedback":`, `"id":`}, other: []uint8{0},
		made:  []madeUp{{0, ofApproval}},
		empty: func() agentevents.Payload { return new(agentevents.ApprovalGranted) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			v := p.(*agentevents.ApprovalGranted)
			f.text(&v.ApprovalID, &v.ApprovedBy, &v.Feedback)
		},
	},
	sIssueFound: {
		typ: "verifier.issue.found", kind: agentevents.KindIssueFound,
		names: []string{`"issue":`, `"severity":`, `"evidence":`, `"suggestedFix":`, `"suggested_fix":`}, other: []uint8{3},
		empty: func() agentevents.Payload { return new(agentevents.IssueFound) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			v := p.(*agentevents.IssueFound)
			f.text(&v.Issue, &v.Severity).json(&v.Evidence).text(&v.SuggestedFix)
		},
	},
	sRoundCompleted: {
		typ: "loop.round.completed", kind: agentevents.KindLoopRoundCompleted,
		names: []string{`"round":`, `"score":`, `"feedback":`, `"diff":`, `"costUsd":`},
		empty: func() agentevents.Payload { return new(agentevents.LoopRoundCompleted) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			v := p.(*agentevents.LoopRoundCompleted)
			f.other(&v.Round, &v.Score).text(&v.Feedback, &v.Diff).other(&v.CostUSD)
		},
	},
	sBudgetExceeded: {
		typ: "budget.exceeded", kind: agentevents.KindBudgetExceeded,
		names: []string{`"budget":`, `"limit":`, `"actual":`, `"reason":`, `"kind":`}, other: []uint8{0},
		made:  []madeUp{{0, nobody}},
		empty: func() agentevents.Payload { return new(agentevents.BudgetExceeded) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			v := p.(*agentevents.BudgetExceeded)
			f.text(&v.Budget).other(&v.Limit, &v.Actual).text(&v.Reason)
		},
	},
	sSessionCompleted: {
		typ: "session.completed", kind: agentevents.KindSessionCompleted,
		names: []string{`"status":`, `"result":`},
		empty: func() agentevents.Payload { return new(agentevents.SessionCompleted) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			v := p.(*agentevents.SessionCompleted)
			f.text(&v.Status).json(&v.Result)
		},
	},

	sWorkflowCreated: {
		typ: "workflow.created", kind: agentevents.KindWorkflowCreated, key: 4,
		names: []string{`"workflowId":`, `"script":`, `"phases":`, `"estimatedTokens":`},
		lists: 1 << cWorkflowID,
		empty: func() agentevents.Payload { return new(agentevents.WorkflowCreated) },
		fields: func(p agentevents.Payload, c *common, f *fieldVisitor) {
			v := p.(*agentevents.WorkflowCreated)
			f.text(&c.workflowID, &v.Script).other(&v.Phases, &v.EstimatedTokens)
		},
	},
	sWorkflowApproved: {
		typ: "workflow.approved", kind: agentevents.KindWorkflowApproved, key: 3,
		names: []string{`"workflowId":`, `"approvedAt":`, `"approvedBy":`},
		lists: 1 << cWorkflowID,
		empty: func() agentevents.Payload { return new(agentevents.WorkflowApproved) },
		fields: func(p agentevents.Payload, c *common, f *fieldVisitor) {
			v := p.(*agentevents.WorkflowApproved)
			f.text(&c.workflowID).other(&v.ApprovedAt).text(&v.ApprovedBy)
		},
	},
	sPhaseStarted: {
		typ: "workflow.phase.started", kind: agentevents.KindPhaseStarted, key: 3,
		names: []string{`"workflowId":`, `"phase":`, `"inputCount":`},
		lists: 1<<cWorkflowID | 1<<cPhase,
		empty: func() agentevents.Payload { return new(agentevents.PhaseStarted) },
		fields: func(p agentevents.Payload, c *common, f *fieldVisitor) {
			f.text(&c.workflowID, &c.phase).other(&p.(*agentevents.PhaseStarted).InputCount)
		},
	},
	sPhaseCompleted: {
		typ: "workflow.phase.completed", kind: agentevents.KindPhaseCompleted, key: 4,
		names: []string{`"workflowId":`, `"phase":`, `"outputCount":`, `"tokens":`},
		lists: 1<<cWorkflowID | 1<<cPhase,
		empty: func() agentevents.Payload { return new(agentevents.PhaseCompleted) },
		fields: func(p agentevents.Payload, c *common, f *fieldVisitor) {
			v := p.(*agentevents.PhaseCompleted)
			f.text(&c.workflowID, &c.phase).other(&v.OutputCount, &v.Tokens)
		},
	},
	sSpawned: {
		typ: "agent.spawned", kind: agentevents.KindAgentStarted, key: 4,
		names: []string{`"workflowId":`, `"phase":`, `"agentTask":`, `"parentSpanId":`, `"agent":`, `"model":`, `"providerSessionId":`, `"prompt":`, `"attempt":`,
			`"resumed":`, `"task":`}, other: []uint8{2},
		lists: 1<<cWorkflowID | 1<<cPhase,
		empty: func() agentevents.Payload { return new(agentevents.AgentStarted) },
		fields: func(p agentevents.Payload, c *common, f *fieldVisitor) {
			v := p.(*agentevents.AgentStarted)
			f.text(&c.workflowID, &c.phase, &v.Task, &c.parentSpanID).optRef(&v.Agent).
				text(&v.Model, &v.ProviderSessionID).json(&v.Prompt).count(&v.Attempt).flag(&v.Resumed)
		},
	},
	sCompleted: {
		typ: "agent.completed", kind: agentevents.KindAgentEnded, key: 4,
		names: []string{`"agentId":`, `"tokens":`, `"durationMs":`, `"resultSchema":`, `"workflowId":`, `"phase":`, `"outcome":`, `"error":`, `"result":`,
			`"structuredOutput":`, `"usage":`, `"modelUsage":`, `"totalCostUsd":`, `"numTurns":`, `"totals":`, `"convergenceScore":`},
		lists: 1<<cAgentID | 1<<cWorkflowID | 1<<cPhase,
		empty: func() agentevents.Payload { return new(agentevents.AgentEnded) },
		fields: func(p agentevents.Payload, c *common, f *fieldVisitor) {
			v := p.(*agentevents.AgentEnded)
			optional(f.text(&c.agentID), &c.tokens).millis(&v.Duration).json(&v.ResultSchema).text(&c.workflowID, &c.phase, (*string)(&v.Outcome))
			optional(f, &v.Error).text(&v.Result).json(&v.StructuredOutput)
			optional(f, &v.Usage).other(&v.ModelUsage)
			optional(f, &v.TotalCostUSD)
			optional(f, &v.NumTurns)
			optional(f, &v.Totals)
			optional(f, &v.ConvergenceScore)
		},
	},
	sClaimVerified: {
		typ: "claim.verified", kind: agentevents.KindClaimVerified, key: 4,
		names: []string{`"findingId":`, `"verifierAgentId":`, `"verdict":`, `"evidence":`},
		empty: func() agentevents.Payload { return new(agentevents.ClaimVerified) },
		fields: func(p agentevents.Payload, _ *common, f *fieldVisitor) {
			v := p.(*agentevents.ClaimVerified)
			f.text(&v.FindingID, &v.VerifierAgentID, &v.Verdict).json(&v.Evidence)
		},
	},
	sCheckpointSaved: {
		typ: "workflow.checkpoint.saved", kind: agentevents.KindCheckpointSaved, key: 3,
		names: []string{`"workflowId":`, `"phase":`, `"stateBytes":`},
		lists: 1<<cWorkflowID | 1<<cPhase,
		empty: func() agentevents.Payload { return new(agentevents.CheckpointSaved) },
		fields: func(p agentevents.Payload, c *common, f *fieldVisitor) {
			f.text(&c.workflowID, &c.phase).other(&p.(*agentevents.CheckpointSaved).StateBytes)
		},
	},
	sCheckpointResumed: {
		typ: "workflow.checkpoint.resumed", kind: agentevents.KindCheckpointResumed, key: 3,
		names: []string{`"workflowId":`, `"phase":`, `"resumedAt":`},
		lists: 1<<cWorkflowID | 1<<cPhase,
		empty: func() agentevents.Payload { return new(agentevents.CheckpointResumed) },
		fields: func(p agentevents.Payload, c *common, f *fieldVisitor) {
			f.text(&c.workflowID, &c.phase).other(&p.(*agentevents.CheckpointResumed).ResumedAt)
		},
	},
	sFinalized: {
		typ: "workflow.finalized", kind: agentevents.KindWorkflowFinalized, key: 4,
		names: []string{`"workflowId":`, `"totalTokens":`, `"totalAgents":`, `"durationMs":`},
		lists: 1 << cWorkflowID,
		empty: func() agentevents.Payload { return new(agentevents.WorkflowFinalized) },
		fields: func(p agentevents.Payload, c *common, f *fieldVisitor) {
			v := p.(*agentevents.WorkflowFinalized)
			f.text(&c.workflowID).other(&v.TotalTokens, &v.TotalAgents, &v.Duration)
		},
	},
}

// Numbers of fields with special handling, by shape.
const (
	fieldCompletedTokens = 1
	fieldMessage         = 9
	fieldMessageContent  = 4
	fieldMessageTS       = 5
)

// shapeOf returns the shape of a type, or sUnknown.
func shapeOf(typ string) int {
	switch typ {
	case "session.started":
		return sSessionStarted
	case "workflow.node.enter":
		return sNodeEnter
	case "agent.message.created":
		return sMessageCreated
	case "agent.task.assigned":
		return sTaskAssigned
	case "tool.call.started":
		return sToolStarted
	case "tool.call.completed":
		return sToolCompleted
	case "handoff.requested":
		return sHandoffRequested
	case "handoff.accepted":
		return sHandoffAccepted
	case "blackboard.item.created":
		return sItemCreated
	case "approval.requested":
		return sApprovalRequested
	case "approval.granted":
		return sApprovalGranted
	case "verifier.issue.found":
		return sIssueFound
	case "loop.round.completed":
		return sRoundCompleted
	case "budget.exceeded":
		return sBudgetExceeded
	case "session.completed":
		return sSessionCompleted
	case "workflow.created":
		return sWorkflowCreated
	case "workflow.approved":
		return sWorkflowApproved
	case "workflow.phase.started":
		return sPhaseStarted
	case "workflow.phase.completed":
		return sPhaseCompleted
	case "agent.spawned":
		return sSpawned
	case "agent.completed":
		return sCompleted
	case "claim.verified":
		return sClaimVerified
	case "workflow.checkpoint.saved":
		return sCheckpointSaved
	case "workflow.checkpoint.resumed":
		return sCheckpointResumed
	case "workflow.finalized":
		return sFinalized
	}
	return sUnknown
}

// shapeOfKind returns the shape that a kind is written as, or sUnknown.
func shapeOfKind(k agentevents.Kind) int {
	switch k {
	case agentevents.KindNodeStarted:
		return sNodeEnter
	case agentevents.KindToolCalled:
		return sToolStarted
	case agentevents.KindToolReturned:
		return sToolCompleted
	case agentevents.KindAgentStarted:
		return sSpawned
	case agentevents.KindAgentEnded:
		return sCompleted
	}
	// The other types have the name of their kind.
	if s := shapeOf(string(k)); s != sUnknown && shapes[s].kind == k {
		return s
	}
	return sUnknown
}

// Names of the members of objects inside payloads.
var (
	refNames    = []string{`"agentId":`, `"agentSharing":`, `"memoryRef":`, `"modelClass":`}
	errorNames  = []string{`"code":`, `"message":`, `"details":`, `"retryable":`}
	usageNames  = []string{`"inputTokens":`, `"outputTokens":`, `"totalTokens":`, `"cacheCreationInputTokens":`, `"cacheReadInputTokens":`, `"costUsd":`}
	totalsNames = []string{`"steps":`, `"toolCalls":`, `"auditCheckpoints":`, `"auditsPassed":`, `"auditsFailed":`}
)

func refFields(v *agentevents.AgentRef) [4]any {
	return [...]any{&v.AgentID, (*string)(&v.AgentSharing), &v.MemoryRef, (*string)(&v.ModelClass)}
}

func errorFields(v *agentevents.ErrorInfo) [4]any {
	return [...]any{&v.Code, &v.Message, &v.Details, &v.Retryable}
}

func usageFields(v *agentevents.Usage) [6]any {
	return [...]any{&v.InputTokens, &v.OutputTokens, &v.TotalTokens, &v.CacheCreationInputTokens, &v.CacheReadInputTokens, &v.CostUSD}
}

func totalsFields(v *agentevents.Totals) [5]any {
	return [...]any{&v.Steps, &v.ToolCalls, &v.AuditCheckpoints, &v.AuditsPassed, &v.AuditsFailed}
}

// nonAgent reports whether readers do not take an actor of that name for an agent.
func nonAgent(actor string) bool {
	switch actor {
	case "user", "human", "orchestrator", "system":
		return true
	}
	return false
}
