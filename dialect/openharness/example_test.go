package openharness_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openharness"
)

const log = `{"type":"flow:start","timestamp":1767517322000,"flowName":"my-workflow"}
{"type":"node:start","nodeId":"task-agent","runId":"exec-1","timestamp":1767517322100}
{"type":"agent:start","nodeId":"task-agent","runId":"exec-1","timestamp":1767517322200,"sessionId":"sess-123","prompt":"Update the list"}
{"type":"agent:text:delta","nodeId":"task-agent","runId":"exec-1","timestamp":1767517322300,"content":"I'll "}
{"type":"agent:text:delta","nodeId":"task-agent","runId":"exec-1","timestamp":1767517322400,"content":"start by..."}
{"type":"agent:tool","nodeId":"task-agent","runId":"exec-1","timestamp":1767517322500,"toolName":"read_file","toolInput":{"path":"a.go"},"toolOutput":"package a","durationMs":12}
{"type":"command:received","timestamp":1767517322600,"command":{"type":"send","message":"be quick","runId":"exec-1"}}
{"type":"flow:paused","timestamp":1767517322700}
`

// A fold's state is persisted as the document's snapshot, from which the run resumes.
func ExampleAppendSnapshot() {
	f := agentevents.NewFold(agentevents.FoldOptions{})
	r := agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{
		Decoder: openharness.NewDecoder(openharness.Options{RunID: "flow-run"}),
	})
	for ev, err := range r.All() {
		if err != nil {
			fmt.Println(err)
			continue
		}
		f.Apply(ev)
	}
	fmt.Println(f.Snapshot().Agents["exec-1"].Text)
	text, err := openharness.AppendSnapshot(nil, f.Snapshot())
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.ReplaceAll(string(text), `,"`, ",\n\""))
	// Output:
	// I'll start by...
	// {"runId":"flow-run",
	// "status":"paused",
	// "outputs":{},
	// "state":{},
	// "nodeStatus":{"task-agent":"running"},
	// "edgeStatus":{},
	// "loopCounters":{},
	// "inbox":[{"type":"send",
	// "message":"be quick",
	// "runId":"exec-1"}],
	// "agentSessions":{"task-agent":"sess-123"}}
}

// The encoder writes events of another document, and lists the losses.
func ExampleEncoder() {
	e := openharness.NewEncoder(openharness.EncoderOptions{})
	var out []byte
	at := time.UnixMilli(1767517322488)
	for _, p := range []agentevents.Payload{
		&agentevents.ToolCalled{CallID: "c1", ToolID: "Read", Arguments: `{"path":"a.go"}`},
		&agentevents.ToolReturned{CallID: "c1", ToolID: "Read", Status: agentevents.ToolStatusOK, Result: `"package a"`},
	} {
		var err error
		ev := agentevents.Event{RunID: "r", AgentID: "coder", Time: at, SchemaVersion: agentevents.SchemaVersion, Payload: p}
		if out, err = e.Append(out, ev); err != nil {
			fmt.Println(err)
		}
		at = at.Add(12 * time.Millisecond)
	}
	os.Stdout.Write(out)
	for _, l := range e.Losses() {
		fmt.Println(strings.TrimSpace(fmt.Sprint(l.What, " ", l.Kind, l.Pointer, " ", l.Detail)))
	}
	// Output:
	// {"type":"agent:tool","nodeId":"coder","runId":"coder","timestamp":1767517322500,"toolName":"Read","toolInput":{"path":"a.go"},"toolOutput":"package a","durationMs":12}
	// dropped /agentId no line names an agent: the execution of a node stands for it
	// made up /nodeId the agent's name, or the run's id
	// made up /nodeRunId the agent's name, or the run's id
	// dropped /runId a log has one run, which no line names
	// altered agent.toolCalled joined with its return
	// dropped agent.toolCalled/payload/callId derived from the line
	// dropped agent.toolReturned/payload/callId derived from the line
	// made up agent.toolReturned/payload/durationMs measured from the call
}
