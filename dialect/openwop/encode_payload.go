package openwop

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// payload writes the payload.
func (w *writer) payload() {
	if u, ok := w.ev.Payload.(*agentevents.Unknown); ok {
		w.unknown(u)
		return
	}
	w.at = len(w.dst)
	w.dst = append(w.dst, '{')
	w.open = true
	w.members()
	if w.k.payload {
		w.rests()
	}
	w.dst = append(w.dst, '}')
}

// rests writes the members of the payload that were kept, and lists those that
// stood in what the payload does not have.
func (w *writer) rests() {
	w.more("/payload/", "", w.at, w.place)
	if w.v == vClarRequested || w.v == vApprovalRequested {
		// Of the other form of an interrupt.
		w.more("/payload/data/", "", w.at, func(n string) place {
			if w.k.get("/payload/"+jsonwire.Token(n)) != "" {
				return taken
			}
			return w.place(n)
		})
	}
	i := 0
	for key := range jsonwire.Members(w.k.raw) {
		if !w.k.done[i] && strings.HasPrefix(key, "/payload/") {
			w.unplaced(key)
		}
		i++
	}
}

// place returns what the payload has for a member that was kept.
func (w *writer) place(name string) place {
	if m := numberOf(memberNames[:], name); m != 0 && w.has.has(m) || slices.Contains(w.extra, name) {
		return taken
	}
	if vs := &variants[w.v]; vs.closed(w.p) && !w.k.same(w.p) && !vs.declares(name) && (w.p == SchemaV1 || vs.sealed || !hatch(name)) {
		return closed
	}
	return free
}

// unknown writes the payload of a type that the vocabulary does not have.
func (w *writer) unknown(u *agentevents.Unknown) {
	w.raw("/payload", agentevents.JSON(w.otherRaw), false)
	if id := w.ev.AgentID; id != "" && agentOf(string(u.Raw)) != id {
		w.drop("/agentId", true)
	}
}

