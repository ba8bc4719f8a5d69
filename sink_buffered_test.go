package agentevents

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/queue"
	"github.com/agentevents/agentevents/internal/turns"
)

// eventOf returns an event of agent a, or of the run if its kind is about the run.
func eventOf(n int, p Payload) Event {
	ev := Event{ID: strconv.Itoa(n), Sequence: uint64(n), Time: noon(), RunID: "r", AgentID: "a", Payload: p}
	if strings.HasPrefix(string(p.kind()), "run.") {
		ev.AgentID = ""
	}
	return ev
}

// requireStats checks that the counters of a buffer add up.
func requireStats(t testing.TB, s BufferedStats) {
	t.Helper()
	sum := s.Waiting + s.Written + s.Failed
	for _, n := range s.Dropped {
		sum += n
	}
	require.Equal(t, s.Queued, sum, "%+v", s)
}

// A buffer of two gets the events while the first one is under way.
func TestDropDeltasCutsBlocksUntilTheyEnd(t *testing.T) {
	delta := func(block string) Payload { return &TextDelta{BlockID: block, Delta: "x"} }
	whole := func(block string) Payload { return &TextCompleted{BlockID: block} }
	first := &RunStarted{}
	for name, c := range map[string]struct {
		events []Payload
		want   []int
	}{
		"one that does not fit":        {[]Payload{first, delta("1"), delta("1"), delta("1")}, []int{0, 1, 2}},
		"others wait for room":         {[]Payload{first, whole("1"), whole("2"), whole("3")}, []int{0, 1, 2, 3}},
		"deltas make room for others":  {[]Payload{first, delta("1"), delta("1"), whole("1"), whole("2")}, []int{0, 3, 4}},
		"what is told stays in order":  {[]Payload{first, delta("1"), whole("1"), delta("2"), &RunPaused{}, delta("2")}, []int{0, 2, 4}},
		"of the block only":            {[]Payload{first, whole("0"), delta("1"), whole("1"), whole("2"), delta("2")}, []int{0, 1, 3, 4}},
		"a block without an id":        {[]Payload{first, whole("0"), whole("0"), delta(""), delta("")}, []int{0, 1, 2}},
		"the whole of an argument":     {[]Payload{first, whole("0"), whole("0"), &ToolArgumentsDelta{CallID: "c"}, &ToolReturned{CallID: "c"}}, []int{0, 1, 2, 4}},
		"reasoning beside text":        {[]Payload{first, whole("0"), &AgentReasoningDelta{}, delta(""), &AgentReasoned{}}, []int{0, 1, 4}},
		"unknown kinds are never lost": {[]Payload{first, whole("0"), whole("0"), &Unknown{Type: "x"}}, []int{0, 1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				b := Buffered(g, 2, OverflowDropDeltas)
				for i, p := range c.events {
					require.NoError(t, b.put(t.Context(), eventOf(i, p)))
					synctest.Wait()
					requireStats(t, b.Stats())
				}
				s := b.Stats()
				require.EqualValues(t, len(c.want), s.Waiting)
				require.EqualValues(t, len(c.events)-len(c.want), b.Dropped())
				close(g.open)
				_ = b.Close()
				require.Equal(t, c.want, sequences(&g.sinkLog))
			})
		})
	}
}

