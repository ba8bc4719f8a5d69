package openwop_test

import (
	"context"
	"encoding/json"
	"errors"
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

// A host's emitter refuses undeclared events and forbidden tools, and acts when
// an agent is not sure. There is a Host for each run, because a run has its own
// threshold.
func ExampleHost() {
	ctx := context.Background()
	hosts := map[string]*openwop.Host{"run-1": {
		Capabilities: &openwop.Capabilities{DecisionEvents: true, ToolEvents: true},
		Agents:       map[string]openwop.Manifest{"host:planner": {Tools: []string{"orders:lookup"}}},
		Threshold:    agentevents.Some(0.8),
		Orchestrator: "host:boss",
	}}
	emitter, _ := agentevents.NewEmitter(agentevents.EmitterOptions{
		Guard:  func(ev agentevents.Event) *agentevents.RuleError { return hosts[ev.RunID].Guard(ev) },
		Follow: func(ev agentevents.Event) []agentevents.Event { return hosts[ev.RunID].Follow(ev) },
		Sinks: []agentevents.Sink{agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error {
			if p, ok := ev.Payload.(*agentevents.OrchestratorDecided); ok {
				fmt.Println(ev.AgentID, p.Decision)
			}
			return nil
		})},
	})
	run, _ := emitter.Run("run-1")
	planner := run.With(agentevents.Scope{NodeID: "plan"}).Agent("host:planner")
	for _, err := range []error{
		planner.Emit(ctx, &agentevents.AgentReasoned{Reasoning: "The order is late."}),
		planner.Emit(ctx, &agentevents.ToolCalled{CallID: "c1", ToolID: "orders:delete"}),
		planner.Emit(ctx, &agentevents.AgentDecided{Decision: `"refund"`, Confidence: agentevents.Some(0.75)}),
	} {
		var broken *agentevents.RuleError
		if errors.As(err, &broken) {
			fmt.Println(broken.Rule, broken.Subject)
		}
	}
	// Output:
	// host:boss {"kind":"ask-user","prompt":"The agent \"host:planner\" decided with confidence 0.75, below 0.8. Go on?"}
	// capability capability reasoningEvents
	// tool-allowed tool "orders:delete"
}

// A client looks up what a host declares before it waits for events.
func ExampleCapabilities_Allows() {
	for _, document := range []string{
		`{"capabilities":{"agents":{"toolEvents":true}}}`,
		`{"agents":{"supported":true,"reasoning":{"streaming":true}}}`, // in the published form
		`{}`,
	} {
		var d openwop.Discovery
		if err := json.Unmarshal([]byte(document), &d); err != nil {
			fmt.Println(err)
		}
		fmt.Println(d.Agents.Allows(&agentevents.ToolCalled{}), d.Agents.Allows(&agentevents.AgentReasoningDelta{}))
	}
	// Output:
	// true false
	// true true
	// false false
}

// The document's snapshot comes from a fold. The host adds what no event says.
func ExampleSnapshotOf() {
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
	snapshot, err := openwop.SnapshotOf(runs.Snapshot("r1"))
	if err != nil {
		fmt.Println(err)
	}
	snapshot.RunOrchestrator = agentevents.Some(agentevents.AgentRef{AgentID: "host:boss", ModelClass: agentevents.ModelWriting})
	text, losses, err := openwop.AppendSnapshot(nil, snapshot, openwop.SchemaV1)
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
