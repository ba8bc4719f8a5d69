package agentevents

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// RunStatus is the state of a run. The events run.* decide it. A run that has no
// run.started follows its agents: it is running while an agent is open. When all
// started agents have ended it is failed if one of them failed or was aborted,
// else completed. An agent that ends, or moves to another status, has started, whether or not
// the log has its start. A run with turns of agents that have not started follows those
// turns and not the agents that work for them: the end of the last open one ends it, failed if
// the latest turn of one of their agents failed, else completed. A run that begins with
// workflow.created follows its workflows in the same way: when each that was created is
// finalized it is completed, whatever is open; failed or cancelled if one of them ended with such a
// word, as in an unknown workflow.failed.
//
// The end of the session ends such a run too, whatever is open. Neither end holds when the session,
// a turn or an agent starts. The run is cancelled if it was cancelling; else completed, failed or
// cancelled as the word in SessionCompleted.Status means, such as "success", "timeout" or
// "aborted"; ended with any other word, and without one as its workflows, its turns and its agents
// say. A turn or an agent that was cancelled, by the code of its error or by its own word, makes
// the run cancelled in the same way as a failed one makes it failed. If a [FoldSet] has the event
// of another run that ends the session, that event ends this run too, unless another event does.
type RunStatus string

// The run statuses. Dialects map them to their own.
const (
	// There are no events but session events, and none has a status, a result or an error of the session.
	RunStatusPending RunStatus = "pending"

	RunStatusRunning    RunStatus = "running"    // the run is under way
	RunStatusPaused     RunStatus = "paused"     // run.paused or a resumable abort was seen, and no run.resumed since
	RunStatusWaiting    RunStatus = "waiting"    // an approval or a clarification is open, and no agent works
	RunStatusCompleted  RunStatus = "completed"  // the run has succeeded; terminal
	RunStatusFailed     RunStatus = "failed"     // the run has failed; terminal
	RunStatusCancelling RunStatus = "cancelling" // an abort was received; the run has not ended yet
	RunStatusCancelled  RunStatus = "cancelled"  // the run was stopped; terminal
	// RunStatusEnded is the status of a run that is over, with a word that means neither success
	// nor failure, such as "partial": see RunSnapshot.SessionStatus; terminal.
	RunStatusEnded RunStatus = "ended"
)

// Terminal reports whether s is [RunStatusCompleted], [RunStatusFailed],
// [RunStatusCancelled] or [RunStatusEnded].
func (s RunStatus) Terminal() bool {
	return s == RunStatusCompleted || s == RunStatusFailed || s == RunStatusCancelled || s == RunStatusEnded
}

// NodeStatus is the state of a node (resume spec; suspended is OpenWOP's).
type NodeStatus string

// The node statuses.
const (
	NodeStatusPending   NodeStatus = "pending"   // the node does not run yet, or will run again
	NodeStatusRunning   NodeStatus = "running"   // an execution of the node is open
	NodeStatusDone      NodeStatus = "done"      // the node has completed, is skipped or was cancelled
	NodeStatusFailed    NodeStatus = "failed"    // the node has failed
	NodeStatusSuspended NodeStatus = "suspended" // the node waits for something outside the run
)

// EdgeStatus is the state of an edge (resume spec).
type EdgeStatus string

// The edge statuses.
const (
	EdgeStatusPending EdgeStatus = "pending" // the flow has not reached the edge
	EdgeStatusFired   EdgeStatus = "fired"   // the flow has taken the edge
	EdgeStatusSkipped EdgeStatus = "skipped" // the flow has not taken the edge
)

// RunState is the state of a run that the rules need. An [Emitter] keeps it for
// every open run, and a [RunSnapshot] has it.
type RunState struct {
	RunID        string `json:"runId"`                 // the run
	NextSequence uint64 `json:"nextSequence"`          // sequence of the next event
	TerminalKind Kind   `json:"terminalKind,omitzero"` // run.completed, run.failed or run.cancelled; empty until the run ends
	// Lifecycle is the table that the starts of the run and its agents name: the
	// latest. Empty means that the log names none.
	Lifecycle Lifecycle `json:"lifecycle,omitzero"`
	// Resume is state that only resuming needs. It has no exported fields and is copied
	// as a whole. Its JSON may change between versions.
	Resume runResume `json:"resume"`
}

// A runResume is state of a run that only resuming needs. Its members stand so that a RunSnapshot has 2,040 bytes
// on 64 bits: with more the allocator takes 256 more for each run.
type runResume struct {
	opened  bool `wire:"opened,omitzero"`  // run.started was seen
	begun   bool `wire:"begun,omitzero"`   // an event other than session.* was seen
	cut     bool `wire:"cut,omitzero"`     // the log begins inside the run: earlier events are unknown
	resumes int  `wire:"resumes,omitzero"` // number of run.resumed seen

	workflows []string `wire:"workflows,omitzero"` // the workflows that the run is, until they are finalized
	finalized bool     `wire:"finalized,omitzero"` // all of those were finalized, and nothing has started since
	flowEnd   string   `wire:"flowEnd,omitzero"`   // the word for how the latest of them ended that failed or was cancelled

	early []earlyEnd `wire:"early,omitzero"` // ends without starts: see earlyEnd

	// Only a fold writes these; an emitter leaves them empty.
	reported      bool           `wire:"reported,omitzero"`      // usage was reported since the last turn.summarized
	endMadeUp     bool           `wire:"endMadeUp,omitzero"`     // the latest SessionCompleted or WorkflowFinalized has MarkSynthetic
	sessionError  Opt[ErrorInfo] `wire:"sessionError,omitzero"`  // SessionCompleted.Error
	expected      []AgentRef     `wire:"expected,omitzero"`      // agents that a node or a handoff has named and that have no event yet
	lastEdge      string         `wire:"lastEdge,omitzero"`      // the edge fired last
	messageEvents []string       `wire:"messageEvents,omitzero"` // event id of each message
	recent        []fingerprint  `wire:"recent,omitzero"`        // the last events: they tell a repeated event from another one with its sequence
	recentDeltas  []fingerprint  `wire:"recentDeltas,omitzero"`  // the last droppable events, while an agent works
	strays        []fingerprint  `wire:"strays,omitzero"`        // events with false sequences, in no other list; at most 64
	gone          []uint64       `wire:"gone,omitzero"`          // hashes of the latest calls that returned and are not kept, with those 64
}

// A fingerprint identifies an event by its sequence and its content.
type fingerprint struct {
	sequence uint64 `wire:"sequence"`
	hash     uint64 `wire:"hash"` // of the event's line
}

