// Command collector is an OpenTelemetry Collector for tests: it takes OTLP by HTTP and gRPC and
// writes the requests to a file, one a line. It has no other parts.
package main

import (
	"log"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func main() {
	err := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{
			Command: "collector", Description: "OpenTelemetry Collector for tests", Version: "0.162.0",
		},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			DefaultScheme:     "env",
			ProviderFactories: []confmap.ProviderFactory{envprovider.NewFactory(), fileprovider.NewFactory()},
		}},
	}).Execute()
	if err != nil {
		log.Fatal(err)
	}
}

func factories() (otelcol.Factories, error) {
	otlp, lines := otlpreceiver.NewFactory(), newLines()
	return otelcol.Factories{
		Receivers: map[component.Type]receiver.Factory{otlp.Type(): otlp},
		Exporters: map[component.Type]exporter.Factory{lines.Type(): lines},
		Telemetry: otelconftelemetry.NewFactory(),
	}, nil
}
