package agentevents

import (
	"cmp"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A boundCase is an event that Emit accepts or refuses after a log.
type boundCase struct {
	name      string
	rule      Rule
	log       []Event
	last      Event
	refused   bool
	lifecycle Lifecycle // default strict
}

// inTool is a log of an agent that is in tool_call.
func inTool(more ...Event) []Event { return logOf(moves(StatusToolCall), more) }

var boundCases = []boundCase{
	{name: "a text without a start", rule: RuleAgentOpen, last: ev("a", &TextCompleted{Text: "x"}), refused: true},
	{name: "a delta without a start", rule: RuleAgentOpen, last: ev("a", &TextDelta{Delta: "x"}), refused: true},
	{name: "a transition without a start", rule: RuleAgentOpen, last: ev("a", &AgentTransition{To: StatusToolCall}), refused: true},
	{name: "a derived act without a start", rule: RuleAgentOpen, last: ev("a", &ToolCalled{CallID: "c", ToolID: "t"}), refused: true, lifecycle: LifecycleDerived},
	{name: "of an agent that events name, but no start", rule: RuleAgentOpen, log: []Event{ev("a", &ApprovalRequested{ApprovalID: "p"})}, last: ev("a", &TextCompleted{}), refused: true},
	{name: "after a start", rule: RuleAgentOpen, log: moves(), last: ev("a", &TextCompleted{Text: "x"})},
	{name: "a text of the runtime itself", rule: RuleAgentOpen, last: ev("core.system", &TextCompleted{Text: "x"})},
	{name: "a return in one event", rule: RuleAgentOpen, last: ev("a", &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK, OneEvent: true})},
	{name: "a model call in one event", rule: RuleAgentOpen, last: ev("a", &ModelReturned{ModelCallID: "m", OneEvent: true})},
	{name: "in a node", rule: RuleAgentOpen, last: Event{Scope: Scope{NodeID: "n"}, AgentID: "a", Payload: call("c")}},
	{name: "another's message to the agent", rule: RuleAgentOpen, last: ev("a", &MessageCreated{Message: ConversationMessage{MessageID: "m", From: "user", Content: `1`, TS: 1}})},
	{name: "its own message", rule: RuleAgentOpen, last: ev("a", says("m", "")), refused: true},
	{name: "no act of the agent", rule: RuleAgentOpen, last: ev("a", &AuditChecked{CheckpointID: "c", Result: AuditPass})},
	{name: "of no agent", rule: RuleAgentOpen, last: ev("", &TextDelta{Delta: "x"})},

	{name: "while it thinks", rule: RuleToolCallStatus, log: moves(), last: ev("a", call("c")), refused: true},
	{name: "while it thinks, relaxed", rule: RuleToolCallStatus, log: moves(), last: ev("a", call("c")), refused: true, lifecycle: LifecycleRelaxed},
	{name: "while it waits for a person", rule: RuleToolCallStatus, log: inTool(ev("a", &AgentTransition{From: StatusToolCall, To: StatusBlockedOnClarification})), last: ev("a", call("c")), refused: true, lifecycle: LifecycleRelaxed},
	{name: "in tool_call", rule: RuleToolCallStatus, log: inTool(), last: ev("a", call("c"))},
	{name: "a second one", rule: RuleToolCallStatus, log: inTool(ev("a", call("c"))), last: ev("a", call("d"))},
	{name: "derived", rule: RuleToolCallStatus, log: moves(), last: ev("a", call("c")), lifecycle: LifecycleDerived},
	{name: "derived, with an open question", rule: RuleToolCallStatus, log: logOf(moves(), []Event{ev("a", &ClarificationRequested{InterruptID: "i"})}), last: ev("a", call("c")), lifecycle: LifecycleDerived},
	{name: "of the runtime itself", rule: RuleToolCallStatus, last: ev("core.system", call("c"))},

	{name: "a return of the call's tool", rule: RuleReturnTool, log: inTool(ev("a", call("c"))), last: ev("a", &ToolReturned{CallID: "c", ToolID: call("c").ToolID, Status: ToolStatusOK})},
	{name: "a return of another tool", rule: RuleReturnTool, log: inTool(ev("a", call("c"))), last: ev("a", &ToolReturned{CallID: "c", ToolID: "other", Status: ToolStatusOK}), refused: true},

	{name: "converged", rule: RuleEndedConverged, log: moves(StatusToolCall, StatusToolResult, StatusResponse, StatusReflect, StatusConverged), last: ev("a", &AgentEnded{Outcome: OutcomeConverged})},
	{name: "converged while it thinks", rule: RuleEndedConverged, log: moves(), last: ev("a", &AgentEnded{Outcome: OutcomeConverged}), refused: true},
	{name: "converged while it thinks, derived", rule: RuleEndedConverged, log: moves(), last: ev("a", &AgentEnded{Outcome: OutcomeConverged}), lifecycle: LifecycleDerived},
	{name: "converged after it failed", rule: RuleEndedConverged, log: moves(StatusFailed), last: ev("a", &AgentEnded{Outcome: OutcomeConverged}), refused: true, lifecycle: LifecycleDerived},
	{name: "converged with an open call", rule: RuleEndedConverged, log: logOf(moves(), []Event{ev("a", call("c"))}), last: ev("a", &AgentEnded{Outcome: OutcomeConverged}), refused: true, lifecycle: LifecycleDerived},
	{name: "converged with another's open call", rule: RuleEndedConverged, log: logOf(moves(), []Event{ev("b", call("c"))}), last: ev("a", &AgentEnded{Outcome: OutcomeConverged}), lifecycle: LifecycleDerived},
	{name: "converged with a call of an earlier attempt", rule: RuleEndedConverged, log: logOf(moves(), []Event{ev("a", call("c")), ev("a", &AgentEnded{}), ev("a", started())}), last: ev("a", &AgentEnded{Outcome: OutcomeConverged}), lifecycle: LifecycleDerived},
	{name: "converged with an open model call", rule: RuleEndedConverged, log: logOf(moves(), []Event{ev("a", asked("m"))}), last: ev("a", &AgentEnded{Outcome: OutcomeConverged}), refused: true, lifecycle: LifecycleDerived},
	{name: "converged with an error", rule: RuleEndedConverged, log: moves(), last: ev("a", &AgentEnded{Outcome: OutcomeConverged, Error: Some(ErrorInfo{Message: "x"})})},
	{name: "partial with an open call", rule: RuleEndedConverged, log: inTool(ev("a", call("c"))), last: ev("a", &AgentEnded{Outcome: OutcomePartial})},
	{name: "escaped", rule: RuleEndedConverged, log: moves(), last: ev("a", &AgentEnded{Outcome: OutcomeEscaped})},
	{name: "aborted, and never started", rule: RuleEndedConverged, last: ev("a", &AgentEnded{Outcome: OutcomeAborted})},
	{name: "without an outcome", rule: RuleEndedConverged, log: moves(), last: ev("a", &AgentEnded{})},
	{name: "converged, and never started", rule: RuleAgentOpen, last: ev("a", &AgentEnded{Outcome: OutcomeConverged}), refused: true, lifecycle: LifecycleDerived},

	{name: "of a run that goes on", rule: RuleRunPaused, log: moves(), last: ev("", &RunResumed{}), refused: true},
	{name: "twice", rule: RuleRunPaused, log: []Event{ev("", &RunPaused{}), ev("", &RunResumed{})}, last: ev("", &RunResumed{}), refused: true},
	{name: "of a paused run", rule: RuleRunPaused, log: []Event{ev("", &RunPaused{})}, last: ev("", &RunResumed{})},
	{name: "of a run that a command pauses", rule: RuleRunPaused, log: []Event{ev("", &CommandReceived{Command: Command{Type: CommandAbort, Resumable: Some(true)}})}, last: ev("", &RunResumed{})},

	{name: "that nobody asked for", rule: RuleClarificationOpen, log: moves(), last: ev("", &ClarificationResolved{InterruptID: "i"}), refused: true},
	{name: "that nobody asked the agent for", rule: RuleClarificationOpen, log: moves(), last: ev("a", &ClarificationResolved{InterruptID: "i"}), refused: true, lifecycle: LifecycleDerived},
	{name: "a second time", rule: RuleClarificationOpen, log: []Event{ev("a", &ClarificationRequested{InterruptID: "i"}), ev("a", &ClarificationResolved{InterruptID: "i"})}, last: ev("", &ClarificationResolved{InterruptID: "i"}), refused: true},
	{name: "that is an approval", rule: RuleClarificationOpen, log: []Event{ev("a", &ApprovalRequested{ApprovalID: "i"})}, last: ev("", &ClarificationResolved{InterruptID: "i"}), refused: true},
	{name: "that is open", rule: RuleClarificationOpen, log: []Event{ev("a", &ClarificationRequested{InterruptID: "i"})}, last: ev("", &ClarificationResolved{InterruptID: "i"})},

	{name: "that did not start", rule: RuleTurnOpen, last: ev("", &TurnEnded{Turn: Some(1)}), refused: true},
	{name: "of another number", rule: RuleTurnOpen, log: []Event{ev("", &TurnStarted{Turn: Some(1)})}, last: ev("", &TurnEnded{Turn: Some(2)}), refused: true},
	{name: "of another agent", rule: RuleTurnOpen, log: []Event{ev("a", &TurnStarted{Turn: Some(1)})}, last: ev("b", &TurnEnded{Turn: Some(1)}), refused: true},
	{name: "twice", rule: RuleTurnOpen, log: []Event{ev("", &TurnStarted{Turn: Some(1)}), ev("", &TurnEnded{Turn: Some(1)})}, last: ev("", &TurnEnded{Turn: Some(1)}), refused: true},
	{name: "a step instead", rule: RuleTurnOpen, log: []Event{ev("", &StepStarted{StepID: "1"})}, last: ev("", &TurnEnded{Turn: Some(1)}), refused: true},
	{name: "with its number", rule: RuleTurnOpen, log: []Event{ev("", &TurnStarted{Turn: Some(1)}), ev("", &TurnStarted{Turn: Some(2)})}, last: ev("", &TurnEnded{Turn: Some(1)})},
	{name: "without a number", rule: RuleTurnOpen, log: []Event{ev("a", &TurnStarted{Turn: Some(1)})}, last: ev("a", &TurnEnded{})},

	{name: "that did not start", rule: RuleStepOpen, last: ev("a", &StepEnded{StepID: "s"}), refused: true},
	{name: "with another id", rule: RuleStepOpen, log: []Event{ev("a", &StepStarted{StepID: "r"})}, last: ev("a", &StepEnded{StepID: "s"}), refused: true},
	{name: "of another agent", rule: RuleStepOpen, log: []Event{ev("a", &StepStarted{StepID: "s"})}, last: ev("b", &StepEnded{StepID: "s"}), refused: true},
	{name: "one of two with its id", rule: RuleStepOpen, log: []Event{ev("a", &StepStarted{StepID: "s"}), ev("a", &StepStarted{StepID: "s"}), ev("a", &StepEnded{StepID: "s"})}, last: ev("a", &StepEnded{StepID: "s"})},
	{name: "both with its id", rule: RuleStepOpen, log: []Event{ev("a", &StepStarted{StepID: "s"}), ev("a", &StepStarted{StepID: "s"}), ev("a", &StepEnded{StepID: "s"}), ev("a", &StepEnded{StepID: "s"})}, last: ev("a", &StepEnded{StepID: "s"}), refused: true},
}

