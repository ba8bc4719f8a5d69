package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/hooks"
	"github.com/agentevents/agentevents/internal/effort"
)

// stops notes the calls of Stop.
type stops struct {
	mu    sync.Mutex
	calls []string
}

func (s *stops) stop(_ context.Context, run string, over ae.BudgetExceeded) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf("%s: %s %v > %v%s", run, over.Budget, over.Actual, over.Limit, over.Reason))
	return nil
}

func (s *stops) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// limited returns an emitter with a breaker, its run r, its log, and the calls of Stop.
func limited(t *testing.T, l hooks.Limits, o ae.EmitterOptions) (*ae.Emitter, *ae.Run, *eventtest.Recorder, *stops) {
	t.Helper()
	s := &stops{}
	em, rec := eventtest.RecordWith(t, hooks.Breaker{Limits: l, Stop: s.stop}.Install(o))
	run, err := em.Run("r")
	require.NoError(t, err)
	return em, run, rec, s
}

var derived = ae.EmitterOptions{Lifecycle: ae.LifecycleDerived}

func tokens(in, out int64) ae.Opt[ae.Usage] {
	return ae.Some(ae.Usage{InputTokens: in, OutputTokens: out})
}

func TestBreakerStopsOnceAndRecordsOnce(t *testing.T) {
	fails := func(tool string, status ae.ToolStatus) ae.Payload {
		return &ae.ToolReturned{CallID: "c", ToolID: tool, Status: status, OneEvent: true}
	}
	model := func(u ae.Opt[ae.Usage], cost float64, code string) ae.Payload {
		p := &ae.ModelReturned{ModelCallID: "m", OneEvent: true, Usage: u, CostUSD: ae.Some(cost)}
		if code != "" {
			p.Error = ae.Some(ae.ErrorInfo{Code: code})
		}
		return p
	}
	no := ae.Opt[ae.Usage]{}
	for name, tt := range map[string]struct {
		limits hooks.Limits
		events []ae.Payload // of agent a
		want   string       // the call of Stop
		at     int          // the event that exceeds the limit
	}{
		"none":             {hooks.Limits{}, []ae.Payload{model(tokens(9, 9), 9, "x"), fails("t", ae.ToolStatusError)}, "", 0},
		"tokens, reached":  {hooks.Limits{Tokens: 10}, []ae.Payload{model(tokens(6, 4), 0, "")}, "", 0},
		"tokens, exceeded": {hooks.Limits{Tokens: 10}, []ae.Payload{model(tokens(6, 4), 0, ""), model(tokens(0, 1), 0, ""), model(tokens(5, 1), 0, "")}, "r: tokens 11 > 10", 1},
		"tokens of caches": {hooks.Limits{Tokens: 10}, []ae.Payload{model(ae.Some(ae.Usage{InputTokens: 1, CacheReadInputTokens: ae.Some[int64](7), CacheCreationInputTokens: ae.Some[int64](2),
			TotalTokens: ae.Some[int64](99)}), 0, ""), model(tokens(0, 1), 0, "")}, "r: tokens 11 > 10", 1},
		"tokens, without end": {hooks.Limits{Tokens: math.MaxInt64 - 1}, []ae.Payload{model(tokens(math.MaxInt64, math.MaxInt64), 0, "")},
			"r: tokens 9.223372036854776e+18 > 9.223372036854776e+18", 0},
		"reports count once": {hooks.Limits{Tokens: 10}, []ae.Payload{
			&ae.ModelCalled{ModelCallID: "m1"}, &ae.UsageObserved{ModelCallID: "m1", Usage: tokens(6, 4).V},
			&ae.ModelReturned{ModelCallID: "m1", Usage: tokens(6, 4)}, &ae.AgentEnded{Usage: tokens(6, 4), Outcome: ae.OutcomePartial}}, "", 0},
		"cost, reached":  {hooks.Limits{CostUSD: 0.5}, []ae.Payload{model(no, 0.25, ""), model(no, 0.25, "")}, "", 0},
		"cost, exceeded": {hooks.Limits{CostUSD: 0.5}, []ae.Payload{model(no, 0.25, ""), model(no, 0.25, ""), model(no, 0.25, "")}, "r: cost 0.75 > 0.5", 2},
		"tokens first":   {hooks.Limits{CostUSD: 0.5, Tokens: 10}, []ae.Payload{model(tokens(11, 0), 1, "")}, "r: tokens 11 > 10", 0},
		"steps":          {hooks.Limits{Steps: 1}, []ae.Payload{model(no, 0, ""), fails("t", ae.ToolStatusOK), model(no, 0, "")}, "r: steps 2 > 1", 2},
		"failures, allowed": {hooks.Limits{Failures: 2}, []ae.Payload{fails("t", ae.ToolStatusError), fails("t", ae.ToolStatusForbidden), fails("t", ae.ToolStatusOK),
			fails("t", ae.ToolStatusRateLimited), fails("t", ae.ToolStatusError)}, "", 0},
		"failures": {hooks.Limits{Failures: 2}, []ae.Payload{fails("t", ae.ToolStatusError), model(no, 0, ""), fails("u", ae.ToolStatusOK), fails("t", ae.ToolStatusForbidden),
			fails("t", ae.ToolStatusCancelled), fails("t", ae.ToolStatusRateLimited), fails("t", ae.ToolStatusError)}, "r: failures 3 > 2tool t", 5},
		"failures of models": {hooks.Limits{Failures: 1}, []ae.Payload{model(no, 0, "overloaded"), fails("t", ae.ToolStatusOK), model(no, 0, "cancelled"), model(no, 0, "overloaded")}, "r: failures 2 > 1model", 3},
	} {
		t.Run(name, func(t *testing.T) {
			_, run, rec, s := limited(t, tt.limits, derived)
			require.NoError(t, run.Agent("a").Emit(t.Context(), &ae.AgentStarted{}))
			for i, p := range tt.events {
				require.NoError(t, run.Agent("a").Emit(t.Context(), p))
				got := s.take()
				if tt.want == "" || i != tt.at {
					require.Empty(t, got, "event %d", i)
					continue
				}
				require.Equal(t, []string{tt.want}, got)
				all := rec.Events()
				last, cause := all[len(all)-1], all[len(all)-2]
				require.Equal(t, ae.KindBudgetExceeded, last.Kind(), "it follows at once")
				require.Equal(t, cause.ID, last.CausationID)
				require.Equal(t, p, cause.Payload)
			}
			require.NoError(t, run.Emit(t.Context(), &ae.RunCancelled{}))
			require.Len(t, rec.Find(t, "budget.exceeded"), map[bool]int{true: 0, false: 1}[tt.want == ""])
			require.Empty(t, rec.Snapshot("r").Violations)
		})
	}
}