// A RunSnapshot is the state of one run after some of its events. A [Fold] makes
// it from a log. It has the fields of the resume spec's RunSnapshot (status,
// outputs, state, nodeStatus, edgeStatus, loopCounters, inbox, agentSessions) and
// of OpenWOP's. A fold ([ResumeFold]) and an emitter ([Emitter.Resume]) continue
// from it, also after it was written as JSON and read back.
//
// AppendJSON and MarshalJSON keep the bytes of raw JSON. json.Marshal does not:
// it escapes characters such as <.
//
// A snapshot belongs to its holder; the fold keeps no part of it. Empty maps and lists are nil in
// Go, and {} and [] in JSON. Lists are in the order of the events, unless a comment tells
// otherwise. Costs are in US dollars, durations in milliseconds on the wire.
type RunSnapshot struct {
	RunState
	SchemaVersion  string    `json:"schemaVersion"`           // version of this document: the constant SchemaVersion
	SessionID      string    `json:"sessionId,omitzero"`      // the first SessionID of an envelope
	WorkflowID     string    `json:"workflowId,omitzero"`     // the first WorkflowID of an envelope
	Name           string    `json:"name,omitzero"`           // RunStarted.Name
	Status         RunStatus `json:"status"`                  // see RunStatus
	StartedAt      time.Time `json:"startedAt,omitzero"`      // time of run.started, else of the first event that is not a delta
	CompletedAt    time.Time `json:"completedAt,omitzero"`    // time of the terminal event, else of the session's end, else of the last of the workflow's, the agents' and the only turn's; zero until the run is over
	CurrentNodeID  string    `json:"currentNodeId,omitzero"`  // the node started or resumed last; empty once it has ended
	EndMadeUp      bool      `json:"endMadeUp,omitzero"`      // the status follows from an end with MarkSynthetic, which no line of the source tells
	Paused         bool      `json:"paused,omitzero"`         // see RunStatusPaused
	Cancelling     bool      `json:"cancelling,omitzero"`     // see RunStatusCancelling
	CancelReason   string    `json:"cancelReason,omitzero"`   // RunCancelled.Reason, else the message of the turn with which the run was cancelled
	SessionGoal    string    `json:"sessionGoal,omitzero"`    // SessionStarted.Goal
	SessionStatus  string    `json:"sessionStatus,omitzero"`  // SessionCompleted.Status
	SessionEndedAt time.Time `json:"sessionEndedAt,omitzero"` // time of session.completed; zero again when the session, a turn or an agent starts
	SessionResult  JSON      `json:"sessionResult,omitzero"`  // SessionCompleted.Result

	Agent           Opt[AgentRef]  `json:"agent,omitzero"`           // the run's primary agent
	RunOrchestrator JSON           `json:"runOrchestrator,omitzero"` // the supervisor's last decision
	Inputs          JSON           `json:"inputs,omitzero"`          // RunStarted.Inputs
	Result          JSON           `json:"result,omitzero"`          // RunCompleted.Outputs
	Error           Opt[ErrorInfo] `json:"error,omitzero"`           // RunFailed.Error, else the error of the turn or session with which the run failed: see RunStatus
	Refused         int            `json:"refused,omitzero"`         // Refused of the run's end

	Outputs       map[string]JSON       `json:"outputs"`       // outputs of nodes, by node id
	State         map[string]JSON       `json:"state"`         // user-defined state, by top-level key
	NodeStatus    map[string]NodeStatus `json:"nodeStatus"`    // by node id
	NodeRuns      map[string]int        `json:"nodeRuns"`      // number of open executions, by node id
	Suspended     map[string]string     `json:"suspended"`     // NodeSuspended.Reason by node id, until the node continues or its question is answered
	EdgeStatus    map[string]EdgeStatus `json:"edgeStatus"`    // by edge id, or "from->to"
	LoopCounters  map[string]int        `json:"loopCounters"`  // the latest LoopIterated.Iteration, by edge
	Inbox         []InboxItem           `json:"inbox"`         // commands received and not consumed, for executions that have not ended
	AgentSessions map[string]string     `json:"agentSessions"` // session id at the provider, by node id; outside nodes by agent id

	Agents            map[string]*AgentSnapshot `json:"agents"`                // by agent id
	OpenCalls         []*ToolCallSnapshot       `json:"openCalls"`             // calls without a return, in call order
	ClosedCalls       []*ToolCallSnapshot       `json:"closedCalls"`           // the latest calls that returned, in order of return; see FoldOptions.KeepCalls
	OpenModelCalls    []ModelCallSnapshot       `json:"openModelCalls"`        // model calls without a return, in call order
	DroppedCalls      int                       `json:"droppedCalls,omitzero"` // number of calls that only Tools counts
	Tools             map[string]*ToolStats     `json:"tools"`                 // counts of calls, by tool id
	Messages          []ConversationMessage     `json:"messages"`              // the conversation, each messageId once
	Turns             []TurnSnapshot            `json:"turns"`                 // turns, as they started
	Steps             []StepSnapshot            `json:"steps"`                 // steps of plans, as they started
	Workflows         []WorkflowSnapshot        `json:"workflows"`             // workflows, as they first appeared
	Phases            []PhaseSnapshot           `json:"phases"`                // phases of all workflows, as they started
	Checkpoints       []CheckpointSnapshot      `json:"checkpoints"`           // checkpoints saved and resumed from
	Approvals         []ApprovalSnapshot        `json:"approvals"`             // approvals, as they were requested
	Clarifications    []ClarificationSnapshot   `json:"clarifications"`        // clarifications, as they were requested
	Handoffs          []HandoffSnapshot         `json:"handoffs"`              // handoffs and requests for them
	Tasks             []TaskSnapshot            `json:"tasks"`                 // assigned tasks
	Audits            []AuditSnapshot           `json:"audits"`                // audits
	Claims            []ClaimSnapshot           `json:"claims"`                // verdicts on findings
	Issues            []IssueSnapshot           `json:"issues"`                // issues found
	Citations         int                       `json:"citations"`             // number of citations found
	Facts             Opt[FactsSnapshot]        `json:"facts,omitzero"`        // further statements about the work; absent without any
	Budgets           []BudgetSnapshot          `json:"budgets"`               // budgets exceeded and caps breached
	Blackboard        map[string]BlackboardItem `json:"blackboard"`            // by item id
	Usage             RunUsage                  `json:"usage"`                 // tokens and cost of the whole run, counted once
	Violations        []*RuleError              `json:"violations"`            // the first violations; see FoldOptions.MaxViolations
	ViolationCount    int                       `json:"violationCount"`        // number of all violations
	Unknown           map[string]int            `json:"unknown"`               // number of events, by unknown kind
	Retracted         []string                  `json:"retracted"`             // ids of retracted events
	RetractedMessages []ConversationMessage     `json:"retractedMessages"`     // messages of retracted events
}

