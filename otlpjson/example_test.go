package otlpjson_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/otlpjson"
)

const log = `{"id":"1","sequence":0,"timestamp":"2026-01-02T10:00:00Z","type":"agent.started","runId":"r1","agentId":"coder","payload":{"task":"add a route"}}
{"id":"2","sequence":1,"timestamp":"2026-01-02T10:00:01Z","type":"agent.toolCalled","runId":"r1","agentId":"coder","payload":{"callId":"c1","toolId":"Read"}}
{"id":"3","sequence":2,"timestamp":"2026-01-02T10:00:02Z","type":"agent.toolReturned","runId":"r1","agentId":"coder","payload":{"callId":"c1","toolId":"Read","status":"ok"}}
`

// export exports a log to a sender.
func export(ctx context.Context, to otlpjson.Sender, o otlpjson.Options) (otlpjson.Counts, error) {
	x := otlpjson.NewExporter(to, o)
	var bad error
	for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{}).All() {
		if err != nil {
			bad = errors.Join(bad, err) // a line that cannot be read
			continue
		}
		if err := x.Export(ctx, &ev); err != nil {
			return x.Counts(), err
		}
	}
	return x.Counts(), errors.Join(bad, x.Close(ctx))
}

// A log is posted to a collector. The agent did not end: its span ends with its last event.
func ExampleExporter() {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		var r struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct{ Name, StartTimeUnixNano, EndTimeUnixNano string }
				}
			}
		}
		_ = json.NewDecoder(req.Body).Decode(&r)
		for _, s := range r.ResourceSpans[0].ScopeSpans[0].Spans {
			fmt.Println(req.URL.Path, s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
		}
	}))
	defer collector.Close()

	x := otlpjson.NewExporter(&otlpjson.Client{Endpoint: collector.URL}, otlpjson.Options{Service: "ci"})
	for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{}).All() {
		if err != nil {
			fmt.Fprintln(os.Stderr, err) // a line that cannot be read
			continue
		}
		if err := x.Export(context.Background(), &ev); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := x.Close(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(x.Counts().Spans, x.Counts().Closed)
	// Output:
	// /v1/traces execute_tool Read 1767348001000000000 1767348002000000000
	// /v1/traces invoke_agent coder 1767348000000000000 1767348002000000000
	// /v1/traces invoke_workflow 1767348000000000000 1767348002000000000
	// 3 map[shutdown:2]
}

func TestExport(t *testing.T) {
	var one, two strings.Builder
	counts, err := export(t.Context(), otlpjson.Lines(&one), otlpjson.Options{})
	require.NoError(t, err)
	require.Equal(t, otlpjson.Counts{Events: 3, Runs: 1, Spans: 0}, otlpjson.Counts{Events: counts.Events, Runs: counts.Runs, Spans: counts.Spans}, "before Close")
	_, err = export(t.Context(), otlpjson.Lines(&two), otlpjson.Options{})
	require.NoError(t, err)
	require.Equal(t, one.String(), two.String())
	require.NotContains(t, one.String(), "add a route")

	two.Reset()
	_, err = export(t.Context(), otlpjson.Lines(&two), otlpjson.Options{MaxSpans: 1, Content: true})
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(two.String(), "\n"))
	require.Contains(t, two.String(), "add a route")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = export(ctx, &otlpjson.Client{Endpoint: "http://127.0.0.1:1"}, otlpjson.Options{})
	require.ErrorIs(t, err, context.Canceled)
}
