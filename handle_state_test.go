package agentevents

import (
	"context"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLookupOpensNothing(t *testing.T) {
	e, _ := startEmitter(t, EmitterOptions{MaxRuns: 2})
	for range 10 {
		_, ok := e.Lookup("nobody")
		require.False(t, ok)
	}
	ids := func() (ids []string) {
		for r := range e.Runs() {
			ids = append(ids, r.ID())
		}
		return ids
	}
	require.Empty(t, ids())
	for _, id := range []string{"b", "a"} { // Lookup has taken no place
		_, err := e.Run(id)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"a", "b"}, ids())
	r, ok := e.Lookup("b")
	require.True(t, ok)
	for r := range e.Runs() { // a loop may end and open runs
		require.NoError(t, r.Close())
		_, ok := e.Lookup(r.ID())
		require.False(t, ok)
		break
	}
	require.Equal(t, []string{"b"}, ids())
	require.NoError(t, r.Emit(t.Context(), &RunCompleted{}))
	_, ok = e.Lookup("b")
	require.False(t, ok, "it is released")
	require.Equal(t, RunStatusCompleted, r.State().Status, "its handles still answer")

	var zero Emitter
	_, ok = zero.Lookup("a")
	require.False(t, ok)
	for range zero.Runs() {
		t.Fatal("a run of nothing")
	}
}

func TestStateFollowsTheRun(t *testing.T) {
	ctx := t.Context()
	r, _ := startRun(t, EmitterOptions{Lifecycle: LifecycleRelaxed})
	a := r.Agent("a")
	status := func(want RunStatus) {
		t.Helper()
		require.Equal(t, want, r.State().Status)
	}
	require.Equal(t, RunView{RunID: "r", Status: RunStatusPending}, r.State())
	_, known := a.Status()
	require.False(t, known)

	require.NoError(t, r.With(Scope{SessionID: "s"}).Emit(ctx, &RunStarted{}))
	status(RunStatusRunning)
	require.NoError(t, r.Agent("b").Emit(ctx, &AgentStarted{}))
	require.NoError(t, a.Emit(ctx, &AgentStarted{}))
	require.NoError(t, a.To(ctx, StatusToolCall))
	for _, id := range []string{"c2", "c1", "c3"} {
		require.NoError(t, a.Emit(ctx, &ToolCalled{CallID: id, ToolID: "t"}))
	}
	require.NoError(t, a.Emit(ctx, &ToolReturned{CallID: "c1", ToolID: "t", Status: ToolStatusOK}))
	for _, id := range []string{"p2", "p1"} {
		require.NoError(t, a.Emit(ctx, &ApprovalRequested{ApprovalID: id}))
	}
	require.Equal(t, RunView{
		RunID: "r", SessionID: "s", Status: RunStatusRunning, NextSequence: 10,
		Agents: []AgentView{
			{AgentID: "b", Status: StatusThinking, Attempt: 1, Open: true},
			{AgentID: "a", Status: StatusToolCall, Step: Some(0), Attempt: 1, Open: true, OpenCalls: []string{"c2", "c3"}},
		},
		Questions: []OpenQuestion{{KindApprovalRequested, "p1", "a"}, {KindApprovalRequested, "p2", "a"}},
	}, r.State())
	got, known := a.Status()
	require.True(t, known)
	require.Equal(t, StatusToolCall, got)
	require.Equal(t, []string{"c2", "c3"}, a.OpenCalls())
	require.Empty(t, r.Agent("b").OpenCalls())
	require.True(t, a.Open())
	require.False(t, r.Agent("nobody").Open())

	require.Empty(t, a.OpenModelCalls())
	for _, id := range []string{"m2", "m1", "m3"} {
		require.NoError(t, a.Emit(ctx, &ModelCalled{ModelCallID: id}))
	}
	require.NoError(t, a.OpenModelCall("m1").Return(ctx, nil))
	require.Equal(t, []string{"m2", "m3"}, a.OpenModelCalls())
	require.Equal(t, []string{"m2", "m3"}, r.State().Agents[1].OpenModelCalls)
	require.Empty(t, r.Agent("b").OpenModelCalls())

	require.NoError(t, r.Emit(ctx, &ApprovalGranted{ApprovalID: "p1"}))
	require.Equal(t, []OpenQuestion{{KindApprovalRequested, "p2", "a"}}, r.State().Questions)
	require.NoError(t, r.Emit(ctx, &RunPaused{}))
	status(RunStatusPaused)
	require.NoError(t, r.Emit(ctx, &RunResumed{}))
	status(RunStatusRunning)
	require.NoError(t, r.Emit(ctx, &CommandReceived{Command: Command{Type: CommandAbort, Resumable: Some(true)}}))
	status(RunStatusPaused)
	require.NoError(t, r.Emit(ctx, &RunResumed{}))
	require.NoError(t, r.Emit(ctx, &CommandReceived{Command: Command{Type: CommandAbort}}))
	status(RunStatusCancelling)
	require.NoError(t, r.Emit(ctx, &CommandReceived{Command: Command{Type: CommandResume}}))
	status(RunStatusRunning)
	require.NoError(t, a.Emit(ctx, &AgentEnded{Outcome: OutcomeAborted}))
	require.True(t, r.State().Agents[1].Ended)
	require.NoError(t, r.Emit(ctx, &RunFailed{}))
	status(RunStatusFailed)

	require.Zero(t, (*Run)(nil).State())
	_, known = (*Agent)(nil).Status()
	require.False(t, known)
	require.Empty(t, (&Agent{}).OpenCalls())
	require.Empty(t, (&Agent{}).OpenModelCalls())
	require.False(t, (*Agent)(nil).Open())
}