// AgentsInOrder returns the agents in the order in which they first appear.
func (r *RunSnapshot) AgentsInOrder() []*AgentSnapshot {
	agents := make([]*AgentSnapshot, 0, len(r.Agents))
	for _, a := range r.agentsInOrder(nil) {
		agents = append(agents, a.snapshot)
	}
	return agents
}

// A listedAgent is an entry of RunSnapshot.Agents.
type listedAgent struct {
	id       string
	snapshot *AgentSnapshot
}

// agentsInOrder appends the agents to the given empty list and sorts it. Agents of
// the same order, which only a snapshot made by hand has, come by their keys.
func (r *RunSnapshot) agentsInOrder(agents []listedAgent) []listedAgent {
	for id, a := range r.Agents {
		if a != nil { // nil in a snapshot that was made by hand
			agents = append(agents, listedAgent{id, a})
		}
	}
	slices.SortFunc(agents, func(a, b listedAgent) int {
		return cmp.Or(cmp.Compare(a.snapshot.Resume.order, b.snapshot.Resume.order), strings.Compare(a.id, b.id))
	})
	return agents
}

// AttemptsInOrder returns the attempts of the agent that the snapshot keeps, in order: Earlier, and
// the current one. The counts of the current one are the agent's without the earlier attempts.
func (a *AgentSnapshot) AttemptsInOrder() []AttemptSnapshot {
	return append(slices.Clone(a.Earlier), a.attempt())
}

// attempt returns the current attempt.
func (a *AgentSnapshot) attempt() AttemptSnapshot {
	before := a.Dropped.V
	for i := range a.Earlier {
		before.add(&a.Earlier[i])
	}
	t := AttemptSnapshot{
		Attempt: max(1, a.Attempts), Sequence: a.Usage.Sequence, ParentAgentID: a.ParentAgentID,
		ParentSpanID: a.ParentSpanID, ParentCallID: a.ParentCallID,
		WorkflowID: a.WorkflowID, Phase: a.Phase, Task: a.Task,
		StartedAt: a.StartedAt, EndedAt: a.EndedAt, Duration: a.Duration,
		Status: a.Status, Counted: a.Counted, Totals: a.Totals,
		ToolCalls: a.ToolCalls - before.ToolCalls, ToolFailures: a.ToolFailures - before.ToolFailures,
		ToolSuccesses: a.ToolSuccesses - before.ToolSuccesses, ToolRefusals: a.ToolRefusals - before.ToolRefusals,
		ToolsUndecided: a.ToolsUndecided - before.ToolsUndecided, ModelCalls: a.ModelCalls - before.ModelCalls,
		ModelFailures: a.ModelFailures - before.ModelFailures, Errors: a.Errors - before.Errors,
		Outcome: a.Outcome, EndStatus: a.EndStatus, EndReason: a.EndReason, EndMadeUp: a.EndMadeUp, Error: a.Error,
		Result: a.Result, NumTurns: a.NumTurns, ConvergenceScore: a.ConvergenceScore,
		Text: a.Text,
	}
	if t.Errors > 0 {
		t.LastError = a.LastError
	}
	return t
}

// add adds the counts of an attempt.
func (d *DroppedAttempts) add(t *AttemptSnapshot) {
	d.ToolCalls, d.ToolFailures = plus(d.ToolCalls, t.ToolCalls), plus(d.ToolFailures, t.ToolFailures)
	d.ToolSuccesses, d.ToolRefusals = plus(d.ToolSuccesses, t.ToolSuccesses), plus(d.ToolRefusals, t.ToolRefusals)
	d.ToolsUndecided, d.Errors = plus(d.ToolsUndecided, t.ToolsUndecided), plus(d.Errors, t.Errors)
	d.ModelCalls, d.ModelFailures = plus(d.ModelCalls, t.ModelCalls), plus(d.ModelFailures, t.ModelFailures)
}

// InboxItem is a command that was received and not consumed, for an execution of a node that
// has not ended.
type InboxItem struct {
	EventID string  `json:"eventId"` // ID of the event with the CommandReceived
	Command Command `json:"command"` // the command as received
}

// AgentState is the state of an agent that the rules need. An [Emitter] keeps it
// for every agent of an open run, and an [AgentSnapshot] has it.
type AgentState struct {
	AgentID       string      `json:"agentId"`                // the agent; without an id the nodeRunId, or the spanId of its start until an event names it
	SpanID        string      `json:"spanId,omitzero"`        // span of its latest start; empty once another agent starts in it
	Status        AgentStatus `json:"status"`                 // the latest status; empty until an event tells it in a log that begins inside its run
	Step          Opt[int]    `json:"step,omitzero"`          // the highest step
	Attempts      int         `json:"attempts"`               // number of the current attempt
	Started       bool        `json:"started,omitzero"`       // agent.started was seen
	Open          bool        `json:"open,omitzero"`          // the agent has started and not ended since
	Ended         bool        `json:"ended,omitzero"`         // the agent has ended and not started since
	SharesByGroup bool        `json:"sharesByGroup,omitzero"` // the agent's messages must carry a group id
	Counted       Totals      `json:"counted"`                // counts of the current attempt
	// Resume is state that only resuming needs. It has no exported fields and is copied
	// as a whole. Its JSON may change between versions.
	Resume agentResume `json:"resume"`

	calls int            // open calls of the current attempt
	end   agentEnd       // in an emitter: the outcome that its end states
	shown *AgentSnapshot // the snapshot that embeds this; nil in an emitter
}

// An agentResume is state of an agent that only resuming needs.
type agentResume struct {
	order   int      `wire:"order"`            // number of the agent in order of appearance, from 0; -1 while only deltas of it were seen
	back    Opt[int] `wire:"back,omitzero"`    // the current step, when the agent went back from the highest one
	ahead   Opt[int] `wire:"ahead,omitzero"`   // the step of the deltas since the last lasting event, when it is another step
	first   int      `wire:"first,omitzero"`   // first step of the current attempt
	renew   bool     `wire:"renew,omitzero"`   // the emitter stamps a new step next
	resumes int      `wire:"resumes,omitzero"` // runResume.resumes when the agent started
	unnamed bool     `wire:"unnamed,omitzero"` // its start has no id: the span of the start stands for it
	twin    string   `wire:"twin,omitzero"`    // the id that its events may have: another agent has it too
	spans   []string `wire:"spans,omitzero"`   // of a twin: the span of its start, and the latest ones in that
	act     int      `wire:"act,omitzero"`     // the status that the last act tells, as an index of statuses
	blocks  []block  `wire:"blocks,omitzero"`  // blocks whose deltas were seen

	// Only a fold uses these; an emitter leaves them empty.
	textOpen      bool `wire:"textOpen,omitzero"`      // AgentSnapshot.Text comes from a block's deltas
	reasoningOpen bool `wire:"reasoningOpen,omitzero"` // AgentSnapshot.Reasoning comes from a block's deltas

}

