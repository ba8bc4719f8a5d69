package multiagent

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The rules of the document. A strict [Decoder] and the [Encoder] enforce them.
const (
	RuleEnvelope  agentevents.Rule = "multiagent-envelope"  // the required members of the envelope are there and not empty
	RuleTimestamp agentevents.Rule = "multiagent-timestamp" // timestamp is an RFC 3339 time
	RuleWorkflow  agentevents.Rule = "multiagent-workflow"  // an event of a workflow has workflowId
	RulePhase     agentevents.Rule = "multiagent-phase"     // a phase, a checkpoint, or an agent of a workflow has phase
	RuleField     agentevents.Rule = "multiagent-field"     // key fields of workflow types fit their native fields
)

// format is the table of the document. The members of a type are the members of its payload.
var format = func() *engine.Format {
	var (
		may   = engine.May
		value = valueForm{}
		count = countForm{}
		ref   = engine.Short("agentId", may("agentId", "agentId", value), may("agentSharing", "agentSharing", value),
			may("memoryRef", "memoryRef", value), may("modelClass", "modelClass", value))
		fault = engine.Short("message", may("code", "code", value), may("message", "message", value),
			may("details", "details", value), may("retryable", "retryable", value))
		usage = []engine.Member{may("inputTokens", "inputTokens", count),
			may("outputTokens", "outputTokens", count), may("totalTokens", "totalTokens", value),
			may("cacheCreationInputTokens", "cacheCreationInputTokens", value), may("cacheReadInputTokens", "cacheReadInputTokens", value),
			may("reasoningOutputTokens", "reasoningOutputTokens", value), may("costUsd", "costUsd", value)}
		totals = engine.Object(may("steps", "steps", count),
			may("toolCalls", "toolCalls", count), may("auditCheckpoints", "auditCheckpoints", count),
			may("auditsPassed", "auditsPassed", count), may("auditsFailed", "auditsFailed", count))
	)
	// field is a member with the name of its field, scope one of a field of the
	// envelope, message one of a field of a message.
	field := func(name string, form ...engine.Form) engine.Member { return may(name, name, append(form, value)...) }
	scope := func(name string, form ...engine.Form) engine.Member {
		return may(name, "/"+name, append(form, value)...)
	}
	message := func(name string, form ...engine.Form) engine.Member {
		return may(name, "message/"+name, append(form, value)...)
	}
	needed := engine.Check(RuleEnvelope, value, notEmpty)
	need := func(name string) engine.Member { return engine.Need(name, "/"+name, needed) }

	// common are the fields of the envelope without a place in the document: any
	// payload may have them.
	common := []engine.Member{scope("agentId", agentIDForm{}), scope("workflowId"),
		scope("phase", phaseForm{}), scope("nodeId"), scope("nodeRunId"), scope("step", stepForm{}),
		scope("parentAgentId"), scope("parentCallId"), scope("causationId"), scope("marks", marksForm{})}
	has := func(members []engine.Member, name string) bool {
		return slices.ContainsFunc(members, func(m engine.Member) bool { return m.Name == name })
	}
	row := func(typ string, kind agentevents.Kind, members ...engine.Member) engine.Row {
		flow := has(members, "workflowId")
		r := engine.Row{
			Type: typ, Kind: kind, Members: members,
			More: &facts{workflow: flow, phase: has(members, "phase"), byOthers: flow && !ofAgents(kind)},
		}
		for _, c := range common {
			if !has(members, c.Name) {
				r.Members = append(r.Members, c)
			}
		}
		for i := range r.Members {
			_, r.Members[i].Plain = r.Members[i].Form.(valueForm)
		}
		return r
	}
	// read is a row of a type that the document does not list. It is written only where a line had it.
	read := func(r engine.Row) engine.Row {
		r.Reads, r.Fields = true, "answer"
		return r
	}
	// flow is a row of a workflow. Its first n members are the key fields of the
	// document.
	flow := func(typ string, kind agentevents.Kind, n int, members ...engine.Member) engine.Row {
		for i := range members[:n] {
			members[i].Form = keyForm{members[i].Form}
		}
		return row(typ, kind, members...)
	}
	f := engine.New(engine.Format{
		Name:     Name,
		Body:     "payload",
		Required: RuleEnvelope,
		Loose:    true,
		Head: []engine.Member{
			need("id").Or(madeID), need("traceId").Or(madeTrace), need("spanId").Or(madeSpan), scope("parentSpanId").Or(madeAbove),
			need("sessionId").Or(madeSession), engine.Need("runId", "/runId", runForm{engine.Check(RuleEnvelope, engine.Full{}, notEmpty)}), scope("taskId"),
			engine.Need("actor", "/actor /agentId", actorForm{needed}).Or(madeActor), engine.Need("type", "", engine.Type), engine.Need("payload", "", payloadForm{}).Or(noPayload),
			engine.Need("timestamp", "/timestamp", engine.AnyTime(timestampForm{}, time.Millisecond)), engine.Need("schemaVersion", "", versionForm{}),
		},
		Rows: []engine.Row{
			row("session.started", agentevents.KindSessionStarted, field("goal")),
			row("workflow.node.enter", agentevents.KindNodeStarted,
				scope("nodeId").As("node", "workflowNode").Or(madeNode), field("agent", ref), field("typeId"), field("attempt")),
			row("agent.message.created", agentevents.KindMessageCreated,
				may("message", "", insideForm{}).Unless(outside), message("messageId").As("id"),
				message("from"), message("to"), message("groupId"),
				message("content", count).As("text"), message("ts", engine.Value{}),
				message("role"), message("turnIndex"), message("agent", ref)),
			row("agent.task.assigned", agentevents.KindTaskAssigned,
				field("goal").As("task"), field("assignedAgent"), field("context"), field("constraints"),
				field("expectedOutput").As("expected_output")),
			row("tool.call.started", agentevents.KindToolCalled,
				field("callId").As("toolCallId", "id"), field("toolId").As("toolName", "tool", "name"),
				field("arguments").As("input", "args"), field("argumentsSummary"),
				field("attempt"), field("retryOf"), field("argsHash"), field("principal"), field("transport"), field("attributes")),
			row("tool.call.completed", agentevents.KindToolReturned,
				field("callId").As("toolCallId", "id"), field("toolId").As("toolName", "tool", "name"),
				may("status", "status statusWord", statusForm{}), field("result").As("output"),
				field("resultSummary").As("reason", "message", "summary"), field("error", fault), field("durationMs"),
				field("oneEvent"), field("arguments").As("input", "args"), field("argumentsSummary")),
			row("handoff.requested", agentevents.KindHandoffRequested,
				field("handoffId"), field("from", ref).As("fromAgent"), field("to", ref).As("toAgent"), field("reason"),
				field("contextDigest").As("context_digest")),
			row("handoff.accepted", agentevents.KindHandoffAccepted,
				field("handoffId").Or(noHandoff), field("from", ref).As("fromAgent"),
				field("to", ref).As("toAgent"), field("reason"), field("contextDigest").As("context_digest")),
			row("blackboard.item.created", agentevents.KindBlackboardItemCreated,
				field("itemId").As("id"), field("itemType").As("type"), field("content", count),
				field("sourceAgent"), field("confidence"), field("ttlMs")),
			row("approval.requested", agentevents.KindApprovalRequested,
				field("approvalId").As("id"), field("action"), field("reason"), field("scope"),
				field("risk"), field("callId"), field("toolId"), field("arguments"), field("timeoutMs")),
			row("approval.granted", agentevents.KindApprovalGranted, field("approvalId").As("id"), field("approvedBy"), field("feedback")),
			row("verifier.issue.found", agentevents.KindIssueFound, field("issue").As("description", "text", "message"), field("severity"), field("evidence"), field("suggestedFix").As("suggested_fix")),
			row("loop.round.completed", agentevents.KindLoopRoundCompleted, field("round", count), field("score"), field("feedback"), field("diff"), field("costUsd")),
			row("budget.exceeded", agentevents.KindBudgetExceeded, field("budget").As("kind"), field("limit", count), field("actual", count), field("reason")),
			row("session.completed", agentevents.KindSessionCompleted, field("status").As("outcome"), field("reason").As("message"), field("result"), field("error", fault)),

			flow("workflow.created", agentevents.KindWorkflowCreated, 4, scope("workflowId"), field("script"), field("phases", count), field("estimatedTokens")),
			flow("workflow.approved", agentevents.KindWorkflowApproved, 3, scope("workflowId"), field("approvedAt"), field("approvedBy")),
			flow("workflow.phase.started", agentevents.KindPhaseStarted, 3, scope("workflowId"), scope("phase"), field("inputCount")),
			flow("workflow.phase.completed", agentevents.KindPhaseCompleted, 4, scope("workflowId"), scope("phase"), field("outputCount"), field("tokens")),
			flow("agent.spawned", agentevents.KindAgentStarted, 4,
				scope("workflowId"), scope("phase"), may("agentTask", "task", value).As("task"),
				may("parentSpanId", "", parentForm{}),
				field("agent", ref), field("name"), field("model"), field("providerSessionId"),
				field("prompt"), field("attempt"), field("resumed"), field("lifecycle")),
			flow("agent.completed", agentevents.KindAgentEnded, 4,
				scope("agentId", agentIDForm{}), may("tokens", "", tokensForm{}),
				field("durationMs"), field("resultSchema"), scope("workflowId"), scope("phase"),
				field("outcome"), field("status"), field("reason").As("message"), field("error", fault),
				field("result"), field("structuredOutput"), field("usage", engine.Object(usage...)).Unless(onlyTotal),
				field("modelUsage", engine.Dict[agentevents.Usage](usage...)), field("totalCostUsd"),
				field("cumulative"), field("numTurns"), field("totals", totals), field("convergenceScore")),
			flow("claim.verified", agentevents.KindClaimVerified, 4, field("findingId"), field("verifierAgentId"), field("verdict"), field("evidence")),
			flow("workflow.checkpoint.saved", agentevents.KindCheckpointSaved, 3, scope("workflowId"), scope("phase"), field("stateBytes", count)),
			flow("workflow.checkpoint.resumed", agentevents.KindCheckpointResumed, 3, scope("workflowId"), scope("phase"), field("resumedAt")),
			flow("workflow.finalized", agentevents.KindWorkflowFinalized, 4,
				scope("workflowId"), field("totalTokens", count), field("totalAgents", count), field("durationMs", count)),

			read(row("approval.rejected", agentevents.KindApprovalRejected, field("approvalId").As("id"), field("rejectedBy").As("deniedBy", "declinedBy"), field("feedback").As("reason", "message", "comment"))),
		},
	})
	for i := range f.Rows {
		f.Rows[i].More.(*facts).made = madeIn(&f.Rows[i])
	}
	f.Pick = func(r *engine.Reader) *engine.Row {
		row := rowOf(f, r.Type)
		if !answers(row) {
			return row
		}
		row, decoderOf(r).answer = answerRow(f, r.Type, jsonwire.Members(jsonwire.Member(r.S.Text(), "payload")), "")
		return row
	}
	return f
}()

