package main

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/otelhook"
)

// otelSection compares the hook with the same calls of OpenTelemetry written by hand (O2), and
// measures the cost when nothing is recorded (O3).
func otelSection() []comparison {
	var (
		hook    = otelCell("hook", func() runRecorder { return hookRecorder(recording()) })
		derived = otelCell("hook, derived ids",
			func() runRecorder { return hookRecorder(recording(sdktrace.WithIDGenerator(otelhook.IDGenerator()))) })
		hand = otelCell("by hand", func() runRecorder { return handRecorder(recording()) })
		out  = []comparison{
			versus("O2", "a run: the hook / the same calls by hand", atMost(1.15), hook, hand),
			versus("O2", "a run: the hook with derived ids / without", bar{}, derived, hook),
			{goal: "O2", what: "allocations per event of the hook", direct: func() (row, error) { return runAllocations(hookRecorder(recording())) }},
			{goal: "O2", what: "allocations per event by hand", direct: func() (row, error) { return runAllocations(handRecorder(recording())) }},
		}
		none      = trace.TracerProvider(noop.NewTracerProvider())
		unsampled = trace.ContextWithSpanContext(context.Background(),
			trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, Remote: true}))
	)
	emits := map[string]*cell{}
	hand.Control = true
	for _, l := range loads {
		emits[l.name] = l.cell("Emit", l.emitter(ae.EmitterOptions{}, fileSink))
	}
	for _, off := range []struct {
		what     string
		provider trace.TracerProvider
		ctx      context.Context
	}{{"no-op provider", none, context.Background()}, {"unsampled parent", recording(), unsampled}} {
		for _, l := range loads {
			c := l.cell(off.what, func() (func(int) error, error) { return idleHook(off.ctx, off.provider, l) })
			emit := emits[l.name]
			if l.name == "D" && off.what == "no-op provider" {
				out = append(out, comparison{goal: "O3", what: "D, " + off.what + ": allocations", direct: func() (row, error) {
					op, err := l.op(func() (func(int) error, error) { return idleHook(off.ctx, off.provider, l) })
					if err != nil {
						return row{}, err
					}
					n, err := allocations(20_000, op)
					return allocRow(n), err
				}})
			}
			out = append(out, versus("O3", l.label()+", "+off.what+": the hook / Emit to a file", atMost(0.2), c, emit))
		}
	}
	return out
}

// discard is an exporter to nowhere.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

func recording(o ...sdktrace.TracerProviderOption) trace.TracerProvider {
	return sdktrace.NewTracerProvider(append(o, sdktrace.WithSyncer(discard{}))...)
}

// turns is how many turns the agent of a run has, and runEvents how many events the run has.
const (
	turns     = 10
	runEvents = 4 + 7*turns
)

// A runRecorder makes the spans of a run.
type runRecorder func(runID string)

func otelCell(name string, make func() runRecorder) *cell {
	return &cell{Name: name, Events: runEvents, Setup: func(*cell) (func(int) error, error) {
		record, runs := make(), 0
		return func(n int) error {
			for range n {
				record(fmt.Sprintf("run-%09d", runs))
				runs++
			}
			return nil
		}, nil
	}}
}

func runAllocations(record runRecorder) (row, error) {
	runs := 0
	n, err := allocations(200, func() error {
		record(fmt.Sprintf("run-%09d", runs))
		runs++
		return nil
	})
	return information(n/runEvents, "%.1f"), err
}

// idleHook returns the calls that an emitter makes for one event, in a run that is not
// recorded.
func idleHook(ctx context.Context, p trace.TracerProvider, l load) (func(int) error, error) {
	h, err := otelhook.New(otelhook.Options{TracerProvider: p})
	if err != nil {
		return nil, err
	}
	ev := ae.Event{RunID: "run-00042", AgentID: "coder", Time: otelStart, Payload: &ae.AgentStarted{}}
	h.Trace(ctx, ev)
	return func(i int) error {
		ev.Sequence++
		ev.Payload = l.payloads[i]
		h.Trace(ctx, ev)
		return h.WriteEvent(ctx, ev)
	}, nil
}

var otelStart = time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)

