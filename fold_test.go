package agentevents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// foldLog gives events made by hand the fields of a line, and passes each through its line, so that
// the fold gets the same event as from a reader.
func foldLog(t testing.TB, events ...Event) []Event {
	t.Helper()
	out := make([]Event, len(events))
	for i, e := range events {
		if e.ID == "" {
			e.ID = fmt.Sprintf("e%d", i)
		}
		if e.RunID == "" {
			e.RunID = rulesRun
		}
		e.Sequence, e.SchemaVersion = uint64(i), SchemaVersion
		if e.Time.IsZero() {
			e.Time = second(i)
		}
		out[i] = decodeLine(t, encodeEvent(t, e))
	}
	return out
}

func second(i int) time.Time { return rulesEpoch.Add(time.Duration(i) * time.Second) }

// The events of a log that was captured without a clock have one time: nothing was
// measured.
func TestNoDurationWithoutClock(t *testing.T) {
	f := NewFold(FoldOptions{})
	for i, p := range []Payload{
		&AgentStarted{}, &ToolCalled{CallID: "c1", ToolID: "Read"}, &ToolReturned{CallID: "c1", ToolID: "Read", Status: ToolStatusOK},
		&ToolReturned{CallID: "c2", ToolID: "Read", Status: ToolStatusOK, OneEvent: true, Duration: Some(time.Duration(0))},
		&AgentEnded{},
	} {
		f.Apply(Event{ID: fmt.Sprint(i), RunID: "r", Sequence: uint64(i), Time: rulesEpoch, AgentID: "a", Payload: p})
	}
	s := f.Snapshot()
	require.False(t, s.Agents["a"].Duration.OK)
	require.False(t, s.ClosedCalls[0].Duration.OK)
	require.Equal(t, Some(time.Duration(0)), s.ClosedCalls[1].Duration, "it is stated")
}

func foldEvents(o FoldOptions, events []Event) *RunSnapshot {
	f := NewFold(o)
	for _, e := range events {
		f.Apply(e)
	}
	return f.Snapshot()
}

// fold folds a legal log. It requires the same snapshot when the log is cut at any
// place and the snapshot there is carried over as JSON, and no violation in any tail.
func fold(t *testing.T, events ...Event) *RunSnapshot {
	t.Helper()
	log := foldLog(t, events...)
	s := foldEvents(FoldOptions{}, log)
	require.Empty(t, s.Violations)
	requireSplitFolds(t, log, s)
	requireLegalTails(t, log)
	return s
}

// requireLegalTails folds a legal log without its beginning, cut at every place.
func requireLegalTails(t *testing.T, log []Event) {
	t.Helper()
	for cut := range log {
		require.Empty(t, foldEvents(FoldOptions{}, log[cut:]).Violations, "the log begins at event %d", cut)
	}
}

func node(id string) func(*Event) { return scoped(Scope{NodeID: id}) }

func inSpan(id string) func(*Event) { return func(e *Event) { e.SpanID = id } }

func stateOf(s *RunSnapshot) string {
	text, _ := json.Marshal(s.State)
	return string(text)
}