// rowOf returns the row of a type, or nil. A type that the document does not list has the row of
// the end of its domain, if its last word tells an end.
func rowOf(f *engine.Format, typ string) *engine.Row {
	if row := f.CaseRow(typ, ""); row != nil {
		return row
	}
	row, _ := endOfType(typ)
	return f.CaseRow(row, "")
}

// An end is the type of the document that a type of the same domain with another word stands for.
type end struct {
	over string // of an end, the row of rejections included: its status, or its answer, is the word
	yes  string // of a grant
}

// ends have the ends by domain: see [endword.OfType]. The others are unknown kinds, which the fold
// closes phases, workflows and requests of handoffs by.
var ends = map[string]end{
	"tool.call.": {over: "tool.call.completed"},
	"agent.":     {over: "agent.completed"},
	"session.":   {over: "session.completed"},
	"approval.":  {over: "approval.rejected", yes: "approval.granted"},
	"handoff.":   {yes: "handoff.accepted"},
}

// endOfType returns the type of the row for a type that the document does not list, and the word
// with which that type tells the end. They are empty if no row is for it.
func endOfType(typ string) (row, word string) {
	domain, word, how := endword.OfType(typ)
	switch e := ends[domain]; {
	case how == endword.Unknown:
	case e.yes == "" || badEnds[how]:
		row = e.over
	case endword.Grants(word):
		row = e.yes
	}
	if row == "" {
		return "", ""
	}
	return row, word
}

