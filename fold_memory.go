package agentevents

import (
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/reuse"
)

// This file has the memory of a fold. Many lines share one piece of memory, so a
// fold copies the texts that it keeps:
//
//   - keep copies a text that the run keeps to its end.
//   - intern copies a text that comes often, such as an agent's id, once.
//   - keepBriefly copies a text that is dropped long before the run ends.
//   - strings.Clone copies a text that another one may replace.
//
// A FoldSet uses the memory of ended runs for new ones: see Fold.reset.

// words has the texts and buffers that all folds of a log share.
type words struct {
	known map[string]string // interned texts
	texts reuse.Slab
	refs  []AgentRef // interned references

	// Memory that is free for use.
	buffers reuse.Buffers
	blocks  reuse.Lists[block]
	recent  reuse.Lists[fingerprint]
}

const (
	maxWords = 512
	maxWord  = 64 // bytes
	maxRefs  = 16
)

// keep returns a copy of s that lives as long as the run. The view of an emitter
// is nil: it has no lines to share memory with, so this method and the next two
// return s itself.
func (v *view) keep(s string) string {
	if v == nil {
		return s
	}
	return v.kept.Clone(s)
}

// keepBriefly returns a copy of a text of a call or block, which is dropped before
// the run ends. The copy is in another slab than those of keep, so that its memory
// is freed too.
func (v *view) keepBriefly(s string) string {
	if v == nil {
		return s
	}
	return v.brief.Clone(s)
}

// intern returns a copy of s, and the same copy for every text equal to s. Texts
// that are long, or beyond the limit of maxWords, are just copied.
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

// keepRef interns a reference to an agent: a log has few different ones.
func (v *view) keepRef(r AgentRef) AgentRef {
	if v == nil {
		return r
	}
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

// listOf returns a list of one report. Most attempts name one model, so the lists of
// many share a piece of memory.
func (v *view) listOf(r ReportedUsage) []ReportedUsage {
	if len(v.reports) == cap(v.reports) {
		v.reports = make([]ReportedUsage, 0, 16)
	}
	v.reports = append(v.reports, r)
	n := len(v.reports)
	return v.reports[n-1 : n : n]
}

// buffer returns memory for a text that grows.
func (v *view) buffer() []byte { return v.words.buffers.Get() }

// release takes back the memory of a text.
func (v *view) release(b []byte) {
	if v != nil {
		v.words.buffers.Put(b)
	}
}

// reset makes f a fold without events and keeps its memory. all says that the
// snapshot is not in use any more, so that its records can be used again too.
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
	if m.buf != nil {
		*m.buf = reuse.Small(*m.buf)
	}
	*m = machine{agents: reuse.Map(m.agents), calls: m.calls, messages: reuse.Map(m.messages), buf: m.buf}
	clear(v.closed)
	*v = view{
		keepCalls: v.keepCalls, words: v.words, kept: v.kept, brief: v.brief,
		agents: v.agents, calls: v.calls, stats: v.stats, reports: v.reports,
		tools: reuse.Map(v.tools), closed: v.closed[:0],
	}
	f.begun, f.line, f.cover = false, reuse.Small(f.line), coverage{}
}

// giveBack frees the memory that only the fold of an agent uses, and not its
// snapshot.
func (f *Fold) giveBack(a *AgentSnapshot) {
	v := &f.v
	v.release(a.text)
	v.release(a.reasoning)
	a.text, a.reasoning, a.shown, a.calls = nil, nil, nil, 0
	if len(a.Resume.blocks) == 0 {
		v.words.blocks.Put(a.Resume.blocks)
		a.Resume.blocks = nil
	}
}

// showsLittle reports whether the snapshot is small, so that it may be packed as
// JSON.
func (v *view) showsLittle() bool {
	s := v.s
	return len(v.closed)+len(s.OpenCalls)+len(s.OpenModelCalls) <= 8 && len(s.Messages) <= 8 && s.NextSequence < 64
}

// ownCalls copies calls and their texts into new memory, so that the fold can use
// the old memory again.
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