// A block is a block of text, reasoning or arguments that comes in deltas.
type block struct {
	subject string `wire:"subject"`        // subject in the catalog: text, reasoning or tool_call
	id      string `wire:"id,omitzero"`    // block id or call id
	next    int    `wire:"next"`           // index of the next numbered delta
	size    int    `wire:"size"`           // number of characters so far
	whole   bool   `wire:"whole,omitzero"` // the whole block was seen: more deltas change nothing
	text    []byte `wire:"text,omitzero"`  // the text so far; empty for arguments, and in an emitter
}

// AgentSnapshot is the state of one agent of a run.
type AgentSnapshot struct {
	AgentState
	Name              string             `json:"name,omitzero"`              // AgentStarted.Name
	Ref               Opt[AgentRef]      `json:"ref,omitzero"`               // AgentStarted.Agent, else as a node or a handoff names it
	ParentAgentID     string             `json:"parentAgentId,omitzero"`     // agent that spawned it, else the one that started in the span around its start
	ParentSpanID      string             `json:"parentSpanId,omitzero"`      // the span around its latest start
	ParentCallID      string             `json:"parentCallId,omitzero"`      // call that spawned it
	NodeID            string             `json:"nodeId,omitzero"`            // node of its start; without a start, of its first event
	NodeRunID         string             `json:"nodeRunId,omitzero"`         // execution of that node; AgentID is the same if nothing else identifies the agent
	WorkflowID        string             `json:"workflowId,omitzero"`        // workflow of its latest start that names one
	Phase             string             `json:"phase,omitzero"`             // phase of that start
	Task              string             `json:"task,omitzero"`              // AgentStarted.Task
	Model             string             `json:"model,omitzero"`             // AgentStarted.Model
	ProviderSessionID string             `json:"providerSessionId,omitzero"` // the latest session id at the provider
	Sequence          uint64             `json:"sequence,omitzero"`          // sequence of its first start
	StartedAt         time.Time          `json:"startedAt,omitzero"`         // time of the latest start
	EndedAt           time.Time          `json:"endedAt,omitzero"`           // time of the end; zero while open
	Duration          Opt[time.Duration] `json:"durationMs,omitzero"`        // AgentEnded.Duration, else EndedAt - StartedAt
	Transitions       int                `json:"transitions"`                // number of transitions, in all attempts
	ToolCalls         int                `json:"toolCalls"`                  // number of calls that are its own or begin in its span, in all attempts
	ToolSuccesses     int                `json:"toolSuccesses,omitzero"`     // number of calls that returned ok, in all attempts; like the next three, as ToolStats counts
	ToolFailures      int                `json:"toolFailures"`               // number of calls that failed, in all attempts
	ToolRefusals      int                `json:"toolRefusals,omitzero"`      // number of calls that were refused, in all attempts
	ToolsUndecided    int                `json:"toolsUndecided,omitzero"`    // number of calls that returned with neither, in all attempts
	ModelCalls        int                `json:"modelCalls,omitzero"`        // number of model calls, open ones included, in all attempts
	ModelFailures     int                `json:"modelFailures,omitzero"`     // number of model calls that returned an error, in all attempts
	ModelDuration     time.Duration      `json:"modelDurationMs,omitzero"`   // sum of the durations of all returned model calls, in all attempts
	Errors            int                `json:"errors,omitzero"`            // number of agent.error, without warnings
	Decisions         int                `json:"decisions,omitzero"`         // number of agent.decided, in all attempts
	LastError         Opt[ErrorInfo]     `json:"lastError,omitzero"`         // the latest agent.error, without warnings
	Outcome           AgentOutcome       `json:"outcome,omitzero"`           // AgentEnded.Outcome; empty while open, like all from the end
	EndStatus         string             `json:"endStatus,omitzero"`         // AgentEnded.Status
	EndMadeUp         bool               `json:"endMadeUp,omitzero"`         // the end has MarkSynthetic: no line of the source tells it
	EndReason         string             `json:"endReason,omitzero"`         // AgentEnded.Reason
	Error             Opt[ErrorInfo]     `json:"error,omitzero"`             // AgentEnded.Error
	Result            string             `json:"result,omitzero"`            // AgentEnded.Result
	Refused           int                `json:"refused,omitzero"`           // AgentEnded.Refused, in all attempts
	StructuredOutput  JSON               `json:"structuredOutput,omitzero"`  // AgentEnded.StructuredOutput
	ResultSchema      JSON               `json:"resultSchema,omitzero"`      // AgentEnded.ResultSchema
	Totals            Opt[Totals]        `json:"totals,omitzero"`            // AgentEnded.Totals
	NumTurns          Opt[int]           `json:"numTurns,omitzero"`          // AgentEnded.NumTurns
	ConvergenceScore  Opt[float64]       `json:"convergenceScore,omitzero"`  // AgentEnded.ConvergenceScore
	Text              string             `json:"text,omitzero"`              // the latest text block of the current attempt, whole or so far
	Reasoning         string             `json:"reasoning,omitzero"`         // its latest reasoning block, whole or so far
	Usage             AgentUsage         `json:"usage"`                      // tokens and cost that it reported; see RunUsage

	// Earlier are the attempts before the current one, in order: the first 16 and the latest 16.
	// Dropped stands for those between them, which are not kept.
	Earlier []AttemptSnapshot    `json:"earlier"`
	Dropped Opt[DroppedAttempts] `json:"dropped,omitzero"`

	text, reasoning []byte // in a fold, the latest whole blocks; Text and Reasoning are copies of them
}

