package agentevents

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The rules themselves are in rules_test.go.

func TestStatuses(t *testing.T) {
	require.Len(t, statuses, len(allStatuses))
	for i, s := range statuses {
		require.Equal(t, allStatuses[i], string(s), "the order of KAHN's enum")
		require.Equal(t, i, s.index())
		require.True(t, s.known())
		require.Equal(t, s == StatusConverged || s == StatusFailed, s.Terminal())
	}
	require.False(t, AgentStatus("blocked_on_clarification").known(), "the diagram's spelling is not the enum's")
	require.False(t, AgentStatus("").Terminal())
}

func TestLifecycleOfOtherWords(t *testing.T) {
	require.False(t, LifecycleRelaxed.Allows("dreaming", StatusThinking))
	require.False(t, LifecycleRelaxed.Allows(StatusThinking, ""))
	require.False(t, Lifecycle("lax").Allows(StatusThinking, StatusToolCall))
	require.Empty(t, LifecycleStrict.Next("dreaming"))
	require.Empty(t, LifecycleStrict.Next(StatusConverged))
	require.Equal(t, []AgentStatus{StatusThinking}, LifecycleRelaxed.Next(StatusConverged), "a further turn")
	_, err := NewEmitter(EmitterOptions{Lifecycle: "lax"})
	require.Error(t, err)
}

func TestClosedWords(t *testing.T) {
	for _, o := range []AgentOutcome{OutcomeConverged, OutcomePartial, OutcomeEscaped, OutcomeAborted} {
		require.True(t, o.known())
	}
	for _, r := range []AuditResult{AuditPass, AuditFail, AuditWarn} {
		require.True(t, r.known())
	}
	for _, s := range []ToolStatus{ToolStatusOK, ToolStatusError, ToolStatusForbidden, ToolStatusRateLimited, ToolStatusCancelled, ToolStatusInterrupted} {
		require.True(t, s.known())
	}
	for _, m := range []MemoryChange{MemoryAdded, MemoryEvicted, MemorySummarized, MemoryHydrated, MemoryPersisted, MemorySearched} {
		require.True(t, m.known())
	}
	for _, known := range []bool{
		AgentOutcome("").known(), AuditResult("PASS").known(), ToolStatus("").known(), MemoryChange("lost").known(),
		Severity("fatal").known(), Transport("grpc").known(), PatchOp("delete").known(), Verbosity("loud").known(),
	} {
		require.False(t, known)
	}
}

// The agent of an event is its agentId, else its nodeRunId, else the span of the
// event that started the agent.
func TestAgentOfAnEvent(t *testing.T) {
	m := newMachine(&RunState{RunID: rulesRun, Lifecycle: LifecycleStrict})
	start := ev("", started(), spanned("s1", ""))
	var sub subject
	m.resolve(&sub, &start, ops(start.Payload))
	m.apply(&start, &sub)
	for _, c := range []struct {
		want string
		e    Event
	}{
		{"a", ev("a", call("c"), scoped(Scope{NodeRunID: "n#1"}), spanned("s2", "s9"))},
		{"s1", ev("a", call("c"), scoped(Scope{NodeRunID: "n#1"}), spanned("s1", "s9"))}, // names it
		{"s1", ev("a", &AgentEnded{}, spanned("s1", ""))},
		{"s1", ev("a", call("c"), spanned("s2", "s1"))},
		{"a", ev("a", started(), spanned("s1", ""))},
		{"a", ev("a", &HandoffAccepted{}, spanned("s1", ""))},
		{"a", ev("a", &ApprovalGranted{ApprovalID: "x"}, spanned("s1", ""))},
		{"n#1", ev("", call("c"), scoped(Scope{NodeID: "n", NodeRunID: "n#1"}), spanned("s1", "s1"))},
		{"s1", ev("", started(), spanned("s1", ""))},
		{"s1", ev("", &AgentEnded{}, spanned("s1", "other"))},
		{"s1", ev("", call("c"), spanned("s2", "s1"))},
		{"", ev("", call("c"), spanned("s2", "s9"))},
		{"", ev("", call("c"), scoped(Scope{NodeID: "n"}))},
	} {
		var sub subject
		m.resolve(&sub, &c.e, ops(c.e.Payload))
		require.Equal(t, c.want, sub.key)
	}
}

