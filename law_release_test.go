package agentevents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A toldSink notes its calls in order.
type toldSink struct {
	mu    sync.Mutex
	calls []string
	fail  string // the call that fails, or panics with a !
	hold  chan struct{}
	on    func(ctx context.Context, call string)
}

func (s *toldSink) note(ctx context.Context, format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	s.calls = append(s.calls, call)
	s.mu.Unlock()
	if s.on != nil {
		s.on(ctx, call)
	}
	switch {
	case s.fail == call:
		return errors.New("fails")
	case s.fail == call+"!":
		panic("boom")
	}
	return nil
}

func (s *toldSink) WriteEvent(ctx context.Context, ev Event) error {
	return s.note(ctx, "%s %d", ev.Kind(), ev.Sequence)
}

func (s *toldSink) ResumeRun(ctx context.Context, snapshot *RunSnapshot) error {
	defer func() { snapshot.RunID = "the snapshot belongs to the sink" }()
	return s.note(ctx, "resume %s %d", snapshot.RunID, snapshot.NextSequence)
}

func (s *toldSink) ReleaseRun(ctx context.Context, runID string) error {
	return s.note(ctx, "release %s", runID)
}

func (s *toldSink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.calls, ", ")
}

func TestSinksAreToldOnceThatARunIsReleased(t *testing.T) {
	ctx := t.Context()
	for name, test := range map[string]struct {
		o    EmitterOptions
		do   func(e *Emitter, r *Run)
		want string
	}{
		"by its terminal event": {do: func(_ *Emitter, r *Run) {
			require.NoError(t, r.Emit(ctx, &RunCompleted{}))
			require.NoError(t, r.Emit(ctx, &SessionCompleted{}))
			require.NoError(t, r.Close())
		}, want: "run.completed 0, release r, session.completed 1"},
		"behind what follows the end at once": {
			o: EmitterOptions{Follow: func(ev Event) []Event { return []Event{{Payload: &SessionCompleted{}}} }},
			do: func(_ *Emitter, r *Run) {
				require.NoError(t, r.Emit(ctx, &RunFailed{}))
			}, want: "run.failed 0, session.completed 1, release r"},
		"by Run.Close, behind what was held back": {
			o: EmitterOptions{Redaction: &Policy{Secrets: secretsOf(t, "correct horse")}},
			do: func(_ *Emitter, r *Run) {
				require.NoError(t, r.Emit(ctx, &TextDelta{Delta: "correct ho"}))
				require.NoError(t, r.Close())
				require.NoError(t, r.Close())
			}, want: "agent.text.delta 0, agent.text.delta 1, release r"},
		"by Emitter.Close": {do: func(e *Emitter, r *Run) {
			require.NoError(t, r.Emit(ctx, &RunPaused{}))
			require.NoError(t, e.Close(ctx))
			require.NoError(t, e.Close(ctx))
			require.NoError(t, r.Close())
		}, want: "run.paused 0, release r"},
		"by a second end that is only reported": {o: EmitterOptions{Mode: ModeObserve}, do: func(_ *Emitter, r *Run) {
			require.NoError(t, r.Emit(ctx, &RunCompleted{}))
			require.NoError(t, r.Emit(ctx, &RunCompleted{}))
		}, want: "run.completed 0, release r, run.completed 1"},
		"and again after it was resumed": {do: func(e *Emitter, r *Run) {
			require.NoError(t, r.Emit(ctx, &RunPaused{}))
			require.NoError(t, r.Close())
			snapshot := &RunSnapshot{RunState: RunState{RunID: "r", NextSequence: 1}}
			again, err := e.Resume(snapshot)
			require.NoError(t, err)
			require.Equal(t, "r", snapshot.RunID)
			require.NoError(t, again.Emit(ctx, &RunCompleted{}))
		}, want: "run.paused 0, release r, resume r 1, run.completed 1, release r"},
	} {
		for wrapper, wrap := range map[string]func(Sink) Sink{
			"direct":       func(s Sink) Sink { return s },
			"BestEffort":   BestEffort,
			"SkipReplayed": SkipReplayed,
			"Buffered":     func(s Sink) Sink { return Buffered(s, 1, OverflowBlock) },
			"all of them": func(s Sink) Sink {
				return BestEffort(SkipReplayed(Buffered(BestEffort(SkipReplayed(s)), 8, OverflowBlock)))
			},
			"buffers twice": func(s Sink) Sink { return Buffered(Buffered(s, 8, OverflowBlock), 8, OverflowBlock) },
		} {
			told := &toldSink{}
			test.o.Sinks = []Sink{wrap(told)}
			r, _ := startRun(t, test.o)
			test.do(r.s.e, r)
			require.NoError(t, r.s.e.Close(ctx))
			require.Equal(t, test.want, told.String(), "%s: %s", name, wrapper)
		}
	}
}

