package main

import (
	"cmp"
	"errors"
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
	"github.com/agentevents/agentevents/internal/foreign"
)

// A wire is a format of logs, as the command line names it.
type wire struct {
	name    string // of the dialect, with a profile after a colon
	about   string
	decoder func(reading) agentevents.Decoder
	encoder func(writing) dialect.Encoder
}

// A reading is how lines are read.
type reading struct {
	strict    bool    // the rules of the document are enforced
	letter    bool    // so are the rules that its text has and its schemas lack
	run       string  // the run of lines that name none; may be empty
	threshold float64 // below which decisions are escalated, unless their run states another one
}

// A writing is how lines are written.
type writing struct {
	fast bool // losses that the encoder has to measure are not asked for
}

// wires returns the table of formats.
func wires() []wire {
	return []wire{
		{"native", "this library's own",
			func(reading) agentevents.Decoder { return agentevents.NewDecoder() },
			func(writing) dialect.Encoder { return dialect.NativeEncoder{} }},
		{"kahn", "agent transition events of KAHN",
			func(o reading) agentevents.Decoder { return kahn.NewDecoder(kahn.Options{Strict: o.strict}) },
			func(o writing) dialect.Encoder { return kahn.NewEncoder(kahn.EncoderOptions{Fast: o.fast}) }},
		{"multiagent", "the AgentEvent envelope of the Multi-Agent Wiki",
			func(o reading) agentevents.Decoder {
				return multiagent.NewDecoder(multiagent.Options{Strict: o.strict})
			},
			func(o writing) dialect.Encoder { return multiagent.NewEncoder(multiagent.EncoderOptions{Fast: o.fast}) }},
		{"kaos", "events and spans of KAOS, one per line",
			func(o reading) agentevents.Decoder { return kaos.NewDecoder(kaos.Options{Strict: o.strict}) },
			func(o writing) dialect.Encoder { return kaos.NewEncoder(kaos.EncoderOptions{Fast: o.fast}) }},
		{"kaos:sse", "the same as Server-Sent Events",
			func(o reading) agentevents.Decoder { return kaos.NewDecoder(kaos.Options{Strict: o.strict}) },
			func(o writing) dialect.Encoder {
				return kaos.NewEncoder(kaos.EncoderOptions{SSE: true, Fast: o.fast})
			}},
		{"openharness", "the Agent Observability & Resume Specification",
			func(o reading) agentevents.Decoder {
				return openharness.NewDecoder(openharness.Options{Strict: o.strict, RunID: o.run})
			},
			func(o writing) dialect.Encoder {
				return openharness.NewEncoder(openharness.EncoderOptions{Fast: o.fast})
			}},
		{"openwop", "OpenWOP RFC 0002, in the names of its text",
			openwopDecoder(openwop.RFC0002), openwopEncoder(openwop.RFC0002)},
		{"openwop:rfc0002", "another name for openwop", openwopDecoder(openwop.RFC0002), openwopEncoder(openwop.RFC0002)},
		{"openwop:v1", "its published schema, version 1", openwopDecoder(openwop.SchemaV1), openwopEncoder(openwop.SchemaV1)},
		{"openwop:v2", "its published schema, version 2", openwopDecoder(openwop.SchemaV2), openwopEncoder(openwop.SchemaV2)},
		{"agui", "events of AG-UI 1.0, the Agent-User Interaction protocol",
			func(o reading) agentevents.Decoder { return agui.NewDecoder(agui.Options{Strict: o.strict}) },
			func(o writing) dialect.Encoder { return agui.NewEncoder(agui.EncoderOptions{Fast: o.fast}) }},
		{"agui:sse", "the same as Server-Sent Events",
			func(o reading) agentevents.Decoder { return agui.NewDecoder(agui.Options{Strict: o.strict}) },
			func(o writing) dialect.Encoder { return agui.NewEncoder(agui.EncoderOptions{SSE: true, Fast: o.fast}) }},
	}
}

func openwopDecoder(p openwop.Profile) func(reading) agentevents.Decoder {
	return func(o reading) agentevents.Decoder {
		return openwop.NewDecoder(openwop.Options{Strict: o.strict, Letter: o.letter, Profile: p, Folded: true,
			ThresholdOf: func(string, string) float64 { return o.threshold }})
	}
}

