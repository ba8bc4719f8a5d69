package readback

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Trip is a list of events, their lines in a document, and the events that a decoder reads from
// these lines.
type Trip struct {
	Events  []agentevents.Event
	Refused []error             // by event: why it was not written; may be short
	Text    []byte              // the lines
	Losses  []dialect.Loss      // that the encoder listed
	Back    []agentevents.Event // the events that a decoder makes of the lines
	// Ignore are places of native lines where an event may come back different
	// without a loss.
	Ignore []string
	// Derived are places without a member in the document, which the decoder makes up. The new
	// value is not a loss; losing the event's own value is one, Dropped.
	Derived []string
	Brief   bool // Unlisted does not show values

	Partner []*agentevents.Event // for each event, the one that came back for it, or nil
	Joined  []int                // for each call, the return that shares its line, or -1
	Extra   []*agentevents.Event // events that came back for no event
	Diffs   [][]Difference       // for each event

	called map[int]int // for a return, the call that shares its line
	wrote  []int       // for each line, the event for which it was written, or -1
	lines  []int       // for each event that came back, its line
	listed [][]bool    // for each event and each of its differences, whether a loss lists it
	known  [4]known    // the latest ones: an event, the one that came back, and both of its call
	next   int         // into known
	kinds  map[agentevents.Kind][]dialect.Loss
	still  map[string]bool // of the event that is compared: the places that have returned
}

// A known is an event with its facts.
type known struct {
	ev    *agentevents.Event
	facts Facts
	err   error
}

// factsOf returns the facts of an event, which the caller must not change. Only the latest are
// kept: a long log has many.
func (t *Trip) factsOf(ev *agentevents.Event) (Facts, error) {
	for i := range t.known {
		if k := &t.known[i]; k.ev == ev {
			return k.facts, k.err
		}
	}
	k := &t.known[t.next]
	t.next = (t.next + 1) % len(t.known)
	k.ev = ev
	k.facts, k.err = FactsOf(ev)
	return k.facts, k.err
}

// of returns the losses that may be some of events of the kind.
func (t *Trip) of(kind agentevents.Kind) []dialect.Loss {
	list, ok := t.kinds[kind]
	if !ok {
		for _, l := range t.Losses {
			if IsOf(l, kind) {
				list = append(list, l)
			}
		}
		t.kinds[kind] = list
	}
	return list
}

// Wrote adds an event, the lines that were written when it came, and the reason if it was refused.
// At the end of the log the event is missing.
func (t *Trip) Wrote(ev agentevents.Event, lines []byte, err error) {
	i := -1
	if ev.Payload != nil {
		i = len(t.Events)
		t.Events, t.Refused = append(t.Events, ev), append(t.Refused, err)
	}
	for range bytes.Count(lines, []byte("\n")) {
		t.wrote = append(t.wrote, i)
	}
	t.Text = append(t.Text, lines...)
}

// Read reads the lines back. It returns the errors.
func (t *Trip) Read(o agentevents.ReaderOptions) (errs []error) {
	r := agentevents.NewReader(bytes.NewReader(t.Text), o)
	for ev, err := range r.All() {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		t.Back, t.lines = append(t.Back, ev), append(t.lines, r.Line())
	}
	return errs
}

// Problems sends events through a document, and returns the errors, the differences that no loss
// lists, and the listed losses that did not happen.
func (t *Trip) Problems(events []agentevents.Event, enc dialect.Encoder, dec dialect.Decoder) (list []string) {
	for _, ev := range events {
		lines, err := enc.Append(nil, ev)
		t.Wrote(ev, lines, err)
	}
	lines, err := enc.End(nil)
	t.Wrote(agentevents.Event{}, lines, nil)
	t.Losses = enc.Losses()
	errs := append(t.Read(agentevents.ReaderOptions{Decoder: dec}), err)
	for _, l := range dec.Losses() {
		t.Derived = append(t.Derived, l.Pointer)
	}
	for _, err := range append(errs, t.Compare()...) {
		if err != nil {
			list = append(list, err.Error())
		}
	}
	t.Unlisted(func(_ int, what string) { list = append(list, what) })
	t.Unreal(func(what string) { list = append(list, what) })
	return list
}