// AttemptSnapshot is an attempt of an agent that a later one has followed. Fields that it lacks,
// such as the name, are the agent's. AgentUsage.Earlier has its figures, under the same sequence.
type AttemptSnapshot struct {
	Attempt          int                `json:"attempt"`                   // its number; see AgentStarted.Attempt
	Sequence         uint64             `json:"sequence"`                  // sequence of its start, else of its end; 0 if the log has no start of the first one
	ParentAgentID    string             `json:"parentAgentId,omitzero"`    // AgentSnapshot.ParentAgentID, like all below, when the attempt was over
	ParentSpanID     string             `json:"parentSpanId,omitzero"`     // the span around its start
	ParentCallID     string             `json:"parentCallId,omitzero"`     // call that spawned it
	WorkflowID       string             `json:"workflowId,omitzero"`       // workflow of its start
	Phase            string             `json:"phase,omitzero"`            // phase of its start
	Task             string             `json:"task,omitzero"`             // AgentStarted.Task, else the task before
	StartedAt        time.Time          `json:"startedAt,omitzero"`        // time of its start
	EndedAt          time.Time          `json:"endedAt,omitzero"`          // time of its end; zero when it died
	Duration         Opt[time.Duration] `json:"durationMs,omitzero"`       // AgentEnded.Duration, else EndedAt - StartedAt
	Died             bool               `json:"died,omitzero"`             // the agent started again before it ended
	Status           AgentStatus        `json:"status"`                    // its last status
	Counted          Totals             `json:"counted"`                   // its counts
	Totals           Opt[Totals]        `json:"totals,omitzero"`           // AgentEnded.Totals
	ToolCalls        int                `json:"toolCalls"`                 // number of calls
	ToolFailures     int                `json:"toolFailures"`              // number of returns with a status other than ok
	ToolSuccesses    int                `json:"toolSuccesses,omitzero"`    // number of calls that returned ok; like the next two, as ToolStats counts
	ToolRefusals     int                `json:"toolRefusals,omitzero"`     // number of calls that were refused
	ToolsUndecided   int                `json:"toolsUndecided,omitzero"`   // number of calls that returned with neither
	ModelCalls       int                `json:"modelCalls,omitzero"`       // number of model calls
	ModelFailures    int                `json:"modelFailures,omitzero"`    // number of model calls that returned an error
	Errors           int                `json:"errors,omitzero"`           // number of agent.error, without warnings
	LastError        Opt[ErrorInfo]     `json:"lastError,omitzero"`        // the latest agent.error, without warnings
	Outcome          AgentOutcome       `json:"outcome,omitzero"`          // AgentEnded.Outcome
	EndStatus        string             `json:"endStatus,omitzero"`        // AgentEnded.Status
	EndMadeUp        bool               `json:"endMadeUp,omitzero"`        // its end has MarkSynthetic
	EndReason        string             `json:"endReason,omitzero"`        // AgentEnded.Reason
	Error            Opt[ErrorInfo]     `json:"error,omitzero"`            // AgentEnded.Error
	Result           string             `json:"result,omitzero"`           // AgentEnded.Result
	NumTurns         Opt[int]           `json:"numTurns,omitzero"`         // AgentEnded.NumTurns
	ConvergenceScore Opt[float64]       `json:"convergenceScore,omitzero"` // AgentEnded.ConvergenceScore
	Text             string             `json:"text,omitzero"`             // its last text block, whole or as far as it came
}

// DroppedAttempts are the attempts of an agent that a snapshot does not keep: their number and
// the sums of their counts.
type DroppedAttempts struct {
	Count          int    `json:"count"`                   // how many they are
	Sequence       uint64 `json:"sequence"`                // AttemptSnapshot.Sequence of the first one
	ToolCalls      int    `json:"toolCalls"`               // AttemptSnapshot.ToolCalls, like all below
	ToolFailures   int    `json:"toolFailures"`            // number of returns with a status other than ok
	ToolSuccesses  int    `json:"toolSuccesses,omitzero"`  // number of calls that returned ok
	ToolRefusals   int    `json:"toolRefusals,omitzero"`   // number of calls that were refused
	ToolsUndecided int    `json:"toolsUndecided,omitzero"` // number of calls that returned with neither
	ModelCalls     int    `json:"modelCalls,omitzero"`     // number of model calls
	ModelFailures  int    `json:"modelFailures,omitzero"`  // number of model calls that returned an error
	Errors         int    `json:"errors,omitzero"`         // number of agent.error, without warnings
}

// ToolCallSnapshot is one tool call.
type ToolCallSnapshot struct {
	Sequence  uint64             `json:"sequence"`            // sequence of its first event
	AgentID   string             `json:"agentId,omitzero"`    // its agent; empty when the envelope names none
	Within    string             `json:"within,omitzero"`     // the agent in whose span it began, or in a step of it, if that is another one
	CallID    string             `json:"callId"`              // the call id
	ToolID    string             `json:"toolId"`              // the tool
	EventID   string             `json:"eventId,omitzero"`    // ID of its first event
	Step      Opt[int]           `json:"step,omitzero"`       // step of its first event
	Attempt   Opt[int]           `json:"attempt,omitzero"`    // number of the attempt, from 1
	RetryOf   string             `json:"retryOf,omitzero"`    // call id of the previous attempt
	StartedAt time.Time          `json:"startedAt,omitzero"`  // time of its agent.toolCalled; with oneEvent the return's time minus its duration; zero when it never began
	Status    ToolStatus         `json:"status,omitzero"`     // status of the return; empty while open
	Word      string             `json:"statusWord,omitzero"` // ToolReturned.StatusWord
	Duration  Opt[time.Duration] `json:"durationMs,omitzero"` // ToolReturned.Duration, else the time between the two events
	// ReturnedAt is the time of a return that has come without the beginning of its call, unless it
	// is a whole call without a span. An agent.toolCalled of an earlier time, whose line was written
	// late, is that beginning, and takes the time away.
	ReturnedAt time.Time `json:"returnedAt,omitzero"`
	Error      string    `json:"error,omitzero"` // message of the return's error; of a failed return without one the beginning of its summary, else of its result
}

// ModelCallSnapshot is one open model call.
type ModelCallSnapshot struct {
	Sequence    uint64    `json:"sequence"`           // sequence of its model.called
	AgentID     string    `json:"agentId,omitzero"`   // its agent; empty when the envelope names none
	ModelCallID string    `json:"modelCallId"`        // the model call id
	EventID     string    `json:"eventId,omitzero"`   // ID of its model.called
	Step        Opt[int]  `json:"step,omitzero"`      // step of its model.called
	Provider    string    `json:"provider,omitzero"`  // ModelCalled.Provider, like all below
	Model       string    `json:"model,omitzero"`     // the model that is asked
	Operation   string    `json:"operation,omitzero"` // the operation that the call requests
	Attempt     Opt[int]  `json:"attempt,omitzero"`   // number of the attempt, from 1
	RetryOf     string    `json:"retryOf,omitzero"`   // model call id of the previous attempt
	StartedAt   time.Time `json:"startedAt,omitzero"` // time of its model.called

	handle *ModelCall // that opened it; nil in a fold and after a resume
}

// ToolStats counts the calls of one tool. A call that has returned counts in one of OK,
// Failed, Refused and Undecided.
type ToolStats struct {
	Calls     int           `json:"calls"`              // calls that began, open ones included
	OK        int           `json:"ok"`                 // calls that returned ok
	Failed    int           `json:"failed"`             // calls that returned error
	Refused   int           `json:"refused,omitzero"`   // calls that returned forbidden or rate_limited, whether they had begun or not
	Undecided int           `json:"undecided,omitzero"` // calls that returned cancelled, interrupted or with an unknown word: neither success nor failure
	Duration  time.Duration `json:"durationMs"`         // sum of the durations of all returned calls
}

