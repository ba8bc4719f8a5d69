package kaos

import (
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
)

func TestSuite(t *testing.T) {
	d := dialecttest.Dialect{
		Name:    Name,
		Decoder: func() agentevents.Decoder { return NewDecoder(testOptions) },
		Encoder: func() dialect.Encoder { return NewEncoder(encoderOptions) },
		// The number that a line had stays with its event.
		Ignore: []string{"/kaos/sequence"},
	}
	for _, g := range goldens {
		d.Golden = append(d.Golden, dialecttest.Golden{Name: g.name, Lines: g.line, Events: []agentevents.Event{g.event()}, Build: true})
	}
	dialecttest.Run(t, d)
}
