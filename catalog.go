package agentevents

import "iter"

//go:generate go run ./internal/gen

// The kinds, in the order of a run's life. KindX is the kind of the payload struct X, whose comment
// has its meaning.
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

	KindModelCalled   Kind = "model.called"
	KindModelReturned Kind = "model.returned"

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

// A Role is the effect of a kind on its subject.
type Role uint8

// The roles.
const (
	RolePoint  Role = iota // reports on its subject; neither opens nor closes it
	RoleOpens              // opens its subject
	RoleDelta              // adds a piece to its subject before the closing event
	RoleCloses             // closes its subject
)

// String returns "point", "opens", "delta" or "closes".
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

// KindInfo is the catalog's row of a kind. It tells readers the meaning of the kind without its
// struct.
type KindInfo struct {
	Kind Kind // the kind
	Role Role // the kind's effect on its subject
	// Subject is the thing that the kind opens, feeds, closes or reports on: run, agent, tool_call,
	// text, …
	Subject string
	// Droppable means that a log of a finished run may omit events of the kind: the snapshot stays
	// the same as long as the log has the closing event of their block.
	Droppable bool
	// ByAgent means that the agent itself acts. Such an event is refused once the agent is at a
	// terminal status (rule agent-ended-final).
	ByAgent bool

	traits traits
	does   *behaviour // nil: the kind has no rules of its own and changes nothing
}

// A behaviour has the functions of a kind; a nil function does nothing. An
// emitter calls check and apply, a fold calls all three, in this order.
//
// Switches that are generated from the catalog call them: a call through a
// function value would move each event to the heap.
type behaviour struct {
	check func(*machine, *Event, *subject) *RuleError // returns the rule that the event breaks; see rules*.go
	apply func(*machine, *Event, *subject)            // updates the machine; see rules*.go
	show  func(*view, *Event, *subject)               // updates the snapshot; see fold_*.go
}

// traits are the properties of a kind that the rules look at.
type traits uint16

const (
	ofSession   traits = 1 << iota // belongs to the session: may precede run.started
	afterEnd                       // may follow the run's terminal event
	ofLifecycle                    // moves an agent through its life; requires an agent
	stepless                       // has no step
	ofWorkflow                     // carries workflowId
	ofPhase                        // carries phase as well
	reasons                        // carries reasoning, which the policy limits
	endsBlocks                     // may end blocks of deltas; see endsBlock
	binds                          // has a rule in rules_emit.go, besides the rule for acts
)