// After a block was cut, each of these lets the deltas of its agent through again, or not.
func TestDropDeltasBlocksEndAsTheFoldHasIt(t *testing.T) {
	text := func(p TextDelta) Payload { return &p }
	for name, c := range map[string]struct {
		cut, then, delta Payload
		other            bool // then belongs to another agent
		want             bool
	}{
		"its whole":               {text(TextDelta{BlockID: "1"}), &TextCompleted{BlockID: "1"}, text(TextDelta{BlockID: "1"}), false, true},
		"another whole":           {text(TextDelta{BlockID: "1"}), &TextCompleted{BlockID: "2"}, text(TextDelta{BlockID: "1"}), false, false},
		"whole of another agent":  {text(TextDelta{BlockID: "1"}), &TextCompleted{BlockID: "1"}, text(TextDelta{BlockID: "1"}), true, false},
		"whole reasoning":         {text(TextDelta{BlockID: "1"}), &AgentReasoned{BlockID: "1"}, text(TextDelta{BlockID: "1"}), false, false},
		"another block":           {text(TextDelta{BlockID: "1"}), &RunPaused{}, text(TextDelta{BlockID: "2"}), false, true},
		"a call":                  {text(TextDelta{}), &ToolCalled{CallID: "c"}, text(TextDelta{}), false, true},
		"a call, with an id":      {text(TextDelta{BlockID: "1"}), &ToolCalled{CallID: "c"}, text(TextDelta{BlockID: "1"}), false, false},
		"a transition":            {text(TextDelta{}), &AgentTransition{To: StatusToolCall}, text(TextDelta{}), false, true},
		"a new block by its zero": {text(TextDelta{Index: Some(3)}), &RunPaused{}, text(TextDelta{Index: Some(0)}), false, true},
		"the end of the agent":    {text(TextDelta{BlockID: "1"}), &AgentEnded{}, text(TextDelta{BlockID: "1"}), false, true},
		"of another agent":        {text(TextDelta{BlockID: "1"}), &AgentEnded{}, text(TextDelta{BlockID: "1"}), true, false},
		"the end of the run":      {text(TextDelta{BlockID: "1"}), &RunCompleted{}, text(TextDelta{BlockID: "1"}), false, true},
		"a pause":                 {text(TextDelta{BlockID: "1"}), &RunPaused{}, text(TextDelta{BlockID: "1"}), false, false},
		"the return of the call":  {&ToolArgumentsDelta{CallID: "c"}, &ToolReturned{CallID: "c"}, &ToolArgumentsDelta{CallID: "c"}, false, true},
		"of another call":         {&ToolArgumentsDelta{CallID: "c"}, &ToolReturned{CallID: "d"}, &ToolArgumentsDelta{CallID: "c"}, false, false},
	} {
		var cuts cuts
		cut, then, delta := eventOf(0, c.cut), eventOf(1, c.then), eventOf(2, c.delta)
		if c.other {
			then.AgentID = "b"
		}
		require.False(t, cuts.cut(&cut, false), name)
		require.True(t, cuts.cut(&cut, true), name)
		require.True(t, cuts.cut(&cut, false), name)
		require.False(t, cuts.cut(&then, true), name)
		require.Equal(t, !c.want, cuts.cut(&delta, false), name)
	}
}

func TestDropDeltasTellsAgentsWithoutAnIDApart(t *testing.T) {
	var cuts cuts
	of := func(parent string, p Payload) *Event {
		return &Event{RunID: "r", ParentSpanID: parent, Payload: p}
	}
	require.True(t, cuts.cut(of("1", &TextDelta{}), true))
	require.False(t, cuts.cut(of("2", &TextDelta{}), false))
	require.False(t, cuts.cut(of("2", &TextCompleted{}), false))
	require.True(t, cuts.cut(of("1", &TextDelta{}), false))
	require.False(t, cuts.cut(&Event{RunID: "r", SpanID: "1", Payload: &AgentEnded{}}, false))
	require.False(t, cuts.cut(of("1", &TextDelta{}), false))
	require.Empty(t, cuts.runs)
}

func TestDropDeltasRemembersFewCutBlocks(t *testing.T) {
	var cuts cuts
	for i := range 3 * maxCuts {
		ev := eventOf(i, &TextDelta{BlockID: strconv.Itoa(i)})
		require.True(t, cuts.cut(&ev, true))
		require.LessOrEqual(t, len(cuts.runs["r"].blocks), maxCuts)
	}
	ev := eventOf(0, &TextDelta{BlockID: "new"})
	require.True(t, cuts.cut(&ev, false), "the run gets no more deltas")
	ev.RunID = "s"
	require.False(t, cuts.cut(&ev, false), "another one does")
	ev = eventOf(0, &RunCompleted{})
	require.False(t, cuts.cut(&ev, true))
	require.Empty(t, cuts.runs)
}