// members writes those of the payload that the vocabulary has.
func (w *writer) members() {
	ev, rfc := w.ev, w.p == RFC0002
	tool, arguments, result := mToolName, mInputs, mOutcome
	if rfc {
		tool, arguments, result = mToolID, mArguments, mResult
	}
	switch p := ev.Payload.(type) {
	case *agentevents.AgentReasoned:
		w.agent()
		w.content(mReasoning, "/payload/reasoning", p.Reasoning)
		w.word(mVerbosity, "/payload/verbosity", string(p.Verbosity), verbosities)
		w.block(p.BlockID)
		w.drop("/payload/tokenCount", p.TokenCount.OK)
	case *agentevents.AgentReasoningDelta:
		w.agent()
		w.content(mDelta, "/payload/delta", p.Delta)
		index := p.Index
		if !index.OK && !rfc && !w.absent(mSequence) {
			index = agentevents.Some(0)
			if !w.quiet {
				index.V = w.e.deltaIndex(ev, p.BlockID)
			}
			w.lose(dialect.Made, "/payload/index", "counted")
		}
		w.integer(mSequence, "/payload/index", index, 0)
		w.word(mVerbosity, "/payload/verbosity", string(p.Verbosity), verbosities)
		w.block(p.BlockID)
		w.drop("/payload/tokenCount", p.TokenCount.OK)
	case *agentevents.ToolCalled:
		w.agent()
		w.required(tool, PlainID, "/payload/toolId", p.ToolID, "unknown")
		w.required(mCallID, PlainID, "/payload/callId", p.CallID, w.eventID)
		if rfc && p.ArgsHash == "" && !w.k.spelled.has(mArgsHash) {
			w.must(arguments, "/payload/arguments", p.Arguments, "null", false)
		} else {
			w.json(arguments, "/payload/arguments", p.Arguments, false)
		}
		w.text(mArgsHash, "/payload/argsHash", p.ArgsHash)
		w.text(mPrincipal, "/payload/principal", p.Principal)
		w.word(mTransport, "/payload/transport", string(p.Transport), transports)
		w.drop("/payload/argumentsSummary", p.ArgumentsSummary != "")
		w.drop("/payload/attempt", p.Attempt.OK)
		w.drop("/payload/retryOf", p.RetryOf != "")
		w.drop("/payload/attributes", p.Attributes != "")
	case *agentevents.ToolReturned:
		w.agent()
		w.required(tool, PlainID, "/payload/toolId", p.ToolID, "unknown")
		w.required(mCallID, PlainID, "/payload/callId", p.CallID, w.eventID)
		w.returned(p, result)
	case *agentevents.AgentHandoff:
		made := ev.AgentID
		if made == "" {
			made = agentevents.CoreSystem
		}
		from := p.From.AgentID
		if from == "" {
			from = made
		}
		who := mFromAgentID
		if rfc {
			who = mFrom
		}
		switch {
		case ev.AgentID == "" && !w.absent(who):
			w.lose(dialect.Made, "/agentId", from)
		case rfc && ev.AgentID != "" && p.From.AgentID == "" && w.absent(mFrom): // from would have said it
			w.anyAgent()
		case ev.AgentID != from && ev.AgentID != "" && w.undeclared():
			w.anyAgent()
		case ev.AgentID != from && ev.AgentID != "":
			w.lose(dialect.Altered, "/agentId", "it is who hands over")
		case w.k.spelled.has(mAgentID) && ev.AgentID != "" && w.undeclared():
			w.anyAgent()
		}
		if rfc {
			if p.From.AgentID != "" || !w.absent(mFrom) {
				w.ref(mFrom, "/payload/from", p.From, made)
			}
			if p.To.AgentID != "" || !w.absent(mTo) {
				w.ref(mTo, "/payload/to", p.To, agentevents.CoreSystem)
			}
		} else {
			w.refID(mFromAgentID, "/payload/from", p.From, made)
			w.refID(mToAgentID, "/payload/to", p.To, agentevents.CoreSystem)
		}
		w.text(mReason, "/payload/reason", p.Reason)
		if w.undeclared() {
			w.json(mContext, "/payload/context", p.Context, false)
		} else {
			w.drop("/payload/context", p.Context != "")
		}
	case *agentevents.AgentDecided:
		w.agent()
		w.must(mDecision, "/payload/decision", p.Decision, "null", false)
		w.float(mConfidence, "/payload/confidence", p.Confidence, 1)
		if w.undeclared() {
			w.text(mReasoning, "/payload/reasoning", p.Reasoning)
		} else {
			w.drop("/payload/reasoning", p.Reasoning != "")
		}
	case *agentevents.OrchestratorDecided:
		w.agent()
		decision := p.Decision
		if !rfc && decision != "" {
			if why := decisionError(string(decision), w.p, true); why != "" {
				w.fail(RuleForm, "/payload/decision", why)
			} else if !w.k.same(w.p) {
				decision = w.decision(decision)
			}
		}
		w.must(mDecision, "/payload/decision", decision, `{"kind":"terminate"}`, false)
		w.integer(mIteration, "/payload/iteration", p.Iteration, 1)
	case *agentevents.NodeStarted:
		w.node()
		if rfc {
			w.text(mTypeID, "/payload/typeId", p.TypeID)
		} else {
			w.required(mTypeID, TypeID, "/payload/typeId", p.TypeID, unknownTypeID)
		}
		w.integer(mAttempt, "/payload/attempt", p.Attempt, 0)
		w.nodeAgent(p.Agent)
	case *agentevents.NodeCompleted:
		w.node()
		w.json(mOutputs, "/payload/outputs", p.Outputs, true)
		w.millis(mDurationMs, "/payload/durationMs", p.Duration)
		w.nodeAgent(p.Agent)
	case *agentevents.NodeFailed:
		w.node()
		if p.Error.Message != "" || p.Error.Code != "" || p.Error.Details != "" || p.Error.Retryable.OK || !w.absent(mError) {
			w.errorInfo(&p.Error)
		}
		w.anyAgent()
	case *agentevents.NodeSkipped:
		w.node()
		w.text(mReason, "/payload/reason", p.Reason)
		w.anyAgent()
	case *agentevents.NodeSuspended:
		w.suspended(p)
	case *agentevents.CapBreached:
		w.content(mKind, "/payload/cap", p.Cap)
		limit, observed := p.Limit, p.Observed
		if !rfc {
			if !slices.Contains(capKinds, p.Cap) {
				w.fail(RuleEnum, "/payload/cap", strconv.Quote(p.Cap)+" is not a kind of the schema")
			}
			w.zero(&limit, "/payload/limit", mLimit)
			w.zero(&observed, "/payload/observed", mObserved)
		}
		w.float(mLimit, "/payload/limit", limit, math.MaxFloat64)
		w.float(mObserved, "/payload/observed", observed, math.MaxFloat64)
		w.anyAgent()
	case *agentevents.RunStarted:
		id := ev.WorkflowID
		if !rfc && id == "" {
			id = p.Name
			if id == "" {
				id = unknownWorkflow
			}
			if !w.absent(mWorkflowID) {
				w.lose(dialect.Made, "/workflowId", "")
			} else {
				id = ""
			}
		}
		if id != "" {
			w.name(mWorkflowID)
			w.dst = w.id(w.dst, WorkflowID, "/workflowId", id)
		} else if w.k.spelled.has(mWorkflowID) {
			w.text(mWorkflowID, "/workflowId", "")
		}
		w.json(mInputs, "/payload/inputs", p.Inputs, true)
		w.anyAgent()
		w.drop("/payload/name", p.Name != "")
		w.drop("/payload/agent", p.Agent.OK)
		w.drop("/payload/definition", p.Definition != "")
	case *agentevents.RunPaused:
		w.text(mReason, "/payload/reason", p.Reason)
		w.anyAgent()
	case *agentevents.RunResumed:
		w.text(mMessage, "/payload/message", p.Message)
		w.anyAgent()
	case *agentevents.RunCompleted:
		if w.p == SchemaV2 {
			w.must(mOutputs, "/payload/outputs", p.Outputs, "{}", true)
		} else {
			w.json(mOutputs, "/payload/outputs", p.Outputs, true)
		}
		w.anyAgent()
	case *agentevents.RunFailed:
		info := p.Error
		if !info.OK && !rfc && !w.absent(mError) {
			info = agentevents.Some(agentevents.ErrorInfo{Code: unknownError, Message: unknownError})
			w.lose(dialect.Made, "/payload/error", unknownError)
		}
		if info.OK {
			w.errorInfo(&info.V)
		}
		w.anyAgent()
	case *agentevents.RunCancelled:
		w.text(mReason, "/payload/reason", p.Reason)
		w.anyAgent()
	case *agentevents.ClarificationRequested:
		w.asked(p)
	case *agentevents.ClarificationResolved:
		w.answered(p)
	case *agentevents.ApprovalRequested:
		w.permit(p)
	case *agentevents.ApprovalGranted:
		w.permitted("granted", p.ApprovalID, p.ApprovedBy, "/payload/approvedBy", p.Feedback)
	case *agentevents.ApprovalRejected:
		w.permitted("rejected", p.ApprovalID, p.RejectedBy, "/payload/rejectedBy", p.Feedback)
	case *agentevents.MessageCreated:
		w.message(p)
	}
}

