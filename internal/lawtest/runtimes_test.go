package lawtest_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

// Situations of runtimes that record their agents: each test is a small runtime.

// isTransition accepts transitions of agents.
func isTransition(ev ae.Event) bool { return ev.Kind() == ae.KindAgentTransition }

// foldedLog returns the snapshot of the only run of a log that is read as bytes, and nothing
// else is said about it.
func foldedLog(t *testing.T, log *bytes.Buffer) *ae.RunSnapshot {
	t.Helper()
	folded, err := ae.FoldLog(ae.NewReader(bytes.NewReader(log.Bytes()), ae.ReaderOptions{}), ae.FoldOptions{})
	require.NoError(t, err)
	runs := slices.Collect(folded.Drain())
	require.Len(t, runs, 1)
	return runs[0]
}

// An agent of three steps streams, and calls its tools in parallel. Nothing in it is about a
// status.
func TestARunOfParallelToolsRecordsItself(t *testing.T) {
	var log bytes.Buffer
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{ae.NewWriter(&log, ae.WriterOptions{})}})
	run, err := em.Run("r")
	require.NoError(t, err)
	ctx, a := t.Context(), run.Agent("main")
	emit := func(p ae.Payload) { require.NoError(t, a.Emit(ctx, p)) }

	require.NoError(t, run.Emit(ctx, &ae.RunStarted{}))
	emit(&ae.AgentStarted{Task: "fix the build"})
	for step, tools := range [][]string{{"read", "grep"}, {"edit", "build", "test"}, nil} {
		model, block := "m"+strconv.Itoa(step), "b"+strconv.Itoa(step)
		emit(&ae.ModelCalled{ModelCallID: model, Model: "m"})
		emit(&ae.AgentReasoningDelta{BlockID: block, Delta: "hm", Index: ae.Some(0)})
		for i, delta := range []string{"let me ", "look"} {
			emit(&ae.TextDelta{BlockID: block, Delta: delta, Index: ae.Some(i)})
		}
		emit(&ae.TextCompleted{BlockID: block, Text: "let me look"})
		for i := range tools {
			emit(&ae.ToolArgumentsDelta{CallID: block + strconv.Itoa(i), Delta: "{}", Index: ae.Some(0)})
		}
		emit(&ae.ModelReturned{ModelCallID: model, Usage: ae.Some(ae.Usage{InputTokens: 10, OutputTokens: 1})})

		var called, all sync.WaitGroup
		called.Add(len(tools))
		for i, tool := range tools {
			all.Go(func() {
				call, err := a.Call(ctx, &ae.ToolCalled{CallID: block + strconv.Itoa(i), ToolID: tool, Arguments: "{}"})
				called.Done()
				called.Wait() // all are open at the same time
				if i == 1 {
					err = errors.Join(err, call.Fail(ctx, errors.New("exit 1")))
				} else {
					err = errors.Join(err, call.Return(ctx, "true"))
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	emit(&ae.AgentEnded{Outcome: ae.OutcomeConverged})
	require.NoError(t, run.Emit(ctx, &ae.RunCompleted{}))

	rec.Filter(isTransition).WantExactly(t,
		"main agent.transition thinking response step=0 [synthetic]",
		"main agent.transition response tool_call step=0 [synthetic]",
		"main agent.transition tool_call tool_result step=0 [synthetic]",
		"main agent.transition tool_result thinking step=1 [synthetic]",
		"main agent.transition thinking response step=1 [synthetic]",
		"main agent.transition response tool_call step=1 [synthetic]",
		"main agent.transition tool_call tool_result step=1 [synthetic]",
		"main agent.transition tool_result thinking step=2 [synthetic]",
		"main agent.transition thinking response step=2 [synthetic]",
		"main agent.transition response converged step=2 [synthetic]",
	)
	s := foldedLog(t, &log)
	agent := s.Agents["main"]
	require.Equal(t, ae.RunStatusCompleted, s.Status)
	require.Equal(t, ae.StatusConverged, agent.Status)
	require.Equal(t, ae.Totals{Steps: 3, ToolCalls: 5}, agent.Totals.V)
	require.Equal(t, 2, agent.ToolFailures)
	require.Equal(t, 3, agent.ModelCalls)
	require.EqualValues(t, 30, s.Usage.Usage.InputTokens)
	require.Empty(t, s.Violations)
	require.Zero(t, s.Refused)
}

// Two tools of one step ask a person each. The answers come from elsewhere, by the id of the
// run, and the agent is blocked until it has both.
func TestAnAgentIsBlockedUntilAllItsQuestionsAreAnswered(t *testing.T) {
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
	run, err := em.Run("r")
	require.NoError(t, err)
	ctx, a := t.Context(), run.Agent("main")
	require.NoError(t, a.Emit(ctx, &ae.AgentStarted{}))

	answers := map[string]chan struct{}{"p": make(chan struct{}), "q": make(chan struct{})}
	var asked, all sync.WaitGroup
	asked.Add(2)
	for call, ask := range map[string]ae.Payload{"c1": &ae.ApprovalRequested{ApprovalID: "p", CallID: "c1"}, "c2": &ae.ClarificationRequested{InterruptID: "q", CallID: "c2"}} {
		answer := answers[map[string]string{"c1": "p", "c2": "q"}[call]]
		all.Go(func() {
			_, err := a.Do(ctx, &ae.ToolCalled{CallID: call, ToolID: "t"}, func(ctx context.Context) (ae.JSON, error) {
				err := ae.AgentFromContext(ctx).Emit(ctx, ask)
				asked.Done()
				<-answer
				return "true", err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	asked.Wait()
	status := func(want ae.AgentStatus) {
		t.Helper()
		got, known := a.Status()
		require.True(t, known)
		require.Equal(t, want, got)
	}
	status(ae.StatusBlockedOnClarification)
	handler, ok := em.Lookup("r")
	require.True(t, ok)
	require.Equal(t, []ae.OpenQuestion{{Kind: ae.KindApprovalRequested, ID: "p", AgentID: "main"}, {Kind: ae.KindClarificationRequested, ID: "q", AgentID: "main"}}, handler.State().Questions)
	require.NoError(t, handler.Emit(ctx, &ae.ApprovalGranted{ApprovalID: "p", ApprovedBy: "ada"}))
	status(ae.StatusBlockedOnClarification)
	close(answers["p"])
	require.NoError(t, handler.Emit(ctx, &ae.ClarificationResolved{InterruptID: "q"}))
	close(answers["q"])
	all.Wait()
	status(ae.StatusToolResult)
	require.Empty(t, a.OpenCalls())
	require.Len(t, rec.Filter(isTransition).Find(t, "main agent.transition blocked-on-clarification"), 2, "it was blocked once: into it and out of it")
}

// Whoever hands over without an end works on when it gets the work back: a start would be
// another attempt.
func TestHandedOverAndBack(t *testing.T) {
	var refused []*ae.RuleError
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, OnViolation: func(err *ae.RuleError) { refused = append(refused, err) }})
	run, err := em.Run("r")
	require.NoError(t, err)
	ctx := t.Context()
	a, b := run.Agent("a"), run.Agent("b")
	ref := func(id string) ae.AgentRef { return ae.AgentRef{AgentID: id} }
	require.NoError(t, a.Emit(ctx, &ae.AgentStarted{}))
	require.NoError(t, a.Emit(ctx, &ae.AgentHandoff{From: ref("a"), To: ref("b")}))
	require.NoError(t, b.Emit(ctx, &ae.AgentStarted{}))
	require.NoError(t, b.Emit(ctx, &ae.TextCompleted{Text: "my part is done"}))
	require.NoError(t, b.Emit(ctx, &ae.AgentHandoff{From: ref("b"), To: ref("a")}))
	require.NoError(t, b.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged}))
	err = a.Emit(ctx, &ae.AgentStarted{})
	require.ErrorContains(t, err, `a running agent does not start again; legal: after agent.ended, after run.resumed, or with resumed set; agent "a" is running (thinking)`)
	require.Len(t, refused, 1)
	require.NoError(t, a.Emit(ctx, &ae.TextCompleted{Text: "then all is"}))
	require.NoError(t, a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged}))

	rec.Filter(func(ev ae.Event) bool { return ev.AgentID == "a" }).WantExactly(t,
		"a agent.started", "a agent.handoff", "a agent.transition thinking response", "a agent.text", "a agent.transition response converged", "a agent.ended converged")
	s := rec.Snapshot("r")
	require.Equal(t, 1, s.Agents["a"].Attempts)
	require.Equal(t, 1, s.Agents["a"].Refused)
	require.Len(t, s.Handoffs, 2)
	require.Zero(t, s.ViolationCount)
}

// A chat's next turn is not a new attempt of an agent that has not ended: it thinks again. An agent
// that ends with each turn starts with each.
func TestTurnsOfAChat(t *testing.T) {
	for _, ends := range []bool{false, true} {
		em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
		run, err := em.Run("r")
		require.NoError(t, err)
		ctx, a := t.Context(), run.Agent("a")
		emit := func(p ae.Payload) { require.NoError(t, a.Emit(ctx, p)) }
		for turn := range 3 {
			if ends || turn == 0 {
				emit(&ae.AgentStarted{})
			}
			emit(&ae.TurnStarted{Turn: ae.Some(turn)})
			emit(&ae.ModelReturned{ModelCallID: fmt.Sprint(turn), OneEvent: true})
			emit(&ae.TextCompleted{Text: "x"})
			if !ends {
				require.NoError(t, a.To(ctx, ae.StatusConverged))
			}
			emit(&ae.TurnEnded{Turn: ae.Some(turn)})
			if ends {
				emit(&ae.AgentEnded{Outcome: ae.OutcomeConverged})
			}
		}
		s := rec.Snapshot("r")
		require.Equal(t, map[bool]int{false: 1, true: 3}[ends], s.Agents["a"].Attempts)
		require.Equal(t, ae.Some(2), s.Agents["a"].Step, "steps go on")
		require.Len(t, s.Turns, 3)
		require.Zero(t, s.ViolationCount)
	}
}

// The error of an agent comes before its end, which carries the failure; no status is set.
func TestAnAgentThatFails(t *testing.T) {
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
	run, err := em.Run("r")
	require.NoError(t, err)
	a := run.Agent("a")
	for _, p := range []ae.Payload{
		&ae.AgentStarted{}, &ae.AgentErrored{ErrorType: "overloaded", Message: "529"}, &ae.AgentEnded{Error: ae.Some(ae.ErrorInfo{Code: "overloaded"})},
	} {
		require.NoError(t, a.Emit(t.Context(), p))
	}
	rec.WantExactly(t, "a agent.started", "a agent.error overloaded", "a agent.transition thinking failed [synthetic]", "a agent.ended")
	require.Equal(t, ae.RunStatusFailed, rec.Snapshot("r").Status)
}

// A log names its table, so readers need no option for it: a fold, a resume.
func TestALogNamesItsTable(t *testing.T) {
	ctx := t.Context()
	for table, path := range map[ae.Lifecycle][]ae.AgentStatus{
		"":                  {ae.StatusReflect, ae.StatusToolCall},
		ae.LifecycleStrict:  {ae.StatusToolCall, ae.StatusToolResult},
		ae.LifecycleRelaxed: {ae.StatusResponse, ae.StatusThinking},
		ae.LifecycleDerived: {ae.StatusReflect, ae.StatusToolCall},
	} {
		for _, start := range []ae.Payload{&ae.RunStarted{}, &ae.AgentStarted{}} { // either one is the first
			var log bytes.Buffer
			em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: table, Sinks: []ae.Sink{ae.NewWriter(&log, ae.WriterOptions{})}})
			require.NoError(t, err)
			run, err := em.Run("r")
			require.NoError(t, err)
			a := run.Agent("a")
			if _, ok := start.(*ae.RunStarted); ok {
				require.NoError(t, run.Emit(ctx, start))
			}
			require.NoError(t, a.Emit(ctx, &ae.AgentStarted{}))
			require.NoError(t, a.To(ctx, path...))
			require.NoError(t, run.Close())
			named := bytes.Contains(log.Bytes(), []byte(`"lifecycle":`))
			require.Equal(t, table != ae.LifecycleStrict, named)
			s := foldedLog(t, &log)
			require.Empty(t, s.Violations)

			// An emitter goes on by the log's table, whatever its own.
			other, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleStrict})
			require.NoError(t, err)
			again, err := other.Resume(s)
			require.NoError(t, err)
			want := ae.LifecycleStrict // its own: the log names none
			if named {
				want = cmp.Or(table, ae.LifecycleDerived)
			}
			err = again.Agent("a").To(ctx, ae.StatusConverged)
			if at := path[len(path)-1]; !want.Allows(at, ae.StatusConverged) {
				require.ErrorContains(t, err, fmt.Sprintf("%s → converged is not in the %s table", at, want))
			} else {
				require.NoError(t, err)
			}
		}
	}
}

