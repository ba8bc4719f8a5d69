package otelhook_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/otelhook"
)

// A record is a log record with the span that it was made in.
type record struct {
	otelhook.LogRecord
	span  trace.SpanContext
	attrs map[string]attribute.Value
}

// records keeps the log records of a hook.
type records struct {
	schemaURL string
	off       string // the event name that is not enabled

	mu   sync.Mutex
	list []record
}

func (r *records) Enabled(_ context.Context, severity int, eventName string) bool {
	return severity > 0 && eventName != r.off
}

func (r *records) Emit(ctx context.Context, rec otelhook.LogRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	attrs := map[string]attribute.Value{}
	for _, a := range rec.Attributes {
		attrs[string(a.Key)] = a.Value
	}
	rec.Attributes, rec.JSON = slices.Clone(rec.Attributes), slices.Clone(rec.JSON)
	r.list = append(r.list, record{rec, trace.SpanContextFromContext(ctx), attrs})
}

// named are the records of that name.
func (r *records) named(name string) []record {
	return slices.DeleteFunc(slices.Clone(r.list), func(rec record) bool { return rec.EventName != name })
}

func (r *records) String() string {
	var b strings.Builder
	for _, rec := range r.list {
		fmt.Fprintln(&b, rec.EventName, rec.attrs)
	}
	return b.String()
}

func logged(t testing.TB, o otelhook.Options, more ...sdktrace.TracerProviderOption) (*rig, *records) {
	t.Helper()
	out := &records{}
	o.Logs = func(schemaURL string) otelhook.Logger {
		out.schemaURL = schemaURL
		return out
	}
	return newRig(t, o, more...), out
}

// talk is a run with something of every content.
func talk(t testing.TB, r *rig, secret string) {
	t.Helper()
	run := r.run(t, "r").With(ae.Scope{SessionID: "s"})
	json := ae.JSONString(secret)
	emit(t, run, &ae.RunStarted{Name: "release", Inputs: json})
	emit(t, run.Agent("a"), &ae.AgentStarted{Task: secret},
		&ae.ModelCalled{ModelCallID: "m", Model: "x", Request: `{"messages":[{"role":"user","content":"` + ae.JSON(secret) + `"}]}`},
		&ae.ModelReturned{ModelCallID: "m", Response: json, FinishReasons: []string{"stop"}},
		&ae.AgentReasoned{Reasoning: "because " + secret, Verbosity: ae.VerbosityFull}, &ae.TextCompleted{Text: secret},
		&ae.ToolCalled{CallID: "c", ToolID: "Bash", Arguments: `{"command":"` + ae.JSON(secret) + `"}`},
		&ae.ToolReturned{CallID: "c", ToolID: "Bash", Status: ae.ToolStatusError, Result: json, Error: ae.Some(ae.ErrorInfo{Message: secret})},
		&ae.AuditChecked{CheckpointID: "unit", Result: ae.AuditFail}, &ae.AgentErrored{ErrorType: "rate_limit", Message: secret}, &ae.AgentEnded{Result: secret})
	emit(t, run, &ae.RunCompleted{Outputs: json})
}

func TestPlacesOfEvents(t *testing.T) {
	for _, c := range []struct {
		events      otelhook.Events
		logs, spans bool
	}{{otelhook.EventsAuto, true, false}, {otelhook.EventsAsLogs, true, false}, {otelhook.EventsOnSpan, false, true}, {otelhook.EventsBoth, true, true}} {
		r, out := logged(t, otelhook.Options{Events: c.events})
		talk(t, r, "secret")
		onSpans := 0
		for _, s := range r.spans() {
			onSpans += len(s.Events)
		}
		require.Equal(t, c.spans, onSpans > 0, "%q", c.events)
		require.Equal(t, c.logs, len(out.list) > 0, "%q", c.events)
	}
	plain := newRig(t, otelhook.Options{})
	talk(t, plain, "secret")
	require.NotEmpty(t, plain.spans()[1].Events, "there are no logs to go to")
}