// behind returns a run with the log of a case, and the log that it is resumed from.
func (c *boundCase) behind(t *testing.T, mode Mode) (*Run, *sinkLog) {
	r, log := startRun(t, EmitterOptions{Lifecycle: cmp.Or(c.lifecycle, LifecycleStrict), Mode: mode})
	for i, e := range c.log {
		require.NoError(t, errOf(r.Record(context.Background(), e)), "event %d", i)
	}
	return r, log
}

func emitOf(r *Run, ev Event) error {
	r = r.With(ev.Scope)
	if ev.AgentID == "" {
		return r.Emit(context.Background(), ev.Payload)
	}
	return r.Agent(ev.AgentID).Emit(context.Background(), ev.Payload)
}

// requireSentence requires that the error reads "subject is state", with one verb.
func requireSentence(t *testing.T, e *RuleError) {
	t.Helper()
	require.NotContains(t, e.State, " is ", e)
	require.True(t, e.State == "" || e.Subject != "", "a state of nothing: %v", e)
}

func TestRulesThatBindEmit(t *testing.T) {
	for _, c := range boundCases {
		verdict := "accepts"
		if c.refused {
			verdict = "refuses"
		}
		t.Run(string(c.rule)+"/"+verdict+" "+c.name, func(t *testing.T) {
			r, log := c.behind(t, ModeEnforce)
			n, state := len(log.events), r.State()
			err := emitOf(r, c.last)
			if !c.refused {
				require.NoError(t, err)
				return
			}
			var broken *RuleError
			require.ErrorAs(t, err, &broken)
			require.Equal(t, c.rule, broken.Rule, err)
			require.Contains(t, err.Error(), "legal: ")
			requireSentence(t, broken)
			require.Len(t, log.events, n)
			require.Equal(t, state, r.State(), "nothing has changed")

			require.NoError(t, errOf(r.Record(context.Background(), c.last)), "Record is not bound")
			s := log.snapshotAs(t, c.lifecycle)
			require.Empty(t, s.Violations, "and so is no log")

			r, log = c.behind(t, ModeObserve)
			require.NoError(t, emitOf(r, c.last))
			require.True(t, log.last(t).Marks.Has(MarkIllegal))
		})
	}
}

