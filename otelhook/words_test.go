package otelhook_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/spans"
	"github.com/agentevents/agentevents/otelhook"
)

// TestNamesAreThoseOfTheConventions compares the names that v1.41.0 has.
func TestNamesAreThoseOfTheConventions(t *testing.T) {
	for ours, theirs := range map[string]attribute.Key{
		spans.AttrOperation: semconv.GenAIOperationNameKey, spans.AttrConversation: semconv.GenAIConversationIDKey,
		spans.AttrWorkflow: semconv.GenAIWorkflowNameKey, spans.AttrAgent: semconv.GenAIAgentNameKey,
		spans.AttrProvider: semconv.GenAIProviderNameKey, spans.AttrRequestModel: semconv.GenAIRequestModelKey,
		spans.AttrResponseModel: semconv.GenAIResponseModelKey, spans.AttrResponseID: semconv.GenAIResponseIDKey,
		spans.AttrFinishReasons: semconv.GenAIResponseFinishReasonsKey, spans.AttrFirstChunk: semconv.GenAIResponseTimeToFirstChunkKey,
		spans.AttrInputTokens: semconv.GenAIUsageInputTokensKey, spans.AttrOutputTokens: semconv.GenAIUsageOutputTokensKey,
		spans.AttrCacheRead: semconv.GenAIUsageCacheReadInputTokensKey, spans.AttrReasoningTokens: semconv.GenAIUsageReasoningOutputTokensKey,
		spans.AttrTool: semconv.GenAIToolNameKey, spans.AttrToolCallID: semconv.GenAIToolCallIDKey,
		spans.AttrToolArguments: semconv.GenAIToolCallArgumentsKey, spans.AttrToolResult: semconv.GenAIToolCallResultKey,
		spans.AttrInput: semconv.GenAIInputMessagesKey, spans.AttrOutput: semconv.GenAIOutputMessagesKey,
		spans.AttrEvaluation: semconv.GenAIEvaluationNameKey, spans.AttrScoreLabel: semconv.GenAIEvaluationScoreLabelKey,
		spans.AttrScoreValue: semconv.GenAIEvaluationScoreValueKey, spans.AttrExplanation: semconv.GenAIEvaluationExplanationKey,
		spans.AttrErrorType: semconv.ErrorTypeKey, spans.ErrorOther: attribute.Key(semconv.ErrorTypeOther.Value.AsString()),
		spans.OpWorkflow: attribute.Key(semconv.GenAIOperationNameInvokeWorkflow.Value.AsString()), spans.OpAgent: attribute.Key(semconv.GenAIOperationNameInvokeAgent.Value.AsString()),
		spans.OpTool: attribute.Key(semconv.GenAIOperationNameExecuteTool.Value.AsString()), spans.OpChat: attribute.Key(semconv.GenAIOperationNameChat.Value.AsString()),
	} {
		require.Equal(t, string(theirs), ours)
	}
	require.Equal(t, semconv.SchemaURL, spans.SemconvV1_41.SchemaURL())
}