// The effect of every kind, by hand as the fold itself is: this mapping must
// not be derived from the code it tests.
var kindEffects = []struct {
	kind  Kind
	log   []Event
	check func(t *testing.T, s *RunSnapshot)
}{
	{KindSessionStarted, []Event{ev("", &SessionStarted{Goal: "ship"}, scoped(Scope{SessionID: "s1"}))}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, "ship", s.SessionGoal)
		require.Equal(t, "s1", s.SessionID)
		require.Equal(t, RunStatusPending, s.Status, "a session is not the run")
	}},
	{KindSessionCompleted, []Event{ev("", &SessionCompleted{Status: "done", Result: `{"pr":1}`})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, "done", s.SessionStatus)
		require.Equal(t, JSON(`{"pr":1}`), s.SessionResult)
	}},
	{KindRunStarted, []Event{ev("", &SessionStarted{}), ev("", &RunStarted{
		Name: "flow", Inputs: `{"a":1}`, Agent: Some(ref("lead")),
		Definition: `{"nodes":["n1",{"id":"n2"},{"nodeId":"n3"},7],"edges":[{"id":"e1","from":"n1","to":"n2"},{"from":"n2","to":"n3"},{"from":"x"}],"state":{"k":[1]},"other":true}`,
	})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, "flow", s.Name)
		require.Equal(t, JSON(`{"a":1}`), s.Inputs)
		require.Equal(t, "lead", s.Agent.V.AgentID)
		require.Equal(t, map[string]NodeStatus{"n1": NodeStatusPending, "n2": NodeStatusPending, "n3": NodeStatusPending}, s.NodeStatus)
		require.Equal(t, map[string]EdgeStatus{"e1": EdgeStatusPending, "n2->n3": EdgeStatusPending}, s.EdgeStatus)
		require.Equal(t, `{"k":[1]}`, stateOf(s))
		require.Equal(t, second(1), s.StartedAt)
		require.Equal(t, RunStatusRunning, s.Status)
	}},
	{KindRunPaused, []Event{ev("", &RunStarted{}), ev("", &RunPaused{})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, RunStatusPaused, s.Status)
	}},
	{KindRunResumed, []Event{ev("", &RunStarted{}), ev("", &RunPaused{}), ev("", &RunResumed{})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, RunStatusRunning, s.Status)
	}},
	{KindRunCompleted, []Event{ev("", &RunStarted{}), ev("", &RunCompleted{Outputs: `[1]`})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, RunStatusCompleted, s.Status)
		require.Equal(t, JSON(`[1]`), s.Result)
		require.Equal(t, second(1), s.CompletedAt)
	}},
	{KindRunFailed, []Event{ev("", &RunFailed{Error: Some(ErrorInfo{Code: "c", Message: "m", Details: `{"d":1}`})})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, RunStatusFailed, s.Status)
		require.Equal(t, Some(ErrorInfo{Code: "c", Message: "m", Details: `{"d":1}`}), s.Error)
	}},
	{KindRunFailed, []Event{
		ev("", &NodeStarted{}, node("n1")), ev("", &NodeStarted{}, node("n1")), ev("", &NodeSuspended{Reason: "r"}, node("n1")), ev("", &NodeStarted{}, node("n2")),
		ev("", &RunFailed{Error: Some(ErrorInfo{Message: `it "broke"`}), FailedNodeID: "n1"}),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, map[string]NodeStatus{"n1": NodeStatusFailed, "n2": NodeStatusRunning}, s.NodeStatus)
		require.Equal(t, map[string]JSON{"n1": `{"error":"it \"broke\""}`}, s.Outputs)
		require.Equal(t, map[string]int{"n2": 1}, s.NodeRuns)
		require.Empty(t, s.Suspended)
	}},
	{KindRunFailed, []Event{
		ev("", &NodeStarted{}, node("n1")), ev("", &NodeFailed{Error: ErrorInfo{Message: "own"}}, node("n1")), ev("", &RunFailed{FailedNodeID: "n1"}),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, map[string]JSON{"n1": `{"error":"own"}`}, s.Outputs, "a node keeps its own error")
	}},
	{KindRunCancelled, []Event{ev("", &RunCancelled{Reason: "no longer needed"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, RunStatusCancelled, s.Status)
		require.Equal(t, "no longer needed", s.CancelReason)
	}},
	{KindAgentStarted, []Event{ev("a", &AgentStarted{Agent: Some(AgentRef{AgentID: "a", ModelClass: ModelCoding}), Task: "t", Model: "m", ProviderSessionID: "p1"}, func(e *Event) {
		e.ParentAgentID, e.ParentCallID, e.NodeID = "lead", "c1", "n1"
	})}, func(t *testing.T, s *RunSnapshot) {
		a := s.Agents["a"]
		require.Equal(t, ModelCoding, a.Ref.V.ModelClass)
		require.Equal(t, [6]string{"lead", "c1", "n1", "t", "m", "p1"}, [6]string{a.ParentAgentID, a.ParentCallID, a.NodeID, a.Task, a.Model, a.ProviderSessionID})
		require.Equal(t, StatusThinking, a.Status)
		require.Equal(t, 1, a.Attempts)
		require.True(t, a.Open)
		require.Equal(t, map[string]string{"n1": "p1"}, s.AgentSessions, "by node where there is one")
	}},
	{KindAgentTransition, moves(StatusToolCall, StatusToolResult), func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, StatusToolResult, s.Agents["a"].Status)
		require.Equal(t, 2, s.Agents["a"].Transitions)
	}},
	{KindAgentEnded, []Event{ev("a", started()), ev("a", &AgentEnded{
		Outcome: OutcomePartial, Result: "half", StructuredOutput: `{"x":1}`, NumTurns: Some(3), ConvergenceScore: Some(0.5), Totals: Some(Totals{Steps: 9}),
	})}, func(t *testing.T, s *RunSnapshot) {
		a := s.Agents["a"]
		require.Equal(t, OutcomePartial, a.Outcome)
		require.Equal(t, "half", a.Result)
		require.Equal(t, JSON(`{"x":1}`), a.StructuredOutput)
		require.Equal(t, Some(time.Second), a.Duration, "counted where it is not stated")
		require.Equal(t, Some(9), Some(a.Totals.V.Steps))
		require.Equal(t, Some(3), a.NumTurns)
		require.Equal(t, Some(0.5), a.ConvergenceScore)
		require.Equal(t, RunStatusCompleted, s.Status)
		require.Equal(t, second(1), s.CompletedAt)
	}},
	{KindAgentErrored, []Event{ev("a", started()), ev("a", &AgentErrored{ErrorType: "rate_limit", Message: "wait"}), ev("a", &AgentErrored{ErrorType: "w", Message: "w", Severity: SeverityWarning})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, 1, s.Agents["a"].Errors, "a warning is no error")
		require.Equal(t, Some(ErrorInfo{Code: "rate_limit", Message: "wait"}), s.Agents["a"].LastError)
		require.Equal(t, RunStatusRunning, s.Status, "never terminal by itself")
	}},
	{KindAgentSessionChanged, []Event{ev("a", &AgentStarted{ProviderSessionID: "p1"}), ev("a", &AgentSessionChanged{ProviderSessionID: "p2", Reason: "fork"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, map[string]string{"a": "p2"}, s.AgentSessions, "by agent outside nodes")
		require.Equal(t, "p2", s.Agents["a"].ProviderSessionID)
	}},
	{KindEventRetracted, []Event{ev("a", says("m1", "")), ev("a", says("m2", "")), ev("", &EventRetracted{EventIDs: []string{"e0", "nothing"}})}, func(t *testing.T, s *RunSnapshot) {
		require.Len(t, s.Messages, 1)
		require.Equal(t, "m2", s.Messages[0].MessageID)
		require.Equal(t, []string{"e1"}, s.Resume.messageEvents)
		require.Equal(t, []string{"e0", "nothing"}, s.Retracted)
	}},
	{KindTaskAssigned, []Event{ev("lead", &TaskAssigned{Goal: "g", AssignedAgent: "a"}, scoped(Scope{TaskID: "t1"})), ev("b", &TaskAssigned{Goal: "h"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []TaskSnapshot{{Sequence: 0, TaskID: "t1", AgentID: "a", Goal: "g"}, {Sequence: 1, AgentID: "b", Goal: "h"}}, s.Tasks)
	}},
	{KindAgentReasoned, []Event{ev("a", &AgentReasoned{Reasoning: "hm"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, "hm", s.Agents["a"].Reasoning)
	}},
	{KindAgentReasoningDelta, []Event{ev("a", &AgentReasoningDelta{Delta: "h"}), ev("a", &AgentReasoningDelta{Delta: "m"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, "hm", s.Agents["a"].Reasoning)
		require.True(t, s.Agents["a"].Resume.reasoningOpen)
	}},
	{KindTextCompleted, []Event{ev("a", &TextDelta{BlockID: "b", Delta: "I'l"}), ev("a", &TextCompleted{BlockID: "b", Text: "I will"}), ev("a", &TextDelta{BlockID: "b", Delta: "l"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, "I will", s.Agents["a"].Text, "the whole block is the truth")
		require.False(t, s.Agents["a"].Resume.textOpen)
	}},
	{KindTextDelta, []Event{ev("a", started()), ev("a", &TextDelta{Delta: "Done! "}), ev("a", &TextDelta{Delta: "I've"}), ev("a", &AgentEnded{})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, "Done! I've", s.Agents["a"].Text, "some documents write deltas alone")
		require.False(t, s.Agents["a"].Resume.textOpen)
	}},
	{KindAgentDecided, []Event{ev("a", &AgentDecided{Decision: `1`}, scoped(Scope{NodeID: "n1"})), ev("a", &AgentDecided{Decision: `2`}, scoped(Scope{NodeID: "n2"}))}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, 2, s.Agents["a"].Decisions)
		require.Equal(t, "n1", s.Agents["a"].NodeID, "of its first event, as it has no start")
	}},
	{KindOrchestratorDecided, []Event{ev("", &OrchestratorDecided{Decision: `{"kind":"terminate"}`})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, JSON(`{"kind":"terminate"}`), s.RunOrchestrator)
	}},
	{KindMessageCreated, []Event{ev("a", says("m1", "")), ev("a", says("m2", "")), ev("a", says("m1", ""))}, func(t *testing.T, s *RunSnapshot) {
		require.Len(t, s.Messages, 2, "a message counts once")
		require.Equal(t, []string{"e0", "e1"}, s.Resume.messageEvents)
	}},
	{KindModelCalled, []Event{ev("a", &ModelCalled{ModelCallID: "m1", Provider: "p", Model: "m", Operation: "chat", Attempt: Some(2), RetryOf: "m0"}, atStep(4))}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []ModelCallSnapshot{{
			AgentID: "a", ModelCallID: "m1", EventID: "e0", Step: Some(4), Provider: "p", Model: "m", Operation: "chat", Attempt: Some(2), RetryOf: "m0", StartedAt: second(0),
		}}, s.OpenModelCalls)
		require.Equal(t, 1, s.Agents["a"].ModelCalls)
	}},
	{KindModelReturned, []Event{
		ev("a", &ModelCalled{ModelCallID: "m1", Model: "m"}), ev("a", &ModelCalled{ModelCallID: "m2", Model: "m"}), ev("a", &ModelCalled{ModelCallID: "m3", Model: "m"}),
		ev("a", &ModelReturned{ModelCallID: "m1", Error: Some(ErrorInfo{Code: "overloaded", Message: "wait"})}, causedBy("e0")),
		ev("a", &ModelReturned{ModelCallID: "m2", Model: "m-1", Usage: Some(Usage{InputTokens: 3}), CostUSD: Some(0.5), Duration: Some(time.Minute)}),
		ev("a", &ModelReturned{ModelCallID: "m4", Model: "n", OneEvent: true, Duration: Some(40 * time.Millisecond)}),
		ev("a", &AgentEnded{}), ev("", &RunFailed{}),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Len(t, s.OpenModelCalls, 1, "no end closes a call that did not return, as with tools")
		require.Equal(t, "m3", s.OpenModelCalls[0].ModelCallID)
		a := s.Agents["a"]
		require.Equal(t, 4, a.ModelCalls)
		require.Equal(t, 1, a.ModelFailures)
		require.Equal(t, 3*time.Second+time.Minute+40*time.Millisecond, a.ModelDuration)
		require.Equal(t, map[string]Usage{"m": {}, "m-1": {InputTokens: 3, CostUSD: Some(0.5)}, "n": {}}, s.Usage.Models, "also those that state no usage")
		require.Equal(t, Some(0.5), s.Usage.CostUSD)
	}},
	{KindModelCalled, []Event{ev("a", &TextDelta{Delta: "one"}), ev("a", &ModelCalled{ModelCallID: "m1"}), ev("a", &TextDelta{Delta: "two"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, "two", s.Agents["a"].Text, "another answer is another block")
	}},
	{KindToolCalled, []Event{ev("a", &ToolCalled{CallID: "c1", ToolID: "Read", Attempt: Some(2), RetryOf: "c0"}, atStep(4))}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []*ToolCallSnapshot{{AgentID: "a", CallID: "c1", ToolID: "Read", EventID: "e0", Step: Some(4), Attempt: Some(2), RetryOf: "c0", StartedAt: second(0)}}, s.OpenCalls)
		require.Equal(t, &ToolStats{Calls: 1}, s.Tools["Read"])
		require.Equal(t, 1, s.Agents["a"].ToolCalls)
	}},
	{KindToolReturned, []Event{
		ev("a", call("c1")), ev("a", call("c2")),
		ev("a", &ToolReturned{CallID: "c1", ToolID: "Read", Status: ToolStatusError, Error: Some(ErrorInfo{Message: "gone"})}, causedBy("e0")),
		ev("a", &ToolReturned{CallID: "c2", ToolID: "Read", Status: ToolStatusOK, Duration: Some(time.Minute)}),
		ev("a", &ToolReturned{CallID: "c3", ToolID: "Read", Status: ToolStatusForbidden}),
		ev("a", &ToolReturned{CallID: "c4", ToolID: "Grep", Status: ToolStatusOK, OneEvent: true, Duration: Some(40 * time.Millisecond)}),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Empty(t, s.OpenCalls)
		require.Len(t, s.ClosedCalls, 4)
		require.Equal(t, "gone", s.ClosedCalls[0].Error)
		require.Equal(t, Some(2*time.Second), s.ClosedCalls[0].Duration, "counted where it is not stated")
		require.Equal(t, second(5).Add(-40*time.Millisecond), s.ClosedCalls[3].StartedAt, "time less duration")
		require.Equal(t, &ToolStats{Calls: 2, OK: 1, Failed: 1, Refused: 1, Duration: 62 * time.Second}, s.Tools["Read"])
		require.Equal(t, &ToolStats{Calls: 1, OK: 1, Duration: 40 * time.Millisecond}, s.Tools["Grep"])
		require.Equal(t, 3, s.Agents["a"].ToolCalls)
		require.Equal(t, 1, s.Agents["a"].ToolFailures)
		require.Equal(t, 1, s.Agents["a"].ToolRefusals)
		require.Equal(t, 3, s.Agents["a"].Counted.ToolCalls)
	}},
	{KindToolReturned, []Event{
		ev("a", &ToolReturned{CallID: "c1", ToolID: "Read", Status: ToolStatusForbidden, OneEvent: true, Duration: Some(time.Second)}),
		ev("a", &ToolReturned{CallID: "c2", ToolID: "Read", Status: ToolStatusRateLimited, OneEvent: true}),
		ev("a", &AgentEnded{Outcome: OutcomeAborted, Totals: Some(Totals{})}),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, &ToolStats{Refused: 2, Duration: time.Second}, s.Tools["Read"], "a refused call never began")
		require.Zero(t, s.ClosedCalls[0].StartedAt)
		require.Zero(t, s.Agents["a"].ToolCalls)
		require.Zero(t, s.Agents["a"].ToolFailures)
		require.Equal(t, 2, s.Agents["a"].ToolRefusals)
		require.Zero(t, s.Agents["a"].Counted.ToolCalls)
	}},
	{KindToolReturned, []Event{
		ev("a", call("c1")), ev("a", call("c2")), ev("a", call("c3")), ev("a", call("c4")),
		ev("a", &ToolReturned{CallID: "c1", ToolID: "Read", Status: ToolStatusForbidden}),
		ev("a", &ToolReturned{CallID: "c2", ToolID: "Read", Status: ToolStatusCancelled}),
		ev("a", &ToolReturned{CallID: "c3", ToolID: "Read", Status: ToolStatusInterrupted}),
	}, func(t *testing.T, s *RunSnapshot) {
		a := s.Agents["a"]
		require.Equal(t, [3]int{1, 2, 4}, [3]int{s.Tools["Read"].Refused, s.Tools["Read"].Undecided, s.Tools["Read"].Calls}, "a refusal after the call is one, too; nothing has failed")
		require.Equal(t, [4]int{0, 1, 2, 4}, [4]int{a.ToolFailures, a.ToolRefusals, a.ToolsUndecided, a.ToolCalls})
	}},
	{KindAgentHandoff, []Event{ev("a", &AgentHandoff{From: ref("a"), To: ref("b"), Reason: "r"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []HandoffSnapshot{{From: "a", To: "b", Reason: "r"}}, s.Handoffs)
	}},
	{KindAgentHandoff, []Event{
		ev("a", &AgentHandoff{From: ref("a"), To: AgentRef{AgentID: "b", ModelClass: ModelCoding}}), ev("b", &TextCompleted{}),
		ev("b", &AgentHandoff{From: AgentRef{AgentID: "b", ModelClass: ModelWriting}, To: AgentRef{AgentID: "a", ModelClass: ModelWriting}}),
		ev("a", &AgentHandoff{From: ref("a"), To: AgentRef{AgentID: "nobody"}}),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, Some(AgentRef{AgentID: "b", ModelClass: ModelCoding}), s.Agents["b"].Ref, "named before its first event")
		require.Equal(t, Some(AgentRef{AgentID: "a", ModelClass: ModelWriting}), s.Agents["a"].Ref, "more than its id")
		require.Len(t, s.Agents, 2, "to be named is not to act")
		require.Equal(t, []AgentRef{{AgentID: "nobody"}}, s.Resume.expected)
	}},
	{KindHandoffRequested, []Event{ev("a", &HandoffRequested{From: AgentRef{AgentID: "a", MemoryRef: "m"}, To: ref("b")}), ev("b", &HandoffAccepted{From: ref("a"), To: AgentRef{AgentID: "b", MemoryRef: "n"}})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, "m", s.Agents["a"].Ref.V.MemoryRef)
		require.Equal(t, "n", s.Agents["b"].Ref.V.MemoryRef)
	}},
	{KindHandoffRequested, []Event{ev("a", &HandoffRequested{HandoffID: "h", From: ref("a"), To: ref("b")})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []HandoffSnapshot{{HandoffID: "h", From: "a", To: "b", Open: true}}, s.Handoffs)
	}},
	{KindHandoffAccepted, []Event{
		ev("a", &HandoffRequested{HandoffID: "h", From: ref("a"), To: ref("b")}), ev("a", &HandoffRequested{From: ref("a"), To: ref("b")}),
		ev("b", &HandoffAccepted{From: ref("a"), To: ref("b")}),
	}, func(t *testing.T, s *RunSnapshot) {
		require.True(t, s.Handoffs[0].Open, "one with an id is not accepted by its pair")
		require.False(t, s.Handoffs[1].Open)
	}},
	{KindTurnStarted, []Event{ev("a", &TurnStarted{Turn: Some(1), Name: "n"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []TurnSnapshot{{Turn: Some(1), Name: "n", AgentID: "a", StartedAt: second(0)}}, s.Turns)
	}},
	{KindTurnEnded, []Event{ev("a", &TurnStarted{Turn: Some(1)}), ev("b", &TurnStarted{Turn: Some(1)}), ev("a", &TurnEnded{Turn: Some(1), Error: Some(ErrorInfo{Message: "m"})})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, second(2), s.Turns[0].EndedAt)
		require.Equal(t, uint64(2), s.Turns[0].EndSequence)
		require.Equal(t, uint64(1), s.Turns[1].Sequence)
		require.Equal(t, Some(2*time.Second), s.Turns[0].Duration)
		require.Equal(t, "m", s.Turns[0].Error.V.Message)
		require.True(t, s.Turns[1].EndedAt.IsZero(), "another agent's turn")
	}},
	{KindTurnSummarized, []Event{ev("a", &TurnStarted{Turn: Some(1)}), ev("a", &TurnEnded{}), ev("a", &TurnSummarized{Text: "x", Intent: "i", ToolCalls: []ToolCallSummary{}, Usage: Usage{InputTokens: 99}})}, func(t *testing.T, s *RunSnapshot) {
		require.Len(t, s.Turns, 1, "it sums up the turn that ended")
		require.Equal(t, "x", s.Turns[0].Text)
		require.Equal(t, "i", s.Turns[0].Intent)
		require.EqualValues(t, 99, s.Usage.Usage.InputTokens, "nothing else tells the usage")
	}},
	{KindTurnSummarized, []Event{ev("a", &UsageObserved{Usage: Usage{InputTokens: 5}}), ev("b", &TurnSummarized{Usage: Usage{InputTokens: 99}}), ev("b", &TurnSummarized{Usage: Usage{InputTokens: 7}})}, func(t *testing.T, s *RunSnapshot) {
		require.EqualValues(t, 12, s.Usage.Usage.InputTokens, "the first one is a cross-check of earlier reports, the second one has the only figures of its turn")
	}},
	{KindStepStarted, []Event{ev("a", &StepStarted{StepID: "s1", Name: "n", Description: "d"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []StepSnapshot{{StepID: "s1", Name: "n", Description: "d", AgentID: "a", StartedAt: second(0)}}, s.Steps)
	}},
	{KindStepEnded, []Event{ev("a", &StepStarted{StepID: "s1"}), ev("a", &StepEnded{StepID: "s1", Error: Some(ErrorInfo{Message: "m"})}), ev("a", &StepEnded{StepID: "s2", Duration: Some(time.Second)})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, Some(time.Second), s.Steps[0].Duration)
		require.Equal(t, "m", s.Steps[0].Error.V.Message)
		require.Equal(t, StepSnapshot{Sequence: 2, EndSequence: 2, StepID: "s2", AgentID: "a", EndedAt: second(2), Duration: Some(time.Second)}, s.Steps[1], "an end without a start is kept")
	}},
	{KindTurnEnded, []Event{
		ev("a", &TurnStarted{Turn: Some(1)}, inSpan("s1")), ev("a", &TurnStarted{}, inSpan("s2")), ev("a", &TurnStarted{Turn: Some(3)}, inSpan("s3")),
		ev("", &TurnEnded{Turn: Some(1)}, inSpan("s1")), ev("a", &TurnEnded{Turn: Some(2)}, inSpan("s2")), ev("a", &TurnEnded{Turn: Some(4)}, inSpan("s3")),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, second(3), s.Turns[0].EndedAt, "a span is in one run, whoever ends it")
		require.Equal(t, second(4), s.Turns[1].EndedAt, "the number is said at the end")
		require.Zero(t, s.Turns[2].EndedAt, "the end is of another turn")
		require.Equal(t, second(5), s.Turns[3].EndedAt)
	}},
	{KindTurnEnded, []Event{
		ev("a", &TurnStarted{}, inSpan("s1")), ev("a", &TurnStarted{}, inSpan("s2")), ev("b", &TurnStarted{}, inSpan("s2")),
		ev("a", &TurnEnded{}, inSpan("s1")), ev("a", &TurnEnded{}, inSpan("s2")), ev("b", &TurnEnded{}, inSpan("other")),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, second(3), s.Turns[0].EndedAt, "not the agent's last turn")
		require.Equal(t, second(4), s.Turns[1].EndedAt, "a tracer may give events of several agents one span")
		require.Equal(t, second(5), s.Turns[2].EndedAt)
	}},
	{KindStepEnded, []Event{
		ev("a", &StepStarted{StepID: "x"}, inSpan("s1")), ev("a", &StepStarted{StepID: "x"}, inSpan("s2")), ev("a", &StepStarted{StepID: "y"}, inSpan("s2")),
		ev("a", &StepEnded{StepID: "made up"}, inSpan("s1")), ev("", &StepEnded{StepID: "y"}, inSpan("s2")), ev("a", &StepEnded{StepID: "x"}, inSpan("s2")),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Len(t, s.Steps, 3)
		require.Equal(t, second(3), s.Steps[0].EndedAt)
		require.Equal(t, second(5), s.Steps[1].EndedAt)
		require.Equal(t, second(4), s.Steps[2].EndedAt)
	}},
	{KindNodeStarted, []Event{
		ev("", &NodeStarted{Agent: Some(ref("a"))}, node("n1")), ev("", &NodeStarted{Agent: Some(AgentRef{AgentID: "a", ModelClass: ModelCoding})}, node("n1")),
		ev("a", &TextCompleted{}), ev("b", &TextCompleted{}), ev("", &NodeCompleted{Agent: Some(ref("b"))}, node("n1")), ev("", &NodeCompleted{}, node("n1")),
		ev("c", &AgentStarted{Agent: Some(AgentRef{AgentID: "c", ModelClass: ModelCoding})}), ev("", &NodeStarted{Agent: Some(ref("c"))}, node("n2")),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, ModelCoding, s.Agents["a"].Ref.V.ModelClass)
		require.Equal(t, Some(ref("b")), s.Agents["b"].Ref)
		require.Equal(t, ModelCoding, s.Agents["c"].Ref.V.ModelClass, "its start has more members")
	}},
	{KindNodeStarted, []Event{
		ev("", &NodeStarted{Agent: Some(AgentRef{AgentID: "b", ModelClass: ModelCoding})}, node("n1")), ev("", &NodeStarted{Agent: Some(AgentRef{AgentID: "b", MemoryRef: "m"})}, node("n2")),
		ev("", &NodeCompleted{Agent: Some(ref("b"))}, node("n1")), ev("", &NodeCompleted{Agent: Some(ref("c"))}, node("n2")), ev("b", &AgentDecided{Decision: `1`}),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, map[string]AgentRef{"n1": {AgentID: "b", ModelClass: ModelCoding}, "n2": {AgentID: "c"}}, s.Facts.V.NodeAgents)
		require.Equal(t, Some(AgentRef{AgentID: "b", ModelClass: ModelCoding, MemoryRef: "m"}), s.Agents["b"].Ref, "all members of the references")
	}},
	{KindNodeStarted, []Event{ev("", &NodeStarted{}, node("n1"))}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, NodeStatusRunning, s.NodeStatus["n1"])
		require.Equal(t, "n1", s.CurrentNodeID)
		require.Equal(t, map[string]int{"n1": 1}, s.NodeRuns)
	}},
	{KindNodeCompleted, []Event{ev("", &NodeStarted{}, node("n1")), ev("", &NodeCompleted{Outputs: `{"o":1}`}, node("n1"))}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, NodeStatusDone, s.NodeStatus["n1"])
		require.Equal(t, map[string]JSON{"n1": `{"o":1}`}, s.Outputs)
		require.Empty(t, s.CurrentNodeID)
		require.Empty(t, s.NodeRuns)
	}},
	{KindNodeFailed, []Event{ev("", &NodeStarted{}, node("n1")), ev("", &NodeFailed{Error: ErrorInfo{Message: `it "broke"`}}, node("n1"))}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, NodeStatusFailed, s.NodeStatus["n1"])
		require.Equal(t, JSON(`{"error":"it \"broke\""}`), s.Outputs["n1"])
	}},
	{KindNodeFailed, []Event{
		ev("", started(), scoped(Scope{NodeID: "n1", NodeRunID: "x1"})), ev("b", started(), scoped(Scope{NodeID: "n1", NodeRunID: "x1"})),
		ev("", &NodeFailed{Error: ErrorInfo{Message: "broken"}}, scoped(Scope{NodeID: "n1", NodeRunID: "x1"})),
	}, func(t *testing.T, s *RunSnapshot) {
		a := s.Agents["x1"]
		require.True(t, a.Ended && !a.Open && !a.EndedAt.IsZero(), "it ends with its node")
		require.Equal(t, Some(ErrorInfo{Message: "broken"}), a.Error)
		require.True(t, s.Agents["b"].Open, "an agent with an id may go on")
	}},
	{KindNodeCompleted, []Event{
		ev("", started(), scoped(Scope{NodeID: "n1", NodeRunID: "x1"})), ev("", &AgentEnded{Result: "done"}, scoped(Scope{NodeID: "n1", NodeRunID: "x1"})),
		ev("", &NodeCompleted{}, scoped(Scope{NodeID: "n1", NodeRunID: "x1"})),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, "done", s.Agents["x1"].Result)
		require.False(t, s.Agents["x1"].Error.OK)
	}},
	{KindNodeSkipped, []Event{ev("", &NodeSkipped{Reason: "when"}, node("n1"))}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, NodeStatusDone, s.NodeStatus["n1"], "a skipped node is done")
		require.Equal(t, JSON(`{"skipped":true,"reason":"when"}`), s.Outputs["n1"])
	}},
	{KindNodeSuspended, []Event{
		ev("", &NodeStarted{}, node("n1")), ev("", &NodeSuspended{Reason: "low-confidence", Details: `{"observed":0.4}`}, node("n1")),
		ev("", &NodeSuspended{Details: "1"}, node("n2")), ev("", &NodeSuspended{}, node("n2")),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, NodeStatusSuspended, s.NodeStatus["n1"])
		require.Equal(t, map[string]JSON{"n1": `{"observed":0.4}`}, s.Facts.V.Suspensions, "of the latest suspension")
		require.Equal(t, "n1", s.CurrentNodeID)
	}},
	{"node.resumed", []Event{ev("", &NodeStarted{}, node("n1")), ev("", &NodeSuspended{Reason: "r1"}, node("n1")), ev("", &NodeStarted{}, node("n2")), ev("", &Unknown{Type: "node.resumed"}, node("n1")),
		ev("", &Unknown{Type: "node.resumed"}, node("n2")), ev("", &Unknown{Type: "node.resumed"}, node("n3")), ev("", &Unknown{Type: "node.resumed"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, map[string]NodeStatus{"n1": NodeStatusRunning, "n2": NodeStatusRunning}, s.NodeStatus, "a node that did not wait is not resumed")
		require.Equal(t, map[string]int{"n1": 1, "n2": 1}, s.NodeRuns)
		require.Empty(t, s.Suspended)
		require.Equal(t, "n1", s.CurrentNodeID)
	}},
	{"workflow.phase.failed", []Event{
		ev("", &PhaseStarted{}, inScout), ev("", &PhaseStarted{}, inBuild), ev("", &Unknown{Type: "workflow.phase.reviewed", Raw: `{"workflowId":"w","phase":"build"}`}),
		ev("", &Unknown{Type: "workflow.phase.failed", Raw: `{"workflowId":"w","phase":"build","error":{"message":"rock"}}`}), ev("", &Unknown{Type: "workflow.phase.skipped"}, inScout),
		ev("a", &AgentStarted{}, scoped(Scope{WorkflowID: "w"})), // outside a phase, so it is legal
	}, func(t *testing.T, s *RunSnapshot) {
		require.Len(t, s.Phases, 2)
		require.False(t, s.Phases[0].Open || s.Phases[1].Open)
		require.Equal(t, []string{"skipped", "failed"}, []string{s.Phases[0].Ended, s.Phases[1].Ended})
		require.Equal(t, "rock", s.Phases[1].Error.V.Message)
		require.Equal(t, second(3), s.Phases[1].EndedAt)
		require.Empty(t, s.Violations)
	}},
	{"handoff.rejected", []Event{
		ev("", &HandoffRequested{HandoffID: "h1", From: AgentRef{AgentID: "a"}, To: AgentRef{AgentID: "b"}}), ev("", &HandoffRequested{From: AgentRef{AgentID: "b"}, To: AgentRef{AgentID: "c"}}),
		ev("c", &Unknown{Type: "handoff.queued", Raw: `{"handoffId":"h1"}`}), ev("", &Unknown{Type: "handoff.rejected", Raw: `{"handoffId":"h1","reason":"busy"}`}), ev("c", &Unknown{Type: "handoff.timed_out"}),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Len(t, s.Handoffs, 2)
		require.False(t, s.Handoffs[0].Open || s.Handoffs[1].Open)
		require.Equal(t, "rejected", s.Handoffs[0].Ended)
		require.Equal(t, "busy", s.Handoffs[0].Error.V.Message)
		require.Equal(t, "timed_out", s.Handoffs[1].Ended)
	}},
	{KindEdgeFired, []Event{ev("", &NodeStarted{}, node("n1")), ev("", &NodeCompleted{}, node("n1")), ev("", &EdgeFired{EdgeID: "e1", From: "n2", To: "n1"}), ev("", &EdgeFired{From: "n1", To: "n3"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, map[string]EdgeStatus{"e1": EdgeStatusFired, "n1->n3": EdgeStatusFired}, s.EdgeStatus)
		require.Equal(t, "n1->n3", s.Resume.lastEdge)
		require.Equal(t, NodeStatusPending, s.NodeStatus["n1"], "a loop goes round")
	}},
	{KindEdgeSkipped, []Event{ev("", &EdgeSkipped{From: "n1", To: "n2"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, map[string]EdgeStatus{"n1->n2": EdgeStatusSkipped}, s.EdgeStatus)
	}},
	{KindLoopIterated, []Event{ev("", &LoopIterated{EdgeID: "e9", Iteration: 4}), ev("", &EdgeFired{From: "b", To: "a"}), ev("", &LoopIterated{Iteration: 2})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, map[string]int{"e9": 4, "b->a": 2}, s.LoopCounters, "without an id, the edge fired last")
	}},
	{KindStatePatched, []Event{ev("", &StatePatched{Op: PatchSet, Path: "a", Value: "1"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, `{"a":1}`, stateOf(s))
	}},
	{KindWorkflowCreated, []Event{ev("", &WorkflowCreated{Phases: []string{"scout", "build"}, EstimatedTokens: Some[int64](5)}, inWorkflow)}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []WorkflowSnapshot{{WorkflowID: "w", Phases: []string{"scout", "build"}, EstimatedTokens: Some[int64](5)}}, s.Workflows)
		require.Equal(t, "w", s.WorkflowID)
	}},
	{KindWorkflowApproved, []Event{ev("", &WorkflowApproved{ApprovedBy: "ada", ApprovedAt: second(9)}, inWorkflow)}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, "ada", s.Workflows[0].ApprovedBy)
		require.Equal(t, second(9), s.Workflows[0].ApprovedAt)
	}},
	{KindPhaseStarted, []Event{ev("", &PhaseStarted{InputCount: Some(3)}, inScout)}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []PhaseSnapshot{{WorkflowID: "w", Phase: "scout", Open: true, StartedAt: second(0), InputCount: Some(3)}}, s.Phases)
	}},
	{KindPhaseCompleted, []Event{ev("", &PhaseStarted{}, inScout), ev("", &PhaseStarted{}, inBuild), ev("", &PhaseCompleted{OutputCount: Some(2), Tokens: Some[int64](7)}, inScout)}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, PhaseSnapshot{WorkflowID: "w", Phase: "scout", StartedAt: second(0), EndedAt: second(2), OutputCount: Some(2), Tokens: Some[int64](7)}, s.Phases[0])
		require.True(t, s.Phases[1].Open)
		require.Zero(t, s.Usage.Usage, "a cross-check")
	}},
	{KindPhaseCompleted, []Event{ // of the span, else the latest
		ev("", &PhaseStarted{InputCount: Some(1)}, inScout, inSpan("p")), ev("", &PhaseStarted{InputCount: Some(2)}, inScout, inSpan("q")), ev("", &PhaseStarted{InputCount: Some(3)}, inScout),
		ev("", &PhaseCompleted{}, inScout, inSpan("p")), ev("", &PhaseCompleted{}, inScout, inSpan("o")),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, [3]bool{false, true, false}, [3]bool{s.Phases[0].Open, s.Phases[1].Open, s.Phases[2].Open})
		require.Equal(t, [3]string{"p", "q", ""}, [3]string{s.Phases[0].SpanID, s.Phases[1].SpanID, s.Phases[2].SpanID})
		require.Equal(t, second(3), s.Phases[0].EndedAt)
	}},
	{KindPhaseStarted, []Event{ // again, after a restart
		ev("", &PhaseStarted{InputCount: Some(1)}, inScout, inSpan("p")), ev("", &CheckpointResumed{ResumedAt: second(9)}, inScout), ev("", &PhaseStarted{InputCount: Some(9)}, inScout, inSpan("q")),
		ev("", &PhaseStarted{}, inBuild), ev("", &PhaseStarted{}, inBuild), ev("", &PhaseCompleted{}, inScout, inSpan("p")),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Len(t, s.Phases, 3)
		require.Equal(t, PhaseSnapshot{WorkflowID: "w", Phase: "scout", SpanID: "q", StartedAt: second(0), EndedAt: second(5), InputCount: Some(9), resumes: 1}, s.Phases[0])
		require.True(t, s.Phases[1].Open && s.Phases[2].Open, "a restart counts once")
	}},
	{KindCheckpointSaved, []Event{ev("", &CheckpointSaved{StateBytes: 12}, inScout)}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []CheckpointSnapshot{{WorkflowID: "w", Phase: "scout", At: second(0), StateBytes: Some[int64](12)}}, s.Checkpoints)
	}},
	{KindCheckpointResumed, []Event{ev("", &CheckpointResumed{ResumedAt: second(3)}, inScout)}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []CheckpointSnapshot{{WorkflowID: "w", Phase: "scout", At: second(3), Resumed: true}}, s.Checkpoints)
	}},
	{KindWorkflowFinalized, []Event{ev("", &WorkflowFinalized{TotalTokens: 9, TotalAgents: 2, Duration: time.Second}, inWorkflow)}, func(t *testing.T, s *RunSnapshot) {
		require.True(t, s.Workflows[0].Finalized)
		require.Equal(t, second(0), s.Workflows[0].FinalizedAt)
		require.Equal(t, Some[int64](9), s.Workflows[0].TotalTokens)
		require.Zero(t, s.Usage.Usage, "a cross-check")
	}},
	{KindApprovalRequested, []Event{ev("a", started()), ev("a", &ApprovalRequested{ApprovalID: "p", Action: "push", CallID: "c"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []ApprovalSnapshot{{Sequence: 1, ApprovalID: "p", Action: "push", CallID: "c", AgentID: "a", RequestedAt: second(1), Open: true}}, s.Approvals)
		require.Equal(t, RunStatusWaiting, s.Status)
	}},
	{KindApprovalGranted, []Event{ev("a", started()), ev("a", &ApprovalRequested{ApprovalID: "p"}), ev("", &ApprovalGranted{ApprovalID: "p", ApprovedBy: "ada", Feedback: "ok"})}, func(t *testing.T, s *RunSnapshot) {
		require.True(t, s.Approvals[0].Granted)
		require.False(t, s.Approvals[0].Open)
		require.Equal(t, KindApprovalGranted, s.Approvals[0].ClosedBy)
		require.Equal(t, "ada", s.Approvals[0].By)
		require.Equal(t, RunStatusRunning, s.Status)
	}},
	{KindApprovalGranted, []Event{ev("a", &ApprovalRequested{ApprovalID: "p"}), ev("a", &ApprovalRequested{ApprovalID: "p", Action: "push"}), ev("", &ApprovalGranted{ApprovalID: "p"})}, func(t *testing.T, s *RunSnapshot) {
		require.False(t, s.Approvals[0].Open, "asked again: one answer is enough")
		require.Equal(t, KindApprovalRequested, s.Approvals[0].ClosedBy)
		require.True(t, s.Approvals[1].Granted)
		require.Equal(t, RunStatusRunning, s.Status)
	}},
	{KindApprovalRejected, []Event{ev("a", &ApprovalRequested{ApprovalID: "p"}), ev("", &ApprovalRejected{ApprovalID: "p", RejectedBy: "ada", Feedback: "no"})}, func(t *testing.T, s *RunSnapshot) {
		require.False(t, s.Approvals[0].Granted)
		require.Equal(t, "no", s.Approvals[0].Feedback)
	}},
	{KindClarificationRequested, []Event{ev("a", started()), ev("a", &ClarificationRequested{InterruptID: "i", Questions: []Question{{ID: "q", Question: "?", Schema: `{"a":1}`}}})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []Question{{ID: "q", Question: "?", Schema: `{"a":1}`}}, s.Clarifications[0].Questions)
		require.Equal(t, RunStatusWaiting, s.Status)
	}},
	{KindClarificationResolved, []Event{ev("a", &ClarificationRequested{InterruptID: "i", Questions: []Question{}}), ev("", &ClarificationResolved{InterruptID: "i", Answers: `{"q":1}`, AnsweredBy: "ada"})}, func(t *testing.T, s *RunSnapshot) {
		require.False(t, s.Clarifications[0].Open)
		require.Equal(t, KindClarificationResolved, s.Clarifications[0].ClosedBy)
		require.Equal(t, JSON(`{"q":1}`), s.Clarifications[0].Answers)
	}},
	{KindCommandReceived, []Event{
		ev("", &CommandReceived{Command: Command{Type: CommandSend, RunID: "n#1", Message: "hi"}}),
		ev("", &CommandReceived{Command: Command{Type: CommandReply, RunID: "n#1", PromptID: "p", Content: "8080"}}),
		ev("", &CommandReceived{Command: Command{Type: CommandSend, RunID: "n#1"}, Rejected: "no such run"}),
		ev("", &CommandReceived{Command: Command{Type: CommandSend, Message: "to nobody"}}),
		ev("", &CommandReceived{Command: Command{Type: "pause", Reason: "lunch"}}),
		ev("", &CommandReceived{Command: Command{Type: CommandResume}}),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Len(t, s.Inbox, 3, "rejected commands, and those to nobody, do not wait")
		require.Equal(t, InboxItem{EventID: "e0", Command: Command{Type: CommandSend, RunID: "n#1", Message: "hi"}}, s.Inbox[0])
		require.Equal(t, Command{Type: "pause", Reason: "lunch"}, s.Inbox[2].Command, "a type of the runtime's own")
	}},
	{KindCommandConsumed, []Event{
		ev("", &CommandReceived{Command: Command{Type: CommandSend, RunID: "n#1", Message: "1"}}),
		ev("", &CommandReceived{Command: Command{Type: CommandSend, RunID: "n#1", Message: "2"}}),
		ev("", &CommandConsumed{EventID: "e0"}), ev("", &CommandConsumed{EventID: "e0"}),
	}, func(t *testing.T, s *RunSnapshot) {
		require.Len(t, s.Inbox, 1)
		require.Equal(t, "2", s.Inbox[0].Command.Message)
	}},
	{KindAuditChecked, []Event{ev("a", audit(AuditFail)), ev("", audit(AuditWarn))}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []AuditSnapshot{{AgentID: "a", CheckpointID: "audit:tests", Result: AuditFail}, {Sequence: 1, CheckpointID: "audit:tests", Result: AuditWarn}}, s.Audits)
		require.Equal(t, Totals{AuditCheckpoints: 1, AuditsFailed: 1}, s.Agents["a"].Counted)
	}},
	{KindClaimVerified, []Event{ev("", &ClaimVerified{FindingID: "f", VerifierAgentID: "v", Verdict: "accepted", Evidence: "[1]"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []ClaimSnapshot{{FindingID: "f", VerifierAgentID: "v", Verdict: "accepted", Evidence: "[1]"}}, s.Claims)
	}},
	{KindIssueFound, []Event{ev("v", &IssueFound{Issue: "i", Severity: "minor", Evidence: "{}", SuggestedFix: "x"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []IssueSnapshot{{AgentID: "v", Issue: "i", Severity: "minor", Evidence: "{}", SuggestedFix: "x"}}, s.Issues)
	}},
	{KindCitationFound, []Event{ev("a", &CitationFound{Claim: "c", SourceURI: "u"}), ev("", &CitationFound{Claim: "c", SourceURI: "v", Confidence: Some(0.5), Verified: Some(true)})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, 2, s.Citations)
		require.Equal(t, []CitationSnapshot{
			{AgentID: "a", Claim: "c", SourceURI: "u"}, {Sequence: 1, Claim: "c", SourceURI: "v", Confidence: Some(0.5), Verified: true},
		}, s.Facts.V.Citations)
	}},
	{KindEvidenceInsufficient, []Event{ev("a", &EvidenceInsufficient{Reason: "r", WhatWouldResolve: "w"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []InsufficiencySnapshot{{AgentID: "a", Reason: "r", WhatWouldResolve: "w"}}, s.Facts.V.Insufficiencies)
	}},
	{KindIntentClassified, []Event{ev("a", &IntentClassified{Intent: "plan", Confidence: Some(1.0), Reasoning: "r"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []IntentSnapshot{{AgentID: "a", Intent: "plan", Confidence: Some(1.0)}}, s.Facts.V.Intents)
	}},
	{KindPlanProposed, []Event{ev("a", &PlanProposed{Steps: []PlanStep{{StepID: "s", Description: "d", ToolName: "x"}}, Strategy: "direct"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []PlanSnapshot{{AgentID: "a", Strategy: "direct", Steps: []PlanStep{{StepID: "s", Description: "d", ToolName: "x"}}}}, s.Facts.V.Plans)
	}},
	{KindMemoryChanged, []Event{ev("", &MemoryChanged{Change: "added"}), ev("a", &MemoryChanged{Change: "added"}), ev("a", &MemoryChanged{Change: "evicted"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, map[string]int{"added": 2, "evicted": 1}, s.Facts.V.Memory)
	}},
	{KindSpanRecorded, []Event{ev("", &SpanRecorded{Subject: "judge", Phase: "start"}), ev("", &SpanRecorded{Subject: "judge", Phase: "complete"}), ev("", &SpanRecorded{Subject: "judge", Phase: "complete"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, map[string]int{"judge start": 1, "judge complete": 2}, s.Facts.V.Spans)
	}},
	{KindUsageObserved, []Event{ev("a", &UsageObserved{Usage: Usage{InputTokens: 1, OutputTokens: 2}}), ev("", &UsageObserved{Usage: Usage{InputTokens: 10}})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, Usage{InputTokens: 11, OutputTokens: 2}, s.Usage.Usage)
	}},
	{KindBudgetExceeded, []Event{ev("", &BudgetExceeded{Budget: "cost", Limit: 1, Actual: 2})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []BudgetSnapshot{{Budget: "cost", Limit: Some(1.0), Actual: Some(2.0)}}, s.Budgets)
	}},
	{KindCapBreached, []Event{ev("", &CapBreached{Cap: "c", Observed: Some(0.4)})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, []BudgetSnapshot{{Budget: "c", Cap: true, Actual: Some(0.4)}}, s.Budgets)
	}},
	{KindBlackboardItemCreated, []Event{ev("", &BlackboardItemCreated{ItemID: "i", ItemType: "fact", Content: "1"}), ev("", &BlackboardItemCreated{ItemID: "i", ItemType: "fact", Content: `"2"`, SourceAgent: "a", Confidence: Some(0.5)})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, map[string]BlackboardItem{"i": {ItemType: "fact", Content: `"2"`, SourceAgent: "a", Confidence: Some(0.5)}}, s.Blackboard)
	}},
	{"vendor.thing", []Event{ev("", &Unknown{Type: "vendor.thing"}), ev("", &Unknown{Type: "vendor.thing", Raw: "1"})}, func(t *testing.T, s *RunSnapshot) {
		require.Equal(t, map[string]int{"vendor.thing": 2}, s.Unknown)
	}},
}

// These kinds change nothing in a snapshot.
var kindsWithoutEffect = []Kind{
	KindContextCompacted, KindToolArgumentsDelta, KindLoopRoundCompleted,
}

func TestFoldKinds(t *testing.T) {
	shown := map[Kind]bool{}
	for _, c := range kindEffects {
		shown[c.kind] = true
		t.Run(string(c.kind), func(t *testing.T) { c.check(t, fold(t, c.log...)) })
	}
	for _, e := range sampleEvents() {
		if !slices.Contains(kindsWithoutEffect, e.Kind()) {
			continue
		}
		require.False(t, shown[e.Kind()])
		shown[e.Kind()] = true
		e.ID, e.RunID, e.Time = "", "", time.Time{}
		var texts []string
		for _, log := range [][]Event{{ev("coder", started()), ev("core.lead", started())}, {ev("coder", started()), ev("core.lead", started()), e}} {
			s := fold(t, log...)
			// Every event changes the sequence, the step and the place in a block.
			s.NextSequence, s.Resume.recent, s.Resume.recentDeltas = 0, nil, nil
			for _, a := range s.Agents {
				a.Step, a.Resume.ahead, a.Counted, a.Resume.blocks = Opt[int]{}, Opt[int]{}, Totals{}, nil
			}
			texts = append(texts, string(s.AppendJSON(nil)))
		}
		require.Equal(t, texts[0], texts[1], "%s changes the snapshot", e.Kind())
	}
	for info := range Kinds() {
		require.True(t, shown[info.Kind], "no case of kindEffects shows the effect of %s; if it changes nothing, name it in kindsWithoutEffect", info.Kind)
	}
}

func TestRunStatusIsDerived(t *testing.T) {
	end := func(p *AgentEnded) Event { return ev("a", p) }
	ask := ev("a", &ClarificationRequested{InterruptID: "i", Questions: []Question{}})
	sessionEnd := func(status string) Event { return ev("", &SessionCompleted{Status: status}) }
	abort := func(resumable Opt[bool]) Event {
		return ev("", &CommandReceived{Command: Command{Type: CommandAbort, Resumable: resumable}})
	}
	created, finalized := ev("", &WorkflowCreated{}, inWorkflow), ev("", &WorkflowFinalized{}, inWorkflow)
	for _, c := range []struct {
		name string
		want RunStatus
		log  []Event
	}{
		{"nothing", RunStatusPending, nil},
		{"only a session", RunStatusPending, []Event{ev("", &SessionStarted{})}},
		{"an agent works", RunStatusRunning, moves(StatusToolCall)},
		{"something happened, no agent", RunStatusRunning, []Event{ev("", audit(AuditPass))}},
		{"the log stops", RunStatusRunning, moves(StatusToolCall, StatusToolResult)},
		{"converged but not ended", RunStatusRunning, moves(StatusToolCall, StatusToolResult, StatusResponse, StatusReflect, StatusConverged)},
		{"every agent ended", RunStatusCompleted, []Event{ev("a", started()), ev("b", started()), end(&AgentEnded{}), ev("b", &AgentEnded{Outcome: OutcomePartial})}},
		{"one of two ended", RunStatusRunning, []Event{ev("a", started()), ev("b", started()), end(&AgentEnded{})}},
		{"escaped gracefully", RunStatusCompleted, []Event{ev("a", started()), end(&AgentEnded{Outcome: OutcomeEscaped})}},
		{"one aborted", RunStatusFailed, []Event{ev("a", started()), ev("b", started()), end(&AgentEnded{Outcome: OutcomeAborted}), ev("b", &AgentEnded{})}},
		{"one failed", RunStatusFailed, append(moves(StatusFailed), end(&AgentEnded{}))},
		{"one ended by an error", RunStatusFailed, []Event{ev("a", started()), end(&AgentEnded{Error: Some(ErrorInfo{Message: "m"})})}},
		{"it started again", RunStatusRunning, []Event{ev("a", started()), end(&AgentEnded{Outcome: OutcomeAborted}), ev("a", started())}},
		{"the second attempt succeeded", RunStatusCompleted, []Event{ev("a", started()), end(&AgentEnded{Outcome: OutcomeAborted}), ev("a", started()), end(&AgentEnded{Outcome: OutcomeConverged})}},
		{"a run that starts also ends", RunStatusRunning, []Event{ev("", &RunStarted{}), ev("a", started()), end(&AgentEnded{})}},
		{"the session ended", RunStatusCompleted, []Event{ev("a", started()), ask, sessionEnd("done")}},
		{"the session was completed, an agent had failed", RunStatusCompleted, []Event{ev("a", started()), end(&AgentEnded{Outcome: OutcomeAborted}), sessionEnd("completed")}},
		{"the session ended, an agent had failed", RunStatusFailed, []Event{ev("a", started()), end(&AgentEnded{Outcome: OutcomeAborted}), sessionEnd("")}},
		{"the session failed", RunStatusFailed, []Event{ev("a", started()), sessionEnd("failed")}},
		{"the session ended with an error", RunStatusFailed, []Event{ev("a", &TextCompleted{}), sessionEnd("error")}},
		{"the session was cancelled", RunStatusCancelled, []Event{ev("a", started()), sessionEnd("cancelled")}},
		{"the session ended after an abort", RunStatusCancelled, []Event{ev("a", started()), abort(Opt[bool]{}), sessionEnd("")}},
		{"the session ended while the run is paused", RunStatusPaused, []Event{ev("a", started()), ev("", &RunPaused{}), sessionEnd("")}},
		{"a session that never began a run", RunStatusPending, []Event{ev("", &SessionStarted{}), sessionEnd("")}},
		{"a session without other events that says how it ended", RunStatusFailed, []Event{ev("", &SessionStarted{}), sessionEnd("failed")}},
		{"a session that was done without other events", RunStatusCompleted, []Event{ev("", &SessionStarted{}), sessionEnd("done")}},
		{"a session without other events that goes on", RunStatusPending, []Event{sessionEnd("failed"), ev("", &SessionStarted{})}},
		{"the session of a run with run.started", RunStatusRunning, []Event{ev("", &RunStarted{}), sessionEnd("completed")}},
		{"the session goes on", RunStatusRunning, []Event{ev("a", &TextCompleted{}), sessionEnd(""), ev("", &SessionStarted{})}},
		{"the session goes on with an agent", RunStatusRunning, []Event{ev("a", &TextCompleted{}), sessionEnd(""), ev("a", started())}},
		{"the session goes on with a turn", RunStatusRunning, []Event{ev("a", &TextCompleted{}), sessionEnd(""), ev("", &TurnStarted{})}},
		{"the only turn ended", RunStatusCompleted, []Event{ev("", &TurnStarted{}), ev("", &TextCompleted{}), ev("", &TurnEnded{})}},
		{"the only turn failed", RunStatusFailed, []Event{ev("", &TurnStarted{}), ev("", &TurnEnded{Error: Some(ErrorInfo{Message: "m"})})}},
		{"the only turn failed, its agents did not", RunStatusFailed, []Event{ev("", &TurnStarted{}), ev("a", started()), end(&AgentEnded{}), ev("", &TurnEnded{Error: Some(ErrorInfo{Message: "m"})})}},
		{"the only turn goes on, an agent that works for it ended", RunStatusRunning, []Event{ev("root", &TurnStarted{}), ev("a", started()), end(&AgentEnded{})}},
		{"the only turn ended, an agent that works for it failed", RunStatusCompleted, []Event{ev("root", &TurnStarted{}), ev("a", started()), end(&AgentEnded{Outcome: OutcomeAborted}), ev("root", &TurnEnded{})}},
		{"the only turn of an agent that failed ended", RunStatusFailed, []Event{ev("a", started()), ev("a", &TurnStarted{}), ev("a", &TurnEnded{}), end(&AgentEnded{Outcome: OutcomeAborted})}},
		{"the only turn ended, an agent is open", RunStatusRunning, []Event{ev("a", started()), ev("a", &TurnStarted{}), ev("a", &TurnEnded{})}},
		{"another turn began", RunStatusRunning, []Event{ev("", &TurnStarted{}), ev("", &TurnEnded{}), ev("", &TurnStarted{})}},
		{"one of two turns ended", RunStatusRunning, []Event{ev("", &TurnStarted{}), ev("", &TurnStarted{}), ev("", &TurnEnded{})}},
		{"the turn of a run with run.started", RunStatusRunning, []Event{ev("", &RunStarted{}), ev("", &TurnStarted{}), ev("", &TurnEnded{})}},
		{"a workflow", RunStatusRunning, []Event{created, ev("a", started()), end(&AgentEnded{})}},
		{"a workflow of a session", RunStatusCompleted, []Event{ev("", &SessionStarted{}), created, finalized}},
		{"a workflow is finalized, whatever is open", RunStatusCompleted, []Event{created, ev("a", started()), ask, finalized}},
		{"a workflow is finalized, an agent had failed", RunStatusCompleted, []Event{created, ev("a", started()), end(&AgentEnded{Outcome: OutcomeAborted}), finalized}},
		{"a workflow is finalized, its session failed", RunStatusFailed, []Event{created, finalized, sessionEnd("failed")}},
		{"a workflow is finalized after an abort", RunStatusCancelled, []Event{created, abort(Opt[bool]{}), finalized}},
		{"another workflow is finalized", RunStatusRunning, []Event{created, ev("", &WorkflowCreated{}, scoped(Scope{WorkflowID: "w2"})), ev("", &WorkflowFinalized{}, scoped(Scope{WorkflowID: "w2"}))}},
		{"another workflow follows", RunStatusRunning, []Event{created, finalized, ev("", &WorkflowCreated{}, scoped(Scope{WorkflowID: "w2"}))}},
		{"an agent goes on after its workflow", RunStatusCompleted, []Event{created, finalized, ev("a", started()), end(&AgentEnded{})}},
		{"an agent begins after the workflow", RunStatusRunning, []Event{created, finalized, ev("a", started())}},
		{"the workflow of an agent", RunStatusRunning, []Event{ev("a", started()), created, finalized}},
		{"the workflow of a run with run.started", RunStatusRunning, []Event{ev("", &RunStarted{}), created, finalized}},
		{"run.failed after the workflow", RunStatusFailed, []Event{created, finalized, ev("", &RunFailed{})}},
		{"run.completed", RunStatusCompleted, []Event{ev("", &RunStarted{}), done}},
		{"run.completed with a failed agent", RunStatusCompleted, append(moves(StatusFailed), done)},
		{"run.failed", RunStatusFailed, []Event{ev("", &RunFailed{})}},
		{"run.cancelled", RunStatusCancelled, []Event{ev("", &RunCancelled{})}},
		{"paused", RunStatusPaused, []Event{ev("a", started()), ev("", &RunPaused{})}},
		{"resumed", RunStatusRunning, []Event{ev("a", started()), ev("", &RunPaused{}), ev("", &RunResumed{})}},
		{"an abort was received", RunStatusCancelling, []Event{ev("a", started()), abort(Opt[bool]{})}},
		{"an abort was carried out", RunStatusCancelled, []Event{ev("a", started()), abort(Some(false)), ev("", &RunCancelled{})}},
		{"a resumable abort pauses", RunStatusPaused, []Event{ev("a", started()), abort(Some(true))}},
		{"a resumable abort, resumed", RunStatusRunning, []Event{ev("a", started()), abort(Some(true)), ev("", &RunPaused{}), ev("", &RunResumed{})}},
		{"a rejected abort", RunStatusRunning, []Event{ev("a", started()), ev("", &CommandReceived{Command: Command{Type: CommandAbort}, Rejected: "not yours"})}},
		{"an abort taken back", RunStatusRunning, []Event{ev("a", started()), abort(Some(false)), ev("", &CommandReceived{Command: Command{Type: CommandResume}})}},
		{"waiting for an answer", RunStatusWaiting, []Event{ev("a", started()), ask}},
		{"another agent works on", RunStatusRunning, []Event{ev("a", started()), ev("b", started()), ask}},
		{"a run-wide question while an agent works", RunStatusRunning, []Event{ev("a", started()), ev("", &ApprovalRequested{ApprovalID: "p"})}},
		{"a run-wide question, the agent is blocked", RunStatusWaiting, append(moves(StatusBlockedOnClarification), ev("", &ApprovalRequested{ApprovalID: "p"}))},
		{"answered", RunStatusRunning, []Event{ev("a", started()), ask, ev("", &ClarificationResolved{InterruptID: "i"})}},
		{"paused while waiting", RunStatusPaused, []Event{ev("a", started()), ask, ev("", &RunPaused{})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fold(t, c.log...)
			require.Equal(t, c.want, s.Status)
			require.Equal(t, c.want == RunStatusCompleted || c.want == RunStatusFailed || c.want == RunStatusCancelled, s.Status.Terminal())
			require.Equal(t, s.Status.Terminal(), !s.CompletedAt.IsZero())
			require.False(t, s.EndMadeUp)
			madeUp := slices.Clone(c.log)
			for i := range madeUp {
				madeUp[i].Marks |= MarkSynthetic
			}
			guess := fold(t, madeUp...)
			require.Equal(t, c.want, guess.Status)
			require.Equal(t, s.Status.Terminal(), guess.EndMadeUp)

			// A fold and an emitter that go on from the snapshot know the same.
			f, err := ResumeFold(s, FoldOptions{})
			require.NoError(t, err)
			require.Equal(t, c.want, f.Snapshot().Status)
			e, err := NewEmitter(EmitterOptions{})
			require.NoError(t, err)
			run, err := e.Resume(s)
			if len(c.log) == 0 {
				require.Error(t, err, "no run")
				return
			}
			require.NoError(t, err)
			if len(s.Turns) == 0 {
				require.Equal(t, c.want, run.State().Status)
			}
		})
	}
}

// The mark of an end goes when its agent, turn or run goes on.
func TestEndsMadeUp(t *testing.T) {
	synthetic := func(e *Event) { e.Marks = MarkSynthetic }
	log := []Event{
		ev("a", started()), ev("a", &TurnStarted{}), ev("a", &TurnEnded{}, synthetic), ev("a", &AgentEnded{}, synthetic),
		ev("a", started()), ev("a", &TurnStarted{}), ev("a", &TurnEnded{}), ev("a", &AgentEnded{}),
	}
	s := fold(t, log[:4]...)
	require.Equal(t, [3]bool{true, true, true}, [3]bool{s.EndMadeUp, s.Agents["a"].EndMadeUp, s.Turns[0].EndMadeUp})
	s = fold(t, log[:5]...)
	require.Equal(t, [2]bool{false, false}, [2]bool{s.EndMadeUp, s.Agents["a"].EndMadeUp})
	s = fold(t, log...)
	require.Equal(t, [3]bool{false, false, false}, [3]bool{s.EndMadeUp, s.Agents["a"].EndMadeUp, s.Turns[1].EndMadeUp})
	require.True(t, s.Agents["a"].Earlier[0].EndMadeUp)

	s = fold(t, ev("", &RunStarted{}), ev("a", started()), ev("a", &AgentEnded{}, synthetic), ev("", &RunCompleted{}))
	require.Equal(t, [2]bool{false, true}, [2]bool{s.EndMadeUp, s.Agents["a"].EndMadeUp})
	s = fold(t, ev("", &RunStarted{}), ev("", &RunFailed{}, synthetic), ev("", audit(AuditPass)))
	require.True(t, s.EndMadeUp)
}

// A run that is a turn fails with the turn's error, until it goes on.
func TestTurnFailsRun(t *testing.T) {
	s := fold(t, ev("root", &TurnStarted{}), ev("root", &TurnEnded{Error: Some(ErrorInfo{Code: "E", Message: "m"})}))
	require.Equal(t, Some(ErrorInfo{Code: "E", Message: "m"}), s.Error)
	f, err := ResumeFold(s, FoldOptions{})
	require.NoError(t, err)
	next := ev("root", &TurnStarted{})
	next.RunID, next.Time = s.RunID, s.CompletedAt
	next.Sequence = s.NextSequence
	f.Apply(next)
	require.Equal(t, RunStatusRunning, f.Snapshot().Status)
	require.False(t, f.Snapshot().Error.OK)
}

// Every figure counts once, from the best source.
func inputTokens(n int64) Usage { return Usage{InputTokens: n} }

func TestUsageIsCountedOnce(t *testing.T) {
	in := inputTokens
	observed := func(n int64, cost float64, cumulative bool) *UsageObserved {
		return &UsageObserved{Usage: in(n), CostUSD: Some(cost), Cumulative: cumulative}
	}
	sub := func(e *Event) { e.ParentAgentID = "a" }
	late := func(e *Event) { e.Marks = MarkLate }
	again := func() *AgentStarted { return &AgentStarted{Resumed: true} }
	asks := func(id string) *ModelCalled { return &ModelCalled{ModelCallID: id} }
	answers := func(id string, u Usage, cost float64) *ModelReturned {
		return &ModelReturned{ModelCallID: id, Usage: Some(u), CostUSD: Some(cost)}
	}
	about := func(id string, n int64, cost float64) *UsageObserved {
		return &UsageObserved{ModelCallID: id, Usage: in(n), CostUSD: Some(cost)}
	}
	running := func(id string, n int64) *UsageObserved {
		return &UsageObserved{ModelCallID: id, Usage: in(n), Cumulative: true}
	}
	models := func(n int64, cost float64) *AgentEnded {
		return &AgentEnded{ModelUsage: map[string]Usage{"big": {InputTokens: n, CostUSD: Some(cost)}, "small": in(1)}}
	}
	total := func(n int64, cost float64) *AgentEnded {
		p := models(n, cost)
		p.Cumulative = true
		return p
	}
	for _, c := range []struct {
		name   string
		log    []Event
		tokens int64
		cost   Opt[float64]
	}{
		{"nothing", nil, 0, Opt[float64]{}},
		{"reports add up", []Event{ev("a", observed(1, 0.5, false)), ev("a", observed(2, 0.25, false))}, 3, Some(0.75)},
		{"a running total replaces", []Event{ev("a", observed(1, 0.5, false)), ev("a", observed(2, 0.25, true)), ev("a", observed(4, 0.5, true))}, 4, Some(0.5)},
		{"a report after a running total adds", []Event{ev("a", observed(4, 0.5, true)), ev("a", observed(1, 0.25, false))}, 5, Some(0.75)},
		{"usage of the end over reports", []Event{ev("a", observed(1, 0.5, false)), ev("a", started()), ev("a", &AgentEnded{Usage: Some(in(7))})}, 7, Some(0.5)},
		{"cost of the end over reports", []Event{ev("a", observed(1, 0.5, false)), ev("a", &AgentEnded{TotalCostUSD: Some(2.0)})}, 1, Some(2.0)},
		{"modelUsage over usage over reports", []Event{ev("a", observed(1, 0.5, false)), ev("a", &AgentEnded{Usage: Some(in(7)), ModelUsage: map[string]Usage{"m": in(20)}, TotalCostUSD: Some(0.25)})}, 20, Some(0.25)},
		{"cost per model", []Event{ev("a", models(20, 0.75))}, 21, Some(0.75)},
		{"agents add up", []Event{ev("a", &AgentEnded{Usage: Some(in(1))}), ev("b", observed(2, 0.5, false)), ev("", observed(4, 0.25, false))}, 7, Some(0.75)},
		{"a sub-agent counts below a parent with usage", []Event{ev("a", started()), ev("b", started(), sub), ev("b", &AgentEnded{Usage: Some(in(2))}), ev("a", &AgentEnded{Usage: Some(in(1))})}, 3, Opt[float64]{}},
		{"a sub-agent is in its parent's modelUsage", []Event{ev("a", started()), ev("b", started(), sub), ev("b", &AgentEnded{Usage: Some(in(2)), TotalCostUSD: Some(9.0)}), ev("a", models(20, 0.75))}, 21, Some(0.75)},
		{"and so is one further down", []Event{ev("a", started()), ev("b", started(), sub), ev("c", started(), func(e *Event) { e.ParentAgentID = "b" }), ev("c", observed(2, 9, false)), ev("a", models(20, 0.75))}, 21, Some(0.75)},
		{"a child with modelUsage, a parent without", []Event{ev("a", started()), ev("b", started(), sub), ev("b", models(20, 0.75)), ev("a", &AgentEnded{Usage: Some(in(1))})}, 22, Some(0.75)},
		{"attempts add up", []Event{ev("a", started()), ev("a", &AgentEnded{Usage: Some(in(1)), TotalCostUSD: Some(0.5)}), ev("a", started()), ev("a", &AgentEnded{Usage: Some(in(2)), TotalCostUSD: Some(0.25)})}, 3, Some(0.75)},
		{"attempts with modelUsage add up", []Event{ev("a", started()), ev("a", models(20, 0.75)), ev("a", started()), ev("a", models(30, 1.5))}, 52, Some(2.25)},
		{"an attempt that died", []Event{ev("a", started()), ev("a", observed(1000, 5, false)), ev("a", again()), ev("a", &AgentEnded{Usage: Some(in(10)), TotalCostUSD: Some(0.05)})}, 1010, Some(5.05)},
		{"an attempt that died before modelUsage", []Event{ev("a", started()), ev("a", observed(1000, 5, false)), ev("a", again()), ev("a", models(9, 0.05))}, 1010, Some(5.05)},
		{"an attempt that ended without figures", []Event{ev("a", started()), ev("a", observed(1000, 5, false)), ev("a", &AgentEnded{}), ev("a", started()), ev("a", &AgentEnded{Usage: Some(in(10))})}, 1010, Some(5.0)},
		{"reports that come after the end count for it", []Event{ev("a", started()), ev("a", &AgentEnded{}), ev("a", observed(3, 5, false)), ev("a", started()), ev("a", &AgentEnded{Usage: Some(in(10))})}, 13, Some(5.0)},
		{"a running total of one attempt", []Event{ev("a", started()), ev("a", observed(4, 0.5, true)), ev("a", again()), ev("a", observed(1, 0.25, true)), ev("a", observed(2, 0.5, true))}, 6, Some(1.0)},
		{"a late end has the figures", []Event{ev("a", started()), ev("a", &AgentEnded{Usage: Some(in(1))}), ev("a", &AgentEnded{Usage: Some(in(2))}, late)}, 2, Opt[float64]{}},
		{"an end with running totals", []Event{ev("a", started()), ev("a", models(20, 0.75)), ev("a", started()), ev("a", total(30, 1.5))}, 31, Some(1.5)},
		{"an end with running totals of tokens", []Event{ev("a", started()), ev("a", models(20, 0.75)), ev("a", started()), ev("a", &AgentEnded{ModelUsage: map[string]Usage{"big": in(30)}, Cumulative: true})}, 30, Some(0.75)},
		{"running totals do not know what died", []Event{
			ev("a", started()), ev("a", observed(100, 1, false)), ev("a", again()), ev("a", models(20, 0.75)), ev("a", started()), ev("a", total(30, 1.5)),
		}, 131, Some(2.5)},
		{"a sub-agent of an attempt that died", []Event{
			ev("a", started()), ev("b", started(), sub), ev("b", observed(100, 1, false)), ev("a", again()), ev("c", started(), sub), ev("c", observed(7, 9, false)), ev("a", models(20, 0.75)),
		}, 121, Some(1.75)},
		{"a sub-agent of an attempt that a running total includes", []Event{
			ev("a", started()), ev("b", started(), sub), ev("b", observed(100, 1, false)), ev("a", models(20, 0.75)), ev("a", started()), ev("a", total(30, 1.5)),
		}, 31, Some(1.5)},
		{"model calls add up", []Event{ev("a", started()), ev("a", asks("m1")), ev("a", answers("m1", in(3), 0.5)), ev("a", asks("m2")), ev("a", answers("m2", in(4), 0.25))}, 7, Some(0.75)},
		{"usage of the end over model calls", []Event{ev("a", started()), ev("a", asks("m1")), ev("a", answers("m1", in(3), 0.5)), ev("a", &AgentEnded{Usage: Some(in(9))})}, 9, Some(0.5)},
		{"a model call in one event", []Event{ev("a", &ModelReturned{ModelCallID: "m1", Usage: Some(in(3)), OneEvent: true})}, 3, Opt[float64]{}},
		{"a model call of no agent", []Event{ev("", &ModelReturned{ModelCallID: "m1", Usage: Some(in(3)), OneEvent: true})}, 3, Opt[float64]{}},
		{"a report after the return of its call", []Event{ev("a", asks("m1")), ev("a", answers("m1", in(3), 0.5)), ev("a", about("m1", 3, 0.5))}, 3, Some(0.5)},
		{"a report before the return of its call", []Event{ev("a", asks("m1")), ev("a", about("m1", 3, 0.5)), ev("a", answers("m1", in(3), 0.5))}, 3, Some(0.5)},
		{"a report of a call without figures", []Event{ev("a", asks("m1")), ev("a", about("m1", 3, 0.5)), ev("a", &ModelReturned{ModelCallID: "m1"}), ev("a", about("m1", 1, 0.25))}, 4, Some(0.75)},
		{"a report has the cost, the return has the tokens", []Event{ev("a", asks("m1")), ev("a", &ModelReturned{ModelCallID: "m1", Usage: Some(in(3))}), ev("a", about("m1", 4, 0.25))}, 3, Some(0.25)},
		{"and in the other order", []Event{ev("a", asks("m1")), ev("a", about("m1", 4, 0.25)), ev("a", &ModelReturned{ModelCallID: "m1", Usage: Some(in(3))})}, 3, Some(0.25)},
		{"a report of a call that never returns", []Event{ev("a", started()), ev("a", asks("m1")), ev("a", about("m1", 3, 0.5)), ev("a", &AgentEnded{})}, 3, Some(0.5)},
		{"running totals of a call", []Event{ev("a", observed(1, 0.5, false)), ev("a", asks("m1")), ev("a", running("m1", 3)), ev("a", running("m1", 5))}, 6, Some(0.5)},
		{"a parent of its own", []Event{ev("b", started(), func(e *Event) { e.ParentAgentID = "b" }), ev("b", models(20, 0.75))}, 21, Some(0.75)},
		{"a parent nobody knows", []Event{ev("b", started(), sub), ev("b", models(20, 0.75))}, 21, Some(0.75)},
		{"totals elsewhere are cross-checks", []Event{
			ev("a", observed(1, 0.5, false)), ev("", &WorkflowFinalized{TotalTokens: 900}, inWorkflow),
			ev("a", &TurnSummarized{ToolCalls: []ToolCallSummary{}, Usage: in(900), CostUSD: Some(9.0)}),
		}, 1, Some(0.5)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fold(t, c.log...)
			require.Equal(t, c.tokens, s.Usage.Usage.InputTokens)
			require.Equal(t, c.cost, s.Usage.CostUSD)
		})
	}
	s := fold(t, ev("a", models(20, 0.75)), ev("b", models(2, 0.25)))
	require.Equal(t, map[string]Usage{"big": {InputTokens: 22, CostUSD: Some(1.0)}, "small": {InputTokens: 2}}, s.Usage.Models)
	// Attempts that report nothing leave one entry, in which their sub-agents are found.
	var idle []Event
	for range 9 {
		idle = append(idle, ev("a", started()), ev("a", &AgentEnded{}))
	}
	s = fold(t, append(idle, ev("b", started(), sub), ev("b", observed(3, 1, false)), ev("a", started()),
		ev("a", models(20, 0.75)))...)
	require.Len(t, s.Agents["a"].Usage.Earlier, 1)
	require.Equal(t, int64(24), s.Usage.Usage.InputTokens)
	// Reasoning is a part of the output, so it does not add to it.
	s = fold(t, ev("a", &UsageObserved{Usage: Usage{OutputTokens: 5, ReasoningOutputTokens: Some[int64](3)}}),
		ev("a", &UsageObserved{Usage: Usage{OutputTokens: 1}}))
	require.Equal(t, Usage{OutputTokens: 6, ReasoningOutputTokens: Some[int64](3)}, s.Usage.Usage)

	// Sums that no JSON number can express must not spoil the snapshot.
	s = fold(t, ev("a", observed(math.MaxInt64, math.MaxFloat64, false)),
		ev("a", observed(1, math.MaxFloat64, false)), ev("b", observed(1, math.MaxFloat64, false)))
	require.True(t, json.Valid(s.AppendJSON(nil)))
}

