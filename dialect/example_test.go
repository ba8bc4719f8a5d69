package dialect_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// A log of any format becomes a KAHN log. The losses are data: the facts of the events that the
// lines lack, and the values that the encoder made up.
func Example() {
	const log = `{"timestamp":1001.25,"sequence":0,"session_id":"s-1","run_id":"run-1","agent_id":"coder","text":"Reading.","type":"text_delta"}
{"eventId":"e1","runId":"run-2","type":"agent.toolCalled","payload":{"agentId":"coder","toolId":"Read","callId":"c1","arguments":{"path":"main.go"}},"timestamp":"2026-05-19T10:00:04.000Z","sequence":4}
{"eventId":"e2","runId":"run-2","type":"agent.toolReturned","payload":{"agentId":"coder","toolId":"Read","callId":"c1","result":"package main","durationMs":12},"timestamp":"2026-05-19T10:00:04.012Z","sequence":5}
`
	r := agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: &dialect.Auto{
		Decoders: map[dialect.Name]agentevents.Decoder{
			dialect.KAOS:    kaos.NewDecoder(kaos.Options{}),
			dialect.OpenWOP: openwop.NewDecoder(openwop.Options{}),
		},
	}})
	enc := kahn.NewEncoder(kahn.EncoderOptions{})
	var out []byte
	for ev, err := range r.All() {
		if err == nil {
			out, err = enc.Append(out, ev)
		}
		if err != nil && !errors.Is(err, dialect.ErrNoCounterpart) {
			fmt.Println(err) // a bad line, or an event that breaks a rule of the document
		}
	}
	out, err := enc.End(out)
	fmt.Printf("%s%v\n", out, err)
	for _, loss := range enc.Losses() {
		fmt.Println(loss)
	}
	// Output:
	// {"ts":"2026-05-19T10:00:04.012Z","run_id":"run-2","event":"tool_invocation","agent_id":"coder","step":0,"tool_name":"Read","duration_s":0.012,"ok":true,"input_summary":"{\"path\":\"main.go\"}","output_summary":"package main"}
	// <nil>
	// dropped: every kind /id: the document has no event ids (2 times, first in run run-2 at sequence 4)
	// dropped: every kind /sequence: readers count lines (2 times, first in run run-2 at sequence 4)
	// dropped: agent.text.delta the event: no counterpart (once, in run run-1 at sequence 0)
	// altered: agent.toolCalled the event: written with its return (once, in run run-2 at sequence 4)
	// dropped: agent.toolCalled /payload/arguments: written as a summary, or the line has one (once, in run run-2 at sequence 4)
	// dropped: agent.toolCalled /payload/callId: the document has no call ids (once, in run run-2 at sequence 4)
	// dropped: agent.toolReturned /payload/callId: the document has no call ids (once, in run run-2 at sequence 5)
	// dropped: agent.toolReturned /payload/result: written as a summary, or the line has one (once, in run run-2 at sequence 5)
	// made up: agent.toolReturned /payload/resultSummary: the value's text (once, in run run-2 at sequence 5)
	// made up: agent.toolReturned /step: the step the agent is at (once, in run run-2 at sequence 5)
}
