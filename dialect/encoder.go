package dialect

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// An Encoder writes events as lines of one dialect. It is stateful: one line may
// hold several events, and one event may need several lines. It takes the events
// of one log, in order, of any number of runs. It is not for concurrent use.
//
// An event that was read with Verbatim has its line as its
// [agentevents.Event.Origin]. The encoder writes that line as long as the event
// still says what the line says. After a field was changed it never does.
//
// An id that is not UTF-8 is an error, as in the native format. In other text the
// encoder writes U+FFFD for damaged characters and lists the loss
// ([DamagedText]).
type Encoder interface {
	// Append appends the lines for ev, each with its newline. There may be none yet.
	// If it fails it appends nothing, and later events may still be written. The
	// error wraps [ErrNoCounterpart] and names the kind when the document does not have it.
	// Otherwise it is an [*agentevents.RuleError] that names the rule of the
	// document.
	Append(dst []byte, ev agentevents.Event) ([]byte, error)
	// End appends the lines of the events that still wait for later ones.
	End(dst []byte) ([]byte, error)
	// Losses returns what the lines so far do not say of the events, and what they
	// say beyond them.
	Losses() []Loss
}

// A Decoder is a decoder of a dialect that lists what it makes up.
type Decoder interface {
	agentevents.Decoder
	// Losses returns what the events so far say that their lines do not, such as an
	// id that the document does not have. What is Made, and the Pointer is the place in
	// the event's native line.
	Losses() []Loss
}

// A Locator is a decoder that knows where its lines tell the fields of events.
type Locator interface {
	// Locate returns the pointer of a field on the line that was decoded last. kind belongs to
	// its event, and native the pointer of the field there, such as /payload/toolId. It returns
	// native if no member of the line is for the field. Use it with the errors of a fold, whose
	// pointers are native.
	Locate(kind agentevents.Kind, native string) string
}

// ErrNoCounterpart is the error for an event whose kind the document does not
// have. The event is counted among the losses.
var ErrNoCounterpart = errors.New("dialect: the document has no counterpart for this kind")

// A Loss is a difference between events and the lines written for them, with the
// number of times it occurred.
type Loss struct {
	Kind agentevents.Kind // of the event; empty if the loss is counted over all kinds
	// Pointer is the place in the event's native line, such as /payload/model. Empty
	// means the whole event. For Made it is the place that a decoder reads the
	// made-up member into.
	Pointer string
	What    Change
	// Detail says why, or what the line has instead. Losses that are counted
	// together have the same Detail.
	Detail string
	Count  int
	// RunID and Sequence name the first event with this loss.
	RunID    string
	Sequence uint64
}

// remarks are the words for the notes that a dialect keeps of a line, by the names of the notes.
var remarks = map[string]string{
	"absent": "members that the line lacks", "spelled": "members that the line has without need",
	"type": "the line's own type", "profile": "the line's own profile", "twin": "the question that the line repeats",
}

// LogValue makes the loss a group of its fields, for logs of the program.
func (l Loss) LogValue() slog.Value {
	return slog.GroupValue(slog.String("what", l.What.String()), slog.String("kind", string(l.Kind)), slog.String("pointer", l.Pointer),
		slog.String("detail", l.Detail), slog.Int("count", l.Count), slog.String("run", l.RunID), slog.Uint64("sequence", l.Sequence))
}

// String returns one line: the loss, how often it occurred and where first.
func (l Loss) String() string {
	kind, place := jsonwire.BriefName(string(l.Kind)), jsonwire.BriefPointer(l.Pointer)
	if l.Kind == "" {
		kind = "every kind"
	}
	if place == "" {
		place = "the event"
	}
	if _, note, ok := strings.Cut(l.Pointer, "/~0"); ok && remarks[note] != "" {
		place = remarks[note]
	}
	text := fmt.Sprintf("%s: %s %s", l.What, kind, place)
	if l.Detail != "" {
		text += ": " + l.Detail
	}
	where := fmt.Sprintf("at sequence %d", l.Sequence)
	if l.RunID != "" {
		where = fmt.Sprintf("in run %s %s", jsonwire.BriefName(l.RunID), where)
	}
	if l.Count == 1 {
		return fmt.Sprintf("%s (once, %s)", text, where)
	}
	return fmt.Sprintf("%s (%d times, first %s)", text, l.Count, where)
}