// Models are counted as every source of usage names them.
func TestUsageOfModels(t *testing.T) {
	for _, c := range []struct {
		name string
		log  []Event
		want map[string]Usage
	}{
		{"of the start", []Event{ev("a", &AgentStarted{Model: "m"}), ev("a", &UsageObserved{Usage: inputTokens(1)}),
			ev("a", &UsageObserved{Model: "n", Usage: inputTokens(2), CostUSD: Some(0.5)})},
			map[string]Usage{"m": inputTokens(1), "n": {InputTokens: 2, CostUSD: Some(0.5)}}},
		{"of the start, by the end", []Event{ev("a", &AgentStarted{Model: "m"}),
			ev("a", &AgentEnded{Usage: Some(inputTokens(1)), TotalCostUSD: Some(0.25)})},
			map[string]Usage{"m": {InputTokens: 1, CostUSD: Some(0.25)}}},
		{"each attempt has its own", []Event{ev("a", &AgentStarted{Model: "m"}),
			ev("a", &UsageObserved{Usage: inputTokens(1)}), ev("a", &AgentStarted{Model: "n", Resumed: true}),
			ev("a", &AgentEnded{Usage: Some(inputTokens(2))})},
			map[string]Usage{"m": inputTokens(1), "n": inputTokens(2)}},
		{"the model that answers", []Event{ev("a", &AgentStarted{Model: "m"}), ev("a", &ModelCalled{ModelCallID: "c1",
			Model: "m"}), ev("a", &ModelReturned{ModelCallID: "c1", Model: "m-1", Usage: Some(inputTokens(3))})},
			map[string]Usage{"m-1": inputTokens(3)}},
		{"the model that is asked", []Event{ev("a", &ModelCalled{ModelCallID: "c1", Model: "m"}), ev("a",
			&UsageObserved{ModelCallID: "c1", Usage: inputTokens(2)}), ev("a", &ModelReturned{ModelCallID: "c1"})},
			map[string]Usage{"m": inputTokens(2)}},
		{"an end's usage is of the one model that was reported", []Event{ev("a", &AgentStarted{Model: "m"}), ev("a",
			&UsageObserved{Model: "m-1", Usage: inputTokens(2)}), ev("a", &AgentEnded{Usage: Some(inputTokens(5))})},
			map[string]Usage{"m-1": inputTokens(5)}},
		{"an end's usage of several models", []Event{ev("a", started()), ev("a", &UsageObserved{Model: "m",
			Usage: inputTokens(2)}), ev("a", &UsageObserved{Model: "n", Usage: inputTokens(1)}),
			ev("a", &AgentEnded{Usage: Some(inputTokens(5))})},
			map[string]Usage{"m": inputTokens(2), "n": inputTokens(1)}},
		{"caches that modelUsage does not state", []Event{ev("a", started()), ev("a", &AgentEnded{
			Usage:      Some(Usage{InputTokens: 9, CacheReadInputTokens: Some[int64](4)}),
			ModelUsage: map[string]Usage{"m": inputTokens(9)}})},
			map[string]Usage{"m": {InputTokens: 9, CacheReadInputTokens: Some[int64](4)}}},
		{"no source names it", []Event{ev("a", started()), ev("a", &UsageObserved{Usage: inputTokens(2)})}, nil},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, fold(t, c.log...).Usage.Models) })
	}
}

