package agentevents

import "iter"

//go:generate go run ./internal/gen

// The kinds, in the order of a run's life. Each is the wire name of the struct
// it is named after.
const (
	KindSessionStarted   Kind = "session.started"
	KindSessionCompleted Kind = "session.completed"
	KindRunStarted       Kind = "run.started"
	KindRunPaused        Kind = "run.paused"
	KindRunResumed       Kind = "run.resumed"
	KindRunCompleted     Kind = "run.completed"
	KindRunFailed        Kind = "run.failed"
	KindRunCancelled     Kind = "run.cancelled"

	KindAgentStarted        Kind = "agent.started"
	KindAgentTransition     Kind = "agent.transition"
	KindAgentEnded          Kind = "agent.ended"
	KindAgentErrored        Kind = "agent.error"
	KindAgentSessionChanged Kind = "agent.session.changed"
	KindEventRetracted      Kind = "event.retracted"
	KindContextCompacted    Kind = "context.compacted"
	KindTaskAssigned        Kind = "agent.task.assigned"

	KindAgentReasoned       Kind = "agent.reasoned"
	KindAgentReasoningDelta Kind = "agent.reasoning.delta"
	KindAgentDecided        Kind = "agent.decided"
	KindOrchestratorDecided Kind = "runOrchestrator.decided"
	KindIntentClassified    Kind = "intent.classified"
	KindPlanProposed        Kind = "plan.proposed"
	KindTextDelta           Kind = "agent.text.delta"
	KindTextCompleted       Kind = "agent.text"
	KindMessageCreated      Kind = "agent.message.created"

	KindToolCalled         Kind = "agent.toolCalled"
	KindToolArgumentsDelta Kind = "tool.arguments.delta"
	KindToolReturned       Kind = "agent.toolReturned"

	KindAgentHandoff     Kind = "agent.handoff"
	KindHandoffRequested Kind = "handoff.requested"
	KindHandoffAccepted  Kind = "handoff.accepted"

	KindTurnStarted        Kind = "turn.started"
	KindTurnEnded          Kind = "turn.ended"
	KindTurnSummarized     Kind = "turn.summarized"
	KindStepStarted        Kind = "step.started"
	KindStepEnded          Kind = "step.ended"
	KindSpanRecorded       Kind = "span.recorded"
	KindNodeStarted        Kind = "node.started"
	KindNodeCompleted      Kind = "node.completed"
	KindNodeFailed         Kind = "node.failed"
	KindNodeSkipped        Kind = "node.skipped"
	KindNodeSuspended      Kind = "node.suspended"
	KindEdgeFired          Kind = "edge.fired"
	KindEdgeSkipped        Kind = "edge.skipped"
	KindLoopIterated       Kind = "loop.iterated"
	KindLoopRoundCompleted Kind = "loop.round.completed"
	KindStatePatched       Kind = "state.patched"

	KindWorkflowCreated   Kind = "workflow.created"
	KindWorkflowApproved  Kind = "workflow.approved"
	KindPhaseStarted      Kind = "workflow.phase.started"
	KindPhaseCompleted    Kind = "workflow.phase.completed"
	KindCheckpointSaved   Kind = "workflow.checkpoint.saved"
	KindCheckpointResumed Kind = "workflow.checkpoint.resumed"
	KindWorkflowFinalized Kind = "workflow.finalized"

	KindApprovalRequested      Kind = "approval.requested"
	KindApprovalGranted        Kind = "approval.granted"
	KindApprovalRejected       Kind = "approval.rejected"
	KindClarificationRequested Kind = "clarification.requested"
	KindClarificationResolved  Kind = "clarification.resolved"
	KindCommandReceived        Kind = "command.received"
	KindCommandConsumed        Kind = "command.consumed"

	KindAuditChecked         Kind = "audit.checked"
	KindClaimVerified        Kind = "claim.verified"
	KindIssueFound           Kind = "verifier.issue.found"
	KindCitationFound        Kind = "citation.found"
	KindEvidenceInsufficient Kind = "evidence.insufficient"

	KindUsageObserved         Kind = "usage.observed"
	KindBudgetExceeded        Kind = "budget.exceeded"
	KindCapBreached           Kind = "cap.breached"
	KindBlackboardItemCreated Kind = "blackboard.item.created"
	KindMemoryChanged         Kind = "memory.changed"
)

// A Role is what a kind does to its subject.
type Role uint8

// The roles.
const (
	RolePoint  Role = iota // a fact by itself
	RoleOpens              // opens its subject
	RoleDelta              // a piece of its subject, while it is open
	RoleCloses             // closes its subject
)

