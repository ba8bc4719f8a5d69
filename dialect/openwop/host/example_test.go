package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop/host"
)

// A host's emitter refuses undeclared events and forbidden tools, and acts when
// an agent is not sure. There is a Host for each run, because a run has its own
// threshold.
func ExampleHost() {
	ctx := context.Background()
	hosts := map[string]*host.Host{"run-1": {
		Capabilities: &host.Capabilities{DecisionEvents: true, ToolEvents: true},
		Agents:       map[string]host.Manifest{"host:planner": {Tools: []string{"orders:lookup"}}},
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

// A client looks up the declarations of a host before it waits for events.
func ExampleCapabilities_Allows() {
	for _, document := range []string{
		`{"capabilities":{"agents":{"toolEvents":true}}}`,
		`{"agents":{"supported":true,"reasoning":{"streaming":true}}}`, // in the published form
		`{}`,
	} {
		var d host.Discovery
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
