package openwop

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

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
		w.payloadExtra()
	}
	w.dst = append(w.dst, '}')
}

// payloadExtra writes the extra members of the payload. It lists those of an
// inner object that the payload does not have.
func (w *writer) payloadExtra() {
	w.more("/payload/", "", w.at, w.place)
	if w.v == vClarRequested || w.v == vApprovalRequested {
		// These come from the other form of an interrupt.
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

// place returns whether the payload has room for an extra member.
func (w *writer) place(name string) place {
	if m := numberOf(memberNames[:], name); m != 0 && w.has.has(m) || slices.Contains(w.extra, name) {
		return taken
	}
	if vs := &variants[w.v]; vs.closed(w.p) && !w.k.same(w.p) && !vs.declares(name) && (w.p == SchemaV1 || vs.sealed || !hatch(name)) {
		return closed
	}
	return free
}

// unknown writes the payload of an unknown type.
func (w *writer) unknown(u *agentevents.Unknown) {
	w.raw("/payload", agentevents.JSON(w.otherRaw), false)
	if id := w.ev.AgentID; id != "" && agentOf(string(u.Raw)) != id {
		w.drop("/agentId", true)
	}
}

// members writes the members of the payload that the vocabulary has.
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
			w.lose(dialect.Made, "/payload/index", "counted by the encoder")
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
			made = CoreSystem
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
		case rfc && ev.AgentID != "" && p.From.AgentID == "" && w.absent(mFrom): // no from names the agent
			w.anyAgent()
		case ev.AgentID != from && ev.AgentID != "" && w.undeclared():
			w.anyAgent()
		case ev.AgentID != from && ev.AgentID != "":
			w.lose(dialect.Altered, "/agentId", "written as the agent that hands over")
		case w.k.spelled.has(mAgentID) && ev.AgentID != "" && w.undeclared():
			w.anyAgent()
		}
		if rfc {
			if p.From.AgentID != "" || !w.absent(mFrom) {
				w.ref(mFrom, "/payload/from", p.From, made)
			}
			if p.To.AgentID != "" || !w.absent(mTo) {
				w.ref(mTo, "/payload/to", p.To, CoreSystem)
			}
		} else {
			w.refID(mFromAgentID, "/payload/from", p.From, made)
			w.refID(mToAgentID, "/payload/to", p.To, CoreSystem)
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
				w.fail(RuleEnum, "/payload/cap", unlisted(p.Cap, capKinds))
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

// block writes the id of a block of reasoning. The document has no member for it,
// but the blocks of one agent may be interleaved.
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

// only returns an object without the members that may rejects.
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

// criteria returns a decision whose successCriteria have only their declared
// members.
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

// returned writes the result of a tool.
func (w *writer) returned(p *agentevents.ToolReturned, result int) {
	if p.Error.OK {
		w.drop("/payload/result", p.Result != "")
		w.errorInfo(&p.Error.V)
	} else {
		w.json(result, "/payload/result", p.Result, false)
	}
	derived := agentevents.ToolStatusOK
	if p.Error.OK {
		derived = agentevents.ToolStatusError
	}
	status := p.Status
	switch {
	case status == "":
		status = derived
		w.lose(dialect.Made, "/payload/status", string(derived))
	case status == agentevents.ToolStatusCancelled, status == agentevents.ToolStatusInterrupted, w.p != RFC0002 && !slices.Contains(toolStatuses, string(status)):
		w.lose(dialect.Altered, "/payload/status", "error")
		status = agentevents.ToolStatusError
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

// nodeAgent writes the agent of a node, and the acting agent.
func (w *writer) nodeAgent(ref agentevents.Opt[agentevents.AgentRef]) {
	if ref.OK && w.undeclared() {
		w.ref(mAgent, "/payload/agent", ref.V, "")
	} else {
		w.drop("/payload/agent", ref.OK)
	}
	w.anyAgent()
}

// message writes a message as a write to a channel.
func (w *writer) message(p *agentevents.MessageCreated) {
	w.name(mChannel)
	w.str("", MessageChannel)
	w.name(mValue)
	m := &p.Message
	if m.Content == "" || w.p != RFC0002 {
		w.msg = *m
		m = &w.msg
		w.parties(m)
	}
	if m.Content == "" {
		m.Content = "null"
	}
	start := len(w.dst)
	out, err := m.AppendJSON(w.dst)
	if err != nil {
		var inner *agentevents.RuleError
		if errors.As(err, &inner) {
			w.fail(inner.Rule, inner.Pointer, inner.Detail)
		} else {
			w.fail(agentevents.RuleFieldJSON, "/payload/message", err.Error())
		}
		return
	}
	w.dst = out
	if p.Message.Content == "" && jsonwire.HasMember(string(out[start:]), "content") { // a message that was read without content is written without it
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
			w.lose(dialect.Made, "/openwop/~1payload~1reducer", "append: the schemas have no reducer that applies messages by id")
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

// parties gives the agents of a message the same ids as elsewhere.
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
