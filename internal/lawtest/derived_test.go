package lawtest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
)

// A log with derived transitions that is emitted again gains no event and loses none:
// the transitions on it are those that follow from its other events.
func TestDerivedLogEmittedAgainGainsNothing(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		c.Lifecycle = agentevents.LifecycleDerived
		r := show(t, Generate(t, c))
		var again []agentevents.Event
		e := NewEmitter(t, c.Lifecycle, agentevents.ModeEnforce, &Clock{}, &IDs{}, &agentevents.Policy{Off: true}, func(ev agentevents.Event) { again = append(again, ev) })
		run, err := e.Run(r.ID)
		require.NoError(t, err)
		for _, ev := range r.Events {
			if ev.Kind() == agentevents.KindAgentTransition && ev.Marks.Has(agentevents.MarkSynthetic) {
				moved++
			}
			_, err := run.Record(context.Background(), ev)
			require.NoError(t, err)
		}
		require.Equal(t, kindsOf(r.Events), kindsOf(again))
	})
	require.NotZero(t, moved)
}

func kindsOf(events []agentevents.Event) (kinds []agentevents.Kind) {
	for _, ev := range events {
		kinds = append(kinds, ev.Kind())
	}
	return kinds
}
