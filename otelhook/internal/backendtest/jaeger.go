package backendtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Jaeger is a Jaeger v2 that keeps traces in memory.
type Jaeger struct {
	// Endpoint takes OTLP by HTTP, such as http://127.0.0.1:4318. It is for traces only.
	Endpoint string
	// Query is the URL of the interface for questions, such as http://127.0.0.1:16686. It
	// has no pages in this build.
	Query string
}

// StartJaeger runs a Jaeger until the end of the test.
func StartJaeger(t testing.TB) *Jaeger {
	t.Helper()
	ports := start(t, "jaeger", 3, func(ports []any) string {
		return fmt.Sprintf(`
extensions:
  jaeger_storage: {backends: {memory: {memory: {max_traces: 100000}}}}
  jaeger_query:
    storage: {traces: memory}
    enable_tracing: false
    http: {endpoint: "127.0.0.1:%d"}
    grpc: {endpoint: "127.0.0.1:%d"}
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%d"}}}}
exporters: {jaeger_storage_exporter: {trace_storage: memory}}
service:
  extensions: [jaeger_storage, jaeger_query]
  telemetry: {metrics: {level: none}, logs: {level: warn}}
  pipelines:
    traces: {receivers: [otlp], exporters: [jaeger_storage_exporter]}
`, ports...)
	}, func(ports []any) error {
		if _, err := Post(fmt.Sprintf("http://127.0.0.1:%d/v1/traces", ports[2]), "{}"); err != nil {
			return err
		}
		_, err := get(fmt.Sprintf("http://127.0.0.1:%d/api/services", ports[0]))
		return err
	})
	return &Jaeger{
		Query:    fmt.Sprintf("http://127.0.0.1:%d", ports[0]),
		Endpoint: fmt.Sprintf("http://127.0.0.1:%d", ports[2]),
	}
}

// A Trace is a trace as Jaeger shows it.
type Trace struct {
	ID    string
	Spans []JaegerSpan // in the order of their starts
}

// A JaegerSpan is a span as Jaeger shows it.
type JaegerSpan struct {
	TraceID, SpanID string
	Name            string
	Start           time.Time // in microseconds, as is Duration
	Duration        time.Duration
	References      []Reference
	Tags            map[string]any // attributes, and Jaeger's own tags
	Warnings        []string       // Jaeger's warnings about the span
}

// A Reference is to a parent (CHILD_OF) or by a link (FOLLOWS_FROM).
type Reference struct {
	Type    string `json:"refType"`
	TraceID string `json:"traceID"`
	SpanID  string `json:"spanID"`
}

// Parent returns the id of the parent, or "" for a root.
func (s *JaegerSpan) Parent() string {
	for _, r := range s.References {
		if r.Type == "CHILD_OF" && r.TraceID == s.TraceID {
			return r.SpanID
		}
	}
	return ""
}

// Links returns the references to spans that this one follows from.
func (s *JaegerSpan) Links() (links []Reference) {
	for _, r := range s.References {
		if r.Type == "FOLLOWS_FROM" {
			links = append(links, r)
		}
	}
	return links
}

// Error returns error.type of a span that has failed, or "".
func (s *JaegerSpan) Error() string {
	if s.Tags["error"] != true {
		return ""
	}
	kind, _ := s.Tags["error.type"].(string)
	return cmp.Or(kind, "without a type")
}

// Trace returns the trace with that id once it has that many spans, or more.
func (j *Jaeger) Trace(t testing.TB, id string, spans int) *Trace {
	t.Helper()
	var trace *Trace
	poll(t, func() (err error) {
		var list []*Trace
		if list, err = j.traces("/api/traces/" + id); err != nil {
			return err
		}
		if trace = list[0]; len(trace.Spans) < spans {
			return fmt.Errorf("Jaeger has %d spans of the trace %s, not %d", len(trace.Spans), id, spans)
		}
		return nil
	})
	return trace
}