// The sink is a Releaser or not: the buffer forgets the run.
func TestDropDeltasForgetsReleasedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := Buffered(g, 1, OverflowDropDeltas)
		r, _ := startRun(t, EmitterOptions{Sinks: []Sink{b}})
		for range 4 {
			require.NoError(t, r.Emit(t.Context(), &TextDelta{BlockID: "1"}))
			synctest.Wait()
		}
		require.Len(t, b.cuts.runs, 1)
		require.NoError(t, r.Close())
		require.Empty(t, b.cuts.runs)
		close(g.open)
		require.ErrorIs(t, b.Close(), ErrDropped)
	})
}

func TestDropDeltasNeverMakesADeltaWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		b := Buffered(g, 1, OverflowDropDeltas)
		r, log := startRun(t, EmitterOptions{Sinks: []Sink{b}})
		require.NoError(t, r.Emit(t.Context(), &RunStarted{}))
		synctest.Wait()
		for range 5 {
			require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
		}
		require.NoError(t, r.Emit(t.Context(), &RunPaused{}), "it takes the place of deltas")
		waits := make(chan error, 1)
		go func() { waits <- r.Emit(context.Background(), &RunResumed{}) }()
		synctest.Wait()
		require.Empty(t, waits, "the buffer is full of events that cannot be dropped")
		require.NoError(t, r.Emit(t.Context(), &TextDelta{}), "a delta does not wait, nor for others")
		require.NoError(t, b.WriteEvent(t.Context(), eventOf(9, &TextDelta{})))
		require.Len(t, log.events, 9)
		g.open <- struct{}{}
		synctest.Wait()
		require.NoError(t, <-waits)
		close(g.open)
		err := b.Close()
		require.ErrorIs(t, err, ErrDropped)
		require.Equal(t, BufferedStats{Queued: 10, Written: 3, Dropped: map[Kind]uint64{KindTextDelta: 7}}, b.Stats())
		require.NoError(t, r.s.e.Close(t.Context()))
	})
}

// Whatever is dropped, the fold of the rest is the same and misses nothing: a hole in a
// block would break rule delta-index.
func TestDropDeltasLosesNothingThatTheFoldNeeds(t *testing.T) {
	dropped, kept := uint64(0), 0
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			g := newGate()
			b := Buffered(g, 1+rnd.IntN(6), OverflowDropDeltas)
			r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleRelaxed, Sinks: []Sink{b}})
			emit := func(a *Agent, p Payload) {
				go func() { require.NoError(t, errOf(a.Record(context.Background(), Event{Payload: p}))) }()
				synctest.Wait()
			}
			next := map[string]int{}
			end := func(agent, block string) {
				next[agent+block] = 0
				emit(r.Agent(agent), &TextCompleted{BlockID: block, Text: "whole"})
			}
			blocks := map[string]int{} // ids are used once
			for range 120 {
				agent := []string{"a", "b"}[rnd.IntN(2)]
				block := ""
				if rnd.IntN(2) == 0 {
					block = "block-" + strconv.Itoa(blocks[agent])
				}
				switch rnd.IntN(12) {
				case 0:
					if end(agent, block); block != "" {
						blocks[agent]++
					}
				case 1, 2, 3:
					select {
					case g.open <- struct{}{}:
					default:
					}
				case 4:
					emit(r.Agent(agent), &UsageObserved{})
				default:
					emit(r.Agent(agent), &TextDelta{BlockID: block, Index: Some(next[agent+block]), Delta: "x"})
					next[agent+block]++
				}
			}
			for _, agent := range []string{"a", "b"} {
				end(agent, "")
				end(agent, "block-"+strconv.Itoa(blocks[agent]))
			}
			close(g.open)
			emit(r.Agent(""), &RunCompleted{})
			_ = b.Close()
			dropped += b.Dropped()
			behind := &g.sinkLog
			for _, k := range behind.kinds() {
				if k == KindTextDelta {
					kept++
				}
			}
			require.EqualValues(t, len(log.events), uint64(len(behind.events))+b.Dropped())
			require.Empty(t, behind.snapshot(t).Violations, "seed %d", seed)
			want, got := log.snapshot(t), behind.snapshot(t)
			require.Equal(t, want, got, "seed %d", seed)
			requireStats(t, b.Stats())
		})
	}
	require.Greater(t, dropped, uint64(100))
	require.Greater(t, kept, 100)
}

