package main

import (
	"context"
	"errors"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// linesConfig is the configuration of the exporter "lines".
type linesConfig struct {
	Path string `mapstructure:"path"` // of the file, to which lines are appended
}

// Validate returns an error that names a missing setting.
func (c *linesConfig) Validate() error {
	if c.Path == "" {
		return errors.New("path is required")
	}
	return nil
}

// newLines returns the factory of the exporter. Traces, metrics and logs have an exporter each.
// Exporters with one path share the file, as each line is written at once.
func newLines() exporter.Factory {
	return exporter.NewFactory(
		component.MustNewType("lines"),
		func() component.Config { return &linesConfig{} },
		exporter.WithTraces(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Traces, error) {
			return &lines{path: c.(*linesConfig).Path}, nil
		}, component.StabilityLevelDevelopment),
		exporter.WithMetrics(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Metrics, error) {
			return &lines{path: c.(*linesConfig).Path}, nil
		}, component.StabilityLevelDevelopment),
		exporter.WithLogs(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Logs, error) {
			return &lines{path: c.(*linesConfig).Path}, nil
		}, component.StabilityLevelDevelopment),
	)
}

// lines writes requests as OTLP/JSON.
type lines struct {
	path string
	file *os.File
}

func (l *lines) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (l *lines) Start(context.Context, component.Host) (err error) {
	l.file, err = os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return err
}

func (l *lines) Shutdown(context.Context) error {
	if l.file == nil {
		return nil // it was not started
	}
	return l.file.Close()
}

func (l *lines) ConsumeTraces(_ context.Context, d ptrace.Traces) error {
	return l.write((&ptrace.JSONMarshaler{}).MarshalTraces(d))
}

func (l *lines) ConsumeMetrics(_ context.Context, d pmetric.Metrics) error {
	return l.write((&pmetric.JSONMarshaler{}).MarshalMetrics(d))
}

func (l *lines) ConsumeLogs(_ context.Context, d plog.Logs) error {
	return l.write((&plog.JSONMarshaler{}).MarshalLogs(d))
}

func (l *lines) write(line []byte, err error) error {
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	return err
}
