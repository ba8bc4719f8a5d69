package dialecttest

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// decode reads lines with a new decoder.
func (d *Dialect) decode(text string, verbatim bool) ([]agentevents.Event, error) {
	return read(strings.NewReader(text), agentevents.ReaderOptions{Decoder: d.Decoder(), Verbatim: verbatim})
}

// read returns the events of a log, and its errors joined.
func read(log io.Reader, o agentevents.ReaderOptions) ([]agentevents.Event, error) {
	var events []agentevents.Event
	var errs []error
	for ev, err := range agentevents.NewReader(log, o).All() {
		if err != nil {
			errs = append(errs, err)
		} else {
			events = append(events, ev)
		}
	}
	return events, errors.Join(errs...)
}

// encode writes all events with a new encoder.
func (d *Dialect) encode(events []agentevents.Event) (string, error) {
	enc := d.Encoder()
	var out []byte
	var errs []error
	for _, ev := range events {
		var err error
		if out, err = enc.Append(out, ev); err != nil {
			errs = append(errs, err)
		}
	}
	out, err := enc.End(out)
	return string(out), errors.Join(append(errs, err)...)
}

// throughNative writes events in the native format and reads them again.
func throughNative(events []agentevents.Event) ([]agentevents.Event, error) {
	var log []byte
	for i := range events {
		line, err := events[i].AppendJSON(log)
		if err != nil {
			return nil, err
		}
		log = append(line, '\n')
	}
	return read(bytes.NewReader(log), agentevents.ReaderOptions{})
}

// A trip holds events on their way into the document and back.
type trip struct {
	d       *Dialect
	events  []agentevents.Event
	refused []error // by event
	text    string  // the lines
	losses  []dialect.Loss
	back    []agentevents.Event
	sound   bool // the lines decoded without error

	partner []*agentevents.Event // for each event, the one that came back for it, or nil
	joined  []int                // for each call, the return that shares its line, or -1
	extra   []*agentevents.Event // events that came back for no event
	was     []facts              // of each event
	now     []facts              // of each partner
	diffs   [][]Difference       // for each event
}

// prefix stands before the lines. An encoder must not change it.
const prefix = "before\n"

// trip sends events through the document, and checks the encoder while it works.
func (d *Dialect) trip(r *report, events []agentevents.Event) *trip {
	t := &trip{d: d, events: events, refused: make([]error, len(events))}
	enc := d.Encoder()
	out := []byte(prefix)
	for i, ev := range events {
		was := len(out)
		next, err := enc.Append(out, ev)
		switch {
		case len(next) < was || !bytes.Equal(next[:was], out[:was]):
			r.errorf("encoding %s changed what was in dst before", ev.Kind())
			return t
		case err != nil && len(next) > was:
			r.errorf("encoding %s appended something and returned the error %v", ev.Kind(), err)
		case len(next) > was && next[len(next)-1] != '\n':
			r.errorf("encoding %s appended a line without a newline: %s", ev.Kind(), next[was:])
		}
		out, t.refused[i] = next, err
	}
	out, err := enc.End(out)
	if err != nil {
		r.errorf("End of the encoder: %v", err)
	}
	t.text = strings.TrimPrefix(string(out), prefix)
	t.losses = enc.Losses()
	for i, err := range t.refused {
		kind := events[i].Kind()
		var rule *agentevents.RuleError
		switch {
		case err == nil:
		case errors.Is(err, dialect.ErrNoCounterpart):
			if !t.lost(kind, "", dialect.Dropped) {
				r.errorf("%s was refused with ErrNoCounterpart, but that is not among the losses", kind)
			}
		case !errors.As(err, &rule) || rule.Rule == "":
			r.errorf("%s was refused with an error that neither wraps ErrNoCounterpart nor names a rule: %v", kind, err)
		}
	}
	for _, l := range t.losses {
		if l.Count < 1 || !slices.ContainsFunc(events, func(ev agentevents.Event) bool { return of(l, ev.Kind()) }) ||
			!slices.ContainsFunc(events, func(ev agentevents.Event) bool { return ev.RunID == l.RunID && ev.Sequence == l.Sequence }) {
			r.errorf("a loss that belongs to no event: %+v", l)
		}
	}
	if t.back, err = d.decode(t.text, false); err != nil {
		r.errorf("what was encoded cannot be decoded: %v\n%s", err, t.text)
		return t
	}
	t.sound = true
	return t
}

// of reports whether a loss may be one of events of the kind.
func of(l dialect.Loss, kind agentevents.Kind) bool { return l.Kind == "" || l.Kind == kind }

// lost reports whether a loss is listed for the kind and exactly that place.
func (t *trip) lost(kind agentevents.Kind, pointer string, what dialect.Change) bool {
	return slices.ContainsFunc(t.losses, func(l dialect.Loss) bool { return of(l, kind) && l.Pointer == pointer && l.What == what })
}

// touched reports whether a loss is listed for the kind and the place, one above
// it or one below it.
func (t *trip) touched(kind agentevents.Kind, pointer string) bool {
	return slices.ContainsFunc(t.losses, func(l dialect.Loss) bool {
		return of(l, kind) && (covers(l.Pointer, pointer) || covers(pointer, l.Pointer))
	})
}

