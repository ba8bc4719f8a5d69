package agentevents

import (
	"context"
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

func TestRefusalsSayWhatIsLegal(t *testing.T) {
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
