package agentevents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every rule is shown three times: by an emitter that enforces, by one that observes, and by a
// fold. They share one machine, so an event that one accepts the others must accept.

// rulesRun is the run of all cases.
const rulesRun = "run-1"

var rulesEpoch = time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)

// A ruleCase is a legal log and the event it is about.
type ruleCase struct {
	name      string
	rule      Rule
	lifecycle Lifecycle
	log       []Event // legal; recorded before last
	last      Event
	refused   bool // last breaks the rule, else it is accepted
	foldOnly  bool // an emitter cannot be asked for it: it numbers events itself
}

// ev is an event of an agent, or of the run when agent is "".
func ev(agent string, p Payload, set ...func(*Event)) Event {
	e := Event{AgentID: agent, Payload: p}
	for _, f := range set {
		f(&e)
	}
	return e
}

func atStep(n int) func(*Event)          { return func(e *Event) { e.Step = Some(n) } }
func marked(m Marks) func(*Event)        { return func(e *Event) { e.Marks |= m } }
func withID(id string) func(*Event)      { return func(e *Event) { e.ID = id } }
func causedBy(id string) func(*Event)    { return func(e *Event) { e.CausationID = id } }
func atSequence(n uint64) func(*Event)   { return func(e *Event) { e.Sequence = n } }
func atTime(t time.Time) func(*Event)    { return func(e *Event) { e.Time = t } }
func inRun(id string) func(*Event)       { return func(e *Event) { e.RunID = id } }
func scoped(s Scope) func(*Event)        { return func(e *Event) { e.Scope = s } }
func spanned(id, up string) func(*Event) { return func(e *Event) { e.SpanID, e.ParentSpanID = id, up } }

func started() *AgentStarted { return &AgentStarted{Task: "Add /v2/health"} }

// moves is a start and a path of transitions of the agent "a".
func moves(path ...AgentStatus) []Event {
	log := []Event{ev("a", started())}
	from := StatusThinking
	for _, to := range path {
		log = append(log, ev("a", &AgentTransition{From: from, To: to}))
		from = to
	}
	return log
}

func logOf(parts ...[]Event) []Event {
	var log []Event
	for _, p := range parts {
		log = append(log, p...)
	}
	return log
}

func asked(id string) *ModelCalled { return &ModelCalled{ModelCallID: id} }

func answered(id string) *ModelReturned { return &ModelReturned{ModelCallID: id} }

func call(id string) *ToolCalled { return &ToolCalled{CallID: id, ToolID: "Read"} }
func returned(id string, s ToolStatus) *ToolReturned {
	return &ToolReturned{CallID: id, ToolID: "Read", Status: s}
}
func audit(r AuditResult) *AuditChecked {
	return &AuditChecked{CheckpointID: "audit:tests", Result: r}
}
func says(id, group string) *MessageCreated {
	return &MessageCreated{Message: ConversationMessage{MessageID: id, From: "a", GroupID: group, Content: `"hello"`, TS: 1}}
}
func ref(id string) AgentRef { return AgentRef{AgentID: id} }

var (
	inGroup    = AgentRef{AgentID: "a", AgentSharing: SharingGroup("review")}
	groupStart = &AgentStarted{Agent: Some(inGroup)}
	inWorkflow = scoped(Scope{WorkflowID: "w"})
	inScout    = scoped(Scope{WorkflowID: "w", Phase: "scout"})
	inBuild    = scoped(Scope{WorkflowID: "w", Phase: "build"})
	done       = ev("", &RunCompleted{})
)