// TestALogRecordStandsAlone: it has the place in the trace, and names its run.
func TestALogRecordStandsAlone(t *testing.T) {
	for name, sampler := range map[string]sdktrace.Sampler{"sampled": sdktrace.AlwaysSample(), "not sampled": sdktrace.NeverSample()} {
		r, out := logged(t, otelhook.Options{}, sdktrace.WithSampler(sampler))
		talk(t, r, "secret")
		require.NotEmpty(t, out.list)
		for _, rec := range out.list {
			require.True(t, rec.span.IsValid(), name)
			require.Len(t, rec.attrs, len(rec.Attributes), "no key is there twice")
			require.Equal(t, "r", rec.attrs["agentevents.run.id"].AsString())
			require.Equal(t, "s", rec.attrs["gen_ai.conversation.id"].AsString())
			ev := r.log.Events()[rec.attrs["agentevents.seq"].AsInt64()]
			require.Equal(t, rec.span.SpanID().String(), ev.SpanID, "%s: the span of the event", rec.EventName)
			require.Equal(t, ev.Time, rec.Time.UTC())
		}
		audit := out.named("gen_ai.evaluation.result")
		require.Len(t, audit, 1)
		require.Equal(t, 13, audit[0].Severity)
		require.Equal(t, "fail", audit[0].attrs["gen_ai.evaluation.score.label"].AsString())
		require.Equal(t, "a", audit[0].attrs["agentevents.agent.id"].AsString())
		require.Equal(t, 17, out.named("agentevents.error")[0].Severity)
	}
}

// TestARecordThatIsNotEnabledIsNotMade: and its event is on no span in its place.
func TestARecordThatIsNotEnabledIsNotMade(t *testing.T) {
	r, out := logged(t, otelhook.Options{Semconv: otelhook.SemconvV1_41})
	out.off = "agentevents.error"
	talk(t, r, "secret")
	require.Empty(t, out.named("agentevents.error"))
	require.NotEmpty(t, out.named("gen_ai.evaluation.result"))
	for _, s := range r.spans() {
		require.Empty(t, s.Events)
	}
	require.Equal(t, "https://opentelemetry.io/schemas/1.41.0", out.schemaURL)
}

func TestReplayedEventsAreNotLoggedAgain(t *testing.T) {
	r, _ := logged(t, otelhook.Options{})
	talk(t, r, "secret")
	again, out := logged(t, otelhook.Options{})
	for _, ev := range r.log.Events() {
		ev.Marks |= ae.MarkReplayed
		require.NoError(t, again.hook.WriteEvent(context.Background(), ev))
	}
	require.Empty(t, out.list)
	require.NotEmpty(t, again.spans())
}

func TestPlacesOfContent(t *testing.T) {
	const secret = "zebra-4711"
	for _, c := range []struct {
		content       otelhook.Content
		spans, events bool
	}{{"", false, false}, {otelhook.ContentNone, false, false}, {otelhook.ContentSpans, true, false}, {otelhook.ContentEvents, false, true}, {otelhook.ContentBoth, true, true}} {
		r, out := logged(t, otelhook.Options{Content: c.content})
		talk(t, r, secret)
		require.Equal(t, c.spans, strings.Contains(fmt.Sprintf("%+v", r.spans()), secret), "%q", c.content)
		require.Equal(t, c.events, strings.Contains(out.String(), secret), "%q", c.content)
		require.NotContains(t, out.String(), "because", "reasoning needs an option of its own")
	}
	r, out := logged(t, otelhook.Options{Content: otelhook.ContentEvents, Reasoning: true})
	talk(t, r, secret)
	require.Contains(t, out.String(), "because "+secret)
	require.Equal(t, 5, out.named("agentevents.reasoning")[0].Severity)
}