// block writes which reasoning it is, for which the document has no member: blocks of
// one agent may be interleaved.
func (w *writer) block(id string) {
	if w.undeclared() {
		w.text(mBlockID, "/payload/blockId", id)
	} else {
		w.drop("/payload/blockId", id != "")
	}
}

// decision returns an orchestrator's decision without the members that its form
// does not have.
func (w *writer) decision(decision agentevents.JSON) agentevents.JSON {
	const at = "/payload/decision"
	v2 := w.p == SchemaV2
	out := w.only(string(decision), at, func(kind, name string) bool {
		switch name {
		case "kind":
			return true
		case "confidence":
			return kind != "ask-user"
		case "nextWorkerIds":
			return kind == "next-worker"
		case "nextWorkerInputs":
			return kind == "next-worker" && v2
		case "prompt":
			return kind == "ask-user"
		case "reason":
			return kind == "terminate"
		case "successCriteria":
			return kind == "terminate" && v2
		}
		return false
	})
	if v2 && strings.Contains(out, `"successCriteria"`) {
		out = w.criteria(out, at+"/successCriteria")
	}
	if strings.Contains(out, `"nextWorkerIds"`) {
		out = w.workers(out, at+"/nextWorkerIds/")
	}
	return agentevents.JSON(out)
}

// workers returns a decision whose nextWorkerIds have the form of an agent's id.
func (w *writer) workers(decision, at string) string {
	var ids []byte
	odd, i := false, 0
	list := ""
	for name, raw := range jsonwire.Members(decision) {
		if name == "nextWorkerIds" {
			list = raw
		}
	}
	for raw := range jsonwire.Elements(list) {
		id := jsonwire.Text(raw)
		n := w.agentID(at+strconv.Itoa(i), id)
		odd = odd || n != id
		if i++; i > 1 {
			ids = append(ids, ',')
		}
		ids = jsonwire.AppendString(ids, n)
	}
	if !odd {
		return decision
	}
	out := []byte{'{'}
	for name, raw := range jsonwire.Members(decision) {
		if name == "nextWorkerIds" {
			raw = "[" + string(ids) + "]"
		}
		out = appendMember(out, name, raw)
	}
	return string(append(out, '}'))
}

