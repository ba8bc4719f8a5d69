package otelhook

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentevents/agentevents/internal/spans"
)

// foreign finds the span that somebody else has made for the same work and put into the
// context: frameworks and clients of models make their own. It is the same work if it is
// the same operation on the same agent, tool or model. A span that the hook has made, or
// taken before, has the attributes of a run.
//
// The API does not tell the attributes of a span. The SDK's spans do.
func foreign(ctx context.Context, s *spans.Span) *data {
	span := trace.SpanFromContext(ctx)
	known, ok := span.(interface{ Attributes() []attribute.KeyValue })
	if !ok || !span.IsRecording() {
		return nil
	}
	subject := map[string]string{spans.OpAgent: spans.AttrAgent,
		spans.OpTool: spans.AttrTool}[operation(s.Attr(spans.AttrOperation).Text)]
	if s.Kind == spans.KindClient {
		subject = spans.AttrRequestModel
	}
	about := s.Attr(subject).Text
	if about == "" {
		return nil
	}
	var sameOperation, sameSubject bool
	for _, a := range known.Attributes() {
		switch string(a.Key) {
		case spans.AttrOperation:
			sameOperation = operation(a.Value.AsString()) == operation(s.Attr(spans.AttrOperation).Text)
		case subject:
			sameSubject = a.Value.AsString() == about
		case spans.AttrRun:
			return nil
		}
	}
	if !sameOperation || !sameSubject {
		return nil
	}
	d := &data{context: span.SpanContext(), recording: true, foreign: true, span: span}
	if p, ok := span.(interface{ Parent() trace.SpanContext }); ok && p.Parent().IsValid() {
		d.at.ParentSpanID = p.Parent().SpanID().String()
	}
	span.SetAttributes(values(ours(s.Attributes))...)
	return d
}

// operation is the name of an operation; all operations of model calls share one.
func operation(name string) string {
	switch name {
	case "generate_content", "text_completion":
		return spans.OpChat
	default:
		return name
	}
}

// ours are the attributes that a span of somebody else gets: those under the names of the
// conventions are theirs.
func ours(attrs []spans.Attr) []spans.Attr {
	var list []spans.Attr
	for _, a := range attrs {
		if strings.HasPrefix(a.Key, "agentevents.") {
			list = append(list, a)
		}
	}
	return list
}
