package openwop

import (
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// payload builds the payload of the event.
func (d *Decoder) payload(ev *agentevents.Event, f *fields, v int, text string) error {
	some := f.seen.has
	vs := &variants[v]
	ev.AgentID = f.val[mAgentID]
	if v == vUnknown {
		if !f.env.has(ePayload) {
			f.raw = ""
		}
		ev.Payload = &agentevents.Unknown{Type: dialect.UnknownKind(Name, f.typ), Raw: agentevents.JSON(f.raw)}
		if f.typ == nodeResumed && !f.env.has(eNodeID) {
			// The fold needs the node, but only the payload must have it.
			if ev.NodeID = memberText(f.raw, "nodeId"); ev.NodeID != "" {
				f.absent = appendPointer(f.absent, "", `"nodeId":`)
			}
		}
		return nil
	}
	if vs.members.has(mNodeID) {
		d.node(ev, f)
	}
	if lacks := (vs.required(d.o.Profile)|vs.usual&^(1<<mNodeID))&^f.seen != 0; lacks {
		d.lacks(f, v)
	}
	d.form(f, v)

	toolID := f.val[mToolID]
	if some(mToolName) {
		toolID = d.either(f, mToolID, mToolName)
	}
	switch v {
	case vReasoned:
		ev.Payload = &agentevents.AgentReasoned{Reasoning: f.val[mReasoning], Verbosity: agentevents.Verbosity(d.opt(f, mVerbosity)), BlockID: d.opt(f, mBlockID)}
	case vDelta:
		p := &agentevents.AgentReasoningDelta{Delta: f.val[mDelta], Verbosity: agentevents.Verbosity(d.opt(f, mVerbosity)), BlockID: d.opt(f, mBlockID)}
		if some(mSequence) {
			p.Index = agentevents.Some(int(f.count[0]))
		}
		ev.Payload = p
	case vToolCalled:
		ev.Payload = &agentevents.ToolCalled{
			CallID: f.val[mCallID], ToolID: toolID, Arguments: agentevents.JSON(d.either(f, mArguments, mInputs)),
			ArgsHash: d.opt(f, mArgsHash), Principal: d.opt(f, mPrincipal), Transport: agentevents.Transport(d.opt(f, mTransport)),
		}
	case vToolReturned:
		p := &agentevents.ToolReturned{CallID: f.val[mCallID], ToolID: toolID, Result: agentevents.JSON(d.either(f, mResult, mOutcome)), Status: agentevents.ToolStatusOK}
		if some(mError) {
			p.Error = agentevents.Some(f.err)
			p.Status = agentevents.ToolStatusError
		}
		if some(mStatus) {
			if word := agentevents.ToolStatus(f.val[mStatus]); word != p.Status {
				p.Status = word
			} else {
				f.spell(mStatus)
			}
		}
		if some(mDurationMs) {
			p.Duration = agentevents.Some(f.duration)
		}
		ev.Payload = p
	case vHandoff:
		p := &agentevents.AgentHandoff{From: f.from, To: f.to, Reason: d.opt(f, mReason), Context: agentevents.JSON(f.val[mContext])}
		d.refOrID(f, &p.From, mFrom, mFromAgentID)
		d.refOrID(f, &p.To, mTo, mToAgentID)
		if ev.AgentID == "" {
			ev.AgentID = p.From.AgentID
		} else if ev.AgentID == p.From.AgentID {
			f.spell(mAgentID)
		}
		ev.Payload = p
	case vDecided:
		p := &agentevents.AgentDecided{Decision: agentevents.JSON(f.val[mDecision]), Reasoning: d.opt(f, mReasoning)}
		if some(mConfidence) {
			p.Confidence = agentevents.Some(f.number[0])
		}
		ev.Payload = p
	case vNodeStarted:
		p := &agentevents.NodeStarted{TypeID: d.opt(f, mTypeID), Agent: d.ref(f)}
		if some(mAttempt) {
			p.Attempt = agentevents.Some(int(f.count[1]))
		}
		ev.Payload = p
	case vNodeCompleted:
		p := &agentevents.NodeCompleted{Outputs: agentevents.JSON(f.val[mOutputs]), Agent: d.ref(f)}
		if some(mDurationMs) {
			p.Duration = agentevents.Some(f.duration)
		}
		ev.Payload = p
	case vNodeFailed:
		ev.Payload = &agentevents.NodeFailed{Error: f.err}
	case vNodeSkipped:
		ev.Payload = &agentevents.NodeSkipped{Reason: d.opt(f, mReason)}
	case vNodeSuspended:
		p := &agentevents.NodeSuspended{Reason: d.opt(f, mReason)}
		if len(f.details) > 0 {
			p.Details = agentevents.JSON(f.details) + "}"
		}
		ev.Payload = p
	case vCapBreached:
		p := &agentevents.CapBreached{Cap: f.val[mKind]}
		if some(mLimit) {
			p.Limit = agentevents.Some(f.number[1])
		}
		if some(mObserved) {
			p.Observed = agentevents.Some(f.number[2])
		}
		ev.Payload = p
	case vOrchestrator:
		p := &agentevents.OrchestratorDecided{Decision: agentevents.JSON(f.val[mDecision])}
		if some(mIteration) {
			p.Iteration = agentevents.Some(int(f.count[2]))
		}
		ev.Payload = p
	case vClarRequested, vAskRequested:
		p := &agentevents.ClarificationRequested{InterruptID: f.val[mInterruptID], Questions: f.questions}
		if v == vAskRequested {
			p.InterruptID = f.val[mKey]
			d.spellKey(f)
		}
		if p.InterruptID == "" {
			p.InterruptID = dialect.DerivedID(text, d.lines, 1)
		}
		d.opened(ev, p.InterruptID)
		ev.Payload = p
	case vClarResolved, vAskResolved:
		p := &agentevents.ClarificationResolved{InterruptID: f.val[mInterruptID], Answers: agentevents.JSON(f.val[mAnswers]), AnsweredBy: d.opt(f, mAnsweredBy)}
		if v == vAskResolved {
			p.Answers = agentevents.JSON(f.val[mResumeValue])
		}
		if p.InterruptID = d.closed(ev, p.InterruptID); p.InterruptID == "" {
			p.InterruptID = dialect.DerivedID(text, d.lines, 1)
		}
		ev.Payload = p
	case vRunStarted:
		ev.WorkflowID = d.opt(f, mWorkflowID)
		ev.Payload = &agentevents.RunStarted{Inputs: agentevents.JSON(f.val[mInputs])}
	case vRunPaused:
		ev.Payload = &agentevents.RunPaused{Reason: d.opt(f, mReason)}
	case vRunResumed:
		ev.Payload = &agentevents.RunResumed{Message: d.opt(f, mMessage)}
	case vRunCompleted:
		ev.Payload = &agentevents.RunCompleted{Outputs: agentevents.JSON(f.val[mOutputs])}
	case vRunFailed:
		p := &agentevents.RunFailed{}
		if some(mError) {
			p.Error = agentevents.Some(f.err)
		}
		ev.Payload = p
	case vRunCancelled:
		ev.Payload = &agentevents.RunCancelled{Reason: d.opt(f, mReason)}
	case vApprovalRequested:
		p := &agentevents.ApprovalRequested{
			ApprovalID: f.val[mInterruptID], Action: d.opt(f, mTitle), Reason: d.opt(f, mReason), Scope: d.opt(f, mScope), Risk: d.opt(f, mRisk),
			CallID: d.opt(f, mCallID), ToolID: d.opt(f, mToolID), Arguments: agentevents.JSON(f.val[mArguments]),
		}
		if some(mTimeoutMs) {
			p.Timeout = agentevents.Some(f.duration)
		}
		if p.ApprovalID == "" {
			p.ApprovalID = dialect.DerivedID(text, d.lines, 1)
		}
		ev.Payload = p
	case vPermitRequested:
		p := &agentevents.ApprovalRequested{ApprovalID: f.val[mKey], Action: f.val[mTitle]}
		d.spellKey(f)
		if some(mTimeoutMs) {
			p.Timeout = agentevents.Some(f.duration)
		}
		if p.ApprovalID == "" {
			p.ApprovalID = dialect.DerivedID(text, d.lines, 1)
		}
		ev.Payload = p
	case vApprovalGranted, vApprovalRejected, vPermitResolved:
		id, feedback := f.val[mGateID], ""
		if v == vPermitResolved {
			id = f.val[mInterruptID]
		}
		if id == "" {
			id = dialect.DerivedID(text, d.lines, 1)
		}
		if some(mReason) {
			feedback = d.opt(f, mReason)
		}
		if v == vApprovalGranted || v == vPermitResolved && jsonwire.Text(f.val[mDecision]) == "granted" {
			ev.Payload = &agentevents.ApprovalGranted{ApprovalID: id, ApprovedBy: d.opt(f, mPrincipal), Feedback: feedback}
		} else {
			ev.Payload = &agentevents.ApprovalRejected{ApprovalID: id, RejectedBy: d.opt(f, mPrincipal), Feedback: feedback}
		}
	case vMessage:
		m, err := ParseMessage([]byte(f.val[mValue]))
		if err != nil {
			if syntax, ok := err.(*jsonwire.SyntaxError); ok {
				syntax.Offset += max(0, strings.Index(text, f.val[mValue]))
			}
			return err
		}
		switch r := f.val[mReducer]; {
		case !some(mReducer):
		case r == reducerRFC: // the reducer that the vocabulary's messages have
			d.foreign = d.foreign || d.o.Profile != RFC0002 // the schemas do not have it
		default:
			d.unknown.Add("/payload/reducer", jsonwire.Quote(r))
		}
		if w := f.val[mWrittenAt]; some(mWrittenAt) && w != jsonwire.Text(string(jsonwire.AppendTime(nil, f.time))) {
			d.unknown.Add("/payload/writtenAt", jsonwire.Quote(w))
		}
		ev.Payload = &agentevents.MessageCreated{Message: m}
	}
	if vs.members.has(mAgentID) && some(mAgentID) && f.val[mAgentID] == "" {
		f.spell(mAgentID)
	}
	return nil
}

// node takes the node from the envelope or the payload.
func (d *Decoder) node(ev *agentevents.Event, f *fields) {
	id := f.val[mNodeID]
	switch {
	case !f.seen.has(mNodeID):
		if ev.NodeID != "" {
			f.absent = appendPointer(f.absent, "/payload", memberNames[mNodeID-1])
		}
	case ev.NodeID == "":
		ev.NodeID = id
		if id == "" {
			f.spell(mNodeID)
		} else if !f.env.has(eNodeID) {
			f.absent = appendPointer(f.absent, "", `"nodeId":`)
		}
	case ev.NodeID != id:
		d.unknown.Add("/payload/nodeId", jsonwire.Quote(id))
	}
}

// lacks notes the usual and required members that the line lacks.
func (d *Decoder) lacks(f *fields, v int) {
	vs := &variants[v]
	has := f.seen
	for _, pair := range spellings {
		if vs.members.has(pair.rfc) && vs.members.has(pair.published) && f.seen&(1<<pair.rfc|1<<pair.published) != 0 {
			has |= 1<<pair.rfc | 1<<pair.published
		}
	}
	for rest := (vs.required(d.o.Profile) | vs.usual&^(1<<mNodeID)) & vs.members &^ has; rest != 0; rest &= rest - 1 {
		if m := rest.lowest(); m != mNodeID || f.nodeID == "" {
			f.absent = appendPointer(f.absent, "/payload", memberNames[slot(m)-1])
		}
	}
}

// spellings are the members that the RFC and the schemas name differently.
var spellings = [...]struct{ rfc, published int }{
	{mToolID, mToolName}, {mArguments, mInputs}, {mResult, mOutcome}, {mFrom, mFromAgentID}, {mTo, mToAgentID},
}

// slot returns the RFC's member for a member in the published spelling.
func slot(m int) int {
	switch m {
	case mToolName:
		return mToolID
	case mOutcome:
		return mResult
	case mFromAgentID:
		return mFrom
	case mToAgentID:
		return mTo
	}
	return m
}

// form notes a type or a spelling that is not the profile's.
func (d *Decoder) form(f *fields, v int) {
	p := d.o.Profile
	want := typeName(v, p)
	switch v {
	case vClarRequested, vClarResolved, vApprovalRequested, vApprovalGranted, vApprovalRejected:
		d.foreign = d.foreign || p == SchemaV2
	case vAskRequested, vPermitRequested, vAskResolved, vPermitResolved:
		switch {
		case f.typ != typeName(v, SchemaV2) || p != SchemaV2 && !d.isV2(f):
			d.unknown.Add(keptType, jsonwire.Quote(f.typ))
		default:
			d.foreign = d.foreign || p != SchemaV2
		}
	default:
		d.foreign = d.foreign || f.typ != want
	}
	other := set(1<<mToolID | 1<<mArguments | 1<<mResult | 1<<mFrom | 1<<mTo)
	if p == RFC0002 {
		other = 1<<mToolName | 1<<mInputs | 1<<mOutcome | 1<<mFromAgentID | 1<<mToAgentID
	}
	switch v {
	case vToolCalled, vToolReturned, vHandoff:
		d.foreign = d.foreign || f.seen&other != 0
	}
}

// isV2 reports whether a line is one of SchemaV2: it has a version above 0 and
// ids in the grammar of SchemaV2. A missing eventId does not count against it,
// because the made-up one has the form.
func (d *Decoder) isV2(f *fields) bool {
	version := d.unknown.Get("schemaVersion")
	return version != "" && version != "0" && ValidID(SchemaV2, RunID, f.runID) && (f.eventID == "" || ValidID(SchemaV2, EventID, f.eventID))
}

// opt returns an optional text, and notes one that is present and empty.
func (d *Decoder) opt(f *fields, m int) string {
	if f.seen.has(m) && f.val[m] == "" {
		f.spell(m)
	}
	return f.val[m]
}

// spellKey notes a key that the encoder would change. A key may be any text, but
// ids have a grammar under SchemaV2.
func (d *Decoder) spellKey(f *fields) {
	if d.o.Profile == SchemaV2 && f.val[mKey] != "" && !ValidID(SchemaV2, InterruptID, f.val[mKey]) {
		f.spell(mKey)
	}
}

func (f *fields) spell(m int) { f.spelled = appendPointer(f.spelled, "/payload", memberNames[m-1]) }

// either returns the value of a member that has two spellings. If both are
// present, it returns the profile's and keeps the other as an extra member.
func (d *Decoder) either(f *fields, rfc, published int) string {
	if !f.seen.has(published) {
		return f.val[rfc]
	}
	if !f.seen.has(rfc) {
		return f.val[published]
	}
	win, lose := published, rfc
	if d.o.Profile == RFC0002 {
		win, lose = rfc, published
	}
	raw := f.val[lose]
	if textMembers.has(lose) {
		raw = jsonwire.Quote(raw)
	}
	d.unknown.Add("/payload/"+memberName(lose), raw)
	return f.val[win]
}

// refOrID does what either does, for an AgentRef and an id.
func (d *Decoder) refOrID(f *fields, ref *agentevents.AgentRef, rfc, published int) {
	switch {
	case !f.seen.has(published):
	case !f.seen.has(rfc):
		*ref = agentevents.AgentRef{AgentID: f.val[published]}
	case d.o.Profile == RFC0002:
		d.unknown.Add("/payload/"+memberName(published), jsonwire.Quote(f.val[published]))
	default:
		raw, _ := ref.MarshalJSON() // never fails
		d.unknown.Add("/payload/"+memberName(rfc), string(raw))
		*ref = agentevents.AgentRef{AgentID: f.val[published]}
	}
}

func (d *Decoder) ref(f *fields) agentevents.Opt[agentevents.AgentRef] {
	if !f.seen.has(mAgent) {
		return agentevents.Opt[agentevents.AgentRef]{}
	}
	return agentevents.Some(f.agent)
}

// opened remembers a clarification, because its answer may name only the node.
func (d *Decoder) opened(ev *agentevents.Event, id string) {
	if len(d.open) == maxOpen {
		d.open = append(d.open[:0], d.open[maxOpen/2:]...)
	}
	// Copied, because a text of a line keeps the whole line in memory.
	d.open = append(d.open, openInterrupt{strings.Clone(ev.RunID), strings.Clone(ev.NodeID), strings.Clone(id)})
}

// closed returns the id of the clarification that is answered: id itself, or the
// id of the latest one of the node.
func (d *Decoder) closed(ev *agentevents.Event, id string) string {
	for i := len(d.open) - 1; i >= 0; i-- {
		if o := d.open[i]; o.runID == ev.RunID && (id == o.interruptID || id == "" && o.nodeID == ev.NodeID) {
			d.open = append(d.open[:i], d.open[i+1:]...)
			return o.interruptID
		}
	}
	return id
}

// unknownPrefix goes before a type whose name is taken: see
// [dialect.UnknownKind].
const unknownPrefix = string(Name) + ":"

// nodeResumed is a type that the vocabulary does not have but the fold uses.
const nodeResumed = "node.resumed"