func openwopEncoder(p openwop.Profile) func(writing) dialect.Encoder {
	return func(o writing) dialect.Encoder {
		return openwop.NewEncoder(openwop.EncoderOptions{Profile: p, Fast: o.fast})
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

// dialect returns the dialect of the format: its name without a profile.
func (w *wire) dialect() dialect.Name {
	name, _, _ := strings.Cut(w.name, ":")
	return dialect.Name(name)
}

// madeUp returns the members that a decoder of newDecoder made up, without those that the format
// leaves out again.
func (w *wire) madeUp(d agentevents.Decoder, from *wireFlag) []dialect.Loss {
	switch d := d.(type) {
	case *dialect.Auto:
		return d.Losses(w.dialect())
	case dialect.Decoder:
		if from.dialect() != w.dialect() {
			return d.Losses()
		}
	case *named:
		return w.madeUp(d.Decoder, from)
	}
	return nil
}

// newDecoder returns a decoder of the format, or of any format when f is not given.
func (f *wireFlag) newDecoder(o reading) agentevents.Decoder {
	if f.wire != nil {
		return &named{Decoder: f.decoder(o), wire: f.wire}
	}
	return anyDecoder(o.run)
}

// named is the decoder of a format that the command line names. Lines of other formats are errors:
// read as this one they would be empty events. After a line that has the format without doubt, they
// are lines of types that it does not know.
type named struct {
	agentevents.Decoder
	wire    *wire
	known   bool // such a line has come
	foreign bool // a line of another program came, and no event after it
}

func (d *named) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	text, name := string(line), d.wire.dialect()
	if name == dialect.AGUI || name == dialect.KAOS { // their decoders read Server-Sent Events
		text = strings.TrimSpace(strings.TrimPrefix(text, "data:"))
	}
	other, ok := dialect.Fits(text, name)
	if file, strange := d.strange(text, other); strange {
		d.foreign = true
		err := agentevents.ForeignError(file)
		return dst, &agentevents.LineError{Err: &err}
	}
	d.foreign = false
	d.known = d.known || ok && other == d.wire.dialect()
	if !ok && !d.known {
		what := "like none of the known formats"
		if other != "" {
			what = "like one of " + string(other)
		}
		return dst, &agentevents.LineError{Err: fmt.Errorf("this is not a line of %s; it looks %s", d.wire.name, what)}
	}
	return d.Decoder.Decode(dst, line)
}

// strange reports whether a line is one of another program, and of which. looks is the dialect that
// it looks like.
func (d *named) strange(line string, looks dialect.Name) (f foreign.File, ok bool) {
	if looks == "" {
		f, ok = foreign.Line(line)
	}
	if !ok && d.foreign && foreign.Doubtful(line) {
		return foreign.Unknown, true
	}
	return f, ok
}

// A judge is a decoder that reads every line by the rules of its document, and again as far
// as it can: a line that breaks a rule is reported, and its events count all the same. So
// the events that follow from it are not reported too.
type judge struct {
	strict, lenient agentevents.Decoder
	refused         bool // the current line is
}

func (d *judge) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	_, broken := d.strict.Decode(nil, line)
	dst, err := d.lenient.Decode(dst, line)
	var rule *agentevents.RuleError
	if d.refused = broken != nil; d.refused && (err == nil || errors.As(broken, &rule)) {
		return dst, broken
	}
	return dst, err
}

func (d *judge) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	_, broken := d.strict.End(nil)
	d.refused = broken != nil
	dst, err := d.lenient.End(dst)
	return dst, cmp.Or(broken, err)
}

// anyDecoder returns a decoder that detects the format of every line. run is the run of
// lines that name none.
func anyDecoder(run string) *dialect.Auto {
	auto := &dialect.Auto{Decoders: map[dialect.Name]agentevents.Decoder{}}
	for _, w := range wires() {
		// The decoder of openwop reads the lines of all profiles. Only the decoder of a profile
		// knows its implications.
		if !strings.Contains(w.name, ":") {
			auto.Decoders[dialect.Name(w.name)] = w.decoder(reading{run: run})
		}
	}
	return auto
}
