package kaos

import (
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

const (
	maxRecent = 16      // entries in the list, which are searched one by one
	maxOpen   = 1 << 13 // entries in each of the two maps
)

// withKinds are the subjects that have kinds of their own.
var withKinds = []string{"turn", "step", "tool_call", "subagent", "handoff"}

// paired reports whether readers find the start of a span of this subject by
// span_id.
func paired(subject string) bool { return slices.Contains(withKinds[1:], subject) }

// An opened is a span that has begun and has not ended.
type opened struct {
	about
	spanID
	tool  string // for the decoder: of a call; of a handoff the agent that takes over
	other bool   // for the encoder: readers know the call or agent by the span
	named bool   // for the encoder: readers know the agent by a name that its event lacks
}

// An about is what a span is about: for a handoff the id is of the agent that hands
// over, or of both.
type about struct{ id, subject, agent, run string }

// A spanID is the span id of an event, or an id that is made up.
type spanID struct {
	span string // of the event
	made uint64 // the made-up id, of which the first madeDigits hex digits are written
}

const madeDigits = 12

// is reports whether the id reads as text on a line.
func (s spanID) is(text string) bool {
	if s.span != "" || len(text) != madeDigits {
		return s.span == text
	}
	var digits [16]byte
	return string(jsonwire.AppendHex(digits[:0], s.made)[:madeDigits]) == text
}

// append appends the id as a JSON string. Made-up ids depend on the place in the log:
// whole lines, which are compared, have none.
func (s spanID) append(dst []byte, whole bool) []byte {
	if s.span != "" || whole {
		return jsonwire.AppendString(dst, s.span)
	}
	n := len(dst) + 1
	dst = jsonwire.AppendHex(append(dst, '"'), s.made)
	return append(dst[:n+madeDigits], '"')
}

type spanKey struct{ span, run string }

// opens remembers the open spans, of which a log mostly has few: the latest are in a
// list, the others in maps. Many spans never end (most logs have no end of a
// handoff), so full maps make the older ones forgotten.
type opens struct {
	recent     []opened // the latest last; their texts may be parts of lines
	young, old olds
}

type olds struct {
	spans    map[spanKey]*opened // those that are paired
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
	if p := o.young.spans[spanKey{span, run}]; p != nil {
		return p
	}
	return o.old.spans[spanKey{span, run}]
}

// find returns the open span that is about the same, or nil.
func (o *opens) find(a *about) *opened {
	for i := len(o.recent) - 1; i >= 0; i-- {
		if o.recent[i].about == *a {
			return &o.recent[i]
		}
	}
	if p := o.young.subjects[*a]; p != nil {
		return p
	}
	return o.old.subjects[*a]
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
	for _, m := range [...]olds{o.young, o.old} {
		if key := (spanKey{p.span, p.run}); m.spans[key] == p {
			delete(m.spans, key)
		}
		if m.subjects[p.about] == p {
			delete(m.subjects, p.about)
		}
	}
}

// add adds an open span. The oldest of the list moves to the maps, with texts of its
// own, which keep no line alive.
func (o *opens) add(p opened) {
	if len(o.recent) == maxRecent {
		old := o.recent[0]
		o.recent = slices.Delete(o.recent, 0, 1)
		for _, text := range [...]*string{&old.id, &old.agent, &old.run, &old.span, &old.tool} {
			*text = strings.Clone(*text)
		}
		if o.young.spans == nil || max(len(o.young.spans), len(o.young.subjects)) >= maxOpen {
			o.young, o.old = olds{map[spanKey]*opened{}, map[about]*opened{}}, o.young
		}
		o.young.subjects[old.about] = &old
		if old.span != "" && paired(old.subject) {
			o.young.spans[spanKey{old.span, old.run}] = &old
		}
	}
	o.recent = append(o.recent, p)
}