// TurnSnapshot is one turn.
type TurnSnapshot struct {
	Sequence    uint64             `json:"sequence"`             // sequence of its first event
	EndSequence uint64             `json:"endSequence,omitzero"` // sequence of its closing event; 0 while open
	Turn        Opt[int]           `json:"turn,omitzero"`        // number of the turn
	Name        string             `json:"name,omitzero"`        // name of the span
	AgentID     string             `json:"agentId,omitzero"`     // its agent; empty when the envelope names none
	SpanID      string             `json:"spanId,omitzero"`      // span of its start, else of its end
	StartedAt   time.Time          `json:"startedAt,omitzero"`   // time of its start; zero when that is not in the log
	EndedAt     time.Time          `json:"endedAt,omitzero"`     // time of its closing event; zero while open
	EndMadeUp   bool               `json:"endMadeUp,omitzero"`   // the closing event has MarkSynthetic
	Duration    Opt[time.Duration] `json:"durationMs,omitzero"`  // duration of the closing event, else EndedAt - StartedAt
	Error       Opt[ErrorInfo]     `json:"error,omitzero"`       // set when it failed
	Asked       string             `json:"asked,omitzero"`       // the request: the text of the first of these attributes of its start: user_input, user_message, input, prompt, query, question, message
	Said        string             `json:"said,omitzero"`        // the last text block of its agent in it, once that is whole or the turn has ended
	Text        string             `json:"text,omitzero"`        // TurnSummarized.Text
	Intent      string             `json:"intent,omitzero"`      // TurnSummarized.Intent
}

// StepSnapshot is one step of a plan.
type StepSnapshot struct {
	Sequence    uint64             `json:"sequence"`             // sequence of its first event
	EndSequence uint64             `json:"endSequence,omitzero"` // sequence of its closing event; 0 while open
	StepID      string             `json:"stepId"`               // id of the step
	Name        string             `json:"name,omitzero"`        // name of the span
	Description string             `json:"description,omitzero"` // the purpose of the step
	AgentID     string             `json:"agentId,omitzero"`     // its agent; empty when the envelope names none
	Within      string             `json:"within,omitzero"`      // the agent in whose span it began, or in a step of it, if that is another one
	SpanID      string             `json:"spanId,omitzero"`      // span of its start, else of its end
	StartedAt   time.Time          `json:"startedAt,omitzero"`   // time of its first event
	EndedAt     time.Time          `json:"endedAt,omitzero"`     // time of its closing event; zero while open
	Duration    Opt[time.Duration] `json:"durationMs,omitzero"`  // duration of the closing event, else EndedAt - StartedAt
	Error       Opt[ErrorInfo]     `json:"error,omitzero"`       // set when it failed
}

// WorkflowSnapshot is one workflow of the run. One that is created again after it was finalized
// is another one with the same id: its phases and checkpoints are those from its Sequence on.
type WorkflowSnapshot struct {
	Sequence        uint64             `json:"sequence"`                 // sequence of its first event
	WorkflowID      string             `json:"workflowId"`               // the workflow
	Script          string             `json:"script,omitzero"`          // WorkflowCreated.Script
	Phases          []string           `json:"phases"`                   // planned phases, in order
	EstimatedTokens Opt[int64]         `json:"estimatedTokens,omitzero"` // estimate before the workflow ran
	ApprovedBy      string             `json:"approvedBy,omitzero"`      // the person who allowed it to run
	ApprovedAt      time.Time          `json:"approvedAt,omitzero"`      // time of the approval
	Finalized       bool               `json:"finalized,omitzero"`       // workflow.finalized, or another end, was seen
	FinalizedAt     time.Time          `json:"finalizedAt,omitzero"`     // time of that
	Ended           string             `json:"ended,omitzero"`           // word for another end: the last part of an unknown kind workflow.*, such as failed
	Error           Opt[ErrorInfo]     `json:"error,omitzero"`           // the reason of that event
	TotalTokens     Opt[int64]         `json:"totalTokens,omitzero"`     // WorkflowFinalized.TotalTokens
	TotalAgents     Opt[int]           `json:"totalAgents,omitzero"`     // WorkflowFinalized.TotalAgents
	Duration        Opt[time.Duration] `json:"durationMs,omitzero"`      // WorkflowFinalized.Duration
}

// PhaseSnapshot is one passage through a phase of a workflow. A phase that is open when the
// workflow resumes from a checkpoint, and then starts again, is the same passage.
type PhaseSnapshot struct {
	Sequence    uint64     `json:"sequence"`             // sequence of its first event
	WorkflowID  string     `json:"workflowId"`           // the workflow
	Phase       string     `json:"phase"`                // name of the phase
	SpanID      string     `json:"spanId,omitzero"`      // span of its latest start
	Open        bool       `json:"open,omitzero"`        // it is not closed yet
	StartedAt   time.Time  `json:"startedAt,omitzero"`   // time of its first event
	EndedAt     time.Time  `json:"endedAt,omitzero"`     // time of its closing event; zero while open
	InputCount  Opt[int]   `json:"inputCount,omitzero"`  // number of input items, from the latest start that has it
	OutputCount Opt[int]   `json:"outputCount,omitzero"` // number of items that came out
	Tokens      Opt[int64] `json:"tokens,omitzero"`      // PhaseCompleted.Tokens; not in the run's usage
	// Ended is the word for how a phase ended that was not completed: the last part of an unknown
	// kind workflow.phase.*, such as failed.
	Ended string         `json:"ended,omitzero"`
	Error Opt[ErrorInfo] `json:"error,omitzero"` // the reason of that event

	resumes int `wire:"resumes,omitzero"` // number of checkpoints that the workflow had resumed from at its latest start
}

// CheckpointSnapshot is a checkpoint that was saved or resumed from.
type CheckpointSnapshot struct {
	Sequence   uint64     `json:"sequence"`            // sequence of its first event
	WorkflowID string     `json:"workflowId,omitzero"` // the workflow
	Phase      string     `json:"phase,omitzero"`      // name of the phase
	At         time.Time  `json:"at,omitzero"`         // time of the event, or CheckpointResumed.ResumedAt
	StateBytes Opt[int64] `json:"stateBytes,omitzero"` // size of the saved state in bytes
	Resumed    bool       `json:"resumed,omitzero"`    // the script resumed from it; else it was saved
}

