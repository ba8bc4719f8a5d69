package otelhook

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/agentevents/agentevents/internal/spans"
)

// meters are the instruments. Their attributes have few values: no ids.
type meters struct {
	durations  map[string]metric.Float64Histogram // by operation
	modelCalls metric.Int64Histogram
	toolCalls  metric.Int64Histogram
	tokens     metric.Int64Histogram // of v1.41.0, or nil
	input      metric.Int64Counter   // of the latest version, or nil
	output     metric.Int64Counter
	wait       metric.Float64Histogram // for answers
	taken      metric.Float64Histogram // for handoffs
	runs       metric.Int64Counter
	calls      metric.Int64Counter // by tool, also without a known duration
	cost       metric.Float64Counter
	open       metric.Int64UpDownCounter
	closed     metric.Int64Counter
	points     map[string]counted // by name of the point
}

// counted is a counter of points, with the attributes that it takes from them.
type counted struct {
	metric.Int64Counter
	keys []string
}

// doubling are n boundaries from first on.
func doubling(first float64, n int, factor float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = first
		first *= factor
	}
	return list
}

func newMeters(p metric.MeterProvider, v spans.Semconv) (*meters, error) {
	var errs error
	m := p.Meter(ScopeName, metric.WithSchemaURL(v.SchemaURL()))
	seconds := func(name, what string, bounds []float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what),
			metric.WithExplicitBucketBoundaries(bounds...))
		errs = errors.Join(errs, err)
		return h
	}
	sizes := func(name, unit, what string, bounds []float64) metric.Int64Histogram {
		h, err := m.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(what),
			metric.WithExplicitBucketBoundaries(bounds...))
		errs = errors.Join(errs, err)
		return h
	}
	counter := func(name, unit, what string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = errors.Join(errs, err)
		return c
	}
	waits := []float64{1, 5, 15, 60, 300, 900, 3600, 14400, 86400}
	x := &meters{
		durations: map[string]metric.Float64Histogram{
			spans.OpWorkflow: seconds("gen_ai.invoke_workflow.duration", "Duration of runs.", []float64{1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200}),
			spans.OpAgent:    seconds("gen_ai.invoke_agent.duration", "Duration of agents.", doubling(0.1, 13, 2)),
			spans.OpTool:     seconds("gen_ai.execute_tool.duration", "Duration of tool calls.", doubling(0.01, 14, 2)),
		},
		modelCalls: sizes("gen_ai.invoke_agent.inference_calls",
			"{inference_call}", "Model calls of an agent.", doubling(1, 8, 2)),
		toolCalls: sizes("gen_ai.invoke_agent.tool_calls", "{tool_call}", "Tool calls of an agent.", doubling(1, 8, 2)),
		wait:      seconds("agentevents.approval.wait", "Time until a person answers, or the request expires.", waits),
		taken:     seconds("agentevents.handoff.wait", "Time until a handoff is accepted.", waits),
		runs:      counter("agentevents.runs", "{run}", "Runs, by outcome."),
		calls:     counter("agentevents.tool_calls", "{tool_call}", "Tool calls that are over."),
		closed:    counter("agentevents.hook.closed", "{span}", "Spans that ended without their event, by reason."),
	}
	switch v {
	case spans.SemconvV1_41:
		x.durations[spans.OpChat] = seconds("gen_ai.client.operation.duration",
			"Duration of model calls.", doubling(0.01, 14, 2))
		x.tokens = sizes("gen_ai.client.token.usage", "{token}", "Tokens of model calls.", doubling(1, 14, 4))
	case spans.SemconvLatest:
		x.durations[spans.OpChat] = seconds("gen_ai.client.inference.duration",
			"Duration of model calls.", doubling(0.01, 14, 2))
		x.input = counter("gen_ai.client.inference.usage.input_tokens", "{token}", "Tokens sent to models.")
		x.output = counter("gen_ai.client.inference.usage.output_tokens", "{token}", "Tokens that models generated.")
	}
	handoffs := counter("agentevents.handoffs", "{handoff}", "Handoffs between agents.")
	pair := []string{"agentevents.handoff.from", "agentevents.handoff.to"}
	x.points = map[string]counted{
		"agentevents.handoff":           {handoffs, pair},
		"agentevents.handoff.requested": {handoffs, pair},
		spans.EventEvaluation:           {counter("agentevents.evaluations", "{evaluation}", "Audits and verdicts."), []string{spans.AttrEvaluation, spans.AttrScoreLabel, spans.AttrVerdict}},
		"agentevents.budget.exceeded":   {counter("agentevents.budget.exceeded", "{event}", "Budgets and caps that ran out."), []string{"agentevents.budget.kind"}},
		"agentevents.finding":           {counter("agentevents.findings", "{finding}", "Loops, stalls and waste that began or grew tenfold."), []string{"agentevents.finding.kind", "agentevents.finding.severity"}},
		"agentevents.late_end":          {counter("agentevents.hook.unmatched", "{event}", "Ends without an open span."), nil},
	}
	var err error
	x.cost, err = m.Float64Counter("agentevents.usage.cost", metric.WithUnit("{USD}"),
		metric.WithDescription("Cost of model calls in US dollars."))
	errs = errors.Join(errs, err)
	x.open, err = m.Int64UpDownCounter("agentevents.hook.open", metric.WithUnit("{span}"),
		metric.WithDescription("Spans that are open."))
	return x, errors.Join(errs, err)
}

