package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/live"
)

// start returns a run whose events go to a page and to a file.
func start(t testing.TB, o live.Options) (*live.Feed, *ae.Run, *bytes.Buffer, *ae.Emitter) {
	t.Helper()
	o.Fold.Lifecycle = ae.LifecycleRelaxed
	page, file := live.New(o), &bytes.Buffer{}
	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleRelaxed, Sinks: []ae.Sink{ae.NewWriter(file, ae.WriterOptions{}), page}})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	return page, run, file, em
}

func emit(t testing.TB, r *ae.Run, payloads ...ae.Payload) {
	t.Helper()
	for _, p := range payloads {
		require.NoError(t, r.Emit(context.Background(), p))
	}
}

// deltas emits n deltas of an agent.
func deltas(t testing.TB, r *ae.Run, n int) {
	t.Helper()
	for i := range n {
		_, err := r.Agent("a").Record(context.Background(), ae.Event{Payload: &ae.TextDelta{Delta: fmt.Sprint(i, " ")}})
		require.NoError(t, err)
	}
}

func fold(t testing.TB, log string) *ae.RunSnapshot {
	t.Helper()
	l, err := ae.FoldLog(ae.NewReader(strings.NewReader(log), ae.ReaderOptions{}), ae.FoldOptions{Lifecycle: ae.LifecycleRelaxed})
	require.NoError(t, err)
	return l.Snapshot("r")
}

// read reads until the loop ends or n events have come.
func read(page *live.Feed, from uint64, n int) (lines []string, err error) {
	for ev, err := range page.Events(context.Background(), "r", from) {
		if err != nil {
			return lines, err
		}
		line, err := ev.AppendJSON(nil)
		if err != nil {
			return lines, err
		}
		if lines = append(lines, string(line)); len(lines) == n {
			break
		}
	}
	return lines, nil
}

func linesOf(log *bytes.Buffer) []string {
	return strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
}

// A snapshot equals the log's, byte for byte, at any time and after a resume.
func TestSnapshotIsThatOfTheLog(t *testing.T) {
	ctx := t.Context()
	page, run, file, em := start(t, live.Options{})
	require.Nil(t, page.Snapshot("nobody"))
	same := func() {
		t.Helper()
		require.Equal(t, string(fold(t, file.String()).AppendJSON(nil)), string(page.Snapshot("r").AppendJSON(nil)))
	}
	a := run.With(ae.Scope{SessionID: "s"}).Agent("a")
	require.NoError(t, a.Emit(ctx, &ae.AgentStarted{Task: "task"}))
	for i := range 50 {
		require.NoError(t, a.Emit(ctx, &ae.TextDelta{Delta: "x\u2028\n", BlockID: "b", Index: ae.Some(i)}))
		if i%7 == 0 {
			same()
		}
	}
	require.NoError(t, a.To(ctx, ae.StatusToolCall))
	_, err := a.Call(ctx, &ae.ToolCalled{ToolID: "tool", Arguments: "{ \"a\" :\n1.50}"})
	require.NoError(t, err)
	require.NoError(t, a.Emit(ctx, &ae.MessageCreated{Message: ae.ConversationMessage{Content: `"hi"`}}))
	same()
	page.Snapshot("r").Agents["a"].Task = "changed by its owner"
	same()

	snapshot := page.Snapshot("r")
	require.NoError(t, run.Close())
	run, err = em.Resume(snapshot)
	require.NoError(t, err)
	emit(t, run, &ae.RunResumed{})
	same()
	emit(t, run, &ae.RunCompleted{}, &ae.SessionCompleted{})
	same()
	require.Equal(t, []live.Run{{ID: "r", Oldest: 0, Next: page.Snapshot("r").NextSequence, Released: true}}, page.Runs())

	// Another process.
	again := live.New(live.Options{Fold: ae.FoldOptions{Lifecycle: ae.LifecycleRelaxed}})
	em, err = ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{ae.BestEffort(ae.SkipReplayed(ae.Buffered(again, 8, ae.OverflowBlock)))}})
	require.NoError(t, err)
	_, err = em.Resume(snapshot)
	require.NoError(t, err)
	require.NoError(t, em.Flush(ctx))
	require.Equal(t, string(snapshot.AppendJSON(nil)), string(again.Snapshot("r").AppendJSON(nil)))
}