// String returns the role's name in lower case.
func (r Role) String() string {
	switch r {
	case RoleOpens:
		return "opens"
	case RoleDelta:
		return "delta"
	case RoleCloses:
		return "closes"
	}
	return "point"
}

// KindInfo is the catalog's row of a kind: what it means to readers that do
// not know its struct.
type KindInfo struct {
	Kind Kind // the kind
	Role Role // what it does to its subject
	// Subject is what it opens, feeds, closes or tells about: run, agent,
	// tool_call, text, …
	Subject string
	// Droppable says that a log of a finished run may leave it out without
	// changing the snapshot, as long as the whole it is a piece of is in the
	// log.
	Droppable bool
	// Act says that the agent itself does it: it is refused once the agent has
	// reached a terminal status (rule agent-ended-final).
	ByAgent bool

	traits traits
}

// traits are what the rules ask about a kind.
type traits uint8

const (
	ofSession   traits = 1 << iota // may stand outside the run
	afterEnd                       // may follow the run's terminal event
	ofLifecycle                    // is about an agent and nothing else
	stepless                       // is in no step
	ofWorkflow                     // carries workflowId
	ofPhase                        // carries phase too
	reasons                        // carries reasoning, which has a limit
)

// catalog lists every kind once. The generated code finds the mechanics (how
// to append, parse, check and redact it) by the struct; this row says what it
// means. A new kind is a constant, a row and a struct; then go generate.
var catalog = [...]KindInfo{
	{Kind: KindSessionStarted, Role: RoleOpens, Subject: "session", traits: ofSession | afterEnd},
	{Kind: KindSessionCompleted, Role: RoleCloses, Subject: "session", traits: ofSession | afterEnd},
	{Kind: KindRunStarted, Role: RoleOpens, Subject: "run"},
	{Kind: KindRunPaused, Role: RolePoint, Subject: "run"},
	{Kind: KindRunResumed, Role: RolePoint, Subject: "run"},
	{Kind: KindRunCompleted, Role: RoleCloses, Subject: "run"},
	{Kind: KindRunFailed, Role: RoleCloses, Subject: "run"},
	{Kind: KindRunCancelled, Role: RoleCloses, Subject: "run"},

	{Kind: KindAgentStarted, Role: RoleOpens, Subject: "agent", traits: ofLifecycle | stepless},
	{Kind: KindAgentTransition, Role: RolePoint, Subject: "agent", ByAgent: true, traits: ofLifecycle},
	{Kind: KindAgentEnded, Role: RoleCloses, Subject: "agent", traits: ofLifecycle | stepless},
	{Kind: KindAgentErrored, Role: RolePoint, Subject: "agent", ByAgent: true},
	{Kind: KindAgentSessionChanged, Role: RolePoint, Subject: "agent", ByAgent: true},
	{Kind: KindEventRetracted, Role: RolePoint, Subject: "event"},
	{Kind: KindContextCompacted, Role: RolePoint, Subject: "agent", ByAgent: true},
	{Kind: KindTaskAssigned, Role: RolePoint, Subject: "task"},

	{Kind: KindAgentReasoned, Role: RoleCloses, Subject: "reasoning", ByAgent: true, traits: reasons},
	{Kind: KindAgentReasoningDelta, Role: RoleDelta, Subject: "reasoning", Droppable: true, ByAgent: true, traits: reasons},
	{Kind: KindAgentDecided, Role: RolePoint, Subject: "decision", ByAgent: true, traits: reasons},
	{Kind: KindOrchestratorDecided, Role: RolePoint, Subject: "decision"},
	{Kind: KindIntentClassified, Role: RolePoint, Subject: "intent", ByAgent: true, traits: reasons},
	{Kind: KindPlanProposed, Role: RolePoint, Subject: "plan", ByAgent: true},
	{Kind: KindTextDelta, Role: RoleDelta, Subject: "text", Droppable: true, ByAgent: true},
	{Kind: KindTextCompleted, Role: RoleCloses, Subject: "text", ByAgent: true},
	{Kind: KindMessageCreated, Role: RolePoint, Subject: "message", ByAgent: true},

	{Kind: KindToolCalled, Role: RoleOpens, Subject: "tool_call", ByAgent: true},
	{Kind: KindToolArgumentsDelta, Role: RoleDelta, Subject: "tool_call", Droppable: true, ByAgent: true},
	{Kind: KindToolReturned, Role: RoleCloses, Subject: "tool_call", ByAgent: true},

	{Kind: KindAgentHandoff, Role: RolePoint, Subject: "handoff", ByAgent: true},
	{Kind: KindHandoffRequested, Role: RoleOpens, Subject: "handoff", ByAgent: true},
	{Kind: KindHandoffAccepted, Role: RoleCloses, Subject: "handoff", ByAgent: true},

	{Kind: KindTurnStarted, Role: RoleOpens, Subject: "turn"},
	{Kind: KindTurnEnded, Role: RoleCloses, Subject: "turn"},
	{Kind: KindTurnSummarized, Role: RolePoint, Subject: "turn"},
	{Kind: KindStepStarted, Role: RoleOpens, Subject: "step"},
	{Kind: KindStepEnded, Role: RoleCloses, Subject: "step"},
	{Kind: KindSpanRecorded, Role: RolePoint, Subject: "span"},
	{Kind: KindNodeStarted, Role: RoleOpens, Subject: "node"},
	{Kind: KindNodeCompleted, Role: RoleCloses, Subject: "node"},
	{Kind: KindNodeFailed, Role: RoleCloses, Subject: "node"},
	{Kind: KindNodeSkipped, Role: RolePoint, Subject: "node"},
	{Kind: KindNodeSuspended, Role: RolePoint, Subject: "node"},
	{Kind: KindEdgeFired, Role: RolePoint, Subject: "edge"},
	{Kind: KindEdgeSkipped, Role: RolePoint, Subject: "edge"},
	{Kind: KindLoopIterated, Role: RolePoint, Subject: "loop"},
	{Kind: KindLoopRoundCompleted, Role: RolePoint, Subject: "loop"},
	{Kind: KindStatePatched, Role: RolePoint, Subject: "state"},

	{Kind: KindWorkflowCreated, Role: RoleOpens, Subject: "workflow", traits: ofWorkflow},
	{Kind: KindWorkflowApproved, Role: RolePoint, Subject: "workflow", traits: ofWorkflow},
	{Kind: KindPhaseStarted, Role: RoleOpens, Subject: "phase", traits: ofWorkflow | ofPhase},
	{Kind: KindPhaseCompleted, Role: RoleCloses, Subject: "phase", traits: ofWorkflow | ofPhase},
	{Kind: KindCheckpointSaved, Role: RolePoint, Subject: "checkpoint", traits: ofWorkflow | ofPhase},
	{Kind: KindCheckpointResumed, Role: RolePoint, Subject: "checkpoint", traits: ofWorkflow | ofPhase},
	{Kind: KindWorkflowFinalized, Role: RoleCloses, Subject: "workflow", traits: ofWorkflow},

	{Kind: KindApprovalRequested, Role: RoleOpens, Subject: "approval"},
	{Kind: KindApprovalGranted, Role: RoleCloses, Subject: "approval"},
	{Kind: KindApprovalRejected, Role: RoleCloses, Subject: "approval"},
	{Kind: KindClarificationRequested, Role: RoleOpens, Subject: "clarification"},
	{Kind: KindClarificationResolved, Role: RoleCloses, Subject: "clarification"},
	{Kind: KindCommandReceived, Role: RolePoint, Subject: "command"},
	{Kind: KindCommandConsumed, Role: RolePoint, Subject: "command"},

	{Kind: KindAuditChecked, Role: RolePoint, Subject: "audit", traits: afterEnd | stepless},
	{Kind: KindClaimVerified, Role: RolePoint, Subject: "claim"},
	{Kind: KindIssueFound, Role: RolePoint, Subject: "issue"},
	{Kind: KindCitationFound, Role: RolePoint, Subject: "citation", ByAgent: true},
	{Kind: KindEvidenceInsufficient, Role: RolePoint, Subject: "evidence", ByAgent: true},

	{Kind: KindUsageObserved, Role: RolePoint, Subject: "usage", traits: afterEnd},
	{Kind: KindBudgetExceeded, Role: RolePoint, Subject: "budget"},
	{Kind: KindCapBreached, Role: RolePoint, Subject: "cap"},
	{Kind: KindBlackboardItemCreated, Role: RolePoint, Subject: "blackboard"},
	{Kind: KindMemoryChanged, Role: RolePoint, Subject: "memory"},
}

// Kinds yields the catalog, in the order of a run's life. [Unknown] has no
// row.
func Kinds() iter.Seq[KindInfo] {
	return func(yield func(KindInfo) bool) {
		for _, info := range catalog {
			if !yield(info) {
				return
			}
		}
	}
}

// Info returns the catalog's row of k, and false for a kind it does not know.
func (k Kind) Info() (KindInfo, bool) {
	i := kindIndex(k)
	if i < 0 {
		return KindInfo{Kind: k}, false
	}
	return catalog[i], true
}

// NewPayload returns an empty payload of kind k: a pointer to the struct of a known
// kind, and an [Unknown] for any other.
func NewPayload(k Kind) Payload {
	if p := emptyPayload(k); p != nil {
		return p
	}
	return &Unknown{Type: k}
}