var ruleCases = []ruleCase{
	// The payload is one of this package's.
	{name: "a struct of the catalog", rule: RulePayload, last: ev("", &RunPaused{})},
	{name: "an unknown kind", rule: RulePayload, last: ev("", &Unknown{Type: "vendor.thing", Raw: `{"a":1}`})},
	{name: "no payload", rule: RulePayload, last: ev("", nil), refused: true},
	{name: "a nil pointer", rule: RulePayload, last: ev("", (*RunPaused)(nil)), refused: true},
	{name: "a foreign struct that embeds a payload", rule: RulePayload, last: ev("", foreignPayload{call("c")}), refused: true},
	{name: "a known kind as Unknown", rule: RulePayload, last: ev("", &Unknown{Type: KindRunPaused, Raw: `{}`}), refused: true},

	// Ids of events are opaque: no rule demands that they differ.
	{name: "two events with one id", rule: RuleSequence, log: []Event{ev("", &RunPaused{}, withID("e"))}, last: ev("", &RunResumed{}, withID("e"))},

	// Field rules.
	{name: "ids are there", rule: RuleFieldRequired, last: ev("a", call("c1"))},
	{name: "no call id", rule: RuleFieldRequired, last: ev("a", call("")), refused: true},
	{name: "no tool status", rule: RuleFieldRequired, log: []Event{ev("a", call("c1"))}, last: ev("a", returned("c1", "")), refused: true},
	{name: "no id in an agent ref", rule: RuleFieldRequired, last: ev("a", &AgentStarted{Agent: Some(AgentRef{})}), refused: true},
	{name: "every word of a closed list", rule: RuleFieldEnum, last: ev("a", &AgentEnded{Outcome: OutcomeEscaped})},
	{name: "a word of no list", rule: RuleFieldEnum, last: ev("a", &AgentEnded{Outcome: "finished"}), refused: true},
	{name: "a status of no list", rule: RuleFieldEnum, last: ev("a", &AgentTransition{From: StatusThinking, To: "dreaming"}), refused: true},
	{name: "a sharing of no list", rule: RuleFieldEnum, last: ev("a", &AgentStarted{Agent: Some(AgentRef{AgentID: "a", AgentSharing: "shared:"})}), refused: true},
	{name: "the bounds of the score", rule: RuleFieldRange, last: ev("a", &AgentEnded{ConvergenceScore: Some(1.0)})},
	{name: "zero is a score", rule: RuleFieldRange, last: ev("a", &AgentEnded{ConvergenceScore: Some(0.0)})},
	{name: "above the score", rule: RuleFieldRange, last: ev("a", &AgentEnded{ConvergenceScore: Some(1.01)}), refused: true},
	{name: "no number as confidence", rule: RuleFieldRange, last: ev("a", &AgentDecided{Decision: "1", Confidence: Some(-0.1)}), refused: true},
	{name: "a negative duration", rule: RuleFieldRange, last: ev("a", &AgentEnded{Duration: Some(-time.Second)}), refused: true},
	{name: "a negative step", rule: RuleFieldRange, last: ev("a", &TextCompleted{Text: "x"}, atStep(-1)), refused: true},
	{name: "audits add up", rule: RuleFieldRange, last: ev("a", &AgentEnded{Totals: Some(Totals{AuditCheckpoints: 3, AuditsPassed: 2, AuditsFailed: 1})})},
	{name: "more verdicts than audits", rule: RuleFieldRange, last: ev("a", &AgentEnded{Totals: Some(Totals{AuditCheckpoints: 2, AuditsPassed: 2, AuditsFailed: 1})}), refused: true},
	{name: "evidence is an object", rule: RuleFieldRange, last: ev("a", &AuditChecked{CheckpointID: "c", Result: AuditPass, Evidence: ` {"n":1}`})},
	{name: "evidence is a list", rule: RuleFieldRange, last: ev("a", &AuditChecked{CheckpointID: "c", Result: AuditPass, Evidence: `[1]`}), refused: true},
	{name: "a loop counts from 1", rule: RuleFieldRange, last: ev("", &LoopIterated{Iteration: 0}), refused: true},
	{name: "a path that only a bomb has", rule: RuleFieldRange, last: ev("", &StatePatched{Op: PatchSet, Path: deepPath(101), Value: "1"}), refused: true},
	{name: "the whole state is a number", rule: RuleFieldRange, last: ev("", &StatePatched{Op: PatchSet, Value: "7"}), refused: true},
	{name: "the whole state is a list", rule: RuleFieldRange, last: ev("", &StatePatched{Op: PatchSet, Value: " [1,2]"}), refused: true},
	{name: "a number is merged into the whole state", rule: RuleFieldRange, last: ev("", &StatePatched{Op: PatchMerge, Value: "7"}), refused: true},
	{name: "null is merged into the whole state", rule: RuleFieldRange, last: ev("", &StatePatched{Op: PatchMerge, Value: "null"}), refused: true},
	{name: "the whole state is an object", rule: RuleFieldRange, last: ev("", &StatePatched{Op: PatchSet, Value: ` {"a":1}`})},
	{name: "the whole state is null", rule: RuleFieldRange, last: ev("", &StatePatched{Op: PatchSet, Value: "null"})},
	{name: "the whole state is text", rule: RuleFieldRange, last: ev("", &StatePatched{Op: PatchSet, Value: "no JSON"})},
	{name: "a patch without a value", rule: RuleFieldRequired, last: ev("", &StatePatched{Op: PatchSet, Path: "a"}), refused: true},
	{name: "a removal without a value", rule: RuleFieldRequired, last: ev("", &StatePatched{Op: PatchRemove, Path: "a"})},
	{name: "a removal with too deep a path", rule: RuleFieldRange, last: ev("", &StatePatched{Op: PatchRemove, Path: deepPath(101)}), refused: true},
	{name: "a deep path", rule: RuleFieldRange, last: ev("", &StatePatched{Op: PatchSet, Path: deepPath(100), Value: "1"})},
	{name: "any script in an id", rule: RuleFieldUTF8, last: ev("агент", started())},
	{name: "damaged content is repaired, not refused", rule: RuleFieldUTF8, last: ev("a", &TextCompleted{Text: "caf\xff"})},
	{name: "a damaged agent id", rule: RuleFieldUTF8, last: ev("a\xff", started()), refused: true},
	{name: "a damaged call id", rule: RuleFieldUTF8, last: ev("a", call("c\xff")), refused: true},
	{name: "raw JSON with blanks", rule: RuleFieldJSON, last: ev("a", &AgentDecided{Decision: "{ \"a\" : 1 }\n"})},
	{name: "raw JSON cut off is recorded as a string", rule: RuleFieldJSON, last: ev("a", &AgentDecided{Decision: `{"a":`})},
	{name: "so is raw JSON with a name twice", rule: RuleFieldJSON, last: ev("a", &AgentDecided{Decision: `{"a":1,"a":2}`})},
	{name: "evidence that is not JSON is recorded as an object", rule: RuleFieldRange, last: ev("a", &AuditChecked{CheckpointID: "c", Result: AuditPass, Evidence: `{"n":`})},

	// The line.
	{name: "content that is too long is cut", rule: RuleLineLength, last: ev("a", &TextCompleted{Text: strings.Repeat("x", DefaultMaxLine)})},
	{name: "an id that is too long", rule: RuleLineLength, last: ev("a", call(strings.Repeat("x", DefaultMaxLine))), refused: true},

	// agent-started-once.
	{name: "the first start", rule: RuleAgentStartedOnce, last: ev("a", started())},
	{name: "another agent", rule: RuleAgentStartedOnce, log: moves(), last: ev("b", started())},
	{name: "after its end", rule: RuleAgentStartedOnce, log: logOf(moves(), []Event{ev("a", &AgentEnded{})}), last: ev("a", started())},
	{name: "after run.resumed", rule: RuleAgentStartedOnce, log: logOf(moves(StatusToolCall), []Event{ev("", &RunPaused{}), ev("", &RunResumed{})}), last: ev("a", started())},
	{name: "with resumed set", rule: RuleAgentStartedOnce, log: moves(), last: ev("a", &AgentStarted{Resumed: true})},
	{name: "the same node in another execution", rule: RuleAgentStartedOnce,
		log:  []Event{ev("", started(), scoped(Scope{NodeID: "n", NodeRunID: "n#1"}))},
		last: ev("", started(), scoped(Scope{NodeID: "n", NodeRunID: "n#2"}))},
	{name: "another span", rule: RuleAgentStartedOnce, log: []Event{ev("", started(), spanned("s1", ""))}, last: ev("", started(), spanned("s2", "s1"))},
	{name: "twice", rule: RuleAgentStartedOnce, log: moves(StatusToolCall), last: ev("a", started()), refused: true},
	{name: "twice after one run.resumed", rule: RuleAgentStartedOnce, log: logOf(moves(), []Event{ev("", &RunResumed{}), ev("a", started())}), last: ev("a", started()), refused: true},
	{name: "twice, known by its node run", rule: RuleAgentStartedOnce,
		log:  []Event{ev("", started(), scoped(Scope{NodeRunID: "n#1"}))},
		last: ev("", started(), scoped(Scope{NodeRunID: "n#1"})), refused: true},
	{name: "after it has moved", rule: RuleAgentStartedOnce, log: []Event{ev("a", &AgentTransition{From: StatusThinking, To: StatusFailed})}, last: ev("a", started()), refused: true},
	{name: "after it has moved and ended", rule: RuleAgentStartedOnce, log: []Event{ev("a", &AgentTransition{From: StatusThinking, To: StatusFailed}), ev("a", &AgentEnded{})}, last: ev("a", started())},
	{name: "twice, known by its span", rule: RuleAgentStartedOnce, log: []Event{ev("", started(), spanned("s1", ""))}, last: ev("", started(), spanned("s1", "")), refused: true},

	// step-monotonic.
	{name: "the same step again", rule: RuleStepMonotonic, log: []Event{ev("a", call("c1"), atStep(3))}, last: ev("a", returned("c1", ToolStatusOK), atStep(3))},
	{name: "a gap", rule: RuleStepMonotonic, log: []Event{ev("a", call("c1"), atStep(3))}, last: ev("a", returned("c1", ToolStatusOK), atStep(9))},
	{name: "another agent has steps of its own", rule: RuleStepMonotonic, log: []Event{ev("a", call("c1"), atStep(3))}, last: ev("b", call("c1"), atStep(0))},
	{name: "step goes back", rule: RuleStepMonotonic, log: []Event{ev("a", call("c1"), atStep(3))}, last: ev("a", returned("c1", ToolStatusOK), atStep(2)), refused: true},
	{name: "a start with a step", rule: RuleStepMonotonic, last: ev("a", started(), atStep(0)), refused: true},
	{name: "an end with a step", rule: RuleStepMonotonic, log: moves(), last: ev("a", &AgentEnded{}, atStep(0)), refused: true},
	{name: "an audit with a step", rule: RuleStepMonotonic, log: moves(), last: ev("a", audit(AuditPass), atStep(0)), refused: true},

	// transition-from-current.
	{name: "the first is from thinking", rule: RuleTransitionFromCurrent, log: moves(), last: ev("a", &AgentTransition{From: StatusThinking, To: StatusToolCall})},
	{name: "the log need not have the start", rule: RuleTransitionFromCurrent, last: ev("a", &AgentTransition{From: StatusThinking, To: StatusToolCall})},
	{name: "from where it is", rule: RuleTransitionFromCurrent, log: moves(StatusToolCall), last: ev("a", &AgentTransition{From: StatusToolCall, To: StatusToolResult})},
	{name: "from where it was", rule: RuleTransitionFromCurrent, log: moves(StatusToolCall), last: ev("a", &AgentTransition{From: StatusThinking, To: StatusToolCall}), refused: true},
	{name: "the first is not from response", rule: RuleTransitionFromCurrent, log: moves(), last: ev("a", &AgentTransition{From: StatusResponse, To: StatusReflect}), refused: true},
	{name: "a new start begins at thinking", rule: RuleTransitionFromCurrent,
		log: logOf(moves(StatusToolCall), []Event{ev("a", &AgentEnded{}), ev("a", started())}), last: ev("a", &AgentTransition{From: StatusThinking, To: StatusToolCall})},

	// transition-legal: the pairs are in TestTransitionTables.
	{name: "an edge of the table", rule: RuleTransitionLegal, log: moves(), last: ev("a", &AgentTransition{From: StatusThinking, To: StatusBlockedOnClarification})},
	{name: "no edge of the strict table", rule: RuleTransitionLegal, log: moves(), last: ev("a", &AgentTransition{From: StatusThinking, To: StatusResponse}), refused: true},
	{name: "an edge of the relaxed table", rule: RuleTransitionLegal, lifecycle: LifecycleRelaxed, log: moves(), last: ev("a", &AgentTransition{From: StatusThinking, To: StatusResponse})},
	{name: "a further turn after converged, relaxed", rule: RuleTransitionLegal, lifecycle: LifecycleRelaxed,
		log: moves(StatusResponse, StatusConverged), last: ev("a", &AgentTransition{From: StatusConverged, To: StatusThinking})},
	{name: "no edge of the relaxed table", rule: RuleTransitionLegal, lifecycle: LifecycleRelaxed, log: moves(), last: ev("a", &AgentTransition{From: StatusThinking, To: StatusConverged}), refused: true},
	{name: "converged goes nowhere else, relaxed", rule: RuleTransitionLegal, lifecycle: LifecycleRelaxed,
		log: moves(StatusResponse, StatusConverged), last: ev("a", &AgentTransition{From: StatusConverged, To: StatusToolCall}), refused: true},

	// agent-ended-final.
	{name: "audits after the end", rule: RuleAgentEndedFinal, log: logOf(moves(), []Event{ev("a", &AgentEnded{})}), last: ev("a", audit(AuditFail))},
	{name: "usage after the end", rule: RuleAgentEndedFinal, log: logOf(moves(), []Event{ev("a", &AgentEnded{})}), last: ev("a", &UsageObserved{})},
	{name: "audits after converged", rule: RuleAgentEndedFinal, log: moves(StatusToolCall, StatusToolResult, StatusResponse, StatusReflect, StatusConverged), last: ev("a", audit(AuditPass))},
	{name: "a late fact after the end", rule: RuleAgentEndedFinal, log: logOf(moves(), []Event{ev("a", &AgentEnded{})}), last: ev("a", &TextCompleted{Text: "late"}, marked(MarkLate))},
	{name: "a task for an agent that ended", rule: RuleAgentEndedFinal, log: logOf(moves(), []Event{ev("a", &AgentEnded{})}), last: ev("a", &TaskAssigned{Goal: "again"})},
	{name: "an act after the end", rule: RuleAgentEndedFinal, log: logOf(moves(), []Event{ev("a", &AgentEnded{})}), last: ev("a", &TextCompleted{Text: "more"}), refused: true},
	{name: "an act after the end of the only node", rule: RuleAgentEndedFinal, log: []Event{ev("", started(), scoped(Scope{NodeID: "n", NodeRunID: "x"})), ev("", &NodeCompleted{}, scoped(Scope{NodeID: "n", NodeRunID: "x"}))},
		last: ev("", &TextCompleted{Text: "more"}, scoped(Scope{NodeID: "n", NodeRunID: "x"})), refused: true},
	{name: "an agent that acts in a node which ended", rule: RuleAgentEndedFinal, log: []Event{ev("a", started(), scoped(Scope{NodeID: "n", NodeRunID: "x"})), ev("", &NodeCompleted{}, scoped(Scope{NodeID: "n", NodeRunID: "x"}))},
		last: ev("a", &TextCompleted{Text: "more"}, scoped(Scope{NodeID: "n", NodeRunID: "x"}))},
	{name: "an act after converged", rule: RuleAgentEndedFinal, log: moves(StatusToolCall, StatusToolResult, StatusResponse, StatusReflect, StatusConverged), last: ev("a", call("c1")), refused: true},
	{name: "an act after failed", rule: RuleAgentEndedFinal, log: moves(StatusFailed), last: ev("a", &AgentErrored{ErrorType: "x", Message: "y"}), refused: true},
	{name: "an act after converged, relaxed", rule: RuleAgentEndedFinal, lifecycle: LifecycleRelaxed, log: moves(StatusResponse, StatusConverged), last: ev("a", call("c1")), refused: true},
	{name: "a transition after converged", rule: RuleAgentEndedFinal, log: moves(StatusToolCall, StatusToolResult, StatusResponse, StatusReflect, StatusConverged), last: ev("a", &AgentTransition{From: StatusConverged, To: StatusThinking}), refused: true},
	{name: "a transition after failed, relaxed", rule: RuleAgentEndedFinal, lifecycle: LifecycleRelaxed, log: moves(StatusFailed), last: ev("a", &AgentTransition{From: StatusFailed, To: StatusThinking}), refused: true},
	{name: "a transition after the end", rule: RuleAgentEndedFinal, log: logOf(moves(), []Event{ev("a", &AgentEnded{})}), last: ev("a", &AgentTransition{From: StatusThinking, To: StatusToolCall}), refused: true},
	{name: "ended twice", rule: RuleAgentEndedFinal, log: logOf(moves(), []Event{ev("a", &AgentEnded{})}), last: ev("a", &AgentEnded{}), refused: true},
	{name: "a late second end", rule: RuleAgentEndedFinal, log: logOf(moves(), []Event{ev("a", &AgentEnded{})}), last: ev("a", &AgentEnded{}, marked(MarkLate))},

	// ended-totals: a log may be a part of the run, so totals may be above the log's counts, never
	// below.
	{name: "totals as counted", rule: RuleEndedTotals, log: countedLog, last: ev("a", &AgentEnded{Totals: Some(Totals{1, 2, 3, 1, 1, ""})})},
	{name: "totals above what was counted", rule: RuleEndedTotals, log: countedLog, last: ev("a", &AgentEnded{Totals: Some(Totals{12, 7, 5, 2, 2, ""})})},
	{name: "totals left out", rule: RuleEndedTotals, log: countedLog, last: ev("a", &AgentEnded{})},
	{name: "too few steps", rule: RuleEndedTotals, log: countedLog, last: ev("a", &AgentEnded{Totals: Some(Totals{0, 2, 3, 1, 1, ""})}), refused: true},
	{name: "too few calls", rule: RuleEndedTotals, log: countedLog, last: ev("a", &AgentEnded{Totals: Some(Totals{1, 1, 3, 1, 1, ""})}), refused: true},
	{name: "too few audits", rule: RuleEndedTotals, log: countedLog, last: ev("a", &AgentEnded{Totals: Some(Totals{1, 2, 2, 1, 1, ""})}), refused: true},
	{name: "too few passed", rule: RuleEndedTotals, log: countedLog, last: ev("a", &AgentEnded{Totals: Some(Totals{1, 2, 3, 0, 1, ""})}), refused: true},
	{name: "too few failed", rule: RuleEndedTotals, log: countedLog, last: ev("a", &AgentEnded{Totals: Some(Totals{1, 2, 3, 1, 0, ""})}), refused: true},
	{name: "a new attempt counts from 0", rule: RuleEndedTotals, log: logOf(countedLog, []Event{ev("a", &AgentEnded{}), ev("a", started())}),
		last: ev("a", &AgentEnded{Totals: Some(Totals{})})},

	// tool-call-open.
	{name: "a return of an open call", rule: RuleToolCallOpen, log: []Event{ev("a", call("c1"))}, last: ev("a", returned("c1", ToolStatusOK))},
	{name: "calls overlap and return in any order", rule: RuleToolCallOpen, log: []Event{ev("a", call("c1")), ev("a", call("c2")), ev("a", returned("c1", ToolStatusError))}, last: ev("a", returned("c2", ToolStatusOK))},
	{name: "a call id again after its return", rule: RuleToolCallOpen, log: []Event{ev("a", call("c1")), ev("a", returned("c1", ToolStatusOK))}, last: ev("a", call("c1"))},
	{name: "the same call id of another agent", rule: RuleToolCallOpen, log: []Event{ev("a", call("c1"))}, last: ev("b", call("c1"))},
	{name: "a call outside any agent", rule: RuleToolCallOpen, log: []Event{ev("", call("c1"))}, last: ev("", returned("c1", ToolStatusOK))},
	{name: "one event is a whole call", rule: RuleToolCallOpen, last: ev("a", &ToolReturned{CallID: "c1", ToolID: "Read", Status: ToolStatusOK, OneEvent: true})},
	{name: "one event closes no other call", rule: RuleToolCallOpen, log: []Event{ev("a", call("c1")), ev("a", &ToolReturned{CallID: "c1", ToolID: "Read", Status: ToolStatusOK, OneEvent: true})},
		last: ev("a", returned("c1", ToolStatusOK))},
	{name: "forbidden before any call", rule: RuleToolCallOpen, last: ev("a", returned("c1", ToolStatusForbidden))},
	{name: "rate limited before any call", rule: RuleToolCallOpen, last: ev("a", returned("c1", ToolStatusRateLimited))},
	{name: "a return without a call", rule: RuleToolCallOpen, last: ev("a", returned("c1", ToolStatusOK)), refused: true},
	{name: "cancelled without a call", rule: RuleToolCallOpen, last: ev("a", returned("c1", ToolStatusCancelled)), refused: true},
	{name: "a second return", rule: RuleToolCallOpen, log: []Event{ev("a", call("c1")), ev("a", returned("c1", ToolStatusOK))}, last: ev("a", returned("c1", ToolStatusOK)), refused: true},
	{name: "a return to another agent's call", rule: RuleToolCallOpen, log: []Event{ev("a", call("c1"))}, last: ev("b", returned("c1", ToolStatusOK)), refused: true},
	{name: "a call id while open", rule: RuleToolCallOpen, log: []Event{ev("a", call("c1"))}, last: ev("a", call("c1")), refused: true},

	// tool-causation.
	// model-call-open.
	{name: "a return of an open model call", rule: RuleModelCallOpen, log: []Event{ev("a", asked("m1"))}, last: ev("a", answered("m1"))},
	{name: "model calls overlap and return in any order", rule: RuleModelCallOpen, log: []Event{ev("a", asked("m1")), ev("a", asked("m2")), ev("a", answered("m1"))}, last: ev("a", answered("m2"))},
	{name: "a model call id again after its return", rule: RuleModelCallOpen, log: []Event{ev("a", asked("m1")), ev("a", answered("m1"))}, last: ev("a", asked("m1"))},
	{name: "the same model call id of another agent", rule: RuleModelCallOpen, log: []Event{ev("a", asked("m1"))}, last: ev("b", asked("m1"))},
	{name: "a model call id that is a tool call's", rule: RuleModelCallOpen, log: []Event{ev("a", call("m1"))}, last: ev("a", asked("m1"))},
	{name: "a model call outside any agent", rule: RuleModelCallOpen, log: []Event{ev("", asked("m1"))}, last: ev("", answered("m1"))},
	{name: "one event is a whole model call", rule: RuleModelCallOpen, last: ev("a", &ModelReturned{ModelCallID: "m1", OneEvent: true})},
	{name: "one event closes no other model call", rule: RuleModelCallOpen, log: []Event{ev("a", asked("m1")), ev("a", &ModelReturned{ModelCallID: "m1", OneEvent: true})}, last: ev("a", answered("m1"))},
	{name: "a return without a model call", rule: RuleModelCallOpen, last: ev("a", answered("m1")), refused: true},
	{name: "a return of a tool call", rule: RuleModelCallOpen, log: []Event{ev("a", call("m1"))}, last: ev("a", answered("m1")), refused: true},
	{name: "a second return of a model call", rule: RuleModelCallOpen, log: []Event{ev("a", asked("m1")), ev("a", answered("m1"))}, last: ev("a", answered("m1")), refused: true},
	{name: "a return to another agent's model call", rule: RuleModelCallOpen, log: []Event{ev("a", asked("m1"))}, last: ev("b", answered("m1")), refused: true},
	{name: "a model call id while open", rule: RuleModelCallOpen, log: []Event{ev("a", asked("m1"))}, last: ev("a", asked("m1")), refused: true},
	{name: "a model call of an agent that has ended", rule: RuleAgentEndedFinal, log: []Event{ev("a", started()), ev("a", &AgentEnded{})}, last: ev("a", asked("m1")), refused: true},
	{name: "a model's answer to an agent that has ended", rule: RuleAgentEndedFinal, log: []Event{ev("a", started()), ev("a", asked("m1")), ev("a", &AgentEnded{})}, last: ev("a", answered("m1")), refused: true},

	// model-causation.
	{name: "caused by its model call", rule: RuleModelCausation, log: []Event{ev("a", asked("m1"), withID("the-call"))}, last: ev("a", answered("m1"), causedBy("the-call"))},
	{name: "one model call in one event has any cause", rule: RuleModelCausation, last: ev("a", &ModelReturned{ModelCallID: "m1", OneEvent: true}, causedBy("a plan"))},
	{name: "a model's answer caused by something else", rule: RuleModelCausation, log: []Event{ev("a", asked("m1"), withID("the-call"))}, last: ev("a", answered("m1"), causedBy("another")), refused: true},

	// tool-causation.
	{name: "caused by its call", rule: RuleToolCausation, log: []Event{ev("a", call("c1"), withID("the-call"))}, last: ev("a", returned("c1", ToolStatusOK), causedBy("the-call"))},
	{name: "one event has any cause", rule: RuleToolCausation, last: ev("a", &ToolReturned{CallID: "c1", ToolID: "Read", Status: ToolStatusOK, OneEvent: true}, causedBy("a plan"))},
	{name: "caused by something else", rule: RuleToolCausation, log: []Event{ev("a", call("c1"), withID("the-call"))}, last: ev("a", returned("c1", ToolStatusOK), causedBy("another")), refused: true},

	// delta-index.
	{name: "the first delta is 0", rule: RuleDeltaIndex, last: ev("a", &TextDelta{BlockID: "b1", Delta: "I", Index: Some(0)})},
	{name: "the next delta", rule: RuleDeltaIndex, log: []Event{ev("a", &TextDelta{BlockID: "b1", Delta: "I", Index: Some(0)})}, last: ev("a", &TextDelta{BlockID: "b1", Delta: "'ll", Index: Some(1)})},
	{name: "blocks count by themselves", rule: RuleDeltaIndex, log: []Event{ev("a", &TextDelta{BlockID: "b1", Delta: "I", Index: Some(0)})}, last: ev("a", &TextDelta{BlockID: "b2", Delta: "We", Index: Some(0)})},
	{name: "reasoning counts by itself", rule: RuleDeltaIndex, log: []Event{ev("a", &TextDelta{BlockID: "b1", Delta: "I", Index: Some(0)})}, last: ev("a", &AgentReasoningDelta{BlockID: "b1", Delta: "Hm", Index: Some(0)})},
	{name: "deltas need no number", rule: RuleDeltaIndex, log: []Event{ev("a", &TextDelta{BlockID: "b1", Delta: "I", Index: Some(0)})}, last: ev("a", &TextDelta{BlockID: "b1", Delta: "'ll"})},
	{name: "a block without a name begins again", rule: RuleDeltaIndex, log: []Event{ev("a", &TextDelta{Delta: "I", Index: Some(0)})}, last: ev("a", &TextDelta{Delta: "We", Index: Some(0)})},
	{name: "a call ends a block without a name", rule: RuleDeltaIndex, log: []Event{
		ev("a", &TextDelta{Delta: "I", Index: Some(0)}), ev("a", call("c1")), ev("a", &TextDelta{Delta: "We"}),
	}, last: ev("a", &TextDelta{Delta: "'ll", Index: Some(1)}), refused: true},
	{name: "a whole call in one event ends it too", rule: RuleDeltaIndex, log: []Event{
		ev("a", &TextDelta{Delta: "I", Index: Some(0)}), ev("a", &ToolReturned{CallID: "c1", ToolID: "Read", Status: ToolStatusOK, OneEvent: true}), ev("a", &TextDelta{Delta: "We"}),
	}, last: ev("a", &TextDelta{Delta: "'ll", Index: Some(1)}), refused: true},
	{name: "a refusal in one event does not", rule: RuleDeltaIndex, log: []Event{
		ev("a", &TextDelta{Delta: "I", Index: Some(0)}), ev("a", &ToolReturned{CallID: "c1", ToolID: "Read", Status: ToolStatusForbidden, OneEvent: true}), ev("a", &TextDelta{Delta: "'ll"}),
	}, last: ev("a", &TextDelta{Delta: " go", Index: Some(1)})},
	{name: "a delta after the whole block", rule: RuleDeltaIndex, log: []Event{
		ev("a", &TextDelta{BlockID: "b1", Delta: "I", Index: Some(0)}), ev("a", &TextCompleted{BlockID: "b1", Text: "I will"}),
	}, last: ev("a", &TextDelta{BlockID: "b1", Delta: " will", Index: Some(1)})},
	{name: "a delta left out", rule: RuleDeltaIndex, log: []Event{ev("a", &TextDelta{BlockID: "b1", Delta: "I", Index: Some(0)})}, last: ev("a", &TextDelta{BlockID: "b1", Delta: "by", Index: Some(2)}), refused: true},
	{name: "a delta twice", rule: RuleDeltaIndex, log: []Event{ev("a", &AgentReasoningDelta{BlockID: "b1", Delta: "I", Index: Some(0)})}, last: ev("a", &AgentReasoningDelta{BlockID: "b1", Delta: "I", Index: Some(0)}), refused: true},
	{name: "arguments begin in the middle", rule: RuleDeltaIndex, log: []Event{ev("a", call("c1"))}, last: ev("a", &ToolArgumentsDelta{CallID: "c1", Delta: `{"a`, Index: Some(1)}), refused: true},

	// run-open.
	{name: "the first event", rule: RuleRunOpen, last: ev("", &RunStarted{Name: "release"})},
	{name: "a session may precede", rule: RuleRunOpen, log: []Event{ev("", &SessionStarted{Goal: "ship"})}, last: ev("", &RunStarted{})},
	{name: "a run need not start", rule: RuleRunOpen, last: ev("", &NodeStarted{}, scoped(Scope{NodeID: "n"}))},
	{name: "something of the run precedes", rule: RuleRunOpen, log: moves(), last: ev("", &RunStarted{}), refused: true},
	{name: "a run starts twice", rule: RuleRunOpen, log: []Event{ev("", &RunStarted{})}, last: ev("", &RunStarted{}), refused: true},

	// terminal-last.
	{name: "a session ends after the run", rule: RuleTerminalLast, log: []Event{done}, last: ev("", &SessionCompleted{Status: "done"})},
	{name: "a session starts after the run", rule: RuleTerminalLast, log: []Event{done}, last: ev("", &SessionStarted{})},
	{name: "an audit after the run", rule: RuleTerminalLast, log: []Event{done}, last: ev("", audit(AuditPass))},
	{name: "usage after the run", rule: RuleTerminalLast, log: []Event{done}, last: ev("", &UsageObserved{})},
	{name: "a late event after the run", rule: RuleTerminalLast, log: []Event{done}, last: ev("a", &TextCompleted{Text: "x"}, marked(MarkLate))},
	{name: "a run ends with a tool call open", rule: RuleTerminalLast, log: []Event{ev("a", call("c1"))}, last: done},
	{name: "a run ends with a model call open", rule: RuleTerminalLast, log: []Event{ev("a", asked("m1"))}, last: done},
	{name: "an act after run.completed", rule: RuleTerminalLast, log: []Event{done}, last: ev("a", &TextCompleted{Text: "x"}), refused: true},
	{name: "an end after run.failed", rule: RuleTerminalLast, log: []Event{ev("a", started()), ev("", &RunFailed{})}, last: ev("a", &AgentEnded{}), refused: true},
	{name: "run.resumed after run.cancelled", rule: RuleTerminalLast, log: []Event{ev("", &RunCancelled{})}, last: ev("", &RunResumed{}), refused: true},
	{name: "ended twice", rule: RuleTerminalLast, log: []Event{done}, last: ev("", &RunFailed{}), refused: true},
	{name: "an unknown kind after the run", rule: RuleTerminalLast, log: []Event{done}, last: ev("", &Unknown{Type: "vendor.thing"}), refused: true},

	// phase-open.
	{name: "a phase ends", rule: RulePhaseOpen, log: []Event{ev("", &PhaseStarted{}, inScout)}, last: ev("", &PhaseCompleted{}, inScout)},
	{name: "a phase opened twice ends twice", rule: RulePhaseOpen,
		log: []Event{ev("", &PhaseStarted{}, inScout), ev("", &PhaseStarted{}, inScout), ev("", &PhaseCompleted{}, inScout)}, last: ev("", &PhaseCompleted{}, inScout)},
	{name: "a phase opened twice, before and after a restart", rule: RulePhaseOpen,
		log: []Event{ev("", &PhaseStarted{}, inScout), ev("", &CheckpointResumed{ResumedAt: second(9)}, inBuild), ev("", &PhaseStarted{}, inScout)}, last: ev("", &PhaseCompleted{}, inScout)},
	{name: "a phase that started again ends twice", rule: RulePhaseOpen, refused: true,
		log: []Event{ev("", &PhaseStarted{}, inScout), ev("", &CheckpointResumed{ResumedAt: second(9)}, inBuild), ev("", &PhaseStarted{}, inScout), ev("", &PhaseCompleted{}, inScout)}, last: ev("", &PhaseCompleted{}, inScout)},
	{name: "phases overlap", rule: RulePhaseOpen, log: []Event{ev("", &PhaseStarted{}, inScout), ev("", &PhaseStarted{}, inBuild)}, last: ev("", &PhaseCompleted{}, inScout)},
	{name: "a phase that did not start", rule: RulePhaseOpen, last: ev("", &PhaseCompleted{}, inScout), refused: true},
	{name: "another phase", rule: RulePhaseOpen, log: []Event{ev("", &PhaseStarted{}, inScout)}, last: ev("", &PhaseCompleted{}, inBuild), refused: true},
	{name: "the phase of another workflow", rule: RulePhaseOpen, log: []Event{ev("", &PhaseStarted{}, inScout)}, last: ev("", &PhaseCompleted{}, scoped(Scope{WorkflowID: "v", Phase: "scout"})), refused: true},
	{name: "a phase ends twice", rule: RulePhaseOpen, log: []Event{ev("", &PhaseStarted{}, inScout), ev("", &PhaseCompleted{}, inScout)}, last: ev("", &PhaseCompleted{}, inScout), refused: true},

	// approval-open.
	{name: "granted", rule: RuleApprovalOpen, log: []Event{ev("a", &ApprovalRequested{ApprovalID: "p"})}, last: ev("", &ApprovalGranted{ApprovalID: "p"})},
	{name: "rejected", rule: RuleApprovalOpen, log: []Event{ev("a", &ApprovalRequested{ApprovalID: "p"})}, last: ev("", &ApprovalRejected{ApprovalID: "p"})},
	{name: "asked again", rule: RuleApprovalOpen, log: []Event{ev("a", &ApprovalRequested{ApprovalID: "p"}), ev("", &ApprovalRejected{ApprovalID: "p"}), ev("a", &ApprovalRequested{ApprovalID: "p"})}, last: ev("", &ApprovalGranted{ApprovalID: "p"})},
	{name: "granted unasked", rule: RuleApprovalOpen, last: ev("", &ApprovalGranted{ApprovalID: "p"}), refused: true},
	{name: "rejected unasked", rule: RuleApprovalOpen, log: []Event{ev("a", &ApprovalRequested{ApprovalID: "p"})}, last: ev("", &ApprovalRejected{ApprovalID: "q"}), refused: true},
	{name: "granted after rejected", rule: RuleApprovalOpen, log: []Event{ev("a", &ApprovalRequested{ApprovalID: "p"}), ev("", &ApprovalRejected{ApprovalID: "p"})}, last: ev("", &ApprovalGranted{ApprovalID: "p"}), refused: true},
	{name: "granted in its time", rule: RuleApprovalOpen, log: []Event{ev("a", &ApprovalRequested{ApprovalID: "p", Timeout: Some(time.Second)}, atTime(second(1)))}, last: ev("", &ApprovalGranted{ApprovalID: "p"}, atTime(second(2)))},
	{name: "granted after its time", rule: RuleApprovalOpen, log: []Event{ev("a", &ApprovalRequested{ApprovalID: "p", Timeout: Some(time.Second)}, atTime(second(1)))}, last: ev("", &ApprovalGranted{ApprovalID: "p"}, atTime(second(3))), refused: true},
	{name: "rejected after its time", rule: RuleApprovalOpen, log: []Event{ev("a", &ApprovalRequested{ApprovalID: "p", Timeout: Some(time.Second)}, atTime(second(1)))}, last: ev("", &ApprovalRejected{ApprovalID: "p"}, atTime(second(3)))},
	{name: "asked again after its time", rule: RuleApprovalOpen, log: []Event{ev("a", &ApprovalRequested{ApprovalID: "p", Timeout: Some(time.Second)}, atTime(second(1))), ev("a", &ApprovalRequested{ApprovalID: "p", Timeout: Some(time.Second)}, atTime(second(3)))}, last: ev("", &ApprovalGranted{ApprovalID: "p"}, atTime(second(4)))},

	// approval-binds; see TestApprovalBinds.
	{name: "a call as approved", rule: RuleApprovalBinds, log: []Event{ev("a", &ApprovalRequested{ApprovalID: "p", ToolID: "Read"}), ev("", &ApprovalGranted{ApprovalID: "p"})}, last: ev("a", &ToolCalled{CallID: "c", ToolID: "Read", ApprovalID: "p"})},
	{name: "a call of another tool", rule: RuleApprovalBinds, log: []Event{ev("a", &ApprovalRequested{ApprovalID: "p", ToolID: "Bash"}), ev("", &ApprovalGranted{ApprovalID: "p"})}, last: ev("a", &ToolCalled{CallID: "c", ToolID: "Read", ApprovalID: "p"}), refused: true},
	{name: "a call under no approval", rule: RuleApprovalBinds, last: ev("a", &ToolCalled{CallID: "c", ToolID: "Read", ApprovalID: "p"}), refused: true},

	// handoff-open.
	{name: "accepted by id", rule: RuleHandoffOpen, log: []Event{ev("a", &HandoffRequested{HandoffID: "h", From: ref("a"), To: ref("b")})}, last: ev("b", &HandoffAccepted{HandoffID: "h", From: ref("a"), To: ref("c")})},
	{name: "accepted by the pair", rule: RuleHandoffOpen, log: []Event{ev("a", &HandoffRequested{From: ref("a"), To: ref("b")})}, last: ev("b", &HandoffAccepted{From: ref("a"), To: ref("b")})},
	{name: "the pair twice", rule: RuleHandoffOpen, log: []Event{
		ev("a", &HandoffRequested{From: ref("a"), To: ref("b")}), ev("a", &HandoffRequested{From: ref("a"), To: ref("b")}), ev("b", &HandoffAccepted{From: ref("a"), To: ref("b")}),
	}, last: ev("b", &HandoffAccepted{From: ref("a"), To: ref("b")})},
	{name: "a handoff in one event needs no request", rule: RuleHandoffOpen, last: ev("a", &AgentHandoff{From: ref("a"), To: ref("b")})},
	{name: "accepted unasked", rule: RuleHandoffOpen, last: ev("b", &HandoffAccepted{From: ref("a"), To: ref("b")}), refused: true},
	{name: "another id", rule: RuleHandoffOpen, log: []Event{ev("a", &HandoffRequested{HandoffID: "h", From: ref("a"), To: ref("b")})}, last: ev("b", &HandoffAccepted{HandoffID: "g", From: ref("a"), To: ref("b")}), refused: true},
	{name: "the pair the other way round", rule: RuleHandoffOpen, log: []Event{ev("a", &HandoffRequested{From: ref("a"), To: ref("b")})}, last: ev("b", &HandoffAccepted{From: ref("b"), To: ref("a")}), refused: true},
	{name: "accepted twice", rule: RuleHandoffOpen, log: []Event{ev("a", &HandoffRequested{HandoffID: "h", From: ref("a"), To: ref("b")}), ev("b", &HandoffAccepted{HandoffID: "h", From: ref("a"), To: ref("b")})},
		last: ev("b", &HandoffAccepted{HandoffID: "h", From: ref("a"), To: ref("b")}), refused: true},

	// message-id: a replay may repeat a message, it may not change it.
	{name: "the same message again", rule: RuleMessageID, log: []Event{ev("a", says("m1", ""))}, last: ev("a", says("m1", ""))},
	{name: "the same id with other content", rule: RuleMessageID, refused: true, log: []Event{ev("a", says("m1", ""))},
		last: ev("a", &MessageCreated{Message: ConversationMessage{MessageID: "m1", From: "a", Content: `"other"`, TS: 1}})},
	{name: "the same content with other escapes", rule: RuleMessageID, log: []Event{ev("a", says("m1", ""))},
		last: ev("a", &MessageCreated{Message: ConversationMessage{MessageID: "m1", From: "a", Content: `"h\u0065llo"`, TS: 1}})},
	{name: "the same content by another sender", rule: RuleMessageID, refused: true, log: []Event{ev("a", says("m1", ""))},
		last: ev("b", &MessageCreated{Message: ConversationMessage{MessageID: "m1", From: "b", Content: `"hello"`, TS: 1}})},

	// message-group.
	{name: "a message with its group", rule: RuleMessageGroup, log: []Event{ev("a", groupStart)}, last: ev("a", says("m1", "review"))},
	{name: "an isolated agent needs no group", rule: RuleMessageGroup, log: moves(), last: ev("a", says("m1", ""))},
	{name: "a shared agent needs no group", rule: RuleMessageGroup, log: []Event{ev("a", &AgentStarted{Agent: Some(AgentRef{AgentID: "a", AgentSharing: SharingShared})})}, last: ev("a", says("m1", ""))},
	{name: "a user's message to the group's agent", rule: RuleMessageGroup, log: []Event{ev("a", groupStart)},
		last: ev("a", &MessageCreated{Message: ConversationMessage{MessageID: "m1", From: "user", Content: "1", TS: 1}})},
	{name: "a message without its group", rule: RuleMessageGroup, log: []Event{ev("a", groupStart)}, last: ev("a", says("m1", "")), refused: true},
	{name: "the agent that speaks shares by group", rule: RuleMessageGroup, last: ev("a", &MessageCreated{Message: ConversationMessage{
		MessageID: "m1", From: "a", Content: "1", TS: 1, Agent: Some(AgentRef{AgentID: "a", AgentSharing: SharingGroup("review")}),
	}}), refused: true},
	{name: "a node names an agent that shares by group, before its first event", rule: RuleMessageGroup,
		log: []Event{ev("", &NodeStarted{Agent: Some(inGroup)})}, last: ev("", says("m1", "")), refused: true},
	{name: "a node names an agent that shares by group", rule: RuleMessageGroup,
		log: []Event{ev("a", &TextCompleted{}), ev("", &NodeCompleted{Agent: Some(inGroup)})}, last: ev("b", says("m1", "")), refused: true},
	{name: "an agent of a group takes over", rule: RuleMessageGroup,
		log: []Event{ev("b", &AgentHandoff{From: AgentRef{AgentID: "b"}, To: inGroup}), ev("a", &TextCompleted{})}, last: ev("a", says("m1", "")), refused: true},
	{name: "a later reference leaves the group out", rule: RuleMessageGroup,
		log: []Event{ev("", &NodeStarted{Agent: Some(inGroup)}), ev("", &NodeCompleted{Agent: Some(AgentRef{AgentID: "a"})})}, last: ev("a", says("m1", "")), refused: true},
	{name: "a start says that the agent is isolated", rule: RuleMessageGroup,
		log: []Event{ev("", &NodeStarted{Agent: Some(inGroup)}), ev("a", &AgentStarted{Agent: Some(AgentRef{AgentID: "a"})})}, last: ev("a", says("m1", ""))},
	{name: "a node names an agent that shares with all", rule: RuleMessageGroup,
		log: []Event{ev("", &NodeStarted{Agent: Some(AgentRef{AgentID: "a", AgentSharing: SharingShared})})}, last: ev("a", says("m1", ""))},
	{name: "a message in the name of the group's agent", rule: RuleMessageGroup, log: []Event{ev("a", groupStart)}, last: ev("b", says("m1", "")), refused: true},

	// sequence: an emitter numbers events itself, so only a fold can see it broken.
	{name: "sequence increases", rule: RuleSequence, log: moves(), last: ev("a", audit(AuditPass))},
	{name: "a gap in a part of a log", rule: RuleSequence, foldOnly: true, log: moves(), last: ev("a", audit(AuditPass), atSequence(7))},
	{name: "the same event again", rule: RuleSequence, foldOnly: true, log: []Event{ev("a", started(), withID("e0"))}, last: ev("a", started(), withID("e0"), atSequence(0))},
	{name: "another event with the sequence", rule: RuleSequence, foldOnly: true, log: moves(), last: ev("a", audit(AuditPass), atSequence(0)), refused: true},
	{name: "an event from the past", rule: RuleSequence, foldOnly: true, log: []Event{ev("a", started(), atSequence(5))}, last: ev("a", audit(AuditPass), atSequence(2)), refused: true},

	// workflow-context.
	{name: "a workflow event names its workflow", rule: RuleWorkflowContext, last: ev("", &WorkflowCreated{Phases: []string{"scout"}}, inWorkflow)},
	{name: "a checkpoint names its phase", rule: RuleWorkflowContext, last: ev("", &CheckpointSaved{StateBytes: 1}, inScout)},
	{name: "an agent inside a phase names it", rule: RuleWorkflowContext, log: []Event{ev("", &PhaseStarted{}, inScout)}, last: ev("a", started(), inScout)},
	{name: "an agent between phases", rule: RuleWorkflowContext, log: []Event{ev("", &PhaseStarted{}, inScout), ev("", &PhaseCompleted{}, inScout)}, last: ev("a", started(), inWorkflow)},
	{name: "an agent outside the workflow", rule: RuleWorkflowContext, log: []Event{ev("", &PhaseStarted{}, inScout)}, last: ev("a", started())},
	{name: "a tool call inside a phase", rule: RuleWorkflowContext, log: []Event{ev("", &PhaseStarted{}, inScout)}, last: ev("a", call("c"), inWorkflow)},
	{name: "what is no agent event", rule: RuleWorkflowContext, log: []Event{ev("", &PhaseStarted{}, inScout)}, last: ev("a", &UsageObserved{}, inWorkflow)},
	{name: "a workflow event without a workflow", rule: RuleWorkflowContext, last: ev("", &WorkflowCreated{}), refused: true},
	{name: "a phase event without a phase", rule: RuleWorkflowContext, last: ev("", &PhaseStarted{}, inWorkflow), refused: true},
	{name: "a checkpoint without a phase", rule: RuleWorkflowContext, last: ev("", &CheckpointResumed{ResumedAt: rulesEpoch}, inWorkflow), refused: true},
	{name: "a phase without a workflow", rule: RuleWorkflowContext, last: ev("a", started(), scoped(Scope{Phase: "scout"})), refused: true},
	{name: "an agent inside a phase without its name", rule: RuleWorkflowContext, log: []Event{ev("", &PhaseStarted{}, inScout)}, last: ev("a", started(), inWorkflow), refused: true},

	// run.
	{name: "an event of the run", rule: RuleRun, last: ev("a", started(), inRun(rulesRun))},
	{name: "an event of another run", rule: RuleRun, log: moves(), last: ev("b", started(), inRun("run-2")), refused: true},
}