func TestStatsCountEveryEventOnce(t *testing.T) {
	for _, policy := range []Overflow{OverflowBlock, OverflowDropNewest, OverflowDropOldest, OverflowDropDeltas} {
		synctest.Test(t, func(t *testing.T) {
			hold := make(chan struct{})
			b := Buffered(WithoutDeltas(SinkFunc(func(_ context.Context, ev Event) error {
				<-hold
				if ev.Sequence%3 == 0 {
					return errors.New("fails")
				}
				return nil
			})), 4, policy)
			for i := range 9 {
				ev := numbered(i)
				ev.Payload = &RunPaused{}
				switch i {
				case 7:
					ev.Payload = &TextDelta{}
				case 8:
					ev.Payload = &Unknown{Type: "host.event"}
				}
				require.NoError(t, b.put(t.Context(), ev))
				synctest.Wait()
				requireStats(t, b.Stats())
			}
			require.EqualValues(t, 8, b.Stats().Queued, "the sink gets no deltas")
			require.Positive(t, b.Stats().Waiting)
			close(hold)
			_ = b.Close()
			require.ErrorIs(t, b.WriteEvent(t.Context(), eventOf(9, &RunPaused{})), ErrClosed)
			want := BufferedStats{Queued: 8, Written: 3, Failed: 2, Dropped: map[Kind]uint64{KindRunPaused: 2, "": 1}}
			switch policy {
			case OverflowBlock, OverflowDropDeltas:
				want = BufferedStats{Queued: 8, Written: 5, Failed: 3}
			case OverflowDropOldest:
				want.Dropped = map[Kind]uint64{KindRunPaused: 3}
			}
			require.Equal(t, want, b.Stats())
		})
	}
	require.Zero(t, new(BufferedSink).Stats())
}

// busyError is an error that may be over soon.
type busyError struct{ temporary bool }

func (e busyError) Error() string   { return "busy" }
func (e busyError) Temporary() bool { return e.temporary }

// nilError panics when it is asked.
type nilError struct{ cause error }

func (e *nilError) Error() string { return "nil" }
func (e *nilError) Unwrap() error { return e.cause }

func TestTemporary(t *testing.T) {
	busy, broken := busyError{true}, busyError{}
	for err, want := range map[error]bool{
		errors.New("fails"):                         false,
		busy:                                        true,
		broken:                                      false,
		fmt.Errorf("write: %w", busy):               true,
		fmt.Errorf("%w: %w", broken, busy):          true,
		&SinkError{Err: busy}:                       true,
		errors.Join(errors.New("a"), broken):        false,
		context.DeadlineExceeded:                    true,
		fmt.Errorf("post: %w", (*nilError)(nil)):    false,
		&PanicError{Value: "not temporary, a text"}: false,
	} {
		require.Equal(t, want, queue.Temporary(err), "%v", err)
	}
	require.False(t, queue.Temporary(nil))
}

// A flaky sink fails for a time, and notes when it was tried.
type flaky struct {
	sinkLog
	err   error
	until func(tries int) bool // fails
	tries []time.Duration
	began time.Time
}

func (f *flaky) WriteLine(ctx context.Context, ev Event, line []byte) error {
	f.tries = append(f.tries, time.Since(f.began))
	if f.until(len(f.tries)) {
		return f.err
	}
	return f.sinkLog.WriteLine(ctx, ev, line)
}

