package agentevents_test

import (
	"bytes"
	"context"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

// README:

// Parallel tools: Do may be called from goroutines.
func gather(ctx context.Context, planner *ae.Agent) {
	var both sync.WaitGroup
	both.Go(func() { planner.Do(ctx, &ae.ToolCalled{ToolID: "weather", Arguments: `{"city":"Oslo"}`}, forecast) })
	both.Go(func() { planner.Do(ctx, &ae.ToolCalled{ToolID: "hotels", Arguments: `{"city":"Oslo"}`}, hotels) })
	both.Wait()
}

// A tool that is an agent: the agent of CallFromContext stands below the call.
func hotels(ctx context.Context) (found ae.JSON, err error) {
	scout := ae.CallFromContext(ctx).Agent("scout")
	scout.Emit(ctx, &ae.AgentStarted{Task: "Find three hotels"})
	defer scout.FinishDeferred(ctx, &err, nil)
	return scout.Do(ctx, &ae.ToolCalled{ToolID: "search", Arguments: `{"query":"hotels in Oslo"}`}, search)
}

// Streaming: a model call makes one block of the pieces of an answer.
func answer(ctx context.Context, a *ae.Agent, pieces iter.Seq[string]) error {
	call, err := a.Model(ctx, &ae.ModelCalled{Model: "some-model"})
	for piece := range pieces {
		call.Text(ctx, piece)
	}
	call.Return(ctx, &ae.ModelReturned{Usage: ae.Some(ae.Usage{InputTokens: 900, OutputTokens: 40})})
	return err
}

// end

func forecast(context.Context) (ae.JSON, error) { return `{"degrees":7}`, nil }
func search(context.Context) (ae.JSON, error)   { return `["Fjord","Opera","Vika"]`, nil }

// The README shows the tree of its recipes. The two tools run at once, so their order in the
// tree is open.
func TestReadmesRecipes(t *testing.T) {
	ctx := t.Context()
	var log bytes.Buffer
	em, err := ae.NewEmitter(ae.EmitterOptions{
		Sinks: []ae.Sink{ae.NewWriter(&log, ae.WriterOptions{})},
		Clock: func() time.Time { return time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC) },
	})
	require.NoError(t, err)
	run, err := em.Run("trip")
	require.NoError(t, err)
	planner := run.Agent("planner")
	require.NoError(t, planner.Emit(ctx, &ae.AgentStarted{Task: "Plan a weekend in Oslo"}))
	gather(ctx, planner)
	require.NoError(t, answer(ctx, planner, slices.Values([]string{"Stay at the Fjord, ", "and take a coat."})))
	require.NoError(t, run.Finish(ctx, nil))
	require.NoError(t, em.Close(ctx))

	var details report.Details
	for ev, err := range ae.NewReader(bytes.NewReader(log.Bytes()), ae.ReaderOptions{}).All() {
		require.NoError(t, err)
		details.Add(&ev)
	}
	runs, err := ae.FoldLog(ae.NewReader(&log, ae.ReaderOptions{}), ae.FoldOptions{})
	require.NoError(t, err)
	var drawn strings.Builder
	for s := range runs.Drain() {
		require.Empty(t, s.Violations)
		require.NoError(t, tree.Write(&drawn, s, tree.Options{Details: &details}))
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, shown, _ := strings.Cut(string(readme), "```\nrun trip")
	shown, _, _ = strings.Cut("run trip"+shown, "```\n")
	require.Equal(t, branches(shown), branches(drawn.String()), drawn.String())
}

// branches returns the lines of a tree without the lines that connect them, sorted.
func branches(drawn string) []string {
	var lines []string
	for line := range strings.Lines(drawn) {
		lines = append(lines, strings.TrimLeft(line, "│├└─ "))
	}
	slices.Sort(lines)
	return lines
}

// The agent of the recipe fails when its search does, like the call that it stands below.
func TestReadmesAgentFailsWithItsSearch(t *testing.T) {
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{
		Lifecycle:   ae.LifecycleDerived,
		OnViolation: func(*ae.RuleError) {},
		Guard: func(ev ae.Event) *ae.RuleError {
			if p, ok := ev.Payload.(*ae.ToolCalled); ok && p.ToolID == "search" {
				return &ae.RuleError{Rule: "no-search"}
			}
			return nil
		},
	})
	run, err := em.Run("trip")
	require.NoError(t, err)
	planner := run.Agent("planner")
	require.NoError(t, planner.Emit(t.Context(), &ae.AgentStarted{}))
	_, err = planner.Do(t.Context(), &ae.ToolCalled{ToolID: "hotels"}, hotels)
	require.Error(t, err)
	require.NoError(t, run.Finish(t.Context(), nil))
	var statuses []ae.AgentStatus
	for _, ev := range rec.Events() {
		if p, ok := ev.Payload.(*ae.AgentTransition); ok && ev.AgentID == "scout" {
			statuses = append(statuses, p.To)
		}
	}
	require.Equal(t, ae.StatusFailed, statuses[len(statuses)-1])
}