// countedLog counts 1 step, 2 calls and 3 audits, 1 passed and 1 failed.
var countedLog = []Event{
	ev("a", started()), ev("a", call("c1"), atStep(0)), ev("a", returned("c1", ToolStatusOK)),
	ev("a", &ToolReturned{CallID: "c2", ToolID: "Read", Status: ToolStatusOK, OneEvent: true}),
	ev("a", audit(AuditPass)), ev("a", audit(AuditWarn)), ev("a", audit(AuditFail)),
}

func deepPath(names int) string { return "a" + strings.Repeat(".a", names-1) }

// inEveryMode lists the rules that an emitter enforces in Observe mode too: without
// them the log would have lines that cannot be read back.
func inEveryMode(r Rule) bool {
	switch r {
	case RulePayload, RuleFieldUTF8, RuleLineLength, RuleRun:
		return true
	}
	return false
}

// A ruleLog is a sink that keeps everything.
type ruleLog struct {
	mu         sync.Mutex
	events     []Event
	violations []*RuleError
}

func (l *ruleLog) WriteEvent(_ context.Context, e Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	return nil
}

// ruleRun returns a run that records into a ruleLog, with a clock that ticks
// and ids that count.
func ruleRun(t testing.TB, l Lifecycle, mode Mode) (*Run, *ruleLog) {
	t.Helper()
	log := &ruleLog{}
	ticks, ids := 0, 0
	e, err := NewEmitter(EmitterOptions{
		Sinks: []Sink{log}, Lifecycle: l, Mode: mode,
		Clock:       func() time.Time { ticks++; return rulesEpoch.Add(time.Duration(ticks) * time.Millisecond) },
		NewID:       func() string { ids++; return fmt.Sprintf("id-%d", ids) },
		OnViolation: func(err *RuleError) { log.violations = append(log.violations, err) },
	})
	require.NoError(t, err)
	run, err := e.Run(rulesRun)
	require.NoError(t, err)
	return run, log
}

