package otelhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/spans"
	"github.com/agentevents/agentevents/otelhook"
)

var _ sdktrace.IDGenerator = otelhook.IDGenerator()

var (
	_ ae.Sink     = (*otelhook.Hook)(nil)
	_ ae.Tracer   = (*otelhook.Hook)(nil)
	_ ae.Resumer  = (*otelhook.Hook)(nil)
	_ ae.Releaser = (*otelhook.Hook)(nil)
	_ io.Closer   = (*otelhook.Hook)(nil)
)

// A rig is an emitter with a hook, whose spans are kept.
type rig struct {
	hook *otelhook.Hook
	out  *tracetest.InMemoryExporter
	tp   *sdktrace.TracerProvider
	em   *ae.Emitter

	mu    sync.Mutex
	log   eventtest.Recorder
	quiet bool // without a log; set before the first event
	now   time.Time
}

func newRig(t testing.TB, o otelhook.Options, more ...sdktrace.TracerProviderOption) *rig {
	t.Helper()
	r := &rig{out: tracetest.NewInMemoryExporter(), now: time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)}
	r.tp = sdktrace.NewTracerProvider(append(more, sdktrace.WithSyncer(r.out))...)
	if o.TracerProvider == nil {
		o.TracerProvider = r.tp
	}
	if o.Clock == nil {
		o.Clock = func() time.Time { r.mu.Lock(); defer r.mu.Unlock(); return r.now }
	}
	var err error
	r.hook, err = otelhook.New(o)
	require.NoError(t, err)
	keep := ae.SinkFunc(func(ctx context.Context, ev ae.Event) error {
		if r.quiet {
			return nil
		}
		return r.log.WriteEvent(ctx, ev)
	})
	r.em, err = ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Clock: o.Clock, Sinks: []ae.Sink{keep, r.hook}})
	require.NoError(t, err)
	return r
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// last returns the last event of the log.
func (r *rig) last() ae.Event {
	events := r.log.Events()
	return events[len(events)-1]
}

func (r *rig) run(t testing.TB, id string) *ae.Run {
	t.Helper()
	run, err := r.em.Run(id)
	require.NoError(t, err)
	return run
}

func emit(t testing.TB, e interface {
	Emit(context.Context, ae.Payload) error
}, payloads ...ae.Payload) {
	t.Helper()
	for _, p := range payloads {
		require.NoError(t, e.Emit(context.Background(), p))
	}
}

// spans are those that were exported, in the order of their starts.
func (r *rig) spans() []tracetest.SpanStub {
	list := slices.Clone(r.out.GetSpans())
	slices.SortStableFunc(list, func(a, b tracetest.SpanStub) int {
		return int(value(a, "agentevents.seq.first").AsInt64() - value(b, "agentevents.seq.first").AsInt64())
	})
	return list
}

func (r *rig) names() (names []string) {
	for _, s := range r.spans() {
		names = append(names, s.Name)
	}
	return names
}

func value(s tracetest.SpanStub, key attribute.Key) attribute.Value {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value
		}
	}
	return attribute.Value{}
}

// work is a run of two agents, of which one calls the other with a tool.
func work(t testing.TB, r *rig, ctx context.Context, id string) {
	t.Helper()
	run := r.run(t, id).With(ae.Scope{SessionID: "s"})
	require.NoError(t, run.Emit(ctx, &ae.RunStarted{Name: "release"}))
	lead := run.Agent("lead")
	emit(t, lead, &ae.AgentStarted{Task: "x"}, &ae.ModelCalled{ModelCallID: "m", Model: "claude", Provider: "anthropic"},
		&ae.ModelReturned{ModelCallID: "m", Usage: ae.Some(ae.Usage{InputTokens: 5, OutputTokens: 7})})
	call, err := lead.Call(ctx, &ae.ToolCalled{ToolID: "Task", CallID: "c"})
	require.NoError(t, err)
	sub := call.Agent("sub")
	emit(t, sub, &ae.AgentStarted{})
	r.pass(time.Second)
	emit(t, sub, &ae.ToolReturned{CallID: "x", ToolID: "Bash", Status: ae.ToolStatusError, OneEvent: true, Error: ae.Some(ae.ErrorInfo{Code: "timeout", Message: "secret"})},
		&ae.AgentEnded{Outcome: ae.OutcomeConverged, Usage: ae.Some(ae.Usage{InputTokens: 100})})
	require.NoError(t, call.Return(ctx, "1"))
	emit(t, lead, &ae.AgentEnded{Outcome: ae.OutcomeConverged, Usage: ae.Some(ae.Usage{InputTokens: 5, OutputTokens: 7})})
	emit(t, run, &ae.RunCompleted{})
}

