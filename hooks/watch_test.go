package hooks_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/findings"
	"github.com/agentevents/agentevents/hooks"
	"github.com/agentevents/agentevents/internal/effort"
)

// watching returns an emitter with a watch, its run r with agent a at work, and its log.
func watching(t *testing.T, o hooks.WatchOptions, stop func(context.Context, string, ae.BudgetExceeded) error) (*hooks.Watch, *ae.Run, *ae.Agent, *eventtest.Recorder) {
	t.Helper()
	w := hooks.NewWatch(o)
	em, rec := eventtest.RecordWith(t, hooks.Breaker{Watch: w, Stop: stop}.Install(ae.EmitterOptions{OnViolation: func(*ae.RuleError) {}}))
	run, err := em.Run("r")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}))
	a := run.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &ae.AgentStarted{}))
	return w, run, a, rec
}

// use has the agent use a tool and returns whether it ran.
func use(t *testing.T, a *ae.Agent, tool, arguments, result string, fails error) (ran bool, err error) {
	t.Helper()
	_, err = a.Do(t.Context(), &ae.ToolCalled{ToolID: tool, Arguments: ae.JSON(arguments)}, func(context.Context) (ae.JSON, error) {
		ran = true
		return ae.JSONString(result), fails
	})
	return ran, err
}

func TestWatchTellsOnceAndWhenItHasGrownTenfold(t *testing.T) {
	var told []string
	_, _, a, rec := watching(t, hooks.WatchOptions{Found: func(_ context.Context, c findings.Change) error {
		told = append(told, fmt.Sprintf("%s %d %v %s", c.Kind, c.Count, c.Began, c.Severity))
		return nil
	}}, nil)
	for range 40 {
		ran, err := use(t, a, "read", `{"path":"f"}`, "text", nil)
		require.True(t, ran)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"repeat 3 true warning", "repeat 30 false serious"}, told)
	rec.WantNone(t, "budget.exceeded")
}

func TestWatchRefusesTheNextCall(t *testing.T) {
	w, _, a, rec := watching(t, hooks.WatchOptions{Act: map[findings.Kind]hooks.Action{findings.Repeat: hooks.Refuse, findings.FailureStreak: hooks.Refuse}}, nil)
	for range 3 {
		ran, err := use(t, a, "read", `{"path":"f","n":1}`, "text", nil)
		require.True(t, ran)
		require.NoError(t, err)
	}
	for range 2 { // as often as the agent tries
		ran, err := use(t, a, "read", `{"n":1,"path":"f"}`, "text", nil)
		require.False(t, ran)
		var rule *ae.RuleError
		require.ErrorAs(t, err, &rule)
		require.Equal(t, ae.Rule("finding-repeat"), rule.Rule)
		require.Equal(t, "a made the same call of read (f) 3 times in a row and got the same result; do something else", rule.Detail)
	}
	ran, err := use(t, a, "read", `{"path":"g"}`, "other", nil)
	require.True(t, ran)
	require.NoError(t, err)
	require.False(t, w.Findings("r")[0].Open)

	for i := range 5 {
		ran, _ := use(t, a, "edit", fmt.Sprintf(`{"line":%d}`, i), "", fmt.Errorf("error %c", 'a'+i))
		require.True(t, ran)
	}
	ran, err = use(t, a, "edit", `{"line":9}`, "", nil)
	require.False(t, ran)
	require.ErrorContains(t, err, "finding-failure-streak")
	ran, _ = use(t, a, "edit", `{"line":9}`, "ok", nil)
	require.True(t, ran, "the tool may have rested")
	rec.Want(t, "budget.exceeded repeat", "budget.exceeded failure-streak", "agent.toolReturned edit ok")
}

func TestWatchAsksAPerson(t *testing.T) {
	_, run, a, rec := watching(t, hooks.WatchOptions{Act: map[findings.Kind]hooks.Action{findings.Retry: hooks.Ask}}, nil)
	for range 3 {
		_, _ = use(t, a, "make", `{}`, "", fmt.Errorf("no rule"))
	}
	for _, tool := range []string{"make", "read"} {
		ran, err := use(t, a, tool, `{}`, "ok", nil)
		require.False(t, ran)
		require.ErrorContains(t, err, "is not granted")
	}
	asked := rec.Find(t, "a approval.requested")
	require.Len(t, asked, 1)
	require.NoError(t, a.Emit(t.Context(), &ae.ApprovalGranted{ApprovalID: asked[0].Payload.(*ae.ApprovalRequested).ApprovalID}))
	ran, err := use(t, a, "make", `{}`, "ok", nil)
	require.True(t, ran)
	require.NoError(t, err)
	require.NoError(t, a.Emit(t.Context(), &ae.AgentEnded{Outcome: ae.OutcomeConverged}))
	require.NoError(t, run.Emit(t.Context(), &ae.RunCompleted{}))
	rec.Want(t, "a agent.toolReturned make error", "a budget.exceeded retry-without-change", "a approval.requested", "approval.granted", "a agent.toolReturned make ok")
	rec.WantLaws(t, eventtest.LawOptions{})
}