// A generator of runs in which usage is stated in many ways.
type generator struct {
	*rand.Rand
	calls int
}

func maybe[T any](ok bool, v T) (o ae.Opt[T]) {
	if ok {
		o = ae.Some(v)
	}
	return o
}

func (g *generator) usage() ae.Usage {
	u := ae.Usage{InputTokens: g.Int64N(5), OutputTokens: g.Int64N(5)}
	if g.IntN(3) == 0 {
		u.CacheReadInputTokens = ae.Some(g.Int64N(5))
	}
	if g.IntN(8) == 0 {
		u.CostUSD = g.cost()
	}
	return u
}

func (g *generator) cost() ae.Opt[float64] { // a sum of these is exact
	return maybe(g.IntN(2) == 0, float64(g.IntN(4))/4)
}

func (g *generator) event() ae.Event {
	ev := ae.Event{AgentID: []string{"a", "b", "c", "d"}[g.IntN(4)]}
	if g.IntN(8) == 0 {
		ev.AgentID, ev.NodeRunID = "", "node"
	}
	if g.IntN(12) == 0 {
		ev.AgentID, ev.NodeRunID = "", ""
	}
	call := "m" + strconv.Itoa(g.IntN(4))
	model := []string{"", "x", "y"}[g.IntN(3)]
	some := maybe(g.IntN(3) > 0, g.usage())
	switch g.IntN(7) {
	case 0:
		ev.ParentAgentID = []string{"", "a", "b"}[g.IntN(3)]
		ev.Payload = &ae.AgentStarted{Model: model, Resumed: g.IntN(2) == 0}
	case 1:
		p := &ae.AgentEnded{Usage: some, TotalCostUSD: g.cost()}
		if g.IntN(3) == 0 {
			p.ModelUsage, p.Cumulative = map[string]ae.Usage{"x": g.usage(), "y": g.usage()}, g.IntN(2) == 0
		}
		if ev.Payload = p; g.IntN(4) == 0 {
			ev.Marks = ae.MarkLate
		}
	case 2:
		ev.Payload = &ae.ModelCalled{ModelCallID: call, Model: model}
	case 3:
		ev.Payload = &ae.ModelReturned{ModelCallID: call, Model: model, Usage: some, CostUSD: g.cost(), OneEvent: g.IntN(2) == 0}
	case 4, 5:
		p := &ae.UsageObserved{Usage: g.usage(), CostUSD: g.cost(), Cumulative: g.IntN(3) == 0}
		if g.IntN(2) == 0 {
			p.ModelCallID = call
		}
		ev.Payload = p
	default:
		g.calls++
		ev.Step = maybe(ev.AgentID != "" && g.IntN(2) == 0, g.calls/4)
		status := []ae.ToolStatus{ae.ToolStatusOK, ae.ToolStatusError, ae.ToolStatusCancelled}[g.IntN(3)]
		ev.Payload = &ae.ToolReturned{CallID: "c" + strconv.Itoa(g.calls), ToolID: "t" + strconv.Itoa(g.IntN(2)), Status: status, OneEvent: true}
	}
	if ev.AgentID == "" && ev.NodeRunID == "" { // events of agents need one
		ev.Payload = &ae.UsageObserved{Usage: g.usage(), CostUSD: g.cost()}
	}
	if g.IntN(6) == 0 {
		ev.Marks |= ae.MarkReplayed
	}
	return ev
}

