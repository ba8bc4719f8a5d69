// Command otel shows a run of two agents as an OpenTelemetry trace, with metrics and log
// records, beside the log. The program is the host: it makes the providers, and it shuts
// them down. The hook of package otelhook is one more sink of the emitter.
//
//	go run ./examples/otel [-dir .] [-out run.jsonl]
//
// prints the spans as a tree, and the metrics. With an address it sends them, and the log
// records, to a Collector, or to Jaeger, and prints the id of the trace:
//
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 go run ./examples/otel
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/otelhook"
	"github.com/agentevents/agentevents/otelhook/otellogs"
)

func main() {
	dir := flag.String("dir", ".", "folder that the agents look at")
	out := flag.String("out", "run.jsonl", "log to append to")
	flag.Parse()
	if err := record(context.Background(), os.Stdout, *dir, *out); err != nil {
		fmt.Fprintln(os.Stderr, "otel:", err)
		os.Exit(1)
	}
}

// record runs the agents. It writes the log, and sends or prints the spans and metrics.
func record(ctx context.Context, w io.Writer, dir, out string) (err error) {
	// The providers decide where spans and metrics go, how they are sampled and batched.
	p, err := newProviders(ctx, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.shutdown()) }() // after the emitter: see below

	// The hook gets events as the log does. Every event has the ids of its span by then, so
	// that a line of the log leads to the trace.
	hook, err := otelhook.New(otelhook.Options{
		TracerProvider: p.traces, MeterProvider: p.metrics, Logs: otellogs.New(p.logs),
		Events: otelhook.EventsBoth, // on spans as well, as Jaeger takes no logs
	})
	if err != nil {
		return err
	}
	log, err := ae.OpenFile(out, ae.WriterOptions{})
	if err != nil {
		return err
	}
	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{log, hook}})
	if err != nil {
		return errors.Join(err, log.Close())
	}
	// Close closes the log and the hook, which ends the spans that are still open. Only then
	// may the providers be shut down: a span that has not ended is never exported.
	defer func() { err = errors.Join(err, em.Close(ctx)) }()

	run, err := em.Run("")
	if err != nil {
		return err
	}
	t := &team{
		run: run.With(ae.Scope{SessionID: "example"}), files: os.DirFS(dir),
		hook: hook, tracer: p.traces.Tracer("examples/otel"),
	}
	err = t.work(ctx)

	// Context has the span of the agent or call at work, or of the run. A host reads the ids from
	// it.
	span := trace.SpanContextFromContext(hook.Context(ctx, run.ID()))
	fmt.Fprintf(w, "trace %s of run %s, log %s\n", span.TraceID(), run.ID(), out)
	return err
}

// providers are the providers of OpenTelemetry's SDK.
type providers struct {
	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
	logs    *sdklog.LoggerProvider
}

// newProviders returns providers with exporters that send, or that print. Log records are not
// printed, because this case has no processor for them.
func newProviders(ctx context.Context, w io.Writer) (*providers, error) {
	service, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "agentevents-example")),
		resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	var spans sdktrace.SpanExporter = &treePrinter{w: w}
	var points sdkmetric.Exporter = &metricPrinter{w: w}
	logging := []sdklog.LoggerProviderOption{sdklog.WithResource(service)}
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" { // which the exporters read
		var records sdklog.Exporter
		var errs [3]error
		spans, errs[0] = otlptracehttp.New(ctx)
		points, errs[1] = otlpmetrichttp.New(ctx)
		records, errs[2] = otlploghttp.New(ctx)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
		logging = append(logging, sdklog.WithProcessor(sdklog.NewBatchProcessor(records)))
	}
	// The ids are derived from the run: whoever has its log can derive them again.
	generator := sdktrace.WithIDGenerator(otelhook.IDGenerator())
	return &providers{
		traces: sdktrace.NewTracerProvider(sdktrace.WithResource(service), sdktrace.WithBatcher(spans), generator),
		metrics: sdkmetric.NewMeterProvider(sdkmetric.WithResource(service),
			sdkmetric.WithReader(sdkmetric.NewPeriodicReader(points))),
		logs: sdklog.NewLoggerProvider(logging...),
	}, nil
}

// shutdown sends the data that the providers still have. Jaeger takes no metrics and no logs:
// shutdown then prints this, and returns no error.
func (p *providers) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := errors.Join(p.traces.ForceFlush(ctx), p.traces.Shutdown(ctx)) // Shutdown alone returns no error of the exporter
	for what, shutdown := range map[string]func(context.Context) error{"metrics": p.metrics.Shutdown,
		"logs": p.logs.Shutdown} {
		if refused := shutdown(ctx); refused != nil {
			fmt.Fprintf(os.Stderr, "otel: the %s were not taken: %v\n", what, refused)
		}
	}
	return err
}
