package dialect

import (
	"cmp"
	"errors"
	"slices"

	"github.com/agentevents/agentevents"
)

// An Encoder writes events as lines of one dialect. It is stateful: what
// several events say may stand on one line, and what one says on several. It is
// for the events of one log, in order, of any number of runs, and not for
// concurrent use.
type Encoder interface {
	// Append appends the lines that ev brings about, each with its newline;
	// there may be none yet. With an error nothing is appended, and the events
	// after it may still be written: the error is or wraps [ErrNoCounterpart]
	// when the document does not have the kind, and otherwise an
	// [*agentevents.InvariantError] that names the rule of the document.
	Append(dst []byte, ev agentevents.Event) ([]byte, error)
	// End appends the lines of what was waiting for more events.
	End(dst []byte) ([]byte, error)
	// Losses returns what the lines so far do not say of the events, and what
	// they say beyond them.
	Losses() []Loss
}

// ErrNoCounterpart is the error of an event whose kind the document does not
// have. The event is counted among the losses.
var ErrNoCounterpart = errors.New("dialect: the document has no counterpart for this kind")

// A Loss is a difference between events and the lines that were written of
// them, with how often it occurred.
type Loss struct {
	Kind agentevents.Kind // of the event
	// Pointer is the place in the event's native line, such as /payload/model;
	// empty is the whole event. For Made it is what the line's member would be
	// read as.
	Pointer string
	What    Change
	// Detail says more: why, or what became of it. It is the same for all that
	// are counted together.
	Detail string
	Count  int
	// RunID and Sequence name the first event it happened to.
	RunID    string
	Sequence uint64
}

// A Change is what happened to a fact on its way into another document.
type Change uint8

// The changes.
const (
	Dropped Change = iota // the document has no place for it
	Altered               // the line says it, but not exactly
	Made                  // the document asks for it and the event does not say it
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

// Losses collects losses: the same one many times is one with a count. The zero
// Losses is empty. Encoders embed it or keep one.
type Losses struct {
	m    map[lossKey]*Loss
	last *Loss
}

type lossKey struct {
	kind            agentevents.Kind
	pointer, detail string
	what            Change
}

// Add counts one loss of ev.
func (l *Losses) Add(ev *agentevents.Event, what Change, pointer, detail string) {
	kind := ev.Kind()
	if p := l.last; p != nil && p.Pointer == pointer && p.What == what && p.Kind == kind && p.Detail == detail {
		p.Count++
		return
	}
	key := lossKey{kind, pointer, detail, what}
	p := l.m[key]
	if p == nil {
		p = &Loss{Kind: kind, Pointer: pointer, What: what, Detail: detail, RunID: ev.RunID, Sequence: ev.Sequence}
		if l.m == nil {
			l.m = map[lossKey]*Loss{}
		}
		l.m[key] = p
	}
	p.Count++
	l.last = p
}

// Drop counts a member that is left out, if present says that there is one.
func (l *Losses) Drop(ev *agentevents.Event, pointer string, present bool) {
	if present {
		l.Add(ev, Dropped, pointer, "")
	}
}

// List returns the losses in order of kind and place.
func (l *Losses) List() []Loss {
	list := make([]Loss, 0, len(l.m))
	for _, p := range l.m {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.What, b.What), cmp.Compare(a.Detail, b.Detail))
	})
	return list
}