// used returns the usage in the fold of a log, in the order of the limits. Failures are counted
// from the log.
func used(t *testing.T, log []ae.Event) (*ae.RunSnapshot, [4]float64) {
	fold := ae.NewFold(ae.FoldOptions{})
	var row float64
	rows := map[string]float64{}
	for _, ev := range log {
		fold.Apply(ev)
		switch p := ev.Payload.(type) {
		case *ae.ToolReturned:
			switch p.Status {
			case ae.ToolStatusOK:
				rows[p.ToolID] = 0
			case ae.ToolStatusError:
				rows[p.ToolID]++
			}
		case *ae.ModelReturned:
			rows[""] = 0
		}
	}
	for _, n := range rows {
		row = max(row, n)
	}
	s := fold.Snapshot()
	steps := 0
	for _, a := range s.Agents {
		if a.Step.OK {
			steps += a.Step.V + 1
		}
	}
	u := s.Usage.Usage
	all := u.InputTokens + u.OutputTokens + u.CacheReadInputTokens.V + u.CacheCreationInputTokens.V
	return s, [4]float64{float64(all), s.Usage.CostUSD.V, float64(steps), row}
}

// The law: Stop is called with the first event, not replayed, after which the fold's totals
// are above a limit, and with no other.
func TestBreakerFollowsTheFold(t *testing.T) {
	rounds := effort.Of(60, 400, 5_000)
	tripped := [4]int{}
	for seed := range rounds {
		g := &generator{Rand: rand.New(rand.NewPCG(16, uint64(seed)))}
		limits := hooks.Limits{}
		kind := g.IntN(4)
		switch kind {
		case 0:
			limits.Tokens = 1 + g.Int64N(60)
		case 1:
			limits.CostUSD = 0.25 + float64(g.IntN(20))/4
		case 2:
			limits.Steps = 1 + g.IntN(8)
		case 3:
			limits.Failures = 1 + g.IntN(3)
		}
		limit := [4]float64{float64(limits.Tokens), limits.CostUSD, float64(limits.Steps), float64(limits.Failures)}[kind]
		var log []ae.Event
		keep := ae.SinkFunc(func(_ context.Context, ev ae.Event) error { log = append(log, ev); return nil })
		s := &stops{}
		emitter := func() *ae.Emitter {
			em, err := ae.NewEmitter(hooks.Breaker{Limits: limits, Stop: s.stop}.Install(ae.EmitterOptions{
				Lifecycle: ae.LifecycleRelaxed, Mode: ae.ModeObserve, OnViolation: func(*ae.RuleError) {}, Sinks: []ae.Sink{keep},
			}))
			require.NoError(t, err)
			return em
		}
		run, err := emitter().Run("r")
		require.NoError(t, err)
		done := false
		for range 40 {
			ev := g.event()
			if _, err := run.Record(t.Context(), ev); err != nil {
				continue
			}
			n := len(log)
			if log[n-1].Kind() == ae.KindBudgetExceeded {
				n--
			}
			snapshot, now := used(t, log[:n])
			want := !done && now[kind] > limit && !log[n-1].Marks.Has(ae.MarkReplayed)
			calls := s.take()
			require.Equal(t, want, len(calls) == 1, "seed %d, limit %v, used %v, event %d, calls %v", seed, limits, now, n-1, calls)
			require.Equal(t, want, n < len(log), "the event follows")
			if want {
				over := log[n].Payload.(*ae.BudgetExceeded)
				require.Equal(t, [2]float64{limit, now[kind]}, [2]float64{over.Limit, over.Actual}, "seed %d", seed)
				done = true
				tripped[kind]++
			}
			if !done && g.IntN(15) == 0 { // another process goes on
				require.NoError(t, run.Close())
				run, err = emitter().Resume(snapshot)
				require.NoError(t, err)
			}
		}
	}
	for kind, n := range tripped {
		require.Greater(t, n, rounds/100, "limit %d", kind)
	}
}