// catalog has one row per kind. The row has the kind's meaning and names its functions. The code
// that appends, parses, checks and redacts a kind is generated from its struct. To add a kind, add
// a constant, a row and a struct, and run go generate.
var catalog = [...]KindInfo{
	{Kind: KindSessionStarted, Role: RoleOpens, Subject: "session", traits: ofSession | afterEnd, does: &behaviour{apply: (*machine).sessionStarted, show: (*view).sessionStarted}},
	{Kind: KindSessionCompleted, Role: RoleCloses, Subject: "session", traits: ofSession | afterEnd, does: &behaviour{apply: (*machine).sessionCompleted, show: (*view).sessionCompleted}},
	{Kind: KindRunStarted, Role: RoleOpens, Subject: "run", does: &behaviour{check: (*machine).checkRunStarted, apply: (*machine).runStarted, show: (*view).runStarted}},
	{Kind: KindRunPaused, Role: RolePoint, Subject: "run", does: &behaviour{apply: (*machine).runPaused}},
	{Kind: KindRunResumed, Role: RolePoint, Subject: "run", traits: binds, does: &behaviour{apply: (*machine).runResumed, show: (*view).runResumed}},
	{Kind: KindRunCompleted, Role: RoleCloses, Subject: "run", traits: endsBlocks, does: &behaviour{apply: (*machine).runEnded, show: (*view).runCompleted}},
	{Kind: KindRunFailed, Role: RoleCloses, Subject: "run", traits: endsBlocks, does: &behaviour{apply: (*machine).runEnded, show: (*view).runFailed}},
	{Kind: KindRunCancelled, Role: RoleCloses, Subject: "run", traits: endsBlocks, does: &behaviour{apply: (*machine).runEnded, show: (*view).runCancelled}},

	{Kind: KindAgentStarted, Role: RoleOpens, Subject: "agent", traits: ofLifecycle | stepless | endsBlocks, does: &behaviour{check: (*machine).checkAgentStarted, apply: (*machine).agentStarted, show: (*view).agentStarted}},
	{Kind: KindAgentTransition, Role: RolePoint, Subject: "agent", ByAgent: true, traits: ofLifecycle | endsBlocks, does: &behaviour{check: (*machine).checkAgentTransition, apply: (*machine).agentTransition, show: (*view).agentTransition}},
	{Kind: KindAgentEnded, Role: RoleCloses, Subject: "agent", traits: binds | ofLifecycle | stepless | endsBlocks, does: &behaviour{check: (*machine).checkAgentEnded, apply: (*machine).agentEnded, show: (*view).agentEnded}},
	{Kind: KindAgentErrored, Role: RolePoint, Subject: "agent", ByAgent: true, does: &behaviour{show: (*view).agentErrored}},
	{Kind: KindAgentSessionChanged, Role: RolePoint, Subject: "agent", ByAgent: true, does: &behaviour{show: (*view).agentSessionChanged}},
	{Kind: KindEventRetracted, Role: RolePoint, Subject: "event", does: &behaviour{show: (*view).eventRetracted}},
	{Kind: KindContextCompacted, Role: RolePoint, Subject: "agent", ByAgent: true},
	{Kind: KindTaskAssigned, Role: RolePoint, Subject: "task", does: &behaviour{show: (*view).taskAssigned}},

	{Kind: KindAgentReasoned, Role: RoleCloses, Subject: "reasoning", ByAgent: true, traits: reasons | endsBlocks, does: &behaviour{apply: (*machine).wholeBlock, show: (*view).agentReasoned}},
	{Kind: KindAgentReasoningDelta, Role: RoleDelta, Subject: "reasoning", Droppable: true, ByAgent: true, traits: reasons | endsBlocks, does: &behaviour{check: (*machine).checkDelta, apply: (*machine).delta}},
	{Kind: KindAgentDecided, Role: RolePoint, Subject: "decision", ByAgent: true, traits: reasons, does: &behaviour{show: (*view).agentDecided}},
	{Kind: KindOrchestratorDecided, Role: RolePoint, Subject: "decision", does: &behaviour{show: (*view).orchestratorDecided}},
	{Kind: KindIntentClassified, Role: RolePoint, Subject: "intent", ByAgent: true, traits: reasons, does: &behaviour{show: (*view).intentClassified}},
	{Kind: KindPlanProposed, Role: RolePoint, Subject: "plan", ByAgent: true, does: &behaviour{show: (*view).planProposed}},
	{Kind: KindTextDelta, Role: RoleDelta, Subject: "text", Droppable: true, ByAgent: true, traits: endsBlocks, does: &behaviour{check: (*machine).checkDelta, apply: (*machine).delta}},
	{Kind: KindTextCompleted, Role: RoleCloses, Subject: "text", ByAgent: true, traits: endsBlocks, does: &behaviour{apply: (*machine).wholeBlock, show: (*view).textCompleted}},
	{Kind: KindMessageCreated, Role: RolePoint, Subject: "message", ByAgent: true, does: &behaviour{check: (*machine).checkMessageCreated, apply: (*machine).messageCreated}},

	{Kind: KindModelCalled, Role: RoleOpens, Subject: "model_call", ByAgent: true, traits: endsBlocks, does: &behaviour{check: (*machine).checkModelCalled, apply: (*machine).modelCalled}},
	{Kind: KindModelReturned, Role: RoleCloses, Subject: "model_call", ByAgent: true, does: &behaviour{check: (*machine).checkModelReturned, apply: (*machine).modelReturned}},

	{Kind: KindToolCalled, Role: RoleOpens, Subject: "tool_call", ByAgent: true, traits: binds | endsBlocks, does: &behaviour{check: (*machine).checkToolCalled, apply: (*machine).toolCalled}},
	{Kind: KindToolArgumentsDelta, Role: RoleDelta, Subject: "tool_call", Droppable: true, ByAgent: true, traits: endsBlocks, does: &behaviour{check: (*machine).checkDelta, apply: (*machine).delta}},
	{Kind: KindToolReturned, Role: RoleCloses, Subject: "tool_call", ByAgent: true, traits: binds | endsBlocks, does: &behaviour{check: (*machine).checkToolReturned, apply: (*machine).toolReturned}},

	{Kind: KindAgentHandoff, Role: RolePoint, Subject: "handoff", ByAgent: true, does: &behaviour{apply: (*machine).nameAgents, show: (*view).agentHandoff}},
	{Kind: KindHandoffRequested, Role: RoleOpens, Subject: "handoff", ByAgent: true, does: &behaviour{apply: (*machine).handoffRequested}},
	{Kind: KindHandoffAccepted, Role: RoleCloses, Subject: "handoff", ByAgent: true, does: &behaviour{check: (*machine).checkHandoffAccepted, apply: (*machine).handoffAccepted}},

	{Kind: KindTurnStarted, Role: RoleOpens, Subject: "turn", traits: endsBlocks, does: &behaviour{apply: (*machine).turnStarted}},
	{Kind: KindTurnEnded, Role: RoleCloses, Subject: "turn", traits: binds | endsBlocks, does: &behaviour{apply: (*machine).turnEnded, show: (*view).turnEnded}},
	{Kind: KindTurnSummarized, Role: RolePoint, Subject: "turn", does: &behaviour{show: (*view).turnSummarized}},
	{Kind: KindStepStarted, Role: RoleOpens, Subject: "step", does: &behaviour{apply: (*machine).stepStarted}},
	{Kind: KindStepEnded, Role: RoleCloses, Subject: "step", traits: binds, does: &behaviour{apply: (*machine).stepEnded, show: (*view).stepEnded}},
	{Kind: KindSpanRecorded, Role: RolePoint, Subject: "span", does: &behaviour{show: (*view).spanRecorded}},
	{Kind: KindNodeStarted, Role: RoleOpens, Subject: "node", does: &behaviour{apply: (*machine).nameAgents, show: (*view).nodeStarted}},
	{Kind: KindNodeCompleted, Role: RoleCloses, Subject: "node", traits: endsBlocks, does: &behaviour{apply: (*machine).nodeEnded, show: (*view).nodeCompleted}},
	{Kind: KindNodeFailed, Role: RoleCloses, Subject: "node", traits: endsBlocks, does: &behaviour{apply: (*machine).nodeEnded, show: (*view).nodeFailed}},
	{Kind: KindNodeSkipped, Role: RolePoint, Subject: "node", does: &behaviour{show: (*view).nodeSkipped}},
	{Kind: KindNodeSuspended, Role: RolePoint, Subject: "node", does: &behaviour{show: (*view).nodeSuspended}},
	{Kind: KindEdgeFired, Role: RolePoint, Subject: "edge", does: &behaviour{show: (*view).edgeFired}},
	{Kind: KindEdgeSkipped, Role: RolePoint, Subject: "edge", does: &behaviour{show: (*view).edgeSkipped}},
	{Kind: KindLoopIterated, Role: RolePoint, Subject: "loop", does: &behaviour{show: (*view).loopIterated}},
	{Kind: KindLoopRoundCompleted, Role: RolePoint, Subject: "loop"},
	{Kind: KindStatePatched, Role: RolePoint, Subject: "state", does: &behaviour{show: (*view).statePatched}},

	{Kind: KindWorkflowCreated, Role: RoleOpens, Subject: "workflow", traits: ofWorkflow, does: &behaviour{apply: (*machine).workflowCreated, show: (*view).workflowCreated}},
	{Kind: KindWorkflowApproved, Role: RolePoint, Subject: "workflow", traits: ofWorkflow, does: &behaviour{show: (*view).workflowApproved}},
	{Kind: KindPhaseStarted, Role: RoleOpens, Subject: "phase", traits: ofWorkflow | ofPhase, does: &behaviour{apply: (*machine).phaseStarted}},
	{Kind: KindPhaseCompleted, Role: RoleCloses, Subject: "phase", traits: ofWorkflow | ofPhase, does: &behaviour{check: (*machine).checkPhaseCompleted, apply: (*machine).phaseCompleted}},
	{Kind: KindCheckpointSaved, Role: RolePoint, Subject: "checkpoint", traits: ofWorkflow | ofPhase, does: &behaviour{show: (*view).checkpointSaved}},
	{Kind: KindCheckpointResumed, Role: RolePoint, Subject: "checkpoint", traits: ofWorkflow | ofPhase, does: &behaviour{apply: (*machine).checkpointResumed, show: (*view).checkpointResumed}},
	{Kind: KindWorkflowFinalized, Role: RoleCloses, Subject: "workflow", traits: ofWorkflow, does: &behaviour{apply: (*machine).workflowFinalized, show: (*view).workflowFinalized}},

	{Kind: KindApprovalRequested, Role: RoleOpens, Subject: "approval", does: &behaviour{apply: (*machine).approvalRequested}},
	{Kind: KindApprovalGranted, Role: RoleCloses, Subject: "approval", does: &behaviour{check: (*machine).checkApprovalAnswered, apply: (*machine).approvalAnswered}},
	{Kind: KindApprovalRejected, Role: RoleCloses, Subject: "approval", does: &behaviour{check: (*machine).checkApprovalAnswered, apply: (*machine).approvalAnswered}},
	{Kind: KindClarificationRequested, Role: RoleOpens, Subject: "clarification", does: &behaviour{apply: (*machine).clarificationRequested}},
	{Kind: KindClarificationResolved, Role: RoleCloses, Subject: "clarification", traits: binds, does: &behaviour{apply: (*machine).clarificationResolved}},
	{Kind: KindCommandReceived, Role: RolePoint, Subject: "command", does: &behaviour{apply: (*machine).commandReceived, show: (*view).commandReceived}},
	{Kind: KindCommandConsumed, Role: RolePoint, Subject: "command", does: &behaviour{show: (*view).commandConsumed}},

	{Kind: KindAuditChecked, Role: RolePoint, Subject: "audit", traits: afterEnd | stepless, does: &behaviour{apply: (*machine).auditChecked, show: (*view).auditChecked}},
	{Kind: KindClaimVerified, Role: RolePoint, Subject: "claim", does: &behaviour{show: (*view).claimVerified}},
	{Kind: KindIssueFound, Role: RolePoint, Subject: "issue", does: &behaviour{show: (*view).issueFound}},
	{Kind: KindCitationFound, Role: RolePoint, Subject: "citation", ByAgent: true, does: &behaviour{show: (*view).citationFound}},
	{Kind: KindEvidenceInsufficient, Role: RolePoint, Subject: "evidence", ByAgent: true, does: &behaviour{show: (*view).evidenceInsufficient}},

	{Kind: KindUsageObserved, Role: RolePoint, Subject: "usage", traits: afterEnd, does: &behaviour{show: (*view).usageObserved}},
	{Kind: KindBudgetExceeded, Role: RolePoint, Subject: "budget", does: &behaviour{show: (*view).budgetExceeded}},
	{Kind: KindCapBreached, Role: RolePoint, Subject: "cap", does: &behaviour{show: (*view).capBreached}},
	{Kind: KindBlackboardItemCreated, Role: RolePoint, Subject: "blackboard", does: &behaviour{show: (*view).blackboardItemCreated}},
	{Kind: KindMemoryChanged, Role: RolePoint, Subject: "memory", does: &behaviour{show: (*view).memoryChanged}},
}

// Kinds yields the rows of the catalog in the order of a run's life. [Unknown]
// has no row.
func Kinds() iter.Seq[KindInfo] {
	return func(yield func(KindInfo) bool) {
		for _, info := range catalog {
			if !yield(info) {
				return
			}
		}
	}
}

// Info returns the catalog's row of k. For an unknown kind it returns a row with
// nothing but the kind, and false.
func (k Kind) Info() (KindInfo, bool) {
	i := kindIndex(k)
	if i < 0 {
		return KindInfo{Kind: k}, false
	}
	return catalog[i], true
}

// NewPayload returns an empty payload of kind k: a pointer to the struct of a
// known kind, or to an [Unknown].
func NewPayload(k Kind) Payload {
	if p := emptyPayload(k); p != nil {
		return p
	}
	return &Unknown{Type: k}
}