// lined gives events made by hand the sequences, ids and times that they lack. With
// foldOnly the last one keeps its sequence.
func lined(c ruleCase) []Event {
	var out []Event
	for i, e := range append(append([]Event(nil), c.log...), c.last) {
		if e.Sequence == 0 && !(c.foldOnly && i == len(c.log)) {
			e.Sequence = uint64(i)
		}
		if e.ID == "" {
			e.ID = fmt.Sprintf("e%d", i)
		}
		if e.RunID == "" {
			e.RunID = rulesRun
		}
		if e.Time.IsZero() {
			e.Time = rulesEpoch
		}
		out = append(out, e)
	}
	return out
}

func TestRules(t *testing.T) {
	ctx := context.Background()
	for _, c := range ruleCases {
		verdict := "accepts"
		if c.refused {
			verdict = "refuses"
		}
		name := string(c.rule) + "/" + verdict + " " + c.name
		if !c.foldOnly {
			t.Run(name+"/enforce", func(t *testing.T) {
				run, log := ruleRun(t, cmp.Or(c.lifecycle, LifecycleStrict), ModeEnforce)
				for i, e := range c.log {
					require.NoError(t, errOf(run.Record(ctx, e)), "event %d", i)
				}
				_, err := run.Record(ctx, c.last)
				if !c.refused {
					require.NoError(t, err)
					require.Len(t, log.events, len(c.log)+1)
					return
				}
				var broken *RuleError
				require.ErrorAs(t, err, &broken)
				require.Equal(t, c.rule, broken.Rule, err)
				require.Equal(t, uint64(len(c.log)), broken.Sequence)
				require.Contains(t, err.Error(), string(c.rule))
				requireSentence(t, broken)
				require.Len(t, log.events, len(c.log), "a refused event reaches no sink")

				// The next legal event gets the sequence: accepted logs have no gaps.
				require.NoError(t, run.Emit(ctx, audit(AuditPass)))
				require.Equal(t, uint64(len(c.log)), log.events[len(c.log)].Sequence)
				require.Equal(t, []*RuleError{broken}, log.violations, "a refusal is told, too")
				require.True(t, broken.Refused)
			})
			t.Run(name+"/observe", func(t *testing.T) {
				run, log := ruleRun(t, cmp.Or(c.lifecycle, LifecycleStrict), ModeObserve)
				for _, e := range c.log {
					require.NoError(t, errOf(run.Record(ctx, e)))
				}
				require.Empty(t, log.violations)
				_, err := run.Record(ctx, c.last)
				if c.refused && inEveryMode(c.rule) {
					var broken *RuleError
					require.ErrorAs(t, err, &broken)
					require.Equal(t, c.rule, broken.Rule)
					require.Len(t, log.events, len(c.log))
					return
				}
				require.NoError(t, err)
				require.Len(t, log.events, len(c.log)+1)
				if !c.refused {
					require.Empty(t, log.violations)
					return
				}
				require.Len(t, log.violations, 1)
				require.Equal(t, c.rule, log.violations[0].Rule)
				require.Equal(t, log.events[len(c.log)].ID, log.violations[0].EventID)

				// Observed events can be written, and a fold finds the same violations.
				for _, e := range log.events {
					_, err := e.AppendJSON(nil)
					require.NoError(t, err)
				}
				requireFoldVerdict(t, c, log.events)
			})
		}
		if c.refused && c.rule == RuleLineLength {
			continue // a line that is read is not too long: no fold of a log meets this
		}
		t.Run(name+"/fold", func(t *testing.T) {
			requireFoldVerdict(t, c, lined(c))
		})
	}
}