// Figures that did not count may begin to: these runs exceed a limit with an event whose figures
// are less than the remaining budget.
func TestOlderFiguresBeginToCount(t *testing.T) {
	ev := func(agent, parent string, p ae.Payload) ae.Event {
		return ae.Event{AgentID: agent, ParentAgentID: parent, Payload: p}
	}
	models := func(n int64) map[string]ae.Usage { return map[string]ae.Usage{"x": {InputTokens: n}} }
	started := func() ae.Payload { return &ae.AgentStarted{Resumed: true} }
	for name, tt := range map[string]struct {
		limits hooks.Limits
		events []ae.Event
		want   string
	}{
		"of an agent that leaves its parent": {hooks.Limits{Tokens: 20}, []ae.Event{
			ev("lead", "", started()), ev("child", "lead", started()),
			ev("child", "", &ae.AgentEnded{Usage: tokens(10, 0)}), ev("lead", "", &ae.AgentEnded{ModelUsage: models(15)}),
			ev("child", "other", started()),
		}, "r: tokens 25 > 20"},
		"of an agent in an attempt that a running total takes in": {hooks.Limits{Tokens: 12}, []ae.Event{
			ev("lead", "", started()), ev("lead", "", started()), ev("child", "lead", started()),
			ev("child", "", &ae.AgentEnded{Usage: tokens(10, 0)}), ev("lead", "", &ae.AgentEnded{ModelUsage: models(5)}),
			ev("lead", "", started()), ev("lead", "", &ae.AgentEnded{ModelUsage: models(6), Cumulative: true}),
		}, "r: tokens 16 > 12"},
		"of reports, because of a second end": {hooks.Limits{CostUSD: 3}, []ae.Event{
			ev("a", "", started()), ev("a", "", &ae.AgentEnded{Usage: ae.Some(ae.Usage{CostUSD: ae.Some(0.25)})}),
			ev("a", "", &ae.UsageObserved{CostUSD: ae.Some(5.0)}),
			{AgentID: "a", Marks: ae.MarkLate, Payload: &ae.AgentEnded{ModelUsage: models(1)}},
		}, "r: cost 5 > 3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, run, rec, s := limited(t, tt.limits, ae.EmitterOptions{Lifecycle: ae.LifecycleRelaxed})
			for i, ev := range tt.events {
				require.Empty(t, s.take(), "before event %d", i)
				_, err := run.Record(t.Context(), ev)
				require.NoError(t, err)
			}
			require.Equal(t, []string{tt.want}, s.take())
			require.Len(t, rec.Snapshot("r").Budgets, 1)
		})
	}
}

