package agentevents

import (
	"slices"
	"strings"
	"time"
)

// An earlyEnd is the end of a thing whose start is not in the log so far. A start of an earlier
// time than the end, whose line was written late, is that start: the thing is one, and over. One
// table holds them for everything that begins and ends, and the emitter keeps it as the fold does.
type earlyEnd struct {
	kind  Kind               `wire:"kind"`            // of the start
	agent string             `wire:"agent,omitzero"`  // the key of the agent; empty where the id is enough
	id    string             `wire:"id,omitzero"`     // of the call, the question, the step …
	span  string             `wire:"span,omitzero"`   // of the end
	at    time.Time          `wire:"at"`              // of the end
	word  string             `wire:"word,omitzero"`   // of a call the tool; of an approval granted or not; of a handoff that is not accepted the word
	why   string             `wire:"why,omitzero"`    // of such a handoff
	how   ToolStatus         `wire:"how,omitzero"`    // of a call
	took  Opt[time.Duration] `wire:"tookMs,omitzero"` // as the end states it
	whole bool               `wire:"whole,omitzero"`  // the end counts as a call of its own
}

// maxEarly is how many of them are remembered: the latest.
const maxEarly = 256

// endedFirst remembers the end of a thing that has not begun. Without a time nobody can tell
// whether a start comes late.
func (m *machine) endedFirst(e earlyEnd) {
	if !TimeKnown(e.at) {
		return
	}
	if len(m.Resume.early) == maxEarly {
		m.Resume.early = slices.Delete(m.Resume.early, 0, 1)
	}
	for _, text := range [...]*string{&e.agent, &e.id, &e.span, &e.word, &e.why} {
		*text = strings.Clone(*text) // keeps no line alive
	}
	m.Resume.early = append(m.Resume.early, e)
}

// beginsLate reports whether a start is that of a thing which has ended, the latest one, and
// forgets the end.
func (m *machine) beginsLate(start earlyEnd) (end earlyEnd, late bool) {
	if len(m.Resume.early) == 0 || !TimeKnown(start.at) {
		return earlyEnd{}, false
	}
	for i, e := range slices.Backward(m.Resume.early) {
		if e.kind == start.kind && start.at.Before(e.at) && e.same(&start) {
			m.Resume.early = orNil(slices.Delete(m.Resume.early, i, i+1))
			return e, true
		}
	}
	return earlyEnd{}, false
}

// same reports whether a start and an end are of one thing. A turn or a step is known by its span,
// as an end may lack the number, and the id of its step may be made up.
func (e *earlyEnd) same(start *earlyEnd) bool {
	if (e.kind == KindTurnStarted || e.kind == KindStepStarted) && e.span != "" && start.span != "" {
		return e.span == start.span && sameOrUnsaid(e.agent, start.agent)
	}
	sameSpan := e.span != "" && e.span == start.span
	switch {
	case e.kind == KindHandoffRequested && e.id == (handoffKey{}).String():
		return sameSpan // the end names nobody
	case e.id != start.id:
		return false
	case e.kind == KindToolCalled && sameSpan:
		return true // another one may have returned it
	}
	return e.agent == start.agent
}

// renameEarly gives the ends of an agent that was known by a span to its id.
func (m *machine) renameEarly(was, is string) {
	for i := range m.Resume.early {
		if e := &m.Resume.early[i]; e.agent == was {
			e.agent = is
		}
	}
}
