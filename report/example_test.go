package report_test

import (
	"context"
	"fmt"
	"log"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/report"
)

// Example lists the problems of a run that waits for a person.
func Example() {
	ctx := context.Background()
	var details report.Details
	fold := ae.NewFold(ae.FoldOptions{})
	em, err := ae.NewEmitter(ae.EmitterOptions{
		Clock: func() time.Time { return time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC) },
		Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
			details.Add(&ev)
			fold.Apply(ev)
			return nil
		})},
	})
	if err != nil {
		log.Fatal(err)
	}
	run, err := em.Run("r1")
	if err != nil {
		log.Fatal(err)
	}
	cook := run.Agent("cook")
	cook.Emit(ctx, &ae.AgentStarted{Task: "Dinner for six"})
	cook.Do(ctx, &ae.ToolCalled{CallID: "c1", ToolID: "order", Arguments: `{"name":"salmon"}`}, func(context.Context) (ae.JSON, error) {
		return "", fmt.Errorf("sold out")
	})
	cook.Emit(ctx, &ae.ApprovalRequested{ApprovalID: "a1", Action: "order cod", Reason: "the salmon is sold out"})

	s := fold.Snapshot()
	items := report.Of(s, &details)
	fmt.Println(s.Status+":", report.Reason(s, items))
	for _, item := range report.Attention(items) {
		fmt.Println("-", item.Sentence())
	}
	// Output:
	// waiting: order cod — the salmon is sold out
	// - approval a1 of cook waits: order cod — the salmon is sold out
	// - call c1 (order) of cook error: salmon — sold out
}