// pair finds the event that came back for each event: by id and kind, else by
// kind in order, else by id, else one that the losses say it became.
func (t *trip) pair() {
	free := make([]*agentevents.Event, len(t.back))
	for i := range t.back {
		free[i] = &t.back[i]
	}
	t.partner = make([]*agentevents.Event, len(t.events))
	match := func(same func(ev, back *agentevents.Event) bool) {
		for i := range t.events {
			if t.partner[i] != nil || t.refused[i] != nil {
				continue
			}
			for j, back := range free {
				if back != nil && same(&t.events[i], back) {
					t.partner[i], free[j] = back, nil
					break
				}
			}
		}
	}
	kind := func(ev, back *agentevents.Event) bool { return ev.Kind() == back.Kind() }
	id := func(ev, back *agentevents.Event) bool { return ev.ID == back.ID }
	match(func(ev, back *agentevents.Event) bool { return kind(ev, back) && id(ev, back) })
	match(kind)
	match(id)
	match(func(ev, _ *agentevents.Event) bool {
		return t.lost(ev.Kind(), "/type", dialect.Altered) || t.lost(ev.Kind(), "", dialect.Altered)
	})
	for _, back := range free {
		if back != nil {
			t.extra = append(t.extra, back)
		}
	}
	// Look for a call without a partner in its return.
	t.joined = make([]int, len(t.events))
	for i := range t.events {
		t.joined[i] = -1
		call, ok := t.events[i].Payload.(*agentevents.ToolCalled)
		if !ok || t.partner[i] != nil {
			continue
		}
		for j := i + 1; j < len(t.events) && t.joined[i] < 0; j++ {
			ret, ok := t.events[j].Payload.(*agentevents.ToolReturned)
			if !ok || ret.CallID != call.CallID || t.events[j].AgentID != t.events[i].AgentID || t.events[j].RunID != t.events[i].RunID || t.partner[j] == nil {
				continue
			}
			if one, ok := t.partner[j].Payload.(*agentevents.ToolReturned); ok && one.OneEvent && !ret.OneEvent {
				t.joined[i] = j
			}
		}
	}
}

// compare computes the differences.
func (t *trip) compare(r *report) {
	t.pair()
	t.diffs = make([][]Difference, len(t.events))
	t.was = make([]facts, len(t.events))
	t.now = make([]facts, len(t.events))
	for i := range t.events {
		var err error
		if t.was[i], err = factsOf(&t.events[i]); err != nil {
			r.errorf("the event of the suite cannot be written: %v", err)
		}
		if t.partner[i] == nil {
			continue
		}
		if t.now[i], err = factsOf(t.partner[i]); err != nil {
			r.errorf("the %s that came back cannot be written: %v", t.partner[i].Kind(), err)
		}
	}
	was := slices.Clone(t.was)
	for i := range t.events {
		if j := t.joined[i]; j >= 0 { // the return also says the arguments of the call
			was[j].leaves = maps.Clone(was[j].leaves)
			was[j].leaves["/payload/oneEvent"] = "true"
			for pointer, text := range was[i].leaves {
				if covers("/payload/arguments", pointer) || covers("/payload/argumentsSummary", pointer) {
					was[j].leaves[pointer] = text
				}
			}
		}
	}
	for i := range t.events {
		if t.partner[i] != nil {
			t.diffs[i] = was[i].diff(t.now[i])
		}
	}
	for i := range t.events {
		if j := t.joined[i]; j >= 0 {
			for _, d := range was[i].diff(t.now[j]) {
				if d.Before != "" && d.Pointer != "/type" && !t.saidByReturn(i, j, d) {
					d.After = ""
					t.diffs[i] = append(t.diffs[i], d)
				}
			}
		}
	}
	for i := range t.diffs {
		t.diffs[i] = slices.DeleteFunc(t.diffs[i], func(d Difference) bool {
			return slices.ContainsFunc(t.d.Ignore, func(p string) bool { return covers(p, d.Pointer) })
		})
	}
}

// saidByReturn reports whether the event that came back for call i and return j
// says a fact of the call in another way.
func (t *trip) saidByReturn(i, j int, d Difference) bool {
	back := t.partner[j]
	switch d.Pointer {
	case "/timestamp":
		p := back.Payload.(*agentevents.ToolReturned)
		return p.Duration.OK && back.Time.Add(-p.Duration.V).Equal(t.events[i].Time)
	case "/id":
		return back.CausationID == t.events[i].ID
	}
	return false
}