func TestWatchStopsByTheDoorOfTheBreaker(t *testing.T) {
	s := &stops{}
	_, _, a, rec := watching(t, hooks.WatchOptions{Act: map[findings.Kind]hooks.Action{findings.Repeat: hooks.Stop}}, s.stop)
	for range 5 {
		_, _ = use(t, a, "read", `{"path":"f"}`, "text", nil)
	}
	require.Equal(t, []string{"r: repeat 3 > 3a made the same call of read (f) 3 times in a row and got the same result"}, s.take())
	rec.Want(t, "a agent.toolReturned read ok", "budget.exceeded repeat", "a agent.toolReturned read ok")
}

// An actor draws the acts of agents that go round in circles now and then.
type actor struct {
	t   *testing.T
	r   *rand.Rand
	run *ae.Run
	now *time.Time
	ask []string
}

func (d *actor) act() {
	ctx, a := d.t.Context(), d.run.Agent([]string{"a", "b"}[d.r.IntN(2)])
	*d.now = d.now.Add(time.Duration(d.r.IntN(3000)) * time.Millisecond)
	args := ae.JSON([]string{`{"x":1,"y":2}`, `{"y":2, "x":1}`, `{}`, `{"x":2}`}[d.r.IntN(4)])
	one := func(fails error) {
		_, _ = a.Do(ctx, &ae.ToolCalled{ToolID: []string{"read", "edit"}[d.r.IntN(8)/7], Arguments: args}, func(context.Context) (ae.JSON, error) { return `"same"`, fails })
	}
	switch n := d.r.IntN(100); {
	case n < 55:
		for range 1 + d.r.IntN(4) {
			one(nil)
		}
	case n < 68:
		for range 1 + d.r.IntN(4) {
			one(fmt.Errorf("error %d", d.r.IntN(2)))
		}
	case n < 71:
		failed := ae.Some(ae.ErrorInfo{Message: fmt.Sprintf("error %d", d.r.IntN(2))})
		for range 1 + d.r.IntN(5) {
			switch d.r.IntN(8) {
			case 0:
				_ = a.Emit(ctx, &ae.ModelReturned{ModelCallID: fmt.Sprintf("m%d", d.r.Int()), OneEvent: true, Error: failed})
			case 1:
				_ = a.Emit(ctx, &ae.TextCompleted{BlockID: fmt.Sprint(d.r.Int()), Text: "text"})
			case 2:
				_ = a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeAborted, Error: failed})
				_ = a.Emit(ctx, &ae.AgentStarted{})
			default:
				_ = a.Emit(ctx, &ae.AgentErrored{ErrorType: "overloaded", Message: failed.V.Message, Severity: []ae.Severity{"", ae.SeverityWarning}[d.r.IntN(2)]})
			}
		}
	case n < 76:
		id := fmt.Sprintf("m%d", d.r.Int())
		_ = a.Emit(ctx, &ae.ModelReturned{ModelCallID: id, OneEvent: true, Usage: tokens(d.r.Int64N(30_000), 10), CostUSD: ae.Some(0.01)})
	case n < 82:
		*d.now = d.now.Add(time.Duration(d.r.IntN(200)) * time.Minute)
	case n < 88:
		other := d.run.Agent(map[string]string{"a": "b", "b": "a"}[a.ID()])
		for range d.r.IntN(9) {
			_ = a.Emit(ctx, &ae.AgentHandoff{From: ae.AgentRef{AgentID: a.ID()}, To: ae.AgentRef{AgentID: other.ID()}})
			a, other = other, a
		}
	case n < 92:
		id := fmt.Sprintf("q%d", d.r.Int())
		_ = a.Emit(ctx, &ae.ApprovalRequested{ApprovalID: id})
		d.ask = append(d.ask, id)
	case n < 96 && len(d.ask) > 0:
		_ = a.Emit(ctx, &ae.ApprovalGranted{ApprovalID: d.ask[0]})
		d.ask = d.ask[1:]
	case n < 98:
		_ = a.Emit(ctx, &ae.ContextCompacted{})
	default:
		_ = a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged})
		_ = a.Emit(ctx, &ae.AgentStarted{})
	}
}

