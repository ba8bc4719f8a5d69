package otelhook_test

import (
	"context"
	"fmt"
	"log"
	"slices"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/otelhook"
	"github.com/agentevents/agentevents/runstore"
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

// A process resumes a run that another one began. Its trace is linked to the one before.
func ExampleHook_ResumeRun() {
	ctx := context.Background()
	store := &runstore.Memory{}
	exporter := tracetest.NewInMemoryExporter()
	process := func() *agentevents.Emitter {
		hook, err := otelhook.New(otelhook.Options{
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)),
			Previous: func(runID string) trace.SpanContext {
				var ids trace.SpanContextConfig
				for e, err := range store.Load(ctx, runID, 0) {
					if err != nil {
						return trace.SpanContext{}
					}
					switch e.Event.Payload.(type) {
					case *agentevents.RunStarted, *agentevents.RunResumed:
						ids.TraceID, _ = trace.TraceIDFromHex(e.Event.TraceID)
						ids.SpanID, _ = trace.SpanIDFromHex(e.Event.SpanID)
					}
				}
				return trace.NewSpanContext(ids)
			},
		})
		if err != nil {
			log.Fatal(err)
		}
		em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{runstore.NewSink(store), hook}})
		if err != nil {
			log.Fatal(err)
		}
		return em
	}

	em := process()
	run, err := em.Run("r1")
	if err != nil {
		log.Fatal(err)
	}
	_ = run.Emit(ctx, &agentevents.RunStarted{Name: "release"})
	_ = run.Emit(ctx, &agentevents.RunPaused{})
	_ = em.Close(ctx)

	for range 2 {
		em = process()
		restored, err := runstore.Restore(ctx, store, "r1", agentevents.FoldOptions{})
		if err != nil {
			log.Fatal(err)
		}
		if run, err = em.Resume(restored.Snapshot); err != nil {
			log.Fatal(err)
		}
		_ = run.Emit(ctx, &agentevents.RunResumed{})
		_ = run.Emit(ctx, &agentevents.RunPaused{})
		_ = em.Close(ctx)
	}

	spans := exporter.GetSpans()
	for i := range 2 {
		fmt.Println(spans[i+1].Links[0].SpanContext.SpanID() == spans[i].SpanContext.SpanID())
	}
	// Output:
	// true
	// true
}