// The status of runs without run events follows their agents, also after a resume.
func TestStateOfARunWithoutRunEvents(t *testing.T) {
	ctx := t.Context()
	for _, test := range []struct {
		end  *AgentEnded
		want RunStatus
	}{
		{&AgentEnded{Outcome: OutcomeConverged}, RunStatusCompleted},
		{&AgentEnded{Outcome: OutcomeAborted}, RunStatusFailed},
		{&AgentEnded{Error: Some(ErrorInfo{Message: "x"})}, RunStatusFailed},
	} {
		r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleRelaxed})
		a := r.Agent("a")
		require.NoError(t, a.Emit(ctx, &AgentStarted{}))
		require.Equal(t, RunStatusRunning, r.State().Status)
		require.NoError(t, a.To(ctx, StatusBlockedOnClarification))
		require.NoError(t, r.Emit(ctx, &ApprovalRequested{ApprovalID: "p"}))
		require.Equal(t, RunStatusWaiting, r.State().Status)
		require.NoError(t, r.Emit(ctx, &ApprovalGranted{ApprovalID: "p"}))
		require.NoError(t, a.To(ctx, StatusThinking))
		recordOf(t, a, test.end)
		require.Equal(t, test.want, r.State().Status)

		fold := NewFold(FoldOptions{Lifecycle: LifecycleRelaxed})
		for _, ev := range log.events {
			fold.Apply(ev)
		}
		require.NoError(t, r.Close())
		again, err := r.s.e.Resume(fold.Snapshot())
		require.NoError(t, err)
		require.Equal(t, r.State(), again.State())
	}
}

// A question is answered at once while a sink of the run hangs, inside sinks and hooks, and there
// it has the state after or before the event.
func TestQuestionsWaitForNoSink(t *testing.T) {
	var r *Run
	var told, guarded []AgentStatus
	note := func(to *[]AgentStatus) {
		status, _ := r.Agent("a").Status()
		*to = append(*to, status)
		for range r.s.e.Runs() {
		}
	}
	hold, hangs := make(chan struct{}), make(chan struct{})
	r, _ = startRun(t, EmitterOptions{
		Guard: func(Event) *RuleError { note(&guarded); return nil },
		Sinks: []Sink{SinkFunc(func(_ context.Context, ev Event) error {
			note(&told)
			if ev.Kind() == KindRunPaused {
				close(hangs)
				<-hold
			}
			return nil
		})},
	})
	within(t, "Emit", func() {
		require.NoError(t, r.Agent("a").Emit(t.Context(), &AgentStarted{}))
		require.NoError(t, r.Agent("a").To(t.Context(), StatusToolCall))
	})
	require.Equal(t, []AgentStatus{"", StatusThinking}, guarded)
	require.Equal(t, []AgentStatus{StatusThinking, StatusToolCall}, told)

	var wg sync.WaitGroup
	wg.Go(func() { _ = r.Emit(context.Background(), &RunPaused{}) })
	<-hangs
	within(t, "questions", func() {
		other, ok := r.s.e.Lookup("r")
		require.True(t, ok)
		require.Equal(t, RunStatusPaused, other.State().Status)
		require.Empty(t, other.Agent("a").OpenCalls())
	})
	close(hold)
	wg.Wait()
}