// A figure that is too low is marked, until a better one takes its place.
func TestPartialUsage(t *testing.T) {
	asks := &ModelCalled{ModelCallID: "m1"}
	answers := &ModelReturned{ModelCallID: "m1", Usage: Some(inputTokens(3)), CostUSD: Some(0.5)}
	part := &UsageObserved{ModelCallID: "m1", Usage: inputTokens(1), Partial: true}
	require.True(t, fold(t, ev("a", asks), ev("a", part)).Usage.Partial)
	require.True(t, fold(t, ev("a", started()), ev("a", part), ev("a", &AgentStarted{Resumed: true}),
		ev("a", &AgentEnded{Usage: Some(inputTokens(5))})).Agents["a"].Usage.Partial(), "of an earlier attempt")
	require.False(t, fold(t, ev("a", part),
		ev("a", &AgentEnded{Usage: Some(inputTokens(5))})).Agents["a"].Usage.Partial())
	require.False(t, fold(t, ev("a", asks), ev("a", part), ev("a", answers)).Usage.Partial)
	require.False(t, fold(t, ev("a", started()), ev("a", part),
		ev("a", &AgentEnded{Usage: Some(inputTokens(5))})).Usage.Partial)
}

// A log with any number of models and calls costs a bounded list.
func TestUsageListsAreBounded(t *testing.T) {
	var many []Event
	for i := range 5 * maxReported {
		many = append(many,
			ev("a", &UsageObserved{ModelCallID: fmt.Sprint("c", i), Model: fmt.Sprint("m", i), Usage: inputTokens(1)}),
			ev("a", &ModelReturned{ModelCallID: fmt.Sprint("r", i), Usage: Some(inputTokens(1)), OneEvent: true}))
	}
	s := foldEvents(FoldOptions{}, foldLog(t, many...))
	require.Equal(t, int64(10*maxReported), s.Usage.Usage.InputTokens)
	require.LessOrEqual(t, len(s.Agents["a"].Usage.Reported), maxReported+1)
	require.Len(t, s.Agents["a"].Usage.counted, maxCounted)
}