// TestKeysOfTheVersions has all keys of gen_ai that a run may have.
func TestKeysOfTheVersions(t *testing.T) {
	shared := []string{
		"gen_ai.agent.name", "gen_ai.conversation.id", "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model",
		"gen_ai.response.finish_reasons", "gen_ai.response.id", "gen_ai.response.model", "gen_ai.response.time_to_first_chunk",
		"gen_ai.tool.call.id", "gen_ai.tool.name", "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.input_tokens",
		"gen_ai.usage.output_tokens", "gen_ai.usage.reasoning.output_tokens", "gen_ai.workflow.name",
	}
	for v, more := range map[otelhook.Semconv][]string{
		otelhook.SemconvShared: nil, otelhook.SemconvV1_41: {"gen_ai.agent.id", "gen_ai.usage.cache_creation.input_tokens"}, otelhook.SemconvLatest: {"gen_ai.usage.cache_write.input_tokens"},
	} {
		r := newRig(t, otelhook.Options{Semconv: v})
		run := r.run(t, "r").With(ae.Scope{SessionID: "s"})
		emit(t, run, &ae.RunStarted{Name: "n"})
		emit(t, run.Agent("a"), &ae.AgentStarted{}, &ae.ModelCalled{ModelCallID: "m", Model: "x", Provider: "openai"},
			&ae.ModelReturned{
				ModelCallID: "m", Model: "x-1", ResponseID: "i", FinishReasons: []string{"stop"}, TimeToFirstToken: ae.Some(time.Second), CostUSD: ae.Some(1.5),
				Usage: ae.Some(ae.Usage{InputTokens: 1, CacheCreationInputTokens: ae.Some(int64(20)), CacheReadInputTokens: ae.Some(int64(300)), ReasoningOutputTokens: ae.Some(int64(4)), OutputTokens: 5}),
			}, &ae.ToolCalled{CallID: "c", ToolID: "Read"}, &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK}, &ae.AgentEnded{})
		emit(t, run, &ae.RunCompleted{})
		var keys []string
		for _, s := range r.spans() {
			require.Equal(t, v == otelhook.SemconvV1_41, s.InstrumentationScope.SchemaURL != "")
			if s.Name == "chat x" {
				require.EqualValues(t, 321, value(s, "gen_ai.usage.input_tokens").AsInt64())
			}
			for _, a := range s.Attributes {
				if strings.HasPrefix(string(a.Key), "gen_ai.") {
					keys = append(keys, string(a.Key))
				} else {
					require.True(t, strings.HasPrefix(string(a.Key), "agentevents."), "%s", a.Key)
				}
			}
		}
		slices.Sort(keys)
		want := slices.Sorted(slices.Values(slices.Concat(shared, more)))
		require.Equal(t, want, slices.Compact(keys), "%q", v)
	}
}

