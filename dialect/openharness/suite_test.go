package openharness

import (
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
)

func suite(strict bool) dialecttest.Dialect {
	return dialecttest.Dialect{
		Name:    Name,
		Decoder: func() agentevents.Decoder { return NewDecoder(Options{RunID: run, Strict: strict}) },
		Encoder: func() dialect.Encoder { return NewEncoder(EncoderOptions{RunID: run}) },
		Strict:  func() agentevents.Decoder { return NewDecoder(Options{RunID: run, Strict: true}) },
		Maps:    []string{"/modelUsage"},
	}
}

// With a strict decoder the suite adds that the encoder's lines of every kind keep the
// document's rules.
func TestDialect(t *testing.T) {
	for _, strict := range []bool{false, true} {
		if strict && testing.Short() {
			continue
		}
		d := suite(strict)
		for _, g := range golden {
			d.Golden = append(d.Golden, dialecttest.Golden{Name: g.name, Lines: g.line, Events: []agentevents.Event{g.event(t)}, Build: true})
		}
		name := "lenient"
		if strict {
			name = "strict"
		}
		t.Run(name, func(t *testing.T) { dialecttest.Run(t, d) })
	}
}
