package otelhook_test

import (
	"context"
	"fmt"
	"log"
	"slices"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/otelhook"
)

func Example() {
	exporter := tracetest.NewInMemoryExporter() // the program's own one
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithIDGenerator(otelhook.IDGenerator()))
	hook, err := otelhook.New(otelhook.Options{TracerProvider: provider})
	if err != nil {
		log.Fatal(err)
	}
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{hook}})
	if err != nil {
		log.Fatal(err)
	}
	run, err := em.Run("r1")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	coder := run.Agent("coder")
	_ = coder.Emit(ctx, &agentevents.AgentStarted{Task: "Add /v2/health"})
	_, _ = coder.Do(ctx, &agentevents.ToolCalled{ToolID: "Read"}, func(ctx context.Context) (agentevents.JSON, error) {
		// Spans that begin with this context are below the tool's.
		ctx = hook.Context(ctx, run.ID())
		fmt.Println(len(otelhook.Environ(ctx)), "variable for a subprocess")
		return `"package main"`, nil
	})
	_ = coder.Emit(ctx, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged})
	_ = run.Emit(ctx, &agentevents.RunCompleted{})

	for _, s := range slices.Backward(exporter.GetSpans()) {
		fmt.Println(s.Name, s.Status.Code)
	}
	// Output:
	// 1 variable for a subprocess
	// invoke_workflow Unset
	// invoke_agent coder Unset
	// execute_tool Read Unset
}
