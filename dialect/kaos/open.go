package kaos

import (
	"slices"
	"strings"
)

const (
	maxRecent = 16      // entries in the list, which are searched one by one
	maxOpen   = 1 << 13 // entries in each of the two maps
)

// An opened is a span that has begun and has not ended.
type opened struct {
	about
	span  string // its id; empty if the encoder made it up
	made  uint64 // the made-up id
	tool  string // for the decoder: of a call; of a handoff the agent that takes over
	other bool   // for the encoder: readers know the call or agent by the span
}

// An about is what a span is about: for a handoff the id is of the agent that hands
// over, or of both.
type about struct{ id, subject, agent, run string }

type spanKey struct{ span, run string }

// paired reports whether readers find the start of a span of this subject by
// span_id.
func paired(subject string) bool {
	return subject == "tool_call" || subject == "step" || subject == "subagent" || subject == "handoff"
}

// opens remembers the open spans, of which a log mostly has few: the latest are in a
// list, the others in maps. Many spans never end (most logs have no end of a
// handoff), so full maps make the older ones forgotten.
type opens struct {
	recent     []opened // the latest last; their texts may be parts of lines
	young, old olds
}

type olds struct {
	spans    map[spanKey]*opened
	subjects map[about]*opened
}

// bySpan returns the open span of that id, if it is paired, or nil. The result of
// this and of find is valid until the next add or remove.
func (o *opens) bySpan(run, span string) *opened {
	if span == "" {
		return nil
	}
	for i := len(o.recent) - 1; i >= 0; i-- {
		if p := &o.recent[i]; p.span == span && p.run == run && paired(p.subject) {
			return p
		}
	}
	for _, m := range [...]*olds{&o.young, &o.old} {
		if p := m.spans[spanKey{span, run}]; p != nil {
			return p
		}
	}
	return nil
}

// find returns the open span that is about the same, or nil.
func (o *opens) find(a *about) *opened {
	for i := len(o.recent) - 1; i >= 0; i-- {
		if o.recent[i].about == *a {
			return &o.recent[i]
		}
	}
	for _, m := range [...]*olds{&o.young, &o.old} {
		if p := m.subjects[*a]; p != nil {
			return p
		}
	}
	return nil
}

// remove removes an open span, if p is not nil.
func (o *opens) remove(p *opened) {
	if p == nil {
		return
	}
	for i := range o.recent {
		if p == &o.recent[i] {
			o.recent = slices.Delete(o.recent, i, i+1)
			return
		}
	}
	for _, m := range [...]*olds{&o.young, &o.old} {
		if key := (spanKey{p.span, p.run}); m.spans[key] == p {
			delete(m.spans, key)
		}
		if m.subjects[p.about] == p {
			delete(m.subjects, p.about)
		}
	}
}

// add adds an open span.
func (o *opens) add(p opened) {
	if len(o.recent) == maxRecent {
		o.age(o.recent[0].cloned())
		o.recent = slices.Delete(o.recent, 0, 1)
	}
	o.recent = append(o.recent, p)
}

// age moves an open span to the maps.
func (o *opens) age(p opened) {
	if o.young.spans == nil || max(len(o.young.spans), len(o.young.subjects)) >= maxOpen {
		o.young, o.old = olds{map[spanKey]*opened{}, map[about]*opened{}}, o.young
	}
	o.young.subjects[p.about] = &p
	if p.span != "" && paired(p.subject) {
		o.young.spans[spanKey{p.span, p.run}] = &p
	}
}

// cloned returns p with texts of its own, which keep no line alive.
func (p opened) cloned() opened {
	for _, text := range [...]*string{&p.id, &p.agent, &p.run, &p.span, &p.tool} {
		*text = strings.Clone(*text)
	}
	return p
}