// TestReplayHasTheIDsOfTheLiveSpans maps the log once more, without a provider.
func TestReplayHasTheIDsOfTheLiveSpans(t *testing.T) {
	replay := func(log []ae.Event, o spans.Options) (ids []string) {
		var m *spans.Mapper
		o.Started = func(s *spans.Span) {
			m.Derive(s)
			ids = append(ids, fmt.Sprint(s.Name, s.TraceID, s.ID, s.ParentSpanID()))
		}
		m = spans.New(log[0].RunID, o)
		for i := range log {
			m.Feed(&log[i])
		}
		m.Close(spans.ReasonShutdown)
		return ids
	}
	live := func(r *rig) (ids []string) {
		for _, s := range r.spans() {
			ids = append(ids, fmt.Sprint(s.Name, spans.TraceID(s.SpanContext.TraceID()), spans.SpanID(s.SpanContext.SpanID()), spans.SpanID(s.Parent.SpanID())))
		}
		return ids
	}
	host := otelhook.ContextFromEnviron(context.Background(), []string{"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	for name, ctx := range map[string]context.Context{"root": context.Background(), "below the host": host} {
		t.Run(name, func(t *testing.T) {
			random := newRig(t, otelhook.Options{})
			work(t, random, ctx, "r")
			require.Equal(t, live(random), replay(random.log.Events(), spans.Options{Recorded: true}), "the log has the ids")
		})
	}
	derived := newRig(t, otelhook.Options{}, sdktrace.WithIDGenerator(otelhook.IDGenerator()))
	work(t, derived, context.Background(), "r")
	bare := derived.log.Events()
	for i := range bare {
		bare[i].TraceID, bare[i].SpanID, bare[i].ParentSpanID = "", "", ""
	}
	require.Equal(t, live(derived), replay(bare, spans.Options{}), "the log has no ids")
}

// TestTypesInBackEnds runs the spans through the tables by which back ends find the type of a span.
func TestTypesInBackEnds(t *testing.T) {
	langfuse := func(s tracetest.SpanStub) string {
		switch op := value(s, "gen_ai.operation.name").AsString(); {
		case op == "chat" || op == "text_completion" || op == "generate_content":
			return "generation"
		case op == "invoke_agent" || op == "create_agent":
			return "agent"
		case op == "execute_tool", value(s, "gen_ai.tool.name").AsString() != "", value(s, "gen_ai.tool.call.id").AsString() != "":
			return "tool"
		case value(s, "gen_ai.request.model").AsString() != "" || value(s, "gen_ai.response.model").AsString() != "":
			return "generation"
		}
		return "span"
	}
	datadog := func(s tracetest.SpanStub) string {
		switch value(s, "gen_ai.operation.name").AsString() {
		case "chat", "text_completion", "generate_content":
			return "llm"
		case "execute_tool":
			return "tool"
		case "invoke_agent", "create_agent":
			return "agent"
		}
		return "workflow"
	}
	openinference := func(s tracetest.SpanStub) string {
		return map[string]string{"invoke_agent": "AGENT", "invoke_workflow": "CHAIN", "execute_tool": "TOOL", "chat": "LLM"}[value(s, "gen_ai.operation.name").AsString()]
	}
	langsmith := func(s tracetest.SpanStub) string { // it does not know agents
		switch {
		case value(s, "gen_ai.tool.name").AsString() != "":
			return "tool"
		case value(s, "gen_ai.operation.name").AsString() == "chat":
			return "llm"
		}
		return "chain"
	}
	r := newRig(t, otelhook.Options{})
	run := r.run(t, "r")
	emit(t, run, &ae.RunStarted{Name: "release"})
	lead := run.Agent("lead")
	emit(t, lead, &ae.AgentStarted{Model: "claude"}, &ae.StepStarted{StepID: "find"},
		&ae.ModelCalled{ModelCallID: "m", Model: "claude"}, &ae.ModelReturned{ModelCallID: "m", Model: "claude"},
		&ae.ToolCalled{CallID: "c", ToolID: "Bash"}, &ae.ApprovalRequested{ApprovalID: "p", CallID: "c", ToolID: "Bash"})
	emit(t, run, &ae.ApprovalGranted{ApprovalID: "p"})
	emit(t, lead, &ae.ToolReturned{CallID: "c", ToolID: "Bash", Status: ae.ToolStatusOK}, &ae.StepEnded{StepID: "find"}, &ae.AgentEnded{})
	emit(t, run, &ae.RunCompleted{})
	var got []string
	for _, s := range r.spans() {
		got = append(got, strings.Join([]string{s.Name, langfuse(s), datadog(s), openinference(s), langsmith(s)}, ", "))
		_, isTool := strings.CutPrefix(s.Name, "execute_tool")
		_, isModel := strings.CutPrefix(s.Name, "chat")
		_, isAgent := strings.CutPrefix(s.Name, "invoke_agent")
		require.Equal(t, isTool, value(s, "gen_ai.tool.name").AsString() != "", "%s: back ends take a span with a tool's name for a tool", s.Name)
		require.Equal(t, isModel || isAgent, value(s, "gen_ai.request.model").AsString() != "", "%s: and a span with a model for a call of it", s.Name)
	}
	require.Equal(t, []string{
		"invoke_workflow release, span, workflow, CHAIN, chain", "invoke_agent lead, agent, agent, AGENT, chain", "run_step find, span, workflow, , chain",
		"chat claude, generation, llm, LLM, llm", "execute_tool Bash, tool, tool, TOOL, tool", "agentevents.approval, span, workflow, , chain",
	}, got)
}

// TestARatioIsSampled: the SDK's sampler expects random bytes in the trace id. The bytes of a run's
// id are not random: used unchanged, they would keep no run or all of them.
func TestARatioIsSampled(t *testing.T) {
	const runs = 20_000
	sampler := sdktrace.TraceIDRatioBased(0.1)
	out := &counter{}
	tp := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithIDGenerator(otelhook.IDGenerator()), sdktrace.WithSyncer(out))
	h, err := otelhook.New(otelhook.Options{TracerProvider: tp, KeepRuns: 100})
	require.NoError(t, err)
	asTheyAre := 0
	for i := range runs {
		id := fmt.Sprintf("01a1ffa6-0000-7000-8000-%012x", i)
		ev := ae.Event{RunID: id, Time: time.Date(2026, 5, 5, 9, 0, 0, i, time.UTC), Payload: &ae.RunStarted{}}
		require.NoError(t, h.WriteEvent(context.Background(), ev))
		ev.Sequence, ev.Payload = 1, &ae.RunCompleted{}
		require.NoError(t, h.WriteEvent(context.Background(), ev))
		require.NoError(t, h.ReleaseRun(context.Background(), id)) // it is not sampled, and no more comes

		raw, err := trace.TraceIDFromHex(strings.ReplaceAll(id, "-", ""))
		require.NoError(t, err)
		if sampler.ShouldSample(sdktrace.SamplingParameters{TraceID: raw}).Decision == sdktrace.RecordAndSample {
			asTheyAre++
		}
	}
	require.InDelta(t, runs/10, out.spans.Load(), runs/50)
	require.Zero(t, asTheyAre)
}