func secretsOf(t *testing.T, secret string) *Secrets {
	var s Secrets
	require.NoError(t, s.Add(secret))
	return &s
}

// Run.Close waits for nothing: whoever is emitting tells the sinks.
func TestReleaseIsToldByTheGoroutineThatEmits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &toldSink{hold: make(chan struct{})}
		r, _ := startRun(t, EmitterOptions{Sinks: []Sink{told}})
		go func() { _ = r.Emit(context.Background(), &RunPaused{}) }()
		synctest.Wait()
		require.NoError(t, r.Close())
		close(told.hold)
		synctest.Wait()
		require.Equal(t, "run.paused 0, release r", told.String())
	})
}

// A run goes on when its old handle is done, so that no sink has two events of it at a time.
func TestARunGoesOnWhenItsOldHandleIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		told := &toldSink{}
		r, _ := startRun(t, EmitterOptions{Sinks: []Sink{told, SinkFunc(func(context.Context, Event) error { <-hold; return nil })}})
		go func() { _ = r.Emit(context.Background(), &RunPaused{}) }()
		synctest.Wait()
		require.NoError(t, r.Close())
		s := &RunSnapshot{RunState: RunState{RunID: "r", NextSequence: 1}}
		_, err := r.s.e.Resume(s)
		require.ErrorContains(t, err, "is still being recorded")
		close(hold)
		synctest.Wait()
		_, err = r.s.e.Resume(s)
		require.NoError(t, err)
		require.Equal(t, "run.paused 0, release r, resume r 1", told.String())
	})
}

func TestConcurrentSafeAResumedRunEmitsNothingBeforeTheSinksWereTold(t *testing.T) {
	var e *Emitter
	var wg sync.WaitGroup
	told := &toldSink{}
	told.on = func(_ context.Context, call string) {
		if call != "resume r 7" {
			return
		}
		r, ok := e.Lookup("r")
		require.True(t, ok)
		wg.Go(func() { require.NoError(t, r.Emit(context.Background(), &RunPaused{})) })
		for range 1000 {
			runtime.Gosched()
		}
		told.mu.Lock()
		defer told.mu.Unlock()
		told.calls = append(told.calls, "told")
	}
	e, _ = startEmitter(t, EmitterOptions{Sinks: []Sink{told}})
	_, err := e.Resume(&RunSnapshot{RunState: RunState{RunID: "r", NextSequence: 7}})
	require.NoError(t, err)
	wg.Wait()
	require.Equal(t, "resume r 7, told, run.paused 7", told.String())
}

