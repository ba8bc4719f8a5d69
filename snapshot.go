package agentevents

import "time"

// RunStatus is the state of a run. Without run.* events it is derived: running
// while an agent is open; when every started agent has ended, failed if one
// failed or was aborted, else completed.
type RunStatus string

// The run statuses. Dialects map them to their own.
const (
	RunStatusPending    RunStatus = "pending"    // nothing has happened yet
	RunStatusRunning    RunStatus = "running"    // under way
	RunStatusPaused     RunStatus = "paused"     // run.paused, or a resumable abort
	RunStatusWaiting    RunStatus = "waiting"    // for an approval or a clarification, and no agent works
	RunStatusCompleted  RunStatus = "completed"  // terminal
	RunStatusFailed     RunStatus = "failed"     // terminal
	RunStatusCancelling RunStatus = "cancelling" // an abort was received
	RunStatusCancelled  RunStatus = "cancelled"  // terminal
)

// Terminal reports whether the run is over.
func (s RunStatus) Terminal() bool {
	return s == RunStatusCompleted || s == RunStatusFailed || s == RunStatusCancelled
}

// NodeStatus is the state of a node (resume spec, with suspended from
// OpenWOP). A skipped node is done.
type NodeStatus string

// The node statuses.
const (
	NodeStatusPending   NodeStatus = "pending"
	NodeStatusRunning   NodeStatus = "running"
	NodeStatusDone      NodeStatus = "done"
	NodeStatusFailed    NodeStatus = "failed"
	NodeStatusSuspended NodeStatus = "suspended"
)

// EdgeStatus is the state of an edge (resume spec).
type EdgeStatus string

// The edge statuses.
const (
	EdgeStatusPending EdgeStatus = "pending"
	EdgeStatusFired   EdgeStatus = "fired"
	EdgeStatusSkipped EdgeStatus = "skipped"
)

// RunState is what the rules know of a run. An [Emitter] keeps this much of every
// open run; a [RunSnapshot] shows it.
type RunState struct {
	RunID        string `json:"runId"`                 // the run
	NextSequence uint64 `json:"nextSequence"`          // sequence after the last event
	TerminalKind Kind   `json:"terminalKind,omitzero"` // run.completed, run.failed, run.cancelled; empty while the run goes on
	// Resume is what only going on needs. Its JSON may change between versions.
	Resume runResume `json:"resume"`
}

// A runResume is the part of a run's snapshot that only going on needs.
type runResume struct {
	opened  bool `wire:"opened,omitzero"`  // run.started was seen
	begun   bool `wire:"begun,omitzero"`   // an event other than session.* was seen
	resumes int  `wire:"resumes,omitzero"` // how often run.resumed was seen

	// Of a fold; an emitter leaves them empty.
	lastEdge      string        `wire:"lastEdge,omitzero"`      // the edge fired last
	messageEvents []string      `wire:"messageEvents,omitzero"` // event id of each message
	recent        []fingerprint `wire:"recent,omitzero"`        // the last events, so that a repeated one is told from another with its sequence
	recentDeltas  []fingerprint `wire:"recentDeltas,omitzero"`  // the same of droppable events, while an agent works
}

// A fingerprint tells one event from another.
type fingerprint struct {
	sequence uint64 `wire:"sequence"`
	hash     uint64 `wire:"hash"` // of the event's line
}

