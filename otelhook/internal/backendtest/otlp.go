package backendtest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Data is the content of OTLP/JSON, without the lists in lists.
type Data struct {
	Spans   []Span
	Metrics []Metric
	Logs    []Log
}

// Origin is the maker of the data, as a request names it.
type Origin struct {
	Service      string // service.name of the resource
	ScopeName    string
	ScopeVersion string
	SchemaURL    string // of the scope
}

// A Span is a span. Ids are hex.
type Span struct {
	Origin
	TraceID, SpanID, ParentSpanID string
	Flags                         uint32
	Name                          string
	Kind                          int // 1 is internal, 3 client
	Start, End                    time.Time
	Attributes                    map[string]any
	Events                        []Event
	Links                         []Link
	Status                        Status
}

// An Event is an event of a span.
type Event struct {
	Name       string
	Time       time.Time
	Attributes map[string]any
}

// A Link is a link of a span.
type Link struct {
	TraceID, SpanID string
	Attributes      map[string]any
}

// A Status is the status of a span: 0 is unset, 2 an error.
type Status struct {
	Code    int
	Message string
}

// A Metric is an instrument with its points.
type Metric struct {
	Origin
	Name, Unit string
	Type       string // histogram, sum or gauge
	Points     []Point
}

// A Point is a point of a metric.
type Point struct {
	Attributes map[string]any
	Value      float64 // of a sum or a gauge; of a histogram the sum
	Count      uint64  // of a histogram
	Bounds     []float64
	Exemplars  []Exemplar
}

// An Exemplar is an example of a point, with its span.
type Exemplar struct {
	TraceID, SpanID string
}

// A Log is a log record.
type Log struct {
	Origin
	EventName       string
	Severity        int
	Time            time.Time
	TraceID, SpanID string
	Body            any
	Attributes      map[string]any
}

// The forms of OTLP/JSON. Numbers of 64 bits are strings, and zero values may be absent.

type wireValue struct {
	String *string  `json:"stringValue"`
	Bool   *bool    `json:"boolValue"`
	Int    *wireInt `json:"intValue"`
	Double *float64 `json:"doubleValue"`
	Array  *struct {
		Values []wireValue `json:"values"`
	} `json:"arrayValue"`
	Map *struct {
		Values wireAttrs `json:"values"`
	} `json:"kvlistValue"`
}

func (v *wireValue) value() any {
	switch {
	case v.String != nil:
		return *v.String
	case v.Bool != nil:
		return *v.Bool
	case v.Int != nil:
		return int64(*v.Int)
	case v.Double != nil:
		return *v.Double
	case v.Array != nil:
		list := []any{}
		for _, e := range v.Array.Values {
			list = append(list, e.value())
		}
		return list
	case v.Map != nil:
		return v.Map.Values.values()
	}
	return nil
}

type wireAttrs []struct {
	Key   string    `json:"key"`
	Value wireValue `json:"value"`
}

func (a wireAttrs) values() map[string]any {
	m := map[string]any{}
	for _, kv := range a {
		m[kv.Key] = kv.Value.value()
	}
	return m
}

type wireInt int64

func (n *wireInt) UnmarshalJSON(text []byte) error {
	if len(text) > 1 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	v, err := strconv.ParseInt(string(text), 10, 64)
	*n = wireInt(v)
	return err
}

func (n wireInt) time() time.Time { return time.Unix(0, int64(n)).UTC() }

type wireResource struct {
	Resource struct {
		Attributes wireAttrs `json:"attributes"`
	} `json:"resource"`
}

type wireScope struct {
	Scope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"scope"`
	SchemaURL string `json:"schemaUrl"`
}

func (r *wireResource) origin(s *wireScope) Origin {
	service, _ := r.Resource.Attributes.values()["service.name"].(string)
	return Origin{service, s.Scope.Name, s.Scope.Version, s.SchemaURL}
}

type wireSpan struct {
	TraceID      string    `json:"traceId"`
	SpanID       string    `json:"spanId"`
	ParentSpanID string    `json:"parentSpanId"`
	Flags        uint32    `json:"flags"`
	Name         string    `json:"name"`
	Kind         int       `json:"kind"`
	Start        wireInt   `json:"startTimeUnixNano"`
	End          wireInt   `json:"endTimeUnixNano"`
	Attributes   wireAttrs `json:"attributes"`
	Events       []struct {
		Name       string    `json:"name"`
		Time       wireInt   `json:"timeUnixNano"`
		Attributes wireAttrs `json:"attributes"`
	} `json:"events"`
	Links []struct {
		TraceID    string    `json:"traceId"`
		SpanID     string    `json:"spanId"`
		Attributes wireAttrs `json:"attributes"`
	} `json:"links"`
	Status struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"status"`
}

