package agentevents

import (
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/secret"
)

// A stream is a block of deltas for the redaction step, which scans them as one text.
type stream struct {
	subject, id string
	text        *secret.Stream
	part        string // the beginning of a character that a delta ended in
	last        Event  // the last delta, without its text, while some of the block is held back
	lost        bool   // earlier text is not known: further text is masked whole
}

// maxStreams is how many streams an agent may have at a time. They outlive the blocks of the
// machine: a secret may go on in a block that is forgotten.
const maxStreams = 4 * maxBlocks

// streams are the streams of a run by the key of their agent, oldest first.
type streams struct {
	of   map[string][]*stream
	last *stream // the one asked for last, while no stream is removed: mostly the next, too
	key  string  // of its agent

	lost map[string]map[lostBlock]struct{} // blocks that do not end, and whose streams made room for others
}

// A lostBlock is the hash of the subject and the id of a block.
type lostBlock uint64

// blocks returns the streams of the run, for a delta.
func (s *runState) blocks() *streams {
	if s.streams == nil {
		s.streams = &streams{}
	}
	return s.streams
}

// any reports whether there is a stream, or was one whose block may go on.
func (all *streams) any() bool { return all != nil && len(all.of)+len(all.lost) > 0 }

// get returns the stream of a delta. The streams that the delta ends are removed; it
// returns those that hold something back. The machine has not applied the delta yet.
func (all *streams) get(ev *Event, sub *subject, scanner *secret.Scanner) (st *stream, held []*stream) {
	p := pieceOf(ev, sub)
	if all.last != nil && all.key == sub.key && all.last.goesOn(&p) {
		return all.last, nil
	}
	return all.find(ev, sub, scanner, p)
}

// find is get for a delta that does not go on with the last stream.
func (all *streams) find(ev *Event, sub *subject, scanner *secret.Scanner, p piece) (st *stream, held []*stream) {
	list := all.of[sub.key]
	for i := len(list) - 1; i >= 0; i-- {
		if st := list[i]; st.goesOn(&p) {
			all.last, all.key = st, sub.key
			return st, nil
		}
	}
	held = all.take(ev, sub)
	st = &stream{subject: p.subject, id: p.id, text: scanner.Stream()}
	if _, st.lost = all.lost[sub.key][st.block()]; !st.lost {
		if list = all.of[sub.key]; len(list) >= maxStreams {
			i := slices.IndexFunc(list, func(st *stream) bool { return st.id != "" }) // the others end soon
			if list[i].held() {
				held = append(held, list[i])
			}
			all.lose(sub.key, list[i].block())
			list = slices.Delete(list, i, i+1)
		}
		if all.of == nil {
			all.of = map[string][]*stream{}
		}
		all.of[sub.key] = append(list, st)
	}
	all.last, all.key = st, sub.key
	return st, held
}

// block returns the hash of the stream's block.
func (st *stream) block() lostBlock {
	h := fnv.New64a()
	io.WriteString(h, st.subject+" "+st.id)
	return lostBlock(h.Sum64())
}

// lose notes that the stream of a block is removed while the block may go on.
func (all *streams) lose(key string, block lostBlock) {
	if all.lost == nil {
		all.lost = map[string]map[lostBlock]struct{}{}
	}
	if all.lost[key] == nil {
		all.lost[key] = map[lostBlock]struct{}{}
	}
	all.lost[key][block] = struct{}{}
}

// goesOn reports whether a delta belongs to the stream.
func (st *stream) goesOn(p *piece) bool {
	return st.id == p.id && st.subject == p.subject && !p.begins()
}

// take removes the streams that an event ends, and returns those that hold something
// back. The machine has not applied the event yet.
func (all *streams) take(ev *Event, sub *subject) (held []*stream) {
	if !all.any() {
		return nil
	}
	if sub.kind.Subject == "run" {
		return all.takeAll()
	}
	all.last = nil
	left := slices.DeleteFunc(all.of[sub.key], func(st *stream) bool {
		ends := saysEnd(ev, sub, st.subject, st.id)
		if ends && st.held() {
			held = append(held, st)
		}
		return ends
	})
	if len(left) > 0 {
		all.of[sub.key] = left
	} else {
		delete(all.of, sub.key)
	}
	if all.lost != nil && saysEnd(ev, sub, "", " ") { // of all blocks
		delete(all.lost, sub.key)
	}
	return held
}

