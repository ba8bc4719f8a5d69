package tree_test

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

// Example folds a run while it goes on, and draws it.
func Example() {
	ctx := context.Background()
	fold := ae.NewFold(ae.FoldOptions{})
	var details report.Details
	em, err := ae.NewEmitter(ae.EmitterOptions{
		Clock: func() time.Time { return time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC) },
		Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
			fold.Apply(ev)
			details.Add(&ev)
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
	coder := run.Agent("coder")
	err = coder.Emit(ctx, &ae.AgentStarted{Task: "Add /v2/health"})
	_, readErr := coder.Do(ctx, &ae.ToolCalled{ToolID: "Read", Arguments: `{"path":"main.go"}`}, func(context.Context) (ae.JSON, error) {
		return "", os.ErrNotExist
	})
	err = errors.Join(err, coder.Finish(ctx, readErr, nil), run.Finish(ctx, readErr), em.Close(ctx))
	if err != nil {
		log.Fatal(err)
	}
	if err := tree.Write(os.Stdout, fold.Snapshot(), tree.Options{Details: &details}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// run r1 ✗ failed · 2026-05-05 09:00:00Z: file does not exist
	// └─ coder ✗ failed · 1 step · 1 tool call (1 failed): file does not exist
	//    └─ tool.Read ✗ error: main.go — file does not exist
	// 1 agent · 1 tool call (1 failed)
}
