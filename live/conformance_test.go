package live_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/live"
)

func TestConforms(t *testing.T) {
	eventtest.SinkTest{
		New: func(testing.TB) ae.Sink { return live.New(live.Options{KeepBytes: 4 << 20, Linger: -1}) },
		Events: func(t testing.TB, s ae.Sink) (events []ae.Event) {
			page := s.(*live.Feed)
			for _, run := range page.Runs() {
				for ev, err := range page.Events(t.Context(), run.ID, run.Oldest) {
					require.NoError(t, err)
					events = append(events, ev)
				}
			}
			return events
		},
	}.Run(t)
}

func TestALogThatNewDidNotMake(t *testing.T) {
	for _, l := range []*live.Feed{nil, {}} {
		_, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{l}})
		require.ErrorContains(t, err, "it comes from live.New")
	}
}
