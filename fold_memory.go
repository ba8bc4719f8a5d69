package agentevents

import (
	"slices"
	"strings"
)

// A line's text is one piece of memory for many lines, so a fold copies what it
// keeps of it. It has two verbs for that: keep makes a copy, intern makes one copy
// of all texts that are the same. A third, keepBriefly, is keep for what is
// forgotten long before the run ends. What takes the place of another text now
// and then is copied by itself (strings.Clone).

// A fold of many runs uses its memory again: see Fold.reset.

// words are texts and buffers that the folds of a log share.
type words struct {
	known map[string]string // short texts that come again and again
	texts slab
	refs  []AgentRef // references that come again and again
	spare [][]byte   // buffers of texts, to be used again
	size  int        // of spare, in bytes

	blocks [][]block       // lists, to be used again
	recent [][]fingerprint // likewise
}

const (
	maxWords     = 512
	maxWord      = 64 // bytes
	maxRefs      = 16
	maxSpare     = 64 << 10  // bytes of one buffer
	maxSpareSize = 256 << 10 // bytes of all
)

// keep returns a copy of s that lives as long as the run. Like all methods here it
// leaves s as it is for a nil view: an emitter's events are kept by nobody.
func (v *view) keep(s string) string {
	if v == nil {
		return s
	}
	return v.kept.clone(s)
}

// keepBriefly is keep for a text that is forgotten before the run ends: those of
// calls and blocks. It has pieces of its own, which then go too.
func (v *view) keepBriefly(s string) string {
	if v == nil {
		return s
	}
	return v.brief.clone(s)
}

// intern returns one copy for all texts like s, as long as they are short and few.
func (v *view) intern(s string) string {
	if v == nil || s == "" {
		return s
	}
	w := v.words
	if known, ok := w.known[s]; ok {
		return known
	}
	if len(s) > maxWord || len(w.known) == maxWords {
		return v.kept.clone(s)
	}
	if w.known == nil {
		w.known = map[string]string{}
	}
	s = w.texts.clone(s)
	w.known[s] = s
	return s
}

// keepRef returns a copy of a reference to an agent. A log has few of them.
func (v *view) keepRef(r AgentRef) AgentRef {
	refs := v.words.refs
	if i := slices.Index(refs, r); i >= 0 {
		return refs[i]
	}
	r.deepen()
	if len(refs) < maxRefs {
		v.words.refs = append(refs, r)
	}
	return r
}

// buffer returns memory for a text that grows.
func (v *view) buffer() []byte {
	w := v.words
	n := len(w.spare)
	if n == 0 {
		return make([]byte, 0, 512)
	}
	b := w.spare[n-1]
	w.spare = w.spare[:n-1]
	w.size -= cap(b)
	return b
}

// release takes the memory of a text back.
func (v *view) release(b []byte) {
	if v == nil {
		return
	}
	w := v.words
	if n := cap(b); n > 0 && n <= maxSpare && w.size+n <= maxSpareSize {
		w.spare = append(w.spare, b[:0])
		w.size += n
	}
}

// again returns an empty list of those that are kept for that.
func again[T any](lists *[][]T) []T {
	n := len(*lists)
	if n == 0 {
		return nil
	}
	list := (*lists)[n-1]
	*lists = (*lists)[:n-1]
	return list
}

// maxLists bounds the lists that are kept for the next run.
const maxLists = 16

// keepAgain keeps the memory of a list that nobody has any more.
func keepAgain[T any](lists *[][]T, list []T) {
	if cap(list) > 0 && len(*lists) < maxLists {
		*lists = append(*lists, list[:0])
	}
}

// A slab makes strings, many in one piece of memory. A string keeps its piece
// alive. The zero slab begins with small pieces.
type slab struct {
	b    strings.Builder
	size int // of the next piece
}

const (
	minPiece = 256
	maxPiece = 4 << 10
)

func (t *slab) clone(text string) string {
	if text == "" {
		return ""
	}
	if t.b.Cap()-t.b.Len() < len(text) {
		if len(text) > maxPiece/4 {
			return strings.Clone(text) // a new piece would waste much of the old one
		}
		t.size = min(max(2*t.size, minPiece), maxPiece)
		t.b = strings.Builder{}
		t.b.Grow(max(t.size, len(text)))
	}
	start := t.b.Len()
	t.b.WriteString(text)
	return t.b.String()[start:]
}