// wantOneTree checks that the spans have one root and that every parent is there.
func wantOneTree(t testing.TB, list []tracetest.SpanStub) {
	t.Helper()
	ids := map[trace.SpanID]bool{}
	roots := 0
	for _, s := range list { // there may be very many
		switch id := s.SpanContext.SpanID(); {
		case ids[id]:
			t.Fatalf("%s has the id of another span", s.Name)
		case s.SpanContext.TraceID() != list[0].SpanContext.TraceID():
			t.Fatalf("%s is in another trace", s.Name)
		case s.EndTime.Before(s.StartTime):
			t.Fatalf("%s ends before it starts", s.Name)
		default:
			ids[id] = true
		}
	}
	for _, s := range list {
		if !s.Parent.IsValid() {
			roots++
		} else if !ids[s.Parent.SpanID()] {
			t.Fatalf("%s has a parent that was not exported", s.Name)
		}
	}
	require.Equal(t, 1, roots)
}

func TestARunIsOneTree(t *testing.T) {
	r := newRig(t, otelhook.Options{})
	work(t, r, context.Background(), "r")
	list := r.spans()
	wantOneTree(t, list)
	require.Equal(t, []string{"invoke_workflow release", "invoke_agent lead", "chat claude", "execute_tool Task", "invoke_agent sub", "execute_tool Bash"}, r.names())
	for i, parent := range []int{-1, 0, 1, 1, 3, 4} {
		if parent >= 0 {
			require.Equal(t, list[parent].SpanContext.SpanID(), list[i].Parent.SpanID(), list[i].Name)
		}
		require.Equal(t, otelhook.ScopeName, list[i].InstrumentationScope.Name)
		require.Empty(t, list[i].InstrumentationScope.SchemaURL)
		require.Equal(t, "s", value(list[i], "gen_ai.conversation.id").AsString())
		require.NotEmpty(t, value(list[i], "gen_ai.operation.name").AsString())
		require.Equal(t, list[i].Name == "execute_tool Task" || list[i].Name == "execute_tool Bash", value(list[i], "gen_ai.tool.name").AsString() != "", "only tools have a tool's name")
		require.Equal(t, list[i].Name == "chat claude", value(list[i], "gen_ai.request.model").AsString() != "", "only model calls have a model")
	}
	require.Equal(t, trace.SpanKindClient, list[2].SpanKind)
	require.Equal(t, codes.Unset, list[0].Status.Code, "a successful span has no status")
	require.Equal(t, sdktrace.Status{Code: codes.Error}, list[5].Status, "the text of an error is content")
	require.Equal(t, "timeout", value(list[5], "error.type").AsString())
	require.Equal(t, otelhook.Stats{Spans: 6, Closed: map[string]uint64{}}, r.hook.Stats())
}

func TestTokensAreCountedOnce(t *testing.T) {
	r := newRig(t, otelhook.Options{})
	work(t, r, context.Background(), "r")
	sum := int64(0)
	for _, s := range r.spans() {
		sum += value(s, "gen_ai.usage.input_tokens").AsInt64()
	}
	require.EqualValues(t, 5+100, sum, "the lead's model call has its tokens, the other agent has none")
	require.False(t, value(r.spans()[1], "gen_ai.usage.input_tokens").AsInt64() > 0)
	require.EqualValues(t, 5, value(r.spans()[1], "agentevents.usage.total.input_tokens").AsInt64())
	require.EqualValues(t, 100, value(r.spans()[4], "agentevents.usage.total.input_tokens").AsInt64())
}

func TestTheLogHasTheIDsOfTheSpans(t *testing.T) {
	r := newRig(t, otelhook.Options{})
	work(t, r, context.Background(), "r")
	bySequence := map[int64]tracetest.SpanStub{}
	for _, s := range r.spans() {
		bySequence[value(s, "agentevents.seq.first").AsInt64()] = s
	}
	opened := 0
	for _, ev := range r.log.Events() {
		require.Len(t, ev.TraceID, 32)
		require.Len(t, ev.SpanID, 16)
		if s, ok := bySequence[int64(ev.Sequence)]; ok {
			opened++
			require.Equal(t, s.SpanContext.TraceID().String(), ev.TraceID)
			require.Equal(t, s.SpanContext.SpanID().String(), ev.SpanID, "%s", ev.Kind())
			if s.Parent.IsValid() {
				require.Equal(t, s.Parent.SpanID().String(), ev.ParentSpanID)
			}
		}
	}
	require.Equal(t, 6, opened)
}

