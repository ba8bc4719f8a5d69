package eventtest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/findings"
)

// Want fails the test unless the wanted values match events in this order. Other events may come
// before, between and after them. Each wanted value is a line, a [Matcher], or a []string of lines.
// The failure shows the recorded events, with an arrow where the first line is missing, and the
// events that are nearest to it.
//
// Deltas are shown only if a line has a kind of delta.
func (r *Recorder) Want(t testing.TB, wanted ...any) {
	t.Helper()
	wants, ok := r.parse(t, wanted)
	if !ok {
		return
	}
	rows := r.rows(wants)
	next := 0
	for i, w := range wants {
		at := next
		for at < len(rows) && !rows[at].is(w) {
			at++
		}
		if at == len(rows) {
			t.Errorf("eventtest: wanted line %d of %d is missing: %s%s\nrecorded (= wanted, ~ near):\n%s",
				i+1, len(wants), w.text, w.note(), list(missing(rows, next, w), next))
			return
		}
		rows[at].sign = "="
		next = at + 1
	}
}

// WantExactly fails the test unless the wanted values, as in [Recorder.Want], match all events, one
// by one. The failure shows both, with an arrow at the first difference. Deltas are left out unless
// a line has a kind of delta. Without lines, the failure has the lines of all events as Go source.
func (r *Recorder) WantExactly(t testing.TB, wanted ...any) {
	t.Helper()
	wants, ok := r.parse(t, wanted)
	if !ok {
		return
	}
	rows := r.rows(wants)
	if len(wants) == 0 && len(rows) > 0 {
		var source strings.Builder
		for _, row := range rows {
			fmt.Fprintf(&source, "\t%s,\n", quote(row.text))
		}
		t.Errorf("eventtest: %s recorded, no line is wanted:\n%s",
			events(len(rows)), strings.TrimSuffix(source.String(), "\n"))
		return
	}
	if diff, first := align(rows, wants); first >= 0 {
		t.Errorf("eventtest: %s recorded, %d wanted (+ not wanted, - not recorded):\n%s",
			events(len(rows)), len(wants), list(diff, first))
	}
}

// WantNone fails the test for each given line or [Matcher] that matches a recorded event. It also
// fails for a line with a word that seems to misspell a kind, because that line would never match:
// the package documentation has the rule, under Lines.
func (r *Recorder) WantNone(t testing.TB, unwanted ...any) {
	t.Helper()
	wants, ok := r.parse(t, unwanted)
	if !ok {
		return
	}
	rows := r.rows(wants)
	for _, w := range wants {
		if w.hint != "" {
			t.Errorf("eventtest: a line that must not be recorded never is: "+
				"%s%s; put the word in quotes if it is right", w.text, w.note())
		}
		first := -1
		for i := range rows {
			if rows[i].sign = ""; rows[i].is(w) {
				rows[i].sign = "!"
				if first < 0 {
					first = i
				}
			}
		}
		if first >= 0 {
			t.Errorf("eventtest: a line that must not be recorded is: %s\nrecorded (! it is this):\n%s",
				w.text, list(rows, first))
		}
	}
}

// WantNoFindings fails the test for each finding of package findings in the recorded runs: a
// loop, a stall, failures in a row. The zero options are the defaults; Off has the kinds that may
// occur. The clock of the recorder goes on by one second with each event.
func (r *Recorder) WantNoFindings(t testing.TB, o findings.Options) {
	t.Helper()
	if err := o.Check(); err != nil {
		t.Errorf("eventtest: %v", err)
		return
	}
	f := findings.New(o)
	for _, ev := range r.Events() {
		f.Add(&ev)
	}
	for _, one := range f.Findings() {
		t.Errorf("eventtest: %s in run %s: %s (events %v)", one.Kind, spell(cut(one.RunID)), one.Text, one.Sequences)
	}
}