func (t *Trip) refused(i int) bool { return i < len(t.Refused) && t.Refused[i] != nil }

// IsOf reports whether a loss may be one of events of the kind.
func IsOf(l dialect.Loss, kind agentevents.Kind) bool { return l.Kind == "" || l.Kind == kind }

// Lost reports whether a loss is listed for the kind and exactly that place.
func (t *Trip) Lost(kind agentevents.Kind, pointer string, what dialect.Change) bool {
	return slices.ContainsFunc(t.Losses,
		func(l dialect.Loss) bool { return IsOf(l, kind) && l.Pointer == pointer && l.What == what })
}

// Touched reports whether a loss is listed for the kind and the place, one above
// it or one below it.
func (t *Trip) Touched(kind agentevents.Kind, pointer string) bool {
	return slices.ContainsFunc(t.Losses, func(l dialect.Loss) bool {
		return IsOf(l, kind) && (Covers(l.Pointer, pointer) || Covers(pointer, l.Pointer))
	})
}

// Derives reports whether the decoder makes up the value at the place.
func (t *Trip) Derives(pointer string) bool {
	return slices.ContainsFunc(t.Derived, func(p string) bool { return Covers(p, pointer) })
}

// pair finds the event that came back for each event: by id, kind and run if that can be, by id and
// kind, else on its own line, else by kind in order, of its run if there is one, else by id, else
// the event that the losses name as its successor.
func (t *Trip) pair() {
	free := make([]*agentevents.Event, len(t.Back))
	for i := range t.Back {
		free[i] = &t.Back[i]
	}
	t.Partner = make([]*agentevents.Event, len(t.Events))
	match := func(key func(ev *agentevents.Event) string, may func(ev *agentevents.Event) bool) {
		waiting := map[string][]int{} // indexes into free, in order
		for i, back := range free {
			if back != nil {
				waiting[key(back)] = append(waiting[key(back)], i)
			}
		}
		for i := range t.Events {
			ev := &t.Events[i]
			if t.Partner[i] != nil || t.refused(i) || !may(ev) {
				continue
			}
			if list := waiting[key(ev)]; len(list) > 0 {
				t.Partner[i], free[list[0]] = free[list[0]], nil
				waiting[key(ev)] = list[1:]
			}
		}
	}
	any := func(*agentevents.Event) bool { return true }
	match(func(ev *agentevents.Event) string { return string(ev.Kind()) + " " + ev.ID + " " + ev.RunID }, any)
	match(func(ev *agentevents.Event) string { return string(ev.Kind()) + " " + ev.ID }, any)
	for _, other := range []bool{false, true} { // a line may be read as another kind
		for j, line := range t.lines {
			if free[j] == nil || line > len(t.wrote) {
				continue
			}
			if i := t.wrote[line-1]; i >= 0 && t.Partner[i] == nil && !t.refused(i) &&
				(other || free[j].Kind() == t.Events[i].Kind()) {
				t.Partner[i], free[j] = free[j], nil
			}
		}
	}
	for j, line := range t.lines { // a made-up line stands before the line of an event
		if free[j] == nil || line > len(t.wrote) {
			continue
		}
		if i := t.wrote[line-1]; i >= 0 && t.Partner[i] != nil && t.Lost(t.Events[i].Kind(), "", dialect.Made) {
			t.Extra, free[j] = append(t.Extra, free[j]), nil
		}
	}
	match(func(ev *agentevents.Event) string { return string(ev.Kind()) + " " + ev.RunID }, any)
	match(func(ev *agentevents.Event) string { return string(ev.Kind()) }, any)
	match(func(ev *agentevents.Event) string { return ev.ID }, any)
	written := map[*agentevents.Event]bool{}
	for _, i := range t.wrote {
		if i >= 0 {
			written[&t.Events[i]] = true
		}
	}
	match(func(*agentevents.Event) string { return "" }, func(ev *agentevents.Event) bool {
		if !written[ev] && t.Lost(ev.Kind(), "", dialect.Dropped) {
			return false // it did not come back
		}
		return t.Lost(ev.Kind(), "/type", dialect.Altered) || t.Lost(ev.Kind(), "", dialect.Altered)
	})
	for _, back := range free {
		if back != nil {
			t.Extra = append(t.Extra, back)
		}
	}
}