// The first event with an id in the span of a nameless agent, or in a span below, names the agent.
// Its open calls stay its own, and so does the agent below it.
func TestSpanIsNamed(t *testing.T) {
	events := []Event{
		ev("", started(), spanned("s1", "root")),
		ev("", call("c1"), spanned("s2", "s1")),
		ev("", &ModelCalled{ModelCallID: "m1"}, spanned("s2", "s1")),
		ev("", &ApprovalRequested{ApprovalID: "q", CallID: "c1"}, spanned("s2", "s1")),
		ev("", started(), spanned("s3", "s1")),
		ev("a", &TextDelta{Delta: "x"}, spanned("s2", "s1")), // a delta may be dropped: it names nobody
		ev("a", &TextCompleted{Text: "x"}, spanned("s2", "s1")),
		ev("", returned("c1", ToolStatusOK), spanned("s2", "s1")),
		ev("a", &ModelReturned{ModelCallID: "m1"}, spanned("s9", "s8")),
		ev("b", &AgentEnded{}, spanned("s3", "")),
		ev("", &TextCompleted{Text: "y"}, spanned("s2", "s1")),
		ev("", &AgentEnded{}, spanned("s1", "")),
		ev("", started(), spanned("s1", "root")),
		ev("a", &AgentStarted{Resumed: true}, spanned("s4", "root")),
		ev("c", started(), spanned("s5", "s4")),
	}
	run, log := ruleRun(t, LifecycleRelaxed, ModeEnforce)
	for i, e := range events {
		require.NoError(t, errOf(run.Record(context.Background(), e)), "event %d", i)
	}
	s := fold(t, log.events...)
	ids := []string{}
	for _, a := range s.AgentsInOrder() {
		ids = append(ids, a.AgentID+" in "+a.SpanID+" below "+a.ParentAgentID)
	}
	require.Equal(t, []string{"a in s4 below ", "b in s3 below a", "c in s5 below a"}, ids)
	require.Equal(t, 3, s.Agents["a"].Attempts)
	require.Equal(t, "y", s.Agents["a"].Earlier[0].Text)
	require.Equal(t, "a", s.ClosedCalls[0].AgentID)
	require.Equal(t, "a", s.Approvals[0].AgentID)
	require.False(t, s.Approvals[0].Open, "the return closes it")
}

// An agent that is known by its span has a life like any other.
func TestAgentKnownByItsSpan(t *testing.T) {
	run, log := ruleRun(t, LifecycleStrict, ModeEnforce)
	ctx := context.Background()
	for _, e := range []Event{
		ev("", started(), spanned("s1", "")),
		ev("", call("c1"), spanned("s2", "s1")),
		ev("", started(), spanned("s3", "s1")),
		ev("", returned("c1", ToolStatusOK), spanned("s2", "s1")),
		ev("", &AgentEnded{}, spanned("s3", "s1")),
		ev("", &AgentEnded{}, spanned("s1", "")),
	} {
		require.NoError(t, errOf(run.Record(ctx, e)))
	}
	s := foldEvents(FoldOptions{}, log.events)
	require.Empty(t, s.Violations)
	require.Len(t, s.Agents, 2)
	require.Equal(t, 1, s.Agents["s1"].ToolCalls)
	require.Equal(t, 1, s.Agents["s1"].Totals.V.ToolCalls, "the emitter fills totals in")
	require.Equal(t, RunStatusCompleted, s.Status)
}

// The machine does not grow with the log: it forgets closed things.
func TestMachineForgets(t *testing.T) {
	run, _ := ruleRun(t, LifecycleStrict, ModeEnforce)
	ctx := context.Background()
	a := run.Agent("a")
	require.NoError(t, a.Emit(ctx, started()))
	w := run.With(Scope{WorkflowID: "w", Phase: "scout"})
	for range 3 * maxBlocks {
		for _, p := range []Payload{
			call("c1"), &ToolArgumentsDelta{CallID: "c1", Delta: "{}"}, returned("c1", ToolStatusOK),
			&ApprovalRequested{ApprovalID: "p", CallID: "c2"}, &ApprovalGranted{ApprovalID: "p"},
			&ClarificationRequested{InterruptID: "i"}, &ClarificationResolved{InterruptID: "i"},
			&HandoffRequested{From: ref("a"), To: ref("b")}, &HandoffAccepted{From: ref("a"), To: ref("b")},
		} {
			recordOf(t, a, p)
		}
		require.NoError(t, w.Emit(ctx, &PhaseStarted{}))
		require.NoError(t, w.Emit(ctx, &PhaseCompleted{}))
	}
	for i := range 3 * maxBlocks {
		require.NoError(t, a.Emit(ctx, &TextDelta{BlockID: string(rune('a' + i)), Delta: "x"}))
	}
	m := run.s.m
	require.Zero(t, m.calls.Len())
	require.Equal(t, [3]int{}, [3]int{len(m.questions.open), len(m.questions.byAgent), len(m.questions.byCall)})
	require.Zero(t, m.workflows().handoffs.Len())
	require.Empty(t, m.workflows().phases)
	require.Empty(t, m.workflows().inPhase)
	require.Len(t, m.agents["a"].Resume.blocks, maxBlocks)
	require.NoError(t, a.Emit(ctx, &AgentEnded{}))
	require.Empty(t, m.agents["a"].Resume.blocks)
}