func (j *Jaeger) traces(path string) ([]*Trace, error) {
	text, err := get(j.Query + path)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data []struct {
			TraceID string `json:"traceID"`
			Spans   []struct {
				TraceID    string      `json:"traceID"`
				SpanID     string      `json:"spanID"`
				Name       string      `json:"operationName"`
				References []Reference `json:"references"`
				Start      int64       `json:"startTime"`
				Duration   int64       `json:"duration"`
				Tags       []struct {
					Key   string `json:"key"`
					Value any    `json:"value"`
				} `json:"tags"`
				Warnings []string `json:"warnings"`
			} `json:"spans"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("the answer of Jaeger: %w", err)
	}
	list := []*Trace{}
	for _, d := range answer.Data {
		trace := &Trace{ID: d.TraceID}
		for _, s := range d.Spans {
			span := JaegerSpan{
				TraceID: s.TraceID, SpanID: s.SpanID, Name: s.Name, Start: time.UnixMicro(s.Start).UTC(),
				Duration:   time.Duration(s.Duration) * time.Microsecond,
				References: s.References, Tags: map[string]any{}, Warnings: s.Warnings,
			}
			for _, tag := range s.Tags {
				span.Tags[tag.Key] = tag.Value
			}
			trace.Spans = append(trace.Spans, span)
		}
		slices.SortStableFunc(trace.Spans, func(a, b JaegerSpan) int {
			return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.sequence(), b.sequence()))
		})
		list = append(list, trace)
	}
	return list, nil
}

// sequence is the number of the event that began the span: starts may be at one time.
func (s *JaegerSpan) sequence() float64 {
	n, _ := s.Tags["agentevents.seq.first"].(float64)
	return n
}

// Check fails the test unless the trace is one tree without a warning: one root, every
// parent there, no id twice, no negative duration. root is the id of the span outside of
// the trace that its root is below, or "".
func (tr *Trace) Check(t testing.TB, root string) {
	t.Helper()
	ids := map[string]bool{}
	for _, s := range tr.Spans {
		if ids[s.SpanID] {
			t.Errorf("trace %s: two spans have the id %s", tr.ID, s.SpanID)
		}
		ids[s.SpanID] = true
	}
	roots := 0
	for _, s := range tr.Spans {
		if len(s.Warnings) > 0 && (root == "" || s.Parent() != root) { // that span is not in Jaeger
			t.Errorf("trace %s: %s has warnings: %q", tr.ID, s.Name, s.Warnings)
		}
		if s.Duration < 0 {
			t.Errorf("trace %s: %s takes %v", tr.ID, s.Name, s.Duration)
		}
		switch parent := s.Parent(); {
		case parent == root:
			roots++
		case !ids[parent]:
			t.Errorf("trace %s: the parent of %s is not there", tr.ID, s.Name)
		}
	}
	if roots != 1 {
		t.Errorf("trace %s has %d roots", tr.ID, roots)
	}
}

// Tree draws the trace: names, durations, and types of errors.
func (tr *Trace) Tree() string {
	below := map[string][]*JaegerSpan{}
	ids := map[string]bool{}
	for i := range tr.Spans {
		ids[tr.Spans[i].SpanID] = true
	}
	for i := range tr.Spans {
		s := &tr.Spans[i]
		parent := s.Parent()
		if !ids[parent] {
			parent = ""
		}
		below[parent] = append(below[parent], s)
	}
	var b strings.Builder
	var draw func(parent, indent string)
	draw = func(parent, indent string) {
		list := below[parent]
		for i, s := range list {
			branch, more := "├─ ", "│  "
			if i == len(list)-1 {
				branch, more = "└─ ", "   "
			}
			if parent == "" {
				branch, more = "", ""
			}
			fmt.Fprintf(&b, "%s%s%s  %v", indent, branch, s.Name, s.Duration)
			if e := s.Error(); e != "" {
				fmt.Fprintf(&b, "  error: %s", e)
			}
			b.WriteByte('\n')
			draw(s.SpanID, indent+more)
		}
	}
	draw("", "")
	return b.String()
}
