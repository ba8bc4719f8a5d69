// The program that gets a module of agentevents. It records a run, with the sinks of the
// module, and folds the log.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"

	ae "github.com/agentevents/agentevents"
)

// sinks makes the sinks that a module adds.
var sinks []func() (ae.Sink, error)

func main() {
	var text bytes.Buffer
	all := []ae.Sink{ae.NewWriter(&text, ae.WriterOptions{})}
	for _, sink := range sinks {
		s, err := sink()
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, s)
	}
	if err := record(context.Background(), all); err != nil {
		log.Fatal(err)
	}
	fold, err := ae.FoldLog(ae.NewReader(&text, ae.ReaderOptions{}), ae.FoldOptions{})
	if err != nil {
		log.Fatal(err)
	}
	run := fold.Snapshot("r1")
	if run == nil || run.Status != ae.RunStatusCompleted || len(run.ClosedCalls) != 1 {
		log.Fatalf("the fold shows another run: %+v", run)
	}
	fmt.Printf("run %s %s with %d sinks", run.RunID, run.Status, len(all))
}

func record(ctx context.Context, sinks []ae.Sink) error {
	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: sinks})
	if err != nil {
		return err
	}
	run, err := em.Run("r1")
	if err != nil {
		return err
	}
	agent := run.Agent("coder")
	if err := agent.Emit(ctx, &ae.AgentStarted{Task: "Add a page"}); err != nil {
		return err
	}
	_, err = agent.Do(ctx, &ae.ToolCalled{ToolID: "read"}, func(context.Context) (ae.JSON, error) {
		return ae.JSONString("a page"), nil
	})
	if err != nil {
		return err
	}
	if err := run.Finish(ctx, nil); err != nil {
		return err
	}
	return em.Close(ctx)
}
