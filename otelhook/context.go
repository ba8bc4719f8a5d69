package otelhook

import (
	"context"
	"crypto/rand"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentevents/agentevents"
)

// Context returns ctx with the span of the current work in the run, so that the spans of
// instrumented clients are put below it: the model call, the tool call or the agent that ctx
// carries ([agentevents.ModelCallFromContext], [agentevents.CallFromContext]), or the run. It
// returns ctx if the hook does not know the run.
func (h *Hook) Context(ctx context.Context, runID string) context.Context {
	h.mu.Lock()
	r := h.runs[runID]
	h.mu.Unlock()
	if r == nil {
		return ctx
	}
	var agentID, callID, modelCallID string
	if a := agentevents.AgentFromContext(ctx); a != nil {
		agentID = a.ID()
	}
	if c := agentevents.CallFromContext(ctx); c != nil {
		callID = c.ID
	}
	if c := agentevents.ModelCallFromContext(ctx); c != nil {
		modelCallID = c.ID
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.m.At(agentID, callID, modelCallID)
	if s == nil {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, s.Data.(*data).context)
}

// Environ returns the environment variables that tell a subprocess of the span in ctx:
// TRACEPARENT, and TRACESTATE if there is one. It returns none without a span.
func Environ(ctx context.Context) []string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	var env []string
	for _, k := range (propagation.TraceContext{}).Fields() {
		if v := carrier.Get(k); v != "" {
			env = append(env, strings.ToUpper(k)+"="+v)
		}
	}
	return env
}

// ContextFromEnviron reads the variables that [Environ] adds, mostly from [os.Environ]. It returns
// ctx with the span that they name, or ctx itself if they name none.
func ContextFromEnviron(ctx context.Context, environ []string) context.Context {
	carrier := propagation.MapCarrier{}
	for _, e := range environ {
		if k, v, ok := strings.Cut(e, "="); ok && (k == "TRACEPARENT" || k == "TRACESTATE") {
			carrier.Set(strings.ToLower(k), v)
		}
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}

// dataKey is the key of the *data of a span that begins, for a [Generator].
type dataKey struct{}

// A Generator makes the ids of spans. It is an IDGenerator of OpenTelemetry's SDK.
type Generator struct{}

// IDGenerator returns a generator of span ids: pass it to the tracer provider, by
// sdk/trace.WithIDGenerator. It derives the ids of a hook's spans from the run and its events, so an
// export of the log has the same ids. Other spans get random ids.
func IDGenerator() Generator { return Generator{} }

// NewIDs returns the ids of the first span of a trace.
func (Generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if d, ok := ctx.Value(dataKey{}).(*data); ok {
		d.run.m.Derive(d.of)
		return trace.TraceID(d.of.TraceID), trace.SpanID(d.of.ID)
	}
	var t trace.TraceID
	var s trace.SpanID
	fill(t[:])
	fill(s[:])
	return t, s
}

// NewSpanID returns the id of another span of the trace.
func (Generator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if d, ok := ctx.Value(dataKey{}).(*data); ok {
		d.run.m.Derive(d.of)
		return trace.SpanID(d.of.ID)
	}
	var s trace.SpanID
	fill(s[:])
	return s
}

// fill fills b with random bytes, which are not all zero.
func fill(b []byte) {
	_, _ = rand.Read(b) // never fails
	b[0] |= 1
}
