package kahn

import (
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
)

func TestSuite(t *testing.T) {
	d := dialecttest.Dialect{
		Name:    Name,
		Decoder: func() agentevents.Decoder { return NewDecoder(Options{}) },
		Encoder: func() dialect.Encoder { return NewEncoder() },
	}
	for line := range strings.Lines(example + full) {
		_, name, _ := strings.Cut(line, `"event":"`)
		name, _, _ = strings.Cut(name, `"`)
		d.Golden = append(d.Golden, dialecttest.Golden{Name: name, Lines: strings.TrimSuffix(line, "\n")})
	}
	dialecttest.Run(t, d)
}