func TestBreakerKnowsAnAgentByItsNode(t *testing.T) {
	_, run, _, s := limited(t, hooks.Limits{Tokens: 10}, ae.EmitterOptions{Lifecycle: ae.LifecycleRelaxed})
	node := run.With(ae.Scope{NodeRunID: "n1"})
	for _, p := range []ae.Payload{
		&ae.ToolReturned{CallID: "c", ToolID: "t", Status: ae.ToolStatusOK, OneEvent: true},
		&ae.UsageObserved{Usage: tokens(10, 0).V},
		&ae.AgentEnded{Usage: tokens(10, 0)},
	} {
		_, err := node.Record(t.Context(), ae.Event{Payload: p})
		require.NoError(t, err)
	}
	require.Empty(t, s.take(), "the end repeats the agent's report")
}

func TestBreakerOfResumedRuns(t *testing.T) {
	em, run, rec, s := limited(t, hooks.Limits{Tokens: 10, Steps: 100}, derived)
	a := run.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &ae.AgentStarted{}))
	require.NoError(t, a.Emit(t.Context(), &ae.UsageObserved{Usage: tokens(10, 0).V}))
	require.NoError(t, run.Close())
	before := rec.Snapshot("r")

	run, err := em.Resume(before)
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &ae.RunResumed{}))
	require.Empty(t, s.take())
	require.NoError(t, run.Agent("a").Emit(t.Context(), &ae.UsageObserved{Usage: tokens(1, 0).V}))
	require.Equal(t, []string{"r: tokens 11 > 10"}, s.take(), "earlier usage counts")
	require.NoError(t, run.Close())

	run, err = em.Resume(rec.Snapshot("r"))
	require.NoError(t, err)
	require.Empty(t, s.take(), "nobody can stop the run yet")
	require.NoError(t, run.Emit(t.Context(), &ae.RunResumed{}))
	require.Equal(t, []string{"r: tokens 11 > 10"}, s.take(), "it goes on with nothing left")
	require.Len(t, rec.Find(t, "budget.exceeded"), 1, "the log has the end already")
	require.NoError(t, run.Emit(t.Context(), &ae.RunCancelled{}))
	require.NoError(t, run.Emit(t.Context(), &ae.UsageObserved{Usage: tokens(50, 0).V}))
	require.Empty(t, s.take(), "events after the end do not begin a run")
}

func TestWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := hooks.Limits{WallClock: time.Minute}
		em, run, rec, s := limited(t, limits, derived)
		require.NoError(t, run.Emit(t.Context(), &ae.SessionStarted{}))
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		require.Empty(t, s.take())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, []string{"r: wall_clock 60000 > 60000"}, s.take(), "without an event")
		require.NoError(t, run.Emit(t.Context(), &ae.SessionStarted{}))
		require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}), "only session events precede it")
		require.NoError(t, run.Emit(t.Context(), &ae.RunCancelled{}))
		rec.WantExactly(t, "session.started", "session.started", "run.started", "budget.exceeded budget=wall_clock limit=60000 actual=60000", "run.cancelled")

		late, err := em.Run("late")
		require.NoError(t, err)
		require.NoError(t, late.Emit(t.Context(), &ae.RunStarted{}))
		time.Sleep(time.Hour)
		require.NoError(t, late.Emit(t.Context(), &ae.RunFailed{}), "Follow is asked about it")
		require.Equal(t, []string{"late: wall_clock 60000 > 60000"}, s.take())
		all := rec.Events()
		require.Equal(t, ae.KindBudgetExceeded, all[len(all)-1].Kind())
		require.Equal(t, ae.MarkLate, all[len(all)-1].Marks, "after the end")
		require.Empty(t, rec.Snapshot("late").Violations)

		for _, id := range []string{"ended", "closed", "open"} {
			run, err := em.Run(id)
			require.NoError(t, err)
			require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}))
			switch id {
			case "ended":
				require.NoError(t, run.Emit(t.Context(), &ae.RunCompleted{}))
				require.NoError(t, run.Emit(t.Context(), &ae.SessionCompleted{}))
			case "closed":
				require.NoError(t, run.Close())
			}
		}
		time.Sleep(time.Minute - 1)
		require.NoError(t, em.Close(t.Context()))
		time.Sleep(time.Hour) // synctest fails the test if a goroutine is left
		require.Empty(t, s.take(), "released in time")
	})
}

func TestWallClockOfResumedAndReplayedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stops{}
		install := hooks.Breaker{Limits: hooks.Limits{WallClock: time.Minute}, Stop: s.stop}.Install
		fold := ae.NewFold(ae.FoldOptions{})
		em, err := ae.NewEmitter(install(ae.EmitterOptions{Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error { fold.Apply(ev); return nil })}}))
		require.NoError(t, err)
		run, err := em.Run("r")
		require.NoError(t, err)
		for range 3 { // the log of a long day
			_, err = run.Record(t.Context(), ae.Event{Marks: ae.MarkReplayed, Time: time.Now().Add(-time.Hour), Payload: &ae.RunPaused{}})
			require.NoError(t, err)
		}
		time.Sleep(time.Hour)
		require.Empty(t, s.take())
		require.NoError(t, run.Close())

		fold = ae.NewFold(ae.FoldOptions{})
		run, err = em.Run("s")
		require.NoError(t, err)
		require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}))
		time.Sleep(40 * time.Second)
		require.NoError(t, run.Close())
		run, err = em.Resume(fold.Snapshot())
		require.NoError(t, err)
		require.NoError(t, run.Emit(t.Context(), &ae.RunPaused{}))
		time.Sleep(20*time.Second - 1)
		synctest.Wait()
		require.Empty(t, s.take())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Len(t, s.take(), 1)
		require.NoError(t, em.Close(t.Context()))
	})
}

func TestStopFails(t *testing.T) {
	oops := errors.New("oops")
	for name, tt := range map[string]struct {
		stop func(context.Context, string, ae.BudgetExceeded) error
		is   func(error) bool
	}{
		"error": {func(context.Context, string, ae.BudgetExceeded) error { return oops }, func(err error) bool { return errors.Is(err, oops) }},
		"panic": {func(context.Context, string, ae.BudgetExceeded) error { panic("oops") }, func(err error) bool { return errors.As(err, new(*ae.PanicError)) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []error
				got := map[ae.Kind]int{}
				em, err := ae.NewEmitter(hooks.Breaker{Limits: hooks.Limits{Tokens: 1, WallClock: time.Minute}, Stop: tt.stop}.Install(ae.EmitterOptions{
					OnError: func(err error) { told = append(told, err) },
					Sinks:   []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error { got[ev.Kind()]++; return nil })},
				}))
				require.NoError(t, err)
				check := func(err error) {
					t.Helper()
					require.ErrorAs(t, err, new(*ae.SinkError))
					require.True(t, tt.is(err), "%v", err)
					require.Len(t, told, 1)
					told = nil
				}
				run, err := em.Run("r")
				require.NoError(t, err)
				check(run.Emit(t.Context(), &ae.UsageObserved{Usage: tokens(2, 0).V}))
				require.NoError(t, run.Emit(t.Context(), &ae.UsageObserved{Usage: tokens(2, 0).V}))
				require.Equal(t, map[ae.Kind]int{ae.KindUsageObserved: 2, ae.KindBudgetExceeded: 1}, got)

				run, err = em.Run("timer")
				require.NoError(t, err)
				require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}))
				time.Sleep(time.Hour)
				check(run.Emit(t.Context(), &ae.RunPaused{}))
				require.NoError(t, run.Emit(t.Context(), &ae.RunPaused{}))

				run, err = em.Run("released")
				require.NoError(t, err)
				require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}))
				time.Sleep(time.Hour)
				check(run.Close())
				require.NoError(t, em.Close(t.Context()))
			})
		})
	}
}

