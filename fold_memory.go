package agentevents

import (
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/reuse"
	"github.com/agentevents/agentevents/internal/roster"
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
	texts reuse.Slab
	refs  []AgentRef // references that come again and again

	// Memory to be used again.
	buffers reuse.Buffers
	blocks  reuse.Lists[block]
	recent  reuse.Lists[fingerprint]
}

const (
	maxWords = 512
	maxWord  = 64 // bytes
	maxRefs  = 16
)

// keep returns a copy of s that lives as long as the run. Like all methods here it
// leaves s as it is for a nil view: an emitter's events are kept by nobody.
func (v *view) keep(s string) string {
	if v == nil {
		return s
	}
	return v.kept.Clone(s)
}

// keepBriefly is keep for a text that is forgotten before the run ends: those of
// calls and blocks. It has pieces of its own, which then go too.
func (v *view) keepBriefly(s string) string {
	if v == nil {
		return s
	}
	return v.brief.Clone(s)
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
		return strings.Clone(s) // not a part of a slab: it may take the place of one like it
	}
	if w.known == nil {
		w.known = map[string]string{}
	}
	s = w.texts.Clone(s)
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
func (v *view) buffer() []byte { return v.words.buffers.Get() }

// release takes the memory of a text back.
func (v *view) release(b []byte) {
	if v != nil {
		v.words.buffers.Put(b)
	}
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
			v.agents.Put(rec)
		}
	}
	_, calls := m.calls.All()
	for i := range calls {
		v.calls.Put(calls[i].shown)
	}
	m.calls.Reset()
	for _, c := range v.closed {
		v.calls.Put(c)
	}
	if all {
		for _, t := range v.tools {
			*t.stats = ToolStats{}
			v.stats.Put(t.stats)
		}
	}
	*m = machine{agents: reuse.Map(m.agents), calls: m.calls, messages: reuse.Map(m.messages), buf: reuse.Small(m.buf)}
	clear(v.closed)
	closed, tools := v.closed[:0], reuse.Map(v.tools)
	v.s, v.tools, v.closed, v.oldest = nil, tools, closed, 0
	v.state, v.messages, v.inbox = jsonwire.Object{}, roster.Roster[string, ConversationMessage]{}, roster.Roster[string, InboxItem]{}
	v.clarifications, v.turns, v.steps = roster.Opens[string]{}, roster.Opens[turnKey]{}, roster.Opens[stepKey]{}
	v.lastTurn, v.active = nil, nil
	f.begun, f.line = false, reuse.Small(f.line)
}

// giveBack takes the memory back that an agent needs while the fold goes on.
func (f *Fold) giveBack(a *AgentSnapshot) {
	v := &f.v
	v.release(a.text)
	v.release(a.reasoning)
	a.text, a.reasoning, a.shown = nil, nil, nil
	if len(a.Resume.blocks) == 0 {
		v.words.blocks.Put(a.Resume.blocks)
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
	return orNil(list[:len(open):len(open)]), orNil(list[len(open):])
}