// ApprovalSnapshot is a question to a person and the answer.
type ApprovalSnapshot struct {
	Sequence      uint64             `json:"sequence"`               // sequence of its first event
	ApprovalID    string             `json:"approvalId"`             // id of the request
	Action        string             `json:"action,omitzero"`        // the action to allow
	Reason        string             `json:"reason,omitzero"`        // the beginning of ApprovalRequested.Reason
	CallID        string             `json:"callId,omitzero"`        // id of the tool call to allow
	AgentID       string             `json:"agentId,omitzero"`       // its agent; empty when the envelope names none
	ToolID        string             `json:"toolId,omitzero"`        // ApprovalRequested.ToolID
	ArgumentsHash string             `json:"argumentsHash,omitzero"` // ApprovalRequested.ArgumentsHash
	Timeout       Opt[time.Duration] `json:"timeoutMs,omitzero"`     // ApprovalRequested.Timeout
	RequestedAt   time.Time          `json:"requestedAt,omitzero"`   // time of the request
	AnsweredAt    time.Time          `json:"answeredAt,omitzero"`    // time of the answer; zero without one
	Open          bool               `json:"open,omitzero"`          // it is not closed yet
	ClosedBy      Kind               `json:"closedBy,omitzero"`      // kind of the event that closed it; see ApprovalRequested
	Granted       bool               `json:"granted,omitzero"`       // the answer; false without one
	UsedBy        string             `json:"usedBy,omitzero"`        // id of the call that was made under it
	By            string             `json:"by,omitzero"`            // the person who answered, else the actor of the answer
	Feedback      string             `json:"feedback,omitzero"`      // the person's comment
	Answer        string             `json:"answer,omitzero"`        // ApprovalGranted.Answer or ApprovalRejected.Answer
}

// ClarificationSnapshot is a set of questions and the answers.
type ClarificationSnapshot struct {
	Sequence    uint64     `json:"sequence"`             // sequence of its first event
	InterruptID string     `json:"interruptId"`          // id of the request
	CallID      string     `json:"callId,omitzero"`      // id of the tool call that asks
	AgentID     string     `json:"agentId,omitzero"`     // its agent; empty when the envelope names none
	Questions   []Question `json:"questions"`            // as asked
	RequestedAt time.Time  `json:"requestedAt,omitzero"` // time of the request
	AnsweredAt  time.Time  `json:"answeredAt,omitzero"`  // time of the answer; zero without one
	Open        bool       `json:"open,omitzero"`        // it is not closed yet
	ClosedBy    Kind       `json:"closedBy,omitzero"`    // kind of the event that closed it; see ApprovalRequested
	Answers     JSON       `json:"answers,omitzero"`     // an object of answers by question id
	AnsweredBy  string     `json:"answeredBy,omitzero"`  // the person who answered
}

// HandoffSnapshot is a handoff or the request for one. The log may lack the request.
type HandoffSnapshot struct {
	Sequence      uint64 `json:"sequence"`               // sequence of its first event
	HandoffID     string `json:"handoffId,omitzero"`     // id of the request; empty for an agent.handoff
	From          string `json:"from"`                   // id of the agent that hands over
	To            string `json:"to"`                     // id of the agent that takes over
	Reason        string `json:"reason,omitzero"`        // why; free text
	ContextDigest string `json:"contextDigest,omitzero"` // HandoffRequested.ContextDigest
	SpanID        string `json:"spanId,omitzero"`        // span of the request
	Within        string `json:"within,omitzero"`        // the agent whose turn or step it was requested in; else the agent of the event, if the log lacks the agent From
	Open          bool   `json:"open,omitzero"`          // it is requested and neither accepted nor over yet
	// Ended is the word for how the request ended that nobody accepts: the phase of a SpanRecorded
	// with subject handoff, error or cancelled, or the last part of an unknown kind handoff.*
	// that means a failure, such as rejected.
	Ended string         `json:"ended,omitzero"`
	Error Opt[ErrorInfo] `json:"error,omitzero"` // the reason of that event
}

// TaskSnapshot is an assigned task.
type TaskSnapshot struct {
	Sequence       uint64 `json:"sequence"`                // sequence of its first event
	TaskID         string `json:"taskId,omitzero"`         // the task
	AgentID        string `json:"agentId,omitzero"`        // its agent; empty when the envelope names none
	Goal           string `json:"goal"`                    // the goal that the agent should reach
	Context        string `json:"context,omitzero"`        // TaskAssigned.Context
	Constraints    JSON   `json:"constraints,omitzero"`    // TaskAssigned.Constraints
	ExpectedOutput string `json:"expectedOutput,omitzero"` // TaskAssigned.ExpectedOutput
}

// AuditSnapshot is one audit.
type AuditSnapshot struct {
	Sequence     uint64        `json:"sequence"`         // sequence of its first event
	AgentID      string        `json:"agentId,omitzero"` // the agent it is about; empty when it is about the run
	CheckpointID string        `json:"checkpointId"`     // the audit checkpoint
	Result       AuditResult   `json:"result"`           // the verdict
	Duration     time.Duration `json:"durationMs"`       // AuditChecked.Duration
}

// ClaimSnapshot is a verdict on a finding.
type ClaimSnapshot struct {
	Sequence        uint64 `json:"sequence"`          // sequence of its first event
	FindingID       string `json:"findingId"`         // id of the finding
	VerifierAgentID string `json:"verifierAgentId"`   // agent that checked it
	Verdict         string `json:"verdict"`           // the verdict
	Evidence        JSON   `json:"evidence,omitzero"` // ClaimVerified.Evidence
}

// IssueSnapshot is an issue that a verifier found.
type IssueSnapshot struct {
	Sequence     uint64 `json:"sequence"`              // sequence of its first event
	AgentID      string `json:"agentId,omitzero"`      // its agent; empty when the envelope names none
	Issue        string `json:"issue"`                 // the fault; free text
	Severity     string `json:"severity,omitzero"`     // a word of the verifier's own scale
	Evidence     JSON   `json:"evidence,omitzero"`     // IssueFound.Evidence
	SuggestedFix string `json:"suggestedFix,omitzero"` // IssueFound.SuggestedFix
}

// FactsSnapshot has statements about the work: intents, plans, decisions, sources.
type FactsSnapshot struct {
	SessionReason   string                  `json:"sessionReason,omitzero"` // SessionCompleted.Reason
	Intents         []IntentSnapshot        `json:"intents"`                // the users' intents, as agents understood them
	Plans           []PlanSnapshot          `json:"plans"`                  // plans proposed
	Citations       []CitationSnapshot      `json:"citations"`              // citations found
	Insufficiencies []InsufficiencySnapshot `json:"insufficiencies"`        // where evidence did not suffice
	Memory          map[string]int          `json:"memory"`                 // number of memory.changed, by change
	NodeAgents      map[string]AgentRef     `json:"nodeAgents,omitzero"`    // the agent that NodeStarted.Agent or NodeCompleted.Agent names last, by node id
	Suspensions     map[string]JSON         `json:"suspensions,omitzero"`   // NodeSuspended.Details of the latest suspension, by node id
	Spans           map[string]int          `json:"spans"`                  // number of span.recorded, by subject and phase, such as "judge complete"
}