func requireFoldVerdict(t *testing.T, c ruleCase, events []Event) {
	t.Helper()
	f := NewFold(FoldOptions{Lifecycle: cmp.Or(c.lifecycle, LifecycleStrict)})
	for _, e := range events[:len(events)-1] {
		f.Apply(e)
	}
	require.Empty(t, f.Snapshot().Violations, "the log before is legal")
	f.Apply(events[len(events)-1])
	s := f.Snapshot()
	if c.refused {
		require.Len(t, s.Violations, 1)
		require.Equal(t, c.rule, s.Violations[0].Rule, s.Violations[0])
		require.Equal(t, events[len(events)-1].ID, s.Violations[0].EventID)
	} else {
		require.Empty(t, s.Violations)
	}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.True(t, json.Valid(text))
}

// Every rule has a case that it refuses and one that it accepts, but for field-json: only
// AppendJSON refuses by that.
func TestRulesAreAllShown(t *testing.T) {
	accepted, refused := map[Rule]bool{}, map[Rule]bool{}
	for _, c := range ruleCases {
		if c.refused {
			refused[c.rule] = true
		} else {
			accepted[c.rule] = true
		}
	}
	for _, c := range boundCases {
		if c.refused {
			refused[c.rule] = true
		} else {
			accepted[c.rule] = true
		}
	}
	known := map[Rule]bool{}
	for rule, statement := range Rules() {
		require.NotEmpty(t, statement, rule)
		require.False(t, known[rule], "%s is listed twice", rule)
		known[rule] = true
		require.True(t, accepted[rule], "rule %s has no case that is accepted", rule)
		require.Equal(t, rule != RuleFieldJSON, refused[rule], "rule %s has no case that is refused", rule)
	}
	for _, c := range ruleCases {
		require.True(t, known[c.rule], "Rules does not yield %s", c.rule)
	}
	n := 0
	for range Rules() {
		if n++; n == 2 {
			break // an iterator must bear being left
		}
	}
}

