package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/kahn"
)

// A wire is a format of logs, as the command line names it.
type wire struct {
	name    string // of the dialect, with a profile after a colon
	about   string
	decoder func(strict bool) agentevents.Decoder // nil: a profile, which reads like the others of its dialect
	encoder func() dialect.Encoder
}

// wires returns the table of formats.
func wires() []wire {
	return []wire{
		{"native", "this library's own",
			func(bool) agentevents.Decoder { return agentevents.NewDecoder() },
			func() dialect.Encoder { return &nativeEncoder{} }},
		{"kahn", "agent transition events of KAHN (seed 000)",
			func(strict bool) agentevents.Decoder { return kahn.NewDecoder(kahn.Options{Strict: strict}) },
			func() dialect.Encoder { return kahn.NewEncoder() }},
	}
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

// newDecoder returns a decoder of the format, or of any format when f is not
// given. With strict the rules of a document bind.
func (f *wireFlag) newDecoder(strict bool) agentevents.Decoder {
	if f.wire != nil {
		w := f.wire
		if w.decoder == nil { // a profile
			name, _, _ := strings.Cut(w.name, ":")
			w = findWire(name)
		}
		return w.decoder(strict)
	}
	return anyDecoder()
}

// anyDecoder returns a decoder that finds out the format of every line.
func anyDecoder() agentevents.Decoder {
	auto := &dialect.Auto{Decoders: map[dialect.Name]agentevents.Decoder{}}
	for _, w := range wires() {
		if w.decoder != nil {
			auto.Decoders[dialect.Name(w.name)] = w.decoder(false)
		}
	}
	return auto
}

// A nativeEncoder writes native lines. It loses nothing.
type nativeEncoder struct{}

func (*nativeEncoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	mark := len(dst)
	dst, err := ev.AppendJSON(dst)
	if err != nil {
		return dst[:mark], err
	}
	return append(dst, '\n'), nil
}

func (*nativeEncoder) End(dst []byte) ([]byte, error) { return dst, nil }

func (*nativeEncoder) Losses() []dialect.Loss { return nil }
