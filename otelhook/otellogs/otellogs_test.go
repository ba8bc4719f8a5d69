package otellogs_test

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/otelhook"
	"github.com/agentevents/agentevents/otelhook/otellogs"
)

// records keeps the log records of a provider. It is a processor with a least severity.
type records struct {
	least log.Severity

	mu      sync.Mutex
	list    []sdklog.Record
	refused []string // event names of records that are not enabled
}

func (r *records) Enabled(_ context.Context, p sdklog.EnabledParameters) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Severity < r.least {
		r.refused = append(r.refused, p.EventName)
		return false
	}
	return true
}

func (r *records) OnEmit(_ context.Context, rec *sdklog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, rec.Clone())
	return nil
}

func (r *records) Shutdown(context.Context) error   { return nil }
func (r *records) ForceFlush(context.Context) error { return nil }

// provider returns a provider whose records are kept here.
func (r *records) provider() log.LoggerProvider {
	return sdklog.NewLoggerProvider(sdklog.WithProcessor(r))
}

// named are the attributes of the records of that name.
func (r *records) named(name string) (list []map[string]attribute.Value) {
	for _, rec := range r.list {
		if rec.EventName() == name {
			attrs := map[string]attribute.Value{}
			rec.WalkAttributes(func(kv attribute.KeyValue) bool {
				attrs[string(kv.Key)] = kv.Value
				return true
			})
			list = append(list, attrs)
		}
	}
	return list
}

// tool are the attributes of the record with the content of the tool call.
func tool(t *testing.T, out *records) map[string]attribute.Value {
	t.Helper()
	list := slices.DeleteFunc(out.named("agentevents.span.details"), func(at map[string]attribute.Value) bool { return at["gen_ai.tool.name"].AsString() == "" })
	require.Len(t, list, 1)
	return list[0]
}

// talk records a run with content, an audit that fails and an error. It returns its events and
// its spans.
func talk(t *testing.T, o otelhook.Options) ([]ae.Event, tracetest.SpanStubs) {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(out))
	hook, err := otelhook.New(o)
	require.NoError(t, err)
	var events []ae.Event
	keep := ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
		events = append(events, ev)
		return nil
	})
	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{keep, hook}})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{Name: "release"}))
	for _, p := range []ae.Payload{
		&ae.AgentStarted{}, &ae.ModelCalled{ModelCallID: "m", Model: "x", Request: `{"messages":[{"role":"user","content":"hello"}]}`},
		&ae.ModelReturned{ModelCallID: "m", Response: `"hello"`, FinishReasons: []string{"stop"}},
		&ae.AgentReasoned{Reasoning: "because"},
		&ae.ToolCalled{CallID: "c", ToolID: "Bash", Arguments: `{"command":"ls","n":1,"half":0.5,"huge":1e999,"big":12345678901234567890,"yes":true,"none":null,"list":["a",2]}`},
		&ae.ToolReturned{CallID: "c", ToolID: "Bash", Status: ae.ToolStatusOK, Result: `"ok"`},
		&ae.AuditChecked{CheckpointID: "unit", Result: ae.AuditFail}, &ae.AgentErrored{ErrorType: "rate_limit"}, &ae.AgentEnded{},
	} {
		require.NoError(t, run.Agent("a").Emit(t.Context(), p))
	}
	require.NoError(t, run.Emit(t.Context(), &ae.RunCompleted{}))
	return events, out.GetSpans()
}