func TestASinkThatFailsWhenItIsTold(t *testing.T) {
	ctx := t.Context()
	snapshot := &RunSnapshot{RunState: RunState{RunID: "r", NextSequence: 1}}
	var failed *SinkError
	for _, fail := range []string{"resume r 1", "resume r 1!"} {
		first, told := &toldSink{}, &toldSink{fail: fail}
		e, _ := startEmitter(t, EmitterOptions{Sinks: []Sink{first, told}})
		r, err := e.Resume(snapshot)
		require.Nil(t, r)
		require.ErrorAs(t, err, &failed)
		require.ErrorContains(t, err, `sink *agentevents.toldSink: ResumeRun of run "r": `)
		_, open := e.Lookup("r")
		require.False(t, open)
		require.Equal(t, "resume r 1, release r", first.String())
		told.fail = ""
		_, err = e.Resume(snapshot)
		require.NoError(t, err, "it may be tried again")

		var reports []error
		for _, wrapped := range []Sink{BestEffort(&toldSink{fail: fail}), BestEffort(&toldSink{fail: "release r"})} {
			e, _ = startEmitter(t, EmitterOptions{Sinks: []Sink{wrapped}, OnError: func(err error) { reports = append(reports, err) }})
			r, err = e.Resume(snapshot)
			require.NoError(t, err)
			require.NoError(t, r.Close())
		}
		require.Len(t, reports, 2)
		require.ErrorContains(t, reports[1], `ReleaseRun of run "r": fails`)

		b := Buffered(&toldSink{fail: fail}, 1, OverflowBlock)
		e, _ = startEmitter(t, EmitterOptions{Sinks: []Sink{b}})
		_, err = e.Resume(snapshot)
		require.NoError(t, err)
		require.ErrorAs(t, e.Flush(ctx), &failed)
		require.NoError(t, e.Close(ctx))
	}
	for _, fail := range []string{"release r", "release r!"} {
		r, _ := startRun(t, EmitterOptions{Sinks: []Sink{&toldSink{fail: fail}}})
		require.ErrorAs(t, r.Close(), &failed)
		r, _ = startRun(t, EmitterOptions{Sinks: []Sink{&toldSink{fail: fail}}})
		require.ErrorAs(t, r.Emit(ctx, &RunCompleted{}), &failed)
		require.Empty(t, failed.RunID, "no event failed")
	}
}

// A sink that is told may not wait for itself, and may make calls that do not wait.
func TestASinkThatIsToldMayCallBack(t *testing.T) {
	var e *Emitter
	var errs []error
	told := &toldSink{on: func(ctx context.Context, call string) {
		if r, ok := e.Lookup("r"); ok && call != "run.paused 1" {
			errs = append(errs, r.Emit(ctx, &TextDelta{}))
			r.State()
		}
	}}
	e, _ = startEmitter(t, EmitterOptions{Sinks: []Sink{told}})
	within(t, "Resume and Close", func() {
		r, err := e.Resume(&RunSnapshot{RunState: RunState{RunID: "r", NextSequence: 1}})
		require.NoError(t, err)
		require.NoError(t, r.Emit(t.Context(), &RunPaused{}))
		require.NoError(t, r.Close())
	})
	require.Len(t, errs, 2)
	for _, err := range errs {
		require.ErrorIs(t, err, ErrReentrant)
	}
}

func TestBufferedDropsNothingThatTheSinkIsTold(t *testing.T) {
	for policy, want := range map[Overflow]string{
		OverflowDropNewest: "run.paused 0, run.paused 1, run.completed 2, release r, release s",
		OverflowDropOldest: "run.paused 0, run.completed 2, release r, session.completed 3, release s",
	} {
		synctest.Test(t, func(t *testing.T) {
			told := &toldSink{hold: make(chan struct{})}
			b := Buffered(told, 2, policy)
			e, _ := startEmitter(t, EmitterOptions{Sinks: []Sink{BestEffort(b)}})
			r, err := e.Run("r")
			require.NoError(t, err)
			s, err := e.Run("s")
			require.NoError(t, err)
			require.NoError(t, r.Emit(t.Context(), &RunPaused{}))
			synctest.Wait() // it is under way
			for _, p := range []Payload{&RunPaused{}, &RunCompleted{}, &SessionCompleted{}} {
				require.NoError(t, r.Emit(t.Context(), p))
			}
			require.NoError(t, s.Close())
			close(told.hold)
			synctest.Wait()
			require.Equal(t, want, told.String())
			_ = e.Close(t.Context())
		})
	}
}

// everything is a sink that has all optional interfaces which events reach.
type everything struct {
	kinds, traced []Kind
	commits       int
	flushes       int
}

func (s *everything) WriteEvent(_ context.Context, ev Event) error {
	s.kinds = append(s.kinds, ev.Kind())
	return nil
}

