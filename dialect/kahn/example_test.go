package kahn_test

import (
	"fmt"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/kahn"
)

// The encoder builds KAHN lines from Go structs. A call waits for its return:
// both are one line.
func ExampleEncoder() {
	enc := kahn.NewEncoder(kahn.EncoderOptions{})
	at := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
	var lines []byte
	for i, p := range []ae.Payload{
		&ae.AgentTransition{From: ae.StatusThinking, To: ae.StatusToolCall, Reason: "tool_call:Read"},
		&ae.ToolCalled{CallID: "c1", ToolID: "Read", ArgumentsSummary: "main.go"},
		&ae.ToolReturned{CallID: "c1", ToolID: "Read", Status: ae.ToolStatusOK, ResultSummary: "package main", Duration: ae.Some(40 * time.Millisecond)},
	} {
		var err error
		lines, err = enc.Append(lines, ae.Event{
			ID: fmt.Sprint(i), Sequence: uint64(i), Time: at.Add(time.Duration(i) * time.Second),
			RunID: "agent-coder-1", AgentID: "coder", Step: ae.Some(0), Payload: p,
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	lines, err := enc.End(lines)
	fmt.Printf("%s%v\n", lines, err)
	// Output:
	// {"ts":"2026-05-05T09:00:00.000Z","run_id":"agent-coder-1","event":"agent_transition","agent_id":"coder","step":0,"from":"thinking","to":"tool_call","reason":"tool_call:Read"}
	// {"ts":"2026-05-05T09:00:02.000Z","run_id":"agent-coder-1","event":"tool_invocation","agent_id":"coder","step":0,"tool_name":"Read","duration_s":0.04,"ok":true,"input_summary":"main.go","output_summary":"package main"}
	// <nil>
}
