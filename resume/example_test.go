package resume_test

import (
	"context"
	"fmt"
	"log"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/resume"
)

// Example goes on with a run whose process has died. The example of Emitter.Resume in package
// agentevents begins with the log.
func Example() {
	ctx := context.Background()
	fold := ae.NewFold(ae.FoldOptions{})
	sink := ae.SinkFunc(func(_ context.Context, ev ae.Event) error { fold.Apply(ev); return nil })
	emitter := func() *ae.Emitter {
		em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{sink}})
		if err != nil {
			log.Fatal(err)
		}
		return em
	}
	first, err := emitter().Run("r1")
	if err != nil {
		log.Fatal(err)
	}
	coder := first.Agent("coder")
	coder.Emit(ctx, &ae.AgentStarted{Task: "Add /v2/health", ProviderSessionID: "s-1"})
	coder.Call(ctx, &ae.ToolCalled{CallID: "c1", ToolID: "Bash"}) // and the process dies

	plan, err := resume.New(fold.Snapshot(), resume.Options{Message: "go on"})
	if err != nil {
		log.Fatal(err)
	}
	run, err := emitter().Resume(plan.Snapshot)
	if err != nil {
		log.Fatal(err)
	}
	receipt, err := plan.Apply(ctx, run)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("interrupted:", receipt.Calls)
	for _, a := range plan.Agents {
		fmt.Printf("ask %s in session %s: %s\n", a.AgentID, a.SessionID, a.Prompt)
		err := run.Agent(a.AgentID).Emit(ctx, &ae.AgentStarted{Task: a.Task, Resumed: true})
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// interrupted: [c1]
	// ask coder in session s-1: go on
}