// An arena makes records of a type, several in one piece of memory, and makes
// them again of those that were given back.
type arena[T any] struct {
	piece []T
	free  []*T
	size  int // of the next piece
}

// maxFree bounds the records that an arena keeps for the next run.
const maxFree = 256

// get returns a record. One that was given back is as it was.
func (a *arena[T]) get() *T {
	if n := len(a.free); n > 0 {
		r := a.free[n-1]
		a.free = a.free[:n-1]
		return r
	}
	if len(a.piece) == 0 {
		a.size = min(max(2*a.size, 1), 16)
		a.piece = make([]T, a.size)
	}
	r := &a.piece[0]
	a.piece = a.piece[1:]
	return r
}

// put takes a record back that nobody has any more.
func (a *arena[T]) put(r *T) {
	if len(a.free) < maxFree {
		a.free = append(a.free, r)
	}
}

// emptied returns m without its entries. A large one is let go: to empty it takes
// as long as it is large.
func emptied[K comparable, V any](m map[K]V) map[K]V {
	if len(m) > 256 {
		return nil
	}
	clear(m)
	return m
}

// small returns the memory of b for another use, unless it is much.
func small(b []byte) []byte {
	if cap(b) > 4<<10 {
		return nil
	}
	return b[:0]
}

// reset makes the fold one of no events, in the memory it has. all says that
// nobody keeps the snapshot, so that its records can be used again too.
func (f *Fold) reset(all bool) {
	m, v := &f.m, &f.v
	if all {
		for _, a := range m.agents {
			rec := a.shown
			m.rest(a)
			f.giveBack(rec)
			*rec = AgentSnapshot{}
			v.agents.put(rec)
		}
	}
	for i := range m.calls.list {
		if c := m.calls.list[i].shown; c != nil {
			v.calls.put(c)
		}
	}
	for _, c := range v.closed {
		v.calls.put(c)
	}
	if all {
		for _, t := range v.tools {
			*t.stats = ToolStats{}
			v.stats.put(t.stats)
		}
	}
	clear(m.calls.list)
	*m = machine{agents: emptied(m.agents), calls: openCalls{list: m.calls.list[:0]}, messages: emptied(m.messages), buf: small(m.buf)}
	clear(v.closed)
	closed, tools := v.closed[:0], emptied(v.tools)
	v.s, v.tools, v.closed, v.oldest = nil, tools, closed, 0
	v.state, v.messages, v.inbox = stateObject{}, roster[ConversationMessage]{}, roster[InboxItem]{}
	v.clarifications, v.turns, v.steps = opens[string]{}, opens[turnKey]{}, opens[stepKey]{}
	v.lastTurn, v.active = nil, nil
	f.begun, f.line = false, small(f.line)
}

// giveBack takes the memory back that an agent needs while the fold goes on.
func (f *Fold) giveBack(a *AgentSnapshot) {
	v := &f.v
	v.release(a.text)
	v.release(a.reasoning)
	a.text, a.reasoning, a.shown = nil, nil, nil
	if len(a.Resume.blocks) == 0 {
		keepAgain(&v.words.blocks, a.Resume.blocks)
		a.Resume.blocks = nil
	}
}

// showsLittle reports whether the snapshot is worth being looked at as JSON.
func (v *view) showsLittle() bool {
	s := v.s
	return len(s.Agents) <= 2 && len(v.closed)+len(s.OpenCalls) <= 8 && len(s.Messages) <= 8 && s.NextSequence < 64
}

// ownCalls copies calls into memory of their own, so that what they were written
// in can be used again.
func ownCalls(open, closed []*ToolCallSnapshot) (_, _ []*ToolCallSnapshot) {
	n := len(open) + len(closed)
	if n == 0 {
		return nil, nil
	}
	size := 0
	records, list := make([]ToolCallSnapshot, n), make([]*ToolCallSnapshot, n)
	for i := range records {
		c := &records[i]
		if i < len(open) {
			*c = *open[i]
		} else {
			*c = *closed[i-len(open)]
		}
		list[i] = c
		size += len(c.CallID) + len(c.EventID) + len(c.RetryOf) + len(c.Error)
	}
	var b strings.Builder
	b.Grow(size)
	for i := range records {
		c := &records[i]
		for _, text := range [...]*string{&c.CallID, &c.EventID, &c.RetryOf, &c.Error} {
			start := b.Len()
			b.WriteString(*text)
			*text = b.String()[start:]
		}
	}
	return list[:len(open):len(open)], list[len(open):]
}
