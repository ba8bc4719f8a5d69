package backendtest_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/otelhook"
	"github.com/agentevents/agentevents/otelhook/internal/backendtest"
)

// collect runs a release whose spans, metrics and logs go to a Collector, and the spans to
// more endpoints.
func collect(t *testing.T, o otelhook.Options, more ...string) (*rig, *backendtest.Collector, backendtest.Data) {
	t.Helper()
	c := backendtest.StartCollector(t)
	r := newRig(t, setup{traces: append(more, c.Endpoint), metrics: c.Endpoint, logs: c.Endpoint, hook: o})
	release(t, r, t.Context(), "run-1")
	r.export(t)
	return r, c, c.Data(t)
}

// TestCollector: the received data have the forms of the conventions, and the logs belong to the
// spans.
func TestCollector(t *testing.T) {
	r, _, d := collect(t, otelhook.Options{Semconv: otelhook.SemconvV1_41})
	ids := map[string]bool{}
	for _, s := range d.Spans {
		ids[s.SpanID] = true
		require.Equal(t, otelhook.ScopeName, s.ScopeName)
		require.Equal(t, "https://opentelemetry.io/schemas/1.41.0", s.SchemaURL)
		require.Equal(t, service, s.Service)
		require.Equal(t, strings.HasPrefix(s.Name, "chat "), s.Kind == 3, s.Name)
		require.Contains(t, s.Attributes, "gen_ai.operation.name", s.Name)
		failed := s.Status.Code != 0
		require.Equal(t, failed, s.Attributes["error.type"] != nil, s.Name)
		if failed {
			require.Equal(t, 2, s.Status.Code)
		}
		require.False(t, s.End.Before(s.Start))
	}
	require.Len(t, d.Spans, int(r.hook.Stats().Spans))
	names := map[string]int{}
	for _, l := range d.Logs {
		names[l.EventName]++
		require.True(t, ids[l.SpanID], "%s belongs to a span", l.EventName)
		require.Equal(t, d.Spans[0].TraceID, l.TraceID)
		require.Equal(t, "run-1", l.Attributes["agentevents.run.id"])
		require.Equal(t, "session-1", l.Attributes["gen_ai.conversation.id"])
	}
	require.Equal(t, 4, names["gen_ai.evaluation.result"], "%v", names) // audit, citation, claim, issue
	require.Equal(t, 1, names["agentevents.handoff.accepted"])
	for _, s := range d.Spans {
		require.Empty(t, s.Events, "they are logs")
	}
}

// TestMetrics: names, units and bounds follow the conventions, a duration equals its span's, and
// Jaeger has the spans that are the examples of a histogram.
func TestMetrics(t *testing.T) {
	jaeger := backendtest.StartJaeger(t)
	r, _, d := collect(t, otelhook.Options{Semconv: otelhook.SemconvV1_41}, jaeger.Endpoint)
	doubling := func(first float64, n int, factor float64) (list []float64) {
		for i := range n {
			list = append(list, first*math.Pow(factor, float64(i)))
		}
		return list
	}
	want := map[string]struct {
		unit   string
		bounds []float64
	}{
		"gen_ai.invoke_workflow.duration":     {"s", []float64{1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200}},
		"gen_ai.invoke_agent.duration":        {"s", doubling(0.1, 13, 2)},
		"gen_ai.execute_tool.duration":        {"s", doubling(0.01, 14, 2)},
		"gen_ai.client.operation.duration":    {"s", doubling(0.01, 14, 2)},
		"gen_ai.client.token.usage":           {"{token}", doubling(1, 14, 4)},
		"gen_ai.invoke_agent.inference_calls": {"{inference_call}", doubling(1, 8, 2)},
		"gen_ai.invoke_agent.tool_calls":      {"{tool_call}", doubling(1, 8, 2)},
	}
	seconds := map[string]float64{}
	for _, s := range d.Spans {
		seconds[s.Name] = s.End.Sub(s.Start).Seconds()
	}
	traces := map[string]map[string]bool{} // of Jaeger, with their spans
	for _, m := range d.Metrics {
		w, ok := want[m.Name]
		if !ok {
			require.True(t, strings.HasPrefix(m.Name, "agentevents."), m.Name)
			continue
		}
		delete(want, m.Name)
		require.Equal(t, w.unit, m.Unit, m.Name)
		for _, p := range m.Points {
			require.InDeltaSlice(t, w.bounds, p.Bounds, 1e-9, m.Name)
			require.NotEmpty(t, p.Exemplars, m.Name)
			for _, e := range p.Exemplars {
				if traces[e.TraceID] == nil {
					traces[e.TraceID] = map[string]bool{}
					for _, s := range jaeger.Trace(t, e.TraceID, int(r.hook.Stats().Spans)).Spans {
						traces[e.TraceID][s.SpanID] = true
					}
				}
				require.True(t, traces[e.TraceID][e.SpanID], "%s: Jaeger has the example", m.Name)
			}
			if tool, ok := p.Attributes["gen_ai.tool.name"].(string); ok && p.Count == 1 {
				require.InDelta(t, seconds["execute_tool "+tool], p.Value, 0.001, tool)
			}
		}
	}
	require.Empty(t, want)
}

// TestPrivacy: nothing that a user has written gets out unless it is asked for.
func TestPrivacy(t *testing.T) {
	_, c, _ := collect(t, otelhook.Options{Content: otelhook.ContentNone})
	for _, secret := range secrets {
		require.NotContains(t, string(c.Text(t)), secret)
	}
	_, c, _ = collect(t, otelhook.Options{Content: otelhook.ContentBoth, Redact: func(_, value string) string {
		return strings.ReplaceAll(value, "zqarguments", "***")
	}})
	text := string(c.Text(t))
	for i, secret := range secrets {
		switch secret {
		case "zqarguments", "zqreasoning", "zqapprover", "zqsource":
			require.NotContains(t, text, secret)
		case "zqprompt", "zqevidence": // evidence of audits stays in the log
		default:
			require.Contains(t, text, secret, i)
		}
	}
}
