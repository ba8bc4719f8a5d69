package agentevents_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

type city struct {
	Name string `json:"name"`
}

type weather struct {
	Degrees int `json:"degrees"`
}

// badJSON panics when it is written.
type badJSON struct{}

func (badJSON) MarshalJSON() ([]byte, error) { panic("bad") }

// atWork returns a context with an agent that has started, and its recorder.
func atWork(t *testing.T) (context.Context, *agentevents.Agent, *eventtest.Recorder) {
	em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived})
	run, err := em.Run("r1")
	require.NoError(t, err)
	a := run.Agent("guide")
	require.NoError(t, a.Emit(t.Context(), &agentevents.AgentStarted{}))
	return agentevents.ContextWithAgent(t.Context(), a), a, rec
}

// calls returns the tool calls on the log, each as its call and its return.
func calls(rec *eventtest.Recorder) (out []agentevents.Payload) {
	for _, ev := range rec.Events() {
		switch ev.Payload.(type) {
		case *agentevents.ToolCalled, *agentevents.ToolReturned:
			out = append(out, ev.Payload)
		}
	}
	return out
}

func TestWrapTool(t *testing.T) {
	ctx, a, rec := atWork(t)
	forecast := agentevents.WrapTool("forecast", func(ctx context.Context, in city) (weather, error) {
		require.NotNil(t, agentevents.CallFromContext(ctx))
		if in.Name == "" {
			return weather{-1}, io.EOF
		}
		return weather{7}, nil
	})
	out, err := forecast(ctx, city{"Oslo"})
	require.NoError(t, err)
	require.Equal(t, weather{7}, out)
	out, err = forecast(ctx, city{})
	require.True(t, err == io.EOF, "the error of the tool is untouched")
	require.Equal(t, weather{-1}, out)

	got := calls(rec)
	require.Len(t, got, 4)
	require.Equal(t, agentevents.JSON(`{"name":"Oslo"}`), got[0].(*agentevents.ToolCalled).Arguments)
	require.Equal(t, agentevents.JSON(`{"degrees":7}`), got[1].(*agentevents.ToolReturned).Result)
	failed := got[3].(*agentevents.ToolReturned)
	require.Equal(t, agentevents.ToolStatusError, failed.Status)
	require.Equal(t, "EOF", failed.Error.V.Message)
	require.NoError(t, a.Emit(ctx, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}))
	rec.WantLaws(t, eventtest.LawOptions{})
}

func TestWrapToolWithoutAgent(t *testing.T) {
	double := agentevents.WrapTool("double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	out, err := double(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, 4, out)
}

func TestWrapToolPanics(t *testing.T) {
	ctx, _, rec := atWork(t)
	tool := agentevents.WrapTool("boom", func(_ context.Context, how string) (string, error) {
		if how == "panic" {
			panic("boom")
		}
		runtime.Goexit()
		return "", nil
	})
	require.PanicsWithValue(t, "boom", func() { _, _ = tool(ctx, "panic") })
	done := make(chan struct{})
	go func() { defer close(done); _, _ = tool(ctx, "exit") }()
	<-done
	got := calls(rec)
	require.Len(t, got, 4)
	require.Equal(t, "panic", got[1].(*agentevents.ToolReturned).Error.V.Code)
	require.Equal(t, agentevents.ToolStatusError, got[3].(*agentevents.ToolReturned).Status)
}

func TestWrapToolUnwritable(t *testing.T) {
	ctx, _, rec := atWork(t)
	tool := agentevents.WrapTool("odd", func(context.Context, chan int) (badJSON, error) { return badJSON{}, nil })
	_, err := tool(ctx, nil)
	require.NoError(t, err)
	got := calls(rec)
	require.Equal(t, agentevents.JSON(`{"unwritable":"chan int"}`), got[0].(*agentevents.ToolCalled).Arguments)
	require.Equal(t, agentevents.JSON(`{"unwritable":"agentevents_test.badJSON"}`), got[1].(*agentevents.ToolReturned).Result)
}

// A framework's adapter that records the call gives it to the tool: it is not recorded twice,
// but a call of the tool that the tool makes itself is.
func TestWrapToolInOpenCall(t *testing.T) {
	ctx, a, rec := atWork(t)
	var count func(context.Context, int) (int, error)
	count = agentevents.WrapTool("count", func(ctx context.Context, n int) (int, error) {
		if n == 0 {
			return 0, nil
		}
		below, err := count(ctx, n-1)
		return below + 1, err
	})
	c, err := a.Call(ctx, &agentevents.ToolCalled{CallID: "toolu_1", ToolID: "count", Arguments: `1`})
	require.NoError(t, err)
	ctx = agentevents.ContextWithCall(ctx, c)
	n, err := count(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Len(t, calls(rec), 3, "the open call, and the whole of the inner one")

	require.NoError(t, c.Return(ctx, "1"))
	_, err = count(ctx, 0)
	require.NoError(t, err)
	require.Len(t, calls(rec), 6, "the call has returned: another is recorded")
}

// Only a guard stops a tool.
func TestWrapToolRefused(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		o := agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleStrict, OnViolation: func(*agentevents.RuleError) {}}
		if guarded {
			o.Guard = func(ev agentevents.Event) *agentevents.RuleError {
				if _, ok := ev.Payload.(*agentevents.ToolCalled); ok {
					return &agentevents.RuleError{Rule: "no-tools", Detail: "no tools today"}
				}
				return nil
			}
		}
		em, rec := eventtest.RecordWith(t, o)
		run, err := em.Run("r1")
		require.NoError(t, err)
		a := run.Agent("guide")
		require.NoError(t, a.Emit(t.Context(), &agentevents.AgentStarted{}))
		ran := false
		tool := agentevents.WrapTool("tool", func(context.Context, int) (int, error) { ran = true; return 1, nil })
		_, err = tool(agentevents.ContextWithAgent(t.Context(), a), 1) // in status thinking, which the strict table refuses
		require.Equal(t, guarded, err != nil, "%v", err)
		require.Equal(t, !guarded, ran)
		require.Empty(t, calls(rec))
	}
}

