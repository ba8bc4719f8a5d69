package query_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/query"
)

// says returns a query that yields payloads, and then an error if one is given.
func says(err error, payloads ...agentevents.Payload) query.Func {
	return func(context.Context, query.Request) iter.Seq2[agentevents.Event, error] {
		return func(yield func(agentevents.Event, error) bool) {
			for _, p := range payloads {
				if !yield(agentevents.Event{Payload: p}, nil) {
					return
				}
			}
			if err != nil {
				yield(agentevents.Event{}, err)
			}
		}
	}
}

// open returns an emitter that records into rec, and a run that has started.
func open(t *testing.T) (*agentevents.Run, *eventtest.Recorder) {
	em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived})
	run, err := em.Run("r")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &agentevents.RunStarted{}))
	return run, rec
}

func started(session string) *agentevents.AgentStarted {
	return &agentevents.AgentStarted{ProviderSessionID: session, Model: "m"}
}

func TestDo(t *testing.T) {
	ended := &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Result: "hi"}
	for _, test := range []struct {
		name    string
		request query.Request
		ask     query.Func
		err     string
		want    []any
	}{
		{"the provider chooses the session", query.Request{Task: "greet"}, says(nil, started("s1"), &agentevents.TextCompleted{Text: "hi"}, ended), "", []any{
			"a agent.started greet model=m providerSessionId=s1 prompt=hello", "a agent.text hi", "a agent.ended converged"}},
		{"the caller chooses it", query.Request{SessionID: "s1"}, says(nil, started("s1"), ended), "", []any{
			"a agent.started model= providerSessionId=s1 resumed=", "a agent.ended converged"}},
		{"the provider has another", query.Request{SessionID: "s1"}, says(nil, started("s2"), ended), "", []any{
			"a agent.started providerSessionId=s1", "a agent.session.changed s2", "a agent.ended converged"}},
		{"a session goes on", query.Request{SessionID: "s1", Resume: true}, says(nil, ended), "", []any{
			"a agent.started providerSessionId=s1 resumed=true", "a agent.ended converged"}},
		{"no start", query.Request{}, says(nil, ended), "", []any{"a agent.started", "a agent.ended converged"}},
		{"an error", query.Request{}, says(errors.New("offline"), started("s1")), "query: a: offline", []any{
			"a agent.started providerSessionId=s1", "a agent.ended outcome= error.message=offline"}},
		{"an error at once", query.Request{}, says(errors.New("offline")), "query: a: offline", []any{
			"a agent.started", "a agent.ended error.message=offline"}},
		{"cancelled", query.Request{}, says(context.Canceled, started("s1")), "query: a: context canceled", []any{
			"a agent.started", "a agent.ended aborted"}},
		{"broken off", query.Request{}, says(nil, started("s1")), "query: a: query: the answer has no end", []any{
			"a agent.started", "a agent.ended error.message=\"query: the answer has no end\""}},
		{"no payload", query.Request{}, says(nil, nil), "query: a: query: an event has no payload", []any{
			"a agent.started", "a agent.ended"}},
		{"another turn", query.Request{}, says(nil, started("s1"), ended, &agentevents.AgentStarted{Resumed: true}, ended), "", []any{
			"a agent.started", "a agent.ended", "a agent.started resumed=true", "a agent.ended"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run, rec := open(t)
			test.request.Prompt = `"hello"`
			end, err := query.Do(t.Context(), run.Agent("a"), test.ask, test.request)
			if test.err == "" {
				require.NoError(t, err)
				require.Equal(t, "hi", end.Result)
			} else {
				require.EqualError(t, err, test.err)
			}
			rec.Filter(eventtest.NotSynthetic).WantExactly(t, append([]any{"run.started"}, test.want...)...)
		})
	}
}

