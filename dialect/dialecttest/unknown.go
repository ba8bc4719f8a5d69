package dialecttest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/readback"
)

// extraMember is the member that the suite adds to lines.
const extraMember = `"x-suite":{"a":[1,2.50,null],"b":"\u00e9<"}`

// object finds the object of a line, which may be in a Server-Sent Event ("data:
// {…}").
func object(line string) (start, end int, ok bool) {
	start, end = strings.IndexByte(line, '{'), strings.LastIndexByte(line, '}')+1
	return start, end, start >= 0 && end > start && json.Valid([]byte(line[start:end]))
}

// edit replaces the object of a line.
func edit(line string, to func(object string) string) (string, bool) {
	start, end, ok := object(line)
	if !ok {
		return line, false
	}
	return line[:start] + to(line[start:end]) + line[end:], true
}

// withMember adds a member at the end of an object.
func withMember(object, member string) string {
	body := strings.TrimRight(object[:len(object)-1], " \t")
	if body == "{" {
		return "{" + member + "}"
	}
	return body + "," + member + "}"
}

// eachLine calls f for every golden line with an object. replace returns the
// golden lines with another line in its place.
func (d *Dialect) eachLine(g Golden, f func(line string, replace func(string) string)) {
	list := strings.Split(g.Lines, "\n")
	for i, line := range list {
		if _, _, ok := object(line); ok {
			f(line, func(other string) string {
				changed := slices.Clone(list)
				changed[i] = other
				return strings.Join(changed, "\n")
			})
		}
	}
}

func extraMemberCases(d *Dialect) []testCase {
	var cases []testCase
	for i, g := range d.Golden {
		if g.Written != "" {
			continue
		}
		cases = append(cases, testCase{g.name(i), func(r *report) {
			d.eachLine(g, func(line string, replace func(string) string) {
				added, _ := edit(line, func(o string) string { return withMember(o, extraMember) })
				r.guard("at the end", func() { d.checkSame(r, replace(added)) })
				r.guard("before a line without", func() { d.checkSame(r, replace(added)+"\n"+g.Lines) })
				d.checkNested(r, line, replace)
				r.guard("respelled", func() { d.checkSpelling(r, line) })
			})
		}})
	}
	return cases
}

// checkSame checks that lines come back unchanged, directly and through the
// native format.
func (d *Dialect) checkSame(r *report, text string) {
	events, err := d.decode(text, false)
	if err != nil {
		r.errorf("decoding: %v\n\t%s", err, text)
		return
	}
	r.checkSound(events)
	r.checkText("the line", d.encodeText(r, events), text+"\n")
	back, err := throughNative(events)
	if err != nil {
		r.errorf("through the native format: %v", err)
	}
	r.checkText("the line, through the native format,", d.encodeText(r, back), text+"\n")
}

// checkNested adds a member to every inner object of a line.
func (d *Dialect) checkNested(r *report, line string, replace func(string) string) {
	start, end, _ := object(line)
	text := line[start:end]
	v, err := readback.Parse(text)
	if err != nil {
		return
	}
	v.Walk("", func(pointer string, v *readback.Value) {
		if v.Kind != '{' || pointer == "" || slices.ContainsFunc(d.Maps, func(p string) bool { return isAt(p, pointer) }) {
			return
		}
		added := text[:v.Start] + withMember(text[v.Start:v.End], `"x-suite":{"c":1.50}`) + text[v.End:]
		r.guard("in "+pointer+" (see Dialect.Maps)", func() { d.checkSame(r, replace(line[:start]+added+line[end:])) })
	})
}

// isAt reports whether the pattern matches exactly that place.
func isAt(pattern, pointer string) bool {
	return readback.Covers(pattern, pointer) && strings.Count(pattern, "/") == strings.Count(pointer, "/")
}

// respell writes an object in another way: other order of members, blanks, and an
// extra member in the middle.
func respell(object string) string {
	v, err := readback.Parse(object)
	if err != nil || len(v.Inner) == 0 {
		return object
	}
	var b strings.Builder
	b.WriteString("{ ")
	for i := range v.Inner {
		j := (i + 1) % len(v.Inner) // the first one is last
		fmt.Fprintf(&b, "%s :  %s ,\t", object[v.NameStarts[j]:v.NameStarts[j]+nameLen(object[v.NameStarts[j]:])],
			object[v.Inner[j].Start:v.Inner[j].End])
		if i == 0 {
			b.WriteString(extraMember + ", ")
		}
	}
	return strings.TrimSuffix(b.String(), " ,\t") + " }"
}

