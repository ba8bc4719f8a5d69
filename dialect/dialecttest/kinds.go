package dialecttest

import (
	"errors"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/readback"
)

// kindCases are the kinds of the catalog.
func kindCases(d *Dialect) []testCase {
	known := d.goldenKinds()
	var cases []testCase
	for info := range agentevents.Kinds() {
		kind := info.Kind
		cases = append(cases, testCase{string(kind), func(r *report) { d.checkKind(r, kind, known[kind]) }})
	}
	return append(cases, testCase{"unknown kind", d.checkForeignUnknown})
}

// goldenKinds returns the kinds of the golden lines.
func (d *Dialect) goldenKinds() map[agentevents.Kind]bool {
	kinds := map[agentevents.Kind]bool{}
	for _, g := range d.Golden {
		events, _ := d.safeDecode(g.Lines)
		for i := range events {
			kinds[events[i].Kind()] = true
		}
	}
	return kinds
}

// safeDecode is decode, with a panic as an error.
func (d *Dialect) safeDecode(text string) (events []agentevents.Event, err error) {
	defer func() {
		if v := recover(); v != nil {
			events, err = nil, errors.New("panic")
		}
	}()
	return d.decode(text, false)
}

// checkKind sends events of one kind through the document. written is set if
// golden lines decode to the kind.
func (d *Dialect) checkKind(r *report, kind agentevents.Kind, written bool) {
	send := func(input string, events []agentevents.Event) {
		r.guard(input, func() {
			for i := range events {
				if d.Adapt != nil {
					d.Adapt(&events[i])
				}
			}
			t := d.trip(r, events)
			for i, err := range t.Refused {
				if errors.Is(err, dialect.ErrNoCounterpart) && !strings.Contains(err.Error(), string(events[i].Kind())) {
					r.errorf("the error of %s does not name it: %v", events[i].Kind(), err)
				}
				// Only an event that lacks members may break a rule of the document.
				if err != nil && events[i].Kind() == kind && input == "filled" {
					if !errors.Is(err, dialect.ErrNoCounterpart) {
						r.errorf("the document has the kind, but refuses the event (see Dialect.Adapt): %v", err)
					} else if written {
						r.errorf("lines of the document are decoded to the kind, but it is refused: %v", err)
					}
				}
			}
			t.verify(r)
		})
	}
	for _, v := range few(d, variants(kind), 2) {
		filled := v.name != "minimal" && v.name != "with an agent"
		switch p := v.ev.Payload.(type) {
		case *agentevents.ToolReturned:
			alone := v.ev
			one := *p
			one.OneEvent = true
			alone.Payload = &one
			send(v.name+", one event", inContext(alone, filled))
			p.OneEvent = false
			settle(&v.ev)
		case *agentevents.ToolCalled:
			send(v.name+", never returned", inContext(v.ev, filled)[:1])
		}
		send(v.name, inContext(v.ev, filled))
	}
	ev := Filled(kind)
	if err := ev.SetExtra("x-suite", `{"a":1.50}`); err != nil {
		r.errorf("SetExtra: %v", err)
	}
	send("with an extra member", inContext(ev, true))
	ev = Filled(kind)
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok {
		p.OneEvent = false
		settle(&ev)
	}
	if ev, err := withPayloadMember(ev); err != nil {
		r.errorf("an extra member in the payload: %v", err)
	} else {
		send("with an extra member in the payload", inContext(ev, true))
	}
}

// withPayloadMember returns the event with an extra member in its payload, as a
// line of a newer version has.
func withPayloadMember(ev agentevents.Event) (agentevents.Event, error) {
	line, err := ev.AppendJSON(nil)
	if err != nil {
		return ev, err
	}
	v, err := readback.Parse(string(line))
	if err != nil {
		return ev, err
	}
	p := v.Member("payload")
	text := string(line[:p.Start]) + withMember(string(line[p.Start:p.End]), `"x-suite":[1.50]`) + string(line[p.End:])
	err = ev.UnmarshalJSON([]byte(text))
	return ev, err
}

// checkForeignUnknown sends an event of an unknown kind.
func (d *Dialect) checkForeignUnknown(r *report) {
	ev := Filled("x-vendor.new-thing")
	ev.Payload = &agentevents.Unknown{Type: "x-vendor.new-thing", Raw: `{"a":1.50,"b":{"c":null}}`}
	t := d.trip(r, []agentevents.Event{ev})
	t.verify(r)
}
