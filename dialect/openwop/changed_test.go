package openwop

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/internal/readback"
)

// The losses are exact too of events that were read from lines of any profile and then changed:
// a field is emptied or has another value. Members of a line have another place, or none, under
// another profile: that is tested elsewhere.
func TestLossesOfChangedEvents(t *testing.T) {
	profiles := []Profile{RFC0002, SchemaV1, SchemaV2}
	for _, from := range profiles {
		for line := range strings.Lines(golden[from]) {
			for _, verbatim := range []bool{false, true} {
				if verbatim && testing.Short() {
					break
				}
				for n, more := 0, true; more; n++ {
					for _, to := range profiles {
						var ev agentevents.Event
						var what string
						if ev, what, more = changed(t, from, line, verbatim, n); !more {
							break
						}
						ev.ID = NormalizeID(to, EventID, ev.ID) // an event is found again by its id
						trip := tripOf(t, to, ev)
						fail := func(problem string) {
							derived := strings.Contains(problem, "difference /payload/interruptId") && !strings.Contains(line, "nterruptId") // from the whole line
							if !derived && (from == to || !strings.Contains(problem, "difference /openwop/")) {
								t.Errorf("%s to %s, %s: %s\n%s%s", from, to, what, problem, line, trip.Text)
							}
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
}

// tripOf writes an event under a profile and reads the line back.
func tripOf(t *testing.T, p Profile, ev agentevents.Event) *readback.Trip {
	enc, dec := NewEncoder(EncoderOptions{Profile: p}), NewDecoder(Options{Profile: p})
	text, err := enc.Append(nil, ev)
	var rule *agentevents.RuleError
	if err != nil && !errors.Is(err, dialect.ErrNoCounterpart) && !errors.As(err, &rule) {
		t.Fatalf("an error without a rule: %v", err)
	}
	trip := &readback.Trip{Losses: enc.Losses(), Ignore: []string{"/openwop/schemaVersion", "/openwop/~0spelled", "/openwop/~0absent", "/openwop/~0profile"}}
	trip.Wrote(ev, text, err)
	for _, err := range trip.Read(agentevents.ReaderOptions{Decoder: dec}) {
		t.Errorf("what was written cannot be read: %v\n%s", err, text)
	}
	for _, l := range dec.Losses() {
		trip.Derived = append(trip.Derived, l.Pointer)
	}
	return trip
}

// changed returns the event of a line with the n-th change, and what that is. It reports false
// if there are not as many.
func changed(t *testing.T, p Profile, line string, verbatim bool, n int) (ev agentevents.Event, what string, ok bool) {
	for read, err := range agentevents.NewReader(strings.NewReader(line), agentevents.ReaderOptions{Decoder: NewDecoder(Options{Profile: p}), Verbatim: verbatim}).All() {
		if err != nil {
			t.Fatal(err)
		}
		ev = read
	}
	if n == 0 {
		return ev, "as it is", true
	}
	full := dialecttest.Filled(ev.Kind())
	if u, ok := ev.Payload.(*agentevents.Unknown); ok {
		full.Payload = &agentevents.Unknown{Type: u.Type, Raw: `{"a":1}`}
	}
	var now, other []reflect.Value
	for f, v := range reflect.ValueOf(ev.Payload).Elem().Fields() {
		if f.IsExported() && f.Name != "OneEvent" {
			now, other = append(now, v), append(other, reflect.ValueOf(full.Payload).Elem().FieldByName(f.Name))
		}
	}
	for _, name := range []string{"ID", "Time", "RunID", "WorkflowID", "NodeID", "NodeRunID", "AgentID", "CausationID"} {
		now, other = append(now, reflect.ValueOf(&ev).Elem().FieldByName(name)), append(other, reflect.ValueOf(&full).Elem().FieldByName(name))
	}
	i := (n - 1) / 2
	if i == len(now) {
		return ev, "", false
	}
	now[i].SetZero()
	if n%2 == 0 {
		now[i].Set(other[i])
	}
	return ev, fmt.Sprintf("change %d", n), true
}