// only returns an object without the members that may not be in one of its kind.
func (w *writer) only(object, at string, may func(kind, name string) bool) string {
	kind, odd := "", false
	for name, raw := range jsonwire.Members(object) {
		if name == "kind" {
			kind = jsonwire.Text(raw)
		}
	}
	for name := range jsonwire.Members(object) {
		odd = odd || !may(kind, name)
	}
	if !odd {
		return object
	}
	out := []byte{'{'}
	for name, raw := range jsonwire.Members(object) {
		if !may(kind, name) {
			w.drop(at+"/"+jsonwire.Token(name), true)
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonwire.AppendString(out, name), ':'), raw...)
	}
	return string(append(out, '}'))
}

// criteria returns a decision whose successCriteria have no other members than
// theirs.
func (w *writer) criteria(decision, at string) string {
	out := []byte{'{'}
	for name, raw := range jsonwire.Members(decision) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(jsonwire.AppendString(out, name), ':')
		if name != "successCriteria" {
			out = append(out, raw...)
			continue
		}
		list, i := []byte{'['}, 0
		for c := range jsonwire.Elements(raw) {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, w.only(c, at+"/"+strconv.Itoa(i), func(_, name string) bool { return name == "key" || name == "met" })...)
			i++
		}
		out = append(append(out, list...), ']')
	}
	return string(append(out, '}'))
}

// zero makes up a required number.
func (w *writer) zero(v *agentevents.Opt[float64], pointer string, m int) {
	if !v.OK && !w.absent(m) {
		*v = agentevents.Some(0.0)
		w.lose(dialect.Made, pointer, "0")
	}
}

// returned writes what a tool returned.
func (w *writer) returned(p *agentevents.ToolReturned, result int) {
	if p.Error.OK {
		w.drop("/payload/result", p.Result != "")
		w.errorInfo(&p.Error.V)
	} else {
		w.json(result, "/payload/result", p.Result, false)
	}
	derived := agentevents.ToolOK
	if p.Error.OK {
		derived = agentevents.ToolError
	}
	status := p.Status
	switch {
	case status == "":
		status = derived
		w.lose(dialect.Made, "/payload/status", string(derived))
	case status == agentevents.ToolCancelled, status == agentevents.ToolInterrupted, w.p != RFC0002 && !slices.Contains(toolStatuses, string(status)):
		w.lose(dialect.Altered, "/payload/status", "error")
		status = agentevents.ToolError
	}
	if status != derived || w.k.spelled.has(mStatus) {
		w.name(mStatus)
		w.str("/payload/status", string(status))
	}
	if w.p != RFC0002 && refused(string(status)) {
		w.drop("/payload/durationMs", p.Duration.OK)
	} else {
		w.millis(mDurationMs, "/payload/durationMs", p.Duration)
	}
	w.drop("/payload/oneEvent", p.OneEvent)
	w.drop("/payload/resultSummary", p.ResultSummary != "")
	w.drop("/payload/arguments", p.Arguments != "")
	w.drop("/payload/argumentsSummary", p.ArgumentsSummary != "")
}

// nodeAgent writes the agent of a node, and the one that acts.
func (w *writer) nodeAgent(ref agentevents.Opt[agentevents.AgentRef]) {
	if ref.OK && w.undeclared() {
		w.ref(mAgent, "/payload/agent", ref.V, "")
	} else {
		w.drop("/payload/agent", ref.OK)
	}
	w.anyAgent()
}