// nameLen returns the length of the string at the start of a text.
func nameLen(text string) int {
	d := json.NewDecoder(strings.NewReader(text))
	_, _ = d.Token() // the text is part of valid JSON
	return int(d.InputOffset())
}

// endsEarly reports whether a line alone is an event only because no other follows.
func (d *Dialect) endsEarly(line string) bool {
	events, err := d.Decoder().Decode(nil, []byte(line))
	return err == nil && len(events) == 0
}

// checkSpelling checks lines that are read with Verbatim: they come back byte for
// byte unless the event was changed.
func (d *Dialect) checkSpelling(r *report, line string) {
	if events, err := d.decode(line, false); err != nil || len(events) != 1 {
		return // the line is part of a longer story
	}
	odd, _ := edit(line, respell)
	events, err := d.decode(odd, true)
	if err != nil {
		r.errorf("decoding: %v\n\t%s", err, odd)
		return
	}
	if len(events) == 1 && events[0].Origin() == "" && d.endsEarly(line) {
		return // the event tells that the story stops here
	}
	r.checkText("the line, read with Verbatim,", d.encodeText(r, events), odd+"\n")

	plain := d.changed(r, odd, false, func(*agentevents.Event) {})
	change := func(what string, f func(ev *agentevents.Event)) {
		want := d.changed(r, odd, false, f)
		got := d.changed(r, odd, true, f)
		if want != plain && got != want {
			r.errorf("%s was changed after reading with Verbatim:\n\tgot  %s\twant %s", what, got, want)
		}
	}
	change("the time", func(ev *agentevents.Event) { ev.Time = ev.Time.Add(time.Hour) })
	change("the run", func(ev *agentevents.Event) { ev.RunID += "-changed" })
	change("the agent", func(ev *agentevents.Event) { ev.AgentID += "-changed" })
	change("the step", func(ev *agentevents.Event) { ev.Step = agentevents.Some(ev.Step.V + 1) })
	change("an extra member", func(ev *agentevents.Event) { _ = ev.SetExtra(string(d.Name), "") })
	payload := reflect.ValueOf(events[0].Payload).Elem()
	filled := reflect.ValueOf(Filled(events[0].Kind()).Payload).Elem()
	for i := range payload.NumField() {
		if f := payload.Type().Field(i); f.IsExported() && f.Name != "Type" {
			change("the payload's "+f.Name, func(ev *agentevents.Event) {
				reflect.ValueOf(ev.Payload).Elem().Field(i).Set(filled.Field(i))
			})
		}
	}
}

// changed decodes a line, changes the event and encodes it.
func (d *Dialect) changed(r *report, line string, verbatim bool, f func(ev *agentevents.Event)) string {
	events, err := d.decode(line, verbatim)
	if err != nil || len(events) != 1 {
		r.errorf("%d events, %v", len(events), err)
		return ""
	}
	f(&events[0])
	text, err := d.encode(events)
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	return text
}

// unknownWord is a type that no document has.
const unknownWord = `"x-vendor.new-thing"`

// unknownLine returns a line of an unknown type.
func (d *Dialect) unknownLine() string {
	if d.Unknown != "" {
		return d.Unknown
	}
	line := ""
	for _, g := range d.Golden {
		if strings.Contains(g.Lines, "\n") || g.Written != "" {
			continue
		}
		other, ok := edit(g.Lines, func(o string) string {
			v, err := readback.Parse(o)
			if err != nil {
				return o
			}
			for _, name := range []string{"event", "type"} {
				if t := v.Member(name); t != nil && t.Kind == '"' {
					return o[:t.Start] + unknownWord + o[t.End:]
				}
			}
			return o
		})
		if ok && other != g.Lines {
			line = other
		}
	}
	return line
}

func unknownTypeCases(d *Dialect) []testCase {
	line := d.unknownLine()
	if line == "" {
		return nil
	}
	decoded := func(r *report) {
		events, err := d.decode(line, false)
		if err != nil {
			r.errorf("decoding: %v\n\t%s", err, line)
			return
		}
		if len(events) != 1 {
			r.errorf("%d events: %s", len(events), lines(events))
			return
		}
		if u, ok := events[0].Payload.(*agentevents.Unknown); !ok || u.Type == "" {
			r.errorf("decoded as %s", lines(events))
		}
		d.checkSame(r, line)
	}
	member := func(r *report) {
		added, _ := edit(line, func(o string) string { return withMember(o, extraMember) })
		d.checkSame(r, added)
	}
	return []testCase{{"kept", decoded}, {"extra member", member},
		{"respelled", func(r *report) { d.checkSpelling(r, line) }}}
}