// badEnds are the meanings of the words for an end without a grant.
var badEnds = map[endword.Meaning]bool{endword.Failed: true, endword.Refused: true, endword.Cancelled: true}

// wordOf returns the word with which a type that the document does not list tells an end, or "".
func wordOf(typ string) string {
	if format.CaseRow(typ, "") != nil {
		return ""
	}
	_, word := endOfType(typ)
	return word
}

// answers reports whether a row answers a request for approval.
func answers(row *engine.Row) bool {
	return row != nil && (row.Kind == agentevents.KindApprovalGranted || row.Kind == agentevents.KindApprovalRejected)
}

// answerRow returns the row of an answer to a request for approval, and the answer besides the
// rejection, or "". A member of the payload that tells the answer wins over the type. The names of
// members begin with prefix.
func answerRow(f *engine.Format, typ string, members iter.Seq2[string, string],
	prefix string) (row *engine.Row, answer string) {
	row = rowOf(f, typ)
	if _, word := endOfType(typ); row.Kind == agentevents.KindApprovalRejected {
		answer = word
	}
	for name, raw := range members {
		name, is := strings.CutPrefix(name, prefix)
		how := answerMembers[name]
		if !is || how == nil {
			continue
		}
		word := jsonwire.Text(raw)
		if raw == "true" || raw == "false" {
			word = how[btoi(raw == "true")]
		}
		switch {
		case endword.Grants(word):
			return f.CaseRow(ends["approval."].yes, ""), ""
		case badEnds[endword.Of(word)]:
			row, answer = f.CaseRow(ends["approval."].over, ""), word
		}
	}
	if endword.Of(answer) == endword.Refused {
		answer = ""
	}
	return row, answer
}