// suspended writes a node.suspended, whose details are members of the payload.
func (w *writer) suspended(p *agentevents.NodeSuspended) {
	w.node()
	details, err := jsonwire.Compact(string(p.Details))
	if p.Details == "" {
		details, err = "", nil
	}
	if err != nil {
		w.fail(agentevents.RuleFieldJSON, "/payload/details", err.Error())
		return
	}
	switch {
	case details == "":
	case details == "{}" && w.p != RFC0002: // they get an interruptId
	case details == "{}":
		w.lose(dialect.Dropped, "/payload/details", "the payload has a place for members of an object")
	case details[0] != '{' && w.p == SchemaV2:
		w.lose(dialect.Altered, "/payload/details", "are no object: only an interruptId is left of them")
		details = ""
	case details[0] != '{':
		w.lose(dialect.Altered, "/payload/details", `is no object, and stands as "details" in one`)
		details = `{"details":` + details + `}`
	}
	vs := &variants[vNodeSuspended]
	write := func(name, raw string) {
		w.member(w.at, name, raw)
		w.extra = append(w.extra, name)
	}
	first := func(name string) bool { return name == "interruptId" || name == "kind" }
	id := false
	for name, raw := range jsonwire.Members(details) {
		if !first(name) {
			continue
		}
		if name == "interruptId" {
			if w.p != RFC0002 && jsonwire.Text(raw) == "" {
				w.lose(dialect.Dropped, "/payload/details/interruptId", "is no id")
				continue
			}
			id = true
			if w.p == SchemaV2 {
				if n := NormalizeID(w.p, InterruptID, jsonwire.Text(raw)); n != jsonwire.Text(raw) && n != "" {
					w.lose(dialect.Altered, "/payload/details", "the profile has another form for ids")
					raw = jsonwire.Quote(n)
				}
			}
		}
		if name == "kind" && w.p != RFC0002 && !slices.Contains(interruptKinds(w.p), jsonwire.Text(raw)) {
			w.lose(dialect.Dropped, "/payload/details/kind", "not a word of the schema")
			continue
		}
		write(name, raw)
	}
	if !id && w.p != RFC0002 {
		made := dialect.DerivedID(w.ev.RunID+"\x00"+w.ev.ID, int(w.ev.Sequence), 3)
		w.lose(dialect.Made, "/payload/details/interruptId", "")
		write("interruptId", jsonwire.Quote(NormalizeID(w.p, InterruptID, made)))
	}
	w.short(mReason, "/payload/reason", p.Reason)
	w.anyAgent()
	for name, raw := range jsonwire.Members(details) {
		switch {
		case first(name):
		case name == "key" && w.p != RFC0002 && jsonwire.Text(raw) == "":
			w.lose(dialect.Dropped, "/payload/details/key", "is no text, or an empty one")
		case (name == "reason" || name == "nodeId" || name == "agentId") && !w.stray(name, raw):
			w.lose(dialect.Dropped, "/payload/details/"+name, "the payload has a member of that name")
		case w.p == SchemaV2 && !vs.declares(name) && !hatch(name) && !w.k.same(w.p):
			w.lose(dialect.Dropped, "/payload/details/"+jsonwire.Token(name), "the profile has no place for it")
		default:
			write(name, raw)
		}
	}
}

// stray reports whether a member of the details has the name of one of the payload,
// but cannot be taken for it: the decoder gives it back to the details.
func (w *writer) stray(name, raw string) bool {
	m := numberOf(memberNames[:], name)
	return !w.has.has(m) && loose(w.p, vNodeSuspended).has(m) && !isText(raw)
}

// questions writes a list of questions, with what was kept of them.
func (w *writer) questions(list []agentevents.Question) {
	bound := w.v == vAskRequested && w.p != RFC0002 // by the schemas: closed, and nothing is empty
	if bound && len(list) == 0 {
		list = madeQuestions
		w.lose(dialect.Made, "/payload/questions", unknownQuestion)
	}
	look := func(n string) place {
		switch {
		case n == "id" || n == "question" || n == "schema":
			return taken
		case bound && !w.k.same(w.p):
			return closed
		}
		return free
	}
	w.dst = append(w.dst, '[')
	for i, q := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		at := func(member string) string { return "/payload/questions/" + strconv.Itoa(i) + "/" + member }
		if w.careful && !jsonwire.ValidUTF8(q.ID) {
			w.fail(agentevents.RuleFieldUTF8, at("id"), "is not valid UTF-8")
		}
		if bound && q.ID == "" {
			q.ID = "q" + strconv.Itoa(i+1)
			w.lose(dialect.Made, at("id"), "")
		}
		if bound && q.Question == "" {
			q.Question = unknownQuestion
			w.lose(dialect.Made, at("question"), unknownQuestion)
		}
		start := len(w.dst)
		w.dst = jsonwire.AppendString(append(w.dst, `{"id":`...), q.ID)
		w.dst = jsonwire.AppendString(append(w.dst, `,"question":`...), q.Question)
		if w.careful && !jsonwire.ValidUTF8(q.Question) {
			w.lose(dialect.Altered, at("question"), damagedText)
		}
		if q.Schema != "" {
			w.dst = append(w.dst, `,"schema":`...)
			w.raw(at("schema"), q.Schema, true)
		}
		if w.k.payload {
			w.more("/payload/questions/"+strconv.Itoa(i)+"/", "questions/", start, look)
			w.more("/payload/data/questions/"+strconv.Itoa(i)+"/", "questions/", start, look)
		}
		w.dst = append(w.dst, '}')
	}
	w.dst = append(w.dst, ']')
}