// A RunSnapshot is the state of one run after some of its events: what a
// [Fold] makes of a log. It carries the fields of the resume spec's RunSnapshot
// (status, outputs, state, nodeStatus, edgeStatus, loopCounters, inbox,
// agentSessions) and of OpenWOP's, and everything that is needed to go on: a
// fold ([ResumeFold]) and an emitter ([Emitter.Resume]) continue from it, also
// after it was written as JSON and read back.
//
// Write it with AppendJSON or MarshalJSON: json.Marshal escapes characters such
// as < inside raw JSON on the way, which changes its bytes.
//
// A snapshot belongs to its holder; the fold keeps no part of it. Maps and
// lists are nil when they are empty; in JSON they are always there.
type RunSnapshot struct {
	RunState
	SchemaVersion string    `json:"schemaVersion"`          // of this document: the constant SchemaVersion
	SessionID     string    `json:"sessionId,omitzero"`     // its session
	WorkflowID    string    `json:"workflowId,omitzero"`    // its workflow
	Name          string    `json:"name,omitzero"`          // RunStarted.Name
	Status        RunStatus `json:"status"`                 // see RunStatus
	StartedAt     time.Time `json:"startedAt,omitzero"`     // of run.started, else of the first event that is no delta
	CompletedAt   time.Time `json:"completedAt,omitzero"`   // of the terminal event, else of the last agent's end
	CurrentNodeID string    `json:"currentNodeId,omitzero"` // the node started or resumed last, until it ends
	Paused        bool      `json:"paused,omitzero"`        // run.paused, not resumed yet
	Cancelling    bool      `json:"cancelling,omitzero"`    // an abort was received
	CancelReason  string    `json:"cancelReason,omitzero"`  // RunCancelled.Reason
	SessionGoal   string    `json:"sessionGoal,omitzero"`   // SessionStarted.Goal
	SessionStatus string    `json:"sessionStatus,omitzero"` // SessionCompleted.Status
	SessionResult JSON      `json:"sessionResult,omitzero"` // SessionCompleted.Result

	Agent           Opt[AgentRef]  `json:"agent,omitzero"`           // the run's primary agent
	RunOrchestrator JSON           `json:"runOrchestrator,omitzero"` // the supervisor's last decision
	Inputs          JSON           `json:"inputs,omitzero"`          // RunStarted.Inputs
	Result          JSON           `json:"result,omitzero"`          // RunCompleted.Outputs
	Error           Opt[ErrorInfo] `json:"error,omitzero"`           // RunFailed.Error

	Outputs       map[string]JSON       `json:"outputs"`       // by node id
	State         map[string]JSON       `json:"state"`         // user-defined state, by top-level key
	NodeStatus    map[string]NodeStatus `json:"nodeStatus"`    // by node id
	NodeRuns      map[string]int        `json:"nodeRuns"`      // executions under way, by node id
	Suspended     map[string]string     `json:"suspended"`     // why nodes wait, by node id: NodeSuspended.Reason, until they go on or what they asked is answered
	EdgeStatus    map[string]EdgeStatus `json:"edgeStatus"`    // by edge id, or "from->to"
	LoopCounters  map[string]int        `json:"loopCounters"`  // iterations, by edge
	Inbox         []InboxItem           `json:"inbox"`         // commands received and not consumed
	AgentSessions map[string]string     `json:"agentSessions"` // provider session id, by node id, or agent id outside nodes

	Agents            map[string]*AgentSnapshot `json:"agents"`                // by agent id
	OpenCalls         []*ToolCallSnapshot       `json:"openCalls"`             // in call order
	ClosedCalls       []*ToolCallSnapshot       `json:"closedCalls"`           // in order of return; see FoldOptions.KeepCalls
	DroppedCalls      int                       `json:"droppedCalls,omitzero"` // calls that are only in Tools
	Tools             map[string]*ToolStats     `json:"tools"`                 // by tool
	Messages          []ConversationMessage     `json:"messages"`              // in order, each messageId once
	Turns             []TurnSnapshot            `json:"turns"`                 // in order
	Steps             []StepSnapshot            `json:"steps"`                 // in order
	Workflow          Opt[WorkflowSnapshot]     `json:"workflow,omitzero"`     // the workflow; absent without workflow events
	Phases            []PhaseSnapshot           `json:"phases"`                // in order
	Checkpoints       []CheckpointSnapshot      `json:"checkpoints"`           // in order
	Approvals         []ApprovalSnapshot        `json:"approvals"`             // in order
	Clarifications    []ClarificationSnapshot   `json:"clarifications"`        // in order
	Handoffs          []HandoffSnapshot         `json:"handoffs"`              // in order
	Tasks             []TaskSnapshot            `json:"tasks"`                 // in order
	Audits            []AuditSnapshot           `json:"audits"`                // in order
	Claims            []ClaimSnapshot           `json:"claims"`                // in order
	Issues            []IssueSnapshot           `json:"issues"`                // in order
	Citations         int                       `json:"citations"`             // how many
	Budgets           []BudgetSnapshot          `json:"budgets"`               // budgets exceeded and caps breached, in order
	Blackboard        map[string]BlackboardItem `json:"blackboard"`            // by item id
	Usage             RunUsage                  `json:"usage"`                 // of the whole run, counted once
	Violations        []*RuleError              `json:"violations"`            // the first ones, in order
	ViolationCount    int                       `json:"violationCount"`        // all of them
	Unknown           map[string]int            `json:"unknown"`               // events of unknown kinds, by kind
	Retracted         []string                  `json:"retracted"`             // event ids
	RetractedMessages []ConversationMessage     `json:"retractedMessages"`     // messages of those events
}