// The rules hold for a run that was resumed, but for the first event and the first
// run.resumed: nobody could pause a run that was cut off.
func TestRulesThatBindEmitAfterAResumption(t *testing.T) {
	for _, c := range boundCases {
		if len(c.log) == 0 {
			continue
		}
		_, log := c.behind(t, ModeEnforce)
		resume := func() *Run {
			e, err := NewEmitter(EmitterOptions{Lifecycle: cmp.Or(c.lifecycle, LifecycleStrict)})
			require.NoError(t, err)
			r, err := e.Resume(log.snapshotAs(t, c.lifecycle))
			require.NoError(t, err)
			return r
		}
		require.NoError(t, emitOf(resume(), c.last), "%s: the first event", c.name)
		r := resume()
		require.NoError(t, r.Emit(context.Background(), &UsageObserved{}))
		if err := emitOf(r, c.last); c.refused && c.rule != RuleRunPaused {
			var broken *RuleError
			require.ErrorAs(t, err, &broken, c.name)
			require.Equal(t, c.rule, broken.Rule)
		} else {
			require.NoError(t, err, c.name)
		}
	}
}

// A turn or step in a span ends in that span, whatever else is open, and is then forgotten.
func TestEndsFindTheirSpan(t *testing.T) {
	m := newMachine(&RunState{})
	in := func(span string, e Event) Event { e.SpanID = span; return e }
	for _, e := range []Event{
		in("s1", ev("a", &TurnStarted{Turn: Some(1)})), in("s2", ev("", &TurnStarted{})), ev("a", &TurnStarted{Turn: Some(1)}), ev("a", &TurnStarted{}),
	} {
		m.spanStarted(&e, nil)
	}
	for i, end := range []Event{
		in("s2", ev("a", &TurnEnded{Turn: Some(7)})), in("s1", ev("a", &TurnEnded{Turn: Some(1)})), in("s9", ev("a", &TurnEnded{Turn: Some(1)})), ev("a", &TurnEnded{}),
	} {
		require.NotNil(t, m.openSpan(&end, KindTurnStarted, turnID(end.Payload.(*TurnEnded).Turn)), i)
		m.spanEnded(&end, nil)
		require.Nil(t, m.openSpan(&end, KindTurnStarted, "9"))
		if i == 1 {
			again := in("s1", ev("b", &TurnEnded{Turn: Some(1)}))
			require.Nil(t, m.openSpan(&again, KindTurnStarted, "1"), "the span has no open turn")
		}
	}
	require.Empty(t, m.spans)
}