// asked writes a request for clarification.
func (w *writer) asked(p *agentevents.ClarificationRequested) {
	if w.v == vClarRequested {
		w.node()
		if !w.absent(mInterruptID) {
			w.text(mInterruptID, "/payload/interruptId", p.InterruptID)
		}
		if p.Questions != nil || !w.absent(mQuestions) {
			w.name(mQuestions)
			w.questions(p.Questions)
		}
		w.anyAgent()
		return
	}
	w.interrupt(kindClarification, "/payload/interruptId", p.InterruptID)
	w.name(mData)
	start := len(w.dst)
	w.dst = append(w.dst, `{"questions":`...)
	w.questions(p.Questions)
	w.data(start, func(n string) place {
		switch {
		case n == "questions":
			return taken
		case w.p != RFC0002 && !w.k.same(w.p) && n != "contextType":
			return closed
		}
		return free
	})
	w.drop("/agentId", w.ev.AgentID != "")
}

// data writes the kept members of the data of an interrupt, and those that
// stand beside it but may only be in it, and ends the object.
func (w *writer) data(start int, look func(name string) place) {
	var has []string
	w.more("/payload/data/", "data/", start, func(n string) place {
		p := look(n)
		if p == free {
			has = append(has, n)
		}
		return p
	})
	w.more("/payload/", "data/", start, func(n string) place {
		if w.place(n) != closed || n == "nodeId" || slices.Contains(has, n) {
			return other
		}
		if look(n) == free {
			return free
		}
		return other
	})
	w.dst = append(w.dst, '}')
}

// interrupt writes kind and key of an interrupt.requested.
func (w *writer) interrupt(kind, pointer, id string) {
	w.name(mKind)
	w.str("/payload/kind", kind)
	form := InterruptID // as what resolves the interrupt names it
	long := utf8.RuneCountInString(id) > maxKey
	id = w.key(pointer, id)
	if w.k.spelled.has(mKey) && !long {
		form = PlainID // a key need not be an id
	}
	w.required(mKey, form, pointer, id, w.eventID)
}

// maxKey is how many characters a key has at most.
const maxKey = 256

// key returns the id of an interrupt that is named by its key, which is bounded where
// ids are not.
func (w *writer) key(pointer, id string) string {
	if w.p != SchemaV1 || utf8.RuneCountInString(id) <= maxKey {
		return id
	}
	w.lose(dialect.Altered, pointer, "the profile has another form for keys")
	return NormalizeID(SchemaV2, InterruptID, id)
}

// answered writes the answer to a request for clarification.
func (w *writer) answered(p *agentevents.ClarificationResolved) {
	w.node()
	if w.v == vClarResolved {
		if !w.absent(mInterruptID) {
			w.text(mInterruptID, "/payload/interruptId", p.InterruptID)
		}
		w.must(mAnswers, "/payload/answers", p.Answers, "{}", true)
		w.text(mAnsweredBy, "/payload/answeredBy", p.AnsweredBy)
		w.anyAgent()
		return
	}
	w.required(mInterruptID, InterruptID, "/payload/interruptId", w.key("/payload/interruptId", p.InterruptID), w.eventID)
	w.name(mKind)
	w.str("/payload/kind", kindClarification)
	w.json(mResumeValue, "/payload/answers", p.Answers, false)
	if w.undeclared() {
		w.text(mAnsweredBy, "/payload/answeredBy", p.AnsweredBy)
	} else {
		w.drop("/payload/answeredBy", p.AnsweredBy != "")
	}
	w.anyAgent()
}

