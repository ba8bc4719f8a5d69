// Package together runs several recorders in one program. An event of one must not be recorded
// again by the others.
package together

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	einoadk "github.com/cloudwego/eino/adk"
	einomodel "github.com/cloudwego/eino/components/model"
	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/schema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/adk/v2/tool/mcptoolset"
	"google.golang.org/genai"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/adapter/adk"
	"github.com/agentevents/agentevents/adapter/eino"
	aemcp "github.com/agentevents/agentevents/adapter/mcp"
	"github.com/agentevents/agentevents/adapter/modelhttp"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/otelhook"
)

// An httpModel is a model of eino that is asked by HTTP.
type httpModel struct {
	client *http.Client
	url    string
}

func (m *httpModel) WithTools([]*schema.ToolInfo) (einomodel.ToolCallingChatModel, error) {
	return m, nil
}

func (m *httpModel) Stream(ctx context.Context, in []*schema.Message, _ ...einomodel.Option) (*schema.StreamReader[*schema.Message], error) {
	whole, err := m.Generate(ctx, in)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]*schema.Message{whole}), nil
}

func (m *httpModel) Generate(ctx context.Context, in []*schema.Message, _ ...einomodel.Option) (*schema.Message, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+"/v1/chat/completions", strings.NewReader(fmt.Sprintf(`{"model":"m","n":%d}`, len(in))))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := m.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var said struct {
		Choices []struct {
			Message *schema.Message
		}
		Usage struct {
			PromptTokens     int `json:"prompt_tokens"`
			CompletionTokens int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, err
	}
	out := said.Choices[0].Message
	out.ResponseMeta = &schema.ResponseMeta{Usage: &schema.TokenUsage{PromptTokens: said.Usage.PromptTokens, CompletionTokens: said.Usage.CompletionTokens}}
	return out, nil
}

// A model that eino calls by HTTP makes one model call, with the facts of both recorders. A tool
// that WrapTool wraps makes one tool call.
func TestEinoWithModelHTTP(t *testing.T) {
	for _, stream := range []bool{false, true} {
		asked := 0
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Request-Id", fmt.Sprint("req_", asked))
			message := `{"role":"assistant","content":"It rains."}`
			if asked++; asked == 1 {
				message = `{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]}`
			}
			fmt.Fprintf(w, `{"id":"cmpl","model":"m-1","choices":[{"message":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4}}`, message)
		}))
		defer provider.Close()
		type city struct {
			City string `json:"city"`
		}
		weather, err := utils.InferTool("weather", "tells the weather", ae.WrapTool("weather", func(_ context.Context, in city) (string, error) {
			return "rain in " + in.City, nil
		}))
		require.NoError(t, err)
		config := &einoadk.ChatModelAgentConfig{Name: "guide", Description: "knows", Model: &httpModel{&http.Client{Transport: new(modelhttp.Recorder).Transport(nil)}, provider.URL}}
		config.ToolsConfig.Tools = []einotool.BaseTool{weather}
		guide, err := einoadk.NewChatModelAgent(t.Context(), config)
		require.NoError(t, err)
		em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
		run, err := em.Run("r1")
		require.NoError(t, err)
		recorder := &eino.Recorder{Run: run}
		events := einoadk.NewRunner(t.Context(), einoadk.RunnerConfig{Agent: guide, EnableStreaming: stream}).Query(t.Context(), "Does it rain?", einoadk.WithCallbacks(recorder))
		for event, ok := events.Next(); ok; event, ok = events.Next() {
			require.NoError(t, event.Err)
			if o := event.Output; o != nil && o.MessageOutput.IsStreaming {
				_, err := schema.ConcatMessageStream(o.MessageOutput.MessageStream)
				require.NoError(t, err)
			}
		}
		require.NoError(t, recorder.End(t.Context()))
		rec.WantLaws(t, eventtest.LawOptions{})
		s := rec.Snapshot("r1")
		require.Len(t, s.Agents, 1)
		require.Equal(t, 2, s.Agents["guide"].ModelCalls)
		require.EqualValues(t, 18, s.Usage.Usage.InputTokens)
		require.EqualValues(t, 8, s.Usage.Usage.OutputTokens)
		require.Len(t, s.ClosedCalls, 1)
		var requests []string
		for _, ev := range rec.Events() {
			if p, ok := ev.Payload.(*ae.ModelReturned); ok {
				requests = append(requests, p.RequestID+" "+p.Model)
			}
		}
		require.Equal(t, []string{"req_0 m-1", "req_1 m-1"}, requests, "which only the client knows")
	}
}

// A script is a model of the ADK.
type script []*genai.Part

func (*script) Name() string { return "scripted" }

func (s *script) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		next := (*s)[0]
		*s = (*s)[1:]
		yield(&model.LLMResponse{Content: genai.NewContentFromParts([]*genai.Part{next}, genai.RoleModel), TurnComplete: true}, nil)
	}
}

// runADK records a run of an agent that asks its tool for the weather, and answers.
func runADK(t *testing.T, ctx context.Context, em *ae.Emitter, c llmagent.Config) {
	t.Helper()
	recorder := &adk.Recorder{Emitter: em}
	c.Name, c.Model = "guide", &script{
		{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "weather", Args: map[string]any{"city": "Oslo"}}},
		genai.NewPartFromText("It rains."),
	}
	guide, err := llmagent.New(c)
	require.NoError(t, err)
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: guide, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{recorder.Plugin()}},
	})
	require.NoError(t, err)
	for _, err := range recorder.Run(ctx, r, "ann", "s1", genai.NewContentFromText("Does it rain?", genai.RoleUser), agent.RunConfig{}) {
		require.NoError(t, err)
	}
}