// Find returns the events that a wanted line or [Matcher] matches. It stops the test if
// it is neither.
func (r *Recorder) Find(t testing.TB, wanted any) []agentevents.Event {
	t.Helper()
	w, err := r.wantOf(wanted)
	if err != nil {
		t.Fatalf("eventtest: wanted line %s: %v", shownAs(wanted), err)
		return nil
	}
	var found []agentevents.Event
	for _, ev := range r.Events() {
		if _, why := w.match(newLine(ev)); why == "" {
			found = append(found, ev)
		}
	}
	return found
}

// wantOf returns the want of a wanted value, or the mistake in it.
func (r *Recorder) wantOf(wanted any) (*want, error) {
	w, err := wantOf(wanted)
	if err == nil {
		err = r.mistake(w)
	}
	return w, err
}

// parse parses the wanted values, and fails the test if one is wrong.
func (r *Recorder) parse(t testing.TB, wanted []any) ([]*want, bool) {
	t.Helper()
	var flat []any
	for _, one := range wanted {
		lines, ok := one.([]string)
		if !ok {
			flat = append(flat, one)
		}
		for _, line := range lines {
			flat = append(flat, line)
		}
	}
	var wants []*want
	for i, one := range flat {
		w, err := r.wantOf(one)
		if err != nil {
			t.Errorf("eventtest: wanted line %d, %s: %v", i+1, shownAs(one), err)
			return nil, false
		}
		wants = append(wants, w)
	}
	return wants, true
}

// shownAs returns a wanted value, for a failure.
func shownAs(wanted any) string {
	switch w := wanted.(type) {
	case string:
		return strconv.Quote(w)
	case Matcher:
		return w.String()
	}
	return fmt.Sprintf("a %T", wanted)
}

// note returns the fault of the line itself, for a failure.
func (w *want) note() string {
	if w.hint != "" {
		return " (" + w.hint + ")"
	}
	return ""
}

// A row of a failure is an event, or a wanted line that is missing.
type row struct {
	sign, head, text, note string
	first                  bool  // difference
	line                   *line // of an event
	want                   *want // that is missing
}

func (r *row) is(w *want) bool {
	_, why := w.match(r.line)
	return why == ""
}

// rows returns the events, without deltas unless one is wanted.
func (r *Recorder) rows(wants []*want) []row {
	deltas := slices.ContainsFunc(wants, func(w *want) bool {
		return slices.ContainsFunc(w.kinds(), func(k agentevents.KindInfo) bool { return k.Droppable })
	})
	all := r.Events()
	runs := map[string]bool{}
	for _, ev := range all {
		runs[ev.RunID] = true
	}
	var rows []row
	for _, ev := range all {
		if info, _ := ev.Kind().Info(); info.Droppable && !deltas {
			continue
		}
		l := newLine(ev)
		head := strconv.FormatUint(ev.Sequence, 10)
		if len(runs) > 1 {
			head = spell(cut(ev.RunID)) + "/" + head
		}
		rows = append(rows, row{head: head, text: l.String(), line: l})
	}
	return rows
}

const maxNear = 3

// missing returns the rows with the arrow in front of position at, and marks those that
// are nearest to the wanted line.
func missing(rows []row, at int, w *want) []row {
	type near struct{ at, score int }
	var nearest []near
	kinds := w.kinds()
	for i := range rows {
		score, why := w.match(rows[i].line)
		if why == "" {
			why = "too early"
		}
		ofKind := slices.ContainsFunc(kinds, func(k agentevents.KindInfo) bool { return k.Kind == rows[i].line.event.Kind() })
		if rows[i].sign == "" && (ofKind || len(kinds) == 0 && 2*score >= w.size()) || score == w.size() {
			rows[i].note = why
			nearest = append(nearest, near{i, score})
		}
	}
	slices.SortStableFunc(nearest, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(max(a.at-at, at-a.at), max(b.at-at, at-b.at)))
	})
	for i, n := range nearest {
		switch {
		case i >= maxNear:
			rows[n.at].note = ""
		case rows[n.at].sign == "":
			rows[n.at].sign = "~"
		}
	}
	return slices.Insert(rows, at, row{sign: "→", text: w.text, want: w})
}

