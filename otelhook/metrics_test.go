package otelhook_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/findings"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/otelhook"
)

// measured returns a line for each point of each metric, in order.
func measured(t testing.TB, reader *sdkmetric.ManualReader) (lines []string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	add := func(m metricdata.Metrics, set attribute.Set, value any) {
		lines = append(lines, fmt.Sprintf("%s [%s] {%s} %v", m.Name, m.Unit, set.Encoded(attribute.DefaultEncoder()), value))
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					add(m, p.Attributes, p.Sum)
				}
			case metricdata.Histogram[int64]:
				for _, p := range d.DataPoints {
					add(m, p.Attributes, p.Sum)
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					add(m, p.Attributes, p.Value)
				}
			case metricdata.Sum[float64]:
				for _, p := range d.DataPoints {
					add(m, p.Attributes, p.Value)
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func metered(t testing.TB, o otelhook.Options, more ...sdktrace.TracerProviderOption) (*rig, *sdkmetric.ManualReader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	return newRig(t, o, more...), reader
}

func TestMetricsOfARun(t *testing.T) {
	for v, models := range map[otelhook.Semconv][]string{
		otelhook.SemconvShared: nil,
		otelhook.SemconvV1_41: {
			"gen_ai.client.operation.duration [s] {gen_ai.operation.name=chat,gen_ai.provider.name=anthropic,gen_ai.request.model=claude} 0",
			"gen_ai.client.token.usage [{token}] {gen_ai.operation.name=chat,gen_ai.provider.name=anthropic,gen_ai.request.model=claude,gen_ai.token.type=input} 5",
			"gen_ai.client.token.usage [{token}] {gen_ai.operation.name=chat,gen_ai.provider.name=anthropic,gen_ai.request.model=claude,gen_ai.token.type=output} 7",
		},
		otelhook.SemconvLatest: {
			"gen_ai.client.inference.duration [s] {gen_ai.operation.name=chat,gen_ai.provider.name=anthropic,gen_ai.request.model=claude} 0",
			"gen_ai.client.inference.usage.input_tokens [{token}] {gen_ai.operation.name=chat,gen_ai.provider.name=anthropic,gen_ai.request.model=claude,gen_ai.token.modality=unknown} 5",
			"gen_ai.client.inference.usage.output_tokens [{token}] {gen_ai.operation.name=chat,gen_ai.provider.name=anthropic,gen_ai.request.model=claude,gen_ai.token.modality=unknown} 7",
		},
	} {
		want := append([]string{
			"agentevents.hook.open [{span}] {} 0",
			"agentevents.runs [{run}] {agentevents.run.outcome=completed} 1",
			"agentevents.tool_calls [{tool_call}] {agentevents.tool.outcome=failed,error.type=timeout,gen_ai.agent.name=sub,gen_ai.tool.name=Bash} 1",
			"agentevents.tool_calls [{tool_call}] {agentevents.tool.outcome=succeeded,gen_ai.agent.name=lead,gen_ai.tool.name=Task} 1",
			"gen_ai.execute_tool.duration [s] {gen_ai.agent.name=lead,gen_ai.tool.name=Task} 1",
			"gen_ai.invoke_agent.duration [s] {gen_ai.agent.name=lead} 1",
			"gen_ai.invoke_agent.duration [s] {gen_ai.agent.name=sub} 1",
			"gen_ai.invoke_agent.inference_calls [{inference_call}] {gen_ai.agent.name=lead} 1",
			"gen_ai.invoke_agent.inference_calls [{inference_call}] {gen_ai.agent.name=sub} 0",
			"gen_ai.invoke_agent.tool_calls [{tool_call}] {gen_ai.agent.name=lead} 1",
			"gen_ai.invoke_agent.tool_calls [{tool_call}] {gen_ai.agent.name=sub} 1",
			"gen_ai.invoke_workflow.duration [s] {gen_ai.workflow.name=release} 1",
		}, models...)
		slices.Sort(want)
		for name, sampler := range map[string]sdktrace.Sampler{"sampled": sdktrace.AlwaysSample(), "not sampled": sdktrace.NeverSample()} {
			r, reader := metered(t, otelhook.Options{Semconv: v}, sdktrace.WithSampler(sampler))
			work(t, r, context.Background(), "r")
			require.Equal(t, want, measured(t, reader), "%q, %s", v, name)
		}
	}
}

// TestCallsWithinAMillisecond: the times of events have milliseconds, the durations of calls more.
func TestCallsWithinAMillisecond(t *testing.T) {
	r, reader := metered(t, otelhook.Options{Semconv: otelhook.SemconvLatest})
	a := r.run(t, "r").Agent("a")
	took := ae.Some(125 * time.Microsecond)
	emit(t, a, &ae.AgentStarted{},
		&ae.ModelCalled{ModelCallID: "m", Model: "x"}, &ae.ModelReturned{ModelCallID: "m", Duration: took},
		&ae.ToolCalled{CallID: "c", ToolID: "Read"}, &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK, Duration: took},
		&ae.AgentEnded{})
	require.NoError(t, r.hook.Close())
	for _, s := range r.spans() {
		require.Equal(t, took.V, s.EndTime.Sub(s.StartTime), s.Name)
	}
	got := strings.Join(measured(t, reader), "\n")
	require.Contains(t, got, "gen_ai.execute_tool.duration [s] {gen_ai.agent.name=a,gen_ai.tool.name=Read} 0.000125")
	require.Contains(t, got, "gen_ai.client.inference.duration [s] {gen_ai.operation.name=chat,gen_ai.request.model=x} 0.000125")
}

// TestOutcomesOfCalls: the counter tells calls apart as stats does, whatever the code of the error, and a return
// after the agent's end counts as any other. A call without a return has no outcome.
func TestOutcomesOfCalls(t *testing.T) {
	r, reader := metered(t, otelhook.Options{})
	run := r.run(t, "r")
	emit(t, run, &ae.RunStarted{})
	a := run.Agent("a")
	emit(t, a, &ae.AgentStarted{}, &ae.ToolCalled{CallID: "never", ToolID: "never"})
	late, err := a.Call(t.Context(), &ae.ToolCalled{ToolID: "late"})
	require.NoError(t, err)
	coded := ae.Some(ae.ErrorInfo{Code: "x"})
	for _, status := range []ae.ToolStatus{ae.ToolStatusError, ae.ToolStatusForbidden, ae.ToolStatusRateLimited, ae.ToolStatusCancelled, ae.ToolStatusInterrupted} {
		emit(t, a, &ae.ToolCalled{CallID: string(status), ToolID: "t"}, &ae.ToolReturned{CallID: string(status), ToolID: "t", Status: status, Error: coded})
	}
	emit(t, a, &ae.AgentEnded{})
	require.NoError(t, late.Return(t.Context(), `"done"`))
	emit(t, run, &ae.RunCompleted{})
	var got []string
	for _, line := range measured(t, reader) {
		if rest, is := strings.CutPrefix(line, "agentevents.tool_calls [{tool_call}] "); is {
			got = append(got, rest)
		}
	}
	require.Equal(t, []string{
		"{agentevents.tool.outcome=cancelled,error.type=x,gen_ai.agent.name=a,gen_ai.tool.name=t} 2",
		"{agentevents.tool.outcome=failed,error.type=x,gen_ai.agent.name=a,gen_ai.tool.name=t} 1",
		"{agentevents.tool.outcome=refused,error.type=x,gen_ai.agent.name=a,gen_ai.tool.name=t} 2",
		"{agentevents.tool.outcome=succeeded,gen_ai.agent.name=a,gen_ai.tool.name=late} 1",
		"{gen_ai.agent.name=a,gen_ai.tool.name=never} 1",
	}, got)
}

// A call without a known duration, or without an end, is counted, and is in no histogram.
func TestUnknownDurationsAreInNoHistogram(t *testing.T) {
	r, reader := metered(t, otelhook.Options{})
	times := []time.Time{r.now, {}, r.now.Add(3 * time.Second)}
	for i, c := range []struct {
		at int // of times
		p  ae.Payload
	}{
		{0, &ae.RunStarted{Name: "n"}}, {1, &ae.AgentStarted{}},
		{0, &ae.ToolReturned{CallID: "a", ToolID: "whole", Status: ae.ToolStatusOK, OneEvent: true}},
		{2, &ae.ToolReturned{CallID: "b", ToolID: "end", Status: ae.ToolStatusOK}},
		{1, &ae.ToolCalled{CallID: "c", ToolID: "start"}}, {2, &ae.ToolReturned{CallID: "c", ToolID: "start", Status: ae.ToolStatusError}},
		{2, &ae.ToolCalled{CallID: "d", ToolID: "stated"}}, {1, &ae.ToolReturned{CallID: "d", ToolID: "stated", Status: ae.ToolStatusOK, Duration: ae.Some(2 * time.Second)}},
		{1, &ae.ApprovalRequested{ApprovalID: "p"}}, {2, &ae.ApprovalGranted{ApprovalID: "p"}},
		{2, &ae.ToolCalled{CallID: "e", ToolID: "open"}}, {2, &ae.ApprovalRequested{ApprovalID: "q"}},
		{2, &ae.AgentEnded{}}, {2, &ae.RunCompleted{}},
	} {
		require.NoError(t, r.hook.WriteEvent(t.Context(), ae.Event{RunID: "r", AgentID: "a", Sequence: uint64(i), Time: times[c.at], Payload: c.p}))
	}
	require.Equal(t, []string{
		"agentevents.hook.closed [{span}] {agentevents.closed.reason=run_ended} 1",
		"agentevents.hook.open [{span}] {} 0",
		"agentevents.runs [{run}] {agentevents.run.outcome=completed} 1",
		"agentevents.tool_calls [{tool_call}] {agentevents.tool.outcome=failed,error.type=_OTHER,gen_ai.agent.name=a,gen_ai.tool.name=start} 1",
		"agentevents.tool_calls [{tool_call}] {agentevents.tool.outcome=succeeded,gen_ai.agent.name=a,gen_ai.tool.name=end} 1",
		"agentevents.tool_calls [{tool_call}] {agentevents.tool.outcome=succeeded,gen_ai.agent.name=a,gen_ai.tool.name=stated} 1",
		"agentevents.tool_calls [{tool_call}] {agentevents.tool.outcome=succeeded,gen_ai.agent.name=a,gen_ai.tool.name=whole} 1",
		"agentevents.tool_calls [{tool_call}] {gen_ai.agent.name=a,gen_ai.tool.name=open} 1",
		"gen_ai.execute_tool.duration [s] {gen_ai.agent.name=a,gen_ai.tool.name=stated} 2",
		"gen_ai.invoke_agent.inference_calls [{inference_call}] {gen_ai.agent.name=a} 0",
		"gen_ai.invoke_agent.tool_calls [{tool_call}] {gen_ai.agent.name=a} 5",
		"gen_ai.invoke_workflow.duration [s] {gen_ai.workflow.name=n} 3",
	}, measured(t, reader))
}

func TestMetricsOfEvents(t *testing.T) {
	r, reader := metered(t, otelhook.Options{})
	run := r.run(t, "r")
	a := run.Agent("a")
	emit(t, a, &ae.AgentStarted{}, &ae.ApprovalRequested{ApprovalID: "p"})
	r.pass(3 * time.Hour)
	emit(t, run, &ae.ApprovalRejected{ApprovalID: "p", RejectedBy: "ann"})
	emit(t, a, &ae.AgentHandoff{From: ae.AgentRef{AgentID: "a"}, To: ae.AgentRef{AgentID: "b"}}, &ae.AuditChecked{CheckpointID: "unit", Result: ae.AuditFail}, &ae.BudgetExceeded{Budget: "cost"},
		&ae.ModelReturned{ModelCallID: "m", Model: "x", OneEvent: true, CostUSD: ae.Some(0.25)})
	require.NoError(t, r.hook.Close())
	got := strings.Join(measured(t, reader), "\n")
	for _, want := range []string{
		"agentevents.approval.wait [s] {agentevents.approval.decision=denied} 10800",
		"agentevents.handoffs [{handoff}] {agentevents.handoff.from=a,agentevents.handoff.to=b} 1",
		"agentevents.evaluations [{evaluation}] {agentevents.evaluation.outcome=failed,gen_ai.evaluation.name=unit,gen_ai.evaluation.score.label=fail} 1",
		"agentevents.budget.exceeded [{event}] {agentevents.budget.kind=cost} 1",
		"agentevents.usage.cost [{USD}] {gen_ai.request.model=x} 0.25",
		"agentevents.runs [{run}] {agentevents.run.outcome=incomplete} 1",
		"agentevents.hook.closed [{span}] {agentevents.closed.reason=shutdown} 2",
	} {
		require.Contains(t, got, want)
	}
}

func TestFindingsAreEventsAndMetrics(t *testing.T) {
	for _, o := range []*findings.Options{nil, {}} {
		r, reader := metered(t, otelhook.Options{Findings: o})
		a := r.run(t, "r").Agent("a")
		emit(t, a, &ae.AgentStarted{})
		for range 30 {
			emit(t, a, &ae.ToolCalled{CallID: "c", ToolID: "Read", Arguments: `{"path":"secret"}`}, &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK, Result: `"x"`})
		}
		emit(t, a, &ae.AgentEnded{})
		require.NoError(t, r.hook.Close())
		var events []string
		for _, s := range r.spans() {
			for _, e := range s.Events {
				if e.Name == "agentevents.finding" {
					events = append(events, fmt.Sprint(s.Name, e.Attributes))
				}
			}
		}
		got := strings.Join(measured(t, reader), "\n")
		if o == nil {
			require.Empty(t, events)
			require.NotContains(t, got, "agentevents.findings")
			continue
		}
		require.Len(t, events, 2)
		require.Contains(t, events[0], "invoke_agent a")
		require.Contains(t, events[0], "repeat")
		require.NotContains(t, strings.Join(events, ""), "secret")
		require.Contains(t, got, "agentevents.findings [{finding}] {agentevents.finding.kind=repeat,agentevents.finding.severity=warning} 1")
		require.Contains(t, got, "agentevents.findings [{finding}] {agentevents.finding.kind=repeat,agentevents.finding.severity=serious} 1")
	}
	_, err := otelhook.New(otelhook.Options{Findings: &findings.Options{Repeats: -1}})
	require.ErrorContains(t, err, "findings.Options.Repeats")
}