// Ending is legal from any status, so that every way out of a program can have
// exactly one end.
func TestAgentEndsFromEveryStatus(t *testing.T) {
	for status, path := range pathsTo {
		for _, l := range []Lifecycle{LifecycleStrict, LifecycleRelaxed} {
			run, log := ruleRun(t, l, ModeEnforce)
			for _, e := range moves(path...) {
				require.NoError(t, errOf(run.Record(context.Background(), e)))
			}
			require.NoError(t, run.Agent("a").Emit(context.Background(), &AgentEnded{}), "%s from %s", l, status)
			f := NewFold(FoldOptions{Lifecycle: l})
			for _, e := range log.events {
				f.Apply(e)
			}
			s := f.Snapshot()
			require.Empty(t, s.Violations)
			require.Equal(t, status, s.Agents["a"].Status)
			require.True(t, s.Agents["a"].Ended)
		}
	}
}

// pathsTo leads an agent to each status, legally under both tables.
var pathsTo = map[AgentStatus][]AgentStatus{
	StatusThinking:               nil,
	StatusToolCall:               {StatusToolCall},
	StatusToolResult:             {StatusToolCall, StatusToolResult},
	StatusResponse:               {StatusToolCall, StatusToolResult, StatusResponse},
	StatusReflect:                {StatusToolCall, StatusToolResult, StatusResponse, StatusReflect},
	StatusBlockedOnClarification: {StatusBlockedOnClarification},
	StatusConverged:              {StatusToolCall, StatusToolResult, StatusResponse, StatusReflect, StatusConverged},
	StatusFailed:                 {StatusFailed},
}