// InboxItem is a command that waits.
type InboxItem struct {
	EventID string  `json:"eventId"` // of the CommandReceived
	Command Command `json:"command"` // the command as received
}

// AgentState is what the rules know of one agent of a run. An [Emitter] keeps this
// much of every agent; an [AgentSnapshot] shows it.
type AgentState struct {
	AgentID       string      `json:"agentId"`                // the agent
	Status        AgentStatus `json:"status"`                 // the latest
	Step          Opt[int]    `json:"step,omitzero"`          // the highest
	Attempts      int         `json:"attempts"`               // number of the current attempt
	Started       bool        `json:"started,omitzero"`       // agent.started was seen
	Open          bool        `json:"open,omitzero"`          // started and not ended
	Ended         bool        `json:"ended,omitzero"`         // the latest of start and end is an end
	SharesByGroup bool        `json:"sharesByGroup,omitzero"` // its messages carry a group id
	Counted       Totals      `json:"counted"`                // events counted in the current attempt
	// Resume is what only going on needs. Its JSON may change between versions.
	Resume agentResume `json:"resume"`

	shown *AgentSnapshot // what it is part of; nil in an emitter
}

// An agentResume is the part of an agent's snapshot that only going on needs.
type agentResume struct {
	order   int      `wire:"order"`            // agents are counted as they appear, from 0; -1 while there are only deltas of it
	back    Opt[int] `wire:"back,omitzero"`    // the step it went back to, while that is not the highest
	ahead   Opt[int] `wire:"ahead,omitzero"`   // the step of its deltas since, where that is another
	first   int      `wire:"first,omitzero"`   // first step of the current attempt
	renew   bool     `wire:"renew,omitzero"`   // the next step that the emitter stamps is a new one
	resumes int      `wire:"resumes,omitzero"` // how often the run had been resumed when it started
	blocks  []block  `wire:"blocks,omitzero"`  // blocks in the making

	// Of a fold; an emitter leaves them empty.
	textOpen      bool `wire:"textOpen,omitzero"`      // AgentSnapshot.Text is still being written
	reasoningOpen bool `wire:"reasoningOpen,omitzero"` // AgentSnapshot.Reasoning is still being written
}

// A block is a block of text, reasoning or arguments in the making.
type block struct {
	subject string `wire:"subject"`        // the catalog's subject: text, reasoning, tool_call
	id      string `wire:"id,omitzero"`    // block or call id
	next    int    `wire:"next"`           // index of the next numbered delta
	size    int    `wire:"size"`           // characters so far
	whole   bool   `wire:"whole,omitzero"` // the whole block was seen: later deltas say nothing new
	text    []byte `wire:"text,omitzero"`  // so far; empty for arguments, and in an emitter
}