// A Change is what an encoder did to a fact that the document cannot say.
type Change uint8

// The changes.
const (
	Dropped Change = iota // the document has no place for it
	Altered               // the line says it, but not exactly
	Made                  // the document requires it and the event does not say it
)

// String returns the change's name in lower case.
func (c Change) String() string {
	switch c {
	case Altered:
		return "altered"
	case Made:
		return "made up"
	}
	return "dropped"
}

// Losses collects losses and counts equal ones together. The zero Losses is
// empty.
type Losses struct {
	every  kindLosses // losses counted over all kinds
	kinds  map[agentevents.Kind]*kindLosses
	recent [64]*kindLosses // of kinds, by their hash
}

// kindLosses are the losses of one kind of event.
type kindLosses struct {
	kind  agentevents.Kind
	list  []Loss
	index map[lossKey]int // into list
	last  int             // behind the latest one of the event
	after []int           // what came after each the last time; the first one is that of an event
}

type lossKey struct {
	what            Change
	pointer, detail string
}

func (l *Losses) of(kind agentevents.Kind) *kindLosses {
	recent := &l.recent[jsonwire.Hash(string(kind))%uint64(len(l.recent))]
	if k := *recent; k != nil && k.kind == kind { // as mostly
		return k
	}
	k := l.kinds[kind]
	if k == nil {
		if l.kinds == nil {
			l.kinds = map[agentevents.Kind]*kindLosses{}
		}
		k = &kindLosses{kind: agentevents.Kind(strings.Clone(string(kind)))} // the clone does not keep the line alive
		l.kinds[k.kind] = k
	}
	*recent = k
	return k
}

// add counts a loss, of which ev is the first event if it is new.
func (k *kindLosses) add(ev *agentevents.Event, what Change, pointer, detail string) {
	i := len(k.list)
	if i > 0 {
		i = k.after[k.last] // events mostly have the same losses in the same order
	}
	if i == len(k.list) || !k.list[i].is(what, pointer, detail) {
		i = k.find(ev, what, pointer, detail)
		k.after[k.last] = i
	}
	k.list[i].Count++
	k.last = i + 1
}

// find returns the index of a loss.
func (k *kindLosses) find(ev *agentevents.Event, what Change, pointer, detail string) int {
	if len(k.list) <= 8 { // quicker than a map
		for i := range k.list {
			if k.list[i].is(what, pointer, detail) {
				return i
			}
		}
	}
	key := lossKey{what, pointer, detail}
	i, ok := k.index[key]
	if !ok {
		if i = len(k.list); i == 0 {
			k.index, k.after = map[lossKey]int{}, []int{0}
		}
		k.index[key] = i
		k.list = append(k.list, Loss{Kind: k.kind, Pointer: pointer, What: what, Detail: detail, RunID: strings.Clone(ev.RunID), Sequence: ev.Sequence})
		k.after = append(k.after, 0)
	}
	return i
}

func (l *Loss) is(what Change, pointer, detail string) bool {
	return l.What == what && l.Pointer == pointer && l.Detail == detail
}

// Add counts one loss of ev.
func (l *Losses) Add(ev *agentevents.Event, what Change, pointer, detail string) {
	l.of(ev.Kind()).add(ev, what, pointer, detail)
}

// Pending holds the losses of one event until its line is written: the event may
// still be refused, or its original line may be written. The zero Pending is
// empty.
type Pending struct{ list []pendingLoss }

type pendingLoss struct {
	what            Change
	every           bool // count it over all kinds
	pointer, detail string
}

// Reset empties p.
func (p *Pending) Reset() { p.list = p.list[:0] }

// Len returns the number of losses.
func (p *Pending) Len() int { return len(p.list) }

