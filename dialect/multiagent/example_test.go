package multiagent_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/multiagent"
)

func Example() {
	log := strings.NewReader(`{"id":"e1","traceId":"t","spanId":"a1","sessionId":"s1","runId":"r1","actor":"searcher","type":"agent.spawned","payload":{"agentTask":"find the docs"},"timestamp":"2026-05-18T09:00:00Z","schemaVersion":"1.0"}
{"id":"e2","traceId":"t","spanId":"a1","sessionId":"s1","runId":"r1","actor":"searcher","type":"tool.call.started","payload":{"tool":"web_search","input":{"q":"agent events"}},"timestamp":"2026-05-18T09:00:01Z","schemaVersion":"1.0"}
{"id":"e3","traceId":"t","spanId":"a1","sessionId":"s1","runId":"r1","actor":"searcher","type":"tool.call.completed","payload":{"output":["docs"]},"timestamp":"2026-05-18T09:00:02Z","schemaVersion":"1.0"}
{"id":"e4","traceId":"t","spanId":"a1","sessionId":"s1","runId":"r1","actor":"searcher","type":"agent.completed","payload":{"agentId":"searcher","tokens":512,"durationMs":2500},"timestamp":"2026-05-18T09:00:03Z","schemaVersion":"1.0"}
`)
	reader := agentevents.NewReader(log, agentevents.ReaderOptions{Decoder: multiagent.NewDecoder(multiagent.Options{})})
	runs, err := agentevents.FoldLog(reader, agentevents.FoldOptions{})
	if err != nil {
		fmt.Println(err)
	}
	for run := range runs.Drain() {
		agent := run.Agents["searcher"]
		fmt.Println(run.RunID, run.Status, agent.Task, run.Tools["web_search"].Calls, run.Usage.Usage.TotalTokens.V)
	}
	// Output: r1 completed find the docs 1 512
}

func ExampleEncoder() {
	enc := multiagent.NewEncoder(multiagent.EncoderOptions{})
	line, err := enc.Append(nil, agentevents.Event{
		ID: "e1", Time: time.Date(2026, 5, 18, 9, 0, 0, 0, time.UTC), RunID: "r1", AgentID: "coder", SchemaVersion: agentevents.SchemaVersion,
		Scope:   agentevents.Scope{SessionID: "s1"},
		TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7",
		Payload: &agentevents.ToolCalled{CallID: "c1", ToolID: "Read", Arguments: `{"path":"main.go"}`},
	})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(string(line))
	for _, loss := range enc.Losses() {
		fmt.Println(loss.What, loss.Pointer)
	}
	// Output:
	// {"id":"e1","traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7","sessionId":"s1","runId":"r1","actor":"coder","type":"tool.call.started","payload":{"callId":"c1","toolId":"Read","arguments":{"path":"main.go"}},"timestamp":"2026-05-18T09:00:00.000Z","schemaVersion":"1.0"}
	// made up /multiagent/schemaVersion
}
