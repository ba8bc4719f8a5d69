package agentevents_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
)

func TestLogValues(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
			return slog.Attr{}
		}
		return a
	}}))
	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleStrict})
	require.NoError(t, err)
	run, err := em.Run("r1")
	require.NoError(t, err)
	var rule *ae.RuleError
	require.True(t, errors.As(run.Agent("coder").To(t.Context(), ae.StatusConverged), &rule))
	log.Warn("refused", "err", rule)
	log.Info("event", "ev", ae.Event{
		ID: "e1", RunID: "r1", Sequence: 7, Time: time.UnixMilli(1_700_000_000_000), AgentID: "coder", Step: ae.Some(2), Marks: ae.MarkLate,
		Payload: &ae.TextCompleted{Text: "not for the program's log"},
	})
	require.Equal(t, `msg=refused err.rule=transition-legal err.kind=agent.transition err.run=r1 err.sequence=0 err.agent=coder err.subject="agent \"coder\"" err.state=thinking err.detail="thinking → converged is not in the strict table; legal: tool_call, blocked-on-clarification, failed; lifecycles that allow it: derived" err.refused=true
msg=event ev.kind=agent.text ev.run=r1 ev.sequence=7 ev.id=e1 ev.time=2023-11-14T22:13:20Z ev.agent=coder ev.step=2 ev.marks=late
`, out.String())
}
