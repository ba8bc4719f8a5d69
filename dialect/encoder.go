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

// An Encoder writes events as lines of one dialect. It is stateful: one line may hold several
// events, and one event may need several lines. It takes the events of one log, in order, of any
// number of runs. It is not for concurrent use.
//
// An event that was read with ReaderOptions.Verbatim keeps its line: see
// [agentevents.Event.Origin]. The encoder writes that line if no field of the event has changed since
// then, else it encodes the event anew.
//
// An id that is not UTF-8 is an error, as in the native format. In other text the encoder writes
// U+FFFD for damaged characters and lists the loss ([DamagedText]).
type Encoder interface {
	// Append appends the lines for ev, each with its newline. There may be none yet.
	// If it fails it appends nothing, and later events may still be written. The
	// error wraps [ErrNoCounterpart] and names the kind when the document does not have it.
	// Otherwise it is an [*agentevents.RuleError] that names the rule of the
	// document.
	Append(dst []byte, ev agentevents.Event) ([]byte, error)
	// End appends the lines of the events that still wait for later ones.
	End(dst []byte) ([]byte, error)
	// Losses returns the facts of the events that the lines so far lack, and the facts that only
	// the lines have.
	Losses() []Loss
}

// A Decoder is a decoder of a dialect that lists the values it makes up.
type Decoder interface {
	agentevents.Decoder
	// Losses returns the values of the events so far that their lines lack, such as an id that the
	// document does not have. Each is a [Made] loss with a Pointer into the event's native line.
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
	// Detail is the reason, or the value that the line has instead. Losses that are counted
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
	return slog.GroupValue(slog.String("what", l.What.String()), slog.String("kind", string(l.Kind)),
		slog.String("pointer", l.Pointer),
		slog.String("detail", l.Detail), slog.Int("count", l.Count), slog.String("run", l.RunID),
		slog.Uint64("sequence", l.Sequence))
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

// A Change is the way in which an encoder changed a fact that the document cannot represent.
type Change uint8

// The changes.
const (
	Dropped Change = iota // the document has no place for it
	Altered               // the line has the fact, but not exactly
	Made                  // the document requires the fact and the event lacks it
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
	every kindLosses // losses counted over all kinds
	kinds map[agentevents.Kind]*kindLosses
}

// kindLosses are the losses of one kind of event.
type kindLosses struct {
	kind  agentevents.Kind
	list  []Loss
	index map[lossKey]int // into list
}

type lossKey struct {
	what            Change
	pointer, detail string
}

func (l *Losses) of(kind agentevents.Kind) *kindLosses {
	k := l.kinds[kind]
	if k == nil {
		if l.kinds == nil {
			l.kinds = map[agentevents.Kind]*kindLosses{}
		}
		k = &kindLosses{kind: agentevents.Kind(strings.Clone(string(kind)))} // the clone does not keep the line alive
		l.kinds[k.kind] = k
	}
	return k
}

// add counts a loss, of which ev is the first event if it is new.
func (k *kindLosses) add(ev *agentevents.Event, what Change, pointer, detail string) {
	for i := range min(len(k.list), 8) { // quicker than a map
		if l := &k.list[i]; l.What == what && l.Pointer == pointer && l.Detail == detail {
			l.Count++
			return
		}
	}
	key := lossKey{what, pointer, detail}
	i, ok := k.index[key]
	if !ok {
		if i = len(k.list); i == 0 {
			k.index = map[lossKey]int{}
		}
		k.index[key] = i
		k.list = append(k.list, Loss{Kind: k.kind, Pointer: pointer, What: what, Detail: detail,
			RunID: strings.Clone(ev.RunID), Sequence: ev.Sequence})
	}
	k.list[i].Count++
}

// Add counts one loss of ev.
func (l *Losses) Add(ev *agentevents.Event, what Change, pointer, detail string) {
	l.of(ev.Kind()).add(ev, what, pointer, detail)
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
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.What, b.What),
			cmp.Compare(a.Detail, b.Detail))
	})
	return list
}
