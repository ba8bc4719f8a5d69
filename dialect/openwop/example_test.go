package openwop_test

import (
	"fmt"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// A host's log with the published names becomes one with the RFC's names.
func Example() {
	log := `{"eventId":"e1","runId":"r1","type":"agent.toolCalled","payload":{"agentId":"host:planner","toolName":"orders.lookup","callId":"c1","inputs":{"id":7}},"timestamp":"2026-05-19T10:00:07.000Z","sequence":0}
{"eventId":"e2","runId":"r1","type":"agent.handoff","payload":{"fromAgentId":"host:planner","toAgentId":"host:writer"},"timestamp":"2026-05-19T10:00:08.000Z","sequence":1}
`
	reader := agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{
		Decoder: openwop.NewDecoder(openwop.Options{Profile: openwop.SchemaV1, Strict: true}),
	})
	enc := openwop.NewEncoder(openwop.EncoderOptions{Profile: openwop.RFC0002})
	for ev, err := range reader.All() {
		if err != nil {
			fmt.Println(err)
			continue
		}
		line, err := enc.Append(nil, ev)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Print(string(line))
	}
	fmt.Println(len(enc.Losses()), "losses")
	// Output:
	// {"eventId":"e1","runId":"r1","type":"agent.toolCalled","payload":{"agentId":"host:planner","toolId":"orders.lookup","callId":"c1","arguments":{"id":7}},"timestamp":"2026-05-19T10:00:07.000Z","sequence":0}
	// {"eventId":"e2","runId":"r1","type":"agent.handoff","payload":{"from":{"agentId":"host:planner"},"to":{"agentId":"host:writer"}},"timestamp":"2026-05-19T10:00:08.000Z","sequence":1}
	// 0 losses
}