// The edges, written down from the documents and not from the tables: seed
// 000's diagram, and the list of additions in architecture.md.
var (
	strictEdges = [][2]string{
		{"thinking", "tool_call"},
		{"tool_call", "tool_result"},
		{"tool_result", "response"},
		{"response", "reflect"},
		{"reflect", "thinking"},
		{"reflect", "converged"},
		{"thinking", "blocked-on-clarification"},
		{"blocked-on-clarification", "thinking"},
		{"thinking", "failed"},
	}
	relaxedAdds = [][2]string{
		{"thinking", "response"},
		{"response", "thinking"},
		{"response", "tool_call"},
		{"tool_result", "thinking"},
		{"tool_result", "tool_call"},
		{"tool_result", "tool_result"},
		{"tool_call", "tool_call"},
		{"tool_call", "blocked-on-clarification"},
		{"blocked-on-clarification", "tool_call"},
		{"response", "converged"},
		{"converged", "thinking"},
		{"tool_call", "failed"},
		{"tool_result", "failed"},
		{"response", "failed"},
		{"reflect", "failed"},
		{"blocked-on-clarification", "failed"},
	}
	allStatuses = []string{"thinking", "tool_call", "tool_result", "response", "reflect", "blocked-on-clarification", "converged", "failed"}
)

func TestTransitionTables(t *testing.T) {
	strict, relaxed := map[[2]string]bool{}, map[[2]string]bool{}
	for _, e := range strictEdges {
		strict[e], relaxed[e] = true, true
	}
	for _, e := range relaxedAdds {
		require.False(t, strict[e], "%v is not an addition", e)
		relaxed[e] = true
	}
	require.Len(t, allStatuses, 8)
	for l, legal := range map[Lifecycle]map[[2]string]bool{LifecycleStrict: strict, LifecycleRelaxed: relaxed} {
		for _, from := range allStatuses {
			var next []AgentStatus
			for _, to := range allStatuses {
				t.Run(fmt.Sprintf("%s/%s→%s", l, from, to), func(t *testing.T) {
					want := legal[[2]string{from, to}]
					require.Equal(t, want, l.Allows(AgentStatus(from), AgentStatus(to)))

					// The emitter goes by the same table.
					run, _ := ruleRun(t, l, ModeEnforce)
					for _, e := range moves(pathsTo[AgentStatus(from)]...) {
						require.NoError(t, errOf(run.Record(context.Background(), e)))
					}
					err := run.Agent("a").To(context.Background(), AgentStatus(to))
					if want {
						require.NoError(t, err)
						return
					}
					var broken *RuleError
					require.ErrorAs(t, err, &broken)
					require.Contains(t, []Rule{RuleTransitionLegal, RuleAgentEndedFinal}, broken.Rule)
				})
				if legal[[2]string{from, to}] {
					next = append(next, AgentStatus(to))
				}
			}
			require.Equal(t, next, l.Next(AgentStatus(from)), "%s.Next(%s)", l, from)
		}
	}
}

// In Observe mode one illegal event is one violation: the state follows the event.
func TestObserveResynchronizes(t *testing.T) {
	for _, c := range []struct {
		rule  Rule
		legal []Event // before
		wrong Event   // one violation
		after []Event // legal only if the state went along
	}{
		{RuleTransitionFromCurrent, moves(StatusToolCall), ev("a", &AgentTransition{From: StatusToolResult, To: StatusResponse}),
			[]Event{ev("a", &AgentTransition{From: StatusResponse, To: StatusReflect}), ev("a", &AgentTransition{From: StatusReflect, To: StatusConverged})}},
		{RuleTransitionLegal, moves(), ev("a", &AgentTransition{From: StatusThinking, To: StatusReflect}),
			[]Event{ev("a", &AgentTransition{From: StatusReflect, To: StatusThinking})}},
		{RuleStepMonotonic, []Event{ev("a", started()), ev("a", &TextCompleted{Text: "1"}, atStep(5))}, ev("a", &TextCompleted{Text: "2"}, atStep(2)),
			[]Event{ev("a", &TextCompleted{Text: "3"}, atStep(2)), ev("a", &TextCompleted{Text: "4"}, atStep(3)), ev("a", &TextCompleted{Text: "5"}, atStep(6)), ev("a", &TextCompleted{Text: "6"}, atStep(7))}},
		{RuleDeltaIndex, []Event{ev("a", &TextDelta{BlockID: "b", Delta: "1", Index: Some(0)})}, ev("a", &TextDelta{BlockID: "b", Delta: "4", Index: Some(3)}),
			[]Event{ev("a", &TextDelta{BlockID: "b", Delta: "5", Index: Some(4)}), ev("a", &TextDelta{BlockID: "b", Delta: "6", Index: Some(5)})}},
		{RuleToolCallOpen, moves(), ev("a", returned("c1", ToolStatusOK)),
			[]Event{ev("a", call("c1")), ev("a", returned("c1", ToolStatusOK))}},
		{RuleToolCallOpen, []Event{ev("a", call("c1"), withID("first"))}, ev("a", call("c1"), withID("second")),
			[]Event{ev("a", returned("c1", ToolStatusOK), causedBy("second")), ev("a", call("c1"))}},
		{RuleModelCallOpen, moves(), ev("a", answered("m1")),
			[]Event{ev("a", asked("m1")), ev("a", answered("m1"))}},
		{RuleModelCallOpen, []Event{ev("a", asked("m1"), withID("first"))}, ev("a", asked("m1"), withID("second")),
			[]Event{ev("a", answered("m1"), causedBy("second")), ev("a", asked("m1"))}},
		{RuleAgentStartedOnce, moves(StatusToolCall), ev("a", started()),
			[]Event{ev("a", &AgentTransition{From: StatusThinking, To: StatusToolCall}), ev("a", &AgentEnded{})}},
		{RuleRunOpen, moves(), ev("", &RunStarted{}), []Event{ev("a", &AgentEnded{}), ev("", &RunCompleted{})}},
	} {
		t.Run(string(c.rule), func(t *testing.T) {
			run, log := ruleRun(t, LifecycleStrict, ModeObserve)
			events := logOf(c.legal, []Event{c.wrong}, c.after)
			for _, e := range events {
				require.NoError(t, errOf(run.Record(context.Background(), e)))
			}
			require.Len(t, log.events, len(events))
			require.Len(t, log.violations, 1, "%v", log.violations)
			require.Equal(t, c.rule, log.violations[0].Rule)
			require.Equal(t, uint64(len(c.legal)), log.violations[0].Sequence)

			// So does the fold, and it may be cut anywhere.
			whole := NewFold(FoldOptions{})
			for _, e := range log.events {
				whole.Apply(e)
			}
			s := whole.Snapshot()
			require.Len(t, s.Violations, 1)
			require.Equal(t, c.rule, s.Violations[0].Rule)
			requireSplitFolds(t, log.events, s)
		})
	}
}

// requireSplitFolds cuts the log at every place and carries the snapshot over
// the cut as JSON.
func requireSplitFolds(t *testing.T, events []Event, want *RunSnapshot) {
	t.Helper()
	for cut := range events {
		f := NewFold(FoldOptions{})
		for _, e := range events[:cut] {
			f.Apply(e)
		}
		var half RunSnapshot
		require.NoError(t, json.Unmarshal(f.Snapshot().AppendJSON(nil), &half))
		g, err := ResumeFold(&half, FoldOptions{})
		require.NoError(t, err)
		for _, e := range events[cut:] {
			g.Apply(e)
		}
		require.Equal(t, string(want.AppendJSON(nil)), string(g.Snapshot().AppendJSON(nil)), "cut at %d", cut)
	}
}