// answerMembers are the members of a payload that tell an answer, by a word or by false and true.
var answerMembers = map[string]*[2]string{
	"granted": yes, "approved": yes, "accepted": yes, "allowed": yes, "confirmed": yes,
	"denied": no, "rejected": no, "declined": no, "refused": no,
	"decision": yes, "answer": yes, "outcome": yes, "verdict": yes, "response": yes, "status": yes,
}

var yes, no = &[2]string{"denied", "granted"}, &[2]string{"granted", "denied"}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// facts are the dialect's data on a row.
type facts struct {
	workflow, phase bool // the document names the workflow and the phase in the payload
	byOthers        bool // the actor is not an agent
	made            []madeUp
}

// factsOf returns the facts of a row, which may be nil.
func factsOf(row *engine.Row) *facts {
	if row == nil {
		return &facts{}
	}
	return row.More.(*facts)
}

// byPeople are the kinds whose actor is a person or a service.
var byPeople = []agentevents.Kind{agentevents.KindSessionStarted, agentevents.KindSessionCompleted,
	agentevents.KindApprovalGranted, agentevents.KindApprovalRejected, agentevents.KindBudgetExceeded}

// byOthers reports whether the actor of events of this kind is a person, a service or the
// script of a workflow, and not an agent.
func byOthers(kind agentevents.Kind) bool {
	return slices.Contains(byPeople, kind) || factsOf(format.Row(kind)).byOthers
}

// othersDomains begin the types, also those that the document does not list, whose actor is
// not an agent.
var othersDomains = []string{"workflow.", "session.", "budget."}

// unlisted reports whether the actor of a line of an unlisted type is not an agent.
func unlisted(typ string) bool {
	return !strings.HasPrefix(typ, "workflow.node.") &&
		slices.ContainsFunc(othersDomains, func(domain string) bool { return strings.HasPrefix(typ, domain) })
}

// ofAgents reports whether events of this kind belong to agents: they may occur outside of
// workflows, and are outside of steps.
func ofAgents(kind agentevents.Kind) bool {
	return kind == agentevents.KindAgentStarted || kind == agentevents.KindAgentEnded
}
