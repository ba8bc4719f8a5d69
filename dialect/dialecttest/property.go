package dialecttest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/readback"
)

// CheckLog checks the properties of a dialect on any text, such as the input of a fuzz test. It
// needs no golden lines:
//
//   - nothing panics, and each event has a native line that is read as the same event;
//   - a line that is written as it was, read with Verbatim, has no losses;
//   - all lines that are written can be read, and are written again as the same bytes, also when
//     the events went through the native format in between;
//   - a difference between the events and those that come back is a listed loss, and each listed
//     loss is a difference;
//   - a strict decoder accepts the lines that are written of lines that it accepts, and finds no fault in
//     another line that the line before did not have;
//   - a log that is cut gives the events before the cut.
func CheckLog(t testing.TB, d Dialect, log string) {
	t.Helper()
	testCase{"", func(r *report) { d.checkLog(r, log) }}.tell(t)
}

// propertyCases are the golden lines, alone and together, and lines with odd values.
func propertyCases(d *Dialect) []testCase {
	var cases []testCase
	var all []string
	for i, g := range d.Golden {
		all = append(all, g.Lines)
		cases = append(cases, testCase{g.name(i), func(r *report) {
			d.checkLog(r, g.Lines)
			d.eachLine(g, func(line string, replace func(string) string) {
				odd, _ := edit(line, respell)
				d.checkLog(r, replace(odd))
				n := i
				d.eachWrong(line, func(input, line string) {
					if n++; n%4 == 0 { // all places, and all values, but not all pairs
						r.guard(input, func() { d.checkLog(r, replace(line)) })
					}
				})
			})
		}})
	}
	if len(all) == 0 {
		return nil
	}
	return append(cases, testCase{"all lines", func(r *report) {
		log := strings.Join(all, "\n")
		d.checkLog(r, log)
		d.checkLog(r, log+"\n"+log)
		for n := range d.places(log) {
			d.checkCut(r, log, n)
		}
	}})
}

func (d *Dialect) checkLog(r *report, log string) {
	events, err := d.decode(log, false)
	if d.checkNative(r, events) {
		d.checkWritten(r, log, events, err == nil)
	}
	d.checkVerbatim(r, log)
}

// checkNative checks that events survive the native format. One without an id or a run has no line there.
func (d *Dialect) checkNative(r *report, events []agentevents.Event) bool {
	events = slices.DeleteFunc(slices.Clone(events),
		func(ev agentevents.Event) bool { return ev.ID == "" || ev.RunID == "" })
	back, err := throughNative(events)
	if err != nil || len(back) != len(events) {
		r.errorf("%d events through the native format are %d, %v", len(events), len(back), err)
		return false
	}
	for i := range events {
		diffs, err := readback.Diff(events[i], back[i])
		if err != nil || len(diffs) > 0 {
			r.errorf("through the native format: %v %v", diffs, err)
			return false
		}
	}
	return true
}

// checkWritten checks the lines that are written of the events of a log.
func (d *Dialect) checkWritten(r *report, log string, events []agentevents.Event, whole bool) {
	t := d.trip(r, slices.Clone(events))
	if !t.sound {
		return
	}
	reader := d.Decoder()
	_, _ = read(strings.NewReader(t.text), agentevents.ReaderOptions{Decoder: reader})
	t.Derived = append(slices.Clone(t.Derived), "/"+string(d.Name), "/schemaVersion") // readers keep these of every line
	if reader, ok := reader.(dialect.Decoder); ok {
		for _, l := range reader.Losses() {
			t.Derived = append(t.Derived, l.Pointer)
		}
	}
	t.verify(r)
	r.detail = log
	defer func() { r.detail = "" }()
	lacks := func(ev agentevents.Event) bool { return ev.ID == "" || ev.RunID == "" } // and has no native line
	gone := func(l dialect.Loss) bool { return l.Pointer == "" && l.What == dialect.Dropped }
	if whole && !slices.ContainsFunc(events, lacks) && !slices.ContainsFunc(t.Losses, gone) &&
		!slices.ContainsFunc(t.Refused, func(err error) bool { return err != nil }) {
		again, _ := d.encode(t.Back)
		r.checkText("what was written and read", again, t.text)
		native, _ := throughNative(events)
		again, _ = d.encode(native)
		r.checkText("what went through the native format", again, t.text)
	}
	d.checkStrict(r, log, t.text)
}

// checkStrict compares the faults that a strict decoder finds in lines and in the lines written for them.
func (d *Dialect) checkStrict(r *report, log, written string) {
	if d.Strict == nil {
		return
	}
	if strings.Count(written, "\n") == 1 && !strings.Contains(log, "\n") { // its fault has a place
		_, was := d.Strict().Decode(nil, []byte(log))
		_, is := d.Strict().Decode(nil, []byte(strings.TrimSuffix(written, "\n")))
		if is != nil && (was == nil || !readback.OwnFault(log, written, is)) {
			r.errorf("a strict decoder finds a fault in a written line, which the line before did not have: %v", is)
		}
		return
	}
	strict := func(text string) error {
		_, err := read(strings.NewReader(text), agentevents.ReaderOptions{Decoder: d.Strict()})
		return err
	}
	if err := strict(written); err != nil && strict(log) == nil {
		r.errorf("a strict decoder finds a fault in a written line, which the lines before did not have: %v", err)
	}
}

// checkCut checks that a log that is cut gives the events that it has before the cut.
func (d *Dialect) checkCut(r *report, log string, n int) {
	r.guard(fmt.Sprintf("the first %d bytes", n), func() {
		whole, _ := d.decode(log[:strings.LastIndexByte(log[:n], '\n')+1], false)
		cut, _ := d.decode(log[:n], false)
		if len(cut) < len(whole) {
			r.errorf("%d events, and %d without the torn line", len(cut), len(whole))
			return
		}
		for i := range whole {
			diffs, err := readback.Diff(whole[i], cut[i])
			diffs = slices.DeleteFunc(diffs, derived) // a torn line is a line
			if err != nil || len(diffs) > 0 {
				r.errorf("event %d differs: %v %v", i, diffs, err)
			}
		}
	})
}