func TestStatePatches(t *testing.T) {
	type patch struct {
		op    PatchOp
		path  string
		value JSON
	}
	for _, c := range []struct {
		name    string
		patches []patch
		want    string
	}{
		{"set", []patch{{PatchSet, "b", "1"}, {PatchSet, "a", `"x"`}}, `{"a":"x","b":1}`},
		{"set replaces", []patch{{PatchSet, "a", `{"x":1}`}, {PatchSet, "a", `{"y":2}`}}, `{"a":{"y":2}}`},
		{"merge keeps what it does not name, and the order of keys", []patch{{PatchSet, "a", `{"z":1,"y":{"p":1},"x":3}`}, {PatchMerge, "a", `{"y":{"q":2},"w":4}`}}, `{"a":{"z":1,"y":{"q":2},"x":3,"w":4}}`},
		{"merge into nothing", []patch{{PatchMerge, "a", `{"x":1}`}}, `{"a":{"x":1}}`},
		{"merge of no object replaces", []patch{{PatchSet, "a", `{"x":1}`}, {PatchMerge, "a", `[1]`}}, `{"a":[1]}`},
		{"merge into no object replaces", []patch{{PatchSet, "a", `[1]`}, {PatchMerge, "a", `{"x":1}`}}, `{"a":{"x":1}}`},
		{"nested", []patch{{PatchSet, "a.b.c", "1"}, {PatchSet, "a.b.d", "2"}, {PatchMerge, "a.b", `{"c":3}`}}, `{"a":{"b":{"c":3,"d":2}}}`},
		{"through what is no object", []patch{{PatchSet, "a", "7"}, {PatchSet, "a.b", "1"}}, `{"a":{"b":1}}`},
		{"an element of a list", []patch{{PatchSet, "a", `[{"x":1},[2,3]]`}, {PatchSet, "a.0.x", "9"}, {PatchSet, "a.1.0", `"b"`}, {PatchMerge, "a.0", `{"y":1}`}}, `{"a":[{"x":9,"y":1},["b",3]]}`},
		{"one more element", []patch{{PatchSet, "a", `[]`}, {PatchSet, "a.0", "1"}, {PatchSet, "a.1.x.0", "2"}, {PatchSet, "a.1.x", "[]"}, {PatchSet, "a.1.x.0", "3"}}, `{"a":[1,{"x":[3]}]}`},
		{"no element of the list", []patch{{PatchSet, "a", `[1]`}, {PatchSet, "b", `[1]`}, {PatchSet, "c", `[1]`}, {PatchSet, "a.2", "1"}, {PatchSet, "b.00", "1"}, {PatchSet, "c.-1", "1"}, {PatchSet, "b.length", "9"}, {PatchSet, "c.x.y", "9"}, {PatchSet, "b.102", "1"}}, `{"a":[1,null,1],"b":[1],"c":[1]}`},
		{"a list gives place to an object", []patch{{PatchSet, "a", `[1]`}, {PatchSet, "a.0", "2"}, {PatchMerge, "a", `{"x":1}`}, {PatchSet, "a.0", "3"}}, `{"a":{"x":1,"0":3}}`},
		{"a number in an object is a name", []patch{{PatchSet, "0", "1"}, {PatchSet, "a.0", "1"}}, `{"0":1,"a":{"0":1}}`},
		{"the whole state", []patch{{PatchSet, "a", "1"}, {PatchSet, "", `{"b":2,"c":3}`}}, `{"b":2,"c":3}`},
		{"merge into the whole state", []patch{{PatchSet, "a", "1"}, {PatchMerge, "", `{"b":2}`}}, `{"a":1,"b":2}`},
		{"a merge is shallow", []patch{{PatchSet, "a", `{"x":{"y":1}}`}, {PatchMerge, "a", `{"x":{"z":2}}`}}, `{"a":{"x":{"z":2}}}`},
		{"a merge of no object replaces", []patch{{PatchSet, "a", `{"x":1}`}, {PatchMerge, "a", "7"}}, `{"a":7}`},
		{"beyond the end of a list", []patch{{PatchSet, "a", "[1,2,3]"}, {PatchSet, "a.4", "3"}, {PatchSet, "a.6.t", "4"}}, `{"a":[1,2,3,null,3,null,{"t":4}]}`},
		{"null empties the whole state", []patch{{PatchSet, "a", "1"}, {PatchSet, "", "null"}, {PatchSet, "b", "2"}}, `{"b":2}`},
		{"null is a value", []patch{{PatchSet, "a", "null"}, {PatchSet, "b.c", "null"}}, `{"a":null,"b":{"c":null}}`},
		{"numbers and text keep their bytes", []patch{{PatchSet, "a", `{"n":9007199254740993,"f":1.0,"t":"<\u00e9"}`}, {PatchSet, "a.m", `-0`}}, `{"a":{"n":9007199254740993,"f":1.0,"t":"<\u00e9","m":-0}}`},
		{"names that need escapes", []patch{{PatchSet, `a"\`, `{"b\n":1}`}, {PatchSet, `a"\.b` + "\n", "2"}}, `{"a\"\\":{"b\n":2}}`},
		{"remove", []patch{{PatchSet, "a", `{"x":1,"y":[2]}`}, {PatchSet, "b", "1"}, {PatchRemove, "a.x", ""}, {PatchRemove, "b", `"ignored"`}}, `{"a":{"y":[2]}}`},
		{"remove and set again", []patch{{PatchSet, "a", "1"}, {PatchSet, "b", "2"}, {PatchRemove, "a", ""}, {PatchSet, "a", "3"}}, `{"a":3,"b":2}`},
		{"remove the whole state", []patch{{PatchSet, "a", "1"}, {PatchRemove, "", ""}, {PatchSet, "b", "2"}}, `{"b":2}`},
		{"remove in a list", []patch{{PatchSet, "a", `[{"x":1,"y":2},[{"z":3}],4]`}, {PatchRemove, "a.0.x", ""}, {PatchRemove, "a.1.0.z", ""}, {PatchRemove, "a.2.x", ""}, {PatchRemove, "a.2", ""}, {PatchRemove, "a.9.x", ""}}, `{"a":[{"y":2},[{}],4]}`},
		{"remove what is not there", []patch{{PatchSet, "a", `{"x":"t"}`}, {PatchRemove, "b", ""}, {PatchRemove, "b.c", ""}, {PatchRemove, "a.x.y", ""}, {PatchRemove, "a.z.y", ""}}, `{"a":{"x":"t"}}`},
		{"empty names", []patch{{PatchSet, "a..b", "1"}, {PatchSet, ".c.", "2"}, {PatchMerge, "..", `{"d":3}`}}, `{"a":{"b":1},"c":2,"d":3}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log []Event
			for _, p := range c.patches {
				log = append(log, ev("", &StatePatched{Op: p.op, Path: p.path, Value: p.value}))
			}
			s := fold(t, log...)
			require.JSONEq(t, c.want, stateOf(s))
			var got []byte
			for _, m := range membersOf(t, string(s.AppendJSON(nil))) {
				if m.name == "state" {
					got = []byte(m.raw)
				}
			}
			require.Equal(t, c.want, string(got))
		})
	}
}