// WriteEvent is for callers that have no line.
func TestWriteEvent(t *testing.T) {
	page, run, file, _ := start(t, live.Options{})
	deltas(t, run, 3)
	other := live.New(live.Options{Fold: ae.FoldOptions{Lifecycle: ae.LifecycleRelaxed}})
	for ev, err := range page.Events(t.Context(), "r", 0) {
		require.NoError(t, err)
		require.NoError(t, other.WriteEvent(t.Context(), ev))
		if ev.Sequence == 2 {
			break
		}
	}
	got, err := read(other, 0, 3)
	require.NoError(t, err)
	require.Equal(t, linesOf(file), got)
	require.Error(t, other.WriteEvent(t.Context(), ae.Event{RunID: "x"}))
	require.Nil(t, other.Snapshot("x"))
}

func TestReadersJoinAnywhereAndSeeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, run, file, _ := start(t, live.Options{})
		deltas(t, run, 10)
		var wg sync.WaitGroup
		got := make([][]string, 11)
		began := time.Now()
		for from := range got {
			wg.Go(func() {
				var err error
				got[from], err = read(page, uint64(from), -1)
				require.NoError(t, err)
				require.Equal(t, 3*time.Second, time.Since(began))
			})
		}
		synctest.Wait()
		emit(t, run, &ae.RunCompleted{})
		time.Sleep(time.Second)
		emit(t, run, &ae.SessionCompleted{}) // a second later: nobody misses it
		wg.Wait()
		for from := range got {
			require.Equal(t, linesOf(file)[from:], got[from])
		}
		got[0], _ = read(page, 0, -1)
		require.Equal(t, linesOf(file), got[0], "a run that is over is read at once")
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestLingerMayBeNothing(t *testing.T) {
	page, run, _, _ := start(t, live.Options{Linger: -1})
	emit(t, run, &ae.RunStarted{}, &ae.RunCompleted{})
	got, err := read(page, 0, -1)
	require.NoError(t, err)
	require.Len(t, got, 2)
}

func TestCloseEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, run, _, em := start(t, live.Options{})
		deltas(t, run, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			got, err := read(page, 0, -1)
			require.NoError(t, err)
			require.Len(t, got, 1)
		})
		synctest.Wait()
		began := time.Now()
		require.NoError(t, em.Close(t.Context()))
		wg.Wait()
		require.LessOrEqual(t, time.Since(began), time.Millisecond)
		require.NotNil(t, page.Snapshot("r"))
		require.ErrorIs(t, page.WriteEvent(t.Context(), ae.Event{ID: "1", RunID: "r", Payload: &ae.RunPaused{}}), ae.ErrClosed)
		require.ErrorIs(t, page.ResumeRun(t.Context(), &ae.RunSnapshot{}), ae.ErrClosed)
	})
}

func TestErrorsOfReaders(t *testing.T) {
	page, run, _, _ := start(t, live.Options{KeepBytes: 2000})
	_, err := read(page, 0, -1)
	require.ErrorIs(t, err, live.ErrUnknownRun)
	deltas(t, run, 100)
	var gap *live.GapError

	_, err = read(page, 3, -1)
	require.ErrorAs(t, err, &gap)
	oldest := gap.Oldest
	require.Equal(t, &live.GapError{RunID: "r", From: 3, Oldest: oldest, Next: 100}, gap)
	require.Equal(t, fmt.Sprintf(`agentevents/live: run "r": event 3 is not kept any more: the oldest one is %d`, oldest), err.Error())
	got, err := read(page, oldest, int(100-oldest))
	require.NoError(t, err)
	require.Less(t, len(strings.Join(got, "")), 2001)
	require.Greater(t, len(strings.Join(got, "")), 1500)
	_, err = read(page, oldest-1, -1)
	require.ErrorAs(t, err, &gap)

	_, err = read(page, 101, -1)
	require.ErrorAs(t, err, &gap)
	require.EqualError(t, err, `agentevents/live: run "r" has no event 101 yet: the next one is 100`)

	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	why := errors.New("why")
	for ev, err := range page.Events(ctx, "r", 99) {
		if ev.Payload == nil {
			require.ErrorIs(t, err, why)
			break
		}
		cancel(why)
	}
}

// A reader that is too slow is cut off and told, and nobody has waited for it.
func TestASlowReaderIsCutOff(t *testing.T) {
	page, run, _, _ := start(t, live.Options{KeepBytes: 2000})
	deltas(t, run, 1)
	var got []uint64
	var gap *live.GapError
	for ev, err := range page.Events(t.Context(), "r", 0) {
		if err != nil {
			require.ErrorAs(t, err, &gap)
			continue
		}
		got = append(got, ev.Sequence)
		deltas(t, run, 100)
	}
	require.Equal(t, []uint64{0}, got)
	require.EqualValues(t, 1, gap.From)
	require.EqualValues(t, 101, gap.Next)
}

