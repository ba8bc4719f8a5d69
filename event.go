package agentevents

import (
	"time"
)

// SchemaVersion is the version of the native log format that this package
// writes. Readers accept any version.
const SchemaVersion = "1.0"

// An Event is one line of a log: an envelope that says when, where and by
// whom, and a [Payload] that says what.
//
// An Event is a value. Its payload is frozen once it was emitted or decoded:
// nobody writes it, anybody may keep it. Fields at their zero value are absent
// on the wire, except Sequence, Time, RunID, ID and the type, which every line
// has. The envelope is the multi-agent wiki's AgentEvent, completed with what
// the other documents need.
type Event struct {
	// ID is unique. The emitter mints UUIDv7; ids read from logs are opaque.
	ID string
	// Sequence counts the accepted events of the run from 0 without gaps
	// (rule sequence).
	Sequence uint64
	// Time is in UTC, stamped in whole milliseconds. Order events by
	// Sequence, never by Time.
	Time time.Time
	// RunID names the whole run.
	RunID string

	Scope

	// AgentID is the agent that acts. Steps and statuses are counted per
	// (run, agent).
	AgentID string
	// Actor is who did it when it was not the agent: user, orchestrator, parent.
	Actor string
	// ParentAgentID and ParentCallID stand on a sub-agent's start: who spawned
	// it, by which tool call.
	ParentAgentID string
	ParentCallID  string
	// Step is 0 or more and never decreases within (run, agent); the events of
	// one step share it (rule step-monotonic). Starts, ends and audits have
	// none.
	Step Opt[int]

	// TraceID, SpanID and ParentSpanID place the event in a trace. Minted
	// here they have W3C sizes in lower-case hex.
	TraceID      string
	SpanID       string
	ParentSpanID string
	// CausationID is the ID of the event that caused this one.
	CausationID string
	// SchemaVersion is the version of the native format; the emitter writes
	// the constant [SchemaVersion].
	SchemaVersion string
	// Marks qualify the event.
	Marks Marks

	// Payload is one of the structs that [Payload] lists. It is never nil in
	// an event that was emitted or decoded.
	Payload Payload

	extra  extras // members of the line that no field holds
	origin string // the line itself, when the reader was asked to keep it
}

// Scope places events inside a session, task, workflow or node. Handles carry
// one, see [Run.With].
type Scope struct {
	SessionID  string // the conversation (wiki, KAOS)
	TaskID     string // the task (wiki)
	WorkflowID string // the workflow (wiki; rule workflow-context)
	Phase      string // the workflow's phase (wiki)
	NodeID     string // the node (OpenWOP, resume spec)
	NodeRunID  string // one execution of the node; what the resume spec's events call runId
}

// Kind returns the kind of the payload, or "" when there is none.
func (e *Event) Kind() Kind {
	k, _ := kindOf(e.Payload)
	return k
}

// Marks are qualifications of an event, a set of bits.
type Marks uint8

// The marks.
const (
	MarkLate      Marks = 1 << iota // a fact that arrived after the terminal event
	MarkSynthetic                   // made up by a reader or bridge, not seen
	MarkReplayed                    // emitted again from a log
	MarkRedacted                    // the redaction step changed the text
	MarkSanitized                   // damaged characters were replaced

	numMarks = iota
)

var markNames = [numMarks]string{"late", "synthetic", "replayed", "redacted", "sanitized"}

// Has reports whether all marks of m are set.
func (s Marks) Has(m Marks) bool { return s&m == m }

// String returns the names, separated by commas.
func (s Marks) String() string {
	var out []byte
	for i, name := range markNames {
		if s&(1<<i) != 0 {
			if out != nil {
				out = append(out, ',')
			}
			out = append(out, name...)
		}
	}
	return string(out)
}

// A Kind names what an event says: the value of "type" on the wire.
type Kind string

// A Payload is the body of an [Event]. The concrete type is a pointer to one
// of these structs and never nil:
//
//   - sessions and runs: [SessionStarted], [SessionCompleted], [RunStarted],
//     [RunPaused], [RunResumed], [RunCompleted], [RunFailed], [RunCancelled]
//   - agents: [AgentStarted], [AgentTransition], [AgentEnded], [AgentErrored],
//     [AgentSessionChanged], [EventRetracted], [ContextCompacted],
//     [TaskAssigned]
//   - reasoning, text, messages: [AgentReasoned], [AgentReasoningDelta],
//     [AgentDecided], [OrchestratorDecided], [IntentClassified],
//     [PlanProposed], [TextDelta], [TextCompleted], [MessageCreated]
//   - tools: [ToolCalled], [ToolArgumentsDelta], [ToolReturned]
//   - handing over: [AgentHandoff], [HandoffRequested], [HandoffAccepted]
//   - structure: [TurnStarted], [TurnEnded], [TurnSummarized], [StepStarted],
//     [StepEnded], [SpanRecorded], [NodeStarted], [NodeCompleted],
//     [NodeFailed], [NodeSkipped], [NodeSuspended], [EdgeFired],
//     [EdgeSkipped], [LoopIterated], [LoopRoundCompleted], [StatePatched]
//   - workflows: [WorkflowCreated], [WorkflowApproved], [PhaseStarted],
//     [PhaseCompleted], [CheckpointSaved], [CheckpointResumed],
//     [WorkflowFinalized]
//   - people: [ApprovalRequested], [ApprovalGranted], [ApprovalRejected],
//     [ClarificationRequested], [ClarificationResolved], [CommandReceived],
//     [CommandConsumed]
//   - assurance: [AuditChecked], [ClaimVerified], [IssueFound],
//     [CitationFound], [EvidenceInsufficient]
//   - resources: [UsageObserved], [BudgetExceeded], [CapBreached],
//     [BlackboardItemCreated], [MemoryChanged]
//
// or to [Unknown], for a kind that this package does not know.
//
// The interface is sealed: a struct of another package that embeds a payload
// satisfies it but is refused by the emitter, as are nil pointers.
type Payload interface {
	kind() Kind
}

// Unknown is a payload of a kind that this package does not know. It folds as
// a count and survives a round trip.
type Unknown struct {
	Type Kind // the kind; never one of the catalog's
	Raw  JSON // the payload's text; empty when the line had none
}

func (u *Unknown) kind() Kind { return u.Type }
