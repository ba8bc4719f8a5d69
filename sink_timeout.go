package agentevents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/turns"
)

// Sinks that hang. A sink is called by the goroutine that emits, because anything else costs
// every event. So a sink that does not return holds that goroutine and its run. A watch tells of
// it; sinks with a limit are called on a goroutine of their own, and are left when they hang.

// ErrSinkHangs means that a sink has an event and does not return. See [Timeout].
var ErrSinkHangs = errors.New("the sink does not return")

// patience is the time after which a sink hangs, unless Timeout gives another one.
const patience = 5 * time.Second

// Timeout returns s as a sink that holds up its run for no longer than d. When a call takes
// longer, Emit goes on with a [*SinkError] that wraps [ErrSinkHangs], and s is set aside: later
// events fail for s in the same way, and are not queued, until the call returns. Other sinks get
// all events. An event in a call that hangs is in s if the call succeeds in the end; those in
// between are not. When the call returns, EmitterOptions.OnError is told how many s has missed.
// Flush and Close wait for the call for d once more; then their error wraps ErrSinkHangs, and Close
// leaves s open.
//
// Each event costs a goroutine, about a microsecond. A sink in [BestEffort] has a timeout of 5
// seconds unless it has another one. [Buffered] has no use for one: it has a goroutine of its own.
// A d of 0 means none. The other sinks have no timeout: one that hangs is told to OnError after 5 seconds, and holds
// the goroutine that emits whatever its context is.
func Timeout(s Sink, d time.Duration) Sink { return timeout{s, d} }

type timeout struct {
	Sink
	limit time.Duration
}

// aside is the state of a sink with a limit that hangs.
type aside struct {
	hung   atomic.Int64 // calls that do not return
	missed atomic.Int64 // events since the first one

	mu       sync.Mutex
	returned chan struct{} // of the calls that do not return: closed when they have
}

// leave notes a call that does not return.
func (a *aside) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hung.Add(1) == 1 {
		a.returned = make(chan struct{})
	}
}

// back notes that a call that was left has returned. It reports whether it was the last one.
func (a *aside) back() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hung.Add(-1) > 0 {
		return false
	}
	close(a.returned)
	return true
}

// waitAside waits until the calls that hang have returned, at most for the limit of one.
func (k *sinkEntry) waitAside(ctx context.Context) error {
	k.aside.mu.Lock()
	hung, returned := k.aside.hung.Load() > 0, k.aside.returned
	k.aside.mu.Unlock()
	if !hung {
		return nil
	}
	ctx, grace := turns.Grace(ctx)
	defer grace()
	ctx, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	select {
	case <-returned:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: an event is still being written to it, and it has missed %d events",
			ErrSinkHangs, k.aside.missed.Load())
	}
}

// within calls the sink on another goroutine and leaves it there if it hangs.
func (k *sinkEntry) within(ctx context.Context, ev *Event, line []byte) error {
	if k.aside.hung.Load() > 0 {
		k.aside.missed.Add(1)
		if !k.required {
			return nil
		}
		return ErrSinkHangs
	}
	const running, left, returned = 0, 1, 2
	var state atomic.Int32
	done := make(chan error, 1)
	own, began := *ev, time.Now()
	go func() {
		err := turns.ErrGoexit
		defer func() {
			done <- err
			if !state.CompareAndSwap(running, returned) {
				k.back(&own, time.Since(began), err)
			}
		}()
		err = k.deliver(ctx, &own, line)
	}()
	limit := time.NewTimer(k.limit)
	defer limit.Stop()
	select {
	case err := <-done:
		return err
	case <-limit.C:
	}
	k.aside.leave()
	if !state.CompareAndSwap(running, left) {
		k.aside.back()
		return <-done
	}
	return fmt.Errorf("%w after %v, and is set aside", ErrSinkHangs, k.limit)
}

// back takes a sink back.
func (k *sinkEntry) back(ev *Event, after time.Duration, err error) {
	missed := k.aside.missed.Load()
	if k.aside.back() {
		k.aside.missed.Add(-missed)
	}
	told := fmt.Errorf("%w: it returned after %v, and has missed %d events",
		ErrSinkHangs, after.Round(time.Millisecond), missed)
	if err != nil {
		told = errors.Join(told, err)
	}
	if k.report != nil {
		k.report(&SinkError{Sink: k.name, RunID: ev.RunID, Sequence: ev.Sequence, Err: told})
	}
}

// The place of a run in its sinks: the sequence of its latest event and, in the last bits, the
// number of the sink that got it last, from 1.
const placeBits = 8

// enters notes that a sink gets an event, and has somebody look after it. The sink's return is not
// noted: each note costs about 20 ns.
func (s *runState) enters(ev *Event, sink int) {
	s.at.Store(ev.Sequence<<placeBits | uint64(min(sink+1, 1<<placeBits-1)))
	if !s.e.watching.Load() && s.e.watching.CompareAndSwap(false, true) {
		time.AfterFunc(patience/looks, s.e.look)
	}
}

// looks is how often a sink is looked at in the time that it may take.
const looks = 5

// look looks at all runs, and again later if one may hang. So there is a timer while events are
// emitted and some seconds longer, and no goroutine.
func (e *Emitter) look() {
	e.watching.Store(false) // first: an emitter that enters from here on asks for another look
	type stuck struct {
		run *runState
		at  uint64
	}
	var all []stuck
	busy := false
	e.mu.Lock()
	for _, s := range e.runs {
		at := s.at.Load()
		if at != s.seen {
			s.seen, s.looks = at, 0
		} else if s.looks++; s.looks == looks {
			all = append(all, stuck{s, at})
		}
		busy = busy || s.looks < looks
	}
	e.mu.Unlock()
	for _, x := range all {
		if !x.run.idle() {
			x.run.stuck(x.at)
		}
	}
	if busy && e.watching.CompareAndSwap(false, true) {
		time.AfterFunc(patience/looks, e.look)
	}
}

// idle reports whether nobody records an event of the run.
func (s *runState) idle() bool {
	if !s.end.mu.TryLock() {
		return false
	}
	s.end.mu.Unlock()
	if s.end.closed.Load() { // perhaps meanwhile, by somebody who left the rest to whoever had the lock
		if err := s.close(context.Background()); err != nil {
			s.e.tellSink(s, err)
		}
	}
	return true
}

// stuck tells that a sink hangs.
func (s *runState) stuck(at uint64) {
	if at == 0 {
		return // no sink has got an event
	}
	k := s.e.sinks[at&(1<<placeBits-1)-1]
	if k.limit > 0 && k.buffer == nil {
		return // it is left by itself
	}
	err := &SinkError{Sink: k.name, RunID: s.m.RunID, Sequence: at >> placeBits,
		Err: fmt.Errorf("%w after %v: run %s waits for it", ErrSinkHangs, patience, jsonwire.Brief(s.m.RunID))}
	s.e.tellSink(s, err)
}

// tellSink tells OnError, or else the log of the program, once a run.
func (e *Emitter) tellSink(s *runState, err error) {
	if e.opts.OnError == nil {
		e.keepErrors([]error{err})
		if s != nil {
			s.warn(1, "OnError", err)
		}
		return
	}
	if perr := notify(e.opts.OnError, err); perr != nil {
		e.keepErrors([]error{fmt.Errorf("agentevents: EmitterOptions.OnError: %w", perr)})
	}
}
