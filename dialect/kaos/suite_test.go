package kaos

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

// Without an anchor the first event of a run says so.
func TestSuiteWithoutAnchor(t *testing.T) {
	d := dialecttest.Dialect{
		Name:    Name,
		Decoder: func() agentevents.Decoder { return NewDecoder(Options{}) },
		Encoder: func() dialect.Encoder { return NewEncoder(EncoderOptions{}) },
		Ignore:  []string{"/kaos/sequence", "/kaos/~1timestamp"},
	}
	for _, g := range goldens {
		d.Golden = append(d.Golden, dialecttest.Golden{Name: g.name, Lines: g.line})
	}
	dialecttest.Run(t, d)
}

// Frames say what lines say.
func TestSuiteOfFrames(t *testing.T) {
	d := dialecttest.Dialect{
		Name:    Name,
		Decoder: func() agentevents.Decoder { return NewDecoder(testOptions) },
		Encoder: func() dialect.Encoder {
			o := encoderOptions
			o.SSE = true
			return NewEncoder(o)
		},
		Ignore: []string{"/kaos/sequence"},
	}
	for _, g := range goldens {
		d.Golden = append(d.Golden, dialecttest.Golden{Name: g.name, Lines: g.line, Written: strings.TrimSuffix(sse(g.line), "\n")})
	}
	dialecttest.Run(t, d)
}