// TestARecordHasAllOfTheEvent: its time, name and severity, the ids of its span, and the scope of
// the hook.
func TestARecordHasAllOfTheEvent(t *testing.T) {
	for version, url := range map[otelhook.Semconv]string{otelhook.SemconvV1_41: "https://opentelemetry.io/schemas/1.41.0", otelhook.SemconvShared: ""} {
		out := &records{}
		events, spans := talk(t, otelhook.Options{Logs: otellogs.New(out.provider()), Semconv: version, Content: otelhook.ContentEvents, Reasoning: true})
		severities := map[string]log.Severity{}
		for _, rec := range out.list {
			var sequence int64 = -1
			rec.WalkAttributes(func(kv attribute.KeyValue) bool {
				if kv.Key == "agentevents.seq" {
					sequence = kv.Value.AsInt64()
				}
				return true
			})
			ev := events[sequence]
			require.Equal(t, ev.Time, rec.Timestamp().UTC())
			require.Equal(t, []string{ev.TraceID, ev.SpanID}, []string{rec.TraceID().String(), rec.SpanID().String()})
			require.Equal(t, rec.Severity().String(), rec.SeverityText())
			require.Zero(t, rec.Body(), "all is in attributes")
			require.Equal(t, otelhook.ScopeName, rec.InstrumentationScope().Name)
			require.Equal(t, url, rec.InstrumentationScope().SchemaURL)
			severities[rec.EventName()] = rec.Severity()
		}
		require.Equal(t, log.SeverityDebug, severities["agentevents.reasoning"])
		require.Equal(t, log.SeverityWarn, severities["gen_ai.evaluation.result"])
		require.Equal(t, log.SeverityError, severities["agentevents.error"])
		for _, s := range spans {
			require.Empty(t, s.Events, "events are in one place")
		}
	}
}

// TestContentHasStructure: a back end can ask for one member of it.
func TestContentHasStructure(t *testing.T) {
	out := &records{}
	talk(t, otelhook.Options{Logs: otellogs.New(out.provider()), Content: otelhook.ContentEvents})
	model := out.named("gen_ai.client.inference.operation.details")
	require.Len(t, model, 1)
	require.Equal(t, "x", model[0]["gen_ai.request.model"].AsString())
	require.Equal(t, `[{"parts":[{"content":{"messages":[{"content":"hello","role":"user"}]},"type":"request"}],"role":"user"}]`, model[0]["gen_ai.input.messages"].String())
	require.Equal(t, attribute.SLICE, model[0]["gen_ai.output.messages"].Type())
	content := tool(t, out)
	require.Equal(t, attribute.MapValue(
		attribute.String("command", "ls"), attribute.Int("n", 1), attribute.Float64("half", 0.5), attribute.String("huge", "1e999"), attribute.Float64("big", 12345678901234567890),
		attribute.Bool("yes", true), attribute.KeyValue{Key: "none"}, attribute.KeyValue{Key: "list", Value: attribute.SliceValue(attribute.StringValue("a"), attribute.IntValue(2))},
	), content["gen_ai.tool.call.arguments"])
	require.Equal(t, attribute.StringValue("ok"), content["gen_ai.tool.call.result"])
}

// TestBrokenContentIsText: a redactor may cut JSON, or add to it.
func TestBrokenContentIsText(t *testing.T) {
	for _, broken := range []string{`{"command":`, `{} {}`, "", "{\"\xff", `{"command":"ls"}x`} {
		out := &records{}
		talk(t, otelhook.Options{Logs: otellogs.New(out.provider()), Content: otelhook.ContentEvents, Redact: func(string, string) string { return broken }})
		arguments := tool(t, out)["gen_ai.tool.call.arguments"]
		require.Equal(t, attribute.STRING, arguments.Type(), "%q", broken)
		require.Equal(t, strings.ToValidUTF8(broken, "\uFFFD"), arguments.AsString())
	}
}

// TestTheProviderDecides: it is asked for each record, by severity and event name.
func TestTheProviderDecides(t *testing.T) {
	out := &records{least: log.SeverityWarn}
	talk(t, otelhook.Options{Logs: otellogs.New(out.provider())})
	require.Contains(t, out.refused, "agentevents.reasoning")
	require.NotEmpty(t, out.named("agentevents.error"))
	for _, rec := range out.list {
		require.GreaterOrEqual(t, rec.Severity(), log.SeverityWarn)
	}
}

// TestNoProviderMeansNoLogs: events are on spans, as without the option.
func TestNoProviderMeansNoLogs(t *testing.T) {
	events := 0
	_, spans := talk(t, otelhook.Options{Logs: otellogs.New(nil)})
	for _, s := range spans {
		events += len(s.Events)
	}
	require.Positive(t, events)
	_, err := otelhook.New(otelhook.Options{TracerProvider: sdktrace.NewTracerProvider(), Logs: otellogs.New(nil), Events: otelhook.EventsAsLogs})
	require.ErrorContains(t, err, "Options.Logs")
}

// TestDependencies: programs get the API only.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "go.opentelemetry.io/otel/log\n")
	require.NotContains(t, string(out), "go.opentelemetry.io/otel/sdk")
}