// The findings of a run that goes on equal the findings of its log, at each event, also after it
// was resumed by another emitter.
func TestWatchHasTheFindingsOfTheLog(t *testing.T) {
	seed := effort.Seed(t)
	kinds := map[findings.Kind]int{}
	for n := range effort.Of(10, 60, 1000) {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		var log []ae.Event
		var w *hooks.Watch
		now := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
		act := map[findings.Kind]hooks.Action{}
		for _, k := range findings.Kinds() {
			act[k] = hooks.Action(r.IntN(4))
		}
		options := findings.Options{ContextTokens: 30_000, WasteTokens: 10_000}
		open := func() *ae.Emitter {
			w = hooks.NewWatch(hooks.WatchOptions{Options: options, Act: act, Log: func(context.Context, string) iter.Seq2[ae.Event, error] {
				return func(yield func(ae.Event, error) bool) {
					for _, ev := range log {
						if !yield(ev, nil) {
							return
						}
					}
				}
			}})
			o := hooks.Breaker{Watch: w}.Install(ae.EmitterOptions{
				Clock: func() time.Time { return now }, OnViolation: func(*ae.RuleError) {},
				Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error { log = append(log, ev); return nil })},
			})
			fold := findings.NewRun("r", options)
			for i := range log {
				fold.Add(&log[i])
			}
			o.Sinks = append(o.Sinks, ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
				fold.Add(&ev)
				require.Equal(t, fold.Findings(), w.Findings("r"), "event %d of run %d", ev.Sequence, n)
				return nil
			}))
			em, err := ae.NewEmitter(o)
			require.NoError(t, err)
			return em
		}
		em := open()
		run, err := em.Run("r")
		require.NoError(t, err)
		d := &actor{t: t, r: r, run: run, now: &now}
		for _, id := range []string{"a", "b"} {
			require.NoError(t, run.Agent(id).Emit(t.Context(), &ae.AgentStarted{}))
		}
		for range 80 {
			d.act()
			if r.IntN(20) == 0 { // the process is gone
				all := ae.NewFold(ae.FoldOptions{})
				for _, ev := range log {
					all.Apply(ev)
				}
				em = open()
				d.run, err = em.Resume(all.Snapshot())
				require.NoError(t, err)
				require.NoError(t, d.run.Emit(t.Context(), &ae.RunResumed{}))
			}
		}
		all := findings.New(options)
		for _, ev := range log {
			all.Add(&ev)
		}
		for _, f := range all.Findings() {
			kinds[f.Kind]++
		}
		require.True(t, slices.IsSortedFunc(log, func(a, b ae.Event) int { return int(a.Sequence) - int(b.Sequence) }))
	}
	t.Log(kinds)
	require.Len(t, kinds, len(findings.Kinds()), "a kind is never drawn")
}

// A run that hangs is known before its next event, and an open call explains it.
func TestWatchKnowsTheRunsThatStandStill(t *testing.T) {
	now := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
	w := hooks.NewWatch(hooks.WatchOptions{})
	em, err := ae.NewEmitter(hooks.Breaker{Watch: w}.Install(ae.EmitterOptions{Clock: func() time.Time { return now }}))
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	a, ctx := run.Agent("a"), t.Context()
	require.NoError(t, a.Emit(ctx, &ae.AgentStarted{}))
	require.NoError(t, a.Emit(ctx, &ae.ModelReturned{ModelCallID: "m", OneEvent: true}))
	require.Empty(t, w.Idle(now.Add(4*time.Minute)))
	require.Equal(t, map[string]time.Duration{"r": 6 * time.Minute}, w.Idle(now.Add(6*time.Minute)))
	require.Empty(t, w.Findings("r"), "asking changes nothing")

	call, err := a.Call(ctx, &ae.ToolCalled{ToolID: "make"})
	require.NoError(t, err)
	require.Empty(t, w.Idle(now.Add(6*time.Hour)))
	require.NoError(t, call.Return(ctx, ""))
	now = now.Add(6 * time.Minute)
	require.NoError(t, a.Emit(ctx, &ae.AgentEnded{}))
	require.Equal(t, findings.Stall, w.Findings("r")[0].Kind)
	require.Empty(t, w.Idle(now.Add(time.Hour)))
}