// extraMember writes a required member that the vocabulary has no field for into
// the object that begins at start: as it was kept of either form of an interrupt,
// or made up.
func (w *writer) extraMember(start int, below, name, made string) {
	const payload, data = "/payload/", "/payload/data/"
	key := payload + name
	kept := w.k.get(key)
	if old := w.k.get(data + name); old != "" && (kept == "" || below == data) {
		key, kept = data+name, old
	}
	w.k.take(key)
	switch good := w.artifact(name, kept); {
	case kept == "":
		w.lose(dialect.Made, "/openwop/"+jsonwire.Token(below+name), "")
	case good == "":
		w.lose(dialect.Altered, "/openwop/"+jsonwire.Token(below+name), "the profile has another form for it")
	default:
		if good != kept {
			w.lose(dialect.Altered, "/openwop/"+jsonwire.Token(below+name), "the profile has another form for it")
		}
		made = good
	}
	w.member(start, name, made)
	if start == w.at {
		w.extra = append(w.extra, name)
	}
}

// artifact returns a required member of a request for approval in the profile's
// form, and nothing if it has none.
func (w *writer) artifact(name, raw string) string {
	if raw == "" || w.p == RFC0002 {
		return raw
	}
	data := w.v == vPermitRequested
	if name != "actions" {
		if raw[0] != '"' || data && raw == `""` {
			return ""
		}
		return raw
	}
	edit, otherEdit := "edit", "edit-accept"
	if data {
		edit, otherEdit = otherEdit, edit
	}
	var words []string
	same := strings.HasPrefix(raw, "[")
	for word := range jsonwire.Elements(raw) {
		text := jsonwire.Text(word)
		if text == otherEdit {
			text, same = edit, false
		}
		if text != edit && !slices.Contains(actions, text) || data && slices.Contains(words, text) {
			same = false
			continue
		}
		words = append(words, text)
	}
	switch {
	case len(words) == 0:
		return ""
	case same:
		return raw
	}
	return `["` + strings.Join(words, `","`) + `"]`
}

// permit writes a request for approval.
func (w *writer) permit(p *agentevents.ApprovalRequested) {
	artifact, what := p.CallID, toolCallType
	if artifact == "" {
		artifact, what = p.ApprovalID, actionType
	}
	if w.v == vApprovalRequested {
		w.node()
		if !w.absent(mInterruptID) {
			w.text(mInterruptID, "/payload/approvalId", p.ApprovalID)
		}
		extra := func(name, made string) {
			if w.p == SchemaV1 || w.k.get("/payload/"+name) != "" || w.k.get("/payload/data/"+name) != "" {
				w.extraMember(w.at, "/payload/", name, made)
			}
		}
		extra("artifactId", jsonwire.Quote(artifact))
		extra("artifactType", jsonwire.Quote(what))
		w.text(mTitle, "/payload/action", p.Action)
		extra("actions", madeActions)
		w.text(mReason, "/payload/reason", p.Reason)
		w.text(mScope, "/payload/scope", p.Scope)
		w.text(mRisk, "/payload/risk", p.Risk)
		w.text(mCallID, "/payload/callId", p.CallID)
		w.text(mToolID, "/payload/toolId", p.ToolID)
		w.json(mArguments, "/payload/arguments", p.Arguments, false)
		w.millis(mTimeoutMs, "/payload/timeoutMs", p.Timeout)
		w.anyAgent()
		return
	}
	w.interrupt(kindApproval, "/payload/approvalId", p.ApprovalID)
	w.name(mData)
	start := len(w.dst)
	w.dst = append(w.dst, '{')
	w.extraMember(start, "/payload/data/", "artifactId", jsonwire.Quote(artifact))
	w.extraMember(start, "/payload/data/", "artifactType", jsonwire.Quote(what))
	title := p.Action
	if title == "" {
		title = kindApproval
		w.lose(dialect.Made, "/payload/action", title)
	}
	w.dst = append(w.dst, `,"title":`...)
	w.str("/payload/action", title)
	w.extraMember(start, "/payload/data/", "actions", madeActions)
	w.data(start, func(n string) place {
		if n == "artifactId" || n == "artifactType" || n == "title" || n == "actions" {
			return taken
		}
		return free
	})
	w.millis(mTimeoutMs, "/payload/timeoutMs", p.Timeout)
	w.drop("/payload/reason", p.Reason != "")
	w.drop("/payload/scope", p.Scope != "")
	w.drop("/payload/risk", p.Risk != "")
	w.drop("/payload/callId", p.CallID != "")
	w.drop("/payload/toolId", p.ToolID != "")
	w.drop("/payload/arguments", p.Arguments != "")
	w.drop("/agentId", w.ev.AgentID != "")
}

