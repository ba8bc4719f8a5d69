package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// A wire is a format of logs, as the command line names it.
type wire struct {
	name    string // of the dialect, with a profile after a colon
	about   string
	decoder func(strict bool) agentevents.Decoder
	encoder func() dialect.Encoder
}

// wires returns the table of formats.
func wires() []wire {
	return []wire{
		{"native", "this library's own",
			func(bool) agentevents.Decoder { return agentevents.NewDecoder() },
			func() dialect.Encoder { return dialect.NativeEncoder{} }},
		{"kahn", "agent transition events of KAHN",
			func(strict bool) agentevents.Decoder { return kahn.NewDecoder(kahn.Options{Strict: strict}) },
			func() dialect.Encoder { return kahn.NewEncoder() }},
		{"multiagent", "the AgentEvent envelope of the Multi-Agent Wiki",
			func(strict bool) agentevents.Decoder {
				return multiagent.NewDecoder(multiagent.Options{Strict: strict})
			},
			func() dialect.Encoder { return multiagent.NewEncoder() }},
		{"kaos", "events and spans of KAOS, one per line",
			func(strict bool) agentevents.Decoder { return kaos.NewDecoder(kaos.Options{Strict: strict}) },
			func() dialect.Encoder { return kaos.NewEncoder(kaos.EncoderOptions{}) }},
		{"kaos:sse", "the same as Server-Sent Events",
			func(strict bool) agentevents.Decoder { return kaos.NewDecoder(kaos.Options{Strict: strict}) },
			func() dialect.Encoder { return kaos.NewEncoder(kaos.EncoderOptions{SSE: true}) }},
		{"openharness", "the Agent Observability & Resume Specification",
			func(strict bool) agentevents.Decoder {
				return openharness.NewDecoder(openharness.Options{Strict: strict})
			},
			func() dialect.Encoder { return openharness.NewEncoder() }},
		{"openwop", "OpenWOP RFC 0002, in the names of its text",
			openwopDecoder(openwop.RFC0002), openwopEncoder(openwop.RFC0002)},
		{"openwop:rfc0002", "another name for openwop", openwopDecoder(openwop.RFC0002), openwopEncoder(openwop.RFC0002)},
		{"openwop:v1", "its published schema, version 1", openwopDecoder(openwop.SchemaV1), openwopEncoder(openwop.SchemaV1)},
		{"openwop:v2", "its published schema, version 2", openwopDecoder(openwop.SchemaV2), openwopEncoder(openwop.SchemaV2)},
		{"agui", "events of AG-UI 1.0, the Agent-User Interaction protocol",
			func(strict bool) agentevents.Decoder { return agui.NewDecoder(agui.Options{Strict: strict}) },
			func() dialect.Encoder { return agui.NewEncoder(agui.EncoderOptions{}) }},
		{"agui:sse", "the same as Server-Sent Events",
			func(strict bool) agentevents.Decoder { return agui.NewDecoder(agui.Options{Strict: strict}) },
			func() dialect.Encoder { return agui.NewEncoder(agui.EncoderOptions{SSE: true}) }},
	}
}

func openwopDecoder(p openwop.Profile) func(bool) agentevents.Decoder {
	return func(strict bool) agentevents.Decoder {
		return openwop.NewDecoder(openwop.Options{Strict: strict, Profile: p})
	}
}

func openwopEncoder(p openwop.Profile) func() dialect.Encoder {
	return func() dialect.Encoder { return openwop.NewEncoder(openwop.EncoderOptions{Profile: p}) }
}

func wireNames() []string {
	var names []string
	for _, w := range wires() {
		names = append(names, w.name)
	}
	return names
}

func findWire(name string) *wire {
	all := wires()
	i := slices.IndexFunc(all, func(w wire) bool { return w.name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// A wireFlag is a flag that names a format.
type wireFlag struct{ *wire }

func (f *wireFlag) String() string {
	if f.wire == nil {
		return ""
	}
	return f.name
}

func (f *wireFlag) Set(s string) error {
	if f.wire = findWire(s); f.wire == nil {
		return fmt.Errorf("want %s", strings.Join(wireNames(), ", "))
	}
	return nil
}

// dialect returns the dialect of the format: its name without a profile.
func (w *wire) dialect() dialect.Name {
	name, _, _ := strings.Cut(w.name, ":")
	return dialect.Name(name)
}

// madeUp returns what a decoder that newDecoder returned made up, and the format does
// not leave out again.
func (w *wire) madeUp(d agentevents.Decoder, from *wireFlag) []dialect.Loss {
	switch d := d.(type) {
	case *dialect.Auto:
		return d.Losses(w.dialect())
	case dialect.Decoder:
		if from.dialect() != w.dialect() {
			return d.Losses()
		}
	}
	return nil
}

// newDecoder returns a decoder of the format, or of any format when f is not
// given. A strict decoder enforces the rules of the document.
func (f *wireFlag) newDecoder(strict bool) agentevents.Decoder {
	if f.wire != nil {
		return f.decoder(strict)
	}
	return anyDecoder()
}

// anyDecoder returns a decoder that detects the format of every line.
func anyDecoder() *dialect.Auto {
	auto := &dialect.Auto{Decoders: map[dialect.Name]agentevents.Decoder{}}
	for _, w := range wires() {
		// The decoder of openwop reads the lines of all profiles. What a profile
		// implies only the decoder of that profile knows.
		if !strings.Contains(w.name, ":") {
			auto.Decoders[dialect.Name(w.name)] = w.decoder(false)
		}
	}
	return auto
}