func (s *everything) Trace(_ context.Context, ev Event) TraceContext {
	s.traced = append(s.traced, ev.Kind())
	return TraceContext{}
}
func (s *everything) Commit(context.Context) error { s.commits++; return nil }
func (s *everything) Flush(context.Context) error  { s.flushes++; return nil }

func TestWithoutDeltas(t *testing.T) {
	ctx := t.Context()
	var file, page bytes.Buffer
	all, behind := &everything{}, &everything{}
	b := Buffered(WithoutDeltas(SinkFunc(behind.WriteEvent)), 8, OverflowBlock)
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Sinks: []Sink{
		WithoutDeltas(NewWriter(&file, WriterOptions{BufferSize: 1 << 10})),
		BestEffort(WithoutDeltas(SkipReplayed(all))), b,
		NewWriter(&page, WriterOptions{}),
	}})
	a := r.Agent("a")
	require.NoError(t, a.Emit(ctx, &AgentStarted{}))
	for i, delta := range []string{"o", "ne"} {
		require.NoError(t, a.Emit(ctx, &TextDelta{BlockID: "b", Delta: delta, Index: Some(i)}))
	}
	require.NoError(t, a.Emit(ctx, &TextCompleted{BlockID: "b", Text: "one"}))
	require.NoError(t, a.Emit(ctx, &AgentEnded{}))
	require.NoError(t, r.s.e.Close(ctx))

	lasting := []Kind{KindAgentStarted, KindTextCompleted, KindAgentEnded}
	require.Equal(t, lasting, all.kinds)
	require.Equal(t, lasting, all.traced)
	require.Equal(t, lasting, behind.kinds)
	require.Equal(t, 3, all.commits)
	require.Equal(t, 1, all.flushes)
	require.Equal(t, strings.Join(log.lines, "\n")+"\n", page.String())
	require.Equal(t, log.lines[0]+"\n"+log.lines[3]+"\n"+log.lines[4]+"\n", file.String())
	var snapshots []string
	for _, text := range []string{file.String(), page.String()} {
		l, err := FoldLog(NewReader(strings.NewReader(text), ReaderOptions{}), FoldOptions{})
		require.NoError(t, err)
		snapshots = append(snapshots, string(l.Snapshot("r").AppendJSON(nil)))
	}
	require.Equal(t, snapshots[0], snapshots[1])

	direct := &everything{}
	for _, ev := range log.events {
		require.NoError(t, WithoutDeltas(direct).WriteEvent(ctx, ev))
	}
	require.Equal(t, lasting, direct.kinds)
}

// A commit covers the events that the sink got, also if a delta causes a lasting one.
func TestWithoutDeltasCommitsWhatFollowsADelta(t *testing.T) {
	all := &everything{}
	r, _ := startRun(t, EmitterOptions{
		Sinks: []Sink{WithoutDeltas(all)},
		Follow: func(ev Event) []Event {
			if p, ok := ev.Payload.(*TextDelta); ok && p.Delta == "!" {
				return []Event{{Payload: &RunPaused{}}}
			}
			return nil
		},
	})
	require.NoError(t, r.Emit(t.Context(), &TextDelta{Delta: "?"}))
	require.Zero(t, all.commits)
	require.NoError(t, r.Emit(t.Context(), &TextDelta{Delta: "!"}))
	require.Equal(t, 1, all.commits)
	require.Equal(t, []Kind{KindRunPaused}, all.kinds)
}

// A log of which nobody wants the deltas' lines does not encode them.
func TestWithoutDeltasEncodesNoDelta(t *testing.T) {
	r, err := NewEmitter(EmitterOptions{Sinks: []Sink{WithoutDeltas(NewWriter(&bytes.Buffer{}, WriterOptions{}))}})
	require.NoError(t, err)
	run, err := r.Run("r")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &TextDelta{Delta: "x"}))
	require.Empty(t, run.s.line)
	require.NoError(t, run.Emit(t.Context(), &RunPaused{}))
	require.NotEmpty(t, run.s.line)
}
