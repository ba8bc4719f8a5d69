package snapshot_test

import (
	"fmt"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/dialect/openwop/snapshot"
)

// The document's snapshot comes from a fold. The host adds the facts that no event has.
func ExampleOf() {
	log := `{"eventId":"e1","runId":"r1","type":"run.started","payload":{"workflowId":"refunds"},"timestamp":"2026-05-19T10:00:00.000Z","sequence":0}
{"eventId":"e2","runId":"r1","nodeId":"n1","type":"node.started","payload":{"nodeId":"n1","typeId":"core.agent"},"timestamp":"2026-05-19T10:00:01.000Z","sequence":1}
{"eventId":"e3","runId":"r1","nodeId":"n1","type":"agent.decided","payload":{"agentId":"host:planner","decision":"refund","confidence":0.4},"timestamp":"2026-05-19T10:00:02.000Z","sequence":2}
{"eventId":"e4","runId":"r1","nodeId":"n1","type":"node.suspended","payload":{"nodeId":"n1","interruptId":"i1","reason":"low-confidence"},"timestamp":"2026-05-19T10:00:02.000Z","sequence":3}
`
	reader := agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: openwop.NewDecoder(openwop.Options{Profile: openwop.SchemaV1})})
	runs, err := agentevents.FoldLog(reader, agentevents.FoldOptions{})
	if err != nil {
		fmt.Println(err)
	}
	s, err := snapshot.Of(runs.Snapshot("r1"))
	if err != nil {
		fmt.Println(err)
	}
	s.RunOrchestrator = agentevents.Some(agentevents.AgentRef{AgentID: "host:boss", ModelClass: agentevents.ModelWriting})
	text, losses, err := snapshot.Append(nil, s, openwop.SchemaV1)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.ReplaceAll(string(text), `,"`, ",\n\""))
	for _, loss := range losses {
		fmt.Println(loss.What, loss.Pointer)
	}
	// Output:
	// {"runId":"r1",
	// "workflowId":"refunds",
	// "status":"waiting-approval",
	// "currentNodeId":"n1",
	// "startedAt":"2026-05-19T10:00:00.000Z",
	// "agent":{"agentId":"host:planner"},
	// "runOrchestrator":{"agentId":"host:boss"},
	// "nodeStates":{"n1":{"status":"suspended"}}}
	// dropped /runOrchestrator/modelClass
}