// AgentSnapshot is the state of one agent of a run.
type AgentSnapshot struct {
	AgentState
	Ref               Opt[AgentRef]      `json:"ref,omitzero"`               // AgentStarted.Agent
	ParentAgentID     string             `json:"parentAgentId,omitzero"`     // who spawned it
	ParentCallID      string             `json:"parentCallId,omitzero"`      // by which call
	NodeID            string             `json:"nodeId,omitzero"`            // where it started
	Phase             string             `json:"phase,omitzero"`             // where it started
	Task              string             `json:"task,omitzero"`              // AgentStarted.Task, or TaskAssigned.Goal
	Model             string             `json:"model,omitzero"`             // AgentStarted.Model
	ProviderSessionID string             `json:"providerSessionId,omitzero"` // the latest
	Sequence          uint64             `json:"sequence,omitzero"`          // of its first start
	StartedAt         time.Time          `json:"startedAt,omitzero"`         // of the current attempt
	EndedAt           time.Time          `json:"endedAt,omitzero"`           // of the latest end
	Duration          Opt[time.Duration] `json:"durationMs,omitzero"`        // as stated by the end, else EndedAt - StartedAt
	Transitions       int                `json:"transitions"`                // all attempts
	ToolCalls         int                `json:"toolCalls"`                  // all attempts
	ToolFailures      int                `json:"toolFailures"`               // returns that were not ok, all attempts
	Errors            int                `json:"errors,omitzero"`            // agent.error of severity error
	LastError         Opt[ErrorInfo]     `json:"lastError,omitzero"`         // the latest of them
	Outcome           AgentOutcome       `json:"outcome,omitzero"`           // of the latest end
	Error             Opt[ErrorInfo]     `json:"error,omitzero"`             // of the latest end
	Result            string             `json:"result,omitzero"`            // of the latest end
	StructuredOutput  JSON               `json:"structuredOutput,omitzero"`  // of the latest end
	Totals            Opt[Totals]        `json:"totals,omitzero"`            // as stated by the latest end
	NumTurns          Opt[int]           `json:"numTurns,omitzero"`          // as stated by the latest end
	ConvergenceScore  Opt[float64]       `json:"convergenceScore,omitzero"`  // as stated by the latest end
	Text              string             `json:"text,omitzero"`              // its latest text block, whole or as far as it came
	Reasoning         string             `json:"reasoning,omitzero"`         // its latest reasoning block, likewise
	Usage             AgentUsage         `json:"usage"`                      // see RunUsage

	text, reasoning []byte // the latest whole blocks, in a fold; Text and Reasoning are made of them
}

// ToolCallSnapshot is one tool call.
type ToolCallSnapshot struct {
	Sequence  uint64             `json:"sequence"`            // of the event that opened it
	AgentID   string             `json:"agentId,omitzero"`    // the agent; empty outside any
	CallID    string             `json:"callId"`              // the call id
	ToolID    string             `json:"toolId"`              // the tool
	EventID   string             `json:"eventId,omitzero"`    // of the call, or of the return with oneEvent
	Step      Opt[int]           `json:"step,omitzero"`       // the step it was made in
	Attempt   Opt[int]           `json:"attempt,omitzero"`    // which attempt, from 1
	RetryOf   string             `json:"retryOf,omitzero"`    // call id of the attempt before
	StartedAt time.Time          `json:"startedAt,omitzero"`  // with oneEvent: time less duration; zero when it was refused before any call
	Status    ToolStatus         `json:"status,omitzero"`     // empty while open
	Duration  Opt[time.Duration] `json:"durationMs,omitzero"` // as stated, else measured between the events
	Error     string             `json:"error,omitzero"`      // message
}

// ToolStats counts the calls of one tool.
type ToolStats struct {
	Calls    int           `json:"calls"`            // calls made, open ones included
	OK       int           `json:"ok"`               // returned ok
	Failed   int           `json:"failed"`           // returned anything else
	Refused  int           `json:"refused,omitzero"` // refused before any call
	Duration time.Duration `json:"durationMs"`       // of the returned ones, added up
}

// TurnSnapshot is one turn.
type TurnSnapshot struct {
	Turn      Opt[int]           `json:"turn,omitzero"`       // turn number
	Name      string             `json:"name,omitzero"`       // name of the span
	AgentID   string             `json:"agentId,omitzero"`    // the agent; empty outside any
	StartedAt time.Time          `json:"startedAt,omitzero"`  // time of the event that opened it
	EndedAt   time.Time          `json:"endedAt,omitzero"`    // time of the event that closed it; zero while open
	Duration  Opt[time.Duration] `json:"durationMs,omitzero"` // as stated, else measured between the events
	Error     Opt[ErrorInfo]     `json:"error,omitzero"`      // set when it failed
	Text      string             `json:"text,omitzero"`       // TurnSummarized.Text
	Intent    string             `json:"intent,omitzero"`     // TurnSummarized.Intent
}

// StepSnapshot is one step of a plan.
type StepSnapshot struct {
	StepID      string             `json:"stepId"`               // id of the step
	Name        string             `json:"name,omitzero"`        // name of the span
	Description string             `json:"description,omitzero"` // what was to be done
	AgentID     string             `json:"agentId,omitzero"`     // the agent; empty outside any
	StartedAt   time.Time          `json:"startedAt,omitzero"`   // time of the event that opened it
	EndedAt     time.Time          `json:"endedAt,omitzero"`     // time of the event that closed it; zero while open
	Duration    Opt[time.Duration] `json:"durationMs,omitzero"`  // as stated, else measured between the events
	Error       Opt[ErrorInfo]     `json:"error,omitzero"`       // set when it failed
}