// A reader that is busy with a snapshot, and be it for ever, does not hold up the
// emitter.
func TestTheEmitterDoesNotWaitForASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		page := live.New(live.Options{Fold: ae.FoldOptions{OnViolation: func(*ae.RuleError) { <-hold }}})
		em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleStrict, Mode: ae.ModeObserve, Sinks: []ae.Sink{page}})
		require.NoError(t, err)
		run, err := em.Run("r")
		require.NoError(t, err)
		emit(t, run, &ae.ApprovalGranted{ApprovalID: "nobody asked"})
		go page.Snapshot("r")
		synctest.Wait()
		deltas(t, run, 500)
		got, err := read(page, 0, 501)
		require.NoError(t, err)
		require.Len(t, got, 501, "and other readers go on")
		close(hold)
		synctest.Wait()
		require.EqualValues(t, 501, page.Snapshot("r").NextSequence)
	})
}

func TestAResumedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, run, file, em := start(t, live.Options{})
		deltas(t, run, 3)
		emit(t, run, &ae.RunPaused{})
		var wg sync.WaitGroup
		wg.Go(func() {
			got, err := read(page, 0, -1)
			require.NoError(t, err)
			require.Len(t, got, 6, "a reader goes on over a short pause")
		})
		require.NoError(t, run.Close())
		run, err := em.Resume(fold(t, file.String()))
		require.NoError(t, err)
		emit(t, run, &ae.RunResumed{})
		require.False(t, page.Runs()[0].Released)
		time.Sleep(time.Hour)
		emit(t, run, &ae.RunCompleted{})
		wg.Wait()

		// Another process has no events before the snapshot.
		again := live.New(live.Options{})
		require.NoError(t, again.ResumeRun(t.Context(), fold(t, file.String())))
		var gap *live.GapError
		_, err = read(again, 5, -1)
		require.ErrorAs(t, err, &gap)
		require.EqualValues(t, 6, gap.Oldest)
		// A snapshot that is not where the lines end begins the run anew.
		require.NoError(t, page.ResumeRun(t.Context(), &ae.RunSnapshot{RunState: ae.RunState{RunID: "r", NextSequence: 50}}))
		_, err = read(page, 6, -1)
		require.ErrorAs(t, err, &gap)
		require.EqualValues(t, 50, gap.Oldest)
		require.Error(t, page.ResumeRun(t.Context(), nil))
	})
}

func TestReleasedRunsAreForgotten(t *testing.T) {
	for keep, want := range map[int]int{0: 256, -1: 0, 3: 3} {
		page, _, _, em := start(t, live.Options{KeepRuns: keep, Linger: -1})
		var runs []*ae.Run
		for i := range 300 {
			run, err := em.Run(fmt.Sprintf("run-%03d", i))
			require.NoError(t, err)
			emit(t, run, &ae.RunStarted{}, &ae.RunCompleted{})
			runs = append(runs, run)
		}
		require.Len(t, page.Runs(), want)
		require.Equal(t, want > 0, page.Snapshot("run-299") != nil)
		require.Nil(t, page.Snapshot("run-000"))
		for _, run := range runs { // late events bring no run back for good
			emit(t, run, &ae.SessionCompleted{})
		}
		require.Len(t, page.Runs(), want)
	}
}

// The id of a run that was forgotten begins anew.
func TestARunThatBeginsAgain(t *testing.T) {
	page, run, _, _ := start(t, live.Options{Linger: -1})
	emit(t, run, &ae.RunStarted{Name: "first"}, &ae.RunCompleted{})
	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{page}})
	require.NoError(t, err)
	run, err = em.Run("r")
	require.NoError(t, err)
	emit(t, run, &ae.RunStarted{Name: "second"})
	require.Equal(t, "second", page.Snapshot("r").Name)
	require.Equal(t, []live.Run{{ID: "r", Next: 1}}, page.Runs())
	// A sequence that was there before is the fold's to report, and no line.
	require.NoError(t, page.WriteEvent(t.Context(), ae.Event{ID: "x", RunID: "r", Time: time.Now(), Payload: &ae.RunStarted{Name: "third"}}))
	require.Equal(t, 1, page.Snapshot("r").ViolationCount)
	require.Equal(t, []live.Run{{ID: "r", Next: 1}}, page.Runs())
}
