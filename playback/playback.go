// Package playback plays a run that was recorded: event by event, in the time that it
// took or faster, with the snapshot of every point. It is for audits and for pages that
// show how a run came about.
//
// Nothing is run again and nothing is reached: a [Player] has no sinks, and gives events
// to its caller only, marked [agentevents.MarkReplayed].
//
// Mirrors: the resume specification, "Replay (Audit Playback)".
package playback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/option"
)

// Options configure a [Player]. The zero Options are usable.
type Options struct {
	// Fold are the options of the snapshots.
	Fold agentevents.FoldOptions
}

// A Player is at a place between two events of a run, and has its snapshot. It is not
// for concurrent use.
type Player struct {
	events []agentevents.Event
	next   int // the event that is played next
	fold   *agentevents.Fold
	o      Options
	marks  []mark // places to begin from, in order
	every  int    // number of events between two marks
}

// A mark is the state before an event.
type mark struct {
	next     int
	snapshot *agentevents.RunSnapshot
}

// Marks lie markEvery events apart, and twice as far whenever there would be more than
// maxMarks: each has as much as the run had by then, so that more would take memory and time
// with the square of the run's length. Going back folds at most a fourth of the events, or
// markEvery.
const (
	markEvery = 4096
	maxMarks  = 8
)

// New returns a player of the events of one run, which stands before the first. They are
// put into the order of their sequences; of two with the same id the first counts. The
// events are kept, and must not be changed.
func New(events iter.Seq[agentevents.Event], o Options) (*Player, error) {
	p := &Player{o: o, every: markEvery, fold: agentevents.NewFold(o.Fold)}
	seen := map[string]bool{}
	for ev := range events {
		if len(p.events) > 0 && ev.RunID != p.events[0].RunID {
			return nil, errors.New("playback: the events are of several runs")
		}
		if ev.ID != "" && seen[ev.ID] {
			continue
		}
		seen[ev.ID] = true
		p.events = append(p.events, ev)
	}
	if len(p.events) == 0 {
		return nil, errors.New("playback: there are no events")
	}
	slices.SortStableFunc(p.events, func(a, b agentevents.Event) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return p, nil
}

// RunID returns the id of the run.
func (p *Player) RunID() string {
	if len(p.events) == 0 {
		return "" // the zero Player
	}
	return p.events[0].RunID
}

// Len returns the number of events.
func (p *Player) Len() int { return len(p.events) }

// Position returns how many events were played.
func (p *Player) Position() int { return p.next }

// Snapshot returns the run as it was at this place. It belongs to the caller.
func (p *Player) Snapshot() *agentevents.RunSnapshot {
	if p.fold == nil {
		return new(agentevents.Fold).Snapshot() // of the zero Player
	}
	return p.fold.Snapshot()
}

// Peek returns the event that is played next, and false at the end.
func (p *Player) Peek() (agentevents.Event, bool) {
	if p.next == len(p.events) {
		return agentevents.Event{}, false
	}
	ev := p.events[p.next]
	ev.Marks |= agentevents.MarkReplayed
	return ev, true
}

// Step plays one event, and returns it. It returns false at the end.
func (p *Player) Step() (agentevents.Event, bool) {
	ev, ok := p.Peek()
	if ok {
		p.mark()
		p.fold.Apply(p.events[p.next])
		p.next++
	}
	return ev, ok
}

// mark keeps this place to begin from, if it is far enough after the last one.
func (p *Player) mark() {
	if n := len(p.marks); p.next == 0 || p.next%p.every != 0 || n > 0 && p.marks[n-1].next >= p.next {
		return
	}
	if len(p.marks) == maxMarks {
		p.every *= 2
		p.marks = slices.DeleteFunc(p.marks, func(m mark) bool { return m.next%p.every != 0 })
		if p.next%p.every != 0 {
			return
		}
	}
	p.marks = append(p.marks, mark{p.next, p.fold.Snapshot()})
}

// Seek moves the player forwards or backwards to the place before the first event whose sequence is
// at least the given one, or to the end if the run has no such event. It fails if the state of an
// earlier place cannot be restored.
func (p *Player) Seek(sequence uint64) error {
	to, _ := slices.BinarySearchFunc(p.events, sequence,
		func(ev agentevents.Event, s uint64) int { return cmp.Compare(ev.Sequence, s) })
	if to < p.next {
		if err := p.back(to); err != nil {
			return err
		}
	}
	for p.next < to {
		p.Step()
	}
	return nil
}

// back goes to the last mark at or before the place.
func (p *Player) back(to int) error {
	i, found := slices.BinarySearchFunc(p.marks, to, func(m mark, to int) int { return cmp.Compare(m.next, to) })
	if !found {
		i--
	}
	p.next, p.fold = 0, agentevents.NewFold(p.o.Fold)
	if i >= 0 {
		fold, err := agentevents.ResumeFold(p.marks[i].snapshot, p.o.Fold)
		if err != nil {
			return fmt.Errorf("playback: going back: %w", err)
		}
		p.next, p.fold = p.marks[i].next, fold
	}
	return nil
}

// Timing decides how long Play waits between events.
type Timing struct {
	// Speed is by how much time passes faster than it did: 1 is the original, 2 twice as
	// fast. 0 means no waiting.
	Speed float64 `least:"0"`
	// MaxWait bounds one wait, so that a night between two events need not be slept
	// through. 0 means no bound.
	MaxWait time.Duration `least:"0"`
}

// Play plays the events from here on. show is called with each after it was played, and after the
// time that lies between it and the one before; Snapshot has the run then. Play ends with the run,
// or with the error of show or of the context. It can be called again, and goes on.
func (p *Player) Play(ctx context.Context, t Timing, show func(agentevents.Event) error) error {
	if err := option.Check("playback.Timing", t); err != nil {
		return err
	}
	// Waits end at fixed points in time, so that the duration of show adds no delay.
	due := time.Now()
	for {
		ev, ok := p.Peek()
		if !ok {
			return ctx.Err()
		}
		if p.next > 0 {
			due = due.Add(t.wait(p.events[p.next-1].Time, ev.Time))
		}
		if err := sleep(ctx, time.Until(due)); err != nil {
			return err
		}
		p.Step()
		if err := show(ev); err != nil {
			return err
		}
		if t.Speed == 0 {
			due = time.Now()
		}
	}
}

// wait is how long to wait from an event to the next.
func (t Timing) wait(from, to time.Time) time.Duration {
	if t.Speed == 0 || !agentevents.TimeKnown(from) || !agentevents.TimeKnown(to) || !to.After(from) {
		return 0
	}
	d := float64(to.Sub(from)) / t.Speed
	if t.MaxWait > 0 {
		return time.Duration(min(d, float64(t.MaxWait)))
	}
	return time.Duration(min(d, float64(1<<62)))
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
