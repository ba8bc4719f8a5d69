package multiagent

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
)

func TestSuite(t *testing.T) {
	d := dialecttest.Dialect{
		Name:    Name,
		Decoder: func() agentevents.Decoder { return NewDecoder(Options{}) },
		Encoder: func() dialect.Encoder { return NewEncoder() },
		Ignore:  []string{"/multiagent/schemaVersion"},
		Maps:    []string{"/payload/modelUsage"},
	}
	for _, g := range goldens() {
		ev := g.event
		require.NoError(t, ev.SetExtra(string(Name), `{"schemaVersion":"1.0"}`))
		d.Golden = append(d.Golden, dialecttest.Golden{Name: g.name, Lines: g.line, Events: []agentevents.Event{ev}, Build: true})
	}
	dialecttest.Run(t, d)
}
