package dialecttest

import (
	"slices"

	"github.com/agentevents/agentevents"
)

// verbatimCases are the golden lines, read with Verbatim. If all of them are
// written as they were, byte for byte, there must be no losses, whatever the
// document has no member for.
func verbatimCases(d *Dialect) []testCase {
	var cases []testCase
	for i, g := range d.Golden {
		cases = append(cases, testCase{g.name(i), func(r *report) {
			r.guard("as it is", func() { d.checkVerbatim(r, g.Lines) })
			d.eachLine(g, func(line string, replace func(string) string) {
				odd, _ := edit(line, respell)
				r.guard("respelled", func() { d.checkVerbatim(r, replace(odd)) })
			})
		}})
	}
	if line := d.unknownLine(); line != "" {
		cases = append(cases, testCase{"of an unknown type", func(r *report) { d.checkVerbatim(r, line) }})
	}
	return cases
}

// checkVerbatim checks the losses of lines that are written as they were. It
// skips lines that are several events or part of one: readers do not keep those.
func (d *Dialect) checkVerbatim(r *report, text string) {
	events, err := d.decode(text, true)
	if err != nil || slices.ContainsFunc(events, func(ev agentevents.Event) bool { return ev.Origin() == "" }) {
		return // other checks report errors
	}
	enc := d.Encoder()
	var out []byte
	for _, ev := range events {
		if out, err = enc.Append(out, ev); err != nil {
			return
		}
	}
	if out, err = enc.End(out); err != nil || string(out) != text+"\n" {
		return
	}
	for _, l := range enc.Losses() {
		kind := string(l.Kind)
		if kind == "" {
			kind = "every kind"
		}
		r.errorf("a loss of a line that is written as it was: %s: %s %s %s", kind, l.What, l.Pointer, l.Detail)
	}
}
