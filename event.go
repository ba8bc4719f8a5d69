package agentevents

import (
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/agentevents/agentevents/internal/extra"
	"github.com/agentevents/agentevents/internal/jsonwire"
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

// LogValue makes the event a group of its identity, without its content: kind, run,
// sequence, id, time, and agent, step and marks where it has them. It is for logs of the
// program.
func (e Event) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("kind", string(e.Kind())), slog.String("run", e.RunID), slog.Uint64("sequence", e.Sequence),
		slog.String("id", e.ID), slog.String("time", e.Time.UTC().Format(time.RFC3339Nano)),
	}
	if e.AgentID != "" {
		attrs = append(attrs, slog.String("agent", e.AgentID))
	}
	if e.Step.OK {
		attrs = append(attrs, slog.Int("step", e.Step.V))
	}
	if e.Marks != 0 {
		attrs = append(attrs, slog.String("marks", e.Marks.String()))
	}
	return slog.GroupValue(attrs...)
}

// LogValue makes the error a group of its fields, for logs of the program.
func (e *RuleError) LogValue() slog.Value {
	if e == nil {
		return slog.Value{}
	}
	attrs := []slog.Attr{slog.String("rule", string(e.Rule)), slog.String("kind", string(e.Kind)),
		slog.String("run", e.RunID), slog.Uint64("sequence", e.Sequence)}
	for _, a := range [...]struct{ name, value string }{
		{"agent", e.AgentID}, {"event", e.EventID}, {"pointer", e.Pointer}, {"subject", e.Subject}, {"state", e.State}, {"detail", e.Detail},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.name, a.value))
		}
	}
	return slog.GroupValue(append(attrs, slog.Bool("refused", e.Refused))...)
}

// extras are the extra members of one JSON object: members without a field in its struct.
type extras = extra.Members

// Extra returns the value of a member of the event's line that no field of the envelope has, and ""
// when there is none. Decoders of other formats keep there the members that the vocabulary lacks.
func (e *Event) Extra(name string) JSON {
	for n, value := range e.extra.Unknown() {
		if n == name {
			return JSON(value)
		}
	}
	return ""
}

// Extras yields the members of the event's line that no field of the envelope
// has, in their order.
func (e *Event) Extras() iter.Seq2[string, JSON] {
	return func(yield func(string, JSON) bool) {
		for name, value := range e.extra.Unknown() {
			if !yield(name, JSON(value)) {
				return
			}
		}
	}
}

// SetExtra sets a member of the event's line that no field of the envelope has;
// the empty value removes it. It returns an error when the value is not JSON, which
// [JSONOrString] makes of any text, or the name is a field's. The member is written
// after all others, and passes the redaction step as content.
func (e *Event) SetExtra(name string, value JSON) error {
	if name == "" || !jsonwire.ValidUTF8(name) || extra.Number(envelopeFields[:], name) != 0 {
		return fmt.Errorf("agentevents: %s cannot be the name of an extra member", jsonwire.Brief(name))
	}
	var raw string
	if value != "" {
		var err error
		if raw, err = jsonwire.Compact(string(value)); err != nil {
			return fmt.Errorf("agentevents: extra member %s: %w", jsonwire.Brief(name), err)
		}
	}
	e.extra = e.extra.Set(len(envelopeFields), name, raw)
	return nil
}

// PayloadExtra reports whether the payload, or a value inside it, has members
// of its line that no field has. [Event.AppendJSON] writes them; no
// field shows them.
func (e *Event) PayloadExtra() bool {
	p := ops(e.Payload)
	return p != nil && p.hasExtra()
}

// Origin returns the line that the event was read from by a [Reader] with Verbatim set, however the
// event was changed since. It is empty for other events, and for one that shares its line with
// others. The hash that links a line to the one before it in a tamper-evident file is not part of
// it.
func (e *Event) Origin() string { return e.origin }