// A cancelled answer has the reason that the caller gives.
func TestCauseOfACancellation(t *testing.T) {
	run, rec := open(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := query.Do(ctx, run.Agent("a"), func(ctx context.Context, _ query.Request) iter.Seq2[agentevents.Event, error] {
		return func(yield func(agentevents.Event, error) bool) {
			cancel(errors.New("the person pressed stop"))
			yield(agentevents.Event{}, ctx.Err())
		}
	}, query.Request{})
	require.ErrorIs(t, err, context.Canceled)
	rec.Want(t, "a agent.ended aborted error.code=cancelled error.message=\"context canceled: the person pressed stop\"")
}

// Acts of sub-agents are theirs, and of the agent's own id are the agent's.
func TestSubAgents(t *testing.T) {
	run, rec := open(t)
	ask := func(_ context.Context, r query.Request) iter.Seq2[agentevents.Event, error] {
		require.Equal(t, "a", r.AgentID)
		require.Equal(t, "a", r.NodeID)
		return func(yield func(agentevents.Event, error) bool) {
			for _, ev := range []agentevents.Event{
				{AgentID: "a", Payload: started("s1")},
				{Payload: &agentevents.ToolCalled{CallID: "c1", ToolID: "Task"}},
				{AgentID: "helper", ParentCallID: "c1", Payload: &agentevents.AgentStarted{}},
				{AgentID: "helper", Payload: &agentevents.TextCompleted{Text: "done"}},
				{AgentID: "helper", Payload: &agentevents.AgentEnded{Outcome: agentevents.OutcomePartial}},
				{Payload: &agentevents.ToolReturned{CallID: "c1", ToolID: "Task", Status: agentevents.ToolStatusOK}},
				{AgentID: "a", Payload: &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}},
			} {
				if !yield(ev, nil) {
					return
				}
			}
		}
	}
	end, err := query.Do(t.Context(), run.Agent("a"), ask, query.Request{})
	require.NoError(t, err)
	require.Equal(t, agentevents.OutcomeConverged, end.Outcome)
	rec.WantLaws(t, eventtest.LawOptions{Open: true})
	helper := rec.Snapshot("r").Agents["helper"]
	require.Equal(t, []string{"a", "c1"}, []string{helper.ParentAgentID, helper.ParentCallID})
}