// The total counts the steps that there were, whatever their numbers. One that goes back
// does not count.
func TestTotalsCountTheSteps(t *testing.T) {
	run, log := ruleRun(t, LifecycleStrict, ModeObserve)
	a := run.Agent("a")
	for _, e := range []Event{ev("a", started()), ev("a", &TextCompleted{}, atStep(5)), ev("a", &TextCompleted{}, atStep(5)), ev("a", &TextCompleted{}, atStep(9)), ev("a", &TextCompleted{}, atStep(2))} {
		require.NoError(t, errOf(a.Record(context.Background(), e)))
	}
	require.NoError(t, a.Emit(context.Background(), &AgentEnded{}))
	require.Equal(t, 2, log.events[5].Payload.(*AgentEnded).Totals.V.Steps)
	require.Len(t, log.violations, 1)
}

// An event that no line can carry is refused in Observe mode too, whatever rule it
// breaks: a log that cannot be read back is worse than a missing event.
func TestObserveRefusesUnencodableEvents(t *testing.T) {
	for name, p := range map[string]Payload{
		"a number that is not one":        &BudgetExceeded{Budget: "cost", Limit: math.NaN()},
		"an infinite number":              &BudgetExceeded{Budget: "cost", Actual: math.Inf(1)},
		"a confidence that is not one":    &AgentDecided{Decision: "1", Confidence: Some(math.NaN())},
		"a time after year 9999":          &WorkflowApproved{ApprovedBy: "me", ApprovedAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"an unknown kind without name":    &Unknown{Raw: "{}"},
		"a known kind as Unknown":         &Unknown{Type: KindTextCompleted, Raw: "{}"},
		"an unknown kind with a bad name": &Unknown{Type: "a\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			run, log := ruleRun(t, LifecycleStrict, ModeObserve)
			var broken *RuleError
			err := run.With(Scope{WorkflowID: "w"}).Emit(context.Background(), p)
			require.ErrorAs(t, err, &broken)
			require.Empty(t, log.events)

			e := Event{ID: "e", RunID: "r", Time: rulesEpoch, Payload: p}
			text, err := e.AppendJSON([]byte("before"))
			require.ErrorAs(t, err, &broken)
			require.Equal(t, "before", string(text), "nothing is appended")
		})
	}
}

// lateCases are an end and a start of one thing, and the number of records that it has.
var lateCases = []struct {
	name       string
	end, start Event
	open, all  func(s *RunSnapshot) int // how many are open, and how many there are
}{
	{
		"a call", ev("a", returned("c", ToolStatusOK)), ev("a", call("c")),
		func(s *RunSnapshot) int { return len(s.OpenCalls) }, func(s *RunSnapshot) int { return len(s.OpenCalls) + len(s.ClosedCalls) },
	},
	{
		"a call that ended in a span", ev("a", &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK, OneEvent: true}, inSpan("s")), ev("a", call("c"), inSpan("s")),
		func(s *RunSnapshot) int { return len(s.OpenCalls) }, func(s *RunSnapshot) int { return s.Agents["a"].ToolCalls },
	},
	{
		"a model call", ev("a", &ModelReturned{ModelCallID: "m", OneEvent: true}, inSpan("s")), ev("a", &ModelCalled{ModelCallID: "m"}, inSpan("s")),
		func(s *RunSnapshot) int { return len(s.OpenModelCalls) }, func(s *RunSnapshot) int { return s.Agents["a"].ModelCalls },
	},
	{
		"an agent", ev("a", &AgentEnded{}), ev("a", started()),
		func(s *RunSnapshot) int {
			if s.Agents["a"].Open {
				return 1
			}
			return 0
		}, func(s *RunSnapshot) int { return len(s.Agents["a"].AttemptsInOrder()) },
	},
	{
		"an approval", ev("", &ApprovalGranted{ApprovalID: "q", ApprovedBy: "p"}), ev("a", &ApprovalRequested{ApprovalID: "q", Action: "go"}),
		func(s *RunSnapshot) int { return s.openQuestions() }, func(s *RunSnapshot) int { return len(s.Approvals) },
	},
	{
		"a clarification", ev("", &ClarificationResolved{InterruptID: "q", Answers: `{}`}), ev("a", &ClarificationRequested{InterruptID: "q", Questions: []Question{{ID: "1", Question: "?"}}}),
		func(s *RunSnapshot) int { return s.openQuestions() }, func(s *RunSnapshot) int { return len(s.Clarifications) },
	},
	{
		"a handoff", ev("b", &HandoffAccepted{From: AgentRef{AgentID: "a"}, To: AgentRef{AgentID: "b"}}), ev("a", &HandoffRequested{From: AgentRef{AgentID: "a"}, To: AgentRef{AgentID: "b"}}),
		func(s *RunSnapshot) (n int) {
			for _, h := range s.Handoffs {
				if h.Open {
					n++
				}
			}
			return n
		}, func(s *RunSnapshot) int { return len(s.Handoffs) },
	},
	{
		"a turn", ev("a", &TurnEnded{}, inSpan("s")), ev("a", &TurnStarted{Turn: Some(3)}, inSpan("s")),
		func(s *RunSnapshot) int { return s.openSpans() }, func(s *RunSnapshot) int { return len(s.Turns) },
	},
	{
		"a step", ev("a", &StepEnded{StepID: "made up"}, inSpan("s")), ev("a", &StepStarted{StepID: "x"}, inSpan("s")),
		func(s *RunSnapshot) int { return s.openSpans() }, func(s *RunSnapshot) int { return len(s.Steps) },
	},
	{
		"a phase", inFlow(ev("", &PhaseCompleted{OutputCount: Some(1)})), inFlow(ev("", &PhaseStarted{InputCount: Some(1)})),
		func(s *RunSnapshot) (n int) {
			for _, p := range s.Phases {
				if p.Open {
					n++
				}
			}
			return n
		}, func(s *RunSnapshot) int { return len(s.Phases) },
	},
}

// foldAll folds events, of which an end without a start may break a rule.
func foldAll(events []Event) *RunSnapshot {
	f := NewFold(FoldOptions{})
	for _, e := range events {
		f.Apply(e)
	}
	return f.Snapshot()
}

func inFlow(e Event) Event {
	e.WorkflowID, e.Phase = "w", "p"
	return e
}

func (s *RunSnapshot) openQuestions() (n int) {
	for _, a := range s.Approvals {
		if a.Open {
			n++
		}
	}
	for _, c := range s.Clarifications {
		if c.Open {
			n++
		}
	}
	return n
}

func (s *RunSnapshot) openSpans() (n int) {
	for _, t := range s.Turns {
		if t.EndedAt.IsZero() {
			n++
		}
	}
	for _, st := range s.Steps {
		if st.EndedAt.IsZero() {
			n++
		}
	}
	return n
}

// openThings returns the open things of a run's machine.
func (m *machine) openThings() string {
	calls, _ := m.calls.All()
	models, _ := m.modelCalls.All()
	agents := 0
	for _, a := range m.agents {
		if a.Open {
			agents++
		}
	}
	spans := 0
	for key := range m.spans {
		if m.lastSpan(key) != nil {
			spans++
		}
	}
	handoffs := m.work != nil && m.openHandoff(newHandoffKey("", "a", "b"))
	return fmt.Sprintln(len(calls), len(models), agents, len(m.questions.open), handoffs, spans, m.inPhase("w"))
}

// A start with an earlier time than its end, whose line comes after the end, is not a second thing.
// The emitter, the fold, and a fold and an emitter that go on from a snapshot agree. A start of a
// later time is another thing.
func TestLateStarts(t *testing.T) {
	for _, c := range lateCases {
		for _, late := range []bool{true, false} {
			t.Run(fmt.Sprint(c.name, " ", late), func(t *testing.T) {
				events := []Event{ev("", &SessionStarted{}), ev("z", started()), c.end, c.start}
				for i := range events {
					events[i].Time = rulesEpoch.Add(time.Duration(10*i) * time.Second)
				}
				events[3].Time = events[2].Time.Add(7 * time.Second)
				if late {
					events[3].Time = events[2].Time.Add(-7 * time.Second)
				}
				run, log := ruleRun(t, LifecycleRelaxed, ModeObserve)
				for _, e := range events {
					_, err := run.Record(context.Background(), e)
					require.NoError(t, err)
				}
				s := foldAll(log.events)
				half := foldAll(log.events[:3])
				rest, err := ResumeFold(half, FoldOptions{})
				require.NoError(t, err)
				rest.Apply(log.events[3])
				require.Equal(t, string(s.AppendJSON(nil)), string(rest.Snapshot().AppendJSON(nil)), "a fold that goes on")
				want := "1 of 2"
				if late {
					want = "0 of 1"
				}
				require.Equal(t, want, fmt.Sprint(c.open(s), " of ", c.all(s)))

				again := half.machine(LifecycleRelaxed)
				sub := &subject{}
				again.resolve(sub, &log.events[3], log.events[3].Payload.(payloadOps))
				again.apply(&log.events[3], sub)
				require.Equal(t, run.s.m.openThings(), again.openThings(), "an emitter that goes on")
				require.Equal(t, s.machine(LifecycleRelaxed).openThings(), run.s.m.openThings(), "the emitter and the fold")
			})
		}
	}
}

// The ends that wait for their starts are limited, and the latest ones are known.
func TestLateStartsAreBounded(t *testing.T) {
	f := NewFold(FoldOptions{})
	n := uint64(0)
	add := func(at int, p Payload) {
		f.Apply(Event{ID: fmt.Sprint("e", n), Sequence: n, Time: rulesEpoch.Add(time.Duration(at) * time.Second), RunID: "r", AgentID: "a", SchemaVersion: SchemaVersion, Payload: p})
		n++
	}
	add(0, &SessionStarted{})
	add(0, started())
	for i := range 3 * maxEarly {
		add(1000, returned(fmt.Sprint("c", i), ToolStatusOK))
	}
	require.Len(t, f.Snapshot().Resume.early, maxEarly)
	add(500, call(fmt.Sprint("c", 3*maxEarly-1)))
	require.Empty(t, f.Snapshot().OpenCalls)
	require.Len(t, f.Snapshot().Resume.early, maxEarly-1)
}
