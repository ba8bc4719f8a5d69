package together

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	ae "github.com/agentevents/agentevents"
	aegenkit "github.com/agentevents/agentevents/adapter/genkit"
	"github.com/agentevents/agentevents/adapter/modelhttp"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/otelhook"
)

// askByHTTP is a model of Genkit that calls a tool, and then answers.
func askByHTTP(client *http.Client, url string) ai.ModelActionFunc[any] {
	return func(ctx context.Context, req *ai.ModelRequest, _ any, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(`{"model":"m"}`))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return nil, err
		}
		said := ai.NewModelTextMessage("It rains.")
		if len(req.Messages) == 1 {
			said = ai.NewModelMessage(ai.NewToolRequestPart(&ai.ToolRequest{Name: "weather", Ref: "c1", Input: map[string]any{"city": "Oslo"}}))
		}
		return &ai.ModelResponse{Request: req, Message: said, FinishReason: ai.FinishReasonStop}, nil
	}
}

// A model that Genkit asks by HTTP makes one model call, with the knowledge of both recorders. A
// tool that WrapTool wraps makes one tool call. Genkit and the hook make spans in one trace: the
// hooks of Genkit are outside of its spans, so each call has two.
func TestGenkitWithModelHTTPAndHook(t *testing.T) {
	asked := 0
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", fmt.Sprint("req_", asked))
		fmt.Fprint(w, `{"id":"cmpl","model":"m-1","choices":[{"message":{"role":"assistant","content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4}}`)
	}))
	defer provider.Close()
	out := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(out))
	otel.SetTracerProvider(switched{}) // the tracer of the ADK keeps the first provider
	otel.SetTracerProvider(tp)
	hook, err := otelhook.New(otelhook.Options{TracerProvider: tp})
	require.NoError(t, err)
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Sinks: []ae.Sink{hook}})
	run, err := em.Run("r1")
	require.NoError(t, err)

	type city struct {
		City string `json:"city"`
	}
	rain := ae.WrapTool("weather", func(_ context.Context, in city) (string, error) { return "rain in " + in.City, nil })
	g := genkit.Init(t.Context())
	require.Same(t, tp, otel.GetTracerProvider())
	weather := genkit.DefineTool(g, "weather", "tells the weather", func(ctx *ai.ToolContext, in city) (string, error) { return rain(ctx, in) })
	client := &http.Client{Transport: new(modelhttp.Recorder).Transport(nil)}
	model := genkit.DefineModelAction(g, "openai/m", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true}}, askByHTTP(client, provider.URL))
	ctx, request := tp.Tracer("host").Start(t.Context(), "request")
	r := &aegenkit.Recorder{Run: run, Agent: "guide"}
	_, err = genkit.Generate(ctx, g, ai.WithPrompt("Does it rain?"), ai.WithModel(model), ai.WithTools(weather), ai.WithUse(r))
	require.NoError(t, err)
	require.NoError(t, r.End(ctx))
	request.End()

	rec.WantLaws(t, eventtest.LawOptions{})
	s := rec.Snapshot("r1")
	require.Len(t, s.Agents, 1)
	require.Equal(t, 2, s.Agents["guide"].ModelCalls)
	require.EqualValues(t, 18, s.Usage.Usage.InputTokens)
	require.Len(t, s.ClosedCalls, 1)
	var requests []string
	for _, p := range eventtest.Payloads[*ae.ModelReturned](rec.Events()) {
		requests = append(requests, p.RequestID+" "+p.Model)
	}
	require.Equal(t, []string{"req_1 m-1", "req_2 m-1"}, requests, "only the client knows these")

	names := map[trace.SpanID]string{}
	for _, s := range out.GetSpans() {
		require.Equal(t, request.SpanContext().TraceID(), s.SpanContext.TraceID())
		names[s.SpanContext.SpanID()] = s.Name
	}
	var spans []string
	by := map[string]string{otelhook.ScopeName: "hook", "genkit-tracer": "Genkit"}
	for _, s := range out.GetSpans() {
		if by := by[s.InstrumentationScope.Name]; by != "" {
			spans = append(spans, fmt.Sprintf("%s by %s, in %s", s.Name, by, names[s.Parent.SpanID()]))
		}
	}
	require.ElementsMatch(t, []string{
		"invoke_workflow by hook, in request", "invoke_agent guide by hook, in invoke_workflow", "generate by Genkit, in request", "generate by Genkit, in generate",
		"chat m by hook, in invoke_agent guide", "openai/m by Genkit, in generate",
		"execute_tool weather by hook, in invoke_agent guide", "weather by Genkit, in generate",
		"chat m by hook, in invoke_agent guide", "openai/m by Genkit, in generate",
	}, spans)
	require.Zero(t, hook.Stats().Open)
}
