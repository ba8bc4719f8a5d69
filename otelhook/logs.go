package otelhook

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/agentevents/agentevents/internal/spans"
)

// A Logger takes log records. Its methods may be called concurrently for different runs. They
// must not call the hook, and return no errors: a record that cannot be kept is lost.
type Logger interface {
	// Enabled reports whether Emit keeps a record with this severity and event name. The hook
	// makes no others. The context has the span of the record.
	Enabled(ctx context.Context, severity int, eventName string) bool
	// Emit takes a record. It may change the elements of the record's slices, and must not keep
	// the slices: the hook uses their memory again. The context has the span of the record.
	Emit(ctx context.Context, rec LogRecord)
}

// A LogRecord is an event as a log record.
type LogRecord struct {
	EventName string    // as the conventions name it, or agentevents.*
	Time      time.Time // of the event
	// Severity is the number of OpenTelemetry: 5 (DEBUG), 9 (INFO), 13 (WARN) or 17 (ERROR).
	Severity int
	// Attributes tell of the event, and have its run, sequence, session and agent. No key is there
	// twice.
	Attributes []attribute.KeyValue
	// JSON are the indexes of the Attributes that are content with structure: strings with a JSON
	// value. A string that Options.Redact has changed may be no JSON any more.
	JSON []int
}

// log records a point as a log record, which stands alone: it names its run. The context has the
// span. r.mu is held.
func (r *run) log(ctx context.Context, p *spans.Point) {
	if !r.h.logger.Enabled(ctx, int(p.Severity), p.Name) {
		return
	}
	more := append(r.room.log[:0], spans.Attr{Key: spans.AttrRun, Text: r.id},
		spans.Attr{Key: spans.AttrSequence, Value: int64(p.Sequence)})
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
	r.room.log, r.room.json = more, r.room.json[:0]
	for i, a := range more {
		if c, ok := a.Value.(spans.Content); ok && c.JSON {
			r.room.json = append(r.room.json, i)
		}
	}
	r.h.logger.Emit(ctx, LogRecord{
		EventName: p.Name, Time: p.Time, Severity: int(p.Severity), Attributes: r.values(more), JSON: r.room.json,
	})
}