// A tool of an MCP server that an agent of the ADK calls is one tool call for the client, and
// one in the server's own run.
func TestADKWithMCP(t *testing.T) {
	serverEm, serverRec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
	serverRun, err := serverEm.Run("server")
	require.NoError(t, err)
	serving := serverRun.Agent("weather-server")
	require.NoError(t, serving.Emit(t.Context(), &ae.AgentStarted{}))
	server := mcp.NewServer(&mcp.Implementation{Name: "weather"}, nil)
	overMCP := new(aemcp.Recorder)
	server.AddReceivingMiddleware(overMCP.Record)
	type city struct {
		City string `json:"city"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "weather", Description: "tells the weather"}, func(_ context.Context, _ *mcp.CallToolRequest, in city) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "rain in " + in.City}}}, nil, nil
	})
	here, there := mcp.NewInMemoryTransports()
	_, err = server.Connect(ae.ContextWithAgent(t.Context(), serving), there, nil)
	require.NoError(t, err)

	client := mcp.NewClient(&mcp.Implementation{Name: "guide"}, nil)
	client.AddSendingMiddleware(overMCP.Record)
	tools, err := mcptoolset.New(mcptoolset.Config{Client: client, Transport: here})
	require.NoError(t, err)
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
	runADK(t, t.Context(), em, llmagent.Config{Toolsets: []tool.Toolset{tools}})
	rec.WantLaws(t, eventtest.LawOptions{})
	serverRec.Want(t,
		"weather-server agent.started",
		"weather-server agent.toolCalled weather",
		"weather-server agent.toolReturned ok",
	)
	calls := rec.Snapshot("").ClosedCalls
	require.Len(t, calls, 1)
	require.Equal(t, "c1", calls[0].CallID)
	returned := rec.Events()
	returned = slices.DeleteFunc(returned, func(ev ae.Event) bool { return ev.Kind() != ae.KindToolReturned })
	require.Len(t, returned, 1)
	require.Contains(t, string(returned[0].Payload.(*ae.ToolReturned).Result), "rain in Oslo")
}

// A switched provider stands for the global one. The ADK asks that once, when the program starts.
type switched struct{ embedded.TracerProvider }

func (switched) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracerOfADK }

// A switchedTracer begins spans with the tracer of the test that runs.
type switchedTracer struct {
	embedded.Tracer
	to trace.Tracer
}

func (s *switchedTracer) Start(ctx context.Context, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	return s.to.Start(ctx, name, o...)
}

var tracerOfADK = &switchedTracer{to: noop.Tracer{}}

// A run of the ADK has the spans of the hook. Where the ADK makes spans too, with the global
// provider, an agent and a tool have one for both. A model call has two: the callbacks of a plugin
// are outside of the ADK's.
func TestADKWithHook(t *testing.T) {
	otel.SetTracerProvider(switched{})
	for name, c := range map[string]struct {
		both    bool
		foreign uint64
		spans   []string
	}{
		"the hook's alone": {false, 0, []string{
			"invoke_workflow app by hook, in request", "invoke_agent guide by hook, in invoke_workflow app",
			"chat scripted by hook, in invoke_agent guide", "chat scripted by hook, in invoke_agent guide",
			"execute_tool weather by hook, in invoke_agent guide",
		}},
		"the ADK's, too": {true, 2, []string{
			"invoke_workflow app by hook, in request", "invoke_agent guide by ADK, in request",
			"chat scripted by hook, in invoke_agent guide", "chat scripted by hook, in invoke_agent guide",
			"generate_content scripted by ADK, in invoke_agent guide", "generate_content scripted by ADK, in invoke_agent guide",
			"execute_tool weather by ADK, in invoke_agent guide",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			out := tracetest.NewInMemoryExporter()
			tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(out))
			if c.both {
				tracerOfADK.to = tp.Tracer("ADK")
				defer func() { tracerOfADK.to = noop.Tracer{} }()
			}
			hook, err := otelhook.New(otelhook.Options{TracerProvider: tp})
			require.NoError(t, err)
			em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{hook}})
			type city struct {
				City string `json:"city"`
			}
			weather, err := functiontool.New(functiontool.Config{Name: "weather", Description: "tells the weather"}, func(_ agent.Context, in city) (string, error) {
				return "rain in " + in.City, nil
			})
			require.NoError(t, err)
			ctx, request := tp.Tracer("host").Start(t.Context(), "request")
			runADK(t, ctx, em, llmagent.Config{Tools: []tool.Tool{weather}})
			request.End()

			rec.WantLaws(t, eventtest.LawOptions{})
			require.Equal(t, c.foreign, hook.Stats().Foreign)
			require.Zero(t, hook.Stats().Open)
			names, tracers := map[trace.SpanID]string{}, map[string]string{otelhook.ScopeName: "hook", "ADK": "ADK"}
			for _, s := range out.GetSpans() {
				names[s.SpanContext.SpanID()] = s.Name
			}
			var spans []string
			for _, s := range out.GetSpans() {
				require.Equal(t, request.SpanContext().TraceID(), s.SpanContext.TraceID())
				if by := tracers[s.InstrumentationScope.Name]; by != "" {
					spans = append(spans, fmt.Sprintf("%s by %s, in %s", s.Name, by, names[s.Parent.SpanID()]))
				}
			}
			require.ElementsMatch(t, c.spans, spans)
			for _, ev := range rec.Events() {
				id, err := trace.SpanIDFromHex(ev.SpanID)
				require.NoError(t, err)
				if ev.Kind() == ae.KindToolCalled {
					require.Equal(t, "execute_tool weather", names[id])
				}
				require.NotEmpty(t, names[id], "the span of %s", ev.Kind())
			}
		})
	}
}
