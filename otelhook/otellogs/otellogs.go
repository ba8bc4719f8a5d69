// Package otellogs gives the log records of a hook to a LoggerProvider of OpenTelemetry:
//
//	hook, err := otelhook.New(otelhook.Options{
//		TracerProvider: traces,
//		Logs:           otellogs.New(logs),
//	})
//
// It is a module of its own as it needs OpenTelemetry v1.47.0, with which the logs became stable.
// Module otelhook, with traces and metrics, needs v1.44.0.
package otellogs

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"

	"github.com/agentevents/agentevents/otelhook"
)

// New returns the option Logs of a hook. The records go to the provider's logger of the scope
// [otelhook.ScopeName], with an event name and without a body. Content with structure is maps
// and lists, and in them a number too large for a float is a string. A nil provider means no
// logs: New returns nil.
func New(p log.LoggerProvider) func(schemaURL string) otelhook.Logger {
	if p == nil {
		return nil
	}
	return func(schemaURL string) otelhook.Logger {
		return logger{p.Logger(otelhook.ScopeName, log.WithSchemaURL(schemaURL))}
	}
}

// A logger gives records to a logger of OpenTelemetry.
type logger struct{ to log.Logger }

func (l logger) Enabled(ctx context.Context, severity int, eventName string) bool {
	return l.to.Enabled(ctx, log.EnabledParameters{Severity: log.Severity(severity), EventName: eventName})
}

func (l logger) Emit(ctx context.Context, r otelhook.LogRecord) {
	for _, i := range r.JSON {
		if v, ok := structured(r.Attributes[i].Value.AsString()); ok {
			r.Attributes[i].Value = v
		}
	}
	severity := log.Severity(r.Severity)
	var rec log.Record
	rec.SetEventName(r.EventName)
	rec.SetTimestamp(r.Time)
	rec.SetSeverity(severity)
	rec.SetSeverityText(severity.String())
	rec.AddAttributes(r.Attributes...)
	l.to.Emit(ctx, rec)
}

// structured is the value of a JSON text, if it is one.
func structured(raw string) (attribute.Value, bool) {
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return attribute.Value{}, false
	}
	if _, err := d.Token(); err != io.EOF {
		return attribute.Value{}, false
	}
	return valueOf(v), true
}

// valueOf is a decoded value. Its texts have no broken characters: the decoder replaces them.
func valueOf(v any) attribute.Value {
	switch v := v.(type) {
	case string:
		return attribute.StringValue(v)
	case bool:
		return attribute.BoolValue(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return attribute.Int64Value(n)
		}
		if f, err := v.Float64(); err == nil {
			return attribute.Float64Value(f)
		}
		return attribute.StringValue(v.String()) // larger than any float
	case []any:
		list := make([]attribute.Value, len(v))
		for i := range v {
			list[i] = valueOf(v[i])
		}
		return attribute.SliceValue(list...)
	case map[string]any:
		list := make([]attribute.KeyValue, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			list = append(list, attribute.KeyValue{Key: attribute.Key(k), Value: valueOf(v[k])})
		}
		return attribute.MapValue(list...)
	}
	return attribute.Value{} // null
}
