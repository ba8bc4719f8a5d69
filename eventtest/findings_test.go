package eventtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/findings"
)

func TestWantNoFindings(t *testing.T) {
	em, rec := eventtest.Record(t)
	run, err := em.Run("r1")
	require.NoError(t, err)
	a, ctx := run.Agent("main"), t.Context()
	require.NoError(t, a.Emit(ctx, &agentevents.AgentStarted{}))
	read := func(context.Context) (agentevents.JSON, error) { return `"text"`, nil }
	for i := range 4 {
		if i == 2 {
			rec.WantNoFindings(t, findings.Options{})
		}
		_, err := a.Do(ctx, &agentevents.ToolCalled{ToolID: "read", Arguments: `{"path":"f"}`}, read)
		require.NoError(t, err)
	}
	require.Contains(t, failure(t, func(t testing.TB) { rec.WantNoFindings(t, findings.Options{}) }),
		`eventtest: repeat in run r1: main made the same call of read (f) 4 times in a row and got the same result (events [`)
	rec.WantNoFindings(t, findings.Options{Off: []findings.Kind{findings.Repeat}})
	rec.WantNoFindings(t, findings.Options{Polls: []string{"read"}})
	require.Contains(t, failure(t, func(t testing.TB) { rec.WantNoFindings(t, findings.Options{Repeats: 1}) }), "findings.Options.Repeats is 1")
}
