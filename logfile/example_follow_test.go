package logfile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/logfile"
)

// A program folds a log while another one still writes it.
func ExampleFollow() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "run.jsonl")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	log, err := logfile.Follow(ctx, path, logfile.FollowOptions{
		Report: func(err error) { fmt.Println("lost:", err) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer log.Close()

	go func() { // mostly another process
		defer cancel() // lines written before it come before the end
		record(path)
	}()

	fold := agentevents.NewFoldSet(agentevents.FoldOptions{})
	for ev, err := range agentevents.NewReader(log, agentevents.ReaderOptions{}).All() {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fold.Apply(ev)
		fmt.Printf("%-16s %s\n", ev.Kind(), fold.Snapshot(ev.RunID).Agents["coder"].Status)
	}
	// Output:
	// agent.started    thinking
	// agent.transition response
	// agent.text       response
	// agent.transition converged
	// agent.ended      converged
	// run.completed    converged
}

// record writes the log of a run.
func record(path string) {
	ctx := context.Background()
	log, err := agentevents.OpenFile(path, agentevents.WriterOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{log}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer log.Close()
	defer em.Close(ctx)
	run, err := em.Run("r1")
	if err != nil {
		fmt.Println(err)
		return
	}
	coder := run.Agent("coder")
	for _, p := range []agentevents.Payload{&agentevents.AgentStarted{}, &agentevents.TextCompleted{Text: "done"}, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}} {
		if err := coder.Emit(ctx, p); err != nil {
			fmt.Println(err)
		}
	}
	if err := run.Emit(ctx, &agentevents.RunCompleted{}); err != nil {
		fmt.Println(err)
	}
}
