package agentevents

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGuardRefusesBeforeAnythingIsRecorded(t *testing.T) {
	asked := 0
	guard := func(ev Event) *RuleError {
		asked++
		switch p := ev.Payload.(type) {
		case *ToolCalled:
			if p.ToolID == "rm" {
				return &RuleError{Rule: "tool-allowed", Subject: "tool \"rm\"", Detail: "it is not on the list"}
			}
		case *AgentErrored:
			panic("guard")
		}
		return nil
	}
	r, log := startRun(t, EmitterOptions{Guard: guard})
	a := beginAgent(t, r, "a", StatusToolCall)
	err := a.Emit(t.Context(), &ToolCalled{CallID: "c", ToolID: "rm"})
	var v *RuleError
	require.ErrorAs(t, err, &v)
	require.Equal(t, &RuleError{
		Rule: "tool-allowed", Kind: KindToolCalled, RunID: r.ID(), AgentID: "a", Sequence: 2, Subject: "tool \"rm\"", Detail: "it is not on the list", Refused: true,
	}, v)
	var p *PanicError
	require.ErrorAs(t, a.Emit(t.Context(), &AgentErrored{ErrorType: "x", Message: "y"}), &p)
	require.Equal(t, "guard", p.Value)
	require.NoError(t, a.Emit(t.Context(), &ToolCalled{CallID: "c", ToolID: "ls"}))
	require.Len(t, log.lines, 3, "no refused event was recorded")

	asked = 0
	require.Error(t, a.Emit(t.Context(), &ToolCalled{CallID: "c", ToolID: "ls"}), "the call is open")
	require.Equal(t, 1, asked, "who refuses a call forbids the tool, too")
	asked = 0
	require.Error(t, a.Emit(t.Context(), &ToolReturned{CallID: "none", ToolID: "ls", Status: ToolStatusOK}))
	require.Zero(t, asked, "the library's rules come first")
}

func TestGuardIsOnlyToldOfInObserveMode(t *testing.T) {
	var told []*RuleError
	r, log := startRun(t, EmitterOptions{
		Mode: ModeObserve, OnViolation: func(v *RuleError) { told = append(told, v) },
		Guard: func(Event) *RuleError { return &RuleError{Rule: "no"} },
	})
	require.NoError(t, r.Emit(t.Context(), &RunStarted{}))
	require.Len(t, log.lines, 1)
	require.Len(t, told, 1)
	require.Equal(t, Rule("no"), told[0].Rule)
	require.Equal(t, log.last(t).ID, told[0].EventID)
}

func TestFollowRecordsAtOnceWithItsCause(t *testing.T) {
	asked := 0
	follow := func(ev Event) []Event {
		asked++
		if _, decided := ev.Payload.(*AgentDecided); !decided {
			return nil
		}
		return []Event{
			{AgentID: "boss", Payload: &OrchestratorDecided{Decision: `{"kind":"ask-user","prompt":"?"}`}},
			{AgentID: ev.AgentID, CausationID: "other", Payload: &CapBreached{Cap: "x"}},
		}
	}
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Follow: follow})
	a := r.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
	require.NoError(t, a.Emit(t.Context(), &AgentDecided{Decision: `1`, Confidence: Some(0.1)}))
	require.NoError(t, a.Emit(t.Context(), &TextDelta{Delta: "x"}))
	events := log.events
	require.Len(t, events, 5)
	for i, ev := range events {
		require.EqualValues(t, i, ev.Sequence)
	}
	require.Equal(t, KindOrchestratorDecided, events[2].Kind())
	require.Equal(t, events[1].ID, events[2].CausationID)
	require.Equal(t, "boss", events[2].AgentID)
	require.Equal(t, "other", events[3].CausationID)
	require.Equal(t, KindTextDelta, events[4].Kind())
	require.Equal(t, 3, asked, "an event of Follow is not followed")

	// A replay does not bring it about again.
	require.NoError(t, errOf(a.Record(t.Context(), Event{Marks: MarkReplayed, Payload: &AgentDecided{Decision: `1`}})))
	require.Equal(t, 3, asked)
}

func TestFollowFailuresDoNotUndoTheEvent(t *testing.T) {
	var reports []error
	broken := errors.New("broken")
	fail := false
	sink := SinkFunc(func(_ context.Context, ev Event) error {
		if _, cap := ev.Payload.(*CapBreached); cap && fail {
			return broken
		}
		return nil
	})
	var next []Event
	r, log := startRun(t, EmitterOptions{
		Sinks: []Sink{sink}, OnError: func(err error) { reports = append(reports, err) },
		Follow: func(ev Event) []Event {
			if next == nil {
				panic("follow")
			}
			return next
		},
	})
	require.NoError(t, r.Emit(t.Context(), &RunStarted{}))
	require.Len(t, reports, 1)
	var p *PanicError
	require.ErrorAs(t, reports[0], &p)

	next = []Event{{Payload: &RunStarted{}}, {AgentID: "a", Payload: &CapBreached{Cap: "x"}}}
	require.NoError(t, r.Emit(t.Context(), &RunPaused{}))
	require.Len(t, reports, 2)
	var v *RuleError
	require.ErrorAs(t, reports[1], &v)
	require.Equal(t, RuleRunOpen, v.Rule)
	require.Equal(t, KindCapBreached, kindOfLast(t, log), "the others are recorded")

	fail = true
	var se *SinkError
	require.ErrorAs(t, r.Emit(t.Context(), &RunPaused{}), &se)
	require.ErrorIs(t, se, broken)

	// A terminal event that follows releases the run.
	fail, next = false, []Event{{Payload: &RunCompleted{}}}
	require.NoError(t, r.Emit(t.Context(), &RunResumed{}))
	_, err := r.s.e.Run(r.ID())
	require.ErrorIs(t, err, ErrRunReleased)
}