func TestTheHostsSpanIsTheParentOfTheRun(t *testing.T) {
	host := otelhook.ContextFromEnviron(context.Background(), []string{"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	t.Run("joined", func(t *testing.T) {
		r := newRig(t, otelhook.Options{})
		work(t, r, host, "r")
		root := r.spans()[0]
		require.Equal(t, "b7ad6b7169203331", root.Parent.SpanID().String())
		require.True(t, root.Parent.IsRemote())
		require.Equal(t, "0af7651916cd43dd8448eb211c80319c", r.log.Events()[0].TraceID)
		require.Equal(t, "b7ad6b7169203331", r.log.Events()[0].ParentSpanID)
	})
	t.Run("a root of its own", func(t *testing.T) {
		r := newRig(t, otelhook.Options{NewRoot: true})
		work(t, r, host, "r")
		root := r.spans()[0]
		require.False(t, root.Parent.IsValid())
		require.Equal(t, "b7ad6b7169203331", root.Links[0].SpanContext.SpanID().String())
		wantOneTree(t, r.spans())
	})
	t.Run("not sampled", func(t *testing.T) {
		off := otelhook.ContextFromEnviron(context.Background(), []string{"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"})
		r := newRig(t, otelhook.Options{})
		work(t, r, off, "r")
		require.Empty(t, r.spans())
		for _, ev := range r.log.Events() {
			require.Equal(t, "0af7651916cd43dd8448eb211c80319c", ev.TraceID, "the trace id goes on")
		}
		require.Zero(t, r.hook.Stats().Open)
	})
}

// TestIDsAreDerivedWithTheGenerator: two providers make the same ids of the same run.
func TestIDsAreDerivedWithTheGenerator(t *testing.T) {
	ids := func(more ...sdktrace.TracerProviderOption) (ids []string) {
		r := newRig(t, otelhook.Options{}, more...)
		work(t, r, context.Background(), "r")
		wantOneTree(t, r.spans())
		for _, s := range r.spans() {
			ids = append(ids, s.SpanContext.TraceID().String()+s.SpanContext.SpanID().String())
		}
		return ids
	}
	g := sdktrace.WithIDGenerator(otelhook.IDGenerator())
	require.Equal(t, ids(g), ids(g))
	require.NotEqual(t, ids(), ids())
}

func TestSpansOfAToolAreBelowIt(t *testing.T) {
	r := newRig(t, otelhook.Options{})
	run := r.run(t, "r")
	var env []string
	a := run.Agent("a")
	emit(t, a, &ae.AgentStarted{})
	_, err := a.Do(context.Background(), &ae.ToolCalled{ToolID: "Fetch"}, func(ctx context.Context) (ae.JSON, error) {
		model, err := a.Model(ctx, &ae.ModelCalled{Model: "x"})
		require.NoError(t, err)
		_, span := r.tp.Tracer("http").Start(r.hook.Context(ae.ContextWithModelCall(ctx, model), "r"), "POST")
		span.End()
		require.NoError(t, model.Return(ctx, nil))
		ctx = r.hook.Context(ae.ContextWithModelCall(ctx, model), "r") // which has returned
		env = otelhook.Environ(ctx)
		_, span = r.tp.Tracer("http").Start(ctx, "GET")
		span.End()
		return "1", nil
	})
	require.NoError(t, err)
	emit(t, a, &ae.AgentEnded{Outcome: ae.OutcomeConverged})
	emit(t, run, &ae.RunCompleted{})
	named := map[string]tracetest.SpanStub{}
	for _, s := range r.spans() {
		named[s.Name] = s
	}
	get, tool := named["GET"], named["execute_tool Fetch"]
	require.Equal(t, named["chat x"].SpanContext.SpanID(), named["POST"].Parent.SpanID())
	require.Equal(t, tool.SpanContext.SpanID(), get.Parent.SpanID())
	require.Equal(t, []string{"TRACEPARENT=00-" + tool.SpanContext.TraceID().String() + "-" + tool.SpanContext.SpanID().String() + "-01"}, env)
	require.Empty(t, otelhook.Environ(context.Background()))
}