func TestBufferedTriesAgainWhileAnErrorIsTemporary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{err: fmt.Errorf("post: %w", busyError{true}), until: func(tries int) bool { return tries <= 9 }, began: time.Now()}
		b := Buffered(f, 8, OverflowBlock)
		for i := range 3 {
			require.NoError(t, b.WriteEvent(t.Context(), numbered(i)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, b.Flush(ctx), "3 events are still waiting")
		require.Equal(t, time.Second, time.Since(f.began), "Flush keeps its deadline")
		requireStats(t, b.Stats())
		require.NoError(t, b.Flush(t.Context()))
		require.Equal(t, upTo(3), sequences(&f.sinkLog), "nothing overtakes")
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		require.Equal(t, []time.Duration{0, ms(10), ms(30), ms(70), ms(150), ms(310), ms(630), ms(1270), ms(2270), ms(3270)}, f.tries[:10])
		require.Len(t, f.tries, 12)
		require.Equal(t, BufferedStats{Queued: 3, Written: 3, Retried: 9}, b.Stats())
		require.NoError(t, b.Close())
	})
}

func TestBufferedGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		err       error
		tries     int
		fails     func(tries int) bool
		last      time.Duration
		wantAfter []int
	}{
		"after half a minute": {busyError{true}, 40, func(tries int) bool { return tries <= 39 }, 30 * time.Second, []int{3}},
		"at once":             {busyError{false}, 4, func(tries int) bool { return tries == 1 }, 0, []int{1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &flaky{err: c.err, until: c.fails, began: time.Now()}
				b := Buffered(f, 8, OverflowBlock)
				for i := range 4 {
					require.NoError(t, b.WriteEvent(t.Context(), numbered(i)))
				}
				err := b.Flush(t.Context())
				require.ErrorIs(t, err, c.err)
				require.ErrorContains(t, err, "sequence 0")
				require.Len(t, f.tries, c.tries)
				require.Equal(t, c.last, f.tries[c.tries-2])
				require.Equal(t, c.wantAfter, sequences(&f.sinkLog))
				n := uint64(len(c.wantAfter))
				require.Equal(t, BufferedStats{Queued: 4, Written: n, Failed: 4 - n, Retried: uint64(c.tries - 4)}, b.Stats(), "one try each after that")

				f.until = func(tries int) bool { return tries == c.tries+1 }
				require.NoError(t, b.WriteEvent(t.Context(), numbered(4)))
				if err := b.Close(); c.err.(busyError).temporary {
					require.NoError(t, err, "a pause is due again")
				}
			})
		})
	}
}

// One try is left to each event: Close does not wait for the queue.
func TestCloseDoesNotWaitUntilATemporaryErrorIsOver(t *testing.T) {
	for _, ofEmitter := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &flaky{err: busyError{true}, until: func(int) bool { return true }, began: time.Now()}
			b := Buffered(f, 8, OverflowBlock)
			r, _ := startRun(t, EmitterOptions{Sinks: []Sink{b}})
			for range 3 {
				require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
			}
			time.Sleep(200 * time.Millisecond)
			synctest.Wait()
			require.Len(t, f.tries, 5)
			var err error
			if ofEmitter {
				err = r.s.e.Close(t.Context())
			} else {
				err = b.Close()
			}
			require.ErrorIs(t, err, f.err)
			require.Equal(t, 200*time.Millisecond, time.Since(f.began))
			require.Len(t, f.tries, 10)
			require.Equal(t, BufferedStats{Queued: 3, Failed: 3, Retried: 7}, b.Stats())
		})
	}
}

// A slowCommitter notes how many events each commit makes durable.
type slowCommitter struct {
	gate
	commits []int // events so far
	let     chan error
	emits   func(context.Context) error
}

func newSlowCommitter() *slowCommitter {
	c := &slowCommitter{gate: *newGate(), let: make(chan error, 1000)}
	close(c.open)
	return c
}

func (c *slowCommitter) Commit(ctx context.Context) error {
	c.commits = append(c.commits, len(c.events))
	if c.emits != nil {
		return c.emits(ctx)
	}
	return <-c.let
}