// TestContentOfLogsIsMarkedAsJSON: a logger gives it structure.
func TestContentOfLogsIsMarkedAsJSON(t *testing.T) {
	r, out := logged(t, otelhook.Options{Content: otelhook.ContentEvents})
	talk(t, r, "hello")
	model := out.named("gen_ai.client.inference.operation.details")
	require.Len(t, model, 1)
	require.Equal(t, "x", model[0].attrs["gen_ai.request.model"].AsString())
	require.JSONEq(t, `[{"parts":[{"content":{"messages":[{"content":"hello","role":"user"}]},"type":"request"}],"role":"user"}]`, model[0].attrs["gen_ai.input.messages"].AsString())
	require.JSONEq(t, `[{"finish_reason":"stop","parts":[{"content":"hello","type":"response"}],"role":"assistant"}]`, model[0].attrs["gen_ai.output.messages"].AsString())
	marked := map[string]bool{}
	for _, rec := range out.list {
		for _, i := range rec.JSON {
			a := rec.Attributes[i]
			_, err := ae.ToJSON(ae.JSON(a.Value.AsString()))
			require.NoError(t, err, "%s", a.Key)
			marked[string(a.Key)] = true
		}
	}
	require.Equal(t, map[string]bool{"gen_ai.input.messages": true, "gen_ai.output.messages": true, "gen_ai.tool.call.arguments": true, "gen_ai.tool.call.result": true}, marked)
}

func TestContentIsRedactedAndBounded(t *testing.T) {
	o := otelhook.Options{Content: otelhook.ContentBoth, ContentBytes: 300, Redact: func(_, value string) string { return strings.ReplaceAll(value, "zebra", "***") }}
	r, out := logged(t, o)
	talk(t, r, "zebra"+strings.Repeat("é", 400))
	all := out.String() + fmt.Sprintf("%+v", r.spans())
	require.NotContains(t, all, "zebra")
	require.Contains(t, all, "***")
	for _, s := range r.spans() {
		for _, a := range s.Attributes {
			if strings.HasPrefix(string(a.Key), "gen_ai.input") || strings.HasPrefix(string(a.Key), "gen_ai.output") || strings.HasPrefix(string(a.Key), "gen_ai.tool.call.a") {
				require.LessOrEqual(t, len(a.Value.AsString()), 300)
				_, err := ae.ToJSON(ae.JSON(a.Value.AsString()))
				require.NoError(t, err)
			}
		}
	}
}

func TestTheEnvironmentStandsInForOptions(t *testing.T) {
	seen := func(o otelhook.Options) [2]bool {
		r, out := logged(t, o)
		talk(t, r, "zebra")
		return [2]bool{strings.Contains(fmt.Sprintf("%+v", r.spans()), "zebra"), strings.Contains(out.String(), "zebra")}
	}
	for value, want := range map[string][2]bool{"": {}, "NO_CONTENT": {}, "SPAN_ONLY": {true, false}, "event_only": {false, true}, "SPAN_AND_EVENT": {true, true}, "true": {true, true}, "false": {}, "what": {}} {
		t.Setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
		require.Equal(t, want, seen(otelhook.Options{}), value)
		require.Equal(t, [2]bool{}, seen(otelhook.Options{Content: otelhook.ContentNone}), "the option wins")
	}
	t.Setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "http, gen_ai_latest_experimental")
	for v, latest := range map[otelhook.Semconv]bool{"": true, otelhook.SemconvShared: false} {
		r, reader := metered(t, otelhook.Options{Semconv: v})
		work(t, r, context.Background(), "r")
		require.Equal(t, latest, strings.Contains(strings.Join(measured(t, reader), "\n"), "gen_ai.client.inference.usage"), "%q", v)
	}
}