func TestConcurrentSafeQuestions(t *testing.T) {
	ctx := context.Background()
	r, _ := startRun(t, EmitterOptions{Lifecycle: LifecycleRelaxed})
	a := r.Agent("a")
	require.NoError(t, a.Emit(ctx, &AgentStarted{}))
	require.NoError(t, a.To(ctx, StatusToolCall))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				require.True(t, slices.IsSorted(a.OpenCalls()))
				require.Len(t, r.State().Agents, 1)
				a.Status()
				r.Agent("new")
			}
		})
	}
	for round := range 20 {
		for i := range 40 { // more than a list without an index has
			require.NoError(t, a.Emit(ctx, &ToolCalled{CallID: strconv.Itoa(1000*round + 100 + i), ToolID: "t"}))
		}
		require.NoError(t, r.With(Scope{SessionID: "s"}).Emit(ctx, &ApprovalRequested{ApprovalID: "p"}))
		for i := range 40 {
			require.NoError(t, a.Emit(ctx, &ToolReturned{CallID: strconv.Itoa(1000*round + 100 + i), ToolID: "t", Status: ToolStatusOK}))
		}
	}
	close(done)
	wg.Wait()
}

func TestARunHasOneSession(t *testing.T) {
	ctx := t.Context()
	e, log := startEmitter(t, EmitterOptions{Lifecycle: LifecycleStrict})
	early, err := e.Run("r")
	require.NoError(t, err)
	require.NoError(t, early.Emit(ctx, &TextDelta{}))
	require.Error(t, early.With(Scope{SessionID: "refused"}).Emit(ctx, &ApprovalGranted{ApprovalID: "x"}))
	mine := early.With(Scope{SessionID: "s", TaskID: "mine"})
	require.NoError(t, early.With(Scope{SessionID: "dropped"}).Emit(ctx, &TextDelta{}))
	require.NoError(t, mine.Emit(ctx, &RunPaused{}))
	late, ok := e.Lookup("r")
	require.True(t, ok)
	for _, r := range []*Run{early, late, mine.With(Scope{SessionID: "other"}), late} {
		require.NoError(t, r.Emit(ctx, &TextDelta{}))
		require.NoError(t, r.Agent("core.system").Emit(ctx, &TextDelta{}))
		_, err := r.Record(ctx, Event{Payload: &TextDelta{}})
		require.NoError(t, err)
	}
	_, err = late.Record(ctx, Event{Scope: Scope{SessionID: "explicit"}, Payload: &TextDelta{}})
	require.NoError(t, err)
	var sessions, tasks []string
	for i, ev := range log.events {
		sessions, tasks = append(sessions, ev.SessionID), append(tasks, ev.TaskID)
		line, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		require.Equal(t, string(line), log.lines[i])
	}
	require.Equal(t, []string{"", "dropped", "s", "s", "s", "s", "s", "s", "s", "other", "other", "other", "s", "s", "s", "explicit"}, sessions)
	require.Equal(t, []string{"", "", "mine", "", "", "", "", "", "", "mine", "mine", "mine", "", "", "", ""}, tasks, "the rest of a scope is the handle's")

	fold := NewFold(FoldOptions{})
	for _, ev := range log.events {
		fold.Apply(ev)
	}
	require.NoError(t, early.Close())
	again, err := e.Resume(fold.Snapshot())
	require.NoError(t, err)
	require.Equal(t, "s", again.State().SessionID)
	require.NoError(t, again.Emit(ctx, &TextDelta{}))
	require.Equal(t, "s", log.last(t).SessionID)
}

// A fold and its snapshot have one state after every event.
func TestStateOfAFoldIsThatOfItsSnapshot(t *testing.T) {
	for _, name := range []string{"testdata/agent.jsonl", "testdata/kinds.jsonl"} {
		file, err := os.Open(name)
		require.NoError(t, err)
		defer file.Close()
		folds := map[string]*Fold{}
		require.Equal(t, RunStatusPending, NewFold(FoldOptions{}).State().Status)
		for ev, err := range NewReader(file, ReaderOptions{}).All() {
			require.NoError(t, err)
			f := folds[ev.RunID]
			if f == nil {
				f = NewFold(FoldOptions{})
				folds[ev.RunID] = f
			}
			f.Apply(ev)
			v := f.State()
			s := f.Snapshot()
			require.Equal(t, s.Status, v.Status, ev.Sequence)
			require.Equal(t, s.NextSequence, v.NextSequence)
			require.Len(t, v.Agents, len(s.Agents))
			for _, a := range v.Agents {
				require.Equal(t, s.Agents[a.AgentID].Status, a.Status)
				require.Equal(t, s.Agents[a.AgentID].Open, a.Open)
			}
			require.Equal(t, s, f.Snapshot(), "asking changes nothing")
		}
	}
}