// rename gives the streams of an agent that was known by a span to the id that an event has
// given it.
func (all *streams) rename(was, is string) {
	if !all.any() || was == is {
		return
	}
	all.last = nil
	if of := all.of[was]; of != nil {
		delete(all.of, was)
		all.of[is] = append(all.of[is], of...)
	}
	for block := range all.lost[was] {
		all.lose(is, block)
	}
	delete(all.lost, was)
}

// takeAll removes all streams, and returns those that hold something back.
func (all *streams) takeAll() (held []*stream) {
	if !all.any() {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(all.of)) {
		for _, st := range all.of[key] {
			if st.held() {
				held = append(held, st)
			}
		}
	}
	*all = streams{}
	return held
}

// held reports whether a part of the block is held back.
func (st *stream) held() bool { return st.part != "" || st.text.Held() }

// write returns the part of the block that can be recorded with the next piece.
func (st *stream) write(c *cleaner, piece string) string {
	if st.lost && piece != "" {
		c.redacted = true
		return secret.Marker(secret.Value)
	}
	if st.part != "" {
		piece = st.part + piece
	} else if st.text.Pass(piece) {
		return piece
	}
	n := len(piece)
	for i := n - 1; i >= max(0, n-utf8.UTFMax); i-- {
		if utf8.RuneStart(piece[i]) {
			if !utf8.FullRuneInString(piece[i:]) {
				n = i
			}
			break
		}
	}
	piece, st.part = piece[:n], strings.Clone(piece[n:])
	text := st.text.Write(c.valid(piece))
	c.redacted = st.text.Masked() || c.redacted
	return text
}

// close ends the stream and returns the text that was held back, as the redaction step
// leaves it.
func (st *stream) close(c *cleaner) string {
	text := ""
	if st.part != "" {
		text = st.text.Write(c.valid(st.part))
		st.part = ""
	}
	text += st.text.Close()
	c.redacted = st.text.Masked()
	return c.host("delta", ClassContent, text)
}

// note remembers a delta of the stream if some of the block is held back. A delta of no
// agent has no number: it belongs to no block of the rules.
func (st *stream) note(ev *Event, sub *subject) {
	if st.held() {
		st.last = *ev
		st.last.Payload = nextDelta(ev.Payload, sub.key != "")
		st.last.extra = ""
	}
}

// rest returns a delta with the held-back text, at the given time. It is empty if that text belongs
// to a masked one.
func (st *stream) rest(c *cleaner, at time.Time) Event {
	ev := st.last
	ev.ID, ev.Time = "", at
	ev.Marks = ev.Marks&^MarkSanitized | MarkSynthetic
	ev.Payload = withDelta(ev.Payload, st.close(c))
	return ev
}

// withDelta returns a copy of a delta with another text.
func withDelta(p Payload, text string) Payload {
	switch p := p.(type) {
	case *TextDelta:
		out := *p
		out.Delta = text
		return &out
	case *AgentReasoningDelta:
		out := *p
		out.Delta = text
		return &out
	case *ToolArgumentsDelta:
		out := *p
		out.Delta = text
		return &out
	}
	return p
}

// nextDelta returns a delta of the same block that follows p, without a text. In a block
// without an id it has no number: who emits may number on in the next block.
func nextDelta(p Payload, numbered bool) Payload {
	next := func(id string, i Opt[int]) Opt[int] {
		if !i.OK || id == "" || !numbered {
			return Opt[int]{}
		}
		return Some(plus(i.V, 1))
	}
	switch p := p.(type) {
	case *TextDelta:
		return &TextDelta{BlockID: p.BlockID, Index: next(p.BlockID, p.Index)}
	case *AgentReasoningDelta:
		return &AgentReasoningDelta{BlockID: p.BlockID, Index: next(p.BlockID, p.Index), Verbosity: p.Verbosity}
	case *ToolArgumentsDelta:
		return &ToolArgumentsDelta{CallID: p.CallID, Index: next(p.CallID, p.Index)}
	}
	return p
}
