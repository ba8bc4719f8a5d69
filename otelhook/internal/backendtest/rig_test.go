package backendtest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/otelhook"
	"github.com/agentevents/agentevents/otelhook/otellogs"
)

// service is the name of the programs that are tested.
const service = "backendtest"

// A rig is a program that records runs: an emitter with a log and a hook, whose spans and
// metrics are exported. Its clock stands still between calls of pass.
type rig struct {
	hook  *otelhook.Hook
	em    *ae.Emitter
	flush func(context.Context) error // exports all that has ended
	out   *bytes.Buffer               // the log
	now   time.Time
}

// A setup has the targets of a rig's exports: endpoints of OTLP/HTTP.
type setup struct {
	traces    []string
	metrics   string
	logs      string
	hook      otelhook.Options
	policy    *ae.Policy
	resource  map[string]string // more attributes of it
	randomIDs bool              // do not install the hook's generator
	log       io.Writer         // nil means rig.out
}

// address is a resource of one host. For Jaeger's pages a span outside of its parent's times has
// a wrong clock, unless both are known to be of one.
var address = map[string]string{"ip": "127.0.0.1"}

var epoch = time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)

func newRig(t testing.TB, s setup) *rig {
	t.Helper()
	r, err := openRig(s)
	require.NoError(t, err)
	return r
}

// openRig is newRig for programs.
func openRig(s setup) (*rig, error) {
	ctx := context.Background()
	r := &rig{out: &bytes.Buffer{}, now: epoch}
	attrs := []attribute.KeyValue{attribute.String("service.name", service)}
	for k, v := range s.resource {
		attrs = append(attrs, attribute.String(k, v))
	}
	res := resource.NewSchemaless(attrs...)
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(res)}
	if !s.randomIDs {
		options = append(options, sdktrace.WithIDGenerator(otelhook.IDGenerator()))
	}
	for _, endpoint := range s.traces {
		x, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint+"/v1/traces"))
		if err != nil {
			return nil, err
		}
		options = append(options, sdktrace.WithBatcher(x, sdktrace.WithBlocking()))
	}
	tp := sdktrace.NewTracerProvider(options...)
	r.flush = tp.ForceFlush
	s.hook.TracerProvider = tp
	if s.metrics != "" {
		x, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(s.metrics+"/v1/metrics"))
		if err != nil {
			return nil, err
		}
		mp := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(x, metric.WithInterval(time.Hour))), metric.WithResource(res))
		s.hook.MeterProvider = mp
		r.flush = func(ctx context.Context) error { return errors.Join(tp.ForceFlush(ctx), mp.ForceFlush(ctx)) }
	}
	if s.logs != "" {
		x, err := otlploghttp.New(ctx, otlploghttp.WithEndpointURL(s.logs+"/v1/logs"))
		if err != nil {
			return nil, err
		}
		lp := log.NewLoggerProvider(log.WithProcessor(log.NewSimpleProcessor(x)), log.WithResource(res)) // a batch has a queue that drops
		s.hook.Logs = otellogs.New(lp)
		flush := r.flush
		r.flush = func(ctx context.Context) error { return errors.Join(flush(ctx), lp.ForceFlush(ctx)) }
	}
	clock := func() time.Time { return r.now }
	s.hook.Clock = clock
	var err error
	if r.hook, err = otelhook.New(s.hook); err != nil {
		return nil, err
	}
	if s.log == nil {
		s.log = r.out
	}
	r.em, err = ae.NewEmitter(ae.EmitterOptions{
		Lifecycle: ae.LifecycleDerived, Clock: clock, Redaction: s.policy,
		Sinks: []ae.Sink{ae.NewWriter(s.log, ae.WriterOptions{}), r.hook},
	})
	return r, err
}

func (r *rig) pass(d time.Duration) { r.now = r.now.Add(d) }

func (r *rig) export(t testing.TB) {
	t.Helper()
	require.NoError(t, r.flush(t.Context()))
}

func (r *rig) run(t testing.TB, id string) *ae.Run {
	t.Helper()
	run, err := r.em.Run(id)
	require.NoError(t, err)
	return run
}

// emit emits the payloads, a tenth of a second after each other.
func (r *rig) emit(t testing.TB, e interface {
	Emit(context.Context, ae.Payload) error
}, payloads ...ae.Payload) {
	t.Helper()
	for _, p := range payloads {
		require.NoError(t, e.Emit(context.Background(), p), "%T", p)
		r.pass(100 * time.Millisecond)
	}
}

// events are the events of the log.
func (r *rig) events(t testing.TB) []ae.Event { return events(t, bytes.NewReader(r.out.Bytes())) }

func events(t testing.TB, log io.Reader) []ae.Event {
	t.Helper()
	list := eventtest.ReadLog(t, log, ae.ReaderOptions{}).Events()
	require.NotEmpty(t, list)
	return list
}

// traceOf returns the id of the trace that the events belong to.
func traceOf(t testing.TB, list []ae.Event) string {
	t.Helper()
	id := list[len(list)-1].TraceID
	require.Len(t, id, 32)
	return id
}