func TestCloseWaitsForStop(t *testing.T) {
	for name, end := range map[string]func(){"returns": func() {}, "ends its goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var returned atomic.Bool
				em, err := ae.NewEmitter(hooks.Breaker{Limits: hooks.Limits{WallClock: time.Minute}, Stop: func(context.Context, string, ae.BudgetExceeded) error {
					time.Sleep(time.Second)
					returned.Store(true)
					end()
					return errors.New("too late")
				}}.Install(ae.EmitterOptions{}))
				require.NoError(t, err)
				run, err := em.Run("r")
				require.NoError(t, err)
				require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}))
				time.Sleep(time.Minute)
				synctest.Wait()
				require.NoError(t, run.Emit(t.Context(), &ae.RunCancelled{}), "Stop holds up nothing")
				require.False(t, returned.Load())
				err = em.Close(t.Context())
				require.True(t, returned.Load())
				require.ErrorContains(t, err, `run "r": hooks: Breaker.Stop`)
			})
		})
	}
}

func TestStopMayNotWaitForTheRun(t *testing.T) {
	var run *ae.Run
	var got error
	em, err := ae.NewEmitter(hooks.Breaker{Limits: hooks.Limits{Tokens: 1}, Stop: func(ctx context.Context, _ string, _ ae.BudgetExceeded) error {
		got = run.Emit(ctx, &ae.RunCancelled{})
		return nil
	}}.Install(ae.EmitterOptions{}))
	require.NoError(t, err)
	run, err = em.Run("r")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &ae.UsageObserved{Usage: tokens(2, 0).V}))
	require.ErrorIs(t, got, ae.ErrReentrant)
}

func TestSeveralBreakersAndTheHostsFollow(t *testing.T) {
	var s, s2 stops
	host := ae.EmitterOptions{Sinks: make([]ae.Sink, 0, 4), Lifecycle: ae.LifecycleDerived, Follow: func(ev ae.Event) []ae.Event {
		if ev.Kind() == ae.KindUsageObserved {
			return []ae.Event{{Payload: &ae.RunFailed{}}}
		}
		return nil
	}}
	one := hooks.Breaker{Limits: hooks.Limits{Tokens: 1}, Stop: s.stop}.Install(host)
	two := hooks.Breaker{Limits: hooks.Limits{CostUSD: 1}, Stop: s2.stop}.Install(one)
	require.Len(t, host.Sinks, 0)
	require.Nil(t, host.Sinks[:1][0], "the host's options stay as they are")
	em, rec := eventtest.RecordWith(t, two)
	run, err := em.Run("r")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &ae.UsageObserved{Usage: tokens(2, 0).V, CostUSD: ae.Some(2.0)}))
	require.Equal(t, []string{"r: tokens 2 > 1"}, s.take())
	require.Equal(t, []string{"r: cost 2 > 1"}, s2.take())
	rec.WantExactly(t, "usage.observed", "budget.exceeded budget=cost", "budget.exceeded budget=tokens", "run.failed")
}

func TestLimitsOfARun(t *testing.T) {
	s := &stops{}
	em, err := ae.NewEmitter(hooks.Breaker{Limits: hooks.Limits{Tokens: 10}, Stop: s.stop, LimitsOf: func(run string) hooks.Limits {
		switch run {
		case "big":
			return hooks.Limits{Tokens: 100}
		case "free":
			return hooks.Limits{}
		}
		panic(run)
	}}.Install(ae.EmitterOptions{}))
	require.NoError(t, err)
	for id, want := range map[string][]string{"big": nil, "free": nil, "other": {"other: tokens 50 > 10"}} {
		run, err := em.Run(id)
		require.NoError(t, err)
		err = run.Emit(t.Context(), &ae.UsageObserved{Usage: tokens(50, 0).V})
		require.Equal(t, id == "other", errors.As(err, new(*ae.PanicError)), "%v", err)
		require.NoError(t, run.Emit(t.Context(), &ae.UsageObserved{Usage: tokens(0, 0).V}))
		require.Equal(t, want, s.take(), id)
	}
}

