package otelhook

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"

	"github.com/agentevents/agentevents/internal/spans"
)

// log records a point as a log record, which stands alone: it says of what run it is.
// The context has the span. r.mu is held.
func (r *run) log(ctx context.Context, p *spans.Point) {
	logger, severity := r.h.logger, log.Severity(p.Severity)
	if !logger.Enabled(ctx, log.EnabledParameters{Severity: severity, EventName: p.Name}) {
		return
	}
	var rec log.Record
	rec.SetEventName(p.Name)
	rec.SetTimestamp(p.Time)
	rec.SetSeverity(severity)
	rec.SetSeverityText(severity.String())
	more := append(r.room.log[:0], spans.Attr{Key: spans.AttrRun, Text: r.id}, spans.Attr{Key: spans.AttrSequence, Value: int64(p.Sequence)})
	if session := r.m.Session(); session != "" {
		more = append(more, spans.Attr{Key: spans.AttrConversation, Text: session})
	}
	if p.AgentID != "" {
		more = append(more, spans.Attr{Key: spans.AttrAgentID, Text: p.AgentID})
	}
	for _, a := range p.Attributes {
		if !slices.ContainsFunc(more, func(b spans.Attr) bool { return a.Key == b.Key }) {
			more = append(more, a)
		}
	}
	r.room.log = more
	list := r.values(more)
	for i, a := range more {
		if c, ok := a.Value.(spans.Content); ok && c.JSON {
			list[i].Value = structured(c.Text)
		}
	}
	rec.AddAttributes(list...)
	logger.Emit(ctx, rec)
}

// structured is the value of a JSON text. A broken one, which a redactor may leave, is text.
func structured(raw string) attribute.Value {
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return text(raw)
	}
	if _, err := d.Token(); err != io.EOF {
		return text(raw)
	}
	return valueOf(v)
}

func valueOf(v any) attribute.Value {
	switch v := v.(type) {
	case string:
		return text(v)
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
			list = append(list, attribute.KeyValue{Key: attribute.Key(strings.ToValidUTF8(k, "\uFFFD")), Value: valueOf(v[k])})
		}
		return attribute.MapValue(list...)
	}
	return attribute.Value{} // null
}
