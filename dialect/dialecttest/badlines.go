package dialecttest

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/readback"
)

// badLineCases are the ways in which a line can be wrong.
func badLineCases(d *Dialect) []testCase {
	each := func(f func(r *report, line string)) func(r *report) {
		return func(r *report) {
			for _, g := range d.Golden {
				for line := range strings.SplitSeq(g.Lines, "\n") {
					f(r, line)
				}
			}
		}
	}
	if len(d.Golden) == 0 {
		return nil
	}
	return []testCase{
		{"torn", each(d.checkTorn)},
		{"damaged bytes", each(d.checkDamaged)},
		{"wrong values", each(d.checkWrongValues)},
		{"duplicate members", each(d.checkDuplicates)},
		{"not objects", d.checkOdd},
		{"lines after a bad one", each(d.checkAfterBad)},
	}
}

// accept decodes any line and returns the error. It checks that nothing panics
// and that the events can be written.
func (d *Dialect) accept(r *report, input, line string) error {
	var result error
	if r.buffer == nil {
		// The Reader does not allocate a buffer of its own for a large one.
		r.buffer = bufio.NewReaderSize(nil, 64<<10)
	}
	r.buffer.Reset(strings.NewReader(line))
	r.guard(input, func() {
		events, err := read(r.buffer, agentevents.ReaderOptions{Decoder: d.Decoder()})
		result = err
		for i := range events {
			if events[i].Payload == nil || events[i].Kind() == "" {
				r.errorf("an event without a payload, from the line %s", line)
				return
			}
			if _, err := events[i].AppendJSON(nil); err != nil {
				r.errorf("the event cannot be written: %v, from the line %s", err, line)
			}
		}
		_, _ = d.encode(events)
	})
	return result
}

// maxBytes and fewBytes are about the number of places that are damaged in one line.
const maxBytes, fewBytes = 400, 20

func (d *Dialect) places(line string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		most := maxBytes
		if d.short {
			most = fewBytes
		}
		stride := max(1, len(line)/most)
		for i := 0; i < len(line); i += stride {
			if !yield(i) {
				return
			}
		}
	}
}

func (d *Dialect) checkTorn(r *report, line string) {
	for n := range d.places(line) {
		input := fmt.Sprintf("the first %d bytes", n)
		if err := d.accept(r, input, line[:n]); err == nil && n > 0 && line[0] == '{' {
			r.input = input
			r.errorf("a torn line gives no error: %s", line[:n])
		}
	}
}

func (d *Dialect) checkDamaged(r *report, line string) {
	const bytes = "\"\\{}[],:0-x \x00\xff"
	for n := range d.places(line) {
		d.accept(r, fmt.Sprintf("without byte %d", n), line[:n]+line[n+1:])
		d.accept(r, fmt.Sprintf("byte %d replaced", n), line[:n]+bytes[n%len(bytes):n%len(bytes)+1]+line[n+1:])
	}
}

// wrong are values to put in the place of others.
var wrong = []string{
	"null", "true", "false", "0", "-1", "1.5", "1e999", "99999999999999999999", `""`, `"x"`, `"\ud800"`, "[]", "[null]", "{}", `{"a":null}`,
}

func (d *Dialect) checkWrongValues(r *report, line string) {
	d.eachWrong(line, func(input, line string) { d.accept(r, input, line) })
}

// eachWrong calls f with a line in which a value is another one, or a member is missing.
func (d *Dialect) eachWrong(line string, f func(input, line string)) {
	start, end, ok := object(line)
	if !ok {
		return
	}
	text := line[start:end]
	v, _ := readback.Parse(text)
	v.Walk("", func(pointer string, v *readback.Value) {
		for _, w := range few(d, wrong, 3) {
			f(pointer+" is "+w, line[:start]+text[:v.Start]+w+text[v.End:]+line[end:])
		}
	})
	// Leave out each member alone.
	for i := range v.Inner {
		from, to := v.NameStarts[i], v.Inner[i].End
		rest := text[:from] + strings.TrimLeft(text[to:], ", ")
		if i == len(v.Inner)-1 {
			rest = strings.TrimRight(text[:from], ", ") + text[to:]
		}
		f("without "+v.Names[i], line[:start]+rest+line[end:])
	}
}

func (d *Dialect) checkDuplicates(r *report, line string) {
	start, end, ok := object(line)
	if !ok {
		return
	}
	text := line[start:end]
	v, _ := readback.Parse(text)
	v.Walk("", func(pointer string, v *readback.Value) {
		if v.Kind != '{' {
			return
		}
		for i, name := range v.Names {
			again := text[v.NameStarts[i]:v.Inner[i].End]
			twice := line[:start] + text[:v.Start] + withMember(text[v.Start:v.End], again) + text[v.End:] + line[end:]
			input := pointer + "/" + readback.Token(name) + " twice"
			if d.accept(r, input, twice) == nil {
				r.input = input
				r.errorf("no error")
			}
		}
	})
	twice, _ := edit(line, func(o string) string { return withMember(withMember(o, extraMember), extraMember) })
	if d.accept(r, "an extra member twice", twice) == nil {
		r.input = "an extra member twice"
		r.errorf("no error")
	}
	r.input = ""
}

func (d *Dialect) checkOdd(r *report) {
	deep := strings.Repeat("[", 100_000)
	for _, line := range []string{
		"", " ", "null", "true", "1", `"x"`, "[]", "{}", "{", "}", "x", `{"":""}`, `{"type":null}`, `{"event":null}`, `{"type":{}}`, `{"event":[]}`,
		`{"type":"x"}`, `{"event":"x"}`, "\xff", "\x00", "data:", "data: ", "data: {}", "event: x", ":", deep, `{"a":` + deep,
	} {
		name := line
		if len(name) > 30 {
			name = name[:30] + "…"
		}
		d.accept(r, fmt.Sprintf("%q", name), line)
	}
	// There were no lines.
	events, err := d.Decoder().End(nil)
	if len(events) > 0 || err != nil {
		r.errorf("End without lines gives %d events, error %v", len(events), err)
	}
	text, err := d.Encoder().End(nil)
	if len(text) > 0 || err != nil {
		r.errorf("End without events gives %q, error %v", text, err)
	}
}

// checkAfterBad checks that a bad line does not change how the next line reads.
func (d *Dialect) checkAfterBad(r *report, line string) {
	start, end, ok := object(line)
	if !ok {
		return
	}
	alone, err := d.decode(line, false)
	if err != nil {
		return
	}
	for _, bad := range []string{line[:start+(end-start)*2/3], line[:end-1] + "," + "}", "x"} {
		r.guard("", func() {
			events, err := d.decode(bad+"\n"+line, false)
			if err == nil {
				return // not bad for this dialect
			}
			if len(events) != len(alone) {
				r.errorf("a good line gives %d events after a bad line, %d alone: %s", len(events), len(alone), line)
				return
			}
			for i := range events {
				diffs, err := readback.Diff(alone[i], events[i])
				if err != nil {
					r.errorf("comparing: %v", err)
				}
				for _, diff := range diffs {
					if diff.Pointer != "/id" && diff.Pointer != "/sequence" && !derived(diff) && !d.derives(diff.Pointer) {
						r.errorf("after a bad line: %s", diff)
					}
				}
			}
		})
	}
}

// derived reports whether both values of a difference look like ids derived from
// a line's number.
func derived(d readback.Difference) bool {
	form := func(s string) bool {
		return len(s) >= 38 && strings.Count(s, "-") >= 4
	}
	return form(d.Before) && form(d.After)
}
