package eventtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

// runAgent is the program under test: an agent that reads a file.
func runAgent(ctx context.Context, em *agentevents.Emitter) error {
	run, err := em.Run("r1")
	if err != nil {
		return err
	}
	agent := run.Agent("main")
	if err := agent.Emit(ctx, &agentevents.AgentStarted{Task: "Add /v2/health"}); err != nil {
		return err
	}
	_, err = agent.Do(ctx, &agentevents.ToolCalled{ToolID: "read", Arguments: `{"path":"main.go"}`}, func(context.Context) (agentevents.JSON, error) {
		return `"package main"`, nil
	})
	if err != nil {
		return err
	}
	return agent.Emit(ctx, &agentevents.AgentEnded{Outcome: agentevents.OutcomePartial})
}

// A test of runAgent: func TestAgent(t *testing.T), with the checks that it makes.
func testAgent(t testing.TB) {
	em, rec := eventtest.Record(t)
	if err := runAgent(context.Background(), em); err != nil {
		t.Fatalf("%v", err)
	}
	rec.Want(t,
		"main agent.started Add…",
		`main agent.toolCalled read arguments={"path":"main.go"}`,
		"main agent.toolReturned read ok",
	)
	rec.WantNone(t, "agent.toolCalled write")
	rec.Want(t, "agent.toolReturned", "agent.ended converged") // it did not
}

// printT is a test that prints its failures. Programs pass their *testing.T.
type printT struct{ testing.TB }

func (printT) Helper()                           {}
func (printT) Cleanup(func())                    {}
func (printT) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// A test lists the lines that its agent has to record. The failure shows the recorded ones.
func Example() {
	testAgent(printT{})
	// Output:
	// eventtest: wanted line 2 of 2 is missing: agent.ended converged
	// recorded (= wanted, ~ near):
	//     0  main agent.started "Add /v2/health"
	//     1  main agent.transition thinking tool_call [synthetic]
	//     2  main agent.toolCalled read id2
	//     3  main agent.transition tool_call tool_result [synthetic]
	//   = 4  main agent.toolReturned read id2 ok
	//   →    agent.ended converged
	//   ~ 5  main agent.ended partial                                  <- no converged
}