func TestEmitWaitsForOneCommitOfABufferedSink(t *testing.T) {
	for _, policy := range []Overflow{OverflowBlock, OverflowDropDeltas} {
		synctest.Test(t, func(t *testing.T) {
			c := newSlowCommitter()
			b := Buffered(c, 100, policy)
			r, log := startRun(t, EmitterOptions{Sinks: []Sink{b}})
			broken := errors.New("fsync")
			results := make(chan error, 10)
			emit := func(n int) {
				for range n {
					go func() { results <- r.Emit(context.Background(), &RunPaused{}) }()
				}
				synctest.Wait()
			}
			emit(1)
			require.Equal(t, []int{1}, c.commits)
			emit(5)
			require.Equal(t, []int{1}, c.commits, "the next commit waits for the first one")
			require.Len(t, log.events, 6)
			c.let <- nil
			synctest.Wait()
			require.NoError(t, <-results)
			require.Empty(t, results)
			require.Equal(t, []int{1, 6}, c.commits, "five share one")
			emit(1)
			c.let <- broken
			synctest.Wait()
			for range 5 {
				require.ErrorIs(t, <-results, broken)
			}
			require.Empty(t, results, "the seventh was not of that commit")
			c.let <- nil
			require.NoError(t, <-results)
			require.ErrorIs(t, b.Flush(t.Context()), broken)
			require.NoError(t, b.Commit(t.Context()), "nothing waits")
			require.NoError(t, r.s.e.Close(t.Context()))
			require.Equal(t, []int{1, 6, 7}, c.commits)
			require.Empty(t, b.failures)
		})
	}
}

func TestEmitHasTheErrorOfItsEventFromABufferThatCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, broken := make(chan struct{}), errors.New("broken")
		s := committerSink{func(_ context.Context, ev Event) error {
			<-hold
			if ev.Sequence == 2 {
				return broken
			}
			return nil
		}, func(context.Context) error { return nil }}
		b := Buffered(s, 8, OverflowBlock)
		r, _ := startRun(t, EmitterOptions{Sinks: []Sink{b}})
		var errs [4]error
		for i := range errs {
			go func() { errs[i] = r.Emit(context.Background(), &RunPaused{}) }()
			synctest.Wait()
		}
		close(hold)
		synctest.Wait()
		for i, err := range errs {
			if i != 2 {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, broken)
			require.ErrorContains(t, err, "sink *agentevents.BufferedSink")
			require.ErrorContains(t, err, "sequence 2")
		}
		require.ErrorIs(t, r.s.e.Close(t.Context()), broken)
	})
}

// The event of a late caller was committed before it asks.
func TestALateCommitHasTheErrorOfItsEvent(t *testing.T) {
	broken := errors.New("fsync")
	commits := 0
	b := Buffered(committerSink{discard, func(context.Context) error {
		if commits++; commits == 1 {
			return broken
		}
		return nil
	}}, 8, OverflowBlock)
	for i := range 2 {
		require.NoError(t, b.put(t.Context(), eventOf(i, &RunPaused{})))
		if i == 0 {
			require.ErrorIs(t, b.Flush(t.Context()), broken)
			require.ErrorIs(t, b.Commit(t.Context()), broken)
		}
		require.NoError(t, b.Flush(t.Context()))
	}
	require.NoError(t, b.commit(t.Context(), "1"))
	require.ErrorIs(t, b.commit(t.Context(), "0"), broken)
	require.NoError(t, b.commit(t.Context(), "0"), "told once")
	for i := range 2*maxFailures + 1 {
		b.fail(strconv.Itoa(i), broken)
		require.LessOrEqual(t, len(b.failures), maxFailures)
	}
	require.NoError(t, b.Close())
}