// WorkflowSnapshot is the run's workflow.
type WorkflowSnapshot struct {
	WorkflowID      string             `json:"workflowId"`               // the workflow
	Phases          []string           `json:"phases"`                   // as planned
	EstimatedTokens Opt[int64]         `json:"estimatedTokens,omitzero"` // before it ran
	ApprovedBy      string             `json:"approvedBy,omitzero"`      // who agreed to run it
	ApprovedAt      time.Time          `json:"approvedAt,omitzero"`      // when
	Finalized       bool               `json:"finalized,omitzero"`       // workflow.finalized was seen
	TotalTokens     Opt[int64]         `json:"totalTokens,omitzero"`     // as stated at the end
	TotalAgents     Opt[int]           `json:"totalAgents,omitzero"`     // as stated at the end
	Duration        Opt[time.Duration] `json:"durationMs,omitzero"`      // as stated, else measured between the events
}

// PhaseSnapshot is one passage through a phase of a workflow.
type PhaseSnapshot struct {
	Sequence    uint64     `json:"sequence"`             // of the event that opened it
	WorkflowID  string     `json:"workflowId"`           // the workflow
	Phase       string     `json:"phase"`                // name of the phase
	Open        bool       `json:"open,omitzero"`        // not closed yet
	StartedAt   time.Time  `json:"startedAt,omitzero"`   // time of the event that opened it
	EndedAt     time.Time  `json:"endedAt,omitzero"`     // time of the event that closed it; zero while open
	InputCount  Opt[int]   `json:"inputCount,omitzero"`  // items that went in
	OutputCount Opt[int]   `json:"outputCount,omitzero"` // items that came out
	Tokens      Opt[int64] `json:"tokens,omitzero"`      // as stated; a cross-check
}

// CheckpointSnapshot is a checkpoint saved or resumed from.
type CheckpointSnapshot struct {
	Sequence   uint64     `json:"sequence"`            // of the event that opened it
	WorkflowID string     `json:"workflowId,omitzero"` // the workflow
	Phase      string     `json:"phase,omitzero"`      // name of the phase
	At         time.Time  `json:"at,omitzero"`         // when
	StateBytes Opt[int64] `json:"stateBytes,omitzero"` // saved
	Resumed    bool       `json:"resumed,omitzero"`    // resumed from
}

// ApprovalSnapshot is a question to a person and the answer.
type ApprovalSnapshot struct {
	Sequence    uint64    `json:"sequence"`             // of the event that opened it
	ApprovalID  string    `json:"approvalId"`           // id of the request
	Action      string    `json:"action,omitzero"`      // what would be done
	CallID      string    `json:"callId,omitzero"`      // the call id
	AgentID     string    `json:"agentId,omitzero"`     // the agent; empty outside any
	RequestedAt time.Time `json:"requestedAt,omitzero"` // when it was asked
	AnsweredAt  time.Time `json:"answeredAt,omitzero"`  // when it was answered; zero while open
	Open        bool      `json:"open,omitzero"`        // not closed yet
	Granted     bool      `json:"granted,omitzero"`     // the answer, once there is one
	By          string    `json:"by,omitzero"`          // who answered
	Feedback    string    `json:"feedback,omitzero"`    // what they said
}

// ClarificationSnapshot is a set of questions and the answers.
type ClarificationSnapshot struct {
	Sequence    uint64     `json:"sequence"`             // of the event that opened it
	InterruptID string     `json:"interruptId"`          // id of the request
	AgentID     string     `json:"agentId,omitzero"`     // the agent; empty outside any
	Questions   []Question `json:"questions"`            // as asked
	RequestedAt time.Time  `json:"requestedAt,omitzero"` // when it was asked
	AnsweredAt  time.Time  `json:"answeredAt,omitzero"`  // when it was answered; zero while open
	Open        bool       `json:"open,omitzero"`        // not closed yet
	Answers     JSON       `json:"answers,omitzero"`     // by question id
	AnsweredBy  string     `json:"answeredBy,omitzero"`  // who answered
}

