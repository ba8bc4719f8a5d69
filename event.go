package agentevents

import (
	"time"
)

// SchemaVersion is the version of the native log format that this package
// writes. Readers accept any version.
const SchemaVersion = "1.0"

// An Event is one line of a log: an envelope (when, where, by whom) and a [Payload] (the act
// itself).
//
// An Event is a value. Its payload is frozen once the event is emitted or
// decoded: it must not be changed and may be kept. Every line has ID, Sequence,
// Time, RunID and the type; the other fields are absent on the wire at their
// zero value. The envelope is the wiki's AgentEvent with the fields that the
// other documents add.
//
// [Run.Emit] and [Agent.Emit] fill in the envelope. [Run.Record] keeps the
// fields that the caller has set.
type Event struct {
	// ID identifies the event. The emitter mints a UUIDv7 when it is empty. An
	// id read from a log is opaque, and no rule checks that it is unique.
	ID string
	// Sequence counts the accepted events of the run from 0 without gaps
	// (rule sequence). The emitter stamps it.
	Sequence uint64
	// Time is in UTC. The emitter stamps it in whole milliseconds when it is
	// zero. Events are ordered by Sequence, never by Time. A reader gives an event whose line
	// has no time that it can read the start of 1970: see [TimeKnown].
	Time time.Time
	// RunID identifies the run. The emitter fills it in, and refuses the id of another run (rule
	// run).
	RunID string

	Scope

	// AgentID is the agent that acts. Steps and statuses are counted per
	// (run, agent).
	AgentID string
	// Actor is who acts instead of the agent: user, orchestrator, parent.
	Actor string
	// ParentAgentID and ParentCallID are set on a sub-agent's start: the agent
	// that spawned it, and the tool call that it did so with.
	ParentAgentID string
	ParentCallID  string
	// Step is 0 or more and never decreases within (run, agent); the events of
	// one step share it (rule step-monotonic). Agent starts, agent ends and
	// audits have no step. The emitter stamps it when it is absent.
	Step Opt[int]

	// TraceID, SpanID and ParentSpanID place the event in a trace. Ids that a
	// [Tracer] mints are lower-case hex of W3C sizes: 32, 16 and 16 digits.
	TraceID      string
	SpanID       string
	ParentSpanID string
	// CausationID is the ID of the event that caused this one. The emitter
	// fills it in for a [ToolReturned] and a [ModelReturned].
	CausationID string
	// SchemaVersion is the version of the native format; the emitter writes
	// the constant [SchemaVersion].
	SchemaVersion string
	// Marks qualify the event.
	Marks Marks

	// Payload is a pointer to one of the structs that [Payload] lists. It is
	// never nil in an event that was emitted or decoded.
	Payload Payload

	extra  extras // extra members of the envelope
	origin string // the line itself, with ReaderOptions.Verbatim
}

// TimeKnown reports whether t, a time of an event or a snapshot, is one that somebody has stated.
// The start of 1970 in UTC, as the zero Time, stands for one that nobody knows: no duration is
// measured from it or to it.
func TimeKnown(t time.Time) bool {
	return !t.IsZero() && (t.Unix() != 0 || t.Nanosecond() != 0)
}

// Scope places an event inside a session, task, workflow or node. An empty field means that the
// place is not known. Handles carry a scope: see [Run.With].
type Scope struct {
	SessionID  string // the conversation (wiki, KAOS); the emitter fills in the run's: see Run.With
	TaskID     string // the task (wiki)
	WorkflowID string // the workflow (wiki; rule workflow-context)
	Phase      string // the workflow's phase, by name (wiki; rule workflow-context)
	NodeID     string // the node (OpenWOP, resume spec)
	NodeRunID  string // one execution of the node; runId in the resume spec's events
}

// Kind returns the kind of the payload, or "" without a payload.
func (e *Event) Kind() Kind {
	k, _ := kindOf(e.Payload)
	return k
}

// Marks are a set of bits that qualify an event.
type Marks uint8

// The marks.
const (
	MarkLate      Marks = 1 << iota // the fact arrived after its agent or run had come to an end
	MarkSynthetic                   // a decoder, a bridge or the emitter made the event; its producer did not write it
	MarkReplayed                    // the event is emitted again from a log
	MarkRedacted                    // the redaction step changed the text
	MarkSanitized                   // content was given a form that a line can carry: see EmitterOptions.MaxLine and JSON
	MarkIllegal                     // the event was recorded in spite of a rule: see [ModeObserve]

	numMarks = iota
)

var markNames = [numMarks]string{"late", "synthetic", "replayed", "redacted", "sanitized", "illegal"}

// Has reports whether all marks of m are set in s.
func (s Marks) Has(m Marks) bool { return s&m == m }

// String returns the names of the marks, separated by commas.
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

// A Kind is the type of an event. It is the value of "type" on the wire.
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
//   - models: [ModelCalled], [ModelReturned]
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
// or to [Unknown], when this package does not know the kind.
//
// A field that must be set has check:"required" in its tag or "required" in its comment (rule
// field-required). The comment of a field tells if the emitter fills it in. Durations are in
// milliseconds on the wire, costs are in US dollars.
//
// The interface is sealed: a struct of another package that embeds a payload
// satisfies it, but the emitter refuses it, as it refuses a nil pointer (rule
// payload).
type Payload interface {
	kind() Kind
}

// Unknown is the payload of a kind that this package does not know. A fold
// counts it, and it survives a round trip.
type Unknown struct {
	Type Kind // the kind; required, and not in the catalog (rule payload)
	Raw  JSON // the payload as text; empty when the line has no payload
}

func (u *Unknown) kind() Kind { return u.Type }
