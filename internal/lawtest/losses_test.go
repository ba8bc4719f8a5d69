package lawtest

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/internal/readback"
)

// A format is a dialect to test. ignore are places that come back different and belong to the
// document, not to the event.
type format struct {
	name    dialect.Name
	decoder func(strict bool) agentevents.Decoder
	encoder func() dialect.Encoder
	ignore  []string
	adapt   func(ev *agentevents.Event) // nil: none
}

func formats() map[string]format {
	wop := func(p openwop.Profile) format {
		return format{
			dialect.OpenWOP, func(strict bool) agentevents.Decoder {
				return openwop.NewDecoder(openwop.Options{Profile: p, Strict: strict, Folded: strict})
			},
			func() dialect.Encoder { return openwop.NewEncoder(openwop.EncoderOptions{Profile: p}) }, []string{"/openwop/schemaVersion"},
			// An event is found again by its id.
			func(ev *agentevents.Event) { ev.ID = openwop.NormalizeID(p, openwop.EventID, ev.ID) },
		}
	}
	kaosAs := func(sse bool) format {
		return format{
			dialect.KAOS, func(strict bool) agentevents.Decoder { return kaos.NewDecoder(kaos.Options{Strict: strict}) },
			// The first event records that the clock is monotonic, and an event keeps the number of
			// its line.
			func() dialect.Encoder { return kaos.NewEncoder(kaos.EncoderOptions{SSE: sse}) }, []string{"/kaos/~1timestamp", "/kaos/sequence"}, nil,
		}
	}
	aguiAs := func(sse bool) format {
		return format{
			dialect.AGUI, func(strict bool) agentevents.Decoder { return agui.NewDecoder(agui.Options{Strict: strict}) },
			func() dialect.Encoder { return agui.NewEncoder(agui.EncoderOptions{SSE: sse}) }, nil, nil,
		}
	}
	return map[string]format{
		"agui": aguiAs(false), "agui:sse": aguiAs(true),
		"kaos": kaosAs(false), "kaos:sse": kaosAs(true),
		"kahn": {dialect.KAHN, func(strict bool) agentevents.Decoder { return kahn.NewDecoder(kahn.Options{Strict: strict}) }, func() dialect.Encoder { return kahn.NewEncoder(kahn.EncoderOptions{}) }, nil, nil},
		"multiagent": {
			dialect.MultiAgent, func(strict bool) agentevents.Decoder {
				return multiagent.NewDecoder(multiagent.Options{Strict: strict})
			},
			// Values that readers make up are listed. Their record of them is not.
			func() dialect.Encoder { return multiagent.NewEncoder(multiagent.EncoderOptions{}) }, []string{"/multiagent/schemaVersion", "/multiagent/~1made"}, nil,
		},
		"openharness": {
			dialect.OpenHarness, func(strict bool) agentevents.Decoder {
				return openharness.NewDecoder(openharness.Options{Strict: strict})
			},
			func() dialect.Encoder { return openharness.NewEncoder(openharness.EncoderOptions{}) }, nil, nil,
		},
		"openwop": wop(openwop.RFC0002), "openwop:v1": wop(openwop.SchemaV1), "openwop:v2": wop(openwop.SchemaV2),
	}
}

// Law: the losses that an encoder lists are exactly the differences between the events and the
// events that a reader of the lines gets.
func TestLossesAreTheDifferences(t *testing.T) {
	for name, f := range formats() {
		t.Run(name, func(t *testing.T) {
			events := 0
			rapid.Check(t, func(t *rapid.T) {
				run := show(t, Generate(t, anyConfig(t)))
				if rapid.Bool().Draw(t, "foreign") {
					run.Events = foreign(rapid.Uint64().Draw(t, "edits"), run.Events)
				}
				events += len(run.Events)
				trip := f.trip(t, run.Events)
				for _, err := range trip.Compare() {
					t.Errorf("%v", err)
				}
				trip.Unlisted(func(_ int, what string) { t.Errorf("%s", what) })
				trip.Unreal(func(what string) { t.Errorf("%s", what) })
			})
			t.Logf("%d events", events)
		})
	}
}

// foreign returns events as a log may have them that no emitter wrote: some are missing, times are
// finer than milliseconds, and the fields that an emitter fills in are absent.
func foreign(seed uint64, events []agentevents.Event) []agentevents.Event {
	r := rand.New(rand.NewPCG(seed, 1))
	rarely := func() bool { return r.IntN(12) == 0 }
	var out []agentevents.Event
	for _, ev := range events {
		if rarely() {
			continue
		}
		if rarely() {
			ev.Time = ev.Time.Add(time.Duration(r.IntN(2e6)))
		}
		if rarely() {
			ev.Step.OK, ev.Step.V = false, 0
		}
		if rarely() {
			ev.CausationID = ""
		}
		if rarely() {
			ev.AgentID = ""
		}
		if rarely() {
			ev.Marks ^= []agentevents.Marks{agentevents.MarkLate, agentevents.MarkReplayed, agentevents.MarkSynthetic}[r.IntN(3)]
		}
		if r.IntN(4) == 0 {
			ev.Payload = thinned(r, ev.Payload)
		}
		out = append(out, ev)
	}
	return out
}

// thinned returns a copy of a payload in which some fields are zero.
func thinned(r *rand.Rand, p agentevents.Payload) agentevents.Payload {
	out := reflect.New(reflect.TypeOf(p).Elem())
	out.Elem().Set(reflect.ValueOf(p).Elem())
	for i := range out.Elem().NumField() {
		if f := out.Elem().Field(i); f.CanSet() && r.IntN(3) == 0 {
			f.SetZero()
		}
	}
	return out.Interface().(agentevents.Payload)
}

// trip writes events and reads the lines back.
func (f *format) trip(t *rapid.T, events []agentevents.Event) *readback.Trip {
	if f.adapt != nil {
		events = slices.Clone(events)
		for i := range events {
			f.adapt(&events[i])
		}
	}
	trip := &readback.Trip{Ignore: f.ignore}
	enc := f.encoder()
	for _, ev := range events {
		line, err := enc.Append(nil, ev)
		var rule *agentevents.RuleError
		if err != nil && !errors.Is(err, dialect.ErrNoCounterpart) && !errors.As(err, &rule) {
			t.Fatalf("an error without a rule: %v", err)
		}
		trip.Wrote(ev, line, err)
	}
	text, err := enc.End(nil)
	if err != nil {
		t.Fatalf("End: %v", err)
	}
	trip.Wrote(agentevents.Event{}, text, nil)
	trip.Losses = enc.Losses()
	dec := f.decoder(false)
	for _, err := range trip.Read(agentevents.ReaderOptions{Decoder: dec}) {
		t.Errorf("the written lines cannot be read: %v\n%s", err, trip.Text)
	}
	if d, ok := dec.(dialect.Decoder); ok {
		for _, l := range d.Losses() {
			trip.Derived = append(trip.Derived, l.Pointer)
		}
	}
	return trip
}