// runLog are the events of a run. An event comes every millisecond.
var runLog = func() []ae.Event {
	var log []ae.Event
	add := func(agent string, payloads ...ae.Payload) {
		for _, p := range payloads {
			n := len(log)
			log = append(log, ae.Event{
				Sequence: uint64(n), Time: otelStart.Add(time.Duration(n) * time.Millisecond),
				AgentID: agent, SchemaVersion: ae.SchemaVersion, Payload: p,
			})
		}
	}
	add("", &ae.RunStarted{Name: "survey"})
	add("coder", &ae.AgentStarted{Task: "count"})
	for range turns {
		add("coder",
			&ae.ModelCalled{ModelCallID: "m", Provider: "anthropic", Model: "claude"},
			&ae.ModelReturned{
				ModelCallID: "m", Model: "claude-1", FinishReasons: []string{"tool_calls"},
				Usage: ae.Some(ae.Usage{InputTokens: 310, OutputTokens: 24}),
			},
			&ae.AgentTransition{From: ae.StatusThinking, To: ae.StatusToolCall},
			&ae.ToolCalled{CallID: "c", ToolID: "Read", Arguments: `{"path":"main.go"}`},
			&ae.AgentTransition{From: ae.StatusToolCall, To: ae.StatusToolResult},
			&ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK, Result: `"package main"`},
			&ae.TextCompleted{Text: "It is there."})
	}
	add("coder", &ae.AgentEnded{Outcome: ae.OutcomeConverged})
	add("", &ae.RunCompleted{})
	return log
}()

// hookRecorder calls the hook as an emitter does.
func hookRecorder(p trace.TracerProvider) runRecorder {
	h, err := otelhook.New(otelhook.Options{TracerProvider: p})
	if err != nil {
		panic(err) // no such options
	}
	ctx := context.Background()
	return func(runID string) {
		for _, ev := range runLog {
			ev.RunID = runID
			h.Trace(ctx, ev)
			_ = h.WriteEvent(ctx, ev) // returns nil
		}
	}
}

// handRecorder makes the spans that the hook makes of runLog, as a program would that has
// no events.
func handRecorder(p trace.TracerProvider) runRecorder {
	tracer := p.Tracer(otelhook.ScopeName)
	return func(runID string) {
		var seq int64
		now := func() trace.SpanEventOption {
			return trace.WithTimestamp(otelStart.Add(time.Duration(seq) * time.Millisecond))
		}
		start := func(ctx context.Context, kind trace.SpanKind, name, operation, agent string,
			more ...attribute.KeyValue) (context.Context, trace.Span) {
			attrs := append(make([]attribute.KeyValue, 0, 10), attribute.String("gen_ai.operation.name", operation))
			attrs = append(attrs, more...)
			attrs = append(attrs, attribute.String("agentevents.run.id", runID),
				attribute.String("agentevents.schema", ae.SchemaVersion), attribute.Int64("agentevents.seq.first", seq))
			if agent != "" {
				attrs = append(attrs, attribute.String("gen_ai.agent.name", agent), attribute.String("agentevents.agent.id", agent))
			}
			ctx, s := tracer.Start(ctx, name, now(), trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
			seq++
			return ctx, s
		}
		end := func(s trace.Span, more ...attribute.KeyValue) {
			s.SetAttributes(append(more, attribute.Int64("agentevents.seq.last", seq))...)
			s.End(now())
			seq++
		}
		ctx, run := start(context.Background(), trace.SpanKindInternal, "invoke_workflow survey", "invoke_workflow", "",
			attribute.String("gen_ai.workflow.name", "survey"))
		ctx, agent := start(ctx, trace.SpanKindInternal, "invoke_agent coder", "invoke_agent", "coder")
		transition := func(from, to string) {
			agent.AddEvent("agentevents.agent.transition", now(),
				trace.WithAttributes(attribute.String("agentevents.agent.from", from),
					attribute.String("agentevents.agent.to", to)))
			seq++
		}
		for range turns {
			_, model := start(ctx, trace.SpanKindClient, "chat claude", "chat", "coder",
				attribute.String("gen_ai.provider.name", "anthropic"), attribute.String("gen_ai.request.model", "claude"))
			end(model, attribute.String("gen_ai.response.model", "claude-1"),
				attribute.StringSlice("gen_ai.response.finish_reasons", []string{"tool_calls"}),
				attribute.Int64("gen_ai.usage.input_tokens", 310), attribute.Int64("gen_ai.usage.output_tokens", 24))
			transition("thinking", "tool_call")
			_, tool := start(ctx, trace.SpanKindInternal, "execute_tool Read", "execute_tool", "coder",
				attribute.String("gen_ai.tool.name", "Read"), attribute.String("gen_ai.tool.call.id", "c"))
			transition("tool_call", "tool_result")
			end(tool, attribute.String("agentevents.tool.outcome", "succeeded"))
			agent.AddEvent("agentevents.text", now(),
				trace.WithAttributes(attribute.Int("agentevents.text.bytes", len("It is there."))))
			seq++
		}
		end(agent, attribute.String("agentevents.agent.outcome", "converged"),
			attribute.Int64("agentevents.agent.tool_calls", turns), attribute.Int64("agentevents.agent.model_calls", turns))
		end(run, attribute.String("agentevents.run.outcome", "completed"),
			attribute.Int64("agentevents.run.tool_calls", turns), attribute.Int64("agentevents.run.model_calls", turns))
	}
}