// align returns the events and the wanted lines side by side, with the most matches, and
// the position of the first difference, or -1.
func align(rows []row, wants []*want) ([]row, int) {
	n := 0
	for n < len(rows) && n < len(wants) && rows[n].is(wants[n]) {
		n++
	}
	if n == len(rows) && n == len(wants) {
		return nil, -1
	}
	out := slices.Clone(rows[:n])
	events, lines := rows[n:], wants[n:]
	tail := 0
	for tail < len(events) && tail < len(lines) && events[len(events)-1-tail].is(lines[len(lines)-1-tail]) {
		tail++
	}
	events, lines, rest := events[:len(events)-tail], lines[:len(lines)-tail], events[len(events)-tail:]

	// best[i][j] is the number of matches of events[i:] and lines[j:].
	best := make([][]int, len(events)+1)
	for i := range best {
		best[i] = make([]int, len(lines)+1)
	}
	same := func(i, j int) bool { return events[i].is(lines[j]) }
	if len(events)*len(lines) > maxAligned { // it would take too long
		same = func(int, int) bool { return false }
	}
	for i := len(events) - 1; i >= 0; i-- {
		for j := len(lines) - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if same(i, j) {
				best[i][j] = max(best[i][j], 1+best[i+1][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(events) || j < len(lines) {
		switch {
		case i < len(events) && j < len(lines) && same(i, j) && best[i][j] == 1+best[i+1][j+1]:
			out = append(out, events[i])
			i, j = i+1, j+1
		case j < len(lines) && (i == len(events) || best[i][j+1] >= best[i+1][j]):
			out = append(out, row{sign: "-", text: lines[j].text, note: lines[j].hint, want: lines[j]})
			j++
		default:
			e := events[i]
			e.sign = "+"
			out = append(out, e)
			i++
		}
	}
	explain(out)
	out[n].first = true
	return append(out, rest...), n
}

// explain notes at an unwanted event which words of the nearest missing line before it the event
// lacks.
func explain(rows []row) {
	for i := range rows {
		if rows[i].sign != "+" {
			continue
		}
		best := 1 // the agent or the kind alone is not near
		for j := i - 1; j >= 0 && rows[j].sign != ""; j-- {
			if rows[j].want == nil {
				continue
			}
			if score, why := rows[j].want.match(rows[i].line); score > best {
				best, rows[i].note = score, why
			}
		}
	}
}

const maxAligned = 1 << 20

const (
	around   = 20  // rows that are shown before and after the one that matters
	maxShown = 100 // rows, without those
)

// list returns rows as text. Of many it leaves out those that are far from at, and have no
// sign or are too many.
func list(rows []row, at int) string {
	if len(rows) == 0 {
		return "  nothing"
	}
	head, text := 0, 0
	for _, r := range rows {
		head, text = max(head, len([]rune(r.head))), max(text, len([]rune(r.text)))
	}
	text = min(text, 72)
	var b strings.Builder
	left, shown := 0, 0
	flush := func() {
		if left > 0 {
			fmt.Fprintf(&b, "    … %d more\n", left)
		}
		left = 0
	}
	for i, r := range rows {
		if i < at-around || i > at+around {
			if r.sign == "" || r.sign == "=" || shown == maxShown {
				left++
				continue
			}
			shown++
		}
		flush()
		s := fmt.Sprintf("  %1s %*s  %s", r.sign, head, r.head, r.text)
		if r.first {
			s = "→" + s[1:]
		}
		if r.note != "" {
			s += strings.Repeat(" ", max(0, text-len([]rune(r.text)))) + "   <- " + r.note
		}
		b.WriteString(strings.TrimRight(s, " ") + "\n")
	}
	flush()
	return strings.TrimSuffix(b.String(), "\n")
}

func events(n int) string {
	if n == 1 {
		return "1 event"
	}
	return strconv.Itoa(n) + " events"
}

// quote returns the text as a Go string.
func quote(text string) string {
	if strconv.CanBackquote(text) && strings.Contains(text, `"`) {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}