func TestRefusalsNameLegalTransitions(t *testing.T) {
	run, _ := ruleRun(t, LifecycleStrict, ModeEnforce)
	a := run.Agent("a")
	require.NoError(t, a.Emit(context.Background(), started()))
	err := a.To(context.Background(), StatusResponse)
	var broken *RuleError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, `agent "a"`, broken.Subject)
	require.Equal(t, "thinking", broken.State)
	require.Contains(t, err.Error(), "thinking → response is not in the strict table; legal: tool_call, blocked-on-clarification, failed")
	require.Contains(t, err.Error(), `(rule transition-legal, run "run-1", sequence 1)`)
}

// inWords returns the events of agents, one word each: a transition is its target, with its
// step.
func inWords(events []Event) string {
	var words []string
	for _, ev := range events {
		word := strings.TrimPrefix(string(ev.Kind()), "agent.")
		if p, ok := ev.Payload.(*AgentTransition); ok {
			word = "→" + string(p.To)
			if !ev.Marks.Has(MarkSynthetic) {
				word = "To" + word
			}
		}
		if ev.Step.OK {
			word += fmt.Sprint("/", ev.Step.V)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestDerived(t *testing.T) {
	call := func(id string) Payload { return &ToolCalled{CallID: id, ToolID: "t"} }
	back := func(id string) Payload { return &ToolReturned{CallID: id, ToolID: "t", Status: ToolStatusOK} }
	start, think, say := &AgentStarted{}, &AgentReasoned{Reasoning: "r"}, &TextCompleted{Text: "x"}
	model := func(id string) Payload { return &ModelCalled{ModelCallID: id} }
	answer := func(id string) Payload { return &ModelReturned{ModelCallID: id} }
	ask := func(id string) Payload { return &ClarificationRequested{InterruptID: id} }
	approve := func(id, call string) Payload { return &ApprovalRequested{ApprovalID: id, CallID: call} }
	to := func(s AgentStatus) Payload { return &AgentTransition{To: s} }
	for name, tc := range map[string]struct {
		emit []Payload
		want string
	}{
		"an answer without a tool": {
			[]Payload{start, think, say, &AgentEnded{Outcome: OutcomeConverged}},
			"started reasoned/0 →response/0 text/0 →converged/0 ended",
		},
		"parallel calls": {
			[]Payload{start, think, call("a"), call("b"), back("b"), back("a"), think, call("c"), back("c"), think, say, &AgentEnded{}},
			"started reasoned/0 →tool_call/0 toolCalled/0 toolCalled/0 toolReturned/0 →tool_result/0 toolReturned/0 " +
				"→thinking/1 reasoned/1 →tool_call/1 toolCalled/1 →tool_result/1 toolReturned/1 →thinking/2 reasoned/2 →response/2 text/2 ended",
		},
		"text while a tool runs": {
			[]Payload{start, call("a"), say, think, back("a"), say},
			"started →tool_call/0 toolCalled/0 text/0 reasoned/0 →tool_result/0 toolReturned/0 →response/0 text/0",
		},
		"a call in one event": {
			[]Payload{start, &ToolReturned{CallID: "a", ToolID: "t", Status: ToolStatusOK, OneEvent: true}, think},
			"started →tool_result/0 toolReturned/0 →thinking/1 reasoned/1",
		},
		"a refused call": {
			[]Payload{start, &ToolReturned{CallID: "a", ToolID: "t", Status: ToolStatusForbidden}},
			"started →tool_result/0 toolReturned/0",
		},
		"text does not leave reflect": {
			[]Payload{start, say, to(StatusReflect), say, &TextDelta{Delta: "d"}, think, say},
			"started →response/0 text/0 To→reflect/0 text/0 text.delta/0 →thinking/1 reasoned/1 →response/1 text/1",
		},
		"reflect is kept while a tool runs": {
			[]Payload{start, to(StatusReflect), call("a"), say, &AgentReasoningDelta{Delta: "r"}},
			"started To→reflect/0 →tool_call/0 toolCalled/0 text/0 reasoning.delta/0",
		},
		"deltas": {
			[]Payload{start, &AgentReasoningDelta{Delta: "r"}, &TextDelta{Delta: "a"}, &TextDelta{Delta: "b"}, say, &ToolArgumentsDelta{CallID: "c", Delta: "{}"}, call("c")},
			"started reasoning.delta/0 →response/0 text.delta/0 text.delta/0 text/0 tool.arguments.delta/0 →tool_call/0 toolCalled/0",
		},
		"an aborted end": {[]Payload{start, call("a"), &AgentEnded{Outcome: OutcomeAborted}}, "started →tool_call/0 toolCalled/0 →failed/0 ended"},
		"an end with an error": {
			[]Payload{start, say, &AgentEnded{Outcome: OutcomePartial, Error: Some(ErrorInfo{Message: "m"})}},
			"started →response/0 text/0 →failed/0 ended",
		},
		"a partial end":            {[]Payload{start, say, &AgentEnded{Outcome: OutcomePartial}}, "started →response/0 text/0 ended"},
		"an end that was foretold": {[]Payload{start, to(StatusFailed), &AgentEnded{Outcome: OutcomePartial}}, "started To→failed ended"},
		"a further turn":           {[]Payload{start, say, to(StatusConverged), think, say}, "started →response/0 text/0 To→converged/0 →thinking/1 reasoned/1 →response/1 text/1"},
		"another attempt forgets the calls of the one before": {
			[]Payload{start, call("a"), &AgentEnded{Outcome: OutcomePartial}, start, think, say, back("a"), say},
			"started →tool_call/0 toolCalled/0 ended started reasoned/1 →response/1 text/1 →tool_result/1 toolReturned/1 →response/1 text/1",
		},
		"an attempt that ends at once": {
			[]Payload{start, say, &AgentEnded{}, start, &AgentEnded{Outcome: OutcomeConverged}},
			"started →response/0 text/0 ended started →converged ended",
		},
		"three steps, with parallel tools and streaming": {
			[]Payload{
				start,
				model("1"), &AgentReasoningDelta{Delta: "r"}, &TextDelta{BlockID: "b", Delta: "let me"}, say, answer("1"), call("a"), call("b"), back("a"), back("b"),
				model("2"), answer("2"), call("c"), back("c"),
				model("3"), &TextDelta{BlockID: "d", Delta: "done"}, say, answer("3"), &AgentEnded{Outcome: OutcomeConverged},
			},
			"started model.called/0 reasoning.delta/0 →response/0 text.delta/0 text/0 model.returned/0 →tool_call/0 toolCalled/0 toolCalled/0 toolReturned/0 →tool_result/0 toolReturned/0 " +
				"→thinking/1 model.called/1 model.returned/1 →tool_call/1 toolCalled/1 →tool_result/1 toolReturned/1 " +
				"→thinking/2 model.called/2 →response/2 text.delta/2 text/2 model.returned/2 →converged/2 ended",
		},
		"a retried model call": {
			[]Payload{start, model("1"), &TextDelta{BlockID: "b", Delta: "let"}, answer("1"), &ModelCalled{ModelCallID: "2", RetryOf: "1"}, &TextDelta{BlockID: "c", Delta: "let me"}},
			"started model.called/0 →response/0 text.delta/0 model.returned/0 →thinking/0 model.called/0 →response/0 text.delta/0",
		},
		"a model call in one event": {
			[]Payload{start, say, &ModelReturned{ModelCallID: "1", OneEvent: true}, say},
			"started →response/0 text/0 →thinking/1 model.returned/1 →response/1 text/1",
		},
		"a question": {
			[]Payload{start, model("1"), ask("q"), model("2"), &ClarificationResolved{InterruptID: "q"}, say},
			"started model.called/0 →blocked-on-clarification/0 clarification.requested/0 model.called/0 →thinking/0 clarification.resolved/0 →response/0 text/0",
		},
		"two tools of one step that ask": {
			[]Payload{
				start, model("1"), call("a"), call("b"), approve("p", "a"), ask("q"), &ApprovalGranted{ApprovalID: "p"}, back("a"),
				&ClarificationResolved{InterruptID: "q"}, back("b"), model("2"),
			},
			"started model.called/0 →tool_call/0 toolCalled/0 toolCalled/0 →blocked-on-clarification/0 approval.requested/0 clarification.requested/0 approval.granted/0 toolReturned/0 " +
				"→tool_call/0 clarification.resolved/0 →tool_result/0 toolReturned/0 →thinking/1 model.called/1",
		},
		"a call that returns unanswered": {
			[]Payload{start, call("a"), approve("p", "a"), back("a")},
			"started →tool_call/0 toolCalled/0 →blocked-on-clarification/0 approval.requested/0 →tool_result/0 toolReturned/0",
		},
		"another attempt is not asked": {
			[]Payload{start, say, ask("q"), &AgentEnded{}, start, model("1"), say},
			"started →response/0 text/0 →blocked-on-clarification/0 clarification.requested/0 ended started model.called/1 →response/1 text/1",
		},
		"what changes nothing": {
			[]Payload{start, call("a"), &UsageObserved{}, &AgentErrored{ErrorType: "e"}, &MessageCreated{Message: ConversationMessage{Content: `"x"`}}, &PlanProposed{}},
			"started →tool_call/0 toolCalled/0 usage.observed/0 error/0 message.created/0 plan.proposed/0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
			a := r.Agent("a")
			for _, p := range tc.emit {
				require.NoError(t, a.Emit(t.Context(), p))
			}
			require.Equal(t, tc.want, inWords(log.events))
			require.Empty(t, log.snapshot(t).Violations)
			for i, ev := range log.events {
				require.EqualValues(t, i, ev.Sequence)
			}

			// A derived log that is emitted again gains nothing.
			again, log2 := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
			for _, ev := range log.events {
				ev.RunID = ""
				require.NoError(t, errOf(again.Record(t.Context(), ev)))
			}
			require.Equal(t, tc.want, inWords(log2.events))
		})
	}
}

// TestDerivedByAnAnswerFromOutside: who answers is not who asked, as over HTTP.
func TestDerivedByAnAnswerFromOutside(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
	ctx, a := t.Context(), r.Agent("a")
	require.NoError(t, a.Emit(ctx, &AgentStarted{}))
	require.NoError(t, a.Emit(ctx, &ToolCalled{CallID: "c", ToolID: "t"}))
	require.NoError(t, a.Emit(ctx, &ApprovalRequested{ApprovalID: "p", CallID: "c"}))
	require.Error(t, r.Emit(ctx, &ApprovalGranted{ApprovalID: "other"}))
	require.NoError(t, r.Emit(ctx, &ApprovalGranted{ApprovalID: "p"}))
	require.Equal(t, "started →tool_call/0 toolCalled/0 →blocked-on-clarification/0 approval.requested/0 →tool_call/0 approval.granted", inWords(log.events))
	require.Equal(t, "a", log.events[5].AgentID)
	require.Empty(t, log.events[6].AgentID)
	require.Empty(t, log.snapshot(t).Violations)
}

// TestDerivedTransitionAndEventAreOne: when the event is refused, by a rule or by the host, nothing
// is recorded, and nothing of the agent changes. Model calls, questions and answers need not name a
// phase; the transitions that they cause are legal nevertheless.
func TestDerivedInsideAPhase(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived})
	ctx := t.Context()
	require.NoError(t, r.With(Scope{WorkflowID: "w", Phase: "p"}).Emit(ctx, &PhaseStarted{}))
	a := beginAgent(t, r, "a").With(Scope{WorkflowID: "w"})
	require.Error(t, a.Emit(ctx, &TextCompleted{}), "an agent's own event does")
	for _, p := range []Payload{&ApprovalRequested{ApprovalID: "p"}, &ApprovalGranted{ApprovalID: "p"}} {
		n := len(log.events)
		require.NoError(t, a.Emit(ctx, p))
		require.Len(t, log.events, n+2)
		require.Empty(t, log.events[n].WorkflowID)
		require.Equal(t, "w", log.events[n+1].WorkflowID)
	}
	require.NoError(t, a.With(Scope{Phase: "p"}).Emit(ctx, &TextCompleted{}))
	require.Equal(t, "w", log.events[len(log.events)-2].WorkflowID)
	require.Empty(t, log.snapshot(t).Violations)
}

func TestDerivedTransitionAndEventAreOne(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived, Guard: func(ev Event) *RuleError {
		if p, ok := ev.Payload.(*AgentTransition); ok && p.To == StatusResponse || ev.Kind() == KindToolCalled {
			return &RuleError{Rule: "host", Detail: "no"}
		}
		return nil
	}})
	ctx, a := t.Context(), r.Agent("a")
	require.NoError(t, a.Emit(ctx, &AgentStarted{}))
	for _, p := range []Payload{&ToolCalled{CallID: "c", ToolID: "t"}, &TextCompleted{Text: "x"}, &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK}} {
		require.Error(t, a.Emit(ctx, p))
	}
	status, _ := a.Status()
	require.Equal(t, StatusThinking, status)
	require.Len(t, log.events, 1)
	require.NoError(t, a.Emit(ctx, &AgentEnded{Outcome: OutcomeAborted}))
	require.Equal(t, "started →failed ended", inWords(log.events))
	require.Equal(t, uint64(1), log.events[1].Sequence)
}