// Under LifecycleDerived no reader finds a violation in the events before a start has named the
// table, as in a run that was begun under another one.
func TestDerivedHoldsOnceAStartHasNamedIt(t *testing.T) {
	ctx := t.Context()
	var log bytes.Buffer
	file := ae.NewWriter(&log, ae.WriterOptions{})
	before, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleStrict, Sinks: []ae.Sink{file}})
	require.NoError(t, err)
	run, err := before.Run("r")
	require.NoError(t, err)
	require.NoError(t, run.Agent("a").Emit(ctx, &ae.AgentStarted{}))
	require.NoError(t, run.Close())

	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{file}})
	require.NoError(t, err)
	resumed, err := em.Resume(foldedLog(t, &log))
	require.NoError(t, err)
	a := resumed.Agent("a")
	status := func(want ae.AgentStatus) {
		t.Helper()
		got, _ := a.Status()
		require.Equal(t, want, got)
	}
	oneEvent := func(id string) *ae.ToolReturned {
		return &ae.ToolReturned{CallID: id, ToolID: "t", Status: ae.ToolStatusOK, OneEvent: true}
	}
	require.NoError(t, a.Emit(ctx, oneEvent("1")))
	status(ae.StatusThinking)
	require.ErrorContains(t, a.To(ctx, ae.StatusReflect), "is not in the relaxed table")
	require.NoError(t, a.Emit(ctx, &ae.ToolCalled{CallID: "2", ToolID: "t"}))
	status(ae.StatusToolCall)
	require.NoError(t, resumed.Emit(ctx, &ae.RunResumed{}))
	require.NoError(t, a.Emit(ctx, &ae.AgentStarted{Resumed: true}))
	require.NoError(t, a.Emit(ctx, oneEvent("3")))
	status(ae.StatusToolResult)
	require.NoError(t, a.To(ctx, ae.StatusReflect))
	s := foldedLog(t, &log)
	require.Empty(t, s.Violations)
	require.Equal(t, ae.LifecycleDerived, s.Lifecycle)
}