func TestAnIdleRunIsClosedAtItsLastEvent(t *testing.T) {
	r := newRig(t, otelhook.Options{IdleTTL: time.Minute})
	run := r.run(t, "r")
	emit(t, run.Agent("a"), &ae.AgentStarted{}, &ae.ToolCalled{CallID: "c", ToolID: "Read"})
	last := r.now
	r.pass(59 * time.Second)
	r.hook.Expire()
	require.Empty(t, r.spans())
	r.pass(time.Second)
	r.hook.Expire()
	list := r.spans()
	require.Len(t, list, 3)
	for _, s := range list {
		require.Equal(t, last.Add(1), s.EndTime, "no span has a duration of 0")
		require.Equal(t, "idle_timeout", value(s, "agentevents.closed.reason").AsString())
		require.Equal(t, "agentevents.incomplete", value(s, "error.type").AsString())
	}
	emit(t, run.Agent("a"), &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK})
	require.Len(t, r.spans(), 3, "a late end makes no second span")
	require.EqualValues(t, 1, r.hook.Stats().Unmatched)
	require.Equal(t, list[0].SpanContext.SpanID().String(), r.last().SpanID, "the log still has its place")

	r.pass(2 * time.Minute)
	emit(t, r.run(t, "other"), &ae.RunStarted{})
	r.pass(2 * time.Minute)
	emit(t, r.run(t, "third"), &ae.RunStarted{})
	require.EqualValues(t, 4, r.hook.Stats().Closed["idle_timeout"], "events of other runs do it as well")
}

// TestRunsThatNeverEndAreBounded: a run that is not heard of again costs nothing in the end.
func TestRunsThatNeverEndAreBounded(t *testing.T) {
	const maxOpen, each, leak = 999, 3, 100 // whole runs of three spans; bytes a run; the hook's memory of one is over 1,000
	runs := effort.Of(4000, 10_000, 100_000)
	ended := &counter{}
	o := otelhook.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(ended)), MaxOpen: maxOpen, KeepRuns: 100}
	r, reader := metered(t, o)
	ctx := context.Background()
	var half uint64
	for i := range runs {
		if i == runs/2 {
			half = heap()
		}
		r.pass(time.Millisecond)
		for k, p := range []ae.Payload{&ae.AgentStarted{}, &ae.ToolCalled{CallID: "c", ToolID: "Read"}} {
			require.NoError(t, r.hook.WriteEvent(ctx, ae.Event{RunID: fmt.Sprint(i), AgentID: "a", Sequence: uint64(k), Time: r.now, Payload: p}))
		}
		if open := r.hook.Stats().Open; open > maxOpen {
			t.Fatalf("%d spans are open after run %d", open, i)
		}
	}
	require.LessOrEqual(t, int64(heap())-int64(half), int64(leak*runs/2), "the heap of the second half")
	require.Contains(t, measured(t, reader), fmt.Sprintf("agentevents.hook.open [{span}] {} %d", maxOpen))
	evicted := fmt.Sprintf("agentevents.hook.closed [{span}] {agentevents.closed.reason=evicted} %d", each*runs-maxOpen)
	require.Contains(t, measured(t, reader), evicted)
	require.EqualValues(t, each*runs-maxOpen, r.hook.Stats().Closed["evicted"])
	require.NoError(t, r.hook.Close())
	require.Zero(t, r.hook.Stats().Open)
	require.Contains(t, measured(t, reader), "agentevents.hook.open [{span}] {} 0")
	require.EqualValues(t, each*runs, ended.spans.Load())
}

// heap is the memory in use after a collection.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A counter is an exporter that counts spans and keeps none.
type counter struct{ spans atomic.Int64 }

func (c *counter) ExportSpans(_ context.Context, list []sdktrace.ReadOnlySpan) error {
	c.spans.Add(int64(len(list)))
	return nil
}

func (c *counter) Shutdown(context.Context) error { return nil }