type wirePoints struct {
	DataPoints []struct {
		Attributes wireAttrs `json:"attributes"`
		Sum        float64   `json:"sum"`
		Count      wireInt   `json:"count"`
		Double     float64   `json:"asDouble"`
		Int        wireInt   `json:"asInt"`
		Bounds     []float64 `json:"explicitBounds"`
		Exemplars  []struct {
			TraceID string `json:"traceId"`
			SpanID  string `json:"spanId"`
		} `json:"exemplars"`
	} `json:"dataPoints"`
}

type wireMetric struct {
	Name      string      `json:"name"`
	Unit      string      `json:"unit"`
	Histogram *wirePoints `json:"histogram"`
	Sum       *wirePoints `json:"sum"`
	Gauge     *wirePoints `json:"gauge"`
}

type wireLog struct {
	EventName  string    `json:"eventName"`
	Severity   int       `json:"severityNumber"`
	Time       wireInt   `json:"timeUnixNano"`
	TraceID    string    `json:"traceId"`
	SpanID     string    `json:"spanId"`
	Body       wireValue `json:"body"`
	Attributes wireAttrs `json:"attributes"`
}

// add adds the data of one request.
func (d *Data) add(request []byte) error {
	var w struct {
		Spans []struct {
			wireResource
			Scopes []struct {
				wireScope
				Spans []wireSpan `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
		Metrics []struct {
			wireResource
			Scopes []struct {
				wireScope
				Metrics []wireMetric `json:"metrics"`
			} `json:"scopeMetrics"`
		} `json:"resourceMetrics"`
		Logs []struct {
			wireResource
			Scopes []struct {
				wireScope
				Logs []wireLog `json:"logRecords"`
			} `json:"scopeLogs"`
		} `json:"resourceLogs"`
	}
	if err := json.Unmarshal(request, &w); err != nil {
		return fmt.Errorf("no OTLP/JSON: %w", err)
	}
	for _, r := range w.Spans {
		for _, s := range r.Scopes {
			for _, v := range s.Spans {
				d.Spans = append(d.Spans, v.span(r.origin(&s.wireScope)))
			}
		}
	}
	for _, r := range w.Metrics {
		for _, s := range r.Scopes {
			for _, v := range s.Metrics {
				d.Metrics = append(d.Metrics, v.metric(r.origin(&s.wireScope)))
			}
		}
	}
	for _, r := range w.Logs {
		for _, s := range r.Scopes {
			for _, v := range s.Logs {
				d.Logs = append(d.Logs, Log{
					Origin: r.origin(&s.wireScope), EventName: v.EventName, Severity: v.Severity, Time: v.Time.time(),
					TraceID: v.TraceID, SpanID: v.SpanID, Body: v.Body.value(), Attributes: v.Attributes.values(),
				})
			}
		}
	}
	return nil
}

func (v *wireSpan) span(o Origin) Span {
	s := Span{
		Origin: o, TraceID: v.TraceID, SpanID: v.SpanID,
		ParentSpanID: v.ParentSpanID, Flags: v.Flags, Name: v.Name, Kind: v.Kind,
		Start: v.Start.time(), End: v.End.time(), Attributes: v.Attributes.values(), Status: Status(v.Status),
	}
	for _, e := range v.Events {
		s.Events = append(s.Events, Event{e.Name, e.Time.time(), e.Attributes.values()})
	}
	for _, l := range v.Links {
		s.Links = append(s.Links, Link{l.TraceID, l.SpanID, l.Attributes.values()})
	}
	return s
}

func (v *wireMetric) metric(o Origin) Metric {
	m := Metric{Origin: o, Name: v.Name, Unit: v.Unit}
	for kind, p := range map[string]*wirePoints{"histogram": v.Histogram, "sum": v.Sum, "gauge": v.Gauge} {
		if p == nil {
			continue
		}
		m.Type = kind
		for _, d := range p.DataPoints {
			point := Point{
				Attributes: d.Attributes.values(), Value: d.Sum + d.Double + float64(d.Int),
				Count: uint64(d.Count), Bounds: d.Bounds,
			}
			for _, e := range d.Exemplars {
				point.Exemplars = append(point.Exemplars, Exemplar{e.TraceID, e.SpanID})
			}
			m.Points = append(m.Points, point)
		}
	}
	return m
}