// A path with a million names would cost a million objects inside each other: the fold reports it
// and leaves the state unchanged.
func TestDeepPatchIsLeftOut(t *testing.T) {
	events := foldLog(t, ev("", &StatePatched{Op: PatchSet, Path: "a", Value: "1"}), ev("", &StatePatched{Op: PatchSet, Path: deepPath(1_000_000), Value: "1"}))
	s := foldEvents(FoldOptions{}, events)
	require.Equal(t, `{"a":1}`, stateOf(s))
	require.Len(t, s.Violations, 1)
	require.Equal(t, RuleFieldRange, s.Violations[0].Rule)
	require.Equal(t, "/payload/path", s.Violations[0].Pointer)
}

// A foreign line whose whole state is not an object is reported, and the state stays.
func TestStateThatIsNoObjectIsLeftOut(t *testing.T) {
	events := foldLog(t, ev("", &StatePatched{Op: PatchSet, Path: "a", Value: "1"}), ev("", &StatePatched{Op: PatchSet, Value: "[1,2]"}), ev("", &StatePatched{Op: PatchMerge, Value: "7"}))
	s := foldEvents(FoldOptions{}, events)
	require.Equal(t, `{"a":1}`, stateOf(s))
	require.Equal(t, 2, s.ViolationCount)
	require.Equal(t, "/payload/value", s.Violations[0].Pointer)
}

// A patch without a value has nothing to write: reported, and the state stays.
func TestPatchWithoutValueIsLeftOut(t *testing.T) {
	events := foldLog(t, ev("", &StatePatched{Op: PatchSet, Path: "a", Value: "1"}))
	for i, path := range []string{"a", "a.b", "c.d", ""} {
		line := fmt.Sprintf(`{"id":"x%d","sequence":%d,"timestamp":"2026-05-05T09:00:00.000Z","type":"state.patched","runId":"run-1","payload":{"op":"set","path":"%s"}}`, i, i+1, path)
		events = append(events, decodeLine(t, line))
	}
	s := foldEvents(FoldOptions{}, events)
	require.Equal(t, `{"a":1}`, stateOf(s))
	require.Equal(t, 4, s.ViolationCount)
	require.Equal(t, RuleFieldRequired, s.Violations[0].Rule)
	requireSplitFolds(t, events, s)
}

