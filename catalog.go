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
	Point  Role = iota // a fact by itself
	Opens              // opens its subject
	Delta              // a piece of its subject, while it is open
	Closes             // closes its subject
)

// String returns the role's name in lower case.
func (r Role) String() string {
	switch r {
	case Opens:
		return "opens"
	case Delta:
		return "delta"
	case Closes:
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
	Act bool

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
	{Kind: KindSessionStarted, Role: Opens, Subject: "session", traits: ofSession | afterEnd},
	{Kind: KindSessionCompleted, Role: Closes, Subject: "session", traits: ofSession | afterEnd},
	{Kind: KindRunStarted, Role: Opens, Subject: "run"},
	{Kind: KindRunPaused, Role: Point, Subject: "run"},
	{Kind: KindRunResumed, Role: Point, Subject: "run"},
	{Kind: KindRunCompleted, Role: Closes, Subject: "run"},
	{Kind: KindRunFailed, Role: Closes, Subject: "run"},
	{Kind: KindRunCancelled, Role: Closes, Subject: "run"},

	{Kind: KindAgentStarted, Role: Opens, Subject: "agent", traits: ofLifecycle | stepless},
	{Kind: KindAgentTransition, Role: Point, Subject: "agent", Act: true, traits: ofLifecycle},
	{Kind: KindAgentEnded, Role: Closes, Subject: "agent", traits: ofLifecycle | stepless},
	{Kind: KindAgentErrored, Role: Point, Subject: "agent", Act: true},
	{Kind: KindAgentSessionChanged, Role: Point, Subject: "agent", Act: true},
	{Kind: KindEventRetracted, Role: Point, Subject: "event"},
	{Kind: KindContextCompacted, Role: Point, Subject: "agent", Act: true},
	{Kind: KindTaskAssigned, Role: Point, Subject: "task"},

	{Kind: KindAgentReasoned, Role: Closes, Subject: "reasoning", Act: true, traits: reasons},
	{Kind: KindAgentReasoningDelta, Role: Delta, Subject: "reasoning", Droppable: true, Act: true, traits: reasons},
	{Kind: KindAgentDecided, Role: Point, Subject: "decision", Act: true, traits: reasons},
	{Kind: KindOrchestratorDecided, Role: Point, Subject: "decision"},
	{Kind: KindIntentClassified, Role: Point, Subject: "intent", Act: true, traits: reasons},
	{Kind: KindPlanProposed, Role: Point, Subject: "plan", Act: true},
	{Kind: KindTextDelta, Role: Delta, Subject: "text", Droppable: true, Act: true},
	{Kind: KindTextCompleted, Role: Closes, Subject: "text", Act: true},
	{Kind: KindMessageCreated, Role: Point, Subject: "message", Act: true},

	{Kind: KindToolCalled, Role: Opens, Subject: "tool_call", Act: true},
	{Kind: KindToolArgumentsDelta, Role: Delta, Subject: "tool_call", Droppable: true, Act: true},
	{Kind: KindToolReturned, Role: Closes, Subject: "tool_call", Act: true},

	{Kind: KindAgentHandoff, Role: Point, Subject: "handoff", Act: true},
	{Kind: KindHandoffRequested, Role: Opens, Subject: "handoff", Act: true},
	{Kind: KindHandoffAccepted, Role: Closes, Subject: "handoff", Act: true},

	{Kind: KindTurnStarted, Role: Opens, Subject: "turn"},
	{Kind: KindTurnEnded, Role: Closes, Subject: "turn"},
	{Kind: KindTurnSummarized, Role: Point, Subject: "turn"},
	{Kind: KindStepStarted, Role: Opens, Subject: "step"},
	{Kind: KindStepEnded, Role: Closes, Subject: "step"},
	{Kind: KindSpanRecorded, Role: Point, Subject: "span"},
	{Kind: KindNodeStarted, Role: Opens, Subject: "node"},
	{Kind: KindNodeCompleted, Role: Closes, Subject: "node"},
	{Kind: KindNodeFailed, Role: Closes, Subject: "node"},
	{Kind: KindNodeSkipped, Role: Point, Subject: "node"},
	{Kind: KindNodeSuspended, Role: Point, Subject: "node"},
	{Kind: KindEdgeFired, Role: Point, Subject: "edge"},
	{Kind: KindEdgeSkipped, Role: Point, Subject: "edge"},
	{Kind: KindLoopIterated, Role: Point, Subject: "loop"},
	{Kind: KindLoopRoundCompleted, Role: Point, Subject: "loop"},
	{Kind: KindStatePatched, Role: Point, Subject: "state"},

	{Kind: KindWorkflowCreated, Role: Opens, Subject: "workflow", traits: ofWorkflow},
	{Kind: KindWorkflowApproved, Role: Point, Subject: "workflow", traits: ofWorkflow},
	{Kind: KindPhaseStarted, Role: Opens, Subject: "phase", traits: ofWorkflow | ofPhase},
	{Kind: KindPhaseCompleted, Role: Closes, Subject: "phase", traits: ofWorkflow | ofPhase},
	{Kind: KindCheckpointSaved, Role: Point, Subject: "checkpoint", traits: ofWorkflow | ofPhase},
	{Kind: KindCheckpointResumed, Role: Point, Subject: "checkpoint", traits: ofWorkflow | ofPhase},
	{Kind: KindWorkflowFinalized, Role: Closes, Subject: "workflow", traits: ofWorkflow},

	{Kind: KindApprovalRequested, Role: Opens, Subject: "approval"},
	{Kind: KindApprovalGranted, Role: Closes, Subject: "approval"},
	{Kind: KindApprovalRejected, Role: Closes, Subject: "approval"},
	{Kind: KindClarificationRequested, Role: Opens, Subject: "clarification"},
	{Kind: KindClarificationResolved, Role: Closes, Subject: "clarification"},
	{Kind: KindCommandReceived, Role: Point, Subject: "command"},
	{Kind: KindCommandConsumed, Role: Point, Subject: "command"},

	{Kind: KindAuditChecked, Role: Point, Subject: "audit", traits: afterEnd | stepless},
	{Kind: KindClaimVerified, Role: Point, Subject: "claim"},
	{Kind: KindIssueFound, Role: Point, Subject: "issue"},
	{Kind: KindCitationFound, Role: Point, Subject: "citation", Act: true},
	{Kind: KindEvidenceInsufficient, Role: Point, Subject: "evidence", Act: true},

	{Kind: KindUsageObserved, Role: Point, Subject: "usage", traits: afterEnd},
	{Kind: KindBudgetExceeded, Role: Point, Subject: "budget"},
	{Kind: KindCapBreached, Role: Point, Subject: "cap"},
	{Kind: KindBlackboardItemCreated, Role: Point, Subject: "blackboard"},
	{Kind: KindMemoryChanged, Role: Point, Subject: "memory"},
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

// New returns an empty payload of kind k: a pointer to the struct of a known
// kind, and an [Unknown] for any other.
func New(k Kind) Payload {
	if p := newPayload(k); p != nil {
		return p
	}
	return &Unknown{Type: k}
}