// Cut keeps only the first n losses.
func (p *Pending) Cut(n int) { p.list = p.list[:n] }

// From returns the losses from n on. They are valid until p gets others.
func (p *Pending) From(n int) Pending { return Pending{p.list[n:]} }

// SameMade reports whether the losses from n to m and the losses from m on have
// the same altered and made-up facts. Two events may have equal lines although
// only one of them says a fact: for the other event the encoder made it up.
func (p *Pending) SameMade(n, m int) bool {
	a, b := p.list[n:m], p.list[m:]
	for {
		a, b = undropped(a), undropped(b)
		if len(a) == 0 || len(b) == 0 {
			return len(a) == len(b)
		}
		if a[0] != b[0] {
			return false
		}
		a, b = a[1:], b[1:]
	}
}

// undropped returns list without the dropped facts at its start.
func undropped(list []pendingLoss) []pendingLoss {
	for len(list) > 0 && list[0].what == Dropped {
		list = list[1:]
	}
	return list
}

// Add adds a loss.
func (p *Pending) Add(what Change, pointer, detail string) { p.add(what, false, pointer, detail) }

func (p *Pending) add(what Change, every bool, pointer, detail string) {
	// The fields are set in place: a composite literal is built on the stack and
	// copied, and the copy waits for the stores.
	n := len(p.list)
	p.list = slices.Grow(p.list, 1)[:n+1]
	l := &p.list[n]
	l.what, l.every, l.pointer, l.detail = what, every, pointer, detail
}

// Every adds a loss that is counted over all kinds: see [Losses.Every].
func (p *Pending) Every(what Change, pointer, detail string) {
	p.add(what, true, pointer, detail)
}

// Drop adds a dropped member if present is set.
func (p *Pending) Drop(pointer string, present bool) {
	if present {
		p.Add(Dropped, pointer, "")
	}
}

const fewLosses = 32

// Without removes the losses that q has too. Give it the losses that the event
// read from the line would have: what is left is lost to a reader of the line.
func (p *Pending) Without(q *Pending) {
	next := 0 // index into q.list: both lists mostly have the same order
	var all map[pendingLoss]bool
	p.list = slices.DeleteFunc(p.list, func(l pendingLoss) bool {
		if next < len(q.list) && q.list[next] == l {
			next++
			return true
		}
		if len(q.list) <= fewLosses {
			return slices.Contains(q.list, l)
		}
		if all == nil {
			all = make(map[pendingLoss]bool, len(q.list))
			for _, l := range q.list {
				all[l] = true
			}
		}
		return all[l]
	})
}

// Count adds the losses of ev to l. With verbatim it counts only dropped facts:
// the original line is written, so nothing is altered or made up.
func (p *Pending) Count(l *Losses, ev *agentevents.Event, verbatim bool) {
	if len(p.list) == 0 {
		return
	}
	of := l.of(ev.Kind())
	of.last = 0
	for i := range p.list {
		loss := &p.list[i]
		if verbatim && loss.what != Dropped {
			continue
		}
		if loss.every {
			l.Every(ev, loss.what, loss.pointer, loss.detail)
			continue
		}
		of.add(ev, loss.what, loss.pointer, loss.detail)
	}
}

// Every counts a loss over all kinds, such as an id where the document has none:
// the loss has no kind.
func (l *Losses) Every(ev *agentevents.Event, what Change, pointer, detail string) {
	l.every.add(ev, what, pointer, detail)
}

// Drop counts a dropped member if present is set.
func (l *Losses) Drop(ev *agentevents.Event, pointer string, present bool) {
	if present {
		l.Add(ev, Dropped, pointer, "")
	}
}

// List returns the losses ordered by kind and place.
func (l *Losses) List() []Loss {
	list := slices.Clone(l.every.list)
	for _, k := range l.kinds {
		list = append(list, k.list...)
	}
	slices.SortFunc(list, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.What, b.What), cmp.Compare(a.Detail, b.Detail))
	})
	return list
}
