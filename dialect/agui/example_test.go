package agui_test

import (
	"fmt"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
)

// A user interface shows an agent's text while the agent writes it.
func ExampleEncoder() {
	enc := agui.NewEncoder(agui.EncoderOptions{SSE: true})
	for _, p := range []agentevents.Payload{
		&agentevents.RunStarted{},
		&agentevents.TextDelta{BlockID: "b1", Delta: "The endpoint "},
		&agentevents.TextDelta{BlockID: "b1", Delta: "is there."},
		&agentevents.RunCompleted{},
	} {
		ev := agentevents.Event{RunID: "r1", SchemaVersion: agentevents.SchemaVersion, Payload: p}
		if _, ok := p.(*agentevents.TextDelta); ok {
			ev.AgentID = agui.Agent
		}
		frames, err := enc.Append(nil, ev)
		if err != nil {
			fmt.Println(err)
			return
		}
		for line := range strings.Lines(strings.ReplaceAll(string(frames), `"timestamp":0,`, "")) {
			if line != "\n" {
				fmt.Print(line)
			}
		}
	}
	// Output:
	// data: {"type":"RUN_STARTED","threadId":"r1","runId":"r1"}
	// data: {"type":"TEXT_MESSAGE_START","messageId":"b1","role":"assistant"}
	// data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"b1","delta":"The endpoint "}
	// data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"b1","delta":"is there."}
	// data: {"type":"TEXT_MESSAGE_END","messageId":"b1","metadata":{"agentevents":"made"}}
	// data: {"type":"RUN_FINISHED","threadId":"r1","runId":"r1"}
}

// A decoder reads the frames of a server of AG-UI as a browser gets them.
func ExampleDecoder() {
	log := `data: {"type":"RUN_STARTED","threadId":"t1","runId":"r1"}

data: {"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"Read"}

data: {"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"path\":\"a.go\"}"}

data: {"type":"TOOL_CALL_END","toolCallId":"c1"}
`
	r := agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: agui.NewDecoder(agui.Options{})})
	for ev, err := range r.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		if call, ok := ev.Payload.(*agentevents.ToolCalled); ok {
			fmt.Println(ev.AgentID, call.ToolID, call.Arguments)
		}
	}
	// Output:
	// agent Read {"path":"a.go"}
}