// join finds the calls that came back as a part of their return.
func (t *Trip) join() {
	type key struct{ run, agent, call string }
	calls := map[key][]int{}
	t.Joined, t.called = make([]int, len(t.Events)), map[int]int{}
	for i := range t.Events {
		t.Joined[i] = -1
		ev := &t.Events[i]
		switch p := ev.Payload.(type) {
		case *agentevents.ToolCalled:
			if t.Partner[i] == nil {
				k := key{ev.RunID, cmp.Or(ev.AgentID, ev.NodeRunID), p.CallID}
				calls[k] = append(calls[k], i)
			}
		case *agentevents.ToolReturned:
			if t.Partner[i] == nil {
				continue
			}
			if one, ok := t.Partner[i].Payload.(*agentevents.ToolReturned); ok && one.OneEvent && !p.OneEvent {
				k := key{ev.RunID, cmp.Or(ev.AgentID, ev.NodeRunID), p.CallID}
				for _, call := range calls[k] {
					t.Joined[call], t.called[i] = i, call
				}
				delete(calls, k)
			}
		}
	}
}

// Compare computes the differences between the events and the events that were read back. It
// returns an error for each event that cannot be written in the native format.
func (t *Trip) Compare() (errs []error) {
	t.kinds, t.still = map[agentevents.Kind][]dialect.Loss{}, map[string]bool{}
	t.pair()
	t.join()
	t.Diffs, t.listed = make([][]Difference, len(t.Events)), make([][]bool, len(t.Events))
	failed := map[*agentevents.Event]bool{}
	facts := func(ev *agentevents.Event) Facts {
		f, err := t.factsOf(ev)
		if err != nil && !failed[ev] {
			failed[ev] = true
			errs = append(errs, fmt.Errorf("a %s cannot be written: %w", jsonwire.BriefName(string(ev.Kind())), err))
		}
		return f
	}
	for i := range t.Events {
		t.compare(i, facts)
	}
	return errs
}

// compare computes the differences of event i, and which of them are listed.
func (t *Trip) compare(i int, facts func(*agentevents.Event) Facts) {
	ev := &t.Events[i]
	if j := t.Joined[i]; j >= 0 {
		for _, d := range facts(ev).Diff(facts(t.Partner[j])) {
			if d.Before != "" && d.Pointer != "/type" && !t.saidByReturn(i, j, d) {
				d.After = ""
				t.Diffs[i] = append(t.Diffs[i], d)
			}
		}
	}
	if t.Partner[i] != nil {
		was := facts(ev)
		if call, ok := t.called[i]; ok { // the return also has the arguments of the call
			was.Leaves = maps.Clone(was.Leaves)
			was.Leaves["/payload/oneEvent"] = "true"
			for pointer, text := range facts(&t.Events[call]).Leaves {
				if isArguments(pointer) {
					was.Leaves[pointer] = text
				}
			}
		}
		t.Diffs[i] = append(t.Diffs[i], was.Diff(facts(t.Partner[i]))...)
	}
	t.Diffs[i] = slices.DeleteFunc(t.Diffs[i], func(d Difference) bool {
		return t.ignores(d.Pointer)
	})
	clear(t.still) // a value has many differences that one loss lists
	for _, d := range t.Diffs[i] {
		t.listed[i] = append(t.listed[i], t.covered(i, d))
	}
}