func TestManyRunsAtOnce(t *testing.T) {
	const runs, events = 64, 50
	counts := make([]atomic.Int64, runs)
	em, err := ae.NewEmitter(hooks.Breaker{Limits: hooks.Limits{Tokens: events / 2, WallClock: time.Hour}, Stop: func(_ context.Context, run string, over ae.BudgetExceeded) error {
		i, err := strconv.Atoi(run)
		counts[i].Add(1)
		return err
	}}.Install(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived}))
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			run, err := em.Run(strconv.Itoa(i))
			if err != nil {
				t.Error(err)
				return
			}
			for range events {
				if err := run.Agent("a").Emit(t.Context(), &ae.UsageObserved{Usage: ae.Usage{InputTokens: 1}}); err != nil {
					t.Error(err)
				}
			}
			if err := run.Emit(t.Context(), &ae.RunCompleted{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, em.Close(t.Context()))
	for i := range counts {
		require.EqualValues(t, 1, counts[i].Load())
	}
}

func BenchmarkBreaker(b *testing.B) {
	all := hooks.Limits{Tokens: math.MaxInt64, CostUSD: math.MaxFloat64, Steps: math.MaxInt, WallClock: time.Hour, Failures: 100}
	for name, p := range map[string]ae.Payload{
		"delta": &ae.TextDelta{Delta: "x"},
		"tool":  &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK, OneEvent: true},
		"model": &ae.ModelReturned{ModelCallID: "m", OneEvent: true, Usage: tokens(9, 9)},
	} {
		for _, limits := range []hooks.Limits{{}, all} {
			b.Run(fmt.Sprintf("%s/%t", name, limits == all), func(b *testing.B) {
				em, err := ae.NewEmitter(hooks.Breaker{Limits: limits}.Install(ae.EmitterOptions{Lifecycle: ae.LifecycleRelaxed, Mode: ae.ModeObserve}))
				require.NoError(b, err)
				run, err := em.Run("r")
				require.NoError(b, err)
				a, ctx := run.Agent("a"), b.Context()
				b.ReportAllocs()
				for b.Loop() {
					if err := a.Emit(ctx, p); err != nil {
						b.Fatal(err)
					}
				}
				require.NoError(b, em.Close(ctx))
			})
		}
	}
}

// A limit that makes no sense does not pass for none.
func TestLimitsThatMakeNoSense(t *testing.T) {
	for _, l := range []hooks.Limits{{Tokens: -1}, {CostUSD: -0.01}, {CostUSD: math.NaN()}, {CostUSD: math.Inf(1)}, {Steps: -1}, {WallClock: -1}, {Failures: -1}} {
		_, err := ae.NewEmitter(hooks.Breaker{Limits: l}.Install(ae.EmitterOptions{}))
		require.ErrorAs(t, err, new(*ae.OptionError))

		stopped := 0
		em, err := ae.NewEmitter(hooks.Breaker{
			Limits:   hooks.Limits{Tokens: 10},
			LimitsOf: func(string) hooks.Limits { return l },
			Stop:     func(context.Context, string, ae.BudgetExceeded) error { stopped++; return nil },
		}.Install(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived}))
		require.NoError(t, err)
		run, err := em.Run("r")
		require.NoError(t, err)
		require.ErrorAs(t, run.Emit(t.Context(), &ae.RunStarted{}), new(*ae.OptionError))
		require.NoError(t, run.Emit(t.Context(), &ae.UsageObserved{Usage: ae.Usage{InputTokens: 11}}))
		require.Equal(t, 1, stopped, "the limits of all runs count")
	}
}