// A node may have several executions, one after the other or at once: it is
// done when the last of them is.
func TestNodeWithSeveralExecutions(t *testing.T) {
	at := func(run string) func(*Event) { return scoped(Scope{NodeID: "n", NodeRunID: run}) }
	s := fold(t, ev("", &NodeStarted{}, at("n#1")), ev("", &NodeStarted{}, at("n#2")), ev("", &NodeCompleted{Outputs: "1"}, at("n#1")))
	require.Equal(t, NodeStatusRunning, s.NodeStatus["n"])
	require.Equal(t, JSON("1"), s.Outputs["n"])
	s = fold(t, ev("", &NodeStarted{}, at("n#1")), ev("", &NodeStarted{}, at("n#2")), ev("", &NodeCompleted{Outputs: "1"}, at("n#1")), ev("", &NodeCompleted{Outputs: "2"}, at("n#2")))
	require.Equal(t, NodeStatusDone, s.NodeStatus["n"])
	require.Equal(t, JSON("2"), s.Outputs["n"])
	s = fold(t, ev("", &NodeStarted{}, at("n#1")), ev("", &NodeFailed{Error: ErrorInfo{Message: "m"}}, at("n#1")), ev("", &NodeStarted{}, at("n#2")))
	require.Equal(t, NodeStatusRunning, s.NodeStatus["n"])
	s = fold(t, ev("", &NodeCompleted{}, at("n#1")), ev("", &NodeStarted{}, at("n#2")), ev("", &NodeCompleted{}, at("n#2")))
	require.Equal(t, NodeStatusDone, s.NodeStatus["n"], "a part of a log may begin with an end")
	s = fold(t, ev("", &NodeStarted{}), ev("", &NodeCompleted{}), ev("", &NodeFailed{}), ev("", &NodeSkipped{}), ev("", &NodeSuspended{}))
	require.Empty(t, s.NodeStatus, "without an id there is no node")
}

func TestConflictingMessage(t *testing.T) {
	other := says("m1", "")
	other.Message.Content = `"other"`
	events := foldLog(t, ev("a", says("m1", "")), ev("a", other), ev("a", says("m1", "")))
	s := foldEvents(FoldOptions{}, events)
	require.Equal(t, 1, s.ViolationCount)
	require.Equal(t, RuleMessageID, s.Violations[0].Rule)
	require.Len(t, s.Messages, 1)
	require.Equal(t, JSON(`"hello"`), s.Messages[0].Content, "the first one wins")
	requireSplitFolds(t, events, s)
}

// A retracted message does not come back by being repeated.
func TestRetractionIsFinal(t *testing.T) {
	s := fold(t, ev("a", says("m1", "")), ev("", &EventRetracted{EventIDs: []string{"e0"}}), ev("a", says("m1", "")), ev("a", says("m2", "")))
	require.Len(t, s.Messages, 1)
	require.Equal(t, "m2", s.Messages[0].MessageID)
}

func TestDeltasAreAssembled(t *testing.T) {
	delta := func(block, text string) Event { return ev("a", &TextDelta{BlockID: block, Delta: text}) }
	text := func(events ...Event) string {
		return fold(t, append([]Event{ev("a", started())}, events...)...).Agents["a"].Text
	}
	require.Equal(t, "ab", text(delta("x", "a"), delta("x", "b")))
	require.Equal(t, "b", text(delta("x", "a"), delta("y", "b")), "the block begun last")
	require.Equal(t, "ac", text(delta("y", "b"), ev("a", &TextCompleted{BlockID: "y", Text: "B"}), delta("x", "a"), delta("x", "c")))
	require.Equal(t, "B", text(delta("y", "b"), ev("a", &TextCompleted{BlockID: "y", Text: "B"})))
	require.Equal(t, "b", text(delta("", "a"), ev("a", call("c1")), delta("", "b")), "another act ends a block without a name")
	require.Equal(t, "ab", text(delta("", "a"), ev("a", &AgentReasoningDelta{Delta: "hm"}), delta("", "b")), "reasoning in between does not")
	require.Equal(t, "é😀", text(delta("x", "é"), delta("x", "😀"), ev("a", &AgentEnded{})))
	require.Equal(t, "new", text(delta("x", "old"), ev("a", &AgentEnded{}), ev("a", started()), delta("x", "new")))
	require.Equal(t, "old", text(delta("x", "old"), ev("", &RunCompleted{})))
}

func TestKeptCallsAndViolationsAreBounded(t *testing.T) {
	var log []Event
	for i := range 300 {
		log = append(log, ev("a", call(fmt.Sprint("c", i))), ev("a", returned(fmt.Sprint("c", i), ToolStatusOK)), ev("a", returned(fmt.Sprint("nothing", i), ToolStatusOK)))
	}
	events := foldLog(t, log...)
	for _, c := range []struct{ keep, calls, violations int }{{0, 64, 256}, {-1, 0, 0}, {10, 10, 10}, {1000, 600, 300}} {
		s := foldEvents(FoldOptions{KeepCalls: c.keep, MaxViolations: c.keep}, events)
		require.Len(t, s.ClosedCalls, c.calls)
		require.Equal(t, 600-c.calls, s.DroppedCalls)
		require.Len(t, s.Violations, c.violations)
		require.Equal(t, 300, s.ViolationCount, "all are counted")
		require.Equal(t, 600, s.Tools["Read"].Calls, "a return without a call is one that began before")
		require.Equal(t, 600, s.Tools["Read"].OK)
		if c.calls > 0 {
			require.Equal(t, "nothing299", s.ClosedCalls[c.calls-1].CallID, "the latest calls are kept")
		}
		if c.violations > 0 {
			require.Equal(t, uint64(2), s.Violations[0].Sequence, "the first violations are kept")
		}
	}
}

func TestHostStateWins(t *testing.T) {
	host := HostState{State: map[string]JSON{"a": `{ "host" : 1 }`, "h": "2"}, Outputs: map[string]JSON{"n": `"host"`}}
	events := foldLog(t, ev("", &StatePatched{Op: PatchSet, Path: "a", Value: "1"}), ev("", &StatePatched{Op: PatchSet, Path: "b", Value: "1"}), ev("", &NodeCompleted{Outputs: `"log"`}, node("n")))
	s := foldEvents(FoldOptions{Host: host}, events)
	require.Equal(t, `{"a":{"host":1},"b":1,"h":2}`, stateOf(s))
	require.Equal(t, map[string]JSON{"n": `"host"`}, s.Outputs)
}

func eventSeq(events []Event, errs map[int]error) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for i, e := range events {
			if err := errs[i]; err != nil && !yield(Event{}, err) {
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// One file may hold many runs, and lines that are no events.
func TestFoldAll(t *testing.T) {
	lines := func(run string, agents int) []Event {
		var log []Event
		for i := range agents {
			log = append(log, ev(fmt.Sprint("a", i), started(), inRun(run)))
		}
		return foldLog(t, log...)
	}
	one, two, three := lines("r1", 3), lines("r2", 2), lines("r3", 1)
	mixed := []Event{two[0], one[0], one[1], three[0], two[1], one[2]}
	bad := errors.New("line 7: torn")
	snapshots, err := foldSeq(eventSeq(mixed, map[int]error{0: bad, 3: errors.New("another")}), FoldOptions{})
	require.ErrorIs(t, err, bad)
	require.ErrorContains(t, err, "another")
	require.Len(t, snapshots, 3)
	for i, want := range [][]Event{two, one, three} {
		require.Equal(t, foldEvents(FoldOptions{}, want), snapshots[i], "in order of appearance, each as by itself")
	}

	snapshots, err = foldSeq(eventSeq(nil, nil), FoldOptions{})
	require.NoError(t, err)
	require.Empty(t, snapshots)
}

// FoldLog returns the errors of 100 lines, and counts the others.
func TestFoldLogBoundsErrors(t *testing.T) {
	for _, workers := range []int{1, 2} {
		_, err := FoldLog(NewReader(strings.NewReader(strings.Repeat("no event\n", 250)), ReaderOptions{}), FoldOptions{Workers: workers})
		require.ErrorContains(t, err, "line 100 ")
		require.NotContains(t, err.Error(), "line 101 ")
		require.ErrorContains(t, err, "150 more errors")
	}
}

// aRun is a legal run that uses much of the vocabulary.
func aRun(t testing.TB) []Event {
	message := says("m1", "")
	message.Message.Content = `{"z":1,"a":9007199254740993}`
	return foldLog(t,
		ev("", &SessionStarted{Goal: "ship"}, scoped(Scope{SessionID: "s"})),
		ev("", &RunStarted{Name: "flow", Definition: `{"nodes":["n"],"edges":[],"state":{"k":{"b":1,"a":2}}}`}),
		ev("", &NodeStarted{}, node("n")),
		ev("a", &AgentStarted{Agent: Some(ref("a")), ProviderSessionID: "p"}, node("n")),
		ev("a", &AgentReasoningDelta{Delta: "h", Index: Some(0)}, atStep(0)),
		ev("a", &AgentTransition{From: StatusThinking, To: StatusToolCall}, atStep(0)),
		ev("a", call("c1"), atStep(0)),
		ev("b", started(), func(e *Event) { e.ParentAgentID, e.ParentCallID = "a", "c1" }),
		ev("b", &TextDelta{Delta: "sub"}),
		ev("b", &AgentEnded{Usage: Some(Usage{InputTokens: 1, TotalTokens: Some[int64](1)})}),
		ev("a", returned("c1", ToolStatusOK), atStep(0)),
		ev("a", call("c2"), atStep(0)),
		ev("a", message, atStep(1)),
		ev("", &StatePatched{Op: PatchMerge, Path: "k", Value: `{"c":3}`}),
		ev("", &CommandReceived{Command: Command{Type: CommandSend, RunID: "n#1", Message: "hi"}}),
		ev("a", &ApprovalRequested{ApprovalID: "p"}),
		ev("", &ApprovalGranted{ApprovalID: "p"}),
		ev("a", &ClarificationRequested{InterruptID: "i", Questions: []Question{{ID: "q"}}}),
		ev("a", &HandoffRequested{From: ref("a"), To: ref("b")}, atStep(1)),
		ev("", &WorkflowCreated{Phases: []string{"scout"}}, inWorkflow),
		ev("", &PhaseStarted{}, inScout),
		ev("", &PhaseCompleted{}, inScout),
		ev("a", audit(AuditPass)),
		ev("", &BlackboardItemCreated{ItemID: "i", ItemType: "fact", Content: "1"}),
		ev("", &BudgetExceeded{Budget: "cost", Limit: 1, Actual: 1.5}),
		ev("", &Unknown{Type: "vendor.x", Raw: "1"}),
		ev("a", &AgentEnded{Outcome: OutcomeConverged, Error: Some(ErrorInfo{Message: "m"}), ModelUsage: map[string]Usage{"m": {InputTokens: 3}}}),
		ev("", &NodeCompleted{Outputs: "1"}, node("n")),
		ev("", &RunCompleted{Outputs: `{"b":1,"a":2}`}),
		ev("", &SessionCompleted{}),
	)
}

// Time travel: a snapshot at any position is a fold of the events up to it,
// taking one changes nothing, and applying events again changes nothing.
func TestSnapshotAtAnyPosition(t *testing.T) {
	log := aRun(t)
	f := NewFold(FoldOptions{})
	for i, e := range log {
		f.Apply(e)
		s := f.Snapshot()
		require.Empty(t, s.Violations)
		require.Equal(t, foldEvents(FoldOptions{}, log[:i+1]), s)
		f.Apply(e)
		if i > 0 {
			f.Apply(log[i-1])
		}
		require.Equal(t, s, f.Snapshot(), "an event again changes nothing")
	}
	for _, e := range log {
		f.Apply(e)
	}
	require.Equal(t, foldEvents(FoldOptions{}, log), f.Snapshot())
	requireSplitFolds(t, log, f.Snapshot())
}

// A snapshot belongs to its holder: changing it does not change the fold.
func TestSnapshotsAreIndependent(t *testing.T) {
	log := aRun(t)
	f := NewFold(FoldOptions{})
	for i, e := range log {
		f.Apply(e)
		spoil(reflect.ValueOf(f.Snapshot()), map[any]bool{})
		if i == len(log)/2 {
			half := f.Snapshot()
			g, err := ResumeFold(half, FoldOptions{})
			require.NoError(t, err)
			spoil(reflect.ValueOf(half), map[any]bool{})
			for _, e := range log[i+1:] {
				g.Apply(e)
			}
			require.Equal(t, foldEvents(FoldOptions{}, log), g.Snapshot(), "ResumeFold keeps no part of the snapshot")
		}
	}
	require.Equal(t, foldEvents(FoldOptions{}, log), f.Snapshot())
}

// spoil overwrites everything that can be reached from v.
func spoil(v reflect.Value, seen map[any]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Interface()] {
			return
		}
		seen[v.Interface()] = true
		spoil(v.Elem(), seen)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoil(v.Field(i), seen)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i), seen)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			spoil(v.MapIndex(key), seen)
		}
		v.Clear()
	case reflect.String:
		if v.CanSet() {
			v.SetString("spoiled")
		}
	case reflect.Int, reflect.Int64:
		if v.CanSet() {
			v.SetInt(-99)
		}
	case reflect.Bool:
		if v.CanSet() {
			v.SetBool(!v.Bool())
		}
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	log := aRun(t)
	// A message with members that only its writer knows.
	line := strings.Replace(encodeEvent(t, log[12]), `"content":`, `"x-tone":{"warm":1.0},"content":`, 1)
	log[12] = decodeLine(t, line)
	for i := range log {
		s := foldEvents(FoldOptions{}, log[:i+1])
		text, err := json.Marshal(s)
		require.NoError(t, err)
		require.Equal(t, string(s.AppendJSON(nil)), string(text))
		var back RunSnapshot
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, s, &back)
		require.Equal(t, string(text), string(back.AppendJSON(nil)))
		if i >= 12 {
			require.Contains(t, string(text), `"x-tone":{"warm":1.0},"content":{"z":1,"a":9007199254740993}`)
		}
	}
	var s RunSnapshot
	var le *LineError
	require.ErrorAs(t, s.UnmarshalJSON([]byte(`{"agents":{"a":{"step":"x"}}}`)), &le)
	require.Equal(t, "/agents/a/step", le.Pointer)
	require.ErrorAs(t, s.UnmarshalJSON([]byte(`{} {}`)), &le)
	require.ErrorContains(t, s.UnmarshalJSON([]byte(`{"retracted":[],"retractedMessages":[],"retracted":[]}`)), "duplicate")
	require.ErrorAs(t, s.UnmarshalJSON([]byte("{\"runId\":\"\xff\"}")), &le)
	require.NoError(t, s.UnmarshalJSON([]byte(`{"runId":"r","ofANewerVersion":[1]}`)))
}

// Readers in other languages should never meet null where a map or list is
// promised. In Go they are nil when they are empty, wherever the snapshot is from.
func TestMapsAreNeverNull(t *testing.T) {
	empty := NewFold(FoldOptions{}).Snapshot()
	require.Equal(t, RunStatusPending, empty.Status)
	for name, s := range map[string]*RunSnapshot{"nothing": empty, "one event": foldEvents(FoldOptions{}, aRun(t)[:1]), "a run": foldEvents(FoldOptions{}, aRun(t))} {
		text := string(s.AppendJSON(nil))
		require.NotContains(t, text, ":null", name)
		for _, member := range []string{`"outputs":{`, `"openCalls":[`, `"retracted":[`, `"agents":{`} {
			require.Contains(t, text, member, name)
		}
		v := reflect.ValueOf(s).Elem()
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Map || f.Kind() == reflect.Slice {
				require.Equal(t, f.Len() == 0, f.IsNil(), "%s: %s", name, v.Type().Field(i).Name)
			}
		}
	}

	// The snapshot of nothing goes on like any other.
	var back RunSnapshot
	require.NoError(t, json.Unmarshal(empty.AppendJSON(nil), &back))
	f, err := ResumeFold(&back, FoldOptions{})
	require.NoError(t, err)
	for _, e := range aRun(t) {
		f.Apply(e)
	}
	require.Equal(t, foldEvents(FoldOptions{}, aRun(t)), f.Snapshot())
	_, err = ResumeFold(nil, FoldOptions{})
	require.Error(t, err)
}

func TestAgentsInOrder(t *testing.T) {
	s := fold(t, ev("z", started()), ev("a", started()), ev("m", &TextCompleted{}))
	var ids []string
	for _, a := range s.AgentsInOrder() {
		ids = append(ids, a.AgentID)
	}
	require.Equal(t, []string{"z", "a", "m"}, ids)
}