// permitted writes the answer to a request for approval.
func (w *writer) permitted(decision, id, by, byPointer, feedback string) {
	if w.v != vPermitResolved {
		w.required(mGateID, PlainID, "/payload/approvalId", id, w.eventID)
		if w.p == RFC0002 {
			w.text(mPrincipal, byPointer, by)
		} else {
			w.required(mPrincipal, PlainID, byPointer, by, unknownPerson)
		}
		if w.v == vApprovalRejected {
			w.text(mReason, "/payload/feedback", feedback)
		} else {
			w.drop("/payload/feedback", feedback != "")
		}
		w.drop("/agentId", w.ev.AgentID != "")
		return
	}
	w.node()
	w.required(mInterruptID, InterruptID, "/payload/approvalId", w.key("/payload/approvalId", id), w.eventID)
	w.name(mKind)
	w.str("/payload/kind", kindApproval)
	w.short(mReason, "/payload/feedback", feedback)
	w.name(mDecision)
	w.str("/payload/decision", decision)
	if w.undeclared() {
		w.text(mPrincipal, byPointer, by)
	} else {
		w.drop(byPointer, by != "")
	}
	w.anyAgent()
}

// message writes a message as what is written to a channel.
func (w *writer) message(p *agentevents.MessageCreated) {
	w.name(mChannel)
	w.str("", MessageChannel)
	w.name(mValue)
	m := &p.Message
	if m.Content == "" || w.p != RFC0002 {
		w.said = *m
		m = &w.said
		w.parties(m)
	}
	if m.Content == "" {
		m.Content = "null"
	}
	start := len(w.dst)
	out, err := m.AppendJSON(w.dst)
	if err != nil {
		var inner *agentevents.InvariantError
		if errors.As(err, &inner) {
			w.fail(inner.Rule, inner.Pointer, inner.Detail)
		} else {
			w.fail(agentevents.RuleFieldJSON, "/payload/message", err.Error())
		}
		return
	}
	w.dst = out
	if p.Message.Content == "" && jsonwire.HasMember(string(out[start:]), "content") { // one that was read without it is written so
		w.lose(dialect.Made, "/payload/message/content", "null")
	}
	switch r := w.k.get("/payload/reducer"); {
	case r != "" && (w.p == RFC0002 || schemaReducer(jsonwire.Text(r))):
		w.name(mReducer)
		w.dst = append(w.dst, w.k.take("/payload/reducer")...)
	case w.p != RFC0002:
		w.name(mReducer)
		w.str("", reducerSchema)
		if r == "" {
			w.lose(dialect.Made, "/openwop/~1payload~1reducer", "append: the schemas have none that knows messages by their ids")
		}
	case !w.absent(mReducer):
		w.name(mReducer)
		w.str("", reducerRFC)
	}
	if t := w.k.get("/payload/writtenAt"); t != "" && (w.p == RFC0002 || isTime(t)) {
		w.name(mWrittenAt)
		w.dst = append(w.dst, w.k.take("/payload/writtenAt")...)
	} else if w.p != RFC0002 || !w.absent(mWrittenAt) {
		w.name(mWrittenAt)
		w.dst = w.times.Append(w.dst, w.ev.Time)
	}
	w.drop("/agentId", w.ev.AgentID != "")
}

// parties gives the agents of a message the ids that they have elsewhere.
func (w *writer) parties(m *agentevents.ConversationMessage) {
	const at = "/payload/message/"
	m.From, m.To = w.agentID(at+"from", m.From), w.agentID(at+"to", m.To)
	if m.Agent.OK {
		m.Agent.V.AgentID = w.agentID(at+"agent/agentId", m.Agent.V.AgentID)
	}
}

// schemaReducer reports whether the schemas have a reducer.
func schemaReducer(word string) bool {
	if slices.Contains(reducers, word) {
		return true
	}
	rest, ok := strings.CutPrefix(word, "vendor.")
	who, what, two := strings.Cut(rest, ".")
	return ok && two && reducerName(who) && reducerName(what)
}

func reducerName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (i == 0 || (c < '0' || c > '9') && c != '_' && c != '-') {
			return false
		}
	}
	return s != ""
}

// isTime reports whether a JSON value is the text of a time.
func isTime(raw string) bool {
	var s jsonwire.Scanner
	s.Reset(raw)
	_, err := s.Time()
	return err == nil
}