func TestNobodyWaitsForACommitWhereEventsAreDropped(t *testing.T) {
	for policy, p := range map[Overflow]Payload{OverflowDropNewest: &RunPaused{}, OverflowDropOldest: &RunPaused{}, OverflowDropDeltas: &TextDelta{}} {
		synctest.Test(t, func(t *testing.T) {
			c := newSlowCommitter()
			c.open = make(chan struct{})
			b := Buffered(c, 1000, policy)
			r, _ := startRun(t, EmitterOptions{Sinks: []Sink{b}})
			for range 150 {
				require.NoError(t, r.Emit(t.Context(), p))
			}
			close(c.open)
			synctest.Wait()
			require.Equal(t, []int{commitEvery}, c.commits, "though the queue is not empty")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorContains(t, b.Flush(ctx), "150 events are still waiting")
			broken := errors.New("fsync")
			c.let <- nil
			c.let <- nil
			c.let <- broken
			require.ErrorIs(t, b.Flush(t.Context()), broken)
			require.Equal(t, []int{commitEvery, 2 * commitEvery, 150}, c.commits)
			require.NoError(t, b.Flush(t.Context()))
			require.NoError(t, r.s.e.Close(t.Context()))
			require.Len(t, c.commits, 3, "there was nothing to commit")
		})
	}
}

func TestABufferedCommitterMayEmit(t *testing.T) {
	for _, size := range []int{1, 64} {
		var r *Run
		c := newSlowCommitter()
		left := 3
		c.emits = func(ctx context.Context) error {
			if left--; left < 0 {
				return nil
			}
			return r.Emit(ctx, &RunPaused{})
		}
		b := Buffered(c, size, OverflowBlock)
		r, log := startRun(t, EmitterOptions{Sinks: []Sink{b}})
		within(t, "Emit", func() { require.NoError(t, r.Emit(context.Background(), &RunPaused{})) })
		within(t, "Close", func() {
			for range 4 {
				require.NoError(t, b.Flush(context.Background()))
			}
			require.NoError(t, b.Close())
		})
		require.Len(t, log.events, 4)
		require.Equal(t, upTo(4), sequences(&c.sinkLog))
	}
}

// Each sink emits into the run that both buffers follow, and waits for the other one.
func TestConcurrentSafeTwoBuffersThatCommitAndEmit(t *testing.T) {
	var r *Run
	echo := func(from Kind) Sink {
		return committerSink{func(ctx context.Context, ev Event) error {
			if ev.Kind() == from {
				return r.Emit(ctx, &UsageObserved{})
			}
			return nil
		}, func(context.Context) error { return nil }}
	}
	one, two := Buffered(echo(KindTextDelta), 2, OverflowBlock), Buffered(echo(KindTextDelta), 2, OverflowDropDeltas)
	r, log := startRun(t, EmitterOptions{Sinks: []Sink{one, two}})
	within(t, "Emit", func() {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					require.NoError(t, r.Emit(context.Background(), &TextDelta{}))
				}
			})
		}
		wg.Wait()
		for range 3 {
			_, _ = one.Flush(context.Background()), two.Flush(context.Background())
		}
		_, _ = one.Close(), two.Close()
	})
	requireStats(t, one.Stats())
	requireStats(t, two.Stats())
	require.EqualValues(t, one.Stats().Queued, one.Stats().Written)
	require.EqualValues(t, len(log.events), one.Stats().Written)
}

func TestCommitOfABufferKeepsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlowCommitter()
		b := Buffered(c, 4, OverflowBlock)
		require.NoError(t, b.WriteEvent(t.Context(), eventOf(0, &RunPaused{})))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, b.Commit(ctx), context.DeadlineExceeded)
		require.Empty(t, b.commits)
		c.let <- nil
		require.NoError(t, b.Commit(t.Context()))
		require.NoError(t, b.Close())
		require.ErrorIs(t, new(BufferedSink).Commit(t.Context()), ErrZeroValue)
	})
}

func TestACommitThatEndsTheGoroutineFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		b := Buffered(committerSink{discard, func(context.Context) error { <-hold; runtime.Goexit(); return nil }}, 4, OverflowBlock)
		r, _ := startRun(t, EmitterOptions{Sinks: []Sink{b}})
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- r.Emit(context.Background(), &RunPaused{}) }()
			synctest.Wait()
		}
		close(hold)
		for range 2 {
			require.ErrorIs(t, <-errs, turns.ErrGoexit)
		}
		require.ErrorIs(t, b.Commit(t.Context()), turns.ErrGoexit)
		require.Equal(t, BufferedStats{Queued: 2, Written: 1, Dropped: map[Kind]uint64{KindRunPaused: 1}}, b.Stats())
		require.ErrorIs(t, r.s.e.Close(t.Context()), turns.ErrGoexit)
	})
}