func TestReplayedEventsHaveNoMetrics(t *testing.T) {
	r, _ := metered(t, otelhook.Options{})
	work(t, r, context.Background(), "r")
	again, reader := metered(t, otelhook.Options{})
	for _, ev := range r.log.Events() {
		ev.Marks |= ae.MarkReplayed
		require.NoError(t, again.hook.WriteEvent(context.Background(), ev))
	}
	require.Equal(t, []string{"agentevents.hook.open [{span}] {} 0"}, measured(t, reader))
	require.Len(t, again.spans(), 6)
}

// TestMetricsHaveFewSeries: ids are not attributes of metrics. The SDK adds up the series beyond
// its limit of 2,000, under an attribute for the overflow.
func TestMetricsHaveFewSeries(t *testing.T) {
	runs := effort.Of(500, 5000, 5000)
	r, reader := metered(t, otelhook.Options{Semconv: otelhook.SemconvLatest}, sdktrace.WithSampler(sdktrace.NeverSample()))
	for i := range runs {
		r.pass(time.Millisecond)
		id := fmt.Sprint("id", i)
		for k, e := range []struct {
			agent string
			p     ae.Payload
		}{
			{"", &ae.RunStarted{Name: "release"}}, {"lead", &ae.AgentStarted{}},
			{"lead", &ae.ModelCalled{ModelCallID: id, Model: "claude"}},
			{"lead", &ae.ModelReturned{ModelCallID: id, ResponseID: id, Usage: ae.Some(ae.Usage{InputTokens: 5, OutputTokens: 7})}},
			{"lead", &ae.ToolCalled{CallID: id, ToolID: "Bash"}}, {"lead", &ae.ApprovalRequested{ApprovalID: id, CallID: id}},
			{"", &ae.ApprovalRejected{ApprovalID: id, RejectedBy: id}}, {"lead", &ae.ToolReturned{CallID: id, ToolID: "Bash", Status: ae.ToolStatusForbidden}},
			{"lead", &ae.AuditChecked{CheckpointID: "unit", Result: ae.AuditFail}}, {"lead", &ae.BudgetExceeded{Budget: "cost"}},
			{"lead", &ae.HandoffRequested{HandoffID: id, From: ae.AgentRef{AgentID: "lead"}, To: ae.AgentRef{AgentID: "sub"}}},
			{"lead", &ae.AgentEnded{Outcome: ae.OutcomeConverged}}, {"", &ae.RunFailed{Error: ae.Some(ae.ErrorInfo{Code: "timeout", Message: id})}},
		} {
			ev := ae.Event{RunID: id, AgentID: e.agent, Sequence: uint64(k), Time: r.now, Payload: e.p, Scope: ae.Scope{SessionID: id, TaskID: id}}
			require.NoError(t, r.hook.WriteEvent(context.Background(), ev))
		}
	}
	lines := measured(t, reader)
	for _, line := range lines {
		require.NotContains(t, line, "otel.metric.overflow")
		require.NotRegexp(t, `\bid\d`, line)
	}
	require.Contains(t, lines, fmt.Sprintf("agentevents.runs [{run}] {agentevents.run.outcome=failed} %d", runs))
	require.Len(t, lines, 15)
}
