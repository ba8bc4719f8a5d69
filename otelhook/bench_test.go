package otelhook_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/otelhook"
)

// feed returns the calls that an emitter makes for one more event of a run.
func feed(t testing.TB, ctx context.Context, p trace.TracerProvider, payload ae.Payload) func() {
	hook, err := otelhook.New(otelhook.Options{TracerProvider: p})
	require.NoError(t, err)
	ev := ae.Event{RunID: "r", AgentID: "a", Payload: &ae.AgentStarted{}}
	hook.Trace(ctx, ev)
	ev.Payload = payload
	return func() {
		ev.Sequence++
		hook.Trace(ctx, ev)
		_ = hook.WriteEvent(ctx, ev) // returns nil
	}
}

// offs are ways in which nothing is recorded.
func offs() map[string]func(testing.TB, ae.Payload) func() {
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, Remote: true})
	return map[string]func(testing.TB, ae.Payload) func(){
		"no-op provider": func(t testing.TB, p ae.Payload) func() {
			return feed(t, context.Background(), noop.NewTracerProvider(), p)
		},
		"unsampled parent": func(t testing.TB, p ae.Payload) func() {
			return feed(t, trace.ContextWithSpanContext(context.Background(), parent), sdktrace.NewTracerProvider(), p)
		},
	}
}

var payloads = map[string]ae.Payload{
	"delta": &ae.TextDelta{Delta: "and then"}, "transition": &ae.AgentTransition{From: ae.StatusThinking, To: ae.StatusToolCall},
	"tool call": &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK, OneEvent: true},
}

// An event that is not recorded allocates nothing, and a delta never does.
func TestEventsThatMakeNothingAllocateNothing(t *testing.T) {
	for off, with := range offs() {
		for name, p := range payloads {
			require.Zero(t, testing.AllocsPerRun(100, with(t, p)), "%s, %s", off, name)
		}
	}
	require.Zero(t, testing.AllocsPerRun(100, feed(t, context.Background(), sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tracetest.NewSpanRecorder())), payloads["delta"])), "recording, delta")
}

// BenchmarkOff measures an event that is not recorded. Module bench measures a recorded event,
// beside the same calls by hand: BenchmarkTracing, and goal O2 of its table.
func BenchmarkOff(b *testing.B) {
	for off, with := range offs() {
		for name, p := range payloads {
			b.Run(off+"/"+name, func(b *testing.B) {
				event := with(b, p)
				b.ReportAllocs()
				for b.Loop() {
					event()
				}
			})
		}
	}
}
