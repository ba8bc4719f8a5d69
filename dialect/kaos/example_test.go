package kaos_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/kaos"
)

const stream = `event: span
data: {"timestamp":1000.5,"sequence":0,"session_id":"s-1","run_id":"run_1f2e3d4c5b6a","agent_id":null,"subject":"turn","phase":"start","span_id":"00000000000a","parent_span_id":null,"name":"turn.1","duration_ms":null,"error_type":null,"error_message":null,"attributes":{"turn_number":1},"type":"span"}
id: 0

event: text_delta
data: {"timestamp":1001.0,"sequence":1,"session_id":"s-1","run_id":"run_1f2e3d4c5b6a","agent_id":null,"content":"Hello","type":"text_delta"}
id: 1

event: span
data: {"timestamp":1002.0,"sequence":2,"session_id":"s-1","run_id":"run_1f2e3d4c5b6a","agent_id":null,"subject":"turn","phase":"complete","span_id":"00000000000a","parent_span_id":null,"name":"turn.1","duration_ms":1500.0,"error_type":null,"error_message":null,"attributes":{"turn_number":1},"type":"span"}
id: 2

`

// The decoder reads a stream of Server-Sent Events. One anchor turns their
// timestamps into times.
func ExampleDecoder() {
	d := kaos.NewDecoder(kaos.Options{Anchor: time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC), AnchorSeconds: 1000})
	for ev, err := range agentevents.NewReader(strings.NewReader(stream), agentevents.ReaderOptions{Decoder: d}).All() {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(ev.Sequence, ev.Time.Format(time.RFC3339Nano), ev.Kind())
		if p, ok := ev.Payload.(*agentevents.TurnEnded); ok {
			fmt.Println("the turn took", p.Duration.V)
		}
	}
	// Output:
	// 0 2026-05-05T09:00:00.5Z turn.started
	// 1 2026-05-05T09:00:01Z agent.text.delta
	// 2 2026-05-05T09:00:02Z turn.ended
	// the turn took 1.5s
}

// The encoder writes an event as a frame, and lists the facts that the frame lacks.
func ExampleEncoder() {
	e := kaos.NewEncoder(kaos.EncoderOptions{SSE: true})
	frame, err := e.Append(nil, agentevents.Event{
		Time: time.Unix(12, 0), RunID: "run_1f2e3d4c5b6a", Scope: agentevents.Scope{SessionID: "s-1"},
		Payload: &agentevents.UsageObserved{Model: "m-1", Usage: agentevents.Usage{InputTokens: 10, OutputTokens: 4}, Source: "respond"},
	})
	if err != nil {
		fmt.Println(err)
	}
	os.Stdout.Write(frame)
	for _, l := range e.Losses() {
		fmt.Println(l.Pointer, l.What)
	}
	// Output:
	// event: usage_observed
	// data: {"timestamp":12.0,"sequence":0,"session_id":"s-1","run_id":"run_1f2e3d4c5b6a","agent_id":null,"input_tokens":10,"output_tokens":4,"source":"respond","type":"usage_observed"}
	// id: 0
	//
	// /agentId made up
	// /payload/model dropped
}
