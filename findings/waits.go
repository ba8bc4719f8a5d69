package findings

import (
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/endword"
)

// gap looks at the time since the last event: nothing in the run may explain it.
func (r *Run) gap(ev *agentevents.Event) {
	at := known(ev.Time)
	if at.IsZero() || ev.Marks.Has(agentevents.MarkReplayed) || ev.Marks.Has(agentevents.MarkLate) {
		return
	}
	last := r.last
	if !at.After(last) {
		return
	}
	if last.IsZero() || at.Sub(last) < r.o.Stall { // the usual case
		r.last = at
		if r.idle != nil {
			r.idle.Open = false
		}
		return
	}
	if ev.Kind() == agentevents.KindAgentTransition && ev.Marks.Has(agentevents.MarkSynthetic) {
		return // the event that it was made for comes next, and may explain the gap
	}
	r.last = at
	if gap := began(ev, at).Sub(last); r.stalls(ev, gap) {
		r.stalled(ev, last, gap)
	}
}

// Idle returns how long nothing has happened at a time after the last event, if an event of an agent at
// that time would make it a [Stall], else 0. It changes nothing: a host asks it now and then, as a run
// that hangs has no event that tells.
func (r *Run) Idle(now time.Time) time.Duration {
	if r.o == nil || r.last.IsZero() {
		return 0
	}
	gap := now.Sub(r.last)
	if slices.Contains(r.o.Off, Stall) || gap < r.o.Stall || !r.stalls(&agentevents.Event{}, gap) {
		return 0
	}
	return gap
}

// began returns the time at which the work began that an event is about.
func began(ev *agentevents.Event, at time.Time) time.Time {
	switch p := ev.Payload.(type) {
	case *agentevents.ToolReturned:
		if p.OneEvent {
			return at.Add(-p.Duration.V)
		}
	case *agentevents.ModelReturned:
		if p.OneEvent {
			return at.Add(-p.Duration.V)
		}
	}
	return at
}

// stalls reports whether nothing explains the gap before the event.
func (r *Run) stalls(ev *agentevents.Event, gap time.Duration) bool {
	limit := r.o.Stall
	if r.asking > 0 || !r.models {
		limit = r.o.ModelStall
	}
	switch {
	case gap < limit, r.open > 0, r.paused, r.over, len(r.asked) > 0, r.started && r.working == 0:
		return false
	}
	switch p := ev.Payload.(type) {
	case *agentevents.SessionStarted, *agentevents.RunStarted,
		*agentevents.RunResumed, *agentevents.AgentStarted, *agentevents.TurnStarted,
		*agentevents.CommandReceived, *agentevents.CheckpointResumed, *agentevents.WorkflowCreated, *agentevents.TaskAssigned:
		return false // somebody begins something
	case *agentevents.MessageCreated:
		return p.Message.Role != "user" && p.Message.From != "user"
	case *agentevents.AgentEnded, *agentevents.TurnEnded, *agentevents.RunCompleted,
		*agentevents.RunFailed, *agentevents.RunCancelled, *agentevents.SessionCompleted:
		return !r.answered // else a person leaves
	}
	return true
}

// stalled notes a gap: one finding of the run has all.
func (r *Run) stalled(ev *agentevents.Event, last time.Time, gap time.Duration) {
	if r.idle == nil {
		stall := found{Finding: Finding{Kind: Stall, AgentID: ev.AgentID, Since: last}, write: stallText}
		if r.idle = r.begin(ev, stall); r.idle == nil {
			return
		}
	}
	f := r.idle
	f.Count++
	f.Open = true
	f.long = max(f.long, gap)
	f.size += gap.Seconds()
	f.grow(ev, ev.Sequence)
	r.tell(f)
}

// A question waits for a person.
type question struct {
	id       uint64
	name     string
	agent    string
	sequence uint64
	at       time.Time
	timeout  time.Duration // 0 is none
	f        *found
}

func (r *Run) ask(ev *agentevents.Event, id string, timeout agentevents.Opt[time.Duration]) {
	r.drop(hashOf(id))
	if len(r.asked) == keptAsked {
		r.asked = slices.Delete(r.asked, 0, 1)
	}
	r.asked = append(r.asked, question{
		id: hashOf(id), name: strings.Clone(id), agent: strings.Clone(ev.AgentID),
		sequence: ev.Sequence, at: known(ev.Time), timeout: timeout.V,
	})
}