// Events made by hand may hold anything; their snapshot must still be JSON.
func TestSnapshotOfDamagedEventsIsJSON(t *testing.T) {
	bad := JSON(`{"a":`)
	f := NewFold(FoldOptions{})
	for i, p := range []Payload{
		&RunStarted{Inputs: bad, Definition: bad}, &StatePatched{Op: PatchSet, Path: "a.b", Value: bad}, &NodeCompleted{Outputs: bad},
		&AgentEnded{StructuredOutput: bad, Error: Some(ErrorInfo{Details: bad})}, &MessageCreated{Message: ConversationMessage{MessageID: "m", Content: bad}},
		&OrchestratorDecided{Decision: bad}, &BlackboardItemCreated{ItemID: "i", Content: bad}, &ClarificationResolved{InterruptID: "i", Answers: bad},
		&ClarificationRequested{InterruptID: "j", Questions: []Question{{ID: "q", Schema: bad}}}, &TurnEnded{Error: Some(ErrorInfo{Details: bad})},
		&SessionCompleted{Result: bad}, &RunFailed{Error: Some(ErrorInfo{Message: "\xff", Details: bad})},
		&ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK, OneEvent: true, Duration: Some(time.Duration(math.MaxInt64))},
		nil, (*RunPaused)(nil), foreignPayload{},
	} {
		f.Apply(Event{Sequence: uint64(i), RunID: "r", AgentID: "a", Scope: Scope{NodeID: "n"}, Time: time.Date(100, 1, 1, 0, 0, 0, 0, time.UTC), Payload: p})
		text := f.Snapshot().AppendJSON(nil)
		require.True(t, json.Valid(text), "%T: %s", p, text)
		require.NoError(t, new(RunSnapshot).UnmarshalJSON(text), "%T", p)
	}
}

// FuzzFold: any lines that can be read fold without panic, and the snapshot can
// be written, read and gone on from.
func FuzzFold(f *testing.F) {
	var all []byte
	for _, line := range kindLines(f) {
		f.Add([]byte(line))
		all = append(all, line...)
	}
	f.Add(all)
	var run []byte
	for _, e := range aRun(f) {
		run = append(append(run, encodeEvent(f, e)...), '\n')
	}
	f.Add(run)
	f.Fuzz(func(t *testing.T, lines []byte) {
		if strings.Count(string(lines), "[")+strings.Count(string(lines), "{") > 900 {
			return // a snapshot holds values deeper than a line does
		}
		var events []Event
		for line := range strings.SplitSeq(string(lines), "\n") {
			var e Event
			if e.UnmarshalJSON([]byte(line)) == nil {
				events = append(events, e)
			}
		}
		whole := NewFold(FoldOptions{})
		for i, e := range events {
			whole.Apply(e)
			if i != len(events)/2 {
				continue
			}
			// Carry on from the snapshot, over JSON.
			text := whole.Snapshot().AppendJSON(nil)
			var half RunSnapshot
			require.NoError(t, half.UnmarshalJSON(text), "%s", text)
			require.Equal(t, string(text), string(half.AppendJSON(nil)))
			resumed, err := ResumeFold(&half, FoldOptions{})
			require.NoError(t, err)
			for _, e := range events[i+1:] {
				resumed.Apply(e)
			}
			require.True(t, json.Valid(resumed.Snapshot().AppendJSON(nil)))
			defer func() {
				require.Equal(t, string(whole.Snapshot().AppendJSON(nil)), string(resumed.Snapshot().AppendJSON(nil)))
			}()
		}
		require.True(t, json.Valid(whole.Snapshot().AppendJSON(nil)))
	})
}

// foldSeq folds events of any number of runs one by one. Errors come back joined.
func foldSeq(events iter.Seq2[Event, error], o FoldOptions) ([]*RunSnapshot, error) {
	l := NewFoldSet(o)
	var errs []error
	for ev, err := range events {
		if err != nil {
			errs = append(errs, err)
		} else {
			l.Apply(ev)
		}
	}
	return slices.Collect(l.Drain()), errors.Join(errs...)
}

// snapshotsOf folds a log and returns all snapshots.
func snapshotsOf(r *Reader, o FoldOptions) ([]*RunSnapshot, error) {
	l, err := FoldLog(r, o)
	return slices.Collect(l.Drain()), err
}

// A snapshot that was made by hand may have holes; going on from it is an error.
func TestResumeOfASnapshotWithHoles(t *testing.T) {
	e, err := NewEmitter(EmitterOptions{})
	require.NoError(t, err)
	state := RunState{RunID: "r", NextSequence: 1}
	for _, s := range []*RunSnapshot{
		nil,
		{RunState: state, Agents: map[string]*AgentSnapshot{"a": nil}},
		{RunState: state, Tools: map[string]*ToolStats{"t": nil}},
		{RunState: state, OpenCalls: []*ToolCallSnapshot{nil}},
		{RunState: state, ClosedCalls: []*ToolCallSnapshot{nil}},
		{RunState: state, Violations: []*RuleError{nil}},
	} {
		_, err := ResumeFold(s, FoldOptions{})
		require.ErrorContains(t, err, "nil")
		_, err = e.Resume(s)
		require.ErrorContains(t, err, "nil")
	}
}

// Another system's snapshot of a run is enough to go on: its status is taken for the run's.
func TestResumeOfAStatus(t *testing.T) {
	for status, want := range map[RunStatus]RunStatus{
		"": RunStatusPending, RunStatusPending: RunStatusPending, RunStatusRunning: RunStatusRunning, RunStatusPaused: RunStatusRunning,
		RunStatusCompleted: RunStatusCompleted, RunStatusFailed: RunStatusFailed, RunStatusCancelled: RunStatusCancelled,
	} {
		s := &RunSnapshot{RunState: RunState{RunID: "r", NextSequence: 7}, Status: status}
		f, err := ResumeFold(s, FoldOptions{})
		require.NoError(t, err)
		require.Equal(t, want, f.Snapshot().Status, status)
		e, err := NewEmitter(EmitterOptions{})
		require.NoError(t, err)
		run, err := e.Resume(s)
		require.NoError(t, err)
		err = run.Emit(t.Context(), &RunStarted{})
		require.Equal(t, want == RunStatusPending, err == nil, "%s: %v", status, err)
	}
}

// A message without a time gets another one each time that it is told. It is still the same
// message, which stays as it was told first.
// The end of a log that comes again changes nothing, also after a delta of an agent that has
// not started, while all others are at rest.
func TestEndToldTwice(t *testing.T) {
	log := []Event{
		{RunID: "r", AgentID: "a", ID: "0", Payload: &AgentStarted{}},
		{RunID: "r", AgentID: "b", ID: "1", Sequence: 1, Payload: &TextDelta{BlockID: "1", Delta: "hello "}},
		{RunID: "r", AgentID: "a", ID: "2", Sequence: 2, Payload: &AgentEnded{Outcome: OutcomeConverged}},
	}
	once, twice := NewFold(FoldOptions{}), NewFold(FoldOptions{})
	for _, ev := range log {
		once.Apply(ev)
		twice.Apply(ev)
	}
	for _, ev := range log[1:] {
		twice.Apply(ev)
	}
	require.Equal(t, 0, twice.Snapshot().ViolationCount)
	require.Equal(t, uint64(3), twice.Snapshot().NextSequence)
	require.Equal(t, once.Snapshot().Agents, twice.Snapshot().Agents)
}

// A call that returns twice counts once, whichever calls the snapshot keeps, also after other calls and in a
// fold that goes on from a snapshot. Of a model call figures count that its first return lacks.
func TestReturnsTwice(t *testing.T) {
	returned := func() *ToolReturned { return &ToolReturned{CallID: "c", ToolID: "Bash", Status: ToolStatusError} }
	log := []Event{
		ev("a", started()), ev("a", call("c")), ev("a", returned()),
		ev("a", &ModelCalled{ModelCallID: "m"}), ev("a", &ModelReturned{ModelCallID: "m", Error: Some(ErrorInfo{Message: "x"})}),
	}
	for i := range 10 {
		id := fmt.Sprint("other", i)
		log = append(log, ev("a", call(id)), ev("a", &ToolReturned{CallID: id, ToolID: "Bash", Status: ToolStatusOK}))
	}
	log = append(log, ev("a", returned()))
	for range 2 {
		log = append(log, ev("a", &ModelReturned{ModelCallID: "m", Error: Some(ErrorInfo{Message: "x"}), Usage: Some(Usage{InputTokens: 10})}))
	}
	log = append(log, ev("a", &ModelReturned{ModelCallID: "before the log"}))
	for i := range log {
		log[i].ID, log[i].Sequence = fmt.Sprint(i), uint64(i)
	}
	for _, keep := range []int{-1, 1, 4, 0, 100} {
		whole := foldEvents(FoldOptions{KeepCalls: keep}, log)
		tools := 0
		for _, s := range whole.Tools {
			tools += s.Calls
		}
		a := whole.Agents["a"]
		require.Equal(t, [6]int{11, 11, 1, 10, 2, 1}, [6]int{tools, a.ToolCalls, a.ToolFailures, a.ToolSuccesses, a.ModelCalls, a.ModelFailures}, keep)
		require.EqualValues(t, 10, whole.Usage.Usage.InputTokens)
		for _, cut := range []int{5, 25, len(log) - 2} {
			f, err := ResumeFold(foldEvents(FoldOptions{KeepCalls: keep}, log[:cut]), FoldOptions{KeepCalls: keep})
			require.NoError(t, err)
			for _, ev := range log[cut:] {
				f.Apply(ev)
			}
			require.Equal(t, whole, f.Snapshot(), "%d kept, %d before", keep, cut)
		}
	}
}

// An agent whose id is the span by which another one was known keeps its acts.
func TestAgentWithTheSpanOfAnother(t *testing.T) {
	f := NewFold(FoldOptions{})
	for i, ev := range []Event{
		{SpanID: "a", Payload: &AgentStarted{}},
		{SpanID: "a", Payload: &ApprovalRequested{ApprovalID: "1"}, ParentSpanID: "a"},
		{SpanID: "a", AgentID: "lead", Payload: &AgentSessionChanged{ProviderSessionID: "s"}},
		{AgentID: "a", Payload: &AgentStarted{}},
		{AgentID: "a", Payload: &ToolCalled{CallID: "c", ToolID: "T"}},
		{AgentID: "a", Payload: &ApprovalRequested{ApprovalID: "2"}},
	} {
		ev.RunID, ev.ID, ev.Sequence = "r", strconv.Itoa(i), uint64(i)
		f.Apply(ev)
	}
	s := f.Snapshot()
	require.Zero(t, s.Violations)
	require.Equal(t, "a", s.OpenCalls[0].AgentID)
	require.Equal(t, []string{"lead", "a"}, []string{s.Approvals[0].AgentID, s.Approvals[1].AgentID})
}

func TestMessageToldTwice(t *testing.T) {
	run, log := ruleRun(t, LifecycleStrict, ModeEnforce)
	a := beginAgent(t, run, "a")
	for i := range 2 {
		untimed := says("m1", "")
		untimed.Message.TS = 0
		require.NoError(t, errOf(a.Record(context.Background(), Event{Time: second(i), Payload: untimed})))
	}
	stated := says("m1", "")
	stated.Message.TS = 77
	require.NoError(t, a.Emit(context.Background(), stated))
	other := *stated
	other.Message.Role = "user"
	var broken *RuleError
	require.ErrorAs(t, a.Emit(context.Background(), &other), &broken)
	require.Equal(t, RuleMessageID, broken.Rule)
	require.NotEqual(t, log.events[1].Payload.(*MessageCreated).Message.TS, log.events[2].Payload.(*MessageCreated).Message.TS)
	s := foldEvents(FoldOptions{}, log.events)
	require.Zero(t, s.ViolationCount)
	require.Len(t, s.Messages, 1)
	require.Equal(t, second(0).UnixMilli(), s.Messages[0].TS)
	requireSplitFolds(t, log.events, s)
}

// Commands wait for one execution of a node, and leave with it: another one has nothing to
// do with them.
func TestCommandsOfEndedExecutionsLeave(t *testing.T) {
	for _, end := range []Payload{&NodeCompleted{}, &NodeFailed{}} {
		f := NewFold(FoldOptions{})
		seq := uint64(0)
		apply := func(execution string, p Payload) string {
			id := fmt.Sprint("e", seq)
			f.Apply(Event{RunID: "r", ID: id, Sequence: seq, Scope: Scope{NodeID: "n", NodeRunID: execution}, Payload: p})
			seq++
			if seq%7 == 0 { // and in pieces
				var err error
				f, err = ResumeFold(f.Snapshot(), FoldOptions{})
				require.NoError(t, err)
			}
			return id
		}
		apply("n-1", &NodeStarted{})
		apply("n-2", &NodeStarted{})
		for range 20 {
			taken := apply("", &CommandReceived{Command: Command{Type: CommandSend, RunID: "n-1", Message: "a"}})
			apply("", &CommandReceived{Command: Command{Type: CommandReply, RunID: "n-1", Content: "b"}})
			apply("", &CommandReceived{Command: Command{Type: CommandSend, RunID: "n-2", Message: "c"}})
			apply("", &CommandConsumed{EventID: taken})
		}
		require.Len(t, f.Snapshot().Inbox, 40)
		apply("n-1", end)
		left := f.Snapshot().Inbox
		require.Len(t, left, 20)
		for _, item := range left {
			require.Equal(t, "n-2", item.Command.RunID)
		}
		apply("", end) // of no execution that is known
		require.Len(t, f.Snapshot().Inbox, 20)
		apply("n-2", end)
		require.Empty(t, f.Snapshot().Inbox)
		require.Empty(t, f.Snapshot().Violations)
	}
}

// The state of deep patches that share nothing takes little more than their text.
func TestDeepPatchesTakeLittleMemory(t *testing.T) {
	const patches, depth = 2_000, 60
	f, size := NewFold(FoldOptions{}), 0
	before := heapInUse()
	for i := range patches {
		path := strconv.Itoa(i) + strings.Repeat(".name", depth-1)
		size += len(path)
		f.Apply(Event{ID: strconv.Itoa(i), RunID: "r", Sequence: uint64(i), Time: noon(), Payload: &StatePatched{Path: path, Op: PatchSet, Value: "1"}})
	}
	require.Less(t, heapInUse()-before, int64(5*size))
	runtime.KeepAlive(f)
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A fold of events with their lines is the fold of the events, and tells a repeated
// event as well.
func TestApplyLine(t *testing.T) {
	ctx := t.Context()
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleRelaxed})
	a := r.With(Scope{SessionID: "s"}).Agent("a")
	require.NoError(t, a.Emit(ctx, &AgentStarted{Task: "task"}))
	require.NoError(t, a.To(ctx, StatusToolCall))
	c, err := a.Call(ctx, &ToolCalled{ToolID: "tool", Arguments: `{"a": [1.50, "x"]}`})
	require.NoError(t, err)
	require.NoError(t, c.Return(ctx, `{"b":  2}`))
	require.NoError(t, a.Emit(ctx, &MessageCreated{Message: ConversationMessage{Content: `"hi"`}}))
	require.NoError(t, r.Emit(ctx, &RunPaused{}))

	whole, lines := NewFold(FoldOptions{Lifecycle: LifecycleRelaxed}), NewFold(FoldOptions{Lifecycle: LifecycleRelaxed})
	for range 2 {
		for i, ev := range log.events {
			whole.Apply(ev)
			lines.ApplyLine(ev, log.lines[i])
		}
	}
	require.Equal(t, string(whole.Snapshot().AppendJSON(nil)), string(lines.Snapshot().AppendJSON(nil)))
	require.Zero(t, lines.Snapshot().ViolationCount)
	lines.ApplyLine(Event{RunID: "r"}, "{}")
	require.Equal(t, RulePayload, lines.Snapshot().Violations[0].Rule)
}