func (t *Trip) ignores(pointer string) bool {
	return slices.ContainsFunc(t.Ignore, func(p string) bool { return Covers(p, pointer) })
}

func isArguments(pointer string) bool {
	return Covers("/payload/arguments", pointer) || Covers("/payload/argumentsSummary", pointer)
}

// has reports whether an event has a value at the place, or below it.
func (t *Trip) has(ev *agentevents.Event, pointer string) bool {
	f, err := t.factsOf(ev)
	return err == nil && f.Under(pointer)
}

// saidByReturn reports whether the event that came back for call i and return j has a fact of the
// call in another form.
func (t *Trip) saidByReturn(i, j int, d Difference) bool {
	back := t.Partner[j]
	switch d.Pointer {
	case "/timestamp":
		p := back.Payload.(*agentevents.ToolReturned)
		return p.Duration.OK && back.Time.Add(-p.Duration.V).Equal(t.Events[i].Time)
	case "/id":
		return back.CausationID == t.Events[i].ID
	}
	return false
}

// Unlisted calls report with every difference that no loss lists, and with every
// event that disappeared or came back without one. i is the index of the event.
func (t *Trip) Unlisted(report func(i int, what string)) {
	for i := range t.Events {
		kind := t.Events[i].Kind()
		if !t.refused(i) && t.Joined[i] < 0 && t.Partner[i] == nil && !t.Lost(kind, "", dialect.Dropped) {
			report(i, fmt.Sprintf("%s has disappeared, but that is not among the losses", jsonwire.BriefName(string(kind))))
		}
		for j, d := range t.Diffs[i] {
			if !t.listed[i][j] {
				text := d.String()
				if t.Brief {
					text = d.Brief()
				}
				report(i, fmt.Sprintf("%s: no loss lists the difference %s", jsonwire.BriefName(string(kind)), text))
			}
		}
	}
	for _, back := range t.Extra {
		if !slices.ContainsFunc(t.Losses, func(l dialect.Loss) bool { return l.Pointer == "" && l.What == dialect.Made }) {
			report(-1, fmt.Sprintf("an extra %s came back: it was not written", jsonwire.BriefName(string(back.Kind()))))
		}
	}
}

// Unreal calls report with every listed loss that did not happen.
func (t *Trip) Unreal(report func(what string)) {
	open := slices.DeleteFunc(slices.Clone(t.Losses), func(l dialect.Loss) bool { return t.ignores(l.Pointer) })
	for i := range t.Events { // one pass: facts are kept of the latest event
		open = slices.DeleteFunc(open, func(l dialect.Loss) bool { return t.visible(i, l) })
	}
	for _, l := range open {
		if !(l.Pointer == "" && l.What == dialect.Made && len(t.Extra) > 0 ||
			l.Pointer == "/schemaVersion" && l.What == dialect.Dropped) {
			report(fmt.Sprintf("a loss that did not happen: %s: %s %s", l.Kind, l.Pointer,
				strings.TrimSpace(l.What.String()+" "+l.Detail)))
		}
	}
}

// covered reports whether the losses list a difference of event i.
func (t *Trip) covered(i int, d Difference) bool {
	kind := t.Events[i].Kind()
	// A loss of the whole event covers its members when the event is on the line of
	// another, or came back as another kind.
	whole := t.Joined[i] >= 0 || t.Partner[i] != nil && t.Partner[i].Kind() != kind
	_, joined := t.called[i]
	arguments := joined && isArguments(d.Pointer)
	var listed [dialect.Made + 1]bool
	losses := t.of(kind)
	if arguments {
		losses = t.Losses
	}
	for _, l := range losses {
		calls := arguments && IsOf(l, agentevents.KindToolCalled)
		if !calls && !IsOf(l, kind) || !Covers(l.Pointer, d.Pointer) || l.Pointer == "" && !calls && !whole {
			continue
		}
		switch l.What {
		case dialect.Altered:
			// An altered fact must still be there, or be said elsewhere.
			listed[l.What] = listed[l.What] || l.Pointer == "" || d.After == "true" || d.Before != "" && d.After != "" ||
				t.stays(i, l.Pointer) || t.moved(i)
		default:
			listed[l.What] = true
		}
	}
	switch {
	case listed[dialect.Altered], strings.HasPrefix(d.Before, order) && t.Derives(d.Pointer): // a reader has its own order
		return true
	case d.After == "":
		return listed[dialect.Dropped] || listed[dialect.Made] && lacks(d.Pointer)
	case d.Before == "":
		return listed[dialect.Made] || t.Derives(d.Pointer)
	}
	if listed[dialect.Dropped] && (listed[dialect.Made] || Nothing(d.After) || Required(kind, d.Pointer) ||
		t.Derives(d.Pointer)) {
		return true
	}
	return listed[dialect.Made] && Nothing(d.Before) || d.Before == `""` && t.Derives(d.Pointer)
}

