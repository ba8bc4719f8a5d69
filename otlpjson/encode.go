package otlpjson

import (
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/spans"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/agentevents/agentevents/otlpjson"

// The flags of a span: it is sampled, and whether its parent belongs to another process.
const (
	flagsLocal  = 0x101
	flagsRemote = 0x301
)

// frame returns the text before and after the spans of a request.
func frame(o *Options) (head, tail []byte) {
	head = append(head, `{"resourceSpans":[{"resource":{"attributes":[`...)
	resource := map[string]string{"service.name": o.Service}
	maps.Copy(resource, o.Resource)
	for i, name := range slices.Sorted(maps.Keys(resource)) {
		if i > 0 {
			head = append(head, ',')
		}
		head = appendAttr(head, spans.Attr{Key: name, Text: resource[name]})
	}
	head = append(head, `]},"scopeSpans":[{"scope":{"name":"`+scope+`"},"spans":[`...)
	tail = append(tail, ']')
	if schema := spans.Semconv(o.Semconv).SchemaURL(); schema != "" {
		tail = append(tail, `,"schemaUrl":`...)
		tail = jsonwire.AppendString(tail, schema)
	}
	return head, append(tail, `}]}]}`...)
}

// appendSpan appends the JSON of a span: ids are hex, times are strings, enums are numbers, and
// members without a value are left out.
func appendSpan(dst []byte, s *spans.Span) []byte {
	dst = append(dst, `{"traceId":"`...)
	dst = hex.AppendEncode(dst, s.TraceID[:])
	dst = append(dst, `","spanId":"`...)
	dst = hex.AppendEncode(dst, s.ID[:])
	flags := int64(flagsLocal)
	if parent := s.ParentSpanID(); parent != (spans.SpanID{}) {
		dst = append(dst, `","parentSpanId":"`...)
		dst = hex.AppendEncode(dst, parent[:])
		if s.Remote {
			flags = flagsRemote
		}
	}
	dst = append(dst, `","flags":`...)
	dst = strconv.AppendInt(dst, flags, 10)
	dst = append(dst, `,"name":`...)
	dst = jsonwire.AppendString(dst, s.Name)
	dst = append(dst, `,"kind":`...)
	dst = strconv.AppendInt(dst, int64(s.Kind), 10)
	dst = append(dst, `,"startTimeUnixNano":`...)
	dst = appendTime(dst, s.Start)
	dst = append(dst, `,"endTimeUnixNano":`...)
	dst = appendTime(dst, s.Until())
	dst = appendAttrs(dst, s.Attributes)
	for i := range s.Points {
		p := &s.Points[i]
		dst = append(dst, separator(i, `,"events":[`)...)
		dst = append(dst, `{"timeUnixNano":`...)
		dst = appendTime(dst, p.Time)
		dst = append(dst, `,"name":`...)
		dst = jsonwire.AppendString(dst, p.Name)
		dst = append(appendAttrs(dst, p.Attributes), '}')
	}
	if len(s.Points) > 0 {
		dst = append(dst, ']')
	}
	if s.DroppedPoints > 0 {
		dst = append(dst, `,"droppedEventsCount":`...)
		dst = strconv.AppendInt(dst, int64(s.DroppedPoints), 10)
	}
	for i := range s.Links {
		l := &s.Links[i]
		dst = append(dst, separator(i, `,"links":[`)...)
		dst = append(dst, `{"traceId":"`...)
		dst = hex.AppendEncode(dst, l.TraceID[:])
		dst = append(dst, `","spanId":"`...)
		dst = hex.AppendEncode(dst, l.SpanID[:])
		dst = append(appendAttrs(append(dst, '"'), l.Attributes), '}')
	}
	if len(s.Links) > 0 {
		dst = append(dst, ']')
	}
	if s.Status != spans.StatusUnset {
		dst = append(dst, `,"status":{"code":`...)
		dst = strconv.AppendInt(dst, int64(s.Status), 10)
		if s.Description != "" {
			dst = append(dst, `,"message":`...)
			dst = jsonwire.AppendString(dst, s.Description)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// separator returns the text before the element i of a list.
func separator(i int, open string) string {
	if i == 0 {
		return open
	}
	return ","
}

func appendAttrs(dst []byte, attrs []spans.Attr) []byte {
	for i, a := range attrs {
		dst = append(dst, separator(i, `,"attributes":[`)...)
		dst = appendAttr(dst, a)
	}
	if len(attrs) > 0 {
		dst = append(dst, ']')
	}
	return dst
}

func appendAttr(dst []byte, a spans.Attr) []byte {
	dst = append(dst, `{"key":`...)
	dst = jsonwire.AppendString(dst, a.Key)
	dst = append(dst, `,"value":`...)
	return append(appendValue(dst, a.Any()), '}')
}

// appendValue appends an AnyValue. One without a member is a value that is not set.
func appendValue(dst []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		dst = append(dst, `{"stringValue":`...)
		dst = jsonwire.AppendString(dst, v)
	case spans.Content:
		return appendValue(dst, v.Text)
	case bool:
		dst = append(dst, `{"boolValue":`...)
		dst = strconv.AppendBool(dst, v)
	case int64:
		dst = append(dst, `{"intValue":"`...)
		dst = append(strconv.AppendInt(dst, v, 10), '"')
	case float64:
		dst = append(dst, `{"doubleValue":`...)
		dst = appendDouble(dst, v)
	case []string:
		dst = append(dst, `{"arrayValue":{"values":[`...)
		for i, s := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, s)
		}
		dst = append(dst, `]}`...)
	default:
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

// appendDouble appends a number, or the word that the JSON of protocol buffers has for it.
func appendDouble(dst []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	}
	return jsonwire.AppendFloat(dst, v)
}

// appendTime appends nanoseconds since 1970 as a string. Times that OTLP has no place for
// become the nearest that it has, in the range of int64, which back ends use.
func appendTime(dst []byte, t time.Time) []byte {
	n := int64(0)
	switch sec := t.Unix(); {
	case sec >= math.MaxInt64/int64(time.Second):
		n = math.MaxInt64
	case sec >= 0:
		n = t.UnixNano()
	}
	dst = append(dst, '"')
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, '"')
}
