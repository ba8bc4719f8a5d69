package main

import (
	"go.opentelemetry.io/otel/trace/noop"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/otelhook"
)

func init() {
	sinks = append(sinks, func() (ae.Sink, error) {
		return otelhook.New(otelhook.Options{TracerProvider: noop.NewTracerProvider()})
	})
}
