package otelhook_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/otelhook"
)

// The ids of sub-agents have the ids of calls. Spans and metrics have the name, so their number
// of series does not grow with the calls, and an attempt without a name keeps it.
func TestCallsOfASubAgentAreOneSeries(t *testing.T) {
	calls := func(runs, n int) (spans map[string]bool, series []string) {
		r, reader := metered(t, otelhook.Options{Semconv: otelhook.SemconvLatest})
		for i := range runs {
			run := r.run(t, fmt.Sprint("run-", i))
			lead := run.Agent("lead")
			emit(t, lead, &ae.AgentStarted{})
			for j := range n {
				call, err := lead.Call(t.Context(), &ae.ToolCalled{ToolID: "research"})
				require.NoError(t, err)
				sub := call.Agent(fmt.Sprintf("research/%d-%d", i, j))
				emit(t, sub, &ae.AgentStarted{Name: "research"}, &ae.StepStarted{StepID: "look"},
					&ae.ModelCalled{ModelCallID: "m", Model: "x"}, &ae.ModelReturned{ModelCallID: "m"},
					&ae.ToolCalled{CallID: "c", ToolID: "read"}, &ae.ToolReturned{CallID: "c", ToolID: "read", Status: ae.ToolStatusOK},
					&ae.StepEnded{StepID: "look"}, &ae.AgentEnded{Outcome: ae.OutcomeAborted})
				if j%3 == 0 {
					emit(t, run, &ae.RunPaused{}, &ae.RunResumed{})
					emit(t, sub, &ae.AgentStarted{Resumed: true}, &ae.AgentEnded{})
				}
				require.NoError(t, call.Return(t.Context(), `"ok"`))
			}
			emit(t, lead, &ae.AgentEnded{})
			emit(t, run, &ae.RunCompleted{})
		}
		require.NoError(t, r.hook.Close())
		spans = map[string]bool{}
		for _, s := range r.spans() {
			spans[s.Name] = true
			for _, a := range s.Attributes {
				if a.Key == "gen_ai.agent.name" {
					require.Contains(t, []string{"lead", "research"}, a.Value.AsString(), s.Name)
				}
			}
		}
		for _, line := range measured(t, reader) {
			series = append(series, regexp.MustCompile(`} .*`).ReplaceAllString(line, "}"))
		}
		return spans, series
	}
	spans, series := calls(1, 1)
	require.Contains(t, spans, "invoke_agent research")
	manySpans, manySeries := calls(4, effort.Of(25, 250, 250))
	require.Equal(t, spans, manySpans)
	require.Equal(t, series, manySeries)
}