// verify checks that the differences and the losses agree.
func (t *trip) verify(r *report) {
	if !t.sound {
		return
	}
	r.detail = t.shown()
	defer func() { r.detail = "" }()
	t.compare(r)
	for i := range t.events {
		kind := t.events[i].Kind()
		switch {
		case t.refused[i] != nil, t.joined[i] >= 0:
		case t.partner[i] == nil:
			if !t.lost(kind, "", dialect.Dropped) {
				r.errorf("%s has disappeared, but that is not among the losses", kind)
			}
		}
		for _, d := range t.diffs[i] {
			if !t.covered(i, d) {
				r.errorf("%s: no loss lists the difference %s", kind, d)
			}
		}
	}
	for _, back := range t.extra {
		if !slices.ContainsFunc(t.losses, func(l dialect.Loss) bool { return l.Pointer == "" && l.What == dialect.Made }) {
			r.errorf("an extra %s came back: it was not written", back.Kind())
		}
	}
	for _, l := range t.losses {
		if !t.visible(l) {
			r.errorf("a loss that did not happen: %s: %s %s", l.Kind, l.Pointer, strings.TrimSpace(l.What.String()+" "+l.Detail))
		}
	}
}

const maxShown = 1500

// shown returns the lines for messages, shortened.
func (t *trip) shown() string {
	text := t.text
	if len(text) > maxShown {
		text = text[:maxShown] + "…"
	}
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n\t")
}

// covered reports whether the losses list a difference of event i.
func (t *trip) covered(i int, d Difference) bool {
	kind := t.events[i].Kind()
	// A loss of the whole event covers its members when the event is on the line of
	// another, or came back as another kind.
	whole := t.joined[i] >= 0 || t.partner[i] != nil && t.partner[i].Kind() != kind
	arguments := slices.Contains(t.joined, i) && (covers("/payload/arguments", d.Pointer) || covers("/payload/argumentsSummary", d.Pointer))
	var listed [dialect.Made + 1]bool
	for _, l := range t.losses {
		calls := arguments && of(l, agentevents.KindToolCalled)
		if !calls && !of(l, kind) || !covers(l.Pointer, d.Pointer) || l.Pointer == "" && !calls && !whole {
			continue
		}
		switch l.What {
		case dialect.Altered:
			// An altered fact must still be there, or be said elsewhere.
			listed[l.What] = listed[l.What] || l.Pointer == "" || d.After == "true" || d.Before != "" && d.After != "" || t.stays(i, l.Pointer) || t.moved(i)
		default:
			listed[l.What] = true
		}
	}
	switch {
	case listed[dialect.Altered]:
		return true
	case d.After == "":
		return listed[dialect.Dropped]
	case d.Before == "":
		return listed[dialect.Made] || t.d.derives(d.Pointer)
	}
	if listed[dialect.Dropped] && (listed[dialect.Made] || nothing(d.After) || required(kind, d.Pointer) || t.d.derives(d.Pointer)) {
		return true
	}
	return listed[dialect.Made] && nothing(d.Before)
}

// derives reports whether the decoder makes up the value at the place.
func (d *Dialect) derives(pointer string) bool {
	return slices.ContainsFunc(d.Derived, func(p string) bool { return covers(p, pointer) })
}

// stays reports whether event i and the event that came back both have a value at
// the place.
func (t *trip) stays(i int, pointer string) bool {
	return t.partner[i] != nil && t.was[i].under(pointer) && t.now[i].under(pointer)
}

// moved reports whether event i came back with a new value that is listed as made
// up.
func (t *trip) moved(i int) bool {
	return slices.ContainsFunc(t.diffs[i], func(d Difference) bool {
		return d.Before == "" && slices.ContainsFunc(t.losses, func(l dialect.Loss) bool {
			return of(l, t.events[i].Kind()) && l.What == dialect.Made && covers(l.Pointer, d.Pointer)
		})
	})
}

// visible reports whether a loss shows as a difference, or is one of those that
// cannot show.
func (t *trip) visible(l dialect.Loss) bool {
	if l.Pointer == "" && l.What == dialect.Made {
		return len(t.extra) > 0
	}
	if l.Pointer == "/schemaVersion" && l.What == dialect.Dropped {
		return true
	}
	for i := range t.events {
		mine, joined := of(l, t.events[i].Kind()), t.joined[i] >= 0
		for call, ret := range t.joined {
			if ret == i { // the return has the facts of the call
				mine = mine || of(l, t.events[call].Kind())
				joined = joined || l.Pointer == "/payload/oneEvent"
			}
		}
		if !mine {
			continue
		}
		if l.Pointer == "" && (joined || t.partner[i] == nil && l.What == dialect.Dropped) {
			return true
		}
		if l.Pointer == "/payload/oneEvent" && joined {
			return true
		}
		// A call and its return may have equal facts: it does not show which of them
		// came back. All facts are gone with the event.
		if l.Pointer != "" && l.What == dialect.Dropped && t.partner[i] == nil && t.refused[i] == nil && t.was[i].under(l.Pointer) {
			return true
		}
		for _, d := range t.diffs[i] {
			if covers(l.Pointer, d.Pointer) && (l.What != dialect.Dropped || d.Before != "") && (l.What != dialect.Made || d.After != "") {
				return true
			}
		}
		if l.What == dialect.Made && !t.was[i].says(l.Pointer) { // the made-up value may read as absent
			return true
		}
	}
	return false
}

// says reports whether there is a value other than zero at the place or below it.
func (f facts) says(pattern string) bool {
	for pointer, text := range f.leaves {
		if covers(pattern, pointer) && !nothing(text) {
			return true
		}
	}
	return false
}
