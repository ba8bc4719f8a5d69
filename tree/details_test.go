package tree

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/report"
)

// draw records a run and draws it with its details, as it ends.
func draw(t *testing.T, record func(ctx context.Context, run *ae.Run, wait func(time.Duration))) string {
	now := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
	var details report.Details
	fold := ae.NewFold(ae.FoldOptions{KeepCalls: 1000})
	em, err := ae.NewEmitter(ae.EmitterOptions{
		Lifecycle: ae.LifecycleDerived,
		Clock:     func() time.Time { return now },
		Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
			details.Add(&ev)
			fold.Apply(ev)
			return nil
		})},
	})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	record(t.Context(), run, func(d time.Duration) { now = now.Add(d) })
	require.NoError(t, em.Close(t.Context()))
	var b strings.Builder
	require.NoError(t, Write(&b, fold.Snapshot(), Options{Ended: true, Details: &details}))
	return b.String()
}

func TestDetails(t *testing.T) {
	got := draw(t, func(ctx context.Context, run *ae.Run, wait func(time.Duration)) {
		do := func(a *ae.Agent, tool string, arguments ae.JSON, err error) {
			_, _ = a.Do(ctx, &ae.ToolCalled{ToolID: tool, Arguments: arguments}, func(context.Context) (ae.JSON, error) {
				wait(100 * time.Millisecond)
				return "", err
			})
		}
		a := run.Agent("main")
		_ = run.Emit(ctx, &ae.RunStarted{})
		_ = a.Emit(ctx, &ae.AgentStarted{Model: "opus", ProviderSessionID: "chat", Prompt: `[{"role":"user","content":"first"},{"role":"user","content":[{"type":"text","text":"Fix  the\nbuild"}]}]`})
		for _, path := range []ae.JSON{`{"path":"a.go"}`, `{"path":"b.go"}`, `{"limit":5,"file_path":"/home/u/src/github.com/agentevents/agentevents/internal/c.go"}`, `{"path":"a.go"}`} {
			do(a, "Read", path, nil)
		}
		do(a, "Bash", `{"description":"run them","command":"go test ./..."}`, context.Canceled)
		do(a, "Bash", `{"command":"go vet"}`, nil)
		do(a, "Bash", `{"command":"go fmt"}`, nil)
		do(a, "List", ``, nil)
		do(a, "List", `{"depth":1}`, nil)
		call, _ := a.Call(ctx, &ae.ToolCalled{ToolID: "Task", Arguments: `"look"`})
		sub := call.Agent("helper")
		_ = sub.Emit(ctx, &ae.AgentStarted{Prompt: `"look"`})
		_ = sub.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged, Result: "seen"})
		_ = call.Return(ctx, `"seen"`)
		_ = a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomePartial, Result: "Half of it\nworks.", Usage: ae.Some(ae.Usage{InputTokens: 5, OutputTokens: 7})})
		wait(48 * time.Hour)
		_ = a.Emit(ctx, &ae.AgentStarted{Resumed: true})
		wait(time.Second)
		_ = a.Emit(ctx, &ae.AgentErrored{ErrorType: "error_max_turns", Message: "too many"})
		_ = a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomePartial, Result: "Done."})
		_ = run.Emit(ctx, &ae.RunFailed{Error: ae.Some(ae.ErrorInfo{Message: "no more turns"})})
	})
	require.Equal(t, `run r ✗ failed · 2026-05-05 09:00:00Z · 48h00m · at work 1.9s · turn limit: no more turns
└─ main ! partial · 2 turns · 48h00m · at work 1.9s · opus · 1 step · 10 tool calls (1 undecided) · 5 tokens in, 7 out: too many
   ├─ prompt: Fix the build (after: first)
   ├─ tool.Read ×4 ✓ 400ms: a.go, b.go, …/agentevents/agentevents/internal/c.go
   ├─ tool.Bash ✗ cancelled · 100ms: go test ./... — context canceled
   ├─ tool.Bash ✓ 100ms: go vet
   ├─ tool.Bash ✓ 100ms: go fmt
   ├─ tool.List ×2 ✓ 200ms
   ├─ tool.Task ✓: look
   │  └─ helper ✓ converged
   │     └─ answer: seen
   ├─ answer: Half of it works.
   ├─ error ✗ error_max_turns: too many
   └─ answer: Done.
2 agents · 10 tool calls (1 undecided) · 5 tokens in, 7 out
`, got)
}

// Errors and items of the blackboard have a line each, and so has each unknown kind of an agent,
// however many events it has and how often they come.
func TestDetailsOfTheWiki(t *testing.T) {
	var details report.Details
	fold := ae.NewFold(ae.FoldOptions{})
	for i, ev := range []ae.Event{
		{AgentID: "coder", Payload: &ae.Unknown{Type: "patch.created", Raw: `{"patch":"a.go"}`}},
		{AgentID: "coder", Payload: &ae.BlackboardItemCreated{ItemID: "b1", ItemType: "artifact", Content: `"diff"`, Confidence: ae.Some(0.5)}},
		{AgentID: "coder", Payload: &ae.Unknown{Type: "test.failed", Raw: `{"test":"TestA"}`}},
		{AgentID: "coder", Payload: &ae.AgentErrored{ErrorType: "rate_limit", Message: "429"}},
		{AgentID: "coder", Payload: &ae.AgentErrored{ErrorType: "rate_limit", Message: "429"}},
		{AgentID: "coder", Payload: &ae.AgentErrored{ErrorType: "overloaded", Message: "529"}},
		{AgentID: "coder", Payload: &ae.AgentErrored{ErrorType: "slow", Severity: ae.SeverityWarning}},
		{AgentID: "coder", Payload: &ae.Unknown{Type: "patch.created", Raw: `{"patch":"b.go"}`}},
		{Payload: &ae.Unknown{Type: "approved"}},
	} {
		ev.RunID, ev.Sequence = "r", uint64(i)
		for range 2 { // it is delivered again
			details.Add(&ev)
		}
		fold.Apply(ev)
	}
	var b strings.Builder
	require.NoError(t, Write(&b, fold.Snapshot(), Options{Details: &details}))
	require.Equal(t, `run r running
├─ coder: 529
│  ├─ patch.created ×2
│  ├─ blackboard b1 artifact · confidence 0.5: diff
│  ├─ test.failed: TestA
│  ├─ error ×2 ✗ rate_limit: 429
│  ├─ error ✗ overloaded: 529
│  └─ warning ! slow
└─ approved
1 agent · 0 tool calls
`, b.String())
}