func TestOptionsThatDoNotGoTogether(t *testing.T) {
	tp := sdktrace.NewTracerProvider()
	for _, o := range []otelhook.Options{
		{}, {TracerProvider: tp, Semconv: "x"}, {TracerProvider: tp, Content: "x"}, {TracerProvider: tp, Events: "x"},
		{TracerProvider: tp, Events: otelhook.EventsAsLogs}, {TracerProvider: tp, Events: otelhook.EventsBoth}, {TracerProvider: tp, MaxOpen: -1},
		{TracerProvider: tp, Events: otelhook.EventsBoth, Logs: func(string) otelhook.Logger { return nil }},
		{TracerProvider: tp, ContentBytes: -1}, {TracerProvider: tp, KeepRuns: -1},
	} {
		_, err := otelhook.New(o)
		require.ErrorContains(t, err, "Options.")
		require.ErrorContains(t, err, "otelhook")
	}
}

// TestASpanOfAFrameworkIsNotDoubled: it gets our attributes, and the log its ids.
func TestASpanOfAFrameworkIsNotDoubled(t *testing.T) {
	r, reader := metered(t, otelhook.Options{})
	run := r.run(t, "r")
	emit(t, run, &ae.RunStarted{Name: "n"})
	a := run.Agent("a")
	emit(t, a, &ae.AgentStarted{})
	theirs := func(name string, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
		return r.tp.Tracer("framework").Start(context.Background(), name, trace.WithAttributes(attrs...))
	}
	ctx, tool := theirs("their tool", attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", "Bash"))
	call, err := a.Call(ctx, &ae.ToolCalled{ToolID: "Bash", CallID: "c"})
	require.NoError(t, err)
	b := call.Agent("b")
	emit(t, b, &ae.AgentStarted{})
	inner, err := b.Call(ctx, &ae.ToolCalled{ToolID: "Bash", CallID: "d"})
	require.NoError(t, err)
	require.NoError(t, inner.Return(ctx, "1"))
	other, err := a.Call(ctx, &ae.ToolCalled{ToolID: "Read", CallID: "e"})
	require.NoError(t, err)
	require.NoError(t, other.Return(ctx, "1"))
	require.NoError(t, call.Return(ctx, "1"))
	tool.End()
	ctx, model := theirs("their model", attribute.String("gen_ai.operation.name", "generate_content"), attribute.String("gen_ai.request.model", "x"))
	require.NoError(t, a.Emit(ctx, &ae.ModelCalled{ModelCallID: "m", Model: "x"}))
	require.NoError(t, a.Emit(ctx, &ae.ModelReturned{ModelCallID: "m", Usage: ae.Some(ae.Usage{InputTokens: 3})}))
	model.End()
	emit(t, a, &ae.AgentEnded{})
	emit(t, run, &ae.RunCompleted{})

	var names []string
	for _, s := range r.spans() {
		names = append(names, s.Name)
		if strings.HasPrefix(s.Name, "their") {
			require.Equal(t, "r", value(s, "agentevents.run.id").AsString())
			require.Equal(t, "a", value(s, "agentevents.agent.id").AsString())
			require.Empty(t, value(s, "gen_ai.usage.input_tokens").String(), "the conventions' names are theirs")
		}
	}
	slices.Sort(names)
	require.Equal(t, []string{"execute_tool Bash", "execute_tool Read", "invoke_agent a", "invoke_agent b", "invoke_workflow n", "their model", "their tool"}, names)
	require.EqualValues(t, 2, r.hook.Stats().Foreign)
	for _, ev := range r.log.Events() {
		switch p := ev.Payload.(type) {
		case *ae.ToolCalled:
			require.Equal(t, p.CallID == "c", ev.SpanID == tool.SpanContext().SpanID().String())
		case *ae.AgentStarted:
			if ev.AgentID == "b" {
				require.Equal(t, tool.SpanContext().SpanID().String(), ev.ParentSpanID)
			}
		case *ae.ModelCalled:
			require.Equal(t, model.SpanContext().SpanID().String(), ev.SpanID)
		}
	}
	got := strings.Join(measured(t, reader), "\n")
	require.NotContains(t, got, "gen_ai.agent.name=a,gen_ai.tool.name=Bash", "who makes the span makes its metrics")
	require.Contains(t, got, "gen_ai.agent.name=a,gen_ai.tool.name=Read")
}

func TestMarkersShowTheRunningSpans(t *testing.T) {
	r := newRig(t, otelhook.Options{StartMarkers: true})
	run := r.run(t, "r")
	emit(t, run, &ae.RunStarted{Name: "n"})
	emit(t, run.Agent("a"), &ae.AgentStarted{})
	require.Equal(t, []string{"agentevents.started", "agentevents.started"}, r.names(), "the others are open")
	require.Equal(t, "invoke_workflow n", value(r.spans()[0], "agentevents.started").AsString())
	require.NoError(t, r.hook.Close())
	wantOneTree(t, r.spans())
	require.Len(t, r.spans(), 4)
}

func TestDeltasAreCountedWhenAsked(t *testing.T) {
	for _, counts := range []bool{false, true} {
		r := newRig(t, otelhook.Options{DeltaCounts: counts})
		a := r.run(t, "r").Agent("a")
		emit(t, a, &ae.AgentStarted{}, &ae.ModelCalled{ModelCallID: "m", Model: "x"})
		r.pass(250 * time.Millisecond)
		emit(t, a, &ae.TextDelta{Index: ae.Some(0), Delta: "a"}, &ae.TextDelta{Index: ae.Some(1), Delta: "b"}, &ae.ModelReturned{ModelCallID: "m"}, &ae.AgentEnded{})
		require.NoError(t, r.hook.Close())
		chat := r.spans()[2]
		require.Equal(t, "chat x", chat.Name)
		if !counts {
			require.Empty(t, value(chat, "agentevents.deltas").String())
			continue
		}
		require.EqualValues(t, 2, value(chat, "agentevents.deltas").AsInt64())
		require.Equal(t, 0.25, value(chat, "gen_ai.response.time_to_first_chunk").AsFloat64())
	}
}

// TestAnApprovalThatNobodyGivesExpires: its span ends when the request does.
func TestAnApprovalThatNobodyGivesExpires(t *testing.T) {
	r, reader := metered(t, otelhook.Options{})
	run := r.run(t, "r")
	emit(t, run, &ae.RunStarted{Name: "n"})
	emit(t, run.Agent("a"), &ae.AgentStarted{}, &ae.ApprovalRequested{ApprovalID: "p", Timeout: ae.Some(time.Minute)}, &ae.ApprovalRequested{ApprovalID: "q", Timeout: ae.Some(time.Hour)}, &ae.ApprovalRequested{ApprovalID: "t"})
	r.pass(10 * time.Minute)
	emit(t, run, &ae.ApprovalRejected{ApprovalID: "t", Answer: "timeout"})
	emit(t, run, &ae.RunCancelled{})
	var waits []string
	for _, s := range r.spans() {
		if s.Name == "agentevents.approval" {
			waits = append(waits, fmt.Sprint(value(s, "agentevents.approval.id").AsString(), value(s, "agentevents.approval.decision").AsString(), s.EndTime.Sub(s.StartTime)))
		}
	}
	require.Equal(t, []string{"texpired10m0s", "pexpired1m0s"}, waits, "nobody knows about q")
	require.Contains(t, strings.Join(measured(t, reader), "\n"), "agentevents.approval.wait [s] {agentevents.approval.decision=expired} 660")
}

// The zero Hook does nothing, and an emitter does not take it.
func TestZeroHook(t *testing.T) {
	h := &otelhook.Hook{}
	require.NoError(t, h.WriteEvent(t.Context(), ae.Event{RunID: "r", Payload: &ae.RunStarted{}}))
	require.Zero(t, h.Trace(t.Context(), ae.Event{RunID: "r", Payload: &ae.RunStarted{}}))
	h.Expire()
	_, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{h}})
	require.ErrorIs(t, err, ae.ErrZeroValue)
}
