package agentevents

import (
	"fmt"
	"iter"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Redact returns the events of a log as the policy lets them be recorded; nil is the default
// policy. It is for logs that were recorded without it: captures, and logs of other systems. Order,
// ids, sequences, times and statuses stay. Changed events are marked [MarkRedacted], and no event
// has an [Event.Origin] any more.
//
// Deltas are scanned as a [Policy] says, but no event is added: text that is held back at the end
// of a block goes into the last delta of the block. So events wait for later ones, at most 65,536
// of them; beyond that held-back text may be lost.
//
// Errors of events are passed on in their place. A further error reports that the policy has a
// value that makes no sense (an [*OptionError]), or that the Redactor failed. Text that is not JSON
// becomes JSON, as an emitter records it.
func (p *Policy) Redact(events iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := p.check("Policy"); err != nil {
			yield(Event{}, err)
			return
		}
		l := logRedaction{e: &Emitter{redact: newRedaction(p)}, runs: map[string]*runState{}, lasts: map[*stream]int{}}
		for ev, err := range events {
			if err != nil {
				l.queue = append(l.queue, waiting{err: err})
			} else {
				l.add(ev)
			}
			if !l.drain(maxWaiting, yield) {
				return
			}
		}
		for _, s := range l.runs {
			l.end(s, s.streams.takeAll())
		}
		l.drain(0, yield)
	}
}

// maxWaiting is how many events of a log may wait for one that is held back.
const maxWaiting = 65_536

// A logRedaction redacts a log.
type logRedaction struct {
	e     *Emitter // that emits nothing
	runs  map[string]*runState
	queue []waiting
	gone  int             // events that have left the queue
	lasts map[*stream]int // the last deltas of blocks that hold something back, counted from the first event
}

// A waiting is an event, or an error in its place.
type waiting struct {
	ev   Event
	err  error
	held bool // it is a delta, and the held-back text belongs to it
}

// add redacts an event and appends it to the queue.
func (l *logRedaction) add(ev Event) {
	p := ops(ev.Payload)
	if p == nil {
		l.queue = append(l.queue, waiting{err: sealError(ev.Payload)})
		return
	}
	s := l.runs[ev.RunID]
	if s == nil {
		s = &runState{e: l.e, m: newMachine(&RunState{RunID: ev.RunID})}
		l.runs[ev.RunID] = s
	}
	ev.origin = ""
	var sub subject
	s.m.resolve(&sub, &ev, p)
	c := l.e.redact.cleaner(ev.Kind())
	c.words = true
	if ev.SchemaVersion != SchemaVersion {
		ev.SchemaVersion, _ = c.text("schemaVersion", ClassMeta, ev.SchemaVersion)
	}
	var st *stream
	if sub.kind.Role == RoleDelta && l.e.redact.actions[ClassContent] == ActionScan {
		var held []*stream
		st, held = s.blocks().get(&ev, &sub, l.e.redact.scanner)
		l.end(s, held)
		c.stream = st
	}
	clean, _ := c.payload(ev.Payload)
	if ev.extra != "" {
		ev.extra, _ = c.extras(ev.extra)
	}
	ev.Payload, sub.payload = clean, ops(clean)
	s.mark(&ev, &sub, &c)
	if sub.kind.traits&endsBlocks != 0 && st == nil {
		l.end(s, s.streams.take(&ev, &sub))
	}
	if l.e.redact.CountTokens != nil {
		s.countReasoning(&ev, &sub)
	}
	key := sub.key
	s.m.apply(&ev, &sub)
	s.streams.rename(key, sub.key)
	if s.m.TerminalKind != "" && !s.streams.any() {
		delete(l.runs, ev.RunID)
	}
	if st != nil {
		if last := l.last(st); last != nil {
			last.held = false
		}
		if delete(l.lasts, st); st.held() {
			l.lasts[st] = l.gone + len(l.queue)
		}
	}
	l.queue = append(l.queue, waiting{ev: ev, held: st != nil && st.held()})
	if c.failed != nil {
		err := fmt.Errorf("agentevents: redactor, run %s, sequence %d: %w", jsonwire.Brief(ev.RunID), ev.Sequence, c.failed)
		l.queue = append(l.queue, waiting{err: err})
	}
}

// last returns the last delta of a stream that holds something back, or nil.
func (l *logRedaction) last(st *stream) *waiting {
	if i, ok := l.lasts[st]; ok && i >= l.gone {
		return &l.queue[i-l.gone]
	}
	return nil
}

// end appends held-back text to the last deltas of its blocks.
func (l *logRedaction) end(s *runState, held []*stream) {
	for _, st := range held {
		last := l.last(st)
		delete(l.lasts, st)
		if last == nil {
			continue // too many events came between
		}
		last.held = false
		c := l.e.redact.cleaner(last.ev.Kind())
		more, sub := last.ev, subject{}
		more.Payload = withDelta(more.Payload, st.close(&c))
		s.m.resolve(&sub, &more, ops(more.Payload))
		before := pieceOf(&last.ev, &sub).text
		s.mark(&more, &sub, &c)
		more.Payload = withDelta(more.Payload, before+pieceOf(&more, &sub).text)
		last.ev = more
	}
}

// drain yields the events that wait for nothing, and the first ones of more than most.
func (l *logRedaction) drain(most int, yield func(Event, error) bool) bool {
	n := 0
	for n < len(l.queue) && (!l.queue[n].held || len(l.queue)-n > most) {
		w := l.queue[n]
		l.queue[n] = waiting{}
		n++
		if !yield(w.ev, w.err) {
			return false
		}
	}
	l.gone += n
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	return true
}
