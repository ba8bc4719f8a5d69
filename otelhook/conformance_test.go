package otelhook_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/otelhook"
)

func TestConforms(t *testing.T) {
	eventtest.SinkTest{
		New: func(t testing.TB) ae.Sink {
			tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(tracetest.NewInMemoryExporter()))
			hook, err := otelhook.New(otelhook.Options{TracerProvider: tp})
			require.NoError(t, err)
			return hook
		},
	}.Run(t)
}
