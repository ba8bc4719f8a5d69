package agentevents_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
)

// repeatable makes ids and times the same in every run.
func repeatable() ae.EmitterOptions {
	ids, now := 0, time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
	return ae.EmitterOptions{
		Clock: func() time.Time { now = now.Add(40 * time.Millisecond); return now },
		NewID: func() string { ids++; return fmt.Sprintf("id-%d", ids) },
	}
}

// The README's first example. TestReadme holds the README to it.
func Example_readme() {
	ctx := context.Background()
	options := repeatable()
	// README:
	options.Sinks = []ae.Sink{ae.NewWriter(os.Stdout, ae.WriterOptions{})}
	em, err := ae.NewEmitter(options)
	run, err := em.Run("r1")
	coder := run.Agent("coder")
	err = coder.Emit(ctx, &ae.AgentStarted{Task: "Add /v2/health"})
	err = coder.To(ctx, ae.StatusToolCall)
	_, err = coder.Do(ctx, &ae.ToolCalled{ToolID: "Read", Arguments: `{"path":"main.go","api_key":"k-123"}`}, readFile)
	err = coder.To(ctx, ae.StatusToolResult, ae.StatusThinking)
	fmt.Println(err)
	// end
	_ = err
	// Output:
	// {"id":"id-1","sequence":0,"timestamp":"2026-05-05T09:00:00.040Z","type":"agent.started","runId":"r1","agentId":"coder","schemaVersion":"1.0","payload":{"task":"Add /v2/health"}}
	// {"id":"id-2","sequence":1,"timestamp":"2026-05-05T09:00:00.080Z","type":"agent.transition","runId":"r1","agentId":"coder","step":0,"schemaVersion":"1.0","payload":{"from":"thinking","to":"tool_call"}}
	// {"id":"id-4","sequence":2,"timestamp":"2026-05-05T09:00:00.160Z","type":"agent.toolCalled","runId":"r1","agentId":"coder","step":0,"schemaVersion":"1.0","marks":["redacted"],"payload":{"callId":"id-3","toolId":"Read","arguments":{"path":"main.go","api_key":"[REDACTED:key]"}}}
	// {"id":"id-5","sequence":3,"timestamp":"2026-05-05T09:00:00.240Z","type":"agent.toolReturned","runId":"r1","agentId":"coder","step":0,"causationId":"id-4","schemaVersion":"1.0","payload":{"callId":"id-3","toolId":"Read","status":"ok","result":"package main","durationMs":80}}
	// {"id":"id-6","sequence":4,"timestamp":"2026-05-05T09:00:00.280Z","type":"agent.transition","runId":"r1","agentId":"coder","step":0,"schemaVersion":"1.0","payload":{"from":"tool_call","to":"tool_result"}}
	// agentevents: agent.transition: tool_result → thinking is not in the strict table; legal: response; lifecycles that allow it: relaxed, derived; agent "coder" is tool_result (rule transition-legal, run "r1", sequence 5)
}

func readFile(context.Context) (ae.JSON, error) { return ae.JSONString("package main"), nil }

// TestReadme compares the README's first example with the one that runs.
func TestReadme(t *testing.T) {
	source, err := os.ReadFile("example_readme_test.go")
	require.NoError(t, err)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(source), "\t// README:\n")
	code, rest, ok := strings.Cut(code, "\t// end\n")
	require.True(t, ok)
	require.Contains(t, string(readme), strings.ReplaceAll(code, "\n\t", "\n")[1:], "the README's code is not the example's")
	_, output, _ := strings.Cut(rest, "\t// Output:\n")
	output, _, ok = strings.Cut(output, "\n}\n")
	require.True(t, ok)
	for line := range strings.Lines(output) {
		require.Contains(t, string(readme), strings.TrimPrefix(line, "\t// "), "the README's output is not the example's")
	}
}