// labels are the attributes with these keys, and more.
func labels(attrs []spans.Attr, keys []string, more ...attribute.KeyValue) metric.MeasurementOption {
	list := append(make([]attribute.KeyValue, 0, 8), more...)
	for i := range attrs {
		if slices.Contains(keys, attrs[i].Key) {
			list = appendValue(list, &attrs[i])
		}
	}
	return metric.WithAttributes(list...)
}

// The attributes of durations, by operation.
var durationKeys = map[string][]string{
	spans.OpWorkflow: {spans.AttrWorkflow, spans.AttrErrorType},
	spans.OpAgent:    {spans.AttrAgent, spans.AttrErrorType},
	spans.OpTool:     {spans.AttrTool, spans.AttrAgent, spans.AttrErrorType},
	spans.OpChat:     {spans.AttrOperation, spans.AttrProvider, spans.AttrRequestModel, spans.AttrErrorType},
}

// The attributes of other metrics.
var (
	agentKeys = []string{spans.AttrAgent}
	callKeys  = []string{spans.AttrTool, spans.AttrAgent, spans.AttrErrorType, spans.AttrToolOutcome}
	waitKeys  = []string{"agentevents.approval.decision"}
	costKeys  = []string{spans.AttrRequestModel}
	tokenKeys = []string{spans.AttrOperation, spans.AttrProvider, spans.AttrRequestModel}
)

// noted counts a point. The context has the span, for exemplars.
func (x *meters) noted(ctx context.Context, p *spans.Point) {
	if c, ok := x.points[p.Name]; ok {
		c.Add(ctx, 1, labels(p.Attributes, c.keys))
	}
	if p.Name == "agentevents.handoff.accepted" {
		for _, a := range p.Attributes {
			if a.Key == spans.AttrWait {
				x.taken.Record(ctx, a.Value.(float64))
			}
		}
	}
}

// ended records a span that has ended.
func (x *meters) ended(d *data, s *spans.Span) {
	ctx := d.in(context.Background())
	operation := s.Attr(spans.AttrOperation).Text
	unknown := s.Attr(spans.AttrNoStart).Value == true || s.Attr(spans.AttrNoEnd).Value == true
	guessed := s.Attr(spans.AttrMadeUp).Value == true || s.ClosedReason != "" || unknown && s.Attr(spans.AttrStated).Value != true
	if operation == spans.OpTool && !d.foreign {
		x.calls.Add(ctx, 1, labels(s.Attributes, callKeys))
	}
	if h := x.durations[operation]; h != nil && !d.foreign && !guessed {
		h.Record(ctx, s.Lasted().Seconds(), labels(s.Attributes, durationKeys[operation]))
	}
	switch {
	case d.foreign: // who makes the span makes the metrics of the conventions
	case operation == spans.OpAgent:
		set := labels(s.Attributes, agentKeys)
		if n, ok := s.Attr(spans.AttrModelCalls).Value.(int64); ok {
			x.modelCalls.Record(ctx, n, set)
		}
		if n, ok := s.Attr(spans.AttrToolCalls).Value.(int64); ok {
			x.toolCalls.Record(ctx, n, set)
		}
	case operation == "agentevents.approval" && !guessed:
		x.wait.Record(ctx, s.End.Sub(s.Start).Seconds(), labels(s.Attributes, waitKeys))
	}
	if s.Kind == spans.KindClient && !d.foreign {
		x.model(ctx, s)
	}
	if usd, ok := s.Attr(spans.AttrCost).Value.(float64); ok {
		x.cost.Add(ctx, usd, labels(s.Attributes, costKeys))
	}
	if s.Parent == nil {
		outcome := s.Attr(spans.AttrOutcome).Text
		if outcome == "" {
			outcome = "ended"
			if s.ClosedReason != "" {
				outcome = "incomplete"
			}
		}
		x.runs.Add(ctx, 1, metric.WithAttributes(attribute.String(spans.AttrOutcome, outcome)))
	}
	if s.ClosedReason != "" {
		x.closed.Add(ctx, 1, metric.WithAttributes(attribute.String(spans.AttrClosedReason, s.ClosedReason)))
	}
}

// model records the tokens of a model call.
func (x *meters) model(ctx context.Context, s *spans.Span) {
	for _, c := range []struct {
		key, kind string
		counter   metric.Int64Counter
	}{{spans.AttrInputTokens, "input", x.input}, {spans.AttrOutputTokens, "output", x.output}} {
		n, ok := s.Attr(c.key).Value.(int64)
		switch {
		case !ok:
		case x.tokens != nil:
			x.tokens.Record(ctx, n, labels(s.Attributes, tokenKeys, attribute.String("gen_ai.token.type", c.kind)))
		case c.counter != nil:
			c.counter.Add(ctx, n, labels(s.Attributes, tokenKeys, attribute.String("gen_ai.token.modality", "unknown")))
		}
	}
}
