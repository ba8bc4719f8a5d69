package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// This file stands in for a back end: two exporters that print when they are shut down.

// A treePrinter prints spans as a tree.
type treePrinter struct {
	w     io.Writer
	spans []sdktrace.ReadOnlySpan
}

// ExportSpans keeps the spans: children come before their parents.
func (p *treePrinter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	p.spans = append(p.spans, spans...)
	return nil
}

// Shutdown prints.
func (p *treePrinter) Shutdown(context.Context) error {
	slices.SortStableFunc(p.spans, func(a, b sdktrace.ReadOnlySpan) int {
		return cmp.Or(a.StartTime().Compare(b.StartTime()), cmp.Compare(sequence(a), sequence(b)))
	})
	p.below(trace.SpanID{}, "")
	return nil
}

// sequence is the number of the event that began the span.
func sequence(s sdktrace.ReadOnlySpan) int64 {
	for _, a := range s.Attributes() {
		if a.Key == "agentevents.seq.first" {
			return a.Value.AsInt64()
		}
	}
	return 0
}

func (p *treePrinter) below(parent trace.SpanID, indent string) {
	var children []sdktrace.ReadOnlySpan
	for _, s := range p.spans {
		if s.Parent().SpanID() == parent {
			children = append(children, s)
		}
	}
	for i, s := range children {
		branch, inside := "├─ ", "│  "
		if i == len(children)-1 {
			branch, inside = "└─ ", "   "
		}
		failed := ""
		if s.Status().Code == codes.Error {
			failed = " ERROR"
		}
		fmt.Fprintf(p.w, "%s%s%s %v%s%s\n", indent, branch, s.Name(),
			s.EndTime().Sub(s.StartTime()).Round(time.Microsecond), failed, shown(s.Attributes(), hidden...))
		for _, l := range s.Links() {
			fmt.Fprintf(p.w, "%s%s→ linked to %s%s\n", indent, inside, p.name(l.SpanContext.SpanID()), shown(l.Attributes))
		}
		for _, e := range s.Events() {
			if e.Name != "agentevents.agent.transition" { // one for each change of status
				fmt.Fprintf(p.w, "%s%s· %s%s\n", indent, inside, e.Name, shown(e.Attributes))
			}
		}
		p.below(s.SpanContext().SpanID(), indent+inside)
	}
}

func (p *treePrinter) name(id trace.SpanID) string {
	for _, s := range p.spans {
		if s.SpanContext().SpanID() == id {
			return s.Name()
		}
	}
	return id.String()
}

// hidden are attributes that almost all spans have, or that repeat the names of spans.
var hidden = []attribute.Key{
	"agentevents.run.id", "agentevents.schema", "agentevents.agent.id", "agentevents.seq.first", "agentevents.seq.last", "gen_ai.conversation.id",
	"gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.workflow.name", "gen_ai.request.model", "agentevents.step.index",
}

func shown(attrs []attribute.KeyValue, except ...attribute.Key) string {
	var b strings.Builder
	for _, a := range attrs {
		if !slices.Contains(except, a.Key) {
			fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		}
	}
	return b.String()
}

// A metricPrinter prints metrics, one line for each set of attributes.
type metricPrinter struct{ w io.Writer }

// Temporality returns the default.
func (*metricPrinter) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(k)
}

// Aggregation returns the default.
func (*metricPrinter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

// ForceFlush has nothing to do.
func (*metricPrinter) ForceFlush(context.Context) error { return nil }

// Shutdown has nothing to do.
func (*metricPrinter) Shutdown(context.Context) error { return nil }

// Export prints the figures. The reader calls it every minute, and when it is shut down.
func (p *metricPrinter) Export(_ context.Context, all *metricdata.ResourceMetrics) error {
	var lines []string
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			add := func(set attribute.Set, figure string, args ...any) {
				lines = append(lines, m.Name+shown(set.ToSlice())+": "+fmt.Sprintf(figure, args...))
			}
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, d := range data.DataPoints {
					add(d.Attributes, "%d, %.3f s", d.Count, d.Sum)
				}
			case metricdata.Histogram[int64]:
				for _, d := range data.DataPoints {
					add(d.Attributes, "%d, sum %d", d.Count, d.Sum)
				}
			case metricdata.Sum[int64]:
				for _, d := range data.DataPoints {
					add(d.Attributes, "%d", d.Value)
				}
			}
		}
	}
	slices.Sort(lines)
	for _, l := range lines {
		fmt.Fprintln(p.w, l)
	}
	return nil
}