func TestModelCallInContext(t *testing.T) {
	ctx, a, rec := atWork(t)
	tool, err := a.Call(ctx, &agentevents.ToolCalled{ToolID: "ask"})
	require.NoError(t, err)
	require.Nil(t, agentevents.ModelCallFromContext(ctx))
	model, err := a.Model(ctx, &agentevents.ModelCalled{Model: "m"})
	require.NoError(t, err)
	ctx = agentevents.ContextWithModelCall(agentevents.ContextWithCall(ctx, tool), model)
	require.Same(t, model, agentevents.ModelCallFromContext(ctx))
	require.Same(t, tool, agentevents.CallFromContext(ctx), "the tool call is of the same agent")
	require.Nil(t, agentevents.ModelCallFromContext(agentevents.ContextWithCall(ctx, tool)))
	other := agentevents.ContextWithModelCall(agentevents.ContextWithAgent(ctx, a.Agent("sub")), model)
	require.Nil(t, agentevents.CallFromContext(other))
	require.Equal(t, "guide", agentevents.AgentFromContext(other).ID())

	require.True(t, model.Open())
	usage := agentevents.Some(agentevents.Usage{InputTokens: 3, OutputTokens: 4})
	require.NoError(t, model.Piece(ctx))
	require.NoError(t, model.Note(ctx, &agentevents.ModelReturned{Model: "m-1", RequestID: "req_1", FinishReasons: []string{"length"}}))
	require.NoError(t, model.Note(ctx, &agentevents.ModelReturned{Usage: usage, RequestID: "req_2", FinishReasons: []string{"stop"}}))
	require.NoError(t, model.Return(ctx, &agentevents.ModelReturned{Model: "m-2"}))
	require.False(t, model.Open())
	require.ErrorIs(t, model.Note(ctx, &agentevents.ModelReturned{}), agentevents.ErrClosed)
	require.ErrorIs(t, model.Piece(ctx), agentevents.ErrClosed)

	events := rec.Events()
	got := events[len(events)-1].Payload.(*agentevents.ModelReturned)
	require.Equal(t, usage, got.Usage)
	require.Equal(t, "m-2", got.Model, "the model given to Return counts")
	require.Equal(t, "req_2", got.RequestID)
	require.Equal(t, []string{"stop"}, got.FinishReasons)
	require.True(t, got.TimeToFirstToken.OK)

	var none *agentevents.ModelCall
	require.NoError(t, none.Note(ctx, got))
	require.NoError(t, none.Piece(ctx))
	require.False(t, none.Open())
}

// A failure without a code has the client's code, unless a later attempt was answered.
func TestNoteOfAnError(t *testing.T) {
	ctx, a, rec := atWork(t)
	busy := &agentevents.ModelReturned{Error: agentevents.Some(agentevents.ErrorInfo{Code: "503", Message: "busy", Retryable: agentevents.Some(true)})}
	for _, tc := range []struct {
		notes []*agentevents.ModelReturned
		err   error
		want  agentevents.ErrorInfo
	}{
		{[]*agentevents.ModelReturned{busy, {Provider: "p"}}, errors.New("no answer"), agentevents.ErrorInfo{Code: "503", Message: "no answer", Retryable: agentevents.Some(true)}},
		{[]*agentevents.ModelReturned{busy}, &agentevents.ToolError{Code: "own"}, agentevents.ErrorInfo{Code: "own", Message: "own"}},
		{[]*agentevents.ModelReturned{busy}, context.Canceled, agentevents.ErrorInfo{Code: "cancelled", Message: "context canceled"}},
		{[]*agentevents.ModelReturned{busy, {FinishReasons: []string{"stop"}}}, errors.New("bad answer"), agentevents.ErrorInfo{Message: "bad answer"}},
	} {
		call, err := a.Model(ctx, &agentevents.ModelCalled{})
		require.NoError(t, err)
		for _, p := range tc.notes {
			require.NoError(t, call.Note(ctx, p))
		}
		require.NoError(t, call.Fail(ctx, tc.err))
		events := rec.Events()
		require.Equal(t, agentevents.Some(tc.want), events[len(events)-1].Payload.(*agentevents.ModelReturned).Error)
	}
	call, err := a.Model(ctx, &agentevents.ModelCalled{})
	require.NoError(t, err)
	require.NoError(t, call.Note(ctx, busy))
	require.NoError(t, call.Return(ctx, nil))
	events := rec.Events()
	require.False(t, events[len(events)-1].Payload.(*agentevents.ModelReturned).Error.OK, "it was tried again")
}

func TestJSONOfReplacesUnwritableValues(t *testing.T) {
	for _, tc := range []struct {
		v    any
		want agentevents.JSON
	}{
		{map[string]any{"a": "<"}, `{"a":"<"}`}, {nil, "null"}, {agentevents.JSON("as it is"), "as it is"},
		{make(chan int), `{"unwritable":"chan int"}`}, {badJSON{}, `{"unwritable":"agentevents_test.badJSON"}`},
	} {
		require.Equal(t, tc.want, agentevents.JSONOf(tc.v))
	}
}