func TestLiveSinksGetNoReplayedEvents(t *testing.T) {
	var got []Kind
	note := SinkFunc(func(_ context.Context, ev Event) error { got = append(got, ev.Kind()); return nil })
	buffered := Buffered(SkipReplayed(note), 4, OverflowBlock)
	for name, s := range map[string]Sink{"live": SkipReplayed(note), "best effort": BestEffort(SkipReplayed(note)), "inside": SkipReplayed(BestEffort(note)), "buffered": buffered} {
		t.Run(name, func(t *testing.T) {
			got = nil
			r, log := startRun(t, EmitterOptions{Sinks: []Sink{s}})
			require.NoError(t, errOf(r.Record(t.Context(), Event{Marks: MarkReplayed, Payload: &RunStarted{}})))
			require.NoError(t, r.Emit(t.Context(), &RunPaused{}))
			require.NoError(t, r.s.e.Flush(t.Context()))
			require.Equal(t, []Kind{KindRunPaused}, got)
			require.Len(t, log.lines, 2)
		})
	}
	require.NoError(t, buffered.Close())
	got = nil
	require.NoError(t, SkipReplayed(note).WriteEvent(t.Context(), Event{Marks: MarkReplayed, Payload: &RunStarted{}}))
	require.NoError(t, SkipReplayed(note).WriteEvent(t.Context(), Event{Payload: &RunStarted{}}))
	require.Len(t, got, 1)
}

func kindOfLast(t *testing.T, log *sinkLog) Kind {
	ev := log.last(t)
	return ev.Kind()
}

// TestEndsCountRefusedEvents: refused events have no line, so the ends have their number.
func TestEndsCountRefusedEvents(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Follow: func(ev Event) []Event {
		if ev.Kind() == KindTaskAssigned {
			return []Event{{AgentID: "b", Payload: &AgentTransition{To: StatusConverged}}}
		}
		return nil
	}})
	ctx := t.Context()
	a, b := r.Agent("a"), r.Agent("b")
	unopened := &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK}
	require.NoError(t, a.Emit(ctx, &AgentStarted{}))
	require.NoError(t, b.Emit(ctx, &AgentStarted{}))
	require.Error(t, a.Emit(ctx, unopened))
	require.Error(t, a.Emit(ctx, unopened))
	require.NoError(t, a.Emit(ctx, &TaskAssigned{Goal: "g"}), "a refused event of Follow is not returned")
	require.Error(t, r.Emit(ctx, &RunStarted{}), "the run is under way")
	require.NoError(t, a.Emit(ctx, &AgentEnded{}))
	require.NoError(t, a.Emit(ctx, &AgentStarted{}), "the count begins again")
	require.NoError(t, a.Emit(ctx, &AgentEnded{}))
	require.NoError(t, b.Emit(ctx, &AgentEnded{Refused: 7}), "a bridge knows better")
	require.NoError(t, r.Emit(ctx, &RunCompleted{}))

	s := log.snapshot(t)
	require.Equal(t, 2, s.Agents["a"].Refused)
	require.Equal(t, 7, s.Agents["b"].Refused)
	require.Equal(t, 4, s.Refused)
	require.Zero(t, s.ViolationCount)
}

// TestFollowInObserve: the events of Follow are recorded in both modes, and is marked when it
// breaks a rule.
func TestFollowInObserve(t *testing.T) {
	var told []*RuleError
	r, log := startRun(t, EmitterOptions{
		Mode:        ModeObserve,
		OnViolation: func(v *RuleError) { told = append(told, v) },
		Follow: func(ev Event) []Event {
			if ev.Kind() != KindTaskAssigned {
				return nil
			}
			return []Event{{Payload: &ApprovalGranted{ApprovalID: "x"}}, {Payload: &UsageObserved{}}}
		},
	})
	require.NoError(t, r.Emit(t.Context(), &TaskAssigned{Goal: "g"}))
	require.Equal(t, []Kind{KindTaskAssigned, KindApprovalGranted, KindUsageObserved}, log.kinds())
	require.Equal(t, MarkIllegal, log.events[1].Marks)
	require.Len(t, told, 1)
	require.Equal(t, RuleApprovalOpen, told[0].Rule)
	require.False(t, told[0].Refused)
}