// Open calls and blocks of an answer end with it: the agent can be asked again.
func TestLeftOpen(t *testing.T) {
	boom := errors.New("boom")
	for _, test := range []struct {
		name string
		err  error
		ends []agentevents.Payload // of the answer
		want []any
	}{
		{"an error", boom, nil, []any{
			"helper agent.toolReturned Read error error.message=boom", "helper agent.ended error.message=boom",
			"a agent.toolReturned Task error error.message=boom", "a agent.ended error.message=boom"}},
		{"somebody stops it", context.Canceled, nil, []any{
			"helper agent.toolReturned Read cancelled", "helper agent.ended aborted",
			"a agent.toolReturned Task cancelled", "a agent.ended aborted"}},
		{"no end of the helper", nil, []agentevents.Payload{
			&agentevents.ToolReturned{CallID: "c1", ToolID: "Task", Status: agentevents.ToolStatusOK}, &agentevents.AgentEnded{Result: "1"}, &agentevents.AgentEnded{Result: "2"},
		}, []any{"a agent.toolReturned Task ok", "a agent.ended result=1", "helper agent.toolReturned Read error", `helper agent.ended error.message="query: the answer has no end"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{
				Lifecycle: agentevents.LifecycleDerived, OnViolation: func(*agentevents.RuleError) {}, // of the second end
			})
			run, err := em.Run("r")
			require.NoError(t, err)
			ask := func(ctx context.Context, r query.Request) iter.Seq2[agentevents.Event, error] {
				return func(yield func(agentevents.Event, error) bool) {
					_ = yield(agentevents.Event{Payload: &agentevents.ToolCalled{CallID: "c1", ToolID: "Task"}}, nil) &&
						yield(agentevents.Event{AgentID: "helper", ParentCallID: "c1", Payload: &agentevents.AgentStarted{}}, nil) &&
						yield(agentevents.Event{AgentID: "helper", Payload: &agentevents.ToolCalled{CallID: "c2", ToolID: "Read"}}, nil)
					says(test.err, test.ends...)(ctx, r)(yield)
				}
			}
			for range 2 {
				end, _ := query.Do(t.Context(), run.Agent("a"), ask, query.Request{})
				require.NotEqual(t, "2", end.Result)
			}
			want := append([]any{"a agent.started", "a agent.toolCalled Task", "helper agent.started", "helper agent.toolCalled Read"}, test.want...)
			rec.Filter(eventtest.NotSynthetic).WantExactly(t, append(want, want...)...)
		})
	}
}

// The start with the session is on the log before the agent is asked.
func TestSessionFirst(t *testing.T) {
	run, rec := open(t)
	ask := func(ctx context.Context, _ query.Request) iter.Seq2[agentevents.Event, error] {
		rec.Want(t, "a agent.started providerSessionId=s1")
		require.Equal(t, "a", agentevents.AgentFromContext(ctx).ID())
		return says(nil, &agentevents.AgentEnded{})(ctx, query.Request{})
	}
	_, err := query.Do(t.Context(), run.Agent("a"), ask, query.Request{SessionID: "s1"})
	require.NoError(t, err)
}

// An agent whose start is refused is not asked.
func TestNotAsked(t *testing.T) {
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	require.NoError(t, em.Close(t.Context()))
	asked := false
	_, err = query.Do(t.Context(), run.Agent("a"), func(context.Context, query.Request) iter.Seq2[agentevents.Event, error] {
		asked = true
		return says(nil)(t.Context(), query.Request{})
	}, query.Request{SessionID: "s1"})
	require.ErrorIs(t, err, agentevents.ErrClosed)
	require.False(t, asked)
	_, err = query.Do(t.Context(), run.Agent("a"), nil, query.Request{})
	require.EqualError(t, err, "query: the function is nil")
}

// An act that the log refuses does not stop the agent.
func TestRefused(t *testing.T) {
	em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{
		Lifecycle: agentevents.LifecycleDerived, OnViolation: func(*agentevents.RuleError) {},
	})
	run, err := em.Run("r")
	require.NoError(t, err)
	end, err := query.Do(t.Context(), run.Agent("a"), says(nil, started("s1"),
		&agentevents.ToolReturned{CallID: "never called", ToolID: "x", Status: agentevents.ToolStatusOK},
		&agentevents.AgentEnded{Result: "hi"}), query.Request{})
	var rule *agentevents.RuleError
	require.ErrorAs(t, err, &rule)
	require.Equal(t, agentevents.RuleToolCallOpen, rule.Rule)
	require.Equal(t, "hi", end.Result)
	rec.Want(t, "a agent.started", "a agent.ended")
}

// Also a query that panics, or ends its goroutine, ends the agent.
func TestPanic(t *testing.T) {
	for _, test := range []struct {
		name, message string
		stop          func()
	}{
		{"panic", `error.message="panic: boom"`, func() { panic("boom") }},
		{"goexit", `error.message="the query ended its goroutine"`, runtime.Goexit},
	} {
		t.Run(test.name, func(t *testing.T) {
			run, rec := open(t)
			ask := func(context.Context, query.Request) iter.Seq2[agentevents.Event, error] {
				return func(yield func(agentevents.Event, error) bool) {
					yield(agentevents.Event{Payload: started("s1")}, nil)
					test.stop()
				}
			}
			var recovered any
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { recovered = recover() }()
				_, _ = query.Do(t.Context(), run.Agent("a"), ask, query.Request{})
			}()
			<-done
			if test.name == "panic" {
				require.Equal(t, "boom", recovered)
			}
			rec.Filter(eventtest.NotSynthetic).WantExactly(t, "run.started", "a agent.started", "a agent.ended "+test.message)
		})
	}
}