// burst is a run of 20,000 calls, faster than anything is exported. It returns the number
// of its spans.
func burst(t *testing.T, r *rig) int {
	const calls = 20_000
	a := r.run(t, "r").Agent("a")
	emit(t, a, &ae.AgentStarted{})
	for range calls {
		emit(t, a, &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK, OneEvent: true})
	}
	emit(t, a, &ae.AgentEnded{})
	require.NoError(t, r.hook.Close())
	return calls + 2 // and the spans of the agent and the run
}

// TestABurstArrivesWhenTheProcessorBlocks: with the default one, some would be lost.
func TestABurstArrivesWhenTheProcessorBlocks(t *testing.T) {
	out := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(out, sdktrace.WithBlocking()))
	made := burst(t, newRig(t, otelhook.Options{TracerProvider: tp}))
	require.NoError(t, tp.ForceFlush(context.Background()))
	require.Len(t, out.GetSpans(), made)
}

// A gate is an exporter that is stuck until it is opened.
type gate struct {
	counter
	entered, opened chan struct{}
	once            sync.Once
}

func (g *gate) ExportSpans(ctx context.Context, list []sdktrace.ReadOnlySpan) error {
	g.once.Do(func() { close(g.entered) })
	<-g.opened
	return g.counter.ExportSpans(ctx, list)
}

// TestABurstDoesNotWaitForTheExporter: the default processor drops spans if its queue is full. The
// run goes on, and the hook's count of spans and the SDK's own metric give the number of lost ones.
func TestABurstDoesNotWaitForTheExporter(t *testing.T) {
	t.Setenv("OTEL_GO_X_OBSERVABILITY", "true")
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))) // the SDK asks for the global one
	t.Cleanup(func() { otel.SetMeterProvider(noop.NewMeterProvider()) })
	out := &gate{entered: make(chan struct{}), opened: make(chan struct{})}
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(out))
	r := newRig(t, otelhook.Options{TracerProvider: tp})
	made := burst(t, r) // returns although no span has been exported
	<-out.entered
	require.Zero(t, out.spans.Load())
	require.EqualValues(t, made, r.hook.Stats().Spans)
	require.Zero(t, r.hook.Stats().Open)

	close(out.opened)
	require.NoError(t, tp.ForceFlush(context.Background()))
	arrived := int(out.spans.Load())
	require.Positive(t, arrived)
	require.LessOrEqual(t, arrived, sdktrace.DefaultMaxQueueSize+sdktrace.DefaultMaxExportBatchSize)
	var lost string
	for _, line := range measured(t, reader) {
		if strings.HasPrefix(line, "otel.sdk.processor.span.processed ") && strings.Contains(line, "{error.type=queue_full,") {
			lost = line[strings.LastIndexByte(line, ' ')+1:]
		}
	}
	require.Equal(t, fmt.Sprint(made-arrived), lost)
	require.NoError(t, tp.Shutdown(context.Background()))
}

// TestDependencies: programs get the API of traces and metrics only, and the root module nothing of it.
func TestDependencies(t *testing.T) {
	deps := func(dir string, pkgs ...string) string {
		cmd := exec.Command("go", append([]string{"list", "-deps"}, pkgs...)...)
		cmd.Dir = dir
		out, err := cmd.Output()
		require.NoError(t, err)
		return string(bytes.TrimSpace(out))
	}
	ours := deps(".", ".")
	require.Contains(t, ours, "go.opentelemetry.io/otel/trace")
	for _, no := range []string{"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/log", "google.golang.org/grpc"} {
		require.NotContains(t, ours, no)
	}
	require.NotContains(t, deps("..", "./..."), "go.opentelemetry.io")
}