// TestEventsInAWrongOrder: logs of other programs have them. No span ends before it begins,
// and an end whose start is missing makes one.
func TestEventsInAWrongOrder(t *testing.T) {
	type event struct {
		at    int // in seconds
		agent string
		p     ae.Payload
	}
	call := func(id string) ae.Payload { return &ae.ToolCalled{CallID: id, ToolID: "tool-" + id} }
	done := func(id string) ae.Payload {
		return &ae.ToolReturned{CallID: id, ToolID: "tool-" + id, Status: ae.ToolStatusOK}
	}
	run, over, start, end := &ae.RunStarted{Name: "n"}, &ae.RunCompleted{}, &ae.AgentStarted{}, &ae.AgentEnded{}
	for _, c := range []struct {
		name      string
		events    []event
		want      string
		unmatched int
	}{
		{"a child after its parent's end", []event{{0, "", run}, {1, "a", start}, {2, "a", end}, {3, "a", call("c")}, {4, "a", done("c")}, {5, "", over}}, `
invoke_workflow n 0-5
  invoke_agent a 1-2
    execute_tool tool-c 3-4
`, 0},
		{"all after the end of the run", []event{{0, "", run}, {1, "", over}, {2, "a", start}, {3, "a", call("c")}, {4, "a", done("c")}, {5, "a", end}}, `
invoke_workflow n 0-1
  invoke_agent a 2-5
    execute_tool tool-c 3-4
`, 0},
		{"an end before its start", []event{{0, "a", start}, {1, "a", done("c")}, {2, "a", call("c")}, {3, "a", end}}, `
invoke_workflow 0-3
  invoke_agent a 0-3
    execute_tool tool-c 1-1
    execute_tool tool-c 2-2 error closed=shutdown
`, 0},
		{"an end whose time is before its start", []event{{5, "a", start}, {6, "a", call("c")}, {1, "a", done("c")}, {2, "a", end}}, `
invoke_workflow 5-6
  invoke_agent a 5-5
    execute_tool tool-c 6-6
`, 0},
		{"a call that starts twice", []event{{0, "a", start}, {1, "a", call("c")}, {2, "a", call("c")}, {3, "a", done("c")}, {4, "a", end}}, `
invoke_workflow 0-4
  invoke_agent a 0-4
    execute_tool tool-c 1-1 error closed=restarted
    execute_tool tool-c 2-3
`, 0},
		{"an agent that starts twice", []event{{0, "", run}, {1, "a", start}, {2, "a", call("c")}, {3, "a", start}, {4, "a", end}, {5, "", over}}, `
invoke_workflow n 0-5
  invoke_agent a 1-2 error closed=restarted
    execute_tool tool-c 2-2 error closed=restarted
  invoke_agent a 3-4
`, 0},
		{"a run that starts twice", []event{{0, "", run}, {1, "", run}, {2, "", over}}, `
invoke_workflow n 0-2 +run.started
`, 0},
		{"ends without a start", []event{
			{0, "", run}, {1, "a", done("c")}, {2, "a", &ae.ModelReturned{ModelCallID: "m"}}, {3, "a", end},
			{4, "", &ae.StepEnded{StepID: "s"}}, {5, "", &ae.ApprovalGranted{ApprovalID: "p"}}, {6, "", over}, {7, "", over},
		}, `
invoke_workflow n 0-6 +late_end
  execute_tool tool-c 1-1
  chat 2-2
  invoke_agent a 3-3
  run_step s 4-4
`, 2},
		{"ends alone", []event{{0, "a", done("c")}, {1, "a", end}, {2, "", over}}, `
invoke_workflow 0-2
  invoke_agent a 0-1
    execute_tool tool-c 0-0
`, 0},
		{"a run that ends twice", []event{{0, "", run}, {1, "", over}, {2, "", over}}, `
invoke_workflow n 0-1
`, 1},
		{"pairs that overlap", []event{{0, "a", start}, {1, "a", call("c")}, {2, "a", call("d")}, {3, "a", done("c")}, {4, "a", done("d")}, {5, "a", end}}, `
invoke_workflow 0-5
  invoke_agent a 0-5
    execute_tool tool-c 1-3
    execute_tool tool-d 2-4
`, 0},
		{"one time for all", []event{{1, "", run}, {1, "a", start}, {1, "a", call("c")}, {1, "a", done("c")}, {1, "a", end}, {1, "", over}}, `
invoke_workflow n 1-1
  invoke_agent a 1-1
    execute_tool tool-c 1-1
`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, otelhook.Options{})
			t0 := r.now
			for i, e := range c.events {
				ev := ae.Event{RunID: "r", AgentID: e.agent, Sequence: uint64(i), Time: t0.Add(time.Duration(e.at) * time.Second), Payload: e.p}
				require.NoError(t, r.hook.WriteEvent(context.Background(), ev))
			}
			require.NoError(t, r.hook.Close())
			require.Equal(t, strings.TrimPrefix(c.want, "\n"), tree(t, r.spans(), t0))
			require.EqualValues(t, c.unmatched, r.hook.Stats().Unmatched)
			require.Zero(t, r.hook.Stats().Open)
		})
	}
}

// tree writes spans with their times in seconds, children below parents. A span has a
// duration, of a nanosecond if nothing else, as some back ends warn of those that have none.
func tree(t testing.TB, list []tracetest.SpanStub, t0 time.Time) string {
	var b strings.Builder
	var below func(parent tracetest.SpanStub, depth int)
	below = func(parent tracetest.SpanStub, depth int) {
		for _, s := range list {
			if s.Parent.SpanID() != parent.SpanContext.SpanID() {
				continue
			}
			require.True(t, s.EndTime.After(s.StartTime), s.Name)
			fmt.Fprintf(&b, "%s%s %d-%d", strings.Repeat("  ", depth), s.Name, s.StartTime.Sub(t0)/time.Second, s.EndTime.Sub(t0)/time.Second)
			if s.Status.Code == codes.Error {
				b.WriteString(" error")
			}
			if reason := value(s, "agentevents.closed.reason").AsString(); reason != "" {
				b.WriteString(" closed=" + reason)
			}
			for _, e := range s.Events {
				b.WriteString(" +" + strings.TrimPrefix(e.Name, "agentevents."))
			}
			b.WriteString("\n")
			below(s, depth+1)
		}
	}
	below(tracetest.SpanStub{}, 0)
	return b.String()
}