// lacks reports whether the place is a decoder's note that a line lacked a member. The note is
// gone when an encoder makes the member up.
func lacks(pointer string) bool { return strings.Contains(pointer, "/~0absent") }

// stays reports whether event i and the event that came back both have a value at
// the place.
func (t *Trip) stays(i int, pointer string) bool {
	still, ok := t.still[pointer]
	if !ok {
		still = t.staysAt(i, pointer)
		t.still[pointer] = still
	}
	return still
}

func (t *Trip) staysAt(i int, pointer string) bool {
	return t.Partner[i] != nil && t.has(&t.Events[i], pointer) && t.has(t.Partner[i], pointer)
}

// moved reports whether event i came back with a new value that is listed as made
// up.
func (t *Trip) moved(i int) bool {
	return slices.ContainsFunc(t.Diffs[i], func(d Difference) bool {
		return d.Before == "" && slices.ContainsFunc(t.Losses, func(l dialect.Loss) bool {
			return IsOf(l, t.Events[i].Kind()) && l.What == dialect.Made && Covers(l.Pointer, d.Pointer)
		})
	})
}

// visible reports whether a loss shows as a difference of event i, or is one of those that
// cannot show.
func (t *Trip) visible(i int, l dialect.Loss) bool {
	if l.Pointer == "" && l.What == dialect.Made {
		return false // it shows as an event that came back for none
	}
	ev := &t.Events[i]
	mine, joined := IsOf(l, ev.Kind()), t.Joined[i] >= 0
	if call, ok := t.called[i]; ok { // the return has the facts of the call
		mine = mine || IsOf(l, t.Events[call].Kind())
		joined = joined || l.Pointer == "/payload/oneEvent"
		// The call's arguments replace the return's.
		if l.What == dialect.Dropped && isArguments(l.Pointer) && t.has(ev, l.Pointer) {
			return true
		}
	}
	if !mine {
		return false
	}
	if l.Pointer == "" && (joined || t.Partner[i] == nil && l.What == dialect.Dropped) ||
		l.Pointer == "/payload/oneEvent" && joined {
		return true
	}
	// A call and its return may have equal facts: it does not show which of them
	// came back. All facts are gone with the event.
	if l.Pointer != "" && l.What == dialect.Dropped && t.Partner[i] == nil && !t.refused(i) && t.has(ev, l.Pointer) {
		return true
	}
	for _, d := range t.Diffs[i] {
		if Covers(l.Pointer, d.Pointer) && (l.What != dialect.Dropped || d.Before != "") &&
			(l.What != dialect.Made || d.After != "" || lacks(d.Pointer)) {
			return true
		}
	}
	// A made-up value may read as absent, and an event that came back as another kind may
	// have something in the place of an empty value.
	other := t.Partner[i] != nil && t.Partner[i].Kind() != ev.Kind()
	if l.What == dialect.Made || l.What == dialect.Dropped && other {
		was, err := t.factsOf(ev)
		return err == nil && !was.Has(l.Pointer) && (l.What == dialect.Made || was.Under(l.Pointer))
	}
	return false
}