// IntentSnapshot is the user's intent, as an agent understood it.
type IntentSnapshot struct {
	Sequence   uint64       `json:"sequence"`            // sequence of its first event
	AgentID    string       `json:"agentId,omitzero"`    // its agent; empty when the envelope names none
	Intent     string       `json:"intent"`              // an open word
	Confidence Opt[float64] `json:"confidence,omitzero"` // in [0, 1]
}

// PlanSnapshot is a plan that an agent proposed.
type PlanSnapshot struct {
	Sequence uint64     `json:"sequence"`          // sequence of its first event
	AgentID  string     `json:"agentId,omitzero"`  // its agent; empty when the envelope names none
	Strategy string     `json:"strategy,omitzero"` // the approach; free text
	Steps    []PlanStep `json:"steps"`             // the steps, in order
}

// CitationSnapshot is a source that an agent cites.
type CitationSnapshot struct {
	Sequence   uint64       `json:"sequence"`            // sequence of its first event
	AgentID    string       `json:"agentId,omitzero"`    // its agent; empty when the envelope names none
	Claim      string       `json:"claim,omitzero"`      // the claim that the source should support
	SourceURI  string       `json:"sourceUri,omitzero"`  // the source
	Confidence Opt[float64] `json:"confidence,omitzero"` // in [0, 1]
	Verified   bool         `json:"verified,omitzero"`   // the source was checked
}

// InsufficiencySnapshot is a place where an agent lacked evidence.
type InsufficiencySnapshot struct {
	Sequence         uint64 `json:"sequence"`                  // sequence of its first event
	AgentID          string `json:"agentId,omitzero"`          // its agent; empty when the envelope names none
	Reason           string `json:"reason,omitzero"`           // the missing evidence; free text
	WhatWouldResolve string `json:"whatWouldResolve,omitzero"` // evidence that would support it; free text
}

// BudgetSnapshot is a budget that ran out or a cap that was reached.
type BudgetSnapshot struct {
	Sequence uint64       `json:"sequence"`        // sequence of its first event
	Budget   string       `json:"budget"`          // name of the budget or cap
	Cap      bool         `json:"cap,omitzero"`    // it is a cap, from cap.breached
	Limit    Opt[float64] `json:"limit,omitzero"`  // the budget or cap, in its own unit
	Actual   Opt[float64] `json:"actual,omitzero"` // the amount that was used or measured, in the same unit
	Reason   string       `json:"reason,omitzero"` // the beginning of BudgetExceeded.Reason
}

// BlackboardItem is an item of the state that the agents share.
type BlackboardItem struct {
	ItemType    string       `json:"itemType"`             // open word: fact, hypothesis, artifact, decision, task
	Content     JSON         `json:"content"`              // any JSON value
	SourceAgent string       `json:"sourceAgent,omitzero"` // id of the agent that wrote the item
	Confidence  Opt[float64] `json:"confidence,omitzero"`  // in [0, 1]
}

// RunUsage is the usage of a run: the sum over the attempts of its agents. Everything counts once.
//
//   - An attempt counts with the modelUsage of its end, else with the usage of its end, else with
//     the sum of its model.returned and of the usage.observed about other things: see
//     [AttemptUsage]. Tokens of caches and of reasoning that the modelUsage lacks are taken from
//     the usage.
//   - modelUsage includes sub-agents: an attempt of an agent that began below an
//     attempt with modelUsage does not count.
//   - The figures of a turn.summarized count with its agent's reports if nothing was
//     reported in the run since the turn.summarized before it: a log may have the
//     summaries alone.
//   - The figures of workflow.phase.completed and workflow.finalized do not count.
//
// Sums stop at the highest number.
type RunUsage struct {
	Usage   Usage        `json:"usage"`            // tokens
	CostUSD Opt[float64] `json:"costUsd,omitzero"` // US dollars; absent when no cost is known
	// Partial means that a report that counts is partial: more was used.
	Partial bool `json:"partial,omitzero"`
	// Models is the usage by model name, with the cost that is known. Usage that names no model
	// counts for AgentStarted.Model; without one it is missing here. If an end has usage and does
	// not name which of several models it concerns, the reports of each model stand.
	Models map[string]Usage `json:"models"`
	// Unassigned is the usage that events without an agent reported.
	Unassigned AgentUsage `json:"unassigned"`
}

// AgentUsage is the usage that one agent reported: the figures of its current attempt, and of the
// attempts before. [AgentUsage.Total] tells which figures count.
type AgentUsage struct {
	AttemptUsage
	// Earlier are the earlier attempts, without those that a running total includes; of those
	// without figures the first in a row. The 33rd and the 34th stand for more than one when they
	// are more than 65.
	Earlier []AttemptUsage `json:"earlier"`
}

// AttemptUsage is the usage that one attempt of an agent reported.
//
// The tokens that count are those of Models, else of Ended, else the sum of Reported. The cost is
// CostUSD, else the sum of the costs in Models, else the cost in Reported.
type AttemptUsage struct {
	Sequence uint64           `json:"sequence,omitzero"` // sequence of its start
	Model    string           `json:"model,omitzero"`    // AgentStarted.Model
	Died     bool             `json:"died,omitzero"`     // the agent started again before it ended
	Models   map[string]Usage `json:"models"`            // AgentEnded.ModelUsage
	Ended    Opt[Usage]       `json:"ended,omitzero"`    // AgentEnded.Usage
	CostUSD  Opt[float64]     `json:"costUsd,omitzero"`  // AgentEnded.TotalCostUSD
	Stated   Opt[int64]       `json:"stated,omitzero"`   // AgentEnded.StatedTokens
	Reported []ReportedUsage  `json:"reported"`          // sums of model.returned and usage.observed

	counted []countedCall `wire:"counted,omitzero"` // the latest model calls that returned
}

// ReportedUsage is the sum of some reports of an attempt: of those about one model
// call that has not returned yet, else of all others that name the same model.
type ReportedUsage struct {
	ModelCallID string `json:"modelCallId,omitzero"` // the model call
	Model       string `json:"model,omitzero"`       // the model; empty when the reports name none
	Usage       Usage  `json:"usage"`                // tokens and cost
	Partial     bool   `json:"partial,omitzero"`     // UsageObserved.Partial of one of them
}

// A countedCall is a model call that returned, and the figures of its own.
type countedCall struct {
	id    string `wire:"id"`
	usage bool   `wire:"usage,omitzero"`
	cost  bool   `wire:"cost,omitzero"`
}

// begun reports whether the run has an event.
func (r *RunSnapshot) begun() bool {
	return r.Status != "" && r.Status != RunStatusPending || len(r.NodeStatus) > 0 || len(r.Agents) > 0
}