// A wrapped sink that cannot commit must not make Emit wait for its delivery.
func TestABufferWithoutACommitterCommitsNothing(t *testing.T) {
	b := Buffered(SinkFunc(discard), 4, OverflowBlock)
	r, _ := startRun(t, EmitterOptions{Sinks: []Sink{b}})
	require.Empty(t, r.s.e.commit)
	require.NoError(t, b.Commit(t.Context()))
	require.NoError(t, r.s.e.Close(t.Context()))
}

// The bubble fails if a goroutine stays.
func TestTheGoroutineOfABufferEndsThoughCloseGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &sinkLog{}
		b := Buffered(SinkFunc(func(ctx context.Context, ev Event) error {
			time.Sleep(time.Second)
			return log.WriteLine(ctx, ev, nil)
		}), 8, OverflowBlock)
		r, _ := startRun(t, EmitterOptions{Sinks: []Sink{b}})
		for range 5 {
			require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
		}
		for name, f := range map[string]func(context.Context) error{"Emitter.Close": r.s.e.Close, "close": b.close} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			require.ErrorIs(t, f(ctx), context.DeadlineExceeded, name)
			require.Equal(t, time.Second, time.Since(began), name)
			cancel()
		}
		<-b.done
		require.Equal(t, upTo(5), sequences(log))
	})
}

func TestABufferedSinkThatHangsInFlushHoldsOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuckSink{SinkFunc: discard, flush: make(chan struct{})}
		b := Buffered(s, 8, OverflowBlock)
		e, err := NewEmitter(EmitterOptions{Sinks: []Sink{b}})
		require.NoError(t, err)
		before := runtime.NumGoroutine()
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			require.ErrorIs(t, e.Flush(ctx), context.DeadlineExceeded)
			require.ErrorIs(t, b.Flush(ctx), context.DeadlineExceeded)
			cancel()
		}
		synctest.Wait()
		stacks := make([]byte, 1<<20)
		text := string(stacks[:runtime.Stack(stacks, true)])
		require.Equal(t, 1, strings.Count(text, "(*stuckSink).Flush("))
		require.LessOrEqual(t, runtime.NumGoroutine(), before+1)
		close(s.flush)
		require.NoError(t, e.Close(t.Context()))
		require.NoError(t, e.Close(t.Context()))
		require.EqualValues(t, 1, s.closes.Load())
	})
}

// A buffer in a buffer: the outer one waits for room, and for commits.
func TestABufferInABuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		inner := Buffered(g, 1, OverflowBlock)
		outer := Buffered(inner, 8, OverflowBlock)
		for i := range 6 {
			require.NoError(t, outer.WriteEvent(t.Context(), eventOf(i, &RunPaused{})))
			synctest.Wait()
		}
		require.EqualValues(t, 3, inner.Stats().Queued, "one is delivered, one waits, and one waits for room")
		close(g.open)
		require.NoError(t, outer.Close())
		require.Equal(t, upTo(6), sequences(&g.sinkLog))
		require.ErrorIs(t, inner.WriteEvent(t.Context(), numbered(0)), ErrClosed)

		c := newSlowCommitter()
		outer = Buffered(Buffered(c, 1, OverflowBlock), 8, OverflowBlock)
		r, _ := startRun(t, EmitterOptions{Sinks: []Sink{outer}})
		emitted := make(chan error, 1)
		go func() { emitted <- r.Emit(context.Background(), &RunPaused{}) }()
		synctest.Wait()
		require.Empty(t, emitted)
		require.Equal(t, []int{1}, c.commits)
		broken := errors.New("fsync")
		c.let <- broken
		require.ErrorIs(t, <-emitted, broken)
		require.ErrorIs(t, r.s.e.Close(t.Context()), broken)
	})
}
