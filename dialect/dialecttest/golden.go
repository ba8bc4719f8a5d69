package dialecttest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/readback"
)

// goldenCases are the golden lines.
func goldenCases(d *Dialect) []testCase {
	var cases []testCase
	for i, g := range d.Golden {
		cases = append(cases, testCase{g.name(i), func(r *report) { d.checkGolden(r, g) }})
	}
	return cases
}

// name returns the name of golden line i.
func (g *Golden) name(i int) string {
	if g.Name != "" {
		return g.Name
	}
	return fmt.Sprint(i)
}

func (d *Dialect) checkGolden(r *report, g Golden) {
	events, err := d.decode(g.Lines, false)
	if err != nil {
		r.errorf("decoding: %v", err)
		return
	}
	if len(g.Events) > 0 && len(events) != len(g.Events) {
		r.errorf("%d events were decoded, %d were expected: %s", len(events), len(g.Events), lines(events))
	} else {
		for i := range g.Events {
			d.checkExpected(r, g.Events[i], events[i])
		}
	}
	r.checkSound(events)
	again, err := d.decode(g.Lines, false)
	if err != nil {
		r.errorf("decoding again: %v", err)
	}
	if a, b := lines(events), lines(again); a != b {
		r.errorf("decoding twice gives different events:\n%s\n%s", a, b)
	}
	r.checkText("the decoded event", d.encodeText(r, events), g.written())
	if g.Build {
		r.checkText("the built event", d.encodeText(r, g.Events), g.written())
	}
	back, err := throughNative(events)
	if err != nil {
		r.errorf("through the native format: %v", err)
	}
	r.checkText("the event after the native format", d.encodeText(r, back), g.written())
	d.checkDetect(r, strings.SplitN(g.Lines, "\n", 2)[0])
}

// detected are the dialects that dialect.Detect recognises. Native is not among
// them: a suite uses that name for a dialect with any name.
var detected = []dialect.Name{dialect.KAHN, dialect.MultiAgent, dialect.KAOS, dialect.OpenHarness,
	dialect.OpenWOP, dialect.AGUI}

// checkDetect checks that a line is not taken for one of another dialect.
// dialect.Detect need not recognise a dialect of another module.
func (d *Dialect) checkDetect(r *report, line string) {
	switch name := dialect.Detect(line); {
	case d.Detect != nil:
		if name = d.Detect(line); name != d.Name {
			r.errorf("Detect returns %q", name)
		}
	case name == d.Name, d.Name == dialect.Native:
	case name != "", slices.Contains(detected, d.Name):
		r.errorf("dialect.Detect returns %q", name)
	}
}

// checkExpected compares a decoded event with an expected one.
func (d *Dialect) checkExpected(r *report, want, got agentevents.Event) {
	if want.ID == "" {
		want.ID = got.ID
	}
	if want.Sequence == 0 {
		want.Sequence = got.Sequence
	}
	if want.Time.IsZero() {
		want.Time = got.Time
	}
	if want.SchemaVersion == "" {
		want.SchemaVersion = got.SchemaVersion
	}
	diffs, err := readback.Diff(want, got)
	if err != nil {
		r.errorf("comparing: %v", err)
	}
	for _, diff := range diffs {
		r.errorf("%s, decoded: %s", want.Kind(), diff)
	}
}

// checkSound checks the properties of every decoded event.
func (r *report) checkSound(events []agentevents.Event) {
	for i := range events {
		ev := &events[i]
		if ev.Payload == nil || reflect.ValueOf(ev.Payload).IsNil() || ev.Kind() == "" {
			r.errorf("an event without a payload")
			continue
		}
		if ev.ID == "" {
			r.errorf("%s: an event without an id", ev.Kind())
		}
		if ev.SchemaVersion != agentevents.SchemaVersion {
			r.errorf("%s: schemaVersion is %q", ev.Kind(), ev.SchemaVersion)
		}
		if _, offset := ev.Time.Zone(); offset != 0 {
			r.errorf("%s: the time is not in UTC", ev.Kind())
		}
		if u, ok := ev.Payload.(*agentevents.Unknown); ok {
			if _, known := u.Type.Info(); known {
				r.errorf("an Unknown of the known kind %q", u.Type)
			}
		}
		if _, err := ev.AppendJSON(nil); err != nil {
			r.errorf("%s: the event cannot be written: %v", ev.Kind(), err)
		}
	}
}

// encodeText encodes events that must not be refused.
func (d *Dialect) encodeText(r *report, events []agentevents.Event) string {
	text, err := d.encode(events)
	if err != nil {
		r.errorf("encoding: %v", err)
	}
	return text
}

// checkText compares lines.
func (r *report) checkText(of, got, want string) {
	if got != want {
		r.errorf("%s is written differently:\n\tgot  %s\n\twant %s", of, strings.TrimSuffix(got, "\n"),
			strings.TrimSuffix(want, "\n"))
	}
}

// lines returns events as native lines.
func lines(events []agentevents.Event) string {
	var b strings.Builder
	for i := range events {
		if i > 0 {
			b.WriteByte('\n')
		}
		line, err := events[i].AppendJSON(nil)
		if err != nil {
			line = fmt.Appendf(nil, "%T: %v", events[i].Payload, err)
		}
		b.Write(line)
	}
	return b.String()
}