func TestARunThatIsResumedIsLinked(t *testing.T) {
	first := newRig(t, otelhook.Options{})
	run := first.run(t, "r")
	emit(t, run, &ae.RunStarted{Name: "n"}, &ae.RunPaused{})
	require.NoError(t, run.Close())
	old := first.spans()[0]
	require.Equal(t, "paused", value(old, "agentevents.run.outcome").AsString())
	require.Equal(t, codes.Unset, old.Status.Code)

	fold := ae.NewFold(ae.FoldOptions{Lifecycle: ae.LifecycleDerived})
	for _, ev := range first.log.Events() {
		fold.Apply(ev)
	}
	for name, second := range map[string]*rig{
		"in the same process": first,
		"in another process":  newRig(t, otelhook.Options{Previous: func(string) trace.SpanContext { return old.SpanContext }}),
	} {
		t.Run(name, func(t *testing.T) {
			run, err := second.em.Resume(fold.Snapshot())
			require.NoError(t, err)
			second.out.Reset()
			emit(t, run, &ae.RunResumed{}, &ae.RunCompleted{})
			list := second.spans()
			require.Len(t, list, 1)
			require.Equal(t, "invoke_workflow n", list[0].Name)
			require.NotEqual(t, old.SpanContext.TraceID(), list[0].SpanContext.TraceID())
			require.Equal(t, old.SpanContext.SpanID(), list[0].Links[0].SpanContext.SpanID())
			require.Equal(t, "r", value(list[0], "agentevents.run.id").AsString())
		})
	}
}

// TestOpenSpansGoOnAfterAResume: the process is killed, and another one goes on with the open
// spans. An export of the log has the same spans.
func TestOpenSpansGoOnAfterAResume(t *testing.T) {
	first := newRig(t, otelhook.Options{})
	run := first.run(t, "r")
	emit(t, run, &ae.RunStarted{Name: "n"})
	lead := run.Agent("lead")
	emit(t, lead, &ae.AgentStarted{})
	call, err := lead.Call(t.Context(), &ae.ToolCalled{CallID: "c", ToolID: "Task"})
	require.NoError(t, err)
	emit(t, call.Agent("sub"), &ae.AgentStarted{}, &ae.ModelCalled{ModelCallID: "m", Model: "x"})
	fold := ae.NewFold(ae.FoldOptions{Lifecycle: ae.LifecycleDerived})
	for _, ev := range first.log.Events() {
		fold.Apply(ev)
	}
	for name, begin := range map[string]func(*ae.Run){
		"the run":  func(run *ae.Run) { emit(t, run, &ae.RunResumed{}) },
		"an agent": func(run *ae.Run) { emit(t, run.Agent("sub"), &ae.AgentStarted{Resumed: true}) },
		"a return": func(*ae.Run) {},
	} {
		t.Run(name, func(t *testing.T) {
			second := newRig(t, otelhook.Options{})
			second.pass(time.Hour)
			run, err := second.em.Resume(fold.Snapshot())
			require.NoError(t, err)
			begin(run)
			sub, lead := run.Agent("sub"), run.Agent("lead")
			require.NoError(t, sub.OpenModelCall("m").Return(t.Context(), nil))
			emit(t, sub, &ae.ToolCalled{CallID: "d", ToolID: "Read"})
			at := trace.SpanContextFromContext(second.hook.Context(ae.ContextWithCall(t.Context(), lead.OpenCall("c")), "r"))
			require.NoError(t, sub.OpenCall("d").Return(t.Context(), ""))
			emit(t, sub, &ae.AgentEnded{})
			second.pass(time.Second)
			require.NoError(t, lead.OpenCall("c").Return(t.Context(), ""))
			emit(t, lead, &ae.AgentEnded{})
			emit(t, run, &ae.RunCompleted{})
			list := second.spans()
			for i := range list {
				list[i].Events = nil
			}
			require.Equal(t, `invoke_workflow n 3600-3601
  invoke_agent lead 0-3601
    execute_tool Task 0-3601
      invoke_agent sub 0-3600
        chat x 0-3600
        execute_tool Read 3600-3600
`, tree(t, list, time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)))
			require.Zero(t, second.hook.Stats().Unmatched)
			require.Equal(t, at.SpanID(), list[1].SpanContext.SpanID(), "the spans of clients for the call are below it")

			if name != "the run" {
				return // the log does not record that another trace begins
			}
			var replayed, live []string
			m := spans.New("r", spans.Options{Recorded: true, Ended: func(s *spans.Span) {
				replayed = append(replayed, fmt.Sprint(s.Name, s.TraceID, s.ID, s.ParentSpanID()))
			}})
			for _, ev := range slices.Concat(first.log.Events(), second.log.Events()) {
				m.Feed(&ev)
			}
			for _, s := range second.out.GetSpans() {
				live = append(live, fmt.Sprint(s.Name, spans.TraceID(s.SpanContext.TraceID()), spans.SpanID(s.SpanContext.SpanID()), spans.SpanID(s.Parent.SpanID())))
			}
			require.Equal(t, live, replayed[len(replayed)-len(live):])
			require.Zero(t, m.Unmatched)
		})
	}
}