// HandoffSnapshot is a handoff.
type HandoffSnapshot struct {
	Sequence  uint64 `json:"sequence"`           // of the event that opened it
	HandoffID string `json:"handoffId,omitzero"` // id of the request; empty for an agent.handoff
	From      string `json:"from"`               // agent id
	To        string `json:"to"`                 // agent id
	Reason    string `json:"reason,omitzero"`    // why
	Open      bool   `json:"open,omitzero"`      // requested and not accepted
}

// TaskSnapshot is an assigned task.
type TaskSnapshot struct {
	Sequence uint64 `json:"sequence"`         // of the event that opened it
	TaskID   string `json:"taskId,omitzero"`  // the task
	AgentID  string `json:"agentId,omitzero"` // the agent; empty outside any
	Goal     string `json:"goal"`             // what is to be reached
}

// AuditSnapshot is one audit.
type AuditSnapshot struct {
	Sequence     uint64        `json:"sequence"`         // of the event that opened it
	AgentID      string        `json:"agentId,omitzero"` // empty: of the run
	CheckpointID string        `json:"checkpointId"`     // the checkpoint
	Result       AuditResult   `json:"result"`           // the verdict
	Duration     time.Duration `json:"durationMs"`       // as stated, else measured between the events
}

// ClaimSnapshot is a verdict on a finding.
type ClaimSnapshot struct {
	Sequence        uint64 `json:"sequence"`        // of the event that opened it
	FindingID       string `json:"findingId"`       // the finding
	VerifierAgentID string `json:"verifierAgentId"` // who checked it
	Verdict         string `json:"verdict"`         // the verdict
}

// IssueSnapshot is an issue that a verifier found.
type IssueSnapshot struct {
	Sequence uint64 `json:"sequence"`          // of the event that opened it
	AgentID  string `json:"agentId,omitzero"`  // the agent; empty outside any
	Issue    string `json:"issue"`             // what is wrong
	Severity string `json:"severity,omitzero"` // the verifier's own scale
}

// BudgetSnapshot is a budget that ran out or a cap that was reached.
type BudgetSnapshot struct {
	Sequence uint64       `json:"sequence"`        // of the event that opened it
	Budget   string       `json:"budget"`          // which budget, or which cap
	Cap      bool         `json:"cap,omitzero"`    // a cap.breached
	Limit    Opt[float64] `json:"limit,omitzero"`  // in its own unit
	Actual   Opt[float64] `json:"actual,omitzero"` // in its own unit
}

// BlackboardItem is an item of shared state.
type BlackboardItem struct {
	ItemType    string       `json:"itemType"`             // fact, hypothesis, artifact, decision, task; open
	Content     JSON         `json:"content"`              // the item
	SourceAgent string       `json:"sourceAgent,omitzero"` // who wrote it
	Confidence  Opt[float64] `json:"confidence,omitzero"`  // in [0, 1]
}

// RunUsage is what a run used, counted once: the sum over its agents. An
// agent counts with the modelUsage of its end, else the usage of its end, else
// the sum of its usage.observed, where a cumulative report replaces the sum so
// far. modelUsage includes sub-agents, so an agent below one that has it does
// not count again. Totals in summaries, phases and finals are not added.
type RunUsage struct {
	Usage   Usage            `json:"usage"`            // tokens
	CostUSD Opt[float64]     `json:"costUsd,omitzero"` // US dollars
	Models  map[string]Usage `json:"models"`           // where models are known
	// Unassigned is what was reported outside any agent.
	Unassigned AgentUsage `json:"unassigned"`
}

// AgentUsage is what an agent reported, by the three ways it can be counted.
type AgentUsage struct {
	Models       map[string]Usage `json:"models"`                // AgentEnded.ModelUsage
	Ended        Opt[Usage]       `json:"ended,omitzero"`        // AgentEnded.Usage
	Observed     Opt[Usage]       `json:"observed,omitzero"`     // from usage.observed
	CostUSD      Opt[float64]     `json:"costUsd,omitzero"`      // AgentEnded.TotalCostUSD
	ObservedCost Opt[float64]     `json:"observedCost,omitzero"` // from usage.observed
}
