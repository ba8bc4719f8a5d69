package openwop

import (
	"errors"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/internal/readback"
)

// The losses are exact too of events that were read from lines of any profile and then changed:
// a field is emptied or has another value.
func TestLossesOfChangedEvents(t *testing.T) {
	profiles := []Profile{RFC0002, SchemaV1, SchemaV2}
	for _, from := range profiles {
		for line := range strings.Lines(golden[from]) {
			for what, ev := range changes(t, from, line) {
				for _, to := range profiles {
					ev := ev
					ev.ID = NormalizeID(to, EventID, ev.ID) // an event is found again by its id
					trip := tripOf(t, to, ev)
					fail := func(problem string) {
						t.Errorf("%s to %s, %s: %s\n%s%s", from, to, what, problem, line, trip.Text)
					}
					for _, err := range trip.Compare() {
						fail(err.Error())
					}
					trip.Unlisted(func(_ int, what string) { fail(what) })
					trip.Unreal(fail)
				}
			}
		}
	}
}

// tripOf writes an event under a profile and reads the line back.
func tripOf(t *testing.T, p Profile, ev agentevents.Event) *readback.Trip {
	enc, dec := NewEncoder(EncoderOptions{Profile: p}), NewDecoder(Options{Profile: p})
	text, err := enc.Append(nil, ev)
	var rule *agentevents.RuleError
	if err != nil && !errors.Is(err, dialect.ErrNoCounterpart) && !errors.As(err, &rule) {
		t.Fatalf("an error without a rule: %v", err)
	}
	trip := &readback.Trip{Losses: enc.Losses()}
	trip.Wrote(ev, text, err)
	for _, err := range trip.Read(agentevents.ReaderOptions{Decoder: dec}) {
		t.Errorf("the written lines cannot be read: %v\n%s", err, text)
	}
	for _, l := range dec.Losses() {
		trip.Derived = append(trip.Derived, l.Pointer)
	}
	return trip
}

// changes yields the event of a line, and copies of it with one change each.
func changes(t *testing.T, p Profile, line string) iter.Seq2[string, agentevents.Event] {
	var events []agentevents.Event
	for ev, err := range agentevents.NewReader(strings.NewReader(line), agentevents.ReaderOptions{Decoder: NewDecoder(Options{Profile: p}), Verbatim: true}).All() {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, ev)
	}
	was := events[0]
	full := dialecttest.Filled(was.Kind())
	if u, ok := was.Payload.(*agentevents.Unknown); ok {
		full.Payload = &agentevents.Unknown{Type: u.Type, Raw: `{"a":1}`}
	}
	names := []string{"ID", "Time", "WorkflowID", "NodeID", "NodeRunID", "AgentID", "CausationID"}
	for f := range reflect.TypeOf(was.Payload).Elem().Fields() {
		if f.IsExported() && f.Name != "OneEvent" {
			names = append(names, "Payload."+f.Name)
		}
	}
	return func(yield func(string, agentevents.Event) bool) {
		more := yield("as it is", was)
		for _, name := range names {
			for _, what := range []string{"without", "with another"} {
				ev := was
				payload := reflect.New(reflect.TypeOf(ev.Payload).Elem())
				payload.Elem().Set(reflect.ValueOf(ev.Payload).Elem())
				ev.Payload = payload.Interface().(agentevents.Payload)
				now, other := reflect.ValueOf(&ev).Elem().FieldByName(name), reflect.ValueOf(&full).Elem().FieldByName(name)
				if of, ok := strings.CutPrefix(name, "Payload."); ok {
					now, other = payload.Elem().FieldByName(of), reflect.ValueOf(full.Payload).Elem().FieldByName(of)
				}
				if now.SetZero(); what == "with another" {
					now.Set(other)
				}
				more = more && yield(what+" "+name, ev)
			}
		}
	}
}