func TestContentIsAddedWhenAsked(t *testing.T) {
	for _, content := range []otelhook.Content{"", otelhook.ContentSpans} {
		r := newRig(t, otelhook.Options{Content: content})
		work(t, r, context.Background(), "r")
		all := fmt.Sprintf("%+v", r.spans())
		require.Equal(t, content != "", strings.Contains(all, "secret"))
	}
}

func TestAttributesOfTheHost(t *testing.T) {
	r := newRig(t, otelhook.Options{Attributes: func(name string, attrs []attribute.KeyValue) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String("vendor", name)}
	}})
	work(t, r, context.Background(), "r")
	for _, s := range r.spans() {
		require.Equal(t, s.Name, value(s, "vendor").AsString())
	}
}

// TestManyRunsAtOnce: call ids are used again across runs and agents.
func TestManyRunsAtOnce(t *testing.T) {
	runs, agents, calls := 64, 8, 100
	if testing.Short() {
		runs, calls = 8, 20
	}
	r := newRig(t, otelhook.Options{})
	r.quiet = true
	var wg sync.WaitGroup
	for i := range runs {
		run := r.run(t, fmt.Sprint(i))
		for j := range agents {
			wg.Go(func() {
				a := run.Agent(fmt.Sprint("a", j))
				ctx := context.Background()
				if err := a.Emit(ctx, &ae.AgentStarted{}); err != nil {
					t.Error(err)
				}
				for k := range calls {
					for _, p := range []ae.Payload{&ae.ToolCalled{CallID: fmt.Sprint(k % 3), ToolID: "Read"}, &ae.ToolReturned{CallID: fmt.Sprint(k % 3), ToolID: "Read", Status: ae.ToolStatusOK}} {
						if err := a.Emit(ctx, p); err != nil {
							t.Error(err)
						}
					}
				}
				if err := a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	require.NoError(t, r.hook.Close())
	byTrace := map[trace.TraceID][]tracetest.SpanStub{}
	for _, s := range r.out.GetSpans() {
		byTrace[s.SpanContext.TraceID()] = append(byTrace[s.SpanContext.TraceID()], s)
	}
	require.Len(t, byTrace, runs)
	for _, list := range byTrace {
		require.Len(t, list, 1+agents*(1+calls))
		wantOneTree(t, list)
	}
	require.Zero(t, r.hook.Stats().Unmatched)
}

func TestEventsWithoutAnEmitter(t *testing.T) {
	r := newRig(t, otelhook.Options{})
	work(t, r, context.Background(), "r")
	n := len(r.spans())
	for _, ev := range r.log.Events() {
		require.NoError(t, r.hook.WriteEvent(context.Background(), ev))
	}
	require.Len(t, r.spans(), n, "a traced span is not traced again")
	other := newRig(t, otelhook.Options{})
	for _, ev := range r.log.Events() {
		require.NoError(t, other.hook.WriteEvent(context.Background(), ev))
	}
	require.Equal(t, r.names(), other.names())
}

func TestTheCostWithoutAProvider(t *testing.T) {
	h, err := otelhook.New(otelhook.Options{TracerProvider: noop.NewTracerProvider()})
	require.NoError(t, err)
	ctx := context.Background()
	h.Trace(ctx, ae.Event{RunID: "r", Payload: &ae.RunStarted{}})
	for _, p := range []ae.Payload{&ae.TextDelta{Delta: "x"}, &ae.ToolCalled{CallID: "c", ToolID: "Read"}} {
		ev := ae.Event{RunID: "r", AgentID: "a", Sequence: 1, Payload: p}
		require.Zero(t, testing.AllocsPerRun(1000, func() { h.Trace(ctx, ev) }))
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []otelhook.Options{
		{},
		{TracerProvider: noop.NewTracerProvider(), Semconv: "2.0"},
		{TracerProvider: noop.NewTracerProvider(), MaxOpen: -1},
	} {
		_, err := otelhook.New(o)
		require.Error(t, err)
	}
}

// BenchmarkTrace is the hook's share of an event.
func BenchmarkTrace(b *testing.B) {
	for name, tp := range map[string]trace.TracerProvider{
		"off":      noop.NewTracerProvider(),
		"recorded": sdktrace.NewTracerProvider(),
	} {
		for what, p := range map[string]ae.Payload{"delta": &ae.TextDelta{Delta: "x"}, "text": &ae.TextCompleted{Text: "x"}} {
			b.Run(name+"/"+what, func(b *testing.B) {
				h, err := otelhook.New(otelhook.Options{TracerProvider: tp})
				require.NoError(b, err)
				ctx := context.Background()
				h.Trace(ctx, ae.Event{RunID: "r", Payload: &ae.RunStarted{}})
				b.ReportAllocs()
				i := uint64(0)
				for b.Loop() {
					i++
					h.Trace(ctx, ae.Event{RunID: "r", AgentID: "a", Sequence: i, Payload: p})
				}
			})
		}
	}
}

func TestRunsThatHaveEndedAreForgotten(t *testing.T) {
	r := newRig(t, otelhook.Options{KeepRuns: 10})
	known := func(id string) bool {
		return trace.SpanContextFromContext(r.hook.Context(context.Background(), id)).IsValid()
	}
	for i := range 100 {
		r.pass(time.Millisecond)
		run := r.run(t, fmt.Sprint(i))
		emit(t, run, &ae.RunStarted{}, &ae.RunCompleted{})
		require.True(t, known(fmt.Sprint(i)), "the latest ones are known")
	}
	kept := 0
	for i := range 100 {
		if known(fmt.Sprint(i)) {
			kept++
		}
	}
	require.LessOrEqual(t, kept, 11)
	require.False(t, known("0"))
}

// TestTheRunThatEndsIsNotForgotten: the emitter gives the hook the event once more, to write
// it, and the hook must know that it has mapped it. Here all happens at one time.
func TestTheRunThatEndsIsNotForgotten(t *testing.T) {
	for _, keep := range []int{1, 2, 4} {
		r := newRig(t, otelhook.Options{KeepRuns: keep})
		for i := range 50 {
			emit(t, r.run(t, fmt.Sprint(i)), &ae.RunStarted{}, &ae.RunCompleted{})
			require.True(t, trace.SpanContextFromContext(r.hook.Context(context.Background(), fmt.Sprint(i))).IsValid())
		}
		require.NoError(t, r.hook.Close())
		require.Equal(t, otelhook.Stats{Spans: 50, Closed: map[string]uint64{}}, r.hook.Stats())
	}
}

// TestARunThatIsNotSampledStaysSo: it is known until it is released, or else a later
// event, whose context has no host span, would begin a trace.
func TestARunThatIsNotSampledStaysSo(t *testing.T) {
	off := otelhook.ContextFromEnviron(context.Background(), []string{"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"})
	r := newRig(t, otelhook.Options{KeepRuns: 4})
	first := r.run(t, "first")
	require.NoError(t, first.Emit(off, &ae.RunStarted{}))
	for i := range 20 {
		r.pass(time.Millisecond)
		emit(t, r.run(t, fmt.Sprint(i)), &ae.RunStarted{}, &ae.RunCompleted{})
	}
	n := len(r.spans())
	emit(t, first.Agent("a"), &ae.AgentStarted{}, &ae.AgentEnded{})
	emit(t, first, &ae.RunCompleted{})
	require.Len(t, r.spans(), n)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", r.last().TraceID)
}

// TestACancellationHasOneWord: the spans of a call, its agent and its run that somebody stops agree.
func TestACancellationHasOneWord(t *testing.T) {
	r := newRig(t, otelhook.Options{})
	run := r.run(t, "r")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("stop pressed"))
	emit(t, run, &ae.RunStarted{})
	emit(t, run.Agent("a"), &ae.AgentStarted{}, &ae.ModelCalled{ModelCallID: "m"}, &ae.ToolCalled{CallID: "c", ToolID: "Read"})
	require.NoError(t, run.Finish(ctx, ctx.Err()))
	require.Len(t, r.spans(), 4)
	for _, s := range r.spans() {
		require.Equal(t, "cancelled", value(s, "error.type").AsString(), s.Name)
	}
}