// drop closes a question, and returns it.
func (r *Run) drop(id uint64) (q question, ok bool) {
	i := slices.IndexFunc(r.asked, func(q question) bool { return q.id == id })
	if i < 0 {
		return question{}, false
	}
	q = r.asked[i]
	r.asked = slices.Delete(r.asked, i, i+1)
	if q.f != nil {
		q.f.Open = false
	}
	return q, true
}

// overdue looks at the questions that wait.
func (r *Run) overdue(ev *agentevents.Event) {
	at := known(ev.Time)
	if at.IsZero() || len(r.asked) == 0 {
		return
	}
	for i := range r.asked {
		q := &r.asked[i]
		if q.at.IsZero() || at.Sub(q.at) < r.o.Wait {
			continue
		}
		waited := at.Sub(q.at)
		if q.f == nil {
			if q.f = r.late(ev, q, waitText); q.f == nil {
				continue
			}
		}
		q.f.long, q.f.size, q.f.Until = waited, waited.Seconds(), at
		r.tell(q.f)
	}
}

func (r *Run) late(ev *agentevents.Event, q *question, write func(*found) string) *found {
	return r.begin(ev, found{
		Finding: Finding{
			Kind: AskedTooLate, AgentID: q.agent, CallID: q.name, Count: 1, Since: q.at, Sequences: []uint64{q.sequence},
		},
		write: write,
	})
}

// answer closes a question: its answer may come too late.
func (r *Run) answer(ev *agentevents.Event, id, word string) {
	q, open := r.drop(hashOf(id))
	if endword.Lapsed(word) {
		return // nobody was late
	}
	i := slices.IndexFunc(r.ended, func(q question) bool { return q.id == hashOf(id) })
	write := afterEndText
	switch at := known(ev.Time); {
	case open && q.timeout > 0 && !at.IsZero() && !q.at.IsZero() && at.Sub(q.at) > q.timeout:
		write = expiredText
	case i >= 0:
		q = r.ended[i]
		r.ended = slices.Delete(r.ended, i, i+1)
	case !open || !ev.Marks.Has(agentevents.MarkLate):
		return
	}
	f := q.f
	if f == nil {
		if f = r.late(ev, &q, write); f == nil {
			return
		}
	}
	f.write, f.Open = write, false
	f.size = max(f.size, 1)
	f.grow(ev, ev.Sequence)
	r.tell(f)
}

// close closes the questions of an agent that has ended, or all.
func (r *Run) close(agent string) {
	r.asked = slices.DeleteFunc(r.asked, func(q question) bool {
		if !r.over && q.agent != agent {
			return false
		}
		if q.f != nil {
			q.f.Open = false
		}
		if len(r.ended) == keptAsked {
			r.ended = slices.Delete(r.ended, 0, 1)
		}
		r.ended = append(r.ended, q)
		return true
	})
}

// hands are handovers in turn.
type hands struct {
	from, to  uint64
	n         int
	sequences []uint64
	since     time.Time
	f         *found
}

// handover notes that one agent hands over to another: two that do so in turn, with no new result
// between, go round in circles.
func (r *Run) handover(ev *agentevents.Event, from, to string) {
	h := &r.hands
	a, b := hashOf(from), hashOf(to)
	if h.n == 0 || h.from != b || h.to != a {
		if h.f != nil {
			h.f.Open = false
		}
		*h = hands{sequences: h.sequences[:0], since: known(ev.Time)}
	}
	h.from, h.to = a, b
	h.n++
	switch {
	case h.f != nil:
	case h.n < 2*r.o.Rounds:
		h.sequences = append(h.sequences, ev.Sequence)
		return
	default:
		h.f = r.begin(ev, found{
			Finding: Finding{
				Kind: PingPong, AgentID: from, Count: h.n - 1, Since: h.since, Sequences: slices.Clone(h.sequences),
			},
			about: name(from) + " and " + name(to), write: handsText,
		})
		if h.f == nil {
			return
		}
	}
	h.f.Count++
	h.f.size = float64(h.f.Count)
	h.f.grow(ev, ev.Sequence)
	r.tell(h.f)
}