// Errors name the run, the event, and the legal alternatives.
func TestErrorsOfRuntimesNameLegalValues(t *testing.T) {
	ctx := t.Context()
	em, err := ae.NewEmitter(ae.EmitterOptions{})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	a := run.Agent("a")
	require.NoError(t, a.Emit(ctx, &ae.AgentStarted{}))
	require.ErrorContains(t, a.Emit(ctx, &ae.AgentEnded{Outcome: "failed"}), `/payload/outcome: "failed" is not one of: converged, partial, escaped, aborted`)
	require.ErrorContains(t, a.Emit(ctx, &ae.TextDelta{BlockID: "b", Index: ae.Some(3)}), `index 3 is out of order; legal: 0; text block "b" is waiting for index 0`)

	// A run that has ended is released, and no resume makes it go on.
	require.NoError(t, run.Emit(ctx, &ae.RunCompleted{}))
	_, err = em.Run("r")
	require.ErrorIs(t, err, ae.ErrRunReleased)
	require.ErrorContains(t, err, `continue a closed run with Emitter.Resume; an ended run takes only events that may follow its end (run "r")`)
	again, err := em.Resume(&ae.RunSnapshot{RunState: ae.RunState{RunID: "r", NextSequence: 2, TerminalKind: ae.KindRunCompleted}})
	require.NoError(t, err)
	require.ErrorContains(t, again.Emit(ctx, &ae.RunResumed{}), `only session events, audits, usage and late events may follow; run "r" is ended by run.completed`)
	require.NoError(t, again.Emit(ctx, &ae.SessionCompleted{}))

	// The error of an event that comes too late names it.
	err = a.Emit(ctx, &ae.UsageObserved{})
	require.ErrorIs(t, err, ae.ErrClosed)
	require.EqualError(t, err, `agentevents: closed: usage.observed of run "r" was not recorded, the run is closed`)
	require.NoError(t, em.Close(ctx))
	err = again.Emit(ctx, &ae.AuditChecked{})
	require.ErrorIs(t, err, ae.ErrClosed)
	require.EqualError(t, err, `agentevents: closed: audit.checked of run "r" was not recorded, the emitter is closed`)
	_, err = em.Run("s")
	require.ErrorIs(t, err, ae.ErrClosed)
	require.EqualError(t, err, `agentevents: closed: the emitter opens no run (run "s")`)
	_, err = em.Resume(&ae.RunSnapshot{RunState: ae.RunState{RunID: "s"}})
	require.ErrorIs(t, err, ae.ErrClosed)
	require.ErrorContains(t, err, `(run "s")`)
}

func TestModesHaveNames(t *testing.T) {
	require.Equal(t, "enforce observe Mode(7)", fmt.Sprint(ae.ModeEnforce, ae.ModeObserve, ae.Mode(7)))
}
